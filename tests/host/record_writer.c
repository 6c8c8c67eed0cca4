// SPDX-License-Identifier: MIT OR Unlicense
// Values read from a file of kb_write_json must equal the original values, for any strings and any decimal point
// of the locale.
// a program of its own: the file replaces functions of the C library, so other tests cannot share its program.
#include "test.h"
#include "json.h"
#include "guarded.h"
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

// Simulates a locale whose decimal point is `point`. The replaced localeconv, snprintf and strtod also apply to
// the calls of this test.
static const char* point = ".";
static struct lconv* played_localeconv(void) {
    static struct lconv l;
    l = *localeconv();
    l.decimal_point = (char*)(uintptr_t)point;
    return &l;
}
static int played_snprintf(char* out, size_t size, const char* format, ...) {
    char text[2000], localised[4000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (strcmp(point, ".") == 0 || !strpbrk(format, "gfe")) return snprintf(out, size, "%s", text);
    char* q = localised;
    for (const char* p = text; *p; ++p) {
        if (*p == '.')
            q += sprintf(q, "%s", point);
        else
            *q++ = *p;
    }
    *q = 0;
    return snprintf(out, size, "%s", localised);
}
// if the decimal point of the locale is not ".", strtod("1.5") returns 1 and stops at the "."
static double played_strtod(const char* s, char** end) {
    char text[200];
    size_t n = 0, wide = strlen(point);
    const char* at = strstr(s, point);
    if (strcmp(point, ".") == 0) return strtod(s, end);
    for (const char* p = s; *p && n + 1 < sizeof text; ++p) {
        text[n++] = p == at ? '.' : *p == '.' ? '!' : *p;
        if (p == at) p += wide - 1;
    }
    text[n] = 0;
    char* stop;
    double x = strtod(text, &stop);
    size_t used = (size_t)(stop - text);
    if (end) *end = (char*)(uintptr_t)(s + used + (at && used > (size_t)(at - s) ? wide - 1 : 0));
    return x;
}
// Simulates a system that interrupts every second call while `interruptions` is positive, and transfers at most 7
// bytes per call.
static int interruptions;
static size_t interrupted(size_t n) { return interruptions > 0 && n > 7 ? 7 : n; }
static ssize_t played_write(int file, const void* from, size_t n) {
    if (interruptions > 0 && interruptions-- % 2) return errno = EINTR, -1;
    return write(file, from, interrupted(n));
}
static ssize_t played_read(int file, void* to, size_t n) {
    if (interruptions > 0 && interruptions-- % 2) return errno = EINTR, -1;
    return read(file, to, interrupted(n));
}
#define write played_write
#define read played_read
#define localeconv played_localeconv
#define snprintf played_snprintf
#define strtod played_strtod
#include "kit.h"
#undef localeconv
#undef snprintf
#undef strtod
#undef write
#undef read

static const char* const path = "build/test/record_host.json";
static uint64_t state = 1;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static double any_double(void) {
    double x;
    do {
        uint64_t bits = next();
        memcpy(&x, &bits, sizeof x);
    } while (!isfinite(x));
    return x;
}
static int same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

// returns a typical measured number, or a number near a boundary of decimal or binary formats
static double some_double(void) {
    uint64_t bits = next();
    double x = 1;
    switch (next() % 6) {
    case 0: x = ldexp((double)(bits >> 11), -(int)(next() % 110)); break;
    case 1: x = (double)(bits % 2000001) / 1000; break;
    case 2:
        x = ldexp(1, (int)(bits % 120) - 60) * (1 + (double)((int)(next() % 3) - 1) * 2.220446049250313e-16);
        break;
    case 3: x = pow(10, (int)(bits % 40) - 20) * (double)(next() % 1000); break;
    case 4: x = 1.0 / (double)(1 + bits % 100000); break;
    default: x = (double)(bits >> (next() % 60)); break;
    }
    return next() & 1 ? -x : x;
}

// kbi_number writes the shortest text of 15 to 17 digits that is read back exactly. kbi_scan reads every number as
// strtod does.
static void test_exactly(void) {
    char out[40], want[40];
    int other_text = 0, other_value = 0;
    for (int i = 0; i < 200000; ++i) {
        double x = some_double();
        kbi_scanned read;
        const char* end;
        kbi_number(x, out);
        for (int digits = 15; digits <= 17; ++digits) {
            snprintf(want, sizeof want, "%.*g", digits, x);
            if (same(strtod(want, NULL), x)) break;
        }
        other_text += strcmp(out, want) != 0;
        snprintf(out, sizeof out, "%.*g", 1 + (int)(next() % 21), x);
        other_value += !kbi_scan(out, &read, &end) || *end || !same(read.x, strtod(out, NULL));
    }
    CHECK_INT(other_text, 0);
    CHECK_INT(other_value, 0);
}

static void test_interrupted(void) {
    static const char text[] = "a message of a worker to its supervisor, longer than one call transfers";
    char back[sizeof text];
    int ends[2];
    alarm(20); // ends the test if a write to a full disk is repeated endlessly
    if (!CHECK(pipe(ends) == 0)) return;
    interruptions = 9, CHECK(kbi_write_all(ends[1], text, sizeof text));
    interruptions = 9, CHECK(kbi_read_all(ends[0], back, sizeof back));
    interruptions = 0;
    CHECK(memcmp(back, text, sizeof text) == 0);
    CHECK(kbi_write_all(ends[1], text, 3) && close(ends[1]) == 0);
    CHECK(kbi_write_all(-1, text, 0) && kbi_read_all(-1, back, 0));
    CHECK(!kbi_write_all(-1, text, 1) && !kbi_read_all(-1, back, 1));
    CHECK(!kbi_read_all(ends[0], back, 4));
    close(ends[0]);
    int full = open("/dev/full", O_WRONLY);
    if (full >= 0) CHECK(!kbi_write_all(full, text, sizeof text)), close(full);
    alarm(0);
}

static void test_hash(void) {
    uint64_t words[5] = { 1, 2, 3, 4, 5 }, plain = kbi_hash_words(7, words, 5);
    uint64_t one = (7 ^ 1) * 0x9e3779b97f4a7c15u;
    CHECK(kbi_hash_words(7, words, 1) == (one ^ one >> 29) && kbi_hash_words(7, words, 0) == 7);
    for (int bit = 0; bit < 5 * 64; bit++) {
        words[bit / 64] ^= (uint64_t)1 << bit % 64;
        CHECK_THAT(kbi_hash_words(7, words, 5) != plain, "bit %d does not change the hash", bit);
        words[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
    CHECK(kbi_hash_words(8, words, 5) != plain && kbi_hash_words(7, words, 4) != plain);
    uint64_t h[4] = { 7, 7, 7, 7 };
    static const char* const bytes[] = { "", "a", "ab", "ab" };
    for (int i = 0; i < 4; i++) {
        FILE* f = tmpfile();
        fputs(bytes[i], f), fflush(f), rewind(f);
        CHECK(kbi_hash_file(&h[i], dup(fileno(f))));
        fclose(f);
    }
    CHECK(h[0] != h[1] && h[1] != h[2] && h[2] == h[3]);
    CHECK(!kbi_hash_file(&h[0], -1) && !kbi_hash_file(&h[0], open(".", O_RDONLY)));
    CHECK_INT(strlen(kbi_binary_hash()), 16);
}

static void test_numbers(void) {
    kbi_scanned whole;
    const char* behind;
    CHECK(kbi_scan("9223372036854775807", &whole, &behind) && whole.fits && whole.i == INT64_MAX);
    CHECK(kbi_scan("9223372036854775808", &whole, &behind) && !whole.fits && !whole.i);
    CHECK(kbi_scan("11111111111111111110", &whole, &behind) && !whole.fits &&
          whole.x > 1.1e19); // has 20 digits; the first 19 fit into 64 bits
    CHECK(kbi_scan("00012", &whole, &behind) == false);
    static const double list[] = { 0,
                                   1,
                                   -1,
                                   0.1,
                                   0.5,
                                   1.0 / 3,
                                   1e15,
                                   1e16,
                                   123456789012345678.0,
                                   9007199254740993.0,
                                   1e-300,
                                   5e-324,
                                   2.2250738585072014e-308,
                                   1.7976931348623157e308,
                                   0.003,
                                   1e22,
                                   1e23 };
    char out[40];
    int wrong = 0, longest = 0;
    for (int i = 0; i < 200000; ++i) {
        double x = i < (int)(sizeof list / sizeof *list) ? list[i] : any_double();
        kbi_number(x, out);
        wrong += !same(strtod(out, NULL), x);
        if ((int)strlen(out) > longest) longest = (int)strlen(out);
    }
    CHECK_INT(wrong, 0);
    CHECK(longest <= 24);
    CHECK_STR(kbi_number(0.1, out), "0.1");
    CHECK_STR(kbi_number(3, out), "3");
    static const char* const points[] = { ",", "\xd9\xab", "." };
    for (int p = 0; p < 3; ++p) {
        point = points[p];
        CHECK_STR(kbi_number(0.1, out), "0.1");
        CHECK_STR(kbi_number(-1234.5, out), "-1234.5");
        CHECK_STR(kbi_number(1.5e-300, out), "1.5e-300");
        CHECK_STR(kbi_number(7, out), "7");
        CHECK_STR(kbi_digits(12.345, 3, out), "12.3");
        wrong = 0;
        for (int i = 0; i < 2000; ++i) {
            double x = any_double();
            kbi_number(x, out);
            wrong += !same(strtod(out, NULL), x);
        }
        CHECK_THAT(wrong == 0, "%d of 2000 numbers changed with '%s' as the decimal point", wrong, point);
    }
    point = ".";
}

// kbench reads numbers in user input with "." as the decimal point and "," as the separator, in every locale
static void test_input(void) {
    static const char* const points[] = { ".", "," };
    for (int p = 0; p < 2; ++p) {
        point = points[p];
        CHECK_REAL(kbi_parse_time("1.5ms"), 1.5e-3, 1e-12);
        CHECK(kbi_parse_time("1,5ms") < 0);
        CHECK_REAL(kbi_parse_time("250us"), 2.5e-4, 1e-12);
        kbi_options o;
        kbi_options_default(&o);
        CHECK(kbi_option_set(&o, KBI_OPTION_precision, "0.25%"));
        CHECK_REAL(o.precision, 0.0025, 1e-12);
        static const struct {
            const char* list;
            int n;
            double last;
        } lists[] = { { "1,5", 2, 5 },
                      { "0.5,1.25", 2, 1.25 },
                      { "0:1:+0.25", 5, 1 },
                      { "256,1024", 2, 1024 },
                      { "2^0.5,2^1.5", 2, 2.8284271247461903 } };
        for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
            kbi_arena a = { NULL, 0, 0 };
            kbi_dimension d = kbi_parse_list(&a, "p", KB_AXIS_REALS, lists[i].list, strlen(lists[i].list));
            CHECK_THAT(d.n == lists[i].n && fabs(d.values[d.n - 1].r - lists[i].last) < 1e-9,
                       "'%s' has %d values with '%s' as the decimal point", lists[i].list, d.n, point);
            kbi_arena_free(&a);
        }
    }
    point = ".";
}

static void unescape(const char* s, char* out) {
    for (++s; *s && !(*s == '"' && !s[1]); ++s) {
        if (*s != '\\') {
            *out++ = *s;
            continue;
        }
        ++s;
        if (*s == 'u') {
            unsigned code = 0;
            sscanf(s + 1, "%4x", &code);
            if (code < 0x80)
                *out++ = (char)code;
            else
                out += sprintf(out, "\xef\xbf\xbd"); // in this test, the only \u escape is that of U+FFFD
            s += 4;
        } else {
            const char* at = strchr("n\nt\tr\rb\bf\f", *s);
            *out++ = at ? at[1] : *s;
        }
    }
    *out = 0;
}

static void test_file(void) {
    static const char* const texts[] = { "plain",
                                         "",
                                         "\"",
                                         "\\",
                                         "\\\\\"",
                                         "a\nb\tc\rd\be\f",
                                         "\x01\x02\x1f\x7f",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "</script><!--",
                                         "100%s%n%d",
                                         "\xff",
                                         "\xc3",
                                         "\xe2\x82",
                                         "\xed\xa0\x80",
                                         "\xc0\x80",
                                         "\xf5\x80\x80\x80",
                                         "a\xffz" };
    enum { N = sizeof texts / sizeof *texts };
    static kb_result results[N];
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.samples = 3;
    d.max_time = 1e-3;
    for (int i = 0; i < N; ++i) {
        d.name = "text";
        kb_state* kb = kb_open(&d);
        KB_TIME(kb) {
            for (int kept = 0; kept < 20; kept++) kb_keep(kb);
        }
        results[i] = kb_close(kb);
        results[i].message = texts[i];
        results[i].bytes = any_double();
        results[i].gpu_efficiency = i % 2 ? NAN : INFINITY;
        results[i].seed = (int64_t)(next() >> 1);
    }
    CHECK(kb_write_json(results, N, path));
    json_file f = json_read(path, 0);
    CHECK_STR(f.error, "");
    CHECK_INT(f.n, N);
    for (int i = 0; i < f.n; ++i) {
        char text[200];
        CHECK_THAT(same(strtod(json_get(&f, i, "bytes"), NULL), results[i].bytes), "bytes %.17g came back as %s",
                   results[i].bytes, json_get(&f, i, "bytes"));
        CHECK_THAT(strtoll(json_get(&f, i, "seed"), NULL, 10) == results[i].seed, "seed %lld came back as %s",
                   (long long)results[i].seed, json_get(&f, i, "seed"));
        CHECK_STR(json_get(&f, i, "gpu_efficiency"), "null");
        if (json_get(&f, i, "message")[0] != '"') {
            CHECK_STR(json_get(&f, i, "message"), "a string");
            continue;
        }
        unescape(json_get(&f, i, "message"), text);
        if (i < 12)
            CHECK_STR(text, texts[i]);
        else
            CHECK_HAS(text, "\xef\xbf\xbd");
    }
    json_free(&f);
    CHECK(kb_write_json(results, 0, path));
    f = json_read(path, 0);
    CHECK_STR(f.error, "");
    CHECK_INT(f.n, 0);
    json_free(&f);
    CHECK(!kb_write_json(results, N, "no/such/directory/results.json"));
    for (int i = 0; i < N; ++i) kb_result_free(&results[i]);
}

// random bytes as a message: the file stays valid JSON
static void test_fuzz(void) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "fuzz";
    d.samples = 3;
    d.max_time = 1e-3;
    kb_state* kb = kb_open(&d);
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
    kb_result r = kb_close(kb);
    int wrong = 0;
    for (int turn = 0; turn < 300; ++turn) {
        char text[64];
        int n = (int)(next() % 60);
        for (int i = 0; i < n; ++i) {
            static const char awkward[] = "\"\\\x80\xbf\xc3\xe2\xf0\xed\xff\n\x01z";
            text[i] = next() % 2 ? awkward[next() % 12] : (char)(next() % 255 + 1);
        }
        text[n] = 0;
        r.message = text;
        kb_write_json(&r, 1, path);
        json_file f = json_read(path, 0);
        if (f.error[0] && !wrong++) CHECK_STR(f.error, "");
        json_free(&f);
    }
    CHECK_INT(wrong, 0);
    r.message = NULL;
    kb_result_free(&r);
}

// A written record has the same keys as the table, in the same order.
static void test_keys(void) {
    static const char* const groups[] = { "what",  "time",   "rate",    "memory", "contest",
                                          "trust", "kernel", "machine", "run" };
    static const struct {
        const char *key, *group;
    } homes[] = { { "name", "what" },
                  { "params", "what" },
                  { "planned", "what" },
                  { "time_ms", "time" },
                  { "process_ms", "time" },
                  { "samples_retaken", "time" },
                  { "gflops", "rate" },
                  { "roof", "rate" },
                  { "leaked_bytes", "memory" },
                  { "baseline", "contest" },
                  { "winner", "contest" },
                  { "winner_certain", "contest" },
                  { "flags", "trust" },
                  { "registers", "kernel" },
                  { "occupancy_achieved", "kernel" },
                  { "no_gpu", "machine" },
                  { "tool", "machine" },
                  { "copy_roof_gbps", "machine" },
                  { "read_roof_gbps", "machine" },
                  { "write_roof_gbps", "machine" },
                  { "binary", "run" },
                  { "schema", "run" },
                  { "shard", "run" } };
    kb_result r;
    size_t at = 0, found = 0, n = sizeof kbi_keys / sizeof *kbi_keys;
    kbi_result_clear(&r);
    unlink(path);
    CHECK(kb_write_json(&r, 1, path));
    json_file f = json_read(path, 0);
    CHECK_STR(f.error, "");
    CHECK_INT(f.records[0].n, n);
    for (size_t i = 0; i < n; ++i) {
        const kbi_key* k = &kbi_keys[i];
        const json_field* x = &f.records[0].of[i];
        CHECK_THAT(x->key_n == (int)strlen(k->name) && memcmp(x->key, k->name, (size_t)x->key_n) == 0,
                   "key %d of the file is '%.*s', of the table %s", (int)i, x->key_n, x->key, k->name);
        // in a cleared record, every key is null except flags [], params {} and status
        const char* want = k->kind == KBI_KIND_flags    ? "[]"
                           : k->kind == KBI_KIND_params ? "{}"
                           : k->kind == KBI_KIND_status ? "\"ok\""
                                                        : "null";
        CHECK_THAT(strcmp(json_get(&f, 0, k->name), want) == 0, "%s is %s", k->name, json_get(&f, 0, k->name));
        while (at < sizeof groups / sizeof *groups && strcmp(k->group, groups[at]) != 0) ++at;
        CHECK_THAT(at < sizeof groups / sizeof *groups, "%s: group %s is out of order", k->name, k->group);
        CHECK_THAT(strlen(k->meaning) > 2, "%s: no meaning", k->name);
        CHECK_THAT(!i || k->offset > kbi_keys[i - 1].offset, "key %s follows a key whose field is later in kb_result",
                   k->name);
        for (size_t j = 0; j < sizeof homes / sizeof *homes; ++j) {
            if (strcmp(homes[j].key, k->name) != 0) continue;
            CHECK_STR(k->group, homes[j].group);
            ++found;
        }
        for (size_t j = 0; j < i; ++j) CHECK_THAT(strcmp(kbi_keys[j].name, k->name) != 0, "%s twice", k->name);
    }
    CHECK_INT(at, sizeof groups / sizeof *groups - 1);
    CHECK_INT(found, sizeof homes / sizeof *homes);
    json_free(&f);
    unlink(path);
    CHECK(kb_write_json(&r, 0, path));
    kb_result_free(&r);
}

int main(void) {
    if (system("mkdir -p build/test") != 0) return 2;
    test_keys();
    test_hash();
    test_numbers();
    test_exactly();
    test_interrupted();
    test_input();
    test_file();
    test_fuzz();
    return test_end();
}
