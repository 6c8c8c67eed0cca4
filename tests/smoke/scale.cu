// SPDX-License-Identifier: MIT OR Unlicense
// The benchmark that make smoke-gpu times with every timer and cache mode. With -DLIBRARY, a library with the launcher
// that python_times.py times. The data of 32 MiB fits the L2 of an H100, so that hot and cold times differ.
#include <cuda_runtime.h>

static __global__ void scale(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 0.5f * x[i];
}
extern "C" void launch_scale(const float* x, float* y, int n, cudaStream_t stream) {
    scale<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}

#ifndef LIBRARY
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

KBENCH(scale) {
    int n = 1 << 22;
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n), *want = KB_ALLOC_HOST(kb, float, n);
    kb_fill(kb, x, n, KB_NORMAL);
    kb_to_host(kb, want, x, sizeof(float) * n);
    for (int i = 0; i < n; ++i) want[i] *= 0.5f;
    KB_TIME(kb) { launch_scale(x, y, n, kb->stream); }
    kb_bytes(kb, 2.0 * sizeof(float) * n);
    kb_check(kb, y, want, n, 0.0);
}
KBENCH_MAIN()
#endif
