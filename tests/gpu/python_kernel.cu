// SPDX-License-Identifier: MIT OR Unlicense
// A kernel that is timed from C and from Python: with -DPROGRAM a kbench program, otherwise a library with a
// launcher.
#include <cuda_runtime.h>

__global__ void axpy(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 0.5f * x[i] + 1.0f;
}
extern "C" void launch_axpy(const float* x, float* y, int n, cudaStream_t stream) {
    axpy<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}

#ifdef PROGRAM
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
KBENCH_IMPL(axpy, c, KB_AXIS("n", 1 << 12, 1 << 16, 1 << 20, 1 << 24)) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME(kb) { launch_axpy(x, y, n, kb->stream); }
    kb_bytes(kb, 8.0 * n);
}
KBENCH_MAIN()
#endif
