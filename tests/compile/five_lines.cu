// SPDX-License-Identifier: MIT OR Unlicense
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
__global__ void scale(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 0.5f * x[i]; }

KBENCH(scale) {
    // not timed; kbench tracks and frees the memory
    int n = 1 << 24; float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    // random values from a seed, equal on every machine
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME(kb) { scale<<<n / 256, 256, 0, kb->stream>>>(x, y, n); }                   // timed, synced, checked
    kb_bytes(kb, 2.0 * sizeof(float) * n);                                             // enables GB/s and % of the peak
}
KBENCH_MAIN()
