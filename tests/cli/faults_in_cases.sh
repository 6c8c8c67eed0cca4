#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# A failing case gets its flag and no time, and the correct case after it gets a time.
. tests/lib.sh
. tests/cli/kit.lib

program faults tests/cli/faults_in_cases.c
reader
options="--iters 30 --warmup 1 --timeout 1s --no-progress"
# field OPERATION IMPLEMENTATION KEY: prints a value of the record, as JSON
field() {
    awk -F'\t' -v op="\"$1\"" -v impl="\"$2\"" -v key="$3" '
        $1 != last { if (o == op && i == impl) exit; o = i = ""; v = ""; last = $1 }
        $2 == "operation" { o = $3 } $2 == "implementation" { i = $3 } $2 == key { v = $3 }
        END { if (o == op && i == impl) print v }' "$tmp/flat.txt"
}
# numbers OPERATION IMPLEMENTATION KEY...: prints the keys that are not null
numbers() {
    awk -F'\t' -v op="\"$1\"" -v impl="\"$2\"" -v keys="$*" '
        function show(k) { if (o == op && i == impl) for (k = 3; k <= n; k++) if (v[key[k]] != "null") printf "%s ", key[k] }
        BEGIN { n = split(keys, key, " ") }
        $1 != last { show(); o = i = ""; split("", v); last = $1 }
        $2 == "operation" { o = $3 } $2 == "implementation" { i = $3 } { v[$2] = $3 }
        END { show() }' "$tmp/flat.txt"
}
# row OPERATION IMPLEMENTATION: prints its line of the table
row() { awk -v op="$1" -v impl="$2" '/^[^ ]/ { at = $1 } at == op && ($1 == impl || ($1 == op && $2 == impl))' "$out"; }

run "$tmp/faults" $options --json "$tmp/all.json" --jsonl "$tmp/all.jsonl"
cp "$out" "$tmp/table" && cp "$err" "$tmp/messages"
check_rc "all faults in one run" 1
build "the records are right" "$tmp/flat" "$tmp/all.json"
check "the lines are right" "$tmp/flat" --lines "$tmp/all.jsonl"
"$tmp/flat" "$tmp/all.json" > "$tmp/flat.txt"
cases=$("$tmp/faults" --list | wc -l)
check_same "a record for every case" "$(grep -c "	operation	" "$tmp/flat.txt")" "$cases"
check_same "a line for every case" "$(wc -l < "$tmp/all.jsonl")" "$cases"
out=$tmp/table err=$tmp/messages

for op in $(sed -n 's/^FAULT(\([a-z_]*\)).*/\1/p' tests/cli/faults_in_cases.c) first last; do
    check_same "$op: the good case after it" "$(field $op good status)" '"ok"'
    case $(field $op good time_ms) in [0-9]*) pass ;; *) fail "$op: the correct case has no time" ;; esac
    check_same "$op: the good case is verified" "$(field $op good verified)" true
done

# no file descriptors are left for the pipes of a worker
run sh -c 'ulimit -n 4 && exec "$@"' sh "$tmp/faults" $options --op first
check_rc "no process to measure in" 1
check_err "no process to measure in" 'error: cannot start a worker: .*; --no-isolate needs none'
check_same "no process to measure in: lines on stderr" "$(wc -l < "$err" | tr -d ' ')" 1
out=$tmp/table err=$tmp/messages

# fault OPERATION FLAG MESSAGE: checks that the failing case has this flag, a message that matches the ERE, and no
# time
fault() {
    check_same "$1: status" "$(field $1 bad status)" '"failed"'
    case $(field $1 bad flags) in *"\"$2\""*) pass ;; *) fail "$1: no $2 in its flags: $(field $1 bad flags)" ;; esac
    check_same "$1: numbers" "$(numbers $1 bad time_ms time_ms_mean time_ms_std time_ms_min time_ms_max time_ms_mad time_ms_p5 time_ms_p25 time_ms_p75 time_ms_p95 \
        time_ms_ci_low time_ms_ci_high cv precision time_ms_raw inference_speed throughput_gbps gflops queries_per_second \
        gpu_efficiency speedup speedup_low speedup_high rating)" ""
    case $(field $1 bad samples_ms) in null | "[]") pass ;; *) fail "$1: samples_ms is $(field $1 bad samples_ms)" ;; esac
    if field $1 bad message | grep -qiE -e "$3"; then pass; else fail "$1: message $(field $1 bad message) does not say '$3'"; fi
    if row $1 bad > "$tmp/row" && [ -s "$tmp/row" ]; then
        if grep -q "$2" "$tmp/row"; then pass; else fail "$1: its row has no $2: $(cat "$tmp/row")"; fi
        if grep -qE '[0-9] *(ns|us|ms|GB/s)' "$tmp/row"; then fail "$1: a number in its row: $(cat "$tmp/row")"; else pass; fi
    else
        fail "$1: no row in the table"
    fi
}
fault segfault CRASHED 'SIGSEGV|signal 11|segmentation'
fault segfault_late CRASHED 'SIGSEGV|signal 11|segmentation'
fault segfault_before CRASHED 'SIGSEGV|signal 11|segmentation'
fault aborts CRASHED 'SIGABRT|signal 6|abort'
fault exit_zero CRASHED 'exit'
fault exit_three CRASHED 'exit.* 3'
fault killed CRASHED 'SIGKILL|signal 9|killed'
fault hangs TIMEOUT '1(\.0*)? ?s|timeout'
fault hangs_before TIMEOUT '1(\.0*)? ?s|timeout'
fault sleeps_deaf TIMEOUT '1(\.0*)? ?s|timeout'
fault too_much_memory OOM 'byte|memory|[GTPE]iB'
fault negative_count BAD_CASE '-1'
fault write_after OVERRUN 'after|behind|beyond|past'
fault write_far_after OVERRUN 'after|behind|beyond|past'
fault write_before OVERRUN 'before|in front'
fault write_after_host OVERRUN 'after|behind|beyond|past'
fault write_after_late OVERRUN 'after|behind|beyond|past'
fault wrong_then_crashes VERIFY_FAIL 'the answer is 42; signal 11'
fault wrong_then_hangs VERIFY_FAIL 'the answer is 42; longer than 1'
fault wrong_late_then_crashes VERIFY_FAIL 'the answer is 42; signal 11'
for op in wrong_then_crashes wrong_then_hangs wrong_late_then_crashes; do
    check_same "$op: no other word" "$(field $op bad flags | tr -d '[]" ')" VERIFY_FAIL
done
check_same "skips_then_crashes: status" "$(field skips_then_crashes bad status)" '"skipped"'
check_same "skips_then_crashes: message" "$(field skips_then_crashes bad message)" '"not on a weekday"'
check_same "skips_then_fails: status" "$(field skips_then_fails bad status)" '"skipped"'
check_same "skips_then_fails: message" "$(field skips_then_fails bad message)" '"not on a weekday"'
fault no_loop NO_LOOP ''
fault breaks_out LEFT_EARLY ''
fault returns_out LEFT_EARLY ''
fault breaks_out_late LEFT_EARLY ''
fault two_blocks BAD_CASE 'two|second|one KB_TIME|more than'
fault sample_without_time NO_LOOP ''
fault wrong VERIFY_FAIL '2'
fault wrong_nan VERIFY_FAIL 'nan'
fault wrong_late VERIFY_FAIL ''
fault wrong_that VERIFY_FAIL 'the answer is 42'
fault wrong_one_of_two VERIFY_FAIL ''
fault unknown_axis BAD_CASE 'no_such_axis'
fault axis_of_another_type BAD_CASE 'mode'
fault fails_itself BAD_CASE 'no luck with this'
fault closes_everything CRASHED ''
case $(field overflowing_count bad flags) in *OOM* | *BAD_CASE*) pass ;; *) fail "overflowing_count: $(field overflowing_count bad flags)" ;; esac
check_same "wrong: verified" "$(field wrong bad verified)" false
case $(field wrong bad max_error) in 0.2* | 1 | 1.0) pass ;; *) fail "wrong: max_error is $(field wrong bad max_error)" ;; esac
case $(field checks_once bad flags) in *UNVERIFIED*) pass ;; *) fail "checks_once: flags $(field checks_once bad flags)" ;; esac
case $(field checks_once bad verified) in true) fail "checks_once: verified is true although the last run was not checked" ;; *) pass ;; esac
check_same "skips: status" "$(field skips bad status)" '"skipped"'
check_same "skips: no time" "$(field skips bad time_ms)" null
check_same "skips: message" "$(field skips bad message)" '"not on a weekday"'
check_same "says_much: what a body prints is no record" "$(field says_much bad status)" '"ok"'

run "$tmp/faults" $options --op skips
check_rc "a skipped case alone" 0
run "$tmp/faults" $options --op wrong --no-verify
check_rc "--no-verify lets a wrong result pass" 0
check_out "--no-verify says so" UNVERIFIED
for op in wrong no_loop breaks_out two_blocks unknown_axis; do
    run "$tmp/faults" $options --op $op --no-isolate
    check_rc "$op in one process" 1
done
run "$tmp/faults" $options --op exit_three --no-isolate
if [ $rc -ne 0 ]; then pass; else fail "with --no-isolate, the exit code is 0 although a case called exit(3)"; fi

run env FAULTS_START=2 "$tmp/faults" $options --op aborts,last --json "$tmp/slow.json"
check_rc "a start that takes long" 1
"$tmp/flat" "$tmp/slow.json" > "$tmp/flat.txt"
check_same "a slow start: the next cases" "$(field aborts good status) $(field last good status)" '"ok" "ok"'
case $(field aborts bad flags) in *'"CRASHED"'*) pass ;; *) fail "a case in a process that starts slowly has the flags $(field aborts bad flags), not CRASHED" ;; esac

# --- killed from outside: the worker, then the supervisor
child_of() { cat /proc/[0-9]*/stat 2> /dev/null | awk -v parent="$1" '$4 == parent { print $1; exit }'; }
"$tmp/faults" --no-progress --timeout 4s --iters 30 --op first,hangs,last --json "$tmp/kill.json" --jsonl "$tmp/kill.jsonl" > "$tmp/kill.out" 2>&1 < /dev/null &
pid=$!
sleep 1
worker=$(child_of $pid)
if [ -n "$worker" ]; then
    kill -9 "$worker"
    wait $pid
    check_same "the worker killed from outside: exit code" $? 1
    "$tmp/flat" "$tmp/kill.json" > "$tmp/flat.txt"
    case $(field hangs bad message) in '"signal 9 (killed'*) pass ;; *) fail "after the worker was killed from outside, the message of the case is $(field hangs bad message)" ;; esac
    check_same "the worker killed from outside: the case after it" "$(field last good status)" '"ok"'
else
    kill -9 $pid
    wait $pid 2> /dev/null
    skip "no /proc, so the worker is not found: killing it from outside is not tested"
fi
cp "$tmp/all.json" "$tmp/kill.json"
rm -f "$tmp/kill.jsonl"
"$tmp/faults" --no-progress --timeout 20s --iters 30 --op first,segfault,hangs,last --json "$tmp/kill.json" --jsonl "$tmp/kill.jsonl" > "$tmp/kill.out" 2>&1 < /dev/null &
pid=$!
n=0
while ! grep -q segfault "$tmp/kill.jsonl" 2> /dev/null && [ $n -lt 150 ]; do sleep 0.1 2> /dev/null || sleep 1; n=$((n + 1)); done
sleep 0.5 2> /dev/null || sleep 1 # the next case hangs
worker=$(child_of $pid)
kill -9 $pid
wait $pid 2> /dev/null
check "the supervisor killed: finished lines are whole" "$tmp/flat" --lines "$tmp/kill.jsonl"
"$tmp/flat" --lines "$tmp/kill.jsonl" > "$tmp/flat.txt"
check_same "the supervisor killed: what was finished is there" "$(field segfault bad status)" '"failed"'
check "the supervisor killed: the old array is intact" cmp "$tmp/all.json" "$tmp/kill.json"
sleep 1
if [ -n "$worker" ]; then
    case $(awk '{ print $3 }' "/proc/$worker/stat" 2> /dev/null) in
    "" | Z | X) pass ;;
    *) kill -9 "$worker" && fail "the supervisor was killed, but its worker is still running" ;;
    esac
fi
lines=$(wc -l < "$tmp/kill.jsonl")
run "$tmp/faults" $options --op first --jsonl "$tmp/kill.jsonl"
check_same "--jsonl appends" "$(wc -l < "$tmp/kill.jsonl")" $((lines + 1))
finish
