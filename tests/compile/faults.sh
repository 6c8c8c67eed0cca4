#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests launchers with invalid arguments and sizes of 0: tests/gpu/kernels.cu --faults, linked with a simulated
# CUDA runtime (runtime.cpp). In the first run, the GPU has all instructions. In the second run, the runtime reports
# that the kernels were compiled for compute capability 7.5. Launchers must then launch no kernel that needs newer
# instructions.
# only in make test-all
. tests/lib.sh

here=tests/compile
if [ ! -f kbench_kernels.cuh ]; then skip "kbench_kernels.cuh does not exist" && finish; fi
if [ -z "$NVCC" ] || ! have "$NVCC"; then skip "no nvcc" && finish; fi
if ! "$NVCC" --list-gpu-arch | grep -qx compute_75; then skip "$NVCC knows no compute_75" && finish; fi
# PTX without optimisation suffices, because only the host code matters
build "runtime.cpp" "$NVCC" -std=c++17 -O1 -c $here/runtime.cpp -o "$tmp/runtime.o"
build "kernels.cu" "$NVCC" -std=c++17 -O0 -Xcicc -O0 -gencode arch=compute_75,code=compute_75 '-DKBK_TYPES=f32\,bf16' \
    -I. --cudart none tests/gpu/kernels.cu "$tmp/runtime.o" -o "$tmp/kernels"
# faults WHAT SETTING...
faults() {
    what=$1 && shift
    run env "$@" "$tmp/kernels" --faults --count
    grep '^FAIL: ' "$out" | head -n 20 | sed "s/^FAIL: /FAIL: $what: /"
    check_rc "$what" 0
    check_out "$what" '^[1-9][0-9]{3,} passed, 0 failed'
}
faults "all instructions" RUNTIME_LOG="$tmp/log"
faults "built for 7.5" RUNTIME_COMPILED=75 RUNTIME_LOG="$tmp/log75"
check_out "built for 7.5: what is left out" '^SKIP: matmul_fwd/select needs'
finish
