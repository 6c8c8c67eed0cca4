// SPDX-License-Identifier: MIT OR Unlicense
/* What it proves: the matrix products through wgmma and tensor copies (rungs 9 to 15 of matmul), and the primitives
   that they are made of, are right to the last bit on integers, in every layout, at every kind of edge; they write C
   whole and nothing else, take what TMA can take, and refuse the rest. Then it shows how fast they are.

   nvcc -std=c++17 -O2 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/hopper.cu -o hopper && ./hopper [OPTION...]
   (-ldl on an old glibc; -DHOPPER_NO_TRAP: without the clock that ends a kernel which waits for ever)

       --check        only what is right or wrong;   --time   only how fast
       --rung NAME    this variant alone
       --dtype NAME   f16 or bf16 alone
       --shape MxNxK  this shape alone
       --quick        fewer shapes, no times
       --sanitize     for compute-sanitizer: a few small shapes, no times

   Inputs of the checks are -1, 0 and 1: sums of some thousand products are exact, and so small that they are exact
   in 16 bits too, so that one product left out, or taken twice, or of the wrong line, is seen. Times are medians of
   CUDA events around 20 launches, all variants in turn, on buffers that do not fit into L2 together; those of cuBLAS,
   where it is installed, beside them. Prints a line per failure; exit code 0, 1 after failures, 77 without a GPU. */
#ifndef HOPPER_NO_TRAP
#define KBK_TRAP_AFTER 2
#endif
#define KBK_NO_REGISTRY
#if __has_include(<cublas_v2.h>) && !defined(KBK_CUBLAS)
#define KBK_CUBLAS
#endif
#include "kbench_kernels.cuh"
#include <algorithm>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static_assert(sizeof(kbki_map) == sizeof(CUtensorMap) && KBKI_MAP_16F == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
                  KBKI_MAP_16BF == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 &&
                  KBKI_MAP_SWIZZLE_128 == CU_TENSOR_MAP_SWIZZLE_128B &&
                  KBKI_MAP_L2_256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
              "numbers of cuda.h");

typedef __nv_bfloat16 bf16;
struct rung {
    const char* name;
    kbk_launch_fn launch[2]; // f16, bf16
    bool any;                // takes lines that do not start on 16 bytes
};
#define RUNG(name, any) \
    { #name, { kbk_matmul_fwd_##name < __half>, kbk_matmul_fwd_##name < bf16> }, any }
static const rung rungs[] = { RUNG(wgmma, false),     RUNG(ws, false),  RUNG(coop, false), RUNG(persist, false),
                              RUNG(multicast, false), RUNG(tma, false), RUNG(select, true) };
enum { RUNGS = sizeof rungs / sizeof rungs[0], GUARD = 4096, LAUNCHES = 20 };
static const char* const layout_name[] = { "NN", "NT", "TN" };
static const char* const dtype_name[] = { "f16", "bf16" };

struct shape {
    int64_t m, n, k;
};
static int passed, failed, skipped;
static const char *only_rung, *only_dtype; // options
static shape only_shape;
static bool quick, sanitize;
static cudaStream_t stream;
static char* work; // workspace
static size_t work_bytes = (size_t)256 << 20;

static void cuda(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    printf("FAIL: %s: %s\n%d passed, %d failed, %d skipped\n", what, cudaGetErrorString(e), passed, failed + 1,
           skipped);
    exit(1);
}
#define CUDA(call) cuda((call), #call)

// --- what the device does for the checks

__host__ __device__ inline uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return x ^ x >> 16;
}
// Integers of -1, 0 and 1, or uniform numbers of [-1, 1).
template <class T> __global__ void fill_k(T* x, int64_t n, uint32_t seed, bool integers) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t r = mixed((uint32_t)i * 2654435761u ^ mixed(seed + (uint32_t)(i >> 32)));
        x[i] = (T)(integers ? (float)(int)(r % 3) - 1 : (float)(r >> 8) * 0x1p-23f - 1);
    }
}
// The product with nothing clever about it: 32 x 32 tiles, one FMA after the other; A[i,k] at i * am + k * ak.
template <class T>
__global__ void reference_k(const T* a, const T* b, T* c, int m, int n, int k, int64_t am, int64_t ak, int64_t bk,
                            int64_t bn) {
    __shared__ float s[32][33], t[32][33];
    int x = threadIdx.x, y = threadIdx.y, i0 = blockIdx.y * 32, j0 = blockIdx.x * 32;
    int sy = ak == 1 ? y : x, sx = ak == 1 ? x : y, ty = bn == 1 ? y : x, tx = bn == 1 ? x : y;
    float sum = 0;
    for (int k0 = 0; k0 < k; k0 += 32) {
        s[sy][sx] = i0 + sy < m && k0 + sx < k ? (float)a[(i0 + sy) * am + (k0 + sx) * ak] : 0.0f;
        t[ty][tx] = k0 + ty < k && j0 + tx < n ? (float)b[(k0 + ty) * bk + (j0 + tx) * bn] : 0.0f;
        __syncthreads();
        for (int e = 0; e < 32; e++) sum = fmaf(s[y][e], t[e][x], sum);
        __syncthreads();
    }
    if (i0 + y < m && j0 + x < n) c[(int64_t)(i0 + y) * n + j0 + x] = (T)sum;
}
struct verdict {
    unsigned long long bad, first, outside; // elements that differ, the first of them, and bytes of the guards
};
// All of [raw, raw + bytes): C of n elements from byte `at` on must be as wanted, everything around it 0xFF; wanted
// NULL: C as well.
template <class T>
__global__ void compare_k(const char* raw, int64_t bytes, int64_t at, const T* want, int64_t n, verdict* v) {
    const unsigned short* got = (const unsigned short*)raw;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < bytes / 2;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t e = i - at / 2;
        bool inside = want && e >= 0 && e < n;
        unsigned short w = inside ? ((const unsigned short*)want)[e] : (unsigned short)0xFFFF;
        if (got[i] == w || (inside && (float)((const T*)raw)[i] == (float)want[e])) continue; // -0 is 0
        if (inside)
            atomicAdd(&v->bad, 1ull), atomicMin(&v->first, (unsigned long long)e);
        else
            atomicAdd(&v->outside, 1ull);
    }
}
// Sums of squares of a - b and of b.
template <class T> __global__ void distance_k(const T* a, const T* b, int64_t n, double* sums) {
    double d = 0, s = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        double x = (float)a[i], y = (float)b[i];
        d += (x - y) * (x - y), s += y * y;
    }
    d = kbki_warp_all<kbki_sum<double>>(d), s = kbki_warp_all<kbki_sum<double>>(s);
    if (threadIdx.x % 32 == 0) atomicAdd(sums, d), atomicAdd(sums + 1, s);
}

// Keeps the stream busy while the host queues what is timed: short kernels would else be timed with gaps before them.
__global__ void hold_k(unsigned long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

template <class T> static void fill(T* x, int64_t n, uint32_t seed, bool integers) {
    if (n) fill_k<T><<<1024, 256, 0, stream>>>(x, n, seed, integers);
}
template <class T> static void reference(const T* a, const T* b, T* c, shape s, int layout) {
    int64_t am = layout == KBK_TN ? 1 : s.k, ak = layout == KBK_TN ? s.m : 1;
    int64_t bk = layout == KBK_NT ? 1 : s.n, bn = layout == KBK_NT ? s.k : 1;
    dim3 grid((unsigned)((s.n + 31) / 32), (unsigned)((s.m + 31) / 32));
    reference_k<T><<<grid, dim3(32, 32), 0, stream>>>(a, b, c, (int)s.m, (int)s.n, (int)s.k, am, ak, bk, bn);
}
static kbk_args arguments(const void* a, const void* b, void* c, shape s, int layout) {
    kbk_args args = {};
    args.s.rows = s.m, args.s.cols = s.n, args.s.depth = s.k, args.s.layout = layout, args.s.elem = 2;
    args.in[0] = a, args.in[1] = b, args.out[0] = c, args.workspace = work, args.workspace_bytes = work_bytes;
    return args;
}
static bool wanted(const rung& r, int dtype) {
    return (!only_rung || !strcmp(only_rung, r.name)) && (!only_dtype || !strcmp(only_dtype, dtype_name[dtype]));
}
static bool tma_takes(const void* a, const void* b, shape s, int layout) {
    int64_t lda = layout == KBK_TN ? s.m : s.k, ldb = layout == KBK_NT ? s.k : s.n;
    return s.k == 0 || (lda % 8 == 0 && ldb % 8 == 0 && (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0);
}

// --- the checks

template <class T> struct bench { // buffers, large enough for all shapes
    T *a, *b, *want;
    char* c; // guard, C, guard
    verdict* v;
    int64_t c_elements;
};
// One launch, and what came of it. off: by so many elements C is off 16 bytes.
template <class T>
static void try_one(const bench<T>& x, const rung& r, const T* a, const T* b, shape s, int layout, int off) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    int64_t n = s.m * s.n, at = GUARD + 2 * off, bytes = at + 2 * n + GUARD;
    verdict zero = { 0, ~0ull, 0 }, v;
    kbk_args args = arguments(a, b, x.c + at, s, layout);
    bool takes = r.any || tma_takes(a, b, s, layout);
    CUDA(cudaMemsetAsync(x.c, 0xFF, (size_t)bytes, stream));
    CUDA(cudaMemcpyAsync(x.v, &zero, sizeof zero, cudaMemcpyHostToDevice, stream));
    const char* why = r.launch[dtype](&args, stream);
    compare_k<T><<<512, 256, 0, stream>>>(x.c, bytes, at, why ? NULL : x.want, n, x.v);
    CUDA(cudaMemcpyAsync(&v, x.v, sizeof v, cudaMemcpyDeviceToHost, stream));
    cudaError_t e = cudaStreamSynchronize(stream);
    const char* text = e != cudaSuccess ? cudaGetErrorString(e)
                       : !takes && !why ? "took what TMA cannot take"
                       : takes && why   ? why
                       : v.outside      ? "wrote outside C"
                       : v.bad          ? "wrong"
                                        : NULL;
    if (text == NULL) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL: %s %s %s %lldx%lldx%lld%s: %s", r.name, dtype_name[dtype], layout_name[layout], (long long)s.m,
           (long long)s.n, (long long)s.k, off ? ", C off by an element" : "", text);
    if (e == cudaSuccess && v.bad)
        printf(" (%llu of %lld, the first at row %lld, column %lld)", v.bad, (long long)n, (long long)v.first / s.n,
               (long long)v.first % s.n);
    printf("\n");
    if (e != cudaSuccess) { // a trap: nothing works in this process from here on
        printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
        exit(1);
    }
}
template <class T> static void try_shape(const bench<T>& x, shape s, int layout, int off) {
    fill(x.a, s.m * s.k, 1, true), fill(x.b, s.k * s.n, 2, true);
    reference(x.a, x.b, x.want, s, layout);
    for (int i = 0; i < RUNGS; i++)
        if (wanted(rungs[i], kbki_type<T>::cuda == CUDA_R_16BF)) try_one(x, rungs[i], x.a, x.b, s, layout, off);
}
// More inputs than there are maps kept, at addresses near each other: each launch has to take its own.
template <class T> static void try_addresses(const bench<T>& x, int layout) {
    shape s = { 136, 264, 200 };
    fill(x.a, s.m * s.k + 2000, 3, true), fill(x.b, s.k * s.n + 2000, 4, true);
    for (int i = 0; i < (sanitize ? 4 : 200); i++) {
        const T *a = x.a + i % 150 * 8, *b = x.b + (200 - i) * 8;
        reference(a, b, x.want, s, layout);
        for (int r = 0; r < RUNGS; r++)
            if (wanted(rungs[r], kbki_type<T>::cuda == CUDA_R_16BF)) try_one(x, rungs[r], a, b, s, layout, 0);
    }
    for (int i = 0; i < 2; i++) { // an operand off by an element
        const T *a = x.a + (i == 0), *b = x.b + (i == 1);
        reference(a, b, x.want, s, layout);
        for (int r = 0; r < RUNGS; r++)
            if (wanted(rungs[r], kbki_type<T>::cuda == CUDA_R_16BF)) try_one(x, rungs[r], a, b, s, layout, 0);
    }
}

static const shape odd_shapes[] = { { 1, 1, 0 },       { 33, 40, 0 },      { 1, 1, 8 },        { 1, 8, 8 },
                                    { 8, 8, 1 },       { 8, 1, 8 },        { 77, 131, 72 },    { 129, 264, 64 },
                                    { 136, 257, 200 }, { 264, 136, 333 },  { 127, 1000, 65 },  { 1000, 999, 1000 },
                                    { 136, 264, 320 }, { 384, 256, 4104 }, { 2056, 520, 128 }, { 100, 100, 100 } };
static const shape large_shapes[] = {
    { 1000, 1000, 1000 }, { 1024, 1024, 1024 }, { 2048, 2048, 2048 }, { 1000, 8192, 72 },   { 8192, 1000, 136 },
    { 4104, 4104, 1000 }, { 200, 4104, 8192 },  { 4104, 72, 4104 },   { 8192, 8192, 64 },   { 2048, 4104, 8192 },
    { 4104, 8192, 200 },  { 136, 136, 8192 },   { 8192, 128, 1024 },  { 8192, 8192, 8192 },
};
template <class T> static void try_all(const bench<T>& x) {
    static const int sizes[] = { 64, 72, 128, 136, 200, 256 }, depths[] = { 8, 64, 72, 128, 136, 200, 256, 1000 };
    const int step = quick || sanitize ? 5 : 1;
    for (int layout = KBK_NN; layout <= KBK_TN; layout++) {
        if (only_shape.m) {
            try_shape(x, only_shape, layout, 0), try_shape(x, only_shape, layout, 1);
            continue;
        }
        for (int i = 0; i < 6 * 6 * 8; i += sanitize ? 47 : step)
            try_shape(x, { sizes[i / 48], sizes[i / 8 % 6], depths[i % 8] }, layout, 0);
        for (const shape& s : odd_shapes)
            if (!sanitize || s.m * s.n * s.k < 5000000) try_shape(x, s, layout, 0), try_shape(x, s, layout, 1);
        for (const shape& s : large_shapes)
            if (!sanitize && !(quick && s.m * s.n * s.k > (int64_t)1 << 34)) try_shape(x, s, layout, 0);
        try_addresses(x, layout);
    }
}

// --- the primitives that no product uses yet: wgmma with A from registers, at every width; copies of three dimensions,
//     to one CTA and to a pair, and back

#define PROBE_PLANES 4
template <class T, int Width>
__global__ void __launch_bounds__(128) probe_k(const __grid_constant__ kbki_map a, const __grid_constant__ kbki_map b,
                                               const __grid_constant__ kbki_map c) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full;
    char *sa = kbki_wg_align(kbki_mm_ring), *sb = sa + 8192, *sc = sb + Width * 128;
    int t = threadIdx.x, lane = t % 32, warp = t / 32, rank = (int)kbki_cluster_rank(), plane = blockIdx.x;
    float d[Width / 2];
    kbki_wg_operand<true> operand;
    if (t == 0) kbki_bar_init(&full, 1), kbki_bar_ready();
    __syncwarp();
    kbki_cluster_barrier();
    if (t == 0) { // B of the pair's first plane for both CTAs
        kbki_bar_expect(&full, 8192 + Width * 128);
        kbki_tma_load_3d<false>(sa, &a, &full, 0, 0, plane);
        if (rank == 0) kbki_tma_load_3d<true>(sb, &b, &full, 0, 0, plane, 3);
    }
    __syncwarp();
    kbki_bar_wait(&full, 0);
    operand.set(sb);
#pragma unroll
    for (int step = 0; step < 4; step++) {
        uint32_t r[4];
        for (int e = 0; e < 4; e++) { // rows 0, 8 and packs 0, 1 of this warp's 16 x 16
            int row = warp * 16 + lane / 4 + e % 2 * 8, pack = step * 2 + e / 2;
            r[e] = *(const uint32_t*)(sa + row * 128 + (pack ^ row % 8) * 16 + lane % 4 * 4);
        }
        kbki_wg_fence();
        kbki_wgmma<T, Width>::template registers<0>(d, r, operand.at(step * 2), step);
        kbki_wg_commit();
        kbki_wg_wait<0>();
        kbki_wg_hold<Width / 2>(d);
    }
    for (int i = 0; i < Width / 2; i += 2) {
        int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, pack = i / 4;
        char* at = sc + pack / 8 * 8192 + row * 128 + (pack % 8 ^ row % 8) * 16 + lane % 4 * 4;
        *(uint32_t*)at = kbki_word((T*)0, d + i);
    }
    kbki_bulk_fence();
    __syncthreads();
    for (int x = 0; t == 0 && x < Width; x += 64) kbki_tma_store_3d(&c, sc + x * 128, x, 0, plane);
    if (t == 0) kbki_bulk_done();
    __syncwarp();
    kbki_cluster_barrier();
#endif
}
template <class T, int Width> static void probe(const bench<T>& x) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    const int64_t M = 60, N = Width - 8, K = 56, P = PROBE_PLANES; // all less than their boxes
    kbki_map a = {}, b = {}, c = {};
    verdict zero = { 0, ~0ull, 0 }, v;
    T* out = (T*)(x.c + GUARD);
    size_t bytes = 1024 + 8192 + Width * 128 * 2, c_bytes = 2 * GUARD + 2 * P * M * N;
    fill(x.a, P * M * K, 5, true), fill(x.b, P * N * K, 6, true);
    CUDA(cudaMemsetAsync(x.c, 0xFF, c_bytes, stream));
    CUDA(cudaMemcpyAsync(x.v, &zero, sizeof zero, cudaMemcpyHostToDevice, stream));
    const char* why = kbki_map_planes(x.a, P, M * K, M, K, K, 64, &a);
    if (!why) why = kbki_map_planes(x.b, P, N * K, N, K, K, Width, &b);
    if (!why) why = kbki_map_planes(out, P, M * N, M, N, N, 64, &c);
    for (int64_t p = 0; p < P; p++)
        reference(x.a + p * M * K, x.b + p / 2 * 2 * N * K, x.want + p * M * N, { M, N, K }, KBK_NT);
    cudaLaunchConfig_t cfg = {};
    cudaLaunchAttribute attr = {};
    attr.id = cudaLaunchAttributeClusterDimension, attr.val.clusterDim.x = 2;
    attr.val.clusterDim.y = attr.val.clusterDim.z = 1;
    cfg.gridDim = dim3(PROBE_PLANES), cfg.blockDim = dim3(128), cfg.dynamicSmemBytes = bytes;
    cfg.stream = stream, cfg.attrs = &attr, cfg.numAttrs = 1;
    if (!why) why = kbki_want_shared(probe_k<T, Width>, &bytes);
    if (!why) CUDA(cudaLaunchKernelEx(&cfg, probe_k<T, Width>, a, b, c));
    compare_k<T><<<64, 256, 0, stream>>>(x.c, (int64_t)c_bytes, GUARD, x.want, P * M * N, x.v);
    CUDA(cudaMemcpyAsync(&v, x.v, sizeof v, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (!why && !v.bad && !v.outside) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL: wgmma from registers, %s, width %d: %s (%llu wrong, the first at %lld, %llu outside)\n",
           dtype_name[dtype], Width, why ? why : "wrong", v.bad, (long long)v.first, v.outside);
}

// --- times

static const shape timed_shapes[] = {
    { 1024, 1024, 1024 }, { 2048, 2048, 2048 }, { 4096, 4096, 4096 }, { 8192, 8192, 8192 }, { 4096, 14336, 4096 },
};
static double median(float* t, int n) {
    std::sort(t, t + n);
    return n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
}
enum { CUBLAS = RUNGS, TIMED = RUNGS + 1, WARM = 3 };
template <class T> static const char* launch(int which, const kbk_args* a) {
    if (which < RUNGS) return rungs[which].launch[kbki_type<T>::cuda == CUDA_R_16BF](a, stream);
#ifdef KBK_CUBLAS
    return kbk_matmul_fwd_cublas<T>(a, stream);
#else
    return "built without cuBLAS";
#endif
}
// How far a variant's result is from that of cuBLAS, as a share of it.
template <class T> static void compare_norms(T* c, T* other, shape s, int which, int layout, const kbk_args* with) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    static double* sums;
    double host[2], most = dtype ? 5e-3 : 8e-4;
    kbk_args mine = *with, theirs = *with;
    if (!sums) CUDA(cudaMalloc((void**)&sums, sizeof host));
    mine.out[0] = c, theirs.out[0] = other;
    CUDA(cudaMemsetAsync(c, 0xFF, (size_t)(2 * s.m * s.n), stream));
    CUDA(cudaMemsetAsync(sums, 0, sizeof host, stream));
    const char* why = launch<T>(which, &mine);
    if (!why) why = launch<T>(CUBLAS, &theirs);
    distance_k<T><<<1024, 256, 0, stream>>>(c, other, s.m * s.n, sums);
    CUDA(cudaMemcpyAsync(host, sums, sizeof host, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (!why && host[0] <= most * most * host[1] && host[1] > 0) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL: %s %s %s %lldx%lldx%lld, random: %s (off cuBLAS by %.3g, allowed %.3g)\n", rungs[which].name,
           dtype_name[dtype], layout_name[layout], (long long)s.m, (long long)s.n, (long long)s.k,
           why ? why : "too far", sqrt(host[0] / host[1]), most);
}
static void print_or_dash(bool there, const char* format, double x, int width) {
    char text[32] = "-";
    if (there) snprintf(text, sizeof text, format, x);
    printf("%*s", width, text);
}
template <class T> static void time_shape(shape s, int layout, size_t l2) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    int64_t a_n = kbki_ceil(s.m * s.k, 128) * 128, b_n = kbki_ceil(s.k * s.n, 128) * 128;
    int64_t set = a_n + b_n + kbki_ceil(s.m * s.n, 128) * 128;
    int sets = (int)(2 * l2 / (size_t)(2 * set)) + 2, turn = 0;
    T* room;
    cudaEvent_t events[TIMED][LAUNCHES][2];
    double ms[TIMED] = {};
    bool on[TIMED];
    CUDA(cudaMalloc((void**)&room, (size_t)(2 * set) * sets));
    fill(room, set * sets, 7, false);
    for (int v = 0; v < TIMED; v++) {
        kbk_args a = arguments(room, room + a_n, room + a_n + b_n, s, layout);
        on[v] = v == CUBLAS || wanted(rungs[v], dtype);
        const char* why = on[v] ? launch<T>(v, &a) : NULL;
        if (why && v != CUBLAS) printf("FAIL: %s: %s\n", rungs[v].name, why), failed++;
        on[v] = on[v] && !why;
        for (int i = 0; i < LAUNCHES; i++)
            CUDA(cudaEventCreate(&events[v][i][0])), CUDA(cudaEventCreate(&events[v][i][1]));
    }
    CUDA(cudaStreamSynchronize(stream));
    hold_k<<<1, 1, 0, stream>>>(20000000);
    for (int i = -WARM; i < LAUNCHES; i++)
        for (int v = 0; v < TIMED; v++) {
            T* at = room + turn++ % sets * set;
            kbk_args a = arguments(at, at + a_n, at + a_n + b_n, s, layout);
            if (!on[v]) continue;
            if (i >= 0) CUDA(cudaEventRecord(events[v][i][0], stream));
            launch<T>(v, &a);
            if (i >= 0) CUDA(cudaEventRecord(events[v][i][1], stream));
        }
    CUDA(cudaStreamSynchronize(stream));
    for (int v = 0; v < TIMED; v++) {
        float t[LAUNCHES];
        for (int i = 0; i < LAUNCHES && on[v]; i++)
            CUDA(cudaEventElapsedTime(&t[i], events[v][i][0], events[v][i][1]));
        ms[v] = on[v] ? median(t, LAUNCHES) : 0;
        for (int i = 0; i < LAUNCHES; i++)
            CUDA(cudaEventDestroy(events[v][i][0])), CUDA(cudaEventDestroy(events[v][i][1]));
    }
    printf("%-4s %s %5lldx%5lldx%5lld", dtype_name[dtype], layout_name[layout], (long long)s.m, (long long)s.n,
           (long long)s.k);
    double tera = 2e-9 * (double)s.m * (double)s.n * (double)s.k;
    print_or_dash(on[CUBLAS], "%8.1f", tera / ms[CUBLAS], 8);
    for (int v = 0; v < RUNGS; v++) {
        print_or_dash(on[v], "%10.1f", tera / ms[v], 10);
        print_or_dash(on[v] && on[CUBLAS], "%5.2f", ms[CUBLAS] / ms[v], 5);
    }
    printf("\n");
    kbk_args a = arguments(room, room + a_n, NULL, s, layout);
    for (int v = 0; v < RUNGS && on[CUBLAS]; v++)
        if (on[v]) compare_norms(room + a_n + b_n, room + set + a_n + b_n, s, v, layout, &a);
    CUDA(cudaFree(room));
}
template <class T> static void time_all(size_t l2) {
    for (const shape& s : timed_shapes) {
        if (only_shape.m && &s != timed_shapes) continue;
        for (int layout = KBK_NN; layout <= KBK_TN; layout++) {
            shape now = only_shape.m ? only_shape : s;
            if (tma_takes(NULL, NULL, now, layout)) time_shape<T>(now, layout, l2);
        }
        fflush(stdout);
    }
}

template <class T> static void check_type() {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    bench<T> x;
    size_t most = (size_t)(sanitize ? 4 << 20 : 8192 * 8192) + 65536; // elements of the largest matrix
    if (only_dtype && strcmp(only_dtype, dtype_name[dtype])) return;
    const shape& o = only_shape;
    most = std::max(most, (size_t)std::max({ o.m * o.k, o.k * o.n, o.m * o.n }) + 65536);
    CUDA(cudaMalloc((void**)&x.a, 2 * most)), CUDA(cudaMalloc((void**)&x.b, 2 * most));
    CUDA(cudaMalloc((void**)&x.want, 2 * most)), CUDA(cudaMalloc((void**)&x.c, 2 * most + 4 * GUARD));
    CUDA(cudaMalloc((void**)&x.v, sizeof *x.v));
    if (!only_rung && !only_shape.m) probe<T, 64>(x), probe<T, 128>(x), probe<T, 192>(x), probe<T, 256>(x);
    try_all(x);
    printf("%s: %d passed, %d failed\n", dtype_name[dtype], passed, failed), fflush(stdout);
    CUDA(cudaFree(x.a)), CUDA(cudaFree(x.b)), CUDA(cudaFree(x.want)), CUDA(cudaFree(x.c)), CUDA(cudaFree(x.v));
}
static int parse(int argc, char** argv, bool* check, bool* time) {
    for (int i = 1; i < argc; i++) {
        const char* word = argv[i];
        bool more = i + 1 < argc;
        if (!strcmp(word, "--check"))
            *time = false;
        else if (!strcmp(word, "--time"))
            *check = false;
        else if (!strcmp(word, "--quick"))
            quick = true, *time = false;
        else if (!strcmp(word, "--sanitize"))
            sanitize = true, *time = false;
        else if (!strcmp(word, "--rung") && more)
            only_rung = argv[++i];
        else if (!strcmp(word, "--dtype") && more)
            only_dtype = argv[++i];
        else if (!strcmp(word, "--shape") && more) {
            long long m, n, k;
            if (sscanf(argv[++i], "%lldx%lldx%lld", &m, &n, &k) != 3 || m < 1 || n < 1 || k < 0) return 0;
            only_shape = { m, n, k };
        } else
            return 0;
    }
    bool known = !only_rung;
    for (const rung& r : rungs) known = known || !strcmp(r.name, only_rung);
    return known && (!only_dtype || !strcmp(only_dtype, "f16") || !strcmp(only_dtype, "bf16"));
}

int main(int argc, char** argv) {
    bool check = true, time = true;
    int devices = 0, l2 = 0;
    if (!parse(argc, argv, &check, &time)) {
        printf("usage: %s [--check] [--time] [--rung wgmma|ws|coop|persist|multicast|tma|select] [--dtype f16|bf16] "
               "[--shape MxNxK] [--quick] [--sanitize]\n",
               argv[0]);
        return 2;
    }
    const char* why = "no GPU: the kernels were compiled and not run";
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) why = kbki_needs_hopper();
    if (why) {
        printf("SKIP: %s\n0 passed, 0 failed, 1 skipped\n", why);
        return 77;
    }
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    kbk_shape whole = arguments(NULL, NULL, NULL, only_shape, KBK_NN).s;
    work_bytes = std::max(work_bytes, kbki_scratch_matmul(&whole, KBKI_WORD_select) + 2 * kbki_mm_copies(&whole));
    CUDA(cudaMalloc((void**)&work, work_bytes));
    CUDA(cudaMemset(work, 0, KBK_TICKETS));
    CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
    if (check) check_type<__half>(), check_type<bf16>();
    if (time && failed) printf("no times: the results are wrong\n");
    if (time && !failed) {
        printf("TFLOP/s           M     N     K  cuBLAS");
        for (const rung& r : rungs) printf("%10s    x", r.name);
        printf("\n");
        if (!only_dtype || !strcmp(only_dtype, "bf16")) time_all<bf16>((size_t)l2);
        if (!only_dtype || !strcmp(only_dtype, "f16")) time_all<__half>((size_t)l2);
    }
    CUDA(cudaDeviceSynchronize());
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
