#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# kb_add: entries are listed on every machine, and recorded only on a machine that can run them.
. tests/lib.sh
. tests/cli/kit.lib

program added tests/cli/kb_add.c
reader
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

# --- invalid entries: a message and exit code 2, no crash and no unintended case
# odd KIND ERE: checks that the message about the entry KIND matches ERE
odd() {
    ADDED=$1 run "$tmp/added" --list
    check_rc "$1" 2
    check_err "$1" "$2"
}
odd empty "odd/i: axis 'm' has no values"
odd nameless "odd/i: axis '' has no name"
odd twice "odd/i: axis 'm' occurs twice"
odd typed "takes f32.*bf16.*not fp16"
odd counted "takes f32.*not numbers"
odd null "odd/i: axis 'm' holds .*NULL"
odd lowest "odd/i: axis 'm' holds INT64_MIN"
odd endless "odd/i: axis 'm' has more than 32 values"
odd nan "odd/i: axis 'p' holds .*NaN"
ADDED=unnamed run "$tmp/added" --list
check_rc "entries without a name" 0
check_out "an entry without an operation" '^unnamed/impl=i$'
check_out "an entry without an implementation" '^odd/impl=default$'
ADDED=again run "$tmp/added" --list
check_same "an entry that is added again" "$(wc -l < "$out" | tr -d ' ')" 4
ADDED=same run "$tmp/added" $quick --device cpu --op ladder --impl naive
check_rc "two entries of one name" 2
check_err "two entries of one name" 'ladder/impl=naive/n=7 is registered twice, at kb_add:1 and at kb_add:5'
run "$tmp/added" $quick --device cpu --op ladder
check_not_err "no two entries of one name" 'twice'
ADDED=order run "$tmp/added" $quick --op order --json "$tmp/order.json"
check_rc "axes in another order" 0
"$tmp/flat" "$tmp/order.json" > "$tmp/flat.txt"
check_same "axes in another order: groups" "$(values baseline)" '"rows" "rows" "rows" "rows" '
check_same "axes in another order: records" "$(values implementation)" '"rows" "cols" "rows" "cols" '

# --- every number can be a value; NaN and infinity are null in JSON
check "added.c as C11" $CC -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. tests/cli/kb_add.c
check "added.c as C++11" $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. -x c++ tests/cli/kb_add.c
ADDED=infinite run "$tmp/added" $quick --op odd --json "$tmp/infinite.json"
check_rc "an axis with infinities" 0
build "an axis with infinities: a right file" "$tmp/flat" "$tmp/infinite.json"
"$tmp/flat" "$tmp/infinite.json" > "$tmp/flat.txt"
check_same "an axis with infinities: names" "$(values name)" \
    '"odd/impl=i/p=0.5" "odd/impl=i/p=inf" "odd/impl=i/p=-inf" "odd/impl=i/p=1.7976931348623157e+308" '
check_same "an axis with infinities: params" "$(values params | tr -d ' ')" \
    '{"p":0.5}{"p":null}{"p":null}{"p":1.7976931348623157e+308}'
ADDED=infinite run "$tmp/added" --list --op odd -a p=-inf,3
check_same "infinities on the command line" "$(tr '\n' ' ' < "$out")" "odd/impl=i/p=-inf odd/impl=i/p=3 "

# --- an axis named "dir" whose values are numbers is an ordinary axis, not a direction
ADDED=numbered run "$tmp/added" $quick --op odd --json "$tmp/dir.json"
check_rc "numbers named dir" 0
"$tmp/flat" "$tmp/dir.json" > "$tmp/flat.txt"
check_same "numbers named dir: names" "$(values name)" \
    '"odd/impl=ints/dir=1/n=7" "odd/impl=ints/dir=2/n=7" "odd/impl=reals/dir=0.25/n=7" "odd/impl=reals/dir=0.5/n=7" '
check_same "numbers named dir: values" "$(values message | calm)" '"dir is 1" "dir is 2" "dir is 0.25" "dir is 0.5" '
check_same "numbers named dir: params" "$(values params | tr -d ' ')" \
    '{"dir":1,"n":7}{"dir":2,"n":7}{"dir":0.25,"n":7}{"dir":0.5,"n":7}'
check_same "numbers named dir: direction" "$(values direction)" "null null null null "
ADDED=numbered run "$tmp/added" --list --op odd --impl ints -a dir=5
check_same "numbers named dir: -a" "$(cat "$out")" "odd/impl=ints/dir=5/n=7"

# --- benchmark functions that are never suspended, in one comparison
ADDED=returns run "$tmp/added" $quick --op turns --json "$tmp/turns.json"
check_rc "bodies that return" 0
"$tmp/flat" "$tmp/turns.json" > "$tmp/flat.txt"
check_same "bodies that return: verified" "$(values verified)" "true true "
check_same "bodies that return: compared" "$(values baseline)" '"now" "now" '
if [ "$(values verdict)" = "null null " ]; then fail "no verdict: implementations that return before their loop has ended were not compared"; else pass; fi
check_same "bodies that return: set up" "$(values message | grep -c 'again and again')" 0

# --- -a accepts values below 1, or below 0, only if the axis of the program has such a value
# takes LIST CASES, refuses LIST ERE: for the entry that ADDED selects
takes() {
    run "$tmp/added" --list --op odd -a "$1"
    check_rc "$ADDED: -a $1" 0
    check_same "$ADDED: -a $1: cases" "$(wc -l < "$out" | tr -d ' ')" "$2"
}
refuses() {
    run "$tmp/added" --list --op odd -a "$1"
    check_rc "$ADDED: -a $1" 2
    check_err "$ADDED: -a $1" "$2"
}
ADDED=zero && export ADDED
takes m=0 2
takes m=0,8 4
takes shift=-100:100:+100 6
takes n=900000000000000 4
refuses m=-1 'odd/i takes no m below 0, because no declared value is that small'
refuses m=4,-1 'm below 0'
refuses n=0 'odd/i takes no n below 1, because no declared value is that small'
refuses n=-8 'n below 1'
refuses n=0:8:+4 'n below 1'
refuses n=9100000000000000 'not a whole number of at most 15 digits'
ADDED=sizes
refuses n=0 'n below 1'
refuses m=0 'm below 1'
ADDED=sizes run "$tmp/added" --list --op odd --size edge -a m=0
check_rc "an axis whose size declares a 0" 0
unset ADDED
finish
