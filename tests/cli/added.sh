#!/bin/sh
# Entries made by the program: listed whether or not this machine can run them, recorded only where it can.
. tests/lib.sh

build "added.c" $CC -O1 -I. tests/cli/added.c -o "$tmp/added" $libs
build "flat.c" $CC -O1 -Itests tests/cli/flat.c -o "$tmp/flat"
quick="--iters 3 --warmup 1 --no-progress"
run "$tmp/added" --list-ops
check_rc "--list-ops" 0
check_out "--list-ops: the ladder" '^ladder .*naive vec cpu_only'
check_out "--list-ops: what only a GPU can run" '^on_gpu .*gpu_only'
run "$tmp/added" --list-ops -v
check_out "--list-ops -v: the notes" 'naive +one thread per element'
run "$tmp/added" --list
check_same "--list: all, in the order they were added" "$(tr '\n' ' ' < "$out")" \
    "ladder/impl=naive/n=7 ladder/impl=vec/n=7 ladder/impl=cpu_only/n=7 on_gpu/impl=gpu_only/n=7 "
run "$tmp/added" $quick --device cpu --json "$tmp/added.json"
check_rc "a run" 0
build "a right file" "$tmp/flat" "$tmp/added.json"
"$tmp/flat" "$tmp/added.json" > "$tmp/flat.txt"
values() { awk -F'\t' -v k="$1" '$2 == k { printf "%s ", $3 }' "$tmp/flat.txt"; }
check_same "records: what can run" "$(values implementation)" '"naive" "vec" "cpu_only" '
check_same "records: rungs" "$(values rung)" '1 2 4 '
check_same "records: origins" "$(values origin)" '"user" "vendor" "user" '
check_same "records: user data arrived" "$(values verified)" 'true true true '
check_out "the table says what was not run" 'not run|need'
run "$tmp/added" $quick --op on_gpu --json "$tmp/none.json"
check_rc "only what a GPU can run, and there is none" 77
if [ -s "$tmp/none.json" ]; then check_same "its file is an empty array" "$(tr -d '[:space:]' < "$tmp/none.json")" '[]'; fi
finish
