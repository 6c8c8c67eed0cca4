#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --resume, which continues a run that was killed. RESUME_KILLS=N kills N processes at random times.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
program other tests/cli/sample_program.c -O2 -DPROG_BUILD=2
program faults tests/cli/faults_in_cases.c
reader
prog=$tmp/prog
options="--iters 3 --warmup 1 --no-progress"
lines=$tmp/l.jsonl
count() { wc -l < "$1" | tr -d ' '; }
# each WHAT FILE CASES: checks that every line is a record, and that each of CASES has exactly one record
each() {
    check "$1: the lines" "$tmp/flat" --lines "$2"
    check_same "$1: each case once" "$(sed 's/^{"name": "\([^"]*\)".*/\1/' "$2" | sort | uniq -c | awk '$1 == 1' | wc -l | tr -d ' ') of $(count "$2")" "$3 of $3"
}
all=$("$prog" --op softmax,layernorm --list | wc -l | tr -d ' ')
some="$options --op softmax,layernorm"

run "$prog" $some --resume
check_rc "without --jsonl" 2
check_err "without --jsonl" '--resume needs --jsonl'
run "$prog" $some --resume --jsonl "$lines"
check_rc "no file yet: everything runs" 0
each "no file yet" "$lines" $all
cp "$lines" "$tmp/whole"
cp "$lines" "$tmp/plain"
run "$prog" $some --resume --jsonl "$lines" --json "$tmp/r.json"
check_rc "all is done" 0
cp "$out" "$tmp/table"
check_err "all is done" "$all of $all cases have a record"
check "all is done: nothing is written" cmp "$lines" "$tmp/whole"
check_out "all is done: the table has them" "^$all cases: $all ok"
check_same "all is done: the array has the records that were there" "$("$tmp/flat" "$tmp/r.json" | cut -f 2- | cksum)" "$("$tmp/flat" --lines "$lines" | cut -f 2- | cksum)"
run "$prog" $some --resume --jsonl "$lines"
check_not_err "all is done: the same command" 'another command line'
run "$prog" $some --procs 2 --resume --jsonl "$lines"
check_err "all is done: other options" "$all of these records come from another command line .*--iters 3 "
check "all is done, other options: nothing is written" cmp "$lines" "$tmp/whole"
run "$prog" $some --list --resume --jsonl "$lines"
check_rc "--list, all is done" 0
check_same "--list, all is done" "$(wc -c < "$out" | tr -d ' ')" 0

run "$prog" --load "$lines"
check "all is done: the table is that of the records" cmp "$out" "$tmp/table"
grep -v '"operation": "softmax"' "$tmp/whole" > "$lines"
run "$prog" $some --resume --jsonl "$lines" --sort time --json "$tmp/r.json" --csv "$tmp/r.csv" --md "$tmp/r.md" --gbench "$tmp/r.gbench" --go "$tmp/r.go"
check_rc "half of it is done" 0
check_out "half of it is done" "^$all cases: $all ok"
cp "$out" "$tmp/table"
run "$prog" --load "$tmp/r.json" --sort time --csv "$tmp/w.csv" --md "$tmp/w.md" --gbench "$tmp/w.gbench" --go "$tmp/w.go"
check "half of it is done: the table" cmp "$out" "$tmp/table"
for format in csv md gbench go; do check "half of it is done: --$format" cmp "$tmp/r.$format" "$tmp/w.$format"; done
check_same "half of it is done: a row a case" "$(wc -l < "$tmp/r.csv" | tr -d ' ')" $((all + 1))
run "$prog" $some --resume --jsonl "$lines" --baseline "$tmp/r.json" --fail-on never
check_not_out "a baseline has no case that is not there" 'removed'

# a file that has an incomplete line, and in which a case of a group is missing
head -n 8 "$tmp/whole" > "$lines"
sed -n 9p "$tmp/whole" | head -c 700 >> "$lines"
run "$prog" $some --list --resume --jsonl "$lines"
left=$(count "$out")
if [ "$left" -ge $((all - 8)) ] && [ "$left" -lt "$all" ]; then pass; else fail "--list: $left left of $all, 8 done"; fi
run "$prog" $some --resume --jsonl "$lines" --json "$tmp/r.json"
check_rc "half a line" 0
each "half a line" "$lines" $all
check_same "half a line: the array has all" "$("$tmp/flat" "$tmp/r.json" | grep -c '	operation	')" $all
check_same "half a line: what was done is kept" "$(head -n 6 "$lines" | cksum)" "$(head -n 6 "$tmp/whole" | cksum)"
sed 2d "$tmp/whole" > "$lines"
run "$prog" $some --resume --jsonl "$lines"
each "a group that lacks a case" "$lines" $all
check_same "a group that lacks a case is measured as a whole" "$(grep -cvxF -f "$tmp/whole" "$lines")" 2

cp "$tmp/whole" "$lines"
run "$tmp/other" $some --resume --jsonl "$lines"
check_err "another build" "0 of $all cases"
check_same "another build: its records come to the others" "$(count "$lines")" $((2 * all))
cp "$tmp/whole" "$lines"
run "$prog" $some --seed 7 --resume --jsonl "$lines"
check_err "another seed" "0 of $all cases"

rm -f "$lines"
run "$tmp/faults" $options --op wrong,first --jsonl "$lines"
cp "$lines" "$tmp/whole"
run "$tmp/faults" $options --op wrong,first --resume --jsonl "$lines"
check_rc "a failed case" 1
each "a failed case" "$lines" 3
check_same "a failed case: what was fine is kept" "$(grep -cxF -f "$tmp/whole" "$lines")" 1

# a line that ends inside a record is incomplete; a complete record without a newline and all other lines are kept
head -n 9 "$tmp/plain" > "$lines"
{ echo '{"tool": "another", "name": 1}' && echo 'a remark' && echo '{' && echo && sed -n 10p "$tmp/plain" | tr -d '\n'; } >> "$lines"
cp "$lines" "$tmp/before"
run "$prog" $some --resume --jsonl "$lines"
check_rc "other lines" 0
check_err "other lines" "$(($(grep -c '^{"name": "' "$tmp/before"))) of $all cases|1[0-9]* of $all cases|[89] of $all cases"
check_same "other lines: they stay" "$(grep -c '^{"tool": "another", "name": 1}$\|^a remark$\|^{$' "$lines")" 3
check_same "other lines: the last record stays" "$(grep -cxF -f "$tmp/plain" "$lines")" 10
grep '^{"name": "' "$lines" > "$tmp/ours"
each "other lines: records" "$tmp/ours" $all

rm -f "$lines"
"$prog" $some,slow --jsonl "$lines" --json "$tmp/beside.json" > "$tmp/out" 2>&1 < /dev/null &
pid=$!
i=0
while [ $i -lt 100 ] && [ ! -s "$lines" ]; do sleep 0.05 2> /dev/null || sleep 1; i=$((i + 1)); done
sed -n 12p "$tmp/plain" | head -c 500 >> "$lines" # gives --resume something to replace
run "$prog" $some --resume --jsonl "$lines" --json "$tmp/r.json"
check_rc "beside a run that writes" 0
wait $pid
check_same "beside a run that writes: that run" $? 0
for file in beside r; do
    sed 's/,$//; /^[][]$/d' "$tmp/$file.json" > "$tmp/wanted"
    check_same "beside a run that writes: $file has records" "$(grep -c . "$tmp/wanted" | awk '{ print ($1 > 0) }')" 1
    check_same "beside a run that writes: none of $file is lost" "$(grep -cvxF -f "$lines" "$tmp/wanted")" 0
done

# a read error must not be taken for the end of the file
if have strace && strace -o "$tmp/trace" true 2> /dev/null; then
    cp "$tmp/plain" "$lines"
    opened=$(strace -e trace=openat,read "$prog" $some --resume --jsonl "$lines" 2>&1 | grep -a '^openat\|^read' | grep -an 'l.jsonl"' | head -n 1 | cut -d: -f 1)
    reads=$(strace -e trace=openat,read "$prog" $some --resume --jsonl "$lines" 2>&1 | grep -a '^openat\|^read' | head -n "$opened" | grep -c '^read')
    for at in 1 2 3; do
        run strace -o /dev/null -e trace=read -e inject=read:error=EIO:when=$((reads + at)) "$prog" $some --resume --jsonl "$lines"
        check_rc "read $at of the file fails" 2
        check_err "read $at of the file fails" 'cannot read --jsonl|input/output error'
        check "read $at of the file fails: the file stays" cmp "$lines" "$tmp/plain"
    done
else
    skip "no strace: a failing read of the file is not tested"
fi

# --- the worker, the supervisor or both are killed at random times
child_of() { cat /proc/[0-9]*/stat 2> /dev/null | awk -v parent="$1" '$4 == parent { print $1; exit }'; }
kills=${RESUME_KILLS:-$(everything && echo 100 || echo 4)} seed=42 k=0 struck=0
some="--no-progress --precision 100 --min-time 20ms --max-time 20ms --warmup 1 --op softmax,layernorm"
rm -f "$lines" "$tmp/r.json"*
while [ $k -lt $kills ]; do
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    "$prog" $some --resume --jsonl "$lines" --json "$tmp/r.json" > "$tmp/out" 2> "$tmp/err" < /dev/null &
    pid=$!
    sleep "0.$(printf '%03d' $((seed / 65536 % 600 + 50)))" 2> /dev/null || sleep 1
    worker=$(child_of $pid)
    case $((k % 3)) in
    0) kill -9 $pid 2> /dev/null ;;
    1) [ -n "$worker" ] && kill -9 "$worker" 2> /dev/null ;;
    2) kill -9 $pid $worker 2> /dev/null ;;
    esac && struck=$((struck + 1))
    wait $pid 2> /dev/null
    grep '}$' "$lines" > "$tmp/finished" 2> /dev/null # the last line may be torn
    if [ -s "$tmp/finished" ] && ! "$tmp/flat" --lines "$tmp/finished" > /dev/null 2>&1; then fail "kill $k: a complete line of the file is not a valid record"; fi
    # delete a complete file, so that the next run measures all cases again
    if [ "$(count "$tmp/finished")" -ge "$all" ]; then each "after kill $k" "$lines" $all && rm -f "$lines"; fi
    k=$((k + 1))
done
if [ $struck -gt 0 ]; then pass; else fail "no process was killed"; fi
run "$prog" $some --resume --jsonl "$lines" --json "$tmp/r.json"
check_rc "after $struck kills" 0
each "after $struck kills" "$lines" $all
check_same "after $struck kills: the array has all" "$("$tmp/flat" "$tmp/r.json" | grep -c '	operation	')" $all
check_same "after $struck kills: no temporary file" "$(ls "$tmp" | grep -c '[.]tmp$')" 0
finish
