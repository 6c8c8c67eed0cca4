// SPDX-License-Identifier: MIT OR Unlicense
// Benchmark functions that do their work once, rarely or in place.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kbench.h"
#include "hooks.h"

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

KBENCH(honest) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    KB_TIME_HOST(kb) { doubled(y, x); }
    check_doubled(kb, y, x);
}
KBENCH(once) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    volatile int launches = 0, spent = 0;
    KB_TIME_HOST(kb) {
        if (!launches++) doubled(y, x);
        for (int i = 0; i < 1000; i++) spent++;
    }
    check_doubled(kb, y, x);
}
KBENCH(once_by_hand) { // compares the values from kb_to_host itself, as the suite does
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N), got[N], most = 0;
    volatile int launches = 0, spent = 0;
    KB_TIME_HOST(kb) {
        if (!launches++) doubled(y, x);
        for (int i = 0; i < 1000; i++) spent++;
    }
    kb_to_host(kb, got, y, sizeof got);
    for (int i = 0; i < N; i++) {
        float d = got[i] - 2 * x[i];
        if (!(d <= most && d >= -most)) most = d < 0 ? -d : d;
    }
    kb_check_that(kb, most <= 1e-6f, most, 1e-6, "off by %g", (double)most);
}
KBENCH(a_few_times) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    volatile int launches = 0, spent = 0;
    KB_TIME_HOST(kb) {
        if (launches++ < 5) doubled(y, x);
        for (int i = 0; i < 1000; i++) spent++;
    }
    check_doubled(kb, y, x);
}
KBENCH(two_outputs_one_stale) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N), *z = KB_ALLOC(kb, float, N);
    volatile int launches = 0;
    KB_TIME_HOST(kb) {
        doubled(y, x);
        if (!launches++) doubled(z, x);
    }
    check_doubled(kb, y, x);
    check_doubled(kb, z, x);
}
KBENCH(wrong_later) {
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    volatile int launches = 0;
    KB_TIME_HOST(kb) {
        doubled(y, x);
        if (launches++) y[7] = 3 + (float)launches;
    }
    check_doubled(kb, y, x);
}
// each launch doubles the result of the previous launch; the last launch starts from the input again
KBENCH(in_place) {
    float *x = numbers(kb), *keep = KB_ALLOC_HOST(kb, float, N);
    if (!keep) return;
    kb_to_host(kb, keep, x, N * sizeof(float));
    KB_TIME_HOST(kb) { doubled(x, x); }
    check_doubled(kb, x, keep);
}
KBENCH(in_place_reset) {
    float *x = numbers(kb), *keep = KB_ALLOC_HOST(kb, float, N);
    if (!keep) return;
    kb_to_host(kb, keep, x, N * sizeof(float));
    KB_SAMPLE(kb) {
        kb_from_host(kb, x, keep, N * sizeof(float));
        KB_TIME_HOST(kb) { doubled(x, x); }
    }
    check_doubled(kb, x, keep);
}
KBENCH(adds_up) { // y += 2 x, from zeros
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    kb_fill(kb, y, N, KB_ZERO);
    KB_TIME_HOST(kb) {
        for (int i = 0; i < N; i++) y[i] += 2 * x[i];
    }
    check_doubled(kb, y, x);
}
KBENCH(empty) {
    KB_TIME_HOST(kb) {}
}
KBENCH(removed) { // the compiler removes the work, because it sees that the sum is never used
    float* x = KB_ALLOC_HOST(kb, float, N);
    KB_TIME_HOST(kb) {
        float sum = 0;
        for (int i = 0; i < N; i++) sum += x[i];
        (void)sum;
    }
}
KBENCH(kept) {
    float* x = KB_ALLOC_HOST(kb, float, N);
    if (!x) return;
    kb_fill(kb, x, N, KB_NORMAL);
    KB_TIME_HOST(kb) {
        float sum = 0;
        for (int i = 0; i < N; i++) sum += x[i];
        kb_keep(sum);
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
static void stop_for(unsigned milliseconds) {
    pid_t self = getpid(), child = fork();
    if (!child) {
        usleep(1000 * milliseconds);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, NULL, 0);
}
KBENCH(stopped) { // the process is stopped in the 100th run, in the middle of the samples
    int runs = 0;
    volatile int spent = 0;
    KB_TIME_HOST(kb) {
        for (int i = 0; i < 100000; i++) spent = spent + 1;
        if (++runs == 100) stop_for(300);
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

// --- launches that differ from each other ---

static volatile int spent;
static void spend(int64_t turns) {
    for (int64_t i = 0; i < turns; i++) spent = spent + 1;
}
static int by_size(const void* a, const void* b) {
    float x = *(const float*)a, y = *(const float*)b;
    return (x > y) - (x < y);
}
KBENCH(halves) {
    int64_t turns = 1 << 22;
    KB_TIME_HOST(kb) { spend(turns /= 2); }
}
KBENCH(halves_for_good) { // the work halves in every launch, also between calls of the function
    static int64_t turns = 1 << 24;
    KB_TIME_HOST(kb) { spend(turns /= 2); }
}
KBENCH(runs_out) {
    int launches = 0;
    KB_TIME_HOST(kb) { spend(++launches < 20 ? 100000 : 10); }
}
KBENCH(every_second) {
    int launches = 0;
    KB_TIME_HOST(kb) { spend(++launches % 2 ? 10000 : 10); }
}
KBENCH(every_second_long) { // each launch is long enough to be a sample
    int launches = 0;
    KB_TIME_HOST(kb) { spend(++launches % 2 ? 500000 : 1000); }
}
KBENCH(every_fourth_not) {
    int launches = 0;
    KB_TIME_HOST(kb) { spend(++launches % 4 ? 10000 : 10); }
}
KBENCH(sorts) { // honest: each launch sorts the same numbers
    float *x = numbers(kb), *y = KB_ALLOC_HOST(kb, float, N);
    if (!y) return;
    KB_SAMPLE(kb) {
        memcpy(y, x, N * sizeof(float));
        KB_TIME_HOST(kb) { qsort(y, N, sizeof(float), by_size); }
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
KBENCH(starts_slowly) {
    int launches = 0;
    KB_TIME_HOST(kb) { spend(launches++ ? 10000 : 1000000); }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
KBENCH(varies) {
    uint64_t state = 1;
    KB_TIME_HOST(kb) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        spend(state >> 61 ? 10000 : 20000);
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
KBENCH(brief) {
    KB_TIME_HOST(kb) { spend(12); }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
// --- work that the compiler does in advance ---

KBENCH(folded) {
    double x = 2, y = 0;
    KB_TIME_HOST(kb) {
        y = __builtin_sqrt(x);
        kb_keep(y);
    }
    kb_check_that(kb, y > 1.4 && y < 1.5, 0, 0, "%g", y);
}
KBENCH(folded_length) {
    const char* text = "a string whose length the compiler knows";
    size_t n = 0;
    KB_TIME_HOST(kb) {
        n = strlen(text);
        kb_keep(n);
    }
    kb_check_that(kb, n == 40, 0, 0, "%zu", n);
}
KBENCH(folded_three) {
    int a = 3, b = 4;
    KB_TIME_HOST(kb) { kb_keep(a + b, a * b, a - b); }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
KBENCH(hoisted) { // the value is not a constant, but is the same in each run
    double x = (double)kb->seed, y = 0;
    KB_TIME_HOST(kb) {
        y = x * x + 1;
        kb_keep(y);
    }
    kb_check_that(kb, y > 1, 0, 0, "%g", y);
}
KBENCH(hidden) {
    double x = 2, y = 0;
    KB_TIME_HOST(kb) {
        kb_keep(x);
        y = __builtin_sqrt(x) / (x + 1) / (x + 2) / (x + 3);
        kb_keep(y);
    }
    kb_check_that(kb, y > 0.02 && y < 0.03, 0, 0, "%g", y);
}
KBENCH(one_instruction) { // the block is executed, but takes no longer than the loop around it
    volatile int v = 1;
    KB_TIME_HOST(kb) {
        int r = v + 1;
        kb_keep(r);
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
static void constant(kb_stream stream, void* user) {
    (void)stream, (void)user;
    kb_keep(2 * 3);
}

// --- the same work alone and after a reset ---

#define CHAIN(n) \
    for (int i = 0; i < (n); i++) x = x * 1664525u + 1013904223u, kept = x;
#define TWO_WAYS(name, n)                                  \
    KBENCH_IMPL(name, plain) {                             \
        unsigned x = 1;                                    \
        volatile unsigned kept = 0;                        \
        KB_TIME_HOST(kb) { CHAIN(n) }                      \
        kb_check_that(kb, kept == x, 0, 0, "not kept");    \
    }                                                      \
    KBENCH_IMPL(name, sample) {                            \
        unsigned x = 1;                                    \
        volatile unsigned kept = 0;                        \
        KB_SAMPLE(kb) {                                    \
            x = 1;                                         \
            KB_TIME_HOST(kb) { CHAIN(n) }                  \
        }                                                  \
        kb_check_that(kb, kept == x, 0, 0, "not kept");    \
    }
TWO_WAYS(ways_1, 1)
TWO_WAYS(ways_10, 10)
TWO_WAYS(ways_30, 30)
TWO_WAYS(ways_100, 100)
TWO_WAYS(ways_300, 300)
TWO_WAYS(ways_1000, 1000)
TWO_WAYS(ways_10000, 10000)

// The buffers come from KB_ALLOC or, if `own` is set, from malloc.
static void copies(kb_state* kb, size_t bytes, int times, bool own) {
    char* x = own ? (char*)malloc(2 * bytes) : KB_ALLOC(kb, char, (int64_t)(2 * bytes));
    if (!x) return;
    memset(x, 1, 2 * bytes);
    KB_TIME_HOST(kb) {
        for (int i = 0; i < times; i++) {
            memcpy(x + bytes, x, bytes);
            kb_keep(x);
        }
    }
    kb_bytes(kb, 2.0 * (double)bytes * times);
    kb_check_that(kb, x[2 * bytes - 1] == 1, 0, 0, "not copied");
    if (own) free(x);
}
KBENCH(in_cache) { copies(kb, 256 << 10, 1, false); }
KBENCH(in_cache_again) { copies(kb, 256 << 10, 4000, false); } // moves more bytes in total than any cache holds
KBENCH(in_cache_own) { copies(kb, 256 << 10, 1, true); }
KBENCH(in_memory) { copies(kb, hook_core_cache() + (1 << 20), 1, false); }
KBENCH(in_memory_own) { copies(kb, hook_core_cache() + (1 << 20), 1, true); }
static void own_main(void) { // a block that works only in its first launch is STALE with kb_open, too
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "embedded_once";
    d.max_time = 0.05;
    d.host = true;
    kb_state* kb = kb_open(&d);
    float *x = numbers(kb), *y = KB_ALLOC(kb, float, N);
    volatile int launches = 0, spent = 0;
    KB_TIME_HOST(kb) {
        if (!launches++) doubled(y, x);
        for (int i = 0; i < 1000; i++) spent++;
    }
    check_doubled(kb, y, x);
    kb_result r = kb_close(kb);
    printf("%s %s\n", r.name, (r.flags >> KB_FLAG_STALE) & 1 ? "STALE" : "no");
    kb_result_free(&r);
    d.name = "called";
    r = kb_run(&d, constant, NULL);
    printf("%s %s\n", r.name, (r.flags >> KB_FLAG_FLOOR) & 1 ? "FLOOR" : "no");
    kb_result_free(&r);
}
int main(int argc, char** argv) {
    if (argc > 1 && strcmp(argv[1], "own") == 0) return own_main(), 0;
    return kb_main(argc, argv);
}
