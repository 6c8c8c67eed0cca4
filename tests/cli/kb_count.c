// SPDX-License-Identifier: MIT OR Unlicense
// Valid and invalid counters of a program, for kb_count.sh.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kbench.h"

static void block(kb_state* kb) {
    KB_TIME(kb) {
        for (int kept = 0; kept < 50; kept++) kb_keep(kb);
    }
}
KBENCH_IMPL(counted, naive, KB_AXIS("n", 1, 2)) {
    kb_count(kb, "hits", 1, "");
    block(kb);
    kb_count(kb, "hits", 1234567.0 * (double)kb_int(kb, "n"), "");
    kb_count(kb, "hit_ratio", 0.123456789, "%");
    kb_count(kb, "real_time", 2, "ms"); // counters whose names are keys of other output formats
}
KBENCH_IMPL(counted, other, KB_AXIS("n", 1, 2)) {
    block(kb);
    kb_count(kb, "misses", 1e20, "1/launch");
}
KBENCH(none) { block(kb); }
KBENCH(many) {
    block(kb);
    for (int i = 0; i < 17; i++) {
        char name[8];
        snprintf(name, sizeof name, "c%d", i % (getenv("COUNT_MORE") ? 17 : 16));
        kb_count(kb, name, i, NULL);
    }
}
KBENCH_IMPL(wrong, only, KB_AXIS_STR("what", "empty", "capital", "long", "blank", "unit", "nan", "null")) {
    const char* what = kb_str(kb, "what");
    block(kb);
    if (!strcmp(what, "empty")) kb_count(kb, "", 1, "");
    if (!strcmp(what, "null")) kb_count(kb, NULL, 1, "");
    if (!strcmp(what, "capital")) kb_count(kb, "Hits", 1, "");
    if (!strcmp(what, "long"))
        kb_count(kb, "a123456789012345678901234567890123456789012345678901234567890123", 1, "");
    if (!strcmp(what, "blank")) kb_count(kb, "hits", 1, "per launch");
    if (!strcmp(what, "unit")) kb_count(kb, "hits", 1, "abcdefghijklmnopqrstuvwxyz012345"); // of 32
    if (!strcmp(what, "nan")) kb_count(kb, "hits", (double)NAN, "");
}
int main(int argc, char** argv) {
    if (argc > 1 && !strcmp(argv[1], "open")) { // and without a registry
        kb_desc desc = { 0 };
        desc.name = "opened";
        desc.samples = 3;
        kb_state* kb = kb_open(&desc);
        block(kb);
        kb_count(kb, "hits", 7, "1/s");
        // a counter whose name has the maximum length
        kb_count(kb, "a12345678901234567890123456789012345678901234567890123456789012", 8,
                 "abcdefghijklmnopqrstuvwxyz01234");
        kb_result r = kb_close(kb);
        printf("%s %g %s\n", r.counters.of[0].name, r.counters.of[0].r, r.counter_units.of[0].s);
        printf("%zu %zu\n", strlen(r.counters.of[1].name), strlen(r.counter_units.of[1].s));
        kb_result_free(&r);
        return 0;
    }
    return kb_main(argc, argv);
}
