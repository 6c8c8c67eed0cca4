// SPDX-License-Identifier: MIT OR Unlicense
// The implementation and a main function. -DLATE: the user's headers come first, so that kbench.h cannot request POSIX
// any more. -DWITHOUT_ADDONS: only kbench.h. -DOWN_MALLOC: kbench must use own_malloc, own_realloc and own_free
// for all its memory.
#ifdef LATE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#endif
#ifdef OWN_MALLOC
#include <stdlib.h>
static long own_calls, own_live;
static void* own_malloc(size_t bytes) { return ++own_calls, ++own_live, malloc(bytes); }
static void* own_realloc(void* p, size_t bytes) { return ++own_calls, own_live += !p, realloc(p, bytes); }
static void own_free(void* p) { own_live -= !!p, free(p); }
#define KBENCH_MALLOC(bytes) own_malloc(bytes)
#ifndef ONLY_MALLOC
#define KBENCH_REALLOC(p, bytes) own_realloc(p, bytes)
#define KBENCH_FREE(p) own_free(p)
#endif
#endif
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#ifndef WITHOUT_ADDONS
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#endif
#include <stdio.h>

static double sink;
KBENCH(sum) {
    int n = 1000;
    float* x = KB_ALLOC(kb, float, n);
    kb_fill(kb, x, n, KB_UNIFORM);
    KB_TIME(kb) {
        double s = 0;
        for (int i = 0; i < n; ++i) s += x[i];
        kb_keep(s);
        sink = s;
    }
    kb_bytes(kb, 4.0 * n);
    kb_check_that(kb, sink > 400 && sink < 600, sink - 500, 100, "sum is %g", sink);
}

int main(int argc, char** argv) {
    int rc = kb_main(argc, argv);
#ifdef OWN_MALLOC
    if (own_calls == 0) printf("own malloc was not used\n"), rc = 1;
    if (own_live != 0) fprintf(stderr, "own malloc: %ld blocks were not freed\n", own_live);
#endif
    return rc;
}
