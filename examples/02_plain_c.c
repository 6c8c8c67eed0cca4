// SPDX-License-Identifier: MIT OR Unlicense
/*  Benchmarks in plain C, without a GPU. KB_TIME times the code between its braces with the host's clock. KB_TIME
    runs short code many times per sample, so it times functions from ten nanoseconds to ten milliseconds.

    cc -O2 -I. examples/02_plain_c.c -o 02_plain_c -lm && ./02_plain_c

    memcpy is swept over the axis "bytes"; `./02_plain_c -a bytes=4096:16777216:*4` sweeps another range. --json FILE
    saves the records. --fast measures each case for 0.2 s instead of 1 s.                                    */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <math.h>
#include <string.h>

KBENCH_IMPL(memcpy, libc, KB_AXIS("bytes", 1 << 10, 1 << 16, 1 << 22)) {
    int64_t n = kb_int(kb, "bytes");
    char *from = KB_ALLOC(kb, char, n), *to = KB_ALLOC(kb, char, n);
    kb_fill(kb, from, n, KB_UNIFORM);
    KB_TIME(kb) {
        memcpy(to, from, (size_t)n);
        kb_keep(to); // without kb_keep, the compiler removes the call, because nothing reads the result
    }
    kb_bytes(kb, 2.0 * (double)n);
    kb_check(kb, to, from, n, 0);
}

KBENCH(hypot) {
    volatile double x = 3, y = 4; // otherwise the compiler computes hypot(3, 4) in advance
    double z = 0;
    KB_TIME(kb) {
        z = hypot(x, y);
        kb_keep(z);
    }
    kb_check_that(kb, z == 5, fabs(z - 5), 0, "hypot(3, 4) is %g", z);
}

// A sort changes its input, so the untimed part of KB_SAMPLE copies the unsorted input before each timed run.
KBENCH(insertion_sort) {
    enum { N = 256 };
    float *unsorted = KB_ALLOC(kb, float, N), *x = KB_ALLOC(kb, float, N);
    kb_fill(kb, unsorted, N, KB_NORMAL);
    KB_SAMPLE(kb) {
        memcpy(x, unsorted, sizeof(float) * N);
        KB_TIME(kb) {
            for (int i = 1; i < N; i++)
                for (int j = i; j > 0 && x[j - 1] > x[j]; j--) {
                    float swap = x[j];
                    x[j] = x[j - 1];
                    x[j - 1] = swap;
                }
            kb_keep(x);
        }
    }
    int wrong = 0;
    for (int i = 1; x && i < N; i++) wrong += !(x[i - 1] <= x[i]);
    kb_check_that(kb, wrong == 0, wrong, 0, "%d pairs out of order", wrong);
}
KBENCH_MAIN()
