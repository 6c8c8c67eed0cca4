// SPDX-License-Identifier: MIT OR Unlicense
// Tests the estimate of the remaining time in complete simulated runs, in which nothing is measured.
#include "test.h"
#include "guarded.h"
#include "kit.h"

// Simulates a run of several groups with n cases each. Group number k takes took(k, groups, allowed) seconds.
typedef struct played {
    double first; // the first estimate of the remaining time, in seconds
    double late;  // ratio of estimated to true remaining time, at the first estimate in the last tenth of the run
} played;

static played play(int groups, int n, double (*took)(int at, int groups, double allowed), const char* options) {
    kbi_options o;
    kbi_options_default(&o);
    char word[64];
    char* argv[4] = { word, word, NULL, NULL };
    snprintf(word, sizeof word, "%s", options);
    CHECK(kbi_options_parse(&o, *options ? 2 : 1, argv));
    double allowed = kbi_group_seconds(&o, o.max_time, n), at = 0, end = 0;
    kbi_progress p;
    played r = { -1, NAN };
    memset(&p, 0, sizeof p);
    p.allowed = allowed * groups;
    for (int k = 0; k < groups; k++) end += took(k, groups, allowed);
    for (int k = 0; k < groups; k++) {
        p.current = allowed;
        p.group_began = at;
        if (k == 0) r.first = kbi_time_left(&p, at);
        if (isnan(r.late) && k >= 0.9 * groups) r.late = kbi_time_left(&p, at) / (end - at);
        CHECK(kbi_time_left(&p, at + 1e9) >= 0);
        at += took(k, groups, allowed);
        p.took += at - p.group_began;
        p.finished += allowed;
        p.current = 0;
    }
    return r;
}

static double half(int at, int groups, double allowed) { return (void)at, (void)groups, 0.5 * allowed; }
static double whole(int at, int groups, double allowed) { return (void)at, (void)groups, allowed; }
static double late(int at, int groups, double allowed) { return at < groups / 4 ? 0.1 * allowed : 0.9 * allowed; }
static double early(int at, int groups, double allowed) { return at < groups / 4 ? 0.9 * allowed : 0.1 * allowed; }
static double in_turn(int at, int groups, double allowed) { return (void)groups, at % 5 ? 0.2 * allowed : allowed; }
static double slow(int at, int groups, double allowed) { return (void)at, (void)groups, 12 * allowed; }
static double none(int at, int groups, double allowed) { return (void)at, (void)groups, (void)allowed, 0.01; }

// Tests --budget with expected values that were computed by hand: ten groups of one case share 100 s, and the
// warm-up of a case takes half of its measuring time.
static void test_budget(void) {
    kbi_options o;
    kbi_budget b;
    kbi_options_default(&o);
    o.warmup_time = -1, o.min_time = 0.001, o.max_time = 60, o.iters = 0;
    memset(&b, 0, sizeof b);
    CHECK(!kbi_budget_over(&b, 0, 1, 0, INT64_MAX));
    for (int i = 0; i < 10; i++) kbi_budget_add(&b, &o, 1, 1);
    CHECK_REAL(b.shares, 15, 1e-12), CHECK_REAL(b.cases, 10, 1e-12);
    kbi_budget_add(&b, &o, 2, 3), CHECK_REAL(b.shares, 15 + 3 * 4, 1e-12), CHECK_REAL(b.cases, 16, 1e-12); // rounds
    kbi_budget_add(&b, &o, -2, 3), CHECK_REAL(b.cases, 10, 1e-12);
    b.shares = 15, b.until = 100000000000;
    CHECK_REAL(kbi_budget_share(&b, &o, 0), 100.0 / 15, 1e-9);
    // the group takes 3 s more than its share of the budget
    kbi_budget_took(&b, &o, 1, 2, kbi_group_seconds(&o, 2, 1) + 3);
    CHECK_REAL(b.overhead, 3, 1e-9), CHECK_REAL(b.measured, 1, 1e-12), CHECK(b.begun);
    CHECK_REAL(kbi_budget_share(&b, &o, 10000000000), (90 - 30) / 15.0, 1e-9);
    // a group that takes less time than its share does not change the recorded overhead
    kbi_budget_took(&b, &o, 1, 2, 0.1);
    CHECK_REAL(b.overhead, 3, 1e-9), CHECK_REAL(b.measured, 2, 1e-12);
    o.min_time = 50, CHECK_REAL(kbi_budget_share(&b, &o, 0), 50, 1e-9), o.min_time = 0.001;
    o.max_time = 2, o.on[KBI_OPTION_max_time] = true, CHECK_REAL(kbi_budget_share(&b, &o, 0), 2, 1e-9);
    CHECK_REAL(kbi_budget_share(&b, &o, 99999000000), 1e-3, 1e-12);
    // The run ends when the time of --budget has passed. If a batch needs several processes, the first process
    // stops early: it leaves the second process as much time as the first process used.
    CHECK(!kbi_budget_over(&b, 0, 1, 0, b.until - 1) && kbi_budget_over(&b, 0, 1, 0, b.until));
    CHECK(!kbi_budget_over(&b, 0, 2, 0, b.until / 2 - 1) && kbi_budget_over(&b, 0, 2, 0, b.until / 2));
    CHECK(!kbi_budget_over(&b, 1, 2, 0, b.until) && !kbi_budget_over(&b, 2, 3, 0, b.until - 1));
    CHECK(kbi_budget_over(&b, 2, 3, 0, b.until));
    b.begun = false, CHECK(!kbi_budget_over(&b, 0, 1, 0, b.until));
}

static void said_of(double estimated, int processes, char* line, size_t size) {
    kbi_progress p;
    memset(&p, 0, sizeof p);
    p.on = true, p.began = kbi_now() - 10000000000, p.last = p.began;
    p.allowed = 100, p.finished = 50, p.current = 50;
    p.group_began = 10;
    p.took = estimated;
    p.processes = processes, p.process = 1;
    FILE* f = tmpfile();
    int kept = dup(2);
    line[0] = 0;
    if (!f || kept < 0) return;
    fflush(stderr), dup2(fileno(f), 2);
    kbi_progress_show(&p, 1, 2, "case");
    fflush(stderr), dup2(kept, 2), close(kept);
    rewind(f);
    line[fread(line, 1, size - 1, f)] = 0;
    fclose(f);
}

static void test_line(void) {
    char line[200];
    said_of(50, 1, line, sizeof line);
    CHECK_HAS(line, "[2/2]  50 s left  case");
    said_of(75, 3, line, sizeof line);
    CHECK_HAS(line, "[2/2] process 2 of 3  75 s left  case");
    // The progress line leaves the last column of the terminal empty. The progress line omits the name of the case
    // if fewer than eight columns remain for the name.
    static const struct {
        const char *columns, *line;
    } widths[] = { { "41", "\r[2/2] process 2 of 3  50 s left\033[K" },
                   { "42", "\r[2/2] process 2 of 3  50 s left  case\033[K" } };
    for (int i = 0; i < KBI_COUNT(widths); i++) {
        setenv("COLUMNS", widths[i].columns, 1);
        said_of(50, 3, line, sizeof line);
        CHECK_STR(line, widths[i].line);
    }
    unsetenv("COLUMNS");
}

// The settings of --fast and --thorough. An option such as --max-time overrides the setting of --fast or
// --thorough.
static void test_effort(void) {
    static const struct {
        char words[3][24];
        double max_time, precision;
        int64_t least, most; // samples
    } efforts[] = {
        { { "-q", "-q", "-q" }, 1, 0.005, 30, 2000 },
        { { "--fast", "-q", "-q" }, 0.2, 0.02, 10, 2000 },
        { { "--fast", "--max-time=3s", "-q" }, 3, 0.02, 10, 2000 },
        { { "--precision=0.1%", "--fast", "-q" }, 0.2, 0.001, 10, 2000 },
        { { "--fast", "--min-time=0.1s", "-q" }, 0.2, 0.02, 10, 2000 },
        { { "--thorough", "-q", "-q" }, 10, 0.002, 30, 20000 },
        { { "--max-time=4s", "--thorough", "-q" }, 4, 0.002, 30, 20000 },
        { { "--thorough", "--precision=1%", "-q" }, 10, 0.01, 30, 20000 },
        { { "--thorough", "--min-time=2s", "-q" }, 10, 0.002, 30, 20000 },
    };
    for (int i = 0; i < KBI_COUNT(efforts); i++) {
        kbi_options o;
        char words[4][24] = { "pace" };
        char* argv[5] = { words[0], words[1], words[2], words[3], NULL };
        memcpy(words[1], efforts[i].words, sizeof efforts[i].words);
        kbi_options_default(&o);
        CHECK(kbi_options_parse(&o, 4, argv));
        CHECK_REAL(o.max_time, efforts[i].max_time, 1e-12), CHECK_REAL(o.precision, efforts[i].precision, 1e-12);
        CHECK_INT(o.min_samples, efforts[i].least), CHECK_INT(o.max_samples, efforts[i].most);
    }
}

int main(void) {
    test_budget();
    test_effort();
    test_line();
    static const struct {
        const char* name;
        double (*took)(int at, int groups, double allowed);
    } runs[] = { { "half", half },       { "whole", whole }, { "late", late }, { "early", early },
                 { "in turn", in_turn }, { "none", none },   { "slow", slow } };
    static const int groups[] = { 1, 2, 7, 40, 300 }, cases[] = { 1, 2, 5 };
    for (int i = 0; i < KBI_COUNT(runs); i++)
        for (int g = 0; g < KBI_COUNT(groups); g++)
            for (int c = 0; c < KBI_COUNT(cases); c++) {
                played r = play(groups[g], cases[c], runs[i].took, "");
                if (groups[g] < 40 || runs[i].took == none) continue;
                bool early_ones = runs[i].took == early || runs[i].took == in_turn;
                CHECK_THAT(r.late < (early_ones ? 9 : 1.25) && r.late >= 0,
                           "%s, %d x %d: %.2f times the true time at the end", runs[i].name, groups[g], cases[c],
                           r.late);
            }
    // The first estimate comes from the options: half a second of warm-up and one second of samples per case.
    CHECK_REAL(play(10, 1, whole, "").first, 15, 1e-9);
    CHECK_REAL(play(10, 1, whole, "--fast").first, 3, 1e-9);
    // a group of two implementations has two warm-ups, and the A/A control measures the baseline a second time
    CHECK_REAL(play(10, 2, whole, "").first, 40, 1e-9);
    CHECK_REAL(play(10, 1, whole, "--max-time=4s").first, 50, 1e-9);
    CHECK_REAL(play(10, 1, whole, "--warmup=3s").first, 40, 1e-9);
    CHECK_REAL(play(10, 1, whole, "--timeout=1s").first, 10, 1e-9);
    return test_end();
}
