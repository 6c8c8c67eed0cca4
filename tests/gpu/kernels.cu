// SPDX-License-Identifier: MIT OR Unlicense
/* Tests every variant in the table of kbench_kernels.cuh in every element type. The outputs must match the oracle.
   The tests use odd shapes, strides, misaligned addresses, three seeds, and inputs with NaN, infinities and large
   means. A variant must write all of its outputs and nothing else, leave its inputs unchanged, support capture into a
   CUDA graph, and be bitwise reproducible. A variant must return an error for a case that it does not support.

   nvcc -std=c++17 -O2 -arch=native -I. tests/gpu/kernels.cu -o kernels && ./kernels [OPTION...]
   (with cuBLAS's variants: -DKBK_CUBLAS, and -ldl on an old glibc)

       --op NAME        only this operation, in all its directions
       --variant NAME   only this variant
       --jobs N         N processes share the work, because the oracles use a core while the GPU is idle; by
                        default half the number of cores, at most 8; 4 with --sanitize
       --quick          two thirds of the shapes, a third of the inputs
       --large          tensors of more than 2^31 elements; on by default if each job can have 15 GB of the
                        GPU's memory, without --quick and --sanitize
       --sanitize       for compute-sanitizer, which is slow: a few small shapes, one seed, no graphs; every
                        tensor ends at the end of its allocation, so that reading past it is detected
       --strides        only the shapes with strides
       --faults         arguments that kbk_launch rejects, empty shapes, and one with rows that are not aligned to
                        16 bytes; takes a minute under compute-sanitizer
       --count          launches everything and checks nothing, for tests/compile/launched.sh, whose simulated
                        runtime only counts the launches

   Prints a line per failing combination, and on stderr one per finished operation; exit code 0, 1 after
   failures, 77 without a GPU. */
#include "kbench_kernels.cuh"
#include <stdio.h>
#include <stdlib.h>
#ifndef _WIN32
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static int passed, failed, skipped;
static int quick, large, sanitize, counting, faults, strides, jobs, job_index;
static int capability; // compute capability times ten
static const char* only;
// Memory shared by all jobs (worker processes). taken: number of parts of the work that any job has taken.
static struct account {
    int taken;
    struct {
        int through, passed, failed;
    } ops[KBK_OP_COUNT];
} alone, *shared = &alone;

// Returns whether this job does the next part of the work. All jobs iterate over one list of parts; a job that is
// done takes the first part that no job has taken, because some parts take a thousand times as long as others.
static int my_part() {
    static int part, mine = -1;
    if (jobs == 1) return 1;
#ifndef _WIN32
    if (mine < 0) mine = __atomic_fetch_add(&shared->taken, 1, __ATOMIC_RELAXED);
#endif
    if (part++ != mine) return 0;
    mine = -1;
    return 1;
}

static void cuda(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    printf("FAIL: %s: %s\n", what, cudaGetErrorString(e));
    if (jobs == 1) printf("%d passed, %d failed, %d skipped\n", passed, failed + 1, skipped);
    exit(1);
}
#define CUDA(call) cuda((call), #call)

// --- inputs: their kinds of values
enum {
    SEED1,
    SEED2,
    SEED3,
    LOGITS80,
    MINUS_INF,
    NANS,
    MEAN1000,
    BAD_IDS,
    DEAD_KEYS,
    MASKS,
    FAR,
    WHOLE_ROWS,
    FAR_KEYS,
    INTEGERS,
    OUTLIERS,
    FILLS
};
static const char* const fill_name[FILLS] = { "seed 1",   "seed 2",      "seed 3",   "+-80",      "-inf",
                                              "nan, inf", "mean 1000",   "ids",      "-inf keys", "masks",
                                              "far",      "masked rows", "far keys", "integers",  "outliers" };
// --- addresses: in, out: number of elements by which the inputs or outputs are shifted from a 256-byte boundary;
// apart: additional shift of each tensor relative to the preceding tensor
static const struct {
    int in, out, apart;
} offsets[] = { { 0, 0, 0 }, { 1, 1, 0 }, { 1, 0, 0 }, { 0, 3, 0 }, { 5, 13, 0 }, { 0, 0, 1 }, { 2, 1, 3 } };
enum { OFFSETS = sizeof offsets / sizeof offsets[0], GUARD = 4096 };

typedef struct {
    kbk_tensor t;
    int slot;
    // host memory: values of an input in double precision, or of an output as the oracle computed them
    double* values;
    // host memory: magnitudes from which the tolerance of an output is computed
    double* scales;
    // host memory; raw: bytes of an input, with 0xFF between its elements if the tensor has strides; got: bytes of
    // the tensor that were copied back from the device
    char *raw, *got;
    kbk_layout layout;
    // first guard, alignment, tensor, second guard; in host memory if the operation needs this tensor there
    char* dev;
    char *pinned, *pageable; // host memory, page-locked and pageable
    size_t bytes, room;
} side;

typedef struct {
    const kbk_op* op;
    kbk_shape s;
    int dtype, fill, n;
    int spoiled;
    // with --sanitize: index into offsets[] of the shift that the buffers are allocated for
    int shift;
    side x[KBK_MAX_TENSORS];
    const double* in[8];
    double* out[2 * KBK_OUTS];
    int64_t units;
    char* work;
    size_t work_bytes;
} job;

static char *arena, *arena_end, *arena_at;
static cudaStream_t stream;

static char* take(size_t bytes) {
    char* p = arena_at;
    arena_at += (bytes + 255) / 256 * 256;
    return arena_at <= arena_end ? p : NULL;
}

static void kill_keys(const job* j, side* x) {
    int64_t d = j->s.cols, rows = j->s.rows;
    for (int64_t i = 0; x->slot == 0 && i < x->t.count; i++) x->values[i] = fabs(x->values[i]) + 0.1;
    for (int64_t r = 0; x->slot == 1 && r < x->t.count / d; r++)
        if (r < rows || r % rows < 70 || r % 3 == 0) x->values[r * d + 3] = -HUGE_VAL;
}
static double masked(int dtype, int64_t row, int64_t column, int64_t cols) {
    static const double greatest[KBK_DTYPES] = { 3.4028234663852886e38, 65504, 3.3895313892515355e38 };
    double far = dtype == KBK_F16 ? 60000 : 1e30;
    int half = column < cols / 2;
    switch (row % 6) {
    case 0: return -far;
    case 1: return -greatest[dtype];
    case 2: return greatest[dtype];
    case 3: return half ? -greatest[dtype] : -far;
    case 4: return half ? -HUGE_VAL : -greatest[dtype];
    default: return half ? -greatest[dtype] : greatest[dtype];
    }
}
// The lse input gets the value of the last logit.
static void mask_rows(const job* j, side* x) {
    int64_t cols = j->s.cols;
    if (x->t.kind == KBK_KF32)
        for (int64_t r = 0; x->t.per_unit && r < x->t.count; r++)
            x->values[r] = kbk_round_value(j->dtype, masked(j->dtype, r, cols - 1, cols));
    if (x->t.kind == KBK_T)
        for (int64_t i = 0; i < x->t.count; i++) x->values[i] = masked(j->dtype, i / cols, i % cols, cols);
}
// Makes scores near -1e30 (f16: -1e9). In the first head the scores of all keys are equal; in all later heads
// every third key has a lower score, and the scores of the remaining keys are equal. The scores are exact in any
// order of summation, so n equal maximal scores have the probability 1/n each.
static void move_keys(const job* j, side* x) {
    int64_t d = j->s.cols, rows = j->s.rows;
    double q = j->dtype == KBK_F16 ? 1024 : ldexp(1.0, 40), k = j->dtype == KBK_F16 ? -32768 : ldexp(-1.0, 55);
    for (int64_t i = 0; x->slot == 0 && i < x->t.count; i++) x->values[i] = q * (double)(1 + i / d % 8);
    for (int64_t i = 0; x->slot == 1 && i < x->t.count; i++)
        x->values[i] = k * (i / d >= rows && i / d % 3 == 2 ? 1.5 : 1) * (i % d % 2 ? 0.5 : 1);
}
// Fills with 1, 2, -1 and -2. All products and sums are exact, so a missing or repeated term changes the result.
static void whole_numbers(side* x) {
    for (int64_t i = 0; i < x->t.count; i++) {
        uint32_t r = kbk_random_block(9, (uint64_t)i, (uint32_t)x->slot, 0).w[0];
        x->values[i] = (r & 1 ? -1 : 1) * (r & 6 ? 1 : 2);
    }
}
static double one_of_three(const job* j) {
    static const double inf[3] = { 0, HUGE_VAL, -HUGE_VAL };
    int turn = (int)((j->s.rows + j->s.cols) % 3);
    return turn ? inf[turn] : kbki_from_bits(0x7FF8ull << 48);
}
/* Returns whether the tests may set x (a statistic, a scale or a gradient) to infinity. They may if the outputs
   have the same infinities and NaN for every algebraic form of the operation's formula. Two inputs are excluded.
   The first is rstd of a row with few columns: if all values of the row have one sign, a sum over the row is
   infinite instead of NaN. The second is a scale of matmul_e4m3: the sign of an infinite output is that of the sum
   before scaling, which depends on rounding. */
static int may_be_infinite(const job* j, const side* x) {
    if (!strcmp(j->op->name, "matmul_e4m3")) return 0;
    return strcmp(x->t.name, "rstd") || j->s.cols >= 31;
}
/* Returns the special value of element i of n, or 0 if the element stays unchanged. Every tensor that is large
   enough gets NaN, +inf and -inf. Small tensors and last rows get a special value, too, except in x of layernorm
   forward (the mean is computed in two steps) and in the inputs of attention backward (infinities are multiplied by
   zeros beyond the last key). */
static double not_finite(const job* j, int64_t i, int64_t n) {
    int norm_fwd = !strcmp(j->op->name, "layernorm") && !strcmp(j->op->dir, "fwd") && j->spoiled == 0;
    int everywhere = !norm_fwd && !(j->op->family == KBK_ATTN && !strcmp(j->op->dir, "bwd"));
    if (everywhere && n < 8) return i == n / 2 ? one_of_three(j) : 0;
    if (i % 4099 == 5) return i & 1 ? HUGE_VAL : -HUGE_VAL;
    if (i % 1031 == 3) return kbki_from_bits(0x7FF8ull << 48);
    return everywhere && n < 4105 && i == n - 2 - ((n - 2) % 1031 == 3) ? -HUGE_VAL : 0;
}
static void spoil(job* j, int fill) {
    for (int k = 0; k < j->n; k++) {
        side* x = &j->x[k];
        int64_t n = x->t.count, row = j->s.cols;
        if (x->t.role != KBK_IN) continue;
        if (kbk_kind_whole(x->t.kind)) {
            static const double bad[5] = { KBK_IGNORE, -1, 1e9, -2147483648.0, 0 };
            for (int64_t i = 0; fill == BAD_IDS && i < n; i++)
                if (i % 2 == 0) x->values[i] = i % 20 == 8 ? x->t.b : bad[i / 2 % 5];
            continue;
        }
        if (fill == DEAD_KEYS) kill_keys(j, x);
        if (fill == FAR_KEYS) move_keys(j, x);
        if (fill == WHOLE_ROWS) mask_rows(j, x);
        if (fill == INTEGERS) whole_numbers(x);
        if (x->slot != j->spoiled || fill == DEAD_KEYS) continue;
        if (x->t.kind == KBK_KF32 && fill == NANS)
            x->values[n / 2] = may_be_infinite(j, x) ? one_of_three(j) : kbki_from_bits(0x7FF8ull << 48);
        if (x->t.kind != KBK_T && x->t.kind != KBK_KE4M3) continue;
        for (int64_t i = 0; i < n; i++) {
            double* v = &x->values[i];
            if (fill == LOGITS80) *v = *v > 0 ? 80 : *v > -1 ? -80 : *v;
            if (fill == MEAN1000) *v += 1000;
            if (fill == OUTLIERS && i % row == 0) *v = i / row % 2 ? -64 : 1000;
            if (fill == MINUS_INF && (i < row || (i < 2 * row ? i - row < row / 2 : i % 3 == 0))) *v = -HUGE_VAL;
            // masks all but the first 100 values of a row. The mask value is the lowest finite value of the
            // type and -1e30 in alternate rows, but in f16 the lowest finite value in every row.
            if (fill == MASKS && i % row >= 100)
                *v = j->dtype == KBK_F16   ? -65504
                     : i / row % 2         ? -1e30
                     : j->dtype == KBK_F32 ? -3.4028234663852886e38
                                           : -3.3895313892515355e38;
            if (fill == FAR) *v = j->dtype == KBK_F16 ? 60000 + 200 * *v : 1e6 * (1 + 0.05 * *v);
            double special = fill == NANS ? not_finite(j, i, n) : 0;
            if (special != 0) *v = special; // also true for NaN
        }
    }
}

static size_t front(const job* j, const side* x, int shift) {
    int off = (x->t.role == KBK_IN ? offsets[shift].in : offsets[shift].out) + x->slot * offsets[shift].apart;
    return (size_t)(GUARD + kbk_kind_size(x->t.kind, j->dtype) * off);
}

// Copies the elements of a tensor from an array without gaps to the places that the strides give, or back.
static void spread(const side* x, int dtype, char* strided, char* dense, int back) {
    const size_t size = (size_t)kbk_kind_size(x->t.kind, dtype);
    for (int64_t i = 0; i < x->t.count; i++) {
        char *p = strided + (size_t)kbk_offset(&x->layout, i) * size, *q = dense + (size_t)i * size;
        memcpy(back ? q : p, back ? p : q, size);
    }
}
static int prepare(job* j) {
    int ins = 0, outs = 0, big_enough = 1;
    kbk_tensor t[KBK_MAX_TENSORS];
    memset(j->x, 0, sizeof j->x), memset(j->out, 0, sizeof j->out), memset(j->in, 0, sizeof j->in);
    j->n = j->op->tensors(&j->s, t), j->units = j->op->units(&j->s);
    for (int k = 0; k < j->n; k++) {
        side* x = &j->x[k];
        x->t = t[k];
        x->slot = x->t.role == KBK_IN ? ins++ : outs++;
        x->layout = kbk_layout_of(j->op, &j->s, k);
        const int64_t span = x->t.count ? kbk_offset(&x->layout, x->t.count - 1) + 1 : 0;
        x->bytes = (size_t)span * kbk_kind_size(x->t.kind, j->dtype);
        x->room = x->bytes + 2 * GUARD + 256;
        if (sanitize) x->room = x->bytes + front(j, x, j->shift);
        if (!counting) {
            x->values = (double*)calloc((size_t)x->t.count + 1, sizeof(double));
            x->scales = (double*)calloc((size_t)(x->t.scales * (x->t.per_unit ? j->units : 1)) + 1, sizeof(double));
            x->raw = (char*)malloc(x->bytes + 1), x->got = (char*)malloc(x->room);
        }
        if (x->t.place == KBK_ON_HOST) {
            CUDA(cudaMallocHost((void**)&x->pinned, x->room));
            x->pageable = (char*)malloc(x->room);
        } else if (sanitize)
            CUDA(cudaMalloc((void**)&x->dev, x->room));
        else
            big_enough &= (x->dev = take(x->room)) != NULL;
        if (counting) continue;
        if (x->t.role != KBK_IN) {
            j->out[x->slot] = x->values;
            j->out[KBK_OUTS + x->slot] = x->t.scales ? x->scales : NULL;
            continue;
        }
        uint64_t seed = j->fill <= SEED3 ? 42 + (uint64_t)j->fill : 42;
        kbk_fill(&x->t, x->slot, j->dtype, seed, 0, x->t.count, x->values);
        j->in[x->slot] = x->values;
    }
    if (counting) return big_enough;
    spoil(j, j->fill);
    for (int k = 0; k < j->n; k++)
        if (j->x[k].t.role == KBK_IN) {
            side* x = &j->x[k];
            char* dense = (char*)malloc(x->bytes + 1);
            kbk_narrow(x->t.kind, j->dtype, x->values, dense, x->t.count);
            kbk_widen(x->t.kind, j->dtype, dense, x->values, x->t.count);
            memset(x->raw, 0xFF, x->bytes), spread(x, j->dtype, x->raw, dense, 0);
            free(dense);
        }
    j->op->ref(&j->s, kbk_dtype_size(j->dtype), j->in, j->out, 0, j->units);
    // magnitudes grow with the scores; the scores of FAR_KEYS are large but exact, so the tolerance needs none
    for (int k = 0; k < j->n && j->fill == FAR_KEYS; k++)
        if (j->x[k].t.scales) memset(j->x[k].scales, 0, (size_t)(j->x[k].t.scales * j->units) * sizeof(double));
    return big_enough;
}
static void release(job* j) {
    for (int k = 0; k < j->n; k++) {
        side* x = &j->x[k];
        free(x->values), free(x->scales), free(x->raw), free(x->got), free(x->pageable);
        if (x->pinned) CUDA(cudaFreeHost(x->pinned));
        if (sanitize && x->t.place == KBK_ON_DEVICE) CUDA(cudaFree(x->dev));
    }
}

static void place(job* j, const kbk_variant* v, int shift, kbk_args* a) {
    memset(a, 0, sizeof *a);
    a->s = j->s, a->workspace = j->work, a->workspace_bytes = j->work_bytes;
    for (int k = 0; k < j->n; k++) {
        side* x = &j->x[k];
        if (x->t.place == KBK_ON_HOST) x->dev = v->origin & KBK_PAGEABLE ? x->pageable : x->pinned;
        char* at = x->dev + front(j, x, shift);
        if (x->t.place == KBK_ON_HOST) {
            CUDA(cudaStreamSynchronize(stream));
            memset(x->dev, 0xFF, x->room);
            if (x->t.role == KBK_IN && x->raw) memcpy(at, x->raw, x->bytes);
        } else {
            CUDA(cudaMemsetAsync(x->dev, 0xFF, x->room, stream));
            if (x->t.role == KBK_IN) CUDA(cudaMemcpyAsync(at, x->raw, x->bytes, cudaMemcpyHostToDevice, stream));
        }
        if (x->t.role == KBK_IN)
            a->in[x->slot] = at;
        else
            a->out[x->slot] = at;
    }
    if (j->work_bytes) CUDA(cudaMemsetAsync(j->work, 0xFF, j->work_bytes + GUARD, stream));
}

static const char* intact(const char* p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] != 0xFF) return "wrote outside its tensor";
    return NULL;
}

// Returns whether an output is exact if the inputs are integers: an exact output is a sum of integers, or the
// quotient of two sums of integers. The gradient dx of a norm is not a sum of integers.
static int comes_out_exact(const job* j, const side* x) {
    int norm = !strcmp(j->op->name, "layernorm") || !strcmp(j->op->name, "rmsnorm");
    return !norm || !x->t.per_unit;
}
static const char* inspect(job* j, const kbk_variant* v, int shift, kbk_report* r, int* which) {
    static char guard[GUARD];
    const char* why = NULL;
    kbk_op op = kbk_op_of(v);
    if (j->fill == INTEGERS) memset(op.check, 0, sizeof op.check);
    memset(r, 0, sizeof *r);
    r->index = -1, *which = 0;
    for (int k = 0; k < j->n; k++)
        CUDA(cudaMemcpyAsync(j->x[k].got, j->x[k].dev, j->x[k].room, cudaMemcpyDefault, stream));
    if (j->work_bytes) CUDA(cudaMemcpyAsync(guard, j->work + j->work_bytes, GUARD, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (j->work_bytes && intact(guard, GUARD)) return "wrote past its workspace";
    for (int k = 0; k < j->n && !why; k++) {
        side* x = &j->x[k];
        size_t before = front(j, x, shift);
        *which = k;
        why = intact(x->got, before);
        if (!why) why = intact(x->got + before + x->bytes, x->room - before - x->bytes);
        if (why) break;
        if (x->t.role == KBK_IN)
            why = memcmp(x->got + before, x->raw, x->bytes) ? "changed its input" : NULL;
        else if (x->t.count && (j->fill != INTEGERS || comes_out_exact(j, x))) {
            char *dense = (char*)malloc(2 * x->bytes), *gaps = dense + x->bytes;
            spread(x, j->dtype, x->got + before, dense, 1);
            kbk_verify(&op, j->dtype, &j->s, x->slot, dense, j->out, 0, j->units, r), why = r->why;
            // the memory between the elements must still hold 0xFF
            memcpy(gaps, x->got + before, x->bytes), memset(dense, 0xFF, x->bytes);
            spread(x, j->dtype, gaps, dense, 0);
            if (!why) why = intact(gaps, x->bytes);
            free(dense);
        }
    }
    return why;
}

static void complain(const job* j, const kbk_variant* v, int shift, const char* why, int which, const kbk_report* r) {
    failed++;
    printf("FAIL: %s_%s/%s %s, %lld x %lld", v->op->name, v->op->dir, v->name, kbk_dtype_name(j->dtype),
           (long long)j->s.rows, (long long)j->s.cols);
    if (v->op->family == KBK_ATTN || j->s.batch > 1)
        printf(", batch %lld, heads %lld%s, input %d", (long long)j->s.batch, (long long)j->s.heads,
               j->s.causal ? ", causal" : "", j->spoiled);
#define PRINT_FURTHER(size) \
    if (further++ > 3 && j->s.size) printf(", " #size " %lld", (long long)j->s.size);
    int further = 0;
    KBK_SIZES(PRINT_FURTHER)
    if (j->s.layout || j->s.sequential) printf(", layout %d, sequential %d", j->s.layout, j->s.sequential);
    printf(", %s", fill_name[j->fill]);
    for (int k = 0; k < j->n; k++) {
        const int64_t* given = j->s.strides[k];
        if (!given[0] && !given[1] && !given[2]) continue;
        printf(", strides of %s %lld %lld %lld", j->x[k].t.name, (long long)given[0], (long long)given[1],
               (long long)given[2]);
    }
    if (j->spoiled && v->op->family != KBK_ATTN) printf(" in input %d", j->spoiled);
    printf(", offsets %d and %d, %d apart: %s", offsets[shift].in, offsets[shift].out, offsets[shift].apart, why);
    if (r && r->index >= 0)
        printf(" (%s[%lld] = %.9g, oracle %.9g, allowed %.3g; %lld bad; norm %.3g of %.3g)", j->x[which].t.name,
               (long long)r->index, r->got, r->want, r->bound, (long long)r->bad, r->norm, r->norm_bound);
    printf("\n");
}

static int is(const kbk_op* op, const char* name) { return !strcmp(op->name, name); }
// TMA requires rows that are 16-byte aligned.
static int refuses(const kbk_variant* v, const kbk_args* a) {
    const kbk_shape* s = &a->s;
    if (s->rows == 0 || s->cols == 0) return 0;
    if (v->op->family == KBK_ATTN && memcmp(s->strides, kbk_shape().strides, sizeof s->strides)) {
        const int bwd = !strcmp(v->op->dir, "bwd"), tma = !strcmp(v->name, bwd ? "flashws" : "flashpp");
        if (!tma && (bwd || (strcmp(v->name, "flash") && strcmp(v->name, "flashmma")))) return 1;
        const kbk_layout first = kbk_layout_of(v->op, s, 0);
        for (int i = 0; i < (bwd ? 4 : 3); i++) {
            const kbk_layout l = kbk_layout_of(v->op, s, i);
            if (tma ? (l.step[1] | l.step[2] | l.step[3]) % 8 : memcmp(l.step, first.step, sizeof l.step)) return 1;
        }
    }
    if (v->sm == KBK_SM_90a && v->op->family == KBK_ATTN) {
        uintptr_t all = (uintptr_t)a->in[0] | (uintptr_t)a->in[1] | (uintptr_t)a->in[2];
        if (!strcmp(v->op->dir, "bwd")) all |= (uintptr_t)a->in[3];
        return all % 16 != 0;
    }
    if (is(v->op, "matmul_e4m3")) {
        const int vendor = (v->origin & KBK_VENDOR) != 0;
        uintptr_t all = (uintptr_t)a->in[0] | (uintptr_t)a->in[1];
        if (vendor) all |= (uintptr_t)a->out[0] | (uintptr_t)a->in[2] | (uintptr_t)a->in[3];
        if (s->layout != KBK_NT) return 1;
        return (vendor || v->sm == KBK_SM_90a) && s->k && (s->k % 16 || all % 16 || (vendor && s->cols % 16));
    }
    const int tma = v->sm == KBK_SM_90a || !strcmp(v->name, "tmaload");
    const int product = is(v->op, "matmul") || is(v->op, "bmm");
    if (!tma || !product || !strcmp(v->name, "select") || s->k == 0) return 0;
    const int tf32 = (v->origin & KBK_TF32) != 0;
    bool whole = !tf32 || s->k % 4 == 0; // tf32 instructions need K-major operands
    for (int i = 0; i < 2; i++) {
        const kbk_layout l = kbk_layout_of(v->op, s, i);
        // tf32 transposes contiguous operands only
        const bool turned = tf32 && (i ? s->layout != KBK_NT && s->cols % 4 : s->layout == KBK_TN);
        whole = whole && (turned ? !s->strides[i][0] && !s->strides[i][1]
                                 : (l.size[0] | l.step[1] | l.step[2]) % (tf32 ? 4 : 8) == 0);
    }
    // TMA also stores C
    const kbk_layout c = kbk_layout_of(v->op, s, 2);
    if (!strcmp(v->name, "tma")) whole &= (c.size[0] | c.step[1]) % 8 == 0 && (uintptr_t)a->out[0] % 16 == 0;
    return !whole || (uintptr_t)a->in[0] % 16 || (uintptr_t)a->in[1] % 16;
}
// The next variant gets the same memory.
static bool take_workspace(job* j, const kbk_variant* v) {
    char* mark = arena_at;
    j->work_bytes = kbk_workspace(v, j->dtype, &j->s);
    j->work = j->work_bytes ? take(j->work_bytes + GUARD) : NULL;
    arena_at = mark;
    return !j->work_bytes || j->work;
}

static void try_variant(job* j, const kbk_variant* v, int shift, int twice) {
    kbk_args a;
    kbk_report r;
    int which = 0;
    if (!take_workspace(j, v)) {
        skipped++;
        return;
    }
    place(j, v, shift, &a);
    const char* why = kbk_launch(v, j->dtype, &a, stream);
    if (refuses(v, &a)) {
        if (why)
            passed++;
        else
            complain(j, v, shift, "accepted a case that it cannot compute", 0, NULL);
        return;
    }
    if (!why && !counting)
        why = inspect(j, v, shift, &r, &which);
    else
        r.index = -1;
    if (why) {
        complain(j, v, shift, why, which, &r);
        return;
    }
    passed++;
    if (!twice || counting || v->origin & KBK_UNORDERED) return;
    char* first[KBK_MAX_TENSORS];
    for (int k = 0; k < j->n; k++)
        first[k] = (char*)malloc(j->x[k].room), memcpy(first[k], j->x[k].got, j->x[k].room);
    why = kbk_launch(v, j->dtype, &a, stream);
    if (!why) why = inspect(j, v, shift, &r, &which);
    for (int k = 0; k < j->n; k++) {
        if (!why && memcmp(first[k], j->x[k].got, j->x[k].room))
            why = "a second launch gave different bits", r.index = -1;
        free(first[k]);
    }
    if (why)
        complain(j, v, shift, why, which, &r);
    else
        passed++;
}

// The graph is launched twice. The variant must neither synchronise nor allocate during capture.
static void try_graph(job* j, const kbk_variant* v) {
    if (v->origin & KBK_ALLOCATES || sanitize || counting) return;
    kbk_args a;
    kbk_report r;
    int which = 0;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (!take_workspace(j, v)) return;
    place(j, v, 0, &a);
    if (refuses(v, &a)) return;
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const char* why = kbk_launch(v, j->dtype, &a, stream);
    cudaError_t e = cudaStreamEndCapture(stream, &graph);
    if (!why && e != cudaSuccess) why = "cannot be captured";
    if (!why) {
        CUDA(cudaGraphInstantiate(&exec, graph, 0));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaGraphLaunch(exec, stream));
        why = inspect(j, v, 0, &r, &which);
        CUDA(cudaGraphExecDestroy(exec));
    } else
        r.index = -1;
    if (graph) CUDA(cudaGraphDestroy(graph));
    if (why)
        complain(j, v, 0, why, which, &r);
    else
        passed++;
}

// The required outputs must be bitwise equal to those of a launch with all outputs. The memory of the optional
// outputs must not change.
static void try_without_optional(job* j, const kbk_variant* v, int shift) {
    int optional = 0;
    for (int k = 0; k < j->n; k++) optional += j->x[k].t.role != KBK_IN && j->x[k].t.optional && j->x[k].t.count;
    if (!optional || v->origin & (KBK_ALLOCATES | KBK_UNORDERED) || sanitize || counting) return;
    kbk_args a;
    const char* why = NULL;
    char* first[KBK_MAX_TENSORS];
    if (!take_workspace(j, v)) return;
    for (int turn = 0; turn < 2 && !why; turn++) {
        place(j, v, shift, &a);
        for (int k = 0; turn && k < j->n; k++)
            if (j->x[k].t.role != KBK_IN && j->x[k].t.optional) a.out[j->x[k].slot] = NULL;
        why = kbk_launch(v, j->dtype, &a, stream);
        for (int k = 0; k < j->n && !why; k++) {
            side* x = &j->x[k];
            CUDA(cudaMemcpyAsync(x->got, x->dev, x->room, cudaMemcpyDeviceToHost, stream));
            CUDA(cudaStreamSynchronize(stream));
            if (!turn) first[k] = (char*)malloc(x->room), memcpy(first[k], x->got, x->room);
            if (turn && x->t.role != KBK_IN && x->t.optional && intact(x->got, x->room))
                why = "wrote an output whose pointer is NULL";
            else if (turn && !x->t.optional && memcmp(first[k], x->got, x->room))
                why = "different bits without the optional outputs";
            if (turn) free(first[k]);
        }
    }
    if (why)
        complain(j, v, shift, why, j->n - 1, NULL);
    else
        passed++;
}

// Tests the operation whose gradient dx may overwrite the logits x: dx must have the same bits in the memory of x
// as in separate memory.
static void try_in_place(job* j, const kbk_variant* v, int shift) {
    side *x = &j->x[0], *dx = &j->x[j->n - 1];
    if (!is(v->op, "cross_entropy") || strcmp(dx->t.name, "dx") || sanitize || counting) return;
    kbk_args a;
    const char* why = NULL;
    char* to[2] = { dx->got, x->got };
    if (!take_workspace(j, v)) return;
    for (int turn = 0; turn < 2 && !why; turn++) {
        place(j, v, shift, &a);
        const void* from = turn ? a.in[0] : a.out[dx->slot];
        if (turn) a.out[dx->slot] = (void*)a.in[0];
        why = kbk_launch(v, j->dtype, &a, stream);
        if (why) break;
        CUDA(cudaMemcpyAsync(to[turn], from, dx->bytes, cudaMemcpyDeviceToHost, stream));
        CUDA(cudaStreamSynchronize(stream));
    }
    if (!why && memcmp(to[0], to[1], dx->bytes)) why = "dx has different bits if it overwrites x";
    if (why)
        complain(j, v, shift, why, j->n - 1, NULL);
    else
        passed++;
}

static kbk_shape shape(int64_t rows, int64_t cols) {
    kbk_shape s = {};
    s.batch = s.heads = 1, s.rows = rows, s.cols = cols;
    return s;
}
// --- shapes by family; small: the shapes for --sanitize
typedef struct {
    int64_t rows, cols, depth;
    int small;
} dims;
static const dims all_shapes[] = {
    { 1, 1, 1, 0 },     { 1, 2, 3, 0 },      { 1, 31, 5, 0 },    { 1, 33, 1, 0 },     { 3, 1, 7, 0 },
    { 5, 7, 2, 1 },     { 2, 64, 33, 0 },    { 33, 31, 17, 0 },  { 7, 129, 31, 0 },   { 65, 100, 100, 1 },
    { 4, 257, 32, 0 },  { 1, 1000, 3, 0 },   { 3, 1023, 4, 0 },  { 130, 96, 64, 0 },  { 2, 2053, 1, 1 },
    { 3, 4096, 2, 0 },  { 129, 1024, 8, 0 }, { 2, 8195, 1, 0 },  { 2, 16384, 1, 0 },  { 1, 32776, 1, 1 },
    { 2, 50257, 1, 0 }, { 1, 66000, 1, 0 },  { 70000, 3, 2, 0 }, { 1, 131077, 1, 0 }, { 128, 128, 128, 0 },
};
static const dims gemm_shapes[] = {
    { 1, 1, 0, 0 },       { 5, 3, 0, 0 },     { 256, 256, 256, 0 }, { 255, 129, 300, 0 },
    { 64, 512, 1000, 0 }, { 1, 4096, 64, 0 }, { 4096, 1, 33, 0 },   { 17, 1, 5000, 0 },
};
// row lengths that are multiples of the vector size, one for each kernel that launchers select by row length
// (kbki_plan_of)
static const dims pack_rows[] = {
    { 37, 32, 1, 0 },
    { 35, 64, 1, 0 },
    { 9, 256, 1, 0 },
    { 7, 512, 1, 0 },
    { 5, 2048, 1, 0 },
    { 3, 8192, 1, 0 },
    { 2, 32768, 1, 0 },
    { 2, 65536, 1, 0 },
    { 2, 160000, 1, 0 },
    // first rows so short that some warps have no elements; then many rows, for which kernels use fewer threads
    // per row
    { 5, 584, 1, 0 },
    { 600, 1800, 1, 0 },
    { 540, 2120, 1, 0 },
    { 600, 1024, 1, 0 },
    { 600, 400, 1, 0 },
    { 600, 130, 1, 0 },
    { 700, 5, 1, 0 },
};
static const dims many_tokens[] = { { 600, 64, 100, 0 } };
// row lengths that fill the last pipeline stage to different degrees, for the kernels of cross_entropy that are
// selected by row length
static const dims ring_rows[] = {
    { 2, 24000, 1, 0 }, { 2, 25200, 1, 0 },  { 2, 48000, 1, 0 },
    { 2, 88000, 1, 0 }, { 2, 100800, 1, 0 }, { 3, 200000, 1, 0 },
};
// Shapes for which `select` has different configurations on an H200: tiles of 128 x 128 to 128 x 256, in clusters along
// M or along N; the ping-pong schedule (9th and 10th shape); split-K (11th); up to 16 rows, which have kernels of their
// own in layout NT, with few to many columns; rows that are not 32-byte aligned; up to 32 and up to 64 rows.
static const dims wide_tiles[] = {
    { 224, 15120, 1024, 0 }, { 144, 6000, 1024, 0 }, { 528, 7488, 272, 0 },  { 528, 5040, 272, 0 },
    { 144, 11808, 528, 0 },  { 80, 17008, 528, 0 },  { 144, 6000, 80, 0 },   { 144, 19776, 16, 0 },
    { 80, 4288, 16, 0 },     { 144, 3776, 1024, 0 }, { 136, 264, 16384, 0 }, { 16, 1032, 1024, 0 },
    { 5, 6344, 1032, 0 },    { 16, 1544, 1032, 0 },  { 9, 3080, 1032, 0 },   { 392, 5544, 520, 0 },
    { 24, 1032, 520, 0 },    { 40, 1032, 520, 0 },
};
// Shapes for matmul in e4m3, whose rows of K are 16-byte aligned. The shapes cover tiles of 128 x 128, 256 x 128 and 64
// x 64, clusters that split K with tiles of 128 x 128 and 64 x 64, a last pipeline stage that is not full, and a C
// whose rows do not allow TMA stores.
static const dims byte_shapes[] = {
    { 200, 6040, 144, 0 }, { 132, 11456, 1488, 0 }, { 8, 4264, 11344, 0 }, { 68, 12697, 16, 0 }, { 130, 131, 272, 0 },
    { 17, 16, 5008, 0 },   { 136, 272, 8208, 0 },   { 64, 72, 16, 1 },     { 129, 144, 144, 1 }, { 5, 8, 1008, 0 },
};
static const dims zero_shapes[] = { { 0, 37, 3, 1 }, { 5, 0, 3, 1 }, { 5, 7, 0, 1 }, { 0, 0, 0, 1 } };
static const dims huge_shapes[] = { { 1, 4400003, 1, 0 } };
// for sum in 16 bits, on 132 SMs: one, two and four 16-byte vectors per thread
static const dims sum_shapes[] = { { 1, 500003, 1, 0 }, { 1, 1000003, 1, 0 }, { 1, 2000003, 1, 0 } };
// Row shapes that keep all SMs busy even if a kernel uses only one warp per row, or gives each thread many
// elements.
static const dims busy_rows[] = {
    { 4300, 512, 1, 0 }, { 2200, 1024, 1, 0 }, { 6400, 256, 1, 0 }, { 6400, 128, 1, 0 }, { 140, 8192, 1, 0 },
};
// Row shapes for kernels that process long rows. 16400 x 2056 has more rows than the SMs process at once, and for
// weighted_sum more data than L2 holds.
static const dims long_rows[] = { { 3, 300007, 1, 0 }, { 16400, 2056, 1, 0 } };
static const struct {
    int batch, heads, rows, cols, small;
} attention_shapes[] = {
    { 1, 1, 1, 64, 0 },
    { 1, 1, 1, 128, 0 },
    { 2, 3, 2, 64, 0 },
    { 1, 2, 33, 128, 0 },
    { 1, 2, 63, 64, 0 },
    { 2, 1, 64, 128, 0 },
    { 1, 2, 65, 128, 1 },
    { 1, 2, 65, 64, 1 },
    { 2, 3, 130, 64, 0 },
    { 1, 1, 200, 128, 0 },
    { 1, 2, 257, 64, 0 },
    { 1, 1, 511, 128, 0 },
    { 1, 1, 700, 64, 0 },
    // one head per SM of an H200: one CTA computes a head in one round; smaller CTAs would need two
    { 11, 12, 192, 128, 0 },
    { 11, 12, 256, 64, 0 },
};
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char* lacks(const kbk_variant* v, int dtype) {
    static char text[64];
    int sm = kbk_least_sm(v, dtype) & ~KBK_SM_EXACT;
#ifdef KBK_CUBLAS
    static kbki_cublas library;
    if (v->origin & KBK_VENDOR && !strcmp(v->name, "cublas")) {
        if (!library.opened) kbki_cublas_open(&library);
        if (!library.create) return "libcublas";
    }
#endif
    if (kbk_runs_on(v, dtype, capability))
        return kbki_needs_row(kbk_least_sm(v, dtype), v->origin) ? "code for a later compute capability" : NULL;
    snprintf(text, sizeof text, "compute capability %d.%d", sm / 10, sm % 10);
    return text;
}
static int wanted(const kbk_variant* v, const kbk_op* op, int dtype) {
    return v->op == op && v->launch[dtype] && !lacks(v, dtype) && !(only && strcmp(only, v->name));
}
static int fits(const kbk_op* op, int fill, int spoiled) {
    if (fill == BAD_IDS) return is(op, "cross_entropy") || op->family == KBK_LOOKUP || is(op, "gather");
    if (fill == MEAN1000) return op->family == KBK_ROWS || op->family == KBK_SUM;
    if (fill == OUTLIERS) return op->family == KBK_ROWS && spoiled == 0;
    if (fill == MASKS || fill == FAR)
        return spoiled == 0 && strcmp(op->dir, "bwd") && (is(op, "softmax") || is(op, "cross_entropy"));
    if (fill == INTEGERS) {
        bool bwd = !strcmp(op->dir, "bwd");
        return spoiled == 0 &&
               (op->family == KBK_GEMM || is(op, "sum") || is(op, "weighted_sum") || (bwd && is(op, "embedding")) ||
                (!bwd && is(op, "mse")) || (bwd && (is(op, "layernorm") || is(op, "rmsnorm"))));
    }
    if (fill == WHOLE_ROWS)
        return spoiled == 0 && (is(op, "cross_entropy") || (is(op, "softmax") && strcmp(op->dir, "bwd")));
    if (fill == DEAD_KEYS || fill == FAR_KEYS)
        return op->family == KBK_ATTN && strcmp(op->dir, "fwd") == 0 && spoiled == 0;
    return spoiled == 0 || fill == NANS || (fill == MINUS_INF && op->family == KBK_ATTN);
}
/* Known failures. Attention on tensor cores multiplies masked values by zero (in backward: q, k and do), so
   variants that use tensor cores are not tested with NaN and infinity in masked inputs. Variants that add many f32
   terms one by one to a much larger first term have a larger error than a tree reduction. */
static int cannot(const job* j, const kbk_variant* v) {
    bool one_by_one = !strcmp(v->name, "naive") || !strcmp(v->name, "matmul");
    if (j->fill == OUTLIERS && is(j->op, "weighted_sum") && !strcmp(j->op->dir, "fwd") && one_by_one) return 1;
    bool bwd = !strcmp(j->op->dir, "bwd"), zeros = v->origin & KBK_VENDOR || kbk_least_sm(v, j->dtype);
    return j->op->family == KBK_ATTN && zeros && j->s.causal && (bwd ? j->spoiled < 3 : j->spoiled == 2) &&
           (j->fill == NANS || j->fill == MINUS_INF);
}

// More than 10,000 columns take minutes under racecheck, and shorter rows test the same code.
static int too_slow(const job* j, const kbk_variant* v) {
    return sanitize && is(j->op, "weighted_sum") && !strcmp(v->name, "matmul") && j->s.cols > 10000;
}

static void run_fill(job* j, int first_shift, int shifts) {
    arena_at = arena;
    if (!prepare(j)) {
        skipped++, release(j);
        return;
    }
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        const kbk_variant* v = &kbk_table[i];
        if (!wanted(v, j->op, j->dtype) || cannot(j, v) || too_slow(j, v)) continue;
        for (int shift = first_shift; shift < first_shift + shifts; shift++)
            try_variant(j, v, shift, shift == 0 && j->fill == SEED1);
        for (int shift = first_shift; shift < first_shift + shifts && shift < 2; shift++) try_in_place(j, v, shift);
        if (j->fill == SEED1) try_graph(j, v), try_without_optional(j, v, 0), try_without_optional(j, v, 1);
    }
    release(j);
}
static void run_shape(const kbk_op* op, int dtype, kbk_shape s, int spoiled, int shape_index) {
    int64_t size = s.rows * s.cols * (op->family == KBK_ATTN ? s.batch * s.heads : 1);
    // a product's operands may be much larger than its result, so they count, too
    if (op->family == KBK_GEMM) size += (s.rows + s.cols) * s.k / 64;
    for (int fill = 0; fill < FILLS; fill++) {
        job j;
        memset(&j, 0, sizeof j);
        j.op = op, j.s = s, j.dtype = dtype, j.fill = fill, j.spoiled = spoiled;
        if (!fits(op, fill, spoiled)) continue;
        if (quick && fill != SEED1 && (fill + shape_index) % 3) continue;
        const int strided = memcmp(s.strides, kbk_shape().strides, sizeof s.strides) != 0;
        if (strided ? fill != SEED1 : strides) continue;
        if (size == 0 && fill != SEED1) continue;
        if ((sanitize || counting || faults || size > (quick ? 300000 : 900000)) && fill != SEED1) continue;
        if (!my_part()) continue;
        if (!sanitize)
            run_fill(&j, 0, (fill == SEED1 || fill == NANS) && size < (quick ? 300000 : 20000000) ? OFFSETS : 1);
        else
            for (j.shift = 0; j.shift < 3; j.shift++) run_fill(&j, j.shift, 1);
    }
}

// --- cases that kbk_launch rejects, and shapes with a size of 0
extern "C" {
extern long runtime_launches __attribute__((weak));
extern struct {
    void* to;
    int value;
    size_t bytes;
} runtime_memset __attribute__((weak));
}
static long launches() { return &runtime_launches ? runtime_launches : 0; }
static void expect(const kbk_variant* v, int dtype, int right, const char* what, const char* said) {
    if (right)
        passed++;
    else
        printf("FAIL: %s_%s/%s %s, %s: %s\n", v->op->name, v->op->dir, v->name, kbk_dtype_name(dtype), what,
               said ? said : "launched"),
            failed++;
}
static void expect_rejected(const kbk_variant* v, int dtype, const kbk_args* a, const char* words, const char* what) {
    const long before = launches();
    const char* why = kbk_launch(v, dtype, a, stream);
    expect(v, dtype, why && strstr(why, words) && launches() == before, what, why);
}
static kbk_args some_args(const kbk_variant* v, int dtype, const kbk_shape* s) {
    kbk_tensor t[KBK_MAX_TENSORS];
    kbk_args a = {};
    int ins = 0, outs = 0;
    a.s = *s, arena_at = arena;
    for (int k = 0, n = v->op->tensors(s, t); k < n; k++) {
        char* at = take((size_t)t[k].count * (size_t)kbk_kind_size(t[k].kind, dtype) + 256);
        if (t[k].role == KBK_IN)
            a.in[ins++] = at;
        else
            a.out[outs++] = at;
    }
    a.workspace_bytes = kbk_workspace(v, dtype, s), a.workspace = take(a.workspace_bytes);
    // writes zeros, because index 0 is valid for every tensor of indices
    CUDA(cudaMemsetAsync(arena, 0, (size_t)(arena_at - arena), stream));
    return a;
}
static kbk_shape usual_shape(const kbk_op* op) {
    kbk_shape s = shape(7, 1040);
    if (op->family == KBK_ATTN) s.cols = 64;
    // a product with few rows, for which matmul has specialised kernels
    if (op->family == KBK_GEMM) s.k = 1040, s.layout = KBK_NT;
    if (kbk_has_dimension(op->signature, 'V')) s.vocabulary = 9;
    return s;
}
static void run_nulls(const kbk_variant* v, int dtype) {
    kbk_tensor t[KBK_MAX_TENSORS];
    kbk_shape s = usual_shape(v->op);
    const kbk_args good = some_args(v, dtype, &s);
    const int n = v->op->tensors(&s, t);
    int ins = 0, outs = 0;
    for (int k = 0; k < n; k++) {
        kbk_args a = good;
        if (t[k].role == KBK_IN)
            a.in[ins++] = NULL;
        else
            a.out[outs++] = NULL;
        if (t[k].count && !t[k].optional) expect_rejected(v, dtype, &a, "is null", t[k].name);
    }
    expect_rejected(v, dtype, NULL, "null", "no arguments");
    if (good.workspace_bytes && v->op->units(&s) && !lacks(v, dtype)) {
        kbk_args a = good;
        a.workspace = NULL;
        expect_rejected(v, dtype, &a, "workspace", "no workspace");
        a = good, a.workspace_bytes--;
        expect_rejected(v, dtype, &a, "workspace", "a workspace that is too small");
    }
}
static void run_sizes(const kbk_variant* v, int dtype) {
    kbk_shape s = usual_shape(v->op);
    const kbk_args good = some_args(v, dtype, &s);
    kbk_args a;
#define NEGATIVE(size)                                              \
    a = good, a.s.size = -1;                                        \
    expect_rejected(v, dtype, &a, "negative", "a negative " #size); \
    a.s.size = INT64_MIN;                                           \
    expect_rejected(v, dtype, &a, "negative", "the lowest integer as " #size);
    KBK_SIZES(NEGATIVE)
    a = good;
    // rows * cols, computed in 64 bits, overflows and gives 2^46
    a.s.rows = (int64_t)1 << 40, a.s.cols = ((int64_t)1 << 40) + 64;
    expect_rejected(v, dtype, &a, "2^56", "a product of sizes that overflows");
    expect(v, dtype, kbk_workspace(v, dtype, &a.s) == 0, "the workspace of a shape whose size overflows", "not 0");
    // the product of the sizes is 2^64, which is 0 in 64 bits
    a.s.rows = a.s.cols = (int64_t)1 << 32;
    expect_rejected(v, dtype, &a, "2^56", "a product of sizes that overflows to 0");
    a = good;
    if (v->op->family == KBK_GEMM) {
        a.s.layout = 3;
        expect_rejected(v, dtype, &a, "layout", "a layout that does not exist");
        a.s.layout = -1;
        expect_rejected(v, dtype, &a, "layout", "a layout that does not exist");
    }
}
static void run_elsewhere(const kbk_variant* v, int dtype) {
    kbk_shape s = usual_shape(v->op);
    if (!kbki_needs_row(kbk_least_sm(v, dtype), v->origin)) return;
    for (int odd = 0; odd < 2; odd++) {
        s.rows += 100 * odd, s.k += odd && v->op->family == KBK_GEMM;
        const kbk_args a = some_args(v, dtype, &s);
        expect_rejected(v, dtype, &a, "comp", "code that was not compiled");
        const long before = launches();
        const char* why = v->launch[dtype](&a, stream);
        expect(v, dtype, why && launches() == before, "a direct call of code that was not compiled", why);
    }
}
/* Tests shapes in which a size is 0. If an output still has elements, such as sums over 0 rows, the output must
   match the oracle. Nothing else may be written. If the runtime is simulated and executes no launches, only the
   calls of the runtime are checked. */
static void run_zero(const kbk_variant* v, int dtype, const kbk_shape* s) {
    kbk_tensor t[KBK_MAX_TENSORS];
    const kbk_args a = some_args(v, dtype, s);
    const int n = v->op->tensors(s, t);
    int writes = 0;
    if (n && (t[0].place == KBK_ON_HOST || t[n - 1].place == KBK_ON_HOST) && s->rows && s->cols) return;
    for (int k = 0; k < n; k++)
        writes += t[k].role != KBK_IN && t[k].count > 0 && (v->op->units(s) > 0 || !t[k].per_unit);
    const long before = launches();
    if (&runtime_memset) runtime_memset.to = NULL;
    const char* why = kbk_launch(v, dtype, &a, stream);
    if (!why && cudaStreamSynchronize(stream) != cudaSuccess) why = "failed on the device";
    expect(v, dtype, !why, "a size of 0", why);
    if (why || !&runtime_launches || v->origin & KBK_ALLOCATES || v->op->family == KBK_MAP) return;
    const bool asked = launches() > before || runtime_memset.to;
    expect(v, dtype, asked == (writes > 0), "a size of 0", writes ? "wrote nothing" : "something was written");
}
static void run_zeros(const kbk_op* op, int dtype) {
    for (int i = 0; i < 16; i++) {
        kbk_shape s = usual_shape(op);
        if (i & 1) s.rows = 0;
        if (i & 2) s.cols = 0;
        if (i & 4) s.k = s.vocabulary = s.stride = s.among = 0;
        if (i & 8) s.batch = 0;
        for (int k = 0; k < KBK_VARIANT_COUNT; k++)
            if (wanted(&kbk_table[k], op, dtype)) run_zero(&kbk_table[k], dtype, &s);
    }
}
static void run_faults(const kbk_op* op, int dtype) {
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        const kbk_variant* v = &kbk_table[i];
        if (v->op != op || !v->launch[dtype] || (only && strcmp(only, v->name))) continue;
        run_nulls(v, dtype), run_sizes(v, dtype), run_elsewhere(v, dtype);
    }
    run_zeros(op, dtype);
    CUDA(cudaDeviceSynchronize());
}

static void run_no_rows(const kbk_op* op, int dtype) {
    enum { ROOM = 512 };
    static unsigned char got[KBK_MAX_TENSORS * ROOM];
    kbk_tensor t[KBK_MAX_TENSORS];
    kbk_shape s = shape(0, 37);
    s.k = s.vocabulary = s.stride = s.among = 3;
    int n = op->tensors(&s, t), sums = 0;
    for (int k = 0; k < n; k++) sums += t[k].role != KBK_IN && !t[k].per_unit;
    for (int i = 0; i < KBK_VARIANT_COUNT && sums; i++) {
        const kbk_variant* v = &kbk_table[i];
        kbk_args a = {};
        int ins = 0, outs = 0;
        if (!wanted(v, op, dtype)) continue;
        arena_at = arena, a.s = s, a.workspace_bytes = kbk_workspace(v, dtype, &s),
        a.workspace = take(a.workspace_bytes);
        CUDA(cudaMemsetAsync(arena, 0xFF, (size_t)(arena_at - arena), stream));
        char* from = arena_at;
        for (int k = 0; k < n; k++)
            if (t[k].role == KBK_IN)
                a.in[ins++] = take(ROOM);
            else
                a.out[outs++] = take(ROOM);
        CUDA(cudaMemsetAsync(from, 0xFF, (size_t)(arena_at - from), stream));
        const char* why = kbk_launch(v, dtype, &a, stream);
        CUDA(cudaMemcpyAsync(got, from, (size_t)(arena_at - from), cudaMemcpyDeviceToHost, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int k = 0; k < n && !why && !counting; k++) {
            int64_t bytes = t[k].count * kbk_kind_size(t[k].kind, dtype);
            for (int64_t b = 0; b < ROOM && !why; b++)
                if (got[k * ROOM + b] != (t[k].role != KBK_IN && b < bytes ? 0 : 0xFF))
                    why = "sums over 0 rows are not 0";
        }
        if (why)
            printf("FAIL: %s_%s/%s %s, 0 x 37: %s\n", op->name, op->dir, v->name, kbk_dtype_name(dtype), why),
                failed++;
        else
            passed++;
    }
}

// --- more than 2^31 elements: a periodic input; the oracle computes sampled units from copies of their inputs
// only
static void large_tensor(const kbk_tensor* t, int dtype, char* dev, char* block, size_t period) {
    size_t bytes = (size_t)t->count * kbk_kind_size(t->kind, dtype);
    for (size_t at = 0; at < bytes; at += period)
        CUDA(cudaMemcpyAsync(dev + at, block, bytes - at < period ? bytes - at : period, cudaMemcpyHostToDevice,
                             stream));
    CUDA(cudaStreamSynchronize(stream));
}
static void large_oracle(const kbk_op* op, int dtype, const kbk_shape* s, const kbk_tensor* t, int n, char** dev,
                         int64_t u, double** out) {
    // `in` holds only unit u, but op->ref indexes complete tensors: the pointers are shifted back by the offset of
    // unit u.
    double* in[8] = {};
    const double* whole[8] = {};
    int ins = 0, outs = 0;
    for (int k = 0; k < n; k++) {
        int64_t per = t[k].per_unit;
        size_t size = (size_t)kbk_kind_size(t[k].kind, dtype);
        if (t[k].role != KBK_IN) {
            out[outs] = per ? (double*)malloc((size_t)per * 8) : NULL;
            out[KBK_OUTS + outs++] = per && t[k].scales ? (double*)malloc((size_t)t[k].scales * 8) : NULL;
            continue;
        }
        int64_t first = per ? u * per : 0, count = per ? per : t[k].count;
        char* raw = (char*)malloc((size_t)count * size);
        CUDA(cudaMemcpy(raw, dev[k] + (size_t)first * size, (size_t)count * size, cudaMemcpyDeviceToHost));
        in[ins] = (double*)malloc((size_t)count * 8);
        kbk_widen(t[k].kind, dtype, raw, in[ins], count);
        whole[ins] = (const double*)((uintptr_t)in[ins] - (uintptr_t)first * 8), ins++;
        free(raw);
    }
    op->ref(s, kbk_dtype_size(dtype), whole, out, u, u + 1);
    for (int k = 0; k < ins; k++) free(in[k]);
}
static int large_right(const kbk_op* op, int dtype, const kbk_shape* s, const kbk_tensor* t, int n, char** dev,
                       int64_t u, double** oracle, kbk_report* r) {
    int right = 1;
    for (int k = 0, o = 0; k < n && right; k++) {
        if (t[k].role == KBK_IN) continue;
        size_t bytes = (size_t)t[k].per_unit * (size_t)kbk_kind_size(t[k].kind, dtype);
        if (oracle[o]) {
            char* got = (char*)malloc(bytes);
            CUDA(cudaMemcpy(got, dev[k] + (size_t)u * bytes, bytes, cudaMemcpyDeviceToHost));
            right = kbk_verify(op, dtype, s, o, got, oracle, u, u + 1, r);
            free(got);
        }
        o++;
    }
    return right;
}
// A sum over periodic inputs is the sum of a period times the number of periods, plus the sum of the remainder.
static void large_sum(const kbk_op* op, const kbk_shape* s, double* const* in, int64_t period, double** out) {
    int64_t n = s->rows * s->cols, parts[2] = { period, n % period }, times[2] = { n / period, 1 };
    for (int k = 0; k < 2; k++) out[k * KBK_OUTS] = (double*)calloc(1, 8);
    for (int i = 0; i < 2; i++) {
        double value = 0, scale = 0, *part[2 * KBK_OUTS] = {};
        kbk_shape of = *s;
        of.rows = 1, of.cols = parts[i];
        part[0] = &value, part[KBK_OUTS] = &scale;
        op->ref(&of, kbk_dtype_size(KBK_BF16), (const double* const*)in, part, 0, 1);
        double weight = (double)times[i] * (is(op, "mse") ? (double)parts[i] / (double)n : 1); // a mean, or a sum
        out[0][0] += weight * value, out[KBK_OUTS][0] += weight * scale;
    }
}
static int by_samples(const kbk_op* op, const kbk_tensor* t, int n) {
    int outputs = 0;
    if (op->family == KBK_SUM) return is(op, "sum") || is(op, "mse");
    if (op->family != KBK_MAP && op->family != KBK_ROWS) return 0;
    for (int k = 0; k < n; k++) {
        if (t[k].place != KBK_ON_DEVICE) return 0;
        if (t[k].role == KBK_IN && !t[k].per_unit && t[k].count > 1 << 24) return 0;
        outputs += t[k].role != KBK_IN && t[k].per_unit;
    }
    return n > 1 && outputs;
}
static void run_large(const kbk_op* op) {
    enum { PERIOD = 40009 * 256 }; // period of the inputs in bytes; no row size is a multiple of the period
    const int dtype = KBK_BF16;
    kbk_tensor t[KBK_MAX_TENSORS];
    kbk_shape s = shape(65537, 32771);
    s.p = 0.1, s.seed = 42;
    char *dev[KBK_MAX_TENSORS] = {}, *block, *work = NULL;
    double* period[KBK_MAX_TENSORS] = {};
    int n = op->tensors(&s, t), enough = 1, periods = 0;
    if (!by_samples(op, t, n)) return;
    block = (char*)malloc(PERIOD);
    double* x = (double*)malloc(PERIOD * 8);
    for (int k = 0; k < n; k++) {
        size_t size = (size_t)kbk_kind_size(t[k].kind, dtype), bytes = (size_t)t[k].count * size;
        enough = enough && cudaMalloc((void**)&dev[k], bytes) == cudaSuccess;
        if (!enough) continue;
        if (t[k].role != KBK_IN) continue;
        kbk_fill(&t[k], k, dtype, 42, 0, PERIOD / (int64_t)size, x);
        kbk_narrow(t[k].kind, dtype, x, block, PERIOD / (int64_t)size);
        if (op->family == KBK_SUM) {
            period[periods] = (double*)malloc(PERIOD / size * 8);
            kbk_widen(t[k].kind, dtype, block, period[periods++], PERIOD / (int64_t)size);
        }
        large_tensor(&t[k], dtype, dev[k], block, PERIOD);
    }
    int64_t units = op->units(&s);
    int64_t sample[9] = {
        0, 1, units / 7, units / 3, units / 2, units - 70000 % units, (int64_t)1 << 31, units - 2, units - 1
    };
    double* oracle[9][2 * KBK_OUTS] = {};
    for (int i = 0; i < 9; i++) {
        bool wanted_unit = enough && sample[i] >= 0 && sample[i] < units;
        for (int k = 0; k < i; k++) wanted_unit = wanted_unit && sample[k] != sample[i];
        if (wanted_unit && op->family == KBK_SUM)
            large_sum(op, &s, period, PERIOD / kbk_dtype_size(dtype), oracle[i]);
        else if (wanted_unit)
            large_oracle(op, dtype, &s, t, n, dev, sample[i], oracle[i]);
        else
            sample[i] = -1;
    }
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        const kbk_variant* v = &kbk_table[i];
        kbk_args a = {};
        kbk_report r = {};
        int ins = 0, outs = 0, right = 1, at = 0;
        if (!enough || !wanted(v, op, dtype)) continue;
        a.s = s, a.workspace_bytes = kbk_workspace(v, dtype, &s);
        if (a.workspace_bytes && cudaMalloc((void**)&work, a.workspace_bytes) != cudaSuccess) {
            cudaGetLastError(), skipped++;
            continue;
        }
        a.workspace = work;
        if (work) CUDA(cudaMemsetAsync(work, 0xFF, KBK_TICKETS, stream));
        for (int k = 0; k < n; k++) {
            size_t bytes = (size_t)t[k].count * kbk_kind_size(t[k].kind, dtype);
            if (t[k].role == KBK_IN)
                a.in[ins++] = dev[k];
            else
                CUDA(cudaMemsetAsync(a.out[outs++] = dev[k], 0xFF, bytes, stream));
        }
        const char* why = kbk_launch(v, dtype, &a, stream);
        CUDA(cudaStreamSynchronize(stream));
        for (; at < 9 && !why && right; at++)
            if (sample[at] >= 0) right = large_right(op, dtype, &s, t, n, dev, sample[at], oracle[at], &r);
        if (why || !right) {
            printf("FAIL: %s_%s/%s bf16, more than 2^31 elements: ", op->name, op->dir, v->name), failed++;
            if (why)
                printf("%s\n", why);
            else
                printf("unit %lld: %s (element %lld: %.9g, oracle %.9g)\n", (long long)sample[at - 1], r.why,
                       (long long)r.index, r.got, r.want);
        } else
            passed++;
        if (work) CUDA(cudaFree(work));
        work = NULL;
    }
    if (!enough) cudaGetLastError(), skipped++, printf("SKIP: %s_%s, large: not enough memory\n", op->name, op->dir);
    for (int k = 0; k < n; k++) CUDA(cudaFree(dev[k]));
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 2 * KBK_OUTS; k++) free(oracle[i][k]);
    for (int k = 0; k < periods; k++) free(period[k]);
    free(block), free(x);
}

// Simulates a GPU with 99 KiB of shared memory per CTA, for which flashmma backward with d = 128 has another
// configuration. A variant that has no configuration for 99 KiB must return an error.
static void run_smaller_gpu(const kbk_op* op, int dtype) {
    const cudaDeviceAttr most = cudaDevAttrMaxSharedMemoryPerBlockOptin;
    const kbk_variant* v = kbk_find(op->name, op->dir, "flashmma");
    const char* option = only;
    kbki_fact* room = kbki_fact_of(NULL, KBKI_ATTRIBUTE, 0, 0, (size_t)most);
    int was = kbki_attribute(most) + 1; // kbki_attribute caches the value plus 1
    if (counting || !wanted(v, op, dtype) || !room) return;
    only = v->name;
    for (int i = 0; i < 4; i++) {
        kbk_shape s = shape(i / 2 ? 65 : 300, 128);
        s.heads = 2, s.causal = i % 2;
        if (sanitize && s.rows == 300) continue;
        room->value = 99 * 1024 + 1, run_shape(op, dtype, s, 0, 0);
    }
    room->value = was, only = option;
    if (!my_part()) return;
    const kbk_shape s = shape(64, 128);
    const kbk_args a = some_args(v, dtype, &s);
    room->value = 64 * 1024 + 1;
    const char* why = kbk_launch(v, dtype, &a, stream);
    room->value = was;
    if (why && strstr(why, "shared memory"))
        passed++;
    else
        printf("FAIL: %s_%s/%s on an SM with 64 KiB: %s\n", op->name, op->dir, v->name, why ? why : "launched"),
            failed++;
}
// Chooses strides for the tensors that may have strides: longer rows, which are 16-byte aligned or not; a gap between
// matrices; or rows that are followed by rows of other matrices, as in a packed tensor of q, k and v.
static kbk_shape with_strides(const kbk_op* op, kbk_shape s, int index) {
    kbk_tensor t[KBK_MAX_TENSORS];
    for (int i = 0, n = op->tensors(&s, t); i < n; i++) {
        const kbk_layout l = kbk_layout_of(op, &s, i);
        // q, k and v have equal strides in two of three cases
        const int how = (index + 2 * (op->family == KBK_ATTN && index % 3 ? i / 3 : i)) % 5;
        int64_t* to = s.strides[i];
        if (l.dims < 2 || how == 2) continue;
        to[0] = how == 0 ? (l.size[0] + 15) / 8 * 8 : l.size[0] + (how == 1 ? 1 : 64);
        if (how == 3 && l.dims > 2) to[0] = (l.dims > 3 ? 3 : 1) * l.size[0] * l.size[2], to[1] = l.size[0];
        if (how == 3 && l.dims > 3) to[2] = l.size[1] * to[0];
        if (how == 4 && l.dims > 2) to[1] = l.size[1] * to[0] + 8;
    }
    return s;
}
static void run_attention(const kbk_op* op, int dtype) {
    const int packed = 13; // with_strides: q, k and v in one tensor, with 16-byte alignment, as flashpp requires
    int inputs = strcmp(op->dir, "fwd") ? 6 : 3;
    for (int i = 0; i < 2 * COUNT(attention_shapes); i++) {
        kbk_shape s = shape(attention_shapes[i / 2].rows, attention_shapes[i / 2].cols);
        s.batch = attention_shapes[i / 2].batch, s.heads = attention_shapes[i / 2].heads, s.causal = i % 2;
        const bool heads = s.batch * s.heads > 100;
        if (quick && !heads && (i / 2 % 3 == 0 || i / 2 > 8)) continue;
        if (heads && (strcmp(op->dir, "fwd") || dtype == KBK_F32)) continue; // flashpp's
        if ((sanitize || faults) && !attention_shapes[i / 2].small) continue;
        // the oracle: S^2
        for (int spoiled = 0; spoiled < (s.rows > 260 || heads || faults ? 1 : inputs); spoiled++)
            run_shape(op, dtype, s, spoiled, i / 2);
        if (strchr(op->signature, '|')) run_shape(op, dtype, with_strides(op, s, heads ? packed : i), 0, i / 2);
    }
    if (dtype != KBK_F32) run_smaller_gpu(op, dtype);
    if (!my_part()) return;
    const kbk_shape s = shape(4, 96);
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        if (!wanted(&kbk_table[i], op, dtype)) continue;
        const kbk_args a = some_args(&kbk_table[i], dtype, &s);
        if (kbk_launch(&kbk_table[i], dtype, &a, stream))
            passed++;
        else
            printf("FAIL: %s_%s/%s took d = 96\n", op->name, op->dir, kbk_table[i].name), failed++;
    }
}
static void run_dims(const kbk_op* op, int dtype, dims d, int index) {
    int gemm = op->family == KBK_GEMM, pick = op->family == KBK_PICK, layouts = gemm ? 3 : pick ? 2 : 1;
    kbk_shape s = shape(d.rows, d.cols);
    if (sanitize && !d.small) return;
    if (kbk_has_dimension(op->signature, 'Z')) s.batch = 3;
    if (kbk_has_dimension(op->signature, 'H')) s.heads = 3;
    if (is(op, "bmm") && s.rows * s.cols > 60000) return;
    if (kbk_has_dimension(op->signature, 'K')) s.k = d.depth;
    if (kbk_has_dimension(op->signature, 'X')) s.stride = d.depth;
    if (kbk_has_dimension(op->signature, 'A')) s.among = d.depth;
    if (kbk_has_dimension(op->signature, 'V')) s.vocabulary = d.depth;
    static const double p[4] = { 0.1, 0, 0.5, 1 };
    if (kbk_has_option(op->signature, "p")) s.p = p[index % 4], s.seed = 42 + (uint64_t)index;
    kbk_tensor t[KBK_MAX_TENSORS];
    for (s.layout = 0; s.layout < layouts; s.layout++) {
        s.sequential = pick && s.layout;
        int n = op->tensors(&s, t), spoiled = 0;
        if (gemm && !kbk_has_option(op->signature, "layout") && s.layout != KBK_NT && index > 5) continue;
        for (int k = 0; k < n; k++) {
            if (t[k].role != KBK_IN) continue;
            if (spoiled == 0 || !kbk_kind_whole(t[k].kind)) run_shape(op, dtype, s, spoiled, index);
            spoiled++;
        }
        if (!spoiled) run_shape(op, dtype, s, 0, index);
        if (strchr(op->signature, '|')) run_shape(op, dtype, with_strides(op, s, index), 0, index);
    }
}
static void run_op(const kbk_op* op) {
    int family = op->family, index = 0;
    for (int dtype = 0; dtype < KBK_DTYPES; dtype++) {
        int any = 0;
        for (int i = 0; i < KBK_VARIANT_COUNT; i++) any |= kbk_table[i].op == op && kbk_table[i].launch[dtype];
        if (!any) continue;
        if (my_part()) run_faults(op, dtype), run_no_rows(op, dtype);
        for (int i = 0; i < COUNT(zero_shapes) && family != KBK_ATTN; i++) run_dims(op, dtype, zero_shapes[i], i);
        if (family == KBK_ATTN) {
            run_attention(op, dtype);
            continue;
        }
        if (faults) {
            run_dims(op, dtype, all_shapes[9], 0); // 65 x 100 x 100: rows that do not start on 16 bytes
            continue;
        }
        for (int i = index = 0; i < COUNT(all_shapes); i++, index++)
            if (!quick || i % 3 != 2) run_dims(op, dtype, all_shapes[i], index);
        for (int i = 0; i < COUNT(gemm_shapes) && (family == KBK_GEMM || family == KBK_LOOKUP); i++)
            run_dims(op, dtype, gemm_shapes[i], index++);
        for (int i = 0; i < COUNT(huge_shapes) && (family == KBK_MAP || family == KBK_SUM || family == KBK_PICK); i++)
            if (!quick) run_dims(op, dtype, huge_shapes[i], index++);
        for (int i = 0; i < COUNT(sum_shapes) && family == KBK_SUM; i++)
            if (!quick || i == 1) run_dims(op, dtype, sum_shapes[i], index++);
        if (!quick && family == KBK_ROWS) run_dims(op, dtype, long_rows[0], index++);
        for (int i = 0; i < COUNT(busy_rows) && family == KBK_ROWS; i++)
            if (!quick) run_dims(op, dtype, busy_rows[i], index++);
        for (int i = 0; i < COUNT(pack_rows) && family == KBK_ROWS; i++)
            if (!quick || i % 3 != 1) run_dims(op, dtype, pack_rows[i], index++);
        if (family == KBK_LOOKUP) run_dims(op, dtype, many_tokens[0], index++);
        for (int i = 0; i < COUNT(ring_rows) && is(op, "cross_entropy"); i++)
            if (!quick) run_dims(op, dtype, ring_rows[i], index++);
        for (int i = 0; i < COUNT(wide_tiles) && is(op, "matmul"); i++)
            if (!quick || i) run_dims(op, dtype, wide_tiles[i], index++);
        for (int i = 0; i < COUNT(byte_shapes) && is(op, "matmul_e4m3"); i++)
            if (!quick || i % 3) run_dims(op, dtype, byte_shapes[i], index++);
        if (!quick && is(op, "weighted_sum")) run_dims(op, dtype, long_rows[1], index++);
    }
}
static void skip_others(const char* op) {
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        const kbk_variant* v = &kbk_table[i];
        if ((op && !is(v->op, op)) || (only && strcmp(only, v->name))) continue;
        for (int dtype = 0; dtype < KBK_DTYPES; dtype++)
            if (v->launch[dtype] && lacks(v, dtype)) {
                printf("SKIP: %s_%s/%s needs %s\n", v->op->name, v->op->dir, v->name, lacks(v, dtype)), skipped++;
                break;
            }
    }
}

static void say_through(int op, int more_passed, int more_failed) {
    auto* all = &shared->ops[op];
#ifndef _WIN32
    __atomic_fetch_add(&all->passed, more_passed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&all->failed, more_failed, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&all->through, 1, __ATOMIC_ACQ_REL) < jobs) return;
#else
    all->passed = more_passed, all->failed = more_failed;
#endif
    if (counting) return;
    fprintf(stderr, "%s_%s: %d passed, %d failed\n", kbk_ops[op].name, kbk_ops[op].dir, all->passed, all->failed);
}

static int run_all(const char* op) {
    int devices = 0, major = 0, minor = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        if (job_index == 0) printf("no GPU: the kernels were compiled and not run\n");
        skipped = job_index == 0 ? KBK_VARIANT_COUNT : 0;
        return 77;
    }
    size_t room = (size_t)512 << 20, left = 0, total = 0;
    cudaError_t e = cudaMemGetInfo(&left, &total);
    if (!quick && !sanitize && !faults && e == cudaSuccess && (double)total > 15e9 * jobs) large = 1;
    while ((e = cudaMalloc((void**)&arena, room)) != cudaSuccess && room > 1 << 24) cudaGetLastError(), room /= 2;
    cuda(e, "cudaMalloc");
    arena_end = arena + room;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
    capability = 10 * major + minor;
    if (job_index == 0) skip_others(op);
    for (int i = 0; i < KBK_OP_COUNT; i++) {
        const int before = passed, failures = failed;
        if (op && !is(&kbk_ops[i], op)) continue;
        run_op(&kbk_ops[i]);
        if (large && my_part()) run_large(&kbk_ops[i]);
        say_through(i, passed - before, failed - failures);
    }
    CUDA(cudaDeviceSynchronize());
    return failed != 0;
}

#ifndef _WIN32
// The jobs are processes, not threads, so that each has its own stream, memory and counters. They start before
// CUDA is initialised.
static int run_jobs(const char* op) {
    int pipes[2], counts[3], code = 0, status = 0, ended = 0;
    shared = (account*)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(pipes)) return 1;
    fflush(stdout);
    for (job_index = 0; job_index < jobs; job_index++)
        if (fork() == 0) {
            code = run_all(op);
            fflush(stdout);
            counts[0] = passed, counts[1] = failed, counts[2] = skipped;
            _exit(write(pipes[1], counts, sizeof counts) == sizeof counts ? code : 1);
        }
    close(pipes[1]);
    for (; read(pipes[0], counts, sizeof counts) == sizeof counts; ended++)
        passed += counts[0], failed += counts[1], skipped += counts[2];
    while (wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status)) code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (ended < jobs) printf("FAIL: %d of %d jobs ended early\n", jobs - ended, jobs), failed += jobs - ended;
    return failed ? 1 : code;
}
#endif

int main(int argc, char** argv) {
    // line-buffered, so that an interrupted run has printed the operations that it finished
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    const char* op = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick"))
            quick = 1;
        else if (!strcmp(argv[i], "--large"))
            large = 1;
        else if (!strcmp(argv[i], "--sanitize"))
            sanitize = 1;
        else if (!strcmp(argv[i], "--faults"))
            faults = 1;
        else if (!strcmp(argv[i], "--strides"))
            strides = 1;
        else if (!strcmp(argv[i], "--count"))
            counting = jobs = 1;
        else if (!strcmp(argv[i], "--jobs") && i + 1 < argc)
            jobs = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--op") && i + 1 < argc)
            op = argv[++i];
        else if (!strcmp(argv[i], "--variant") && i + 1 < argc)
            only = argv[++i];
        else
            return printf("usage: %s [--op NAME] [--variant NAME] [--quick] [--large] [--sanitize] "
                          "[--strides] [--faults] [--count] [--jobs N]\n",
                          argv[0]),
                   2;
    }
#ifndef _WIN32
    int half = (int)sysconf(_SC_NPROCESSORS_ONLN) / 2;
    int most = sanitize ? 4 : 8;
    if (jobs < 1) jobs = half < 1 ? 1 : half > most ? most : half;
    int code = jobs > 1 ? run_jobs(op) : run_all(op);
#else
    int code = (jobs = 1, run_all(op));
#endif
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return code;
}
