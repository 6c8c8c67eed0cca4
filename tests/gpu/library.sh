#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU with PyTorch: launches every kernel from Python, tests its gradients, and compares the results with
# PyTorch.
. tests/lib.sh

: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    skip "no PyTorch with CUDA ($PYTHON)"
    finish
fi
XDG_CACHE_HOME=$PWD/$tmp/cache PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE NVCC
unset KBENCH_KERNELS_LIB KBENCH_KERNELS_CUH KBENCH_NO_CUDA
run "$PYTHON" tests/gpu/library.py
grep -vE '^(FAIL|SKIP): ' "$out" # the table, for the log
grep -v '^kbench: building' "$err"
counted "library.py"
finish
