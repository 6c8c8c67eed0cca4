// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks for the tests of ncu and nsys, with scripted times (--device script).
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kbench.h"
#include "hooks.h"

static double script(const char* name, int64_t sample, uint64_t* flags) {
    (void)name, (void)sample, (void)flags;
    return 5000;
}

KBENCH_IMPL(op, one) {
    KB_TIME(kb) {}
}
KBENCH_IMPL(op, two) { // with CRASH set, crashes only in a profiled process
    static const char* crash;
    if (getenv("CRASH") && getenv("FAKE_LOOKS")) crash = getenv("CRASH");
    if (crash && strcmp(crash, "hang") == 0) pause();
    if (crash) raise(SIGSEGV);
    KB_TIME(kb) {}
}
KBENCH_IMPL(op, wrong) {
    float got[1] = { 1 }, want[1] = { 2 };
    KB_TIME(kb) {}
    if (getenv("WRONG")) kb_check(kb, got, want, 1, 0);
}

int main(int argc, char** argv) {
    hook_script(script);
    return kb_main(argc, argv);
}
