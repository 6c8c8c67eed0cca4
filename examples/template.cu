// SPDX-License-Identifier: MIT OR Unlicense
/*  One CUDA kernel. Copy this file and kbench.h into a folder, and change the lines marked "yours".

    nvcc -O3 template.cu -o template && ./template                                                            */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

__global__ void square(const float* x, float* y, int n) { // <- yours: the kernel
    int i = blockIdx.x * blockDim.x + threadIdx.x;        // <- yours
    if (i < n) y[i] = x[i] * x[i];                        // <- yours
}

KBENCH(square) {                                                    // <- yours: name of the benchmark
    int n = 1 << 24;                                                // <- yours: number of elements
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n); // <- yours: buffers; kbench frees them
    kb_fill(kb, x, n, KB_NORMAL);                                   // <- yours: the input
    float* in = kb_host(kb, x);                                     // a copy on the host, for the check
    KB_TIME(kb) {
        square<<<(n + 255) / 256, 256, 0, kb->stream>>>(x, y, n); // <- yours: the launch, on kb->stream
    }
    kb_bytes(kb, 2.0 * sizeof(float) * n); // <- yours: bytes to read and write; kb_flops for arithmetic
    // <- yours: the right value of each y[i], computed on the host. The case gets a time only if |y[i] - want| <=
    // 1e-6 * (1 + |want|) for every i.
    KB_CHECK_EACH(kb, y, n, i, (double)in[i] * in[i], 1e-6);
}
KBENCH_MAIN()
