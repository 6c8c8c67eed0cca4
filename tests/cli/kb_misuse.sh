#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that each wrong use of kbench's functions gets a flag and no time. Names and notes of any length and
# content are complete in the records, and are escaped on a terminal.
. tests/lib.sh
. tests/cli/kit.lib

program misuse tests/cli/kb_misuse.c
reader
quick="--iters 5 --warmup 1 --no-progress"
run "$tmp/misuse" $quick --json "$tmp/r.json" --csv "$tmp/r.csv" --md "$tmp/r.md" --go "$tmp/r.go" --gbench "$tmp/r.gb"
check_rc "all in one run" 1
cp "$out" "$tmp/table"
"$tmp/flat" "$tmp/r.json" > "$tmp/flat.txt"
# field OPERATION KEY: prints a value of the record, as JSON
field() {
    awk -F'\t' -v op="\"$1\"" -v key="$2" '
        $1 != last { if (o == op) exit; o = v = ""; last = $1 }
        $2 == "operation" { o = $3 } $2 == key { v = $3 }
        END { if (o == op) print v }' "$tmp/flat.txt"
}
# bad OPERATION MESSAGE
bad() {
    check_same "$1: status" "$(field $1 status)" '"failed"'
    check_same "$1: flags" "$(field $1 flags)" '["BAD_CASE"]'
    check_same "$1: no time" "$(field $1 time_ms)" null
    case $(field $1 message) in *"$2"*) pass ;; *) fail "$1: message $(field $1 message) does not say '$2'" ;; esac
}
for o in sample_twice time_then_sample sample_then_time time_then_empty_sample time_in_time; do
    bad $o "two timed blocks in one benchmark"
done
bad tolerance_below_0 "a tolerance from 0 up, not -1"
bad tolerance_nan "a tolerance from 0 up, not nan"
bad tolerance_infinite "a tolerance from 0 up, not inf"
bad check_of_null "kb_check got a NULL pointer"
for o in check_before equal_before that_before; do bad $o "kb_check is called before the timed block"; done
bad kind_beyond "kb_fill takes KB_ZERO, KB_NORMAL, KB_UNIFORM or KB_IOTA"
bad fill_of_null "kb_fill got a NULL pointer"
bad fill_below_0 "kb_fill of -1 elements"
bad fill_beyond "kb_fill of 65 elements exceeds its block of 256 bytes"
bad place_beyond "kb_alloc takes KB_DEVICE, KB_HOST or KB_PINNED"
bad expects_the_unknown "kb_expect knows"
bad copy_beyond "kb_to_host of 320 bytes exceeds its block of 256 bytes"
bad copy_from_null "kb_from_host got a NULL pointer"
bad axis_null "no axis"
for call in check:kb_check that:kb_check_that fill:kb_fill copy:kb_to_host copy_back:kb_from_host bytes:kb_bytes \
    queries:kb_queries count:kb_count axis:kb_has note:kb_note; do
    bad "${call%:*}_inside" "the timed block calls ${call#*:}, so its time would be included"
done
bad inside_sample "the timed block calls kb_check, so its time would be included"
check_same "KB_ALLOC in the block" "$(field alloc_inside flags) $(field alloc_inside time_ms)" '["ALLOC_INSIDE"] null'
check_same "left by break: that is what counts" "$(field after_break flags)" '["LEFT_EARLY"]'
for o in leaves_first_sample leaves_sample returns_from_sample; do
    check_same "$o" "$(field $o flags) $(field $o time_ms)" '["LEFT_EARLY"] null'
done
bad alloc_in_sample "KB_ALLOC in KB_SAMPLE would allocate before each sample"
check_same "KB_ALLOC after KB_SAMPLE" "$(field alloc_behind_sample status) $(field alloc_behind_sample verified)" '"ok" true'
check_same "a check of no elements: it is measured" "$(field check_of_nothing status)" '"ok"'
check_same "a check of no elements: not verified" "$(field check_of_nothing verified)" null
case $(field check_of_nothing flags) in *UNVERIFIED*) pass ;; *) fail "a check of no elements: $(field check_of_nothing flags)" ;; esac
check_same "a check of no elements: said once" "$(field check_of_nothing message)" '"kb_check of 0 elements proves nothing"'
check_same "beside another check it takes nothing away" "$(field nothing verified)" true

# --- long texts are complete, or end with dots where they are cut
note=$(field long_note message)
case $note in *'nnn..."') pass ;; *) fail "a long note: it ends as $(printf %s "$note" | tail -c 20)" ;; esac
check_same "a long note: as much as there is room for" "$(printf %s "$note" | wc -c | tr -d ' ')" 1024
check_same "names of 300 characters: all of them" "$(grep -c '"o\{299\}[op]"' "$tmp/flat.txt")" 3
check_same "names of 300 characters: parameters" "$(grep -c 'a\{300\}.*v\{300\}' "$tmp/flat.txt")" 6
check_same "names of 300 characters: a heading for each operation" "$(grep -c '^o\{59\}[op]$' "$tmp/table")" 2
long=$(printf '%300s' '' | tr ' ' o) impl=$(printf '%300s' '' | tr ' ' i) axis=$(printf '%300s' '' | tr ' ' a)
run "$tmp/misuse" --list --op "$long" --impl "$impl"
check_same "chosen by names of 300 characters" "$(wc -l < "$out" | tr -d ' ')" 1
run "$tmp/misuse" --list --op "${long}x"
check_rc "a name that nothing has" 2
check_err "a name that nothing has" "unknown operation 'o"
run "$tmp/misuse" --list --op "$long" -a "$axis=this,that"
check_same "an axis of 300 characters" "$(grep -c 'a=th[ia][st]$' "$out")" 4
run "$tmp/misuse" --list -a "$axis=1" -a "${axis}=2"
check_rc "an axis of 300 characters, twice" 2
check_err "an axis of 300 characters, twice" 'set the same axis'
run "$tmp/misuse" --list -a "$axis=1" -a "${axis}b=2"
check_err "an axis that differs in its last character alone" "unknown axis"

# --- control characters: only newlines reach a terminal or a text table
plain() { # WHAT FILE
    if LC_ALL=C tr -d '\n' < "$2" | LC_ALL=C grep -q '[[:cntrl:]]'; then fail "$1: control characters: $(LC_ALL=C grep -a -m 1 '[[:cntrl:]]' "$2" | head -c 100 | od -c | head -n 3)"; else pass; fi
    if LC_ALL=C grep -q "$(printf '\302[\200-\237]')" "$2"; then fail "$1: a control character beyond ASCII"; else pass; fi
}
plain "the table" "$tmp/table"
plain "Markdown" "$tmp/r.md"
plain "Go's format" "$tmp/r.go"
for o in --list --list-sizes "--list-ops -v" --dry-run; do
    run "$tmp/misuse" $o --filter odd
    check_rc "$o" 0
    plain "$o" "$out"
done
run "$tmp/misuse" --list --filter '^odd'
check_same "--list: a case a line" "$(grep -c '^odd|x' "$out") of $(wc -l < "$out" | tr -d ' ')" "1 of 2"
esc=$(printf '\033')
run "$tmp/misuse" --list --op "${esc}[31mred
line"
check_rc "an operation that a terminal would obey" 2
plain "what is said of it" "$err"
check_same "it is said on one line" "$(wc -l < "$err" | tr -d ' ')" 1
run "$tmp/misuse" --list -a "w=a${esc}[31m"
check_rc "a word that a terminal would obey" 2
check_err "a word that a terminal would obey" 'a value must not contain control characters'
bars() { sed 's/\\|//g' | tr -cd '|' | wc -c | tr -d ' '; }
check_same "Markdown: a row has its heading's columns" "$(grep '^| one' "$tmp/r.md" | bars)" \
    "$(grep -B 2 '^| one' "$tmp/r.md" | head -n 1 | bars)"
check_same "Go's format: a name is a word" "$(awk '/^Benchmarkodd/ { print $2 }' "$tmp/r.go" | head -n 1)" 5
if have python3; then
    cat > "$tmp/read.py" << 'EOF'
import csv, json, re, sys
def spelled(text): # a cell is one line
    return re.sub("[\x00-\x1f\x7f-\x9f]", lambda m: " " if "\t" <= m[0] <= "\r" else "\\x%02x" % ord(m[0]), text)
records = json.load(open(sys.argv[1] + ".json"))
rows = list(csv.DictReader(open(sys.argv[1] + ".csv", newline="")))
json.load(open(sys.argv[1] + ".gb"))
assert len(records) == len(rows)
for record, row in zip(records, rows):
    for key in ("name", "operation", "implementation"):
        assert spelled(record[key]) == row[key], (record[key], row[key])
    assert spelled(record["message"] or "") == row["message"], (record["message"], row["message"])
odd = [r for r in records if r["implementation"].startswith("one")][0]
assert odd["params"]["w"] == 'p|q\n\x1b[31m,"q"\t`*_<b>\x9b', odd["params"]
assert [r for r in records if r["operation"] == "odd_note"][0]["message"] == 'a\nb\tc\x1b[31m|"q",\x9b\ufffd'
EOF
    check "JSON holds what was said to the letter, and CSV what of it is text" python3 "$tmp/read.py" "$tmp/r"
else
    skip "no python3: JSON and CSV are not read back"
fi
finish
