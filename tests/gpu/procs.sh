#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: kbench measures confidence intervals of 16 cases, cold and hot. In addition to the process that
# measured an interval, 15 processes with other buffer placements measure each case. With --procs 5, at least 90 %
# of the intervals must contain the median of the 15 processes; with a single process, at least 75 %. No constant
# of kbench was fitted to the tested kernels.
. tests/lib.sh

if ! have python3; then
    skip "no python3"
    finish
fi
build "shapes.cu" $NVCC -O3 $ARCHFLAGS -I. tests/gpu/shapes.cu -o "$tmp/shapes"
# the program measures many cases, 16 cold and 16 hot, because starting a process takes as long as measuring a few
# cases
kernels=cluster,registers,shared,odd_blocks,waves,transpose,stencil,atomics,gather,chase,strided,row_sums
check_same "kernels" "$("$tmp/shapes" --list --op $kernels | wc -l | tr -d ' ')" 32
run python3 tests/gpu/procs.py "$tmp/shapes" --keep "$tmp/records" -- --max-time 30ms --op $kernels
cat "$out"
check_rc "intervals hold what others measure" 0
finish
