// SPDX-License-Identifier: MIT OR Unlicense
// A program for the terminal test: a sweep of two axes, several types, a comparison, failing cases, long names,
// and names with control characters.
#include "kbench.h"

static void body(kb_state* kb, int turns) {
    float* x = KB_ALLOC(kb, float, 4096);
    KB_TIME(kb) {
        for (int i = 0; i < 50 * turns; i++) x[i % 4096] = (float)i;
        kb_keep(x[7]);
    }
    kb_bytes(kb, 4096.0 * turns);
    kb_flops(kb, 1000.0 * turns); // an invented number of operations, so that the table draws bars of GFLOP/s
    kb_check_that(kb, true, 0, 0, "fine");
}

KBENCH_IMPL(sweep, default, KB_AXIS("rows", 1, 2, 3), KB_AXIS("cols", 4096, 8192), KB_DTYPE("f32", "bf16")) {
    body(kb, (int)kb_int(kb, "rows"));
}
KBENCH_IMPL(contest, an_implementation_with_a_name_that_no_window_has_room_for, KB_AXIS("n", 1, 2)) { body(kb, 6); }
KBENCH_IMPL(contest, short_one, KB_AXIS("n", 1, 2)) { body(kb, 1); }
KBENCH_IMPL(contest, wrong, KB_AXIS("n", 1, 2)) {
    body(kb, 1);
    kb_check_that(kb, false, 1, 0, "is not what it should be, and says so at some length: \x1b[2J");
}
KBENCH_IMPL(obeyed, default,
            KB_AXIS_STR("what", "\x1b[2J", "\x1b]0;title\x07",
                        "\xc2\x9b"
                        "2J",
                        "\xe2\x80\xae"
                        "rtl",
                        "\r\n")) {
    body(kb, 1);
    kb_note(kb, "of %s", kb_str(kb, "what"));
}
KBENCH_IMPL(many, default, KB_AXIS("a", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), KB_AXIS("b", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)) {
    body(kb, 1);
}
KBENCH(slow) { body(kb, 1000); }
KBENCH_MAIN()
