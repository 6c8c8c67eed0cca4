#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU with PyTorch: the Python examples run unchanged and print their results. EXAMPLES_OUT is a folder for
# their tables and records.
. tests/lib.sh

: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    skip "no PyTorch with CUDA ($PYTHON)"
    finish
fi
XDG_CACHE_HOME=$PWD/$tmp/cache PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE NVCC CC
unset KBENCH_KERNELS_LIB KBENCH_KERNELS_CUH KBENCH_NO_CUDA
mkdir -p "${EXAMPLES_OUT:=$PWD/$tmp}"
for example in attention_matrix layers; do
    start=$(date +%s)
    run "$PYTHON" "examples/python/$example.py" --json "$EXAMPLES_OUT/$example.json"
    check_rc "$example" 0
    echo "$example: $(($(date +%s) - start)) s, what was built included"
    cp "$out" "$EXAMPLES_OUT/$example.txt"
    cat "$out"
    grep -v '^kbench: building' "$err"
    check "$example: its records" "$PYTHON" -c '
import sys, kbench
rows = kbench.load(sys.argv[1])
assert len(rows) > 20 and all(r.time_ms for r in rows), [str(r) for r in rows if not r.time_ms]
assert all(r.verified for r in rows), [str(r) for r in rows if not r.verified]
assert rows.figure("speed")._repr_svg_().startswith("<svg")' "$EXAMPLES_OUT/$example.json"
done
finish
