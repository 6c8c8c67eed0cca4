// SPDX-License-Identifier: MIT OR Unlicense
// Benchmark functions whose kernels return stored results instead of computing them, for fresh_inputs.sh.
#include <string.h>
#include "kbench.h"

enum { N = 4096 };
static float* numbers(kb_state* kb) {
    float* x = KB_ALLOC(kb, float, N);
    kb_fill(kb, x, N, KB_NORMAL);
    return x;
}
static void doubled(float* y, const float* x) {
    for (int i = 0; i < N; i++) y[i] = 2 * x[i];
}
static void check_doubled(kb_state* kb, const float* y, const float* x) {
    float* want = KB_ALLOC_HOST(kb, float, N);
    if (!want) return;
    doubled(want, x);
    kb_check(kb, y, want, N, 1e-6);
}

typedef struct memory { // of a kernel
    const float* input;
    float output[N];
    int launches, known;
} memory;
// Returns the remembered result from launch number `from` on if the input's address is known.
static void by_address(memory* m, float* y, const float* x, int from) {
    doubled(y, x); // does the work nevertheless, so that the times do not reveal the shortcut
    if (m->input == x && ++m->launches >= from) memcpy(y, m->output, (size_t)m->known);
    if (m->input != x) m->launches = 0;
    m->input = x;
    memcpy(m->output, y, sizeof m->output);
}
static void if_not_there(float* y, const float* x) { // poison is a NaN
    if (y[0] != y[0] || y[N - 1] != y[N - 1]) doubled(y, x);
}

KBENCH(honest) {
    static const float* input;
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    kb_note(kb, "seed %d", (int)kb->seed);
    if (kb->seed == 43 && x == input && y[7] == y[7]) kb_note(kb, "what was there");
    input = x;
    kb_bytes(kb, 1000 + (double)kb->seed);
    KB_TIME_HOST(kb) { doubled(y, x); }
    check_doubled(kb, y, x);
}
KBENCH(caches) {
    static memory m = { NULL, { 0 }, 0, sizeof m.output };
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { by_address(&m, y, x, 1); }
    check_doubled(kb, y, x);
}
KBENCH(caches_half) {
    static memory m = { NULL, { 0 }, 0, sizeof m.output / 2 };
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { by_address(&m, y, x, 1); }
    check_doubled(kb, y, x);
}
KBENCH(caches_later) {
    static memory m = { NULL, { 0 }, 0, sizeof m.output };
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { by_address(&m, y, x, 10); }
    check_doubled(kb, y, x);
}
KBENCH(filled) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { if_not_there(y, x); }
    check_doubled(kb, y, x);
}
KBENCH(filled_by_hand) { // compares on the host with its own code instead of kb_check
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N), got[N], most = 0;
    KB_TIME_HOST(kb) { if_not_there(y, x); }
    kb_to_host(kb, got, y, sizeof got);
    for (int i = 0; i < N; i++) most = got[i] - 2 * x[i] > most ? got[i] - 2 * x[i] : most;
    kb_check_that(kb, most <= 1e-6f, most, 1e-6, "off by %g", (double)most);
}
KBENCH(constant) { // the expected values were computed once
    static float want[N];
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    if (want[1] == 0) doubled(want, x);
    KB_TIME_HOST(kb) { doubled(y, x); }
    kb_check(kb, y, want, N, 1e-6);
}
KBENCH(in_place) {
    float *x = numbers(kb), *keep = KB_ALLOC_HOST(kb, float, N);
    if (!keep) return;
    kb_to_host(kb, keep, x, N * sizeof(float));
    KB_SAMPLE(kb) {
        kb_from_host(kb, x, keep, N * sizeof(float));
        KB_TIME_HOST(kb) { doubled(x, x); }
    }
    check_doubled(kb, x, keep);
}
KBENCH(adds_up) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    kb_fill(kb, y, N, KB_ZERO);
    KB_TIME_HOST(kb) {
        for (int i = 0; i < N; i++) y[i] += 2 * x[i];
    }
    check_doubled(kb, y, x);
}
KBENCH(other_size) {
    int n = 1000 + (int)(kb->seed % 5);
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n), *want = KB_ALLOC_HOST(kb, float, n);
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME_HOST(kb) {
        for (int i = 0; i < n; i++) y[i] = 2 * x[i];
    }
    for (int i = 0; i < n; i++) want[i] = 2 * x[i];
    kb_check(kb, y, want, n, 1e-6);
}
KBENCH(unchecked) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    kb_note(kb, "seed %d", (int)kb->seed);
    KB_TIME_HOST(kb) { doubled(y, x); }
}
KBENCH(checked_once) { // the check runs with the first seed only
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { doubled(y, x); }
    if (kb->seed != 44) check_doubled(kb, y, x);
}
KBENCH_IMPL(rivals, plain) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { doubled(y, x); }
    check_doubled(kb, y, x);
}
KBENCH_IMPL(rivals, caches_later) {
    static memory m = { NULL, { 0 }, 0, sizeof m.output };
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { by_address(&m, y, x, 10); }
    check_doubled(kb, y, x);
}
KBENCH_IMPL(rivals, other) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { doubled(y, x); }
    check_doubled(kb, y, x);
}
KBENCH_MAIN()
