/* What it proves: every variant in the table of kbench_kernels.cuh, for every element type, gives what its
   oracle gives: on odd shapes, misaligned addresses, three seeds, and inputs with NaN, infinities and large
   means; that it writes its outputs whole and nothing else, leaves its inputs alone, can be captured into a
   graph, and repeats itself bit for bit.

   nvcc -std=c++17 -O2 -I. tests/gpu/kernels.cu -o kernels && ./kernels [--op NAME] [--variant NAME] [--quick]
   [--large] (with the vendor's rows: -DKBK_CUBLAS, and -ldl on an old glibc)

   Prints a line per failing combination; exit code 0, 1 after failures, 77 without a GPU. */
#include "kbench_kernels.cuh"
#include <stdio.h>
#include <stdlib.h>

static int passed, failed, skipped;

static void cuda(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    printf("FAILED %s: %s\n%d passed, %d failed, %d skipped\n", what, cudaGetErrorString(e), passed,
           failed + 1, skipped);
    exit(1);
}
#define CUDA(call) cuda((call), #call)

// --- inputs: what they are filled with
enum { SEED1, SEED2, SEED3, LOGITS80, MINUS_INF, NANS, MEAN1000, BAD_IDS, FILLS };
static const char* const fill_name[FILLS] = {"seed 1", "seed 2",   "seed 3",    "+-80",
                                             "-inf",   "nan, inf", "mean 1000", "ids"};
// --- addresses: elements by which inputs and outputs are off a 256-byte boundary
static const int offsets[][2] = {{0, 0}, {1, 1}, {1, 0}, {0, 3}, {5, 13}};
enum { OFFSETS = sizeof offsets / sizeof offsets[0], GUARD = 4096 };

typedef struct {
    kbk_tensor t;
    int slot;        // index among inputs, or among outputs
    double* values;  // host: inputs as the oracle sees them; outputs as it wants them
    double* scales;  // host: magnitudes of an output
    char *raw, *got; // host: the bytes of an input; what came back
    char* dev;       // device: guard, alignment, tensor, guard
    size_t bytes, room;
} side;

typedef struct {
    const kbk_op* op;
    kbk_shape s;
    int dtype, fill, n;
    side x[KBK_MAX_TENSORS];
    const double* in[8];
    double* out[2 * KBK_OUTS];
    int64_t units;
    char* work;
    size_t work_bytes;
} job;

static char *arena, *arena_end, *arena_at; // device memory, handed out from the front
static cudaStream_t stream;

static char* take(size_t bytes) {
    char* p = arena_at;
    arena_at += (bytes + 255) / 256 * 256;
    return arena_at <= arena_end ? p : NULL;
}

static void spoil(job* j, int fill) {
    for (int k = 0; k < j->n; k++) {
        side* x = &j->x[k];
        int64_t n = x->t.count, row = j->s.cols;
        if (x->t.role != KBK_IN) continue;
        if (x->t.kind >= KBK_KI32) {
            static const double bad[5] = {KBK_IGNORE, -1, 1e9, -2147483648.0, 0};
            for (int64_t i = 0; fill == BAD_IDS && i < n; i++)
                if (i % 2 == 0) x->values[i] = i % 20 == 8 ? x->t.b : bad[i / 2 % 5];
            continue;
        }
        if (x->t.kind != KBK_T || x->slot > 0) continue;
        for (int64_t i = 0; i < n; i++) {
            double* v = &x->values[i];
            if (fill == LOGITS80) *v = *v > 0 ? 80 : *v > -1 ? -80 : *v;
            if (fill == MEAN1000) *v += 1000;
            // row 0 all -inf; of row 1 the first part; of the others every third
            if (fill == MINUS_INF && (i < row || (i < 2 * row ? i - row < row / 2 : i % 3 == 0)))
                *v = -HUGE_VAL;
            if (fill == NANS && i % 1031 == 3) *v = kbki_from_bits(0x7FF8ull << 48);
            if (fill == NANS && i % 4099 == 5) *v = i & 1 ? HUGE_VAL : -HUGE_VAL;
        }
    }
}

// Inputs, oracle and buffers for one (operation, type, shape, fill). Returns 0 if it does not fit.
static int prepare(job* j) {
    int ins = 0, outs = 0, big_enough = 1;
    kbk_tensor t[KBK_MAX_TENSORS];
    memset(j->x, 0, sizeof j->x), memset(j->out, 0, sizeof j->out), memset(j->in, 0, sizeof j->in);
    j->s.elem = kbk_dtype_size(j->dtype);
    j->n = j->op->tensors(&j->s, t), j->units = j->op->units(&j->s);
    for (int k = 0; k < j->n; k++) {
        side* x = &j->x[k];
        x->t = t[k];
        x->slot = x->t.role == KBK_IN ? ins++ : outs++;
        x->bytes = (size_t)x->t.count * kbk_kind_size(x->t.kind, j->dtype);
        x->room = x->bytes + 2 * GUARD + 256;
        x->values = (double*)calloc((size_t)x->t.count + 1, sizeof(double));
        x->scales = (double*)calloc((size_t)(x->t.scales * j->units) + 1, sizeof(double));
        x->raw = (char*)malloc(x->bytes + 1), x->got = (char*)malloc(x->room);
        big_enough &= (x->dev = take(x->room)) != NULL;
        if (x->t.role != KBK_IN) {
            j->out[x->slot] = x->values;
            j->out[KBK_OUTS + x->slot] = x->t.scales ? x->scales : NULL;
            continue;
        }
        uint64_t seed = j->fill <= SEED3 ? 42 + (uint64_t)j->fill : 42;
        kbk_fill(&x->t, x->slot, j->dtype, seed, 0, x->t.count, x->values);
        j->in[x->slot] = x->values;
    }
    spoil(j, j->fill);
    for (int k = 0; k < j->n; k++)
        if (j->x[k].t.role == KBK_IN) {
            side* x = &j->x[k];
            kbk_narrow(x->t.kind, j->dtype, x->values, x->raw, x->t.count);
            kbk_widen(x->t.kind, j->dtype, x->raw, x->values, x->t.count);
        }
    j->op->ref(&j->s, j->in, j->out, 0, j->units);
    return big_enough;
}
static void release(job* j) {
    for (int k = 0; k < j->n; k++)
        free(j->x[k].values), free(j->x[k].scales), free(j->x[k].raw), free(j->x[k].got);
}

static char* address(const job* j, const side* x, int shift) {
    int size = kbk_kind_size(x->t.kind, j->dtype);
    return x->dev + GUARD + size * offsets[shift][x->t.role == KBK_IN ? 0 : 1];
}
static void place(job* j, int shift, kbk_args* a) {
    memset(a, 0, sizeof *a);
    a->s = j->s, a->seed = 42, a->workspace = j->work, a->workspace_bytes = j->work_bytes;
    for (int k = 0; k < j->n; k++) {
        side* x = &j->x[k];
        char* at = address(j, x, shift);
        CUDA(cudaMemsetAsync(x->dev, 0xFF, x->room, stream));
        if (x->t.role == KBK_IN) CUDA(cudaMemcpyAsync(at, x->raw, x->bytes, cudaMemcpyHostToDevice, stream));
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

// Brings everything back; NULL or what is wrong. Fills the report of the first wrong output.
static const char* inspect(job* j, int shift, kbk_report* r, int* which) {
    static char guard[GUARD];
    const char* why = NULL;
    memset(r, 0, sizeof *r);
    r->index = -1, *which = 0;
    for (int k = 0; k < j->n; k++)
        CUDA(cudaMemcpyAsync(j->x[k].got, j->x[k].dev, j->x[k].room, cudaMemcpyDeviceToHost, stream));
    if (j->work_bytes)
        CUDA(cudaMemcpyAsync(guard, j->work + j->work_bytes, GUARD, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (j->work_bytes && intact(guard, GUARD)) return "wrote past its workspace";
    for (int k = 0; k < j->n && !why; k++) {
        side* x = &j->x[k];
        size_t front = (size_t)(address(j, x, shift) - x->dev);
        *which = k;
        why = intact(x->got, front);
        if (!why) why = intact(x->got + front + x->bytes, x->room - front - x->bytes);
        if (why) break;
        if (x->t.role == KBK_IN)
            why = memcmp(x->got + front, x->raw, x->bytes) ? "changed its input" : NULL;
        else if (x->t.count)
            kbk_verify(j->op, j->dtype, &j->s, x->slot, x->got + front, j->out, 0, j->units, r), why = r->why;
    }
    return why;
}

static void complain(const job* j, const kbk_variant* v, int shift, const char* why, int which,
                     const kbk_report* r) {
    failed++;
    printf("FAILED %s_%s/%s %s, %lld x %lld", v->op->name, v->op->dir, v->name, kbk_dtype_name(j->dtype),
           (long long)j->s.rows, (long long)j->s.cols);
    if (j->s.depth) printf(" x %lld layout %d", (long long)j->s.depth, j->s.layout);
    printf(", %s, offsets %d and %d: %s", fill_name[j->fill], offsets[shift][0], offsets[shift][1], why);
    if (r && r->index >= 0)
        printf(" (%s[%lld] = %.9g, oracle %.9g, allowed %.3g; %lld bad; norm %.3g of %.3g)",
               j->x[which].t.name, (long long)r->index, r->got, r->want, r->bound, (long long)r->bad, r->norm,
               r->norm_bound);
    printf("\n");
}

// One variant on one prepared job at one pair of offsets: launched directly, and once more to compare bits.
static void try_variant(job* j, const kbk_variant* v, int shift, int twice) {
    kbk_args a;
    kbk_report r;
    int which = 0;
    j->work_bytes = kbk_workspace(v, &j->s);
    char* mark = arena_at;
    j->work = j->work_bytes ? take(j->work_bytes + GUARD) : NULL;
    arena_at = mark;
    if (j->work_bytes && !j->work) {
        skipped++;
        return;
    }
    place(j, shift, &a);
    const char* why = kbk_launch(v, j->dtype, &a, stream);
    if (!why)
        why = inspect(j, shift, &r, &which);
    else
        r.index = -1;
    if (why) {
        complain(j, v, shift, why, which, &r);
        return;
    }
    passed++;
    if (!twice || v->origin & KBK_UNORDERED) return;
    // Again, over its own outputs and its own workspace as the first launch left them.
    char* first[KBK_MAX_TENSORS];
    for (int k = 0; k < j->n; k++)
        first[k] = (char*)malloc(j->x[k].room), memcpy(first[k], j->x[k].got, j->x[k].room);
    why = kbk_launch(v, j->dtype, &a, stream);
    if (!why) why = inspect(j, shift, &r, &which);
    for (int k = 0; k < j->n; k++) {
        if (!why && memcmp(first[k], j->x[k].got, j->x[k].room))
            why = "a second launch gave other bits", r.index = -1;
        free(first[k]);
    }
    if (why)
        complain(j, v, shift, why, which, &r);
    else
        passed++;
}

// Captured into a graph, launched from it twice: no synchronisation, no allocation, same result.
static void try_graph(job* j, const kbk_variant* v) {
    kbk_args a;
    kbk_report r;
    int which = 0;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    char* mark = arena_at;
    j->work_bytes = kbk_workspace(v, &j->s);
    j->work = j->work_bytes ? take(j->work_bytes + GUARD) : NULL;
    arena_at = mark;
    place(j, 0, &a);
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const char* why = kbk_launch(v, j->dtype, &a, stream);
    cudaError_t e = cudaStreamEndCapture(stream, &graph);
    if (!why && e != cudaSuccess) why = "cannot be captured";
    if (!why) {
        CUDA(cudaGraphInstantiate(&exec, graph, 0));
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaGraphLaunch(exec, stream));
        why = inspect(j, 0, &r, &which);
        CUDA(cudaGraphExecDestroy(exec));
    } else
        r.index = -1;
    if (graph) CUDA(cudaGraphDestroy(graph));
    if (why)
        complain(j, v, 0, why, which, &r);
    else
        passed++;
}

// --- shapes by family
typedef struct {
    int64_t rows, cols, depth;
} dims;
static const dims all_shapes[] = {
    {1, 1, 1},     {1, 2, 3},      {1, 31, 5},    {1, 33, 1},     {3, 1, 7},
    {5, 7, 2},     {2, 64, 33},    {33, 31, 17},  {7, 129, 31},   {65, 100, 100},
    {4, 257, 32},  {1, 1000, 3},   {3, 1023, 4},  {130, 96, 64},  {2, 2053, 1},
    {3, 4096, 2},  {129, 1024, 8}, {2, 8195, 1},  {2, 16384, 1},  {1, 32776, 1},
    {2, 50257, 1}, {1, 66000, 1},  {70000, 3, 2}, {1, 131077, 1}, {128, 128, 128},
};
static const dims gemm_shapes[] = {
    {1, 1, 0},       {5, 3, 0},     {256, 256, 256}, {255, 129, 300},
    {64, 512, 1000}, {1, 4096, 64}, {4096, 1, 33},   {17, 1, 5000},
};

static void run_shape(const kbk_op* op, int dtype, kbk_shape s, int quick, const char* only,
                      int shape_index) {
    for (int fill = 0; fill < FILLS; fill++) {
        job j;
        memset(&j, 0, sizeof j);
        j.op = op, j.s = s, j.dtype = dtype, j.fill = fill;
        if (quick && fill != SEED1 && (fill + shape_index) % 3) continue;
        if (fill == BAD_IDS && strcmp(op->name, "cross_entropy") && strcmp(op->name, "embedding")) continue;
        if (fill == MEAN1000 && op->family != KBK_ROWS && op->family != KBK_SUM) continue;
        arena_at = arena;
        if (!prepare(&j)) {
            skipped++, release(&j);
            continue;
        }
        for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
            const kbk_variant* v = &kbk_table[i];
            if (v->op != op || !v->launch[dtype] || (only && strcmp(only, v->name))) continue;
            for (int shift = 0; shift < OFFSETS; shift++)
                if (shift == 0 || fill == SEED1 || fill == NANS)
                    try_variant(&j, v, shift, shift == 0 && fill == SEED1);
            if (fill == SEED1) try_graph(&j, v);
        }
        release(&j);
    }
}

// Nothing to do is done successfully, without touching anything.
static void run_empty(const kbk_op* op, int dtype, const char* only) {
    for (int zero = 0; zero < 2; zero++)
        for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
            const kbk_variant* v = &kbk_table[i];
            kbk_args a;
            if (v->op != op || !v->launch[dtype] || (only && strcmp(only, v->name))) continue;
            memset(&a, 0, sizeof a);
            a.s.batch = a.s.heads = 1, a.s.rows = zero ? 0 : 5, a.s.cols = zero ? 5 : 0, a.s.depth = 3;
            a.s.elem = kbk_dtype_size(dtype);
            const char* why = kbk_launch(v, dtype, &a, stream);
            if (!why && cudaStreamSynchronize(stream) != cudaSuccess) why = "failed on the device";
            if (why)
                printf("FAILED %s_%s/%s empty: %s\n", op->name, op->dir, v->name, why), failed++;
            else
                passed++;
            a.s.rows = -1, a.s.cols = 5;
            if (!kbk_launch(v, dtype, &a, stream))
                printf("FAILED %s/%s took -1 rows\n", op->name, v->name), failed++;
            else
                passed++;
        }
}

// --- more than 2^31 elements: a periodic input, and oracles of sampled units computed from copies of those
// alone
static void large_tensor(const kbk_tensor* t, int dtype, char* dev, char* block, size_t period) {
    size_t bytes = (size_t)t->count * kbk_kind_size(t->kind, dtype);
    for (size_t at = 0; at < bytes; at += period)
        CUDA(cudaMemcpyAsync(dev + at, block, bytes - at < period ? bytes - at : period,
                             cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
}
static const char* large_unit(const kbk_op* op, int dtype, const kbk_shape* s, const kbk_tensor* t, int n,
                              char** dev, int64_t u) {
    double *in[8] = {}, *out[2 * KBK_OUTS] = {}; // one unit's worth each, addressed as if they were whole
    const double* whole[8] = {};
    int ins = 0, outs = 0;
    const char* why = NULL;
    kbk_report r;
    for (int k = 0; k < n; k++) {
        int64_t per = t[k].per_unit;
        size_t size = (size_t)kbk_kind_size(t[k].kind, dtype);
        if (t[k].role != KBK_IN) {
            out[outs] = (double*)malloc((size_t)per * 8);
            out[KBK_OUTS + outs++] = t[k].scales ? (double*)malloc((size_t)t[k].scales * 8) : NULL;
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
    op->ref(s, whole, out, u, u + 1);
    for (int k = 0, o = 0; k < n && !why; k++) {
        if (t[k].role == KBK_IN) continue;
        size_t size = (size_t)kbk_kind_size(t[k].kind, dtype), bytes = (size_t)t[k].per_unit * size;
        char* got = (char*)malloc(bytes);
        CUDA(cudaMemcpy(got, dev[k] + (size_t)u * bytes, bytes, cudaMemcpyDeviceToHost));
        if (!kbk_verify(op, dtype, s, o++, got, out, u, u + 1, &r)) why = r.why;
        free(got);
    }
    for (int k = 0; k < 8; k++) free(in[k]), free(out[k]);
    return why;
}
static void run_large(const kbk_op* op, const char* only) {
    enum { PERIOD = 40009 * 256 }; // bytes; not a divisor of any row
    const int dtype = KBK_BF16;
    kbk_tensor t[KBK_MAX_TENSORS];
    kbk_shape s = {1, 1, 65537, 32771, 0, 0, 0, 0, 2}; // 2^31 + 344 thousand and more elements, odd rows
    char *dev[KBK_MAX_TENSORS] = {}, *block = (char*)malloc(PERIOD), *work = NULL;
    int n = op->tensors(&s, t);
    double* x = (double*)malloc(PERIOD * 8);
    if (op->family == KBK_GEMM || op->family == KBK_ATTN || op->family == KBK_SUM) {
        free(block), free(x);
        return;
    }
    for (int k = 0; k < n; k++) {
        size_t size = (size_t)kbk_kind_size(t[k].kind, dtype), bytes = (size_t)t[k].count * size;
        CUDA(cudaMalloc((void**)&dev[k], bytes));
        if (t[k].role != KBK_IN) continue;
        kbk_fill(&t[k], k, dtype, 42, 0, PERIOD / (int64_t)size, x);
        kbk_narrow(t[k].kind, dtype, x, block, PERIOD / (int64_t)size);
        large_tensor(&t[k], dtype, dev[k], block, PERIOD);
    }
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        const kbk_variant* v = &kbk_table[i];
        kbk_args a = {};
        int ins = 0, outs = 0;
        if (v->op != op || !v->launch[dtype] || (only && strcmp(only, v->name))) continue;
        a.s = s, a.workspace_bytes = kbk_workspace(v, &s);
        if (a.workspace_bytes && cudaMalloc((void**)&work, a.workspace_bytes) != cudaSuccess) {
            cudaGetLastError(), skipped++;
            continue;
        }
        a.workspace = work;
        if (work) CUDA(cudaMemset(work, 0xFF, KBK_TICKETS));
        for (int k = 0; k < n; k++) {
            if (t[k].role == KBK_IN)
                a.in[ins++] = dev[k];
            else
                CUDA(cudaMemset(dev[k], 0xFF, (size_t)t[k].count * kbk_kind_size(t[k].kind, dtype))),
                    a.out[outs++] = dev[k];
        }
        const char* why = kbk_launch(v, dtype, &a, stream);
        CUDA(cudaStreamSynchronize(stream));
        int64_t units = op->units(&s), sample[9] = {0,
                                                    1,
                                                    units / 7,
                                                    units / 3,
                                                    units / 2,
                                                    units - 70000 % units,
                                                    (int64_t)1 << 31,
                                                    units - 2,
                                                    units - 1};
        for (int u = 0; u < 9 && !why; u++)
            if (sample[u] >= 0 && sample[u] < units) why = large_unit(op, dtype, &s, t, n, dev, sample[u]);
        if (why)
            printf("FAILED %s_%s/%s bf16, more than 2^31 elements: %s\n", op->name, op->dir, v->name, why),
                failed++;
        else
            passed++;
        if (work) CUDA(cudaFree(work));
        work = NULL;
    }
    for (int k = 0; k < n; k++) CUDA(cudaFree(dev[k]));
    free(block), free(x);
}

static void run_op(const kbk_op* op, int quick, const char* only) {
    const int count = sizeof all_shapes / sizeof all_shapes[0],
              gemms = sizeof gemm_shapes / sizeof gemm_shapes[0];
    for (int dtype = 0; dtype < KBK_DTYPES; dtype++) {
        run_empty(op, dtype, only);
        int shapes = op->family == KBK_GEMM ? count + gemms : count;
        for (int i = 0; i < shapes; i++) {
            dims d = i < count ? all_shapes[i] : gemm_shapes[i - count];
            kbk_shape s = {1, 1, d.rows, d.cols, d.depth, 0.1, 0, 0, 0};
            if (quick && i % 3 == 2 && i < count) continue;
            if (op->family != KBK_GEMM) s.depth = 0;
            for (s.layout = 0; s.layout < (op->family == KBK_GEMM ? 3 : 1); s.layout++)
                run_shape(op, dtype, s, quick, only, i);
        }
    }
}

int main(int argc, char** argv) {
    const char *op = NULL, *variant = NULL;
    int quick = 0, large = 0, devices = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick"))
            quick = 1;
        else if (!strcmp(argv[i], "--large"))
            large = 1;
        else if (!strcmp(argv[i], "--op") && i + 1 < argc)
            op = argv[++i];
        else if (!strcmp(argv[i], "--variant") && i + 1 < argc)
            variant = argv[++i];
        else
            return printf("usage: %s [--op NAME] [--variant NAME] [--quick] [--large]\n", argv[0]), 2;
    }
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: the kernels were compiled and not run\n0 passed, 0 failed, %d skipped\n",
               KBK_VARIANT_COUNT);
        return 77;
    }
    const size_t room = (size_t)512 << 20;
    CUDA(cudaMalloc((void**)&arena, room));
    arena_end = arena + room;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < KBK_OP_COUNT; i++) {
        if (op && strcmp(op, kbk_ops[i].name)) continue;
        run_op(&kbk_ops[i], quick, variant);
        if (large) run_large(&kbk_ops[i], variant);
    }
    CUDA(cudaDeviceSynchronize());
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
