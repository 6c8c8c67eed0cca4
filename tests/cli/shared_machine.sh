#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests a machine that other programs use: --cpu, the processor keys of the record, disturbed samples, and Ctrl-Z.
# measures time
. tests/lib.sh
. tests/cli/kit.lib

program busy tests/cli/shared_machine.c -O2
reader
# of KEY: prints a value of the last record, as JSON
of() { "$tmp/flat" "$tmp/busy.json" | awk -F'\t' -v key="$1" '$2 == key { v = $3 } END { print v }'; }
# at_least WHAT VALUE LEAST
at_least() { check "$1: $2" awk -v x="$2" -v least="$3" 'BEGIN { exit !(x + 0 >= least) }'; }
at_most() { check "$1: $2" awk -v x="$2" -v most="$3" 'BEGIN { exit !(x + 0 <= most) }'; }
case_of() { # NAME OPTIONS
    name=$1 && shift
    run "$tmp/busy" --no-progress --op $name --json "$tmp/busy.json" "$@"
}

if [ ! -r /proc/self/status ]; then
    skip "no /proc: the available processors are unknown"
    finish
fi
allowed=$(sed -n 's/^Cpus_allowed_list:[ \t]*//p' /proc/self/status)
last=${allowed##*[,-]} first=${allowed%%[,-]*}

# --- --cpu
case_of where --iters 3 --warmup 1
check_same "without --cpu: all that are allowed" "$(of cpus)" "\"$allowed\""
for how in "" --no-isolate; do
    case_of where --iters 3 --warmup 1 --cpu $last $how
    check_rc "--cpu $last $how" 0
    check_same "--cpu $last $how: the body runs there" "$(of message)" "\"cpu=$last\""
    check_same "--cpu $last $how: the record says so" "$(of cpus)" "\"$last\""
    case_of where --iters 3 --warmup 1 $how
    check_same "$how: a body without --cpu has all" "$(of cpus)" "\"$allowed\""
done
case_of where --iters 3 --warmup 1 "--cpu=$first,$last"
check_rc "--cpu with a list" 0
run "$tmp/busy" --op where --cpu 8191
check_rc "--cpu of a processor that is not there" 2
check_err "--cpu of a processor that is not there" "--cpu 8191: this process may run on $allowed only"
if have taskset && [ "$first" != "$last" ]; then
    run taskset -c "$last" "$tmp/busy" --op where --cpu "$first"
    check_rc "--cpu outside of taskset's" 2
    check_err "--cpu outside of taskset's" "--cpu $first: this process may run on $last only"
else
    skip "--cpu with a processor that taskset excludes: no taskset, or only one processor"
fi
for bad in x 1, ,1 3-1 1-, -1 8192 99999999999999999999 1.5; do
    run "$tmp/busy" --op where "--cpu=$bad"
    check_rc "--cpu=$bad" 2
    check_err "--cpu=$bad" "--cpu takes numbers of processors"
done
run "$tmp/busy" --env --cpu "$last"
check_out "--env says which" "^  cpus +$last\$"
run "$tmp/busy" --selftest --cpu 8191
check_rc "--selftest --cpu" 2

# --- other programs on the same processor
case_of crowded --cpu "$last" --iters 4000
check_rc "crowded" 0
at_least "crowded: waited for the processor, %" "$(of cpu_waited)" 20
at_least "crowded: made room for another" "$(of preemptions)" 10
at_least "crowded: samples taken again" "$(of samples_retaken)" 3
at_most "crowded: p99 over the median" "$(awk -v a="$(of time_ms_p99)" -v b="$(of time_ms)" 'BEGIN { print a / b }')" 10
taken=9
for _ in 1 2 3; do # a machine that stalls may have a sample repeated, but not in each run
    case_of naps --iters 50
    at_least "naps: the wait is its own" "$(of time_ms)" 0.3
    [ "$taken" = 0 ] || taken=$(of samples_retaken)
done
check_same "naps: nothing is taken again" "$taken" 0
case_of two_speeds --cpu "$last" --iters 400 --no-verify
case $(of flags) in *NOISY*) pass ;; *) fail "two_speeds: flags $(of flags), precision $(of precision)" ;; esac
case_of two_speeds --cpu "$last" --iters 400 -v
check_out "NOISY: says what to do" "NOISY.*--cpu|close other programs"

# --- addresses of blocks
case_of placed --rounds 3 --max-time 0.1s
check_rc "placed" 0
case ${TEST_CFLAGS-} in
*sanitize*) skip "a sanitizer disables shared buffers: addresses of blocks are not tested" ;;
*) case $(of message) in *"0 4096 4096"*) pass ;; *) fail "case placed: the offsets of the three blocks are $(of message), not 0 4096 4096" ;; esac ;;
esac

# --- Ctrl-Z, longer than --timeout and --max-time
case_of paused --timeout 2s --min-time 0.9s --max-time 1s --warmup 5
check_rc "paused" 0
check_same "paused: status" "$(of status)" '"ok"'
at_least "paused: taken again" "$(of samples_retaken)" 1
at_most "paused: no sample holds the stop" "$(of time_ms_max)" 500
at_least "paused: the stop does not use up the time" "$(of samples)" 800
finish
