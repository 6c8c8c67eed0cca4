/* kbench_report.h - an add-on of kbench.h: everything that reads records - C11, C++11, CUDA C++17
   MIT or public domain, as you choose; both texts stand at the end of kbench.h.

    #define KBENCH_IMPLEMENTATION
    #include "kbench.h"
    #include "kbench_report.h"         after kbench.h, in the file that defines KBENCH_IMPLEMENTATION

   It adds these options to a program: --load, --resume, --explain, --compare, --baseline, --save-baseline, --history,
   --goal, --race, --md, --gbench, --go, --github, --report, --svg and --html. kbench.c in this folder is a tool with
   the same options and no benchmark.

CONTENTS (search for the tag)

    >>options      the add-on's options: one row each
    >>parse        a JSON parser: strings, numbers, lists; it accepts untrusted input
    >>reader       records from JSON objects
    >>reading      files of records: an array, one record per line, or the records inside a page
    >>changes      pairs the records of two runs; the data types of changes. Pure functions
    >>differences  the differences between two machines, and whether their times are comparable
    >>compare      statistics of changes: intervals, verdicts, and trends over a history
    >>shifts       prints changes and trends
    >>markdown     records as Markdown tables, as for a pull request
    >>tools        records in the formats of Google Benchmark and Go
    >>report       report.md: every case, summaries by size, the best of each operation, bottlenecks
    >>svg          SVG: shapes, scales, axes, labels, colours
    >>views        which records belong into one figure, and which axes the figure has
    >>sweeps       figures over size: lines, fitted power laws, heat maps
    >>figures      figures of cases: speed of light, samples, ratios
    >>roofline     the roofline plot: measured roofs, and cases by arithmetic intensity
    >>page         the kinds of figures; one figure as a file; style and script of a page
    >>cases        the top of a page: verdict, warnings, table of all cases
    >>html         the page: top, figures, machine, records
    >>gate         the regression gate: baselines, histories, goals, and the exit code
    >>shown        --svg, --html, --github and --report: outputs that need more than the records
    >>load         shows records of earlier runs; runs nothing
    >>resume       takes finished cases from the --jsonl file of an earlier run
    >>race         runs built programs in alternating fresh processes
    >>explain      --explain NAME: the meaning of a flag, a verdict, a key of the record or a column, with an example
    >>registered   registers the add-on's outputs
*/
#ifndef KBENCH_REPORT_H
#define KBENCH_REPORT_H
#ifndef KBENCH_VERSION
#error "kbench_report.h: include kbench.h before it"
#endif
#ifdef KBENCH_IMPLEMENTED
KBI_CODE_BEGIN

/*-----------------------------------------------------------------
  >>options     the add-on's options: one row each.
-----------------------------------------------------------------*/

typedef const char* kbi_two[2];
// clang-format off
#define KBI_FILE (KBI_WRITES | KBI_IN_LOAD)
#define KBI_REPORT_OPTIONS \
    KBI_TEXT(md, "md", "FILE", "out", "Markdown tables, for a pull request", KBI_FILE | KBI_RARE) \
    KBI_TEXT(gbench, "gbench", "FILE", "out", "Google Benchmark's JSON, for its compare.py", KBI_FILE | KBI_RARE) \
    KBI_TEXT(go, "go", "FILE", "out", "Go's benchmark format, for benchstat", KBI_FILE | KBI_RARE) \
    KBI_TEXT(html, "html", "FILE", "out", "a page with figures, tables and the records", KBI_FILE) \
    KBI_TEXT(svg, "svg", "FILE", "out", "one figure; --plot names its kind", KBI_FILE | KBI_RARE) \
    KBI_TEXT(plot, "plot", "KIND", "out", "kind of figure for --svg; see below", KBI_IN_LOAD | KBI_RARE) \
    KBI_LIST(where, "where", "KEY=VALUE,...", "out", "records for --svg; repeatable: one --where must match", \
        KBI_REPEATS | KBI_IN_LOAD | KBI_RARE) \
    KBI_TEXT(report, "report", "DIR", "out", "comparison.csv, comparison.md and report.md", KBI_FILE | KBI_RARE) \
    KBI_BARE(resume, "resume", "out", "measure only cases missing in --jsonl FILE", KBI_RARE) \
    KBI_TEXT(explain, "explain", "NAME", "out", "the meaning of a flag, verdict, key or column", KBI_INSTEAD) \
    KBI_BARE(github, "github", "out", "also Markdown to $GITHUB_STEP_SUMMARY", KBI_FILE | KBI_RARE) \
    KBI_X(load, "load", "FILE...", "compare", "show records, or with --env what differs; nothing runs", const char**, \
        kbi_take_load, KBI_ANY, KBI_MORE | KBI_REPEATS | KBI_APART | KBI_IN_LOAD) \
    KBI_X(save_baseline, "save-baseline", "NAME", "compare", "save this run's records as .kbench/NAME.json", \
        const char*, kbi_take_save_baseline, KBI_ANY, KBI_MEASURES) \
    KBI_TEXT(baseline, "baseline", "NAME|FILE", "compare", "compare with earlier records; exit codes 3, 4", \
        KBI_MEASURES | KBI_IN_LOAD) \
    KBI_X(compare, "compare", "A B", "compare", "what changed from A to B; nothing runs", kbi_two, kbi_take_pair, \
        KBI_ANY, KBI_APART | KBI_IN_COMPARE | KBI_RARE) \
    KBI_TEXT(history, "history", "FILE", "compare", "append this run; show trends; estimate noise", \
        KBI_MEASURES | KBI_IN_SHOWN | KBI_RARE) \
    KBI_SHARE(threshold, "threshold", "compare", "a larger slowdown is a regression (default 5 %)", 0, 1000, \
      KBI_ALWAYS | KBI_RARE) \
    KBI_SHARE(memory_threshold, "memory-threshold", "compare", "allowed growth of peak memory (default 10 %)", \
        0, 1000, KBI_ALWAYS | KBI_RARE) \
    KBI_X(alpha, "alpha", "P", "compare", "probability of any false alarm (default 0.05)", \
        double, kbi_take_alpha, KBI_ANY, KBI_ALWAYS | KBI_RARE) \
    KBI_SHARE(noise, "noise", "compare", "assumed difference between processes (default 3 %)", 0, 1000, \
        KBI_IN_SHOWN | KBI_RARE) \
    KBI_WORD(fail_on, "fail-on", "WHAT", "compare", "fail on: regress (default), change, noise or never", \
        "regress,change,noise,never", KBI_ALWAYS | KBI_RARE) \
    KBI_BARE(ignore_env, "ignore-env", "compare", "also compare runs of different machines", \
        KBI_IN_SHOWN | KBI_RARE) \
    KBI_LIST(goal, "goal", "GOAL", "compare", "layernorm:gpu_efficiency>=80; repeatable", \
        KBI_REPEATS | KBI_MEASURES | KBI_IN_SHOWN | KBI_RARE) \
    KBI_LIST(race, "race", "OLD NEW...", "compare", "compare programs, with the options after --", \
        KBI_MORE | KBI_APART | KBI_IN_RACE | KBI_REST) \
    KBI_WORD(benchmark_out_format, "benchmark_out_format", "json", NULL, NULL, "json", \
        KBI_IN_LOAD) \
    KBI_NUMBER(benchmark_repetitions, "benchmark_repetitions", NULL, NULL, 1000000, \
        KBI_IN_LOAD) \
    KBI_WORD(benchmark_display_aggregates_only, "benchmark_display_aggregates_only", "true", NULL, NULL, \
        "true", KBI_IN_LOAD)
// clang-format on

enum kbi_report_id {
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) KBI_REPORT_##id,
    KBI_REPORT_OPTIONS
#undef KBI_X
        KBI_REPORT_COUNT
};

typedef struct kbi_report_values {
    bool on[KBI_REPORT_COUNT];
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) type id;
    KBI_REPORT_OPTIONS
#undef KBI_X
    int n_load;
} kbi_report_values;
static kbi_report_values kbi_wanted;

static bool kbi_take_pair(const kb_option* option, void* values, const char* value) {
    const char** pair = (const char**)kbi_option_field(option, values);
    pair[pair[0] != NULL] = value;
    return true;
}

static bool kbi_take_alpha(const kb_option* option, void* values, const char* value) {
    char* end;
    double x = kbi_real_of(value, &end);
    *(double*)kbi_option_field(option, values) = x;
    if (end != value && !*end && x >= 1e-6 && x <= 0.5) return true;
    return kbi_error("--alpha takes the probability of a false alarm, from 0.000001 to 0.5, not '%s'", value), false;
}

static bool kbi_take_save_baseline(const kb_option* option, void* values, const char* value) {
    kbi_take_text(option, values, value);
    if (*value && *value != '.' && strlen(value) < 100 && kbi_only_letters(value, "._+-")) return true;
    kbi_error("--save-baseline takes a name of letters, digits, . _ + and -, not '%s'; the file is .kbench/NAME.json",
              value);
    return false;
}

static bool kbi_take_load(const kb_option* option, void* values, const char* value) {
    kbi_report_values* v = (kbi_report_values*)values;
    if (!*value) return kbi_error("--%s needs the name of a file; the given name is empty", option->name), false;
    v->load = KBI_GROW((void*)v->load, const char*, v->n_load + 1);
    v->load[v->n_load++] = value;
    return true;
}

static const kb_option kbi_report_rows[] = {
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) \
    { name, argument, group, help, read, offsetof(kbi_report_values, id), limits, rules },
    KBI_REPORT_OPTIONS
#undef KBI_X
};

static void kbi_report_start(void) {
    KBENCH_FREE((void*)kbi_wanted.load);
    memset(&kbi_wanted, 0, sizeof kbi_wanted);
    kbi_wanted.threshold = kbi_wanted.alpha = 0.05;
    kbi_wanted.memory_threshold = 0.1;
    kbi_wanted.noise = 0.03;
}

// Rejects options that have no effect with --race, --load or --compare, because no benchmark of this program runs.
static bool kbi_options_beside(const kbi_options* o) {
    const kb_option* option;
    for (int k = 0; (option = kbi_option_at(k)) != NULL; k++) {
        const char* why = NULL;
        if (!kbi_option_given(o, k)) continue;
        if (kbi_wanted.on[KBI_REPORT_race] && !(option->rules & KBI_IN_RACE))
            why = "--race runs other programs and does not take --%s. Write options for these programs after --";
        else if (kbi_wanted.on[KBI_REPORT_load] && !(option->rules & KBI_IN_LOAD))
            why = "--load shows records and runs nothing, so --%s has no effect. Leave out either option.";
        else if (kbi_wanted.on[KBI_REPORT_compare] && !(option->rules & KBI_IN_COMPARE))
            why = "--compare shows what changed and runs nothing, so --%s has no effect. Leave out either option.";
        if (why) return kbi_error(why, option->name), false;
    }
    return true;
}

static bool kbi_options_gate_agree(void) {
    static const int of_times[] = { KBI_REPORT_threshold, KBI_REPORT_memory_threshold, KBI_REPORT_alpha };
    bool files = kbi_wanted.baseline || kbi_wanted.compare[0], any = files || kbi_wanted.race.n;
    for (int i = 0; i < KBI_COUNT(of_times) && !any; i++)
        if (kbi_wanted.on[of_times[i]])
            return kbi_error("--%s: there is nothing to compare with; add --baseline, --compare or --race",
                             kbi_report_rows[of_times[i]].name),
                   false;
    if (kbi_wanted.on[KBI_REPORT_noise] && !files)
        return kbi_error("--noise: there is nothing to compare with; add --baseline or --compare"), false;
    if (kbi_wanted.on[KBI_REPORT_ignore_env] && !files && !kbi_wanted.n_load)
        return kbi_error("--ignore-env: there is nothing to compare with; add --baseline, --compare or --load"),
               false;
    if (kbi_wanted.fail_on && !any && !kbi_wanted.goal.n)
        return kbi_error("--fail-on: there is nothing that can fail; add --baseline, --compare, --race or --goal"),
               false;
    if (kbi_wanted.race.n == 1) return kbi_error("--race takes two or more programs, the old one first"), false;
    if (kbi_wanted.svg && !kbi_wanted.plot)
        return kbi_error("--svg needs --plot KIND (--help all lists them)"), false;
    if (!kbi_wanted.svg && (kbi_wanted.plot || kbi_wanted.where.n))
        return kbi_error("--%s describes a figure; add --svg FILE", kbi_wanted.plot ? "plot" : "where"), false;
    return true;
}

static bool kbi_report_agree(void) {
    const kbi_options* o = kbi_options_now;
    int64_t processes = kbi_wanted.benchmark_repetitions;
    if (kbi_wanted.compare[0] && !kbi_wanted.compare[1])
        return kbi_error("--compare takes two names or files, the older one first"), false;
    if (!kbi_options_beside(o) || !kbi_options_gate_agree()) return false;
    if (kbi_wanted.on[KBI_REPORT_resume] && (!o->jsonl || kbi_is(o->jsonl, "-")))
        return kbi_error("--resume needs --jsonl FILE with the records of the run to continue"), false;
    if (processes && processes != o->procs && !kbi_wanted.n_load)
        kbi_warn("--benchmark_repetitions %lld has no effect. A repetition is a process; --procs sets the number "
                 "of processes (%lld).",
                 (long long)processes, (long long)o->procs);
    return true;
}

/*-----------------------------------------------------------------
  >>parse       a JSON parser: strings, numbers, lists; it accepts untrusted input.
-----------------------------------------------------------------*/

enum {
    KBI_READ_TEXT = 1 << 20, // longest string, in bytes
    KBI_READ_NUMBER = 100,
    KBI_READ_DEPTH = 32 // deepest nesting of lists and objects in the value of an unknown key
};

typedef struct kbi_records {
    kb_result* of;           // the arena owns the texts, parameters and samples of the records
    int64_t n, size;
    kbi_arena arena;
    kbi_map texts, cases; // texts: all texts so far; cases: first record of each (case, run, device)
    int64_t replaced;     // number of records that replaced a copy of the same measurement
    int64_t twice;        // records with the run and name of another record, but with other values
} kbi_records;

typedef struct kbi_reader {
    const char* path;       // name of the file in messages; NULL: print no messages
    int64_t line;
    const char *at, *end;
    bool lines, torn;    // lines: one record per line; torn: the text ends in the middle of a record
    bool newer, strange; // newer: warned about a later schema; strange: warned about unknown flags
    kbi_text token;
    kbi_records* to;
    kb_result blank;
    double* values;
    int64_t values_size;
} kbi_reader;

// --- numbers ---

typedef struct kbi_scanned { // a number of JSON
    double x;
    int64_t i;
    bool whole, fits; // whole: no decimal point or exponent; fits: i holds the exact value
} kbi_scanned;

KBI_SLOW_END
// Returns whether a JSON number begins at s. Sets *end to the end of the number, or to the first invalid byte. The
// text ends with a zero byte.
static bool kbi_scan_end(const char* s, const char** end, bool* whole) {
    static const char digits[] = "0123456789";
    const char *p = s + (*s == '-'), *first = p;
    p += strspn(p, digits);
    bool good = p > first && (p == first + 1 || *first != '0');
    *whole = *p != '.' && (*p | 32) != 'e';
    if (*p == '.' && good) {
        size_t n = strspn(++p, digits);
        p += n;
        good = n > 0;
    }
    if ((*p | 32) == 'e' && good) {
        p += 1 + (p[1] == '-' || p[1] == '+');
        size_t n = strspn(p, digits);
        p += n;
        good = n > 0;
    }
    *end = p;
    return good;
}

static bool kbi_scan(const char* s, kbi_scanned* out, const char** end) {
    char* stop;
    if (!kbi_scan_end(s, end, &out->whole)) return false;
    out->x = kbi_real_of(s, &stop);
    errno = 0;
    out->i = strtoll(s, NULL, 10);
    out->fits = errno == 0 && out->i != KB_NONE;
    if (!out->fits) out->i = 0;
    return true;
}

// --- bytes ---

static void kbi_reader_text(kbi_reader* r, const char* s, size_t n) {
    memset(r, 0, sizeof *r);
    r->at = s;
    r->end = s + n;
}

// next byte; -1: end of the text
static inline int kbi_peek(const kbi_reader* r) { return r->at < r->end ? (unsigned char)*r->at : -1; }

// Reports a syntax error and returns false. If the line or file ends at the error, the record is torn: incomplete,
// but not wrong. Zero bytes, which a crash may leave, count as the end of the file.
KBI_PRINTF(2, 3) static bool kbi_reader_fail(kbi_reader* r, const char* format, ...) {
    char what[200];
    int c = kbi_peek(r);
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    r->torn = c <= 0 || (r->lines && c == '\n');
    if (!r->path || (r->torn && r->lines)) return false;
    if (r->torn)
        kbi_error("%s:%lld: the file ends in the middle of a record. Finished records are in the run's --jsonl "
                  "file, if it wrote one.",
                  r->path, (long long)r->line);
    else if (c > 0x20 && c < 0x7f)
        kbi_error("%s:%lld: %s, not '%c'. This file was not written by --json or --jsonl, or it was changed.",
                  r->path, (long long)r->line, what, c);
    else
        kbi_error("%s:%lld: %s; found byte 0x%02x. This file was not written by --json or --jsonl, or it was changed.",
                  r->path, (long long)r->line, what, (unsigned)c);
    return false;
}

// Prints an error for a value that is valid JSON but not valid in a record; returns false.
KBI_PRINTF(2, 3) static bool kbi_reader_wrong(kbi_reader* r, const char* format, ...) {
    char what[300];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    r->torn = false;
    if (r->path) kbi_error("%s:%lld: %s", r->path, (long long)r->line, what);
    return false;
}

// Skips white space and returns the next byte. If the file has one record per line, the line end does not count as
// white space.
static int kbi_reader_space(kbi_reader* r, bool inside) {
    for (;; r->at++) {
        int c = kbi_peek(r);
        if (c == '\n' && !(inside && r->lines))
            r->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return c;
    }
}

static bool kbi_reader_hex(kbi_reader* r, unsigned* out) {
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int c = kbi_peek(r);
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (c < 0 || digit < 0) return kbi_reader_fail(r, "four hexadecimal digits must follow \\u");
        *out = 16 * *out + (unsigned)digit;
    }
    return true;
}

static void kbi_reader_put(kbi_text* t, unsigned c) { // appends c as UTF-8, or U+FFFD if UTF-8 cannot encode c
    char s[4];
    size_t n = 0;
    if (c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff) c = 0xfffd;
    if (c < 0x80)
        s[n++] = (char)c;
    else {
        if (c >= 0x10000) s[n++] = (char)(0xf0 | c >> 18), s[n++] = (char)(0x80 | (c >> 12 & 63));
        if (c >= 0x800 && c < 0x10000) s[n++] = (char)(0xe0 | c >> 12);
        if (c >= 0x800) s[n++] = (char)(0x80 | (c >> 6 & 63));
        if (c < 0x800) s[n++] = (char)(0xc0 | c >> 6);
        s[n++] = (char)(0x80 | (c & 63));
    }
    kbi_put(t, s, n);
}

static bool kbi_reader_escape(kbi_reader* r) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = kbi_peek(r);
    const char* at = c > 0 ? strchr(from, c) : NULL;
    unsigned first, second;
    if (at) return kbi_put(&r->token, &to[at - from], 1), r->at++, true;
    if (c != 'u') return kbi_reader_fail(r, "the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u");
    r->at++;
    if (!kbi_reader_hex(r, &first)) return false;
    while (first >= 0xd800 && first < 0xdc00 && kbi_peek(r) == '\\') { // high surrogate
        r->at++;
        if (kbi_peek(r) != 'u') return kbi_reader_put(&r->token, first), kbi_reader_escape(r);
        r->at++;
        if (!kbi_reader_hex(r, &second)) return false;
        if (second >= 0xdc00 && second < 0xe000)
            return kbi_reader_put(&r->token, 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)), true;
        kbi_reader_put(&r->token, first);
        first = second;
    }
    return kbi_reader_put(&r->token, first), true;
}

static bool kbi_read_text(kbi_reader* r) {
    bool high = false;
    r->token.n = 0;
    kbi_put(&r->token, "", 0);
    if (kbi_peek(r) != '"') return kbi_reader_fail(r, "a string is expected here");
    for (r->at++;;) {
        int c = kbi_peek(r);
        const char* p = r->at;
        while (p < r->end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\') high |= (*p & 0x80) != 0, p++;
        kbi_put(&r->token, r->at, (size_t)(p - r->at));
        if (p > r->at) c = 0x20;
        r->at += p - r->at;
        if (r->token.n > KBI_READ_TEXT)
            return kbi_reader_wrong(r, "a string is longer than 1 MiB; no record has "
                                       "such a string");
        if (c == '"' && ++r->at) break;
        if (c == '\\' && (++r->at, !kbi_reader_escape(r))) return false;
        if (c < 0x20) return kbi_reader_fail(r, "a string must end with a quotation mark on its line");
    }
    const char *p = r->token.s, *end = p + r->token.n;
    unsigned code;
    for (int n = 1; high && n && p < end; p += n) n = kbi_utf8(p, &code);
    return !high || p == end ||
           kbi_reader_wrong(r, "a string is not UTF-8: the file was damaged, or written by another program");
}

static bool kbi_read_number(kbi_reader* r, kbi_scanned* out) {
    const char *begin, *end;
    bool good = kbi_scan(begin = r->at, out, &end);
    r->at += end - begin;
    if (!good) return kbi_reader_fail(r, "a number is expected here");
    if (end - begin > KBI_READ_NUMBER)
        return kbi_reader_wrong(r, "a number has more than %d characters; no record has such a number",
                                (int)KBI_READ_NUMBER);
    return kbi_finite(out->x) || kbi_reader_wrong(r, "%.*s is too large for a number", (int)(end - begin), begin);
}

static bool kbi_read_word(kbi_reader* r, const char* word) {
    for (const char* p = word; *p; p++, r->at++)
        if (kbi_peek(r) != (unsigned char)*p) return kbi_reader_fail(r, "%s is expected here", word);
    return true;
}

// --- lists and objects ---

// Returns 1 if an item follows, 0 at the end of the list, -1 on an error. n: number of items read so far.
static int kbi_read_item(kbi_reader* r, char close, int64_t n) {
    int c = kbi_reader_space(r, true);
    if (c == close) return r->at++, 0;
    if (n && c != ',') return kbi_reader_fail(r, "a comma or %c is expected here", close), -1;
    if (n) r->at++;
    return n ? (kbi_reader_space(r, true), 1) : 1;
}

static bool kbi_read_key(kbi_reader* r) {
    if (!kbi_read_text(r)) return false;
    if (kbi_reader_space(r, true) != ':') return kbi_reader_fail(r, "a colon must follow \"%.60s\"", r->token.s);
    r->at++;
    return kbi_reader_space(r, true), true;
}
KBI_SLOW_BEGIN

static bool kbi_read_any(kbi_reader* r, int depth) {
    int c = kbi_peek(r), more;
    kbi_scanned number;
    if (c == '"') return kbi_read_text(r);
    if (c == 'n') return kbi_read_word(r, "null");
    if (c == 't' || c == 'f') return kbi_read_word(r, c == 't' ? "true" : "false");
    if (c != '[' && c != '{') return kbi_read_number(r, &number);
    if (depth == KBI_READ_DEPTH)
        return kbi_reader_wrong(r, "lists are nested more than %d deep", (int)KBI_READ_DEPTH);
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, c == '[' ? ']' : '}', n)) > 0; n++) {
        if (c == '{' && !kbi_read_key(r)) return false;
        if (!kbi_read_any(r, depth + 1)) return false;
    }
    return more == 0;
}

/*-----------------------------------------------------------------
  >>reader      records from JSON objects.
-----------------------------------------------------------------*/

enum { KBI_READ_PARAMS = 256 };

KBI_SLOW_END
// Returns a copy of a text that the records own. Equal texts are stored once, because records share many texts.
static const char* kbi_records_text(kbi_records* to, const char* s, size_t n) {
    uint64_t key = kbi_hash(14695981039346656037u, s);
    kbi_mapped* slot = kbi_map_find(&to->texts, key);
    if (slot->key && strcmp((const char*)slot->at, s) == 0) return (const char*)slot->at;
    const char* kept = kbi_arena_text_n(&to->arena, s, n);
    if (!slot->key) kbi_map_take(&to->texts, slot, key, (intptr_t)kept);
    return kept;
}
KBI_SLOW_BEGIN

static bool kbi_read_params(kbi_reader* r, const kbi_key* key, kbi_field_params* out) {
    kb_param list[KBI_READ_PARAMS];
    int64_t n = 0;
    int more;
    r->at++;
    for (; (more = kbi_read_item(r, '}', n)) > 0; n++) {
        kb_param* p = &list[n];
        kbi_scanned number;
        if (n == KBI_READ_PARAMS)
            return kbi_reader_wrong(r, "%s: more than %d values", key->name, (int)KBI_READ_PARAMS);
        memset(p, 0, sizeof *p);
        if (!kbi_read_key(r)) return false;
        p->name = kbi_records_text(r->to, r->token.s, r->token.n);
        for (int64_t i = 0; i < n; i++)
            if (kbi_is(list[i].name, p->name))
                return kbi_reader_wrong(r, "%s: %.60s occurs twice", key->name, p->name);
        p->type = KB_AXIS_REALS;
        p->r = NAN;
        int c = kbi_peek(r);
        if (c == '"') {
            if (!kbi_read_text(r)) return false;
            p->type = KB_AXIS_STRINGS;
            p->s = kbi_records_text(r->to, r->token.s, r->token.n);
        } else if (c == 'n') {
            if (!kbi_read_word(r, "null")) return false;
        } else {
            if (!kbi_read_number(r, &number)) return false;
            p->r = number.x;
            bool minus_zero = number.x == 0 && 1 / number.x < 0;
            if (number.whole && number.fits && !minus_zero) p->type = KB_AXIS_INTS, p->i = number.i;
        }
    }
    if (more < 0) return false;
    out->of = KBI_ARRAY(&r->to->arena, kb_param, n);
    if (n) memcpy((void*)out->of, list, sizeof(kb_param) * (size_t)n);
    out->n = n;
    return true;
}

KBI_SLOW_END
static bool kbi_read_samples(kbi_reader* r, kbi_field_samples* out) {
    int64_t n = 0;
    int more;
    kbi_scanned number;
    r->at++;
    for (; (more = kbi_read_item(r, ']', n)) > 0; n++) {
        if (n == r->values_size) {
            r->values_size = 2 * n + 64;
            r->values = KBI_GROW(r->values, double, r->values_size);
        }
        number.x = NAN;
        if (kbi_peek(r) == 'n' ? !kbi_read_word(r, "null") : !kbi_read_number(r, &number)) return false;
        r->values[n] = number.x;
    }
    if (more < 0) return false;
    double* values = KBI_ARRAY(&r->to->arena, double, n);
    if (n) memcpy(values, r->values, sizeof(double) * (size_t)n);
    out->of = values;
    out->n = n;
    return true;
}
KBI_SLOW_BEGIN

static bool kbi_read_flags(kbi_reader* r, kbi_field_flags* out) {
    int more;
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, ']', n)) > 0; n++) {
        if (!kbi_read_text(r)) return false;
        int f = 0;
        while (f < KB_FLAG_COUNT && !kbi_is(kb_flag_name((kb_flag)f), r->token.s)) f++;
        if (f < KB_FLAG_COUNT)
            *out |= (uint64_t)1 << f;
        else if (!r->strange)
            kbi_warn("%s:%lld: this version does not know the flag %.40s; unknown flags are left out", r->path,
                     (long long)r->line, r->token.s),
                r->strange = true;
    }
    return more == 0;
}

static bool kbi_read_status(kbi_reader* r, kb_status* out) {
    if (!kbi_read_text(r)) return false;
    for (int s = KB_OK; s <= KB_SKIPPED; s++)
        if (kbi_is(kbi_status_name((kb_status)s), r->token.s)) return *out = (kb_status)s, true;
    return kbi_reader_wrong(r, "status must be ok, failed or skipped, not '%.40s'", r->token.s);
}

static bool kbi_read_verdict(kbi_reader* r, kb_verdict* out) {
    if (!kbi_read_text(r)) return false;
    for (int v = KB_FASTER; v <= KB_UNRESOLVED; v++)
        if (kbi_is(kbi_verdict_name((kb_verdict)v), r->token.s)) return *out = (kb_verdict)v, true;
    return kbi_reader_wrong(r, "verdict must be FASTER, SLOWER, EQUIVALENT or UNRESOLVED, not '%.40s'", r->token.s);
}

KBI_SLOW_END
static bool kbi_read_whole(kbi_reader* r, const kbi_key* key, int64_t* out) {
    kbi_scanned x;
    if (!kbi_read_number(r, &x)) return false;
    if (!x.whole) x.fits = fabs(x.x) < 9007199254740992.0;
    if (!x.whole && x.fits) x.i = (int64_t)x.x, x.fits = (double)x.i == x.x;
    if (!x.fits || x.i == KB_NONE)
        return kbi_reader_wrong(r, "%s must be a whole number of at most 63 bits, not %.17g", key->name, x.x);
    return *out = x.i, true;
}

// Reads the value of a key into its field. The caller has set the field to its empty value, which is kept if the
// JSON value is null.
static bool kbi_read_field(kbi_reader* r, const kbi_key* key, void* field) {
    static const char digits[] = "-0123456789";
    static const struct {
        const char *begins, *wanted;
    } kinds[] = { { "\"", "a string" },       { digits, "a number" }, { digits, "a whole number" },
                  { "tf", "true or false" },  { "{", "an object" },   { "[", "a list of numbers" },
                  { "[", "a list of flags" }, { "\"", "a string" },   { "\"", "a string" } };
    KBI_STATIC_ASSERT(KBI_COUNT(kinds) == KBI_KIND_verdict + 1, "kinds[] needs one row for each KBI_KIND");
    int c = kbi_peek(r);
    kbi_scanned number;
    if (c == 'n') return kbi_read_word(r, "null");
    if (c <= 0 || !strchr(kinds[key->kind].begins, c))
        return kbi_reader_fail(r, "%s must be %s or null", key->name, kinds[key->kind].wanted);
    switch (key->kind) {
    case KBI_KIND_text:
        return kbi_read_text(r) && (*(kbi_field_text*)field = kbi_records_text(r->to, r->token.s, r->token.n), true);
    case KBI_KIND_real: return kbi_read_number(r, &number) && (*(kbi_field_real*)field = number.x, true);
    case KBI_KIND_whole: return kbi_read_whole(r, key, (kbi_field_whole*)field);
    case KBI_KIND_truth: *(kbi_field_truth*)field = c == 't'; return kbi_read_word(r, c == 't' ? "true" : "false");
    case KBI_KIND_params: return kbi_read_params(r, key, (kbi_field_params*)field);
    case KBI_KIND_samples: return kbi_read_samples(r, (kbi_field_samples*)field);
    case KBI_KIND_flags: return kbi_read_flags(r, (kbi_field_flags*)field);
    case KBI_KIND_status: return kbi_read_status(r, (kbi_field_status*)field);
    case KBI_KIND_verdict: return kbi_read_verdict(r, (kbi_field_verdict*)field);
    }
    return false;
}

// Returns the index of a key in kbi_keys, -1 if it is unknown. Files list keys in the order of kbi_keys, so the
// search starts at index `next`.
static int kbi_read_key_place(const char* name, int next) {
    if (next < KBI_COUNT(kbi_keys) && strcmp(kbi_keys[next].name, name) == 0) return next;
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++)
        if (strcmp(kbi_keys[i].name, name) == 0) return i;
    return -1;
}

// Reads a key of schemas 1 and 2: "mode" for cache and timer, "stage_shared" for "shared_buffers". Skips a key
// that no schema had.
static bool kbi_read_older(kbi_reader* r, kb_result* out) {
    if (kbi_is(r->token.s, "stage_shared"))
        return kbi_read_field(r, kbi_key_named("shared_buffers"), &out->shared_buffers);
    if (!kbi_is(r->token.s, "mode")) return kbi_read_any(r, 0);
    const char* mode = NULL;
    if (!kbi_read_field(r, kbi_key_named("cache"), &mode)) return false;
    bool other = !mode || kbi_is(mode, "cupti") || kbi_is(mode, "wall");
    if (!out->timer) out->timer = other ? mode : "events";
    if (!out->cache && !other) out->cache = mode;
    return true;
}

static bool kbi_read_keys(kbi_reader* r, kb_result* out) {
    bool seen[KBI_COUNT(kbi_keys)] = { false };
    int at = -1, more;
    if (kbi_peek(r) != '{') return kbi_reader_fail(r, "a record must begin with {");
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, '}', n)) > 0; n++) {
        if (!kbi_read_key(r)) return false;
        int key = kbi_read_key_place(r->token.s, at + 1);
        if (key >= 0 && seen[key]) return kbi_reader_wrong(r, "%s occurs twice in a record", kbi_keys[key].name);
        if (key < 0 ? !kbi_read_older(r, out) : !kbi_read_field(r, &kbi_keys[key], (char*)out + kbi_keys[key].offset))
            return false;
        if (key >= 0) seen[at = key] = true;
    }
    return more == 0;
}

static bool kbi_read_record(kbi_reader* r, kb_result* out) {
    *out = r->blank;
    if (!kbi_read_keys(r, out)) return false;
    if (!out->name || !out->operation)
        return kbi_reader_wrong(
            r, "a record has no %s. --load reads files that --json or --jsonl wrote, and no other format",
            out->name ? "operation" : "name");
    if (out->schema > KBI_SCHEMA && !r->newer)
        kbi_warn(
            "%s:%lld: a later version wrote this file (schema %lld, here %d). Keys that this version does not know "
            "are left out.",
            r->path, (long long)r->line, (long long)out->schema, KBI_SCHEMA),
            r->newer = true;
    if (out->schema != KB_NONE && out->schema < KBI_SCHEMA) out->schema = KBI_SCHEMA;
    return true;
}
KBI_SLOW_BEGIN

// Returns whether two records with the same name, device and run come from one measurement. A measurement is read
// twice if a file is read twice, or if both the --json and the --jsonl file of a run are read.
static bool kbi_same_measurement(const kb_result* a, const kb_result* b) {
    return a->status == b->status && memcmp(&a->time_ms, &b->time_ms, sizeof a->time_ms) == 0 &&
           memcmp(&a->wall_ms, &b->wall_ms, sizeof a->wall_ms) == 0;
}

static void kbi_records_add(kbi_records* to, const kb_result* r) {
    char device[32];
    snprintf(device, sizeof device, "|%lld|", (long long)r->device);
    uint64_t key = kbi_hash(kbi_hash(kbi_hash(14695981039346656037u, r->run_id ? r->run_id : ""), device), r->name);
    kbi_mapped* slot = kbi_map_find(&to->cases, key);
    if (slot->key && r->run_id) {
        kb_result* before = &to->of[slot->at];
        if (kbi_is(before->run_id, r->run_id) && before->device == r->device && kbi_is(before->name, r->name)) {
            if (kbi_same_measurement(before, r)) {
                *before = *r;
                to->replaced++;
                return;
            }
            if (to->twice++ < 8)
                kbi_warn("run %s has two different records of %s: two benchmarks had the same name. Both records "
                         "are kept and compared in their order. Rename one benchmark.",
                         r->run_id, r->name);
        }
    }
    if (to->n == to->size) {
        to->size = 2 * to->size + 64;
        to->of = KBI_GROW(to->of, kb_result, to->size);
    }
    if (!slot->key && r->run_id) kbi_map_take(&to->cases, slot, key, (intptr_t)to->n);
    to->of[to->n++] = *r;
}

static void kbi_records_free(kbi_records* r) {
    KBENCH_FREE(r->of);
    KBENCH_FREE(r->texts.slots);
    KBENCH_FREE(r->cases.slots);
    kbi_arena_free(&r->arena);
    memset(r, 0, sizeof *r);
}

static void kbi_reader_begin(kbi_reader* r, const char* path, int64_t line, kbi_records* to, const char* s,
                             size_t n) {
    kbi_reader_text(r, s, n);
    r->path = path;
    r->line = line;
    r->to = to;
    kbi_result_clear(&r->blank);
    KBENCH_FREE(r->blank.owned); // a record from a file owns no memory: its texts are in the arena
    r->blank.owned = NULL;
}

static void kbi_reader_end(kbi_reader* r) {
    KBENCH_FREE(r->values);
    kbi_text_free(&r->token);
}

/*-----------------------------------------------------------------
  >>reading     files of records: an array, one record per line, or the records inside a page.
-----------------------------------------------------------------*/

// Reads one record per line. A torn line is skipped: the program was killed while it wrote the line, or the disk
// was full.
static bool kbi_read_lines(kbi_reader* r) {
    kb_result record;
    int c;
    for (r->lines = true; (c = kbi_reader_space(r, false)) >= 0;) {
        int64_t line = r->line;
        bool good = kbi_read_record(r, &record);
        if (!good && !r->torn) return false;
        if (good && (c = kbi_reader_space(r, true)) >= 0 && c != '\n')
            return kbi_reader_fail(r, "nothing may follow a record on its line");
        if (good) kbi_records_add(r->to, &record);
        if (good) continue;
        kbi_warn("%s:%lld: this line ends in the middle of a record and is left out. The run ended while it wrote "
                 "this case.",
                 r->path, (long long)line);
        for (; (c = kbi_peek(r)) >= 0 && c != '\n'; r->at++) {}
    }
    return true;
}

static bool kbi_read_array(kbi_reader* r) {
    kb_result record;
    int more;
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, ']', n)) > 0; n++) {
        if (!kbi_read_record(r, &record)) return false;
        kbi_records_add(r->to, &record);
    }
    return more == 0;
}

static bool kbi_read_this(kbi_reader* r, const char* text) { // skips text, in which ' ' means any white space
    for (; *text; text++) {
        if (*text == ' ') {
            kbi_reader_space(r, false);
            continue;
        }
        if (kbi_peek(r) != (unsigned char)*text) return kbi_reader_fail(r, "\"%s\" is expected here", text);
        r->at++;
    }
    return true;
}

// Reads the records in a page of --html. Keys with the same value in all records are stored once, before the
// records. Quotation marks of texts are escaped, so only the data can contain `mark`.
static bool kbi_read_page(kbi_reader* r) {
    static const char mark[] = "id=\"kbench-data\">";
    size_t n = 0;
    int c;
    while (n < sizeof mark - 1 && (c = kbi_peek(r)) >= 0) {
        r->line += c == '\n';
        n = c == mark[n] ? n + 1 : (size_t)(c == mark[0]);
        r->at++;
    }
    if (n < sizeof mark - 1)
        return kbi_reader_wrong(r, "this page has no records. --load reads pages that --html wrote");
    if (!kbi_read_this(r, " { \"all\" :") || kbi_reader_space(r, false) < 0 || !kbi_read_keys(r, &r->blank) ||
        !kbi_read_this(r, " , \"records\" :"))
        return false;
    if (kbi_reader_space(r, false) != '[') return kbi_reader_fail(r, "records must begin with [");
    return kbi_read_array(r) && kbi_read_this(r, " } </script>");
}

static bool kbi_read_open(kbi_reader* r) {
    int c = kbi_reader_space(r, false);
    if (c == 0xef) { // the byte order mark of UTF-8
        if (!kbi_read_word(r, "\xef\xbb\xbf")) return false;
        c = kbi_reader_space(r, false);
    }
    if (c == '[')
        return kbi_read_array(r) &&
               (kbi_reader_space(r, false) < 0 || kbi_reader_fail(r, "nothing may follow the records"));
    if (c == '<') return kbi_read_page(r);
    if (c < 0 || c == '{' || c == 0) return kbi_read_lines(r);
    return kbi_reader_fail(r, "records must begin with [ or {");
}

static bool kbi_read_records(kbi_records* to, const char* path) {
    kbi_reader r;
    kbi_text all = KBI_BLANK;
    struct stat about;
    bool standard = kbi_is(path, "-");
    int file = standard ? 0 : kbi_open_input(path, true);
    if (file < 0) return kbi_error("cannot read %s: %s", path, kbi_why_not_open(errno)), false;
    bool known = fstat(file, &about) == 0, fifo = known && !standard && S_ISFIFO(about.st_mode);
    kbi_reserve(&all, known && S_ISREG(about.st_mode) ? (size_t)about.st_size : 0);
    kbi_put(&all, "", 0);
    bool good = kbi_read_file(file, &all, SIZE_MAX);
    for (int i = 0; good && fifo && !all.n && i < 20; i++) { // the writer may not have opened the pipe yet
        kbi_readable(-1, 100);
        good = kbi_read_file(file, &all, SIZE_MAX);
    }
    if (!good)
        kbi_error("reading %s failed: %s", standard ? "stdin" : path, strerror(errno));
    else if (fifo && !all.n)
        kbi_error("cannot read %s: no program writes to this pipe", path), good = false;
    if (!standard) close(file);
    kbi_reader_begin(&r, standard ? "stdin" : path, 1, to, all.s, all.n);
    good = good && kbi_read_open(&r);
    kbi_reader_end(&r);
    kbi_text_free(&all);
    return good;
}

/*-----------------------------------------------------------------
  >>changes     pairs the records of two runs; the data types of changes. Pure functions.
-----------------------------------------------------------------*/

typedef struct kbi_rules { // limits for judging changes, as fractions: 0.05 is 5 %
    double threshold, memory_threshold, alpha;
    double noise; // widens an interval by this fraction, unless the scatter between runs is known
} kbi_rules;

typedef enum kbi_evidence {
    KBI_EVIDENCE_NONE,
    KBI_EVIDENCE_SAMPLES,   // the intervals of both records, widened by kbi_rules.noise
    KBI_EVIDENCE_HISTORY,   // the scatter of earlier runs in the --history file
    KBI_EVIDENCE_PROCESSES, // the medians of several processes of a run (--procs)
    KBI_EVIDENCE_ROUNDS     // the ratios of the interleaved rounds of --race
} kbi_evidence;

typedef struct kbi_change {          // the change of one case; times are compared by log(new time / old time)
    const kb_result *before, *after; // before is NULL for a new case, after is NULL for a removed case
    kbi_evidence evidence;
    double log, se, df, wide, lo, hi; // log change, standard error, degrees of freedom, widening, interval
    double below, above;      // extensions of the interval, because other programs disturbed the new, the old run
    double run_sd, run_df;    // standard deviation of a run and its degrees of freedom (--history); NAN: unknown
    double p;                 // p-value of "the change is within the threshold", adjusted (Holm 1979)
    double memory;            // new memory / old memory; NAN: one of them is unknown
    kb_verdict verdict;       // SLOWER, FASTER: than the old run; EQUIVALENT: within the threshold
    bool regressed, improved; // significantly slower, or faster, by more than the threshold
    bool open;                // it is uncertain whether the change exceeds the threshold
    bool more, less;          // memory grew or shrank by more than the threshold
    bool apart;               // not comparable: machine, cache state or timer differ
} kbi_change;

typedef struct kbi_changes {
    kbi_change* of;
    int64_t n;
} kbi_changes;

typedef struct kbi_trend { // the times of one case in all runs of a --history file and the current run
    const kb_result* last;
    int64_t runs;
    double first, middle, now; // ms of the first run; median ms of all earlier runs; ms of the current run
    double sd, df;             // standard deviation of one run around the trend, and its degrees of freedom
    double slope;              // change of the log time per run (Theil 1950, Sen 1968)
    double p;                  // p-value of the hypothesis "no trend" (Mann 1945, Kendall 1975)
} kbi_trend;

typedef struct kbi_assessment {
    int64_t compared, regressed, improved, more, less, slower, faster, open, added, removed, broken, recovered, apart;
    int64_t unchecked; // cases whose output was verified before and is no longer checked
    int64_t evidence_counts[KBI_EVIDENCE_ROUNDS + 1];
    int64_t old_disturbed, new_disturbed; // open cases that other programs disturbed in each run
    double geomean; // geometric mean of new time / old time; NAN: no case was compared
    const kbi_change* worst;
} kbi_assessment;

typedef struct kbi_contrast {
    const char* name;
    const kb_result* before;
    int64_t n_before;
    kbi_changes changes;
    kbi_rules rules;
    kbi_assessment sum;
} kbi_contrast;

// --- pairs ---

typedef struct kbi_named {
    const kb_result* r;
    int64_t at, device, rank; // at: index in the input; rank: number of earlier records with the same name
} kbi_named;

static int kbi_order_named(const void* a, const void* b) {
    const kbi_named *x = (const kbi_named*)a, *y = (const kbi_named*)b;
    int name = strcmp(x->r->name ? x->r->name : "", y->r->name ? y->r->name : "");
    if (name) return name;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int kbi_order_at(const void* a, const void* b) {
    const kbi_named *x = (const kbi_named*)a, *y = (const kbi_named*)b;
    return (x->at > y->at) - (x->at < y->at);
}

// Sorts records by name and device. If several runs have records with the same name and device, only those of the
// last run are kept. Older versions allowed equal names within a run. Records with equal names are numbered in their
// order (`rank`), and records with equal numbers are paired. Returns the number of records kept.
static int64_t kbi_name_records(kbi_named* out, const kb_result* r, int64_t n) {
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i].r = &r[i];
        out[i].at = i;
        out[i].device = r[i].device == KB_NONE ? -1 : r[i].device;
    }
    qsort(out, (size_t)n, sizeof *out, kbi_order_named);
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first + 1;
             end < n && kbi_is(out[end].r->name, out[first].r->name) && out[end].device == out[first].device;)
            end++;
        const char* run = out[end - 1].r->run_id;
        for (int64_t i = first; i < end; i++) {
            if (i + 1 < end && !kbi_is(out[i].r->run_id, run)) continue;
            out[left] = out[i];
            out[left++].rank = 0;
        }
    }
    for (int64_t i = 1; i < left; i++)
        if (kbi_is(out[i].r->name, out[i - 1].r->name)) out[i].rank = out[i - 1].rank + 1;
    return left;
}

// Pairs the records that have the same case name in `before` and `after`. A case on several devices is paired in
// the order of the device numbers. The changes are in the order of the records in `after`; removed cases come
// last.
static kbi_changes kbi_pair_records(const kb_result* before, int64_t n, const kb_result* after, int64_t m) {
    kbi_named* x = KBI_GROW(NULL, kbi_named, n);
    kbi_named* y = KBI_GROW(NULL, kbi_named, m);
    kbi_changes c = { KBI_GROW(NULL, kbi_change, n + m), 0 };
    kbi_change* at = KBI_GROW(NULL, kbi_change, m);
    int64_t gone = 0, i = 0, j = 0;
    n = kbi_name_records(x, before, n);
    m = kbi_name_records(y, after, m);
    memset(c.of, 0, sizeof(kbi_change) * (size_t)(n + m));
    while (i < n || j < m) {
        const char *a = i < n ? x[i].r->name : NULL, *b = j < m ? y[j].r->name : NULL;
        int order = i == n ? 1 : j == m ? -1 : strcmp(a ? a : "", b ? b : "");
        if (!order) order = (x[i].rank > y[j].rank) - (x[i].rank < y[j].rank);
        if (order < 0) { // collects removed cases at the start of x; they are appended below
            x[gone++] = x[i++];
            continue;
        }
        memset(&at[j], 0, sizeof *at);
        at[j].before = order == 0 ? x[i++].r : NULL;
        at[j].after = y[j].r;
        y[j].device = j; // index into `at`, which stays valid when qsort reorders y
        j++;
    }
    qsort(y, (size_t)m, sizeof *y, kbi_order_at);
    qsort(x, (size_t)gone, sizeof *x, kbi_order_at);
    for (j = 0; j < m; j++) c.of[c.n++] = at[y[j].device];
    for (i = 0; i < gone; i++) c.of[c.n++].before = x[i].r;
    for (i = 0; i < c.n; i++) c.of[i].run_sd = c.of[i].run_df = (double)NAN;
    KBENCH_FREE(at);
    KBENCH_FREE(x);
    KBENCH_FREE(y);
    return c;
}

static bool kbi_has_time(const kb_result* r) {
    return r && r->status == KB_OK && kbi_finite(r->time_ms) && r->time_ms > 0;
}

static bool kbi_comparable(const kbi_change* c) {
    return !c->apart && kbi_has_time(c->before) && kbi_has_time(c->after);
}

// --- one change ---

static double kbi_memory_of(const kb_result* r, bool device) {
    if (device) return r->memory_bytes == KB_NONE ? (double)NAN : (double)r->memory_bytes;
    return r->host_memory_mb * 1048576;
}

static const char* kbi_severity(const kbi_change* c, double threshold) {
    double times = c->regressed ? expm1(c->log) / threshold : 0;
    if (c->more && kbi_finite(c->memory)) times = KBI_MAX(times, (c->memory - 1) / (2 * threshold));
    return times < 2 ? "minor" : times < 5 ? "moderate" : times < 20 ? "severe" : "critical";
}

/*-----------------------------------------------------------------
  >>differences the differences between two machines, and whether their times are comparable.
-----------------------------------------------------------------*/

typedef enum kbi_env_how { KBI_ENV_TOLD, KBI_ENV_OFF, KBI_ENV_MAJOR, KBI_ENV_BUILD } kbi_env_how;

// Effect of a difference in each key of two records. TOLD: any difference is printed, but the times are comparable.
// OFF: the times are not comparable if the values differ. MAJOR: the times are not comparable if the major versions
// differ. BUILD: the times are not comparable if optimisation or instrumentation differ. Of backend, GPU and driver,
// kbi_env_differs reports only the first that differs.
enum { KBI_ENV_DRIVER = 2 };
static const struct {
    const char *key, *words; // words: name of the key in messages
    kbi_env_how how;
} kbi_env_keys[] = { { "backend", "backend", KBI_ENV_OFF },
                     { "gpu", "GPU", KBI_ENV_OFF },
                     { "driver", "driver", KBI_ENV_MAJOR },
                     { "ecc", "ECC", KBI_ENV_OFF },
                     { "mig", "MIG", KBI_ENV_OFF },
                     { "cpu", "CPU", KBI_ENV_OFF },
                     { "cache", "cache", KBI_ENV_OFF },
                     { "timer", "timer", KBI_ENV_OFF },
                     { "build", "build", KBI_ENV_BUILD },
                     { "cuda", NULL, KBI_ENV_TOLD },
                     { "clocks_locked", NULL, KBI_ENV_TOLD },
                     { "cpus", NULL, KBI_ENV_TOLD },
                     { "cpu_governor", NULL, KBI_ENV_TOLD },
                     { "cpu_boost", NULL, KBI_ENV_TOLD },
                     { "host", NULL, KBI_ENV_TOLD },
                     { "kernel_version", NULL, KBI_ENV_TOLD },
                     { "kbench_version", NULL, KBI_ENV_TOLD },
                     { "seed", NULL, KBI_ENV_TOLD } };

// NULL: unknown
static const char* kbi_env_value(const kb_result* r, int key, char number[40]) {
    static const kbi_key* keys[32]; // cached, because searching the keys for each record is slow
    if (!keys[key]) keys[key] = kbi_key_named(kbi_env_keys[key].key);
    const kbi_key* k = keys[key];
    double x = kbi_field_number(r, k);
    const char* words = kbi_field_words(r, k);
    return words ? words : kbi_finite(x) ? kbi_number(x, number) : NULL;
}

// Returns how the benchmark's own file was built: "optimised", or "not optimised, instrumented (ASan)".
static const char* kbi_env_build(const char* build, char out[160]) {
    const char* kbench = strstr(build, "; kbench:");
    char own[300];
    snprintf(own, sizeof own, "%.*s", kbench ? (int)(kbench - build) : 299, build);
    const char* instruments = strstr(own, ", instrumented (");
    snprintf(out, 160, "%s%.*s", strstr(own, ", not optimised") ? "not optimised" : "optimised",
             instruments ? (int)KBI_MIN(strcspn(instruments, ")") + 1, (size_t)140) : 0,
             instruments ? instruments : "");
    return out;
}

// Returns whether two values of a key make times not comparable. If one value is unknown, the times count as
// comparable, except if only one record has a GPU.
static bool kbi_env_off(int key, const char* x, const char* y) {
    char one[160], other[160];
    if (!x || !y) return kbi_is(kbi_env_keys[key].key, "gpu") && x != y;
    switch (kbi_env_keys[key].how) {
    case KBI_ENV_TOLD: return false;
    case KBI_ENV_OFF: return strcmp(x, y) != 0;
    case KBI_ENV_MAJOR: return strcspn(x, ".") != strcspn(y, ".") || strncmp(x, y, strcspn(x, ".")) != 0;
    case KBI_ENV_BUILD: return !kbi_is(kbi_env_build(x, one), kbi_env_build(y, other));
    }
    return false;
}

// Appends the differences that prevent a comparison of times: "GPU (A; B), CPU (C; D)". Returns false if the times
// are comparable.
static bool kbi_env_differs(const kb_result* a, const kb_result* b, kbi_text* what) {
    size_t before = what->n;
    for (int i = 0; i < KBI_COUNT(kbi_env_keys); i++) {
        char one[160], other[160];
        if (kbi_env_keys[i].how == KBI_ENV_TOLD) continue;
        const char *x = kbi_env_value(a, i, one), *y = kbi_env_value(b, i, other);
        if (!kbi_env_off(i, x, y)) continue;
        bool build = kbi_env_keys[i].how == KBI_ENV_BUILD;
        kbi_putf(what, "%s%s (%s; %s)", what->n ? ", " : "", kbi_env_keys[i].words,
                 build ? kbi_env_build(x, one)
                 : x   ? x
                       : "none",
                 build ? kbi_env_build(y, other)
                 : y   ? y
                       : "none");
        if (i < KBI_ENV_DRIVER) i = KBI_ENV_DRIVER;
    }
    return what->n > before;
}

// --- all differences between two sets of records ---

typedef struct kbi_difference {
    const char *key, *before, *after;
    int64_t pairs;
    bool off;
} kbi_difference;

enum { KBI_DIFFERENCES = 64 };
typedef struct kbi_differences {
    kbi_difference of[KBI_DIFFERENCES];
    int n;
    int64_t pairs, left; // number of compared pairs; number of differences that did not fit into `of`
    kbi_arena texts;
} kbi_differences;

static void kbi_differences_put(kbi_differences* d, const char* key, const char* before, const char* after,
                                bool off) {
    for (int i = 0; i < d->n; i++) {
        kbi_difference* known = &d->of[i];
        if (kbi_is(known->key, key) && kbi_is(known->before, before) && kbi_is(known->after, after)) {
            known->pairs++;
            return;
        }
    }
    d->left += d->n == KBI_DIFFERENCES;
    if (d->n == KBI_DIFFERENCES) return;
    kbi_difference* row = &d->of[d->n++];
    row->key = kbi_arena_text(&d->texts, key);
    row->before = kbi_arena_text(&d->texts, before);
    row->after = kbi_arena_text(&d->texts, after);
    row->pairs = 1;
    row->off = off;
}

static const char* kbi_env_fact(const kb_param* p, char number[40]) {
    if (p->type == KB_AXIS_STRINGS) return p->s ? p->s : "";
    return kbi_number(p->type == KB_AXIS_INTS ? (double)p->i : p->r, number);
}

static void kbi_differences_add(kbi_differences* d, const kb_result* a, const kb_result* b) {
    char one[40], other[40];
    d->pairs++;
    for (int i = 0; i < KBI_COUNT(kbi_env_keys); i++) {
        const char *x = kbi_env_value(a, i, one), *y = kbi_env_value(b, i, other);
        bool off = kbi_env_off(i, x, y);
        if (off || (x && y && strcmp(x, y) != 0))
            kbi_differences_put(d, kbi_env_keys[i].key, x ? x : "none", y ? y : "none", off);
    }
    for (int64_t i = 0; i < a->environment.n; i++)
        for (int64_t k = 0; k < b->environment.n; k++) {
            const kb_param *p = &a->environment.of[i], *q = &b->environment.of[k];
            if (!kbi_is(p->name, q->name)) continue;
            const char *x = kbi_env_fact(p, one), *y = kbi_env_fact(q, other);
            if (strcmp(x, y) != 0) kbi_differences_put(d, p->name, x, y, false);
        }
}

// If `before` and `after` have no case in common, their first records are compared.
static void kbi_differences_of(kbi_differences* d, const kbi_changes* c) {
    const kb_result *before = NULL, *after = NULL;
    memset(d, 0, sizeof *d);
    for (int64_t i = 0; i < c->n; i++) {
        const kbi_change* one = &c->of[i];
        if (one->before && one->after) kbi_differences_add(d, one->before, one->after);
        if (!before) before = one->before;
        if (!after) after = one->after;
    }
    if (!d->pairs && before && after) kbi_differences_add(d, before, after);
}

/*-----------------------------------------------------------------
  >>compare     statistics of changes: intervals, verdicts, and trends over a history.
-----------------------------------------------------------------*/

static int kbi_order_reals(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double kbi_middle(double* x, int64_t n) { // the median; sorts x
    qsort(x, (size_t)n, sizeof *x, kbi_order_reals);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

// --- scatter between runs ---

enum {
    KBI_ALIKE = 96, // number of cases of similar duration whose variance is pooled
    KBI_PROCESSES_READ = 64,
    KBI_RUNS_READ = 40, // number of runs read from a history: the most recent runs
    KBI_RUNS_ENOUGH = 6
};

typedef struct kbi_length {
    double ms;
    int64_t at;
} kbi_length;

static int kbi_order_length(const void* a, const void* b) {
    const kbi_length *x = (const kbi_length*)a, *y = (const kbi_length*)b;
    return x->ms != y->ms ? (x->ms > y->ms) - (x->ms < y->ms) : (x->at > y->at) - (x->at < y->at);
}

// Calls kbi_spread_of for subsets of cases with similar durations, because its cost is quadratic in the number of
// cases. A case has up to `each` values; missing values are NAN. If a case has fewer than two values, the field n
// of its result is 0.
static void kbi_spread_subsets(const double* values, int each, int64_t n, const double* times, kbi_spread* out) {
    kbi_length* order = KBI_GROW(NULL, kbi_length, n);
    double* subset = KBI_GROW(NULL, double, (size_t)each * KBI_ALIKE);
    int64_t known = 0;
    memset(out, 0, sizeof *out * (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        int there = 0;
        for (int k = 0; k < each; k++) there += !kbi_nan(values[i * each + k]);
        order[known].ms = times[i];
        order[known].at = i;
        known += there > 1;
    }
    qsort(order, (size_t)known, sizeof *order, kbi_order_length);
    for (int64_t first = 0; first < known; first += KBI_ALIKE) {
        int cases = (int)KBI_MIN(known - first, (int64_t)KBI_ALIKE);
        double lengths[KBI_ALIKE];
        kbi_spread spread[KBI_ALIKE];
        for (int i = 0; i < cases; i++) {
            memcpy(subset + (size_t)i * (size_t)each, values + order[first + i].at * each,
                   sizeof(double) * (size_t)each);
            lengths[i] = order[first + i].ms;
        }
        kbi_spread_of(subset, each, cases, lengths, 0, spread);
        for (int i = 0; i < cases; i++) out[order[first + i].at] = spread[i];
    }
    KBENCH_FREE(subset);
    KBENCH_FREE(order);
}

static int kbi_processes_of(const kb_result* r) { return (int)KBI_MIN(r->process_ms.n, (int64_t)KBI_PROCESSES_READ); }

static void kbi_spread_of_side(const kbi_changes* c, bool after, kbi_spread* out) {
    int most = 0;
    double* times = KBI_GROW(NULL, double, c->n);
    for (int64_t i = 0; i < c->n; i++) {
        const kb_result* r = after ? c->of[i].after : c->of[i].before;
        times[i] = kbi_comparable(&c->of[i]) ? r->time_ms : 0;
        if (times[i] > 0) most = KBI_MAX(most, kbi_processes_of(r));
    }
    double* values = KBI_GROW(NULL, double, (size_t)c->n * (size_t)most);
    for (int64_t i = 0; i < c->n; i++) {
        const kb_result* r = after ? c->of[i].after : c->of[i].before;
        for (int p = 0; p < most; p++) {
            double ms = times[i] > 0 && p < kbi_processes_of(r) ? r->process_ms.of[p] : (double)NAN;
            values[i * most + p] = kbi_finite(ms) && ms > 0 ? log(ms) : (double)NAN;
        }
    }
    kbi_spread_subsets(values, most, c->n, times, out);
    KBENCH_FREE(values);
    KBENCH_FREE(times);
}

// If only one of the two records contains the scatter between processes, this scatter is used for both records.
// Returns false if neither record has several processes.
static bool kbi_change_by_processes(kbi_change* c, const kbi_spread* b, const kbi_spread* a) {
    bool knows_b = b->n > 1 && b->df > 0 && kbi_finite(b->sd), knows_a = a->n > 1 && a->df > 0 && kbi_finite(a->sd);
    if (!knows_a && !knows_b) return false;
    const kbi_spread *sb = knows_b ? b : a, *sa = knows_a ? a : b;
    double vb = sb->sd * sb->sd / (knows_b ? b->n : 1), va = sa->sd * sa->sd / (knows_a ? a->n : 1), v = va + vb;
    c->log = (knows_a ? a->mean : log(c->after->time_ms)) - (knows_b ? b->mean : log(c->before->time_ms));
    c->se = sqrt(v);
    // effective degrees of freedom (Welch 1947)
    c->df = knows_a && knows_b && v > 0 ? v * v / (va * va / a->df + vb * vb / b->df) : sa->df;
    c->evidence = KBI_EVIDENCE_PROCESSES;
    return true;
}

// Returns the standard error of the log of a record's median, from its interval. NAN: there is no interval.
// INFINITY: the interval reaches 0, because the samples are too noisy.
static double kbi_own_error(const kb_result* r) {
    if (!(r->time_ms_ci_high >= r->time_ms_ci_low)) return (double)NAN;
    if (r->time_ms_ci_low <= 0) return (double)INFINITY;
    return log(r->time_ms_ci_high / r->time_ms_ci_low) / (2 * 1.959963984540054);
}

// Other programs on the processor lengthen samples, because after a preemption the caches hold the data of these
// programs. The time without other programs is between the shortest sample and the median. Returns log(median /
// shortest sample); 0 if other programs, or the hypervisor, took less than 5 % of the processor's time.
static double kbi_disturbance(const kb_result* r) {
    bool disturbed = r->cpu_waited >= 5 || r->cpu_stolen >= 5;
    if (!disturbed || !kbi_is(r->timer, "wall") || !(r->time_ms_min > 0)) return 0; // timers of a GPU do not count it
    return KBI_MAX(log(r->time_ms / r->time_ms_min), 0.0);
}

static void kbi_change_measure(kbi_change* c, const kbi_spread* b, const kbi_spread* a, double noise) {
    double own = hypot(kbi_own_error(c->before), kbi_own_error(c->after)), runs = 1.4142135623730951 * c->run_sd;
    c->log = log(c->after->time_ms / c->before->time_ms);
    c->below = kbi_disturbance(c->after), c->above = kbi_disturbance(c->before);
    bool processes = kbi_change_by_processes(c, b, a);
    bool history = kbi_finite(runs) && (processes || kbi_finite(own) || kbi_nan(own));
    if (history && (!processes || runs > c->se)) {
        c->evidence = KBI_EVIDENCE_HISTORY;
        c->df = c->run_df;
        c->se = !processes && kbi_finite(own) && own > runs ? own : runs;
    } else if (!processes && kbi_finite(own)) {
        c->evidence = KBI_EVIDENCE_SAMPLES;
        c->df = 1e7;
        c->se = own;
        c->wide = log1p(noise);
    }
}

// --- history ---

// Estimates the standard deviation of one run from the differences between consecutive runs (von Neumann 1941).
// The variance of a run is half the mean square of the differences. n differences give 2 n / 3 degrees of freedom.
// Differences above six robust standard deviations (1.4826 times the median absolute difference) are changes of
// the program, and do not count.
static void kbi_runs_scatter(const double* x, int64_t n, double* sd, double* df) {
    double step[KBI_RUNS_READ], squares = 0;
    int64_t kept = 0;
    *sd = *df = (double)NAN;
    if (n < KBI_RUNS_ENOUGH) return;
    for (int64_t i = 1; i < n; i++) step[i - 1] = fabs(x[i] - x[i - 1]);
    double most = 6 * 1.4826 * kbi_middle(step, n - 1);
    for (; kept < n - 1 && step[kept] <= most; kept++) squares += step[kept] * step[kept];
    *sd = sqrt(0.5 * squares / (double)kept);
    *df = 2.0 / 3 * (double)kept;
}

static void kbi_runs_slope(const double* x, int64_t n, double* slope, double* p) {
    static double slopes[KBI_RUNS_READ * KBI_RUNS_READ / 2];
    int64_t count = 0, score = 0;
    *slope = *p = (double)NAN;
    if (n < 8) return;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++) {
            slopes[count++] = (x[j] - x[i]) / (double)(j - i);
            score += (x[j] > x[i]) - (x[j] < x[i]);
        }
    }
    double sd = sqrt((double)(n * (n - 1) * (2 * n + 5)) / 18), z = (fabs((double)score) - 1) / sd;
    *slope = kbi_middle(slopes, count);
    *p = z > 0 ? 2 * kbi_student_tail(z, 1e7) : 1;
}

static void kbi_trend_of(kbi_trend* t, const kbi_named* of, int64_t n) {
    double x[KBI_RUNS_READ], earlier[KBI_RUNS_READ];
    int64_t skipped = KBI_MAX(n - KBI_RUNS_READ, (int64_t)0);
    memset(t, 0, sizeof *t);
    t->last = of[n - 1].r;
    t->runs = n - skipped;
    for (int64_t i = 0; i < t->runs; i++) earlier[i] = x[i] = log(of[skipped + i].r->time_ms);
    t->first = exp(x[0]);
    t->now = exp(x[t->runs - 1]);
    kbi_runs_scatter(x, t->runs, &t->sd, &t->df);
    kbi_runs_slope(x, t->runs, &t->slope, &t->p);
    t->middle = t->runs > 1 ? exp(kbi_middle(earlier, t->runs - 1)) : t->now;
}

// Combines each case's variance with the pooled variance of the other cases. The pooled variance gets the degrees
// of freedom of the case's own variance, but at least four. The result is at least the case's own variance.
static void kbi_trends_pool(kbi_trend* t, int64_t n) {
    double sum = 0, known = 0;
    for (int64_t i = 0; i < n; i++)
        if (kbi_finite(t[i].sd)) sum += t[i].df * t[i].sd * t[i].sd, known += t[i].df;
    for (int64_t i = 0; i < n; i++) {
        double own = kbi_finite(t[i].sd) ? t[i].df : 0, others = KBI_MIN(known - own, KBI_MAX(own, 4.0));
        if (!(known > 3) || !(others > 0)) continue;
        double v = (own > 0 ? own * t[i].sd * t[i].sd : 0) + others * sum / known;
        v /= own + others;
        t[i].sd = own > 0 && t[i].sd * t[i].sd > v ? t[i].sd : sqrt(v);
        t[i].df = own + others;
    }
}

// Returns the trends of all cases in a history that have a time, sorted by name; the caller frees them. A case
// that ran on two devices has two trends.
static kbi_trend* kbi_trends(const kb_result* const* runs, int64_t n, int64_t* count) {
    kbi_named* order = KBI_GROW(NULL, kbi_named, n);
    kbi_trend* t = KBI_GROW(NULL, kbi_trend, n);
    int64_t m = 0;
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!kbi_has_time(runs[i])) continue;
        order[m].r = runs[i];
        order[m].at = i;
        order[m++].device = runs[i]->device == KB_NONE ? -1 : runs[i]->device;
    }
    qsort(order, (size_t)m, sizeof *order, kbi_order_named);
    for (int64_t first = 0, end; first < m; first = end) {
        for (end = first + 1;
             end < m && kbi_is(order[end].r->name, order[first].r->name) && order[end].device == order[first].device;)
            end++;
        kbi_trend_of(&t[(*count)++], order + first, end - first);
    }
    kbi_trends_pool(t, *count);
    KBENCH_FREE(order);
    return t;
}

// The trends must be sorted by name.
static void kbi_changes_learn(kbi_changes* c, const kbi_trend* t, int64_t n) {
    for (int64_t i = 0; i < c->n; i++) {
        const char* name = c->of[i].after ? c->of[i].after->name : NULL;
        int64_t low = 0, high = n;
        while (name && low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(t[middle].last->name, name) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        // If the case ran on several devices, use the largest standard deviation.
        for (; name && low < n && kbi_is(t[low].last->name, name); low++) {
            if (!kbi_finite(t[low].sd) || c->of[i].run_sd > t[low].sd) continue;
            c->of[i].run_sd = t[low].sd;
            c->of[i].run_df = t[low].df;
        }
    }
}

// --- verdicts ---

typedef struct kbi_chance { // a p-value, for sorting
    double p;
    int64_t at;
} kbi_chance;

static int kbi_order_chance(const void* a, const void* b) {
    const kbi_chance *x = (const kbi_chance*)a, *y = (const kbi_chance*)b;
    return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x->at > y->at) - (x->at < y->at);
}

// Sorts n p-values and adjusts them for multiple tests (Holm 1979): multiplies the smallest by n, the next by n - 1,
// and so on. A product that is less than the result before it is raised to this result.
static void kbi_holm(kbi_chance* all, int64_t n) {
    double most = 0;
    qsort(all, (size_t)n, sizeof *all, kbi_order_chance);
    for (int64_t i = 0; i < n; i++) {
        most = KBI_MAX(most, KBI_MIN(all[i].p * (double)(n - i), 1.0));
        all[i].p = most;
    }
}

// Returns the two-sided p-value of the hypothesis that the log change is at most `limit` in size.
static double kbi_change_p(const kbi_change* c, double limit) {
    double beyond = fabs(c->log) - c->wide - (c->log > 0 ? c->below : c->above) - limit;
    if (!(beyond > 0)) return 1;
    return c->se > 0 ? 2 * kbi_student_tail(beyond / c->se, KBI_MIN(c->df, 1e7)) : 0;
}

// Needs the fields `log`, `se`, `df`, `wide`, `below` and `above` of each change. A case is a regression if its
// interval lies beyond the threshold, and EQUIVALENT if its interval lies within. SLOWER means significantly slower
// by any amount. alpha is the error probability of each interval, but of all cases together for regressions and
// verdicts.
static void kbi_changes_judge(kbi_changes* c, const kbi_rules* rules) {
    kbi_chance* far = KBI_GROW(NULL, kbi_chance, c->n);
    kbi_chance* any = KBI_GROW(NULL, kbi_chance, c->n);
    double limit = log1p(rules->threshold), last = -1, quantile = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        kbi_change* one = &c->of[i];
        one->lo = one->hi = one->p = (double)NAN;
        if (!kbi_comparable(one)) continue;
        one->verdict = KB_UNRESOLVED;
        one->regressed = one->improved = false;
        one->open = true;
        if (one->evidence == KBI_EVIDENCE_NONE) continue;
        if (one->df != last) quantile = kbi_student_quantile(1 - 0.5 * rules->alpha, one->df);
        last = one->df;
        one->lo = one->log - quantile * one->se - one->wide - one->below;
        one->hi = one->log + quantile * one->se + one->wide + one->above;
        far[n].p = kbi_change_p(one, limit);
        any[n].p = kbi_change_p(one, 0);
        far[n].at = any[n].at = i;
        n++;
    }
    kbi_holm(far, n);
    kbi_holm(any, n);
    for (int64_t i = 0; i < n; i++) {
        kbi_change *x = &c->of[any[i].at], *y = &c->of[far[i].at];
        y->p = far[i].p;
        y->regressed = y->p <= rules->alpha && y->log > 0;
        y->improved = y->p <= rules->alpha && y->log < 0;
        y->open = !y->regressed && !y->improved && !(y->lo >= -limit && y->hi <= limit);
        if (any[i].p <= rules->alpha)
            x->verdict = x->log > 0 ? KB_SLOWER : KB_FASTER;
        else if (x->lo >= -limit && x->hi <= limit)
            x->verdict = KB_EQUIVALENT;
    }
    KBENCH_FREE(far);
    KBENCH_FREE(any);
}

// Compares peak memory, which has no measurement error: GPU memory, or host memory if neither record uses GPU
// memory.
static void kbi_change_memory(kbi_change* c, double threshold) {
    c->memory = (double)NAN;
    if (!kbi_comparable(c)) return;
    bool device = kbi_memory_of(c->before, true) > 0 || kbi_memory_of(c->after, true) > 0;
    double before = kbi_memory_of(c->before, device), after = kbi_memory_of(c->after, device);
    if (!kbi_finite(before) || !kbi_finite(after)) return;
    if (before > 0) c->memory = after / before;
    c->more = after > before * (1 + threshold);
    c->less = after * (1 + threshold) < before;
}

static void kbi_compare(kbi_changes* c, const kbi_rules* rules) {
    size_t n = (size_t)c->n;
    kbi_spread *before = KBI_GROW(NULL, kbi_spread, n), *after = KBI_GROW(NULL, kbi_spread, n);
    kbi_spread_of_side(c, false, before);
    kbi_spread_of_side(c, true, after);
    for (int64_t i = 0; i < c->n; i++) {
        if (kbi_comparable(&c->of[i])) kbi_change_measure(&c->of[i], &before[i], &after[i], rules->noise);
        kbi_change_memory(&c->of[i], rules->memory_threshold);
    }
    kbi_changes_judge(c, rules);
    KBENCH_FREE(before);
    KBENCH_FREE(after);
}

// Smallest number of rounds before a race may end because its intervals are narrow. In a race of fewer rounds,
// intervals are often narrow by chance.
enum { KBI_RACE_ROUNDS = 6 };
static bool kbi_race_enough(int rounds, double widest, const kbi_rules* rules) {
    return rounds >= KBI_RACE_ROUNDS && widest <= log1p(rules->threshold) / 3;
}

// Computes the changes from the times of a race (--race). logs[i * rounds + k] is the log ratio of case i in round
// k, NAN if case i has no time in round k. Returns the largest half-width of the intervals at joint confidence
// over all cases; infinite if a case has no interval. A race stops when its intervals are narrow, which happens
// more often when the scatter is underestimated (Chow and Robbins 1965). Up to 7.5 % of the intervals would then
// miss the true ratio instead of 5 %, so the standard error is multiplied by 1 + 1.5 / rounds.
static double kbi_compare_rounds(kbi_changes* c, const double* logs, int rounds, const kbi_rules* rules) {
    kbi_spread* s = KBI_GROW(NULL, kbi_spread, c->n);
    double* times = KBI_GROW(NULL, double, c->n);
    double widest = 0, compared = 0;
    for (int64_t i = 0; i < c->n; i++) {
        times[i] = kbi_comparable(&c->of[i]) ? c->of[i].before->time_ms : 0;
        compared += times[i] > 0;
    }
    kbi_spread_subsets(logs, rounds, c->n, times, s);
    for (int64_t i = 0; i < c->n; i++) {
        kbi_change* one = &c->of[i];
        kbi_change_memory(one, rules->memory_threshold);
        one->evidence = KBI_EVIDENCE_NONE;
        if (!kbi_comparable(one)) continue;
        if (s[i].n > 1 && s[i].df > 0) {
            one->evidence = KBI_EVIDENCE_ROUNDS;
            one->log = s[i].mean;
            one->se = s[i].sd / sqrt((double)s[i].n);
            if (rounds > KBI_RACE_ROUNDS) one->se *= 1 + 1.5 / rounds;
            one->df = s[i].df;
        } else
            one->log = log(one->after->time_ms / one->before->time_ms);
        double level = 1 - 0.5 * rules->alpha / compared;
        double half = one->evidence ? one->se * kbi_student_quantile(level, one->df) : (double)INFINITY;
        widest = KBI_MAX(widest, half);
    }
    kbi_changes_judge(c, rules);
    KBENCH_FREE(times);
    KBENCH_FREE(s);
    return widest;
}

static bool kbi_unchecked(const kbi_change* c) {
    return kbi_has_time(c->before) && kbi_has_time(c->after) && c->before->verified == 1 && c->after->verified < 0;
}

static kbi_assessment kbi_assess(const kbi_changes* c) {
    kbi_assessment a;
    double sum = 0;
    memset(&a, 0, sizeof a);
    for (int64_t i = 0; i < c->n; i++) {
        const kbi_change* one = &c->of[i];
        a.added += !one->before;
        a.removed += !one->after;
        a.broken += kbi_has_time(one->before) && one->after && one->after->status == KB_FAILED;
        a.recovered += one->before && one->before->status == KB_FAILED && kbi_has_time(one->after);
        a.apart += one->apart;
        a.unchecked += kbi_unchecked(one);
        if (!kbi_comparable(one)) continue;
        a.compared++;
        a.evidence_counts[one->evidence]++;
        a.regressed += one->regressed;
        a.improved += one->improved;
        a.more += one->more;
        a.less += one->less;
        a.slower += one->verdict == KB_SLOWER;
        a.faster += one->verdict == KB_FASTER;
        a.open += one->open;
        a.old_disturbed += one->open && one->evidence && one->above > 0;
        a.new_disturbed += one->open && one->evidence && one->below > 0;
        sum += one->log;
        if (one->regressed && (!a.worst || one->log > a.worst->log)) a.worst = one;
    }
    a.geomean = a.compared ? exp(sum / (double)a.compared) : (double)NAN;
    return a;
}

/*-----------------------------------------------------------------
  >>shifts      prints changes and trends.
-----------------------------------------------------------------*/

enum { KBI_CHANGES_ALL = 48 }; // if there are at most this many changes, all are printed

static const char* kbi_show_change(double log, char out[40]) {
    double percent = 100 * expm1(log);
    if (!kbi_finite(percent)) return "-";
    if (fabs(percent) < 0.005) percent = 0; // prevents "-0.00%"
    if (percent >= 999.5)
        snprintf(out, 40, "%.3gx", exp(log));
    else
        snprintf(out, 40, "%+.*f%%", fabs(percent) < 9.995 ? 2 : 1, percent);
    kbi_unlocalise(out);
    return out;
}

static const char* kbi_show_interval(double lo, double hi, char out[96]) {
    char low[40], high[40];
    if (!kbi_finite(lo) || !kbi_finite(hi)) return "-";
    snprintf(out, 96, "[%s, %s]", kbi_show_change(lo, low), kbi_show_change(hi, high));
    return out;
}

static const char* kbi_change_words(const kbi_change* c, double threshold, const char** colour, char out[64]) {
    bool bad = c->regressed || c->more, good = c->improved || c->less;
    *colour = bad ? "\033[31m" : good ? "\033[32m" : "";
    if (!c->before) return "added";
    if (!c->after) return "removed";
    if (c->after->status == KB_FAILED) return *colour = "\033[31m", "failed";
    if (c->after->status == KB_SKIPPED) return "skipped";
    if (c->before->status == KB_FAILED) return "had failed";
    if (c->apart) return "not comparable";
    if (!kbi_comparable(c)) return "no time";
    const char* verdict = c->regressed ? "REGRESSED" : c->improved ? "IMPROVED" : kbi_verdict_name(c->verdict);
    if (c->regressed)
        snprintf(out, 64, "%s %s", verdict, kbi_severity(c, threshold));
    else
        snprintf(out, 64, "%s", verdict);
    return out;
}

static bool kbi_change_notable(const kbi_change* c) {
    return !kbi_comparable(c) || kbi_unchecked(c) || c->regressed || c->improved || c->more || c->less || c->verdict == KB_SLOWER ||
           c->verdict == KB_FASTER;
}

static void kbi_changes_memory(kbi_table* t, const kbi_change* c) {
    char before[40], after[40], change[40];
    if (!c->more && !c->less) return;
    bool device = kbi_memory_of(c->before, true) > 0 || kbi_memory_of(c->after, true) > 0;
    kbi_putf(&t->text, "%*smemory %s: %s, was %s\n", 4, "",
             kbi_finite(c->memory) ? kbi_show_change(log(c->memory), change) : "new",
             kbi_show_bytes(kbi_memory_of(c->after, device), after),
             kbi_show_bytes(kbi_memory_of(c->before, device), before));
}

// Prints the name of the case at the end of a row with `used` columns, or on the next line if the name does not
// fit.
static void kbi_changes_case(kbi_table* t, int used, const char* program, const char* name) {
    kbi_text s = KBI_BLANK;
    if (program) kbi_clean(&s, program), kbi_puts(&s, ": ");
    kbi_clean(&s, name ? name : "");
    bool fits = used + 2 + kbi_width(s.s ? s.s : "", s.n) <= t->how.width;
    if (!fits) kbi_table_line_end(t);
    kbi_puts(&t->text, fits ? "  " : "    ");
    kbi_cut(&t->text, s.s ? s.s : "", t->how.width - (fits ? 0 : 4));
    kbi_table_line_end(t);
    kbi_text_free(&s);
}

// the terminal is too narrow for intervals
static bool kbi_changes_narrow(const kbi_table* t) { return t->how.width < 60; }

static void kbi_changes_row(kbi_table* t, const kbi_change* c, double threshold, const char* program) {
    char out[96], before[40], after[40];
    const char *colour, *words = kbi_change_words(c, threshold, &colour, out);
    bool times = kbi_comparable(c);
    char change[40], interval[96];
    int used = 1;
    kbi_puts(&t->text, " ");
    used += kbi_table_pad(t, 8, times ? kbi_show_change(c->log, change) : "");
    if (!kbi_changes_narrow(t)) used += kbi_table_pad(t, 20, times ? kbi_show_interval(c->lo, c->hi, interval) : "");
    kbi_puts(&t->text, "  ");
    kbi_table_colour(t, colour);
    used += 2 + kbi_table_pad(t, -18, words);
    kbi_table_colour(t, *colour ? "\033[0m" : "");
    if (t->how.width >= KBI_WIDE) {
        used += kbi_table_pad(t, 11, kbi_has_time(c->before) ? kbi_show_time(c->before->time_ms, before) : "-");
        used += kbi_table_pad(t, 11, kbi_has_time(c->after) ? kbi_show_time(c->after->time_ms, after) : "-");
    }
    const kb_result* r = c->after ? c->after : c->before;
    kbi_changes_case(t, used, program, r->name);
    kbi_changes_memory(t, c);
    if (kbi_unchecked(c)) kbi_table_wrap(t, 4, "the output was verified before, and is no longer checked");
    if (c->after && c->after->status == KB_FAILED && c->after->message) kbi_table_wrap(t, 4, c->after->message);
}

static void kbi_changes_heading(kbi_table* t, const kbi_rules* rules) {
    char level[40], title[64];
    snprintf(title, sizeof title, "%s %% interval", kbi_digits(100 * (1 - rules->alpha), 2, level));
    kbi_puts(&t->text, "\n   change");
    if (!kbi_changes_narrow(t)) kbi_putf(&t->text, "%20s", title);
    kbi_puts(&t->text, "  verdict           ");
    if (t->how.width >= KBI_WIDE) kbi_puts(&t->text, "     before      after");
    kbi_puts(&t->text, "  case\n");
}

// Rounds and processes give more reliable intervals than samples, so the source of the intervals is printed.
static void kbi_changes_evidence(kbi_table* t, const kbi_assessment* a, const kbi_rules* rules) {
    static const char* const words[] = { "no interval: too few or too noisy samples", "the two runs' own samples",
                                         "the differences between runs in the history", "several processes (--procs)",
                                         "the rounds of the race" };
    kbi_text line = KBI_BLANK;
    char noise[40];
    for (int g = KBI_EVIDENCE_ROUNDS; g >= 0; g--) {
        if (!a->evidence_counts[g]) continue;
        kbi_putf(&line, "%s%s", line.n ? "; " : g == KBI_EVIDENCE_NONE ? "" : "intervals from ", words[g]);
        if (g == KBI_EVIDENCE_SAMPLES)
            kbi_putf(&line, ", widened by %s (--noise) for differences between processes%s",
                     kbi_show_percent(rules->noise, noise),
                     a->open || a->regressed || a->improved ? "; --procs 5 in both runs measures these differences" : "");
        if (a->evidence_counts[g] < a->compared) kbi_putf(&line, " (%lld)", (long long)a->evidence_counts[g]);
    }
    if (line.n) kbi_table_wrap(t, 0, line.s);
    kbi_text_free(&line);
}

static void kbi_changes_disturbed(kbi_table* t, const kbi_assessment* a) {
    char text[400];
    if (!a->old_disturbed && !a->new_disturbed) return;
    snprintf(text, sizeof text,
             "Other programs, other threads of the benchmark, or other virtual machines used the processor during "
             "uncertain cases (%lld in the old run, %lld in the new run). Their times may be too long, so their "
             "intervals include the shortest sample. Repeat the disturbed run on a quiet machine, or use --race.",
             (long long)a->old_disturbed, (long long)a->new_disturbed);
    kbi_table_wrap(t, 0, text);
}

static void kbi_count_words(kbi_text* line, int64_t n, const char* words) {
    if (n) kbi_putf(line, "%s%lld %s", line->n ? ", " : "", (long long)n, words);
}

static void kbi_changes_words(kbi_text* line, const kbi_assessment* a, const kbi_rules* rules) {
    char number[40], limit[40];
    kbi_show_percent(rules->threshold, limit);
    if (!a->compared)
        kbi_puts(line, "Nothing was compared");
    else if (a->regressed)
        kbi_putf(line, "Slower: %lld of %lld case%s by more than %s", (long long)a->regressed, (long long)a->compared,
                 a->compared == 1 ? "" : "s", limit);
    else if (a->more)
        kbi_putf(line, "More memory: %lld of %lld case%s", (long long)a->more, (long long)a->compared,
                 a->compared == 1 ? "" : "s");
    else if (a->improved || a->less)
        kbi_putf(line, "Better: %lld case%s compared, none slower by more than %s", (long long)a->compared,
                 a->compared == 1 ? "" : "s", limit);
    else if (a->open)
        kbi_putf(line, "Not certain: %lld case%s compared, no regression found", (long long)a->compared,
                 a->compared == 1 ? "" : "s");
    else
        kbi_putf(line, "No change: 0 of %lld cases changed by more than %s", (long long)a->compared, limit);
    if (a->worst) {
        kbi_putf(line, ", at worst %s (", kbi_show_change(a->worst->log, number));
        kbi_clean(line, a->worst->after->name);
        kbi_puts(line, ")");
    }
    if (a->regressed) kbi_count_words(line, a->more, "using more memory");
    kbi_count_words(line, a->improved, "faster by more than --threshold");
    kbi_count_words(line, a->less, "using less memory");
    kbi_count_words(line, a->open, "not certain");
    kbi_count_words(line, a->broken, "newly failed");
    kbi_count_words(line, a->recovered, "failed before");
    kbi_count_words(line, a->unchecked, "no longer verified");
    kbi_count_words(line, a->added, "added");
    kbi_count_words(line, a->removed, "removed");
    kbi_count_words(line, a->apart, "not comparable");
    if (a->compared > 1)
        kbi_putf(line, "; times changed by %s (geometric mean of all compared cases)",
                 kbi_show_change(log(a->geomean), number));
    kbi_puts(line, ".");
}

// programs[i]: new program of change i. `programs` is NULL if all changes have the same new program.
static void kbi_changes_show(const kbi_how* how, const kbi_changes* c, const kbi_rules* rules,
                             const kbi_assessment* a, const char* const* programs) {
    kbi_table t;
    int64_t left = 0;
    kbi_table_open(&t, how);
    kbi_changes_heading(&t, rules);
    for (int64_t i = 0; i < c->n; i++) {
        if (c->n > KBI_CHANGES_ALL && !how->verbose && !kbi_change_notable(&c->of[i]))
            left++;
        else
            kbi_changes_row(&t, &c->of[i], rules->threshold, programs ? programs[i] : NULL);
    }
    if (left)
        kbi_putf(&t.text, " and %lld that %s no certain change; -v shows all\n", (long long)left,
                 left == 1 ? "has" : "have");
    kbi_puts(&t.text, "\n");
    kbi_text line = KBI_BLANK;
    kbi_changes_words(&line, a, rules);
    kbi_table_wrap(&t, 0, line.s);
    kbi_text_free(&line);
    kbi_changes_evidence(&t, a, rules);
    kbi_changes_disturbed(&t, a);
    kbi_table_flush(&t);
}

// --- differences between machines ---

static void kbi_differences_show(const kbi_how* how, const kbi_differences* d) {
    kbi_table t;
    bool off = false;
    kbi_table_open(&t, how);
    for (int i = 0; i < d->n; i++) {
        const kbi_difference* row = &d->of[i];
        kbi_text line = KBI_BLANK;
        off |= row->off;
        kbi_putf(&line, "%c %s: %s -> %s", row->off ? '*' : '-', row->key, row->before, row->after);
        if (row->pairs < d->pairs)
            kbi_putf(&line, " (%lld of %lld cases)", (long long)row->pairs, (long long)d->pairs);
        kbi_table_wrap(&t, 1, line.s);
        kbi_text_free(&line);
    }
    if (d->left) kbi_table_wrap(&t, 1, "- further differences are not listed");
    if (off) kbi_table_wrap(&t, 0, "*: this difference makes the times not comparable");
    kbi_table_flush(&t);
}

// --- history ---

static void kbi_trends_show(const kbi_how* how, const kbi_trend* trends, int64_t n, const char* path) {
    kbi_table t;
    char a[40], b[40], now[40];
    int64_t past = 0, runs = 0, left = 0;
    for (int64_t i = 0; i < n; i++) past += trends[i].runs > 1, runs = KBI_MAX(runs, trends[i].runs);
    if (!past) return;
    kbi_table_open(&t, how);
    kbi_putf(&t.text, "\n%lld runs in ", (long long)runs);
    kbi_clean(&t.text, path);
    kbi_putf(&t.text, "\n      now  to median   a run   noise  runs  case\n");
    for (int64_t i = 0; i < n; i++) {
        const kbi_trend* one = &trends[i];
        bool moves = one->p < 0.01 && kbi_finite(one->slope);
        if (one->runs < 2) continue;
        if (past > KBI_CHANGES_ALL && !how->verbose && !moves) {
            left++;
            continue;
        }
        int used = kbi_table_pad(&t, 9, kbi_show_time(one->now, now));
        used += kbi_table_pad(&t, 11, kbi_show_change(log(one->now / one->middle), a));
        used += kbi_table_pad(&t, 8, moves ? kbi_show_change(one->slope, b) : "-");
        used += kbi_table_pad(&t, 8, kbi_show_percent(one->sd, a));
        kbi_putf(&t.text, "%6lld", (long long)one->runs);
        if (moves) kbi_puts(&t.text, one->slope > 0 ? "  rising" : "  falling");
        kbi_changes_case(&t, used + 6 + (!moves ? 0 : one->slope > 0 ? 8 : 9), NULL, one->last->name);
    }
    if (left) kbi_putf(&t.text, " and %lld without a trend; -v shows all\n", (long long)left);
    kbi_table_flush(&t);
}

/*-----------------------------------------------------------------
  >>markdown    records as Markdown tables, as for a pull request.
-----------------------------------------------------------------*/

// Escapes a text from a record, so that Markdown does not read it as a column, HTML, emphasis or a link.
static void kbi_md_text(kbi_text* t, const char* s) {
    kbi_text clean = KBI_BLANK;
    kbi_clean(&clean, s);
    for (const char* p = clean.s ? clean.s : ""; *p; p++) {
        bool link = (*p == ':' && p[1] == '/') || (*p == '.' && p >= clean.s + 3 && strncmp(p - 3, "www", 3) == 0);
        if (link || strchr("|<>*_`\\[]#~&$", *p)) kbi_puts(t, "\\");
        kbi_put(t, p, 1);
    }
    kbi_text_free(&clean);
}

static void kbi_md_part(kbi_text* t, const char* before, const char* s) { kbi_puts(t, before), kbi_md_text(t, s); }

static void kbi_md_machine(kbi_text* t, const kb_result* r) {
    char roof[40], commit[13];
    kbi_md_text(t, r->gpu ? r->gpu : r->cpu ? r->cpu : "processor unknown");
    if (r->gpu) kbi_md_part(t, ", driver ", r->driver ? r->driver : "-");
    if (r->gpu) kbi_md_part(t, ", CUDA ", r->cuda ? r->cuda : "-");
    if (r->gpu && kbi_finite(r->copy_roof_gbps))
        kbi_putf(t, ", copy roof %s GB/s", kbi_show(r->copy_roof_gbps, 4, roof));
    if (!r->gpu) kbi_puts(t, " (CPU times)");
    if (r->git_commit) {
        snprintf(commit, sizeof commit, "%s", r->git_commit);
        kbi_md_part(t, ", commit ", commit);
    }
    kbi_md_part(t, ", kbench ", r->kbench_version ? r->kbench_version : "");
    kbi_puts(t, "\n");
}

static bool kbi_md_same_machine(const kb_result* a, const kb_result* b) {
    return kbi_same_text(a->gpu, b->gpu) && kbi_same_text(a->cpu, b->cpu) && kbi_same_text(a->driver, b->driver) &&
           kbi_same_text(a->cuda, b->cuda) && kbi_same_text(a->git_commit, b->git_commit);
}

static void kbi_md_case(kbi_text* t, const kb_result* r) {
    kbi_puts(t, "| ");
    kbi_md_text(t, r->implementation ? r->implementation : "");
    kbi_puts(t, " |");
    if (r->dtype) kbi_puts(t, " "), kbi_md_text(t, r->dtype);
    for (int64_t i = 0; i < r->params.n; i++) {
        const kb_param* p = &r->params.of[i];
        kbi_text value = KBI_BLANK;
        if (kbi_is(p->name, "dtype") || (kbi_is(p->name, "dir") && p->type == KB_AXIS_STRINGS)) continue;
        kbi_param_text(&value, p);
        kbi_puts(t, " "), kbi_md_text(t, p->name), kbi_puts(t, "="), kbi_md_text(t, value.s ? value.s : "");
        kbi_text_free(&value);
    }
    kbi_puts(t, " |");
}

static const char* kbi_md_word(const kb_result* r) {
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (r->flags >> f & 1 && kb_flag_is_error((kb_flag)f)) return kb_flag_name((kb_flag)f);
    return r->status == KB_SKIPPED ? "skipped" : "FAILED";
}

static void kbi_md_row(kbi_text* t, const kb_result* r, const kbi_cell* cells, int n) {
    bool won = r->status == KB_OK && r->implementation && kbi_is(r->winner, r->implementation);
    kbi_md_case(t, r);
    for (int i = 0; i < n; i++) {
        kbi_text s = KBI_BLANK;
        kbi_cell_text(&s, &cells[i], r);
        if (r->status != KB_OK) s.n = 0, kbi_puts(&s, i ? "" : kbi_md_word(r));
        kbi_puts(t, i || !won ? " " : " **");
        kbi_md_text(t, s.s ? s.s : "");
        kbi_puts(t, i || !won ? " |" : r->winner_certain == 1 ? "** |" : "**? |");
        kbi_text_free(&s);
    }
    kbi_puts(t, " ");
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (r->flags >> f & 1 && !kb_flag_is_error((kb_flag)f)) kbi_putf(t, "%s ", kb_flag_name((kb_flag)f));
    if (r->status != KB_OK && r->message) kbi_md_text(t, r->message), kbi_puts(t, " ");
    kbi_puts(t, "|\n");
}

// Returns whether a counter comes from a profiler. A period shows this, because names of kb_count contain no
// periods.
static bool kbi_profilers(const char* name) { return strchr(name, '.') || strncmp(name, "launch__", 8) == 0; }

static void kbi_md_table(kbi_text* t, const kb_result* records, int n) {
    static const int columns[] = { KBI_COLUMN_TIME,   KBI_COLUMN_SPREAD, KBI_COLUMN_GBPS,   KBI_COLUMN_GFLOPS,
                                   KBI_COLUMN_ITEMS,  KBI_COLUMN_ROOF,   KBI_COLUMN_MEMORY, KBI_COLUMN_ENERGY,
                                   KBI_COLUMN_FLOP_J, KBI_COLUMN_BYTE_J, KBI_COLUMN_SPEEDUP };
    kbi_cell cells[KBI_COUNT(columns) + KBI_COUNTERS];
    int count = 0, counters, left = 0;
    const char** names = kbi_object_names(records, n, kbi_key_named("counters"), &counters);
    const kb_result** rows = KBI_GROW(NULL, const kb_result*, n);
    for (int i = 0; i < n; i++) rows[i] = &records[i];
    for (int c = 0; c < KBI_COUNT(columns); c++) {
        kbi_cell* cell = &cells[count];
        bool some = columns[c] == KBI_COLUMN_TIME;
        memset(cell, 0, sizeof *cell);
        cell->what = kbi_shown_column(columns[c]);
        cell->scale = 1;
        cell->width = 12;
        cell->title = kbi_columns[columns[c]].title;
        kbi_cell_unit(cell, rows, n);
        for (int i = 0; i < n; i++) some |= kbi_field_number(rows[i], cell->what.key) > 0;
        count += some;
    }
    for (int c = 0, room = KBI_COUNTERS; c < counters; c++) {
        if (kbi_profilers(names[c])) continue; // profilers report too many counters for a table
        if (!room) left++;
        if (!room) continue;
        kbi_cell* cell = &cells[count++];
        room--;
        memset(cell, 0, sizeof *cell);
        cell->what.column = -1;
        cell->what.key = kbi_key_named("counters");
        snprintf(cell->what.counter, sizeof cell->what.counter, "%s", names[c]);
        cell->title = names[c];
    }
    kbi_puts(t, "\n| implementation | case |");
    for (int c = 0; c < count; c++) {
        const char* unit = NULL;
        for (int i = 0; i < n && !unit; i++) unit = kbi_object_text(&rows[i]->counter_units, cells[c].what.counter);
        kbi_puts(t, " "), kbi_md_text(t, cells[c].title);
        if (unit) kbi_puts(t, ", "), kbi_md_text(t, unit);
        kbi_puts(t, " |");
    }
    kbi_puts(t, " |\n|---|---|");
    for (int c = 0; c < count; c++) kbi_puts(t, "--:|");
    kbi_puts(t, "---|\n");
    for (int i = 0; i < n; i++) kbi_md_row(t, rows[i], cells, count);
    if (left) kbi_putf(t, "\n%d more counter%s are in --csv and --json\n", left, left == 1 ? "" : "s");
    KBENCH_FREE((void*)rows);
    KBENCH_FREE((void*)names);
}

static void kbi_md(kbi_text* t, const kb_result* records, int64_t n) {
    int64_t ok = 0, failed = 0;
    for (int64_t first = 0, end; first < n; first = end) {
        const kb_result* r = &records[first];
        for (end = first; end < n && kbi_same_operation(r, &records[end]) && kbi_md_same_machine(r, &records[end]);)
            end++;
        end = KBI_MAX(end, first + 1);
        if (!first || !kbi_md_same_machine(&records[first - 1], r))
            kbi_puts(t, first ? "\n" : ""), kbi_md_machine(t, r);
        kbi_puts(t, "\n#### ");
        kbi_md_text(t, r->operation ? r->operation : "");
        if (r->direction) kbi_puts(t, " "), kbi_md_text(t, r->direction);
        kbi_puts(t, "\n");
        kbi_md_table(t, r, (int)(end - first));
    }
    for (int64_t i = 0; i < n; i++) ok += records[i].status == KB_OK, failed += records[i].status == KB_FAILED;
    kbi_putf(t, "\n%lld case%s: %lld ok", (long long)n, n == 1 ? "" : "s", (long long)ok);
    if (failed) kbi_putf(t, ", %lld failed", (long long)failed);
    if (n - ok - failed) kbi_putf(t, ", %lld skipped", (long long)(n - ok - failed));
    kbi_puts(t, ". Bold marks the fastest implementation; ? follows if it is not significantly faster. "
                "= means within 1 % of the baseline; ~ means not significantly different from the baseline.\n");
}

/*-----------------------------------------------------------------
  >>tools       records in the formats of Google Benchmark and Go.
-----------------------------------------------------------------*/

// --- repetitions, which these tools test ---

// A repetition is the median of one process. Parts of one process's samples differ less than processes do, so a
// test on such parts reports noise as a change. The tools expect equal numbers, so the case with the fewest
// processes sets the number for all cases.
static int kbi_repetitions(const kb_result* records, int64_t n) {
    int64_t count = KBI_PROCESSES;
    bool some = false;
    for (int64_t i = 0; i < n; i++)
        if (kbi_has_time(&records[i])) some = true, count = KBI_MIN(count, records[i].process_ms.n);
    return some && count > 1 ? (int)count : 1;
}

static double kbi_repetition(const kb_result* r, int count, int which) { // ms
    return count > 1 ? r->process_ms.of[which] : r->time_ms;
}

// --- Google Benchmark's JSON ---

// Cases without a time go into the object "context": many tools show the time of an entry in "benchmarks" even if
// its error field is set.
static void kbi_gbench_failed(kbi_text* t, const kb_result* records, int64_t n) {
    for (int status = KB_FAILED, some; status <= KB_SKIPPED; status++) {
        some = 0;
        for (int64_t i = 0; i < n; i++) {
            const kb_result* r = &records[i];
            if (kbi_has_time(r) || (r->status == KB_SKIPPED) != (status == KB_SKIPPED)) continue;
            kbi_text said = KBI_BLANK;
            kbi_putf(&said, "%s: %s", r->name, r->message ? r->message : kbi_md_word(r));
            kbi_puts(t, some++ ? ", " : status == KB_FAILED ? ", \"failed\": [" : ", \"skipped\": [");
            kbi_json_text(t, said.s);
            kbi_text_free(&said);
        }
        if (some) kbi_puts(t, "]");
    }
}

static void kbi_gbench_context(kbi_text* t, const kb_result* r, int64_t n) {
    const char* texts[][2] = { { "date", r ? r->date : NULL },
                               { "host_name", r ? r->host : NULL },
                               { "executable", r ? r->command : NULL },
                               { "gpu", r ? r->gpu : NULL },
                               { "driver", r ? r->driver : NULL },
                               { "cuda", r ? r->cuda : NULL },
                               { "cpu", r ? r->cpu : NULL },
                               { "git_commit", r ? r->git_commit : NULL } };
    kbi_cpus cpus;
    int count = 0;
    kbi_puts(t, "{\n\"context\": {");
    for (int i = 0; i < KBI_COUNT(texts); i++) {
        if (!texts[i][1] && i > 2) continue;
        kbi_putf(t, "%s\"%s\": ", i ? ", " : "", texts[i][0]);
        kbi_json_text(t, texts[i][1] ? texts[i][1] : "");
    }
    for (int i = 0; r && r->cpus && kbi_cpus_parse(r->cpus, &cpus) && i < KBI_CPUS; i++)
        count += kbi_cpus_has(&cpus, i);
    kbi_putf(t, ", \"num_cpus\": %d, \"mhz_per_cpu\": %.0f", count,
             r && kbi_finite(r->cpu_clock_mhz) ? r->cpu_clock_mhz : 0);
    kbi_puts(t, ", \"caches\": [], \"load_avg\": [], \"library_version\": ");
    kbi_json_text(t, r && r->kbench_version ? r->kbench_version : KBENCH_VERSION);
    kbi_putf(t, ", \"library_build_type\": \"%s\", \"json_schema_version\": 1",
             r && r->build && (strstr(r->build, ", not optimised") || strstr(r->build, ", instrumented ("))
                 ? "debug"
                 : "release");
    kbi_gbench_failed(t, r, n);
    kbi_puts(t, "},\n\"benchmarks\": [");
}

typedef struct kbi_gbench_family {
    int64_t family, instance;
    int repetitions;
} kbi_gbench_family;

static void kbi_gbench_begin(kbi_text* t, const kb_result* r, const char* suffix, const kbi_gbench_family* f) {
    kbi_text name = KBI_BLANK;
    kbi_putf(&name, "%s%s", r->name, suffix);
    kbi_puts(t, t->s[t->n - 1] == '[' ? "\n{\"name\": " : ",\n{\"name\": ");
    kbi_json_text(t, name.s);
    kbi_putf(t, ", \"family_index\": %lld, \"per_family_instance_index\": %lld, \"run_name\": ", (long long)f->family,
             (long long)f->instance);
    kbi_json_text(t, r->name);
    kbi_putf(t, ", \"repetitions\": %d, \"threads\": 1, ", f->repetitions);
    kbi_text_free(&name);
}

static void kbi_gbench_time(kbi_text* t, double x) {
    // writes x as CPU time, too, because some tools compare CPU times
    kbi_puts(t, "\"real_time\": "), kbi_json_real(t, x);
    kbi_puts(t, ", \"cpu_time\": "), kbi_json_real(t, x);
    kbi_puts(t, ", \"time_unit\": \"ns\"");
}

// A counter is renamed if its name is a key of the format.
static void kbi_gbench_counters(kbi_text* t, const kb_result* r) {
    static const char own[] = "name,family_index,per_family_instance_index,run_name,run_type,repetitions,"
                              "repetition_index,threads,iterations,real_time,cpu_time,time_unit,bytes_per_second,"
                              "items_per_second,flops_per_second,label,aggregate_name,aggregate_unit,error_occurred,"
                              "error_message,skipped,skip_message";
    for (int64_t i = 0; i < r->counters.n; i++) {
        kbi_text name = KBI_BLANK;
        double x = kbi_object_number(&r->counters, r->counters.of[i].name);
        if (!kbi_finite(x)) continue;
        kbi_putf(&name, "%s%s", kbi_lists(own, r->counters.of[i].name) ? "counter:" : "", r->counters.of[i].name);
        kbi_puts(t, ", "), kbi_json_text(t, name.s), kbi_puts(t, ": ");
        kbi_json_real(t, x);
        kbi_text_free(&name);
    }
}

static void kbi_gbench_rates(kbi_text* t, const kb_result* r, double ms) {
    const struct {
        const char* name;
        double amount;
    } rates[] = { { "bytes_per_second", r->bytes },
                  { "items_per_second", r->items_per_second * r->time_ms / 1e3 },
                  { "flops_per_second", r->flops } };
    for (int i = 0; i < KBI_COUNT(rates); i++) {
        double x = rates[i].amount / (ms / 1e3);
        if (!kbi_finite(x)) continue;
        kbi_putf(t, ", \"%s\": ", rates[i].name);
        kbi_json_real(t, x);
    }
    kbi_gbench_counters(t, r);
    if (!r->flags) return;
    kbi_puts(t, ", \"label\": \"");
    kbi_csv_flags(t, r->flags);
    kbi_puts(t, "\"");
}

static void kbi_gbench_aggregates(kbi_text* t, const kb_result* r, const double* ms, const kbi_gbench_family* f) {
    static const char* const names[] = { "mean", "median", "stddev", "cv" };
    kb_stats s = kb_summarize(ms, f->repetitions);
    const double values[] = { s.mean * 1e6, s.median * 1e6, s.std * 1e6, s.cv };
    for (int i = 0; i < KBI_COUNT(names); i++) {
        char suffix[16];
        snprintf(suffix, sizeof suffix, "_%s", names[i]);
        if (!kbi_finite(values[i])) continue;
        kbi_gbench_begin(t, r, suffix, f);
        kbi_putf(t,
                 "\"run_type\": \"aggregate\", \"aggregate_name\": \"%s\", \"aggregate_unit\": \"%s\", "
                 "\"iterations\": %d, ",
                 names[i], i == 3 ? "percentage" : "time", f->repetitions);
        kbi_gbench_time(t, values[i]);
        kbi_puts(t, "}");
    }
}

static void kbi_gbench_record(kbi_text* t, const kb_result* r, const kbi_gbench_family* f) {
    double ms[KBI_PROCESSES];
    int64_t launches = KBI_MAX(r->launches_per_sample, (int64_t)1) * KBI_MAX(r->samples, (int64_t)1);
    for (int i = 0; i < f->repetitions; i++) {
        ms[i] = kbi_repetition(r, f->repetitions, i);
        kbi_gbench_begin(t, r, "", f);
        kbi_putf(t, "\"run_type\": \"iteration\", \"repetition_index\": %d, \"iterations\": %lld, ", i,
                 (long long)launches);
        kbi_gbench_time(t, ms[i] * 1e6);
        kbi_gbench_rates(t, r, ms[i]);
        kbi_puts(t, "}");
    }
    if (f->repetitions > 1) kbi_gbench_aggregates(t, r, ms, f);
}

static void kbi_gbench(kbi_text* t, const kb_result* records, int64_t n) {
    kbi_gbench_family f = { -1, 0, kbi_repetitions(records, n) };
    const kb_result* before = NULL;
    kbi_gbench_context(t, n ? records : NULL, n);
    for (int64_t i = 0; i < n; i++) {
        const kb_result* r = &records[i];
        if (!kbi_has_time(r)) continue;
        bool same =
            before && kbi_same_operation(before, r) && kbi_same_text(before->implementation, r->implementation);
        f.instance = same ? f.instance + 1 : 0;
        f.family += !same;
        kbi_gbench_record(t, r, &f);
        before = r;
    }
    kbi_puts(t, "\n]\n}\n");
}

// --- Go's benchmark format: what benchstat reads ---

// Writes a benchmark name: replaces blanks, and a suffix such as -8 that benchstat would read as GOMAXPROCS.
static void kbi_go_name(kbi_text* t, const char* name) {
    kbi_text clean = KBI_BLANK;
    kbi_clean(&clean, name);
    size_t end = clean.n;
    while (end && isdigit((unsigned char)clean.s[end - 1])) end--;
    if (end && end < clean.n && clean.s[end - 1] == '-') clean.s[end - 1] = '_';
    for (size_t i = 0, n; i < clean.n; i += n) {
        unsigned code;
        n = (size_t)kbi_utf8(clean.s + i, &code);
        bool blank = code == ' ' || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
                     code == 0x202f || code == 0x205f || code == 0x3000;
        kbi_put(t, blank ? "_" : clean.s + i, blank ? 1 : n);
    }
    kbi_text_free(&clean);
}

static void kbi_go_value(kbi_text* t, double x, const char* unit) { // writes x without an exponent
    char number[400];
    if (!kbi_finite(x)) return;
    snprintf(number, sizeof number, x >= 1e6 ? "%.0f" : "%.9f", x);
    kbi_unlocalise(number);
    for (size_t n = strlen(number); strchr(number, '.') && (number[n - 1] == '0' || number[n - 1] == '.'); n--) {
        bool point = number[n - 1] == '.';
        number[n - 1] = 0;
        if (point) break;
    }
    kbi_putf(t, " %s %s", number, unit);
}

// Writes counters, for example "12 hits" or "0.93 hit_ratio-%". benchstat compares values by their unit, so each
// value of a case needs its own unit.
static void kbi_go_counters(kbi_text* t, const kb_result* r) {
    for (int64_t i = 0; i < r->counters.n; i++) {
        const char *name = r->counters.of[i].name, *unit = kbi_object_text(&r->counter_units, name);
        kbi_text words = KBI_BLANK;
        kbi_go_name(&words, name);
        if (unit && *unit) kbi_puts(&words, "-"), kbi_go_name(&words, unit);
        kbi_go_value(t, kbi_object_number(&r->counters, name), words.s);
        kbi_text_free(&words);
    }
}

// Settings are the GPU and the CPU, which do not change from run to run: benchstat compares only results with
// equal settings.
static void kbi_go_machine(kbi_text* t, const kb_result* r) {
    const char* texts[][2] = { { "gpu", r->gpu }, { "cpu", r->cpu } };
    for (int i = 0; i < KBI_COUNT(texts); i++) {
        if (!texts[i][1]) continue;
        kbi_putf(t, "%s: ", texts[i][0]);
        kbi_clean(t, texts[i][1]);
        kbi_puts(t, "\n");
    }
}

static void kbi_go(kbi_text* t, const kb_result* records, int64_t n) {
    kbi_puts(t, "pkg: kbench\nUnit B/s better=higher\nUnit FLOP/s better=higher\nUnit items/s better=higher\n"
                "Unit %roof better=higher\nUnit peak-B better=lower assume=exact\n");
    const int repetitions = kbi_repetitions(records, n);
    for (int64_t i = 0; i < n; i++) {
        const kb_result* r = &records[i];
        const int count = kbi_has_time(r) ? repetitions : 0;
        if (!i || !kbi_same_text(r->gpu, r[-1].gpu) || !kbi_same_text(r->cpu, r[-1].cpu)) kbi_go_machine(t, r);
        if (!count) kbi_puts(t, "--- FAIL: Benchmark"), kbi_go_name(t, r->name), kbi_puts(t, "\n");
        for (int k = 0; k < count; k++) {
            const double ms = kbi_repetition(r, count, k);
            kbi_puts(t, "Benchmark"), kbi_go_name(t, r->name);
            kbi_putf(t, " %lld", (long long)KBI_MAX(r->samples, (int64_t)1));
            kbi_go_value(t, ms * 1e6, "ns/op");
            kbi_go_value(t, r->bytes / (ms / 1e3), "B/s");
            kbi_go_value(t, r->flops / (ms / 1e3), "FLOP/s");
            kbi_go_value(t, r->items_per_second * r->time_ms / ms, "items/s");
            kbi_go_value(t, r->gpu_efficiency * r->time_ms / ms, "%roof");
            if (r->memory_bytes != KB_NONE) kbi_go_value(t, (double)r->memory_bytes, "peak-B");
            kbi_go_counters(t, r);
            kbi_puts(t, "\n");
        }
    }
}

/*-----------------------------------------------------------------
  >>report      report.md: every case, summaries by size, the best of each operation, bottlenecks.
-----------------------------------------------------------------*/

static void kbi_report_operation(kbi_text* t, const kb_result* r) {
    kbi_md_text(t, r->operation ? r->operation : "");
    if (r->direction) kbi_puts(t, " "), kbi_md_text(t, r->direction);
}

static void kbi_report_number(kbi_text* t, double x, int digits, const char* unit) {
    char out[40];
    if (kbi_finite(x))
        kbi_putf(t, " %s%s |", kbi_digits(x, digits, out), unit);
    else
        kbi_puts(t, " |");
}

static void kbi_report_row(kbi_text* t, const kb_result* r) {
    char out[40];
    kbi_md_case(t, r);
    if (r->status != KB_OK) {
        kbi_putf(t, " %s | | | | | | | | |\n", kbi_md_word(r));
        return;
    }
    kbi_putf(t, " %s", kbi_show(r->time_ms_mean, 4, out));
    kbi_putf(t, " ± %s |", kbi_show(r->time_ms_std, 2, out));
    kbi_report_number(t, r->time_ms_min, 4, "");
    kbi_report_number(t, r->time_ms_max, 4, "");
    kbi_report_number(t, r->inference_speed, 4, "");
    kbi_report_number(t, r->throughput_gbps, 4, "");
    kbi_report_number(t, r->memory_mb, 4, "");
    kbi_report_number(t, r->gpu_efficiency, 3, "%");
    kbi_report_number(t, r->speedup, 3, "x");
    kbi_puts(t, " "), kbi_md_text(t, r->rating ? r->rating : ""), kbi_puts(t, " |\n");
}

static void kbi_report_cases(kbi_text* t, const kb_result* records, int64_t n) {
    kbi_puts(t, "\n## Cases\n\nTimes are in ms, memory in MiB. Efficiency is the share of the measured peak "
                "that limits the case. Speedup is over the baseline. "
                "The rating compares the best verified time of a shape with the time of the case.\n");
    for (int64_t i = 0; i < n; i++) {
        if (!i || !kbi_same_operation(&records[i - 1], &records[i])) {
            kbi_puts(t, "\n### "), kbi_report_operation(t, &records[i]);
            kbi_puts(
                t, "\n\n| implementation | case | mean ± std | min | max | launches/s | GB/s | memory | efficiency | "
                   "speedup | rating |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
        }
        kbi_report_row(t, &records[i]);
    }
}

enum { KBI_REPORT_BOUNDS = 5 };
typedef struct kbi_report_sum { // sums over cases of an operation that share one property, such as the size
    const kb_result* first;
    int64_t n, value, wins, bound[KBI_REPORT_BOUNDS];
    double logs, efficiency;
    const kb_result *best, *worst; // by efficiency
} kbi_report_sum;

static kbi_report_sum* kbi_report_add(kbi_report_sum* sums, int64_t* count, kbi_map* map, const kb_result* r,
                                      const char* what, int64_t value) {
    char text[40];
    snprintf(text, sizeof text, "|%lld|", (long long)value);
    uint64_t key = kbi_hash(14695981039346656037u, r->operation ? r->operation : "");
    key = kbi_hash(kbi_hash(kbi_hash(kbi_hash(key, "|"), r->direction ? r->direction : ""), text), what);
    kbi_mapped* at = kbi_map_find(map, key);
    if (!at->key) {
        memset(&sums[*count], 0, sizeof *sums);
        sums[*count].first = r;
        sums[*count].value = value;
        kbi_map_take(map, at, key, (intptr_t)(*count)++);
    }
    kbi_report_sum* s = &sums[at->at];
    s->n++;
    s->logs += log(r->time_ms);
    return s;
}

static bool kbi_report_timed(const kb_result* r) {
    return r->status == KB_OK && r->time_ms > 0 && kbi_finite(r->time_ms);
}

// Writes geometric means for each value of a size axis, if the axis has at least two values.
static void kbi_report_by(kbi_text* t, const kb_result* records, int64_t n, const char* name) {
    const kbi_key* key = kbi_key_named(name);
    kbi_report_sum* sums = KBI_GROW(NULL, kbi_report_sum, n + 1);
    kbi_map map = KBI_BLANK;
    int64_t count = 0;
    bool several = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t value = *(const kbi_field_whole*)kbi_field(&records[i], key);
        if (value == KB_NONE || !kbi_report_timed(&records[i])) continue;
        kbi_report_add(sums, &count, &map, &records[i], records[i].implementation ? records[i].implementation : "",
                       value);
        several |= value != sums[0].value;
    }
    if (several) {
        kbi_putf(t,
                 "\n### By %s\n\n| operation | implementation | %s | cases | geometric mean, ms "
                 "|\n|---|---|--:|--:|--:|\n",
                 name, name);
        for (int64_t i = 0; i < count; i++) {
            char out[40];
            kbi_puts(t, "| "), kbi_report_operation(t, sums[i].first), kbi_puts(t, " | ");
            kbi_md_text(t, sums[i].first->implementation ? sums[i].first->implementation : "");
            kbi_putf(t, " | %lld | %lld | %s |\n", (long long)sums[i].value, (long long)sums[i].n,
                     kbi_show(exp(sums[i].logs / (double)sums[i].n), 4, out));
        }
    }
    KBENCH_FREE(sums);
    KBENCH_FREE(map.slots);
}

static const struct {
    const char *bound, *change;
} kbi_report_bounds[KBI_REPORT_BOUNDS] = {
    { "memory", "move fewer bytes: fuse with the previous or next operation, read each element once, use a smaller "
                "type" },
    { "compute", "do fewer or cheaper operations: tensor cores, a smaller type, no work on padding" },
    { "latency", "do more work per launch: a larger batch, fewer and larger launches, a CUDA graph" },
    { "L2", "keep reused data closer: tiles in shared memory or registers, wider loads" },
    { "launch", "do more work per launch: a larger batch, fused kernels, a CUDA graph" }
};

static kbi_report_sum* kbi_report_sums(const kb_result* records, int64_t n, int64_t* count) {
    kbi_report_sum* sums = KBI_GROW(NULL, kbi_report_sum, n + 1);
    kbi_map map = KBI_BLANK;
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        const kb_result* r = &records[i];
        if (!kbi_report_timed(r)) continue;
        kbi_report_sum* s = kbi_report_add(sums, count, &map, r, r->implementation ? r->implementation : "", 0);
        s->wins += r->implementation && kbi_is(r->winner, r->implementation);
        for (int b = 0; b < KBI_REPORT_BOUNDS; b++) s->bound[b] += kbi_is(r->bound, kbi_report_bounds[b].bound);
        if (!kbi_finite(r->gpu_efficiency)) continue;
        if (!s->best || r->gpu_efficiency > s->best->gpu_efficiency) s->best = r;
        if (!s->worst || r->gpu_efficiency < s->worst->gpu_efficiency) s->worst = r;
    }
    KBENCH_FREE(map.slots);
    return sums;
}

static void kbi_report_efficiency(kbi_text* t, const kb_result* r) { // "81.2% in CASE"
    char out[40];
    if (r) kbi_putf(t, "%s in ", kbi_show_percent(r->gpu_efficiency / 100, out)), kbi_md_text(t, r->name);
}

static void kbi_report_best(kbi_text* t, const kbi_report_sum* sums, int64_t count) {
    kbi_puts(t, "\n## Best configurations\n\n| operation | implementation | cases | fastest in | geometric "
                "mean, ms | highest efficiency |\n|---|---|--:|--:|--:|---|\n");
    for (int64_t i = 0; i < count; i++) {
        const kbi_report_sum* s = &sums[i];
        char out[40];
        kbi_puts(t, "| "), kbi_report_operation(t, s->first), kbi_puts(t, " | ");
        kbi_md_text(t, s->first->implementation ? s->first->implementation : "");
        kbi_putf(t, " | %lld | %lld | %s | ", (long long)s->n, (long long)s->wins,
                 kbi_show(exp(s->logs / (double)s->n), 4, out));
        kbi_report_efficiency(t, s->best);
        kbi_puts(t, " |\n");
    }
}

static void kbi_report_bottlenecks(kbi_text* t, const kbi_report_sum* sums, int64_t count) {
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        const kbi_report_sum* s = &sums[i];
        int most = 0;
        for (int b = 1; b < KBI_REPORT_BOUNDS; b++)
            if (s->bound[b] > s->bound[most]) most = b;
        if (!s->bound[most]) continue;
        if (!any)
            kbi_puts(t, "\n## Bottlenecks\n\n| operation | implementation | bound by | lowest efficiency | what to "
                        "change |\n|---|---|---|---|---|\n");
        any = true;
        kbi_puts(t, "| "), kbi_report_operation(t, s->first), kbi_puts(t, " | ");
        kbi_md_text(t, s->first->implementation ? s->first->implementation : "");
        kbi_putf(t, " | %s (%lld of %lld) | ", kbi_report_bounds[most].bound, (long long)s->bound[most],
                 (long long)s->n);
        kbi_report_efficiency(t, s->worst);
        kbi_putf(t, " | %s |\n", kbi_report_bounds[most].change);
    }
}

static void kbi_report_flags(kbi_text* t, const kb_result* records, int64_t n) {
    int64_t counts[KB_FLAG_COUNT] = { 0 };
    bool any = false, gpu = n && records[0].gpu;
    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < KB_FLAG_COUNT; f++) counts[f] += (int64_t)(records[i].flags >> f & 1);
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        if (!counts[f]) continue;
        if (!any) kbi_puts(t, "\n## Flags\n\n| flag | cases | what to do |\n|---|--:|---|\n");
        any = true;
        kbi_putf(t, "| %s | %lld | %s |\n", kb_flag_name((kb_flag)f), (long long)counts[f],
                 kbi_flag_advice((kb_flag)f, gpu));
    }
}

static void kbi_report(kbi_text* t, const kb_result* records, int64_t n) {
    static const char* const sizes[] = { "batch_size", "sequence_length", "tensor_dimension" };
    int64_t count;
    size_t before;
    kbi_puts(t, "# Benchmark report\n\n");
    for (int64_t i = 0; i < n; i++)
        if (!i || !kbi_md_same_machine(&records[i - 1], &records[i])) kbi_md_machine(t, &records[i]);
    kbi_report_cases(t, records, n);
    before = t->n;
    kbi_puts(t, "\n## Summaries\n");
    size_t heading = t->n;
    for (int i = 0; i < KBI_COUNT(sizes); i++) kbi_report_by(t, records, n, sizes[i]);
    if (t->n == heading) t->s[t->n = before] = 0;
    kbi_report_sum* sums = kbi_report_sums(records, n, &count);
    if (count) kbi_report_best(t, sums, count), kbi_report_bottlenecks(t, sums, count);
    KBENCH_FREE(sums);
    kbi_report_flags(t, records, n);
}

/*-----------------------------------------------------------------
  >>svg         SVG: shapes, scales, axes, labels, colours.
-----------------------------------------------------------------*/

// Escapes a text from a record for HTML and XML, in elements and attributes.
static void kbi_markup(kbi_text* t, const char* s) {
    kbi_text clean = KBI_BLANK;
    kbi_clean(&clean, s);
    for (const char* p = clean.s ? clean.s : ""; *p; p++) {
        const char* entity = *p == '&'    ? "&amp;"
                             : *p == '<'  ? "&lt;"
                             : *p == '>'  ? "&gt;"
                             : *p == '"'  ? "&quot;"
                             : *p == '\'' ? "&#39;"
                                          : NULL;
        if (entity) kbi_puts(t, entity);
        // not characters of XML
        else if (!strncmp(p, "\xef\xbf\xbe", 3) || !strncmp(p, "\xef\xbf\xbf", 3))
            kbi_puts(t, "\xef\xbf\xbd"), p += 2;
        else
            kbi_put(t, p, 1);
    }
    kbi_text_free(&clean);
}

static void kbi_draw_number(kbi_text* t, double x) { // rounded to 0.1 pixels; 0 if x is not finite
    long long tenths = kbi_finite(x) && fabs(x) < 1e9 ? llround(10 * x) : 0, whole = llabs(tenths) / 10;
    kbi_putf(t, "%s%lld", tenths < 0 ? "-" : "", whole);
    if (tenths % 10) kbi_putf(t, ".%lld", llabs(tenths) % 10);
}

// Formats markup: ~ inserts a double, ^ an int, $ a text that is escaped, and @ a text without escaping.
static void kbi_draw(kbi_text* t, const char* form, ...) {
    va_list list;
    va_start(list, form);
    for (const char* p = form; *p; p++) {
        size_t n = strcspn(p, "~^$@");
        kbi_put(t, p, n);
        p += n;
        if (!*p) break;
        if (*p == '~')
            kbi_draw_number(t, va_arg(list, double));
        else if (*p == '^')
            kbi_putf(t, "%d", va_arg(list, int));
        else if (*p == '$')
            kbi_markup(t, va_arg(list, const char*));
        else
            kbi_puts(t, va_arg(list, const char*));
    }
    va_end(list);
}

static const double kbi_glyph = 6.5; // assumed width of a character in labels, in pixels; true for wide fonts

static const char* kbi_clip(const char* s, int most, kbi_text* out) {
    out->n = 0;
    kbi_clean(out, s ? s : "");
    kbi_put(out, "", 0);
    if (kbi_width(out->s, out->n) <= most) return out->s;
    size_t end = 0;
    for (int width = 0; end < out->n; end++)
        if ((out->s[end] & 0xc0) != 0x80 && width++ == KBI_MAX(most, 2) - 1) break;
    out->n = end;
    kbi_puts(out, "\xe2\x80\xa6");
    return out->s;
}

// Draws text. anchor: SVG text-anchor (start, middle or end); style: CSS classes of kbi_svg_style, or "".
static void kbi_draw_text(kbi_text* t, double x, double y, const char* anchor, const char* style, const char* text) {
    kbi_draw(t, "<text x='~' y='~'", x, y);
    if (*style) kbi_draw(t, " class='@'", style);
    if (*anchor != 's') kbi_draw(t, " text-anchor='@'", anchor);
    kbi_draw(t, ">$</text>", text);
}

static void kbi_draw_line(kbi_text* t, double x1, double y1, double x2, double y2, const char* style) {
    kbi_draw(t, "<path class='@' d='M~ ~L~ ~'/>", style, x1, y1, x2, y2);
}

// --- implementations differ by colour, and also by mark and dash for readers who cannot see the colours ---

enum { KBI_HUES = 6, KBI_DASHES = 4 };

static const char* const kbi_mark_shapes[] = { // SVG paths relative to the centre, about 7 pixels wide
    "-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "-3-3h6v6h-6z",
    "0-4.2l4 7h-8z",
    "0-4.6l4.2 4.6l-4.2 4.6l-4.2-4.6z",
    "0 4.2l4-7h-8z",
    "-3-3l6 6m0-6l-6 6",
    "-4 0l2-3.5h4l2 3.5l-2 3.5h-4z",
    "-4 0h8m-4-4v8"
};

// style: additional CSS classes; tip: tooltip, or NULL.
static void kbi_draw_mark_of(kbi_text* t, double x, double y, int hue, int mark, const char* style, const char* tip) {
    kbi_draw(t, "<path class='mk k^@' d='M~ ~m@'", hue, style, x, y, kbi_mark_shapes[mark]);
    if (tip)
        kbi_draw(t, "><title>$</title></path>", tip);
    else
        kbi_puts(t, "/>");
}

static void kbi_draw_mark(kbi_text* t, double x, double y, int who, const char* tip) {
    kbi_draw_mark_of(t, x, y, who % KBI_HUES, who % KBI_COUNT(kbi_mark_shapes), "", tip);
}

static double kbi_draw_legend(kbi_text* t, const char* const* names, const bool* shown, int n, double x, double y,
                              double width) {
    double at = 0, down = 0;
    kbi_text cut = KBI_BLANK;
    for (int i = 0; i < n; i++) {
        if (!shown[i]) continue;
        const char* name = kbi_clip(names[i], (int)((width - 24) / kbi_glyph), &cut);
        double wide = 34 + kbi_glyph * kbi_width(name, strlen(name));
        if (at > 0 && at + wide > width + 12) at = 0, down += 16;
        kbi_draw(t, "<path class='ln k^ d^' d='M~ ~h18'/>", i % KBI_HUES, i % KBI_DASHES, x + at, y + down);
        kbi_draw_mark(t, x + at + 9, y + down, i, NULL);
        kbi_draw_text(t, x + at + 22, y + down + 4, "start", "", name);
        at += wide;
    }
    kbi_text_free(&cut);
    return down + 16;
}

// --- scales ---

typedef struct kbi_scale { // maps values to pixels
    double lo, hi, from, to;
    bool log;
} kbi_scale;

static double kbi_at(const kbi_scale* s, double x) {
    double share = s->log ? log(x / s->lo) / log(s->hi / s->lo) : (x - s->lo) / (s->hi - s->lo);
    return s->from + KBI_MAX(-0.5, KBI_MIN(share, 1.5)) * (s->to - s->from);
}

// Returns a scale that covers lo to hi with a margin at both ends, also if lo equals hi. The values come from a
// file, so they are clamped to 1e-30 to 1e30, which keeps quotients finite.
static kbi_scale kbi_scale_of(double lo, double hi, double room, bool log_) {
    const double least = log_ ? 1e-30 : -1e30, most = 1e30;
    kbi_scale s = { KBI_MIN(KBI_MAX(lo, least), most), KBI_MIN(KBI_MAX(hi, least), most), 0, 1, log_ };
    if (!(hi >= lo)) s.lo = log_ ? 1 : 0, s.hi = 1;
    if (log_) {
        double more = s.hi / s.lo > 1.05 ? pow(s.hi / s.lo, room) : 1.5;
        s.lo /= more, s.hi *= more;
    } else {
        double more = s.hi > s.lo ? room * (s.hi - s.lo) : fabs(s.hi) > 0 ? 0.1 * fabs(s.hi) : 0.5;
        s.lo -= more, s.hi += more;
    }
    return s;
}

enum { KBI_TICKS = 16 };

static int kbi_ticks(const kbi_scale* s, int most, double out[KBI_TICKS]) {
    static const double steps[] = { 1, 2, 5, 10 };
    double decades = s->log ? log10(s->hi / s->lo) : 0;
    int n = 0;
    if (s->log && decades > 0.7) {
        int stride = (int)ceil(decades / most), fine = decades * 3 <= most ? 3 : decades * 2 <= most ? 2 : 1;
        static const double within[] = { 1, 2, 5, 1, 3, 0, 1, 0, 0 };
        for (int e = (int)floor(log10(s->lo)); e <= (int)ceil(log10(s->hi)); e++)
            for (int k = 0; k < fine; k++) {
                double x = within[3 * (3 - fine) + k] * pow(10, e);
                bool in = x >= s->lo * 0.999999 && x <= s->hi * 1.000001;
                if (in && ((e % stride) + stride) % stride == 0 && n < KBI_TICKS) out[n++] = x;
            }
        return n;
    }
    double span = s->hi - s->lo, unit = pow(10, floor(log10(span / most))), step = 10 * unit;
    for (int k = KBI_COUNT(steps) - 1; k >= 0; k--)
        if (span / (steps[k] * unit) <= most + 0.5) step = steps[k] * unit;
    for (double k = ceil(s->lo / step - 1e-9); k * step <= s->hi + 1e-9 * span && n < KBI_TICKS; k++)
        out[n++] = fabs(k) < 0.5 ? 0 : k * step;
    return n;
}

// As few digits as necessary: 0.5, 20, 1500, 2e+06.
static const char* kbi_tick_text(double x, char out[40]) {
    int digits = 1;
    for (; digits < 6; digits++) {
        snprintf(out, 40, "%.*e", digits - 1, x);
        if (fabs(strtod(out, NULL) - x) <= 1e-6 * fabs(x)) break;
    }
    if (x == 0 || (fabs(x) >= 1e-4 && fabs(x) < 1e6)) return kbi_digits(x, digits, out);
    snprintf(out, 40, "%.*g", digits, x);
    kbi_unlocalise(out);
    return out;
}

// Returns a size as text, with a binary suffix if possible: 4096 is 4K.
static const char* kbi_size_text(double x, char out[40]) {
    static const char units[] = "KMGT";
    int u = -1;
    for (; x >= 1024 && fmod(x, 1024) == 0 && u + 1 < (int)strlen(units); u++) x /= 1024;
    kbi_tick_text(x, out);
    if (u >= 0) snprintf(out + strlen(out), 2, "%c", units[u]);
    return out;
}

// --- a plot's frame ---

typedef struct kbi_frame {
    kbi_scale x, y;
} kbi_frame;

// The number at a grid line is its y value times scale.
static void kbi_draw_y(kbi_text* t, const kbi_frame* f, double scale, const char* title) {
    double ticks[KBI_TICKS], left = f->x.from, top = f->y.to;
    char text[40];
    int n = kbi_ticks(&f->y, 5, ticks);
    for (int i = 0; i < n; i++) {
        double y = kbi_at(&f->y, ticks[i]);
        kbi_draw_line(t, left, y, f->x.to, y, "grid");
        const double x = ticks[i] * scale;
        const bool thousands = fabs(x) >= 1e5 && fabs(x) < 1e6; // six digits do not fit left of the axis
        kbi_tick_text(thousands ? x / 1000 : x, text);
        kbi_draw_text(t, left - 6, y + 4, "end", "dim", thousands ? strcat(text, "k") : text);
    }
    kbi_draw_text(t, left, top - 8, "start", "dim", title);
}

// Draws the ticks and labels of the x axis, without labels that would touch the previous label.
static void kbi_draw_x(kbi_text* t, const kbi_frame* f, const double* values, const char* const* labels, int n,
                       const char* title) {
    double base = f->y.from, until = -1e9;
    kbi_draw_line(t, f->x.from, base, f->x.to, base, "axis");
    for (int i = 0; i < n; i++) {
        double x = kbi_at(&f->x, values[i]), half = kbi_glyph / 2 * (double)strlen(labels[i]);
        kbi_draw_line(t, x, base, x, base + 4, "axis");
        if (x - half < until + 4) continue;
        // within the figure
        x = KBI_MAX(half - 40 + f->x.from, KBI_MIN(x, f->x.to + 8 - half));
        kbi_draw_text(t, x, base + 16, "middle", "dim", labels[i]);
        until = x + half;
    }
    kbi_text cut = KBI_BLANK;
    kbi_draw_text(t, f->x.to, base + 31, "end", "dim", kbi_clip(title, (int)(f->x.to / kbi_glyph), &cut));
    kbi_text_free(&cut);
}

static void kbi_draw_round_x(kbi_text* t, const kbi_frame* f, int most, const char* title) {
    double ticks[KBI_TICKS];
    char text[KBI_TICKS][40];
    const char* labels[KBI_TICKS];
    int n = kbi_ticks(&f->x, most, ticks);
    for (int i = 0; i < n; i++) labels[i] = kbi_tick_text(ticks[i], text[i]);
    kbi_draw_x(t, f, ticks, labels, n, title);
}

// --- style ---

static const char* const kbi_svg_style[] = {
    ".halo{paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}",
    "svg text{font:11px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;",
    "fill:var(--fg);font-variant-numeric:tabular-nums}",
    "svg .dim{fill:var(--dim)}svg .b{font-weight:600}svg .big{font-size:12.5px;font-weight:600}",
    "svg .small{font-size:11px}",
    ".grid{stroke:var(--line);fill:none}.axis{stroke:var(--dim);fill:none}",
    ".thin{stroke:currentColor;fill:none;opacity:.45}.roof{stroke:var(--fg);fill:none;stroke-width:1.5}",
    ".hint{stroke:var(--dim);fill:none;stroke-dasharray:2 3}",
    ".zone{fill:var(--soft)}.cell{fill:currentColor;stroke:var(--line)}.bar{fill:currentColor}",
    ".ln{stroke:currentColor;fill:none;stroke-width:1.6;stroke-linejoin:round}",
    ".d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 2}.d3{stroke-dasharray:8 3 2 3}",
    ".area{fill:currentColor;opacity:.2}.mk{fill:currentColor;stroke:currentColor;stroke-width:1.3}",
    ".hollow{fill:var(--bg)}.pt{stroke:currentColor;stroke-width:2.6;stroke-linecap:round;fill:none;opacity:.75}",
    ".k0{color:var(--c0)}.k1{color:var(--c1)}.k2{color:var(--c2)}",
    ".k3{color:var(--c3)}.k4{color:var(--c4)}.k5{color:var(--c5)}"
};

static const struct { // colours for white and for dark backgrounds (Okabe and Ito 2008)
    const char *name, *light, *dark;
} kbi_colours[] = { { "bg", "#ffffff", "#14171c" },   { "fg", "#1c2128", "#e4e8ee" },
                    { "dim", "#59636f", "#9aa5b3" },  { "line", "#dde2e8", "#323a45" },
                    { "soft", "#f3f5f8", "#1e232b" }, { "bad", "#b3261e", "#ff9a8f" },
                    { "good", "#006b4f", "#5fd3ae" }, { "c0", "#0072b2", "#56b4e9" },
                    { "c1", "#d55e00", "#f08a3c" },   { "c2", "#009e73", "#2fc597" },
                    { "c3", "#cc79a7", "#dd94bd" },   { "c4", "#c98a00", "#e6b23a" },
                    { "c5", "#4b5563", "#a9b4c4" } };

// Not every SVG program supports CSS variables, so the style gets fixed colours.
static void kbi_svg_plain_style(kbi_text* t) {
    for (int i = 0; i < KBI_COUNT(kbi_svg_style); i++) {
        for (const char* p = kbi_svg_style[i]; *p;) {
            const char* at = strstr(p, "var(--");
            kbi_put(t, p, at ? (size_t)(at - p) : strlen(p));
            if (!at) break;
            size_t n = strcspn(at + 6, ")");
            for (int c = 0; c < KBI_COUNT(kbi_colours); c++)
                if (strlen(kbi_colours[c].name) == n && !strncmp(kbi_colours[c].name, at + 6, n))
                    kbi_puts(t, kbi_colours[c].light);
            p = at + 7 + n;
        }
    }
}

/*-----------------------------------------------------------------
  >>views       which records belong into one figure, and which axes the figure has.
-----------------------------------------------------------------*/

typedef struct kbi_subset {
    const kb_result** of;
    int64_t n;
} kbi_subset;

typedef struct kbi_scene {
    const kb_result* of;
    int64_t n;
    kbi_subset timed;
    const kbi_contrast* contrast; // comparison with an earlier run; NULL: no comparison
    const char** who;             // implementations in the order of first records; the index selects the colour
    int n_who;
    kbi_arena arena;
} kbi_scene;

typedef struct kbi_panel {
    kbi_subset subset, beside; // the records in this figure; the records of all figures with the same scale
    const char* axis;          // the axis along x; NULL: the product of all numeric axes
    const char* across;        // the axis along y in a heat map
    bool product;
    const char *title, *under;
} kbi_panel;

typedef struct kbi_panels {
    kbi_panel* of;
    int64_t n, size;
} kbi_panels;

static kbi_panel* kbi_panels_add(kbi_panels* p) {
    if (p->n == p->size) {
        p->size = 2 * p->size + 16;
        p->of = KBI_GROW(p->of, kbi_panel, p->size);
    }
    memset(&p->of[p->n], 0, sizeof(kbi_panel));
    return &p->of[p->n++];
}

static void kbi_scene_open(kbi_scene* s, const kb_result* records, int64_t n, const kbi_contrast* contrast) {
    memset(s, 0, sizeof *s);
    s->of = records;
    s->n = n;
    s->contrast = contrast;
    s->timed.of = KBI_ARRAY(&s->arena, const kb_result*, n + 1);
    s->who = KBI_ARRAY(&s->arena, const char*, n + 1);
    for (int64_t i = 0; i < n; i++) {
        const char* name = records[i].implementation ? records[i].implementation : "";
        int k = 0;
        while (k < s->n_who && !kbi_is(s->who[k], name)) k++;
        if (k == s->n_who) s->who[s->n_who++] = name;
        if (kbi_has_time(&records[i])) s->timed.of[s->timed.n++] = &records[i];
    }
}

static int kbi_scene_who(const kbi_scene* s, const kb_result* r) {
    int k = 0;
    while (k + 1 < s->n_who && !kbi_is(s->who[k], r->implementation ? r->implementation : "")) k++;
    return k;
}

// --- grouping ---

typedef struct kbi_grouping { // properties that are equal within a subset, in addition to machine, cache and timer
    bool operation, implementation, params, run;
    bool numbers;          // whether numeric parameters may differ within a subset
    const char *but, *nor; // names of two parameters that may differ; NULL: none
} kbi_grouping;

static bool kbi_param_is_number(const kb_param* p) {
    return p->type == KB_AXIS_INTS || (p->type == KB_AXIS_REALS && kbi_finite(p->r));
}

static uint64_t kbi_grouping_key(const kb_result* r, const kbi_grouping* w) {
    const char* parts[] = { r->gpu,
                            r->gpu ? NULL : r->cpu,
                            r->cache,
                            r->timer,
                            w->operation ? r->operation : NULL,
                            w->operation ? r->direction : NULL,
                            w->operation ? r->dtype : NULL,
                            w->implementation ? r->implementation : NULL,
                            w->run ? r->run_id : NULL };
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < KBI_COUNT(parts); i++) h = kbi_hash(kbi_hash(h, "|"), parts[i] ? parts[i] : "");
    for (int64_t i = 0; i < r->params.n && w->params; i++) {
        const kb_param* p = &r->params.of[i];
        kbi_text value = KBI_BLANK;
        if (kbi_is(p->name, w->but) || kbi_is(p->name, w->nor) || (w->numbers && kbi_param_is_number(p))) continue;
        kbi_param_text(&value, p);
        h = kbi_hash(kbi_hash(kbi_hash(kbi_hash(h, "|"), p->name), "="), value.s ? value.s : "");
        kbi_text_free(&value);
    }
    return h;
}

static kbi_subset* kbi_split(kbi_scene* s, kbi_subset all, const kbi_grouping* w, int64_t* count) {
    kbi_subset* subsets = KBI_ARRAY(&s->arena, kbi_subset, all.n + 1);
    int64_t* at = KBI_GROW(NULL, int64_t, all.n);
    kbi_map map = KBI_BLANK;
    *count = 0;
    for (int64_t i = 0; i < all.n; i++) {
        uint64_t key = kbi_grouping_key(all.of[i], w);
        kbi_mapped* slot = kbi_map_find(&map, key);
        if (!slot->key) kbi_map_take(&map, slot, key, (intptr_t)(*count)++);
        subsets[at[i] = slot->at].n++;
    }
    for (int64_t k = 0; k < *count; k++) {
        subsets[k].of = KBI_ARRAY(&s->arena, const kb_result*, (size_t)subsets[k].n);
        subsets[k].n = 0;
    }
    for (int64_t i = 0; i < all.n; i++) subsets[at[i]].of[subsets[at[i]].n++] = all.of[i];
    KBENCH_FREE(map.slots);
    KBENCH_FREE(at);
    return subsets;
}

// --- axes ---

static double kbi_axis_value(const kb_result* r, const char* name) { // NAN: no such axis, or its value is text
    for (int64_t i = 0; i < r->params.n; i++) {
        const kb_param* p = &r->params.of[i];
        if (kbi_is(p->name, name))
            return !kbi_param_is_number(p) ? (double)NAN : p->type == KB_AXIS_REALS ? p->r : (double)p->i;
    }
    return (double)NAN;
}

static int64_t kbi_unique(double* x, int64_t n) {
    int64_t left = 0;
    kbi_sort(x, n);
    for (int64_t i = 0; i < n; i++)
        if (!left || x[i] != x[left - 1]) x[left++] = x[i];
    return left;
}

// Returns the number of distinct values on an axis; 0 if a record has no positive number on this axis.
static int64_t kbi_axis_distinct(kbi_subset subset, const char* name) {
    double* x = KBI_GROW(NULL, double, subset.n);
    int64_t n = 0;
    for (int64_t i = 0; i < subset.n; i++) {
        x[n] = kbi_axis_value(subset.of[i], name);
        if (kbi_finite(x[n]) && x[n] > 0) n++;
    }
    n = n == subset.n ? kbi_unique(x, n) : 0;
    KBENCH_FREE(x);
    return n;
}

enum { KBI_AXES = KBI_DIMENSIONS };
typedef struct kbi_swept { // the axes with several values in a subset; the axis with most values first
    const char* of[KBI_AXES];
    int64_t values[KBI_AXES];
    int n;
    bool together; // all axes change at once (512x512, 1024x1024), so the cases do not form a grid
} kbi_swept;

static void kbi_sweep_of(kbi_scene* s, kbi_subset subset, kbi_swept* out) {
    static const kbi_grouping same = { true, false, true, false, false, NULL, NULL };
    int64_t combinations;
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; subset.n && i < subset.of[0]->params.n && out->n < KBI_AXES; i++) {
        const char* name = subset.of[0]->params.of[i].name;
        int64_t values = kbi_axis_distinct(subset, name);
        int k = out->n;
        if (values < 2) continue;
        for (; k > 0 && out->values[k - 1] < values; k--)
            out->of[k] = out->of[k - 1], out->values[k] = out->values[k - 1];
        out->of[k] = name;
        out->values[k] = values;
        out->n++;
    }
    if (out->n < 2) return;
    kbi_split(s, subset, &same, &combinations);
    out->together = combinations <= out->values[0];
}

static double kbi_panel_x(const kbi_panel* p, const kb_result* r) {
    double product = 1;
    if (p->axis) return kbi_axis_value(r, p->axis);
    for (int64_t i = 0; i < r->params.n; i++)
        if (kbi_param_is_number(&r->params.of[i])) product *= kbi_axis_value(r, r->params.of[i].name);
    return product;
}

// --- selection of records: KEY=VALUE,KEY=VALUE with keys of the record, or axes ---

static const char* kbi_where_key(const char* name) { // translates short names of options, such as op
    static const char* const words[][2] = { { "op", "operation" },
                                            { "impl", "implementation" },
                                            { "dir", "direction" } };
    for (int i = 0; i < KBI_COUNT(words); i++)
        if (kbi_same_name(name, words[i][0])) return words[i][1];
    return name;
}

// NULL: the condition has no "="
static const char* kbi_where_next(const char* p, char key[64], char value[128]) {
    size_t n = strcspn(p, "=,"), m = p[n] == '=' ? strcspn(p + n + 1, ",") : 0;
    if (p[n] != '=' || !n || n > 63 || m > 127) return NULL;
    snprintf(key, 64, "%.*s", (int)n, p);
    snprintf(value, 128, "%.*s", (int)m, p + n + 1);
    return p + n + 1 + m;
}

static bool kbi_where_is(const char* words, double number, const char* value) {
    char* end;
    double wanted = kbi_real_of(value, &end);
    return words ? kbi_same_name(words, value) : kbi_finite(number) && end != value && !*end && wanted == number;
}

static bool kbi_where_one(const kb_result* r, const char* name, const char* value) {
    const kbi_key* key = kbi_key_named(kbi_where_key(name));
    if (key && key->kind == KBI_KIND_flags) {
        for (int f = 0; f < KB_FLAG_COUNT; f++)
            if (r->flags >> f & 1 && kbi_same_name(kb_flag_name((kb_flag)f), value)) return true;
        return false;
    }
    if (key && kbi_where_is(kbi_field_words(r, key), kbi_field_number(r, key), value)) return true;
    for (int64_t i = 0; i < r->params.n; i++) {
        const kb_param* p = &r->params.of[i];
        if (kbi_same_name(p->name, name))
            return kbi_where_is(p->type == KB_AXIS_STRINGS ? p->s : NULL, kbi_axis_value(r, p->name), value);
    }
    return false;
}

static bool kbi_where_holds(const char* list, const kb_result* r) {
    char key[64], value[128];
    for (const char* p = list; *p;) {
        p = kbi_where_next(p, key, value);
        if (!p || !kbi_where_one(r, key, value)) return false;
        p += *p == ',';
    }
    return true;
}

// Checks that all keys of a --where are keys of the record, or axes of one of these records. Checks only the
// syntax if records is NULL.
static bool kbi_where_known(const char* list, const kb_result* records, int64_t n) {
    char name[64], value[128];
    for (const char* p = list;; p++) {
        const char* next = kbi_where_next(p, name, value);
        const kbi_key* key = next ? kbi_key_named(kbi_where_key(name)) : NULL;
        kbi_nearest best = { name, NULL, 64 };
        bool known = key && key->kind != KBI_KIND_params && key->kind != KBI_KIND_samples;
        if (!next)
            return kbi_error("--where takes KEY=VALUE,..., for example impl=vec,n=4096, not '%s'", list), false;
        for (int i = 0; i < KBI_COUNT(kbi_keys); i++) kbi_offer(&best, kbi_keys[i].name);
        for (int64_t i = 0; i < n && !known; i++)
            for (int64_t k = 0; k < records[i].params.n && !known; k++) {
                kbi_offer(&best, records[i].params.of[k].name);
                known = kbi_same_name(records[i].params.of[k].name, name);
            }
        if (records && !known)
            return kbi_error("--where: no key of the records and no axis is called '%s'%s%s", name,
                             best.distance <= 3 ? "; the nearest name is " : "", best.distance <= 3 ? best.name : ""),
                   false;
        if (!*(p = next)) return true;
    }
}

// --- names ---

// Returns "rows=512 cols=4K", without the axes `but` and `nor`. numbers: returns only numeric values, "512x4096".
static const char* kbi_params_text(kbi_scene* s, const kb_result* r, const char* but, const char* nor, bool numbers) {
    kbi_text t = KBI_BLANK;
    kbi_put(&t, "", 0);
    for (int64_t i = 0; i < r->params.n; i++) {
        const kb_param* p = &r->params.of[i];
        if (kbi_is(p->name, "dtype") || (kbi_is(p->name, "dir") && p->type == KB_AXIS_STRINGS)) continue;
        if (kbi_is(p->name, but) || kbi_is(p->name, nor) || (numbers && !kbi_param_is_number(p))) continue;
        if (t.n) kbi_puts(&t, numbers ? "x" : " ");
        if (!numbers) kbi_clean(&t, p->name), kbi_puts(&t, "=");
        kbi_param_text(&t, p);
    }
    const char* kept = kbi_arena_text_n(&s->arena, t.s, t.n);
    kbi_text_free(&t);
    return kept;
}

static const char* kbi_case_text(kbi_scene* s, const kb_result* r, bool params) {
    kbi_text t = KBI_BLANK;
    kbi_clean(&t, r->operation ? r->operation : "");
    if (r->direction) kbi_puts(&t, " "), kbi_clean(&t, r->direction);
    if (r->dtype) kbi_puts(&t, " "), kbi_clean(&t, r->dtype);
    const char* axes = params ? kbi_params_text(s, r, NULL, NULL, false) : "";
    if (*axes) kbi_puts(&t, " "), kbi_puts(&t, axes);
    const char* kept = kbi_arena_text_n(&s->arena, t.s ? t.s : "", t.n);
    kbi_text_free(&t);
    return kept;
}

// Returns the name of a case with its implementation, in at most `most` characters. If the text is too long, axes
// are written without names.
static const char* kbi_row_text(kbi_scene* s, const kb_result* r, const char* who, int most) {
    kbi_text t = KBI_BLANK, cut = KBI_BLANK;
    kbi_putf(&t, "%s %s", kbi_case_text(s, r, true), who);
    if (kbi_width(t.s, t.n) > most) {
        t.n = 0;
        kbi_putf(&t, "%s %s %s", kbi_case_text(s, r, false), kbi_params_text(s, r, NULL, NULL, true), who);
    }
    const char* kept = kbi_arena_text(&s->arena, kbi_clip(t.s, most, &cut));
    kbi_text_free(&t);
    kbi_text_free(&cut);
    return kept;
}

// --- the figures of each kind ---

static void kbi_find_lines(kbi_scene* s, kbi_panels* out) {
    static const kbi_grouping family = { true, false, false, false, false, NULL, NULL };
    int64_t families, subsets;
    kbi_subset* of = kbi_split(s, s->timed, &family, &families);
    for (int64_t f = 0; f < families; f++) {
        kbi_swept swept;
        kbi_sweep_of(s, of[f], &swept);
        if (!swept.n) continue;
        const char* axis = swept.together ? NULL : swept.of[0];
        const kbi_grouping rest = { true, false, true, false, swept.together, axis, NULL };
        kbi_subset* parts = kbi_split(s, of[f], &rest, &subsets);
        for (int64_t i = 0; i < subsets; i++) {
            kbi_panel p = { parts[i], of[f], axis, NULL, swept.together, NULL, NULL };
            if (axis && kbi_axis_distinct(parts[i], axis) < 2) continue;
            p.title = kbi_case_text(s, parts[i].of[0], false);
            p.under = swept.together ? "" : kbi_params_text(s, parts[i].of[0], axis, NULL, false);
            *kbi_panels_add(out) = p;
        }
    }
}

static void kbi_find_heat(kbi_scene* s, kbi_panels* out) {
    static const kbi_grouping family = { true, false, false, false, false, NULL, NULL };
    int64_t families, subsets;
    kbi_subset* of = kbi_split(s, s->timed, &family, &families);
    for (int64_t f = 0; f < families; f++) {
        kbi_swept swept;
        kbi_sweep_of(s, of[f], &swept);
        if (swept.n < 2 || swept.together) continue;
        const kbi_grouping rest = { true, true, true, true, false, swept.of[0], swept.of[1] };
        kbi_subset* parts = kbi_split(s, of[f], &rest, &subsets);
        for (int64_t i = 0; i < subsets; i++) {
            kbi_panel p = { parts[i], of[f], swept.of[0], swept.of[1], false, NULL, NULL };
            if (kbi_axis_distinct(parts[i], p.axis) < 2 || kbi_axis_distinct(parts[i], p.across) < 2) continue;
            kbi_text title = KBI_BLANK;
            kbi_putf(&title, "%s, %s", kbi_case_text(s, parts[i].of[0], false),
                     parts[i].of[0]->implementation ? parts[i].of[0]->implementation : "");
            p.title = kbi_arena_text_n(&s->arena, title.s, title.n);
            p.under = kbi_params_text(s, parts[i].of[0], p.axis, p.across, false);
            kbi_text_free(&title);
            *kbi_panels_add(out) = p;
        }
    }
}

static void kbi_find_lots(kbi_scene* s, kbi_subset all, const kbi_grouping* alike, bool params, kbi_panels* out) {
    int64_t subsets;
    kbi_subset* of = kbi_split(s, all, alike, &subsets);
    for (int64_t i = 0; i < subsets; i++) {
        kbi_panel* p = kbi_panels_add(out);
        p->subset = p->beside = of[i];
        p->title = kbi_case_text(s, of[i].of[0], false);
        p->under = params ? kbi_params_text(s, of[i].of[0], NULL, NULL, false) : "";
    }
}

static void kbi_find_machines(kbi_scene* s, kbi_panels* out) {
    static const kbi_grouping machine = { false, false, false, false, false, NULL, NULL };
    kbi_find_lots(s, s->timed, &machine, false, out);
    for (int64_t i = 0; i < out->n; i++) {
        const kb_result* r = out->of[i].subset.of[0];
        out->of[i].title = r->gpu ? r->gpu : r->cpu ? r->cpu : "processor unknown";
        char how[64];
        // the title names the timer unless the timer is `events`, the default
        bool timer = r->timer && !(r->cache && kbi_is(r->timer, "events"));
        snprintf(how, sizeof how, "%.20s%s%.20s", r->cache ? r->cache : "", r->cache && timer ? ", " : "",
                 timer ? r->timer : "");
        out->of[i].under = kbi_arena_text(&s->arena, how);
    }
}

static void kbi_find_samples(kbi_scene* s, kbi_panels* out) { // a figure has all implementations of one shape
    static const kbi_grouping group = { true, false, true, true, false, NULL, NULL };
    kbi_subset with = { NULL, 0 };
    with.of = KBI_ARRAY(&s->arena, const kb_result*, s->timed.n + 1);
    for (int64_t i = 0; i < s->timed.n; i++)
        if (s->timed.of[i]->samples_ms.n > 0) with.of[with.n++] = s->timed.of[i];
    kbi_find_lots(s, with, &group, true, out);
}

enum { KBI_PANEL_ROWS = 30 }; // largest number of rows in a figure that has one row per case

static void kbi_find_rows(kbi_subset all, kbi_panels* out) {
    for (int64_t i = 0; i < all.n; i += KBI_PANEL_ROWS) {
        kbi_panel* p = kbi_panels_add(out);
        p->beside = all;
        p->subset.of = all.of + i;
        p->subset.n = KBI_MIN((int64_t)KBI_PANEL_ROWS, all.n - i);
        p->title = p->under = "";
    }
}

/*-----------------------------------------------------------------
  >>sweeps      figures over size: lines, fitted power laws, heat maps.
-----------------------------------------------------------------*/

typedef enum kbi_metric_id { KBI_METRIC_TIME, KBI_METRIC_GBPS, KBI_METRIC_GFLOPS, KBI_METRIC_ROOF } kbi_metric_id;

static const struct {
    const char* name;
    bool log;
} kbi_metrics[] = { { "time", true }, { "GB/s", true }, { "FLOP/s", true }, { "% of roof", false } };

// Returns false if the record has no value of this metric.
static bool kbi_metric_of(int metric, const kb_result* r, double out[3]) {
    const double values[] = { r->time_ms, r->throughput_gbps, r->gflops, r->gpu_efficiency };
    double x = values[metric];
    double low = r->time_ms_ci_low / r->time_ms, high = r->time_ms_ci_high / r->time_ms;
    if (!kbi_finite(x) || !(x > 0)) return false;
    if (!(low > 0) || !kbi_finite(low) || !(high >= low) || !kbi_finite(high)) low = high = 1;
    out[0] = x;
    out[1] = metric == KBI_METRIC_TIME ? x * low : x / high;
    out[2] = metric == KBI_METRIC_TIME ? x * high : x / low;
    return true;
}

static bool kbi_subset_has(kbi_subset subset, int metric) {
    double v[3];
    for (int64_t i = 0; i < subset.n; i++)
        if (kbi_metric_of(metric, subset.of[i], v)) return true;
    return false;
}

typedef struct kbi_in_unit {
    const char* name;
    double scale;
} kbi_in_unit;

// Returns a unit in which `most`, the largest value, is a short number.
static kbi_in_unit kbi_metric_unit(int metric, double most) {
    static const struct {
        int metric;
        double from, scale;
        const char* name;
    } units[] = { { KBI_METRIC_TIME, 1e3, 1e-3, "s" },
                  { KBI_METRIC_TIME, 1, 1, "ms" },
                  { KBI_METRIC_TIME, 1e-3, 1e3, "\xc2\xb5s" },
                  { KBI_METRIC_TIME, 0, 1e6, "ns" },
                  { KBI_METRIC_GBPS, 1e3, 1e-3, "TB/s" },
                  { KBI_METRIC_GBPS, 0, 1, "GB/s" },
                  { KBI_METRIC_GFLOPS, 1e3, 1e-3, "TFLOP/s" },
                  { KBI_METRIC_GFLOPS, 0, 1, "GFLOP/s" },
                  { KBI_METRIC_ROOF, 0, 1, "%" } };
    kbi_in_unit u = { "", 1 };
    for (int i = KBI_COUNT(units) - 1; i >= 0; i--)
        if (units[i].metric == metric && most >= units[i].from) u.name = units[i].name, u.scale = units[i].scale;
    return u;
}

// Returns false if no record has a value of the metric.
static bool kbi_metric_range(int metric, kbi_subset subset, double* lo, double* hi) {
    double v[3];
    *lo = INFINITY, *hi = -INFINITY;
    for (int64_t i = 0; i < subset.n; i++)
        if (kbi_metric_of(metric, subset.of[i], v)) *lo = KBI_MIN(*lo, v[1]), *hi = KBI_MAX(*hi, v[2]);
    return *hi >= *lo;
}

static const char* kbi_tip(kbi_scene* s, const kb_result* r) {
    kbi_text t = KBI_BLANK;
    char number[40];
    kbi_putf(&t, "%s, %s\n%s", kbi_case_text(s, r, true), r->implementation ? r->implementation : "",
             kbi_show_time(r->time_ms, number));
    if (kbi_finite(r->precision)) kbi_putf(&t, " \xc2\xb1 %s", kbi_show_percent(r->precision, number));
    if (kbi_finite(r->throughput_gbps)) kbi_putf(&t, ", %s GB/s", kbi_digits(r->throughput_gbps, 4, number));
    if (kbi_finite(r->gflops)) kbi_putf(&t, ", %s GFLOP/s", kbi_digits(r->gflops, 4, number));
    if (kbi_finite(r->gpu_efficiency))
        kbi_putf(&t, ", %s of %s", kbi_show_percent(r->gpu_efficiency / 100, number), r->roof ? r->roof : "its roof");
    const char* kept = kbi_arena_text_n(&s->arena, t.s, t.n);
    kbi_text_free(&t);
    return kept;
}

static void kbi_draw_titles(kbi_text* t, const kbi_panel* p, double width) {
    kbi_text cut = KBI_BLANK;
    int room = (int)(width / 8.4); // bold
    kbi_draw(t, "<text x='0' y='14' class='big'>$", kbi_clip(p->title, room, &cut));
    room -= kbi_width(cut.s, cut.n) + 2;
    if (*p->under && room > 8)
        kbi_draw(t, " <tspan class='dim small' font-weight='400'>$</tspan>", kbi_clip(p->under, room, &cut));
    kbi_puts(t, "</text>");
    kbi_text_free(&cut);
}

// --- lines over size ---

typedef struct kbi_point {
    double x, v[3];
    const kb_result* r;
} kbi_point;

static int kbi_order_points(const void* a, const void* b) {
    const kbi_point *p = (const kbi_point*)a, *q = (const kbi_point*)b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->r > q->r) - (p->r < q->r);
}

// The caller frees the returned array.
static kbi_point* kbi_points_of(kbi_scene* s, const kbi_panel* p, int who, int metric, int64_t* n) {
    kbi_point* of = KBI_GROW(NULL, kbi_point, p->subset.n);
    *n = 0;
    for (int64_t i = 0; i < p->subset.n; i++) {
        kbi_point* at = &of[*n];
        at->r = p->subset.of[i];
        at->x = kbi_panel_x(p, at->r);
        if (kbi_scene_who(s, at->r) == who && at->x > 0 && kbi_metric_of(metric, at->r, at->v)) ++*n;
    }
    qsort(of, (size_t)*n, sizeof *of, kbi_order_points);
    return of;
}

static void kbi_draw_series(kbi_text* t, kbi_scene* s, const kbi_frame* f, const kbi_point* of, int64_t n, int who,
                            bool tips) {
    kbi_draw(t, "<path class='area k^' d='", who % KBI_HUES);
    for (int64_t i = 0; i < 2 * n; i++) {
        const kbi_point* p = &of[i < n ? i : 2 * n - 1 - i];
        kbi_draw(t, "@~ ~", i ? "L" : "M", kbi_at(&f->x, p->x), kbi_at(&f->y, p->v[i < n ? 1 : 2]));
    }
    kbi_draw(t, "z'/><path class='ln k^ d^' d='", who % KBI_HUES, who % KBI_DASHES);
    for (int64_t i = 0; i < n; i++)
        kbi_draw(t, "@~ ~", i ? "L" : "M", kbi_at(&f->x, of[i].x), kbi_at(&f->y, of[i].v[0]));
    if (!tips) kbi_draw(t, "'/><path class='mk k^' d='", who % KBI_HUES);
    for (int64_t i = 0; i < n && !tips; i++)
        kbi_draw(t, "M~ ~m@", kbi_at(&f->x, of[i].x), kbi_at(&f->y, of[i].v[0]),
                 kbi_mark_shapes[who % KBI_COUNT(kbi_mark_shapes)]);
    kbi_puts(t, "'/>");
    for (int64_t i = 0; i < n && tips; i++)
        kbi_draw_mark(t, kbi_at(&f->x, of[i].x), kbi_at(&f->y, of[i].v[0]), who, kbi_tip(s, of[i].r));
}

static void kbi_draw_sizes(kbi_text* t, kbi_scene* s, const kbi_panel* p, const kbi_frame* f) {
    kbi_point* at = KBI_GROW(NULL, kbi_point, p->subset.n);
    double* values = KBI_GROW(NULL, double, p->subset.n);
    const char** labels = KBI_GROW(NULL, const char*, p->subset.n);
    int n = 0;
    for (int64_t i = 0; i < p->subset.n; i++) at[i].r = p->subset.of[i], at[i].x = kbi_panel_x(p, p->subset.of[i]);
    qsort(at, (size_t)p->subset.n, sizeof *at, kbi_order_points);
    for (int64_t i = 0; i < p->subset.n; i++) {
        char text[40];
        if (!(at[i].x > 0) || (n && values[n - 1] == at[i].x)) continue;
        values[n] = at[i].x;
        labels[n++] = p->axis ? kbi_arena_text(&s->arena, kbi_size_text(at[i].x, text))
                              : kbi_params_text(s, at[i].r, NULL, NULL, true);
    }
    kbi_draw_x(t, f, values, labels, n, p->axis ? p->axis : "size");
    KBENCH_FREE(at);
    KBENCH_FREE(values);
    KBENCH_FREE((void*)labels);
}

// Draws a line at the problem size that fills the L2 cache, interpolated between two measured sizes.
static void kbi_draw_cache(kbi_text* t, const kbi_panel* p, const kbi_frame* f) {
    kbi_point* at = KBI_GROW(NULL, kbi_point, p->subset.n);
    int64_t n = 0;
    for (int64_t i = 0; i < p->subset.n; i++) {
        const kb_result* r = p->subset.of[i];
        at[n].r = r, at[n].x = kbi_panel_x(p, r);
        n += at[n].x > 0 && r->l2_bytes > 0 && r->memory_bytes > 0;
    }
    qsort(at, (size_t)n, sizeof *at, kbi_order_points);
    for (int64_t i = 1; i < n; i++) {
        double l2 = (double)at[i].r->l2_bytes, a = (double)at[i - 1].r->memory_bytes,
               b = (double)at[i].r->memory_bytes;
        if (!(a <= l2 && l2 < b) || !(at[i].x > at[i - 1].x)) continue;
        double share = log(l2 / a) / log(b / a), x = kbi_at(&f->x, at[i - 1].x * pow(at[i].x / at[i - 1].x, share));
        char bytes[40];
        kbi_draw_line(t, x, f->y.to - 4, x, f->y.from, "hint");
        kbi_draw(t, "<text x='~' y='~' class='dim halo' text-anchor='@'>L2, @</text>", x, f->y.to - 8,
                 x > f->x.to - 40 ? "end" : "middle", kbi_show_bytes(l2, bytes));
        break;
    }
    KBENCH_FREE(at);
}

// Returns false if no case has a value of the metric.
static bool kbi_draw_over_sizes(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric,
                                kbi_frame* f) {
    double lo, hi, left = INFINITY, right = -INFINITY;
    kbi_draw_titles(t, p, width);
    if (!kbi_metric_range(metric, p->beside, &lo, &hi)) {
        kbi_draw_text(t, 0, 44, "start", "dim", "no case has a value of this metric");
        return false;
    }
    for (int64_t i = 0; i < p->subset.n; i++) {
        double x = kbi_panel_x(p, p->subset.of[i]);
        if (x > 0) left = KBI_MIN(left, x), right = KBI_MAX(right, x);
    }
    kbi_in_unit unit = kbi_metric_unit(metric, sqrt(lo * hi));
    f->x = kbi_scale_of(left, right, 0.04, true);
    f->y = kbi_scale_of(kbi_metrics[metric].log ? lo : 0, hi, 0.06, kbi_metrics[metric].log);
    if (!kbi_metrics[metric].log) f->y.lo = 0;
    f->x.from = 46, f->x.to = width - 10;
    f->y.from = 196, f->y.to = 46;
    kbi_draw_y(t, f, unit.scale, unit.name);
    kbi_draw_sizes(t, s, p, f);
    kbi_draw_cache(t, p, f);
    return true;
}

static double kbi_draw_lines(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric) {
    bool* shown = (bool*)kbi_arena_alloc(&s->arena, (size_t)s->n_who);
    kbi_frame f;
    if (!kbi_draw_over_sizes(t, s, p, width, metric, &f)) return 60;
    for (int who = 0; who < s->n_who; who++) {
        int64_t n;
        kbi_point* of = kbi_points_of(s, p, who, metric, &n);
        shown[who] = n > 0;
        if (n) kbi_draw_series(t, s, &f, of, n, who, metric == KBI_METRIC_TIME);
        KBENCH_FREE(of);
    }
    return f.y.from + 46 + kbi_draw_legend(t, s->who, shown, s->n_who, 4, f.y.from + 46, width - 8);
}

// --- power laws: log t = log c + sum of e log x, by least squares ---

typedef struct kbi_fitted {
    double e[KBI_AXES], c, off; // exponents; constant in ms; off: standard deviation of the residuals of log t
    kbi_swept over;
    int64_t n;
    int axes;
} kbi_fitted;

// Gauss-Jordan elimination, in place. Returns false if the equations are singular.
static bool kbi_solve(double a[KBI_AXES + 1][KBI_AXES + 2], int n) {
    for (int i = 0; i < n; i++) {
        int best = i;
        for (int k = i; k < n; k++)
            if (fabs(a[k][i]) > fabs(a[best][i])) best = k;
        if (!(fabs(a[best][i]) > 1e-9)) return false;
        for (int j = 0; j <= n; j++) {
            double swap = a[i][j];
            a[i][j] = a[best][j], a[best][j] = swap;
        }
        for (int k = 0; k < n; k++) {
            double by = a[k][i] / a[i][i];
            for (int j = i; j <= n && k != i; j++) a[k][j] -= by * a[i][j];
        }
    }
    for (int i = 0; i < n; i++) a[i][n] /= a[i][i];
    return true;
}

static double kbi_fit_x(const kbi_fitted* f, const kb_result* r, int axis) {
    kbi_panel all;
    memset(&all, 0, sizeof all);
    if (!f->over.together) all.axis = f->over.of[axis];
    return log(kbi_panel_x(&all, r));
}

// Returns false if the cases are too few, or if their sizes do not determine the exponents.
static bool kbi_fit_of(kbi_scene* s, kbi_subset subset, kbi_fitted* f) {
    double a[KBI_AXES + 1][KBI_AXES + 2], squares = 0, x[KBI_AXES + 1];
    memset(a, 0, sizeof a);
    memset(f, 0, sizeof *f);
    kbi_sweep_of(s, subset, &f->over);
    f->axes = f->over.together ? 1 : f->over.n;
    f->n = subset.n;
    if (!f->axes || subset.n < f->axes + 2 || f->over.values[0] < 3) return false;
    for (int64_t i = 0; i < subset.n; i++) {
        x[0] = 1;
        for (int k = 0; k < f->axes; k++) x[k + 1] = kbi_fit_x(f, subset.of[i], k);
        for (int j = 0; j <= f->axes; j++) {
            for (int k = 0; k <= f->axes; k++) a[j][k] += x[j] * x[k];
            a[j][f->axes + 1] += x[j] * log(subset.of[i]->time_ms);
        }
    }
    if (!kbi_solve(a, f->axes + 1)) return false;
    f->c = exp(a[0][f->axes + 1]);
    for (int k = 0; k < f->axes; k++) f->e[k] = a[k + 1][f->axes + 1];
    for (int64_t i = 0; i < subset.n; i++) {
        double off = log(subset.of[i]->time_ms / f->c);
        for (int k = 0; k < f->axes; k++) off -= f->e[k] * kbi_fit_x(f, subset.of[i], k);
        squares += off * off;
    }
    f->off = sqrt(squares / (double)(subset.n - f->axes - 1));
    return kbi_finite(f->c) && kbi_finite(f->off);
}

// One power law is fitted to each subset. A subset has one operation, element type and implementation, and one
// value on each axis that is not numeric.
static kbi_subset* kbi_fit_subsets(kbi_scene* s, kbi_subset all, int64_t* n) {
    static const kbi_grouping one = { true, true, true, false, true, NULL, NULL };
    return kbi_split(s, all, &one, n);
}

// whether measured times scatter by less than about 20 % around the power law
static bool kbi_fit_follows(const kbi_fitted* f) { return f->off < 0.18; }

static void kbi_fit_text(kbi_text* t, const kbi_fitted* f, bool svg) {
    char number[40];
    if (!kbi_fit_follows(f)) {
        kbi_puts(t, "no single power law");
        return;
    }
    const char *name = svg ? "tspan" : "span", *raised = svg ? "tspan dy='-4' font-size='9'" : "sup";
    kbi_puts(t, kbi_show_time(f->c, number));
    for (int k = 0; k < f->axes; k++)
        kbi_draw(t, "<@>@$</@><@>@@</@>", svg && k ? "tspan dy='4'" : name, " &#183; ",
                 f->over.together ? "size" : f->over.of[k], name, raised, f->e[k] < 0 ? "&#8722;" : "",
                 kbi_digits(fabs(f->e[k]), fabs(f->e[k]) < 0.95 ? 2 : 3, number), svg ? name : raised);
}

static double kbi_draw_fits(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric) {
    static const kbi_grouping one = { false, true, false, false, false, NULL, NULL };
    int64_t subsets;
    kbi_subset* of = kbi_split(s, p->subset, &one, &subsets);
    kbi_frame f;
    if (!kbi_draw_over_sizes(t, s, p, width, metric, &f)) return 60;
    double y = f.y.from + 48;
    for (int64_t i = 0; i < subsets; i++) {
        int who = kbi_scene_who(s, of[i].of[0]);
        kbi_text said = KBI_BLANK;
        kbi_fitted fit;
        bool known = kbi_fit_of(s, of[i], &fit);
        if (known && fit.axes == 1 && kbi_fit_follows(&fit)) {
            double x1 = f.x.lo, x2 = f.x.hi, e = fit.e[0];
            kbi_draw(t, "<path class='ln k^ d^' d='M~ ~L~ ~'/>", who % KBI_HUES, who % KBI_DASHES, kbi_at(&f.x, x1),
                     kbi_at(&f.y, fit.c * pow(x1, e)), kbi_at(&f.x, x2), kbi_at(&f.y, fit.c * pow(x2, e)));
        }
        for (int64_t k = 0; k < of[i].n; k++)
            kbi_draw_mark(t, kbi_at(&f.x, kbi_panel_x(p, of[i].of[k])), kbi_at(&f.y, of[i].of[k]->time_ms), who,
                          NULL);
        kbi_draw_mark(t, 9, y, who, NULL);
        if (known)
            kbi_fit_text(&said, &fit, true);
        else
            kbi_puts(&said, "too few sizes");
        kbi_draw(t, "<text x='20' y='~'>$: @</text>", y + 4, s->who[who], said.s);
        kbi_text_free(&said);
        y += 16;
    }
    return y;
}

// --- heat maps ---

// Draws a heat map of times, with a cell for each pair of axis values. If several cases fall into a cell, the cell
// shows the last case.
static double kbi_draw_heat(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric) {
    double lo, hi, v[3], x0 = 62, y0 = 34;
    double* xs = KBI_ARRAY(&s->arena, double, p->subset.n);
    double* ys = KBI_ARRAY(&s->arena, double, p->subset.n);
    char text[40];
    kbi_draw_titles(t, p, width);
    if (!kbi_metric_range(metric, p->beside, &lo, &hi)) {
        kbi_draw_text(t, 0, 44, "start", "dim", "no case has a value of this metric");
        return 60;
    }
    for (int64_t i = 0; i < p->subset.n; i++) {
        xs[i] = kbi_axis_value(p->subset.of[i], p->axis);
        ys[i] = kbi_axis_value(p->subset.of[i], p->across);
    }
    int64_t nx = kbi_unique(xs, p->subset.n), ny = kbi_unique(ys, p->subset.n);
    double wide = (width - x0 - 4) / (double)nx, high = KBI_MIN(28.0, KBI_MAX(16.0, wide * 0.7));
    kbi_in_unit unit = kbi_metric_unit(metric, sqrt(lo * hi));
    bool numbers = wide >= 34;
    for (int64_t i = 0; i < p->subset.n; i++) {
        const kb_result* r = p->subset.of[i];
        int64_t cx = 0, cy = 0;
        if (!kbi_metric_of(metric, r, v)) continue;
        while (xs[cx] != kbi_axis_value(r, p->axis)) cx++;
        while (ys[cy] != kbi_axis_value(r, p->across)) cy++;
        double share = hi > lo ? log(v[0] / lo) / log(hi / lo) : 1;
        double x = x0 + wide * (double)cx, y = y0 + high * (double)(ny - 1 - cy);
        char opacity[40];
        kbi_draw(t, "<rect class='cell k0' x='~' y='~' width='~' height='~' fill-opacity='@'><title>$</title></rect>",
                 x, y, wide, high, kbi_digits(0.04 + 0.56 * KBI_MAX(0.0, KBI_MIN(share, 1.0)), 2, opacity),
                 kbi_tip(s, r));
        if (numbers)
            kbi_draw_text(t, x + wide / 2, y + high / 2 + 4, "middle", "", kbi_digits(v[0] * unit.scale, 3, text));
    }
    for (int64_t i = 0; i < ny; i++)
        kbi_draw_text(t, x0 - 6, y0 + high * (double)(ny - i) - high / 2 + 4, "end", "dim",
                      kbi_size_text(ys[i], text));
    int64_t stride = 1 + (int64_t)(30 / KBI_MAX(wide, 1.0));
    for (int64_t i = 0; i < nx; i += stride)
        kbi_draw_text(t, x0 + wide * ((double)i + 0.5), y0 + high * (double)ny + 14, "middle", "dim",
                      kbi_size_text(xs[i], text));
    kbi_text both = KBI_BLANK, cut = KBI_BLANK;
    kbi_putf(&both, "y: %s, x: %s; %s, darker is longer", p->across, p->axis, unit.name);
    kbi_draw_text(t, width - 4, y0 + high * (double)ny + 30, "end", "dim",
                  kbi_clip(both.s, (int)(width / kbi_glyph), &cut));
    kbi_text_free(&both);
    kbi_text_free(&cut);
    return y0 + high * (double)ny + 38;
}

/*-----------------------------------------------------------------
  >>figures     figures of cases: speed of light, samples, ratios.
-----------------------------------------------------------------*/

// --- speed of light: the percentage of peak bandwidth and of peak arithmetic that a case reaches ---

// Sets out[0] to the percentage of the peak bandwidth, and out[1] to the percentage of the peak arithmetic; NAN:
// unknown.
static void kbi_light_of(const kb_result* r, double out[2]) {
    // in schema 1, "bound" names the peak that gpu_efficiency refers to
    bool moves = r->roof ? kbi_roof_is_memory(r->roof) : kbi_is(r->bound, "memory");
    bool computes = r->roof ? !moves : kbi_is(r->bound, "compute");
    out[0] = moves ? r->gpu_efficiency : 100 * r->throughput_gbps / r->copy_roof_gbps;
    out[1] = computes ? r->gpu_efficiency : 100 * r->gflops / r->compute_roof_gflops;
    for (int i = 0; i < 2; i++)
        if (!kbi_finite(out[i]) || !(out[i] > 0)) out[i] = (double)NAN;
}

static const double kbi_light_room = 130; // margin to the right of 100 %, in pixels

static void kbi_draw_light_row(kbi_text* t, kbi_scene* s, const kb_result* r, double y, double x0, double x1,
                               bool wide) {
    double light[2], full = x1 - x0 - kbi_light_room;
    const char* who = s->n_who > 1 && r->implementation ? r->implementation : "";
    char number[40];
    kbi_light_of(r, light);
    kbi_draw_text(t, wide ? x0 - 12 : 0, wide ? y + 15 : y + 10, wide ? "end" : "start", wide ? "" : "halo",
                  kbi_row_text(s, r, who, (int)((wide ? x0 - 12 : x1) / kbi_glyph)));
    for (int i = 0; i < 2; i++) {
        double top = y + (wide ? 2 : 16) + 11 * i, end = x0 + full * KBI_MIN(light[i], 108.0) / 100;
        if (!kbi_finite(light[i])) continue;
        kbi_draw(t, "<path class='bar k^' d='M~ ~H~v7H~z'/><text x='~' y='~' class='@'>$@</text>", i, x0, top, end,
                 x0, end + 5, top + 7.5, light[i] > 100 ? "b" : "", kbi_show_percent(light[i] / 100, number),
                 light[i] > 108 ? " &#8250;" : "");
    }
    if (!kbi_finite(light[0]) && !kbi_finite(light[1]))
        kbi_draw_text(t, x0 + 5, y + (wide ? 15 : 27), "start", "dim halo",
                      r->throughput_gbps > 0 || r->gflops > 0 ? "no peak was measured"
                                                              : "no kb_bytes and no kb_flops");
    else if (r->bound)
        kbi_draw_text(t, x1, y + (wide ? 15 : 27), "end", "dim", r->bound);
}

static double kbi_draw_light(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric) {
    bool wide = width > 500;
    double row = wide ? 29 : 45, x0 = wide ? width * 0.42 : 0, x1 = width, full = x1 - x0 - kbi_light_room, top = 38;
    double height = top + row * (double)p->subset.n;
    char number[40];
    (void)metric;
    kbi_puts(t, "<path class='bar k0' d='M0 4h10v7h-10z'/><path class='bar k1' d='M90 4h10v7h-10z'/>");
    kbi_draw_text(t, 15, 11, "start", "", "bandwidth");
    kbi_draw_text(t, 105, 11, "start", "", "arithmetic");
    for (int i = 0; i <= 4; i++) {
        double x = x0 + full * i / 4.0;
        kbi_draw_line(t, x, top - 6, x, height, i < 4 ? "grid" : "axis");
        snprintf(number, sizeof number, "%d%s", 25 * i, i == 4 ? " %" : "");
        kbi_draw_text(t, x, top - 11, i ? "middle" : "start", "dim", number);
    }
    for (int64_t i = 0; i < p->subset.n; i++)
        kbi_draw_light_row(t, s, p->subset.of[i], top + row * (double)i, x0, x1, wide);
    return height + 4;
}

// --- samples in the order of measurement, and their distribution, on one scale ---

enum { KBI_DRAWN_SAMPLES = 100, KBI_QUANTILES = 41 };

static void kbi_draw_order(kbi_text* t, const kbi_frame* f, const kb_result* r, double by, int who) {
    int64_t n = r->samples_ms.n, step = 1 + (n - 1) / KBI_DRAWN_SAMPLES;
    kbi_draw(t, "<path class='pt k^' d='", who % KBI_HUES);
    for (int64_t i = 0; i < n; i += step) {
        double y = kbi_at(&f->y, KBI_MIN(r->samples_ms.of[i] / by, f->y.hi));
        double share = n > 1 ? (double)i / (double)(n - 1) : 0.5;
        if (kbi_finite(r->samples_ms.of[i]))
            kbi_draw(t, "M~ ~h0", rint(f->x.from + share * (f->x.to - f->x.from)), rint(y));
    }
    kbi_puts(t, "'/>");
}

static void kbi_draw_ecdf(kbi_text* t, const kbi_frame* f, const kb_result* r, double by, int who) {
    double* sorted = KBI_GROW(NULL, double, r->samples_ms.n);
    int64_t n = 0;
    for (int64_t i = 0; i < r->samples_ms.n; i++)
        if (kbi_finite(r->samples_ms.of[i])) sorted[n++] = r->samples_ms.of[i] / by;
    kbi_sort(sorted, n);
    int steps = (int)KBI_MIN(n, (int64_t)KBI_QUANTILES);
    kbi_draw(t, "<path class='ln k^ d^' d='M~ ~", who % KBI_HUES, who % KBI_DASHES, f->x.from,
             kbi_at(&f->y, n ? sorted[0] : 0));
    for (int i = 0; i < steps; i++) { // steps of the cumulative distribution: up, then right
        int64_t at = steps > 1 ? (n - 1) * i / (steps - 1) : 0;
        double share = (double)(at + 1) / (double)n;
        kbi_draw(t, "V~H~", kbi_at(&f->y, KBI_MIN(sorted[at], f->y.hi)),
                 rint(f->x.from + share * (f->x.to - f->x.from)));
    }
    kbi_puts(t, "'/>");
    KBENCH_FREE(sorted);
}

// Returns the divisor of the sample times of a case in a figure. If the medians differ by more than 25 %, each case is drawn
// in percent of its median, because its scatter would be invisible on a common scale in ms.
static double kbi_samples_by(kbi_subset subset, const kb_result* r) {
    double lo = INFINITY, hi = 0;
    for (int64_t i = 0; i < subset.n; i++)
        lo = KBI_MIN(lo, subset.of[i]->time_ms), hi = KBI_MAX(hi, subset.of[i]->time_ms);
    return hi > 1.25 * lo ? r->time_ms / 100 : 1;
}

// Computes a range that contains most samples. *beyond counts the samples above this range, which are drawn at its
// upper edge.
static void kbi_samples_range(kbi_subset subset, double* lo, double* hi, int64_t* beyond) {
    double top = -INFINITY, all = -INFINITY;
    *lo = INFINITY;
    *beyond = 0;
    for (int64_t i = 0; i < subset.n; i++) {
        const kb_result* r = subset.of[i];
        double by = kbi_samples_by(subset, r), p95 = kbi_finite(r->time_ms_p95) ? r->time_ms_p95 : r->time_ms;
        double p5 = kbi_finite(r->time_ms_p5) ? r->time_ms_p5 : r->time_ms;
        top = KBI_MAX(top, (p95 + 2 * (p95 - p5)) / by);
        for (int64_t k = 0; k < r->samples_ms.n; k++)
            if (kbi_finite(r->samples_ms.of[k]))
                *lo = KBI_MIN(*lo, r->samples_ms.of[k] / by), all = KBI_MAX(all, r->samples_ms.of[k] / by);
    }
    *hi = KBI_MAX(*lo, KBI_MIN(all, top));
    for (int64_t i = 0; i < subset.n; i++) {
        double by = kbi_samples_by(subset, subset.of[i]);
        for (int64_t k = 0; k < subset.of[i]->samples_ms.n; k++) *beyond += subset.of[i]->samples_ms.of[k] / by > *hi;
    }
}

static double kbi_draw_samples(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric) {
    bool* shown = (bool*)kbi_arena_alloc(&s->arena, (size_t)s->n_who);
    double lo, hi, height = 176, middle = 46 + (width - 56) * 0.62;
    int64_t beyond;
    kbi_frame f, g;
    char number[64];
    (void)metric;
    kbi_draw_titles(t, p, width);
    kbi_samples_range(p->subset, &lo, &hi, &beyond);
    kbi_in_unit unit = kbi_metric_unit(KBI_METRIC_TIME, hi);
    if (p->subset.n && kbi_samples_by(p->subset, p->subset.of[0]) != 1)
        unit.scale = 1, unit.name = "% of the median";
    f.x = kbi_scale_of(0, 1, 0, false);
    f.y = kbi_scale_of(lo, hi, 0.06, false);
    f.x.from = 50, f.x.to = middle - 8;
    f.y.from = height, f.y.to = 46;
    g = f;
    g.x.from = middle + 4, g.x.to = width - 8;
    f.x.to = g.x.to;
    kbi_draw_y(t, &f, unit.scale, unit.name);
    f.x.to = middle - 8;
    kbi_draw_line(t, f.x.from, height, f.x.to, height, "axis");
    kbi_draw_line(t, g.x.from, height, g.x.to, height, "axis");
    kbi_draw_text(t, f.x.from, height + 15, "start", "dim", "in the order of measurement");
    kbi_draw_text(t, g.x.from, height + 15, "start", "dim", "0");
    kbi_draw_text(t, g.x.to, height + 15, "end", "dim", "share below: 1");
    for (int64_t i = 0; i < p->subset.n; i++) {
        int who = kbi_scene_who(s, p->subset.of[i]);
        kbi_draw_order(t, &f, p->subset.of[i], kbi_samples_by(p->subset, p->subset.of[i]), who);
        kbi_draw_ecdf(t, &g, p->subset.of[i], kbi_samples_by(p->subset, p->subset.of[i]), who);
        shown[who] = true;
    }
    snprintf(number, sizeof number, "%lld samples above the scale", (long long)beyond);
    if (beyond) kbi_draw_text(t, width - 8, 38, "end", "dim", number);
    return height + 34 + kbi_draw_legend(t, s->who, shown, s->n_who, 4, height + 34, width - 8);
}
// --- forest plot: ratios against a baseline, or against an earlier run ---

typedef struct kbi_ratio_row { // a speedup: above 1, the implementation is faster than the baseline
    const char *who, *words;   // who: text "implementation over baseline"; words: the verdict, or NULL
    double at, lo, hi, band;   // at: estimate; lo, hi: interval; band: 0.01 shades ratios within 1 %
    kb_verdict verdict;
    const kb_result* r;
} kbi_ratio_row;

static bool kbi_ratio_of_group(kbi_scene* s, const kb_result* r, kbi_ratio_row* out) {
    if (!kbi_has_time(r) || !(r->speedup > 0) || !kbi_finite(r->speedup) || !r->baseline ||
        kbi_is(r->baseline, r->implementation))
        return false;
    bool interval = r->speedup_low > 0 && kbi_finite(r->speedup_high) && r->speedup_high >= r->speedup_low;
    memset(out, 0, sizeof *out);
    out->r = r;
    out->at = r->speedup;
    out->lo = interval ? r->speedup_low : r->speedup;
    out->hi = interval ? r->speedup_high : r->speedup;
    out->band = KBI_MAX(0.01, kbi_finite(r->noise_floor) ? r->noise_floor : 0);
    out->verdict = r->verdict;
    kbi_text who = KBI_BLANK;
    kbi_putf(&who, "%s over %s", r->implementation ? r->implementation : "", r->baseline);
    out->who = kbi_arena_text_n(&s->arena, who.s, who.n);
    kbi_text_free(&who);
    return true;
}

static bool kbi_ratio_of_change(const kbi_change* c, double threshold, kbi_ratio_row* out) {
    if (!kbi_comparable(c) || !kbi_finite(c->log)) return false;
    bool interval = kbi_finite(c->lo) && kbi_finite(c->hi);
    memset(out, 0, sizeof *out);
    out->r = c->after;
    out->at = exp(-c->log);
    out->lo = interval ? exp(-c->hi) : out->at;
    out->hi = interval ? exp(-c->lo) : out->at;
    out->band = threshold;
    out->verdict = c->regressed ? KB_SLOWER : c->improved ? KB_FASTER : c->open ? KB_UNRESOLVED : KB_EQUIVALENT;
    out->words = c->regressed ? "REGRESSED" : c->improved ? "IMPROVED" : c->open ? "not certain" : "no change";
    out->who = c->after->implementation ? c->after->implementation : "";
    return true;
}

static int kbi_order_ratios(const void* a, const void* b) {
    const kbi_ratio_row *p = (const kbi_ratio_row*)a, *q = (const kbi_ratio_row*)b;
    return p->at != q->at ? (p->at < q->at) - (p->at > q->at) : (p->r > q->r) - (p->r < q->r);
}

static kbi_ratio_row* kbi_ratios_of(kbi_scene* s, bool changes, int64_t* n) {
    int64_t most = changes ? s->contrast->changes.n : s->n;
    kbi_ratio_row* of = KBI_ARRAY(&s->arena, kbi_ratio_row, most + 1);
    *n = 0;
    for (int64_t i = 0; i < most; i++)
        *n += changes ? kbi_ratio_of_change(&s->contrast->changes.of[i], s->contrast->rules.threshold, &of[*n])
                      : kbi_ratio_of_group(s, &s->of[i], &of[*n]);
    qsort(of, (size_t)*n, sizeof *of, kbi_order_ratios);
    return of;
}

static void kbi_draw_ratio(kbi_text* t, kbi_scene* s, const kbi_ratio_row* r, const kbi_scale* x, double y,
                           double label, double width) {
    static const int marks[] = { 0, 2, 4, 1, 0 }, hues[] = { 5, 2, 1, 5, 5 }; // by verdict
    bool wide = label > 0;
    kbi_text words = KBI_BLANK;
    char a[40], b[40], c[40];
    double line = wide ? y + 8 : y + 20, low = kbi_at(x, KBI_MAX(r->lo, x->lo)),
           high = kbi_at(x, KBI_MIN(r->hi, x->hi));
    const char* verdict = r->words ? r->words : kbi_verdict_name(r->verdict);
    kbi_draw_text(t, wide ? label - 12 : 0, wide ? y + 12 : y + 9, wide ? "end" : "start", wide ? "" : "halo",
                  r->r ? kbi_row_text(s, r->r, r->who, (int)((wide ? label - 12 : width) / kbi_glyph)) : r->who);
    kbi_draw(t, "<path class='ln k^' d='M~ ~H~M~ ~v7M~ ~v7'/>", hues[r->verdict], low, line, high, low, line - 3.5,
             high, line - 3.5);
    kbi_draw_mark_of(t, kbi_at(x, KBI_MAX(x->lo, KBI_MIN(r->at, x->hi))), line, hues[r->verdict], marks[r->verdict],
                     r->verdict == KB_UNRESOLVED ? " hollow" : "", NULL);
    kbi_putf(&words, "%s", kbi_digits(r->at, 3, a));
    if (r->hi > r->lo) kbi_putf(&words, " [%s, %s]", kbi_digits(r->lo, 3, b), kbi_digits(r->hi, 3, c));
    if (wide && verdict) kbi_putf(&words, " %s", verdict);
    kbi_draw_text(t, width, wide ? y + 12 : line + 4, "end", "", words.s);
    kbi_text_free(&words);
}

static double kbi_draw_forest(kbi_text* t, kbi_scene* s, const kbi_ratio_row* of, int64_t n, const kbi_ratio_row* all,
                              int64_t n_all, double width) {
    bool wide = width > 500;
    double lo = 1, hi = 1, band = 0, row = wide ? 22 : 36, top = 24, label = wide ? width * 0.44 : 0, logs = 0;
    double height = top + row * (double)(n + 1);
    kbi_frame f;
    for (int64_t i = 0; i < n_all; i++) {
        lo = KBI_MIN(lo, all[i].lo), hi = KBI_MAX(hi, all[i].hi), band = KBI_MAX(band, all[i].band);
        logs += log(all[i].at) / (double)n_all;
    }
    f.x = kbi_scale_of(KBI_MAX(KBI_MIN(lo, 1 / (1 + 2 * band)), 1e-3), KBI_MIN(KBI_MAX(hi, 1 + 2 * band), 1e3), 0.03,
                       true);
    f.x.from = label, f.x.to = width - (wide ? 190 : 130);
    f.y.from = height, f.y.to = top;
    double left = kbi_at(&f.x, 1 / (1 + band)), right = kbi_at(&f.x, 1 + band);
    kbi_draw(t, "<rect class='zone' x='~' y='~' width='~' height='~'/>", left, top - 8, right - left,
             height - top + 8);
    kbi_draw_line(t, kbi_at(&f.x, 1), top - 8, kbi_at(&f.x, 1), height, "axis");
    for (int64_t i = 0; i < n; i++) kbi_draw_ratio(t, s, &of[i], &f.x, top + row * (double)i, label, width);
    kbi_ratio_row mean = { "geometric mean", "", exp(logs), exp(logs), exp(logs), 0, KB_NO_VERDICT, NULL };
    kbi_draw_ratio(t, s, &mean, &f.x, top + row * (double)n, label, width);
    kbi_draw_text(t, KBI_MAX(left, label + 40), 11, "end", "dim", "slower");
    kbi_draw_text(t, KBI_MAX(right + 4, label + 48), 11, "start", "dim", "faster");
    kbi_draw_round_x(t, &f, wide ? 6 : 4, wide ? "ratio of times; shaded: no difference" : "ratio of times");
    return height + 38;
}

static double kbi_draw_ratios(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int changes) {
    int64_t n, at = 0;
    kbi_ratio_row* all = kbi_ratios_of(s, changes != 0, &n);
    while (at + 1 < n && all[at].r != p->subset.of[0]) at++;
    return kbi_draw_forest(t, s, all + at, p->subset.n, all, n, width);
}

/*-----------------------------------------------------------------
  >>roofline    the roofline plot: measured roofs, and cases by arithmetic intensity.
-----------------------------------------------------------------*/

// Williams, Waterman and Patterson 2009: Roofline, an insightful visual performance model.

typedef struct kbi_ceiling {
    const char* name;
    double of; // GB/s or GFLOP/s
} kbi_ceiling;
typedef struct kbi_ceilings {
    kbi_ceiling memory[8], compute[16];
    int n_memory, n_compute;
} kbi_ceilings;

static void kbi_ceiling_add(kbi_ceiling* of, int* n, int most, const char* name, double x) {
    int k = 0;
    if (!name || !kbi_finite(x) || !(x > 0)) return;
    while (k < *n && !kbi_is(of[k].name, name)) k++;
    if (k == most) return;
    if (k == *n) of[k].of = 0, of[k].name = name, ++*n;
    of[k].of = KBI_MAX(of[k].of, x);
}

// Schema 1 has only the percentage of one peak, from which the peak is computed.
static void kbi_ceilings_of(kbi_subset subset, kbi_ceilings* c) {
    memset(c, 0, sizeof *c);
    for (int64_t i = 0; i < subset.n; i++) {
        const kb_result* r = subset.of[i];
        const char* names[] = { "copy", "read", "write" };
        const double gbps[] = { r->copy_roof_gbps, r->read_roof_gbps, r->write_roof_gbps };
        for (int k = 0; k < KBI_COUNT(names); k++)
            kbi_ceiling_add(c->memory, &c->n_memory, KBI_COUNT(c->memory), names[k], gbps[k]);
        if (!r->roof && kbi_is(r->bound, "memory"))
            kbi_ceiling_add(c->memory, &c->n_memory, KBI_COUNT(c->memory), "memory",
                            100 * r->throughput_gbps / r->gpu_efficiency);
        kbi_ceiling_add(c->compute, &c->n_compute, KBI_COUNT(c->compute), r->compute_roof, r->compute_roof_gflops);
        if (r->roof && !r->compute_roof && !kbi_roof_is_memory(r->roof))
            kbi_ceiling_add(c->compute, &c->n_compute, KBI_COUNT(c->compute), r->roof,
                            100 * r->gflops / r->gpu_efficiency);
    }
}

static double kbi_ceiling_most(const kbi_ceiling* of, int n) {
    double most = 0;
    for (int i = 0; i < n; i++) most = KBI_MAX(most, of[i].of);
    return most;
}

static bool kbi_roofline_has(const kb_result* r) {
    return r->bytes > 0 && r->flops > 0 && kbi_finite(r->bytes) && kbi_finite(r->flops) && r->gflops > 0;
}

// The points of a case in the roofline, computed from the L2 and DRAM bytes that --counters counted.
typedef struct kbi_levels {
    double x[2], y; // x: FLOP per byte of L2 and of DRAM, 0 if unknown; y: FLOP per second
} kbi_levels;

static bool kbi_levels_of(const kb_result* r, kbi_levels* l) {
    static const char* const names[][2] = { { "intensity_l2", "l2_bytes" }, { "intensity_dram", "dram_bytes" } };
    const double most = 1e4; // FLOP/B; above this limit, the traffic is too small to measure
    memset(l, 0, sizeof *l);
    for (int i = 0; i < 2 && r->counters.n && r->time_ms > 0; i++) {
        double x = kbi_object_number(&r->counters, names[i][0]), y = x * kbi_object_number(&r->counters, names[i][1]);
        if (!kbi_finite(x) || !kbi_finite(y) || !(x > 0) || x > most || !(y > 0)) continue;
        l->x[i] = x;
        l->y = y / r->time_ms * 1e-6;
    }
    return l->y > 0;
}

static void kbi_roofline_scales(const kbi_panel* p, const kbi_ceilings* c, kbi_frame* f) {
    double lo = INFINITY, hi = -INFINITY, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < p->subset.n; i++) {
        const kb_result* r = p->subset.of[i];
        if (!kbi_roofline_has(r)) continue;
        lo = KBI_MIN(lo, r->flops / r->bytes), hi = KBI_MAX(hi, r->flops / r->bytes);
        low = KBI_MIN(low, r->gflops), high = KBI_MAX(high, r->gflops);
    }
    for (int64_t i = 0; i < p->subset.n; i++) {
        kbi_levels l;
        if (!kbi_levels_of(p->subset.of[i], &l)) continue;
        for (int k = 0; k < 2; k++)
            if (l.x[k] > 0) lo = KBI_MIN(lo, l.x[k]), hi = KBI_MAX(hi, l.x[k]);
        low = KBI_MIN(low, l.y), high = KBI_MAX(high, l.y);
    }
    double fast = kbi_ceiling_most(c->memory, c->n_memory), most = kbi_ceiling_most(c->compute, c->n_compute);
    if (fast > 0 && most > 0) lo = KBI_MIN(lo, most / fast / 8), hi = KBI_MAX(hi, most / fast * 8);
    if (!(hi >= lo)) lo = 0.1, hi = 100;
    lo /= 2, hi *= 2;
    if (most > 0) high = KBI_MAX(high, most);
    if (fast > 0)
        high = KBI_MAX(high, most > 0 ? most : fast * hi / 4), low = KBI_MIN(low, KBI_MAX(high / 1e4, fast * lo));
    if (!(high >= low)) low = 1, high = 100;
    f->x = kbi_scale_of(lo, hi, 0, true);
    f->y = kbi_scale_of(low / 1.6, high * 2, 0, true);
}

static void kbi_draw_roofs(kbi_text* t, const kbi_ceilings* c, const kbi_frame* f) {
    double most = kbi_ceiling_most(c->compute, c->n_compute);
    double per_x = (f->x.to - f->x.from) / log(f->x.hi / f->x.lo),
           per_y = (f->y.from - f->y.to) / log(f->y.hi / f->y.lo);
    char number[40];
    for (int i = 0; i < c->n_memory; i++) { // the line y = bandwidth * x, from the left or lower edge
        double of = c->memory[i].of, from = KBI_MAX(f->x.lo, f->y.lo / of);
        double until = KBI_MIN(f->x.hi, (most > 0 ? most : f->y.hi) / of);
        double x = kbi_at(&f->x, from), y = kbi_at(&f->y, from * of);
        kbi_text name = KBI_BLANK;
        if (!(until > from)) continue;
        kbi_draw_line(t, x, y, kbi_at(&f->x, until), kbi_at(&f->y, until * of), i ? "axis" : "roof");
        kbi_in_unit unit = kbi_metric_unit(KBI_METRIC_GBPS, of);
        kbi_putf(&name, "%s %s %s", c->memory[i].name, kbi_digits(of * unit.scale, 3, number), unit.name);
        kbi_draw(t, "<text class='dim halo' transform='translate(~ ~) rotate(~)'>$</text>", x + 14 + 4 * i,
                 y - 14 * per_y / per_x - 5 + 16 * (i > 0), -atan(per_y / per_x) * 57.29577951308232, name.s);
        kbi_text_free(&name);
    }
}

// Returns whether a label of width w at (x, y) would cover a mark.
static bool kbi_roofline_taken(const kbi_panel* p, const kbi_frame* f, double x, double y, double w) {
    for (int64_t i = 0; i < p->subset.n; i++) {
        const kb_result* r = p->subset.of[i];
        if (!kbi_roofline_has(r)) continue;
        double mx = kbi_at(&f->x, r->flops / r->bytes), my = kbi_at(&f->y, r->gflops);
        if (mx > x - 6 && mx < x + w + 6 && my > y - 13 && my < y + 6) return true;
    }
    return false;
}

static void kbi_draw_ceilings(kbi_text* t, const kbi_panel* p, const kbi_ceilings* c, const kbi_frame* f) {
    double fast = kbi_ceiling_most(c->memory, c->n_memory), last = -1e9;
    char number[40];
    for (int i = 0; i < c->n_compute; i++) {
        double of = c->compute[i].of, from = fast > 0 ? of / fast : f->x.lo, y = kbi_at(&f->y, of);
        double x = kbi_at(&f->x, KBI_MAX(from, f->x.lo));
        kbi_text name = KBI_BLANK;
        kbi_draw_line(t, x, y, f->x.to, y, "roof");
        kbi_in_unit unit = kbi_metric_unit(KBI_METRIC_GFLOPS, of);
        kbi_putf(&name, "%s %s %s", c->compute[i].name, kbi_digits(of * unit.scale, 3, number), unit.name);
        if (fast > 0 && f->x.to > 500) kbi_putf(&name, ", from %s FLOP/B", kbi_digits(from, 2, number));
        double wide = 5.9 * (double)name.n, left = x + 10, right = f->x.to - wide - 4;
        int at = 0; // tries 4 places: above, then below the line, each at its right and left end
        while (at < 4 && kbi_roofline_taken(p, f, at % 2 ? left : right, at < 2 ? y - 5 : y + 13, wide)) at++;
        if (fabs(y - last) > 11)
            kbi_draw_text(t, at % 2 ? left : right, at % 4 < 2 ? y - 5 : y + 13, "start", "dim halo", name.s),
                last = y;
        kbi_text_free(&name);
    }
}

typedef struct kbi_box {
    double x, y, w;
} kbi_box;

static void kbi_draw_roofline_names(kbi_text* t, kbi_scene* s, const kbi_panel* p, const kbi_frame* f) {
    kbi_box* taken = KBI_GROW(NULL, kbi_box, 2 * p->subset.n + 1);
    kbi_set said = KBI_BLANK;
    int64_t n = 0;
    for (int64_t i = 0; i < p->subset.n; i++) {
        const kb_result* r = p->subset.of[i];
        kbi_box mark = { kbi_at(&f->x, r->flops / r->bytes) - 5, kbi_at(&f->y, r->gflops) + 5, 10 };
        if (kbi_roofline_has(r)) taken[n++] = mark;
    }
    for (int64_t i = 0; i < p->subset.n; i++) {
        const kb_result* r = p->subset.of[i];
        const char* name = kbi_case_text(s, r, false);
        uint64_t key = kbi_hash(14695981039346656037u, name);
        bool free_ = kbi_roofline_has(r);
        kbi_box box = { kbi_at(&f->x, r->flops / r->bytes) + 8, kbi_at(&f->y, r->gflops) + 4,
                        5.8 * kbi_width(name, strlen(name)) };
        for (int64_t k = 0; k < n && free_; k++)
            free_ = box.x > taken[k].x + taken[k].w || taken[k].x > box.x + box.w || fabs(box.y - taken[k].y) > 10;
        if (!free_ || box.x + box.w > f->x.to || !kbi_set_add(&said, key)) continue;
        taken[n++] = box;
        kbi_draw_text(t, box.x, box.y, "start", "halo", name);
    }
    kbi_set_free(&said);
    KBENCH_FREE(taken);
}

// Draws a thin line through the cases of one implementation of an operation, in the order of arithmetic intensity.
static void kbi_draw_roofline_paths(kbi_text* t, kbi_scene* s, const kbi_panel* p, const kbi_frame* f) {
    static const kbi_grouping one = { true, true, false, false, false, NULL, NULL };
    int64_t subsets;
    kbi_subset* of = kbi_split(s, p->subset, &one, &subsets);
    kbi_point* at = KBI_GROW(NULL, kbi_point, p->subset.n);
    for (int64_t i = 0; i < subsets; i++) {
        int64_t n = 0;
        for (int64_t k = 0; k < of[i].n; k++)
            if (kbi_roofline_has(of[i].of[k])) at[n].r = of[i].of[k], at[n].x = at[n].r->flops / at[n].r->bytes, n++;
        if (n < 2) continue;
        qsort(at, (size_t)n, sizeof *at, kbi_order_points);
        if (!(at[n - 1].x > 1.02 * at[0].x)) continue; // nearly the same arithmetic intensity: draws no line
        kbi_draw(t, "<path class='thin k^' d='", kbi_scene_who(s, at[0].r) % KBI_HUES);
        for (int64_t k = 0; k < n; k++)
            kbi_draw(t, "@~ ~", k ? "L" : "M", kbi_at(&f->x, at[k].x), kbi_at(&f->y, at[k].r->gflops));
        kbi_puts(t, "'/>");
    }
    KBENCH_FREE(at);
}

// Draws a ring at the L2 position x[0] and a dot at the DRAM position x[1]; a negative x is not drawn.
static void kbi_draw_level_pair(kbi_text* t, int hue, const double x[2], double y) {
    if (x[0] >= 0 && x[1] >= 0) kbi_draw(t, "<path class='thin k^' d='M~ ~L~ ~'/>", hue, x[0], y, x[1], y);
    if (x[0] >= 0)
        kbi_draw(t, "<path class='mk k^ hollow' d='M~ ~a2 2 0 1 0 4 0a2 2 0 1 0-4 0z'/>", hue, x[0] - 2, y);
    if (x[1] >= 0) kbi_draw(t, "<path class='pt k^' d='M~ ~h0'/>", hue, x[1], y);
}

// Sets shown[i] if implementation i has an L2 or DRAM point. Returns whether any point was drawn.
static bool kbi_draw_levels(kbi_text* t, kbi_scene* s, const kbi_panel* p, const kbi_frame* f, bool* shown) {
    bool any = false;
    for (int64_t i = 0; i < p->subset.n; i++) {
        int who = kbi_scene_who(s, p->subset.of[i]);
        kbi_levels l;
        if (!kbi_levels_of(p->subset.of[i], &l)) continue;
        const double x[] = { l.x[0] > 0 ? kbi_at(&f->x, l.x[0]) : -1, l.x[1] > 0 ? kbi_at(&f->x, l.x[1]) : -1 };
        kbi_draw_level_pair(t, who % KBI_HUES, x, kbi_at(&f->y, l.y));
        any = shown[who] = true;
    }
    return any;
}

static double kbi_draw_roofline_notes(kbi_text* t, const kbi_panel* p, const kbi_ceilings* c, int64_t n, bool levels,
                                      double y) {
    double down = 6;
    const double pair[] = { 8, 24 };
    char missing[80];
    if (levels) {
        kbi_draw_level_pair(t, KBI_HUES - 1, pair, y - 4);
        kbi_draw_text(t, 32, y, "start", "dim", "ring: FLOP per L2 byte; dot: FLOP per DRAM byte (counters)");
        down += 16;
    }
    snprintf(missing, sizeof missing, "%lld more cases do not declare both bytes and operations",
             (long long)(p->subset.n - n));
    if (n && n < p->subset.n) kbi_draw_text(t, 4, y + down - 6, "start", "dim", missing), down += 16;
    if (!c->n_memory)
        kbi_draw_text(t, 4, y + down - 6, "start", "dim", "these records have no measured bandwidth"), down += 16;
    if (!c->n_compute)
        kbi_draw_text(t, 4, y + down - 6, "start", "dim", "these records have no measured arithmetic peak"),
            down += 16;
    return down;
}

static double kbi_draw_roofline(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric) {
    bool* shown = (bool*)kbi_arena_alloc(&s->arena, (size_t)s->n_who);
    double height = KBI_MAX(250.0, KBI_MIN(width * 0.5, 400.0));
    kbi_ceilings c;
    kbi_frame f;
    int64_t n = 0;
    (void)metric;
    kbi_ceilings_of(p->subset, &c);
    kbi_roofline_scales(p, &c, &f);
    kbi_draw_titles(t, p, width);
    f.x.from = 52, f.x.to = width - 8;
    f.y.from = height, f.y.to = 46;
    kbi_in_unit unit = kbi_metric_unit(KBI_METRIC_GFLOPS, f.y.hi);
    kbi_draw_y(t, &f, unit.scale, unit.name);
    kbi_draw_round_x(t, &f, width > 500 ? 8 : 5, "arithmetic intensity, FLOP/B");
    kbi_draw_roofs(t, &c, &f);
    kbi_draw_ceilings(t, p, &c, &f);
    kbi_draw_roofline_paths(t, s, p, &f);
    bool levels = kbi_draw_levels(t, s, p, &f, shown);
    for (int64_t i = 0; i < p->subset.n; i++) {
        const kb_result* r = p->subset.of[i];
        int who = kbi_scene_who(s, r);
        if (!kbi_roofline_has(r)) continue;
        kbi_draw_mark(t, kbi_at(&f.x, r->flops / r->bytes), kbi_at(&f.y, r->gflops), who,
                      width > 500 ? kbi_tip(s, r) : NULL);
        shown[who] = true;
        n++;
    }
    kbi_draw_roofline_names(t, s, p, &f);
    if (!n && !levels)
        kbi_draw_text(t, (f.x.from + f.x.to) / 2, height / 2, "middle", "b",
                      "no case declares both kb_bytes and kb_flops");
    double end = height + 46 + kbi_draw_legend(t, s->who, shown, s->n_who, 4, height + 46, width - 8);
    end += kbi_draw_roofline_notes(t, p, &c, n, levels, end + 6);
    return end;
}

/*-----------------------------------------------------------------
  >>page        the kinds of figures; one figure as a file; style and script of a page.
-----------------------------------------------------------------*/

// --- the kinds ---

static void kbi_find_ratios(kbi_scene* s, bool changes, kbi_panels* out) {
    kbi_subset subset = { NULL, 0 };
    int64_t n = 0;
    if (changes && !s->contrast) return;
    kbi_ratio_row* of = kbi_ratios_of(s, changes, &n);
    subset.of = KBI_ARRAY(&s->arena, const kb_result*, n + 1);
    for (int64_t i = 0; i < n; i++) subset.of[subset.n++] = of[i].r;
    kbi_find_rows(subset, out);
}
static void kbi_find_group_ratios(kbi_scene* s, kbi_panels* out) { kbi_find_ratios(s, false, out); }
static void kbi_find_changes(kbi_scene* s, kbi_panels* out) { kbi_find_ratios(s, true, out); }
static void kbi_find_light(kbi_scene* s, kbi_panels* out) { kbi_find_rows(s->timed, out); }

typedef struct kbi_plot {
    const char *name, *missing; // missing: the text that replaces an empty figure
    void (*find)(kbi_scene* s, kbi_panels* out);
    // returns the height
    double (*draw)(kbi_text* t, kbi_scene* s, const kbi_panel* p, double width, int metric);
    int metric;
    bool wide; // the figure is as wide as the page
} kbi_plot;

#define KBI_NO_SWEEP "no operation was measured at two sizes; sweep an axis, for example -a n=1024:1048576:*4"
static const kbi_plot kbi_plots[] = {
    { "speed", "no case has a time", kbi_find_light, kbi_draw_light, 0, true },
    { "roofline", "no case has a time", kbi_find_machines, kbi_draw_roofline, 0, true },
    { "time", KBI_NO_SWEEP, kbi_find_lines, kbi_draw_lines, KBI_METRIC_TIME, false },
    { "gbps", KBI_NO_SWEEP, kbi_find_lines, kbi_draw_lines, KBI_METRIC_GBPS, false },
    { "gflops", KBI_NO_SWEEP, kbi_find_lines, kbi_draw_lines, KBI_METRIC_GFLOPS, false },
    { "efficiency", KBI_NO_SWEEP, kbi_find_lines, kbi_draw_lines, KBI_METRIC_ROOF, false },
    { "heat", "no operation was swept along two axes", kbi_find_heat, kbi_draw_heat, KBI_METRIC_TIME, false },
    { "fits", KBI_NO_SWEEP, kbi_find_lines, kbi_draw_fits, KBI_METRIC_TIME, false },
    { "samples", "no record has samples", kbi_find_samples, kbi_draw_samples, 0, false },
    { "ratios", "no implementations were compared; KBENCH_IMPL adds an implementation", kbi_find_group_ratios,
      kbi_draw_ratios, 0, true },
    { "changes", "there is nothing to compare with; name an earlier run with --baseline", kbi_find_changes,
      kbi_draw_ratios, 1, true }
};

static const kbi_plot* kbi_plot_named(const char* name) {
    if (kbi_same_name(name, "rivals")) name = "ratios"; // old name of "ratios"
    for (int i = 0; i < KBI_COUNT(kbi_plots); i++)
        if (kbi_same_name(kbi_plots[i].name, name)) return &kbi_plots[i];
    return NULL;
}

static void kbi_plot_panel(kbi_text* t, kbi_scene* s, const kbi_plot* plot, const kbi_panel* p, double width,
                           const char* style) {
    kbi_text body = KBI_BLANK;
    double height = plot->draw(&body, s, p, width, plot->metric);
    kbi_draw(t, "<svg class='@' viewBox='0 0 ~ ~' role='img' aria-label='$ $ $'>@</svg>\n", style, width, height,
             plot->name, p->title, p->under, body.s ? body.s : "");
    kbi_text_free(&body);
}

enum { KBI_SVG_PANELS = 48 };

static void kbi_svg(kbi_text* t, const kb_result* records, int64_t n, const kbi_contrast* contrast,
                    const kbi_plot* plot) {
    kbi_scene s;
    kbi_panels panels = KBI_BLANK;
    kbi_text body = KBI_BLANK;
    double wide = plot->wide ? 760 : 380, x = 0, y = 0, row = 0, most = wide;
    kbi_scene_open(&s, records, n, contrast);
    plot->find(&s, &panels);
    int64_t shown = KBI_MIN(panels.n, (int64_t)KBI_SVG_PANELS);
    for (int64_t i = 0; i < shown; i++) {
        kbi_text one = KBI_BLANK;
        double height = plot->draw(&one, &s, &panels.of[i], wide, plot->metric);
        if (x > 0 && (plot->wide || x + wide > 1200)) x = 0, y += row + 18, row = 0;
        kbi_draw(&body, "<g transform='translate(~ ~)'>@</g>\n", x, y, one.s ? one.s : "");
        row = KBI_MAX(row, height);
        most = KBI_MAX(most, x + wide);
        x += wide + 24;
        kbi_text_free(&one);
    }
    if (shown < panels.n) {
        char more[80];
        snprintf(more, sizeof more, "%lld more; select with --where", (long long)(panels.n - shown));
        y += row + 22, row = 6;
        kbi_draw_text(&body, 0, y, "start", "dim", more);
    }
    if (!panels.n) kbi_draw_text(&body, 0, 20, "start", "dim", plot->missing), row = 32;
    kbi_draw(t,
             "<svg xmlns='http://www.w3.org/2000/svg' width='~' height='~' viewBox='-16 -12 ~ ~'>\n"
             "<!-- kbench " KBENCH_VERSION " -->\n<style>",
             most + 32, y + row + 28, most + 32, y + row + 28);
    kbi_svg_plain_style(t);
    kbi_draw(t, "</style>\n<rect x='-16' y='-12' width='100%' height='100%' fill='white'/>\n@</svg>\n",
             body.s ? body.s : "");
    kbi_text_free(&body);
    KBENCH_FREE(panels.of);
    kbi_arena_free(&s.arena);
}
// --- style and script of a page ---

// clang-format off
static const char* const kbi_page_style[] = {
    "*{box-sizing:border-box}html{color-scheme:light dark;-webkit-text-size-adjust:100%}",
    "body{margin:0;overflow-wrap:anywhere;background:var(--bg);color:var(--fg);font:15px/1.5 ",
    "system-ui,-apple-system,\"Segoe UI\",Roboto,",
    "\"Helvetica Neue\",Arial,sans-serif;font-variant-numeric:tabular-nums}",
    "header,main{max-width:1140px;margin:0 auto;padding:0 24px}header{padding-top:32px}",
    "h1{font-size:26px;line-height:1.25;margin:2px 0 6px;letter-spacing:-.01em;overflow-wrap:anywhere}",
    "h2{font-size:18px;margin:44px 0 4px;padding-top:12px;border-top:1px solid var(--line)}",
    "h3{font-size:14px;margin:22px 0 4px}p{margin:6px 0;max-width:74ch}",
    ".lead{font-size:17px;line-height:1.45;margin:8px 0 10px;overflow-wrap:anywhere}",
    ".dim,small{color:var(--dim)}small{font-size:.9em}a{color:var(--c0)}",
    ".chip{display:inline-block;font-size:12px;font-weight:700;letter-spacing:.04em;padding:2px 9px;",
    "border-radius:99px;",
    "border:1.5px solid;vertical-align:3px;margin-right:8px}.pass{color:var(--good)}.fail{color:var(--bad)}",
    ".eyebrow{font-size:12.5px;color:var(--dim);display:flex;justify-content:space-between;gap:12px;",
    "align-items:center}",
    "nav{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13.5px;margin:14px 0 0}nav a{text-decoration:none}",
    "code{font:12.5px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}",
    ".cmd{display:flex;gap:8px;align-items:flex-start;background:var(--soft);border-radius:6px;padding:7px 10px;",
    "margin:10px 0}.cmd code{flex:1}",
    "button,.tools input,.tools label,.switch>label{font:inherit;font-size:13px;color:var(--fg);",
    "background:var(--bg);",
    "border:1px solid var(--line);border-radius:6px;padding:3px 10px;cursor:pointer}",
    "button:hover{background:var(--soft)}",
    ".tools{display:none;gap:8px;flex-wrap:wrap;margin:10px 0}.js .tools{display:flex}.js .cmd button{display:block}",
    ".cmd button,#theme{display:none}.js #theme{display:block}.tools input[type=search]{flex:1;min-width:150px;",
    "cursor:text}",
    ".tools input[type=checkbox]{margin:0 5px 0 0}",
    ".warn{border:1px solid var(--line);border-left:4px solid var(--c4);border-radius:6px;padding:8px 14px;",
    "margin:18px 0}",
    ".warn ul{margin:4px 0;padding-left:18px}.warn li{margin:5px 0;overflow-wrap:anywhere}.warn b{font-size:13px}",
    ".scroll{overflow-x:auto;margin:6px 0}.tall{max-height:78vh;overflow:auto}",
    "table{border-collapse:collapse;font-size:13px;width:100%}th,td{padding:4px 7px;text-align:left;",
    "vertical-align:top;",
    "border-bottom:1px solid var(--line)}thead th{position:sticky;top:0;background:var(--bg);z-index:2;",
    "white-space:nowrap;",
    "vertical-align:bottom;font-size:12px;color:var(--dim);box-shadow:0 1px 0 var(--line)}",
    "th[aria-sort]{cursor:pointer}",
    "tbody th{font-weight:400}tbody th b{font-weight:600}tbody th small{overflow-wrap:anywhere}",
    ".n{text-align:right;white-space:nowrap}.best{font-weight:650}.word{font-weight:600;color:var(--bad)}",
    "#cases tbody th{min-width:210px;max-width:400px}.note{min-width:80px;max-width:300px;font-size:12px;",
    "overflow-wrap:anywhere}",
    "th[aria-sort=ascending]::after{content:\" \\25B4\"}th[aria-sort=descending]::after{content:\" \\25BE\"}",
    ".w{display:inline-block;width:40px;height:7px;margin-right:7px;background:var(--soft);vertical-align:1px}",
    ".w i{display:block;height:7px;max-width:100%;background:var(--c0);print-color-adjust:exact;",
    "-webkit-print-color-adjust:exact}.w .over{background:var(--bad)}.key{width:12px;height:12px;",
    "vertical-align:-2px;",
    "margin-right:4px;overflow:visible}.hide-rates .rates,.hide-memory .memory,.hide-trust .trust{display:none}",
    "figure{margin:10px 0;min-width:0}.large{display:block;width:100%;min-width:780px}svg{max-width:none}.wide,",
    ".narrow,.fit{display:block;width:100%;height:auto}",
    ".wide{max-width:1000px}.narrow{display:none;max-width:440px}.many{display:grid;gap:14px 28px;",
    "grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),",
    "1fr));margin:10px 0}.fit{max-width:460px}.keys{display:flex;gap:4px 18px;flex-wrap:wrap;font-size:13px}",
    ".switch>input{position:absolute;opacity:0}.switch>label{display:inline-block;margin:6px 6px 0 0}",
    ".switch>input:focus-visible+label{outline:2px solid var(--c0)}.pane{display:none}",
    ".switch>input:checked+label{background:var(--fg);color:var(--bg)}",
    "#m0:checked~.p0,#m1:checked~.p1,#m2:checked~.p2,#m3:checked~.p3{display:block}",
    "details{margin:8px 0}summary{cursor:pointer;font-size:13.5px;color:var(--c0)}details p{font-size:14px}",
    ".env td,.env th{font-size:12.5px;overflow-wrap:anywhere}.env th{width:180px;color:var(--dim)}",
    ".differs{background:",
    "var(--soft)}footer{margin:40px 0 48px;padding-top:10px;border-top:1px solid var(--line);font-size:12.5px;",
    "color:var(--dim)}",
    "@media(max-width:828px){.wide{display:none}.narrow{display:block}}",
    "@media(max-width:680px){header,main{padding-left:16px;padding-right:16px}",
    "h1{font-size:22px}h2{margin-top:34px}.lead{font-size:16px}th,td{padding:5px 7px}.fit{max-width:none}",
    "#cases tbody th{min-width:128px;max-width:190px}}",
    "@media print{.tools,nav,button,.cmd button,#theme,.switch>label{display:none!important}body{font-size:10.5pt}",
    "header,main{max-width:none;padding:0}.tall{max-height:none;overflow:visible}.scroll{overflow:visible}",
    "figure,.warn,tr,.fit{break-inside:avoid}h2,h3{break-after:avoid}thead{display:table-header-group}",
    "thead th{position:static}table{font-size:8.5pt}th,td{padding:2px 5px}.wide{display:block}.narrow{display:none}",
    "@page{margin:14mm}}"
};

// The page's script sorts, filters and hides columns, sets the theme, copies and downloads. The page can be read
// without the script.
static const char* const kbi_page_script[] = {
    "(function(){'use strict';var d=document,root=d.documentElement,id=function(x){return d.getElementById(x)},\n",
    "all=function(s,e){return[].slice.call((e||d).querySelectorAll(s))},table=id('cases'),",
    "body=table&&table.tBodies[0];\n",
    "root.className='js';\n",
    "function on(e,what,f){if(e)e.addEventListener(what,f)}\n",
    "function kept(v){try{if(v)localStorage.setItem('kbench-theme',v);return localStorage.getItem('kbench-theme')}",
    "catch(e){return null}}\n",
    "var theme=kept();if(theme)root.dataset.theme=theme;\n",
    "on(id('theme'),'click',function(){var dark=root.dataset.theme?root.dataset.theme==='dark':",
    "matchMedia('(prefers-color-scheme:dark)').matches;root.dataset.theme=dark?'light':'dark';",
    "kept(root.dataset.theme)});\n",
    "function value(row,at){var c=row.cells[at],v=c.getAttribute('data-v');return v===null?",
    "c.classList.contains('n')?parseFloat(c.textContent):c.textContent.trim():v===''?null:+v}\n",
    "function sort(th){var is=th.getAttribute('aria-sort'),at=th.cellIndex,down=is==='none'?!!th.dataset.down:",
    "is==='ascending';\n",
    "all('th[aria-sort]',table.tHead).forEach(function(x){x.setAttribute('aria-sort','none')});\n",
    "th.setAttribute('aria-sort',down?'descending':'ascending');\n",
    "all('tr',body).map(function(r,i){return[value(r,at),i,r]}).sort(function(a,b){var x=a[0],y=b[0];\n",
    "if(x===null||y===null)return(x===null)-(y===null)||a[1]-b[1];var o=x<y?-1:x>y?1:0;",
    "return(down?-o:o)||a[1]-b[1]})\n",
    ".forEach(function(e){body.appendChild(e[2])})}\n",
    "all('#cases th[aria-sort]').forEach(function(th){th.tabIndex=0;on(th,'click',function(){sort(th)});\n",
    "on(th,'keydown',function(e){if(e.key==='Enter'||e.key===' '){e.preventDefault();sort(th)}})});\n",
    "on(id('find'),'input',function(){var words=this.value.toLowerCase().split(/\\s+/).filter(Boolean),n=0;\n",
    "all('tr',body).forEach(function(r){var s=r.textContent.toLowerCase(),",
    "ok=words.every(function(w){return s.indexOf(w)>=0});\n",
    "r.hidden=!ok;n+=ok});id('found').textContent=words.length?n+' of '+body.rows.length:''});\n",
    "all('.tools input[data-g]').forEach(function(b){on(b,'change',function(){\n",
    "table.classList.toggle('hide-'+b.dataset.g,!b.checked)})});\n",
    "on(id('copy'),'click',function(){var s=id('command').textContent,b=this,",
    "done=function(){b.textContent='copied'};\n",
    "if(navigator.clipboard&&isSecureContext)navigator.clipboard.writeText(s).then(done,function(){});\n",
    "else{var r=d.createRange();r.selectNodeContents(id('command'));var w=getSelection();w.removeAllRanges();",
    "w.addRange(r);",
    "if(d.execCommand('copy'))done()}});\n",
    "function save(name,type,text){var a=d.createElement('a'),u=URL.createObjectURL(new Blob([text],{type:type}));\n",
    "a.href=u;a.download=name;a.click();setTimeout(function(){URL.revokeObjectURL(u)},1e4)}\n",
    "function records(){var o=JSON.parse(id('kbench-data').textContent);return o.records.map(function(r){\n",
    "return Object.assign({},o.all,r)})}\n",
    "on(id('json'),'click',function(){save('records.json','application/json',JSON.stringify(records(),null,1))});\n",
    "on(id('csv'),'click',function(){var keys=[],rows=records().map(function(r){var o={};",
    "Object.keys(r).forEach(function(k){\n",
    "if(k==='params')Object.keys(r[k]).forEach(function(p){o['params.'+p]=r[k][p]});\n",
    "else if(k==='flags')o[k]=r[k].join(' ');else if(!Array.isArray(r[k]))o[k]=r[k]});\n",
    "Object.keys(o).forEach(function(k){if(keys.indexOf(k)<0)keys.push(k)});return o});\n",
    "var cell=function(v){if(typeof v==='string'){v=v.replace(\n",
    "/[\\s\\x00-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]/g,' ');\n",
    "if(/^ *[-=+@\\uff0b\\uff0d\\uff1d\\uff20]/.test(v))v='\\''+v}\n",
    "v=v===undefined||v===null?'':String(v);return/[\",;]/.test(v)?'\"'+v.replace(/\"/g,'\"\"')+'\"':v};\n",
    "save('records.csv','text/csv',[keys.map(cell).join(',')].concat(rows.map(function(o){\n",
    "return keys.map(function(k){return cell(o[k])}).join(',')})).join('\\r\\n')+'\\r\\n')});\n",
    "on(window,'beforeprint',function(){all('details').forEach(function(e){e.open=true})});\n",
    "})();\n"
};
// clang-format on

static void kbi_page_colours(kbi_text* t, const char* where, bool dark) {
    kbi_puts(t, where);
    for (int i = 0; i < KBI_COUNT(kbi_colours); i++)
        kbi_putf(t, "--%s:%s;", kbi_colours[i].name, dark ? kbi_colours[i].dark : kbi_colours[i].light);
    kbi_puts(t, "}");
}

static void kbi_page_head(kbi_text* t, const char* title) {
    kbi_puts(t,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"generator\" content=\"kbench " KBENCH_VERSION "\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
             "script-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"referrer\" content=\"no-referrer\">\n");
    kbi_draw(t, "<title>$ - kbench</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n", title);
    kbi_page_colours(t, ":root{", false);
    kbi_page_colours(t, "\n@media(prefers-color-scheme:dark){:root:not([data-theme=light]){", true);
    kbi_page_colours(t, "}\n:root[data-theme=dark]{color-scheme:dark;", true);
    kbi_puts(t, "\n:root[data-theme=light]{color-scheme:light}\n");
    for (int i = 0; i < KBI_COUNT(kbi_page_style); i++) kbi_puts(t, kbi_page_style[i]), kbi_puts(t, "\n");
    for (int i = 0; i < KBI_COUNT(kbi_svg_style); i++) kbi_puts(t, kbi_svg_style[i]), kbi_puts(t, "\n");
    kbi_page_colours(t, "@media print{:root,:root[data-theme=dark],:root:not([data-theme=light]){color-scheme:light;",
                     false);
    kbi_puts(t, "}\n</style>\n</head>\n");
}

static void kbi_page_end(kbi_text* t) {
    kbi_puts(t, "<script>\n");
    for (int i = 0; i < KBI_COUNT(kbi_page_script); i++) kbi_puts(t, kbi_page_script[i]);
    kbi_puts(t, "</script>\n</body>\n</html>\n");
}

// --- the records ---

enum { KBI_PAGE_SAMPLES = 4096 }; // samples on a page, all cases together; if more, every k-th sample is kept

static int64_t kbi_page_share(int64_t n) { return KBI_MAX((int64_t)16, KBI_PAGE_SAMPLES / KBI_MAX(n, (int64_t)1)); }

// The samples get more digits than the timer resolves.
static void kbi_page_samples(kbi_text* t, kbi_field_samples samples, int64_t share) {
    int64_t n = KBI_MIN(samples.n, share);
    kbi_puts(t, samples.n ? "[" : "null");
    for (int64_t i = 0; i < n; i++) {
        char number[40] = "null";
        double x = samples.of[i * samples.n / n];
        if (kbi_finite(x)) snprintf(number, sizeof number, "%.7g", x), kbi_unlocalise(number);
        kbi_putf(t, "%s%s", i ? "," : "", number);
    }
    if (samples.n) kbi_puts(t, "]");
}

static void kbi_page_value_of(kbi_text* t, const kb_result* r, const kbi_key* key, int64_t share) {
    t->n = 0;
    if (key->kind == KBI_KIND_samples)
        kbi_page_samples(t, *(const kbi_field_samples*)kbi_field(r, key), share);
    else
        kbi_json_field(t, r, key);
}

// Writes a record as --json does, without nulls. common[] marks the keys with the same value in all records:
// writes only these if `wanted` is true, otherwise the other keys. "<" is escaped, because "</script>" in a text
// would end the script element.
static void kbi_page_record(kbi_text* t, const kb_result* r, int64_t share, const bool* common, bool wanted) {
    kbi_text json = KBI_BLANK;
    const char* comma = "{";
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        if (common[i] != wanted) continue;
        kbi_page_value_of(&json, r, &kbi_keys[i], share);
        if (kbi_is(json.s, "null")) continue;
        kbi_putf(t, "%s\"%s\":", comma, kbi_keys[i].name);
        for (const char* p = json.s; *p; p++) kbi_puts(t, *p == '<' ? "\\u003c" : ""), kbi_put(t, p, *p != '<');
        comma = ",";
    }
    kbi_putf(t, "%s}", *comma == '{' ? comma : "");
    kbi_text_free(&json);
}

static void kbi_page_data(kbi_text* t, const kb_result* records, int64_t n) {
    bool common[KBI_COUNT(kbi_keys)];
    kbi_text first = KBI_BLANK, other = KBI_BLANK;
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        common[i] = n > 1 && (kbi_is(kbi_keys[i].group, "machine") || kbi_is(kbi_keys[i].group, "run"));
        for (int64_t k = 0; k < n && common[i]; k++) {
            kbi_page_value_of(k ? &other : &first, &records[k], &kbi_keys[i], 1);
            common[i] = !k || kbi_is(first.s, other.s);
        }
    }
    kbi_puts(t, "<script type=\"application/json\" id=\"kbench-data\">\n{\"all\":");
    if (n)
        kbi_page_record(t, &records[0], 1, common, true);
    else
        kbi_puts(t, "{}");
    kbi_puts(t, ",\n\"records\":[");
    for (int64_t i = 0; i < n; i++)
        kbi_puts(t, i ? ",\n" : "\n"), kbi_page_record(t, &records[i], kbi_page_share(n), common, false);
    kbi_puts(t, "]}\n</script>\n");
    kbi_text_free(&first);
    kbi_text_free(&other);
}

/*-----------------------------------------------------------------
  >>cases       the top of a page: verdict, warnings, table of all cases.
-----------------------------------------------------------------*/

typedef struct kbi_page {
    kbi_text* t;
    kbi_scene scene;
    kbi_text sections;
    int64_t failed, skipped;
} kbi_page;

static void kbi_page_section(kbi_page* p, const char* id, const char* title) {
    kbi_draw(p->t, "<h2 id='@'>$</h2>\n", id, title);
    kbi_draw(&p->sections, "<a href='#@'>$</a>\n", id, title);
}

// --- the verdict ---

static bool kbi_page_winners(kbi_text* t, kbi_scene* s) {
    static const kbi_grouping group = { true, false, true, true, false, NULL, NULL };
    int64_t* wins = KBI_ARRAY(&s->arena, int64_t, s->n_who + 1);
    int64_t subsets, contests = 0, sure = 0, most = 0;
    const kb_result* best = NULL;
    kbi_subset* of = kbi_split(s, s->timed, &group, &subsets);
    for (int64_t i = 0; i < subsets; i++) {
        const kb_result* r = of[i].of[0];
        int who = 0;
        if (!r->winner) continue;
        while (who < s->n_who && !kbi_is(s->who[who], r->winner)) who++;
        if (who == s->n_who) continue;
        contests++;
        wins[who]++;
        sure += r->winner_certain == 1;
        if (wins[who] > wins[most]) most = who;
    }
    for (int64_t i = 0; i < s->timed.n; i++) {
        const kb_result* r = s->timed.of[i];
        if (r->speedup > 1 && kbi_finite(r->speedup) && (!best || r->speedup > best->speedup)) best = r;
    }
    if (!contests) return false;
    char number[40];
    kbi_draw(t, "<b>$</b> is the fastest implementation in ", s->who[most]);
    if (contests == 1)
        kbi_puts(t, "the one comparison");
    else
        kbi_putf(t, "%lld of %lld comparisons", (long long)wins[most], (long long)contests);
    if (sure < contests) kbi_putf(t, " (%lld not certain)", (long long)(contests - sure));
    if (best && best->baseline)
        kbi_draw(t, "; at best, $ is @ times as fast as $ ($)", best->implementation ? best->implementation : "",
                 kbi_digits(best->speedup, 3, number), best->baseline, kbi_case_text(s, best, true));
    kbi_puts(t, ".");
    return true;
}

static void kbi_page_verdict(kbi_page* p) {
    kbi_scene* s = &p->scene;
    const kb_result* near = NULL;
    char number[40];
    if (s->contrast) {
        kbi_text line = KBI_BLANK;
        kbi_changes_words(&line, &s->contrast->sum, &s->contrast->rules);
        kbi_draw(p->t, "Against <b>$</b>: $ ", s->contrast->name, line.s);
        kbi_text_free(&line);
    }
    if (p->failed)
        kbi_putf(p->t, "<b class='fail'>%lld of %lld cases failed.</b> ", (long long)p->failed, (long long)s->n);
    if (!s->timed.n && !p->failed) kbi_puts(p->t, "No case has a time. ");
    if (kbi_page_winners(p->t, s)) return;
    for (int64_t i = 0; i < s->timed.n; i++) {
        const kb_result* r = s->timed.of[i];
        if (!(r->gpu_efficiency <= 100)) continue; // if above 100 %, the data came from the cache
        if (!near || r->gpu_efficiency > near->gpu_efficiency) near = r;
    }
    const kb_result* one = s->timed.n == 1 ? s->timed.of[0] : NULL;
    if (one) kbi_draw(p->t, "<b>$</b> takes @", kbi_case_text(s, one, true), kbi_show_time(one->time_ms, number));
    if (one && kbi_finite(one->precision)) kbi_draw(p->t, " &#177; $", kbi_show_percent(one->precision, number));
    if (one && near) kbi_draw(p->t, ", and reaches $", kbi_show_percent(near->gpu_efficiency / 100, number));
    if (!one && near)
        kbi_draw(p->t, "The case nearest to its roof is <b>$</b>: $", kbi_case_text(s, near, true),
                 kbi_show_percent(near->gpu_efficiency / 100, number));
    if (near) kbi_draw(p->t, " of the $ roof", near->roof ? near->roof : "nearest");
    if (one || near) kbi_puts(p->t, ".");
}

static void kbi_page_title(kbi_scene* s, kbi_text* out) {
    kbi_set said = KBI_BLANK;
    int64_t more = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const char* name = s->of[i].operation ? s->of[i].operation : "";
        if (!kbi_set_add(&said, kbi_hash(14695981039346656037u, name))) continue;
        if (said.n <= 3)
            kbi_putf(out, "%s%s", out->n ? ", " : "", name);
        else
            more++;
    }
    if (more) kbi_putf(out, " and %lld more", (long long)more);
    if (!out->n) kbi_puts(out, "no records");
    kbi_set_free(&said);
}

static void kbi_page_machine(kbi_text* t, const kb_result* r) {
    char number[40];
    kbi_draw(t, "$", r->gpu ? r->gpu : r->cpu ? r->cpu : "processor unknown");
    if (r->gpu) kbi_draw(t, ", driver $, CUDA $", r->driver ? r->driver : "-", r->cuda ? r->cuda : "-");
    if (!r->gpu) kbi_puts(t, " (CPU times)");
    if (kbi_finite(r->copy_roof_gbps)) kbi_draw(t, ", copy roof @ GB/s", kbi_digits(r->copy_roof_gbps, 4, number));
    if (r->date) kbi_draw(t, ", $", r->date);
    if (r->git_commit) kbi_draw(t, ", commit $", r->git_commit);
}

static void kbi_page_header(kbi_page* p, const char* title) {
    kbi_scene* s = &p->scene;
    const kb_result* r = s->n ? &s->of[0] : NULL;
    bool bad = p->failed || (s->contrast && (s->contrast->sum.regressed || s->contrast->sum.more));
    kbi_draw(p->t,
             "<body>\n<header>\n<div class='eyebrow'><span>kbench, benchmark report</span>"
             "<button id='theme' type='button'>light / dark</button></div>\n<h1>$</h1>\n",
             title);
    int machines = 0;
    for (int64_t i = 0; i < s->n && machines < 4; i++) {
        if (i && kbi_md_same_machine(&s->of[i - 1], &s->of[i])) continue;
        kbi_puts(p->t, "<p class='dim'>"), kbi_page_machine(p->t, &s->of[i]), kbi_puts(p->t, "</p>\n");
        machines++;
    }
    kbi_draw(p->t, "<p class='lead'><span class='chip @'>@</span>", bad ? "fail" : "pass", bad ? "FAIL" : "PASS");
    kbi_page_verdict(p);
    kbi_putf(p->t, " <span class='dim'>%lld case%s: %lld with a time", (long long)s->n, s->n == 1 ? "" : "s",
             (long long)s->timed.n);
    if (p->failed) kbi_putf(p->t, ", %lld failed", (long long)p->failed);
    if (p->skipped) kbi_putf(p->t, ", %lld skipped", (long long)p->skipped);
    kbi_puts(p->t, ".</span></p>\n");
    if (r && r->command)
        kbi_draw(p->t,
                 "<div class='cmd'><code id='command'>$</code><button id='copy' type='button'>copy</button></div>\n",
                 r->command);
}

// --- warnings with advice ---

static void kbi_page_warnings(kbi_page* p) {
    const kbi_scene* s = &p->scene;
    bool any = false;
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        int64_t n = 0;
        const kb_result* first = NULL;
        for (int64_t i = 0; i < s->n; i++)
            if (s->of[i].flags >> f & 1) first = n++ ? first : &s->of[i];
        if (!n) continue;
        if (!any)
            kbi_puts(p->t,
                     "<section class='warn' aria-label='warnings'><b>Read this before you use the numbers</b><ul>\n");
        any = true;
        kbi_draw(p->t, "<li><b@>@</b> ", kb_flag_is_error((kb_flag)f) ? " class='fail'" : "",
                 kb_flag_name((kb_flag)f));
        kbi_putf(p->t, "<span class='dim'>%lld case%s</span>: ", (long long)n, n == 1 ? "" : "s");
        kbi_draw(p->t, "$", kbi_flag_advice((kb_flag)f, first->gpu != NULL));
        if (n < s->n && first->name) kbi_draw(p->t, " <small>@$</small>", n > 1 ? "for example " : "", first->name);
        kbi_puts(p->t, "</li>\n");
    }
    if (any) kbi_puts(p->t, "</ul></section>\n");
}

// --- the table ---

enum {
    KBI_CELL_TIME,
    KBI_CELL_SPREAD,
    KBI_CELL_SPEEDUP,
    KBI_CELL_GBPS,
    KBI_CELL_FLOPS,
    KBI_CELL_ROOF,
    KBI_CELL_MEMORY,
    KBI_CELL_ERROR,
    KBI_CELLS
};
static const struct {
    const char *title, *group;
    size_t at; // in kb_result
    bool down; // whether the largest value is first
} kbi_page_cells[] = { { "time", "", offsetof(kb_result, time_ms), false },
                       { "&#177;", "", offsetof(kb_result, precision), false },
                       { "speedup", "", offsetof(kb_result, speedup), true },
                       { "", "rates", offsetof(kb_result, throughput_gbps), true },
                       { "", "rates", offsetof(kb_result, gflops), true },
                       { "of roof", "", offsetof(kb_result, gpu_efficiency), true },
                       { "memory", "memory", offsetof(kb_result, memory_mb), true },
                       { "max error", "trust", offsetof(kb_result, max_error), true } };

typedef struct kbi_columns_shown {
    bool has[KBI_CELLS];
    kbi_in_unit unit[KBI_CELLS];
    double most[KBI_CELLS];
} kbi_columns_shown;

static double kbi_page_value(const kb_result* r, int cell) {
    double x;
    memcpy(&x, (const char*)r + kbi_page_cells[cell].at, sizeof x);
    return x;
}

// A unit is chosen so that the median of the column has few digits.
static void kbi_page_columns(kbi_scene* s, kbi_columns_shown* c) {
    double* x = KBI_ARRAY(&s->arena, double, s->n + 1);
    memset(c, 0, sizeof *c);
    for (int k = 0; k < KBI_CELLS; k++) {
        int64_t n = 0;
        for (int64_t i = 0; i < s->n; i++) {
            x[n] = kbi_page_value(&s->of[i], k);
            if (kbi_finite(x[n]) && (x[n] > 0 || k == KBI_CELL_ERROR)) c->most[k] = KBI_MAX(c->most[k], x[n]), n++;
        }
        kbi_sort(x, n);
        c->has[k] = n > 0;
        int metric = k == KBI_CELL_TIME ? KBI_METRIC_TIME : k == KBI_CELL_GBPS ? KBI_METRIC_GBPS : KBI_METRIC_GFLOPS;
        if (n) c->unit[k] = kbi_metric_unit(metric, x[n / 2]);
    }
}

static void kbi_page_heading(kbi_text* t, const kbi_columns_shown* c) {
    kbi_puts(t, "<thead><tr><th aria-sort='none'>case</th><th aria-sort='none'>implementation</th>");
    for (int k = 0; k < KBI_CELLS; k++) {
        bool unit = k == KBI_CELL_TIME || k == KBI_CELL_GBPS || k == KBI_CELL_FLOPS;
        if (k == KBI_CELL_MEMORY) kbi_puts(t, "<th aria-sort='none'>flags</th>");
        if (!c->has[k]) continue;
        kbi_draw(t, "<th class='n @' aria-sort='none'@>@@@</th>", kbi_page_cells[k].group,
                 kbi_page_cells[k].down ? " data-down='1'" : "", kbi_page_cells[k].title,
                 k == KBI_CELL_TIME ? ", " : "",
                 unit                   ? c->unit[k].name
                 : k == KBI_CELL_MEMORY ? ", MiB"
                                        : "");
    }
    kbi_puts(t, "</tr></thead>\n");
}

static void kbi_page_cell(kbi_text* t, const kb_result* r, const kbi_columns_shown* c, int k) {
    double x = kbi_page_value(r, k);
    char text[40], full[40];
    kbi_draw(t, "<td class='n @@'", kbi_page_cells[k].group,
             k == KBI_CELL_TIME && r->winner && kbi_is(r->winner, r->implementation) ? " best" : "");
    if (!kbi_finite(x) || (r->status != KB_OK && k < KBI_CELL_MEMORY)) {
        bool word = k == KBI_CELL_TIME;
        kbi_draw(t, " data-v=''>@@@</td>", word ? "<span class='word'>" : "<span class='dim'>",
                 word ? kbi_md_word(r) : "-", "</span>");
        return;
    }
    if (k == KBI_CELL_TIME || k == KBI_CELL_SPREAD || k == KBI_CELL_ROOF) {
        snprintf(full, sizeof full, "%.6g", x);
        kbi_unlocalise(full);
        kbi_draw(t, " data-v='@'", full);
    }
    kbi_puts(t, ">");
    if (k == KBI_CELL_ROOF)
        kbi_draw(t, "<span class='w'><i@ style='width:~%'></i></span>", x > 100 ? " class='over'" : "",
                 KBI_MIN(100.0, x));
    if (k == KBI_CELL_SPREAD || k == KBI_CELL_ROOF)
        kbi_show_percent(k == KBI_CELL_ROOF ? x / 100 : x, text);
    else if (k == KBI_CELL_ERROR)
        snprintf(text, sizeof text, "%.2g", x), kbi_unlocalise(text);
    else if (k == KBI_CELL_SPEEDUP || k == KBI_CELL_MEMORY)
        kbi_digits(x, 3, text);
    else
        kbi_digits(x * c->unit[k].scale, 4, text);
    kbi_draw(t, "$", text);
    if (k == KBI_CELL_ROOF && r->roof) kbi_draw(t, " <small>$</small>", r->roof);
    if (k == KBI_CELL_SPEEDUP && r->verdict == KB_UNRESOLVED) kbi_puts(t, "<span title='not certain'>~</span>");
    if (k == KBI_CELL_SPEEDUP && r->verdict == KB_EQUIVALENT) kbi_puts(t, "<span title='no difference'>=</span>");
    kbi_puts(t, "</td>");
}

static void kbi_page_key(kbi_text* t, int who) { // draws an implementation's mark as part of a text
    kbi_puts(t, "<svg class='key' viewBox='-6 -6 12 12' aria-hidden='true'>");
    kbi_draw_mark(t, 0, 0, who, NULL);
    kbi_puts(t, "</svg>");
}

static void kbi_page_remarks(kbi_text* t, const kb_result* r) {
    bool won = kbi_has_time(r) && r->winner && kbi_is(r->winner, r->implementation);
    kbi_puts(t, "<td class='note'>");
    if (won) kbi_draw(t, "<b>@</b> ", r->winner_certain == 1 ? "fastest" : "fastest?");
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (r->flags >> f & 1 && (r->status == KB_OK || !kb_flag_is_error((kb_flag)f)))
            kbi_draw(t, "<span title='$'>@</span> ", kbi_flag_advice((kb_flag)f, r->gpu != NULL),
                     kb_flag_name((kb_flag)f));
    if (r->status != KB_OK && r->message) kbi_draw(t, "$", r->message);
    kbi_puts(t, "</td>");
}

static void kbi_page_row(kbi_page* p, const kb_result* r, const kbi_columns_shown* c) {
    kbi_scene* s = &p->scene;
    bool won = kbi_has_time(r) && r->winner && kbi_is(r->winner, r->implementation);
    kbi_draw(p->t, "<tr><th scope='row' data-v='~'><b>$</b> <small>$</small></th><td>", (double)(r - s->of),
             kbi_case_text(s, r, false), kbi_params_text(s, r, NULL, NULL, false));
    kbi_page_key(p->t, kbi_scene_who(s, r));
    kbi_draw(p->t, "<span@>$</span></td>", won ? " class='best'" : "", r->implementation ? r->implementation : "");
    for (int k = 0; k < KBI_CELLS; k++) {
        if (k == KBI_CELL_MEMORY) kbi_page_remarks(p->t, r);
        if (c->has[k]) kbi_page_cell(p->t, r, c, k);
    }
    kbi_puts(p->t, "</tr>\n");
}

static void kbi_page_table(kbi_page* p) {
    kbi_columns_shown c;
    kbi_page_columns(&p->scene, &c);
    if (!c.has[KBI_CELL_TIME])
        c.has[KBI_CELL_TIME] = true, c.unit[KBI_CELL_TIME] = kbi_metric_unit(KBI_METRIC_TIME, 1);
    kbi_page_section(p, "all", "All cases");
    kbi_puts(p->t, "<div class='tools'><input type='search' id='find' placeholder='filter the rows by words' "
                   "aria-label='filter'><span id='found' class='dim' role='status'></span>\n");
    for (int k = 0; k < KBI_CELLS; k++) {
        const char* group = kbi_page_cells[k].group;
        bool again = k && kbi_is(group, kbi_page_cells[k - 1].group) && c.has[k - 1];
        if (c.has[k] && *group && !again)
            kbi_draw(p->t, "<label><input type='checkbox' data-g='@' checked>@</label>\n", group, group);
    }
    kbi_puts(p->t, "</div>\n<div class='scroll tall' tabindex='0'><table id='cases'>\n");
    kbi_page_heading(p->t, &c);
    kbi_puts(p->t, "<tbody>\n");
    for (int64_t i = 0; i < p->scene.n; i++) kbi_page_row(p, &p->scene.of[i], &c);
    kbi_puts(p->t, "</tbody></table></div>\n");
}

/*-----------------------------------------------------------------
  >>html        the page: top, figures, machine, records.
-----------------------------------------------------------------*/

// --- figures ---

enum {
    KBI_PAGE_FEW = 9,  // most small figures outside the collapsed section
    KBI_PAGE_MANY = 18 // most figures of one kind on the page
};

// Draws a figure. A wide figure is drawn a second time, for narrow screens, except in a collapsed section.
static void kbi_page_panel(kbi_page* p, const kbi_plot* plot, const kbi_panel* panel, bool folded) {
    if (!plot->wide) {
        kbi_plot_panel(p->t, &p->scene, plot, panel, 320, "fit");
        return;
    }
    kbi_draw(p->t, "<figure@>", folded ? " class='scroll'" : "");
    kbi_plot_panel(p->t, &p->scene, plot, panel, 780, folded ? "large" : "wide");
    if (!folded) kbi_plot_panel(p->t, &p->scene, plot, panel, 320, "narrow");
    kbi_puts(p->t, "</figure>\n");
}

// The first figures are visible; the others are in a collapsed section.
static void kbi_page_panels(kbi_page* p, const kbi_plot* plot, const kbi_panels* panels) {
    int64_t few = plot->wide ? 1 : KBI_PAGE_FEW, most = KBI_MIN(panels->n, (int64_t)KBI_PAGE_MANY);
    const char *open = plot->wide ? "" : "<div class='many'>\n", *close = plot->wide ? "" : "</div>\n";
    kbi_puts(p->t, open);
    for (int64_t i = 0; i < most; i++) {
        if (i == few && plot->find != kbi_find_machines) {
            kbi_puts(p->t, close);
            int64_t more = panels->n - few;
            if (plot->wide) more = panels->of[0].beside.n - panels->of[0].subset.n;
            kbi_putf(p->t, "<details><summary>%lld more</summary>\n%s", (long long)more, open);
        }
        kbi_page_panel(p, plot, &panels->of[i], i >= few && plot->find != kbi_find_machines);
    }
    kbi_puts(p->t, close);
    if (panels->n > most)
        kbi_draw(p->t, "<p class='dim'>More figures: <code>--svg FILE --plot @ --where KEY=VALUE</code></p>\n",
                 plot->name);
    if (most > few && plot->find != kbi_find_machines) kbi_puts(p->t, "</details>\n");
}

static void kbi_page_figures(kbi_page* p, const char* kind, const char* title, const char* text) {
    const kbi_plot* plot = kbi_plot_named(kind);
    kbi_panels panels = KBI_BLANK;
    plot->find(&p->scene, &panels);
    if (panels.n) {
        kbi_page_section(p, kind, title);
        kbi_draw(p->t, "<p class='dim'>@</p>\n", text);
        kbi_page_panels(p, plot, &panels);
    }
    KBENCH_FREE(panels.of);
}

// Plots each metric over the problem size. Radio buttons select the visible metric; this needs no script.
static void kbi_page_lines(kbi_page* p) {
    static const char* const kinds[] = { "time", "gbps", "gflops", "efficiency" };
    kbi_panels panels = KBI_BLANK;
    kbi_find_lines(&p->scene, &panels);
    if (panels.n) {
        kbi_page_section(p, "sizes", "Over size");
        kbi_puts(p->t,
                 "<p class='dim'>A line for each implementation. The band is the 95 % interval, drawn if it is wide "
                 "enough to be seen. Figures of one operation share their scale.</p>\n<div class='switch'>\n");
        for (int m = 0; m < KBI_COUNT(kinds); m++)
            if (kbi_subset_has(p->scene.timed, m))
                kbi_draw(p->t, "<input type='radio' name='metric' id='m^'@><label for='m^'>@</label>\n", m,
                         m ? "" : " checked", m, kbi_metrics[m].name);
        for (int m = 0; m < KBI_COUNT(kinds); m++) {
            if (!kbi_subset_has(p->scene.timed, m)) continue;
            kbi_draw(p->t, "<div class='pane p^'>\n", m);
            kbi_page_panels(p, kbi_plot_named(kinds[m]), &panels);
            kbi_puts(p->t, "</div>\n");
        }
        kbi_puts(p->t, "</div>\n");
    }
    KBENCH_FREE(panels.of);
}

static void kbi_page_fits(kbi_page* p) {
    int64_t n;
    kbi_subset* subsets = kbi_fit_subsets(&p->scene, p->scene.timed, &n);
    bool any = false;
    for (int64_t i = 0; i < n; i++) {
        kbi_fitted fit;
        kbi_text formula = KBI_BLANK;
        char off[40];
        if (!kbi_fit_of(&p->scene, subsets[i], &fit)) continue;
        if (!any) {
            kbi_page_section(p, "scaling", "How time grows");
            kbi_puts(
                p->t,
                "<p class='dim'>The fit is time = constant * power of each axis, by least squares of the logarithms. With "
                "an exponent of 1, twice the size takes twice as long. &quot;off by&quot; is the typical distance of "
                "a case from the fit. Beyond 20 %, for example if all small sizes take the same time, no single "
                "power law fits.</p>\n"
                "<div class='scroll'><table><thead><tr><th>operation</th><th>implementation</th><th>time</th>"
                "<th class='n'>off by</th><th class='n'>cases</th></tr></thead><tbody>\n");
        }
        any = true;
        kbi_fit_text(&formula, &fit, false);
        kbi_draw(p->t, "<tr><th scope='row'>$</th><td>", kbi_case_text(&p->scene, subsets[i].of[0], false));
        kbi_page_key(p->t, kbi_scene_who(&p->scene, subsets[i].of[0]));
        kbi_draw(p->t, "$</td><td>@</td><td class='n'>$</td>",
                 subsets[i].of[0]->implementation ? subsets[i].of[0]->implementation : "", formula.s,
                 kbi_show_percent(expm1(fit.off), off));
        kbi_putf(p->t, "<td class='n'>%lld</td></tr>\n", (long long)fit.n);
        kbi_text_free(&formula);
    }
    if (any) kbi_puts(p->t, "</tbody></table></div>\n");
}

// --- kernels ---

static void kbi_page_kernels(kbi_page* p) {
    static const char* const keys[] = {
        "grid", "block", "registers", "shared_bytes", "local_bytes", "occupancy_theoretical", "occupancy_achieved"
    };
    static const char* const titles[] = { "grid",     "block",        "registers",  "shared, B",
                                          "local, B", "occupancy, %", "achieved, %" };
    kbi_set said = KBI_BLANK;
    bool any = false;
    for (int64_t i = 0; i < p->scene.n; i++) {
        const kb_result* r = &p->scene.of[i];
        const char* parts[] = { r->kernel, r->grid, r->block };
        uint64_t launch = 14695981039346656037u;
        for (int k = 0; k < KBI_COUNT(parts); k++) launch = kbi_hash(kbi_hash(launch, "|"), parts[k] ? parts[k] : "");
        if (!r->kernel || !kbi_set_add(&said, launch)) continue;
        if (!any) {
            kbi_page_section(p, "kernels", "Kernels");
            kbi_puts(p->t,
                     "<details><summary>the first kernel of each case: grid, block, registers, memory, occupancy"
                     "</summary><div class='scroll'><table><thead><tr><th>case</th><th>kernel</th>");
            for (int k = 0; k < KBI_COUNT(keys); k++) kbi_draw(p->t, "<th class='n'>@</th>", titles[k]);
            kbi_puts(p->t, "</tr></thead><tbody>\n");
        }
        any = true;
        kbi_draw(p->t, "<tr><th scope='row'>$, $</th><td><code>$</code></td>", kbi_case_text(&p->scene, r, true),
                 r->implementation ? r->implementation : "", r->kernel);
        for (int k = 0; k < KBI_COUNT(keys); k++) {
            const kbi_key* key = kbi_key_named(keys[k]);
            const char* words = kbi_field_words(r, key);
            double x = kbi_field_number(r, key);
            char number[40];
            kbi_draw(p->t, "<td class='n'>$</td>",
                     words            ? words
                     : !kbi_finite(x) ? "-"
                     : x == floor(x)  ? kbi_number(x, number)
                                      : kbi_digits(x, 3, number));
        }
        kbi_puts(p->t, "</tr>\n");
    }
    if (any) kbi_puts(p->t, "</tbody></table></div></details>\n");
    kbi_set_free(&said);
}

// --- the machine ---

// The value of a key in all records: the different texts, or the range of the numbers. Writes nothing if no record
// has a value of this key.
static void kbi_page_said(kbi_text* out, const kb_result* of, int64_t n, const kbi_key* key) {
    kbi_set said = KBI_BLANK;
    double lo = INFINITY, hi = -INFINITY;
    char number[40];
    out->n = 0;
    kbi_put(out, "", 0);
    for (int64_t i = 0; i < n; i++) {
        const char* words = kbi_field_words(&of[i], key);
        double x = kbi_field_number(&of[i], key);
        if (!words && kbi_finite(x)) lo = KBI_MIN(lo, x), hi = KBI_MAX(hi, x);
        if (!words || !kbi_set_add(&said, kbi_hash(14695981039346656037u, words))) continue;
        if (said.n <= 4) kbi_putf(out, "%s%s", out->n ? "; " : "", words);
        if (said.n == 5) kbi_puts(out, "; ...");
    }
    bool whole = key->kind == KBI_KIND_whole;
    if (hi >= lo) kbi_puts(out, whole ? kbi_number(lo, number) : kbi_digits(lo, 4, number));
    if (hi > lo) kbi_putf(out, " to %s", whole ? kbi_number(hi, number) : kbi_digits(hi, 4, number));
    kbi_set_free(&said);
}

static void kbi_page_machines(kbi_page* p) {
    const kbi_contrast* c = p->scene.contrast;
    kbi_text now = KBI_BLANK, before = KBI_BLANK;
    kbi_page_section(p, "machine", "Machine and run");
    kbi_draw(p->t, "<div class='scroll'><table class='env'>@<tbody>\n",
             c ? "<thead><tr><th></th><th>this run</th><th>before</th></tr></thead>" : "");
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        const kbi_key* key = &kbi_keys[i];
        bool shown = kbi_is(key->group, "machine") || kbi_is(key->group, "run") || kbi_is(key->name, "cache") ||
                     kbi_is(key->name, "timer");
        if (!shown || kbi_is(key->name, "command")) continue;
        kbi_page_said(&now, p->scene.of, p->scene.n, key);
        if (c) kbi_page_said(&before, c->before, c->n_before, key);
        if (!now.n && !before.n) continue;
        bool differs = c && !kbi_is(now.s, before.s) && !kbi_is(key->name, "run_id") && !kbi_is(key->name, "date");
        kbi_draw(p->t, "<tr@><th scope='row' title='$'>@</th><td>$</td>", differs ? " class='differs'" : "",
                 key->meaning, key->name, now.n ? now.s : "-");
        if (c) kbi_draw(p->t, "<td>$@</td>", before.n ? before.s : "-", differs ? " <b>differs</b>" : "");
        kbi_puts(p->t, "</tr>\n");
    }
    kbi_puts(p->t, "</tbody></table></div>\n");
    kbi_text_free(&now);
    kbi_text_free(&before);
}

// --- explanations for new readers ---

static void kbi_page_lessons(kbi_page* p) {
    static const char* const lessons[][2] = {
        { "What is the time of a case?",
          "The median of many samples of one launch of the timed block, minus the bias of the timer. "
          "Half of the samples were faster than the median. A few disturbed samples do not move "
          "the median, but they would move a mean." },
        { "What does &#177; mean?",
          "Half the width of the 95 % confidence interval of the median. If you repeat the measurement "
          "in the same way, the new median most likely lies near this interval. The interval does not "
          "cover another process, another day or another machine. --procs N measures the difference "
          "between processes." },
        { "Cold, hot, rotate?",
          "Cold: the data was evicted from the L2 cache before each launch, as if other work ran in "
          "between. Hot: each launch uses the same data, which is still in the cache. Rotate: launches "
          "run back to back on different copies of the data. Compare only times with equal cache state and "
          "equal timer." },
        { "What is a roof?",
          "A peak rate that was measured on this machine: the best copy, or the best arithmetic of one type. "
          "Work on the CPU is compared with the peak of one core. "
          "A memory-bound case at 80 % of the copy roof can become at most 1.25 times as fast, unless "
          "it moves fewer bytes. A case can exceed 100 % of a roof if its data comes from the cache. "
          "At the end of a cold case, the last writes are still in the L2 cache and reach memory after the "
          "timed interval. A cold case is therefore compared with a cold copy of the same size." },
        { "Memory-bound, compute-bound, latency-bound?",
          "The roofline figure shows which limit applies. Left of the corner, the limit is the bandwidth (the slanted "
          "roof). Right of the corner, the limit is the arithmetic (the flat roof). A case far below "
          "both roofs is bound by latency: the launch is too short, or too few operations are in flight." },
        { "When is one implementation faster than another?",
          "If the interval of the ratio lies completely above 1 + noise floor, the "
          "implementation is faster. The noise floor is the difference that the baseline shows against "
          "itself (an A/A control). If the interval includes 1, these samples do not show which one is "
          "faster." }
    };
    kbi_page_section(p, "help", "How to read this");
    for (int i = 0; i < KBI_COUNT(lessons); i++)
        kbi_draw(p->t, "<details><summary>@</summary><p>@</p></details>\n", lessons[i][0], lessons[i][1]);
}

static void kbi_page_download(kbi_page* p) {
    kbi_page_section(p, "data", "The records");
    kbi_puts(p->t, "<p>This page contains the records: <code>--load</code> reads it like a file of "
                   "<code>--json</code>");
    for (int64_t i = 0; i < p->scene.n; i++) {
        if (p->scene.of[i].samples_ms.n <= kbi_page_share(p->scene.n)) continue;
        kbi_putf(p->t, ", except that samples_ms has at most %lld values per case, evenly spaced",
                 (long long)kbi_page_share(p->scene.n));
        break;
    }
    kbi_puts(p->t, ".</p>\n<div class='tools'><button id='json' type='button'>download JSON</button><button id='csv' "
                   "type='button'>download CSV</button></div>\n");
}

static void kbi_html(kbi_text* t, const kb_result* records, int64_t n, const kbi_contrast* contrast) {
    kbi_page p;
    kbi_text title = KBI_BLANK, header = KBI_BLANK, body = KBI_BLANK;
    memset(&p, 0, sizeof p);
    kbi_scene_open(&p.scene, records, n, contrast);
    for (int64_t i = 0; i < n; i++)
        p.failed += records[i].status == KB_FAILED, p.skipped += records[i].status == KB_SKIPPED;
    kbi_page_title(&p.scene, &title);
    p.t = &header;
    kbi_page_header(&p, title.s);
    p.t = &body;
    kbi_page_warnings(&p);
    kbi_page_figures(
        &p, "changes", "Changes",
        "The earlier time of each case divided by its current time, with the interval. The shaded band shows "
        "changes within the threshold.");
    kbi_page_table(&p);
    kbi_page_figures(
        &p, "speed", "Speed of light",
        "The share of this machine's measured peak bandwidth and peak arithmetic that each case reaches. The "
        "longer bar shows whether bandwidth or arithmetic limits the case, unless both bars are short.");
    kbi_page_figures(
        &p, "roofline", "Roofline",
        "The roofs are peaks measured on this machine. A case on a roof becomes faster only if it moves fewer bytes "
        "or computes less.");
    kbi_page_lines(&p);
    kbi_page_figures(&p, "heat", "Two axes", "A heat map with one cell for each pair of sizes.");
    kbi_page_fits(&p);
    kbi_page_figures(&p, "ratios", "Against the baseline",
                     "The baseline's time divided by the time of each implementation, from interleaved rounds. "
                     "The fastest implementation comes first.");
    kbi_page_figures(&p, "samples", "Samples",
                     "Left: all samples in the order of measurement; they show drift and throttling. Right: "
                     "the share of samples below each time; a distribution with two modes shows two steps.");
    kbi_page_kernels(&p);
    kbi_page_machines(&p);
    kbi_page_lessons(&p);
    kbi_page_download(&p);
    kbi_page_head(t, title.s);
    kbi_draw(t,
             "@<nav aria-label='sections'>\n@</nav>\n</header>\n<main>\n@<footer>Made by kbench @. The page loads no "
             "script or file from elsewhere.</footer>\n</main>\n",
             header.s, p.sections.s ? p.sections.s : "", body.s ? body.s : "", KBENCH_VERSION);
    kbi_page_data(t, records, n);
    kbi_page_end(t);
    kbi_text* of[] = { &title, &header, &body, &p.sections };
    for (int i = 0; i < KBI_COUNT(of); i++) kbi_text_free(of[i]);
    kbi_arena_free(&p.scene.arena);
}

/*-----------------------------------------------------------------
  >>gate        the regression gate: baselines, histories, goals, and the exit code.
-----------------------------------------------------------------*/

static bool kbi_load_choose(const kbi_options* o,
                            kbi_records* r); // in >>load: applies --op, --filter and similar options

enum { KBI_FAIL_REGRESS, KBI_FAIL_CHANGE, KBI_FAIL_NOISE, KBI_FAIL_NEVER };

static kbi_rules kbi_rules_of(void) {
    kbi_rules rules = { kbi_wanted.threshold, kbi_wanted.memory_threshold, kbi_wanted.alpha, kbi_wanted.noise };
    return rules;
}

static int kbi_fail_on(void) {
    static const char* const names[] = { "regress", "change", "noise", "never" };
    for (int i = 0; i < KBI_COUNT(names); i++)
        if (kbi_is(kbi_wanted.fail_on, names[i])) return i;
    return KBI_FAIL_REGRESS;
}

static int kbi_regression_code(const kbi_assessment* a, bool compared, int64_t missed) {
    int on = kbi_fail_on();
    bool worse = a->regressed || a->more, other = a->added || a->removed || a->recovered || a->unchecked;
    if (on == KBI_FAIL_NEVER) return KBI_EXIT_FINE;
    if (worse || missed) return KBI_EXIT_REGRESSED;
    if (on == KBI_FAIL_CHANGE && (a->improved || a->less || other)) return KBI_EXIT_REGRESSED;
    if (on == KBI_FAIL_NOISE && compared && (a->apart || a->open || !a->compared)) return KBI_EXIT_UNCERTAIN;
    return KBI_EXIT_FINE;
}

// --- goals ---

typedef struct kbi_goal { // "layernorm:gpu_efficiency>=80"
    kbi_patterns which;
    kbi_shown what;
    bool least, strict; // least: >= or >; strict: > or <
    double value;
} kbi_goal;

static bool kbi_goal_parse(const char* text, kbi_goal* g) {
    const char* colon = strrchr(text, ':');
    bool counter = colon && colon - text >= 7 && strncmp(colon - 7, "counter", 7) == 0;
    if (counter && colon - text == 7)
        colon = NULL;
    else if (counter && colon[-8] == ':')
        colon -= 8;
    const char *from = colon ? colon + 1 : text, *sign = from + strcspn(from, "<>=");
    char name[80], *end;
    kbi_text pattern = KBI_BLANK;
    kbi_strings list;
    kbi_put(&pattern, text, colon ? (size_t)(colon - text) : 0);
    snprintf(name, sizeof name, "%.*s", (int)KBI_MIN(sign - from, (ptrdiff_t)79), from);
    memset(&list, 0, sizeof list);
    list.n = pattern.n > 0;
    list.of[0] = pattern.s;
    memset(g, 0, sizeof *g);
    g->least = *sign == '>';
    g->strict = sign[0] && sign[1] != '=';
    const char* number = *sign ? sign + 2 - g->strict : sign;
    g->value = kbi_real_of(number, &end);
    bool good =
        (*sign == '<' || *sign == '>') && end != number && (!*end || kbi_is(end, "%")) && kbi_finite(g->value);
    if (!good)
        kbi_error("--goal takes CASES:KEY>=NUMBER or CASES:KEY<=NUMBER, for example layernorm:gpu_efficiency>=80, "
                  "not '%s'",
                  text);
    good = good && kbi_shown_named("goal", name, &g->what);
    if (good && !g->what.counter[0] && g->what.key->kind != KBI_KIND_real && g->what.key->kind != KBI_KIND_whole)
        good = (kbi_error("--goal: the key %s has no number. Use a numeric key", g->what.key->name), false);
    good = good && kbi_patterns_compile(&g->which, &list);
    kbi_text_free(&pattern);
    return good;
}

static bool kbi_goals_check(void) {
    for (int i = 0; i < kbi_wanted.goal.n; i++) {
        kbi_goal g;
        if (!kbi_goal_parse(kbi_wanted.goal.of[i], &g)) return false;
        kbi_patterns_free(&g.which);
    }
    return true;
}

static bool kbi_goal_met(const kbi_goal* g, double x) {
    if (kbi_nan(x)) return false; // a case misses the goal if the value was not measured
    return g->least ? (g->strict ? x > g->value : x >= g->value) : g->strict ? x < g->value : x <= g->value;
}

// Failed and skipped cases are not tested.
static int64_t kbi_goals_show(FILE* out, const kb_result* r, int64_t n) {
    int64_t missed = 0;
    for (int i = 0; i < kbi_wanted.goal.n; i++) {
        kbi_goal g;
        int64_t of = 0, without = 0;
        if (!kbi_goal_parse(kbi_wanted.goal.of[i], &g)) continue;
        for (int64_t k = 0; k < n; k++) {
            if (!kbi_has_time(&r[k]) || (g.which.n && !kbi_patterns_match(&g.which, r[k].name))) continue;
            double x = kbi_shown_number(&r[k], &g.what);
            char number[40];
            of++;
            if (kbi_goal_met(&g, x)) continue;
            without++;
            kbi_print_line(out, "goal missed: %s %s in %s", g.what.counter[0] ? g.what.counter : g.what.key->name,
                           kbi_finite(x) ? kbi_show(x, 4, number) : "is not known", r[k].name);
        }
        if (of)
            kbi_print_line(out, "goal %s: reached by %lld of %lld case%s", kbi_wanted.goal.of[i],
                           (long long)(of - without), (long long)of, of == 1 ? "" : "s");
        else
            kbi_warn("--goal %s: no case with a time matches", kbi_wanted.goal.of[i]);
        missed += without;
        kbi_patterns_free(&g.which);
    }
    return missed;
}

// --- files ---

static bool kbi_plain_name(const char* s) {
    return *s && *s != '.' && *s != '-' &&
           s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-")] == 0;
}

static void kbi_baseline_path(kbi_text* out, const char* name) { kbi_putf(out, ".kbench/%s.json", name); }

static bool kbi_read_baseline(const kbi_options* o, const char* option, const char* name, kbi_records* r) {
    kbi_text path = KBI_BLANK;
    memset(r, 0, sizeof *r);
    kbi_baseline_path(&path, name);
    bool named = kbi_plain_name(name) && access(path.s, F_OK) == 0;
    bool good = named || access(name, F_OK) == 0;
    if (!good && kbi_plain_name(name))
        kbi_error("--%s %s: neither %s nor a file of this name exists; --save-baseline %s creates it", option, name,
                  path.s, name);
    else if (!good)
        kbi_error("--%s %s: %s", option, name, strerror(errno));
    good = good && kbi_read_records(r, named ? path.s : name);
    if (good && !r->n)
        good = (kbi_error("--%s %s: the file has no record; a run with --json FILE or --save-baseline NAME writes "
                          "records",
                          option, name),
                false);
    good = good && kbi_load_choose(o, r);
    kbi_text_free(&path);
    return good;
}

// --- the regression gate of a run ---

typedef struct kbi_regression {
    const kbi_options* o;
    kbi_records before, history;
    char* save;            // absolute path of the new baseline: a benchmark function may change the directory
    kbi_lines lines;
    kbi_contrast contrast;
    FILE* out;
} kbi_regression;

static bool kbi_regression_wanted(void) {
    return kbi_wanted.baseline || kbi_wanted.save_baseline || kbi_wanted.history || kbi_wanted.goal.n;
}

// Checks, before the run, whether the files that the run writes at its end are writable.
static bool kbi_regression_open_files(kbi_regression* g) {
    kbi_text path = KBI_BLANK;
    struct stat about;
    if (kbi_wanted.save_baseline) {
        kbi_baseline_path(&path, kbi_wanted.save_baseline);
        g->save = kbi_real_path(path.s);
        kbi_text_free(&path);
        if (mkdir(".kbench", 0777) != 0 && errno != EEXIST)
            return kbi_error("--save-baseline %s: cannot create .kbench here: %s", kbi_wanted.save_baseline,
                             strerror(errno)),
                   false;
        if (access(".kbench", W_OK | X_OK) != 0)
            return kbi_error("--save-baseline %s: .kbench: %s", kbi_wanted.save_baseline, strerror(errno)), false;
        kbi_out probe;
        if (stat(g->save, &about) == 0 && !S_ISREG(about.st_mode))
            return kbi_error("cannot write --save-baseline %s: .kbench/%s.json is not a regular file",
                             kbi_wanted.save_baseline, kbi_wanted.save_baseline),
                   false;
        if (!kbi_out_open(&probe, "save-baseline", g->save, &kbi_array_mark, false)) return false;
        kbi_out_free(&probe);
    }
    if (!kbi_wanted.history) return true;
    if (kbi_is(kbi_wanted.history, "-") || (stat(kbi_wanted.history, &about) == 0 && !S_ISREG(about.st_mode)))
        return kbi_error("cannot write --history %s: it is not a regular file", kbi_wanted.history), false;
    return kbi_lines_open(&g->lines, "history", kbi_wanted.history) &&
           kbi_read_records(&g->history, kbi_wanted.history);
}

static bool kbi_regression_open(kbi_regression* g, const kbi_options* o, FILE* out) {
    memset(g, 0, sizeof *g);
    g->o = o;
    g->out = out;
    if (!kbi_goals_check()) return false;
    if (kbi_wanted.baseline && !kbi_read_baseline(o, "baseline", kbi_wanted.baseline, &g->before)) return false;
    return kbi_regression_open_files(g);
}

static void kbi_regression_free(kbi_regression* g) {
    KBENCH_FREE(g->contrast.changes.of);
    kbi_records_free(&g->before);
    kbi_records_free(&g->history);
    KBENCH_FREE(g->save);
    if (g->lines.path) kbi_out_free(&g->lines);
    memset(g, 0, sizeof *g);
}

// Lists the differences between the machines of old and new records. Warns once about each kind of difference that
// makes times not comparable.
static void kbi_regression_machines(const kbi_changes* c, const kbi_how* how) {
    kbi_set said = KBI_BLANK;
    kbi_differences all;
    kbi_differences_of(&all, c);
    if (all.n) fprintf(how->out, "\nThe runs 'before' and 'after' differ in\n");
    kbi_differences_show(how, &all);
    kbi_arena_free(&all.texts);
    for (int64_t i = 0; i < c->n; i++) {
        const kbi_change* one = &c->of[i];
        kbi_text what = KBI_BLANK;
        if (kbi_has_time(one->before) && kbi_has_time(one->after) &&
            kbi_env_differs(one->before, one->after, &what) &&
            kbi_set_add(&said, kbi_hash(14695981039346656037u, what.s)))
            kbi_warn("old and new records differ in %s%s", what.s,
                     kbi_wanted.on[KBI_REPORT_ignore_env] ? "; --ignore-env compares them nevertheless"
                                                          : ". Their times are not compared; --ignore-env compares "
                                                            "them");
        kbi_text_free(&what);
    }
    kbi_set_free(&said);
}

// Marks the pairs of records whose times are not comparable, unless --ignore-env was given.
static void kbi_regression_apart(kbi_changes* c) {
    for (int64_t i = 0; i < c->n && !kbi_wanted.on[KBI_REPORT_ignore_env]; i++) {
        kbi_text what = KBI_BLANK;
        c->of[i].apart = kbi_comparable(&c->of[i]) && kbi_env_differs(c->of[i].before, c->of[i].after, &what);
        kbi_text_free(&what);
    }
}

static void kbi_regression_side(FILE* out, const char* side, const char* file, const kb_result* r) {
    kbi_print_line(out, "%s  %s%s%s%s%.12s%s%.60s", side, file, r->date ? "  " : "", r->date ? r->date : "",
                   r->git_commit ? "  commit " : "", r->git_commit ? r->git_commit : "", r->build ? "  " : "",
                   r->build ? r->build : "");
}

// Returns the records of the history that are comparable with the cases of this run. The scatter between runs is
// estimated from these records.
static const kb_result** kbi_regression_past(const kbi_records* history, const kb_result* now, int64_t n,
                                             int64_t* count) {
    const kb_result** past = KBI_GROW(NULL, const kb_result*, history->n + n);
    kbi_named* order = KBI_GROW(NULL, kbi_named, n);
    int64_t m = kbi_name_records(order, now, n);
    *count = 0;
    for (int64_t i = 0; i < history->n; i++) {
        const kb_result* r = &history->of[i];
        int64_t low = 0, high = m;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(order[middle].r->name ? order[middle].r->name : "", r->name) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        kbi_text what = KBI_BLANK;
        if (low < m && kbi_is(order[low].r->name, r->name) && !kbi_env_differs(r, order[low].r, &what))
            past[(*count)++] = r;
        kbi_text_free(&what);
    }
    KBENCH_FREE(order);
    return past;
}

// Compares the cases with the records `before`. The history, if any, gives the scatter between runs.
static void kbi_regression_contrast(kbi_contrast* c, const kbi_records* history, const kbi_records* before,
                                    const kb_result* now, int64_t n) {
    int64_t past_n = 0, trends_n = 0;
    const kb_result** past = kbi_regression_past(history, now, n, &past_n);
    kbi_trend* trends = kbi_trends(past, past_n, &trends_n);
    c->name = kbi_wanted.baseline ? kbi_wanted.baseline : kbi_wanted.compare[0];
    c->before = before->of;
    c->n_before = before->n;
    c->rules = kbi_rules_of();
    c->changes = kbi_pair_records(before->of, before->n, now, n);
    kbi_changes_learn(&c->changes, trends, trends_n);
    kbi_regression_apart(&c->changes);
    kbi_compare(&c->changes, &c->rules);
    c->sum = kbi_assess(&c->changes);
    KBENCH_FREE(trends);
    KBENCH_FREE(past);
}

// c is NULL without a baseline: only the goals and the trends of the history are printed.
static int kbi_regression_judge(const kbi_options* o, const kbi_records* history, const kbi_contrast* c,
                                const kb_result* now, int64_t n, const char* name, FILE* out) {
    kbi_how how = kbi_how_of(o, out);
    kbi_assessment none;
    memset(&none, 0, sizeof none);
    if (c) {
        fprintf(out, "\n");
        kbi_regression_side(out, "before", c->name, &c->before[0]);
        if (n) kbi_regression_side(out, "after ", name, &now[0]);
        kbi_regression_machines(&c->changes, &how); // printed first, because another machine may explain the changes
        kbi_changes_show(&how, &c->changes, &c->rules, &c->sum, NULL);
    }
    if (kbi_wanted.history) {
        int64_t past_n = 0, trends_n = 0;
        const kb_result** past = kbi_regression_past(history, now, n, &past_n);
        for (int64_t i = 0; i < n; i++) past[past_n++] = &now[i];
        kbi_trend* trends = kbi_trends(past, past_n, &trends_n);
        kbi_trends_show(&how, trends, trends_n, kbi_wanted.history);
        KBENCH_FREE(trends);
        KBENCH_FREE(past);
    }
    int64_t missed = kbi_goals_show(out, now, n);
    fflush(out);
    return kbi_regression_code(c ? &c->sum : &none, c != NULL, missed);
}

static bool kbi_history_add(kbi_regression* g, const kb_result* now, int64_t n) {
    for (int64_t i = 0; i < n; i++) kbi_json_result(&g->lines.waiting, &now[i]), kbi_puts(&g->lines.waiting, "\n");
    bool good = kbi_lines_end(&g->lines, 5000);
    if (!good && errno) kbi_error("writing --history %s failed: %s", kbi_wanted.history, strerror(errno));
    return good;
}

// If this run is a regression against the baseline of the same name, the old baseline is kept.
static bool kbi_regression_save(kbi_regression* g, const kb_result* now, int64_t n, int code) {
    bool good = !kbi_wanted.history || kbi_history_add(g, now, n);
    if (!kbi_wanted.save_baseline) return good;
    if (code == KBI_EXIT_REGRESSED && kbi_is(kbi_wanted.save_baseline, kbi_wanted.baseline))
        return kbi_warn("--save-baseline %s: the old baseline is kept, because this run is a regression",
                        kbi_wanted.save_baseline),
               good;
    int64_t without = 0;
    for (int64_t i = 0; i < n; i++) without += !kbi_has_time(&now[i]);
    if (!kb_write_json(now, n, g->save)) return false;
    kbi_warn("baseline %s: %lld records in .kbench/%s.json%s", kbi_wanted.save_baseline, (long long)n,
             kbi_wanted.save_baseline, without ? "; some have no time and cannot be compared" : "");
    return good;
}

static kbi_regression kbi_regression_now;
static const kbi_contrast* kbi_loaded_now; // comparison of the records of --load; NULL: none
static bool kbi_figure_failed;             // --where left no record for --svg

// Returns the comparison of this run's records, or of the loaded records, with a baseline; NULL without a baseline.
static const kbi_contrast* kbi_contrast_now(const kb_result* now, int64_t n) {
    kbi_regression* g = &kbi_regression_now;
    if (kbi_loaded_now) return kbi_loaded_now;
    if (!g->o || !kbi_wanted.baseline || !n || kbi_control.interrupted) return NULL;
    if (!g->contrast.before) kbi_regression_contrast(&g->contrast, &g->history, &g->before, now, n);
    return &g->contrast;
}

static kb_output* kbi_regression_output;
static bool kbi_regression_start(const char* value) {
    const kbi_options* o = kbi_options_now;
    (void)value;
    kbi_regression_output->on = kbi_regression_wanted() && !kbi_wanted.n_load && !kbi_wanted.compare[0];
    if (!kbi_regression_output->on ||
        kbi_regression_open(&kbi_regression_now, o, kbi_outputs_stdout(o) ? stderr : stdout))
        return true;
    kbi_regression_free(&kbi_regression_now);
    return false;
}

static int kbi_regression_end(const kb_result* records, int64_t n, int code) {
    kbi_regression* g = &kbi_regression_now;
    if (code == KBI_EXIT_INTERRUPTED)
        kbi_warn("interrupted: nothing is compared, and no baseline or history is changed");
    if ((code == KBI_EXIT_FINE || code == KBI_EXIT_FAILED) && n) {
        int judged =
            kbi_regression_judge(g->o, &g->history, kbi_contrast_now(records, n), records, n, "this run", g->out);
        if (!kbi_regression_save(g, records, n, judged)) code = KBI_EXIT_USAGE;
        if (code == KBI_EXIT_FINE) code = judged;
    }
    kbi_regression_free(g);
    return code;
}

// --- without a run ---

// --env --load A B: prints the differences between the machines of two files, and nothing else.
static int kbi_env_loaded(const kbi_options* o) {
    kbi_records of[2];
    kbi_differences all;
    kbi_how how = kbi_how_of(o, stdout);
    memset(of, 0, sizeof of);
    if (kbi_wanted.n_load != 2)
        return kbi_error("--env --load takes two files; it shows the differences between their machines"),
               KBI_EXIT_USAGE;
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        good = kbi_read_records(&of[i], kbi_wanted.load[i]);
        if (good && !of[i].n) good = (kbi_error("%s: the file has no record", kbi_wanted.load[i]), false);
        good = good && kbi_load_choose(o, &of[i]);
        if (good) kbi_regression_side(stdout, i ? "after " : "before", kbi_wanted.load[i], &of[i].of[0]);
    }
    if (good) {
        kbi_changes c = kbi_pair_records(of[0].of, of[0].n, of[1].of, of[1].n);
        kbi_differences_of(&all, &c);
        if (!all.n) printf("no difference in the properties that both files record\n");
        fflush(stdout);
        kbi_differences_show(&how, &all);
        kbi_arena_free(&all.texts);
        KBENCH_FREE(c.of);
    }
    for (int i = 0; i < 2; i++) kbi_records_free(&of[i]);
    return good ? KBI_EXIT_FINE : KBI_EXIT_USAGE;
}

typedef struct kbi_loaded {
    kbi_records before, history;
    kbi_contrast contrast;
} kbi_loaded;

// Reads the history and compares the loaded records with l->before, which the caller has read. l->before is empty
// if there is no baseline.
static bool kbi_loaded_open(kbi_loaded* l, const kbi_records* now) {
    if (kbi_wanted.history && !kbi_read_records(&l->history, kbi_wanted.history)) return false;
    if (l->before.n) kbi_regression_contrast(&l->contrast, &l->history, &l->before, now->of, now->n);
    return true;
}

static const kbi_contrast* kbi_loaded_contrast(const kbi_loaded* l) { return l->before.n ? &l->contrast : NULL; }

static int kbi_loaded_judge(const kbi_loaded* l, const kbi_options* o, const kbi_records* now, const char* name,
                            FILE* out) {
    int64_t failed = 0;
    int code = kbi_regression_judge(o, &l->history, kbi_loaded_contrast(l), now->of, now->n, name, out);
    for (int64_t i = 0; i < now->n; i++) failed += now->of[i].status == KB_FAILED;
    return failed ? KBI_EXIT_FAILED : code;
}

static void kbi_loaded_free(kbi_loaded* l) {
    kbi_records_free(&l->before);
    kbi_records_free(&l->history);
    KBENCH_FREE(l->contrast.changes.of);
}

static int kbi_compare_main(const kbi_options* o) {
    kbi_loaded with;
    kbi_records after;
    memset(&with, 0, sizeof with);
    memset(&after, 0, sizeof after);
    bool good = kbi_goals_check() && kbi_read_baseline(o, "compare", kbi_wanted.compare[0], &with.before) &&
                kbi_read_baseline(o, "compare", kbi_wanted.compare[1], &after) && kbi_loaded_open(&with, &after);
    int code = good ? kbi_loaded_judge(&with, o, &after, kbi_wanted.compare[1], stdout) : KBI_EXIT_USAGE;
    kbi_loaded_free(&with);
    kbi_records_free(&after);
    return code;
}

/*-----------------------------------------------------------------
  >>shown       --svg, --html, --github and --report: outputs that need more than the records.
-----------------------------------------------------------------*/

static const kbi_plot* kbi_output_plot(const char* name) {
    kbi_nearest best = { name, NULL, 64 };
    const kbi_plot* plot = kbi_plot_named(name);
    for (int i = 0; i < KBI_COUNT(kbi_plots); i++) kbi_offer(&best, kbi_plots[i].name);
    if (plot) return plot;
    if (best.distance <= 3)
        kbi_error("--plot: no figure is called '%s'; the nearest name is '%s' (--help all lists them)", name,
                  best.name);
    else
        kbi_error("--plot: no figure is called '%s' (--help all lists them)", name);
    return NULL;
}

static bool kbi_where_leaves(const kb_result* r) {
    bool chosen = !kbi_wanted.where.n;
    for (int i = 0; i < kbi_wanted.where.n && !chosen; i++) chosen = kbi_where_holds(kbi_wanted.where.of[i], r);
    return chosen;
}

// Checks that --where is valid and selects at least one of these records.
static bool kbi_where_check(const kb_result* records, int64_t n) {
    int64_t left = 0;
    for (int k = 0; k < kbi_wanted.where.n; k++)
        if (!kbi_where_known(kbi_wanted.where.of[k], records, n)) return false;
    for (int64_t i = 0; i < n; i++) left += kbi_where_leaves(&records[i]);
    return left || !n || (kbi_error("--where: no record matches"), false);
}

static bool kbi_figure_open(const char* value) {
    (void)value;
    if (!kbi_output_plot(kbi_wanted.plot)) return false;
    for (int i = 0; i < kbi_wanted.where.n; i++)
        if (!kbi_where_known(kbi_wanted.where.of[i], NULL, 0)) return false;
    return true;
}

static void kbi_figure_write(kbi_text* t, const kb_result* records, int64_t n) {
    const kbi_contrast* contrast = kbi_contrast_now(records, n);
    const kbi_plot* plot = kbi_output_plot(kbi_wanted.plot);
    kbi_figure_failed = !kbi_where_check(records, n);
    if (kbi_figure_failed) return;
    kb_result* of = KBI_GROW(NULL, kb_result, n);
    kbi_contrast some;
    int64_t left = 0;
    memset(&some, 0, sizeof some);
    if (contrast) some = *contrast;
    some.changes.of = KBI_GROW(NULL, kbi_change, some.changes.n);
    some.changes.n = 0;
    for (int64_t i = 0; i < n; i++)
        if (kbi_where_leaves(&records[i])) of[left++] = records[i];
    for (int64_t i = 0; contrast && i < contrast->changes.n; i++) {
        const kbi_change* c = &contrast->changes.of[i];
        if (kbi_where_leaves(c->after ? c->after : c->before)) some.changes.of[some.changes.n++] = *c;
    }
    kbi_svg(t, of, left, contrast ? &some : NULL, plot);
    KBENCH_FREE(some.changes.of);
    KBENCH_FREE(of);
}

static int kbi_figure_end(const kb_result* records, int64_t n, int code) {
    (void)records, (void)n;
    return kbi_figure_failed ? KBI_EXIT_USAGE : code;
}

static void kbi_page_write(kbi_text* t, const kb_result* records, int64_t n) {
    kbi_html(t, records, n, kbi_contrast_now(records, n));
}

static const kbi_signature kbi_md_mark = { "", ", kbench ", 1 };

static bool kbi_github_open(const char* value) {
    const char* summary = getenv("GITHUB_STEP_SUMMARY");
    (void)value;
    if (!summary || !*summary)
        return kbi_error("--github writes to the file named by GITHUB_STEP_SUMMARY, which is not set; --md FILE "
                         "writes the same"),
               false;
    return kbi_outputs_add(kbi_outputs_now, "github", kbi_md, &kbi_md_mark, summary, true);
}

// Checks that all outputs, the baseline and the history can be written, before any of these files is opened.
static bool kbi_report_ready(const char* value) {
    static const char* const files[] = { "comparison.csv", "comparison.md", "report.md" };
    const char *github = getenv("GITHUB_STEP_SUMMARY"), *folder = kbi_wanted.report;
    bool runs = !kbi_wanted.n_load && !kbi_wanted.compare[0], apart = true;
    (void)value;
    if (runs && kbi_wanted.history && *kbi_wanted.history)
        apart = kbi_destination_take("history", kbi_wanted.history);
    if (kbi_wanted.on[KBI_REPORT_github] && github && *github)
        apart = apart && kbi_destination_take("github", github);
    for (int i = 0; i < KBI_COUNT(files) && folder && *folder; i++) {
        kbi_text path = KBI_BLANK;
        kbi_putf(&path, "%s/%s", folder, files[i]);
        apart = apart && kbi_destination_take("report", path.s);
        kbi_text_free(&path);
    }
    if (kbi_wanted.save_baseline) {
        kbi_text path = KBI_BLANK;
        kbi_baseline_path(&path, kbi_wanted.save_baseline);
        apart = apart && kbi_destination_take("save-baseline", path.s);
        kbi_text_free(&path);
    }
    return apart;
}

static bool kbi_report_open(const char* folder) {
    static const kbi_signature csv = { "name,operation,direction,", "", 1 };
    static const kbi_signature report = { "# Benchmark report\n", ", kbench ", 3 };
    const struct {
        const char* name;
        void (*fill)(kbi_text* t, const kb_result* records, int64_t n);
        const kbi_signature* mark;
    } files[] = { { "comparison.csv", kbi_csv, &csv },
                  { "comparison.md", kbi_md, &kbi_md_mark },
                  { "report.md", kbi_report, &report } };
    bool good = true;
    if (!*folder) return kbi_error("--report needs the name of a folder; the given name is empty"), false;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return kbi_error("cannot create --report %s: %s", folder, strerror(errno)), false;
    for (int i = 0; i < KBI_COUNT(files) && good; i++) {
        kbi_text path = KBI_BLANK;
        kbi_putf(&path, "%s/%s", folder, files[i].name);
        good = kbi_outputs_add(kbi_outputs_now, "report", files[i].fill, files[i].mark, path.s, false);
        kbi_text_free(&path);
    }
    return good;
}

/*-----------------------------------------------------------------
  >>load        shows records of earlier runs; runs nothing.
-----------------------------------------------------------------*/

// Keeps the records that the options select (--filter, --op, ...), by the same rules as a run selects its cases.
static bool kbi_load_choose(const kbi_options* o, kbi_records* r) {
    kbi_patterns with, without;
    without.n = 0;
    bool good = kbi_patterns_compile(&with, &o->filter) && kbi_patterns_compile(&without, &o->exclude);
    int64_t n = 0, all = r->n;
    for (int64_t i = 0; good && i < all; i++) {
        const kb_result* x = &r->of[i];
        if ((with.n && !kbi_patterns_match(&with, x->name)) || kbi_patterns_match(&without, x->name)) continue;
        if (!kbi_selects_operation(o, x->operation)) continue;
        if (o->impl.n && !(x->implementation && kbi_any_lists(&o->impl, x->implementation))) continue;
        if (o->dtype.n && !(x->dtype && kbi_any_lists(&o->dtype, x->dtype))) continue;
        r->of[n++] = *x;
    }
    if (good) r->n = n;
    if (good && !n && all)
        kbi_error("none of the %lld records is selected%s%s%s. To see all, leave out FILTER, --op, --impl, --dtype, "
                  "--filter and --exclude.",
                  (long long)all, o->filter.n ? " by the filter '" : "", o->filter.n ? o->filter.of[0] : "",
                  o->filter.n ? "'" : "");
    kbi_patterns_free(&with);
    kbi_patterns_free(&without);
    return good && (n || !all);
}

static void kbi_load_warn(const kbi_records* r) {
    const kb_result* first = &r->of[0]; // prefers GPU work, because host work has a different timer
    kbi_set said = KBI_BLANK;
    for (int64_t i = r->n - 1; i >= 0; i--)
        if (r->of[i].timer && !kbi_is(r->of[i].timer, "wall")) first = &r->of[i];
    for (int64_t i = 0; i < r->n; i++) {
        kb_result x = r->of[i];
        kbi_text what = KBI_BLANK;
        if (kbi_is(x.run_id, first->run_id)) continue;
        if (kbi_is(x.timer, "wall")) x.cache = x.timer = NULL;
        if (kbi_env_differs(first, &x, &what) && kbi_set_add(&said, kbi_hash(14695981039346656037u, what.s)))
            kbi_warn("these records have times that cannot be compared with each other: %s", what.s);
        kbi_text_free(&what);
    }
    kbi_set_free(&said);
}

typedef struct kbi_sharded {
    int64_t again, device, place, at; // again: number of earlier records of the case; at: index in the input
} kbi_sharded;

static int kbi_order_sharded(const void* a, const void* b) {
    const kbi_sharded *x = (const kbi_sharded*)a, *y = (const kbi_sharded*)b;
    if (x->again != y->again) return x->again < y->again ? -1 : 1;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

// Sorts the records of shards into the order of the plan. If a sweep ran twice, all records of its first run come
// first.
static void kbi_load_order(kbi_records* r) {
    kbi_sharded* order = KBI_GROW(NULL, kbi_sharded, r->n);
    kb_result* sorted = KBI_GROW(NULL, kb_result, r->n);
    kbi_map seen;
    int64_t n = 0;
    memset(&seen, 0, sizeof seen);
    for (int64_t i = 0; i < r->n; i++) {
        const kb_result* x = &r->of[i];
        char device[32];
        if (!x->shard || x->place == KB_NONE) continue;
        snprintf(device, sizeof device, "|%lld|", (long long)x->device);
        uint64_t key = kbi_hash(kbi_hash(14695981039346656037u, device), x->name);
        kbi_mapped* slot = kbi_map_find(&seen, key);
        order[n].again = slot->key ? (int64_t)++slot->at : 0;
        if (!slot->key) kbi_map_take(&seen, slot, key, 0);
        order[n].device = x->device;
        order[n].place = x->place;
        order[n++].at = i;
    }
    qsort(order, (size_t)n, sizeof *order, kbi_order_sharded);
    for (int64_t i = 0; i < n; i++) sorted[i] = r->of[order[i].at];
    for (int64_t i = 0, k = 0; i < r->n; i++)
        if (r->of[i].shard && r->of[i].place != KB_NONE) r->of[i] = sorted[k++];
    KBENCH_FREE(seen.slots);
    KBENCH_FREE(sorted);
    KBENCH_FREE(order);
}

static void kbi_load_absent(const kbi_records* r) {
    kbi_set there = KBI_BLANK;
    const char* of = NULL; // for example "/8"
    kbi_text absent = KBI_BLANK;
    for (int64_t i = 0; i < r->n; i++) {
        const char* slash = r->of[i].shard ? strchr(r->of[i].shard, '/') : NULL;
        if (!slash) continue;
        if (of && !kbi_is(of, slash)) {
            kbi_warn(
                "the runs of the shards used different numbers of shards, K%s and K%s. A case may occur twice or "
                "not at all.",
                of, slash);
            of = NULL;
            break;
        }
        of = slash;
        kbi_set_add(&there, (uint64_t)strtoll(r->of[i].shard, NULL, 10));
    }
    int64_t shards = of ? KBI_MIN(strtoll(of + 1, NULL, 10), (long long)KBI_SHARDS) : 0, n = 0;
    for (int64_t k = 1; k <= shards; k++)
        if (kbi_set_add(&there, (uint64_t)k) && n++ < 8)
            kbi_putf(&absent, "%s%lld%s", n > 1 ? ", " : "", (long long)k, of);
    if (n)
        kbi_warn("no record of shard%s %s%s: not run yet, or no case for %s", n > 1 ? "s" : "", absent.s,
                 n > 8 ? ", ..." : "", n > 1 ? "them" : "it");
    kbi_text_free(&absent);
    kbi_set_free(&there);
}

static bool kbi_load_alike(const kbi_records* r) {
    const kb_result* first = NULL;
    for (int64_t i = 0; i < r->n && !kbi_wanted.on[KBI_REPORT_ignore_env]; i++) {
        const kb_result* x = &r->of[i];
        if (!x->shard || !x->gpu) continue;
        if (!first) first = x;
        if (!kbi_is(x->gpu, first->gpu))
            return kbi_error("--load: shard %s ran on %s, and shard %s on %s. Times of different GPUs are not "
                             "comparable. Load the shards of each GPU separately, or all with --ignore-env.",
                             first->shard, first->gpu, x->shard, x->gpu),
                   false;
    }
    return true;
}

// Rejects a --jsonl that names a loaded file, because --jsonl would append the records again.
static bool kbi_load_apart(const kbi_options* o) {
    struct stat a, b;
    for (int i = 0; i < kbi_wanted.n_load && o->jsonl && !kbi_is(o->jsonl, "-"); i++)
        if ((kbi_is(kbi_wanted.load[i], "-") ? fstat(0, &a) : stat(kbi_wanted.load[i], &a)) == 0 &&
            stat(o->jsonl, &b) == 0 && kbi_same_file(&a, &b))
            return kbi_error("--jsonl would append the loaded records to %s, from which they come. Name another "
                             "file.",
                             o->jsonl),
                   false;
    return true;
}

static bool kbi_load_records(const kbi_options* o, kbi_records* r) {
    for (int i = 0; i < kbi_wanted.n_load; i++)
        if (!kbi_read_records(r, kbi_wanted.load[i])) return false;
    if (!r->n)
        return kbi_error("%s: the file has no record; a run with --json FILE or --jsonl FILE writes records",
                         kbi_wanted.load[0]),
               false;
    if (!kbi_load_choose(o, r) || !kbi_load_alike(r)) return false;
    kbi_load_order(r);
    kbi_load_absent(r);
    kbi_load_warn(r);
    return true;
}

static int kbi_load_shown(const kbi_options* o) {
    kbi_records r;
    kbi_loaded with;
    kbi_store store;
    kbi_outputs outputs;
    memset(&r, 0, sizeof r);
    memset(&with, 0, sizeof with);
    bool good = kbi_load_apart(o) && kbi_load_records(o, &r) && kbi_goals_check() &&
                (!kbi_wanted.baseline || kbi_read_baseline(o, "baseline", kbi_wanted.baseline, &with.before)) &&
                kbi_loaded_open(&with, &r) && kbi_where_check(r.of, r.n) && kbi_outputs_open(&outputs);
    if (good && !kbi_store_open(&store, o->json, o->jsonl)) kbi_outputs_free(&outputs), good = false;
    int code = good ? KBI_EXIT_FINE : KBI_EXIT_USAGE;
    if (good) {
        kbi_table table;
        kbi_how how = kbi_how_of(o, kbi_outputs_stdout(o) ? stderr : stdout);
        kbi_table_open(&table, &how);
        kbi_table_add(&table, r.of, r.n);
        kbi_table_end(&table);
        KBI_EACH_OUTPUT(k)
            for (int64_t i = 0; i < r.n && k->on && k->each; i++) k->each(&r.of[i]);
        for (int64_t i = 0; i < r.n; i++) kbi_store_add(&store, &r.of[i], 1, true);
        if (!kbi_store_close(&store)) code = KBI_EXIT_USAGE;
        kbi_loaded_now = kbi_loaded_contrast(&with);
        if (!kbi_outputs_write(&outputs, r.of, r.n)) code = KBI_EXIT_USAGE;
        KBI_EACH_OUTPUT(k)
            if (code == KBI_EXIT_FINE && k->on && k->fill && !kbi_is(k->value, "-")) kbi_warn("wrote %s", k->value);
        code = kbi_outputs_end(r.of, r.n, code);
        kbi_outputs_free(&outputs);
        kbi_loaded_now = NULL;
    }
    if (code == KBI_EXIT_FINE && kbi_regression_wanted())
        code = kbi_loaded_judge(&with, o, &r, kbi_wanted.load[0], kbi_outputs_stdout(o) ? stderr : stdout);
    kbi_loaded_free(&with);
    kbi_records_free(&r);
    return code;
}

/*-----------------------------------------------------------------
  >>resume      takes finished cases from the --jsonl file of an earlier run.
-----------------------------------------------------------------*/

typedef struct kbi_past_line {
    size_t at, n;              // start and length of the line, without its line end
    kb_result record;          // the name is NULL if the line has no valid record
    bool old;                  // the line will be removed: its case runs again, or the line is torn
    int before;                // index of the previous line with the same name; -1: none
} kbi_past_line;

static struct kbi_past {
    kbi_text text;
    kbi_past_line* lines;
    int n;
    kbi_map names;
    kbi_records records; // owns the texts of all lines read, which kbench may print later
} kbi_past;

static void kbi_past_free(void) {
    kbi_text_free(&kbi_past.text);
    KBENCH_FREE(kbi_past.lines);
    kbi_past.lines = NULL;
    kbi_past.n = 0;
    kbi_set_free(&kbi_past.names);
}

// Reads the lines of a file from its start. Returns false if the file cannot be read; errno has the reason.
static bool kbi_past_read(int file) {
    static const char begin[] = "{\"name\": \"";
    kbi_text* text = &kbi_past.text;
    kbi_past_free();
    if (lseek(file, 0, SEEK_SET) != 0 || !kbi_read_file(file, text, SIZE_MAX)) return false;
    for (size_t at = 0, end; at < text->n; at = end) {
        const char *line = text->s + at, *stop = (const char*)memchr(line, '\n', text->n - at);
        kbi_reader r;
        if ((kbi_past.n & (kbi_past.n - 1)) == 0)
            kbi_past.lines = KBI_GROW(kbi_past.lines, kbi_past_line, KBI_MAX(2 * kbi_past.n, 16));
        kbi_past_line* l = &kbi_past.lines[kbi_past.n++];
        memset(l, 0, sizeof *l);
        l->at = at;
        l->n = stop ? (size_t)(stop - line) : text->n - at;
        end = at + l->n + 1;
        kbi_reader_begin(&r, NULL, 0, &kbi_past.records, line, l->n);
        r.newer = r.strange = true; // prints no warnings about records of other programs
        bool good = kbi_reader_space(&r, true) == '{' && kbi_read_record(&r, &l->record);
        bool alone = good && kbi_reader_space(&r, true) < 0;
        // removes a torn line only if it starts like a record; another tool may have written other lines
        l->old = !good && r.torn && (l->n >= sizeof begin - 1 || !stop) &&
                 memcmp(line, begin, KBI_MIN(l->n, sizeof begin - 1)) == 0;
        kbi_reader_end(&r);
        if (!alone) l->record.name = NULL;
        if (!alone) continue;
        uint64_t key = kbi_hash(0, l->record.name);
        kbi_mapped* slot = kbi_map_find(&kbi_past.names, key);
        l->before = slot->key ? (int)slot->at : -1;
        kbi_map_take(&kbi_past.names, slot, key, kbi_past.n - 1);
    }
    return true;
}

// Returns whether a record is of this case, from this program (hash `binary`), with machine and seed of `like`.
static bool kbi_past_of(const kb_result* r, const char* name, const char* binary, const kb_result* like) {
    if (!kbi_is(r->name, name) || !kbi_is(r->binary, binary)) return false;
    return !like || (kbi_same_text(r->backend, like->backend) && kbi_same_text(r->gpu, like->gpu) &&
                     r->device == like->device && kbi_same_text(r->cpu, like->cpu) && r->seed == like->seed);
}

// Returns whether two command lines have the same arguments, apart from --resume.
static bool kbi_past_arguments(const char* a, const char* b) {
    static const char resume[] = " --resume";
    const size_t n = sizeof resume - 1;
    if (!a || !b) return true; // unknown
    for (a += strcspn(a, " "), b += strcspn(b, " ");; a++, b++) {
        while (strncmp(a, resume, n) == 0 && (!a[n] || a[n] == ' ')) a += n;
        while (strncmp(b, resume, n) == 0 && (!b[n] || b[n] == ' ')) b += n;
        if (!*a || *a != *b) return *a == *b;
    }
}

// Finds the records of the planned cases. If a case of a group has no record or failed, the group's lines are
// removed, and all of its cases run again. Returns the number of cases that need no run.
static int64_t kbi_past_find(kb_planned* cases, int64_t n, const kb_result* like) {
    int64_t done = 0;
    const char* binary = kbi_binary_hash();
    int* last = KBI_GROW(NULL, int, n + 1); // index of the last line of each case; -1: none
    for (int64_t first = 0, end; first < n; first = end) {
        bool whole = true;
        for (end = first; end < n && cases[end].group == cases[first].group; end++) {
            const kbi_mapped* slot = kbi_map_find(&kbi_past.names, kbi_hash(0, cases[end].name));
            int i = slot->key ? (int)slot->at : -1;
            while (i >= 0 && !kbi_past_of(&kbi_past.lines[i].record, cases[end].name, binary, like))
                i = kbi_past.lines[i].before;
            last[end] = i;
            if (cases[end].runs) whole &= i >= 0 && kbi_past.lines[i].record.status != KB_FAILED;
        }
        for (int64_t k = first; k < end; k++) {
            for (int i = last[k]; i >= 0; i = kbi_past.lines[i].before) {
                kbi_past_line* l = &kbi_past.lines[i];
                if (kbi_past_of(&l->record, cases[k].name, binary, like))
                    l->old = !whole || l->record.status == KB_FAILED;
            }
            if (last[k] >= 0 && whole) cases[k].record = &kbi_past.lines[last[k]].record, done++;
        }
    }
    KBENCH_FREE(last);
    return done;
}

// The caller has locked the file.
static bool kbi_past_drop(int file, const char* path) {
    kbi_text lines = KBI_BLANK;
    struct stat about;
    bool differs = false;
    for (int i = 0; i < kbi_past.n; i++) {
        const kbi_past_line* l = &kbi_past.lines[i];
        differs |= l->old;
        if (!l->old) kbi_put(&lines, kbi_past.text.s + l->at, l->n), kbi_puts(&lines, "\n");
    }
    bool good = !differs || (fstat(file, &about) == 0 && kbi_replace(path, &lines, &about));
    kbi_text_free(&lines);
    return good;
}

static bool kbi_resume_recall(kb_planned* cases, int64_t n, const kb_result* like) {
    kbi_lines* l = &kbi_control.run.store.lines;
    const char* path = kbi_options_now->jsonl;
    int file = like ? kbi_lines_lock(l) : kbi_open_input(path, false);
    bool none = file < 0 && errno == ENOENT && !like, good = none || (file >= 0 && kbi_past_read(file));
    if (!good) kbi_error("--resume cannot read --jsonl %s: %s", path, kbi_why_not_open(errno));
    int64_t done = good ? kbi_past_find(cases, n, like) : 0;
    if (good && like && !kbi_past_drop(file, l->path))
        good = (kbi_error("--resume: cannot replace %s: %s", path, strerror(errno)), false);
    if (file >= 0) close(file);
    if (good) kbi_warn("--resume: %lld of %lld cases have a record in %s", (long long)done, (long long)n, path);
    int64_t other = 0;
    const char* command = NULL;
    for (int64_t i = 0; good && like && i < n; i++)
        if (cases[i].record && !kbi_past_arguments(cases[i].record->command, like->command))
            other++, command = cases[i].record->command;
    if (other)
        kbi_warn("--resume: %lld of these records come from another command line (%.200s). The options of this run do not "
                 "change these records. To measure their cases with these options, use another --jsonl file.",
                 (long long)other, command);
    return good;
}

// Records of other builds are recognised by the hash of the program file.
static bool kbi_resume_ready(const char* value) {
    const char* path = kbi_options_now->jsonl;
    struct stat about;
    (void)value;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return kbi_error("--resume cannot read --jsonl %s: %s", path, kbi_why_not_open(ESPIPE)), false;
    if (!*kbi_binary_hash())
        return kbi_error("--resume compares the hash of the program with the records, but the program's file cannot "
                         "be read; run without --resume"),
               false;
    return true;
}

/*-----------------------------------------------------------------
  >>race        runs built programs in alternating fresh processes.
-----------------------------------------------------------------*/

typedef struct kbi_racer {
    kbi_text path;
    kbi_records first; // records of the first round, which define the program's cases
    kbi_named* order;
    int64_t n;
    double* ms; // [round * n + index in order]; NAN: no time
} kbi_racer;

typedef struct kbi_race {
    const kbi_options* o;
    kbi_racer* of;
    int n, rounds, size;     // size: allocated rounds
    kbi_text records, words;
    char** argv;
    int64_t began;
    double widest;
    bool failed;
    bool shown;
} kbi_race;

// --- one process ---

// seconds
static double kbi_race_budget(const kbi_options* o) { return o->on[KBI_OPTION_budget] ? o->budget : 60; }

static void kbi_race_remove(kbi_race* r) {
    unlink(r->records.s);
    unlink(r->words.s);
}

static bool kbi_race_files(kbi_race* r) {
    const char* folder = getenv("TMPDIR");
    kbi_putf(&r->records, "%s/kbench-race-%ld.jsonl", folder && *folder ? folder : "/tmp", (long)getpid());
    kbi_putf(&r->words, "%s.words", r->records.s);
    kbi_text* both[2] = { &r->records, &r->words };
    for (int i = 0; i < 2; i++) {
        int file = kbi_open_file(both[i]->s, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
        if (file < 0) return kbi_error("--race: cannot create %s: %s", both[i]->s, strerror(errno)), false;
        close(file);
    }
    return true;
}

enum { KBI_RACE_OVER = -1 }; // result of kbi_race_turn: time is up; earlier rounds are valid

// Builds the command line with which a race runs each program. A case is measured for 0.2 s, unless the user's
// options choose another duration.
static void kbi_race_command(kbi_race* r) {
    static const char* const long_ones[] = { "--fast",     "--quick",    "--thorough", "--precision",
                                             "--max-time", "--min-time", "--iters",    "--rounds" };
    int n = 0, given = 0;
    bool said = false;
    for (char** p = r->o->rest; p && *p; p++) {
        for (int i = 0; i < KBI_COUNT(long_ones); i++) said |= strncmp(*p, long_ones[i], strlen(long_ones[i])) == 0;
        given++;
    }
    r->argv = KBI_GROW(NULL, char*, given + 8);
    r->argv[n++] = NULL; // the program itself
    r->argv[n++] = (char*)"--jsonl";
    r->argv[n++] = r->records.s;
    r->argv[n++] = (char*)"--no-progress";
    if (!said) r->argv[n++] = (char*)"--max-time=200ms";
    for (int i = 0; i < given; i++) r->argv[n++] = r->o->rest[i];
    r->argv[n] = NULL;
}

static void kbi_race_progress(kbi_race* r, const char* program) {
    char half[40], wanted[40], said[160];
    double seconds = (double)(kbi_now() - r->began) * 1e-9;
    if (r->o->on[KBI_OPTION_quiet] || r->o->on[KBI_OPTION_no_progress] || !kbi_terminal(stderr)) return;
    int n = snprintf(said, sizeof said, "[round %d]  %.0f s of %.0f s at most", r->rounds + 1, seconds,
                     kbi_race_budget(r->o));
    if (kbi_finite(r->widest))
        snprintf(said + n, sizeof said - (size_t)n, "  known to %s, target %s", kbi_show_percent(r->widest, half),
                 kbi_show_percent(log1p(kbi_wanted.threshold) / 3, wanted));
    kbi_progress_line(said, program);
    r->shown = true;
}

static void kbi_race_clear(kbi_race* r) {
    if (r->shown) fputs("\r\033[K", stderr), fflush(stderr);
    r->shown = false;
}

static int kbi_race_lost(kbi_race* r, const kbi_racer* one, int status) {
    char line[300];
    FILE* f = fopen(r->words.s, "r");
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : KBI_EXIT_FAILED;
    kbi_race_clear(r);
    if (WIFSIGNALED(status))
        kbi_error("--race: %s ended with signal %d", one->path.s, WTERMSIG(status));
    else
        kbi_error("--race: %s measured nothing (exit code %d); its output:", one->path.s, code);
    for (int i = 0; f && i < 5 && kbi_get_line(line, (int)sizeof line, f); i++)
        kbi_print_line(stderr, "    %.*s", (int)strcspn(line, "\n"), line);
    if (f) fclose(f);
    return code == KBI_EXIT_NO_GPU ? code : KBI_EXIT_USAGE;
}

// Waits until the program ends. If the race is interrupted or the time is up, sends SIGTERM, and SIGKILL after 2
// s. Time is measured by counting waits of 10 ms, so changes of the system clock have no effect. Returns false if
// it had to stop the program.
static bool kbi_race_wait(pid_t process, int* status, double seconds) {
    double waits = 100 * seconds;
    for (int told = 0; !kbi_ended(process, status);) {
        if (kbi_control.interrupted || waits <= 0) {
            if (told == 0) kill(process, SIGTERM);
            if (told++ == 200) kill(process, SIGKILL);
        }
        kbi_readable(-1, 10);
        waits--;
    }
    return !kbi_control.interrupted && waits > 0;
}

// The limit is 2 * --budget + 10 s for all rounds, more than --budget, because an interrupted round is lost.
static double kbi_race_limit(const kbi_race* r) {
    double limit = 2 * kbi_race_budget(r->o) + 10;
    return r->rounds ? KBI_MAX(limit - kbi_seconds_since(r->began), 0.1) : limit;
}

// Returns 0, KBI_RACE_OVER, or the exit code of the race.
static int kbi_race_turn(kbi_race* r, const kbi_racer* one, kbi_records* to) {
    int status = 0;
    pid_t parent = getpid(), process;
    memset(to, 0, sizeof *to);
    kbi_race_progress(r, one->path.s);
    int file = kbi_open_file(r->records.s, O_WRONLY | O_TRUNC | O_NOFOLLOW);
    if (file < 0) return kbi_error("--race: %s: %s", r->records.s, strerror(errno)), KBI_EXIT_FAILED;
    close(file);
    fflush(NULL);
    process = fork();
    if (process < 0) return kbi_error("cannot start a process: %s", strerror(errno)), KBI_EXIT_FAILED;
    r->argv[0] = one->path.s;
    if (process == 0) kbi_exec(r->argv, r->words.s, false, parent);
    double limit = kbi_race_limit(r);
    bool in_time = kbi_race_wait(process, &status, limit);
    if (kbi_control.interrupted) return KBI_EXIT_INTERRUPTED;
    if (!in_time && r->rounds) return KBI_RACE_OVER;
    if (!in_time) {
        kbi_race_clear(r);
        kbi_error("--race: %s did not end in %.0f s and was stopped, so there is no time. Run the program "
                  "alone to see why, or raise --budget.",
                  one->path.s, limit);
        return KBI_EXIT_USAGE;
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != KBI_EXIT_FINE && code != KBI_EXIT_FAILED) return kbi_race_lost(r, one, status);
    if (!kbi_read_records(to, r->records.s)) return KBI_EXIT_FAILED;
    r->failed |= code == KBI_EXIT_FAILED;
    return to->n ? 0 : kbi_race_lost(r, one, status);
}

// --- rounds ---

static void kbi_race_keep(kbi_race* r, kbi_racer* one, const kbi_records* now) {
    kbi_named* order = KBI_GROW(NULL, kbi_named, now->n);
    int64_t m = kbi_name_records(order, now->of, now->n);
    double* row = one->ms + (int64_t)r->rounds * one->n;
    for (int64_t i = 0, j = 0; i < one->n; i++) {
        const kb_result* wanted = one->order[i].r;
        row[i] = (double)NAN;
        while (j < m && strcmp(order[j].r->name, wanted->name) < 0) j++;
        for (int64_t k = j; k < m && kbi_is(order[k].r->name, wanted->name); k++)
            if (order[k].device == one->order[i].device && kbi_has_time(order[k].r)) row[i] = order[k].r->time_ms;
    }
    KBENCH_FREE(order);
}

static void kbi_race_room(kbi_race* r) {
    if (r->rounds < r->size) return;
    r->size = 2 * r->size + 16;
    for (int k = 0; k < r->n; k++)
        if (r->of[k].n) r->of[k].ms = KBI_GROW(r->of[k].ms, double, r->size * r->of[k].n);
}

// Runs each program of the race once. Every second round reverses the order of the programs; after two rounds, the
// order is rotated by one program.
static int kbi_race_round(kbi_race* r) {
    kbi_race_room(r);
    for (int k = 0; k < r->n; k++) {
        int turn = r->rounds % 2 ? r->n - 1 - k : k;
        kbi_racer* one = &r->of[(turn + r->rounds / 2) % r->n];
        kbi_records now;
        int code = kbi_race_turn(r, one, &now);
        if (code) return kbi_records_free(&now), code;
        if (r->rounds) {
            kbi_race_keep(r, one, &now);
            kbi_records_free(&now);
            continue;
        }
        one->first = now;
        one->order = KBI_GROW(NULL, kbi_named, now.n);
        one->n = kbi_name_records(one->order, one->first.of, now.n);
        one->ms = KBI_GROW(NULL, double, r->size * one->n);
        kbi_race_keep(r, one, &one->first);
    }
    r->rounds++;
    return 0;
}

static int64_t kbi_race_place(const kbi_racer* one, const kb_result* r) {
    for (int64_t low = 0, high = one->n; low < high;) {
        int64_t middle = (low + high) / 2;
        int order = strcmp(one->order[middle].r->name, r->name);
        int64_t device = r->device == KB_NONE ? -1 : r->device;
        if (!order) order = (one->order[middle].device > device) - (one->order[middle].device < device);
        if (!order) return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

// Returns the changes of every program against the first program, over all rounds so far. (*names)[i] is the
// program of change i. The caller frees the changes and *names.
static kbi_changes kbi_race_changes(kbi_race* r, const char*** names) {
    kbi_rules rules = kbi_rules_of();
    kbi_changes all = { NULL, 0 };
    double* logs = NULL;
    *names = NULL;
    for (int k = 1; k < r->n; k++) {
        kbi_racer *old = &r->of[0], *now = &r->of[k];
        kbi_changes c = kbi_pair_records(old->first.of, old->first.n, now->first.of, now->first.n);
        size_t n = (size_t)(all.n + c.n);
        all.of = KBI_GROW(all.of, kbi_change, n);
        *names = KBI_GROW((void*)*names, const char*, n);
        logs = KBI_GROW(logs, double, n*(size_t)r->rounds);
        for (int64_t i = 0; i < c.n; i++, all.n++) {
            const kbi_change* one = &c.of[i];
            int64_t x = one->before ? kbi_race_place(old, one->before) : -1;
            int64_t y = one->after ? kbi_race_place(now, one->after) : -1;
            all.of[all.n] = *one;
            (*names)[all.n] = now->path.s;
            for (int round = 0; round < r->rounds; round++) {
                double b = x < 0 ? (double)NAN : old->ms[round * old->n + x];
                double a = y < 0 ? (double)NAN : now->ms[round * now->n + y];
                logs[all.n * r->rounds + round] = kbi_nan(a) || kbi_nan(b) ? (double)NAN : log(a / b);
            }
        }
        KBENCH_FREE(c.of);
    }
    r->widest = kbi_compare_rounds(&all, logs, r->rounds, &rules);
    KBENCH_FREE(logs);
    return all;
}

// Runs rounds until all intervals are narrow enough, or the time is up.
static int kbi_race_run(kbi_race* r) {
    kbi_rules rules = kbi_rules_of();
    r->began = kbi_now();
    r->widest = (double)INFINITY;
    for (;;) {
        const char** names;
        int64_t at = kbi_now();
        int code = kbi_race_round(r);
        if (code) return code == KBI_RACE_OVER ? 0 : code;
        kbi_changes c = kbi_race_changes(r, &names);
        kbi_assessment a = kbi_assess(&c);
        KBENCH_FREE(c.of);
        KBENCH_FREE((void*)names);
        if (!a.compared) return 0; // the programs have no case in common
        if (kbi_race_enough(r->rounds, r->widest, &rules)) return 0;
        double round = (double)(kbi_now() - at) * 1e-9, all = (double)(kbi_now() - r->began) * 1e-9;
        if (all + round > kbi_race_budget(r->o)) return 0;
    }
}

static int kbi_race_show(kbi_race* r) {
    const char** names;
    char half[40], wanted[40];
    kbi_rules rules = kbi_rules_of();
    kbi_changes c = kbi_race_changes(r, &names);
    kbi_assessment a = kbi_assess(&c);
    kbi_how how = kbi_how_of(r->o, stdout);
    kbi_text paths = KBI_BLANK;
    for (int k = 1; k < r->n; k++) kbi_putf(&paths, "%s%s", k > 1 ? ", " : "", r->of[k].path.s);
    kbi_print_line(stdout, "%s against %s: %d round%s in %.0f s", paths.s, r->of[0].path.s, r->rounds,
                   r->rounds == 1 ? "" : "s", (double)(kbi_now() - r->began) * 1e-9);
    kbi_text_free(&paths);
    kbi_changes_show(&how, &c, &rules, &a, r->n > 2 ? names : NULL);
    if (a.compared && !kbi_race_enough(r->rounds, r->widest, &rules))
        kbi_warn("the race ended at its --budget. The changes %s%s; the target is %s, a third of the threshold. Raise "
                 "--budget.",
                 kbi_finite(r->widest) ? "are known to within " : "do not all have a confidence interval",
                 kbi_finite(r->widest) ? kbi_show_percent(r->widest, half) : "",
                 kbi_show_percent(log1p(rules.threshold) / 3, wanted));
    KBENCH_FREE(c.of);
    KBENCH_FREE((void*)names);
    int code = kbi_regression_code(&a, true, 0);
    if (!a.compared)
        return kbi_error("--race: the programs have no common case with a time; --list shows the cases of each"),
               KBI_EXIT_FAILED;
    return r->failed ? KBI_EXIT_FAILED : code;
}

static bool kbi_race_programs(kbi_race* r) {
    const kbi_strings* list = &kbi_wanted.race;
    struct stat about;
    for (int k = 0; k < list->n; k++) {
        kbi_racer* one = &r->of[k];
        kbi_putf(&one->path, "%s%s", strchr(list->of[k], '/') ? "" : "./", list->of[k]);
        if (stat(one->path.s, &about) != 0) return kbi_error("--race: %s: %s", one->path.s, strerror(errno)), false;
        if (!S_ISREG(about.st_mode) || access(one->path.s, X_OK) != 0)
            return kbi_error("--race: %s is not an executable program", one->path.s), false;
    }
    for (char** p = r->o->rest; p && *p; p++)
        if (strncmp(*p, "--jsonl", 7) == 0)
            return kbi_error("--race: the race uses --jsonl itself to read the programs' records; leave it out"),
                   false;
    return true;
}

static int kbi_race_main(const kbi_options* o) {
    kbi_race r;
    memset(&r, 0, sizeof r);
    r.o = o;
    r.n = kbi_wanted.race.n;
    r.of = KBI_GROW(NULL, kbi_racer, r.n);
    memset(r.of, 0, sizeof(kbi_racer) * (size_t)r.n);
    kbi_watch_ends();
    signal(SIGCHLD, SIG_DFL);
    bool good = kbi_race_programs(&r) && kbi_race_files(&r);
    int code = KBI_EXIT_USAGE;
    if (good) {
        kbi_race_command(&r);
        code = kbi_race_run(&r);
        kbi_race_clear(&r);
        if (!code) code = kbi_race_show(&r);
        kbi_race_remove(&r);
    }
    for (int k = 0; k < r.n; k++) {
        kbi_text_free(&r.of[k].path);
        kbi_records_free(&r.of[k].first);
        KBENCH_FREE(r.of[k].order);
        KBENCH_FREE(r.of[k].ms);
    }
    KBENCH_FREE(r.of);
    KBENCH_FREE(r.argv);
    kbi_text_free(&r.records);
    kbi_text_free(&r.words);
    return code;
}

/*-----------------------------------------------------------------
  >>explain     --explain NAME: the meaning of a flag, a verdict, a key of the record or a column, with an example.
-----------------------------------------------------------------*/

// Each flag of KB_FLAGS has an example: code or a command line. The text after // explains the example. A flag
// without an example is a compile error.
#define KBI_EXAMPLE_VERIFY_FAIL "kb_check(kb, y, want, n, 1e-3); // f16 needs more than 1e-6"
#define KBI_EXAMPLE_STALE "KB_TIME(kb) { if (!done) launch(y), done = 1; } // launch always"
#define KBI_EXAMPLE_WORK_CHANGED "KB_SAMPLE(kb) { reset(x); KB_TIME(kb) { sort_in_place(x); } }"
#define KBI_EXAMPLE_CUDA_ERROR "compute-sanitizer ./bench --no-isolate --filter scale"
#define KBI_EXAMPLE_NO_WORK "KB_TIME(kb) { scale<<<n / 256, 256, 0, kb->stream>>>(x, y, n); }"
#define KBI_EXAMPLE_NO_LOOP "KB_TIME(kb) { launch(); } // launch() alone is not timed"
#define KBI_EXAMPLE_LEFT_EARLY "KB_TIME(kb) { launch(); if (last) break; } // leave out the break"
#define KBI_EXAMPLE_TRANSFER "kb_expect(kb, KB_EXPECT_TRANSFER); // the copy is what is measured"
#define KBI_EXAMPLE_SYNC_INSIDE "KB_TIME(kb) { launch(); cudaDeviceSynchronize(); } // leave it out"
#define KBI_EXAMPLE_ALLOC_INSIDE "float* work = KB_ALLOC(kb, float, n); // before KB_TIME"
#define KBI_EXAMPLE_SIDE_STREAM "cublasSetStream(handle, kb->stream); // before KB_TIME"
#define KBI_EXAMPLE_ABOVE_ROOF "kb_bytes(kb, 2.0 * sizeof(float) * n); // one read, one write"
#define KBI_EXAMPLE_NOT_COLD "./bench --hot --filter scale // times data in cache"
#define KBI_EXAMPLE_TIMEOUT "./bench --timeout 300s --filter scale"
#define KBI_EXAMPLE_OOM "./bench --size small // or -a n=1M"
#define KBI_EXAMPLE_CRASHED "gdb --args ./bench --no-isolate --filter scale"
#define KBI_EXAMPLE_OVERRUN "if (i < n) y[i] = x[i]; // the bound was missing"
#define KBI_EXAMPLE_BAD_CASE "float* hx = kb_host(kb, x); // before KB_TIME, not after"
#define KBI_EXAMPLE_FLOOR "./bench -a n=16M // instead of n=4k"
#define KBI_EXAMPLE_QUANTISED "KB_TIME(kb) { for (int i = 0; i < 100; i++) step(data + i); }"
#define KBI_EXAMPLE_UNGATED "KB_TIME(kb) { for (int i = 0; i < 8; i++) launch(); } // not 10000"
#define KBI_EXAMPLE_UNVERIFIED "KB_CHECK_EACH(kb, y, n, i, 0.5 * hx[i], 1e-6);"
#define KBI_EXAMPLE_THROTTLED "nvidia-smi -lgc 1400 // MHz; nvidia-smi -rgc undoes it"
#define KBI_EXAMPLE_CLOCK_VARIES "nvidia-smi -lgc 1400 // MHz; nvidia-smi -rgc undoes it"
#define KBI_EXAMPLE_UNSETTLED "./bench --warmup 2s"
#define KBI_EXAMPLE_DRIFT "./bench --thorough --warmup 2s"
#define KBI_EXAMPLE_AUTOCORR "./bench --procs 5"
#define KBI_EXAMPLE_BIMODAL "./bench --svg samples.svg --plot samples // draws both groups"
#define KBI_EXAMPLE_OUTLIERS "./bench --columns time,time_ms_p95,time_ms_max"
#define KBI_EXAMPLE_NOISY "./bench --cpu 2 --max-time 5s"
#define KBI_EXAMPLE_FEW "./bench --max-time 5s"
#define KBI_EXAMPLE_PLACEMENT "float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);"
#define KBI_EXAMPLE_SHARED_GPU "nvidia-smi; ./bench --device 1"
#define KBI_EXAMPLE_DECLARED_BYTES "./bench --counters --filter scale // compare with kb_bytes"
#define KBI_EXAMPLE_DECLARED_FLOPS "./bench --counters --filter scale // compare with kb_flops"
#define KBI_EXAMPLE_CONSTANT_DATA "kb_fill(kb, x, n, KB_NORMAL); // before KB_TIME"
#define KBI_EXAMPLE_LEAK "float* work = KB_ALLOC(kb, float, n); // kbench frees it"
#define KBI_EXAMPLE_DEBUG_BUILD "nvcc -O3 bench.cu -o bench // not -G, not -O0"

static const char* const kbi_flag_examples[] = {
#define KBI_X(name, level, mark, what, why, advice) KBI_EXAMPLE_##name,
    KB_FLAGS(KBI_X)
#undef KBI_X
};

// For --explain: why a column or a group of keys matters, and how to use it. KB_RECORD has its meaning.
static const struct {
    int column;
    const char *why, *use;
} kbi_column_reasons[] = {
    { KBI_COLUMN_TIME, "all rates, shares and speedups are computed from the time",
      "compare times only from the same machine, cache state and clock" },
    { KBI_COLUMN_SPREAD, "a time that another run reports may differ by as much",
      "compare implementations by their speedup; narrow the interval with --max-time, --thorough or --procs" },
    { KBI_COLUMN_GBPS, "if memory is the limit, GB/s and not FLOP/s show how good a kernel is",
      "declare the traffic that the task needs: kb_bytes(kb, 2.0 * sizeof(float) * n)" },
    { KBI_COLUMN_GFLOPS, "if arithmetic is the limit, FLOP/s show how good a kernel is",
      "declare the operations that the task needs: kb_flops(kb, 2.0 * m * n * k)" },
    { KBI_COLUMN_ITEMS, "items/s compare cases of different sizes in the user's unit, such as tokens",
      "declare the items of a launch: kb_items(kb, tokens)" },
    { KBI_COLUMN_ROOF, "roof shows the distance from the peak (CPU: of one core)",
      "near 100 % of the roof, reduce the traffic or the operations" },
    { KBI_COLUMN_BAR, "the bar draws the share of the roof, so that weak rows stand out",
      "improve the kernels with the shortest bars first" },
    { KBI_COLUMN_MEMORY, "the memory of a case limits the problem size, and the space for other work on the GPU",
      "--memory-threshold makes growth a regression" },
    { KBI_COLUMN_ENERGY, "a faster kernel may use more energy", "measure with --energy: 3 s more per case" },
    { KBI_COLUMN_FLOP_J, "FLOP/J compare the energy efficiency of kernels of different sizes",
      "use --energy, and declare kb_flops" },
    { KBI_COLUMN_BYTE_J, "bytes/J compare the energy efficiency of kernels of different sizes",
      "use --energy, and declare kb_bytes" },
    { KBI_COLUMN_SAMPLES, "an interval needs 6 samples, the 99 % quantile needs 300",
      "set the number with --iters, or indirectly with --max-time and --precision" },
    { KBI_COLUMN_SPEEDUP, "above 1, the row is faster than the baseline; both ran in interleaved rounds",
      "a speedup is significant if its interval lies outside 1 +- noise_floor; '=' means equivalent, '~' not certain" },
    { KBI_COLUMN_INTERVAL, "the true speedup lies in this interval with 95 % confidence",
      "run more rounds: --thorough or --rounds 64" }
};
KBI_STATIC_ASSERT(KBI_COUNT(kbi_column_reasons) == KBI_COUNT(kbi_columns),
                  "kbi_column_reasons needs one row for each column of the table");

static const struct {
    const char *group, *why, *use;
} kbi_group_reasons[] = { { "what", "the key describes the case; two runs are compared case by case, by name",
                            "select cases with --filter, --op, --impl, --dtype or --size" },
                          { "time", "the key shows the distribution of the time, or how the clock was read",
                            "show the key with --columns, or sort the rows with --sort" },
                          { "rate", "rates compare a case with the peak and with cases of other sizes",
                            "declare the work of a launch with kb_bytes, kb_flops or kb_items" },
                          { "memory", "the memory of a case limits the problem size, and the space for other work",
                            "--memory-threshold makes growth a regression" },
                          { "contest", "a comparison shows whether a difference is real",
                            "compare implementations in one run; kbench interleaves them in rounds" },
                          { "trust", "the key says whether the time is valid",
                            "check the key before you use the time; --explain FLAG explains a flag" },
                          { "kernel", "the key describes the kernel, whose configuration limits the occupancy",
                            "compare the value with other implementations and with the compiler's report" },
                          { "machine", "times are comparable on equal machines only",
                            "use one machine for all runs; --compare and --baseline list differences" },
                          { "run", "the key identifies the run, so that you can repeat the run",
                            "repeat the command with the same seed, build and "
                            "commit" } };

// --explain takes its examples from this record with invented values, in two parts.
static const char kbi_example_record[] =
    "{\"name\": \"scale/impl=vec4/dtype=f32/n=16777216\", \"operation\": \"scale\", \"direction\": \"fwd\", "
    "\"implementation\": \"vec4\", \"origin\": \"own\", \"rung\": 1, \"dtype\": \"f32\", \"batch_size\": 8, "
    "\"sequence_length\": 2048, \"tensor_dimension\": 1024, \"params\": {\"dtype\": \"f32\", \"n\": 16777216}, "
    "\"planned\": 2, \"time_ms\": 0.0482, \"time_ms_mean\": 0.0483, \"time_ms_std\": 0.0001, "
    "\"time_ms_min\": 0.048, \"time_ms_max\": 0.0486, \"time_ms_mad\": 0.0001, \"time_ms_p5\": 0.0481, "
    "\"time_ms_p25\": 0.0481, \"time_ms_p75\": 0.0483, \"time_ms_p95\": 0.0484, \"time_ms_p99\": 0.0485, "
    "\"time_ms_ci_low\": 0.0481, \"time_ms_ci_high\": 0.0483, \"cv\": 0.0025, \"precision\": 0.002, "
    "\"samples\": 320, \"samples_ms\": [0.0482, 0.0481, 0.0483], \"cache\": \"cold\", \"timer\": \"events\", "
    "\"time_ms_raw\": 0.0509, \"bias_ms\": 0.0027, \"floor_ms\": 0.003, \"wall_ms\": 86.4, "
    "\"launches_per_sample\": 8, \"samples_retaken\": 0, \"processes\": 3, "
    "\"process_ms\": [0.0482, 0.0481, 0.0483], \"inference_speed\": 20747, \"throughput_gbps\": 2785, "
    "\"gflops\": 348, \"items_per_second\": 3.48e11, \"queries_per_second\": 20747, \"gpu_efficiency\": 65.7, "
    "\"roof\": \"copy\", \"compute_roof\": \"f32\", \"compute_roof_gflops\": 64457, \"bound\": \"memory\", "
    "\"bytes\": 134217728, \"flops\": 16777216, \"flops_per_joule\": 1.1e9, \"bytes_per_joule\": 8.8e9, "
    "\"counters\": {\"dram_read_bytes\": 67108864}, \"counter_units\": {\"dram_read_bytes\": \"B\"}, "
    "\"memory_mb\": 132, \"memory_bytes\": 138412032, \"host_memory_mb\": 64, \"leaked_bytes\": 0, "
    "\"baseline\": \"naive\", \"speedup\": 1.21, \"speedup_low\": 1.2, \"speedup_high\": 1.22, "
    "\"noise_floor\": 0.004, \"verdict\": \"FASTER\", \"rating\": \"excellent\", \"shared_buffers\": true, "
    "\"winner\": \"vec4\", \"winner_certain\": true, \"status\": \"ok\"}";
static const char kbi_example_rest[] =
    "{\"name\": \"\", \"operation\": \"\", \"verified\": true, \"max_error\": 1.2e-07, \"tolerance\": 1e-06, "
    "\"flags\": [\"NOISY\", \"SHARED_GPU\"], \"message\": \"2 other processes use this GPU\", "
    "\"kernel\": \"scale(float const*, float*, int)\", \"grid\": \"16384x1x1\", \"block\": \"256x1x1\", "
    "\"registers\": 10, \"shared_bytes\": 0, \"local_bytes\": 0, \"occupancy_theoretical\": 100, "
    "\"occupancy_achieved\": 91.5, \"backend\": \"cuda\", \"device\": 0, \"gpu\": \"NVIDIA H200\", "
    "\"compute_capability\": \"9.0\", \"driver\": \"580.159.04\", \"cuda\": \"13.0\", "
    "\"no_gpu\": \"built without CUDA\", \"tool\": \"compute-sanitizer\", \"copy_roof_gbps\": 4236, "
    "\"read_roof_gbps\": 4400, \"write_roof_gbps\": 4100, \"sm_clock_mhz\": 1973, \"memory_clock_mhz\": 3201, "
    "\"clocks_locked\": false, \"power_w\": 122, \"energy_mj\": 15.2, \"idle_power_w\": 76, "
    "\"temperature_c\": 38, \"throttle\": \"power cap\", \"l2_bytes\": 62914560, \"ecc\": true, \"mig\": false, "
    "\"host\": \"node17\", \"cpu\": \"Intel(R) Xeon(R) Processor\", \"cpus\": \"0-15\", \"cpu_clock_mhz\": 2800, "
    "\"cpu_governor\": \"performance\", \"cpu_boost\": true, \"preemptions\": 4, \"cpu_waited\": 0.2, "
    "\"cpu_stolen\": 0.1, \"kernel_version\": \"6.18.44\", \"environment\": {\"aslr\": \"2\"}, "
    "\"kbench_version\": \"0.1.0\", \"schema\": 3, \"date\": \"2026-01-31T23:59:59Z\", "
    "\"binary\": \"a89fc4fd34fd21cf\", \"command\": \"./bench --json r.json\", \"seed\": 42, "
    "\"git_commit\": \"5726b6f196cee6ad5a5896800e9b1d1af50b8200\", \"build\": \"13.3.0, optimised, CUDA\", "
    "\"run_id\": \"5ad6882dcd8ce7b3\", \"shard\": \"1/4\", \"place\": 2}";

// Names that --explain knows besides flags, keys and columns: verdicts, severities and ratings. Each row explains
// the names in its first field.
static const struct {
    const char *names, *kind, *what, *why, *use, *example;
} kbi_terms[] = {
    { "FASTER", "a verdict", "the interval of the speedup lies completely above 1 + noise floor",
      "equal implementations rarely exceed the noise floor; with --compare, FASTER means faster than the old run",
      "report the speedup with its interval and the noise floor",
      "\"speedup\": 1.2, \"speedup_low\": 1.19, \"speedup_high\": 1.21, \"noise_floor\": 0.004" },
    { "SLOWER", "a verdict", "the interval of the speedup lies completely below 1 - noise floor",
      "equal implementations rarely exceed the noise floor; with --compare, SLOWER means slower than the old run",
      "report the speedup with its interval and the noise floor",
      "\"speedup\": 0.8, \"speedup_low\": 0.79, \"speedup_high\": 0.81, \"noise_floor\": 0.004" },
    { "EQUIVALENT,=", "a verdict",
      "the interval lies within 1 % of equality (--compare: within --threshold); the table shows '='",
      "the data excludes a difference of more than 1 % (--compare: more than --threshold)",
      "choose the implementation by memory, energy or simplicity",
      "\"speedup\": 1.001, \"speedup_low\": 0.998, \"speedup_high\": 1.004" },
    { "UNRESOLVED,~", "a verdict", "the data shows neither a difference nor equivalence; the table shows '~'",
      "the interval is too wide, or the difference is within the noise floor",
      "narrow the interval: --thorough, --rounds 64 or --procs 5",
      "\"speedup\": 1.02, \"speedup_low\": 0.97, \"speedup_high\": 1.07" },
    { "fastest,fastest?", "a note at the end of a row of the table",
      "the implementation with the shortest time; '?': it is not significantly faster than all others",
      "without the '?', the difference from each other implementation is significant",
      "after '?', run more rounds (--rounds 64, --procs 5), or choose by memory or simplicity",
      "\"winner\": \"warp\", \"winner_certain\": true" },
    { "skipped,failed", "a status of a case",
      "skipped: kb_skip stopped the case, or it needs a GPU and there is none; failed: a flag replaces the time",
      "a failed case gives exit code 1; a skipped case does not (77: every case needs a GPU)",
      "read the reason in the table, or in the key message of the record", "kb_skip(kb, \"needs sm_90\");" },
    { "change", "a column of --compare, --baseline and --race",
      "time of the new run / time of the old run - 1; a positive change is slower",
      "if the interval is wide, the true change may be much smaller or larger",
      "compare the interval with --threshold; the verdict does so for each case",
      "+61.3%    [+57.6%, +65.1%]  REGRESSED severe" },
    { "added,removed,had failed,not comparable,no time", "a verdict of --compare",
      "added, removed: only one run has the case; had failed: the old run has a flag instead of a time; "
      "not comparable: the machine, cache state or timer differs",
      "a change needs a time of the same case, measured in the same way, in both runs",
      "see what differs: --env --load OLD NEW", "./bench --env --load old.json new.json" },
    { "REGRESSED,IMPROVED", "a result of --compare and --baseline",
      "the interval of the change lies beyond --threshold (5 %); --alpha bounds the risk of any false alarm",
      "a regression gives exit code 3; a change that may be below the threshold does not",
      "repeat the comparison with --race, which alternates both programs", "./new --race ./old ./new --budget 10m" },
    { "minor,moderate,severe,critical", "severity of a regression",
      "the slowdown in units of --threshold: below 2 minor, below 5 moderate, below 20 severe, from 20 critical",
      "the severity shows which regression to fix first; memory growth is in units of twice the threshold",
      "change the unit with --threshold", "REGRESSED severe // 5 to 20 thresholds: 25 to 100 % slower" },
    { "excellent,good,fair,needs work", "a rating",
      "best verified time / time of the case: from 0.8 excellent, 0.5 good, 0.2 fair, else needs work",
      "the rating shows how far an implementation is from the best one",
      "see the speedup and its verdict for the exact difference",
      "\"rating\": \"good\" // 1.25 to 2 times the best time" }
};

static void kbi_explain_line(kbi_table* t, const char* label, const char* text) {
    enum { KBI_EXPLAIN_INDENT = 12 };
    kbi_putf(&t->text, "  %-*s", KBI_EXPLAIN_INDENT - 2, label);
    kbi_table_hang(t, KBI_EXPLAIN_INDENT, KBI_EXPLAIN_INDENT, text);
}

static void kbi_explain_flag(kbi_table* t, int f) {
    kbi_putf(&t->text,
             kbi_flags[f].error ? "%s: a flag; it replaces the time of the case, and the exit code is 1\n"
                                : "%s: a flag; the time stays, and the row of the table ends with %s\n",
             kbi_flags[f].name, kbi_flags[f].mark);
    kbi_explain_line(t, "what", kbi_flags[f].what);
    kbi_explain_line(t, "why", kbi_flags[f].why);
    kbi_explain_line(t, "fix", kbi_flag_advice((kb_flag)f, true));
    if (kbi_flag_advice((kb_flag)f, false) != kbi_flag_advice((kb_flag)f, true))
        kbi_explain_line(t, "on a CPU", kbi_flag_advice((kb_flag)f, false));
    kbi_explain_line(t, "example", kbi_flag_examples[f]);
}

static void kbi_explain_row(kbi_table* t, const kb_result* r, int column) {
    kbi_table row;
    kbi_table_open(&row, &t->how);
    row.bare = true;
    if (column != KBI_COLUMN_TIME) row.chosen[row.n_chosen++] = kbi_shown_column(KBI_COLUMN_TIME);
    row.chosen[row.n_chosen++] = kbi_shown_column(column);
    kbi_table_block(&row, &r, 1, false);
    for (const char* s = row.text.s; *s; s += strcspn(s, "\n"), s += *s == '\n')
        if (*s != '\n') kbi_putf(&t->text, "    %.*s\n", (int)strcspn(s, "\n"), s);
    kbi_text_free(&row.text);
    kbi_arena_free(&row.scratch);
}

static int kbi_explain_column_of(const kbi_key* key) { // -1: no column shows the key
    for (int i = 0; i < KBI_COUNT(kbi_columns); i++)
        if (kbi_is(kbi_columns[i].key, key->name)) return i;
    return -1;
}

static void kbi_explain_reasons(kbi_table* t, const kbi_key* key, int column) {
    for (int i = 0; i < KBI_COUNT(kbi_column_reasons); i++) {
        if (kbi_column_reasons[i].column != column) continue;
        kbi_explain_line(t, "why", kbi_column_reasons[i].why);
        kbi_explain_line(t, "use", kbi_column_reasons[i].use);
    }
    for (int i = 0; i < KBI_COUNT(kbi_group_reasons) && column < 0; i++) {
        if (!kbi_is(kbi_group_reasons[i].group, key->group)) continue;
        kbi_explain_line(t, "why", kbi_group_reasons[i].why);
        kbi_explain_line(t, "use", kbi_group_reasons[i].use);
    }
}

static void kbi_explain_column(kbi_table* t, int column, const kb_result* r) {
    const kbi_key* key = kbi_key_named(kbi_columns[column].key);
    kbi_putf(&t->text, "%s: a column of the table; it shows the key %s of the record\n", kbi_columns[column].title,
             key->name);
    kbi_explain_line(t, "what", key->meaning);
    kbi_explain_reasons(t, key, column);
    kbi_puts(&t->text, "  example\n");
    kb_result plain = *r;
    plain.flags = 0;
    kbi_explain_row(t, &plain, column);
}

static void kbi_explain_key(kbi_table* t, const kbi_key* key, const kb_result* r) {
    kbi_text value = KBI_BLANK;
    kbi_putf(&t->text, "%s: a key of the record%s\n", key->name,
             key->withheld ? "; null if the case has no time" : "");
    kbi_explain_line(t, "what", key->meaning);
    kbi_explain_reasons(t, key, kbi_explain_column_of(key));
    kbi_putf(&value, "\"%s\": ", key->name);
    kbi_json_field(&value, r, key);
    kbi_explain_line(t, "example", value.s);
    kbi_text_free(&value);
}

// Parses kbi_example_record, from which --explain takes its examples. The returned kbi_records owns its texts.
static kbi_records kbi_explain_record(kb_result* r) {
    kbi_records owner;
    kbi_reader reader;
    memset(&owner, 0, sizeof owner);
    const char* parts[] = { kbi_example_record, kbi_example_rest };
    for (int part = 0; part < KBI_COUNT(parts); part++) {
        kb_result read;
        kbi_reader_begin(&reader, "--explain", 1, &owner, parts[part], strlen(parts[part]));
        read = reader.blank;
        if (!part) *r = read;
        kbi_read_keys(&reader, &read);
        for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
            char key[24];
            snprintf(key, sizeof key, "\"%s\": ", kbi_keys[i].name);
            if (strstr(parts[part], key) && (!part || !strstr(parts[0], key)))
                memcpy((char*)r + kbi_keys[i].offset, kbi_field(&read, &kbi_keys[i]), kbi_keys[i].size);
        }
        kbi_reader_end(&reader);
    }
    return owner;
}

static bool kbi_explain_term_has(int term, const char* name) {
    char word[24];
    for (const char* from = kbi_terms[term].names; *from; from += strcspn(from, ","), from += *from == ',') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(from, ","), from);
        if (kbi_same_name(word, name)) return true;
    }
    return false;
}

static void kbi_explain_term(kbi_table* t, int term) {
    kbi_putf(&t->text, "%s: %s\n", kbi_terms[term].names, kbi_terms[term].kind);
    kbi_explain_line(t, "what", kbi_terms[term].what);
    kbi_explain_line(t, "why", kbi_terms[term].why);
    kbi_explain_line(t, "use", kbi_terms[term].use);
    kbi_explain_line(t, "example", kbi_terms[term].example);
}

// Explains a name; upper and lower case are equal. If a flag, a key and a column share the name, all of them are
// explained.
static int kbi_explain_instead(const char* value) {
    char name[64];
    snprintf(name, sizeof name, "%s", value);
    const bool more = strlen(name) > 1 && name[strlen(name) - 1] == '+'; // "OU+": OU and further flags
    if (more) name[strlen(name) - 1] = 0;
    kbi_nearest best = { name, NULL, 64 };
    int flag = -1, column = -1, term = -1;
    const kbi_key* key = NULL;
    for (int i = 0; i < KBI_COUNT(kbi_terms); i++) {
        kbi_offer(&best, kbi_terms[i].names);
        if (kbi_explain_term_has(i, name)) term = i;
    }
    for (int i = 0; i < KB_FLAG_COUNT; i++) {
        kbi_offer(&best, kbi_flags[i].name);
        if (kbi_same_name(kbi_flags[i].name, name) || (*kbi_flags[i].mark && kbi_same_name(kbi_flags[i].mark, name)))
            flag = i;
    }
    for (int i = 0; i < KBI_COUNT(kbi_columns); i++) {
        kbi_offer(&best, kbi_columns[i].title);
        if (kbi_same_name(kbi_columns[i].title, name)) column = i;
    }
    for (int i = 0; i < KBI_COUNT(kbi_units) * KBI_UNITS_EACH && column < 0; i++) {
        const char* title = kbi_units[i / KBI_UNITS_EACH].titles[i % KBI_UNITS_EACH]; // "mem MiB"
        if (kbi_same_name(title, name) || (title && kbi_same_name_n(title, strcspn(title, " "), name, strlen(name))))
            column = kbi_units[i / KBI_UNITS_EACH].column;
    }
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        kbi_offer(&best, kbi_keys[i].name);
        if (kbi_same_name(kbi_keys[i].name, name)) key = &kbi_keys[i];
    }
    if (flag < 0 && column < 0 && term < 0 && !key)
        return kbi_error("--explain: no flag, verdict, key of the record or column of the table is called '%s'; the "
                         "nearest name is %.*s",
                         name, (int)strcspn(best.name, ","), best.name),
               KBI_EXIT_USAGE;
    kb_result record;
    kbi_table t;
    kbi_how how = kbi_how_of(kbi_options_now, stdout);
    how.width = 80, how.columns = how.sort = NULL;
    kbi_table_open(&t, &how);
    kbi_records owner = kbi_explain_record(&record);
    if (column >= 0 && kbi_is(kbi_columns[column].key, key ? key->name : NULL)) key = NULL;
    if (flag >= 0) kbi_explain_flag(&t, flag);
    if (flag >= 0 && more) kbi_explain_line(&t, "+", "the case has more flags; the key \"flags\" lists all of them");
    if (term >= 0) kbi_explain_term(&t, term);
    if (column >= 0) kbi_explain_column(&t, column, &record);
    if (key) kbi_explain_key(&t, key, &record);
    kbi_table_flush(&t);
    kbi_records_free(&owner);
    return KBI_EXIT_FINE;
}

/*-----------------------------------------------------------------
  >>registered  registers the add-on's outputs.
-----------------------------------------------------------------*/

static int kbi_load_instead(const char* value) {
    const kbi_options* o = kbi_options_now;
    (void)value;
    return o->on[KBI_OPTION_env] ? kbi_env_loaded(o) : kbi_load_shown(o);
}
static int kbi_compare_instead(const char* value) { return (void)value, kbi_compare_main(kbi_options_now); }
static int kbi_race_instead(const char* value) { return (void)value, kbi_race_main(kbi_options_now); }

static kb_output* kbi_report_output(const char* option) { // option NULL: always active
    enum { KBI_REPORT_OUTPUTS = 16 };
    static kb_output all[KBI_REPORT_OUTPUTS];
    static int n;
    all[n].option = option;
    kb_add_output(&all[n]);
    return &all[n++];
}

static kb_output* kbi_report_file(const char* option, void (*fill)(kb_text* to, const kb_result* records, int64_t n),
                                  const char* begins, const char* inside, int lines) {
    kb_output* o = kbi_report_output(option);
    o->fill = fill, o->begins = begins, o->inside = inside, o->lines = lines;
    return o;
}

KBI_CONSTRUCTOR static void kbi_report_register(void) {
    static kb_option_set set;
    set.options = kbi_report_rows, set.count = KBI_REPORT_COUNT;
    set.values = &kbi_wanted, set.given = kbi_wanted.on;
    set.start = kbi_report_start, set.agree = kbi_report_agree;
    kb_add_options(&set);
    kbi_report_file("md", kbi_md, "", ", kbench ", 1);
    kbi_report_file("gbench", kbi_gbench, "{\n\"context\": {\"date\": ", "", 2);
    kbi_report_file("go", kbi_go, "pkg: kbench\n", "", 1);
    kbi_report_file("html", kbi_page_write, "<!DOCTYPE html>", "\"generator\" content=\"kbench ", 8);
    kb_output* figure = kbi_report_file("svg", kbi_figure_write, "<svg ", "<!-- kbench ", 2);
    figure->open = kbi_figure_open, figure->end = kbi_figure_end;
    kbi_report_output("github")->open = kbi_github_open;
    kb_output* folder = kbi_report_output("report");
    folder->argument = "DIR", folder->open = kbi_report_open;
    kbi_report_output("load")->instead = kbi_load_instead;
    kbi_report_output("compare")->instead = kbi_compare_instead;
    kbi_report_output("race")->instead = kbi_race_instead;
    kbi_report_output("explain")->instead = kbi_explain_instead;
    kb_output* resume = kbi_report_output("resume");
    resume->ready = kbi_resume_ready, resume->recall = kbi_resume_recall;
    kbi_regression_output = kbi_report_output(NULL);
    kbi_regression_output->ready = kbi_report_ready, kbi_regression_output->open = kbi_regression_start,
    kbi_regression_output->end = kbi_regression_end;
}

KBI_CODE_END
#endif // KBENCH_IMPLEMENTED
#endif // KBENCH_REPORT_H
