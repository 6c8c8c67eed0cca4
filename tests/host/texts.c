// SPDX-License-Identifier: MIT OR Unlicense
// What is read by people, and what it is made with: texts that grow, numbers with their units, what a column shows, the
// progress line, kb_print; names that are nearly right.
#include "test.h"
#include "guarded.h"
#include <stdlib.h>
#include <unistd.h>
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

// What a stream gets until it is caught again.
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
    for (int size = 509; size < 515; size++) { // about what fits in one go
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
    // an arena's pieces: aligned, zero, each its own
    kbi_arena a;
    char* pieces[200];
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 200; i++) {
        size_t size = (size_t)(i * 53 % 400 + (i % 50 == 7 ? 9000 : 1));
        pieces[i] = (char*)kbi_arena_alloc(&a, size);
        CHECK_INT((uintptr_t)pieces[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            if (pieces[i][k]) CHECK_THAT(0, "piece %d is not zero at %d", i, (int)k);
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
                 { "rows", "raws", 1 }, { "rows", "orws", 2 }, { "kitten", "sitting", 3 }, { "", "abc", 3 },
                 { "abc", "", 3 },      { "flaw", "lawn", 2 }, { "ab", "ba", 2 },          { "gelu", "silu", 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_THAT(kbi_distance(rows[i].a, rows[i].b) == rows[i].apart, "%s and %s are %d apart", rows[i].a,
                   rows[i].b, kbi_distance(rows[i].a, rows[i].b));
    kbi_nearest best = { "tanhh", NULL, 64 };
    static const char* const offered[] = { "relu", "tanh", "tanh2", NULL };
    for (int i = 0; i < 4; i++) kbi_offer(&best, offered[i]);
    CHECK_STR(best.name, "tanh"), CHECK_INT(best.distance, 1); // of two that are as near the first
    static const char* const parts[][2] = { { "p99", "time_ms_p99" },
                                            { "min", "time_ms_min" },
                                            { "speed", "speedup" } };
    for (int i = 0; i < 3; i++) { // what people say of longer names
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
    // UTF-8: of each length the first and the last, and what is none
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
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        CHECK_THAT(kbi_utf8((const unsigned char*)bytes[i].s) == bytes[i].n, "sequence %d: %d", (int)i,
                   kbi_utf8((const unsigned char*)bytes[i].s));
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
    // the unit that the largest can be read in, if the smallest can
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
        CHECK(kbi_cell_reads(&c, all, 3));
    }
    c.scale = 1;
    rows[0].items_per_second = 2e5, rows[1].items_per_second = 50; // 200000 items/s would be better kitems
    CHECK(!kbi_cell_reads(&c, all, 3));
    rows[0].items_per_second = 99999;
    CHECK(kbi_cell_reads(&c, all, 3));
    for (int i = 0; i < 3; i++) kb_result_free(&rows[i]);
}

// --- lines that come and go ---

static void test_progress(void) {
    kbi_progress p;
    memset(&p, 0, sizeof p);
    unsetenv("COLUMNS");
    hold(stderr);
    kbi_progress_open(&p, true);
    kbi_progress_show(&p, 0, 7, "first");
    CHECK_STR(caught(stderr), ""); // that is no terminal
    p.on = true;
    kbi_progress_begin(&p, 400);
    kbi_progress_group(&p, 100);
    hold(stderr);
    kbi_progress_show(&p, 0, 7, "first");
    kbi_progress_show(&p, 0, 7, "at once again");
    CHECK_STR(caught(stderr), "\r[1/7]  first\033[K"); // in a line of 80
    static const struct {
        double over;
        const char* says;
    } left[] = { { 380, "  10 s left" }, { 90, "  5 min left" }, { 300, "  90 s left" }, { 295, "  2 min left" } };
    for (int i = 0; i < 4; i++) { // 10 s have gone, and so much is over, which took no less than it might
        p.last = 0, p.began = kbi_now() - 10 * (int64_t)1000000000;
        p.pace.over = left[i].over, p.pace.took = left[i].over,
        p.pace.now = i == 0   ? 20
                     : i == 1 ? 10
                     : i == 2 ? 100
                              : 105;
        p.pace.said = -1, p.pace.began = 0;
        hold(stderr);
        kbi_progress_show(&p, 2, 7, "a_name_of_sixty_characters_that_is_cut_off_at_the_line's_end_is_it");
        const char* line = caught(stderr);
        CHECK_THAT(strncmp(line, "\r[3/7]  ", 8) == 0 && strstr(line, left[i].says), "line %d: %s", i, line + 1);
        CHECK_HAS(line, "  a_name_of_sixty_characters_");
        CHECK_HAS(line, "..."), CHECK_HAS(line, "_line's_end_is_it\033[K");
        CHECK_INT(strlen(line), 79 + strlen("\r\033[K"));
        CHECK_REAL(p.pace.said_at, 10, 0.05);
    }
    p.pace.said = 3, p.pace.said_at = 10; // what was said is not taken back; nor is it kept where it is wrong
    p.last = 0, p.pace.over = p.pace.took = 0, p.pace.now = 400;
    hold(stderr);
    kbi_progress_show(&p, 2, 7, "a\x1b]0;name\x07\r\n");
    CHECK_STR(caught(stderr), "\r[3/7]  longer than planned  a\\x1b]0;name\\x07  \033[K");
    setenv("COLUMNS", "40", 1), p.last = 0;
    hold(stderr);
    kbi_progress_show(&p, 2, 7, "seven_by_seven");
    CHECK_STR(caught(stderr), "\r[3/7]  longer than planned  seve...even\033[K");
    unsetenv("COLUMNS");
    hold(stderr);
    kbi_progress_clear(&p), kbi_progress_clear(&p);
    CHECK_STR(caught(stderr), "\r\033[K");
    kbi_progress_begin(&p, 50); // another device
    CHECK_REAL(p.pace.all, 50, 0), CHECK_REAL(p.pace.said, -1, 0);
    p.began -= 5 * (int64_t)1000000000;
    kbi_progress_group(&p, 20);
    CHECK_REAL(p.pace.now, 20, 0), CHECK_REAL(p.pace.over, 0, 0), CHECK_REAL(p.pace.took, 0, 0);
    p.began -= 3 * (int64_t)1000000000;
    kbi_progress_group(&p, 30);
    CHECK_REAL(p.pace.over, 20, 0), CHECK_REAL(p.pace.took, 3, 0.02), CHECK_REAL(p.pace.now, 30, 0);
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

// --- what texts are made with ---

static void test_shown(void) {
    char out[40];
    static const struct {
        double x;
        const char *span, *bytes, *percent;
    } rows[] = { { 0, "0 s", "0 B", "<0.1%" },
                 { 1, "1 s", "1 B", "100%" },
                 { 0.5, "0.50 s", "0.5 B", "50.0%" },
                 { 1.5, "1.5 s", "2 B", "150%" },
                 { 9.94, "9.9 s", "10 B", "994%" },
                 { 9.96, "10 s", "10 B", "996%" },
                 { 90, "90 s", "90 B", "9000%" },
                 { 91, "2 min", "91 B", "9100%" },
                 { 999, "17 min", "999 B", "99900%" },
                 { 1000, "17 min", "0.977 KiB", "100000%" },
                 { 5400, "90 min", "5.27 KiB", "540000%" },
                 { 5401, "1.5 h", "5.27 KiB", "540100%" },
                 { 36000, "10 h", "35.2 KiB", "3600000%" },
                 { 1048576, "291 h", "1.00 MiB", "104857600%" },
                 { 0.00099, "0.00099 s", "0.001 B", "<0.1%" },
                 { 0.000996, "0.0010 s", "0.001 B", "0.10%" },
                 { 0.0994, "0.099 s", "0.1 B", "9.9%" },
                 { 0.1, "0.10 s", "0.1 B", "10.0%" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        CHECK_STR(kbi_show_span(rows[i].x, out), rows[i].span);
        CHECK_STR(kbi_show_bytes(rows[i].x, out), rows[i].bytes);
        CHECK_STR(kbi_show_percent(rows[i].x, out), rows[i].percent);
    }
    CHECK_STR(kbi_show_bytes(1e30, out), "909494701772928256 TiB"), CHECK_STR(kbi_show_bytes(1e12, out), "931 GiB");
    CHECK_STR(kbi_show_percent(NAN, out), "-"), CHECK_STR(kbi_show(NAN, 3, out), "-"),
        CHECK_STR(kbi_show(1.5, 3, out), "1.50");
    // a number as it is in a file: the fewest of 15 to 17 digits that read back, as printf writes them
    uint64_t state = 7;
    for (int i = 0; i < 30000; i++) {
        char want[40];
        double x;
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        if (i % 3 == 0)
            x = (double)(bits >> 40) / (i % 2 ? 1000 : 64); // few digits
        else if (i % 3 == 1)
            x = (double)(int64_t)bits * pow(10, -(int)(bits % 31)); // where most numbers lie
        else
            memcpy(&x, &bits, sizeof x); // any
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
                 { NULL, "null", NULL } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_text t = KBI_BLANK;
        kbi_json_text(&t, rows[i].s);
        CHECK_STR(t.s, rows[i].json);
        t.n = 0, kbi_puts(&t, "");
        if (rows[i].clean) kbi_clean(&t, rows[i].s), CHECK_STR(t.s, rows[i].clean);
        kbi_text_free(&t);
    }
    // what a terminal would obey: the first and the last of each kind, and what lies beside them
    static const struct {
        const char *s, *spelled; // NULL: it is text
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
                   { "\xe2\x81\xa5", NULL },
                   { "\xe2\x81\xa6", "\\u2066" },
                   { "\xe2\x81\xa9", "\\u2069" },
                   { "\xe2\x81\xaa", NULL },
                   { "\xe3\x80\xa8", NULL } };
    for (int i = 0; i < KBI_COUNT(obeyed); i++) {
        char text[16], whole[16];
        int n = kbi_obeyed(obeyed[i].s);
        CHECK_THAT(n == (obeyed[i].spelled ? (int)strlen(obeyed[i].s) : 0), "text %d: %d", i, n);
        if (n) CHECK_STR(kbi_spelled(obeyed[i].s, n, text), obeyed[i].spelled);
        kbi_text t = KBI_BLANK;
        snprintf(whole, sizeof whole, "a%sb", obeyed[i].s);
        kbi_clean(&t, whole);
        snprintf(text, sizeof text, "a%sb", obeyed[i].spelled ? obeyed[i].spelled : obeyed[i].s);
        CHECK_STR(t.s, text);
        kbi_text_free(&t);
    }
    kbi_text t = KBI_BLANK;
    kbi_json_real(&t, 0.25), kbi_puts(&t, " "), kbi_json_real(&t, NAN), kbi_puts(&t, " "),
        kbi_json_real(&t, -INFINITY);
    CHECK_STR(t.s, "0.25 null null");
    kbi_text_free(&t);
    // in a fixed room, whole characters
    static const struct {
        const char *before, *s, *want; // a room of 12
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
    kbi_arena_alloc(&a, 4096 - 48), CHECK(a.used == 4096 && a.size == 4096); // to the last byte
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
    CHECK(kbi_hash(14695981039346656037u, "a") == 0xaf63dc4c8601ec8cu); // of the authors' own table
    CHECK(kbi_hash(14695981039346656037u, "foobar") == 0x85944171f73967e8u && kbi_hash(5, "") == 5);
    CHECK(kbi_hash(14695981039346656037u, "\xff") == (14695981039346656037u ^ 255) * 1099511628211u);
    char name[70];
    for (int k = 62; k < 66; k++) { // the longest that are compared
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
    // a set and a map, however many are in them; 0 is a key like any
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
            if (turn && i == 9) kbi_map_take(&map, slot, key, i * 3); // once more is no more
            wrong += map.n != (size_t)(turn ? 3000 : i + 1) || 2 * map.n > map.size;
        }
    CHECK_INT(wrong, 0), CHECK_INT(set.n, 2999), CHECK_INT(map.n, 3000), CHECK(set.size == 8192 && map.size == 8192);
    kbi_set_free(&set), CHECK(!set.slots && !set.n && !set.size);
    KBENCH_FREE(map.slots);
}

// What is read and written as a whole, in however many pieces it comes.
static void test_pipes(void) {
    int ends[2];
    char got[16] = "", path[] = "/tmp/kbench_texts.XXXXXX", line[8];
    CHECK(pipe(ends) == 0);
    CHECK(kbi_write_all(ends[1], "abc", 3) && kbi_write_all(ends[1], "defgh", 5) && kbi_write_all(ends[1], NULL, 0));
    CHECK(kbi_read_all(ends[0], got, 7) && strcmp(got, "abcdefg") == 0 && kbi_read_all(ends[0], got, 0));
    close(ends[1]);
    CHECK(!kbi_read_all(ends[0], got, 2) && got[0] == 'h'); // one of two
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
    CHECK_INT(then, open_now + 1); // none is left open
    close(open_now), close(then);
    kbi_open_standard_files(); // nothing is missing, and nothing is added
    then = dup(1), CHECK_INT(then, open_now), close(then);
    then = dup(0), close(0);
    kbi_open_standard_files();
    CHECK(fcntl(0, F_GETFD) == 0), CHECK(dup2(then, 0) == 0), close(then);
    then = dup(1), CHECK_INT(then, open_now), close(then);
}

int main(void) {
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
    return test_end();
}
