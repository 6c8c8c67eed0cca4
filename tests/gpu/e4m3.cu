// SPDX-License-Identifier: MIT OR Unlicense
/* Tests products of e4m3 (matmul_e4m3: every rung, every configuration that `select` can choose, and others). The
   kernels must decode each of the 256 values in A and in B, and add each product exactly once, at every kind of
   incomplete tile, with and without split-K. Sums must be promoted to f32, so that a long K loses no precision.
   The kernels must write all of C and nothing else, and multiply C by both scales. The kernels must reject
   operands that TMA does not support.

   nvcc -std=c++17 -O2 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/e4m3.cu -o e4m3 && ./e4m3 [OPTION...]
   (-ldl on an old glibc; -DHOPPER_NO_TRAP: without the timeout that ends a kernel which waits for ever)

       --check        only correctness;   --time   only speed
       --rung NAME    only this variant or configuration
       --shape MxNxK  only this shape
       --quick        fewer shapes, no times
       --sanitize     for compute-sanitizer: a few small shapes, no times

   Times are medians of 20 launches, each between two CUDA events, in interleaved rounds of all variants, on buffers
   that together exceed the L2 cache. cuBLASLt is timed as well, if it is installed. The exit code is 0 without
   failures, 1 after failures, and 77 without a GPU. */
#if !defined(HOPPER_NO_TRAP) && !defined(KBK_TRAP_AFTER)
#define KBK_TRAP_AFTER 2
#endif
#define KBK_NO_REGISTRY
#if __has_include(<cublasLt.h>) && !defined(KBK_CUBLAS)
#define KBK_CUBLAS
#endif
#include "kbench_kernels.cuh"
#include <algorithm>
#include <cuda.h>
#include <cuda_fp8.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>

static_assert(KBKI_MAP_8 == CU_TENSOR_MAP_DATA_TYPE_UINT8, "a number of cuda.h");

typedef __nv_bfloat16 bf16;
typedef kbk_e4m3 byte;
static int split_k;
template <int Way> static const char* way(const kbk_args* a, kbk_stream st) {
    return kbki_e4m3_run<byte>(a, { Way, split_k, 0, 0 }, st);
}
struct rung {
    const char* name;
    kbk_launch_fn launch;
    // any: whether the variant accepts every K and address; way: whether it runs one fixed tile shape of `select`;
    // vendor: whether it is cuBLASLt; slow: whether it is too slow for large shapes, which are then skipped
    bool any, way, vendor, slow;
};
static const rung rungs[] = {
    { "naive", kbk_matmul_e4m3_fwd_naive<bf16>, true, false, false, true },
    { "shared", kbk_matmul_e4m3_fwd_shared<bf16>, true, false, false, true },
    { "tma", kbk_matmul_e4m3_fwd_tma<bf16>, false, false, false, false },
    { "select", kbk_matmul_e4m3_fwd_select<bf16>, false, false, false, false },
    { "big", way<KBKI_WG_e4m3_big>, false, true, false, false },
    { "mid", way<KBKI_WG_e4m3_mid>, false, true, false, false },
    { "small", way<KBKI_WG_e4m3_small>, false, true, false, false },
#ifdef KBK_CUBLAS
    { "cublas", kbk_matmul_e4m3_fwd_cublas<bf16>, false, false, true, false },
#endif
};
enum { RUNGS = sizeof rungs / sizeof rungs[0], GUARD = 4096, LAUNCHES = 20, WARM = 3, TABLE = 4096 };
struct shape {
    int64_t m, n, k;
};
static std::string text(shape s) {
    return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
}
static int passed, failed, skipped;
static int theirs; // number of failures of cuBLASLt; they do not prevent the timing of other variants
static const char* only_rung;
static shape only_shape;
static bool quick, sanitize, no_vendor;
static cudaStream_t stream;
static char* work;
static const size_t work_bytes = (size_t)256 << 20;
static byte *a_all, *b_all, *codes; // a_all, b_all: buffers for all shapes; codes: table of normal random numbers
static bf16* want;
static char* c_all;
static float* factors; // the scale of A is element 0, the scale of B is element 4
static unsigned long long* counts;

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
// Fills x with random values of the table or, if table is NULL, with -1, 0 and 1.
__global__ void fill_k(byte* x, int64_t n, uint32_t seed, const byte* table) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t r = mixed((uint32_t)i * 2654435761u ^ mixed(seed + (uint32_t)(i >> 32)));
        byte of[3] = { { 0xB8 }, { 0x00 }, { 0x38 } };
        x[i] = table ? table[r % TABLE] : of[r % 3];
    }
}
// Computes the reference product in tiles of 32 x 32, with the CUDA toolkit's conversion of e4m3. The FMAs of
// each element are executed one after another.
__global__ void reference_k(const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, const float* f, bf16* c, int m, int n,
                            int k) {
    __shared__ float s[32][33], t[32][33];
    int x = threadIdx.x, y = threadIdx.y, i0 = blockIdx.y * 32, j0 = blockIdx.x * 32;
    float sum = 0;
    for (int k0 = 0; k0 < k; k0 += 32) {
        s[y][x] = i0 + y < m && k0 + x < k ? (float)a[(int64_t)(i0 + y) * k + k0 + x] : 0.0f;
        t[x][y] = j0 + y < n && k0 + x < k ? (float)b[(int64_t)(j0 + y) * k + k0 + x] : 0.0f;
        __syncthreads();
        for (int e = 0; e < 32; e++) sum = fmaf(s[y][e], t[e][x], sum);
        __syncthreads();
    }
    if (i0 + y < m && j0 + x < n) c[(int64_t)(i0 + y) * n + j0 + x] = (bf16)(k ? sum * (f[0] * f[4]) : 0.0f);
}
// Compares [raw, raw + bytes). The n elements of C from byte `at` on must have the expected values, or NaN if NaN is
// expected. All bytes around C must be 0xFF. If wanted is NULL, no byte may have been written: the bytes of C
// must be 0xFF, too. v[0]: number of wrong elements; v[1]: index of the first; v[2]: number of overwritten guards.
__global__ void compare_k(const char* raw, int64_t bytes, int64_t at, const bf16* wanted, int64_t n,
                          unsigned long long* v) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < bytes / 2;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t e = i - at / 2;
        bool inside = wanted && e >= 0 && e < n;
        unsigned short got = ((const unsigned short*)raw)[i];
        float x = (float)((const bf16*)raw)[i], y = inside ? (float)wanted[e] : 0;
        bool same = inside ? got != 0xFFFF && (x == y || (x != x && y != y)) : got == 0xFFFF;
        if (same) continue;
        if (inside)
            atomicAdd(v, 1ull), atomicMin(v + 1, (unsigned long long)e);
        else
            atomicAdd(v + 2, 1ull);
    }
}
__global__ void distance_k(const bf16* a, const bf16* b, int64_t n, double* sums) {
    double d = 0, s = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        double x = (float)a[i], y = (float)b[i];
        d += (x - y) * (x - y), s += y * y;
    }
    d = kbki_warp_all<kbki_sum<double>>(d), s = kbki_warp_all<kbki_sum<double>>(s);
    if (threadIdx.x % 32 == 0) atomicAdd(sums, d), atomicAdd(sums + 1, s);
}
__global__ void decode_k(float* x) { x[threadIdx.x] = kbki_float(byte{ (uint8_t)threadIdx.x }); }
__global__ void hold_k(unsigned long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

static void fill(byte* x, int64_t n, uint32_t seed, const byte* table) {
    if (n) fill_k<<<1024, 256, 0, stream>>>(x, n, seed, table);
}
static void reference(const byte* a, const byte* b, shape s) {
    dim3 grid((unsigned)((s.n + 31) / 32), (unsigned)((s.m + 31) / 32));
    reference_k<<<grid, dim3(32, 32), 0, stream>>>((const __nv_fp8_e4m3*)a, (const __nv_fp8_e4m3*)b, factors, want,
                                                   (int)s.m, (int)s.n, (int)s.k);
}
static void put(void* to, const void* from, size_t bytes) {
    CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
}
static void set_factors(float sa, float sb) {
    float both[5] = { sa, 0, 0, 0, sb }; // the two scales are 16 bytes apart
    put(factors, both, sizeof both);
}
static kbk_args arguments(const byte* a, const byte* b, void* c, shape s) {
    kbk_args args = {};
    args.s.batch = args.s.heads = 1, args.s.rows = s.m, args.s.cols = s.n, args.s.k = s.k;
    args.s.layout = KBK_NT;
    args.in[0] = a, args.in[1] = b, args.in[2] = factors, args.in[3] = factors + 4, args.out[0] = c;
    args.workspace = work, args.workspace_bytes = work_bytes;
    return args;
}
static bool asked(const rung& r) { return (!only_rung || !strcmp(only_rung, r.name)) && !(r.vendor && no_vendor); }
static bool takes(const rung& r, const kbk_args& a) {
    uintptr_t all = (uintptr_t)a.in[0] | (uintptr_t)a.in[1] | (r.vendor ? (uintptr_t)a.out[0] : 0);
    return r.any || a.s.k == 0 || (a.s.k % 16 == 0 && all % 16 == 0 && !(r.vendor && a.s.cols % 16));
}

// --- the checks

// Launches a kernel once and checks its results. off: C starts this number of elements after a 16-byte boundary.
static void try_one(const rung& r, const byte* a, const byte* b, shape s, int off, const char* what) {
    const int64_t n = s.m * s.n, at = GUARD + 2 * off, bytes = at + 2 * n + GUARD;
    unsigned long long v[3] = { 0, ~0ull, 0 };
    kbk_args args = arguments(a, b, c_all + at, s);
    bool can = takes(r, args);
    if (!strcmp(r.name, "select")) // passes exactly the workspace size that the variant requires
        args.workspace_bytes = kbki_scratch_matmul_e4m3(&args.s, 2, KBKI_WORD_select);
    CUDA(cudaMemsetAsync(work, 0xFF, (size_t)1 << 22, stream));
    CUDA(cudaMemsetAsync(c_all, 0xFF, (size_t)bytes, stream));
    CUDA(cudaMemcpyAsync(counts, v, sizeof v, cudaMemcpyHostToDevice, stream));
    const char* why = r.launch(&args, stream);
    compare_k<<<512, 256, 0, stream>>>(c_all, bytes, at, why ? NULL : want, n, counts);
    CUDA(cudaMemcpyAsync(v, counts, sizeof v, cudaMemcpyDeviceToHost, stream));
    cudaError_t e = cudaStreamSynchronize(stream);
    const char* say = e != cudaSuccess ? cudaGetErrorString(e)
                      : !can && !why   ? "accepted a case that it cannot compute"
                      : can && why     ? why
                      : v[2]           ? "wrote outside C"
                      : v[0]           ? "wrong"
                                       : NULL;
    if (say == NULL) {
        passed++;
        return;
    }
    failed++, theirs += r.vendor;
    printf("FAIL: %s %s %s%s: %s", r.name, what, text(s).c_str(), off ? ", C off by an element" : "", say);
    if (split_k) printf(", split %d", split_k);
    if (e == cudaSuccess && v[0])
        printf(" (%llu of %lld, the first at row %lld, column %lld)", v[0], (long long)n, (long long)v[1] / s.n,
               (long long)v[1] % s.n);
    printf("\n");
    if (e != cudaSuccess) { // after a trap, every CUDA call of this process fails
        printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
        exit(1);
    }
}
static void try_rungs(const byte* a, const byte* b, shape s, int off, const char* what) {
    reference(a, b, s);
    for (const rung& r : rungs) {
        if (!asked(r) || (r.slow && s.m * s.n * s.k > (int64_t)1 << 34)) continue;
        try_one(r, a, b, s, off, what);
        for (split_k = 1; r.way && split_k < 4; split_k++) try_one(r, a, b, s, off, what);
        split_k = 0;
    }
}
static void try_shape(shape s, int off) {
    fill(a_all, s.m * s.k, 1, NULL), fill(b_all, s.k * s.n, 2, NULL);
    try_rungs(a_all, b_all, s, off, "integers");
}
/* Row m of one operand holds the code m at one position and zeros elsewhere; all elements of the other operand are
   1. Each result must be the decoded value of the code, or NaN. */
static void try_numbers() {
    const shape s = { 256, 256, 384 };
    std::vector<uint8_t> one((size_t)(s.m * s.k), 0), ones((size_t)(s.n * s.k), 0x38);
    for (int m = 0; m < 256; m++) one[(size_t)(m * s.k + m * 7 % s.k)] = (uint8_t)m;
    for (int which = 0; which < 2; which++) {
        put(which ? b_all : a_all, one.data(), one.size());
        put(which ? a_all : b_all, ones.data(), ones.size());
        try_rungs(a_all, b_all, s, 0, which ? "every number in B" : "every number in A");
    }
    // compares the conversions of the host, of the device and of the toolkit
    float *dev, got[256];
    int wrong = 0;
    CUDA(cudaMalloc((void**)&dev, sizeof got));
    decode_k<<<1, 256, 0, stream>>>(dev);
    CUDA(cudaMemcpyAsync(got, dev, sizeof got, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream)), CUDA(cudaFree(dev));
    for (int i = 0; i < 256; i++) {
        __nv_fp8_e4m3 x;
        x.__x = (__nv_fp8_storage_t)i;
        double mine = kbk_e4m3_value((uint32_t)i);
        bool nan = kbk_is_nan(mine);
        wrong += nan ? !kbk_is_nan((float)x) || !kbk_is_nan(got[i]) : (float)x != mine || got[i] != mine;
        wrong += !nan && kbk_e4m3_bits(mine) != (uint32_t)i;
    }
    if (wrong)
        failed++, printf("FAIL: %d of 256 numbers are decoded to another value\n", wrong);
    else
        passed++;
}
/* The first 128 terms along K add up to 32768, and some later terms are 1. A sum with fewer than 16 bits of precision
   would lose each 1. Every sum is exact in f32. */
static void try_promotion() {
    const shape s = { 128, 128, 65536 };
    std::vector<uint8_t> x((size_t)(s.m * s.k), 0);
    for (int64_t m = 0; m < s.m; m++)
        for (int64_t k = 0; k < s.k; k++) x[(size_t)(m * s.k + k)] = k < 128 ? 0x58 : k % 32 == 5 ? 0x38 : 0x00;
    put(a_all, x.data(), x.size());
    put(b_all, x.data(), x.size());
    try_rungs(a_all, b_all, s, 0, "a long sum");
}
static void try_addresses() {
    const shape s = { 136, 264, 208 };
    fill(a_all, s.m * s.k + 4000, 3, NULL), fill(b_all, s.k * s.n + 4000, 4, NULL);
    for (int i = 0; i < (sanitize ? 4 : 200); i++) // more pairs of addresses than there are cached tensor maps
        try_rungs(a_all + i % 150 * 16, b_all + (200 - i) * 16, s, 0, "many addresses");
    for (int i = 0; i < 2; i++) 
        try_rungs(a_all + (i == 0), b_all + (i == 1) * 8, s, 0, "an operand that is not 16-byte aligned");
    kbk_args nn = arguments(a_all, b_all, c_all, s);
    nn.s.layout = KBK_NN;
    for (const rung& r : rungs) {
        if (!asked(r)) continue;
        if (r.launch(&nn, stream))
            passed++;
        else
            failed++, printf("FAIL: %s took NN\n", r.name);
    }
}
static const shape odd_shapes[] = { { 1, 1, 0 },       { 33, 40, 0 },      { 1, 1, 16 },       { 1, 8, 16 },
                                    { 8, 8, 1 },       { 8, 1, 16 },       { 77, 131, 80 },    { 129, 264, 128 },
                                    { 136, 257, 208 }, { 264, 136, 333 },  { 127, 1000, 65 },  { 1000, 999, 1008 },
                                    { 136, 264, 320 }, { 384, 256, 4112 }, { 2056, 520, 144 }, { 100, 100, 100 },
                                    { 16, 1008, 2048 } };
static const shape large_shapes[] = {
    { 1000, 1008, 1008 }, { 1024, 1024, 1024 }, { 2048, 2048, 2048 }, { 1000, 8192, 80 },   { 8192, 1008, 144 },
    { 4104, 4112, 1008 }, { 200, 4112, 8192 },  { 4104, 80, 4112 },   { 8192, 8192, 128 },  { 2048, 4112, 8192 },
    { 136, 136, 8192 },   { 8192, 128, 1024 },  { 8192, 8192, 2064 }, { 256, 256, 131072 }, { 16, 8192, 8192 },
};
static void try_all() {
    static const int sizes[] = { 8, 64, 72, 128, 136, 200, 256, 392 };
    static const int depths[] = { 16, 64, 128, 144, 256, 272, 400, 1008, 1152 };
    if (only_shape.m) {
        set_factors(-0.5f, 4), try_shape(only_shape, 0), try_shape(only_shape, 1);
        return;
    }
    set_factors(1, 1), try_numbers();
    set_factors(-0.5f, 4); // the scales are powers of two, so that each result is rounded only once
    for (int i = 0; i < 8 * 8 * 9; i += sanitize ? 53 : quick ? 7 : 1)
        try_shape({ sizes[i / 72], sizes[i / 9 % 8], depths[i % 9] }, i % 2);
    for (const shape& s : odd_shapes)
        if (!sanitize || s.m * s.n * s.k < 5000000) try_shape(s, 0), try_shape(s, 1);
    for (const shape& s : large_shapes)
        if (!sanitize && !(quick && s.m * s.n * s.k > (int64_t)1 << 34)) try_shape(s, 0);
    try_addresses();
    if (!sanitize) try_promotion();
}

// --- times

static const shape timed[] = { { 1024, 1024, 1024 }, { 2048, 2048, 2048 },  { 4096, 4096, 4096 },
                               { 8192, 8192, 8192 }, { 4096, 7168, 16384 }, { 4096, 14336, 4096 },
                               { 8192, 8192, 1024 }, { 256, 256, 131072 },  { 16, 8192, 8192 } };
static double median(float* t, int n) {
    std::sort(t, t + n);
    return n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
}
// Prints the relative difference between the results of a variant and sums in f32; rounding to bf16 alone gives
// 1.7e-3.
static void show_distance(const rung& r, const byte* a, const byte* b, shape s) {
    static double* sums;
    double host[2];
    kbk_args args = arguments(a, b, c_all, s);
    if (!sums) CUDA(cudaMalloc((void**)&sums, sizeof host));
    CUDA(cudaMemsetAsync(sums, 0, sizeof host, stream));
    const char* why = r.launch(&args, stream);
    distance_k<<<1024, 256, 0, stream>>>((const bf16*)c_all, want, s.m * s.n, sums);
    CUDA(cudaMemcpyAsync(host, sums, sizeof host, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    double off = sqrt(host[0] / host[1]);
    printf(" %s %.2e", r.name, why ? -1 : off);
    if (!why && off <= 2e-2)
        passed++;
    else
        failed++, printf("\nFAIL: %s %s, random: %s\n", r.name, text(s).c_str(), why ? why : "too far");
}
static void time_shape(shape s, size_t l2) {
    int64_t a_n = kbki_ceil(s.m * s.k, 1024) * 1024, b_n = kbki_ceil(s.k * s.n, 1024) * 1024;
    int64_t set = a_n + b_n + kbki_ceil(2 * s.m * s.n, 1024) * 1024;
    int sets = (int)(2 * l2 / (size_t)set) + 2, turn = 0;
    char* room;
    cudaEvent_t events[RUNGS][LAUNCHES][2];
    double ms[RUNGS] = {};
    bool on[RUNGS];
    CUDA(cudaMalloc((void**)&room, (size_t)set * sets));
    fill((byte*)room, set * sets, 7, codes);
    auto args_at = [&](char* at) { return arguments((byte*)at, (byte*)at + a_n, at + a_n + b_n, s); };
    for (int v = 0; v < RUNGS; v++) {
        kbk_args a = args_at(room);
        on[v] = (asked(rungs[v]) || (rungs[v].vendor && !no_vendor)) && takes(rungs[v], a) && !rungs[v].slow;
        const char* why = on[v] ? rungs[v].launch(&a, stream) : NULL;
        if (why) printf("FAIL: %s: %s\n", rungs[v].name, why), failed++, on[v] = false;
        for (int i = 0; i < LAUNCHES; i++)
            CUDA(cudaEventCreate(&events[v][i][0])), CUDA(cudaEventCreate(&events[v][i][1]));
    }
    CUDA(cudaStreamSynchronize(stream));
    hold_k<<<1, 1, 0, stream>>>(20000000);
    for (int i = -WARM; i < LAUNCHES; i++)
        for (int v = 0; v < RUNGS; v++) {
            kbk_args a = args_at(room + turn++ % sets * set);
            if (!on[v]) continue;
            if (i >= 0) CUDA(cudaEventRecord(events[v][i][0], stream));
            rungs[v].launch(&a, stream);
            if (i >= 0) CUDA(cudaEventRecord(events[v][i][1], stream));
        }
    CUDA(cudaStreamSynchronize(stream));
    for (int v = 0; v < RUNGS; v++) {
        float t[LAUNCHES];
        for (int i = 0; i < LAUNCHES && on[v]; i++)
            CUDA(cudaEventElapsedTime(&t[i], events[v][i][0], events[v][i][1]));
        ms[v] = on[v] ? median(t, LAUNCHES) : 0;
        for (int i = 0; i < LAUNCHES; i++)
            CUDA(cudaEventDestroy(events[v][i][0])), CUDA(cudaEventDestroy(events[v][i][1]));
    }
    double tera = 2e-9 * (double)s.m * (double)s.n * (double)s.k;
    const bool vendor = rungs[RUNGS - 1].vendor && on[RUNGS - 1];
    printf("e4m3 NT %18s", text(s).c_str());
    if (vendor) printf("%9.1f%8.1f", 1000 * ms[RUNGS - 1], tera / ms[RUNGS - 1]);
    if (!vendor) printf("%9s%8s", "-", "-");
    for (int v = 0; v < RUNGS; v++) {
        if (rungs[v].vendor || rungs[v].slow || !asked(rungs[v])) continue;
        on[v] ? printf("%10.1f", tera / ms[v]) : printf("%10s", "-");
        on[v] && vendor ? printf("%5.2f", ms[RUNGS - 1] / ms[v]) : printf("%5s", "-");
    }
    printf("\n");
    CUDA(cudaFree(room));
}
static void time_all(size_t l2) {
    printf("TFLOP/s              M, N, K  cuBLAS us  cuBLAS");
    for (const rung& r : rungs)
        if (!r.vendor && !r.slow && asked(r)) printf("%10s    x", r.name);
    printf("\n");
    for (const shape& s : timed) {
        time_shape(only_shape.m ? only_shape : s, l2), fflush(stdout);
        if (only_shape.m) return;
    }
    for (shape s : { shape{ 512, 512, 4096 }, shape{ 256, 256, 131072 } }) {
        fill(a_all, s.m * s.k, 11, codes), fill(b_all, s.n * s.k, 12, codes);
        reference(a_all, b_all, s);
        printf("off sums in f32 at %s:", text(s).c_str());
        for (const rung& r : rungs)
            if (asked(r)) show_distance(r, a_all, b_all, s);
        printf("\n");
    }
}

static bool parse(int argc, char** argv, bool* check, bool* time) {
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
        else if (!strcmp(word, "--shape") && more) {
            long long x[3] = {};
            int n = sscanf(argv[++i], "%lldx%lldx%lld", x, x + 1, x + 2);
            only_shape = shape{ x[0], x[1], x[2] };
            if (n != 3 || x[0] < 1 || x[1] < 1 || x[2] < 0) return false;
        } else
            return false;
    }
    bool known = !only_rung;
    for (const rung& r : rungs) known = known || !strcmp(r.name, only_rung);
    return known;
}
static void buffers() {
    size_t operand = (size_t)(sanitize ? 4 << 20 : 1 << 26), results = operand; // elements
    if (only_shape.m) {
        operand = std::max(operand, (size_t)(std::max(only_shape.m, only_shape.n) * only_shape.k));
        results = std::max(results, (size_t)(only_shape.m * only_shape.n));
    }
    CUDA(cudaMalloc((void**)&a_all, operand + 65536)), CUDA(cudaMalloc((void**)&b_all, operand + 65536));
    CUDA(cudaMalloc((void**)&want, 2 * results)), CUDA(cudaMalloc((void**)&c_all, 2 * results + 4 * GUARD));
    CUDA(cudaMalloc((void**)&factors, 8 * sizeof(float))), CUDA(cudaMalloc((void**)&counts, 3 * sizeof *counts));
    CUDA(cudaMalloc((void**)&work, work_bytes)), CUDA(cudaMemset(work, 0, KBK_TICKETS));
    CUDA(cudaMalloc((void**)&codes, TABLE));
    std::vector<double> x(TABLE);
    std::vector<uint8_t> raw(TABLE);
    kbk_tensor t = kbki_in("x", TABLE, 1);
    t.kind = KBK_KE4M3;
    kbk_fill(&t, 0, KBK_BF16, 42, 0, TABLE, x.data());
    kbk_narrow(KBK_KE4M3, KBK_BF16, x.data(), raw.data(), TABLE);
    put(codes, raw.data(), TABLE);
}

int main(int argc, char** argv) {
    bool check = true, time = true;
    int devices = 0, l2 = 0;
    if (!parse(argc, argv, &check, &time)) {
        printf("usage: %s [--check] [--time] [--rung NAME] [--shape MxNxK] [--quick] [--sanitize]\n  NAME:", argv[0]);
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
    CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
    buffers();
#ifdef KBK_CUBLAS
    kbki_cublaslt* lib;
    int device;
    kbk_args a = arguments(a_all, b_all, c_all, { 16, 16, 16 });
    no_vendor = kbki_cublaslt_get(&a, stream, &lib, &device) != NULL;
    if (no_vendor) printf("SKIP: cublas: no libcublasLt\n"), skipped++;
#endif
    if (check) try_all();
    if (time && failed > theirs) printf("no times: the results are wrong\n");
    if (time && failed == theirs) set_factors(0.5f, 1.25f), time_all((size_t)l2);
    CUDA(cudaDeviceSynchronize());
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
