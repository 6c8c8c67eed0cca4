// SPDX-License-Identifier: MIT OR Unlicense
// A program with a fixed amount of work; MORE=N adds N percent.
#include "kbench.h"

#ifndef MORE
#define MORE 0
#endif

KBENCH(work) {
    KB_TIME_HOST(kb) {
        volatile uint32_t x = 1;
        for (int i = 0; i < 10000 + 100 * MORE; i++) x = x * 1664525u + 1013904223u;
    }
}
KBENCH_MAIN()
