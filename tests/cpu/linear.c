// SPDX-License-Identifier: MIT OR Unlicense
// Chains of dependent multiplications, whose times have known ratios: from 8 multiplications (a few ns) to a
// million (about a ms). Short chains are straight-line code; long chains are loops, whose overhead overlaps the
// chain. The chains run in interleaved rounds, so that the processor's clock is the same for all.
#include "kbench.h"

// One multiplication, which the compiler can neither precompute nor remove because of the inline assembly.
#define X1                    \
    x *= 0x9e3779b97f4a7c15u; \
    __asm__ __volatile__("" : "+r"(x));
#define X8 X1 X1 X1 X1 X1 X1 X1 X1
#define X64 X8 X8 X8 X8 X8 X8 X8 X8
#define X512 X64 X64 X64 X64 X64 X64 X64 X64

// clang-format off
#define CHAIN(steps, code)                                 \
    KBENCH_IMPL(chain, x##steps) {                         \
        uint64_t x = 3;                                    \
        KB_TIME_HOST(kb) { code }                          \
        kb_items(kb, steps);                               \
        kb_check_that(kb, true, 0, 0, "nothing to check"); \
    }
#define LOOP(blocks) for (int i = 0; i < blocks; i++) { X512 }
CHAIN(256, X64 X64 X64 X64)
CHAIN(8, X8)
CHAIN(16, X8 X8)
CHAIN(32, X8 X8 X8 X8)
CHAIN(64, X64)
CHAIN(128, X64 X64)
CHAIN(512, X512)
CHAIN(1024, LOOP(2))
CHAIN(2048, LOOP(4))
CHAIN(8192, LOOP(16))
CHAIN(32768, LOOP(64))
CHAIN(131072, LOOP(256))
CHAIN(524288, LOOP(1024))
CHAIN(1048576, LOOP(2048))
// clang-format on

KBENCH_MAIN()
