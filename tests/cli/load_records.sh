#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --load: from a file of records, it must produce the same outputs as the run itself, without running a case.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
cat > "$tmp/empty.c" << 'end'
#include "kbench.h"
KBENCH_MAIN()
end
program empty "$tmp/empty.c"
quick="--iters 30 --warmup 1 --no-progress"

run "$tmp/prog" $quick --exclude slow --json "$tmp/a.json" --jsonl "$tmp/a.jsonl"
cp "$out" "$tmp/table"
for how in "" "-v" "--sort -time" "--columns time,samples,status"; do
    run "$tmp/prog" --load "$tmp/a.json" $how
    check_rc "--load $how" 0
    cp "$out" "$tmp/array"
    run "$tmp/empty" --load "$tmp/a.jsonl" $how
    check_rc "--load of lines, no benchmark, $how" 0
    check "array and lines give one table: $how" cmp "$tmp/array" "$out"
    [ -n "$how" ] || check "the table of the run" cmp "$tmp/table" "$out"
    check_same "nothing is said: $how" "$(cat "$err")" ""
done

run "$tmp/empty" --load "$tmp/a.jsonl" --json "$tmp/b.json" --jsonl "$tmp/b.jsonl"
check "written again, an array" cmp "$tmp/a.json" "$tmp/b.json"
check "written again, lines" cmp "$tmp/a.jsonl" "$tmp/b.jsonl"
run "$tmp/empty" --load - --json - < "$tmp/a.json"
check_rc "from stdin" 2 # the stdin of tests is empty
"$tmp/empty" --load - --json - < "$tmp/a.json" > "$tmp/c.json" 2> /dev/null
check "stdin to stdout" cmp "$tmp/a.json" "$tmp/c.json"
run "$tmp/empty" --load "$tmp/a.json" --json "$tmp/a.json"
check_rc "a file onto itself" 0
check "a file onto itself" cmp "$tmp/a.json" "$tmp/b.json"
run "$tmp/empty" --load "$tmp/a.jsonl" --jsonl "$tmp/a.jsonl"
check_rc "appending to what was loaded" 2
check_err "appending to what was loaded" 'would append.*Name another file'

run "$tmp/prog" $quick --op softmax --json "$tmp/s.json"
run "$tmp/empty" --load "$tmp/a.json" "$tmp/a.jsonl" "$tmp/s.json" --json "$tmp/m.json" -q
check_rc "merged" 0
all=$(grep -c . "$tmp/a.json") softmax=$(grep -c . "$tmp/s.json")
check_same "records of both runs" "$(grep -c . "$tmp/m.json")" "$((all + softmax - 2))"
run "$tmp/empty" --load="$tmp/a.json" --load "$tmp/s.json" --json "$tmp/n.json"
check "--load twice" cmp "$tmp/m.json" "$tmp/n.json"

for choice in "--op layernorm" "--op LayerNorm --impl fused" "--dtype bf16" "--filter impl=naive --exclude softmax"; do
    run "$tmp/empty" --load "$tmp/a.json" $choice --json "$tmp/chosen.json"
    check_rc "$choice" 0
    names=$(sed -n 's/^{"name": "\([^"]*\)".*/\1/p' "$tmp/chosen.json")
    check_same "$choice" "$names" "$("$tmp/prog" --list $choice)"
done
run "$tmp/empty" "impl=naive" --load "$tmp/a.json" --json - # the FILTER precedes the list
check_same "FILTER" "$(sed -n 's/^{"name": "\([^"]*\)".*/\1/p' "$out")" "$("$tmp/prog" --list impl=naive)"
run "$tmp/empty" --load "$tmp/a.json" --op nosuch
check_rc "no record chosen" 2
check_err "no record chosen" 'none of the [0-9]+ records is selected'
run "$tmp/empty" --compare "$tmp/a.json" "$tmp/a.json" "$tmp/s.json"
check_err "a third file is a FILTER" "records is selected by the filter '.*/s.json'. To see all, leave out FILTER"

for option in --fast "--iters 3" "--size small" "-a n=1" --list --no-isolate --shuffle "--device cpu"; do
    run "$tmp/prog" --load "$tmp/a.json" $option
    check_rc "--load with $option" 2
    check_err "--load with $option" 'runs nothing, so --[a-z-]+ has no effect'
done
run "$tmp/prog" --load
check_rc "--load without a file" 2
run "$tmp/prog" --load=
check_rc "--load with an empty name" 2
run "$tmp/prog" --load "$tmp/nosuch.json"
check_rc "no such file" 2
check_err "no such file" 'nosuch.json: No such file'
run "$tmp/prog" --load "$tmp"
check_rc "a folder" 2
check_err "a folder" 'directory'
echo '[]' > "$tmp/none.json"
run "$tmp/prog" --load "$tmp/none.json"
check_rc "no record" 2
run "$tmp/prog" --load "$tmp/none.json" "$tmp/s.json"
check_rc "a file without records beside one with" 0
run "$tmp/prog" --load kbench.h
check_rc "no records" 2
check_err "no records" 'kbench.h:1: records must begin'
head -c 3000 "$tmp/a.json" > "$tmp/cut.json"
run "$tmp/prog" --load "$tmp/cut.json"
check_rc "an array cut off" 2
check_err "an array cut off" 'cut.json:2: the file ends in the middle of a record.*--jsonl'
{ cat "$tmp/a.jsonl" && head -c 1000 "$tmp/a.jsonl"; } > "$tmp/cut.jsonl"
run "$tmp/prog" --load "$tmp/cut.jsonl"
check_rc "lines cut off" 0
check_err "lines cut off" 'ends in the middle of a record'
check "lines cut off: the rest is there" cmp "$tmp/table" "$out"

# files of the first schema, and records of several machines
old=tests/evidence/h200/compare.json
run "$tmp/empty" --load $old
check_rc "schema 1" 0
check_out "schema 1" 'kbench [0-9.]* H200 sm_90'
check_out "schema 1" '8 cases: 8 ok'
run "$tmp/empty" --load "$tmp/a.json" $old
check_rc "two machines" 0
check_err "two machines" 'times that cannot be compared with each other: backend \(cuda; cpu\)'
check_same "said once" "$(grep -c 'cannot be compared with each other' "$err")" 1
finish
