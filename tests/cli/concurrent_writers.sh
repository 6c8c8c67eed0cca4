#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Several processes append to one file of records: ordinary runs, shards and runs with --resume. No record is lost
# and no line is incomplete. WRITERS_ROUNDS=N sets the number of repetitions; "make test-all" uses 200.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
reader
prog=$tmp/prog
lines=$tmp/l.jsonl
some="--iters 3 --warmup 1 --no-progress -q --op softmax,mse,silu"
all=$("$prog" --op softmax,mse,silu --list | wc -l | tr -d ' ')
count() { wc -l < "$1" | tr -d ' '; }
seed=42
random() { seed=$(((seed * 1103515245 + 12345) % 2147483648)) && n=$((seed / 65536 % $1)); }

# The writers are a full run, a shard, a shard with --resume, and a full run with --resume. Between rounds the file is
# kept or deleted, and may end with half a line or contain lines of another tool.
rounds=${WRITERS_ROUNDS:-$(everything && echo 200 || echo 6)} round=0 bad=0
"$prog" $some --jsonl "$tmp/some" > /dev/null 2>&1
sed -n 8p "$tmp/some" | head -c 300 > "$tmp/half" && echo >> "$tmp/half"
while [ $round -lt "$rounds" ]; do
    random 3
    case $n in
    0) rm -f "$lines" ;;
    1) head -n 7 "$tmp/some" > "$lines" && head -c 300 "$tmp/half" >> "$lines" ;;
    2) { head -n 5 "$tmp/some" && echo '{"tool": "another"}' && echo 'plain text' && sed -n 6p "$tmp/some" | tr -d '\n'; } > "$lines" ;;
    esac
    kept=$(grep -c '"tool": "another"\|^plain text$' "$lines" 2> /dev/null)
    random 4
    writers=$((n + 2)) w=0 pids=
    while [ $w -lt $writers ]; do
        random 4
        case $n in
        0) how= ;;
        1) how="--shard $((w % 2 + 1))/2" ;;
        2) how="--shard $((w % 2 + 1))/2 --resume" ;;
        3) how=--resume ;;
        esac
        "$prog" $some $how --jsonl "$lines" --json "$tmp/w$w.json" > /dev/null 2> "$tmp/err.$w" &
        pids="$pids $!" w=$((w + 1))
    done
    for p in $pids; do
        wait "$p"
        rc=$?
        if [ $rc -ne 0 ]; then bad=$((bad + 1)) && fail "round $round: exit code $rc: $(cat "$tmp"/err.*)"; fi
    done
    grep -v '"tool": "another"\|^plain text$' "$lines" | grep -vxF -f "$tmp/half" > "$tmp/ours"
    if ! "$tmp/flat" --lines "$tmp/ours" > "$tmp/why" 2>&1; then bad=$((bad + 1)) && fail "round $round: a line is incomplete: $(head -c 300 "$tmp/why")"; fi
    w=0
    while [ $w -lt $writers ]; do
        sed 's/,$//; /^[][]$/d' "$tmp/w$w.json" > "$tmp/wanted"
        lost=$(grep -cvxF -f "$lines" "$tmp/wanted")
        if [ "$lost" -ne 0 ]; then bad=$((bad + 1)) && fail "round $round: $lost of $(count "$tmp/wanted") records of writer $w of $writers are lost"; fi
        w=$((w + 1))
    done
    check_same "round $round: lines of other tools" "$(grep -c '"tool": "another"\|^plain text$' "$lines")" "${kept:-0}"
    [ $bad -lt 5 ] || break
    round=$((round + 1))
done
if [ $bad -eq 0 ]; then pass; fi
check_same "nothing else is left" "$(ls "$tmp" | grep -c '[.]tmp$\|l.jsonl\.')" 0

# two runs that replace the same file
rm -f "$tmp/r.json"
"$prog" --no-progress -q --op slow --fast --json "$tmp/r.json" > /dev/null 2> "$tmp/err.slow" &
pid=$!
sleep 0.3 2> /dev/null || sleep 1
run "$prog" $some --json "$tmp/r.json"
check_rc "the first to end" 0
wait $pid
check_same "the second to end" $? 2
check "the second to end: its message" grep -q "was changed by another process during this run; what this run wrote is in .*r.json.$pid.json" "$tmp/err.slow"
for file in r.json r.json.$pid.json; do check "$file has records" "$tmp/flat" "$tmp/$file"; done
cp "$tmp/r.json" "$tmp/old.json"
"$prog" --no-progress -q --op slow --thorough --json "$tmp/r.json" > /dev/null 2>&1 &
pid=$!
sleep 0.3 2> /dev/null || sleep 1
kill -9 $pid
wait $pid 2> /dev/null
check "killed: the old file stays" cmp "$tmp/r.json" "$tmp/old.json"
check_same "killed: nothing else is left" "$(ls "$tmp" | grep -c '[.]tmp$')" 0
finish
