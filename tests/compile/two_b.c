// SPDX-License-Identifier: MIT OR Unlicense
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
KBENCH(third) {
    KB_TIME(kb) { kb_keep(kb); }
}
KBENCH(fourth) {
    KB_TIME(kb) { kb_keep(kb); }
}
KBENCH_MAIN()
