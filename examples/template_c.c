// SPDX-License-Identifier: MIT OR Unlicense
/*  A C function. Copy this file and kbench.h into a folder, and change the lines marked "yours".

    cc -O2 template_c.c -o template_c -lm && ./template_c                                                     */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

static void square(const float* x, float* y, int64_t n) { // <- yours: the function
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];   // <- yours
}

KBENCH(square, KB_AXIS("n", 1 << 10, 1 << 20)) { // <- yours: name of the operation; axis of sizes, if any
    int64_t n = kb_int(kb, "n");                 // <- yours
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n); // <- yours: buffers; kbench frees them
    if (!x || !y) return;         // out of memory: the case is reported as OOM
    kb_fill(kb, x, n, KB_NORMAL); // <- yours: the input
    float* in = kb_host(kb, x);   // a copy of the input, for the check
    KB_TIME(kb) {
        square(x, y, n); // <- yours: the call
        kb_keep(y);      // <- yours: the result. Without kb_keep, the compiler would remove the call as unused
    }
    kb_bytes(kb, 2.0 * sizeof(float) * (double)n); // <- yours: bytes to read and write; kb_flops for arithmetic
    // <- yours: the right value of each y[i]. The time is withheld unless |y[i] - want| <= 1e-6 * (1 + |want|).
    KB_CHECK_EACH(kb, y, n, i, (double)in[i] * in[i], 1e-6);
}
KBENCH_MAIN()
