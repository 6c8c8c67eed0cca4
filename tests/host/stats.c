// SPDX-License-Identifier: MIT OR Unlicense
// Tests the statistics: against results of NumPy and SciPy (stats_expected.h), with samples that contain known
// effects, and by Monte Carlo simulation.
// a program of its own: this test replaces malloc, to count the allocations of kbench.
#include "test.h"
#include <stdint.h>
#include <stdlib.h>

static int allocations, live;
static void* test_realloc(void* p, size_t n) {
    allocations += !p;
    live += !p;
    return realloc(p, n);
}
static void test_free(void* p) {
    live -= p != NULL;
    free(p);
}
#define KBENCH_MALLOC(n) test_realloc(NULL, n)
#define KBENCH_REALLOC(p, n) test_realloc(p, n)
#define KBENCH_FREE(p) test_free(p)
#define KIT_WITHOUT_ADDONS
#include "kit.h"

typedef struct expected_rank {
    int64_t n;
    double alpha;
    int64_t k;
} expected_rank;
typedef struct expected_summary {
    int64_t n;
    double v[21];
} expected_summary;
typedef struct expected_student {
    double df, p, t;
} expected_student;
typedef struct expected_gamma {
    double x, digamma, trigamma;
} expected_gamma;
#include "stats_expected.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

// -- checks ------------------------------------------------------------------------------------------------

static const char* current = "";
#undef CHECK // CHECK is redefined, so that the message of a failure also names the part of this test
#define CHECK(c) test_check((c) ? 1 : 0, __FILE__, __LINE__, "%s [%s]", #c, current)
#define check(ok, what, line) test_check((ok) ? 1 : 0, __FILE__, (line), "%s [%s]", (what), current)

static int is_nan(double v) { // tests the bits of v, because -ffast-math would make isnan(v) always false
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (bits & (UINT64_MAX >> 1)) > (uint64_t)0x7FF << 52;
}
static int is_finite(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (bits & (UINT64_MAX >> 1)) < (uint64_t)0x7FF << 52;
}
static int close_to(double got, double want, double tolerance) {
    if (is_nan(want) || is_nan(got)) return is_nan(want) && is_nan(got);
    if (fabs(got - want) <= tolerance * (fabs(want) > 1e-300 ? fabs(want) : 1e-300)) return 1;
    printf("     got %.17g, want %.17g\n", got, want);
    return 0;
}
#define CLOSE(got, want, tol) check(close_to(got, want, tol), #got " ~ " #want, __LINE__)

// Random numbers from SplitMix64 (Steele, Lea and Flood 2014) and Box-Muller. The seed is fixed, so every
// run of this test is the same.
static uint64_t rng_state = 42;
static double uniform(void) {
    uint64_t z = rng_state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}
static void begin(const char* part) {
    current = part;
    rng_state = 42;
}
static double normal(void) { return sqrt(-2.0 * log(uniform())) * cos(6.283185307179586 * uniform()); }

static int compare_doubles(const void* a, const void* b) {
    const double u = *(const double*)a, v = *(const double*)b;
    return (u > v) - (u < v);
}

static int summary_is_sound(const kb_stats* s, int64_t n) {
    const double always[] = {
        s->median,        s->mean,           s->min, s->max, s->mad, s->p5, s->p25, s->p75, s->p95,
        s->outliers_mild, s->outliers_severe
    };
    for (int i = 0; i < COUNT(always); i++) {
        if (!is_finite(always[i])) return 0;
    }
    const double maybe[] = { s->std, s->cv, s->p99, s->ci_low, s->ci_high, s->precision, s->lag1, s->drift };
    for (int i = 0; i < COUNT(maybe); i++) {
        if (!is_finite(maybe[i]) && !is_nan(maybe[i])) return 0;
    }
    if (n >= 2 && is_nan(s->std)) return 0;
    if (n < 6 ? !is_nan(s->effective) : !(s->effective > 0 && s->effective <= (double)n)) return 0;
    if ((n >= 6) == is_nan(s->ci_low) || (n >= 300) == is_nan(s->p99)) return 0;
    if (n >= 6 && !(s->ci_low <= s->median && s->median <= s->ci_high)) return 0;
    return s->n == n && s->min <= s->p5 && s->p5 <= s->p25 && s->p25 <= s->median && s->median <= s->p75 &&
           s->p75 <= s->p95 && s->p95 <= s->max && s->min <= s->mean && s->mean <= s->max && s->distinct >= 1;
}

static int summary_is_none(const kb_stats* s, int64_t n) {
    const double all[] = { s->median, s->mean,      s->std,       s->min,           s->max,
                           s->mad,    s->cv,        s->p5,        s->p25,           s->p75,
                           s->p95,    s->p99,       s->ci_low,    s->ci_high,       s->drift,
                           s->lag1,   s->precision, s->effective, s->outliers_mild, s->outliers_severe };
    for (int i = 0; i < COUNT(all); i++) {
        if (!is_nan(all[i])) return 0;
    }
    return s->n == n && s->drift_significant == 0 && s->bimodal == 0 && s->distinct == 0;
}

// -- order -------------------------------------------------------------------------------------------------

static double shape(int kind, int64_t i, int64_t n) {
    switch (kind) {
    case 0: return normal();
    case 1: return (double)i;
    case 2: return (double)(n - i);
    case 3: return 7.0;
    case 4: return (double)(i < n / 2 ? i : n - i);
    case 5: return floor(4.0 * uniform());
    case 6: return (double)(i % 2 == 0 ? i : -i);
    default: return i % 17 == 0 ? 1e9 * uniform() : 1.0;
    }
}

static void test_order(void) {
    static double x[5000], want[5000], got[5000], scratch[5000];
    const int64_t sizes[] = { 0, 1, 2, 3, 4, 5, 23, 24, 25, 26, 31, 48, 49, 50, 97, 100, 257, 1000, 4999, 5000 };
    begin("order");
    for (int k = 0; k < 8; k++) {
        for (int s = 0; s < COUNT(sizes); s++) {
            const int64_t n = sizes[s];
            const size_t bytes = (size_t)n * sizeof(double);
            for (int64_t i = 0; i < n; i++) x[i] = shape(k, i, n);
            memcpy(want, x, bytes);
            qsort(want, (size_t)n, sizeof(double), compare_doubles);
            memcpy(got, x, bytes);
            kbi_sort(got, n);
            CHECK(memcmp(got, want, bytes) == 0);
            CHECK(close_to(kbi_median_of(x, n, scratch), kbi_median_sorted(want, n), 0.0));
            const int64_t at[] = { 0, n / 10, n / 2, n - 1 };
            for (int i = 0; i < 4 && n > 0; i++) {
                memcpy(got, x, bytes);
                CHECK(kbi_select(got, n, at[i]) == want[at[i]]);
            }
            const double centre = kbi_median_sorted(want, n);
            for (int64_t i = 0; i < n; i++) got[i] = fabs(x[i] - centre);
            qsort(got, (size_t)n, sizeof(double), compare_doubles);
            CHECK(close_to(kbi_mad_of(x, n, centre, scratch), kbi_median_sorted(got, n), 0.0));
        }
    }
    const double q[] = { 1, 2, 3, 4 };
    CHECK(kbi_quantile(q, 4, 0.0) == 1 && kbi_quantile(q, 4, 1.0) == 4 && kbi_quantile(q, 4, 0.5) == 2.5);
    CHECK(kbi_quantile(q, 1, 0.3) == 1);
}

// -- known answers -----------------------------------------------------------------------------------------

static void test_ranks(void) {
    begin("ranks");
    for (int i = 0; i < COUNT(EXPECTED_RANKS); i++) {
        const expected_rank* e = &EXPECTED_RANKS[i];
        const int64_t rank = kbi_sign_rank(e->n, e->alpha);
        if (rank != e->k)
            printf("     n %lld alpha %g: got %lld, want %lld\n", (long long)e->n, e->alpha, (long long)rank,
                   (long long)e->k);
        CHECK(rank == e->k);
    }
    CHECK(kbi_sign_rank(10, 0.05) == 2 && kbi_sign_rank(5, 0.05) == 0 && kbi_sign_rank(6, 0.05) == 1);
    CHECK(kbi_sign_rank(0, 0.05) == 0 && kbi_sign_rank(-3, 0.05) == 0);
    CHECK(kbi_sign_rank(100, 0.0) == 0 && kbi_sign_rank(100, 1.0) == 0);
    CHECK(kbi_sign_rank(100, -1.0) == 0 && kbi_sign_rank(100, NAN) == 0);
    CHECK(kbi_sign_rank(7, 0.999) == 3 && kbi_sign_rank(8, 0.999) == 4);
}

static void test_summaries(void) {
    const double* x = EXPECTED_SAMPLES;
    begin("summaries");
    for (int i = 0; i < COUNT(EXPECTED_SUMMARIES); i++) {
        const int64_t n = EXPECTED_SUMMARIES[i].n;
        const double* w = EXPECTED_SUMMARIES[i].v;
        const kb_stats s = kb_summarize(x, n);
        const double got[] = { s.median,
                               s.mean,
                               s.std,
                               s.min,
                               s.max,
                               s.mad,
                               s.cv,
                               s.p5,
                               s.p25,
                               s.p75,
                               s.p95,
                               s.p99,
                               s.ci_low,
                               s.ci_high,
                               s.precision,
                               s.outliers_mild,
                               s.outliers_severe,
                               s.lag1,
                               s.drift,
                               (double)s.distinct,
                               s.effective };
        for (int f = 0; f < 21; f++) {
            const double tolerance = f == 17 || f == 18 || f == 20 ? 1e-9 : 1e-12; // sums with cancellation
            CLOSE(got[f], w[f], tolerance);
        }
        CHECK(summary_is_sound(&s, n));
        CLOSE(kbi_precision_of(x, n), s.precision, 0.0);
        x += n;
    }
    CHECK(x == EXPECTED_SAMPLES + COUNT(EXPECTED_SAMPLES));
}

// -- planted behaviours ------------------------------------------------------------------------------------

static double sample[2000];

static void plant(int64_t n, double cv, double rho, double trend, double step, double quantum) {
    double state = normal();
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) state = rho * state + sqrt(1.0 - rho * rho) * normal();
        sample[i] =
            5600.0 * (1.0 + trend * (double)i / (double)n) * (2 * i >= n ? 1.0 + step : 1.0) * exp(cv * state);
        if (quantum > 0.0) sample[i] = quantum * floor(sample[i] / quantum + 0.5);
    }
}

static void test_constant(void) {
    begin("constant");
    for (int64_t n = 1; n <= 400; n = n < 12 ? n + 1 : n * 2) {
        // all samples are 0.1; their floating-point sum is inexact, but the mean must be 0.1
        for (int64_t i = 0; i < n; i++) sample[i] = 0.1;
        const kb_stats s = kb_summarize(sample, n);
        CHECK(summary_is_sound(&s, n) && s.median == 0.1 && s.mean == 0.1 && s.min == 0.1 && s.max == 0.1);
        CHECK(s.mad == 0 && s.distinct == 1 && s.bimodal == 0 && s.drift_significant == 0 && is_nan(s.lag1));
        CHECK(s.outliers_mild == 0 && s.outliers_severe == 0);
        CHECK(n < 2 ? is_nan(s.std) && is_nan(s.cv) : s.std == 0 && s.cv == 0);
        CHECK(n < 6 ? is_nan(s.precision) : s.precision == 0);
        CHECK(n < 30 ? is_nan(s.drift) : s.drift == 0);
    }
    memset(sample, 0, sizeof sample);
    const kb_stats zero = kb_summarize(sample, 100);
    CHECK(summary_is_sound(&zero, 100) && zero.cv == 0 && zero.precision == 0 && zero.drift == 0);
}

static void test_small(void) {
    begin("n from 0 to 12");
    const kb_stats none = kb_summarize(sample, 0), null = kb_summarize(NULL, 0), minus = kb_summarize(sample, -4);
    CHECK(summary_is_none(&none, 0) && summary_is_none(&null, 0) && summary_is_none(&minus, 0));
    const kb_stats lost = kb_summarize(NULL, 5);
    CHECK(summary_is_none(&lost, 5) && is_nan(kbi_precision_of(NULL, 5)) && is_nan(kbi_precision_of(sample, 0)));
    for (int64_t n = 1; n <= 12; n++) {
        for (int64_t i = 0; i < n; i++) sample[i] = (double)(1 + (5 * i) % 13);
        const kb_stats s = kb_summarize(sample, n);
        CHECK(summary_is_sound(&s, n) && is_nan(s.p99) && is_nan(s.drift) && !s.bimodal && !s.drift_significant);
        CHECK(s.distinct == n && is_nan(s.std) == (n < 2) && is_nan(s.lag1) == (n < 3) &&
              is_nan(s.ci_low) == (n < 6));
        if (n >= 6 && n <= 8) CHECK(s.ci_low == s.min && s.ci_high == s.max);
    }
}

static void test_not_finite(void) {
    const double bad[] = { NAN, INFINITY, -INFINITY, 1e151, -1e300, -NAN };
    begin("not finite");
    for (int b = 0; b < COUNT(bad); b++) {
        for (int64_t n = 1; n <= 100; n = n < 8 ? n + 1 : n + 31) {
            for (int64_t at = 0; at<n; at += n> 8 ? 13 : 1) {
                plant(n, 0.01, 0, 0, 0, 0);
                sample[at] = bad[b];
                const kb_stats s = kb_summarize(sample, n);
                CHECK(summary_is_none(&s, n) && is_nan(kbi_precision_of(sample, n)));
            }
        }
    }
    for (int64_t i = 0; i < 400; i++) sample[i] = (i % 3 ? 1e150 : -1e150) * (i % 7 ? 1.0 : 1e-300);
    kb_stats s = kb_summarize(sample, 400);
    CHECK(summary_is_sound(&s, 400));
    for (int64_t i = 0; i < 400; i++) sample[i] = (i % 3 ? 5e-324 : -5e-324) * (double)(i % 7);
    s = kb_summarize(sample, 400);
    CHECK(summary_is_sound(&s, 400));
    for (int64_t i = 0; i < 400; i++) sample[i] = i % 2 ? 1e150 : 5e-324;
    s = kb_summarize(sample, 399);
    CHECK(summary_is_sound(&s, 399) && is_nan(s.precision) && is_nan(s.drift) == (s.drift != 0));
}

static void test_modes(void) {
    begin("modes");
    for (int share = 5; share <= 95; share += 5) {
        plant(200, 0.004, 0, 0, 0, 0);
        for (int64_t i = 0; i < 200; i++) sample[i] *= (i * 7) % 20 < share / 5 ? 1.08 : 1.0;
        const kb_stats s = kb_summarize(sample, 200);
        CHECK(s.bimodal == (share >= 10 && share <= 90) && !s.drift_significant && summary_is_sound(&s, 200));
    }
    plant(100, 0.008, 0, 0, 0, 0);
    for (int64_t i = 0; i < 100; i += 2) sample[i] *= 1.08;
    sample[11] = 5600 * 1.034;
    sample[77] = 5600 * 1.048;
    sample[50] = 56000;
    CHECK(kb_summarize(sample, 100).bimodal);
    for (int64_t i = 0; i < 100; i++) sample[i] = i % 2 ? 1000 : 1320;
    CHECK(kb_summarize(sample, 100).bimodal);
    // samples with two values that differ by 5 % are bimodal only if the timer is known to resolve that difference
    for (int64_t i = 0; i < 100; i++) sample[i] = i % 2 ? 6400 : 6720;
    CHECK(!kb_summarize(sample, 100).bimodal && kbi_summarize(sample, 100, 32.0).bimodal);
    for (int64_t i = 0; i < 100; i++) sample[i] = 6400 + 32 * ((i * 7) % 3) + (i % 2 ? 640 : 0);
    // each mode has values 32 apart, from which kb_summarize infers that the clock's resolution is 32
    CHECK(kb_summarize(sample, 100).bimodal);
    for (int64_t i = 0; i < 100; i++) sample[i] = i % 2 ? 1000 : 1005;
    CHECK(!kbi_summarize(sample, 100, 0.01).bimodal);
}

static void test_quantised(void) {
    begin("quantised");
    for (int round = 0; round < 50; round++) {
        for (double cv = 0.0005; cv < 0.05; cv *= 2) {
            plant(120, cv, 0, 0, 0, 32.0);
            const kb_stats s = kb_summarize(sample, 120);
            CHECK(summary_is_sound(&s, 120) && !s.bimodal && s.outliers_severe <= 0.01);
            CHECK(cv < 0.01 ? s.distinct < 20 : s.distinct > 3);
        }
    }
    // the interquartile range is 0, but the next clock tick is not an outlier
    for (int64_t i = 0; i < 100; i++) sample[i] = i % 10 ? 1504 : 1536;
    kb_stats s = kb_summarize(sample, 100);
    CHECK(s.outliers_severe == 0 && s.outliers_mild == 0 && s.distinct == 2 && !s.bimodal);
    for (int64_t i = 0; i < 100; i++) sample[i] = i < 99 ? 1504 : 150400; // 100 times the median is an outlier
    s = kb_summarize(sample, 100);
    CHECK(s.outliers_severe == 0.01 && s.median == 1504 && s.mad == 0 && s.ci_low == 1504 && s.ci_high == 1504);
}

static void test_outlier(void) {
    begin("one huge outlier");
    plant(100, 0.01, 0, 0, 0, 0);
    const kb_stats before = kb_summarize(sample, 100);
    sample[37] = 1e9;
    const kb_stats s = kb_summarize(sample, 100);
    CHECK(summary_is_sound(&s, 100) && s.outliers_severe == 0.01 && s.max == 1e9 && !s.bimodal &&
          !s.drift_significant);
    CHECK(fabs(s.median / before.median - 1) < 0.002 && s.precision < 2 * before.precision + 0.002);
    CHECK(fabs(s.mad / before.mad - 1) < 0.2 && s.cv > 5 && fabs(s.drift - before.drift) < 0.005);
}

// Counts the significant orders of 10 different block medians, among all 3628800 permutations (Heap's algorithm).
static int significant_orders(void) {
    double a[10];
    int at[10] = { 0 }, found, i = 1;
    for (int k = 0; k < 10; k++) a[k] = k;
    found = kbi_order_significant(a);
    while (i < 10) {
        if (at[i] >= i) {
            at[i++] = 0;
            continue;
        }
        const int j = i % 2 ? at[i] : 0;
        const double v = a[j];
        a[j] = a[i];
        a[i] = v;
        found += kbi_order_significant(a);
        at[i]++;
        i = 1;
    }
    return found;
}

static void shares(int64_t n, double cv, double rho, double trend, double step, int* drifting, int* modes) {
    *drifting = *modes = 0;
    for (int i = 0; i < 1000; i++) {
        plant(n, cv, rho, trend, step, 0);
        const kb_stats s = kb_summarize(sample, n);
        *drifting += s.drift_significant;
        *modes += s.bimodal;
    }
}

static void test_drift(void) {
    int drifting, modes;
    begin("drift");
    CHECK(significant_orders() == 33508); // of 3,628,800: p = 0.0092
    plant(100, 0.0001, 0, 0.009, 0, 0);
    const kb_stats slight = kb_summarize(sample, 100);
    CHECK(slight.drift > 0.005 && !slight.drift_significant); // monotonic, but below 1 %
    plant(100, 0.0001, 0, 0.018, 0, 0);
    CHECK(kb_summarize(sample, 100).drift_significant);
    shares(100, 0.01, 0.0, 0.03, 0.0, &drifting, &modes);
    printf("drift 3 %%, n 100, cv 1 %%:      found %d of 1000\n", drifting);
    CHECK(drifting >= 700 && modes <= 10);
    shares(300, 0.01, 0.0, 0.03, 0.0, &drifting, &modes);
    CHECK(drifting >= 980 && modes <= 10);
    shares(100, 0.01, 0.0, 0.0, 0.02, &drifting, &modes);
    printf("step 2 %%, n 100, cv 1 %%:       found %d of 1000\n", drifting);
    CHECK(drifting >= 900);
    shares(100, 0.001, 0.0, 0.0, 0.02, &drifting, &modes);
    CHECK(drifting == 1000 && modes == 1000);
    plant(100, 0.01, 0.0, -0.03, 0.0, 0);
    CHECK(kb_summarize(sample, 100).drift < -0.01);
    for (int64_t n = 30; n <= 300; n += 90) {
        for (int r = 0; r <= 6; r += 3) {
            const double rho = 0.1 * r;
            shares(n, 0.05, rho, 0.0, 0.0, &drifting, &modes);
            printf("no drift, n %3d, rho %.1f:      found %d of 1000, modes %d\n", (int)n, rho, drifting, modes);
            CHECK(drifting <= (r < 6 ? 25 : n < 100 ? 70 : 40) && modes <= 10);
        }
    }
    shares(100, 0.5, 0.0, 0.0, 0.0, &drifting, &modes);
    CHECK(modes <= 10 && drifting <= 25);
    plant(400, 0.02, 0.6, 0, 0, 0);
    const double lag1 = kb_summarize(sample, 400).lag1;
    CHECK(lag1 > 0.45 && lag1 < 0.75);
}

static void test_memory(void) {
    begin("memory");
    plant(100, 0.01, 0, 0, 0, 0);
    allocations = live = 0;
    kb_summarize(sample, 100);
    CHECK(allocations == 1);
    kbi_precision_of(sample, 100);
    CHECK(allocations == 2);
    CHECK(live == 0);
}

// -- verdicts ----------------------------------------------------------------------------------------------

static void test_judge(void) {
    begin("judge");
    CHECK(kbi_judge_ratio(1.02, 1.05, 0.01, 0.0) == KB_FASTER);
    CHECK(kbi_judge_ratio(0.90, 0.97, 0.01, 0.0) == KB_SLOWER);
    CHECK(kbi_judge_ratio(0.995, 1.005, 0.01, 0.0) == KB_EQUIVALENT);
    CHECK(kbi_judge_ratio(1.002, 1.006, 0.01, 0.0) == KB_EQUIVALENT);
    CHECK(kbi_judge_ratio(0.994, 0.998, 0.01, 0.0) == KB_EQUIVALENT);
    CHECK(kbi_judge_ratio(1.002, 1.006, 0.0, 0.0) == KB_FASTER);
    CHECK(kbi_judge_ratio(0.98, 1.03, 0.01, 0.0) == KB_UNRESOLVED);
    CHECK(kbi_judge_ratio(1.004, 1.02, 0.01, 0.005) == KB_UNRESOLVED);
    CHECK(kbi_judge_ratio(1.006, 1.02, 0.01, 0.005) == KB_FASTER);
    CHECK(kbi_judge_ratio(0.98, 0.9949, 0.01, 0.005) == KB_SLOWER);
    CHECK(kbi_judge_ratio(0.98, 0.9960, 0.01, 0.005) == KB_UNRESOLVED);
    CHECK(kbi_judge_ratio(1.0, 1.0, 0.01, NAN) == KB_EQUIVALENT && kbi_judge_ratio(1.0, 1.0, 0, 0) == KB_UNRESOLVED);
    CHECK(kbi_judge_ratio(1 / 1.01, 1.01, 0.01, 0) == KB_EQUIVALENT);
    CHECK(kbi_judge_ratio(1.02, 1.03, NAN, NAN) == KB_FASTER && kbi_judge_ratio(1.02, 1.03, -1, -1) == KB_FASTER);
    CHECK(kbi_judge_ratio(NAN, NAN, 0.01, 0) == KB_UNRESOLVED &&
          kbi_judge_ratio(1.1, INFINITY, 0, 0) == KB_UNRESOLVED);
    CHECK(kbi_judge_ratio(0.0, 1.0, 0.01, 0) == KB_NO_VERDICT && kbi_judge_ratio(2, 1, 0.01, 0) == KB_NO_VERDICT);
    CHECK(fabs(kbi_noise_floor(0.996, 1.003) - (1 / 0.996 - 1)) < 1e-15);
    CHECK(fabs(kbi_noise_floor(0.999, 1.003) - 0.003) < 1e-15 && is_nan(kbi_noise_floor(NAN, NAN)));
    CHECK(is_nan(kbi_noise_floor(0.9, INFINITY)) && is_nan(kbi_noise_floor(NAN, 2)) &&
          is_nan(kbi_noise_floor(1, NAN)));
    CHECK(kbi_noise_floor(1.0, 1.0) == 0 && is_nan(kbi_noise_floor(-1, 2)) && is_finite(kbi_noise_floor(5e-324, 1)));
}

// -- processes ---------------------------------------------------------------------------------------------

static void test_distributions(void) {
    begin("distributions");
    for (int i = 0; i < COUNT(EXPECTED_STUDENTS); i++) {
        const expected_student* e = &EXPECTED_STUDENTS[i];
        const double tolerance = fabs(e->p - 0.5) < 0.01 ? 1e-7 : 1e-8;
        CLOSE(kbi_student_quantile(e->p, e->df), e->t, tolerance);
    }
    CLOSE(kbi_student_quantile(0.975, 1e300), 1.959963984540054, 2e-7);
    CLOSE(kbi_student_quantile(0.975, INFINITY), 1.959963984540054, 2e-7);
    CHECK(is_nan(kbi_student_quantile(0, 5)) && is_nan(kbi_student_quantile(1, 5)));
    CHECK(is_nan(kbi_student_quantile(NAN, 5)) && is_nan(kbi_student_quantile(0.975, 0)) &&
          is_nan(kbi_student_quantile(0.975, -3)) && is_nan(kbi_student_quantile(0.975, NAN)));
    for (int i = 0; i < COUNT(EXPECTED_GAMMAS); i++) {
        CLOSE(kbi_digamma(EXPECTED_GAMMAS[i].x), EXPECTED_GAMMAS[i].digamma, 1e-9);
        CLOSE(kbi_trigamma(EXPECTED_GAMMAS[i].x), EXPECTED_GAMMAS[i].trigamma, 1e-9);
    }
}

static void test_spread(void) {
    const double time[] = { 1, 1, 1, 1e9 };
    kbi_spread s[4];
    begin("spread");
    const double alone[] = { 1, 2, 3, 4, 5 }; // t(0.975; 4) = 2.776445, sd = 1.581139
    kbi_spread_of(alone, 5, 1, time, 0.0, s);
    CHECK(s[0].n == 5 && s[0].mean == 3 && s[0].df == 4);
    CLOSE(s[0].hi - 3, 2.7764451051978 * sqrt(2.5 / 5), 1e-9);
    CLOSE(3 - s[0].lo, 2.7764451051978 * sqrt(2.5 / 5), 1e-9);
    kbi_spread_of(alone, 5, 1, time, 1.0, s);
    CLOSE(s[0].hi - 3, 2.7764451051978 * sqrt(2.5 * 1.2), 1e-9);
    // by chance, case 1 scatters a tenth as much as case 0; pooling raises the scatter of case 1, but does not
    // lower that of case 0
    const double four[] = { 0, 1, 2, 5.0, 5.1, 5.2, 7, 8, 9, 0, 0.001, 0.002 };
    kbi_spread_of(four, 3, 4, time, 0.0, s);
    CHECK(s[0].sd == 1 && s[0].df > 2 && s[0].df < 4 && s[2].df > 2);
    CHECK(s[1].sd > 0.1 + 1e-3 && s[1].sd < 1 && s[1].df > 2 && s[1].df < 4);
    CHECK(close_to(s[3].sd, 0.001, 1e-9) && s[3].df == 2);
    kbi_spread_of(four, 3, 3, time, 0.0, s);
    // pooling narrows the interval: it is narrower than a t interval from the case's own 3 processes
    CHECK(s[0].hi - s[0].mean < 4.302653 * sqrt(1.0 / 3));
    const double gaps[] = { 1, NAN, 3, 7, NAN, NAN, NAN, INFINITY, NAN, 2, 2, 2 };
    kbi_spread_of(gaps, 3, 4, time, 0.0, s);
    CHECK(s[0].n == 2 && s[0].mean == 2 && is_finite(s[0].lo) && s[0].lo < 1 && s[0].hi > 3);
    CHECK(s[1].n == 1 && s[1].mean == 7 && is_nan(s[1].lo) && is_nan(s[1].hi));
    CHECK(s[2].n == 0 && is_nan(s[2].mean) && is_nan(s[2].lo));
    CHECK(s[3].n == 3 && s[3].lo == 2 && s[3].hi == 2);
    // cases of unknown duration are pooled as if all had the same duration
    const double unknown[] = { NAN, 0, -1 };
    kbi_spread_of(four, 3, 3, unknown, 0.0, s);
    CHECK(s[1].sd > 0.1 + 1e-3);
    kbi_spread_of(four, 3, 0, time, 0.0, s);
}

static void test_add(void) {
    double lo = 9, hi = 12;
    begin("interval and error");
    kbi_interval_add(10, 4 / 1.959963984540054, &lo, &hi);
    CLOSE(lo, 10 - sqrt(1 + 16.0), 1e-12);
    CLOSE(hi, 10 + sqrt(4 + 16.0), 1e-12);
    kbi_interval_add(10, 0, &lo, &hi);
    CLOSE(hi, 10 + sqrt(4 + 16.0), 1e-12);
    kbi_interval_add(10, NAN, &lo, &hi);
    CHECK(is_nan(lo) && is_nan(hi));
    lo = hi = NAN;
    kbi_interval_add(10, 1, &lo, &hi);
    CHECK(is_nan(lo) && is_nan(hi));
}

// -- Monte-Carlo -------------------------------------------------------------------------------------------

static double coverage(int64_t n, double rho, double sigma, int runs) {
    int held = 0;
    for (int r = 0; r < runs; r++) {
        double state = normal();
        for (int64_t i = 0; i < n; i++) {
            if (i > 0) state = rho * state + sqrt(1.0 - rho * rho) * normal();
            sample[i] = exp(sigma * state);
        }
        const kb_stats s = kb_summarize(sample, n);
        held += s.ci_low <= 1.0 && 1.0 <= s.ci_high;
    }
    const double percent = 100.0 * held / runs;
    printf("coverage, n %4d, rho %.1f, sigma %.2f: %.1f %%\n", (int)n, rho, sigma, percent);
    return percent;
}
static void covered(double percent, const char* what, int line) {
    check(percent >= 93.0 && percent <= 99.5, what, line);
}
#define COVERED(v) covered((v), #v, __LINE__)

static void test_coverage(void) {
    begin("coverage");
    COVERED(coverage(7, 0.0, 0.5, 4000));
    COVERED(coverage(20, 0.0, 0.5, 4000));
    COVERED(coverage(30, 0.0, 0.5, 4000));
    COVERED(coverage(43, 0.0, 0.5, 4000));
    COVERED(coverage(100, 0.0, 0.5, 4000));
    COVERED(coverage(100, 0.0, 0.01, 4000));
    COVERED(coverage(1000, 0.0, 0.5, 1000));
    COVERED(coverage(100, 0.6, 0.5, 4000));
    COVERED(coverage(200, 0.6, 0.5, 2000));
    COVERED(coverage(1000, 0.6, 0.5, 1000));
    COVERED(coverage(30, 0.6, 0.5, 4000));
}

// Returns the percentage of comparisons whose interval excludes 1. Two implementations are compared, and the first
// is slower by `gain`. Each round measures the two implementations in random order. The simulated times have noise
// of 1 %, outliers, and, depending on the arguments, a drift, a sudden change or autocorrelated noise.
static double called_different(int rounds, double gain, double trend, double step, double rho, int runs) {
    static double ratios[512];
    int called = 0;
    for (int r = 0; r < runs; r++) {
        double state = normal(), arm[2], m, lo, hi;
        for (int i = 0; i < rounds; i++) {
            const int first = uniform() < 0.5;
            for (int slot = 0; slot < 2; slot++) {
                const double at = (2.0 * i + slot) / (2.0 * rounds);
                state = rho * state + sqrt(1.0 - rho * rho) * normal();
                const double tail = uniform() < 0.02 ? 0.05 * uniform() : 0.0;
                const double machine =
                    0.01 * state + tail + log(1.0 + trend * at) + (at >= 0.5 ? log(1.0 + step) : 0.0);
                arm[slot ^ first] = machine + (slot == first ? log(1.0 + gain) : 0.0);
            }
            ratios[i] = arm[0] - arm[1];
        }
        kbi_paired(ratios, rounds, 0.05, &m, &lo, &hi);
        called += lo > 0.0 || hi < 0.0;
    }
    const double percent = 100.0 * called / runs;
    printf("paired, %3d rounds, gain %.1f %%, drift %.0f %%, step %.0f %%, rho %.1f: different %.1f %%\n", rounds,
           100 * gain, 100 * trend, 100 * step, rho, percent);
    return percent;
}

static void test_paired(void) {
    const double five[] = { 1, 2, 3, 4, 5 }, six[] = { 6, 1, 2, 3, 5, 4 };
    double m, lo, hi;
    begin("paired");
    CHECK(!kbi_paired(five, 5, 0.05, &m, &lo, &hi) && m == 3 && is_nan(lo) && is_nan(hi));
    CHECK(kbi_paired(six, 6, 0.05, &m, &lo, &hi) && m == 3.5 && lo == 1 && hi == 6);
    CHECK(!kbi_paired(six, 0, 0.05, &m, &lo, &hi) && is_nan(m));
    CHECK(called_different(64, 0.0, 0.0, 0.0, 0.0, 4000) <= 5.0);
    CHECK(called_different(64, 0.0, 0.03, 0.0, 0.0, 4000) <= 5.0);
    CHECK(called_different(64, 0.0, 0.0, 0.02, 0.0, 4000) <= 5.0);
    CHECK(called_different(64, 0.0, 0.0, 0.0, 0.6, 4000) <= 5.0);
    CHECK(called_different(100, 0.0, 0.03, 0.02, 0.6, 4000) <= 5.0);
    CHECK(called_different(64, 0.01, 0.0, 0.02, 0.0, 1000) >= 95.0);
    CHECK(called_different(64, 0.02, 0.03, 0.0, 0.0, 1000) >= 99.0);
}

// -- the parts, at their bounds ----------------------------------------------------------------------------

static void test_parts(void) {
    begin("parts");
    const double ratios[][3] = { { 0, 0, 0 },         { 0, 2, 0 },          { 1, 0, NAN },         { 6, -3, -2 },
                                 { 1e150, 1, 1e150 }, { 1.01e150, 1, NAN }, { -1.01e150, 1, NAN }, { 1, 2, 0.5 } };
    for (int i = 0; i < COUNT(ratios); i++) CLOSE(kbi_ratio(ratios[i][0], ratios[i][1]), ratios[i][2], 0);
    CHECK(kbi_usable(1e150) && kbi_usable(-1e150) && !kbi_usable(nextafter(1e150, INFINITY)) && kbi_usable(-0.0));
    CHECK(kbi_half_width(1, 3, 2) == 0.5 && kbi_half_width(1, 3, -2) == 0.5 && kbi_half_width(3, 3, 0) == 0);
    CHECK(is_nan(kbi_half_width(NAN, 3, 2)) && is_nan(kbi_half_width(1, INFINITY, 2)) &&
          is_nan(kbi_half_width(1, 3, 0)));
    CLOSE(kbi_inflation(0.5, 100), 1.53 / 0.47, 1e-12);
    CLOSE(kbi_inflation(0.99, 10), 199, 1e-12);
    CLOSE(kbi_inflation(0, 100), 1.01 / 0.99, 1e-12);
    CHECK(kbi_inflation(-0.5, 100) == 1 && kbi_inflation(-0.02, 100) == 1 && kbi_inflation(-0.005, 100) > 1);
    for (int64_t n = 10; n <= 137; n++) { // the blocks have nearly equal size and no gaps between them
        int64_t before = 0;
        for (int b = 0; b < KBI_STATS_BLOCKS; b++) {
            const int64_t end = kbi_block_end(b, n);
            CHECK(end - before == n / 10 || end - before == n / 10 + 1);
            before = end;
        }
        CHECK(before == n);
    }
    double trim[] = { 5, 1, 100, 2, 3 };
    CLOSE(kbi_trimmed(trim, 5, 1), 10.0 / 3, 1e-12);
    CLOSE(kbi_trimmed(trim, 5, 0), 22.2, 1e-12);
    CHECK(kbi_trimmed(trim, 5, 2) == 3);
    const double steps[] = { 1, 1, 2, 4, 4, 5 };
    int64_t distinct;
    CHECK(kbi_step_of(steps, 6, 10, &distinct) == 1 && distinct == 4);
    CHECK(kbi_step_of(steps, 6, -10, &distinct) == 1 && kbi_step_of(steps, 6, 9.9, &distinct) == 0 && distinct == 4);
    CHECK(kbi_step_of(steps, 2, 10, &distinct) == 0 && distinct == 1);
    CHECK(kbi_step_of(steps, 0, 10, &distinct) == 0 && distinct == 0);
    // an interquartile range below the clock's resolution is replaced by the resolution
    kb_stats s = kbi_stats_none(10);
    const double far[] = { -20.1, -20, -5.1, -5, 0, 35, 35.1, 50, 50.1, 60 };
    s.p25 = 10, s.p75 = 20;
    kbi_outliers(far, 0, &s), CHECK(s.outliers_mild == 0.4 && s.outliers_severe == 0.3);
    kbi_outliers(far, 10, &s), CHECK(s.outliers_mild == 0.4 && s.outliers_severe == 0.3);
    kbi_outliers(far, 11.9, &s), CHECK(s.outliers_mild == 0.4 && s.outliers_severe == 0.1); // fences at 37.85 and 55.7
    kbi_outliers(far, 40, &s), CHECK(s.outliers_mild == 0 && s.outliers_severe == 0);
    // Samples have two modes if each mode holds at least a tenth of the samples. The gap between two modes is at
    // least 5 MAD, 5 times the resolution and 1 % of the median. At most 2 % of the samples lie in the gap.
    double x[200], scratch[200];
    const struct {
        int n, low, between;
        double gap, scatter, median, step;
        int modes;
    } rows[] = { { 30, 3, 0, 0.1, 0, 1, 0, 1 },        { 30, 2, 0, 0.1, 0, 1, 0, 0 },
                 { 29, 10, 0, 0.1, 0, 1, 0, 0 },       { 30, 27, 0, 0.1, 0, 1, 0, 1 },
                 { 30, 28, 0, 0.1, 0, 1, 0, 0 },       { 30, 15, 0, 0.1, 0, 1, 0.0199, 1 },
                 { 30, 15, 0, 0.1, 0, 1, 0.0201, 0 },  { 30, 15, 0, 0.1, 0, 9.9, 0, 1 },
                 { 30, 15, 0, 0.1, 0, 10.1, 0, 0 },    { 100, 10, 0, 0.1, 0, 1, 0, 1 },
                 { 100, 7, 0, 0.1, 0, 1, 0, 0 },       { 100, 50, 2, 0.1, 0, 1, 0, 1 },
                 { 100, 50, 3, 0.1, 0, 1, 0.0151, 0 }, { 100, 50, 2, 0.1, 0, 1, 0.0151, 1 },
                 { 40, 20, 0, 0.1, 0.019, 1, 0, 1 },   { 40, 20, 0, 0.1, 0.021, 1, 0, 0 },
                 { 100, 90, 0, 0.1, 0, -1, 0, 1 },     { 100, 93, 0, 0.1, 0, 1, 0, 0 } };
    for (int i = 0; i < COUNT(rows); i++) {
        const int low = rows[i].low, in = rows[i].between, n = rows[i].n;
        for (int k = 0; k < n; k++) {
            const int at = k - low - in;
            x[k] = k < low ? 1 : at < 0 ? 1 + rows[i].gap * (k - low + 1) / (in + 1) : 1 + rows[i].gap;
            if (at >= 0)
                x[k] += rows[i].scatter * (at < (n - low - in) / 3 ? 0 : at < 2 * (n - low - in) / 3 ? 1 : 2);
        }
        if (kbi_bimodal(x, n, rows[i].median, rows[i].step, scratch) != rows[i].modes) printf("     row %d\n", i);
        CHECK(kbi_bimodal(x, n, rows[i].median, rows[i].step, scratch) == rows[i].modes);
    }
}

static void test_pooled(void) {
    enum { CASES = 7, PROCESSES = 4 };
    double values[CASES * PROCESSES], times[CASES];
    kbi_spread own[CASES], s[CASES], alone;
    begin("pooled");
    const double octaves[][2] = {
        { 0, 1 }, { 1, 0.6065306597126334 }, { -1, 0.6065306597126334 }, { 5, 0 }, { -5, 0 }
    };
    for (int i = 0; i < COUNT(octaves); i++) CLOSE(kbi_spread_weight(octaves[i][0]), octaves[i][1], 1e-12);
    CHECK(kbi_spread_weight(4.99) > 0);
    const double three[] = { 1, NAN, 2, 6 };
    kbi_spread_own(three, 4, 8, &alone);
    CHECK(alone.n == 3 && alone.mean == 3 && alone.df == 2 && alone.octaves == 3);
    CLOSE(alone.sd, sqrt(7.0), 1e-12);
    CLOSE(alone.log_variance, log(7.0) - kbi_digamma(1), 1e-12); // and log 1
    kbi_spread_own(three, 2, -1, &alone);
    CHECK(alone.n == 1 && alone.mean == 1 && alone.df == 0 && is_nan(alone.sd) && is_nan(alone.log_variance) &&
          alone.octaves == 0);
    kbi_spread_own(three + 1, 1, 8, &alone), CHECK(alone.n == 0 && is_nan(alone.mean));
    const kbi_spread known = { 4, 0, 0, 0, 2, 3, 0, 0 }, one = { 1, 0, 0, 0, 2, 3, 0, 0 };
    CLOSE(kbi_spread_reach(&known, 0.05, 0), 3.182446305284263, 1e-8);
    CLOSE(kbi_spread_reach(&known, 0.05, 0.75), 2 * 3.182446305284263, 1e-8);
    CLOSE(kbi_spread_reach(&known, 0.1, 0), 2.353363434801824, 1e-8);
    CHECK(is_nan(kbi_spread_reach(&one, 0.05, 0)));
    // a case of exactly equal times does not change the scatter of other cases
    kbi_spread agreed[5], without[4];
    for (int c = 0; c < 4; c++) {
        const double some[3] = { 0, 0.01 * (1 + c * c), -0.02 };
        kbi_spread_own(some, 3, 8, &without[c]);
    }
    for (int at = 0; at < 5; at++) {
        const double same[3] = { 1, 1, 1 };
        kbi_spread_own(same, 3, 8, &agreed[at]);
        for (int c = 0; c < 4; c++) agreed[c + (c >= at)] = without[c];
        CHECK_REAL(kbi_spread_prior(agreed, 5), kbi_spread_prior(without, 4), 0);
    }
    for (int turn = 0; turn < 40; turn++) {
        for (int c = 0; c < CASES; c++) {
            times[c] = pow(2, 3 * uniform()) * (c == 6 && turn % 2 ? 1e9 : 1);
            const double sd = 0.01 * exp(turn % 4 * 0.5 * normal());
            for (int p = 0; p < PROCESSES; p++)
                values[c * PROCESSES + p] = turn % 3 == 0 && p == 1 && c % 3 == 1 ? NAN : sd * normal();
            kbi_spread_own(values + c * PROCESSES, PROCESSES, times[c], &own[c]);
        }
        double excess = 0, weights = 0;
        for (int c = 0; c < CASES; c++)
            for (int k = 0; k < c; k++) {
                const double w = kbi_spread_weight(own[c].octaves - own[k].octaves);
                const double apart = own[c].log_variance - own[k].log_variance;
                excess += w * (apart * apart - kbi_trigamma(own[c].df / 2) - kbi_trigamma(own[k].df / 2)) / 2,
                    weights += w;
            }
        const double d0 = kbi_spread_prior(own, CASES);
        if (excess / weights > 1e-5 && excess / weights < 100)
            CLOSE(kbi_trigamma(d0 / 2), excess / weights, 1e-6);
        else
            CHECK(d0 > 1e5);
        kbi_spread_of(values, PROCESSES, CASES, times, 0.5, s);
        for (int c = 0; c < CASES; c++) {
            double others = 0, logs = 0, sum = 0;
            const double d = own[c].df;
            for (int k = 0; k < CASES; k++) {
                const double w = k == c ? 0 : kbi_spread_weight(own[c].octaves - own[k].octaves);
                others += w * own[k].df, logs += w * own[k].log_variance, sum += w;
            }
            const double p = others > 0 ? 1 / (1 / fmin(d0, d) + 1 / others) : 0;
            const double prior = others > 0 ? exp(logs / sum + kbi_digamma(d0 / 2) - log(d0 / 2)) : 0;
            CLOSE(s[c].df, d + p, 1e-9);
            CLOSE(s[c].sd, fmax(own[c].sd, sqrt((d * own[c].sd * own[c].sd + p * prior) / (d + p))), 1e-9);
            CLOSE(s[c].hi - s[c].mean, kbi_student_quantile(0.975, d + p) * s[c].sd * sqrt(1.0 / own[c].n + 0.5),
                  1e-9);
        }
    }
}

int main(void) {
    test_parts();
    test_pooled();
    test_order();
    test_ranks();
    test_summaries();
    test_constant();
    test_small();
    test_not_finite();
    test_modes();
    test_quantised();
    test_outlier();
    test_drift();
    test_memory();
    test_judge();
    test_distributions();
    test_spread();
    test_add();
    test_coverage();
    test_paired();
    return test_end();
}
