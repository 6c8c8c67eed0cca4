#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
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
check_err "a note says what was not run" '1 not run: they need a GPU'
check_not_out "what has no record is no part of the table" 'not run|need'
run "$tmp/added" $quick --op on_gpu --json "$tmp/none.json"
check_rc "only what a GPU can run, and there is none" 77
if [ -s "$tmp/none.json" ]; then check_same "its file is an empty array" "$(tr -d '[:space:]' < "$tmp/none.json")" '[]'; fi

# --- entries that are not quite right: a word and exit code 2, not a crash or a case that nobody meant
# odd KIND ERE: what the message says
odd() {
    ADDED=$1 run "$tmp/added" --list
    check_rc "$1" 2
    check_err "$1" "$2"
}
odd empty "odd/i: axis 'm' has no values"
odd nameless "odd/i: axis '' is without a name"
odd twice "odd/i: axis 'm' is there twice"
odd typed "'fp16' is no dtype.*bf16"
odd counted "is no dtype"
ADDED=unnamed run "$tmp/added" --list
check_rc "entries without a name" 0
check_out "an entry without an operation" '^unnamed/impl=i$'
check_out "an entry without an implementation" '^odd/impl=default$'
ADDED=again run "$tmp/added" --list
check_same "an entry that is added again" "$(wc -l < "$out" | tr -d ' ')" 4
ADDED=same run "$tmp/added" $quick --device cpu --op ladder --impl naive
check_rc "two entries of one name" 0
check_err "two entries of one name" 'ladder/naive is registered twice'
run "$tmp/added" $quick --device cpu --op ladder
check_not_err "no two entries of one name" 'twice'
# the same shape, though the axes are named in another order: rivals
ADDED=order run "$tmp/added" $quick --op order --json "$tmp/order.json"
check_rc "axes in another order" 0
"$tmp/flat" "$tmp/order.json" > "$tmp/flat.txt"
check_same "axes in another order: groups" "$(values baseline)" '"rows" "rows" "rows" "rows" '
check_same "axes in another order: records" "$(values implementation)" '"rows" "cols" "rows" "cols" '
finish
