#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests untrusted text in every key of a record and from every source of text in a run. No output may contain text
# that a terminal, a browser, a spreadsheet, Markdown or a CI log would interpret as a command or markup.
. tests/lib.sh
. tests/cli/kit.lib
unset NO_COLOR CLICOLOR_FORCE FORCE_COLOR CUDA_HOME KBENCH_PROFILED
LC_ALL=C.UTF-8 GITHUB_ACTIONS=true
export LC_ALL GITHUB_ACTIONS

build "planted.c" $CC -O0 -Itests -I. tests/cli/untrusted_text.c -o "$tmp/planted" $libs
folder=$(cd "$tmp" && pwd) && tmp=$folder
planted=$folder/planted
# harmless WHAT KIND FILE
harmless() { if said=$("$planted" check "$2" "$3"); then pass; else fail "$1, text $n: $said"; fi; }
# shows WHAT KIND OPTIONS...: stdout is of this kind, stderr a log
shows() {
    what=$1 kind=$2 && shift 2
    run "$planted" "$@"
    if [ $rc -gt 128 ]; then fail "$what, text $n: $(said)"; fi
    if grep -q planted "$out" "$err"; then pass; else fail "$what, text $n: the text is missing"; fi
    harmless "$what" "$kind" "$out"
    harmless "$what: messages" term "$err"
}
PATH=$folder/bin:$PATH
mkdir "$folder/bin" "$folder/repository" "$folder/repository/.git"
count=$("$planted" plants)
n=0 step=1
everything || step=3
while [ $n -lt "$count" ]; do
    cd "$folder" || exit 2
    rm -rf now.json before.json report.d
    "$planted" write $n now.json && "$planted" write $n before.json before || fail "text $n: no records"
    harmless "json" json now.json
    # --- records
    for COLUMNS in 40 80 1000; do
        export COLUMNS
        lines=wrapped && [ $COLUMNS -lt 1000 ] || lines=term
        shows "table of $COLUMNS" $lines --load now.json
        shows "table of $COLUMNS, verbose" $lines --load now.json -v
    done
    shows "colours" colour --load now.json -v --color always
    columns=name,direction,kernel,mode,rating,message,git_commit,counter:c
    shows "columns" term --load now.json --columns $columns --sort kernel
    shows "compare" term --compare before.json now.json --fail-on never -v
    shows "compare in colours" colour --compare before.json now.json --fail-on never --color always
    shows "environments" term --env --load before.json now.json
    cp before.json history.jsonl
    shows "history and goal" term --load now.json --history history.jsonl --goal 'time_ms<=0.1' --goal 'time_ms<=1e9'
    for kind in csv md gbench go json jsonl; do shows "--$kind" $kind --load now.json --$kind -; done
    shows "--html" html --load now.json --baseline before.json --fail-on never --html -
    for plot in speed roofline time gbps gflops efficiency heat fits samples ratios changes; do
        shows "--plot $plot" svg --load now.json --baseline before.json --fail-on never --svg - --plot $plot
    done
    GITHUB_STEP_SUMMARY=$folder/summary.md shows "--github" term --load now.json --github --report report.d
    for file in summary.md report.d/report.md report.d/comparison.md; do harmless "$file" md $file; done
    harmless "comparison.csv" csv report.d/comparison.csv
    # --- a run
    PLANT=$n && export PLANT
    for list in --list "--list-ops -v" --list-sizes --dry-run; do shows "$list" term $list; done
    quick="--iters 3 --warmup 0 --no-isolate --no-progress"
    shows "a run" term $quick -v --json run.json
    harmless "records of a run" json run.json
    for kind in csv md jsonl go; do shows "a run's --$kind" $kind $quick --op fails,checks --$kind -; done
    unset PLANT
    # --- results of profiling, with any text from the disassembler
    printf '#!/bin/sh\nprintf "\\tFunction : %%s\\n" "$SAYS"\nprintf "%%s\\n" "$SAYS"\n' > bin/cuobjdump && chmod +x bin/cuobjdump
    SAYS=$(printf 'planted\n::error::planted\033[5m\342\200\256') COLUMNS=80 shows "kernels" term shown $n
    n=$((n + step))
done
n=none

# --- the CSV that a page writes in the browser
if have node; then
    "$planted" --load now.json --html - 2> messages | awk '/^var cell=/ { on = 1 } on { print } on && /};$/ { exit }' > cell.js
    printf '%s\n' 'console.log([-1.5, null, "=1+1", "-x", "\t@x", "a,\n", "\u009b\u202eq\"", "\uff1d1"].map(cell).join("|"))' >> cell.js
    check_same "a page's CSV" "$(node cell.js)" "-1.5||'=1+1|'-x|' @x|\"a, \"|\"  q\"\"\"|'$(printf '\357\274\235')1"
else
    skip "no node: the CSV that a page makes is not tested"
fi

# --- files, folders and a program whose names contain untrusted text
cd "$folder" || exit 2
name=$(printf '::error::\033[5mplanted\342\200\256')
"$planted" write 2 "$name.json" && cp planted "$name"
shows "a file's name" term --compare "$name.json" "$name.json" --fail-on never
shows "a file that is not there" term --load "$name"
shows "no such option" term "--$name"
run ./"$name" --load nowhere.json
harmless "a program's name" term "$err"
run ./"$name" --help
harmless "a program's name in its help" term "$out"

# --- .git/HEAD holds no commit, or names a file outside the repository
cd repository || exit 2
good=0123456789abcdef0123456789abcdef01234567
echo "secret: $good" > ../secret && echo $good > ../other
commit() { PLANT=2 "$planted" --op fails --no-isolate --no-progress --json - 2> /dev/null | sed -n 's/.*"git_commit": \([^,]*\),.*/\1/p'; }
# head WANT TEXT
head_is() {
    printf '%s\n' "$2" > .git/HEAD
    check_same "HEAD of '$2'" "$(commit)" "$1"
}
mkdir -p .git/refs/heads && echo $good > .git/refs/heads/main && echo "<script>alert(1)</script>$good" > .git/refs/heads/bad
head_is "\"$good\"" $good
head_is "\"$good\"" "ref: refs/heads/main"
long=$good${good%????????????????} # of SHA-256
head_is "\"$long\"" $long
head_is null "<script>alert(1)</script>"
head_is null "${good}0"
head_is null "${good%?}"
head_is null "${good%?}G"
head_is null "ref: refs/heads/bad"
head_is null "ref: ../../secret"
head_is null "ref: ../../other"
head_is null "ref: refs/../../../other"
head_is null "ref: /$folder/other"
head_is null "ref: refs/heads/none"
finish
