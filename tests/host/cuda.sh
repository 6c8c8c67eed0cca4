#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The CUDA back end against a virtual GPU: needs CUDA's headers, no library of CUDA's and no GPU.
. tests/lib.sh

include=$(cuda_headers)
if [ -z "$include" ]; then
    skip "no cuda_runtime_api.h (beside nvcc, in CUDA_HOME, in /usr/local/cuda)"
    finish
fi
mkdir -p "$BUILD/test/host"
# stands for the library that compute-sanitizer puts into a process
echo 'int nothing;' > "$tmp/nothing.c"
build "a library" $CC -shared -fPIC -Wl,-soname,libsanitizer-collection.so "$tmp/nothing.c" -o "$BUILD/test/host/libsanitizer-collection.so"
build "cuda.c" $CC ${TEST_CFLAGS:--O2 -g -Wall -Wextra -Werror} -DKBENCH_CUDA -isystem "$include" -I. -Itests tests/host/cuda.c \
    -o "$BUILD/test/host/cuda" $libs
exec "$BUILD/test/host/cuda"
