#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Work that must have happened in every launch gets a word where it did not; honest blocks keep their number.
. tests/lib.sh

build "work.c" $CC $TEST_CFLAGS -O2 -I. tests/cli/work.c -o "$tmp/work" $libs
build "flat.c" $CC -O1 -I. -Itests tests/cli/flat.c -o "$tmp/flat" $libs
run "$tmp/work" --fast --json "$tmp/work.json"
check_rc "some bodies are wrong" 1
"$tmp/flat" "$tmp/work.json" > "$tmp/flat.txt"
# of NAME KEY: its value, as JSON
of() { awk -F'\t' -v name="\"$1/impl=default\"" -v key="$2" '$2 == "name" { at[$3] = $1 } { v[$1, $2] = $3 } END { print v[at[name], key] }' "$tmp/flat.txt"; }
wrong() { # NAME FLAG
    check_same "$1: status" "$(of $1 status)" '"failed"'
    check_same "$1: no number" "$(of $1 time_ms)" null
    case $(of $1 flags) in *"\"$2\""*) pass ;; *) fail "$1: flags $(of $1 flags), not $2" ;; esac
}
right() {
    check_same "$1: status" "$(of $1 status) $(of $1 message)" '"ok" null'
    check_same "$1: verified" "$(of $1 verified)" true
}
for name in honest in_place in_place_reset adds_up; do right $name; done
for name in once once_by_hand a_few_times two_outputs_one_stale; do wrong $name STALE; done
wrong wrong_later VERIFY_FAIL
for name in empty removed; do wrong $name NO_WORK; done
right kept
check_same "kept: nothing was taken again" "$(of kept samples_retaken)" 0
check "launches_per_sample: the calls that the clock needs" test "$(of honest launches_per_sample)" -gt 1
check_same "stage_shared: nobody to share it with" "$(of honest stage_shared)" null
run "$tmp/work" own
check_out "without a registry" "^embedded_once STALE$"
check_same "kept: nothing was taken again" "$(of kept samples_retaken)" 0
check "launches_per_sample: the calls that the clock needs" test "$(of honest launches_per_sample)" -gt 1
check_same "stage_shared: nobody to share it with" "$(of honest stage_shared)" null
run "$tmp/work" --fast --no-verify --op once --json "$tmp/none.json"
check_rc "nobody asks" 0
# what was measured while the process was stopped is measured again, and counted
run "$tmp/work" --op stopped --iters 200 --warmup 5 --json "$tmp/stopped.json"
"$tmp/flat" "$tmp/stopped.json" > "$tmp/flat.txt"
right stopped
check_same "stopped: samples" "$(of stopped samples)" 200
check_same "stopped: what was taken again" "$(of stopped samples_retaken)" 1
check "stopped: no sample holds the stop" awk -v max="$(of stopped time_ms_max)" 'BEGIN { exit !(max < 200) }'
finish
