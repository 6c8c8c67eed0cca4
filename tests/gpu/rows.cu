// SPDX-License-Identifier: MIT OR Unlicense
/* Measures row operations of the library. At some of these shapes, compiled code was faster than an earlier
   version of the library; others are similar shapes. The shapes in bf16 are layernorm fwd at 65536 x 64, 8192 x
   1024 and 4096 x 16384, and softmax bwd at 65536 x 64 and 4096 x 16384. Each result is first compared with the
   oracle, on sampled rows.

   nvcc -std=c++17 -O2 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/rows.cu -o rows && ./rows [OPTION...]

       --check        only correctness; --quick does the same
       --sanitize     only correctness, for compute-sanitizer: a few of the rows
       --op NAME      only layernorm, rmsnorm, softmax or cross_entropy

   Why the library uses these configurations:
       cross entropy            a CTA per row of 1024 leaves most threads idle: forward, backward and both took 132, 58
                                and 352 us at 32768 rows, on rotating buffers. A warp per row, four vectors per lane,
                                takes 18, 35 and 36. Two vectors for each of 64 threads take 23 us forward, one for
                                each of 128 takes 28: fewer vectors share the shuffles and the work per row.
       cross entropy 65536 x 128    8 lanes per row: 7.6, 11.4 and 13.9 us; a CTA took 229, 94 and 688.

   Columns: us per launch, in a graph of 20 launches on buffers that rotate through more than three times the L2 cache;
   us of a single launch between events, after reading 256 MiB of other data (the first line has the time of an empty
   kernel); and the lower bound, bytes over 4276 GB/s, as a share of the first column. Medians of interleaved rounds of
   all configurations. Exit code 0, 1 after failures, 77 without a GPU. */
#define KBK_TYPES bf16
#define KBK_ONLY layernorm, rmsnorm, softmax, cross_entropy
#include "kbench_kernels.cuh"
#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

typedef __nv_bfloat16 bf16;
enum { LAUNCHES = 20, ROUNDS = 15, ALONE = 21, SAMPLES = 40 };
static const double copy_rate = 4276e3; // bytes per us, of a copy of 4 GiB on an H200
static int passed, failed;
static bool sanitize; // option
static cudaStream_t stream;

static void cuda(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    printf("FAIL: %s: %s\n%d passed, %d failed, 0 skipped\n", what, cudaGetErrorString(e), passed, failed + 1);
    exit(1);
}
#define CUDA(call) cuda((call), #call)

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
// Launch functions of cross entropy: forward, backward, and both in one kernel.
static void ce_contests(int64_t rows, int64_t cols, std::vector<contest>* to) {
    contest fwd = { "cross_entropy", "fwd", rows, cols, { PLAN("unroll", kbk_cross_entropy_fwd_unroll<bf16>) } };
    contest bwd = { "cross_entropy", "bwd", rows, cols, { PLAN("unroll", kbk_cross_entropy_bwd_unroll<bf16>) } };
    contest both = { "cross_entropy", "fwdbwd", rows, cols, { PLAN("fused", kbk_cross_entropy_fwdbwd_fused<bf16>) } };
    to->push_back(fwd), to->push_back(bwd), to->push_back(both);
}
static std::vector<contest> contests() {
    std::vector<contest> all = {
        { "layernorm", "fwd", 65536, 64, { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>) } },
        { "layernorm", "fwd", 65536, 256, { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>) } },
        { "layernorm",
          "fwd",
          8192,
          1024,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>), PLAN("persist", kbk_layernorm_fwd_persist<bf16>) } },
        { "layernorm",
          "fwd",
          8192,
          4096,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>), PLAN("persist", kbk_layernorm_fwd_persist<bf16>) } },
        { "layernorm", "fwd", 8192, 8192, { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>) } },
        { "layernorm",
          "fwd",
          4096,
          16384,
          { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>), PLAN("persist", kbk_layernorm_fwd_persist<bf16>) } },
        { "layernorm", "fwd", 4096, 32768, { PLAN("onepass", kbk_layernorm_fwd_onepass<bf16>) } },
        { "rmsnorm", "fwd", 65536, 64, { PLAN("onepass", kbk_rmsnorm_fwd_onepass<bf16>) } },
        { "rmsnorm",
          "fwd",
          8192,
          1024,
          { PLAN("onepass", kbk_rmsnorm_fwd_onepass<bf16>), PLAN("persist", kbk_rmsnorm_fwd_persist<bf16>) } },
        { "rmsnorm",
          "fwd",
          8192,
          4096,
          { PLAN("onepass", kbk_rmsnorm_fwd_onepass<bf16>), PLAN("persist", kbk_rmsnorm_fwd_persist<bf16>) } },
        { "rmsnorm",
          "fwd",
          4096,
          16384,
          { PLAN("onepass", kbk_rmsnorm_fwd_onepass<bf16>), PLAN("persist", kbk_rmsnorm_fwd_persist<bf16>) } },
        { "softmax", "fwd", 4096, 32768, { PLAN("onepass", kbk_softmax_fwd_onepass<bf16>) } },
        { "softmax", "bwd", 65536, 64, { PLAN("onepass", kbk_softmax_bwd_onepass<bf16>) } },
        { "softmax",
          "bwd",
          4096,
          16384,
          { PLAN("onepass", kbk_softmax_bwd_onepass<bf16>), PLAN("shared", kbk_softmax_bwd_shared<bf16>) } },
    };
    ce_contests(512, 1024, &all), ce_contests(8192, 1024, &all), ce_contests(32768, 1024, &all);
    ce_contests(65536, 128, &all), ce_contests(32768, 1001, &all), ce_contests(16384, 8192, &all);
    return all;
}

// --- buffers: one set per launch, one after the other in one allocation

struct room {
    const kbk_op* op;
    kbk_shape s;
    kbk_tensor t[KBK_MAX_TENSORS] = {};
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
__device__ void put(bf16* x, float v, float) { *x = __float2bfloat16_rn(v); }
__device__ void put(float* x, float v, float) { *x = v; }
__device__ void put(int* x, float v, float b) { *x = min((int)v, (int)b - 1); }
// Fills with uniform numbers: in [a, b) for targets and for y of softmax, otherwise in [-2, 2).
template <class V> __global__ void noise_k(V* x, int64_t n, float a, float b, uint32_t seed) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t h = ((uint32_t)i ^ (uint32_t)(i >> 32)) * 0x9E3779B1u + seed;
        h = (h ^ h >> 16) * 0x7FEB352Du, h = (h ^ h >> 15) * 0x846CA68Bu, h ^= h >> 16;
        put(x + i, a + (b - a) * ((float)(h >> 8) * 0x1p-24f), b);
    }
}
// Makes every fourth row constant or nearly constant, so that the deviation must be computed from differences to
// the mean. Half of the other rows begin with a number far from all later numbers.
__global__ void unusual_k(bf16* x, int64_t rows, int64_t cols) {
    for (int64_t r = 4 * blockIdx.x; r < rows; r += 4 * gridDim.x) {
        for (int64_t c = threadIdx.x; c < cols; c += blockDim.x)
            x[r * cols + c] = __float2bfloat16_rn(r % 8 ? 1000.0f : 3.0f + (c % 97 == 0));
        if (threadIdx.x == 0 && r + 2 < rows) x[(r + 2) * cols] = __float2bfloat16_rn(r % 8 ? 1000.0f : -64.0f);
    }
}
// Masks rows of cross entropy completely or partly, and sets ignored and invalid targets.
__global__ void masked_k(bf16* x, int* t, int64_t rows, int64_t cols) {
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        for (int64_t c = threadIdx.x; c < cols && r % 4 == 0; c += blockDim.x)
            if (r % 8 == 0 || c % 3) x[r * cols + c] = __float2bfloat16_rn(r % 8 ? -INFINITY : -1e30f);
        if (threadIdx.x == 0 && r % 4 == 2) t[r] = r % 8 == 2 ? KBK_IGNORE : (int)cols;
    }
}
__global__ void read_k(const uint4* p, int64_t n, unsigned* out) {
    unsigned all = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        uint4 v = p[i];
        all ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (all == 0x12345678u) *out = all; // so that every case is covered
}
__global__ void empty_k() {}

static room prepare(const contest& c, size_t l2) {
    room r = {};
    r.op = kbk_find_op(c.op, c.dir);
    r.s.rows = sanitize ? c.rows / 64 + 3 : c.rows, r.s.cols = c.cols, r.s.batch = r.s.heads = 1;
    r.tensors = r.op->tensors(&r.s, r.t);
    for (int i = 0; i < r.tensors; i++) r.set += round_up(bytes_of(r.t[i]));
    r.sets = sanitize ? 1 : (int)std::min<size_t>(LAUNCHES, 3 * l2 / r.set + 2);
    CUDA(cudaMalloc((void**)&r.at, r.set * r.sets));
    for (int set = 0; set < r.sets; set++)
        for (int i = 0; i < r.tensors; i++) {
            const kbk_tensor& t = r.t[i];
            if (t.role != KBK_IN) continue;
            const bool range = t.fill == KBK_UNIFORM || t.fill == KBK_IDS;
            const float a = range ? (float)t.a : -2, b = range ? (float)t.b : 2;
            const uint32_t seed = (uint32_t)(set * 97 + i);
            void* at = place(r, set, i);
            if (kbk_kind_whole(t.kind))
                noise_k<<<1024, 256, 0, stream>>>((int*)at, t.count, a, b, seed);
            else if (t.kind == KBK_KF32) // the log-sum-exp, or factors of the gradients
                noise_k<<<1024, 256, 0, stream>>>((float*)at, t.count, 6.0f, 8.0f, seed);
            else
                noise_k<<<1024, 256, 0, stream>>>((bf16*)at, t.count, a, b, seed);
        }
    CUDA(cudaStreamSynchronize(stream));
    return r;
}

// --- correctness: rows spread over the result, eight at a time, against the oracle

enum { TOGETHER = 8 }; // rows compared together: the norm of the error over a single row would need a wider bound
static bool compare(const room& r, const char* name, int64_t row) {
    std::vector<std::vector<double>> in(8), out(2 * KBK_OUTS);
    const double* ins[8] = {};
    double* outs[2 * KBK_OUTS] = {};
    kbk_shape s = r.s;
    kbk_tensor t[KBK_MAX_TENSORS] = {};
    std::vector<char> raw;
    int is = 0, os = 0, tensor = 0, n = 0;
    auto fetch = [&](int i) {
        int64_t size = kbk_kind_size(r.t[i].kind, KBK_BF16);
        raw.resize((size_t)(t[i].count * size));
        CUDA(cudaMemcpy(raw.data(), place(r, 0, i) + row * t[i].per_unit * size, raw.size(), cudaMemcpyDeviceToHost));
    };
    s.rows = TOGETHER;
    n = r.op->tensors(&s, t);
    for (int i = 0; i < n; i++) {
        std::vector<double>& v = t[i].role == KBK_IN ? in[is] : out[os];
        v.resize((size_t)t[i].count);
        if (t[i].role == KBK_IN)
            fetch(i), kbk_widen(t[i].kind, KBK_BF16, raw.data(), v.data(), (int64_t)v.size()), ins[is++] = v.data();
        else
            out[KBK_OUTS + os].resize(v.size()), outs[KBK_OUTS + os] = out[KBK_OUTS + os].data(),
                                                                 outs[os++] = v.data();
    }
    r.op->ref(&s, 2, ins, outs, 0, TOGETHER);
    for (int k = 0; k < os; k++) {
        kbk_report report;
        for (tensor = 0; r.t[tensor].role == KBK_IN; tensor++) {}
        fetch(tensor + k);
        if (kbk_verify(r.op, KBK_BF16, &s, k, raw.data(), outs, 0, TOGETHER, &report)) continue;
        printf("FAIL: %s_%s %s, %lld x %lld, rows from %lld: %s (%s[%lld] = %.9g, oracle %.9g, allowed %.3g)\n",
               r.op->name, r.op->dir, name, (long long)r.s.rows, (long long)r.s.cols, (long long)row, report.why,
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
    for (int k = 0; k < (sanitize ? 2 : SAMPLES / TOGETHER) && good; k++) {
        int64_t last = r.s.rows - TOGETHER;
        good = compare(r, p.name, k == 0 ? 0 : k == 1 ? last : (int64_t)k * 2654435761u % (last + 1));
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
    const double floor = r.op->bytes(&r.s, 2) / copy_rate;
    const bool ce = !strcmp(c.op, "cross_entropy");
    if (ce)
        masked_k<<<1024, 256, 0, stream>>>((bf16*)place(r, 0, 0), (int*)place(r, 0, 1), r.s.rows, r.s.cols);
    else if (!strcmp(c.dir, "fwd"))
        unusual_k<<<1024, 256, 0, stream>>>((bf16*)place(r, 0, 0), r.s.rows, r.s.cols);
    for (size_t i = 0; i < c.plans.size();)
        if (check(r, c.plans[i]))
            i++;
        else
            c.plans.erase(c.plans.begin() + (long)i); // a configuration with wrong results is not timed
    if (ce || !strcmp(c.dir, "fwd"))
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
        printf("%-13s %-6s %6lld x %-6lld %-20s %9.2f %9.2f %6.3f\n", c.op, c.dir, (long long)c.rows,
               (long long)c.cols, p.name, p.graph, p.alone, floor / p.graph);
    }
    fflush(stdout);
    CUDA(cudaFree(r.at));
}

int main(int argc, char** argv) {
    bool time = true;
    const char* only = NULL;
    int devices = 0, l2 = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--check") || !strcmp(argv[i], "--quick"))
            time = false;
        else if (!strcmp(argv[i], "--sanitize"))
            sanitize = true, time = false;
        else if (!strcmp(argv[i], "--op") && i + 1 < argc)
            only = argv[++i];
        else
            return printf("usage: %s [--check] [--quick] [--sanitize] [--op NAME]\n", argv[0]), 2;
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
        printf(
            "op                      rows x cols   plan                     graph     alone  floor   (empty: %.2f)\n",
            median(nothing));
    for (contest& c : contests())
        if (!only || !strcmp(only, c.op)) run(c, k, (size_t)l2, time);
    CUDA(cudaDeviceSynchronize());
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
