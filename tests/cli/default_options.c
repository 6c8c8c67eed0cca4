// SPDX-License-Identifier: MIT OR Unlicense
// Three operations with five problem sizes and two implementations, for default_options.sh. The variable USUAL
// holds the options that the program passes to kb_default.
#include <stdlib.h>
#include "kbench.h"

static void body(kb_state* kb) {
    KB_TIME(kb) {
        for (int i = 0; i < 300; i++) kb_keep(i);
    }
    kb_check_that(kb, true, 0, 0, "fine");
}

#define SHAPES KB_AXIS("n", 1, 2, 3, 4, 5)
KBENCH_IMPL(first, one, SHAPES) { body(kb); }
KBENCH_IMPL(first, two, SHAPES) { body(kb); }
KBENCH_IMPL(second, one, KB_AXIS_STR("dir", "fwd", "bwd"), SHAPES) { body(kb); }
KBENCH_IMPL(second, two, KB_AXIS_STR("dir", "fwd", "bwd"), SHAPES) { body(kb); }
KBENCH_IMPL(third, one, SHAPES) { body(kb); }
KBENCH_IMPL(third, two, SHAPES) { body(kb); }

int main(int argc, char** argv) {
    if (getenv("USUAL")) kb_default(getenv("USUAL"));
    return kb_main(argc, argv);
}
