// SPDX-License-Identifier: MIT OR Unlicense
// Cases for --procs: with scripted times (--device script) that differ between processes, or with buffers whose
// addresses are printed.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kbench.h"
#include "hooks.h"

static int seed = 42; // processes of another run have other seeds

// Returns the same time for all samples of a process. The standard deviation between processes is larger for short
// cases. For one size in ten, the standard deviation is three times as large as for other sizes.
static double script(const char* name, int64_t i, uint64_t* flags) {
    int n = strstr(name, "/n=") ? atoi(strstr(name, "/n=") + 3) : 1;
    double time = 2000 * pow(1.2, n), sd = 0.006 * pow(time / 2000, -0.15) * (n % 10 == 7 ? 3 : 1);
    (void)i, (void)flags;
    if (strstr(name, "impl=faster")) time /= 1.05;
    if (strstr(name, "impl=slower")) time *= 8;
    return time * exp(sd * hook_normal(name, hook_placement() + 100 * seed));
}

static void body(kb_state* kb) {
    KB_TIME(kb) {
        for (int i = 0; i < 20; i++) kb_keep(i);
    }
    kb_check_that(kb, true, 0, 0, "fine");
}
KBENCH_IMPL(sweep, default, KB_SIZE("all", "n=1:40")) { body(kb); }
KBENCH_IMPL(rivals, base, KB_SIZE("all", "n=1:12")) { body(kb); }
KBENCH_IMPL(rivals, faster, KB_SIZE("all", "n=1:12")) { body(kb); }
KBENCH_IMPL(rivals, slower, KB_SIZE("all", "n=1:12")) { body(kb); }

// `waits` waits in one process until it is interrupted
KBENCH(before) { body(kb); }
KBENCH(waits) {
    const char* where = getenv("WAIT_IN");
    KB_TIME(kb) {
        while (where && hook_placement() == atoi(where)) usleep(10000);
        for (int i = 0; i < 20; i++) kb_keep(i);
    }
}
KBENCH(behind) { body(kb); }

static void placed(kb_state* kb, int64_t n) {
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    float* host = KB_ALLOC_HOST(kb, float, 100);
    if (!x || !y || !host) return;
    for (int i = 0; i < 100; i++) x[i] = host[i] = 1;
    KB_TIME(kb) {
        for (int i = 0; i < 100; i++) y[i] = x[i] + host[i];
        kb_keep(y);
    }
    fprintf(stderr, "%s %d %lld %lld %lld %s\n", kb->operation, (int)getpid(), (long long)((uintptr_t)x % 65536),
            (long long)((uintptr_t)y % 65536), (long long)((uintptr_t)host % 65536), y[99] == 2 ? "right" : "wrong");
}
KBENCH(alone) { placed(kb, 5000); }
KBENCH(large) { placed(kb, 17 << 20); } // two buffers of this size do not fit into the shared buffers
KBENCH_IMPL(both, one) { placed(kb, 5000); }
KBENCH_IMPL(both, two) { placed(kb, 5000); }

int main(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--seed") == 0) seed = atoi(argv[i + 1]);
    hook_script(script);
    return kb_main(argc, argv);
}
