// SPDX-License-Identifier: MIT OR Unlicense
// Correct and wrong uses of kb_host and KB_CHECK_EACH, for check_each.sh.
#include "kbench.h"

enum { N = 1000 };
static void halve(kb_state* kb, const float* x, float* y, int64_t n) {
    KB_TIME(kb) {
        for (int64_t i = 0; i < n; i++) y[i] = 0.5f * x[i];
        kb_keep(y);
    }
}
static void checked(kb_state* kb, double factor) {
    float *x = KB_ALLOC(kb, float, N), *y = KB_ALLOC(kb, float, N);
    if (!x || !y) return;
    kb_fill(kb, x, N, KB_NORMAL);
    float* hx = kb_host(kb, x);
    halve(kb, x, y, N);
    KB_CHECK_EACH(kb, y, N, i, factor * hx[i], 1e-6);
}
KBENCH(right) { checked(kb, 0.5); }
KBENCH(wrong) { checked(kb, 0.25); }
KBENCH(in_place) {
    float* x = KB_ALLOC(kb, float, N);
    if (!x) return;
    kb_fill(kb, x, N, KB_UNIFORM);
    float* hx = kb_host(kb, x);
    KB_SAMPLE(kb) {
        kb_from_host(kb, x, hx, sizeof(float) * N);
        KB_TIME(kb) {
            for (int i = 0; i < N; i++) x[i] *= 2;
            kb_keep(x);
        }
    }
    KB_CHECK_EACH(kb, x, N, i, 2.0 * hx[i], 1e-6);
}
KBENCH(from_the_middle) {
    const float* x = KB_ALLOC(kb, float, N);
    float* y = KB_ALLOC(kb, float, N);
    if (!x || !y) return;
    kb_fill(kb, (float*)x, N, KB_IOTA);
    const float* tail = kb_host(kb, x + 900);
    halve(kb, x, y, N);
    KB_CHECK_EACH(kb, y + 900, 100, j, tail[j] / 2.0, 0);
}
KBENCH(empty) {
    float *x = KB_ALLOC(kb, float, 0), *y = KB_ALLOC(kb, float, N);
    if (!x || !y) return;
    float* hx = kb_host(kb, x);
    halve(kb, y, y, N);
    KB_CHECK_EACH(kb, x, 0, i, hx[i], 0);
}
KBENCH(null) {
    float* y = KB_ALLOC(kb, float, N);
    if (!y) return;
    float* hx = kb_host(kb, (float*)NULL);
    halve(kb, y, y, N);
    KB_CHECK_EACH(kb, y, N, i, 0.5 * hx[i], 1e-6); // would crash if the expression were evaluated
}
KBENCH(foreign) {
    static float own[N];
    float* y = KB_ALLOC(kb, float, N);
    if (!y) return;
    float* hx = kb_host(kb, own);
    halve(kb, own, y, N);
    KB_CHECK_EACH(kb, y, N, i, 0.5 * hx[i], 1e-6);
}
KBENCH(before) {
    float *x = KB_ALLOC(kb, float, N), *y = KB_ALLOC(kb, float, N);
    if (!x || !y) return;
    kb_fill(kb, x, N, KB_NORMAL);
    KB_CHECK_EACH(kb, y, N, i, 0.5 * x[i], 1e-6);
    halve(kb, x, y, N);
}
KBENCH(in_the_block) {
    float *x = KB_ALLOC(kb, float, N), *y = KB_ALLOC(kb, float, N);
    if (!x || !y) return;
    kb_fill(kb, x, N, KB_NORMAL);
    KB_TIME(kb) {
        y[0] = 0.5f * kb_host(kb, x)[0];
        kb_keep(y);
    }
}
KBENCH_MAIN()
