// SPDX-License-Identifier: MIT OR Unlicense
/*  Two implementations of one operation: checked, timed and compared.

    nvcc -O3 -I. examples/03_compare.cu -o 03_compare && ./03_compare

    KBENCH_IMPL names the operation and the implementation. The first implementation is the baseline; the table
    shows the speedups of the other implementations over the baseline. Both implementations get the same shapes,
    data and check, because both call the function bench. A wrong implementation is reported as VERIFY_FAIL
    instead of a time. To see VERIFY_FAIL, change the 1.0f below.

    Columns: "time" is the median time of a launch with a cold cache, and "+-" is half the width of its 95 % confidence
    interval. "roof" is the bandwidth in percent of the copy bandwidth of this GPU, which kbench measures first.    */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <math.h>

// One thread per row. Not coalesced: neighbouring threads read addresses that are cols elements apart.
__global__ void sums_naive(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = 0; c < cols; c++) sum += 1.0f * x[(size_t)row * cols + c];
    y[row] = sum;
}

// One warp per row. Coalesced: neighbouring lanes read neighbouring elements. A warp shuffle reduction adds the
// sums of the lanes.
__global__ void sums_warp(const float* x, float* y, int rows, int cols) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int c = lane; c < cols; c += 32) sum += x[(size_t)row * cols + c];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane == 0) y[row] = sum;
}

static double sum(const float* x, int cols) {
    double all = 0;
    for (int c = 0; c < cols; c++) all += x[c];
    return all;
}

typedef void (*row_sums)(const float* x, float* y, int rows, int cols);

// The benchmark function of both implementations. threads_per_row: 1 or 32.
static void bench(kb_state* kb, row_sums kernel, int threads_per_row) {
    int rows = (int)kb_int(kb, "rows"), cols = (int)kb_int(kb, "cols");
    int64_t n = (int64_t)rows * cols;
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, rows);
    kb_fill(kb, x, n, KB_UNIFORM);
    float* hx = kb_host(kb, x);
    int blocks = (int)(((int64_t)rows * threads_per_row + 255) / 256);
    KB_TIME(kb) { kernel<<<blocks, 256, 0, kb->stream>>>(x, y, rows, cols); }
    kb_bytes(kb, sizeof(float) * ((double)n + rows));
    kb_flops(kb, (double)n);
    KB_CHECK_EACH(kb, y, rows, r, sum(hx + r * cols, cols), 1e-5);
}

#define SHAPES KB_AXIS("rows", 1024, 16384), KB_AXIS("cols", 1000, 4096)
KBENCH_IMPL(row_sums, naive, SHAPES) { bench(kb, sums_naive, 1); }
KBENCH_IMPL(row_sums, warp, SHAPES) { bench(kb, sums_warp, 32); }
KBENCH_MAIN()
