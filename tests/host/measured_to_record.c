// SPDX-License-Identifier: MIT OR Unlicense
// Tests the fields of a record that come from the measurement, and the flags that kbench sets for samples with a
// known median.
// a program of its own: this test replaces the clock of the C library.
#include "test.h"
#include "guarded.h"
#include <stdbool.h>
#include <time.h>

static struct {
    bool on;
    double now;
} played;
int played_gettime(int clock, struct timespec* out);
int played_gettime(int clock, struct timespec* out) {
    if (!played.on || clock != CLOCK_MONOTONIC) return clock_gettime(clock, out);
    out->tv_sec = (time_t)(played.now / 1e9), out->tv_nsec = (long)(played.now - 1e9 * (double)out->tv_sec);
    return 0;
}
#define clock_gettime played_gettime
#include "kit.h"

#define RAISED(r, flag) ((int)((r).flags >> KB_FLAG_##flag & 1))

// --- a record: each value in its own field ---

static kbi_case case_of(kb_entry* entry) {
    kbi_case c;
    memset(&c, 0, sizeof c), memset(entry, 0, sizeof *entry);
    entry->operation = "op", entry->implementation = "impl";
    c.entry = entry, c.name = "op/impl=impl";
    return c;
}

static void test_record(void) {
    kb_result r;
    kb_entry entry;
    kbi_case c = case_of(&entry);
    kbi_measured m;
    kbi_machine machine;
    kbi_result_clear(&r), kbi_measured_clear(&m), kbi_machine_clear(&machine, "cuda");
    m.memory = 3 << 20, m.host_memory = 5 << 19, m.leaked = 7;
    m.grid[0] = 11, m.grid[1] = 12, m.grid[2] = 13, m.block[0] = 14, m.block[1] = 15, m.block[2] = 16;
    snprintf(m.kernel, sizeof m.kernel, "of_mine"), snprintf(m.cache, sizeof m.cache, "hot"), snprintf(m.timer, sizeof m.timer, "cupti");
    snprintf(m.throttle, sizeof m.throttle, "too warm");
    m.registers = 17, m.shared_bytes = 18, m.local_bytes = 19, m.occupancy = 20.5;
    m.sm_clock = 21, m.memory_clock = 22, m.power = 23, m.temperature = 24;
    m.wall_ns = 26e6, m.bytes = 27, m.flops = 28, m.n = 29, m.retaken = 30, m.launches = 31, m.rounds = 32,
    m.stage = 1;
    machine.gpu_present = 1, machine.device = 2, machine.sm = 103;
    for (int i = KBI_ROOF_COPY; i <= KBI_ROOF_WRITE; i++)
        kbi_roof_put(&machine.roofs, i, 1e12 * (1 + i - KBI_ROOF_COPY), 9e12, 0);
    machine.ecc = 1, machine.mig = 0, machine.clocks_locked = 1;
    snprintf(machine.gpu, sizeof machine.gpu, "G"), snprintf(machine.driver, sizeof machine.driver, "D");
    snprintf(machine.cuda, sizeof machine.cuda, "C"), snprintf(machine.tool, sizeof machine.tool, "T");
    kbi_result_take(&r, KBI_OF_MEASURED, &m), kbi_record_machine(&r, &machine), kbi_record_case(&r, &c, &m);
    CHECK_INT(r.memory_bytes, 3 << 20), CHECK_REAL(r.memory_mb, 3, 0), CHECK_REAL(r.host_memory_mb, 2.5, 0);
    CHECK_INT(r.leaked_bytes, 7);
    CHECK_STR(r.kernel, "of_mine"), CHECK_STR(r.grid, "11x12x13"), CHECK_STR(r.block, "14x15x16");
    CHECK_INT(r.registers, 17), CHECK_INT(r.shared_bytes, 18), CHECK_INT(r.local_bytes, 19);
    CHECK_REAL(r.occupancy_theoretical, 20.5, 0);
    CHECK_REAL(r.sm_clock_mhz, 21, 0), CHECK_REAL(r.memory_clock_mhz, 22, 0), CHECK_REAL(r.power_w, 23, 0);
    CHECK_REAL(r.temperature_c, 24, 0);
    CHECK_REAL(r.bytes, 27, 0), CHECK_REAL(r.flops, 28, 0);
    CHECK_INT(r.samples_retaken, 30), CHECK_INT(r.launches_per_sample, 31), CHECK_INT(r.shared_buffers, 1);
    CHECK_STR(r.cache, "hot"), CHECK_STR(r.timer, "cupti"), CHECK_STR(r.throttle, "too warm"), CHECK_STR(r.backend, "cuda"), CHECK_STR(r.tool, "T");
    CHECK_INT(r.device, 2), CHECK_STR(r.gpu, "G"), CHECK_STR(r.compute_capability, "10.3");
    CHECK_STR(r.driver, "D"), CHECK_STR(r.cuda, "C"), CHECK(r.no_gpu == NULL);
    CHECK_REAL(r.copy_roof_gbps, 1000, 1e-15), CHECK_REAL(r.read_roof_gbps, 2000, 1e-15);
    CHECK_REAL(r.write_roof_gbps, 3000, 1e-15);
    CHECK_INT(r.ecc, 1), CHECK_INT(r.mig, 0), CHECK_INT(r.clocks_locked, 1);
    CHECK_STR(r.operation, "op"), CHECK_STR(r.implementation, "impl"), CHECK_STR(r.origin, "user");
    kb_result_free(&r);
    kbi_result_clear(&r), kbi_measured_clear(&m), kbi_machine_clear(&machine, "cpu");
    kbi_result_take(&r, KBI_OF_MEASURED, &m), kbi_record_machine(&r, &machine), kbi_record_case(&r, &c, &m);
    CHECK_INT(r.memory_bytes, KB_NONE), CHECK_INT(r.samples_retaken, KB_NONE),
        CHECK_INT(r.launches_per_sample, KB_NONE);
    CHECK(isnan(r.memory_mb) && isnan(r.host_memory_mb) && isnan(r.power_w) && isnan(r.bytes) &&
          isnan(r.copy_roof_gbps));
    CHECK(!r.kernel && !r.grid && !r.block && !r.throttle && !r.gpu && !r.tool && r.shared_buffers == -1);
    CHECK(r.no_gpu != NULL && r.ecc == -1 && r.device == KB_NONE);
    kb_result_free(&r);
}

static void test_remarks(void) {
    kbi_measured m;
    char longer[600];
    kbi_measured_clear(&m);
    kbi_note(&m, "%d sheep", 2);
    kbi_note(&m, "a dog");
    CHECK_STR(m.message, "2 sheep; a dog");
    memset(longer, 'x', sizeof longer), longer[sizeof longer - 1] = 0;
    for (int i = 0; i < 3; i++) kbi_note(&m, "%s", longer);
    CHECK_INT(strlen(m.message), sizeof m.message - 1);
    CHECK_INT(m.cache[0], 0);
}

// --- the judge ---

// makes 101 samples, spread evenly from `ns` - `beside` to `ns` + `beside`; the median of these samples is exactly
// `ns`
static void samples_at(double ns, double beside, double samples[101]) {
    for (int i = 0; i < 101; i++) samples[i] = ns + beside * (i * 37 % 101 - 50) / 50;
}
static kb_result judged(kbi_measured* m, double ns, double beside, const kbi_machine* machine) {
    static double samples[101];
    kb_result r;
    samples_at(ns, beside, samples);
    m->samples = samples;
    kbi_result_clear(&r);
    kbi_judge(&r, m, machine);
    return r;
}

static void test_times(void) {
    kbi_measured m;
    kbi_machine machine;
    kbi_measured_clear(&m), kbi_machine_clear(&machine, "cuda");
    m.n = 101, m.verified = 1, m.bias_ns = 2300, m.floor_ns = 2876;
    kb_result r = judged(&m, 30000, 100, &machine), wide;
    CHECK_INT(r.status, KB_OK), CHECK_INT(r.samples, 101), CHECK_INT(r.samples_ms.n, 101);
    CHECK_REAL(r.time_ms, 0.0277, 1e-12), CHECK_REAL(r.time_ms_raw, 0.03, 1e-12);
    CHECK_REAL(r.bias_ms, 0.0023, 1e-12), CHECK_REAL(r.floor_ms, 0.002876, 1e-12);
    CHECK_REAL(r.time_ms_min, 0.0276, 1e-12), CHECK_REAL(r.time_ms_max, 0.0278, 1e-12);
    CHECK_REAL(r.time_ms_mean, 0.0277, 1e-9), CHECK_REAL(r.time_ms_p25, 0.02765, 1e-9);
    CHECK_REAL(r.time_ms_p75, 0.02775, 1e-9), CHECK_REAL(r.time_ms_p5, 0.02761, 1e-9);
    CHECK_REAL(r.time_ms_p95, 0.02779, 1e-9), CHECK(isnan(r.time_ms_p99));
    CHECK_REAL(r.cv, r.time_ms_std / r.time_ms_mean, 1e-12), CHECK_REAL(r.time_ms_mad, 5e-5, 1e-9);
    CHECK_REAL(r.precision, (r.time_ms_ci_high - r.time_ms_ci_low) / 2 / r.time_ms, 1e-9);
    CHECK_INT(r.flags, 0);
    m.bias_error_ns = 40;
    wide = judged(&m, 30000, 100, &machine);
    double own = r.time_ms - r.time_ms_ci_low, more = wide.time_ms - wide.time_ms_ci_low;
    CHECK_REAL(more, hypot(own, 1.959964 * 40e-6), 1e-6), CHECK_REAL(wide.time_ms_std, r.time_ms_std, 0);
    CHECK_REAL(wide.precision, (wide.time_ms_ci_high - wide.time_ms_ci_low) / 2 / wide.time_ms, 1e-9);
    kb_result_free(&wide), kb_result_free(&r);
    // FLOOR: 1.96 standard errors of the bias exceed 5 % of the time. With a standard error of 0: the time is below
    // five times the time of an empty kernel (floor_ns).
    static const struct {
        double error, left;
        int want;
    } floors[] = { { 40, 1550, 1 }, { 40, 1585, 0 }, { 0, 5 * 2876 - 2320, 1 }, { 0, 5 * 2876 - 2280, 0 } };
    for (int i = 0; i < 4; i++) {
        m.bias_error_ns = floors[i].error;
        r = judged(&m, 2300 + floors[i].left, 1, &machine);
        CHECK_THAT(RAISED(r, FLOOR) == floors[i].want, "%g ns, %g off: FLOOR %d", floors[i].left, floors[i].error,
                   RAISED(r, FLOOR));
        kb_result_free(&r);
    }
    m.bias_error_ns = 0;
    r = judged(&m, 2200, 50, &machine);
    CHECK_INT(r.status, KB_FAILED), CHECK(RAISED(r, BAD_CASE) && isnan(r.time_ms)), CHECK_INT(r.samples, KB_NONE);
    kb_result_free(&r);
    // a block that keeps no result and takes less than 5 ns gets NO_WORK, unless kbench has proof of its work
    static const struct {
        int kept, proven, no_work, floor;
        double ns;
    } shorts[] = { { KBI_KEPT_NOTHING, 0, 1, 0, 4.9 },   { KBI_KEPT_NOTHING, 0, 0, 0, 5.1 },
                   { KBI_KEPT_NOTHING, 1, 0, 0, 4.9 },   { KBI_KEPT_CONSTANTS, 0, 1, 0, 4.9 },
                   { KBI_KEPT_CONSTANTS, 0, 0, 0, 5.1 }, { KBI_KEPT_VALUES, 0, 0, 1, 1.9 },
                   { KBI_KEPT_VALUES, 0, 0, 0, 2.1 },    { KBI_KEPT_BY_CALL, 0, 0, 1, 3.9 },
                   { KBI_KEPT_BY_CALL, 0, 0, 0, 4.1 },   { KBI_NOT_HOST, 0, 0, 0, 1 } };
    m.bias_ns = m.floor_ns = 0;
    for (int i = 0; i < KBI_COUNT(shorts); i++) {
        m.kept = shorts[i].kept, m.proven = shorts[i].proven;
        r = judged(&m, shorts[i].ns, 0, &machine);
        CHECK_THAT(RAISED(r, NO_WORK) == shorts[i].no_work && RAISED(r, FLOOR) == shorts[i].floor, "row %d: %d %d", i,
                   RAISED(r, NO_WORK), RAISED(r, FLOOR));
        CHECK_INT(r.status, shorts[i].no_work ? KB_FAILED : KB_OK);
        kb_result_free(&r);
    }
}

static void test_facts(void) {
    for (int i = 0; i < 9; i++) {
        static const kb_flag want[] = { KB_FLAG_SHARED_GPU,  KB_FLAG_LEAK,          KB_FLAG_UNGATED,
                                        KB_FLAG_THROTTLED,   KB_FLAG_CONSTANT_DATA, KB_FLAG_UNSETTLED,
                                        KB_FLAG_DEBUG_BUILD, KB_FLAG_UNVERIFIED,    KB_FLAG_CLOCK_VARIES };
        kbi_measured m;
        kbi_machine machine;
        kbi_measured_clear(&m), kbi_machine_clear(&machine, "cuda");
        m.n = 101, m.verified = i == 7 ? -1 : 1, m.others = i == 0, m.leaked = i == 1, m.ungated = i == 2;
        if (i == 3) m.throttle[0] = 'x';
        m.constant = i == 4, m.settled = i != 5, m.debug_build = i == 6;
        m.clock_high = 1000, m.clock_low = m.sm_clock = i == 8 ? 979 : 981, m.sm_clock += 15;
        kb_result r = judged(&m, 30000, 100, &machine);
        // without a trend in the samples, neither an unfinished warm-up nor a varying clock sets a flag
        CHECK_THAT(r.flags == (i == 5 || i == 8 ? 0 : (uint64_t)1 << want[i]), "fact %d: flags %llx", i,
                   (unsigned long long)r.flags);
        CHECK_INT(r.status, KB_OK);
        kb_result_free(&r);
    }
}

// --- the engine: when sampling ends ---

static kbi_recipe recipe;
static kbi_machine machine_here;
static kbi_run* new_run(void) {
    static kbi_run run;
    memset(&run, 0, sizeof run);
    kbi_recipe_default(&recipe), kbi_machine_clear(&machine_here, "script"), kbi_measured_clear(&run.m);
    run.recipe = &recipe, run.machine = &machine_here, run.backend = &kbi_cpu;
    return &run;
}

static void test_enough(void) {
    kbi_run* run = new_run();
    double samples[2000];
    samples_at(10000, 1000, samples);
    run->m.samples = samples;
#define ENOUGH(count, time) (run->m.n = (count), run->sampling.next_check = 0, kbi_sampled_enough(run, time))
    recipe.precision = 1e-9;
    CHECK(!ENOUGH(6, 1.0)), CHECK(ENOUGH(7, 1.0)), CHECK(!ENOUGH(29, 0.99));
    CHECK(!ENOUGH(2, 4.0)), CHECK(ENOUGH(3, 4.0)), CHECK(!ENOUGH(3, 3.99));
    CHECK(!ENOUGH(101, 0.5));
    recipe.max_samples = 101;
    CHECK(ENOUGH(101, 0.5)), CHECK(!ENOUGH(100, 0.5));
    recipe.precision = 1;
    recipe.max_samples = 2000;
    CHECK(!ENOUGH(29, 0.5)), CHECK(ENOUGH(30, 0.5));
    recipe.min_time = 0.6;
    CHECK(!ENOUGH(30, 0.59)), CHECK(ENOUGH(30, 0.6));
    recipe.samples = 12;
    CHECK(!ENOUGH(11, 9.0)), CHECK(ENOUGH(12, 0.0));
    recipe.samples = 0, recipe.min_time = 0;
    // the precision is relative to the reported time, from which the bias has been subtracted
    recipe.precision = 1.01 * kbi_precision_of(samples, 101);
    CHECK(ENOUGH(101, 0.5));
    run->m.bias_ns = 5000;
    CHECK(!ENOUGH(101, 0.5));
    recipe.precision *= 2;
    CHECK(ENOUGH(101, 0.5));
    run->m.bias_ns = 10500; // the bias exceeds the time
    CHECK(!ENOUGH(101, 0.5));
    // the next check of the precision comes after 8 more samples, or 10 % more if that is larger
    recipe.precision = 1e-9, run->m.bias_ns = 0;
    CHECK(!ENOUGH(30, 0.5)), CHECK_INT(run->sampling.next_check, 38);
    for (int i = 101; i < 200; i++) samples[i] = samples[i - 101];
    CHECK(!ENOUGH(200, 0.5)), CHECK_INT(run->sampling.next_check, 220);
    recipe.precision = 1, run->sampling.next_check = 201;
    CHECK(!kbi_sampled_enough(run, 0.5));
    run->sampling.next_check = 200;
    CHECK(kbi_sampled_enough(run, 0.5));
}

static void test_warm(void) {
    kbi_run* run = new_run();
    static kbi_timer timer;
    run->sampling.timer = &timer;
    run->call.phase_start_ns = run->call.window.start_ns = kbi_now();
    recipe.warmup_samples = 3;
    run->call.warm_units = 2;
    CHECK(!kbi_warm_enough(run));
    run->call.warm_units = 3;
    CHECK(kbi_warm_enough(run));
    timer.host_clock = true;
    CHECK(!kbi_warm_enough(run));
    run->sampling.resolved = true;
    CHECK(kbi_warm_enough(run));
    run->sampling.resolved = false, run->work.estimate_ns = 1000000;
    CHECK(kbi_warm_enough(run));
    timer.host_clock = false;
    recipe.warmup_samples = -1, recipe.warmup_time = 1000;
    CHECK(!kbi_warm_enough(run));
    run->call.phase_start_ns -= 1001 * (int64_t)1000000000;
    CHECK(kbi_warm_enough(run));
    run->call.warm_units = 0;
    CHECK(!kbi_warm_enough(run));
    recipe.warmup_time = -1, run->call.warm_units = 2;
    run->call.phase_start_ns = kbi_now() - 490000000;
    CHECK(!kbi_warm_enough(run)), CHECK_INT(run->m.settled, 1);
    run->call.phase_start_ns = kbi_now() - 510000000;
    CHECK(kbi_warm_enough(run)), CHECK_INT(run->m.settled, 0);
    // A warm-up of more than 20 times its time limit (0.5 s) leaves `settled` unchanged: its runs were too long to
    // judge a steady state.
    for (int i = 0; i < 2; i++) {
        run->m.settled = 7, run->call.phase_start_ns = kbi_now() - (i ? 10100000000 : 9900000000);
        CHECK(kbi_warm_enough(run)), CHECK_INT(run->m.settled, i ? 7 : 0);
    }
    run->call.phase_start_ns = kbi_now() - 510000000;
    recipe.max_time = 8;
    CHECK(!kbi_warm_enough(run));
    run->call.phase_start_ns = kbi_now() - 1010000000;
    CHECK(kbi_warm_enough(run));
}

// The 95 % coverage holds for all intervals simultaneously, so more implementations give wider intervals.
static void test_contest_width(void) {
    enum { RIVALS = 7, ROUNDS = 64 };
    kbi_member* all = (kbi_member*)calloc(RIVALS + 1, sizeof(kbi_member));
    kbi_comparison c;
    memset(&c, 0, sizeof c);
    c.rounds = ROUNDS;
    for (int i = 0; i <= RIVALS; i++) {
        c.members[i] = &all[i];
        for (int r = 0; r < ROUNDS; r++) all[i].ns[r] = 1000 + (i == 0 ? 0 : (r * 37 + 11) % ROUNDS);
    }
    double log_ratio[ROUNDS], median, lo, hi;
    for (int r = 0; r < ROUNDS; r++) log_ratio[r] = log(all[0].ns[r] / all[1].ns[r]);
    for (c.n = 2; c.n <= RIVALS + 1; c.n++) {
        c.slots = c.n;
        CHECK(kbi_paired(log_ratio, ROUNDS, 0.05 / (c.n - 1), &median, &lo, &hi));
        CHECK_REAL(kbi_comparison_width(&c), (hi - lo) / 2, 1e-12);
    }
    c.n = c.slots = RIVALS + 1;
    double apart = kbi_comparison_width(&c);
    c.n = c.slots = 2;
    CHECK(kbi_comparison_width(&c) < 0.95 * apart);
    all[1].over = true;
    CHECK_REAL(kbi_comparison_width(&c), 0, 0);
    free(all);
}

static bool window(kbi_run* run, double ns, int n) {
    for (int i = 0; i < n; i++) run->call.window.ns[i] = ns;
    run->call.window.n = n;
    return kbi_window_agrees(run, 0.03);
}
static void test_windows(void) {
    kbi_run* run = new_run();
    CHECK(!window(run, 1000, 8));
    CHECK_REAL(run->call.window.median, 1000, 0), CHECK_INT(run->call.window.n, 0);
    CHECK(window(run, 1029, 8)), CHECK(!window(run, 1061, 8)), CHECK(!window(run, 1000, 4)),
        CHECK(window(run, 971, 4));
}

static void test_clock(void) {
    kbi_run* run = new_run();
    static const double mhz[] = { 1500, 1400, NAN, 1700, 1600 };
    for (int i = 0; i < 5; i++) kbi_note_clock(run, mhz[i]);
    CHECK_REAL(run->m.clock_low, 1400, 0), CHECK_REAL(run->m.clock_high, 1700, 0),
        CHECK_REAL(run->m.sm_clock, 1600, 0);
}

static void test_settling(void) {
    double ns[KBI_TRIALS][KBI_TRIAL_LONG];
    for (int slow = 0; slow <= KBI_TRIAL_RUNS / 2; slow++) {
        for (int t = 0; t < KBI_TRIALS; t++)
            for (int i = 0; i < KBI_TRIAL_RUNS; i++) ns[t][i] = (i < slow ? 1007 : 1000) + (t + i) % 2;
        CHECK_INT(kbi_settling_runs(ns, KBI_TRIAL_RUNS), slow);
    }
    for (int t = 0; t < KBI_TRIALS; t++)
        for (int i = 0; i < KBI_TRIAL_RUNS; i++) ns[t][i] = i < 3 ? 1004 : 1000;
    CHECK_INT(kbi_settling_runs(ns, KBI_TRIAL_RUNS), 0);
    for (int t = 0; t < KBI_TRIALS; t++)
        for (int i = 0; i < KBI_TRIAL_RUNS; i++)
            // the first 3 runs are slower, but the difference does not exceed the scatter of the other runs
            ns[t][i] = 1000 + (i < 3 ? 40 : 20 * (i % 3 - 1));
    CHECK_INT(kbi_settling_runs(ns, KBI_TRIAL_RUNS), 0);
    for (int decay = 4; decay <= 8; decay += 4) {
        for (int t = 0; t < KBI_TRIALS; t++)
            for (int i = 0; i < KBI_TRIAL_LONG; i++) ns[t][i] = 1000 + 100 * exp(-(double)i / decay);
        CHECK_INT(kbi_settling_runs(ns, KBI_TRIAL_RUNS), KBI_TRIAL_RUNS / 2);
        CHECK_INT(kbi_settling_runs(ns, KBI_TRIAL_LONG), decay == 4 ? 12 : KBI_TRIAL_LONG / 2);
    }
    for (int t = 0; t < KBI_TRIALS; t++)
        for (int i = 0; i < KBI_TRIAL_LONG; i++)
            ns[t][i] = i == KBI_TRIAL_LONG / 2 - 1 ? 1010 : 1000; // a single late outlier
    CHECK_INT(kbi_settling_runs(ns, KBI_TRIAL_LONG), KBI_TRIAL_LONG / 2);
}

// --- memory ---

static void test_ulp(void) {
    CHECK_REAL(kbi_ulp(1, KB_F32), ldexp(1, -23), 0), CHECK_REAL(kbi_ulp(1, KB_F64), ldexp(1, -52), 0);
    CHECK_REAL(kbi_ulp(1, KB_F16), ldexp(1, -10), 0), CHECK_REAL(kbi_ulp(1, KB_BF16), ldexp(1, -7), 0);
    CHECK_REAL(kbi_ulp(7.9, KB_F32), ldexp(1, -21), 0), CHECK_REAL(kbi_ulp(-0.3, KB_F16), ldexp(1, -12), 0);
    CHECK_REAL(kbi_ulp(5, KB_I32), 1, 0);
    // for 0 and values too small for the type: the smallest positive value of the type
    static const double tiny[] = { 0, 1e-300 };
    for (int i = 0; i < 2; i++) {
        CHECK_REAL(kbi_ulp(tiny[i], KB_F32), ldexp(1, -149), 0),
            CHECK_REAL(kbi_ulp(tiny[i], KB_F16), ldexp(1, -24), 0);
        CHECK_REAL(kbi_ulp(tiny[i], KB_BF16), ldexp(1, -133), 0);
    }
    CHECK_REAL(kbi_ulp(0, KB_F64), ldexp(1, -1074), 0);
}

static int room, lent;
static void* scarce_alloc(kb_place place, size_t bytes) {
    if (lent == room) return NULL;
    return lent++, kbi_cpu.memory.alloc(place, bytes);
}
static void scarce_release(kb_place place, void* p) {
    CHECK(p != NULL);
    lent--, kbi_cpu.memory.release(place, p);
}

static void test_no_room(void) {
    enum { PLAYERS = 3 };
    kbi_backend scarce = kbi_cpu;
    scarce.memory.alloc = scarce_alloc, scarce.memory.release = scarce_release;
    for (room = 0; room < 2; room++) {
        kbi_memory m[PLAYERS], *all[PLAYERS];
        kbi_shared_buffers s;
        memset(m, 0, sizeof m);
        for (int i = 0; i < PLAYERS; i++) kbi_shared_place(&scarce, all[i] = &m[i], KB_DEVICE, 100);
        bool good = kbi_shared_open(&s, &scarce, all, PLAYERS);
        CHECK_INT(good, room), CHECK_INT(lent, room);
        for (int i = 0; i < PLAYERS; i++) CHECK((m[i].shared != NULL) == good && (m[i].saved != NULL) == good);
        if (good) kbi_shared_close(&s, all, PLAYERS);
        CHECK_INT(lent, 0);
    }
}

static void test_stage(void) {
    kbi_memory m;
    kbi_backend gpu = kbi_cpu;
    memset(&m, 0, sizeof m);
    gpu.gpu = true;
    CHECK_INT(kbi_shared_align(0, 100), 0), CHECK_INT(kbi_shared_align(1, 100), 512),
        CHECK_INT(kbi_shared_align(512, 100), 512);
    CHECK_INT(kbi_shared_align(513, (1 << 20) - 1), 1024), CHECK_INT(kbi_shared_align(513, 1 << 20), 2 << 20);
    CHECK(!kbi_shared_place(&gpu, &m, KB_HOST, 100) && !kbi_shared_place(&gpu, &m, KB_PINNED, 100));
    CHECK_INT(m.layout_bytes, 0);
    CHECK(!kbi_shared_place(&gpu, &m, KB_DEVICE, 100)), CHECK_INT(m.layout_bytes, 100), CHECK_INT(m.layout_peak, 100);
    CHECK(!kbi_shared_place(&kbi_cpu, &m, KB_PINNED, 100)), CHECK_INT(m.layout_bytes, 100);
    CHECK(!kbi_shared_place(&kbi_cpu, &m, KB_HOST, 100)), CHECK_INT(m.layout_bytes, 612),
        CHECK_INT(m.layout_peak, 612);
    // with two implementations, the shared buffers are restored to the contents that each implementation left in
    // them
    kbi_memory other = m, *both[] = { &m, &other };
    kbi_shared_buffers s;
    CHECK(kbi_shared_open(&s, &kbi_cpu, both, 2));
    CHECK_INT((uintptr_t)s.base % (2 << 20), 0), CHECK(m.saved >= s.base + 612 && other.saved >= m.saved + 612);
    for (int i = 0; i < 2; i++) {
        char* at;
        both[i]->layout_bytes = 0;
        kbi_shared_enter(both[i]);
        at = kbi_shared_place(&kbi_cpu, both[i], KB_DEVICE, 612);
        CHECK(at == s.base);
        memset(at, 'a' + i, 612);
    }
    for (int i = 0; i < 4; i++) {
        kbi_shared_enter(both[i % 2]);
        CHECK_THAT(s.base[0] == 'a' + i % 2 && s.base[611] == 'a' + i % 2, "turn %d: %c %c", i, s.base[0],
                   s.base[611]);
    }
    CHECK(!m.separate);
    m.layout_bytes = 0;
    CHECK(!kbi_shared_place(&kbi_cpu, &m, KB_DEVICE, 613) && m.separate);
    // after a block without room in the shared memory, later blocks are not placed there either
    CHECK(!kbi_shared_place(&kbi_cpu, &m, KB_DEVICE, 1));
    kbi_shared_close(&s, both, 2);
    CHECK(!m.shared && !m.saved && !other.shared && !other.saved);
}

static void test_guards(void) {
    static const int64_t sizes[] = { 1, 255, 256, 257, 5000 };
    for (int i = 0; i < 5; i++) {
        kbi_run* run = new_run();
        kbi_memory* m = &run->memory;
        char* p = (char*)kbi_memory_alloc(&kbi_cpu, m, KB_DEVICE, (size_t)sizes[i]);
        int64_t n = sizes[i], padded = (n + 255) / 256 * 256 - n, at[] = { -4096, -1, n, n + padded + 4095 };
        CHECK_INT(m->device, n), CHECK_INT(m->host, 0), CHECK_INT(m->n, 1);
        CHECK_INT((unsigned char)p[0], KBI_POISON), CHECK_INT((unsigned char)p[n - 1], KBI_POISON);
        p[0] = p[n - 1] = 1;
        kbi_check_guards(run), CHECK(!kbi_failed(run));
        for (int k = 0; k < 4; k++) {
            char was = p[at[k]], says[50];
            p[at[k]] = 1, run->m.status = KB_OK, run->m.message[0] = 0;
            snprintf(says, sizeof says, "byte %d %s", (int)(k < 2 ? -at[k] : at[k] - n + 1),
                     k < 2 ? "before the" : "after the");
            kbi_check_guards(run), CHECK_HAS(run->m.message, says);
            p[at[k]] = was;
        }
        kbi_memory_free(&kbi_cpu, m, false, true);
        CHECK_INT(m->device, 0), CHECK_INT(m->device_peak, n), CHECK_INT(m->n, 0), CHECK(!m->blocks);
    }
    // n: requested bytes of the block; at: index of the overwritten byte, from the start of the block (negative:
    // before the block)
    static const struct {
        int64_t n, at;
        const char* says;
    } rows[] = { { 0, 0, "byte 1 after the end of a block of 0 bytes was overwritten" },
                 { 0, -1, "byte 1 before the start of a block of 0 bytes was overwritten" },
                 { 300, 300, "byte 1 after the end of a block of 300 bytes was overwritten" },
                 { 300, 309, "byte 10 after the end of a block of 300 bytes was overwritten" },
                 { 300, -16, "byte 16 before the start of a block of 300 bytes was overwritten" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_run* run = new_run();
        char* p = (char*)kbi_memory_alloc(&kbi_cpu, &run->memory, KB_HOST, (size_t)rows[i].n);
        p[rows[i].at] = 1;
        kbi_check_guards(run);
        CHECK_STR(run->m.message, rows[i].says), CHECK_INT(run->m.flags, (uint64_t)1 << KB_FLAG_OVERRUN);
        kbi_memory_free(&kbi_cpu, &run->memory, false, true);
    }
}

// --- data received from a worker ---

static void test_received(void) {
    static struct {
        kbi_measured m;
        double values[11];
    } sent, got;
    double other_process;
    for (int i = 0; i < 11; i++) sent.values[i] = i;
    sent.m.n = 5, sent.m.rounds = 3;
    for (int control = 0; control < 2; control++) {
        size_t size = sizeof sent.m + (control ? 11 : 8) * sizeof(double);
        sent.m.samples = sent.m.round_ns = &other_process, sent.m.control_ns = control ? &other_process : NULL;
        got = sent;
        CHECK(kbi_measured_receive(&got.m, size));
        for (int i = 0; i < 5; i++) CHECK_REAL(got.m.samples[i], i, 0);
        for (int i = 0; i < 3; i++) CHECK_REAL(got.m.round_ns[i], 5 + i, 0);
        for (int i = 0; i < 3 && control; i++) CHECK_REAL(got.m.control_ns[i], 8 + i, 0);
        CHECK((got.m.control_ns != NULL) == control);
        kbi_measured_free(&got.m), CHECK(!got.m.samples && !got.m.round_ns && !got.m.control_ns);
    }
    got = sent, got.m.n = 12, CHECK(!kbi_measured_receive(&got.m, sizeof got));
    got.m.n = -1, CHECK(!kbi_measured_receive(&got.m, sizeof got));
}

// --- comparisons: order of slots, shared buffers, arrays of rounds ---

// In a full cycle, every implementation runs equally often at each position and after each of the other
// implementations.
static void test_order(void) {
    for (int n = 1; n <= 9; n++) {
        int cycle = n % 2 ? 2 * n : n, at[9][9], behind[9][9], first[9], order[KBI_SLOTS], different = 0;
        memset(at, 0, sizeof at), memset(behind, 0, sizeof behind);
        for (int round = 0; round < cycle; round++) {
            int seen = 0;
            kbi_slot_order(order, n, round, 7);
            for (int k = 0; k < n; k++) {
                CHECK(order[k] >= 0 && order[k] < n);
                seen |= 1 << order[k], at[order[k]][k]++;
                if (k) behind[order[k]][order[k - 1]]++;
                if (round == 0) first[k] = order[k];
            }
            CHECK_INT(seen, (1 << n) - 1);
        }
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                CHECK_THAT(at[i][k] == cycle / n, "%d of %d is %d times at place %d", i, n, at[i][k], k);
                if (i != k) CHECK_THAT(behind[i][k] == cycle / n, "%d of %d behind %d: %d", i, n, k, behind[i][k]);
            }
        for (int round = 0; round < 20 * cycle; round += cycle) { // every cycle has a new random order
            kbi_slot_order(order, n, round, 7);
            different += memcmp(order, first, sizeof(int) * (size_t)n) != 0;
        }
        CHECK(n < 3 || different > 5);
    }
}

static kbi_member arms_of[4], *arm_list[4] = { &arms_of[0], &arms_of[1], &arms_of[2], &arms_of[3] };
static kbi_comparison new_contest(int n) {
    kbi_comparison c;
    memset(&c, 0, sizeof c), memset(arms_of, 0, sizeof arms_of);
    kbi_recipe_default(&recipe), kbi_machine_clear(&machine_here, "script");
    memcpy(c.members, arm_list, sizeof arm_list), c.n = c.slots = n, c.recipe = &recipe;
    for (int i = 0; i < 4; i++) {
        kbi_run* run = &arms_of[i].run;
        kbi_measured_clear(&run->m);
        run->recipe = &recipe, run->machine = &machine_here, run->backend = &kbi_cpu;
        arms_of[i].index = 10 + i;
    }
    return c;
}

static void test_contest_enough(void) {
    static const struct {
        int rounds_done, rounds, max_rounds, samples, apart, have;
        double seconds;
        int want;
    } rows[] = { { 16, 0, 64, 0, 0, 40, 1.6, 1 }, { 15, 0, 64, 0, 0, 40, 1.6, 0 }, { 8, 0, 64, 0, 0, 40, 1.6, 0 },
                 { 17, 0, 64, 0, 0, 40, 1.6, 0 }, { 24, 0, 64, 0, 0, 40, 1.6, 1 }, { 16, 0, 64, 0, 1, 40, 1.6, 0 },
                 { 64, 0, 64, 0, 1, 40, 1.6, 1 }, { 63, 0, 64, 0, 1, 40, 1.6, 0 }, { 56, 0, 64, 0, 1, 40, 1.6, 0 },
                 { 16, 0, 64, 0, 0, 20, 1.6, 0 }, { 5, 5, 64, 0, 1, 20, 0, 1 },    { 4, 5, 64, 0, 0, 40, 9.0, 0 },
                 { 6, 5, 64, 0, 1, 20, 0, 1 },    { 6, 0, 64, 0, 1, 40, 3.0, 1 },  { 6, 0, 64, 0, 1, 40, 2.99, 0 },
                 { 6, 0, 64, 0, 1, 6, 3.0, 0 },   { 5, 0, 64, 0, 1, 40, 3.0, 0 },  { 5, 0, 64, 0, 1, 40, 12.0, 1 },
                 { 5, 0, 64, 0, 1, 40, 11.9, 0 }, { 3, 0, 64, 40, 1, 40, 0, 1 },   { 3, 0, 64, 41, 0, 40, 9.0, 0 },
                 { 512, 600, 64, 0, 1, 1, 0, 1 } };
    static double samples[64];
    for (int i = 0; i < 64; i++) samples[i] = 1000 + i % 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_comparison c = new_contest(2);
        c.rounds = rows[i].rounds_done;
        recipe.rounds = rows[i].rounds, recipe.max_rounds = rows[i].max_rounds, recipe.samples = rows[i].samples;
        for (int k = 0; k < 2; k++) {
            arms_of[k].run.m.n = rows[i].have, arms_of[k].run.m.samples = samples;
            for (int r = 0; r < KBI_ROUNDS_LIMIT; r++)
                arms_of[k].ns[r] = 1000 + (rows[i].apart && k ? 100 * (r % 7) : r % 2);
        }
        CHECK_THAT(kbi_comparison_enough(&c, rows[i].seconds) == rows[i].want, "row %d", (int)i);
        for (int k = 0; k < 2; k++)
            CHECK((arms_of[k].run.sampling.next_check == INT64_MAX) == (rows[i].rounds_done % 8 != 0));
    }
    kbi_comparison c = new_contest(2);
    recipe.samples = 40, arms_of[0].run.m.n = 40, arms_of[1].run.m.n = 3;
    CHECK(!kbi_comparison_enough(&c, 0));
    arms_of[1].over = true;
    CHECK(kbi_comparison_enough(&c, 0));
}

// The bytes of the shared buffers that an implementation uses, and the number of copies of its data that together
// exceed twice L2.
static void test_room(void) {
    kbi_memory m;
    memset(&m, 0, sizeof m);
    CHECK_INT(kbi_shared_span(&m, 512), 0);
    m.layout_peak = 100;
    CHECK_INT(kbi_shared_span(&m, 512), 100);
    m.copies = 1;
    CHECK_INT(kbi_shared_span(&m, 512), 100);
    m.copies = 4;
    CHECK_INT(kbi_shared_span(&m, 512), 3 * 512 + 100);
    kbi_run* run = new_run();
    machine_here.l2 = 1000;
    static const int64_t bytes[] = { 0, 1, 500, 2000, 2001, -1 }, copies[] = { 0, 2002, 6, 3, 2, 0 };
    for (int i = 0; i < 6; i++) CHECK_INT(kbi_copies_needed(run, bytes[i]), copies[i]);
}

static void test_rounds_kept(void) {
    for (int how = 0; how < 5; how++) {
        kbi_comparison c = new_contest(how == 1 ? 1 : 2);
        c.rounds = 3, c.staged = how != 3;
        if (c.n > 1) c.slots = how == 2 ? 2 : 3;
        for (int i = 0; i < 3; i++)
            for (int r = 0; r < 3; r++) arms_of[i].ns[r] = 100 * i + r;
        for (int i = 0; i < 2; i++) {
            kbi_run* run = &arms_of[i].run;
            run->m.samples = (double*)kbi_grow(NULL, sizeof(double) * 2);
            run->m.samples[0] = 5, run->m.samples[1] = 6;
            run->m.n = 2, run->memory.layout_peak = 1, run->m.rounds = run->m.stage = run->m.contest = -7;
            if (how == 4) run->m.status = KB_FAILED;
            kbi_member_keep_rounds(&c, &arms_of[i]);
            CHECK(run->m.samples[0] == 5 && run->m.samples[1] == 6);
            if (how == 1 || how == 4) {
                CHECK_INT(run->m.rounds, -7), CHECK_INT(run->m.contest, -7);
                CHECK(!run->m.round_ns && !run->m.control_ns);
                continue;
            }
            CHECK_INT(run->m.rounds, 3), CHECK_INT(run->m.arms, 2), CHECK_INT(run->m.contest, 10);
            CHECK_INT(run->m.stage, how != 3), CHECK(!run->m.control_ns == (i == 1 || how == 2));
            for (int r = 0; r < 3; r++) CHECK_REAL(run->m.round_ns[r], 100 * i + r, 0);
            for (int r = 0; r < 3 && run->m.control_ns; r++) CHECK_REAL(run->m.control_ns[r], 200 + r, 0);
        }
        for (int i = 0; i < 2; i++) kbi_measured_free(&arms_of[i].run.m);
    }
    kbi_comparison c = new_contest(2);
    c.staged = true, c.rounds = 1;
    for (int i = 0; i < 2; i++) {
        kbi_run* run = &arms_of[i].run;
        run->memory.separate = i, run->memory.layout_peak = i;
        kbi_member_keep_rounds(&c, &arms_of[i]);
        CHECK_INT(run->m.stage, 0);
        KBENCH_FREE(run->m.samples);
    }
}

// --- adding samples ---

static void test_samples(void) {
    kbi_run* run = new_run();
    double settled[3] = { 0, 0, 7 };
    run->call.unit = KBI_SAMPLE;
    for (int i = 0; i < 1000; i++) {
        kbi_add_sample(run, i);
        CHECK_INT(run->m.n, i + 1);
    }
    for (int i = 0; i < 1000; i++) CHECK(run->m.samples[i] == i);
    run->schedule.discard = 3, run->schedule.discarded_ns = settled;
    kbi_add_sample(run, 11), kbi_add_sample(run, 12);
    CHECK_INT(run->schedule.discard, 1), CHECK_INT(run->m.n, 1000);
    CHECK(settled[0] == 11 && settled[1] == 12 && settled[2] == 7 && run->schedule.discarded_ns == settled + 2);
    run->schedule.discarded_ns = NULL;
    kbi_add_sample(run, 13), CHECK_INT(run->schedule.discard, 0), CHECK_INT(run->m.n, 1000);
    kbi_add_sample(run, 14), CHECK_INT(run->m.n, 1001);
    run->call.unit = KBI_WARM, run->work.estimate_ns = 500;
    static const double ns[] = { 600, 500, 400, 450, 300, 350 };
    static const int64_t least[] = { 500, 500, 400, 400, 300, 300 };
    run->schedule.discard = 2;
    for (int i = 0; i < 6; i++) {
        kbi_add_sample(run, ns[i]);
        CHECK_INT(run->work.estimate_ns, least[i]), CHECK_INT(run->work_change.n_early, KBI_MIN(i + 1, 4));
        CHECK_INT(run->call.window.n, i + 1), CHECK(run->call.window.ns[i] == ns[i]);
    }
    for (int i = 0; i < 4; i++) CHECK(run->work_change.early_ns[i] == ns[i]);
    CHECK_INT(run->m.n, 1001), CHECK_INT(run->schedule.discard, 2);
    run->call.window.n = KBI_WINDOW - 1;
    kbi_add_sample(run, 21), kbi_add_sample(run, 22);
    CHECK(run->call.window.ns[KBI_WINDOW - 1] == 21 && run->call.window.ns[0] == 22);
    CHECK_INT(run->call.window.n, KBI_WINDOW + 1);
    KBENCH_FREE(run->m.samples);
}

// --- the engine: choice of the next unit ---

static void test_units(void) {
    kbi_run* run = new_run();
    static kbi_timer timer;
    kbi_backend b = kbi_cpu;
    run->backend = &b, run->sampling.timer = &timer;
    static const struct {
        int order, settling, open, n, rests, enough;
    } slots[] = { { KBI_SLOT, 0, 0, 8, 1, 0 },      { KBI_SLOT, 0, 0, 9, 1, 0 },
                  { KBI_SLOT, 0, 0, 7, 0, 0 },      { KBI_SLOT, 1, 0, 8, 0, 0 },
                  { KBI_SLOT, 0, 1, 8, 0, 0 },      { KBI_UNMANAGED, 0, 0, 7, 0, 0 },
                  { KBI_UNMANAGED, 0, 0, 8, 0, 1 }, { KBI_UNMANAGED, 0, 1, 8, 0, 0 },
                  { KBI_FINISH, 0, 0, 7, 0, 1 } };
    static double ten[10];
    static kb_entry entry;
    kbi_case c = case_of(&entry);
    recipe.samples = 8, run->m.samples = ten, run->bench_case = &c;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        run->schedule.command = (kbi_command)slots[i].order, run->schedule.discard = slots[i].settling;
        run->sampling.open = slots[i].open, run->m.n = slots[i].n, run->schedule.slot_end = 8;
        run->schedule.suspended = false, run->call.phase = KBI_PHASE_SAMPLE;
        kbi_unit unit = kbi_choose_sample(run);
        CHECK_INT(run->schedule.suspended, slots[i].rests);
        CHECK_THAT((unit == KBI_SAMPLE) == (!slots[i].rests && !slots[i].enough), "slot %d", (int)i);
    }
    run->sampling.open = run->schedule.suspended = false, run->m.n = 0;
    static const struct {
        int begin, host, audit, want;
        unsigned expect;
    } audits[] = { { 1, 0, 1, 1, 0 },
                   { 0, 0, 1, 0, 0 },
                   { 1, 1, 1, 0, 0 },
                   { 1, 0, 0, 0, 0 },
                   { 1, 0, 1, 0, KB_EXPECT_SYNC },
                   { 1, 0, 1, 0, KB_EXPECT_ALLOC },
                   { 1, 0, 1, 1, KB_EXPECT_TRANSFER } };
    for (size_t i = 0; i < sizeof audits / sizeof *audits; i++) {
        b.capture.begin = audits[i].begin ? (void (*)(kbi_run*))abort : NULL;
        run->work.host = audits[i].host, recipe.audit = audits[i].audit, run->work.expect = audits[i].expect;
        CHECK_INT(kbi_wants_audit(run), audits[i].want);
    }
    run->work.host = false, run->work.expect = 0;
    for (int i = 0; i < 16; i++) {
        b.capture.compare = i & 1 ? (void (*)(kbi_run*))abort : NULL;
        run->work.shape = i >> 1 & 1, machine_here.simulated = !(i >> 2 & 1), run->schedule.is_copy = !(i >> 3);
        run->call.phase = KBI_PHASE_COMPARE, run->call.last = KBI_PHASE_FINAL, run->work_change.compared = 0;
        CHECK_INT(kbi_choose_unit(run), i == 15 ? KBI_COMPARED : KBI_NO_UNIT);
    }
    machine_here.simulated = false, run->schedule.is_copy = false;
    for (int i = 0; i < 8; i++) {
        machine_here.tool[0] = i & 1 ? 'x' : 0, b.gpu = i >> 1 & 1, run->work.host = !(i >> 2);
        CHECK_INT(kbi_only_checked(run), i == 7);
    }
    machine_here.tool[0] = 0, run->work.host = false, b.gpu = false;
    // Without outputs to restore, a final check requires a block called by pointer (kb_run), and a comparison of
    // its launches.
    for (int i = 0; i < 4; i++) {
        run->work.by_pointer = i & 1, run->work_change.compared = i >> 1, run->call.phase = KBI_PHASE_FINAL;
        CHECK_INT(kbi_choose_unit(run), i == 3 ? KBI_FINAL : KBI_NO_UNIT);
    }
    run->call.last = KBI_PHASE_PROFILE;
    kbi_phase_enter(run, KBI_PHASE_WARM), CHECK_INT(run->call.phase, KBI_PHASE_PROFILE);
    run->call.last = KBI_PHASE_FINAL;
    kbi_phase_enter(run, KBI_PHASE_WARM), CHECK_INT(run->call.phase, KBI_PHASE_WARM);
}

// If a timer takes its samples itself (timer.replay), each sample counts as one run of the current phase.
static void sample_of_its_own(kbi_run* run) { kbi_add_sample(run, run->call.unit == KBI_WARM ? 100 : 200); }
static void test_alone(void) {
    static kbi_timer timer;
    kbi_run* run = new_run();
    static kb_entry entry;
    kbi_case c = case_of(&entry);
    timer.replay = sample_of_its_own, run->sampling.timer = &timer, run->bench_case = &c;
    run->call.phase = KBI_PHASE_WARM, run->call.last = KBI_PHASE_FINAL;
    recipe.warmup_samples = 3, recipe.samples = 1;
    CHECK_INT(kbi_choose_unit(run), KBI_NO_UNIT), CHECK_INT(run->call.unit, KBI_NO_UNIT);
    CHECK_INT(run->call.warm_units, 3), CHECK_INT(run->call.window.n, 3);
    CHECK_INT(run->m.n, 1), CHECK_REAL(run->m.samples[0], 200, 0);
    KBENCH_FREE(run->m.samples);
}

static void test_turns(void) {
    static const struct {
        int steady, by_clock, stand_in, launches, order, n;
        int64_t estimate;
        int settling;
    } rows[] = { { 0, 0, 0, 8, KBI_UNMANAGED, 30, 1000, 24 },  { 1, 0, 0, 8, KBI_UNMANAGED, 30, 1000, 0 },
                 { 0, 0, 1, 8, KBI_UNMANAGED, 30, 1000, 0 },   { 0, 0, 0, 1, KBI_UNMANAGED, 24, 1000, 0 },
                 { 0, 0, 0, 1, KBI_UNMANAGED, 23, 1000, 24 },  { 0, 0, 0, 1, KBI_FINISH, 30, 1000, 24 },
                 { 0, 1, 0, 1, KBI_UNMANAGED, 30, 1000, 24 },  { 0, 0, 0, 8, KBI_UNMANAGED, 30, 8333333, 24 },
                 { 0, 0, 0, 8, KBI_UNMANAGED, 30, 8333334, 0 } };
    static double ns[30];
    for (int i = 0; i < 30; i++) ns[i] = 1000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static kb_entry entry;
        kbi_case c = case_of(&entry);
        kbi_run* run = new_run();
        kbi_timer timer;
        memset(&timer, 0, sizeof timer);
        timer.steady = rows[i].steady, timer.host_clock = rows[i].by_clock;
        run->bench_case = &c, run->sampling.timer = &timer, run->m.samples = ns, run->call.phase = KBI_PHASE_SINGLES;
        run->schedule.is_copy = rows[i].stand_in, run->m.launches = rows[i].launches, run->m.n = rows[i].n;
        run->schedule.command = (kbi_command)rows[i].order, run->work.estimate_ns = rows[i].estimate;
        kbi_unit unit = kbi_choose_turn(run);
        CHECK_THAT(run->schedule.discard == rows[i].settling, "row %d: %d turns", (int)i, run->schedule.discard);
        CHECK_INT(unit, rows[i].settling ? KBI_SAMPLE : KBI_NO_UNIT);
        CHECK(run->schedule.discarded_ns == (rows[i].settling ? run->work_change.single_ns : NULL));
    }
}

// --- memory: valid ranges; outputs saved, restored and proven ---

static kb_state* new_state(kbi_run* run) {
    run->kb.run = run, run->kb.seed = 42;
    run->memory.free_before = run->memory.free_lowest = KB_NONE;
    return &run->kb;
}

static void test_may(void) {
    kbi_run* run = new_run();
    kb_state* kb = new_state(run);
    char* p = (char*)kb_alloc(kb, KB_DEVICE, 4, 25);
    static char other[8];
    const struct {
        const void* p;
        int64_t n;
        size_t size;
        const char* message;
    } rows[] = { { p, 100, 1, "" },
                 { p, 101, 1, "fill of 101 words exceeds its block of 100 bytes" },
                 { p + 1, 99, 1, "" },
                 { p + 1, 100, 1, "fill of 100 words exceeds its block of 100 bytes" },
                 { p, 25, 4, "" },
                 { p, 26, 4, "fill of 26 words exceeds its block of 100 bytes" },
                 { p, 12, 8, "" },
                 { p, 13, 8, "fill of 13 words exceeds its block of 100 bytes" },
                 { p + 99, 1, 1, "" },
                 { p + 99, 2, 1, "fill of 2 words exceeds its block of 100 bytes" },
                 { p + 100, 9, 1, "" },
                 { p - 1, 9, 1, "" },
                 { other, 999, 1, "" },
                 { p, -1, 1, "fill of -1 words: the number is negative" },
                 { NULL, 0, 1, "" },
                 { NULL, 1, 1, "fill got a NULL pointer" },
                 { p, 1, 0, "fill got words without a type" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run->m.status = KB_OK, run->m.message[0] = 0;
        CHECK_THAT(kbi_range_valid(run, "fill", rows[i].p, rows[i].n, rows[i].size, "words") == !rows[i].message[0],
                   "row %d", (int)i);
        CHECK_STR(run->m.message, rows[i].message);
    }
    CHECK(kbi_failed(run) && !kbi_range_valid(run, "fill", p, 1, 1, "words"));
    run->m.status = KB_OK, run->m.message[0] = 0;
    CHECK(kbi_block_of(run, p) == run->memory.blocks && kbi_block_of(run, p + 99) == run->memory.blocks);
    CHECK(!kbi_block_of(run, p - 1) && !kbi_block_of(run, p + 100));
    static const struct {
        int place;
        size_t size;
        int64_t count;
        const char* message;
    } none[] = { { KB_DEVICE, 4, -1, "kb_alloc of -1 elements of 4 bytes" },
                 { KB_DEVICE, 8, INT64_MAX / 8 + 1, "kb_alloc of 1152921504606846976 elements of 8 bytes" },
                 { KB_DEVICE, 8, INT64_MAX / 8, "no room for " },
                 { KB_DEVICE - 1, 4, 1, "kb_alloc takes KB_DEVICE, KB_HOST or KB_PINNED" },
                 { KB_PINNED + 1, 4, 1, "kb_alloc takes KB_DEVICE, KB_HOST or KB_PINNED" } };
    for (int i = 0; i < 5; i++) {
        run->m.status = KB_OK, run->m.message[0] = 0, run->m.flags = 0;
        CHECK(!kb_alloc(kb, (kb_place)none[i].place, none[i].size, none[i].count));
        CHECK_HAS(run->m.message, none[i].message);
        CHECK(run->m.flags == (uint64_t)1 << (i == 2 ? KB_FLAG_OOM : KB_FLAG_BAD_CASE));
        CHECK(!kb_alloc(kb, KB_HOST, 1, 1));
    }
    run->m.status = KB_OK, run->m.message[0] = 0;
    CHECK(kb_alloc(kb, KB_PINNED, 1, 1) && kb_alloc(kb, KB_HOST, 0, 5) && kb_alloc(kb, KB_HOST, 5, 0));
    CHECK_INT(run->memory.n, 4);
    kbi_memory_free(run->backend, &run->memory, false, true);
    CHECK_INT(run->memory.device, 0), CHECK_INT(run->memory.host, 0), CHECK(!run->memory.blocks);
    CHECK_INT(run->memory.device_peak, 100), CHECK_INT(run->memory.host_peak, 1);
}

static void test_fills(void) {
    kbi_run* run = new_run();
    kb_state* kb = new_state(run);
    float *p = (float*)kb_alloc(kb, KB_HOST, 4, 16), want[16];
    for (uint32_t i = 0; i < 3; i++) {
        kbi_fill(kb, p, KB_F32, 16, i == 1 ? KB_ZERO : KB_NORMAL);
        kbi_fill_host(want, 0, 16, (int)KB_F32, (int)(i == 1 ? KB_ZERO : KB_NORMAL), 42, i);
        CHECK(memcmp(p, want, sizeof want) == 0);
        CHECK_INT(run->call.fills, i + 1), CHECK_INT(run->call.zeros, i > 0);
    }
    kbi_fill(kb, p, KB_F32, 0, KB_IOTA), kbi_fill(kb, p, KB_F32, 16, KB_IOTA);
    CHECK(p[15] == 15 && run->m.status == KB_OK && run->call.fills == 5);
    for (int i = 0; i < 2; i++) {
        run->m.status = KB_OK;
        kbi_fill(kb, p, KB_F32, 16, (kb_kind)(i ? KB_IOTA + 1 : KB_ZERO - 1));
        CHECK(kbi_failed(run));
    }
    CHECK_HAS(run->m.message, "kb_fill takes KB_ZERO");
    kbi_memory_free(run->backend, &run->memory, false, true);
    run = new_run(), kb = new_state(run);
    char *a = (char*)kb_alloc(kb, KB_DEVICE, 1, 10), *b = (char*)kb_alloc(kb, KB_DEVICE, 1, 20), host[20];
    memset(host, 7, sizeof host);
    kb_from_host(kb, a, host, 10);
    CHECK(a[0] == 7 && a[9] == 7);
    run->call.last = KBI_PHASE_CHECK;
    kb_to_host(kb, host, b, 20);
    const kbi_block* block = run->memory.blocks;
    CHECK(!block[1].output), CHECK_INT((unsigned char)host[19], KBI_POISON);
    run->call.looped = true, run->call.last = KBI_PHASE_FINAL;
    kb_to_host(kb, host, b, 20); // kb_to_host marks outputs only in the check phase
    CHECK(!block[1].output);
    run->call.last = KBI_PHASE_CHECK;
    for (int i = 0; i < 2; i++) kb_to_host(kb, host, b, 20);
    CHECK(block[1].output && !block[0].output), CHECK_INT(run->memory.output_bytes, 20);
    kb_to_host(kb, host, a + 9, 1);
    CHECK(block[1].output && block[0].output), CHECK_INT(run->memory.output_bytes, 30);
    kbi_memory_free(run->backend, &run->memory, false, false);
    a = (char*)kb_alloc(kb, KB_DEVICE, 1, 10);
    CHECK(run->memory.blocks[0].output && run->memory.blocks[1].output && run->memory.n == 1);
    kb_to_host(kb, host, a, 11);
    CHECK_HAS(run->m.message, "kb_to_host of 11 bytes exceeds its block of 10 bytes");
    run->m.status = KB_OK, run->m.message[0] = 0, kb_from_host(kb, a, host, 11);
    CHECK_HAS(run->m.message, "kb_from_host of 11 bytes exceeds its block of 10 bytes");
    run->m.status = KB_OK, run->m.message[0] = 0, kb_to_host(kb, NULL, a, 1);
    CHECK_HAS(run->m.message, "kb_to_host got a NULL pointer");
    run->m.status = KB_OK, run->m.message[0] = 0, kb_from_host(kb, a, NULL, 1);
    CHECK_HAS(run->m.message, "kb_from_host got a NULL pointer");
    kbi_memory_free(run->backend, &run->memory, false, true);
}

// Outputs are restored before the last run, so an output that differs afterwards proves that the last run wrote
// it.
static void test_held(void) {
    static const size_t sizes[] = { 1, 64, 65, 78, 79, 1009, 100024, 100030 };
    for (int i = 0; i < 8; i++) {
        kbi_run* run = new_run();
        kb_state* kb = new_state(run);
        size_t n = sizes[i];
        char *out = (char*)kb_alloc(kb, KB_DEVICE, 1, (int64_t)n), *in = (char*)kb_alloc(kb, KB_HOST, 1, 50);
        run->memory.blocks[0].output = true, run->call.last = KBI_PHASE_FINAL, run->work.checked = true;
        CHECK(!kbi_restore_outputs(run));
        memset(out, 1, n);
        kbi_save_outputs(run);
        CHECK(run->memory.blocks[0].saved && !run->memory.blocks[1].saved), CHECK_INT(run->memory.saved_bytes, n);
        CHECK(!run->memory.blocks->changed);
        out[n - 1] = 2;
        CHECK(kbi_restore_outputs(run)), CHECK(run->memory.blocks->changed), CHECK_INT(out[n - 1], 1);
        CHECK(!kbi_output_seen(run, false) && !kbi_output_seen(run, true));
        run->call.restored = true;
        CHECK(!kbi_output_seen(run, false) && kbi_output_seen(run, true));
        out[0] = 3;
        CHECK(kbi_output_seen(run, false) && !kbi_output_seen(run, true));
        kbi_restore_outputs(run);
        run->memory.blocks->changed = false;
        CHECK(!kbi_output_seen(run, false) && !kbi_output_seen(run, true));
        // The first save copies the output. The second save finds no change of the output: kbench sets `changed`
        // and copies nothing.
        memset(out, 5, n);
        kbi_save_outputs(run);
        CHECK(!run->memory.blocks->changed), CHECK_INT(run->memory.blocks->saved[0], 5);
        CHECK_INT(run->memory.saved_bytes, n);
        kbi_save_outputs(run);
        CHECK(run->memory.blocks->changed);
        out[n - 1] = 9, in[0] = 4;
        kbi_memory_reuse(run);
        CHECK(run->memory.n == 0 && run->memory.n_known == 2 && run->memory.layout_bytes == 0);
        CHECK_INT(run->memory.blocks->saved[n - 1], 9);
        CHECK(kb_alloc(kb, KB_DEVICE, 1, (int64_t)n) == out && out[n - 1] == 9 && run->memory.n == 1);
        CHECK(kb_alloc(kb, KB_HOST, 1, 50) == in && in[0] == 4 && run->memory.n == 2);
        CHECK_INT(run->memory.device, n), CHECK_INT(run->memory.host, 50);
        kbi_memory_reuse(run);
        CHECK(kb_alloc(kb, KB_DEVICE, 1, (int64_t)n + 1) != NULL && !run->memory.blocks[1].data);
        CHECK_INT(run->memory.device, n + 1), CHECK_INT(run->memory.host, 0);
        kbi_memory_free(run->backend, &run->memory, false, true);
        CHECK_INT(run->memory.device, 0), CHECK_INT(run->memory.saved_bytes, 0);
    }
}

// Without restored outputs, it is unknown which launch wrote them, and a note says so.
static void test_unheld(void) {
    for (int i = 0; i < 6; i++) { // i > 0: kb_open; i > 1: large buffers; i != 3: the result was verified
        bool embedded = i > 0, large = i > 1, verified = i != 3;
        kbi_run* run = new_run();
        kb_state* kb = new_state(run);
        kb_alloc(kb, KB_HOST, 1, 50);
        run->call.last = KBI_PHASE_FINAL, run->work.checked = !embedded, run->call.looped = true;
        if (large) run->memory.host = ((int64_t)1 << 30) + (i != 5);
        kbi_save_outputs(run);
        CHECK_INT(run->memory.unsaved, large && i != 5),
            CHECK_INT(run->memory.blocks->saved != NULL, embedded && !run->memory.unsaved);
        run->m.verified = verified ? 1 : -1;
        if (i == 4) run->call.last = KBI_PHASE_CHECK;
        kbi_body_ended(run);
        kbi_memory_free(run->backend, &run->memory, false, true);
        CHECK_THAT((strstr(run->m.message, "could not be restored") != NULL) == (i == 2), "%d: %s", i,
                   run->m.message);
    }
}

static void test_constant(void) {
    for (int how = 0; how < 9; how++) {
        kbi_run* run = new_run();
        kb_state* kb = new_state(run);
        char *a = (char*)kb_alloc(kb, KB_DEVICE, 1, 6400), *b = (char*)kb_alloc(kb, KB_HOST, 1, 63);
        char* c = (char*)kb_alloc(kb, KB_DEVICE, 1, 64);
        run->call.zeros = how == 1 ? 0 : 2, run->call.fills = how == 2 ? 3 : how == 1 ? 0 : 2;
        memset(a, how == 8 ? 0xff : 0, 6400), memset(b, how, 63), b[5] = 77;
        if (how == 3) a[20] = 1;
        if (how == 4) a[6399] = 1;
        if (how == 5) a[(6400 - 64) / 3 + 17] = 1;
        if (how == 6) memset(c, 0, 64), c[63] = 1;
        if (how == 7) memset(c, 0, 64);
        CHECK_THAT(kbi_all_constant(run) == (how == 0 || how == 7), "how %d", how);
        kbi_memory_free(run->backend, &run->memory, false, true);
    }
    for (int k = 0; k < 4; k++) {
        static const char* const want[] = { "byte 1 before the start of a block of 10 bytes",
                                            "byte 4096 before the start of a block of 10 bytes",
                                            "byte 1 after the end of a block of 10 bytes",
                                            "byte 246 after the end of a block of 10 bytes" };
        static const int at[] = { -1, -4096, 10, 255 };
        kbi_run* run = new_run();
        kb_state* kb = new_state(run);
        char* p = (char*)kb_alloc(kb, KB_DEVICE, 1, 10);
        kbi_check_guards(run), CHECK_INT(run->m.status, KB_OK);
        p[at[k]] = 1;
        kbi_check_guards(run), CHECK_HAS(run->m.message, want[k]);
        CHECK(run->m.flags == (uint64_t)1 << KB_FLAG_OVERRUN);
        kbi_memory_free(run->backend, &run->memory, false, true);
    }
}

// The memory of a call is the larger of two values. One is the size of its tracked blocks plus the growth of the
// memory pool. The other is the decrease of the device's free memory.
static int64_t free_is, pool_is;
static int64_t free_now(void) { return free_is; }
static int64_t pool_now(bool reset) { return reset ? 5 : pool_is; }
static void test_taken(void) {
    static const struct {
        int64_t peak, pool_before, pool, before, lowest, now, held, had, want;
    } rows[] = { { 100, 0, 0, KB_NONE, KB_NONE, 0, 0, 0, 100 },   { 100, 0, 30, KB_NONE, KB_NONE, 0, 0, 0, 130 },
                 { 100, 10, 30, KB_NONE, KB_NONE, 0, 0, 0, 120 }, { 100, 40, 30, KB_NONE, KB_NONE, 0, 0, 0, 100 },
                 { 100, 0, 0, 1000, 800, 900, 0, 0, 200 },        { 100, 0, 0, 1000, 800, 700, 0, 0, 300 },
                 { 100, 0, 0, 1000, 800, 700, 50, 0, 250 },       { 100, 0, 0, 1000, 950, 960, 0, 0, 100 },
                 { 100, 0, 0, 1000, 800, 900, 0, 777, 777 } };
    kbi_backend b = kbi_cpu;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_run* run = new_run();
        new_state(run);
        run->backend = &b;
        b.memory.free_bytes = rows[i].before == KB_NONE ? NULL : free_now, b.memory.pool_peak = pool_now;
        free_is = rows[i].now, pool_is = rows[i].pool;
        run->memory.device_peak = rows[i].peak, run->memory.pool_before = rows[i].pool_before;
        run->memory.free_before = rows[i].before, run->memory.free_lowest = rows[i].lowest;
        run->memory.saved_bytes = rows[i].held, run->m.memory = rows[i].had, run->memory.host_peak = 9;
        kbi_memory_facts(run);
        CHECK_THAT(run->m.memory == rows[i].want, "row %d: %lld", (int)i, (long long)run->m.memory);
        CHECK_INT(run->m.host_memory, 9);
        run->memory.host_peak = 8, kbi_memory_facts(run), CHECK_INT(run->m.host_memory, 9);
    }
    // the first process shifts its memory by 0 bytes, later processes by a multiple of the guaranteed alignment
    int64_t different = 0;
    kbi_backend gpu = kbi_cpu;
    gpu.gpu = true;
    recipe.placement = 0;
    CHECK(kbi_placement(&recipe) == 0);
    for (int i = 1; i < 20; i++) {
        uint64_t last = recipe.placement ? kbi_placement(&recipe) : 0;
        recipe.placement = i;
        uint64_t p = kbi_placement(&recipe);
        different += p != last;
        CHECK_INT(kbi_placement_shift(&kbi_cpu, p, false), p % 256 * 256),
            CHECK_INT(kbi_placement_shift(&kbi_cpu, p, true), p % 256 * 256);
        CHECK_INT(kbi_placement_shift(&gpu, p, true), p % 4096 * 512),
            CHECK_INT(kbi_placement_shift(&gpu, p, false), 0);
        CHECK(p == kbi_placement(&recipe) && p >> 32 && (uint32_t)p);
    }
    CHECK_INT(different, 19);
    uint64_t one = kbi_placement(&recipe);
    recipe.seed++;
    CHECK(kbi_placement(&recipe) != one);
    recipe.seed += (uint64_t)1 << 32;
    uint64_t two = kbi_placement(&recipe);
    recipe.seed -= (uint64_t)1 << 32;
    CHECK(kbi_placement(&recipe) != two);
    static const int64_t sizes[] = { 0, 1, 256, 257 }, totals[] = { 8192, 8448, 8448, 8704 };
    for (int i = 0; i < 4; i++) CHECK_INT(kbi_block_total((size_t)sizes[i]), totals[i]);
}

static int alive, allowed;
static void* alloc_some(kb_place place, size_t bytes) {
    return (void)place, alive >= allowed ? NULL : (alive++, malloc(bytes));
}
static void release_some(kb_place place, void* p) { (void)place, alive--, free(p); }
static void test_stage_fails(void) {
    kbi_backend b = kbi_cpu;
    b.memory.alloc = alloc_some, b.memory.release = release_some;
    for (allowed = 0; allowed < 2; allowed++) {
        kbi_memory m[3], *all[] = { &m[0], &m[1], &m[2] };
        kbi_shared_buffers s;
        memset(m, 0, sizeof m);
        m[0].layout_peak = 100, m[1].layout_peak = 5000, m[2].layout_peak = 0, m[1].copies = 2;
        bool good = kbi_shared_open(&s, &b, all, 3);
        CHECK_INT(good, allowed), CHECK_INT(alive, allowed), CHECK_INT(s.stride, 5120);
        for (int i = 0; i < 3; i++)
            CHECK(m[i].shared == (good ? &s : NULL) && (m[i].saved != NULL) == (good && i < 2));
        if (good) kbi_shared_close(&s, all, 3);
        CHECK_INT(alive, 0);
        for (int i = 0; i < 3; i++) CHECK(!m[i].shared && !m[i].saved);
    }
    kbi_memory m, *one[] = { &m };
    kbi_shared_buffers s;
    memset(&m, 0, sizeof m), allowed = 1;
    CHECK(!kbi_shared_open(&s, &b, one, 1)), CHECK_INT(alive, 0);
    m.layout_peak = 8;
    CHECK(kbi_shared_open(&s, &b, one, 1)), CHECK(!m.saved), CHECK_INT(alive, 1);
    kbi_shared_close(&s, one, 1);
    CHECK_INT(alive, 0);
}

// --- profiler annotations (NVTX) ---

static struct {
    kbi_nvtx_event e;
    char text[600];
    uint64_t ended;
    int starts, ends;
} heard;
static int here;
static uint64_t hear_start(void* domain, const kbi_nvtx_event* e) {
    CHECK(domain == &here);
    heard.e = *e, heard.starts++;
    snprintf(heard.text, sizeof heard.text, "%s", (const char*)e->message);
    return 90 + (uint64_t)heard.starts;
}
static void hear_end(void* domain, uint64_t range) { CHECK(domain == &here), heard.ended = range, heard.ends++; }
static void* hear_name(void* domain, const char* name) {
    static char kept[600];
    CHECK(domain == &here);
    return snprintf(kept, sizeof kept, "%s", name), kept;
}
static void test_nvtx(void) {
    static const unsigned sizes[] = { 0, 16, 9, 15, 7, 16, 7 };
    kbi_nvtx_function** table = NULL;
    unsigned size = 99;
    CHECK(!kbi_nvtx_module(0, &table, &size) && !kbi_nvtx_module(7, &table, &size) &&
          !kbi_nvtx_module(-1, &table, &size));
    CHECK(!table && size == 99);
    for (int i = 1; i < 7; i++) {
        CHECK(kbi_nvtx_module(i, &table, &size) == 1), CHECK_INT(size, sizes[i]);
        CHECK(kbi_nvtx_module(i, &table, NULL) == 1);
        for (int k = 0; k < 16; k++) CHECK(table[k] == &kbi_nvtx.slots[i][k]);
        CHECK(!table[16]);
    }
    CHECK(kbi_nvtx_export(1) && kbi_nvtx_export(3) && !kbi_nvtx_export(0) && !kbi_nvtx_export(2));
    uint64_t range = 0, other = 0;
    kbi_nvtx_show(&range, "nobody listens", "op");
    CHECK(range == 0 && kbi_nvtx.asked);
    uint64_t (*start)(void*, const kbi_nvtx_event*) = hear_start;
    void (*end)(void*, uint64_t) = hear_end;
    void* (*enlist)(void*, const char*) = hear_name;
    memcpy(&kbi_nvtx.slots[5][2], &start, sizeof start), memcpy(&kbi_nvtx.slots[5][3], &end, sizeof end);
    kbi_nvtx_show(&range, "x", "op"), CHECK_INT(range, 0);
    kbi_nvtx.domain = &here;
    for (int named = 0; named < 2; named++) {
        if (named) memcpy(&kbi_nvtx.slots[5][10], &enlist, sizeof enlist);
        kbi_nvtx_show(&range, "a/b@c[1]*2+3,d-e", "op");
        CHECK_INT(range, 91 + named), CHECK_STR(heard.text, "a b c 1  2 3 d-e");
        CHECK_INT(heard.e.version, 3), CHECK_INT(heard.e.size, sizeof heard.e), CHECK_INT(heard.e.colour_is, 1);
        CHECK_INT(heard.e.message_is, named ? 3 : 1), CHECK_INT(heard.e.payload_is, 0),
            CHECK_INT(heard.e.category, 0);
        CHECK((heard.e.colour & 0xff404040u) == 0xff404040u);
        uint32_t colour = heard.e.colour;
        other = 0, kbi_nvtx_show(&other, "other", "op"), CHECK(heard.e.colour == colour);
        other = 0, kbi_nvtx_show(&other, "other", "op2"), CHECK(heard.e.colour != colour);
        heard.starts = 1 + named;
        kbi_nvtx_show(&range, NULL, NULL), CHECK_INT(heard.ended, 91 + named), CHECK_INT(range, 0),
            CHECK_INT(heard.ends, named + 1);
        kbi_nvtx_show(&range, NULL, NULL), CHECK_INT(heard.ends, named + 1);
    }
    // one range for each phase, one after another; a copy for --rotate has no ranges
    static const struct {
        kbi_phase phase;
        const char* name;
    } phases[] = { { KBI_PHASE_CHECK, "check" },   { KBI_PHASE_AUDIT, "audit" },
                   { KBI_PHASE_WARM, "warm-up" },  { KBI_PHASE_SAMPLE, "samples" },
                   { KBI_PHASE_SINGLES, "turns" }, { KBI_PHASE_COMPARE, "compare" },
                   { KBI_PHASE_FINAL, "final" },   { KBI_PHASE_PROFILE, "profile" },
                   { KBI_PHASE_DONE, "" } };
    static kb_entry entry;
    kbi_case c = case_of(&entry);
    kbi_run* run = new_run();
    run->bench_case = &c, heard.ends = heard.starts = 0;
    for (int i = 0; i < 9; i++) {
        heard.text[0] = 0;
        CHECK(i == 0 || phases[i].phase > phases[i - 1].phase);
        kbi_phase_enter(run, phases[i].phase);
        CHECK_STR(heard.text, phases[i].name), CHECK_INT(heard.ends, i), CHECK_INT(run->call.phase, phases[i].phase);
        CHECK_INT(heard.starts, i < 8 ? i + 2 : 9), CHECK_INT(run->ranges[0], 91),
            CHECK((run->ranges[1] != 0) == (i < 8));
    }
    run->schedule.is_copy = true;
    kbi_phase_enter(run, KBI_PHASE_CHECK), CHECK_INT(heard.starts, 9);
    memset(&kbi_nvtx, 0, sizeof kbi_nvtx), kbi_nvtx.asked = true;
}

static void test_insight(void) {
    kbi_insight* in = &kbi_meter.insight;
    int32_t a = kbi_insight_text(1, "first"), b = kbi_insight_text(2, "second");
    CHECK_INT(a, 0), CHECK_INT(b, 6), CHECK_INT(kbi_insight_text(1, "else"), 0), CHECK_STR(in->texts.s + b, "second");
    kbi_insight_count("n", "B", 3), kbi_insight_count("m", "%", NAN), kbi_insight_count("n", "s", 4),
        kbi_insight_count("m", "%", 5);
    const kbi_counter* c = (const kbi_counter*)(void*)in->counters.s;
    CHECK_INT(in->counters.n, 2 * sizeof *c);
    CHECK_STR(c[0].name, "n"), CHECK_STR(c[0].unit, "B"), CHECK_REAL(c[0].value, 3, 0), CHECK_REAL(c[1].value, 5, 0);
    kbi_insight_say("%s", "one"), CHECK_STR(in->head.message, "one");
    kbi_insight_say("%d", 2), CHECK_STR(in->head.message, "one; 2");
    for (int i = 0; i < 200; i++) kbi_insight_say("again");
    CHECK(strlen(in->head.message) < sizeof in->head.message);
    kbi_run* run = new_run();
    run->machine->device = 3;
    in->head.runs = 4, in->head.dropped = 5, in->head.energy_mj = 6, in->head.idle_w = 7;
    kbi_event e[2];
    memset(e, 0, sizeof e), e[1].start = 11;
    kbi_put(&in->events, (const char*)e, sizeof e);
    kbi_inside* all = kbi_inside_take(run);
    CHECK_INT(all->runs, 4), CHECK_INT(all->device, 3), CHECK_INT(all->events, 2);
    CHECK_INT(all->counters, 2), CHECK_INT(all->texts, 13), CHECK_INT(all->dropped, 5),
        CHECK_REAL(all->energy_mj, 6, 0);
    CHECK_REAL(all->idle_w, 7, 0), CHECK_HAS(all->message, "one; 2; again");
    CHECK_INT(kbi_events_of(all)[1].start, 11), CHECK_STR(kbi_counters_of(all)[1].name, "m");
    CHECK(!in->events.s && !in->texts.s && !in->head.runs && !in->head.message[0]);
    KBENCH_FREE(all);
    in->head.runs = -1, run->m.status = KB_FAILED, snprintf(run->m.message, sizeof run->m.message, "it broke");
    all = kbi_inside_take(run);
    CHECK_INT(all->runs, 0), CHECK_STR(all->message, "it broke");
    KBENCH_FREE(all);
}

// An instrument runs if it is requested and supports the kind of work (host or device). Instruments run one after
// the other, each until it has enough data.
static struct {
    // opened, closed: number of calls per instrument; begun: number of blocks; more: number of further runs that
    // the instrument requests
    int opened[4], closed[4], begun, more;
} looks;
static bool opens_0(kb_state* kb) { return (void)kb, looks.opened[0]++, true; }
static bool opens_1(kb_state* kb) { return (void)kb, looks.opened[1]++, true; }
static bool opens_2(kb_state* kb) { return (void)kb, looks.opened[2]++, false; }
static bool opens_3(kb_state* kb) { return (void)kb, looks.opened[3]++, true; }
static int64_t looks_begin(kb_state* kb) { return (void)kb, ++looks.begun; }
static bool looks_end(kb_state* kb) { return (void)kb, looks.more-- > 0; }
static void closes_0(kb_state* kb) { (void)kb, looks.closed[0]++; }
static void closes_3(kb_state* kb) { (void)kb, looks.closed[3]++; }
static void test_inside(void) {
    static kb_instrument of[4];
    static bool (*const opens[4])(kb_state * kb) = { opens_0, opens_1, opens_2, opens_3 };
    kb_instrument* registered = kbi_process.instruments;
    for (int i = 0; i < 4; i++) {
        of[i].bit = i < 2 ? 1u << i : 1u << (i - 1), of[i].host = i == 1;
        of[i].open = opens[i], of[i].begin = looks_begin, of[i].end = looks_end;
        of[i].close = i == 3 ? closes_3 : closes_0, of[i].next = i < 3 ? &of[i + 1] : NULL;
    }
    of[0].bit = 8; // bit 1 of the recipe is the inspection of the block, not an instrument
    kbi_backend b = kbi_cpu;
    kbi_run* run = new_run();
    kbi_insight* in = &kbi_meter.insight;
    kbi_insight_clear();
    run->backend = &b, b.gpu = true, b.timing.wait = NULL, recipe.inside = 6;
    kbi_process.instruments = of;
    // end = 0: the instrument gets enough data; end = 1: the case ends before the instrument has enough data
    for (int end = 0; end < 2; end++) {
        memset(&looks, 0, sizeof looks);
        looks.more = 1;
        CHECK(kbi_inside_wants(run)), CHECK(in->by == &of[3]), CHECK_INT(kbi_inside_begin(run), 1);
        CHECK(!looks.opened[0] && !looks.opened[1] && looks.opened[2] == 1 && looks.opened[3] == 1);
        kbi_inside_end(run), CHECK(in->again && kbi_inside_wants(run)), CHECK_INT(kbi_inside_begin(run), 2);
        CHECK_INT(looks.opened[3], 1), CHECK_INT(looks.closed[3], 0);
        kbi_inside_end(run), CHECK(!in->again);
        if (end == 0) CHECK(!kbi_inside_wants(run) && !kbi_inside_wants(run)), CHECK(in->over), CHECK(!in->open);
        KBENCH_FREE(kbi_inside_take(run));
        CHECK_INT(looks.closed[3], 1), CHECK_INT(looks.closed[0], 0), CHECK(!in->by);
    }
    run->work.host = true, recipe.inside = 3;
    memset(&looks, 0, sizeof looks);
    CHECK(kbi_inside_wants(run)), CHECK(in->by == &of[1]), CHECK(!looks.opened[0] && looks.opened[1] == 1);
    // without a GPU, all work is profiled by instruments for host work
    run->work.host = false, b.gpu = false, kbi_insight_clear();
    CHECK(kbi_inside_wants(run)), CHECK(in->by == &of[1]);
    kbi_insight_clear();
    kbi_process.instruments = registered;
    CHECK(kbi_run_cases(NULL, &recipe, &b, &machine_here, 0, 3, "\0\0\0", NULL));
}

// --- host work ---

static void test_wall(void) {
    kbi_run* run = new_run();
    run->sampling.batch = 7, run->work_change.n_early = KBI_EARLY;
    CHECK_INT(kbi_wall_runs(run), 7);
    recipe.launches = 3, CHECK_INT(kbi_wall_runs(run), 3);
    run->call.sampled = true, CHECK_INT(kbi_wall_runs(run), 1);
    run->call.sampled = false, run->call.phase = KBI_PHASE_SINGLES, CHECK_INT(kbi_wall_runs(run), 1);
    run->call.phase = KBI_PHASE_WARM, run->call.unit = KBI_WARM, CHECK_INT(kbi_wall_runs(run), 3);
    run->work_change.n_early = 3, CHECK_INT(kbi_wall_runs(run), 1);
    recipe.launches = 0;
    CHECK(kbi_measure_wall_bias() >= 1e-3);
    // samples that another process interrupted are discarded, but at most a third of the samples plus 8
    kbi_turn here_now = kbi_turn_now();
    if (here_now.waits < 0 || here_now.ran <= 0) return;
    for (int kind = 0; kind < 4; kind++) {
        run = new_run();
        run->call.unit = kind == 1 ? KBI_WARM : KBI_SAMPLE;
        kbi_meter.thread_clock_coarse = kind == 2, kbi_meter.undisturbed = kbi_meter.disturbed = 0;
        for (int i = 0; i < 6; i++) {
            int lost = 0;
            for (int again = 0; again < 5 && !lost; again++) {
                kbi_meter.turn = kbi_turn_now(), kbi_meter.turn.ran -= 1000000;
                int64_t was = kbi_meter.disturbed;
                bool said = kbi_wall_lost(run, kind == 3 ? 1e6 : 5e6);
                lost = kbi_meter.disturbed > was;
                if (kind) CHECK(!said && !lost);
                if (lost) CHECK_THAT(said == (i < 4), "interruption %d: wrong decision", i);
                if (kind) break;
            }
        }
        if (kind == 0) CHECK_INT(kbi_meter.disturbed, 6);
    }
    kbi_meter.undisturbed = kbi_meter.disturbed = 0, kbi_meter.thread_clock_coarse = false;
}

// Before a host-clock sample of device work, pending CUDA errors are reported.
static const char* an_error(void) { return "cudaErrorOfSomeKind"; }
static void test_wall_begin(void) {
    kbi_backend b = kbi_cpu;
    b.timing.wait = an_error;
    for (int i = 0; i < 4; i++) {
        kbi_run* run = new_run();
        run->backend = &b, b.gpu = i & 1, run->work.host = i >> 1, run->sampling.batch = 9,
        run->work_change.n_early = KBI_EARLY;
        CHECK_INT(kbi_wall_begin(run), 9);
        CHECK_STR(run->m.message, i == 1 ? "cudaErrorOfSomeKind before the timed block" : "");
        CHECK_INT(run->m.flags, i == 1 ? (uint64_t)1 << KB_FLAG_CUDA_ERROR : 0);
    }
    kbi_run* run = new_run();
    run->backend = &b, b.timing.wait = NULL, kbi_stop_on_error(run, "now"), CHECK_INT(run->m.status, KB_OK);
}

// --- what a body says ---

static void test_amounts(void) {
    kbi_run* run = new_run();
    kb_state* kb = new_state(run);
    run->m.traffic = run->m.arithmetic = 9;
    kb_bytes(kb, 5), kb_flops(kb, 6), kb_items(kb, 7);
    CHECK_REAL(run->m.bytes, 5, 0), CHECK_REAL(run->m.flops, 6, 0), CHECK_REAL(run->m.items, 7, 0);
    CHECK_INT(run->m.traffic, 0), CHECK_INT(run->m.arithmetic, 0), CHECK_INT(run->m.queries, 0);
    kb_queries(kb, 8), CHECK_REAL(run->m.items, 8, 0), CHECK_INT(run->m.queries, 1);
    kb_bytes_as(kb, 0, KB_WRITE), CHECK_INT(run->m.traffic, KB_WRITE), CHECK_REAL(run->m.bytes, 0, 0);
    kb_bytes_as(kb, 1, KB_COPY), CHECK_INT(run->m.traffic, KB_COPY);
    kb_flops_as(kb, 2, KB_F16), CHECK_INT(run->m.arithmetic, KB_F16), CHECK_REAL(run->m.flops, 2, 0);
    CHECK_INT(run->m.status, KB_OK);
    for (int i = 0; i < 6; i++) {
        run->m.status = KB_OK, run->m.message[0] = 0;
        if (i == 0) kb_bytes(kb, -1);
        if (i == 1) kb_flops(kb, NAN);
        if (i == 2) kb_items(kb, INFINITY);
        if (i == 3) kb_bytes_as(kb, 1, (kb_traffic)(KB_COPY + 1));
        if (i == 4) kb_bytes_as(kb, 1, (kb_traffic)(KB_ANY_TRAFFIC - 1));
        if (i == 5) kb_flops_as(kb, 2, KB_I64);
        CHECK_THAT(kbi_failed(run), "amount %d", i);
    }
    CHECK_REAL(run->m.items, 8, 0);
    char name[70], unit[40];
    memset(name, 'a', sizeof name), memset(unit, 'b', sizeof unit);
    run = new_run(), kb = new_state(run);
    name[63] = 0, unit[31] = 0;
    kb_count(kb, name, 1, unit);
    CHECK_INT(run->m.n_counters, 1), CHECK_STR(run->m.counters[0].name, name),
        CHECK_STR(run->m.counters[0].unit, unit);
    kb_count(kb, name, 2, NULL);
    CHECK_INT(run->m.n_counters, 1), CHECK_REAL(run->m.counters[0].value, 2, 0),
        CHECK_STR(run->m.counters[0].unit, "");
    for (int i = 1; i < KBI_COUNTERS; i++) {
        char of[16];
        snprintf(of, sizeof of, "n_%d", i), kb_count(kb, of, i, "");
        CHECK_INT(run->m.n_counters, i + 1), CHECK_REAL(run->m.counters[i].value, i, 0),
            CHECK_STR(run->m.counters[i].name, of);
    }
    kb_count(kb, "n_3", 33, ""), CHECK_REAL(run->m.counters[3].value, 33, 0), CHECK_INT(run->m.status, KB_OK);
    name[63] = 'a', name[64] = 0, unit[31] = 'b', unit[32] = 0;
    const struct {
        const char *name, *unit;
        double value;
    } wrong[] = { { "one_more", "", 1 },
                  { "", "", 1 },
                  { NULL, "", 1 },
                  { name, "", 1 },
                  { "A", "", 1 },
                  { "a b", "", 1 },
                  { "n_1", unit, 1 },
                  { "n_1", "a b", 1 },
                  { "n_1", "", NAN },
                  { "n_1", "", INFINITY } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        run->m.status = KB_OK, run->m.message[0] = 0;
        kb_count(kb, wrong[i].name, wrong[i].value, wrong[i].unit);
        CHECK_HAS(run->m.message, "a name has 1 to 63"), CHECK_INT(run->m.n_counters, KBI_COUNTERS);
    }
    CHECK_REAL(run->m.counters[1].value, 1, 0);
    run = new_run(), kb = new_state(run);
    static const double errors[] = { 0.1, 0.3, 0.2 };
    for (int i = 0; i < 3; i++) {
        CHECK(kbi_check_done(run, i != 1, errors[i], 0.5 + i) == (i != 1));
        CHECK_INT(run->m.verified, i == 0), CHECK_REAL(run->m.max_error, i ? 0.3 : 0.1, 0),
            CHECK_REAL(run->m.tolerance, 0.5 + i, 0);
    }
    kb_note(kb, "one"), kb_note(kb, "two"), kb_note(kb, "one"), kb_note(kb, "on"), kb_note(kb, "two");
    CHECK_STR(run->m.message, "one; two; on");
    kb_expect(kb, KB_EXPECT_SYNC), kb_expect(kb, KB_EXPECT_ALLOC);
    CHECK_INT(run->work.expect, KB_EXPECT_SYNC | KB_EXPECT_ALLOC), CHECK_INT(run->m.status, KB_OK);
    kb_expect(kb, 64 | KB_EXPECT_TRANSFER);
    CHECK_HAS(run->m.message, "not 0x40"), CHECK_INT(run->work.expect & 64, 0);
}

// --- parameters of a benchmark function, and exceptions from it ---

static void test_axes(void) {
    static kb_entry entry;
    static kb_param params[3];
    kbi_case c = case_of(&entry);
    params[0].name = "n", params[0].type = KB_AXIS_INTS, params[0].i = 7, params[0].r = 7;
    params[1].name = "x", params[1].type = KB_AXIS_REALS, params[1].r = 0.5, params[1].i = 3;
    params[2].name = "s", params[2].type = KB_AXIS_STRINGS, params[2].s = "word";
    c.params = params, c.n_params = 3;
    for (int i = 0; i < 10; i++) {
        static const char* const says[] = { "",
                                            "",
                                            "",
                                            "",
                                            "kb_int: this case has no axis 'x' of integers",
                                            "kb_real: this case has no axis 's' of numbers",
                                            "kb_str: this case has no axis 'n' of words",
                                            "kb_int: this case has no axis 'm' of integers",
                                            "kb_int: this case has no axis 'NULL' of integers",
                                            "kb_str: this case has no axis 'dir' of words" };
        kbi_run* run = new_run();
        kb_state* kb = new_state(run);
        run->bench_case = &c, c.n_params = i == 9 ? 0 : 3;
        if (i == 0) CHECK_INT(kb_int(kb, "n"), 7);
        if (i == 1) CHECK_REAL(kb_real(kb, "x"), 0.5, 0);
        if (i == 2) CHECK_REAL(kb_real(kb, "n"), 7, 0);
        if (i == 3) CHECK_STR(kb_str(kb, "s"), "word");
        if (i == 4) CHECK_INT(kb_int(kb, "x"), 0);
        if (i == 5) CHECK_REAL(kb_real(kb, "s"), 0, 0);
        if (i == 6) CHECK_STR(kb_str(kb, "n"), "");
        if (i == 7) CHECK_INT(kb_int(kb, "m"), 0);
        if (i == 8) CHECK_INT(kb_int(kb, NULL), 0);
        if (i == 9) CHECK_STR(kb_str(kb, "dir"), "");
        CHECK_STR(run->m.message, says[i]), CHECK_INT(run->m.flags, i < 4 ? 0 : (uint64_t)1 << KB_FLAG_BAD_CASE);
    }
    kbi_run* run = new_run();
    kb_state* kb = new_state(run);
    run->bench_case = &c, c.n_params = 3;
    CHECK(kb_has(kb, "n") && kb_has(kb, "s") && !kb_has(kb, "m") && !kb_has(kb, "dir"));
    kb->direction = "bwd";
    CHECK(kb_has(kb, "dir") && !kb_has(kb, "m")), CHECK_STR(kb_str(kb, "dir"), "bwd"),
        CHECK_STR(kb_str(kb, "s"), "word");
    CHECK_INT(run->m.status, KB_OK);
}

static int abandoned;
static void abandon(void) { abandoned++; }
static void test_threw(void) {
    kbi_run* run = new_run();
    kb_state* kb = new_state(run);
    kbi_backend b = kbi_cpu;
    run->backend = &b, b.timing.abandon = NULL;
    kbi_leave(kb), CHECK_INT(abandoned, 0);
    b.timing.abandon = abandon, kbi_leave(kb), CHECK_INT(abandoned, 1), CHECK_INT(run->m.status, KB_OK);
    kbi_threw(kb, "out of range");
    CHECK_STR(run->m.message, "C++ exception: out of range"), CHECK_INT(run->m.flags, (uint64_t)1 << KB_FLAG_CRASHED);
    run = new_run(), kb = new_state(run), kbi_threw(kb, NULL);
    CHECK_STR(run->m.message, "C++ exception that is no std::exception"), CHECK_INT(run->m.status, KB_FAILED);
}

static void test_now(void) {
    played.on = true, played.now = 7e15;
    CHECK_INT(kbi_now(), 7000000000000000);
    played.now = 5e9;
    double since = kbi_seconds_since(4750000000);
    played.on = false;
    CHECK_REAL(since, 0.25, 1e-12);
}

// A benchmark function may change the working directory and the interval timers; kbench restores both before each
// call.
static void test_call_clear(void) {
    char first[500], now[500];
    struct itimerval timer, none;
    kbi_meter.folder[0] = 0;
    CHECK(getcwd(first, sizeof first) != NULL);
    kbi_call_clear();
    CHECK_STR(kbi_meter.folder, first);
    memset(&timer, 0, sizeof timer), timer.it_value.tv_sec = 1000, timer.it_interval.tv_sec = 1000;
    CHECK(chdir("/") == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
    kbi_call_clear();
    CHECK(getcwd(now, sizeof now) != NULL), CHECK_STR(now, first);
    CHECK(getitimer(ITIMER_REAL, &none) == 0 && !none.it_value.tv_sec && !none.it_interval.tv_sec);
    snprintf(kbi_meter.folder, sizeof kbi_meter.folder, "/none"), kbi_call_clear();
    CHECK_STR(kbi_meter.folder, ""), kbi_call_clear(), CHECK_STR(kbi_meter.folder, first);
}

int main(void) {
    test_axes();
    test_threw();
    test_now();
    test_call_clear();
    test_record();
    test_remarks();
    test_times();
    test_facts();
    test_enough();
    test_warm();
    test_contest_width();
    test_windows();
    test_clock();
    test_settling();
    test_ulp();
    test_stage();
    test_no_room();
    test_guards();
    test_received();
    test_order();
    test_contest_enough();
    test_room();
    test_rounds_kept();
    test_samples();
    test_units();
    test_alone();
    test_turns();
    test_may();
    test_fills();
    test_held();
    test_unheld();
    test_constant();
    test_taken();
    test_stage_fails();
    test_nvtx();
    test_insight();
    test_inside();
    test_wall();
    test_wall_begin();
    test_amounts();
    return test_end();
}
