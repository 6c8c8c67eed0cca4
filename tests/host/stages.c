// SPDX-License-Identifier: MIT OR Unlicense
// What the stages hand to each other, number for number: what a record takes from what was measured, what the judge makes
// of samples whose median is known by hand, when a run has warmed up and when it has enough, where data goes on a stage.
#include "test.h"
#include "guarded.h"
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

#define RAISED(r, flag) ((int)((r).flags >> KB_FLAG_##flag & 1))

// --- a record: nothing stands where another value should ---

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
    snprintf(m.kernel, sizeof m.kernel, "of_mine"), snprintf(m.mode, sizeof m.mode, "hot");
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
    kbi_record_case(&r, &c, &m, &machine);
    CHECK_INT(r.memory_bytes, 3 << 20), CHECK_REAL(r.memory_mb, 3, 0), CHECK_REAL(r.host_memory_mb, 2.5, 0);
    CHECK_INT(r.leaked_bytes, 7);
    CHECK_STR(r.kernel, "of_mine"), CHECK_STR(r.grid, "11x12x13"), CHECK_STR(r.block, "14x15x16");
    CHECK_INT(r.registers, 17), CHECK_INT(r.shared_bytes, 18), CHECK_INT(r.local_bytes, 19);
    CHECK_REAL(r.occupancy_theoretical, 20.5, 0);
    CHECK_REAL(r.sm_clock_mhz, 21, 0), CHECK_REAL(r.memory_clock_mhz, 22, 0), CHECK_REAL(r.power_w, 23, 0);
    CHECK_REAL(r.temperature_c, 24, 0), CHECK_REAL(r.wall_ms, 26, 1e-15);
    CHECK_REAL(r.bytes, 27, 0), CHECK_REAL(r.flops, 28, 0);
    CHECK_INT(r.samples_retaken, 30), CHECK_INT(r.launches_per_sample, 31), CHECK_INT(r.stage_shared, 1);
    CHECK_STR(r.mode, "hot"), CHECK_STR(r.throttle, "too warm"), CHECK_STR(r.backend, "cuda"), CHECK_STR(r.tool, "T");
    CHECK_INT(r.device, 2), CHECK_STR(r.gpu, "G"), CHECK_STR(r.compute_capability, "10.3");
    CHECK_STR(r.driver, "D"), CHECK_STR(r.cuda, "C"), CHECK(r.no_gpu == NULL);
    CHECK_REAL(r.copy_roof_gbps, 1000, 1e-15), CHECK_REAL(r.read_roof_gbps, 2000, 1e-15);
    CHECK_REAL(r.write_roof_gbps, 3000, 1e-15);
    CHECK_INT(r.ecc, 1), CHECK_INT(r.mig, 0), CHECK_INT(r.clocks_locked, 1);
    CHECK_STR(r.operation, "op"), CHECK_STR(r.implementation, "impl"), CHECK_STR(r.origin, "user");
    kb_result_free(&r);
    // what was not measured is null, not 0
    kbi_result_clear(&r), kbi_measured_clear(&m), kbi_machine_clear(&machine, "cpu");
    kbi_record_case(&r, &c, &m, &machine);
    CHECK_INT(r.memory_bytes, KB_NONE), CHECK_INT(r.samples_retaken, KB_NONE),
        CHECK_INT(r.launches_per_sample, KB_NONE);
    CHECK(isnan(r.memory_mb) && isnan(r.host_memory_mb) && isnan(r.power_w) && isnan(r.bytes) &&
          isnan(r.copy_roof_gbps));
    CHECK(!r.kernel && !r.grid && !r.block && !r.throttle && !r.gpu && !r.tool && r.stage_shared == -1);
    CHECK(r.no_gpu != NULL && r.ecc == -1 && r.device == KB_NONE);
    kb_result_free(&r);
}

static void test_remarks(void) {
    kbi_measured m;
    char longer[600];
    kbi_measured_clear(&m);
    kbi_remark(&m, "%d sheep", 2);
    kbi_remark(&m, "a dog");
    CHECK_STR(m.message, "2 sheep; a dog");
    memset(longer, 'x', sizeof longer), longer[sizeof longer - 1] = 0;
    for (int i = 0; i < 3; i++) kbi_remark(&m, "%s", longer);
    CHECK_INT(strlen(m.message), sizeof m.message - 1);
    CHECK_INT(m.mode[0], 0); // what follows it
}

// --- the judge ---

// 101 samples of `ns` and a little beside it, evenly: their median is ns itself
static void samples_at(double ns, double beside, double samples[101]) {
    for (int i = 0; i < 101; i++) samples[i] = ns + beside * (i * 37 % 101 - 50) / 50;
}
static kb_result judged(const kbi_measured* m, double ns, double beside, const kbi_machine* machine) {
    double samples[101];
    kb_result r;
    samples_at(ns, beside, samples);
    kbi_judge(&r, m, samples, machine);
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
    // what the bias may be off widens the interval, and only that
    m.bias_error_ns = 40;
    wide = judged(&m, 30000, 100, &machine);
    double own = r.time_ms - r.time_ms_ci_low, more = wide.time_ms - wide.time_ms_ci_low;
    CHECK_REAL(more, hypot(own, 1.959964 * 40e-6), 1e-6), CHECK_REAL(wide.time_ms_std, r.time_ms_std, 0);
    CHECK_REAL(wide.precision, (wide.time_ms_ci_high - wide.time_ms_ci_low) / 2 / wide.time_ms, 1e-9);
    kb_result_free(&wide), kb_result_free(&r);
    // FLOOR: where 1.96 times that is over 5 % of the time; without it, below five times the floor
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
    r = judged(&m, 2200, 50, &machine); // nothing is left
    CHECK_INT(r.status, KB_FAILED), CHECK(RAISED(r, BAD_CASE) && isnan(r.time_ms)), CHECK_INT(r.samples, KB_NONE);
    kb_result_free(&r);
    // most samples took no longer than empty loops beside them: it may be one, unless it was seen to work
    m.bias_ns = 0, m.loops = 100;
    for (int i = 0; i < 3; i++) {
        m.proven = i == 2, m.idle = i == 1 ? 50 : 51;
        r = judged(&m, 29900, 100, &machine);
        CHECK_INT(RAISED(r, NO_WORK), i == 0), CHECK_INT(r.status, i == 0 ? KB_FAILED : KB_OK);
        kb_result_free(&r);
    }
}

// Facts become flags, each its own.
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
        // a warm-up that ran out, and a clock that swings, are no matter where times do not follow
        CHECK_THAT(r.flags == (i == 5 || i == 8 ? 0 : (uint64_t)1 << want[i]), "fact %d: flags %llx", i,
                   (unsigned long long)r.flags);
        CHECK_INT(r.status, KB_OK);
        kb_result_free(&r);
    }
}

// --- the engine: when it is enough ---

static kbi_recipe recipe;
static kbi_machine machine_here;
static kbi_run* new_run(void) {
    static kbi_run run;
    memset(&run, 0, sizeof run);
    kbi_recipe_default(&recipe), kbi_machine_clear(&machine_here, "script"), kbi_measured_clear(&run.m);
    run.recipe = &recipe, run.machine = &machine_here, run.backend = &kbi_scripted;
    return &run;
}

static void test_enough(void) {
    kbi_run* run = new_run();
    double samples[2000];
    samples_at(10000, 1000, samples);
    run->sampling.samples = samples;
    // n samples after `time` seconds, with the rules of `recipe`
#define ENOUGH(count, time) (run->m.n = (count), run->sampling.next_look = 0, kbi_sampled_enough(run, time))
    recipe.precision = 1e-9;
    CHECK(!ENOUGH(6, 1.0)), CHECK(ENOUGH(7, 1.0)), CHECK(!ENOUGH(29, 0.99));
    CHECK(!ENOUGH(2, 4.0)), CHECK(ENOUGH(3, 4.0)), CHECK(!ENOUGH(3, 3.99));
    CHECK(!ENOUGH(101, 0.5));
    recipe.max_samples = 101;
    CHECK(ENOUGH(101, 0.5)), CHECK(!ENOUGH(100, 0.5));
    recipe.precision = 1; // any
    recipe.max_samples = 2000;
    CHECK(!ENOUGH(29, 0.5)), CHECK(ENOUGH(30, 0.5));
    recipe.min_time = 0.6;
    CHECK(!ENOUGH(30, 0.59)), CHECK(ENOUGH(30, 0.6));
    recipe.samples = 12;
    CHECK(!ENOUGH(11, 9.0)), CHECK(ENOUGH(12, 0.0));
    recipe.samples = 0, recipe.min_time = 0;
    // the precision is that of the time that will be told: less the bias
    recipe.precision = 1.01 * kbi_precision_of(samples, 101);
    CHECK(ENOUGH(101, 0.5));
    run->m.bias_ns = 5000;
    CHECK(!ENOUGH(101, 0.5));
    recipe.precision *= 2;
    CHECK(ENOUGH(101, 0.5));
    run->m.bias_ns = 10500; // nothing is left
    CHECK(!ENOUGH(101, 0.5));
    // looking is rare: after eight more, or a tenth
    recipe.precision = 1e-9, run->m.bias_ns = 0;
    CHECK(!ENOUGH(30, 0.5)), CHECK_INT(run->sampling.next_look, 38);
    for (int i = 101; i < 200; i++) samples[i] = samples[i - 101];
    CHECK(!ENOUGH(200, 0.5)), CHECK_INT(run->sampling.next_look, 220);
    recipe.precision = 1, run->sampling.next_look = 201;
    CHECK(!kbi_sampled_enough(run, 0.5));
    run->sampling.next_look = 200;
    CHECK(kbi_sampled_enough(run, 0.5));
}

static void test_warm(void) {
    kbi_run* run = new_run();
    static kbi_timer timer;
    run->sampling.timer = &timer;
    run->call.phase_began = run->call.window.begin = kbi_now();
    recipe.warmup_samples = 3;
    run->call.warm_units = 2;
    CHECK(!kbi_warm_enough(run));
    run->call.warm_units = 3;
    CHECK(kbi_warm_enough(run));
    timer.by_clock = true; // batches have to be long enough first
    CHECK(!kbi_warm_enough(run));
    run->sampling.resolved = true;
    CHECK(kbi_warm_enough(run));
    run->sampling.resolved = false, run->work.estimate_ns = 1000000; // a millisecond needs none
    CHECK(kbi_warm_enough(run));
    timer.by_clock = false;
    recipe.warmup_samples = -1, recipe.warmup_time = 1000;
    CHECK(!kbi_warm_enough(run));
    run->call.phase_began -= 1001 * (int64_t)1000000000;
    CHECK(kbi_warm_enough(run));
    run->call.warm_units = 0;
    CHECK(!kbi_warm_enough(run));
    // until settled, or half of --max-time, of 2 s at most
    recipe.warmup_time = -1, run->call.warm_units = 2;
    run->call.phase_began = kbi_now() - 490000000;
    CHECK(!kbi_warm_enough(run)), CHECK_INT(run->m.settled, 1);
    run->call.phase_began = kbi_now() - 510000000;
    CHECK(kbi_warm_enough(run)), CHECK_INT(run->m.settled, 0);
    recipe.max_time = 8;
    CHECK(!kbi_warm_enough(run));
    run->call.phase_began = kbi_now() - 1010000000;
    CHECK(kbi_warm_enough(run));
}

// how wide a contest's intervals are: 95 % for all rivals at once, so each one's is wider the more there are
static void test_contest_width(void) {
    enum { RIVALS = 7, ROUNDS = 64 };
    kbi_arm* all = (kbi_arm*)calloc(RIVALS + 1, sizeof(kbi_arm));
    kbi_arm* arms[RIVALS + 1];
    kbi_contest c;
    memset(&c, 0, sizeof c);
    c.arms = arms, c.rounds = ROUNDS;
    for (int i = 0; i <= RIVALS; i++) {
        arms[i] = &all[i];
        for (int r = 0; r < ROUNDS; r++) all[i].ns[r] = 1000 + (i == 0 ? 0 : (r * 37 + 11) % ROUNDS); // all alike
    }
    double log_ratio[ROUNDS], median, lo, hi;
    for (int r = 0; r < ROUNDS; r++) log_ratio[r] = log(all[0].ns[r] / all[1].ns[r]);
    for (c.n = 2; c.n <= RIVALS + 1; c.n++) {
        CHECK(kbi_paired(log_ratio, ROUNDS, 0.05 / (c.n - 1), &median, &lo, &hi));
        CHECK_REAL(kbi_contest_width(&c), (hi - lo) / 2, 1e-12);
    }
    c.n = RIVALS + 1;
    double apart = kbi_contest_width(&c);
    c.n = 2;
    CHECK(kbi_contest_width(&c) < 0.95 * apart);
    all[1].over = true; // by itself there is nothing left to be resolved
    CHECK_REAL(kbi_contest_width(&c), 0, 0);
    free(all);
}

static bool window(kbi_run* run, double ns, int n) {
    for (int i = 0; i < n; i++) run->call.window.ns[i] = ns;
    run->call.window.n = n;
    return kbi_window_agrees(run, 0.03);
}
static void test_windows(void) {
    kbi_run* run = new_run();
    CHECK(!window(run, 1000, 8)); // the first has none to agree with
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

// the first runs of a slot that belong to the one before
static void test_settling(void) {
    double ns[KBI_TRIALS][KBI_TRIAL_RUNS];
    for (int slow = 0; slow <= KBI_TRIAL_RUNS / 2; slow++) {
        for (int t = 0; t < KBI_TRIALS; t++)
            for (int i = 0; i < KBI_TRIAL_RUNS; i++)
                ns[t][i] = (i < slow ? 1007 : 1000) + (t + i) % 2; // over half a percent
        CHECK_INT(kbi_settling_of(ns), slow);
    }
    for (int t = 0; t < KBI_TRIALS; t++)
        for (int i = 0; i < KBI_TRIAL_RUNS; i++) ns[t][i] = i < 3 ? 1004 : 1000; // below it
    CHECK_INT(kbi_settling_of(ns), 0);
    for (int t = 0; t < KBI_TRIALS; t++)
        for (int i = 0; i < KBI_TRIAL_RUNS; i++)
            ns[t][i] = 1000 + (i < 3 ? 40 : 20 * (i % 3 - 1)); // within what it scatters
    CHECK_INT(kbi_settling_of(ns), 0);
}

// --- memory ---

static void test_ulp(void) {
    CHECK_REAL(kbi_ulp(1, KB_F32), ldexp(1, -23), 0), CHECK_REAL(kbi_ulp(1, KB_F64), ldexp(1, -52), 0);
    CHECK_REAL(kbi_ulp(1, KB_F16), ldexp(1, -10), 0), CHECK_REAL(kbi_ulp(1, KB_BF16), ldexp(1, -7), 0);
    CHECK_REAL(kbi_ulp(7.9, KB_F32), ldexp(1, -21), 0), CHECK_REAL(kbi_ulp(-0.3, KB_F16), ldexp(1, -12), 0);
    CHECK_REAL(kbi_ulp(5, KB_I32), 1, 0);
    // of 0, and of what is below the smallest normal: the smallest there is
    static const double tiny[] = { 0, 1e-300 };
    for (int i = 0; i < 2; i++) {
        CHECK_REAL(kbi_ulp(tiny[i], KB_F32), ldexp(1, -149), 0),
            CHECK_REAL(kbi_ulp(tiny[i], KB_F16), ldexp(1, -24), 0);
        CHECK_REAL(kbi_ulp(tiny[i], KB_BF16), ldexp(1, -133), 0);
    }
    CHECK_REAL(kbi_ulp(0, KB_F64), ldexp(1, -1074), 0);
}

// Memory of which the device has room for some blocks only.
static int room, lent;
static void* scarce_alloc(kb_place place, size_t bytes) {
    if (lent == room) return NULL;
    return lent++, kbi_cpu.memory.alloc(place, bytes);
}
static void scarce_release(kb_place place, void* p) {
    CHECK(p != NULL);
    lent--, kbi_cpu.memory.release(place, p);
}

// Without room for the stage and for what each has beside it there is no stage, and all is given back.
static void test_no_room(void) {
    enum { PLAYERS = 3 };
    kbi_backend scarce = kbi_cpu;
    scarce.memory.alloc = scarce_alloc, scarce.memory.release = scarce_release;
    for (room = 0; room <= PLAYERS + 1; room++) {
        kbi_memory m[PLAYERS], *all[PLAYERS];
        kbi_stage s;
        memset(m, 0, sizeof m);
        for (int i = 0; i < PLAYERS; i++) kbi_stage_place(&scarce, all[i] = &m[i], KB_DEVICE, 100);
        bool good = kbi_stage_open(&s, &scarce, all, PLAYERS);
        CHECK_INT(good, room == PLAYERS + 1);
        for (int i = 0; i < PLAYERS; i++) CHECK((m[i].stage != NULL) == good && (m[i].wings != NULL) == good);
        CHECK_INT(lent, good ? PLAYERS + 1 : 0);
        if (good) kbi_stage_close(&s, all, PLAYERS);
        CHECK_INT(lent, 0);
    }
}

// Where blocks lie on a stage, and who has which; a backend that says it is a GPU keeps the host's out of it.
static void test_stage(void) {
    kbi_memory m;
    kbi_backend gpu = kbi_cpu;
    memset(&m, 0, sizeof m);
    gpu.gpu = true;
    CHECK_INT(kbi_stage_at(0, 100), 0), CHECK_INT(kbi_stage_at(1, 100), 512), CHECK_INT(kbi_stage_at(512, 100), 512);
    CHECK_INT(kbi_stage_at(513, (1 << 20) - 1), 1024), CHECK_INT(kbi_stage_at(513, 1 << 20), 2 << 20);
    CHECK(!kbi_stage_place(&gpu, &m, KB_HOST, 100) && !kbi_stage_place(&gpu, &m, KB_PINNED, 100));
    CHECK_INT(m.laid, 0);
    CHECK(!kbi_stage_place(&gpu, &m, KB_DEVICE, 100)), CHECK_INT(m.laid, 100), CHECK_INT(m.most, 100);
    CHECK(!kbi_stage_place(&kbi_cpu, &m, KB_PINNED, 100)), CHECK_INT(m.laid, 100);
    CHECK(!kbi_stage_place(&kbi_cpu, &m, KB_HOST, 100)), CHECK_INT(m.laid, 612), CHECK_INT(m.most, 612);
    // two that play: each finds its own again
    kbi_memory other = m, *both[] = { &m, &other };
    kbi_stage s;
    CHECK(kbi_stage_open(&s, &kbi_cpu, both, 2));
    CHECK_INT(s.size, 612), CHECK_INT((uintptr_t)s.base % (2 << 20), 0);
    for (int i = 0; i < 2; i++) {
        char* at;
        both[i]->laid = 0;
        kbi_stage_enter(both[i]);
        at = kbi_stage_place(&kbi_cpu, both[i], KB_DEVICE, 612);
        CHECK(at == s.base);
        memset(at, 'a' + i, 612);
    }
    for (int i = 0; i < 4; i++) {
        kbi_stage_enter(both[i % 2]);
        CHECK_THAT(s.base[0] == 'a' + i % 2 && s.base[611] == 'a' + i % 2, "turn %d: %c %c", i, s.base[0],
                   s.base[611]);
    }
    CHECK(!m.strayed);
    m.laid = 0;
    CHECK(!kbi_stage_place(&kbi_cpu, &m, KB_DEVICE, 613) && m.strayed); // more than the first time
    CHECK(!kbi_stage_place(&kbi_cpu, &m, KB_DEVICE, 1));                // and it stays beside
    kbi_stage_close(&s, both, 2);
    CHECK(!m.stage && !m.wings && !other.stage && !other.wings);
}

static void test_guards(void) {
    static const int64_t sizes[] = { 1, 255, 256, 257, 5000 };
    for (int i = 0; i < 5; i++) {
        kbi_memory m;
        memset(&m, 0, sizeof m);
        char* p = (char*)kbi_memory_alloc(&kbi_cpu, &m, KB_DEVICE, (size_t)sizes[i]);
        int64_t n = sizes[i], padded = (n + 255) / 256 * 256 - n, at[] = { -4096, -1, n, n + padded + 4095 };
        CHECK_INT(m.device, n), CHECK_INT(m.host, 0), CHECK_INT(m.taken, 1);
        CHECK_INT(kbi_guard_broken(&kbi_cpu, m.blocks), KB_NONE);
        CHECK_INT((unsigned char)p[0], KBI_POISON), CHECK_INT((unsigned char)p[n - 1], KBI_POISON);
        for (int k = 0; k < 4; k++) {
            char was = p[at[k]];
            p[at[k]] = 1;
            CHECK_INT(kbi_guard_broken(&kbi_cpu, m.blocks), at[k]);
            p[at[k]] = was;
        }
        p[0] = p[n - 1] = 1;
        CHECK_INT(kbi_guard_broken(&kbi_cpu, m.blocks), KB_NONE);
        kbi_memory_free(&kbi_cpu, &m, false);
        CHECK_INT(m.device, 0), CHECK_INT(m.device_peak, n), CHECK_INT(m.taken, 0);
    }
}

int main(void) {
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
    return test_end();
}
