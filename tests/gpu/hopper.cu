// SPDX-License-Identifier: MIT OR Unlicense
/* Tests the matrix products with wgmma and TMA: rungs 11 to 16, 19 and 20 of matmul, rungs 3 and 4 of bmm, and every
   configuration (tile shape, cluster, split-K) that the variants `select` and `tf32` can choose. Tests the variant
   `mmapipe` with split-K, and the primitives of the kernels with wgmma. Results must be exact on integers, in every
   layout and with every kind of incomplete tile, and nothing outside of C may be written. The kernels must accept
   operands that TMA supports, and reject all other operands.

   nvcc -std=c++17 -O2 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/hopper.cu -o hopper && ./hopper [OPTION...]
   (-ldl on an old glibc; -DHOPPER_NO_TRAP: without the timeout that ends a kernel which waits for ever)

       --check        only correctness;   --time   only speed
       --ways         only the times of select's configurations, in every layout; by default in one layout
       --graph        only times of small products, per launch in a CUDA graph
       --sustained    only times of select, tf32 and cuBLAS: of short runs on a cool GPU, and of two seconds without a
                      pause; each with the clock, the latter also with the power (NVML)
       --rung NAME    only this variant or configuration
       --dtype NAME   only f16, bf16 or f32; f32 means tf32 and its configurations
       --shape MxNxK  only this shape; BxMxNxK: a batch
       --quick        fewer shapes, no times
       --sanitize     for compute-sanitizer: a few small shapes, no times

   The inputs of the checks are -1, 0 and 1. Sums of a few thousand such products are exact in every type, also in
   16 bits, so a missing, repeated or misplaced product is detected. Times are medians of 20 launches, each between
   two CUDA events, in interleaved rounds of all variants, on buffers that together exceed the L2 cache. cuBLAS is timed
   as well, if it is installed. With --graph, the buffers stay in L2, and the time of a CUDA graph is subtracted
   from the time of a graph with twice as many launches. The exit code is 0 without failures, 1 after failures, and
   77 without a GPU. */
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
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include <vector>

static_assert(sizeof(kbki_map) == sizeof(CUtensorMap) && KBKI_MAP_16F == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
                  KBKI_MAP_16BF == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 &&
                  KBKI_MAP_32F == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 &&
                  KBKI_MAP_SWIZZLE_128 == CU_TENSOR_MAP_SWIZZLE_128B &&
                  KBKI_MAP_L2_128 == CU_TENSOR_MAP_L2_PROMOTION_L2_128B &&
                  KBKI_MAP_L2_256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
              "numbers of cuda.h");

typedef __nv_bfloat16 bf16;
struct rung {
    const char* name;
    kbk_launch_fn launch[3], batched[3];
    bool any;                            // whether the variant accepts rows that are not 16-byte aligned
    bool way;
};
static kbki_wg_choice how; // `split` and `along_n` of the configurations
template <class T, int Way> static const char* way(const kbk_args* a, kbk_stream st) {
    int64_t batch = a->s.batch ? a->s.batch : 1, ctas;
    kbk_args rest = *a;
    kbki_mm<T> io;
    const char* why = kbki_mm_args(a, 64, 64, &io, &ctas);
    if constexpr (sizeof(T) == 4)
        if (!why && ctas && batch) why = kbki_tf32_ready(a, batch, &rest, &io, st);
    return why ? why : kbki_wg_select(&rest, io, batch, { Way, how.split, how.along_n, 0 }, st);
}
template <class T, int Way, int Elem> static constexpr kbk_launch_fn way_of() {
    if constexpr (sizeof(T) == Elem)
        return way<T, Way>;
    else
        return NULL;
}
// clang-format off
#define HALF(f) { f<__half>, f<bf16>, NULL }
#define RUNG(name) { #name, HALF(kbk_matmul_fwd_##name), {}, false, false }
#define BOTH(name) { #name, HALF(kbk_matmul_fwd_##name), HALF(kbk_bmm_fwd_##name), true, false }
#define WAYS(name, elem) { way_of<__half, KBKI_WG_##name, elem>(), way_of<bf16, KBKI_WG_##name, elem>(),            \
                           way_of<float, KBKI_WG_##name, elem>() }
#define WAY(name, elem, ...) { #name, WAYS(name, elem), WAYS(name, elem), false, true },
static const rung rungs[] = {
    RUNG(wgmma), RUNG(ws), RUNG(coop), RUNG(persist), RUNG(multicast), RUNG(tma), BOTH(mmapipe), BOTH(select),
    { "tf32", { NULL, NULL, kbk_matmul_fwd_tf32<float> }, { NULL, NULL, kbk_bmm_fwd_tf32<float> }, false, false },
    KBKI_WG_TABLE(WAY)
};
// clang-format on
enum { RUNGS = sizeof rungs / sizeof rungs[0], GUARD = 4096, LAUNCHES = 20 };
static const char* const layout_name[] = { "NN", "NT", "TN" };
static const char* const dtype_name[] = { "f16", "bf16", "f32" };
template <class T>
constexpr int dtype_of = kbki_type<T>::cuda == CUDA_R_16F    ? 0
                         : kbki_type<T>::cuda == CUDA_R_16BF ? 1
                                                             : 2;

struct shape {
    int64_t m, n, k, b = 0; // b: number of products in a batch; 0: a single product, with matmul instead of bmm
};
static int64_t many(shape s) { return s.b ? s.b : 1; }
static std::string text(shape s) {
    char t[96];
    snprintf(t, sizeof t, s.b ? "%lldx" : "", (long long)s.b);
    size_t used = strlen(t);
    snprintf(t + used, sizeof t - used, "%lldx%lldx%lld", (long long)s.m, (long long)s.n, (long long)s.k);
    return t;
}
static int passed, failed, skipped;
static const char *only_rung, *only_dtype; // options
static shape only_shape;
static bool quick, sanitize, ways, graphs, sustained;
static cudaStream_t stream;
static char* work; // workspace
static size_t work_bytes = (size_t)640 << 20;

static void cuda(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    printf("FAIL: %s: %s\n%d passed, %d failed, %d skipped\n", what, cudaGetErrorString(e), passed, failed + 1,
           skipped);
    exit(1);
}
#define CUDA(call) cuda((call), #call)

// --- device code of the checks

__host__ __device__ inline uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return x ^ x >> 16;
}
template <class T> __global__ void fill_k(T* x, int64_t n, uint32_t seed, bool integers) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t r = mixed((uint32_t)i * 2654435761u ^ mixed(seed + (uint32_t)(i >> 32)));
        x[i] = (T)(integers ? (float)(int)(r % 3) - 1 : (float)(r >> 8) * 0x1p-23f - 1);
    }
}
// A[i,k] is at i * am + k * ak.
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
    unsigned long long bad, first, outside;
};
template <class T> struct bits { typedef unsigned short word; };
template <> struct bits<float> { typedef uint32_t word; };
// The n elements of C from byte `at` on must be `want`, and all other bytes 0xFF. If want is NULL, no byte may
// have been written: the bytes of C must be 0xFF, too.
template <class T>
__global__ void compare_k(const char* raw, int64_t bytes, int64_t at, const T* want, int64_t n, verdict* v) {
    typedef typename bits<T>::word word;
    const word* got = (const word*)raw;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < bytes / (int64_t)sizeof(T);
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t e = i - at / (int64_t)sizeof(T);
        bool inside = want && e >= 0 && e < n;
        word w = inside ? ((const word*)want)[e] : (word)0xFFFFFFFF;
        if (got[i] == w || (inside && (float)((const T*)raw)[i] == (float)want[e])) continue; // -0 is 0
        if (inside)
            atomicAdd(&v->bad, 1ull), atomicMin(&v->first, (unsigned long long)e);
        else
            atomicAdd(&v->outside, 1ull);
    }
}
template <class T> __global__ void distance_k(const T* a, const T* b, int64_t n, double* sums) {
    double d = 0, s = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        double x = (float)a[i], y = (float)b[i];
        d += (x - y) * (x - y), s += y * y;
    }
    d = kbki_warp_all<kbki_sum<double>>(d), s = kbki_warp_all<kbki_sum<double>>(s);
    if (threadIdx.x % 32 == 0) atomicAdd(sums, d), atomicAdd(sums + 1, s);
}

// Keeps the stream busy while the host queues the timed launches; otherwise short kernels would have gaps between
// launches.
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
    for (int64_t i = 0; i < many(s); i++, a += s.m * s.k, b += s.k * s.n, c += s.m * s.n)
        reference_k<T><<<grid, dim3(32, 32), 0, stream>>>(a, b, c, (int)s.m, (int)s.n, (int)s.k, am, ak, bk, bn);
}
template <class T> static kbk_args arguments(const T* a, const T* b, void* c, shape s, int layout) {
    kbk_args args = {};
    args.s.batch = s.b;
    args.s.rows = s.m, args.s.cols = s.n, args.s.k = s.k, args.s.layout = layout;
    args.in[0] = a, args.in[1] = b, args.out[0] = c, args.workspace = work, args.workspace_bytes = work_bytes;
    return args;
}
static kbk_launch_fn launcher(const rung& r, int dtype, shape s) { return s.b ? r.batched[dtype] : r.launch[dtype]; }
static bool wanted(const rung& r, int dtype, shape s) {
    return (!only_rung || !strcmp(only_rung, r.name)) && (!only_dtype || !strcmp(only_dtype, dtype_name[dtype])) &&
           launcher(r, dtype, s);
}
template <class T> static bool takes(const rung& r, const T* a, const T* b, const void* c, shape s, int layout) {
    const int64_t width = 16 / (int64_t)sizeof(T);
    int64_t lda = layout == KBK_TN ? s.m : s.k, ldb = layout == KBK_NT ? s.k : s.n;
    bool aligned = (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0;
    if (r.any || s.k == 0) return true;
    if (sizeof(T) == 4) return s.k % width == 0 && aligned;
    if (!strcmp(r.name, "tma")) aligned = aligned && s.n % width == 0 && (uintptr_t)c % 16 == 0; // TMA also stores C
    return lda % width == 0 && ldb % width == 0 && aligned;
}

// --- the checks

template <class T> struct bench { // buffers that are large enough for all shapes
    T *a, *b, *want;
    char* c; // guard, C, guard
    verdict* v;
    int64_t c_elements;
};
static int word_of(const char* variant) {
#define WORD_NAME(word) #word,
    static const char* const names[] = { KBKI_WORDS(WORD_NAME) };
    for (int i = 0; i < KBKI_WORD_COUNT; i++)
        if (!strcmp(names[i], variant)) return i;
    return -1;
}
// off: C starts this number of elements after a 16-byte boundary.
template <class T>
static void try_one(const bench<T>& x, const rung& r, const T* a, const T* b, shape s, int layout, int off) {
    const int dtype = dtype_of<T>;
    const int64_t size = sizeof(T), n = many(s) * s.m * s.n, at = GUARD + size * off, bytes = at + size * n + GUARD;
    verdict zero = { 0, ~0ull, 0 }, v;
    kbk_args args = arguments<T>(a, b, x.c + at, s, layout);
    bool can = takes(r, a, b, args.out[0], s, layout);
    if (!r.way)
        args.workspace_bytes = s.b ? kbki_scratch_bmm(&args.s, (int)sizeof(T), word_of(r.name))
                                   : kbki_scratch_matmul(&args.s, (int)sizeof(T), word_of(r.name));
    cuda(args.workspace_bytes <= work_bytes ? cudaSuccess : cudaErrorInvalidValue,
         "the scratch memory of this test is too small");
    if (args.workspace_bytes)
        CUDA(cudaMemsetAsync(work, 0xFF, std::min(args.workspace_bytes, (size_t)1 << 22), stream));
    CUDA(cudaMemsetAsync(x.c, 0xFF, (size_t)bytes, stream));
    CUDA(cudaMemcpyAsync(x.v, &zero, sizeof zero, cudaMemcpyHostToDevice, stream));
    const char* why = launcher(r, dtype, s)(&args, stream);
    compare_k<T><<<512, 256, 0, stream>>>(x.c, bytes, at, why ? NULL : x.want, n, x.v);
    CUDA(cudaMemcpyAsync(&v, x.v, sizeof v, cudaMemcpyDeviceToHost, stream));
    cudaError_t e = cudaStreamSynchronize(stream);
    const char* say = e != cudaSuccess ? cudaGetErrorString(e)
                      : !can && !why   ? "accepted a case that TMA does not support"
                      : can && why     ? why
                      : v.outside      ? "wrote outside C"
                      : v.bad          ? "wrong"
                                       : NULL;
    if (say == NULL) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL: %s %s %s %s%s: %s", r.name, dtype_name[dtype], layout_name[layout], text(s).c_str(),
           off ? ", C off by an element" : "", say);
    if (r.way) printf(", split %d, along_n %d", how.split, how.along_n);
    if (e == cudaSuccess && v.bad)
        printf(" (%llu of %lld, the first at row %lld, column %lld)", v.bad, (long long)n, (long long)v.first / s.n,
               (long long)v.first % s.n);
    printf("\n");
    if (e != cudaSuccess) { // after a trap, every CUDA call of this process fails
        printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
        exit(1);
    }
}
template <class T> static void try_shape(const bench<T>& x, shape s, int layout, int off, bool by_way = false) {
    const int dtype = dtype_of<T>;
    fill(x.a, many(s) * s.m * s.k, 1, true), fill(x.b, many(s) * s.k * s.n, 2, true);
    reference(x.a, x.b, x.want, s, layout);
    for (int i = 0; i < RUNGS; i++) {
        if (!wanted(rungs[i], dtype, s) || rungs[i].way != by_way) continue;
        try_one(x, rungs[i], x.a, x.b, s, layout, off);
        if (!rungs[i].way) continue;
        static const int more[][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 }, { 2, 0 }, { 7, 0 } };
        for (auto& m : more) how.split = m[0], how.along_n = m[1], try_one(x, rungs[i], x.a, x.b, s, layout, off);
        how = {};
    }
}
// Uses more inputs, at neighbouring addresses, than there are cached tensor maps: each launch must use its own
// input's map.
template <class T> static void try_addresses(const bench<T>& x, int layout) {
    const int dtype = dtype_of<T>;
    shape s = { 136, 264, 200 };
    fill(x.a, s.m * s.k + 2000, 3, true), fill(x.b, s.k * s.n + 2000, 4, true);
    for (int i = 0; i < (sanitize ? 4 : 200); i++) {
        const T *a = x.a + i % 150 * 8, *b = x.b + (200 - i) * 8;
        reference(a, b, x.want, s, layout);
        for (const rung& r : rungs)
            if (wanted(r, dtype, s) && !r.way) try_one(x, r, a, b, s, layout, 0);
    }
    for (int i = 0; i < 2; i++) {
        const T *a = x.a + (i == 0), *b = x.b + (i == 1);
        reference(a, b, x.want, s, layout);
        for (const rung& r : rungs)
            if (wanted(r, dtype, s)) try_one(x, r, a, b, s, layout, 0);
    }
}

static const shape odd_shapes[] = { { 1, 1, 0 },       { 33, 40, 0 },      { 1, 1, 8 },        { 1, 8, 8 },
                                    { 8, 8, 1 },       { 8, 1, 8 },        { 77, 131, 72 },    { 129, 264, 64 },
                                    { 136, 257, 200 }, { 264, 136, 333 },  { 127, 1000, 65 },  { 1000, 999, 1000 },
                                    { 136, 264, 320 }, { 384, 256, 4104 }, { 2056, 520, 128 }, { 100, 100, 100 },
                                    { 16, 1000, 2048 } };
static const shape large_shapes[] = {
    { 1000, 1000, 1000 }, { 1024, 1024, 1024 }, { 2048, 2048, 2048 }, { 1000, 8192, 72 },   { 8192, 1000, 136 },
    { 4104, 4104, 1000 }, { 200, 4104, 8192 },  { 4104, 72, 4104 },   { 8192, 8192, 64 },   { 2048, 4104, 8192 },
    { 4104, 8192, 200 },  { 136, 136, 8192 },   { 8192, 128, 1024 },  { 8192, 8192, 8192 }, { 256, 256, 131072 },
    { 16, 8192, 8192 },   { 512, 512, 512 },    { 8192, 8192, 776 },  { 131, 250, 8200 },
};
static const shape batches[] = {
    { 64, 64, 64, 1 },       { 72, 136, 200, 3 },   { 129, 264, 64, 2 },    { 33, 40, 0, 7 },
    { 64, 72, 8, 331 },      { 136, 257, 200, 3 },  { 264, 136, 333, 2 },   { 1, 8, 8, 5 },
    { 200, 520, 136, 16 },   { 256, 256, 8192, 1 }, { 512, 2048, 1024, 8 }, { 1024, 1024, 128, 32 },
    { 1000, 1000, 1000, 4 }, { 8, 16, 72, 3000 },
};
template <class T> static void try_ways(const bench<T>& x, int layout) {
    static const int sizes[] = { 8, 64, 136, 200, 264, 392 }, depths[] = { 8, 64, 136, 456, 1000, 3080 };
    for (int i = 0; i < 6 * 6 * 6; i += sanitize ? 43 : quick ? 11 : 1)
        try_shape(x, { sizes[i / 36], sizes[i / 6 % 6], depths[i % 6] }, layout, i % 2, true);
    for (const shape& s : odd_shapes)
        if (!sanitize) try_shape(x, s, layout, 0, true);
    for (const shape& s : large_shapes)
        if (!sanitize && s.m * s.n * s.k < (int64_t)1 << (quick ? 32 : 36)) try_shape(x, s, layout, 0, true);
}
template <class T> static void try_thin(const bench<T>& x) {
    static const int columns[] = { 520, 1033, 2000, 3592, 6413 }, depths[] = { 264, 1032, 1528, 4200 };
    static const int rows[] = { 1, 7, 8, 9, 15, 16, 17, 24, 32, 33, 57, 64 };
    for (int i = 0; i < 12 * 20; i += sanitize ? 37 : quick ? 7 : 1)
        try_shape(x, { rows[i / 20], columns[i / 4 % 5], depths[i % 4] }, KBK_NT, i / 20 % 2);
    for (int m = 1; m <= 16 && !sanitize; m += quick ? 5 : 1)
        for (int i = 0; i < 4; i++) try_shape(x, { m, 8200 + i / 2 * 3, 4096 + i % 2 * 8 }, KBK_NT, m % 2);
}
template <class T> static void try_all(const bench<T>& x) {
    static const int sizes[] = { 64, 72, 128, 136, 200, 256 }, depths[] = { 8, 64, 72, 128, 136, 200, 256, 1000 };
    const int step = quick || sanitize ? 5 : 1;
    for (int layout = KBK_NN; layout <= KBK_TN; layout++) {
        if (only_shape.m) {
            for (int off = 0; off < 4; off++) try_shape(x, only_shape, layout, off % 2, off / 2);
            continue;
        }
        for (int i = 0; i < 6 * 6 * 8; i += sanitize ? 47 : step)
            try_shape(x, { sizes[i / 48], sizes[i / 8 % 6], depths[i % 8] }, layout, 0);
        for (const shape& s : odd_shapes)
            if (!sanitize || s.m * s.n * s.k < 5000000) try_shape(x, s, layout, 0), try_shape(x, s, layout, 1);
        for (const shape& s : large_shapes)
            if (!sanitize && !(quick && s.m * s.n * s.k > (int64_t)1 << 34)) try_shape(x, s, layout, 0);
        for (const shape& s : batches)
            if (!sanitize || s.b * s.m * s.n * s.k < 5000000)
                for (int off = 0; off < 4; off++) try_shape(x, s, layout, off % 2, off / 2);
        try_ways(x, layout);
        try_addresses(x, layout);
        if (layout == KBK_NT) try_thin(x);
    }
}

// --- tests of primitives: wgmma with the first operand in registers; TMA loads, multicasts and stores of planes

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
    if (t == 0) { // CTA 0 of a pair copies B of its plane to both CTAs
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
        for (int e = 0; e < 4; e++) { // A: rows 0, 8 and 16-byte vectors 0, 1 of this warp's 16 x 16 block
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
    const int dtype = dtype_of<T>;
    const int64_t M = 60, N = Width - 8, K = 56, P = PROBE_PLANES;
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

enum { BF16 = 2, HALVES = 3, ALL = 7 };
static const struct {
    shape s;
    int layout, dtypes; // -1: each; bits of f16, bf16, f32
} timed[] = {
    { { 512, 512, 512 }, KBK_NT, BF16 | 4 },    { { 1024, 1024, 1024 }, -1, ALL },
    { { 1280, 1280, 1280 }, -1, BF16 },         { { 1536, 1536, 1536 }, -1, BF16 | 4 },
    { { 1792, 1792, 1792 }, -1, BF16 },         { { 2048, 2048, 2048 }, -1, HALVES },
    { { 2048, 2048, 2048 }, KBK_NT, 4 },        { { 2560, 2560, 2560 }, -1, BF16 },
    { { 3072, 3072, 3072 }, -1, BF16 | 4 },     { { 4096, 4096, 4096 }, -1, ALL },
    { { 5120, 5120, 5120 }, KBK_NT, BF16 },     { { 8192, 8192, 8192 }, -1, HALVES },
    { { 8192, 8192, 8192 }, KBK_NT, 4 },        { { 1536, 3072, 1536 }, -1, BF16 },
    { { 4096, 14336, 4096 }, -1, BF16 },        { { 8192, 14336, 4096 }, KBK_NT, BF16 },
    { { 4096, 4096, 16384 }, KBK_NT, BF16 },    { { 16384, 4096, 4096 }, KBK_NT, BF16 },
    { { 8192, 8192, 1024 }, -1, BF16 },         { { 8192, 50304, 768 }, KBK_NT, BF16 },
    { { 256, 256, 131072 }, KBK_NT, BF16 | 4 }, { { 16, 8192, 8192 }, KBK_NT, BF16 },
    { { 8205, 5921, 2949 }, KBK_NT, BF16 },     { { 512, 2048, 1024, 128 }, -1, BF16 | 4 },
    { { 1024, 1024, 128, 256 }, -1, BF16 | 4 },
};
static double median(float* t, int n) {
    std::sort(t, t + n);
    return n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
}
enum { CUBLAS = RUNGS, TIMED = RUNGS + 1, WARM = 3 };
#ifdef KBK_CUBLAS
static const char* cublas_tf32(const kbk_args* a) {
    const int64_t batch = a->s.batch ? a->s.batch : 1;
    kbki_cublas* lib;
    cublasHandle_t h;
    kbki_mm<float> io;
    int64_t ctas;
    float one = 1, zero = 0;
    const char* why = kbki_mm_args(a, 1, 1, &io, &ctas);
    if (!why) why = kbki_cublas_get(a, stream, &lib, &h);
    if (why) return why;
    cublasOperation_t tb = a->s.layout == KBK_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t ta = a->s.layout == KBK_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int n = (int)io.n, m = (int)io.m, k = (int)io.k, ldb = (int)io.ldb, lda = (int)io.lda;
    const cublasComputeType_t tf32 = CUBLAS_COMPUTE_32F_FAST_TF32;
    const cudaDataType f32 = CUDA_R_32F;
    cublasStatus_t e = batch == 1
                           ? lib->gemm(h, tb, ta, n, m, k, &one, io.b, f32, ldb, io.a, f32, lda, &zero, io.c, f32, n,
                                       tf32, CUBLAS_GEMM_DEFAULT)
                           : lib->batched(h, tb, ta, n, m, k, &one, io.b, f32, ldb, io.sb, io.a, f32, lda, io.sa,
                                          &zero, io.c, f32, n, io.sc, (int)batch, tf32, CUBLAS_GEMM_DEFAULT);
    return e == CUBLAS_STATUS_SUCCESS ? kbki_launched() : "cuBLAS returned an error";
}
#endif
template <class T> static const char* launch(int which, const kbk_args* a) {
    const int dtype = dtype_of<T>;
    if (which < RUNGS) return (a->s.batch ? rungs[which].batched : rungs[which].launch)[dtype](a, stream);
#ifdef KBK_CUBLAS
    if constexpr (sizeof(T) == 4)
        return cublas_tf32(a);
    else
        return a->s.batch ? kbk_bmm_fwd_cublas<T>(a, stream) : kbk_matmul_fwd_cublas<T>(a, stream);
#else
    return "built without cuBLAS";
#endif
}
template <class T> static void compare_norms(T* c, T* other, shape s, int which, int layout, const kbk_args* with) {
    const int dtype = dtype_of<T>;
    static double* sums;
    double host[2], most = dtype == 1 ? 5e-3 : dtype == 0 ? 8e-4 : 1.5e-3;
    kbk_args mine = *with, theirs = *with;
    if (!sums) CUDA(cudaMalloc((void**)&sums, sizeof host));
    mine.out[0] = c, theirs.out[0] = other;
    CUDA(cudaMemsetAsync(c, 0xFF, sizeof(T) * (size_t)(many(s) * s.m * s.n), stream));
    CUDA(cudaMemsetAsync(sums, 0, sizeof host, stream));
    const char* why = launch<T>(which, &mine);
    if (!why) why = launch<T>(CUBLAS, &theirs);
    distance_k<T><<<1024, 256, 0, stream>>>(c, other, many(s) * s.m * s.n, sums);
    CUDA(cudaMemcpyAsync(host, sums, sizeof host, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (!why && host[0] <= most * most * host[1] && host[1] > 0) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL: %s %s %s %s, random: %s (off cuBLAS by %.3g, allowed %.3g)\n", rungs[which].name, dtype_name[dtype],
           layout_name[layout], text(s).c_str(), why ? why : "too far", sqrt(host[0] / host[1]), most);
}
static void print_or_dash(bool there, const char* format, double x, int width) {
    char text[32] = "-";
    if (there) snprintf(text, sizeof text, format, x);
    printf("%*s", width, text);
}
static bool shown(const rung& r) { return only_rung ? !strcmp(only_rung, r.name) : r.way == ways; }
// Sets of operands and results that launches rotate through and that together exceed L2.
template <class T> struct rotation {
    shape s;
    int layout, sets, turn = 0;
    int64_t a_n, b_n, set;
    T* room;
    bool on[TIMED];
    rotation(shape of, int l, size_t l2) : s(of), layout(l) {
        a_n = kbki_ceil(many(s) * s.m * s.k, 128) * 128, b_n = kbki_ceil(many(s) * s.k * s.n, 128) * 128;
        set = a_n + b_n + kbki_ceil(many(s) * s.m * s.n, 128) * 128;
        sets = (int)(2 * l2 / (sizeof(T) * (size_t)set)) + 2;
        CUDA(cudaMalloc((void**)&room, sizeof(T) * (size_t)set * sets));
        fill(room, set * sets, 7, false);
        for (int v = 0; v < TIMED; v++) {
            kbk_args a = at(0);
            on[v] = v == CUBLAS ||
                    (shown(rungs[v]) && wanted(rungs[v], dtype_of<T>, s) && takes<T>(rungs[v], 0, 0, NULL, s, layout));
            const char* why = on[v] ? launch<T>(v, &a) : NULL;
            if (why && v != CUBLAS) printf("FAIL: %s: %s\n", rungs[v].name, why), failed++;
            on[v] = on[v] && !why;
        }
        CUDA(cudaStreamSynchronize(stream));
    }
    ~rotation() { CUDA(cudaFree(room)); }
    kbk_args at(int i) const {
        T* p = room + i % sets * set;
        return arguments<T>(p, p + a_n, p + a_n + b_n, s, layout);
    }
    kbk_args next() { return at(turn++); }
    double tera(double ms) const { return 2e-9 * (double)many(s) * (double)s.m * (double)s.n * (double)s.k / ms; }
    void head() const { printf("%-4s %s %18s", dtype_name[dtype_of<T>], layout_name[layout], text(s).c_str()); }
    void print(const double* ms) const {
        if (graphs) printf("graph ");
        head();
        print_or_dash(on[CUBLAS], "%8.1f", 1000 * ms[CUBLAS], 9);
        print_or_dash(on[CUBLAS], "%8.1f", tera(ms[CUBLAS]), 8);
        for (int v = 0; v < RUNGS; v++) {
            if (!shown(rungs[v])) continue;
            print_or_dash(on[v], "%10.1f", tera(ms[v]), 10);
            print_or_dash(on[v] && on[CUBLAS], "%5.2f", ms[CUBLAS] / ms[v], 5);
        }
        printf("\n");
    }
};
struct span {
    cudaEvent_t from, to;
    span() { CUDA(cudaEventCreate(&from)), CUDA(cudaEventCreate(&to)); }
    ~span() { cudaEventDestroy(from), cudaEventDestroy(to); }
    float ms() const {
        float t;
        CUDA(cudaEventElapsedTime(&t, from, to));
        return t;
    }
};
template <int Many> static double median(const span* spans) {
    float t[Many];
    for (int i = 0; i < Many; i++) t[i] = spans[i].ms();
    return median(t, Many);
}
template <class T> static void time_shape(shape s, int layout, size_t l2) {
    rotation<T> of(s, layout, l2);
    std::vector<span> spans(TIMED * LAUNCHES);
    double ms[TIMED] = {};
    hold_k<<<1, 1, 0, stream>>>(20000000);
    for (int i = -WARM; i < LAUNCHES; i++)
        for (int v = 0; v < TIMED; v++) {
            kbk_args a = of.next();
            const span& timer = spans[(size_t)(v * LAUNCHES + std::max(i, 0))];
            if (!of.on[v]) continue;
            if (i >= 0) CUDA(cudaEventRecord(timer.from, stream));
            launch<T>(v, &a);
            if (i >= 0) CUDA(cudaEventRecord(timer.to, stream));
        }
    CUDA(cudaStreamSynchronize(stream));
    for (int v = 0; v < TIMED; v++)
        if (of.on[v]) ms[v] = median<LAUNCHES>(&spans[(size_t)(v * LAUNCHES)]);
    of.print(ms);
    kbk_args a = of.at(0), b = of.at(1);
    for (int v = 0; v < RUNGS && of.on[CUBLAS]; v++)
        if (of.on[v]) compare_norms((T*)a.out[0], (T*)b.out[0], s, v, layout, &a);
}

// --- small products: time per launch in a CUDA graph

enum { NODES = 50, GRAPH_LAUNCHES = 15 };
template <class T> static cudaGraphExec_t graph_of(int which, const kbk_args* a, int nodes) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; i++) launch<T>(which, a);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}
template <class T> static void time_graph(shape s, int layout, size_t l2) {
    rotation<T> of(s, layout, l2);
    std::vector<span> spans(TIMED * 2 * GRAPH_LAUNCHES);
    cudaGraphExec_t graph[TIMED][2] = {};
    double ms[TIMED] = {};
    kbk_args a = of.at(0);
    for (int v = 0; v < TIMED; v++)
        for (int i = 0; i < 2 && of.on[v]; i++) graph[v][i] = graph_of<T>(v, &a, NODES << i);
    for (int i = -WARM; i < GRAPH_LAUNCHES; i++)
        for (int v = 0; v < 2 * TIMED; v++) {
            const span& timer = spans[(size_t)(v * GRAPH_LAUNCHES + std::max(i, 0))];
            if (!of.on[v / 2]) continue;
            if (i >= 0) CUDA(cudaEventRecord(timer.from, stream));
            CUDA(cudaGraphLaunch(graph[v / 2][v % 2], stream));
            if (i >= 0) CUDA(cudaEventRecord(timer.to, stream));
        }
    CUDA(cudaStreamSynchronize(stream));
    for (int v = 0; v < TIMED; v++) {
        const span* one = &spans[(size_t)(2 * v * GRAPH_LAUNCHES)];
        if (!of.on[v]) continue;
        ms[v] = (median<GRAPH_LAUNCHES>(one + GRAPH_LAUNCHES) - median<GRAPH_LAUNCHES>(one)) / NODES;
        CUDA(cudaGraphExecDestroy(graph[v][0])), CUDA(cudaGraphExecDestroy(graph[v][1]));
    }
    of.print(ms);
}

// --- large products: short runs on a cool device, and runs until its temperature is stable

static struct {
    void* device;
    int (*clock)(void*, int, unsigned*);
    int (*energy)(void*, unsigned long long*);
    unsigned mhz() const { // 0: unknown
        unsigned now = 0;
        return device && clock && clock(device, 1, &now) == 0 ? now : 0;
    }
    double joules() const {
        unsigned long long mj = 0;
        return device && energy && energy(device, &mj) == 0 ? 1e-3 * (double)mj : 0;
    }
} nvml;
static void nvml_open() {
    char bus[32];
    int (*init)(void) = NULL, (*handle)(const char*, void**) = NULL;
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library || cudaDeviceGetPCIBusId(bus, sizeof bus, 0) != cudaSuccess) return;
    *(void**)&init = dlsym(library, "nvmlInit_v2");
    *(void**)&handle = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void**)&nvml.clock = dlsym(library, "nvmlDeviceGetClockInfo");
    *(void**)&nvml.energy = dlsym(library, "nvmlDeviceGetTotalEnergyConsumption");
    if (!init || !handle || init() != 0 || handle(bus, &nvml.device) != 0) nvml.device = NULL;
}
struct pace {
    double ms, mhz, watts;
};
template <class T> static pace burst(rotation<T>& of, int v) {
    std::vector<span> spans(LAUNCHES);
    unsigned mhz = 0;
    usleep(500000); // to cool down
    for (int i = -WARM; i < LAUNCHES; i++) {
        kbk_args a = of.next();
        if (i >= 0) CUDA(cudaEventRecord(spans[(size_t)i].from, stream));
        launch<T>(v, &a);
        if (i >= 0) CUDA(cudaEventRecord(spans[(size_t)i].to, stream));
    }
    while (cudaStreamQuery(stream) == cudaErrorNotReady) mhz = nvml.mhz();
    return { median<LAUNCHES>(spans.data()), (double)mhz, 0 };
}
template <class T> static pace sustain(rotation<T>& of, int v, double ms) {
    int portion = (int)(20 / ms) + 1, clocks = 0, launches = 0;
    const int settle = (int)(1000 / ms / portion) + 1, end = 3 * settle;
    double mhz = 0, from = 0;
    span all;
    cudaEvent_t done[2];
    for (cudaEvent_t& e : done) CUDA(cudaEventCreate(&e));
    for (int p = 0; p < end; p++) {
        if (p == settle) CUDA(cudaEventRecord(all.from, stream));
        for (int i = 0; i < portion; i++) {
            kbk_args a = of.next();
            launch<T>(v, &a), launches += p >= settle;
        }
        CUDA(cudaEventRecord(done[p % 2], stream));
        if (p > 0) CUDA(cudaEventSynchronize(done[1 - p % 2]));
        if (p == settle) from = nvml.joules();
        if (p >= settle) mhz += nvml.mhz(), clocks++;
    }
    CUDA(cudaEventRecord(all.to, stream));
    CUDA(cudaStreamSynchronize(stream));
    double joules = nvml.joules() - from;
    for (cudaEvent_t e : done) CUDA(cudaEventDestroy(e));
    return { all.ms() / launches, mhz / clocks, joules / (1e-3 * all.ms()) };
}
template <class T> static void time_sustained(shape s, int layout, size_t l2) {
    rotation<T> of(s, layout, l2);
    for (int v = 0; v < TIMED; v++) {
        bool named = v == CUBLAS || only_rung || !strcmp(rungs[v].name, "select") || !strcmp(rungs[v].name, "tf32");
        if (!of.on[v] || !named) continue;
        pace cool = burst(of, v), warm = sustain(of, v, cool.ms);
        printf("%-7s", v == CUBLAS ? "cuBLAS" : rungs[v].name), of.head();
        printf("%9.1f%9.1f%7.0f%13.1f%9.1f%7.0f%7.0f\n", 1000 * cool.ms, of.tera(cool.ms), cool.mhz, 1000 * warm.ms,
               of.tera(warm.ms), warm.mhz, warm.watts);
    }
}
template <class T> static void time_one(shape s, int layout, size_t l2) {
    if (graphs)
        time_graph<T>(s, layout, l2);
    else if (sustained)
        time_sustained<T>(s, layout, l2);
    else
        time_shape<T>(s, layout, l2);
}
template <class T> static void time_all(size_t l2, bool every) {
    const int dtype = dtype_of<T>;
    if (only_dtype && strcmp(only_dtype, dtype_name[dtype])) return;
    for (const auto& t : timed) {
        shape now = only_shape.m ? only_shape : t.s;
        if (only_shape.m ? &t != timed : !(t.dtypes >> dtype & 1)) continue;
        bool cube = t.s.m == t.s.n && t.s.m == t.s.k, fits = !graphs && !sustained;
        if (cube) fits = sustained ? t.s.m >= 4096 : !graphs || t.s.m <= 1536;
        if (!only_shape.m && !fits) continue;
        bool each = !sustained && (only_shape.m || (t.layout < 0 && every));
        for (int layout = KBK_NN; layout <= KBK_TN; layout++)
            if (each || layout == (only_shape.m || t.layout < 0 ? KBK_NT : t.layout)) time_one<T>(now, layout, l2);
        fflush(stdout);
    }
}

static void time_table(size_t l2, bool every) {
    if (sustained)
        printf("%34s%9s%9s%7s%13s%9s%7s%7s\n", "B, M, N, K", "us", "TFLOP/s", "MHz", "for 2 s, us", "TFLOP/s", "MHz",
               "W");
    else {
        printf("%s             B, M, N, K  cuBLAS us  cuBLAS", graphs ? "graph TFLOP/s" : "TFLOP/s");
        for (const rung& r : rungs)
            if (shown(r)) printf("%10s    x", r.name);
        printf("\n");
    }
    time_all<bf16>(l2, every), time_all<float>(l2, every);
    if (every) time_all<__half>(l2, every);
}

template <class T> static void check_type() {
    const int dtype = dtype_of<T>;
    bench<T> x;
    size_t most = (size_t)(sanitize ? 16 << 20 : 8192 * 8192) + 65536; // number of elements of the largest matrix
    if (only_dtype && strcmp(only_dtype, dtype_name[dtype])) return;
    const shape& o = only_shape;
    most = std::max(most, (size_t)(many(o) * std::max({ o.m * o.k, o.k * o.n, o.m * o.n })) + 65536);
    CUDA(cudaMalloc((void**)&x.a, sizeof(T) * most)), CUDA(cudaMalloc((void**)&x.b, sizeof(T) * most));
    CUDA(cudaMalloc((void**)&x.want, sizeof(T) * most)), CUDA(cudaMalloc((void**)&x.c, sizeof(T) * most + 4 * GUARD));
    CUDA(cudaMalloc((void**)&x.v, sizeof *x.v));
    if constexpr (sizeof(T) == 2)
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
        else if (!strcmp(word, "--ways"))
            ways = true;
        else if (!strcmp(word, "--graph"))
            graphs = true, *check = false;
        else if (!strcmp(word, "--sustained"))
            sustained = true, *check = false;
        else if (!strcmp(word, "--quick"))
            quick = true, *time = false;
        else if (!strcmp(word, "--sanitize"))
            sanitize = true, *time = false;
        else if (!strcmp(word, "--rung") && more)
            only_rung = argv[++i];
        else if (!strcmp(word, "--dtype") && more)
            only_dtype = argv[++i];
        else if (!strcmp(word, "--shape") && more) {
            long long x[4] = {};
            int n = sscanf(argv[++i], "%lldx%lldx%lldx%lld", x, x + 1, x + 2, x + 3);
            only_shape = n == 4 ? shape{ x[1], x[2], x[3], x[0] } : shape{ x[0], x[1], x[2] };
            if (n < 3 || only_shape.m < 1 || only_shape.n < 1 || only_shape.k < 0 || (n == 4 && x[0] < 1)) return 0;
        } else
            return 0;
    }
    bool known = !only_rung;
    for (const rung& r : rungs) known = known || !strcmp(r.name, only_rung);
    return known &&
           (!only_dtype || !strcmp(only_dtype, "f16") || !strcmp(only_dtype, "bf16") || !strcmp(only_dtype, "f32"));
}

int main(int argc, char** argv) {
    bool check = true, time = true;
    int devices = 0, l2 = 0;
    if (!parse(argc, argv, &check, &time)) {
        printf("usage: %s [--check] [--time] [--ways] [--graph] [--sustained] [--rung NAME] [--dtype f16|bf16|f32] "
               "[--shape [Bx]MxNxK] [--quick] [--sanitize]\n  NAME:",
               argv[0]);
        for (const rung& r : rungs) printf(" %s", r.name);
        printf("\n");
        return 2;
    }
    const char* why = "no GPU: the kernels were compiled and not run";
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) why = kbki_needs_hopper();
    if (why) {
        printf("SKIP: %s\n0 passed, 0 failed, 1 skipped\n", why);
        return 77;
    }
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    auto roomy = [](shape s, int layout) {
        kbk_shape whole = arguments<bf16>(NULL, NULL, NULL, s, layout).s;
        size_t most = std::max(kbki_scratch_matmul(&whole, 2, KBKI_WORD_select), kbki_scratch_tf32(&whole, many(s)));
        work_bytes = std::max(work_bytes, most + (size_t)(2 * many(s)) * kbki_mm_copies(&whole, 2));
    };
    for (int layout = KBK_NN; layout <= KBK_TN; layout++) {
        roomy(only_shape, layout);
        for (const auto& t : timed) roomy(t.s, layout);
    }
    CUDA(cudaMalloc((void**)&work, work_bytes));
    CUDA(cudaMemset(work, 0, KBK_TICKETS));
    CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
    if (check) check_type<__half>(), check_type<bf16>(), check_type<float>();
    if (time && failed) printf("no times: the results are wrong\n");
    if (time && !failed) {
        bool both = !ways && !only_rung && !sustained;
        nvml_open();
        time_table((size_t)l2, true);
        if (both) ways = true, time_table((size_t)l2, false);
    }
    CUDA(cudaDeviceSynchronize());
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
