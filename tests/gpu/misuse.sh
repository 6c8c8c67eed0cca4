#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: each mistake in misuse.cu gets the expected flag and no time, and does not affect other cases. MISUSE:
# path of a program that is already built; if set, the test measures once and ends. MISUSE_TIMEOUT: value of the
# program's option --timeout.
. tests/lib.sh

if [ -n "$MISUSE" ]; then cp "$MISUSE" "$tmp/misuse"; else build "misuse.cu" $NVCC -O3 $ARCHFLAGS -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. tests/gpu/misuse.cu -o "$tmp/misuse"; fi
build "flat.c" $CC -O1 -Itests tests/cli/flat_records.c -o "$tmp/flat"
# field OPERATION IMPLEMENTATION KEY: its value as JSON writes it
field() {
    awk -F'\t' -v op="\"$1\"" -v impl="\"$2\"" -v key="$3" '
        $1 != last { if (o == op && i == impl) exit; o = i = ""; v = ""; last = $1 }
        $2 == "operation" { o = $3 } $2 == "implementation" { i = $3 } $2 == key { v = $3 }
        END { if (o == op && i == impl) print v }' "$tmp/flat.txt"
}
run "$tmp/misuse" --fast --timeout "${MISUSE_TIMEOUT:-10s}" --no-progress --json "$tmp/misuse.json"
cat "$out" # the table, for the log
check_rc "all mistakes in one run" 1
build "the records are right" "$tmp/flat" "$tmp/misuse.json"
"$tmp/flat" "$tmp/misuse.json" > "$tmp/flat.txt"
check_same "a record for every case" "$(grep -c "	operation	" "$tmp/flat.txt")" "$("$tmp/misuse" --list | wc -l)"

for op in $(sed -n 's/^FAULT(\([a-z_]*\)).*/\1/p' tests/gpu/misuse.cu); do
    check_same "$op: the status of the correct case" "$(field $op good status)" '"ok"'
    case $(field $op good time_ms) in [0-9]*) pass ;; *) fail "$op: the correct case has no time" ;; esac
    check_same "$op: the correct case is verified" "$(field $op good verified)" true
done
# fault OPERATION FLAGS: checks that the record of OPERATION has one of FLAGS, and no time
fault() {
    op=$1 && shift
    check_same "$op: status" "$(field $op bad status)" '"failed"'
    found=
    for w; do case $(field $op bad flags) in *"\"$w\""*) found=1 ;; esac done
    if [ -n "$found" ]; then pass; else fail "$op: flags $(field $op bad flags), expected $*; message $(field $op bad message)"; fi
    for key in time_ms time_ms_mean time_ms_min time_ms_max time_ms_raw inference_speed throughput_gbps gpu_efficiency speedup; do
        check_same "$op: $key" "$(field $op bad $key)" null
    done
    awk -v op="$op" '/^[^ ]/ { at = $1 } at == op && ($1 == "bad" || ($1 == op && $2 == "bad"))' "$out" > "$tmp/row"
    if [ ! -s "$tmp/row" ]; then fail "$op: no row in the table"; elif grep -qE '[0-9.]+ +(<?[0-9.]+%|-)( |$)' "$tmp/row"; then fail "$op: a number in its row: $(cat "$tmp/row")"; else pass; fi
}
fault empty_block NO_WORK
fault host_work NO_WORK
fault default_stream SIDE_STREAM
fault copy_sync TRANSFER
fault copy_async TRANSFER
fault copy_async_pinned TRANSFER
fault device_sync SYNC_INSIDE
fault stream_sync SYNC_INSIDE
fault malloc_inside ALLOC_INSIDE
fault malloc_async ALLOC_INSIDE
fault another_stream SIDE_STREAM
fault bad_configuration CUDA_ERROR
fault too_much_shared CUDA_ERROR
fault illegal_address CUDA_ERROR
fault illegal_address_late CUDA_ERROR
fault launch_failure CUDA_ERROR
fault misaligned CUDA_ERROR
fault device_assert CUDA_ERROR
fault host_crash CRASHED
fault out_of_memory OOM
fault write_after OVERRUN
fault write_before OVERRUN
fault hangs TIMEOUT
fault hangs_late TIMEOUT
fault wrong VERIFY_FAIL
fault unwritten VERIFY_FAIL
fault faster_than_can_be ABOVE_ROOF
fault does_less WORK_CHANGED
fault does_half WORK_CHANGED
fault submits_less WORK_CHANGED
fault breaks_out LEFT_EARLY
fault exits CRASHED
case $(field illegal_address bad message) in *llegal*) pass ;; *) fail "illegal_address: message $(field illegal_address bad message)" ;; esac

for op in copy_expected sync_expected alloc_expected host_timed reset_each_time leaves_memory last; do
    check_same "$op: status" "$(field $op default status)" '"ok"'
    case $(field $op default time_ms) in [0-9]*) pass ;; *) fail "$op: no number" ;; esac
done
check_same "reset_each_time: verified" "$(field reset_each_time default verified)" true
check_same "copy_expected: cache" "$(field copy_expected default cache)" '"cold"'
for op in sync_expected alloc_expected host_timed; do check_same "$op: timer" "$(field $op default timer)" '"wall"'; done
case $(field leaves_memory default flags) in *LEAK*) pass ;; *) fail "leaves_memory: flags $(field leaves_memory default flags)" ;; esac
case $(field leaves_memory default leaked_bytes) in 6[0-9]?????? | 7[0-9]??????) pass ;; *) fail "leaves_memory: leaked_bytes $(field leaves_memory default leaked_bytes)" ;; esac
[ -z "$MISUSE" ] || finish

# a kernel that returns a stored result is detected only if its inputs change; correct kernels keep their times
honest=memory,copy_expected,sync_expected,alloc_expected,host_timed,reset_each_time,leaves_memory,last
run "$tmp/misuse" --fast --timeout 10s --no-progress --fresh --op $honest --json "$tmp/fresh.json"
check_rc "--fresh" 1
"$tmp/flat" "$tmp/fresh.json" > "$tmp/flat.txt"
fault memory STALE VERIFY_FAIL
case $(field memory bad message) in *"with fresh inputs (seed 43)"*) pass ;; *) fail "--fresh: the message does not name the fresh inputs: $(field memory bad message)" ;; esac
check_same "--fresh: the correct case" "$(field memory good status) $(field memory good verified)" '"ok" true'
check_same "--fresh: reset_each_time" "$(field reset_each_time default status) $(field reset_each_time default verified)" '"ok" true'
case $(field leaves_memory default leaked_bytes) in 6[0-9]?????? | 7[0-9]??????) pass ;; *) fail "--fresh: unexpected leaked_bytes: $(field leaves_memory default leaked_bytes)" ;; esac
# --launches N: each sample has exactly N launches
for n in 1 20; do
    for how in "" --hot; do
        run "$tmp/misuse" --no-progress --op last,reset_each_time --launches $n $how --iters 30 --json "$tmp/launches.json"
        check_rc "--launches $n $how" 0
        "$tmp/flat" "$tmp/launches.json" > "$tmp/flat.txt"
        for op in last reset_each_time; do
            check_same "--launches $n $how: $op" "$(field $op default launches_per_sample) $(field $op default samples)" "$n 30"
        done
    done
done

# Kills the worker process, the supervisor process or both after the given number of seconds, then resumes the run.
# In the end, the file must contain one record of each case.
lines=$tmp/killed.jsonl
for kill in all:1.4 supervisor:1.8 all:0.5 supervisor:2.3 worker:1; do
    setsid "$tmp/misuse" --fast --no-progress --filter /impl=good --jsonl "$lines" --resume > "$out" 2> "$err" < /dev/null &
    supervisor=$!
    sleep "${kill#*:}"
    case $kill in
    worker*) pkill -KILL -P $supervisor ;;
    supervisor*) kill -KILL $supervisor 2> /dev/null ;;
    *) pkill -KILL -P $supervisor && kill -KILL $supervisor 2> /dev/null ;;
    esac
    wait $supervisor 2> /dev/null
done
run "$tmp/misuse" --fast --no-progress --filter /impl=good --jsonl "$lines" --resume
check_rc "killed five times: the last run" 0
sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' "$lines" | sort > "$tmp/once"
"$tmp/misuse" --list --filter /impl=good | sort > "$tmp/every"
check "killed five times: each case once" cmp "$tmp/once" "$tmp/every"
check_same "killed five times: every one has a time" "$(grep -c '"time_ms": *[0-9]' "$lines")" "$(wc -l < "$tmp/every" | tr -d ' ')"

run "$tmp/misuse" --fast --no-progress --no-isolate --op copy_async,last
check_rc "one process" 1
check_out "one process: the case after it" '^ *last .*[0-9.]+ +(<?[0-9.]+%|-)( |$)'
finish
