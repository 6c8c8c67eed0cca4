// SPDX-License-Identifier: MIT OR Unlicense
// Tests how rates are judged against simulated peaks. A case whose rate exceeds the device's peak gets the flag
// ABOVE_ROOF and no time. Each peak is measured once per run, when a case first needs it, even if a worker dies
// and a new worker continues. Without arguments, this program is the test; with arguments, it is a benchmark program whose times are
// set to 10 us.
#include "test.h"
#include "json.h"
#include <stdlib.h>
#include "kit.h"

#define SECONDS 1e-5
static double script(const char* name, int64_t i, uint64_t* flags) {
    (void)flags;
    if (strstr(name, "dies") && i == 3) abort();
    return 1e9 * SECONDS * (1 + 0.0005 * (double)(i % 5 - 2));
}

// Returns a simulated peak in 1e12 operations or bytes per second, and logs each request for a peak. The
// environment variable ROOFS selects a simulated machine that lacks some peaks.
static double planted(int which) {
    static const double roofs[] = { 1, 1.3, 0.9, 30, 60, 400, 700, 720, 1400, 1500 };
    const char *machine = getenv("ROOFS"), *log = getenv("ROOFS_LOG");
    FILE* f = log ? fopen(log, "a") : NULL;
    if (f) fprintf(f, "%s\n", kbi_roof_names[which]), fclose(f);
    if (machine && strcmp(machine, "slow") == 0) usleep(700000);
    if (machine && strcmp(machine, "no cublas") == 0 && which > KBI_ROOF_F32) return KBI_UNTOLD;
    if (machine && strcmp(machine, "no fp8") == 0 && which == KBI_ROOF_FP8) return 0;
    return roofs[which] * 1e12;
}

typedef struct row {
    const char* name;
    const char* stored; // KB_DTYPE; 0: none
    int said;           // kb_flops_as; -1: kb_flops
    double flops;       // 1e12 a second; 0: not declared
    int traffic;        // kb_bytes_as; -1: kb_bytes
    double bytes;       // 1e12 a second; 0: not declared
    const char* want;   // expected peak name, or "ABOVE_ROOF"; "": the case has a time but no percentage
    double percent;
} row;
#define UNSAID -1
// clang-format off
static const row true_ones[] = {
    { "f32",            0,      UNSAID,  55,   UNSAID, 0, "f32",  55 / 0.60 },
    { "f32_s",          "f32",  UNSAID,  55,   UNSAID, 0, "f32",  55 / 0.60 },
    // a bf16 softmax that accumulates in f32
    { "f32_said",       "bf16", KB_F32,  55,   UNSAID, 0, "f32",  55 / 0.60 },
    { "f32_a_little",   "f32",  KB_F32,  62.5, UNSAID, 0, "f32",  62.5 / 0.60 },
    { "tf32",           0,      UNSAID,  390,  UNSAID, 0, "tf32", 39 / 0.4 },
    { "tf32_of_f32",    "f32",  UNSAID,  390,  UNSAID, 0, "tf32", 39 / 0.4 },
    { "tf32_s",         "tf32", UNSAID,  390,  UNSAID, 0, "tf32", 39 / 0.4 },
    { "tf32_said",      "f32",  KB_TF32, 390,  UNSAID, 0, "tf32", 39 / 0.4 },
    { "f16",            0,      UNSAID,  690,  UNSAID, 0, "f16",  69 / 0.7 },
    { "f16_s",          "f16",  UNSAID,  690,  UNSAID, 0, "f16",  69 / 0.7 },
    { "f16_said",       0,      KB_F16,  690,  UNSAID, 0, "f16",  69 / 0.7 },
    // f16 and bf16 run on the same arithmetic units of a GPU
    { "f16_as_bf16",    "f16",  KB_F16,  750,  UNSAID, 0, "bf16", 75 / 0.72 },
    { "bf16",           0,      UNSAID,  715,  UNSAID, 0, "f16",  71.5 / 0.7 },
    { "bf16_of_f32",    "f32",  UNSAID,  715,  UNSAID, 0, "f16",  71.5 / 0.7 },
    { "bf16_s",         "bf16", UNSAID,  715,  UNSAID, 0, "bf16", 71.5 / 0.72 },
    { "bf16_said",      "f32",  KB_BF16, 715,  UNSAID, 0, "bf16", 71.5 / 0.72 },
    { "fp8",            0,      UNSAID,  1390, UNSAID, 0, "fp8",  139 / 1.4 },
    { "fp8_s",          "e4m3", UNSAID,  1390, UNSAID, 0, "fp8",  139 / 1.4 },
    { "fp8_s2",         "e5m2", UNSAID,  1390, UNSAID, 0, "fp8",  139 / 1.4 },
    { "fp8_said",       "bf16", KB_E4M3, 1390, UNSAID, 0, "fp8",  139 / 1.4 },
    { "int8",           0,      UNSAID,  1490, UNSAID, 0, "int8", 149 / 1.5 },
    { "int8_s",         "i8",   UNSAID,  1490, UNSAID, 0, "int8", 149 / 1.5 },
    { "int8_u",         "u8",   UNSAID,  1490, UNSAID, 0, "int8", 149 / 1.5 },
    { "int8_said",      0,      KB_I8,   1490, UNSAID, 0, "int8", 149 / 1.5 },
    { "f64_s",          "f64",  UNSAID,  29,   UNSAID, 0, "f64",  29 / 0.3 },
    { "f64_said",       0,      KB_F64,  29,   UNSAID, 0, "f64",  29 / 0.3 },
    // kbench measures no peak for i32 arithmetic
    { "i32_s",          "i32",  UNSAID,  5000, UNSAID, 0, "",     0 },
    { "i32_moves",      "i32",  UNSAID,  5,    UNSAID, 0.3, "copy", 30 },
    { "reads",          0,      UNSAID,  0,    UNSAID, 1.25, "copy", 125 },
    { "reads_said",     0,      UNSAID,  0,    KB_READ, 1.25, "read", 125 / 1.3 },
    { "writes_said",    0,      UNSAID,  0,    KB_WRITE, 0.85, "write", 85 / 0.9 },
    // some of the written data stays in L2 and does not reach DRAM
    { "writes_left",    0,      UNSAID,  0,    KB_WRITE, 1.04, "write", 104 / 0.9 },
    { "copies_said",    0,      UNSAID,  0,    KB_COPY, 0.98, "copy", 98 },
    { "in_cache",       0,      UNSAID,  0,    UNSAID, 0.4, "copy", 40 },
    { "memory_first",   "bf16", UNSAID,  72,   UNSAID, 0.6, "copy", 60 },
    { "neither_much",   "bf16", UNSAID,  72,   UNSAID, 0.3, "copy", 30 },
    { "compute_first",  "bf16", UNSAID,  432,  UNSAID, 0.5, "bf16", 60 },
};
static const row impossible[] = { // each case reaches 1.3 times the peak that applies, which is impossible
    { "x_f64",          "f64",  UNSAID,  39,   UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_f64_said",     0,      KB_F64,  39,   UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_f32_said",     "bf16", KB_F32,  78,   UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_f32_s",        "f32",  UNSAID,  936,  UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_tf32_s",       "tf32", UNSAID,  520,  UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_tf32_said",    "f32",  KB_TF32, 520,  UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_f16_s",        "f16",  UNSAID,  936,  UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_bf16_said",    0,      KB_BF16, 936,  UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_fp8_s",        "e4m3", UNSAID,  1820, UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_int8_said",    0,      KB_I8,   1950, UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_unsaid",       0,      UNSAID,  1950, UNSAID, 0, "ABOVE_ROOF", 0 },
    { "x_bytes",        0,      UNSAID,  0,    UNSAID, 1.7, "ABOVE_ROOF", 0 },
    { "x_read",         0,      UNSAID,  0,    KB_READ, 1.69, "ABOVE_ROOF", 0 },
    { "x_write",        0,      UNSAID,  0,    KB_WRITE, 1.17, "ABOVE_ROOF", 0 },
    { "x_copy",         0,      UNSAID,  0,    KB_COPY, 1.3, "ABOVE_ROOF", 0 },
    { "x_either",       "bf16", UNSAID,  936,  UNSAID, 0.5, "ABOVE_ROOF", 0 },
};
// clang-format on

static const row dies = { "dies", 0, UNSAID, 500, UNSAID, 0, "", 0 };

static void body(kb_state* kb) {
    const row* r = (const row*)kb->user;
    KB_TIME(kb) { kb_keep(kb); }
    if (r->said == UNSAID && r->flops > 0) kb_flops(kb, r->flops * 1e12 * SECONDS);
    if (r->said != UNSAID) kb_flops_as(kb, r->flops * 1e12 * SECONDS, (kb_dtype)r->said);
    if (r->traffic == UNSAID && r->bytes > 0) kb_bytes(kb, r->bytes * 1e12 * SECONDS);
    if (r->traffic != UNSAID) kb_bytes_as(kb, r->bytes * 1e12 * SECONDS, (kb_traffic)r->traffic);
    kb_check_that(kb, true, 0, 0, "fine");
}

KBENCH(no_such_flops) {
    KB_TIME(kb) { kb_keep(kb); }
    kb_flops_as(kb, 1e6, KB_I32);
}
KBENCH(no_such_bytes) {
    KB_TIME(kb) { kb_keep(kb); }
    kb_bytes_as(kb, 1e6, (kb_traffic)9);
}
KBENCH(overwritten) {
    KB_TIME(kb) { kb_keep(kb); }
    kb_flops_as(kb, 1e9, KB_F64);
    kb_flops(kb, 50e12 * SECONDS);
    kb_bytes_as(kb, 1e3, KB_READ);
    kb_bytes(kb, 0.4e12 * SECONDS);
}

static void add(const row* rows, int n) {
    for (int i = 0; i < n; i++) {
        kb_entry* e = (kb_entry*)calloc(1, sizeof *e);
        kb_axis* axes = (kb_axis*)calloc(2, sizeof *axes);
        axes[0].name = "dtype", axes[0].type = KB_AXIS_STRINGS, axes[0].s[0] = rows[i].stored;
        axes[1].type = KB_AXIS_END;
        e->operation = rows[i].name, e->implementation = "default", e->body = body,
        e->user = (void*)(uintptr_t)&rows[i];
        e->axes = rows[i].stored ? axes : axes + 1;
        kb_add(e);
    }
}

static const char* self;
static json_file file;
#define JSON "build/test/host/roofs.json"
#define LOG "build/test/host/roofs.log"

static void run(const char* machine, const char* arguments) {
    char command[1000];
    json_free(&file);
    remove(JSON), remove(LOG);
    snprintf(command, sizeof command,
             "ROOFS='%s' ROOFS_LOG=" LOG " '%s' --device script --iters 20 --no-progress --quiet --json " JSON
             " %s > build/test/host/roofs.out 2>&1",
             machine, self, arguments);
    CHECK(system(command) != -1);
    file = json_read(JSON, 0);
    CHECK_STR(file.error, "");
}
static const char* get(const char* operation, const char* key) {
    char wanted[100];
    snprintf(wanted, sizeof wanted, "\"%s\"", operation);
    for (int i = 0; i < file.n; i++) {
        const char *is = json_get(&file, i, "operation"), *value = json_get(&file, i, key);
        if (is && strcmp(is, wanted) == 0) return value ? value : "(no such key)";
    }
    return "(no such record)";
}
static double number(const char* operation, const char* key) {
    const char* s = get(operation, key);
    return strchr("-0123456789", s[0]) ? strtod(s, NULL) : (double)NAN;
}
static void check_roof(const char* operation, const char* want, double percent) {
    char roof[40];
    snprintf(roof, sizeof roof, *want ? "\"%s\"" : "null", want);
    if (strcmp(want, "ABOVE_ROOF") == 0) {
        CHECK_THAT(strcmp(get(operation, "flags"), "[\"ABOVE_ROOF\"]") == 0, "%s: flags %s", operation,
                   get(operation, "flags"));
        CHECK_THAT(strcmp(get(operation, "time_ms"), "null") == 0, "%s: %s ms", operation, get(operation, "time_ms"));
        CHECK_THAT(strstr(get(operation, "message"), "reaches") != NULL, "%s: %s", operation,
                   get(operation, "message"));
        CHECK_THAT(strcmp(get(operation, "roof"), "null") == 0 && strcmp(get(operation, "bound"), "null") == 0,
                   "%s: roof %s, bound %s", operation, get(operation, "roof"), get(operation, "bound"));
        return;
    }
    CHECK_THAT(strcmp(get(operation, "status"), "\"ok\"") == 0, "%s: status %s, %s", operation,
               get(operation, "status"), get(operation, "message"));
    CHECK_THAT(!strstr(get(operation, "flags"), "ABOVE_ROOF"), "%s: flags %s", operation, get(operation, "flags"));
    CHECK_THAT(fabs(number(operation, "time_ms") - 1e3 * SECONDS) < 1e-5, "%s: %s ms", operation,
               get(operation, "time_ms"));
    CHECK_THAT(strcmp(get(operation, "roof"), roof) == 0, "%s: roof %s, expected %s", operation,
               get(operation, "roof"), roof);
    bool same = *want ? fabs(number(operation, "gpu_efficiency") - percent) < 0.002 * percent
                      : strcmp(get(operation, "gpu_efficiency"), "null") == 0;
    CHECK_THAT(same, "%s: %s %%, expected %g", operation, get(operation, "gpu_efficiency"), percent);
    const char* bound = !*want                                                                  ? "null"
                        : strcmp(want, "copy") && strcmp(want, "read") && strcmp(want, "write") ? "\"compute\""
                                                                                                : "\"memory\"";
    CHECK_THAT(strcmp(get(operation, "bound"), bound) == 0, "%s: bound %s", operation, get(operation, "bound"));
    // The record names the arithmetic peak even if memory is the bound.
    double share = 100 * number(operation, "gflops") / number(operation, "compute_roof_gflops");
    bool computes = strcmp(bound, "\"compute\"") == 0, known = strcmp(get(operation, "compute_roof"), "null") != 0;
    CHECK_THAT(computes ? strcmp(get(operation, "compute_roof"), roof) == 0 && fabs(share - percent) < 0.002 * percent
                        : !known || share <= 1.002 * percent,
               "%s: compute_roof %s, %g %%", operation, get(operation, "compute_roof"), share);
}
static int measured(const char* roof) {
    char line[40];
    int n = 0;
    FILE* f = fopen(LOG, "r");
    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, roof, strlen(roof)) == 0 && line[strlen(roof)] == '\n';
    if (f) fclose(f);
    return n;
}

static void test_rows(void) {
    run("", "--exclude ^dies");
    for (size_t i = 0; i < sizeof true_ones / sizeof *true_ones; i++)
        check_roof(true_ones[i].name, true_ones[i].want, true_ones[i].percent);
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        check_roof(impossible[i].name, impossible[i].want, impossible[i].percent);
    check_roof("overwritten", "f32", 50 / 0.6);
    CHECK_HAS(get("x_bf16_said", "message"), "936000 GFLOP/s by kb_flops, where the machine reaches 720000 (bf16)");
    CHECK_HAS(get("x_read", "message"), "1690 GB/s by kb_bytes, where the machine reaches 1300 (read)");
    CHECK_HAS(get("no_such_flops", "flags"), "BAD_CASE");
    CHECK_HAS(get("no_such_flops", "message"), "no peak of i32");
    CHECK_HAS(get("no_such_bytes", "flags"), "BAD_CASE");
    for (int i = 0; i < KBI_ROOFS; i++) CHECK_INT(measured(kbi_roof_names[i]), 1);
}

// Without cuBLASLt, the peaks of the tensor cores are unknown.
static void test_no_cublas(void) {
    run("no cublas", "--exclude ^dies");
    check_roof("f32", "f32", 55 / 0.6);
    check_roof("f64_s", "f64", 29 / 0.3);
    static const char* const unknown[] = {
        "tf32", "tf32_of_f32", "bf16",        "bf16_s",  "bf16_said",   "fp8_said",
        "int8", "x_f32_s",     "x_bf16_said", "x_fp8_s", "x_int8_said", "x_unsaid"
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) check_roof(unknown[i], "", 0);
    check_roof("memory_first", "copy", 60);
    CHECK_STR(get("memory_first", "compute_roof"), "null");
    // no percentage: the unknown arithmetic peak may be the bound
    check_roof("neither_much", "", 0);
    check_roof("x_f32_said", "ABOVE_ROOF", 0);
    check_roof("x_f64", "ABOVE_ROOF", 0);
    check_roof("x_copy", "ABOVE_ROOF", 0);
}

// Without fp8 units, fp8 data is judged by the peak of another type. If a peak exists but its measurement failed,
// no other peak replaces it.
static void test_no_fp8(void) {
    run("no fp8", "--op fp8,fp8_said,fp8_s,x_fp8_s,x_unsaid,bf16_s");
    check_roof("fp8", "int8", 139 / 1.5);
    check_roof("fp8_said", "", 0);
    check_roof("fp8_s", "ABOVE_ROOF", 0);
    check_roof("x_unsaid", "ABOVE_ROOF", 0);
    check_roof("bf16_s", "bf16", 71.5 / 0.72);
}

static void test_lazily(void) {
    run("", "--op f32,bf16_s,reads_said");
    for (int i = 0; i < KBI_ROOFS; i++) {
        int want = i == KBI_ROOF_COPY || i == KBI_ROOF_READ || i == KBI_ROOF_F32 || i == KBI_ROOF_BF16;
        CHECK_THAT(measured(kbi_roof_names[i]) == want, "%s measured %d times", kbi_roof_names[i],
                   measured(kbi_roof_names[i]));
    }
    run("", "--op f16,f16_said,reads,dies,x_f16_s,x_unsaid,x_read");
    CHECK_HAS(get("dies", "flags"), "CRASHED");
    check_roof("f16", "f16", 69 / 0.7);
    check_roof("f16_said", "f16", 69 / 0.7);
    check_roof("x_unsaid", "ABOVE_ROOF", 0);
    for (int i = 0; i < KBI_ROOFS; i++)
        CHECK_THAT(measured(kbi_roof_names[i]) == (i != KBI_ROOF_F64), "%s measured %d times", kbi_roof_names[i],
                   measured(kbi_roof_names[i]));
    run("", "--op f32 --no-isolate");
    check_roof("f32", "f32", 55 / 0.6);
}

// The time for measuring peaks does not count towards the timeout of a case.
static void test_slowly(void) {
    run("slow", "--op reads,f32 --timeout 500ms");
    check_roof("reads", "copy", 125);
    check_roof("f32", "f32", 55 / 0.6);
}

static kb_result judged_in(kbi_measured* m, double seconds, double bytes, double flops) {
    kb_result r;
    kbi_machine machine;
    kbi_result_clear(&r);
    kbi_machine_clear(&machine, "cuda");
    machine.l2 = 1 << 20;
    m->bytes = bytes, m->flops = flops;
    r.time_ms = 1e3 * seconds;
    kbi_judge_rates(&r, m, &machine);
    return r;
}
static kb_result judged(kbi_measured* m, double bytes, double flops) { return judged_in(m, SECONDS, bytes, flops); }
static bool above(const kb_result* r) { return r->flags >> KB_FLAG_ABOVE_ROOF & 1; }

static void test_judge(void) {
    kbi_measured m;
    kbi_measured_clear(&m);
    for (int i = 0; i < KBI_ROOFS; i++) kbi_roof_put(&m.roofs, i, planted(i), planted(i), 0);
    snprintf(m.cache, sizeof m.cache, "hot");
    kb_result r = judged(&m, 4e12 * SECONDS, NAN);
    CHECK(!above(&r) && r.status == KB_OK);
    CHECK_REAL(r.gpu_efficiency, 400, 1e-9);
    kb_result_free(&r);
    r = judged(&m, NAN, 2000e12 * SECONDS);
    CHECK(above(&r));
    kb_result_free(&r);
    // data of 4 MB may still be in a cache
    snprintf(m.cache, sizeof m.cache, "cold");
    r = judged_in(&m, 1e-6, 4e6, NAN);
    CHECK(!above(&r));
    kb_result_free(&r);
    r = judged_in(&m, 2e-6, 8e6, NAN);
    CHECK(above(&r));
    kb_result_free(&r);
    // With zeros as data, a GPU takes less power and reaches a higher peak (here 900e12 FLOP/s). ABOVE_ROOF is set
    // only if the rate also exceeds the peak with zeros.
    m.arithmetic = KB_BF16;
    m.roofs.most[KBI_ROOF_BF16] = m.roofs.most[KBI_ROOF_F16] = 900e12;
    r = judged(&m, NAN, 940e12 * SECONDS);
    CHECK(!above(&r));
    CHECK_REAL(r.gpu_efficiency, 100 * 940 / 720.0, 1e-9);
    kb_result_free(&r);
    r = judged(&m, NAN, 1000e12 * SECONDS);
    CHECK(above(&r));
    kb_result_free(&r);
    m.arithmetic = 0, m.core = 1;
    r = judged(&m, 9e12 * SECONDS, 300e12 * SECONDS);
    CHECK(!above(&r));
    CHECK_REAL(r.gpu_efficiency, 900, 1e-9);
    CHECK_STR(r.roof, "copy");
    CHECK(r.bound == NULL);
    kb_result_free(&r);
    r = judged(&m, 1.3e12 * SECONDS, NAN);
    CHECK_STR(r.bound, "memory");
    kb_result_free(&r);
    m.dtype = KB_BF16;
    r = judged(&m, NAN, 300e12 * SECONDS);
    CHECK_STR(r.roof, "f32");
    CHECK_REAL(r.gpu_efficiency, 500, 1e-9);
    kb_result_free(&r);
    m.dtype = KB_I8;
    r = judged(&m, NAN, 300e12 * SECONDS);
    CHECK(r.roof == NULL);
    kb_result_free(&r);
}

static void test_core(void) {
    static const double least[] = { 1e8, 1e8, 1e8, 1e7, 1e7 }, most[] = { 1e12, 1e12, 1e12, 1e12, 1e12 };
    static const int which[] = { KBI_ROOF_COPY, KBI_ROOF_READ, KBI_ROOF_WRITE, KBI_ROOF_F64, KBI_ROOF_F32 };
    kbi_roofs r;
    kbi_roofs_clear(&r);
    for (int i = 0; i < 5; i++) {
        kbi_core_roof(&r, which[i]);
        CHECK_THAT(r.of[which[i]] > least[i] && r.of[which[i]] < most[i], "%s: %g", kbi_roof_names[which[i]],
                   r.of[which[i]]);
        CHECK(r.took[which[i]] > 0);
    }
#ifndef TEST_SANITIZE // left out under a sanitizer, which slows every memory access
    CHECK_THAT(r.of[KBI_ROOF_READ] > 0.42 * r.of[KBI_ROOF_COPY], "read %g, copy %g", r.of[KBI_ROOF_READ],
               r.of[KBI_ROOF_COPY]);
#endif
    // A peak is measured for at least 50 ms, which is longer than a time slice of the scheduler (up to 20 ms).
    CHECK_THAT(r.took[KBI_ROOF_F32] >= 0.05, "%g s for measuring the f32 peak", r.took[KBI_ROOF_F32]);
    // f32 has twice as many SIMD lanes as f64; on a busy machine, both peaks are measured again
    double ratio = 0, f32 = 0, f64 = 0;
    for (int i = 0; i < 20 && !(ratio > 1.6 && ratio < 2.4); i++) {
        kbi_core_roof(&r, KBI_ROOF_F32);
        kbi_core_roof(&r, KBI_ROOF_F64);
        f32 = KBI_MAX(f32, r.of[KBI_ROOF_F32]), f64 = KBI_MAX(f64, r.of[KBI_ROOF_F64]);
        ratio = f32 / f64;
    }
    CHECK_THAT(ratio > 1.6 && ratio < 2.4, "f32 %g times f64", ratio);
    kbi_core_roof(&r, KBI_ROOF_FP8);
    CHECK(r.of[KBI_ROOF_FP8] >= 0 && !(r.of[KBI_ROOF_FP8] > 0));
}

// Other programs on the same core take a share of the time, but do not reduce the measured peak.
static void test_crowded(void) {
    enum { OTHERS = 3 };
    kbi_roofs alone, crowded;
    kbi_cpus all, one;
    pid_t others[OTHERS];
    kbi_roofs_clear(&alone), kbi_roofs_clear(&crowded);
    int last = KBI_CPUS - 1;
    memset(&one, 0, sizeof one);
    if (!kbi_cpus_allowed(&all)) return;
    while (last && !kbi_cpus_has(&all, last)) last--;
    one.words[last / KBI_CPUS_IN] = 1ul << last % KBI_CPUS_IN;
    kbi_core_roof(&alone, KBI_ROOF_READ);
    CHECK(kbi_cpus_pin(&one));
    for (int i = 0; i < OTHERS; i++) {
        others[i] = fork();
        if (!others[i])
            for (;;) kbi_now();
    }
    kbi_core_roof(&crowded, KBI_ROOF_READ);
    for (int i = 0; i < OTHERS; i++) kill(others[i], SIGKILL), waitpid(others[i], NULL, 0);
    CHECK(kbi_cpus_pin(&all));
    CHECK_THAT(crowded.of[KBI_ROOF_READ] > 0.5 * alone.of[KBI_ROOF_READ], "%g GB/s, alone %g",
               crowded.of[KBI_ROOF_READ] * 1e-9, alone.of[KBI_ROOF_READ] * 1e-9);
}

int main(int argc, char** argv) {
    scripted.time = script;
    scripted.roof = planted;
    add(true_ones, sizeof true_ones / sizeof *true_ones);
    add(&dies, 1);
    add(impossible, sizeof impossible / sizeof *impossible);
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    if (system("mkdir -p build/test/host") != 0) return 2;
    test_rows();
    test_no_cublas();
    test_no_fp8();
    test_lazily();
    test_slowly();
    test_judge();
    test_core();
    test_crowded();
    json_free(&file);
    return test_end();
}
