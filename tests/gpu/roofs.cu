// SPDX-License-Identifier: MIT OR Unlicense
// Compares the measured peaks of a device with the rates of cuBLASLt, of caches and of simple kernels. kbench must
// not withhold a possible rate, and must withhold every impossible rate. Benchmarks whose names begin with x_
// declare impossible rates (see roofs.sh). cuBLASLt is loaded at run time with the prototypes of its own header;
// kbench.h has its own declarations.
#include <cublasLt.h>
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include <dlfcn.h>

// --- memory's kernels ---

__global__ void reads(const uint4* p, size_t n, unsigned* sink) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x) {
        uint4 v = p[i];
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x9d2c5681u) *sink = sum;
}
__global__ void writes(uint4* p, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        p[i] = make_uint4(1, 2, 3, 4);
}
__global__ void copies(const uint4* p, uint4* q, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        q[i] = p[i];
}

#ifndef __CUDA_ARCH__ // the rest of this file is host code
// --- products ---

struct library {
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtMatmulDescCreate) describe;
    decltype(&cublasLtMatmulDescSetAttribute) describe_more;
    decltype(&cublasLtMatrixLayoutCreate) layout;
    decltype(&cublasLtMatmulPreferenceCreate) prefer;
    decltype(&cublasLtMatmulPreferenceSetAttribute) prefer_more;
    decltype(&cublasLtMatmulAlgoGetHeuristic) search;
    decltype(&cublasLtMatmul) multiply;
    cublasLtHandle_t handle;
};
template <class F> static bool find(void* from, const char* name, F* f) {
    void* p = dlsym(from, name);
    memcpy(f, &p, sizeof p);
    return p != NULL;
}
static library* open_library() {
    static library l;
    if (l.handle) return &l;
    char name[64];
    snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    void* from = dlopen(name, RTLD_NOW);
    if (!from) return NULL;
    bool all = find(from, "cublasLtCreate", &l.create) && find(from, "cublasLtMatmulDescCreate", &l.describe) &&
               find(from, "cublasLtMatmulDescSetAttribute", &l.describe_more) &&
               find(from, "cublasLtMatrixLayoutCreate", &l.layout) &&
               find(from, "cublasLtMatmulPreferenceCreate", &l.prefer) &&
               find(from, "cublasLtMatmulPreferenceSetAttribute", &l.prefer_more) &&
               find(from, "cublasLtMatmulAlgoGetHeuristic", &l.search) && find(from, "cublasLtMatmul", &l.multiply);
    return all && l.create(&l.handle) == CUBLAS_STATUS_SUCCESS ? &l : NULL;
}

struct type {
    const char *name, *stored;
    kb_dtype said, fill;
    cublasComputeType_t compute;
    cudaDataType_t scale, in, out;
    int in_bytes, out_bytes, side, roof;
};
static const type types[] = { { "f64", "f64", KB_F64, KB_F64, CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F,
                                8, 8, 4096, KBI_ROOF_F64 },
                              { "f32", "f32", KB_F32, KB_F32, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                                4, 4, 4096, KBI_ROOF_F32 },
                              { "tf32", "f32", KB_TF32, KB_F32, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F,
                                CUDA_R_32F, 4, 4, 8192, KBI_ROOF_TF32 },
                              { "f16", "f16", KB_F16, KB_F16, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F,
                                2, 2, 8192, KBI_ROOF_F16 },
                              { "bf16", "bf16", KB_BF16, KB_BF16, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF,
                                CUDA_R_16BF, 2, 2, 8192, KBI_ROOF_BF16 },
                              { "bf16_of_f32", "f32", KB_BF16, KB_F32, CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F,
                                CUDA_R_32F, CUDA_R_32F, 4, 4, 8192, KBI_ROOF_BF16 },
                              { "fp8", "e4m3", KB_E4M3, KB_E4M3, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8F_E4M3,
                                CUDA_R_16BF, 1, 2, 8192, KBI_ROOF_FP8 },
                              { "int8", "i8", KB_I8, KB_I8, CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I, 1,
                                4, 8192, KBI_ROOF_INT8 } };

struct product_row {
    const type* t;
    bool said;
    int side;
    kb_kind data;
};

// C = A' B of random matrices, or of data that makes the GPU use less power
static void product(kb_state* kb) {
    const product_row* row = (const product_row*)kb->user;
    const type* t = row->t;
    library* l = open_library();
    if (!l) return kb_skip(kb, "no cuBLASLt %d here", CUBLAS_VER_MAJOR);
    int64_t side = row->side, n = side * side;
    const size_t workspace = (size_t)32 << 20;
    char *a = KB_ALLOC(kb, char, n * t->in_bytes), *b = KB_ALLOC(kb, char, n * t->in_bytes),
         *c = KB_ALLOC(kb, char, n * t->out_bytes), *work = KB_ALLOC(kb, char, (int64_t)workspace);
    if (!a || !b || !c || !work) return;
    kbi_fill(kb, a, t->fill, n, row->data);
    kbi_fill(kb, b, t->fill, n, row->data);
    cublasLtMatmulDesc_t what;
    cublasLtMatrixLayout_t in, out;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    cublasOperation_t transposed = CUBLAS_OP_T;
    int8_t fast = 1;
    int many = 0;
    l->describe(&what, t->compute, t->scale);
    l->describe_more(what, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    if (t->said == KB_E4M3) l->describe_more(what, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    l->layout(&in, t->in, (uint64_t)side, (uint64_t)side, side);
    l->layout(&out, t->out, (uint64_t)side, (uint64_t)side, side);
    l->prefer(&preference);
    l->prefer_more(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    cublasStatus_t e = l->search(l->handle, what, in, in, out, out, preference, 1, &found, &many);
    if (e != CUBLAS_STATUS_SUCCESS || !many)
        return kb_skip(kb, "cuBLASLt has no matrix product of this type for this GPU");
    const double one64 = 1;
    const float one32 = 1;
    const int32_t one_whole = 1;
    const uint64_t zero = 0;
    const void* one = t->scale == CUDA_R_64F   ? (const void*)&one64
                      : t->scale == CUDA_R_32I ? (const void*)&one_whole
                                               : (const void*)&one32;
    KB_TIME(kb) {
        e = l->multiply(l->handle, what, one, a, in, b, in, &zero, c, out, c, out, &found.algo, work, workspace,
                        kb->stream);
    }
    if (e != CUBLAS_STATUS_SUCCESS) return kb_fail(kb, "cublasLtMatmul: %d", (int)e);
    double flops = 2.0 * (double)side * (double)side * (double)side;
    if (row->said)
        kb_flops_as(kb, flops, t->said);
    else
        kb_flops(kb, flops);
}

// --- memory ---

struct memory_row {
    kb_traffic does, said;
    int mib;
    // Index of the peak that the declared work exceeds. KBI_ROOFS: the declared work exceeds the highest
    // arithmetic peak. KBI_NO_ROOF: the declared work exceeds the highest memory peak. -3: the declared work is
    // possible.
    int impossible;
    kb_dtype flops;
};

// Returns an amount of work that, divided by the duration of the launch, gives 1.3 times the measured peak
// `which`. kbench calls the benchmark function several times. Before the last call no duration is known, so the
// result is 0.
static double too_much(kb_state* kb, int which) {
    kbi_run* run = kb->run;
    int first = which == KBI_NO_ROOF ? KBI_ROOF_COPY : which == KBI_ROOFS ? KBI_ROOF_F32 : which;
    int last = which == KBI_NO_ROOF ? KBI_ROOF_WRITE : which == KBI_ROOFS ? KBI_ROOF_INT8 : which;
    double most = 0, ns = 0;
    for (int i = first; i <= last; i++) {
        if (kbi_nan(run->machine->roofs.of[i])) run->backend->timing.roof(run->machine, i);
        if (run->machine->roofs.most[i] > most) most = run->machine->roofs.most[i];
    }
    for (int64_t i = 0; i < run->m.n; i++) ns += run->m.samples[i] / (double)run->m.n;
    return run->m.n ? 1.3 * most * ns * 1e-9 : 0;
}

static void memory(kb_state* kb) {
    const memory_row* row = (const memory_row*)kb->user;
    size_t bytes = (size_t)row->mib << 20, n = bytes / 16;
    uint4 *p = (uint4*)KB_ALLOC(kb, char, (int64_t)bytes), *q = (uint4*)KB_ALLOC(kb, char, (int64_t)bytes);
    unsigned* sink = KB_ALLOC(kb, unsigned, 1);
    if (!p || !q || !sink) return;
    kb_fill(kb, (unsigned*)p, (int64_t)(bytes / 4), KB_UNIFORM);
    KB_TIME(kb) {
        if (row->does == KB_READ) reads<<<2048, 512, 0, kb->stream>>>(p, n, sink);
        if (row->does == KB_WRITE) writes<<<2048, 512, 0, kb->stream>>>(q, n);
        if (row->does == KB_COPY) copies<<<2048, 512, 0, kb->stream>>>(p, q, n);
    }
    double moved = (row->does == KB_COPY ? 2.0 : 1.0) * (double)bytes;
    bool arithmetic = row->impossible == KBI_ROOFS || row->impossible >= KBI_ROOF_F64;
    if (row->impossible >= KBI_NO_ROOF && !arithmetic) moved = too_much(kb, row->impossible);
    if (arithmetic && row->flops)
        kb_flops_as(kb, too_much(kb, row->impossible), row->flops);
    else if (arithmetic)
        kb_flops(kb, too_much(kb, row->impossible));
    else if (row->said)
        kb_bytes_as(kb, moved, row->said);
    else
        kb_bytes(kb, moved);
}

// Benchmarks one of two implementations of a copy: kbench's kernel, or cudaMemcpyAsync. The rate of the faster
// implementation is the peak for cold copies of the same size.
static void cold_copy(kb_state* kb, bool by_kernel) {
    int64_t half = *(const int64_t*)kb->user / 2;
    char *from = KB_ALLOC(kb, char, half), *to = KB_ALLOC(kb, char, half);
    if (!from || !to) return;
    kb_fill(kb, (unsigned*)from, half / 4, KB_UNIFORM);
    kb_expect(kb, KB_EXPECT_TRANSFER);
    uint64_t n = (uint64_t)half / 16;
    void* copy[] = { &to, &from, &n };
    KB_TIME(kb) {
        if (by_kernel)
            kbi_launch_wide(KBI_F_COPY, copy);
        else
            cudaMemcpyAsync(to, from, (size_t)half, cudaMemcpyDeviceToDevice, kb->stream);
    }
    kb_bytes_as(kb, 2.0 * (double)half, KB_COPY);
}
static void cold_copy_kernel(kb_state* kb) { cold_copy(kb, true); }
static void cold_copy_runtime(kb_state* kb) { cold_copy(kb, false); }

// --- registration ---

static void add(const char* name, const char* stored, kb_body body, void* user) {
    kb_entry* e = (kb_entry*)calloc(1, sizeof *e);
    kb_axis* axes = (kb_axis*)calloc(2, sizeof *axes);
    axes[0].name = "dtype", axes[0].type = KB_AXIS_STRINGS, axes[0].s[0] = stored;
    axes[1].type = KB_AXIS_END;
    e->operation = strdup(name), e->implementation = "default", e->body = body, e->user = user;
    e->axes = stored ? axes : axes + 1;
    kb_add(e);
}

static void add_product(const type* t, bool said, const char* stored, int side, kb_kind data, const char* what) {
    char name[80];
    product_row* row = (product_row*)malloc(sizeof *row);
    row->t = t, row->said = said, row->side = side, row->data = data;
    snprintf(name, sizeof name, "%s%s%s%s%s", t->name, said ? "_said" : "", stored ? "_stored_" : "",
             stored ? stored : "", what);
    add(name, stored, product, row);
}

static void add_memory(const char* name, memory_row is) {
    memory_row* row = (memory_row*)malloc(sizeof *row);
    *row = is;
    add(name, NULL, memory, row);
}

int main(int argc, char** argv) {
    const int none = -3;
    for (const type& t : types) {
        add_product(&t, false, NULL, t.side, KB_NORMAL, "");
        add_product(&t, false, t.stored, t.side, KB_NORMAL, "");
        add_product(&t, true, NULL, t.side, KB_NORMAL, "");
        add_product(&t, true, t.stored, t.side, KB_NORMAL, "");
        // matrix products are faster if their inputs are zeros, because the GPU draws less power and keeps a
        // higher clock
        add_product(&t, true, NULL, t.side, KB_ZERO, "_zeros");
        add_product(&t, true, NULL, t.side / 2, KB_UNIFORM, "_small");
    }
    add_product(&types[2], false, "tf32", 8192, KB_NORMAL, "");
    add_memory("read", { KB_READ, KB_ANY_TRAFFIC, 1024, none, KB_NODTYPE });
    add_memory("read_said", { KB_READ, KB_READ, 1024, none, KB_NODTYPE });
    add_memory("read_256", { KB_READ, KB_READ, 256, none, KB_NODTYPE });
    add_memory("write_said", { KB_WRITE, KB_WRITE, 1024, none, KB_NODTYPE });
    add_memory("write_256", { KB_WRITE, KB_WRITE, 256, none, KB_NODTYPE });
    add_memory("write_unsaid_256", { KB_WRITE, KB_ANY_TRAFFIC, 256, none, KB_NODTYPE });
    add_memory("copy_said", { KB_COPY, KB_COPY, 512, none, KB_NODTYPE });
    add_memory("copy_128", { KB_COPY, KB_COPY, 128, none, KB_NODTYPE });
    add_memory("l2_read", { KB_READ, KB_ANY_TRAFFIC, 16, none, KB_NODTYPE }); // --hot: resident there
    add_memory("l2_read_said", { KB_READ, KB_READ, 16, none, KB_NODTYPE });
    add_memory("l2_write_said", { KB_WRITE, KB_WRITE, 16, none, KB_NODTYPE });
    add_memory("l2_copy", { KB_COPY, KB_ANY_TRAFFIC, 8, none, KB_NODTYPE });
    for (const type& t : types) {
        char name[80];
        if (strcmp(t.name, "bf16_of_f32") == 0) continue;
        snprintf(name, sizeof name, "x_%s", t.name);
        add_memory(name, { KB_COPY, KB_ANY_TRAFFIC, 256, t.roof, t.said });
    }
    static int64_t sizes[24];
    for (int i = 0; i < 21; i++) { // powers of two from 1 MiB to 1 GiB, and sizes between them
        char name[80];
        sizes[i] = (int64_t)(((i % 2 ? 1.5 : 1.0) * (double)((int64_t)1 << (20 + i / 2))) / 4096) * 4096;
        snprintf(name, sizeof name, "cold_copy_%lld_KiB_kernel", (long long)(sizes[i] >> 10));
        add(name, NULL, cold_copy_kernel, &sizes[i]);
        snprintf(name, sizeof name, "cold_copy_%lld_KiB_runtime", (long long)(sizes[i] >> 10));
        add(name, NULL, cold_copy_runtime, &sizes[i]);
    }
    add_memory("x_unsaid_flops", { KB_COPY, KB_ANY_TRAFFIC, 256, KBI_ROOFS, KB_NODTYPE });
    add_memory("x_unsaid_bytes", { KB_COPY, KB_ANY_TRAFFIC, 512, KBI_NO_ROOF, KB_NODTYPE });
    add_memory("x_read", { KB_READ, KB_READ, 1024, KBI_ROOF_READ, KB_NODTYPE });
    add_memory("x_write", { KB_WRITE, KB_WRITE, 1024, KBI_ROOF_WRITE, KB_NODTYPE });
    add_memory("x_copy", { KB_COPY, KB_COPY, 512, KBI_ROOF_COPY, KB_NODTYPE });
    return kb_main(argc, argv);
}
#endif
