// SPDX-License-Identifier: MIT OR Unlicense
// A program with scripted times, so that regression_gate.sh and race.sh know which times changed between runs:
//     SLOWER          every tenth case takes this many percent longer; as a macro for a slower program
//     NOISE           standard deviation of a process's times around the true time, in percent
//     MEMORY          additional bytes that a case allocates
//     FAILS           the last case fails
//     UNCHECKED       the last case does not check its output
//     GONE            the first case is missing
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kbench.h"
#include "hooks.h"

#ifndef SLOWER
#define SLOWER 0
#endif

static double number(const char* name, double otherwise) {
    const char* s = getenv(name);
    return s && *s ? strtod(s, NULL) : otherwise;
}

static uint64_t state; // SplitMix64
static double uniform(void) {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}
static double normal(void) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform();
    return sum;
}

static double script(const char* name, int64_t i, uint64_t* flags) {
    static char last[200];
    static double level;
    const char* n = strstr(name, "n=");
    (void)flags, (void)i;
    if (strcmp(name, last) != 0) { // one random level per case and process
        snprintf(last, sizeof last, "%s", name);
        level = exp(number("NOISE", 0) / 100 * normal());
        if (n && strtol(n + 2, NULL, 10) % 10 == 3) level *= 1 + number("SLOWER", SLOWER) / 100;
    }
    return 10000 * level * (1 + 0.002 * (uniform() - 0.5));
}

static void body(kb_state* kb) {
    size_t bytes = 4096 + (size_t)number("MEMORY", 0);
    char* x = KB_ALLOC(kb, char, bytes);
    KB_TIME(kb) { kb_keep(x); }
    if (getenv("UNCHECKED") && kb_int(kb, "n") == 10) return;
    kb_check_that(kb, !(getenv("FAILS") && kb_int(kb, "n") == 10), 1, 0, "planted");
}

KBENCH(op, KB_AXIS("n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)) {
    if (getenv("GONE") && kb_int(kb, "n") == 1) return kb_skip(kb, "planted");
    body(kb);
}

int main(int argc, char** argv) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    state = (uint64_t)t.tv_nsec * 2654435761u + (uint64_t)getpid();
    hook_script(script);
    return kb_main(argc, argv);
}
