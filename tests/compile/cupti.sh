#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# CUPTI's structures, as kbench.h knows them, against its headers where these are.
. tests/lib.sh

include=
for folder in "${CUDA_HOME:+$CUDA_HOME/include}" "$(dirname "$(command -v "$NVCC" || echo /none/nvcc)")/../include" /usr/local/cuda/include; do
    [ -z "$include" ] && [ -f "$folder/cuda_runtime_api.h" ] && include=$folder
done
cupti=
for folder in "$include" "$include/../extras/CUPTI/include"; do
    [ -z "$cupti" ] && [ -n "$include" ] && [ -f "$folder/cupti.h" ] && cupti=$folder
done
if [ -z "$cupti" ] || ! have "$CXX"; then
    skip "no cupti.h, or no $CXX"
    finish
fi
check "structures" $CXX -std=c++11 -fsyntax-only -w -DKBENCH_CUDA -isystem "$include" -isystem "$cupti" -I. tests/compile/cupti.cpp
finish
