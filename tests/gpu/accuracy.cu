// SPDX-License-Identifier: MIT OR Unlicense
// Kernels of 1 us to 10 ms whose times are compared with the durations that CUPTI records of the same launches:
//     accuracy --json x/cold.json; accuracy --timer cupti --json x/cupti_cold.json; the same with --hot; then
//     python3 tests/gpu/accuracy.py x
// They differ in what the correction could depend on: with and without memory traffic, few and many blocks, shared memory.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
__global__ void copy(const float4* x, float4* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
__device__ float row_reduce(float v, float* shared, bool largest) {
    for (int d = 16; d; d /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, d);
        v = largest ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[0];
    for (unsigned i = 1; i < blockDim.x / 32; i++) v = largest ? fmaxf(v, shared[i]) : v + shared[i];
    return v;
}
__global__ void softmax(const float* x, float* y, int cols) {
    __shared__ float shared[32];
    const float* row = x + (size_t)blockIdx.x * cols;
    float top = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) top = fmaxf(top, row[i]);
    top = row_reduce(top, shared, true);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf(row[i] - top);
    sum = row_reduce(sum, shared, false);
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        y[(size_t)blockIdx.x * cols + i] = __expf(row[i] - top) / sum;
}
__global__ void matmul(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}
__global__ void shared_memory(float* out) {
    extern __shared__ float s[];
    for (int i = threadIdx.x; i < 40000; i += blockDim.x) s[i] = i;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[(threadIdx.x * 37) % 40000];
}

static float* filled(kb_state* kb, int64_t n) {
    float* x = KB_ALLOC(kb, float, n);
    kb_fill(kb, x, n, KB_NORMAL);
    return x;
}

KBENCH_IMPL(spin, one, KB_AXIS("cycles", 500, 1000, 3000, 7000, 20000, 100000, 1000000, 4000000, 20000000)) {
    long long cycles = kb_int(kb, "cycles");
    KB_TIME(kb) { spin<<<132, 128, 0, kb->stream>>>(cycles); }
}
KBENCH_IMPL(copy, one, KB_AXIS("kib", 16, 64, 256, 1024, 4096, 16384, 65536, 262144)) {
    size_t n = kb_int(kb, "kib") * 64;
    float *x = filled(kb, 4 * n), *y = KB_ALLOC(kb, float, 4 * n);
    KB_TIME(kb) { copy<<<(n + 255) / 256, 256, 0, kb->stream>>>((float4*)x, (float4*)y, n); }
    kb_bytes(kb, 32.0 * n);
}
KBENCH_IMPL(softmax, one, KB_AXIS("rows", 1, 32, 512, 8192)) {
    int rows = (int)kb_int(kb, "rows");
    float *x = filled(kb, rows * 4096ll), *y = KB_ALLOC(kb, float, rows * 4096ll);
    KB_TIME(kb) { softmax<<<rows, 256, 0, kb->stream>>>(x, y, 4096); }
}
KBENCH_IMPL(matmul, one, KB_AXIS("n", 64, 256, 512, 1024)) {
    int n = (int)kb_int(kb, "n");
    float *a = filled(kb, n * n), *b = filled(kb, n * n), *c = KB_ALLOC(kb, float, n*n);
    KB_TIME(kb) { matmul<<<dim3(n / 16, n / 16), dim3(16, 16), 0, kb->stream>>>(a, b, c, n); }
}
KBENCH(shared_memory) {
    float* out = KB_ALLOC(kb, float, 132 * 256);
    cudaFuncSetAttribute(shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, 164000);
    KB_TIME(kb) { shared_memory<<<132, 256, 164000, kb->stream>>>(out); }
}
KBENCH_MAIN()
