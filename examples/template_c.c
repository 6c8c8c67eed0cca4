// SPDX-License-Identifier: MIT OR Unlicense
/*  A C function. Copy this file and kbench.h into a folder, and change the lines marked "yours".

    cc -O2 template_c.c -o template_c -lm && ./template_c                                                     */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

static void square(const float* x, float* y, int64_t n) { // <- yours: the function
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];   // <- yours
}

KBENCH(square, KB_AXIS("n", 1 << 10, 1 << 20)) { // <- yours: its name in the table; the sizes, or none
    int64_t n = kb_int(kb, "n");                 // <- yours
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n); // <- yours: freed for you
    double* want = KB_ALLOC_HOST(kb, double, n);
    if (!x || !y || !want) return; // without memory the case gets a word, OOM, and no time
    kb_fill(kb, x, n, KB_NORMAL);  // <- yours: what is in it
    KB_TIME(kb) {
        square(x, y, n); // <- yours: the call
        kb_keep(y);      // <- yours: its result, or the compiler leaves out what nobody reads
    }
    kb_bytes(kb, 2.0 * sizeof(float) * (double)n); // <- yours: what has to be read and written; kb_flops likewise

    for (int64_t i = 0; i < n; i++) want[i] = (double)x[i] * x[i]; // <- yours: what is right, plainly
    kb_check(kb, y, want, n, 1e-6); // |y - want| <= 1e-6 * (1 + |want|), or there is no time
}
KBENCH_MAIN()
