#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --procs: rejected options, output, intervals compared with independent formulas, completed batches of a
# killed run, an interrupted run, and buffers at different addresses in every process.
# takes long
. tests/lib.sh
. tests/cli/kit.lib
unset COLUMNS NO_COLOR

program procs tests/cli/several_processes.c
reader
procs=$tmp/procs
script="--device script --iters 6 --no-progress"
# of NAME KEY: prints a value of the record
of() { awk -F'\t' -v name="\"$1/impl=default\"" -v key="$2" '$2 == "name" { at[$3] = $1 } { v[$1, $2] = $3 } END { print v[at[name], key] }' "$tmp/flat.txt"; }

# --- values of --procs
for bad in 0 65 -1 2.5 many; do
    run "$procs" $script --op before --procs=$bad
    check_rc "--procs $bad" 2
    check_err "--procs $bad" "--procs takes a whole number from 1 to 64, not '$bad'"
done
run "$procs" $script --op before --procs 5 --no-isolate
check_rc "--procs and --no-isolate" 2
check_err "--procs and --no-isolate" '--procs and --no-isolate exclude each other; leave one out'
check_same "--procs and --no-isolate: lines on stderr" "$(wc -l < "$err" | tr -d ' ')" 1
run "$procs" $script --op before --procs 1 --no-isolate
check_rc "--procs 1 and --no-isolate" 0
run env CUDA_INJECTION64_PATH=/nowhere "$procs" $script --op before --procs 5
check_rc "--procs under a profiler" 2
check_err "--procs under a profiler" 'profiler'
run "$procs" --op sweep --procs 5 --list
check_same "--list" "$(wc -l < "$out" | tr -d ' ')" 40
run "$procs" --op before --max-time 1s --procs 4 --dry-run
check_out "--dry-run says what all processes take" 'at most about 6 s'
run "$procs" --op before --max-time 1s --dry-run
check_out "--dry-run of one process" 'at most about 1\.5 s'

# --- output
run "$procs" $script --op before,behind --procs 3 --json "$tmp/three.json"
check_rc "--procs 3" 0
check_same "what the intervals cover" "$(grep -e '^+-' "$out")" "+-: 95 % interval over several processes"
run "$procs" $script --op before,behind
check_same "what the intervals cover, of one process" "$(grep -e '^+-' "$out")" \
    "+-: 95 % interval of the median in one process, with bias; other processes may"
for o in "--procs 3 --quiet" --quiet "--columns time"; do
    run "$procs" $script --op before,behind $o
    check_rc "$o" 0
    check_not_out "$o: no word on intervals" '^\+-:'
done
run "$procs" $script --op before --procs 3 --json - --quiet
check "--json -" "$tmp/flat" "$out"
if have script && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
    TERM=xterm script -qec "$procs --min-time 0.3s --max-time 0.4s --op alone,both --procs 3" /dev/null < /dev/null > "$out" 2>&1
    for p in 1 2 3; do check_out "progress: process $p" "\\[1/3\\] process $p of 3 .* alone"; done
    check_out "progress: the time left" 'process [23] of 3  [0-9]+ s left  '
    TERM=xterm script -qec "$procs --fast --op alone" /dev/null < /dev/null > "$out" 2>&1
    check_not_out "progress of one process" '\] process'
else
    skip "no script(1) that simulates a terminal: progress is not tested"
fi

# --- intervals, compared with independent formulas
if have python3; then
    for op in "sweep 5" "sweep 2" "rivals 4"; do
        set -- $op
        case $1 in rivals) how="--rounds 16" ;; *) how="--iters 6" ;; esac
        run "$procs" --device script $how --no-progress --op $1 --procs $2 --json "$tmp/$1.json"
        check_rc "$op" 0
        check "$op: as worked out by several_processes.py" python3 tests/cli/several_processes.py "$tmp/$1.json" $2
    done
    # On scripted times, --procs 5 passes the test of tests/gpu/procs.sh, and one process fails it.
    run python3 tests/gpu/procs.py "$procs" --modes "" -- --device script --iters 6 --op sweep
    check_rc "the bar on planted times, missed by one process" 1
    check "--procs 5 holds nine of ten" awk '/^--procs 5: / { good = $3 >= 36 && $5 == 40 } END { exit !good }' "$out"
    check "one process does not" awk '/^one process: / { good = $3 <= 40 && $5 == 80 } END { exit !good }' "$out"
else
    skip "no python3: intervals are not compared with independent formulas"
fi

# --- a killed run keeps finished batches of 16 cases
"$procs" $script --op sweep,waits --procs 3 --jsonl "$tmp/whole.jsonl" > /dev/null 2>&1
check_same "a whole run" "$(wc -l < "$tmp/whole.jsonl" | tr -d ' ')" 41
WAIT_IN=1 "$procs" $script --op sweep,waits --procs 3 --timeout 50s --jsonl "$tmp/kill.jsonl" > /dev/null 2>&1 < /dev/null &
pid=$!
i=0
while [ $i -lt 100 ] && [ "$(cat "$tmp/kill.jsonl" 2> /dev/null | wc -l)" -lt 16 ]; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
sleep 0.5 2> /dev/null || sleep 1
kill -9 $pid
wait $pid 2> /dev/null
check "a killed run: whole lines" "$tmp/flat" --lines "$tmp/kill.jsonl"
check_same "a killed run has one of two batches" "$(wc -l < "$tmp/kill.jsonl" | tr -d ' ')" 16

# --- interrupted in the third of five processes: two are judged; in the second: only cases that both finished
build_heeds
# interrupt PROCESS
interrupt() {
    rm -f "$tmp/int.json"
    WAIT_IN=$(($1 - 1)) "$heeds" "$procs" $script --op before,waits,behind --procs 5 --timeout 50s \
        --json "$tmp/int.json" > "$tmp/int.out" 2> "$tmp/int.err" < /dev/null &
    pid=$!
    sleep 2
    kill -INT $pid
    wait $pid
    rc=$? out=$tmp/int.out err=$tmp/int.err
    check_rc "interrupted in process $1" 130
    [ "$1" -eq 1 ] || check "interrupted in process $1: the file is whole" "$tmp/flat" "$tmp/int.json"
    "$tmp/flat" "$tmp/int.json" > "$tmp/flat.txt" 2> /dev/null
}
interrupt 3
check_same "interrupted in process 3: processes" "$(of before processes) $(of waits processes) $(of behind processes)" "3 2 2"
check_err "interrupted in process 3: it says so" 'interrupted: .*not finished have no record'
check_same "interrupted in process 3: the legend" "$(grep -e '^+-' "$out")" "+-: 95 % interval over several processes"
interrupt 2
check_same "interrupted in process 2: processes" "$(of before processes),$(of waits processes),$(of behind processes)" "2,,"
check_out "interrupted in process 2: the summary" '^1 case: 1 ok$'
interrupt 1
check_same "interrupted in process 1: no records" "$(wc -l < "$tmp/flat.txt" | tr -d ' ')" 0

# --- buffer addresses depend on the number of the process and on the seed; no write goes outside the buffers
# lie FILE OPTION...: runs the program and writes to FILE the addresses that each process printed last
lie() {
    file=$1 && shift
    run "$procs" --fast --iters 3 --no-progress "$@"
    check_rc "$*" 0
    check_not_err "$*: what was written is there" wrong
    awk 'NF == 6 { if (!($2 in last)) order[++n] = $2; last[$2] = $0 } END { for (i = 1; i <= n; i++) print last[order[i]] }' "$err" > "$file"
}
for op in alone large both; do
    everything || [ $op != large ] || continue
    for seed in 1 2; do lie "$tmp/at.$seed" --op $op --procs 5 --seed $seed; done
    lie "$tmp/at.0" --op $op
    check_same "$op: processes" "$(wc -l < "$tmp/at.1" | tr -d ' ')" 5
    for field in 3 4 5; do
        what="$op, buffer $((field - 2))"
        for i in 0 1 2; do awk -v f=$field '{ print $f }' "$tmp/at.$i" > "$tmp/field.$i"; done
        if [ "$(sort -u "$tmp/field.1" | wc -l)" -ge 4 ]; then pass; else fail "$what: offsets $(tr '\n' ' ' < "$tmp/field.1")"; fi
        if [ "$(awk '{ print $1 % 4096 }' "$tmp/field.1" | sort -u | wc -l)" -ge 3 ]; then pass; else fail "$what: offsets in a page $(tr '\n' ' ' < "$tmp/field.1")"; fi
        check_same "$what: aligned to 256 bytes" "$(cat "$tmp/field.1" "$tmp/field.2" | awk '$1 % 256')" ""
        if cmp -s "$tmp/field.1" "$tmp/field.2"; then fail "$what: another seed gives the same values"; else pass; fi
        case $op$TEST_CFLAGS in
        alone*sanitize* | both*sanitize* | large*) ;; # separate allocations, which the system places
        *) check_same "$what: the first process is as without --procs" "$(head -n 1 "$tmp/field.1")" "$(cat "$tmp/field.0")" ;;
        esac
    done
done
finish
