// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks that change their process (dirty_...) and benchmarks that detect it (sees_...). No sees_ benchmark
// that runs after its dirty_ benchmark may find the change.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "kbench.h"
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

static void work(kb_state* kb) {
    float *x = KB_ALLOC(kb, float, 64), *y = KB_ALLOC(kb, float, 64);
    if (!x || !y) return;
    kb_fill(kb, x, 64, KB_NORMAL);
    KB_TIME(kb) {
        for (int i = 0; i < 64; ++i) y[i] = x[i];
        kb_keep(y);
    }
    kb_check(kb, y, x, 64, 0.0);
}
#define DIRTY(what, ...)   \
    KBENCH(dirty_##what) { \
        __VA_ARGS__;       \
        work(kb);          \
    }
#define SEES(what, condition)                                \
    KBENCH(sees_##what) {                                    \
        if (condition) kb_fail(kb, "another case's " #what); \
        work(kb);                                            \
    }
static void limit(int which, rlim_t soft, rlim_t hard) {
    struct rlimit r = { soft, hard };
    if (setrlimit(which, &r) != 0) perror("setrlimit");
}
static bool limited(int which, rlim_t most) {
    struct rlimit r;
    return getrlimit(which, &r) == 0 && r.rlim_cur <= most;
}
static rlim_t hard_limit(int which) {
    struct rlimit r;
    return getrlimit(which, &r) == 0 ? r.rlim_max : 0;
}

DIRTY(memory_limit, limit(RLIMIT_AS, (rlim_t)300 << 20, hard_limit(RLIMIT_AS)))
KBENCH(sees_memory_limit) {
    char* p = KB_ALLOC(kb, char, (int64_t)400 << 20);
    if (p) p[0] = 1;
    work(kb);
}
DIRTY(file_limit, limit(RLIMIT_NOFILE, 20, hard_limit(RLIMIT_NOFILE)))
SEES(file_limit, limited(RLIMIT_NOFILE, 20))
DIRTY(stack_limit, limit(RLIMIT_STACK, 1 << 18, hard_limit(RLIMIT_STACK)))
SEES(stack_limit, limited(RLIMIT_STACK, 1 << 18))
DIRTY(hard_limit, limit(RLIMIT_CORE, 0, 0); limit(RLIMIT_NOFILE, 30, 30))
SEES(hard_limit, limited(RLIMIT_NOFILE, 30))
DIRTY(rounding, fesetround(FE_UPWARD))
SEES(rounding, fegetround() != FE_TONEAREST)
#ifdef __x86_64__
DIRTY(flush, _mm_setcsr(_mm_getcsr() | 0x8040))
SEES(flush, (_mm_getcsr() & 0x8040) != 0)
#endif
DIRTY(locale, setlocale(LC_ALL, "C.UTF-8"))
SEES(locale, strcmp(setlocale(LC_ALL, NULL), "C") != 0)
DIRTY(thread_locale, uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)))
SEES(thread_locale, uselocale((locale_t)0) != LC_GLOBAL_LOCALE)
DIRTY(variables, setenv("HOME", "", 1); setenv("KBENCH_TEST_NEW", "1", 1); unsetenv("PATH"))
SEES(variables, !getenv("PATH") || getenv("KBENCH_TEST_NEW") || !getenv("HOME") || !*getenv("HOME"))
DIRTY(mask, umask(0777))
SEES(mask, umask(022) == 0777)
DIRTY(folder, if (chdir("/")) perror("chdir"))
SEES(folder, access("kbench.h", R_OK) != 0)
DIRTY(blocked, sigset_t s; sigfillset(&s); sigprocmask(SIG_SETMASK, &s, NULL))
static bool blocked(void) {
    sigset_t s;
    sigprocmask(SIG_BLOCK, NULL, &s);
    return sigismember(&s, SIGUSR1);
}
SEES(blocked, blocked())
DIRTY(handler, signal(SIGUSR2, SIG_IGN))
SEES(handler, signal(SIGUSR2, SIG_DFL) != SIG_DFL)
static bool timer_runs(int which) {
    struct itimerval t;
    return getitimer(which, &t) == 0 && (t.it_value.tv_sec || t.it_value.tv_usec);
}
DIRTY(timers, struct itimerval t = { { 0, 0 }, { 50, 0 } }; setitimer(ITIMER_PROF, &t, NULL); alarm(50))
SEES(timers, timer_runs(ITIMER_PROF) || timer_runs(ITIMER_REAL))
DIRTY(priority, if (nice(5) < 0) perror("nice"))
SEES(priority, getpriority(PRIO_PROCESS, 0) != atoi(getenv("LEFTOVERS_NICE")))
static int processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}
static void one_processor(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}
DIRTY(processors, one_processor())
SEES(processors, processors() != atoi(getenv("LEFTOVERS_CPUS")))
DIRTY(files, while (open("/dev/null", O_RDONLY) >= 0){})
SEES(files, open("/dev/null", O_RDONLY) < 0)
DIRTY(standard, close(0); close(1); close(2); if (open("/dev/null", O_RDONLY)) perror("open"))
SEES(standard, fcntl(0, F_GETFD) < 0 || fcntl(1, F_GETFD) < 0 || fcntl(2, F_GETFD) < 0)
static volatile int threads;
static void* runs(void* p) {
    threads = threads + 1;
    for (;;) usleep(1000);
    return p;
}
DIRTY(threads, pthread_t t; for (int i = 0; i < 4; i++) pthread_create(&t, NULL, runs, NULL))
SEES(threads, threads != 0)

// Changes that kbench cannot see: the next case fails, and runs again in a new process.
static int secret;
DIRTY(secret, secret = 1)
SEES(secret, secret)
KBENCH(sees_abort) {
    if (secret) abort();
    work(kb);
}
static int runs_here;
KBENCH(fails_alone) {
    fprintf(stderr, "fails_alone runs as number %d\n", ++runs_here + secret);
    secret = 1;
    kb_fail(kb, "its own fault");
}
KBENCH(fails_too) {
    fprintf(stderr, "fails_too runs as number %d\n", ++runs_here + secret);
    kb_fail(kb, "its own fault");
}
KBENCH_MAIN()
