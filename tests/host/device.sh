#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The pieces of the CUDA back end against a virtual GPU: needs CUDA's headers, no library of CUDA's and no GPU.
. tests/lib.sh

include=$(cuda_headers)
if [ -z "$include" ]; then
    skip "no cuda_runtime_api.h (beside nvcc, in CUDA_HOME, in /usr/local/cuda)"
    finish
fi
mkdir -p "$BUILD/test/host"
build "device.c" $CC ${TEST_CFLAGS:--O2 -g -Wall -Wextra -Werror} -DKBENCH_CUDA -isystem "$include" -I. -Itests tests/host/device.c \
    -o "$BUILD/test/host/device" $libs
exec "$BUILD/test/host/device"
