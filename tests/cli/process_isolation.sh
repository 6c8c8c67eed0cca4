#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that a change that a benchmark makes to its process does not affect the next benchmark: kbench undoes the
# change, or runs the next benchmark in a new process.
. tests/lib.sh
. tests/cli/kit.lib

program process_isolation tests/cli/process_isolation.c
reader
LEFTOVERS_NICE=$(nice) LEFTOVERS_CPUS=$(nproc 2> /dev/null || echo 0)
export LEFTOVERS_NICE LEFTOVERS_CPUS
of() { awk -F'\t' -v name="\"$1\"" -v key="$2" '$2 == "name" { at[$3] = $1 } { v[$1, $2] = $3 } END { print v[at[name], key] }' "$tmp/flat.txt"; }
measure() { # OPTIONS: leaves the records in flat.txt
    run "$tmp/process_isolation" --iters 3 --warmup 1 --no-progress "$@" --json "$tmp/process_isolation.json"
    "$tmp/flat" "$tmp/process_isolation.json" | calm > "$tmp/flat.txt"
}
fine() { # NAME MESSAGE
    check_same "$1: status" "$(of "$1" status)" '"ok"'
    check_same "$1: message" "$(of "$1" message)" "$2"
}
all="memory_limit file_limit stack_limit hard_limit rounding locale thread_locale variables mask folder blocked handler
    timers priority files standard threads"
[ "$LEFTOVERS_CPUS" -lt 2 ] || all="$all processors"
"$tmp/process_isolation" --list | grep -q flush && all="$all flush"

# --- changes that kbench undoes, and changes that need a new process: no case fails before kbench reacts
measure --op "$(for what in $all; do printf 'dirty_%s,sees_%s,' $what $what; done)"
check_rc "all in one run" 0
for what in $all; do fine dirty_$what/impl=default null && fine sees_$what/impl=default null; done

# --- a change that kbench cannot see is named if the next case crashes; a failed case does not affect the next
measure --op dirty_secret,sees_abort
check_same "abort" "$(of sees_abort/impl=default message)" '"signal 6 (Aborted), in a process that had run other cases"'
measure --op fails_alone,fails_too,sees_secret
check_rc "its own fault" 1
check_same "its own fault: message" "$(of fails_alone/impl=default message)" '"its own fault"'
check_same "its own fault: each runs once, in a fresh process" "$(sort "$err" | grep -c 'runs as number 1$')" 2
fine sees_secret/impl=default null

# --- in one process: changes are undone if possible, otherwise reported
measure --no-isolate --op dirty_rounding,sees_rounding,dirty_timers,sees_timers
check_rc "--no-isolate" 0
fine sees_rounding/impl=default null && fine sees_timers/impl=default null
measure --no-isolate --op dirty_threads,dirty_variables
check_err "--no-isolate: what cannot be put back" "dirty_threads.*it left threads running.*fresh process"
check_err "--no-isolate: the environment" "dirty_variables.*it changed the environment, .*fresh process"
finish
