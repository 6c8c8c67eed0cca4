// SPDX-License-Identifier: MIT OR Unlicense
/* What it shows: which plan of a row operation is the fastest where a compiler's code once was faster than the
   library's: layernorm fwd at 65536 x 64, 8192 x 1024 and 4096 x 16384, softmax bwd at 65536 x 64 and 4096 x 16384, in
   bf16. Every plan is held against the oracle first, on rows spread over the result.

   nvcc -std=c++17 -O2 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/rows.cu -o rows && ./rows [OPTION...]

       --check        only what is right or wrong
       --op NAME      layernorm, rmsnorm or softmax alone

   Columns: us per launch, of a graph of 20 launches on buffers that rotate through more than three times the L2 cache;
   us of one launch by itself, after 256 MiB of something else were read, between events, of which an empty kernel
   takes what the first line says; and the floor, bytes over 4276 GB/s, as a share of the first column. Medians, all
   plans in turn. Exit code 0, 1 after failures, 77 without a GPU. */
#define KBK_NO_F16
#define KBK_NO_F32
#define KBK_ONLY_LAYERNORM
#define KBK_ONLY_RMSNORM
#define KBK_ONLY_SOFTMAX
#include "kbench_kernels.cuh"
#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

typedef __nv_bfloat16 bf16;
enum { LAUNCHES = 20, ROUNDS = 15, ALONE = 21, SAMPLES = 40 };
static const double copy_rate = 4276e3; // bytes per us, of a copy of 4 GiB on an H200
static int passed, failed;
static cudaStream_t stream;

static void cuda(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    printf("FAIL: %s: %s\n%d passed, %d failed, 0 skipped\n", what, cudaGetErrorString(e), passed, failed + 1);
    exit(1);
}
#define CUDA(call) cuda((call), #call)

// --- candidates

/*  Short rows, a few of them per group of lanes: all are on their way before the first is used, w and b are asked for
    once. Deviations are from the row's first element at first: exact where the row's elements are nearly equal, so no
    row needs a second look. */
template <class T, bool Layer, int Packs, int Lanes, int Rows, int Cta, int Ctas>
__global__ void __launch_bounds__(Cta, Ctas) short_norm_k(kbki_norm<T, Layer> io) {
    constexpr int Width = KBKI_WIDTH(T), Groups = 32 / Lanes;
    const int lane = threadIdx.x % Lanes, packs = (int)(io.cols / Width);
    const int64_t row =
        ((int64_t)blockIdx.x * (Cta / 32) + threadIdx.x / 32) * (Groups * Rows) + threadIdx.x % 32 / Lanes;
    const float each = 1 / (float)io.cols;
    kbki_pack<T, Width> v[Rows][Packs], w[Packs], b[Packs];
#pragma unroll
    for (int r = 0; r < Rows; r++)
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            v[r][u].fill(0);
            if (row + r * Groups < io.rows && lane + u * Lanes < packs)
                v[r][u].load(io.x + (row + r * Groups) * io.cols + (lane + u * Lanes) * Width);
        }
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        w[u].fill(0), b[u].fill(0);
        if (lane + u * Lanes >= packs) continue;
        w[u].load(io.w + (lane + u * Lanes) * Width);
        if (Layer) b[u].load(io.b + (lane + u * Lanes) * Width);
    }
    float2 mine = make_float2(0, 0);
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        float f[Packs][Width], first = 0, sum = 0, square = 0;
#pragma unroll
        for (int u = 0; u < Packs; u++) v[r][u].get(f[u]);
        if (Layer) {
            first = __shfl_sync(~0u, f[0][0], 0, Lanes);
            if (isinf(first)) first = 0;
#pragma unroll
            for (int u = 0; u < Packs; u++) {
                const float from = lane + u * Lanes < packs ? first : 0;
#pragma unroll
                for (int k = 0; k < Width; k++) f[u][k] -= from, sum += f[u][k];
            }
            sum = kbki_warp_all<kbki_sum<float>, Lanes>(sum) * each;
        }
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            const float from = lane + u * Lanes < packs ? sum : 0;
#pragma unroll
            for (int k = 0; k < Width; k++) {
                if (Layer) f[u][k] -= from;
                square = fmaf(f[u][k], f[u][k], square);
            }
        }
        const float rstd = rsqrtf(kbki_warp_all<kbki_sum<float>, Lanes>(square) * each + (float)KBK_EPS);
        if (lane == r) mine = make_float2(first + sum, rstd);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            float g[Width], h[Width];
            w[u].get(g);
            if (Layer) b[u].get(h);
#pragma unroll
            for (int k = 0; k < Width; k++)
                f[u][k] = Layer ? fmaf(f[u][k] * rstd, g[k], h[k]) : f[u][k] * rstd * g[k];
            v[r][u].set(f[u]);
            if (row + r * Groups < io.rows && lane + u * Lanes < packs)
                v[r][u].store(io.y + (row + r * Groups) * io.cols + (lane + u * Lanes) * Width);
        }
    }
    if (lane >= Rows || row + lane * Groups >= io.rows) return;
    if (Layer && io.mean) io.mean[row + lane * Groups] = mine.x;
    if (io.rstd) io.rstd[row + lane * Groups] = mine.y;
}
template <class T, bool Layer, int Packs, int Lanes, int Rows, int Cta, int Ctas>
const char* short_norm(const kbk_args* a, kbk_stream st) {
    kbki_norm<T, Layer> io;
    const char* why = kbki_norm_args(a, 1, &io);
    if (why) return why;
    if (!kbki_norm_whole(io) || io.cols / KBKI_WIDTH(T) > Packs * Lanes) return "not for this plan";
    short_norm_k<T, Layer, Packs, Lanes, Rows, Cta, Ctas>
        <<<(unsigned)kbki_ceil(io.rows, Cta / Lanes * Rows), Cta, 0, st>>>(io);
    return kbki_launched();
}

/*  Rows in turn, 16 bits: w and b stay in registers as floats, and so does the row from its mean to its store; the next
    rows are on their way into shared memory. 128 registers, 512 threads per SM. */
template <class T, bool Layer, int Packs, int Threads, int Stages>
__global__ void __launch_bounds__(KBKI_CTA(Threads), 512 / KBKI_CTA(Threads)) held_norm_k(kbki_norm<T, Layer> io) {
    extern __shared__ uint4 kbki_row[];
    __shared__ float4 slots[2][32];
    __shared__ float2 slots2[32];
    constexpr int Width = KBKI_WIDTH(T), Rows = KBKI_ROWS(Threads), room = Packs * KBKI_CTA(Threads);
    int t = Threads == 32 ? threadIdx.x % 32 : threadIdx.x, packs = (int)(io.cols / Width), slot = 0;
    int64_t row = (int64_t)blockIdx.x * Rows + (Threads == 32 ? threadIdx.x / 32 : 0),
            step = (int64_t)gridDim.x * Rows;
    float each = 1 / (float)io.cols,
          n = (float)((packs / Threads * 32 + min(max(packs % Threads - t / 32 * 32, 0), 32)) * Width);
    float each_n = n > 0 ? 1 / n : 0, f[Packs][Width], g[Packs][Width], h[Packs][Width];
    auto ask = [&](int64_t which, int to) {
        if (which < io.rows)
            kbki_ahead_row<T, Packs, Threads>(kbki_row + to * room, io.x + which * io.cols, t, packs);
        kbki_ahead_close();
    };
    auto weights = [&] {
        kbki_pack<T, Width> w, b;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            w.fill(0), b.fill(0);
            if (t + u * Threads < packs) w.load(io.w + (t + u * Threads) * Width);
            if (Layer && t + u * Threads < packs) b.load(io.b + (t + u * Threads) * Width);
            w.get(g[u]), b.get(h[u]);
        }
    };
#pragma unroll
    for (int i = 0; i < Stages; i++) ask(row + i * step, i);
    weights();
    for (int turn = 0; row < io.rows; row += step, slot = slot + 1 == Stages ? 0 : slot + 1, turn ^= 1) {
        float sum[4] = { 0, 0, 0, 0 }, square[4] = { 0, 0, 0, 0 };
        kbki_pack<T, Width> v[Packs];
        kbki_ahead_wait<Stages - 1>();
        kbki_ahead_take<T, Packs, Threads>(kbki_row + slot * room, t, packs, 0, v);
        ask(row + Stages * step, slot);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            v[u].get(f[u]);
#pragma unroll
            for (int k = 0; k < Width; k++) sum[k % 4] += f[u][k];
        }
        float first = 0;
        if (Layer) first = kbki_warp_all<kbki_sum<float>>((sum[0] + sum[1]) + (sum[2] + sum[3])) * each_n;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            const float from = t + u * Threads < packs ? first : 0;
#pragma unroll
            for (int k = 0; k < Width; k++) {
                if (Layer) f[u][k] -= from;
                square[k % 4] = fmaf(f[u][k], f[u][k], square[k % 4]);
            }
        }
        float2 s = make_float2(0, kbki_warp_all<kbki_sum<float>>((square[0] + square[1]) + (square[2] + square[3])));
        const float mean = kbki_warps_moments<Layer, Threads>(n, first, each, &s, slots[turn]);
        const float2 m = kbki_moments_by<Layer>(s, each);
        if (kbki_norm_near<T, Layer>(mean, m)) {
            kbki_norm_again<T, Layer, Width, Threads>(io, row, t, 0, packs, -1, mean, t == 0, [&](float2 s) {
                return kbki_all<kbki_sum2, Threads>(s, slots2);
            });
            weights(); // again, and so their registers are free in between
            continue;
        }
        const float shift = (first - mean) * m.y;
        T* y = io.y + row * io.cols + t * Width;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
#pragma unroll
            for (int k = 0; k < Width; k++) {
                const float xhat = Layer && Threads > 32 ? fmaf(f[u][k], m.y, shift) : f[u][k] * m.y;
                f[u][k] = Layer ? fmaf(xhat, g[u][k], h[u][k]) : xhat * g[u][k];
            }
            v[0].set(f[u]);
            if (t + u * Threads < packs) v[0].store(y + u * Threads * Width);
        }
        if (t == 0) io.stats(row, mean, m);
    }
}
template <class T, bool Layer, int Packs, int Threads, int Stages>
const char* held_norm(const kbk_args* a, kbk_stream st) {
    kbki_norm<T, Layer> io;
    const char* why = kbki_norm_args(a, 1, &io);
    if (why) return why;
    if (!kbki_norm_whole(io) || io.cols / KBKI_WIDTH(T) > Packs * Threads) return "not for this plan";
    auto kernel = held_norm_k<T, Layer, Packs, Threads, Stages>;
    size_t bytes = (size_t)Stages * Packs * KBKI_CTA(Threads) * 16;
    unsigned ctas = 0;
    why = kbki_resident(kernel, KBKI_CTA(Threads), bytes, kbki_ceil(io.rows, KBKI_ROWS(Threads)), &ctas);
    if (why || !ctas) return why ? why : "no room for this plan";
    kernel<<<ctas, KBKI_CTA(Threads), bytes, st>>>(io);
    return kbki_launched();
}

// How a row is read: like anything else; past the L1 cache, which is left to w and b; as what the L2 cache may let go
// of first, so that what is written stays there.
enum { PLAIN, PAST_L1, GO_FIRST };
__device__ __forceinline__ uint64_t go_first() {
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}
template <class T, int How>
__device__ __forceinline__ void take_x(kbki_pack<T, KBKI_WIDTH(T)>& v, const T* p, uint64_t policy) {
#if __CUDA_ARCH__ >= 800
    if (How == GO_FIRST) {
        asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.q.x), "=r"(v.q.y), "=r"(v.q.z), "=r"(v.q.w)
                     : "l"(p), "l"(policy)
                     : "memory");
        return;
    }
#endif
    if (How == PAST_L1)
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.q.x), "=r"(v.q.y), "=r"(v.q.z), "=r"(v.q.w)
                     : "l"(p)
                     : "memory");
    else
        v.load(p);
}
template <int How> __device__ __forceinline__ void ahead(uint4* to, const void* from, uint64_t policy) {
#if __CUDA_ARCH__ >= 800
    if (How == GO_FIRST) {
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(to)),
                     "l"(__cvta_generic_to_global(from)), "l"(policy)
                     : "memory");
        return;
    }
#endif
    kbki_ahead(to, from);
}
/*  Long rows, a CTA each, in registers, 16 bits. Ahead: how many packs of w and b are on their way; the first ones are
    asked for with the row. */
template <class T, bool Layer, int Packs, int Threads, int Ctas, int Ahead, int How>
__global__ void __launch_bounds__(Threads, Ctas) long_norm_k(kbki_norm<T, Layer> io) {
    __shared__ float4 slots[32];
    __shared__ float2 slots2[32];
    constexpr int Width = KBKI_WIDTH(T), Held = Ahead ? Ahead : 1;
    const int t = threadIdx.x, packs = (int)(io.cols / Width);
    const int64_t row = blockIdx.x;
    const T* x = io.x + row * io.cols + t * Width;
    const uint64_t policy = How == GO_FIRST ? go_first() : 0;
    kbki_pack<T, Width> v[Packs], w[Held], b[Held];
    float f[Width], sum = 0, n = 0, mean = 0;
    float2 s = make_float2(0, 0);
    auto weights = [&](int u) {
        if (u >= Packs || t + u * Threads >= packs) return;
        w[u % Held].load(io.w + (t + u * Threads) * Width);
        if (Layer) b[u % Held].load(io.b + (t + u * Threads) * Width);
    };
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].fill(0);
        if (t + u * Threads < packs) take_x<T, How>(v[u], x + u * Threads * Width, policy);
    }
#pragma unroll
    for (int u = 0; u < Ahead; u++) weights(u);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) sum += f[k];
        kbki_reread(v[u]);
    }
    if (Layer) { // a warp's elements, and their mean
        n = (float)((packs / Threads * 32 + min(max(packs % Threads - t / 32 * 32, 0), 32)) * Width);
        mean = n > 0 ? __fdividef(kbki_warp_all<kbki_sum<float>>(sum), n) : 0;
    }
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        float from = t + u * Threads < packs ? mean : 0;
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) s.y = fmaf(f[k] - from, f[k] - from, s.y);
        kbki_reread(v[u]);
    }
    s = make_float2(0, kbki_warp_all<kbki_sum<float>>(s.y));
    float each = kbki_reciprocal((float)io.cols);
    mean = kbki_warps_moments<Layer, Threads>(n, mean, each, &s, slots);
    float2 m = Layer ? kbki_moments_by<Layer>(s, each) : kbki_moments<Layer>(s, io.cols);
    if (kbki_norm_near<T, Layer>(mean, m)) {
        kbki_norm_again<T, Layer, Width, Threads>(io, row, t, 0, packs, -1, mean, t == 0,
                                                  [&](float2 s) { return kbki_all<kbki_sum2, Threads>(s, slots2); });
        return;
    }
    T* y = io.y + row * io.cols + t * Width;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        float g[Width], h[Width], shift = -mean * m.y;
        if (t + u * Threads >= packs) continue;
        if (!Ahead) weights(u);
        kbki_reread(v[u]);
        v[u].get(f), w[u % Held].get(g);
        if (Layer) b[u % Held].get(h);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = Layer ? fmaf(fmaf(f[k], m.y, shift), g[k], h[k]) : f[k] * m.y * g[k];
        v[u].set(f);
        if (Ahead) weights(u + Ahead);
        v[u].store(y + u * Threads * Width);
    }
    if (t == 0) io.stats(row, mean, m);
}
template <class T, bool Layer, int Packs, int Threads, int Ctas, int Ahead, int How>
const char* long_norm(const kbk_args* a, kbk_stream st) {
    kbki_norm<T, Layer> io;
    const char* why = kbki_norm_args(a, 1, &io);
    if (why) return why;
    if (!kbki_norm_whole(io) || io.cols / KBKI_WIDTH(T) > Packs * Threads) return "not for this plan";
    long_norm_k<T, Layer, Packs, Threads, Ctas, Ahead, How><<<(unsigned)io.rows, Threads, 0, st>>>(io);
    return kbki_launched();
}

/*  A CTA per row, the row in shared memory, where it costs no registers: six CTAs per SM, whose reads, arithmetic and
    writes mix. */
template <class T, bool Layer, int Packs, int Threads, int Ctas, int Ahead, int How>
__global__ void __launch_bounds__(Threads, Ctas) once_norm_k(kbki_norm<T, Layer> io) {
    extern __shared__ uint4 kbki_row[];
    __shared__ float4 slots[32];
    __shared__ float2 slots2[32];
    constexpr int Width = KBKI_WIDTH(T);
    const int t = threadIdx.x, packs = (int)(io.cols / Width);
    const int64_t row = blockIdx.x;
    const T* x = io.x + row * io.cols + t * Width;
    const uint64_t policy = How == GO_FIRST ? go_first() : 0;
    const uint4* ring = kbki_row + t;
    kbki_pack<T, Width> v, w[Ahead], b[Ahead];
    float f[Width], sum[2] = { 0, 0 }, square[2] = { 0, 0 };
    auto weights = [&](int u) {
        if (u >= Packs || t + u * Threads >= packs) return;
        w[u % Ahead].load(io.w + (t + u * Threads) * Width);
        if (Layer) b[u % Ahead].load(io.b + (t + u * Threads) * Width);
    };
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * Threads < packs) ahead<How>(kbki_row + u * Threads + t, x + u * Threads * Width, policy);
        if (u == Packs / 2 - 1) kbki_ahead_close();
    }
    kbki_ahead_close();
#pragma unroll
    for (int u = 0; u < Ahead; u++) weights(u);
    kbki_ahead_wait<1>();
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (u == Packs / 2) kbki_ahead_wait<0>();
        if (t + u * Threads >= packs) continue;
        kbki_from_shared(v.q, ring + u * Threads);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) sum[k % 2] += f[k];
    }
    float n = (float)((packs / Threads * 32 + min(max(packs % Threads - t / 32 * 32, 0), 32)) * Width), mean = 0;
    if (Layer) mean = n > 0 ? __fdividef(kbki_warp_all<kbki_sum<float>>(sum[0] + sum[1]), n) : 0;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * Threads >= packs) continue;
        kbki_from_shared(v.q, ring + u * Threads);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) square[k % 2] = fmaf(f[k] - mean, f[k] - mean, square[k % 2]);
    }
    float2 s = make_float2(0, kbki_warp_all<kbki_sum<float>>(square[0] + square[1]));
    float each = kbki_reciprocal((float)io.cols);
    mean = kbki_warps_moments<Layer, Threads>(n, mean, each, &s, slots);
    const float2 m = kbki_moments_by<Layer>(s, each);
    if (kbki_norm_near<T, Layer>(mean, m)) {
        kbki_norm_again<T, Layer, Width, Threads>(io, row, t, 0, packs, -1, mean, t == 0,
                                                  [&](float2 s) { return kbki_all<kbki_sum2, Threads>(s, slots2); });
        return;
    }
    T* y = io.y + row * io.cols + t * Width;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * Threads >= packs) continue;
        kbki_from_shared(v.q, ring + u * Threads);
        float g[Width], h[Width], shift = -mean * m.y;
        v.get(f), w[u % Ahead].get(g);
        if (Layer) b[u % Ahead].get(h);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = Layer ? fmaf(fmaf(f[k], m.y, shift), g[k], h[k]) : f[k] * m.y * g[k];
        v.set(f);
        weights(u + Ahead);
        v.store(y + u * Threads * Width);
    }
    if (t == 0) io.stats(row, mean, m);
}
template <class T, bool Layer, int Packs, int Threads, int Ctas, int Ahead, int How>
const char* once_norm(const kbk_args* a, kbk_stream st) {
    kbki_norm<T, Layer> io;
    const char* why = kbki_norm_args(a, 1, &io);
    if (why) return why;
    if (!kbki_norm_whole(io) || io.cols / KBKI_WIDTH(T) > Packs * Threads) return "not for this plan";
    auto kernel = once_norm_k<T, Layer, Packs, Threads, Ctas, Ahead, How>;
    size_t bytes = (size_t)Packs * Threads * 16;
    why = kbki_want_shared(kernel, &bytes);
    if (why || !bytes) return why ? why : "no room for this plan";
    kernel<<<(unsigned)io.rows, Threads, bytes, st>>>(io);
    return kbki_launched();
}

// Short rows of softmax, backward, a few of them per group of lanes.
template <class T, int Packs, int Lanes, int Rows, int Cta, int Ctas>
__global__ void __launch_bounds__(Cta, Ctas) short_dsoftmax_k(kbki_dsoftmax<T> io) {
    constexpr int Width = KBKI_WIDTH(T), Groups = 32 / Lanes;
    const int lane = threadIdx.x % Lanes, packs = (int)(io.cols / Width);
    const int64_t row =
        ((int64_t)blockIdx.x * (Cta / 32) + threadIdx.x / 32) * (Groups * Rows) + threadIdx.x % 32 / Lanes;
    kbki_pack<T, Width> dy[Rows][Packs], y[Rows][Packs];
#pragma unroll
    for (int r = 0; r < Rows; r++)
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            const int64_t at = (row + r * Groups) * io.cols + (lane + u * Lanes) * Width;
            dy[r][u].fill(0), y[r][u].fill(0);
            if (row + r * Groups < io.rows && lane + u * Lanes < packs)
                dy[r][u].load(io.dy + at), y[r][u].load(io.y + at);
        }
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        float f[Packs][Width], g[Packs][Width], dot = 0;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            dy[r][u].get(f[u]), y[r][u].get(g[u]);
#pragma unroll
            for (int k = 0; k < Width; k++) dot = fmaf(f[u][k], g[u][k], dot);
        }
        dot = kbki_warp_all<kbki_sum<float>, Lanes>(dot);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
#pragma unroll
            for (int k = 0; k < Width; k++) f[u][k] = g[u][k] * (f[u][k] - dot);
            dy[r][u].set(f[u]);
            if (row + r * Groups < io.rows && lane + u * Lanes < packs)
                dy[r][u].store(io.dx + (row + r * Groups) * io.cols + (lane + u * Lanes) * Width);
        }
    }
}
template <class T, int Packs, int Lanes, int Rows, int Cta, int Ctas>
const char* short_dsoftmax(const kbk_args* a, kbk_stream st) {
    kbki_dsoftmax<T> io;
    const char* why = kbki_dsoftmax_args(a, 1, &io);
    if (why) return why;
    if (!io.vector || !kbki_whole_packs<T>(io.dy, io.dx, io.cols) || io.cols / KBKI_WIDTH(T) > Packs * Lanes)
        return "not for this plan";
    short_dsoftmax_k<T, Packs, Lanes, Rows, Cta, Ctas>
        <<<(unsigned)kbki_ceil(io.rows, Cta / Lanes * Rows), Cta, 0, st>>>(io);
    return kbki_launched();
}

/*  A CTA per row, both rows in shared memory, where they cost no registers: three CTAs per SM, which the hardware hands
    the next row to as they get done. */
template <class T, int Packs, int Threads, int Ctas, int How>
__global__ void __launch_bounds__(Threads, Ctas) once_dsoftmax_k(kbki_dsoftmax<T> io) {
    extern __shared__ uint4 kbki_row[];
    __shared__ float slots[32];
    constexpr int Width = KBKI_WIDTH(T), room = Packs * Threads;
    const int t = threadIdx.x, packs = (int)(io.cols / Width);
    const int64_t at = blockIdx.x * io.cols;
    const uint64_t policy = How == GO_FIRST ? go_first() : 0;
    kbki_pack<T, Width> dy, y;
    float f[Width], g[Width], dot[2] = { 0, 0 };
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * Threads < packs) {
            ahead<How>(kbki_row + u * Threads + t, io.dy + at + (t + u * Threads) * Width, policy);
            ahead<How>(kbki_row + room + u * Threads + t, io.y + at + (t + u * Threads) * Width, policy);
        }
        if (u == Packs / 2 - 1) kbki_ahead_close();
    }
    kbki_ahead_close();
    kbki_ahead_wait<1>();
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (u == Packs / 2) kbki_ahead_wait<0>();
        if (t + u * Threads >= packs) continue;
        kbki_from_shared(dy.q, kbki_row + u * Threads + t), kbki_from_shared(y.q, kbki_row + room + u * Threads + t);
        dy.get(f), y.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) dot[k % 2] = fmaf(f[k], g[k], dot[k % 2]);
    }
    const float all = kbki_all<kbki_sum<float>, Threads>(dot[0] + dot[1], slots);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * Threads >= packs) continue;
        kbki_from_shared(dy.q, kbki_row + u * Threads + t), kbki_from_shared(y.q, kbki_row + room + u * Threads + t);
        dy.get(f), y.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = g[k] * (f[k] - all);
        dy.set(f);
        dy.store(io.dx + at + (t + u * Threads) * Width);
    }
}
template <class T, int Packs, int Threads, int Ctas, int How>
const char* once_dsoftmax(const kbk_args* a, kbk_stream st) {
    kbki_dsoftmax<T> io;
    const char* why = kbki_dsoftmax_args(a, 1, &io);
    if (why) return why;
    if (!io.vector || !kbki_whole_packs<T>(io.dy, io.dx, io.cols) || io.cols / KBKI_WIDTH(T) > Packs * Threads)
        return "not for this plan";
    auto kernel = once_dsoftmax_k<T, Packs, Threads, Ctas, How>;
    size_t bytes = (size_t)2 * Packs * Threads * 16;
    why = kbki_want_shared(kernel, &bytes);
    if (why || !bytes) return why ? why : "no room for this plan";
    kernel<<<(unsigned)io.rows, Threads, bytes, st>>>(io);
    return kbki_launched();
}
/*  The same through the bulk copy engine: one thread asks for both rows, in parts, each with a barrier of its own. */
template <class T, int Packs, int Threads, int Ctas>
__global__ void __launch_bounds__(Threads, Ctas) bulk_dsoftmax_k(kbki_dsoftmax<T> io) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 kbki_row[];
    __shared__ float slots[32];
    __shared__ uint64_t bars[Packs];
    constexpr int Width = KBKI_WIDTH(T), room = Packs * Threads;
    const int t = threadIdx.x, packs = (int)(io.cols / Width);
    const int64_t at = blockIdx.x * io.cols;
    kbki_pack<T, Width> dy, y;
    float f[Width], g[Width], dot[2] = { 0, 0 };
    if (t == 0) {
        for (int u = 0; u < Packs; u++) kbki_bar_init(&bars[u], 1);
        kbki_bar_ready();
        for (int u = 0; u < Packs; u++) {
            const int n = min(max(packs - u * Threads, 0), Threads) * 16;
            kbki_bar_expect(&bars[u], 2 * n);
            if (n) kbki_bulk_load(kbki_row + u * Threads, io.dy + at + u * Threads * Width, n, &bars[u]);
            if (n) kbki_bulk_load(kbki_row + room + u * Threads, io.y + at + u * Threads * Width, n, &bars[u]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * Threads >= packs) continue;
        kbki_bar_wait(&bars[u], 0);
        kbki_from_shared(dy.q, kbki_row + u * Threads + t), kbki_from_shared(y.q, kbki_row + room + u * Threads + t);
        dy.get(f), y.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) dot[k % 2] = fmaf(f[k], g[k], dot[k % 2]);
    }
    const float all = kbki_all<kbki_sum<float>, Threads>(dot[0] + dot[1], slots);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * Threads >= packs) continue;
        kbki_from_shared(dy.q, kbki_row + u * Threads + t), kbki_from_shared(y.q, kbki_row + room + u * Threads + t);
        dy.get(f), y.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = g[k] * (f[k] - all);
        dy.set(f);
        dy.store(io.dx + at + (t + u * Threads) * Width);
    }
#endif
}
template <class T, int Packs, int Threads, int Ctas> const char* bulk_dsoftmax(const kbk_args* a, kbk_stream st) {
    kbki_dsoftmax<T> io;
    const char* why = kbki_dsoftmax_args(a, 1, &io);
    if (why || (why = kbki_needs<90>()) != NULL) return why;
    if (!io.vector || !kbki_whole_packs<T>(io.dy, io.dx, io.cols) || io.cols / KBKI_WIDTH(T) > Packs * Threads)
        return "not for this plan";
    auto kernel = bulk_dsoftmax_k<T, Packs, Threads, Ctas>;
    size_t bytes = (size_t)2 * Packs * Threads * 16;
    why = kbki_want_shared(kernel, &bytes);
    if (why || !bytes) return why ? why : "no room for this plan";
    kernel<<<(unsigned)io.rows, Threads, bytes, st>>>(io);
    return kbki_launched();
}
template <class T, int Packs, int Threads> const char* onepass_dsoftmax(const kbk_args* a, kbk_stream st) {
    kbki_dsoftmax<T> io;
    const char* why = kbki_dsoftmax_args(a, 1, &io);
    if (why) return why;
    kbk_softmax_bwd_onepass_k<T, KBKI_WIDTH(T), Packs, Threads><<<(unsigned)io.rows, Threads, 0, st>>>(io);
    return kbki_launched();
}
template <class T, int Packs, int Threads> const char* onepass_softmax(const kbk_args* a, kbk_stream st) {
    kbki_xy<T> io;
    const char* why = kbki_xy_args(a, 1, &io);
    if (why) return why;
    kbk_softmax_fwd_onepass_k<T, KBKI_WIDTH(T), Packs, Threads, false>
        <<<(unsigned)io.rows, Threads, 0, st>>>(io.x, io.y, io.rows, io.cols);
    return kbki_launched();
}
// The kernel that goes through its rows in turn, with one row each.
template <class T, int Packs, int Threads> const char* turns_dsoftmax(const kbk_args* a, kbk_stream st) {
    kbki_dsoftmax<T> io;
    const char* why = kbki_dsoftmax_args(a, 1, &io);
    if (why) return why;
    auto kernel = kbk_softmax_bwd_shared_k<T, Packs, Threads, 1>;
    size_t bytes = (size_t)2 * Packs * Threads * 16;
    why = kbki_want_shared(kernel, &bytes);
    if (why || !bytes) return why ? why : "no room for this plan";
    kernel<<<(unsigned)io.rows, Threads, bytes, st>>>(io);
    return kbki_launched();
}

// --- what is timed

struct plan {
    const char* name;
    kbk_launch_fn launch;
    double graph, alone; // us
    cudaGraphExec_t ready;
    std::vector<double> rounds, singles;
};
struct contest {
    const char *op, *dir;
    int64_t rows, cols;
    std::vector<plan> plans;
};
#define PLAN(name, ...)                    \
    {                                      \
        name, __VA_ARGS__, 0, 0, 0, {}, {} \
    }
static std::vector<contest> contests() {
    return {
        { "layernorm",
          "fwd",
          65536,
          64,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>),
            PLAN("1 row a group", short_norm<bf16, true, 1, 8, 1, 128, 12>),
            PLAN("2 rows a group", short_norm<bf16, true, 1, 8, 2, 128, 10>),
            PLAN("4 rows a group", short_norm<bf16, true, 1, 8, 4, 128, 8>),
            PLAN("4 rows, 256 thr", short_norm<bf16, true, 1, 8, 4, 256, 4>),
            PLAN("8 rows a group", short_norm<bf16, true, 1, 8, 8, 128, 5>),
            PLAN("4 rows, 4 lanes", short_norm<bf16, true, 2, 4, 4, 128, 5>) } },
        { "rmsnorm",
          "fwd",
          65536,
          64,
          { PLAN("onepass", kbk_rmsnorm_fwd_onepass<bf16>),
            PLAN("2 rows a group", short_norm<bf16, false, 1, 8, 2, 128, 10>),
            PLAN("4 rows a group", short_norm<bf16, false, 1, 8, 4, 128, 8>) } },
        { "layernorm",
          "fwd",
          65536,
          256,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>),
            PLAN("1 row of 4 packs", short_norm<bf16, true, 4, 8, 1, 128, 6>),
            PLAN("4 rows of 1 pack", short_norm<bf16, true, 1, 32, 4, 128, 8>),
            PLAN("2 rows of 2 packs", short_norm<bf16, true, 2, 16, 2, 128, 6>) } },
        { "layernorm",
          "fwd",
          8192,
          1024,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>), PLAN("persist", kbk_layernorm_fwd_persist<bf16>),
            PLAN("floats held, 2", held_norm<bf16, true, 4, 32, 2>),
            PLAN("floats held, 4", held_norm<bf16, true, 4, 32, 4>),
            PLAN("128 thr a row", long_norm<bf16, true, 1, 128, 12, 1, PLAIN>),
            PLAN("64 thr a row", long_norm<bf16, true, 2, 64, 16, 2, PLAIN>),
            PLAN("1 row a warp", short_norm<bf16, true, 4, 32, 1, 128, 5>),
            PLAN("2 rows a warp", short_norm<bf16, true, 4, 32, 2, 128, 4>) } },
        { "rmsnorm",
          "fwd",
          8192,
          1024,
          { PLAN("onepass", kbk_rmsnorm_fwd_onepass<bf16>), PLAN("persist", kbk_rmsnorm_fwd_persist<bf16>),
            PLAN("floats held, 4", held_norm<bf16, false, 4, 32, 4>),
            PLAN("128 thr a row", long_norm<bf16, false, 1, 128, 12, 1, PLAIN>) } },
        { "layernorm",
          "fwd",
          8192,
          4096,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>), PLAN("persist", kbk_layernorm_fwd_persist<bf16>),
            PLAN("floats held, 4", held_norm<bf16, true, 4, 128, 4>),
            PLAN("w, b ahead, 128", long_norm<bf16, true, 4, 128, 8, 1, PLAIN>),
            PLAN("w, b ahead, 256", long_norm<bf16, true, 2, 256, 4, 2, PLAIN>) } },
        { "layernorm",
          "fwd",
          4096,
          16384,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>), PLAN("persist", kbk_layernorm_fwd_persist<bf16>),
            PLAN("cluster", kbk_layernorm_fwd_cluster<bf16>),
            PLAN("floats held, 4", held_norm<bf16, true, 4, 512, 4>),
            PLAN("floats held, 6", held_norm<bf16, true, 4, 512, 6>),
            PLAN("x past L1", long_norm<bf16, true, 8, 256, 4, 0, PAST_L1>),
            PLAN("w, b ahead", long_norm<bf16, true, 8, 256, 3, 2, PLAIN>),
            PLAN("w, b ahead, past L1", long_norm<bf16, true, 8, 256, 3, 2, PAST_L1>),
            PLAN("512 thr, ahead 1", long_norm<bf16, true, 4, 512, 2, 1, PLAIN>),
            PLAN("512 thr, ahead 2", long_norm<bf16, true, 4, 512, 2, 2, PAST_L1>),
            PLAN("1024 thr, ahead 2", long_norm<bf16, true, 2, 1024, 1, 2, PLAIN>),
            PLAN("ahead, go first", long_norm<bf16, true, 8, 256, 3, 2, GO_FIRST>),
            PLAN("memory, 6 x 256", once_norm<bf16, true, 8, 256, 6, 1, PLAIN>),
            PLAN("memory, 4 x 256", once_norm<bf16, true, 8, 256, 4, 2, PLAIN>),
            PLAN("memory, 3 x 512", once_norm<bf16, true, 4, 512, 3, 1, PLAIN>),
            PLAN("memory, go first", once_norm<bf16, true, 8, 256, 6, 1, GO_FIRST>) } },
        { "layernorm",
          "fwd",
          4096,
          32768,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>),
            PLAN("8 packs, 512 thr", long_norm<bf16, true, 8, 512, 2, 0, PLAIN>) } },
        { "softmax",
          "fwd",
          4096,
          32768,
          { PLAN("onepass", kbk_softmax_fwd_onepass<bf16>),
            PLAN("8 packs, 512 thr", onepass_softmax<bf16, 8, 512>) } },
        { "softmax",
          "bwd",
          65536,
          64,
          { PLAN("onepass", kbk_softmax_bwd_onepass<bf16>),
            PLAN("1 row a group", short_dsoftmax<bf16, 1, 8, 1, 128, 16>),
            PLAN("2 rows a group", short_dsoftmax<bf16, 1, 8, 2, 128, 12>),
            PLAN("4 rows a group", short_dsoftmax<bf16, 1, 8, 4, 128, 8>),
            PLAN("4 rows, 256 thr", short_dsoftmax<bf16, 1, 8, 4, 256, 4>) } },
        { "softmax",
          "bwd",
          65536,
          256,
          { PLAN("onepass", kbk_softmax_bwd_onepass<bf16>),
            PLAN("1 row of 4 packs", short_dsoftmax<bf16, 4, 8, 1, 128, 6>),
            PLAN("4 rows of 1 pack", short_dsoftmax<bf16, 1, 32, 4, 128, 6>),
            PLAN("2 rows of 1 pack", short_dsoftmax<bf16, 1, 32, 2, 128, 12>) } },
        { "softmax",
          "bwd",
          4096,
          16384,
          { PLAN("onepass", kbk_softmax_bwd_onepass<bf16>), PLAN("shared", kbk_softmax_bwd_shared<bf16>),
            PLAN("cluster", kbk_softmax_bwd_cluster<bf16>), PLAN("registers, 512", onepass_dsoftmax<bf16, 4, 512>),
            PLAN("registers, 256", onepass_dsoftmax<bf16, 8, 256>),
            PLAN("shared, a row", turns_dsoftmax<bf16, 4, 512>),
            PLAN("memory, 3 x 512", once_dsoftmax<bf16, 4, 512, 3, PLAIN>),
            PLAN("memory, 3 x 256", once_dsoftmax<bf16, 8, 256, 3, PLAIN>),
            PLAN("memory, 2 x 1024", once_dsoftmax<bf16, 2, 1024, 2, PLAIN>),
            PLAN("memory, go first", once_dsoftmax<bf16, 4, 512, 3, GO_FIRST>),
            PLAN("bulk, 3 x 512", bulk_dsoftmax<bf16, 4, 512, 3>),
            PLAN("bulk, 3 x 256", bulk_dsoftmax<bf16, 8, 256, 3>) } },
    };
}

// --- buffers: a set for each of so many launches, one after the other in one piece of memory

struct room {
    const kbk_op* op;
    kbk_shape s;
    kbk_tensor t[KBK_MAX_TENSORS];
    int tensors, sets;
    size_t set; // bytes
    char* at;
};
static size_t round_up(size_t n) { return (n + 255) / 256 * 256; }
static size_t bytes_of(const kbk_tensor& t) { return (size_t)t.count * kbk_kind_size(t.kind, KBK_BF16); }
static char* place(const room& r, int set, int tensor) {
    char* p = r.at + r.set * (set % r.sets);
    for (int i = 0; i < tensor; i++) p += round_up(bytes_of(r.t[i]));
    return p;
}
static kbk_args arguments(const room& r, int set) {
    kbk_args a = {};
    int in = 0, out = 0;
    a.s = r.s;
    for (int i = 0; i < r.tensors; i++)
        if (r.t[i].role == KBK_IN)
            a.in[in++] = place(r, set, i);
        else
            a.out[out++] = place(r, set, i);
    return a;
}
// Uniform numbers of [a, b) for y of a softmax, of [-2, 2) else.
__global__ void noise_k(bf16* x, int64_t n, float a, float b, uint32_t seed) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t h = ((uint32_t)i ^ (uint32_t)(i >> 32)) * 0x9E3779B1u + seed;
        h = (h ^ h >> 16) * 0x7FEB352Du, h = (h ^ h >> 15) * 0x846CA68Bu, h ^= h >> 16;
        x[i] = __float2bfloat16_rn(a + (b - a) * ((float)(h >> 8) * 0x1p-24f));
    }
}
// Each fourth row is the same number throughout, near which mean and deviation must be told apart.
__global__ void equal_k(bf16* x, int64_t rows, int64_t cols) {
    for (int64_t r = 4 * blockIdx.x; r < rows; r += 4 * gridDim.x)
        for (int64_t c = threadIdx.x; c < cols; c += blockDim.x)
            x[r * cols + c] = __float2bfloat16_rn(r % 8 ? 1000.0f : 3.0f + (c % 97 == 0));
}
__global__ void read_k(const uint4* p, int64_t n, unsigned* out) {
    unsigned all = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint4 v = p[i];
        all ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (all == 0x12345678u) *out = all; // so that nothing is left out
}
__global__ void empty_k() {}

static room prepare(const contest& c, size_t l2) {
    room r = {};
    r.op = kbk_find(c.op, c.dir, "naive")->op;
    r.s.rows = c.rows, r.s.cols = c.cols, r.s.batch = r.s.heads = 1, r.s.elem = 2;
    r.tensors = r.op->tensors(&r.s, r.t);
    for (int i = 0; i < r.tensors; i++) r.set += round_up(bytes_of(r.t[i]));
    r.sets = (int)std::min<size_t>(LAUNCHES, 3 * l2 / r.set + 2);
    CUDA(cudaMalloc((void**)&r.at, r.set * r.sets));
    for (int set = 0; set < r.sets; set++)
        for (int i = 0; i < r.tensors; i++) {
            const kbk_tensor& t = r.t[i];
            if (t.role != KBK_IN) continue;
            float a = t.fill == KBK_UNIFORM ? (float)t.a : -2, b = t.fill == KBK_UNIFORM ? (float)t.b : 2;
            noise_k<<<1024, 256, 0, stream>>>((bf16*)place(r, set, i), t.count, a, b, (uint32_t)(set * 97 + i));
        }
    CUDA(cudaStreamSynchronize(stream));
    return r;
}

// --- right or wrong: rows spread over the result, each against the oracle

static bool compare(const room& r, const char* name, int64_t row) {
    std::vector<std::vector<double>> in(8), out(2 * KBK_OUTS);
    const double* ins[8] = {};
    double* outs[2 * KBK_OUTS] = {};
    kbk_shape s = r.s;
    kbk_tensor t[KBK_MAX_TENSORS];
    std::vector<char> raw;
    int is = 0, os = 0, tensor = 0, n = 0;
    auto fetch = [&](int i) {
        int64_t per = r.t[i].per_unit ? r.t[i].per_unit : r.t[i].count, size = kbk_kind_size(r.t[i].kind, KBK_BF16);
        raw.resize((size_t)(per * size));
        CUDA(cudaMemcpy(raw.data(), place(r, 0, i) + (r.t[i].per_unit ? row * per * size : 0), raw.size(),
                        cudaMemcpyDeviceToHost));
        return per;
    };
    s.rows = 1;
    n = r.op->tensors(&s, t);
    for (int i = 0; i < n; i++) {
        std::vector<double>& v = t[i].role == KBK_IN ? in[is] : out[os];
        v.resize((size_t)(t[i].per_unit ? t[i].per_unit : t[i].count));
        if (t[i].role == KBK_IN)
            fetch(i), kbk_widen(t[i].kind, KBK_BF16, raw.data(), v.data(), (int64_t)v.size()), ins[is++] = v.data();
        else
            out[KBK_OUTS + os].resize(v.size()), outs[KBK_OUTS + os] = out[KBK_OUTS + os].data(),
                                                                 outs[os++] = v.data();
    }
    r.op->ref(&s, ins, outs, 0, 1);
    for (int k = 0; k < os; k++) {
        kbk_report report;
        for (tensor = 0; r.t[tensor].role == KBK_IN; tensor++) {}
        fetch(tensor + k);
        if (kbk_verify(r.op, KBK_BF16, &s, k, raw.data(), outs, 0, 1, &report)) continue;
        printf("FAIL: %s_%s %s, %lld x %lld, row %lld: %s (%s[%lld] = %.9g, oracle %.9g, allowed %.3g)\n", r.op->name,
               r.op->dir, name, (long long)r.s.rows, (long long)r.s.cols, (long long)row, report.why,
               r.t[tensor + k].name, (long long)report.index, report.got, report.want, report.bound);
        return false;
    }
    return true;
}
static bool check(const room& r, const plan& p) {
    kbk_args a = arguments(r, 0);
    for (int i = 0; i < r.tensors; i++)
        if (r.t[i].role != KBK_IN) CUDA(cudaMemsetAsync(place(r, 0, i), 0xFF, bytes_of(r.t[i]), stream));
    const char* why = p.launch(&a, stream);
    cudaError_t e = cudaStreamSynchronize(stream);
    bool good = !why && e == cudaSuccess;
    if (!good) printf("FAIL: %s_%s %s: %s\n", r.op->name, r.op->dir, p.name, why ? why : cudaGetErrorString(e));
    for (int k = 0; k < SAMPLES && good; k++) {
        int64_t row = k < 8 ? k : k < 16 ? r.s.rows - 16 + k : (int64_t)k * 2654435761u % r.s.rows;
        good = compare(r, p.name, row);
    }
    good ? passed++ : failed++;
    return good;
}

// --- times

static double median(std::vector<double> t) {
    std::sort(t.begin(), t.end());
    return t.empty() ? 0 : t.size() % 2 ? t[t.size() / 2] : 0.5 * (t[t.size() / 2 - 1] + t[t.size() / 2]);
}
static cudaGraphExec_t graph_of(const room& r, const plan& p) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < LAUNCHES; i++) {
        kbk_args a = arguments(r, i);
        p.launch(&a, stream);
    }
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&ready, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return ready;
}
struct clocks {
    cudaEvent_t a, b;
    char* clean; // 256 MiB to read
    unsigned* out;
};
static const size_t clean_bytes = (size_t)256 << 20;
template <class Work> static double timed(const clocks& c, bool cold, Work work) { // us
    float ms = 0;
    if (cold) read_k<<<1024, 256, 0, stream>>>((const uint4*)c.clean, (int64_t)(clean_bytes / 16), c.out);
    CUDA(cudaEventRecord(c.a, stream));
    work();
    CUDA(cudaEventRecord(c.b, stream));
    CUDA(cudaEventSynchronize(c.b));
    CUDA(cudaEventElapsedTime(&ms, c.a, c.b));
    return 1e3 * ms;
}
static void run(contest& c, const clocks& k, size_t l2, bool time) {
    room r = prepare(c, l2);
    const double floor = r.op->bytes(&r.s) / copy_rate;
    if (!strcmp(c.dir, "fwd")) equal_k<<<1024, 256, 0, stream>>>((bf16*)place(r, 0, 0), r.s.rows, r.s.cols);
    for (size_t i = 0; i < c.plans.size();)
        if (check(r, c.plans[i]))
            i++;
        else
            c.plans.erase(c.plans.begin() + (long)i); // a wrong one has no time
    if (!strcmp(c.dir, "fwd"))
        noise_k<<<1024, 256, 0, stream>>>((bf16*)place(r, 0, 0), r.t[0].count, -2.0f, 2.0f, 5u);
    for (plan& p : c.plans) p.ready = time ? graph_of(r, p) : NULL;
    for (int round = -1; time && round < ROUNDS; round++)
        for (plan& p : c.plans) {
            double t = timed(k, false, [&] { CUDA(cudaGraphLaunch(p.ready, stream)); }) / LAUNCHES;
            if (round >= 0) p.rounds.push_back(t);
        }
    for (int round = -1; time && round < ALONE; round++)
        for (plan& p : c.plans) {
            kbk_args a = arguments(r, round + 1);
            double t = timed(k, true, [&] { p.launch(&a, stream); });
            if (round >= 0) p.singles.push_back(t);
        }
    for (plan& p : c.plans) {
        if (!time) continue;
        CUDA(cudaGraphExecDestroy(p.ready));
        p.graph = median(p.rounds), p.alone = median(p.singles);
        printf("%-9s %s %6lld x %-6lld %-20s %9.2f %9.2f %6.3f\n", c.op, c.dir, (long long)c.rows, (long long)c.cols,
               p.name, p.graph, p.alone, floor / p.graph);
    }
    fflush(stdout);
    CUDA(cudaFree(r.at));
}

int main(int argc, char** argv) {
    bool time = true;
    const char* only = NULL;
    int devices = 0, l2 = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--check"))
            time = false;
        else if (!strcmp(argv[i], "--op") && i + 1 < argc)
            only = argv[++i];
        else
            return printf("usage: %s [--check] [--op layernorm|rmsnorm|softmax]\n", argv[0]), 2;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("SKIP: no GPU: the kernels were compiled and not run\n0 passed, 0 failed, 1 skipped\n");
        return 77;
    }
    clocks k;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
    CUDA(cudaEventCreate(&k.a)), CUDA(cudaEventCreate(&k.b));
    CUDA(cudaMalloc((void**)&k.clean, clean_bytes)), CUDA(cudaMalloc((void**)&k.out, 4));
    CUDA(cudaMemset(k.clean, 1, clean_bytes));
    std::vector<double> nothing;
    for (int i = 0; i < ALONE && time; i++)
        nothing.push_back(timed(k, true, [] { empty_k<<<1, 32, 0, stream>>>(); }));
    if (time)
        printf("op             rows x cols   plan                     graph     alone  floor      (empty: %.2f)\n",
               median(nothing));
    for (contest& c : contests())
        if (!only || !strcmp(only, c.op)) run(c, k, (size_t)l2, time);
    CUDA(cudaDeviceSynchronize());
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
