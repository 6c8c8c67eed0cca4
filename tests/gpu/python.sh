#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU with PyTorch: kbench.py measures the same time of a kernel as a C program, finds no difference between
# equal functions, and flags operations that a function must not contain.
. tests/lib.sh

: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    skip "no PyTorch with CUDA ($PYTHON)"
    finish
fi
build "a program" $NVCC -O3 $ARCHFLAGS -I. -DPROGRAM tests/gpu/python_kernel.cu -o "$tmp/program"
build "a library" $NVCC -O3 $ARCHFLAGS -Xcompiler -fPIC -shared tests/gpu/python_kernel.cu -o "$tmp/kernel.so"
for i in 1 2 3; do
    run "$tmp/program" --no-progress --json "$tmp/c$i.json"
    check_rc "the program" 0
done
XDG_CACHE_HOME=$PWD/$tmp/cache PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE
run "$PYTHON" tests/gpu/python.py "$tmp/kernel.so" "$tmp/c1.json" "$tmp/c2.json" "$tmp/c3.json"
grep -vE '^(FAIL|SKIP): ' "$out" # the table, for the log
counted "python.py"
finish
