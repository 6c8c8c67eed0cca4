// SPDX-License-Identifier: MIT OR Unlicense
// Tests the CPU engine with work of known duration. Times must be plausible over seven orders of magnitude, and a
// reset must run before every timed run. Tolerances are wide, because other programs may use the machine.
// measures time
// a program of its own: kb_keep recognises constants only in optimised code.
#include "test.h"
#include "guarded.h"
#define KIT_WITHOUT_ADDONS
#include "kit.h"

#ifdef TEST_SANITIZE
#define SLOWER 30 // tolerance factor for sanitizer overhead
#else
#define SLOWER 1
#endif

static void spin(double ns) { // busy, not asleep
    int64_t end = kbi_now() + (int64_t)ns;
    while (kbi_now() < end) {}
}

static kb_desc desc_named(const char* name) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = name;
    d.max_time = 0.1;
    return d;
}

static double chain_ms(int64_t length, double max_time) {
    kb_desc d = desc_named("chain");
    d.max_time = max_time;
    kb_state* kb = kb_open(&d);
    if (!kb) return NAN;
    uint64_t x = 1;
    KB_TIME(kb) {
        for (int64_t i = 0; i < length; ++i) {
            x += (uint64_t)i;
            kb_keep(x);
        }
    }
    kb_result r = kb_close(kb);
    double ms = r.time_ms;
    CHECK_INT(r.status, KB_OK);
    CHECK_STR(r.timer, "wall"), CHECK(!r.cache);
    CHECK(r.time_ms_min <= r.time_ms && r.time_ms <= r.time_ms_max);
    kb_result_free(&r);
    return ms;
}

static void test_scale(void) {
    double small = chain_ms(16, 0.1), middle = chain_ms(16000, 0.1), large = chain_ms(16000000, 0.3);
    CHECK_THAT(small > 1e-6 && small < 1e-3 * SLOWER, "16 additions take %g ms", small);
    CHECK_THAT(large > 1 && large < 1000 * SLOWER, "16 million additions take %g ms", large);
    CHECK_THAT(middle / small > 100 && middle / small < 10000,
               "16 thousand additions take %g times as long as 16", middle / small);
    CHECK_THAT(large / middle > 100 && large / middle < 10000,
               "16 million additions take %g times as long as 16 thousand", large / middle);
}

static void spin_1ms(kb_stream stream, void* user) {
    (void)stream, (void)user;
    spin(1e6);
}
static void nothing(kb_stream stream, void* user) { (void)stream, (void)user; }

static void test_absolute(void) {
    kb_desc d = desc_named("spin");
    kb_result r = kb_run(&d, spin_1ms, NULL);
    CHECK_INT(r.status, KB_OK);
    CHECK_THAT(r.time_ms_min >= 0.999 && r.time_ms < 20, "a loop of 1 ms takes %g ms (minimum %g)", r.time_ms,
               r.time_ms_min);
    CHECK_REAL(r.inference_speed, 1000 / r.time_ms, 1e-12);
    kb_result_free(&r);
    r = kb_run(&d, nothing, NULL);
    CHECK_INT(r.status, KB_OK);
    CHECK_THAT(r.time_ms >= 0 && r.time_ms < 1e-4 * SLOWER, "an empty function takes %g ms", r.time_ms);
    kb_result_free(&r);
    kbi_meter.wall_step = 1000; // simulates a coarse clock; samples last 1000 times the clock's resolution
    for (int i = 0; i < 2; i++) {
        r = kb_run(&d, nothing, NULL);
        double us = (double)r.launches_per_sample * r.time_ms * 1e3;
        // target duration of a sample: 1 ms with the coarse clock, 20 us with the fine clock
        CHECK_THAT(us > (i ? 5 : 150), "samples of %g us", us);
        kb_result_free(&r);
        kbi_meter.wall_step = 0;
    }
}

#if KBI_FIBERS && !defined(TEST_SANITIZE)
static struct {
    int steps;
    uintptr_t at;
} deep;
static void goes_deep(void* user) {
    // this array fits into the smallest stack, which has 8 MiB
    char room[(7 << 20) + (1 << 19)];
    memset(room, 1, sizeof room);
    kb_keep(room[kbi_now() % 1000]);
    deep.at = (uintptr_t)room;
    deep.steps++;
    kbi_fiber_rest((kbi_fiber*)user);
    deep.steps++;
}
#endif

#if KBI_FIBERS && !defined(TEST_SANITIZE)
static bool crashes(char* p) {
    int status = 0;
    pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL), signal(SIGBUS, SIG_DFL);
        *(volatile char*)p = 1;
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}
#endif

// The stack of a suspended benchmark function has the size of the process's stack limit, but at least 8 and at
// most 64 MiB.
static void test_stack(void) {
#if KBI_FIBERS && !defined(TEST_SANITIZE)
    static const int mib[] = { 2, 8, 24, 64, 200 };
    struct rlimit was, now;
    if (getrlimit(RLIMIT_STACK, &was) != 0) return;
    for (int i = 0; i < KBI_COUNT(mib); i++) {
        now = was;
        now.rlim_cur = (rlim_t)mib[i] << 20;
        if (now.rlim_cur > was.rlim_max || setrlimit(RLIMIT_STACK, &now) != 0) continue;
        kbi_fiber f;
        memset(&f, 0, sizeof f);
        deep.steps = 0;
        CHECK(kbi_fiber_make(&f, goes_deep, &f));
        CHECK_INT(f.size, (size_t)KBI_MAX(8, KBI_MIN(mib[i], 64)) << 20);
        kbi_fiber_resume(&f), CHECK_INT(deep.steps, 1), kbi_fiber_resume(&f), CHECK_INT(deep.steps, 2);
        CHECK(deep.at >= (uintptr_t)f.stack && deep.at < (uintptr_t)f.stack + f.size);
        CHECK(crashes(f.stack) && crashes(f.stack + 4095) && !crashes(f.stack + 4096));
        kbi_fiber_free(&f);
        CHECK(crashes(f.stack + 4096));
    }
    setrlimit(RLIMIT_STACK, &was);
    struct rlimit all, little;
    kbi_fiber none;
    if (getrlimit(RLIMIT_AS, &all) != 0) return;
    little = all, little.rlim_cur = 1 << 20, memset(&none, 0, sizeof none);
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    bool made = kbi_fiber_make(&none, goes_deep, &none);
    CHECK(setrlimit(RLIMIT_AS, &all) == 0);
    CHECK(!made && !none.stack), kbi_fiber_free(&none);
#endif
}

static void test_sample(void) {
    kb_desc d = desc_named("reset");
    int state = 0, resets = 0, runs = 0, stale = 0;
    kb_state* kb = kb_open(&d);
    KB_SAMPLE(kb) {
        spin(2e5);
        state = 0;
        ++resets;
        KB_TIME(kb) {
            stale += state != 0;
            state = 1;
            ++runs;
            spin(1e5);
        }
    }
    kb_result r = kb_close(kb);
    CHECK_INT(r.status, KB_OK);
    CHECK_INT(stale, 0);
    CHECK_THAT(runs == resets, "%d resets for %d runs", resets, runs);
    CHECK(r.samples >= 10 && runs >= r.samples);
    CHECK_THAT(r.time_ms_min > 0.0999 && r.time_ms_min < 0.19, "a run of 0.1 ms, after 0.2 ms of reset, takes %g ms",
               r.time_ms);
    kb_result_free(&r);
}

typedef struct reset_user {
    int state, stale, runs;
} reset_user;
static void before_run(kb_stream stream, void* user) {
    (void)stream;
    ((reset_user*)user)->state = 0;
}
static void timed_run(kb_stream stream, void* user) {
    (void)stream;
    reset_user* u = (reset_user*)user;
    u->stale += u->state;
    u->state = 1;
    ++u->runs;
    for (volatile int i = 0; i < 2000; i++) {}
}
static void test_before(void) {
    kb_desc d = desc_named("before");
    reset_user u = { 1, 0, 0 };
    d.before = before_run;
    d.samples = 25;
    kb_result r = kb_run(&d, timed_run, &u);
    CHECK_INT(r.status, KB_OK);
    CHECK_INT(r.samples, 25);
    CHECK_INT(u.stale, 0);
    CHECK(u.runs >= 25);
    kb_result_free(&r);
}

static void test_desc(void) {
    kb_desc d = desc_named("desc");
    d.samples = 12;
    d.bytes = 100;
    d.flops = 200;
    d.items = 300;
    d.implementation = "mine";
    d.dtype = "f32";
    kb_result r = kb_run(&d, spin_1ms, NULL);
    CHECK_INT(r.samples, 12);
    CHECK_STR(r.operation, "desc");
    CHECK_STR(r.implementation, "mine");
    CHECK_STR(r.dtype, "f32");
    CHECK_REAL(r.bytes, 100, 0);
    CHECK_REAL(r.flops, 200, 0);
    CHECK_REAL(r.throughput_gbps, 100 / r.time_ms / 1e6, 1e-12);
    CHECK_REAL(r.gflops, 200 / r.time_ms / 1e6, 1e-12);
    CHECK_REAL(r.items_per_second, 300 / (r.time_ms / 1000), 1e-12);
    CHECK_INT(r.samples_ms.n, 12);
    kb_result_free(&r);

    kb_desc bad = desc_named(NULL);
    kb_state* kb = kb_open(&bad);
    CHECK(kb != NULL);
    int ran = 0;
    KB_TIME(kb) { ++ran; }
    r = kb_close(kb);
    CHECK_INT(ran, 0);
    CHECK_INT(r.status, KB_FAILED);
    CHECK(r.message && r.message[0]);
    CHECK(isnan(r.time_ms));
    kb_result_free(&r);

    memset(&bad, 0x55, sizeof bad); // an uninitialised description lacks the magic value
    bad.name = "garbage";
    kb = kb_open(&bad);
    CHECK(kb != NULL);
    KB_TIME(kb) { ++ran; }
    r = kb_close(kb);
    CHECK_INT(ran, 0);
    CHECK_INT(r.status, KB_FAILED);
    kb_result_free(&r);

    d = desc_named("unknown dtype");
    d.dtype = "f33";
    r = kb_run(&d, nothing, NULL);
    CHECK_INT(r.status, KB_FAILED);
    CHECK_HAS(r.message, "dtype");
    CHECK_STR(r.operation, "unknown dtype"); // the record still names the case
    CHECK_STR(r.name, "unknown dtype/impl=default");
    CHECK_STR(r.implementation, "default");
    CHECK_STR(r.dtype, NULL);
    kb_result_free(&r);
    d = desc_named("negative");
    d.implementation = "mine";
    d.samples = -1;
    kb = kb_open(&d);
    KB_TIME(kb) { ++ran; }
    r = kb_close(kb);
    CHECK_INT(ran, 0);
    CHECK_HAS(r.message, "negative");
    CHECK_STR(r.operation, "negative");
    CHECK_STR(r.implementation, "mine");
    kb_result_free(&r);
}

static void test_faults_in_process(void) {
    kb_desc d = desc_named("no block");
    kb_state* kb = kb_open(&d);
    kb_result r = kb_close(kb);
    CHECK_INT(r.status, KB_FAILED);
    CHECK((r.flags >> KB_FLAG_NO_LOOP) & 1);
    kb_result_free(&r);

    d = desc_named("left early");
    kb = kb_open(&d);
    KB_TIME(kb) { break; }
    r = kb_close(kb);
    CHECK_INT(r.status, KB_FAILED);
    CHECK((r.flags >> KB_FLAG_LEFT_EARLY) & 1);
    CHECK(isnan(r.time_ms));
    kb_result_free(&r);

    d = desc_named("wrong");
    kb = kb_open(&d);
    float* y = KB_ALLOC(kb, float, 2);
    float want[2] = { 1, 2 };
    KB_TIME(kb) {
        y[0] = 1;
        y[1] = 3;
        kb_keep(y);
    }
    CHECK(!kb_check(kb, y, want, 2, 1e-3));
    r = kb_close(kb);
    CHECK_INT(r.status, KB_FAILED);
    CHECK((r.flags >> KB_FLAG_VERIFY_FAIL) & 1);
    CHECK(isnan(r.time_ms) && isnan(r.throughput_gbps) && isnan(r.inference_speed));
    CHECK_INT(r.verified, 0);
    kb_result_free(&r);
}

// A block gets no time if it takes at most as long as reading the clock. A slightly longer block gets the flag
// FLOOR.
static void test_short(void) {
    volatile int sink = 0;
    for (int work = 0; work < 3; work++) {
        kb_desc d = desc_named("short");
        d.max_time = 0.05;
        kb_state* kb = kb_open(&d);
        KB_SAMPLE(kb) {
            sink = 0;
            KB_TIME(kb) {
                for (int i = 0; i < (work ? 10 * work : 0); i++) sink += i;
            }
        }
        kb_result r = kb_close(kb);
        if (r.status == KB_OK) {
            CHECK_THAT(r.time_ms > 0, "a block of %d stores takes %g ms", 10 * work, r.time_ms);
            CHECK((r.flags >> KB_FLAG_FLOOR) & 1 || r.time_ms_raw >= 5 * r.floor_ms);
        } else {
            CHECK(isnan(r.time_ms));
            CHECK_HAS(r.message, "reading the clock");
        }
        kb_result_free(&r);
    }
}

// A note whose text is part of another note also appears.
static void test_notes(void) {
    kb_desc d = desc_named("notes");
    d.samples = 3;
    kb_state* kb = kb_open(&d);
    for (int i = 0; i < 2; i++) kb_note(kb, "128 warps"), kb_note(kb, "8 warps"), kb_note(kb, "28");
    KB_TIME(kb) { spin(1e4); }
    kb_result r = kb_close(kb);
    CHECK_STR(r.message, "128 warps; 8 warps; 28");
    kb_result_free(&r);
}

// A timed block of GPU work may call functions that run on the host, but no function that uses the stream.
static void test_calls_in_blocks(void) {
    static kbi_run run;
    static kbi_backend backend;
    backend.gpu = true, run.backend = &backend, run.kb.run = &run, run.call.unit = KBI_SAMPLE;
    kb_note(&run.kb, "a note");
    CHECK(!run.call.forbidden_call);
    kbi_note_call(&run.kb, "kb_fill", false);
    CHECK_STR(run.call.forbidden_call, "kb_fill");
    backend.gpu = false, run.call.forbidden_call = NULL;
    kb_note(&run.kb, "a note");
    CHECK_STR(run.call.forbidden_call, "kb_note");
}

// In every run, memory has equal addresses, poison patterns and fill values. The record contains the peak memory
// of the case.
static void test_memory(void) {
    kb_desc d = desc_named("memory");
    d.samples = 5;
    kb_state* kb = kb_open(&d);
    unsigned char* p = KB_ALLOC(kb, unsigned char, 1000);
    float* x = KB_ALLOC(kb, float, 1000);
    double* h = KB_ALLOC_HOST(kb, double, 10);
    CHECK((uintptr_t)p % 256 == 0 && (uintptr_t)x % 256 == 0 && (uintptr_t)h % 256 == 0);
    int poison = 1;
    for (int i = 0; i < 1000; ++i) poison &= p[i] == 0xff;
    CHECK(poison);
    CHECK(isnan(x[0]) && isnan(x[999]) && isnan(h[9]));
    kb_fill(kb, x, 1000, KB_UNIFORM);
    CHECK(x[0] >= 0 && x[0] < 1 && x[999] >= 0 && x[999] < 1 && x[0] != x[999]);
    float* z = KB_ALLOC(kb, float, 1000);
    kb_fill(kb, z, 1000, KB_UNIFORM);
    CHECK(memcmp(x, z, 4000) != 0);
    char* none = KB_ALLOC(kb, char, 0);
    CHECK(none != NULL);
    KB_TIME(kb) {
        for (int i = 0; i < 1000; ++i) x[i] += 1;
        kb_keep(x);
    }
    kb_result r = kb_close(kb);
    CHECK_INT(r.status, KB_OK);
    CHECK_THAT(r.memory_bytes >= 9000 && r.memory_bytes < 20000, "memory_bytes %lld for 9000",
               (long long)r.memory_bytes);
    CHECK_REAL(r.memory_mb, (double)r.memory_bytes / 1048576, 1e-12);
    kb_result_free(&r);
}

// A kb_keep belongs to a block if it is within the 100 lines after the block and before the next benchmark.
static void test_keeps(void) {
    static const struct {
        int line, keeps;
    } rows[] = { { 89900, KBI_KEPT_NOTHING },   { 89901, KBI_KEPT_VALUES },  { 90000, KBI_KEPT_VALUES },
                 { 90001, KBI_KEPT_NOTHING },   { 90049, KBI_KEPT_NOTHING }, { 90050, KBI_KEPT_VALUES },
                 { 90060, KBI_KEPT_VALUES },    { 90061, KBI_KEPT_NOTHING }, { 90160, KBI_KEPT_NOTHING },
                 { 90300, KBI_KEPT_CONSTANTS }, { 90400, KBI_KEPT_VALUES } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        CHECK_THAT(kbi_kept_values(kbi_build(), rows[i].line) == rows[i].keeps, "line %d", rows[i].line);
    }
}

// A clock's resolution is the distance of the values at which its readings cluster, not the smallest difference of
// two readings.
static void test_lattice(void) {
    static const struct {
        double step, jitter, want, within;
    } rows[] = { { 10, 1, 10, 1.01 },   { 10, 0, 10, 1e-9 }, { 41.667, 0.5, 41.667, 1.1 }, { 1, 0, 1, 1e-9 },
                 { 1, 2, 1, 1e-9 },     { 100, 2, 100, 4 },  { 4, 0, 4, 1e-9 },            { 1000, 1, 1000, 2.1 },
                 { 100000, 0, 0, 1e-9 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        double ns[1000];
        for (int k = 0; k < KBI_COUNT(ns); k++) {
            double apart = 25 + 80 * (k * 37 % 1000) / 1000.0, phase = (k * 613 % 1000) / 1000.0 * rows[i].step;
            ns[k] = floor((apart + phase) / rows[i].step) * rows[i].step;
            if (rows[i].step > 1e4) ns[k] = 0;
            ns[k] = floor(ns[k] + rows[i].jitter * (k * 7 % 3 - 1) + 0.5);
        }
        double step = kbi_clock_lattice(ns, KBI_COUNT(ns));
        CHECK_THAT(fabs(step - rows[i].want) <= rows[i].within, "steps of %g, jitter %g: %g", rows[i].step,
                   rows[i].jitter, step);
    }
    double step = kbi_clock_step();
    CHECK_THAT(step >= 1 && step < 1e7, "resolution of this clock: %g ns", step);
}

int main(void) {
    test_keeps();
    test_lattice();
    test_scale();
    test_absolute();
    test_stack();
    test_sample();
    test_before();
    test_desc();
    test_faults_in_process();
    test_short();
    test_notes();
    test_calls_in_blocks();
    test_memory();
    return test_end();
}

#line 89000
KBENCH(sooner) {
#line 90000
    kb_keep(kb);
}
#line 90050
KBENCH(later) {
#line 90060
    kb_keep(kb);
}
#line 90300
KBENCH(constants) {
    kb_keep(2 * 3);
    kb_keep("text");
    kb_skip(kb, "planted");
}
#line 90400
KBENCH(one_of_two) {
    kb_keep(2 * 3);
    kb_keep(kb->seed);
}
