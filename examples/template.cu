// SPDX-License-Identifier: MIT OR Unlicense
/*  One CUDA kernel. Copy this file and kbench.h into a folder, and change the lines marked "yours".

    nvcc -O3 template.cu -o template && ./template                                                            */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

__global__ void square(const float* x, float* y, int n) { // <- yours: the kernel
    int i = blockIdx.x * blockDim.x + threadIdx.x;        // <- yours
    if (i < n) y[i] = x[i] * x[i];                        // <- yours
}

KBENCH(square) {                                                    // <- yours: its name in the table
    int n = 1 << 24;                                                // <- yours: how much data
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n); // <- yours: on the GPU, freed for you
    kb_fill(kb, x, n, KB_NORMAL);                                   // <- yours: what is in it
    KB_TIME(kb) {
        square<<<(n + 255) / 256, 256, 0, kb->stream>>>(x, y, n); // <- yours: the launch, on kb->stream
    }
    kb_bytes(kb, 2.0 * sizeof(float) * n); // <- yours: what has to be read and written; kb_flops likewise

    // What is right, computed on the host from the input as the GPU had it.
    float* in = KB_ALLOC_HOST(kb, float, n);
    double* want = KB_ALLOC_HOST(kb, double, n);
    if (!in || !want) return; // without memory the case gets a word, OOM, and no time
    kb_to_host(kb, in, x, sizeof(float) * n);
    for (int i = 0; i < n; i++) want[i] = (double)in[i] * in[i]; // <- yours: the same, plainly
    kb_check(kb, y, want, n, 1e-6); // |y - want| <= 1e-6 * (1 + |want|), or there is no time
}
KBENCH_MAIN()
