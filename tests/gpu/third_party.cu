// SPDX-License-Identifier: MIT OR Unlicense
/* Benchmarks third-party GPU code: CUB, Thrust, cuBLAS, cuFFT, cuRAND, cooperative launches, textures, memory that
   the benchmark function allocates, managed and mapped memory, streams that fork and join, graphs, wmma, and work
   in place. No constant of kbench was tuned on benchmarks of this file. The three implementations of an operation
   call one common function, so kbench must not report an implementation as slower or faster.

   nvcc -O3 -I. tests/gpu/third_party.cu -lcublas -lcufft -lcurand -o third_party  (without those:
   -DOTHERS_NO_LIBRARIES) */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include <algorithm>
#include <cooperative_groups.h>
#include <cub/cub.cuh>
#include <math.h>
#include <mma.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <vector>
#ifndef OTHERS_NO_LIBRARIES
#include <cublas_v2.h>
#include <cufft.h>
#include <curand.h>
#endif

#define OTHER(op, ...)                               \
    static void op##_of(kb_state* kb);               \
    KBENCH_IMPL(op, a, __VA_ARGS__) { op##_of(kb); } \
    KBENCH_IMPL(op, b, __VA_ARGS__) { op##_of(kb); } \
    KBENCH_IMPL(op, c, __VA_ARGS__) { op##_of(kb); } \
    static void op##_of(kb_state* kb)
#define SIZES KB_AXIS("n", 65536, 1048576)
// Ends the case if the call failed.
#define NEED(call)                                               \
    do {                                                         \
        int code = (int)(call);                                  \
        if (code) return kb_fail(kb, "%s gave %d", #call, code); \
    } while (0)

template <class T> static T* host(kb_state* kb, const T* x, int64_t n) {
    T* h = KB_ALLOC_HOST(kb, T, n);
    if (h) kb_to_host(kb, h, x, sizeof(T) * (size_t)n);
    return h;
}

// --- CUB, called first for the size of its workspace ---

template <class T, class F> static void by_cub(kb_state* kb, const T* x, int n, F call) {
    size_t bytes = 0;
    (void)x, (void)n;
    NEED(call((void*)NULL, bytes));
    void* room = KB_ALLOC(kb, char, (int64_t)bytes);
    KB_TIME(kb) { call(room, bytes); }
}
OTHER(scan, SIZES) {
    int n = (int)kb_int(kb, "n"), *x = KB_ALLOC(kb, int, n), *y = KB_ALLOC(kb, int, n);
    kb_fill(kb, x, n, KB_NORMAL);
    by_cub(kb, x, n, [&](void* t, size_t& b) { return cub::DeviceScan::InclusiveSum(t, b, x, y, n, kb->stream); });
    kb_bytes(kb, 8.0 * n);
    int* h = host(kb, x, n);
    for (int i = 1; h && i < n; i++) h[i] += h[i - 1];
    kb_check(kb, y, h, n, 0);
}
OTHER(sort, SIZES) {
    int n = (int)kb_int(kb, "n");
    unsigned *x = KB_ALLOC(kb, unsigned, n), *y = KB_ALLOC(kb, unsigned, n);
    kb_fill(kb, x, n, KB_UNIFORM);
    by_cub(kb, x, n,
           [&](void* t, size_t& b) { return cub::DeviceRadixSort::SortKeys(t, b, x, y, n, 0, 32, kb->stream); });
    kb_items(kb, n);
    unsigned* h = host(kb, x, n);
    if (h) std::sort(h, h + n);
    kb_check(kb, y, h, n, 0);
}
OTHER(reduce, SIZES) {
    int n = (int)kb_int(kb, "n"), *x = KB_ALLOC(kb, int, n), *y = KB_ALLOC(kb, int, 1), want = 0;
    kb_fill(kb, x, n, KB_NORMAL);
    by_cub(kb, x, n, [&](void* t, size_t& b) { return cub::DeviceReduce::Sum(t, b, x, y, n, kb->stream); });
    kb_bytes_as(kb, 4.0 * n, KB_READ);
    int* h = host(kb, x, n);
    for (int i = 0; h && i < n; i++) want += h[i];
    kb_check(kb, y, &want, 1, 0);
}
struct is_positive {
    __host__ __device__ bool operator()(int v) const { return v > 0; }
};
OTHER(select, SIZES) {
    int n = (int)kb_int(kb, "n"), *x = KB_ALLOC(kb, int, n), *y = KB_ALLOC(kb, int, n), *count = KB_ALLOC(kb, int, 1);
    kb_fill(kb, x, n, KB_NORMAL);
    by_cub(kb, x, n, [&](void* t, size_t& b) {
        return cub::DeviceSelect::If(t, b, x, y, count, n, is_positive(), kb->stream);
    });
    kb_bytes(kb, 6.0 * n);
    int *h = host(kb, x, n), k = 0;
    for (int i = 0; h && i < n; i++)
        if (h[i] > 0) h[k++] = h[i];
    kb_check(kb, count, &k, 1, 0);
    kb_check(kb, y, h, k, 0);
}

// --- one simple kernel, launched in every way ---

__global__ void scale(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i] + 1;
}
static void check_scaled(kb_state* kb, const float* x, const float* y, int n) {
    float* h = host(kb, x, n);
    for (int i = 0; h && i < n; i++) h[i] = 2 * h[i] + 1;
    kb_check(kb, y, h, n, 1e-6);
    kb_bytes(kb, 8.0 * n);
}
struct scaled {
    __host__ __device__ float operator()(float v) const { return 2 * v + 1; }
};
OTHER(transformed, SIZES) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    kb_fill(kb, x, n, KB_UNIFORM);
    KB_TIME(kb) { thrust::transform(thrust::cuda::par_nosync.on(kb->stream), x, x + n, y, scaled()); }
    check_scaled(kb, x, y, n);
}
// Thrust allocates memory and synchronizes in the timed block, so the case gets the flag ALLOC_INSIDE
OTHER(summed, SIZES) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), sum = 0;
    kb_fill(kb, x, n, KB_UNIFORM);
    KB_TIME(kb) { sum = thrust::reduce(thrust::cuda::par.on(kb->stream), x, x + n); }
    kb_check_that(kb, sum > 0.4 * n, sum, 0, "the sum is %g", sum);
}
static void replay(kb_state* kb, bool said) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n), *z = KB_ALLOC(kb, float, n);
    kb_fill(kb, x, n, KB_UNIFORM);
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    NEED(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    NEED(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    scale<<<264, 256, 0, s>>>(x, z, n);
    scale<<<264, 256, 0, s>>>(x, y, n);
    NEED(cudaStreamEndCapture(s, &graph));
    NEED(cudaGraphInstantiate(&exec, graph, 0));
    if (said) kb_expect(kb, KB_EXPECT_NO_CAPTURE);
    KB_TIME(kb) { cudaGraphLaunch(exec, kb->stream); }
    check_scaled(kb, x, y, n);
    cudaGraphExecDestroy(exec), cudaGraphDestroy(graph), cudaStreamDestroy(s);
}
OTHER(graph, SIZES) { replay(kb, true); }
// stream capture rejects a call of the block; the block is timed nevertheless, and the message names the call
OTHER(graph_unsaid, SIZES) { replay(kb, false); }
OTHER(forked, SIZES) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n), *z = KB_ALLOC(kb, float, n);
    cudaStream_t s;
    cudaEvent_t fork, join;
    kb_fill(kb, x, n, KB_UNIFORM);
    NEED(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    NEED(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    NEED(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    KB_TIME(kb) {
        cudaEventRecord(fork, kb->stream), cudaStreamWaitEvent(s, fork, 0);
        scale<<<66, 256, 0, s>>>(x, z, n);
        scale<<<66, 256, 0, kb->stream>>>(x, y, n);
        cudaEventRecord(join, s), cudaStreamWaitEvent(kb->stream, join, 0);
    }
    check_scaled(kb, x, y, n), check_scaled(kb, x, z, n);
    cudaStreamDestroy(s), cudaEventDestroy(fork), cudaEventDestroy(join);
}
OTHER(in_place, SIZES) { // a second launch continues from the result of the first
    int n = (int)kb_int(kb, "n");
    float *y = KB_ALLOC(kb, float, n), *h;
    kb_fill(kb, y, n, KB_UNIFORM);
    h = host(kb, y, n);
    KB_TIME(kb) { scale<<<264, 256, 0, kb->stream>>>(y, y, n); }
    for (int i = 0; h && i < n; i++) h[i] = 2 * h[i] + 1;
    kb_check(kb, y, h, n, 1e-6);
    kb_bytes(kb, 8.0 * n);
}
// Times work on memory that kbench did not allocate: allocated by the benchmark function, managed memory, or host
// memory.
static void elsewhere(kb_state* kb, int where) {
    int n = (int)kb_int(kb, "n");
    size_t bytes = sizeof(float) * (size_t)n;
    float *x, *y;
    std::vector<float> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = (float)((uint32_t)i * 2654435761u >> 8) / 16777216;
    NEED(where == 0 ? cudaMalloc(&x, bytes) : where == 1 ? cudaMallocManaged(&x, bytes) : cudaMallocHost(&x, bytes));
    NEED(where == 1 ? cudaMallocManaged(&y, bytes) : cudaMalloc(&y, bytes));
    NEED(cudaMemcpy(x, in.data(), bytes, cudaMemcpyDefault));
    KB_TIME(kb) { scale<<<264, 256, 0, kb->stream>>>(x, y, n); }
    kb_bytes(kb, 8.0 * n);
    NEED(cudaMemcpy(out.data(), y, bytes, cudaMemcpyDefault));
    double off = 0;
    for (int i = 0; i < n; i++) off = fmax(off, fabs(2.0 * in[i] + 1 - out[i]));
    kb_check_that(kb, off < 1e-6, off, 1e-6, "off by %g", off);
    where == 2 ? cudaFreeHost(x) : cudaFree(x);
    cudaFree(y);
}
OTHER(own_memory, SIZES) { elsewhere(kb, 0); }
OTHER(managed, SIZES) { elsewhere(kb, 1); }
OTHER(of_the_host, SIZES) { elsewhere(kb, 2); }

// --- kernels ---

__global__ void count(const unsigned* x, unsigned* h, int n) {
    __shared__ unsigned s[256];
    s[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&s[x[i] & 255], 1);
    __syncthreads();
    atomicAdd(&h[threadIdx.x], s[threadIdx.x]);
}
OTHER(histogram, SIZES) { // a memset, then a kernel
    int n = (int)kb_int(kb, "n");
    unsigned *x = KB_ALLOC(kb, unsigned, n), *y = KB_ALLOC(kb, unsigned, 256), want[256] = { 0 };
    kb_fill(kb, x, n, KB_UNIFORM);
    KB_TIME(kb) {
        cudaMemsetAsync(y, 0, sizeof want, kb->stream);
        count<<<264, 256, 0, kb->stream>>>(x, y, n);
    }
    kb_bytes_as(kb, 4.0 * n, KB_READ);
    unsigned* h = host(kb, x, n);
    for (int i = 0; h && i < n; i++) want[h[i] & 255]++;
    kb_check(kb, y, want, 256, 0);
}
__global__ void grid_sum(const float* x, float* part, float* y, int n) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    __shared__ float of_warp[8];
    float sum = 0;
    for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size()) sum += x[i];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) sum += of_warp[i];
        part[blockIdx.x] = sum;
    }
    grid.sync();
    if (grid.thread_rank()) return;
    for (int i = 1; i < (int)gridDim.x; i++) sum += part[i];
    *y = sum;
}
OTHER(cooperative, SIZES) {
    int n = (int)kb_int(kb, "n"), blocks = 64;
    float *x = KB_ALLOC(kb, float, n), *part = KB_ALLOC(kb, float, blocks), *y = KB_ALLOC(kb, float, 1);
    kb_fill(kb, x, n, KB_UNIFORM);
    void* arguments[] = { &x, &part, &y, &n };
    KB_TIME(kb) { cudaLaunchCooperativeKernel((void*)grid_sum, blocks, 256, arguments, 0, kb->stream); }
    kb_bytes_as(kb, 4.0 * n, KB_READ);
    double want = 0;
    float* h = host(kb, x, n);
    for (int i = 0; h && i < n; i++) want += h[i];
    kb_check(kb, y, &want, 1, 1e-4);
}
__global__ void looked_up(cudaTextureObject_t t, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = tex1Dfetch<float>(t, (int)(i * 40503ll % n));
}
OTHER(texture, SIZES) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    cudaResourceDesc of = {};
    cudaTextureDesc how = {};
    cudaTextureObject_t t;
    kb_fill(kb, x, n, KB_UNIFORM);
    of.resType = cudaResourceTypeLinear;
    of.res.linear.devPtr = x;
    of.res.linear.desc = cudaCreateChannelDesc<float>();
    of.res.linear.sizeInBytes = sizeof(float) * (size_t)n;
    NEED(cudaCreateTextureObject(&t, &of, &how, NULL));
    KB_TIME(kb) { looked_up<<<n / 256, 256, 0, kb->stream>>>(t, y, n); }
    kb_bytes(kb, 8.0 * n);
    float *h = host(kb, x, n), *want = KB_ALLOC_HOST(kb, float, n);
    for (int64_t i = 0; h && want && i < n; i++) want[i] = h[i * 40503ll % n];
    kb_check(kb, y, want, n, 0);
    cudaDestroyTextureObject(t);
}
__global__ void sparse(const int* start, const int* at, const float* v, const float* x, float* y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    if (row >= rows) return;
    for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += v[i] * x[at[i]];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (!lane) y[row] = sum;
}
OTHER(matrix_vector, KB_AXIS("rows", 4096, 65536)) { // sparse matrix: rows of 1 to 64 elements in random columns
    int rows = (int)kb_int(kb, "rows");
    std::vector<int> start(1, 0), at;
    std::vector<float> v, x(rows);
    std::vector<double> want(rows);
    uint32_t seed = 12345;
    auto below = [&](uint32_t most) { return (seed = seed * 1664525u + 1013904223u, (seed >> 8) % most); };
    for (float& e : x) e = (float)below(1000) / 1000;
    for (int r = 0; r < rows; r++) {
        for (uint32_t k = 1 + below(64); k; k--)
            at.push_back((int)below(rows)), v.push_back((float)below(1000) / 1000);
        for (size_t i = (size_t)start[r]; i < at.size(); i++) want[r] += (double)v[i] * x[at[i]];
        start.push_back((int)at.size());
    }
    int64_t n = (int64_t)at.size();
    int *d_start = KB_ALLOC(kb, int, rows + 1), *d_at = KB_ALLOC(kb, int, n);
    float *d_v = KB_ALLOC(kb, float, n), *d_x = KB_ALLOC(kb, float, rows), *y = KB_ALLOC(kb, float, rows);
    kb_from_host(kb, d_start, start.data(), 4 * start.size()), kb_from_host(kb, d_at, at.data(), 4 * at.size());
    kb_from_host(kb, d_v, v.data(), 4 * v.size()), kb_from_host(kb, d_x, x.data(), 4 * x.size());
    KB_TIME(kb) { sparse<<<rows / 8, 256, 0, kb->stream>>>(d_start, d_at, d_v, d_x, y, rows); }
    kb_bytes_as(kb, 8.0 * n + 12.0 * rows, KB_READ);
    kb_check(kb, y, want.data(), rows, 1e-5);
}
static void check_product(kb_state* kb, const __half* a, const __half* b, const float* c, int n) {
    __half *first = host(kb, a, n), *all = host(kb, b, (int64_t)n * n);
    float* row = host(kb, c, n);
    std::vector<double> want(n);
    for (int k = 0; first && all && k < n; k++)
        for (int j = 0; j < n; j++) want[j] += (double)__half2float(first[k]) * __half2float(all[(size_t)k * n + j]);
    double off = 0;
    for (int j = 0; row && j < n; j++) off = fmax(off, fabs(want[j] - row[j]));
    kb_check_that(kb, off < 0.05, off, 0.05, "a sum of %d products is off by %g", n, off);
    kb_flops_as(kb, 2.0 * n * n * n, KB_F16);
}
__global__ void by_wmma(const __half* a, const __half* b, float* c, int n) {
    using namespace nvcuda::wmma;
    int warp = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32, row = warp / (n / 16) * 16,
        col = warp % (n / 16) * 16;
    fragment<matrix_a, 16, 16, 16, __half, row_major> of_a;
    fragment<matrix_b, 16, 16, 16, __half, row_major> of_b;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        load_matrix_sync(of_a, a + (size_t)row * n + k, n);
        load_matrix_sync(of_b, b + (size_t)k * n + col, n);
        mma_sync(sum, of_a, of_b, sum);
    }
    store_matrix_sync(c + (size_t)row * n + col, sum, n, mem_row_major);
}
OTHER(product, KB_AXIS("n", 256, 1024)) {
    int n = (int)kb_int(kb, "n");
    int64_t all = (int64_t)n * n;
    __half *a = KB_ALLOC(kb, __half, all), *b = KB_ALLOC(kb, __half, all);
    float* c = KB_ALLOC(kb, float, all);
    kb_fill(kb, a, all, KB_NORMAL), kb_fill(kb, b, all, KB_NORMAL);
    KB_TIME(kb) { by_wmma<<<(unsigned)(all / 2048), 256, 0, kb->stream>>>(a, b, c, n); }
    check_product(kb, a, b, c, n);
}

// --- NVIDIA's libraries ---

#ifndef OTHERS_NO_LIBRARIES
// sets a workspace, because cuBLAS would otherwise allocate in the timed block
OTHER(cublas, KB_AXIS("n", 256, 1024, 4096)) {
    int n = (int)kb_int(kb, "n");
    int64_t all = (int64_t)n * n, room = 64 << 20;
    __half *a = KB_ALLOC(kb, __half, all), *b = KB_ALLOC(kb, __half, all);
    float *c = KB_ALLOC(kb, float, all), one = 1, zero = 0;
    void* workspace = KB_ALLOC(kb, char, room);
    kb_fill(kb, a, all, KB_NORMAL), kb_fill(kb, b, all, KB_NORMAL);
    cublasHandle_t h;
    NEED(cublasCreate(&h));
    NEED(cublasSetStream(h, kb->stream));
    NEED(cublasSetWorkspace(h, workspace, (size_t)room));
    KB_TIME(kb) {
        cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, CUDA_R_16F, n, a, CUDA_R_16F, n, &zero, c,
                     CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    }
    check_product(kb, a, b, c, n);
    cublasDestroy(h);
}
OTHER(fft, SIZES) {
    int n = (int)kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, 2ll * n), *y = KB_ALLOC(kb, float, 2ll * n), first[2] = { 0, 0 };
    kb_fill(kb, x, 2ll * n, KB_NORMAL);
    cufftHandle plan;
    NEED(cufftPlan1d(&plan, n, CUFFT_C2C, 1));
    NEED(cufftSetStream(plan, kb->stream));
    KB_TIME(kb) { cufftExecC2C(plan, (float2*)x, (float2*)y, CUFFT_FORWARD); }
    kb_bytes(kb, 16.0 * n);
    double sum = 0;
    float* h = host(kb, x, 2ll * n);
    for (int i = 0; h && i < n; i++) sum += h[2 * i];
    kb_to_host(kb, first, y, sizeof first);
    double off = fabs(sum - first[0]) / sqrt((double)n);
    kb_check_that(kb, off < 1e-4, off, 1e-4, "the first element is %g, should be %g", first[0], sum);
    cufftDestroy(plan);
}
OTHER(random, SIZES) { // each launch continues the sequence of the previous launch
    int n = (int)kb_int(kb, "n");
    float* y = KB_ALLOC(kb, float, n);
    curandGenerator_t g;
    NEED(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    NEED(curandSetStream(g, kb->stream));
    NEED(curandGenerateSeeds(g));
    KB_TIME(kb) { curandGenerateUniform(g, y, n); }
    kb_bytes_as(kb, 4.0 * n, KB_WRITE);
    double sum = 0;
    float* h = host(kb, y, n);
    for (int i = 0; h && i < n; i++) sum += h[i];
    kb_check_that(kb, fabs(sum / n - 0.5) < 0.01, sum / n, 0.01, "the mean is %g", sum / n);
    curandDestroyGenerator(g);
}
#endif
KBENCH_MAIN()
