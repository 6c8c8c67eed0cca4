// SPDX-License-Identifier: MIT OR Unlicense
// Fuzz target: arbitrary bytes as a file of records. kbi_read_records must accept or reject any bytes without a
// crash. Accepted records must print in every format, and must be unchanged after writing and reading.
#include "fuzz.h"

static char path[64];

static void put_file(const void* data, size_t n) {
    FILE* f = fopen(path, "wb");
    if (!f || (n && fwrite(data, 1, n, f) != n) || fclose(f)) abort();
}

static void put_lines(kbi_text* t, const kbi_records* r) {
    for (int64_t i = 0; i < r->n; ++i) kbi_json_result(t, &r->of[i]), kbi_puts(t, "\n");
}

static void show(const kbi_records* r) {
    static FILE* nowhere;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) abort();
    static void (*const renders[])(kbi_text * t, const kb_result* records, int64_t n) = { kbi_csv, kbi_md, kbi_gbench, kbi_go, kbi_report };
    for (int i = 0; i < KBI_COUNT(renders); ++i) {
        kbi_text t = { NULL, 0, 0 };
        renders[i](&t, r->of, r->n);
        kbi_text_free(&t);
    }
    for (int i = -1; i < KBI_COUNT(kbi_plots) && r->n < 40; ++i) {
        kbi_text t = { NULL, 0, 0 };
        if (i < 0)
            kbi_html(&t, r->of, r->n, NULL);
        else
            kbi_svg(&t, r->of, r->n, NULL, &kbi_plots[i]);
        kbi_text_free(&t);
    }
    for (int wide = 0; wide < 2; ++wide) {
        kbi_table table;
        kbi_how how;
        kbi_how_default(&how, nowhere);
        how.width = wide ? 140 : 60;
        how.verbose = wide;
        how.sort = wide ? "-time,name" : NULL;
        kbi_table_open(&table, &how);
        kbi_table_add(&table, r->of, r->n);
        kbi_table_end(&table);
    }
    kbi_text what = { NULL, 0, 0 };
    for (int64_t i = 1; i < r->n; ++i) kbi_env_differs(&r->of[i - 1], &r->of[i], &what);
    kbi_text_free(&what);
}

FUZZ_MAIN("null", "\"", "{", "}", "[", "]", ",", ":", "\n", "\\u0000", "\\ud83d", "1e308", "-", "-1", "0", "\xff",
          "9223372036854775807", "true", "\"params\": {", "1e-320", "\\", "12345678901234567890") {
    kbi_records r, again;
    kbi_text lines = { NULL, 0, 0 }, second = { NULL, 0, 0 };
    memset(&r, 0, sizeof r);
    memset(&again, 0, sizeof again);
    fuzz_said();
    snprintf(path, sizeof path, "/dev/shm/kbench_fuzz_%ld", (long)getpid());
    if (access("/dev/shm", W_OK) != 0) snprintf(path, sizeof path, "kbench_fuzz_%ld", (long)getpid());
    put_file(data, size);
    bool good = kbi_read_records(&r, path);
    show(&r);
    if (good && r.n) {
        put_lines(&lines, &r);
        put_file(lines.s, lines.n);
        if (!kbi_read_records(&again, path)) abort();
        put_lines(&second, &again);
        if (again.n != r.n || strcmp(lines.s, second.s) != 0) abort();
    }
    kbi_text_free(&lines);
    kbi_text_free(&second);
    kbi_records_free(&r);
    kbi_records_free(&again);
    remove(path);
    return 0;
}
