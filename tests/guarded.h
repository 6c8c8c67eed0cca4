// SPDX-License-Identifier: MIT OR Unlicense
/* guarded.h - guarded memory for kbench.h, for builds without a sanitizer. Include it before kbench.h. Blocks have
   exactly the requested size, are filled with NaN, and are followed by guard bytes. A write past the end, a double
   free, or a use after free ends the process with SIGABRT, at the latest at exit. */
#ifndef KBENCH_TEST_GUARDED_H
#define KBENCH_TEST_GUARDED_H

#ifndef TEST_SANITIZE // a sanitizer detects more errors
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARDED_ALIVE = 0x600d, GUARDED_FREED = 0xdead, GUARDED_BYTES = 32, GUARDED_FILL = 0xa5 };
typedef struct guarded {
    struct guarded *before, *after;
    size_t size, state; // a multiple of 16
} guarded;
static guarded guarded_all = { &guarded_all, &guarded_all, 0, GUARDED_ALIVE };

static void guarded_check(const guarded* g) {
    const unsigned char* end = (const unsigned char*)(g + 1) + g->size;
    const char* wrong = g->state == GUARDED_ALIVE ? NULL : "was freed twice, or was never allocated";
    for (int i = 0; !wrong && g != &guarded_all && i < GUARDED_BYTES; i++)
        if (end[i] != GUARDED_FILL) wrong = "was written past its end";
    if (!wrong) return;
    fprintf(stderr, "guarded.h: a block of %zu bytes %s\n", g->size, wrong);
    abort();
}

static void guarded_check_all(void) {
    for (guarded* g = guarded_all.after; g != &guarded_all; g = g->after) guarded_check(g);
}

static void* guarded_malloc(size_t n) {
    guarded* g = (guarded*)malloc(sizeof *g + n + GUARDED_BYTES);
    if (!g) return NULL;
    if (guarded_all.after == &guarded_all) atexit(guarded_check_all);
    g->size = n, g->state = GUARDED_ALIVE;
    g->before = &guarded_all, g->after = guarded_all.after;
    g->after->before = guarded_all.after = g;
    memset(g + 1, GUARDED_FILL, n < 65536 ? n : 65536);
    memset((unsigned char*)(g + 1) + n, GUARDED_FILL, GUARDED_BYTES);
    return g + 1;
}

static void guarded_free(void* p) {
    if (!p) return;
    guarded* g = (guarded*)p - 1;
    guarded_check(g);
    g->before->after = g->after, g->after->before = g->before;
    g->state = GUARDED_FREED;
    memset(p, GUARDED_FILL, g->size < 65536 ? g->size : 65536);
    free(g);
}

static void* guarded_realloc(void* p, size_t n) { // always moves
    void* q = guarded_malloc(n);
    if (q && p) memcpy(q, p, ((guarded*)p - 1)->size < n ? ((guarded*)p - 1)->size : n);
    if (q) guarded_free(p);
    return q;
}

#define KBENCH_MALLOC(bytes) guarded_malloc(bytes)
#define KBENCH_REALLOC(p, bytes) guarded_realloc(p, bytes)
#define KBENCH_FREE(p) guarded_free(p)
#endif

#endif
