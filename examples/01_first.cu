// SPDX-License-Identifier: MIT OR Unlicense
/*  The five lines: a kernel, its data, the block to be timed, and the bytes it moves.

    nvcc -O3 -I. examples/01_first.cu -o 01_first && ./01_first

    It prints the machine, then one line: the median time of a launch with the data not in cache, how well that
    median is known, GB/s, and the share of what this GPU copies at best (here an H200):

                           time us     +-     GB/s   roof  mem MiB
    scale                    48.45  0.38%     2770  65.3%      132 UV

    UV is explained below the table: UNVERIFIED, no kb_check looked at y. 03_compare.cu shows how to.         */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i];
}

KBENCH(scale) {
    int n = 1 << 24;
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);  // untimed, tracked, freed for you
    kb_fill(kb, x, n, KB_NORMAL);                                    // seeded, the same on every machine
    KB_TIME(kb) { scale<<<n / 256, 256, 0, kb->stream>>>(x, y, n); } // timed, waited for, checked
    kb_bytes(kb, 2.0 * sizeof(float) * n);                           // so GB/s and % of the machine can be said
}
KBENCH_MAIN()
