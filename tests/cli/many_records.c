// SPDX-License-Identifier: MIT OR Unlicense
// Measures the cost of writing, reading and comparing large files of records. The limits are multiples of the time
// that printf and strtod need for all samples, so the speed of the machine does not matter. "big N A B" only
// writes two files of N records.
#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

enum { RECORDS = 20000, SAMPLES = 30 };
static const char* path[] = { "build/test/big_before.json", "build/test/big_after.json" };
static double samples[RECORDS][SAMPLES];

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void make(kb_result* all, int n, kbi_arena* texts, uint64_t seed) {
    char text[64];
    for (int i = 0; i < n; ++i) {
        kb_result* r = &all[i];
        static kb_param params[RECORDS];
        kbi_result_clear(r);
        snprintf(text, sizeof text, "op%d/impl=default/n=%d", i / 100, i % 100);
        r->name = kbi_arena_text(texts, text);
        snprintf(text, sizeof text, "op%d", i / 100);
        r->operation = kbi_arena_text(texts, text);
        r->implementation = "default";
        r->run_id = seed ? "00000000000000a1" : "00000000000000a0";
        r->command = "./suite --size small,medium --json results.json --md results.md";
        r->cpu = "A processor of some make, with 64 cores", r->host = "machine-17", r->date = "2026-11-22T11:44:15Z";
        r->backend = "cpu", r->timer = "wall", r->build = "12.2.0, optimised", r->status = KB_OK;
        params[i].name = "n", params[i].type = KB_AXIS_INTS, params[i].i = i % 100;
        r->params.of = &params[i], r->params.n = 1;
        for (int k = 0; k < SAMPLES; ++k) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            samples[i][k] = 1e-3 * (1 + i % 77) * (1 + 1e-2 * (double)(seed >> 11) * 0x1p-53);
        }
        r->samples_ms.of = samples[i], r->samples_ms.n = r->samples = SAMPLES;
        r->time_ms = samples[i][0], r->time_ms_ci_low = 0.99 * r->time_ms, r->time_ms_ci_high = 1.01 * r->time_ms;
        r->time_ms_mean = r->time_ms_raw = r->time_ms, r->cv = 0.01 / 3, r->inference_speed = 1000 / r->time_ms;
    }
}

static void put(kb_result* all, int n, int side) {
    kbi_arena texts = { NULL, 0, 0 };
    make(all, n, &texts, (uint64_t)side);
    CHECK(kb_write_json(all, n, path[side]));
    for (int i = 0; i < n; ++i) kb_result_free(&all[i]);
    kbi_arena_free(&texts);
}

int main(int argc, char** given) {
    kb_result* all = (kb_result*)calloc(RECORDS, sizeof *all);
    char number[40];
    if (argc == 4) {
        for (int side = 0; side < 2; ++side) path[side] = given[2 + side], put(all, atoi(given[1]), side);
        free(all);
        return 0;
    }
    double print = 0, read = 0, written = 0, sum = 0;
    for (int side = 0; side < 2; ++side) {
        double start = seconds();
        put(all, RECORDS, side);
        written += seconds() - start;
        start = seconds();
        for (int i = 0; i < RECORDS; ++i)
            for (int k = 0; k < SAMPLES; ++k) snprintf(number, sizeof number, "%.17g", samples[i][k]), sum += number[5];
        print += seconds() - start;
        start = seconds();
        for (int i = 0; i < RECORDS; ++i)
            for (int k = 0; k < SAMPLES; ++k) sum += strtod(number, NULL);
        read += seconds() - start;
    }
    free(all);
    struct rusage before, after;
    char* argv[] = { (char*)"big", (char*)"--compare", (char*)path[0], (char*)path[1], (char*)"--fail-on",
                     (char*)"never", (char*)"--noise", (char*)"3", NULL };
    getrusage(RUSAGE_SELF, &before);
    fflush(stdout);
    int kept = dup(1);
    CHECK(freopen("/dev/null", "w", stdout) != NULL);
    double start = seconds();
    CHECK_INT(kb_main(8, argv), 0);
    double compared = seconds() - start;
    fflush(stdout);
    dup2(kept, 1);
    getrusage(RUSAGE_SELF, &after);
    double megabytes = (double)(after.ru_maxrss - before.ru_maxrss) / 1024;
    printf("%d records per side: written in %.2f s (printf of the samples %.2f s), compared in %.2f s (strtod %.2f s), "
           "%.0f MB; %g\n",
           (int)RECORDS, written, print, compared, read, megabytes, sum);
#ifndef TEST_SANITIZE
    CHECK_THAT(written < 9 * print, "writing takes %.1f times as long as printf of the samples", written / print);
    CHECK_THAT(compared < 30 * read, "comparing takes %.1f times as long as strtod of the samples", compared / read);
    CHECK_THAT(megabytes < 2 * RECORDS * 0.004, "comparing takes %.0f MB", megabytes); // 200 MB for 50,000 a side
#endif
    return test_end();
}
