// SPDX-License-Identifier: MIT OR Unlicense
// Benchmark functions on a machine that other programs use.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kbench.h"
#include <sched.h>

// Computes for about 50 us, without memory access.
static void work(void) {
    for (int i = 0; i < 50000; i++) __asm__ __volatile__("");
}

// The new process only computes, on the same processors. It ends at most a few seconds after the calling process.
static pid_t neighbour(void) {
    pid_t child = fork();
    if (child) return child;
    for (alarm(20);;) {}
}

KBENCH(crowded) {
    pid_t other = neighbour();
    int runs = 0;
    KB_TIME_HOST(kb) {
        work();
        // the scheduler prefers to switch at the end of a system call, between samples
        if (++runs % 16 == 0) sched_yield();
    }
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    kb_check_that(kb, other > 0, 0, 0, "no process");
}
KBENCH(naps) { // the time of the block includes sleeping
    KB_TIME_HOST(kb) { usleep(300); }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
KBENCH(paused) { // stops this process and its parent in the middle of the samples, as Ctrl-Z does
    int runs = 0;
    pid_t self = getpid(), parent = getppid();
    KB_TIME_HOST(kb) {
        work();
        if (++runs != 200) continue;
        pid_t child = fork();
        if (!child) {
            usleep(2500000);
            kill(parent, SIGCONT);
            kill(self, SIGCONT);
            _exit(0);
        }
        kill(parent, SIGSTOP);
        raise(SIGSTOP);
        waitpid(child, NULL, 0);
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
KBENCH(where) {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set)) kb_note(kb, "cpu=%d", i);
    KB_TIME_HOST(kb) { work(); }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
// half of the samples take twice as long, in long consecutive sequences, so the interval contains both values
KBENCH(two_speeds) {
    int runs = 0;
    KB_TIME_HOST(kb) {
        work();
        if (runs++ / 40 % 2) work();
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
static void placed(kb_state* kb) {
    char *small = KB_ALLOC(kb, char, 1000), *large = KB_ALLOC(kb, char, 3 << 20), *next = KB_ALLOC(kb, char, 1 << 20);
    if (!next) return;
    if ((uintptr_t)small % 256 || (uintptr_t)large % 256 || (uintptr_t)next % 256) kb_fail(kb, "no multiple of 256");
    kb_note(kb, "%d %d %d", (int)((uintptr_t)small % 512), (int)((uintptr_t)large % (2 << 20)),
            (int)((uintptr_t)next % (2 << 20)));
    KB_TIME_HOST(kb) { work(); }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
KBENCH_IMPL(placed, one) { placed(kb); }
KBENCH_IMPL(placed, two) { placed(kb); }
KBENCH_MAIN()
