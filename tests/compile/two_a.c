// SPDX-License-Identifier: MIT OR Unlicense
// The first of two files of a program, without the implementation. The linker decides which file registers its
// benchmarks first; the list is sorted by file name.
#include "kbench.h"
KBENCH(first) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
}
KBENCH(second) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
}
