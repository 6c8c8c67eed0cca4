// SPDX-License-Identifier: MIT OR Unlicense
// Implementations on the CPU whose difference is known. Each operation has four identical implementations
// ("same_0", the baseline, to "same_3") and one that takes 5 % longer because of an additional chain of
// multiplications. The functions move memory, reduce, multiply, count and gather, on buffers of 4 KiB to 16 MiB,
// in 0.5 us to a few ms.
#include <math.h>
#include <string.h>
#include <time.h>
#include "kbench.h"

#define ALONE __attribute__((noinline, aligned(64)))

// --- the kernels: each returns its last value, so that a later computation can depend on it ---

ALONE static float axpy_k(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = 0.5f * x[i] + 1.0f;
    return y[n - 1];
}

ALONE static float sums_k(const float* x, float* y, int64_t n) { // rows of 64
    for (int64_t row = 0; row < n / 64; row++) {
        float sum = 0;
        for (int64_t i = 0; i < 64; i++) sum += x[row * 64 + i];
        y[row] = sum;
    }
    return y[n / 64 - 1];
}

ALONE static float product_k(const float* x, float* y, int64_t n) { // y = x x, n by n
    for (int64_t row = 0; row < n; row++) {
        for (int64_t c = 0; c < n; c++) y[row * n + c] = 0;
        for (int64_t k = 0; k < n; k++)
            for (int64_t c = 0; c < n; c++) y[row * n + c] += x[row * n + k] * x[k * n + c];
    }
    return y[n * n - 1];
}

ALONE static float histogram_k(const int32_t* x, int32_t* bins, int64_t n) {
    for (int64_t i = 0; i < n; i++) bins[x[i] & 1023]++;
    return (float)bins[x[n - 1] & 1023];
}

ALONE static float gather_k(const int32_t* x, const float* from, float* y, int64_t n) {
    int64_t table = 1;
    while (2 * table <= n) table *= 2;
    for (int64_t i = 0; i < n; i++) y[i] = from[x[i] & (table - 1)];
    return y[n - 1];
}

// --- 5 % more ---

ALONE static uint64_t chain(uint64_t x, int64_t steps) {
    for (int64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ __volatile__("" : "+r"(x));
    }
    return x;
}

typedef struct work {
    int op;
    int64_t n;
    const void *x, *from;
    void* y;
} work;

// The kernel depends on `after`, and the steps depend on the kernel's last value, so neither can overlap the
// other.
ALONE static uint64_t turn(const work* w, uint64_t after, int64_t steps) {
    uint64_t zero = 0;
    __asm__ __volatile__("" : "+r"(zero));
    int64_t n = w->n;
    const char* x = (const char*)w->x + (after & zero);
    float last = w->op == 0   ? axpy_k((const float*)x, (float*)w->y, n)
                 : w->op == 1 ? sums_k((const float*)x, (float*)w->y, n)
                 : w->op == 2 ? product_k((const float*)x, (float*)w->y, n)
                 : w->op == 3 ? histogram_k((const int32_t*)x, (int32_t*)w->y, n)
                              : gather_k((const int32_t*)x, (const float*)w->from, (float*)w->y, n);
    uint32_t bits;
    memcpy(&bits, &last, sizeof bits);
    return chain(bits, steps);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Returns the time of a run in ns, or of the multiplications alone if w is NULL. The minimum of 15 batches
// excludes disturbances by other programs.
static double turn_ns(const work* w, int64_t steps) {
    double least = INFINITY;
    int64_t batch = 1;
    for (int i = 0; i < 15;) {
        uint64_t after = 0;
        double began = seconds();
        for (int64_t k = 0; k < batch; k++) after = w ? turn(w, after, steps) : chain(after, steps);
        double took = 1e9 * (seconds() - began);
        if (took < 5e4 && i == 0) {
            batch *= 2;
        } else {
            least = fmin(least, took / (double)batch);
            i++;
        }
    }
    return least;
}

static int64_t steps_for(const work* w, double share) {
    return (int64_t)(share * turn_ns(w, 0) / (turn_ns(NULL, 20000) / 20000) + 0.5);
}

static void rival(kb_state* kb, int op, double share) {
    int64_t n = kb_int(kb, "n"), elements = op == 2 ? n * n : n;
    work w = { op, n, KB_ALLOC(kb, float, elements), NULL, NULL };
    if (op == 4) w.from = KB_ALLOC(kb, float, elements);
    w.y = KB_ALLOC(kb, float, op == 3 ? 1024 : elements);
    if (op == 3 || op == 4)
        kb_fill(kb, (int32_t*)w.x, elements, KB_UNIFORM);
    else
        kb_fill(kb, (float*)w.x, elements, KB_NORMAL);
    if (op == 3) kb_fill(kb, (int32_t*)w.y, 1024, KB_ZERO);
    if (op == 4) kb_fill(kb, (float*)w.from, elements, KB_NORMAL);
    if (!w.x || !w.y) return;
    int64_t steps = share > 0 ? steps_for(&w, share) : 0;
    uint64_t after = 0;
    KB_TIME_HOST(kb) { after = turn(&w, after, steps); }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

#define SIZES                                                                                                       \
    KB_AXIS("n", 1 << 10, 1 << 11, 1 << 12, 3 << 11, 1 << 13, 1 << 14, 1 << 15, 3 << 14, 1 << 16, 1 << 17, 1 << 18, \
            1 << 19, 1 << 20, 1 << 22)
#define TABLES                                                                                                     \
    KB_AXIS("n", 1 << 10, 3 << 9, 1 << 11, 3 << 10, 1 << 12, 1 << 13, 1 << 14, 3 << 13, 1 << 15, 1 << 16, 3 << 15, \
            1 << 17, 1 << 18, 1 << 19)
#define SIDES KB_AXIS("n", 16, 20, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160)
#define RIVALS(op, number, axis)                            \
    KBENCH_IMPL(op, same_0, axis) { rival(kb, number, 0); } \
    KBENCH_IMPL(op, same_1, axis) { rival(kb, number, 0); } \
    KBENCH_IMPL(op, same_2, axis) { rival(kb, number, 0); } \
    KBENCH_IMPL(op, same_3, axis) { rival(kb, number, 0); } \
    KBENCH_IMPL(op, slower_5, axis) { rival(kb, number, 0.05); }

RIVALS(axpy, 0, SIZES)
RIVALS(sums, 1, SIZES)
RIVALS(product, 2, SIDES)
RIVALS(histogram, 3, SIZES)
RIVALS(gather, 4, TABLES)

KBENCH_MAIN()
