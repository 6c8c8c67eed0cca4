// SPDX-License-Identifier: MIT OR Unlicense
// Tests the comparison of two sets of records: which cases are paired, and which changes are called a regression.
// Simulations with fixed seeds count how often two runs of one unchanged program are called a regression, and how
// often a simulated slowdown is missed.
//     change_rates        asserts that each rate meets its bar
//     change_rates -v     also prints the measured rates
#include "test.h"
#include "kit.h"

static bool verbose;

static void show(const char* format, ...) {
    va_list rest;
    if (!verbose) return;
    va_start(rest, format);
    vprintf(format, rest);
    va_end(rest);
}

// Returns 2.33 standard errors, in percentage points, of a percentage that is measured in `of` binomial trials and
// has the true value `bar`.
static double slack(double bar, int of) { return 233 * sqrt(bar / 100 * (1 - bar / 100) / of); }
static bool at_most(double percent, double bar, int of) { return percent <= bar + slack(bar, of); }

// -- random numbers ----------------------------------------------------------------------------------------

static uint32_t counter[4];

static void seed(uint32_t a, uint32_t b) {
    memset(counter, 0, sizeof counter);
    counter[2] = a;
    counter[3] = b;
}
static double uniform(void) {
    static const uint32_t key[2] = { 20261122, 13 };
    uint32_t word[4];
    kbi_philox(counter, key, word);
    counter[0]++;
    return kbi_random_uniform(word[0]);
}
static double normal(void) {
    static const uint32_t key[2] = { 20261122, 12 };
    uint32_t word[4];
    float z[2];
    kbi_philox(counter, key, word);
    counter[0]++;
    kbi_random_normal(word[0], word[1], z);
    return z[0];
}
// -- records -----------------------------------------------------------------------------------------------

enum { CASES = 40, PROCESSES = 5, RUNS = 24 };

typedef struct side {
    kb_result r[CASES];
    char names[CASES][32];
    double process[CASES][PROCESSES];
} side;

static kb_result blank(const char* name, double ms) {
    kb_result r;
    kbi_result_clear(&r);
    KBENCH_FREE(r.owned);
    r.owned = NULL;
    r.name = name;
    r.status = KB_OK;
    r.time_ms = ms;
    return r;
}

// Noise of a machine: process and run are the standard deviations between processes and between runs; own is the
// half-width of a record's interval.
typedef struct world {
    double process, run, own;
} world;

static double length_of(int i) { return 0.002 * pow(2500, (double)i / CASES); }
static double slow_of(int i) { return i % 10 == 3 ? 1.15 : 1; }

// Simulates one run of the program. planted = 0: no case changes; planted = 1: every tenth case takes 15 % longer;
// planted = -1: the time of every tenth case falls by about 13 %.
static void run_once(side* s, const world* w, bool processes, int planted) {
    for (int i = 0; i < CASES; i++) {
        double at = log(length_of(i)) + planted * log(slow_of(i)) + w->run * normal(), logs[PROCESSES], sum = 0;
        double sd = w->process * (i % 7 == 0 ? 2 : 1);
        snprintf(s->names[i], sizeof s->names[i], "case/n=%d", i);
        for (int p = 0; p < PROCESSES; p++) sum += logs[p] = at + sd * normal();
        for (int p = 0; p < PROCESSES; p++) s->process[i][p] = exp(logs[p]);
        s->r[i] = blank(s->names[i], exp(processes ? sum / PROCESSES : logs[0]));
        s->r[i].time_ms_ci_low = s->r[i].time_ms * (1 - w->own);
        s->r[i].time_ms_ci_high = s->r[i].time_ms * (1 + w->own);
        if (processes) s->r[i].process_ms.of = s->process[i], s->r[i].process_ms.n = PROCESSES;
    }
}

static kbi_rules usual(void) {
    kbi_rules rules = { 0.05, 0.1, 0.05, 0.03 };
    return rules;
}

// -- pairs -------------------------------------------------------------------------------------------------

static void test_pairs(void) {
    kb_result before[5] = { blank("b", 1), blank("a", 1), blank("gone", 1), blank("b", 2), blank("two", 1) };
    kb_result after[5] = { blank("new", 1), blank("a", 3), blank("b", 4), blank("two", 5), blank("two", 6) };
    before[4].device = 1;
    after[3].device = 0, after[4].device = 2;
    kbi_changes c = kbi_pair_records(before, 5, after, 5);
    CHECK_INT(c.n, 6);
    CHECK(c.of[0].before == NULL && c.of[0].after == &after[0]);
    CHECK(c.of[1].before == &before[1] && c.of[1].after == &after[1]);
    CHECK(c.of[2].before == &before[3] && c.of[2].after == &after[2]);
    CHECK(c.of[3].before == &before[4] && c.of[3].after == &after[3]);
    CHECK(c.of[4].before == NULL && c.of[4].after == &after[4]);
    CHECK(c.of[5].before == &before[2] && c.of[5].after == NULL);
    kbi_assessment a = kbi_assess(&c);
    CHECK_INT(a.added, 2);
    CHECK_INT(a.removed, 1);
    KBENCH_FREE(c.of);
    c = kbi_pair_records(before, 0, after, 0);
    CHECK_INT(c.n, 0);
    KBENCH_FREE(c.of);
}

// -- one case ----------------------------------------------------------------------------------------------

static kbi_change alone(double before, double after, double own, double noise) {
    kb_result b = blank("a", before), a = blank("a", after);
    kbi_rules rules = usual();
    static kb_result kept[2];
    rules.noise = noise;
    b.time_ms_ci_low = before * (1 - own), b.time_ms_ci_high = before * (1 + own);
    a.time_ms_ci_low = after * (1 - own), a.time_ms_ci_high = after * (1 + own);
    kept[0] = b, kept[1] = a;
    kbi_changes c = kbi_pair_records(&kept[0], 1, &kept[1], 1);
    kbi_compare(&c, &rules);
    kbi_change one = c.of[0];
    KBENCH_FREE(c.of);
    return one;
}

static void test_alone(void) {
    kbi_change c = alone(10, 10.7, 0.001, 0.03);
    CHECK(c.verdict == KB_SLOWER && !c.regressed);
    CHECK_REAL(exp(c.lo), 1.07 / 1.03 * (1 - 0.001 * sqrt(2)), 1e-5);
    CHECK_REAL(exp(c.hi), 1.07 * 1.03 * (1 + 0.001 * sqrt(2)), 1e-5);
    c = alone(10, 10.7, 0.001, 0.01);
    CHECK(c.verdict == KB_SLOWER && c.regressed && c.evidence == KBI_EVIDENCE_SAMPLES);
    CHECK_STR(kbi_severity(&c, 0.05), "minor");
    c = alone(10, 11.5, 0.001, 0.03);
    CHECK(c.regressed && !c.improved);
    CHECK_STR(kbi_severity(&c, 0.05), "moderate");
    c = alone(10, 19, 0.001, 0.03);
    CHECK_STR(kbi_severity(&c, 0.05), "severe");
    c = alone(10, 30, 0.001, 0.03);
    CHECK_STR(kbi_severity(&c, 0.05), "critical");
    c = alone(11.5, 10, 0.001, 0.03);
    CHECK(c.verdict == KB_FASTER && c.improved && !c.regressed);
    CHECK(!c.open);
    c = alone(10, 10.6, 0.001, 0.03);
    CHECK(c.verdict == KB_SLOWER && !c.regressed && c.open);
    c = alone(10, 10.05, 0.001, 0.03);
    CHECK(c.verdict == KB_EQUIVALENT && !c.open);
    c = alone(10, 11.5, 0.1, 0.03);
    CHECK(c.verdict == KB_UNRESOLVED && !c.regressed);
    c = alone(10, 20, NAN, 0.03);
    CHECK(c.verdict == KB_UNRESOLVED && !c.regressed && c.evidence == KBI_EVIDENCE_NONE && kbi_nan(c.lo));
    c = alone(10, 11.5, 0, 0.03);
    CHECK(c.regressed);
    c = alone(10, NAN, 0.001, 0.03);
    CHECK(c.verdict == KB_NO_VERDICT && !c.regressed);
}

static void test_memory(void) {
    const struct {
        int64_t before, after;
        double host_before, host_after;
        bool more, less;
    } cases[] = { { 1000, 1100, NAN, NAN, false, false },
                  { 1000, 1101, NAN, NAN, true, false },
                  { 1000, 909, NAN, NAN, false, true },
                  { 1000, 950, NAN, NAN, false, false },
                  { 0, 4096, 1, 1, true, false },
                  { KB_NONE, 4096, 1, 2, false, false },
                  { 0, 0, 1, 2, true, false },
                  { KB_NONE, KB_NONE, 4, 2, false, true } };
    for (int i = 0; i < KBI_COUNT(cases); i++) {
        kb_result b = blank("a", 1), a = blank("a", 1);
        b.memory_bytes = cases[i].before, b.host_memory_mb = cases[i].host_before;
        a.memory_bytes = cases[i].after, a.host_memory_mb = cases[i].host_after;
        kbi_rules rules = usual();
        kbi_changes c = kbi_pair_records(&b, 1, &a, 1);
        kbi_compare(&c, &rules);
        CHECK_THAT(c.of[0].more == cases[i].more && c.of[0].less == cases[i].less, "memory %d: more %d, less %d", i,
                   c.of[0].more, c.of[0].less);
        KBENCH_FREE(c.of);
    }
}

static void test_holm(void) {
    kbi_chance p[5] = { { 0.01, 0 }, { 0.04, 1 }, { 0.03, 2 }, { 0.005, 3 }, { 0.5, 4 } };
    // Holm's adjusted values must not fall: 0.04 * 2 = 0.08 is below the preceding value 0.09, so 0.09 is used
    const double want[5] = { 0.025, 0.04, 0.09, 0.09, 0.5 };
    const int64_t at[5] = { 3, 0, 2, 1, 4 };
    kbi_holm(p, 5);
    for (int i = 0; i < 5; i++) {
        CHECK_REAL(p[i].p, want[i], 1e-12);
        CHECK_INT(p[i].at, at[i]);
    }
}

// -- repeats -----------------------------------------------------------------------------------------------

typedef struct tally {
    // alarms: percentage of comparisons in which at least one case is called a regression
    // changed: percentage of comparisons in which at least one case is called faster or slower
    // found: percentage of the changed cases in which the change is found
    // all: percentage of comparisons in which every change is found
    // wrong: percentage of comparisons in which an unchanged or faster case is called a regression
    double alarms, changed, found, all, wrong, severe;
} tally;

// Simulates `times` comparisons of two runs of one program. If `planted` is not 0, every tenth case is slower (1)
// or faster (-1) in the second run. `runs` earlier runs form the history that the comparison uses.
static tally repeat(const world* w, bool processes, int runs, int planted, const kbi_rules* rules, int times) {
    static side before, after, past[RUNS];
    tally t = { 0, 0, 0, 0, 0, 0 };
    int cases = 0;
    for (int k = 0; k < times; k++) {
        int regressed = 0, changed = 0, found = 0, wrong = 0;
        const kb_result* history[RUNS * CASES];
        int64_t n = 0;
        for (int h = 0; h < runs; h++) {
            run_once(&past[h], w, processes, 0);
            for (int i = 0; i < CASES; i++) history[n++] = &past[h].r[i];
        }
        run_once(&before, w, processes, 0);
        run_once(&after, w, processes, planted);
        kbi_changes c = kbi_pair_records(before.r, CASES, after.r, CASES);
        kbi_trend* trends = kbi_trends(history, n, &n);
        kbi_changes_learn(&c, trends, n);
        kbi_compare(&c, rules);
        for (int i = 0; i < CASES; i++) {
            bool slow = planted && slow_of(i) > 1;
            regressed += c.of[i].regressed;
            changed += c.of[i].verdict == KB_SLOWER || c.of[i].verdict == KB_FASTER;
            found += slow && (planted > 0 ? c.of[i].regressed : c.of[i].improved);
            wrong += (!slow || planted < 0) && c.of[i].regressed;
            cases += slow;
        }
        t.alarms += (regressed > 0) * 100.0 / times;
        t.changed += (changed > 0) * 100.0 / times;
        t.wrong += (wrong > 0) * 100.0 / times;
        t.all += (found == CASES / 10) * 100.0 / times;
        t.found += found;
        KBENCH_FREE(trends);
        KBENCH_FREE(c.of);
    }
    t.found *= 100.0 / KBI_MAX(cases, 1);
    return t;
}

// The machine "cpu" has the noise that was measured on a CPU on which two runs of one program differed in 64 of
// 180 cases. Processes differ by 1.2 % (standard deviation), but the intervals within a process have a half-width
// of only 0.4 %.
static void test_repeats(void) {
    const world cpu = { 0.012, 0, 0.004 }, gpu = { 0.004, 0, 0.003 }, drifts = { 0.006, 0.005, 0.004 };
    const struct {
        const char* name;
        world w;
        bool processes;
        int runs;
    } of[] = { { "CPU, one process", cpu, false, 0 },
               { "CPU, 5 processes", cpu, true, 0 },
               { "GPU, one process", gpu, false, 0 },
               { "GPU, 5 processes", gpu, true, 0 },
               { "drift, history of 8 runs", drifts, false, 8 },
               { "drift, history of 24 runs", drifts, false, 24 },
               { "drift, 5 processes", drifts, true, 12 } };
    const int times = test_rounds(100);
    show("40 cases                        repeats called a regression %%   SLOWER or FASTER   at a threshold of 0   "
         "15 %% in a tenth: found, all 4 found   others called   15 %% faster: called a regression   all 4 found\n");
    for (int i = 0; i < KBI_COUNT(of); i++) {
        kbi_rules rules = usual(), none = usual();
        none.threshold = 0;
        seed(1, (uint32_t)i);
        tally same = repeat(&of[i].w, of[i].processes, of[i].runs, 0, &rules, times);
        tally bare = repeat(&of[i].w, of[i].processes, of[i].runs, 0, &none, times);
        tally slow = repeat(&of[i].w, of[i].processes, of[i].runs, 1, &rules, times / 2);
        tally fast = repeat(&of[i].w, of[i].processes, of[i].runs, -1, &rules, times / 2);
        show("  %-28s %32.1f  %17.1f  %20.1f  %27.1f  %11.1f  %14.1f  %30.1f  %12.1f\n", of[i].name, same.alarms,
             same.changed, bare.alarms, slow.found, slow.all, slow.wrong, fast.wrong, fast.all);
        CHECK_THAT(at_most(same.alarms, 5, times), "%s: %.1f %% of equal runs are called a regression", of[i].name,
                   same.alarms);
        // A run with one process does not show the scatter between processes, so the interval is widened by an
        // assumed noise.
        if (i != 0)
            CHECK_THAT(at_most(bare.alarms, 5, times), "%s, threshold 0: %.1f %%", of[i].name, bare.alarms);
        CHECK_THAT(slow.all >= (of[i].runs == 8 ? 50
                                : i             ? 100
                                                : 98),
                   "%s: all slow cases were found in only %.1f %% of comparisons", of[i].name, slow.all);
        CHECK_THAT(at_most(slow.wrong, 5, times / 2),
                   "%s: unchanged cases were called a regression in %.1f %% of comparisons",
                   of[i].name, slow.wrong);
        CHECK_THAT(at_most(fast.wrong, 5, times / 2) && fast.all >= (of[i].runs == 8 ? 50
                                                                     : i             ? 100
                                                                                     : 98),
                   "%s: with faster cases, %.1f %% of comparisons report a regression, %.1f %% find all improvements",
                   of[i].name, fast.wrong, fast.all);
    }
    // negative control: with one process and no assumed noise, over 5 % of the comparisons call equal runs a
    // regression, so at_most() must be false
    kbi_rules bare = usual();
    bare.threshold = bare.noise = 0;
    seed(2, 0);
    tally t = repeat(&cpu, false, 0, 0, &bare, times);
    show("  one process, no assumed noise, threshold 0: %.1f %% of equal runs are called a regression\n",
         t.alarms);
    CHECK_THAT(!at_most(t.alarms, 5, times),
               "assumed noise 0: over 5 %% of comparisons should report a regression, but %.1f %% do", t.alarms);
}

// -- other programs on the processor -----------------------------------------------------------------------

// Another program used the processor half of the time. Its data replaced those of every second case in the caches, and
// the median of these cases is up to twice as long. The other cases only compute; their medians are up to 2 % longer.
static void disturb(side* s, bool recorded) {
    for (int i = 0; i < CASES; i++) {
        kb_result* r = &s->r[i];
        double longer = i % 2 ? 1 + 0.02 * uniform() : 1 + uniform();
        r->timer = "wall", r->cpu_waited = recorded ? 50 : 0;
        r->time_ms_min = r->time_ms * (i % 2 ? 0.99 : 0.95);
        r->time_ms *= longer, r->time_ms_ci_low *= longer, r->time_ms_ci_high *= longer;
    }
}

// Compares a quiet run with a disturbed run of the same program. The slow cases, which only the new run has, are cases
// that only compute.
static void test_disturbed(void) {
    const world cpu = { 0.008, 0, 0.004 };
    const kbi_rules rules = usual();
    const int times = test_rounds(100);
    static side before, after;
    for (int recorded = 0; recorded < 2; recorded++) {
        double regressions = 0, improvements = 0, found = 0, slow = 0;
        seed(3, 0);
        for (int k = 0; k < 2 * times; k++) {
            const bool old = k % 2;
            run_once(&before, &cpu, false, 0), run_once(&after, &cpu, false, old ? 0 : 1);
            disturb(old ? &before : &after, recorded);
            kbi_changes c = kbi_pair_records(before.r, CASES, after.r, CASES);
            kbi_compare(&c, &rules);
            bool regressed = false, improved = false;
            for (int i = 0; i < CASES; i++) {
                const bool planted = !old && slow_of(i) > 1;
                slow += planted, found += planted && c.of[i].regressed;
                regressed |= !planted && c.of[i].regressed, improved |= c.of[i].improved;
            }
            regressions += regressed * 100.0 / times, improvements += improved * 100.0 / times;
            KBENCH_FREE(c.of);
        }
        found *= 100 / slow;
        show("  disturbed runs%s: %.1f %% regressions, %.1f %% improvements, %.1f %% of slow cases found\n",
             recorded ? "" : ", not recorded", regressions, improvements, found);
        CHECK_THAT(found >= 98, "%.1f %% of the slow cases of disturbed runs are found", found);
        // negative control: if the record does not say that the run was disturbed, most pairs have a wrong verdict
        CHECK_THAT(recorded ? at_most(regressions, 5, times) && at_most(improvements, 5, times)
                            : regressions > 50 && improvements > 50,
                   "disturbance %srecorded: %.1f %% regressions, %.1f %% improvements", recorded ? "" : "not ",
                   regressions, improvements);
    }
}

// -- races -------------------------------------------------------------------------------------------------

enum { ROUNDS_MOST = 60 };

typedef struct race {
    // In percent. wrong: comparisons that call equal cases different; regressed: comparisons that report a
    // regression; held: intervals that contain the true ratio; found: comparisons that find the slower case.
    // rounds: mean number of rounds
    double wrong, regressed, held, found, rounds;
} race;

// Returns the logarithm of the ratio of two times in one round, each measured by a new process. If `tails` is set,
// one process in twenty is disturbed, and its deviation is four times as large.
static double round_of(double sd, bool tails) {
    double x = 0;
    for (int arm = 0; arm < 2; arm++) {
        double z = normal();
        if (tails && uniform() < 0.05) z = 4 * fabs(z);
        x += (arm ? 1 : -1) * sd * z;
    }
    return x;
}

// Simulates comparisons of two programs whose times differ by `gain` in the first case. The stopping rule of
// --race ends each comparison.
static race races(int cases, double sd, bool tails, double gain, int times) {
    static double all[ROUNDS_MOST][CASES], logs[CASES * ROUNDS_MOST];
    static side before, after;
    const world quiet = { 0, 0, 0.001 };
    kbi_rules rules = usual();
    race t = { 0, 0, 0, 0, 0 };
    seed(4, (uint32_t)(cases * 100 + 1e4 * sd + tails + 1e3 * gain));
    run_once(&before, &quiet, false, 0);
    run_once(&after, &quiet, false, 0);
    for (int k = 0; k < times; k++) {
        kbi_changes c = kbi_pair_records(before.r, cases, after.r, cases);
        double widest = INFINITY;
        int n = 0, wrong = 0, regressed = 0;
        while (n < ROUNDS_MOST && !kbi_race_enough(n, widest, &rules)) {
            for (int i = 0; i < cases; i++) all[n][i] = round_of(sd, tails) + (i == 0 ? gain : 0);
            n++;
            for (int i = 0; i < cases; i++)
                for (int r = 0; r < n; r++) logs[i * n + r] = all[r][i];
            widest = n < KBI_RACE_ROUNDS ? INFINITY : kbi_compare_rounds(&c, logs, n, &rules);
        }
        for (int i = 0; i < cases; i++) {
            const kbi_change* one = &c.of[i];
            double truth = i == 0 ? gain : 0;
            t.held += (one->lo <= truth && truth <= one->hi) * 100.0 / times / cases;
            regressed += one->regressed;
            if (truth > 0)
                t.found += (one->verdict == KB_SLOWER) * 100.0 / times;
            else
                wrong += one->verdict == KB_SLOWER || one->verdict == KB_FASTER;
        }
        t.wrong += (wrong > 0) * 100.0 / times;
        t.regressed += (regressed > 0) * 100.0 / times;
        t.rounds += (double)n / times;
        KBENCH_FREE(c.of);
    }
    return t;
}

static void test_races(void) {
    const double sds[] = { 0.003, 0.012, 0.025 }; // a GPU, a CPU that others use, a bad one
    const int counts[] = { 1, 5, 20 };
    show("races        a process sd  cases   called different %%   a regression   intervals hold   rounds   "
         "3 %% SLOWER   in rounds\n");
    for (int tails = 0; tails < 2; tails++) {
        for (int j = 0; j < 3; j++) {
            for (int i = 0; i < (j == 2 ? 2 : 3); i++) {
                const int times = test_rounds(counts[i] == 20 ? 20 : counts[i] == 5 ? 60 : 200);
                const race same = races(counts[i], sds[j], tails, 0, times);
                const race slow = races(counts[i], sds[j], tails, log(1.03), times);
                show("  %-10s %10.1f %%  %5d  %19.1f  %13.1f  %15.1f  %7.1f  %11.1f  %10.1f\n",
                     tails ? "disturbed" : "normal", 100 * sds[j], counts[i], same.wrong, same.regressed, same.held,
                     same.rounds, slow.found, slow.rounds);
                CHECK_THAT(at_most(same.wrong, 5, times),
                           "%d cases, sd %.3f, tails %d: %.1f %% of equal cases are called different", counts[i],
                           sds[j], tails, same.wrong);
                CHECK_THAT(same.held >= 95 - slack(95, times), "%d cases, sd %.3f, tails %d: held %.1f %%", counts[i],
                           sds[j], tails, same.held);
                CHECK_THAT(slow.found >= 95 - slack(95, times), "%d cases, sd %.3f, tails %d: 3 %% found in %.1f %%",
                           counts[i], sds[j], tails, slow.found);
            }
        }
    }
}

// -- the past ----------------------------------------------------------------------------------------------

// Sudden changes of 20 % are code changes and not noise. A slow increase of 1 % per run is found, and noise alone
// is not called a trend.
static void test_trends(void) {
    static kb_result r[200];
    const kb_result* of[200];
    int64_t n;
    int rising = 0, false_ones = 0;
    const int times = test_rounds(400);
    double sum = 0;
    seed(3, 0);
    for (int k = 0; k < times; k++) {
        for (int i = 0; i < 20; i++) {
            r[i] = blank("steps", exp((i >= 7 ? 0.2 : 0) - (i >= 13 ? 0.2 : 0) + 0.01 * normal()));
            r[20 + i] = blank("creeps", exp(0.01 * i + 0.01 * normal()));
            r[40 + i] = blank("steady", exp(0.01 * normal()));
        }
        for (int i = 0; i < 60; i++) of[i] = &r[i];
        kbi_trend* t = kbi_trends(of, 60, &n);
        CHECK_INT(n, 3);
        CHECK_STR(t[0].last->name, "creeps");
        rising += t[0].p < 0.01 && t[0].slope > 0;
        false_ones += t[1].p < 0.01;
        sum += t[2].sd / times;
        CHECK_INT(t[2].runs, 20);
        CHECK_REAL(t[2].now, r[19].time_ms, 1e-12);
        KBENCH_FREE(t);
    }
    show(
        "history of 20 runs: 1 %% more per run found in %.1f %%, false trends in %.1f %%; noise of 1 %% between "
        "two jumps of 20 %% is estimated as %.2f %%\n",
        100.0 * rising / times, 100.0 * false_ones / times, 100 * sum);
    CHECK(rising >= times * 95 / 100);
    CHECK_THAT(at_most(100.0 * false_ones / times, 1, times), "steady times are called a trend: %d of %d", false_ones,
               times);
    CHECK_THAT(sum > 0.008 && sum < 0.016, "noise between jumps: %.4f", sum);
    of[0] = &r[40];
    kbi_trend* t = kbi_trends(of, 1, &n);
    CHECK(n == 1 && kbi_nan(t[0].sd) && kbi_nan(t[0].p) && t[0].runs == 1);
    KBENCH_FREE(t);
    t = kbi_trends(of, 0, &n);
    CHECK_INT(n, 0);
    KBENCH_FREE(t);
}

static void test_trends_by_hand(void) {
    static kb_result r[40];
    const kb_result* of[40];
    int64_t n, all = 0;
    for (int i = 0; i < 8; i++) {
        if (i < 6) r[all] = blank("a", exp(0.01 * (i % 2))), of[all] = &r[all], all++;
        if (i < 6) r[all] = blank("b", exp(0.04 * (i % 2))), of[all] = &r[all], all++;
        if (i < 2) r[all] = blank("c", exp(0.5 * i)), of[all] = &r[all], all++;
    }
    kbi_trend* t = kbi_trends(of, all, &n);
    CHECK_INT(n, 3);
    CHECK_REAL(t[0].sd, sqrt((5e-5 + 4.25e-4) / 2), 1e-9);
    CHECK_REAL(t[0].df, 20.0 / 3, 1e-9);
    CHECK_REAL(t[1].sd, sqrt(8e-4), 1e-9);
    CHECK_REAL(t[1].df, 20.0 / 3, 1e-9);
    CHECK_REAL(t[2].sd, sqrt(4.25e-4), 1e-9);
    CHECK_REAL(t[2].df, 4, 1e-9);
    CHECK_REAL(t[2].middle, 1, 1e-12), CHECK_REAL(t[2].now, exp(0.5), 1e-12);
    CHECK(kbi_nan(t[0].p) && kbi_nan(t[0].slope));
    KBENCH_FREE(t);
    for (int i = 0; i < 8; i++) r[i] = blank("climbs", exp(0.01 * i)), of[i] = &r[i];
    t = kbi_trends(of, 8, &n);
    CHECK_INT(t[0].runs, 8);
    CHECK_REAL(t[0].slope, 0.01, 1e-9);
    CHECK_REAL(t[0].p, 8.366271e-4, 1e-5); // Kendall's score is 28 for 28 pairs
    CHECK_REAL(t[0].middle, exp(0.03), 1e-9), CHECK_REAL(t[0].first, 1, 1e-12);
    CHECK_REAL(t[0].sd, 0.01 / sqrt(2.0), 1e-9);
    KBENCH_FREE(t);
    for (int i = 0; i < 8; i++) r[i] = blank(i < 6 ? "still" : "new", i == 1 || i > 5 ? 1.5 : 1), of[i] = &r[i];
    // the case "still" has three differences, all 0; its scatter cannot be estimated from so few differences
    t = kbi_trends(of, 8, &n);
    CHECK_STR(t[1].last->name, "still"), CHECK_REAL(t[1].df, 2, 1e-9), CHECK(kbi_nan(t[0].sd));
    KBENCH_FREE(t);
}

// The severity of a slowdown depends on its ratio to the threshold. The severity of a growth of memory depends on
// its ratio to twice the threshold.
static void test_severity(void) {
    static const struct {
        double times;
        const char* word;
    } rows[] = { { 1, "minor" },     { 1.99, "minor" },  { 2.01, "moderate" }, { 4.99, "moderate" },
                 { 5.01, "severe" }, { 19.9, "severe" }, { 20.1, "critical" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_change c;
        memset(&c, 0, sizeof c);
        c.regressed = true, c.log = log1p(0.05 * rows[i].times), c.memory = 1 + 0.1 * 40;
        CHECK_STR(kbi_severity(&c, 0.05), rows[i].word);
        c.more = true, CHECK_STR(kbi_severity(&c, 0.05), "critical");
        c.regressed = false, c.memory = 1 + 0.1 * rows[i].times;
        CHECK_STR(kbi_severity(&c, 0.05), rows[i].word);
    }
    kbi_change c;
    memset(&c, 0, sizeof c);
    c.more = true;
    c.memory = 1.25, CHECK_STR(kbi_severity(&c, 0.0625), "moderate");
    c.memory = 1.625, CHECK_STR(kbi_severity(&c, 0.0625), "severe");
    c.memory = 3.5, CHECK_STR(kbi_severity(&c, 0.0625), "critical");
}

int main(int argc, char** argv) {
    test_severity();
    verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    test_trends_by_hand();
    test_pairs();
    test_alone();
    test_memory();
    test_holm();
    test_repeats();
    test_disturbed();
    test_races();
    test_trends();
    test_trends_by_hand();
    return test_end();
}
