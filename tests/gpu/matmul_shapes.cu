// SPDX-License-Identifier: MIT OR Unlicense
/* Compares the times of the matmul variant `select` with the times of cuBLAS, in bf16. kbench measures both
   functions with a cold L2 cache, on shapes drawn from a seed. Prints the ratio of the two times for each shape,
   the geometric mean of the ratios, and the worst ratio. The program also checks that `select` and cuBLAS compute
   equal products.

   nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -I. tests/gpu/matmul_shapes.cu -o matmul_shapes
   ./matmul_shapes [OPTION...]          (-ldl on an old glibc)

       --seed N      draws other shapes; by default the time of day
       --shapes N    number of random shapes, each in layouts NN, NT and TN; 18
       --projections shapes of linear layers of public models instead, layout NT, M drawn from 1 to 4096
       --tune        tunes each shape first (kbk_tune), and also times the configuration that the model chooses
                     (column "of the guess"). Fails if the tuned one is more than 3 % slower
       --max-time S  seconds of samples per implementation; 0.1
       --quick       2 random shapes, tuned
       --sanitize    for compute-sanitizer: does nothing

   Exit code 0, 1 after a failure, 77 without a GPU of compute capability 9.0 or without cuBLAS. */
#define KBENCH_IMPLEMENTATION
#ifndef KBK_CUBLAS
#define KBK_CUBLAS
#endif
#define KBK_ONLY matmul
#define KBK_TYPES bf16
#define KBK_VARIANTS select, cublas
#include "kbench.h"
#include "kbench_kernels.cuh"
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <time.h>
#include <unistd.h>

typedef __nv_bfloat16 bf16;
static const int64_t pool = (int64_t)96 << 20; // elements
static uint64_t state;                         // of SplitMix64 (Steele, Lea & Flood 2014)
static uint64_t draw(uint64_t below) {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u, z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}
__global__ void fill_k(bf16* p, int64_t n, uint64_t seed) {
    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u + seed;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u, z = (z ^ z >> 27) * 0x94D049BB133111EBu, z ^= z >> 31;
        float sum = 0; // sum of four uniform numbers: nearly normal
        for (int e = 0; e < 64; e += 16) sum += (float)(z >> e & 0xFFFF) / 65536 - 0.5f;
        p[i] = __float2bfloat16(1.7f * sum);
    }
}
// Counts elements of x and y that differ by more than the rounding to bf16 plus the error of f32 sums in another
// order.
__global__ void compare_k(const bf16* x, const bf16* y, int64_t n, float tolerance, unsigned long long* bad) {
    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float u = __bfloat162float(x[i]), v = __bfloat162float(y[i]);
        if (!(fabsf(u - v) <= tolerance + fabsf(v) / 64)) atomicAdd(bad, 1);
    }
}
static void must(cudaError_t e) {
    if (e == cudaSuccess) return;
    printf("CUDA: %s\n", cudaGetErrorString(e));
    exit(1);
}

static kbk_args args;
static unsigned long long* bad;
static bf16* other;
static const char* why;
static void library(kb_stream stream, void* user) { why = kbk_launch((const kbk_variant*)user, KBK_BF16, &args, stream); }

int main(int argc, char** argv) {
    const kbk_variant *select = kbk_find("matmul", "fwd", "select"), *cublas = kbk_find("matmul", "fwd", "cublas");
    static const int layers[][2] = { { 1024, 1024 },  { 1024, 4096 }, { 4096, 1024 },  { 768, 768 },    { 3072, 768 },
                                     { 768, 3072 },   { 2304, 768 },  { 6144, 4096 },  { 4096, 4096 },  { 14336, 4096 },
                                     { 4096, 14336 }, { 5120, 5120 }, { 1536, 8960 } };
    bool tune = false, projections = false;
    int shapes = 18, failed = 0, many = 0;
    double max_time = 0.1, sum = 0, worst = INFINITY, guess_sum = 0;
    state = (uint64_t)time(NULL);
    for (int i = 1; i < argc; i++) {
        std::string option = argv[i];
        if (option == "--tune")
            tune = true;
        else if (option == "--projections")
            projections = true;
        else if (option == "--quick")
            shapes = 2, tune = true;
        else if (option == "--sanitize")
            return printf("SKIP: measures time\n"), 77;
        else if (option == "--seed" && i + 1 < argc)
            state = strtoull(argv[++i], NULL, 10);
        else if (option == "--shapes" && i + 1 < argc)
            shapes = atoi(argv[++i]);
        else if (option == "--max-time" && i + 1 < argc)
            max_time = atof(argv[++i]);
        else
            return printf("usage: %s [--seed N] [--shapes N] [--projections] [--tune] [--max-time S] [--quick]\n", argv[0]), 2;
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices || kbki_needs_hopper())
        return printf("SKIP: no GPU of compute capability 9.0\n"), 77;
    printf("seed %llu\n%22s %10s %10s  ratio%s\n", (unsigned long long)state, "M N K", "select us", "cuBLAS us",
           tune ? "  of the guess" : "");
    bf16 *a, *b, *c;
    must(cudaMalloc((void**)&a, pool * 2)), must(cudaMalloc((void**)&b, pool * 2)), must(cudaMalloc((void**)&c, pool * 2));
    must(cudaMalloc((void**)&other, pool * 2)), must(cudaMallocManaged((void**)&bad, sizeof *bad));
    fill_k<<<1024, 256>>>(a, pool, 1), fill_k<<<1024, 256>>>(b, pool, 2);
    args.workspace_bytes = (size_t)512 << 20, args.s.batch = args.s.heads = 1, args.in[0] = a, args.in[1] = b;
    must(cudaMalloc(&args.workspace, args.workspace_bytes)), must(cudaMemset(args.workspace, 0, KBK_TICKETS));
    const int total = projections ? 39 : 3 * shapes;
    for (int i = 0; i < total; i++) {
        kbk_shape& s = args.s;
        if (projections) {
            static const int rows[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 };
            s.rows = rows[draw(13)], s.cols = layers[i / 3][0], s.k = layers[i / 3][1], s.layout = KBK_NT;
        } else {
            if (i % 3 == 0) s.rows = 8 + 8 * draw(640), s.cols = 8 + 8 * draw(640), s.k = 8 + 8 * draw(640);
            s.layout = i % 3;
        }
        char name[64];
        static const char* const layouts[] = { "NN", "NT", "TN" };
        snprintf(name, sizeof name, "%lldx%lldx%lld %s", (long long)s.rows, (long long)s.cols, (long long)s.k,
                 layouts[s.layout]);
        args.out[0] = other;
        if ((why = kbk_launch(cublas, KBK_BF16, &args, NULL)) != NULL) return printf("SKIP: %s\n", why), 77;
        args.out[0] = c;
        kbk_candidate guess = { select, KBK_BF16, &args, {}, "guess", NULL };
        kbki_wg_choose(&s, 2, 1, kbki_sms(), &guess.choice.by, 1);
        if (tune) why = kbk_tune(select, KBK_BF16, &args, kbk_clock_kbench, NULL);
        if (tune && why) printf("%s: %s\n", name, why);
        must(cudaMemset(c, 0xFF, s.rows * s.cols * 2));
        library(NULL, (void*)select), *bad = 0;
        if (why) return printf("FAIL: %s: %s\n", name, why), 1;
        compare_k<<<528, 256>>>(c, other, s.rows * s.cols, 0.01f * sqrtf((float)s.k), bad);
        must(cudaDeviceSynchronize());
        if (*bad) failed++, printf("FAIL: %s: %llu elements differ from cuBLAS\n", name, *bad);
        kb_desc descs[3] = {};
        const char* const names[] = { "select", "cublas", "guess" };
        for (int k = 0; k < 3; k++) descs[k].name = name, descs[k].implementation = names[k], descs[k].max_time = max_time;
        kb_function fns[] = { library, library, kbk_candidate_launch };
        void* users[] = { (void*)select, (void*)cublas, &guess };
        kb_result r[3];
        int n = tune && !why ? 3 : 2;
        if (!kb_compare(descs, fns, users, n, r)) failed++, printf("FAIL: %s: %s\n", name, r[0].message ? r[0].message : "");
        double ratio = r[1].time_ms / r[0].time_ms, gain = n == 3 ? r[2].time_ms / r[0].time_ms : 1;
        printf("%22s %10.2f %10.2f  %.3f", name, 1e3 * r[0].time_ms, 1e3 * r[1].time_ms, ratio);
        if (n == 3) printf("  %.3f", gain);
        printf("\n"), fflush(stdout);
        if (gain < 0.97)
            failed++, printf("FAIL: %s: the tuned configuration is slower than the choice of the model\n", name);
        if (ratio > 0) sum += log(ratio), guess_sum += log(ratio / gain), many++, worst = ratio < worst ? ratio : worst;
        for (int k = 0; k < n; k++) kb_result_free(&r[k]);
    }
    printf("%d shapes: geometric mean %.3f, worst %.3f", many, exp(sum / many), worst);
    if (tune) printf("; without tuning %.3f", exp(guess_sum / many));
    printf("\n");
    return failed != 0;
}
