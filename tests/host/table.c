// SPDX-License-Identifier: MIT OR Unlicense
// Tests the table that kbench prints for hand-written records.
#include "test.h"
#include <stdlib.h>
#include "guarded.h"
#include "kit.h"

static kb_result records[64];
static int count;
static char text[65536];

static kb_result* add(const char* operation, const char* implementation, int64_t planned, double ms) {
    kb_result* r = &records[count++];
    kbi_result_clear(r);
    r->operation = operation, r->implementation = implementation, r->planned = planned;
    r->run_id = "run", r->kbench_version = "9.9.9", r->backend = "cuda", r->cpu = "A Processor";
    r->gpu = "NVIDIA Something", r->compute_capability = "9.0", r->driver = "580.1", r->cuda = "13.0", r->device = 0;
    r->copy_roof_gbps = 4236.4;
    r->time_ms = ms, r->precision = 0.001, r->samples = 30;
    return r;
}
static void param(kb_result* r, const char* name, int64_t value) {
    kb_param* all = (kb_param*)kbi_arena_alloc(r->owned, sizeof(kb_param) * (size_t)(r->params.n + 1));
    if (r->params.n) memcpy(all, r->params.of, sizeof(kb_param) * (size_t)r->params.n);
    all[r->params.n].name = name, all[r->params.n].type = KB_AXIS_INTS, all[r->params.n].i = value;
    r->params.of = all;
    r->params.n++;
}
static void clear(void) {
    while (count) kb_result_free(&records[--count]);
}
// returns the printed table; `at_a_time` is the number of records passed per call (0: all records in one call)
static const char* shown(int width, int at_a_time, const char* sort, const char* columns) {
    FILE* f = tmpfile();
    kbi_how how;
    kbi_table t;
    memset(&how, 0, sizeof how);
    how.out = f, how.width = width, how.sort = sort, how.columns = columns;
    kbi_table_open(&t, &how);
    for (int i = 0; i < count; i += at_a_time ? at_a_time : count)
        kbi_table_add(&t, records + i, KBI_MIN(at_a_time ? at_a_time : count, count - i));
    kbi_table_end(&t);
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}
static int times(const char* part) {
    int n = 0;
    for (const char* p = text; (p = strstr(p, part)) != NULL; p++) n++;
    return n;
}

static void test_machines(void) {
    add("one", "default", 1, 1);
    add("two", "default", 1, 1);
    CHECK_HAS(shown(80, 0, NULL, NULL),
              "kbench 9.9.9 Something sm_90 driver 580.1 CUDA 13.0 copy 4236 GB/s\n\n");
    CHECK_INT(times("kbench 9.9.9"), 1);
    records[1].copy_roof_gbps = 4240;
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("kbench 9.9.9"), 1);
    records[1].device = 1;
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("kbench 9.9.9"), 2);
    CHECK_INT(times("  time "), 2);
    records[1].device = 0, records[1].tool = "compute-sanitizer";
    CHECK_HAS(shown(80, 0, NULL, NULL), "CUDA 13.0 under compute-sanitizer: not\ntimed\n");
    records[1].tool = records[1].gpu = NULL, records[1].no_gpu = "no driver";
    CHECK_HAS(shown(80, 0, NULL, NULL), "\nkbench 9.9.9 CPU times (no driver) A Processor\n");
    records[1].cpu = NULL;
    CHECK_HAS(shown(80, 0, NULL, NULL), "CPU times (no driver) processor unknown\n");
    clear();
}

// Two records belong to the same group even if their axes are in different order.
static void test_groups(void) {
    for (int i = 0; i < 6; i++) {
        kb_result* r = add("product", i % 2 ? "fast" : "slow", 6, i % 2 ? 1 : 2);
        r->baseline = "slow", r->winner = "fast", r->winner_certain = i < 2, r->speedup = i % 2 ? 2 : 1;
        r->bytes = 1, r->throughput_gbps = 100, r->gpu_efficiency = 50;
        param(r, i % 2 ? "m" : "n", i % 2 ? 7 : i / 2);
        param(r, i % 2 ? "n" : "m", i % 2 ? i / 2 : 7);
    }
    CHECK_STR(shown(80, 0, NULL, NULL),
              "kbench 9.9.9 Something sm_90 driver 580.1 CUDA 13.0 copy 4236 GB/s\n"
              "\n"
              "product                time ms     +-     GB/s   roof  speedup\n"
              " n=0 m=7\n"
              " slow                    2.000  0.10%    100.0  50.0%    1.00\n"
              " fast                    1.000  0.10%    100.0  50.0%    2.00  fastest\n"
              " n=1 m=7\n"
              " slow                    2.000  0.10%    100.0  50.0%    1.00\n"
              " fast                    1.000  0.10%    100.0  50.0%    2.00  fastest?\n"
              " n=2 m=7\n"
              " slow                    2.000  0.10%    100.0  50.0%    1.00\n"
              " fast                    1.000  0.10%    100.0  50.0%    2.00  fastest?\n"
              "\n"
              "+-: 95 % interval of the median in one process, with bias; other processes may\n"
              "differ by more\n"
              "~, fastest?: not significant at 95 %.\n"
              "\n"
              "product: fast is fastest in 1 of 3 comparisons\n"
              "product: no significant winner in 2 of 3 comparisons\n"
              "\n"
              "6 cases: 6 ok\n");
    char* all = strdup(text);
    CHECK_STR(shown(80, 2, NULL, NULL), all);
    free(all);
    for (int i = 2; i < 6; i++) records[i].run_id = "another";
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("fastest"), 5); // "fastest" also occurs in the legend and in the summary
    count = 1;
    CHECK_HAS(shown(80, 0, NULL, NULL), "\n1 case: 1 ok\n");
    count = 6;
    clear();
}

static void test_rates(void) {
    kb_result* r = add("sweep", "default", 3, 1);
    r->gflops = 900, param(r, "n", 1);
    r = add("sweep", "default", 3, 1);
    r->gflops = 4000, param(r, "n", 2); // 4000 GFLOP/s is still readable in TFLOP/s
    r = add("sweep", "default", 3, 1);
    r->gflops = 4e5, param(r, "n", 3);
    shown(80, 0, NULL, NULL);
    CHECK_HAS(text, "sweep                  time ms     +-  GFLOP/s\n"
                    " n=1                     1.000  0.10%    900.0\n"
                    " n=2                     1.000  0.10%     4000\n"
                    "\n"
                    "sweep                  time ms     +-  TFLOP/s\n"
                    " n=3                     1.000  0.10%    400.0\n");
    CHECK_INT(times("GB/s"), 1);
    CHECK_INT(times("roof"), 0);
    // a column is printed from the first row that has a value for it to the last row
    records[1].items_per_second = 2.5e6;
    shown(80, 0, NULL, NULL);
    CHECK_HAS(text, "sweep                  time ms     +-  GFLOP/s\n");
    CHECK_HAS(text, "sweep                  time ms     +-  TFLOP/s Mitems/s\n"
                    " n=2                     1.000  0.10%    4.000    2.500\n"
                    " n=3                     1.000  0.10%    400.0        -\n");
    records[1].items_per_second = 5;
    CHECK_HAS(shown(80, 0, NULL, NULL), "TFLOP/s  items/s\n");
    records[2].status = KB_FAILED, records[2].gflops = NAN, records[2].bytes = 8;
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("  time "), 2);
    clear();
}

// All times of a column share a unit if one unit makes all of them readable. Otherwise, a heading with another
// unit is printed before each time that is not readable in the current unit.
static void test_units(void) {
    static const struct {
        double ms[3];
        const char *title, *first, *last;
    } series[] = {
        { { 0.0005, 0.002, 0.05 }, "time ns", " n=0                     500.0", " n=2                     50000" },
        { { 0.02, 0.4, 3 }, "time us", " n=0                     20.00", " n=2                      3000" },
        { { 5, 1, 0.02 }, "time ms", " n=0                     5.000", " n=2                   0.02000" },
        { { 2500, 99.996, 100 }, "time s", " n=0                     2.500", " n=2                    0.1000" }
    };
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
        for (int k = 0; k < 3; k++) param(add("sweep", "default", 3, series[i].ms[k]), "n", k);
        shown(80, 1, NULL, NULL);
        CHECK_INT(times(" time"), 1);
        CHECK_HAS(text, series[i].title);
        CHECK_HAS(text, series[i].first);
        CHECK_HAS(text, series[i].last);
        clear();
    }
    static const double apart[] = { 0.002, 500, 400, 0.0007 };
    for (int k = 0; k < 4; k++) param(add("sweep", "default", 4, apart[k]), "n", k);
    CHECK_HAS(shown(80, 0, NULL, NULL), "time us     +-\n n=0                     2.000  0.10%\n\n");
    CHECK_HAS(text,
              "time ms     +-\n n=1                     500.0  0.10%\n n=2                     400.0  0.10%\n\n");
    CHECK_HAS(text, "time ns     +-\n n=3                     700.0  0.10%\n");
    clear();
    // a comparison has one column of times in one unit, even if the times differ much
    for (int k = 0; k < 2; k++)
        add("far", k ? "fast" : "slow", 2, k ? 0.003 : 20)->memory_bytes = k ? 3 << 20 : 1 << 30;
    CHECK_HAS(shown(80, 0, NULL, NULL), "time us     +-  mem MiB\n"
                                        " slow                    20000  0.10%     1024\n"
                                        " fast                    3.000  0.10%     3.00\n");
    clear();
}

// If a row is wider than the terminal, columns are dropped in a fixed order. A long label is printed on a line of
// its own.
static void test_width(void) {
    static const char* const least[] = { "samples", " bar", "interval", "mem KiB", "items/s",
                                         "GFLOP/s", "roof", " GB/s",    "+-",      "speedup" };
    for (int i = 0; i < 2; i++) {
        kb_result* r = add("product", i ? "mine" : "an_implementation_of_a_name_so_long_that_it_is_cut", 2, 2 - i);
        r->throughput_gbps = r->gflops = r->items_per_second = 1, r->gpu_efficiency = 100, r->memory_bytes = 4096;
        r->baseline = "an_implementation", r->winner = "mine", r->winner_certain = 0;
        r->speedup = 1 + i, r->speedup_low = 0.998, r->speedup_high = 1.002;
        for (int f = KB_FLAG_FLOOR; f < KB_FLAG_FLOOR + 6; f++) r->flags |= (uint64_t)1 << f;
    }
    int before = 0;
    for (int width = 160; width >= 40; width--) {
        int gone = 0, after = 0;
        shown(width, 0, NULL, NULL);
        char* heading = strdup(strstr(text, "\nproduct") + 1);
        heading[strcspn(heading, "\n")] = 0;
        while (gone < 10 && !strstr(heading, least[gone])) gone++;
        for (int i = gone; i < 10; i++) after += !strstr(heading, least[i]);
        CHECK_THAT(after == 0 && gone >= before, "%d: '%s'", width, heading);
        before = gone;
        for (const char* s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
            CHECK_THAT((int)strcspn(s, "\n") <= width, "%d: '%.*s'", width, (int)strcspn(s, "\n"), s);
        CHECK_THAT(times("fastest?") == 2, "%d", width);
        CHECK_THAT(strstr(text, "_of_a_name_so_long") || width < 60, "%d columns: the label is too short", width);
        free(heading);
        if (width == 160) CHECK_INT(gone, 0);
        if (width == 80) CHECK_INT(gone, 6);
        if (width == 40) CHECK_INT(gone, 9);
        if (width == 40) CHECK_INT(times("+\n"), 2);
    }
    clear();
}

static void test_sort(void) {
    static const double gflops[] = { 3, 1, NAN, 2, 2 };
    for (int i = 0; i < 5; i++) {
        kb_result* r = add("sweep", "default", 5, 1 + i);
        r->gflops = gflops[i], param(r, "n", i);
    }
    static const struct {
        const char *by, *want;
    } orders[] = { { "gflops", "13402" },          { "-gflops", "03412" },  { "GFLOP/s,-time", "14302" },
                   { "-TFLOP/s,-time", "04312" },  { "-time_ms", "43210" }, { "time", "01234" },
                   { "operation,-time", "43210" }, { "winner", "01234" } };
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        char seen[16] = "";
        shown(80, 0, orders[o].by, NULL);
        for (const char* p = text; (p = strstr(p, " n=")) != NULL; p++) strncat(seen, p + 3, 1);
        CHECK_THAT(strcmp(seen, orders[o].want) == 0, "--sort %s gives %s, not %s", orders[o].by, seen,
                   orders[o].want);
    }
    clear();
}

static void test_columns(void) {
    kb_result* r = add("one", "default", 1, 0.5);
    r->gflops = 1234.5, r->verified = 1, r->seed = 42, r->cache = "cold", r->verdict = KB_FASTER;
    CHECK_HAS(shown(80, 0, NULL, "GFLOP/s,gflops,time,time_ms,cache,seed,verified,status,verdict,baseline,roof"),
              " TFLOP/s   gflops  time us  time_ms    cache     seed verified   status  verdict baseline   roof\n"
              "one ");
    CHECK_HAS(text,
              "   1.234     1234    500.0   0.5000     cold       42      yes       ok   FASTER        -      -\n");
    kbi_shown list[KBI_SHOWN];
    CHECK_INT(kbi_shown_parse("columns", "time,+-,tflop/s,memory_bytes", list), 4);
    CHECK_INT(list[0].column, KBI_COLUMN_TIME);
    CHECK_INT(list[1].column, KBI_COLUMN_SPREAD);
    CHECK_INT(list[2].column, KBI_COLUMN_GFLOPS);
    CHECK_INT(list[3].column, -1);
    clear();
}

static void test_flags(void) {
    kb_result* r = add("one", "default", 1, 1);
    r->throughput_gbps = 1, r->gpu_efficiency = 50, r->memory_bytes = 4096;
    r->flags = (uint64_t)1 << KB_FLAG_UNVERIFIED;
    CHECK_HAS(shown(80, 0, NULL, NULL), "4.00 UV\n");
    CHECK_HAS(text, "\nUV UNVERIFIED, 1 case: the output was not checked; a wrong kernel could be as\n"
                    "   fast\n"
                    "   -> call kb_check or KB_CHECK_EACH after the timed block\n\n1 case");
    r->flags |= (uint64_t)1 << KB_FLAG_FEW;
    add("two", "default", 1, 1)->flags = r->flags;
    CHECK_HAS(shown(80, 0, NULL, NULL), "4.00 UV FE\n");
    CHECK_HAS(text, "UV UNVERIFIED, 2 cases:");
    CHECK_HAS(text, "FE FEW, 2 cases:");
    clear();
    r = add("one", "default", 1, NAN);
    r->status = KB_FAILED, r->flags = (uint64_t)1 << KB_FLAG_OVERRUN;
    CHECK_HAS(shown(80, 0, NULL, NULL), "compute-sanitizer");
    r->gpu = NULL;
    CHECK(!strstr(shown(80, 0, NULL, NULL), "compute-sanitizer") && strstr(text, "valgrind"));
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        CHECK_THAT(!strstr(kbi_flag_advice((kb_flag)f, false), "compute-sanitizer"), "%s", kb_flag_name((kb_flag)f));
        CHECK_STR(kbi_flag_advice((kb_flag)f, KBI_CUDA), kb_flag_advice((kb_flag)f));
        CHECK_THAT(!strstr(kbi_flag_advice((kb_flag)f, false), "nvidia-smi"), "%s", kb_flag_name((kb_flag)f));
    }
    clear();
}

static void test_words(void) {
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        const char *name = kb_flag_name((kb_flag)f), *mark = kbi_flags[f].mark;
        const char* parts[] = { kbi_flags[f].what, kbi_flags[f].why, kbi_flag_advice((kb_flag)f, true),
                                kbi_flag_advice((kb_flag)f, false) };
        CHECK_THAT(strlen(mark) == (kb_flag_is_error((kb_flag)f) ? 0 : 2), "%s: the mark '%s'", name, mark);
        for (int k = 0; k < f; k++)
            CHECK_THAT(!*mark || strcmp(mark, kbi_flags[k].mark), "%s: the mark '%s' is not unique", name, mark);
        for (int i = 0; i < 4; i++) {
            CHECK_THAT(strlen(parts[i]) >= 12 && !strchr(parts[i], '\n') && parts[i][strlen(parts[i]) - 1] != '.',
                       "%s: '%s'", name, parts[i]);
            CHECK_THAT(strlen("   -> ") + strlen(parts[i]) <= 78, "%s: '%s' has %d characters", name, parts[i],
                       (int)strlen(parts[i]));
        }
    }
}

static kb_result* rival(const char* op, const char* impl, double speedup, double off, const char* winner, int sure) {
    kb_result* r = add(op, impl, 20, 1 / speedup);
    r->baseline = "base", r->winner = winner, r->winner_certain = sure, r->speedup = speedup;
    if (off > 0) r->speedup_low = speedup * (1 - off), r->speedup_high = speedup * (1 + off);
    return r;
}
static void test_winners(void) {
    for (int i = 0; i < 3; i++) {
        param(rival("gemm", "base", 1, 0, "mine", 1), "n", i);
        param(rival("gemm", "mine", 2 + i, 0.1, "mine", 1), "n", i);
    }
    rival("scan", "base", 1, 0, "base", 1);
    rival("scan", "slow", 0.5, 0.1, "base", 1);
    rival("scan", "slower", 0.25, 0.1, "base", 1);
    for (int i = 0; i < 4; i++) {
        const char* winner = i == 1 ? "base" : "mine";
        param(rival("sum", "base", 1, 0, winner, i < 3), "n", i);
        param(rival("sum", "mine", i == 1 ? 0.5 : 2, 0.01, winner, i < 3), "n", i);
    }
    rival("sort", "base", 1, 0, "mine", 0);
    rival("sort", "mine", 1.001, 0.02, "mine", 0);
    rival("lost", "base", 1, 0, "mine", 1)->status = KB_FAILED;
    rival("lost", "mine", NAN, 0, "mine", 1);
    rival("alone", "base", 1, 0, NULL, -1);
    rival("alone", "mine", NAN, 0, NULL, -1);
    CHECK_HAS(shown(80, 0, NULL, NULL), "\n\ngemm: mine is fastest in 3 of 3 comparisons\n"
                                        "scan: base is fastest\n"
                                        "sum: mine is fastest in 2 of 4 comparisons\n"
                                        "sum: base is fastest in 1 of 4 comparisons\n"
                                        "sum: no significant winner in 1 of 4 comparisons\n"
                                        "sort: no significant winner\n\n");
    clear();
}

static void test_intervals(void) {
    add("one", "default", 1, 1);
    add("two", "default", 1, 1);
    CHECK_HAS(shown(80, 0, NULL, NULL),
              "\n\n+-: 95 % interval of the median in one process, with bias; other processes may\n"
              "differ by more\n\n2 cases");
    records[0].processes = records[1].processes = 5;
    CHECK_HAS(shown(80, 1, NULL, NULL), "\n\n+-: 95 % interval over several processes\n\n2 cases");
    CHECK_INT(times("+-:"), 1);
    CHECK(!strstr(shown(80, 1, NULL, "time,samples"), "+-"));
    records[0].precision = NAN;
    CHECK_HAS(shown(80, 0, NULL, NULL), "\n\n+-: 95 % interval over several processes\n\n2 cases");
    records[1].status = KB_FAILED;
    CHECK(!strstr(shown(80, 0, NULL, NULL), "+-:"));
    clear();
}

static void test_cut(void) {
    static const struct {
        const char* s;
        int columns;
        const char* want;
    } cuts[] = { { "abcdefghij", 10, "abcdefghij" },
                 { "abcdefghijk", 10, "abcd...ijk" },
                 { "abcdefghijk", 9, "abc...ijk" },
                 { "abcdefghijk", 4, "abcd" },
                 { "", 5, "" },
                 { "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5, "\xc3\xa9...\xc3\xa9" },
                 { "\xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8\xe6\xa0\xb8", 7, "\xe6\xa0\xb8...\xe6\xa0\xb8" } };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        kbi_text t = { NULL, 0, 0 };
        kbi_cut(&t, cuts[i].s, cuts[i].columns);
        CHECK_STR(t.s ? t.s : "", cuts[i].want);
        CHECK_THAT(kbi_width(t.s ? t.s : "", t.n) <= cuts[i].columns, "'%s' in %d columns", t.s, cuts[i].columns);
        kbi_text_free(&t);
    }
}

static void test_texts(void) {
    kb_result* r = add("caf\xc3\xa9", "bad\xff", 2, 1);
    r = add("caf\xc3\xa9", "\x1b[31mred", 2, 1);
    r->message = "two\nlines";
    CHECK_HAS(shown(80, 0, NULL, NULL), "caf\xc3\xa9                   time ms     +-\n"
                                        " bad\xef\xbf\xbd                    1.000  0.10%\n"
                                        " \\x1b[31mred             1.000  0.10%\n");
    records[0].implementation = "\xc2\x9b"
                                "2J\xe2\x80\xae"
                                "a\rb\x7f";
    records[1].implementation = "\xe6\xa0\xb8\xe5\xbf\x83"
                                "e\xcc\x81";
    CHECK_HAS(shown(80, 0, NULL, NULL), " \\x9b2J\\u202ea b\\x7f       1.000  0.10%\n"
                                        " \xe6\xa0\xb8\xe5\xbf\x83"
                                        "e\xcc\x81                     1.000  0.10%\n");
    clear();
}

int main(void) {
    test_machines();
    test_groups();
    test_rates();
    test_units();
    test_width();
    test_words();
    test_winners();
    test_cut();
    test_sort();
    test_columns();
    test_flags();
    test_intervals();
    test_texts();
    return test_end();
}
