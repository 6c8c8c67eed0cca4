// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks whose names come from macros or literals, some with brackets and commas. -DTWICE registers a
// name twice.
#include "kbench.h"

static void work(kb_state* kb) {
    KB_TIME(kb) {
        for (int i = 0; i < 3000; i++) kb_keep(i);
    }
    kb_check_that(kb, true, 0, 0, "fine");
}
#define NAME foo
#define JOIN(a, b) a##_##b
#define BENCH(OP, IMPL, ...) KBENCH_IMPL(OP, IMPL, __VA_ARGS__)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
KBENCH(NAME) { work(kb); }
KBENCH("a, b") { work(kb); }
KBENCH_IMPL("tile_" TEXT(64), shape(64, (1, 2)), KB_AXIS_STR("m", "x,y", "z"), KB_DTYPE("f32")) { work(kb); }
KBENCH_IMPL(JOIN(bar, 2), plain, KB_AXIS("n", 1, 2), KB_AXIS_REAL("alpha", 0.5)) { work(kb); }
BENCH(JOIN(bar, 2), NAME, KB_AXIS_REAL("alpha", 0.5), KB_AXIS("n", 1, 2)) { work(kb); }
KBENCH_IMPL(sized, one, KB_SIZE("small", "n=1,2"), KB_SIZE("large", "n=2,3")) { work(kb); }
#ifdef TWICE
#define ROW(n) KBENCH_IMPL(TWICE, plain, KB_AXIS("n", n), KB_AXIS_REAL("alpha", 0.5)) { work(kb); }
ROW(2)
#endif
KBENCH_MAIN()
