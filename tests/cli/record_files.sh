#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --json and --jsonl: the contents of the file after the disk was full, through a symbolic link, in a pipe,
# and after a signal.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
reader
prog=$tmp/prog
quick="--iters 3 --warmup 1 --no-progress -q --op mse"
many="--iters 3 --warmup 1 --no-progress -q --op softmax"
mkdir "$tmp/dir" "$tmp/other"
json=$tmp/dir/r.json
names() { (cd "$1" && echo *); }
records() { "$tmp/flat" $2 "$1" | grep -c '	operation	'; }

old='[
{"name": "old", "operation": "old"}
]'
echo "$old" > "$tmp/other/target"
chmod 640 "$tmp/other/target"
ln -s ../other/target "$json"
(ulimit -f 1 && exec "$prog" $many --json "$json") > "$tmp/out" 2> "$tmp/err"
check_same "a full disk behind a link: exit code" $? 2
check_same "a full disk behind a link: the old file" "$(cat "$tmp/other/target")" "$old"
if grep -q 'writing --json .* failed' "$tmp/err"; then pass; else fail "a symbolic link to a full disk: message: $(cat "$tmp/err")"; fi
check_same "a full disk behind a link: nothing else is left" "$(names "$tmp/other")" target
run "$prog" $quick --json "$json"
check_rc "through a link" 0
check "through a link: the records" "$tmp/flat" "$tmp/other/target"
if [ -L "$json" ]; then pass; else fail "the symbolic link was replaced by a file"; fi
check_same "the mode is kept" "$(ls -l "$tmp/other/target" | cut -c 1-10)" "-rw-r-----"
check_same "through a link: nothing else" "$(names "$tmp/other")" target
rm "$json"
ln -s nowhere "$json"
run "$prog" $quick --json "$json"
check_rc "a link to nowhere" 0
check "a link to nowhere is replaced by the records" "$tmp/flat" "$json"
rm -rf "$tmp/dir" && mkdir "$tmp/dir"

# a long file name leaves no room for a suffix
long=$(printf '%250s' '' | tr ' ' l)
run "$prog" $quick --json "$tmp/dir/$long"
check_rc "a name of 250 characters" 0
check "a name of 250 characters: the records" "$tmp/flat" "$tmp/dir/$long"
check_same "a name of 250 characters: nothing else" "$(names "$tmp/dir")" "$long"
rm -rf "$tmp/dir" && mkdir "$tmp/dir"

# --- lines
lines=$tmp/dir/l.jsonl
(ulimit -f 16 && exec "$prog" $many --jsonl "$lines") > "$tmp/out" 2> "$tmp/err"
check_same "a full disk: exit code" $? 2
if grep -q 'bytes could not be written' "$tmp/err"; then pass; else fail "a full disk: said: $(cat "$tmp/err")"; fi
before=$(grep -c '^{.*}$' "$lines")
if [ "$before" -gt 0 ]; then pass; else fail "a full disk: no line was written, although there was room for some"; fi
check_same "a full disk: no line is torn" "$(wc -l < "$lines" | tr -d ' ')" "$before"
run "$prog" $quick --jsonl "$lines"
check_rc "room again" 0
check_same "room again: the next record is a line of its own" "$(grep -c '^{.*}$' "$lines")" $((before + 1))

mkfifo "$tmp/dir/pipe"
for option in --json --jsonl; do
    cat "$tmp/dir/pipe" > "$tmp/dir/read" &
    run "$prog" $many $option "$tmp/dir/pipe"
    check_rc "$option: a pipe with a reader" 0
    wait
    check_same "$option: a pipe with a reader gets the records" "$(grep -o '"run_id"' "$tmp/dir/read" | wc -l | tr -d ' ')" "$("$prog" --op softmax --list | wc -l | tr -d ' ')"
done
if [ "$(id -u)" = 0 ]; then
    skip "root may write everywhere: a file that cannot be opened is not tested"
else
    mkdir "$tmp/dir/locked" && chmod 500 "$tmp/dir/locked"
    run "$prog" $quick --jsonl "$tmp/dir/locked/l.jsonl"
    check_rc "no permission" 2
    check_err "no permission" 'permission denied'
    chmod 700 "$tmp/dir/locked"
fi

# --- few file descriptors
(ulimit -n 60 && exec "$prog" $quick --json "$tmp/dir/n.json") > "$tmp/out" 2> "$tmp/err"
check_same "few files may be open: exit code" $? 0

# --- signals that end a program at once: finished records are written
build_heeds
"$heeds" "$prog" --no-progress --iters 3 --warmup 1 --op mse,slow --thorough --json "$json" --jsonl "$tmp/dir/q.jsonl" \
    > "$tmp/out" 2>&1 < /dev/null &
pid=$!
i=0
while [ $i -lt 100 ] && [ ! -s "$tmp/dir/q.jsonl" ]; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
kill -QUIT $pid
wait $pid
check_same "SIGQUIT: exit code" $? 130
check_same "SIGQUIT: what was finished is in the array" "$(records "$json")" "$(records "$tmp/dir/q.jsonl" --lines)"
rm -rf "$tmp/dir/locked"
check_same "SIGQUIT: no temporary file" "$(names "$tmp/dir" | grep -c tmp)" 0
finish
