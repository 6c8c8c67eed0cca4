// SPDX-License-Identifier: MIT OR Unlicense
// Tests texts that people read: growing buffers, numbers with units, columns, the progress line, kb_print, and
// suggestions for misspelt names.
#include "test.h"
#include "guarded.h"
#include <stdlib.h>
#include <unistd.h>
#include "kit.h"

static struct {
    FILE* to;
    int stream, kept;
    char text[8192];
} held;
static void hold(FILE* f) {
    fflush(f);
    held.to = tmpfile();
    held.stream = fileno(f), held.kept = dup(held.stream);
    dup2(fileno(held.to), held.stream);
}
static const char* caught(FILE* f) {
    fflush(f);
    dup2(held.kept, held.stream), close(held.kept);
    rewind(held.to);
    held.text[fread(held.text, 1, sizeof held.text - 1, held.to)] = 0;
    fclose(held.to);
    return held.text;
}

static void test_growing(void) {
    char long_one[2000];
    kbi_text t = { NULL, 0, 0 };
    size_t n = 0;
    // kbi_putf first formats into a small buffer; these lengths are just below and above the size of that buffer
    for (int size = 509; size < 515; size++) {
        memset(long_one, 'a' + size % 26, sizeof long_one), long_one[size] = 0;
        kbi_putf(&t, "%s", long_one);
        n += (size_t)size;
        CHECK_INT(t.n, n), CHECK_INT(strlen(t.s), n), CHECK_INT(t.s[n - 1], 'a' + size % 26), CHECK(t.size > n);
        kbi_puts(&t, "|"), n++;
    }
    kbi_text_free(&t);
    CHECK(!t.s && !t.n && !t.size);
    for (int i = 0; i < 300; i++) kbi_putf(&t, "%c%d,", 'x', i % 10);
    CHECK_INT(t.n, 900), CHECK(strncmp(t.s + 897, "x9,", 4) == 0 && strncmp(t.s, "x0,x1,", 6) == 0);
    kbi_text_free(&t);
    kbi_arena a;
    char* pieces[200];
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 200; i++) {
        size_t size = (size_t)(i * 53 % 400 + (i % 50 == 7 ? 9000 : 1));
        pieces[i] = (char*)kbi_arena_alloc(&a, size);
        CHECK_INT((uintptr_t)pieces[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            if (pieces[i][k]) CHECK_THAT(0, "block %d: byte %d is not zero", i, (int)k);
        memset(pieces[i], i, size);
    }
    for (int i = 0; i < 200; i++) CHECK_INT((unsigned char)pieces[i][i * 53 % 400], i);
    kbi_arena_free(&a);
    CHECK(!a.block && !a.used && !a.size);
}

static void test_names(void) {
    static const struct {
        const char *a, *b;
        int apart;
    } rows[] = { { "rows", "rows", 0 }, { "rows", "ROWS", 0 }, { "rows", "row", 1 },       { "row", "rows", 1 },
                 { "rows", "raws", 1 }, { "rows", "orws", 1 }, { "kitten", "sitting", 3 }, { "", "abc", 3 },
                 { "abc", "", 3 },      { "flaw", "lawn", 2 }, { "ab", "ba", 1 },          { "gelu", "silu", 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_THAT(kbi_distance(rows[i].a, rows[i].b) == rows[i].apart, "%s and %s are %d apart", rows[i].a,
                   rows[i].b, kbi_distance(rows[i].a, rows[i].b));
    kbi_nearest best = { "tanhh", NULL, 64 };
    static const char* const offered[] = { "relu", "tanh", "tanh2", NULL };
    for (int i = 0; i < 4; i++) kbi_offer(&best, offered[i]);
    CHECK_STR(best.name, "tanh"), CHECK_INT(best.distance, 1);
    static const char* const parts[][2] = { { "p99", "time_ms_p99" },
                                            { "min", "time_ms_min" },
                                            { "speed", "speedup" } };
    for (int i = 0; i < 3; i++) {
        kbi_nearest key = { parts[i][0], NULL, 64 };
        kbi_offer(&key, "speedup");
        for (int k = 0; k < KBI_COUNT(kbi_keys); k++) kbi_offer(&key, kbi_keys[k].name);
        CHECK_STR(key.name, parts[i][1]);
    }
    CHECK(kbi_same_name("LayerNorm", "layer-norm") && kbi_same_name("a_b", "AB") && !kbi_same_name("ab", "abc"));
    CHECK(!kbi_same_name("abc", "ab") && !kbi_same_name(NULL, "a") && !kbi_same_name("a", NULL));
    CHECK(kbi_lists("a,bc,d", "BC") && kbi_lists("a,bc,d", "d") && !kbi_lists("a,bc,d", "b") && !kbi_lists("", "a"));
    CHECK_STR(kb_dtype_name(KB_BF16), "bf16"), CHECK_STR(kb_dtype_name(KB_NODTYPE), "none");
    for (int i = KB_F32; i <= KB_U64; i++) CHECK_INT(kb_dtype_of(kb_dtype_name((kb_dtype)i)), i);
    CHECK_INT(kb_dtype_of("f3"), KB_NODTYPE);
    static const int bytes[] = { 0, 4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8 };
    for (int i = 0; i <= KB_U64; i++) CHECK_INT(kb_dtype_size((kb_dtype)i), bytes[i]);
    for (int i = 0; i < KB_FLAG_COUNT; i++)
        CHECK_THAT(kb_flag_is_error((kb_flag)i) == (i <= KB_FLAG_BAD_CASE), "%s", kb_flag_name((kb_flag)i));
}

static void test_numbers(void) {
    char out[40];
    static const struct {
        double ms;
        const char* want;
    } times[] = { { 1, "1.000 ms" },      { 0.99994, "999.9 us" }, { 0.99999, "1.000 ms" },  { 0.001, "1.000 us" },
                  { 0.0009, "900.0 ns" }, { 999.9, "999.9 ms" },   { 1000, "1.000 s" },      { 0.04123, "41.23 us" },
                  { 999.99, "1.000 s" },  { 61000, "61.00 s" },    { 0.0000012, "1.200 ns" } };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        CHECK_STR(kbi_show_time(times[i].ms, out), times[i].want);
    static const struct {
        double x;
        int digits;
        const char* want;
    } digits[] = { { 9.9999, 4, "10.00" },    { 0, 3, "0.00" },    { 123456, 3, "123456" },
                   { 0.012345, 3, "0.0123" }, { -2.5, 2, "-2.5" }, { 1e-12, 3, "0.000000000" } };
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++)
        CHECK_STR(kbi_digits(digits[i].x, digits[i].digits, out), digits[i].want);
    CHECK_STR(kbi_number(0.1, out), "0.1"), CHECK_STR(kbi_number(1.0 / 3, out), "0.3333333333333333");
    CHECK_STR(kbi_number(0.1 + 0.2, out), "0.30000000000000004"), CHECK_STR(kbi_number(1e300, out), "1e+300");
    // UTF-8: first and last sequence of each length, and invalid sequences
    static const struct {
        const char* s;
        int n;
    } bytes[] = { { "a", 1 },
                  { "\xc2\x80", 2 },
                  { "\xdf\xbf", 2 },
                  { "\xe0\xa0\x80", 3 },
                  { "\xef\xbf\xbf", 3 },
                  { "\xf0\x90\x80\x80", 4 },
                  { "\xf4\x8f\xbf\xbf", 4 },
                  { "\x80", 0 },
                  { "\xc1\xbf", 0 },
                  { "\xe0\x9f\xbf", 0 },
                  { "\xed\xa0\x80", 0 },
                  { "\xed\x9f\xbf", 3 },
                  { "\xf0\x8f\xbf\xbf", 0 },
                  { "\xf4\x90\x80\x80", 0 },
                  { "\xf5\x80\x80\x80", 0 },
                  { "\xc3(", 0 },
                  { "\xe1\x80(", 0 } };
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        unsigned code;
        CHECK_THAT(kbi_utf8(bytes[i].s, &code) == bytes[i].n, "sequence %d: %d", (int)i, kbi_utf8(bytes[i].s, &code));
    }
}

// --- a column ---

static kb_result rows[3];
static const kb_result* const all[] = { &rows[0], &rows[1], &rows[2] };
static kbi_cell cell_of(const char* name) {
    kbi_cell c;
    memset(&c, 0, sizeof c);
    CHECK(kbi_shown_named("columns", name, &c.what));
    c.scale = 1, c.width = 8;
    if (strcmp(name, "time") == 0) c.scale = 1e3;
    return c;
}
static const char* cell(const char* name) {
    static char out[80];
    kbi_cell c = cell_of(name);
    kbi_text t = { NULL, 0, 0 };
    kbi_cell_text(&t, &c, &rows[0]);
    snprintf(out, sizeof out, "%s", t.s);
    kbi_text_free(&t);
    return out;
}
static void test_columns(void) {
    for (int i = 0; i < 3; i++) kbi_result_clear(&rows[i]);
    kb_result* r = &rows[0];
    CHECK_STR(cell("time"), "-"), CHECK_STR(cell("samples"), "-"), CHECK_STR(cell("verdict"), "-"),
        CHECK_STR(cell("ecc"), "-");
    r->time_ms = 0.5, r->precision = 0.0123, r->gpu_efficiency = 87.6, r->samples = 31, r->speedup = 1.234;
    r->verdict = KB_EQUIVALENT, r->throughput_gbps = 12.3456, r->gflops = 0.0012345, r->memory_bytes = 0, r->ecc = 0;
    r->kernel = "a\tb", r->status = KB_FAILED;
    CHECK_STR(cell("time"), "500.0"), CHECK_STR(cell("time_ms"), "0.5000"), CHECK_STR(cell("samples"), "31");
    CHECK_STR(cell("+-"), "1.2%"), CHECK_STR(cell("roof"), "87.6%"), CHECK_STR(cell("GB/s"), "12.35");
    CHECK_STR(cell("speedup"), "1.23="), CHECK_STR(cell("GFLOP/s"), "0.001234"), CHECK_STR(cell("memory"), "-");
    CHECK_STR(cell("ecc"), "no"), CHECK_STR(cell("kernel"), "a b"), CHECK_STR(cell("status"), "failed");
    CHECK_STR(cell("verdict"), "EQUIVALENT");
    r->verdict = KB_UNRESOLVED, r->memory_bytes = 1024, r->ecc = 1, r->time_ms = 0;
    CHECK_STR(cell("speedup"), "1.23~"), CHECK_STR(cell("memory"), "1024"), CHECK_STR(cell("ecc"), "yes");
    r->verdict = KB_FASTER;
    CHECK_STR(cell("speedup"), "1.23");
    // the unit suits the largest value if the smallest value then stays readable
    kbi_cell c = cell_of("items/s");
    static const struct {
        double a, b, scale;
        const char* title;
    } units[] = {
        { 5, 999, 1, "items/s" },           { 50, 1000, 1, "items/s" },     { 2e4, 2e6, 1e-3, "kitems/s" },
        { 3e9, 2e9, 1e-9, "Gitems/s" },     { 3e9, 2e6, 1e-6, "Mitems/s" }, { 0.1, 0.2, 1, "items/s" },
        { 50, 2e5, 1e-3, "kitems/s" },      { 5, 2e9, 1, "items/s" },       { 999900, 999900, 1e-3, "kitems/s" },
        { 999999.9, 1e6, 1e-6, "Mitems/s" }
    };
    for (int i = 0; i < KBI_COUNT(units); i++) {
        rows[0].items_per_second = units[i].a, rows[1].items_per_second = units[i].b;
        kbi_cell_unit(&c, all, 3);
        CHECK_STR(c.title, units[i].title), CHECK_REAL(c.scale, units[i].scale, 0);
        CHECK(kbi_cell_reads(&c, all, 3) == (i != 7));
    }
    c.scale = 1;
    rows[0].items_per_second = 2e5, rows[1].items_per_second = 50;
    CHECK(!kbi_cell_reads(&c, all, 3));
    rows[0].items_per_second = 99999;
    CHECK(kbi_cell_reads(&c, all, 3));
    rows[0].items_per_second = 0.001;
    CHECK(!kbi_cell_reads(&c, all, 3));
    c = cell_of("time"), c.scale = 1; // the unit is ms, although us would suit better
    rows[0].time_ms = 0.01, rows[1].time_ms = 0.02;
    CHECK(kbi_cell_reads(&c, all, 3));
    rows[0].time_ms = 0.0099;
    CHECK(!kbi_cell_reads(&c, all, 3));
    // 0.05 s is still readable, so the unit is s
    c.scale = 1e-3, rows[0].time_ms = 99999e3, rows[1].time_ms = 50;
    CHECK(kbi_cell_reads(&c, all, 3));
    c.scale = 1e3, rows[0].time_ms = 100;
    CHECK(!kbi_cell_reads(&c, all, 3));
    for (int i = 0; i < 3; i++) kb_result_free(&rows[i]);
}

// --- progress line ---

static void test_progress(void) {
    kbi_progress p;
    memset(&p, 0, sizeof p);
    unsetenv("COLUMNS");
    hold(stderr);
    p.on = kbi_terminal(stderr);
    kbi_progress_show(&p, 0, 7, "first");
    CHECK_STR(caught(stderr), "");
    p.on = true;
    kbi_progress_begin(&p, 400);
    kbi_progress_group(&p, 100);
    hold(stderr);
    kbi_progress_show(&p, 0, 7, "first");
    kbi_progress_show(&p, 0, 7, "at once again");
    CHECK_STR(caught(stderr), "\r[1/7]  first\033[K");
    static const struct {
        double finished;
        const char* says;
    } left[] = { { 380, "  10 s left" }, { 90, "  5 min left" }, { 300, "  90 s left" }, { 295, "  1.6 min left" } };
    for (int i = 0; i < 4; i++) {
        p.last = 0, p.began = kbi_now() - 10 * (int64_t)1000000000;
        p.finished = p.took = left[i].finished, p.group_began = 0;
        hold(stderr);
        kbi_progress_show(&p, 2, 7, "a_name_of_sixty_characters_that_is_cut_off_at_the_line's_end_is_it");
        const char* line = caught(stderr);
        CHECK_THAT(strncmp(line, "\r[3/7]  ", 8) == 0 && strstr(line, left[i].says), "line %d: %s", i, line + 1);
        CHECK_HAS(line, "  a_name_of_sixty_characters_");
        CHECK_HAS(line, "..."), CHECK_HAS(line, "_line's_end_is_it\033[K");
        CHECK_INT(strlen(line), 79 + strlen("\r\033[K"));
    }
    p.last = 0, p.finished = p.took = 300;
    hold(stderr);
    kbi_progress_show(&p, 2, 7, "a\x1b]0;name\x07\r\n");
    CHECK_STR(caught(stderr), "\r[3/7]  90 s left  a\\x1b]0;name\\x07  \033[K");
    setenv("COLUMNS", "40", 1), p.last = 0;
    hold(stderr);
    kbi_progress_show(&p, 2, 7, "seven_by_seven");
    CHECK_STR(caught(stderr), "\r[3/7]  90 s left  seven_by_seven\033[K");
    unsetenv("COLUMNS");
    hold(stderr);
    kbi_progress_clear(&p), kbi_progress_clear(&p);
    CHECK_STR(caught(stderr), "\r\033[K");
    kbi_progress_begin(&p, 50);
    CHECK_REAL(p.allowed, 50, 0), CHECK_REAL(p.finished, 0, 0), CHECK_REAL(p.took, 0, 0);
    p.began -= 5 * (int64_t)1000000000;
    kbi_progress_group(&p, 20);
    CHECK_REAL(p.current, 20, 0), CHECK_REAL(p.finished, 0, 0), CHECK_REAL(p.took, 0, 0);
    p.began -= 3 * (int64_t)1000000000;
    kbi_progress_group(&p, 30);
    CHECK_REAL(p.finished, 20, 0), CHECK_REAL(p.took, 3, 0.02), CHECK_REAL(p.current, 30, 0);
}

static void test_print(void) {
    kb_result r;
    kbi_result_clear(&r);
    r.operation = r.name = "mine", r.implementation = "default", r.time_ms = 0.25, r.precision = 0.001,
    r.samples = 30;
    hold(stdout);
    kb_print(&r, 1);
    const char* text = caught(stdout);
    CHECK_HAS(text, "mine"), CHECK_HAS(text, "time us"), CHECK_HAS(text, "250.0"), CHECK(!strstr(text, "1 case"));
    kb_result_free(&r);
}

static void test_width(void) {
    kbi_how how;
    static const struct {
        const char* columns;
        int width;
    } widths[] = { { "39", 80 }, { "40", 40 }, { "132", 132 }, { "1000", 1000 }, { "1001", 80 }, { "wide", 80 } };
    FILE* f = tmpfile();
    for (int i = 0; i < 6; i++) {
        setenv("COLUMNS", widths[i].columns, 1);
        kbi_how_default(&how, f);
        CHECK_THAT(how.width == widths[i].width && !how.colour, "COLUMNS=%s: %d", widths[i].columns, how.width);
    }
    fclose(f);
}

// --- formatting and parsing ---

static void test_shown(void) {
    char out[40];
    static const struct {
        double x;
        const char *span, *bytes, *percent;
    } rows[] = { { 0, "0 s", "0 B", "<0.1%" },
                 { 1, "1 s", "1 B", "100%" },
                 { 0.5, "0.5 s", "0.5 B", "50.0%" },
                 { 1.5, "1.5 s", "2 B", "150%" },
                 { 9.94, "9.9 s", "10 B", "994%" },
                 { 9.96, "10 s", "10 B", "996%" },
                 { 90, "90 s", "90 B", "9000%" },
                 { 91, "1.5 min", "91 B", "9100%" },
                 { 999, "17 min", "999 B", "99900%" },
                 { 1000, "17 min", "0.977 KiB", "100000%" },
                 { 5400, "90 min", "5.27 KiB", "540000%" },
                 { 5401, "1.5 h", "5.27 KiB", "540100%" },
                 { 36000, "10 h", "35.2 KiB", "3600000%" },
                 { 1048576, "291.3 h", "1.00 MiB", "104857600%" },
                 { 0.00099, "0.00099 s", "0.001 B", "<0.1%" },
                 { 0.000996, "0.001 s", "0.001 B", "0.10%" },
                 { 0.0994, "0.099 s", "0.1 B", "9.9%" },
                 { 0.1, "0.1 s", "0.1 B", "10.0%" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        CHECK_STR(kbi_show_span(rows[i].x, out), rows[i].span);
        CHECK_STR(kbi_show_bytes(rows[i].x, out), rows[i].bytes);
        CHECK_STR(kbi_show_percent(rows[i].x, out), rows[i].percent);
    }
    CHECK_STR(kbi_show_bytes(1e30, out), "9.09e+17 TiB"), CHECK_STR(kbi_show_bytes(1e12, out), "931 GiB");
    CHECK_STR(kbi_show_time(1e300, out), "1.000e+297 s"), CHECK_STR(kbi_show(9.996e14, 3, out), "1.00e+15");
    CHECK_STR(kbi_show(9.99e14, 3, out), "999000000000000"), CHECK_STR(kbi_show(-1e300, 3, out), "-1.00e+300");
    CHECK_STR(kbi_show_percent(NAN, out), "-"), CHECK_STR(kbi_show(NAN, 3, out), "-"),
        CHECK_STR(kbi_show(1.5, 3, out), "1.50");
    // the fewest of 15, 16 or 17 digits from which the same double is read back
    uint64_t state = 7;
    for (int i = 0; i < 30000; i++) {
        char want[40];
        double x;
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        if (i % 3 == 0)
            x = (double)(bits >> 40) / (i % 2 ? 1000 : 64);
        else if (i % 3 == 1)
            x = (double)(int64_t)bits * pow(10, -(int)(bits % 31));
        else
            memcpy(&x, &bits, sizeof x);
        if (!kbi_finite(x)) continue;
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(want, sizeof want, "%.*g", digits, x);
            if (strtod(want, NULL) == x) break;
        }
        if (strcmp(kbi_number(x, out), want)) CHECK_STR(out, want);
    }
    static const char* const numbers[][2] = {
        { "1e3,2", ",2" },    { "1.5x", "x" }, { "x", "x" },      { "", "" },
        { "-2.25e-3 ", " " }, { "0x10", "" },  { "1.5.5", ".5" }, { ".5,", "," }
    };
    static const double values[] = { 1000, 1.5, 0, 0, -0.00225, 16, 1.5, 0.5 };
    for (int i = 0; i < KBI_COUNT(numbers); i++) {
        char* end;
        CHECK_REAL(kbi_real_of(numbers[i][0], &end), values[i], 0), CHECK_STR(end, numbers[i][1]);
    }
}

static void test_written(void) {
    static const struct {
        const char *s, *json, *clean;
    } rows[] = { { "", "\"\"", "" },
                 { "abc ~", "\"abc ~\"", "abc ~" },
                 { "a\"b\\c/", "\"a\\\"b\\\\c/\"", "a\"b\\c/" },
                 { "a\nb\tc", "\"a\\nb\\tc\"", NULL },
                 { "\x01z\x1f\x7f", "\"\\u0001z\\u001f\\u007f\"", NULL },
                 { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!\"",
                   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!" },
                 { "a\xff\xc3(b", "\"a\xef\xbf\xbd\xef\xbf\xbd(b\"", "a\xef\xbf\xbd\xef\xbf\xbd(b" },
                 { "\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\xef\xbf\xbd\xef\xbf\xbd" },
                 { "\xe2\x80\xae##[", "\"\\u202e\\u0023#[\"", NULL },
                 { "\xf3\xa0\x81\x81\xc2\x9b#", "\"\\udb40\\udc41\\u009b#\"", NULL },
                 { NULL, "null", NULL } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_text t = KBI_BLANK;
        kbi_json_text(&t, rows[i].s);
        CHECK_STR(t.s, rows[i].json);
        t.n = 0, kbi_puts(&t, "");
        if (rows[i].clean) kbi_clean(&t, rows[i].s), CHECK_STR(t.s, rows[i].clean);
        kbi_text_free(&t);
    }
    // characters that control a terminal: the first and last character of each range, and their neighbours
    static const struct {
        const char *s, *spelled; // NULL: printed unchanged
    } obeyed[] = { { "\x01", "\\x01" },
                   { "\x08", "\\x08" },
                   { "\t", " " },
                   { "\r", " " },
                   { "\x0e", "\\x0e" },
                   { "\x1f", "\\x1f" },
                   { " ", NULL },
                   { "\x7f", "\\x7f" },
                   { "~", NULL },
                   { "\xc2\x80", "\\x80" },
                   { "\xc2\x9f", "\\x9f" },
                   { "\xc2\xa0", NULL },
                   { "\xe2\x80\xa7", NULL },
                   { "\xe2\x80\xa8", "\\u2028" },
                   { "\xe2\x80\xae", "\\u202e" },
                   { "\xe2\x80\xaf", NULL },
                   { "\xe2\x81\x9f", NULL },
                   { "\xe2\x81\xa0", "\\u2060" },
                   { "\xe2\x81\xaf", "\\u206f" },
                   { "\xe2\x81\xb0", NULL },
                   { "\xe2\x80\x8a", NULL },
                   { "\xe2\x80\x8b", "\\u200b" },
                   { "\xe2\x80\x8f", "\\u200f" },
                   { "\xe2\x80\x90", NULL },
                   { "\xc2\xad", "\\xad" },
                   { "\xd8\x9c", "\\u061c" },
                   { "\xef\xbb\xbf", "\\ufeff" },
                   { "\xf3\xa0\x81\x81", "\\ue0041" },
                   { "\xe2\x81\xa6", "\\u2066" },
                   { "\xe2\x81\xa9", "\\u2069" },
                   { "\xe3\x80\xa8", NULL } };
    for (int i = 0; i < KBI_COUNT(obeyed); i++) {
        char text[16], whole[16];
        CHECK_THAT(kbi_starts_invisible(obeyed[i].s) == (obeyed[i].spelled != NULL), "text %d", i);
        kbi_text t = KBI_BLANK;
        snprintf(whole, sizeof whole, "a%sb", obeyed[i].s);
        kbi_clean(&t, whole);
        snprintf(text, sizeof text, "a%sb", obeyed[i].spelled ? obeyed[i].spelled : obeyed[i].s);
        CHECK_STR(t.s, text);
        kbi_text_free(&t);
    }
    // CI commands (::command, ##[command]) are escaped where a CI log would execute them
    static const struct {
        const char *before, *s, *want;
    } logs[] = { { "", "::error::x", "\\x3a:error::x" },
                 { "", " \xc2\xa0::error::x", " \xc2\xa0\\x3a:error::x" },
                 { "a\n  ", "::x", "a\n  \\x3a:x" },
                 { "a", "::x", "a::x" },
                 { "", "a::x", "a::x" },
                 { "", "\n::x", " \\x3a:x" },
                 { "", ":x", ":x" },
                 { "a ", "##[error]x", "a \\x23#[error]x" },
                 { "a ", "###vso[x]", "a \\x23\\x23#vso[x]" },
                 { "", "## [x] ##x", "\\x23# [x] \\x23#x" } };
    for (int i = 0; i < KBI_COUNT(logs); i++) {
        kbi_text t = KBI_BLANK;
        kbi_puts(&t, logs[i].before), kbi_clean(&t, logs[i].s);
        CHECK_STR(t.s, logs[i].want);
        kbi_text_free(&t);
        if (*logs[i].before) continue;
        hold(stdout), kbi_print_line(stdout, "%s", logs[i].s);
        kbi_puts(&t, logs[i].want), kbi_puts(&t, "\n");
        CHECK_STR(caught(stdout), t.s);
        kbi_text_free(&t);
    }
    kbi_text t = KBI_BLANK;
    kbi_json_real(&t, 0.25), kbi_puts(&t, " "), kbi_json_real(&t, NAN), kbi_puts(&t, " "),
        kbi_json_real(&t, -INFINITY);
    CHECK_STR(t.s, "0.25 null null");
    kbi_text_free(&t);
    static const struct {
        const char *before, *s, *want; // want: text in a buffer of 12 bytes after `s` was appended to `before`
    } fits[] = { { "", "12345678901", "12345678901" },
                 { "", "123456789012", "12345678..." },
                 { "12", "345678901", "12345678901" },
                 { "12", "3456789012", "12345678..." },
                 { "", "1234567\xc3\xa9\xc3\xa9xy", "1234567..." },
                 { "", "123456\xe2\x82\xac\xe2\x82\xac", "123456..." },
                 { "12345678901", "", "12345678901" } };
    for (int i = 0; i < KBI_COUNT(fits); i++) {
        char room[16] = "xxxxxxxxxxxxxxx";
        strcpy(room, fits[i].before);
        kbi_fit(room, strlen(fits[i].before), 12, "%s", fits[i].s);
        CHECK_STR(room, fits[i].want);
    }
    kbi_arena a = KBI_BLANK;
    CHECK_STR(kbi_arena_text_n(&a, "abcdef", 3), "abc"), CHECK_STR(kbi_arena_text(&a, "ab"), "ab");
    CHECK(!kbi_arena_text(&a, NULL) && a.used == 16 + 16 + 16);
    kbi_arena_alloc(&a, 4096 - 48), CHECK(a.used == 4096 && a.size == 4096);
    kbi_arena_alloc(&a, 1), CHECK(a.used == 32 && a.size == 4096);
    kbi_arena_alloc(&a, 4081), CHECK(a.size == 4096 + 16 && a.used == a.size);
    kbi_arena_free(&a);
}

static void test_found(void) {
    size_t n;
    const char* p = kbi_word("ab,,c", &n);
    CHECK(n == 2 && strcmp(p, ",c") == 0);
    p = kbi_word(p, &n), CHECK(n == 0 && strcmp(p, "c") == 0);
    p = kbi_word(p, &n), CHECK(n == 1 && !*p);
    CHECK(kbi_same_text(NULL, NULL) && kbi_same_text("a", "a") && !kbi_same_text("a", NULL) &&
          !kbi_same_text(NULL, ""));
    CHECK(kbi_same_name("_a-", "A") && kbi_same_name("", "_") && !kbi_same_name("a", "_") &&
          !kbi_same_name("ab", "b"));
    CHECK(kbi_same_name_n("abc", 2, "AB", 2) && !kbi_same_name_n("abc", 3, "ab", 2) &&
          !kbi_same_name_n("ab", 2, "abc", 3));
    // expected values: from the table published by the authors of FNV
    CHECK(kbi_hash(14695981039346656037u, "a") == 0xaf63dc4c8601ec8cu);
    CHECK(kbi_hash(14695981039346656037u, "foobar") == 0x85944171f73967e8u && kbi_hash(5, "") == 5);
    CHECK(kbi_hash(14695981039346656037u, "\xff") == (14695981039346656037u ^ 255) * 1099511628211u);
    char name[70];
    for (int k = 62; k < 66; k++) { // names of up to 63 characters are compared; longer ones have distance 64
        memset(name, 'a', sizeof name), name[k] = 0;
        CHECK_INT(kbi_distance(name, "b"), k < 64 ? k : 64), CHECK_INT(kbi_distance("b", name), k < 64 ? k : 64);
    }
    static const struct {
        const char *wanted, *offered;
        int distance;
    } near[] = { { "speed", "speedup", 1 }, { "p99", "time_ms_p99", 1 }, { "p99", "time-p99", 5 },
                 { "s", "speedup", 6 },     { "speedup", "speed", 2 },   { "sp", "speed", 1 },
                 { "ms", "ms", 0 },         { "x", "a_x", 2 },           { "ms", NULL, 64 },
                 { "up", "speedup", 5 } };
    for (int i = 0; i < KBI_COUNT(near); i++) {
        kbi_nearest best = { near[i].wanted, NULL, 64 };
        kbi_offer(&best, near[i].offered);
        CHECK_THAT(best.distance == near[i].distance, "%s: %s is %d apart", near[i].wanted,
                   near[i].offered ? near[i].offered : "nothing", best.distance);
    }
    // 0 is a valid key of a set and of a map
    kbi_set set = KBI_BLANK;
    kbi_map map = KBI_BLANK;
    int wrong = 0;
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 3000; i++) {
            uint64_t key = (uint64_t)i * (i % 2 ? 64 : 0x9e3779b97f4a7c15u);
            kbi_mapped* slot = kbi_map_find(&map, key);
            wrong += i != 1 && kbi_set_add(&set, key == 1 ? 5 : key) == (turn > 0);
            wrong += (slot->key != 0) != (turn > 0) || (turn && slot->at != i * 3);
            if (!turn) kbi_map_take(&map, slot, key, i * 3);
            if (turn && i == 9) kbi_map_take(&map, slot, key, i * 3);
            wrong += map.n != (size_t)(turn ? 3000 : i + 1) || 2 * map.n > map.size;
        }
    CHECK_INT(wrong, 0), CHECK_INT(set.n, 2999), CHECK_INT(map.n, 3000), CHECK(set.size == 8192 && map.size == 8192);
    kbi_set_free(&set), CHECK(!set.slots && !set.n && !set.size);
    KBENCH_FREE(map.slots);
}

static void test_pipes(void) {
    int ends[2];
    char got[16] = "", path[] = "/tmp/kbench_texts.XXXXXX", line[8];
    CHECK(pipe(ends) == 0);
    CHECK(kbi_write_all(ends[1], "abc", 3) && kbi_write_all(ends[1], "defgh", 5) && kbi_write_all(ends[1], NULL, 0));
    CHECK(kbi_read_all(ends[0], got, 7) && strcmp(got, "abcdefg") == 0 && kbi_read_all(ends[0], got, 0));
    close(ends[1]);
    CHECK(!kbi_read_all(ends[0], got, 2) && got[0] == 'h');
    close(ends[0]);
    CHECK(!kbi_write_all(ends[1], "a", 1) && !kbi_read_all(ends[0], got, 1));
    int file = mkstemp(path);
    CHECK(file >= 0 && kbi_write_all(file, "ab\r\ncd\n", 7));
    CHECK(kbi_first_line(path, line, 8) && strcmp(line, "ab") == 0);
    CHECK(kbi_first_line(path, line, 2) && strcmp(line, "a") == 0);
    CHECK(ftruncate(file, 0) == 0 && !kbi_first_line(path, line, 8));
    close(file), unlink(path);
    CHECK(!kbi_first_line(path, line, 8));
    int open_now = dup(1);
    for (int i = 0; i < 20; i++) kbi_first_line("/proc/self/stat", line, 8);
    int then = dup(1);
    CHECK_INT(then, open_now + 1);
    close(open_now), close(then);
    kbi_open_standard_files();
    then = dup(1), CHECK_INT(then, open_now), close(then);
    then = dup(0), close(0);
    kbi_open_standard_files();
    CHECK(fcntl(0, F_GETFD) == 0), CHECK(dup2(then, 0) == 0), close(then);
    then = dup(1), CHECK_INT(then, open_now), close(then);
    // kbi_high_file returns a descriptor of at least 100 if the limit allows, because other code may close low
    // ones
    int high = kbi_high_file(1);
    CHECK_THAT(high >= 100, "file %d", high), CHECK_INT(fcntl(high, F_GETFD), FD_CLOEXEC), close(high);
    struct rlimit few, was;
    CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0), few = was, few.rlim_cur = 60;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0), high = kbi_high_file(1), CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
    CHECK_INT(high, open_now), CHECK_INT(fcntl(high, F_GETFD), FD_CLOEXEC), close(high);
}

// --- messages ---

static void test_order(void) {
    char got[300];
    const char* program = kbi_process.program;
    FILE* f = tmpfile();
    int out = dup(1), err = dup(2);
    if (!CHECK(f && out >= 0 && err >= 0)) return;
    kbi_process.program = "prog";
    fflush(stdout), dup2(fileno(f), 1), dup2(fileno(f), 2);
    printf("a row "), kbi_error("no %s", "room"), printf("a row, ");
    kbi_warn("late"), printf("the last\n"), fflush(stdout);
    dup2(out, 1), dup2(err, 2), close(out), close(err);
    kbi_process.program = program;
    rewind(f);
    got[fread(got, 1, sizeof got - 1, f)] = 0;
    fclose(f);
    CHECK_STR(got, "a row prog: error: no room\na row, prog: late\nthe last\n");
}

static void test_no_memory(void) {
#ifndef TEST_SANITIZE
    char got[300];
    int status = 0;
    FILE* f = tmpfile();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        dup2(fileno(f), 2);
        kbi_grow(NULL, (size_t)1 << 62);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status)), CHECK_INT(WEXITSTATUS(status), 1);
    rewind(f);
    got[fread(got, 1, sizeof got - 1, f)] = 0;
    fclose(f);
    CHECK_STR(got, "kbench: error: out of host memory (4611686018427387904 bytes): free some, or choose "
                   "fewer cases\n");
#endif
}

// --- descriptions of changes ---

static void test_changes(void) {
    char out[96];
    static const struct {
        double percent;
        const char* want;
    } changes[] = { { 0, "+0.00%" },      { 0.004, "+0.00%" },   { -0.004, "+0.00%" }, { 0.006, "+0.01%" },
                    { -0.006, "-0.01%" }, { 9.994, "+9.99%" },   { 9.996, "+10.0%" },  { -9.99, "-9.99%" },
                    { -9.999, "-10.0%" }, { 99.94, "+99.9%" },   { 999.4, "+999.4%" }, { 999.6, "11x" },
                    { 2345, "24.4x" },    { -99.96, "-100.0%" }, { -50, "-50.0%" },    { 1e6, "1e+04x" } };
    for (int i = 0; i < KBI_COUNT(changes); i++)
        CHECK_STR(kbi_show_change(log1p(changes[i].percent / 100), out), changes[i].want);
    CHECK_STR(kbi_show_change(NAN, out), "-"), CHECK_STR(kbi_show_change(INFINITY, out), "-");
    CHECK_STR(kbi_show_interval(log(0.5), log(2), out), "[-50.0%, +100.0%]");
    CHECK_STR(kbi_show_interval(NAN, 0, out), "-"), CHECK_STR(kbi_show_interval(0, NAN, out), "-");
    kb_result before, after;
    kbi_change c;
    const char* colour;
    enum { BETTER = 1, WORSE, FAILS };
    static const struct {
        // way: sum of 1 (slower), 2 (faster), 4 (more memory) and 8 (less memory)
        int without, was, is, verdict, way, colour;
        const char* says;
        bool notable;
    } words[] = { { 1, KB_OK, KB_OK, 0, 0, 0, "added", true },
                  { 2, KB_OK, KB_OK, 0, 0, 0, "removed", true },
                  { 0, KB_OK, KB_FAILED, 0, 0, WORSE, "failed", true },
                  { 0, KB_FAILED, KB_FAILED, 0, 0, WORSE, "failed", true },
                  { 0, KB_OK, KB_SKIPPED, 0, 0, 0, "skipped", true },
                  { 0, KB_FAILED, KB_OK, 0, 0, 0, "had failed", true },
                  { 0, KB_SKIPPED, KB_OK, 0, 0, 0, "no time", true },
                  { 0, KB_OK, KB_OK, KB_EQUIVALENT, 0, 0, "EQUIVALENT", false },
                  { 0, KB_OK, KB_OK, KB_UNRESOLVED, 0, 0, "UNRESOLVED", false },
                  { 0, KB_OK, KB_OK, KB_SLOWER, 0, 0, "SLOWER", true },
                  { 0, KB_OK, KB_OK, KB_FASTER, 0, 0, "FASTER", true },
                  { 0, KB_OK, KB_OK, KB_FASTER, 2, BETTER, "IMPROVED", true },
                  { 0, KB_OK, KB_OK, KB_EQUIVALENT, 4, WORSE, "EQUIVALENT", true },
                  { 0, KB_OK, KB_OK, KB_EQUIVALENT, 8, BETTER, "EQUIVALENT", true },
                  { 0, KB_OK, KB_OK, KB_SLOWER, 1, WORSE, "REGRESSED severe", true } };
    kbi_result_clear(&before), kbi_result_clear(&after);
    for (int i = 0; i < KBI_COUNT(words); i++) {
        memset(&c, 0, sizeof c);
        before.status = (kb_status)words[i].was, after.status = (kb_status)words[i].is;
        before.time_ms = after.time_ms = 1;
        c.before = words[i].without == 1 ? NULL : &before, c.after = words[i].without == 2 ? NULL : &after;
        c.verdict = (kb_verdict)words[i].verdict, c.log = log(1.5);
        c.regressed = words[i].way & 1, c.improved = words[i].way & 2, c.more = words[i].way & 4;
        c.less = words[i].way & 8;
        if (words[i].without || words[i].was != KB_OK || words[i].is != KB_OK) c.log = NAN;
        CHECK_STR(kbi_change_words(&c, 0.05, &colour, out), words[i].says);
        CHECK_STR(colour, words[i].colour == WORSE ? "\033[31m" : words[i].colour == BETTER ? "\033[32m" : "");
        CHECK_THAT(kbi_change_notable(&c) == words[i].notable, "change %d is %snotable", i,
                   words[i].notable ? "not " : "");
    }
    static const struct {
        double times;
        const char* says;
    } grave[] = { { 1.9, "minor" },  { 2.01, "moderate" }, { 4.9, "moderate" },
                  { 5.1, "severe" }, { 19.9, "severe" },   { 20.1, "critical" } };
    for (int i = 0; i < KBI_COUNT(grave); i++) {
        memset(&c, 0, sizeof c);
        c.regressed = true, c.log = log1p(grave[i].times * 0.1);
        CHECK_STR(kbi_severity(&c, 0.1), grave[i].says);
        c.regressed = false, CHECK_STR(kbi_severity(&c, 0.1), "minor");
        c.more = true, c.memory = 1 + 2 * grave[i].times * 0.1, CHECK_STR(kbi_severity(&c, 0.1), grave[i].says);
        c.more = false, CHECK_STR(kbi_severity(&c, 0.1), "minor");
    }
    // A summary must begin with its most important count.
    kbi_assessment a;
    kbi_rules rules;
    memset(&rules, 0, sizeof rules);
    rules.threshold = 0.05;
    static const struct {
        int compared, regressed, more, improved, less, open, broken, recovered, added, removed;
        const char* says;
    } sums[] = {
        { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "Nothing was compared." },
        { 0, 0, 0, 0, 0, 0, 1, 2, 3, 4,
          "Nothing was compared, 1 newly failed, 2 failed before, 3 added, 4 removed." },
        { 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, "Slower: 1 of 1 case by more than 5.0%, 1 using more memory." },
        { 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, "More memory: 1 of 1 case, 1 using less memory." },
        { 1, 0, 0, 1, 0, 1, 0, 0, 0, 0,
          "Better: 1 case compared, none slower by more than 5.0%, 1 faster by more than --threshold, 1 not "
          "certain." },
        { 1, 0, 0, 0, 1, 0, 0, 0, 0, 0,
          "Better: 1 case compared, none slower by more than 5.0%, 1 using less memory." },
        { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0,
          "Not certain: 1 case compared, no regression found, 1 not certain." },
        { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, "No change: 0 of 1 cases changed by more than 5.0%." },
        { 2, 1, 0, 1, 0, 0, 0, 0, 0, 0,
          "Slower: 1 of 2 cases by more than 5.0%, 1 faster by more than --threshold; times changed by +10.0% "
          "(geometric mean of all compared cases)." },
        { 3, 0, 2, 0, 0, 0, 0, 0, 0, 0,
          "More memory: 2 of 3 cases; times changed by +10.0% (geometric mean of all compared cases)." }
    };
    for (int i = 0; i < KBI_COUNT(sums); i++) {
        kbi_text line = { NULL, 0, 0 };
        memset(&a, 0, sizeof a);
        a.compared = sums[i].compared, a.regressed = sums[i].regressed, a.more = sums[i].more;
        a.improved = sums[i].improved, a.less = sums[i].less, a.open = sums[i].open, a.broken = sums[i].broken;
        a.recovered = sums[i].recovered, a.added = sums[i].added, a.removed = sums[i].removed, a.geomean = 1.1;
        kbi_changes_words(&line, &a, &rules);
        CHECK_STR(line.s, sums[i].says);
        kbi_text_free(&line);
    }
    kb_result_free(&before), kb_result_free(&after);
}

// --- output for the tools of other benchmarks ---

static void test_tools(void) {
    kbi_text t = { NULL, 0, 0 };
    static const struct {
        double x;
        const char* want;
    } values[] = { { 0, " 0 u" },
                   { 1, " 1 u" },
                   { 10, " 10 u" },
                   { 0.5, " 0.5 u" },
                   { 1e-9, " 0.000000001 u" },
                   { 1e-10, " 0 u" },
                   { 100.25, " 100.25 u" },
                   { 999999.5, " 999999.5 u" },
                   { 1e6, " 1000000 u" },
                   { 1000000.5, " 1000000 u" },
                   { -2.50, " -2.5 u" },
                   { NAN, "" },
                   { INFINITY, "" } };
    for (int i = 0; i < KBI_COUNT(values); i++) {
        kbi_put(&t, "", 0), kbi_go_value(&t, values[i].x, "u");
        CHECK_STR(t.s, values[i].want), kbi_text_free(&t);
    }
    static const char* const names[][2] = { { "a b", "a_b" },
                                            { "a-8", "a_8" },
                                            { "a-", "a-" },
                                            { "a8", "a8" },
                                            { "-8", "_8" },
                                            { "8", "8" },
                                            { "a-8b", "a-8b" },
                                            { "a--10", "a-_10" },
                                            { "a\xc2\xa0"
                                              "b\xe3\x80\x80\xc3\xa9",
                                              "a_b_\xc3\xa9" } };
    for (int i = 0; i < KBI_COUNT(names); i++) {
        kbi_go_name(&t, names[i][0]);
        CHECK_STR(t.s, names[i][1]), kbi_text_free(&t);
    }
    kb_param counters[40];
    char counter_names[40][8];
    kb_result of[2];
    for (int i = 0; i < 40; i++) {
        memset(&counters[i], 0, sizeof counters[i]);
        snprintf(counter_names[i], sizeof counter_names[i], "c%02d", i);
        counters[i].name = counter_names[i], counters[i].type = KB_AXIS_REALS, counters[i].r = i;
    }
    for (int i = 0; i < 2; i++) {
        kbi_result_clear(&of[i]);
        of[i].name = "n", of[i].operation = "o", of[i].time_ms = 7;
        of[i].counters.of = counters + 20 * i, of[i].counters.n = 20;
    }
    kbi_md(&t, of, 2);
    for (int i = 0; i < KBI_COUNTERS; i++) CHECK_HAS(t.s, counter_names[i]);
    CHECK_HAS(t.s, "\n24 more counters are in --csv and --json\n");
    kbi_text_free(&t);
    for (int i = 0; i < 2; i++) kb_result_free(&of[i]);
    // with several processes, a repetition is the median of one process; every case gets the same number of
    // repetitions
    static const double processes[] = { 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111 };
    static const double samples[60] = { 1 };
    static const struct {
        // of: number of processes of each of three cases (-1: the case failed); want: expected number of
        // repetitions
        int of[3], want;
    } rows[] = { { { 0, 0, 0 }, 1 }, { { 12, 12, 12 }, 12 }, { { 5, 3, 4 }, 3 },   { { 5, -1, 4 }, 4 },
                 { { 5, 0, 4 }, 1 }, { { 2, 2, -1 }, 2 },    { { -1, -1, -1 }, 1 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kb_result r[3];
        for (int k = 0; k < 3; k++) {
            kbi_result_clear(&r[k]);
            r[k].name = "n", r[k].operation = "o", r[k].time_ms = 7, r[k].samples_ms.of = samples,
            r[k].samples_ms.n = 60;
            r[k].process_ms.of = processes, r[k].process_ms.n = KBI_MAX(rows[i].of[k], 0);
            if (rows[i].of[k] < 0) r[k].status = KB_FAILED, r[k].time_ms = (double)NAN, r[k].message = "is \"wrong\"";
        }
        CHECK_THAT(kbi_repetitions(r, 3) == rows[i].want, "row %d: %d", i, kbi_repetitions(r, 3));
        if (rows[i].of[0] >= 0)
            CHECK_REAL(kbi_repetition(r, rows[i].want, rows[i].want - 1), rows[i].want > 1 ? 99 + rows[i].want : 7,
                       0);
        kbi_gbench(&t, r, 3);
        int failed = 0, entries = 0;
        for (int k = 0; k < 3; k++) failed += rows[i].of[k] < 0;
        for (const char* p = t.s; (p = strstr(p, "\"run_type\": \"iteration\"")) != NULL; p++) entries++;
        CHECK_THAT(entries == (3 - failed) * rows[i].want, "row %d: %d entries", i, entries);
        CHECK(!strstr(t.s, "_time\": 0,") && !strstr(t.s, "error_occurred"));
        CHECK_INT(strstr(t.s, "\"failed\": [\"n: is \\\"wrong\\\"\"") != NULL, failed > 0);
        kbi_text_free(&t);
        kbi_go(&t, r, 3);
        CHECK(!strstr(t.s, " 0 ns/op")), CHECK_INT(strstr(t.s, "--- FAIL: Benchmarkn\n") != NULL, failed > 0);
        kbi_text_free(&t);
        for (int k = 0; k < 3; k++) kb_result_free(&r[k]);
    }
}

// --- selection and grouping of records ---

static void test_choice(void) {
    kb_result r;
    kb_param params[] = { { "n", KB_AXIS_INTS, 4096, 0, NULL },
                          { "p", KB_AXIS_REALS, 0, 0.5, NULL },
                          { "layout", KB_AXIS_STRINGS, 0, 0, "nn" },
                          { "none", KB_AXIS_REALS, 0, NAN, NULL } };
    char key[64], value[128], many[300];
    kbi_result_clear(&r);
    r.operation = "scale", r.implementation = "vec4", r.time_ms = 0.25, r.rung = 2,
    r.flags = (uint64_t)1 << KB_FLAG_NOISY;
    r.params.of = params, r.params.n = 4;
    static const struct {
        const char* list;
        bool holds;
    } lists[] = { { "", true },
                  { "op=scale", true },
                  { "op=scalar", false },
                  { "impl=VEC4", true },
                  { "impl=vec", false },
                  { "n=4096", true },
                  { "n=4096.0", true },
                  { "n=4095", false },
                  { "n=", false },
                  { "n=4096x", false },
                  { "p=0.5", true },
                  { "p=0.25", false },
                  { "layout=nn", true },
                  { "layout=nt", false },
                  { "none=0", false },
                  { "rung=2", true },
                  { "rung=3", false },
                  { "time_ms=0.25", true },
                  { "flags=NOISY", true },
                  { "flags=FLOOR", false },
                  { "dtype=f32", false },
                  { "op=scale,n=4096", true },
                  { "op=scale,n=1", false },
                  { "n=1,op=scale", false },
                  { "n=4096,p=0.5,layout=nn", true },
                  { "absent=1", false } };
    for (int i = 0; i < KBI_COUNT(lists); i++)
        CHECK_THAT(kbi_where_holds(lists[i].list, &r) == lists[i].holds, "--where '%s'", lists[i].list);
    static const char* const pieces[] = {
        "key=value", "key=value,more=1", "k=", "=v", "key", "key,more=1", "a=b=c,d"
    };
    static const int ends[] = { 9, 9, 2, -1, -1, -1, 5 };
    for (int i = 0; i < KBI_COUNT(pieces); i++) {
        const char* end = kbi_where_next(pieces[i], key, value);
        CHECK_THAT((end ? (int)(end - pieces[i]) : -1) == ends[i], "'%s'", pieces[i]);
    }
    CHECK_STR(key, "a"), CHECK_STR(value, "b=c");
    for (int name = 62; name < 66; name++)
        for (int said = 126; said < 130; said++) {
            memset(many, 'k', sizeof many), many[name] = '=', many[name + 1 + said] = 0;
            const char* end = kbi_where_next(many, key, value);
            CHECK_THAT((end != NULL) == (name <= 63 && said <= 127), "%d and %d characters", name, said);
            if (end)
                CHECK_INT(strlen(key), name), CHECK_INT(strlen(value), said), CHECK_INT(end - many, name + 1 + said);
        }
    hold(stderr);
    CHECK(kbi_where_known("op=x,n=1", &r, 1) && kbi_where_known("anything=x", NULL, 0) &&
          !kbi_where_known("layuot=x", &r, 1));
    CHECK(!kbi_where_known("params=1", &r, 1) && !kbi_where_known("samples_ms=1", &r, 1) &&
          !kbi_where_known("n=1,q", &r, 1));
    const char* said = caught(stderr);
    CHECK_HAS(said, "'layuot'; the nearest name is layout\n"), CHECK_HAS(said, "for example impl=vec,n=4096, not 'n=1,q'\n");
    CHECK_REAL(kbi_axis_value(&r, "n"), 4096, 0), CHECK_REAL(kbi_axis_value(&r, "p"), 0.5, 0);
    CHECK(isnan(kbi_axis_value(&r, "layout")) && isnan(kbi_axis_value(&r, "none")) && isnan(kbi_axis_value(&r, "m")));
    kbi_panel panel;
    memset(&panel, 0, sizeof panel);
    CHECK_REAL(kbi_panel_x(&panel, &r), 2048, 0); // if no axis is chosen, x is the product of all numeric axes
    panel.axis = "p", CHECK_REAL(kbi_panel_x(&panel, &r), 0.5, 0);
    double x[] = { 3, 1, 2, 1, 3, 3 }, one[] = { 5 };
    CHECK_INT(kbi_unique(x, 6), 3), CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3);
    CHECK_INT(kbi_unique(one, 1), 1), CHECK_INT(kbi_unique(one, 0), 0);
    kb_result_free(&r);
}

static void test_sweeps(void) {
    static kb_result of[24];
    static kb_param params[24][3];
    kbi_scene s;
    kbi_swept swept;
    kbi_fitted fit;
    for (int together = 0; together < 2; together++) {
        int n = 0;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < (together ? 1 : 3); j++) {
                kb_result* r = &of[n];
                kbi_result_clear(r);
                r->operation = "op", r->implementation = "one", r->run_id = "1";
                kb_param own[] = { { "m", KB_AXIS_INTS, 16 << (together ? i : j), 0, NULL },
                                   { "n", KB_AXIS_INTS, 10 << 2 * i, 0, NULL },
                                   { "k", KB_AXIS_INTS, 7, 0, NULL } };
                memcpy(params[n], own, sizeof own);
                r->params.of = params[n], r->params.n = 3;
                r->time_ms = 2e-3 * (together ? pow(16.0 * 10 * 7 * (1 << 3 * i), 1.5)
                                              : pow(own[0].i, 0.5) * pow(own[1].i, 2));
                n++;
            }
        kbi_scene_open(&s, of, n, NULL);
        CHECK_INT(s.timed.n, n), CHECK_INT(s.n_who, 1);
        kbi_sweep_of(&s, s.timed, &swept);
        CHECK_INT(swept.n, 2), CHECK(swept.together == (together == 1));
        CHECK_STR(swept.of[together ? 1 : 0], "n"), CHECK_STR(swept.of[together ? 0 : 1], "m");
        CHECK_INT(swept.values[0], 4), CHECK_INT(swept.values[1], together ? 4 : 3);
        CHECK_INT(kbi_axis_distinct(s.timed, "n"), 4), CHECK_INT(kbi_axis_distinct(s.timed, "k"), 1);
        CHECK_INT(kbi_axis_distinct(s.timed, "q"), 0);
        CHECK(kbi_fit_of(&s, s.timed, &fit) && kbi_fit_follows(&fit));
        CHECK_INT(fit.axes, together ? 1 : 2), CHECK_INT(fit.n, n);
        CHECK_REAL(fit.c, 2e-3, 1e-9), CHECK(fit.off < 1e-9);
        CHECK_REAL(fit.e[0], together ? 1.5 : 2, 1e-9);
        if (!together) CHECK_REAL(fit.e[1], 0.5, 1e-9);
        for (int i = 0; i < n; i++) of[i].time_ms *= i % 2 ? 1.1 : 1 / 1.1;
        CHECK(kbi_fit_of(&s, s.timed, &fit));
        double squares = 0;
        for (int i = 0; i < n; i++) {
            double off = log(of[i].time_ms / fit.c);
            for (int k = 0; k < fit.axes; k++)
                off -= fit.e[k] *
                       log(together ? (double)(params[i][0].i * params[i][1].i * 7) : (double)params[i][k ? 0 : 1].i);
            squares += off * off;
        }
        CHECK_REAL(fit.off, sqrt(squares / (n - fit.axes - 1)), 1e-9), CHECK(fit.off > 0.05);
        kbi_subset two = { s.timed.of, 2 };
        CHECK(!kbi_fit_of(&s, two, &fit));
        kbi_arena_free(&s.arena);
        for (int i = 0; i < n; i++) kb_result_free(&of[i]);
    }
    fit.off = 0.17, CHECK(kbi_fit_follows(&fit)), fit.off = 0.19, CHECK(!kbi_fit_follows(&fit));
    double a[KBI_AXES + 1][KBI_AXES + 2] = { { 0, 2, 1, 9 }, { 1, 1, 1, 6 }, { 3, 0, 1, 7 } };
    CHECK(kbi_solve(a, 3));
    double x = a[0][3], y = a[1][3], z = a[2][3];
    CHECK_REAL(2 * y + z, 9, 1e-12), CHECK_REAL(x + y + z, 6, 1e-12), CHECK_REAL(3 * x + z, 7, 1e-12);
    double b[KBI_AXES + 1][KBI_AXES + 2] = { { 1, 2, 3 }, { 2, 4, 6 } };
    CHECK(!kbi_solve(b, 2));
}

static void test_metrics(void) {
    static const struct {
        int metric;
        double most, scale;
        const char* name;
    } units[] = { { KBI_METRIC_TIME, 1000, 1e-3, "s" },
                  { KBI_METRIC_TIME, 999, 1, "ms" },
                  { KBI_METRIC_TIME, 1, 1, "ms" },
                  { KBI_METRIC_TIME, 0.99, 1e3, "\xc2\xb5s" },
                  { KBI_METRIC_TIME, 0.001, 1e3, "\xc2\xb5s" },
                  { KBI_METRIC_TIME, 0.00099, 1e6, "ns" },
                  { KBI_METRIC_GBPS, 999, 1, "GB/s" },
                  { KBI_METRIC_GBPS, 1000, 1e-3, "TB/s" },
                  { KBI_METRIC_GFLOPS, 999, 1, "GFLOP/s" },
                  { KBI_METRIC_GFLOPS, 1000, 1e-3, "TFLOP/s" },
                  { KBI_METRIC_ROOF, 5000, 1, "%" } };
    for (int i = 0; i < KBI_COUNT(units); i++) {
        kbi_in_unit u = kbi_metric_unit(units[i].metric, units[i].most);
        CHECK_STR(u.name, units[i].name), CHECK_REAL(u.scale, units[i].scale, 0);
    }
    kb_result r, other;
    const kb_result* both[] = { &r, &other };
    double v[3], lo, hi;
    int64_t beyond;
    kbi_result_clear(&r), kbi_result_clear(&other);
    CHECK(!kbi_metric_of(KBI_METRIC_TIME, &r, v));
    r.time_ms = 2, r.time_ms_ci_low = 1, r.time_ms_ci_high = 8, r.throughput_gbps = 40, r.gflops = 0,
    r.gpu_efficiency = 50;
    CHECK(kbi_metric_of(KBI_METRIC_TIME, &r, v) && v[0] == 2 && v[1] == 1 && v[2] == 8);
    CHECK(kbi_metric_of(KBI_METRIC_GBPS, &r, v) && v[0] == 40 && v[1] == 10 && v[2] == 80);
    CHECK(kbi_metric_of(KBI_METRIC_ROOF, &r, v) && v[0] == 50 && v[1] == 12.5 && v[2] == 100);
    CHECK(!kbi_metric_of(KBI_METRIC_GFLOPS, &r, v));
    static const double broken[][2] = { { NAN, 8 }, { 1, NAN }, { 0, 8 }, { -1, 8 }, { 4, 3 }, { 1, INFINITY } };
    for (int i = 0; i < KBI_COUNT(broken); i++) {
        r.time_ms_ci_low = broken[i][0], r.time_ms_ci_high = broken[i][1];
        CHECK_THAT(kbi_metric_of(KBI_METRIC_TIME, &r, v) && v[0] == 2 && v[1] == 2 && v[2] == 2, "interval %d", i);
    }
    kbi_subset lot = { both, 2 };
    CHECK(kbi_metric_range(KBI_METRIC_TIME, lot, &lo, &hi) && lo == 2 && hi == 2);
    other.time_ms = 10, other.time_ms_ci_low = 9, other.time_ms_ci_high = 12;
    CHECK(kbi_metric_range(KBI_METRIC_TIME, lot, &lo, &hi) && lo == 2 && hi == 12);
    CHECK(!kbi_metric_range(KBI_METRIC_GFLOPS, lot, &lo, &hi) && !kbi_subset_has(lot, KBI_METRIC_GFLOPS));
    CHECK(kbi_subset_has(lot, KBI_METRIC_GBPS));
    // want: percentage of the memory peak, and percentage of the compute peak
    static const struct {
        const char *roof, *bound;
        double efficiency, gbps, gflops, want[2];
    } light[] = { { "copy", "compute", 70, 1000, 500, { 70, 50 } }, { "f32", "memory", 70, 1000, 500, { 25, 70 } },
                  { NULL, "memory", 70, 1000, 500, { 70, 50 } },    { NULL, "compute", 70, 1000, 500, { 25, 70 } },
                  { NULL, NULL, 70, 1000, 500, { 25, 50 } },        { "read", NULL, 70, 1000, NAN, { 70, NAN } },
                  { "f16", NULL, 0, NAN, 0, { NAN, NAN } },         { NULL, "latency", NAN, 0, 1, { NAN, 0.1 } } };
    r.copy_roof_gbps = 4000, r.compute_roof_gflops = 1000;
    for (int i = 0; i < KBI_COUNT(light); i++) {
        r.roof = light[i].roof, r.bound = light[i].bound, r.gpu_efficiency = light[i].efficiency;
        r.throughput_gbps = light[i].gbps, r.gflops = light[i].gflops;
        kbi_light_of(&r, v);
        CHECK_REAL(v[0], light[i].want[0], 1e-12), CHECK_REAL(v[1], light[i].want[1], 1e-12);
    }
    // cases with very different medians: each sample is relative to its case's median
    static const double few[] = { 10, 11, 12, NAN, 30 }, others[] = { 12, 12 };
    r.time_ms = 10, other.time_ms = 12.5;
    CHECK_REAL(kbi_samples_by(lot, &r), 1, 0), CHECK_REAL(kbi_samples_by(lot, &other), 1, 0);
    other.time_ms = 12.6;
    CHECK_REAL(kbi_samples_by(lot, &r), 0.1, 1e-12), CHECK_REAL(kbi_samples_by(lot, &other), 0.126, 1e-12);
    other.time_ms = 12, r.samples_ms.of = few, r.samples_ms.n = 5, other.samples_ms.of = others,
    other.samples_ms.n = 2;
    r.time_ms_p5 = 10, r.time_ms_p95 = 12;
    kbi_samples_range(lot, &lo, &hi, &beyond);
    CHECK_REAL(lo, 10, 0), CHECK_REAL(hi, 16, 1e-12), CHECK_INT(beyond, 1);
    r.time_ms_p95 = 30;
    kbi_samples_range(lot, &lo, &hi, &beyond);
    CHECK_REAL(hi, 30, 0), CHECK_INT(beyond, 0);
    r.time_ms_p5 = r.time_ms_p95 = NAN;
    kbi_samples_range(lot, &lo, &hi, &beyond);
    CHECK_REAL(hi, 12, 0), CHECK_INT(beyond, 1);
    kb_result_free(&r), kb_result_free(&other);
}

static void test_room(void) {
    static const struct {
        unsigned from, to;
        int width;
    } ranges[] = { { 0x300, 0x36f, 0 },     { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 }, { 0x20d0, 0x20ff, 0 },
                   { 0x2e80, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 }, { 0xfe00, 0xfe0f, 0 },
                   { 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 },   { 0xffe0, 0xffe6, 2 }, { 0x1f300, 0x1f64f, 2 },
                   { 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 }, { 0x20, 0x7e, 1 },     { 0xa1, 0x2ff, 1 } };
    char s[8];
    int used;
    for (int i = 0; i < KBI_COUNT(ranges); i++)
        for (int k = -1; k < 3; k++) {
            unsigned code = k < 0    ? ranges[i].from - 1
                            : k == 0 ? ranges[i].from
                            : k == 1 ? ranges[i].to
                                     : ranges[i].to + 1;
            int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
            if ((k < 0 || k == 2) && (i >= 14 || code == 0x2ff)) continue;
            for (int b = n - 1; b > 0; b--) s[b] = (char)(0x80 | (code >> 6 * (n - 1 - b) & 63));
            s[0] = (char)(n == 1 ? code : (0xf00u >> n & 0xffu) | code >> 6 * (n - 1)), s[n] = 0;
            int want = k == 0 || k == 1 ? ranges[i].width : 1;
            unsigned read;
            CHECK(kbi_utf8(s, &read) == (code >= 0xd800 && code < 0xe000 ? 0 : n) && read == code);
            CHECK_THAT(kbi_character_width(code) == want, "U+%X takes %d columns", code, kbi_character_width(code));
        }
    static const struct {
        const char* s;
        int columns, bytes, used;
    } rows[] = { { "abc", 0, 0, 0 },           { "abc", 2, 2, 2 },           { "abc", 3, 3, 3 },
                 { "abc", 4, 3, 3 },           { "\xe6\x97\xa5x", 1, 0, 0 }, { "\xe6\x97\xa5x", 2, 3, 2 },
                 { "\xe6\x97\xa5x", 3, 4, 3 }, { "a\xcc\x81x", 1, 3, 1 },    { "\xff\xffx", 2, 2, 2 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        size_t n = kbi_fitting(rows[i].s, strlen(rows[i].s), rows[i].columns, &used);
        CHECK_THAT((int)n == rows[i].bytes && used == rows[i].used, "'%s' in %d: %d bytes, %d columns", rows[i].s,
                   rows[i].columns, (int)n, used);
    }
    static const char* const cuts[] = { "abcdefghij", "abcd...hij", "abc...hij", "abc...ij" };
    for (int i = 0; i < 4; i++) {
        kbi_text t = { NULL, 0, 0 };
        kbi_cut(&t, i ? "abcdefXXghij" : cuts[0], i ? 11 - i : 10);
        CHECK_INT(kbi_width(t.s, t.n), i ? 11 - i : 10), CHECK_STR(t.s, cuts[i]);
        kbi_text_free(&t);
    }
}

static void test_counts(void) {
    static const struct {
        double x;
        const char *unit, *want;
    } rows[] = { { 0, "", "0" },
                 { 9999999, "", "9999999" },
                 { 1e7, "", "10000000" },
                 { 999400, "B", "976 KiB" },
                 { 999, "B", "999 B" },
                 { 1000, "B", "0.977 KiB" },
                 { 999600, "byte", "976 KiB" },
                 { -2e9, NULL, "-2000000000" },
                 { 5e6, "ns", "5.000 ms" },
                 { 0.05, "%", "0.05000 %" },
                 { 0, "%", "0 %" },
                 { 0.1, "%", "0.1000 %" },
                 { 12.34, "FLOP/B", "12.34 FLOP/B" },
                 { 1e9, "inst", "1000000000 inst" },
                 { 1e22, "B", "9094947018 TiB" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_text t = { NULL, 0, 0 };
        kbi_table_count(&t, rows[i].x, rows[i].unit);
        CHECK_STR(t.s, rows[i].want), kbi_text_free(&t);
    }
    static const struct {
        int used;
        const char *program, *want;
    } cases[] = { { 10, NULL, "  a_name_of_20_letters\n" },
                  { 18, NULL, "  a_name_of_20_letters\n" },
                  { 19, NULL, "\n    a_name_of_20_letters\n" },
                  { 10, "./p", "  ./p: a_name_of_20_letters\n" },
                  { 14, "./p", "\n    ./p: a_name_of_20_letters\n" } };
    for (int i = 0; i < KBI_COUNT(cases); i++) {
        kbi_how how;
        kbi_table table;
        memset(&how, 0, sizeof how), how.out = stdout, how.width = 40;
        kbi_table_open(&table, &how);
        kbi_changes_case(&table, cases[i].used, cases[i].program, "a_name_of_20_letters");
        CHECK_STR(table.text.s, cases[i].want), kbi_text_free(&table.text);
    }
}

static void test_cells(void) {
    static const struct {
        const char* name;
        double x;
        const char* unit;
    } of[] = { { "a", 1, "" },  { "zero", 0, "" },      { "bytes", 2000, "B" }, { "none", NAN, "" },
               { "c", -3, "" }, { "share", 12.5, "%" }, { "e", 5, "" },         { "longer_than_these", 6, "" } };
    static const struct {
        int width, n;
        const char* want;
    } rows[] = { { 80, 4, "    a 1, bytes 1.95 KiB\n" },
                 { 80, 8, "    a 1, bytes 1.95 KiB, c -3, share 12.50 %, e 5, longer_than_these 6\n" },
                 { 24, 5, "    a 1, bytes 1.95 KiB,\n    c -3\n" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_how how;
        kbi_table table;
        kb_result r;
        kb_param values[8], units[8];
        memset(&how, 0, sizeof how), how.out = stdout, how.width = rows[i].width;
        memset(values, 0, sizeof values), memset(units, 0, sizeof units);
        kbi_result_clear(&r), kbi_table_open(&table, &how);
        for (int k = 0; k < 8; k++) {
            values[k].name = units[k].name = of[k].name, values[k].type = KB_AXIS_REALS, values[k].r = of[k].x;
            units[k].type = KB_AXIS_STRINGS, units[k].s = of[k].unit;
        }
        r.counters.of = values, r.counter_units.of = units, r.counters.n = r.counter_units.n = rows[i].n;
        kbi_table_counters(&table, &r);
        CHECK_STR(table.text.s, rows[i].want), kbi_text_free(&table.text), kb_result_free(&r);
    }
}

// Tests the measured peaks of a machine, which are taken from its records. Records of old versions do not name
// their peak, so the peak is computed from rate and efficiency.
static void test_ceilings(void) {
    kb_result r[4];
    const kb_result* all[4];
    kbi_ceilings c;
    for (int i = 0; i < 4; i++) kbi_result_clear(&r[i]), all[i] = &r[i];
    r[0].copy_roof_gbps = 4000, r[0].read_roof_gbps = 4400, r[0].compute_roof = "f32",
    r[0].compute_roof_gflops = 60000;
    r[1].copy_roof_gbps = 4100, r[1].read_roof_gbps = 0, r[1].compute_roof = "f16", r[1].compute_roof_gflops = 9e5;
    r[2].bound = "memory", r[2].throughput_gbps = 900, r[2].gpu_efficiency = 30;
    r[3].roof = "f64", r[3].gflops = 5000, r[3].gpu_efficiency = 20;
    kbi_subset lot = { all, 4 };
    kbi_ceilings_of(lot, &c);
    CHECK_INT(c.n_memory, 3), CHECK_INT(c.n_compute, 3);
    CHECK_STR(c.memory[0].name, "copy"), CHECK_REAL(c.memory[0].of, 4100, 0);
    CHECK_STR(c.memory[1].name, "read"), CHECK_REAL(c.memory[1].of, 4400, 0);
    CHECK_STR(c.memory[2].name, "memory"), CHECK_REAL(c.memory[2].of, 3000, 1e-12);
    CHECK_STR(c.compute[0].name, "f32"), CHECK_STR(c.compute[1].name, "f16"), CHECK_REAL(c.compute[1].of, 9e5, 0);
    CHECK_STR(c.compute[2].name, "f64"), CHECK_REAL(c.compute[2].of, 25000, 1e-12);
    CHECK_REAL(kbi_ceiling_most(c.memory, 3), 4400, 0), CHECK_REAL(kbi_ceiling_most(c.compute, 0), 0, 0);
    r[3].compute_roof = "f64", r[2].roof = "copy", r[1].gflops = 1;
    kbi_ceilings_of(lot, &c);
    CHECK_INT(c.n_memory, 2), CHECK_INT(c.n_compute, 2);
    r[3].compute_roof = NULL, r[3].roof = "read", r[2].roof = NULL, r[2].bound = "compute";
    kbi_ceilings_of(lot, &c), CHECK_INT(c.n_memory, 2), CHECK_INT(c.n_compute, 2);
    kbi_ceiling few[2];
    int n = 0;
    static const char* const names[] = { "a", "b", "c", "a", NULL };
    for (int i = 0; i < 5; i++) kbi_ceiling_add(few, &n, 2, names[i], i + 1);
    CHECK_INT(n, 2), CHECK_REAL(few[0].of, 4, 0), CHECK_REAL(few[1].of, 2, 0);
    kbi_ceiling_add(few, &n, 2, "b", NAN), kbi_ceiling_add(few, &n, 2, "b", 0), CHECK_REAL(few[1].of, 2, 0);
    for (int i = 0; i < 4; i++) kb_result_free(&r[i]);
}

static void test_env_roofs(void) {
    kbi_roofs roofs;
    kbi_roofs_clear(&roofs);
    kbi_roof_put(&roofs, KBI_ROOF_COPY, 4.236e12, 9e12, 0.0125),
        kbi_roof_put(&roofs, KBI_ROOF_F32, 5.97e13, 9e13, 0.25);
    kbi_roof_put(&roofs, KBI_ROOF_INT8, 1.9e15, 2e15, 2);
    hold(stdout);
    kbi_env_roofs(&roofs, " of a core");
    CHECK_STR(caught(stdout), "  copy roof of a core                4236 GB/s  (measured in 12.50 ms)\n"
                              "  f32 roof of a core                 59.70 TFLOP/s  (measured in 250.0 ms)\n"
                              "  int8 roof of a core                1900 Top/s  (measured in 2.000 s)\n");
}

int main(void) {
    test_ceilings();
    test_env_roofs();
    test_cells();
    test_shown();
    test_written();
    test_found();
    test_pipes();
    test_growing();
    test_names();
    test_numbers();
    test_columns();
    test_progress();
    test_print();
    test_width();
    test_order();
    test_no_memory();
    test_changes();
    test_tools();
    test_choice();
    test_sweeps();
    test_metrics();
    test_room();
    test_counts();
    return test_end();
}
