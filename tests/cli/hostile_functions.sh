#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests benchmark functions that harm more than their own case, and main functions that hide from kbench that they
# run in a worker. kbench must name every case that a harmful function prevents from being measured, and measure
# all other cases.
. tests/lib.sh
. tests/cli/kit.lib

program hostile tests/cli/hostile_functions.c
reader
options="--iters 30 --warmup 1 --timeout 3s --no-progress"
# field OPERATION IMPLEMENTATION KEY: prints a value of the record, as JSON
field() {
    awk -F'\t' -v op="\"$1\"" -v impl="\"$2\"" -v key="$3" '
        $1 != last { if (o == op && i == impl) exit; o = i = ""; v = ""; last = $1 }
        $2 == "operation" { o = $3 } $2 == "implementation" { i = $3 } $2 == key { v = $3 }
        END { if (o == op && i == impl) print v }' "$tmp/flat.txt"
}
start=$(now_ms)
run "$tmp/hostile" $options --exclude takes_long --json "$tmp/all.json"
took=$(($(now_ms) - start))
check_rc "all in one run" 1
"$tmp/flat" "$tmp/all.json" > "$tmp/flat.txt"
check_same "a record for every case" "$(grep -c '	operation	' "$tmp/flat.txt")" "$("$tmp/hostile" --list --exclude takes_long | wc -l)"
for op in first forks forks_inside leaves_a_child leaves_a_timer moves nests last; do
    check_same "$op: the good case" "$(field $op good status)" '"ok"'
done
# bad OPERATION FLAG MESSAGE
bad() {
    check_same "$1: status" "$(field $1 bad status)" '"failed"'
    case $(field $1 bad flags) in *"\"$2\""*) pass ;; *) fail "$1: no $2 in its flags: $(field $1 bad flags)" ;; esac
    if field $1 bad message | grep -qE -e "$3"; then pass; else fail "$1: message $(field $1 bad message) does not say '$3'"; fi
}
bad forks BAD_CASE 'forked'
bad forks_inside BAD_CASE 'forked'
bad leaves_a_child CRASHED 'signal 6'
bad nests BAD_CASE 'there is a run already'
check_err "kb_main in a benchmark" 'a benchmark function cannot run other benchmarks'
if [ $took -lt 40000 ]; then pass; else fail "child processes that keep running: the run took $took ms"; fi
case $(field poisons good message) in '"signal 6 (Aborted), in a process that had run other cases"') pass ;; *)
    fail "the message of a case that crashes because of an earlier case is wrong: $(field poisons good message)" ;;
esac
if ps -o args= 2> /dev/null | grep -q "^$tmp/hostile"; then fail "some processes are still running"; else pass; fi

run env HOSTILE_STRIPS=1 timeout 20 "$tmp/hostile" mine $options --op first
check_rc "a main that strips an argument" 0
check_out "a main that strips an argument" '^first good +[0-9.]+ '
run env HOSTILE_MAKES_UP=1 timeout 20 "$tmp/hostile"
check_rc "a main that makes up its arguments" 0
check_out "a main that makes up its arguments" '^first good +[0-9.]+ '
run env HOSTILE_TWICE=1 timeout 20 "$tmp/hostile" $options --op first
check_rc "a main that calls kb_main again" 0
check_same "a main that calls kb_main again: both run" "$(grep -c '^first good' "$out")" 2

# The supervisor and the worker are stopped until the time limit has passed. The case must not get TIMEOUT.
child_of() { cat /proc/[0-9]*/stat 2> /dev/null | awk -v parent="$1" '$4 == parent { print $1; exit }'; }
"$tmp/hostile" --iters 30 --warmup 1 --timeout 4s --no-progress --op takes_long --json "$tmp/stop.json" > "$tmp/stop.out" 2>&1 < /dev/null &
pid=$!
sleep 1
worker=$(child_of $pid)
[ -n "$worker" ] || { skip "no /proc, so the worker is not found" && kill $pid && wait $pid && finish; }
kill -STOP "$worker"
kill -STOP $pid
sleep 4
kill -CONT "$worker"
kill -CONT $pid
wait $pid
check_same "stopped: exit code" $? 0
"$tmp/flat" "$tmp/stop.json" > "$tmp/flat.txt"
check_same "stopped: no TIMEOUT" "$(field takes_long good status)" '"ok"'
finish
