// SPDX-License-Identifier: MIT OR Unlicense
// Implementations whose difference in time is known. Each operation has four implementations with identical source
// ("same_0", the baseline, to "same_3"), and two that take 2 and 5 % longer, because the thread block that ends
// last waits before it ends. The kernels move memory, multiply, reduce, add atomically and gather, in 1 us to 1
// ms.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

// The block that ends last waits for a fixed share of the time that the kernel has taken so far.
struct tail {
    unsigned* ended;
    unsigned long long* began;
    int percent;
};

__device__ unsigned long long nanoseconds() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__device__ void head_of(tail t) {
    if (threadIdx.x == 0) atomicMin(t.began, nanoseconds());
}

__device__ void tail_of(tail t) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(t.ended, 1) != gridDim.x - 1) return;
    unsigned long long now = nanoseconds(), wait = (now - *t.began) * t.percent / 100;
    long long from = clock64(), cycles = (long long)(wait * 1.98);
    while (t.percent && clock64() - from < cycles) {}
    *t.ended = 0;
    *t.began = ~0ull;
}

template <int Which> __global__ void axpy_k(const float* x, float* y, int n, tail t) {
    head_of(t);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 0.5f * x[i] + 1.0f;
    tail_of(t);
}

template <int Which> __global__ void sums_k(const float* x, float* y, int n, tail t) {
    head_of(t);
    __shared__ float part[8];
    for (int row = blockIdx.x; row < n / 1024; row += gridDim.x) {
        float sum = 0;
        for (int i = threadIdx.x; i < 1024; i += blockDim.x) sum += x[(size_t)row * 1024 + i];
        for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) y[row] = part[0] + part[1] + part[2] + part[3] + part[4] + part[5] + part[6] + part[7];
        __syncthreads();
    }
    tail_of(t);
}

template <int Which> __global__ void product_k(const float* x, float* y, int n, tail t) {
    head_of(t);
    __shared__ float a[16][17], b[16][17];
    int r = threadIdx.x / 16, c = threadIdx.x % 16, tiles = n / 16;
    for (int tile = blockIdx.x; tile < tiles * tiles; tile += gridDim.x) {
        int row = tile / tiles * 16 + r, column = tile % tiles * 16 + c;
        float sum = 0;
        for (int k = 0; k < n; k += 16) {
            a[r][c] = x[row * n + k + c];
            b[r][c] = x[(k + r) * n + column];
            __syncthreads();
            for (int i = 0; i < 16; i++) sum += a[r][i] * b[i][c];
            __syncthreads();
        }
        y[row * n + column] = sum;
    }
    tail_of(t);
}

template <int Which> __global__ void histogram_k(const int* x, int* bins, int n, tail t) {
    head_of(t);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[x[i] & 4095], 1);
    tail_of(t);
}

template <int Which> __global__ void gather_k(const int* x, const float* from, float* y, int n, tail t) {
    head_of(t);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = from[(unsigned)x[i] % (unsigned)n];
    tail_of(t);
}

static unsigned blocks_for(int n, int each) {
    int blocks = (n + each - 1) / each, most = 132 * 16;
    return (unsigned)(blocks < most ? blocks : most);
}

static tail make_tail(kb_state* kb, int percent) {
    tail t = { KB_ALLOC(kb, unsigned, 1), KB_ALLOC(kb, unsigned long long, 1), percent };
    unsigned zero = 0;
    unsigned long long never = ~0ull;
    kb_from_host(kb, t.ended, &zero, sizeof zero);
    kb_from_host(kb, t.began, &never, sizeof never);
    return t;
}

template <int Which, int Percent> static void axpy(kb_state* kb) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    tail t = make_tail(kb, Percent);
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME(kb) { axpy_k<Which><<<blocks_for(n, 256), 256, 0, kb->stream>>>(x, y, n, t); }
    kb_bytes(kb, 8.0 * n);
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

template <int Which, int Percent> static void sums(kb_state* kb) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n / 1024);
    tail t = make_tail(kb, Percent);
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME(kb) { sums_k<Which><<<blocks_for(n, 1024), 256, 0, kb->stream>>>(x, y, n, t); }
    kb_bytes(kb, 4.0 * n);
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

template <int Which, int Percent> static void product(kb_state* kb) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n*n), *y = KB_ALLOC(kb, float, n*n);
    tail t = make_tail(kb, Percent);
    kb_fill(kb, x, n * n, KB_NORMAL);
    KB_TIME(kb) { product_k<Which><<<blocks_for(n * n, 256), 256, 0, kb->stream>>>(x, y, n, t); }
    kb_flops(kb, 2.0 * n * n * n);
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

template <int Which, int Percent> static void histogram(kb_state* kb) {
    int n = (int)kb_int(kb, "n");
    int *x = KB_ALLOC(kb, int, n), *bins = KB_ALLOC(kb, int, 4096);
    tail t = make_tail(kb, Percent);
    kb_fill(kb, x, n, KB_UNIFORM);
    kb_fill(kb, bins, 4096, KB_ZERO);
    KB_TIME(kb) { histogram_k<Which><<<blocks_for(n, 256), 256, 0, kb->stream>>>(x, bins, n, t); }
    kb_bytes(kb, 4.0 * n);
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

template <int Which, int Percent> static void gather(kb_state* kb) {
    int n = (int)kb_int(kb, "n");
    int* x = KB_ALLOC(kb, int, n);
    float *from = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    tail t = make_tail(kb, Percent);
    kb_fill(kb, x, n, KB_UNIFORM);
    kb_fill(kb, from, n, KB_NORMAL);
    KB_TIME(kb) { gather_k<Which><<<blocks_for(n, 256), 256, 0, kb->stream>>>(x, from, y, n, t); }
    kb_bytes(kb, 12.0 * n);
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

#define SIZES                                                                                                       \
    KB_AXIS("n", 1 << 12, 1 << 13, 1 << 14, 3 << 14, 1 << 16, 3 << 16, 1 << 18, 3 << 18, 1 << 20, 3 << 20, 1 << 22, \
            3 << 22, 1 << 24, 3 << 24)
#define SIDES KB_AXIS("n", 16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024)
#define RIVALS(op, axis)                              \
    KBENCH_IMPL(op, same_0, axis) { op<0, 0>(kb); }   \
    KBENCH_IMPL(op, same_1, axis) { op<1, 0>(kb); }   \
    KBENCH_IMPL(op, same_2, axis) { op<2, 0>(kb); }   \
    KBENCH_IMPL(op, same_3, axis) { op<3, 0>(kb); }   \
    KBENCH_IMPL(op, slower_2, axis) { op<4, 2>(kb); } \
    KBENCH_IMPL(op, slower_5, axis) { op<5, 5>(kb); }

RIVALS(axpy, SIZES)
RIVALS(sums, SIZES)
RIVALS(product, SIDES)
RIVALS(histogram, SIZES)
RIVALS(gather, SIZES)

KBENCH_MAIN()
