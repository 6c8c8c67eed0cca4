// SPDX-License-Identifier: MIT OR Unlicense
/*  A first benchmark: a kernel, its data, the timed block, a check of the result, and the number of bytes that the
    kernel moves.

    nvcc -O3 -I. examples/01_first.cu -o 01_first && ./01_first

    The program prints the machine and one row. The row has the median time of a launch with a cold L2 cache, half the
    width of its 95 % confidence interval, and the bandwidth. The column "roof" is the bandwidth in percent of the copy
    bandwidth of this GPU, which kbench measures. The last column is the device memory.        */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i];
}

KBENCH(scale) {
    int n = 1 << 24;
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);  // GPU buffers, which kbench frees
    kb_fill(kb, x, n, KB_NORMAL);                                    // seeded: the same values on every machine
    float* hx = kb_host(kb, x);                                      // a copy on the host, for the check
    KB_TIME(kb) { scale<<<n / 256, 256, 0, kb->stream>>>(x, y, n); } // the only part that is timed
    KB_CHECK_EACH(kb, y, n, i, 0.5 * hx[i], 1e-6);                   // a wrong result gets no time
    kb_bytes(kb, 2.0 * sizeof(float) * n);                           // for GB/s and the share of the peak bandwidth
}
KBENCH_MAIN()
