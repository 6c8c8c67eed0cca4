// SPDX-License-Identifier: MIT OR Unlicense
// Unusual process environments: open files, signals, stack, working folder, little memory.
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kbench.h"

long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name) { // reports 64 MiB of memory if AROUND_SMALL is set
    return name == _SC_PHYS_PAGES && getenv("AROUND_SMALL") ? (64L << 20) / __real_sysconf(_SC_PAGESIZE) : __real_sysconf(name);
}

static void work(kb_state* kb) {
    KB_TIME(kb) {
        for (int i = 0; i < 1000; i++) kb_keep(i);
    }
    kb_check_that(kb, true, 0, 0, "fine");
}
KBENCH(quick) { work(kb); }
KBENCH(hangs) {
    KB_TIME(kb) {
        for (;;) pause();
    }
}
KBENCH(crashes) {
    KB_TIME(kb) { abort(); }
}
KBENCH(moves) {
    if (chdir("/") != 0) kb_fail(kb, "chdir");
    work(kb);
}
// fails if the worker or (with AROUND_FILES) a program that it starts inherits open files
KBENCH(inherits) {
    struct stat s;
    if (getenv("AROUND_FILES") && system("ls -l /proc/self/fd/ | grep around_r") == 0) kb_fail(kb, "files");
    for (int i = 3; i < 100 && !getenv("AROUND_FILES"); i++)
        if (fstat(i, &s) == 0 && S_ISREG(s.st_mode)) kb_fail(kb, "file %d is open", i);
    work(kb);
}
static void deep(kb_state* kb) {
    volatile char big[12 << 20];
    for (size_t i = 0; i < sizeof big; i += 4096) big[i] = 1;
    work(kb);
    kb_keep(big[4096]);
}
KBENCH_IMPL(stack, deep) { deep(kb); }
KBENCH_IMPL(stack, flat) { work(kb); }
KBENCH_IMPL(memory, one) {
    KB_ALLOC(kb, char, 20 << 20);
    work(kb);
}
KBENCH_IMPL(memory, other) {
    KB_ALLOC(kb, char, 20 << 20);
    work(kb);
}
// another implementation crashes, so this one runs twice: 3 s in total exceed the time limit, 1.5 s each do not
KBENCH_IMPL(again, good) {
    usleep(500000);
    work(kb);
}
KBENCH_IMPL(again, crashes) {
    static int calls;
    work(kb);
    if (++calls == 2) abort();
}
int main(int argc, char** argv) {
    if (getenv("AROUND_DEAF")) signal(SIGCHLD, SIG_IGN); // a parent process may have ignored SIGCHLD
    return kb_main(argc, argv);
}
