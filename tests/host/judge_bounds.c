// SPDX-License-Identifier: MIT OR Unlicense
// Tests how kbench judges measurements, with known answers at and next to each threshold: flags, rates, peaks,
// counters, several processes of a case, and implementations of a group.
#include "test.h"
#include <stdlib.h>
#include "guarded.h"
#include "kit.h"

static kb_result r;
static kbi_measured m;
static kbi_machine machine;

static void fresh(const char* mode) {
    kb_result_free(&r);
    kbi_result_clear(&r);
    r.status = KB_OK;
    r.time_ms = 1;
    bool wall = strcmp(mode, "wall") == 0;
    r.cache = wall ? NULL : mode, r.timer = wall ? mode : "events";
    kbi_measured_clear(&m);
    m.status = KB_OK;
    snprintf(m.cache, sizeof m.cache, "%s", wall ? "" : mode), snprintf(m.timer, sizeof m.timer, "%s", r.timer);
    kbi_machine_clear(&machine, "cuda");
    machine.cold = 1;
    machine.l2 = 1000;
}

static bool has(kb_flag flag) { return (r.flags >> flag & 1) != 0; }

// --- flags ---

enum { NONE = -1 };
static void test_flags(void) {
    static const struct {
        const char* what;
        int n, settled, drifts, bimodal;
        // rest: time of the second half of the samples
        double said, precision, drift, effective, p5, p25, p75, p95, low, step, first, rest;
        int flag;
    } rows[] = {
#define QUIET 1, 1, 1, 1, NAN, 0, 1, 1
        { "nothing", 30, 1, 0, 0, 0.001, 0.001, 0, 30, QUIET, NONE },
        { "five", 5, 1, 0, 0, 0.001, 0.001, 0, 30, QUIET, KB_FLAG_FEW },
        { "six", 6, 1, 0, 0, 0.001, 0.001, 0, 30, QUIET, NONE },
        { "5 %", 30, 1, 0, 0, 0.001, 0.05, 0, 30, QUIET, NONE },
        { "5.1 %", 30, 1, 0, 0, 0.001, 0.051, 0, 30, QUIET, KB_FLAG_NOISY },
        { "a step", 30, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 10100, 1, 1, KB_FLAG_QUANTISED },
        { "a step of 29", 29, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 10100, 1, 1, NONE },
        { "a smaller step", 30, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 9900, 1, 1, NONE },
        { "a step said", 30, 1, 0, 0, 0.011, 0.001, 0, 30, 1, 1, 1, 1, NAN, 10100, 1, 1, NONE },
        { "drift", 30, 1, 1, 0, 0.0149, 0.001, 0.03, 30, QUIET, KB_FLAG_DRIFT },
        { "drift said", 30, 1, 1, 0, 0.0151, 0.001, 0.03, 30, QUIET, NONE },
        { "drift down", 30, 1, 1, 0, 0.0149, 0.001, -0.03, 30, QUIET, KB_FLAG_DRIFT },
        { "drift of a tenth", 30, 1, 1, 0, 0.06, 0.001, 0.099, 30, QUIET, NONE },
        { "drift of more", 30, 1, 1, 0, 0.06, 0.001, 0.101, 30, QUIET, KB_FLAG_DRIFT },
        { "drift by chance", 30, 1, 0, 0, 0.001, 0.001, 0.2, 30, QUIET, NONE },
        { "a guess", 30, 1, 0, 0, 0.011, 0.001, 0, 5.9, 0.9, 1, 1, 1.14, NAN, 0, 1, 1, KB_FLAG_AUTOCORR },
        { "no guess", 30, 1, 0, 0, 0.011, 0.001, 0, 6, 0.9, 1, 1, 1.14, NAN, 0, 1, 1, NONE },
        { "a guess of little", 30, 1, 0, 0, 0.0099, 0.001, 0, 5.9, 0.9, 1, 1, 1.14, NAN, 0, 1, 1, NONE },
        { "a guess of much", 30, 1, 0, 0, 0.011, 0.001, 0, 5.9, 0.9, 1, 1, 1.16, NAN, 0, 1, 1, NONE },
        { "a guess and drift", 30, 1, 1, 0, 0.011, 0.001, 0.2, 5.9, QUIET, KB_FLAG_DRIFT },
        { "two modes", 30, 1, 0, 1, 0.001, 0.001, 0, 30, 1, 1, 1.04, 1.05, NAN, 0, 1, 1, KB_FLAG_BIMODAL },
        { "one mode", 30, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1.04, 1.05, NAN, 0, 1, 1, NONE },
        { "a long tail", 30, 1, 0, 1, 0.001, 0.001, 0, 30, 1, 1, 1.04, 1.054, NAN, 0, 1, 1, NONE },
        { "two modes below", 30, 1, 0, 1, 0.001, 0.001, 0, 30, 0.95, 0.96, 1, 1, NAN, 0, 1, 1, KB_FLAG_BIMODAL },
        { "a tail below", 30, 1, 0, 1, 0.001, 0.001, 0, 30, 0.946, 0.96, 1, 1, NAN, 0, 1, 1, NONE },
        { "two modes said", 30, 1, 0, 1, 0.0201, 0.001, 0, 30, 1, 1, 1.04, 1.05, NAN, 0, 1, 1, NONE },
        { "two modes near", 30, 1, 0, 1, 0.001, 0.001, 0, 30, 1, 1, 1.0099, 1.01, NAN, 0, 1, 1, NONE },
        { "the farther", 30, 1, 0, 1, 0.015, 0.001, 0, 30, 0.95, 0.96, 1.02, 1.021, NAN, 0, 1, 1, KB_FLAG_BIMODAL },
        { "a clock", 30, 1, 0, 0, 0.001, 0.001, 0, 14, 0.99, 1, 1, 1.01, 1950, 0, 1, 1, KB_FLAG_CLOCK_VARIES },
        { "a steadier clock", 30, 1, 0, 0, 0.001, 0.001, 0, 14, 0.99, 1, 1, 1.01, 1961, 0, 1, 1, NONE },
        { "not followed", 30, 1, 0, 0, 0.001, 0.001, 0, 14, 0.994, 1, 1, 1.006, 1950, 0, 1, 1, NONE },
        { "not slowly", 30, 1, 0, 0, 0.001, 0.001, 0, 15, 0.99, 1, 1, 1.01, 1950, 0, 1, 1, NONE },
        { "slower later", 29, 0, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 0, 1, 1.011, KB_FLAG_UNSETTLED },
        { "little later", 29, 0, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 0, 1, 1.009, NONE },
        { "faster later", 29, 0, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 0, 1, 0.989, KB_FLAG_UNSETTLED },
        { "little faster", 29, 0, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 0, 1, 0.991, NONE },
        { "settled", 29, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1, 1, NAN, 0, 1, 1.1, NONE },
        { "stragglers", 30, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1.1, 1.2, NAN, 0, 1, 1.39, KB_FLAG_OUTLIERS },
        { "far stragglers", 30, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1.1, 1.2, NAN, 0, 1, 1.41, NONE },
        { "low stragglers", 30, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1.1, 1.2, NAN, 0, 1, 0.71, KB_FLAG_OUTLIERS },
        { "lower stragglers", 30, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1.1, 1.2, NAN, 0, 1, 0.69, NONE },
        { "stragglers said", 30, 1, 0, 0, 0.2, 0.001, 0, 30, 1, 1, 1.1, 1.2, NAN, 0, 1, 1.39, NONE },
        { "29 of them", 29, 1, 0, 0, 0.001, 0.001, 0, 30, 1, 1, 1.1, 1.2, NAN, 0, 1, 1.39, NONE }
    };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        double ms[30];
        kb_stats s = kbi_stats_none(rows[i].n);
        fresh("cold");
        for (int k = 0; k < rows[i].n; k++) ms[k] = k < rows[i].n / 2 ? rows[i].first : rows[i].rest;
        r.precision = rows[i].said;
        m.settled = rows[i].settled, m.clock_high = 2000, m.clock_low = rows[i].low, m.step_ns = rows[i].step;
        s.median = 1, s.precision = rows[i].precision, s.drift = rows[i].drift, s.effective = rows[i].effective;
        s.drift_significant = rows[i].drifts, s.bimodal = rows[i].bimodal;
        s.p5 = rows[i].p5, s.p25 = rows[i].p25, s.p75 = rows[i].p75, s.p95 = rows[i].p95;
        kbi_judge_flags(&r, &m, &s, ms);
        uint64_t want = rows[i].flag < 0 ? 0 : (uint64_t)1 << rows[i].flag;
        CHECK_THAT(r.flags == want, "%s: flags %llx, not %llx", rows[i].what, (unsigned long long)r.flags,
                   (unsigned long long)want);
    }
    // OUTLIERS: the mean differs from the median by over 10 %, in either direction, and is outside of the interval
    static const struct {
        double mean, said;
        int64_t n;
        bool flagged;
    } means[] = { { 1.11, 0.001, 30, true }, { 1.09, 0.001, 30, false }, { 0.89, 0.001, 30, true },
                  { 1.11, 0.12, 30, false }, { 1.3, 0.12, 30, true },    { 1.11, 0.001, 5, false } };
    for (int i = 0; i < KBI_COUNT(means); i++) {
        double ms[30];
        kb_stats of = kbi_stats_none(means[i].n);
        fresh("cold");
        for (int k = 0; k < 30; k++) ms[k] = 1;
        of.median = 1, of.mean = means[i].mean, of.max = 7, of.p5 = of.p25 = of.p75 = of.p95 = 1;
        r.precision = means[i].said;
        kbi_judge_flags(&r, &m, &of, ms);
        CHECK_THAT((r.flags >> KB_FLAG_OUTLIERS & 1) == means[i].flagged, "mean %g, +- %g: flags %llx", means[i].mean,
                   means[i].said, (unsigned long long)r.flags);
        CHECK_THAT((r.message && strstr(r.message, "the median 1.000 ms")) == means[i].flagged, "message %s",
                   r.message ? r.message : "");
    }
    // resolution of a timer: the known resolution, or the distance to the nearest different sample above or below
    static const double steps[][4] = { { 1, 1.05, 1.2, 0.05 },  { 1, 1.11, 0.8, 0 }, { 0.95, 1, 1.06, 0.05 },
                                       { 1, 0.93, 1.04, 0.04 }, { 1, 1, 1, 0 },      { 0.9, 1, 1.5, 0.1 } };
    kb_stats s = kbi_stats_none(3);
    s.median = 1;
    fresh("cold");
    for (int i = 0; i < KBI_COUNT(steps); i++) CHECK_REAL(kbi_judge_step(&s, &m, steps[i]), steps[i][3], 1e-12);
    m.step_ns = 32, CHECK_REAL(kbi_judge_step(&s, &m, steps[0]), 32e-6, 1e-12);
    m.step_ns = 0, CHECK_REAL(kbi_judge_step(&s, &m, steps[0]), 0.05, 1e-12);
}

// --- times ---

static const char* said(void) { return r.message ? r.message : ""; }

static void test_times(void) {
    static const struct {
        double samples[3], bias, error, floor;
        int status, flag; // flag: the expected one of NO_WORK, BAD_CASE and FLOOR
        double ms;
        const char* says;
    } rows[] = {
        { { 3e6, 1e6, 2e6 }, 0, 0, 0, KB_OK, NONE, 2, "" },
        { { 3e6, 1e6, 2e6 }, 5e5, 0, 0, KB_OK, NONE, 1.5, "" },
        { { 3e6, 1e6, 2e6 }, NAN, 0, 0, KB_OK, NONE, 2, "" },
        { { 3e6, 1e6, 2e6 }, 2e6, 0, 0, KB_FAILED, KB_FLAG_BAD_CASE, NAN, "the time is not longer than reading the clock" },
        { { 3e6, NAN, 2e6 }, 0, 0, 0, KB_FAILED, KB_FLAG_BAD_CASE, NAN, "a time that is not a number" },
        { { 3e6, -1e6, 2e6 }, 0, 0, 0, KB_OK, NONE, 2, "" },
        { { 3e6, 1e6, 2e6 }, 0, 0, 4.1e5, KB_OK, KB_FLAG_FLOOR, 2, "" },
        { { 3e6, 1e6, 2e6 }, 0, 0, 3.9e5, KB_OK, NONE, 2, "" },
        { { 3e6, 1e6, 2e6 }, 0, 1, 9e5, KB_OK, NONE, 2, "" }, // a precisely known bias raises no flag
        { { 3e6, 1e6, 2e6 }, 0, 51100, 0, KB_OK, KB_FLAG_FLOOR, 2, "" },
        { { 3e6, 1e6, 2e6 }, 0, 50900, 0, KB_OK, NONE, 2, "" }
    };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        fresh("cold");
        m.n = 3, m.bias_ns = rows[i].bias, m.bias_error_ns = rows[i].error, m.floor_ns = rows[i].floor;
        double three[] = { rows[i].samples[0], rows[i].samples[1], rows[i].samples[2] };
        r.time_ms = NAN, m.samples = three;
        kbi_judge_times(&r, &m);
        CHECK_THAT((int)r.status == rows[i].status, "times %d: status %d", i, (int)r.status);
        CHECK_REAL(r.time_ms, rows[i].ms, 1e-12);
        CHECK_HAS(said(), rows[i].says), CHECK((said()[0] != 0) == (rows[i].says[0] != 0));
        static const kb_flag of[] = { KB_FLAG_NO_WORK, KB_FLAG_BAD_CASE, KB_FLAG_FLOOR };
        for (int k = 0; k < 3; k++) CHECK_THAT(has(of[k]) == ((int)of[k] == rows[i].flag), "times %d: flag %d", i, k);
        if (r.status != KB_OK) continue;
        double bias = kbi_finite(rows[i].bias) ? rows[i].bias * 1e-6 : 0;
        CHECK_REAL(r.time_ms_raw, rows[i].ms + bias, 1e-12), CHECK_REAL(r.bias_ms, bias, 1e-12);
        CHECK_REAL(r.floor_ms, rows[i].floor * 1e-6, 1e-12), CHECK_INT(r.samples, 3);
        CHECK_REAL(r.time_ms_max, 3 - bias, 1e-12), CHECK_INT(r.samples_ms.n, 3), CHECK_INT(r.process_ms.n, 1);
        CHECK_REAL(r.time_ms_min, rows[i].samples[1] < 0 ? 0 : 1 - bias, 1e-12);
        CHECK_REAL(r.process_ms.of[0], rows[i].ms, 1e-12), CHECK_INT(r.processes, 1);
    }
    // with enough samples, the interval includes the uncertainty of the bias, and neither end is below 0
    double samples[40];
    fresh("cold");
    for (int i = 0; i < 40; i++) samples[i] = 1e6 + 1e4 * (i * 7 % 40);
    m.n = 40, m.samples = samples, m.bias_ns = 0, m.bias_error_ns = 1e5;
    kbi_judge_times(&r, &m);
    double lo = r.time_ms_ci_low, hi = r.time_ms_ci_high;
    CHECK_REAL(r.time_ms, 1.195, 1e-12);
    CHECK_THAT(lo < 1.195 - 0.196 && lo > 1.195 - 0.25 && hi > 1.195 + 0.196 && hi < 1.195 + 0.25, "%g to %g", lo,
               hi);
    CHECK_REAL(r.precision, (hi - lo) / 2 / 1.195, 1e-12);
    m.bias_error_ns = 1e6, r.flags = 0;
    kbi_judge_times(&r, &m);
    CHECK(r.time_ms_ci_low == 0 && r.time_ms_ci_high > 3.1);
    CHECK_REAL(r.precision, 1.96 / 1.195, 0.01);
    fresh("cold");
    m.n = 40, m.samples = samples, m.bias_ns = 0, m.others = 1, m.leaked = 1, m.ungated = 1, m.constant = 1, m.verified = -1,
    m.debug_build = 1;
    snprintf(m.throttle, sizeof m.throttle, "power"), snprintf(m.message, sizeof m.message, "words");
    kb_result_free(&r), kbi_result_clear(&r);
    kbi_judge(&r, &m, &machine);
    static const kb_flag facts[] = { KB_FLAG_THROTTLED,     KB_FLAG_SHARED_GPU, KB_FLAG_LEAK,       KB_FLAG_UNGATED,
                                     KB_FLAG_CONSTANT_DATA, KB_FLAG_UNVERIFIED, KB_FLAG_DEBUG_BUILD };
    for (int i = 0; i < KBI_COUNT(facts); i++) CHECK_THAT(has(facts[i]), "fact %d", i);
    CHECK_STR(said(), "words"), CHECK_REAL(r.time_ms, 1.195, 1e-12),
        CHECK_REAL(r.inference_speed, 1e3 / 1.195, 1e-12);
    m.others = m.ungated = m.constant = m.debug_build = 0, m.leaked = 0, m.verified = 1, m.throttle[0] = 0;
    m.message[0] = 0, machine.cold = 0.69;
    kb_result_free(&r), kbi_result_clear(&r);
    kbi_judge(&r, &m, &machine);
    CHECK(has(KB_FLAG_NOT_COLD) && !has(KB_FLAG_UNVERIFIED)), CHECK_INT(r.status, KB_FAILED);
    CHECK_STR(said(), "after the eviction 31 % of L2's data was still there");
    CHECK(isnan(r.time_ms) && isnan(r.inference_speed) && r.samples == KB_NONE && !r.samples_ms.n && !r.process_ms.n);
    machine.cold = 0.7;
    kb_result_free(&r), kbi_result_clear(&r);
    kbi_judge(&r, &m, &machine);
    CHECK(!has(KB_FLAG_NOT_COLD) && r.status == KB_OK && r.verified == 1);
    for (int i = 0; i < KBI_COUNT(facts); i++) CHECK_THAT(!has(facts[i]), "no fact %d", i);
    m.status = KB_FAILED, m.flags = (uint64_t)1 << KB_FLAG_CRASHED;
    kb_result_free(&r), kbi_result_clear(&r);
    kbi_judge(&r, &m, &machine);
    CHECK(isnan(r.time_ms) && r.status == KB_FAILED && has(KB_FLAG_CRASHED) && r.samples == KB_NONE);
}

// --- rates ---

static void roofs(void) { // 1, 1.2 and 0.8 GB/s; 1 GFLOP/s of f64, 2 of f32, and 4 of f16 (whose upper limit is 5)
    kbi_roof_put(&m.roofs, KBI_ROOF_COPY, 1e9, 1e9, 0), kbi_roof_put(&m.roofs, KBI_ROOF_READ, 1.2e9, 1.2e9, 0);
    kbi_roof_put(&m.roofs, KBI_ROOF_WRITE, 8e8, 8e8, 0), kbi_roof_put(&m.roofs, KBI_ROOF_F64, 1e9, 1e9, 0);
    kbi_roof_put(&m.roofs, KBI_ROOF_F32, 2e9, 2e9, 0), kbi_roof_put(&m.roofs, KBI_ROOF_TF32, 0, 0, 0);
    kbi_roof_put(&m.roofs, KBI_ROOF_F16, 4e9, 5e9, 0), kbi_roof_put(&m.roofs, KBI_ROOF_BF16, 4e9, 5e9, 0);
    kbi_roof_put(&m.roofs, KBI_ROOF_FP8, 0, 0, 0), kbi_roof_put(&m.roofs, KBI_ROOF_INT8, 0, 0, 0);
}

static void test_rates(void) {
    static const struct {
        double bytes, flops;
        int traffic, dtype, core, floor, status;
        const char *roof, *bound, *computes;
        double percent;
    } rows[] = {
        { 5e5, NAN, 0, KB_F32, 0, 0, KB_OK, "copy", "memory", NULL, 50 },
        { 5e5, NAN, KB_WRITE, KB_F32, 0, 0, KB_OK, "write", "memory", NULL, 62.5 },
        { 6e5, NAN, KB_READ, KB_F32, 0, 0, KB_OK, "read", "memory", NULL, 50 },
        { 1.01e5, NAN, 0, KB_F32, 0, 0, KB_OK, "copy", "memory", NULL, 10.1 },
        { 0.99e5, NAN, 0, KB_F32, 0, 0, KB_OK, "copy", "latency", NULL, 9.9 },
        { 5e5, NAN, 0, KB_F32, 0, 1, KB_OK, "copy", "latency", NULL, 50 },
        { NAN, 1e6, 0, KB_F32, 0, 0, KB_OK, "f32", "compute", "f32", 50 },
        { NAN, 5e5, 0, KB_F64, 0, 0, KB_OK, "f64", "compute", "f64", 50 },
        { 6e5, 1e6, 0, KB_F32, 0, 0, KB_OK, "copy", "memory", "f32", 60 },
        { 4e5, 1e6, 0, KB_F32, 0, 0, KB_OK, "f32", "compute", "f32", 50 },
        // with equal shares of the memory peak and of the arithmetic peak, memory is the bound
        { 5e5, 1e6, 0, KB_F32, 0, 0, KB_OK, "copy", "memory", "f32", 50 },
        { NAN, 2.09e6, 0, KB_F32, 0, 0, KB_OK, "f32", "compute", "f32", 104.5 },
        { NAN, 2.11e6, 0, KB_F32, 0, 0, KB_OK, "f16", "compute", "f16", 52.75 },
        { NAN, 1.04e6, 0, KB_F64, 0, 0, KB_OK, "f64", "compute", "f64", 104 },
        { NAN, 1.06e6, 0, KB_F64, 0, 0, KB_FAILED, NULL, NULL, NULL, NAN },
        { NAN, 5.49e6, 0, KB_F32, 0, 0, KB_OK, "f16", "compute", "f16", 137.25 },
        { NAN, 5.51e6, 0, KB_F32, 0, 0, KB_FAILED, NULL, NULL, NULL, NAN },
        { NAN, 1e6, 0, KB_I32, 0, 0, KB_OK, NULL, NULL, NULL, NAN },
        { NAN, NAN, 0, KB_F32, 0, 0, KB_OK, NULL, NULL, NULL, NAN },
        // If the declared traffic is unknown, the highest memory peak limits the rate. Written bytes that may
        // remain in L2 after the launch do not count as moved.
        { 1.2605e6, NAN, 0, KB_F32, 0, 0, KB_OK, "copy", "memory", NULL, 126.05 },
        { 1.2615e6, NAN, 0, KB_F32, 0, 0, KB_FAILED, NULL, NULL, NULL, NAN },
        { 1.0505e6, NAN, KB_COPY, KB_F32, 0, 0, KB_OK, "copy", "memory", NULL, 105.05 },
        { 1.0515e6, NAN, KB_COPY, KB_F32, 0, 0, KB_FAILED, NULL, NULL, NULL, NAN },
        { 1.2595e6, NAN, KB_READ, KB_F32, 0, 0, KB_OK, "read", "memory", NULL, 1259.5 / 12 },
        { 1.2605e6, NAN, KB_READ, KB_F32, 0, 0, KB_FAILED, NULL, NULL, NULL, NAN },
        { 0.8405e6, NAN, KB_WRITE, KB_F32, 0, 0, KB_OK, "write", "memory", NULL, 105.0625 },
        { 0.8415e6, NAN, KB_WRITE, KB_F32, 0, 0, KB_FAILED, NULL, NULL, NULL, NAN },
        // On one core of the host, data from caches may lift the rate above the memory peak. If the rate far
        // exceeds the memory peak, memory is not the bound.
        { 1.49e6, NAN, 0, KB_F32, 1, 0, KB_OK, "copy", "memory", NULL, 149 },
        { 1.51e6, NAN, 0, KB_F32, 1, 0, KB_OK, "copy", NULL, NULL, 151 },
        { NAN, 6e6, 0, KB_F16, 1, 0, KB_OK, "f32", "compute", "f32", 300 },
        { 1.6e6, 4e6, 0, KB_F32, 1, 0, KB_OK, "f32", "compute", "f32", 200 }
    };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        fresh("cold"), roofs();
        m.bytes = rows[i].bytes, m.flops = rows[i].flops, m.traffic = rows[i].traffic, m.dtype = rows[i].dtype;
        m.core = rows[i].core;
        kbi_flag_set(&r, KB_FLAG_FLOOR, rows[i].floor != 0);
        kbi_judge_rates(&r, &m, &machine);
        CHECK_THAT((int)r.status == rows[i].status && has(KB_FLAG_ABOVE_ROOF) == (rows[i].status == KB_FAILED),
                   "rates %d: status %d: %s", i, (int)r.status, said());
        CHECK_STR(r.roof, rows[i].roof), CHECK_STR(r.bound, rows[i].bound);
        CHECK_STR(r.compute_roof, rows[i].computes), CHECK_REAL(r.gpu_efficiency, rows[i].percent, 1e-9);
        CHECK_REAL(r.throughput_gbps, rows[i].bytes * 1e-6, 1e-12), CHECK_REAL(r.gflops, rows[i].flops * 1e-6, 1e-12);
    }
    // If the rate of a copy of the same size is known, the efficiency is relative to this rate instead of the
    // memory peak.
    fresh("cold"), roofs(), m.bytes = 0.96e6, m.reached = 1.2e9;
    kbi_judge_rates(&r, &m, &machine);
    CHECK_REAL(r.gpu_efficiency, 80, 1e-9), CHECK_STR(r.roof, "copy"), CHECK_STR(r.bound, "memory");
    fresh("cold"), roofs(), m.bytes = 1.2605e6, m.reached = 1.2605e9, m.traffic = KB_COPY;
    kbi_judge_rates(&r, &m, &machine);
    CHECK(has(KB_FLAG_ABOVE_ROOF));
    static const struct {
        const char* mode;
        double bytes;
        int status;
    } cached[] = { { "cold", 3.99e6, KB_OK }, { "cold", 4.01e6, KB_FAILED }, { "hot", 9e6, KB_OK } };
    for (int i = 0; i < KBI_COUNT(cached); i++) {
        fresh(cached[i].mode), roofs();
        m.bytes = cached[i].bytes, machine.l2 = 1000000;
        kbi_judge_rates(&r, &m, &machine);
        CHECK_INT(r.status, cached[i].status);
        if (r.status == KB_FAILED)
            CHECK_STR(said(), "4.010 GB/s by kb_bytes, where the machine reaches 1.200 (read)");
    }
    fresh("cold"), roofs(), m.flops = 6e6, m.dtype = KB_F16;
    kbi_judge_rates(&r, &m, &machine);
    CHECK_STR(said(), "6.000 GFLOP/s by kb_flops, where the machine reaches 5.000 (f16)");
    // the upper limit of an arithmetic peak is unknown: a rate far above the peak gets no efficiency
    static const struct {
        double bytes, flops, percent;
        const char* roof;
    } untold[] = { { NAN, 1e6, 50, "f32" },
                   { NAN, 2.09e6, 104.5, "f32" },
                   { NAN, 2.11e6, NAN, NULL },
                   { 4.9e5, 3e6, NAN, NULL },
                   { 5.1e5, 3e6, 51, "copy" } };
    for (int i = 0; i < KBI_COUNT(untold); i++) {
        fresh("cold"), roofs(), kbi_roof_put(&m.roofs, KBI_ROOF_F32, 2e9, KBI_UNTOLD, 0);
        m.bytes = untold[i].bytes, m.flops = untold[i].flops, m.dtype = KB_F32;
        kbi_judge_rates(&r, &m, &machine);
        CHECK_STR(r.roof, untold[i].roof), CHECK_REAL(r.gpu_efficiency, untold[i].percent, 1e-9);
    }
    fresh("wall"), m.items = 6, m.queries = 1;
    kbi_judge_rates(&r, &m, &machine);
    CHECK_REAL(r.items_per_second, 6000, 1e-12), CHECK_REAL(r.queries_per_second, 6000, 1e-12);
    m.queries = 0, r.queries_per_second = NAN;
    kbi_judge_rates(&r, &m, &machine);
    CHECK(isnan(r.queries_per_second) && r.inference_speed == 1000);
    fresh("cold"), r.time_ms = 0, m.items = 6;
    kbi_judge_rates(&r, &m, &machine);
    CHECK(isnan(r.inference_speed) && isnan(r.items_per_second));
}

static void test_words(void) {
    static const struct {
        const char* mode;
        int noisy;
        double waited, stolen;
        int64_t times;
        const char* says;
    } rows[] = { { "wall", 1, 0.9, 0.9, 5, "" },
                 { "wall", 1, 1, NAN, 5, "other programs used the processor for 1 % of the time (5 preemptions)" },
                 { "wall", 1, 2, NAN, KB_NONE, "other programs used the processor for 2 % of the time (0 preemptions)" },
                 { "wall", 1, NAN, 3, 5, "the hypervisor gave 3 % of the processors' time to other machines" },
                 { "wall", 1, 4, 1, 7,
                   "other programs used the processor for 4 % of the time (7 preemptions); the hypervisor gave 1 % of the "
                   "processors' time to other machines" },
                 { "wall", 0, 4, 4, 5, "" },
                 { "cold", 1, 4, 4, 5, "" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        fresh(rows[i].mode);
        kbi_flag_set(&r, KB_FLAG_NOISY, rows[i].noisy != 0);
        m.cpu_waited = rows[i].waited, m.cpu_stolen = rows[i].stolen, m.preemptions = rows[i].times;
        kbi_judge_noise(&r, &m);
        CHECK_STR(said(), rows[i].says);
    }
}

// --- what was counted ---

static union {
    kbi_inside in;
    char room[16384];
} seen;

static void count(const char* name, double value) {
    kbi_counter* c = kbi_counters_at(&seen.in) + seen.in.counters++;
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", name);
    c->value = value;
}
static void look(const char* mode) {
    fresh(mode);
    memset(&seen, 0, sizeof seen);
    machine.l2 = 100;
}

static void test_declared(void) {
    static const struct {
        const char* mode;
        double bytes, dram, l2;
        int flag;
        const char* says;
    } bytes[] = { { "cold", 440, 300, 0, 0, "" }, // DRAM moved 300, and L2 holds 100 more
                  { "cold", 441, 300, 0, 1, "kb_bytes declares 441 B, but DRAM moved 300 B" },
                  { "cold", 399, 300, NAN, 0, "" },
                  { "cold", 399, 300, 363, 0, "" },
                  { "cold", 399, 300, 362, 1, "kb_bytes declares 399 B, but L2 moved 362 B" },
                  { "cold", 400, 300, 1, 0, "" },
                  { "cold", 400, 439, 1, 0, "" },
                  { "cold", 400, 441, 1, 0, "DRAM moved 441 B, 1.10 times the bytes of kb_bytes" },
                  { "cold", 400, NAN, 364, 0, "" },
                  { "hot", 400, 1, 364, 0, "" },
                  { "hot", 400, 1, 363, 1, "kb_bytes declares 400 B, but L2 moved 363 B" },
                  { "hot", 400, 9000, 900, 0, "" },
                  { "cold", NAN, 300, 300, 0, "" },
                  { "cold", 0, 300, 300, 0, "" } };
    for (int i = 0; i < KBI_COUNT(bytes); i++) {
        look(bytes[i].mode), r.bytes = bytes[i].bytes;
        count("dram_bytes", bytes[i].dram), count("l2_bytes", bytes[i].l2);
        kbi_judge_declared_bytes(&r, &seen.in, &machine);
        CHECK_STR(said(), bytes[i].says), CHECK_INT(has(KB_FLAG_DECLARED_BYTES), bytes[i].flag);
    }
    static const struct {
        double flops, tensor;
        const char* dtype;
        int flag;
        const char* says;
    } flops[] = { { 225e6, 0, "f32", 0, "" }, // by the counters, 128 to 205 million operations were executed
                  { 226e6, 0, "f32", 1,
                    "kb_flops declares 226.0 million operations, but the instructions did at most 205.0 million" },
                  { 226e6, 0, NULL, 1,
                    "kb_flops declares 226.0 million operations, but the instructions did at most 205.0 million" },
                  { 117e6, 0, "f32", 0, "" },
                  { 116e6, 0, "f32", 0,
                    "the instructions did 128.0 million operations, 1.10 times the operations of kb_flops" },
                  { 226e6, 1, "f32", 0, "" },
                  { 226e6, 0, "i8", 0, "" },
                  { 226e6, 0, "u64", 0, "" },
                  { 226e6, 0, "bf16", 1,
                    "kb_flops declares 226.0 million operations, but the instructions did at most 205.0 million" },
                  { NAN, 0, "f32", 0, "" },
                  { 0, 0, "f32", 0, "" } };
    static const struct {
        const char* name;
        double millions;
    } done[] = { { "fp32_instructions", 100 },
                 { "ffma", 50 },
                 { "fp64_instructions", 10 },
                 { "dfma", 5 },
                 { "fp16_instructions", 2 },
                 { "fadd", 7 },
                 { "fmul", 8 },
                 { "dadd", 1 },
                 { "dmul", 2 },
                 { "xu_instructions", 1 } };
    for (int i = 0; i < KBI_COUNT(flops); i++) {
        look("cold"), r.flops = flops[i].flops, r.dtype = flops[i].dtype;
        for (int k = 0; k < KBI_COUNT(done); k++) count(done[k].name, done[k].millions * 1e6);
        count("tensor_instructions", flops[i].tensor);
        kbi_judge_declared_flops(&r, &seen.in);
        CHECK_STR(said(), flops[i].says), CHECK_INT(has(KB_FLAG_DECLARED_FLOPS), flops[i].flag);
    }
    static const struct {
        double flops, tensor, fp16, dram, l2;
        int n, status;
        double first, second;
    } levels[] = { { 128e6, 0, 0, 64e6, 32e6, 2, KB_OK, 2, 4 },   { 64e6, 0, 0, 64e6, 32e6, 2, KB_OK, 1, 2 },
                   { NAN, 0, 0, 64e6, 32e6, 2, KB_OK, 2, 4 },     { NAN, 1, 0, 64e6, 32e6, 0, KB_OK, 0, 0 },
                   { NAN, 1, 32, 64e6, 32e6, 2, KB_OK, 2, 4 },    { 64e6, 1, 0, 64e6, 0, 1, KB_OK, 1, 0 },
                   { 64e6, 0, 0, NAN, 32e6, 1, KB_OK, 2, 0 },     { 64e6, 0, 0, 64e6, 32e6, 0, KB_FAILED, 0, 0 },
                   { NAN, NAN, NAN, 64e6, 32e6, 2, KB_OK, 2, 4 }, { 0, 0, 0, 64e6, 32e6, 2, KB_OK, 2, 4 } };
    for (int i = 0; i < KBI_COUNT(levels); i++) {
        kbi_counter out[2];
        look("cold"), r.flops = levels[i].flops, r.status = (kb_status)levels[i].status;
        for (int k = 0; k < KBI_COUNT(done); k++)
            count(done[k].name, k == 4 ? levels[i].fp16 : done[k].millions * 1e6);
        count("tensor_instructions", levels[i].tensor);
        count("dram_bytes", levels[i].dram), count("l2_bytes", levels[i].l2);
        int n = kbi_judge_levels(&r, &seen.in, out);
        CHECK_THAT(n == levels[i].n, "levels %d: %d", i, n);
        if (n > 0) CHECK_REAL(out[0].value, levels[i].first, 1e-12), CHECK_STR(out[0].unit, "FLOP/B");
        if (n > 1) CHECK_REAL(out[1].value, levels[i].second, 1e-12), CHECK_STR(out[1].name, "intensity_l2");
        if (n == 1) CHECK_STR(out[0].name, levels[i].dram > 0 ? "intensity_dram" : "intensity_l2");
    }
}

static void test_counted(void) {
    look("cold"), r.time_ms = 2; // 3 ms were counted
    count("dram_pct", 30), count(KBI_RANGE_TIME, 3e6), count("sm_pct", 70), count("issue_pct", 20),
        count("l2_pct", 10);
    count("memory_pct", 40);
    kbi_judge_counted_time(&r, &seen.in);
    CHECK_INT(seen.in.counters, 5), CHECK(isnan(kbi_counted(&seen.in, KBI_RANGE_TIME)));
    CHECK_REAL(kbi_counted(&seen.in, "dram_pct"), 45, 1e-12), CHECK_REAL(kbi_counted(&seen.in, "sm_pct"), 100, 1e-12);
    CHECK_REAL(kbi_counted(&seen.in, "issue_pct"), 20, 0), CHECK_REAL(kbi_counted(&seen.in, "l2_pct"), 15, 1e-12);
    CHECK_REAL(kbi_counted(&seen.in, "memory_pct"), 60, 1e-12);
    look("cold"), r.time_ms = 4, count(KBI_RANGE_TIME, 3e6), count("dram_pct", 30);
    kbi_judge_counted_time(&r, &seen.in);
    CHECK_INT(seen.in.counters, 1), CHECK_REAL(kbi_counted(&seen.in, "dram_pct"), 30, 0);
    static const struct {
        const char* mode;
        double dram, l2, tensor, issue, sm, warps, efficiency;
        const char* roof;
        kb_flag flag; // a flag that the case has before the judgement
        const char *bound, *says;
    } rows[] = {
        { "cold", 60, 10, NAN, NAN, NAN, NAN, NAN, NULL, KB_FLAG_DRIFT, "memory",
          "bound by memory: DRAM 60 %, L2 10 %" },
        { "cold", 59, 10, NAN, NAN, NAN, NAN, NAN, NULL, KB_FLAG_DRIFT, "latency",
          "bound by latency: DRAM 59 %, L2 10 %: no unit is busy enough" },
        { "cold", 60, NAN, NAN, NAN, NAN, 50, NAN, NULL, KB_FLAG_DRIFT, NULL, "" },
        { "cold", 60, 61, NAN, NAN, NAN, NAN, NAN, NULL, KB_FLAG_DRIFT, "L2", "bound by L2: DRAM 60 %, L2 61 %" },
        { "cold", 60, 60, NAN, NAN, NAN, NAN, NAN, NULL, KB_FLAG_DRIFT, "memory",
          "bound by memory: DRAM 60 %, L2 60 %" },
        { "cold", 60, NAN, 70, 65, NAN, 33, NAN, NULL, KB_FLAG_DRIFT, "compute",
          "bound by compute: DRAM 60 %, tensor cores 70 %, issue slots 65 %, 33 % of the warps active" },
        { "cold", 5, NAN, NAN, NAN, 90, NAN, NAN, NULL, KB_FLAG_DRIFT, "compute",
          "bound by compute: DRAM 5 %, busiest pipe 90 %" },
        { "cold", 30, 10, NAN, NAN, NAN, NAN, 60, "copy", KB_FLAG_DRIFT, "memory",
          "bound by memory: DRAM 30 %, L2 10 %, copy roof 60 %" },
        { "cold", 30, 10, NAN, NAN, NAN, NAN, 59, "copy", KB_FLAG_DRIFT, "latency",
          "bound by latency: DRAM 30 %, L2 10 %: no unit is busy enough" },
        { "hot", 30, 10, NAN, NAN, NAN, NAN, 80, "read", KB_FLAG_DRIFT, "latency",
          "bound by latency: DRAM 30 %, L2 10 %: no unit is busy enough" },
        { "hot", 30, 10, NAN, NAN, NAN, NAN, 80, "f32", KB_FLAG_DRIFT, "compute",
          "bound by compute: DRAM 30 %, L2 10 %, f32 roof 80 %" },
        { "cold", 30, 10, NAN, NAN, NAN, NAN, 80, "f32", KB_FLAG_DECLARED_FLOPS, "latency",
          "bound by latency: DRAM 30 %, L2 10 %: no unit is busy enough" },
        { "cold", 30, 10, NAN, NAN, NAN, NAN, 80, "f32", KB_FLAG_DECLARED_BYTES, "latency",
          "bound by latency: DRAM 30 %, L2 10 %: no unit is busy enough" },
        { "cold", 70, 10, NAN, NAN, NAN, NAN, 90, "f32", KB_FLAG_DRIFT, "memory",
          "bound by memory: DRAM 70 %, L2 10 %" },
        { "cold", 30, 10, NAN, NAN, NAN, NAN, NAN, NULL, KB_FLAG_FLOOR, "launch",
          "bound by launch: DRAM 30 %, L2 10 %" },
        { "cold", 60, 10, NAN, NAN, NAN, NAN, NAN, NULL, KB_FLAG_FLOOR, "memory",
          "bound by memory: DRAM 60 %, L2 10 %" },
        { "cold", 30, 10, NAN, NAN, NAN, NAN, 80, "f32", KB_FLAG_FLOOR, "compute",
          "bound by compute: DRAM 30 %, L2 10 %, f32 roof 80 %" }
    };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        look(rows[i].mode), r.roof = rows[i].roof, r.gpu_efficiency = rows[i].efficiency;
        kbi_flag_set(&r, rows[i].flag, true);
        count("dram_pct", rows[i].dram), count("l2_pct", rows[i].l2), count("tensor_pct", rows[i].tensor);
        count("issue_pct", rows[i].issue), count("sm_pct", rows[i].sm), count("occupancy_pct", rows[i].warps);
        kbi_judge_bound(&r, &seen.in);
        CHECK_STR(r.bound, rows[i].bound), CHECK_STR(said(), rows[i].says);
    }
    static const struct {
        const char* mode;
        double gone;
        int cold;
    } evicted[] = { { "cold", 90, 1 }, { "cold", 89, 0 }, { "hot", 10, 1 }, { "cold", NAN, 1 } };
    for (int i = 0; i < KBI_COUNT(evicted); i++) {
        look(evicted[i].mode), count("evicted_pct", evicted[i].gone), r.samples = 5;
        kbi_judge_inside(&r, &seen.in, &machine);
        CHECK(has(KB_FLAG_NOT_COLD) == !evicted[i].cold && (r.status == KB_OK) == (evicted[i].cold != 0));
        CHECK(isnan(r.time_ms) == !evicted[i].cold && (r.samples == KB_NONE) == !evicted[i].cold);
        if (!evicted[i].cold) CHECK_HAS(said(), "only 89 % of a read of the size of L2 came from DRAM (counters)");
    }
    look("cold"), seen.in.energy_mj = 2, seen.in.idle_w = 70, r.flops = 6, r.bytes = 8;
    kbi_judge_inside(&r, &seen.in, &machine);
    CHECK_REAL(r.energy_mj, 2, 0), CHECK_REAL(r.idle_power_w, 70, 0), CHECK_REAL(r.flops_per_joule, 3000, 1e-12);
    CHECK_REAL(r.bytes_per_joule, 4000, 1e-12), CHECK(isnan(r.occupancy_achieved));
    look("cold"), seen.in.energy_mj = 2;
    kbi_judge_inside(&r, &seen.in, &machine);
    CHECK(r.energy_mj == 2 && isnan(r.idle_power_w) && isnan(r.flops_per_joule) && isnan(r.bytes_per_joule));
    look("cold"), seen.in.idle_w = 70, r.flops = 6, count("occupancy_pct", 44);
    kbi_judge_inside(&r, &seen.in, &machine);
    CHECK(isnan(r.energy_mj) && isnan(r.idle_power_w) && isnan(r.flops_per_joule) && r.occupancy_achieved == 44);
    static const double host[][3] = { { NAN, 5, 5 }, { 1, 5, 6 }, { 1, NAN, 6 }, { 1, NAN, NAN } };
    static const char* const says[] = { "", "5 % of the processor's issue slots waited for memory", "6 % of the processor",
                                        "is unknown" };
    for (int i = 0; i < 4; i++) {
        look("wall"), count("cycles", host[i][0]), count("memory_bound_pct", host[i][1]);
        count("backend_bound_pct", host[i][2]);
        kbi_judge_host_bound(&r, &seen.in);
        CHECK_HAS(said(), says[i]), CHECK((said()[0] != 0) == (i > 0));
    }
}

// --- several processes ---

static void test_processes(void) {
    static const struct {
        int processes;
        double ms[4];   // 0: the process has no record
        char status[5]; // o: ok, f: failed, s: skipped
        int stands;
    } rows[] = { { 1, { 5 }, "o", 0 },
                 { 3, { 3, 1, 2 }, "ooo", 2 },
                 { 4, { 4, 1, 3, 2 }, "oooo", 3 },
                 { 3, { 0, 2, 1 }, "ooo", 2 },
                 { 3, { 0, 0, 5 }, "ooo", -1 },
                 { 2, { 0, 5 }, "oo", -1 },
                 { 3, { 1, 2, 3 }, "ofs", 1 },
                 { 3, { 1, 2, 3 }, "sof", 2 },
                 { 3, { 1, 2, 3 }, "oso", 1 },
                 { 3, { 1, 2, 3 }, "ffo", 0 },
                 { 3, { 1, 2, 3 }, "oss", 1 },
                 { 2, { 2, 1 }, "oo", 1 },
                 { 4, { 2, 2, 2, 2 }, "oooo", 0 },
                 { 1, { 0 }, "o", -1 } };
    kb_result of[4], *each[4];
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        for (int p = 0; p < rows[i].processes; p++) {
            memset(&of[p], 0, sizeof of[p]);
            of[p].time_ms = rows[i].ms[p];
            of[p].status = rows[i].status[p] == 'f' ? KB_FAILED : rows[i].status[p] == 's' ? KB_SKIPPED : KB_OK;
            each[p] = rows[i].ms[p] > 0 ? &of[p] : NULL;
        }
        CHECK_THAT(kbi_judge_representative(each, rows[i].processes) == rows[i].stands, "processes %d: %d stands", i,
                   kbi_judge_representative(each, rows[i].processes));
    }
    const uint64_t drift = (uint64_t)1 << KB_FLAG_DRIFT, few = (uint64_t)1 << KB_FLAG_FEW,
                   noisy = (uint64_t)1 << KB_FLAG_NOISY, leak = (uint64_t)1 << KB_FLAG_LEAK;
    kbi_spread s = { 3, log(2), log(1.95), log(2.05), 0, 2, 0, 0 };
    for (int p = 0; p < 4; p++) {
        memset(&of[p], 0, sizeof of[p]);
        of[p].time_ms = 1 << p, of[p].wall_ms = 10 * (p + 1), of[p].verified = p != 1,
        of[p].max_error = p == 2 ? 0.5 : 0.1;
        of[p].flags = few | noisy | (p != 0 ? drift : 0) | (p < 2 ? leak : 0), each[p] = &of[p];
    }
    for (int n = 3; n <= 4; n++) {
        fresh("wall");
        r.time_ms = 4, r.verified = 1, r.max_error = 0.1, r.wall_ms = 7;
        r.inference_speed = 3, r.throughput_gbps = 5, r.gflops = 7, r.gpu_efficiency = 11, r.items_per_second = 13;
        r.queries_per_second = 17;
        kbi_judge_merge(&r, each, n, &m, &s);
        CHECK_INT(r.flags, drift | (n == 3 ? leak : 0));
        CHECK_REAL(r.time_ms, 2, 1e-12), CHECK_REAL(r.time_ms_ci_low, 1.95, 1e-12);
        CHECK_REAL(r.time_ms_ci_high, 2.05, 1e-12), CHECK_REAL(r.precision, 0.025, 1e-9);
        CHECK_REAL(r.wall_ms, n == 3 ? 60 : 100, 1e-12), CHECK_INT(r.verified, 0), CHECK_REAL(r.max_error, 0.5, 0);
        CHECK_REAL(r.inference_speed, 6, 1e-12), CHECK_REAL(r.throughput_gbps, 10, 1e-12);
        CHECK_REAL(r.gflops, 14, 1e-12), CHECK_REAL(r.gpu_efficiency, 22, 1e-12);
        CHECK_REAL(r.items_per_second, 26, 1e-12), CHECK_REAL(r.queries_per_second, 34, 1e-12);
        CHECK_INT(r.process_ms.n, n), CHECK_INT(r.processes, n), CHECK_REAL(r.process_ms.of[n - 1], 1 << (n - 1), 0);
    }
    fresh("wall"), each[1] = NULL, s.lo = log(1.85), s.hi = log(2.1);
    kbi_judge_merge(&r, each, 3, &m, &s);
    CHECK_INT(r.flags, noisy), CHECK_INT(r.process_ms.n, 2), CHECK_REAL(r.process_ms.of[1], 4, 0);
    CHECK_REAL(r.wall_ms, 40, 1e-12);
    fresh("wall"), kbi_judge_name_process(&r, 0, 5), CHECK_STR(said(), "process 1 of 5");
    // the name of a process is written before an existing message
    kbi_judge_name_process(&r, 4, 5), CHECK_STR(said(), "process 5 of 5: process 1 of 5");
}

// --- implementations ---

enum { RIVALS = 4, ROUNDS = 8, PROCESSES = 3 };
static struct {
    kb_result of[RIVALS];
    kbi_measured m[PROCESSES * RIVALS];
    double samples[PROCESSES * RIVALS][2 + 2 * ROUNDS];
    kbi_compared c;
} contest;

// Makes a comparison of implementations with the given times in ms, which are equal in all processes. The times of
// the rounds deviate from the given time by up to 0.4 %.
static void meet(int n, int processes, const double* ms) {
    memset(&contest, 0, sizeof contest);
    kbi_compared_open(&contest.c, contest.of, n, processes);
    for (int i = 0; i < n; i++) {
        kbi_result_clear(&contest.of[i]);
        KBENCH_FREE(contest.of[i].owned), contest.of[i].owned = NULL;
        contest.of[i].status = KB_OK, contest.of[i].time_ms = ms[i], contest.of[i].verified = 1;
        for (int p = 0; p < processes; p++) {
            int at = p * n + i;
            kbi_measured* one = &contest.m[at];
            kbi_measured_clear(one);
            one->status = KB_OK, one->n = 2, one->rounds = ROUNDS, one->samples = contest.samples[at];
            one->round_ns = one->samples + 2, one->control_ns = i ? NULL : one->round_ns + ROUNDS;
            one->arms = n, one->bias_ns = 0, one->stage = 1;
            contest.c.m[at] = one;
            for (int k = 0; k < 2 + 2 * ROUNDS; k++) {
                double near = 1 + 0.001 * ((k * 3 + i * 5 + p) % 5 - 2);
                contest.samples[at][k] = k < 2 ? NAN : ms[i] * 1e6 * near;
            }
        }
    }
}

static void judge_group(void) {
    kbi_pools pools;
    kbi_arena memory = KBI_BLANK;
    kbi_pools_open(&pools, &memory, RIVALS, contest.c.processes);
    kbi_compared_pool(&contest.c, &pools);
    kbi_pool_settle(&pools.ratios, 0), kbi_pool_settle(&pools.equals, 0);
    kbi_judge_group(&contest.c, &pools);
    kbi_arena_free(&memory);
}

static void test_rivals(void) {
    static const double three[] = { 2, 1, 8 };
    for (int processes = 1; processes <= PROCESSES; processes += 2) {
        meet(3, processes, three), judge_group();
        const kb_result* of = contest.of;
        CHECK_REAL(of[0].speedup, 1, 0.003), CHECK_REAL(of[1].speedup, 2, 0.003),
            CHECK_REAL(of[2].speedup, 0.25, 0.003);
        CHECK(of[1].verdict == KB_FASTER && of[2].verdict == KB_SLOWER && of[0].verdict == KB_NO_VERDICT);
        CHECK(of[1].speedup_low <= of[1].speedup && of[1].speedup <= of[1].speedup_high && of[1].speedup_low > 1.97);
        CHECK(of[2].speedup_high < 0.26 && of[1].noise_floor >= 0 && of[1].noise_floor < 0.02);
        CHECK(contest.c.fastest == 1 && (contest.of[0].winner_certain == 1));
        CHECK_STR(of[0].rating, "good"), CHECK_STR(of[1].rating, "excellent"), CHECK_STR(of[2].rating, "needs work");
    }
    // Ratios of two times form a pool if their shorter times are similar. The scatter of a ratio is estimated from
    // its pool. The pairs are: the baseline and its A/A control, the baseline and implementation 1, the baseline
    // and implementation 2, implementation 2 and the fastest.
    kbi_pools pools;
    kbi_arena memory = KBI_BLANK;
    kbi_pools_open(&pools, &memory, 3, PROCESSES);
    meet(3, PROCESSES, three), kbi_compared_pool(&contest.c, &pools), KBENCH_FREE(contest.c.m), KBENCH_FREE(contest.c.rows);
    CHECK_INT(pools.equals.rows, 1), CHECK_INT(pools.ratios.rows, 3);
    CHECK(pools.equals.ms[0] == 2 && pools.ratios.ms[0] == 1 && pools.ratios.ms[1] == 2 && pools.ratios.ms[2] == 1);
    kbi_arena_free(&memory);
    static const double rated[][RIVALS] = { { 1, 1.24, 1.26, 1.99 }, { 1, 2.01, 4.99, 5.01 } };
    static const char* const words[][RIVALS] = { { "excellent", "excellent", "good", "good" },
                                                 { "excellent", "fair", "fair", "needs work" } };
    for (int i = 0; i < 2; i++) {
        meet(4, 1, rated[i]), judge_group();
        for (int k = 0; k < RIVALS; k++) CHECK_STR(contest.of[k].rating, words[i][k]);
        CHECK_INT(contest.c.fastest, 0), CHECK((contest.of[0].winner_certain == 1));
    }
    meet(4, 1, rated[1]), contest.of[0].verified = -1, judge_group();
    CHECK_STR(contest.of[0].rating, NULL), CHECK_STR(contest.of[1].rating, "excellent");
    CHECK_STR(contest.of[2].rating, "fair"), CHECK_INT(contest.c.fastest, 0);
    // Each row is a condition that prevents a comparison or widens the noise floor.
    static const double two[] = { 1.02, 1 };
    for (int what = 0; what < 11; what++) {
        meet(2, 1, two);
        kbi_measured *base = &contest.m[0], *mine = &contest.m[1];
        if (what == 1) mine->stage = 0;
        if (what == 2) base->stage = 0;
        if (what == 3) base->core = mine->core = 1;
        if (what == 4) mine->contest = 5;
        if (what == 5) mine->rounds = ROUNDS - 1;
        if (what == 6) contest.of[0].status = KB_FAILED;
        if (what == 7) base->control_ns = NULL;
        if (what == 8) base->bias_ns = mine->bias_ns = 5e5;             // 0.5 ms, half of the time (1 ms)
        if (what > 8) base->bias_apart_ns = mine->bias_apart_ns = 7500; // sd of the sum: 1 % of 1 ms
        if (what == 10) mine->empty = 1;
        judge_group();
        const kb_result* of = &contest.of[1];
        bool met = what < 4 || what > 6;
        // Condition 7: the noise floor is unknown, because there is no A/A control. Condition 10: the launch
        // configurations differ, and the difference of their biases may be wrong by 2 %.
        bool unsure = !met || what == 1 || what == 2 || what == 7 || what == 10;
        kb_verdict want = what == 6 ? KB_NO_VERDICT : unsure ? KB_UNRESOLVED : KB_FASTER;
        CHECK_THAT(of->verdict == want, "condition %d: verdict %d", what, (int)of->verdict);
        CHECK_THAT((of->flags != 0) == (what == 1 || what == 2), "condition %d: flags %llx", what,
                   (unsigned long long)of->flags);
        CHECK_THAT(isnan(of->speedup_low) == !met, "condition %d: %g", what, of->speedup_low);
        if (what == 1 || what == 2) CHECK_REAL(of->noise_floor, 0.03, 1e-12);
        if (what == 3) CHECK_REAL(of->noise_floor, 0.01, 1e-12);
        if (what == 7) CHECK(isnan(of->noise_floor));
        CHECK_REAL(of->speedup, what == 8 ? 1.04 : 1.02, 0.005);
        CHECK_THAT((contest.of[0].winner_certain == 1) == (want == KB_FASTER), "condition %d: certain %d", what,
                   (contest.of[0].winner_certain == 1));
        CHECK_INT(contest.c.fastest, what == 6 ? -1 : 1);
    }
    // An implementation needs six rounds for a comparison.
    static const double same[] = { 1, 1.001 };
    meet(2, 1, same), judge_group();
    CHECK(contest.of[1].verdict == KB_EQUIVALENT && !(contest.of[0].winner_certain == 1) && contest.c.fastest == 0);
    // Two implementations launch different grids, so their biases may differ by an unknown error. This error must
    // widen the interval of the ratio.
    static const double unlike[] = { 0.002, 0.001 };
    for (int processes = 1; processes <= PROCESSES; processes += 2) {
        double low[2], high[2];
        for (int apart = 0; apart < 2; apart++) {
            meet(2, processes, unlike);
            for (int i = 0; i < 2 * processes; i++)
                contest.m[i].bias_apart_ns = 60, contest.m[i].empty = apart ? i % 2 : 1;
            judge_group();
            low[apart] = log(contest.of[1].speedup_low), high[apart] = log(contest.of[1].speedup_high);
        }
        const double ratio = log(contest.of[1].speedup), error = 1.959964 * 60;
        const double down = hypot(log(2000 / (2000 - error)), log((1000 + error) / 1000));
        const double up = hypot(log((2000 + error) / 2000), log(1000 / (1000 - error)));
        CHECK_REAL(ratio - low[1], hypot(ratio - low[0], down), 1e-6);
        CHECK_REAL(high[1] - ratio, hypot(high[0] - ratio, up), 1e-6);
        CHECK(contest.of[1].verdict == KB_FASTER && contest.of[1].noise_floor < 0.02);
    }
    // With an error of the bias of 20 ns, a time of 30 ns may truly be 13 ns. A pair of 13 and 30 ns must then not
    // be called different, but a pair of 13 and 60 ns must. If the error of the bias exceeds the time, the upper
    // limit of the ratio is 1000 times the measured ratio.
    static const struct {
        double ms[2], error_ns;
        kb_verdict verdict;
    } close_to_bias[] = { { { 13e-6, 30e-6 }, 20, KB_UNRESOLVED }, { { 13e-6, 60e-6 }, 20, KB_SLOWER },
                          { { 30e-6, 13e-6 }, 20, KB_UNRESOLVED }, { { 13e-6, 30e-6 }, 40, KB_UNRESOLVED } };
    for (int i = 0; i < 4; i++) {
        meet(2, 1, close_to_bias[i].ms);
        kbi_measured* uncertain = &contest.m[close_to_bias[i].ms[0] < close_to_bias[i].ms[1]];
        uncertain->empty = KBI_NO_SHAPE, uncertain->bias_apart_ns = close_to_bias[i].error_ns / 1.959964;
        judge_group();
        CHECK_THAT(contest.of[1].verdict == close_to_bias[i].verdict,
                   "row %d of close_to_bias: verdict %d, speedup %g to %g", i, (int)contest.of[1].verdict,
                   contest.of[1].speedup_low, contest.of[1].speedup_high);
        if (i == 3) CHECK_REAL(contest.of[1].speedup_high, 1000 * 13 / 30.0, 10);
    }
    for (int rounds = 5; rounds <= 6; rounds++) {
        meet(2, 1, two);
        for (int k = rounds; k < ROUNDS; k++) contest.samples[1][2 + k] = NAN;
        judge_group();
        CHECK_THAT(isnan(contest.of[1].speedup_low) == (rounds < 6), "%d rounds: %g", rounds,
                   contest.of[1].speedup_low);
        CHECK_INT(contest.of[1].verdict, rounds < 6 ? KB_UNRESOLVED : KB_FASTER);
    }
    meet(1, 1, two), judge_group();
    CHECK(isnan(contest.of[0].speedup) && !contest.of[0].rating && contest.c.fastest == -1);
}

// --- roofs ---

static void test_roofs(void) {
    fresh("cold"), roofs();
    static const struct {
        int dtype, said;
        double rate;
        int roof;
    } rows[] = { { KB_F64, 0, 1.04e9, KBI_ROOF_F64 },  { KB_F64, 0, 1.06e9, KBI_ABOVE_ALL },
                 { KB_F32, 0, 2.09e9, KBI_ROOF_F32 },  { KB_F32, 0, 2.11e9, KBI_ROOF_F16 },
                 { KB_F32, 1, 2.11e9, KBI_ABOVE_ALL }, { KB_F32, 0, 5.24e9, KBI_ROOF_F16 },
                 { KB_F32, 0, 5.49e9, KBI_ROOF_F16 },  { KB_F32, 0, 5.51e9, KBI_ABOVE_ALL },
                 { KB_TF32, 0, 1, KBI_NO_ROOF },       { KB_F16, 1, 5.2e9, KBI_ROOF_F16 },
                 { KB_BF16, 0, 5.2e9, KBI_ROOF_BF16 }, { KB_BF16, 0, 5.49e9, KBI_ROOF_BF16 },
                 { KB_E4M3, 0, 1e9, KBI_ROOF_F16 },    { KB_E4M3, 1, 1e9, KBI_NO_ROOF },
                 { KB_I8, 0, 1e9, KBI_ROOF_F16 },      { KB_I8, 1, 1e9, KBI_NO_ROOF },
                 { KB_U8, 0, 1e9, KBI_ROOF_F16 },      { KB_I16, 0, 1e9, KBI_NO_ROOF },
                 { KB_NODTYPE, 0, 1e9, KBI_ROOF_F32 }, { KB_NODTYPE, 0, 4e9, KBI_ROOF_F16 },
                 { KB_NODTYPE, 0, 6e9, KBI_ABOVE_ALL } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        int got = kbi_roof_over(&m.roofs, kbi_arithmetic_by((kb_dtype)rows[i].dtype, rows[i].said != 0), rows[i].rate);
        CHECK_THAT(got == rows[i].roof, "roofs %d: %d, not %d", i, got, rows[i].roof);
    }
    m.roofs.of[KBI_ROOF_TF32] = NAN;
    CHECK_INT(kbi_roof_over(&m.roofs, kbi_arithmetic_by(KB_F32, false), 9e9), KBI_ROOF_TF32);
    m.roofs.of[KBI_ROOF_TF32] = 1, m.roofs.most[KBI_ROOF_TF32] = KBI_UNTOLD;
    CHECK_INT(kbi_roof_over(&m.roofs, kbi_arithmetic_by(KB_F32, false), 9e9), KBI_ROOF_TF32);
    CHECK(kbi_roof_known(&m.roofs, KBI_ROOF_READ) == 1.2e9 && kbi_roof_known(&m.roofs, KBI_NO_ROOF) == 0);
    CHECK(kbi_roof_known(&m.roofs, KBI_ROOF_FP8) == 0 && kbi_roof_known(&m.roofs, KBI_ROOF_COPY) == 1e9);
    m.roofs.of[KBI_ROOF_COPY] = NAN, CHECK(kbi_roof_known(&m.roofs, KBI_ROOF_COPY) == 0);
    m.roofs.of[KBI_ROOF_COPY] = KBI_UNTOLD, CHECK(kbi_roof_known(&m.roofs, KBI_ROOF_COPY) == 0);
    CHECK(kbi_traffic_roof(0) == KBI_ROOF_COPY && kbi_traffic_roof(KB_READ) == KBI_ROOF_READ &&
          kbi_traffic_roof(KB_WRITE) == KBI_ROOF_WRITE && kbi_traffic_roof(KB_COPY) == KBI_ROOF_COPY);
    CHECK(kbi_roof_is_memory("copy") && kbi_roof_is_memory("read") && kbi_roof_is_memory("write") &&
          !kbi_roof_is_memory("f32") && !kbi_roof_is_memory(NULL));
    static const int core[][2] = { { KB_F64, KBI_ROOF_F64 }, { KB_F32, KBI_ROOF_F32 }, { KB_F16, KBI_ROOF_F32 },
                                   { KB_I8, KBI_NO_ROOF },   { KB_I64, KBI_NO_ROOF },  { KB_NODTYPE, KBI_ROOF_F32 } };
    for (int i = 0; i < KBI_COUNT(core); i++) { // a case on one core of the host
        m.core = 1, m.dtype = core[i][0], m.arithmetic = 0;
        CHECK_INT(kbi_arithmetic_of(&m).base, core[i][1]), CHECK_INT(kbi_arithmetic_of(&m).others, 0);
    }
    m.core = 0, m.dtype = KB_F32, m.arithmetic = KB_F64;
    CHECK_INT(kbi_arithmetic_of(&m).base, KBI_ROOF_F64);
    kbi_recipe r1;
    kbi_recipe_default(&r1), kbi_recipe_inside(&r1, 0), CHECK(r1.verify && r1.audit && !r1.inside);
    r1.fresh = true, kbi_recipe_inside(&r1, 2), CHECK(!r1.verify && !r1.fresh && r1.audit && r1.inside == 2);
    kbi_note(&m, "a%d", 1), kbi_note(&m, "b"), CHECK_STR(m.message, "a1; b");
    for (int i = 0; i < 400; i++) kbi_note(&m, "words");
    CHECK_INT(strlen(m.message), sizeof m.message - 1), CHECK_STR(m.message + sizeof m.message - 4, "...");
}

int main(void) {
    test_roofs();
    test_flags();
    test_times();
    test_rates();
    test_words();
    test_declared();
    test_counted();
    test_processes();
    test_rivals();
    kb_result_free(&r);
    return test_end();
}
