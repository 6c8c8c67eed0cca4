// SPDX-License-Identifier: MIT OR Unlicense
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
KBENCH(third) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
}
KBENCH(fourth) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
}
KBENCH_MAIN()
