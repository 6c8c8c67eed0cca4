// SPDX-License-Identifier: MIT OR Unlicense
// Cases for the test of --budget: some never reach the required precision, one reaches it immediately, and one is
// slow.
#include <time.h>
#include <string.h>
#include "kbench.h"
#include "hooks.h"

static void wait_ns(long ns) {
    struct timespec t = { ns / 1000000000, ns % 1000000000 };
    nanosleep(&t, NULL);
}
KBENCH_IMPL(noisy, naive, KB_AXIS("n", 1, 2, 3, 4, 5, 6)) {
    KB_TIME(kb) { wait_ns(50000); }
}
KBENCH_IMPL(noisy, other, KB_AXIS("n", 1, 2, 3, 4, 5, 6)) {
    KB_TIME(kb) { wait_ns(50000); }
}
KBENCH_IMPL(alone, only, KB_AXIS("n", 1, 2, 3, 4, 5, 6)) {
    KB_TIME(kb) { wait_ns(50000); }
}
KBENCH(quiet) {
    KB_TIME(kb) { wait_ns(50000); }
}
KBENCH_IMPL(slow, only, KB_AXIS("n", 1, 2, 3, 4, 5, 6, 7, 8)) {
    KB_TIME(kb) { wait_ns(20000000); }
}

static double script(const char* name, int64_t sample, uint64_t* flags) {
    (void)flags;
    uint64_t h = hook_hash((uint64_t)(sample + 2) * 0x9e3779b97f4a7c15u, name);
    return strstr(name, "quiet") ? 50000 : 50000 * (1 + (double)(h >> 11 & 0xffff) / 0xffff);
}
int main(int argc, char** argv) {
    hook_script(script);
    return kb_main(argc, argv);
}
