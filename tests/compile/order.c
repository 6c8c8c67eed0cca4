// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks that are registered in unusual places. All benchmarks must be listed in the order of file, line and
// position in the line, with their names as written.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <string.h>

// the test needs several benchmarks in one source line: clang-format off
#define NOTHING(kb) { KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); } }
#define BOTH(op) KBENCH_IMPL(op, one) NOTHING(kb) KBENCH_IMPL(op, two) NOTHING(kb)
#define COUNT 3

KBENCH(zebra) NOTHING(kb)
KBENCH(memcpy) NOTHING(kb)
KBENCH_IMPL(strlen, printf) NOTHING(kb)
KBENCH(c) NOTHING(kb) KBENCH(b) NOTHING(kb) KBENCH(a) NOTHING(kb)
BOTH(pair)
KBENCH_IMPL(zebra, late, KB_AXIS("n", COUNT)) NOTHING(kb)
KBENCH_IMPL(alone, bare) NOTHING(kb)
KBENCH(sized, KB_AXIS("n", 1, COUNT), KB_DTYPE("f32")) NOTHING(kb)
KBENCH_IMPL(sized, other, KB_AXIS("n", 1)) NOTHING(kb)
KBENCH_MAIN()
