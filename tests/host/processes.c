// SPDX-License-Identifier: MIT OR Unlicense
// Tests --procs with known differences between processes: the mean, interval, median process, flags and
// comparisons in the record. Without arguments, this program is the test; with arguments, it is a benchmark
// program whose times are computed by hashed() or read from tables.
#include "test.h"
#include "json.h"
#include <stdlib.h>
#include <signal.h>
#include <unistd.h>
#include "kit.h"

#define IS(op) (strncmp(name, op "/", strlen(op) + 1) == 0)
static const double alone_ns[] = { 10000, 10100, 9900, 10050, 9980 };
// time of the baseline divided by time of `mine`, per process
static const double ratios[] = { 1.031, 1.029, 1.033, 1.03, 1.027 };
// time of the baseline divided by time of its A/A control, per process
static const double equals[] = { 1.002, 0.999, 1.001, 1.0, 0.9985 };

static double hashed(const char* name, int placement) {
    const char* world = getenv("PROCS_WORLD");
    uint64_t z = kbi_hash(1469598103934665603u + (uint64_t)(placement + (world ? 100 * atoi(world) : 0)) * 977, name);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

// Returns the time of a sample in ns, which is constant within a process, except for the cases `noisy` and
// `simulated`.
static double script(const char* name, int64_t i, uint64_t* flags) {
    int p = scripted.placement % 5;
    double wave = 1 + 0.001 * (double)(i * 7 % 5 - 2); // its median is 1
    if (IS("alone") || IS("skips") || IS("wrong")) return alone_ns[p] * wave;
    if (IS("slow")) return p == 3 ? 11000 : 10000 + p;
    if (IS("warned")) {
        *flags = (p < 3 ? (uint64_t)1 << KB_FLAG_THROTTLED : 0) | (p < 2 ? (uint64_t)1 << KB_FLAG_SHARED_GPU : 0);
        return alone_ns[p];
    }
    if (IS("contest")) return alone_ns[p] / (strstr(name, "impl=mine") ? ratios[p] : 1);
    if (IS("unsure")) return alone_ns[p] / (strstr(name, "impl=mine") ? 1.01 + 0.02 * p : 1);
    if (IS("simulated")) {
        double u = hashed(name, scripted.placement), v = hashed(name, scripted.placement + 50);
        int n = atoi(strstr(name, "/n=") + 3);
        return 2000 * pow(1.05, n) * exp(0.01 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    }
    return 10000 * wave;
}

static void note(kb_state* kb) {
    FILE* f = getenv("PROCS_LOG") ? fopen(getenv("PROCS_LOG"), "a") : NULL;
    if (!f) return;
    fprintf(f, "%s %d %d\n", kb->operation, scripted.placement, (int)getpid());
    fclose(f);
}

static void body(kb_state* kb) {
    note(kb);
    KB_TIME(kb) {
        for (int i = 0; i < 20; i++) kb_keep(i);
    }
    if (!kbi_is(kb->operation, "simulated")) kb_bytes(kb, 5e6);
    kb_flops(kb, 2e4);
    kb_queries(kb, 100);
    kb_check_that(kb, !(kbi_is(kb->operation, "wrong") && scripted.placement == 2), 0.001 * scripted.placement, 1,
                  "the result of this process is wrong");
}
KBENCH(alone) { body(kb); }
KBENCH(slow) { body(kb); }
KBENCH(warned) { body(kb); }
KBENCH(wrong) { body(kb); }
KBENCH(skips) {
    if (scripted.placement == 3) kb_skip(kb, "this process skips the case");
    body(kb);
}
KBENCH(skips_all) { kb_skip(kb, "not on a weekday"); }
KBENCH(crash) {
    note(kb);
    KB_TIME(kb) {
        if (scripted.placement == 1) raise(SIGKILL);
        for (int i = 0; i < 20; i++) kb_keep(i);
    }
}
KBENCH(hang) {
    note(kb);
    KB_TIME(kb) {
        while (scripted.placement == 1) usleep(1000);
        for (int i = 0; i < 20; i++) kb_keep(i);
    }
}
KBENCH_IMPL(contest, base) { body(kb); }
KBENCH_IMPL(contest, mine) { body(kb); }
KBENCH_IMPL(unsure, base) { body(kb); }
KBENCH_IMPL(unsure, mine) { body(kb); }
KBENCH_IMPL(rivals, good) { body(kb); }
KBENCH_IMPL(rivals, dies) {
    note(kb);
    KB_TIME(kb) {
        if (scripted.placement == 2) abort();
        for (int i = 0; i < 20; i++) kb_keep(i);
    }
}
KBENCH_IMPL(simulated, default, KB_SIZE("all", "n=1:160")) { body(kb); }

static const char* self;
static json_file file;
static char said[65536];

static const char* get(int record, const char* key) {
    const char* value = json_get(&file, record, key);
    return value ? value : "(no such record or key)";
}
static int run(const char* environment, const char* arguments) {
    char command[1000];
    const char* path = "build/test/host/procs.json";
    json_free(&file);
    remove(path);
    remove("build/test/host/procs.log");
    snprintf(command, sizeof command,
             "PROCS_LOG=build/test/host/procs.log %s '%s' --device script --no-progress --json %s %s "
             "> build/test/host/procs.out 2>&1",
             environment, self, path, arguments);
    int rc = system(command);
    file = json_read(path, 0);
    CHECK_STR(file.error, "");
    FILE* f = fopen("build/test/host/procs.out", "r");
    size_t n = f ? fread(said, 1, sizeof said - 1, f) : 0;
    said[n] = 0;
    if (f) fclose(f);
    return rc >> 8;
}
static int record(const char* name) {
    char quoted[100];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    for (int i = 0; i < file.n; ++i)
        if (strcmp(get(i, "name"), quoted) == 0) return i;
    CHECK_THAT(0, "no record of %s", name);
    return 0;
}
static double number(int i, const char* key) {
    const char* s = get(i, key);
    return strchr("-0123456789", s[0]) ? strtod(s, NULL) : (double)NAN;
}
static int numbers(int i, const char* key, double* of) {
    int n = 0;
    for (const char* s = get(i, key); *s == '[' || *s == ','; s += strcspn(s, ",]")) of[n++] = strtod(++s, NULL);
    return n;
}

static double mean_of(const double* values, int n, double* sd) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += log(values[i]) / n;
    for (int i = 0; i < n; i++) squares += (log(values[i]) - sum) * (log(values[i]) - sum);
    *sd = sqrt(squares / (n - 1));
    return sum;
}

static void test_times(void) {
    static const double quantiles[] = { 0, 0, 12.706204736, 4.302652730, 3.182446305, 2.776445105 };
    for (int n = 2; n <= 5; n++) {
        char arguments[64];
        double ms[64], sd, mean = mean_of(alone_ns, n, &sd), time = exp(mean) * 1e-6;
        double reach = quantiles[n] * sd * sqrt(1.0 / n + acos(-1) / 30);
        snprintf(arguments, sizeof arguments, "--op alone --iters 30 --procs %d", n);
        CHECK_INT(run("", arguments), 0);
        CHECK_INT(number(0, "processes"), n);
        CHECK_INT(numbers(0, "process_ms", ms), n);
        for (int p = 0; p < n; p++) CHECK_REAL(ms[p], alone_ns[p] * 1e-6, 1e-12);
        CHECK_REAL(number(0, "time_ms"), time, 1e-12);
        CHECK_REAL(number(0, "time_ms_ci_low"), time * exp(-reach), 1e-7);
        CHECK_REAL(number(0, "time_ms_ci_high"), time * exp(reach), 1e-7);
        CHECK_REAL(number(0, "precision"), sinh(reach), 1e-6);
        CHECK_REAL(number(0, "inference_speed"), 1000 / time, 1e-9);
        CHECK_REAL(number(0, "throughput_gbps"), 5e6 / time / 1e6, 1e-9);
        CHECK_REAL(number(0, "gflops"), 2e4 / time / 1e6, 1e-9);
        CHECK_REAL(number(0, "queries_per_second"), 1e5 / time, 1e-9);
        CHECK_REAL(number(0, "items_per_second"), 1e5 / time, 1e-9);
        CHECK_REAL(number(0, "gpu_efficiency"), 5e6 / time / 1e6 / 1000 * 100, 1e-9);
        CHECK_REAL(number(0, "max_error"), 0.001 * (n - 1), 1e-9);
        CHECK_INT(number(0, "samples"), 30);
        // details come from the process with the median time; of two processes, from the faster one
        CHECK_REAL(number(0, "time_ms_raw"), 0.01, 1e-12);
        CHECK_STR(get(0, "verified"), "true");
        CHECK_STR(get(0, "flags"), n == 2 ? "[\"NOISY\"]" : "[]"); // t(0.975; 1) is 12.7
    }
    CHECK_HAS(said, "+-: 95 % interval over several processes\n");
    run("", "--op alone --iters 30");
    CHECK_INT(number(0, "processes"), 1);
    CHECK_REAL(number(0, "time_ms"), 0.01, 1e-12);
    CHECK_STR(get(0, "process_ms"), "[0.01]");
    CHECK_HAS(said, "+-: 95 % interval of the median in one process, with bias");
    run("", "--op alone --iters 3 --procs 5");
    CHECK_STR(get(0, "flags"), "[]");
    CHECK(number(0, "precision") > 0);
    run("", "--op slow --iters 30 --procs 5");
    CHECK(number(0, "time_ms_ci_high") > 0.0107 && number(0, "precision") > 0.05);
    CHECK_STR(get(0, "flags"), "[\"NOISY\"]"); // NOISY is set although the interval within each process is narrow
    run("", "--op slow --iters 30 --procs 5 --quiet");
    CHECK(!strstr(said, "+-:"));
}

static void test_flags(void) {
    run("", "--op warned --iters 30 --procs 5");
    CHECK_STR(get(0, "flags"), "[\"THROTTLED\"]");
    run("", "--op warned --iters 30 --procs 4");
    CHECK_STR(get(0, "flags"), "[\"THROTTLED\"]");
    run("", "--op warned --iters 30 --procs 3");
    CHECK_STR(get(0, "flags"), "[\"THROTTLED\", \"SHARED_GPU\"]");
}

static int times_in(const char* text, const char* part) {
    int n = 0;
    for (const char* p = text; (p = strstr(p, part)) != NULL; p++) n++;
    return n;
}
static const char* logged(void) {
    static char text[65536];
    FILE* f = fopen("build/test/host/procs.log", "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f) fclose(f);
    return text;
}

// A case that fails in one process is not run again.
static void test_faults(void) {
    static const struct {
        const char *op, *flag, *message;
    } faults[] = { { "crash", "[\"CRASHED\"]",
                     "\"process 2 of 5: signal 9 (killed, perhaps because memory ran out), in a process that had run "
                     "other cases\"" },
                   { "hang", "[\"TIMEOUT\"]", "\"process 2 of 5: longer than 1.000 s\"" },
                   { "wrong", "[\"VERIFY_FAIL\"]", "\"process 3 of 5: the result of this process is wrong\"" } };
    CHECK_INT(run("", "--op alone,crash,hang,wrong,skips,skips_all,slow --iters 30 --timeout 1s --procs 5"), 1);
    CHECK_INT(file.n, 7);
    for (int i = 0; i < KBI_COUNT(faults); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/impl=default", faults[i].op);
        int r = record(name);
        CHECK_STR(get(r, "status"), "\"failed\"");
        CHECK_STR(get(r, "flags"), faults[i].flag);
        CHECK_STR(get(r, "message"), faults[i].message);
        CHECK_STR(get(r, "time_ms"), "null");
        CHECK_STR(get(r, "process_ms"), "null");
        CHECK_STR(get(r, "processes"), "null");
        snprintf(name, sizeof name, "%s 3 ", faults[i].op);
        CHECK_THAT(!strstr(logged(), name), "%s is tried again", faults[i].op);
    }
    int skipped = record("skips/impl=default");
    CHECK_STR(get(skipped, "status"), "\"skipped\"");
    CHECK_STR(get(skipped, "message"), "\"process 4 of 5: this process skips the case\"");
    CHECK_STR(get(record("skips_all/impl=default"), "message"), "\"not on a weekday\"");
    CHECK_INT(number(record("alone/impl=default"), "processes"), 5);
    CHECK_INT(number(record("slow/impl=default"), "processes"), 5);
    CHECK_HAS(said, "7 cases: 2 ok, 3 failed, 2 skipped");
    run("", "--op rivals --iters 30 --procs 4");
    int good = record("rivals/impl=good"), dies = record("rivals/impl=dies");
    CHECK_STR(get(good, "status"), "\"ok\"");
    CHECK_INT(number(good, "processes"), 4);
    CHECK_STR(get(good, "winner"), "null");
    CHECK_STR(get(dies, "status"), "\"failed\"");
    CHECK_STR(get(dies, "speedup"), "null");
    CHECK_HAS(get(dies, "message"), "process 3 of 4: signal 6");
}

static void test_contest(void) {
    double sd, mean = mean_of(ratios, 5, &sd), reach = 2.776445105 * sd / sqrt(5);
    CHECK_INT(run("", "--op contest --rounds 16 --procs 5"), 0);
    int base = record("contest/impl=base"), mine = record("contest/impl=mine");
    CHECK_REAL(number(mine, "speedup"), exp(mean), 1e-9);
    CHECK_REAL(number(mine, "speedup_low"), exp(mean - reach), 1e-8);
    CHECK_REAL(number(mine, "speedup_high"), exp(mean + reach), 1e-8);
    CHECK_STR(get(mine, "verdict"), "\"FASTER\"");
    CHECK_REAL(number(base, "speedup"), 1, 1e-12);
    CHECK_STR(get(base, "verdict"), "null");
    // the control has the scripted times of the baseline, so the noise floor is 0
    CHECK_REAL(number(mine, "noise_floor"), 0, 1e-9);
    CHECK_STR(get(base, "winner"), "\"mine\"");
    CHECK_STR(get(base, "winner_certain"), "true");
    CHECK_STR(get(base, "baseline"), "\"base\"");
    CHECK_STR(get(mine, "rating"), "\"excellent\"");
    run("", "--op unsure --rounds 16 --procs 2"); // t(0.975; 1) is 12.7: two processes are too few
    CHECK_STR(get(record("unsure/impl=mine"), "verdict"), "\"UNRESOLVED\"");
    CHECK_STR(get(0, "winner_certain"), "false");
    run("", "--op unsure --rounds 16 --procs 5");
    CHECK_STR(get(record("unsure/impl=mine"), "verdict"), "\"FASTER\"");
    run("", "--op contest --iters 30 --procs 5");
    CHECK_REAL(number(record("contest/impl=mine"), "noise_floor"), 0, 1e-9);
    CHECK_INT(number(record("contest/impl=base"), "samples"), 30);
    CHECK_STR(get(record("contest/impl=mine"), "verdict"), "\"FASTER\"");
}

// Tests the comparison over several processes with given samples, without running benchmarks. First the number of
// rounds of the A/A control differs between the processes; then one process has none.
static void test_ratios(void) {
    kbi_measured measured[2][5];
    double samples[2][5][2], sd;
    kb_result results[2];
    kbi_pools pools;
    kbi_compared c;
    kbi_arena memory = KBI_BLANK;
    kbi_pools_open(&pools, &memory, 2, 5);
    kbi_compared_open(&c, results, 2, 5);
    for (int i = 0; i < 2; i++) {
        kbi_result_clear(&results[i]);
        results[i].time_ms = i ? 9 : 10;
        results[i].implementation = i ? "mine" : "base";
        for (int p = 0; p < 5; p++) {
            kbi_measured_clear(&measured[i][p]);
            measured[i][p].rounds = 1, measured[i][p].arms = 3;
            measured[i][p].round_ns = &samples[i][p][0], measured[i][p].control_ns = i ? NULL : &samples[i][p][1];
            samples[i][p][0] = i ? alone_ns[p] / ratios[p] : alone_ns[p];
            samples[i][p][1] = alone_ns[p] / equals[p];
            c.m[p * 2 + i] = &measured[i][p];
        }
    }
    kbi_compared_pool(&c, &pools);
    kbi_pool_settle(&pools.ratios, 0), kbi_pool_settle(&pools.equals, 0);
    const kbi_estimate q = kbi_judge_ratio_over(&c, &pools, 0, 1, 0.05);
    CHECK_REAL(q.value, exp(mean_of(ratios, 5, &sd)), 1e-12);
    kbi_judge_group(&c, &pools);
    double mean = mean_of(equals, 5, &sd), reach = 2.776445105 * sd / sqrt(5);
    CHECK_REAL(results[1].noise_floor, KBI_MAX(exp(mean + reach), exp(reach - mean)) - 1, 1e-6);
    mean = mean_of(ratios, 5, &sd), reach = 3.495405933 * sd / sqrt(5); // 1 - 0.05 / 4: two comparisons share 5 %
    CHECK_REAL(results[1].speedup, exp(mean), 1e-12);
    CHECK_REAL(results[1].speedup_low, exp(mean - reach), 1e-9);
    reach = 2.776445105 * sd / sqrt(5);
    CHECK_REAL(q.low, exp(mean - reach), 1e-9);
    CHECK_STR(results[0].winner, "mine");
    CHECK_INT(results[1].winner_certain, 1);
    // The second implementation has no time in the last process.
    kbi_pools_open(&pools, &memory, 2, 5);
    kbi_compared_open(&c, results, 2, 5);
    for (int k = 0; k < 10; k++) c.m[k] = k < 9 ? &measured[k % 2][k / 2] : NULL;
    for (int p = 0; p < 4; p++) measured[0][p].arms = measured[1][p].arms = 2;
    mean = mean_of(ratios, 4, &sd), reach = 3.182446305 * sd / sqrt(4);
    kbi_compared_pool(&c, &pools);
    kbi_pool_settle(&pools.ratios, 0), kbi_pool_settle(&pools.equals, 0);
    kbi_judge_group(&c, &pools);
    CHECK_REAL(results[1].speedup, exp(mean), 1e-12);
    CHECK_REAL(results[1].speedup_high, exp(mean + reach), 1e-8);
    kbi_arena_free(&memory);
    for (int i = 0; i < 2; i++) kb_result_free(&results[i]);
}

// In one process, the code addresses of two implementations differ, which can change their times by 1 %. A single
// process therefore reports only differences above 1 % as faster or slower.
static kb_verdict verdict_of(bool core, double ratio, double scatter, double* noise) {
    enum { ROUNDS = 40 };
    kbi_measured measured[2];
    double samples[2][2 * ROUNDS];
    kb_result results[2];
    kbi_compared c;
    kbi_compared_open(&c, results, 2, 1);
    for (int i = 0; i < 2; i++) {
        kbi_result_clear(&results[i]);
        kbi_measured_clear(&measured[i]);
        c.m[i] = &measured[i];
        results[i].time_ms = i ? 1 / ratio : 1;
        measured[i].core = core, measured[i].stage = 1, measured[i].arms = 2;
        measured[i].rounds = ROUNDS, measured[i].round_ns = samples[i];
        measured[i].control_ns = i ? NULL : samples[i] + ROUNDS;
        for (int k = 0; k < ROUNDS; k++) {
            samples[i][k] = i ? 1e6 / (ratio * (1 + scatter * (k * 7 % 11 - 5))) : 1e6;
            samples[i][ROUNDS + k] = 1e6 * (1 + 1e-4 * (k * 7 % 11 - 5));
        }
    }
    kbi_compared_pool(&c, NULL);
    kbi_judge_group(&c, NULL);
    *noise = results[1].noise_floor;
    CHECK_INT(results[1].flags, 0);
    kb_verdict verdict = results[1].verdict;
    for (int i = 0; i < 2; i++) kb_result_free(&results[i]);
    return verdict;
}
// Cases that no process compared in interleaved rounds: the ratio of each process is that of the medians.
static void test_ratio_of_medians(void) {
    double samples[2][3] = { { 4000, 5000, 9000 }, { 9000, 10000, 11000 } };
    kbi_measured measured[2][2];
    const kbi_measured* all[4];
    kb_result results[2];
    kbi_compared c;
    kbi_pools pools;
    kbi_arena memory = KBI_BLANK;
    memset(measured, 0, sizeof measured), memset(results, 0, sizeof results), memset(&c, 0, sizeof c);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 2; i++) {
            kbi_measured* m = &measured[p][i];
            m->samples = samples[i], m->n = 3, m->bias_ns = NAN;
            all[2 * p + i] = m, results[i].time_ms = i ? 0.01 : 0.005;
        }
    c.results = results, c.n = 2, c.processes = 2, c.m = all;
    kbi_pools_open(&pools, &memory, 2, 2);
    CHECK_INT(kbi_compared_pair(&c, &pools.ratios, 0, 1), 0);
    for (int p = 0; p < 2; p++) CHECK_REAL(pools.ratios.values[p], log(0.5), 1e-12);
    CHECK_REAL(pools.ratios.ms[0], 0.005, 1e-12);
    measured[0][0].status = measured[1][1].status = KB_FAILED;
    CHECK_INT(kbi_compared_pair(&c, &pools.ratios, 0, 1), -1);
    kbi_arena_free(&memory);
}

static void test_code(void) {
    double noise;
    kbi_registered all = kbi_registry();
    for (int i = 0; i < all.n; i++) // every benchmark function must start at a multiple of 64 bytes
        if (all.of[i]->file) CHECK_INT((uintptr_t)all.of[i]->body % 64, 0);
    KBENCH_FREE(all.of);
    CHECK_INT(verdict_of(false, 1.01, 1e-3, &noise), KB_FASTER);
    CHECK(noise < 0.002);
    CHECK_INT(verdict_of(true, 1.01, 1e-3, &noise), KB_UNRESOLVED);
    CHECK_REAL(noise, 0.01, 1e-12);
    CHECK_INT(verdict_of(true, 1 / 1.01, 1e-3, &noise), KB_UNRESOLVED);
    CHECK_INT(verdict_of(true, 1.03, 1e-3, &noise), KB_FASTER);
    CHECK_INT(verdict_of(true, 0.97, 1e-3, &noise), KB_SLOWER);
    CHECK_INT(verdict_of(true, 1.003, 1e-3, &noise), KB_EQUIVALENT);
}

// Each process of --procs runs a complete batch of cases before the next process starts. A batch has at least 16
// cases, unless fewer remain.
static void test_laps(void) {
    static const int counts[] = { 1, 16, 17, 40 };
    for (int k = 0; k < KBI_COUNT(counts); k++) {
        char arguments[128], last[64] = "";
        int processes = 0, wrong = 0, batches = KBI_MAX(counts[k] / 16, 1);
        snprintf(arguments, sizeof arguments, "--op simulated -a n=1:%d --iters 6 --procs 3", counts[k]);
        CHECK_INT(run("", arguments), 0);
        CHECK_INT(file.n, counts[k]);
        for (const char* s = logged(); *s; s += strcspn(s, "\n"), s += *s == '\n') {
            char line[64];
            snprintf(line, sizeof line, "%.*s", (int)strcspn(s, "\n"), s);
            if (strcmp(line, last) == 0) continue;
            wrong += atoi(line + strlen("simulated ")) != processes++ % 3;
            snprintf(last, sizeof last, "%s", line);
        }
        CHECK_INT(processes, 3 * batches);
        CHECK_INT(wrong, 0);
    }
    run("", "--op simulated -a n=1:40 --iters 6");
    CHECK_INT(times_in(logged(), "simulated 0 "), times_in(logged(), "simulated"));
    const char* first = logged();
    char line[64];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(first, "\n"), first);
    CHECK_INT(times_in(first, line), times_in(first, "simulated"));
    run("", "--op simulated -a n=1:20 --iters 6 --procs 3 --sort -time");
    CHECK(strstr(said, "n=20") && strstr(said, "n=20") < strstr(said, "n=19 "));
    CHECK_HAS(get(0, "name"), "n=1\"");
}

// Simulated cases of 2 us to 5 ms, in which the processes differ by 1 %. The interval from five processes covers
// the median of 15 other processes in 95 % of the cases, the interval from one process in less than half.
static void test_coverage(void) {
    static double low[2][160], high[2][160];
    static const char* const how[] = { "--op simulated --iters 6 --procs 5", "--op simulated --iters 6" };
    double held[2] = { 0, 0 };
    for (int k = 0; k < 2; k++) {
        CHECK_INT(run("PROCS_WORLD=1", how[k]), 0);
        CHECK_INT(file.n, 160);
        for (int i = 0; i < file.n && i < 160; i++)
            low[k][i] = number(i, "time_ms_ci_low"), high[k][i] = number(i, "time_ms_ci_high");
    }
    CHECK_INT(run("PROCS_WORLD=2", "--op simulated --iters 6 --procs 15"), 0);
    for (int i = 0; i < file.n && i < 160; i++) {
        double ms[64], scratch[64], median;
        CHECK_INT(numbers(i, "process_ms", ms), 15);
        median = kbi_median_of(ms, 15, scratch);
        for (int k = 0; k < 2; k++) held[k] += (low[k][i] <= median && median <= high[k][i]) / 1.6;
    }
    CHECK_THAT(held[0] >= 95 - 4, "--procs 5 holds %.1f %%", held[0]); // 2.33 binomial standard errors
    CHECK_THAT(held[1] < 50, "one process holds %.1f %%", held[1]);
}

int main(int argc, char** argv) {
    scripted.time = script;
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    if (system("mkdir -p build/test/host") != 0) return 2;
    test_times();
    test_flags();
    test_faults();
    test_contest();
    test_ratios();
    test_ratio_of_medians();
    test_code();
    test_laps();
    test_coverage();
    json_free(&file);
    return test_end();
}
