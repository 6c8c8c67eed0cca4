#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that registering, planning and listing many benchmarks takes time proportional to their number.
. tests/lib.sh
. tests/cli/kit.lib

plain many tests/cli/many_benchmarks.c
# takes WHAT LIMIT COMMAND...: checks that the command needs at most LIMIT ms of processor time, in at least one of
# up to three runs
takes() {
    what=$1 limit=$2 best=100000 && shift 2
    for i in 1 2 3; do
        times > "$tmp/before"
        run "$@"
        times > "$tmp/after"
        took=$(cat "$tmp/before" "$tmp/after" | sed -n '2p; 4p' | tr ms '  ' | awk '{ t = 1000 * ($1 * 60 + $2 + $3 * 60 + $4) - t } END { printf "%d", t }')
        [ "$took" -lt $best ] && best=$took
        [ $best -gt $limit ] || break
    done
    check_rc "$what" 0
    if [ $best -le $limit ]; then pass; else fail "$what takes $best ms, bound $limit ms"; fi
}
count() { wc -l < "$out" | tr -d ' '; }
takes "--list of 10,000 operations" 200 env MANY=10000 PEERS=0 "$tmp/many" --list
check_same "--list of 10,000 operations: cases" "$(count)" 20000
check_same "--list: the order they were added in" "$(sed 's,/.*,,' "$out" | uniq | head -n 3 | tr '\n' ' ')" "op0 op1 op2 "
takes "--list-ops of 10,000 operations" 200 env MANY=10000 PEERS=0 "$tmp/many" --list-ops
check_same "--list-ops of 10,000 operations: lines" "$(count)" 10000
takes "--list-sizes of 10,000 operations" 200 env MANY=10000 PEERS=0 "$tmp/many" --list-sizes
check_same "--list-sizes of 10,000 operations: lines" "$(count)" 20000
takes "--list of 10,000 implementations" 200 env MANY=0 PEERS=10000 "$tmp/many" --list
check_same "--list of 10,000 implementations: cases" "$(count)" 10000
takes "--list-ops of 10,000 implementations" 200 env MANY=0 PEERS=10000 "$tmp/many" --list-ops
check_same "--list-ops of 10,000 implementations: words" "$(wc -w < "$out" | tr -d ' ')" 10001
takes "one of 10,000 by its name" 200 env MANY=10000 PEERS=0 "$tmp/many" --list --op op9999
check_same "one of 10,000 by its name" "$(tr '\n' ' ' < "$out")" \
    "op9999/impl=default/rows=1/cols=2 op9999/impl=default/rows=64/cols=2 op9999/impl=default/rows=64/cols=4 "
takes "--list of 100,000 cases" 700 env MANY=50 PEERS=0 "$tmp/many" --list -a n=1:4000
check_same "--list of 100,000 cases: lines" "$(count)" 100075
takes "--list-sizes of 100,000 cases" 700 env MANY=50 PEERS=0 "$tmp/many" --list-sizes -a n=1:4000
run env MANY=10000 PEERS=0 "$tmp/many" --op op9998 --iters 3 --warmup 1 --no-progress
check_rc "a run of one of 10,000" 0
check_out "a run of one of 10,000" '^op9998 '

# --- contents of the lists
cat > "$tmp/lists.c" << 'end'
#include <math.h>
#include "kbench.h"
#define SHAPE KB_AXIS_STR("dir", "fwd", "f16"), KB_DTYPE("f32", "f16"), KB_AXIS("n", 1), KB_AXIS_REAL("p", 0.5, INFINITY), \
    KB_AXIS_STR("mode", "a", "b")
KBENCH_IMPL(op, f32, SHAPE) { KB_TIME(kb) { kb_keep(kb); } }
KBENCH_IMPL(op, fwd, SHAPE) { KB_TIME(kb) { kb_keep(kb); } }
KBENCH_IMPL(op, g32, SHAPE) { KB_TIME(kb) { kb_keep(kb); } }
KBENCH_MAIN()
end
program lists "$tmp/lists.c"
run "$tmp/lists" --list-ops
check_same "--list-ops: an implementation that is named like a dtype or a direction" "$(cat "$out")" \
    "op fwd f16  f32 f16  f32 fwd g32"
run "$tmp/lists" --list-sizes
check_same "--list-sizes: every axis that has a value of its own" "$(tr -s ' ' < "$out" | tr '\n' ';')" \
    "op - n=1 p=0.5 mode=a;op - n=1 p=0.5 mode=b;op - n=1 p=inf mode=a;op - n=1 p=inf mode=b;"
finish
