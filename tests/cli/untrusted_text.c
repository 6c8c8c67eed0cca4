// SPDX-License-Identifier: MIT OR Unlicense
// Untrusted text, planted in every source of text, and a reader that finds where an output contains it unescaped.
// untrusted_text.sh drives it:
//   planted plants                     prints the number of texts
//   planted write N FILE [before]      writes records with text N in every text key; "before": with other machines
//   planted shown N                    prints results of profiling and of a profiler with text N
//   planted check KIND FILE            exit code 0 if a reader of this kind of file interprets nothing in it
//   PLANT=N planted ...                runs the benchmarks below, whose names, axes and messages are text N
#include "../guarded.h"
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

static const char* const plants[] = {
    "\x1b[5mplanted\x1b]0;t\x07\x9b"
    "31m\xff",
    "planted\n::error::planted\r\n##[error]planted ##vso[x] pla\nnted",
    "::error::planted",
    " \xc2\xa0::set-output name=x::planted",
    "##[set-env name=x]planted",
    "=cmd|'/C calc'!A0 planted",
    "+1+planted",
    "-1-planted",
    "@SUM(planted)",
    "\t=planted",
    "\r=planted",
    "\xef\xbc\x9dplanted",
    "planted<script>alert(1)</script>",
    "planted\"><img src=x onerror=alert(1)>",
    "planted' onload='alert(1)",
    "planted | b [x](http://h) ![y](z) <b>c</b> `d` \\",
    "planted\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf\xc2\xad\xd8\x9c\xf3\xa0\x81\x81\xc2\x85\xc2\x9b"
    "5m",
    "planted]]></title></script><!--",
};

// --- records ---

static void put(kb_result* r, kbi_field_params* to, const char* name, double x, const char* s) {
    kb_param* all = (kb_param*)kbi_arena_alloc(r->owned, sizeof(kb_param) * (size_t)(to->n + 1));
    if (to->n) memcpy(all, to->of, sizeof(kb_param) * (size_t)to->n);
    all[to->n].name = name, all[to->n].s = s, all[to->n].r = x;
    all[to->n].type = s ? KB_AXIS_STRINGS : KB_AXIS_REALS;
    to->of = all, to->n++;
}

static int written(const char* plant, const char* path, bool before) {
    enum { ROWS = 16 };
    static kb_result records[ROWS];
    for (int i = 0; i < ROWS; i++) {
        kb_result* r = &records[i];
        kbi_result_clear(r);
        for (int k = 0; k < KBI_COUNT(kbi_keys); k++) {
            char text[300];
            const kbi_key* key = &kbi_keys[k];
            void* field = (char*)r + key->offset;
            snprintf(text, sizeof text, "%s %s%s", plant, key->name, before && i % 2 ? " before" : "");
            if (key->kind == KBI_KIND_text) *(kbi_field_text*)field = kbi_arena_text(r->owned, text);
            if (key->kind == KBI_KIND_real) *(kbi_field_real*)field = 1 + i * (before ? 0.2 : 0.1);
            if (key->kind == KBI_KIND_whole) *(kbi_field_whole*)field = key->offset % 3 + 1;
        }
        char name[300];
        kbi_text implementations[2] = { KBI_BLANK, KBI_BLANK };
        for (int k = 0; k < 2; k++) kbi_putf(&implementations[k], "%s impl%d", plant, k);
        snprintf(name, sizeof name, "%s name%d", plant, i);
        r->name = kbi_arena_text(r->owned, name);
        r->implementation = kbi_arena_text(r->owned, implementations[i % 2].s);
        r->baseline = kbi_arena_text(r->owned, implementations[0].s);
        r->winner = kbi_arena_text(r->owned, implementations[1].s);
        for (int k = 0; k < 2; k++) kbi_text_free(&implementations[k]);
        put(r, &r->params, plant, 0, plant);
        put(r, &r->params, "n", 64 << i / 2 % 3, NULL), put(r, &r->params, "m", 1 + i / 6, NULL);
        put(r, &r->counters, plant, 5, NULL), put(r, &r->counter_units, plant, 0, plant);
        put(r, &r->counters, "c", 7, NULL), put(r, &r->counter_units, "c", 0, plant);
        put(r, &r->environment, plant, 0, before ? "other" : plant);
        r->schema = 2, r->planned = ROWS, r->device = 0, r->verdict = KB_FASTER, r->winner_certain = i < 8;
        r->process_ms.n = 0, r->flags = i == 3 ? (uint64_t)1 << KB_FLAG_NOISY : 0;
        static const double samples[] = { 1, 1.1, 0.9, 1.05, 1, 1.2, 0.95, 1, 1.1, 1 };
        r->samples_ms.of = samples, r->samples_ms.n = KBI_COUNT(samples);
        if (i >= 14) r->status = i == 14 ? KB_FAILED : KB_SKIPPED, r->time_ms = NAN;
        if (i == 14) r->flags = (uint64_t)1 << KB_FLAG_CRASHED;
        if (i == 12) r->gpu = NULL; // without a GPU name, outputs show the name of the processor
    }
    return kb_write_json(records, ROWS, path) ? 0 : 2;
}

// --- seen inside, by CUPTI or by a tool ---

static int shown(const char* plant) {
    static struct {
        kbi_inside head;
        kbi_event events[3];
        char texts[400];
    } in;
    kbi_text t = KBI_BLANK;
    kb_result r;
    in.head.events = 3, in.head.runs = 1, in.head.texts = sizeof in.texts;
    snprintf(in.texts, sizeof in.texts, "%s kernel", plant);
    strcpy(in.texts + 300, "symbol");
    for (int i = 0; i < 3; i++) {
        in.events[i].kind = i == 0 ? KBI_EVENT_RUN : i == 1 ? KBI_EVENT_CALL : KBI_EVENT_KERNEL;
        in.events[i].start = i * 100, in.events[i].end = i ? i * 100 + 90 : 300, in.events[i].symbol = 300;
        in.events[i].cause = i == 2 ? 1 : -1;
    }
    kbi_result_clear(&r);
    r.name = plant, r.inside = &in.head, r.gpu = plant;
    for (int width = 60; width < 200; width += 70) kbi_profile_show(&t, &r, width);
    fwrite(t.s, 1, t.n, stdout);
    kbi_control.run.table.how.out = stdout;
    kbi_code_show(&r);
    kbi_text_free(&t);
    kb_result_free(&r);

    kbi_launches of[2];
    kbi_launch_list looks;
    kbi_case one;
    kbi_plan plan;
    kbi_table table;
    kbi_how how;
    memset(of, 0, sizeof of), memset(&looks, 0, sizeof looks);
    memset(&one, 0, sizeof one), memset(&plan, 0, sizeof plan);
    one.name = (char*)(uintptr_t)plant, plan.cases = &one, plan.n = 1;
    of[0].whole = true, of[0].calls = of[1].calls = 1, of[0].ns = of[1].ns = 5;
    of[1].kernel = of[1].grid = of[1].block = (char*)(uintptr_t)plant;
    looks.of = of, looks.n = 2;
    kbi_how_default(&how, stdout), how.colour = false;
    kbi_table_open(&table, &how);
    kbi_tool_show(&table, &plan, &looks, "ncu");
    kbi_table_flush(&table);
    return 0;
}

// --- what a reader obeys ---

static const char* file_text;
static size_t file_bytes;

static int found(const char* what, const char* kind, size_t at) {
    printf("%s: %s at byte %zu: ", kind, what, at);
    for (size_t i = at > 60 ? at - 60 : 0; i < at + 60 && i < file_bytes; i++) {
        unsigned char c = (unsigned char)file_text[i];
        printf(c >= 0x20 && c < 0x7f ? "%c" : "<%02x>", c);
    }
    printf("\n");
    return 1;
}

// Returns the code point at p, and stores its length in bytes; 0 bytes: invalid UTF-8. This decoder is independent
// of kbench.h.
static int decoded(const unsigned char* p, const unsigned char* end, unsigned* code) {
    int n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    *code = n == 1 ? *p : n ? *p & (0xffu >> (n + 1)) : 0;
    if (!n || end - p < n) return 0;
    for (int i = 1; i < n; i++) {
        if (p[i] >> 6 != 2) return 0;
        *code = *code * 64 + (p[i] & 63);
    }
    return n;
}

static int line_checked(const char* kind, const char* line, size_t n, size_t at) {
    bool md = !strcmp(kind, "md"), page = !strcmp(kind, "html") || !strcmp(kind, "svg");
    size_t i = 0;
    while (i < n && ((unsigned char)line[i] <= ' ' || (unsigned char)line[i] >= 0x80)) i++;
    if (n - i >= 2 && !strncmp(line + i, "::", 2)) return found("a command of a CI log", kind, at);
    if (n - i >= 4 && !strncmp(line + i, "nted", 4) && strcmp(kind, "wrapped") != 0)
        return found("an end of a line", kind, at);
    for (i = 0; i + 1 < n; i++) {
        size_t k = i + 2;
        if (line[i] != '#' || line[i + 1] != '#') continue;
        while (k < n && line[k] >= 'a' && line[k] <= 'z') k++;
        if (k < n && line[k] == '[') return found("a command of a CI log", kind, at + i);
    }
    for (i = 0; i < n; i++) {
        size_t slashes = 0;
        while (slashes < i && line[i - 1 - slashes] == '\\') slashes++;
        if (md && slashes % 2 == 0 && strchr("<`[&$", line[i])) return found("Markdown", kind, at + i);
        if (!page || *line == '{') continue; // skips JSON lines, in which quotes are escaped
        if (n - i > 4 && !strncmp(line + i, "<img", 4)) return found("an image", kind, at + i);
        if (n - i > 13 && !strncmp(line + i, "<script>alert", 13)) return found("a script", kind, at + i);
        if (n - i > 8 && !strncmp(line + i, "' onload", 8)) return found("an attribute", kind, at + i);
        if (n - i > 5 && !strncmp(line + i, "><!--", 5)) return found("a comment", kind, at + i);
    }
    return 0;
}

static int cells_checked(const char* kind) { // of CSV
    for (size_t i = 0; i < file_bytes;) {
        char cell[4000];
        size_t n = 0, begin = i;
        bool quoted = file_text[i] == '"';
        for (i += quoted; i < file_bytes; i++) {
            if (quoted && file_text[i] == '"' && file_text[i + 1] != '"') break;
            if (quoted && file_text[i] == '"') i++;
            if (!quoted && strchr(",\r\n", file_text[i])) break;
            if (n + 1 < sizeof cell) cell[n++] = file_text[i];
        }
        i += quoted;
        cell[n] = 0;
        char* end;
        const char* p = cell + strspn(cell, " ");
        (void)strtod(cell, &end);
        if ((strchr("=+-@", *p) && *p && *end) || !strncmp(p, "\xef\xbc\x9d", 3))
            return found("a formula", kind, begin);
        while (i < file_bytes && strchr(",\r\n", file_text[i])) i++;
    }
    return 0;
}

static int checked(const char* kind, const char* path) {
    static char text[4 << 20];
    FILE* f = fopen(path, "rb");
    if (!f) return printf("%s: no file %s\n", kind, path), 2;
    file_bytes = fread(text, 1, sizeof text - 1, f), file_text = text;
    fclose(f);
    bool colours = !strcmp(kind, "colour");
    const unsigned char *p = (const unsigned char*)text, *end = p + file_bytes;
    for (unsigned code; p < end;) {
        static const unsigned obeyed[][2] = {
            { 0, 9 },           { 11, 31 },         { 127, 159 },       { 173, 173 },       { 0x61c, 0x61c },
            { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xe0000, 0xe007f }
        };
        int n = decoded(p, end, &code);
        size_t at = (size_t)(p - (const unsigned char*)text);
        if (!n) return found("no UTF-8", kind, at);
        bool own = colours && !strncmp((const char*)p, "\x1b[", 2) && strspn((const char*)p + 2, "0123;") > 0 &&
                   p[2 + strspn((const char*)p + 2, "0123;")] == 'm';
        bool line_end = !strcmp(kind, "csv") && code == '\r' && p[1] == '\n';
        for (int i = 0; i < KBI_COUNT(obeyed); i++)
            if (code >= obeyed[i][0] && code <= obeyed[i][1] && !own && !line_end)
                return found("a control character", kind, at);
        p += n;
    }
    int scripts = 0;
    for (const char* s = text; (s = strstr(s, "<script")) != NULL; s++) scripts++;
    if (scripts != (!strcmp(kind, "html") ? 2 : 0) && (!strcmp(kind, "html") || !strcmp(kind, "svg")))
        return printf("%s: %d scripts\n", kind, scripts), 1;
    for (size_t at = 0, n; at < file_bytes; at += n + 1) {
        n = strcspn(text + at, "\n");
        if (line_checked(kind, text + at, n, at)) return 1;
    }
    return !strcmp(kind, "csv") ? cells_checked(kind) : 0;
}

// --- a run ---

static const char* plant_of_run;
static void body(kb_state* kb) {
    KB_TIME(kb) {
        for (int i = 0; i < 2000; i++) kb_keep(i);
    }
    kb_note(kb, "%s", plant_of_run);
    kb_count(kb, "c", 1, plant_of_run);
}
static void failing(kb_state* kb) { kb_fail(kb, plant_of_run); }
static void checking(kb_state* kb) {
    body(kb);
    kb_check_that(kb, false, 1, 0, plant_of_run);
}

int main(int argc, char** argv) {
    if (argc == 2 && !strcmp(argv[1], "plants")) return printf("%d\n", KBI_COUNT(plants)), 0;
    if (argc >= 4 && !strcmp(argv[1], "write")) return written(plants[atoi(argv[2])], argv[3], argc > 4);
    if (argc == 3 && !strcmp(argv[1], "shown")) return shown(plants[atoi(argv[2])]);
    if (argc == 4 && !strcmp(argv[1], "check")) return checked(argv[2], argv[3]);
    const char* plant = getenv("PLANT");
    static kb_axis axes[2];
    static kb_entry entries[4];
    if (plant) {
        static const kb_axis end = KBI_AXES_END;
        plant_of_run = plants[atoi(plant)];
        kb_axis strings = KB_AXIS_STR("w", plant_of_run);
        axes[0] = strings, axes[0].name = plant_of_run, axes[1] = end;
        for (int i = 0; i < 4; i++) {
            entries[i].operation = i < 2 ? plant_of_run : i == 2 ? "fails" : "checks";
            entries[i].implementation = i == 1 ? "other" : plant_of_run;
            entries[i].note = plant_of_run, entries[i].axes = axes;
            entries[i].body = i < 2 ? body : i == 2 ? failing : checking;
            kb_add(&entries[i]);
        }
    }
    return kb_main(argc, argv);
}
