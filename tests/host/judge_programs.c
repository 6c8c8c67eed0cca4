// SPDX-License-Identifier: MIT OR Unlicense
// Tests how kbench judges samples whose times a script returns. Every scripted behaviour must get its flag and no
// other flag, every implausible time must be withheld, and speedups and ratings must follow from the times.
// Without arguments this program is the test; the test runs the program again with arguments, as benchmarks with
// scripted times.
#include "test.h"
#include "json.h"
#include <stdlib.h>
#include "guarded.h"
#include "kit.h"

static double noise(int64_t i) { // -1 to 1, reproducible: SplitMix64
    uint64_t z = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) / 4503599627370496.0 - 1;
}

// returns the time in ns of sample i of a case; the name of the operation selects how the times behave
static double script(const char* name, int64_t i, uint64_t* flags) {
#define IS(op) (strncmp(name, op "/", strlen(op) + 1) == 0)
    double steady = 10000 * (1 + 0.002 * noise(i));
    if (IS("steady")) return steady;
    if (IS("drifts")) return steady * (1 + 0.001 * (double)i);
    if (IS("shrinks")) return steady * (1 - 0.004 * (double)i);
    if (IS("wears_off")) return steady * (1 - 0.0012 * (double)i);
    // the time halves at sample 60, as if another program had ended
    if (IS("falls_once")) return steady * (i < 60 ? 2 : 1);
    if (IS("steps")) return steady * (i < 60 ? 1 : 1.02);
    if (IS("bimodal")) return steady * (noise(7 * i + 3) < 0.2 ? 1 : 1.2);
    if (IS("outliers")) return 10000 * (1 + 0.1 * noise(i)) * (i * 3 % 13 < 3 ? 3 : 1);
    // slow samples move the mean by 8 %, but not the median
    if (IS("stragglers")) return steady * (i % 13 == 4 ? 2 : 1);
    // one slow launch in about 100, because each sample is the mean of eight launches
    if (IS("rare_disaster")) return steady * (i % 12 == 5 ? 51 : 1);
    if (IS("slow_tail")) return steady * (i % 10 == 5 ? 2.5 : 1);
    if (IS("quantised")) return 1000 + 32 * (double)(i * 7 % 3);
    if (IS("wanders")) return steady * (1 + 0.02 * sin((double)i / 10));
    if (IS("noisy")) return 10000 * (1 + 0.2 * noise(i));
    // half of the samples take 7000 ns and half 10000 ns, so the median may be either of these times
    if (IS("halves")) return noise(3 * i) < 0 ? 7000 : 10000;
    if (IS("constant")) return 10000;
    if (IS("nan")) return i == 20 ? (double)NAN : steady;
    if (IS("infinite")) return i == 20 ? (double)INFINITY : steady;
    if (IS("negative")) return -steady;
    if (IS("nothing")) return i % 10 == 0 ? 20 : 0;
    // the difference of two readings is negative if the subtracted reading was disturbed
    if (IS("dips")) return i == 20 ? -100 : steady;
    if (IS("pace")) return strstr(name, "impl=slow") ? 500 * steady : steady;
    if (IS("apart") || IS("beside"))
        return steady * (strstr(name, "impl=little") ? 1.02 : strstr(name, "impl=more") ? 1.05 : 1);
    if (IS("throttled")) *flags = (uint64_t)1 << KB_FLAG_THROTTLED;
    if (IS("faulty") && i == 25) *flags = (uint64_t)1 << KB_FLAG_CUDA_ERROR;
    if (IS("contest"))
        return steady * (strstr(name, "impl=half")        ? 0.5
                         : strstr(name, "impl=triple")    ? 3
                         : strstr(name, "impl=tenfold")   ? 10
                         : strstr(name, "impl=unchecked") ? 0.01
                                                          : 1);
    return steady;
}

// clang-format off
#define BODY(...) { KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); } __VA_ARGS__; kb_check_that(kb, true, 0, 0, "fine"); }
#define UNCHECKED { KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); } }
#define STAGED { KB_ALLOC(kb, float, 4); BODY() }
#define WRONG { KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); } kb_check_that(kb, false, 1, 0, "wrong"); }
KBENCH(steady) BODY(kb_bytes(kb, 5e6), kb_flops(kb, 2e4))
KBENCH(drifts) BODY()
KBENCH(shrinks) BODY()
KBENCH(wears_off) BODY()
KBENCH(falls_once) BODY()
KBENCH(steps) BODY()
KBENCH(bimodal) BODY()
KBENCH(outliers) BODY()
KBENCH(stragglers) BODY()
KBENCH(rare_disaster) BODY()
KBENCH(slow_tail) BODY()
KBENCH(quantised) BODY()
KBENCH(wanders) BODY()
KBENCH(noisy) BODY()
KBENCH(halves) BODY()
KBENCH(constant) BODY()
KBENCH(nan) BODY()
KBENCH(infinite) BODY()
KBENCH(negative) BODY()
KBENCH(nothing) BODY()
KBENCH(dips) BODY()
KBENCH(throttled) BODY()
KBENCH(faulty) BODY()
KBENCH(below_roof) BODY(kb_bytes(kb, 1e7))
KBENCH(above_roof) BODY(kb_bytes(kb, 2e7))
// data smaller than four times L2 may come from the cache, so a rate above the peak is possible
KBENCH(above_in_cache) BODY(kb_bytes(kb, 2e6))
KBENCH(queries) BODY(kb_queries(kb, 100))
KBENCH(items) BODY(kb_items(kb, 100))
KBENCH_IMPL(contest, one) STAGED
KBENCH_IMPL(contest, half) STAGED
KBENCH_IMPL(contest, triple) STAGED
KBENCH_IMPL(contest, tenfold) STAGED
KBENCH_IMPL(contest, twin) STAGED
KBENCH_IMPL(contest, unchecked) { KB_ALLOC(kb, float, 4); UNCHECKED }
KBENCH_IMPL(contest, wrong) WRONG
KBENCH_IMPL(too_fast_first, above) BODY(kb_bytes(kb, 2e7))
KBENCH_IMPL(too_fast_first, right) BODY()
KBENCH_IMPL(beside, one) STAGED
KBENCH_IMPL(beside, little) STAGED
KBENCH_IMPL(beside, more) STAGED
KBENCH_IMPL(apart, one) BODY()
KBENCH_IMPL(apart, twin) BODY()
KBENCH_IMPL(apart, little) STAGED // uses a shared buffer; the baseline uses none
KBENCH_IMPL(apart, more) BODY()
KBENCH_IMPL(wrong_first, wrong) WRONG
KBENCH_IMPL(wrong_first, right) BODY()
KBENCH_IMPL(pace, quick) BODY()
KBENCH_IMPL(pace, slow) {
    static int runs;
    KB_TIME(kb) if (!runs++) usleep(3000); // the duration of the first run determines the samples per slot
    kb_check_that(kb, true, 0, 0, "fine");
}
#define FILLED(kind, ...) { \
    float *x = KB_ALLOC(kb, float, 1000), *y = KB_ALLOC(kb, float, 1000); \
    kb_fill(kb, x, 1000, kind); \
    __VA_ARGS__ \
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(y); } \
    kb_check_that(kb, true, 0, 0, "fine"); \
}
KBENCH(zeros) FILLED(KB_ZERO)
KBENCH(numbers) FILLED(KB_NORMAL)
KBENCH(zeros_and_numbers) FILLED(KB_ZERO, kb_fill(kb, y, 1000, KB_NORMAL);)
KBENCH(zeros_and_own) FILLED(KB_ZERO, for (int i = 0; i < 1000; i++) y[i] = (float)i;)
KBENCH(zeros_and_output) FILLED(KB_ZERO, memset(y, 0, 4000);)
KBENCH(zeroed_counter) {
    int* n = KB_ALLOC(kb, int, 1);
    kb_fill(kb, n, 1, KB_ZERO);
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(n); }
    kb_check_that(kb, true, 0, 0, "fine");
}

#define MANY 70 // more implementations than one comparison holds
static void many_body(kb_state* kb) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
    kb_check_that(kb, true, 0, 0, "fine");
}
// clang-format on
static void add_many(void) {
    static kb_entry entries[MANY];
    static char names[MANY][16];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "i%d", i);
        entries[i].operation = "many";
        entries[i].implementation = names[i];
        entries[i].body = many_body;
        kb_add(&entries[i]);
    }
}

static const char* self;
static json_file file;

static const char* get(int record, const char* key) {
    const char* value = json_get(&file, record, key);
    return value ? value : "(no such record or key)";
}

static int run(const char* arguments) {
    char command[1000];
    const char* path = "build/test/host/judge.json";
    json_free(&file);
    remove(path);
    snprintf(command, sizeof command,
             "'%s' --device script --no-progress --quiet --json %s %s > build/test/host/judge.out 2>&1", self, path,
             arguments);
    int rc = system(command);
    file = json_read(path, 0);
    CHECK_STR(file.error, "");
    return rc;
}
static int record(const char* operation, const char* implementation) {
    for (int i = 0; i < file.n; ++i) {
        char op[100], impl[100];
        snprintf(op, sizeof op, "\"%s\"", operation);
        snprintf(impl, sizeof impl, "\"%s\"", implementation);
        if (strcmp(get(i, "operation"), op) == 0 && strcmp(get(i, "implementation"), impl) == 0) return i;
    }
    CHECK_THAT(0, "no record of %s, %s", operation, implementation);
    return 0;
}
static double number(int i, const char* key) {
    const char* s = get(i, key);
    return strchr("-0123456789", s[0]) ? strtod(s, NULL) : (double)NAN;
}
#define OF(op) record(op, "default")
#define CHECK_FLAGS(i, want) CHECK_STR(get(i, "flags"), want)

static void test_flags(void) {
    run("--iters 200");
    CHECK_FLAGS(OF("steady"), "[]");
    CHECK_FLAGS(OF("noisy"), "[]");
    CHECK_HAS(get(OF("halves"), "flags"), "\"NOISY\"");
    CHECK_FLAGS(OF("drifts"), "[\"DRIFT\", \"NOISY\"]");
    CHECK_FLAGS(OF("shrinks"), "[\"WORK_CHANGED\"]");
    CHECK_STR(get(OF("shrinks"), "time_ms"), "null");
    CHECK_HAS(get(OF("shrinks"), "message"), "the first samples took");
    CHECK_FLAGS(OF("wears_off"), "[\"DRIFT\", \"NOISY\"]");
    CHECK(!strstr(get(OF("falls_once"), "flags"), "WORK_CHANGED"));
    CHECK(strcmp(get(OF("steps"), "flags"), "[]") != 0); // flagged as BIMODAL or as DRIFT
    CHECK_FLAGS(OF("bimodal"), "[\"BIMODAL\"]");
    CHECK_FLAGS(OF("outliers"), "[\"OUTLIERS\"]");
    CHECK_FLAGS(OF("stragglers"), "[]");
    CHECK_FLAGS(OF("slow_tail"), "[\"OUTLIERS\"]");
    // the median ignores the slow samples, so the message names the mean and the median
    CHECK_FLAGS(OF("rare_disaster"), "[\"OUTLIERS\"]");
    CHECK_REAL(number(OF("rare_disaster"), "time_ms"), 0.01, 1e-3);
    CHECK_HAS(get(OF("rare_disaster"), "message"), "the mean is 52.5");
    CHECK_HAS(get(OF("rare_disaster"), "message"), "the median 10.0");
    CHECK_FLAGS(OF("quantised"), "[\"QUANTISED\"]");
    CHECK_HAS(get(OF("wanders"), "flags"), "AUTOCORR");
    CHECK_FLAGS(OF("throttled"), "[\"THROTTLED\"]");
    CHECK(!strstr(get(OF("constant"), "flags"), "BIMODAL"));
    CHECK_INT(number(OF("steady"), "samples"), 200);
    CHECK_REAL(number(OF("steady"), "time_ms"), 0.01, 1e-3);
    CHECK_STR(get(OF("steady"), "cache"), "\"cold\"");
    CHECK_STR(get(OF("steady"), "backend"), "\"script\"");
    CHECK(number(OF("noisy"), "time_ms_ci_high") - number(OF("noisy"), "time_ms_ci_low") >
          number(OF("steady"), "time_ms_ci_high") - number(OF("steady"), "time_ms_ci_low"));
    run("--iters 5 --op steady");
    CHECK_HAS(get(OF("steady"), "flags"), "FEW");
    CHECK_STR(get(OF("steady"), "time_ms_ci_low"), "null");
}

static void test_cold(void) {
    static const double shares[] = { 0.95, 0.4, NAN, 0 }; // share of L2 that the eviction emptied, as measured
    static const char* const modes[] = { "cold", "cold", "cold", "hot" };
    for (int i = 0; i < 4; i++) {
        kb_result r;
        kbi_measured m;
        kbi_machine machine;
        kbi_result_clear(&r);
        kbi_measured_clear(&m);
        kbi_machine_clear(&machine, "cuda");
        machine.cold = shares[i];
        snprintf(m.cache, sizeof m.cache, "%s", modes[i]);
        kbi_judge_cold(&r, &m, &machine);
        CHECK_INT(r.flags >> KB_FLAG_NOT_COLD & 1, i == 1);
        CHECK_INT(r.status, i == 1 ? KB_FAILED : KB_OK);
        CHECK_THAT((r.message && strstr(r.message, "not proven cold")) == (i == 2), "%d: %s", i,
                   r.message ? r.message : "");
        kb_result_free(&r);
        kbi_result_clear(&r);
        kbi_machine_clear(&machine, "script");
        kbi_judge_cold(&r, &m, &machine);
        CHECK(!r.message), CHECK_INT(r.status, KB_OK);
        kb_result_free(&r);
    }
}

static void test_rates(void) {
    int i;
    run("--iters 200");
    i = OF("steady");
    double ms = number(i, "time_ms");
    CHECK_REAL(number(i, "inference_speed"), 1000 / ms, 1e-12);
    CHECK_REAL(number(i, "throughput_gbps"), 5e6 / ms / 1e6, 1e-12);
    CHECK_REAL(number(i, "gflops"), 2e4 / ms / 1e6, 1e-12);
    CHECK_REAL(number(i, "gpu_efficiency"), 50, 1e-3);
    CHECK_REAL(number(OF("below_roof"), "gpu_efficiency"), 100, 1e-3);
    CHECK_STR(get(OF("below_roof"), "status"), "\"ok\"");
    i = OF("queries");
    CHECK_REAL(number(i, "queries_per_second"), 100 / (number(i, "time_ms") / 1000), 1e-12);
    CHECK_STR(get(i, "throughput_gbps"), "null");
    CHECK_STR(get(i, "gpu_efficiency"), "null");
    CHECK_REAL(number(i, "items_per_second"), number(i, "queries_per_second"), 1e-12);
    i = OF("items");
    CHECK_STR(get(i, "queries_per_second"), "null");
    CHECK_REAL(number(i, "items_per_second"), 100 / (number(i, "time_ms") / 1000), 1e-12);
    CHECK_STR(get(OF("steady"), "items_per_second"), "null");
}

// kernels run faster on zeros than on other data
static void test_constant_data(void) {
    run("--iters 30 --op zeros,numbers,zeros_and_numbers,zeros_and_own,zeros_and_output,zeroed_counter");
    CHECK_HAS(get(OF("zeros"), "flags"), "CONSTANT_DATA");
    CHECK_HAS(get(OF("zeros_and_output"), "flags"), "CONSTANT_DATA");
    CHECK_FLAGS(OF("numbers"), "[]");
    CHECK_FLAGS(OF("zeros_and_numbers"), "[]");
    CHECK_FLAGS(OF("zeros_and_own"), "[]");
    CHECK_FLAGS(OF("zeroed_counter"), "[]");
}

static void withheld(const char* operation, const char* implementation, const char* flag) {
    static const char* const keys[] = {
        "time_ms",         "time_ms_mean", "time_ms_std",        "time_ms_min",    "time_ms_max", "time_ms_mad",
        "time_ms_p5",      "time_ms_p25",  "time_ms_p75",        "time_ms_p95",    "time_ms_p99", "time_ms_ci_low",
        "time_ms_ci_high", "cv",           "precision",          "samples_ms",     "time_ms_raw", "inference_speed",
        "throughput_gbps", "gflops",       "queries_per_second", "gpu_efficiency", "speedup",     "speedup_low",
        "speedup_high",    "rating",       "items_per_second",   "compute_roof_gflops"
    };
    int i = record(operation, implementation);
    CHECK_THAT(strcmp(get(i, "status"), "\"failed\"") == 0, "%s: status %s", operation, get(i, "status"));
    if (flag) CHECK_THAT(strstr(get(i, "flags"), flag) != NULL, "%s: flags %s", operation, get(i, "flags"));
    for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
        CHECK_THAT(strcmp(get(i, keys[k]), "null") == 0, "%s: %s is %.40s", operation, keys[k], get(i, keys[k]));
    CHECK_THAT(strlen(get(i, "message")) > 4, "%s: message %s", operation, get(i, "message"));
}

// Without shared buffers, different addresses of the data may change the time by up to 3 %. A difference below 3 %
// gets no verdict; a significant one gets the flag PLACEMENT.
static void test_apart(void) {
    run("--op beside,apart --rounds 40");
// under a sanitizer buffers are not shared, so that the sanitizer can check the space between two allocations
#ifndef TEST_SANITIZE
    CHECK_STR(get(record("beside", "little"), "verdict"), "\"SLOWER\"");
    CHECK_FLAGS(record("beside", "little"), "[]");
    CHECK(number(record("beside", "little"), "noise_floor") < 0.01);
    CHECK_STR(get(record("beside", "one"), "winner"), "\"one\"");
    CHECK_STR(get(record("beside", "one"), "winner_certain"), "true");
#endif
    int little = record("apart", "little"), more = record("apart", "more"), twin = record("apart", "twin");
    CHECK_STR(get(little, "verdict"), "\"UNRESOLVED\"");
    CHECK_FLAGS(little, "[\"PLACEMENT\"]");
    CHECK_REAL(number(little, "noise_floor"), 0.03, 1e-12);
    CHECK_REAL(number(little, "speedup"), 1 / 1.02, 2e-3); // the speedup is reported without a verdict
    CHECK_STR(get(more, "verdict"), "\"SLOWER\"");
    CHECK_FLAGS(more, "[]");
    CHECK_STR(get(twin, "verdict"), "\"EQUIVALENT\"");
    CHECK_FLAGS(twin, "[]");
    CHECK_STR(get(twin, "shared_buffers"), "false");
    CHECK_STR(get(twin, "winner_certain"), "false");
}

static void test_withheld(void) {
    int rc = run("--iters 200");
    CHECK(rc != 0);
    withheld("above_roof", "default", "ABOVE_ROOF");
    withheld("faulty", "default", "CUDA_ERROR");
    withheld("nan", "default", NULL);
    withheld("infinite", "default", NULL);
    withheld("negative", "default", NULL);
    withheld("nothing", "default", NULL);
    CHECK_HAS(get(OF("nothing"), "message"), "put more work into the block");
    withheld("contest", "wrong", "VERIFY_FAIL");
    withheld("wrong_first", "wrong", "VERIFY_FAIL");
    CHECK_STR(get(OF("above_in_cache"), "status"), "\"ok\"");
    CHECK_STR(get(OF("dips"), "status"), "\"ok\"");
    CHECK_REAL(number(OF("dips"), "time_ms"), 0.01, 1e-3);
}

static void test_contest(void) {
    run("--iters 200");
    int one = record("contest", "one"), half = record("contest", "half"), triple = record("contest", "triple"),
        tenfold = record("contest", "tenfold");
    CHECK_REAL(number(one, "speedup"), 1, 1e-12);
    CHECK_REAL(number(half, "speedup"), 2, 2e-3);
    CHECK_REAL(number(triple, "speedup"), 1.0 / 3, 2e-3);
    // only rounds with both implementations count, so the speedup differs slightly from the ratio of the medians
    CHECK_REAL(number(half, "speedup"), number(one, "time_ms") / number(half, "time_ms"), 2e-3);
    CHECK(number(half, "speedup_low") <= number(half, "speedup") &&
          number(half, "speedup") <= number(half, "speedup_high"));
    CHECK_STR(get(half, "verdict"), "\"FASTER\"");
    CHECK_STR(get(triple, "verdict"), "\"SLOWER\"");
    CHECK_STR(get(record("contest", "twin"), "verdict"), "\"EQUIVALENT\"");
    CHECK_STR(get(one, "verdict"), "null");
    CHECK_STR(get(half, "rating"), "\"excellent\"");
    CHECK_STR(get(one, "rating"), "\"good\"");
    CHECK_STR(get(triple, "rating"), "\"needs work\"");
    CHECK_STR(get(tenfold, "rating"), "\"needs work\"");
    CHECK_STR(get(half, "baseline"), "\"one\"");
    static const char* const rivals[] = { "one", "half", "twin", "unchecked", "wrong" };
    for (size_t k = 0; k < sizeof rivals / sizeof *rivals; ++k) {
        int i = record("contest", rivals[k]);
        CHECK_STR(get(i, "baseline"), "\"one\"");
        CHECK_STR(get(i, "winner"), "\"unchecked\"");
        CHECK_STR(get(i, "winner_certain"), "true");
        CHECK_STR(get(i, "planned"), "7");
    }
    CHECK_STR(get(record("wrong_first", "right"), "baseline"), "\"wrong\"");
    CHECK_STR(get(record("wrong_first", "right"), "winner"), "null");
    CHECK_STR(get(record("wrong_first", "right"), "winner_certain"), "null");
    CHECK_STR(get(OF("steady"), "baseline"), "null");
    CHECK_STR(get(OF("steady"), "winner"), "null");
    CHECK_STR(get(OF("steady"), "planned"), "1");
    CHECK_REAL(number(one, "copy_roof_gbps"), 1000, 1e-12);
    CHECK_STR(get(one, "read_roof_gbps"), "null");
    CHECK_STR(get(one, "no_gpu"), "\"scripted\"");
    CHECK_STR(get(one, "tool"), "null");
    int unchecked = record("contest", "unchecked");
    CHECK_STR(get(unchecked, "rating"), "null");
    CHECK_HAS(get(unchecked, "flags"), "UNVERIFIED");
    int right = record("wrong_first", "right");
    CHECK_STR(get(right, "status"), "\"ok\"");
    CHECK_STR(get(right, "speedup"), "null");
    CHECK_STR(get(right, "rating"), "\"excellent\"");
    withheld("too_fast_first", "above", "ABOVE_ROOF");
    CHECK_STR(get(record("too_fast_first", "right"), "speedup"), "null");
    CHECK_STR(get(record("too_fast_first", "right"), "verdict"), "null");
    CHECK_STR(get(OF("steady"), "speedup"), "null");
    // the A/A control runs even if --iters sets the number of samples
#ifndef TEST_SANITIZE // without shared buffers the noise floor is 0.03
    // the script gives the baseline and its A/A control the same time
    CHECK_REAL(number(half, "noise_floor"), 0, 1e-9);
#endif
    int slow = record("pace", "slow");
    CHECK_INT(number(slow, "samples"), 200);
    CHECK_REAL(number(slow, "speedup"), 1.0 / 500, 2e-3);
    double low = number(slow, "speedup_low"), high = number(slow, "speedup_high");
    CHECK_THAT(low > 0.99 / 500 && high < 1.01 / 500, "%g to %g", low, high);
    CHECK_STR(get(slow, "verdict"), "\"SLOWER\"");
    run("--iters 200 --op many");
    CHECK(number(record("many", "i63"), "speedup_low") <= number(record("many", "i63"), "speedup"));
    int other = record("many", "i69");
    CHECK_REAL(number(other, "speedup"), 1, 2e-3);
    CHECK_STR(get(other, "verdict"), "\"UNRESOLVED\"");
    CHECK_STR(get(other, "speedup_low"), "null");
    CHECK_STR(get(record("many", "i64"), "speedup_low"), "null");
    // With --rounds, the same 64 implementations and the A/A control share the rounds.
    run("--rounds 16 --op many");
    CHECK_INT(file.n, MANY);
    for (int i = 0; i < MANY; i++) {
        bool met = i > 0 && i < 64;
        CHECK_THAT(strcmp(get(i, "status"), "\"ok\"") == 0, "implementation %d: %s", i, get(i, "message"));
        CHECK_THAT((number(i, "noise_floor") >= 0) == met && (number(i, "speedup_low") > 0.99) == met,
                   "implementation %d: %s to %s, noise %s", i, get(i, "speedup_low"), get(i, "speedup_high"),
                   get(i, "noise_floor"));
    }
    run("--op contest --impl one,half,twin");
    double samples = number(record("contest", "half"), "samples");
    CHECK_THAT(samples <= 32 * 8, "steady times took %g samples", samples);
    CHECK(number(record("contest", "half"), "noise_floor") >= 0);
    CHECK_STR(get(record("contest", "half"), "winner"), "\"half\"");
    CHECK_STR(get(record("contest", "half"), "winner_certain"), "true");
    CHECK_STR(get(record("contest", "half"), "planned"), "3");
    run("--op contest --impl one,twin");
    CHECK(strcmp(get(0, "winner"), "null") != 0);
    CHECK_STR(get(0, "winner_certain"), "false");
}

static void test_stopping(void) {
    run("--op steady,noisy");
    double steady = number(OF("steady"), "samples"), noisy = number(OF("noisy"), "samples");
    CHECK_THAT(steady >= 30 && steady <= 100, "steady times took %g samples", steady);
    CHECK(number(OF("steady"), "precision") <= 0.005);
    CHECK_THAT(noisy > 100 && noisy <= 2000, "noisy times took %g samples", noisy);
    CHECK(number(OF("noisy"), "precision") <= 0.005 || noisy >= 2000);
    run("--op noisy --precision 10");
    CHECK_THAT(number(OF("noisy"), "samples") < noisy && number(OF("noisy"), "precision") <= 0.1,
               "%g samples, precision %g", number(OF("noisy"), "samples"), number(OF("noisy"), "precision"));
}

static void test_table(void) {
    run("--iters 200 --op above_roof,steady");
    FILE* f = fopen("build/test/host/judge.out", "r");
    char line[1000], operation[100] = "";
    int word = 0, withheld_time = 0, time = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (line[0] != ' ') snprintf(operation, sizeof operation, "%.*s", (int)strcspn(line, " \n"), line);
        double number;
        int shows = sscanf(line, "%*s %lf", &number) == 1;
        if (strcmp(operation, "steady") == 0) time |= shows;
        if (strcmp(operation, "above_roof") != 0) continue;
        withheld_time |= shows;
        word |= strstr(line, "ABOVE_ROOF") != NULL;
    }
    CHECK(word && time && !withheld_time);
    if (f) fclose(f);
}

static void test_alike(void) {
    static kbi_run run;
    static double s[60];
    run.m.samples = s, run.sampling.timer = &script_timer;
    // Launches two to four of the warm-up are flagged if they take more than twice as long as the samples and at
    // least 1 us longer. Before the comparison, launch times are scaled to the clock of the samples, and the bias
    // is subtracted.
    static const struct {
        double first, early, late, bias, clock, clock_then;
        int n, shrinks;
    } rows[] = { { 9000, 9000, 4000, 0, NAN, NAN, 4, 0 },    { 9000, 9100, 4000, 0, NAN, NAN, 4, 1 },
                 { 9000, 9100, 4000, 0, NAN, NAN, 3, 0 },    { 99000, 9000, 4000, 0, NAN, NAN, 4, 0 },
                 { 9000, 9000, 4000, 100, NAN, NAN, 4, 1 },  { 9000, 9100, 4000, 0, 1000, 2000, 4, 0 },
                 { 9000, 17900, 4000, 0, 1000, 2000, 4, 0 }, { 9000, 18300, 4000, 0, 1000, 2000, 4, 1 },
                 { 9000, 9100, 4000, 0, 2000, 1000, 4, 1 },  { 9000, 1200, 1000, 1100, NAN, NAN, 4, 0 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        for (int k = 0; k < 60; k++) s[k] = rows[i].late + k % 2 * 0.001;
        for (int k = 0; k < KBI_EARLY; k++)
            run.work_change.early_ns[k] = k ? rows[i].early + 500 * (k != 2) : rows[i].first;
        run.m.n = 60, run.m.bias_ns = rows[i].bias, run.m.sm_clock = rows[i].clock_then;
        run.work_change.early_mhz = rows[i].clock, run.work_change.n_early = rows[i].n,
        run.work_change.finding[0] = 0;
        kbi_find_speedup_over_time(&run);
        CHECK_THAT((run.work_change.finding[0] != 0) == rows[i].shrinks, "row %d: %s", i, run.work_change.finding);
    }
    // The samples are divided into ten blocks. First each block is faster than the one before (flagged); then one
    // block is not (not flagged).
    for (int stop = 0; stop < 2; stop++) {
        for (int i = 0; i < 60; i++) s[i] = 9000 - 600 * (i / 6) + (stop && i / 6 == 5 ? 600 : 0);
        run.m.bias_ns = 0, run.work_change.n_early = 0, run.work_change.finding[0] = 0;
        kbi_find_speedup_over_time(&run);
        CHECK_INT(strstr(run.work_change.finding, "the first samples took 9.000 us") != NULL, !stop);
    }
    run.work_change.finding[0] = 0;
    // after the subtraction of the bias, every second launch must take 1.5 times as long, and at least 500 ns
    // longer
    double ns[KBI_SINGLES];
    for (int p = 1; p <= 5; p++)
        for (int kind = 0; kind < 5; kind++) {
            for (int i = 0; i < KBI_SINGLES; i++) {
                bool odd = i % p == (kind == 1 ? 0 : p - 1);
                ns[i] = kind == 1 ? (odd ? 1700 : 1000) : (odd ? 1000 : kind == 2 ? 1490 : kind == 3 ? 1400 : 1700);
            }
            run.m.bias_ns = kind == 3 || kind == 4 ? 200 : 0;
            run.work_change.finding[0] = 0, kbi_find_alternation(&run, ns);
            bool is = p > 1 && p < 5 && kind != 2 && kind != 3;
            CHECK_THAT((run.work_change.finding[0] != 0) == is, "every %d, kind %d: %s", p, kind,
                       run.work_change.finding);
            if (is) CHECK_HAS(run.work_change.finding, p == 2 ? "in 2" : p == 3 ? "in 3" : "in 4");
        }
}

int main(int argc, char** argv) {
    scripted.time = script;
    add_many();
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    if (system("mkdir -p build/test/host") != 0) return 2;
    test_alike();
    test_flags();
    run("--iters 200");
    test_cold();
    test_rates();
    test_withheld();
    test_contest();
    test_apart();
    test_constant_data();
    test_stopping();
    test_table();
    json_free(&file);
    return test_end();
}
