// SPDX-License-Identifier: MIT OR Unlicense
// Each key must get the value that was written, from JSON arrays, JSON Lines, and old and damaged files.
#include "test.h"
#include <stdlib.h>
#include "kit.h"

static const char* const path = "build/test/reader_host.json";
static const char* const said_path = "build/test/reader_host.txt";

static void put_file(const char* text, size_t n) {
    FILE* f = fopen(path, "wb");
    if (f && n) fwrite(text, 1, n, f);
    if (f) fclose(f);
}

// Reads the file and returns the messages that kbench printed to stderr.
static const char* said(kbi_records* r, bool* good) {
    static char out[4][2000];
    static int turn;
    char* to = out[turn = (turn + 1) % 4];
    fflush(stderr);
    int kept = dup(2), file = open(said_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(file, 2);
    close(file);
    memset(r, 0, sizeof *r);
    *good = kbi_read_records(r, path);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    FILE* f = fopen(said_path, "rb");
    size_t n = f ? fread(to, 1, sizeof out[0] - 1, f) : 0;
    to[n] = 0;
    if (f) fclose(f);
    return to;
}

static void fill(kb_result* r) {
    static const kb_param params[] = { { "rows", KB_AXIS_INTS, -3, 0, NULL },
                                       { "alpha", KB_AXIS_REALS, 0, 0.1, NULL },
                                       { "none", KB_AXIS_REALS, 0, NAN, NULL },
                                       { "di\"r", KB_AXIS_STRINGS, 0, 0,
                                         "f\\w\nd \xc3\xa4\xf0\x9f\x98\x80\x7f\x01" } };
    static const double samples[] = { 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 0, 123456789012345678.0 };
    char text[64];
    kbi_result_clear(r);
    for (int i = 0; i < KBI_COUNT(kbi_keys); ++i) {
        char* field = (char*)r + kbi_keys[i].offset;
        snprintf(text, sizeof text, "text %d of %s", i, kbi_keys[i].name);
        switch (kbi_keys[i].kind) {
        case KBI_KIND_text: *(kbi_field_text*)field = kbi_arena_text(r->owned, text); break;
        case KBI_KIND_real: *(kbi_field_real*)field = 1.0 / (3 + i); break;
        case KBI_KIND_whole: *(kbi_field_whole*)field = i % 2 ? INT64_MAX - i : -i; break;
        case KBI_KIND_truth: *(kbi_field_truth*)field = i % 2; break;
        case KBI_KIND_params: r->params.of = params, r->params.n = 4; break;
        case KBI_KIND_samples:
            ((kbi_field_samples*)field)->of = samples;
            ((kbi_field_samples*)field)->n = 6;
            break;
        case KBI_KIND_flags: r->flags = 1 | (uint64_t)1 << (KB_FLAG_COUNT - 1); break;
        case KBI_KIND_status: r->status = KB_SKIPPED; break;
        case KBI_KIND_verdict: r->verdict = KB_UNRESOLVED; break;
        }
    }
    r->schema = KBI_SCHEMA;
}

static void test_round_trip(void) {
    kb_result all, none;
    kbi_records r;
    bool good;
    fill(&all);
    kbi_result_clear(&none);
    none.name = "none";
    none.operation = "nothing";
    kbi_text lines = { NULL, 0, 0 }, again = { NULL, 0, 0 };
    kbi_json_result(&lines, &all), kbi_puts(&lines, "\n");
    kbi_json_result(&lines, &none), kbi_puts(&lines, "\n");
    for (int as_lines = 0; as_lines < 2; ++as_lines) {
        kbi_text file = { NULL, 0, 0 };
        if (!as_lines) kbi_puts(&file, "[\n"), kbi_json_result(&file, &all), kbi_puts(&file, ",\n");
        if (!as_lines) kbi_json_result(&file, &none), kbi_puts(&file, "\n]\n");
        put_file(as_lines ? lines.s : file.s, as_lines ? lines.n : file.n);
        CHECK_STR(said(&r, &good), "");
        CHECK(good);
        CHECK_INT(r.n, 2);
        again.n = 0;
        for (int64_t i = 0; i < r.n; ++i) kbi_json_result(&again, &r.of[i]), kbi_puts(&again, "\n");
        CHECK_STR(again.s, lines.s);
        CHECK(r.n == 2 && r.of[0].params.of[0].type == KB_AXIS_INTS && r.of[0].params.of[1].type == KB_AXIS_REALS);
        CHECK(r.n == 2 && r.of[1].planned == KB_NONE && r.of[1].verified == -1 && isnan(r.of[1].time_ms));
        kbi_records_free(&r);
        kbi_text_free(&file);
    }
    // a truncated file gives only complete records
    for (size_t n = 0; n<lines.n; n += n + 300> lines.n ? 1 : 7) {
        put_file(lines.s, n);
        const char* text = said(&r, &good);
        const char* first = strchr(lines.s, '\n');
        int64_t whole = (n >= (size_t)(first - lines.s)) + (n >= lines.n - 1);
        CHECK_THAT(good && r.n == whole, "%zu bytes: %lld records, not %lld: %s", n, (long long)r.n, (long long)whole,
                   text);
        bool torn = n > 0 && n != (size_t)(first - lines.s) && n != (size_t)(first - lines.s) + 1 && n < lines.n - 1;
        CHECK_THAT(torn == (strstr(text, "ends in the middle") != NULL), "%zu bytes: %s", n, text);
        kbi_records_free(&r);
    }
    kbi_text_free(&lines);
    kbi_text_free(&again);
    kb_result_free(&all);
    kb_result_free(&none);
}

#define A "{\"name\": \"a\", \"operation\": \"o\""
static const struct file {
    const char* text;
    int n;
    const char* says;
} files[] = {
    { "", 0, "" },
    { " \n\n", 0, "" },
    { "[]", 0, "" },
    { "[" A "}]", 1, "" },
    { "\xef\xbb\xbf[\r\n" A "}\r\n]\r\n", 1, "" },
    { A "}", 1, "" },
    { A "}\r\n\r\n" A "}\r\n", 2, "" },
    { A ", \"later\": {\"x\": [1, {\"y\": null}, \"z\", -1.5e3, true]}, \"time_ms\": 2}\n", 1, "" },
    { A ", \"time_ms\": null, \"samples_ms\": [], \"params\": {}, \"flags\": []}\n", 1, "" },
    { A ", \"samples_ms\": [1, null, 2]}\n", 1, "" },
    { A ", \"rung\": 1e2, \"samples\": 3.0}\n", 1, "" },
    { A ", \"message\": \"\\u00e4\\ud83d\\ude00\\ud83d \\u0000\\/\"}\n", 1, "" },
    { A ", \"schema\": 99}\n", 1, ":1: a later version wrote this file" },
    { A ", \"flags\": [\"FLOOR\", \"LATER\"]}\n", 1, ":1: this version does not know the flag LATER" },
    { A "}\n" A ", \"time_ms\": 1.2", 1, ":2: this line ends in the middle of a record" },
    { A "}\n" A ", \"time_ms\"\n" A "}\n", 2, ":2: this line ends in the middle of a record" },
    { A "}\n{\"na\n" A "}", 2, ":2: this line ends in the middle of a record" },
    { A "}\n{\"name\": \"\\u12\n" A "}", 2, ":2: this line ends in the middle of a record" },
    { A "}\n{\"name\": tr\n" A "}", -1, ":2: name must be a string or null, not 't'" },
    { A "}\n" A ", \"verified\": tr\n" A "}", 2, ":2: this line ends in the middle of a record" },
    { A "}\n" A ", \"later\": [[1, 2\n" A "}", 2, ":2: this line ends in the middle of a record" },
    { "hello", -1, ":1: records must begin with [ or {, not 'h'" },
    { "\x7f"
      "ELF",
      -1, "found byte 0x7f" },
    { "42", -1, "records must begin with" },
    { "[42]", -1, "a record must begin with {, not '4'" },
    { "[[" A "}]]", -1, "a record must begin with {" },
    { "[" A "}", -1, ":1: the file ends in the middle" },
    { "[" A "},", -1, ":1: the file ends in the middle" },
    { "[" A ", \"time_ms\": 1", -1, ":1: the file ends in the middle" },
    { "[\n" A "},\n" A ", \"name", -1, ":3: the file ends in the middle" },
    { "[" A "},]", -1, "a record must begin with {, not ']'" },
    { "[" A "}] x", -1, "nothing may follow the records, not 'x'" },
    { "[" A "}" A "}]", -1, "a comma or ] is expected here" },
    { A "}" A "}\n", -1, "nothing may follow a record on its line" },
    { A ",}\n", -1, "a string is expected here, not '}'" },
    { "{\"context\": {\"date\": \"x\"}, \"benchmarks\": []}", -1, ":1: a record has no name" },
    { "{\"name\": \"a\"}", -1, ":1: a record has no operation" },
    { A ", \"time_ms\": \"1\"}", -1, "time_ms must be a number or null, not '\"'" },
    { A ", \"time_ms\": NaN}", -1, "time_ms must be a number or null, not 'N'" },
    { A ", \"time_ms\": Infinity}", -1, "time_ms must be a number or null" },
    { A ", \"time_ms\": 1e999}", -1, "1e999 is too large for a number" },
    { A ", \"time_ms\": 01}", -1, "a number is expected here" },
    { A ", \"time_ms\": 1.}", -1, "a number is expected here" },
    { A ", \"time_ms\": -}", -1, "a number is expected here" },
    { A ", \"time_ms\": 1e+}", -1, "a number is expected here" },
    { A ", \"time_ms\": 0x10}", -1, "a comma or } is expected here, not 'x'" },
    { A ", \"samples\": 1.5}", -1, "samples must be a whole number" },
    { A ", \"samples\": 9223372036854775808}", -1, "samples must be a whole number" },
    { A ", \"samples\": -9223372036854775808}", -1, "samples must be a whole number" },
    { A ", \"samples\": 1e300}", -1, "samples must be a whole number" },
    { A ", \"verified\": 1}", -1, "verified must be true or false or null" },
    { A ", \"verified\": truth}", -1, "true is expected here, not 't'" },
    { A ", \"params\": [1]}", -1, "params must be an object or null" },
    { A ", \"params\": {\"n\": [1]}}", -1, "a number is expected here" },
    { A ", \"params\": {\"n\": 1, \"n\": 2}}", -1, "params: n occurs twice" },
    { A ", \"samples_ms\": [\"1\"]}", -1, "a number is expected here" },
    { A ", \"samples_ms\": [1 2]}", -1, "a comma or ] is expected here" },
    { A ", \"flags\": [1]}", -1, "a string is expected here" },
    { A ", \"status\": \"fine\"}", -1, "status must be ok, failed or skipped, not 'fine'" },
    { A ", \"verdict\": \"BEST\"}", -1, "verdict must be FASTER" },
    { A ", \"name\": \"b\"}", -1, "name occurs twice in a record" },
    { A ", \"message\": \"\xff\"}", -1, "is not UTF-8" },
    { A ", \"message\": \"\xc0\xaf\"}", -1, "is not UTF-8" },
    { A ", \"message\": \"\xed\xa0\x80\"}", -1, "is not UTF-8" },
    { A ", \"message\": \"a\tb\"}", -1, "a string must end with a quotation mark on its line; found byte 0x09" },
    { A ", \"message\": \"\\x\"}", -1, "the escapes are" },
    { A ", \"message\": \"\\u12g4\"}", -1, "four hexadecimal digits" },
};

static void test_files(void) {
    for (int i = 0; i < KBI_COUNT(files); ++i) {
        kbi_records r;
        bool good;
        put_file(files[i].text, strlen(files[i].text));
        const char* text = said(&r, &good);
        CHECK_THAT(good == (files[i].n >= 0), "'%s' is %s: %s", files[i].text, good ? "accepted" : "rejected", text);
        CHECK_THAT(!good || r.n == files[i].n, "'%s' has %lld records", files[i].text, (long long)r.n);
        CHECK_THAT(*files[i].says ? strstr(text, files[i].says) != NULL : !*text, "'%s': the message is '%s', not '%s'",
                   files[i].text, text, files[i].says);
        kbi_records_free(&r);
    }
}

// JSON escapes of code points, as surrogate pairs if necessary; a lone surrogate becomes U+FFFD.
static void test_escapes(void) {
    static const char* const rows[][2] = { { "\\u0041\\u00e9\\u07ff\\u0800\\uffff",
                                             "A\xc3\xa9\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf" },
                                           { "\\ud800\\udc00", "\xf0\x90\x80\x80" },
                                           { "\\udbff\\udfff!", "\xf4\x8f\xbf\xbf!" },
                                           { "\\uD83D\\uDE00", "\xf0\x9f\x98\x80" },
                                           { "\\ud800", "\xef\xbf\xbd" },
                                           { "\\udc00x", "\xef\xbf\xbdx" },
                                           { "\\ud800x", "\xef\xbf\xbdx" },
                                           { "\\ud800\\n", "\xef\xbf\xbd\n" },
                                           { "\\ud800\\u0041", "\xef\xbf\xbd"
                                                               "A" },
                                           { "\\ud800\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80" },
                                           { "\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t" } };
    for (int i = 0; i < KBI_COUNT(rows); ++i) {
        kbi_records r;
        char text[300];
        bool good;
        snprintf(text, sizeof text, "%s, \"message\": \"%s\"}", A, rows[i][0]);
        put_file(text, strlen(text));
        CHECK_STR(said(&r, &good), "");
        if (CHECK(good && r.n == 1)) CHECK_STR(r.of[0].message, rows[i][1]);
        kbi_records_free(&r);
    }
}

// First fills the stack, so that a use of an uninitialised variable would show.
static void test_chosen(void) {
    kbi_options o;
    kbi_records r;
    bool good;
    char used[20000];
    put_file(A "}\n", strlen(A "}\n"));
    CHECK_STR(said(&r, &good), ""), CHECK_INT(r.n, 1);
    kbi_options_default(&o);
    o.filter.n = 1, o.filter.of[0] = "a(";
    fflush(stderr);
    int kept = dup(2), none = open("/dev/null", O_WRONLY);
    dup2(none, 2), close(none);
    memset(used, 0x55, sizeof used), CHECK(used[(size_t)(kbi_now() % 1000)] == 0x55);
    good = kbi_load_choose(&o, &r);
    fflush(stderr), dup2(kept, 2), close(kept);
    CHECK(!good), CHECK_INT(r.n, 1);
    o.filter.of[0] = "a", CHECK(kbi_load_choose(&o, &r)), CHECK_INT(r.n, 1);
    kbi_records_free(&r);
}

static void test_large(void) {
    kbi_records r;
    bool good;
    static const struct {
        const char *before, *again, *after;
        int times;
        const char* says;
    } large[] = { { A ", \"later\": ", "[", "", 100000, "nested more than 32 deep" },
                  { A ", \"later\": ", "{\"a\": ", "", 100000, "nested more than 32 deep" },
                  { A ", \"later\": ", "[", "]]]]]]]]]]}", 10, "" },
                  { A ", \"message\": \"", "\\u00e4", "\"}", 400000, "" },
                  { A ", \"message\": \"", "0123456789", "\"}", 200000, "longer than 1 MiB" },
                  { A ", \"time_ms\": ", "1", "}", 200, "a number has more than 100 characters" },
                  { A ", \"later\": ", "1", "}", 200, "a number has more than 100 characters" },
                  { A ", \"samples_ms\": [0", ", 1.25", "]}", 300000, "" },
                  { A ", \"flags\": [\"FLOOR\"", ", \"FLOOR\"", "]}", 30000, "" },
                  { A "}", "\n", "", 200000, "" } };
    for (int i = 0; i < KBI_COUNT(large); ++i) {
        kbi_text t = { NULL, 0, 0 };
        kbi_puts(&t, large[i].before);
        for (int k = 0; k < large[i].times; ++k) kbi_puts(&t, large[i].again);
        kbi_puts(&t, large[i].after);
        put_file(t.s, t.n);
        const char* text = said(&r, &good);
        bool taken = !*large[i].says;
        CHECK_THAT(taken ? good && r.n == 1 && !*text : !good && strstr(text, large[i].says) != NULL, "large %d: %s",
                   i, text);
        if (good && large[i].times == 300000) CHECK_INT(r.of[0].samples_ms.n, 300001);
        kbi_records_free(&r);
        kbi_text_free(&t);
    }
    kbi_text axes = { NULL, 0, 0 };
    kbi_puts(&axes, A ", \"params\": {\"n\": 1");
    for (int k = 0; k < 300; ++k) kbi_putf(&axes, ", \"n%d\": 1", k);
    kbi_puts(&axes, "}}");
    put_file(axes.s, axes.n);
    CHECK_HAS(said(&r, &good), "params: more than 256 values");
    kbi_records_free(&r);
    kbi_text_free(&axes);
    put_file(A "}\n\0\0\0\0\n", sizeof A - 1 + 7);
    CHECK_HAS(said(&r, &good), ":2: this line ends in the middle of a record");
    CHECK(good && r.n == 1);
    kbi_records_free(&r);
}

// Two records with one name from two runs or two benchmarks are both kept.
static void test_again(void) {
    kbi_records r;
    bool good;
    const char* text =
        A ", \"run_id\": \"1\", \"device\": 0, \"time_ms\": 1}\n"
          "{\"name\": \"b\", \"operation\": \"o\", \"run_id\": \"1\", \"device\": 0, \"time_ms\": 2}\n" A
          ", \"run_id\": \"1\", \"device\": 1, \"time_ms\": 3}\n" A
          ", \"run_id\": \"2\", \"device\": 0, \"time_ms\": 4}\n" A
          ", \"run_id\": \"1\", \"device\": 0, \"time_ms\": 1, \"samples\": 5}\n" A ", \"time_ms\": 6}\n" A
          ", \"time_ms\": 7}\n" A ", \"run_id\": \"1\", \"device\": 0, \"time_ms\": 10}\n";
    static const double want[] = { 1, 2, 3, 4, 6, 7, 10 };
    put_file(text, strlen(text));
    const char* warned = said(&r, &good);
    CHECK_HAS(warned, "run 1 has two different records of a: two benchmarks had the same name");
    CHECK_INT(r.n, 7);
    CHECK_INT(r.replaced, 1);
    CHECK_INT(r.of[0].samples, 5);
    for (int i = 0; i < 7 && i < r.n; ++i) CHECK_REAL(r.of[i].time_ms, want[i], 0);
    kbi_records_free(&r);
}

// Schemas 1 and 2 had a key `mode` for cache and timer.
static void test_older(void) {
    static const struct {
        const char *keys, *cache, *timer;
        int shared;
    } rows[] = { { ", \"mode\": \"cold\", \"schema\": 2", "cold", "events", -1 },
                 { ", \"mode\": \"hot\", \"stage_shared\": true, \"schema\": 1", "hot", "events", 1 },
                 { ", \"schema\": 2, \"stage_shared\": false, \"mode\": \"rotate\"", "rotate", "events", 0 },
                 { ", \"mode\": \"graph\"", "graph", "events", -1 },
                 { ", \"mode\": \"cupti\", \"stage_shared\": null, \"schema\": 2", NULL, "cupti", -1 },
                 { ", \"mode\": \"wall\", \"schema\": 2", NULL, "wall", -1 },
                 { ", \"mode\": null, \"schema\": 2", NULL, NULL, -1 },
                 { ", \"cache\": \"cold\", \"timer\": \"cupti\", \"shared_buffers\": true, \"schema\": 3", "cold",
                   "cupti", 1 } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_records r;
        bool good;
        char text[400];
        snprintf(text, sizeof text, "%s%s}\n", A, rows[i].keys);
        put_file(text, strlen(text));
        CHECK_STR(said(&r, &good), "");
        if (!CHECK(good && r.n == 1)) continue;
        CHECK_THAT(kbi_same_text(r.of[0].cache, rows[i].cache) && kbi_same_text(r.of[0].timer, rows[i].timer),
                   "%s: %s, %s", rows[i].keys, r.of[0].cache ? r.of[0].cache : "-",
                   r.of[0].timer ? r.of[0].timer : "-");
        CHECK_INT(r.of[0].shared_buffers, rows[i].shared);
        CHECK(r.of[0].schema == KB_NONE || r.of[0].schema == KBI_SCHEMA);
        kbi_records_free(&r);
    }
    kbi_records r;
    bool good;
    put_file(A ", \"mode\": 3}\n", strlen(A) + 12);
    CHECK_HAS(said(&r, &good), "a string or null");
    kbi_records_free(&r);
}

static void test_env(void) {
    kb_result a, b;
    kbi_text what = { NULL, 0, 0 };
    kbi_result_clear(&a);
    kb_result_free(&a);
    a.backend = "cuda", a.gpu = "G", a.driver = "580.1", a.cpu = "C", a.cache = "cold",
    a.build = "gcc, optimised, CUDA";
    b = a;
    b.driver = "580.9", b.build = "nvcc, optimised; kbench: gcc, not optimised", b.git_commit = "other";
    CHECK(!kbi_env_differs(&a, &b, &what));
    b = a, b.cpu = NULL, b.cache = NULL, b.driver = NULL, b.build = NULL;
    CHECK(!kbi_env_differs(&a, &b, &what));
    b = a, b.gpu = "H", b.driver = "590.1";
    CHECK(kbi_env_differs(&a, &b, &what));
    CHECK_STR(what.s, "GPU (G; H)");
    b = a, b.driver = "58.1", b.cpu = "D", b.cache = "hot", b.build = "gcc, not optimised, CUDA";
    CHECK(kbi_env_differs(&a, &b, &what));
    CHECK_STR(what.s,
              "GPU (G; H), driver (580.1; 58.1), CPU (C; D), cache (cold; hot), build (optimised; not optimised)");
    what.n = 0;
    b = a, b.backend = "cpu", b.gpu = NULL, b.driver = NULL;
    CHECK(kbi_env_differs(&a, &b, &what));
    CHECK_STR(what.s, "backend (cuda; cpu)");
    kbi_text_free(&what);
}

// --- lines as --resume reads them ---

#define RECORD(name) "{\"name\": \"" name "\", \"operation\": \"o\""

static int past_of(const char* text) {
    put_file(text, strlen(text));
    int file = open(path, O_RDONLY);
    CHECK(kbi_past_read(file)), close(file);
    return kbi_past.n;
}

static void test_resume(void) {
    // all keys that identify program, machine and seed must match; other keys do not matter
#define PAST(name, binary, more) "{\"name\": \"" name "\", \"operation\": \"o\", \"binary\": \"" binary "\", " more "}"
#define HERE "\"backend\": \"c\", \"gpu\": \"g\", \"device\": 0, \"cpu\": \"p\", \"seed\": 1"
    static const struct {
        const char* line;
        bool program, here;
    } rows[] = {
        { PAST("a", "b", HERE), true, true },
        { "{\"seed\":1,\"cpu\":\"p\",\"device\":0,\"gpu\":\"g\",\"backend\":\"c\",\"binary\":\"b\",\"name\":\"a\","
          "\"operation\":\"o\",\"time_ms\":3}", true, true },
        { PAST("z", "b", HERE), false, false },
        { PAST("a", "z", HERE), false, false },
        { PAST("a", "b", "\"backend\": \"z\", \"gpu\": \"g\", \"device\": 0, \"cpu\": \"p\", \"seed\": 1"), true, false },
        { PAST("a", "b", "\"backend\": \"c\", \"gpu\": null, \"device\": 0, \"cpu\": \"p\", \"seed\": 1"), true, false },
        { PAST("a", "b", "\"backend\": \"c\", \"gpu\": \"g\", \"device\": 1, \"cpu\": \"p\", \"seed\": 1"), true, false },
        { PAST("a", "b", "\"backend\": \"c\", \"gpu\": \"g\", \"device\": 0, \"cpu\": \"z\", \"seed\": 1"), true, false },
        { PAST("a", "b", "\"backend\": \"c\", \"gpu\": \"g\", \"device\": 0, \"cpu\": \"p\", \"seed\": 2"), true, false },
        { PAST("a", "b", "\"backend\": \"cg\", \"gpu\": \"\", \"device\": 0, \"cpu\": \"p\", \"seed\": 1"), true, false }
    };
    kb_result like;
    kbi_result_clear(&like), kb_result_free(&like);
    like.backend = "c", like.gpu = "g", like.cpu = "p", like.seed = 1;
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        CHECK_INT(past_of(rows[i].line), 1);
        const kb_result* r = &kbi_past.lines[0].record;
        CHECK_THAT(kbi_past_of(r, "a", "b", NULL) == rows[i].program && kbi_past_of(r, "a", "b", &like) == rows[i].here,
                   "line %d", i);
    }
    // record: the line is complete; old: an incomplete line that kbench wrote itself
    static const struct {
        const char* line;
        bool record, old;
    } file[] = { { RECORD("0") ", \"status\": \"ok\"}", true, false },
                 { RECORD("2") ", \"status\": \"failed\"}", true, false },
                 { RECORD("3") ", \"status\": \"ok\"", false, true },
                 { "\"name\": \"4\", \"status\": \"ok\"}", false, false },
                 // a status that no version of kbench up to this one writes
                 { RECORD("5") ", \"status\": \"ko\"}", false, false },
                 { "", false, false },
                 { RECORD("8") ", \"status\": null}", true, false },
                 { RECORD("8") ", \"status\": null} {}", false, false },
                 { " " RECORD("9") ", \"x\": [1, {\"y\": null}]} \r", true, false },
                 { "{\"name\": \"10\", \"status\": \"ok\"}", false, false },
                 { "{\"name\": \"a \\", false, true },
                 { "{\"name\": \"a\", \"opera", false, true },
                 { "{\"tool\": \"other", false, false },
                 { "{", false, false },
                 { "{\"name\":", false, false } };
    static const struct {
        const char* line;
        bool record, old;
    } last[] = { { RECORD("all") ", \"status\": \"ok\"}", true, false },
                 { RECORD("torn") ", \"status\": \"o", false, true },
                 { "{\"na", false, true },
                 { "# notes", false, false } };
    for (int k = 0; k < KBI_COUNT(last); k++) {
        kbi_text text = { NULL, 0, 0 }, want = { NULL, 0, 0 }, got = { NULL, 0, 0 };
        for (int again = 0; again < 12; again++)
            for (int i = 0; i < KBI_COUNT(file); i++) {
                kbi_putf(&text, "%s\n", file[i].line);
                if (!file[i].old) kbi_putf(&want, "%s\n", file[i].line);
            }
        kbi_puts(&text, last[k].line);
        if (!last[k].old) kbi_putf(&want, "%s\n", last[k].line);
        CHECK_INT(past_of(text.s), 12 * KBI_COUNT(file) + 1);
        for (int i = 0, in = 0; i < kbi_past.n; i++, in = i % KBI_COUNT(file)) {
            bool end = i + 1 == kbi_past.n;
            const kbi_past_line* l = &kbi_past.lines[i];
            const char* line = end ? last[k].line : file[in].line;
            CHECK_THAT(l->n == strlen(line) && memcmp(kbi_past.text.s + l->at, line, strlen(line)) == 0, "line %d", i);
            CHECK_THAT((l->record.name != NULL) == (end ? last[k].record : file[in].record), "line %d: %s", i, line);
            CHECK_THAT(l->old == (end ? last[k].old : file[in].old), "line %d: %s", i, line);
        }
        int opened = open(path, O_RDWR);
        CHECK(kbi_past_drop(opened, path) && kbi_file_text(path, &got));
        CHECK_STR(got.s, want.s), close(opened);
        kbi_text_free(&text), kbi_text_free(&want), kbi_text_free(&got);
    }
    // a group is done if all of its cases are done; the last line of a case decides
    static const char ok[] = ", \"status\": \"ok\"}\n", failed[] = ", \"status\": \"failed\"}\n";
    kbi_text text = { NULL, 0, 0 };
    const char* binary = kbi_binary_hash();
    static const char* const names[] = { "a", "b", "b", "c", "d", "d", "e" };
    for (int i = 0; i < KBI_COUNT(names); i++)
        kbi_putf(&text, "{\"name\": \"%s\", \"operation\": \"o\", \"binary\": \"%s\"%s", names[i], i == 6 ? "z" : binary,
                 i == 1 || i == 5 ? failed : ok);
    CHECK_INT(past_of(text.s), KBI_COUNT(names));
    kb_planned cases[] = { { "a", 0, true, NULL }, { "b", 0, true, NULL },  { "absent", 0, false, NULL },
                           { "c", 1, true, NULL }, { "new", 1, true, NULL }, { "d", 2, true, NULL },
                           { "e", 3, true, NULL } };
    CHECK_INT(kbi_past_find(cases, KBI_COUNT(cases), NULL), 2);
    for (int i = 0; i < KBI_COUNT(cases); i++) CHECK_INT(cases[i].record != NULL, i < 2);
    CHECK(cases[1].record == &kbi_past.lines[2].record);
    static const bool old[] = { false, true, false, true, true, true, false };
    for (int i = 0; i < KBI_COUNT(names); i++) CHECK_THAT(kbi_past.lines[i].old == old[i], "line %d", i);
    kbi_text_free(&text);
}

// --- files that are written ---

static void test_marks(void) {
    static const kbi_signature mark = { "# A", "mark", 2 }, whole = { "", "mark", 1 };
    static const struct {
        const char* text;
        const kbi_signature* mark;
        bool ours;
    } rows[] = { { "", &mark, true },
                 { "# A\na mark\n", &mark, true },
                 { "# A mark", &mark, true },
                 { "# A\n\na mark\n", &mark, false }, // the signature is too far from the beginning of the file
                 { "# A mar\nk", &mark, false },
                 { "x\n# A mark\n", &mark, false },
                 { "[]", &mark, false },
                 { "a mark\n", &whole, true },
                 { "\nmark\n", &whole, false } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        put_file(rows[i].text, strlen(rows[i].text));
        int file = kbi_open_input(path, false);
        CHECK_THAT(kbi_file_ours(file, rows[i].mark) == rows[i].ours && errno == 0, "'%s'", rows[i].text);
        close(file);
    }
    CHECK(!kbi_file_ours(-1, &mark) && errno == EBADF);
}

static int heard_kept;
static void listen(void) {
    fflush(stderr);
    heard_kept = dup(2);
    int file = open(said_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(file, 2), close(file);
}
static const char* heard(void) {
    static char out[4096];
    fflush(stderr), dup2(heard_kept, 2), close(heard_kept);
    FILE* f = fopen(said_path, "rb");
    out[f ? fread(out, 1, sizeof out - 1, f) : 0] = 0;
    if (f) fclose(f);
    return out;
}

// Tests the exit code for each --fail-on and each possible outcome of a case.
static void test_toll(void) {
    static const char* const on[] = { "regress", "change", "noise", "never", NULL, "unknown" };
    static const struct {
        int regressed, improved, more, less, open, added, removed, recovered, missed, none;
        int codes[3], apart[3];                                                          // regress, change, noise
    } rows[] = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0 }, { 0, 0, 4 } },
                 { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 3, 3, 3 }, { 3, 3, 3 } },
                 { 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, { 0, 3, 0 }, { 0, 3, 4 } },
                 { 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, { 3, 3, 3 }, { 3, 3, 3 } },
                 { 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, { 0, 3, 0 }, { 0, 3, 4 } },
                 { 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, { 0, 0, 4 }, { 0, 0, 4 } },
                 { 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, { 0, 3, 0 }, { 0, 3, 4 } },
                 { 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, { 0, 3, 0 }, { 0, 3, 4 } },
                 { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, { 0, 3, 0 }, { 0, 3, 4 } },
                 { 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, { 3, 3, 3 }, { 3, 3, 3 } },
                 { 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, { 0, 0, 4 }, { 0, 0, 4 } } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_assessment a;
        memset(&a, 0, sizeof a);
        a.compared = rows[i].none ? 0 : 2, a.regressed = rows[i].regressed, a.improved = rows[i].improved,
        a.more = rows[i].more;
        a.less = rows[i].less, a.open = rows[i].open, a.added = rows[i].added, a.removed = rows[i].removed,
        a.recovered = rows[i].recovered;
        for (int k = 0; k < KBI_COUNT(on); k++)
            for (int apart = 0; apart < 2; apart++) {
                int way = k < 3 ? k : 0, want = k == 3 ? 0 : (apart ? rows[i].apart : rows[i].codes)[way];
                kbi_wanted.fail_on = on[k], a.apart = apart;
                int code = kbi_regression_code(&a, true, rows[i].missed);
                CHECK_THAT(code == want, "row %d, --fail-on %s%s: %d, not %d", i, on[k] ? on[k] : "(none)",
                           apart ? ", one not comparable" : "", code, want);
            }
        kbi_wanted.fail_on = "noise", a.apart = 0; // if nothing was compared, the exit code depends only on --goal
        int code = kbi_regression_code(&a, false, rows[i].missed);
        CHECK_INT(code, rows[i].codes[2] == 4 ? 0 : rows[i].codes[2]);
    }
    kb_result pair[2];
    kbi_change change;
    kbi_changes all;
    for (int i = 0; i < 2; i++) {
        kbi_result_clear(&pair[i]);
        pair[i].name = pair[i].operation = "o", pair[i].time_ms = 1 + i, pair[i].cpu = i ? "B" : "A";
    }
    for (int ignore = 0; ignore < 2; ignore++) {
        memset(&change, 0, sizeof change), memset(&all, 0, sizeof all), kbi_report_start();
        change.before = &pair[0], change.after = &pair[1], change.regressed = true;
        all.of = &change, all.n = 1, kbi_wanted.on[KBI_REPORT_ignore_env] = ignore;
        kbi_regression_apart(&all);
        kbi_assessment a = kbi_assess(&all);
        CHECK_INT(a.apart, !ignore), CHECK_INT(a.regressed, ignore), CHECK_INT(a.compared, ignore);
        CHECK_INT(kbi_regression_code(&a, true, 0), ignore ? KBI_EXIT_REGRESSED : KBI_EXIT_FINE);
    }
    static const char* const names[] = { "a", "A-z_0.9+", "9", "", ".a", "-a", "a/b", "a b", "\xc3\xa4" };
    for (int i = 0; i < KBI_COUNT(names); i++) CHECK_THAT(kbi_plain_name(names[i]) == (i < 3), "'%s'", names[i]);
}

static void test_race_budget(void) {
    static kbi_options o;
    CHECK_REAL(kbi_race_budget(&o), 60, 0);
    o.on[KBI_OPTION_budget] = true, o.budget = 7;
    CHECK_REAL(kbi_race_budget(&o), 7, 0);
}

static void test_goals(void) {
    static const struct {
        const char *text, *name;
        bool patterns, least, strict;
        double value;
    } goals[] = { { "time_ms<=0.5", "time_ms", false, false, false, 0.5 },
                  { "time_ms<0.5", "time_ms", false, false, true, 0.5 },
                  { "gpu_efficiency>=80%", "gpu_efficiency", false, true, false, 80 },
                  { "gpu_efficiency>-1e2", "gpu_efficiency", false, true, true, -100 },
                  { "softmax:time_ms<=1", "time_ms", true, false, false, 1 },
                  { "a:b:time_ms<=1", "time_ms", true, false, false, 1 },
                  { "counter:hits>=2", "hits", false, true, false, 2 },
                  { "softmax:counter:hits>=2", "hits", true, true, false, 2 },
                  { "samples>=30", "samples", false, true, false, 30 },
                  { "time_ms=1", NULL, false, false, false, 0 },
                  { "time_ms==1", NULL, false, false, false, 0 },
                  { "time_ms", NULL, false, false, false, 0 },
                  { "time_ms<=", NULL, false, false, false, 0 },
                  { "time_ms<=1x", NULL, false, false, false, 0 },
                  { "time_ms<=inf", NULL, false, false, false, 0 },
                  { "time_ms<=1%%", NULL, false, false, false, 0 },
                  { "nothing<=1", NULL, false, false, false, 0 },
                  { "kernel<=1", NULL, false, false, false, 0 },
                  { "(:time_ms<=1", NULL, false, false, false, 0 } };
    for (int i = 0; i < KBI_COUNT(goals); i++) {
        kbi_goal g;
        listen();
        bool good = kbi_goal_parse(goals[i].text, &g);
        const char* words = heard();
        CHECK_THAT(good == (goals[i].name != NULL) && good == !*words, "%s: %d, %s", goals[i].text, good, words);
        if (!good || !goals[i].name) continue;
        CHECK_STR(g.what.counter[0] ? g.what.counter : g.what.key->name, goals[i].name);
        CHECK_THAT((g.which.n > 0) == goals[i].patterns && g.least == goals[i].least && g.strict == goals[i].strict,
                   "%s", goals[i].text);
        CHECK_REAL(g.value, goals[i].value, 0);
        double x = g.value, more = nextafter(x, INFINITY), less = nextafter(x, -INFINITY);
        CHECK(kbi_goal_met(&g, x) == !g.strict && kbi_goal_met(&g, more) == g.least &&
              kbi_goal_met(&g, less) == !g.least);
        CHECK(!kbi_goal_met(&g, NAN));
        kbi_patterns_free(&g.which);
    }
}

static void test_shards(void) {
    static const struct {
        const char *name, *shard;
        int64_t device, place;
    } of[] = { { "c", "2/3", 0, 3 }, { "x", NULL, 0, 1 },  { "a", "1/3", 0, 1 },       { "b", "1/3", 0, 2 },
               { "a", "1/3", 1, 1 }, { "c", "2/3", 0, 3 }, { "y", "1/3", 0, KB_NONE }, { "a", "1/3", 0, 1 },
               { "a", "1/3", 0, 1 }, { "b", "1/3", 1, 2 } };
    static const char order[] = "axbcabyaca"; // x and y are not in the plan, so they keep their positions
    static const char devices[] = "0000110000";
    static kb_result results[KBI_COUNT(of)];
    kbi_records r;
    memset(&r, 0, sizeof r);
    r.of = results, r.n = KBI_COUNT(of);
    for (int i = 0; i < KBI_COUNT(of); i++) {
        kbi_result_clear(&results[i]);
        results[i].name = of[i].name, results[i].shard = of[i].shard, results[i].device = of[i].device,
        results[i].place = of[i].place;
        results[i].seed = i;
    }
    kbi_load_order(&r);
    for (int i = 0; i < KBI_COUNT(of); i++)
        CHECK_THAT(results[i].name[0] == order[i] && results[i].device == devices[i] - '0', "%d: %s of device %d", i,
                   results[i].name, (int)results[i].device);
    CHECK(results[0].seed == 2 && results[7].seed == 7 && results[8].seed == 5 && results[9].seed == 8);
    static const struct {
        const char *shards[4], *says;
    } rows[] = {
        { { "1/1", NULL, NULL, NULL }, "" },
        { { "1/2", "2/2", NULL, NULL }, "" },
        { { NULL, NULL, NULL, NULL }, "" },
        { { "2/2", NULL, NULL, NULL }, "no record of shard 1/2: not run yet, or no case for it\n" },
        { { "1/3", NULL, "1/3", NULL },
          "no record of shards 2/3, 3/3: not run yet, or no case for them\n" },
        { { "4/9", NULL, NULL, NULL }, "no record of shards 1/9, 2/9, 3/9, 5/9, 6/9, 7/9, 8/9, 9/9: not run" },
        { { "4/10", NULL, NULL, NULL },
          "no record of shards 1/10, 2/10, 3/10, 5/10, 6/10, 7/10, 8/10, 9/10, ...: not" },
        { { "1/2", "2/3", NULL, NULL }, 
          "the runs of the shards used different numbers of shards, K/2 and K/3. A case may occur twice" }
    };
    r.n = 4;
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        for (int k = 0; k < 4; k++) results[k].shard = rows[i].shards[k];
        listen(), kbi_load_absent(&r);
        const char* words = heard();
        CHECK_THAT(*rows[i].says ? strstr(words, rows[i].says) != NULL : !*words, "row %d: %s", i, words);
    }
    kbi_report_start();
    for (int k = 0; k < 4; k++) results[k].shard = "1/2", results[k].gpu = k == 3 ? "B" : k ? "A" : NULL;
    listen();
    CHECK(!kbi_load_alike(&r)), r.n = 3, CHECK(kbi_load_alike(&r));
    CHECK_HAS(heard(), "shard 1/2 ran on A, and shard 1/2 on B. Times of different GPUs");
    r.n = 4, kbi_wanted.on[KBI_REPORT_ignore_env] = true, CHECK(kbi_load_alike(&r));
    results[3].shard = NULL, kbi_wanted.on[KBI_REPORT_ignore_env] = false, CHECK(kbi_load_alike(&r));
}

static void test_race(void) {
    static kb_result first[5], later[6];
    static const struct {
        const char* name;
        int64_t device;
        double ms;
    } a[] = { { "b", 0, 1 }, { "a", KB_NONE, 2 }, { "c", 1, 3 }, { "c", 0, 4 }, { "d", 0, 5 } },
      z[] = { { "c", 0, 14 }, { "a", KB_NONE, 12 }, { "aa", 0, 99 }, { "c", 2, 98 }, { "b", 1, 97 }, { "d", 0, 15 } };
    kbi_race r;
    kbi_racer one;
    kbi_named order[5];
    double ms[15];
    kbi_records now;
    memset(&r, 0, sizeof r), memset(&one, 0, sizeof one), memset(&now, 0, sizeof now);
    for (int i = 0; i < 5; i++)
        kbi_result_clear(&first[i]), first[i].name = a[i].name, first[i].device = a[i].device,
                                     first[i].time_ms = a[i].ms;
    for (int i = 0; i < 6; i++)
        kbi_result_clear(&later[i]), later[i].name = z[i].name, later[i].device = z[i].device,
                                     later[i].time_ms = z[i].ms;
    one.order = order, one.ms = ms, one.n = kbi_name_records(order, first, 5);
    CHECK_INT(one.n, 5);
    for (int i = 0; i < 15; i++) ms[i] = -1;
    r.rounds = 1, now.of = later, now.n = 6, later[5].status = KB_FAILED;
    kbi_race_keep(&r, &one, &now);
    static const double want[] = { -1, -1, -1, -1, -1, 12, NAN, 14, NAN, NAN, -1, -1, -1, -1, -1 };
    for (int i = 0; i < 15; i++) CHECK_REAL(ms[i], want[i], 0);
    r.rounds = 2, now.of = first, now.n = 5, kbi_race_keep(&r, &one, &now);
    for (int i = 0; i < 5; i++) {
        int64_t at = kbi_race_place(&one, &first[i]);
        CHECK(at >= 0 && order[at].r == &first[i]), CHECK_REAL(ms[10 + at], a[i].ms, 0);
    }
    CHECK(kbi_race_place(&one, &later[2]) == -1 && kbi_race_place(&one, &later[3]) == -1 &&
          kbi_race_place(&one, &later[4]) == -1);
    first[0].name = "0", CHECK_INT(kbi_race_place(&one, &later[0]), 2);
}

static void test_added(void) {
    static kbi_options o;
    static const char* const before[] = { "", RECORD("old") "}\n", RECORD("torn") };
    kb_result r[2];
    kbi_regression g;
    for (int i = 0; i < 2; i++) kbi_result_clear(&r[i]), r[i].name = i ? "two" : "one", r[i].operation = "o";
    for (int i = 0; i < 3; i++) {
        kbi_text got = { NULL, 0, 0 }, want = { NULL, 0, 0 }, here = { NULL, 0, 0 };
        memset(&g, 0, sizeof g), g.o = &o;
        put_file(before[i], strlen(before[i]));
        if (!CHECK(kbi_lines_open(&g.lines, "history", path))) continue;
        kbi_putf(&here, "%s", g.lines.path);
        CHECK(here.s[0] == '/' && strcmp(here.s + here.n - strlen(path), path) == 0);
        CHECK(kbi_history_add(&g, r, 2) && kbi_file_text(path, &got));
        kbi_out_free(&g.lines);
        kbi_putf(&want, "%s%s", before[i], i == 2 ? "\n" : "");
        for (int k = 0; k < 2; k++) kbi_json_result(&want, &r[k]), kbi_puts(&want, "\n");
        CHECK_STR(got.s, want.s);
        kbi_text_free(&got), kbi_text_free(&want);
        unlink(path);
        for (int k = 0; k < 2 && !i; k++) CHECK(kb_write_json(r, 2 - k, here.s));
        if (!i) CHECK(kb_write_json(r, 0, here.s) && kbi_file_text(path, &got)), CHECK_STR(got.s, "[]\n");
        kbi_text_free(&got), kbi_text_free(&here);
    }
    for (int i = 0; i < 2; i++) kb_result_free(&r[i]);
    kbi_text pipe = { NULL, 0, 0 };
    kbi_putf(&pipe, "%s.pipe", path), unlink(pipe.s);
    CHECK(mkfifo(pipe.s, 0600) == 0);
    pid_t reader = fork();
    if (reader == 0) {
        kbi_readable(-1, 150);
        int file = open(pipe.s, O_RDONLY);
        kbi_readable(-1, 300);
        _exit(file < 0);
    }
    int file = kbi_open_in_place(pipe.s), status = -1;
    CHECK(file >= 0);
    if (file >= 0) close(file);
    kill(reader, SIGKILL), waitpid(reader, &status, 0);
    unlink(pipe.s), kbi_text_free(&pipe);
}

static int free_file(void) {
    int file = dup(1);
    close(file);
    return file;
}

int main(void) {
    int before = free_file();
    test_round_trip();
    test_files();
    test_escapes();
    test_chosen();
    test_large();
    test_again();
    test_older();
    test_env();
    test_resume();
    test_marks();
    test_toll();
    test_goals();
    test_race_budget();
    test_shards();
    test_race();
    test_added();
    CHECK_INT(free_file(), before);
    return test_end();
}
