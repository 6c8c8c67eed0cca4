#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU with PyTorch and Triton: compares layernorm, rmsnorm and softmax with float64 at random shapes, with and
# without mean and rstd. Prints the times of the library's kernels next to the times of PyTorch and Triton.
. tests/lib.sh

: "${PYTHON:=python3}"
build "the library" $NVCC -std=c++17 -O3 $ARCHFLAGS -shared -Xcompiler -fPIC -x cu -DKBENCH_SHARED \
    '-DKBK_ONLY=layernorm\,rmsnorm\,softmax' '-DKBK_TYPES=f32\,bf16' kbench_kernels.cuh -o "$tmp/rows.so" -ldl
if everything; then shapes=24; else shapes=4; fi
run "$PYTHON" tests/gpu/norms.py "$tmp/rows.so" --op layernorm,rmsnorm,softmax,softmax/bwd --shapes $shapes
if [ "$rc" -eq 77 ]; then
    skip "$(sed 's/^SKIP: //' "$out")"
    finish
fi
cat "$out" # the table, for the log
check_rc "results" 0
finish
