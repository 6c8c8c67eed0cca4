// SPDX-License-Identifier: MIT OR Unlicense
// Implementations that run on shared buffers: each finds its own data at the same addresses.
#include <stdio.h>
#include <stdlib.h>
#include "kbench.h"

enum { N = 3000 };

// Each implementation writes its own number into its results, and reports the address of its data.
static void rival(kb_state* kb, float own, bool more, bool from_elsewhere) {
    float *x = KB_ALLOC(kb, float, N), *y = KB_ALLOC(kb, float, N), *brought = NULL;
    if (more) KB_ALLOC(kb, char, 100000);
    if (from_elsewhere) brought = (float*)malloc(N * sizeof(float));
    kb_fill(kb, x, N, KB_NORMAL);
    KB_TIME(kb) {
        for (int i = 0; i < N; i++) y[i] = own + x[i];
        kb_keep(y);
    }
    float* want = KB_ALLOC_HOST(kb, float, N);
    for (int i = 0; want && i < N; i++) want[i] = own + x[i];
    if (want) kb_check(kb, y, want, N, 0);
    fprintf(stderr, "%s %s %p %p\n", kb->operation, kb->implementation, (void*)x, (void*)y);
    free(brought);
}
KBENCH_IMPL(same, one) { rival(kb, 1, false, false); }
KBENCH_IMPL(same, two) { rival(kb, 2, true, false); }
KBENCH_IMPL(same, three) { rival(kb, 3, false, true); }

// allocates one more buffer in its second call than in its first, so it gets memory outside the shared buffers
KBENCH_IMPL(grows, steady) { rival(kb, 1, false, false); }
KBENCH_IMPL(grows, later) {
    static int calls;
    rival(kb, 2, calls++ > 0, false);
}
KBENCH_MAIN()
