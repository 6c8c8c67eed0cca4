# SPDX-License-Identifier: MIT OR Unlicense
# golden.sh - what tests/cli/golden_*.sh share: files that are held against what they were when somebody last looked at
# them. Source it behind tests/lib.sh. Whoever changes what people see writes them anew, and looks at the difference:
#
#   GOLDEN=write sh tests/run.sh tests/cli/golden_shown.sh tests/cli/golden_runs.sh && git diff tests/fixtures/golden
unset NO_COLOR CLICOLOR_FORCE FORCE_COLOR
LC_ALL=C COLUMNS=80
export LC_ALL COLUMNS
golden=$(pwd)/tests/fixtures/golden

# The libraries of machines differ in the last bits of a logarithm: the last of a number's digits behind the point may.
# alike A B: where not, the first line that differs
alike() {
    awk -v other="$2" '
    function cut(s) { return match(s, /[0-9]+\.[0-9]+/) ? 1 : 0 }
    {
        if ((getline line < other) <= 0) { print NR ": is not there any more: " substr($0, 1, 200); exit told = 1 }
        a = $0
        b = line
        if (a == b) next
        while (cut(a)) {
            x = substr(a, RSTART, RLENGTH); before = substr(a, 1, RSTART - 1); a = substr(a, RSTART + RLENGTH)
            if (!cut(b) || substr(b, 1, RSTART - 1) != before) break
            y = substr(b, RSTART, RLENGTH); b = substr(b, RSTART + RLENGTH)
            digits = length(x) - index(x, ".")
            if (length(y) - index(y, ".") != digits || (x - y) * (x - y) > 1.21 * 10 ^ (-2 * digits)) break
            x = ""
        }
        if (x != "" || a != b) {
            for (i = 1; substr($0, i, 1) == substr(line, i, 1);) i++
            i = i > 40 ? i - 40 : 1
            print NR ": \"" substr(line, i, 100) "\", was \"" substr($0, i, 100) "\""
            exit told = 1
        }
        x = ""
    }
    END { if (!told && (getline line < other) > 0) print "more lines than there were: " substr(line, 1, 200) }' "$1"
}
# same NAME FILE: is what stands in the fixtures
same() {
    if [ "${GOLDEN-}" = write ]; then
        cp "$2" "$golden/$1"
    elif difference=$(alike "$golden/$1" "$2") && [ -z "$difference" ]; then
        pass
    else
        fail "$1: line $difference"
    fi
}
