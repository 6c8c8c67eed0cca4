// SPDX-License-Identifier: MIT OR Unlicense
// Entries that a program passes to kb_add, as a program with a generated table of kernels does. ADDED selects an
// additional, invalid entry.
#include "kbench.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void body(kb_state* kb) {
    const int* wanted = (const int*)kb->user;
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(wanted);
    }
    kb_check_that(kb, wanted && *wanted == kb_int(kb, "n"), 0, 0, "user data says %d", wanted ? *wanted : -1);
}
static int seven = 7;
static const kb_axis axes[] = { KB_AXIS("n", 7), { 0, KB_AXIS_END, { 0 }, { 0 }, { 0 } } };
static kb_entry table[4];

static const kb_axis empty[] = { KB_AXIS("m", KB_LAST_INT), KBI_AXES_END };
static const kb_axis nameless[] = { KB_AXIS(NULL, 1), KBI_AXES_END };
static const kb_axis twice[] = { KB_AXIS("m", 1, 2), KB_AXIS("m", 3), KBI_AXES_END };
static const kb_axis typed[] = { KB_DTYPE("f32", "fp16"), KBI_AXES_END };
static const kb_axis no_number[] = { KB_AXIS_REAL("p", 1, NAN, 2), KBI_AXES_END };
static const kb_axis infinite[] = { KB_AXIS_REAL("p", 0.5, INFINITY, -INFINITY, 1.7976931348623157e308),
                                    KBI_AXES_END };
static const kb_axis numbered[] = { KB_AXIS("dir", 1, 2), KB_AXIS("n", 7), KBI_AXES_END };
static const kb_axis scaled[] = { KB_AXIS_REAL("dir", 0.25, 0.5), KB_AXIS("n", 7), KBI_AXES_END };
static const kb_axis from_zero[] = { KB_AXIS("m", 0, 4), KB_AXIS("shift", -1, 1), KB_AXIS("n", 4), KBI_AXES_END };
static const kb_axis sizes[] = { KB_SIZE("small", "m=1 n=1"), KB_SIZE("edge", "m=0 n=1"), KBI_AXES_END };
static const kb_axis null[] = { KB_AXIS_STR("m", "a", NULL, "b"), KBI_AXES_END };
static const kb_axis lowest[] = { KB_AXIS("m", 1, KB_LAST_INT, 2), KBI_AXES_END };
static kb_axis endless[] = { KB_AXIS("m", 1), KBI_AXES_END };
static const kb_axis counted[] = { KB_AXIS("dtype", 32), KBI_AXES_END };
static const kb_axis rows_first[] = { KB_AXIS("rows", 1, 2), KB_AXIS("cols", 3), KBI_AXES_END };
static const kb_axis cols_first[] = { KB_AXIS("cols", 3), KB_AXIS("rows", 1, 2), KBI_AXES_END };
static void plain(kb_state* kb) {
    KB_TIME(kb) {
        for (int i = 0; i < 1000; i++) kb_keep(i);
    }
    kb_check_that(kb, true, 0, 0, "fine");
}
static void direction(kb_state* kb) { // a numeric axis may have the name of the direction
    double want = kb->implementation[0] == 'i' ? (double)kb_int(kb, "dir") : kb_real(kb, "dir");
    if (!kb_has(kb, "dir") || kb->direction || want <= 0) kb_fail(kb, "dir is %g", want);
    plain(kb);
    kb_note(kb, "dir is %g", want);
}
// Benchmark functions that return after each call of kb_loop, so kbench never has to suspend them in the middle of
// a loop.
static int inside, runs, resets, set_up;
static void step(kb_stream stream, void* user) {
    (void)stream, (void)user;
    runs++;
    for (int i = 0; i < 20000; i++) kb_keep(i);
}
static void reset(kb_stream stream, void* user) {
    (void)stream, (void)user;
    resets++;
}
static void returning(kb_state* kb) {
    static int begun[2];
    bool later = kb->implementation[0] == 'l', alone = inside++ == 0;
    set_up += !begun[later];
    begun[later] = 1;
    bool over = kb_loop(kb, true, later ? reset : NULL, step, NULL);
    inside--;
    if (!over) return;
    begun[later] = 0;
    kb_check_that(kb, alone && runs >= resets && (!later || resets > 0), 0, 0, "suspended");
    kb_note(kb, "set up %s", set_up < 8 ? "once a call" : "again and again");
}
static const struct {
    const char *kind, *operation, *implementation;
    const kb_axis* axes;
} odd[] = {
    { "empty", "odd", "i", empty },           { "nameless", "odd", "i", nameless },
    { "twice", "odd", "i", twice },           { "typed", "odd", "i", typed },
    { "null", "odd", "i", null },             { "lowest", "odd", "i", lowest },
    { "endless", "odd", "i", endless },
    { "counted", "odd", "i", counted },       { "unnamed", NULL, "i", NULL },
    { "unnamed", "odd", NULL, NULL },         { "same", "ladder", "naive", axes },
    { "order", "order", "rows", rows_first }, { "order", "order", "cols", cols_first },
    { "nan", "odd", "i", no_number },         { "infinite", "odd", "i", infinite },
    { "numbered", "odd", "ints", numbered },  { "numbered", "odd", "reals", scaled },
    { "zero", "odd", "i", from_zero },        { "sizes", "odd", "i", sizes },
    { "returns", "turns", "now", axes },      { "returns", "turns", "later", axes },
};
static kb_entry more[sizeof odd / sizeof *odd];

int main(int argc, char** argv) {
    static const char* const names[] = { "naive", "vec", "gpu_only", "cpu_only" };
    for (int i = 0; i < 4; ++i) {
        kb_entry* e = &table[i];
        e->operation = i == 2 ? "on_gpu" : "ladder";
        e->implementation = names[i];
        e->body = body;
        e->user = &seven;
        e->axes = axes;
        e->rung = i + 1;
    }
    table[0].note = "one thread per element";
    table[1].origin = "vendor";
    table[2].needs = KB_NEEDS_GPU;
    table[3].needs = KB_NEEDS_CPU;
    for (int i = 0; i < 4; ++i) kb_add(&table[i]);
    const char* kind = getenv("ADDED");
    for (int i = 0; i <= KB_AXIS_MAX; i++) endless[0].i[i] = i + 1;
    for (int i = 0; kind && i < (int)(sizeof odd / sizeof *odd); ++i) {
        if (strcmp(odd[i].kind, kind) != 0) continue;
        more[i].operation = odd[i].operation;
        more[i].implementation = odd[i].implementation;
        more[i].axes = odd[i].axes;
        more[i].returns = strcmp(kind, "returns") == 0;
        more[i].body = more[i].returns ? returning : strcmp(kind, "numbered") == 0 ? direction : plain;
        kb_add(&more[i]);
    }
    if (kind && strcmp(kind, "again") == 0) kb_add(&table[1]);
    return kb_main(argc, argv);
}
