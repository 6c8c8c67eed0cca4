// SPDX-License-Identifier: MIT OR Unlicense
/*  Shows how to write an instrument. The option --faults counts the page faults of each timed block, in untimed runs.

    cc -O2 -I. examples/own_instrument.c -o own_instrument -lm && ./own_instrument --faults

    The page faults become counters of the record. The table shows counters below the row, and --json writes them.
    For an instrument, kbench runs the blocks again in a separate process, so the instrument does not affect the
    times. kb_instrument in kbench.h documents the functions that an instrument can define. --counters and --energy
    of examples/addons/kbench_inspect.h are instruments as well. */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// --- the instrument ---

enum { RUNS = 16 };
static struct rusage before;

static bool faults_open(kb_state* kb) {
    if (getrusage(RUSAGE_SELF, &before) == 0) return true;
    kb_not_found(kb, "getrusage failed");
    return false;
}

static int64_t faults_begin(kb_state* kb) {
    (void)kb;
    getrusage(RUSAGE_SELF, &before);
    return RUNS; // kbench runs the block this many times before it calls `end`
}

static bool faults_end(kb_state* kb) {
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    kb_found(kb, "page_faults", (double)(now.ru_minflt - before.ru_minflt) / RUNS, "a run");
    return false; // no more runs
}

// --- benchmarks: newly allocated memory, and memory that the process already uses ---

enum { BYTES = 1 << 20 };

KBENCH_IMPL(memory, fresh) {
    KB_TIME(kb) {
        char* p = (char*)malloc(BYTES);
        if (p) memset(p, 1, BYTES);
        kb_keep(p);
        free(p);
    }
    kb_bytes(kb, BYTES);
}

KBENCH_IMPL(memory, kept) {
    char* p = KB_ALLOC(kb, char, BYTES);
    KB_TIME(kb) {
        memset(p, 1, BYTES);
        kb_keep(p);
    }
    kb_bytes(kb, BYTES);
}

int main(int argc, char** argv) {
    static kb_instrument faults;
    faults.option = "faults", faults.help = "page faults per run of the timed block", faults.host = true;
    faults.open = faults_open, faults.begin = faults_begin, faults.end = faults_end;
    kb_add_instrument(&faults);
    return kb_main(argc, argv);
}
