// SPDX-License-Identifier: MIT OR Unlicense
// The table, from records made by hand: machines, groups, headings and units come out of the records, however they are
// handed over, and whatever their texts hold.
#include "test.h"
#include <stdlib.h>
#include "guarded.h"
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

static kb_result records[64];
static int count;
static char text[65536];

// a record as a run on a GPU writes it
static kb_result* add(const char* operation, const char* implementation, int64_t planned, double ms) {
    kb_result* r = &records[count++];
    kbi_result_clear(r);
    r->operation = operation, r->implementation = implementation, r->planned = planned;
    r->run_id = "run", r->kbench_version = "9.9.9", r->backend = "cuda", r->cpu = "A Processor";
    r->gpu = "NVIDIA Something", r->compute_capability = "9.0", r->driver = "580.1", r->cuda = "13.0", r->device = 0;
    r->copy_roof_gbps = 4236.4;
    r->time_ms = ms, r->precision = 0.001, r->samples = 30;
    return r;
}
static void param(kb_result* r, const char* name, int64_t value) {
    kb_param* all = (kb_param*)kbi_arena_alloc(r->owned, sizeof(kb_param) * (size_t)(r->params.n + 1));
    if (r->params.n) memcpy(all, r->params.of, sizeof(kb_param) * (size_t)r->params.n);
    all[r->params.n].name = name, all[r->params.n].type = KB_AXIS_INTS, all[r->params.n].i = value;
    r->params.of = all;
    r->params.n++;
}
static void clear(void) {
    while (count) kb_result_free(&records[--count]);
}
// what is printed when so many records are handed over at a time; 0: all at once
static const char* shown(int width, int at_a_time, const char* sort, const char* columns) {
    FILE* f = tmpfile();
    kbi_how how;
    kbi_table t;
    memset(&how, 0, sizeof how);
    how.out = f, how.width = width, how.sort = sort, how.columns = columns;
    kbi_table_open(&t, &how);
    for (int i = 0; i < count; i += at_a_time ? at_a_time : count)
        kbi_table_add(&t, records + i, KBI_MIN(at_a_time ? at_a_time : count, count - i));
    kbi_table_end(&t);
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}
static int times(const char* part) {
    int n = 0;
    for (const char* p = text; (p = strstr(p, part)) != NULL; p++) n++;
    return n;
}

static void test_machines(void) {
    add("one", "default", 1, 1);
    add("two", "default", 1, 1);
    CHECK_HAS(shown(80, 0, NULL, NULL),
              "kbench 9.9.9 NVIDIA Something sm_90 driver 580.1 CUDA 13.0 copy roof 4236 GB/s\n\n");
    CHECK_INT(times("kbench 9.9.9"), 1);
    records[1].copy_roof_gbps = 4240; // measured again after a crash: the same machine
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("kbench 9.9.9"), 1);
    records[1].device = 1; // one of the same kind
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("kbench 9.9.9"), 2);
    CHECK_INT(times("     time"), 2); // with a heading of its own
    records[1].device = 0, records[1].tool = "compute-sanitizer";
    CHECK_HAS(shown(80, 0, NULL, NULL), "CUDA 13.0 under\ncompute-sanitizer: not timed\n");
    records[1].tool = records[1].gpu = NULL, records[1].no_gpu = "no driver";
    CHECK_HAS(shown(80, 0, NULL, NULL), "\nkbench 9.9.9 CPU times (no driver) A Processor\n");
    records[1].cpu = NULL;
    CHECK_HAS(shown(80, 0, NULL, NULL), "CPU times (no driver) processor unknown\n");
    clear();
}

// groups are what differs in nothing but the implementation, in one run, whatever the order of the axes
static void test_groups(void) {
    for (int i = 0; i < 6; i++) {
        kb_result* r = add("product", i % 2 ? "fast" : "slow", 6, i % 2 ? 1 : 2);
        r->baseline = "slow", r->winner = "fast", r->winner_certain = i < 2, r->speedup = i % 2 ? 2 : 1;
        r->bytes = 1, r->throughput_gbps = 100, r->gpu_efficiency = 50;
        param(r, i % 2 ? "m" : "n", i % 2 ? 7 : i / 2);
        param(r, i % 2 ? "n" : "m", i % 2 ? i / 2 : 7);
    }
    CHECK_STR(shown(80, 0, NULL, NULL),
              "kbench 9.9.9 NVIDIA Something sm_90 driver 580.1 CUDA 13.0 copy roof 4236 GB/s\n"
              "\n"
              "product                    time     +-     GB/s   roof speedup\n"
              " n=0 m=7\n"
              " slow                  2.000 ms  0.10%    100.0  50.0%    1.00\n"
              " fast                  1.000 ms  0.10%    100.0  50.0%    2.00 fastest\n"
              " n=1 m=7\n"
              " slow                  2.000 ms  0.10%    100.0  50.0%    1.00\n"
              " fast                  1.000 ms  0.10%    100.0  50.0%    2.00 fastest?\n"
              " n=2 m=7\n"
              " slow                  2.000 ms  0.10%    100.0  50.0%    1.00\n"
              " fast                  1.000 ms  0.10%    100.0  50.0%    2.00 fastest?\n"
              "\n"
              "+-: 95 % of the median within one process (--procs N: over N)\n"
              "~, fastest?: not certain at 95 %.\n"
              "\n"
              "6 cases: 6 ok\n");
    char* all = strdup(text);
    CHECK_STR(shown(80, 2, NULL, NULL), all);
    free(all);
    for (int i = 2; i < 6; i++) records[i].run_id = "another";
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("fastest"), 4); // with the legend
    count = 1;
    CHECK_HAS(shown(80, 0, NULL, NULL), "\n1 case: 1 ok\n");
    count = 6;
    clear();
}

static void test_rates(void) {
    kb_result* r = add("sweep", "default", 3, 1);
    r->gflops = 900, param(r, "n", 1);
    r = add("sweep", "default", 3, 1);
    r->gflops = 4000, param(r, "n", 2); // can be read in the unit above
    r = add("sweep", "default", 3, 1);
    r->gflops = 4e5, param(r, "n", 3); // cannot
    shown(80, 0, NULL, NULL);
    CHECK_HAS(text, "sweep                      time     +-  GFLOP/s\n"
                    " n=1                   1.000 ms  0.10%    900.0\n"
                    " n=2                   1.000 ms  0.10%     4000\n"
                    "\n"
                    "sweep                      time     +-  TFLOP/s\n"
                    " n=3                   1.000 ms  0.10%    400.0\n");
    CHECK_INT(times("GB/s"), 1); // the machine's
    CHECK_INT(times("roof"), 1);
    records[1].items_per_second = 2.5e6; // a column comes with the first that needs it, and stays
    shown(80, 0, NULL, NULL);
    CHECK_HAS(text, "sweep                      time     +-  GFLOP/s\n");
    CHECK_HAS(text, "sweep                      time     +-  TFLOP/s Mitems/s\n"
                    " n=2                   1.000 ms  0.10%    4.000    2.500\n"
                    " n=3                   1.000 ms  0.10%    400.0        -\n");
    records[1].items_per_second = 5;
    CHECK_HAS(shown(80, 0, NULL, NULL), "TFLOP/s  items/s\n");
    // a failed one alone asks for no other columns
    records[2].status = KB_FAILED, records[2].gflops = NAN, records[2].bytes = 8;
    shown(80, 0, NULL, NULL);
    CHECK_INT(times("     time"), 2);
    clear();
    // a line too short for all of them loses those that say least, and no rate before them
    r = add("all", "default", 1, 1);
    r->throughput_gbps = r->gflops = r->items_per_second = 1, r->gpu_efficiency = 1, r->memory_bytes = 4096;
    CHECK_HAS(shown(120, 0, NULL, NULL), "  +-     GB/s  GFLOP/s  items/s   roof   memory samples\n");
    CHECK_HAS(shown(80, 0, NULL, NULL), "  +-     GB/s  GFLOP/s  items/s   roof   memory\n");
    CHECK_HAS(shown(64, 0, NULL, NULL), "  +-     GB/s  GFLOP/s  items/s   roof\n");
    CHECK_HAS(shown(50, 0, NULL, NULL), "time     GB/s  GFLOP/s  items/s\n");
    clear();
}

static void test_sort(void) {
    static const double gflops[] = { 3, 1, NAN, 2, 2 };
    for (int i = 0; i < 5; i++) {
        kb_result* r = add("sweep", "default", 5, 1 + i);
        r->gflops = gflops[i], param(r, "n", i);
    }
    static const struct {
        const char *by, *want;
    } orders[] = { { "gflops", "13402" },          { "-gflops", "03412" },  { "GFLOP/s,-time", "14302" },
                   { "-TFLOP/s,-time", "04312" },  { "-time_ms", "43210" }, { "time", "01234" },
                   { "operation,-time", "43210" }, { "winner", "01234" } };
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        char seen[16] = "";
        shown(80, 0, orders[o].by, NULL);
        for (const char* p = text; (p = strstr(p, " n=")) != NULL; p++) strncat(seen, p + 3, 1);
        CHECK_THAT(strcmp(seen, orders[o].want) == 0, "--sort %s gives %s, not %s", orders[o].by, seen,
                   orders[o].want);
    }
    clear();
}

static void test_columns(void) {
    kb_result* r = add("one", "default", 1, 0.5);
    r->gflops = 1234.5, r->verified = 1, r->seed = 42, r->mode = "cold", r->verdict = KB_FASTER;
    CHECK_HAS(shown(80, 0, NULL, "GFLOP/s,gflops,time,time_ms,mode,seed,verified,status,verdict,baseline,roof"),
              " TFLOP/s   gflops      time  time_ms     mode     seed verified   status  verdict baseline   roof\n"
              "one ");
    CHECK_HAS(text,
              "   1.234     1234  500.0 us   0.5000     cold       42      yes       ok   FASTER        -      -\n");
    kbi_shown list[KBI_SHOWN];
    CHECK_INT(kbi_shown_parse("columns", "time,+-,tflop/s,memory_bytes", list), 4);
    CHECK_INT(list[0].column, KBI_COLUMN_TIME);
    CHECK_INT(list[1].column, KBI_COLUMN_SPREAD);
    CHECK_INT(list[2].column, KBI_COLUMN_GFLOPS);
    CHECK_INT(list[3].column, -1);
    clear();
}

// flags share the row as long as all of them fit
static void test_flags(void) {
    kb_result* r = add("one", "default", 1, 1);
    r->throughput_gbps = 1, r->gpu_efficiency = 50, r->memory_bytes = 4096;
    r->flags = (uint64_t)1 << KB_FLAG_UNVERIFIED;
    CHECK_HAS(shown(80, 0, NULL, NULL), "4.00 KiB UNVERIFIED\n");
    r->flags |= (uint64_t)1 << KB_FLAG_FEW; // 21 + 42 + 11 + 4 columns
    CHECK_HAS(shown(80, 0, NULL, NULL), "4.00 KiB UNVERIFIED FEW\n");
    CHECK_HAS(shown(77, 0, NULL, NULL), "4.00 KiB\n                      UNVERIFIED FEW\n");
    clear();
    // advice is for where it happened
    r = add("one", "default", 1, NAN);
    r->status = KB_FAILED, r->flags = (uint64_t)1 << KB_FLAG_OVERRUN;
    CHECK_HAS(shown(80, 0, NULL, NULL), "compute-sanitizer");
    r->gpu = NULL;
    CHECK(!strstr(shown(80, 0, NULL, NULL), "compute-sanitizer") && strstr(text, "valgrind"));
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        CHECK_THAT(!strstr(kbi_flag_advice((kb_flag)f, false), "compute-sanitizer"), "%s", kb_flag_name((kb_flag)f));
        CHECK_STR(kbi_flag_advice((kb_flag)f, true), kb_flag_advice((kb_flag)f));
    }
    clear();
}

// what the intervals cover stands once under the table, where any are shown
static void test_intervals(void) {
    add("one", "default", 1, 1);
    add("two", "default", 1, 1);
    CHECK_HAS(shown(80, 0, NULL, NULL),
              "\n\n+-: 95 % of the median within one process (--procs N: over N)\n\n2 cases");
    CHECK_HAS(shown(45, 0, NULL, NULL), "one process\n(--procs N: over N)\n\n2 cases");
    records[0].processes = records[1].processes = 5;
    CHECK_HAS(shown(80, 1, NULL, NULL), "\n\n+-: 95 % over 5 processes\n\n2 cases");
    CHECK_INT(times("+-:"), 1);
    CHECK(!strstr(shown(80, 1, NULL, "time,samples"), "+-"));
    records[1].processes = 3; // an interrupted run
    CHECK_HAS(shown(80, 0, NULL, NULL), "\n\n+-: 95 % over 3 to 5 processes\n\n2 cases");
    records[0].precision = NAN; // too few samples, say
    CHECK_HAS(shown(80, 0, NULL, NULL), "\n\n+-: 95 % over 3 processes\n\n2 cases");
    records[1].status = KB_FAILED;
    CHECK(!strstr(shown(80, 0, NULL, NULL), "+-:"));
    clear();
}

static void test_texts(void) {
    kb_result* r = add("caf\xc3\xa9", "bad\xff", 2, 1);
    r = add("caf\xc3\xa9", "\x1b[31mred", 2, 1);
    r->message = "two\nlines";
    CHECK_HAS(shown(80, 0, NULL, NULL), "caf\xc3\xa9                       time     +-\n"
                                        " bad\xef\xbf\xbd                  1.000 ms  0.10%\n"
                                        "  [31mred              1.000 ms  0.10%\n");
    clear();
}

int main(void) {
    test_machines();
    test_groups();
    test_rates();
    test_sort();
    test_columns();
    test_flags();
    test_intervals();
    test_texts();
    return test_end();
}
