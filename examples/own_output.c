// SPDX-License-Identifier: MIT OR Unlicense
/*  Shows how a program adds its own output formats. The option --log FILE appends a line for each record as soon as its
    comparison has ended. The option --tsv FILE writes a file with all records at the end.

    cc -O2 -I. examples/own_output.c -o own_output -lm && ./own_output --log times.log --tsv times.tsv

    An output (kb_output) consists of a command line option and of functions that receive the records. kb_output in
    kbench.h documents these functions. For more examples, see the outputs of the add-ons in examples/addons.  */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <stdio.h>
#include <time.h>

// --- the output --log: one line per record ---

static FILE* log_file;

static bool log_open(const char* path) { // called before any benchmark runs
    log_file = fopen(path, "a");
    if (!log_file) fprintf(stderr, "own_output: cannot open --log %s\n", path);
    return log_file != NULL; // returning false ends the program with exit code 2
}

static void log_each(const kb_result* r) { // time_ms is NaN if the case has no time
    const char* word = r->status == KB_OK ? "time" : r->status == KB_FAILED ? "failed" : "skipped";
    fprintf(log_file, "%lld %s %s", (long long)time(NULL), word, r->name);
    if (r->status == KB_OK) fprintf(log_file, " %.6f ms", r->time_ms);
    fprintf(log_file, "\n");
    fflush(log_file);
}

static int log_end(const kb_result* records, int64_t n, int code) {
    (void)records, (void)n;
    if (fclose(log_file) != 0 && code == 0) code = 2;
    return code; // this code becomes the exit code of the program
}

// --- the output --tsv: a file with all records. kbench opens it before the run and replaces it after the run ---

KBENCH_OUTPUT(tsv, "FILE", "records as tab-separated values: name and ms") {
    for (int64_t i = 0; i < n; i++)
        if (records[i].status == KB_OK) kb_put(to, "%s\t%.9g\n", records[i].name, records[i].time_ms);
}

// --- a benchmark ---

KBENCH(sum, KB_AXIS("n", 1024, 65536)) {
    int64_t n = kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), sum = 0;
    kb_fill(kb, x, n, KB_UNIFORM);
    KB_TIME(kb) {
        sum = 0;
        for (int64_t i = 0; i < n; i++) sum += x[i];
        kb_keep(sum);
    }
    kb_bytes(kb, 4.0 * (double)n);
    kb_check_that(kb, sum > 0.4 * (double)n && sum < 0.6 * (double)n, 0, 0, "the sum is %g", (double)sum);
}

int main(int argc, char** argv) {
    static kb_output log;
    log.option = "log", log.argument = "FILE", log.help = "append a line for each record when it is measured";
    log.open = log_open, log.each = log_each, log.end = log_end;
    kb_add_output(&log);
    return kb_main(argc, argv);
}
