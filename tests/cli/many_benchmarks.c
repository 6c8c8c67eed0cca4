// SPDX-License-Identifier: MIT OR Unlicense
// A large table of benchmarks, like that of a program that generates kernels: MANY operations with one implementation
// each, half of them with sizes, and PEERS implementations of one operation.
#include <stdio.h>
#include <stdlib.h>
#include "kbench.h"

static const kb_axis plain[] = { KB_AXIS("n", 8), KBI_AXES_END };
static const kb_axis sized[] = { KB_SIZE("small", "rows=1 cols=2"), KB_SIZE("large", "rows=64 cols=2,4"),
                                 KBI_AXES_END };

static void body(kb_state* kb) {
    KB_TIME(kb) { kb_keep(kb); }
}

int main(int argc, char** argv) {
    int many = atoi(getenv("MANY")), peers = atoi(getenv("PEERS"));
    kb_entry* table = (kb_entry*)calloc((size_t)(many + peers), sizeof(kb_entry));
    char(*names)[16] = (char(*)[16])calloc((size_t)(many + peers), sizeof *names);
    for (int i = 0; i < many + peers; i++) {
        snprintf(names[i], sizeof names[i], "%s%d", i < many ? "op" : "impl", i);
        if (i < many)
            table[i].operation = names[i], table[i].axes = i % 2 ? sized : plain;
        else
            table[i].operation = "contest", table[i].implementation = names[i];
        table[i].body = body;
        kb_add(&table[i]);
    }
    for (int i = 0; i < many + peers; i++) kb_add(&table[i]);
    return kb_main(argc, argv);
}
