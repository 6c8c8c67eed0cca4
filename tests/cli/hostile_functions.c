// SPDX-License-Identifier: MIT OR Unlicense
// Benchmark functions that harm more than their own case: they fork, leave processes or files behind, or stop
// processes.
#include "kbench.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static void work(kb_state* kb) {
    float *x = KB_ALLOC(kb, float, 64), *y = KB_ALLOC(kb, float, 64);
    kb_fill(kb, x, 64, KB_NORMAL);
    KB_TIME(kb) {
        for (int i = 0; i < 64; ++i) y[i] = x[i];
        kb_keep(y);
    }
    kb_check(kb, y, x, 64, 0.0);
}
#define HOSTILE(name)                     \
    KBENCH_IMPL(name, good) { work(kb); } \
    KBENCH_IMPL(name, bad)

KBENCH_IMPL(first, good) { work(kb); }
HOSTILE(forks) { // forks, and the child process returns from the function
    if (fork() == 0) return;
    work(kb);
}
HOSTILE(forks_inside) {
    bool once = true;
    float* y = KB_ALLOC(kb, float, 64);
    KB_TIME(kb) {
        if (once && fork() < 0) kb_fail(kb, "cannot fork");
        once = false;
        for (int i = 0; i < 64; ++i) y[i] = (float)i;
        kb_keep(y);
    }
}
HOSTILE(leaves_a_child) { // leaves a child process, which keeps the worker's pipe open
    kb_keep(kb);
    if (fork() == 0) {
        sleep(100);
        _exit(0);
    }
    abort();
}
static void strike(int signal) {
    (void)signal;
    abort();
}
KBENCH_IMPL(leaves_a_timer, bad) {
    struct itimerval soon = { { 0, 0 }, { 0, 100000 } };
    signal(SIGALRM, strike);
    work(kb);
    setitimer(ITIMER_REAL, &soon, NULL);
}
KBENCH_IMPL(leaves_a_timer, good) {
    usleep(150000);
    work(kb);
}
static int poisoned; // like a corrupted heap, this causes a failure in a later case
KBENCH_IMPL(poisons, bad) {
    work(kb);
    poisoned = 1;
}
KBENCH_IMPL(poisons, good) {
    if (poisoned) abort();
    work(kb);
}
KBENCH_IMPL(moves, bad) {
    if (chdir("/") != 0) kb_fail(kb, "cannot move");
    work(kb);
}
KBENCH_IMPL(moves, good) {
    char here[4096];
    if (getcwd(here, sizeof here) && strcmp(here, "/") == 0)
        kb_fail(kb, "the chdir of the previous case changed this working folder");
    work(kb);
}
HOSTILE(nests) {
    char* words[] = { (char*)"hostile", (char*)"--list", NULL };
    if (kb_main(2, words) != 0) kb_fail(kb, "there is a run already");
    work(kb);
}
KBENCH_IMPL(takes_long, good) { // takes about two seconds in total
    usleep(700000);
    float* y = KB_ALLOC(kb, float, 64);
    KB_TIME(kb) {
        for (int i = 0; i < 64; ++i) y[i] = (float)i;
        kb_keep(y);
    }
}
KBENCH_IMPL(last, good) { work(kb); }

int main(int argc, char** argv) {
    if (getenv("HOSTILE_STRIPS") && argc > 1) { // removes its own argument, as some programs do
        argv[1] = argv[0];
        argc--, argv++;
    }
    const char* made_up[] = { "hostile", "--op", "first", "--iters", "30", "--no-progress", NULL };
    if (getenv("HOSTILE_MAKES_UP")) return kb_main(6, (char**)made_up);
    if (getenv("HOSTILE_TWICE") && kb_main(argc, argv) != 0) return 1;
    return kb_main(argc, argv);
}
