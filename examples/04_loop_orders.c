// SPDX-License-Identifier: MIT OR Unlicense
/*  Three orders of the same two loops, from the first cache to memory; for any laptop, no GPU.

    cc -O2 -I. examples/04_loop_orders.c -o 04_loop_orders -lm && ./04_loop_orders --html loop_orders.html

    Each function adds up the columns of a square matrix that lies in memory row by row. All read the same numbers, do
    the same additions and are held to the same result; only the order differs. What to look at:

    1. The smallest matrix (16 KiB) lies in the first cache, the next two in the second and third, the last one in
       memory. Where does which order begin to lose? The page shows it under "Over size", best in GB/s.
    2. down uses 4 of the 64 bytes of a line before others push it out; tiles takes all 16 columns of a line at once,
       and across never leaves the row. What is left of that where everything lies in the first cache?
    3. -a side=1000,1024: columns of rows of 4096 bytes fall into the same few sets of a cache, of 4000 they do not.
    4. Compiled with -O3 -march=native: orders that the compiler turns into vectors gain, the others do not.  */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "addons/kbench_report.h" // for --html

// One column after the other: neighbours in time are a row apart in memory.
static void sum_down(const float* x, float* y, int64_t side) {
    for (int64_t c = 0; c < side; c++) {
        float sum = 0;
        for (int64_t r = 0; r < side; r++) sum += x[r * side + c];
        y[c] = sum;
    }
}

// One row after the other, as it lies in memory; the sums are written and read again for each.
static void sum_across(const float* x, float* y, int64_t side) {
    for (int64_t c = 0; c < side; c++) y[c] = 0;
    for (int64_t r = 0; r < side; r++)
        for (int64_t c = 0; c < side; c++) y[c] += x[r * side + c];
}

// Down, but 16 columns together: all of a line of 64 bytes while it is there.
static void sum_tiles(const float* x, float* y, int64_t side) {
    enum { WIDE = 16 };
    int64_t c = 0;
    for (; c + WIDE <= side; c += WIDE) {
        float sum[WIDE] = { 0 };
        for (int64_t r = 0; r < side; r++)
            for (int k = 0; k < WIDE; k++) sum[k] += x[r * side + c + k];
        for (int k = 0; k < WIDE; k++) y[c + k] = sum[k];
    }
    for (; c < side; c++) { // what is left of a row that is no multiple of 16
        y[c] = 0;
        for (int64_t r = 0; r < side; r++) y[c] += x[r * side + c];
    }
}

// All but the order, so that each has the same data, the same amounts and the same check.
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
    kb_check(kb, y, want, side, 1e-7 * (double)side); // each addition rounds once
}

#define SIDES KB_AXIS("side", 64, 256, 1024, 3072)
KBENCH_IMPL(column_sums, down, SIDES) { bench(kb, sum_down); }
KBENCH_IMPL(column_sums, across, SIDES) { bench(kb, sum_across); }
KBENCH_IMPL(column_sums, tiles, SIDES) { bench(kb, sum_tiles); }
KBENCH_MAIN()
