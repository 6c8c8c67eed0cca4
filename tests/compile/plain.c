// SPDX-License-Identifier: MIT OR Unlicense
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <string.h>

KBENCH(memcpy_1mib) {
    char *a = KB_ALLOC(kb, char, 1 << 20), *b = KB_ALLOC(kb, char, 1 << 20);
    KB_TIME(kb) { memcpy(b, a, 1 << 20); kb_keep(b); }
    kb_bytes(kb, 2.0 * (1 << 20));
}
KBENCH_MAIN()
