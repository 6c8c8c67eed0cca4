// SPDX-License-Identifier: MIT OR Unlicense
// Tests the parsers of the command line and of axes: times, numbers, lists and names.
#include "test.h"
#include <stdlib.h>
#include "guarded.h"
#include "kit.h"

static void test_times(void) {
    CHECK_REAL(kbi_parse_time("200ms"), 0.2, 1e-12);
    CHECK_REAL(kbi_parse_time("3s"), 3, 1e-12);
    CHECK_REAL(kbi_parse_time("1.5m"), 90, 1e-12);
    CHECK_REAL(kbi_parse_time("2h"), 7200, 1e-12);
    CHECK_REAL(kbi_parse_time("10us"), 1e-5, 1e-12);
    CHECK_REAL(kbi_parse_time("7ns"), 7e-9, 1e-12);
    CHECK_REAL(kbi_parse_time("0s"), 0, 0);
    static const char* const bad[] = { "",       "3",    "s",    "3 s", "-1s",   "3sec",
                                       "1e999s", "nans", "infs", "3ss", "ms200", "1,5s" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        CHECK_THAT(kbi_parse_time(bad[i]) < 0, "'%s' is accepted as a time", bad[i]);
}

static void test_wholes(void) {
    static const struct {
        const char* text;
        int64_t want; // -1: not a whole number
    } cases[] = { { "0", 0 },     { "10", 10 },    { "010", 10 },  { "09", 9 },   { "+7", 7 },
                  { "0x10", 16 }, { "0XfF", 255 }, { "100", 100 }, { "", -1 },    { "1e3", -1 },
                  { "x", -1 },    { "0x", -1 },    { "-1", -1 },   { "101x", -1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        int64_t got = -1;
        if (!kbi_parse_whole(cases[i].text, 0, 1000, &got)) got = -1;
        CHECK_THAT(got == cases[i].want, "'%s' is %lld", cases[i].text, (long long)got);
    }
}

static void test_names(void) {
    CHECK(kbi_same_name("LayerNorm", "layernorm"));
    CHECK(kbi_same_name("layer_norm", "layernorm"));
    CHECK(kbi_same_name("Layer-Norm", "layernorm"));
    CHECK(!kbi_same_name("layernorm", "layernorms"));
    CHECK(!kbi_same_name("layernorms", "layernorm"));
    CHECK(!kbi_same_name("", "a"));
    CHECK_INT(kbi_distance("kitten", "sitting"), 3);
    CHECK_INT(kbi_distance("", "abc"), 3);
    CHECK_INT(kbi_distance("abc", ""), 3);
    CHECK_INT(kbi_distance("ABC", "abc"), 0);
    char name[200];
    memset(name, 'a', 199);
    name[199] = 0;
    CHECK(kbi_distance(name, "abc") >= 60);
    CHECK_STR(kb_dtype_name(KB_BF16), "bf16");
    for (int t = KB_F32; t <= KB_E5M2; ++t) {
        CHECK_INT(kb_dtype_of(kb_dtype_name((kb_dtype)t)), t);
        CHECK(kb_dtype_size((kb_dtype)t) >= 1 && kb_dtype_size((kb_dtype)t) <= 8);
    }
    CHECK_INT(kb_dtype_of("f33"), KB_NODTYPE);
    CHECK_INT(kb_dtype_of(NULL), KB_NODTYPE);
    CHECK_INT(kb_dtype_size(KB_NODTYPE), 0);
    for (int f = 0; f < KB_FLAG_COUNT; ++f) {
        CHECK(kb_flag_name((kb_flag)f) && kb_flag_name((kb_flag)f)[0]);
        CHECK(kb_flag_advice((kb_flag)f) && strlen(kb_flag_advice((kb_flag)f)) > 10);
        CHECK_INT(kb_flag_is_error((kb_flag)f), f <= KB_FLAG_BAD_CASE);
    }
    CHECK_STR(kb_flag_name(KB_FLAG_FLOOR), "FLOOR");
}

// returns the values of a list, separated by blanks
static const char* values(kb_axis_type type, const char* list) {
    static char out[4][200];
    static int turn;
    kbi_arena a = { NULL, 0, 0 };
    kbi_dimension d = kbi_parse_list(&a, "n", type, list, strlen(list));
    char* at = out[turn = (turn + 1) % 4];
    *at = 0;
    for (int i = 0; i < d.n && at < out[turn] + 150; ++i) {
        const kb_param* v = &d.values[i];
        CHECK(v->type == type && kbi_is(v->name, "n"));
        if (type == KB_AXIS_INTS) CHECK(v->r == (double)v->i && (v->i || !signbit(v->r)));
        at += type == KB_AXIS_INTS    ? sprintf(at, "%s%lld", i ? " " : "", (long long)v->i)
              : type == KB_AXIS_REALS ? sprintf(at, "%s%g", i ? " " : "", v->r)
                                      : sprintf(at, "%s%s", i ? " " : "", v->s);
    }
    kbi_arena_free(&a);
    return out[turn];
}

// An invalid element makes the whole list invalid, whether it is alone, at the end or at the beginning.
static void refuses(kb_axis_type type, const char* bad) {
    for (int way = 0; way < 3; way++) {
        char list[64];
        snprintf(list, sizeof list, "%s%s%s", way == 1 ? "7," : "", bad, way == 2 ? ",7" : "");
        const char* taken = values(type, list);
        CHECK_THAT(!taken[0], "'%s' is accepted as the list %s", list, taken);
    }
}

static void test_lists(void) {
    CHECK_STR(values(KB_AXIS_INTS, "512"), "512");
    CHECK_STR(values(KB_AXIS_INTS, "1,2,3"), "1 2 3");
    CHECK_STR(values(KB_AXIS_INTS, "0,-1"), "0 -1");
    CHECK_STR(values(KB_AXIS_INTS, "2:5"), "2 3 4 5");
    CHECK_STR(values(KB_AXIS_INTS, "2:2"), "2");
    CHECK_STR(values(KB_AXIS_INTS, "1:64:*4"), "1 4 16 64");
    CHECK_STR(values(KB_AXIS_INTS, "1:63:*4"), "1 4 16");
    CHECK_STR(values(KB_AXIS_INTS, "0:100:+40"), "0 40 80");
    CHECK_STR(values(KB_AXIS_INTS, "2^10,2^20"), "1024 1048576");
    CHECK_STR(values(KB_AXIS_INTS, "7,1024:4096:*2,9"), "7 1024 2048 4096 9");
    CHECK_STR(values(KB_AXIS_REALS, "0.1,0.5:2:+0.5"), "0.1 0.5 1 1.5 2");
    CHECK_STR(values(KB_AXIS_REALS, "0:1:+0.1"), "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
    CHECK_STR(values(KB_AXIS_INTS, "-3:-1"), "-3 -2 -1");
    CHECK_STR(values(KB_AXIS_INTS, "-6:-1:+2"), "-6 -4 -2");
    CHECK_STR(values(KB_AXIS_INTS, "1000000000000:1000000000003"),
              "1000000000000 1000000000001 1000000000002 1000000000003");
    CHECK_STR(values(KB_AXIS_REALS, "-1:-0.7:+0.1"), "-1 -0.9 -0.8 -0.7");
    CHECK_STR(values(KB_AXIS_STRINGS, "a,b c"), "a b c");
    CHECK_STR(values(KB_AXIS_REALS, "inf,-inf,+Infinity,1"), "inf -inf inf 1");
    errno = ERANGE; // an old value of errno must not affect the result
    CHECK_STR(values(KB_AXIS_REALS, "0,0.0,-0,0^2,1e-300,2^-2,0^0"), "0 0 -0 0 1e-300 0.25 1");
    CHECK_STR(values(KB_AXIS_INTS, "0,-0,0^2"), "0 0 0");
    CHECK_STR(values(KB_AXIS_INTS, "999999999999999,-999999999999999"), "999999999999999 -999999999999999");
    CHECK_INT(strncmp(values(KB_AXIS_INTS, "1:4096"), "1 2 3 ", 6), 0);
    static const char* const no_reals[] = { "nan",    "-nan",     "1e999",    "10^400",  "2^inf",
                                            "inf^2",  "1:inf",    "1e-999",   "2^-5000", "inf:1",
                                            "-inf:1", "1:2:+inf", "1:inf:*2", "inf:inf", "infi" };
    for (size_t i = 0; i < sizeof no_reals / sizeof *no_reals; ++i) refuses(KB_AXIS_REALS, no_reals[i]);
    static const char* const bad[] = {
        "",         ",",      "1,",       ",1",      "1,,2",           "a",       "1:0",
        "1:",       ":1",     "1:2:",     "1:2:3",   "1:2:+0",         "1:2:+-1", "1:8:*1",
        "1:8:*0.5", "0:8:*2", "1:100000", "1.5",     "1e30",           "nan",     "inf",
        "1 2",      "0x",     "2^",       "1:2:3:4", "1:1e18:*1.0001", "1:4097",  "1e15",
        "-1e15"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) refuses(KB_AXIS_INTS, bad[i]);
    static const char* const no_words[] = { "", ",", "a,", ",a", "a,,b", "a,b\n", "\033[2J,b" };
    for (size_t i = 0; i < sizeof no_words / sizeof *no_words; ++i) refuses(KB_AXIS_STRINGS, no_words[i]);
}

static void test_axis_ends(void) {
    static const kb_axis axes[] = { KB_AXIS_REAL("p", 1.7976931348623157e308, INFINITY, -INFINITY, 0.0, 0),
                                    KB_AXIS_REAL("one", 0.0),
                                    KB_AXIS_REAL("full", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                                                 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, INFINITY),
                                    KB_AXIS_REAL("nan", NAN, 1),
                                    KB_AXIS_REAL("nan", 1, NAN),
                                    KB_AXIS_REAL("nan", NAN, 0) };
    static const int n[] = { 5, 1, 32, 0, 1, 0 };
    kbi_arena a = { NULL, 0, 0 };
    for (int i = 0; i < KBI_COUNT(axes); i++) {
        kbi_dimension d = kbi_axis_dimension(&a, &axes[i]);
        CHECK_THAT(d.n == n[i], "%s: %d values, not %d", axes[i].name, d.n, n[i]);
        for (int k = 0; k < d.n; k++)
            CHECK(d.values[k].r == axes[i].r[k] || (isnan(d.values[k].r) && isnan(axes[i].r[k])));
    }
    for (int i = 0; i < KBI_COUNT(axes); i++) // rejects a value after the end marker of the list
        CHECK_INT(kbi_axis_dimension(&a, &axes[i]).wrong != NULL, i >= 3);
    static const kb_axis ends[] = { KB_AXIS("i", 1, KB_LAST_INT, 2), KB_AXIS_STR("s", "a", NULL, "b"),
                                    KB_AXIS("i", 1, 0, 0), KB_AXIS("i", KB_LAST_INT), KB_AXIS_STR("s", "a") };
    for (int i = 0; i < KBI_COUNT(ends); i++) CHECK_INT(kbi_axis_dimension(&a, &ends[i]).wrong != NULL, i < 2);
    kb_axis endless;
    memset(&endless, 0, sizeof endless);
    endless.name = "i", endless.type = KB_AXIS_INTS;
    for (int i = 0; i <= KB_AXIS_MAX; i++) endless.i[i] = i + 1;
    CHECK(strstr(kbi_axis_dimension(&a, &endless).wrong, "more than 32 values"));
    kbi_arena_free(&a);
}

// the macros accept an axis name as plain text or as a string literal
static void test_words(void) {
    static const char* const names[][2] = { { "norm", "norm" },
                                            { "tile(64, (1, 2))", "tile(64, (1, 2))" },
                                            { "", "none" },
                                            { "\"\"", "none" },
                                            { "\"a, b\"", "a, b" },
                                            { "\"a\" \"b\"\"c\"", "abc" },
                                            { "\"a\\\"b\\\\c\"", "a\"b\\c" },
                                            { "\"a\" b", "\"a\" b" } };
    for (int i = 0; i < KBI_COUNT(names); i++) {
        const char* word = kbi_name_of(names[i][0], "none");
        CHECK_STR(word, names[i][1]);
        if (strcmp(word, "none") != 0) KBENCH_FREE((void*)word);
    }
    static const char list[] = "tile(64, 2),plain,a[1,{2,3}],odd),last(";
    static const char* const words[] = { "tile(64, 2)", "plain", "a[1,{2,3}]", "odd)", "last(" };
    const char* p = list;
    for (int i = 0; i < KBI_COUNT(words); i++) {
        size_t n;
        const char* next = kbi_word(p, &n);
        CHECK_THAT(n == strlen(words[i]) && strncmp(p, words[i], n) == 0, "%s: %d bytes", p, (int)n);
        p = next;
    }
    CHECK(!*p && kbi_lists(list, "PLAIN") && kbi_lists("a, b", "a, b") && !kbi_lists(list, "2)"));
}

static void test_list_rules(void) {
    static const struct {
        kb_axis_type type;
        const char *list, *wrong;
    } rows[] = { { KB_AXIS_INTS, "5:2", "ends above its start" },
                 { KB_AXIS_INTS, "1:9:-1", "a step is + or *" },
                 { KB_AXIS_INTS, "1:9:+0", "a step must be > 0" },
                 { KB_AXIS_INTS, "1:9:+-2", "a step must be > 0" },
                 { KB_AXIS_INTS, "1:9:*1", "a factor > 1" },
                 { KB_AXIS_INTS, "0:9:*2", "the start of a '*' range > 0" },
                 { KB_AXIS_REALS, "1:inf", "finite" },
                 { KB_AXIS_INTS, "1,x", "'x' is not a number" },
                 { KB_AXIS_INTS, "1k2", "'1k2' is not a number" },
                 { KB_AXIS_REALS, "1k", "'1k' is not a number" },
                 { KB_AXIS_REALS, "nan", "'nan' is not a number" },
                 { KB_AXIS_REALS, "1e999", "beyond the range" },
                 { KB_AXIS_INTS, "1,,2", "missing" },
                 { KB_AXIS_INTS, "1,", "missing" },
                 { KB_AXIS_INTS, "1.5", "1.5 is not a whole number" },
                 { KB_AXIS_INTS, "1:8:*1.5", "1.5 is not a whole number" },
                 { KB_AXIS_INTS, "1000T", "is not a whole number" },
                 { KB_AXIS_INTS, "1:5000", "more than 4096" },
                 { KB_AXIS_INTS, "1:2:+1:3", "a comma is missing before ':3'" },
                 { KB_AXIS_STRINGS, "a,,b", "a word is missing" },
                 { KB_AXIS_STRINGS, "a\tb", "control" } };
    static const struct {
        const char *list, *values;
    } reals[] = { { "0.1:0.5:+0.1", "0.1 0.2 0.3 0.4 0.5" },
                  { "-0.3:0.3:+0.1", "-0.3 -0.2 -0.1 0 0.1 0.2 0.3" },
                  { "1:1.3:+0.05", "1 1.05 1.1 1.15 1.2 1.25 1.3" },
                  { "1e-3:4e-3:+1e-3", "0.001 0.002 0.003 0.004" },
                  { "0.1:9:*3", "0.1 0.3 0.9 2.7 8.1" },
                  { "1e-9:1e-5:*10", "1e-09 1e-08 1e-07 1e-06 1e-05" },
                  { "0.7:0.7", "0.7" },
                  { "1e-30:3e-30:+1e-30", "1e-30 2e-30 3e-30" },
                  { "1e22:3e22:+1e22", "1e+22 2e+22 3e+22" },
                  { "0.123456789012345678:1", "0.12345678901234568" } };
    kbi_arena a = { NULL, 0, 0 };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_dimension d = kbi_parse_list(&a, "n", rows[i].type, rows[i].list, strlen(rows[i].list));
        CHECK_THAT(!d.n && d.wrong && strstr(d.wrong, rows[i].wrong), "%s: %s", rows[i].list, d.wrong ? d.wrong : "");
    }
    for (int i = 0; i < KBI_COUNT(reals); i++) {
        char all[400] = "", number[40];
        kbi_dimension d = kbi_parse_list(&a, "n", KB_AXIS_REALS, reals[i].list, strlen(reals[i].list));
        for (int k = 0; k < d.n; k++)
            sprintf(all + strlen(all), "%s%s", k ? " " : "", kbi_number(d.values[k].r, number));
        CHECK_STR(all, reals[i].values);
    }
    CHECK_STR(values(KB_AXIS_INTS, "1k,4M,2G,1T,3K,0k,-2k"), "1024 4194304 2147483648 1099511627776 3072 0 -2048");
    CHECK_STR(values(KB_AXIS_INTS, "1k:4k:*2,1.5k"), "1024 2048 4096 1536");
    kbi_arena_free(&a);
}

// in a set of keys, each key is reported as new exactly once, for any number and distribution of keys
static void test_set(void) {
    kbi_set s = { NULL, 0, 0 };
    int wrong = 0;
    for (int turn = 0; turn < 2; turn++)
        for (uint64_t i = 0; i < 20000; i++) {
            wrong += kbi_set_add(&s, i * 64) != !turn;
            wrong += kbi_set_add(&s, kbi_hash(i + 1, "key")) != !turn;
        }
    CHECK_INT(wrong, 0);
    CHECK_INT(s.n, 40000);
    kbi_set_free(&s);
}

// random texts, for the sanitizers
static void test_fuzz(void) {
    static const char letters[] = "0123456789:,+*-^.eE axn";
    uint64_t state = 1;
    for (int turn = 0; turn < 20000; ++turn) {
        char text[24];
        int n = 0;
        do {
            state = state * 6364136223846793005u + 1442695040888963407u;
            text[n++] = letters[(state >> 33) % (sizeof letters - 1)];
        } while (n < 23 && (state >> 20) % 8);
        text[n] = 0;
        kbi_arena a = { NULL, 0, 0 };
        kbi_dimension d = kbi_parse_list(&a, "n", turn % 2 ? KB_AXIS_INTS : KB_AXIS_REALS, text, strlen(text));
        if (d.n < 0 || d.n > KBI_VALUES) CHECK_INT(d.n, 0);
        kbi_arena_free(&a);
        kbi_parse_time(text);
    }
    CHECK(1);
}

int main(void) {
    test_times();
    test_wholes();
    test_names();
    test_lists();
    test_axis_ends();
    test_words();
    test_list_rules();
    test_set();
    test_fuzz();
    return test_end();
}
