#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that the environment of a process does not change its results or outputs: closed standard files, ignored
# signals, another folder, results of an earlier run, a hanging block.
. tests/lib.sh
. tests/cli/kit.lib

program around tests/cli/process_setup.c -Wl,--wrap=sysconf
reader
build_heeds
prog=$tmp/around
quick="--iters 10 --warmup 1 --no-progress"
json=$tmp/around_results.json
# values KEY: prints the values of the key in all records, in one line
values() { "$tmp/flat" "$json" | awk -F'\t' -v k="$1" '$2 == k { printf "%s ", $3 }'; }

# --- closed stdin, stdout or stderr: no output file gets the descriptor of a closed file, and so its output
for closed in "<&-" ">&-" "2>&-" "<&- >&- 2>&-"; do
    rm -f "$json" "$json"l
    eval '"$prog" $quick --op quick --json "$json" --jsonl "$json"l > "$tmp/out" 2> "$tmp/err" < /dev/null' "$closed"
    check_same "closed $closed: exit code" $? 0
    check "closed $closed: the array holds nothing else" "$tmp/flat" "$json"
    check "closed $closed: the lines hold nothing else" "$tmp/flat" --lines "$json"l
    check_same "closed $closed: status" "$(values status)" '"ok" '
done

# --- the parent ignores SIGCHLD: the exit status of a worker is still known
run env AROUND_DEAF=1 "$prog" $quick --op quick,crashes --json "$json"
check_rc "SIGCHLD ignored" 1
case $(values message) in *SIGABRT* | *'signal 6'*) pass ;; *) fail "SIGCHLD ignored: messages $(values message)" ;; esac

# --- a case that is run again gets the full time limit again
run "$prog" $quick --op again --timeout 2500ms --json "$json"
check_rc "measured again" 1
check_same "measured again: status" "$(values status)" '"ok" "failed" '
check_same "measured again: flags" "$(values flags | grep -c TIMEOUT)" 0

# --- a block that hangs with --no-isolate: the second signal ends the run
"$heeds" "$prog" --no-progress --no-isolate --op hangs > "$tmp/hang.out" 2>&1 < /dev/null &
pid=$!
sleep 0.4 2> /dev/null || sleep 1
kill -INT $pid
sleep 0.2 2> /dev/null || sleep 1
kill -INT $pid
(sleep 2 && kill -9 $pid) > /dev/null 2>&1 &
killer=$!
wait $pid 2> /dev/null
check_same "a block that hangs, after two SIGINT: exit code" $? 130
kill $killer 2> /dev/null
# --- a killed run leaves a file and a temporary file, which the next run of the same command accepts
for old in "" "[]"; do
    rm -f "$json" "$json"l
    [ -z "$old" ] || echo "$old" > "$json"
    "$prog" $quick --op quick,hangs --timeout 20s --json "$json" --jsonl "$json"l > "$tmp/hang.out" 2>&1 < /dev/null &
    pid=$!
    i=0
    while [ $i -lt 40 ] && ! grep -q '^quick' "$tmp/hang.out"; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
    kill -9 $pid
    wait $pid 2> /dev/null
    run "$prog" $quick --op quick --json "$json" --jsonl "$json"l
    check_rc "after a killed run, old array '$old'" 0
    check_same "after a killed run, old array '$old': status" "$(values status)" '"ok" '
    check "after a killed run, old array '$old': whole lines" "$tmp/flat" --lines "$json"l
    check_same "after a killed run, old array '$old': no temporary file" "$(ls "$tmp" | grep -c 'tmp[0-9]')" 0
done
# --- a block that hangs in a worker: the first signal ends it, and a second one loses no result
for gap in 0 0.01 0.03; do
    rm -f "$json" "$tmp/hang.out"
    "$heeds" "$prog" $quick --op quick,hangs --timeout 20s --json "$json" > "$tmp/hang.out" 2>&1 < /dev/null &
    pid=$!
    i=0
    while [ $i -lt 40 ] && ! grep -q '^quick' "$tmp/hang.out"; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
    kill -INT $pid
    sleep $gap 2> /dev/null
    kill -INT $pid 2> /dev/null
    wait $pid
    check_same "two SIGINT, $gap s apart: exit code" $? 130
    check_same "two SIGINT, $gap s apart: what was finished is there" "$(values operation)" '"quick" '
done

# --- files: relative names are relative to the start folder; no file is open in a worker or its children
here=$(pwd)
prog_there=$prog && case $prog in /*) ;; *) prog_there=$here/$prog ;; esac
mkdir "$tmp/there"
(cd "$tmp/there" && "$prog_there" $quick --no-isolate --op moves --json around_results.json > /dev/null 2>&1)
check_same "a body that changes the folder: exit code" $? 0
check "a body that changes the folder: the file is where it was asked for" "$tmp/flat" "$tmp/there/around_results.json"
check_same "a body that changes the folder: no other file" "$(ls -A "$tmp/there")" around_results.json
run "$prog" $quick --op inherits --json "$json" --jsonl "$json"l
check_same "files open in a worker" "$(values message | calm)" 'null '
if [ -e /proc/self/fd ]; then
    run env AROUND_FILES=1 "$prog" $quick --no-isolate --op inherits --json "$json" --jsonl "$json"l
    check_same "files open in what a body starts" "$(values message | calm)" 'null '
else
    skip "no /proc/self/fd: files that a benchmark function's processes inherit are not tested"
fi

# --- a run without results keeps the results of an earlier run; any other run replaces them
echo '[{"name": "old", "operation": "old"}]' > "$json"
run "$prog" $quick --op quick --device 0 --json "$json"
check_rc "no GPU" 77
check_same "no GPU: the old array is there" "$(cat "$json")" '[{"name": "old", "operation": "old"}]'
rm "$json"
run "$prog" $quick --op quick --device 0 --json "$json"
check_same "no GPU, and no old array: an empty one" "$(tr -d '[:space:]' < "$json")" '[]'
run "$prog" $quick --op quick --json "$json"
check_rc "the empty array is replaced" 0
check_same "the empty array is replaced: status" "$(values status)" '"ok" '

# --- several implementations: each has as much stack as alone; if memory is short, they do not run together
if (ulimit -s 32768) 2> /dev/null; then
    (ulimit -s 32768 && exec "$prog" $quick --op stack --json "$json" > /dev/null 2>&1 < /dev/null)
    check_same "a large stack: status" "$(values status)" '"ok" "ok" '
else
    skip "the stack's limit cannot be set to 32 MiB"
fi
run "$prog" --iters 200 --warmup 1 --no-progress --op memory --json "$json"
check_same "memory for both: compared" "$(values verdict | grep -c -E 'null "[A-Z]*" $')" 1
run env AROUND_SMALL=1 "$prog" --iters 200 --warmup 1 --no-progress --op memory --json "$json"
check_same "memory for one: status" "$(values status)" '"ok" "ok" '
check_same "memory for one: one after the other" "$(values verdict)" 'null "UNRESOLVED" '
# --- on a terminal, a slow case shows progress, with the remaining time from the first second on
if script -qec true /dev/null < /dev/null > /dev/null 2>&1; then
    script -qec "'$prog' --op quick --iters 1000000 --warmup 1 --timeout 2500ms" /dev/null < /dev/null > "$tmp/terminal" 2>&1
    shown=$(tr '\r' '\n' < "$tmp/terminal" | grep -c '^\[1/1\]')
    if [ "$shown" -ge 5 ]; then pass; else fail "a case of 2.5 s on a terminal: the progress line was written only $shown times"; fi
    if tr '\r' '\n' < "$tmp/terminal" | grep -q '^\[1/1\]  [0-9]* s left  quick'; then pass; else
        fail "a case of 2.5 s on a terminal: no time left: $(tr '\r' '\n' < "$tmp/terminal" | grep '^\[1/1\]' | tail -n 2)"
    fi
else
    skip "no script(1) that simulates a terminal: the progress line of a long case is not tested"
fi
finish
