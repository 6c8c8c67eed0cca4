// SPDX-License-Identifier: MIT OR Unlicense
// Fuzz target: arbitrary bytes as values of -a NAME= and KB_SIZE, and as numbers, times and processor lists. Accepted
// values must be within their bounds. If they are printed and parsed again, the list must be the same.
#include "fuzz.h"

static void check_value(const kb_param* p, kb_axis_type type) {
    if (p->type != type || !p->name) abort();
    if (type == KB_AXIS_STRINGS ? !p->s || !*p->s : kbi_nan(p->r)) abort(); // commas in brackets and quotes do not separate values
    if (type == KB_AXIS_INTS && (p->i <= -1000000000000000 || p->i >= 1000000000000000 || p->r != (double)p->i))
        abort();
    for (const char* s = type == KB_AXIS_STRINGS ? p->s : ""; *s; s++)
        if (kbi_starts_invisible(s)) abort();
}

static void check_list(kbi_arena* a, const kbi_dimension* d) {
    kbi_text out = { NULL, 0, 0 };
    char number[40];
    if (d->n < 0 || d->n > KBI_VALUES) abort();
    for (int i = 0; i < d->n; i++) {
        const kb_param* p = &d->values[i];
        check_value(p, d->type);
        if (i) kbi_puts(&out, ",");
        if (d->type == KB_AXIS_STRINGS) kbi_puts(&out, p->s);
        if (d->type == KB_AXIS_REALS) kbi_puts(&out, kbi_number(p->r, number));
        if (d->type == KB_AXIS_INTS) kbi_putf(&out, "%lld", (long long)p->i);
    }
    kbi_dimension again = kbi_parse_list(a, d->name, d->type, out.n ? out.s : "", out.n);
    if (again.n != d->n) abort();
    for (int i = 0; i < d->n; i++) {
        const kb_param *p = &d->values[i], *q = &again.values[i];
        if (p->i != q->i || !kbi_same_text(p->s, q->s) || memcmp(&p->r, &q->r, sizeof p->r) != 0) abort();
    }
    kbi_text_free(&out);
}

static void check_words(const char* s) {
    kbi_cpus cpus;
    int64_t whole = 0;
    double time = kbi_parse_time(s);
    static kbi_options o;
    if (time != -1 && (!(time >= 0) || !kbi_finite(time))) abort();
    if (kbi_parse_whole(s, -5, 1000, &whole) && (whole < -5 || whole > 1000)) abort();
    if (kbi_option_set(&o, KBI_OPTION_precision, s) && !(o.precision > 0 && o.precision <= 1)) abort();
    kbi_cpus_parse(s, &cpus);
}

FUZZ_MAIN(":", "*", "+", ",", "^", "e", "inf", "nan", "-", "0", "1e308", "1e-320", "0x", ".", "rows=", " ", "4096",
          "1:", ":*2", ":+1", "999999999999999", "ms", "min", "%", "{", "}", "(", ")", "[", "]", "\\") {
    static const kb_axis_type types[] = { KB_AXIS_INTS, KB_AXIS_REALS, KB_AXIS_STRINGS };
    kbi_arena arena = { NULL, 0, 0 };
    kbi_dimension of_size[KBI_DIMENSIONS];
    int n = 0;
    char* s = kbi_arena_text_n(&arena, (const char*)data, size);
    fuzz_said();
    for (int i = 0; i < KBI_COUNT(types); i++) {
        kbi_dimension d = kbi_parse_list(&arena, "x", types[i], s, strlen(s));
        check_list(&arena, &d);
    }
    if (!kbi_size_dimensions(&arena, s, of_size, &n))
        for (int i = 0; i < n; i++) check_list(&arena, &of_size[i]);
    if (n < 0 || n > KBI_DIMENSIONS) abort();
    check_words(s);
    kbi_arena_free(&arena);
    return 0;
}
