// SPDX-License-Identifier: MIT OR Unlicense
// Three operations of five shapes and two implementations, one of them in two directions: what a --part chooses from.
// Driven by part.sh; USUAL is what the program runs by itself, OTHERS adds three that have one shape.
#define KBENCH_IMPLEMENTATION
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

static kb_entry of_gpu, pair[2], alone; // what no machine without a GPU runs; with a rival, and without one

int main(int argc, char** argv) {
    of_gpu.operation = "of_gpu", of_gpu.needs = KB_NEEDS_GPU, of_gpu.body = body;
    for (int i = 0; i < 2; i++)
        pair[i].operation = "pair", pair[i].implementation = i ? "two" : "one", pair[i].body = body;
    alone.operation = "alone", alone.body = body;
    if (getenv("OTHERS")) kb_add(&of_gpu), kb_add(&pair[0]), kb_add(&pair[1]), kb_add(&alone);
    if (getenv("USUAL")) kb_default(getenv("USUAL"));
    return kb_main(argc, argv);
}
