// SPDX-License-Identifier: MIT OR Unlicense
/* json.h - a strict JSON reader for records. It rejects everything that RFC 8259 rejects, duplicate keys and
   invalid UTF-8. C11 and C++11. */
#ifndef KBENCH_TEST_JSON_H
#define KBENCH_TEST_JSON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_FIELDS = 200 };
typedef struct json_field { // slices of the file's text: the key without its quotes, and the value as written
    const char *key, *value;
    int key_n, value_n;
} json_field;
typedef struct json_record {
    json_field of[JSON_FIELDS];
    int n;
} json_record;
typedef struct json_file {
    char* text;
    json_record* records;
    int n;
    char error[200]; // error message; empty if the text is valid
} json_file;

static const char* json_value(json_file* f, const char* p, int depth);

static const char* json_space(const char* p) {
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') ++p;
    return p;
}

static const char* json_bad(json_file* f, const char* p, const char* what) {
    if (!f->error[0]) {
        int line = 1;
        for (const char* q = f->text; q < p; ++q) line += *q == '\n';
        snprintf(f->error, sizeof f->error, "line %d: %s at '%.30s'", line, what, p);
    }
    return NULL;
}

// 0: invalid (overlong, surrogate, too large, cut off).
static int json_utf8(const unsigned char* p) {
    if (p[0] < 0x80) return 1;
    int n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    for (int i = 1; i < n; ++i)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
    return n;
}

static const char* json_string(json_file* f, const char* p) {
    if (*p != '"') return json_bad(f, p, "no string");
    for (++p; *p != '"';) {
        if ((unsigned char)*p < 0x20) return json_bad(f, p, "control byte in a string");
        if (*p == '\\') {
            if (p[1] == 'u') {
                if (strspn(p + 2, "0123456789abcdefABCDEF") < 4) return json_bad(f, p, "bad \\u");
                p += 6;
            } else if (p[1] && strchr("\"\\/bfnrt", p[1])) {
                p += 2;
            } else {
                return json_bad(f, p, "bad escape");
            }
            continue;
        }
        int n = json_utf8((const unsigned char*)p);
        if (!n) return json_bad(f, p, "no UTF-8");
        p += n;
    }
    return p + 1;
}

static const char* json_number(json_file* f, const char* p) {
    const char *digits = "0123456789", *start = p;
    p += *p == '-';
    size_t n = strspn(p, digits);
    if (!n || (n > 1 && *p == '0')) return json_bad(f, start, "no number");
    p += n;
    if (*p == '.') {
        n = strspn(p + 1, digits);
        if (!n) return json_bad(f, start, "no number");
        p += n + 1;
    }
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '+' || p[1] == '-');
        n = strspn(p, digits);
        if (!n) return json_bad(f, start, "no number");
        p += n;
    }
    return p;
}

static const char* json_list(json_file* f, const char* p, int depth) {
    char close = *p == '[' ? ']' : '}';
    p = json_space(p + 1);
    if (*p == close) return p + 1;
    for (;;) {
        if (close == '}') {
            p = json_string(f, p);
            if (!p) return NULL;
            p = json_space(p);
            if (*p != ':') return json_bad(f, p, "no colon");
            p = json_space(p + 1);
        }
        p = json_value(f, p, depth + 1);
        if (!p) return NULL;
        p = json_space(p);
        if (*p == close) return p + 1;
        if (*p != ',') return json_bad(f, p, "no comma");
        p = json_space(p + 1);
    }
}

static const char* json_value(json_file* f, const char* p, int depth) {
    if (depth > 8) return json_bad(f, p, "too deep");
    if (*p == '[' || *p == '{') return json_list(f, p, depth);
    if (*p == '"') return json_string(f, p);
    if (strncmp(p, "null", 4) == 0 || strncmp(p, "true", 4) == 0) return p + 4;
    if (strncmp(p, "false", 5) == 0) return p + 5;
    return json_number(f, p);
}

static const char* json_object(json_file* f, const char* p) {
    f->records = (json_record*)realloc(f->records, sizeof(json_record) * (size_t)(f->n + 1));
    json_record* r = &f->records[f->n++];
    r->n = 0;
    if (*p != '{') return json_bad(f, p, "no object");
    p = json_space(p + 1);
    while (*p != '}') {
        if (r->n == JSON_FIELDS) return json_bad(f, p, "too many keys");
        json_field* x = &r->of[r->n++];
        const char* end = json_string(f, p);
        if (!end) return NULL;
        x->key = p + 1;
        x->key_n = (int)(end - p) - 2;
        for (int i = 0; i + 1 < r->n; ++i)
            if (r->of[i].key_n == x->key_n && memcmp(r->of[i].key, x->key, (size_t)x->key_n) == 0)
                return json_bad(f, p, "a key twice");
        p = json_space(end);
        if (*p != ':') return json_bad(f, p, "no colon");
        x->value = json_space(p + 1);
        end = json_value(f, x->value, 1);
        if (!end) return NULL;
        x->value_n = (int)(end - x->value);
        p = json_space(end);
        if (*p == ',') {
            p = json_space(p + 1);
            if (*p == '}') return json_bad(f, p, "comma before the end");
        } else if (*p != '}') {
            return json_bad(f, p, "no comma");
        }
    }
    return p + 1;
}

static json_file json_read(const char* path, int lines) {
    json_file f;
    memset(&f, 0, sizeof f);
    FILE* in = fopen(path, "rb");
    if (!in) {
        snprintf(f.error, sizeof f.error, "%.150s cannot be opened", path);
        return f;
    }
    size_t size = 0, got;
    do {
        f.text = (char*)realloc(f.text, size + 65537);
        got = fread(f.text + size, 1, 65536, in);
        size += got;
    } while (got);
    f.text[size] = 0;
    fclose(in);
    const char* p = f.text;
    if (strlen(f.text) != size) json_bad(&f, f.text + strlen(f.text), "zero byte");
    if (lines) {
        while (p && *p && !f.error[0]) {
            const char* end = json_object(&f, p);
            if (end && *end != '\n') json_bad(&f, end, "no end of line");
            if (end && memchr(p, '\n', (size_t)(end - p))) json_bad(&f, p, "more than a line");
            p = end ? end + 1 : NULL;
        }
        return f;
    }
    p = json_space(p);
    if (*p != '[')
        json_bad(&f, p, "no array");
    else
        p = json_space(p + 1);
    while (!f.error[0] && *p != ']') {
        p = json_object(&f, p);
        if (!p) break;
        p = json_space(p);
        if (*p == ',') {
            p = json_space(p + 1);
            if (*p == ']') json_bad(&f, p, "comma before the end");
        } else if (*p != ']') {
            json_bad(&f, p, "no comma");
        }
    }
    if (!f.error[0] && *json_space(p + 1)) json_bad(&f, p + 1, "text after the end");
    return f;
}

// Returns the value of a key as written ("null", "1.5", "\"text\""); NULL if the record lacks the key. The
// returned string stays valid until the fourth later call.
static const char* json_get(const json_file* f, int record, const char* key) {
    static char out[4][4096];
    static int turn;
    if (record < 0 || record >= f->n) return NULL;
    const json_record* r = &f->records[record];
    for (int i = 0; i < r->n; ++i) {
        if (r->of[i].key_n != (int)strlen(key) || memcmp(r->of[i].key, key, strlen(key)) != 0) continue;
        turn = (turn + 1) % 4;
        snprintf(out[turn], sizeof out[turn], "%.*s", r->of[i].value_n, r->of[i].value);
        return out[turn];
    }
    return NULL;
}

static void json_free(json_file* f) {
    free(f->text);
    free(f->records);
    memset(f, 0, sizeof *f);
}

#endif
