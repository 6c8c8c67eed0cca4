// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks for all figures of a report: implementations swept along two axes, a wrong implementation, and an
// operation with a single implementation.
#include "kbench.h"

static void scale(kb_state* kb, int64_t step) {
    int64_t n = kb_int(kb, "rows") * kb_int(kb, "cols");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    if (!x || !y) return;
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME(kb) {
        for (int64_t from = 0; from < step; from++)
            for (int64_t i = from; i < n; i += step) y[i] = 2 * x[i];
        kb_keep(y);
    }
    kb_bytes(kb, 8.0 * (double)n);
    kb_flops(kb, (double)n);
}
#define SIZES KB_DTYPE("f32"), KB_AXIS("rows", 4, 16, 64), KB_AXIS("cols", 64, 256, 1024)
KBENCH_IMPL(scale, strided, SIZES) { scale(kb, 16); }
KBENCH_IMPL(scale, plain, SIZES) { scale(kb, 1); }

KBENCH(wrong) {
    float y[1] = { 1 }, want[1] = { 2 };
    KB_TIME(kb) { kb_keep(y); }
    kb_check(kb, y, want, 1, 1e-6);
}
KBENCH(alone) {
    KB_TIME(kb) {
        for (int i = 0; i < 100; i++) kb_keep(kb);
    }
}
KBENCH_MAIN()
