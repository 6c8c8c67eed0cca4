#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: examples 05 and 06 and the programs of tests/extract.py are linked with compiled kernels. Each program
# must pass its check and get a time. The object file contains only softmax and matmul, because these two
# operations compile in a minute.
. tests/lib.sh

fast="--fast --no-color --no-progress"
include=$(cuda_headers)
build "kbench.o" $CC -O2 -x c -DKBENCH_IMPLEMENTATION -DKBENCH_CUDA -I"$include" -c kbench.h -o "$tmp/kbench.o"
build "kbench_kernels.o" $NVCC -std=c++17 -O1 $ARCHFLAGS '-DKBK_ONLY=softmax\,matmul' '-DKBK_VARIANTS=naive\,online\,warptile\,regblock\,cublas' \
    '-DKBK_TYPES=f32\,bf16' -DKBENCH_SHARED -x cu -c kbench_kernels.cuh -o "$tmp/kbench_kernels.o"
for example in 05_against_library 06_one_rung; do
    build "$example" $NVCC -O1 $ARCHFLAGS -I. examples/$example.cu "$tmp/kbench_kernels.o" "$tmp/kbench.o" -o "$tmp/$example"
done
timed() {
    what=$1 want=$2 && shift 2
    run "$@" $fast --json "$tmp/records.json"
    check_rc "$what" 0
    check_same "$what: right and timed" "$(python3 -c '
import json, sys
print(" ".join(r["implementation"] if r["time_ms"] and r["verified"] else "%s %s %s: %s" %
               (r["name"], r["status"], r["flags"], r["message"]) for r in json.load(open(sys.argv[1]))))' "$tmp/records.json" 2>&1)" "$want"
}
have python3 || { skip "no python3" && finish; }
timed "05_against_library" "mine warptile mine warptile" "$tmp/05_against_library" --impl mine,warptile --size small,large
timed "one_rung matmul" regblock "$tmp/06_one_rung" matmul regblock 256 128 64 TN bf16
timed "one_rung softmax" online "$tmp/06_one_rung" softmax online 300 1000
timed "one_rung, a replaced size" online "$tmp/06_one_rung" softmax online 300 1000 -a rows=64
check_same "one_rung, a replaced size: its bytes" "$(python3 -c '
import json, sys
print(*[(r["params"]["rows"], r["bytes"] / r["params"]["rows"]) for r in json.load(open(sys.argv[1]))])' "$tmp/records.json")" "(64, 4000.0)"
timed "one_rung softmax bwd" naive "$tmp/06_one_rung" softmax/bwd naive 300 1000 f32
for name in softmax/bwd/warp/f32 layernorm/bwd/ticket/bf16 embedding/bwd/sorted/f32; do
    run python3 tests/extract.py $name
    check_rc "extract.py $name" 0
    cp "$out" "$tmp/one.cu"
    build "$name" $NVCC -std=c++17 -O1 $ARCHFLAGS -I. "$tmp/one.cu" -o "$tmp/one"
    timed "$name" "$(echo $name | cut -d/ -f3)" "$tmp/one"
done
finish
