// SPDX-License-Identifier: MIT OR Unlicense
/*  Compares your kernel with a kernel of kbench_kernels.cuh (the library) and with cuBLAS.

    make kernels                                compiles the library once (minutes) and builds this program
    nvcc -O3 -arch=native -I. examples/05_against_library.cu build/kbench_kernels.o build/kbench.o -o 05_against_library

    KBK_API_ONLY declares the functions of kbench_kernels.cuh without its kernels, and kbench.h is included without
    KBENCH_IMPLEMENTATION. The library and kbench are linked as objects, so this file compiles about as fast
    as a file with the kernel alone. After a change of your kernel, only the nvcc command is needed.

    All implementations get the same shapes, data and check. The first implementation is the baseline.    */
#define KBK_API_ONLY
#include "kbench.h"
#include "kbench_kernels.cuh"

// C = A B, all row-major, sizes are multiples of 32. Your kernel computes a 32 x 32 tile per CTA.
__global__ void matmul_mine(const float* a, const float* b, float* c, int n, int k) {
    __shared__ float tile_a[32][32], tile_b[32][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
    float sum = 0;
    for (int start = 0; start < k; start += 32) {
        tile_a[y][x] = a[(size_t)row * k + start + x];
        tile_b[y][x] = b[(size_t)(start + y) * n + col];
        __syncthreads();
        for (int i = 0; i < 32; i++) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[(size_t)row * n + col] = sum;
}

static double dot(const float* a, const float* b, int64_t n, int64_t k) { // a row of A times a column of B
    double sum = 0;
    for (int64_t i = 0; i < k; i++) sum += (double)a[i] * b[i * n];
    return sum;
}

// variant: the name of a matmul kernel of the library, or NULL for matmul_mine
static void bench(kb_state* kb, const char* variant) {
    int64_t m = kb_int(kb, "M"), n = kb_int(kb, "N"), k = kb_int(kb, "K");
    float *a = KB_ALLOC(kb, float, m * k), *b = KB_ALLOC(kb, float, k * n), *c = KB_ALLOC(kb, float, m * n);
    kb_fill(kb, a, m * k, KB_NORMAL);
    kb_fill(kb, b, k * n, KB_NORMAL);
    float *host_a = kb_host(kb, a), *host_b = kb_host(kb, b);
    kbk_args args = {};
    args.s.batch = args.s.heads = 1;
    args.s.rows = m, args.s.cols = n, args.s.k = k, args.s.layout = KBK_NN;
    args.in[0] = a, args.in[1] = b, args.out[0] = c;
    int library = variant ? kbk_row_find("matmul", "fwd", variant) : -1;
    if (variant && library < 0) {
        kb_skip(kb, "the library was built without this variant");
        return;
    }
    args.workspace_bytes = variant ? (size_t)kbk_row_workspace(library, &args.s, sizeof(float)) : 0;
    if (args.workspace_bytes) args.workspace = KB_ALLOC(kb, char, (int64_t)args.workspace_bytes);
    const char* why = NULL; // error message if the library launched nothing
    KB_TIME(kb) {
        if (variant)
            why = kbk_row_launch(library, KBK_F32, &args, -1, kb->stream);
        else
            matmul_mine<<<dim3((unsigned)n / 32, (unsigned)m / 32), dim3(32, 32), 0, kb->stream>>>(a, b, c, (int)n,
                                                                                                   (int)k);
    }
    if (why) kb_skip(kb, "%s", why);
    kb_flops_as(kb, 2.0 * (double)m * (double)n * (double)k, KB_F32);
    for (int64_t row = 1; row <= m; row += m / 16) // checks 16 rows: the CPU would take minutes for all of C
        KB_CHECK_EACH(kb, c + (row - 1) * n, n, j, dot(host_a + (row - 1) * k, host_b + j, n, k), 1e-4);
}

#define SHAPES KB_SIZE("small", "M=512 N=512 K=512"), KB_SIZE("large", "M=2048 N=2048 K=2048")
KBENCH_IMPL(matmul, mine, SHAPES) { bench(kb, NULL); }
KBENCH_IMPL(matmul, warptile, SHAPES) { bench(kb, "warptile"); }
KBENCH_IMPL(matmul, cublas, SHAPES) { bench(kb, "cublas"); }
KBENCH_MAIN()
