#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: on launch shapes that fitted nothing, corrected times agree with CUPTI's durations, and with the stamps of
# bodies of several kernels; in short: fewer processes, and less time a case, than shapes.py takes by itself.
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
