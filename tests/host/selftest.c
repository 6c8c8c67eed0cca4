// SPDX-License-Identifier: MIT OR Unlicense
// Tests that the kernels of the self-test work, that its deliberate slowdowns have the intended size, and that its
// thresholds are correct. With arguments, this program is a benchmark program.
#include "test.h"
#include <stdlib.h>
#include "kit.h"
#define KBENCH_SELFTEST_PART
#define KBI_BAR_ROUNDS "12" // the checks below accept thresholds that are missed
#include "examples/addons/selftest.cu"

static void test_bars(void) {
    // k is the smallest number that a binomial variable (n trials, 5 %) exceeds with a probability below 1 %. The
    // expected values were computed with exact fractions.
    static const int n[] = { 0, 1, 2, 10, 14, 50, 210 }, most[] = { 0, 1, 1, 3, 3, 7, 18 };
    for (int i = 0; i < KBI_COUNT(n); i++) CHECK_INT(kbi_binomial_most(n[i], 0.05), most[i]);
    // Measured in three processes: event times in ms, and the difference of CUPTI times minus event times in ms.
    static const struct {
        kbi_bar_case of;
        double want;
    } cases[] = {
        // the median difference of CUPTI times and event times is 0.1 us; the limit is 0.15 us
        { { { 0.010, 0.011, 0.009 }, { 1, 0.0001, -1 } }, 1e-4 / 0.15e-3 },
        { { { 0.010, 0.011, 0.009 }, { -0.0003, -0.0003, 0 } }, 2 }, // difference 0.3 us; limit 0.15 us
        { { { 1, 1.2, 0.9 }, { 0.015, 0.02, 0.01 } }, 1.5 },         // difference 1.5 %; limit 1 %
        { { { 1, 1.2, NAN }, { 0.015, 0.02, 0.01 } }, INFINITY },
        { { { 1, 1.2, 1 }, { 0.015, NAN, 0.01 } }, INFINITY },
    };
    for (int i = 0; i < KBI_COUNT(cases); i++) {
        kbi_bar_case c = cases[i].of;
        double error = kbi_bar_error(&c, 3);
        CHECK_THAT(error == cases[i].want || fabs(error - cases[i].want) < 1e-9, "%d: %g, not %g", i, error,
                   cases[i].want);
    }
}

// The indices of the gather kernel spread over the whole buffer and stay within the buffer.
static void test_gathered(void) {
    enum { N = 1000, SIZE = 4096 };
    static int times[SIZE];
    int most = 0, different = 0;
    for (int i = 0; i < N; i++) {
        uint32_t at = kbi_proof_index(1 + (float)i / N, SIZE);
        if (!CHECK(at < SIZE)) return;
        different += !times[at]++;
        most = KBI_MAX(most, times[at]);
    }
    CHECK_THAT(different > 800 && most < 10, "%d different indices; the most frequent index occurs %d times", different,
               most);
    CHECK_INT(kbi_proof_index(0.7f, 1), 0);
}

static double reach;
static kbi_judged judged(const char* implementation, int percent, double us, kb_verdict verdict, double noise,
                         bool gpu) {
    kbi_bars b;
    kbi_seen_result s;
    memset(&b, 0, sizeof b);
    memset(&s, 0, sizeof s);
    b.gpu = gpu;
    snprintf(s.implementation, sizeof s.implementation, "%s", implementation);
    s.ms = us * 1e-3, s.verdict = verdict, s.noise = noise, s.low = 0.98 - reach, s.high = 0.98 + reach;
    return kbi_rival_judge(&b, &s, percent);
}

static void test_judge(void) {
    CHECK_INT(judged("same_0", 0, 9, KB_NO_VERDICT, 0, true), KBI_UNJUDGED); // the baseline
    CHECK_INT(judged("same_1", 0, 9, KB_EQUIVALENT, 0, true), KBI_RIGHT);
    CHECK_INT(judged("same_1", 0, 9, KB_UNRESOLVED, 0, true), KBI_RIGHT);
    CHECK_INT(judged("same_1", 0, 9, KB_SLOWER, 0, true), KBI_WRONG);
    CHECK_INT(judged("same_1", 0, 9, KB_FASTER, 0, true), KBI_WRONG);
    CHECK_INT(judged("same_1", 0, (double)NAN, KB_NO_VERDICT, 0, true), KBI_LOST);
    CHECK_INT(judged("slower_2", 0, 9, KB_SLOWER, 0, true), KBI_UNJUDGED);
    CHECK_INT(judged("slower_2", 2, 9, KB_SLOWER, 0, true), KBI_RIGHT);
    CHECK_INT(judged("slower_2", 2, 9, KB_EQUIVALENT, 0.02, false), KBI_WRONG);
    CHECK_INT(judged("slower_2", 2, 9, KB_UNRESOLVED, 0.005, false), KBI_WRONG);
    CHECK_INT(judged("slower_2", 2, 9, KB_UNRESOLVED, 0.015, false), KBI_DROWNED);
    // on a GPU, noise does not excuse a missed threshold
    CHECK_INT(judged("slower_2", 2, 9, KB_UNRESOLVED, 0.015, true), KBI_WRONG);
    // The interval 0.98 +- 0.011 reaches above 0.99, so the slowdown may be less than 1 %. On a host, a result
    // that may be less than 1 % counts as noise, because code placement alone can change a time by 1 %.
    reach = 0.011;
    CHECK_INT(judged("slower_2", 2, 9, KB_UNRESOLVED, 0.01, false), KBI_DROWNED);
    CHECK_INT(judged("slower_2", 2, 9, KB_UNRESOLVED, 0.01, true), KBI_WRONG);
    CHECK_INT(judged("slower_5", 5, 9, KB_UNRESOLVED, 0.01, false), KBI_WRONG);
    CHECK_INT(judged("slower_2", 2, 9, KB_EQUIVALENT, 0.01, false), KBI_WRONG);
    reach = 0;
    CHECK_INT(judged("slower_2", 2, 4.9, KB_EQUIVALENT, 0, true), KBI_UNJUDGED);
    CHECK_INT(judged("slower_5", 5, 4.9, KB_EQUIVALENT, 0, true), KBI_WRONG);
    CHECK_INT(judged("slower_5", 5, 1.4, KB_EQUIVALENT, 0, true), KBI_UNJUDGED);
    CHECK_INT(judged("slower_5", 5, (double)NAN, KB_NO_VERDICT, 0, false), KBI_LOST);
}

static FILE* held;
static int kept;
static bool hold(void) {
    held = tmpfile(), kept = dup(1);
    if (!CHECK(held && kept >= 0)) return false;
    fflush(stdout), dup2(fileno(held), 1);
    return true;
}
static const char* caught(void) {
    static char got[1000];
    fflush(stdout), dup2(kept, 1), close(kept);
    rewind(held);
    got[fread(got, 1, sizeof got - 1, held)] = 0;
    fclose(held);
    return got;
}

static void test_sort(void) {
    static const struct {
        const char *implementation, *message;
        kb_verdict verdict;
    } rows[] = { { "same_0", "", KB_NO_VERDICT },       { "same_1", "", KB_EQUIVALENT },
                 { "slower_2", "", KB_SLOWER },         { "slower_2", "", KB_SLOWER },
                 { "slower_2", "", KB_EQUIVALENT },     { "slower_2", "", KB_FASTER },
                 { "slower_2", "", KB_SLOWER },         { "slower_5", "", KB_EQUIVALENT },
                 { "slower_2", "lost", KB_NO_VERDICT }, { "slower_2", "", KB_NO_VERDICT } };
    static const char want[] =
        "FAIL  2 % slower, cold               found 3 of 5 from 5 us; required: at least 3 (p < 0.01 for fewer if "
        "95 % are found); 2 more without a verdict\n"
        "      case 4                                   9.000 us, speedup 0.9900 [0.9800, 1.0000]\n"
        "      case 5                                   9.000 us, speedup 0.9900 [0.9800, 1.0000]\n"
        "      case 8                               lost\n"
        "      case 9                               the baseline has no time\n";
    kbi_seen_result seen[KBI_COUNT(rows)];
    kbi_bars b;
    memset(&b, 0, sizeof b);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        snprintf(seen[i].name, sizeof seen[i].name, "case %d", i);
        snprintf(seen[i].implementation, sizeof seen[i].implementation, "%s", rows[i].implementation);
        snprintf(seen[i].message, sizeof seen[i].message, "%s", rows[i].message);
        seen[i].ms = 0.009, seen[i].verdict = rows[i].verdict;
        seen[i].speedup = 0.99, seen[i].low = 0.98, seen[i].high = 1;
    }
    b.seen = seen, b.n = KBI_COUNT(rows), b.gpu = true;
    if (!hold()) return;
    kbi_bar_sort(&b, "cold", 2);
    CHECK_STR(caught(), want);
    CHECK_INT(b.failed, 1);
}

// The test "twice the work" ignores disturbed sizes, and fails if a size has no time.
static void test_steps(void) {
    enum { N = 6 };
    static const struct {
        double each[N]; // time of each size; the threshold ignores the first size
        int noisy;      // bit k: size k was disturbed
        const char* want;
    } rows[] = {
        { { 9, 1, 1, 1.05, 1, 1.1 },
          0,
          "pass  twice the work                 the time per iteration differs by 10.0 % over 5 sizes; required: "
          "at most 10 %; "
          "0 more without a time\n" },
        { { 9, 1, 1, 1.05, 1, 1.11 },
          0,
          "FAIL  twice the work                 the time per iteration differs by 11.0 % over 5 sizes; required: "
          "at most 10 %; "
          "0 more without a time\n" },
        { { 9, 1, 5, 1.05, 1, 0.2 },
          1 << 2 | 1 << 5,
          "pass  twice the work                 the time per iteration differs by 5.0 % over 3 sizes; required: "
          "at most 10 %; "
          "0 more without a time\n" },
        { { 9, 1, 1, 1, 1, 1 },
          1 << 1 | 1 << 2 | 1 << 3,
          "skip  twice the work                 3 of 5 sizes were hidden by noise, because other work disturbs this "
          "machine\n" },
        { { 9, 1, 1, 1, NAN, 1 },
          0,
          "FAIL  twice the work                 the time per iteration differs by 0.0 % over 4 sizes; required: "
          "at most 10 %; "
          "1 more without a time\n" },
    };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_seen_result seen[N];
        kbi_bars b;
        memset(&b, 0, sizeof b);
        memset(seen, 0, sizeof seen);
        b.seen = seen, b.n = N;
        for (int k = 0; k < N; k++) {
            snprintf(seen[k].name, sizeof seen[k].name, "spin/cycles=%d", 1000 << k);
            seen[k].least = rows[i].each[k] * (1000 << k);
            seen[k].flags = (uint64_t)(rows[i].noisy >> k & 1) << KB_FLAG_NOISY;
        }
        if (!hold()) return;
        kbi_bar_steps(&b, "twice the work");
        CHECK_STR(caught(), rows[i].want);
    }
}

static void test_kernels(void) {
    for (int k = 0; k < KBI_COUNT(kbi_proof_names); k++) {
        kb_state kb;
        kbi_proof p;
        int64_t total = 0;
        memset(&kb, 0, sizeof kb);
        kb.operation = kbi_proof_names[k] + 4, kb.implementation = "slower_5", kb.seed = 42;
        kbi_proof_open(&p, &kb, k == KBI_PRODUCT ? 48 : 8192);
        CHECK_INT(p.kernel, k);
        CHECK_REAL(p.percent, 5, 0);
        p.x = (float*)malloc(sizeof(float) * (size_t)p.in);
        p.y = calloc((size_t)p.out, sizeof(float));
        kbi_fill_host(p.x, 0, p.in, KB_F32, KB_NORMAL, 42, 0);
        kbi_proof_host(&p);
        for (int64_t i = 0; i < p.out; i++) {
            float got = ((float*)p.y)[i];
            if (k == KBI_HISTOGRAM)
                total += ((uint32_t*)p.y)[i];
            else
                CHECK_THAT(fabsf(got - kbi_proof_want(&kb, &p, i)) <= 1e-4f * (1 + fabsf(got)), "%s [%d]: %g, not %g",
                           kb.operation, (int)i, (double)got, (double)kbi_proof_want(&kb, &p, i));
        }
        if (k == KBI_HISTOGRAM) CHECK_INT(total, 8192);
        free(p.x), free(p.y);
    }
}

static void test_run(const char* self) {
    char command[600], line[400];
    int passed = 0, failed = 0, skipped = 0, mistakes = 0, end = 0;
    snprintf(command, sizeof command, "'%s' --selftest --fast 2>&1", self);
    FILE* f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        passed += strncmp(line, "pass  ", 6) == 0;
        // other programs may disturb the measurements, so some thresholds may fail
        failed += strncmp(line, "FAIL  ", 6) == 0;
        skipped += strncmp(line, "skip  ", 6) == 0;
        mistakes += strstr(line, "pass  planted mistakes               8 of 8") != NULL;
        if (strstr(line, "on the CPU, in ")) end = line[0];
    }
    int code = f ? pclose(f) : -1;
    CHECK_INT(mistakes, 1);
    CHECK_INT(passed + failed + skipped, 5);
    CHECK_INT(end, failed ? 'F' : 'p');
    CHECK_INT(WEXITSTATUS(code), failed ? 1 : 0);
}

int main(int argc, char** argv) {
    if (argc > 1) return kbi_selftest_register(), kb_main(argc, argv);
    test_bars();
    test_gathered();
    test_judge();
    test_sort();
    test_steps();
    test_kernels();
    test_run(argv[0]);
    return test_end();
}
