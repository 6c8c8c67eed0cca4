// SPDX-License-Identifier: MIT OR Unlicense
/*  Runs one rung (kernel) of a ladder of kbench_kernels.cuh, selected by name, at one problem shape. The program checks
    the result against the reference, and times the kernel.

    make kernels                                compiles the library once (minutes) and builds this program
    build/examples/06_one_rung matmul wgmma 4096 4096 4096
    build/examples/06_one_rung softmax/bwd onepass 8192 4096 f32 --hot
    build/examples/06_one_rung --list           prints the operations, their sizes and their rungs

    Arguments: operation[/direction], rung, sizes, element type (the first of bf16, f16 and f32 that the rung supports),
    layout of a matrix product (NN, NT or TN), causal. Options of kbench may follow the arguments. The program is linked
    with build/kbench_kernels.o and compiles no kernel. */
#define KBK_API_ONLY
#include "kbench.h"
#include "kbench_kernels.cuh"
#include <stdio.h>
#include <stdlib.h>

enum { SIZES = 4 };
typedef struct size {
    char letter;
    const char* name;
    size_t field;
} size;
// clang-format off
#define SIZE(letter, name, field) { letter, name, offsetof(kbk_shape, field) }
static const size known[] = { // sizes, in the order of the command line
    SIZE('R', "rows", rows), SIZE('B', "batch", batch), SIZE('Z', "batch", batch), SIZE('H', "heads", heads),
    SIZE('S', "length", rows), SIZE('M', "M", rows), SIZE('N', "N", cols), SIZE('C', "cols", cols),
    SIZE('D', "dimension", cols), SIZE('V', "vocabulary", vocabulary), SIZE('K', "K", k), SIZE('A', "among", among),
    SIZE('X', "stride", stride),
};
// clang-format on
static const size any_rows = SIZE('*', "rows", rows), any_number = SIZE('*', "n", cols);

static int row;
static kbk_row rung;
static kbk_shape shape;
static size sizes[SIZES]; // sizes of the rung
static int n_sizes;
static const char* const layouts[] = { "NN", "NT", "TN" };

// Derives the sizes that a rung needs from the rung's signature.
static int sizes_of(const kbk_row* r, size* wanted) {
    const int columns = kbk_has_dimension(r->signature, 'C'), any = kbk_has_dimension(r->signature, '*');
    int count = 0;
    if (any && columns) wanted[count++] = any_rows;
    for (size_t i = 0; i < sizeof known / sizeof *known && count < SIZES; i++)
        if (kbk_has_dimension(r->signature, known[i].letter)) wanted[count++] = known[i];
    if (count == 0 || (any && !columns && count < SIZES)) {
        memmove(wanted + 1, wanted, (size_t)count++ * sizeof *wanted);
        wanted[0] = any_number;
    }
    return count;
}

// --- names

// Levenshtein's edit distance (1966): the number of letters to insert, delete or replace.
static int distance(const char* a, const char* b) {
    int line[64], n = (int)strlen(b) < 63 ? (int)strlen(b) : 63;
    for (int j = 0; j <= n; j++) line[j] = j;
    for (int i = 1; *a; i++, a++) {
        int diagonal = line[0];
        line[0] = i;
        for (int j = 1; j <= n; j++) {
            int replaced = diagonal + (*a != b[j - 1]), shorter = (diagonal = line[j]) + 1, longer = line[j - 1] + 1;
            line[j] = replaced < shorter ? replaced : shorter;
            if (longer < line[j]) line[j] = longer;
        }
    }
    return line[n];
}

// Writes the name of the operation, with its direction unless that is fwd or run: "matmul", "softmax/bwd".
static void operation_name(const kbk_row* r, char* name, size_t size) {
    bool bare = strcmp(r->direction, "fwd") == 0 || strcmp(r->direction, "run") == 0;
    snprintf(name, size, bare ? "%s" : "%s/%s", r->operation, r->direction);
}

static void list(FILE* to, const char* only) {
    char last[64] = "", name[64];
    size wanted[SIZES];
    kbk_row r;
    for (int i = 0; kbk_row_get(i, &r); i++) {
        operation_name(&r, name, sizeof name);
        if (!r.dtypes || (only && strcmp(only, name) != 0)) continue;
        if (strcmp(last, name) != 0) {
            fprintf(to, "%s%s", *last ? "\n" : "", name);
            for (int k = 0, n = sizes_of(&r, wanted); k < n; k++) fprintf(to, " %s", wanted[k].name);
            fprintf(to, ":");
            snprintf(last, sizeof last, "%s", name);
        }
        fprintf(to, " %s", r.implementation);
    }
    fprintf(to, "\n");
}

// The message lists the most similar names and all names. Returns the exit code 2.
static int unknown(const char* given, const char* operation) {
    char name[64], last[64] = "";
    kbk_row r;
    int least = 1000;
    for (int near = 0; near < 2; near++) { // pass 0 finds the smallest distance; pass 1 prints close names
        if (near)
            fprintf(stderr, "one_rung: there is no %s %s; close to it:", operation ? operation : "operation", given);
        for (int i = 0; kbk_row_get(i, &r); i++) {
            operation_name(&r, name, sizeof name);
            if (!r.dtypes || (operation && strcmp(operation, name) != 0)) continue;
            const char* candidate = operation ? r.implementation : name;
            int d = distance(given, candidate);
            if (!near && d < least) least = d;
            if (near && d <= least + 1 && strcmp(last, candidate) != 0) fprintf(stderr, " %s", candidate);
            snprintf(last, sizeof last, "%s", candidate);
        }
    }
    fprintf(stderr, "\n");
    list(stderr, operation);
    return 2;
}

// --- the benchmark

static void fill(kb_state* kb, const kbk_tensor* t, int id, int dtype, void* device) {
    const bool normal = t->fill == KBK_NORMAL && t->a == 0 && t->b == 1;
    if (normal && t->kind == KBK_KE4M3) {
        kb_fill(kb, (kb_e4m3*)device, t->count, KB_NORMAL);
    } else if (normal && (t->kind == KBK_KF32 || dtype == KBK_F32)) {
        kb_fill(kb, (float*)device, t->count, KB_NORMAL);
    } else if (normal && dtype == KBK_F16) {
        kb_fill(kb, (kb_f16*)device, t->count, KB_NORMAL);
    } else if (normal) {
        kb_fill(kb, (kb_bf16*)device, t->count, KB_NORMAL);
    } else {
        size_t bytes = (size_t)t->count * (size_t)kbk_kind_size(t->kind, dtype);
        double* x = KB_ALLOC_HOST(kb, double, t->count);
        char* raw = KB_ALLOC_HOST(kb, char, (int64_t)bytes);
        if (!x || !raw || !device) return;
        kbk_row_fill(row, &shape, id, dtype, kb->seed, 0, t->count, x);
        kbk_from_doubles(t->kind, dtype, x, raw, t->count);
        kb_from_host(kb, device, raw, bytes);
    }
}

// Compares every step-th unit of all outputs with the reference. A unit is a part of the result that can be
// computed alone, such as a row. Outputs such as sums over all rows belong to no unit, and therefore need all
// units.
static void verify(kb_state* kb, const kbk_tensor* t, int count, int dtype, void* const* device,
                   const double* const* in) {
    const int64_t units = kbk_row_units(row, &shape);
    const double work = kbk_row_flops(row, &shape);
    int64_t step = 1;
    bool whole = false;
    for (int i = 0; i < count; i++) whole |= t[i].role != KBK_IN && t[i].per_unit == 0;
    if (!whole && work > 4e8) step = (int64_t)(work / 4e8) * 2 + 1;
    if (units <= 0) return;
    const int64_t first = (units - 1) % step, samples = (units - 1) / step + 1;
    double *want[2 * KBK_OUTS] = { NULL }, *part[2 * KBK_OUTS];
    int64_t per[KBK_OUTS], scales[KBK_OUTS];
    for (int i = 0, k = 0; i < count; i++) {
        if (t[i].role == KBK_IN) continue;
        per[k] = t[i].per_unit ? t[i].per_unit : t[i].count, scales[k] = t[i].scales;
        int64_t parts = t[i].per_unit ? samples : 1;
        want[k] = KB_ALLOC_HOST(kb, double, parts* per[k]);
        if (scales[k]) want[KBK_OUTS + k] = KB_ALLOC_HOST(kb, double, parts* scales[k]);
        if (!want[k] || (scales[k] && !want[KBK_OUTS + k])) return;
        k++;
    }
    for (int64_t sample = 0; sample<samples; sample += step> 1 ? 1 : samples) {
        for (int k = 0; k < KBK_OUTS; k++) {
            part[k] = want[k] ? want[k] + (step > 1 ? sample * per[k] : 0) : NULL;
            part[KBK_OUTS + k] = want[KBK_OUTS + k] ? want[KBK_OUTS + k] + (step > 1 ? sample * scales[k] : 0) : NULL;
        }
        int64_t from = first + sample * step;
        const char* why =
            kbk_row_oracle(row, &shape, kbk_dtype_size(dtype), in, part, from, step > 1 ? from + 1 : units);
        if (why) {
            kb_fail(kb, "%s", why);
            return;
        }
    }
    for (int i = 0, k = 0; i < count; i++) {
        if (t[i].role == KBK_IN) continue;
        const size_t bytes = (size_t)per[k] * (size_t)kbk_kind_size(t[i].kind, dtype);
        const int64_t parts = t[i].per_unit ? samples : 1;
        char *all = kb_host(kb, (char*)device[i]), *got = KB_ALLOC_HOST(kb, char, parts*(int64_t)bytes);
        if (!all || !got) return;
        for (int64_t sample = 0; sample < parts; sample++)
            memcpy(got + sample * (int64_t)bytes, all + (t[i].per_unit ? first + sample * step : 0) * (int64_t)bytes,
                   bytes);
        kbk_report r;
        bool right = kbk_row_verify(row, dtype, &shape, k, got, want, 0, samples, &r);
        kb_check_that(kb, right, r.norm, r.norm_bound, "%s: %s; element %lld of the sample is %.9g, expected %.9g",
                      t[i].name, r.why ? r.why : "", (long long)r.index, r.got, r.want);
        k++;
    }
}

// Reads the shape from the axes, because the option -a replaces their values. Returns false after kb_fail.
static bool read_shape(kb_state* kb) {
    for (int i = 0; i < n_sizes; i++) *(int64_t*)((char*)&shape + sizes[i].field) = kb_int(kb, sizes[i].name);
    if (kb_has(kb, "causal")) shape.causal = kb_int(kb, "causal") != 0;
    if (kb_has(kb, "layout")) {
        const char* name = kb_str(kb, "layout");
        for (shape.layout = 0; shape.layout < 3 && strcmp(name, layouts[shape.layout]) != 0;) shape.layout++;
        if (shape.layout == 3) return kb_fail(kb, "layout=%s is unknown; it is NN, NT or TN", name), false;
    }
    if (strcmp(kb->direction, rung.direction) == 0) return true;
    return kb_fail(kb, "the direction is %s; name another one as OPERATION/DIRECTION", rung.direction), false;
}

static void run(kb_state* kb) {
    const int dtype = kb->dtype == KB_F32 ? KBK_F32 : kb->dtype == KB_F16 ? KBK_F16 : KBK_BF16;
    const int elem = kbk_dtype_size(dtype);
    if (!read_shape(kb)) return;
    if (!(rung.dtypes >> dtype & 1) || kb_dtype_of(kbk_dtype_name(dtype)) != kb->dtype) {
        kb_skip(kb, "this rung does not support the dtype");
        return;
    }
    kbk_tensor t[KBK_MAX_TENSORS];
    void* device[KBK_MAX_TENSORS];
    const double* in[KBK_MAX_TENSORS] = { NULL };
    kbk_args a;
    memset(&a, 0, sizeof a);
    shape.seed = kb->seed;
    a.s = shape;
    int count = kbk_row_tensors(row, &shape, t), ins = 0, outs = 0;
    for (int i = 0; i < count; i++) {
        kb_place place = t[i].place != KBK_ON_HOST ? KB_DEVICE : rung.origin & KBK_PAGEABLE ? KB_HOST : KB_PINNED;
        device[i] = kb_alloc(kb, place, (size_t)kbk_kind_size(t[i].kind, dtype), t[i].count);
        if (!device[i]) return; // out of memory: kbench reports OOM
        if (t[i].role != KBK_IN) {
            a.out[outs++] = device[i];
            continue;
        }
        fill(kb, &t[i], i, dtype, device[i]);
        char* raw = kb_host(kb, (char*)device[i]);
        double* x = KB_ALLOC_HOST(kb, double, t[i].count);
        if (!raw || !x) return;
        kbk_to_doubles(t[i].kind, dtype, raw, x, t[i].count);
        a.in[ins] = device[i], in[ins++] = x;
    }
    a.workspace_bytes = (size_t)kbk_row_workspace(row, &shape, elem);
    a.workspace = a.workspace_bytes ? kb_alloc(kb, KB_DEVICE, 1, (int64_t)a.workspace_bytes) : NULL;
    if (rung.origin & KBK_COPIES) kb_expect(kb, KB_EXPECT_TRANSFER);
    if (rung.origin & KBK_ALLOCATES) kb_expect(kb, KB_EXPECT_ALLOC), a.out[0] = NULL;
    const char* why = NULL;
    KB_TIME(kb) { why = kbk_row_launch(row, dtype, &a, -1, kb->stream); }
    if (why) {
        kb_skip(kb, "%s", why);
        return;
    }
    bool products = rung.family == KBK_GEMM || rung.family == KBK_ATTN;
    kb_dtype as = rung.origin & KBK_TF32   ? KB_TF32
                  : !products              ? KB_F32
                  : t[0].kind == KBK_KE4M3 ? KB_E4M3
                                           : kb->dtype;
    if (kbk_row_bytes(row, &shape, elem) > 0) kb_bytes(kb, kbk_row_bytes(row, &shape, elem));
    if (kbk_row_flops(row, &shape) > 0) kb_flops_as(kb, kbk_row_flops(row, &shape), as);
    if (!(rung.origin & KBK_ALLOCATES)) verify(kb, t, count, dtype, device, in);
}

// --- the command line

// Finds a rung. operation: as operation_name writes it, or with /fwd or /run. Returns 0, or the exit code after an
// error message.
static int find(char* operation, const char* variant) {
    char name[64], *slash = strchr(operation, '/');
    bool known = false;
    kbk_row r;
    if (slash && (strcmp(slash, "/fwd") == 0 || strcmp(slash, "/run") == 0)) *slash = '\0';
    for (int i = 0; kbk_row_get(i, &r); i++) {
        operation_name(&r, name, sizeof name);
        if (!r.dtypes || strcmp(name, operation) != 0) continue;
        known = true;
        if (strcmp(r.implementation, variant) != 0) continue;
        row = i, rung = r;
        return 0;
    }
    return known ? unknown(variant, operation) : unknown(operation, NULL);
}

static const char *dtype_name, *layout_name; // element type and layout on the command line; NULL: not given

// Returns false for an unknown argument.
static bool take(const char* word, int64_t* values, int* count, int most) {
    const bool any_layout = kbk_has_option(rung.signature, "layout");
    char* end;
    for (int i = 0; i < 3 && rung.family == KBK_GEMM && !layout_name; i++)
        if (strcmp(word, layouts[i]) == 0 && (any_layout || i == KBK_NT)) return layout_name = layouts[i], true;
    for (int i = 0; i < KBK_DTYPES && !dtype_name; i++)
        if (strcmp(word, kbk_dtype_name(i)) == 0) return dtype_name = kbk_dtype_name(i), true;
    if (rung.family == KBK_ATTN && strcmp(word, "causal") == 0) return shape.causal = 1, true;
    int64_t value = strtoll(word, &end, 10);
    if (end == word || *end || value < 1 || value == INT64_MAX || *count == most) return false;
    return values[(*count)++] = value, true;
}

int main(int argc, char** argv) {
    static kb_axis axes[SIZES + 5];
    static kb_entry entry;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return list(stdout, NULL), 0;
    if (argc < 3 || *argv[1] == '-' || *argv[2] == '-') {
        fprintf(stderr, "usage: one_rung OPERATION[/DIRECTION] RUNG SIZES... [DTYPE] [NN|NT|TN] [causal] [options of "
                        "kbench]\n       one_rung --list\n");
        return 2;
    }
    int failed = find(argv[1], argv[2]);
    if (failed) return failed;
    int64_t values[SIZES];
    int most = n_sizes = sizes_of(&rung, sizes), count = 0, next = 3;
    for (; next < argc && *argv[next] != '-'; next++)
        if (!take(argv[next], values, &count, most)) break;
    if (count < most || (next < argc && *argv[next] != '-')) {
        if (next < argc) fprintf(stderr, "one_rung: unexpected argument %s. ", argv[next]);
        fprintf(stderr, "The sizes of %s are", argv[1]);
        for (int i = 0; i < most; i++) fprintf(stderr, " %s", sizes[i].name);
        fprintf(stderr, ", each an integer of at least 1\n");
        return 2;
    }
    for (int i = KBK_DTYPES; i-- && !dtype_name;)
        if (rung.dtypes >> i & 1) dtype_name = kbk_dtype_name(i);
    shape.batch = shape.heads = shape.rows = shape.cols = 1;
    if (rung.family == KBK_GEMM && !kbk_has_option(rung.signature, "layout"))
        shape.layout = KBK_NT; // the only layout
    if (kbk_has_option(rung.signature, "p")) shape.p = 0.1;
    for (int i = 0; i < most; i++) {
        axes[i].name = sizes[i].name, axes[i].type = KB_AXIS_INTS;
        axes[i].i[0] = values[i], axes[i].i[1] = KB_LAST_INT;
    }
    axes[most].name = "dtype", axes[most].type = KB_AXIS_STRINGS, axes[most].s[0] = dtype_name;
    axes[most + 1].name = "dir", axes[most + 1].type = KB_AXIS_STRINGS, axes[most + 1].s[0] = rung.direction;
    kb_axis* more = axes + most + 2; // axes of arguments that were given, so that a name identifies its problem
    if (layout_name && kbk_has_option(rung.signature, "layout"))
        more->name = "layout", more->type = KB_AXIS_STRINGS, more++->s[0] = layout_name;
    if (shape.causal) more->name = "causal", more->type = KB_AXIS_INTS, more->i[0] = 1, more->i[1] = KB_LAST_INT;
    entry.operation = rung.operation, entry.implementation = rung.implementation, entry.body = run, entry.axes = axes;
    entry.needs = KB_NEEDS_GPU, entry.note = rung.note, entry.rung = rung.rung, entry.min_sm = rung.sm;
    entry.origin = rung.origin & KBK_VENDOR ? "vendor" : "own";
    kb_add(&entry);
    argv[next - 1] = argv[0];
    return kb_main(argc - next + 1, argv + next - 1);
}
