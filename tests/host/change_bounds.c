// SPDX-License-Identifier: MIT OR Unlicense
// Tests the comparison of two sets of records with known answers: which records are paired, and which differences
// between machines are reported. The test also covers the interval of a change, its verdict at each threshold, and
// the use of earlier runs.
#include "test.h"
#include <stdlib.h>
#include "guarded.h"
#include "kit.h"

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

// --- pairs ---

static uint64_t state = 1;
static int draw(int below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

static bool same(const kb_result* a, const kb_result* b) {
    return strcmp(a->name, b->name) == 0 && a->device == b->device;
}
static bool counts(const kb_result* r, int n, int i) {
    for (int k = i + 1; k < n; k++)
        if (same(&r[i], &r[k])) return false;
    return true;
}
static int rank(const kb_result* r, int n, int i) {
    int before = 0;
    for (int k = 0; k < n; k++)
        before += counts(r, n, k) && strcmp(r[k].name, r[i].name) == 0 && r[k].device < r[i].device;
    return before;
}
static const kb_result* partner(const kb_result* of, int n, int i, const kb_result* r, int m) {
    for (int k = 0; k < m; k++)
        if (counts(r, m, k) && strcmp(r[k].name, of[i].name) == 0 && rank(r, m, k) == rank(of, n, i)) return &r[k];
    return NULL;
}

static void test_pairs(void) {
    static const char* const names[] = { "a", "b", "ba", "c", "" };
    for (int turn = 0; turn < 1500; turn++) {
        kb_result before[8], after[8];
        int n = draw(9), m = draw(9), at = 0, wrong = 0;
        for (int i = 0; i < n; i++) before[i] = blank(names[draw(5)], 1), before[i].device = draw(3) - 1;
        for (int i = 0; i < m; i++) after[i] = blank(names[draw(5)], 1), after[i].device = draw(3) - 1;
        for (int i = 0; i < 8; i++) { // -1: the record names no device
            if (i < n && before[i].device < 0) before[i].device = KB_NONE;
            if (i < m && after[i].device < 0) after[i].device = KB_NONE;
        }
        kbi_changes c = kbi_pair_records(before, n, after, m);
        for (int i = 0; i < m; i++) {
            if (!counts(after, m, i)) continue;
            wrong += at >= c.n || c.of[at].after != &after[i] || c.of[at].before != partner(after, m, i, before, n);
            wrong += at < c.n && !(isnan(c.of[at].run_sd) && isnan(c.of[at].run_df) && c.of[at].evidence == 0);
            at++;
        }
        for (int i = 0; i < n; i++) {
            if (!counts(before, n, i) || partner(before, n, i, after, m)) continue;
            wrong += at >= c.n || c.of[at].after || c.of[at].before != &before[i];
            at++;
        }
        if (wrong || at != c.n) CHECK_THAT(0, "turn %d: %d of %d wrong, %d there", turn, wrong, at, (int)c.n);
        KBENCH_FREE(c.of);
    }
    CHECK(KB_NONE < 0); // the expected ranks require that "no device" sorts before device 0
}

// --- evidence of a change ---

static void test_grounds(void) {
    kb_result before = blank("a", 10), after = blank("a", 11);
    const kbi_spread none = { 0, NAN, NAN, NAN, NAN, 0, 0, 0 }, b = { 5, log(10), 0, 0, 0.01, 4, 0, 0 },
                     a = { 4, log(12), 0, 0, 0.02, 3, 0, 0 }, one = { 1, log(12), 0, 0, NAN, 0, 0, 0 },
                     still = { 5, log(10), 0, 0, 0, 4, 0, 0 };
    const struct {
        const kbi_spread *b, *a;
        // log: logarithm of the ratio of times; se: standard error of log; df: degrees of freedom; NAN: neither
        // set of records has a known scatter
        double log, se, df;
    } rows[] = { { &b, &a, log(1.2), sqrt(1.2e-4), 1.44e-8 / (1e-8 / 3 + 4e-10 / 4) },
                 { &b, &none, log(1.1), sqrt(1.2e-4), 4 },
                 { &b, &one, log(1.1), sqrt(1.2e-4), 4 },
                 { &none, &a, log(1.2), sqrt(5e-4), 3 },
                 { &still, &still, 0, 0, 4 },
                 { &none, &one, NAN, NAN, NAN } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_change c;
        memset(&c, 0, sizeof c);
        c.before = &before, c.after = &after;
        bool known = kbi_change_by_processes(&c, rows[i].b, rows[i].a);
        CHECK_THAT(known == !isnan(rows[i].log), "row %d", i);
        if (!known) continue;
        CHECK_REAL(c.log, rows[i].log, 1e-12), CHECK_REAL(c.se, rows[i].se, 1e-12),
            CHECK_REAL(c.df, rows[i].df, 1e-12);
        CHECK_INT(c.evidence, KBI_EVIDENCE_PROCESSES);
    }
    static const double own[][3] = { { 9.9, 10.1, 0.0051022 }, { 10, 10, 0 },    { 0, 10, INFINITY },
                                     { -1, 10, INFINITY },     { 10, 9.9, NAN }, { NAN, 10, NAN } };
    for (int i = 0; i < KBI_COUNT(own); i++) {
        before.time_ms_ci_low = own[i][0], before.time_ms_ci_high = own[i][1];
        CHECK_REAL(kbi_own_error(&before), own[i][2], 1e-4);
    }
    const double error = log(1.01 / 0.99) / (2 * 1.959963984540054) * sqrt(2);
    const struct {
        double width, run_sd; // NAN: unknown
        const kbi_spread *b, *a;
        kbi_evidence evidence;
        double se, df, wide;
    } known[] = { { 0.01, NAN, &none, &none, KBI_EVIDENCE_SAMPLES, error, 1e7, log(1.03) },
                  { NAN, NAN, &none, &none, KBI_EVIDENCE_NONE, 0, 0, 0 },
                  { 1, NAN, &none, &none, KBI_EVIDENCE_NONE, 0, 0, 0 },
                  { 1, 0.001, &none, &none, KBI_EVIDENCE_NONE, 0, 0, 0 }, // the samples deny the history's precision
                  { 1, 0.001, &b, &none, KBI_EVIDENCE_PROCESSES, sqrt(1.2e-4), 4, 0 },
                  { 0.01, 0.02, &none, &none, KBI_EVIDENCE_HISTORY, 0.02 * sqrt(2), 9, 0 },
                  { 0.01, 0.001, &none, &none, KBI_EVIDENCE_HISTORY, error, 9, 0 },
                  { NAN, 0.001, &none, &none, KBI_EVIDENCE_HISTORY, 0.001 * sqrt(2), 9, 0 },
                  { 0.01, NAN, &b, &none, KBI_EVIDENCE_PROCESSES, sqrt(1.2e-4), 4, 0 },
                  { 0.01, 0.001, &b, &none, KBI_EVIDENCE_PROCESSES, sqrt(1.2e-4), 4, 0 },
                  { 0.01, 0.02, &b, &none, KBI_EVIDENCE_HISTORY, 0.02 * sqrt(2), 9, 0 } };
    for (int i = 0; i < KBI_COUNT(known); i++) {
        kbi_change c;
        memset(&c, 0, sizeof c);
        before.time_ms_ci_low = 10 * (1 - known[i].width), before.time_ms_ci_high = 10 * (1 + known[i].width);
        after.time_ms_ci_low = 11 * (1 - known[i].width), after.time_ms_ci_high = 11 * (1 + known[i].width);
        c.before = &before, c.after = &after, c.run_sd = known[i].run_sd, c.run_df = 9;
        kbi_change_measure(&c, known[i].b, known[i].a, 0.03);
        CHECK_THAT(c.evidence == known[i].evidence, "row %d: evidence %d", i, (int)c.evidence);
        CHECK_REAL(c.se, known[i].se, 1e-9), CHECK_REAL(c.df, known[i].df, 1e-9),
            CHECK_REAL(c.wide, known[i].wide, 1e-12);
        CHECK_REAL(c.log, log(1.1), 1e-12);
    }
}

// --- verdict of a change ---

static void test_verdicts(void) {
    static const struct {
        double log, se, wide;
        kb_verdict verdict;
        int regressed, improved, open;
    } rows[] = { { 0.1, 0.01, 0, KB_SLOWER, 1, 0, 0 },
                 { -0.1, 0.01, 0, KB_FASTER, 0, 1, 0 },
                 { 0.01, 0.01, 0, KB_EQUIVALENT, 0, 0, 0 },
                 { -0.01, 0.01, 0, KB_EQUIVALENT, 0, 0, 0 },
                 { 0.04, 0.01, 0, KB_SLOWER, 0, 0, 1 },
                 { -0.04, 0.01, 0, KB_FASTER, 0, 0, 1 },
                 { 0.04, 0.03, 0, KB_UNRESOLVED, 0, 0, 1 },
                 { -0.04, 0.03, 0, KB_UNRESOLVED, 0, 0, 1 },
                 { 0.06, 0, 0, KB_SLOWER, 1, 0, 0 },
                 { 0.0487, 0, 0, KB_SLOWER, 0, 0, 0 },
                 { -0.0487, 0, 0, KB_FASTER, 0, 0, 0 },
                 { 0, 0, 0, KB_EQUIVALENT, 0, 0, 0 },
                 { 0.07, 1e-6, 0.03, KB_SLOWER, 0, 0, 1 },
                 { 0.0789, 1e-6, 0.03, KB_SLOWER, 1, 0, 0 },
                 { 0.0787, 1e-6, 0.03, KB_SLOWER, 0, 0, 1 },
                 { -0.0789, 1e-6, 0.03, KB_FASTER, 0, 1, 0 },
                 { 0.029, 1e-6, 0.03, KB_UNRESOLVED, 0, 0, 1 },
                 { 0.018, 1e-6, 0.03, KB_EQUIVALENT, 0, 0, 0 },
                 { 0.0684, 0.01, 0, KB_SLOWER, 1, 0, 0 },
                 { 0.0683, 0.01, 0, KB_SLOWER, 0, 0, 1 } }; // at 1.96 standard errors
    kb_result before = blank("a", 10), after = blank("a", 11), failed = blank("a", 11);
    failed.status = KB_FAILED;
    kbi_rules rules = { 0.05, 0.1, 0.05, 0.03 };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_change of[2];
        kbi_changes c = { of, 2 };
        memset(of, 0, sizeof of);
        of[0].before = of[1].before = &before, of[0].after = &after, of[1].after = &failed;
        of[0].evidence = of[1].evidence = KBI_EVIDENCE_ROUNDS, of[0].df = 1e7;
        of[0].log = rows[i].log, of[0].se = rows[i].se, of[0].wide = rows[i].wide;
        kbi_changes_judge(&c, &rules);
        CHECK_THAT(of[0].verdict == rows[i].verdict && of[0].regressed == rows[i].regressed &&
                       of[0].improved == rows[i].improved && of[0].open == rows[i].open,
                   "row %d: verdict %d, regressed %d, improved %d, uncertain %d", i, (int)of[0].verdict,
                   of[0].regressed, of[0].improved, of[0].open);
        double reach = 1.959963984540054 * rows[i].se + rows[i].wide;
        CHECK_REAL(of[0].lo, rows[i].log - reach, 1e-5), CHECK_REAL(of[0].hi, rows[i].log + reach, 1e-5);
        CHECK(isnan(of[1].lo) && isnan(of[1].p) && of[1].verdict == KB_NO_VERDICT && !of[1].open);
    }
    // few degrees of freedom widen an interval; with several cases, Holm's correction raises the p-values
    kbi_change of[3];
    kbi_changes c = { of, 3 };
    memset(of, 0, sizeof of);
    for (int i = 0; i < 3; i++) of[i].before = &before, of[i].after = &after, of[i].evidence = KBI_EVIDENCE_ROUNDS;
    of[0].log = 0.1, of[0].se = 0.02, of[0].df = 4;    // (0.1 - 0.0488) / 0.02: t = 2.56, p = 0.0626
    of[1].log = 0.07, of[1].se = 0.01, of[1].df = 1e7; // z = 2.121: p = 0.0339, of two cases 0.0678
    of[2].evidence = KBI_EVIDENCE_NONE;
    kbi_changes_judge(&c, &rules);
    CHECK_REAL(of[0].hi, 0.1 + 2.776445105 * 0.02, 1e-6), CHECK_REAL(of[1].lo, 0.07 - 0.01959964, 1e-6);
    CHECK_REAL(of[0].p, of[1].p, 1e-12), CHECK_THAT(of[1].p > 0.0675 && of[1].p < 0.0681, "p %g", of[1].p);
    CHECK(!of[0].regressed && !of[1].regressed && of[1].open && of[0].verdict == KB_SLOWER);
    CHECK(of[2].open && of[2].verdict == KB_UNRESOLVED && isnan(of[2].p));
    c.n = 1, kbi_changes_judge(&c, &rules);
    CHECK_THAT(of[0].p > 0.062 && of[0].p < 0.0635, "p %g", of[0].p);
    kbi_change sum[8];
    memset(sum, 0, sizeof sum);
    kbi_changes all = { sum, 8 };
    for (int i = 0; i < 8; i++) sum[i].before = &before, sum[i].after = &after;
    sum[0].before = NULL, sum[1].after = NULL, sum[2].after = &failed, sum[3].before = &failed;
    sum[4].log = 0.3, sum[4].regressed = sum[4].more = true, sum[4].verdict = KB_SLOWER,
    sum[4].evidence = KBI_EVIDENCE_ROUNDS;
    sum[5].log = 0.5, sum[5].regressed = true, sum[5].verdict = KB_SLOWER, sum[5].evidence = KBI_EVIDENCE_ROUNDS;
    sum[6].log = 0.9, sum[6].open = true, sum[6].verdict = KB_UNRESOLVED, sum[6].evidence = KBI_EVIDENCE_SAMPLES;
    sum[7].log = -0.5, sum[7].improved = sum[7].less = true, sum[7].verdict = KB_FASTER;
    kbi_assessment a = kbi_assess(&all);
    CHECK(a.added == 1 && a.removed == 1 && a.broken == 1 && a.recovered == 1 && a.compared == 4 && a.regressed == 2);
    CHECK(a.improved == 1 && a.more == 1 && a.less == 1 && a.slower == 2 && a.faster == 1 && a.open == 1);
    CHECK(a.evidence_counts[KBI_EVIDENCE_ROUNDS] == 2 && a.evidence_counts[KBI_EVIDENCE_SAMPLES] == 1 && a.evidence_counts[0] == 1);
    CHECK(a.worst == &sum[5]), CHECK_REAL(a.geomean, exp(0.3), 1e-12);
    all.n = 1, a = kbi_assess(&all);
    CHECK(isnan(a.geomean) && !a.worst && a.added == 1 && !a.compared);
}

// --- other programs on the processor ---

static void test_disturbed(void) {
    const double least = log(10 / 8.0);
    const struct {
        const char* timer;
        double waited, stolen, shortest, want; // time_ms is 10
    } rows[] = { { "wall", 50, 0, 8, least },  { "wall", 5, 0, 8, least },    { "wall", 0, 5, 8, least },
                 { "wall", NAN, 6, 8, least }, { "wall", 50, NAN, 8, least }, { "wall", 4.9, 4.9, 8, 0 },
                 { "wall", NAN, NAN, 8, 0 },   { "wall", 50, 0, NAN, 0 },     { "wall", 50, 0, 0, 0 },
                 { "wall", 50, 0, -1, 0 },     { "wall", 50, 0, 11, 0 },      { "wall", 50, 0, 10, 0 },
                 { "events", 50, 50, 8, 0 },   { "cupti", 50, 50, 8, 0 },     { NULL, 50, 50, 8, 0 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kb_result r = blank("a", 10);
        r.timer = rows[i].timer, r.cpu_waited = rows[i].waited, r.cpu_stolen = rows[i].stolen;
        r.time_ms_min = rows[i].shortest;
        CHECK_THAT(fabs(kbi_disturbance(&r) - rows[i].want) < 1e-12, "row %d: %g", i, kbi_disturbance(&r));
    }
    // Both records have a sample that takes 20 % less than the median. A disturbed old run may hide a slowdown, so
    // only a speedup is uncertain; a disturbed new run may hide a speedup, so only a slowdown is uncertain.
    enum { OLD = 1, NEW = 2 };
    const struct {
        int disturbed;
        double after;
        kb_verdict verdict;
        int regressed, improved, open;
    } pairs[] = { { 0, 12, KB_SLOWER, 1, 0, 0 },        { OLD, 12, KB_SLOWER, 1, 0, 0 },
                  { NEW, 12, KB_UNRESOLVED, 0, 0, 1 },  { OLD | NEW, 12, KB_UNRESOLVED, 0, 0, 1 },
                  { NEW, 15, KB_SLOWER, 1, 0, 0 },      { NEW, 12.9, KB_SLOWER, 0, 0, 1 },
                  { 0, 8.5, KB_FASTER, 0, 1, 0 },       { NEW, 8.5, KB_FASTER, 0, 1, 0 },
                  { OLD, 8.5, KB_UNRESOLVED, 0, 0, 1 }, { OLD | NEW, 8.5, KB_UNRESOLVED, 0, 0, 1 },
                  { OLD, 6, KB_FASTER, 0, 1, 0 },       { 0, 10, KB_EQUIVALENT, 0, 0, 0 },
                  { OLD, 10, KB_UNRESOLVED, 0, 0, 1 },  { NEW, 10, KB_UNRESOLVED, 0, 0, 1 } };
    const kbi_rules rules = { 0.05, 0.1, 0.05, 0.03 };
    for (int i = 0; i < 2 * KBI_COUNT(pairs); i++) { // with one process, with five processes in each run
        kb_result r[2] = { blank("a", 10), blank("a", pairs[i / 2].after) };
        double medians[2][5];
        for (int k = 0; k < 2; k++) {
            r[k].timer = "wall", r[k].time_ms_min = r[k].time_ms * 0.8, r[k].cpu_stolen = 0;
            r[k].cpu_waited = pairs[i / 2].disturbed >> k & 1 ? 40 : 4;
            r[k].time_ms_ci_low = r[k].time_ms * 0.999, r[k].time_ms_ci_high = r[k].time_ms * 1.001;
            for (int p = 0; p < 5; p++) medians[k][p] = r[k].time_ms * (1 + 0.001 * (p - 2));
            if (i % 2) r[k].process_ms.of = medians[k], r[k].process_ms.n = 5;
        }
        kbi_changes c = kbi_pair_records(&r[0], 1, &r[1], 1);
        kbi_compare(&c, &rules);
        const kbi_change one = c.of[0];
        kbi_assessment a = kbi_assess(&c);
        CHECK_THAT(one.verdict == pairs[i / 2].verdict && one.regressed == pairs[i / 2].regressed &&
                       one.improved == pairs[i / 2].improved && one.open == pairs[i / 2].open,
                   "pair %d: verdict %d, regressed %d, improved %d, uncertain %d", i, (int)one.verdict, one.regressed,
                   one.improved, one.open);
        const bool old = pairs[i / 2].disturbed & OLD, new_run = pairs[i / 2].disturbed & NEW;
        CHECK_THAT(a.old_disturbed == (one.open && old) && a.new_disturbed == (one.open && new_run),
                   "pair %d: %d and %d disturbed", i, (int)a.old_disturbed, (int)a.new_disturbed);
        CHECK_REAL(one.above, old ? least : 0, 1e-12), CHECK_REAL(one.below, new_run ? least : 0, 1e-12);
        CHECK(one.log - one.lo > one.below && one.hi - one.log > one.above);
        CHECK(one.log - one.lo < one.below + 0.04 && one.hi - one.log < one.above + 0.04);
        KBENCH_FREE(c.of);
    }
    // without an interval, nothing is extended
    kb_result r[2] = { blank("a", 10), blank("a", 12) };
    for (int k = 0; k < 2; k++) r[k].timer = "wall", r[k].cpu_waited = 40, r[k].time_ms_min = 8;
    kbi_changes c = kbi_pair_records(&r[0], 1, &r[1], 1);
    kbi_compare(&c, &rules);
    kbi_assessment a = kbi_assess(&c);
    CHECK(c.of[0].open && a.open == 1 && !a.old_disturbed && !a.new_disturbed);
    KBENCH_FREE(c.of);
}

// --- rounds of a race ---

static void test_compared_rounds(void) {
    kb_result before[2] = { blank("a", 10), blank("b", 10) }, after[2] = { blank("a", 11), blank("b", 20) };
    kbi_rules rules = { 0.05, 0.1, 0.05, 0.03 };
    kbi_change of[2];
    kbi_changes c = { of, 2 };
    memset(of, 0, sizeof of);
    for (int i = 0; i < 2; i++) of[i].before = &before[i], of[i].after = &after[i];
    after[1].status = KB_FAILED;
    for (int rounds = 5; rounds <= 8; rounds++) {
        double logs[16];
        for (int k = 0; k < rounds; k++) logs[k] = 0.02 + 0.001 * (k % 2 ? -1 : 1), logs[rounds + k] = NAN;
        double widest = kbi_compare_rounds(&c, logs, rounds, &rules);
        double mean = 0.02 + (rounds % 2 ? 0.001 / rounds : 0), squares = 0;
        for (int k = 0; k < rounds; k++) squares += (logs[k] - mean) * (logs[k] - mean);
        double se = sqrt(squares / (rounds - 1) / rounds) * (rounds > 6 ? 1 + 1.5 / rounds : 1);
        CHECK_REAL(of[0].log, mean, 1e-9), CHECK_REAL(of[0].se, se, 1e-9), CHECK_REAL(of[0].df, rounds - 1, 1e-9);
        CHECK_REAL(widest, se * kbi_student_quantile(0.975, rounds - 1), 1e-9);
        CHECK(of[0].evidence == KBI_EVIDENCE_ROUNDS && of[1].evidence == KBI_EVIDENCE_NONE && of[1].verdict == KB_NO_VERDICT);
    }
    // the second case has a time in both sets of records, but only one of its rounds has a time in both sets
    after[1].status = KB_OK;
    double logs[16];
    for (int k = 0; k < 8; k++) logs[k] = 0.02 + 0.001 * (k % 2 ? -1 : 1), logs[8 + k] = k ? NAN : 0.5;
    CHECK(isinf(kbi_compare_rounds(&c, logs, 8, &rules)));
    CHECK(of[1].evidence == KBI_EVIDENCE_NONE && of[1].verdict == KB_UNRESOLVED), CHECK_REAL(of[1].log, log(2), 1e-12);
    for (int k = 0; k < 8; k++) logs[8 + k] = 0.02 + 0.002 * (k % 2 ? -1 : 1);
    double widest = kbi_compare_rounds(&c, logs, 8, &rules),
           two = kbi_student_quantile(1 - 0.025 / 2, of[1].df) * of[1].se;
    CHECK_REAL(widest, KBI_MAX(two, of[0].se * kbi_student_quantile(1 - 0.025 / 2, of[0].df)), 1e-12);
    CHECK(!kbi_race_enough(5, 0.001, &rules) && kbi_race_enough(6, 0.0162, &rules) &&
          !kbi_race_enough(9, 0.0164, &rules));
    CHECK(!kbi_race_enough(9, INFINITY, &rules));
}

// For any number of cases, the pooled spread is computed in subsets of cases of similar duration, as described at
// kbi_spread_of.
static void test_lots(void) {
    enum { N = 230, EACH = 3 };
    static double values[N * EACH], times[N], lot[KBI_ALIKE * EACH], lengths[KBI_ALIKE];
    static kbi_spread got[N], want[KBI_ALIKE];
    int order[N], known = 0, wrong = 0;
    for (int i = 0; i < N; i++) {
        times[i] = 1 + i * 37 % N; // each length once
        for (int k = 0; k < EACH; k++) values[i * EACH + k] = 0.01 * (1 + i % 5) * ((i * 7 + k * 11) % 13);
        if (i % 9 == 0) values[i * EACH] = NAN;
        if (i % 18 == 0) values[i * EACH + 2] = NAN;
    }
    for (int t = 1; t <= N; t++)
        for (int i = 0; i < N; i++)
            if (times[i] == t && i % 18) order[known++] = i;
    kbi_spread_subsets(values, EACH, N, times, got);
    for (int first = 0; first < known; first += KBI_ALIKE) {
        int n = KBI_MIN(known - first, (int)KBI_ALIKE);
        for (int i = 0; i < n; i++) {
            memcpy(lot + i * EACH, values + order[first + i] * EACH, sizeof(double) * EACH);
            lengths[i] = times[order[first + i]];
        }
        kbi_spread_of(lot, EACH, n, lengths, 0, want);
        for (int i = 0; i < n; i++) {
            const kbi_spread* s = &got[order[first + i]];
            wrong += s->n != want[i].n || s->mean != want[i].mean || s->sd != want[i].sd || s->df != want[i].df;
        }
    }
    for (int i = 0; i < N; i += 18) wrong += got[i].n != 0;
    CHECK_INT(wrong, 0), CHECK(known > 2 * KBI_ALIKE);
}

static void test_processes(void) {
    static double many[80];
    double few[] = { 10, 10.2, NAN, 0, 9.8 };
    kb_result before[2] = { blank("a", 10), blank("b", 10) }, after[2] = { blank("a", 10), blank("b", 10) };
    for (int i = 0; i < 80; i++) many[i] = i < KBI_PROCESSES_READ ? (i % 2 ? 10 : 11) : 1000;
    before[0].process_ms.of = few, before[0].process_ms.n = 5;
    before[1].process_ms.of = many, before[1].process_ms.n = 80;
    kbi_changes c = kbi_pair_records(before, 2, after, 2);
    kbi_spread s[2];
    kbi_spread_of_side(&c, false, s);
    CHECK_INT(s[0].n, 3), CHECK_REAL(s[0].mean, log(10 * 10.2 * 9.8) / 3, 1e-12);
    CHECK_INT(s[1].n, KBI_PROCESSES_READ), CHECK_REAL(s[1].mean, log(110) / 2, 1e-12);
    kbi_spread_of_side(&c, true, s);
    CHECK(s[0].n == 0 && s[1].n == 0);
    after[0].status = KB_FAILED; // if one record of a pair failed, neither record is used
    kbi_spread_of_side(&c, false, s);
    CHECK(s[0].n == 0 && s[1].n == KBI_PROCESSES_READ);
    KBENCH_FREE(c.of);
}

// --- the past ---

static void test_past(void) {
    double sd, df, slope, p, x[12] = { 0, 1, 0, 1, 0, 100, 101, 100, 101, 100, 101, 100 };
    kbi_runs_scatter(x, 5, &sd, &df), CHECK(isnan(sd) && isnan(df));
    kbi_runs_scatter(x, 6, &sd, &df), CHECK_REAL(sd, sqrt(0.5), 1e-12), CHECK_REAL(df, 8.0 / 3, 1e-12);
    kbi_runs_scatter(x, 12, &sd, &df), CHECK_REAL(sd, sqrt(0.5), 1e-12), CHECK_REAL(df, 20.0 / 3, 1e-12);
    // a run-to-run change of at most six times the scatter of the other changes counts as noise
    x[5] = 8.8, kbi_runs_scatter(x, 6, &sd, &df), CHECK_REAL(df, 10.0 / 3, 1e-12);
    CHECK_REAL(sd, sqrt(0.5 * (4 + 8.8 * 8.8) / 5), 1e-12);
    x[5] = 9, kbi_runs_scatter(x, 6, &sd, &df), CHECK_REAL(df, 8.0 / 3, 1e-12);
    double flat[8] = { 2, 2, 2, 2, 2, 2, 2, 2 }, falls[8] = { 8, 7, 6, 5, 4, 3, 2, 1 },
           turns[8] = { 1, 2, 1, 2, 1, 2, 1, 2 };
    kbi_runs_slope(flat, 7, &slope, &p), CHECK(isnan(slope) && isnan(p));
    kbi_runs_slope(flat, 8, &slope, &p), CHECK(slope == 0 && p == 1);
    kbi_runs_slope(falls, 8, &slope, &p), CHECK_REAL(slope, -1, 1e-12), CHECK_REAL(p, 8.366271e-4, 1e-5);
    kbi_runs_slope(turns, 8, &slope, &p), CHECK_REAL(slope, 0, 1e-12); // Kendall's score is 4
    CHECK_REAL(p, 2 * kbi_student_tail(3 / sqrt(8.0 * 7 * 21 / 18), 1e7), 1e-12);
    double odd[5] = { 5, 1, 4, 2, 3 }, even[4] = { 5, 1, 4, 2 }, single[1] = { 7 };
    CHECK(kbi_middle(odd, 5) == 3 && kbi_middle(even, 4) == 3 && kbi_middle(single, 1) == 7);
    static kb_result r[60];
    const kb_result* of[60];
    int64_t n;
    for (int i = 0; i < 43; i++) r[i] = blank("long", 1 + i), of[i] = &r[i];
    kbi_trend* t = kbi_trends(of, 43, &n);
    CHECK(n == 1 && t[0].runs == KBI_RUNS_READ), CHECK_REAL(t[0].first, 4, 1e-12), CHECK_REAL(t[0].now, 43, 1e-12);
    CHECK_REAL(t[0].middle, exp(log(23)), 1e-12), CHECK(t[0].last == &r[42]);
    KBENCH_FREE(t);
    for (int i = 0; i < 12; i++) {
        r[i] = blank("b", 1 + 0.01 * (i % 4 > 1) * (1 + 2 * (i % 2))), of[i] = &r[i];
        r[i].device = i % 2 ? 1 : KB_NONE;
        r[12 + i] = blank(i < 6 ? "a" : "c", i == 3 ? NAN : 2), of[12 + i] = &r[12 + i];
        if (i == 7) r[12 + i].status = KB_FAILED;
    }
    t = kbi_trends(of, 24, &n);
    CHECK_INT(n, 4);
    CHECK(kbi_is(t[0].last->name, "a") && kbi_is(t[1].last->name, "b") && kbi_is(t[3].last->name, "c"));
    CHECK(t[0].runs == 5 && t[1].runs == 6 && t[2].runs == 6 && t[3].runs == 5);
    CHECK(t[1].last->device == KB_NONE && t[2].last->device == 1 && t[2].sd > 1.5 * t[1].sd);
    // if a case has records of several devices, the largest scatter of any device is used; records of other cases
    // have no effect
    kb_result after[4] = { blank("b", 1), blank("bb", 1), blank("c", 1), blank("0", 1) };
    kbi_changes c = kbi_pair_records(after, 1, after, 4);
    kbi_changes_learn(&c, t, n);
    CHECK_REAL(c.of[0].run_sd, t[2].sd, 0), CHECK_REAL(c.of[0].run_df, t[2].df, 0);
    CHECK(isnan(c.of[1].run_sd) && isnan(c.of[3].run_sd)), CHECK_REAL(c.of[2].run_sd, t[3].sd, 0);
    kbi_trend turned = t[1]; // the order of the devices in the history does not matter
    t[1] = t[2], t[2] = turned, c.of[0].run_sd = NAN;
    kbi_changes_learn(&c, t, n);
    CHECK_REAL(c.of[0].run_sd, t[1].sd, 0);
    KBENCH_FREE(c.of);
    KBENCH_FREE(t);
    kbi_trend own[3];
    memset(own, 0, sizeof own);
    own[0].sd = 0.01, own[0].df = 6, own[1].sd = 0.03, own[1].df = 2, own[2].sd = NAN, own[2].df = NAN;
    const double sum = 6 * 1e-4 + 2 * 9e-4;
    kbi_trends_pool(own, 3);
    CHECK_REAL(own[0].sd, sqrt((6e-4 + 2 * sum / 8) / 8), 1e-12), CHECK_REAL(own[0].df, 8, 1e-12);
    CHECK_REAL(own[1].sd, 0.03, 1e-12), CHECK_REAL(own[1].df, 6, 1e-12);
    CHECK_REAL(own[2].sd, sqrt(sum / 8), 1e-12), CHECK_REAL(own[2].df, 4, 1e-12);
    own[0].sd = 0.01, own[0].df = 3;
    kbi_trends_pool(own, 1), CHECK_REAL(own[0].df, 3, 0), CHECK_REAL(own[0].sd, 0.01, 0);
}

// --- machines ---

static int key_of(const char* name) {
    for (int i = 0; i < KBI_COUNT(kbi_env_keys); i++)
        if (strcmp(kbi_env_keys[i].key, name) == 0) return i;
    return -1;
}

static void test_machines(void) {
    static const struct {
        const char *key, *x, *y;
        bool off;
    } rows[] = { { "gpu", "A", "A", false },
                 { "gpu", "A", "B", true },
                 { "gpu", "A", NULL, true },
                 { "gpu", NULL, NULL, false },
                 { "cpu", "A", NULL, false },
                 { "cpu", "A", "B", true },
                 { "driver", "550.1", "550.2", false },
                 { "driver", "55.1", "550.1", true },
                 { "driver", "550", "550.3", false },
                 { "driver", "551.1", "550.1", true },
                 { "driver", "5", "6", true },
                 { "cache", "hot", "hot", false },
                 { "cache", "hot", NULL, false },
                 { "cache", "hot", "cold", true },
                 { "timer", "cupti", "events", true },
                 { "build", "x, not optimised", "x", true },
                 { "build", "x, not optimised", "y, not optimised", false },
                 { "build", "x; kbench: y, not optimised", "x", false },
                 { "host", "a", "b", false },
                 { "build", "x, not optimised; kbench: y", "x", true },
                 { "seed", "1", "2", false } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        bool off = kbi_env_off(key_of(rows[i].key), rows[i].x, rows[i].y);
        CHECK_THAT(off == rows[i].off, "%s: %s, %s", rows[i].key, rows[i].x ? rows[i].x : "-",
                   rows[i].y ? rows[i].y : "-");
        CHECK(kbi_env_off(key_of(rows[i].key), rows[i].y, rows[i].x) == off);
    }
    kb_result a = blank("a", 1), b = blank("a", 1), other = blank("b", 1);
    a.backend = "cuda", b.backend = "cpu", a.gpu = "G", a.driver = "1", b.driver = "2", a.cpu = "P", b.cpu = "Q";
    kbi_text what = KBI_BLANK;
    CHECK(kbi_env_differs(&a, &b, &what) && strcmp(what.s, "backend (cuda; cpu), CPU (P; Q)") == 0);
    b.backend = "cuda";
    CHECK(kbi_env_differs(&a, &b, &what));
    CHECK_STR(what.s, "backend (cuda; cpu), CPU (P; Q), GPU (G; none), CPU (P; Q)");
    b.gpu = "G", b.driver = "1", b.cpu = "P";
    CHECK(!kbi_env_differs(&a, &b, &what));
    kbi_text_free(&what);
    kb_param known[3] = { { "aslr", KB_AXIS_INTS, 1, 0, NULL },
                          { "limit", KB_AXIS_REALS, 7, 2.5, NULL },
                          { "room", KB_AXIS_STRINGS, 0, 0, "x" } },
             knows[3] = { { "room", KB_AXIS_STRINGS, 0, 0, "y" },
                          { "aslr", KB_AXIS_INTS, 2, 0, NULL },
                          { "limit", KB_AXIS_REALS, 8, 2.5, NULL } };
    a.environment.of = known, a.environment.n = 3, b.environment.of = knows, b.environment.n = 3;
    b.cpu = "Q", a.host = "h", b.host = "i", a.seed = 1, b.seed = 1, a.cpu_boost = 1;
    kbi_change of[4];
    memset(of, 0, sizeof of);
    of[0].before = of[1].before = &a, of[0].after = of[1].after = &b, of[2].before = &other, of[3].after = &other;
    kbi_changes c = { of, 4 };
    kbi_differences d;
    kbi_differences_of(&d, &c);
    CHECK_INT(d.pairs, 2), CHECK_INT(d.n, 4);
    static const char* const told[][3] = {
        { "cpu", "P", "Q" }, { "host", "h", "i" }, { "aslr", "1", "2" }, { "room", "x", "y" }
    };
    for (int i = 0; i < 4; i++) {
        CHECK_STR(d.of[i].key, told[i][0]), CHECK_STR(d.of[i].before, told[i][1]),
            CHECK_STR(d.of[i].after, told[i][2]);
        CHECK(d.of[i].pairs == 2 && d.of[i].off == (i == 0));
    }
    kbi_arena_free(&d.texts);
    // if the two sets have no case in common, the first records of both sets are compared
    c.of = of + 2, c.n = 2, of[2].before = &a, of[3].after = &b;
    kbi_differences_of(&d, &c);
    CHECK(d.pairs == 1 && d.n == 4 && d.of[0].pairs == 1);
    char key[80][16];
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 70; i++)
            snprintf(key[i], sizeof key[i], "k%d", i), kbi_differences_put(&d, key[i], "x", "y", i % 2 > 0);
    CHECK_INT(d.n, KBI_DIFFERENCES), CHECK_INT(d.of[4].pairs, 2), CHECK_STR(d.of[63].key, "k59");
    CHECK(d.of[63].off && !d.of[62].off && d.of[63].pairs == 2);
    kbi_arena_free(&d.texts);
    c.n = 1;
    kbi_differences_of(&d, &c);
    CHECK(!d.pairs && !d.n);
}

int main(void) {
    test_pairs();
    test_grounds();
    test_verdicts();
    test_disturbed();
    test_compared_rounds();
    test_lots();
    test_processes();
    test_past();
    test_machines();
    return test_end();
}
