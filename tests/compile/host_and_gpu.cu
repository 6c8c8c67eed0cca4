// SPDX-License-Identifier: MIT OR Unlicense
// A CUDA program with a host benchmark. Without a GPU, the host benchmark is measured and the GPU benchmark is
// skipped.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

template <class T> __global__ void fill(T* p) { p[blockIdx.x * blockDim.x + threadIdx.x] = T(1); }

KBENCH(host_part) {
    volatile int sum = 0;
    KB_TIME_HOST(kb) {
        for (int i = 0; i < 100; ++i) sum = sum + i;
    }
}
KBENCH(gpu_part) {
    float* x = KB_ALLOC(kb, float, 1 << 20);
    KB_TIME(kb) { fill<<<4096, 256, 0, kb->stream>>>(x); }
}
KBENCH_MAIN()
