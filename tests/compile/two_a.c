// SPDX-License-Identifier: MIT OR Unlicense
// One of two files of a program: no implementation here. Registered after two_b.c in time or before it, as
// the linker likes; listed by file name.
#include "kbench.h"
KBENCH(first) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
}
KBENCH(second) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
}
