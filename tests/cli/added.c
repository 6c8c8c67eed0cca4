// Entries that a program makes itself and hands to kb_add, as a table of kernels does: what only a GPU can
// run, where they come from, their place on a ladder, their notes and their data.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <stdio.h>

static void body(kb_state* kb) {
    const int* wanted = (const int*)kb->user;
    KB_TIME(kb) { kb_keep(wanted); }
    kb_check_that(kb, wanted && *wanted == kb_int(kb, "n"), 0, 0, "user data says %d", wanted ? *wanted : -1);
}
static int seven = 7;
static const kb_axis axes[] = { KB_AXIS("n", 7), { 0, KB_AXIS_END, { 0 }, { 0 }, { 0 } } };
static kb_entry table[4];

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
    return kb_main(argc, argv);
}
