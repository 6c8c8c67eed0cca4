#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the axes of the suite without CUDA and without kernels. Layouts and rectangular sizes of matrix products,
# and p of dropout, must reach the oracles.
. tests/lib.sh
. tests/cli/kit.lib

suite
# the Makefile compiles the suite in two parts; each operation must be in one of them
if everything; then
    for part in 1 2; do build "part $part" $LEAN_CC -std=c11 -O0 -DSUITE_PART=$part -I. -x c -c examples/suite.cu -o "$tmp/part$part.o"; done
    build "both parts" $CC "$tmp/part1.o" "$tmp/part2.o" -o "$tmp/parts" $libs
    for what in --list-ops "--list --size small"; do
        "$suite" $what > "$tmp/of_whole"
        "$tmp/parts" $what > "$tmp/of_parts"
        check "both parts: $what" cmp "$tmp/of_whole" "$tmp/of_parts"
        if [ "$(wc -l < "$tmp/of_parts")" -gt 30 ]; then pass; else fail "$what: $(wc -l < "$tmp/of_parts") lines"; fi
    done
fi

# values AXIS OPTIONS...: prints the values of the axis in the selected cases
values() {
    name=$1 && shift
    "$suite" --list "$@" | sed -n "s,.*/$name=\([^/]*\).*,\1,p" | sort -u | tr '\n' ' '
}
for op in matmul bmm; do
    for impl in naive,regblock oracle; do
        check_same "$op, $impl: layouts" "$(values layout --op $op --impl $impl)" "NN NT TN "
        "$suite" --list --op $op --impl $impl --size rectangular > "$tmp/list"
        check_same "$op, $impl: rectangles are not squares" \
            "$(sed -n 's,.*/M=\([0-9]*\)/N=\([0-9]*\)/K=\([0-9]*\).*,\1 \2 \3,p' "$tmp/list" | awk '$1 == $2 && $2 == $3' | wc -l | tr -d ' ')" 0
        if [ -s "$tmp/list" ]; then pass; else fail "$op, $impl: no rectangles"; fi
    done
done
check_same "matmul_e4m3: layouts" "$(values layout --op matmul_e4m3)" "NT "
check_same "-a M, N and K" \
    "$("$suite" --list --op matmul --impl naive --size rectangular --dtype f32 -a M=8 -a N=16:64:*2 -a K=5 -a layout=TN | sed 's,.*/dtype=,,' | tr '\n' ' ')" \
    "f32/layout=TN/M=8/N=16/K=5 f32/layout=TN/M=8/N=32/K=5 f32/layout=TN/M=8/N=64/K=5 "
# problem sizes of matrix products; a quick run omits them
rectangles() { "$suite" --list --op matmul --impl naive --dtype f32 -a layout=NT "$@" | sed -n 's,.*/M=\([0-9]*\)/N=\([0-9]*\)/K=\([0-9]*\).*,\1x\2x\3,p' | sort; }
rectangles --size large > "$tmp/large"
check_same "matmul: large" "$(tr '\n' ' ' < "$tmp/large")" \
    "16384x4096x4096 16x8192x8192 256x256x131072 4096x4096x16384 8192x14336x4096 8192x50304x768 8192x8192x1024 8192x8192x8192 8205x5921x2949 "
rectangles --fast > "$tmp/quick"
check_same "a quick run has none of them" "$(grep -cxF -f "$tmp/large" "$tmp/quick") of $(wc -l < "$tmp/quick" | tr -d ' ')" "0 of 4"
check_same "dropout: p" "$(values p --op dropout)" "0.1 "
check_same "dropout: -a p" "$(values p --op dropout -a p=0,0.25,1)" "0 0.25 1 "

# --- the oracle receives the shape, so the record has the FLOPs of that shape
short="--iters 3 --warmup 1 --no-progress"
run "$suite" $short --op matmul --impl oracle --size rectangular -a M=6 -a N=10 -a K=14 --json "$tmp/r.json"
check_rc "matmul of 6 x 10 x 14" 0
check_same "matmul of 6 x 10 x 14: operations, in each layout" "$(grep -o '"flops": 1680[,}]' "$tmp/r.json" | wc -l | tr -d ' ')" 3
run "$suite" $short --op bmm --impl oracle --size rectangular -a batch_size=2 -a M=6 -a N=10 -a K=14 --json "$tmp/r.json"
check_same "bmm of 2 x 6 x 10 x 14" "$(grep -o '"flops": 3360[,}]' "$tmp/r.json" | wc -l | tr -d ' ')" 3
run "$suite" $short --op matmul_e4m3 --impl oracle --size rectangular -a M=6 -a N=10 -a K=14 --json "$tmp/r.json"
check_same "matmul_e4m3 of 6 x 10 x 14" "$(grep -o '"flops": 1680[,}]' "$tmp/r.json" | wc -l | tr -d ' ')" 1
run "$suite" $short --op matmul_e4m3 --impl oracle --size small -a layout=TN
check_rc "a layout that it does not have" 1
check_out "a layout that it does not have" "matmul_e4m3 supports only layout=NT"
run "$suite" $short --op matmul --impl oracle --size small -a layout=NX
check_rc "a layout that is none" 1
check_out "a layout that is none: which there are" "layout=NX is unknown; it is NN, NT or TN"
run "$suite" $short --op dropout --impl oracle --size small -a p=0,0.5,1
check_rc "dropout of none, half and all" 0
run "$suite" $short --op dropout --impl oracle --size small -a p=-1,2
check_rc "dropout: no probability" 1
check_out "dropout: no probability" "p=2 is not a probability"
check_out "dropout: no probability" " 0 ok"
run "$suite" $short --op attention --impl oracle --size small -a causal=3
check_rc "a causal that is neither 0 nor 1" 1
check_out "a causal that is neither 0 nor 1" 'causal=3 is neither 0 nor 1'
run "$suite" $short --op sum --impl oracle --size small -a dir=bwd
check_rc "a direction that the oracle does not compute" 1
check_out "a direction that the oracle does not compute" 'this implementation computes dir=run; select'
finish
