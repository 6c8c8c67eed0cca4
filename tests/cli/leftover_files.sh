#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# What a run that is killed leaves beside its --json file: the next one removes that, and nothing else.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
reader
prog=$tmp/prog
quick="--iters 3 --warmup 1 --no-progress --op mse"
mkdir "$tmp/dir" "$tmp/other"
json=$tmp/dir/r.json
names() { (cd "$1" && echo *); }
# start: a run that takes its time, with its temporary file there
start() {
    "$prog" --no-progress --op slow --thorough --json "$json" > /dev/null 2>&1 < /dev/null &
    pid=$!
    i=0
    while [ $i -lt 100 ] && [ ! -e "$json.tmp$pid" ]; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
    if [ -e "$json.tmp$pid" ]; then pass; else fail "no temporary file r.json.tmp$pid: $(names "$tmp/dir")"; fi
}
# end: and then it is killed
end() {
    kill -9 $pid
    wait $pid 2> /dev/null
}

start
end
left=r.json.tmp$pid
check_same "a run that was killed leaves its file" "$(names "$tmp/dir")" "$left"
run "$prog" $quick --json "$json"
check_rc "the next run" 0
check_same "the next run removes it" "$(names "$tmp/dir")" r.json
check "the next run's records" "$tmp/flat" "$json"

# the same without a folder in its name, and from another one's point of view
(cd "$tmp/dir" && : > $left && "../prog" $quick --json r.json > /dev/null 2>&1)
check_same "a name without a folder" "$(names "$tmp/dir")" r.json
: > "$tmp/dir/$left"
run "$prog" $quick --json "$tmp/other/r.json"
check_same "another folder's files stay" "$(names "$tmp/dir")" "r.json $left"
run "$prog" $quick --list --json "$json"
check_same "--list removes none" "$(names "$tmp/dir")" "r.json $left"

# what is not left by a killed run stays: of a process that lives, other names, what is no plain file
: > "$json.tmp$$"
: > "$tmp/dir/s.json.tmp$pid"
: > "$json.tmp${pid}x"
: > "$json.tmp"
: > "$json.tmp-1"
: > "$json.tmp99999999999999999999"
mkdir "$json.tmp${pid}0000"
echo kept > "$tmp/other/target"
ln -s ../other/target "$json.tmp${pid}000"
before=$(names "$tmp/dir" | sed "s/ $left / /")
run "$prog" $quick --json "$json"
check_rc "among other files" 0
check_same "among other files: they stay" "$(names "$tmp/dir")" "$before"
check_same "what a link leads to is as it was" "$(cat "$tmp/other/target")" kept
rm -rf "$tmp/dir" && mkdir "$tmp/dir"

# two runs at once: neither removes the other's, each writes its own
start
run "$prog" $quick --json "$json"
check_rc "a second run at the same time" 2
check_err "a second run at the same time" "process $pid writes it, too"
if [ -e "$json.tmp$pid" ]; then pass; else fail "a second run removes what the first one writes to"; fi
end
rm -f "$json.tmp"*

# a lock says that somebody writes whose process cannot be seen: in another container, or on another machine
if have flock && (flock -n "$tmp/other/lock" true); then
    flock "$json.tmp$pid" sleep 30 &
    locker=$!
    i=0
    while [ $i -lt 50 ] && flock -n "$json.tmp$pid" true; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
    run "$prog" $quick --json "$json"
    check_rc "beside a file that is locked" 2
    check_err "beside a file that is locked" "process $pid writes it, too"
    if [ -e "$json.tmp$pid" ]; then pass; else fail "a file that somebody holds locked is removed"; fi
    kill $locker
    wait $locker 2> /dev/null
    sleep 0.2 2> /dev/null || sleep 1
    for p in $(ps -o pid=,ppid= 2> /dev/null | awk -v p=$locker '$2 == p { print $1 }'); do kill "$p"; done
else
    skip "no flock(1): a file that somebody holds locked is not looked at"
fi

# our own number: a file that a process of the same number left is replaced, one in use is not written into
cat > "$tmp/same.sh" << 'end'
json=$1 what=$2 && shift 2
case $what in
left) : > "$json.tmp$$" ;;
notes) echo notes > "$json.tmp$$" ;;
link) ln -sf "${json%/*}/../other/target" "$json.tmp$$" ;;
locked) exec 9> "$json.tmp$$" && flock -n 9 ;;
esac
exec "$@"
end
rm -rf "$tmp/dir" && mkdir "$tmp/dir"
run sh "$tmp/same.sh" "$json" left "$prog" $quick --json "$json"
check_rc "left by a process of the same number" 0
check "left by a process of the same number: the records" "$tmp/flat" "$json"
check_same "left by a process of the same number: nothing else" "$(names "$tmp/dir")" r.json
run sh "$tmp/same.sh" "$json" notes "$prog" $quick --json "$json"
check_rc "another program's file of this name" 2
check_same "another program's file of this name stays" "$(cat "$json".tmp[0-9]*)" notes
rm -f "$json.tmp"*
run sh "$tmp/same.sh" "$json" link "$prog" $quick --json "$json"
check_rc "a link in its place" 2
check_err "a link in its place" 'r.json.tmp[0-9]* is in use by another run, or is not a file that this program made'
check_same "a link in its place: nothing is written through it" "$(cat "$tmp/other/target")" kept
rm -f "$json.tmp"*
if have flock; then
    run sh "$tmp/same.sh" "$json" locked "$prog" $quick --json "$json"
    check_rc "another run of the same number" 2
    check_err "another run of the same number" 'r.json.tmp[0-9]* is in use by another run'
fi
finish
