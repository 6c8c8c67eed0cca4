// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks whose table has every kind of column, row and message, with scripted times (--device script) or the
// real clock.
#include <string.h>
#include "kbench.h"
#include "hooks.h"

static double noise(int64_t i) { // -1 to 1, the same on every run: SplitMix64
    uint64_t z = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 4503599627370496.0 - 1;
}

// Returns the time of sample i in ns: 10 us, or the time in the implementation's name.
static double script(const char* name, int64_t i, uint64_t* flags) {
    double steady = 10000 * (1 + 0.002 * noise(i));
    if (strstr(name, "impl=half")) return steady / 2;
    if (strstr(name, "impl=triple")) return steady * 3;
    if (strstr(name, "impl=wild")) return steady * (1 + 0.3 * noise(7 * i));
    if (strstr(name, "impl=flagged")) {
        *flags = (uint64_t)1 << KB_FLAG_THROTTLED | (uint64_t)1 << KB_FLAG_SHARED_GPU | (uint64_t)1 << KB_FLAG_LEAK |
                 (uint64_t)1 << KB_FLAG_CLOCK_VARIES;
        return steady * (i % 13 == 4 ? 3 : 1);
    }
    if (strstr(name, "impl=drifts")) return steady * (1 + 0.001 * (double)i);
    if (strstr(name, "impl=dies") && i == 3) *flags = (uint64_t)1 << KB_FLAG_CUDA_ERROR;
    if (strstr(name, "n=1048576")) return steady * 1000;
    return steady;
}

static void body(kb_state* kb, double bytes, double flops, double items) {
    KB_TIME(kb) {
        for (int i = 0; i < 300; i++) kb_keep(i);
    }
    if (bytes > 0) kb_bytes(kb, bytes);
    if (flops > 0) kb_flops(kb, flops);
    if (items > 0) kb_items(kb, items);
    kb_check_that(kb, true, 0, 0, "fine");
}

// operations with one case: columns appear only for the cases that need them
KBENCH(bare) { body(kb, 0, 0, 0); }
KBENCH(moves) { body(kb, 5e3, 0, 0); }
KBENCH(computes) { body(kb, 0, 2e4, 0); }
KBENCH_IMPL(turns, once, KB_AXIS_STR("dir", "fwd", "bwd"), KB_DTYPE("f32")) { body(kb, 0, 0, 12); }
KBENCH(an_operation_whose_name_is_longer_than_its_column) { body(kb, 1e3, 1e3, 1e3); }
KBENCH(told_off) { kb_fail(kb, "line\nbreak, \xc3\xa9, \xff, tab\t and \x1b[31m colour"); }
KBENCH(left_out) { kb_skip(kb, "not on a weekday"); }
KBENCH_IMPL(noted, unverified, KB_AXIS_STR("what", "\xc3\xa9t\xc3\xa9", "bad\xff\xfe", "tab\there", "")) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
    kb_note(kb, "a note of some length that has to be wrapped, so that nothing of it is lost: %s",
            kb_str(kb, "what"));
}
// comparisons: with a significant winner; without one; with implementations that have no time
#define SHAPES KB_DTYPE("f32", "bf16"), KB_AXIS("rows", 16, 512), KB_AXIS("cols", 4096)
KBENCH_IMPL(sure, base, SHAPES) { body(kb, 4e3, 1e4, 0); }
KBENCH_IMPL(sure, half, SHAPES) { body(kb, 4e3, 1e4, 0); }
KBENCH_IMPL(sure, triple, SHAPES) { body(kb, 4e3, 1e4, 0); }
KBENCH_IMPL(unsure, base, KB_AXIS_STR("dir", "fwd", "bwd")) { body(kb, 4e3, 0, 0); }
KBENCH_IMPL(unsure, equal, KB_AXIS_STR("dir", "fwd", "bwd")) { body(kb, 4e3, 0, 0); }
KBENCH_IMPL(unsure, wild, KB_AXIS_STR("dir", "fwd")) { body(kb, 4e3, 0, 0); }
KBENCH_IMPL(mixed, wrong, KB_AXIS("n", 1, 2)) {
    body(kb, 0, 0, 0);
    kb_check_that(kb, false, 1, 0, "it is not what it should be");
}
KBENCH_IMPL(mixed, flagged, KB_AXIS("n", 1, 2)) { body(kb, 4e3, 0, 0); }
KBENCH_IMPL(mixed, skipped, KB_AXIS("n", 1, 2)) { kb_skip(kb, "no such instruction"); }
KBENCH_IMPL(mixed, dies, KB_AXIS("n", 1, 2)) { body(kb, 4e3, 0, 0); }
KBENCH_IMPL(mixed, drifts, KB_AXIS("n", 1)) { body(kb, 4e3, 0, 0); }
KBENCH_IMPL(mixed, an_implementation_with_a_name_that_is_long, KB_AXIS("n", 1, 2)) { body(kb, 4e3, 5e3, 6e3); }
// sweeps: long labels, axes of reals and of strings, rates from small to large
KBENCH_IMPL(sweep, default, KB_DTYPE("f64"), KB_AXIS("batch_size", 1, 64), KB_AXIS("sequence_length", 128, 2048),
            KB_AXIS("tensor_dimension", 4096)) {
    body(kb, 1e6, 0, 0);
}
KBENCH_IMPL(real, default, KB_AXIS_REAL("p", 0.1, 1.0, 3.0, 1e-300, 1e300, -0.5, 1e22),
            KB_AXIS_REAL("probability", 2.0)) {
    body(kb, 0, 0, 3);
}
KBENCH_IMPL(words, default, KB_AXIS_STR("mode", "train", "eval_with_something_that_is_long"), KB_AXIS("n", 64)) {
    body(kb, 0, 1e3, 0);
}
KBENCH_IMPL(rates, default, KB_AXIS("n", 1, 1024, 1048576)) {
    double n = (double)kb_int(kb, "n");
    body(kb, 0, n * n, n * 1e4);
}

int main(int argc, char** argv) {
    hook_script(script);
    return kb_main(argc, argv);
}
