// SPDX-License-Identifier: MIT OR Unlicense
/*  A lesson on caches for any computer, without a GPU: three orders of the same two loops.

    cc -O2 -I. examples/04_loop_orders.c -o 04_loop_orders -lm && ./04_loop_orders --html loop_orders.html

    Each function computes the sum of every column of a square matrix that is stored in row-major order. All functions
    read the same numbers, perform the same additions and must return the same result. Only the loop order differs.
    Experiments:

    1. On a typical CPU, the smallest matrix (16 KiB) fits in the L1 cache, the second in L2, the third in L3, and the
       fourth only in memory. At which size does each order become slow? See the GB/s plots in "Over size" on the page.
    2. "down" uses 4 of the 64 bytes of a cache line before the line is evicted. "tiles" uses all 16 columns of a
       cache line at once. "across" reads each row from start to end. How large is the difference if the matrix
       fits in L1?
    3. Run with -a side=1000,1024. With rows of 4096 bytes, the elements of a column map to few sets of the cache
       and evict each other (conflict misses). With rows of 4000 bytes, the elements of a column map to many sets.
    4. Compile with -O3 -march=native. Only the loops that the compiler vectorises become faster.   */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "addons/kbench_report.h" // for --html

// Sums one column after another. Consecutive reads are one row apart in memory.
static void sum_down(const float* x, float* y, int64_t side) {
    for (int64_t c = 0; c < side; c++) {
        float sum = 0;
        for (int64_t r = 0; r < side; r++) sum += x[r * side + c];
        y[c] = sum;
    }
}

// Adds one row after another to the sums, in memory order. Adding a row reads and writes all sums.
static void sum_across(const float* x, float* y, int64_t side) {
    for (int64_t c = 0; c < side; c++) y[c] = 0;
    for (int64_t r = 0; r < side; r++)
        for (int64_t c = 0; c < side; c++) y[c] += x[r * side + c];
}

// Like "down", but sums 16 columns at a time (loop tiling). All 64 bytes of a cache line are used while the line
// is in the cache.
static void sum_tiles(const float* x, float* y, int64_t side) {
    enum { WIDE = 16 };
    int64_t c = 0;
    for (; c + WIDE <= side; c += WIDE) {
        float sum[WIDE] = { 0 };
        for (int64_t r = 0; r < side; r++)
            for (int k = 0; k < WIDE; k++) sum[k] += x[r * side + c + k];
        for (int k = 0; k < WIDE; k++) y[c + k] = sum[k];
    }
    for (; c < side; c++) { // the remaining columns, if side is not a multiple of 16
        y[c] = 0;
        for (int64_t r = 0; r < side; r++) y[c] += x[r * side + c];
    }
}

// All three orders get the same data, byte counts and check.
static void bench(kb_state* kb, void (*sums)(const float* x, float* y, int64_t side)) {
    int64_t side = kb_int(kb, "side");
    float *x = KB_ALLOC(kb, float, side*side), *y = KB_ALLOC(kb, float, side);
    double* want = KB_ALLOC_HOST(kb, double, side);
    if (!x || !y || !want) return;
    kb_fill(kb, x, side * side, KB_UNIFORM);
    KB_TIME(kb) {
        sums(x, y, side);
        kb_keep(y);
    }
    kb_bytes_as(kb, sizeof(float) * (double)side * (double)side, KB_READ);
    kb_flops(kb, (double)side * (double)side);

    for (int64_t c = 0; c < side; c++) want[c] = 0;
    for (int64_t i = 0; i < side * side; i++) want[i % side] += x[i];
    kb_check(kb, y, want, side, 1e-7 * (double)side); // the rounding error grows with the number of additions
}

#define SIDES KB_AXIS("side", 64, 256, 1024, 3072)
KBENCH_IMPL(column_sums, down, SIDES) { bench(kb, sum_down); }
KBENCH_IMPL(column_sums, across, SIDES) { bench(kb, sum_across); }
KBENCH_IMPL(column_sums, tiles, SIDES) { bench(kb, sum_tiles); }
KBENCH_MAIN()
