#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that a block gets a flag if its work does not happen in every launch; correct blocks keep their time.
# measures time
. tests/lib.sh
. tests/cli/kit.lib

program work tests/cli/work_changes.c -O2
reader
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
    check_same "$1: status" "$(of $1 status)" '"ok"' # the message may mention a busy machine
    check_same "$1: verified" "$(of $1 verified)" true
}
for name in honest in_place in_place_reset adds_up; do right $name; done
for name in once once_by_hand a_few_times two_outputs_one_stale; do wrong $name STALE; done
wrong wrong_later VERIFY_FAIL
for name in empty removed folded folded_length folded_three; do wrong $name NO_WORK; done
case $(of folded message) in *"call kb_keep on an input before the work"*) pass ;; *) fail "folded: $(of folded message)" ;; esac
for name in hoisted one_instruction; do # the block is as short as the loop, so it is unclear which of them was timed
    right $name
    case $(of $name flags) in *FLOOR*) pass ;; *) fail "$name: flags $(of $name flags)" ;; esac
done
check_out "what FLOOR says stands below the row" "^ +the block takes no more time than an empty loop"
right hidden
case $(of hidden flags) in *FLOOR*) fail "case hidden has the unexpected flag FLOOR: $(of hidden flags)" ;; *) pass ;; esac
check "hidden: three divisions" awk -v ms="$(of hidden time_ms)" 'BEGIN { exit !(ms * 1e6 > 2) }'
for name in halves halves_for_good runs_out every_second every_second_long every_fourth_not; do wrong $name WORK_CHANGED; done
for name in sorts starts_slowly varies; do right $name; done
right kept
check "launches_per_sample: the calls that the clock needs" test "$(of honest launches_per_sample)" -gt 1
check_same "shared_buffers: nobody to share it with" "$(of honest shared_buffers)" null
run "$tmp/work" own
check_out "without a registry" "^embedded_once/impl=default STALE$"
check_out "a function that does nothing" "^called/impl=default FLOOR$"
run "$tmp/work" --fast --no-verify --op once --json "$tmp/none.json"
check_rc "nobody asks" 0
# the record contains the number of samples that were repeated because of the stop
run "$tmp/work" --op stopped --iters 200 --warmup 5 --json "$tmp/stopped.json"
"$tmp/flat" "$tmp/stopped.json" > "$tmp/flat.txt"
right stopped
check_same "stopped: samples" "$(of stopped samples)" 200
check "stopped: what was taken again" test "$(of stopped samples_retaken)" -ge 1
check "stopped: no sample holds the stop" awk -v max="$(of stopped time_ms_max)" 'BEGIN { exit !(max < 200) }'
# --launches sets the launches per sample of any timer
for n in 1 3 100; do
    run "$tmp/work" --op honest,in_place_reset,sorts --launches $n --iters 40 --json "$tmp/launches.json"
    check_rc "--launches $n" 0
    "$tmp/flat" "$tmp/launches.json" > "$tmp/flat.txt"
    for name in honest in_place_reset sorts; do
        check_same "--launches $n: $name" "$(of $name launches_per_sample) $(of $name samples)" "$n 40"
    done
    sorts=$(of sorts time_ms_min) && eval "sorts_$n=$sorts"
done
# the sum of 100 launches would be 100 times as long; a factor of 10 is safe on a shared machine
check "the mean of 100 is one launch's time" awk -v one="$sorts_1" -v many="$sorts_100" 'BEGIN { exit !(many > one / 10 && many < 10 * one) }'
run "$tmp/work" --op brief --iters 100 --json "$tmp/brief.json"
"$tmp/flat" "$tmp/brief.json" > "$tmp/flat.txt"
case $(of brief flags) in *FLOOR*) fail "case brief has the unexpected flag FLOOR: $(of brief flags)" ;; *) pass ;; esac
run "$tmp/work" --op brief --iters 100 --launches 1 --json "$tmp/brief.json"
"$tmp/flat" "$tmp/brief.json" > "$tmp/flat.txt"
case $(of brief status)$(of brief flags) in *failed* | *FLOOR*) pass ;; *) fail "case brief with --launches 1 has the time $(of brief time_ms) and the flags $(of brief flags), not FLOOR" ;; esac
# with a single run between two clock readings, the interval includes the clock's resolution and overhead
run "$tmp/work" --fast --op ways_1,ways_10,ways_30,ways_100,ways_300,ways_1000,ways_10000 --json "$tmp/ways.json"
"$tmp/flat" "$tmp/ways.json" | awk -F'\t' '
    $2 == "name" { name[$1] = $3 } $2 == "verdict" { verdict[$1] = $3 } $2 == "flags" { flags[$1] = $3 }
    END { for (i in name) if (name[i] ~ /sample/) print name[i], verdict[i], flags[i] }' > "$tmp/ways"
check_same "written in two ways: compared" "$(wc -l < "$tmp/ways" | tr -d ' ')" 7
check_same "written in two ways: neither faster nor slower" "$(grep -iE 'faster|slower' "$tmp/ways" | tr '\n' ' ')" ""
check "written in two ways: a few ns are doubted, or withheld" grep -qE 'ways_1/.*(FLOOR|BAD_CASE)' "$tmp/ways"
# the percentage of the memory bandwidth is reported only for data from memory
run "$tmp/work" --fast --op in_cache,in_cache_again,in_cache_own,in_memory,in_memory_own --json "$tmp/cache.json"
check_rc "data in the caches and beyond" 0
"$tmp/flat" "$tmp/cache.json" > "$tmp/flat.txt"
for name in in_cache in_cache_again in_cache_own; do
    check_same "$name: no roof" "$(of $name roof) $(of $name gpu_efficiency)" "null null"
done
for name in in_memory in_memory_own; do
    check "$name: GB/s and its share" awk -v roof="$(of $name roof)" -v share="$(of $name gpu_efficiency)" \
        'BEGIN { exit !(roof == "\"copy\"" && share > 10 && share < 150) }'
done
finish
