// SPDX-License-Identifier: MIT OR Unlicense
// Tests how kbench derives the plan (the cases to run) from the command line. It covers options and environment
// variables, the values of axes, and the cases and groups of a complete plan, of a shard and of a selection.
#include "test.h"
#include <stdlib.h>
#include "guarded.h"
#include "kit.h"

// --- the command line ---

static kbi_options options;
static char line_words[6000];

static bool parse(const char* line) {
    static char* argv[200];
    int argc = 1;
    kbi_options_default(&options);
    snprintf(line_words, sizeof line_words, "%s", line);
    argv[0] = line_words;
    for (char* p = strtok(line_words, " "); p && argc < 199; p = strtok(NULL, " ")) argv[argc++] = p;
    argv[argc] = NULL;
    return kbi_options_parse(&options, argc, argv);
}

static void test_limits(void) {
    static const struct {
        const char *in, *out;
    } rows[] = { { "--iters 1", "--iters 0" },
                 { "--iters 10000000", "--iters 10000001" },
                 { "--rounds 1", "--rounds 0" },
                 { "--rounds 512", "--rounds 513" },
                 { "--launches 4096", "--launches 4097" },
                 { "--procs 1", "--procs 0" },
                 { "--procs 64", "--procs 65" },
                 { "--seed 0", "--seed -1" },
                 { "--seed 9223372036854775807", "--seed 9223372036854775808" },
                 { "--warmup 0", "--warmup -1" },
                 { "--warmup 1000000", "--warmup 1000001" },
                 { "--warmup 0s", "--warmup -1s" },
                 { "--precision 100", "--precision 100.001" },
                 { "--precision 0.001%", "--precision 0%" },
                 { "--precision 1%", "--precision 1%%" },
                 { "--alpha 0.5 --baseline x", "--alpha 0.5001 --baseline x" },
                 { "--alpha 1e-6 --baseline x", "--alpha 9e-7 --baseline x" },
                 { "--alpha 0.1 --baseline x", "--alpha 0.1% --baseline x" },
                 { "--threshold 0 --baseline x", "--threshold -1 --baseline x" },
                 { "--threshold 1000% --baseline x", "--threshold 1001 --baseline x" },
                 { "--memory-threshold 1000 --baseline x", "--memory-threshold 1000x --baseline x" },
                 { "--device 0", "--device -1" },
                 { "--device 1023", "--device 1024" },
                 { "--device all", "--device al" },
                 { "--max-time 1ns", "--max-time 0.9ns" },
                 { "--min-time 0s", "--min-time -1s" },
                 { "--timeout 1ns", "--timeout 0.9ns" },
                 { "--budget 1ms", "--budget 0.9ms" },
                 { "--budget 3s", "--part 3s" },
                 { "--min-time 2s --max-time 2s", "--min-time 2.1s --max-time 2s" },
                 { "--shard 1/1", "--shard 0/1" },
                 { "--shard 8/8", "--shard 9/8" },
                 { "--shard 1000000/1000000", "--shard 1/1000001" },
                 { "--shard 2/8", "--shard 2" },
                 { "--shard 2/8", "--shard /8" },
                 { "--benchmark_repetitions 1000000", "--benchmark_repetitions 1000001" },
                 { "--benchmark_repetitions 1", "--benchmark_repetitions 0" },
                 { "--timer BOTH", "--timer both,wall" },
                 { "--procs 2", "--procs 2 --no-isolate" },
                 { "--procs 1 --no-isolate", "--procs 3 --no-isolate" },
                 { "--counters", "--counters=" },
                 { "--counters=few", "--counters=fews" },
                 { "--counters=a__b.sum,c", "--counters=a__b.sum;c" },
                 { "--counters=a__b", "--counters=a_b" },
                 { "--nsys=x --device 0", "--nsys= --device 0" },
                 { "--ncu --device 0", "--ncu --device all" },
                 { "--energy --device all", "--energy --device cpu" },
                 { "--ncu=full,a__b.c:d --device 0", "--ncu=full;x --device 0" },
                 { "--ncu --device 0", "--ncu --device 0 --list" },
                 { "--race a b", "--race a" },
                 { "--race a b --fail-on never", "--fail-on never" },
                 { "--race a b --threshold 1", "--threshold 1" },
                 { "--baseline a --noise 1", "--race a b --noise 1" },
                 { "--load a --ignore-env", "--ignore-env" },
                 { "--goal speed>1 --fail-on never", "--noise 1" },
                 { "--budget 1s --dry-run", "--budget 1s --list" },
                 { "--goal x>1", "--goal x>1 --dry-run" },
                 { "--svg a --plot time", "--svg a" },
                 { "--svg a --plot time --where x", "--plot time" },
                 { "--jsonl a --resume", "--jsonl - --resume" },
                 { "--jsonl a --resume", "--resume" },
                 { "--cold --timer cupti", "--cold --timer wall" },
                 { "--hot --timer events", "--hot --timer wall" },
                 { "--rotate --timer events", "--rotate --timer both" },
                 { "--launches 8 --timer both", "--launches 8 --timer cupti" },
                 { "--fresh", "--fresh --no-verify" },
                 { "--benchmark_out=x", "--benchmark_out=x --gbench y" },
                 { "--benchmark_out_format=json", "--benchmark_out_format=csv" },
                 { "--op a --op b", "--json a --json a" },
                 { "--load a b --where x=y --where z=w --svg s --plot time", "--load" },
                 { "--compare a b", "--compare a" },
                 { "-a x=1 -a y=1", "-a x=1 -a X=2" },
                 { "-a xy=1 -a x=1", "-a x" },
                 { "-v", "-a x= -v -q" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        CHECK_THAT(parse(rows[i].in), "'%s' is rejected", rows[i].in);
        CHECK_THAT(!parse(rows[i].out), "'%s' is accepted", rows[i].out);
    }
    char line[2000] = "", name[120];
    for (int i = 0; i <= KBI_LISTS; i++) {
        if (i) CHECK_THAT(parse(line) && options.op.n == i, "%d lists: %d", i, options.op.n);
        snprintf(line + strlen(line), sizeof line - strlen(line), " --op o%d", i);
    }
    CHECK(!parse(line));
    for (int n = 98; n < 102; n++) {
        memset(name, 'a', sizeof name), name[n] = 0;
        snprintf(line, sizeof line, "--save-baseline %s", name);
        CHECK_THAT(parse(line) == (n < 100), "a baseline's name of %d", n);
    }
    CHECK(!parse("--save-baseline .a") && !parse("--save-baseline a/b") && parse("--save-baseline a.b_+-"));
}

// Two output options must not name the same file, not even as a and ./a.
static void test_apart(void) {
    static const struct {
        const char* line;
        bool apart;
    } rows[] = { { "--json a --jsonl b --csv c", true },
                 { "--json a --jsonl a", false },
                 { "--csv a --md ./a", false },
                 { "--json no/a --jsonl no/b", true },
                 { "--json no/a --jsonl no/a", false },
                 { "--json -", true },
                 { "--json - --jsonl -", false },
                 { "--json /dev/stdout --csv -", false },
                 { "--json /dev/null --jsonl /dev/null", true } };
    kbi_csv_add();
    for (int i = 0; i < KBI_COUNT(rows); i++)
        CHECK_THAT(parse(rows[i].line) && kbi_outputs_apart(&options) == rows[i].apart, "'%s': %d", rows[i].line,
                   rows[i].apart);
}

static void test_wired(void) {
    static const char* const tries[] = { "a",   "1",    "2",     "0.1", "time", "2s", "2/5",  "few",
                                         "5 b", "wall", "never", "all", "x=1",  "0",  "json", "true" };
    for (int id = 0; id < KBI_OPTION_COUNT; id++) {
        const kb_option* option = &kbi_options_table[id];
        bool taken = false, kept = false;
        for (int i = 0; option->argument && i < KBI_COUNT(tries); i++) {
            kbi_options before;
            kbi_options_default(&options);
            options.argc = 4;
            before = options;
            if (!kbi_option_set(&options, id, tries[i])) continue;
            before.on[id] = options.on[id];
            taken = true, kept |= memcmp(&before, &options, sizeof before) != 0;
        }
        if (option->argument) CHECK_THAT(taken && kept, "--%s is forgotten", option->name);
        bool file = kbi_is(option->argument, "FILE") && kbi_is(option->group, "out");
        if (file) CHECK_THAT(option->rules & KBI_WRITES, "nobody writes --%s", option->name);
    }
}

static void test_values(void) {
    CHECK(parse("--max-time 2s --min-time 500ms --timeout 3m --precision 0.25% --warmup 7 --iters 9 --seed 11"));
    CHECK_REAL(options.max_time, 2, 0), CHECK_REAL(options.min_time, 0.5, 0), CHECK_REAL(options.timeout, 180, 0);
    CHECK_REAL(options.precision, 0.0025, 1e-15), CHECK_INT(options.warmup_count, 7);
    CHECK(options.warmup_time < 0);
    CHECK_INT(options.iters, 9), CHECK_INT(options.seed, 11), CHECK_INT(options.min_samples, 30);
    CHECK_INT(options.max_samples, 2000), CHECK_INT(options.shards, 0);
    CHECK(parse("--warmup 30ms --rounds 17 --launches 3 --procs 5 --budget 3s"));
    CHECK_REAL(options.warmup_time, 0.03, 1e-15), CHECK_INT(options.warmup_count, -1);
    CHECK_INT(options.rounds, 17), CHECK_INT(options.launches, 3), CHECK_INT(options.procs, 5);
    CHECK_REAL(options.budget, 3, 0);
    CHECK(parse("--baseline x --threshold 7 --memory-threshold 12.5% --alpha 0.01 --noise 2 --fail-on noise"));
    CHECK_REAL(kbi_wanted.threshold, 0.07, 1e-15), CHECK_REAL(kbi_wanted.memory_threshold, 0.125, 1e-15);
    CHECK_REAL(kbi_wanted.alpha, 0.01, 1e-15), CHECK_REAL(kbi_wanted.noise, 0.02, 1e-15);
    CHECK_STR(kbi_wanted.fail_on, "noise"), CHECK_STR(kbi_wanted.baseline, "x");
    CHECK(parse("--shard 3/7 x -- --y")), CHECK_INT(options.shard, 3), CHECK_INT(options.shards, 7);
    CHECK_INT(options.filter.n, 2), CHECK_STR(options.filter.of[0], "x"), CHECK_STR(options.filter.of[1], "--y");
    CHECK(parse("--load a b --csv c d -- e")), CHECK_INT(kbi_wanted.n_load, 2), CHECK_STR(kbi_wanted.load[1], "b");
    CHECK_STR(options.csv, "c"), CHECK_INT(options.filter.n, 2);
    CHECK(parse("--race a b c -- --fast -x")), CHECK_INT(kbi_wanted.race.n, 3), CHECK_STR(kbi_wanted.race.of[2], "c");
    CHECK_STR(options.rest[0], "--fast"), CHECK_STR(options.rest[1], "-x");
    CHECK(!options.on[KBI_OPTION_fast]), CHECK_REAL(options.budget, 0, 0);
    CHECK(parse("--race a b- x-y -q")), CHECK_INT(kbi_wanted.race.n, 3), CHECK(options.on[KBI_OPTION_quiet]);
    CHECK(parse("--load a - x- -q")), CHECK_INT(kbi_wanted.n_load, 3), CHECK(options.on[KBI_OPTION_quiet]);
    CHECK(parse("--compare a b- -q")), CHECK_STR(kbi_wanted.compare[1], "b-"), CHECK(!parse("--compare a -q"));
    static const char* const files[] = { "json", "jsonl", "csv", "trace", "svg" };
    // --json without a name must not take the next option as its file name
    for (int i = 0; i < KBI_COUNT(files); i++) {
        const char *name = files[i], *figure = i == 4 ? " --plot time" : "";
        char line[4][60];
        snprintf(line[0], sizeof line[0], "--%s -q%s", name, figure);
        snprintf(line[1], sizeof line[1], "--%s --quiet%s", name, figure);
        snprintf(line[2], sizeof line[2], "--%s -%s", name, figure);
        snprintf(line[3], sizeof line[3], "--%s=-q%s", name, figure);
        for (int k = 0; k < 4; k++) CHECK_THAT(parse(line[k]) == (k >= 2), "'%s': %d", line[k], k < 2);
    }
    CHECK(parse("--race a b --budget 5s")), CHECK_REAL(options.budget, 5, 0);
    CHECK(parse("--compare old new x")), CHECK_STR(kbi_wanted.compare[0], "old"), CHECK_STR(kbi_wanted.compare[1], "new");
    CHECK_INT(options.filter.n, 1);
    CHECK(parse("--benchmark_filter c")), CHECK_INT(options.exclude.n, 0);
    CHECK_INT(options.filter.n, 1), CHECK_STR(options.filter.of[0], "c");
    static const struct {
        const char* line;
        double max_time, min_time, precision;
        int min_samples, max_samples;
    } rows[] = { { "--fast", 0.2, 0, 0.02, 10, 2000 },
                 { "--quick", 0.2, 0, 0.02, 10, 2000 },
                 { "--fast --max-time 3s", 3, 0, 0.02, 10, 2000 },
                 { "--fast --precision 1", 0.2, 0, 0.01, 10, 2000 },
                 { "--fast --min-time 300ms", 0.3, 0.3, 0.02, 10, 2000 },
                 { "--fast --min-time 100ms", 0.2, 0.1, 0.02, 10, 2000 },
                 { "--thorough", 10, 0, 0.002, 30, 20000 },
                 { "--thorough --max-time 3s --precision 1", 3, 0, 0.01, 30, 20000 },
                 { "--min-time 4s", 4, 4, 0.005, 30, 2000 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        CHECK(parse(rows[i].line));
        CHECK_THAT(options.max_time == rows[i].max_time && options.min_time == rows[i].min_time, "%s: %g s, %g s",
                   rows[i].line, options.max_time, options.min_time);
        CHECK_THAT(options.precision == rows[i].precision && options.min_samples == rows[i].min_samples &&
                       options.max_samples == rows[i].max_samples,
                   "%s: %g, %d to %d", rows[i].line, options.precision, (int)options.min_samples,
                   (int)options.max_samples);
    }
}

static void test_recipe(void) {
    kbi_recipe r;
    CHECK(parse(""));
    kbi_recipe_of(&r, &options);
    CHECK(r.target == KBI_ON_GPU && r.mode == KBI_COLD && r.timing == KBI_BY_EVENTS && r.verify && r.audit &&
          !r.fresh);
    CHECK_INT(r.seed, 42), CHECK_INT(r.max_rounds, 64), CHECK_INT(r.warmup_samples, -1), CHECK(r.warmup_time < 0);
    CHECK_REAL(r.precision, 0.005, 0), CHECK_REAL(r.max_time, 1, 0), CHECK_REAL(r.min_time, 0, 0);
    CHECK_INT(r.min_samples, 30), CHECK_INT(r.max_samples, 2000), CHECK_INT(r.samples, 0), CHECK_INT(r.rounds, 0);
    CHECK(parse("--device cpu --rotate --timer events --no-verify --no-audit --thorough --min-time 3s --seed 5 "
                "--warmup 9 --rounds 21 --counters=few"));
    kbi_recipe_of(&r, &options);
    CHECK(r.target == KBI_ON_CPU && r.mode == KBI_ROTATE && !r.verify && !r.audit);
    CHECK_REAL(r.min_time, 3, 0), CHECK_REAL(r.max_time, 10, 0), CHECK_REAL(r.precision, 0.002, 0);
    CHECK_INT(r.seed, 5), CHECK_INT(r.warmup_samples, 9), CHECK_INT(r.rounds, 21), CHECK_STR(kbi_inspect_given.counters, "few");
    CHECK_INT(r.max_rounds, KBI_ROUNDS_LIMIT), CHECK_INT(r.max_samples, 20000);
    CHECK(parse("--device script --hot --timer Both --fresh --fast --iters 6 --launches 4 --warmup 2s"));
    kbi_recipe_of(&r, &options);
    CHECK(r.target == KBI_ON_OWN && r.mode == KBI_HOT && r.timing == KBI_BY_BOTH && r.fresh && r.verify);
    CHECK_INT(r.samples, 6), CHECK_INT(r.launches, 4), CHECK_REAL(r.warmup_time, 2, 0);
    CHECK_INT(r.min_samples, 10), CHECK_INT(r.max_rounds, 64);
    CHECK(parse("--timer cupti")), kbi_recipe_of(&r, &options), CHECK(r.timing == KBI_BY_CUPTI);
    CHECK(parse("--timer wall")), kbi_recipe_of(&r, &options), CHECK(r.timing == KBI_BY_WALL);
    static const struct {
        const char *line, *host, *all; // host: instruments of a build without CUDA; all: of a build with CUDA
    } rows[] = { { "", "", "" },
                 { "--counters", "counters", "counters" },
                 { "--counters=few --json x", "counters", "counters" } };
    for (int i = 0; i < KBI_COUNT(rows); i++)
        for (int host = 0; host < 2 && parse(rows[i].line); host++) {
            char wanted[80] = "";
            for (kb_instrument* k = kbi_process.instruments; k; k = k->next)
                if (kbi_profile_bits(host) & k->bit) strcat(wanted, k->option);
            CHECK_STR(wanted, host ? rows[i].host : rows[i].all);
        }
}

// Tests the shard of a task in a Slurm array. set: values of the five SLURM_ARRAY_TASK variables for task id,
// lowest id, highest id, step and count ("": the variable is not set).
static void test_shards_by_environment(void) {
    static const char* const slurm[] = { "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX",
                                         "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT" };
    static const struct {
        const char* set[5];
        int shard, shards; // 0: rejected
    } rows[] = { { { "1", "1", "8", "1", "8" }, 1, 8 },
                 { { "8", "1", "8", "1", "8" }, 8, 8 },
                 { { "8", "2", "14", "3", "5" }, 3, 5 },
                 { { "14", "2", "16", "3", "5" }, 5, 5 },
                 { { "9", "2", "14", "3", "5" }, 0, 0 },
                 { { "8", "2", "14", "3", "4" }, 0, 0 },
                 { { "0", "0", "0", "1", "1" }, 1, 1 },
                 { { "1", "2", "8", "1", "7" }, 0, 0 },
                 { { "9", "1", "8", "1", "8" }, 0, 0 },
                 { { "3", "", "8", "", "" }, 4, 9 },
                 { { "", "1", "8", "1", "8" }, 0, 0 },
                 { { "1", "1", "", "1", "8" }, 0, 0 },
                 { { "1", "1", "8", "0", "8" }, 0, 0 },
                 { { "1", "1", "8", "1", "0" }, 0, 0 },
                 { { "1", "-1", "8", "1", "8" }, 0, 0 },
                 { { "1", "1", "1000001", "1", "" }, 0, 0 },
                 { { "1", "1", "1000000", "1", "" }, 1, 1000000 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        for (int k = 0; k < 5; k++)
            if (rows[i].set[k][0])
                setenv(slurm[k], rows[i].set[k], 1);
            else
                unsetenv(slurm[k]);
        bool good = parse("--shard auto");
        CHECK_THAT(good == (rows[i].shards > 0), "task %d", i);
        if (good)
            CHECK_THAT(options.shard == rows[i].shard && options.shards == rows[i].shards, "task %d: %d/%d", i,
                       (int)options.shard, (int)options.shards);
    }
    for (int k = 0; k < 5; k++) unsetenv(slurm[k]);
}

// --- axes ---

static int length_of_list(kb_axis_type type, const char* list) {
    kbi_arena a = KBI_BLANK;
    kbi_dimension d = kbi_parse_list(&a, "n", type, list, strlen(list));
    int n = d.n;
    for (int i = 0; i < n; i++) CHECK(d.values[i].name == d.name && d.values[i].type == type);
    kbi_arena_free(&a);
    return n;
}

static void test_axes(void) {
    static const struct {
        kb_axis_type type;
        const char* list;
        int n;
    } rows[] = { { KB_AXIS_INTS, "1:4096", 4096 },
                 { KB_AXIS_INTS, "1:4097", 0 },
                 { KB_AXIS_INTS, "1:4095,7", 4096 },
                 { KB_AXIS_INTS, "1:4096,7", 0 },
                 { KB_AXIS_INTS, "999999999999999", 1 },
                 { KB_AXIS_INTS, "1000000000000000", 0 },
                 { KB_AXIS_INTS, "-999999999999999", 1 },
                 { KB_AXIS_INTS, "-1000000000000000", 0 },
                 { KB_AXIS_REALS, "1e15,2^-1,-2^2,0^0,2^0.5", 5 },
                 { KB_AXIS_REALS, "0^1", 1 },
                 { KB_AXIS_REALS, "2^-9999", 0 },
                 { KB_AXIS_REALS, "2^", 0 },
                 { KB_AXIS_REALS, "1:2:-1", 0 },
                 { KB_AXIS_REALS, "1:2:*1", 0 },
                 { KB_AXIS_REALS, "1:2:*1.5", 2 },
                 { KB_AXIS_REALS, "-1:2:*1.5", 0 },
                 { KB_AXIS_REALS, "1:1:*2", 1 },
                 { KB_AXIS_REALS, "1:2:/2", 0 },
                 { KB_AXIS_STRINGS, "a", 1 },
                 { KB_AXIS_STRINGS, "a,b,", 0 },
                 { KB_AXIS_STRINGS, "a\tb", 0 } };
    for (int i = 0; i < KBI_COUNT(rows); i++)
        CHECK_THAT(length_of_list(rows[i].type, rows[i].list) == rows[i].n, "%s: %d values", rows[i].list,
                   length_of_list(rows[i].type, rows[i].list));
    static char many[2 * KBI_VALUES + 3];
    for (int i = 0; i <= KBI_VALUES; i++) many[2 * i] = 'a', many[2 * i + 1] = ',';
    many[2 * KBI_VALUES + 1] = 0;
    CHECK_INT(length_of_list(KB_AXIS_STRINGS, many), 0);
    CHECK_INT(length_of_list(KB_AXIS_STRINGS, many + 2), KBI_VALUES);
    kbi_arena a = KBI_BLANK;
    kbi_dimension d = kbi_parse_list(&a, "n", KB_AXIS_INTS, "-0,3", 4);
    CHECK(!signbit(d.values[0].r) && d.values[1].r == 3 && d.values[1].i == 3);
    d = kbi_parse_list(&a, "n", KB_AXIS_REALS, "-0,0.5", 6);
    CHECK(signbit(d.values[0].r) && d.values[1].r == 0.5 && d.values[1].i == 0);
    // axes of a size
    static const struct {
        const char* spec;
        int n; // -1: rejected
        const char* last;
        int64_t value;
    } sizes[] = { { "", 0, NULL, 0 },
                  { "  ", 0, NULL, 0 },
                  { "rows=512", 1, "rows", 512 },
                  { "rows=512 cols=1,2", 2, "cols", 2 },
                  { "  a=1   b=3 ", 2, "b", 3 },
                  { "rows", -1, NULL, 0 },
                  { "rows=", -1, NULL, 0 },
                  { "=3", -1, NULL, 0 },
                  { "rows= cols=3", -1, NULL, 0 },
                  { "rows=x", -1, NULL, 0 },
                  { "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1:9", 16, "p", 9 },
                  { "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1 q=1", -1, NULL, 0 } };
    for (int i = 0; i < KBI_COUNT(sizes); i++) {
        kbi_dimension of[KBI_DIMENSIONS];
        int n = 0;
        bool good = !kbi_size_dimensions(&a, sizes[i].spec, of, &n);
        CHECK_THAT(good == (sizes[i].n >= 0) && (!good || n == sizes[i].n), "'%s': %d axes", sizes[i].spec, n);
        if (!good || !n) continue;
        CHECK_STR(of[n - 1].name, sizes[i].last);
        CHECK_INT(of[n - 1].values[of[n - 1].n - 1].i, sizes[i].value);
    }
    kbi_arena_free(&a);
}

static void test_cpus(void) {
    kbi_cpus c, allowed, now;
    char out[80];
    CHECK(kbi_cpus_parse("8191,0,63,64", &c) && kbi_cpus_has(&c, 8191) && kbi_cpus_has(&c, 0));
    CHECK(!kbi_cpus_has(&c, 8190) && !kbi_cpus_has(&c, 1) && !kbi_cpus_has(&c, 62) && !kbi_cpus_has(&c, 65));
    CHECK_STR(kbi_cpus_show(&c, out, sizeof out), "0,63-64,8191");
    CHECK(!kbi_cpus_parse("0-8192", &c) && !kbi_cpus_parse("1-", &c) && !kbi_cpus_parse("2-1", &c));
    CHECK(kbi_cpus_parse("0-8191", &c)), CHECK_STR(kbi_cpus_show(&c, out, sizeof out), "0-8191");
    CHECK(kbi_cpus_parse("1,3,5", &c));
    CHECK_STR(kbi_cpus_show(&c, out, 10), "1,3,5"), CHECK_STR(kbi_cpus_show(&c, out, 9), "1,3,...");
    memset(&c, 0, sizeof c), CHECK_STR(kbi_cpus_show(&c, out, sizeof out), "");
    if (!kbi_cpus_allowed(&allowed)) return;
    CHECK(kbi_cpus_has(&allowed, kbi_cpu_now()));
    memset(&c, 0, sizeof c); // c: the set that holds only the first processor on which this process may run
    for (int i = 0; i < KBI_CPUS && !c.words[i / KBI_CPUS_IN]; i++)
        if (kbi_cpus_has(&allowed, i)) c.words[i / KBI_CPUS_IN] = 1ul << i % KBI_CPUS_IN;
    CHECK(kbi_cpus_pin(&c) && kbi_cpus_allowed(&now) && memcmp(&now, &c, sizeof c) == 0);
    CHECK(kbi_cpus_has(&c, kbi_cpu_now()) && kbi_cpus_pin(&allowed));
}

// --- patterns ---

static void test_patterns(void) {
    kbi_strings texts;
    kbi_patterns p;
    texts.n = 0;
    texts.of[texts.n++] = "^ab", texts.of[texts.n++] = "c(d|e)$";
    CHECK(kbi_patterns_compile(&p, &texts));
    CHECK_INT(p.n, 2);
    CHECK(kbi_patterns_match(&p, "ABx") && kbi_patterns_match(&p, "xce") && !kbi_patterns_match(&p, "xab"));
    kbi_patterns_free(&p);
    CHECK_INT(p.n, 0);
    CHECK(!kbi_patterns_match(&p, "ab"));
    texts.of[1] = "(";
    CHECK(!kbi_patterns_compile(&p, &texts));
    kbi_patterns_free(&p);
}

// --- plans ---

static void body(kb_state* kb) { (void)kb; }

#define END                                    \
    {                                          \
        NULL, KB_AXIS_END, { 0 }, { 0 }, { 0 } \
    }
static const kb_axis grid[] = { KB_AXIS("x", 1, 2), KB_AXIS("y", 3, 4, 5), END };
static const kb_axis turned[] = { KB_AXIS("y", 5, 4, 3), KB_AXIS("x", 2, 1), END };
static const kb_axis typed[] = { KB_AXIS_STR("dir", "fwd", "bwd"), KB_DTYPE("f32", "bf16"), KB_SIZE("small", "n=4"),
                                 KB_SIZE("large", "n=8,16"), END };
static kb_entry entries[] = { { .operation = "a", .implementation = "one", .body = body, .axes = grid },
                              { .operation = "a", .implementation = "two", .body = body, .axes = turned },
                              { .operation = "b", .implementation = "one", .body = body, .axes = typed },
                              { .operation = "c", .implementation = "gpu", .body = body, .needs = KB_NEEDS_GPU },
                              { .operation = "c", .implementation = "cpu", .body = body, .needs = KB_NEEDS_CPU } };
static kb_entry* const all_entries[] = { &entries[0], &entries[1], &entries[2], &entries[3], &entries[4] };

static bool plan_of(kbi_plan* plan, const char* line) {
    kbi_registered all = { (kb_entry**)(void*)all_entries, KBI_COUNT(all_entries) };
    CHECK(parse(line));
    return kbi_plan_make(plan, &options, &all);
}

// Returns the cases of a plan in short form, with groups in brackets: "[a.one 1 3][...".
static const char* shown(const kbi_plan* plan) {
    static char out[4][4000];
    static int turn;
    char* at = out[turn = (turn + 1) % 4];
    *at = 0;
    for (int i = 0; i < plan->n; i++) {
        const kbi_case* c = &plan->cases[i];
        bool first = i == 0 || c->group != c[-1].group;
        at += sprintf(at, "%s%s.%s", first ? "[" : " ", c->entry->operation, c->entry->implementation);
        if (c->direction) at += sprintf(at, "/%s", c->direction);
        for (int k = 0; k < c->n_params; k++) {
            const kb_param* p = &c->params[k];
            at += p->type == KB_AXIS_STRINGS ? sprintf(at, "/%s", p->s) : sprintf(at, "/%s%d", p->name, (int)p->i);
        }
        if (i + 1 == plan->n || c->group != c[1].group) at += sprintf(at, "]");
    }
    return out[turn];
}

static void check_plan(const char* line, int groups, int all, const char* want) {
    kbi_plan plan;
    if (!CHECK_THAT(plan_of(&plan, line), "'%s' is rejected", line)) return;
    CHECK_THAT(strcmp(shown(&plan), want) == 0, "%s: %s", line, shown(&plan));
    CHECK_THAT(plan.groups == groups && plan.n_all == all, "%s: %d groups of %d", line, plan.groups, plan.n_all);
    for (int i = 0; i < plan.n_all; i++) {
        int same = 0;
        for (int k = 0; k < plan.n_all; k++) same += plan.cases[k].place == plan.cases[i].place;
        CHECK(same == 1 && plan.cases[i].place >= 1 && plan.cases[i].place <= plan.n_all);
    }
    kbi_plan_free(&plan);
    CHECK(!plan.cases && !plan.n && !plan.arena.block);
}

static void test_plans(void) {
    check_plan("--op a", 6, 12,
               "[a.one/x1/y3 a.two/y3/x1][a.one/x1/y4 a.two/y4/x1][a.one/x1/y5 a.two/y5/x1]"
               "[a.one/x2/y3 a.two/y3/x2][a.one/x2/y4 a.two/y4/x2][a.one/x2/y5 a.two/y5/x2]");
    check_plan("--op a --impl two", 6, 6,
               "[a.two/y5/x2][a.two/y5/x1][a.two/y4/x2][a.two/y4/x1][a.two/y3/x2][a.two/y3/x1]");
    check_plan("--op b --size large --dtype bf16", 4, 4,
               "[b.one/fwd/bf16/n8][b.one/fwd/bf16/n16][b.one/bwd/bf16/n8][b.one/bwd/bf16/n16]");
    check_plan("--op b --fast --dtype f32", 2, 2, "[b.one/fwd/f32/n4][b.one/bwd/f32/n4]");
    check_plan("--op b --size small,large -a n=3 --dtype f32", 2, 2, "[b.one/fwd/f32/n3][b.one/bwd/f32/n3]");
    check_plan("--op a -a x=7 -a Y=1:2 --exclude two", 2, 2, "[a.one/x7/y1][a.one/x7/y2]");
    check_plan("--op c", 1, 2, "[c.gpu c.cpu]");
    check_plan("x=1/y=[35] --exclude two", 2, 2, "[a.one/x1/y3][a.one/x1/y5]");
    check_plan("--op a --impl one --shard 1/4", 1, 6, "[a.one/x1/y3]");
    check_plan("--op a --impl one --shard 3/4", 2, 6, "[a.one/x1/y5][a.one/x2/y5]");
    check_plan("--op a --impl one --shard 4/4", 2, 6, "[a.one/x2/y3][a.one/x2/y4]");
    check_plan("--op a --impl one --shard 7/8", 0, 6, "");
    check_plan("--op a --impl one --shard 6/8", 1, 6, "[a.one/x2/y5]");
    check_plan("--op a,c -a x=1 -a y=1,2 --exclude y=2.*/|two --shard 1/2", 1, 4, "[c.gpu c.cpu]");
    kbi_plan plan;
    CHECK(!plan_of(&plan, "--op b --size small --dtype f64") && !plan.cases);
    CHECK(!plan_of(&plan, "--op nothing") && !plan_of(&plan, "nothing") && !plan_of(&plan, "("));
    CHECK(!plan_of(&plan, "--op a -a x=1:1000 -a y=1:1001"));
    CHECK(plan_of(&plan, "--op a -a x=1:30 -a y=1:20"));
    CHECK_INT(plan.n, 1200), CHECK_INT(plan.groups, 600);
    for (int i = 0; i < plan.n; i++) CHECK(plan.cases[i].group == i / 2 && plan.cases[i].place == i + 1);
    kbi_plan_free(&plan);
}

// With -a, an axis of integers accepts any positive value. It accepts 0 only if the program declares a value below
// 1, and a negative value only if the program declares one.
static void test_lowest(void) {
    static const kb_axis axes[] = { KB_AXIS("n", 4, 2, 8),         KB_AXIS("zero", 3, 0),
                                    KB_AXIS("below", 5, -1),       KB_AXIS_REAL("p", 0.5),
                                    KB_SIZE("s", "m=7 k=0:4 j=3"), END };
    kb_entry e = { .operation = "op", .implementation = "impl", .body = body, .axes = axes }, *all[] = { &e };
    kbi_registered registered = { all, 1 };
    static const struct {
        const char* line;
        bool taken;
    } rows[] = { { "-a n=1,100", true },   { "-a n=1,0", false }, { "-a zero=0", true }, { "-a zero=5,-1", false },
                 { "-a below=-5", true },  { "-a m=1", true },    { "-a m=0", false },   { "-a k=0,9", true },
                 { "-a k=-1", false },     { "-a p=-1", true } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_plan plan;
        CHECK(parse(rows[i].line));
        bool good = kbi_plan_make(&plan, &options, &registered);
        CHECK_THAT(good == rows[i].taken, "%s", rows[i].line);
        if (good) kbi_plan_free(&plan);
    }
}

static void check_list(const char* line, const char* want) {
    kbi_plan plan;
    kbi_text t = KBI_BLANK;
    if (!CHECK_THAT(plan_of(&plan, line), "'%s' is rejected", line)) return;
    CHECK(kbi_list(&t, &plan, &options) == (want != NULL));
    if (want) CHECK_STR(t.s, want);
    kbi_text_free(&t);
    kbi_plan_free(&plan);
}

static void test_listed(void) {
    entries[3].note = "a note", entries[4].note = NULL;
    check_list("--list --op c", "c/impl=gpu\nc/impl=cpu\n");
    check_list("--list-ops", "a   one two\nb fwd bwd  f32 bf16  one\nc   gpu cpu\n");
    check_list("--list-ops --op b,c -v", "b fwd bwd  f32 bf16  one\nc   gpu cpu\n    gpu        a note\n");
    check_list("--list-ops --op b -a dir=one,f32 -a dtype=f32", "b one f32  f32  one\n");
    check_list("--list-sizes --op b", "b                small    n=4\nb                large    n=8\n"
                                      "b                large    n=16\n");
    check_list("--list-sizes --op c", "c                -       \n");
    check_list("--op c", NULL);
}

// --- time limit of a group ---

static void test_seconds(void) {
    static const struct {
        const char* line;
        double max_time;
        int n;
        double want;
    } rows[] = { { "", 1, 1, 1.5 }, // sampling takes 1 s, and the warm-up half of that
                 // two implementations and the A/A control of the baseline are three measurements
                 { "", 1, 2, 4 },
                 { "", 1, 3, 5.5 },           //
                 { "", 4, 1, 5 },             // the warm-up takes at most one second
                 { "", 2, 1, 3 },             //
                 { "--warmup 0s", 1, 1, 1 },  //
                 { "--warmup 3s", 1, 2, 9 },  //
                 { "--timeout 2s", 1, 2, 4 }, //
                 { "--timeout 1s", 1, 3, 3 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        if (!parse(rows[i].line)) continue;
        double got = kbi_group_seconds(&options, rows[i].max_time, rows[i].n);
        CHECK_THAT(got == rows[i].want, "%s, %g s, %d: %g", rows[i].line, rows[i].max_time, rows[i].n, got);
    }
}

// A program may declare at most 16 axes.
static void test_declared(void) {
    static const struct {
        const char* spec;
        int cases;
    } sizes[] = { { "rows=512 cols=1,2", 2 },
                  { " rows=512  cols=1 ", 1 },
                  { "rows=512 cols", 0 },
                  { "rows=512 cols=", 0 },
                  { "rows=512 =1", 0 },
                  { "rows=512 cols=x", 0 },
                  { "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1", 1 },
                  { "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1 q=1", 0 } };
    kb_axis axes[18];
    kb_entry e = { .operation = "d", .implementation = "one", .body = body, .axes = axes }, *all[] = { &e };
    kbi_registered registered = { all, 1 };
    kbi_plan plan;
    CHECK(parse(""));
    for (int i = 0; i < KBI_COUNT(sizes); i++) {
        kb_axis size = KB_SIZE("some", sizes[i].spec), end = END;
        axes[0] = size, axes[1] = end;
        bool good = kbi_plan_make(&plan, &options, &registered);
        CHECK_THAT(good == (sizes[i].cases > 0) && (!good || plan.n == sizes[i].cases), "'%s'", sizes[i].spec);
        if (good) kbi_plan_free(&plan);
    }
    char names[17][2] = { "" };
    for (int n = 16; n <= 17; n++) {
        for (int i = 0; i < n; i++) {
            kb_axis axis = KB_AXIS("n", 7);
            names[i][0] = (char)('a' + i), axis.name = names[i], axes[i] = axis;
        }
        kb_axis end = END;
        axes[n] = end;
        bool good = kbi_plan_make(&plan, &options, &registered);
        CHECK_THAT(good == (n == 16), "%d axes", n);
        if (good) CHECK_INT(plan.cases[0].n_params, 16), kbi_plan_free(&plan);
    }
}

// Entries are sorted by file and line, regardless of the order of registration.
static void test_registry(void) {
    static kb_entry all[] = { { .operation = "zebra", .implementation = "two", .file = "b", .line = 7 },
                              { .operation = "zebra", .implementation = "three", .file = "b", .line = 7 },
                              { .operation = "ape", .implementation = "late", .file = "b", .line = 5 },
                              { .operation = "zebra", .implementation = "one", .file = "b", .line = 3 },
                              { .operation = "yak", .implementation = "one", .file = "a", .line = 9 },
                              { .operation = "ape", .implementation = "one", .file = "a", .line = 8 } };
    kbi_process.entries = NULL, kbi_process.entry_count = 0;
    for (int i = 0; i < 12; i++) kb_add_from(&all[i % 6], NULL);
    kbi_registered registered = kbi_registry();
    kbi_text said = KBI_BLANK;
    for (int i = 0; i < registered.n; i++)
        kbi_putf(&said, "%s.%s ", registered.of[i]->operation, registered.of[i]->implementation);
    CHECK_STR(said.s, "ape.one ape.late yak.one zebra.one zebra.two zebra.three ");
    kbi_text_free(&said);
    KBENCH_FREE(registered.of);
}

int main(void) {
    if (!freopen("/dev/null", "w", stderr)) return SKIP("cannot redirect stderr"), test_end();
    test_limits();
    test_apart();
    test_wired();
    test_values();
    test_recipe();
    test_shards_by_environment();
    test_axes();
    test_patterns();
    test_plans();
    test_listed();
    test_lowest();
    test_cpus();
    test_seconds();
    test_declared();
    test_registry();
    return test_end();
}
