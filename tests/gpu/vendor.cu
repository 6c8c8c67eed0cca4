// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks for NVIDIA's profilers: a known number of bytes, two kernels in a block, and a copy.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

__global__ void triad(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + 3.0f * b[i];
}
__global__ void add_one(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}

KBENCH(triad) {
    int n = 1 << 26;
    float *a = KB_ALLOC(kb, float, n), *b = KB_ALLOC(kb, float, n), *c = KB_ALLOC(kb, float, n);
    kb_fill(kb, a, n, KB_NORMAL), kb_fill(kb, b, n, KB_NORMAL);
    KB_TIME(kb) { triad<<<n / 256, 256, 0, kb->stream>>>(a, b, c, n); }
    kb_bytes(kb, 3.0 * sizeof(float) * n);
    kb_flops(kb, 2.0 * n);
}
KBENCH(two) { // the second kernel works in place
    int n = 1 << 22;
    float *a = KB_ALLOC(kb, float, n), *b = KB_ALLOC(kb, float, n), *c = KB_ALLOC(kb, float, n);
    kb_fill(kb, a, n, KB_NORMAL), kb_fill(kb, b, n, KB_NORMAL);
    KB_TIME(kb) {
        triad<<<n / 256, 256, 0, kb->stream>>>(a, b, c, n);
        add_one<<<n / 256, 256, 0, kb->stream>>>(c, n);
    }
}
KBENCH(copied) {
    int n = 1 << 20;
    float *host = KB_ALLOC_PINNED(kb, float, n), *x = KB_ALLOC(kb, float, n);
    kb_expect(kb, KB_EXPECT_TRANSFER);
    KB_TIME(kb) {
        cudaMemcpyAsync(x, host, sizeof(float) * n, cudaMemcpyHostToDevice, kb->stream);
        add_one<<<n / 256, 256, 0, kb->stream>>>(x, n);
    }
}
KBENCH_MAIN()
