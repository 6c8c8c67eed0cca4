// SPDX-License-Identifier: MIT OR Unlicense
// Main functions that do something before kb_main (selected by MAINS), and a benchmark that allows tracing, for
// main_functions.sh. -DSHIM builds a library with a faulty clock: it has a coarse resolution, stands still, or
// goes backwards.
#define _GNU_SOURCE
#ifdef SHIM
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* t) {
    static __thread long long back;
    const char* kind = getenv("CLOCK");
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    long long ns = t->tv_sec * 1000000000LL + t->tv_nsec, step = kind ? atoll(kind) : 1;
    if (kind && *kind == 's') step = 1, ns = 5000000000000LL;
    if (kind && *kind == 'b') step = 1, ns = 9000000000000LL - (back += 1000);
    ns -= ns % step;
    t->tv_sec = (time_t)(ns / 1000000000), t->tv_nsec = (long)(ns % 1000000000);
    return result;
}
#else
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kbench.h"

static void work(kb_state* kb) {
    KB_TIME(kb) {
        for (volatile int i = 0; i < 100; i++) {}
    }
}
static int input = -1; // a number that main reads
KBENCH(a) { work(kb); }
KBENCH(tells) {
    work(kb);
    kb_count(kb, "input", input, "");
}
KBENCH(traced) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGTRAP);
    work(kb);
}
KBENCH(b) { work(kb); }
KBENCH(hangs) {
    KB_TIME(kb) {
        for (;;) pause();
    }
}
KBENCH(takes_a_second) {
    KB_TIME(kb) { usleep(250000); }
}

int main(int argc, char** argv) {
    const int at_start = errno;
    const char* how = getenv("MAINS") ? getenv("MAINS") : "";
    int status;
    if (strcmp(how, "again") == 0) { // the mark that kb_main sets in a worker's environment
        if (!getenv("AGAIN")) setenv("AGAIN", "1", 1), execv("/proc/self/exe", argv);
        unsetenv("AGAIN");
    }
    if (strcmp(how, "cleared") == 0) { // the environment loses the worker's mark, too
        if (!getenv("AGAIN"))
            clearenv(), setenv("MAINS", how, 1), setenv("AGAIN", "1", 1), execv("/proc/self/exe", argv);
        unsetenv("AGAIN");
    }
    if (strcmp(how, "forks") == 0) {
        pid_t child = fork();
        if (child) return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 9;
    }
    if (strcmp(how, "reads") == 0 && scanf("%d", &input) != 1) input = -2;
    if (strcmp(how, "errno") == 0) input = at_start ? -2 : 7;
    if (strcmp(how, "opens") == 0 && (!freopen("main_functions.txt", "r", stdin) || scanf("%d", &input) != 1))
        input = -2;
    if (strcmp(how, "unbuffered") == 0) input = setvbuf(stdin, NULL, _IONBF, 0) == 0 ? 7 : -2;
    if (strcmp(how, "moves") == 0) { // reads a file in its folder, and leaves the folder
        FILE* f = fopen("main_functions.txt", "r");
        if (!f || fscanf(f, "%d", &input) != 1) input = -2;
        if (f) fclose(f);
        if (chdir("/") != 0) return 9;
    }
    if (strcmp(how, "waits") == 0 && getenv("KBENCH_STARTED_AS"))
        for (;;) pause();
    if (strcmp(how, "deaf") == 0) { // a program in a race that ignores SIGTERM and never ends
        signal(SIGTERM, SIG_IGN);
        for (;;) pause();
    }
    return kb_main(argc, argv);
}
#endif
