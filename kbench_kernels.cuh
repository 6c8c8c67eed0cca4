/* kbench_kernels.cuh - v0.1.0 - reference CUDA kernels in one header - CUDA C++17 (oracles also C11, C++11)
   MIT or public domain, the reader's choice. SPDX-License-Identifier: MIT OR Unlicense. Full text at the end.

   Every operation of this library comes with the same five things, in the same order:

       card       formula, FLOPs, bytes, tolerance; one line per variant: what changed, and why it is faster
       formulas   kbk_<op>_<dir>_flops(shape), kbk_<op>_<dir>_bytes(shape)    what every variant is divided by
       oracle     kbk_<op>_<dir>_ref(...)    plain C, in double, on inputs already rounded to the element type
       kernels    from the naive one up to the best one, each in the fewest lines that show the idea
       launchers  kbk_<op>_<dir>_<variant><T>(args, stream)

   THE SMALLEST USE

       #include "kbench_kernels.cuh"                    // nvcc -std=c++17; needs nothing but the CUDA Toolkit

       kbk_args a = {};
       a.s.rows = 8192; a.s.cols = 4096;
       a.in[0] = x; a.out[0] = y;                       // device pointers to float
       const char* why = kbk_softmax_fwd_onepass<float>(&a, stream);
       if (why) puts(why);                              // NULL: launched. Otherwise: nothing was launched

   A launcher never synchronises, never allocates, may be captured into a CUDA graph, and does nothing,
   successfully, when there is nothing to do. It takes any base address that is a multiple of the element
   size, and any row length.

   THE TABLE

       for (int i = 0; i < KBK_VARIANT_COUNT; i++)
           printf("%s_%s %s\n", kbk_table[i].op->name, kbk_table[i].op->dir, kbk_table[i].name);
       const kbk_variant* v = kbk_find("softmax", "fwd", "onepass");
       const char* why = kbk_launch(v, KBK_BF16, &a, stream);

   KBK_OPS and KBK_TABLE in >>table are the only lists. Ids, dispatch, listing and tests are made from them.
   Through a C or C++ compiler without CUDA the same file gives table, formulas and oracles; the launch
   pointers are then null. Including the file makes the whole table, hence compiles every kernel.
   KBK_NO_REGISTRY leaves the tables out: then only those launchers are compiled that are called.

   SCRATCH MEMORY

       kbk_workspace(v, &shape) says how many bytes a variant wants at a.workspace. The first KBK_TICKETS
       bytes are counters. Set them to zero once (all ones does as well); no kernel leaves anything else
       there, so one workspace serves every variant, one launch at a time.

   ADDING AN OPERATION, in its own section (new group) or at the end of a section that fits
       1. a row in that group's KBK_OPS_... and, per variant, a row in its KBK_TABLE_...             (>>table)
       2. the card; _tensors, _units, _flops, _bytes, _ref; the macro KBK_CHECK_<op>_<dir>
       3. kernels and launchers. Nothing else: tests, listing and suite find it through the table.

   NAMES

       kbk_<op>_<dir>_<variant>     launcher; ..._k is its kernel where it has one of its own
       dir                          fwd, bwd, fwdbwd; run for an operation without a gradient
       kbki_, KBKI_                 internal, may change
       The rung is data in the table, never part of a name. Variant words are a closed list:

       access   naive     one thread per element or row
                stride    grid-stride loop, device-sized grid
                vec       16-byte accesses
                unroll    several of them in flight per thread
                bulk      cp.async.bulk ring in shared memory
                approx    approximate special functions (16-bit types only)
       rows     block     CTA per row
                warp      warp per row, shuffles
                online    running (max, sum) pair
                onepass   row in registers
                shared    row or tile in shared memory
                padded    tile without bank conflicts
                cluster   row split over a CTA cluster
       sums     atomic    one atomic addition per thread
                ticket    partial sums; the last CTA adds them in order
                split     several kernels, intermediate in memory
                fused     several results from one read
                sorted    ids ordered first, one owner per row
                matmul    a call of the matmul operation
       tiles    regblock  register tile per thread
                cpasync   multi-stage cp.async
                warptile  CTA, warp and thread tiles
                mma       mma.sync
                mmapipe   mma.sync and a cp.async ring
                wgmma     TMA and one consumer warpgroup
                ws        producer and consumer warpgroups
                coop      two consumers per tile
                persist   persistent CTAs
                multicast cluster TMA
                tma       TMA store path
                select    several configurations and a chooser
       attention          flash (SIMT), flashmma (mma.sync), flashws (wgmma, warp-specialised),
                          flashrs (P from registers), flashpp (overlapped softmax)
       host     pinned pageable sm: copies.   malloc async pool: allocations
       vendor   cudart cublas cublaslt

   COUNTING
       FLOPs: add, sub, mul, div, sqrt, rsqrt, exp, log, tanh, erf, max count 1, an FMA 2, a reduction of n
       terms n; casts, compares, selects, sign changes, loads, integer and random-number work 0. Bytes:
       compulsory traffic, each input read once and each output written once; scratch and re-reads are left
       out, so a variant that moves more shows as slower, not as more useful. Both belong to the operation:
       every variant is divided by the same number.

   CONTENTS
       >>options        what can be left out or turned on
       >>table          every operation and every variant, one row each
       >>shapes         shapes, arguments, tensors, checks: the types of the table
       >>numbers        Philox, rounding to 16 bits and back, reproducible inputs
       >>verify         compares a result with its oracle
       >>device         packs, reductions, the running softmax pair, tickets, launch helpers
       >>elementwise    add
       >>activation     gelu_erf, gelu_tanh, silu
       >>softmax        softmax over the last axis
       >>layernorm      layer normalisation over the last axis
       >>mse            mean squared error
       >>cross_entropy  loss and log-sum-exp of logits and targets
       >>matmul_simt    matrix product without tensor cores, and the vendor's
       >>registry       the tables themselves; look-up and launch
*/
#ifndef KBENCH_KERNELS_CUH
#define KBENCH_KERNELS_CUH

/*------------------------------------------------------------------------------------------------------------
  >>options     What can be left out or turned on, and the few words that C, C++ and CUDA spell differently.
                Public: KBK_NO_<GROUP>, KBK_NO_REGISTRY, KBK_CUBLAS      Used by: everything
------------------------------------------------------------------------------------------------------------*/

/*  Define before including:
      KBK_NO_ELEMENTWISE KBK_NO_ACTIVATION KBK_NO_SOFTMAX KBK_NO_LAYERNORM KBK_NO_MSE KBK_NO_CROSS_ENTROPY
      KBK_NO_MATMUL         leave a group's rows out of the tables, hence its kernels out of the build
      KBK_NO_REGISTRY       no tables: only launchers that are called are compiled
      KBK_CUBLAS            the vendor's rows; needs cublas_v2.h to build, and opens libcublas when first
                            launched
      KBK_NO_CUBLAS         wins over KBK_CUBLAS */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define KBK_HD __host__ __device__
#else
#define KBK_HD
#endif

#if defined(KBK_CUBLAS) && defined(KBK_NO_CUBLAS)
#undef KBK_CUBLAS
#endif
#if defined(KBK_CUBLAS) && defined(__CUDACC__)
#include <cublas_v2.h>
#include <dlfcn.h>
#endif

// A header's functions are not all used by every file that includes it, and no compiler need mention that.
#define KBK_FN static inline __attribute__((unused))
#define KBK_DATA static const __attribute__((unused))

#define KBK_VERSION "0.1.0"

/*------------------------------------------------------------------------------------------------------------
  >>table     Every operation and every variant, one row each; the only lists there are.
              Public: KBK_OPS, KBK_TABLE      Used by: >>registry, and through it every test and program
------------------------------------------------------------------------------------------------------------*/

/*  KBK_OPS    op, dir, family, scratch (kbki_scratch_<name>, or none), formula
    KBK_TABLE  op, dir, variant, rung, dtypes, sm, origin, note
      dtypes   KBK_ALL: f32, f16, bf16.   KBK_HALF: f16, bf16.   KBK_SINGLE: f32.   Others are not even
               compiled.
      sm       least compute capability, 0 for any; 90a means exactly 9.0
      origin   KBK_OWN or KBK_VENDOR; | KBK_UNORDERED where atomics add in whatever order they come */
// clang-format off
#ifndef KBK_NO_ELEMENTWISE
#define KBK_OPS_ELEMENTWISE(X)                                                                               \
    X(add,       fwd,  KBK_MAP,  none,       "y = a + b")
#define KBK_TABLE_ELEMENTWISE(X)                                                                             \
    X(add,       fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread")                      \
    X(add,       fwd,  stride,   2,  KBK_ALL,  0,   KBK_OWN,  "device-sized grid, grid-stride loop")         \
    X(add,       fwd,  vec,      3,  KBK_ALL,  0,   KBK_OWN,  "16-byte accesses")                            \
    X(add,       fwd,  unroll,   4,  KBK_ALL,  0,   KBK_OWN,  "two 16-byte packs of each input in flight")
#else
#define KBK_OPS_ELEMENTWISE(X)
#define KBK_TABLE_ELEMENTWISE(X)
#endif

#ifndef KBK_NO_ACTIVATION
#define KBK_OPS_ACTIVATION(X)                                                                                \
    X(gelu_erf,  fwd,  KBK_MAP,  none,       "y = 0.5 x (1 + erf(x / sqrt 2))")                              \
    X(gelu_tanh, fwd,  KBK_MAP,  none,       "y = 0.5 x (1 + tanh(k x (1 + a x^2)))")                        \
    X(silu,      fwd,  KBK_MAP,  none,       "y = x / (1 + exp(-x))")
#define KBK_TABLE_ACTIVATION(X)                                                                              \
    X(gelu_erf,  fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread, erfc")                \
    X(gelu_erf,  fwd,  stride,   2,  KBK_ALL,  0,   KBK_OWN,  "device-sized grid, grid-stride loop")         \
    X(gelu_erf,  fwd,  vec,      3,  KBK_ALL,  0,   KBK_OWN,  "16-byte accesses")                            \
    X(gelu_erf,  fwd,  unroll,   4,  KBK_ALL,  0,   KBK_OWN,  "several 16-byte packs in flight")             \
    X(gelu_erf,  fwd,  approx,   6,  KBK_HALF, 0,   KBK_OWN,  "logistic of a polynomial instead of erfc")    \
    X(gelu_tanh, fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread, exp and divide")      \
    X(gelu_tanh, fwd,  stride,   2,  KBK_ALL,  0,   KBK_OWN,  "device-sized grid, grid-stride loop")         \
    X(gelu_tanh, fwd,  vec,      3,  KBK_ALL,  0,   KBK_OWN,  "16-byte accesses")                            \
    X(gelu_tanh, fwd,  unroll,   4,  KBK_ALL,  0,   KBK_OWN,  "several 16-byte packs in flight")             \
    X(gelu_tanh, fwd,  approx,   6,  KBK_HALF, 0,   KBK_OWN,  "hardware exp2 and reciprocal")                \
    X(silu,      fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread, exp and divide")      \
    X(silu,      fwd,  stride,   2,  KBK_ALL,  0,   KBK_OWN,  "device-sized grid, grid-stride loop")         \
    X(silu,      fwd,  vec,      3,  KBK_ALL,  0,   KBK_OWN,  "16-byte accesses")                            \
    X(silu,      fwd,  unroll,   4,  KBK_ALL,  0,   KBK_OWN,  "several 16-byte packs in flight")             \
    X(silu,      fwd,  approx,   6,  KBK_HALF, 0,   KBK_OWN,  "hardware exp2 and reciprocal")
#else
#define KBK_OPS_ACTIVATION(X)
#define KBK_TABLE_ACTIVATION(X)
#endif

#ifndef KBK_NO_SOFTMAX
#define KBK_OPS_SOFTMAX(X)                                                                                   \
    X(softmax,   fwd,  KBK_ROWS, none,       "y[r,c] = exp(x[r,c] - max_c x) / sum_c exp(x[r,c] - max_c x)")
#define KBK_TABLE_SOFTMAX(X)                                                                                 \
    X(softmax,   fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "thread per row, three uncoalesced passes")    \
    X(softmax,   fwd,  block,    2,  KBK_ALL,  0,   KBK_OWN,  "CTA per row, shared-memory tree, three reads")\
    X(softmax,   fwd,  online,   3,  KBK_ALL,  0,   KBK_OWN,  "warp per row, running (max, sum), two reads") \
    X(softmax,   fwd,  onepass,  4,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, row in registers, one read")   \
    X(softmax,   fwd,  shared,   5,  KBK_ALL,  0,   KBK_OWN,  "row in shared memory, longer rows")
#else
#define KBK_OPS_SOFTMAX(X)
#define KBK_TABLE_SOFTMAX(X)
#endif

#ifndef KBK_NO_LAYERNORM
#define KBK_OPS_LAYERNORM(X)                                                                                 \
    X(layernorm, fwd,  KBK_ROWS, none,       "y[r,c] = (x[r,c] - mean[r]) rstd[r] w[c] + b[c]")
#define KBK_TABLE_LAYERNORM(X)                                                                               \
    X(layernorm, fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "thread per row, three uncoalesced passes")    \
    X(layernorm, fwd,  warp,     2,  KBK_ALL,  0,   KBK_OWN,  "warp per row, shuffles, re-reads from cache") \
    X(layernorm, fwd,  onepass,  3,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, row in registers, one read")
#else
#define KBK_OPS_LAYERNORM(X)
#define KBK_TABLE_LAYERNORM(X)
#endif

#ifndef KBK_NO_MSE
#define KBK_OPS_MSE(X)                                                                                       \
    X(mse,       fwd,  KBK_SUM,  mse,        "out = mean((x - y)^2)")
#define KBK_TABLE_MSE(X)                                                                                     \
    X(mse,       fwd,  atomic,   1,  KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "one atomic per thread")        \
    X(mse,       fwd,  block,    2,  KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "sum per CTA, an atomic each")  \
    X(mse,       fwd,  ticket,   3,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, last CTA finishes")
#else
#define KBK_OPS_MSE(X)
#define KBK_TABLE_MSE(X)
#endif

#ifndef KBK_NO_CROSS_ENTROPY
#define KBK_OPS_CROSS_ENTROPY(X)                                                                             \
    X(cross_entropy, fwd, KBK_ROWS, ce,      "loss[r] = lse[r] - x[r,t[r]], lse[r] = log sum_c exp(x[r,c])")
#define KBK_TABLE_CROSS_ENTROPY(X)                                                                           \
    X(cross_entropy, fwd, split, 1,  KBK_ALL,  0,   KBK_OWN,  "log-softmax to memory in f32, then a gather") \
    X(cross_entropy, fwd, online, 2, KBK_ALL,  0,   KBK_OWN,  "CTA per row, running (max, sum), one read")   \
    X(cross_entropy, fwd, unroll, 3, KBK_ALL,  0,   KBK_OWN,  "16-byte packs, four in flight per thread")
#else
#define KBK_OPS_CROSS_ENTROPY(X)
#define KBK_TABLE_CROSS_ENTROPY(X)
#endif

#ifndef KBK_NO_MATMUL
#define KBK_OPS_MATMUL(X)                                                                                    \
    X(matmul,    fwd,  KBK_GEMM, matmul,     "C = A B; NN, NT (B given as N x K), TN (A as K x M)")
#define KBK_TABLE_MATMUL_SIMT(X)                                                                             \
    X(matmul,    fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one thread per element of C")                 \
    X(matmul,    fwd,  shared,   2,  KBK_ALL,  0,   KBK_OWN,  "32 x 32 tiles in shared memory")
#else
#define KBK_OPS_MATMUL(X)
#define KBK_TABLE_MATMUL_SIMT(X)
#endif
#if defined(KBK_CUBLAS) && !defined(KBK_NO_MATMUL)
#define KBK_TABLE_MATMUL_VENDOR(X)                                                                           \
    X(matmul,    fwd,  cublas,   99, KBK_ALL,  0,   KBK_VENDOR, "cublasGemmEx, f32 accumulation, no TF32")
#else
#define KBK_TABLE_MATMUL_VENDOR(X)
#endif

#define KBK_OPS(X)                                                                                           \
    KBK_OPS_ELEMENTWISE(X) KBK_OPS_ACTIVATION(X) KBK_OPS_SOFTMAX(X) KBK_OPS_LAYERNORM(X) KBK_OPS_MSE(X)      \
    KBK_OPS_CROSS_ENTROPY(X) KBK_OPS_MATMUL(X)
#define KBK_TABLE(X)                                                                                         \
    KBK_TABLE_ELEMENTWISE(X) KBK_TABLE_ACTIVATION(X) KBK_TABLE_SOFTMAX(X) KBK_TABLE_LAYERNORM(X)             \
    KBK_TABLE_MSE(X) KBK_TABLE_CROSS_ENTROPY(X) KBK_TABLE_MATMUL_SIMT(X) KBK_TABLE_MATMUL_VENDOR(X)
// clang-format on

/*------------------------------------------------------------------------------------------------------------
  >>shapes     Shapes, arguments, tensors, checks: the types of the table.
               Public: kbk_shape, kbk_args, kbk_tensor, kbk_check, kbk_op, kbk_variant      Used by: all
------------------------------------------------------------------------------------------------------------*/

#define KBK_EPS 1e-5       // epsilon of the normalisations
#define KBK_IGNORE (-100)  // target that a loss leaves out
#define KBK_TICKETS 256    // bytes at the start of the workspace that hold counters
#define KBK_MAX_TENSORS 12 // of one operation
#define KBK_OUTS 4         // outputs of one operation

typedef enum kbk_dtype { KBK_F32, KBK_F16, KBK_BF16, KBK_DTYPES } kbk_dtype;

#define KBK_SINGLE (1u << KBK_F32)
#define KBK_HALF (1u << KBK_F16 | 1u << KBK_BF16)
#define KBK_ALL (KBK_SINGLE | KBK_HALF)

// What shapes mean to an operation, so that a program can choose them without knowing it by name.
enum {
    KBK_MAP,  // n = rows * cols independent elements
    KBK_SUM,  // n = rows * cols elements, one result
    KBK_ROWS, // rows of cols elements
    KBK_GEMM, // M = rows, N = cols, K = depth; layout
    KBK_ATTN  // batch, heads, S = rows, d = cols; causal
};

enum { KBK_NN, KBK_NT, KBK_TN }; // kbk_shape.layout

typedef struct kbk_shape {
    int64_t batch, heads, rows, cols, depth; // embedding: T = rows, D = cols, V = depth
    double p;                                // dropout: probability of a zero
    int causal;
    int layout;
    int elem; // sizeof(T); formulas need it
} kbk_shape;

#ifdef __CUDACC__
typedef cudaStream_t kbk_stream;
#else
typedef struct CUstream_st* kbk_stream; // the type that cudaStream_t names
#endif

typedef struct kbk_args {
    kbk_shape s;
    const void* in[8]; // inputs in the order of _tensors
    void* out[KBK_OUTS];
    void* workspace; // 256-byte aligned; see "scratch memory" above
    size_t workspace_bytes;
    uint64_t seed;
    float scalar;
} kbk_args;

// NULL, or why nothing was launched.
typedef const char* (*kbk_launch_fn)(const kbk_args* a, kbk_stream stream);

enum { KBK_IN, KBK_OUT, KBK_INOUT };                 // kbk_tensor.role
enum { KBK_T, KBK_KF32, KBK_KI32, KBK_KI64 };        // kbk_tensor.kind; KBK_T is the element type
enum { KBK_NORMAL, KBK_UNIFORM, KBK_IDS, KBK_SAME }; // kbk_tensor.fill

typedef struct kbk_tensor {
    const char* name;
    int role, kind;
    int64_t count;    // elements
    int64_t per_unit; // elements per unit; 0: belongs to no unit (weights, column sums), always taken whole
    int64_t scales;   // outputs: magnitudes per unit that the oracle also gives: 0, 1 or per_unit
    int fill;         // normal: mean a, deviation b.  uniform: [a, b).  ids: integers of [a, b).  same: a
    double a, b;
} kbk_tensor;

/*  How far a result may be from its oracle. Let w = max(|ref|, row scale, magnitude given by the oracle); the
    row scale is the root mean square of the unit's reference values. An element passes if |got - ref| <= ulps
    * ulp(w) + abs, the tensor if also ||got - ref|| <= norm * ||max(|ref|, magnitude)||. ulps = 0 and abs =
    0: equal to the oracle rounded once. Outputs that are f32 whatever T is (statistics, losses) use the check
    of f32. */
typedef struct kbk_check {
    double norm, ulps, abs;
} kbk_check;

// norm, ulps, abs of f32, of f16, of bf16
// clang-format off
#define KBKI_CHECKS(n, u, a, n16, u16, a16, nb, ub, ab) {{n, u, a}, {n16, u16, a16}, {nb, ub, ab}}
// clang-format on

typedef struct kbk_op {
    const char *name, *dir, *formula;
    int family;
    int (*tensors)(const kbk_shape* s, kbk_tensor* t); // fills t[KBK_MAX_TENSORS], returns how many
    int64_t (*units)(const kbk_shape* s);              // independent pieces of the result: rows, elements
    // Outputs of units u0..u1-1 at out[k] + (u - u0) * per_unit, whole tensors at out[k], magnitudes at
    // out[KBK_OUTS + k]; a null out[k] is not wanted. Inputs are whole.
    void (*ref)(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0, int64_t u1);
    double (*flops)(const kbk_shape* s);
    double (*bytes)(const kbk_shape* s);
    size_t (*scratch)(const kbk_shape* s, const char* variant);
    kbk_check check[KBK_DTYPES];
} kbk_op;

enum { KBK_OWN = 1, KBK_VENDOR = 2, KBK_UNORDERED = 4 }; // kbk_variant.origin

// Least compute capability. What needs an architecture's own instructions runs on that one alone.
enum { KBK_SM_EXACT = 0x1000, KBK_SM_0 = 0, KBK_SM_80 = 80, KBK_SM_90 = 90, KBK_SM_90a = 90 | KBK_SM_EXACT };

typedef struct kbk_variant {
    const kbk_op* op;
    const char* name;
    int rung;
    unsigned dtypes;
    int sm, origin;
    const char* note;
    kbk_launch_fn launch[KBK_DTYPES];
} kbk_variant;

KBK_FN const char* kbk_dtype_name(int dtype) {
    return dtype == KBK_F32 ? "f32" : dtype == KBK_F16 ? "f16" : dtype == KBK_BF16 ? "bf16" : "?";
}
KBK_FN int kbk_dtype_size(int dtype) { return dtype == KBK_F32 ? 4 : 2; }
KBK_FN int kbk_kind_size(int kind, int dtype) {
    return kind == KBK_T ? kbk_dtype_size(dtype) : kind == KBK_KI64 ? 8 : 4;
}

// The rows of _tensors, one call each.
KBK_FN kbk_tensor kbki_in(const char* name, int64_t count, int64_t per_unit) {
    kbk_tensor t = {name, KBK_IN, KBK_T, count, per_unit, 0, KBK_NORMAL, 0, 1};
    return t;
}
KBK_FN kbk_tensor kbki_ids(const char* name, int64_t count, int64_t per_unit, int64_t below) {
    kbk_tensor t = {name, KBK_IN, KBK_KI32, count, per_unit, 0, KBK_IDS, 0, (double)below};
    return t;
}
KBK_FN kbk_tensor kbki_out(const char* name, int kind, int64_t count, int64_t per_unit, int64_t scales) {
    kbk_tensor t = {name, KBK_OUT, kind, count, per_unit, scales, KBK_SAME, 0, 0};
    return t;
}
KBK_FN size_t kbki_scratch_none(const kbk_shape* s, const char* variant) {
    (void)s, (void)variant;
    return 0;
}
KBK_FN double kbki_n(const kbk_shape* s) { return (double)s->rows * (double)s->cols; }

/*------------------------------------------------------------------------------------------------------------
  >>numbers     Philox, rounding to 16 bits and back, reproducible inputs; the same bits on host and device.
                Public: kbk_philox, kbk_round, kbk_widen, kbk_narrow, kbk_fill      Used by: >>verify
------------------------------------------------------------------------------------------------------------*/

typedef struct kbk_u4 {
    uint32_t w[4];
} kbk_u4;

KBK_FN KBK_HD uint32_t kbki_mulhi(uint32_t a, uint32_t b) { return (uint32_t)(((uint64_t)a * b) >> 32); }

// Philox4x32 with 10 rounds (Salmon et al., SC 2011): a block cipher as a generator, so that word i of a
// stream is a function of i alone, whatever the grid, the variant or the order.
KBK_FN KBK_HD kbk_u4 kbk_philox(kbk_u4 ctr, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        uint32_t hi0 = kbki_mulhi(0xD2511F53u, ctr.w[0]), lo0 = 0xD2511F53u * ctr.w[0];
        uint32_t hi1 = kbki_mulhi(0xCD9E8D57u, ctr.w[2]), lo1 = 0xCD9E8D57u * ctr.w[2];
        uint32_t w1 = ctr.w[1], w3 = ctr.w[3];
        ctr.w[0] = hi1 ^ w1 ^ key0;
        ctr.w[1] = lo1;
        ctr.w[2] = hi0 ^ w3 ^ key1;
        ctr.w[3] = lo0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return ctr;
}

// Counter = (block, tensor id, purpose), key = seed.
KBK_FN KBK_HD kbk_u4 kbk_random_block(uint64_t seed, uint64_t block, uint32_t id, uint32_t purpose) {
    kbk_u4 ctr;
    ctr.w[0] = (uint32_t)block;
    ctr.w[1] = (uint32_t)(block >> 32);
    ctr.w[2] = id;
    ctr.w[3] = purpose;
    return kbk_philox(ctr, (uint32_t)seed, (uint32_t)(seed >> 32));
}

KBK_FN uint64_t kbki_bits(double x) {
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
KBK_FN double kbki_from_bits(uint64_t b) {
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}

// By their bits, so that a build with fast-math cannot reason them away.
KBK_FN int kbk_is_nan(double x) { return (kbki_bits(x) & ~(1ull << 63)) > 0x7FFull << 52; }
KBK_FN int kbk_is_inf(double x) { return (kbki_bits(x) & ~(1ull << 63)) == 0x7FFull << 52; }

KBK_FN int kbki_mantissa(int dtype) { return dtype == KBK_F32 ? 23 : dtype == KBK_F16 ? 10 : 7; }
KBK_FN int kbki_exponent(int dtype) { return dtype == KBK_F16 ? 5 : 8; }

// The bits of x in the element type: to nearest, ties to even, once. Overflow gives infinity, NaN a quiet
// NaN.
KBK_FN uint32_t kbk_round(int dtype, double x) {
    const int m = kbki_mantissa(dtype), e = kbki_exponent(dtype), bias = (1 << (e - 1)) - 1;
    const uint32_t inf = ((1u << e) - 1) << m;
    uint64_t b = kbki_bits(x), man = b & ((1ull << 52) - 1);
    uint32_t sign = (uint32_t)(b >> 63) << (m + e);
    int exp = (int)(b >> 52 & 0x7FF);
    if (exp == 0x7FF) return sign | inf | (man ? 1u << (m - 1) : 0);
    if (exp == 0) return sign; // zero, or far below the least subnormal of any of these types
    man |= 1ull << 52;
    exp += bias - 1023;
    int shift = 52 - m;
    if (exp < 1) shift += 1 - exp;
    if (shift > 54) return sign;
    uint64_t q = man >> shift, rest = man & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    q += rest > half || (rest == half && (q & 1));
    // A carry out of the mantissa is the next exponent, in the subnormal case too.
    uint64_t r = exp < 1 ? q : ((uint64_t)exp << m) + (q - (1ull << m));
    return sign | (r >= inf ? inf : (uint32_t)r);
}

KBK_FN double kbki_widen_bits(int dtype, uint32_t b) {
    const int m = kbki_mantissa(dtype), e = kbki_exponent(dtype), bias = (1 << (e - 1)) - 1;
    uint64_t sign = (uint64_t)(b >> (m + e) & 1) << 63, man = b & ((1u << m) - 1);
    int exp = (int)(b >> m & ((1u << e) - 1));
    if (exp == (1 << e) - 1) return kbki_from_bits(sign | 0x7FFull << 52 | man << (52 - m));
    if (exp) return kbki_from_bits(sign | (uint64_t)(exp - bias + 1023) << 52 | man << (52 - m));
    double x = ldexp((double)man, 1 - bias - m);
    return sign ? -x : x;
}

KBK_FN double kbk_round_value(int dtype, double x) { return kbki_widen_bits(dtype, kbk_round(dtype, x)); }

// n elements of a tensor's storage as double; exact (64-bit ids below 2^53).
KBK_FN void kbk_widen(int kind, int dtype, const void* p, double* x, int64_t n) {
    const unsigned char* c = (const unsigned char*)p;
    int size = kbk_kind_size(kind, dtype), as = kind == KBK_T ? dtype : KBK_F32;
    for (int64_t i = 0; i < n; i++, c += size) {
        if (kind == KBK_KI64) {
            int64_t v;
            memcpy(&v, c, sizeof v);
            x[i] = (double)v;
        } else if (kind == KBK_KI32) {
            int32_t v;
            memcpy(&v, c, sizeof v);
            x[i] = (double)v;
        } else if (size == 2) {
            uint16_t v;
            memcpy(&v, c, sizeof v);
            x[i] = kbki_widen_bits(as, v);
        } else {
            uint32_t v;
            memcpy(&v, c, sizeof v);
            x[i] = kbki_widen_bits(as, v);
        }
    }
}

// The other way: n doubles into a tensor's storage, rounded once.
KBK_FN void kbk_narrow(int kind, int dtype, const double* x, void* p, int64_t n) {
    unsigned char* c = (unsigned char*)p;
    int size = kbk_kind_size(kind, dtype), as = kind == KBK_T ? dtype : KBK_F32;
    for (int64_t i = 0; i < n; i++, c += size) {
        int64_t i64 = kind >= KBK_KI32 ? (int64_t)x[i] : 0;
        int32_t i32 = (int32_t)i64;
        uint32_t b = kind >= KBK_KI32 ? 0 : kbk_round(as, x[i]);
        uint16_t h = (uint16_t)b;
        const void* from = kind == KBK_KI64   ? (const void*)&i64
                           : kind == KBK_KI32 ? (const void*)&i32
                           : size == 2        ? (const void*)&h
                                              : (const void*)&b;
        memcpy(c, from, (size_t)size);
    }
}

// Element i of stream (seed, id): word i mod 4 of block i / 4; normals are Box-Muller on the block's two word
// pairs.
KBK_FN double kbki_random(int fill, double a, double b, uint64_t seed, int id, int64_t i) {
    const double word = 1 / 4294967296.0, top24 = 1 / 16777216.0; // of a word's range, of its upper 24 bits
    kbk_u4 r = kbk_random_block(seed, (uint64_t)i / 4, (uint32_t)id, 0);
    int w = (int)(i & 3);
    if (fill == KBK_SAME) return a;
    if (fill == KBK_UNIFORM) return a + (b - a) * ((double)(r.w[w] >> 8) * top24);
    if (fill == KBK_IDS) return a + floor((b - a) * ((double)r.w[w] * word));
    double radius = sqrt(-2.0 * log(((double)r.w[w & 2] + 1.0) * word));
    double angle = 6.283185307179586 * word * (double)r.w[(w & 2) + 1];
    return a + b * radius * (w & 1 ? sin(angle) : cos(angle));
}

// Elements i0..i0+n-1 of input number id, as the oracle wants them: rounded to the type they are stored in.
KBK_FN void kbk_fill(const kbk_tensor* t, int id, int dtype, uint64_t seed, int64_t i0, int64_t n,
                     double* x) {
    for (int64_t i = 0; i < n; i++) {
        double v = kbki_random(t->fill, t->a, t->b, seed, id, i0 + i);
        x[i] = t->kind >= KBK_KI32 ? v : kbk_round_value(t->kind == KBK_T ? dtype : KBK_F32, v);
    }
}

/*------------------------------------------------------------------------------------------------------------
  >>verify     Compares a result with its oracle, element by element and as a whole; a NaN cannot pass.
               Public: kbk_verify, kbk_report, kbk_ulp, kbk_output      Used by: tests and programs
------------------------------------------------------------------------------------------------------------*/

#define KBKI_HUGE 1e300

typedef struct kbk_report {
    const char* why;         // NULL: passed
    int64_t bad;             // elements outside their bound
    int64_t index;           // of the worst element, in the whole tensor; -1: none was compared
    double got, want, bound; // of the worst element: |got - want| should be <= bound
    double norm, norm_bound; // ||got - want|| / ||want||
} kbk_report;

// The distance between neighbours of the element type at |x|; at least the least subnormal.
KBK_FN double kbk_ulp(int dtype, double x) {
    int m = kbki_mantissa(dtype), least = 2 - (1 << (kbki_exponent(dtype) - 1)), e = 0;
    x = fabs(x);
    if (!(x > 0) || kbk_is_inf(x)) return ldexp(1.0, least - m);
    frexp(x, &e);
    return ldexp(1.0, (e - 1 > least ? e - 1 : least) - m);
}

// Descriptor of output k; returns how many tensors there are, or 0 if there is no such output.
KBK_FN int kbk_output(const kbk_op* op, const kbk_shape* s, int k, kbk_tensor* out) {
    kbk_tensor t[KBK_MAX_TENSORS];
    int n = op->tensors(s, t);
    for (int i = 0; i < n; i++)
        if (t[i].role != KBK_IN && k-- == 0) {
            *out = t[i];
            return n;
        }
    return 0;
}

// Root mean square of the finite values.
KBK_FN double kbki_rms(const double* x, int64_t n) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!kbk_is_nan(x[i]) && !kbk_is_inf(x[i])) sum += x[i] * x[i], count++;
    return count ? sqrt(sum / count) : 0;
}

// One element: NaN exactly where the oracle has one, infinities alike, otherwise within the bound. Returns 1
// if good.
KBK_FN int kbki_good(int dtype, const kbk_check* c, double got, double want, double scale, double* bound) {
    double w = fabs(want) > scale ? fabs(want) : scale;
    *bound = c->ulps * kbk_ulp(dtype, w) + c->abs;
    if (kbk_is_nan(want) || kbk_is_nan(got)) return kbk_is_nan(want) && kbk_is_nan(got);
    if (c->ulps == 0 && c->abs == 0) return kbki_bits(got) == kbki_bits(kbk_round_value(dtype, want));
    double rounded = kbk_round_value(dtype, want);
    if (kbk_is_inf(rounded) || kbk_is_inf(got)) return kbki_bits(got) == kbki_bits(rounded);
    return fabs(got - want) <= *bound;
}

typedef struct kbki_tally {
    double diff2, ref2, compared, worst;
    int good; // the worst element so far
} kbki_tally;

// A piece of one unit; rms is the unit's row scale.
KBK_FN void kbki_verify_piece(const kbk_tensor* t, int dtype, const kbk_check* c, const double* got,
                              const double* ref, const double* scale, double rms, int64_t n, int64_t base,
                              kbki_tally* sum, kbk_report* r) {
    // Values below the least normal number cannot be held better than half of the least subnormal, in any
    // norm.
    double step = 0.5 * kbk_ulp(dtype, 0.0);
    for (int64_t i = 0; i < n; i++) {
        double magnitude = !scale ? 0 : t->scales == 1 ? scale[0] : scale[i], bound = 0;
        int good = kbki_good(dtype, c, got[i], ref[i], magnitude > rms ? magnitude : rms, &bound);
        double diff = fabs(got[i] - ref[i]), over = diff - bound;
        if (kbk_is_nan(diff)) over = good ? -KBKI_HUGE : KBKI_HUGE;
        r->bad += !good;
        if (r->index < 0 || (good == sum->good ? over > sum->worst : !good)) {
            r->index = base + i, r->got = got[i], r->want = ref[i], r->bound = bound;
            sum->worst = over, sum->good = good;
        }
        if (kbk_is_nan(diff) || kbk_is_inf(diff)) continue;
        double w = fabs(ref[i]) > magnitude ? fabs(ref[i]) : magnitude;
        diff = diff > step ? diff - step : 0;
        sum->diff2 += diff * diff, sum->ref2 += w * w, sum->compared++;
    }
}

KBK_FN int kbki_verify_whole(int dtype, const kbk_check* c, const kbki_tally* sum, kbk_report* r) {
    // A handful of elements can all round the same way; a norm is about many.
    double few = sum->compared < 1024 ? ldexp(1.0, -1 - kbki_mantissa(dtype)) : 0;
    double diff = sqrt(sum->diff2), ref = sqrt(sum->ref2);
    int exact = c->ulps == 0 && c->abs == 0;
    r->norm = ref > 0 ? diff / ref : diff > 0 ? KBKI_HUGE : 0;
    r->norm_bound = c->norm + few;
    if (r->bad)
        r->why = "an element is outside its bound";
    else if (!exact && !(diff <= r->norm_bound * ref + c->abs * sqrt(sum->compared)))
        r->why = "the norm of the difference is outside its bound";
    return r->why == NULL;
}

/*  Output k of units u0..u1-1 (a tensor that belongs to no unit: whole). got: the bytes of those units as the
    device stored them. out: what the oracle wrote for the same units, magnitudes included. Returns 1 if it
    passes. */
KBK_FN int kbk_verify(const kbk_op* op, int dtype, const kbk_shape* s, int k, const void* got,
                      double* const* out, int64_t u0, int64_t u1, kbk_report* r) {
    const int64_t CHUNK = 256;
    kbk_tensor t;
    kbki_tally sum = {0, 0, 0, 0, 1};
    double x[256];
    memset(r, 0, sizeof *r);
    r->index = -1;
    if (!kbk_output(op, s, k, &t) || !out[k]) {
        r->why = "no such output";
        return 0;
    }
    int as = t.kind == KBK_T ? dtype : KBK_F32, size = kbk_kind_size(t.kind, dtype);
    kbk_check c = op->check[as];
    if (t.kind >= KBK_KI32) c.norm = c.ulps = 0, c.abs = 0.5; // integers: equal
    int64_t per = t.per_unit ? t.per_unit : t.count, units = t.per_unit ? u1 - u0 : 1;
    for (int64_t u = 0; u < units; u++) {
        const double *ref = out[k] + u * per, *scale = t.scales ? out[KBK_OUTS + k] + u * t.scales : NULL;
        const unsigned char* raw = (const unsigned char*)got + u * per * size;
        double rms = kbki_rms(ref, per);
        for (int64_t i = 0; i < per; i += CHUNK) {
            int64_t n = per - i < CHUNK ? per - i : CHUNK, base = (t.per_unit ? u0 + u : 0) * per + i;
            kbk_widen(t.kind, dtype, raw + i * size, x, n);
            kbki_verify_piece(&t, as, &c, x, ref + i, scale && t.scales > 1 ? scale + i : scale, rms, n, base,
                              &sum, r);
        }
    }
    return kbki_verify_whole(as, &c, &sum, r);
}

/*------------------------------------------------------------------------------------------------------------
  >>device     What the kernels share: packs of 16 bytes, reductions, the running softmax pair, tickets,
  launching.
               Public: nothing      Used by: every section below
------------------------------------------------------------------------------------------------------------*/
#ifdef __CUDACC__

// --- one element as float, and back
__device__ __forceinline__ float kbki_float(float x) { return x; }
__device__ __forceinline__ float kbki_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float kbki_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T> struct kbki_type;
template <> struct kbki_type<float> {
    static constexpr uint32_t minus_inf = 0xFF800000u; // two elements of it where they are 16 bits wide
    static constexpr cudaDataType cuda = CUDA_R_32F;
    static __device__ __forceinline__ float from(float x) { return x; }
};
template <> struct kbki_type<__half> {
    static constexpr uint32_t minus_inf = 0xFC00FC00u;
    static constexpr cudaDataType cuda = CUDA_R_16F;
    static __device__ __forceinline__ __half from(float x) { return __float2half_rn(x); }
};
template <> struct kbki_type<__nv_bfloat16> {
    static constexpr uint32_t minus_inf = 0xFF80FF80u;
    static constexpr cudaDataType cuda = CUDA_R_16BF;
    static __device__ __forceinline__ __nv_bfloat16 from(float x) { return __float2bfloat16_rn(x); }
};

// One 32-bit word of a pack: one f32 or two 16-bit elements.
__device__ __forceinline__ void kbki_unword(float*, uint32_t w, float* f) { f[0] = __uint_as_float(w); }
__device__ __forceinline__ void kbki_unword(__half*, uint32_t w, float* f) {
    float2 v = __half22float2(*reinterpret_cast<__half2*>(&w));
    f[0] = v.x, f[1] = v.y;
}
__device__ __forceinline__ void kbki_unword(__nv_bfloat16*, uint32_t w, float* f) {
    f[0] = __uint_as_float(w << 16),
    f[1] = __uint_as_float(w & 0xFFFF0000u); // bf16 is the upper half of an f32
}
__device__ __forceinline__ uint32_t kbki_word(float*, const float* f) { return __float_as_uint(f[0]); }
__device__ __forceinline__ uint32_t kbki_word(__half*, const float* f) {
    __half2 v = __floats2half2_rn(f[0], f[1]);
    return *reinterpret_cast<uint32_t*>(&v);
}
__device__ __forceinline__ uint32_t kbki_word(__nv_bfloat16*, const float* f) {
    __nv_bfloat162 v = __floats2bfloat162_rn(f[0], f[1]);
    return *reinterpret_cast<uint32_t*>(&v);
}

/*  A pack holds W elements as they lie in memory: 16 bytes of them (W = KBKI_WIDTH), or one (W = 1), which is
    how the same kernel serves addresses that 16-byte accesses cannot. Data in flight stays packed: half the
    registers of floats where T has 16 bits. load and store stream, that is, ask the caches to let go of the
    line first. */
#define KBKI_WIDTH(T) ((int)(16 / sizeof(T)))

template <class T, int W> struct kbki_pack {
    static_assert(W == KBKI_WIDTH(T), "a pack is 16 bytes or one element");
    uint4 q;
    __device__ __forceinline__ void load(const T* p) { q = __ldcs(reinterpret_cast<const uint4*>(p)); }
    __device__ __forceinline__ void load_cached(const T* p) { q = __ldg(reinterpret_cast<const uint4*>(p)); }
    __device__ __forceinline__ void store(T* p) const { __stcs(reinterpret_cast<uint4*>(p), q); }
    __device__ __forceinline__ void store_cached(T* p) const { *reinterpret_cast<uint4*>(p) = q; }
    __device__ __forceinline__ void fill(uint32_t w) { q = make_uint4(w, w, w, w); }
    // Makes the compiler unpack again in the next pass, instead of keeping the floats of this one in
    // registers.
    __device__ __forceinline__ void forget() {
        asm volatile("" : "+r"(q.x), "+r"(q.y), "+r"(q.z), "+r"(q.w));
    }
    __device__ __forceinline__ void get(float* f) const {
        constexpr int step = W / 4;
        kbki_unword((T*)0, q.x, f), kbki_unword((T*)0, q.y, f + step);
        kbki_unword((T*)0, q.z, f + 2 * step), kbki_unword((T*)0, q.w, f + 3 * step);
    }
    __device__ __forceinline__ void set(const float* f) {
        constexpr int step = W / 4;
        q = make_uint4(kbki_word((T*)0, f), kbki_word((T*)0, f + step), kbki_word((T*)0, f + 2 * step),
                       kbki_word((T*)0, f + 3 * step));
    }
};
template <class T> struct kbki_pack<T, 1> {
    T v;
    __device__ __forceinline__ void load(const T* p) { v = __ldcs(p); }
    __device__ __forceinline__ void load_cached(const T* p) { v = __ldg(p); }
    __device__ __forceinline__ void store(T* p) const { __stcs(p, v); }
    __device__ __forceinline__ void store_cached(T* p) const { *p = v; }
    __device__ __forceinline__ void fill(uint32_t w) { memcpy(&v, &w, sizeof v); }
    __device__ __forceinline__ void forget() {}
    __device__ __forceinline__ void get(float* f) const { f[0] = kbki_float(v); }
    __device__ __forceinline__ void set(const float* f) { v = kbki_type<T>::from(f[0]); }
};

// n elements from p: so many single ones until the first 16-byte boundary, whole packs, and single ones
// again.
struct kbki_span {
    int64_t packs;
    int head, tail; // each less than W, so at most 14 together
};
template <class T, int W> __host__ __device__ __forceinline__ kbki_span kbki_split(const T* p, int64_t n) {
    int64_t head = W == 1 ? 0 : (int64_t)((0 - (uintptr_t)p & 15) / sizeof(T));
    if (head > n) head = n;
    kbki_span s = {(n - head) / W, (int)head, 0};
    s.tail = (int)(n - head - s.packs * W);
    return s;
}
// The single element that thread t of at least 14 takes, or -1.
__device__ __forceinline__ int64_t kbki_single(kbki_span s, int64_t n, int t) {
    return t < s.head ? t : t < s.head + s.tail ? n - s.tail + (t - s.head) : -1;
}

// --- reductions: every thread gets the result. Group = warp (TH = 32) or a CTA of TH threads.
struct kbki_max {
    typedef float type;
    static __device__ __forceinline__ float none() { return -INFINITY; }
    static __device__ __forceinline__ float join(float a, float b) { return fmaxf(a, b); }
    static __device__ __forceinline__ float shuffle(float v, int d) { return __shfl_xor_sync(~0u, v, d); }
};
template <class V> struct kbki_sum {
    typedef V type;
    static __device__ __forceinline__ V none() { return 0; }
    static __device__ __forceinline__ V join(V a, V b) { return a + b; }
    static __device__ __forceinline__ V shuffle(V v, int d) { return __shfl_xor_sync(~0u, v, d); }
};
struct kbki_sum2 {
    typedef float2 type;
    static __device__ __forceinline__ float2 none() { return make_float2(0, 0); }
    static __device__ __forceinline__ float2 join(float2 a, float2 b) {
        return make_float2(a.x + b.x, a.y + b.y);
    }
    static __device__ __forceinline__ float2 shuffle(float2 v, int d) {
        return make_float2(__shfl_xor_sync(~0u, v.x, d), __shfl_xor_sync(~0u, v.y, d));
    }
};

template <class R> __device__ __forceinline__ typename R::type kbki_warp_all(typename R::type v) {
#pragma unroll
    for (int d = 16; d; d >>= 1) v = R::join(v, R::shuffle(v, d));
    return v;
}
// slots: 32 values in shared memory. A second reduction of the same kernel needs its own, and saves a barrier
// by it.
template <class R, int TH>
__device__ __forceinline__ typename R::type kbki_all(typename R::type v, typename R::type* slots) {
    v = kbki_warp_all<R>(v);
    if (TH == 32) return v;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) slots[warp] = v;
    __syncthreads();
    v = R::none();
    if (lane < TH / 32) v = slots[lane];
    return kbki_warp_all<R>(v);
}

// --- the running softmax pair: m the greatest value so far, s = sum of exp(x - m), kept in powers of two
#define KBKI_LOG2E 1.4426950408889634f
#define KBKI_LN2 0.6931471805599453f

__device__ __forceinline__ float
kbki_exp2(float x) { // hardware, relative error about 2^-22; results below 2^-126: 0
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float kbki_reciprocal(float x) { // hardware, 1 ulp
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// What exponents are taken relative to. A maximum of -inf would give (-inf) - (-inf) = NaN; relative to 0 all
// is well.
__device__ __forceinline__ float kbki_base(float m) { return m == -INFINITY ? 0.0f : m * KBKI_LOG2E; }
// exp(x - m), given base(m): one FMA and one exp2.
__device__ __forceinline__ float kbki_exp_from(float x, float base) {
    return kbki_exp2(fmaf(x, KBKI_LOG2E, -base));
}

struct kbki_pair {
    typedef kbki_pair type;
    float m, s;
    static __device__ __forceinline__ kbki_pair none() { return {-INFINITY, 0.0f}; }
    // m * log2(e) is rounded the same way here and in base(), so that the factors match what s was built
    // with.
    static __device__ __forceinline__ kbki_pair join(kbki_pair a, kbki_pair b) {
        kbki_pair r;
        r.m = fmaxf(a.m, b.m);
        float base = kbki_base(r.m);
        r.s = a.s * kbki_exp2(__fmul_rn(a.m, KBKI_LOG2E) - base) +
              b.s * kbki_exp2(__fmul_rn(b.m, KBKI_LOG2E) - base);
        return r;
    }
    static __device__ __forceinline__ kbki_pair shuffle(kbki_pair v, int d) {
        return {__shfl_xor_sync(~0u, v.m, d), __shfl_xor_sync(~0u, v.s, d)};
    }
    __device__ __forceinline__ void add(float x) {
        float top = fmaxf(m, x), base = kbki_base(top);
        s = s * kbki_exp2(__fmul_rn(m, KBKI_LOG2E) - base) + kbki_exp_from(x, base);
        m = top;
    }
    // log of the sum of exp(x - m): s is relative to the rounded m * log2(e), which the FMA gives back
    // exactly.
    __device__ __forceinline__ float log_sum() const {
        float base = m * KBKI_LOG2E;
        return KBKI_LN2 * (log2f(s) - fmaf(m, KBKI_LOG2E, -base));
    }
};

/*  One thread's share of a row: U packs are loaded before the first is used, then their maximum costs one
    rescaling for all of them. Elements past the end are -inf, which adds nothing. */
template <class T, int W, int U>
__device__ __forceinline__ kbki_pair kbki_row_pair(const T* row, int64_t cols, int t, int threads) {
    kbki_span sp = kbki_split<T, W>(row, cols);
    kbki_pair r = kbki_pair::none();
    int64_t one = kbki_single(sp, cols, t);
    if (one >= 0) r.add(kbki_float(row[one]));
    for (int64_t i = t; i < sp.packs; i += (int64_t)U * threads) {
        kbki_pack<T, W> v[U];
        float top = r.m;
#pragma unroll
        for (int u = 0; u < U; u++) {
            int64_t p = i + (int64_t)u * threads;
            v[u].fill(kbki_type<T>::minus_inf);
            if (p < sp.packs) v[u].load(row + sp.head + p * W);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            float f[W];
            v[u].get(f);
#pragma unroll
            for (int k = 0; k < W; k++) top = fmaxf(top, f[k]);
        }
        float base = kbki_base(top), s = r.s * kbki_exp2(__fmul_rn(r.m, KBKI_LOG2E) - base);
#pragma unroll
        for (int u = 0; u < U; u++) {
            float f[W];
            v[u].get(f);
#pragma unroll
            for (int k = 0; k < W; k++) s += kbki_exp_from(f[k], base);
        }
        r = {top, s};
    }
    return r;
}

/*  Ticket: each CTA leaves its part in memory, then takes a number; whoever takes the last one adds the parts
    in index order, so the result does not depend on who came when. The counter goes up by two: starting at 0
    it stays even, starting at all ones odd, so both are good starts. The last CTA puts it back to 0. All
    threads must call; the caller has written its part before. */
__device__ __forceinline__ bool kbki_last_cta(unsigned* counter, unsigned ctas) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned old = atomicAdd(counter, 2u);
        last = (old & 1) ? old + 3u == 2u * ctas : old + 2u == 2u * ctas;
        if (last) *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

// --- launching
KBK_FN const char* kbki_launched(void) {
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? NULL : cudaGetErrorString(e);
}
KBK_FN int kbki_sms(void) {
    int device = 0, n = 0;
    if (cudaGetDevice(&device) == cudaSuccess)
        cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device);
    return n > 0 ? n : 1;
}
KBK_FN int64_t kbki_ceil(int64_t n, int64_t d) { return (n + d - 1) / d; }
KBK_FN bool kbki_grid_ok(int64_t ctas) { return ctas <= 0x7FFFFFFF; }
KBK_FN bool kbki_aligned(const void* p, size_t to) { return (uintptr_t)p % to == 0; }
// Two addresses that reach a 16-byte boundary after the same number of elements.
KBK_FN bool kbki_congruent(const void* p, const void* q) { return (((uintptr_t)p ^ (uintptr_t)q) & 15) == 0; }
KBK_FN const char* kbki_check_dims(const kbk_shape* s) {
    return s->rows < 0 || s->cols < 0 || s->depth < 0 ? "a dimension is negative" : NULL;
}
KBK_FN const char* kbki_check_workspace(const kbk_args* a, size_t bytes) {
    if (!a->workspace || a->workspace_bytes < bytes) return "workspace missing or too small";
    return kbki_aligned(a->workspace, 256) ? NULL : "workspace is not aligned to 256 bytes";
}
// Leave to use *bytes of dynamic shared memory; *bytes becomes 0 where an SM has no such amount to give to a
// CTA.
template <class K> const char* kbki_want_shared(K* kernel, size_t* bytes) {
    int device = 0, most = 0;
    if (*bytes <= (40u << 10)) return NULL; // what a kernel may use unasked, less its static part
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (*bytes + 1024 > (size_t)most) return *bytes = 0, (const char*)NULL; // 1 KiB for the static part
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)*bytes);
    return e == cudaSuccess ? NULL : cudaGetErrorString(e);
}

/*  Which shape of kernel keeps a row in registers: P packs of W elements in each of TH threads. Few threads
    with many packs each waste the least on indexing and leave the most registers to data; short rows take a
    warp. */
template <int W_, int P_, int TH_> struct kbki_plan { static constexpr int W = W_, P = P_, TH = TH_; };
#define KBKI_LONG 8192      // packs per row that kbki_by_row can place
#define KBKI_LONG_ONES 8192 // elements per row that kbki_by_row_ones can place
template <int W, class F> const char* kbki_by_row(int64_t packs, F run) {
    if (packs <= 32) return run(kbki_plan<W, 1, 32>());
    if (packs <= 64) return run(kbki_plan<W, 2, 32>());
    if (packs <= 128) return run(kbki_plan<W, 4, 32>());
    if (packs <= 256) return run(kbki_plan<W, 8, 32>());
    if (packs <= 512) return run(kbki_plan<W, 4, 128>());
    if (packs <= 1024) return run(kbki_plan<W, 4, 256>());
    if (packs <= 2048) return run(kbki_plan<W, 8, 256>());
    if (packs <= 4096) return run(kbki_plan<W, 16, 256>());
    return run(kbki_plan<W, 16, 512>());
}
template <class F> const char* kbki_by_row_ones(int64_t cols, F run) {
    if (cols <= 256) return run(kbki_plan<1, 8, 32>());
    if (cols <= 2048) return run(kbki_plan<1, 8, 256>());
    return run(kbki_plan<1, 8, 1024>());
}
#define KBKI_TEXT_ALIGN "an address is not a multiple of the element size"
#define KBKI_TEXT_GRID "too many elements for one grid"
// Reduction the classical way, halving the active threads each time; R joins two values.
template <class R, int TH> __device__ float kbki_tree(float v, float* s) {
    int t = threadIdx.x;
    __syncthreads(); // s may still be read from the previous reduction
    s[t] = v;
    for (int half = TH / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) s[t] = R::join(s[t], s[t + half]);
    }
    __syncthreads();
    return s[0];
}

#endif // __CUDACC__

/*------------------------------------------------------------------------------------------------------------
  >>elementwise     y[i] = f(a[i], ...): the ladder that every operation of this kind climbs, and addition.
                    Public: kbk_add_fwd_*      Used by: >>activation takes its kernels
------------------------------------------------------------------------------------------------------------*/

/*  Every element-wise operation -----------------------------------------------------------------------------
    1 naive    one element per thread            <- slow: 2 or 4 bytes in flight per thread
    2 stride   device-sized grid, threads walk   <- no CTA turnover, indexing amortised; same bytes in flight
    3 vec      16-byte accesses                  <- 4 or 8 elements per instruction, 16 bytes in flight
    4 unroll   2 to 4 packs before first use     <- 64 bytes in flight per thread, 128 KiB in a full SM
    bound by   memory: compare with bytes / copy bandwidth
    Addresses: 3 and 4 take single elements up to the first 16-byte boundary and after the last; inputs and
    outputs that reach a boundary at different elements are taken one element at a time. */
KBK_FN int64_t kbki_map_units(const kbk_shape* s) { return s->rows * s->cols; }
KBK_FN int kbki_map1_tensors(const kbk_shape* s, kbk_tensor* t) {
    int64_t n = s->rows * s->cols;
    t[0] = kbki_in("x", n, 1);
    t[1] = kbki_out("y", KBK_T, n, 1, 0);
    return 2;
}
KBK_FN int kbki_map2_tensors(const kbk_shape* s, kbk_tensor* t) {
    int64_t n = s->rows * s->cols;
    t[0] = kbki_in("a", n, 1);
    t[1] = kbki_in("b", n, 1);
    t[2] = kbki_out("y", KBK_T, n, 1, 0);
    return 3;
}

#ifdef __CUDACC__
template <class T> struct kbki_map_io {
    const T* in[3];
    T* out;
    int64_t n, packs;
    int head, tail;
};

// F: static constexpr int inputs, packs; static float of(a, b, c).
template <class T, class F>
__device__ __forceinline__ void kbki_map_one(const kbki_map_io<T>& io, int64_t i) {
    float a = kbki_float(io.in[0][i]), b = F::inputs > 1 ? kbki_float(io.in[1][i]) : 0.0f;
    io.out[i] = kbki_type<T>::from(F::of(a, b, F::inputs > 2 ? kbki_float(io.in[2][i]) : 0.0f));
}

template <class T, class F> __global__ void kbki_map_naive_k(kbki_map_io<T> io) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < io.n) kbki_map_one<T, F>(io, i);
}

template <class T, class F> __global__ void kbki_map_stride_k(kbki_map_io<T> io) {
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < io.n; i += step)
        kbki_map_one<T, F>(io, i);
}

// U packs per thread and input, a CTA's width apart, so that every access of a warp is one contiguous 512
// bytes.
template <class T, class F, int W, int U>
__global__ void __launch_bounds__(256) kbki_map_packs_k(kbki_map_io<T> io) {
    kbki_pack<T, W> v[F::inputs][U], y;
    int64_t first = (int64_t)blockIdx.x * (256 * U) + threadIdx.x;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int k = 0; k < F::inputs; k++)
            if (first + u * 256 < io.packs) v[k][u].load(io.in[k] + io.head + (first + u * 256) * W);
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + u * 256 >= io.packs) continue;
        float f[3][W] = {};
#pragma unroll
        for (int k = 0; k < F::inputs; k++) v[k][u].get(f[k]);
#pragma unroll
        for (int j = 0; j < W; j++) f[0][j] = F::of(f[0][j], f[1][j], f[2][j]);
        y.set(f[0]);
        y.store(io.out + io.head + (first + u * 256) * W);
    }
    if (blockIdx.x == 0) {
        kbki_span edges = {io.packs, io.head, io.tail};
        int64_t one = kbki_single(edges, io.n, threadIdx.x);
        if (one >= 0) kbki_map_one<T, F>(io, one);
    }
}

template <class T, class F> const char* kbki_map_args(const kbk_args* a, kbki_map_io<T>* io, bool* vector) {
    if (kbki_check_dims(&a->s)) return kbki_check_dims(&a->s);
    io->n = a->s.rows * a->s.cols;
    io->out = (T*)a->out[0];
    *vector = true;
    if (!kbki_aligned(io->out, sizeof(T))) return KBKI_TEXT_ALIGN;
    for (int k = 0; k < 3; k++) {
        io->in[k] = k < F::inputs ? (const T*)a->in[k] : NULL;
        if (!kbki_aligned(io->in[k], sizeof(T))) return KBKI_TEXT_ALIGN;
        if (k < F::inputs && !kbki_congruent(io->in[k], io->out)) *vector = false;
    }
    kbki_span sp = kbki_split<T, KBKI_WIDTH(T)>(io->out, io->n);
    io->packs = sp.packs, io->head = sp.head, io->tail = sp.tail;
    return NULL;
}

template <class T, class F> const char* kbki_map_naive(const kbk_args* a, kbk_stream stream) {
    kbki_map_io<T> io;
    bool vector;
    const char* why = kbki_map_args<T, F>(a, &io, &vector);
    if (why || io.n == 0) return why;
    if (!kbki_grid_ok(kbki_ceil(io.n, 256))) return KBKI_TEXT_GRID;
    kbki_map_naive_k<T, F><<<(unsigned)kbki_ceil(io.n, 256), 256, 0, stream>>>(io);
    return kbki_launched();
}

template <class T, class F> const char* kbki_map_stride(const kbk_args* a, kbk_stream stream) {
    kbki_map_io<T> io;
    bool vector;
    const char* why = kbki_map_args<T, F>(a, &io, &vector);
    if (why || io.n == 0) return why;
    int64_t ctas = kbki_ceil(io.n, 256), full = (int64_t)kbki_sms() * 8; // 8 x 256 threads fill an SM
    kbki_map_stride_k<T, F><<<(unsigned)(ctas < full ? ctas : full), 256, 0, stream>>>(io);
    return kbki_launched();
}

template <class T, class F, int U> const char* kbki_map_packs(const kbk_args* a, kbk_stream stream) {
    kbki_map_io<T> io;
    bool vector;
    const char* why = kbki_map_args<T, F>(a, &io, &vector);
    if (why || io.n == 0) return why;
    if (!vector) io.packs = io.n, io.head = io.tail = 0;
    int64_t ctas =
        kbki_ceil(io.packs ? io.packs : 1, 256 * U); // no whole pack: one CTA for the single elements
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    if (vector)
        kbki_map_packs_k<T, F, KBKI_WIDTH(T), U><<<(unsigned)ctas, 256, 0, stream>>>(io);
    else
        kbki_map_packs_k<T, F, 1, U><<<(unsigned)ctas, 256, 0, stream>>>(io);
    return kbki_launched();
}
#endif // __CUDACC__

/*  add fwd --------------------------------------------------------------------------------------------------
    y = a + b            a, b, y: n = rows * cols
    flops  n
    bytes  3*n*s
    check  f32 bit-exact (double rounded once is the same); f16, bf16 1 ulp, norm-wise 3e-4, 2.5e-3
    ladder as above; unroll has two packs of each input in flight */
#define KBK_CHECK_add_fwd KBKI_CHECKS(0, 0, 0, 3e-4, 1, 0, 2.5e-3, 1, 0)
KBK_FN int kbk_add_fwd_tensors(const kbk_shape* s, kbk_tensor* t) { return kbki_map2_tensors(s, t); }
KBK_FN int64_t kbk_add_fwd_units(const kbk_shape* s) { return kbki_map_units(s); }
KBK_FN double kbk_add_fwd_flops(const kbk_shape* s) { return kbki_n(s); }
KBK_FN double kbk_add_fwd_bytes(const kbk_shape* s) { return 3 * kbki_n(s) * s->elem; }
KBK_FN void kbk_add_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                            int64_t u1) {
    (void)s;
    for (int64_t i = u0; i < u1; i++) out[0][i - u0] = in[0][i] + in[1][i];
}

#ifdef __CUDACC__
struct kbki_add {
    static constexpr int inputs = 2, packs = 2;
    static __device__ __forceinline__ float of(float a, float b, float) { return a + b; }
};
template <class T> const char* kbk_add_fwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_map_naive<T, kbki_add>(a, st);
}
template <class T> const char* kbk_add_fwd_stride(const kbk_args* a, kbk_stream st) {
    return kbki_map_stride<T, kbki_add>(a, st);
}
template <class T> const char* kbk_add_fwd_vec(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_add, 1>(a, st);
}
template <class T> const char* kbk_add_fwd_unroll(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_add, kbki_add::packs>(a, st);
}
#endif // __CUDACC__

/*------------------------------------------------------------------------------------------------------------
  >>activation     GELU in its two forms, and SiLU. At 16 bits the special functions, not memory, set the
  pace.
                   Public: kbk_gelu_erf_*, kbk_gelu_tanh_*, kbk_silu_*      Used by: the table
------------------------------------------------------------------------------------------------------------*/

/*  gelu_erf fwd, gelu_tanh fwd, silu fwd --------------------------------------------------------------------
    gelu_erf   y = 0.5 x (1 + erf(x / sqrt 2))
    gelu_tanh  y = 0.5 x (1 + tanh(k x (1 + a x^2)))     k = sqrt(2 / pi), a = 0.044715
    silu       y = x / (1 + exp(-x))                     x, y: n = rows * cols
    flops  5*n     gelu_erf: / sqrt 2, erf, + 1, 0.5, x
           9*n     gelu_tanh: x^2, a, + 1, x, k, tanh, + 1, 0.5, x
           3*n     silu: exp, + 1, /
    bytes  2*n*s
    check  f32 norm-wise 1e-6, 2 ulp + 2e-6; 16-bit 1 ulp + 2e-6, norm-wise 3e-4 (f16), 2.5e-3 (bf16). The two
           GELUs differ by 4.7e-4 at x = -2.7: they are never compared with each other
    1 to 4     as every element-wise operation. 1 + erf(x) and 1 + tanh(x) lose all digits for x << 0;
               erfc and the logistic form x / (1 + exp(-2u)) of the same formulas keep them
    6 approx   one exp2 and one reciprocal      <- a 16-bit element leaves time for about 29 f32 instructions;
               erfc or an exact division alone take more. The tanh instruction is off by up to 2e-4 near 1,
               which the tail cannot bear
    bound by   memory in f32 and from approx on; instructions before that at 16 bits */
#define KBKI_CHECK_ACTIVATION KBKI_CHECKS(1e-6, 2, 2e-6, 3e-4, 1, 2e-6, 2.5e-3, 1, 2e-6)
#define KBK_CHECK_gelu_erf_fwd KBKI_CHECK_ACTIVATION
#define KBK_CHECK_gelu_tanh_fwd KBKI_CHECK_ACTIVATION
#define KBK_CHECK_silu_fwd KBKI_CHECK_ACTIVATION
#define KBKI_GELU_K 0.7978845608028654
#define KBKI_GELU_A 0.044715

KBK_FN int kbk_gelu_erf_fwd_tensors(const kbk_shape* s, kbk_tensor* t) { return kbki_map1_tensors(s, t); }
KBK_FN int kbk_gelu_tanh_fwd_tensors(const kbk_shape* s, kbk_tensor* t) { return kbki_map1_tensors(s, t); }
KBK_FN int kbk_silu_fwd_tensors(const kbk_shape* s, kbk_tensor* t) { return kbki_map1_tensors(s, t); }
KBK_FN int64_t kbk_gelu_erf_fwd_units(const kbk_shape* s) { return kbki_map_units(s); }
KBK_FN int64_t kbk_gelu_tanh_fwd_units(const kbk_shape* s) { return kbki_map_units(s); }
KBK_FN int64_t kbk_silu_fwd_units(const kbk_shape* s) { return kbki_map_units(s); }
KBK_FN double kbk_gelu_erf_fwd_flops(const kbk_shape* s) { return 5 * kbki_n(s); }
KBK_FN double kbk_gelu_tanh_fwd_flops(const kbk_shape* s) { return 9 * kbki_n(s); }
KBK_FN double kbk_silu_fwd_flops(const kbk_shape* s) { return 3 * kbki_n(s); }
KBK_FN double kbk_gelu_erf_fwd_bytes(const kbk_shape* s) { return 2 * kbki_n(s) * s->elem; }
KBK_FN double kbk_gelu_tanh_fwd_bytes(const kbk_shape* s) { return 2 * kbki_n(s) * s->elem; }
KBK_FN double kbk_silu_fwd_bytes(const kbk_shape* s) { return 2 * kbki_n(s) * s->elem; }

KBK_FN void kbk_gelu_erf_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                                 int64_t u1) {
    (void)s;
    for (int64_t i = u0; i < u1; i++) out[0][i - u0] = 0.5 * in[0][i] * erfc(-in[0][i] * 0.7071067811865476);
}
KBK_FN void kbk_gelu_tanh_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                                  int64_t u1) {
    (void)s;
    for (int64_t i = u0; i < u1; i++) {
        double x = in[0][i], u = KBKI_GELU_K * x * (1 + KBKI_GELU_A * x * x);
        out[0][i - u0] = 0.5 * x * (1 + tanh(u));
    }
}
KBK_FN void kbk_silu_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                             int64_t u1) {
    (void)s;
    for (int64_t i = u0; i < u1; i++) out[0][i - u0] = in[0][i] / (1 + exp(-in[0][i]));
}

#ifdef __CUDACC__
struct kbki_gelu_erf {
    static constexpr int inputs = 1, packs = 4;
    static __device__ __forceinline__ float of(float x, float, float) {
        return 0.5f * x * erfcf(x * -0.70710678f);
    }
};
struct kbki_gelu_tanh {
    static constexpr int inputs = 1, packs = 4;
    static __device__ __forceinline__ float of(float x, float, float) {
        float u2 = (float)(-2 * KBKI_GELU_K) * x * fmaf((float)KBKI_GELU_A * x, x, 1.0f);
        return x / (1.0f + expf(u2));
    }
};
struct kbki_silu {
    static constexpr int inputs = 1, packs = 4;
    static __device__ __forceinline__ float of(float x, float, float) { return x / (1.0f + expf(-x)); }
};

// x / (1 + 2^q): no overflow to NaN anywhere, since 2^q = inf gives 1 / inf = 0.
__device__ __forceinline__ float kbki_logistic(float x, float q) {
    return x * kbki_reciprocal(1.0f + kbki_exp2(q));
}
struct kbki_gelu_erf_fast {
    static constexpr int inputs = 1, packs = 4;
    // q(x) = log2(Phi(-x) / Phi(x)) is odd. Minimax fit of q(x) / x in x^2 over |x| <= 5.6, weighted so that
    // y is off by at most 0.45 * (2e-6 + 2.2e-4 |y|); beyond, q runs off to the right side, where y is 0 or x
    // to every digit.
    static __device__ __forceinline__ float of(float x, float, float) {
        float z = x * x, p = -1.9236e-6f;
        p = fmaf(p, z, 5.55812588e-5f);
        p = fmaf(p, z, 6.158157e-4f);
        p = fmaf(p, z, -0.105928304f);
        p = fmaf(p, z, -2.30153658f);
        return kbki_logistic(x, x * p);
    }
};
struct kbki_gelu_tanh_fast {
    static constexpr int inputs = 1, packs = 4;
    static __device__ __forceinline__ float of(float x, float, float) {
        constexpr double c = -2 * KBKI_GELU_K * 1.4426950408889634;
        return kbki_logistic(x, x * fmaf(x * x, (float)(c * KBKI_GELU_A), (float)c));
    }
};
struct kbki_silu_fast {
    static constexpr int inputs = 1, packs = 4;
    static __device__ __forceinline__ float of(float x, float, float) {
        return kbki_logistic(x, x * -KBKI_LOG2E);
    }
};

template <class T> const char* kbk_gelu_erf_fwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_map_naive<T, kbki_gelu_erf>(a, st);
}
template <class T> const char* kbk_gelu_erf_fwd_stride(const kbk_args* a, kbk_stream st) {
    return kbki_map_stride<T, kbki_gelu_erf>(a, st);
}
template <class T> const char* kbk_gelu_erf_fwd_vec(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_gelu_erf, 1>(a, st);
}
template <class T> const char* kbk_gelu_erf_fwd_unroll(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_gelu_erf, kbki_gelu_erf::packs>(a, st);
}
template <class T> const char* kbk_gelu_erf_fwd_approx(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_gelu_erf_fast, kbki_gelu_erf_fast::packs>(a, st);
}
template <class T> const char* kbk_gelu_tanh_fwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_map_naive<T, kbki_gelu_tanh>(a, st);
}
template <class T> const char* kbk_gelu_tanh_fwd_stride(const kbk_args* a, kbk_stream st) {
    return kbki_map_stride<T, kbki_gelu_tanh>(a, st);
}
template <class T> const char* kbk_gelu_tanh_fwd_vec(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_gelu_tanh, 1>(a, st);
}
template <class T> const char* kbk_gelu_tanh_fwd_unroll(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_gelu_tanh, kbki_gelu_tanh::packs>(a, st);
}
template <class T> const char* kbk_gelu_tanh_fwd_approx(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_gelu_tanh_fast, kbki_gelu_tanh_fast::packs>(a, st);
}
template <class T> const char* kbk_silu_fwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_map_naive<T, kbki_silu>(a, st);
}
template <class T> const char* kbk_silu_fwd_stride(const kbk_args* a, kbk_stream st) {
    return kbki_map_stride<T, kbki_silu>(a, st);
}
template <class T> const char* kbk_silu_fwd_vec(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_silu, 1>(a, st);
}
template <class T> const char* kbk_silu_fwd_unroll(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_silu, kbki_silu::packs>(a, st);
}
template <class T> const char* kbk_silu_fwd_approx(const kbk_args* a, kbk_stream st) {
    return kbki_map_packs<T, kbki_silu_fast, kbki_silu_fast::packs>(a, st);
}
#endif // __CUDACC__

/*------------------------------------------------------------------------------------------------------------
  >>softmax     Softmax over the last axis: from three reads of a row to one.
                Public: kbk_softmax_fwd_*      Used by: the table
------------------------------------------------------------------------------------------------------------*/

/*  softmax fwd ----------------------------------------------------------------------------------------------
    y[r,c] = exp(x[r,c] - m[r]) / sum_c exp(x[r,c] - m[r])     m[r] = max_c x[r,c]     x, y: R x C
    flops  5*R*C + R    max 1, subtract 1, exp 1, sum 1, scale 1 per element; one reciprocal per row
    bytes  2*R*C*s
    check  norm-wise f32 2e-6, f16 3e-4, bf16 2.5e-3; 32 ulp of the row scale in f32, 2 ulp at 16 bits
    1 naive    thread per row                        <- slow: neighbours are C elements apart; three reads
    2 block    CTA per row, tree in shared memory    <- coalesced; still three reads, and 18 barriers
    3 online   warp per row, running (max, sum)      <- two reads: one sweep finds maximum and sum
    4 onepass  16-byte accesses, row in registers    <- one read, up to 128 KiB per row; beyond, two reads
    5 shared   row in shared memory                  <- one read, up to 227 KiB; more rows at work per SM
    bound by   memory: compare with bytes / copy bandwidth. A row that is -inf throughout gives NaN, as the
               formula does; x and y that reach a 16-byte boundary at different elements are taken one element
               at a time */
#define KBK_CHECK_softmax_fwd KBKI_CHECKS(2e-6, 32, 0, 3e-4, 2, 0, 2.5e-3, 2, 0)
KBK_FN int kbk_softmax_fwd_tensors(const kbk_shape* s, kbk_tensor* t) {
    t[0] = kbki_in("x", s->rows * s->cols, s->cols);
    t[1] = kbki_out("y", KBK_T, s->rows * s->cols, s->cols, 0);
    return 2;
}
KBK_FN int64_t kbk_softmax_fwd_units(const kbk_shape* s) { return s->rows; }
KBK_FN double kbk_softmax_fwd_flops(const kbk_shape* s) { return 5 * kbki_n(s) + (double)s->rows; }
KBK_FN double kbk_softmax_fwd_bytes(const kbk_shape* s) { return 2 * kbki_n(s) * s->elem; }
KBK_FN void kbk_softmax_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                                int64_t u1) {
    int64_t n = s->cols;
    for (int64_t r = u0; r < u1; r++) {
        const double* x = in[0] + r * n;
        double *y = out[0] + (r - u0) * n, top = -HUGE_VAL, sum = 0;
        for (int64_t c = 0; c < n; c++) top = x[c] > top ? x[c] : top;
        for (int64_t c = 0; c < n; c++) sum += y[c] = exp(x[c] - top);
        for (int64_t c = 0; c < n; c++) y[c] /= sum;
    }
}

#ifdef __CUDACC__
template <class T> __global__ void kbk_softmax_fwd_naive_k(const T* x, T* y, int64_t rows, int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += row * cols, y += row * cols;
    float top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; c++) top = fmaxf(top, kbki_float(x[c]));
    for (int64_t c = 0; c < cols; c++) sum += expf(kbki_float(x[c]) - top);
    for (int64_t c = 0; c < cols; c++) y[c] = kbki_type<T>::from(expf(kbki_float(x[c]) - top) / sum);
}

template <class T>
__global__ void __launch_bounds__(256) kbk_softmax_fwd_block_k(const T* x, T* y, int64_t rows, int64_t cols) {
    __shared__ float s[256];
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    float top = -INFINITY, sum = 0;
    for (int64_t c = threadIdx.x; c < cols; c += 256) top = fmaxf(top, kbki_float(x[c]));
    top = kbki_tree<kbki_max, 256>(top, s);
    for (int64_t c = threadIdx.x; c < cols; c += 256) sum += expf(kbki_float(x[c]) - top);
    sum = kbki_tree<kbki_sum<float>, 256>(sum, s);
    for (int64_t c = threadIdx.x; c < cols; c += 256)
        y[c] = kbki_type<T>::from(expf(kbki_float(x[c]) - top) / sum);
}

template <class T>
__global__ void __launch_bounds__(128)
    kbk_softmax_fwd_online_k(const T* x, T* y, int64_t rows, int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= rows) return;
    x += row * cols, y += row * cols;
    kbki_pair p = kbki_pair::none();
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32) p.add(kbki_float(x[c]));
    p = kbki_warp_all<kbki_pair>(p);
    float base = kbki_base(p.m), inv = 1.0f / p.s;
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32)
        y[c] = kbki_type<T>::from(kbki_exp_from(kbki_float(x[c]), base) * inv);
}

/*  P packs per thread, TH threads per row: 32 means four rows per CTA, else one. The row stays packed in
    registers; at 16 bits the second exp2 per element is cheaper than the registers that would save it. A
    whole row of -inf sums to 0: 0 * (1 / 0) is the NaN that the formula gives. */
template <class T, int W, int P, int TH>
__global__ void __launch_bounds__(TH == 32 ? 128 : TH, P* TH == 4096 ? 2 : 1)
    kbk_softmax_fwd_onepass_k(const T* x, T* y, int64_t rows, int64_t cols) {
    __shared__ float slots[2][32];
    int t = TH == 32 ? threadIdx.x % 32 : threadIdx.x;
    int64_t row = TH == 32 ? (int64_t)blockIdx.x * 4 + threadIdx.x / 32 : blockIdx.x;
    if (row >= rows) return;
    x += row * cols, y += row * cols;
    kbki_span sp = kbki_split<T, W>(x, cols);
    int packs = (int)sp.packs, one = (int)kbki_single(sp, cols, t);
    kbki_pack<T, W> v[P];
    float f[W], edge = -INFINITY, top, sum;
#pragma unroll
    for (int u = 0; u < P; u++) {
        v[u].fill(kbki_type<T>::minus_inf);
        if (t + u * TH < packs) v[u].load(x + sp.head + (t + u * TH) * W);
    }
    if (one >= 0) edge = kbki_float(x[one]);
    top = edge;
#pragma unroll
    for (int u = 0; u < P; u++) {
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < W; k++) top = fmaxf(top, f[k]);
        v[u].forget();
    }
    float base = kbki_base(kbki_all<kbki_max, TH>(top, slots[0]));
    sum = kbki_exp_from(edge, base);
#pragma unroll
    for (int u = 0; u < P; u++) {
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < W; k++) sum += f[k] = kbki_exp_from(f[k], base);
        if (sizeof(T) == 4) v[u].set(f);
        v[u].forget();
    }
    float inv = 1.0f / kbki_all<kbki_sum<float>, TH>(sum, slots[1]);
#pragma unroll
    for (int u = 0; u < P; u++) {
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] = (sizeof(T) == 4 ? f[k] : kbki_exp_from(f[k], base)) * inv;
        v[u].set(f);
        if (t + u * TH < packs) v[u].store(y + sp.head + (t + u * TH) * W);
    }
    if (one >= 0) y[one] = kbki_type<T>::from(kbki_exp_from(edge, base) * inv);
}

// Rows that fit nowhere: two reads, the second one backwards, while the end of the row is still in the L2
// cache.
template <class T, int W>
__global__ void __launch_bounds__(512) kbki_softmax_fwd_long_k(const T* x, T* y, int64_t rows, int64_t cols) {
    __shared__ kbki_pair slots[32];
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    int t = threadIdx.x;
    kbki_span sp = kbki_split<T, W>(x, cols);
    kbki_pair p = kbki_all<kbki_pair, 512>(kbki_row_pair<T, W, 4>(x, cols, t, 512), slots);
    float base = kbki_base(p.m), inv = 1.0f / p.s;
    int64_t one = kbki_single(sp, cols, t);
    if (one >= 0) y[one] = kbki_type<T>::from(kbki_exp_from(kbki_float(x[one]), base) * inv);
#pragma unroll 4
    for (int64_t i = sp.packs - 1 - t; i >= 0; i -= 512) {
        kbki_pack<T, W> v;
        float f[W];
        v.load(x + sp.head + i * W);
        v.get(f);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] = kbki_exp_from(f[k], base) * inv;
        v.set(f);
        v.store(y + sp.head + i * W);
    }
}

/*  The copy in shared memory lies as the row does relative to 16 bytes, so the same split serves both. Each
    thread comes back to the packs it brought itself: the barriers of the two reductions are the only ones. */
template <class T, int W>
__global__ void __launch_bounds__(512)
    kbk_softmax_fwd_shared_k(const T* x, T* y, int64_t rows, int64_t cols) {
    extern __shared__ uint4 kbki_row[];
    __shared__ float slots[2][32];
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    int t = threadIdx.x;
    kbki_span sp = kbki_split<T, W>(x, cols);
    T* copy = reinterpret_cast<T*>(kbki_row) + ((uintptr_t)x & 15) / sizeof(T) + sp.head;
    int packs = (int)sp.packs, one = (int)kbki_single(sp, cols, t);
    float f[W], edge = one >= 0 ? kbki_float(x[one]) : -INFINITY, top = edge;
#pragma unroll 4
    for (int i = t; i < packs; i += 512) {
        kbki_pack<T, W> v;
        v.load(x + sp.head + i * W);
        v.store_cached(copy + i * W);
        v.get(f);
#pragma unroll
        for (int k = 0; k < W; k++) top = fmaxf(top, f[k]);
    }
    float base = kbki_base(kbki_all<kbki_max, 512>(top, slots[0])), sum = kbki_exp_from(edge, base);
#pragma unroll 2
    for (int i = t; i < packs; i += 512) {
        kbki_pack<T, W> v = *reinterpret_cast<kbki_pack<T, W>*>(copy + i * W);
        v.get(f);
#pragma unroll
        for (int k = 0; k < W; k++) sum += kbki_exp_from(f[k], base);
    }
    float inv = 1.0f / kbki_all<kbki_sum<float>, 512>(sum, slots[1]);
#pragma unroll 2
    for (int i = t; i < packs; i += 512) {
        kbki_pack<T, W> v = *reinterpret_cast<kbki_pack<T, W>*>(copy + i * W);
        v.get(f);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] = kbki_exp_from(f[k], base) * inv;
        v.set(f);
        v.store(y + sp.head + i * W);
    }
    if (one >= 0) y[one] = kbki_type<T>::from(kbki_exp_from(edge, base) * inv);
}

template <class T> struct kbki_xy {
    const T* x;
    T* y;
    int64_t rows, cols;
    bool vector;
};
template <class T> const char* kbki_xy_args(const kbk_args* a, int64_t rows_per_cta, kbki_xy<T>* io) {
    *io = {(const T*)a->in[0], (T*)a->out[0], a->s.rows, a->s.cols, kbki_congruent(a->in[0], a->out[0])};
    if (!kbki_aligned(io->x, sizeof(T)) || !kbki_aligned(io->y, sizeof(T))) return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(kbki_ceil(io->rows, rows_per_cta))) return KBKI_TEXT_GRID;
    return kbki_check_dims(&a->s);
}

template <class T> const char* kbk_softmax_fwd_naive(const kbk_args* a, kbk_stream st) {
    kbki_xy<T> io;
    const char* why = kbki_xy_args(a, 128, &io);
    if (why || io.rows * io.cols == 0) return why;
    kbk_softmax_fwd_naive_k<T>
        <<<(unsigned)kbki_ceil(io.rows, 128), 128, 0, st>>>(io.x, io.y, io.rows, io.cols);
    return kbki_launched();
}
template <class T> const char* kbk_softmax_fwd_block(const kbk_args* a, kbk_stream st) {
    kbki_xy<T> io;
    const char* why = kbki_xy_args(a, 1, &io);
    if (why || io.rows * io.cols == 0) return why;
    kbk_softmax_fwd_block_k<T><<<(unsigned)io.rows, 256, 0, st>>>(io.x, io.y, io.rows, io.cols);
    return kbki_launched();
}
template <class T> const char* kbk_softmax_fwd_online(const kbk_args* a, kbk_stream st) {
    kbki_xy<T> io;
    const char* why = kbki_xy_args(a, 4, &io);
    if (why || io.rows * io.cols == 0) return why;
    kbk_softmax_fwd_online_k<T>
        <<<(unsigned)kbki_ceil(io.rows, 4), 128, 0, st>>>(io.x, io.y, io.rows, io.cols);
    return kbki_launched();
}
template <class T, int W> const char* kbki_softmax_long(const kbki_xy<T>& io, kbk_stream st) {
    kbki_softmax_fwd_long_k<T, W><<<(unsigned)io.rows, 512, 0, st>>>(io.x, io.y, io.rows, io.cols);
    return kbki_launched();
}
template <class T> const char* kbk_softmax_fwd_onepass(const kbk_args* a, kbk_stream st) {
    kbki_xy<T> io;
    const char* why = kbki_xy_args(a, 1, &io);
    if (why || io.rows * io.cols == 0) return why;
    auto run = [&](auto plan) {
        constexpr int W = decltype(plan)::W, P = decltype(plan)::P, TH = decltype(plan)::TH;
        unsigned ctas = (unsigned)(TH == 32 ? kbki_ceil(io.rows, 4) : io.rows);
        kbk_softmax_fwd_onepass_k<T, W, P, TH>
            <<<ctas, TH == 32 ? 128 : TH, 0, st>>>(io.x, io.y, io.rows, io.cols);
        return kbki_launched();
    };
    if (!io.vector)
        return io.cols <= KBKI_LONG_ONES ? kbki_by_row_ones(io.cols, run) : kbki_softmax_long<T, 1>(io, st);
    int64_t packs = io.cols / KBKI_WIDTH(T);
    return packs <= KBKI_LONG ? kbki_by_row<KBKI_WIDTH(T)>(packs, run)
                              : kbki_softmax_long<T, KBKI_WIDTH(T)>(io, st);
}
template <class T, int W> const char* kbki_softmax_shared(const kbki_xy<T>& io, kbk_stream st) {
    size_t bytes = (size_t)io.cols * sizeof(T) + 16;
    const char* why = kbki_want_shared(kbk_softmax_fwd_shared_k<T, W>, &bytes);
    if (why) return why;
    if (!bytes) return kbki_softmax_long<T, W>(io, st);
    kbk_softmax_fwd_shared_k<T, W><<<(unsigned)io.rows, 512, bytes, st>>>(io.x, io.y, io.rows, io.cols);
    return kbki_launched();
}
template <class T> const char* kbk_softmax_fwd_shared(const kbk_args* a, kbk_stream st) {
    kbki_xy<T> io;
    const char* why = kbki_xy_args(a, 1, &io);
    if (why || io.rows * io.cols == 0) return why;
    return io.vector ? kbki_softmax_shared<T, KBKI_WIDTH(T)>(io, st) : kbki_softmax_shared<T, 1>(io, st);
}
#endif // __CUDACC__

/*------------------------------------------------------------------------------------------------------------
  >>layernorm     Layer normalisation over the last axis, with the true two-pass variance.
                  Public: kbk_layernorm_fwd_*      Used by: the table
------------------------------------------------------------------------------------------------------------*/

/*  layernorm fwd --------------------------------------------------------------------------------------------
    y[r,c] = (x[r,c] - mean[r]) * rstd[r] * w[c] + b[c]     rstd[r] = 1 / sqrt(mean_c((x - mean)^2) + eps),
    eps 1e-5
    x, y: R x C   w, b: C   mean, rstd: R, f32, written where the pointer is not null
    flops  7*R*C + 4*R   sum 1, centre 1, square-add 2, scale 1, weight 1, bias 1 per element; per row 1/C
           twice, +eps, rsqrt
    bytes  (2*R*C + 2*C)*s + 8*R
    check  norm-wise f32 3e-6, f16 3e-4, bf16 2.5e-3; 64 ulp of the row scale in f32, 2 ulp at 16 bits. In f32
           the bound grows with |mean| * rstd / 15, which allows 2e-4 at mean = 1000, deviation 1: an f32 mean
           is good to 6e-5 there, while E[x^2] - E[x]^2 misses by 1e-2 and more
    1 naive    thread per row; sums are of x - x[r,0], to stay small   <- slow: uncoalesced, three reads
    2 warp     warp per row, shuffles                    <- coalesced; three reads, two of them from cache
    3 onepass  16-byte accesses, row in registers        <- one read, up to 128 KiB per row; beyond, three
    bound by   memory: compare with bytes / copy bandwidth */
#define KBK_CHECK_layernorm_fwd KBKI_CHECKS(3e-6, 64, 0, 3e-4, 2, 0, 2.5e-3, 2, 0)
KBK_FN int kbk_layernorm_fwd_tensors(const kbk_shape* s, kbk_tensor* t) {
    t[0] = kbki_in("x", s->rows * s->cols, s->cols);
    t[1] = kbki_in("w", s->cols, 0);
    t[2] = kbki_in("b", s->cols, 0);
    t[3] = kbki_out("y", KBK_T, s->rows * s->cols, s->cols, 1);
    t[4] = kbki_out("mean", KBK_KF32, s->rows, 1, 1);
    t[5] = kbki_out("rstd", KBK_KF32, s->rows, 1, 0);
    return 6;
}
KBK_FN int64_t kbk_layernorm_fwd_units(const kbk_shape* s) { return s->rows; }
KBK_FN double kbk_layernorm_fwd_flops(const kbk_shape* s) { return 7 * kbki_n(s) + 4 * (double)s->rows; }
KBK_FN double kbk_layernorm_fwd_bytes(const kbk_shape* s) {
    return (2 * kbki_n(s) + 2 * (double)s->cols) * s->elem + 8 * (double)s->rows;
}
KBK_FN void kbk_layernorm_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                                  int64_t u1) {
    int64_t n = s->cols;
    for (int64_t r = u0; r < u1; r++) {
        const double* x = in[0] + r * n;
        double mean = 0, var = 0, size = 0;
        for (int64_t c = 0; c < n; c++) mean += x[c], size += fabs(x[c]);
        mean /= (double)n, size /= (double)n;
        for (int64_t c = 0; c < n; c++) var += (x[c] - mean) * (x[c] - mean);
        double rstd = 1 / sqrt(var / (double)n + KBK_EPS);
        int64_t u = r - u0;
        for (int64_t c = 0; out[0] && c < n; c++)
            out[0][u * n + c] = (x[c] - mean) * rstd * in[1][c] + in[2][c];
        if (out[1]) out[1][u] = mean;
        if (out[2]) out[2][u] = rstd;
        if (out[KBK_OUTS]) out[KBK_OUTS][u] = s->elem == 4 ? fabs(mean) * rstd / 15 : 0;
        if (out[KBK_OUTS + 1])
            out[KBK_OUTS + 1][u] = size; // a mean near 0 is no better than what it was summed from
    }
}

#ifdef __CUDACC__
template <class T> struct kbki_norm {
    const T *x, *w, *b;
    T* y;
    float *mean, *rstd;
    int64_t rows, cols;
    bool vector;
    // first: the mean before its correction, which is NaN where the mean is infinite.
    __device__ __forceinline__ void stats(int64_t row, float first, float2 m) const {
        if (mean) mean[row] = m.x == m.x ? first + m.x : first;
        if (rstd) rstd[row] = m.y;
    }
    __device__ __forceinline__ void one(int64_t row, int64_t c, float xhat) const {
        y[row * cols + c] = kbki_type<T>::from(fmaf(xhat, kbki_float(w[c]), kbki_float(b[c])));
    }
};
// Deviations d from a first mean give the rest of the mean and the variance at once: s.x = sum d, s.y = sum
// d^2.
__device__ __forceinline__ float2 kbki_moments(float2 s, int64_t cols) {
    float rest = s.x / (float)cols, var = s.y / (float)cols - rest * rest;
    return make_float2(rest, rsqrtf((var < 0 ? 0 : var) + (float)KBK_EPS)); // a NaN stays one
}

template <class T> __global__ void kbk_layernorm_fwd_naive_k(kbki_norm<T> io) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= io.rows) return;
    const T* x = io.x + row * io.cols;
    float first = isinf(kbki_float(x[0])) ? 0 : kbki_float(x[0]), mean = 0;
    float2 s = make_float2(0, 0);
    for (int64_t c = 0; c < io.cols; c++) mean += kbki_float(x[c]) - first;
    mean = first + mean / (float)io.cols;
    for (int64_t c = 0; c < io.cols; c++) {
        float d = kbki_float(x[c]) - mean;
        s.x += d, s.y = fmaf(d, d, s.y);
    }
    float2 m = kbki_moments(s, io.cols);
    for (int64_t c = 0; c < io.cols; c++) io.one(row, c, (kbki_float(x[c]) - mean - m.x) * m.y);
    io.stats(row, mean, m);
}

template <class T> __global__ void __launch_bounds__(128) kbk_layernorm_fwd_warp_k(kbki_norm<T> io) {
    int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= io.rows) return;
    const T* x = io.x + row * io.cols;
    float mean = 0;
    float2 s = make_float2(0, 0);
    for (int64_t c = lane; c < io.cols; c += 32) mean += kbki_float(x[c]);
    mean = kbki_warp_all<kbki_sum<float>>(mean) / (float)io.cols;
    for (int64_t c = lane; c < io.cols; c += 32) {
        float d = kbki_float(x[c]) - mean;
        s.x += d, s.y = fmaf(d, d, s.y);
    }
    float2 m = kbki_moments(kbki_warp_all<kbki_sum2>(s), io.cols);
    for (int64_t c = lane; c < io.cols; c += 32) io.one(row, c, (kbki_float(x[c]) - mean - m.x) * m.y);
    if (lane == 0) io.stats(row, mean, m);
}

// W elements of a weight; weights lie differently from the row wherever cols is odd, and come from the cache
// anyway.
template <class T, int W> __device__ __forceinline__ void kbki_weights(const T* p, bool aligned, float* f) {
    if (aligned) {
        kbki_pack<T, W> v;
        v.load_cached(p);
        v.get(f);
    } else {
#pragma unroll
        for (int k = 0; k < W; k++) f[k] = kbki_float(p[k]);
    }
}
// y of one pack, from the deviations d.
template <class T, int W>
__device__ __forceinline__ void kbki_norm_pack(const kbki_norm<T>& io, int64_t row, int64_t c, bool aw,
                                               bool ab, float* d, float2 m) {
    float w[W], b[W];
    kbki_weights<T, W>(io.w + c, aw, w);
    kbki_weights<T, W>(io.b + c, ab, b);
#pragma unroll
    for (int k = 0; k < W; k++) d[k] = fmaf((d[k] - m.x) * m.y, w[k], b[k]);
    kbki_pack<T, W> v;
    v.set(d);
    v.store(io.y + row * io.cols + c);
}
template <class T, int W> __device__ __forceinline__ bool kbki_at_16(const T* p) {
    return W == 1 || ((uintptr_t)p & 15) == 0;
}

template <class T, int W, int P, int TH>
__global__ void __launch_bounds__(TH == 32 ? 128 : TH, P* TH == 4096 ? 2 : 1)
    kbk_layernorm_fwd_onepass_k(kbki_norm<T> io) {
    __shared__ float slots[32];
    __shared__ float2 slots2[32];
    int t = TH == 32 ? threadIdx.x % 32 : threadIdx.x;
    int64_t row = TH == 32 ? (int64_t)blockIdx.x * 4 + threadIdx.x / 32 : blockIdx.x;
    if (row >= io.rows) return;
    const T* x = io.x + row * io.cols;
    kbki_span sp = kbki_split<T, W>(x, io.cols);
    int packs = (int)sp.packs, one = (int)kbki_single(sp, io.cols, t);
    kbki_pack<T, W> v[P];
    float f[W], edge = 0, sum;
#pragma unroll
    for (int u = 0; u < P; u++) {
        v[u].fill(0);
        if (t + u * TH < packs) v[u].load(x + sp.head + (t + u * TH) * W);
    }
    if (one >= 0) edge = kbki_float(x[one]);
    sum = edge;
#pragma unroll
    for (int u = 0; u < P; u++) {
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < W; k++) sum += f[k];
        v[u].forget();
    }
    float mean = kbki_all<kbki_sum<float>, TH>(sum, slots) / (float)io.cols;
    float2 s = one >= 0 ? make_float2(edge - mean, (edge - mean) * (edge - mean)) : make_float2(0, 0);
#pragma unroll
    for (int u = 0; u < P; u++) {
        if (t + u * TH >= packs) continue;
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < W; k++) s.x += f[k] - mean, s.y = fmaf(f[k] - mean, f[k] - mean, s.y);
        v[u].forget();
    }
    float2 m = kbki_moments(kbki_all<kbki_sum2, TH>(s, slots2), io.cols);
    bool aw = kbki_at_16<T, W>(io.w + sp.head), ab = kbki_at_16<T, W>(io.b + sp.head);
#pragma unroll
    for (int u = 0; u < P; u++) {
        if (t + u * TH >= packs) continue;
        v[u].get(f);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] -= mean;
        kbki_norm_pack<T, W>(io, row, sp.head + (t + u * TH) * W, aw, ab, f, m);
    }
    if (one >= 0) io.one(row, one, (edge - mean - m.x) * m.y);
    if (t == 0) io.stats(row, mean, m);
}

template <class T, int W> __global__ void __launch_bounds__(512) kbki_layernorm_fwd_long_k(kbki_norm<T> io) {
    __shared__ float slots[32];
    __shared__ float2 slots2[32];
    int64_t row = blockIdx.x;
    int t = threadIdx.x;
    const T* x = io.x + row * io.cols;
    kbki_span sp = kbki_split<T, W>(x, io.cols);
    int64_t one = kbki_single(sp, io.cols, t);
    kbki_pack<T, W> v;
    float f[W], edge = one >= 0 ? kbki_float(x[one]) : 0, sum = edge;
#pragma unroll 4
    for (int64_t i = t; i < sp.packs; i += 512) {
        v.load_cached(x + sp.head + i * W);
        v.get(f);
#pragma unroll
        for (int k = 0; k < W; k++) sum += f[k];
    }
    float mean = kbki_all<kbki_sum<float>, 512>(sum, slots) / (float)io.cols;
    float2 s = one >= 0 ? make_float2(edge - mean, (edge - mean) * (edge - mean)) : make_float2(0, 0);
#pragma unroll 4
    for (int64_t i = t; i < sp.packs; i += 512) {
        v.load_cached(x + sp.head + i * W);
        v.get(f);
#pragma unroll
        for (int k = 0; k < W; k++) s.x += f[k] - mean, s.y = fmaf(f[k] - mean, f[k] - mean, s.y);
    }
    float2 m = kbki_moments(kbki_all<kbki_sum2, 512>(s, slots2), io.cols);
    bool aw = kbki_at_16<T, W>(io.w + sp.head), ab = kbki_at_16<T, W>(io.b + sp.head);
#pragma unroll 2
    for (int64_t i = t; i < sp.packs; i += 512) {
        v.load(x + sp.head + i * W);
        v.get(f);
#pragma unroll
        for (int k = 0; k < W; k++) f[k] -= mean;
        kbki_norm_pack<T, W>(io, row, sp.head + i * W, aw, ab, f, m);
    }
    if (one >= 0) io.one(row, one, (edge - mean - m.x) * m.y);
    if (t == 0) io.stats(row, mean, m);
}

template <class T> const char* kbki_norm_args(const kbk_args* a, int64_t rows_per_cta, kbki_norm<T>* io) {
    *io = {(const T*)a->in[0], (const T*)a->in[1], (const T*)a->in[2],
           (T*)a->out[0],      (float*)a->out[1],  (float*)a->out[2],
           a->s.rows,          a->s.cols,          kbki_congruent(a->in[0], a->out[0])};
    for (int k = 0; k < 3; k++)
        if (!kbki_aligned(a->in[k], sizeof(T)) || !kbki_aligned(a->out[k], k ? 4 : sizeof(T)))
            return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(kbki_ceil(io->rows, rows_per_cta))) return KBKI_TEXT_GRID;
    return kbki_check_dims(&a->s);
}
template <class T> const char* kbk_layernorm_fwd_naive(const kbk_args* a, kbk_stream st) {
    kbki_norm<T> io;
    const char* why = kbki_norm_args(a, 128, &io);
    if (why || io.rows * io.cols == 0) return why;
    kbk_layernorm_fwd_naive_k<T><<<(unsigned)kbki_ceil(io.rows, 128), 128, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_layernorm_fwd_warp(const kbk_args* a, kbk_stream st) {
    kbki_norm<T> io;
    const char* why = kbki_norm_args(a, 4, &io);
    if (why || io.rows * io.cols == 0) return why;
    kbk_layernorm_fwd_warp_k<T><<<(unsigned)kbki_ceil(io.rows, 4), 128, 0, st>>>(io);
    return kbki_launched();
}
template <class T, int W> const char* kbki_layernorm_long(const kbki_norm<T>& io, kbk_stream st) {
    kbki_layernorm_fwd_long_k<T, W><<<(unsigned)io.rows, 512, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_layernorm_fwd_onepass(const kbk_args* a, kbk_stream st) {
    kbki_norm<T> io;
    const char* why = kbki_norm_args(a, 1, &io);
    if (why || io.rows * io.cols == 0) return why;
    auto run = [&](auto plan) {
        constexpr int W = decltype(plan)::W, P = decltype(plan)::P, TH = decltype(plan)::TH;
        unsigned ctas = (unsigned)(TH == 32 ? kbki_ceil(io.rows, 4) : io.rows);
        kbk_layernorm_fwd_onepass_k<T, W, P, TH><<<ctas, TH == 32 ? 128 : TH, 0, st>>>(io);
        return kbki_launched();
    };
    if (!io.vector)
        return io.cols <= KBKI_LONG_ONES ? kbki_by_row_ones(io.cols, run) : kbki_layernorm_long<T, 1>(io, st);
    int64_t packs = io.cols / KBKI_WIDTH(T);
    return packs <= KBKI_LONG ? kbki_by_row<KBKI_WIDTH(T)>(packs, run)
                              : kbki_layernorm_long<T, KBKI_WIDTH(T)>(io, st);
}
#endif // __CUDACC__

/*------------------------------------------------------------------------------------------------------------
  >>mse     Mean squared error: many numbers to one, and how CTAs agree on a sum.
            Public: kbk_mse_fwd_*      Used by: the table
------------------------------------------------------------------------------------------------------------*/

/*  mse fwd --------------------------------------------------------------------------------------------------
    out = mean_i (x[i] - y[i])^2      x, y: n = rows * cols     out: one f32
    flops  3*n + 1     subtract 1, square-add 2; one division
    bytes  2*n*s + 4
    check  relative 1e-6
    1 atomic   one atomic per thread          <- slow: every addition waits for the one address. In f64: an
               f32 sum stops growing at 2^24 times a term
    2 block    sum per CTA in shared memory   <- one atomic per CTA; the order of addition is left open
    3 ticket   16-byte loads, partial sums in memory, added in index order by the last CTA
                                              <- one launch, and the same bits every time
    bound by   memory: compare with bytes / copy bandwidth */
#define KBK_CHECK_mse_fwd KBKI_CHECKS(1e-6, 8, 0, 1e-6, 8, 0, 1e-6, 8, 0)
#define KBKI_MSE_CTAS 4096 // most partial sums
KBK_FN int kbk_mse_fwd_tensors(const kbk_shape* s, kbk_tensor* t) {
    t[0] = kbki_in("x", s->rows * s->cols, 0);
    t[1] = kbki_in("y", s->rows * s->cols, 0);
    t[2] = kbki_out("out", KBK_KF32, 1, 1, 0);
    return 3;
}
KBK_FN int64_t kbk_mse_fwd_units(const kbk_shape* s) { return s->rows && s->cols ? 1 : 0; }
KBK_FN double kbk_mse_fwd_flops(const kbk_shape* s) { return 3 * kbki_n(s) + 1; }
KBK_FN double kbk_mse_fwd_bytes(const kbk_shape* s) { return 2 * kbki_n(s) * s->elem + 4; }
KBK_FN size_t kbki_scratch_mse(const kbk_shape* s, const char* variant) {
    (void)s, (void)variant;
    return KBK_TICKETS + KBKI_MSE_CTAS * sizeof(float);
}
KBK_FN void kbk_mse_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                            int64_t u1) {
    double sum = 0;
    int64_t n = s->rows * s->cols;
    for (int64_t i = 0; i < n; i++) sum += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
    if (u0 < u1) out[0][0] = sum / (double)n;
}

#ifdef __CUDACC__
template <class T> struct kbki_mse_io {
    const T *x, *y;
    float* out;
    int64_t n;
    unsigned* counter;
    double* total;
    float* part;
};
template <class T> __device__ __forceinline__ float kbki_mse_term(const kbki_mse_io<T>& io, int64_t i) {
    float d = kbki_float(io.x[i]) - kbki_float(io.y[i]);
    return d * d;
}

template <class T> __global__ void kbk_mse_fwd_atomic_k(kbki_mse_io<T> io) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < io.n) atomicAdd(io.total, (double)kbki_mse_term(io, i));
}
template <class T> __global__ void __launch_bounds__(256) kbk_mse_fwd_block_k(kbki_mse_io<T> io) {
    __shared__ float s[256];
    float sum = 0;
    int64_t step = (int64_t)gridDim.x * 256;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < io.n; i += step)
        sum += kbki_mse_term(io, i);
    sum = kbki_tree<kbki_sum<float>, 256>(sum, s);
    if (threadIdx.x == 0) atomicAdd(io.total, (double)sum);
}
template <class T> __global__ void kbki_mse_fwd_finish_k(kbki_mse_io<T> io) {
    *io.out = (float)(*io.total / (double)io.n);
}

template <class T, int W> __global__ void __launch_bounds__(512) kbk_mse_fwd_ticket_k(kbki_mse_io<T> io) {
    constexpr int U = 2, TH = 512;
    __shared__ float slots[32];
    __shared__ double slots2[32];
    kbki_span sp = kbki_split<T, W>(io.x, io.n);
    int64_t first = (int64_t)blockIdx.x * (TH * U) + threadIdx.x, one = kbki_single(sp, io.n, threadIdx.x);
    float sum[U] = {};
    if (blockIdx.x == 0 && one >= 0) sum[0] = kbki_mse_term(io, one);
    for (int64_t i = first; i < sp.packs; i += (int64_t)gridDim.x * (TH * U)) {
        kbki_pack<T, W> x[U], y[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            x[u].fill(0), y[u].fill(0);
            int64_t at = sp.head + (i + u * TH) * W;
            if (i + u * TH < sp.packs) x[u].load(io.x + at), y[u].load(io.y + at);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            float f[W], g[W];
            x[u].get(f), y[u].get(g);
#pragma unroll
            for (int k = 0; k < W; k++) sum[u] = fmaf(f[k] - g[k], f[k] - g[k], sum[u]);
        }
    }
    float part = kbki_all<kbki_sum<float>, TH>(sum[0] + sum[1], slots);
    if (threadIdx.x == 0) io.part[blockIdx.x] = part;
    if (!kbki_last_cta(io.counter, gridDim.x)) return;
    double all = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += TH) all += __ldcg(io.part + i);
    all = kbki_all<kbki_sum<double>, TH>(all, slots2);
    if (threadIdx.x == 0) *io.out = (float)(all / (double)io.n);
}

template <class T> const char* kbki_mse_args(const kbk_args* a, kbki_mse_io<T>* io) {
    char* w = (char*)a->workspace;
    *io = {(const T*)a->in[0], (const T*)a->in[1],         (float*)a->out[0],        a->s.rows * a->s.cols,
           (unsigned*)w,       (double*)(w + KBK_TICKETS), (float*)(w + KBK_TICKETS)};
    if (!kbki_aligned(io->x, sizeof(T)) || !kbki_aligned(io->y, sizeof(T)) || !kbki_aligned(io->out, 4))
        return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(kbki_ceil(io->n, 256))) return KBKI_TEXT_GRID;
    const char* why = kbki_check_dims(&a->s);
    return why || io->n == 0 ? why : kbki_check_workspace(a, kbki_scratch_mse(&a->s, ""));
}
template <class T> const char* kbk_mse_fwd_atomic(const kbk_args* a, kbk_stream st) {
    kbki_mse_io<T> io;
    const char* why = kbki_mse_args(a, &io);
    if (why || io.n == 0) return why;
    if (cudaMemsetAsync(io.total, 0, sizeof *io.total, st) != cudaSuccess) return kbki_launched();
    kbk_mse_fwd_atomic_k<T><<<(unsigned)kbki_ceil(io.n, 256), 256, 0, st>>>(io);
    kbki_mse_fwd_finish_k<T><<<1, 1, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_mse_fwd_block(const kbk_args* a, kbk_stream st) {
    kbki_mse_io<T> io;
    const char* why = kbki_mse_args(a, &io);
    if (why || io.n == 0) return why;
    int64_t ctas = kbki_ceil(io.n, 256), full = (int64_t)kbki_sms() * 8;
    if (cudaMemsetAsync(io.total, 0, sizeof *io.total, st) != cudaSuccess) return kbki_launched();
    kbk_mse_fwd_block_k<T><<<(unsigned)(ctas < full ? ctas : full), 256, 0, st>>>(io);
    kbki_mse_fwd_finish_k<T><<<1, 1, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_mse_fwd_ticket(const kbk_args* a, kbk_stream st) {
    kbki_mse_io<T> io;
    const char* why = kbki_mse_args(a, &io);
    if (why || io.n == 0) return why;
    bool vector = kbki_congruent(io.x, io.y);
    int64_t ctas = kbki_ceil(io.n, 1024 * (vector ? KBKI_WIDTH(T) : 1)), full = (int64_t)kbki_sms() * 4;
    if (ctas > full) ctas = full;
    if (ctas > KBKI_MSE_CTAS) ctas = KBKI_MSE_CTAS;
    if (vector)
        kbk_mse_fwd_ticket_k<T, KBKI_WIDTH(T)><<<(unsigned)ctas, 512, 0, st>>>(io);
    else
        kbk_mse_fwd_ticket_k<T, 1><<<(unsigned)ctas, 512, 0, st>>>(io);
    return kbki_launched();
}
#endif // __CUDACC__

/*------------------------------------------------------------------------------------------------------------
  >>cross_entropy     Loss of integer targets against rows of logits, the softmax never written down.
                      Public: kbk_cross_entropy_fwd_*      Used by: the table
------------------------------------------------------------------------------------------------------------*/

/*  cross_entropy fwd ----------------------------------------------------------------------------------------
    lse[r] = log(sum_c exp(x[r,c]))     loss[r] = lse[r] - x[r,t[r]]     x: R x V = rows x cols   t: R, int32
    loss, lse: R, f32; lse is written where its pointer is not null
    flops  4*R*V + 3*R     max 1, subtract 1, exp 1, sum 1 per logit; per row log, + max, - target logit
    bytes  R*V*s + 12*R
    check  1e-6 + 8 ulp (relative 1e-6). The loss is (max - x_t) + log(sum): exact where the target is the
           maximum
    targets  KBK_IGNORE (-100): loss 0, the caller leaves the row out of its mean. Any other t outside [0, V):
             loss NaN, and x is not read there
    1 split    log-softmax to memory, then gather    <- slow: three reads, and 4 bytes written per logit
    2 online   CTA per row, running (max, sum)       <- one read, nothing written but the results
    3 unroll   four 16-byte packs in flight          <- 64 bytes in flight per thread, one rescaling for 16 or
               32 logits. Rows of odd length: alignment is peeled row by row
    bound by   memory: compare with bytes / read bandwidth */
#define KBK_CHECK_cross_entropy_fwd KBKI_CHECKS(2e-6, 8, 1e-6, 2e-6, 8, 1e-6, 2e-6, 8, 1e-6)
KBK_FN int kbk_cross_entropy_fwd_tensors(const kbk_shape* s, kbk_tensor* t) {
    t[0] = kbki_in("x", s->rows * s->cols, s->cols);
    t[1] = kbki_ids("t", s->rows, 1, s->cols);
    t[2] = kbki_out("loss", KBK_KF32, s->rows, 1, 0);
    t[3] = kbki_out("lse", KBK_KF32, s->rows, 1, 0);
    return 4;
}
KBK_FN int64_t kbk_cross_entropy_fwd_units(const kbk_shape* s) { return s->cols ? s->rows : 0; }
KBK_FN double kbk_cross_entropy_fwd_flops(const kbk_shape* s) { return 4 * kbki_n(s) + 3 * (double)s->rows; }
KBK_FN double kbk_cross_entropy_fwd_bytes(const kbk_shape* s) {
    return kbki_n(s) * s->elem + 12 * (double)s->rows;
}
KBK_FN size_t kbki_scratch_ce(const kbk_shape* s, const char* variant) {
    if (strcmp(variant, "split") != 0) return 0;
    return KBK_TICKETS + (size_t)(s->rows * s->cols) * sizeof(float);
}
KBK_FN void kbk_cross_entropy_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out,
                                      int64_t u0, int64_t u1) {
    for (int64_t r = u0; r < u1; r++) {
        const double* x = in[0] + r * s->cols;
        double top = -HUGE_VAL, sum = 0, loss = 0, t = in[1][r];
        for (int64_t c = 0; c < s->cols; c++) top = x[c] > top ? x[c] : top;
        for (int64_t c = 0; c < s->cols; c++) sum += x[c] == -HUGE_VAL ? 0 : exp(x[c] - top);
        if (t >= 0 && t < (double)s->cols)
            loss = (top - x[(int64_t)t]) + log(sum);
        else if (t != KBK_IGNORE)
            loss = kbki_from_bits(0x7FF8ull << 48);
        if (out[0]) out[0][r - u0] = loss;
        if (out[1]) out[1][r - u0] = top + log(sum); // a row of -inf: log(0), without a NaN
    }
}

#ifdef __CUDACC__
template <class T> struct kbki_ce_io {
    const T* x;
    const int* t;
    float *loss, *lse, *logp;
    int64_t rows, cols;
    bool vector;
    // One thread per row calls this with the row's pair.
    __device__ __forceinline__ void finish(int64_t row, kbki_pair p) const {
        bool empty = p.m == -INFINITY && p.s == 0; // every logit is -inf: log(0) without a NaN on the way
        float log_sum = empty ? -INFINITY : p.log_sum();
        int at = t[row];
        if (lse) lse[row] = p.m + log_sum;
        float value = at == KBK_IGNORE ? 0.0f : __int_as_float(0x7FC00000);
        if (at >= 0 && at < cols) value = (p.m - kbki_float(x[row * cols + at])) + log_sum;
        loss[row] = value;
    }
};

template <class T> __global__ void __launch_bounds__(256) kbk_cross_entropy_fwd_split_k(kbki_ce_io<T> io) {
    __shared__ float s[256];
    int64_t row = blockIdx.x;
    const T* x = io.x + row * io.cols;
    float top = -INFINITY, sum = 0;
    for (int64_t c = threadIdx.x; c < io.cols; c += 256) top = fmaxf(top, kbki_float(x[c]));
    top = kbki_tree<kbki_max, 256>(top, s);
    float low = top == -INFINITY ? 0.0f : top;
    for (int64_t c = threadIdx.x; c < io.cols; c += 256) sum += expf(kbki_float(x[c]) - low);
    float log_sum = logf(kbki_tree<kbki_sum<float>, 256>(sum, s));
    for (int64_t c = threadIdx.x; c < io.cols; c += 256)
        io.logp[row * io.cols + c] = (kbki_float(x[c]) - top) - log_sum;
    if (threadIdx.x == 0 && io.lse) io.lse[row] = top + log_sum;
}
template <class T> __global__ void kbki_cross_entropy_fwd_gather_k(kbki_ce_io<T> io) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= io.rows) return;
    int at = io.t[row];
    float value = at == KBK_IGNORE ? 0.0f : __int_as_float(0x7FC00000);
    if (at >= 0 && at < io.cols) value = -io.logp[row * io.cols + at];
    io.loss[row] = value;
}

template <class T> __global__ void __launch_bounds__(256) kbk_cross_entropy_fwd_online_k(kbki_ce_io<T> io) {
    __shared__ kbki_pair slots[32];
    const T* x = io.x + blockIdx.x * io.cols;
    kbki_pair p = kbki_pair::none();
    for (int64_t c = threadIdx.x; c < io.cols; c += 256) p.add(kbki_float(x[c]));
    p = kbki_all<kbki_pair, 256>(p, slots);
    if (threadIdx.x == 0) io.finish(blockIdx.x, p);
}

template <class T, int W>
__global__ void __launch_bounds__(256, 4) kbk_cross_entropy_fwd_unroll_k(kbki_ce_io<T> io) {
    __shared__ kbki_pair slots[32];
    kbki_pair p = kbki_row_pair<T, W, 4>(io.x + blockIdx.x * io.cols, io.cols, threadIdx.x, 256);
    p = kbki_all<kbki_pair, 256>(p, slots);
    if (threadIdx.x == 0) io.finish(blockIdx.x, p);
}

template <class T> const char* kbki_ce_args(const kbk_args* a, kbki_ce_io<T>* io) {
    *io = {(const T*)a->in[0],
           (const int*)a->in[1],
           (float*)a->out[0],
           (float*)a->out[1],
           NULL,
           a->s.rows,
           a->s.cols,
           true};
    if (!kbki_aligned(io->x, sizeof(T)) || !kbki_aligned(io->t, 4)) return KBKI_TEXT_ALIGN;
    if (!kbki_aligned(io->loss, 4) || !kbki_aligned(io->lse, 4)) return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(io->rows)) return KBKI_TEXT_GRID;
    return kbki_check_dims(&a->s);
}
template <class T> const char* kbk_cross_entropy_fwd_split(const kbk_args* a, kbk_stream st) {
    kbki_ce_io<T> io;
    const char* why = kbki_ce_args(a, &io);
    if (why || io.rows * io.cols == 0) return why;
    if ((why = kbki_check_workspace(a, kbki_scratch_ce(&a->s, "split"))) != NULL) return why;
    io.logp = (float*)((char*)a->workspace + KBK_TICKETS);
    kbk_cross_entropy_fwd_split_k<T><<<(unsigned)io.rows, 256, 0, st>>>(io);
    kbki_cross_entropy_fwd_gather_k<T><<<(unsigned)kbki_ceil(io.rows, 128), 128, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_cross_entropy_fwd_online(const kbk_args* a, kbk_stream st) {
    kbki_ce_io<T> io;
    const char* why = kbki_ce_args(a, &io);
    if (why || io.rows * io.cols == 0) return why;
    kbk_cross_entropy_fwd_online_k<T><<<(unsigned)io.rows, 256, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_cross_entropy_fwd_unroll(const kbk_args* a, kbk_stream st) {
    kbki_ce_io<T> io;
    const char* why = kbki_ce_args(a, &io);
    if (why || io.rows * io.cols == 0) return why;
    kbk_cross_entropy_fwd_unroll_k<T, KBKI_WIDTH(T)><<<(unsigned)io.rows, 256, 0, st>>>(io);
    return kbki_launched();
}
#endif // __CUDACC__

/*------------------------------------------------------------------------------------------------------------
  >>matmul_simt     Matrix product without tensor cores, and the vendor's to compare with.
                    Public: kbk_matmul_fwd_naive, _shared, _cublas      Used by: the table
------------------------------------------------------------------------------------------------------------*/

/*  matmul fwd -----------------------------------------------------------------------------------------------
    C[m,n] = sum_k A[m,k] B[k,n]     M = rows, N = cols, K = depth, no alpha, no beta; f32 accumulation
    layout  KBK_NN: A M x K, B K x N.   KBK_NT: B given as N x K.   KBK_TN: A given as K x M.   All row-major
    flops  2*M*N*K
    bytes  (M*K + K*N + M*N)*s
    check  norm-wise f32 1e-5, f16 5e-4, bf16 3e-3; per element 256 ulp of the row scale in f32, 6 ulp at 16
           bits. K = 0: zeros
    1 naive    one thread per element of C       <- slow: every FMA fetches both operands from cache
    2 shared   32 x 32 tiles in shared memory    <- global reads drop 32-fold; now shared memory limits
    99 cublas  cublasGemmEx; f32 in f32, not TF32; workspace: 32 MiB */
#define KBK_CHECK_matmul_fwd KBKI_CHECKS(1e-5, 256, 0, 5e-4, 6, 0, 3e-3, 6, 0)
#define KBKI_CUBLAS_BYTES ((size_t)32 << 20)
KBK_FN int kbk_matmul_fwd_tensors(const kbk_shape* s, kbk_tensor* t) {
    t[0] = kbki_in("A", s->rows * s->depth, s->layout == KBK_TN ? 0 : s->depth);
    t[1] = kbki_in("B", s->depth * s->cols, 0);
    t[2] = kbki_out("C", KBK_T, s->rows * s->cols, s->cols, 0);
    return 3;
}
KBK_FN int64_t kbk_matmul_fwd_units(const kbk_shape* s) { return s->rows; }
KBK_FN double kbk_matmul_fwd_flops(const kbk_shape* s) { return 2 * kbki_n(s) * (double)s->depth; }
KBK_FN double kbk_matmul_fwd_bytes(const kbk_shape* s) {
    double m = (double)s->rows, n = (double)s->cols, k = (double)s->depth;
    return (m * k + k * n + m * n) * s->elem;
}
KBK_FN size_t kbki_scratch_matmul(const kbk_shape* s, const char* variant) {
    (void)s;
    return strcmp(variant, "cublas") == 0 ? KBK_TICKETS + KBKI_CUBLAS_BYTES : 0;
}
KBK_FN void kbk_matmul_fwd_ref(const kbk_shape* s, const double* const* in, double* const* out, int64_t u0,
                               int64_t u1) {
    int64_t M = s->rows, N = s->cols, K = s->depth;
    for (int64_t m = u0; m < u1; m++) {
        double* c = out[0] + (m - u0) * N;
        for (int64_t n = 0; n < N; n++) c[n] = 0;
        for (int64_t k = 0; k < K; k++) {
            double a = s->layout == KBK_TN ? in[0][k * M + m] : in[0][m * K + k];
            if (s->layout == KBK_NT)
                for (int64_t n = 0; n < N; n++) c[n] += a * in[1][n * K + k];
            else
                for (int64_t n = 0; n < N; n++) c[n] += a * in[1][k * N + n];
        }
    }
}

#ifdef __CUDACC__
template <class T> struct kbki_mm {
    const T *a, *b;
    T* c;
    int64_t m, n, k, am, ak, bk, bn; // A[i,k] at i * am + k * ak, B[k,j] at k * bk + j * bn
    int64_t across; // tiles per row of tiles; CTAs are numbered along rows, since grid.y is short
};
template <class T>
const char* kbki_mm_args(const kbk_args* a, int tile_m, int tile_n, kbki_mm<T>* io, int64_t* ctas) {
    const kbk_shape* s = &a->s;
    *io = {(const T*)a->in[0],
           (const T*)a->in[1],
           (T*)a->out[0],
           s->rows,
           s->cols,
           s->depth,
           s->depth,
           1,
           s->cols,
           1,
           0};
    if (s->layout == KBK_NT) io->bk = 1, io->bn = s->depth;
    if (s->layout == KBK_TN) io->am = 1, io->ak = s->rows;
    io->across = kbki_ceil(s->cols, tile_n);
    *ctas = io->across * kbki_ceil(s->rows, tile_m);
    if (s->layout < KBK_NN || s->layout > KBK_TN) return "no such layout";
    if (!kbki_aligned(io->a, sizeof(T)) || !kbki_aligned(io->b, sizeof(T)) || !kbki_aligned(io->c, sizeof(T)))
        return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(*ctas)) return KBKI_TEXT_GRID;
    return kbki_check_dims(s);
}

template <class T> __global__ void kbk_matmul_fwd_naive_k(kbki_mm<T> io) {
    int64_t i = blockIdx.x / io.across * 8 + threadIdx.y, j = blockIdx.x % io.across * 32 + threadIdx.x;
    if (i >= io.m || j >= io.n) return;
    float sum = 0;
    for (int64_t k = 0; k < io.k; k++)
        sum = fmaf(kbki_float(io.a[i * io.am + k * io.ak]), kbki_float(io.b[k * io.bk + j * io.bn]), sum);
    io.c[i * io.n + j] = kbki_type<T>::from(sum);
}

template <class T> __global__ void __launch_bounds__(1024) kbk_matmul_fwd_shared_k(kbki_mm<T> io) {
    __shared__ float a[32][33], b[32][33]; // 33: a tile is written across the grain without bank conflicts
    int x = threadIdx.x, y = threadIdx.y;
    int64_t i0 = blockIdx.x / io.across * 32, j0 = blockIdx.x % io.across * 32;
    // Threads run along whichever index is contiguous in memory.
    int ay = io.ak == 1 ? y : x, ax = io.ak == 1 ? x : y;
    int by = io.bn == 1 ? y : x, bx = io.bn == 1 ? x : y;
    float sum = 0;
    for (int64_t k0 = 0; k0 < io.k; k0 += 32) {
        bool ina = i0 + ay < io.m && k0 + ax < io.k, inb = k0 + by < io.k && j0 + bx < io.n;
        a[ay][ax] = ina ? kbki_float(io.a[(i0 + ay) * io.am + (k0 + ax) * io.ak]) : 0.0f;
        b[by][bx] = inb ? kbki_float(io.b[(k0 + by) * io.bk + (j0 + bx) * io.bn]) : 0.0f;
        __syncthreads();
        int depth = io.k - k0 < 32 ? (int)(io.k - k0) : 32; // padding times infinity would be NaN
        if (depth == 32) {
#pragma unroll
            for (int k = 0; k < 32; k++) sum = fmaf(a[y][k], b[k][x], sum);
        } else {
            for (int k = 0; k < depth; k++) sum = fmaf(a[y][k], b[k][x], sum);
        }
        __syncthreads();
    }
    if (i0 + y < io.m && j0 + x < io.n) io.c[(i0 + y) * io.n + j0 + x] = kbki_type<T>::from(sum);
}

template <class T> const char* kbk_matmul_fwd_naive(const kbk_args* a, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 8, 32, &io, &ctas);
    if (why || ctas == 0) return why;
    kbk_matmul_fwd_naive_k<T><<<(unsigned)ctas, dim3(32, 8), 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_matmul_fwd_shared(const kbk_args* a, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 32, 32, &io, &ctas);
    if (why || ctas == 0) return why;
    kbk_matmul_fwd_shared_k<T><<<(unsigned)ctas, dim3(32, 32), 0, st>>>(io);
    return kbki_launched();
}
#endif // __CUDACC__

#if defined(KBK_CUBLAS) && defined(__CUDACC__)
// The vendor's library, opened when first asked for: linking it would cost every program start some 60 ms.
struct kbki_cublas {
    cublasStatus_t (*create)(cublasHandle_t*);
    cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t);
    cublasStatus_t (*set_workspace)(cublasHandle_t, void*, size_t);
    cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                           const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                           cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
    cublasHandle_t handle[16]; // per device
    bool opened;
};
KBK_FN void kbki_cublas_open(kbki_cublas* c) {
    static const char* const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        "libcublas.so"};
    void* lib = NULL;
    for (int i = 0; i < 4 && !lib; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    c->opened = true;
    if (!lib) return;
    *(void**)&c->set_stream = dlsym(lib, "cublasSetStream_v2");
    *(void**)&c->set_workspace = dlsym(lib, "cublasSetWorkspace_v2");
    *(void**)&c->gemm = dlsym(lib, "cublasGemmEx");
    if (c->set_stream && c->set_workspace && c->gemm) *(void**)&c->create = dlsym(lib, "cublasCreate_v2");
}
/*  A handle for the present device, set to this stream and to the caller's workspace (in that order: setting
    the stream puts the workspace back), so that a call allocates nothing and may be captured. The first call
    on a device creates the handle and may not be. One thread at a time. */
KBK_FN const char* kbki_cublas_get(const kbk_args* a, kbk_stream st, kbki_cublas** lib, cublasHandle_t* h) {
    static kbki_cublas c;
    int device = 0;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const char* why = kbki_check_workspace(a, KBK_TICKETS + KBKI_CUBLAS_BYTES);
    if (why) return why;
    if (!c.opened) kbki_cublas_open(&c);
    if (!c.create) return "cuBLAS is not installed here (no libcublas.so)";
    if (cudaGetDevice(&device) != cudaSuccess || device >= 16) return "no handle for this device";
    if (!c.handle[device]) {
        if (cudaStreamIsCapturing(st, &capture) != cudaSuccess || capture != cudaStreamCaptureStatusNone)
            return "the first cuBLAS call on a device cannot be captured";
        if (c.create(&c.handle[device]) != CUBLAS_STATUS_SUCCESS) return "cublasCreate failed";
    }
    *lib = &c, *h = c.handle[device];
    if (c.set_stream(*h, st) != CUBLAS_STATUS_SUCCESS) return "cublasSetStream failed";
    if (c.set_workspace(*h, (char*)a->workspace + KBK_TICKETS, KBKI_CUBLAS_BYTES) != CUBLAS_STATUS_SUCCESS)
        return "cublasSetWorkspace failed";
    return NULL;
}
template <class T> const char* kbk_matmul_fwd_cublas(const kbk_args* a, kbk_stream st) {
    const kbk_shape* s = &a->s;
    kbki_mm<T> io;
    kbki_cublas* lib;
    cublasHandle_t h;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 32, 32, &io, &ctas);
    if (why || ctas == 0) return why;
    if (s->rows > 0x7FFFFFFF || s->cols > 0x7FFFFFFF || s->depth > 0x7FFFFFFF)
        return "a dimension exceeds 2^31 - 1";
    if (s->depth == 0) {
        cudaMemsetAsync(io.c, 0, (size_t)(io.m * io.n) * sizeof(T), st);
        return kbki_launched();
    }
    if ((why = kbki_cublas_get(a, st, &lib, &h)) != NULL) return why;
    // Column-major eyes see transposes: C' = B' A', with the roles of the two inputs exchanged.
    int m = (int)s->cols, n = (int)s->rows, k = (int)s->depth;
    cublasOperation_t tb = s->layout == KBK_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t ta = s->layout == KBK_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    cudaDataType type = kbki_type<T>::cuda;
    float one = 1, zero = 0;
    cublasStatus_t e =
        lib->gemm(h, tb, ta, m, n, k, &one, io.b, type, s->layout == KBK_NT ? k : m, io.a, type,
                  s->layout == KBK_TN ? n : k, &zero, io.c, type, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    return e == CUBLAS_STATUS_SUCCESS ? kbki_launched() : "cublasGemmEx failed";
}
#endif // KBK_CUBLAS

/*------------------------------------------------------------------------------------------------------------
  >>registry     The tables themselves, made from the rows of >>table; look-up and launch.
                 Public: kbk_ops, kbk_table, kbk_find, kbk_workspace, kbk_launch      Used by: all
------------------------------------------------------------------------------------------------------------*/
#ifndef KBK_NO_REGISTRY

#define KBKI_OP_ID(op, dir, family, scratch, formula) KBK_OP_##op##_##dir,
#define KBKI_ID(op, dir, variant, rung, dtypes, sm, origin, note) KBK_ID_##op##_##dir##_##variant,
enum { KBK_OPS(KBKI_OP_ID) KBK_OP_COUNT };
enum { KBK_TABLE(KBKI_ID) KBK_VARIANT_COUNT };

// clang-format off
// Pasted on the name of the mask: cond ? f<T> : NULL would compile f<T> all the same.
#ifdef __CUDACC__
#define KBKI_LAUNCH_KBK_ALL(f) {f<float>, f<__half>, f<__nv_bfloat16>}
#define KBKI_LAUNCH_KBK_HALF(f) {NULL, f<__half>, f<__nv_bfloat16>}
#define KBKI_LAUNCH_KBK_SINGLE(f) {f<float>, NULL, NULL}
#else
#define KBKI_LAUNCH_KBK_ALL(f) {NULL, NULL, NULL}
#define KBKI_LAUNCH_KBK_HALF(f) {NULL, NULL, NULL}
#define KBKI_LAUNCH_KBK_SINGLE(f) {NULL, NULL, NULL}
#endif
#define KBKI_OP_ROW(op, dir, family, scratch, formula)                                                       \
    {#op, #dir, formula, family,                                                                             \
     kbk_##op##_##dir##_tensors, kbk_##op##_##dir##_units, kbk_##op##_##dir##_ref,                           \
     kbk_##op##_##dir##_flops, kbk_##op##_##dir##_bytes, kbki_scratch_##scratch, KBK_CHECK_##op##_##dir},
#define KBKI_ROW(op, dir, variant, rung, dtypes, sm, origin, note)                                           \
    {&kbk_ops[KBK_OP_##op##_##dir], #variant, rung, dtypes, KBK_SM_##sm, origin, note,                       \
     KBKI_LAUNCH_##dtypes(kbk_##op##_##dir##_##variant)},
// clang-format on

KBK_DATA kbk_op kbk_ops[] = {KBK_OPS(KBKI_OP_ROW)};
KBK_DATA kbk_variant kbk_table[] = {KBK_TABLE(KBKI_ROW)};

KBK_FN const kbk_op* kbk_find_op(const char* op, const char* dir) {
    for (int i = 0; i < KBK_OP_COUNT; i++)
        if (strcmp(kbk_ops[i].name, op) == 0 && strcmp(kbk_ops[i].dir, dir) == 0) return &kbk_ops[i];
    return NULL;
}
KBK_FN const kbk_variant* kbk_find(const char* op, const char* dir, const char* variant) {
    const kbk_op* o = kbk_find_op(op, dir);
    for (int i = 0; o && i < KBK_VARIANT_COUNT; i++)
        if (kbk_table[i].op == o && strcmp(kbk_table[i].name, variant) == 0) return &kbk_table[i];
    return NULL;
}

// Bytes of scratch memory that a launch wants.
KBK_FN size_t kbk_workspace(const kbk_variant* v, const kbk_shape* s) { return v->op->scratch(s, v->name); }

// sm: compute capability times ten.
KBK_FN int kbk_runs_on(const kbk_variant* v, int sm) {
    int least = v->sm & ~KBK_SM_EXACT;
    return v->sm & KBK_SM_EXACT ? sm == least : sm >= least;
}

KBK_FN const char* kbk_launch(const kbk_variant* v, int dtype, const kbk_args* a, kbk_stream stream) {
    if (!v || dtype < 0 || dtype >= KBK_DTYPES) return "no such variant or element type";
#ifdef __CUDACC__
    int device = 0, major = 0, minor = 0;
    if (!v->launch[dtype]) return "this variant does not take this element type";
    if (v->sm) {
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
        if (!kbk_runs_on(v, 10 * major + minor)) return "this variant needs another compute capability";
    }
    return v->launch[dtype](a, stream);
#else
    (void)a, (void)stream;
    return "built without CUDA: there are formulas and oracles only";
#endif
}
#endif // KBK_NO_REGISTRY
#endif // KBENCH_KERNELS_CUH

/*
   This software is available under two licences; choose whichever you prefer.
   -----------------------------------------------------------------------------------------------------------
   ALTERNATIVE A - MIT License

   Copyright (c) 2025 the kbench authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction, including
   without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
   copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions:

   The above copyright notice and this permission notice shall be included in all copies or substantial
   portions of the Software.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN
   NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY,
   WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
   SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
   -----------------------------------------------------------------------------------------------------------
   ALTERNATIVE B - Public Domain (www.unlicense.org)

   This is free and unencumbered software released into the public domain.

   Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either in
   source code form or as a compiled binary, for any purpose, commercial or non-commercial, and by any
   means.

   In jurisdictions that recognize copyright laws, the author or authors of this software dedicate any and
   all copyright interest in the software to the public domain. We make this dedication for the benefit of
   the public at large and to the detriment of our heirs and successors. We intend this dedication to be an
   overt act of relinquishment in perpetuity of all present and future rights to this software under
   copyright law.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN
   NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
   CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
   DEALINGS IN THE SOFTWARE.
*/
