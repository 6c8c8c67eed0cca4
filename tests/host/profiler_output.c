// SPDX-License-Identifier: MIT OR Unlicense
// Tests the parser of the output of ncu and nsys: units, numbers, other output in between, and launches that
// marker kernels assign to cases. The test files in tests/fixtures have the columns that ncu and nsys print.
#include "test.h"
#include "kit.h"

static kbi_launch_list looks;

static bool read_text(const char* text) {
    kbi_launch_list_free(&looks);
    return kbi_tool_csv_read(&looks, text);
}
static void read_file(const char* path) {
    kbi_text text = { NULL, 0, 0 };
    kbi_launch_list_free(&looks);
    CHECK(kbi_file_text(path, &text));
    CHECK(kbi_tool_csv_read(&looks, text.s));
    kbi_text_free(&text);
}
// Returns the profile of the kernel of a case whose name begins with `kernel`. If `kernel` is "", returns the
// total of all kernels of the case.
static const kbi_launches* look(int number, const char* kernel) {
    static kbi_launches none;
    for (int i = 0; i < looks.n; i++) {
        const kbi_launches* l = &looks.of[i];
        bool is = *kernel ? l->kernel && strncmp(l->kernel, kernel, strlen(kernel)) == 0 : !l->kernel;
        if (l->number == number && is) return l;
    }
    CHECK_THAT(false, "case %d: no '%s'", number, kernel);
    return &none;
}
static const char* unit(const kbi_launches* l, const char* name) {
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->of[i].name, name) == 0) return l->of[i].unit;
    return "none";
}
#define VALUE(number, kernel, name) kbi_launches_value(look(number, kernel), name)

// The output of ncu has two tables with different columns, so each table's own heading must be used.
static void test_ncu_tables(void) {
    kbi_text whole = KBI_BLANK, text = KBI_BLANK;
    int line = 0;
    CHECK(kbi_file_text("tests/fixtures/ncu_raw.csv", &whole));
    kbi_putf(&text, "%s\n", whole.s);
    for (char *at = whole.s, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        const char* more = ++line == 5 ? ",\"more__bytes.sum\"" : line == 6 ? ",\"Kbyte\"" : ",\"7\"";
        bool row = line >= 5 && *at == '"';
        if (row) kbi_putf(&text, "%.*s%s\n", (int)(end - at), at, more);
    }
    CHECK(read_text(text.s));
    CHECK_INT(looks.n, 10); // the second table's launches do not join the first table's five profiles
    if (looks.n == 10) {
        CHECK_STR(looks.of[6].kernel, look(0, "void scale")->kernel);
        CHECK_INT(looks.of[6].calls, 2);
        CHECK_REAL(kbi_launches_value(&looks.of[6], "more__bytes.sum"), 2 * 7000, 0);
        CHECK_STR(unit(&looks.of[6], "more__bytes.sum"), "byte");
    }
    kbi_text_free(&whole), kbi_text_free(&text);
}

static void test_ncu_raw(void) {
    read_file("tests/fixtures/ncu_raw.csv");
    CHECK_INT(looks.n, 5); // five profiles: two totals of cases and three kernels
    const kbi_launches *all = look(0, ""), *scale = look(0, "void scale");
    CHECK_INT(all->calls, 3);
    CHECK_INT(scale->calls, 2);
    CHECK_STR(scale->kernel, "void scale<float, 4>(const float *, float *, int)");
    CHECK_STR(scale->grid, "(4,096, 1, 1)");
    CHECK_STR(scale->block, "(256, 1, 1)");
    CHECK_REAL(scale->ns, 400000, 0);
    CHECK_REAL(all->ns, 500000, 0);
    // totals over launches: amounts are added, launch configurations give their maximum, percentages are averaged
    // by time
    CHECK_REAL(VALUE(0, "", "dram__bytes.sum"), 805306368.0 + 805306369 + 1024, 0);
    CHECK_REAL(VALUE(0, "", "launch__registers_per_thread"), 40, 0);
    CHECK_REAL(VALUE(0, "", "sm__warps_active.avg.pct_of_peak_sustained_active"), (90 * 3 + 80 + 20) / 5.0, 1e-12);
    CHECK_REAL(VALUE(0, "", "smsp__cycles_active.max"), 1200, 0);
    CHECK_REAL(VALUE(0, "", "smsp__cycles_active.min"), 50, 0);
    CHECK_REAL(VALUE(0, "", "dram__throughput.avg.pct_of_peak_sustained_elapsed"), (91.5 * 3 + 93.5) / 4, 1e-12);
    CHECK(isnan(VALUE(0, "reduce", "dram__throughput.avg.pct_of_peak_sustained_elapsed")));
    CHECK_STR(unit(all, "gpu__time_duration.sum"), "ns");
    CHECK(isnan(VALUE(0, "", "launch__func_cache_config")));
    CHECK(isnan(VALUE(0, "", "device__attribute_clock_rate")));
    CHECK_STR(look(2, "name")->kernel, "name with \"quotes\", and a comma");
    CHECK_REAL(look(2, "")->ns, 1.5e6, 0);
    CHECK_REAL(VALUE(2, "", "dram__bytes.sum"), 2.5, 0);
    CHECK(!kbi_launches_total(&looks, 1));
}

static void test_nsys(void) {
    read_file("tests/fixtures/nsys_trace.csv");
    // three kinds of work give three profiles and a total; a case without work gives only a total
    CHECK_INT(looks.n, 5);
    const kbi_launches* scale = look(0, "void scale");
    CHECK_INT(scale->calls, 2);
    CHECK_REAL(scale->ns, 9000, 0);
    CHECK_STR(look(0, "reduce")->grid, "(132, 2, 1)");
    CHECK_STR(look(0, "[CUDA")->grid, "");
    CHECK_REAL(VALUE(0, "", "nsys.kernels"), 3, 0);
    CHECK_REAL(VALUE(0, "", "nsys.kernel_ns"), 10000, 0);
    CHECK_REAL(VALUE(0, "", "nsys.memory_operations"), 1, 0);
    CHECK_REAL(VALUE(0, "", "nsys.memory_bytes"), 4000, 1e-12);
    // the span includes gaps between launches and counts overlapping launches once
    CHECK_REAL(VALUE(0, "", "nsys.span_ns"), 12000, 0);
    CHECK_REAL(VALUE(0, "", "launch__registers_per_thread"), 40, 0);
    CHECK_INT(look(1, "")->calls, 0);
    read_file("tests/fixtures/nsys_old.csv");
    CHECK_REAL(VALUE(0, "", "nsys.memory_operations"), 2, 0);
    CHECK_REAL(VALUE(0, "", "nsys.memory_bytes"), 4608, 0);
    CHECK_REAL(look(0, "[CUDA memset]")->ns, 300, 0);
    CHECK(isnan(VALUE(0, "", "nsys.kernels")));
}

static void check_number(const char* text, double want) {
    double x = -1;
    bool good = kbi_tool_number(text, &x);
    CHECK_THAT(good == !isnan(want) && (!good || x == want), "'%s': %d, %g", text, good, x);
}

static void test_numbers(void) {
    check_number("1,234", 1234);
    check_number("1,234,567.5", 1234567.5);
    check_number("4.0e-05", 4e-5);
    check_number("-3", -3);
    static const char* const none[] = { "n/a", "", "inf", "12 (3)", "1e999", "65,77", "1.234,567", "27.595.520" };
    // number formats of other locales are not accepted
    for (int i = 0; i < KBI_COUNT(none); i++) check_number(none[i], NAN);
    char out[40];
    CHECK_REAL(kbi_unit_base("Gbyte/second", out), 1e9, 0);
    CHECK_STR(out, "byte/s");
    CHECK_REAL(kbi_unit_base("msecond", out), 1e6, 0);
    CHECK_STR(out, "ns");
    CHECK_REAL(kbi_unit_base("register/thread", out), 1, 0);
    CHECK_STR(out, "register/thread");
    CHECK_REAL(kbi_unit_base("Mhz", out), 1e6, 0);
    CHECK_STR(out, "hz");
    CHECK_REAL(kbi_unit_base("", out), 1, 0);
}

// A case is not reported if the marker kernel at its end is missing.
static void test_half(void) {
    static const char head[] = "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"gpu__time_duration.sum\"\n";
    char text[1000];
    snprintf(text, sizeof text, "%s0,kbi_null,\"(1, 1, 1)\",\"(1.025, 1, 1)\",5\n1,work,,,7\n", head);
    CHECK(read_text(text));
    CHECK_INT(look(512, "work")->calls, 1);
    CHECK(!kbi_launches_total(&looks, 512));
    strcat(text,
           "2,kbi_null,,\"(3,1,1)\",5\n3,work,,,8\n4,kbi_null,,\"(4,1,1)\",5\n5,kbi_null,,\"(1,026, 1, 1)\",5\n");
    CHECK(read_text(text));
    CHECK(!kbi_launches_total(&looks, 512));
    CHECK(kbi_launches_total(&looks, 1));
}

static void test_broken(void) {
    CHECK(!read_text(""));
    CHECK(!read_text("==ERROR== nothing\n"));
    CHECK(read_text("\"ID\""));
    CHECK_INT(looks.n, 0);
    static const char* const files[] = { "tests/fixtures/ncu_raw.csv", "tests/fixtures/nsys_trace.csv" };
    for (int f = 0; f < 2; f++) {
        kbi_text whole = { NULL, 0, 0 };
        CHECK(kbi_file_text(files[f], &whole));
        for (size_t n = 0; n < whole.n; n += 7) {
            char* copy = kbi_keep_text(whole.s);
            copy[n] = 0;
            read_text(copy);
            copy[n] = n % 2 ? '"' : ',';
            for (size_t i = n + 1; i < whole.n; i++) copy[i] = whole.s[i];
            read_text(copy);
            KBENCH_FREE(copy);
        }
        kbi_text_free(&whole);
    }
}

// Units are converted to ns, bytes and hertz with any prefix; unknown units are kept.
static void test_units(void) {
    static const struct {
        const char* unit;
        double factor;
        const char* base;
    } units[] = { { "second", 1e9, "ns" },
                  { "sec", 1e9, "ns" },
                  { "s", 1e9, "ns" },
                  { "ms", 1e6, "ns" },
                  { "us", 1e3, "ns" },
                  { "ns", 1, "ns" },
                  { "nsecond", 1, "ns" },
                  { "usec", 1e3, "ns" },
                  { "byte", 1, "byte" },
                  { "bytes", 1, "byte" },
                  { "B", 1, "byte" },
                  { "KB", 1e3, "byte" },
                  { "Kbyte", 1e3, "byte" },
                  { "Mbytes", 1e6, "byte" },
                  { "GB", 1e9, "byte" },
                  { "Tbyte", 1e12, "byte" },
                  { "hz", 1, "hz" },
                  { "Khz", 1e3, "hz" },
                  { "Ghz", 1e9, "hz" },
                  { "B/s", 1, "byte/s" },
                  { "byte/ns", 1e9, "byte/s" },
                  { "MB/ms", 1e9, "byte/s" },
                  { "cycle/ns", 1e9, "cycle/s" },
                  { "inst/us", 1e6, "inst/s" },
                  { "%", 1, "%" },
                  { "block", 1, "block" },
                  { "byte/block", 1, "byte/block" },
                  { "inst/cycle", 1, "inst/cycle" },
                  { "xbyte", 1, "xbyte" },
                  { "PB", 1, "PB" },
                  { "Kbyte/block", 1, "Kbyte/block" },
                  { "minutes", 1, "minutes" },
                  { "a_unit_of_more_than_thirty_characters", 1, "a_unit_of_more_than_thirty_cha" },
                  { "a_unit_of_more_than_thirty_characters/x", 1, "a_unit_of_more_than_thirty_cha" } };
    char out[40];
    for (int i = 0; i < KBI_COUNT(units); i++) {
        double factor = kbi_unit_base(units[i].unit, out);
        CHECK_THAT(fabs(factor / units[i].factor - 1) < 1e-12 && strcmp(out, units[i].base) == 0, "%s: %g %s",
                   units[i].unit, factor, out);
    }
    CHECK(kbi_ends("a.sum", ".sum") && kbi_ends(".sum", ".sum") && !kbi_ends("sum", ".sum") &&
          !kbi_ends("a.sum1", ".sum"));
    CHECK(kbi_ncu_metric("dram__bytes.sum") && !kbi_ncu_metric("device__x") && !kbi_ncu_metric("a__b:c") &&
          !kbi_ncu_metric("a_b"));
}

// The total of a metric over several launches is a sum, maximum, minimum or mean, depending on the name and the
// unit of the metric.
static void test_added(void) {
    static const struct {
        const char *name, *unit;
        // first: value of the metric for a launch of 1 ns; second: for a launch of 3 ns; want: expected total of
        // both
        double first, second, want;
    } rows[] = { { "a.sum", "", 2, 5, 7 },         { "a.sum", "Kbyte", 2, 5, 7000 }, { "a.max", "", 2, 5, 5 },
                 { "a.max", "", -5, -2, -2 },      { "a.max", "", 5, 2, 5 },         { "a.min", "", 2, 5, 2 },
                 { "a.min", "", 5, 2, 2 },         { "launch__x", "", 2, 5, 5 },     { "launch__x", "", 5, 2, 5 },
                 { "nsys.x", "", 2, 5, 7 },        { "a.avg", "", 2, 6, 5 },         { "a.avg", "ms", 2, 6, 5e6 },
                 { "duration", "us", 2, 6, 8000 }, { "size", "byte", 2, 6, 8 },      { "rate", "byte/s", 2, 6, 5 },
                 { "share", "%", 2, 6, 5 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_launch_list_free(&looks);
        int all = kbi_launches_find(&looks, 0, NULL, NULL, NULL);
        kbi_launches* l = &looks.of[all];
        for (int k = 0; k < 40; k++) {
            char other[24];
            snprintf(other, sizeof other, "m%d.sum", k);
            kbi_metric_add(&looks, l, other, "", k, 1);
        }
        kbi_metric_add(&looks, l, rows[i].name, rows[i].unit, rows[i].first, 1);
        kbi_metric_add(&looks, l, rows[i].name, rows[i].unit, rows[i].second, 3);
        CHECK_INT(l->n, 41);
        CHECK_THAT(fabs(kbi_launches_value(l, rows[i].name) - rows[i].want) < 1e-9 * fabs(rows[i].want), "%s in %s: %g",
                   rows[i].name, rows[i].unit, kbi_launches_value(l, rows[i].name));
        CHECK_REAL(kbi_launches_value(l, "m39.sum"), 39, 0), CHECK(isnan(kbi_launches_value(l, "m40.sum")));
    }
    // kernels that differ in name, grid size or block size have separate profiles
    kbi_launch_list_free(&looks);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 40; i++) {
            char text[16];
            snprintf(text, sizeof text, "%d", i / 3);
            CHECK_INT(
                kbi_launches_find(&looks, 1, i % 3 == 0 ? text : "k", i % 3 == 1 ? text : "g", i % 3 == 2 ? text : "b"),
                i);
        }
    CHECK_INT(kbi_launches_find(&looks, 2, "k", "0", "b"), 40);
    CHECK_INT(looks.n, 41);
    CHECK(!kbi_launches_total(&looks, 1));
}

// If kb_count set a counter of that name, the record keeps the value from kb_count. A case that was not profiled
// gets no counters.
static void test_record(void) {
    kb_result r;
    static const kb_param counts[] = { { "mine", KB_AXIS_REALS, 0, 1, NULL }, { "two", KB_AXIS_REALS, 0, 2, NULL } };
    static const kb_param units[] = { { "two", KB_AXIS_STRINGS, 0, 0, "u" } };
    CHECK(read_text(
        "\"ID\",\"Kernel Name\",\"Grid Size\",\"dram__bytes.sum\",\"mine\",\"a__mine.sum\",\"sm__warps_active.avg.pct_of_peak_"
        "sustained_active\"\n"
        "\"\",\"\",\"\",\"Kbyte\",\"\",\"\",\"%\"\n"
        "\"0\",\"kbi_null\",\"(1,1,1)\",\"1\",\"1\",\"1\",\"1\"\n"
        "\"1\",\"work\",\"(8,1,1)\",\"3\",\"77\",\"4\",\"55.5\"\n"
        "\"2\",\"kbi_null\",\"(2,1,1)\",\"1\",\"1\",\"1\",\"1\"\n"));
    kbi_result_clear(&r);
    r.counters.of = counts, r.counters.n = 2, r.counter_units.of = units, r.counter_units.n = 1;
    kbi_record_launches(&r, &looks, 1);
    CHECK_INT(r.counters.n, 2), CHECK(r.counters.of == counts && isnan(r.occupancy_achieved));
    kbi_record_launches(&r, &looks, 0);
    kbi_text t = { NULL, 0, 0 };
    kbi_json_params(&t, r.counters), kbi_puts(&t, " "), kbi_json_params(&t, r.counter_units);
    CHECK_STR(
        t.s,
        "{\"mine\": 1, \"two\": 2, \"dram__bytes.sum\": 3000, \"a__mine.sum\": 4, "
        "\"sm__warps_active.avg.pct_of_peak_sustained_active\": 55.5} "
        "{\"two\": \"u\", \"dram__bytes.sum\": \"byte\", \"sm__warps_active.avg.pct_of_peak_sustained_active\": \"%\"}");
    CHECK_REAL(r.occupancy_achieved, 55.5, 0);
    kbi_record_launches(&r, &looks, 0), CHECK_INT(r.counters.n, 5);
    kbi_text_free(&t);
    kb_result_free(&r);
}

// A column is shown if any case has a value for it, even if only the first or the last case has one.
static void test_shown(void) {
    kbi_metric registers = { "launch__registers_per_thread", "", 40, 0 };
    for (int has = 0; has < 3; has++) {
        kbi_launches of[4];
        kbi_launch_list some;
        kbi_plan plan;
        kbi_table t;
        memset(of, 0, sizeof of), memset(&some, 0, sizeof some), memset(&plan, 0, sizeof plan);
        memset(&t, 0, sizeof t);
        of[has].of = &registers, of[has].n = 1;
        some.of = of, some.n = 3;
        kbi_tool_show(&t, &plan, &some, "ncu");
        CHECK_HAS(t.text.s, "registers");
        CHECK(!strstr(t.text.s, "copied MB") && strstr(t.text.s, "0 of 0 cases"));
        kbi_text_free(&t.text);
    }
}

static void test_rows(void) {
    static char name[160];
    static const int lengths[] = { 1, 100, 101, 150 };
    for (int i = 0; i < 4; i++) {
        kbi_launches l, all;
        kbi_table t;
        memset(&l, 0, sizeof l), memset(&all, 0, sizeof all), memset(&t, 0, sizeof t);
        memset(name, 'k', sizeof name), name[lengths[i]] = 0;
        l.kernel = name, l.calls = 12, l.ns = i ? 2500 : 0, all.ns = i < 3 ? 10000 : 0;
        if (i == 1) l.grid = "(8,1,1)", l.block = "(32,1,1)";
        kbi_tool_row(&t, &l, &all, 0);
        kbi_text want = KBI_BLANK;
        kbi_putf(&want, "     12%12s%8s  %.*s%s%.*s%s\n", i ? "2.500 us" : "-",
                 i == 0  ? "<0.1%"
                 : i < 3 ? "25.0%"
                         : "-",
                 i > 1 ? 49 : 100, name, i > 1 ? "..." : "", i > 1 ? 48 : 0, name,
                 i == 1 ? "  (8,1,1) x (32,1,1)" : "");
        CHECK_STR(t.text.s, want.s);
        kbi_text_free(&t.text), kbi_text_free(&want);
    }
}

int main(void) {
    test_rows();
    test_ncu_raw();
    test_ncu_tables();
    test_nsys();
    test_numbers();
    test_half();
    test_broken();
    test_units();
    test_added();
    test_record();
    test_shown();
    kbi_launch_list_free(&looks);
    return test_end();
}
