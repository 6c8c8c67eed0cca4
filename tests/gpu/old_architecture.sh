#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: builds f16 kernels only for compute capability 7.5, so that the driver compiles them for this GPU. The
# results of the f16 kernels, computed on tensor cores with the instruction of compute capability 7.5, must be
# correct. Kernels that need a higher compute capability must not be launched.
. tests/lib.sh

if ! "$NVCC" --list-gpu-arch | grep -qx compute_75; then skip "$NVCC knows no compute_75" && finish; fi
build "kernels.cu" $NVCC -O3 -gencode=arch=compute_75,code=compute_75 -DKBK_TYPES=f16 '-DKBK_ONLY=attention\,matmul' \
    -I. tests/gpu/kernels.cu -o "$tmp/kernels"
run "$tmp/kernels" --op attention --variant warpmma --quick
check_rc "attention" 0
check_out "attention" '^[1-9][0-9]* passed, 0 failed'
run "$tmp/kernels" --op matmul --variant warpmma --sanitize
check_rc "matmul, small" 0
check_out "matmul, small" '^[1-9][0-9]* passed, 0 failed'
# Kernels that need more than compute capability 7.5 return an error and are not launched. The run with --faults
# also tests sizes of 0 and null pointers.
run "$tmp/kernels" --faults --jobs 1
check_rc "faults" 0
check_out "faults" '^[1-9][0-9]* passed, 0 failed'
check_out "faults: what is left out" '^SKIP: matmul_fwd/select needs'
finish
