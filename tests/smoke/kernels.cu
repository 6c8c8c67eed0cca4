// SPDX-License-Identifier: MIT OR Unlicense
/* For make smoke-gpu: compares one kernel of each group of kbench_kernels.cuh with its CPU reference. The macro PART
   selects some of the kernels, so that make can compile several parts in parallel. KBK_NO_REGISTRY leaves out the
   kernel tables, so that only the selected launchers are compiled.

       nvcc -std=c++17 -O1 -arch=native -I. -DPART=1 tests/smoke/kernels.cu -o kernels_1 && ./kernels_1 */
#define KBK_NO_REGISTRY
#include "kbench_kernels.cuh"
#include <stdio.h>
#include <stdlib.h>

static const kbk_op operations[] = { KBK_OPS(KBKI_OP_ROW) };

typedef struct {
    const char *op, *dir, *variant;
    int word, dtype, sm; // sm: minimum compute capability that the kernel needs; KBK_SM_90a: it needs exactly 9.0
    kbk_launch_fn launch;
    int64_t batch, heads, rows, cols, depth;
} kernel;
#define T_KBK_F32 float
#define T_KBK_BF16 __nv_bfloat16
#define KERNEL(op, dir, variant, dtype, sm, batch, heads, rows, cols, depth) \
    { #op,                                                                   \
      #dir,                                                                  \
      #variant,                                                              \
      KBKI_WORD_##variant,                                                   \
      dtype,                                                                 \
      KBK_SM_##sm,                                                           \
      kbk_##op##_##dir##_##variant<T_##dtype>,                               \
      batch,                                                                 \
      heads,                                                                 \
      rows,                                                                  \
      cols,                                                                  \
      depth },
static const kernel kernels[] = {
#if PART == 1
    KERNEL(copy, run, bulk, KBK_BF16, 90, 1, 1, 257, 1000, 0) KERNEL(gather, run, unroll, KBK_F32, 0, 1, 1, 257, 1000,
                                                                     4099)
        KERNEL(d2h, run, sm, KBK_F32, 0, 1, 1, 257, 1000, 0) KERNEL(add, fwd, unroll, KBK_BF16, 0, 1, 1, 257, 1000, 0)
            KERNEL(gelu_tanh, fwd, unroll, KBK_BF16, 0, 1, 1, 257, 1000, 0)
                KERNEL(dropout, fwd, unroll, KBK_F32, 0, 1, 1, 257, 1000, 0)
                    KERNEL(sum, run, ticket, KBK_F32, 0, 1, 1, 257, 1000, 0)
                        KERNEL(mse, fwd, ticket, KBK_BF16, 0, 1, 1, 257, 1000, 0)
                            KERNEL(transpose, run, vec, KBK_BF16, 0, 1, 1, 257, 1000, 0)
#elif PART == 2
    KERNEL(softmax, fwd, onepass, KBK_BF16, 0, 1, 1, 257, 1000, 0)
        KERNEL(layernorm, bwd, onepass, KBK_BF16, 0, 1, 1, 257, 1000, 0)
            KERNEL(rmsnorm, fwd, onepass, KBK_F32, 0, 1, 1, 257, 1000, 0)
#elif PART == 3
    KERNEL(weighted_sum, fwd, vec, KBK_F32, 0, 1, 1, 257, 1000, 0)
        KERNEL(cross_entropy, fwdbwd, fused, KBK_BF16, 0, 1, 1, 257, 5003, 0)
            KERNEL(embedding, bwd, sorted, KBK_BF16, 0, 1, 1, 257, 256, 1009)
#elif PART == 4
    KERNEL(matmul, fwd, persist, KBK_BF16, 90a, 1, 1, 300, 264, 520)
        KERNEL(bmm, fwd, mmapipe, KBK_BF16, 80, 3, 1, 130, 264, 72)
#else
    KERNEL(attention, fwd, flashpp, KBK_BF16, 90a, 2, 3, 257, 64, 0)
#endif
};

static void cuda(cudaError_t e, const char* call) {
    if (e == cudaSuccess) return;
    printf("FAIL  %-30s %s\n", call, cudaGetErrorString(e));
    exit(1);
}
#define CUDA(call) cuda((call), #call)

static const kbk_op* operation(const kernel* k) {
    for (const kbk_op& op : operations)
        if (strcmp(op.name, k->op) == 0 && strcmp(op.dir, k->dir) == 0) return &op;
    return NULL;
}
static void* zeros(size_t count, size_t size) {
    void* p = calloc(count + 1, size);
    if (p) return p;
    puts("FAIL  host memory");
    exit(1);
}

// The second launch tests that a used workspace is no problem. Returns NULL or an error message.
static const char* run(const kernel* k, const kbk_op* op) {
    static char text[400];
    static kbk_tensor tensors[KBK_MAX_TENSORS];
    double *in[8] = { NULL }, *want[2 * KBK_OUTS] = { NULL };
    kbk_args a = {};
    kbk_report report;
    a.s.batch = k->batch, a.s.heads = k->heads, a.s.rows = k->rows, a.s.cols = k->cols, a.s.k = a.s.vocabulary = a.s.among = k->depth;
    a.s.p = 0.25, a.s.seed = 42, a.s.causal = 1;
    int n = op->tensors(&a.s, tensors), ins = 0, outs = 0;
    int64_t units = op->units(&a.s);
    for (int i = 0; i < n; i++) {
        const kbk_tensor* t = &tensors[i];
        size_t bytes = (size_t)t->count * kbk_kind_size(t->kind, k->dtype);
        double* values = (double*)zeros((size_t)t->count, sizeof(double));
        void *host = zeros(bytes, 1), *device;
        if (t->place == KBK_ON_HOST)
            CUDA(cudaMallocHost(&device, bytes + 1));
        else
            CUDA(cudaMalloc(&device, bytes + 1));
        if (t->role == KBK_IN) {
            kbk_fill(t, ins, k->dtype, 42, 0, t->count, values);
            kbk_narrow(t->kind, k->dtype, values, host, t->count);
            // the reference gets the inputs as stored, rounded to dtype
            kbk_widen(t->kind, k->dtype, host, values, t->count);
            CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyDefault));
            in[ins] = values, a.in[ins++] = device;
        } else {
            CUDA(cudaMemset(device, 0xFF, bytes));
            if (t->scales)
                want[KBK_OUTS + outs] =
                    (double*)zeros((size_t)(t->scales * (t->per_unit ? units : 1)), sizeof(double));
            want[outs] = values, a.out[outs++] = device;
        }
    }
    op->ref(&a.s, kbk_dtype_size(k->dtype), in, want, 0, units);
    a.workspace_bytes = op->scratch(&a.s, kbk_dtype_size(k->dtype), k->word);
    CUDA(cudaMalloc(&a.workspace, a.workspace_bytes + 1));
    CUDA(cudaMemset(a.workspace, 0, a.workspace_bytes + 1));
    for (int launch = 0; launch < 2; launch++) {
        const char* why = k->launch(&a, 0);
        if (why) return why;
        CUDA(cudaDeviceSynchronize());
        for (int slot = 0, i = 0; i < n; i++) {
            const kbk_tensor* t = &tensors[i];
            if (t->role == KBK_IN) continue;
            size_t bytes = (size_t)t->count * kbk_kind_size(t->kind, k->dtype);
            void* got = zeros(bytes, 1);
            CUDA(cudaMemcpy(got, a.out[slot], bytes, cudaMemcpyDefault));
            if (!kbk_verify(op, k->dtype, &a.s, slot, got, want, 0, units, &report)) {
                snprintf(text, sizeof text, "%s: %s; %lld elements outside, the first %s[%lld] = %.9g, expected %.9g",
                         t->name, report.why, (long long)report.bad, t->name, (long long)report.index, report.got,
                         report.want);
                return text;
            }
            free(got);
            slot++;
        }
    }
    return NULL;
}

int main() {
    int device = 0, major = 0, minor = 0, failed = 0;
    CUDA(cudaGetDevice(&device));
    CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    for (const kernel& k : kernels) {
        char name[100];
        const kbk_op* op = operation(&k);
        int least = k.sm & ~KBK_SM_EXACT, capability = 10 * major + minor;
        snprintf(name, sizeof name, "%s %s %s %s", k.op, k.dir, k.variant, kbk_dtype_name(k.dtype));
        if (k.sm & KBK_SM_EXACT ? capability != least : capability < least) {
            printf("skip  %-30s this GPU has compute capability %d.%d\n", name, major, minor);
            continue;
        }
        const char* why = op ? run(&k, op) : "no such operation";
        printf("%s  %-30s %s\n", why ? "FAIL" : "pass", name, why ? why : "equals its reference in two launches");
        fflush(stdout);
        failed += why != NULL;
    }
    return failed != 0;
}
