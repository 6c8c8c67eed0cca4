#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU with PyTorch: the judge flags every trick and accepts every honest kernel. JUDGE_OUT is a folder for the
# output (judge.txt), the table (judge.md) and the verdicts (judge.json). Arguments are passed to judge.py: --only
# NAME,NAME --shard 1/2 --within 110
. tests/lib.sh

: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    skip "no PyTorch with CUDA ($PYTHON)"
    finish
fi
XDG_CACHE_HOME=$PWD/$tmp/cache PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE NVCC CC
unset KBENCH_KERNELS_LIB KBENCH_KERNELS_CUH KBENCH_NO_CUDA
# each trick's process has its own home folder, so the caches of Triton and the driver are shared explicitly
TRITON_CACHE_DIR=$PWD/$tmp/triton CUDA_CACHE_PATH=$PWD/$tmp/nv
export TRITON_CACHE_DIR CUDA_CACHE_PATH
mkdir -p "$tmp/scratch" "${JUDGE_OUT:=$PWD/$tmp}"
out=$JUDGE_OUT/judge.txt err=$tmp/err rc=
"$PYTHON" tests/gpu/judge.py "$tmp/scratch" --markdown "$JUDGE_OUT/judge.md" --json "$JUDGE_OUT/judge.json" "$@" \
    2> "$err" < /dev/null | tee "$out" | awk '!/^(FAIL|SKIP): / { print; fflush() }' # at once, for the log
grep -v '^kbench: building' "$err"
counted "judge.py"
finish
