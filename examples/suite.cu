// SPDX-License-Identifier: MIT OR Unlicense
/*  The suite: benchmarks every operation, implementation and element type of kbench_kernels.cuh.

    make run                                     a selection planned for 3 minutes; writes results.json
    make run ARGS=--all                          everything
    make run ARGS="--fast --op layernorm"        any option of kbench
    make run ARGS="--op softmax -a batch_size=16:128:*2 -a sequence_length=256:2048:*2 -a tensor_dimension=64:512:*2"

    nvcc -std=c++17 -O3 -arch=native -I. -DKBK_CUBLAS examples/suite.cu -o suite     the kernels, on a GPU; with cuBLAS
    cc -std=c11 -O2 -x c -I. examples/suite.cu -o suite -lm                          the oracles, on the CPU

    make run ARGS="--op matmul --size rectangular -a M=4096 -a N=1024:8192:*2 -a K=4096 -a layout=NT --dtype bf16"
    make run ARGS="--op dropout -a p=0,0.1,0.5"

    A shape has batch_size x sequence_length rows of tensor_dimension elements. For a matrix product, M is the number
    of rows, and N and K are tensor_dimension; the size category "rectangular" sets M, N and K. The axis "layout" tells
    which operand is stored transposed (NT: B, TN: A). matmul_e4m3 supports only NT; its dtype is the type of the
    result. For cross_entropy, tensor_dimension is the vocabulary. For dropout, p is the probability of dropping an
    element. Memory operations have n elements.

    The oracle computes each result in double precision on the CPU. Each implementation is compared with the oracle
    before and after timing. For large outputs, the comparison covers samples from the whole result. Without a GPU, the
    suite times the oracles themselves, on smaller shapes.

    The suite takes more than a minute to compile. The Makefile therefore compiles two parts in parallel and links them:
    SUITE_PART=2 has the matrix products and attention, SUITE_PART=1 the rest. Without SUITE_PART, the suite is one
    program. */
#ifdef SUITE_PART
#define KBK_PART SUITE_PART
#endif
#if SUITE_PART != 2
#define KBENCH_IMPLEMENTATION
#endif
#include "kbench.h"
#include "addons/kbench_inspect.h"
#include "addons/kbench_report.h"
#include "kbench_kernels.cuh"
#include <stdio.h>
#include <stdlib.h>

// --- shapes ---

static int64_t axis(kb_state* kb, const char* name, int64_t otherwise) {
    return kb_has(kb, name) ? kb_int(kb, name) : otherwise;
}

static const char* const layout_names[] = { "NN", "NT", "TN", NULL }; // KBK_NN, KBK_NT, KBK_TN

static int layout_of(kb_state* kb) {
    const char* name = kb_str(kb, "layout");
    for (int i = 0; layout_names[i]; i++)
        if (strcmp(name, layout_names[i]) == 0) return i;
    return kb_fail(kb, "layout=%s is unknown; it is NN, NT or TN", name), KBK_NN;
}

// matmul_e4m3 supports only NT
static bool one_layout(const kbk_op* op) { return op->family == KBK_GEMM && !kbk_has_option(op->signature, "layout"); }

static kbk_shape shape_of(kb_state* kb, const kbk_op* op) {
    kbk_shape s;
    memset(&s, 0, sizeof s);
    int64_t batch = axis(kb, "batch_size", 1), length = axis(kb, "sequence_length", 1);
    bool batched = kbk_has_dimension(op->signature, 'Z') || kbk_has_dimension(op->signature, 'B');
    s.batch = batched ? batch : 1;
    s.heads = axis(kb, "heads", 1);
    s.rows = axis(kb, "M", batched ? length : batch * length);
    s.cols = axis(kb, "N", axis(kb, "tensor_dimension", axis(kb, "n", 1)));
    s.vocabulary = axis(kb, "vocabulary", 0), s.stride = axis(kb, "stride", 0);
    s.among = axis(kb, "among", 0), s.sequential = (int)axis(kb, "sequential", 0);
    s.k = axis(kb, "K", op->family == KBK_GEMM ? s.cols : 0);
    if (op->family == KBK_GEMM) s.layout = layout_of(kb);
    if (one_layout(op) && s.layout != KBK_NT) kb_fail(kb, "%s supports only layout=NT", op->name);
    int64_t causal = axis(kb, "causal", 0);
    if (causal != 0 && causal != 1) kb_fail(kb, "causal=%lld is neither 0 nor 1", (long long)causal);
    s.causal = (int)causal;
    s.p = kb_has(kb, "p") ? kb_real(kb, "p") : 0;
    if (!(s.p >= 0 && s.p <= 1)) kb_fail(kb, "p=%g is not a probability; it is a number from 0 to 1", s.p);
    if (strcmp(kb->direction, op->dir) != 0) // -a dir=
        kb_fail(kb, "this implementation computes dir=%s; select a direction by a FILTER, as in 'dir=%s'", op->dir,
                kb->direction);
    s.seed = kb->seed;
    return s;
}

// --- expected outputs: the oracle on sampled units of the result, computed once for all variants of a case ---
// A unit is a part of the result that can be computed alone, for example a row.

enum { RANGES = 64 };
typedef struct sample {
    const char *op, *dir; // op, dir, shape and dtype identify the case
    kbk_shape shape;
    int dtype;
    int64_t from[RANGES], count[RANGES], units;
    int ranges;
    bool whole; // whether all units are sampled; then outputs that sum over all units (dw, db) are compared, too
    double* out[2 * KBK_OUTS];
} sample;
static sample known;

static int kb_type_of(const kbk_tensor* t, int dtype) {
    static const kb_dtype types[] = { KB_F32, KB_F16, KB_BF16 };
    static const kb_dtype kinds[] = { KB_F32, KB_F32, KB_I32, KB_I64, KB_E4M3 }; // KBK_T, KBK_KF32, ...
    return t->kind == KBK_T ? types[dtype] : kinds[t->kind];
}

// Chooses the sampled units: all units if the oracle can compute all of them quickly, otherwise equally spaced
// ranges that include the first and the last unit. The oracle runs once per case; the comparison runs twice per
// variant.
static void choose_units(sample* k, const kbk_op* op, const kbk_shape* s, int elem) {
    const double WORK = 1e8, COMPARED = 1 << 19; // limits: operations of the oracle; number of compared elements
    kbk_tensor t[KBK_MAX_TENSORS];
    int64_t units = op->units(s), piece = op->family == KBK_MAP || op->family == KBK_PICK ? 4096 : 1;
    double each = (op->flops(s) + op->bytes(s, elem)) / (double)(units ? units : 1), outputs = 0;
    for (int i = 0, n = op->tensors(s, t); i < n; i++)
        if (t[i].role != KBK_IN) outputs += (double)t[i].per_unit;
    int64_t most = (int64_t)(WORK / (each > 1 ? each : 1)) + 2;
    if ((double)most * outputs > COMPARED) most = (int64_t)(COMPARED / outputs) + 2;
    k->whole = units <= most || units < 2 * piece;
    k->ranges = 1;
    k->from[0] = 0;
    k->count[0] = k->units = units;
    if (k->whole) return;
    int64_t ranges = most / piece > RANGES ? (int64_t)RANGES : most / piece < 2 ? 2 : most / piece;
    k->units = 0;
    for (k->ranges = 0; k->ranges < ranges; k->ranges++) {
        k->from[k->ranges] = k->ranges == ranges - 1 ? units - piece : (units - piece) / (ranges - 1) * k->ranges;
        k->count[k->ranges] = piece;
        k->units += piece;
    }
}

// Returns a copy of the sampled units of a tensor in host memory, or of the whole tensor if it has no units. The
// caller frees the copy. Returns NULL if host memory is exhausted.
static void* gather(kb_state* kb, const sample* k, const kbk_tensor* t, int size, const void* device) {
    int64_t count = t->per_unit ? k->units * t->per_unit : t->count, at = 0;
    char* host = (char*)malloc((size_t)(count ? count : 1) * (size_t)size);
    if (!host) return kb_fail(kb, "no host memory for the oracle"), (void*)NULL;
    for (int i = 0; i < k->ranges; i++) {
        int64_t from = t->per_unit ? k->from[i] * t->per_unit : 0,
                n = t->per_unit ? k->count[i] * t->per_unit : t->count;
        kb_to_host(kb, host + at * size, (const char*)device + from * size, (size_t)(n * size));
        at += n;
        if (!t->per_unit) break;
    }
    return host;
}

static double* doubles(kb_state* kb, int64_t n) {
    double* p = (double*)calloc((size_t)(n > 0 ? n : 1), sizeof(double));
    if (!p) kb_fail(kb, "no host memory for the oracle");
    return p;
}

// Computes the oracle for one range of units. The samples of the range begin at unit `at` of the stored samples,
// and at unit `from` of the full tensor. The oracle takes pointers to the start of the full tensor, so each
// pointer is moved back by `from - at` units.
static void know_range(const kbk_op* op, const kbk_shape* s, int elem, const kbk_tensor* t, int n,
                       const double* const* in, int range, int64_t at) {
    const double* shifted[KBK_MAX_TENSORS] = { NULL };
    double* out[2 * KBK_OUTS] = { NULL };
    int64_t from = known.from[range];
    for (int i = 0, ins = 0, outs = 0; i < n; i++) {
        if (t[i].role == KBK_IN) {
            shifted[ins] = in[ins] - (from - at) * t[i].per_unit;
            ins++;
            continue;
        }
        if (t[i].per_unit || known.whole) {
            out[outs] = known.out[outs] + at * t[i].per_unit;
            if (t[i].scales)
                out[KBK_OUTS + outs] = known.out[KBK_OUTS + outs] + (t[i].per_unit ? at * t[i].scales : 0);
        }
        outs++;
    }
    op->ref(s, elem, shifted, out, from, from + known.count[range]);
}

static bool know(kb_state* kb, const kbk_op* op, const kbk_shape* s, int dtype, void* const* device) {
    kbk_tensor t[KBK_MAX_TENSORS];
    const double* in[KBK_MAX_TENSORS];
    int n = op->tensors(s, t), ins = 0, outs = 0;
    if (known.op == op->name && known.dir == op->dir && known.dtype == dtype &&
        memcmp(&known.shape, s, sizeof *s) == 0)
        return true;
    for (int i = 0; i < 2 * KBK_OUTS; i++) free(known.out[i]), known.out[i] = NULL;
    known.op = NULL;
    choose_units(&known, op, s, kbk_dtype_size(dtype));
    bool good = true;
    for (int i = 0; i < n; i++) {
        int64_t count = t[i].per_unit ? known.units * t[i].per_unit : t[i].count;
        if (t[i].role == KBK_IN) {
            void* raw = gather(kb, &known, &t[i], kbk_kind_size(t[i].kind, dtype), device[i]);
            double* wide = doubles(kb, count);
            if (raw && wide) kbk_widen(t[i].kind, dtype, raw, wide, count);
            good = good && raw && wide;
            free(raw);
            in[ins++] = wide;
        } else {
            int64_t scales = t[i].per_unit ? known.units * t[i].scales : t[i].count;
            known.out[outs] = doubles(kb, count);
            if (t[i].scales) known.out[KBK_OUTS + outs] = doubles(kb, scales);
            good = good && known.out[outs] && (!t[i].scales || known.out[KBK_OUTS + outs]);
            outs++;
        }
    }
    int64_t at = 0;
    for (int r = 0; r < known.ranges && good; at += known.count[r++])
        know_range(op, s, kbk_dtype_size(dtype), t, n, in, r, at);
    for (int i = 0; i < ins; i++) free((void*)(uintptr_t)in[i]);
    if (good) known.op = op->name, known.dir = op->dir, known.dtype = dtype, memcpy(&known.shape, s, sizeof *s);
    return good;
}

static void verify(kb_state* kb, const kbk_op* op, const kbk_shape* s, int dtype, void* const* device) {
    kbk_tensor t[KBK_MAX_TENSORS];
    int n = op->tensors(s, t);
    if (!know(kb, op, s, dtype, device)) return;
    for (int i = 0, k = 0; i < n; i++) {
        kbk_report r;
        if (t[i].role == KBK_IN) continue;
        int out = k++;
        if (!t[i].per_unit && !known.whole) { // dw, db: sums over all rows are too much work for large shapes
            kb_note(kb, "%s is verified on smaller shapes only", t[i].name);
            continue;
        }
        void* got = gather(kb, &known, &t[i], kbk_kind_size(t[i].kind, dtype), device[i]);
        bool good = got && kbk_verify(op, dtype, s, out, got, known.out, 0, known.units, &r);
        if (got)
            kb_check_that(kb, good, r.norm, r.norm_bound, "%s: %s; element %lld of the sample is %.9g, expected %.9g",
                          t[i].name, r.why ? r.why : "", (long long)r.index, r.got, r.want);
        free(got);
    }
}

// --- a variant on the GPU ---

static void fill_input(kb_state* kb, const kbk_tensor* t, int id, int dtype, void* device) {
    int type = kb_type_of(t, dtype);
    if (t->fill == KBK_NORMAL && t->a == 0 && t->b == 1 && t->place != KBK_ON_HOST) {
        kbi_fill(kb, device, (kb_dtype)type, t->count, KB_NORMAL);
        return;
    }
    double* x = doubles(kb, t->count);
    void* raw = malloc((size_t)(t->count ? t->count : 1) * (size_t)kbk_kind_size(t->kind, dtype));
    if (x && raw) {
        kbk_fill(t, id, dtype, kb->seed, 0, t->count, x);
        kbk_narrow(t->kind, dtype, x, raw, t->count);
        if (t->place == KBK_ON_HOST)
            memcpy(device, raw, (size_t)t->count * (size_t)kbk_kind_size(t->kind, dtype));
        else
            kb_from_host(kb, device, raw, (size_t)t->count * (size_t)kbk_kind_size(t->kind, dtype));
    }
    free(x);
    free(raw);
}

// Returns where a tensor is allocated: on the device or in host memory. Host memory is pinned, unless the variant
// measures pageable memory.
static kb_place place_of(const kbk_variant* v, const kbk_tensor* t) {
    return t->place != KBK_ON_HOST ? KB_DEVICE : v->origin & KBK_PAGEABLE ? KB_HOST : KB_PINNED;
}

// Returns the kind of memory traffic, which selects the measured peak. A sum only reads memory, a map without
// input only writes memory, and a map with one input copies memory.
static kb_traffic traffic_of(const kbk_op* op, const kbk_tensor* t, int n, int ins, int outs) {
    for (int i = 0; i < n; i++)
        if (t[i].place == KBK_ON_HOST) return KB_ANY_TRAFFIC;
    if (op->family == KBK_SUM) return KB_READ;
    if (op->family != KBK_MAP || outs != 1) return KB_ANY_TRAFFIC;
    return ins == 0 ? KB_WRITE : ins == 1 ? KB_COPY : KB_ANY_TRAFFIC;
}

static void run_variant(kb_state* kb) {
    const kbk_variant* v = (const kbk_variant*)kb->user;
    int dtype = kb->dtype == KB_F32 ? KBK_F32 : kb->dtype == KB_F16 ? KBK_F16 : KBK_BF16;
    kbk_shape s = shape_of(kb, v->op);
    kbk_tensor t[KBK_MAX_TENSORS];
    void* device[KBK_MAX_TENSORS];
    kbk_args a;
    int n = v->op->tensors(&s, t), ins = 0, outs = 0;
    bool allocates = (v->origin & KBK_ALLOCATES) != 0;
    const char* why = NULL;
    if (!kb->dtype || !(v->dtypes >> dtype & 1) || kb_dtype_of(kbk_dtype_name(dtype)) != kb->dtype) { // -a dtype=
        kb_skip(kb, "this implementation does not support the dtype");
        return;
    }
    memset(&a, 0, sizeof a);
    a.s = s;
    a.scalar = 1;
    for (int i = 0; i < n; i++) {
        device[i] = kb_alloc(kb, place_of(v, &t[i]), (size_t)kbk_kind_size(t[i].kind, dtype), t[i].count);
        if (!device[i]) return; // out of memory: kbench reports OOM
        if (t[i].role == KBK_IN)
            fill_input(kb, &t[i], i, dtype, device[i]), a.in[ins++] = device[i];
        else
            a.out[outs++] = device[i];
    }
    a.workspace_bytes = kbk_workspace(v, dtype, &s);
    a.workspace = a.workspace_bytes ? kb_alloc(kb, KB_DEVICE, 1, (int64_t)a.workspace_bytes) : NULL;
    if (a.workspace_bytes && !a.workspace) return;
    if (v->origin & KBK_COPIES) kb_expect(kb, KB_EXPECT_TRANSFER);
    if (allocates) kb_expect(kb, KB_EXPECT_ALLOC);
    if (allocates) { // an untimed launch writes to the allocated memory, to test the allocation
        why = kbk_launch(v, dtype, &a, kb->stream);
        a.out[0] = NULL;
    }
    KB_TIME(kb) {
        const char* text = kbk_launch(v, dtype, &a, kb->stream);
        if (text) why = text;
    }
    if (why) { // the kernel did not run, so there is no output to verify
        kb_skip(kb, "%s", why);
        return;
    }
    const double bytes = v->op->bytes(&s, kbk_dtype_size(dtype));
    if (!allocates && bytes > 0) kb_bytes_as(kb, bytes, traffic_of(v->op, t, n, ins, outs));
    bool products = v->op->family == KBK_GEMM || v->op->family == KBK_ATTN; // other operations compute in f32
    kb_dtype as = v->origin & KBK_TF32 ? KB_TF32 : products ? kb->dtype : KB_F32;
    if (products && t[0].kind == KBK_KE4M3) as = KB_E4M3;
    if (v->op->flops(&s) > 0) kb_flops_as(kb, v->op->flops(&s), as);
    kbk_op op = kbk_op_of(v); // a copy of the operation with the tolerance of this variant
    if (op.units(&s) > 0) verify(kb, &op, &s, dtype, device);
}

// --- an oracle on the CPU ---

static void run_oracle(kb_state* kb) {
    const kbk_op* op = (const kbk_op*)kb->user;
    kbk_shape s = shape_of(kb, op);
    kbk_tensor t[KBK_MAX_TENSORS];
    const double* in[KBK_MAX_TENSORS];
    double *out[2 * KBK_OUTS] = { NULL }, *again[2 * KBK_OUTS] = { NULL };
    int64_t units = op->units(&s), counts[KBK_OUTS] = { 0 };
    int n = op->tensors(&s, t), ins = 0, outs = 0;
    for (int i = 0; i < n; i++) {
        double* p = KB_ALLOC_HOST(kb, double, t[i].count);
        if (!p) return;
        if (t[i].role == KBK_IN) {
            kbk_fill(&t[i], i, KBK_F32, kb->seed, 0, t[i].count, p);
            in[ins++] = p;
        } else {
            counts[outs] = t[i].count;
            again[outs] = KB_ALLOC_HOST(kb, double, t[i].count);
            out[outs++] = p;
        }
    }
    KB_TIME_HOST(kb) {
        op->ref(&s, (int)sizeof(double), in, out, 0, units);
        kb_keep(out[0]);
    }
    kb_bytes(kb, op->bytes(&s, (int)sizeof(double)));
    kb_flops_as(kb, op->flops(&s), KB_F64);
    if (!again[0]) return;
    // units are independent, so computing the result in two halves must give the same values
    double* half[2 * KBK_OUTS] = { NULL };
    op->ref(&s, (int)sizeof(double), in, again, 0, units > 1 ? units / 2 : units);
    for (int i = 0, k = 0; i < n; i++)
        if (t[i].role != KBK_IN) half[k] = again[k] + units / 2 * t[i].per_unit, k++;
    if (units > 1) op->ref(&s, (int)sizeof(double), in, half, units / 2, units);
    for (int k = 0; k < outs; k++) kb_check_typed(kb, out[k], KB_F64, again[k], KB_F64, counts[k], 0);
}

// --- registration of all implementations, in the order of the library's table ---

// Adds an axis for each category of a list of sizes, "AXIS x AXIS: CATEGORY VALUESxVALUES; CATEGORY ...", and
// returns the end of the axes. The memory of the axes is never freed, because kbench keeps it.
static kb_axis* add_sizes(kb_axis* a, const char* list) {
    const char* names = list;
    for (size_t n; *list; list += n + (list[n] != 0)) {
        list += strspn(list, " ");
        n = strcspn(list, ";:");
        if (list[n] == ':') {
            names = list;
            continue;
        }
        size_t word = strcspn(list, " "), length = 0, room = n + 200;
        char *category = (char*)calloc(word + 1, 1), *spec = (char*)calloc(room, 1);
        if (!category || !spec) exit(1);
        memcpy(category, list, word);
        const char *name = names, *value = list + word + 1;
        while (value < list + n) {
            int name_length = (int)strcspn(name, " :"), value_length = (int)strcspn(value, "x;");
            length += (size_t)snprintf(spec + length, room - length, "%s%.*s=%.*s", length ? " " : "", name_length, name,
                                       value_length, value);
            name += name_length + 3, value += value_length + 1; // after " x " and "x"
        }
        a->name = category;
        a->type = KB_AXIS_SIZE;
        a++->s[0] = spec;
    }
    return a;
}

// Returns the axes of an operation: dir, dtype, its special axes, sizes, and the end marker.
static kb_axis* axes_of(const kbk_op* op, const char* const* dtypes, bool gpu) {
    kb_axis *axes = (kb_axis*)calloc(24, sizeof(kb_axis)), *a = axes + 2; // never freed, because kbench keeps it
    if (!a) exit(1);
    axes[0].name = "dir";
    axes[0].type = axes[1].type = KB_AXIS_STRINGS;
    axes[0].s[0] = op->dir;
    axes[1].name = "dtype";
    for (int i = 0; dtypes[i]; i++) axes[1].s[i] = dtypes[i];
    if (op->family == KBK_GEMM) {
        a->name = "layout";
        a->type = KB_AXIS_STRINGS;
        for (int i = 0; layout_names[i] && !one_layout(op); i++) a->s[i] = layout_names[i];
        if (one_layout(op)) a->s[0] = layout_names[KBK_NT];
        a++;
    }
    if (kbk_has_option(op->signature, "p")) {
        a->name = "p";
        a->type = KB_AXIS_REALS;
        a->r[0] = 0.1;
        a++->r[1] = KB_LAST_REAL;
    }
    if (add_sizes(a, op->sizes[!gpu]) >= axes + 24) exit(1);
    return axes;
}

static void add(const kbk_op* op, const kbk_variant* v, int order) {
    static const char* const f64[] = { "f64", NULL };
    const char* dtypes[KBK_DTYPES + 1] = { NULL };
    int n = 0;
    kb_entry* e = (kb_entry*)calloc(1, sizeof(kb_entry)); // never freed, because kbench keeps it
    if (!e) exit(1);
    if (!*op->sizes[!v]) return; // skips an operation without shapes for the CPU
    for (int i = 0; v && i < KBK_DTYPES; i++)
        if (v->dtypes >> i & 1) dtypes[n++] = kbk_dtype_name(i);
    if (v && n == 0) return; // skips a variant of which no element type is compiled
    e->operation = op->name;
    e->implementation = v ? v->name : "oracle";
    e->body = v ? run_variant : run_oracle;
    e->user = (void*)(uintptr_t)(v ? (const void*)v : (const void*)op);
    e->axes = axes_of(op, v ? dtypes : f64, v != NULL);
    e->origin = v && (v->origin & KBK_VENDOR) ? "vendor" : "own";
    e->rung = v ? v->rung : 0;
    e->needs = v ? KB_NEEDS_GPU : KB_NEEDS_CPU;
    e->min_sm = v ? v->sm & ~KBK_SM_EXACT : 0;
    e->note = v ? v->note : "the double-precision oracle, on the CPU";
    e->order = order;
    kb_add(e);
}

// Registers every operation that this part of the suite contains, with entry numbers from `order` on. Returns the
// first unused entry number.
static int add_all(int order) {
    for (int i = 0; i < KBK_OP_COUNT; i++) {
        for (int j = 0; j < KBK_VARIANT_COUNT; j++)
            if (kbk_table[j].op == &kbk_ops[i]) add(&kbk_ops[i], &kbk_table[j], order++);
        add(&kbk_ops[i], NULL, order++);
    }
    return order;
}

extern int add_products(int order);
#if SUITE_PART == 2
int add_products(int order) { return add_all(order); }
#else
int main(int argc, char** argv) {
    int order = add_all(1);
#if SUITE_PART == 1
    order = add_products(order);
#endif
    (void)order;
    kb_default("--fast --size medium --max-time 200ms --budget 3m"); // a default run takes at most 3 minutes
    return kb_main(argc, argv);
}
#endif
