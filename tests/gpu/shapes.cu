// SPDX-License-Identifier: MIT OR Unlicense
// Contains kernels of 1 us to 3 ms in many launch configurations, and timed blocks with several kernels. No
// constant of kbench was fitted to kernels of shapes.cu. Two kinds of timed blocks write their own timestamps:
// blocks with several kernels, and kernels with more thread blocks than are resident at once. The script
// tests/gpu/shapes.py compares kbench's times with CUPTI's durations and with the timestamps:
//     nvcc -O3 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/shapes.cu -o shapes
//     python3 tests/gpu/shapes.py ./shapes
// The timestamps need --cold or --hot: with a graph (--rotate), all launches would write their timestamps into one
// slot. SHAPES_PLACE=n in the environment shifts the buffers by n times 34 MiB.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include <mma.h>

// --- launches that <<<>>> cannot express ---

static void launch(const void* kernel, unsigned blocks, unsigned threads, unsigned cluster, bool early,
                   kb_stream stream, void** arguments) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attributes[2] = {};
    config.gridDim = dim3(blocks), config.blockDim = dim3(threads);
    config.stream = stream;
    config.attrs = attributes;
    if (cluster) {
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs].val.clusterDim.x = cluster;
        attributes[config.numAttrs].val.clusterDim.y = attributes[config.numAttrs].val.clusterDim.z = 1;
        config.numAttrs++;
    }
    if (early) { // programmatic dependent launch (PDL): may start before the previous kernel has ended
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
        config.numAttrs++;
    }
    cudaLaunchKernelExC(&config, kernel, arguments);
}

__device__ void wait_for_what_precedes() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ void let_dependents_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static int attribute(enum cudaDeviceAttr which) {
    int device = 0, value = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&value, which, device);
    return value;
}
static unsigned multiprocessors() { return (unsigned)attribute(cudaDevAttrMultiProcessorCount); }

// Clusters and PDL need compute capability 9.0.
static bool hopper(kb_state* kb) {
    if (attribute(cudaDevAttrComputeCapabilityMajor) >= 9) return true;
    kb_skip(kb, "needs compute capability 9.0");
    return false;
}

// --- inputs and checks ---

static float* filled(kb_state* kb, int64_t n) {
    const char* place = getenv("SHAPES_PLACE");
    int64_t before = place ? (34ll << 18) * atoi(place) : 0;
    float* x = KB_ALLOC(kb, float, before + n);
    if (!x) return NULL;
    kb_fill(kb, x + before, n, KB_NORMAL);
    return x + before;
}

// Memory of kb_alloc initially contains NaN.
static void check_written(kb_state* kb, const float* y, int64_t n) {
    float ends[2][256];
    int each = n < 256 ? (int)n : 256, missing = 0;
    memset(ends, 0xff, sizeof ends);
    kb_to_host(kb, ends[0], y, sizeof(float) * (size_t)each);
    kb_to_host(kb, ends[1], y + n - each, sizeof(float) * (size_t)each);
    for (int i = 0; i < 2 * each; i++) missing += ends[i / each][i % each] != ends[i / each][i % each];
    kb_check_that(kb, missing == 0, missing, 0, "%d of %d outputs are NaN", missing, 2 * each);
}

static void check_scaled(kb_state* kb, const float* x, const float* y, int64_t n, int times) {
    float in[256], out[256];
    double worst = 0;
    int each = n < 256 ? (int)n : 256;
    for (int end = 0; end < 2; end++) {
        memset(in, 0, sizeof in), memset(out, 0xff, sizeof out);
        kb_to_host(kb, in, x + (end ? n - each : 0), sizeof(float) * (size_t)each);
        kb_to_host(kb, out, y + (end ? n - each : 0), sizeof(float) * (size_t)each);
        for (int i = 0; i < each; i++) {
            double want = in[i];
            for (int k = 0; k < times; k++) want = 1.5 * want + 0.25;
            double error = fabs(out[i] - want) / (1 + fabs(want));
            if (!(error <= worst)) worst = isfinite(error) ? error : INFINITY;
        }
    }
    kb_check_that(kb, worst < 1e-5, worst, 1e-5, "relative error %g", worst);
}

__device__ float4 scaled(float4 v) {
    return make_float4(1.5f * v.x + 0.25f, 1.5f * v.y + 0.25f, 1.5f * v.z + 0.25f, 1.5f * v.w + 0.25f);
}

__device__ float warp_sum(float v) {
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

// --- stamps ---

/*  If a timed block launches several kernels, the time that CUPTI reports for all of them includes the gaps that
   tracing adds. Tracing also slows down a kernel whose thread blocks do not all start at once. On an H200, each
   wave of large thread blocks after the first wave adds 0.1 us under tracing, as the kernel's own timestamps show.
   Therefore timed blocks with several kernels, and kernels whose thread blocks do not all start at once, measure
   their own time: the first thread block that starts and the last thread block that ends write %globaltimer into
   the slot of the launch. Each launch also clears the slot for the launch RING / 2 later, so half of the slots
   hold the timestamps of the latest launches. Traced runs measure the difference between CUPTI's duration and the
   timestamps. */
enum { RING = 1 << 16, LATEST = RING / 2, TOGETHER = 8, RESIDENT = 132 * 32 };
__device__ unsigned long long stamps[RING][2];

__device__ unsigned long long nanoseconds() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}
__device__ unsigned this_block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
__device__ bool first_thread() { return (threadIdx.x | threadIdx.y | threadIdx.z) == 0; }
// Every thread block that may be the first to start must call begins(). Every thread block that may be the last to
// end must call ends().
__device__ void begins(unsigned slot) {
    if (!first_thread() || this_block() >= 264) return;
    atomicMin(&stamps[slot][0], nanoseconds());
    if (this_block()) return;
    stamps[(slot + RING / 2) % RING][0] = ~0ull;
    stamps[(slot + RING / 2) % RING][1] = 0;
}
__device__ void ends(unsigned slot) {
    if (this_block() + RESIDENT < gridDim.x * gridDim.y * gridDim.z) return;
    __threadfence();
    __syncthreads();
    if (first_thread()) atomicMax(&stamps[slot][1], nanoseconds());
}

static unsigned launches;
static unsigned slot() { return launches++ % RING; }
static void* ring() {
    void* on_device = NULL;
    return cudaGetSymbolAddress(&on_device, stamps) == cudaSuccess ? on_device : NULL;
}
static void clear_stamps(kb_state* kb) {
    static unsigned long long cleared[RING][2];
    launches = 0;
    for (int i = 0; i < RING; i++) cleared[i][0] = ~0ull, cleared[i][1] = 0;
    if (!ring()) return kb_fail(kb, "no memory for the timestamps");
    kb_from_host(kb, ring(), cleared, sizeof cleared);
}

static int order(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

// Adds the median time of the latest launches, by their timestamps, to the record. Like kbench, it takes the
// median over means of eight launches, so both agree for a time that alternates between two values. The resolution
// of %globaltimer is 32 ns.
static void note_stamps(kb_state* kb) {
    static unsigned long long host[RING][2];
    static double ns[LATEST];
    int n = 0;
    kb_to_host(kb, host, ring(), sizeof host);
    for (unsigned k = 1; k <= LATEST && k <= launches; k++) {
        const unsigned long long* s = host[(launches - k) % RING];
        // the audit's capture never ran, so its slot holds no timestamps
        if (s[0] < s[1]) ns[n++] = (double)(s[1] - s[0]);
    }
    // samples exist only from the second call of the benchmark function on
    if (n < 20) return;
    n -= TOGETHER - 1;
    for (int i = 0; i < n; i++) {
        for (int k = 1; k < TOGETHER; k++) ns[i] += ns[i + k];
        ns[i] /= TOGETHER;
    }
    qsort(ns, (size_t)n, sizeof ns[0], order);
    kb_note(kb, "stamps %.1f ns", ns[n / 2]);
}

#define STAMPED(kb, ...)         \
    clear_stamps(kb);            \
    KB_TIME(kb) { __VA_ARGS__; } \
    note_stamps(kb)

// --- clusters: blocks that read each other's shared memory ---

__global__ void cluster_sums(const float* x, float* y, int each, unsigned slot) {
    begins(slot);
    __shared__ float mine;
    if (threadIdx.x == 0) mine = 0;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < each; i++) sum += x[(blockIdx.x * each + i) * blockDim.x + threadIdx.x];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(&mine, sum);
#if __CUDA_ARCH__ >= 900
    unsigned size, address = (unsigned)__cvta_generic_to_shared(&mine);
    float all = 0;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
    for (unsigned rank = 0; rank < size; rank++) {
        unsigned remote;
        float part;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(part) : "r"(remote) : "memory");
        all += part;
    }
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
    if (threadIdx.x == 0) y[blockIdx.x] = all;
#else
    if (threadIdx.x == 0) y[blockIdx.x] = mine;
#endif
    ends(slot);
}
KBENCH_IMPL(cluster, one, KB_AXIS("size", 2, 4, 8), KB_AXIS("blocks", 64, 1024)) {
    static float host[8 * 4 * 256];
    if (!hopper(kb)) return;
    int blocks = (int)kb_int(kb, "blocks"), size = (int)kb_int(kb, "size"), each = 4;
    float *x = filled(kb, blocks * 1024ll), *y = KB_ALLOC(kb, float, blocks), first = NAN;
    unsigned at = 0;
    void* arguments[] = { &x, &y, &each, &at };
    STAMPED(kb, at = slot(); launch((void*)cluster_sums, blocks, 256, size, false, kb->stream, arguments));
    double sum = 0;
    kb_to_host(kb, host, x, sizeof(float) * 1024 * (size_t)size);
    kb_to_host(kb, &first, y + size - 1, sizeof first);
    for (int i = 0; i < 1024 * size; i++) sum += host[i];
    kb_check_that(kb, fabs(first - sum) < 0.01, fabs(first - sum), 0.01, "sum %g, should be %g", first, sum);
}

// --- a PDL launch alone ---

__global__ void early_scale(const float4* x, float4* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    wait_for_what_precedes();
    let_dependents_start();
    if (i < n) y[i] = scaled(x[i]);
}
KBENCH_IMPL(early, one, KB_AXIS("kib", 64, 16384)) {
    if (!hopper(kb)) return;
    size_t n = (size_t)kb_int(kb, "kib") * 64;
    float *x = filled(kb, 4 * (int64_t)n), *y = KB_ALLOC(kb, float, 4 * (int64_t)n);
    void* arguments[] = { &x, &y, &n };
    KB_TIME(kb) { launch((void*)early_scale, (unsigned)(n / 256), 256, 0, true, kb->stream, arguments); }
    check_scaled(kb, x, y, 4 * (int64_t)n, 1);
}

// --- kernels with many registers, and kernels that spill ---

template <int LIVE, int ROUNDS> __device__ float mix(const float* x, int stride) {
    float v[LIVE], sum = 0;
#pragma unroll
    for (int k = 0; k < LIVE; k++) v[k] = x[k * stride];
    for (int round = 0; round < ROUNDS; round++) {
#pragma unroll
        for (int k = 0; k < LIVE; k++) v[k] = v[k] * 0.5f + v[(k + LIVE / 2) % LIVE];
    }
#pragma unroll
    for (int k = 0; k < LIVE; k++) sum += v[k];
    return sum;
}
__global__ void __launch_bounds__(256, 1) many_registers(const float* x, float* y, unsigned slot) {
    begins(slot);
    int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = mix<244, 8>(x + i, gridDim.x * 256);
    ends(slot);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1200 && __CUDA_ARCH__ != 860 && \
    __CUDA_ARCH__ != 890
#define FEW_BLOCKS 4
#else
#define FEW_BLOCKS 2 // architectures with fewer than 2048 resident threads per SM
#endif
__global__ void __launch_bounds__(512, FEW_BLOCKS) few_registers(const float* x, float* y, unsigned slot) {
    begins(slot); // a thread has 96 live values and at most 32 registers, so most values are spilled
    int i = blockIdx.x * 512 + threadIdx.x;
    y[i] = mix<96, 8>(x + i, gridDim.x * 512);
    ends(slot);
}
KBENCH_IMPL(registers, one, KB_AXIS("blocks", 132, 1056)) {
    int blocks = (int)kb_int(kb, "blocks");
    float *x = filled(kb, blocks * 256ll * 244), *y = KB_ALLOC(kb, float, blocks * 256ll);
    STAMPED(kb, many_registers<<<blocks, 256, 0, kb->stream>>>(x, y, slot()));
    check_written(kb, y, blocks * 256ll);
}
KBENCH_IMPL(spills, one, KB_AXIS("blocks", 66, 528)) {
    int blocks = (int)kb_int(kb, "blocks");
    float *x = filled(kb, blocks * 512ll * 96), *y = KB_ALLOC(kb, float, blocks * 512ll);
    STAMPED(kb, few_registers<<<blocks, 512, 0, kb->stream>>>(x, y, slot()));
    check_written(kb, y, blocks * 512ll);
}

// --- dynamic shared memory ---

__global__ void reversed_in_shared(const float* x, float* y, int n) {
    extern __shared__ float buffer[];
    x += (size_t)blockIdx.x * n, y += (size_t)blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = buffer[n - 1 - i];
}
KBENCH_IMPL(shared, one, KB_AXIS("kib", 16, 64, 160, 227)) {
    int bytes = (int)kb_int(kb, "kib") * 1024, n = bytes / 4;
    if (bytes > attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) {
        kb_skip(kb, "this GPU allows less shared memory per block");
        return;
    }
    float *x = filled(kb, 132ll * n), *y = KB_ALLOC(kb, float, 132ll * n), in[64] = { 0 }, out[64] = { 1 };
    cudaFuncSetAttribute(reversed_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    KB_TIME(kb) { reversed_in_shared<<<132, 256, bytes, kb->stream>>>(x, y, n); }
    int wrong = 0;
    kb_to_host(kb, in, x + 132ll * n - 64, sizeof in);
    kb_to_host(kb, out, y + 131ll * n, sizeof out);
    for (int i = 0; i < 64; i++) wrong += !(out[i] == in[63 - i]);
    kb_check_that(kb, wrong == 0, wrong, 0, "%d of 64 wrong", wrong);
}

// --- arguments by value ---

template <int BYTES> struct block_of { float v[(BYTES - 8) / 4]; };
template <int BYTES> __global__ void with_arguments(block_of<BYTES> a, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a.v[i % ((BYTES - 8) / 4)] + a.v[blockIdx.x % 8];
}
template <int BYTES> static void time_arguments(kb_state* kb) {
    const int N = (BYTES - 8) / 4;
    block_of<BYTES> a;
    float *y = KB_ALLOC(kb, float, 64 * 128), out[128];
    for (int i = 0; i < N; i++) a.v[i] = (float)(kb->seed % 1000) + 3.5f * (float)i;
    KB_TIME(kb) { with_arguments<<<64, 128, 0, kb->stream>>>(a, y); }
    int wrong = 0;
    memset(out, 0xff, sizeof out);
    kb_to_host(kb, out, y + 9 * 128, sizeof out);
    for (int i = 0; i < 128; i++) wrong += !(out[i] == a.v[(9 * 128 + i) % N] + a.v[1]);
    kb_check_that(kb, wrong == 0, wrong, 0, "%d of 128 wrong", wrong);
}
KBENCH_IMPL(arguments, one, KB_AXIS("bytes", 256, 1024, 4096)) {
    int64_t bytes = kb_int(kb, "bytes");
    if (bytes == 256) time_arguments<256>(kb);
    if (bytes == 1024) time_arguments<1024>(kb);
    if (bytes == 4096) time_arguments<4096>(kb);
}

// --- grids: one block, odd numbers of blocks, full and partial waves, a million blocks, two and three dimensions
// ---

__global__ void scale_one_by_one(const float* x, float* y, int n, unsigned slot) {
    begins(slot);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = 1.5f * x[i] + 0.25f;
    ends(slot);
}
KBENCH_IMPL(one_block, one, KB_AXIS("threads", 32, 1024)) {
    int threads = (int)kb_int(kb, "threads");
    float *x = filled(kb, 8ll * threads), *y = KB_ALLOC(kb, float, 8ll * threads);
    STAMPED(kb, scale_one_by_one<<<1, threads, 0, kb->stream>>>(x, y, 8 * threads, slot()));
    check_scaled(kb, x, y, 8ll * threads, 1);
}
KBENCH_IMPL(odd_blocks, one, KB_AXIS("threads", 96, 192, 1024)) {
    int threads = (int)kb_int(kb, "threads"), n = 1 << 20;
    float *x = filled(kb, n), *y = KB_ALLOC(kb, float, n);
    STAMPED(kb, scale_one_by_one<<<(n + threads - 1) / threads, threads, 0, kb->stream>>>(x, y, n, slot()));
    check_scaled(kb, x, y, n, 1);
}

__global__ void polynomial(const float* x, float* y, int terms, unsigned slot) {
    begins(slot);
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    float t = x[i], sum = 0;
    for (int k = 0; k < terms; k++) sum = sum * t * 0.25f + 1.0f;
    y[i] = sum;
    ends(slot);
}
KBENCH_IMPL(waves, one, KB_AXIS("quarters", 4, 10, 28)) {
    int resident = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, polynomial, 128, 0);
    unsigned blocks = multiprocessors() * (unsigned)resident * (unsigned)kb_int(kb, "quarters") / 4;
    float *x = filled(kb, blocks * 128ll), *y = KB_ALLOC(kb, float, blocks * 128ll);
    STAMPED(kb, polynomial<<<blocks, 128, 0, kb->stream>>>(x, y, 300, slot()));
    check_written(kb, y, blocks * 128ll);
}

KBENCH(million_blocks) {
    int n = 1 << 26;
    float *x = filled(kb, n), *y = KB_ALLOC(kb, float, n);
    STAMPED(kb, scale_one_by_one<<<1 << 20, 64, 0, kb->stream>>>(x, y, n, slot()));
    check_scaled(kb, x, y, n, 1);
    kb_bytes(kb, 8.0 * n);
}
__global__ void mostly_idle(const float* x, float* y) {
    if (blockIdx.x % 4096 == 0) y[blockIdx.x / 4096 * 32 + threadIdx.x] = 1.5f * x[threadIdx.x] + 0.25f;
}
KBENCH(million_idle_blocks) {
    float *x = filled(kb, 32), *y = KB_ALLOC(kb, float, 256 * 32);
    KB_TIME(kb) { mostly_idle<<<1 << 20, 32, 0, kb->stream>>>(x, y); }
    check_scaled(kb, x, y + 255 * 32, 32, 1);
}

__global__ void transpose(const float* x, float* y, int n, unsigned slot) {
    begins(slot);
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(row + k) * n + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[(size_t)(row + k) * n + column] = tile[threadIdx.x][threadIdx.y + k];
    ends(slot);
}
KBENCH_IMPL(transpose, one, KB_AXIS("n", 512, 4096)) {
    int n = (int)kb_int(kb, "n");
    float *x = filled(kb, (int64_t)n * n), *y = KB_ALLOC(kb, float, (int64_t)n*n), in[2] = { 0 }, out[2] = { 1, 1 };
    STAMPED(kb, transpose<<<dim3(n / 32, n / 32), dim3(32, 8), 0, kb->stream>>>(x, y, n, slot()));
    for (int i = 0; i < 2; i++) {
        kb_to_host(kb, in + i, x + 77 + (size_t)(n - 5 - i) * n, sizeof in[i]);
        kb_to_host(kb, out + i, y + 77 * (size_t)n + n - 5 - i, sizeof out[i]);
    }
    bool same = in[0] == out[0] && in[1] == out[1];
    kb_check_that(kb, same, 0, 0, "y[77][n-5] is %g, should be %g", out[0], in[0]);
}

__global__ void stencil(const float* x, float* y, int n, unsigned slot) {
    begins(slot);
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y,
        k = blockIdx.z * blockDim.z + threadIdx.z, at = (k * n + j) * n + i;
    float sum = -6 * x[at];
    sum += (i ? x[at - 1] : 0) + (i < n - 1 ? x[at + 1] : 0) + (j ? x[at - n] : 0) + (j < n - 1 ? x[at + n] : 0);
    sum += (k ? x[at - n * n] : 0) + (k < n - 1 ? x[at + n * n] : 0);
    y[at] = sum;
    ends(slot);
}
KBENCH_IMPL(stencil, one, KB_AXIS("n", 64, 256)) {
    int n = (int)kb_int(kb, "n");
    float *x = filled(kb, (int64_t)n * n * n), *y = KB_ALLOC(kb, float, (int64_t)n*n*n);
    STAMPED(kb, stencil<<<dim3(n / 32, n / 4, n / 2), dim3(32, 4, 2), 0, kb->stream>>>(x, y, n, slot()));
    check_written(kb, y, (int64_t)n * n * n);
}

__global__ void one_long_block(const float* x, float* y, int terms) {
    float t = x[blockIdx.x * blockDim.x + threadIdx.x], sum = 0;
    for (int k = blockIdx.x ? terms : 20 * terms; k > 0; k--) sum = sum * t * 0.25f + 1.0f;
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
KBENCH(one_long_block) {
    float *x = filled(kb, 264 * 128), *y = KB_ALLOC(kb, float, 264 * 128);
    KB_TIME(kb) { one_long_block<<<264, 128, 0, kb->stream>>>(x, y, 200); }
    check_written(kb, y, 264 * 128);
}

// --- atomics ---

__global__ void add_to_few(const float* x, float* sums, int addresses) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sums[i % addresses], x[i]);
}
KBENCH_IMPL(atomics, one, KB_AXIS("addresses", 1, 4096)) {
    int n = 132 * 256;
    float *x = filled(kb, n), *sums = filled(kb, 4096);
    KB_TIME(kb) { add_to_few<<<132, 256, 0, kb->stream>>>(x, sums, (int)kb_int(kb, "addresses")); }
    check_written(kb, sums, 1);
}

__global__ void histogram(const unsigned* x, unsigned* bins, int n) {
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&mine[x[i] >> 24], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
KBENCH(histogram) {
    int n = 1 << 20;
    unsigned *x = KB_ALLOC(kb, unsigned, n), *bins = KB_ALLOC(kb, unsigned, 256), counts[256] = { 0 }, sum = 0;
    kb_fill(kb, x, n, KB_UNIFORM);
    kb_fill(kb, bins, 256, KB_ZERO);
    KB_TIME(kb) { histogram<<<528, 256, 0, kb->stream>>>(x, bins, n); }
    kb_to_host(kb, counts, bins, sizeof counts);
    for (int i = 0; i < 256; i++) sum += counts[i]; // sum over all launches, modulo 2^32
    kb_check_that(kb, sum % (unsigned)n == 0, sum % (unsigned)n, 0, "%u elements counted", sum);
}

// --- addresses: gathers, chases, strides ---

__global__ void gather(const float* x, const unsigned* where, float* y, unsigned mask, unsigned slot) {
    begins(slot);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[where[i] & mask];
    ends(slot);
}
KBENCH_IMPL(gather, one, KB_AXIS("kib", 256, 65536)) {
    int64_t n = kb_int(kb, "kib") * 256, outputs = n < 1 << 21 ? n : 1 << 21;
    float *x = filled(kb, n), *y = KB_ALLOC(kb, float, outputs);
    unsigned* where = KB_ALLOC(kb, unsigned, outputs);
    kb_fill(kb, where, outputs, KB_UNIFORM);
    STAMPED(kb, gather<<<(unsigned)(outputs / 256), 256, 0, kb->stream>>>(x, where, y, (unsigned)n - 1, slot()));
    check_written(kb, y, outputs);
}

// Creates a permutation with a single cycle, in an order that a prefetcher cannot predict.
enum { CHASE = 1 << 24 };
__host__ __device__ static unsigned chase_next(unsigned i) { return (i * 1664525u + 1013904223u) % CHASE; }
__global__ void make_chase(unsigned* next) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    next[i] = chase_next(i);
}
__global__ void chase(const unsigned* next, unsigned* end, int loads) {
    unsigned at = blockIdx.x * 7919 + threadIdx.x * 104729;
    for (int i = 0; i < loads; i++) at = next[at % CHASE];
    end[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
static void time_chase(kb_state* kb, int blocks, int threads, int loads) {
    unsigned *next = KB_ALLOC(kb, unsigned, CHASE), *end = KB_ALLOC(kb, unsigned, blocks*threads), at = 0, last = ~0u;
    if (next) make_chase<<<CHASE / 256, 256, 0, kb->stream>>>(next);
    KB_TIME(kb) { chase<<<blocks, threads, 0, kb->stream>>>(next, end, loads); }
    for (int i = 0; i < loads; i++) at = chase_next(at);
    kb_to_host(kb, &last, end, sizeof last);
    kb_check_that(kb, last == at, 0, 0, "ends at %u, should end at %u", last, at);
}
KBENCH_IMPL(chase, one, KB_AXIS("loads", 100, 1000)) { time_chase(kb, 1, 1, (int)kb_int(kb, "loads")); }
KBENCH(chase_by_many) { time_chase(kb, 132, 64, 30); }

__global__ void strided(const float* x, float* y, unsigned stride, unsigned mask, unsigned slot) {
    begins(slot);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i * stride & mask];
    ends(slot);
}
KBENCH_IMPL(strided, one, KB_AXIS("stride", 33, 1025)) {
    int n = 1 << 24, outputs = 1 << 19;
    float *x = filled(kb, n), *y = KB_ALLOC(kb, float, outputs);
    STAMPED(kb, strided<<<outputs / 256, 256, 0, kb->stream>>>(x, y, (unsigned)kb_int(kb, "stride"), n - 1, slot()));
    check_written(kb, y, outputs);
}

// --- constant memory: one address per warp, or one per thread ---

__constant__ float coefficients[8192];
__global__ void from_constants(const float* x, float* y, int spread) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0, t = x[i];
    for (int k = 0; k < 128; k++) sum = sum * 0.5f + t * coefficients[(k * 61 + threadIdx.x * spread) % 8192];
    y[i] = sum;
}
KBENCH_IMPL(constants, one, KB_AXIS("spread", 0, 1)) {
    static float values[8192];
    float *x = filled(kb, 264 * 256), *y = KB_ALLOC(kb, float, 264 * 256);
    for (int i = 0; i < 8192; i++) values[i] = (float)(i % 97) * 0.01f;
    cudaMemcpyToSymbol(coefficients, values, sizeof values);
    KB_TIME(kb) { from_constants<<<264, 256, 0, kb->stream>>>(x, y, (int)kb_int(kb, "spread")); }
    check_written(kb, y, 264 * 256);
}

// --- tensor cores, double precision, tiled products ---

__global__ void wmma_product(const half* a, const half* b, float* c, int n) {
    using namespace nvcuda;
    int column = (blockIdx.x * 4 + threadIdx.x / 32) * 16, row = blockIdx.y * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + (size_t)row * n + k, n);
        wmma::load_matrix_sync(fb, b + (size_t)k * n + column, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + (size_t)row * n + column, fc, n, wmma::mem_row_major);
}
KBENCH_IMPL(wmma, one, KB_AXIS("n", 256, 1024)) {
    int n = (int)kb_int(kb, "n");
    int64_t all = (int64_t)n * n;
    half *a = KB_ALLOC(kb, half, all), *b = KB_ALLOC(kb, half, all);
    float* c = KB_ALLOC(kb, float, all);
    kb_fill(kb, a, all, KB_NORMAL);
    kb_fill(kb, b, all, KB_NORMAL);
    KB_TIME(kb) { wmma_product<<<dim3(n / 64, n / 16), 128, 0, kb->stream>>>(a, b, c, n); }
    check_written(kb, c, all);
}

__global__ void mma_in_registers(const unsigned* x, float* y, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // each register holds two bf16 values below 1
    unsigned a0 = x[i] & 0x3f7f3f7fu, a1 = a0 ^ 0x00110022u, b = a0 ^ 0x00330044u;
    float c[4] = { 0, 0, 0, 0 };
#if __CUDA_ARCH__ >= 800
    for (int k = 0; k < rounds; k++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a0), "r"(a1), "r"(b));
#else
    for (int k = 0; k < rounds; k++) c[k % 4] = c[k % 4] * 0.5f + __uint_as_float(a0 ^ a1 ^ b);
#endif
    y[i] = c[0] + c[1] + c[2] + c[3];
}
KBENCH_IMPL(mma, one, KB_AXIS("rounds", 100, 4000)) {
    unsigned* x = KB_ALLOC(kb, unsigned, 264 * 256);
    float* y = KB_ALLOC(kb, float, 264 * 256);
    kb_fill(kb, x, 264 * 256, KB_UNIFORM);
    KB_TIME(kb) { mma_in_registers<<<264, 256, 0, kb->stream>>>(x, y, (int)kb_int(kb, "rounds")); }
    check_written(kb, y, 264 * 256);
}

template <class T> __global__ void product_by_tiles(const T* a, const T* b, T* c, int n) { // 64 x 64 by 256 threads
    __shared__ T as[16][64 + 1], bs[16][64];
    int x = threadIdx.x % 16, y = threadIdx.x / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
    T sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        for (int i = threadIdx.x; i < 1024; i += 256) {
            as[i % 16][i / 16] = a[(size_t)(row + i / 16) * n + k + i % 16];
            bs[i / 64][i % 64] = b[(size_t)(k + i / 64) * n + column + i % 64];
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; j++)
            for (int r = 0; r < 4; r++)
                for (int q = 0; q < 4; q++) sum[r][q] += as[j][y + 16 * r] * bs[j][x + 16 * q];
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        for (int q = 0; q < 4; q++) c[(size_t)(row + y + 16 * r) * n + column + x + 16 * q] = sum[r][q];
}
template <class T> static void time_product(kb_state* kb, int n) {
    static T left[4096], right[1];
    int64_t all = (int64_t)n * n;
    T *a = KB_ALLOC(kb, T, all), *b = KB_ALLOC(kb, T, all), *c = KB_ALLOC(kb, T, all), got = 0;
    kb_fill(kb, a, all, KB_NORMAL);
    kb_fill(kb, b, all, KB_NORMAL);
    KB_TIME(kb) { product_by_tiles<<<dim3(n / 64, n / 64), 256, 0, kb->stream>>>(a, b, c, n); }
    double want = 0;
    int row = n - 3, column = n / 2 + 1;
    kb_to_host(kb, left, a + (size_t)row * n, sizeof(T) * (size_t)n);
    for (int k = 0; k < n; k++) {
        kb_to_host(kb, right, b + (size_t)k * n + column, sizeof(T));
        want += (double)left[k] * (double)right[0];
    }
    kb_to_host(kb, &got, c + (size_t)row * n + column, sizeof got);
    double error = fabs((double)got - want);
    kb_check_that(kb, error < 1e-3 * sqrt(n), error, 1e-3 * sqrt(n), "an element is %g, should be %g", (double)got,
                  want);
}
KBENCH_IMPL(tiles, one, KB_AXIS("n", 512, 2560)) { time_product<float>(kb, (int)kb_int(kb, "n")); }
KBENCH_IMPL(doubles, one, KB_AXIS("n", 256, 512)) { time_product<double>(kb, (int)kb_int(kb, "n")); }

// --- shuffles and barriers ---

__global__ void shuffles(const float* x, float* y, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    for (int k = 0; k < rounds; k++) v = warp_sum(v) * 0.03125f + x[i] * 0.5f;
    y[i] = v;
}
KBENCH_IMPL(shuffles, one, KB_AXIS("blocks", 16, 2112)) {
    int blocks = (int)kb_int(kb, "blocks");
    float *x = filled(kb, blocks * 128ll), *y = KB_ALLOC(kb, float, blocks * 128ll);
    KB_TIME(kb) { shuffles<<<blocks, 128, 0, kb->stream>>>(x, y, 40); }
    check_written(kb, y, blocks * 128ll);
}

__global__ void barriers(const float* x, float* y, int rounds) {
    __shared__ float ring[1024];
    float v = x[blockIdx.x * 1024 + threadIdx.x];
    for (int k = 0; k < rounds; k++) {
        ring[threadIdx.x] = v;
        __syncthreads();
        v = v * 0.5f + ring[(threadIdx.x + 33) % 1024] * 0.5f;
        __syncthreads();
    }
    y[blockIdx.x * 1024 + threadIdx.x] = v;
}
KBENCH_IMPL(barriers, one, KB_AXIS("blocks", 1, 264)) {
    int blocks = (int)kb_int(kb, "blocks");
    float *x = filled(kb, blocks * 1024ll), *y = KB_ALLOC(kb, float, blocks * 1024ll);
    KB_TIME(kb) { barriers<<<blocks, 1024, 0, kb->stream>>>(x, y, 200); }
    check_written(kb, y, blocks * 1024ll);
}

// --- rows and fills ---

__global__ void row_sums(const float* x, float* y, int columns) {
    __shared__ float parts[8];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256) sum += x[(size_t)blockIdx.x * columns + i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    sum = 0;
    for (int i = 0; i < 8; i++) sum += parts[i];
    y[blockIdx.x] = sum;
}
KBENCH_IMPL(row_sums, one, KB_AXIS("rows", 48, 4096)) {
    static float row[8192];
    int rows = (int)kb_int(kb, "rows");
    float *x = filled(kb, rows * 8192ll), *y = KB_ALLOC(kb, float, rows), got = NAN;
    KB_TIME(kb) { row_sums<<<rows, 256, 0, kb->stream>>>(x, y, 8192); }
    double want = 0;
    kb_to_host(kb, row, x + (rows - 1) * 8192ll, sizeof row);
    kb_to_host(kb, &got, y + rows - 1, sizeof got);
    for (int i = 0; i < 8192; i++) want += row[i];
    kb_check_that(kb, fabs(got - want) < 0.1, fabs(got - want), 0.1, "sum %g, should be %g", got, want);
}

__global__ void write_only(float4* y, size_t n, float value, unsigned slot) {
    begins(slot);
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = make_float4(value, value, value, (float)threadIdx.x);
    ends(slot);
}
KBENCH_IMPL(write_only, one, KB_AXIS("kib", 1024, 262144)) {
    size_t n = (size_t)kb_int(kb, "kib") * 64;
    float* y = KB_ALLOC(kb, float, 4 * (int64_t)n);
    STAMPED(kb, write_only<<<(unsigned)(n / 512), 512, 0, kb->stream>>>((float4*)y, n, 0.5f, slot()));
    check_written(kb, y, 4 * (int64_t)n);
}

// --- timed blocks with several kernels ---

static const unsigned FIRST = 1, LAST = 2;
__global__ void step(const float4* x, float4* y, int n, unsigned marks, unsigned slot) {
    if (marks & FIRST) begins(slot);
    wait_for_what_precedes();
    let_dependents_start();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = scaled(x[i]);
    if (marks & LAST) ends(slot);
}

static void time_chain(kb_state* kb, bool early) {
    int kernels = (int)kb_int(kb, "kernels"), n = (int)kb_int(kb, "kib") * 64;
    unsigned blocks = (unsigned)(n < 264 * 256 ? n / 256 : 264);
    float *x = filled(kb, 4ll * n), *y[2] = { KB_ALLOC(kb, float, 4ll * n), KB_ALLOC(kb, float, 4ll * n) };
    clear_stamps(kb);
    KB_TIME(kb) {
        unsigned at = slot();
        for (int k = 0; k < kernels; k++) {
            float *from = k ? y[(k + 1) % 2] : x, *to = y[k % 2];
            unsigned marks = (k == 0) * FIRST + (k == kernels - 1) * LAST;
            void* arguments[] = { &from, &to, &n, &marks, &at };
            launch((void*)step, blocks, 256, 0, early && k, kb->stream, arguments);
        }
    }
    note_stamps(kb);
    check_scaled(kb, x, y[(kernels - 1) % 2], 4ll * n, kernels);
}
KBENCH_IMPL(chain, one, KB_AXIS("kib", 16, 4096), KB_AXIS("kernels", 1, 2, 3, 5, 10)) { time_chain(kb, false); }
KBENCH_IMPL(early_chain, one, KB_AXIS("kib", 16, 4096), KB_AXIS("kernels", 1, 2, 5)) {
    if (hopper(kb)) time_chain(kb, true);
}
KBENCH_MAIN()
