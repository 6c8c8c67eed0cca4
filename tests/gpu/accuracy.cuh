// SPDX-License-Identifier: MIT OR Unlicense
// The kernels of accuracy.cu for other harnesses: accuracy.cu runs them with kbench, peers.cu with others.
#include <cuda_runtime.h>

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

// A kernel with its data.
enum work_kernel { SPIN, COPY, SOFTMAX, MATMUL, SHARED_MEMORY };
struct work {
    work_kernel kernel;
    long long size; // cycles, KiB, rows of 4096, side of a square; of shared_memory none
    float *a, *b, *c;
};
#define SPIN_CYCLES 500, 1000, 3000, 7000, 20000, 100000, 1000000, 4000000, 20000000
#define COPY_KIB 16, 64, 256, 1024, 4096, 16384, 65536, 262144
#define SOFTMAX_ROWS 1, 32, 512, 8192
#define MATMUL_SIDES 64, 256, 512, 1024

// numbers of elements of a, b and c; 0: the kernel does not use the array
static void work_elements(work_kernel kernel, long long size, long long elements[3]) {
    long long in = kernel == COPY ? size * 256 : kernel == SOFTMAX ? size * 4096 : kernel == MATMUL ? size * size : 0;
    elements[0] = in;
    elements[1] = kernel == SHARED_MEMORY ? 132 * 256 : in;
    elements[2] = kernel == MATMUL ? in : 0;
}

static void work_prepare(const work& w) {
    if (w.kernel == SHARED_MEMORY)
        cudaFuncSetAttribute(shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, 164000);
}

static void work_launch(const work& w, cudaStream_t stream) {
    int n = (int)w.size;
    size_t units = (size_t)w.size * 64;
    switch (w.kernel) {
    case SPIN: spin<<<132, 128, 0, stream>>>(w.size); break;
    case COPY: copy<<<(units + 255) / 256, 256, 0, stream>>>((const float4*)w.a, (float4*)w.b, units); break;
    case SOFTMAX: softmax<<<n, 256, 0, stream>>>(w.a, w.b, 4096); break;
    case MATMUL: matmul<<<dim3(n / 16, n / 16), dim3(16, 16), 0, stream>>>(w.a, w.b, w.c, n); break;
    case SHARED_MEMORY: shared_memory<<<132, 256, 164000, stream>>>(w.b); break;
    }
}
