// SPDX-License-Identifier: MIT OR Unlicense
// Wrong uses of kbench's functions. The program also has long names and notes, and text with control characters.
#include <math.h>
#include "kbench.h"
#include <string.h>

#define WORK \
    for (int i = 0; i < 64; ++i) y[i] = x[i];
#define BLOCK       \
    KB_TIME(kb) {   \
        WORK;       \
        kb_keep(y); \
    }
static float* in(kb_state* kb) {
    float* x = KB_ALLOC(kb, float, 64);
    kb_fill(kb, x, 64, KB_NORMAL);
    return x;
}
#define MISUSE(name)                                               \
    static void name##_(kb_state* kb, float* x, float* y);         \
    KBENCH(name) { name##_(kb, in(kb), KB_ALLOC(kb, float, 64)); } \
    static void name##_(kb_state* kb, float* x, float* y)

// --- a second block
MISUSE(sample_twice) {
    KB_SAMPLE(kb) { BLOCK }
    KB_SAMPLE(kb) { BLOCK }
}
MISUSE(time_then_sample) {
    BLOCK
    KB_SAMPLE(kb) { BLOCK }
}
MISUSE(sample_then_time){ KB_SAMPLE(kb){ BLOCK } BLOCK } MISUSE(time_then_empty_sample) {
    BLOCK
    KB_SAMPLE(kb) { kb_keep(y); }
}
MISUSE(time_in_time) {
    KB_TIME(kb) { BLOCK }
}

// --- checks that prove nothing
MISUSE(check_of_nothing) {
    BLOCK
    kb_check(kb, y, x, 0, 0.0);
}
MISUSE(tolerance_below_0) {
    BLOCK
    kb_check(kb, y, x, 64, -1.0);
}
MISUSE(tolerance_nan) {
    BLOCK
    kb_check_norm(kb, y, x, 64, (double)NAN);
}
MISUSE(tolerance_infinite) {
    BLOCK
    kb_check_ulp(kb, y, x, 64, (double)INFINITY);
}
MISUSE(check_before) { // an output that was there before the block would pass as well
    kb_check(kb, y, x, 64, 0.0);
    BLOCK
}
MISUSE(equal_before) {
    kb_check(kb, x, x, 64, 0.0);
    BLOCK
}
MISUSE(that_before) {
    kb_check_that(kb, false, 1, 0, "planted");
    BLOCK
}
MISUSE(check_of_null) {
    BLOCK
    kb_check(kb, y, (float*)NULL, 64, 0.0);
}

// --- values that no function knows
MISUSE(kind_beyond) {
    kb_fill(kb, x, 64, (kb_kind)77);
    BLOCK
}
MISUSE(fill_of_null) {
    kb_fill(kb, (float*)NULL, 64, KB_NORMAL);
    BLOCK
}
MISUSE(fill_below_0) {
    kb_fill(kb, x, -1, KB_NORMAL);
    BLOCK
}
MISUSE(fill_beyond) {
    kb_fill(kb, x, 65, KB_NORMAL);
    BLOCK
}
MISUSE(place_beyond) {
    kb_keep(kb_alloc(kb, (kb_place)9, 4, 64));
    BLOCK
}
MISUSE(expects_the_unknown) {
    kb_expect(kb, 0x80);
    BLOCK
}
MISUSE(copy_beyond) {
    float host[80] = { 0 };
    BLOCK
    kb_to_host(kb, host, y, sizeof host);
}
MISUSE(copy_from_null) {
    kb_from_host(kb, x, NULL, 256);
    BLOCK
}
MISUSE(axis_null) {
    x[0] = (float)kb_int(kb, NULL);
    BLOCK
}

// --- calls in the timed block, whose time would be included
MISUSE(alloc_inside) {
    KB_TIME(kb) { y = KB_ALLOC_HOST(kb, float, 64); WORK kb_keep(y); }
}
MISUSE(check_inside) {
    KB_TIME(kb) { WORK kb_check(kb, y, x, 64, 0.0); }
}
MISUSE(that_inside) {
    KB_TIME(kb) { WORK kb_check_that(kb, y[0] == x[0], 0, 0, "planted"); }
}
MISUSE(fill_inside) {
    KB_TIME(kb) { kb_fill(kb, y, 64, KB_NORMAL); }
}
MISUSE(copy_inside) {
    float host[64];
    KB_TIME(kb) { WORK kb_to_host(kb, host, y, sizeof host); }
}
MISUSE(copy_back_inside) {
    KB_TIME(kb) { kb_from_host(kb, y, x, 64 * sizeof(float)); }
}
MISUSE(bytes_inside) {
    KB_TIME(kb) { WORK kb_bytes(kb, 512); }
}
MISUSE(queries_inside) {
    KB_TIME(kb) { WORK kb_queries(kb, 64); }
}
MISUSE(count_inside) {
    KB_TIME(kb) { WORK kb_count(kb, "planted", 1, ""); }
}
MISUSE(axis_inside) {
    KB_TIME(kb) { WORK y[0] += (float)kb_has(kb, "n"); }
}
MISUSE(note_inside) {
    KB_TIME(kb) { WORK kb_note(kb, "planted"); }
}
MISUSE(inside_sample) {
    KB_SAMPLE(kb) {
        KB_TIME(kb) { WORK kb_check(kb, y, x, 64, 0.0); }
    }
}
MISUSE(after_break) {
    KB_TIME(kb) {
        WORK
        break;
    }
    kb_check(kb, y, x, 64, 0.0);
}

static int samples;
#define LEAVES_SAMPLE(name, leave, count)  \
    MISUSE(name) {                         \
        samples = 0;                       \
        KB_SAMPLE(kb) {                    \
            BLOCK                          \
            if (++samples == count) leave; \
        }                                  \
        kb_check(kb, y, x, 64, 0.0);       \
    }
LEAVES_SAMPLE(leaves_first_sample, break, 1)
LEAVES_SAMPLE(leaves_sample, break, 5)
LEAVES_SAMPLE(returns_from_sample, return, 5)

MISUSE(alloc_in_sample) {
    KB_SAMPLE(kb) {
        char* z = KB_ALLOC(kb, char, 256);
        if (!z) return;
        KB_TIME(kb) { WORK }
    }
}
MISUSE(alloc_behind_sample) { // allowed: allocates the expected values of kb_check after the samples
    KB_SAMPLE(kb) { BLOCK }
    float* want = KB_ALLOC_HOST(kb, float, 64);
    if (!want) return;
    memcpy(want, x, 64 * sizeof *want);
    kb_check(kb, y, want, 64, 0.0);
}

// --- valid: zero elements
MISUSE(nothing) {
    kb_fill(kb, x, 0, KB_NORMAL);
    kb_to_host(kb, NULL, x, 0);
    BLOCK
    kb_check(kb, y, x, 64, 0.0);
    kb_check(kb, y, x, 0, 0.0);
}
MISUSE(long_note) {
    char text[3000];
    memset(text, 'n', sizeof text);
    memcpy(text + 1019, "\xc3\xa4", 2); // a character of two bytes at the place where the text is cut
    text[sizeof text - 1] = 0;
    kb_note(kb, "%s", text);
    BLOCK
}
MISUSE(odd_note) {
    kb_note(kb, "a\nb\tc\x1b[31m|\"q\",\xc2\x9b\xff");
    BLOCK
}

static void body(kb_state* kb) {
    float *x = in(kb), *y = KB_ALLOC(kb, float, 64);
    BLOCK
}

int main(int argc, char** argv) {
    static kb_entry odd, longs[3];
    static char operation[301], other[301], implementation[301], axis[301], value[301];
    static kb_axis words[] = { KB_AXIS_STR("w", "p|q\n\x1b[31m,\"q\"\t`*_<b>\xc2\x9b"), KBI_AXES_END };
    static kb_axis far[] = { { axis, KB_AXIS_STRINGS, { 0 }, { 0 }, { value, 0 } }, KBI_AXES_END };
    memset(operation, 'o', 300), memset(other, 'o', 300), other[299] = 'p';
    memset(implementation, 'i', 300), memset(axis, 'a', 300), memset(value, 'v', 300);
    odd.operation = "odd|x\n\x1b[2J,\"q\"\xff\t#";
    odd.implementation = "one\n\x1b]0;t\x07";
    odd.note = "a\nb\x1b[31m";
    odd.axes = words;
    odd.body = body;
    kb_add(&odd);
    for (int i = 0; i < 3; i++) { // the third name differs from the others only in its last letter
        longs[i].operation = i < 2 ? operation : other;
        longs[i].implementation = i == 1 ? "short" : implementation;
        longs[i].axes = far;
        longs[i].body = body;
        kb_add(&longs[i]);
    }
    return kb_main(argc, argv);
}
