// SPDX-License-Identifier: MIT OR Unlicense
// Reads records that another program has written.
//   shows FILE [-v] [--lines] [--sort LIST] [--columns LIST]     prints the same table as that program
//   shows FILE --json OTHER                                      writes the records to the file OTHER
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include "json.h"

static const char* here;
static void bad(const char* what) {
    fprintf(stderr, "shows: %s: '%.60s'\n", what, here);
    exit(2);
}

// n: number of bytes
static char* text_of(const char* s, int n) {
    char *out = (char*)malloc((size_t)n + 1), *to = out;
    for (const char *p = s + 1, *end = s + n - 1; p < end; ++p) {
        if (*p != '\\') {
            *to++ = *p;
            continue;
        }
        const char *escapes = "n\nt\tr\rb\bf\f", *at = strchr(escapes, *++p);
        unsigned code = (unsigned char)*p;
        if (*p == 'u') {
            char digits[5] = { p[1], p[2], p[3], p[4], 0 };
            code = (unsigned)strtoul(digits, NULL, 16);
            p += 4;
        } else if (at) {
            code = (unsigned char)at[1];
        }
        if (code >= 0x800) *to++ = (char)(0xe0 | code >> 12);
        if (code >= 0x80) *to++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 63) : 0xc0 | code >> 6);
        *to++ = (char)(code >= 0x80 ? 0x80 | (code & 63) : code);
    }
    *to = 0;
    return out;
}

// returns the end of a value inside a list or an object
static const char* value_end(const char* p) {
    if (*p != '"') return p + strcspn(p, ",]} \n");
    for (++p; *p != '"'; ++p) p += *p == '\\';
    return p + 1;
}

static kb_param* params_of(const char* p, int64_t* n) {
    kb_param* all = (kb_param*)calloc(64, sizeof *all);
    for (*n = 0, p = json_space(p + 1); *p != '}' && *n < 64; p = json_space(p + (*p == ','))) {
        kb_param* x = &all[(*n)++];
        const char* end = value_end(p);
        x->name = text_of(p, (int)(end - p));
        p = json_space(json_space(end) + 1);
        end = value_end(p);
        x->type = *p == '"'                                                                ? KB_AXIS_STRINGS
                  : memchr(p, '.', (size_t)(end - p)) || memchr(p, 'e', (size_t)(end - p)) ? KB_AXIS_REALS
                                                                                           : KB_AXIS_INTS;
        if (x->type == KB_AXIS_STRINGS) x->s = text_of(p, (int)(end - p));
        if (x->type == KB_AXIS_REALS) x->r = strtod(p, NULL);
        if (x->type == KB_AXIS_INTS) x->i = strtoll(p, NULL, 10);
        p = json_space(end);
    }
    return all;
}

static double* samples_of(const char* p, int64_t* n) {
    double* all = (double*)calloc(10001, sizeof *all);
    for (*n = 0, p = json_space(p + 1); *p != ']' && *n < 10000; p = json_space(p + (*p == ','))) {
        all[(*n)++] = strtod(p, NULL);
        p = json_space(value_end(p));
    }
    return all;
}

static uint64_t flags_of(const char* p) {
    uint64_t flags = 0;
    for (p = json_space(p + 1); *p != ']'; p = json_space(p + (*p == ','))) {
        const char* end = value_end(p);
        int f = 0;
        while (f < KB_FLAG_COUNT && (strlen(kb_flag_name((kb_flag)f)) != (size_t)(end - p) - 2 ||
                                     memcmp(kb_flag_name((kb_flag)f), p + 1, (size_t)(end - p) - 2) != 0))
            ++f;
        if (f == KB_FLAG_COUNT) bad("no such flag");
        flags |= (uint64_t)1 << f;
        p = json_space(end);
    }
    return flags;
}

static void fill(kb_result* r, const kbi_key* key, const json_field* x) {
    void* field = (char*)r + key->offset;
    char* text = *x->value == '"' ? text_of(x->value, x->value_n) : NULL;
    here = x->key;
    if (*x->value == 'n') return; // null: the field keeps the value of a cleared record
    switch (key->kind) {
    case KBI_KIND_text: *(const char**)field = text; break;
    case KBI_KIND_real: *(double*)field = strtod(x->value, NULL); break;
    case KBI_KIND_whole: *(int64_t*)field = strtoll(x->value, NULL, 10); break;
    case KBI_KIND_truth: *(int*)field = *x->value == 't'; break;
    case KBI_KIND_params: ((kbi_field_params*)field)->of = params_of(x->value, &((kbi_field_params*)field)->n); break;
    case KBI_KIND_samples:
        ((kbi_field_samples*)field)->of = samples_of(x->value, &((kbi_field_samples*)field)->n);
        break;
    case KBI_KIND_flags: *(uint64_t*)field = flags_of(x->value); break;
    case KBI_KIND_status:
        for (int s = KB_OK; s <= KB_SKIPPED; ++s)
            if (strcmp(kbi_status_name((kb_status)s), text) == 0) *(kb_status*)field = (kb_status)s;
        break;
    case KBI_KIND_verdict:
        for (int v = KB_FASTER; v <= KB_UNRESOLVED; ++v)
            if (strcmp(kbi_verdict_name((kb_verdict)v), text) == 0) *(kb_verdict*)field = (kb_verdict)v;
        break;
    }
}

int main(int argc, char** argv) {
    kbi_how how;
    kbi_table table;
    const char* again = NULL;
    int lines = 0;
    kbi_how_default(&how, stdout);
    for (int i = 2; i < argc; ++i) {
        if (strcmp(argv[i], "-v") == 0) how.verbose = true;
        if (strcmp(argv[i], "--lines") == 0) lines = 1;
        if (strcmp(argv[i], "--sort") == 0) how.sort = argv[++i];
        if (strcmp(argv[i], "--columns") == 0) how.columns = argv[++i];
        if (strcmp(argv[i], "--json") == 0) again = argv[++i];
    }
    json_file f = json_read(argv[1], lines);
    if (f.error[0]) {
        fprintf(stderr, "shows: %s\n", f.error);
        return 2;
    }
    kb_result* results = (kb_result*)calloc((size_t)f.n + 1, sizeof *results);
    for (int i = 0; i < f.n; ++i) {
        kbi_result_clear(&results[i]);
        if (f.records[i].n != KBI_COUNT(kbi_keys)) bad("the number of keys differs from the table of keys");
        for (int k = 0; k < KBI_COUNT(kbi_keys); ++k) fill(&results[i], &kbi_keys[k], &f.records[i].of[k]);
    }
    (void)json_get;
    if (again) return kb_write_json(results, f.n, again) ? 0 : 1;
    kbi_table_open(&table, &how);
    kbi_table_add(&table, results, f.n);
    kbi_table_end(&table);
    return 0;
}
