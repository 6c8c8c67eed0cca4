#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: the times that kbench prints must agree with CUPTI's durations, and for timed blocks of several kernels
# with the kernels' own timestamps.
. tests/lib.sh

build "shapes.cu" $NVCC -O3 $ARCHFLAGS -I. tests/gpu/shapes.cu -o "$tmp/shapes"
if ! have python3; then
    skip "comparison: no python3"
    finish
fi
run python3 tests/gpu/shapes.py "$tmp/shapes" --processes 2 --keep "$tmp/records" -- --max-time 0.1s
if grep -q 'libcupti.so is not found' "$err"; then
    skip "libcupti.so is not found; LD_LIBRARY_PATH can name its folder"
    finish
fi
cat "$out"
check_rc "nine of ten within the bar, none beyond 2.5 times it" 0
finish
