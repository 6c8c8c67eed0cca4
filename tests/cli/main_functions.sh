#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Main functions that do more than call kb_main, signals that are ignored from the start, and faulty clocks: each run
# ends with its times or with a message.
# measures time
. tests/lib.sh
. tests/cli/kit.lib

program mains tests/cli/main_functions.c
build "a clock" $CC -O1 -DSHIM -shared -fPIC tests/cli/main_functions.c -o "$tmp/clock.so"
reader
prog=$tmp/mains
quick="--iters 5 --warmup 1 --no-progress"
of() { awk -F'\t' -v name="\"$1/impl=default\"" -v key="$2" '$2 == "name" { at[$3] = $1 } { v[$1, $2] = $3 } END { print v[at[name], key] }' "$tmp/flat.txt"; }
measure() { # COMMAND...: leaves the records in flat.txt
    rm -f "$tmp/r.json"
    run "$@" --json "$tmp/r.json"
    "$tmp/flat" "$tmp/r.json" 2> /dev/null | calm > "$tmp/flat.txt"
}

# --- a main that executes its program again
for how in again forks; do
    measure env MAINS=$how "$prog" $quick --op a,b
    check_rc "main: $how" 0
    check_same "main: $how" "$(of a status) $(of b status)" '"ok" "ok"'
done
run env MAINS=cleared timeout 60 "$prog" $quick --op a
check_rc "main: cleared" 1
check_err "main: cleared" "main started this program again without KBENCH_STARTED_AS"
check_same "main: cleared: one supervisor" "$(grep -c 'ended before it began' "$err")" 1

# --- a main that reads its input: the process that measures has the same input
echo 7 > "$tmp/main_functions.txt"
for how in file pipe moves errno opens unbuffered; do
    rm -f "$tmp/r.json"
    run sh -c 'cd "$1" || exit
        case $2 in
        file) MAINS=reads ./mains $3 < main_functions.txt ;;
        pipe) echo 7 | MAINS=reads ./mains $3 ;;
        moves) MAINS=moves ./mains $3 < /dev/null ;;
        *) echo 5 | MAINS=$2 ./mains $3 ;; # reads nothing from the pipe
        esac' sh "$tmp" $how "$quick --op tells --json $(cd "$tmp" && pwd)/r.json"
    check_rc "main reads: $how" 0
    check "main reads: $how" grep -q '"counters": {"input": 7}' "$tmp/r.json"
    if [ $how = pipe ]; then
        check_err "main reads: $how" "main has read stdin, which a worker process cannot read again; read a file"
    else
        check_not_err "main reads: $how" "one process"
    fi
done
run sh -c 'echo 7 | MAINS=reads "$1" --op tells --procs 2' sh "$prog"
check_rc "main reads a pipe, --procs" 2
check_err "main reads a pipe, --procs" "main has read stdin, which only one process can read"

# --- a worker that does not read its pipe, so that the pipe is full: the run still ends at the first SIGTERM
long=$(head -c 4000 /dev/zero | tr '\0' x)
set --
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; do set -- "$@" --filter "$long"; done
MAINS=waits "$prog" --no-progress --filter a "$@" > "$tmp/out" 2> "$tmp/err" < /dev/null &
pid=$!
sleep 1
kill -TERM $pid
(sleep 20 && kill -9 $pid) > /dev/null 2>&1 &
killer=$!
wait $pid
code=$?
kill $killer 2> /dev/null
if [ $code -ne 137 ]; then pass; else fail "a long command line and a worker that waits: SIGTERM does not end the run"; fi
measure "$prog" $quick --op a --filter a "$@"
check_same "a long command line: $rc" "$(of a status)" '"ok"'

# --- signals that are ignored from the start stay ignored, with and without --race
for number in HUP INT; do
    (trap '' $number && exec "$prog" --iters 4 --warmup 1 --no-progress --op takes_a_second --json "$tmp/r.json") > "$tmp/out" 2> "$tmp/err" < /dev/null &
    pid=$!
    sleep 1
    kill -$number $pid
    wait $pid
    check_same "SIG$number ignored: exit code" $? 0
done
(trap '' HUP && exec "$prog" --race "$prog" "$prog" --budget 1s --fail-on never -- --iters 4 --warmup 1 --op takes_a_second) > "$tmp/out" 2> "$tmp/err" < /dev/null &
pid=$!
sleep 1
kill -HUP $pid
wait $pid
check_same "SIGHUP ignored in --race: exit code" $? 0

# --- a race with a program that does not end and ignores SIGTERM
printf '#!/bin/sh\nMAINS=deaf exec "%s"\n' "$(pwd)/$prog" > "$tmp/deaf.sh"
chmod +x "$tmp/deaf.sh"
run timeout -k 5 60 "$prog" --race "$prog" "$tmp/deaf.sh" --budget 1s -- $quick --op a
check_rc "a race with a program that hangs" 2
check_err "a race with a program that hangs" "deaf.sh did not end in 12 s"
"$prog" --race "$prog" "$tmp/deaf.sh" --budget 100s -- $quick --op a > "$tmp/out" 2> "$tmp/err" < /dev/null &
pid=$!
sleep 2
kill -TERM $pid
(sleep 20 && kill -9 $pid) > /dev/null 2>&1 &
killer=$!
wait $pid
check_same "a race with a program that ignores SIGTERM: the first one ends it" $? 130
kill $killer 2> /dev/null

# --- a stopped worker must not be mistaken for an ended one
measure "$prog" $quick --op traced,b --timeout 1s
check_same "traced" "$(of traced message)" '"longer than 1.000 s"'
check_same "traced: the next one" "$(of b status)" '"ok"'

# --- faulty clocks: a hanging case is ended even if the clock is wrong; a coarse clock gives no time
for clock in stands back; do
    measure env CLOCK=$clock LD_PRELOAD="$tmp/clock.so" timeout -k 5 60 "$prog" $quick --op hangs --timeout 1s
    check_same "a clock that $clock" "$(of hangs flags) $(of hangs message)" '["TIMEOUT"] "longer than 1.000 s"'
done
measure env CLOCK=4000000 LD_PRELOAD="$tmp/clock.so" "$prog" --no-progress --op a,takes_a_second
check_rc "a clock with steps of 4 ms" 1
check_same "a clock with steps of 4 ms" "$(of a flags) $(of takes_a_second flags)" '["BAD_CASE"] ["BAD_CASE"]'
finish
