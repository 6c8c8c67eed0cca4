// SPDX-License-Identifier: MIT OR Unlicense
// Any bytes as a file of records: the reader takes or refuses them, and what it took can be shown in every format and
// written, and reads back to the same text. With libFuzzer (-fsanitize=fuzzer -DFUZZER), or by itself:
// reader SECONDS FILE... changes those files at random.
#include <stdio.h>
static FILE* nowhere; // what is said is not looked at
#undef stderr
#define stderr nowhere
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#undef stderr

static char path[64];

static void put_file(const void* data, size_t n) {
    FILE* f = fopen(path, "wb");
    if (!f || (n && fwrite(data, 1, n, f) != n) || fclose(f)) abort();
}

static void put_lines(kbi_text* t, const kbi_records* r) {
    for (int64_t i = 0; i < r->n; ++i) kbi_json_result(t, &r->of[i]), kbi_puts(t, "\n");
}

static void show(const kbi_records* r) {
    static const kbi_render renders[] = { kbi_csv, kbi_md, kbi_gbench, kbi_go, kbi_report };
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

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    kbi_records r, again;
    kbi_text lines = { NULL, 0, 0 }, second = { NULL, 0, 0 };
    memset(&r, 0, sizeof r);
    memset(&again, 0, sizeof again);
    if (!nowhere) nowhere = fopen("/dev/null", "w");
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

#ifndef FUZZER
static uint64_t state = 1;
static size_t any(size_t n) { // below n
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return n ? (size_t)(state % n) : 0;
}

int main(int argc, char** argv) {
    static const char* const words[] = { "null",
                                         "\"",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\n",
                                         "\\u0000",
                                         "\\ud83d",
                                         "1e308",
                                         "-",
                                         "-1",
                                         "0",
                                         "\xff",
                                         "9223372036854775807",
                                         "true",
                                         "\"params\": {",
                                         "1e-320" };
    double until = argc > 1 ? strtod(argv[1], NULL) : 1;
    int64_t start = kbi_now(), runs = 0;
    for (; argc > 2 && kbi_seconds_since(start) < until; ++runs) {
        kbi_text t = { NULL, 0, 0 };
        char buffer[4096];
        FILE* f = fopen(argv[2 + any((size_t)argc - 2)], "rb");
        size_t n;
        while (f && t.n < 65536 && (n = fread(buffer, 1, sizeof buffer, f)) > 0) kbi_put(&t, buffer, n);
        if (f) fclose(f);
        for (size_t k = 1 + any(4); k && t.n > 4; --k) {
            size_t at = any(t.n), length = any(KBI_MIN(t.n - at, (size_t)200));
            const char* word = words[any(KBI_COUNT(words))];
            size_t what = any(4), w = KBI_MIN(strlen(word), t.n - at);
            if (what == 0) t.s[at] = (char)any(256);
            if (what == 1) memcpy(t.s + at, word, w);
            if (what == 2) memmove(t.s + at, t.s + at + length, t.n - at - length), t.n -= length;
            if (what == 3) t.n = at;
        }
        LLVMFuzzerTestOneInput((const uint8_t*)t.s, t.n);
        kbi_text_free(&t);
    }
    printf("%lld runs\n", (long long)runs);
    return 0;
}
#endif
