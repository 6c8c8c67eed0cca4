#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU with PyTorch: the judge names every planted trick and passes every honest kernel. PYTHON is the interpreter;
# JUDGE_OUT a folder for the table as judge.md and the verdicts as judge.json.
. tests/lib.sh

: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    skip "no PyTorch with CUDA ($PYTHON)"
    finish
fi
XDG_CACHE_HOME=$PWD/$tmp/cache PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE NVCC CC
unset KBENCH_KERNELS_LIB KBENCH_KERNELS_CUH KBENCH_NO_CUDA
# of the tricks' processes each has a home of its own: what Triton compiles is kept in one place
TRITON_CACHE_DIR=$PWD/$tmp/triton
export TRITON_CACHE_DIR
mkdir -p "$tmp/scratch" "${JUDGE_OUT:=$PWD/$tmp}"
run "$PYTHON" tests/gpu/judge.py "$tmp/scratch" --markdown "$JUDGE_OUT/judge.md" --json "$JUDGE_OUT/judge.json"
grep -vE '^(FAIL|SKIP): ' "$out" # the table, for the log
grep -v '^kbench: building' "$err"
counted "judge.py"
finish
