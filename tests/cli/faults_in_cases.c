// SPDX-License-Identifier: MIT OR Unlicense
// Every way in which a benchmark can fail on the CPU, each between two correct cases.
#include "kbench.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void start_slowly(void) {
    const char* seconds = getenv("FAULTS_START");
    if (seconds) sleep((unsigned)atoi(seconds));
}

static void work(kb_state* kb) {
    float *x = KB_ALLOC(kb, float, 64), *y = KB_ALLOC(kb, float, 64);
    kb_fill(kb, x, 64, KB_NORMAL);
    KB_TIME(kb) {
        for (int i = 0; i < 64; ++i) y[i] = x[i];
        kb_keep(y);
    }
    kb_check(kb, y, x, 64, 0.0);
}
#define FAULT(name)                       \
    KBENCH_IMPL(name, good) { work(kb); } \
    KBENCH_IMPL(name, bad)

static int runs;
#define LATE 20

KBENCH_IMPL(first, good) { work(kb); }
FAULT(segfault) {
    KB_TIME(kb) { *(volatile int*)(intptr_t)8 = 1; }
}
FAULT(segfault_late) {
    runs = 0;
    KB_TIME(kb) {
        if (++runs == LATE) *(volatile int*)(intptr_t)8 = 1;
    }
}
FAULT(segfault_before) {
    *(volatile int*)(intptr_t)8 = 1;
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
}
FAULT(aborts) {
    KB_TIME(kb) { abort(); }
}
FAULT(exit_zero) {
    KB_TIME(kb) { exit(0); }
}
FAULT(exit_three) {
    KB_TIME(kb) { exit(3); }
}
FAULT(killed) { // as the Linux kernel does when memory is exhausted
    KB_TIME(kb) { kill(getpid(), SIGKILL); }
}
FAULT(hangs) {
    KB_TIME(kb) {
        for (volatile int go = 1; go;) {}
    }
}
FAULT(hangs_before) {
    for (volatile int go = 1; go;) {}
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
}
FAULT(sleeps_deaf) { // a hang that ignores SIGTERM
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    KB_TIME(kb) { sleep(1000); }
}
FAULT(too_much_memory) {
    char* p = KB_ALLOC(kb, char, (int64_t)1 << 60);
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(p);
    }
}
FAULT(negative_count) {
    char* p = KB_ALLOC(kb, char, -1);
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(p);
    }
}
FAULT(overflowing_count) {
    double* p = KB_ALLOC(kb, double, INT64_MAX / 2);
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(p);
    }
}
FAULT(write_after) {
    char* p = KB_ALLOC(kb, char, 100);
    KB_TIME(kb) { ((volatile char*)p)[100] = 1; }
    kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(write_far_after) {
    char* p = KB_ALLOC(kb, char, 100);
    KB_TIME(kb) { ((volatile char*)p)[4000] = 1; }
    kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(write_before) {
    char* p = KB_ALLOC(kb, char, 100);
    KB_TIME(kb) { ((volatile char*)p)[-1] = 1; }
    kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(write_after_host) {
    char* p = KB_ALLOC_HOST(kb, char, 256);
    KB_TIME(kb) { ((volatile char*)p)[256] = 1; }
    kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(write_after_late) {
    runs = 0;
    char* p = KB_ALLOC(kb, char, 100);
    KB_TIME(kb) {
        if (++runs == LATE) ((volatile char*)p)[100] = 1;
    }
    kb_check_that(kb, true, 0, 0, "fine");
}
// functions that do not check the pointer of a failed allocation write to NULL
static void goes_on(kb_state* kb) {
    int* want = KB_ALLOC_HOST(kb, int, 4);
    want[1] = 1;
    kb_note(kb, "not reached");
}
FAULT(wrong_then_crashes) {
    KB_TIME(kb) { kb_keep(kb); }
    kb_check_that(kb, false, 1, 0, "the answer is 42");
    goes_on(kb);
}
FAULT(wrong_then_hangs) {
    KB_TIME(kb) { kb_keep(kb); }
    kb_check_that(kb, false, 1, 0, "the answer is 42");
    for (volatile int go = 1; go;) {}
}
FAULT(wrong_late_then_crashes) {
    static int calls;
    KB_TIME(kb) { kb_keep(kb); }
    if (!kb_check_that(kb, calls++ % 2 == 0, 1, 0, "the answer is 42")) goes_on(kb);
}
FAULT(skips_then_crashes) {
    kb_skip(kb, "not on a weekday");
    goes_on(kb);
}
FAULT(skips_then_fails) {
    kb_skip(kb, "not on a weekday");
    kb_fail(kb, "KB_ALLOC returned NULL because the case was skipped");
}
FAULT(no_loop) { kb_bytes(kb, 1); }
FAULT(breaks_out) {
    KB_TIME(kb) { break; }
}
FAULT(returns_out) {
    KB_TIME(kb) { return; }
}
FAULT(breaks_out_late) {
    runs = 0;
    KB_TIME(kb) {
        if (++runs == LATE) break;
    }
}
FAULT(two_blocks) {
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
}
FAULT(sample_without_time) {
    KB_SAMPLE(kb) { kb_keep(kb); }
}
FAULT(wrong) {
    float *y = KB_ALLOC(kb, float, 3), want[3] = { 1, 2, 3 };
    KB_TIME(kb) {
        y[0] = 1, y[1] = 2, y[2] = 4;
        kb_keep(y);
    }
    kb_check(kb, y, want, 3, 1e-3);
}
FAULT(wrong_nan) {
    float *y = KB_ALLOC(kb, float, 3), want[3] = { 1, 2, 3 };
    KB_TIME(kb) {
        y[0] = 1, y[1] = 2;
        kb_keep(y);
    } // the third element is not written, so it keeps the poison pattern
    kb_check(kb, y, want, 3, 1e9);
}
FAULT(wrong_late) { // correct at the first check, wrong later
    float *y = KB_ALLOC(kb, float, 1), want[1] = { 1 };
    runs = 0;
    KB_TIME(kb) {
        y[0] = ++runs < LATE ? 1.0f : 2.0f;
        kb_keep(y);
    }
    kb_check(kb, y, want, 1, 1e-3);
}
FAULT(wrong_that) {
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
    kb_check_that(kb, false, 7.0, 1.0, "the answer is %d", 42);
}
FAULT(wrong_one_of_two) {
    float *y = KB_ALLOC(kb, float, 1), right[1] = { 1 }, wrong[1] = { 5 };
    KB_TIME(kb) {
        y[0] = 1;
        kb_keep(y);
    }
    kb_check(kb, y, wrong, 1, 1e-3);
    kb_check(kb, y, right, 1, 1e-3);
}
FAULT(unknown_axis) {
    int64_t n = kb_int(kb, "no_such_axis");
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(n);
    }
}
FAULT(axis_of_another_type) {
    int64_t n = kb_int(kb, "mode");
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(n);
    }
}
FAULT(fails_itself) {
    kb_fail(kb, "no luck with %s", "this");
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
}
FAULT(closes_files) { // closes all files, as a daemon does; the pipes of kbench must stay open
    KB_TIME(kb) {
        for (int i = 0; i < 64; ++i) close(i);
    }
}
FAULT(closes_everything) {
    KB_TIME(kb) {
        for (int i = 0; i < 1024; ++i) close(i);
    }
}
FAULT(says_much) { // this output must not be mistaken for a record, and the full pipe must not block
    KB_TIME(kb) {
        char line[4096];
        memset(line, '{', sizeof line);
        for (int i = 0; i < 3 && write(1, line, sizeof line) > 0;) ++i;
    }
    kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(checks_once) { // the check runs only once, which proves nothing about the timed runs
    static int calls;
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
    if (calls++ == 0) kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(skips) { kb_skip(kb, "not on a %s", "weekday"); }
KBENCH_IMPL(last, good) { work(kb); }
KBENCH_MAIN()
