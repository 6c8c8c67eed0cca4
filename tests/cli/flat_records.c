// SPDX-License-Identifier: MIT OR Unlicense
// Validates a file of records and prints a line "RECORD<tab>KEY<tab>VALUE" for every field, for grep and awk. flat
// FILE reads an array, flat --lines FILE one object per line.
#include "json.h"

int main(int argc, char** argv) {
    int lines = argc > 2 && strcmp(argv[1], "--lines") == 0;
    if (argc < 2 + lines) return 2;
    json_file f = json_read(argv[1 + lines], lines);
    if (f.error[0]) {
        fprintf(stderr, "%s: %s\n", argv[1 + lines], f.error);
        return 1;
    }
    for (int i = 0; i < f.n; ++i)
        for (int j = 0; j < f.records[i].n; ++j) {
            const json_field* x = &f.records[i].of[j];
            printf("%d\t%.*s\t%.*s\n", i, x->key_n, x->key, x->value_n, x->value);
        }
    (void)json_get;
    json_free(&f);
    return 0;
}
