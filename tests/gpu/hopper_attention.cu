// SPDX-License-Identifier: MIT OR Unlicense
/* Tests attention forward with wgmma and TMA (rungs 7 to 10). A kernel must select the right key among all keys
   exactly, and count every visible key of a row once. Masked keys must have no effect. Results may differ from a
   reference in double precision only by the rounding of 16-bit values and f32 sums. A kernel must write all of o
   and lse and nothing else, and reject shapes that TMA does not support. For attention backward (rung 7), the
   gradient of each row must go only to the key that the row matches, and dk and dv must be bitwise reproducible.

   nvcc -std=c++17 -O2 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/hopper_attention.cu -o fa && ./fa [OPTION...]
   (-DHOPPER_NO_TRAP: without the timeout that ends a kernel which waits for ever)

       --check        only correctness;   --time   only speed
       --dir NAME     only fwd or bwd
       --rung NAME    only this variant: flashws, flashrs, pingpong or flashpp; few, many: the number of flashpp's
                      warpgroups per CTA, for any shape; stay, leave: the configurations of backward;
                      small: backward as flashmma computes it on smaller GPUs
       --dtype NAME   only f16 or bf16
       --shape HxSxD  only this shape: heads, rows, d
       --quick        fewer shapes, no times
       --sanitize     for compute-sanitizer: a few small shapes, no times

   A printed rate is computed from the median of 20 launches, each between two CUDA events. The launches of the kernel
   and those of flashmma alternate, on buffers that together exceed the L2 cache. Exit code: 0 if all tests pass,
   1 after failures, 77 without a GPU. */
#ifndef HOPPER_NO_TRAP
#ifndef KBK_TRAP_AFTER
#define KBK_TRAP_AFTER 2
#endif
#endif
#define KBK_NO_REGISTRY
#include "kbench_kernels.cuh"
#include <algorithm>
#include <stdio.h>
#include <stdlib.h>

typedef __nv_bfloat16 bf16;
struct rung {
    const char* name;
    kbk_launch_fn launch[2]; // f16, bf16
};
#define RUNG(dir, name)                                                                     \
    {                                                                                       \
#name, { kbk_attention_##dir##_##name<__half>, kbk_attention_##dir##_##name<bf16> } \
    }
template <class T, class At128, class At64> static const char* fwd_groups(const kbk_args* a, kbk_stream st) {
    kbki_attn<T> io;
    const char* why = kbki_attn_args(a, &io);
    if (why || !io.heads) return why;
    return a->s.cols == 128 ? kbki_fa_launch<T, At128>(a, io, st) : kbki_fa_launch<T, At64>(a, io, st);
}
template <class T> static const char* fwd_few(const kbk_args* a, kbk_stream st) {
    return fwd_groups<T, kbki_fa_128x2, kbki_fa_64x3>(a, st);
}
template <class T> static const char* fwd_many(const kbk_args* a, kbk_stream st) {
    return fwd_groups<T, kbki_fa_128x3, kbki_fa_64x4>(a, st);
}
static const rung rungs[] = { RUNG(fwd, flashws),
                              RUNG(fwd, flashrs),
                              RUNG(fwd, pingpong),
                              RUNG(fwd, flashpp),
                              { "few", { fwd_few<__half>, fwd_few<bf16> } },
                              { "many", { fwd_many<__half>, fwd_many<bf16> } } },
                  older = RUNG(fwd, flashmma);
// Forces one of the two configurations of the backward kernel: persistent CTAs (Stay), or one CTA per tile of
// keys.
template <class T, bool Stay> static const char* back_other(const kbk_args* a, kbk_stream st) {
    kbki_attn_back<T> io;
    const char* why = kbki_attn_back_args(a, &io);
    if (!why && io.heads) why = kbki_attn_back_room(a, KBKI_WORD_flashws, &io);
    if (why || !io.heads) return why;
    return a->s.cols == 64 ? kbki_fab_launch<T, 64>(io, Stay, st) : kbki_fab_launch<T, 128>(io, Stay, st);
}
// For d = 128, this function selects flashmma's configuration for GPUs that have less shared memory than this GPU.
template <class T> static const char* back_small(const kbk_args* a, kbk_stream st) {
    kbki_attn_back<T> io;
    const char* why = kbki_attn_back_args(a, &io);
    if (!why && io.heads) why = kbki_attn_back_room(a, KBKI_WORD_flashmma, &io);
    if (why || !io.heads) return why;
    return a->s.cols == 64 ? kbk_attention_bwd_flashmma<T>(a, st) : kbki_attn_back_small<T>(io, st);
}
static const rung back_rungs[] = { RUNG(bwd, flashws),
                                   { "stay", { back_other<__half, true>, back_other<bf16, true> } },
                                   { "leave", { back_other<__half, false>, back_other<bf16, false> } },
                                   { "small", { back_small<__half>, back_small<bf16> } } },
                  older_back = RUNG(bwd, flashmma);
enum { GUARD = 4096, LAUNCHES = 20, WARM = 3 };
static const char* const dtype_name[] = { "f16", "bf16" };

struct shape {
    int heads, n, d, causal;
};
// Kinds of inputs. MATCH: each row matches one visible key, which gets all the weight. ALIKE: all keys are equal.
// RANDOM: all numbers are uniform in [-1, 1). SPOILED: uniform numbers, but infinite keys in the first head, and
// NaN in the keys and values of the last head. WIDE: the scores cover a wide range.
enum { MATCH, ALIKE, RANDOM, SPOILED, WIDE, FILLS };
static const char* const fill_name[] = { "one match", "all alike", "random", "NaN and infinity", "wide scores" };

static int passed, failed, skipped;
static const char *only_rung, *only_dtype, *only_dir;
static shape only_shape;
static bool quick, sanitize;
static cudaStream_t stream;
// workspace of attention forward, whose counters must be 0 before and after each launch
static char* tickets;

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
__device__ inline float uniform(uint32_t seed, int64_t i) {
    return (float)(mixed((uint32_t)i * 2654435761u ^ mixed(seed + (uint32_t)(i >> 32))) >> 8) * 0x1p-23f - 1;
}
// Returns element c of a key: a random sign times 11. The matching key then has the score 121 sqrt(d), and the
// scores of other keys have the mean 0.
__device__ inline float code(int64_t key, int c) { return uniform(11, key * 128 + c) < 0 ? -11.0f : 11.0f; }
__device__ inline float special(int which) { return __uint_as_float(which ? 0x7FC00000u : 0x7F800000u); }

struct inputs {
    int fill, n, d, causal, heads;
};
template <class T> __global__ void fill_k(T* q, T* k, T* v, inputs in) {
    int64_t all = (int64_t)in.heads * in.n * in.d;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < all; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t line = i / in.d;
        int c = (int)(i % in.d), row = (int)(line % in.n), head = (int)(line / in.n);
        float a = uniform(1, i), b = uniform(2, i), x = uniform(3, i);
        if (in.fill == MATCH) {
            int reach = in.causal ? row + 1 : in.n;
            a = code(head * (int64_t)in.n + mixed((uint32_t)line) % (uint32_t)reach, c), b = code(line, c);
        }
        if (in.fill == ALIKE) a = 0, x = (float)(mixed((uint32_t)i) % 3) - 1;
        if (in.fill == WIDE) a *= 8, b *= 8;
        if (in.fill == SPOILED) {
            if (c == 3) a = 1;
            if (head == 0 && c == 3 && (row < in.n / 3 || row % 3 == 0)) b = -special(0);
            if (in.causal && head == in.heads - 1 && row == in.n / 2) b = special(1);
            // in causal attention, the special value is in a key that every row sees, because products with masked
            // values are not skipped
            if (head == in.heads - 1 && row == (in.causal ? 0 : in.n / 4) && c % 5 == 1) x = special(c % 2);
        }
        q[i] = (T)a, k[i] = (T)b, v[i] = (T)x;
    }
}
/*  Computes the reference in double precision, one CTA per row. allowed: the tolerance of each element. Rounding a
    probability to 16 bits gives a relative error of at most `unit`. The tolerance is five times the root of the
    sum of the squared errors of the probabilities, plus the rounding of the result, plus the errors of f32. */
template <class T>
__global__ void __launch_bounds__(128)
    reference_k(const T* q, const T* k, const T* v, double* o, double* allowed, double* lse, inputs in) {
    extern __shared__ double scores[];
    __shared__ double sums[128];
    int64_t line = blockIdx.x;
    int row = (int)(line % in.n), keys = in.causal ? row + 1 : in.n, t = threadIdx.x, d = in.d;
    double scale = 1 / sqrt((double)d), top = -INFINITY, sum = 0,
           unit = kbki_type<T>::cuda == CUDA_R_16F ? 0x1p-11 : 0x1p-8;
    const T *head_k = k + (line - row) * d, *head_v = v + (line - row) * d;
    for (int j = t; j < keys; j += 128) {
        double s = 0;
        for (int c = 0; c < d; c++) s += (double)(float)q[line * d + c] * (double)(float)head_k[(int64_t)j * d + c];
        scores[j] = s * scale;
        if (s * scale > top) top = s * scale;
    }
    sums[t] = top;
    __syncthreads();
    for (int i = 0; i < 128; i++) top = sums[i] > top ? sums[i] : top;
    double base = top == -INFINITY ? 0 : top, mine = 0;
    for (int j = t; j < keys; j += 128) mine += scores[j] = exp(scores[j] - base);
    __syncthreads();
    sums[t] = mine;
    __syncthreads();
    for (int i = 0; i < 128; i++) sum += sums[i];
    for (int c = t; c < d; c += 128) {
        double x = 0, squares = 0, sizes = 0, small = 0, inv = sum == 0 ? 1 : 1 / sum;
        for (int j = 0; j < keys; j++) {
            double p = scores[j] * inv, y = (double)(float)head_v[(int64_t)j * d + c];
            x += p * y, squares += p * y * p * y, sizes += fabs(p * y);
            if (unit == 0x1p-11) small += fabs(y) * inv * 0x1p-25; // subnormal probabilities
        }
        o[line * d + c] = x;
        allowed[line * d + c] = in.fill == ALIKE
                                    ? 1.02 * unit * fabs(x) + 1e-6
                                    : 5 * unit * sqrt(squares) + 1.02 * unit * fabs(x) + 5e-5 * sizes + small + 1e-7;
    }
    if (t == 0) lse[line] = base + log(sum);
}
struct verdict {
    unsigned long long bad, first, outside, bad_lse, first_lse;
    float got, want, may;
};
// Compares the bytes [raw, raw + bytes) with the n expected results `wanted`. The results start at byte `at`, and
// all other bytes must be 0xFF. exact: results must have the expected bits. loose: NaN is accepted for infinity,
// and infinity for NaN. If `wanted` is NULL, all bytes must be 0xFF.
template <class T>
__global__ void compare_k(const char* raw, int64_t bytes, int64_t at, const double* wanted, const double* allowed,
                          int64_t n, bool exact, bool is_lse, verdict* out, bool loose = false) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < bytes / (int64_t)sizeof(T);
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t e = i - at / (int64_t)sizeof(T);
        bool untouched = true;
        for (size_t b = 0; b < sizeof(T); b++) untouched = untouched && (unsigned char)raw[i * sizeof(T) + b] == 0xFF;
        if (!wanted || e < 0 || e >= n) {
            if (!untouched) atomicAdd(&out->outside, 1ull);
            continue;
        }
        double got = (double)(float)((const T*)raw)[i], want = wanted[e], may = 0;
        if (exact) want = (double)(float)(T)(float)want;
        if (!exact && isfinite(want)) may = is_lse ? 2e-5 + 1e-6 * fabs(want) : allowed[e];
        bool same = got == want || (isnan(got) && isnan(want) && !untouched) || fabs(got - want) <= may;
        if (same || (loose && !isfinite(got) && !isfinite(want) && !untouched)) continue;
        unsigned long long* first = is_lse ? &out->first_lse : &out->first;
        if (atomicMin(first, (unsigned long long)e) > (unsigned long long)e && !is_lse)
            out->got = (float)got, out->want = (float)want, out->may = (float)may;
        atomicAdd(is_lse ? &out->bad_lse : &out->bad, 1ull);
    }
}

// Keeps the stream busy while the host queues the timed launches; otherwise short kernels would have gaps between
// launches.
__global__ void hold_k(unsigned long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}
static kbk_args arguments(const void* q, const void* k, const void* v, void* o, void* lse, shape s) {
    kbk_args a = {};
    a.s.batch = s.heads % 2 ? 1 : 2, a.s.heads = s.heads / a.s.batch, a.s.rows = s.n, a.s.cols = s.d;
    a.s.causal = s.causal;
    a.in[0] = q, a.in[1] = k, a.in[2] = v, a.out[0] = o, a.out[1] = lse;
    a.workspace = tickets, a.workspace_bytes = KBK_TICKETS;
    return a;
}
static bool wanted_dtype(int dtype) { return !only_dtype || !strcmp(only_dtype, dtype_name[dtype]); }

// --- the checks

template <class T> struct bench {
    T *q, *k, *v;
    char *o, *lse;
    double *want, *allowed, *want_lse;
    verdict* v_out;
};
static void report(const rung& r, int dtype, shape s, int fill, const char* how, const char* text, const verdict& v) {
    failed++;
    printf("FAIL: %s %s %d heads, %d rows, d = %d%s, %s%s: %s", r.name, dtype_name[dtype], s.heads, s.n, s.d,
           s.causal ? ", causal" : "", fill_name[fill], how, text);
    if (v.bad)
        printf(" (%llu, the first in head %lld, row %lld, column %lld; one of them is %.6g, not %.6g +- %.2g)", v.bad,
               (long long)v.first / s.d / s.n, (long long)v.first / s.d % s.n, (long long)v.first % s.d, v.got,
               v.want, v.may);
    if (v.bad_lse)
        printf(" (%llu of lse, the first in head %lld, row %lld)", v.bad_lse, (long long)v.first_lse / s.n,
               (long long)v.first_lse % s.n);
    printf("\n"), fflush(stdout);
}
// off: number of elements between a 16-byte boundary and the start of o. operand: index of an input that starts
// one element after a 16-byte boundary; -1: every input is aligned.
template <class T> static void try_one(const bench<T>& x, const rung& r, shape s, int fill, int off, int operand) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    int64_t rows = (int64_t)s.heads * s.n, n = rows * s.d, at = GUARD + 2 * off, bytes = GUARD * 2 + 2 * n;
    int64_t lse_bytes = GUARD * 2 + 4 * rows;
    verdict none = { 0, ~0ull, 0, 0, ~0ull, 0, 0, 0 }, v;
    unsigned left[KBK_TICKETS / 4];
    kbk_args a = arguments(x.q, x.k, x.v, x.o + at, x.lse + GUARD, s);
    if (operand >= 0) a.in[operand] = (const T*)a.in[operand] + 1;
    bool takes = operand < 0;
    CUDA(cudaMemsetAsync(x.o, 0xFF, (size_t)bytes, stream));
    CUDA(cudaMemsetAsync(x.lse, 0xFF, (size_t)lse_bytes, stream));
    CUDA(cudaMemcpyAsync(x.v_out, &none, sizeof none, cudaMemcpyHostToDevice, stream));
    const char* why = r.launch[dtype](&a, stream);
    compare_k<T>
        <<<512, 256, 0, stream>>>(x.o, bytes, at, why ? NULL : x.want, x.allowed, n, fill == MATCH, false, x.v_out);
    compare_k<float>
        <<<64, 256, 0, stream>>>(x.lse, lse_bytes, GUARD, why ? NULL : x.want_lse, NULL, rows, false, true, x.v_out);
    CUDA(cudaMemcpyAsync(&v, x.v_out, sizeof v, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaMemcpyAsync(left, tickets, sizeof left, cudaMemcpyDeviceToHost, stream));
    cudaError_t e = cudaStreamSynchronize(stream);
    bool counted = false;
    for (unsigned n : left) counted = counted || n;
    const char* text = e != cudaSuccess     ? cudaGetErrorString(e)
                       : counted            ? "left a counter that is not 0"
                       : !takes && !why     ? "accepted a case that TMA does not support"
                       : takes && why       ? why
                       : v.outside          ? "wrote outside its results"
                       : v.bad || v.bad_lse ? "wrong"
                                            : NULL;
    if (e != cudaSuccess) v = none;
    if (text == NULL)
        passed++;
    else
        report(r, dtype, s, fill,
               off            ? ", o misaligned by one element"
               : operand >= 0 ? ", an input misaligned by one element"
                              : "",
               text, v);
    if (e != cudaSuccess) {
        printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
        exit(1);
    }
}
template <class T> static void try_shape(const bench<T>& x, const rung& r, shape s, int fill) {
    inputs in = { fill, s.n, s.d, s.causal, s.heads };
    fill_k<T><<<1024, 256, 0, stream>>>(x.q, x.k, x.v, in);
    reference_k<T><<<(unsigned)(s.heads * s.n), 128, (size_t)(s.n + 2) * sizeof(double), stream>>>(
        x.q, x.k, x.v, x.want, x.allowed, x.want_lse, in);
    try_one(x, r, s, fill, 0, -1);
    if (fill == MATCH) try_one(x, r, s, fill, 1, -1);
    for (int operand = 0; operand < 3 && s.n == 17 && fill == RANDOM; operand++) try_one(x, r, s, fill, 0, operand);
}
// Uses more inputs, at neighbouring addresses, than there are cached tensor maps: each launch must use its own
// input's map.
template <class T> static void try_addresses(bench<T> x, const rung& r) {
    shape s = { 2, 136, 64, 1 };
    T *q = x.q, *k = x.k, *v = x.v;
    for (int i = 0; i < (sanitize ? 2 : 100); i++) {
        x.q = q + i % 70 * 8, x.k = k + (100 - i) * 8, x.v = v + i % 50 * 16;
        try_shape(x, r, s, MATCH);
    }
}
static const int lengths[] = { 1, 2, 17, 64, 65, 127, 128, 129, 191, 192, 193, 300, 385, 1024, 1536 };
// Most of these shapes have more tiles than the device has SMs, so that a persistent CTA computes several tiles.
static const shape many[] = { { 300, 300, 128, 0 }, { 280, 200, 64, 0 }, { 40, 1536, 128, 0 },
                              { 64, 1000, 64, 0 },  { 700, 64, 64, 0 },  { 5, 4097, 128, 0 },
                              { 3, 5000, 64, 0 },   { 1000, 1, 128, 0 }, { 133, 129, 128, 0 } };
template <class T> static void try_all(const bench<T>& x, const rung& r) {
    const int before = failed;
    if (only_shape.n) {
        for (int i = 0; i < 2 * FILLS; i++)
            try_shape(x, r, { only_shape.heads, only_shape.n, only_shape.d, i % 2 }, i / 2);
        return;
    }
    for (int i = 0; i < (int)(sizeof lengths / sizeof lengths[0]); i++)
        for (int d = 64; d <= 128; d += 64)
            for (int causal = 0; causal < 2; causal++)
                for (int fill = 0; fill < FILLS; fill++) {
                    if ((sanitize && (lengths[i] > 200 || i % 2)) || (quick && i % 3 == 0 && i)) continue;
                    try_shape(x, r, { lengths[i] > 1000 ? 2 : 3, lengths[i], d, causal }, fill);
                    if (failed - before > 40) {
                        printf("FAIL: %s: too many failures; the remaining cases are left out\n", r.name);
                        return;
                    }
                }
    for (const shape& s : many)
        for (int causal = 0; causal < 2 && !sanitize; causal++)
            for (int fill = 0; fill<(quick ? 2 : FILLS); fill += s.n> 1500 ? 2 : 1)
                try_shape(x, r, { s.heads, s.n, s.d, causal }, fill);
    try_addresses(x, r);
}
template <class T> static void check_type(const rung& r) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF, was = passed, were = failed;
    bench<T> x;
    size_t rows = (size_t)only_shape.heads * only_shape.n, most = rows * only_shape.d; // most: elements
    if (!wanted_dtype(dtype)) return;
    for (const shape& s : many)
        rows = std::max(rows, (size_t)s.heads * s.n), most = std::max(most, (size_t)s.heads * s.n * s.d);
    T** in[] = { &x.q, &x.k, &x.v };
    for (T** p : in) CUDA(cudaMalloc((void**)p, 2 * most + 65536)), CUDA(cudaMemset(*p, 0xFF, 2 * most + 65536));
    CUDA(cudaMalloc((void**)&x.o, 2 * most + 2 * GUARD)), CUDA(cudaMalloc((void**)&x.lse, 4 * rows + 2 * GUARD));
    CUDA(cudaMalloc((void**)&x.want, 8 * most)), CUDA(cudaMalloc((void**)&x.allowed, 8 * most));
    CUDA(cudaMalloc((void**)&x.want_lse, 8 * rows)), CUDA(cudaMalloc((void**)&x.v_out, sizeof *x.v_out));
    // a memset of memory that the host can access is not ordered with the stream
    CUDA(cudaDeviceSynchronize());
    try_all(x, r);
    printf("%s %s: %d passed, %d failed\n", r.name, dtype_name[dtype], passed - was, failed - were), fflush(stdout);
    void* all[] = { x.q, x.k, x.v, x.o, x.lse, x.want, x.allowed, x.want_lse, x.v_out };
    for (void* p : all) CUDA(cudaFree(p));
}

// --- backward: do, q, k, v, o and lse to dq, dk, dv

// Kinds of inputs of attention backward, in the order of the enum. MATCH: each row matches one key, and all
// numbers are small integers. RANDOM: numbers are uniform in [-1, 1). SPOILED: uniform numbers; some rows see no
// key, and the causal mask hides NaN and infinity from some rows. WIDE: scores cover a wide range.
enum { BACK_MATCH, BACK_RANDOM, BACK_SPOILED, BACK_WIDE, BACK_FILLS };
static const char* const back_fill_name[] = { "one match", "random", "NaN and infinity", "wide scores" };
static const char* const back_name[] = { "dq", "dk", "dv" };

template <class T> struct back {
    T* in[5]; // do, q, k, v, o
    float* lse;
    char *out[3], *work, *again;
    double *want[3], *allowed[3], *dots, *sizes, *o, *o_allowed, *want_lse;
    verdict* v_out;
};
template <class T> __global__ void back_fill_k(back<T> x, inputs in) {
    int64_t all = (int64_t)in.heads * in.n * in.d;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < all; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t line = i / in.d;
        int c = (int)(i % in.d), row = (int)(line % in.n), head = (int)(line / in.n);
        float at[5];
        for (int k = 0; k < 5; k++) at[k] = uniform(21 + k, i) * (in.fill == BACK_WIDE && (k == 1 || k == 2) ? 8 : 1);
        if (in.fill == BACK_MATCH) {
            int reach = in.causal ? row + 1 : in.n;
            for (int k = 0; k < 5; k++) at[k] = (float)(mixed((uint32_t)(i * 5 + k)) % 3) - 1;
            at[1] = code(head * (int64_t)in.n + mixed((uint32_t)line) % (uint32_t)reach, c) * (8 / 11.0f);
            at[2] = code(line, c) * (8 / 11.0f);
        }
        for (int k = 0; k < 5; k++) x.in[k][i] = (T)at[k];
    }
}
__global__ void back_lse_k(const double* from, float* to, int64_t n) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        to[i] = (float)from[i];
}
// Writes one kind of special value per head, in turn: NaN in do, infinity in q, NaN in k, infinity in v. The
// causal mask must not hide NaN in do or k, or infinity in q, because products with masked values are not skipped.
template <class T> __global__ void back_spoil_k(back<T> x, inputs in) {
    int head = blockIdx.x, d = in.d, n = in.n, which = head % 4;
    int64_t first = (int64_t)head * n;
    int line = which < 2 ? n - 1 : which == 2 ? 0 : n - n / 4 - 1;
    int column = which < 2 ? 3 : d - 5;
    if (threadIdx.x == 0) x.in[which][(first + line) * d + column] = (T)special(which % 2 == 0);
    for (int row = (int)threadIdx.x; row < n; row += (int)blockDim.x)
        if (row % 17 == 5) x.lse[first + row] = -INFINITY;
}
template <class T> __global__ void back_dots_k(back<T> x, int64_t rows, int d) {
    int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0, size = 0;
    for (int c = 0; c < d; c++) {
        double y = (double)(float)x.in[0][row * d + c] * (double)(float)x.in[4][row * d + c];
        sum += y, size += fabs(y);
    }
    x.dots[row] = sum, x.sizes[row] = size;
}
/*  Computes the reference in double precision, with one CTA per row (for dq) or, if Keys is true, one CTA per key
   (for dk and dv). p and ds are each rounded to 16 bits once, and ds includes the rounding of p. The tolerance is
   five times the root of the sum of the squared rounding errors of p (ten times for ds), plus the rounding of the
   result, plus the errors of f32. */
template <class T, bool Keys> __global__ void __launch_bounds__(128) back_reference_k(back<T> x, inputs in) {
    extern __shared__ double scores[];
    double *p = scores, *ds = p + in.n, *off_p = ds + in.n, *off_ds = off_p + in.n;
    const bool f16 = kbki_type<T>::cuda == CUDA_R_16F;
    const int64_t line = blockIdx.x, d = in.d, mine = line % in.n, head = line - mine;
    const int from = Keys && in.causal ? (int)mine : 0, to = !Keys && in.causal ? (int)mine + 1 : in.n;
    const double scale = 1 / sqrt((double)d), unit = f16 ? 0x1p-11 : 0x1p-8;
    for (int e = from + (int)threadIdx.x; e < to; e += 128) {
        const int64_t i = Keys ? head + e : line, j = Keys ? line : head + e;
        double s = 0, size = 0, dp = 0, big = 0, lse = x.lse[i];
        for (int c = 0; c < d; c++) {
            double a = (double)(float)x.in[1][i * d + c] * (double)(float)x.in[2][j * d + c];
            double b = (double)(float)x.in[0][i * d + c] * (double)(float)x.in[3][j * d + c];
            s += a, size += fabs(a), dp += b, big += fabs(b);
        }
        p[e] = exp(s * scale - (lse == -INFINITY ? INFINITY : lse));
        if (in.fill == BACK_MATCH) p[e] = (double)(float)(T)(float)p[e]; // 1 and 0
        ds[e] = p[e] * (dp - x.dots[i]) * scale;
        off_p[e] = (p[e] == 0 ? 0 : p[e] * (1e-6 * (size * scale + fabs(lse)) + 1e-5)) + (f16 ? 0x1p-25 : 0);
        off_ds[e] =
            scale * (off_p[e] * fabs(dp - x.dots[i]) + p[e] * 1e-6 * (big + x.sizes[i]) + (f16 ? 0x1p-25 : 0));
        if (lse == -INFINITY) off_p[e] = off_ds[e] = 0;
    }
    __syncthreads();
    for (int out = Keys ? 1 : 0; out < (Keys ? 3 : 1); out++)
        for (int c = (int)threadIdx.x; c < d; c += 128) {
            const T* other = x.in[out == 0 ? 2 : out == 1 ? 1 : 0] + head * d + c;
            const double *w = out < 2 ? ds : p, *off = out < 2 ? off_ds : off_p;
            double y = 0, squares = 0, sizes = 0, offs = 0;
            for (int e = from; e < to; e++) {
                double z = (double)(float)other[e * d];
                y += w[e] * z, squares += w[e] * z * w[e] * z, sizes += fabs(w[e] * z), offs += off[e] * fabs(z);
            }
            x.want[out][line * d + c] = y;
            x.allowed[out][line * d + c] =
                in.fill == BACK_MATCH
                    ? 1.05 * unit * fabs(y) + 1e-6 * sizes
                    : (out < 2 ? 10 : 5) * unit * sqrt(squares) + 1.02 * unit * fabs(y) + offs + (f16 ? 1e-7 : 1e-30);
        }
}
__global__ void back_same_k(const char* a, const char* b, int64_t bytes, verdict* out) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < bytes; i += (int64_t)gridDim.x * blockDim.x)
        if (a[i] != b[i]) atomicAdd(&out->bad, 1ull), atomicMin(&out->first, (unsigned long long)i);
}
static size_t back_scratch(const kbk_args& a) { return kbki_scratch_attention_bwd(&a.s, 2, KBKI_WORD_flashws); }
template <class T> static kbk_args back_arguments(const back<T>& x, shape s, int64_t at) {
    kbk_args a = arguments(x.in[0], x.in[1], x.in[2], x.out[0] + at, x.out[1] + at, s);
    a.in[3] = x.in[3], a.in[4] = x.in[4], a.in[5] = x.lse, a.out[2] = x.out[2] + at;
    a.workspace = x.work, a.workspace_bytes = back_scratch(a);
    return a;
}
// off: number of elements between a 16-byte boundary and the start of the results. operand: index of the input
// that starts one element after a 16-byte boundary; -1: every input is aligned. as_is: no reference was computed,
// so the results are compared with the results of an earlier launch.
template <class T>
static void back_one(const back<T>& x, const rung& r, shape s, int fill, int off, int operand, bool as_is) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    const int64_t n = (int64_t)s.heads * s.n * s.d, at = GUARD + 2 * off, bytes = GUARD * 2 + 2 * n;
    verdict none = { 0, ~0ull, 0, 0, ~0ull, 0, 0, 0 }, v[3];
    kbk_args a = back_arguments(x, s, at);
    const int64_t scratch = (int64_t)a.workspace_bytes;
    if (operand >= 0) a.in[operand] = (const T*)a.in[operand] + 1;
    const bool takes = operand < 0;
    for (int k = 0; k < 3; k++) CUDA(cudaMemsetAsync(x.out[k], 0xFF, (size_t)bytes, stream));
    CUDA(cudaMemsetAsync(x.work, 0, KBK_TICKETS, stream));
    CUDA(cudaMemsetAsync(x.work + KBK_TICKETS, 0xFF, (size_t)scratch - KBK_TICKETS + GUARD, stream));
    const char* why = r.launch[dtype](&a, stream);
    for (int k = 0; k < 3; k++) {
        CUDA(cudaMemcpyAsync(x.v_out, &none, sizeof none, cudaMemcpyHostToDevice, stream));
        if (!as_is)
            compare_k<T><<<512, 256, 0, stream>>>(x.out[k], bytes, at, why ? NULL : x.want[k], x.allowed[k], n,
                                                  fill == BACK_MATCH && k == 2, false, x.v_out, true);
        else if (k > 0)
            back_same_k<<<512, 256, 0, stream>>>(x.out[k] + at, x.again + (k - 1) * 2 * n, 2 * n, x.v_out);
        compare_k<float><<<1, 256, 0, stream>>>(x.work + scratch, GUARD, 0, NULL, NULL, 0, false, false, x.v_out);
        CUDA(cudaMemcpyAsync(v + k, x.v_out, sizeof *v, cudaMemcpyDeviceToHost, stream));
    }
    cudaError_t e = cudaStreamSynchronize(stream);
    for (int k = 0; k < 3; k++) {
        const char* text = e != cudaSuccess ? cudaGetErrorString(e)
                           : !takes && !why ? "accepted a case that TMA does not support"
                           : takes && why   ? why
                           : v[k].outside   ? "wrote outside its results"
                           : !v[k].bad      ? NULL
                           : as_is          ? "differs from launch to launch"
                                            : "wrong";
        if (!text && ++passed) continue;
        if (e != cudaSuccess) v[k] = none;
        failed++;
        printf("FAIL: %s backward, %s of %s %d heads, %d rows, d = %d%s, %s%s: %s", r.name, back_name[k],
               dtype_name[dtype], s.heads, s.n, s.d, s.causal ? ", causal" : "", back_fill_name[fill],
               off            ? ", results misaligned by one element"
               : operand >= 0 ? ", an input misaligned by one element"
                              : "",
               text);
        if (v[k].bad && !as_is)
            printf(" (%llu, the first in head %lld, row %lld, column %lld; one of them is %.6g, not %.6g +- %.2g)",
                   v[k].bad, (long long)v[k].first / s.d / s.n, (long long)v[k].first / s.d % s.n,
                   (long long)v[k].first % s.d, v[k].got, v[k].want, v[k].may);
        printf("\n"), fflush(stdout);
        if (e == cudaSuccess) continue;
        printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
        exit(1);
    }
}
template <class T> static void back_shape(const back<T>& x, const rung& r, shape s, int fill, bool refer) {
    inputs in = { fill, s.n, s.d, s.causal, s.heads };
    const int64_t rows = (int64_t)s.heads * s.n, n = rows * s.d;
    back_fill_k<T><<<1024, 256, 0, stream>>>(x, in);
    reference_k<T><<<(unsigned)rows, 128, (size_t)(s.n + 2) * 8, stream>>>(x.in[1], x.in[2], x.in[3], x.o,
                                                                           x.o_allowed, x.want_lse, in);
    back_lse_k<<<64, 256, 0, stream>>>(x.want_lse, x.lse, rows);
    if (fill == BACK_SPOILED) back_spoil_k<T><<<(unsigned)s.heads, 128, 0, stream>>>(x, in);
    if (refer) {
        back_dots_k<T><<<(unsigned)(rows / 128 + 1), 128, 0, stream>>>(x, rows, s.d);
        back_reference_k<T, false><<<(unsigned)rows, 128, (size_t)s.n * 32 + 16, stream>>>(x, in);
        back_reference_k<T, true><<<(unsigned)rows, 128, (size_t)s.n * 32 + 16, stream>>>(x, in);
        back_one(x, r, s, fill, 0, -1, false);
        if (fill == BACK_MATCH) back_one(x, r, s, fill, 1, -1, false);
        for (int operand = 0; operand < 4 && s.n == 17 && fill == BACK_RANDOM && strcmp(r.name, "small"); operand++)
            back_one(x, r, s, fill, 0, operand, false);
        return;
    }
    kbk_args a = back_arguments(x, s, GUARD);
    CUDA(cudaMemsetAsync(x.work, 0, KBK_TICKETS, stream));
    // back_one() repeats a launch that failed, and prints the reason
    r.launch[kbki_type<T>::cuda == CUDA_R_16BF](&a, stream);
    for (int k = 0; k < 2; k++)
        CUDA(cudaMemcpyAsync(x.again + k * 2 * n, a.out[k + 1], (size_t)(2 * n), cudaMemcpyDeviceToDevice, stream));
    for (int i = 0; i < 3; i++) back_one(x, r, s, fill, 0, -1, true);
}
static const int back_lengths[] = { 1, 17, 64, 65, 127, 128, 129, 191, 300, 1024 };
static const shape back_many[] = { { 140, 257, 128, 0 }, { 150, 300, 64, 0 }, { 4, 2100, 128, 0 },
                                   { 4, 2000, 64, 0 },   { 700, 64, 64, 0 },  { 500, 1, 128, 0 } };
static const shape back_again[] = { { 64, 1000, 128, 0 }, { 64, 1000, 64, 0 } };
template <class T> static void back_all(const back<T>& x, const rung& r) {
    const int before = failed;
    if (only_shape.n) {
        for (int i = 0; i < 2 * BACK_FILLS; i++)
            back_shape(x, r, { only_shape.heads, only_shape.n, only_shape.d, i % 2 }, i / 2, true);
        return;
    }
    for (int i = 0; i < (int)(sizeof back_lengths / sizeof back_lengths[0]); i++)
        for (int d = 64; d <= 128; d += 64)
            for (int causal = 0; causal < 2; causal++)
                for (int fill = 0; fill < BACK_FILLS; fill++) {
                    if ((sanitize && (back_lengths[i] > 200 || i % 2)) || (quick && i % 3 == 0 && i)) continue;
                    back_shape(x, r, { 4, back_lengths[i], d, causal }, fill, true);
                    if (failed - before > 40) {
                        printf("FAIL: %s backward: too many failures; the remaining cases are left out\n", r.name);
                        return;
                    }
                }
    for (int causal = 0; causal < 2 && !sanitize; causal++) {
        for (const shape& s : back_many)
            for (int fill = BACK_RANDOM; fill < (quick ? BACK_SPOILED : BACK_WIDE); fill++)
                back_shape(x, r, { s.heads, s.n, s.d, causal }, fill, true);
        for (const shape& s : back_again) back_shape(x, r, { s.heads, s.n, s.d, causal }, BACK_RANDOM, false);
    }
}
template <class T> static void check_back(const rung& r) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF, was = passed, were = failed;
    size_t rows = (size_t)std::max(4 * 1024, only_shape.heads * only_shape.n), most = 0, scratch = 0;
    back<T> x;
    if (!wanted_dtype(dtype)) return;
    for (const shape& s : back_many) rows = std::max(rows, (size_t)s.heads * s.n);
    for (const shape& s : back_again) rows = std::max(rows, (size_t)s.heads * s.n);
    most = 128 * rows;
    scratch = KBK_TICKETS + (rows + 64 * (size_t)std::max(1000, only_shape.heads)) * (8 + 4 * 128) + 2 * GUARD;
    for (T*& p : x.in) CUDA(cudaMalloc((void**)&p, 2 * most + 65536)), CUDA(cudaMemset(p, 0xFF, 2 * most + 65536));
    for (int k = 0; k < 3; k++) {
        CUDA(cudaMalloc((void**)&x.out[k], 2 * most + 3 * GUARD));
        CUDA(cudaMalloc((void**)&x.want[k], 8 * most)), CUDA(cudaMalloc((void**)&x.allowed[k], 8 * most));
    }
    double** per_row[] = { &x.dots, &x.sizes, &x.want_lse };
    for (double** p : per_row) CUDA(cudaMalloc((void**)p, 8 * rows));
    CUDA(cudaMalloc((void**)&x.lse, 4 * rows)), CUDA(cudaMalloc((void**)&x.work, scratch));
    CUDA(cudaMalloc((void**)&x.o, 8 * most)), CUDA(cudaMalloc((void**)&x.o_allowed, 8 * most));
    CUDA(cudaMalloc((void**)&x.again, 4 * most)), CUDA(cudaMalloc((void**)&x.v_out, sizeof *x.v_out));
    CUDA(cudaDeviceSynchronize());
    back_all(x, r);
    printf("%s backward %s: %d passed, %d failed\n", r.name, dtype_name[dtype], passed - was, failed - were);
    fflush(stdout);
    for (T* p : x.in) CUDA(cudaFree(p));
    for (int k = 0; k < 3; k++) CUDA(cudaFree(x.out[k])), CUDA(cudaFree(x.want[k])), CUDA(cudaFree(x.allowed[k]));
    void* all[] = { x.dots, x.sizes, x.want_lse, x.lse, x.work, x.o, x.o_allowed, x.again, x.v_out };
    for (void* p : all) CUDA(cudaFree(p));
}
template <class T> static void allow_shared() {
    CUDA(cudaFuncSetAttribute(reference_k<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, 225 << 10));
    CUDA(cudaFuncSetAttribute((back_reference_k<T, false>), cudaFuncAttributeMaxDynamicSharedMemorySize, 225 << 10));
    CUDA(cudaFuncSetAttribute((back_reference_k<T, true>), cudaFuncAttributeMaxDynamicSharedMemorySize, 225 << 10));
}

// --- times

static double median(float* t, int n) {
    std::sort(t, t + n);
    return n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
}
template <class T> __global__ void noise_k(T* x, int64_t n) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        x[i] = (T)uniform(5, i);
}
__global__ void same_k(float* x, int64_t n, float value) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        x[i] = value;
}
template <class T> static void time_shape(const rung& r, shape s, size_t l2) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    const rung* both[2] = { &older, &r };
    int64_t n = (int64_t)s.heads * s.n * s.d, set = 4 * n;
    int sets = (int)(2 * l2 / (size_t)(2 * set)) + 2, turn = 0;
    T* room;
    float *lse, t[2][LAUNCHES];
    cudaEvent_t events[2][LAUNCHES][2];
    double rate[2];
    CUDA(cudaMalloc((void**)&room, (size_t)(2 * set) * sets));
    CUDA(cudaMalloc((void**)&lse, (size_t)(4 * s.heads) * s.n));
    noise_k<T><<<1024, 256, 0, stream>>>(room, set * sets);
    for (int i = 0; i < 4 * LAUNCHES; i++) CUDA(cudaEventCreate(&events[i / 2 / LAUNCHES][i / 2 % LAUNCHES][i % 2]));
    for (int i = -WARM; i < LAUNCHES; i++)
        for (int w = 0; w < 2; w++) {
            T* at = room + turn++ % sets * set;
            kbk_args a = arguments(at, at + n, at + 2 * n, at + 3 * n, lse, s);
            if (i >= 0) CUDA(cudaEventRecord(events[w][i][0], stream));
            const char* why = both[w]->launch[dtype](&a, stream);
            if (i >= 0) CUDA(cudaEventRecord(events[w][i][1], stream));
            if (why && i == 0) printf("FAIL: %s: %s\n", both[w]->name, why), failed++;
            if (i == -1 && w == 1) hold_k<<<1, 1, 0, stream>>>(5000000);
        }
    CUDA(cudaStreamSynchronize(stream));
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < LAUNCHES; i++) CUDA(cudaEventElapsedTime(&t[w][i], events[w][i][0], events[w][i][1]));
        rate[w] = 4e-9 * s.heads * s.n * s.n * s.d / (s.causal ? 2 : 1) / median(t[w], LAUNCHES);
    }
    for (int i = 0; i < 4 * LAUNCHES; i++) CUDA(cudaEventDestroy(events[i / 2 / LAUNCHES][i / 2 % LAUNCHES][i % 2]));
    printf("%-4s %5d %6d %4d %-6s %10.1f %10.1f %6.2f\n", dtype_name[dtype], s.heads, s.n, s.d,
           s.causal ? "causal" : "full", rate[0], rate[1], rate[1] / rate[0]);
    CUDA(cudaFree(room)), CUDA(cudaFree(lse));
}
static const shape timed[] = { { 32, 2048, 128, 0 }, { 64, 1024, 64, 0 },  { 16, 8192, 128, 0 }, { 128, 512, 64, 0 },
                               { 64, 4096, 128, 0 }, { 128, 4096, 64, 0 }, { 256, 1024, 128, 0 } };
static void time_rung(const rung& r, size_t l2) {
    printf("TFLOP/s heads rows   d              flashmma %10s      x\n", r.name);
    for (int dtype = 1; dtype >= 0; dtype--)
        for (const shape& s : timed)
            for (int causal = 0; causal < 2 && wanted_dtype(dtype); causal++) {
                shape now = only_shape.n ? only_shape : s;
                if (only_shape.n && &s != timed) continue;
                now.causal = causal;
                dtype ? time_shape<bf16>(r, now, l2) : time_shape<__half>(r, now, l2);
                fflush(stdout);
            }
}

template <class T> static void time_back(const rung& r, shape s, size_t l2) {
    const int dtype = kbki_type<T>::cuda == CUDA_R_16BF;
    const rung* both[2] = { &older_back, &r };
    const int64_t n = (int64_t)s.heads * s.n * s.d, set = 8 * n;
    const int sets = (int)(2 * l2 / (size_t)(2 * set)) + 2;
    int turn = 0;
    T* room;
    float *lse, t[2][LAUNCHES];
    char* work;
    cudaEvent_t events[2][LAUNCHES][2];
    double rate[2];
    kbk_args a = arguments(NULL, NULL, NULL, NULL, NULL, s);
    CUDA(cudaMalloc((void**)&room, (size_t)(2 * set) * sets)), CUDA(cudaMalloc((void**)&work, back_scratch(a)));
    CUDA(cudaMalloc((void**)&lse, (size_t)(4 * s.heads) * s.n)), CUDA(cudaMemset(work, 0, back_scratch(a)));
    noise_k<T><<<1024, 256, 0, stream>>>(room, set * sets);
    same_k<<<1024, 256, 0, stream>>>(lse, (int64_t)s.heads * s.n, logf((float)s.n));
    for (int i = 0; i < 4 * LAUNCHES; i++) CUDA(cudaEventCreate(&events[i / 2 / LAUNCHES][i / 2 % LAUNCHES][i % 2]));
    for (int i = -WARM; i < LAUNCHES; i++)
        for (int w = 0; w < 2; w++) {
            T* at = room + turn++ % sets * set;
            a = arguments(at, at + n, at + 2 * n, at + 5 * n, at + 6 * n, s);
            a.in[3] = at + 3 * n, a.in[4] = at + 4 * n, a.in[5] = lse, a.out[2] = at + 7 * n;
            a.workspace = work, a.workspace_bytes = back_scratch(a);
            if (i >= 0) CUDA(cudaEventRecord(events[w][i][0], stream));
            const char* why = both[w]->launch[dtype](&a, stream);
            if (i >= 0) CUDA(cudaEventRecord(events[w][i][1], stream));
            if (why && i == 0) printf("FAIL: %s backward: %s\n", both[w]->name, why), failed++;
            if (i == -1 && w == 1) hold_k<<<1, 1, 0, stream>>>(5000000);
        }
    CUDA(cudaStreamSynchronize(stream));
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < LAUNCHES; i++) CUDA(cudaEventElapsedTime(&t[w][i], events[w][i][0], events[w][i][1]));
        rate[w] = 1e-8 * s.heads * s.n * s.n * s.d / (s.causal ? 2 : 1) / median(t[w], LAUNCHES);
    }
    for (int i = 0; i < 4 * LAUNCHES; i++) CUDA(cudaEventDestroy(events[i / 2 / LAUNCHES][i / 2 % LAUNCHES][i % 2]));
    printf("%-4s %5d %6d %4d %-6s %10.1f %10.1f %6.2f\n", dtype_name[dtype], s.heads, s.n, s.d,
           s.causal ? "causal" : "full", rate[0], rate[1], rate[1] / rate[0]);
    CUDA(cudaFree(room)), CUDA(cudaFree(lse)), CUDA(cudaFree(work));
}
static const shape back_timed[] = { { 64, 4096, 128, 0 }, { 256, 1024, 128, 0 }, { 128, 4096, 64, 0 } };
static void time_back_rung(const rung& r, size_t l2) {
    printf("bwd, TFLOP/s rows   d              flashmma %10s      x\n", r.name);
    for (int dtype = 1; dtype >= 0; dtype--)
        for (const shape& s : back_timed)
            for (int causal = 0; causal < 2 && wanted_dtype(dtype); causal++) {
                shape now = only_shape.n ? only_shape : s;
                if (only_shape.n && &s != back_timed) continue;
                now.causal = causal;
                dtype ? time_back<bf16>(r, now, l2) : time_back<__half>(r, now, l2);
                fflush(stdout);
            }
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
        else if (!strcmp(word, "--dir") && more)
            only_dir = argv[++i];
        else if (!strcmp(word, "--rung") && more)
            only_rung = argv[++i];
        else if (!strcmp(word, "--dtype") && more)
            only_dtype = argv[++i];
        else if (!strcmp(word, "--shape") && more) {
            shape s = { 0, 0, 0, 0 };
            if (sscanf(argv[++i], "%dx%dx%d", &s.heads, &s.n, &s.d) != 3 || s.heads < 1 || s.n < 1) return 0;
            if (s.n > 28000 || (s.d != 64 && s.d != 128)) return 0;
            only_shape = s;
        } else
            return 0;
    }
    bool known = !only_rung;
    for (const rung& r : rungs) known = known || !strcmp(r.name, only_rung);
    for (const rung& r : back_rungs) known = known || !strcmp(r.name, only_rung);
    if (only_dir && strcmp(only_dir, "fwd") && strcmp(only_dir, "bwd")) return 0;
    return known && (!only_dtype || !strcmp(only_dtype, "f16") || !strcmp(only_dtype, "bf16"));
}

int main(int argc, char** argv) {
    bool check = true, time = true;
    int devices = 0, l2 = 0;
    bool known = parse(argc, argv, &check, &time);
    // the reference kernel of attention backward keeps four rows in shared memory
    if (known && check && only_shape.n > 7000) known = only_dir && !strcmp(only_dir, "fwd");
    if (!known) {
        printf("usage: %s [--check] [--time] [--dir fwd|bwd] [--dtype f16|bf16] [--shape HEADSxROWSxD] [--quick]\n"
               "       [--rung flashws|flashrs|pingpong|flashpp|few|many|stay|leave|small] [--sanitize]\n"
               "       d is 64 or 128; at most 28000 rows, 7000 to check backward\n",
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
    CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
    CUDA(cudaMalloc((void**)&tickets, KBK_TICKETS)), CUDA(cudaMemset(tickets, 0, KBK_TICKETS));
    allow_shared<__half>(), allow_shared<bf16>();
    for (const rung& r : rungs) {
        int were = failed;
        if ((only_rung && strcmp(only_rung, r.name)) || (only_dir && strcmp(only_dir, "fwd"))) continue;
        if (check) check_type<__half>(r), check_type<bf16>(r);
        if (time && failed > were) printf("no times of %s: its results are wrong\n", r.name);
        if (time && failed == were) time_rung(r, (size_t)l2);
    }
    for (const rung& r : back_rungs) {
        int were = failed;
        if ((only_rung && strcmp(only_rung, r.name)) || (only_dir && strcmp(only_dir, "bwd"))) continue;
        if (check) check_back<__half>(r), check_back<bf16>(r);
        if (time && failed > were) printf("no times of %s backward: its results are wrong\n", r.name);
        if (time && failed == were) time_back_rung(r, (size_t)l2);
    }
    CUDA(cudaDeviceSynchronize());
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
