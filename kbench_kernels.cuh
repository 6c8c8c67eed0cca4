/* kbench_kernels.cuh - v0.1.0 - reference CUDA kernels in one header - CUDA C++17 (oracles also C11, C++11)
   MIT or public domain, the reader's choice. SPDX-License-Identifier: MIT OR Unlicense. Licence texts: end of file.

   Every operation of this library has the same five parts, in the same order:

       card       formula, FLOPs, bytes, tolerance; one line per variant: what changed, and why it is faster
       formulas   kbk_<op>_<dir>_flops(shape), kbk_<op>_<dir>_bytes(shape, elem)    the same for all variants
       oracle     kbk_<op>_<dir>_ref(...)    plain C, in double, on inputs already rounded to the element type
       kernels    from the naive one to the fastest one, each in the fewest lines that show the idea
       launchers  kbk_<op>_<dir>_<variant><T>(args, stream)

   THE SMALLEST USE

       #include "kbench_kernels.cuh"                    // nvcc -std=c++17 -arch=native; needs the CUDA Toolkit

       kbk_args a = {};
       a.s.rows = 8192; a.s.cols = 4096;
       a.in[0] = x; a.out[0] = y;                       // device pointers to float
       const char* why = kbk_softmax_fwd_onepass<float>(&a, stream);
       if (why) puts(why);                              // NULL: launched. Otherwise: nothing was launched

   A launcher neither synchronises nor allocates, and can be captured into a CUDA graph. The launchers of `alloc`
   and of pageable copies do synchronise or allocate, and so does the first call of cuBLAS on a device. For an
   empty shape, a launcher sets sums to 0 and returns NULL. Base addresses must be multiples of the element size;
   rows may have any length. Kernels that load by TMA need 16-byte alignment and return an error otherwise: rungs 9
   to 16 and 20 of matmul, 3 and 4 of matmul_e4m3, 4 of bmm, 7 to 10 of attention.

   THE TABLE

       for (int i = 0; i < KBK_VARIANT_COUNT; i++)
           printf("%s_%s %s\n", kbk_table[i].op->name, kbk_table[i].op->dir, kbk_table[i].name);
       const kbk_variant* v = kbk_find("softmax", "fwd", "onepass");
       const char* why = kbk_launch(v, KBK_BF16, &a, stream);

   kbk_launch returns an error for NULL pointers, negative sizes, sizes whose product overflows, strides that let
   elements overlap, and a variant that cannot run on the GPU. Launchers that a program calls directly do not check
   for NULL pointers.

   KBK_OPS and KBK_TABLE in >>table are the only lists of operations and variants. A C or C++ compiler without CUDA
   compiles the table, the formulas and the oracles; the launch pointers are then NULL. Including the file compiles
   every kernel. With KBK_NO_REGISTRY, there are no tables, and only launchers that the program calls are compiled.

   FROM OTHER LANGUAGES

       nvcc -std=c++17 -O1 -arch=native -shared -Xcompiler -fPIC -x cu -DKBENCH_SHARED kbench_kernels.cuh
            -o libkbench_kernels.so               (a C compiler without CUDA: cc -O2 -shared -fPIC -x c ... -lm)

       exports the functions of >>shared: table, launch, formulas and oracles, without structs that hold function
       pointers. examples/python/kbench_kernels.py uses them. With -c instead of -shared, the result is an object for
       programs that define KBK_API_ONLY before the include, and then compile no kernel: `make kernels` builds it.

   SCRATCH MEMORY

       kbk_workspace(v, dtype, &shape) returns the bytes that a variant needs at a.workspace. The first KBK_TICKETS
       bytes are counters. Set every byte to 0 (or 0xFF) once. Every kernel leaves valid counters behind, so all
       variants can use the same workspace, but not at the same time.

   TUNING

       The variants select and tf32 (matmul, matmul_e4m3, bmm) choose the configuration with the shortest predicted
       time. kbk_tune instead measures the configurations with the shortest predictions, and appends the fastest
       to a file. Later processes read this file: KBK_TUNED=tuned.txt ./program

           #include "kbench.h"                          // for its timer; your own function can replace it
           #include "kbench_kernels.cuh"
           why = kbk_tune(kbk_find("matmul", "fwd", "select"), KBK_BF16, &a, kbk_clock_kbench, "tuned.txt");

   ADDING AN OPERATION needs edits in three places; a missing edit is a compile error (example: section >>rope)
       1. its section: card, KBKI_TENSORS, KBKI_FORMULAS, KBKI_REF, kernels, launchers; a line in the list below
       2. its row in KBK_OPS_<group> (>>table); a new group is also a name in KBKI_GROUPS (>>options)
       3. a row for each variant in KBK_TABLE_<group>
       The suite, the tests and the Python interface read these rows. tests/ladder.py --write updates documents.

   NAMES

       kbk_<op>_<dir>_<variant>     launcher; ..._k is its kernel if it has one of its own
       dir                          fwd, bwd, fwdbwd; run for an operation without a gradient
       kbki_, KBKI_                 internal, may change
       Width, Threads, ...          known at compile time: a template parameter or a constant
       pack                         a 16-byte vector, the unit of a vectorised access
       ahead, follow                prefetching by cp.async; programmatic dependent launch (PDL)
       bar, wg, fa, fab             mbarrier; warpgroup (wgmma); FlashAttention forward; backward
       Names in capitals have a prefix, so that a program may be compiled with -DN=1024. T and U are exceptions,
       because CUDA's headers use them as well.
       A rung's number is in the table, never in a name. Variant words are a closed list, KBKI_WORDS in >>table:

       access   naive     one thread per element or row
                stride    grid-stride loop, device-sized grid
                vec       16-byte accesses
                unroll    several 16-byte accesses in flight per thread
                bulk      pipeline of cp.async.bulk copies in shared memory
                approx    approximate special functions (16-bit types only)
       rows     block     CTA per row
                warp      warp per row, shuffles
                online    running (max, sum) pair: online softmax (Milakov & Gimelshein 2018)
                onepass   row in registers
                shared    row or tile in shared memory
                padded    tile without bank conflicts
                cluster   row split over a CTA cluster
       sums     atomic    one atomic addition per thread or element
                ticket    partial sums; the last CTA adds them in order
                split     several kernels, intermediate in memory
                fused     several results from one read
                sorted    ids sorted first, one owner per row
                matmul    a call of the matmul operation
       tiles    coalesced the threads of a warp access neighbouring elements
                column    a thread computes a column of a tile (1-D block tiling)
                regblock  register tile per thread
                cpasync   cp.async pipeline (multistage)
                warptile  CTA, warp and thread tiles
                warpmma   mma.sync; no overlap of loads and products
                swizzle   warpmma on swizzled tiles, loaded by 16-byte accesses
                tmaload   warpmma on tiles loaded by TMA
                warpgroup wgmma on tiles loaded by TMA; no overlap of loads and products
                mma       mma.sync on swizzled tiles
                mmapipe   mma.sync and a cp.async pipeline
                wgmma     TMA, double buffering, one consumer warpgroup
                ws        warp specialization: producer and consumer warpgroups
                coop      cooperative: two consumers per tile
                persist   persistent kernel
                multicast TMA multicast within a cluster
                tma       epilogue stores by TMA
                select    several configurations (ping-pong, split-K, ...), chosen by shape
                tf32      select for f32, of which 10 mantissa bits are used
       attention          flash (SIMT), flashmma (mma.sync), flashws (wgmma, warp-specialised),
                          flashrs (three consumers), pingpong (softmax overlaps with products), flashpp
                          (pingpong, persistent)
       host     pinned pageable sm: copies.   malloc async pool: allocations
       vendor   cudart cublas (matmul_e4m3: cuBLASLt). Reserved, used by no variant: cublaslt

   READING ORDER of the operations, with the subjects that they teach
        1 copy fill read triad add: coalescing, 16-byte accesses, bytes in flight (Little's law)
        2 strided gather chase: sectors, random reads, latency
        3 relu gelu_tanh dropout: special functions limit 16-bit types, memory limits f32; random numbers
        4 transpose: shared memory, bank conflicts, padding
        5 sum mse: tree, shuffles, atomics, tickets
        6 weighted_sum rope: reuse of a vector, sums along columns, when a matrix product is the wrong tool
        7 softmax: online softmax; a row in registers, in shared memory, in a cluster
        8 layernorm rmsnorm: two-pass variance, persistent kernels
        9 cross_entropy embedding: forward and backward in one kernel, a pipeline of rows by cp.async; sorted scatter
       10 matmul: tiling for shared memory and registers (>>matmul_simt), then tensor cores (>>matmul_steps):
          mma.sync, TMA, wgmma, warp specialization, persistent kernels, multicast
       11 bmm matmul_e4m3: batches, 8-bit floats
       12 attention: two products on tensor cores with online softmax between them (FlashAttention)
       13 h2d d2h d2d alloc null: bus, allocator, launch overhead

   READING A LADDER
       From naive on, each rung adds one idea in one contiguous kernel that does nothing else. A line in the section
       says where these kernels end; the kernels below the line are optimised, and longer.
       `python3 tests/ladder.py --diff OP` prints the lines that change from rung to rung. The measured columns
       below a card begin with the arithmetic intensity and the floor: bytes over the bandwidth of a copy, or FLOPs
       over the rate of a matrix product. If a rung launches several kernels, the column regs belongs to the first
       one. Answer the card's question (predict) before you read the columns.
       Terms to search for: coalescing, bank conflict, swizzle, occupancy, double buffering, pipeline, cp.async,
       mbarrier, TMA, wgmma, warp specialization, ping-pong, persistent kernel, epilogue, split-K, stream-K, online
       softmax, FlashAttention, programmatic dependent launch (PDL), Little's law, arithmetic intensity.

   COUNTING
       FLOPs: add, sub, mul, div, sqrt, rsqrt, exp, log, tanh, erf, max count 1, an FMA 2, a reduction of n terms
       n. Casts, compares, selects, sign changes, loads, integer and random-number work count 0. Bytes: compulsory
       traffic, each input read once and each output written once. Workspace and repeated reads do not count, so a
       variant with more traffic shows as slower. FLOPs and bytes belong to the operation and are the same for all
       variants. Their quotient is the arithmetic intensity: it tells whether arithmetic or memory limits
       (roofline; Williams, Waterman & Patterson 2009).

   CONTENTS
       >>options        what can be left out or turned on
       >>table          every operation and every variant, one row each
       >>shapes         shapes, arguments, tensors, tolerances: the types of the table
       >>numbers        Philox, conversion to 16 bits and back, reproducible inputs
       >>verify         compares a result with its oracle
       >>device         16-byte vectors, reductions, online softmax, tickets
       >>launch         cached runtime queries, checks of arguments, PDL, choice of kernels by row length
       >>asm            PTX instructions that several sections use: cp.async, ldmatrix, mma.sync, named barriers
       >>hopper         mbarrier, bulk copies, TMA, clusters and wgmma of compute capability 9.0
       >>elementwise    add, mul, div, and the ladder of every element-wise operation
       >>memory         copy, fill, read, triad: memory bandwidth
       >>access         strided, gather, chase: coalescing, random reads, latency
       >>transfer       h2d, d2h, d2d, alloc, null: bus, allocator, launch overhead
       >>activation     relu; gelu_erf, gelu_tanh, silu, forward and backward
       >>dropout        dropout: a mask that is a function of the index
       >>rows           prefetching of rows, clusters, column sums
       >>softmax        softmax over the last axis
       >>softmax_bwd    softmax, backward
       >>layernorm      layer normalisation over the last axis
       >>layernorm_bwd  layer normalisation, backward
       >>rmsnorm        RMS normalisation over the last axis, forward and backward
       >>reduction      the sum of many numbers
       >>mse            mean squared error
       >>wsum           weighted sum of each row: a matrix-vector product
       >>wsum_bwd       weighted sum, backward
       >>transpose      rows to columns: coalescing, bank conflicts, swizzle
       >>cross_entropy  loss and log-sum-exp of logits and targets; gradient
       >>cross_entropy_both loss and gradient of logits at once
       >>embedding      rows of a table, selected by index
       >>embedding_bwd  gradient of a table: several tokens may add to the same row
       >>rope           rotary position embedding
       >>matmul_simt    matrix product without tensor cores
       >>matmul_steps   matrix product on tensor cores: mma.sync, TMA, wgmma; one idea per rung
       >>matmul_tile    matrix product in f32 with a cp.async pipeline and warp tiles; split-K
       >>matmul_mma     matrix product with mma.sync and a cp.async pipeline
       >>matmul_results epilogues of wgmma
       >>matmul_hopper  matrix product with TMA and wgmma: the production kernel
       >>matmul_wgmma   launches of these
       >>matmul_thin    matrix product of few rows
       >>matmul_select  matrix product with a configuration chosen by shape
       >>matmul_vendor  matrix product by cuBLAS
       >>matmul_bytes   matrix product of 8-bit floats
       >>bmm            batched matrix product
       >>attention_simt attention without tensor cores, and with cuBLAS
       >>attention_mma  attention on tensor cores with mma.sync (FlashAttention-2)
       >>attention_hopper attention with TMA and wgmma: one idea per rung
       >>attention_wgmma attention with TMA and wgmma (FlashAttention-3): the production kernel
       >>attention_bwd  attention backward, without tensor cores
       >>attention_bwd_mma attention backward on tensor cores with mma.sync
       >>attention_bwd_hopper attention backward with TMA and wgmma
       >>registry       the tables themselves; look-up and launch
       >>shared         the table as plain C functions: for other languages, and to link the compiled kernels
*/
#ifndef KBENCH_KERNELS_CUH
#define KBENCH_KERNELS_CUH

/*-----------------------------------------------------------------
  >>options     What can be left out or turned on; differences between C, C++ and CUDA.
-----------------------------------------------------------------*/

/*  Define before including:
      KBK_ONLY=softmax,matmul  a list of groups from KBKI_GROUPS: the tables contain only the rows of these groups,
                               in the order of the list, and only their kernels are compiled
      KBK_PART=1               all groups except matrix products and attention; these are in KBK_PART=2. Two
                               objects can thus be compiled in parallel
      KBK_VARIANTS=tma,select  a list of variants: the other rows stay in the tables, without launch pointers
      KBK_TYPES=f32,bf16       a list of element types, out of f32, f16, bf16. One variant in one type compiles in
                               seconds. An unknown name in a list is a compile error that shows the name. nvcc ends
                               -D at a comma; write \, as in '-DKBK_ONLY=softmax\,matmul'
      KBK_NO_REGISTRY          no tables: only launchers that are called are compiled
      KBENCH_SHARED            defines the C functions of >>shared, for an object or a shared library
      KBK_API_ONLY             only types and the declarations of >>shared: for programs linked with such an object
      KBK_CUBLAS               compiles the rows of cuBLAS; needs cublas_v2.h and cublasLt.h. The first launch
                               loads libcublas or libcublasLt
      KBK_NO_CUBLAS            overrides KBK_CUBLAS
      KBK_TRAP_AFTER=2         to find a deadlock: a kernel that waits at an mbarrier for more than this number of
                               seconds (2e9 clock cycles each) stops with an error instead of waiting for ever */

// clang-format off

// Groups of operations, in the order of the table: the suffixes of KBK_OPS_<group> and KBK_TABLE_<group>.
#define KBKI_GROUPS(group, x) KBKI_GROUPS_1(group, x) KBKI_GROUPS_2(group, x)
#define KBKI_GROUPS_1(group, x) \
    group(memory, x) group(access, x) group(transfer, x) group(elementwise, x) group(activation, x) \
    group(dropout, x) group(softmax, x) group(layernorm, x) group(rmsnorm, x) group(sum, x) group(mse, x) \
    group(weighted_sum, x) group(transpose, x) group(cross_entropy, x) group(embedding, x) group(rope, x)
#define KBKI_GROUPS_2(group, x) group(matmul, x) group(bmm, x) group(attention, x)
// KBKI_EACH(f, x, list): f(name, x) for each of at most 24 names, then f(kbki_end, x) up to 24 calls.
#define KBKI_END_8 kbki_end, kbki_end, kbki_end, kbki_end, kbki_end, kbki_end, kbki_end, kbki_end
#define KBKI_EACH(f, x, ...) KBKI_EACH_OF(f, x, __VA_ARGS__, KBKI_END_8, KBKI_END_8, KBKI_END_8, kbki_end)
#define KBKI_EACH_OF(...) KBKI_EACH_24(__VA_ARGS__)
#define KBKI_EACH_24(f, x, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, y, z, rest, ...) \
    f(a, x) f(b, x) f(c, x) f(d, x) f(e, x) f(g, x) f(h, x) f(i, x) f(j, x) f(k, x) f(l, x) f(m, x) f(n, x) \
    f(o, x) f(p, x) f(q, x) f(r, x) f(s, x) f(t, x) f(u, x) f(v, x) f(w, x) f(y, x) f(z, x) \
    KBK_at_most_24_names_not_##rest
#define KBK_at_most_24_names_not_kbki_end
// Each name in a list such as KBK_ONLY becomes part of an identifier. If the name is unknown, the identifier is
// undeclared, and the compile error shows the name.
#define KBKI_GROUP_ID(group, x) KBK_ONLY_has_no_##group,
enum { KBKI_GROUPS(KBKI_GROUP_ID, ) KBK_ONLY_has_no_kbki_end };
enum { KBK_TYPES_has_no_f32, KBK_TYPES_has_no_f16, KBK_TYPES_has_no_bf16, KBK_TYPES_has_no_kbki_end };
#ifdef KBK_ONLY
#define KBKI_GROUP_KNOWN(group, x) + KBK_ONLY_has_no_##group
enum { KBKI_ONLY_KNOWN = 0 KBKI_EACH(KBKI_GROUP_KNOWN, , KBK_ONLY) };
#define KBKI_BUILT(group, x) KBKI_EACH(group, x, KBK_ONLY)
#elif defined(KBK_PART)
#define KBKI_GROUPS_OF(part) KBKI_GROUPS_##part
#define KBKI_PART(part) KBKI_GROUPS_OF(part)
#define KBKI_BUILT(group, x) KBKI_PART(KBK_PART)(group, x)
#else
#define KBKI_BUILT(group, x) KBKI_GROUPS(group, x)
#endif
// KBKI_HAS_<type> is 1 if kernels of the element type <type> are compiled, otherwise 0.
#ifdef KBK_TYPES
#define KBKI_TYPE_IS(name, type) || KBK_TYPES_has_no_##name == type
#define KBKI_TYPE_IN(type) 0 KBKI_EACH(KBKI_TYPE_IS, type, KBK_TYPES)
#else
#define KBKI_TYPE_IN(type) 1
#endif
enum {
    KBKI_HAS_f32 = KBKI_TYPE_IN(KBK_TYPES_has_no_f32),
    KBKI_HAS_f16 = KBKI_TYPE_IN(KBK_TYPES_has_no_f16),
    KBKI_HAS_bf16 = KBKI_TYPE_IN(KBK_TYPES_has_no_bf16)
};
// clang-format on

#if defined(KBK_CUBLAS) && defined(KBK_NO_CUBLAS)
#undef KBK_CUBLAS
#endif

// KBK_FN and KBK_DATA prevent warnings about functions and tables of this header that a program does not use.
#define KBK_FN static inline __attribute__((unused))
#define KBK_DATA static const __attribute__((unused))

#define KBK_VERSION "0.1.0"

/*-----------------------------------------------------------------
  >>table     Every operation and every variant, one row each; there are no other lists.
-----------------------------------------------------------------*/
#ifndef KBK_API_ONLY

/*  KBK_OPS    op, dir, family, scratch (kbki_scratch_<name>, or none), formula, signature, sizes, FLOPs, bytes, check
      signature  tensors with their dimensions; then options with their defaults (no default: required). Dimensions
                 are sizes of kbk_shape, by the letters of kbk_has_dimension; * is any number of dimensions. The
                 dimensions before a bar may have strides (kbk_shape.strides)
      sizes      two strings, for the GPU and for the oracles on the CPU: axes, then the values of each category
      FLOPs,     by hand, for 3 rows, 5 columns, every other size 7 (batch, heads: 1), and 2 bytes per element. A
      bytes      test compares them with the formulas
      check      tolerances (kbk_check) of f32, f16 and bf16
    KBK_TABLE  op, dir, variant, rung, dtypes, sm, origin, note
      dtypes   KBK_ALL: f32, f16, bf16.   KBK_HALF: f16, bf16.   KBK_SINGLE: f32.   KBK_BRAIN: bf16.   Other types
               are not compiled.
      sm       lowest compute capability, 0 for any; 90a means exactly 9.0; 75 (tensor cores) means 80 for bf16
      origin   KBK_OWN or KBK_VENDOR; | KBK_UNORDERED if atomics add in no fixed order;
               | KBK_COPIES, | KBK_ALLOCATES, | KBK_PAGEABLE, | KBK_TF32: see >>shapes */
// clang-format off
#define KBKI_SIZES(gpu, cpu) gpu, cpu
// Sizes that several operations use.
#define KBKI_AXES "batch_size x sequence_length x tensor_dimension: "
#define KBKI_SIZES_CPU KBKI_AXES "small 1x64x256; medium 1x128x512; batch 1,2,8x64x256"
#define KBKI_SIZES_ROWS \
    KBKI_AXES "small 2x512x1024; medium 8x1024x1024,4096; large 16x2048x4096; " \
    "batch 16,32,64,128x512x768", \
    KBKI_SIZES_CPU
#define KBKI_SIZES_LOGITS \
    KBKI_AXES "small 1x512x1024; medium 1x1024x50257; large 4x2048x50304; " \
    "batch 1,2,4,8x512x32000", \
    KBKI_SIZES_CPU
#define KBKI_SIZES_TRANSPOSE \
    KBKI_AXES "small 1x1024x1024; medium 4x1024x4096; large 16x1024x8192; " \
    "batch 1,2,4,8x512x768", \
    KBKI_SIZES_CPU
#define KBKI_SIZES_NULL "n: small 1", ""
#define KBKI_SIZES_TRANSFER "n: small 16384; medium 262144; large 67108864", ""
#define KBKI_SIZES_MEMORY "n: small 2097152; medium 16777216; large 268435456", ""
#define KBKI_SIZES_CHASE "n: small 4096; medium 1048576; large 268435456", ""
#define KBKI_SIZES_STRIDED "n x stride: small 65536x1,32; medium 8388608x1,2,4,8,32", ""
#define KBKI_SIZES_GATHER \
    "n x among x sequential: small 65536x65536x0,1; medium 4194304x4194304x0,1; " \
    "large 33554432x4194304,268435456x0,1", ""
#define KBKI_SIZES_LOOKUP \
    "batch_size x sequence_length x tensor_dimension x vocabulary: small 1x512x768x50257; " \
    "medium 16x1024x768x50304; large 16x1024x4096x131072; batch 1,4,16,64x512x768x50304", \
    "batch_size x sequence_length x tensor_dimension x vocabulary: small 1x64x64x256; medium 1x256x256x1024"
#define KBKI_SIZES_ATTN \
    "batch_size x heads x sequence_length x tensor_dimension x causal: small 1x8x512x64x0,1; " \
    "medium 4x16x1024x64,128x0,1; large 4x16x4096x128x0,1; batch 1,2,4,8x16x1024x128x1", \
    "batch_size x heads x sequence_length x tensor_dimension x causal: small 1x2x32x64x0,1"
#define KBKI_SQUARE KBKI_AXES "small 1x512x512; medium 2x1024x2048; large 4x1024x4096; batch 1,2,4,8x256x1024; "
#define KBKI_SQUARE_CPU KBKI_AXES "small 1x64x64; medium 1x128x256; batch 1,2,4x64x128; "
// Shapes whose M, N and K differ: large M; small M, also with rows that are not aligned to 16 bytes; large K;
// large N.
#define KBKI_SIZES_MATMUL \
    KBKI_SQUARE "M x N x K: rectangular 16384x1024x512; rectangular 16,2051x4096x1021; " \
    "rectangular 256x256x16384; large 8192x14336x4096; large 8192x8192x1024,8192; large 4096x4096x16384; " \
    "large 16384x4096x4096; large 8192x50304x768; large 256x256x131072; large 16x8192x8192; " \
    "large 8205x5921x2949", \
    KBKI_SQUARE_CPU "M x N x K: rectangular 256x32x64; rectangular 32x256x61; rectangular 32x48x512"
#define KBKI_SIZES_E4M3 \
    KBKI_SQUARE "M x N x K: rectangular 16384x1024x512; rectangular 16,2051x4096x1040; " \
    "rectangular 256x256x16384; large 4096x7168x16384", \
    KBKI_SQUARE_CPU "M x N x K: rectangular 256x32x64; rectangular 32x256x61; rectangular 32x48x512"
#define KBKI_SIZES_BMM \
    KBKI_AXES "small 8x128x64; medium 64x256x256; large 128x1024x512; batch 1,8,64,256x512x64; " \
    "batch_size x M x N x K: rectangular 64x1024x64x1024; rectangular 64x1024x1024x64", \
    KBKI_SQUARE_CPU "batch_size x M x N x K: rectangular 4x64x16x64; rectangular 4x64x64x16"
#define KBKI_EXACT KBKI_CHECKS(0, 0, 0, 0, 0, 0, 0, 0, 0)
#define KBKI_CHECK_ACTIVATION KBKI_CHECKS(1e-6, 2, 2e-6, 3e-4, 1, 2e-6, 2.5e-3, 1, 2e-6)
#define KBKI_CHECK_ACTIVATION_BWD KBKI_CHECKS(2e-6, 4, 4e-6, 3e-4, 1, 4e-6, 2.5e-3, 1, 4e-6)
// Rows of cuBLAS. The variant `cublas` of the 8-bit product (matmul_e4m3) calls cuBLASLt.
#ifdef KBK_CUBLAS
#define KBKI_CUBLAS(row) row
#else
#define KBKI_CUBLAS(row)
#endif

#define KBK_OPS_memory(row) \
    row(copy, run, KBK_MAP, none, "y = x", "x[*] -> y[*]", KBKI_SIZES_MEMORY, 0, 2 * 30, KBKI_EXACT) \
    row(fill, run, KBK_MAP, none, "y = 1", "-> y[*]", KBKI_SIZES_MEMORY, 0, 30, KBKI_EXACT) \
    row(read, run, KBK_SUM, read, "fold = exclusive or of the bits of x", "x[*] -> fold[]", \
        KBKI_SIZES_MEMORY, 0, 30 + 4, KBKI_EXACT) \
    row(triad, run, KBK_MAP, none, "y = a + 3 b", "a[*] b[*] -> y[*]", KBKI_SIZES_MEMORY, 2 * 15, 3 * 30, \
        KBKI_CHECKS(1e-6, 2, 0, 3e-4, 2, 0, 2.5e-3, 2, 0))
#define KBK_TABLE_memory(row) \
    row(copy,    run,  naive,      1,  KBK_ALL,     0,   KBK_OWN,  "one element per thread") \
    row(copy,    run,  stride,     2,  KBK_ALL,     0,   KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(copy,    run,  vec,        3,  KBK_ALL,     0,   KBK_OWN,  "16-byte accesses") \
    row(copy,    run,  unroll,     4,  KBK_ALL,     0,   KBK_OWN,  "two 16-byte vectors in flight") \
    row(copy,    run,  bulk,       5,  KBK_ALL,     90,  KBK_OWN,  "bulk copies in and out") \
    row(copy,    run,  cudart,    99,  KBK_ALL,     0,   KBK_VENDOR | KBK_COPIES,  "cudaMemcpyAsync") \
    row(fill,    run,  naive,      1,  KBK_ALL,     0,   KBK_OWN,  "one element per thread") \
    row(fill,    run,  unroll,     2,  KBK_ALL,     0,   KBK_OWN,  "two 16-byte stores per thread") \
    row(fill,    run,  cudart,    99,  KBK_ALL,     0,   KBK_VENDOR,  "driver memset of 32- or 16-bit words") \
    row(read,    run,  vec,        1,  KBK_SINGLE,  0,   KBK_OWN,  "16-byte accesses, last CTA folds the parts") \
    row(read,    run,  unroll,     2,  KBK_SINGLE,  0,   KBK_OWN,  "four 16-byte vectors in flight") \
    row(triad,   run,  naive,      1,  KBK_ALL,     0,   KBK_OWN,  "one element per thread") \
    row(triad,   run,  stride,     2,  KBK_ALL,     0,   KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(triad,   run,  vec,        3,  KBK_ALL,     0,   KBK_OWN,  "16-byte accesses") \
    row(triad,   run,  unroll,     4,  KBK_ALL,     0,   KBK_OWN,  "two vectors per input in flight") \
    row(triad,   run,  bulk,       5,  KBK_ALL,     90,  KBK_OWN,  "pipeline of bulk copies (cp.async.bulk)")

#define KBK_OPS_access(row) \
    row(strided, run, KBK_PICK, none, "y[i] = x[i stride]", "x[X] -> y[N]; stride=", \
        KBKI_SIZES_STRIDED, 0, 2 * 30, KBKI_EXACT) \
    row(gather, run, KBK_PICK, none, "y[i] = x[idx[i]]", "x[A] idx[*] -> y[*]", \
        KBKI_SIZES_GATHER, 0, 15 * (8 + 2) + 7 * 2, KBKI_EXACT) \
    row(chase, run, KBK_PICK, chase, "i = x[i], 16384 times", "x[N] -> walk[2]", KBKI_SIZES_CHASE, 0, 4 * 16384, \
        KBKI_EXACT)
#define KBK_TABLE_access(row) \
    row(strided, run,  naive,      1,  KBK_SINGLE,  0,   KBK_OWN,  "one element per thread") \
    row(strided, run,  unroll,     2,  KBK_SINGLE,  0,   KBK_OWN,  "four independent reads per thread") \
    row(gather,  run,  naive,      1,  KBK_SINGLE,  0,   KBK_OWN,  "one element per thread") \
    row(gather,  run,  unroll,     2,  KBK_SINGLE,  0,   KBK_OWN,  "eight indices, then eight reads") \
    row(chase,   run,  naive,      1,  KBK_SINGLE,  0,   KBK_OWN,  "one thread, dependent loads")

#define KBK_OPS_transfer(row) \
    row(h2d, run, KBK_MAP, none, "y = x, host to device", "x[*] -> y[*]", KBKI_SIZES_TRANSFER, 0, 30, \
        KBKI_EXACT) \
    row(d2h, run, KBK_MAP, none, "y = x, device to host", "x[*] -> y[*]", KBKI_SIZES_TRANSFER, 0, 30, \
        KBKI_EXACT) \
    row(d2d, run, KBK_MAP, none, "y = x, device to device", "x[*] -> y[*]", KBKI_SIZES_TRANSFER, 0, 2 * 30, \
        KBKI_EXACT) \
    row(alloc, run, KBK_MAP, none, "allocate and free n elements", "-> usable[]; n=", KBKI_SIZES_TRANSFER, 0, 4, \
        KBKI_EXACT) \
    row(null, run, KBK_MAP, none, "nothing", "-> nothing[]", KBKI_SIZES_NULL, 0, 0, KBKI_EXACT)
#define KBK_TABLE_transfer(row) \
    row(h2d,  run, pageable, 1, KBK_SINGLE, 0, KBK_VENDOR | KBK_COPIES | KBK_PAGEABLE, "staged by the driver") \
    row(h2d,  run, pinned,   2, KBK_SINGLE, 0, KBK_VENDOR | KBK_COPIES, "direct DMA") \
    row(h2d,  run, sm,       3, KBK_SINGLE, 0, KBK_OWN, "a kernel on mapped memory") \
    row(d2h,  run, pageable, 1, KBK_SINGLE, 0, KBK_VENDOR | KBK_COPIES | KBK_PAGEABLE, "staged by the driver") \
    row(d2h,  run, pinned,   2, KBK_SINGLE, 0, KBK_VENDOR | KBK_COPIES, "direct DMA") \
    row(d2h,  run, sm,       3, KBK_SINGLE, 0, KBK_OWN, "a kernel on mapped memory") \
    row(d2d,  run, sm,       3, KBK_SINGLE, 0, KBK_OWN, "the unrolled copy") \
    row(d2d,  run, cudart,  99, KBK_SINGLE, 0, KBK_VENDOR | KBK_COPIES, "cudaMemcpyAsync") \
    row(alloc,run, malloc,   1, KBK_SINGLE, 0, KBK_VENDOR | KBK_ALLOCATES, "cudaMalloc, cudaFree") \
    row(alloc,run, async,    2, KBK_SINGLE, 0, KBK_VENDOR | KBK_ALLOCATES, "a pool that returns memory to the driver") \
    row(alloc,run, pool,     3, KBK_SINGLE, 0, KBK_VENDOR | KBK_ALLOCATES, "a pool that keeps its memory") \
    row(null, run, naive,    1, KBK_SINGLE, 0, KBK_OWN, "an empty kernel")

#define KBK_OPS_elementwise(row) \
    row(add, fwd, KBK_MAP, none, "y = a + b", "a[*] b[*] -> y[*]", KBKI_SIZES_ROWS, 15, 3 * 30, \
        KBKI_CHECKS(0, 0, 0, 3e-4, 1, 0, 2.5e-3, 1, 0)) \
    row(mul, fwd, KBK_MAP, none, "y = a b", "a[*] b[*] -> y[*]", KBKI_SIZES_ROWS, 15, 3 * 30, \
        KBKI_CHECKS(0, 0, 0, 3e-4, 1, 0, 2.5e-3, 1, 0)) \
    row(div, fwd, KBK_MAP, none, "y = a / b", "a[*] b[*] -> y[*]", KBKI_SIZES_ROWS, 15, 3 * 30, \
        KBKI_CHECKS(0, 0, 0, 5e-4, 1, 0, 4e-3, 1, 0))
#define KBK_TABLE_elementwise(row) \
    row(add,      fwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread") \
    row(add,      fwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(add,      fwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(add,      fwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two 16-byte vectors per input in flight") \
    row(add,      fwd,  bulk,     5,  KBK_ALL,  90, KBK_OWN,  "pipeline of bulk copies (cp.async.bulk)") \
    row(mul,      fwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread") \
    row(mul,      fwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(mul,      fwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(mul,      fwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two 16-byte vectors per input in flight") \
    row(div,      fwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread") \
    row(div,      fwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(div,      fwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(div,      fwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two 16-byte vectors per input in flight")

#define KBK_OPS_activation(row) \
    row(relu, fwd, KBK_MAP, none, "y = x < 0 ? 0 : x", "x[*] -> y[*]", KBKI_SIZES_ROWS, 15, 2 * 30, KBKI_EXACT) \
    row(gelu_erf, fwd, KBK_MAP, none, "y = 0.5 x (1 + erf(x / sqrt 2))", "x[*] -> y[*]", \
        KBKI_SIZES_ROWS, 5 * 15, 2 * 30, KBKI_CHECK_ACTIVATION) \
    row(gelu_erf, bwd, KBK_MAP, none, "dx = dy (Phi(x) + x phi(x))", "dy[*] x[*] -> dx[*]", \
        KBKI_SIZES_ROWS, 11 * 15, 3 * 30, KBKI_CHECK_ACTIVATION_BWD) \
    row(gelu_tanh, fwd, KBK_MAP, none, "y = 0.5 x (1 + tanh(k x (1 + a x^2)))", "x[*] -> y[*]", \
        KBKI_SIZES_ROWS, 9 * 15, 2 * 30, KBKI_CHECK_ACTIVATION) \
    row(gelu_tanh, bwd, KBK_MAP, none, "dx = dy y'(x), y as in fwd", "dy[*] x[*] -> dx[*]", \
        KBKI_SIZES_ROWS, 18 * 15, 3 * 30, KBKI_CHECK_ACTIVATION_BWD) \
    row(silu, fwd, KBK_MAP, none, "y = x / (1 + exp(-x))", "x[*] -> y[*]", KBKI_SIZES_ROWS, 3 * 15, 2 * 30, \
        KBKI_CHECK_ACTIVATION) \
    row(silu, bwd, KBK_MAP, none, "dx = dy s (1 + x (1 - s)), s = 1 / (1 + exp(-x))", "dy[*] x[*] -> dx[*]", \
        KBKI_SIZES_ROWS, 8 * 15, 3 * 30, KBKI_CHECK_ACTIVATION_BWD)
#define KBK_TABLE_activation(row) \
    row(relu,      fwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread") \
    row(relu,      fwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(relu,      fwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(relu,      fwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two 16-byte vectors in flight") \
    row(gelu_erf,  fwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread, exp2 and polynomial") \
    row(gelu_erf,  fwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(gelu_erf,  fwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(gelu_erf,  fwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two 16-byte vectors in flight") \
    row(gelu_erf,  fwd,  approx,   6,  KBK_HALF, 0,  KBK_OWN,  "logistic function of a short polynomial") \
    row(gelu_erf,  bwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread, exp2 and polynomial") \
    row(gelu_erf,  bwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(gelu_erf,  bwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(gelu_erf,  bwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two vectors per input in flight") \
    row(gelu_erf,  bwd,  approx,   6,  KBK_HALF, 0,  KBK_OWN,  "polynomial of degree 8 instead of 14") \
    row(gelu_tanh, fwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread, exp and divide") \
    row(gelu_tanh, fwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(gelu_tanh, fwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(gelu_tanh, fwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two 16-byte vectors in flight") \
    row(gelu_tanh, fwd,  approx,   6,  KBK_HALF, 0,  KBK_OWN,  "hardware exp2 and reciprocal") \
    row(gelu_tanh, bwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread, exp and divide") \
    row(gelu_tanh, bwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(gelu_tanh, bwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(gelu_tanh, bwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two vectors per input in flight") \
    row(gelu_tanh, bwd,  approx,   6,  KBK_HALF, 0,  KBK_OWN,  "hardware exp2 and reciprocal") \
    row(silu,      fwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread, exp and divide") \
    row(silu,      fwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(silu,      fwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(silu,      fwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two 16-byte vectors in flight") \
    row(silu,      fwd,  approx,   6,  KBK_HALF, 0,  KBK_OWN,  "hardware exp2 and reciprocal") \
    row(silu,      bwd,  naive,    1,  KBK_ALL,  0,  KBK_OWN,  "one element per thread, exp and divide") \
    row(silu,      bwd,  stride,   2,  KBK_ALL,  0,  KBK_OWN,  "device-sized grid, grid-stride loop") \
    row(silu,      bwd,  vec,      3,  KBK_ALL,  0,  KBK_OWN,  "16-byte accesses") \
    row(silu,      bwd,  unroll,   4,  KBK_ALL,  0,  KBK_OWN,  "two vectors per input in flight") \
    row(silu,      bwd,  approx,   6,  KBK_HALF, 0,  KBK_OWN,  "hardware exp2 and reciprocal")

#define KBK_OPS_dropout(row) \
    row(dropout, fwd, KBK_MAP, none, "y = keep ? x / (1 - p) : 0", "x[*] -> y[*]; p=0.1 seed=0", \
        KBKI_SIZES_ROWS, 15, 2 * 30, KBKI_EXACT) \
    row(dropout, bwd, KBK_MAP, none, "dx = keep ? dy / (1 - p) : 0, same mask as fwd", \
        "dy[*] -> dx[*]; p=0.1 seed=0", KBKI_SIZES_ROWS, 15, 2 * 30, KBKI_EXACT)
#define KBK_TABLE_dropout(row) \
    row(dropout, fwd,  naive,      1,  KBK_ALL,     0,   KBK_OWN,  "one Philox call per element") \
    row(dropout, fwd,  vec,        2,  KBK_ALL,     0,   KBK_OWN,  "16-byte accesses, a Philox call per vector") \
    row(dropout, fwd,  unroll,     3,  KBK_ALL,     0,   KBK_OWN,  "two vectors in flight") \
    row(dropout, bwd,  naive,      1,  KBK_ALL,     0,   KBK_OWN,  "one Philox call per element") \
    row(dropout, bwd,  vec,        2,  KBK_ALL,     0,   KBK_OWN,  "16-byte accesses, a Philox call per vector") \
    row(dropout, bwd,  unroll,     3,  KBK_ALL,     0,   KBK_OWN,  "two vectors in flight")

#define KBK_OPS_softmax(row) \
    row(softmax, fwd, KBK_ROWS, none, "y[r,c] = exp(x[r,c] - max_c x) / sum_c exp(x[r,c] - max_c x)", \
        "x[*,C] -> y[*,C]", KBKI_SIZES_ROWS, 5 * 15 + 3, 2 * 30, \
        KBKI_CHECKS(4e-6, 96, 0, 3e-4, 2, 0, 2.5e-3, 2, 0)) \
    row(softmax, bwd, KBK_ROWS, none, "dx[r,c] = y[r,c] (dy[r,c] - sum_c dy[r,c] y[r,c])", \
        "dy[*,C] y[*,C] -> dx[*,C]", KBKI_SIZES_ROWS, 4 * 15, 3 * 30, \
        KBKI_CHECKS(1e-5, 64, 0, 5e-4, 2, 0, 4e-3, 2, 0))
#define KBK_TABLE_softmax(row) \
    row(softmax,   fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "thread per row, three uncoalesced passes") \
    row(softmax,   fwd,  block,    2,  KBK_ALL,  0,   KBK_OWN,  "CTA per row, shared-memory tree, three reads") \
    row(softmax,   fwd,  online,   3,  KBK_ALL,  0,   KBK_OWN,  "online softmax: two reads, one reduction") \
    row(softmax,   fwd,  onepass,  4,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, row in registers, one read") \
    row(softmax,   fwd,  shared,   5,  KBK_ALL,  0,   KBK_OWN,  "row in shared memory: longer rows, one read") \
    row(softmax,   fwd,  cluster,  6,  KBK_ALL,  90,  KBK_OWN,  "row split over a cluster, up to 512 KiB") \
    row(softmax,   bwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "thread per row, two uncoalesced passes") \
    row(softmax,   bwd,  warp,     2,  KBK_ALL,  0,   KBK_OWN,  "warp per row, shuffles, two reads") \
    row(softmax,   bwd,  onepass,  3,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, rows in registers, one read") \
    row(softmax,   bwd,  shared,   4,  KBK_ALL,  0,   KBK_OWN,  "both rows in shared memory, by cp.async") \
    row(softmax,   bwd,  cluster,  5,  KBK_ALL,  90,  KBK_OWN,  "rows split over a cluster, up to 512 KiB")

#define KBK_OPS_layernorm(row) \
    row(layernorm, fwd, KBK_ROWS, none, "y[r,c] = (x[r,c] - mean[r]) rstd[r] w[c] + b[c]", \
        "x[*,C] w[C] b[C] -> y[*,C] mean[*] rstd[*]", KBKI_SIZES_ROWS, 7 * 15 + 4 * 3, 2 * 30 + 2 * 10 + 2 * 12, \
        KBKI_CHECKS(3e-6, 64, 0, 3e-4, 2, 0, 2.5e-3, 2, 0)) \
    row(layernorm, bwd, KBK_ROWS, layernorm_bwd, "dx = (g - mean g - xhat mean(g xhat)) rstd; dw; db", \
        "dy[*,C] x[*,C] w[C] mean[*] rstd[*] -> dx[*,C] dw[C] db[C]", \
        KBKI_SIZES_ROWS, 13 * 15 + 2 * 3, 3 * 30 + 3 * 10 + 2 * 12, \
        KBKI_CHECKS(1e-5, 64, 0, 5e-4, 2, 0, 4e-3, 2, 0))
#define KBK_TABLE_layernorm(row) \
    row(layernorm, fwd, naive,   1 , KBK_ALL,  0,   KBK_OWN, "thread per row, three uncoalesced passes") \
    row(layernorm, fwd, warp,    2 , KBK_ALL,  0,   KBK_OWN, "warp per row, shuffles, re-reads from cache") \
    row(layernorm, fwd, onepass, 3 , KBK_ALL,  0,   KBK_OWN, "16-byte loads, row in registers, one read") \
    row(layernorm, fwd, persist, 4 , KBK_ALL,  0,   KBK_OWN, "w and b in registers, next rows prefetched") \
    row(layernorm, fwd, cluster, 5 , KBK_ALL,  90,  KBK_OWN, "row split over a cluster, up to 512 KiB") \
    row(layernorm, bwd, atomic,  1 , KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "two atomics per element") \
    row(layernorm, bwd, split,   2 , KBK_ALL,  0,   KBK_OWN, "dx, then column sums: inputs are read twice") \
    row(layernorm, bwd, ticket,  3 , KBK_ALL,  0,   KBK_OWN, "column sums per CTA, added in index order") \
    row(layernorm, bwd, onepass, 4 , KBK_ALL,  0,   KBK_OWN, "one read, rows and sums in registers")

#define KBK_OPS_rmsnorm(row) \
    row(rmsnorm, fwd, KBK_ROWS, none, "y[r,c] = x[r,c] rstd[r] w[c]", "x[*,C] w[C] -> y[*,C] rstd[*]", \
        KBKI_SIZES_ROWS, 4 * 15 + 3 * 3, 2 * 30 + 10 + 12, KBKI_CHECKS(3e-6, 64, 0, 3e-4, 2, 0, 2.5e-3, 2, 0)) \
    row(rmsnorm, bwd, KBK_ROWS, rmsnorm_bwd, "dx = (g - xhat mean(g xhat)) rstd; dw", \
        "dy[*,C] x[*,C] w[C] rstd[*] -> dx[*,C] dw[C]", KBKI_SIZES_ROWS, 9 * 15 + 3, 3 * 30 + 2 * 10 + 12, \
        KBKI_CHECKS(1e-5, 64, 0, 5e-4, 2, 0, 4e-3, 2, 0))
#define KBK_TABLE_rmsnorm(row) \
    row(rmsnorm,   fwd, naive,   1 , KBK_ALL,  0,   KBK_OWN, "thread per row, two uncoalesced passes") \
    row(rmsnorm,   fwd, warp,    2 , KBK_ALL,  0,   KBK_OWN, "warp per row, shuffles, re-reads from cache") \
    row(rmsnorm,   fwd, onepass, 3 , KBK_ALL,  0,   KBK_OWN, "16-byte loads, row in registers, one read") \
    row(rmsnorm,   fwd, persist, 4 , KBK_ALL,  0,   KBK_OWN, "w in registers, next rows prefetched") \
    row(rmsnorm,   fwd, cluster, 5 , KBK_ALL,  90,  KBK_OWN, "row split over a cluster, up to 512 KiB") \
    row(rmsnorm,   bwd, atomic,  1 , KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "one atomic per element") \
    row(rmsnorm,   bwd, split,   2 , KBK_ALL,  0,   KBK_OWN, "dx, then column sums: inputs are read twice") \
    row(rmsnorm,   bwd, ticket,  3 , KBK_ALL,  0,   KBK_OWN, "column sums per CTA, added in index order") \
    row(rmsnorm,   bwd, onepass, 4 , KBK_ALL,  0,   KBK_OWN, "one read, rows and sums in registers")

#define KBK_OPS_sum(row) \
    row(sum, run, KBK_SUM, sum, "out = sum(x)", "x[*] -> out[]", KBKI_SIZES_ROWS, 15, 30 + 4, \
        KBKI_CHECKS(1e-6, 8, 0, 1e-6, 8, 0, 1e-6, 8, 0))
#define KBK_TABLE_sum(row) \
    row(sum,       run,  atomic,   1,  KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "one atomic per thread") \
    row(sum,       run,  shared,   2,  KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "tree per CTA, one atomic per CTA") \
    row(sum,       run,  warp,     3,  KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "shuffles, one atomic per warp") \
    row(sum,       run,  ticket,   4,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, last CTA adds partial sums")

#define KBK_OPS_mse(row) \
    row(mse, fwd, KBK_SUM, sum, "out = mean((x - y)^2)", "x[*] y[*] -> out[]", \
        KBKI_SIZES_ROWS, 3 * 15 + 1, 2 * 30 + 4, KBKI_CHECKS(1e-6, 8, 0, 1e-6, 8, 0, 1e-6, 8, 0)) \
    row(mse, bwd, KBK_MAP, none, "dx = (2 g / n) (x - y)", "x[*] y[*] g[] -> dx[*]", \
        KBKI_SIZES_ROWS, 2 * 15 + 2, 3 * 30 + 4, KBKI_CHECKS(1e-6, 2, 0, 3e-4, 2, 0, 2.5e-3, 2, 0))
#define KBK_TABLE_mse(row) \
    row(mse,       fwd,  atomic,   1,  KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "one atomic per thread") \
    row(mse,       fwd,  block,    2,  KBK_ALL,  0,   KBK_OWN | KBK_UNORDERED, "sum per CTA, one atomic per CTA") \
    row(mse,       fwd,  ticket,   3,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, last CTA adds partial sums") \
    row(mse,       bwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread") \
    row(mse,       bwd,  unroll,   2,  KBK_ALL,  0,   KBK_OWN,  "two 16-byte vectors per input in flight")

#define KBK_OPS_weighted_sum(row) \
    row(weighted_sum, fwd, KBK_ROWS, weighted_sum_fwd, "y[r] = sum_c x[r,c] w[c]", "x[*,C] w[C] -> y[*]", \
        KBKI_SIZES_ROWS, 2 * 15, 30 + 6 + 10, KBKI_CHECKS(1e-6, 8, 0, 3e-4, 1, 0, 2.5e-3, 1, 0)) \
    row(weighted_sum, bwd, KBK_ROWS, weighted_sum_bwd, "dx[r,c] = dy[r] w[c]; dw[c] = sum_r dy[r] x[r,c]", \
        "dy[*] x[*,C] w[C] -> dx[*,C] dw[C]", KBKI_SIZES_ROWS, 3 * 15, 2 * 30 + 6 + 2 * 10, \
        KBKI_CHECKS(1e-5, 64, 0, 3e-4, 2, 0, 2.5e-3, 2, 0))
#define KBK_TABLE_weighted_sum(row) \
    row(weighted_sum, fwd, naive,  1,  KBK_ALL,  0,   KBK_OWN,  "thread per row, uncoalesced") \
    row(weighted_sum, fwd, split,  2,  KBK_ALL,  0,   KBK_OWN,  "two kernels: products to memory, row sums") \
    row(weighted_sum, fwd, matmul, 3,  KBK_ALL,  0,   KBK_OWN,  "a GEMM with one column, mostly padding") \
    row(weighted_sum, fwd, warp,   4,  KBK_ALL,  0,   KBK_OWN,  "warp per row, shuffles, one read") \
    row(weighted_sum, fwd, vec,    5,  KBK_ALL,  0,   KBK_OWN,  "16-byte loads, several rows in flight") \
    row(weighted_sum, bwd, naive,  1,  KBK_ALL,  0,   KBK_OWN,  "dx: thread per element; dw: thread per column") \
    row(weighted_sum, bwd, split,  2,  KBK_ALL,  0,   KBK_OWN,  "products to memory, dx, then column sums") \
    row(weighted_sum, bwd, matmul, 3,  KBK_ALL,  0,   KBK_OWN,  "two GEMMs, K = 1 and M = 1") \
    row(weighted_sum, bwd, ticket, 4,  KBK_ALL,  0,   KBK_OWN,  "column sums per CTA, added in order; then dx") \
    row(weighted_sum, bwd, fused,  5,  KBK_ALL,  0,   KBK_OWN,  "dx and dw from one pass, 16-byte accesses") \
    row(weighted_sum, bwd, vec,    6,  KBK_ALL,  0,   KBK_OWN,  "large data: one kernel for dw, then one for dx")

#define KBK_OPS_transpose(row) \
    row(transpose, run, KBK_ROWS, none, "y[c,r] = x[r,c]", "x[R,C] -> y[C,R]", KBKI_SIZES_TRANSPOSE, 0, 2 * 30, \
        KBKI_EXACT)
#define KBK_TABLE_transpose(row) \
    row(transpose, run,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread, strided writes") \
    row(transpose, run,  shared,   2,  KBK_ALL,  0,   KBK_OWN,  "32 x 32 tile in shared memory, bank conflicts") \
    row(transpose, run,  padded,   3,  KBK_ALL,  0,   KBK_OWN,  "32 x 33 tile, no conflicts") \
    row(transpose, run,  vec,      4,  KBK_ALL,  0,   KBK_OWN,  "4 x 4 or 8 x 8 per thread, 16-byte accesses")

#define KBK_OPS_cross_entropy(row) \
    row(cross_entropy, fwd, KBK_ROWS, ce, "loss[r] = lse[r] - x[r,t[r]], lse[r] = log sum_c exp(x[r,c])", \
        "x[*,C] t[*] -> loss[*] lse[*]", KBKI_SIZES_LOGITS, 4 * 15 + 3 * 3, 30 + 3 * 12, \
        KBKI_CHECKS(2e-6, 8, 1e-6, 2e-6, 8, 1e-6, 2e-6, 8, 1e-6)) \
    row(cross_entropy, bwd, KBK_ROWS, none, "dx[r,c] = g (exp(x[r,c] - lse[r]) - (c == t[r]))", \
        "x[*,C] t[*] lse[*] g[] -> dx[*,C]", KBKI_SIZES_LOGITS, 3 * 15 + 3, 2 * 30 + 2 * 12 + 4, \
        KBKI_CHECKS(1e-5, -64, 1e-9, 4e-4, -2, 1e-9, 3e-3, -2, 1e-9)) \
    row(cross_entropy, fwdbwd, KBK_ROWS, ce_both, "loss[r], and dx[r,c] = exp(x[r,c] - lse[r]) - (c == t[r])", \
        "x[*,C] t[*] -> loss[*] dx[*,C]; scale=1.0", KBKI_SIZES_LOGITS, 5 * 15 + 5 * 3, 2 * 30 + 2 * 12, \
        KBKI_CHECKS(1e-5, -64, 1e-9, 4e-4, -2, 1e-9, 3e-3, -2, 1e-9))
#define KBK_TABLE_cross_entropy(row) \
    row(cross_entropy, fwd, split, 1,  KBK_ALL,  0,   KBK_OWN,  "log-softmax to memory in f32, then a gather") \
    row(cross_entropy, fwd, online, 2, KBK_ALL,  0,   KBK_OWN,  "CTA per row, online softmax, one read") \
    row(cross_entropy, fwd, unroll, 3, KBK_ALL,  0,   KBK_OWN,  "16-byte vectors, four in flight per thread") \
    row(cross_entropy, bwd, naive, 1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread") \
    row(cross_entropy, bwd, unroll, 2, KBK_ALL,  0,   KBK_OWN,  "16-byte vectors, two in flight per thread") \
    row(cross_entropy, fwdbwd, split, 1, KBK_ALL, 0,  KBK_OWN,  "kernel fwd/unroll, then kernel bwd/unroll") \
    row(cross_entropy, fwdbwd, fused, 2, KBK_ALL, 0,  KBK_OWN,  "CTA per row; the second read runs backwards") \
    row(cross_entropy, fwdbwd, shared, 3, KBK_ALL, 90, KBK_OWN, "row in shared memory, one read") \
    row(cross_entropy, fwdbwd, cluster, 4, KBK_ALL, 90, KBK_OWN, "row split over 2 to 8 CTAs, sums by DSMEM")

#define KBK_OPS_embedding(row) \
    row(embedding, fwd, KBK_LOOKUP, none, "y[t,d] = W[ids[t],d]", "W[V,C] ids[*] -> y[*,C]", \
        KBKI_SIZES_LOOKUP, 0, (3 + 3) * 10 + 12, KBKI_EXACT) \
    row(embedding, bwd, KBK_LOOKUP, embedding, "dW[v,d] = sum of dy[t,d] over the t with ids[t] == v", \
        "dy[*,C] ids[*] -> dW[V,C]; vocabulary=", KBKI_SIZES_LOOKUP, 15, (3 + 7) * 10 + 12, \
        KBKI_CHECKS(1e-5, 8, 0, 4e-4, 2, 0, 3e-3, 2, 0))
#define KBK_TABLE_embedding(row) \
    row(embedding, fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one element per thread") \
    row(embedding, fwd,  vec,      2,  KBK_ALL,  0,   KBK_OWN,  "warp per token, 16-byte accesses") \
    row(embedding, fwd,  unroll,   3,  KBK_ALL,  0,   KBK_OWN,  "ids loaded first, two vectors per thread") \
    row(embedding, bwd,  atomic,   1,  KBK_SINGLE, 0, KBK_OWN | KBK_UNORDERED, "one atomic per element") \
    row(embedding, bwd,  vec,      2,  KBK_SINGLE, 90, KBK_OWN | KBK_UNORDERED, "red.global.add.v4.f32") \
    row(embedding, bwd,  sorted,   3,  KBK_ALL,  0,   KBK_OWN,  "ids sorted; each row of dW is written once")

#define KBK_OPS_rope(row) \
    row(rope, fwd, KBK_ROWS, none, "y = x cos + x' sin; x' = (-upper half, lower half of x)", \
        "x[R,H,D] cs[R,D] -> y[R,H,D]", \
        KBKI_SIZES("batch_size x sequence_length x heads x tensor_dimension: small 1x512x8x64; " \
                   "medium 4x2048x32x128; large 8x4096x32x128; batch 1,4,16,64x128x32x128", \
                   "batch_size x sequence_length x heads x tensor_dimension: small 1x64x4x64; medium 1x128x8x64"), \
        6 * 3 * 2, 2 * 30 + 4 * 15, KBKI_CHECKS(1e-6, 2, 0, 3e-4, 1, 0, 2.5e-3, 1, 0))
#define KBK_TABLE_rope(row) \
    row(rope,      fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "thread per pair of columns") \
    row(rope,      fwd,  vec,      2,  KBK_ALL,  0,   KBK_OWN,  "two 16-byte vectors per thread")

#define KBK_OPS_matmul(row) \
    row(matmul, fwd, KBK_GEMM, matmul, "C = A B; NN, NT (B given as N x K), TN (A as K x M)", \
        "A[M|K] B[K|N] -> C[M|N]; layout=nn", KBKI_SIZES_MATMUL, 2 * 3 * 5 * 7, (21 + 35 + 15) * 2, \
        KBKI_CHECKS(1e-5, 256, 0, 5e-4, 6, 0, 3e-3, 6, 0)) \
    row(matmul_e4m3, fwd, KBK_GEMM, matmul_e4m3, "C = sa sb A B; A and B in e4m3, NT; C in bf16", \
        "A[M,K] B[N,K] sa[] sb[] -> C[M,N]", KBKI_SIZES_E4M3, 2 * 3 * 5 * 7, 21 + 35 + 15 * 2 + 2 * 4, \
        KBKI_CHECKS(2e-2, 6, 0, 2e-2, 6, 0, 2e-2, 6, 0))
#define KBK_TABLE_matmul(row) \
    row(matmul,    fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "one thread per element, a warp has 32 rows") \
    row(matmul,    fwd,  coalesced, 2, KBK_ALL,  0,   KBK_OWN,  "a warp has 32 neighbouring columns") \
    row(matmul,    fwd,  shared,   3,  KBK_ALL,  0,   KBK_OWN,  "32 x 32 tiles in shared memory") \
    row(matmul,    fwd,  column,   4,  KBK_ALL,  0,   KBK_OWN,  "64 x 64 tiles, 8 results per thread") \
    row(matmul,    fwd,  regblock, 5,  KBK_ALL,  0,   KBK_OWN,  "128 x 128 tiles, 8 x 8 results per thread") \
    row(matmul,    fwd,  vec,      6,  KBK_ALL,  0,   KBK_OWN,  "4 elements per access, A transposed in tiles") \
    row(matmul,    fwd,  cpasync,  7,  KBK_SINGLE, 80, KBK_OWN, "cp.async pipeline of four tiles") \
    row(matmul,    fwd,  warptile, 8,  KBK_SINGLE, 80, KBK_OWN, "warp tiles, fragment pipeline, split-K") \
    row(matmul,    fwd,  warpmma,  7,  KBK_HALF, 75,  KBK_OWN,  "mma.sync, ldmatrix, tiles loaded by element") \
    row(matmul,    fwd,  swizzle,  8,  KBK_HALF, 75,  KBK_OWN,  "16-byte loads to swizzled tiles, 64 deep") \
    row(matmul,    fwd,  tmaload,  9,  KBK_HALF, 90,  KBK_OWN,  "one thread loads the tiles by TMA") \
    row(matmul,    fwd,  warpgroup, 10, KBK_HALF, 90a, KBK_OWN, "wgmma reads the tiles in shared memory") \
    row(matmul,    fwd,  wgmma,    11, KBK_HALF, 90a, KBK_OWN,  "double buffering: loads during products") \
    row(matmul,    fwd,  ws,       12, KBK_HALF, 90a, KBK_OWN,  "a producer warp fills a pipeline of 4 stages") \
    row(matmul,    fwd,  coop,     13, KBK_HALF, 90a, KBK_OWN,  "128 x 256 tiles, two consumer warpgroups") \
    row(matmul,    fwd,  persist,  14, KBK_HALF, 90a, KBK_OWN,  "a CTA per SM loops over the tiles, in bands") \
    row(matmul,    fwd,  multicast, 15, KBK_HALF, 90a, KBK_OWN, "pairs of CTAs share the tiles of B") \
    row(matmul,    fwd,  tma,      16, KBK_HALF, 90a, KBK_OWN,  "TMA stores C while the next tile is computed") \
    row(matmul,    fwd,  mma,      17, KBK_HALF, 80,  KBK_OWN,  "ldmatrix, mma.sync m16n8k16, one stage") \
    row(matmul,    fwd,  mmapipe,  18, KBK_HALF, 80,  KBK_OWN,  "mma.sync, cp.async pipeline; any alignment") \
    row(matmul,    fwd,  select,   19, KBK_HALF, 90a, KBK_OWN,  "tile size by shape; unaligned inputs copied") \
    row(matmul,    fwd,  tf32,     20, KBK_SINGLE, 90a, KBK_OWN | KBK_TF32, "wgmma in TF32 (10 mantissa bits)") \
    row(matmul_e4m3, fwd, naive,   1,  KBK_BRAIN, 0,  KBK_OWN,  "one thread per element of C") \
    row(matmul_e4m3, fwd, shared,  2,  KBK_BRAIN, 0,  KBK_OWN,  "32 x 32 tiles in shared memory, in f32") \
    row(matmul_e4m3, fwd, tma,     3,  KBK_BRAIN, 90a, KBK_OWN, "wgmma on 128 x 128, f32 sums every 128 of K") \
    row(matmul_e4m3, fwd, select,  4,  KBK_BRAIN, 90a, KBK_OWN, "tile size by shape (up to 256 x 128); split-K") \
    KBKI_CUBLAS(row(matmul, fwd, cublas, 99, KBK_ALL, 0, KBK_VENDOR, "cublasGemmEx, f32 accumulation, no TF32")) \
    KBKI_CUBLAS(row(matmul_e4m3, fwd, cublas, 99, KBK_BRAIN, 89, KBK_VENDOR, "cublasLtMatmul, no fast accumulation"))

#define KBK_OPS_bmm(row) \
    row(bmm, fwd, KBK_GEMM, bmm, "C[b] = A[b] B[b]; layouts as matmul", \
        "A[Z,M|K] B[Z,K|N] -> C[Z,M|N]; layout=nn", KBKI_SIZES_BMM, 2 * 3 * 5 * 7, (21 + 35 + 15) * 2, \
        KBKI_CHECKS(1e-5, 256, 0, 5e-4, 6, 0, 3e-3, 6, 0))
#define KBK_TABLE_bmm(row) \
    row(bmm,       fwd,  regblock, 1,  KBK_ALL,  0,   KBK_OWN,  "the kernel of matmul, batch index in grid.z") \
    row(bmm,       fwd,  mmapipe,  2,  KBK_HALF, 80,  KBK_OWN,  "the kernel of matmul, batch index in grid.z") \
    row(bmm,       fwd,  select,   3, KBK_HALF, 90a, KBK_OWN, "wgmma, tile size by shape; persistent kernel") \
    row(bmm,       fwd,  tf32,     4,  KBK_SINGLE, 90a, KBK_OWN | KBK_TF32, "wgmma in TF32 (10 mantissa bits)") \
    KBKI_CUBLAS(row(bmm, fwd, cublas, 99, KBK_ALL, 0, KBK_VENDOR, "cublasGemmStridedBatchedEx, no TF32"))

#define KBK_OPS_attention(row) \
    row(attention, fwd, KBK_ATTN, attention_fwd, "o = softmax(q k' / sqrt(d)) v, and lse; causal or not", \
        "q[B,H,S|D] k[B,H,S|D] v[B,H,S|D] -> o[B,H,S|D] lse[B,H,S]; causal=False", \
        KBKI_SIZES_ATTN, 4 * 3 * 3 * 5, 4 * 30 + 12, KBKI_CHECKS(1e-5, 128, 1e-6, 1e-3, 4, 0, 6e-3, 4, 0)) \
    row(attention, bwd, KBK_ATTN, attention_bwd, "dq, dk, dv of attention, from do, q, k, v, o, lse", \
        "do[B,H,S|D] q[B,H,S|D] k[B,H,S|D] v[B,H,S|D] o[B,H,S|D] lse[B,H,S] " \
        "-> dq[B,H,S|D] dk[B,H,S|D] dv[B,H,S|D]; causal=False", KBKI_SIZES_ATTN, 10 * 3 * 3 * 5, 8 * 30 + 12, \
        KBKI_CHECKS(2e-5, 128, 0, 2e-3, 8, 0, 1.5e-2, 8, 0))
#define KBK_TABLE_attention(row) \
    row(attention, fwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "score matrix in memory, three passes") \
    row(attention, fwd,  online,   3,  KBK_ALL,  0,   KBK_OWN,  "warp per row, online softmax, 32-key tiles") \
    row(attention, fwd,  flash,    4,  KBK_ALL,  0,   KBK_OWN,  "64 x 64 tiles, 4 x 4 scores per thread, FMAs") \
    row(attention, fwd,  warpmma,  5,  KBK_HALF, 75,  KBK_OWN,  "mma.sync, loads and products alternate") \
    row(attention, fwd,  flashmma, 6,  KBK_HALF, 80,  KBK_OWN,  "mma.sync, 32 rows per warp, double buffering") \
    row(attention, fwd,  flashws,  7,  KBK_HALF, 90a, KBK_OWN,  "wgmma and TMA, warp specialization") \
    row(attention, fwd,  flashrs,  8,  KBK_HALF, 90a, KBK_OWN,  "three independent consumers") \
    row(attention, fwd,  pingpong, 9,  KBK_HALF, 90a, KBK_OWN,  "scores one tile ahead, 2 consumers alternate") \
    row(attention, fwd,  flashpp,  10, KBK_HALF, 90a, KBK_OWN,  "persistent kernel, 2 to 4 consumers by shape") \
    row(attention, bwd,  naive,    1,  KBK_ALL,  0,   KBK_OWN,  "both S x S matrices in memory") \
    row(attention, bwd,  flash,    4,  KBK_ALL,  0,   KBK_OWN,  "32 x 32 tiles, 4 x 2 pairs per thread, FMAs") \
    row(attention, bwd,  warpmma,  5,  KBK_HALF, 75,  KBK_OWN,  "mma.sync, loads and products alternate") \
    row(attention, bwd,  flashmma, 6,  KBK_HALF, 80,  KBK_OWN | KBK_UNORDERED, "128 keys per CTA, dq by atomics") \
    row(attention, bwd,  flashws,  7,  KBK_HALF, 90a, KBK_OWN | KBK_UNORDERED, "like flashmma, with wgmma and TMA") \
    KBKI_CUBLAS(row(attention, fwd, cublas, 2, KBK_ALL, 0, KBK_VENDOR, "batched GEMMs of cuBLAS, own softmax kernel"))

// The closed list of variant names: a row with any other name does not compile.
#define KBKI_WORDS(word) \
    word(naive) word(stride) word(vec) word(unroll) word(bulk) word(approx) word(block) word(warp) \
    word(online) word(onepass) word(shared) word(padded) word(cluster) word(atomic) word(ticket) word(split) \
    word(fused) word(sorted) word(matmul) word(coalesced) word(column) word(regblock) word(cpasync) \
    word(warptile) word(warpmma) word(swizzle) word(tmaload) word(warpgroup) word(wgmma) word(ws) word(coop) \
    word(persist) word(multicast) word(tma) word(mma) word(mmapipe) word(select) word(tf32) word(flash) \
    word(flashmma) word(flashws) word(flashrs) word(pingpong) word(flashpp) word(pinned) word(pageable) \
    word(sm) word(malloc) word(async) word(pool) word(cudart) word(cublas) word(cublaslt)
#define KBKI_OPS_OF(group, row) KBK_OPS_##group(row)
#define KBKI_TABLE_OF(group, row) KBK_TABLE_##group(row)
#define KBK_OPS_kbki_end(row)
#define KBK_TABLE_kbki_end(row)
#define KBK_OPS(row) KBKI_BUILT(KBKI_OPS_OF, row)
#define KBK_TABLE(row) KBKI_BUILT(KBKI_TABLE_OF, row)
#if defined(__CUDACC__) && (defined(KBK_ONLY) || defined(KBK_VARIANTS) || defined(KBK_TYPES))
#define KBKI_GROUP_MACRO(group, x) + group
#define KBKI_WORD_MACRO(word) + word
#if KBKI_GROUPS(KBKI_GROUP_MACRO, ) KBKI_WORDS(KBKI_WORD_MACRO) + f32 + f16 + bf16 != 0
#error "kbench_kernels.cuh: nvcc ends -D at a comma; write -DKBK_ONLY=a\\,b with a backslash before the comma"
#endif
#endif
// clang-format on
#endif // KBK_API_ONLY

/*-----------------------------------------------------------------
  >>shapes     Shapes, arguments, tensors, tolerances: the types of the table.
-----------------------------------------------------------------*/

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __CUDACC__
#ifndef KBK_API_ONLY // compiling these headers takes longer than compiling a small program
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif
#define KBK_HD __host__ __device__
#else
#define KBK_HD
#endif
#if defined(KBK_CUBLAS) && defined(__CUDACC__) && !defined(KBK_API_ONLY)
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#endif

#define KBK_EPS 1e-5       // epsilon of layer and RMS normalisation
#define KBK_IGNORE (-100)  // target value that makes the loss ignore a row
#define KBK_TICKETS 256    // size of the counters at the start of a workspace, in bytes
#define KBK_MAX_TENSORS 12 // largest number of tensors of an operation
#define KBK_OUTS 4         // largest number of outputs of an operation

typedef enum kbk_dtype { KBK_F32, KBK_F16, KBK_BF16, KBK_DTYPES } kbk_dtype;

#define KBK_SINGLE (1u << KBK_F32)
#define KBK_HALF (1u << KBK_F16 | 1u << KBK_BF16)
#define KBK_BRAIN (1u << KBK_BF16)
#define KBK_ALL (KBK_SINGLE | KBK_HALF)

// Families of operations. The family tells which members of kbk_shape an operation uses, so that a program can
// choose shapes for an operation that it does not know by name.
enum {
    KBK_MAP,   // n = rows * cols independent elements
    KBK_PICK,  // n = rows * cols accesses; `strided` also uses the member `stride`; `gather` also uses `among`
    KBK_SUM,   // n = rows * cols elements are reduced to one result
    KBK_ROWS,  // `rows` rows of `cols` elements each
    KBK_GEMM,  // matrix product: M = rows, N = cols, K = k; also uses the member `layout`, and bmm `batch`
    KBK_ATTN,  // attention: sequence length = rows, head dimension = cols; also uses batch, heads and causal
    KBK_LOOKUP // table with `vocabulary` rows of `cols` elements; `rows` ids select rows of the table
};

enum { KBK_NN, KBK_NT, KBK_TN }; // kbk_shape.layout

// Parameters of an operation. An operation reads only the parameters that its card names.
typedef struct kbk_shape {
    int64_t batch, heads, rows, cols;
    int64_t k;          // matrix products: inner dimension K
    int64_t vocabulary; // embedding: number of rows of the table
    int64_t stride;     // strided: distance between two elements that are read, in elements; 0 means 1
    int64_t among;      // gather: number of elements that the indices select from; 0 means n
    double p;           // dropout: probability that an element is set to 0
    int causal;         // attention: if 1, a query attends to no key after its own position
    int layout;         // matrix products: KBK_NN, KBK_NT or KBK_TN; T marks the transposed operand
    int sequential;     // gather: if 1, idx[i] = i % among; if 0, indices are random
    uint64_t seed;      // dropout: seed of the random mask
    // Distances in memory, in elements, of tensor i of the signature: strides[i][0] between rows, strides[i][1] and
    // [2] between indices of the dimensions further out; 0: contiguous. Only dimensions before a bar in the signature
    // have strides. The other operations need none: their callers pass complete tensors.
    int64_t strides[KBK_MAX_TENSORS][3];
} kbk_shape;
// Expands to f(member) for each member of kbk_shape that is a size.
#define KBK_SIZES(f) f(batch) f(heads) f(rows) f(cols) f(k) f(vocabulary) f(stride) f(among)

typedef struct CUstream_st* kbk_stream; // the same type as cudaStream_t

typedef struct kbk_args {
    kbk_shape s;
    const void* in[8]; // inputs in the order of kbk_<op>_<dir>_tensors
    void* out[KBK_OUTS];
    void* workspace; // scratch memory, aligned to 256 bytes; see "SCRATCH MEMORY" above
    size_t workspace_bytes;
    float scalar; // factor by which cross_entropy fwdbwd multiplies dx; 0 means 1
} kbk_args;

// Returns NULL on success, otherwise a text that says why nothing was launched.
typedef const char* (*kbk_launch_fn)(const kbk_args* a, kbk_stream stream);

enum { KBK_IN, KBK_OUT, KBK_INOUT };                     // kbk_tensor.role
enum { KBK_T, KBK_KF32, KBK_KI32, KBK_KI64, KBK_KE4M3 }; // kbk_tensor.kind; KBK_T: the element type of the variant
enum { KBK_ON_DEVICE, KBK_ON_HOST };                     // kbk_tensor.place
// kbk_tensor.fill
enum { KBK_NORMAL, KBK_UNIFORM, KBK_IDS, KBK_SAME, KBK_SEQUENCE, KBK_CYCLE };

typedef struct kbk_tensor {
    const char* name;
    int role, kind;
    int64_t count;    // number of elements
    int64_t per_unit; // elements per unit; 0: the tensor has no units (weights, column sums) and is compared as a whole
    // outputs: magnitudes (see kbk_check) that the oracle returns per unit besides the values: 0, 1 or per_unit
    int64_t scales;
    // Element i of an input. KBK_NORMAL: mean a, standard deviation b. KBK_UNIFORM: in [a, b). KBK_IDS: integer in
    // [a, b). KBK_SAME: a. KBK_SEQUENCE: i mod b. KBK_CYCLE: successor of i in one cycle through [0, b).
    int fill;
    double a, b;
    int place;        // KBK_ON_HOST: pinned memory, or pageable if the variant's origin has KBK_PAGEABLE
    int optional;     // if 1, the pointer to this output may be NULL; the output is then not written
} kbk_tensor;

/*  Tolerance of a result against its oracle. Let w = max(|ref|, row scale, magnitude from the oracle). The row
    scale is the root mean square of the unit's reference values. An element passes if |got - ref| <= ulps * ulp(w)
    + abs. The tensor passes if all elements pass and ||got - ref|| is within the larger of two bounds: norm *
    ||max(|ref|, magnitude)||, and 1.25 times the norm of the errors of rounding ref to the element type. If ulps
    is negative, |ulps| is used, and w is max(|ref|, magnitude): the rows of these operations have one element so
    large that the row scale would hide other errors. If ulps = 0 and abs = 0, the result must equal the oracle's
    value, rounded once. Outputs in f32 for every T (statistics, losses) use the tolerance of f32. */
typedef struct kbk_check {
    double norm, ulps, abs;
} kbk_check;

// Bits of kbk_variant.origin: what a program must know before it launches or times a variant.
enum {
    KBK_OWN = 1,
    KBK_VENDOR = 2,
    KBK_UNORDERED = 4,  // adds by atomics, so the order of additions varies
    KBK_COPIES = 8,     // is a copy by the CUDA runtime, not by a kernel
    KBK_ALLOCATES = 16, // allocates memory: timed by the host's clock, cannot be captured into a CUDA graph
    KBK_PAGEABLE = 32,  // requires that tensors on the host are in pageable memory
    KBK_TF32 = 64       // uses 10 of the 23 mantissa bits of f32; kbk_op_of returns the tolerance of the variant
};

typedef struct kbk_report {
    const char* why;         // NULL if the result passed, otherwise a text that says why it failed
    int64_t bad;             // number of elements whose error exceeds their bound
    int64_t index;           // index of the worst element in the tensor; -1 if nothing was compared
    double got, want, bound; // worst element: result, oracle, bound; the element passes if |got - want| <= bound
    double norm, norm_bound; // ||got - want|| / ||max(|want|, magnitude)||, and its bound
} kbk_report;

KBK_FN const char* kbk_dtype_name(int dtype) {
    return dtype == KBK_F32 ? "f32" : dtype == KBK_F16 ? "f16" : dtype == KBK_BF16 ? "bf16" : "?";
}
KBK_FN int kbk_dtype_size(int dtype) { return dtype == KBK_F32 ? 4 : 2; }
KBK_FN int kbk_kind_size(int kind, int dtype) {
    return kind == KBK_T ? kbk_dtype_size(dtype) : kind == KBK_KI64 ? 8 : kind == KBK_KE4M3 ? 1 : 4;
}
/*  Return whether a signature (kbk_op.signature) has a dimension with the given letter, or an option with the
    given name. Letters stand for members of kbk_shape: N, C and D for cols; R, M and S for rows; K for k; V for
    vocabulary; A for among; Z and B for batch; H for heads; X for n * stride; * for any number of dimensions. If
    the signature also has a C, `rows` is the product of the dimensions of the asterisk. */
KBK_FN int kbk_has_dimension(const char* signature, char letter) {
    int within = 0;
    for (const char* p = signature; *p && *p != ';'; p++) {
        within = *p == '[' || (within && *p != ']');
        if (within && *p == letter) return 1;
    }
    return 0;
}
KBK_FN int kbk_has_option(const char* signature, const char* name) {
    const size_t length = strlen(name);
    for (const char* p = strchr(signature, ';'); p && *p; p++)
        if (*p == ' ' && strncmp(p + 1, name, length) == 0 && p[1 + length] == '=') return 1;
    return 0;
}
#ifndef KBK_API_ONLY

// Tolerances (kbk_check) of f32, f16 and bf16.
// clang-format off
#define KBKI_CHECKS(n, u, a, n16, u16, a16, nb, ub, ab) {{n, u, a}, {n16, u16, a16}, {nb, ub, ab}}
// clang-format on

typedef struct kbk_op {
    const char *name, *dir, *formula, *signature;
    const char* sizes[2]; // sizes to measure on the GPU, and sizes for the oracle on the CPU
    int family;
    // Describes the tensors in t[0], t[1], ...; returns their number.
    int (*tensors)(const kbk_shape* s, kbk_tensor* t);
    // Returns the number of units: independent parts of the result, such as rows or elements. If it is 0, only
    // tensors without units, such as column sums, are written.
    int64_t (*units)(const kbk_shape* s);
    // The oracle writes unit u of output k, for u0 <= u < u1, at out[k] + (u - u0) * per_unit; tensors without
    // units at out[k]; magnitudes at out[KBK_OUTS + k]. An output whose out[k] is NULL is skipped. `in`: complete
    // tensors. elem: bytes per element of the variant that is checked; magnitudes depend on it.
    void (*ref)(const kbk_shape* s, int elem, const double* const* in, double* const* out, int64_t u0, int64_t u1);
    double (*flops)(const kbk_shape* s);
    double (*bytes)(const kbk_shape* s, int elem);
    size_t (*scratch)(const kbk_shape* s, int elem, int word); // word: KBKI_WORD_<...> of the variant
    kbk_check check[KBK_DTYPES];
} kbk_op;
// clang-format off
#define KBKI_OP_ROW(op, dir, family, scratch, formula, signature, sizes, flops, bytes, check)                \
    {#op, #dir, formula, signature, {sizes}, family,                                                                  \
     kbk_##op##_##dir##_tensors, kbk_##op##_##dir##_units, kbk_##op##_##dir##_ref,                           \
     kbk_##op##_##dir##_flops, kbk_##op##_##dir##_bytes, kbki_scratch_##scratch, check},
// clang-format on

// Memory layout of a tensor, in elements. Dimension 0 is the last of the signature; its elements are neighbours.
typedef struct kbk_layout {
    int dims; // 0: the signature has no bar, so the tensor is contiguous
    int64_t size[4], step[4];
} kbk_layout;
KBK_FN kbk_layout kbk_layout_of(const kbk_op* op, const kbk_shape* s, int tensor) {
    static const char letters[] = "HZBKMSND";
    const int64_t sizes[] = { s->heads, s->batch, s->batch, s->k, s->rows, s->rows, s->cols, s->cols };
    kbk_layout l = { 0, { 1, 1, 1, 1 }, { 1, 0, 0, 0 } };
    const char* p = strchr(op->signature, '[');
    for (int i = 0; i < tensor && p; i++) p = strchr(p + 1, '[');
    const char* at = p ? p + strcspn(p, "]") - 1 : NULL;
    // turned: whether the operand is stored transposed
    const int turned = op->family == KBK_GEMM && tensor < 2 && s->layout == (tensor ? KBK_NT : KBK_TN);
    if (!p || !memchr(p, '|', (size_t)(at - p))) return l;
    for (; at > p; at -= 2) l.size[l.dims < 2 ? l.dims++ ^ turned : l.dims++] = sizes[strchr(letters, *at) - letters];
    for (int d = 1; d < l.dims; d++) {
        l.step[d] = s->strides[tensor][d - 1];
        // unsigned, because kbk_check_shape rejects products that overflow only afterwards
        if (!l.step[d]) l.step[d] = (int64_t)((uint64_t)l.size[d - 1] * (uint64_t)l.step[d - 1]);
    }
    return l;
}
// Returns the distance, in elements, from the first element of a tensor to element number `index`.
KBK_FN int64_t kbk_offset(const kbk_layout* l, int64_t index) {
    int64_t at = 0;
    if (!l->dims) return index;
    for (int d = 0; d < 4; d++) at += index % l->size[d] * l->step[d], index /= l->size[d];
    return at;
}

// Lowest compute capability of a variant. KBK_SM_EXACT: the variant runs only on this architecture (sm_90a).
enum {
    KBK_SM_EXACT = 0x1000,
    KBK_SM_0 = 0,
    KBK_SM_75 = 75, // tensor cores with f16 need 7.5; tensor cores with bf16 need 8.0
    KBK_SM_80 = 80,
    KBK_SM_89 = 89,
    KBK_SM_90 = 90,
    KBK_SM_90a = 90 | KBK_SM_EXACT
};

typedef struct kbk_variant {
    const kbk_op* op;
    const char* name;
    int rung;
    unsigned dtypes;
    int sm, origin;
    const char* note;
    kbk_launch_fn launch[KBK_DTYPES];
    int word; // KBKI_WORD_<name>
} kbk_variant;

KBK_FN kbk_op kbk_op_of(const kbk_variant* v) {
    kbk_op op = *v->op;
    // TF32 has 13 mantissa bits fewer than f32: 2^13 = 8192
    if (v->origin & KBK_TF32) op.check[KBK_F32].norm = 1.5e-3, op.check[KBK_F32].ulps = 6 * 8192;
    return op;
}
#define KBKI_WORD_ID(word) KBKI_WORD_##word,
enum { KBKI_WORDS(KBKI_WORD_ID) KBKI_WORD_COUNT };
#undef KBKI_WORD_ID
// KBKI_HAS_<word> is 1 if variants named <word> are compiled, otherwise 0.
#ifdef KBK_VARIANTS
#define KBKI_WORD_ID(word) KBK_VARIANTS_has_no_##word,
enum { KBKI_WORDS(KBKI_WORD_ID) KBK_VARIANTS_has_no_kbki_end };
#undef KBKI_WORD_ID
#define KBKI_HAS_WORD(word) \
    KBKI_HAS_##word = 0 KBKI_EACH(KBKI_WORD_IS, KBK_VARIANTS_has_no_##word, KBK_VARIANTS),
#define KBKI_WORD_IS(name, word) || KBK_VARIANTS_has_no_##name == word
#else
#define KBKI_HAS_WORD(word) KBKI_HAS_##word = 1,
#endif
enum { KBKI_WORDS(KBKI_HAS_WORD) KBKI_HAS_COUNT };

KBK_FN int kbk_kind_whole(int kind) { return kind == KBK_KI32 || kind == KBK_KI64; } // integer kinds

// Return the descriptor of an input, of an input that holds indices, and of an output.
KBK_FN kbk_tensor kbki_in(const char* name, int64_t count, int64_t per_unit) {
    kbk_tensor t = { name, KBK_IN, KBK_T, count, per_unit, 0, KBK_NORMAL, 0, 1, 0, 0 };
    return t;
}
KBK_FN kbk_tensor kbki_ids(const char* name, int64_t count, int64_t per_unit, int64_t below) {
    kbk_tensor t = { name, KBK_IN, KBK_KI32, count, per_unit, 0, KBK_IDS, 0, (double)below, 0, 0 };
    return t;
}
KBK_FN kbk_tensor kbki_out(const char* name, int kind, int64_t count, int64_t per_unit, int64_t scales) {
    kbk_tensor t = { name, KBK_OUT, kind, count, per_unit, scales, KBK_SAME, 0, 0, 0, 0 };
    return t;
}
// KBKI_REF and KBKI_SCRATCH define kbk_op.ref and kbk_op.scratch. elem: bytes per element.
#define KBKI_MAYBE __attribute__((unused))
#define KBKI_REF(op_dir)                                                                                        \
    KBK_FN void kbk_##op_dir##_ref(const kbk_shape* s, KBKI_MAYBE int elem, KBKI_MAYBE const double* const* in, \
                                   double* const* out, int64_t u0, int64_t u1)
#define KBKI_SCRATCH(name) \
    KBK_FN size_t kbki_scratch_##name(KBKI_MAYBE const kbk_shape* s, KBKI_MAYBE int elem, KBKI_MAYBE int word)
KBKI_SCRATCH(none) { return 0; }
KBK_FN double kbki_n(const kbk_shape* s) { return (double)s->rows * (double)s->cols; }
// Defines kbk_<op>_<dir>_tensors: assigns t[0] to t[count - 1].
#define KBKI_TENSORS(op_dir, count, ...)                                        \
    KBK_FN int kbk_##op_dir##_tensors(const kbk_shape* s, kbk_tensor* t) {      \
        const int64_t rows = s->rows, cols = s->cols, n = rows * cols;          \
        (void)n, __VA_ARGS__;                                                   \
        return count;                                                           \
    }
// Defines kbk_<op>_<dir>_units, _flops and _bytes. flops, bytes: the expressions of the card, computed in double.
#define KBKI_FORMULA(s, value)                                                      \
    const double n = kbki_n(s), rows = (double)(s)->rows, cols = (double)(s)->cols; \
    (void)n, (void)rows, (void)cols;                                                \
    return value
#define KBKI_FORMULAS(op_dir, units, flops, bytes)                                       \
    KBK_FN int64_t kbk_##op_dir##_units(const kbk_shape* s) { return (void)s, (units); } \
    KBK_FN double kbk_##op_dir##_flops(const kbk_shape* s) { KBKI_FORMULA(s, flops); }   \
    KBK_FN double kbk_##op_dir##_bytes(const kbk_shape* s, int size) {                   \
        const double elem = size;                                                        \
        (void)elem;                                                                      \
        KBKI_FORMULA(s, bytes);                                                          \
    }

KBK_FN const char* kbki_check_strides(const kbk_op* op, const kbk_shape* s, double limit) {
    for (int i = 0; i < KBK_MAX_TENSORS; i++) {
        const int64_t* given = s->strides[i];
        if (!given[0] && !given[1] && !given[2]) continue;
        const kbk_layout l = kbk_layout_of(op, s, i);
        const int empty = !l.size[0] || !l.size[1] || !l.size[2] || !l.size[3];
        for (int d = 0; d < 4; d++) {
            double span = 1, step = (double)l.step[d]; // span: of the dimensions with smaller strides
            if (d && given[d - 1] < 0) return "a stride is negative";
            if (d && given[d - 1] && d >= l.dims) return "this operation has no such stride";
            if ((double)l.size[d] * step > limit) return "a tensor spans more than 2^56 elements";
            for (int e = 0; e < l.dims; e++)
                if (l.step[e] < l.step[d] || (l.step[e] == l.step[d] && e < d))
                    span += (double)(l.size[e] - 1) * (double)l.step[e];
            if (d < l.dims && !empty && l.size[d] > 1 && step < span)
                return "a stride is so small that elements overlap";
        }
    }
    return NULL;
}
/*  Returns NULL if the shape is valid, otherwise why not: a negative number, an unknown layout, strides that let
    elements overlap, or a tensor of more than 2^56 elements. For valid shapes, nothing overflows 64 bits. */
KBK_FN const char* kbk_check_shape(const kbk_op* op, const kbk_shape* s) {
    const double limit = (double)((int64_t)1 << 56);
    double largest = 0;
    int64_t least = 0;
#define KBKI_SIZE_RANGE(size) least = s->size < least ? s->size : least, largest = fmax(largest, (double)s->size);
    KBK_SIZES(KBKI_SIZE_RANGE)
    if (least < 0) return "a dimension is negative";
    const double rows = (double)s->rows, cols = (double)s->cols;
    double most = fmax(rows * cols * fmax((double)s->stride, 1), cols * (double)s->vocabulary);
    most = fmax(most, (double)s->k * fmax(rows, cols));
    if (op->family == KBK_ATTN) most = fmax(most, rows * rows); // the scores
    most *= fmax((double)s->batch, 1) * fmax((double)s->heads, 1);
    if (op->family == KBK_GEMM && (s->layout < KBK_NN || s->layout > KBK_TN)) return "the layout is unknown";
    return fmax(largest, most) > limit ? "a tensor has more than 2^56 elements" : kbki_check_strides(op, s, limit);
}
// Like kbk_check_shape; also checks the pointers of inputs that would be read and outputs that would be written.
KBK_FN const char* kbki_check_args(const kbk_op* op, const kbk_args* a) {
    kbk_tensor t[KBK_MAX_TENSORS];
    int writes = 0, ins = 0, outs = 0;
    if (!a) return "the arguments are null";
    const char* why = kbk_check_shape(op, &a->s);
    if (why) return why;
    const int n = op->tensors(&a->s, t);
    const int64_t units = op->units(&a->s);
    for (int i = 0; i < n; i++) {
        if (t[i].role == KBK_IN) continue;
        const int written = t[i].count > 0 && (units > 0 || !t[i].per_unit);
        if (written && !a->out[outs] && !t[i].optional) return "an output is null";
        writes += written, outs++;
    }
    for (int i = 0; i < n; i++)
        if (t[i].role == KBK_IN && !a->in[ins++] && t[i].count > 0 && writes) return "an input is null";
    return NULL;
}

/*-----------------------------------------------------------------
  >>numbers     Philox, conversion to 16 bits and back, reproducible inputs: the same bits on host and device.
-----------------------------------------------------------------*/

typedef struct kbk_u4 {
    uint32_t w[4];
} kbk_u4;

// Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror & Shaw 2011, "Parallel Random Numbers: As Easy as
// 1, 2, 3"): word i depends only on the stream and on i, not on the grid, the variant or the order of calls.
KBK_FN KBK_HD kbk_u4 kbk_philox(kbk_u4 ctr, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        // One 64-bit multiplication gives both halves of a product; multiplications are half of the work on a GPU.
        uint64_t p0 = (uint64_t)0xD2511F53u * ctr.w[0], p1 = (uint64_t)0xCD9E8D57u * ctr.w[2];
        ctr.w[0] = (uint32_t)(p1 >> 32) ^ ctr.w[1] ^ key0;
        ctr.w[1] = (uint32_t)p1;
        ctr.w[2] = (uint32_t)(p0 >> 32) ^ ctr.w[3] ^ key1;
        ctr.w[3] = (uint32_t)p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return ctr;
}

// The counter consists of block, tensor id and purpose; the key is the seed.
KBK_FN KBK_HD kbk_u4 kbk_random_block(uint64_t seed, uint64_t block, uint32_t id, uint32_t purpose) {
    const kbk_u4 ctr = { { (uint32_t)block, (uint32_t)(block >> 32), id, purpose } };
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

// The bits are tested, because a compiler with fast-math may remove comparisons with NaN or infinity.
KBK_FN int kbk_is_nan(double x) { return (kbki_bits(x) & ~(1ull << 63)) > 0x7FFull << 52; }
KBK_FN int kbk_is_inf(double x) { return (kbki_bits(x) & ~(1ull << 63)) == 0x7FFull << 52; }

KBK_FN int kbki_mantissa(int dtype) { return dtype == KBK_F32 ? 23 : dtype == KBK_F16 ? 10 : 7; }
KBK_FN int kbki_exponent(int dtype) { return dtype == KBK_F16 ? 5 : 8; }

// Rounds x to the bits of element type dtype (to nearest, ties to even). Returns infinity for large x, and a
// quiet NaN for NaN.
KBK_FN uint32_t kbk_round(int dtype, double x) {
    const int m = kbki_mantissa(dtype), e = kbki_exponent(dtype), bias = (1 << (e - 1)) - 1;
    const uint32_t inf = ((1u << e) - 1) << m;
    uint64_t b = kbki_bits(x), man = b & ((1ull << 52) - 1);
    uint32_t sign = (uint32_t)(b >> 63) << (m + e);
    int exp = (int)(b >> 52 & 0x7FF);
    if (exp == 0x7FF) return sign | inf | (man ? 1u << (m - 1) : 0);
    if (exp == 0) return sign; // |x| is 0, or far below the smallest subnormal number of every element type
    man |= 1ull << 52;
    exp += bias - 1023;
    int shift = 52 - m;
    if (exp < 1) shift += 1 - exp;
    if (shift > 54) return sign;
    uint64_t q = man >> shift, rest = man & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    q += rest > half || (rest == half && (q & 1));
    // If rounding up overflows the mantissa, the carry correctly increases the exponent, also for subnormals.
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

/*  An e4m3 number (Open Compute Project 2023, "OCP 8-bit Floating Point Specification") has a sign bit, four
    exponent bits with bias 7, and three mantissa bits. The largest one is 448; there is no infinity, and only 0x7F
    and 0xFF are NaN. Subnormal numbers are multiples of 2^-9. */
typedef struct kbk_e4m3 {
    uint8_t bits;
} kbk_e4m3;
KBK_FN double kbk_e4m3_value(uint32_t bits) {
    int exp = (int)(bits >> 3 & 15), man = (int)(bits & 7);
    if ((bits & 0x7F) == 0x7F) return kbki_from_bits(0x7FF8ull << 48);
    double x = exp ? ldexp(8 + man, exp - 10) : ldexp(man, -9);
    return bits & 0x80 ? -x : x;
}
// Rounds x to the bits of an e4m3 number (to nearest, ties to even). Numbers above 448 and infinity become 448.
KBK_FN uint32_t kbk_e4m3_bits(double x) {
    uint32_t sign = (uint32_t)(kbki_bits(x) >> 63) << 7;
    int e = 0;
    x = fabs(x);
    if (kbk_is_nan(x)) return sign | 0x7F;
    if (kbk_is_inf(x) || x >= 448) return sign | 0x7E;
    frexp(x, &e);
    if (e < -5 || x == 0) e = -5;
    // q is x in units of the spacing of e4m3 numbers near x: 8 <= q < 16, or q < 8 if x is subnormal
    double q = ldexp(x, 4 - e), low = floor(q);
    if (q - low > 0.5 || (q - low == 0.5 && fmod(low, 2) == 1)) low++;
    return sign | (uint32_t)((e + 5) * 8 + (int)low); // if low is 16, it carries into the exponent
}

// Converts n elements from the type in which a tensor is stored to double; exact, except for ids above 2^53.
KBK_FN void kbk_widen(int kind, int dtype, const void* p, double* x, int64_t n) {
    const unsigned char* c = (const unsigned char*)p;
    int size = kbk_kind_size(kind, dtype), as = kind == KBK_T ? dtype : KBK_F32;
    for (int64_t i = 0; i < n; i++, c += size) {
        uint64_t bits = 0; // this copy needs a little-endian host; CUDA supports no other hosts
        memcpy(&bits, c, (size_t)size);
        x[i] = kind == KBK_KI64     ? (double)(int64_t)bits
               : kind == KBK_KI32   ? (double)(int32_t)bits
               : kind == KBK_KE4M3 ? kbk_e4m3_value((uint32_t)bits)
                                    : kbki_widen_bits(as, (uint32_t)bits);
    }
}

// Converts n doubles to the type in which a tensor is stored, with one rounding.
KBK_FN void kbk_narrow(int kind, int dtype, const double* x, void* p, int64_t n) {
    unsigned char* c = (unsigned char*)p;
    int size = kbk_kind_size(kind, dtype), as = kind == KBK_T ? dtype : KBK_F32;
    for (int64_t i = 0; i < n; i++, c += size) {
        uint64_t bits = kbk_kind_whole(kind) ? (uint64_t)(int64_t)x[i]
                        : kind == KBK_KE4M3  ? kbk_e4m3_bits(x[i])
                                             : kbk_round(as, x[i]);
        memcpy(c, &bits, (size_t)size);
    }
}

// Returns element i of the random stream (seed, id), from Philox block i / 4: word i mod 4, or two words for a
// normal number (Box & Muller 1958).
KBK_FN double kbki_random(int fill, double a, double b, uint64_t seed, int id, int64_t i) {
    const double word = 1 / 4294967296.0, top24 = 1 / 16777216.0;
    kbk_u4 r = kbk_random_block(seed, (uint64_t)i / 4, (uint32_t)id, 0);
    int w = (int)(i & 3);
    if (fill == KBK_SAME) return a;
    if (fill == KBK_SEQUENCE) return (double)(i % (int64_t)b);
    if (fill == KBK_UNIFORM) return a + (b - a) * ((double)(r.w[w] >> 8) * top24);
    if (fill == KBK_IDS) return a + floor((b - a) * ((double)r.w[w] * word));
    double radius = sqrt(-2.0 * log(((double)r.w[w & 2] + 1.0) * word));
    double angle = 6.283185307179586 * word * (double)r.w[(w & 2) + 1];
    return a + b * radius * (w & 1 ? sin(angle) : cos(angle));
}

/*  Sets mul and add of the map i -> (mul i + add) mod n, one cycle through all n < 2^31 numbers (Hull & Dobell
    1962): add and n have no common factor; mul - 1 is divisible by every prime factor of n, and by 4 if 4 divides
    n. For powers of two, successive numbers are well scattered. If no square divides n, the step is constant. */
KBK_FN void kbki_cycle(int64_t n, int64_t* mul, int64_t* add) {
    int64_t factor = n % 4 ? 1 : 2, rest = n;
    for (int64_t p = 2; p * p <= rest; p++) {
        if (rest % p == 0) factor *= p;
        while (rest % p == 0) rest /= p;
    }
    factor *= rest;
    *mul = 1 + factor * ((int64_t)(0.618 * (double)n / (double)factor) | 1);
    for (*add = (int64_t)(0.382 * (double)n) | 1;; *add += 1) {
        int64_t a = *add, b = n;
        while (b) {
            int64_t r = a % b;
            a = b, b = r;
        }
        if (a == 1) return;
    }
}

// Writes elements i0 to i0 + n - 1 of input id to x, for the oracle, rounded to the type of the tensor.
KBK_FN void kbk_fill(const kbk_tensor* t, int id, int dtype, uint64_t seed, int64_t i0, int64_t n, double* x) {
    int64_t mul = 0, add = 0;
    if (t->fill == KBK_CYCLE) kbki_cycle((int64_t)t->b, &mul, &add);
    for (int64_t i = 0; i < n; i++) {
        if (t->fill == KBK_CYCLE) {
            x[i] = (double)((mul * (i0 + i) + add) % (int64_t)t->b);
            continue;
        }
        double v = kbki_random(t->fill, t->a, t->b, seed, id, i0 + i);
        if (t->kind == KBK_KE4M3)
            x[i] = kbk_e4m3_value(kbk_e4m3_bits(v));
        else
            x[i] = kbk_kind_whole(t->kind) ? v : kbk_round_value(t->kind == KBK_T ? dtype : KBK_F32, v);
    }
}

/*-----------------------------------------------------------------
  >>verify     Compares a result with its oracle, by element and by norm; a NaN cannot pass.
-----------------------------------------------------------------*/

#define KBKI_HUGE 1e300

// Returns the distance (ulp) of neighbouring numbers near |x|, at least the smallest subnormal number.
KBK_FN double kbk_ulp(int dtype, double x) {
    int m = kbki_mantissa(dtype), least = 2 - (1 << (kbki_exponent(dtype) - 1)), e = 0;
    x = fabs(x);
    if (!(x > 0) || kbk_is_inf(x)) return ldexp(1.0, least - m);
    frexp(x, &e);
    return ldexp(1.0, (e - 1 > least ? e - 1 : least) - m);
}

// Stores the descriptor of output k in *out. Returns the number of tensors, or 0 if there is no output k.
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

// Returns the root mean square of the finite numbers among x[0] to x[n - 1].
KBK_FN double kbki_rms(const double* x, int64_t n) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!kbk_is_nan(x[i]) && !kbk_is_inf(x[i])) sum += x[i] * x[i], count++;
    return count > 0 ? sqrt(sum / count) : 0;
}

// Returns 1 if one element passes: NaN and infinities must agree, other values must be within the bound.
KBK_FN int kbki_good(int dtype, const kbk_check* c, double got, double want, double scale, double* bound) {
    double w = fabs(want) > scale ? fabs(want) : scale;
    *bound = fabs(c->ulps) * kbk_ulp(dtype, w) + c->abs;
    if (kbk_is_nan(want) || kbk_is_nan(got)) return kbk_is_nan(want) && kbk_is_nan(got);
    if (c->ulps == 0 && c->abs == 0) return kbki_bits(got) == kbki_bits(kbk_round_value(dtype, want));
    double rounded = kbk_round_value(dtype, want);
    if (kbk_is_inf(rounded) || kbk_is_inf(got)) return kbki_bits(got) == kbki_bits(rounded);
    return fabs(got - want) <= *bound;
}

typedef struct kbki_tally {
    // sums of the squares of the errors, of the oracle's values, and of the errors of rounding these values
    double diff2, ref2, rounding2, compared, worst;
    int good;                                       // 1 if the worst element so far passes
} kbki_tally;

// Compares n elements of a unit with the oracle. rms: the unit's row scale (see kbk_check).
KBK_FN void kbki_verify_piece(const kbk_tensor* t, int dtype, const kbk_check* c, const double* got,
                              const double* ref, const double* scale, double rms, int64_t n, int64_t base,
                              kbki_tally* sum, kbk_report* r) {
    // Rounding a subnormal result causes an error of up to half of the smallest subnormal number.
    double step = 0.5 * kbk_ulp(dtype, 0.0);
    for (int64_t i = 0; i < n; i++) {
        double magnitude = !scale ? 0 : t->scales == 1 ? scale[0] : scale[i], bound = 0;
        int good = kbki_good(dtype, c, got[i], ref[i], magnitude > rms || c->ulps < 0 ? magnitude : rms, &bound);
        double diff = fabs(got[i] - ref[i]), over = diff - bound;
        if (kbk_is_nan(diff)) over = good ? -KBKI_HUGE : KBKI_HUGE;
        r->bad += !good;
        if (r->index < 0 || (good == sum->good ? over > sum->worst : !good)) {
            r->index = base + i, r->got = got[i], r->want = ref[i], r->bound = bound;
            sum->worst = over, sum->good = good;
        }
        if (kbk_is_nan(diff) || kbk_is_inf(diff)) continue;
        double w = fabs(ref[i]) > magnitude ? fabs(ref[i]) : magnitude;
        double rounding = kbk_round_value(dtype, ref[i]) - ref[i];
        diff = diff > step ? diff - step : 0;
        sum->diff2 += diff * diff, sum->ref2 += w * w, sum->rounding2 += rounding * rounding, sum->compared++;
    }
}

KBK_FN int kbki_verify_whole(int dtype, const kbk_check* c, const kbki_tally* sum, kbk_report* r) {
    // Rounding errors average out in the norm of many elements; with fewer than 1024, all may be near the largest.
    double few = sum->compared < 1024 ? ldexp(1.0, -1 - kbki_mantissa(dtype)) : 0;
    double diff = sqrt(sum->diff2), ref = sqrt(sum->ref2), rounding = 1.25 * sqrt(sum->rounding2);
    int exact = c->ulps == 0 && c->abs == 0;
    r->norm = ref > 0 ? diff / ref : diff > 0 ? KBKI_HUGE : 0;
    r->norm_bound = c->norm + few;
    // If a few large elements dominate the norm, even a result that is rounded only once may exceed c->norm.
    if (ref > 0 && r->norm_bound * ref < rounding) r->norm_bound = rounding / ref;
    if (r->bad)
        r->why = "an element is outside its bound";
    else if (!exact && !(diff <= r->norm_bound * ref + c->abs * sqrt(sum->compared)))
        r->why = "the norm of the difference is outside its bound";
    return r->why == NULL;
}

/*  Compares units u0 to u1 - 1 of output k with the oracle, or the complete output if it has no units. got: the
    units as the device stored them. out: results of the oracle, with magnitudes. Returns 1 if it passes. */
KBK_FN int kbk_verify(const kbk_op* op, int dtype, const kbk_shape* s, int k, const void* got, double* const* out,
                      int64_t u0, int64_t u1, kbk_report* r) {
    const int64_t chunk = 256;
    kbk_tensor t;
    kbki_tally sum = { 0, 0, 0, 0, 0, 1 };
    double x[256];
    memset(r, 0, sizeof *r);
    r->index = -1;
    if (!kbk_output(op, s, k, &t) || !out[k]) {
        r->why = "no such output";
        return 0;
    }
    int as = t.kind == KBK_T ? dtype : KBK_F32, size = kbk_kind_size(t.kind, dtype);
    kbk_check c = op->check[as];
    if (kbk_kind_whole(t.kind)) c.norm = c.ulps = 0, c.abs = 0.5; // integers must equal the oracle's integers
    int64_t per = t.per_unit ? t.per_unit : t.count, units = t.per_unit ? u1 - u0 : 1;
    for (int64_t u = 0; u < units; u++) {
        const double *ref = out[k] + u * per, *scale = t.scales ? out[KBK_OUTS + k] + u * t.scales : NULL;
        const unsigned char* raw = (const unsigned char*)got + u * per * size;
        double rms = kbki_rms(ref, per);
        for (int64_t i = 0; i < per; i += chunk) {
            int64_t n = per - i < chunk ? per - i : chunk, base = (t.per_unit ? u0 + u : 0) * per + i;
            kbk_widen(t.kind, dtype, raw + i * size, x, n);
            kbki_verify_piece(&t, as, &c, x, ref + i, scale && t.scales > 1 ? scale + i : scale, rms, n, base, &sum,
                              r);
        }
    }
    return kbki_verify_whole(as, &c, &sum, r);
}

/*-----------------------------------------------------------------
  >>device     Functions that kernels share: packs (16-byte vectors), reductions, online softmax, tickets.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

// --- conversion of an element to float and back
__device__ __forceinline__ float kbki_float(float x) { return x; }
__device__ __forceinline__ float kbki_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float kbki_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float kbki_float(kbk_e4m3 x) {
    uint32_t b = x.bits & 0x7F;
    float f = b < 8 ? (float)b * 0x1p-9f : __uint_as_float(b == 0x7F ? 0x7FC00000u : (b << 20) + (120u << 23));
    return x.bits & 0x80 ? -f : f;
}

template <class T> struct kbki_type;
template <> struct kbki_type<float> {
    // -inf in every element of a 32-bit word; 16-bit types have two elements per word
    static constexpr uint32_t minus_inf = 0xFF800000u;
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

// Element type of the result of a matrix product.
template <class T> struct kbki_result_of { typedef T type; };
template <> struct kbki_result_of<kbk_e4m3> { typedef __nv_bfloat16 type; };
template <class T> using kbki_result = typename kbki_result_of<T>::type;

// Convert a 32-bit word of a vector (one f32 or two 16-bit elements) to floats, and back.
__device__ __forceinline__ void kbki_unword(float*, uint32_t w, float* f) { f[0] = __uint_as_float(w); }
__device__ __forceinline__ void kbki_unword(__half*, uint32_t w, float* f) {
    float2 v = __half22float2(*reinterpret_cast<__half2*>(&w));
    f[0] = v.x, f[1] = v.y;
}
__device__ __forceinline__ void kbki_unword(__nv_bfloat16*, uint32_t w, float* f) {
    f[0] = __uint_as_float(w << 16),
    f[1] = __uint_as_float(w & 0xFFFF0000u); // a bf16 number has the upper 16 bits of an f32 number
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

/*  A pack is a 16-byte vector of KBKI_WIDTH elements in the format of memory, or one element if Width is 1, for
    unaligned addresses. Elements are converted to float only when they are used: 16-bit elements take half the
    registers. No cache hints: evict-first (ld.cs, no_allocate) makes a streaming kernel 3 to 12 % slower on an H200.
    PTX is used, because the compiler may split a C++ assignment and spread the accesses among the arithmetic. */
#define KBKI_WIDTH(T) ((int)(16 / sizeof(T)))

template <class T, int Width> struct kbki_pack {
    static_assert(Width == KBKI_WIDTH(T), "a pack is a 16-byte vector or one element");
    static constexpr int width = Width;
    uint4 q;
    __device__ __forceinline__ void load(const T* p) {
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w)
                     : "l"(p)
                     : "memory");
    }
    __device__ __forceinline__ void load_cached(const T* p) { q = __ldg(reinterpret_cast<const uint4*>(p)); }
    __device__ __forceinline__ void store(T* p) const {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(q.x), "r"(q.y), "r"(q.z), "r"(q.w)
                     : "memory");
    }
    __device__ __forceinline__ void store_cached(T* p) const { *reinterpret_cast<uint4*>(p) = q; }
    __device__ __forceinline__ void store_eager(T* p) const { __stcs(reinterpret_cast<uint4*>(p), q); }
    __device__ __forceinline__ void fill(uint32_t w) { q = make_uint4(w, w, w, w); }
    // Makes a later use convert the vector again, instead of keeping the floats in registers between two passes.
    __device__ __forceinline__ void forget() { asm volatile("" : "+r"(q.x), "+r"(q.y), "+r"(q.z), "+r"(q.w)); }
    __device__ __forceinline__ void get(float* f) const {
        constexpr int step = Width / 4;
        kbki_unword((T*)0, q.x, f), kbki_unword((T*)0, q.y, f + step);
        kbki_unword((T*)0, q.z, f + 2 * step), kbki_unword((T*)0, q.w, f + 3 * step);
    }
    __device__ __forceinline__ void set(const float* f) {
        constexpr int step = Width / 4;
        q = make_uint4(kbki_word((T*)0, f), kbki_word((T*)0, f + step), kbki_word((T*)0, f + 2 * step),
                       kbki_word((T*)0, f + 3 * step));
    }
};
template <class T> struct kbki_pack<T, 1> {
    T v;
    __device__ __forceinline__ void load(const T* p) { v = *p; }
    __device__ __forceinline__ void load_cached(const T* p) { v = __ldg(p); }
    __device__ __forceinline__ void store(T* p) const { *p = v; }
    __device__ __forceinline__ void store_cached(T* p) const { *p = v; }
    __device__ __forceinline__ void store_eager(T* p) const { __stcs(p, v); }
    __device__ __forceinline__ void fill(uint32_t w) { memcpy(&v, &w, sizeof v); }
    __device__ __forceinline__ void forget() {}
    __device__ __forceinline__ void get(float* f) const { f[0] = kbki_float(v); }
    __device__ __forceinline__ void set(const float* f) { v = kbki_type<T>::from(f[0]); }
};

__device__ __half2 kbki_two(__half*);
__device__ __nv_bfloat162 kbki_two(__nv_bfloat16*);
// Elementwise maximum of two words of vectors; ignores NaN, like fmaxf.
__device__ __forceinline__ uint32_t kbki_max_word(float*, uint32_t a, uint32_t b) {
    return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b)));
}
template <class T> __device__ __forceinline__ uint32_t kbki_max_word(T*, uint32_t a, uint32_t b) {
    typedef decltype(kbki_two((T*)0)) two;
    two x, y;
    memcpy(&x, &a, 4), memcpy(&y, &b, 4);
    x = __hmax2(x, y);
    memcpy(&a, &x, 4);
    return a;
}
template <class T> __device__ __forceinline__ float kbki_max_of(const kbki_pack<T, 1>& v) { return kbki_float(v.v); }
template <class T, int Width> __device__ __forceinline__ float kbki_max_of(const kbki_pack<T, Width>& v) {
    float f[2];
    kbki_unword((T*)0, kbki_max_word((T*)0, kbki_max_word((T*)0, v.q.x, v.q.y), kbki_max_word((T*)0, v.q.z, v.q.w)),
                f);
    return Width == 4 ? f[0] : fmaxf(f[0], f[1]);
}

// Divides n elements at p into single elements up to a 16-byte boundary, 16-byte vectors, and single elements.
struct kbki_span {
    int64_t packs;
    int head, tail; // numbers of elements, each less than Width; head + tail is at most 14
};
template <class T, int Width> __host__ __device__ __forceinline__ kbki_span kbki_split(const T* p, int64_t n) {
    int64_t head = Width == 1 ? 0 : (int64_t)((0 - (uintptr_t)p & 15) / sizeof(T));
    if (head > n) head = n;
    kbki_span s = { (n - head) / Width, (int)head, 0 };
    s.tail = (int)(n - head - s.packs * Width);
    return s;
}
// Returns the index of the single element that thread t (of at least 14) processes, or -1.
__device__ __forceinline__ int64_t kbki_single(kbki_span s, int64_t n, int t) {
    return t < s.head ? t : t < s.head + s.tail ? n - s.tail + (t - s.head) : -1;
}

// --- reductions: every thread gets the result. A group is some lanes of a warp, a warp (Threads = 32), or a CTA.
#define KBKI_LANES(threads) ((threads) < 32 ? (threads) : 32)
struct kbki_max {
    typedef float type;
    static __device__ __forceinline__ float none() { return -INFINITY; }
    static __device__ __forceinline__ float join(float a, float b) { return fmaxf(a, b); }
    static __device__ __forceinline__ float shuffle(float v, int d) { return __shfl_xor_sync(~0u, v, d); }
};
template <class Value> struct kbki_sum {
    typedef Value type;
    static __device__ __forceinline__ Value none() { return 0; }
    static __device__ __forceinline__ Value join(Value a, Value b) { return a + b; }
    static __device__ __forceinline__ Value shuffle(Value v, int d) { return __shfl_xor_sync(~0u, v, d); }
};
struct kbki_sum2 {
    typedef float2 type;
    static __device__ __forceinline__ float2 none() { return make_float2(0, 0); }
    static __device__ __forceinline__ float2 join(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
    static __device__ __forceinline__ float2 shuffle(float2 v, int d) {
        return make_float2(__shfl_xor_sync(~0u, v.x, d), __shfl_xor_sync(~0u, v.y, d));
    }
};

template <class Reduce, int Lanes = 32>
__device__ __forceinline__ typename Reduce::type kbki_warp_all(typename Reduce::type v) {
#pragma unroll
    for (int d = Lanes / 2; d; d >>= 1) v = Reduce::join(v, Reduce::shuffle(v, d));
    return v;
}
// Reduces v over the threads of a CTA. slots: 32 values in shared memory. A second reduction needs another array,
// because no barrier follows the last read.
template <class Reduce, int Threads>
__device__ __forceinline__ typename Reduce::type kbki_all(typename Reduce::type v, typename Reduce::type* slots) {
    v = kbki_warp_all<Reduce, KBKI_LANES(Threads)>(v);
    if (Threads <= 32) return v;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) slots[warp] = v;
    __syncthreads();
    v = Reduce::none();
    if (lane < Threads / 32) v = slots[lane];
    return kbki_warp_all<Reduce>(v);
}

// --- online softmax (Milakov & Gimelshein 2018): m, the running maximum, and s, the sum of exp(x - m)
#define KBKI_LOG2E 1.4426950408889634f
#define KBKI_LN2 0.6931471805599453f

// 2^x by one instruction: relative error about 2^-22; results below 2^-126 are 0
__device__ __forceinline__ float kbki_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// returns 1 / x by one instruction; error at most 1 ulp
__device__ __forceinline__ float kbki_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// Returns whether the rounding error of b (32 at b = 2^29) is comparable to differences between exponents.
__device__ __forceinline__ bool kbki_coarse(float b) { return !(fabsf(b) < 536870912.0f); } // 2^29
/*  exp(x - m) as exp2(k x - b), by one FMA and one exp2: k = log2(e), b = m log2(e). b is rounded once, so that
    all exponentials of a sum use the same b. If all elements of a row are masked, m is the value of a masked
    element, such as -1e30 or -FLT_MAX. If |m log2(e)| >= 2^29, f32 numbers near m differ by at least 32, and only
    numbers equal to m contribute: k = 1 and b = m make the value exactly 1 if x = m. A maximum of -inf is replaced
    by -FLT_MAX, because (-inf) - (-inf) is NaN. */
struct kbki_base {
    float k, b;
    kbki_base() = default;
    __device__ __forceinline__ explicit kbki_base(float m) {
        m = fmaxf(m, -3.402823466e38f), b = __fmul_rn(m, KBKI_LOG2E), k = KBKI_LOG2E;
        if (kbki_coarse(b)) k = 1.0f, b = m;
    }
    // Returns the rounding error of b: exp2(k x - b) is exp(x - m) exp2(rest(m)).
    __device__ __forceinline__ float rest(float m) const { return fmaf(fmaxf(m, -3.402823466e38f), k, -b); }
};
// base: kbki_base(m)
__device__ __forceinline__ float kbki_exp_from(float x, kbki_base base) {
    return kbki_exp2(fmaf(x, base.k, -base.b));
}
// Returns exp(m - n), which converts a sum of exp(x - m) to a sum of exp(x - n). to: kbki_base(n), n >= m. If only
// one base is coarse, n - m is at least 32, and the factor is taken as 0.
__device__ __forceinline__ float kbki_rebase(float m, kbki_base to) {
    const kbki_base from(m);
    return from.k == to.k ? kbki_exp2(from.b - to.b) : 0.0f;
}

struct kbki_pair {
    typedef kbki_pair type;
    float m, s;
    static __device__ __forceinline__ kbki_pair none() { return { -INFINITY, 0.0f }; }
    static __device__ __forceinline__ kbki_pair join(kbki_pair a, kbki_pair b) {
        const bool up = b.m > a.m;
        const float m = up ? b.m : a.m, factor = kbki_rebase(up ? a.m : b.m, kbki_base(m));
        return { m, up ? fmaf(a.s, factor, b.s) : fmaf(b.s, factor, a.s) };
    }
    static __device__ __forceinline__ kbki_pair shuffle(kbki_pair v, int d) {
        return { __shfl_xor_sync(~0u, v.m, d), __shfl_xor_sync(~0u, v.s, d) };
    }
    __device__ __forceinline__ void add(float x) {
        if (x > m) s *= kbki_rebase(m, kbki_base(x)), m = x;
        s += kbki_exp_from(x, kbki_base(m));
    }
    // logarithm of the sum of exp(x - m) over the elements x; -inf if all elements are -inf
    __device__ __forceinline__ float log_sum() const { return KBKI_LN2 * (log2f(s) - kbki_base(m).rest(m)); }
};

/*  Computes the (max, sum) pair of the elements of a row that thread t processes, by online softmax. The sum is
    rescaled at most once per U vectors. Elements beyond the end of the row are replaced by -inf, which adds 0. */
template <class T, int Width, int U>
__device__ __forceinline__ kbki_pair kbki_row_pair(const T* row, int64_t cols, int t, int threads) {
    kbki_span sp = kbki_split<T, Width>(row, cols);
    kbki_pair r = kbki_pair::none();
    int64_t one = kbki_single(sp, cols, t);
    if (one >= 0) r.add(kbki_float(row[one]));
    for (int64_t i = t; i < sp.packs; i += (int64_t)U * threads) {
        kbki_pack<T, Width> v[U];
        float top = r.m;
#pragma unroll
        for (int u = 0; u < U; u++) {
            int64_t p = i + (int64_t)u * threads;
            v[u].fill(kbki_type<T>::minus_inf);
            if (p < sp.packs) v[u].load(row + sp.head + p * Width);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            float f[Width];
            v[u].get(f);
#pragma unroll
            for (int k = 0; k < Width; k++) top = fmaxf(top, f[k]);
        }
        const kbki_base base(top);
        float s = 0; // sum over U vectors; adding each term to the long running sum would lose digits
#pragma unroll
        for (int u = 0; u < U; u++) {
            float f[Width];
            v[u].get(f);
#pragma unroll
            for (int k = 0; k < Width; k++) s += kbki_exp_from(f[k], base);
        }
        r = { top, fmaf(r.s, kbki_rebase(r.m, base), s) };
    }
    return r;
}

/*  Reduction by the last CTA (threadfence reduction, CUDA C++ Programming Guide, "Memory Fence Functions"). Each
    CTA stores its partial result and increments a counter; the last CTA adds all partial results in index order.
    The counter may initially be 0 or have all bits set: each CTA adds 2, so the lowest bit tells which. The last
    CTA resets it to 0. All threads call this function after their CTA has written; it returns true in the last. */
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

/*  A reduction by the last CTA for partial results of 32 bits; faster than kbki_last_cta between the last load
    and the end of a kernel. Each CTA has a 64-bit slot in memory: its partial result in the lower half, a 1 in the
    upper half. While the other warps load data, which hides the latency, the last thread of the CTA empties the
    slot and takes a ticket by incrementing a counter. When a CTA gets the last ticket, no slot holds a partial
    result of an earlier launch. The last CTA waits until all slots are filled, and adds them in a fixed order.
    kbki_slot_number returns the ticket to the CTA's last thread, and 0 to all others. */
__device__ __forceinline__ unsigned kbki_slot_number(unsigned* counter, unsigned long long* slots) {
    if (threadIdx.x != blockDim.x - 1) return 0;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(slots + blockIdx.x), "l"(0ull) : "memory");
    __threadfence();
    return atomicAdd(counter, 2u);
}
// All threads of a CTA pass their value and the result of kbki_slot_number. In the last CTA, each thread calls
// take(part) for its share of the partial results, and the function returns true.
template <class Reduce, int Threads, class Take>
__device__ __forceinline__ bool kbki_by_slots(typename Reduce::type mine, unsigned number, unsigned* counter,
                                              unsigned long long* slots, Take take) {
    __shared__ typename Reduce::type warps[32];
    __shared__ bool last;
    unsigned bits;
    mine = kbki_all<Reduce, Threads>(mine, warps);
    memcpy(&bits, &mine, 4);
    if (threadIdx.x == 0)
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(slots + blockIdx.x), "l"(1ull << 32 | bits)
                     : "memory");
    if (threadIdx.x == Threads - 1) {
        last = (number & 1) ? number + 3u == 2u * gridDim.x : number + 2u == 2u * gridDim.x;
        if (last) *counter = 0;
        __threadfence();
    }
    __syncthreads();
    if (!last) return false;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += Threads) {
        unsigned long long slot = 0;
        while (!(slot >> 32))
            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(slot) : "l"(slots + i) : "memory");
        bits = (unsigned)slot;
        memcpy(&mine, &bits, 4);
        take(mine);
    }
    return true;
}

// Tree reduction in shared memory (Harris 2007): each step halves the number of active threads.
template <class Reduce, int Threads, class T> __device__ T kbki_tree(T v, T* s) {
    int t = threadIdx.x;
    __syncthreads(); // the previous reduction may still read s
    s[t] = v;
    for (int half = Threads / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) s[t] = Reduce::join(s[t], s[t + half]);
    }
    __syncthreads();
    return s[0];
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>launch     Functions that launchers share: cached queries, checks, choice of a kernel by row length, PDL.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

/*  Cache of the runtime's answers to queries, because a query takes longer than a launch. A thread claims an entry
    by changing its state from 0 to 1; the entry is valid when its state is 2, and is never released. If none is
    free, the runtime is queried each time. value: 0 if the answer is unknown, otherwise the answer plus one; for
    KBKI_GRANTED, the limit of dynamic shared memory in bytes. */
typedef enum kbki_what { KBKI_ATTRIBUTE, KBKI_PTX, KBKI_THREADS, KBKI_GRANTED, KBKI_CTAS, KBKI_CLUSTERS } kbki_what;
typedef struct kbki_fact {
    const void* kernel;
    uint64_t key; // combines the device, the query (kbki_what) and the query's parameters
    int value, state;
} kbki_fact;
#define KBKI_FACTS 2048
inline kbki_fact* kbki_facts(void) { // not static, so that all source files of a program share one table
    static kbki_fact table[KBKI_FACTS];
    return table;
}
KBK_FN kbki_fact* kbki_fact_of(const void* kernel, kbki_what what, int group, int threads, size_t bytes) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || device > 255) return NULL;
    uint64_t key =
        (uint64_t)device << 56 | (uint64_t)what << 52 | (uint64_t)group << 44 | (uint64_t)threads << 32 | bytes;
    uint64_t at = ((uint64_t)(uintptr_t)kernel ^ key * 0x9E3779B97F4A7C15u) * 0xC4CEB9FE1A85EC53u >> 40;
    for (int i = 0; i < 64; i++) {
        kbki_fact* f = kbki_facts() + (at + (uint64_t)i) % KBKI_FACTS;
        int state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE);
        if (state == 0 && __atomic_compare_exchange_n(&f->state, &state, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            f->kernel = kernel, f->key = key;
            __atomic_store_n(&f->state, 2, __ATOMIC_RELEASE);
            return f;
        }
        if (state == 2 && f->kernel == kernel && f->key == key) return f;
    }
    return NULL;
}
// Sets *value to the answer of the query; calls ask(value) only if the answer is not cached.
template <class Ask>
cudaError_t kbki_once(const void* kernel, kbki_what what, int group, int threads, size_t bytes, int* value, Ask ask) {
    kbki_fact* f = kbki_fact_of(kernel, what, group, threads, bytes);
    int known = f ? __atomic_load_n(&f->value, __ATOMIC_RELAXED) : 0;
    if (known) return *value = known - 1, cudaSuccess;
    cudaError_t e = ask(value);
    if (e == cudaSuccess && f) __atomic_store_n(&f->value, *value + 1, __ATOMIC_RELAXED);
    return e;
}

// Returns the text of a runtime error. Clears the runtime's last error, which the next launcher would otherwise
// report, and the cached limits of dynamic shared memory, which a reset of the device undoes.
KBK_FN const char* kbki_error(cudaError_t e) {
    for (int i = 0; i < KBKI_FACTS; i++)
        if (__atomic_load_n(&kbki_facts()[i].state, __ATOMIC_ACQUIRE) == 2 &&
            (kbki_facts()[i].key >> 52 & 15) == KBKI_GRANTED)
            __atomic_store_n(&kbki_facts()[i].value, 0, __ATOMIC_RELAXED);
    return cudaGetLastError(), cudaGetErrorString(e);
}
KBK_FN const char* kbki_launched(void) {
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? NULL : kbki_error(e);
}
// Returns 0 if there is no device.
KBK_FN int kbki_attribute(cudaDeviceAttr attribute) {
    int value = 0;
    cudaError_t e = kbki_once(NULL, KBKI_ATTRIBUTE, 0, 0, (size_t)attribute, &value, [&](int* to) {
        int device = 0;
        cudaError_t no = cudaGetDevice(&device);
        return no == cudaSuccess ? cudaDeviceGetAttribute(to, attribute, device) : no;
    });
    return e == cudaSuccess ? value : (cudaGetLastError(), 0);
}
KBK_FN int kbki_capability(void) {
    return 10 * kbki_attribute(cudaDevAttrComputeCapabilityMajor) + kbki_attribute(cudaDevAttrComputeCapabilityMinor);
}
// Sets *capability to the compute capability (90 for 9.0) for which the kernel that the device runs was compiled.
KBK_FN cudaError_t kbki_compiled(const void* kernel, int* capability) {
    return kbki_once(kernel, KBKI_PTX, 0, 0, 0, capability, [&](int* to) {
        cudaFuncAttributes compiled = {};
        cudaError_t e = cudaFuncGetAttributes(&compiled, kernel);
        return *to = compiled.ptxVersion, e;
    });
}
// Returns NULL if code for this compute capability (90 for 9.0) can run, otherwise why not. The device and the
// compiled code must have it, because code for a lower one contains empty kernels. Without -arch, nvcc compiles
// for the oldest compute capability.
template <class> __global__ void kbki_built_k() {}
#define KBKI_TEXT_CAPABILITY "this variant needs a higher compute capability"
KBK_FN const char* kbki_needs(int capability) {
    int compiled = 0;
    if (kbki_capability() < capability) return KBKI_TEXT_CAPABILITY;
    cudaError_t e = kbki_compiled((const void*)kbki_built_k<void>, &compiled);
    if (e != cudaSuccess) return kbki_error(e);
    return compiled < capability ? "this variant was compiled for a lower compute capability: nvcc -arch=native"
                                 : NULL;
}
// Like kbki_needs, for kbki_mma_fixed: tensor cores have f16 from compute capability 7.5 on, bf16 from 8.0 on.
template <class T> const char* kbki_needs_mma() {
    return kbki_type<T>::cuda == CUDA_R_16F ? kbki_needs(75) : kbki_needs(80);
}
KBK_FN int kbki_sms(void) {
    int n = kbki_attribute(cudaDevAttrMultiProcessorCount);
    return n > 0 ? n : 1;
}
KBK_FN int64_t kbki_ceil(int64_t n, int64_t d) { return (n + d - 1) / d; }
// Number of CTAs, at most `full`, of a grid-stride loop; the CTAs' numbers of pieces differ by at most one.
KBK_FN int64_t kbki_even(int64_t pieces, int64_t full) { return kbki_ceil(pieces, kbki_ceil(pieces, full)); }
KBK_FN bool kbki_grid_ok(int64_t ctas) { return ctas <= 0x7FFFFFFF; }
KBK_FN bool kbki_aligned(const void* p, size_t to) { return (uintptr_t)p % to == 0; }
// Whether two addresses have the same alignment modulo 16 bytes.
KBK_FN bool kbki_congruent(const void* p, const void* q) { return (((uintptr_t)p ^ (uintptr_t)q) & 15) == 0; }
KBK_FN const char* kbki_check_dims(const kbk_shape* s) {
    return s->rows < 0 || s->cols < 0 || s->k < 0 || s->vocabulary < 0 ? "a dimension is negative" : NULL;
}
KBK_FN const char* kbki_check_workspace(const kbk_args* a, size_t bytes) {
    if (!a->workspace || a->workspace_bytes < bytes) return "the workspace is missing or too small";
    return kbki_aligned(a->workspace, 256) ? NULL : "the workspace is not aligned to 256 bytes";
}
// Allows a kernel *bytes of dynamic shared memory; sets *bytes to 0 if the device lacks them. Functions from here
// on take the address of a kernel, so that they are compiled only once.
inline const char* kbki_want_shared(const void* kernel, size_t* bytes) {
    static int busy; // lock: if two threads set a kernel's limit at the same time, the larger limit must remain
    // A CTA has 48 KiB of shared memory without a request; 8 KiB are left for static shared memory.
    if (*bytes <= (40u << 10)) return NULL;
    // Of the device's limit for a CTA, 1 KiB is left for static shared memory.
    if (*bytes + 1024 > (size_t)kbki_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin))
        return *bytes = 0, (const char*)NULL;
    kbki_fact* f = kbki_fact_of(kernel, KBKI_GRANTED, 0, 0, 0);
    if (f && __atomic_load_n(&f->value, __ATOMIC_ACQUIRE) >= (int)*bytes) return NULL;
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) {}
    cudaError_t e = cudaSuccess;
    if (!f || f->value < (int)*bytes)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)*bytes);
    if (f && e == cudaSuccess && f->value < (int)*bytes) __atomic_store_n(&f->value, (int)*bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return e == cudaSuccess ? NULL : kbki_error(e);
}
template <class Kernel> __forceinline__ const char* kbki_want_shared(Kernel* kernel, size_t* bytes) {
    return kbki_want_shared((const void*)kernel, bytes);
}
// A parameter of type kbki_same<T>::type takes no part in template deduction; its argument is converted to T.
template <class T> struct kbki_same { typedef T type; };

/*  Programmatic dependent launch (PDL; PTX ISA, griddepcontrol) hides the launch latency of a kernel that needs
    results of the previous kernel in the stream. When every CTA of the first kernel has called kbki_follow_me or
    has ended, CTAs of the second kernel start on free SMs. kbki_follow_wait waits until all earlier kernels have
    ended and their writes are visible. Below compute capability 9.0, the two functions do nothing, and PDL is not
    used. A launcher never launches its first kernel by PDL: the kernel would overlap with earlier work of the
    program, and its time could not be measured. */
__device__ __forceinline__ void kbki_follow_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void kbki_follow_me() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Launches a kernel by PDL if its code has the wait instruction. bytes: dynamic shared memory. args: addresses.
KBK_FN const char* kbki_follow(const void* kernel, dim3 grid, unsigned threads, size_t bytes, kbk_stream st,
                               void** args) {
    cudaLaunchConfig_t cfg = {};
    cudaLaunchAttribute attr = {};
    int compiled = 0;
    cudaError_t e = kbki_compiled(kernel, &compiled);
    attr.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attr.val.programmaticStreamSerializationAllowed = 1;
    cfg.gridDim = grid, cfg.blockDim = dim3(threads), cfg.dynamicSmemBytes = bytes, cfg.stream = st;
    cfg.attrs = &attr, cfg.numAttrs = compiled >= 90;
    if (e == cudaSuccess) e = cudaLaunchKernelExC(&cfg, kernel, args);
    return e == cudaSuccess ? kbki_launched() : kbki_error(e);
}
template <class... Params>
__forceinline__ const char* kbki_follow(void (*kernel)(Params...), dim3 grid, unsigned threads, size_t bytes,
                                        kbk_stream st, typename kbki_same<Params>::type... args) {
    void* where[] = { (void*)&args... };
    return kbki_follow((const void*)kernel, grid, threads, bytes, st, where);
}
template <class... Params>
__forceinline__ const char* kbki_follow(void (*kernel)(Params...), dim3 grid, unsigned threads, kbk_stream st,
                                        typename kbki_same<Params>::type... args) {
    void* where[] = { (void*)&args... };
    return kbki_follow((const void*)kernel, grid, threads, 0, st, where);
}

/*  A launcher chooses a configuration (threads per row, vectors per thread) by row length from a table, shortest
    rows first. Few threads with many vectors need the fewest index computations and have the most registers. For
    very long rows, they leave too few threads on an SM. One warp processes a short row; 8 lanes process one of the
    shortest, because most lanes of a warp would be idle. */
template <class Kernel> struct kbki_plan {
    int64_t most; // longest row that this configuration processes, in 16-byte vectors
    Kernel* kernel;
    int threads, room; // number of threads per row; number of vectors in shared memory per thread of a CTA
};
template <class Kernel, size_t Count>
const kbki_plan<Kernel>& kbki_plan_of(const kbki_plan<Kernel> (&plans)[Count], int64_t packs) {
    size_t i = 0;
    while (i + 1 < Count && packs > plans[i].most) i++;
    return plans[i];
}
// Whether there are too few rows to fill the device. softmax bwd then uses one thread per vector, and a kbki_plan
// table is read as for rows of four times the length, which get more threads.
KBK_FN bool kbki_few_rows(int64_t rows, int64_t packs) {
    return rows <= 4 * kbki_sms() && packs > 64 && packs <= 512;
}
KBK_FN int64_t kbki_plan_packs(int64_t rows, int64_t packs) { return kbki_few_rows(rows, packs) ? 4 * packs : packs; }
#define KBKI_LAUNCHER(name, ...) \
    template <class T> const char* name(const kbk_args* a, kbk_stream st) { return __VA_ARGS__(a, st); }
// For sums without terms. Does nothing if the pointer is NULL.
template <class T> const char* kbki_zeros(T* sums, int64_t count, kbk_stream st) {
    cudaError_t e = sums && count ? cudaMemsetAsync(sums, 0, (size_t)count * sizeof(T), st) : cudaSuccess;
    return e == cudaSuccess ? NULL : kbki_error(e);
}
#define KBKI_TEXT_ALIGN "an address is not a multiple of the element size"
#define KBKI_TEXT_GRID "too many elements for one grid"
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>asm        PTX instructions that several sections use; compute capability 9.0: >>hopper.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

/*  If the GPU lacks an instruction, __trap() stands for it; it is never reached, because launchers call
    kbki_needs. The "memory" clobber keeps loads and stores in place; volatile keeps asm statements in order. */
// --- shared memory, by 32-bit addresses
__device__ __forceinline__ uint32_t kbki_shared(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
// If the parameter were a pointer, the compiler would compute the shared address again at each load.
__device__ __forceinline__ uint4 kbki_shared_pack(uint32_t at) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

// --- cp.async: copies from global to shared memory, without registers
// Copies of 16 bytes bypass the L1 cache; copies of 4 bytes do not.
template <int Bytes = 16> __device__ __forceinline__ void kbki_ahead_copy(uint32_t to, const void* from) {
#if __CUDA_ARCH__ >= 800
    if (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
#else
    __trap();
#endif
}
// If `there` is false, reads nothing and writes zeros.
template <int Bytes = 16>
__device__ __forceinline__ void kbki_ahead_copy_if(uint32_t to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
    if (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(there ? 4 : 0)
                     : "memory");
#else
    __trap();
#endif
}
// Closes a group of copies (cp.async.commit_group): those that this thread has started since the last call.
__device__ __forceinline__ void kbki_ahead_close() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int Pending> __device__ __forceinline__ void kbki_ahead_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

// --- tensor cores
// ldmatrix loads four 8 x 8 matrices of 16-bit elements. Lane l passes the address of row l % 8 of matrix l / 8.
template <bool Transpose> __device__ __forceinline__ void kbki_ldmatrix(uint32_t at, uint32_t* r) {
#if __CUDA_ARCH__ >= 750
    if (Transpose)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
#else
    __trap();
#endif
}
// Stores four 8 x 8 matrices in the layout of kbki_ldmatrix. Below compute capability 9.0, lanes exchange the
// addresses of rows by shuffles, and store words.
__device__ __forceinline__ void kbki_stmatrix(uint32_t to, const uint32_t* r) {
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
#else
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(__shfl_sync(~0u, to, i * 8 + lane / 4) + lane % 4 * 4), "r"(r[i])
                     : "memory");
#endif
}
/*  mma.sync: c (16 x 8, f32) += a (16 x 16) b (16 x 8). The compiler may move kbki_mma_free, for example among the
    exponentials of attention; kbki_mma_fixed stays in order with the loads of its operands. Each kernel uses the
    faster one. On compute capability 7.5, kbki_mma_fixed executes two f16 instructions, each with half of the
    columns of a. */
// clang-format off
#define KBKI_MMA(type)                                                                                               \
    "mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "     \
    "{%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                             \
                        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
#define KBKI_MMA_75(a0, a1, b0)                                                                                      \
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"           \
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(b0)
// clang-format on
template <class T> __device__ __forceinline__ void kbki_mma_free(float* c, const uint32_t* a, const uint32_t* b) {
#if __CUDA_ARCH__ >= 800
    if (kbki_type<T>::cuda == CUDA_R_16F)
        asm(KBKI_MMA("f16"));
    else
        asm(KBKI_MMA("bf16"));
#else
    __trap();
#endif
}
template <class T> __device__ __forceinline__ void kbki_mma_fixed(float* c, const uint32_t* a, const uint32_t* b) {
#if __CUDA_ARCH__ >= 800
    if (kbki_type<T>::cuda == CUDA_R_16F)
        asm volatile(KBKI_MMA("f16"));
    else
        asm volatile(KBKI_MMA("bf16"));
#elif __CUDA_ARCH__ >= 750
    if (kbki_type<T>::cuda == CUDA_R_16F) {
        asm volatile(KBKI_MMA_75(a[0], a[1], b[0]));
        asm volatile(KBKI_MMA_75(a[2], a[3], b[1]));
    } else
        __trap();
#else
    __trap();
#endif
}

// --- adds four floats atomically to four floats at an address that is aligned to 16 bytes
__device__ __forceinline__ void kbki_add4(float* to, const float* x) {
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
#else
    for (int e = 0; e < 4; e++) atomicAdd(to + e, x[e]);
#endif
}

// --- named barriers of Threads threads of a CTA; __syncthreads uses number 0
template <int Threads> __device__ __forceinline__ void kbki_barrier(int id) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(Threads) : "memory");
}
template <int Threads> __device__ __forceinline__ void kbki_barrier_arrive(int id) { // arrives without waiting
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(Threads) : "memory");
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>hopper     Compute capability 9.0: mbarrier, bulk copies and TMA, clusters; wgmma (only 9.0).
-----------------------------------------------------------------*/
#ifdef __CUDACC__

/*  Bulk copies (cp.async.bulk): one thread moves kilobytes between global and shared memory, asynchronously and
    without registers; addresses and sizes are multiples of 16 bytes. An mbarrier counts arrivals and arriving
    bytes; its phase parity flips whenever a phase is complete (PTX ISA, "mbarrier"). */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ void kbki_bar_init(uint64_t* bar, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(kbki_shared(bar)), "r"(arrivals) : "memory");
}
// Makes new mbarriers visible to the cluster; a barrier must follow before other threads use them.
__device__ __forceinline__ void kbki_bar_ready() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Arrives at the mbarrier, whose current phase then expects `bytes` more bytes.
__device__ __forceinline__ void kbki_bar_expect(uint64_t* bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(kbki_shared(bar)), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void kbki_bar_arrive(uint64_t* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(kbki_shared(bar)) : "memory");
}
// Arrives at the mbarrier of CTA `rank` of the cluster, at the offset of `bar`. The arrival orders no other
// accesses, because a release at cluster scope would first wait for all accesses of the thread.
__device__ __forceinline__ void kbki_bar_arrive_at(uint64_t* bar, unsigned rank) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(kbki_shared(bar)),
                 "r"(rank)
                 : "memory");
}
// Waits until the mbarrier's phase with this parity is complete, or until a time limit of the hardware; returns
// whether it is complete. In a new mbarrier, the phase with parity 1 counts as complete.
__device__ __forceinline__ bool kbki_bar_try(uint64_t* bar, unsigned parity) {
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(kbki_shared(bar)), "r"(parity)
                 : "memory");
    return done;
}
// For an mbarrier at which other CTAs arrive: an acquire at cluster scope, which also invalidates the L1 cache.
__device__ __forceinline__ bool kbki_bar_try_far(uint64_t* bar, unsigned parity) {
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(kbki_shared(bar)), "r"(parity)
                 : "memory");
    return done;
}
// Far: other CTAs arrive at the mbarrier.
template <bool Far = false> __device__ __forceinline__ void kbki_bar_wait(uint64_t* bar, unsigned parity) {
#ifdef KBK_TRAP_AFTER
    long long start = clock64();
    // After the time limit, a store to address 0 stops the kernel. The loop contains no trap instruction, because
    // ptxas keeps wgmma products in flight only in code without traps.
    while (!(Far ? kbki_bar_try_far(bar, parity) : kbki_bar_try(bar, parity)))
        asm volatile("{ .reg .pred late; setp.gt.s64 late, %0, %1; @late st.global.u32 [%2], 0; }"
                     :
                     : "l"(clock64() - start), "l"((KBK_TRAP_AFTER)*2000000000LL), "l"(0ull)
                     : "memory");
#else
    while (!(Far ? kbki_bar_try_far(bar, parity) : kbki_bar_try(bar, parity))) {}
#endif
}
__device__ __forceinline__ void kbki_bulk_load(void* to, const void* from, unsigned bytes, uint64_t* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(kbki_shared(to)),
                 "l"(from), "r"(bytes), "r"(kbki_shared(bar))
                 : "memory");
}
__device__ __forceinline__ void kbki_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Starts a bulk store as a bulk group of its own. Threads that wrote the shared memory must first call
// kbki_bulk_fence and then pass a barrier.
__device__ __forceinline__ void kbki_bulk_store(void* to, const void* from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(kbki_shared(from)),
                 "r"(bytes)
                 : "memory");
    kbki_bulk_commit();
}
__device__ __forceinline__ void kbki_bulk_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// kbki_bulk_read waits until at most Pending bulk stores of this thread still read shared memory; kbki_bulk_done
// waits until all are complete.
template <int Pending> __device__ __forceinline__ void kbki_bulk_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
__device__ __forceinline__ void kbki_bulk_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
#endif

// --- clusters: CTAs with access to each other's shared memory (distributed shared memory)
__device__ __forceinline__ unsigned kbki_cluster_rank() {
    unsigned r = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
#endif
    return r;
}
__device__ __forceinline__ unsigned kbki_cluster_size() {
    unsigned r = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
#endif
    return r;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Returns the address of `at` in the shared memory of CTA `rank`.
__device__ __forceinline__ uint32_t kbki_cluster_at(uint32_t at, unsigned rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}
// Stores v in the shared memory of CTA `rank`, whose mbarrier counts the 16 bytes. to, bar: addresses in this CTA.
__device__ __forceinline__ void kbki_cluster_send(const float4* to, const uint64_t* bar, unsigned rank, float4 v) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                     kbki_cluster_at(kbki_shared(to), rank)),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(kbki_cluster_at(kbki_shared(bar), rank))
                 : "memory");
}
// Adds `parts` vectors that are 128 vectors apart.
__device__ __forceinline__ float4 kbki_cluster_sum(const float4* p, int parts) {
    float4 sum = p[0];
    for (p += 128; --parts > 0; p += 128) {
        const float4 v = *p;
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    return sum;
}
#endif
// After kbki_cluster_begin and kbki_cluster_begun, all CTAs of the cluster have started. Loads stay in flight.
__device__ __forceinline__ void kbki_cluster_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void kbki_cluster_begun() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}
// Waits until all threads of the cluster have called this function; orders accesses to shared memory.
__device__ __forceinline__ void kbki_cluster_barrier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}

/*  A tensor map (CUtensorMap in cuda.h) describes a tensor in global memory and the box that one TMA copy moves.
    Elements outside the tensor are read as 0, count as arriving bytes, and are never written. In this library,
    boxes are 128 bytes wide and are stored row by row in shared memory. The 128-byte swizzle stores 16-byte vector
    p of row l at position p ^ l % 8, so that wgmma reads rows without bank conflicts. It repeats after 1024 bytes. */
struct alignas(64) kbki_map {
    uint64_t opaque[16];
};
struct kbki_map_key { // without padding, because keys are compared byte by byte
    const void* base;
    uint64_t size[4], stride[3]; // size: in elements, innermost dimension first; stride: in bytes
    uint32_t box[4];
    int64_t what; // element type + 256 * number of dimensions
};
#define KBKI_MAP_WIDE 64 // width of a box in 16-bit elements
#define KBKI_MAP_8 0     // CU_TENSOR_MAP_DATA_TYPE_UINT8, _FLOAT16, _FLOAT32, _BFLOAT16
#define KBKI_MAP_16F 6
#define KBKI_MAP_32F 7
#define KBKI_MAP_16BF 9
#define KBKI_MAP_SWIZZLE_128 3 // CU_TENSOR_MAP_SWIZZLE_128B
#define KBKI_MAP_L2_128 2      // CU_TENSOR_MAP_L2_PROMOTION_L2_128B, _256B
#define KBKI_MAP_L2_256 3
typedef int (*kbki_map_fn)(kbki_map* map, int type, uint32_t rank, void* base, const uint64_t* size,
                           const uint64_t* stride, const uint32_t* box, const uint32_t* step, int interleave,
                           int swizzle, int promotion, int fill);
// Returns cuTensorMapEncodeTiled, or NULL if the driver lacks it; found without linking libcuda.
KBK_FN kbki_map_fn kbki_map_encoder(void) {
    void* found = NULL;
#if CUDART_VERSION >= 12000
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t e =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
#else
    cudaError_t e = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
    if (e != cudaSuccess) cudaGetLastError();
    if (e != cudaSuccess || result != cudaDriverEntryPointSuccess) found = NULL;
#endif
    return (kbki_map_fn)found;
}
// Making a map takes about as long as launching a kernel; each thread therefore caches its most recent maps.
KBK_FN const char* kbki_map_make(const kbki_map_key* key, kbki_map* map) {
    constexpr int many = 64;
    static thread_local struct {
        kbki_map_key key;
        kbki_map map;
    } kept[many];
    static kbki_map_fn encode;
    static const uint32_t step[4] = { 1, 1, 1, 1 };
    uint64_t mix = (uint64_t)(uintptr_t)key->base * 0x9E3779B97F4A7C15ull;
    mix ^= (key->size[0] * 3 + key->size[1] * 5 + key->size[2] * 7 + key->box[1] * 11) * 0xC2B2AE3D27D4EB4Full;
    auto* at = &kept[mix >> 58];
    static_assert(many == 64, "bits 58 to 63 of mix are the index of an entry");
    if (memcmp(&at->key, key, sizeof *key) == 0) return *map = at->map, (const char*)NULL;
    if (!encode) encode = kbki_map_encoder();
    if (!encode) return "the driver is too old for tensor maps; they need CUDA 12 or later";
    memset(&at->key, 0, sizeof at->key);
    // rows that are not aligned to 32 bytes load faster if L2 fetches 128 bytes at a time, not 256
    int promotion = key->stride[0] % 32 ? KBKI_MAP_L2_128 : KBKI_MAP_L2_256;
    if (encode(&at->map, key->what & 255, (uint32_t)key->what >> 8, (void*)key->base, key->size, key->stride,
               key->box, step, 0, KBKI_MAP_SWIZZLE_128, promotion, 0))
        return "the driver rejects a tensor map of these addresses and dimensions";
    at->key = *key, *map = at->map;
    return NULL;
}
template <class T> constexpr int kbki_map_type() {
    if constexpr (sizeof(T) == 1)
        return KBKI_MAP_8; // elements of one byte are copied as integers, whatever their type
    else
        return sizeof(T) == 4 ? KBKI_MAP_32F : kbki_type<T>::cuda == CUDA_R_16F ? KBKI_MAP_16F : KBKI_MAP_16BF;
}
// Row-major matrix of `lines` rows of `length` elements, ld elements apart. A box has `high` rows.
template <class T>
const char* kbki_map_lines(const T* base, int64_t lines, int64_t length, int64_t ld, int high, kbki_map* map) {
    static_assert(sizeof(T) == 2, "16 bits");
    kbki_map_key key;
    memset(&key, 0, sizeof key);
    key.base = base, key.what = 2 << 8 | kbki_map_type<T>();
    key.size[0] = (uint64_t)length, key.size[1] = (uint64_t)lines, key.size[2] = 1;
    key.stride[0] = key.stride[1] = (uint64_t)ld * sizeof(T);
    key.box[0] = KBKI_MAP_WIDE, key.box[1] = (uint32_t)high, key.box[2] = 1;
    return kbki_map_make(&key, map);
}
// `deep` row-major matrices, `apart` elements apart. A box covers `high` rows of one.
template <class T>
const char* kbki_map_planes(const T* base, int64_t deep, int64_t apart, int64_t lines, int64_t length, int64_t ld,
                            int high, kbki_map* map) {
    kbki_map_key key;
    memset(&key, 0, sizeof key);
    key.base = base, key.what = 3 << 8 | kbki_map_type<T>();
    key.size[0] = (uint64_t)length, key.size[1] = (uint64_t)lines, key.size[2] = (uint64_t)deep;
    key.stride[0] = (uint64_t)ld * sizeof(T), key.stride[1] = (uint64_t)apart * sizeof(T);
    key.box[0] = KBKI_MAP_WIDE * 2 / sizeof(T), key.box[1] = (uint32_t)high, key.box[2] = 1;
    return kbki_map_make(&key, map);
}
// `heads` heads of `lines` rows of d elements. step: distances of rows (x), heads (y), and groups of `span` heads
// (z; fourth dimension). If span is 0, the map has `rank` dimensions. A box has `high` rows.
template <class T>
const char* kbki_map_heads(const T* base, int64_t heads, int span, int64_t lines, int64_t d, longlong3 step, int high,
                           kbki_map* map, int rank = 4) {
    const int64_t deep = span ? span : heads;
    const kbki_map_key key = { base,
                               { (uint64_t)d, (uint64_t)lines, (uint64_t)deep, (uint64_t)(heads / deep) },
                               { step.x * sizeof(T), step.y * sizeof(T), step.z * sizeof(T) },
                               { KBKI_MAP_WIDE, (uint32_t)high, 1, 1 },
                               (span ? 4 : rank) << 8 | kbki_map_type<T>() };
    return kbki_map_make(&key, map);
}
// threads that every SM of the architecture can hold: 1024 on Turing, 1536 or more on later architectures
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define KBKI_SM_THREADS 1024
#else
#define KBKI_SM_THREADS 1536
#endif

// Returns NULL if sm_90a code can run, otherwise why not. The launch bound of kbki_hopper_k tells whether the
// program was compiled for sm_90a.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define KBKI_HOPPER_THREADS 96
#else
#define KBKI_HOPPER_THREADS 32
#endif
template <class> __global__ void __launch_bounds__(KBKI_HOPPER_THREADS) kbki_hopper_k() {}
KBK_FN const char* kbki_needs_hopper(void) {
    int threads = 0;
    if (kbki_capability() != 90) return "this variant needs compute capability 9.0 exactly";
    cudaError_t e = kbki_once((const void*)kbki_hopper_k<void>, KBKI_THREADS, 0, 0, 0, &threads, [](int* to) {
        cudaFuncAttributes built = {};
        cudaError_t no = cudaFuncGetAttributes(&built, kbki_hopper_k<void>);
        return *to = built.maxThreadsPerBlock, no;
    });
    if (e != cudaSuccess) return kbki_error(e);
    return threads == 96 ? NULL
                         : "this variant was not compiled for sm_90a: nvcc -gencode=arch=compute_90a,code=sm_90a";
}
// Returns NULL if a variant can run, otherwise why not. least: the variant's KBK_SM_<...>. For a variant of a
// vendor, only the device is checked.
KBK_FN const char* kbki_needs_row(int least, int origin) {
    if (least & KBK_SM_EXACT) return kbki_needs_hopper();
    if (origin & KBK_VENDOR) return kbki_capability() < least ? KBKI_TEXT_CAPABILITY : NULL;
    return least ? kbki_needs(least) : NULL;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// --- TMA: copies the box at (x, y) or (x, y, z), x innermost. Multicast: copies it to the same offset in every CTA of
//     the mask; the mbarrier of each of these CTAs counts the bytes that the CTA received.
template <bool Multicast>
__device__ __forceinline__ void kbki_tma_load(void* to, const kbki_map* map, uint64_t* bar, int x, int y,
                                              unsigned mask = 0) {
    if constexpr (Multicast)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(kbki_shared(to)),
                     "l"(map), "r"(x), "r"(y), "r"(kbki_shared(bar)), "h"((unsigned short)mask)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(kbki_shared(to)),
                     "l"(map), "r"(x), "r"(y), "r"(kbki_shared(bar))
                     : "memory");
}
template <bool Multicast>
__device__ __forceinline__ void kbki_tma_load_3d(void* to, const kbki_map* map, uint64_t* bar, int x, int y, int z,
                                                 unsigned mask = 0) {
    if constexpr (Multicast)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(kbki_shared(to)),
                     "l"(map), "r"(x), "r"(y), "r"(z), "r"(kbki_shared(bar)), "h"((unsigned short)mask)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(kbki_shared(to)),
                     "l"(map), "r"(x), "r"(y), "r"(z), "r"(kbki_shared(bar))
                     : "memory");
}
__device__ __forceinline__ void kbki_tma_load_4d(void* to, const kbki_map* map, uint64_t* bar, int x, int y, int z,
                                                 int w) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(kbki_shared(to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(kbki_shared(bar))
                 : "memory");
}
// Starts a TMA store as a bulk group of its own; the rule of kbki_bulk_store holds.
__device__ __forceinline__ void kbki_tma_store(const kbki_map* map, const void* from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
                 "r"(y), "r"(kbki_shared(from))
                 : "memory");
    kbki_bulk_commit();
}
__device__ __forceinline__ void kbki_tma_store_3d(const kbki_map* map, const void* from, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map), "r"(x),
                 "r"(y), "r"(z), "r"(kbki_shared(from))
                 : "memory");
    kbki_bulk_commit();
}
// prefetches the tensor map, not the tensor
__device__ __forceinline__ void kbki_tma_prefetch(const kbki_map* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// --- warpgroup: four consecutive warps, the first a multiple of four
// Blocks until enough registers are free.
template <int Registers> __device__ __forceinline__ void kbki_wg_take() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers> __device__ __forceinline__ void kbki_wg_give() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
// Orders earlier accesses to registers before wgmma instructions; required before the first product of a group.
__device__ __forceinline__ void kbki_wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void kbki_wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending> __device__ __forceinline__ void kbki_wg_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// Keeps uses of d after this call: the compiler does not know that wgmma products in flight still write d.
template <int Count> __device__ __forceinline__ void kbki_wg_hold(float* d) {
#pragma unroll
    for (int i = 0; i < Count; i++) asm volatile("" : "+f"(d[i])::"memory");
}
/*  The descriptor of an operand in shared memory (PTX ISA, wgmma, "Matrix Descriptor Format"). Bits 0 to 13:
    address / 16. Bits 16 to 29 and 32 to 45: first and second stride / 16. Bits 62 and 63: 1 (128-byte swizzle).
    If Along is true (K-major operand), a row has 128 bytes: 64 values of k in 16 bits. The second stride leads to the
    next eight rows. A step of 32 bytes is 16 values of k (tf32: 8, e4m3: 32), a step of 64 rows is 8192 bytes.
    If Along is false, a row has 64 elements with the same k, and a panel has `High` rows. The first stride leads
    to the next panel, the second to the next eight values of k. A step of 16 values of k is 2048 bytes, a step to
    the next panel 8192 bytes if High is 64. */
template <bool Along, int High = 64> struct kbki_wg_operand {
    static constexpr uint32_t step16 = Along ? 32 / 16 : 2048 / 16, block64 = 8192 / 16;
    uint32_t low; // lower half of the descriptor; the upper half is constant
    __device__ __forceinline__ void set(const void* p) {
        low = (uint32_t)(Along ? 1 : High * 128 / 16) << 16 | (kbki_shared(p) & 0x3FFFF) >> 4;
        // keeps `low` in a register, because the compiler would otherwise compute it again for each product
        asm volatile("" : "+r"(low));
    }
    // `on`: offset within the operand, in 16-byte vectors
    __device__ __forceinline__ uint64_t at(uint32_t on) const {
        return (uint64_t)(1u << 30 | 1024 / 16) << 32 | (low + on);
    }
};
/*  d (64 x Width, f32) = a (64 x 16) b (16 x Width), + d if keep is not 0. TransA, TransB: 1 if the operand is not
    K-major. Layout of d (PTX ISA, wgmma): lane l of warp w has row 16 w + l / 4 + 8 (i / 2 % 2), column 8 (i / 4)
    + 2 (l % 4) + i % 2 in d[i]. An operand a in registers has two elements per register; the four registers belong
    to the four quarters of the warp's 16 x 16 elements, as in mma.sync. Pairs of d in 16 bits have this layout. */
template <class T, int Width> struct kbki_wgmma;
// clang-format off
#define KBKI_WG_8(d, i) "+f"(d[i]), "+f"(d[i+1]), "+f"(d[i+2]), "+f"(d[i+3]), "+f"(d[i+4]), "+f"(d[i+5]),            \
                        "+f"(d[i+6]), "+f"(d[i+7])
#define KBKI_WG_16(d) KBKI_WG_8(d, 0)
#define KBKI_WG_32(d) KBKI_WG_8(d, 0), KBKI_WG_8(d, 8)
#define KBKI_WG_MORE(d, i) KBKI_WG_8(d, i), KBKI_WG_8(d, i+8), KBKI_WG_8(d, i+16), KBKI_WG_8(d, i+24)
#define KBKI_WG_64(d) KBKI_WG_MORE(d, 0)
#define KBKI_WG_128(d) KBKI_WG_64(d), KBKI_WG_MORE(d, 32)
#define KBKI_WG_160(d) KBKI_WG_128(d), KBKI_WG_8(d, 64), KBKI_WG_8(d, 72)
#define KBKI_WG_192(d) KBKI_WG_128(d), KBKI_WG_MORE(d, 64)
#define KBKI_WG_256(d) KBKI_WG_192(d), KBKI_WG_MORE(d, 96)
#define KBKI_WG_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KBKI_WG_NAMES_32 KBKI_WG_NAMES_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define KBKI_WG_NAMES_64 KBKI_WG_NAMES_32 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, " \
                         "%30, %31"
#define KBKI_WG_NAMES_128 KBKI_WG_NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, " \
                          "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KBKI_WG_NAMES_160 KBKI_WG_NAMES_128 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, " \
                          "%78, %79"
#define KBKI_WG_NAMES_192 KBKI_WG_NAMES_160 ", "                                                                      \
                          "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define KBKI_WG_NAMES_256 KBKI_WG_NAMES_192 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, " \
                          "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, " \
                          "%123, %124, %125, %126, %127"
// p0 to p6: numbers of the asm operands after d
#define KBKI_WGMMA_TEXT(type, width) "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32." type "." type             \
    " {" KBKI_WG_NAMES_##width "}, "
#define KBKI_WGMMA(T, type, width, p0, p1, p2, p3, p4, p5, p6)                                                       \
    template <> struct kbki_wgmma<T, width> {                                                                        \
        template <int TransA, int TransB>                                                                            \
        static __device__ __forceinline__ void shared(float* d, uint64_t a, uint64_t b, int keep) {                  \
            asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %" #p2 ", 0; " KBKI_WGMMA_TEXT(type, width)           \
                         "%" #p0 ", %" #p1 ", keep, 1, 1, %" #p3 ", %" #p4 "; }"                                     \
                         : KBKI_WG_##width(d) : "l"(a), "l"(b), "r"(keep), "n"(TransA), "n"(TransB));                \
        }                                                                                                            \
        template <int TransB>                                                                                        \
        static __device__ __forceinline__ void registers(float* d, const uint32_t* a, uint64_t b, int keep) {        \
            asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %" #p5 ", 0; " KBKI_WGMMA_TEXT(type, width)           \
                         "{%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #p4 ", keep, 1, 1, %" #p6 "; }"               \
                         : KBKI_WG_##width(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep),       \
                           "n"(TransB));                                                                             \
        }                                                                                                            \
    };
// wgmma of tf32 (8 values of k) or e4m3 (32 values of k); both operands are K-major. Of a tf32 operand a in
// registers, lane l holds rows l / 4 and l / 4 + 8 at k = l % 4, then the same two rows at k = l % 4 + 4.
#define KBKI_WGMMA_ALONG(T, type, depth, width, p0, p1, p2, p3, p4, p5)                                              \
    template <> struct kbki_wgmma<T, width> {                                                                        \
        template <int TransA, int TransB>                                                                            \
        static __device__ __forceinline__ void shared(float* d, uint64_t a, uint64_t b, int keep) {                  \
            static_assert(TransA == 0 && TransB == 0, "no panels");                                                  \
            asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %" #p2 ", 0; "                                        \
                         "wgmma.mma_async.sync.aligned.m64n" #width "k" #depth ".f32." type "." type                 \
                         " {" KBKI_WG_NAMES_##width "}, %" #p0 ", %" #p1 ", keep, 1, 1; }"                           \
                         : KBKI_WG_##width(d) : "l"(a), "l"(b), "r"(keep));                                          \
        }                                                                                                            \
        static __device__ __forceinline__ void registers(float* d, const uint32_t* a, uint64_t b, int keep) {        \
            asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %" #p5 ", 0; "                                        \
                         "wgmma.mma_async.sync.aligned.m64n" #width "k" #depth ".f32." type "." type                 \
                         " {" KBKI_WG_NAMES_##width "}, {%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #p4             \
                         ", keep, 1, 1; }"                                                                           \
                         : KBKI_WG_##width(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));      \
        }                                                                                                            \
    };
#define KBKI_WGMMA_BOTH(...) KBKI_WGMMA(__half, "f16", __VA_ARGS__) KBKI_WGMMA(__nv_bfloat16, "bf16", __VA_ARGS__)
KBKI_WGMMA_BOTH(16, 8, 9, 10, 11, 12, 13, 14)
KBKI_WGMMA_BOTH(32, 16, 17, 18, 19, 20, 21, 22)
KBKI_WGMMA_BOTH(64, 32, 33, 34, 35, 36, 37, 38)
KBKI_WGMMA_BOTH(128, 64, 65, 66, 67, 68, 69, 70)
KBKI_WGMMA_BOTH(160, 80, 81, 82, 83, 84, 85, 86)
KBKI_WGMMA_BOTH(192, 96, 97, 98, 99, 100, 101, 102)
KBKI_WGMMA_BOTH(256, 128, 129, 130, 131, 132, 133, 134)
KBKI_WGMMA_ALONG(float, "tf32", 8, 64, 32, 33, 34, 35, 36, 37)
KBKI_WGMMA_ALONG(float, "tf32", 8, 192, 96, 97, 98, 99, 100, 101)
KBKI_WGMMA_ALONG(float, "tf32", 8, 256, 128, 129, 130, 131, 132, 133)
KBKI_WGMMA_ALONG(kbk_e4m3, "e4m3", 32, 64, 32, 33, 34, 35, 36, 37)
KBKI_WGMMA_ALONG(kbk_e4m3, "e4m3", 32, 128, 64, 65, 66, 67, 68, 69)
// clang-format on
#endif // __CUDA_ARCH_FEAT_SM90_ALL
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>elementwise     y[i] = f(a[i], ...): the ladder of all element-wise operations; add, mul, div.
-----------------------------------------------------------------*/

/*  Every element-wise operation -----------------------------------------------------------------------------
    1 naive    one element per thread            <- slow: 2 or 4 bytes in flight per thread
    2 stride   device-sized grid, grid-stride loop
                                                 <- no CTA turnover, less indexing; as many bytes in flight
    3 vec      16-byte accesses                  <- 4 or 8 elements per instruction, 16 bytes in flight
    4 unroll   two vectors in flight             <- 32 bytes in flight per thread and input; helps if there is much
               arithmetic. If there is little, the 32 KiB per input of vec in a full SM are enough (Little's law:
               bandwidth x latency = bytes in flight; Volkov 2010, "Better Performance at Lower Occupancy")
    5 bulk     pipeline of cp.async.bulk (sm 90) <- one thread starts all loads: bytes in flight take no registers,
               so occupancy does not matter. Only copy, add and triad have it; it is 2 to 5 % slower than vec
    bound by   memory: compare with bytes / copy bandwidth
    predict    vec has a quarter (16 bits: an eighth) of the load instructions of stride. By what factor does the
               DRAM share grow?
    Alignment: rungs 3 to 5 process single elements before the first and after the last 16-byte boundary. If inputs
    and outputs have different alignments modulo 16 bytes, rung 2 runs instead of rungs 3 to 5. */
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
// tensors: a function that describes the tensors, such as kbki_map1_tensors
#define KBKI_MAP_FORMULAS(op_dir, tensors, flops, bytes)                                           \
    KBK_FN int kbk_##op_dir##_tensors(const kbk_shape* s, kbk_tensor* t) { return tensors(s, t); } \
    KBKI_FORMULAS(op_dir, s->rows * s->cols, flops, bytes)
// value: an expression of the input elements in[k][i]
#define KBKI_MAP_REF(op_dir, value)                                      \
    KBKI_REF(op_dir) {                                                   \
        (void)s, (void)in;                                               \
        for (int64_t i = u0; i < u1; i++) out[0][i - u0] = (value);      \
    }

#ifdef __CUDACC__
/*  Base class of an element-wise operation Op, which defines static float of(a, b). Raw: the first input is copied
    bit by bit. Eager: stores have an evict-first hint, for host memory: lines that the cache evicts in its own
    order cross the bus ten times slower. */
template <int Inputs, bool Raw = false, bool Eager = false> struct kbki_map_op {
    static constexpr int inputs = Inputs, stages = Raw ? 8 : 4; // stages: number of pipeline stages in rung 5
    static constexpr bool raw = Raw, eager = Eager;
};
template <class T, class Op> __device__ __forceinline__ void kbki_map_one(const T* a, const T* b, T* y, int64_t i) {
    if constexpr (Op::eager)
        __stcs(y + i, a[i]);
    else if constexpr (Op::raw)
        y[i] = a[i];
    else
        y[i] = kbki_type<T>::from(
            Op::of(Op::inputs > 0 ? kbki_float(a[i]) : 0.0f, Op::inputs > 1 ? kbki_float(b[i]) : 0.0f));
}

// Rung 1: one thread per element.
template <class T, class Op> __global__ void kbki_map_naive_k(const T* a, const T* b, T* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) kbki_map_one<T, Op>(a, b, y, i);
}

// Rung 2: grid-stride loop.
template <class T, class Op> __global__ void kbki_map_stride_k(const T* a, const T* b, T* y, int64_t n) {
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) kbki_map_one<T, Op>(a, b, y, i);
}

// ---- The kernels that add one idea each end here.

#define KBKI_MAP_TH 128 // threads per CTA; 16 CTAs fill an SM. With 256 threads per CTA, `unroll` is 3 % slower

template <class Op, class Pack> __device__ __forceinline__ void kbki_map_pack(const Pack& a, const Pack& b, Pack* y) {
    constexpr int Width = Pack::width;
    float f[Width], g[Width];
    if (Op::inputs > 0) a.get(f);
    if (Op::inputs > 1) b.get(g);
#pragma unroll
    for (int j = 0; j < Width; j++) f[j] = Op::of(Op::inputs > 0 ? f[j] : 0.0f, Op::inputs > 1 ? g[j] : 0.0f);
    y->set(f);
}
// The U vectors of a thread are one CTA width apart, so that each access of a warp is a block of 512 bytes.
template <class T, class Op, int U>
__global__ void __launch_bounds__(KBKI_MAP_TH) kbki_map_packs_k(const T* a, const T* b, T* y, int64_t n) {
    constexpr int Width = KBKI_WIDTH(T);
    kbki_pack<T, Width> v[2][U], result;
    const kbki_span sp = kbki_split<T, Width>(y, n);
    int64_t first = (int64_t)blockIdx.x * (KBKI_MAP_TH * U) + threadIdx.x;
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + u * KBKI_MAP_TH >= sp.packs) continue;
        if (Op::inputs > 0) v[0][u].load(a + sp.head + (first + u * KBKI_MAP_TH) * Width);
        if (Op::inputs > 1) v[1][u].load(b + sp.head + (first + u * KBKI_MAP_TH) * Width);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + u * KBKI_MAP_TH >= sp.packs) continue;
        if constexpr (Op::raw)
            result = v[0][u];
        else
            kbki_map_pack<Op>(v[0][u], v[1][u], &result);
        T* to = y + sp.head + (first + u * KBKI_MAP_TH) * Width;
        if (Op::eager)
            result.store_eager(to);
        else
            result.store(to);
    }
    int64_t one = blockIdx.x == 0 ? kbki_single(sp, n, threadIdx.x) : -1;
    if (one >= 0) kbki_map_one<T, Op>(a, b, y, one);
}

#define KBKI_TILE 256 // vectors per tile and input: 4 KiB

/*  A pipeline of bulk copies. A tile is loaded into a stage in shared memory, replaced there by its result, and
    stored from there. The CTA waits for the bulk store of a tile one tile later, so that no thread waits for a
    store that has just started. If Op::raw is true, one thread starts all copies. */
template <class T, class Op>
__global__ void __launch_bounds__(256) kbki_map_bulk_k(const T* a, const T* b, T* y, int64_t n) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    constexpr int Width = KBKI_WIDTH(T), Stages = Op::stages;
    extern __shared__ uint4 kbki_ring[]; // each pipeline stage holds one tile of every input
    __shared__ uint64_t full[Stages];
    const kbki_span sp = kbki_split<T, Width>(y, n);
    int64_t tiles = (sp.packs + KBKI_TILE - 1) / KBKI_TILE;
    int64_t mine = blockIdx.x < tiles ? (tiles - 1 - blockIdx.x) / gridDim.x + 1 : 0;
    // index of the first vector of this CTA's k-th tile
    auto first = [&](int64_t k) { return (blockIdx.x + k * gridDim.x) * KBKI_TILE; };
    auto packs = [&](int64_t k) { return (int)min((int64_t)KBKI_TILE, sp.packs - first(k)); };
    auto load = [&](int64_t k) {
        int s = (int)(k % Stages);
        kbki_bar_expect(&full[s], Op::inputs * packs(k) * 16);
        for (int i = 0; i < Op::inputs; i++)
            kbki_bulk_load(kbki_ring + (s * Op::inputs + i) * KBKI_TILE, (i ? b : a) + sp.head + first(k) * Width,
                           packs(k) * 16, &full[s]);
    };
    int64_t one = blockIdx.x == 0 ? kbki_single(sp, n, threadIdx.x) : -1;
    if (one >= 0) kbki_map_one<T, Op>(a, b, y, one);
    if (threadIdx.x == 0) {
        for (int s = 0; s < Stages; s++) kbki_bar_init(&full[s], 1);
        kbki_bar_ready();
        for (int k = 0; k < Stages && k < mine; k++) load(k);
    }
    __syncthreads();
    for (int64_t k = 0; k < mine && !(Op::raw && threadIdx.x > 0); k++) {
        int s = (int)(k % Stages), count = packs(k);
        uint4* tile = kbki_ring + s * Op::inputs * KBKI_TILE;
        kbki_bar_wait(&full[s], k / Stages & 1);
        if constexpr (!Op::raw) {
            for (int p = threadIdx.x; p < count; p += 256) {
                kbki_pack<T, Width> u = { tile[p] }, v = { tile[(Op::inputs - 1) * KBKI_TILE + p] };
                kbki_map_pack<Op>(u, v, &u);
                tile[p] = u.q;
            }
            kbki_bulk_fence();
            __syncthreads();
        }
        if (threadIdx.x > 0) continue;
        kbki_bulk_store(y + sp.head + first(k) * Width, tile, count * 16);
        if (k == 0 || k - 1 + Stages >= mine) continue;
        kbki_bulk_read<1>();
        load(k - 1 + Stages);
    }
    if (threadIdx.x == 0) kbki_bulk_done();
#endif
}

// vector: all addresses have the same alignment modulo 16 bytes, so that one split into vectors fits all tensors
template <class T> struct kbki_map_io {
    const T *a, *b;
    T* y;
    int64_t n;
    bool vector;
};
template <class T> const char* kbki_map_args(const kbk_args* args, int inputs, kbki_map_io<T>* io) {
    *io = { (const T*)(inputs > 0 ? args->in[0] : NULL), (const T*)(inputs > 1 ? args->in[1] : NULL),
            (T*)args->out[0], args->s.rows * args->s.cols, false };
    io->vector = (inputs < 1 || kbki_congruent(io->a, io->y)) && (inputs < 2 || kbki_congruent(io->b, io->y));
    if (!kbki_aligned(io->a, sizeof(T)) || !kbki_aligned(io->b, sizeof(T)) || !kbki_aligned(io->y, sizeof(T)))
        return KBKI_TEXT_ALIGN;
    return kbki_check_dims(&args->s);
}

// Kernels are passed by pointer, so that these functions are compiled once per element type.
template <class T> using kbki_map_kernel = void (*)(const T*, const T*, T*, int64_t);
template <class T>
const char* kbki_map_plain(const kbk_args* a, kbk_stream st, int inputs, kbki_map_kernel<T> kernel, bool stride) {
    kbki_map_io<T> io;
    const char* why = kbki_map_args(a, inputs, &io);
    if (why || io.n == 0) return why;
    int64_t ctas = kbki_ceil(io.n, 256), full = (int64_t)kbki_sms() * 8; // 8 x 256 threads fill an SM
    if (stride && ctas > full) ctas = full;
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    kernel<<<(unsigned)ctas, 256, 0, st>>>(io.a, io.b, io.y, io.n);
    return kbki_launched();
}
template <class T, class Op> __forceinline__ const char* kbki_map_naive(const kbk_args* a, kbk_stream st) {
    return kbki_map_plain<T>(a, st, Op::inputs, kbki_map_naive_k<T, Op>, false);
}
template <class T, class Op> __forceinline__ const char* kbki_map_stride(const kbk_args* a, kbk_stream st) {
    return kbki_map_plain<T>(a, st, Op::inputs, kbki_map_stride_k<T, Op>, true);
}

// If a tensor is too small to fill every SM, each thread processes one vector, whatever u is. Tensors with
// different alignments modulo 16 bytes are processed element by element.
template <class T>
const char* kbki_map_wide(const kbk_args* a, kbk_stream st, int inputs, kbki_map_kernel<T> stride,
                          kbki_map_kernel<T> one, kbki_map_kernel<T> kernel, int u) {
    constexpr int Threads = KBKI_MAP_TH;
    kbki_map_io<T> io;
    const char* why = kbki_map_args(a, inputs, &io);
    if (why || io.n == 0) return why;
    if (!io.vector) return kbki_map_plain(a, st, inputs, stride, true);
    int64_t packs = kbki_ceil(io.n, KBKI_WIDTH(T)), ctas = kbki_ceil(packs, Threads * u);
    if (u > 1 && ctas < (int64_t)kbki_sms() * (2048 / Threads)) kernel = one, ctas = kbki_ceil(packs, Threads);
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    kernel<<<(unsigned)ctas, Threads, 0, st>>>(io.a, io.b, io.y, io.n);
    return kbki_launched();
}
// Single: the operation for single elements
template <class T, class Op, int U = 2, class Single = Op>
__forceinline__ const char* kbki_map_packs(const kbk_args* a, kbk_stream st) {
    kbki_map_kernel<T> stride = NULL; // not needed without inputs, because no alignments can differ then
    if constexpr (Op::inputs > 0) stride = kbki_map_stride_k<T, Single>;
    return kbki_map_wide<T>(a, st, Op::inputs, stride, kbki_map_packs_k<T, Op, 1>, kbki_map_packs_k<T, Op, U>, U);
}

// x / d for d >= 1. kbki_divide rounds correctly. kbki_invert: at most 2 ulp; 0 if 1 / d is not a normal number.
struct kbki_divide {
    static __device__ __forceinline__ float of(float x, float d) { return x / d; }
};
struct kbki_invert {
    static __device__ __forceinline__ float of(float x, float d) { return x * kbki_reciprocal(d); }
};
// The operation that kernels apply to vectors instead of Op. For f32, it divides with an error of up to 2 ulp:
// correctly rounded divisions take 6 to 15 % longer (1 M elements in L2).
template <class T, class Op> struct kbki_map_whole { typedef Op type; };
template <template <class> class Op> struct kbki_map_whole<float, Op<kbki_divide>> { typedef Op<kbki_invert> type; };

#define KBKI_MAP_RUNGS(name, Op)                                                              \
    KBKI_LAUNCHER(name##_naive, kbki_map_naive<T, Op>)                                        \
    KBKI_LAUNCHER(name##_stride, kbki_map_stride<T, Op>)                                      \
    KBKI_LAUNCHER(name##_vec, kbki_map_packs<T, typename kbki_map_whole<T, Op>::type, 1, Op>) \
    KBKI_LAUNCHER(name##_unroll, kbki_map_packs<T, typename kbki_map_whole<T, Op>::type, 2, Op>)

// approx applies Op_fast to vectors
#define KBKI_MAP_RUNGS_16(name, Op) \
    KBKI_MAP_RUNGS(name, Op)        \
    KBKI_LAUNCHER(name##_approx, kbki_map_packs<T, Op##_fast, 2, Op>)

template <class T, class Op> const char* kbki_map_bulk(const kbk_args* a, kbk_stream st) {
    // CTAs of an SM use 128 KiB of shared memory for one input, 64 KiB for two. More CTAs are slower.
    constexpr int per_sm = Op::inputs == 1 ? 4 : 2;
    kbki_map_io<T> io;
    size_t shared = (size_t)Op::inputs * Op::stages * KBKI_TILE * 16;
    const char* why = kbki_map_args(a, Op::inputs, &io);
    if (why || io.n == 0) return why;
    if (!io.vector) return kbki_map_packs<T, Op>(a, st);
    if ((why = kbki_needs(90)) != NULL) return why;
    if ((why = kbki_want_shared(kbki_map_bulk_k<T, Op>, &shared)) != NULL) return why;
    if (shared == 0) return "this device has too little shared memory per CTA";
    int64_t tiles = kbki_ceil(io.n, KBKI_WIDTH(T) * KBKI_TILE), full = (int64_t)kbki_sms() * per_sm;
    const unsigned ctas = (unsigned)(tiles < full ? tiles : full);
    kbki_map_bulk_k<T, Op><<<ctas, Op::raw ? 32 : 256, shared, st>>>(io.a, io.b, io.y, io.n);
    return kbki_launched();
}
#endif // __CUDACC__

/*  add fwd, mul fwd, div fwd --------------------------------------------------------------------------------
    y = a + b     y = a b     y = a / b            a, b, y: n = rows * cols
    flops  n
    bytes  3*n*s
    check  f32 bit-exact: the oracle's double result, rounded to f32, is correctly rounded, also for division
           f16, bf16 1 ulp, norm-wise 3e-4, 2.5e-3. div 5e-4, 4e-3: the largest error of one rounding, because
           one large quotient can dominate the norm
    ladder     as every element-wise operation; only add has the rung bulk
    predict    an exact division takes several times the instructions of an addition. Is div slower than add, and
               in which rungs? */
/*  measured add fwd: f32 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.083 FLOP/B; floor on an H200 376.7 us = 1.611 GB / 4.276 TB/s; on this GPU 528.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  576.8 us 106 %      -   12 77 % 83 %         0  one element per thread
    2 stride 575.1 us 107 % 1.00 x   24 97 % 83 %         0  device-sized grid, grid-stride loop
    3 vec    519.1 us 118 % 1.11 x   28 87 % 92 %         0  16-byte accesses
    4 unroll 521.9 us 118 % 0.99 x   32 83 % 91 %         0  two 16-byte vectors per input in flight
    5 bulk   537.8 us 114 % 0.97 x   31 25 % 89 %    1274 k  pipeline of bulk copies (cp.async.bulk)
    end of measured */
/*  measured mul fwd: f32 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.083 FLOP/B; floor on an H200 376.7 us = 1.611 GB / 4.276 TB/s; on this GPU 528.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  576.8 us 106 %      -   12 77 % 83 %         0  one element per thread
    2 stride 574.9 us 107 % 1.00 x   24 97 % 83 %         0  device-sized grid, grid-stride loop
    3 vec    519.1 us 118 % 1.11 x   28 87 % 92 %         0  16-byte accesses
    4 unroll 521.7 us 118 % 0.99 x   32 83 % 91 %         0  two 16-byte vectors per input in flight
    end of measured */
/*  measured div fwd: f32 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.083 FLOP/B; floor on an H200 376.7 us = 1.611 GB / 4.276 TB/s; on this GPU 528.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  581.7 us 105 %      -   16 77 % 82 %         0  one element per thread
    2 stride 578.5 us 106 % 1.01 x   32 97 % 83 %         0  device-sized grid, grid-stride loop
    3 vec    519.1 us 118 % 1.11 x   28 87 % 92 %         0  16-byte accesses
    4 unroll 519.9 us 118 % 1.00 x   34 66 % 92 %         0  two 16-byte vectors per input in flight
    end of measured */
KBKI_MAP_FORMULAS(add_fwd, kbki_map2_tensors, n, 3 * n * elem)
KBKI_MAP_FORMULAS(mul_fwd, kbki_map2_tensors, n, 3 * n * elem)
KBKI_MAP_FORMULAS(div_fwd, kbki_map2_tensors, n, 3 * n * elem)
KBKI_MAP_REF(add_fwd, in[0][i] + in[1][i])
KBKI_MAP_REF(mul_fwd, in[0][i] * in[1][i])
KBKI_MAP_REF(div_fwd, in[0][i] / in[1][i])

#ifdef __CUDACC__
struct kbki_add : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float a, float b) { return a + b; }
};
struct kbki_mul : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float a, float b) { return a * b; }
};
struct kbki_div : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float a, float b) { return __fdiv_rn(a, b); }
};
KBKI_MAP_RUNGS(kbk_add_fwd, kbki_add)
KBKI_LAUNCHER(kbk_add_fwd_bulk, kbki_map_bulk<T, kbki_add>)
KBKI_MAP_RUNGS(kbk_mul_fwd, kbki_mul)
KBKI_MAP_RUNGS(kbk_div_fwd, kbki_div)
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>memory     Copy, fill, read, triad: memory bandwidth, the reference of all memory-bound operations.
-----------------------------------------------------------------*/

/*  copy run -------------------------------------------------------------------------------------------------
    y = x            x, y: n = rows * cols
    flops  0
    bytes  2*n*s
    check  bit-exact
    ladder     as every element-wise operation; a raw copy: bits are not converted. In bulk, one thread per CTA
               copies by cp.async.bulk to shared memory and from there
    99 cudart  cudaMemcpyAsync
    bound by   memory: this is the bandwidth that other operations are compared with
    predict    in which rung do the bytes in flight cover latency times bandwidth (Little's law)?

    fill run -------------------------------------------------------------------------------------------------
    y = 1            y: n = rows * cols
    flops  0
    bytes  n*s
    check  bit-exact
    2 unroll   two 16-byte stores per thread     <- a quarter (16 bits: an eighth) of the stores, and half as many
               threads as stores
    99 cudart  the driver's memset of 32-bit or 16-bit words; the runtime's memset sets only bytes
    bound by   memory; nothing is read, so it is faster than a copy
    predict    fill moves half the bytes of copy. Is its time half, less, or more?

    read run -------------------------------------------------------------------------------------------------
    fold = exclusive or of the bits of x         x: n = rows * cols of f32; fold: one int32
    flops  0
    bytes  4*n + 4
    check  bit-exact
    1 vec      16-byte accesses; a partial fold per CTA; the last CTA folds these partial results. The fold costs at
               most one instruction per four bytes; without it, the compiler would remove the loads
    2 unroll   four vectors in flight            <- 64 bytes in flight per thread instead of 16
    bound by   memory; nothing is written
    predict    how many vectors must a thread have in flight to read as fast as fill writes?

    triad run ------------------------------------------------------------------------------------------------
    y = a + 3 b      a, b, y: n = rows * cols
    flops  2*n
    bytes  3*n*s
    check  2 ulp
    ladder     as every element-wise operation; the operation is triad of STREAM (McCalpin 1995)
    bound by   memory
    predict    triad does twice the arithmetic of add. Which of the two is faster? */
/*  measured copy run: f32 268435456, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 502.2 us = 2.147 GB / 4.276 TB/s; on this GPU 703.9 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
     1 naive  885.2 us  93 %      -    8 73 % 72 %         0  one element per thread
     2 stride 876.9 us  94 % 1.01 x   26 97 % 73 %         0  device-sized grid, grid-stride loop
     3 vec    703.9 us 117 % 1.25 x   22 85 % 90 %         0  16-byte accesses
     4 unroll 706.2 us 116 % 1.00 x   27 84 % 90 %         0  two 16-byte vectors in flight
     5 bulk   737.6 us 111 % 0.96 x   18  6 % 86 %         0  bulk copies in and out
    99 cudart 706.7 us 116 %      -    - 82 % 90 %         0  cudaMemcpyAsync
    end of measured */
/*  measured fill run: f32 268435456, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 251.1 us = 1.074 GB / 4.276 TB/s; on this GPU 352.0 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
     1 naive  631.0 us  59 %      -    8 14 % 50 %         0  one element per thread
     2 unroll 323.9 us 116 % 1.95 x   14 85 % 97 %         0  two 16-byte stores per thread
    99 cudart 327.2 us 115 %      -    - 77 % 96 %         0  driver memset of 32- or 16-bit words
    end of measured */
/*  measured read run: f32 268435456, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 251.1 us = 1.074 GB / 4.276 TB/s; on this GPU 352.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 vec    347.9 us 117 %      -   19 99 % 92 %       263  16-byte accesses, last CTA folds the parts
    2 unroll 346.2 us 117 % 1.00 x   32 98 % 93 %       611  four 16-byte vectors in flight
    end of measured */
/*  measured triad run: f32 268435456, NVIDIA H100 80GB HBM3, 2026-11-26
    0.167 FLOP/B; floor on an H200 753.3 us = 3.221 GB / 4.276 TB/s; on this GPU 1056 us at 3.051 TB/s
                time  peak   gain regs  occ DRAM conflicts
    1 naive  1153 us 107 %      -   12 77 % 83 %         0  one element per thread
    2 stride 1159 us 106 % 0.99 x   24 98 % 83 %         0  device-sized grid, grid-stride loop
    3 vec    1044 us 118 % 1.11 x   28 87 % 92 %         0  16-byte accesses
    4 unroll 1049 us 117 % 1.00 x   32 83 % 91 %         0  two vectors per input in flight
    5 bulk   1078 us 114 % 0.97 x   31 25 % 89 %    2540 k  pipeline of bulk copies (cp.async.bulk)
    end of measured */
#define KBKI_FILL 1.0
#define KBKI_TRIAD 3.0
#define KBKI_READ_CTAS 4096 // largest number of partial results
KBKI_TENSORS(fill_run, 1, t[0] = kbki_out("y", KBK_T, n, 1, 0))
KBKI_TENSORS(read_run, 2, t[0] = kbki_in("x", n, 0), t[1] = kbki_out("fold", KBK_KI32, 1, 1, 0))
KBKI_MAP_FORMULAS(copy_run, kbki_map1_tensors, 0, 2 * n * elem)
KBKI_FORMULAS(fill_run, s->rows * s->cols, 0, 1 * n * elem)
KBKI_MAP_FORMULAS(triad_run, kbki_map2_tensors, 2 * n, 3 * n * elem)
KBKI_FORMULAS(read_run, 1, 0, 1 * n * elem + 4)
KBKI_SCRATCH(read) { return KBK_TICKETS + KBKI_READ_CTAS * sizeof(uint64_t); }
KBKI_MAP_REF(copy_run, in[0][i])
KBKI_MAP_REF(fill_run, KBKI_FILL)
KBKI_REF(read_run) {
    uint32_t fold = 0;
    for (int64_t i = 0; i < s->rows * s->cols; i++) fold ^= kbk_round(KBK_F32, in[0][i]);
    if (u0 < u1) out[0][0] = (double)(int32_t)fold;
}
KBKI_MAP_REF(triad_run, in[0][i] + KBKI_TRIAD * in[1][i])

#ifdef __CUDACC__
// --- copy: values are not converted to float, so that every bit of a NaN is copied
typedef kbki_map_op<1, true> kbki_copy;
KBKI_MAP_RUNGS(kbk_copy_run, kbki_copy)
KBKI_LAUNCHER(kbk_copy_run_bulk, kbki_map_bulk<T, kbki_copy>)
template <class T, cudaMemcpyKind Kind> const char* kbki_copy_cudart(const kbk_args* a, kbk_stream st) {
    kbki_map_io<T> io;
    const char* why = kbki_map_args(a, 1, &io);
    if (why || io.n == 0) return why;
    cudaError_t e = cudaMemcpyAsync(io.y, io.a, (size_t)io.n * sizeof(T), Kind, st);
    return e == cudaSuccess ? NULL : kbki_error(e);
}
KBKI_LAUNCHER(kbk_copy_run_cudart, kbki_copy_cudart<T, cudaMemcpyDeviceToDevice>)

// --- fill
struct kbki_ones : kbki_map_op<0> {
    static __device__ __forceinline__ float of(float, float) { return (float)KBKI_FILL; }
};
KBKI_LAUNCHER(kbk_fill_run_naive, kbki_map_naive<T, kbki_ones>)
KBKI_LAUNCHER(kbk_fill_run_unroll, kbki_map_packs<T, kbki_ones>)
template <class T> const char* kbk_fill_run_cudart(const kbk_args* a, kbk_stream st) {
    // signatures of cuMemsetD32Async and cuMemsetD16Async
    typedef int (*memset32)(uintptr_t to, unsigned word, size_t count, kbk_stream st);
    typedef int (*memset16)(uintptr_t to, unsigned short word, size_t count, kbk_stream st);
    kbki_map_io<T> io;
    void* f = NULL;
    const char* why = kbki_map_args(a, 0, &io);
    const char* name = sizeof(T) == 4 ? "cuMemsetD32Async" : "cuMemsetD16Async";
    cudaDriverEntryPointQueryResult found;
    if (why || io.n == 0) return why;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found);
#else
    cudaError_t e = cudaGetDriverEntryPoint(name, &f, cudaEnableDefault, &found);
#endif
    if (e != cudaSuccess || !f) return "the driver has no cuMemsetD32Async or cuMemsetD16Async";
    const uint32_t word = sizeof(T) == 4 ? 0x3F800000 : kbki_type<T>::cuda == CUDA_R_16F ? 0x3C00 : 0x3F80; // 1.0
    static_assert(KBKI_FILL == 1.0, "the bits of 1");
    int error = sizeof(T) == 4 ? ((memset32)f)((uintptr_t)io.y, word, (size_t)io.n, st)
                               : ((memset16)f)((uintptr_t)io.y, (unsigned short)word, (size_t)io.n, st);
    return error ? "the driver's memset failed" : NULL;
}

// --- read
struct kbki_xor {
    typedef uint32_t type;
    static __device__ __forceinline__ uint32_t none() { return 0; }
    static __device__ __forceinline__ uint32_t join(uint32_t a, uint32_t b) { return a ^ b; }
    static __device__ __forceinline__ uint32_t shuffle(uint32_t v, int d) { return __shfl_xor_sync(~0u, v, d); }
};

// T is float
template <class T, int U>
__global__ void __launch_bounds__(512)
    kbk_read_run_k(const T* x, uint32_t* result, int64_t n, unsigned* counter, unsigned long long* slots) {
    // Share: threads that read x; the last warp reads nothing
    constexpr int Threads = 512, Share = Threads - 32;
    __shared__ uint32_t warps[32];
    const unsigned number = kbki_slot_number(counter, slots);
    kbki_span sp = kbki_split<T, 4>(x, n);
    int64_t one = kbki_single(sp, n, threadIdx.x), step = (int64_t)gridDim.x * (Share * U);
    int64_t first = threadIdx.x < Share ? (int64_t)blockIdx.x * (Share * U) + threadIdx.x : sp.packs;
    uint32_t fold = blockIdx.x == 0 && one >= 0 ? __float_as_uint(x[one]) : 0, all = 0;
    for (int64_t i = first; i < sp.packs; i += step) {
        kbki_pack<T, 4> v[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            v[u].fill(0);
            if (i + u * Share < sp.packs) v[u].load(x + sp.head + (i + u * Share) * 4);
        }
#pragma unroll
        for (int u = 0; u < U; u++) fold ^= v[u].q.x ^ v[u].q.y ^ v[u].q.z ^ v[u].q.w;
    }
    auto take = [&](uint32_t part) { all ^= part; };
    if (!kbki_by_slots<kbki_xor, Threads>(fold, number, counter, slots, take)) return;
    all = kbki_all<kbki_xor, Threads>(all, warps);
    if (threadIdx.x == 0) *result = all;
}
template <class T, int U> const char* kbki_read(const kbk_args* a, kbk_stream st) {
    const int64_t n = a->s.rows * a->s.cols;
    uint32_t* fold = (uint32_t*)a->out[0];
    if (kbki_check_dims(&a->s)) return kbki_check_dims(&a->s);
    if (!kbki_aligned(a->in[0], sizeof(T)) || !kbki_aligned(fold, 4)) return KBKI_TEXT_ALIGN;
    if (n == 0) return kbki_zeros(fold, 1, st);
    const char* why = kbki_check_workspace(a, kbki_scratch_read(&a->s, (int)sizeof(T), KBKI_WORD_unroll));
    if (why) return why;
    int64_t pieces = kbki_ceil(n, 480 * U * 4), full = (int64_t)kbki_sms() * 4; // 4 x 512 threads fill an SM
    unsigned ctas = (unsigned)kbki_even(pieces, full < KBKI_READ_CTAS ? full : KBKI_READ_CTAS);
    kbk_read_run_k<T, U><<<ctas, 512, 0, st>>>((const T*)a->in[0], fold, n, (unsigned*)a->workspace,
                                               (unsigned long long*)((char*)a->workspace + KBK_TICKETS));
    return kbki_launched();
}
KBKI_LAUNCHER(kbk_read_run_vec, kbki_read<T, 1>)
KBKI_LAUNCHER(kbk_read_run_unroll, kbki_read<T, 4>)

// --- triad
struct kbki_triad : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float a, float b) { return fmaf((float)KBKI_TRIAD, b, a); }
};
KBKI_MAP_RUNGS(kbk_triad_run, kbki_triad)
KBKI_LAUNCHER(kbk_triad_run_bulk, kbki_map_bulk<T, kbki_triad>)
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>access     Strided and random reads, and a chain of dependent reads: the cost of access patterns.
-----------------------------------------------------------------*/

/*  strided run ----------------------------------------------------------------------------------------------
    y[i] = x[i * stride]     y: n = rows * cols     x: n * stride; stride 1 (or 0) is coalesced
    flops  0
    bytes  2*n*s     useful bytes only
    check  bit-exact
    1 naive    one element per thread                    <- not coalesced: the useful rate falls as 1 / stride
               until every read has a 32-byte sector to itself, and again because memory delivers 64 bytes
    2 unroll   four independent reads per thread         <- more sectors in flight; the sectors read are the same
    bound by   memory, in sectors (CUDA C++ Best Practices Guide, "Strided Accesses")
    predict    which share of the bytes read is useful at strides of 2, 8, 16 and 32?

    gather run -----------------------------------------------------------------------------------------------
    y[i] = x[idx[i]]     idx, y: n = rows * cols     x: `among` elements (0: n)
                         idx uniform, or i % among (sequential). An index outside x gives NaN
    flops  0
    bytes  (s + 8)*n + s*min(n, among)     useful bytes only: index, element written, element read. If there are
                                           fewer elements than reads, each element is included once
    check  bit-exact
    1 naive    one element per thread              <- two latencies in sequence, one small read in flight
    2 unroll   eight indices, then eight reads     <- eight reads in flight per thread: the rate of random reads is
               the number in flight divided by the latency (Little's law)
    bound by   memory, in sectors; for tables in cache, the request rate of the caches
    predict    how much slower is a random read of 4 bytes from DRAM than from L2?

    chase run ------------------------------------------------------------------------------------------------
    i = 0;  KBK_HOPS times: i = x[i]     x: n = rows * cols int32, one cycle through all of 0..n-1
    walk holds two int32: the number of hops and the last index. Indices are not checked. The clock cycles that all
    hops took are stored as one int64 at workspace + KBK_TICKETS. The clock cycles divided by the number of hops
    are the latency per hop, without the launch; a hop includes one address calculation.
    flops  0
    bytes  4*KBK_HOPS     useful bytes only
    check  equal
    1 naive    one thread (pointer chasing). All threads of the CTA first read an x of up to KBKI_CHASE_WARM bytes,
               so that x is in the smallest cache into which it fits
    bound by   latency alone: dependent loads cannot overlap (Saavedra & Smith 1995)
    predict    how many hops per microsecond do you expect from L1, L2 and DRAM? */
/*  measured strided run: f32 8388608, stride 32, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 15.7 us = 67.11 MB / 4.276 TB/s; on this GPU 22.0 us at 3.051 TB/s
                 time peak   gain regs  occ DRAM conflicts
    1 naive  203.1 us 10 %      -   10 85 % 84 %         0  one element per thread
    2 unroll 206.9 us 10 % 0.98 x   30 85 % 82 %         0  four independent reads per thread
    end of measured */
/*  measured gather run: f32 33554432, among 268435456, sequential 0, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                time peak   gain regs  occ DRAM conflicts
    1 naive  1204 us 17 %      -   10 84 % 62 %         0  one element per thread
    2 unroll 1208 us 17 % 1.00 x   32 91 % 62 %         0  eight indices, then eight reads
    end of measured */
/*  measured chase run: f32 268435456, NVIDIA H100 80GB HBM3, 2026-11-26
    no floor from bytes or operations: latency limits the time
               time peak regs occ DRAM conflicts
    1 naive 5680 us  0 %   26 2 %  0 %         0  one thread, dependent loads
    end of measured */
#define KBK_HOPS 16384
#define KBKI_CHASE_WARM (32 << 20)
KBK_FN int64_t kbki_stride(const kbk_shape* s) { return s->stride > 0 ? s->stride : 1; }
KBK_FN int64_t kbki_among(const kbk_shape* s) { return s->among > 0 ? s->among : s->rows * s->cols; }
KBKI_TENSORS(strided_run, 2, t[0] = kbki_in("x", n * kbki_stride(s), kbki_stride(s)),
             t[1] = kbki_out("y", KBK_T, n, 1, 0))
KBKI_TENSORS(gather_run, 3, t[0] = kbki_in("x", kbki_among(s), 0), t[1] = kbki_ids("idx", n, 1, kbki_among(s)),
             t[1].kind = KBK_KI64, t[1].fill = s->sequential ? KBK_SEQUENCE : KBK_IDS,
             t[2] = kbki_out("y", KBK_T, n, 1, 0))
KBKI_TENSORS(chase_run, 2, t[0] = kbki_ids("x", n, 0, n > 0 ? n : 1), t[0].fill = KBK_CYCLE,
             t[1] = kbki_out("walk", KBK_KI32, 2, 2, 0))
KBKI_FORMULAS(strided_run, s->rows * s->cols, 0, 2 * n * elem)
KBKI_FORMULAS(gather_run, s->rows * s->cols, 0,
              n * (elem + 8) + (n < (double)kbki_among(s) ? n : (double)kbki_among(s)) * elem)
KBKI_FORMULAS(chase_run, s->rows && s->cols ? 1 : 0, 0, 4.0 * KBK_HOPS)
KBKI_SCRATCH(chase) { return KBK_TICKETS + sizeof(int64_t); }
KBKI_REF(strided_run) {
    for (int64_t i = u0; i < u1; i++) out[0][i - u0] = in[0][i * kbki_stride(s)];
}
KBKI_REF(gather_run) {
    for (int64_t i = u0; i < u1; i++) {
        double at = in[1][i];
        int inside = at >= 0 && at < (double)kbki_among(s);
        out[0][i - u0] = inside ? in[0][(int64_t)at] : kbki_from_bits(0x7FF8ull << 48);
    }
}
KBKI_REF(chase_run) {
    int64_t at = 0;
    (void)s;
    if (u0 >= u1) return;
    for (int hop = 0; hop < KBK_HOPS; hop++) at = (int64_t)in[0][at];
    out[0][0] = KBK_HOPS, out[0][1] = (double)at;
}

#ifdef __CUDACC__
// The results of a thread are one CTA width apart, so that the stores of a warp are coalesced.
template <class T, int U>
__global__ void __launch_bounds__(256) kbk_strided_run_k(const T* x, T* y, int64_t n, int64_t stride) {
    int64_t first = (int64_t)blockIdx.x * (256 * U) + threadIdx.x;
    T v[U];
#pragma unroll
    for (int u = 0; u < U; u++)
        if (first + u * 256 < n) v[u] = x[(first + u * 256) * stride];
#pragma unroll
    for (int u = 0; u < U; u++)
        if (first + u * 256 < n) y[first + u * 256] = v[u];
}
// Evict-first hints for indices and results keep x in the caches.
template <class T, int U>
__global__ void __launch_bounds__(256)
    kbk_gather_run_k(const T* x, const int64_t* idx, T* y, int64_t n, int64_t among) {
    int64_t first = (int64_t)blockIdx.x * (256 * U) + threadIdx.x, at[U];
    T v[U];
#pragma unroll
    for (int u = 0; u < U; u++) at[u] = first + u * 256 < n ? __ldcs(idx + first + u * 256) : -1;
#pragma unroll
    for (int u = 0; u < U; u++)
        v[u] = (uint64_t)at[u] < (uint64_t)among ? __ldg(x + at[u]) : kbki_type<T>::from(NAN);
#pragma unroll
    for (int u = 0; u < U; u++)
        if (first + u * 256 < n) __stcs(y + first + u * 256, v[u]);
}

// *ctas: number of CTAs to launch, 0 if there is nothing to do
template <class T> const char* kbki_access_args(const kbk_args* a, int per_cta, unsigned* ctas) {
    const int64_t n = kbki_ceil(a->s.rows * a->s.cols, per_cta);
    if (kbki_check_dims(&a->s)) return kbki_check_dims(&a->s);
    if (!kbki_aligned(a->in[0], sizeof(T)) || !kbki_aligned(a->out[0], sizeof(T))) return KBKI_TEXT_ALIGN;
    *ctas = (unsigned)n;
    return kbki_grid_ok(n) ? NULL : KBKI_TEXT_GRID;
}
template <class T, int U> const char* kbki_strided(const kbk_args* a, kbk_stream st) {
    unsigned ctas;
    const char* why = kbki_access_args<T>(a, 256 * U, &ctas);
    if (why || ctas == 0) return why;
    kbk_strided_run_k<T, U><<<ctas, 256, 0, st>>>((const T*)a->in[0], (T*)a->out[0], a->s.rows * a->s.cols,
                                                  kbki_stride(&a->s));
    return kbki_launched();
}
template <class T, int U> const char* kbki_gather(const kbk_args* a, kbk_stream st) {
    unsigned ctas;
    const char* why = kbki_access_args<T>(a, 256 * U, &ctas);
    if (why || ctas == 0) return why;
    if (!kbki_aligned(a->in[1], 8)) return KBKI_TEXT_ALIGN;
    kbk_gather_run_k<T, U><<<ctas, 256, 0, st>>>((const T*)a->in[0], (const int64_t*)a->in[1], (T*)a->out[0],
                                                 a->s.rows * a->s.cols, kbki_among(&a->s));
    return kbki_launched();
}
KBKI_LAUNCHER(kbk_strided_run_naive, kbki_strided<T, 1>)
KBKI_LAUNCHER(kbk_strided_run_unroll, kbki_strided<T, 4>)
KBKI_LAUNCHER(kbk_gather_run_naive, kbki_gather<T, 1>)
KBKI_LAUNCHER(kbk_gather_run_unroll, kbki_gather<T, 8>)

// --- chase. T is float
template <class T>
__global__ void __launch_bounds__(256) kbk_chase_run_naive_k(const int* x, int* walk, int64_t* clocks, int n) {
    int seen = 0, at = 0;
    if ((int64_t)n * 4 <= KBKI_CHASE_WARM)
        for (int i = threadIdx.x; i < n; i += 256) seen ^= x[i];
    // `seen` is never -1, because indices are not negative; the comparison keeps the loads from being removed
    if (__syncthreads_or(seen == -1) || threadIdx.x > 0) return;
    int64_t begin = clock64();
#pragma unroll 16
    for (int hop = 0; hop < KBK_HOPS; hop++) at = x[at];
    walk[1] = at; // waits for the last hop before the clock is read
    asm volatile("" ::"r"(at) : "memory");
    *clocks = clock64() - begin;
    walk[0] = KBK_HOPS;
}
template <class T> const char* kbk_chase_run_naive(const kbk_args* a, kbk_stream st) {
    const char* why = kbki_check_dims(&a->s);
    int64_t n = a->s.rows * a->s.cols;
    if (why || n == 0) return why;
    if (n > INT32_MAX) return "more than 2^31 - 1 elements: indices have 32 bits";
    if (!kbki_aligned(a->in[0], 4) || !kbki_aligned(a->out[0], 4)) return KBKI_TEXT_ALIGN;
    if ((why = kbki_check_workspace(a, kbki_scratch_chase(&a->s, (int)sizeof(T), KBKI_WORD_naive))) != NULL)
        return why;
    int64_t* clocks = (int64_t*)((char*)a->workspace + KBK_TICKETS);
    kbk_chase_run_naive_k<T><<<1, 256, 0, st>>>((const int*)a->in[0], (int*)a->out[0], clocks, (int)n);
    return kbki_launched();
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>transfer     Host to device and back, within the device; allocation; an empty kernel.
-----------------------------------------------------------------*/

/*  h2d run, d2h run, d2d run --------------------------------------------------------------------------------
    y = x          x, y: n = rows * cols of f32; host to device, device to host, device to device
    flops  0
    bytes  n*s     on the bus; d2d 2*n*s, as every copy in memory
    check  bit-exact
    1 pageable   cudaMemcpyAsync on memory of malloc     <- slow: pages may move, so the driver copies through
                 a pinned buffer of its own, and the host waits
    2 pinned     the same call on pinned memory          <- the copy engine reads it directly (DMA)
    3 sm         a kernel on mapped pinned memory        <- no copy engine has to start, but 16-byte accesses
                 use less of the bus bandwidth, so large copies are slower
    99 cudart    d2d: cudaMemcpyAsync
    bound by     the bus; d2d: memory (CUDA C++ Best Practices Guide, "Pinned Memory")
    predict    PCIe 5.0 x16 carries 63 GB/s. How long do 256 MiB take, and why is pageable slower?

    alloc run ------------------------------------------------------------------------------------------------
    A block of n = rows * cols f32 is allocated and released. If out[0] is not NULL, a kernel writes and reads the
    first and the last byte of the block, and sets usable (int32) to 1 if this works.
    flops  0
    bytes  4        usable
    check  equal
    1 malloc   cudaMalloc, cudaFree            <- slow: changes page tables and synchronises the device
    2 async    cudaMallocFromPoolAsync and cudaFreeAsync, release threshold 0
                                               <- stream-ordered, no synchronisation; but each later synchronisation
               returns the memory to the driver
    3 pool     as async, release threshold UINT64_MAX
                                               <- the pool keeps the memory, so the driver need not map it again
    The variants of alloc are host calls, which are timed by the host's clock and cannot be captured into a graph.
    Memory pools exist until the program ends (CUDA C++ Programming Guide, "Stream Ordered Memory Allocator").
    predict    how many allocations of each kind fit into 1 % of a step of 10 ms?

    null run -------------------------------------------------------------------------------------------------
    an empty kernel
    flops  0
    bytes  0
    check  nothing to check
    1 naive    one warp that does nothing: the launch overhead
    predict    how many bytes does copy move in the time of an empty kernel? */
/*  measured h2d run: f32 67108864, NVIDIA H100 80GB HBM3, 2026-11-26
    no floor from bytes or operations: the bus limits the time
                   time peak   gain regs  occ DRAM conflicts
    1 pageable 32.00 ms  0 %      -    -  0 %  0 %         0  staged by the driver
    2 pinned    4895 us  2 % 6.54 x    -  0 %  2 %         0  direct DMA
    3 sm        5293 us  2 % 0.92 x   27 86 %  1 %         0  a kernel on mapped memory
    end of measured */
/*  measured d2h run: f32 67108864, NVIDIA H100 80GB HBM3, 2026-11-26
    no floor from bytes or operations: the bus limits the time
                   time peak   gain regs  occ DRAM conflicts
    1 pageable 19.14 ms  0 %      -    -  0 %  0 %         0  staged by the driver
    2 pinned    4883 us  2 % 3.92 x    -  0 %  2 %         0  direct DMA
    3 sm        5131 us  2 % 0.95 x   27 82 %  2 %         0  a kernel on mapped memory
    end of measured */
/*  measured d2d run: f32 67108864, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                  time  peak regs  occ DRAM conflicts
     3 sm     173.6 us 115 %   27 84 % 89 %         0  the unrolled copy
    99 cudart 172.7 us 116 %    - 82 % 89 %         0  cudaMemcpyAsync
    end of measured */
/*  measured alloc run: f32 67108864, NVIDIA H100 80GB HBM3, 2026-11-26
    no floor from bytes or operations: the allocator limits the time
                 time   gain occ DRAM conflicts
    1 malloc 361.8 us      - 0 %  1 %         0  cudaMalloc, cudaFree
    2 async  949.3 us 0.38 x 0 %  0 %         0  a pool that returns memory to the driver
    3 pool    1.77 us  536 x 0 %  0 %         0  a pool that keeps its memory
    end of measured */
/*  measured null run: f32 1, NVIDIA H100 80GB HBM3, 2026-11-26
    no floor from bytes or operations: the launch limits the time
               time regs occ DRAM conflicts
    1 naive 0.84 us    4 2 %  0 %         0  an empty kernel
    end of measured */
KBKI_TENSORS(h2d_run, 2, kbki_map1_tensors(s, t), t[0].place = KBK_ON_HOST)
KBKI_TENSORS(d2h_run, 2, kbki_map1_tensors(s, t), t[1].place = KBK_ON_HOST)
KBKI_TENSORS(alloc_run, 1, t[0] = kbki_out("usable", KBK_KI32, rows && cols ? 1 : 0, 1, 0), t[0].optional = 1)
KBKI_TENSORS(null_run, 1, t[0] = kbki_out("nothing", KBK_T, 0, 1, 0))
KBKI_FORMULAS(h2d_run, s->rows * s->cols, 0, 1 * n * elem)
KBKI_FORMULAS(d2h_run, s->rows * s->cols, 0, 1 * n * elem)
KBKI_MAP_FORMULAS(d2d_run, kbki_map1_tensors, 0, 2 * n * elem)
KBKI_FORMULAS(alloc_run, s->rows && s->cols ? 1 : 0, 0, n != 0 ? 4 : 0)
KBKI_FORMULAS(null_run, 0, 0, 0)
KBKI_REF(h2d_run) { kbk_copy_run_ref(s, elem, in, out, u0, u1); }
KBKI_REF(d2h_run) { kbk_copy_run_ref(s, elem, in, out, u0, u1); }
KBKI_REF(d2d_run) { kbk_copy_run_ref(s, elem, in, out, u0, u1); }
KBKI_REF(alloc_run) {
    (void)s, (void)in;
    for (int64_t u = u0; u < u1; u++) out[0][u - u0] = 1;
}
KBKI_REF(null_run) { (void)s, (void)in, (void)out, (void)u0, (void)u1; }

#ifdef __CUDACC__
// With the wrong kind of host memory, another kind of copy would be timed, or the kernel would fault.
KBK_FN const char* kbki_check_host(const kbk_args* a, const void* host, bool pinned) {
    cudaPointerAttributes at;
    if (a->s.rows == 0 || a->s.cols == 0) return NULL;
    cudaError_t e = cudaPointerGetAttributes(&at, host);
    if (e != cudaSuccess) return cudaGetErrorString(cudaGetLastError());
    if (pinned) return at.type == cudaMemoryTypeHost ? NULL : "this variant needs pinned host memory";
    return at.type == cudaMemoryTypeUnregistered ? NULL : "this variant needs pageable host memory";
}
template <class T, cudaMemcpyKind Kind, bool Pinned, bool Kernel = false>
const char* kbki_transfer(const kbk_args* a, kbk_stream st) {
    constexpr bool up = Kind == cudaMemcpyHostToDevice;
    const char* why = kbki_check_host(a, up ? a->in[0] : a->out[0], Pinned);
    if (why) return why;
    return Kernel ? kbki_map_packs<T, kbki_map_op<1, true, !up>>(a, st) : kbki_copy_cudart<T, Kind>(a, st);
}
KBKI_LAUNCHER(kbk_h2d_run_pageable, kbki_transfer<T, cudaMemcpyHostToDevice, false>)
KBKI_LAUNCHER(kbk_h2d_run_pinned, kbki_transfer<T, cudaMemcpyHostToDevice, true>)
KBKI_LAUNCHER(kbk_h2d_run_sm, kbki_transfer<T, cudaMemcpyHostToDevice, true, true>)
KBKI_LAUNCHER(kbk_d2h_run_pageable, kbki_transfer<T, cudaMemcpyDeviceToHost, false>)
KBKI_LAUNCHER(kbk_d2h_run_pinned, kbki_transfer<T, cudaMemcpyDeviceToHost, true>)
KBKI_LAUNCHER(kbk_d2h_run_sm, kbki_transfer<T, cudaMemcpyDeviceToHost, true, true>)
KBKI_LAUNCHER(kbk_d2d_run_sm, kbki_map_packs<T, kbki_copy>)
KBKI_LAUNCHER(kbk_d2d_run_cudart, kbki_copy_cudart<T, cudaMemcpyDeviceToDevice>)

// --- alloc
template <class T> __global__ void kbki_usable_k(volatile char* block, size_t bytes, int* usable) {
    block[0] = 1, block[bytes - 1] = 1;
    *usable = block[0] & block[bytes - 1];
}
// If pool is NULL, memory comes from cudaMalloc.
template <class T> const char* kbki_alloc(const kbk_args* a, cudaMemPool_t pool, kbk_stream st) {
    const char* why = kbki_check_dims(&a->s);
    size_t bytes = (size_t)(a->s.rows * a->s.cols) * sizeof(T);
    void* block = NULL;
    if (why || bytes == 0) return why;
    cudaError_t e = pool ? cudaMallocFromPoolAsync(&block, bytes, pool, st) : cudaMalloc(&block, bytes);
    if (e == cudaSuccess && a->out[0]) kbki_usable_k<T><<<1, 1, 0, st>>>((char*)block, bytes, (int*)a->out[0]);
    if (e == cudaSuccess) e = pool ? cudaFreeAsync(block, st) : cudaFree(block);
    return e == cudaSuccess ? kbki_launched() : cudaGetErrorString(cudaGetLastError());
}
template <class T, uint64_t Threshold> const char* kbki_alloc_pool(const kbk_args* a, kbk_stream st) {
    static cudaMemPool_t pools[16]; // one memory pool per device
    int device = 0;
    uint64_t threshold = Threshold;
    cudaError_t e = cudaGetDevice(&device);
    if (e != cudaSuccess || device >= 16) return "no memory pool for this device";
    cudaMemPool_t* pool = &pools[device];
    if (!*pool) {
        cudaMemPoolProps props = {};
        props.allocType = cudaMemAllocationTypePinned;
        props.location.type = cudaMemLocationTypeDevice;
        props.location.id = device;
        e = cudaMemPoolCreate(pool, &props);
        if (e == cudaSuccess) e = cudaMemPoolSetAttribute(*pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    }
    return e == cudaSuccess ? kbki_alloc<T>(a, *pool, st) : cudaGetErrorString(cudaGetLastError());
}
template <class T> const char* kbk_alloc_run_malloc(const kbk_args* a, kbk_stream st) {
    return kbki_alloc<T>(a, NULL, st);
}
KBKI_LAUNCHER(kbk_alloc_run_async, kbki_alloc_pool<T, 0>)
KBKI_LAUNCHER(kbk_alloc_run_pool, kbki_alloc_pool<T, UINT64_MAX>)

// --- null
template <class T> __global__ void kbk_null_run_naive_k() {}
template <class T> const char* kbk_null_run_naive(const kbk_args* a, kbk_stream st) {
    if (kbki_check_dims(&a->s)) return kbki_check_dims(&a->s);
    kbk_null_run_naive_k<T><<<1, 32, 0, st>>>();
    return kbki_launched();
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>activation     ReLU, GELU in its two forms, SiLU. In 16 bits special functions limit the speed, not memory.
-----------------------------------------------------------------*/

/*  relu fwd -------------------------------------------------------------------------------------------------
    y = x < 0 ? 0 : x     x, y: n = rows * cols. A NaN stays NaN; max(x, 0) would lose it
    flops  n
    bytes  2*n*s
    check  bit-exact
    ladder     as every element-wise operation; unroll has two 16-byte vectors in flight
    predict    relu moves two thirds of the bytes of add. Is its time two thirds in each rung? */
/*  measured relu fwd: f32 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.125 FLOP/B; floor on an H200 251.1 us = 1.074 GB / 4.276 TB/s; on this GPU 352.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  443.2 us  92 %      -   10 73 % 71 %         0  one element per thread
    2 stride 437.6 us  94 % 1.01 x   22 96 % 72 %         0  device-sized grid, grid-stride loop
    3 vec    350.2 us 117 % 1.25 x   22 85 % 90 %         0  16-byte accesses
    4 unroll 350.7 us 117 % 1.00 x   24 86 % 90 %         0  two 16-byte vectors in flight
    end of measured */
KBKI_MAP_FORMULAS(relu_fwd, kbki_map1_tensors, n, 2 * n * elem)
KBKI_MAP_REF(relu_fwd, in[0][i] < 0 ? 0 : in[0][i])

#ifdef __CUDACC__
struct kbki_relu : kbki_map_op<1> {
    static __device__ __forceinline__ float of(float x, float) { return x < 0 ? 0 : x; }
};
KBKI_MAP_RUNGS(kbk_relu_fwd, kbki_relu)
#endif // __CUDACC__

/*  gelu_erf fwd, gelu_tanh fwd, silu fwd --------------------------------------------------------------------
    gelu_erf   y = 0.5 x (1 + erf(x / sqrt 2))
    gelu_tanh  y = 0.5 x (1 + tanh(k x (1 + a x^2)))     k = sqrt(2 / pi), a = 0.044715
    silu       y = x / (1 + exp(-x))                     x, y: n = rows * cols
    flops  5*n     gelu_erf: / sqrt 2, erf, + 1, 0.5, x
           9*n     gelu_tanh: x^2, a, + 1, x, k, tanh, + 1, 0.5, x
           3*n     silu: exp, + 1, /
    bytes  2*n*s
    check  f32 norm-wise 1e-6, 2 ulp + 2e-6; 16-bit 1 ulp + 2e-6, norm-wise 3e-4 (f16), 2.5e-3 (bf16). The two
           GELUs differ by 4.7e-4 at x = -2.7, so they are never compared with each other
    1 to 4     as every element-wise operation. 1 + erf(x) and 1 + tanh(x) lose all digits for x << 0. The tail of
               the normal distribution and the logistic form x / (1 + exp(-2u)) keep them. The tail takes one exp2
               and a polynomial, 30 instructions; with erfcf, arithmetic limits the speed even in f32. In f32
               vectors (rungs 3 and 4), a reciprocal within 1 ulp replaces the division: if the data is in cache,
               a division takes 6 % longer
    6 approx   one exp2 and one reciprocal      <- at the bandwidth of an H200 there is time for about 29 f32
               instructions per 16-bit element; the tail or an exact division takes more. An H100 with less
               bandwidth has time for 40, so that approx gains nothing. The tanh instruction is not used: its error
               of up to 2e-4 near 1 is too large for the tail
    bound by   memory in f32; in 16 bits, instructions before approx (H100: before vec), then memory (GELU:
               Hendrycks & Gimpel 2016; SiLU: Elfwing et al. 2018)
    predict    bf16 halves the bytes, not the instructions. In which rungs is it twice as fast? */
/*  measured gelu_erf fwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    1.250 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  393.2 us  51 %      -   10 77 % 40 %         0  one element per thread, exp2 and polynomial
    2 stride 308.1 us  65 % 1.28 x   14 95 % 51 %         0  device-sized grid, grid-stride loop
    3 vec    173.7 us 115 % 1.77 x   32 83 % 89 %         0  16-byte accesses
    4 unroll 174.6 us 115 % 0.99 x   32 82 % 88 %         0  two 16-byte vectors in flight
    6 approx 173.4 us 116 % 1.01 x   32 87 % 89 %         0  logistic function of a short polynomial
    end of measured */
/*  measured gelu_tanh fwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    2.250 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  403.7 us  50 %      -   16 77 % 39 %         0  one element per thread, exp and divide
    2 stride 309.8 us  65 % 1.30 x   18 96 % 50 %         0  device-sized grid, grid-stride loop
    3 vec    173.1 us 116 % 1.79 x   28 87 % 89 %         0  16-byte accesses
    4 unroll 174.6 us 115 % 0.99 x   32 90 % 88 %         0  two 16-byte vectors in flight
    6 approx 173.4 us 115 % 1.01 x   31 87 % 89 %         0  hardware exp2 and reciprocal
    end of measured */
/*  measured silu fwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.750 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  398.2 us  50 %      -   16 77 % 39 %         0  one element per thread, exp and divide
    2 stride 304.6 us  65 % 1.31 x   19 96 % 51 %         0  device-sized grid, grid-stride loop
    3 vec    172.7 us 115 % 1.76 x   28 86 % 89 %         0  16-byte accesses
    4 unroll 174.1 us 115 % 0.99 x   32 90 % 89 %         0  two 16-byte vectors in flight
    6 approx 173.6 us 115 % 1.00 x   30 86 % 89 %         0  hardware exp2 and reciprocal
    end of measured */
#define KBKI_GELU_K 0.7978845608028654
#define KBKI_GELU_A 0.044715

KBKI_MAP_FORMULAS(gelu_erf_fwd, kbki_map1_tensors, 5 * n, 2 * n * elem)
KBKI_MAP_FORMULAS(gelu_tanh_fwd, kbki_map1_tensors, 9 * n, 2 * n * elem)
KBKI_MAP_FORMULAS(silu_fwd, kbki_map1_tensors, 3 * n, 2 * n * elem)

KBKI_MAP_REF(gelu_erf_fwd, 0.5 * in[0][i] * erfc(-in[0][i] * 0.7071067811865476))
KBKI_MAP_REF(gelu_tanh_fwd,
             0.5 * in[0][i] * (1 + tanh(KBKI_GELU_K * in[0][i] * (1 + KBKI_GELU_A * in[0][i] * in[0][i]))))
KBKI_MAP_REF(silu_fwd, in[0][i] / (1 + exp(-in[0][i])))

#ifdef __CUDACC__
// Horner's scheme; the coefficient of the highest power comes first.
template <class... Rest> __device__ __forceinline__ float kbki_horner(float x, float p, Rest... rest) {
    ((p = fmaf(p, x, rest)), ...);
    return p;
}
// Returns tail(t) for t >= 0: Phi(-t) = exp(-t^2 / 2) tail(t). Relative error: 2.2e-7 for t up to 4, 1.1e-6 for t up
// to 5.6, where Phi(-t) is 1e-8. Callers limit t to 16, where exp(-t^2 / 2) is 0.
__device__ __forceinline__ float kbki_tail(float t) {
    return kbki_horner(t - 2.0f, 2.28728217e-10f, -4.00803923e-9f, 2.98378247e-8f, -1.31859451e-7f,
                       4.75982546e-7f, -1.96149836e-6f, 8.84564088e-6f, -3.7270609e-5f, 1.46345439e-4f,
                       -5.50173747e-4f, 1.97547209e-3f, -6.70434115e-3f, 2.13129502e-2f, -6.27382845e-2f,
                       0.168101981f);
}
__device__ __forceinline__ float kbki_bell(float x) { return kbki_exp2(x * x * (-0.5f * KBKI_LOG2E)); }
// Limits |x| to 16; 16 if x is NaN, but callers multiply by kbki_bell(x), so that their results are NaN.
__device__ __forceinline__ float kbki_cut(float x) { return fminf(fabsf(x), 16.0f); }
struct kbki_gelu_erf : kbki_map_op<1> {
    static __device__ __forceinline__ float of(float x, float) {
        float p = kbki_bell(x) * kbki_tail(kbki_cut(x));
        return x * (x < 0 ? p : 1.0f - p);
    }
};
template <class Quotient> struct kbki_gelu_tanh_by : kbki_map_op<1> {
    static __device__ __forceinline__ float of(float x, float) {
        float u2 = (float)(-2 * KBKI_GELU_K) * x * fmaf((float)KBKI_GELU_A * x, x, 1.0f);
        return Quotient::of(x, 1.0f + expf(u2));
    }
};
typedef kbki_gelu_tanh_by<kbki_divide> kbki_gelu_tanh;
template <class Quotient> struct kbki_silu_by : kbki_map_op<1> {
    static __device__ __forceinline__ float of(float x, float) { return Quotient::of(x, 1.0f + expf(-x)); }
};
typedef kbki_silu_by<kbki_divide> kbki_silu;

// x / (1 + 2^q); no NaN if 2^q overflows, because 1 / infinity is 0
__device__ __forceinline__ float kbki_logistic(float x, float q) { return x * kbki_reciprocal(1.0f + kbki_exp2(q)); }
struct kbki_gelu_erf_fast : kbki_map_op<1> {
    // q(x) = log2(Phi(-x) / Phi(x)). The polynomial is a minimax fit of q(x) / x in x^2 over |x| <= 5.6; the error
    // of y is below 0.45 * (2e-6 + 2.2e-4 |y|). For |x| > 5.6, y is rounded to 0 or to x.
    static __device__ __forceinline__ float of(float x, float) {
        return kbki_logistic(
            x, x * kbki_horner(x * x, -1.9236e-6f, 5.55812588e-5f, 6.158157e-4f, -0.105928304f, -2.30153658f));
    }
};
struct kbki_gelu_tanh_fast : kbki_map_op<1> {
    static __device__ __forceinline__ float of(float x, float) {
        constexpr double c = -2 * KBKI_GELU_K * 1.4426950408889634;
        return kbki_logistic(x, x * fmaf(x * x, (float)(c * KBKI_GELU_A), (float)c));
    }
};
struct kbki_silu_fast : kbki_map_op<1> {
    static __device__ __forceinline__ float of(float x, float) { return kbki_logistic(x, x * -KBKI_LOG2E); }
};

KBKI_MAP_RUNGS_16(kbk_gelu_erf_fwd, kbki_gelu_erf)
KBKI_MAP_RUNGS_16(kbk_gelu_tanh_fwd, kbki_gelu_tanh)
KBKI_MAP_RUNGS_16(kbk_silu_fwd, kbki_silu)
#endif // __CUDACC__

/*  gelu_erf bwd, gelu_tanh bwd, silu bwd --------------------------------------------------------------------
    gelu_erf   dx = dy (Phi(x) + x phi(x))          Phi, phi: the normal distribution and its density
    gelu_tanh  dx = dy (0.5 (1 + t) + 0.5 x (1 - t^2) k (1 + 3 a x^2))    t = tanh(u), u = k x (1 + a x^2)
    silu       dx = dy s (1 + x (1 - s))            s = 1 / (1 + exp(-x))          dy, x, dx: n = rows * cols
    flops  11*n    gelu_erf: Phi 4 (/ sqrt 2, erf, + 1, 0.5), phi 4 (x^2, -0.5, exp, scale), x, +, dy
           18*n    gelu_tanh: u 5, tanh 1, 0.5 (1 + t) 2, u' 3, 0.5 x (1 - t^2) u' 5 (t^2 is one), +, dy
           8*n     silu: s 3, 1 - s, x, 1 +, s, dy
    bytes  3*n*s   dy, x, dx
    check  f32 norm-wise 2e-6, 4 ulp + 4e-6; 16-bit 1 ulp + 4e-6, norm-wise 3e-4 (f16), 2.5e-3 (bf16). For x < 0
           all three derivatives cross zero, as a difference of two terms; there, an ulp is that of the terms
    1 to 4     as every element-wise operation; unroll has two vectors of each input in flight. With e = exp(-2
               |u|), both s = 1 / (1 + e) and 1 - s = e / (1 + e) keep their digits in both tails. In f32
               vectors (rungs 3 and 4), the reciprocal has an error of up to 1 ulp: if the data is in cache, a
               correctly rounded one takes 14 to 18 % longer
    6 approx   hardware exp2 and reciprocal      <- as forward. gelu_erf: one exp2, a polynomial of degree 8
               instead of 14
    bound by   as forward
    predict    the backward pass moves 3/2 of the bytes of the forward pass. Which rungs take less than 3/2 of its
               time? */
/*  measured gelu_erf bwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    1.833 FLOP/B; floor on an H200 188.3 us = 805.3 MB / 4.276 TB/s; on this GPU 264.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  429.3 us  61 %      -   13 79 % 55 %         0  one element per thread, exp2 and polynomial
    2 stride 381.7 us  68 % 1.12 x   15 96 % 62 %         0  device-sized grid, grid-stride loop
    3 vec    256.9 us 102 % 1.49 x   32 86 % 92 %         0  16-byte accesses
    4 unroll 258.4 us 101 % 0.99 x   32 82 % 91 %         0  two vectors per input in flight
    6 approx 258.0 us 101 % 1.00 x   32 84 % 91 %         0  polynomial of degree 8 instead of 14
    end of measured */
/*  measured gelu_tanh bwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    3.000 FLOP/B; floor on an H200 188.3 us = 805.3 MB / 4.276 TB/s; on this GPU 264.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  452.0 us  67 %      -   19 80 % 53 %         0  one element per thread, exp and divide
    2 stride 403.0 us  75 % 1.12 x   20 95 % 59 %         0  device-sized grid, grid-stride loop
    3 vec    257.2 us 118 % 1.57 x   31 84 % 92 %         0  16-byte accesses
    4 unroll 258.0 us 117 % 1.00 x   40 67 % 91 %         0  two vectors per input in flight
    6 approx 257.9 us 117 % 1.00 x   32 85 % 91 %         0  hardware exp2 and reciprocal
    end of measured */
/*  measured silu bwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    1.333 FLOP/B; floor on an H200 188.3 us = 805.3 MB / 4.276 TB/s; on this GPU 264.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  444.5 us  68 %      -   19 79 % 54 %         0  one element per thread, exp and divide
    2 stride 392.4 us  77 % 1.13 x   20 96 % 61 %         0  device-sized grid, grid-stride loop
    3 vec    256.8 us 118 % 1.53 x   31 88 % 92 %         0  16-byte accesses
    4 unroll 257.7 us 118 % 1.00 x   40 67 % 91 %         0  two vectors per input in flight
    6 approx 258.0 us 117 % 1.00 x   32 85 % 91 %         0  hardware exp2 and reciprocal
    end of measured */
// The limit of |x| in backward operations avoids inf * 0: beyond it, densities are 0, logistic functions 0 or 1.
#define KBKI_FAR 128.0
KBK_FN int kbki_map_bwd_tensors(const kbk_shape* s, kbk_tensor* t) {
    kbki_map2_tensors(s, t);
    t[0].name = "dy", t[1].name = "x", t[2].name = "dx", t[2].scales = 1;
    return 3;
}
KBKI_MAP_FORMULAS(gelu_erf_bwd, kbki_map_bwd_tensors, 11 * n, 3 * n * elem)
KBKI_MAP_FORMULAS(gelu_tanh_bwd, kbki_map_bwd_tensors, 18 * n, 3 * n * elem)
KBKI_MAP_FORMULAS(silu_bwd, kbki_map_bwd_tensors, 8 * n, 3 * n * elem)

// Stores dy * (p + q) and its magnitude as value i of output 0.
KBK_FN void kbki_bwd_terms(double dy, double p, double q, double* const* out, int64_t i) {
    if (out[0]) out[0][i] = dy * (p + q);
    if (out[KBK_OUTS]) out[KBK_OUTS][i] = fabs(dy) * (fabs(p) + fabs(q));
}
KBK_FN double kbki_near(double x) { return x > KBKI_FAR ? KBKI_FAR : x < -KBKI_FAR ? -KBKI_FAR : x; }
KBKI_REF(gelu_erf_bwd) {
    (void)s;
    for (int64_t i = u0; i < u1; i++) {
        double x = kbki_near(in[1][i]);
        kbki_bwd_terms(in[0][i], 0.5 * erfc(-x * 0.7071067811865476), x * exp(-0.5 * x * x) * 0.3989422804014327, out,
                       i - u0);
    }
}
KBKI_REF(gelu_tanh_bwd) {
    (void)s;
    for (int64_t i = u0; i < u1; i++) {
        double x = kbki_near(in[1][i]), u = KBKI_GELU_K * x * (1 + KBKI_GELU_A * x * x);
        double slope = KBKI_GELU_K * (1 + 3 * KBKI_GELU_A * x * x), p = 1 / (1 + exp(-2 * u));
        kbki_bwd_terms(in[0][i], p, 2 * x * p / (1 + exp(2 * u)) * slope, out, i - u0);
    }
}
KBKI_REF(silu_bwd) {
    (void)s;
    for (int64_t i = u0; i < u1; i++) {
        double x = in[1][i], p = 1 / (1 + exp(-x));
        // exp in double has a wider range than in f32, hence this limit instead of KBKI_FAR
        x = x > 1e3 ? 1e3 : x < -1e3 ? -1e3 : x;
        kbki_bwd_terms(in[0][i], p, x * p / (1 + exp(x)), out, i - u0);
    }
}

#ifdef __CUDACC__
__device__ __forceinline__ float kbki_near(float x) {
    // not NaN for NaN; callers also use exp(x), so that their results are NaN
    return fminf(fmaxf(x, (float)-KBKI_FAR), (float)KBKI_FAR);
}
// s + s (1 - s) w, where s is the logistic function of v
template <class Quotient> __device__ __forceinline__ float kbki_logistic_bwd(float v, float w) {
    float e = expf(-fabsf(v)), d = Quotient::of(1.0f, 1.0f + e), s = v < 0 ? e * d : d;
    return fmaf(e * d * d, w, s);
}
__device__ __forceinline__ float kbki_logistic_bwd_fast(float q, float w) { // q must be -v log2(e)
    float s = kbki_reciprocal(1.0f + kbki_exp2(q));
    return fmaf(s * w, 1.0f - s, s);
}
struct kbki_gelu_erf_bwd : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float dy, float x) {
        float t = kbki_cut(x), p = kbki_bell(x) * fmaf(t, -0.39894228f, kbki_tail(t));
        return dy * (x < 0 ? p : 1.0f - p);
    }
};
template <class Quotient> struct kbki_gelu_tanh_bwd_by : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float dy, float x) {
        constexpr double k2 = 2 * KBKI_GELU_K;
        float n = kbki_near(x), z = n * n, v = (float)k2 * x * fmaf((float)KBKI_GELU_A * x, x, 1.0f);
        return dy * kbki_logistic_bwd<Quotient>(v, n * fmaf(z, (float)(k2 * 3 * KBKI_GELU_A), (float)k2));
    }
};
typedef kbki_gelu_tanh_bwd_by<kbki_divide> kbki_gelu_tanh_bwd;
template <class Quotient> struct kbki_silu_bwd_by : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float dy, float x) {
        return dy * kbki_logistic_bwd<Quotient>(x, kbki_near(x));
    }
};
typedef kbki_silu_bwd_by<kbki_divide> kbki_silu_bwd;
struct kbki_gelu_erf_bwd_fast : kbki_map_op<2> {
    // For x = -t < 0, the derivative is exp(-t^2 / 2) p(t); for x = t, 1 - exp(-t^2 / 2) p(t). p is a minimax fit
    // over 0 <= t <= 6.2; the error is at most 7.5e-5 of |Phi(x)| + |x phi(x)|.
    static __device__ __forceinline__ float of(float dy, float x) {
        float p = kbki_bell(x) * kbki_horner(kbki_cut(x), 4.25944017e-6f, -1.18291209e-4f, 1.40115758e-3f,
                                             -9.35200229e-3f, 3.95011865e-2f, -0.114087939f, 0.241892591f,
                                             -0.796530426f, 0.499962837f);
        return dy * (x < 0 ? p : 1.0f - p);
    }
};
struct kbki_gelu_tanh_bwd_fast : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float dy, float x) {
        constexpr double k2 = 2 * KBKI_GELU_K, c = -k2 * 1.4426950408889634;
        float n = kbki_near(x), z = n * n, w = n * fmaf(z, (float)(k2 * 3 * KBKI_GELU_A), (float)k2);
        return dy * kbki_logistic_bwd_fast(x * fmaf(x * x, (float)(c * KBKI_GELU_A), (float)c), w);
    }
};
struct kbki_silu_bwd_fast : kbki_map_op<2> {
    static __device__ __forceinline__ float of(float dy, float x) {
        return dy * kbki_logistic_bwd_fast(x * -KBKI_LOG2E, kbki_near(x));
    }
};

KBKI_MAP_RUNGS_16(kbk_gelu_erf_bwd, kbki_gelu_erf_bwd)
KBKI_MAP_RUNGS_16(kbk_gelu_tanh_bwd, kbki_gelu_tanh_bwd)
KBKI_MAP_RUNGS_16(kbk_silu_bwd, kbki_silu_bwd)
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>dropout     Dropout. The mask is a function of seed and index, and is never stored.
-----------------------------------------------------------------*/

/*  dropout fwd, dropout bwd ---------------------------------------------------------------------------------
    y[i] = keep(i) ? x[i] * scale : 0     dx[i] = keep(i) ? dy[i] * scale : 0     n = rows * cols, p = shape.p
    keep(i)   is true if 16-bit half i mod 8 of Philox block i / 8 (low half of each word first) is at least
              threshold = round(65536 p); key = shape.seed, counter = (block, 0, 1). scale = 65536 / (65536 -
              threshold) in f32, so that the mean is kept exactly; p = 1 gives zeros. A dropped NaN or inf is 0
    flops  n
    bytes  2*n*s     no mask in memory
    check  bit-exact: x * scale is rounded to f32, then to type T
    1 naive    one Philox call per element       <- slow: 20 multiplications per element; 7/8 of the bits not used
    2 vec      16-byte accesses, a call per vector
                                                 <- one call serves 8 elements (f32: 4); 16 bytes per thread are in
               flight instead of 2 or 4
    3 unroll   two vectors in flight             <- random numbers are computed while both vectors are loaded
    bound by   memory from vec on (16-bit: about 10 instructions per element; there is time for 29)
               (dropout: Srivastava et al. 2014; Philox: Salmon et al. 2011)
    predict    naive uses 16 of the 128 bits of a Philox call. By what factor is vec faster? */
/*  measured dropout fwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.250 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  689.5 us  29 %      -   17 85 % 23 %         0  one Philox call per element
    2 vec    172.5 us 116 % 4.00 x   24 85 % 90 %         0  16-byte accesses, a Philox call per vector
    3 unroll 173.2 us 116 % 1.00 x   29 87 % 89 %         0  two vectors in flight
    end of measured */
/*  measured dropout bwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.250 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  689.5 us  29 %      -   17 85 % 23 %         0  one Philox call per element
    2 vec    172.8 us 116 % 3.99 x   24 85 % 89 %         0  16-byte accesses, a Philox call per vector
    3 unroll 173.4 us 115 % 1.00 x   29 87 % 89 %         0  two vectors in flight
    end of measured */
#define KBKI_PURPOSE_DROPOUT 1 // word 3 of the Philox counter: 1 for dropout's mask, 0 for inputs
KBKI_TENSORS(dropout_bwd, 2, kbki_map1_tensors(s, t), t[0].name = "dy", t[1].name = "dx")
KBKI_MAP_FORMULAS(dropout_fwd, kbki_map1_tensors, n, 2 * n * elem)
KBKI_FORMULAS(dropout_bwd, s->rows * s->cols, n, 2 * n * elem)

KBK_FN KBK_HD uint32_t kbki_dropout_threshold(double p) { return (uint32_t)(65536 * p + 0.5); }
KBK_FN KBK_HD float kbki_dropout_scale(uint32_t threshold) {
    return threshold >= 65536 ? 0.0f : 65536.0f / (float)(65536 - threshold);
}
KBK_FN KBK_HD kbk_u4 kbki_dropout_block(uint64_t seed, int64_t i) {
    return kbk_random_block(seed, (uint64_t)i / 8, 0, KBKI_PURPOSE_DROPOUT);
}
// Half h of a Philox block. With a variable index, the compiler would put the block into local memory.
KBK_FN KBK_HD uint32_t kbki_half(kbk_u4 r, int h) {
    uint32_t a = h & 2 ? r.w[1] : r.w[0], b = h & 2 ? r.w[3] : r.w[2], w = h & 4 ? b : a;
    return h & 1 ? w >> 16 : w & 0xFFFFu;
}
KBK_FN KBK_HD int kbk_dropout_keeps(uint64_t seed, double p, int64_t i) {
    return kbki_half(kbki_dropout_block(seed, i), (int)(i & 7)) >= kbki_dropout_threshold(p);
}
KBKI_REF(dropout_fwd) {
    double scale = (double)kbki_dropout_scale(kbki_dropout_threshold(s->p));
    for (int64_t i = u0; i < u1; i++)
        out[0][i - u0] = kbk_dropout_keeps(s->seed, s->p, i) ? kbk_round_value(KBK_F32, in[0][i] * scale) : 0;
}
KBKI_REF(dropout_bwd) { kbk_dropout_fwd_ref(s, elem, in, out, u0, u1); }

#ifdef __CUDACC__
template <class T>
__device__ __forceinline__ void kbki_dropout_one(const T* x, T* y, int64_t i, uint64_t seed, uint32_t threshold,
                                                 float scale) {
    bool keep = kbki_half(kbki_dropout_block(seed, i), (int)(i & 7)) >= threshold;
    y[i] = kbki_type<T>::from(keep ? kbki_float(x[i]) * scale : 0.0f);
}

// Rung 1: one Philox call per element.
template <class T>
__global__ void kbki_dropout_naive_k(const T* x, T* y, int64_t n, uint64_t seed, uint32_t threshold, float scale) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) kbki_dropout_one(x, y, i, seed, threshold, scale);
}

// ---- The kernels that add one idea each end here.

// A vector of 16-bit elements uses all eight halves of a Philox block, a vector of f32 four of them.
template <class T, int U>
__global__ void __launch_bounds__(KBKI_MAP_TH)
    kbki_dropout_packs_k(const T* x, T* y, int64_t n, uint64_t seed, uint32_t threshold, float scale) {
    constexpr int Width = KBKI_WIDTH(T);
    kbki_pack<T, Width> v[U];
    int64_t first = (int64_t)blockIdx.x * (KBKI_MAP_TH * U) + threadIdx.x, packs = n / Width;
#pragma unroll
    for (int u = 0; u < U; u++)
        if (first + u * KBKI_MAP_TH < packs) v[u].load(x + (first + u * KBKI_MAP_TH) * Width);
#pragma unroll
    for (int u = 0; u < U; u++) {
        int64_t i = (first + u * KBKI_MAP_TH) * Width;
        if (first + u * KBKI_MAP_TH >= packs) continue;
        kbk_u4 r = kbki_dropout_block(seed, i);
        // first half that this vector uses
        int from = Width == 8 ? 0 : (int)(i & 7);
        float f[Width];
        v[u].get(f);
#pragma unroll
        for (int j = 0; j < Width; j++) f[j] = kbki_half(r, from + j) >= threshold ? f[j] * scale : 0.0f;
        v[u].set(f);
        v[u].store(y + i);
    }
    int64_t rest = packs * Width + threadIdx.x;
    if (blockIdx.x == 0 && rest < n) kbki_dropout_one(x, y, rest, seed, threshold, scale);
}

template <class T> using kbki_dropout_kernel = void (*)(const T*, T*, int64_t, uint64_t, uint32_t, float);
// The naive kernel runs for unaligned addresses: a vector would need numbers from two Philox blocks.
template <class T>
const char* kbki_dropout(const kbk_args* a, kbk_stream st, kbki_dropout_kernel<T> kernel, int vectors) {
    kbki_map_io<T> io;
    const char* why = kbki_map_args(a, 1, &io);
    if (!why && !(a->s.p >= 0 && a->s.p <= 1)) return "p is not between 0 and 1";
    if (why || io.n == 0) return why;
    const bool wide = vectors > 0 && kbki_aligned(io.a, 16) && kbki_aligned(io.y, 16);
    const int threads = wide ? KBKI_MAP_TH : 256;
    const int64_t ctas = kbki_ceil(io.n, wide ? threads * vectors * KBKI_WIDTH(T) : threads);
    const uint32_t threshold = kbki_dropout_threshold(a->s.p);
    if (!wide) kernel = kbki_dropout_naive_k<T>;
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    kernel<<<(unsigned)ctas, threads, 0, st>>>(io.a, io.y, io.n, a->s.seed, threshold, kbki_dropout_scale(threshold));
    return kbki_launched();
}
template <class T> const char* kbki_dropout_naive(const kbk_args* a, kbk_stream st) {
    return kbki_dropout<T>(a, st, NULL, 0);
}
template <class T, int U> const char* kbki_dropout_packs(const kbk_args* a, kbk_stream st) {
    return kbki_dropout<T>(a, st, kbki_dropout_packs_k<T, U>, U);
}

KBKI_LAUNCHER(kbk_dropout_fwd_naive, kbki_dropout_naive<T>)
KBKI_LAUNCHER(kbk_dropout_fwd_vec, kbki_dropout_packs<T, 1>)
KBKI_LAUNCHER(kbk_dropout_fwd_unroll, kbki_dropout_packs<T, 2>)
KBKI_LAUNCHER(kbk_dropout_bwd_naive, kbki_dropout_naive<T>)
KBKI_LAUNCHER(kbk_dropout_bwd_vec, kbki_dropout_packs<T, 1>)
KBKI_LAUNCHER(kbk_dropout_bwd_unroll, kbki_dropout_packs<T, 2>)
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>rows     Functions that row operations share: prefetching of rows, clusters, column sums by many CTAs.
-----------------------------------------------------------------*/

/*  Column sums by many CTAs. Each CTA stores one partial sum for each of `width` columns, and increments a counter
    (kbki_last_cta). One SM reads only about 100 GB/s from L2, so the addition is hierarchical: the last CTA of
    each group of 16 adds the sums of its group, and the CTA that finishes its group last adds all groups' sums. */
#define KBKI_PART_GROUP 16
// at most 320 CTAs: 20 groups of 16, which need 21 counters
KBK_FN int64_t kbki_part_ctas(int64_t width) {
    int64_t n = ((int64_t)8 << 20) / (width > 0 ? width : 1);
    return n < KBKI_PART_GROUP ? KBKI_PART_GROUP : n > 320 ? 320 : n;
}
KBK_FN size_t kbki_part_bytes(int64_t width) {
    int64_t n = kbki_part_ctas(width);
    return KBK_TICKETS + (size_t)(n + (n + KBKI_PART_GROUP - 1) / KBKI_PART_GROUP) * (size_t)width * 4;
}
#ifdef __CUDACC__

// Copies one 16-byte vector to shared memory by cp.async, to prefetch rows. Each thread later reads only the
// vectors that it has copied, so no barrier is needed. Copies in flight take no registers.
__device__ __forceinline__ void kbki_ahead(uint4* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    // The conversion to a global address is not necessary, but all loops were timed with it.
    kbki_ahead_copy(kbki_shared(to), (const void*)__cvta_generic_to_global(from));
#else
    *to = __ldcs(reinterpret_cast<const uint4*>(from));
#endif
}
// Threads of a CTA, and rows that it processes at once, if `threads` threads process a row. For short rows, a CTA
// has four warps.
#define KBKI_CTA(threads) ((threads) <= 32 ? 128 : (threads))
#define KBKI_ROWS(threads) (KBKI_CTA(threads) / (threads))
// Blocked summation in one thread: a running sum of 100 000 terms loses about two digits. Squares of 16-bit numbers
// have a relative error of -1e-7 in blocks of 128, and of -5e-7 in blocks of 256, because last bits are 0.
struct kbki_long_sum {
    float sum = 0, block = 0;
    int n = 0;
    __device__ __forceinline__ void add(float x) {
        block += x;
        if (++n == 128) sum += block, block = 0, n = 0;
    }
    __device__ __forceinline__ float get() const { return sum + block; }
};

/*  kbki_group_all is kbki_all for groups of threads, each with a named barrier. Barrier numbers are constants:
    with variables, each CTA would reserve all 16 barriers, and an SM could hold only a few CTAs. */
template <int Threads, int Groups, int Index = 0> __device__ __forceinline__ void kbki_group_barrier(int group) {
    if constexpr (Groups == 1) {
        __syncthreads();
    } else if constexpr (Index < Groups) {
        if (group == Index)
            kbki_barrier<Threads>(1 + Index);
        else
            kbki_group_barrier<Threads, Groups, Index + 1>(group);
    }
}
template <class Reduce, int Threads, int Groups = 1>
__device__ __forceinline__ typename Reduce::type kbki_group_all(typename Reduce::type v,
                                                                typename Reduce::type* slots) {
    constexpr int warps = Threads / 32;
    v = kbki_warp_all<Reduce, KBKI_LANES(Threads)>(v);
    if constexpr (warps > 1) {
        if (threadIdx.x % 32 == 0) slots[threadIdx.x % Threads / 32] = v;
        kbki_group_barrier<Threads, Groups>((int)threadIdx.x / Threads);
        v = kbki_warp_all<Reduce, warps>(slots[threadIdx.x % warps]);
    }
    return v;
}

// For a CTA of any number of warps. slots: 32 values in shared memory; each reduction needs its own array.
template <class Reduce>
__device__ __forceinline__ typename Reduce::type kbki_threads_all(typename Reduce::type v,
                                                                  typename Reduce::type* slots) {
    const int lane = threadIdx.x % 32;
    v = kbki_warp_all<Reduce>(v);
    if (lane == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    return kbki_warp_all<Reduce>(lane < blockDim.x / 32 ? slots[lane] : Reduce::none());
}
// Pair of a row from the pairs of its warps, which all their threads pass. A barrier must separate two calls with
// the same `slots`.
template <int Threads> __device__ __forceinline__ kbki_pair kbki_warps_pair(kbki_pair p, kbki_pair* slots) {
    constexpr int warps = Threads < 32 ? 1 : Threads / 32;
    if (warps == 1) return p;
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = p;
    __syncthreads();
    p = slots[threadIdx.x % warps];
    float m = kbki_warp_all<kbki_max, warps>(p.m);
    p.s *= kbki_rebase(p.m, kbki_base(m));
    return { m, kbki_warp_all<kbki_sum<float>, warps>(p.s) };
}

// pair of a row from the pairs of its threads
template <int Threads> __device__ __forceinline__ kbki_pair kbki_threads_pair(kbki_pair p, kbki_pair* slots) {
    const float m = kbki_warp_all<kbki_max, KBKI_LANES(Threads)>(p.m);
    p.s *= kbki_rebase(p.m, kbki_base(m));
    return kbki_warps_pair<Threads>({ m, kbki_warp_all<kbki_sum<float>, KBKI_LANES(Threads)>(p.s) }, slots);
}

/*  Prevents ptxas from keeping the floats of a vector in registers between two passes; pack.forget() prevents only
    the compiler. The XOR changes nothing, because gridDim.z is below 65536. */
template <class T, int Width> __device__ __forceinline__ void kbki_reread(kbki_pack<T, Width>& v) {
    v.forget();
    if constexpr (sizeof(T) == 2 && Width > 1) {
        unsigned zero = gridDim.z >> 16;
        v.q.x ^= zero, v.q.y ^= zero, v.q.z ^= zero, v.q.w ^= zero;
    }
}

// Writes v, a value of the calling warp, to `to` in the shared memory of every CTA of the cluster.
template <class Value> __device__ __forceinline__ void kbki_cluster_store(Value* to, Value v) {
#if __CUDA_ARCH__ >= 900
    uint32_t words[sizeof(Value) / 4];
    memcpy(words, &v, sizeof v);
    if (threadIdx.x % 32 >= kbki_cluster_size()) return;
    const uint32_t at = kbki_cluster_at(kbki_shared(to), threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < (int)(sizeof(Value) / 4); i++)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at + 4 * i), "r"(words[i]) : "memory");
#endif
}
#define KBKI_CLUSTER 8 // largest cluster size that every GPU with clusters supports

// *ctas: number of CTAs that can be resident at once, at most `most`; 0 if an SM has too little shared memory
KBK_FN const char* kbki_resident(const void* kernel, int threads, size_t shared, int64_t most, unsigned* ctas) {
    int per_sm = 0;
    const char* why = kbki_want_shared(kernel, &shared);
    *ctas = 0;
    if (why || !shared) return why;
    cudaError_t e = kbki_once(kernel, KBKI_CTAS, 0, threads, shared, &per_sm, [&](int* to) {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(to, kernel, threads, shared);
    });
    if (e != cudaSuccess) return kbki_error(e);
    int64_t n = (int64_t)per_sm * kbki_sms();
    *ctas = (unsigned)(n < most ? n : most);
    return NULL;
}
// *n: number of clusters that can be resident at once
KBK_FN cudaError_t kbki_clusters(const void* kernel, const cudaLaunchConfig_t* cfg, int* n) {
    return kbki_once(kernel, KBKI_CLUSTERS, (int)cfg->gridDim.x, (int)cfg->blockDim.x, cfg->dynamicSmemBytes, n,
                     [&](int* to) { return cudaOccupancyMaxActiveClusters(to, kernel, cfg); });
}
template <class Kernel>
__forceinline__ cudaError_t kbki_clusters(Kernel* kernel, const cudaLaunchConfig_t* cfg, int* n) {
    return kbki_clusters((const void*)kernel, cfg, n);
}
// threads, a multiple of 32, if a thread processes up to `each` vectors
KBK_FN int64_t kbki_threads(int64_t packs, int64_t each) { return 32 * kbki_ceil(packs, 32 * each); }
// Elements per thread if one CTA processes a row: 8 or 16 if all rows can be resident at the same time, so that
// more threads share a row; otherwise 32.
KBK_FN int64_t kbki_row_elements(int64_t rows, int64_t cols) {
    for (int64_t each = 8; each < 32; each *= 2)
        if (kbki_threads(cols, each) <= 1024 && rows * kbki_threads(cols, each) <= 1024 * kbki_sms()) return each;
    return 32;
}
template <class T> bool kbki_whole_packs(const void* p, const void* q, int64_t cols) {
    return cols % KBKI_WIDTH(T) == 0 && kbki_aligned(p, 16) && kbki_aligned(q, 16);
}
// Clusters of `size` CTAs. in_turn: the kernel is persistent, with at most as many clusters as can be resident at
// once; otherwise, there is one cluster per row.
KBK_FN const char* kbki_launch_clusters(const void* kernel, int size, int threads, size_t shared, int64_t rows,
                                        bool in_turn, kbk_stream st, void** args) {
    int n = 0;
    const size_t bytes = shared;
    const char* why = kbki_needs(90);
    if (!why) why = kbki_want_shared(kernel, &shared);
    if (why || (bytes && !shared)) return why ? why : "this device has too little shared memory per CTA";
    cudaLaunchConfig_t cfg = {};
    cudaLaunchAttribute attr = {};
    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim.x = (unsigned)size, attr.val.clusterDim.y = attr.val.clusterDim.z = 1;
    cfg.gridDim = dim3((unsigned)size), cfg.blockDim = dim3((unsigned)threads), cfg.dynamicSmemBytes = shared;
    cfg.stream = st, cfg.attrs = &attr, cfg.numAttrs = 1;
    cudaError_t e = kbki_clusters(kernel, &cfg, &n);
    if (e == cudaSuccess && n < 1) return "the device cannot run a cluster of this size";
    if (!in_turn && !kbki_grid_ok(rows * size)) return KBKI_TEXT_GRID;
    cfg.gridDim = dim3((unsigned)(in_turn && n < rows ? n : rows) * (unsigned)size);
    if (e == cudaSuccess) e = cudaLaunchKernelExC(&cfg, kernel, args);
    return e == cudaSuccess ? kbki_launched() : kbki_error(e);
}
template <class... Params>
__forceinline__ const char* kbki_launch_clusters(void (*kernel)(Params...), int size, int threads, size_t shared,
                                                 int64_t rows, bool in_turn, kbk_stream st,
                                                 typename kbki_same<Params>::type... args) {
    void* where[] = { (void*)&args... };
    return kbki_launch_clusters((const void*)kernel, size, threads, shared, rows, in_turn, st, where);
}
#define KBKI_CLUSTER_PACKS (KBKI_CLUSTER * 4096) // longest row that is split over a cluster, in 16-byte vectors

// --- column sums
__device__ __forceinline__ float kbki_part_sum(const float* part, unsigned n, int64_t width, int64_t c) {
    float sum = 0;
    part += c;
#pragma unroll 4
    for (unsigned i = 0; i < n; i++, part += width) sum += __ldcg(part);
    return sum;
}
// put(column, sum) is called for all columns; four columns are read at a time if width is a multiple of 4.
template <class Put>
__device__ __forceinline__ void kbki_part_sums(const float* part, unsigned n, int64_t width, Put put) {
    if (width % 4) {
        for (int64_t c = threadIdx.x; c < width; c += blockDim.x) put(c, kbki_part_sum(part, n, width, c));
        return;
    }
    for (int64_t c = threadIdx.x * 4; c < width; c += blockDim.x * 4) {
        float4 s = make_float4(0, 0, 0, 0);
        const float* p = part + c;
#pragma unroll 8
        for (unsigned i = 0; i < n; i++, p += width) {
            float4 v = __ldcg(reinterpret_cast<const float4*>(p));
            s.x += v.x, s.y += v.y, s.z += v.z, s.w += v.w;
        }
        put(c, s.x), put(c + 1, s.y), put(c + 2, s.z), put(c + 3, s.w);
    }
}
// All threads of all CTAs call this function when the sums of their CTA are in row blockIdx.x of `part`, which
// CTAs with equal blockIdx.x share. put(column, sum) is called once per column.
template <class Put>
__device__ __forceinline__ void kbki_part_finish(float* part, unsigned* counters, int64_t width, Put put) {
    unsigned group = blockIdx.x / KBKI_PART_GROUP, first = group * KBKI_PART_GROUP;
    unsigned groups = (gridDim.x + KBKI_PART_GROUP - 1) / KBKI_PART_GROUP;
    unsigned members = gridDim.x - first < KBKI_PART_GROUP ? gridDim.x - first : KBKI_PART_GROUP;
    if (!kbki_last_cta(counters + 1 + group, members * gridDim.y)) return;
    float* sums = part + gridDim.x * width;
    kbki_part_sums(part + first * width, members, width,
                   [&](int64_t c, float sum) { sums[group * width + c] = sum; });
    if (kbki_last_cta(counters, groups)) kbki_part_sums(sums, groups, width, put);
}

// If Two is true, columns from `cols` on belong to z.
template <bool Two, class T>
__device__ __forceinline__ void kbki_put_sum(T* y, T* z, int64_t cols, int64_t c, float sum) {
    (!Two || c < cols ? y + c : z + c - cols)[0] = kbki_type<T>::from(sum);
}
/*  Adds the partial sums in a separate kernel, because a single SM would be too slow for many columns. A CTA
    processes 32 columns, a thread four. 64 threads share a column, so that the few loads of each can all be in
    flight. part: n rows of `width` sums; width, a multiple of 4, is cols or, with a second result z, 2 * cols. */
template <class T>
__global__ void __launch_bounds__(512)
    kbki_part_add_k(const float* part, T* y, T* z, unsigned n, int64_t width, int64_t cols) {
    __shared__ float4 tile[16][8];
    constexpr int U = 4;
    int x = threadIdx.x % 8;
    int64_t c = (int64_t)blockIdx.x * 32 + x * 4;
    float4 sum = make_float4(0, 0, 0, 0), v[U];
    kbki_follow_wait();
    for (unsigned i = threadIdx.x / 8; i < n; i += 64 * U) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            v[u] = make_float4(0, 0, 0, 0);
            if (c < width && i + u * 64 < n)
                v[u] = __ldcg(reinterpret_cast<const float4*>(part + (i + u * 64) * width + c));
        }
#pragma unroll
        for (int u = 0; u < U; u++) sum.x += v[u].x, sum.y += v[u].y, sum.z += v[u].z, sum.w += v[u].w;
    }
#pragma unroll
    for (int d = 8; d < 32; d *= 2) {
        sum.x += __shfl_xor_sync(~0u, sum.x, d), sum.y += __shfl_xor_sync(~0u, sum.y, d);
        sum.z += __shfl_xor_sync(~0u, sum.z, d), sum.w += __shfl_xor_sync(~0u, sum.w, d);
    }
    if (threadIdx.x % 32 < 8) tile[threadIdx.x / 32][x] = sum;
    __syncthreads();
    c = (int64_t)blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.x >= 32 || c >= width) return;
    const float* column = &tile[0][0].x + threadIdx.x;
    float all = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) all += column[i * 32];
    kbki_put_sum<true>(y, z, cols, c, all);
}

/*  Column sums of term(row, column); all threads of all CTAs of 1024 threads call this function, which calls
    put(column, sum). If Two is true, term returns two values; sums of second values follow as columns from `cols`
    on. A CTA processes a block of 32 rows and 32 columns at a time. */
template <bool Two, class Term, class Put>
__device__ __forceinline__ void kbki_columns(float* part, unsigned* counters, int64_t rows, int64_t cols,
                                             Term term, Put put) {
    __shared__ float2 tile[32][33];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    int64_t width = Two ? 2 * cols : cols;
    kbki_follow_wait();
    for (int64_t c0 = (int64_t)blockIdx.y * 32; c0 < cols; c0 += (int64_t)gridDim.y * 32) {
        float2 s = make_float2(0, 0);
        for (int64_t r = (int64_t)blockIdx.x * 32 + y; c0 + x < cols && r < rows; r += gridDim.x * 32) {
            float2 v = term(r, c0 + x);
            s.x += v.x, s.y += v.y;
        }
        tile[y][x] = s;
        __syncthreads();
        s = kbki_warp_all<kbki_sum2>(tile[x][y]);
        if (x == 0 && c0 + y < cols) {
            part[blockIdx.x * width + c0 + y] = s.x;
            if (Two) part[blockIdx.x * width + cols + c0 + y] = s.y;
        }
        __syncthreads();
    }
    kbki_part_finish(part, counters, width, put);
}
// Grid of a kernel that calls kbki_columns. width: number of column sums.
KBK_FN dim3 kbki_columns_grid(int64_t rows, int64_t cols, int64_t width) {
    int64_t y = kbki_ceil(cols, 32), x = kbki_ceil(2 * kbki_sms(), y), most = kbki_ceil(rows, 32);
    if (y > 65535) y = 65535;
    if (x > most) x = most;
    if (x > kbki_part_ctas(width)) x = kbki_part_ctas(width);
    return dim3((unsigned)x, (unsigned)y);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>softmax     Softmax over the last axis: from three reads of a row to one.
-----------------------------------------------------------------*/

/*  softmax fwd ----------------------------------------------------------------------------------------------
    y[r,c] = exp(x[r,c] - m[r]) / sum_c exp(x[r,c] - m[r])     m[r] = max_c x[r,c]     x, y: R x C
    flops  5*R*C + R    max 1, subtract 1, exp 1, sum 1, scale 1 per element; one reciprocal per row
    bytes  2*R*C*s
    check  norm-wise f32 4e-6, f16 3e-4, bf16 2.5e-3; 96 ulp of the row scale in f32, 2 ulp at 16 bits. If
           32768 normal numbers are summed in order, the error is up to 8e-6; naive adds blocks of 128: 8e-7
    1 naive    thread per row                        <- slow: not coalesced (neighbouring threads read C elements
                                                        apart); three reads
    2 block    CTA per row, tree in shared memory    <- coalesced; still three reads, and 20 barriers
    3 online   online softmax, CTA per row           <- two reads and one reduction: one pass finds maximum and sum
                                                        (Milakov & Gimelshein 2018). No gain for rows of 16 KiB:
                                                        presumably L1 serves the third read of block, and online
                                                        needs more arithmetic (DRAM 74 % instead of 78 %)
    4 onepass  16-byte accesses; the row stays in registers; one barrier per row
                                                     <- one read, up to 32768 elements; longer rows as shared
    5 shared   row in shared memory, up to 226 KiB   <- longer rows with one read: a thread needs registers for one
                                                        vector only. Slower where registers suffice: 1212 k bank
                                                        conflicts instead of 20 k, and each exponential twice
    6 cluster  row split over 2, 4 or 8 CTAs; they exchange (max, sum) pairs through distributed shared memory
                                                     <- one read, up to 512 KiB per row. Slower for rows of 16 KiB:
                                                        all CTAs of a cluster wait for each other (DRAM 75 %)
    bound by   memory: compare with bytes / copy bandwidth. If all numbers of a row are -inf, the result is NaN,
               as in the formula. If they are equal and finite, it is 1/C, even for -1e30 or the largest float. If
               x and y have different alignments modulo 16 bytes, they are read element by element
    predict    before you run it: block reads a row three times, online twice. By what factor does DRAM traffic fall
               for rows of 16 KiB, and for rows of 512 KiB? (--counters shows it)
    see        Milakov & Gimelshein 2018, "Online normalizer calculation for softmax" */
/*  measured softmax fwd: f32 8192 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.625 FLOP/B; floor on an H200 62.8 us = 268.4 MB / 4.276 TB/s; on this GPU 88.0 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
    1 naive    1484 us   7 %      -   31  6 % 11 %         0  thread per row, three uncoalesced passes
    2 block    97.2 us 100 % 15.3 x   31 89 % 78 %      56 k  CTA per row, shared-memory tree, three reads
    3 online  105.6 us  92 % 0.92 x   26 88 % 74 %      35 k  online softmax: two reads, one reduction
    4 onepass  84.1 us 116 % 1.25 x   48 59 % 88 %      20 k  16-byte loads, row in registers, one read
    5 shared   89.7 us 109 % 0.94 x   31 95 % 83 %    1212 k  row in shared memory: longer rows, one read
    6 cluster  99.3 us  98 % 0.90 x   26 94 % 75 %     151 k  row split over a cluster, up to 512 KiB
    end of measured */
KBKI_TENSORS(softmax_fwd, 2, t[0] = kbki_in("x", n, cols), t[1] = kbki_out("y", KBK_T, n, cols, 0))
KBKI_FORMULAS(softmax_fwd, s->cols ? s->rows : 0, 5 * n + rows, 2 * n * elem)
KBKI_REF(softmax_fwd) {
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
    float top = -INFINITY;
    kbki_long_sum sum;
    for (int64_t c = 0; c < cols; c++) top = fmaxf(top, kbki_float(x[c]));
    for (int64_t c = 0; c < cols; c++) sum.add(expf(kbki_float(x[c]) - top));
    for (int64_t c = 0; c < cols; c++) y[c] = kbki_type<T>::from(expf(kbki_float(x[c]) - top) / sum.get());
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
    for (int64_t c = threadIdx.x; c < cols; c += 256) y[c] = kbki_type<T>::from(expf(kbki_float(x[c]) - top) / sum);
}

template <class T>
__global__ void __launch_bounds__(256) kbk_softmax_fwd_online_k(const T* x, T* y, int64_t rows, int64_t cols) {
    __shared__ kbki_pair s[256];
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    kbki_pair p = kbki_pair::none();
    for (int64_t c = threadIdx.x; c < cols; c += 256) p.add(kbki_float(x[c]));
    p = kbki_tree<kbki_pair, 256>(p, s);
    const kbki_base base(p.m);
    for (int64_t c = threadIdx.x; c < cols; c += 256)
        y[c] = kbki_type<T>::from(kbki_exp_from(kbki_float(x[c]), base) / p.s);
}

// pair of a row from the pairs of its `count` warps
__device__ __forceinline__ kbki_pair kbki_join_pairs(const kbki_pair* slots, int count) {
    float top = -INFINITY, sum = 0;
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < count; i += 32) top = fmaxf(top, slots[i].m);
    top = kbki_warp_all<kbki_max>(top);
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < count; i += 32) sum += slots[i].s * kbki_rebase(slots[i].m, kbki_base(top));
    return { top, kbki_warp_all<kbki_sum<float>>(sum) };
}

/*  Lanes: number of threads per row; 0 means one CTA per row. Exponentials are relative to the maximum of the
    warp, so that one barrier is enough for maximum and sum. If all elements are -inf, 0 * (1 / 0) gives NaN, as
    does the formula. exp(x - (max + log(sum))) would save the multiplication by 1 / sum, but the rounding error of
    max + log(sum) would be too large for f16 logits of 6000 and more. */
template <class T, int Packs, int Lanes>
__global__ void __launch_bounds__(Lanes ? 128 : 1024)
    kbk_softmax_fwd_onepass_k(const T* x, T* y, int64_t rows, int64_t cols) {
    __shared__ kbki_pair slots[32];
    constexpr int Width = KBKI_WIDTH(T), Group = Lanes ? Lanes : 32;
    const int threads = Lanes ? Lanes : blockDim.x, t = Lanes ? threadIdx.x % Group : threadIdx.x;
    const int64_t row = Lanes ? ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / Group : blockIdx.x;
    const int packs = row < rows ? (int)(cols / Width) : 0;
    kbki_pack<T, Width> v[Packs];
    float f[Packs][Width], top = -INFINITY, sum = 0;
    x += row * cols, y += row * cols;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].fill(kbki_type<T>::minus_inf);
        if (t + u * threads < packs) v[u].load(x + (t + u * threads) * Width);
    }
#pragma unroll
    for (int u = 0; u < Packs; u++) top = fmaxf(top, kbki_max_of(v[u]));
    top = kbki_warp_all<kbki_max, Group>(top);
    const kbki_base base(top);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].get(f[u]);
#pragma unroll
        for (int k = 0; k < Width; k++) f[u][k] = kbki_exp_from(f[u][k], base), sum += f[u][k];
    }
    kbki_pair all = { top, kbki_warp_all<kbki_sum<float>, Group>(sum) };
    if (!Lanes) {
        if (t % 32 == 0) slots[t / 32] = all;
        __syncthreads();
        all = kbki_join_pairs(slots, threads / 32);
    }
    const float factor = kbki_rebase(top, kbki_base(all.m)) * (1.0f / all.s);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
#pragma unroll
        for (int k = 0; k < Width; k++) f[u][k] *= factor;
        v[u].set(f[u]);
        if (t + u * threads < packs) v[u].store(y + (t + u * threads) * Width);
    }
}

/*  The copy has the row's alignment modulo 16 bytes, so that both are split into vectors in the same way. Each
    thread reads only the vectors that it has copied, so no barrier is needed. */
template <class T, int Width>
__global__ void __launch_bounds__(512, 2) kbk_softmax_fwd_shared_k(const T* x, T* y, int64_t rows, int64_t cols) {
    extern __shared__ uint4 kbki_row[];
    __shared__ kbki_pair slots[32];
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    const kbki_span sp = kbki_split<T, Width>(x, cols);
    const int t = threadIdx.x, threads = blockDim.x, packs = (int)sp.packs, one = (int)kbki_single(sp, cols, t);
    T* copy = reinterpret_cast<T*>(kbki_row) + ((uintptr_t)x & 15) / sizeof(T) + sp.head;
    kbki_pack<T, Width> v;
    float f[Width], edge = one >= 0 ? kbki_float(x[one]) : -INFINITY, top = edge;
#pragma unroll 4
    for (int i = t; i < packs; i += threads) {
        v.load(x + sp.head + i * Width);
        v.store_cached(copy + i * Width);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) top = fmaxf(top, f[k]);
    }
    top = kbki_warp_all<kbki_max>(top);
    const kbki_base base(top);
    float sum = kbki_exp_from(edge, base);
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v = *reinterpret_cast<kbki_pack<T, Width>*>(copy + i * Width);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) sum += kbki_exp_from(f[k], base);
    }
    sum = kbki_warp_all<kbki_sum<float>>(sum);
    if (t % 32 == 0) slots[t / 32] = { top, sum };
    __syncthreads();
    const kbki_pair all = kbki_join_pairs(slots, threads / 32);
    const kbki_base from(all.m);
    const float factor = 1.0f / all.s;
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v = *reinterpret_cast<kbki_pack<T, Width>*>(copy + i * Width);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = kbki_exp_from(f[k], from) * factor;
        v.set(f);
        v.store(y + sp.head + i * Width);
    }
    if (one >= 0) y[one] = kbki_type<T>::from(kbki_exp_from(edge, from) * factor);
}

// Every warp writes its (max, sum) pair to all CTAs of the cluster. Rows must be aligned to 16 bytes.
template <class T>
__global__ void __launch_bounds__(512, 2) kbk_softmax_fwd_cluster_k(const T* x, T* y, int64_t rows, int64_t cols) {
    extern __shared__ uint4 kbki_row[];
    __shared__ kbki_pair slots[KBKI_CLUSTER * 32];
    constexpr int Width = KBKI_WIDTH(T);
    const int t = threadIdx.x, threads = blockDim.x, size = (int)kbki_cluster_size(), rank = (int)kbki_cluster_rank();
    const int share = ((int)(cols / Width) + size - 1) / size, packs = min(share, (int)(cols / Width) - rank * share);
    x += blockIdx.x / size * cols + rank * share * Width, y += blockIdx.x / size * cols + rank * share * Width;
    kbki_pack<T, Width> v;
    float f[Width], top = -INFINITY, sum = 0;
    kbki_cluster_begin();
#pragma unroll 4
    for (int i = t; i < packs; i += threads) {
        v.load(x + i * Width);
        kbki_row[i] = v.q;
        top = fmaxf(top, kbki_max_of(v));
    }
    top = kbki_warp_all<kbki_max>(top);
    const kbki_base base(top);
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v.q = kbki_row[i];
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) sum += kbki_exp_from(f[k], base);
    }
    sum = kbki_warp_all<kbki_sum<float>>(sum);
    kbki_cluster_begun(); // all CTAs of the cluster have started, so that their shared memory may be written
    kbki_cluster_store(slots + rank * (threads / 32) + t / 32, kbki_pair{ top, sum });
    kbki_cluster_barrier();
    const kbki_pair all = kbki_join_pairs(slots, size * (threads / 32));
    const kbki_base from(all.m);
    const float factor = 1.0f / all.s;
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v.q = kbki_row[i];
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = kbki_exp_from(f[k], from) * factor;
        v.set(f);
        v.store(y + i * Width);
    }
}

// ---- The kernels that add one idea each end here. kbki_softmax_fwd_long_k processes longer rows.

// The second read runs backwards, because the end of the row is still in the L2 cache.
template <class T, int Width>
__global__ void __launch_bounds__(512) kbki_softmax_fwd_long_k(const T* x, T* y, int64_t rows, int64_t cols) {
    __shared__ kbki_pair slots[32];
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    int t = threadIdx.x;
    kbki_span sp = kbki_split<T, Width>(x, cols);
    kbki_pair p = kbki_all<kbki_pair, 512>(kbki_row_pair<T, Width, 4>(x, cols, t, 512), slots);
    const kbki_base base(p.m);
    const float inv = 1.0f / p.s;
    int64_t one = kbki_single(sp, cols, t);
    if (one >= 0) y[one] = kbki_type<T>::from(kbki_exp_from(kbki_float(x[one]), base) * inv);
#pragma unroll 4
    for (int64_t i = sp.packs - 1 - t; i >= 0; i -= 512) {
        kbki_pack<T, Width> v;
        float f[Width];
        v.load(x + sp.head + i * Width);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = kbki_exp_from(f[k], base) * inv;
        v.set(f);
        v.store(y + sp.head + i * Width);
    }
}

template <class T> using kbki_softmax_kernel = void(const T* x, T* y, int64_t rows, int64_t cols);
template <class T>
const char* kbki_softmax_plain(const kbk_args* a, kbk_stream st, kbki_softmax_kernel<T>* kernel, int64_t rows_per_cta,
                               int64_t threads, size_t bytes = 0) {
    const T* x = (const T*)a->in[0];
    T* y = (T*)a->out[0];
    const char* why = kbki_check_dims(&a->s);
    if (!kbki_aligned(x, sizeof(T)) || !kbki_aligned(y, sizeof(T))) return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(kbki_ceil(a->s.rows, rows_per_cta))) return KBKI_TEXT_GRID;
    if (why || a->s.rows * a->s.cols == 0) return why;
    kernel<<<(unsigned)kbki_ceil(a->s.rows, rows_per_cta), (unsigned)threads, bytes, st>>>(x, y, a->s.rows,
                                                                                           a->s.cols);
    return kbki_launched();
}
template <class T> const char* kbk_softmax_fwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_naive_k<T>, 128, 128);
}
template <class T> const char* kbk_softmax_fwd_block(const kbk_args* a, kbk_stream st) {
    return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_block_k<T>, 1, 256);
}
template <class T> const char* kbk_softmax_fwd_online(const kbk_args* a, kbk_stream st) {
    return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_online_k<T>, 1, 256);
}
template <class T> const char* kbk_softmax_fwd_shared(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    const bool vector = kbki_congruent(a->in[0], a->out[0]);
    kbki_softmax_kernel<T>* kernel = vector ? kbk_softmax_fwd_shared_k<T, Width> : kbk_softmax_fwd_shared_k<T, 1>;
    size_t bytes = (size_t)a->s.cols * sizeof(T) + 16;
    const char* why = kbki_want_shared(kernel, &bytes);
    if (why) return why;
    if (!bytes) kernel = vector ? kbki_softmax_fwd_long_k<T, Width> : kbki_softmax_fwd_long_k<T, 1>;
    const int64_t threads = kbki_threads(a->s.cols, vector ? 2 * Width : 4);
    return kbki_softmax_plain<T>(a, st, kernel, 1, !bytes || threads > 512 ? 512 : threads, bytes);
}
template <class T> const char* kbk_softmax_fwd_onepass(const kbk_args* a, kbk_stream st) {
    // 16-byte vectors per thread if a thread has 8, 16 or 32 elements
    constexpr int Width = KBKI_WIDTH(T), per8 = 8 / Width, per16 = 16 / Width, per32 = 32 / Width;
    const int64_t cols = a->s.cols, each = kbki_row_elements(a->s.rows, cols), threads = kbki_threads(cols, each);
    if (!kbki_whole_packs<T>(a->in[0], a->out[0], cols) || threads > 1024) return kbk_softmax_fwd_shared<T>(a, st);
    if (cols <= 8 * Width) return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_onepass_k<T, 1, 8>, 16, 128);
    if (cols <= 16 * Width) return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_onepass_k<T, 2, 8>, 16, 128);
    if (cols <= 32 * Width) return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_onepass_k<T, 4, 8>, 16, 128);
    if (each == 32 && cols <= 512) return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_onepass_k<T, per16, 32>, 4, 128);
    if (each == 32 && cols <= 1024)
        return kbki_softmax_plain<T>(a, st, kbk_softmax_fwd_onepass_k<T, per32, 32>, 4, 128);
    return kbki_softmax_plain<T>(a, st,
                                 each == 8    ? kbk_softmax_fwd_onepass_k<T, per8, 0>
                                 : each == 16 ? kbk_softmax_fwd_onepass_k<T, per16, 0>
                                              : kbk_softmax_fwd_onepass_k<T, per32, 0>,
                                 1, threads);
}
template <class T> const char* kbk_softmax_fwd_cluster(const kbk_args* a, kbk_stream st) {
    const T* x = (const T*)a->in[0];
    T* y = (T*)a->out[0];
    const int64_t rows = a->s.rows, cols = a->s.cols, packs = cols / KBKI_WIDTH(T);
    if (rows <= 0 || cols <= 0 || !kbki_whole_packs<T>(x, y, cols) || packs > KBKI_CLUSTER_PACKS)
        return kbk_softmax_fwd_onepass<T>(a, st);
    // the smallest cluster with at most 64 KiB of the row per CTA, or a larger one if there are few rows
    int size = 2;
    while (size < KBKI_CLUSTER && (packs > size * 4096 || rows * size * 2 <= kbki_sms())) size *= 2;
    const int64_t share = kbki_ceil(packs, size), threads = kbki_threads(share, 2);
    return kbki_launch_clusters(kbk_softmax_fwd_cluster_k<T>, size, threads < 512 ? (int)threads : 512,
                                (size_t)share * 16, rows, false, st, x, y, rows, cols);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>softmax_bwd     Softmax, backward: two rows in, one out.
-----------------------------------------------------------------*/

/*  softmax bwd ----------------------------------------------------------------------------------------------
    dx[r,c] = y[r,c] * (dy[r,c] - sum_c dy[r,c] * y[r,c])      dy, y, dx: R x C
    flops  4*R*C     multiply-add 2, subtract 1, scale 1 per element
    bytes  3*R*C*s
    check  norm-wise f32 1e-5, f16 5e-4, bf16 4e-3; in f32 also relative to sum |dy y| (cancellation)
    1 naive    thread per row                        <- slow: not coalesced (neighbouring threads read C elements
                                                        apart); two reads
    2 warp     warp per row, shuffles                <- coalesced; at best, the caches serve the second read
    3 onepass  16-byte accesses, rows in registers   <- one read, up to 64 KiB per row; longer rows take two reads
    4 shared   cp.async copies both rows to shared memory
                                                     <- longer rows, up to 113 KiB, with one read; loads in flight
                                                        take no registers
    5 cluster  rows split over 2, 4 or 8 CTAs; they exchange their sums through distributed shared memory
                                                     <- one read, up to 512 KiB per row
    bound by   memory: compare with bytes / copy bandwidth
    predict    before you run it: what share of a copy's bandwidth is left if a row is read twice, and L2 serves
               none, half, or all of the second read?
    see        Milakov & Gimelshein 2018 for the forward pass; Harris 2007, "Optimizing Parallel Reduction in CUDA" */
/*  measured softmax bwd: f32 8192 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.333 FLOP/B; floor on an H200 94.2 us = 402.7 MB / 4.276 TB/s; on this GPU 132.0 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
    1 naive    1654 us   9 %      -   32  6 % 12 %         0  thread per row, two uncoalesced passes
    2 warp    245.8 us  60 % 6.73 x   31 91 % 80 %         0  warp per row, shuffles, two reads
    3 onepass 126.1 us 118 % 1.95 x   46 59 % 91 %      7810  16-byte loads, rows in registers, one read
    4 shared  126.1 us 118 % 1.00 x   28 71 % 91 %     317 k  both rows in shared memory, by cp.async
    5 cluster 127.3 us 117 % 0.99 x   32 48 % 90 %     610 k  rows split over a cluster, up to 512 KiB
    end of measured */
// y is uniform from 0 to 2 / cols, with the mean of softmax outputs.
KBKI_TENSORS(softmax_bwd, 3, t[0] = kbki_in("dy", n, cols), t[1] = kbki_in("y", n, cols), t[1].fill = KBK_UNIFORM,
             t[1].a = 0, t[1].b = cols ? 2.0 / (double)cols : 0, t[2] = kbki_out("dx", KBK_T, n, cols, 1))
KBKI_FORMULAS(softmax_bwd, s->cols ? s->rows : 0, 4 * n, 3 * n * elem)
KBKI_REF(softmax_bwd) {
    int64_t n = s->cols;
    for (int64_t r = u0; r < u1; r++) {
        const double *dy = in[0] + r * n, *y = in[1] + r * n;
        double dot = 0, size = 0, square = 0;
        for (int64_t c = 0; c < n; c++) {
            dot += dy[c] * y[c];
            if (!kbk_is_nan(dy[c]) && !kbk_is_inf(dy[c])) size += fabs(dy[c] * y[c]);
            square += y[c] * y[c];
        }
        for (int64_t c = 0; out[0] && c < n; c++) out[0][(r - u0) * n + c] = y[c] * (dy[c] - dot);
        if (out[KBK_OUTS]) out[KBK_OUTS][r - u0] = elem == 4 ? size * sqrt(square / (double)n) : 0;
    }
}

#ifdef __CUDACC__
template <class T>
__global__ void kbk_softmax_bwd_naive_k(const T* dy, const T* y, T* dx, int64_t rows, int64_t cols) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    dy += row * cols, y += row * cols, dx += row * cols;
    kbki_long_sum dot;
    for (int64_t c = 0; c < cols; c++) dot.add(kbki_float(dy[c]) * kbki_float(y[c]));
    for (int64_t c = 0; c < cols; c++) dx[c] = kbki_type<T>::from(kbki_float(y[c]) * (kbki_float(dy[c]) - dot.get()));
}

template <class T>
__global__ void __launch_bounds__(128)
    kbk_softmax_bwd_warp_k(const T* dy, const T* y, T* dx, int64_t rows, int64_t cols) {
    const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= rows) return;
    dy += row * cols, y += row * cols, dx += row * cols;
    float dot = 0;
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32) dot += kbki_float(dy[c]) * kbki_float(y[c]);
    dot = kbki_warp_all<kbki_sum<float>>(dot);
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32)
        dx[c] = kbki_type<T>::from(kbki_float(y[c]) * (kbki_float(dy[c]) - dot));
}

// Lanes: number of threads per row; 0 means one CTA per row
template <class T, int Packs, int Lanes>
__global__ void __launch_bounds__(Lanes ? 128 : 1024)
    kbk_softmax_bwd_onepass_k(const T* dy, const T* y, T* dx, int64_t rows, int64_t cols) {
    __shared__ float slots[32];
    constexpr int Width = KBKI_WIDTH(T), Group = Lanes ? Lanes : 32;
    const int threads = Lanes ? Lanes : blockDim.x, t = Lanes ? threadIdx.x % Group : threadIdx.x;
    const int64_t row = Lanes ? ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / Group : blockIdx.x;
    const int packs = row < rows ? (int)(cols / Width) : 0;
    kbki_pack<T, Width> v[Packs], p[Packs];
    float f[Width], g[Width], dot = 0;
    dy += row * cols, y += row * cols, dx += row * cols;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].fill(0), p[u].fill(0);
        if (t + u * threads >= packs) continue;
        v[u].load(dy + (t + u * threads) * Width), p[u].load(y + (t + u * threads) * Width);
    }
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].get(f), p[u].get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) dot = fmaf(f[k], g[k], dot);
        kbki_reread(v[u]), kbki_reread(p[u]);
    }
    dot = Lanes ? kbki_warp_all<kbki_sum<float>, Group>(dot) : kbki_threads_all<kbki_sum<float>>(dot, slots);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].get(f), p[u].get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = g[k] * (f[k] - dot);
        v[u].set(f);
        if (t + u * threads < packs) v[u].store(dx + (t + u * threads) * Width);
    }
}

// Each thread reads only the vectors that it has copied, so no barrier is needed.
template <class T>
__global__ void __launch_bounds__(512, 2)
    kbk_softmax_bwd_shared_k(const T* dy, const T* y, T* dx, int64_t rows, int64_t cols) {
    extern __shared__ uint4 kbki_row[];
    __shared__ float slots[32];
    constexpr int Width = KBKI_WIDTH(T);
    const int t = threadIdx.x, threads = blockDim.x, packs = (int)(cols / Width);
    kbki_pack<T, Width> v, p;
    float f[Width], g[Width], dot = 0;
    dy += blockIdx.x * cols, y += blockIdx.x * cols, dx += blockIdx.x * cols;
#pragma unroll 4
    for (int i = t; i < packs; i += threads)
        kbki_ahead(kbki_row + i, dy + i * Width), kbki_ahead(kbki_row + packs + i, y + i * Width);
    kbki_ahead_close();
    kbki_ahead_wait<0>();
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v.q = kbki_row[i], p.q = kbki_row[packs + i];
        v.get(f), p.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) dot = fmaf(f[k], g[k], dot);
    }
    dot = kbki_threads_all<kbki_sum<float>>(dot, slots);
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v.q = kbki_row[i], p.q = kbki_row[packs + i];
        v.get(f), p.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = g[k] * (f[k] - dot);
        v.set(f);
        v.store(dx + i * Width);
    }
}

// Every warp writes its sum to all CTAs of the cluster.
template <class T>
__global__ void __launch_bounds__(512, 2)
    kbk_softmax_bwd_cluster_k(const T* dy, const T* y, T* dx, int64_t rows, int64_t cols) {
    extern __shared__ uint4 kbki_row[];
    __shared__ float slots[KBKI_CLUSTER * 32];
    constexpr int Width = KBKI_WIDTH(T);
    const int t = threadIdx.x, threads = blockDim.x, size = (int)kbki_cluster_size(), rank = (int)kbki_cluster_rank();
    const int share = ((int)(cols / Width) + size - 1) / size, packs = min(share, (int)(cols / Width) - rank * share);
    const int64_t at = blockIdx.x / size * cols + rank * share * Width;
    kbki_pack<T, Width> v, p;
    float f[Width], g[Width], sum = 0, dot = 0;
    dy += at, y += at, dx += at;
    kbki_cluster_begin();
#pragma unroll 4
    for (int i = t; i < packs; i += threads)
        kbki_ahead(kbki_row + i, dy + i * Width), kbki_ahead(kbki_row + share + i, y + i * Width);
    kbki_ahead_close();
    kbki_ahead_wait<0>();
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v.q = kbki_row[i], p.q = kbki_row[share + i];
        v.get(f), p.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) sum = fmaf(f[k], g[k], sum);
    }
    sum = kbki_warp_all<kbki_sum<float>>(sum);
    kbki_cluster_begun(); // all CTAs of the cluster have started, so that their shared memory may be written
    kbki_cluster_store(slots + rank * (threads / 32) + t / 32, sum);
    kbki_cluster_barrier();
    for (int i = t % 32; i < size * (threads / 32); i += 32) dot += slots[i];
    dot = kbki_warp_all<kbki_sum<float>>(dot);
#pragma unroll 2
    for (int i = t; i < packs; i += threads) {
        v.q = kbki_row[i], p.q = kbki_row[share + i];
        v.get(f), p.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = g[k] * (f[k] - dot);
        v.set(f);
        v.store(dx + i * Width);
    }
}

// ---- The kernels that add one idea each end here.
// kbki_softmax_bwd_long_k processes longer rows, and rows that are not aligned.

// The second read runs backwards, because the ends of the rows are still in the L2 cache.
template <class T, int Width>
__global__ void __launch_bounds__(512)
    kbki_softmax_bwd_long_k(const T* dy, const T* y, T* dx, int64_t rows, int64_t cols) {
    __shared__ float slots[32];
    const int t = threadIdx.x, threads = blockDim.x;
    dy += blockIdx.x * cols, y += blockIdx.x * cols, dx += blockIdx.x * cols;
    const kbki_span sp = kbki_split<T, Width>(dy, cols);
    const int64_t one = kbki_single(sp, cols, t);
    kbki_pack<T, Width> v, p;
    float f[Width], g[Width], dot = one >= 0 ? kbki_float(dy[one]) * kbki_float(y[one]) : 0;
#pragma unroll 4
    for (int64_t i = t; i < sp.packs; i += threads) {
        v.load_cached(dy + sp.head + i * Width), p.load_cached(y + sp.head + i * Width);
        v.get(f), p.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) dot = fmaf(f[k], g[k], dot);
    }
    dot = kbki_threads_all<kbki_sum<float>>(dot, slots);
#pragma unroll 4
    for (int64_t i = sp.packs - 1 - t; i >= 0; i -= threads) {
        v.load(dy + sp.head + i * Width), p.load(y + sp.head + i * Width);
        v.get(f), p.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = g[k] * (f[k] - dot);
        v.set(f);
        v.store(dx + sp.head + i * Width);
    }
    if (one >= 0) dx[one] = kbki_type<T>::from(kbki_float(y[one]) * (kbki_float(dy[one]) - dot));
}

template <class T> using kbki_dsoftmax_kernel = void(const T* dy, const T* y, T* dx, int64_t rows, int64_t cols);
template <class T>
const char* kbki_dsoftmax_plain(const kbk_args* a, kbk_stream st, kbki_dsoftmax_kernel<T>* kernel,
                                int64_t rows_per_cta, int64_t threads, size_t bytes = 0) {
    const T *dy = (const T*)a->in[0], *y = (const T*)a->in[1];
    T* dx = (T*)a->out[0];
    const char* why = kbki_check_dims(&a->s);
    if (!kbki_aligned(dy, sizeof(T)) || !kbki_aligned(y, sizeof(T)) || !kbki_aligned(dx, sizeof(T)))
        return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(kbki_ceil(a->s.rows, rows_per_cta))) return KBKI_TEXT_GRID;
    if (why || a->s.rows * a->s.cols == 0) return why;
    kernel<<<(unsigned)kbki_ceil(a->s.rows, rows_per_cta), (unsigned)threads, bytes, st>>>(dy, y, dx, a->s.rows,
                                                                                           a->s.cols);
    return kbki_launched();
}
template <class T> const char* kbk_softmax_bwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_naive_k<T>, 128, 128);
}
template <class T> const char* kbk_softmax_bwd_warp(const kbk_args* a, kbk_stream st) {
    return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_warp_k<T>, 4, 128);
}
template <class T> bool kbki_dsoftmax_whole(const kbk_args* a) {
    return kbki_whole_packs<T>(a->in[0], a->out[0], a->s.cols) && kbki_aligned(a->in[1], 16);
}
template <class T> const char* kbk_softmax_bwd_onepass(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    const int64_t packs = a->s.cols / Width;
    if (!kbki_dsoftmax_whole<T>(a) || packs > 4096) {
        const bool vector = kbki_congruent(a->in[0], a->in[1]) && kbki_congruent(a->in[0], a->out[0]);
        const int64_t threads = kbki_threads(a->s.cols, 2 * Width);
        return kbki_dsoftmax_plain<T>(a, st,
                                      vector ? kbki_softmax_bwd_long_k<T, Width> : kbki_softmax_bwd_long_k<T, 1>, 1,
                                      threads < 512 ? threads : 512);
    }
    if (packs <= 8) return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_onepass_k<T, 1, 8>, 16, 128);
    if (packs <= 32) return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_onepass_k<T, 1, 32>, 4, 128);
    if (kbki_few_rows(a->s.rows, packs))
        return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_onepass_k<T, 1, 0>, 1, kbki_threads(packs, 1));
    if (packs <= 128) return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_onepass_k<T, 4, 32>, 4, 128);
    return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_onepass_k<T, 4, 0>, 1, kbki_threads(packs, 4));
}
template <class T> const char* kbk_softmax_bwd_shared(const kbk_args* a, kbk_stream st) {
    const int64_t packs = a->s.cols / KBKI_WIDTH(T), threads = kbki_threads(packs, 4);
    size_t bytes = (size_t)packs * 32;
    const char* why = kbki_want_shared(kbk_softmax_bwd_shared_k<T>, &bytes);
    if (why || !bytes || !kbki_dsoftmax_whole<T>(a)) return why ? why : kbk_softmax_bwd_onepass<T>(a, st);
    return kbki_dsoftmax_plain<T>(a, st, kbk_softmax_bwd_shared_k<T>, 1, threads < 512 ? threads : 512, bytes);
}
template <class T> const char* kbk_softmax_bwd_cluster(const kbk_args* a, kbk_stream st) {
    const int64_t rows = a->s.rows, cols = a->s.cols, packs = cols / KBKI_WIDTH(T);
    if (rows <= 0 || cols <= 0 || !kbki_dsoftmax_whole<T>(a) || packs > KBKI_CLUSTER_PACKS)
        return kbk_softmax_bwd_onepass<T>(a, st);
    // the smallest cluster with at most 32 KiB of each row per CTA, or a larger one if there are few rows
    int size = 2;
    while (size < KBKI_CLUSTER && (packs > size * 2048 || rows * size * 2 <= kbki_sms())) size *= 2;
    const int64_t share = kbki_ceil(packs, size), threads = kbki_threads(share, 4);
    return kbki_launch_clusters(kbk_softmax_bwd_cluster_k<T>, size, threads < 512 ? (int)threads : 512,
                                (size_t)share * 32, rows, false, st, (const T*)a->in[0], (const T*)a->in[1],
                                (T*)a->out[0], rows, cols);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>layernorm     Layer normalisation over the last axis, with the two-pass variance.
-----------------------------------------------------------------*/

/*  layernorm fwd --------------------------------------------------------------------------------------------
    y[r,c] = (x[r,c] - mean[r]) * rstd[r] * w[c] + b[c]     rstd[r] = 1 / sqrt(mean_c((x - mean)^2) + eps),
    eps 1e-5      x, y: R x C   w, b: C   mean, rstd: R, f32, written if the pointer is not NULL
    flops  7*R*C + 4*R   sum 1, centre 1, square-add 2, scale 1, weight 1, bias 1 per element; per row 1/C
           twice, +eps, rsqrt
    bytes  (2*R*C + 2*C)*s + 8*R
    check  norm-wise f32 3e-6, f16 3e-4, bf16 2.5e-3; 64 ulp of the row scale in f32, 2 ulp at 16 bits. In f32 the
           bound grows with |mean| * rstd / 15, which allows 2e-4 at mean = 1000 and deviation 1. There an f32 mean
           has an error of 3e-5, while E[x^2] - E[x]^2 has an error of 1e-2 and more
    1 naive    thread per row; adds x - x[r,0], so that sums are small <- slow: not coalesced, three reads
    2 warp     warp per row, shuffles                    <- coalesced; three reads, two of them from cache
    3 onepass  16-byte accesses; the row stays in registers; one barrier per row
                each warp computes moments around its own mean; these are combined (Chan, Golub & LeVeque 1979)
                                                         <- one read, up to 32768 elements; longer rows take three
    4 persist  persistent kernel; w and b stay in registers; cp.async prefetches the next rows into shared memory
                                                         <- w and b read once per CTA, not once per row; up to
                                                            2048 vectors of 16 bytes. No gain if many CTAs fit
                                                            into an SM: occupancy is 35 % instead of 70 %
    5 cluster  row split over 2, 4 or 8 CTAs; they exchange their moments through distributed shared memory
                                                         <- one read, up to 512 KiB per row; more SMs for few rows.
                                                            Slower for many short rows: 24 % occupancy, DRAM 73 %
    bound by   memory: compare with bytes / copy bandwidth
    predict    before you run it: 128 rows of 8192 f32 occupy 128 SMs with one CTA each. How much time does it save to
               load w and b together with x, and not after the reductions, if DRAM answers after 0.6 us?
    see        Ba, Kiros & Hinton 2016, "Layer Normalization"; Chan, Golub & LeVeque 1979 */
/*  measured layernorm fwd: f32 8192 x 4096, NVIDIA H100 80GB HBM3, 2026-11-27
    0.875 FLOP/B; floor on an H200 62.8 us = 268.5 MB / 4.276 TB/s; on this GPU 88.0 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
    1 naive    1455 us   7 %      -   32  6 % 11 %         0  thread per row, three uncoalesced passes
    2 warp    205.8 us  47 % 7.07 x   32 94 % 76 %         0  warp per row, shuffles, re-reads from cache
    3 onepass  84.5 us 115 % 2.44 x   40 70 % 88 %      91 k  16-byte loads, row in registers, one read
    4 persist  87.8 us 111 % 0.96 x   80 35 % 85 %      3049  w and b in registers, next rows prefetched
    5 cluster 102.6 us  95 % 0.86 x   64 24 % 73 %      4903  row split over a cluster, up to 512 KiB
    end of measured */
KBKI_TENSORS(layernorm_fwd, 6, t[0] = kbki_in("x", n, cols), t[1] = kbki_in("w", cols, 0),
             t[2] = kbki_in("b", cols, 0), t[3] = kbki_out("y", KBK_T, n, cols, 1),
             t[4] = kbki_out("mean", KBK_KF32, rows, 1, 1), t[4].optional = 1,
             t[5] = kbki_out("rstd", KBK_KF32, rows, 1, 0), t[5].optional = 1)
KBKI_FORMULAS(layernorm_fwd, s->cols ? s->rows : 0, 7 * n + 4 * rows, (2 * n + 2 * cols) * elem + 8 * rows)
KBKI_REF(layernorm_fwd) {
    int64_t n = s->cols;
    for (int64_t r = u0; r < u1; r++) {
        const double* x = in[0] + r * n;
        double mean = 0, var = 0, size = 0;
        for (int64_t c = 0; c < n; c++) mean += x[c], size += fabs(x[c]);
        mean /= (double)n, size /= (double)n;
        for (int64_t c = 0; c < n; c++) var += (x[c] - mean) * (x[c] - mean);
        double rstd = 1 / sqrt(var / (double)n + KBK_EPS);
        int64_t u = r - u0;
        for (int64_t c = 0; out[0] && c < n; c++) out[0][u * n + c] = (x[c] - mean) * rstd * in[1][c] + in[2][c];
        if (out[1]) out[1][u] = mean;
        if (out[2]) out[2][u] = rstd;
        if (out[KBK_OUTS]) out[KBK_OUTS][u] = elem == 4 ? fabs(mean) * rstd / 15 : 0;
        // even a mean near 0 has an error that depends on the absolute values of the elements
        if (out[KBK_OUTS + 1]) out[KBK_OUTS + 1][u] = size;
    }
}

#ifdef __CUDACC__
// Layer: true for layer normalisation; false for RMS normalisation (>>rmsnorm): no mean, no bias.
template <bool Layer, int Lanes = 32> __device__ __forceinline__ float2 kbki_deviations_all(float2 s) {
    return Layer ? kbki_warp_all<kbki_sum2, Lanes>(s) : make_float2(0, kbki_warp_all<kbki_sum<float>, Lanes>(s.y));
}
/*  Moments of a row: float3(mean, rest, rstd). Its mean is mean + rest: one f32 mean of nearly equal elements is
    too inaccurate. s: sums of the deviations from `mean` and of their squares. each: 1 / number of elements. */
template <bool Layer> __device__ __forceinline__ float3 kbki_moments(float mean, float2 s, float each) {
    const float rest = Layer ? s.x * each : 0, var = s.y * each - rest * rest;
    return make_float3(mean, rest, rsqrtf((var < 0 ? 0 : var) + (float)KBK_EPS)); // a NaN stays NaN
}
// Deviations from an infinite mean would be NaN, and so would their sum.
__device__ __forceinline__ float kbki_finite(float v) { return isinf(v) ? 0 : v; }
// The asm statement keeps the division before the reductions, so that it runs while loads are in flight.
__device__ __forceinline__ float kbki_share(int elements) {
    float each = kbki_reciprocal((float)elements);
    asm volatile("" : "+f"(each));
    return each;
}
template <bool Layer>
__device__ __forceinline__ void kbki_store_moments(float3 m, int64_t row, float* mean, float* rstd) {
    if (Layer && mean) mean[row] = m.x + m.y;
    if (rstd) rstd[row] = m.z;
}
template <bool Layer, class T> __device__ __forceinline__ T kbki_norm_one(float x, float3 m, const T* w, const T* b) {
    return kbki_type<T>::from(fmaf((x - m.x - m.y) * m.z, kbki_float(*w), Layer ? kbki_float(*b) : 0));
}

template <class T, bool Layer>
__global__ void kbk_layernorm_fwd_naive_k(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd,
                                          int64_t rows, int64_t cols) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += row * cols, y += row * cols;
    const float first = !Layer || isinf(kbki_float(x[0])) ? 0 : kbki_float(x[0]), each = 1 / (float)cols;
    kbki_long_sum sum, rest, square;
    for (int64_t c = 0; Layer && c < cols; c++) sum.add(kbki_float(x[c]) - first);
    const float middle = kbki_finite(first + sum.get() / (float)cols);
    for (int64_t c = 0; c < cols; c++) {
        const float d = kbki_float(x[c]) - middle;
        rest.add(d), square.add(d * d);
    }
    const float3 m = kbki_moments<Layer>(middle, make_float2(rest.get(), square.get()), each);
    for (int64_t c = 0; c < cols; c++) y[c] = kbki_norm_one<Layer>(kbki_float(x[c]), m, w + c, b + c);
    kbki_store_moments<Layer>(m, row, mean, rstd);
}

template <class T, bool Layer>
__global__ void __launch_bounds__(128) kbk_layernorm_fwd_warp_k(const T* x, const T* w, const T* b, T* y, float* mean,
                                                                float* rstd, int64_t rows, int64_t cols) {
    const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += row * cols, y += row * cols;
    const float each = 1 / (float)cols;
    kbki_long_sum sum, rest, square;
    for (int64_t c = lane; Layer && c < cols; c += 32) sum.add(kbki_float(x[c]));
    const float middle = Layer ? kbki_finite(kbki_warp_all<kbki_sum<float>>(sum.get()) / (float)cols) : 0;
    for (int64_t c = lane; c < cols; c += 32) {
        const float d = kbki_float(x[c]) - middle;
        rest.add(d), square.add(d * d);
    }
    const float2 s = kbki_deviations_all<Layer>(make_float2(rest.get(), square.get()));
    const float3 m = kbki_moments<Layer>(middle, s, each);
    for (int64_t c = lane; c < cols; c += 32) y[c] = kbki_norm_one<Layer>(kbki_float(x[c]), m, w + c, b + c);
    if (lane == 0) kbki_store_moments<Layer>(m, row, mean, rstd);
}

/*  Combines the moments of `count` warps: float4(elements, mean, sum of deviations from this mean, sum of squared
    deviations). Deviations are converted to the calling warp's mean `middle`: one reduction is enough. */
template <bool Layer, int Lanes = 16, int Most = Lanes>
__device__ __forceinline__ float3 kbki_warps_moments(const float4* slots, int count, float each, float middle) {
    float2 s = make_float2(0, 0);
    int i = threadIdx.x % Lanes;
    do {
        const float4 v = i < count ? slots[i] : float4{};
        const float d = v.y - middle;
        if (Layer) s.x += fmaf(v.x, d, v.z);
        s.y += Layer ? fmaf(d, fmaf(v.x, d, 2 * v.z), v.w) : v.w;
        i += Lanes;
    } while (Most > Lanes && i < count);
    s = kbki_deviations_all<Layer, Lanes>(s);
    return kbki_moments<Layer>(middle, s, each);
}
/*  Each warp centres on its own mean: one barrier for mean and variance. Early: loads w and b with the row, which
    is faster if all rows are resident. Otherwise other CTAs hide the latency, and the registers reduce the
    occupancy. */
template <class T, bool Layer, int Packs, bool Early, int Width = KBKI_WIDTH(T)>
__global__ void __launch_bounds__(Early ? 512 : 1024,
                                  Early&& Width > 1 && Packs * Width <= 8 ? KBKI_SM_THREADS / 512 : 1)
    kbk_layernorm_fwd_onepass_k(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd, int64_t rows,
                                int64_t cols) {
    __shared__ float4 slots[32];
    constexpr int Held = Early ? Packs : 1;
    const unsigned t = threadIdx.x, threads = blockDim.x, packs = (unsigned)cols / Width;
    kbki_pack<T, Width> v[Packs], g[Held], h[Held];
    float f[Packs][Width], gain[Width], bias[Width], sum = 0;
    float2 s = make_float2(0, 0);
    int count = 0; // number of elements of the row that this warp processes
    x += blockIdx.x * cols, y += blockIdx.x * cols;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].fill(0);
        if (t + u * threads < packs) v[u].load(x + (size_t)(t + u * threads) * Width);
    }
#pragma unroll
    for (int u = 0; u < (Early ? Packs : 0); u++) {
        if (t + u * threads < packs) g[u].load(w + (size_t)(t + u * threads) * Width);
        if (Layer && t + u * threads < packs) h[u].load(b + (size_t)(t + u * threads) * Width);
    }
    if (Early) __threadfence_block(); // keeps the assembler from moving the loads behind the reductions
    const float each = kbki_share((int)cols);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        count += Width * __popc(__ballot_sync(~0u, t + u * threads < packs));
        v[u].get(f[u]);
#pragma unroll
        for (int k = 0; k < Width; k++) sum += f[u][k];
    }
    const float each_of_warp = kbki_reciprocal((float)max(count, 1));
    const float middle = Layer ? kbki_finite(kbki_warp_all<kbki_sum<float>>(sum) * each_of_warp) : 0;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        const float from = t + u * threads < packs ? middle : 0; // elements beyond the row stay 0
#pragma unroll
        for (int k = 0; k < Width; k++) f[u][k] -= from, s.x += f[u][k], s.y = fmaf(f[u][k], f[u][k], s.y);
    }
    s = kbki_deviations_all<Layer>(s);
    if (t % 32 == 0) slots[t / 32] = make_float4(Layer ? (float)count : 0, middle, s.x, s.y);
    __syncthreads();
    const float3 m = kbki_warps_moments<Layer, Early ? 16 : 32>(slots, threads / 32, each, middle);
    const float shift = -m.y * m.z;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * threads >= packs) continue;
        if (!Early) g[0].load(w + (size_t)(t + u * threads) * Width);
        if (!Early && Layer) h[0].load(b + (size_t)(t + u * threads) * Width);
        g[Early ? u : 0].get(gain), h[Early ? u : 0].get(bias);
#pragma unroll
        for (int k = 0; k < Width; k++)
            f[u][k] = fmaf(fmaf(f[u][k], m.z, Layer ? shift : 0), gain[k], Layer ? bias[k] : 0);
        v[u].set(f[u]);
        v[u].store(y + (size_t)(t + u * threads) * Width);
    }
    if (t == 0) kbki_store_moments<Layer>(m, blockIdx.x, mean, rstd);
}

// Each thread reads only the vectors that it has copied by cp.async, so no barrier is needed.
template <class T, bool Layer, int Packs, int Stages>
__global__ void __launch_bounds__(512)
    kbk_layernorm_fwd_persist_k(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd, int64_t rows,
                                int64_t cols) {
    extern __shared__ uint4 kbki_row[];
    __shared__ float4 slots[2][32];
    constexpr int Width = KBKI_WIDTH(T);
    const int t = threadIdx.x, threads = blockDim.x, packs = (int)(cols / Width);
    kbki_pack<T, Width> v, g[Packs], h[Packs];
    auto prefetch = [&](int64_t row, int slot) {
#pragma unroll
        for (int u = 0; u < Packs; u++)
            if (row < rows && t + u * threads < packs)
                kbki_ahead(kbki_row + (slot * Packs + u) * threads + t, x + row * cols + (t + u * threads) * Width);
        kbki_ahead_close();
    };
#pragma unroll
    for (int i = 0; i < Stages; i++) prefetch(blockIdx.x + (int64_t)i * gridDim.x, i);
    const float each = kbki_share((int)cols);
    int count = 0;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        g[u].fill(0), h[u].fill(0);
        if (t + u * threads < packs) g[u].load(w + (t + u * threads) * Width);
        if (Layer && t + u * threads < packs) h[u].load(b + (t + u * threads) * Width);
        count += Width * __popc(__ballot_sync(~0u, t + u * threads < packs));
    }
    const float each_of_warp = kbki_reciprocal((float)max(count, 1));
    int slot = 0, turn = 0;
    for (int64_t row = blockIdx.x; row < rows;
         row += gridDim.x, slot = slot + 1 == Stages ? 0 : slot + 1, turn ^= 1) {
        float f[Packs][Width], gain[Width], bias[Width], sum = 0;
        float2 s = make_float2(0, 0);
        kbki_ahead_wait<Stages - 1>();
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            v.fill(0);
            if (t + u * threads < packs) v.q = kbki_row[(slot * Packs + u) * threads + t];
            v.forget();
            v.get(f[u]);
#pragma unroll
            for (int k = 0; k < Width; k++) sum += f[u][k];
        }
        prefetch(row + (int64_t)Stages * gridDim.x, slot);
        const float middle = Layer ? kbki_finite(kbki_warp_all<kbki_sum<float>>(sum) * each_of_warp) : 0;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            const float from = t + u * threads < packs ? middle : 0;
#pragma unroll
            for (int k = 0; k < Width; k++) f[u][k] -= from, s.x += f[u][k], s.y = fmaf(f[u][k], f[u][k], s.y);
        }
        s = kbki_deviations_all<Layer>(s);
        if (t % 32 == 0) slots[turn][t / 32] = make_float4(Layer ? (float)count : 0, middle, s.x, s.y);
        __syncthreads();
        const float3 m = kbki_warps_moments<Layer>(slots[turn], threads / 32, each, middle);
        const float shift = -m.y * m.z;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            if (t + u * threads >= packs) continue;
            kbki_reread(g[u]), kbki_reread(h[u]);
            g[u].get(gain), h[u].get(bias);
#pragma unroll
            for (int k = 0; k < Width; k++)
                f[u][k] = fmaf(fmaf(f[u][k], m.z, Layer ? shift : 0), gain[k], Layer ? bias[k] : 0);
            v.set(f[u]);
            v.store(y + row * cols + (t + u * threads) * Width);
        }
        if (t == 0) kbki_store_moments<Layer>(m, row, mean, rstd);
    }
}

template <class T, bool Layer, int Packs, bool Early>
__global__ void __launch_bounds__(1024)
    kbk_layernorm_fwd_cluster_k(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd, int64_t rows,
                                int64_t cols) {
    __shared__ float4 slots[KBKI_CLUSTER * 32];
    constexpr int Width = KBKI_WIDTH(T), Held = Early ? Packs : 1;
    const int t = threadIdx.x, threads = blockDim.x, size = (int)kbki_cluster_size(), rank = (int)kbki_cluster_rank();
    const int share = ((int)(cols / Width) + size - 1) / size, packs = min(share, (int)(cols / Width) - rank * share);
    const int64_t row = blockIdx.x / size, at = row * cols + rank * share * Width;
    kbki_pack<T, Width> v[Packs], g[Held], h[Held];
    float f[Packs][Width], gain[Width], bias[Width], sum = 0;
    float2 s = make_float2(0, 0);
    int count = 0;
    x += at, y += at, w += rank * share * Width, b += rank * share * Width;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].fill(0);
        if (t + u * threads < packs) v[u].load(x + (t + u * threads) * Width);
    }
#pragma unroll
    for (int u = 0; u < (Early ? Packs : 0); u++) {
        if (t + u * threads < packs) g[u].load(w + (t + u * threads) * Width);
        if (Layer && t + u * threads < packs) h[u].load(b + (t + u * threads) * Width);
    }
    kbki_cluster_begin();
    const float each = kbki_share((int)cols);
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        count += Width * __popc(__ballot_sync(~0u, t + u * threads < packs));
        v[u].get(f[u]);
#pragma unroll
        for (int k = 0; k < Width; k++) sum += f[u][k];
    }
    const float each_of_warp = kbki_reciprocal((float)max(count, 1));
    const float middle = Layer ? kbki_finite(kbki_warp_all<kbki_sum<float>>(sum) * each_of_warp) : 0;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        const float from = t + u * threads < packs ? middle : 0;
#pragma unroll
        for (int k = 0; k < Width; k++) f[u][k] -= from, s.x += f[u][k], s.y = fmaf(f[u][k], f[u][k], s.y);
    }
    s = kbki_deviations_all<Layer>(s);
    kbki_cluster_begun(); // the shared memory of a CTA may be written only after the CTA has started
    kbki_cluster_store(slots + rank * (threads / 32) + t / 32,
                       make_float4(Layer ? (float)count : 0, middle, s.x, s.y));
    kbki_cluster_barrier();
    const float3 m = kbki_warps_moments<Layer, 32, KBKI_CLUSTER * 32>(slots, size * threads / 32, each, middle);
    const float shift = -m.y * m.z;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        if (t + u * threads >= packs) continue;
        if (!Early) g[0].load(w + (t + u * threads) * Width);
        if (!Early && Layer) h[0].load(b + (t + u * threads) * Width);
        g[Early ? u : 0].get(gain), h[Early ? u : 0].get(bias);
#pragma unroll
        for (int k = 0; k < Width; k++)
            f[u][k] = fmaf(fmaf(f[u][k], m.z, Layer ? shift : 0), gain[k], Layer ? bias[k] : 0);
        v[u].set(f[u]);
        v[u].store(y + (t + u * threads) * Width);
    }
    if (t == 0 && rank == 0) kbki_store_moments<Layer>(m, row, mean, rstd);
}

// ---- The kernels that add one idea each end here.
// `onepass` uses the kernels below for short rows, for very long rows, and for unaligned rows of more than 4096
// elements.

/*  A group of `Lanes` lanes loads w, b and all of its `Rows` rows before it uses the first row. For 16-bit types,
    deviations are based on the mean of the row's first vector, which costs no reduction and is accurate enough. */
template <class T, bool Layer, int Packs, int Lanes, int Rows>
__global__ void __launch_bounds__(256, Packs == 4 ? 3 : 4)
    kbki_layernorm_fwd_lanes_k(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd, int64_t rows,
                               int64_t cols) {
    constexpr int Width = KBKI_WIDTH(T), Groups = 32 / Lanes;
    constexpr bool First = sizeof(T) == 2;
    const int lane = threadIdx.x % Lanes, packs = (int)(cols / Width);
    const int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int64_t row = warp * (Groups * Rows) + threadIdx.x % 32 / Lanes;
    kbki_pack<T, Width> v[Rows][Packs], g[Packs], h[Packs];
#pragma unroll
    for (int i = 0; i < Rows; i++)
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            v[i][u].fill(0);
            if (row + i * Groups < rows && lane + u * Lanes < packs)
                v[i][u].load(x + (row + i * Groups) * cols + (lane + u * Lanes) * Width);
        }
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        g[u].fill(0), h[u].fill(0);
        if (lane + u * Lanes < packs) g[u].load(w + (lane + u * Lanes) * Width);
        if (Layer && lane + u * Lanes < packs) h[u].load(b + (lane + u * Lanes) * Width);
    }
    __threadfence_block(); // as in kbk_layernorm_fwd_onepass_k
    const float each = kbki_share((int)cols);
    float3 mine = {}; // moments of row number `lane` of the group
#pragma unroll
    for (int i = 0; i < Rows; i++) {
        float f[Packs][Width], gain[Width], bias[Width], sum = 0;
        float2 s = make_float2(0, 0);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            v[i][u].get(f[u]);
#pragma unroll
            for (int k = 0; k < Width && (u == 0 || !First); k++) sum += f[u][k];
        }
        const float middle = !Layer  ? 0
                             : First ? kbki_finite(__shfl_sync(~0u, sum, 0, Lanes) / Width)
                                     : kbki_finite(kbki_warp_all<kbki_sum<float>, Lanes>(sum) * each);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            const float from = lane + u * Lanes < packs ? middle : 0;
#pragma unroll
            for (int k = 0; k < Width; k++) f[u][k] -= from, s.x += f[u][k], s.y = fmaf(f[u][k], f[u][k], s.y);
        }
        const float3 m = kbki_moments<Layer>(middle, kbki_deviations_all<Layer, Lanes>(s), each);
        const float shift = -m.y * m.z;
        if (lane == i) mine = m;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            if (Layer) kbki_reread(g[u]), kbki_reread(h[u]);
            g[u].get(gain), h[u].get(bias);
#pragma unroll
            for (int k = 0; k < Width; k++)
                f[u][k] = fmaf(fmaf(f[u][k], m.z, Layer ? shift : 0), gain[k], Layer ? bias[k] : 0);
            v[i][u].set(f[u]);
            if (row + i * Groups < rows && lane + u * Lanes < packs)
                v[i][u].store(y + (row + i * Groups) * cols + (lane + u * Lanes) * Width);
        }
    }
    if (lane < Rows && row + lane * Groups < rows)
        kbki_store_moments<Layer>(mine, row + lane * Groups, mean, rstd);
}

// One CTA per row of any length and alignment: three passes; the caches serve the second and the third.
template <class T, bool Layer, int Width>
__global__ void __launch_bounds__(512)
    kbki_layernorm_fwd_long_k(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd, int64_t rows,
                              int64_t cols) {
    __shared__ float slots[32];
    __shared__ float2 slots2[32];
    const int t = threadIdx.x, threads = blockDim.x;
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    const kbki_span sp = kbki_split<T, Width>(x, cols);
    const int64_t one = kbki_single(sp, cols, t);
    const float each = 1 / (float)cols, edge = one >= 0 ? kbki_float(x[one]) : 0;
    float f[Width], sum = edge;
    kbki_pack<T, Width> v;
#pragma unroll 4
    for (int64_t i = t; Layer && i < sp.packs; i += threads) {
        v.load_cached(x + sp.head + i * Width);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) sum += f[k];
    }
    const float middle = Layer ? kbki_finite(kbki_threads_all<kbki_sum<float>>(sum, slots) * each) : 0;
    float2 s = one >= 0 ? make_float2(edge - middle, (edge - middle) * (edge - middle)) : make_float2(0, 0);
#pragma unroll 4
    for (int64_t i = t; i < sp.packs; i += threads) {
        v.load_cached(x + sp.head + i * Width);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) s.x += f[k] - middle, s.y = fmaf(f[k] - middle, f[k] - middle, s.y);
    }
    const float3 m = kbki_moments<Layer>(middle, kbki_threads_all<kbki_sum2>(s, slots2), each);
#pragma unroll 2
    for (int64_t i = t; i < sp.packs; i += threads) {
        const int64_t c = sp.head + i * Width;
        T result[Width];
        v.load(x + c);
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) result[k] = kbki_norm_one<Layer>(f[k], m, w + c + k, b + c + k);
        memcpy(&v, result, sizeof v);
        v.store(y + c);
    }
    if (one >= 0) y[one] = kbki_norm_one<Layer>(edge, m, w + one, b + one);
    if (t == 0) kbki_store_moments<Layer>(m, blockIdx.x, mean, rstd);
}

template <class T>
using kbki_norm_kernel = void(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd, int64_t rows,
                              int64_t cols);
template <class T> struct kbki_norm {
    const T *x, *w, *b;
    T* y;
    float *mean, *rstd;
    int64_t rows, cols;
    // vector: x and y have the same alignment modulo 16 bytes; whole: all rows, w and b are aligned to 16 bytes
    bool vector, whole;
};
template <class T, bool Layer> const char* kbki_norm_args(const kbk_args* a, int64_t rows_per_cta, kbki_norm<T>* n) {
    *n = { (const T*)a->in[0],
           (const T*)a->in[1],
           Layer ? (const T*)a->in[2] : NULL,
           (T*)a->out[0],
           Layer ? (float*)a->out[1] : NULL,
           (float*)a->out[Layer ? 2 : 1],
           a->s.rows,
           a->s.cols,
           kbki_congruent(a->in[0], a->out[0]),
           kbki_whole_packs<T>(a->in[0], a->out[0], a->s.cols) && kbki_aligned(a->in[1], 16) };
    n->whole = n->whole && kbki_aligned(n->b, 16);
    if (!kbki_aligned(n->x, sizeof(T)) || !kbki_aligned(n->w, sizeof(T)) || !kbki_aligned(n->b, sizeof(T)) ||
        !kbki_aligned(n->y, sizeof(T)) || !kbki_aligned(n->mean, 4) || !kbki_aligned(n->rstd, 4))
        return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(kbki_ceil(n->rows, rows_per_cta))) return KBKI_TEXT_GRID;
    return kbki_check_dims(&a->s);
}
template <class T>
const char* kbki_norm_launch(kbki_norm_kernel<T>* kernel, const kbki_norm<T>& n, int64_t ctas, int64_t threads,
                             size_t bytes, kbk_stream st) {
    kernel<<<(unsigned)ctas, (unsigned)threads, bytes, st>>>(n.x, n.w, n.b, n.y, n.mean, n.rstd, n.rows, n.cols);
    return kbki_launched();
}
template <class T, bool Layer>
const char* kbki_norm_plain(const kbk_args* a, kbk_stream st, kbki_norm_kernel<T>* kernel, int rows_per_cta) {
    kbki_norm<T> n;
    const char* why = kbki_norm_args<T, Layer>(a, rows_per_cta, &n);
    if (why || n.rows * n.cols == 0) return why;
    return kbki_norm_launch(kernel, n, kbki_ceil(n.rows, rows_per_cta), 128, 0, st);
}
template <class T, bool Layer> const char* kbki_norm_naive(const kbk_args* a, kbk_stream st) {
    return kbki_norm_plain<T, Layer>(a, st, kbk_layernorm_fwd_naive_k<T, Layer>, 128);
}
template <class T, bool Layer> const char* kbki_norm_warp(const kbk_args* a, kbk_stream st) {
    return kbki_norm_plain<T, Layer>(a, st, kbk_layernorm_fwd_warp_k<T, Layer>, 4);
}
template <class T, bool Layer, int Packs, int Lanes, int Rows>
const char* kbki_norm_lanes(const kbki_norm<T>& n, kbk_stream st) {
    const int64_t warps = kbki_ceil(n.rows, 32 / Lanes * Rows), even = kbki_ceil(warps, kbki_sms());
    const int64_t per_cta = even < 8 ? even : 8;
    return kbki_norm_launch(kbki_layernorm_fwd_lanes_k<T, Layer, Packs, Lanes, Rows>, n, kbki_ceil(warps, per_cta),
                            32 * per_cta, 0, st);
}
template <class T, bool Layer> const char* kbki_norm_onepass(const kbk_args* a, kbk_stream st) {
    // perN: number of 16-byte vectors per thread if a thread has N elements
    constexpr int Width = KBKI_WIDTH(T), per8 = 8 / Width, per16 = 16 / Width, per32 = 32 / Width;
    kbki_norm<T> n;
    const char* why = kbki_norm_args<T, Layer>(a, 1, &n);
    if (why || n.rows * n.cols == 0) return why;
    const int64_t packs = n.cols / Width, sms = kbki_sms();
    const int64_t by8 = kbki_threads(n.cols, 8), by16 = kbki_threads(n.cols, 16), by32 = kbki_threads(n.cols, 32);
    // with 8 elements of 16 bits per thread, index computations take too much time, unless there are few rows
    const bool few = n.rows * by8 <= sms * 1536;
    const auto row = [&](kbki_norm_kernel<T>* kernel, int64_t threads) {
        return kbki_norm_launch(kernel, n, n.rows, threads, 0, st);
    };
    if (!n.whole && by8 <= 512) return row(kbk_layernorm_fwd_onepass_k<T, Layer, 8, true, 1>, by8);
    if (!n.whole || by32 > 1024)
        return row(n.vector ? kbki_layernorm_fwd_long_k<T, Layer, Width> : kbki_layernorm_fwd_long_k<T, Layer, 1>,
                   512);
    if (packs <= 8) return kbki_norm_lanes<T, Layer, 1, 8, 4>(n, st);
    if (packs <= 16) return kbki_norm_lanes<T, Layer, 1, 16, 4>(n, st);
    if (few && by8 == 32) return kbki_norm_lanes<T, Layer, per8, 32, 1>(n, st);
    if constexpr (Width == 4)
        if (n.rows <= sms && n.cols <= 2048)
            return row(kbk_layernorm_fwd_onepass_k<T, Layer, 1, true>, kbki_threads(packs, 1));
    if (few && by16 == 32) return kbki_norm_lanes<T, Layer, per16, 32, 1>(n, st);
    if (packs <= 32) return kbki_norm_lanes<T, Layer, 1, 32, 4>(n, st);
    if (!few && packs <= 64) return kbki_norm_lanes<T, Layer, 2, 32, 2>(n, st);
    if (by8 <= 512 && (few || Width == 4)) return row(kbk_layernorm_fwd_onepass_k<T, Layer, per8, true>, by8);
    if constexpr (Width == 8)
        if (packs <= 128 && n.rows <= sms * 24) return kbki_norm_lanes<T, Layer, 4, 32, 1>(n, st);
    if (by16 <= 512 && (n.rows * by16 <= sms * 512 || packs <= 128))
        return row(kbk_layernorm_fwd_onepass_k<T, Layer, per16, true>, by16);
    if (by32 <= 512 && n.rows <= sms) return row(kbk_layernorm_fwd_onepass_k<T, Layer, per32, true>, by32);
    if constexpr (Width == 4)
        if (by16 <= 512) return row(kbk_layernorm_fwd_onepass_k<T, Layer, per16, false>, by16);
    return row(kbk_layernorm_fwd_onepass_k<T, Layer, per32, false>, by32);
}
template <class T, bool Layer> const char* kbki_norm_persist(const kbk_args* a, kbk_stream st) {
    constexpr int Packs = 4, Stages = 2;
    kbki_norm<T> n;
    const char* why = kbki_norm_args<T, Layer>(a, 1, &n);
    if (why || n.rows * n.cols == 0) return why;
    const int64_t packs = n.cols / KBKI_WIDTH(T), threads = kbki_threads(packs, Packs);
    if (!n.whole || packs <= 32 || threads > 512) return kbki_norm_onepass<T, Layer>(a, st);
    kbki_norm_kernel<T>* kernel = kbk_layernorm_fwd_persist_k<T, Layer, Packs, Stages>;
    const size_t bytes = (size_t)(Packs * Stages * threads) * 16;
    unsigned ctas;
    why = kbki_resident((const void*)kernel, (int)threads, bytes, n.rows, &ctas);
    if (why || !ctas) return why ? why : kbki_norm_onepass<T, Layer>(a, st);
    return kbki_norm_launch(kernel, n, ctas, threads, bytes, st);
}
template <class T, bool Layer> const char* kbki_norm_cluster(const kbk_args* a, kbk_stream st) {
    constexpr int per8 = 8 / KBKI_WIDTH(T), per16 = 16 / KBKI_WIDTH(T), per32 = 32 / KBKI_WIDTH(T);
    kbki_norm<T> n;
    const char* why = kbki_norm_args<T, Layer>(a, 1, &n);
    if (why || n.rows * n.cols == 0) return why;
    const int64_t packs = n.cols / KBKI_WIDTH(T);
    if (!n.whole || packs > KBKI_CLUSTER_PACKS) return kbki_norm_onepass<T, Layer>(a, st);
    // the smallest cluster with at most 512 threads per CTA, or a larger one if there are few rows
    int size = 2;
    while (size < KBKI_CLUSTER && (packs > size * 512 * per32 || n.rows * size * 2 <= kbki_sms())) size *= 2;
    const int64_t share = kbki_ceil(packs, size);
    const int64_t by8 = kbki_threads(share, per8), by16 = kbki_threads(share, per16);
    // early only if an SM holds two CTAs; with two CTAs per SM, clusters of 8 leave no SM of a GPC idle
    const auto early = [&](int64_t threads) {
        return threads <= 512 && n.rows * size * threads <= kbki_sms() * 1024;
    };
    const auto kernel = early(by8)    ? kbk_layernorm_fwd_cluster_k<T, Layer, per8, true>
                        : early(by16) ? kbk_layernorm_fwd_cluster_k<T, Layer, per16, true>
                                      : kbk_layernorm_fwd_cluster_k<T, Layer, per32, false>;
    const int64_t threads = early(by8) ? by8 : early(by16) ? by16 : kbki_threads(share, per32);
    return kbki_launch_clusters(kernel, size, (int)threads, 0, n.rows, false, st, n.x, n.w, n.b, n.y, n.mean,
                                n.rstd, n.rows, n.cols);
}
KBKI_LAUNCHER(kbk_layernorm_fwd_naive, kbki_norm_naive<T, true>)
KBKI_LAUNCHER(kbk_layernorm_fwd_warp, kbki_norm_warp<T, true>)
KBKI_LAUNCHER(kbk_layernorm_fwd_onepass, kbki_norm_onepass<T, true>)
KBKI_LAUNCHER(kbk_layernorm_fwd_persist, kbki_norm_persist<T, true>)
KBKI_LAUNCHER(kbk_layernorm_fwd_cluster, kbki_norm_cluster<T, true>)
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>layernorm_bwd     Layer normalisation, backward: sums along rows and along columns from one read.
-----------------------------------------------------------------*/

/*  layernorm bwd --------------------------------------------------------------------------------------------
    xhat = (x - mean) * rstd     g = dy * w     dx = (g - mean_c g - xhat * mean_c(g * xhat)) * rstd
    dw[c] = sum_r dy * xhat      db[c] = sum_r dy     dy, x, dx: R x C   w, dw, db: C   mean, rstd: R, f32
    flops  13*R*C + 2*R   xhat 2, g 1, its sum 1, its sum with xhat 2, dx 4, dw 2, db 1; per row 1/C twice
    bytes  (3*R*C + 3*C)*s + 8*R
    check  dx norm-wise f32 1e-5, f16 5e-4, bf16 4e-3, in f32 relative to the terms that cancel; dw, db: f32 1e-5
           of the sum of |terms|, 16 bits 2 ulp more
    1 atomic   CTA per row; two atomics per element, for dw, db   <- slow: R atomics are serialised in each column
    2 split    dx by a warp per row, then column sums by tiles    <- no contention; x and dy are read twice
    3 ticket   persistent CTAs with column sums in shared memory, added by the last CTAs in index order
               <- one launch, the same bits every time; the second read of a row comes from the caches
    4 onepass  one CTA per SM; column sums stay in registers; the next rows are prefetched into shared memory;
               accesses have 16 bytes; a second kernel, launched by programmatic dependent launch (PDL), adds the
               column sums of the CTAs
               <- one read, and memory is always busy; all SMs share the last addition. Up to 32 KiB per row,
               otherwise as ticket
    bound by   memory: compare with bytes / copy bandwidth
    predict    before you run it: 8192 rows, 4096 columns. How many atomics does rung 1 send to one address, and how
               many partial sums per column does rung 4 add at the end?
    see        CUDA C++ Programming Guide, "Memory Fence Functions" (threadfence reduction), for ticket */
/*  measured layernorm bwd: f32 8192 x 4096, NVIDIA H100 80GB HBM3, 2026-11-27
    1.083 FLOP/B; floor on an H200 94.2 us = 402.8 MB / 4.276 TB/s; on this GPU 132.0 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
    1 atomic  262.9 us  56 %      -   32 90 % 57 %      6076  two atomics per element
    2 split   380.9 us  39 % 0.69 x   32 93 % 74 %      2611  dx, then column sums: inputs are read twice
    3 ticket  190.9 us  78 % 2.00 x   40 60 % 62 %        23  column sums per CTA, added in index order
    4 onepass 129.7 us 114 % 1.47 x   85 47 % 90 %     138 k  one read, rows and sums in registers
    end of measured */
KBKI_TENSORS(layernorm_bwd, 8, t[0] = kbki_in("dy", n, cols), t[1] = kbki_in("x", n, cols),
             t[2] = kbki_in("w", cols, 0), t[3] = kbki_in("mean", rows, 1), t[4] = kbki_in("rstd", rows, 1),
             t[3].kind = t[4].kind = KBK_KF32, t[4].fill = KBK_UNIFORM, t[4].a = 0.5, t[4].b = 1.5,
             t[5] = kbki_out("dx", KBK_T, n, cols, 1), t[6] = kbki_out("dw", KBK_T, cols, 0, cols),
             t[7] = kbki_out("db", KBK_T, cols, 0, cols))
KBKI_FORMULAS(layernorm_bwd, s->cols ? s->rows : 0, 13 * n + 2 * rows, (3 * n + 3 * cols) * elem + 8 * rows)
// Computes dx of a row. *size: magnitude of its terms, which may cancel. RMS normalisation: mean and centre are 0.
KBK_FN void kbki_norm_bwd_row(int64_t n, const double* dy, const double* x, const double* w, double mean, double rstd,
                              int centre, double* dx, double* size) {
    double a = 0, b = 0, square = 0, big = 0, wide = 0;
    for (int64_t c = 0; c < n; c++) {
        double g = dy[c] * w[c], xhat = (x[c] - mean) * rstd;
        a += g, b += g * xhat;
        if (kbk_is_nan(g * xhat) || kbk_is_inf(g * xhat)) continue;
        square += g * g, big += fabs(g * xhat), wide += xhat * xhat;
    }
    // root mean square of xhat, by which dx multiplies the error of b; it is 1 only if rstd was computed from x
    wide = sqrt(wide / (double)n);
    a = centre ? a / (double)n : 0, b /= (double)n;
    for (int64_t c = 0; dx && c < n; c++) dx[c] = (dy[c] * w[c] - a - (x[c] - mean) * rstd * b) * rstd;
    if (size) *size = (sqrt(square / (double)n) + big / (double)n * (wide > 1 ? wide : 1)) * fabs(rstd) * 2;
}
// size = 0: computes dw and db. size > 0: computes size times the sums of the absolute values of their terms.
KBK_FN void kbki_norm_bwd_columns(const kbk_shape* s, const double* dy, const double* x, const double* mean,
                                  const double* rstd, double* dw, double* db, double size) {
    int64_t n = s->cols;
    for (int64_t c = 0; c < n; c++) {
        if (dw) dw[c] = 0;
        if (db) db[c] = 0;
    }
    for (int64_t r = 0; (dw || db) && r < s->rows; r++)
        for (int64_t c = 0; c < n; c++) {
            double g = dy[r * n + c], term = g * ((x[r * n + c] - (mean ? mean[r] : 0)) * rstd[r]);
            if (dw) dw[c] += size > 0 ? fabs(term) * size : term;
            if (db) db[c] += size > 0 ? fabs(g) * size : g;
        }
}
KBKI_REF(layernorm_bwd) {
    int64_t n = s->cols;
    double size = 0;
    for (int64_t r = u0; r < u1; r++) {
        kbki_norm_bwd_row(n, in[0] + r * n, in[1] + r * n, in[2], in[3][r], in[4][r], 1,
                          out[0] ? out[0] + (r - u0) * n : NULL, &size);
        if (out[KBK_OUTS]) out[KBK_OUTS][r - u0] = elem == 4 ? size : 0.001 * size;
    }
    kbki_norm_bwd_columns(s, in[0], in[1], in[3], in[4], out[1], out[2], 0);
    kbki_norm_bwd_columns(s, in[0], in[1], in[3], in[4], out[KBK_OUTS + 1], out[KBK_OUTS + 2], elem == 4 ? 1 : 0.01);
}
KBKI_SCRATCH(layernorm_bwd) { return kbki_part_bytes(2 * s->cols); }

#ifdef __CUDACC__
// Returns (mean, rstd) of a row. For RMS normalisation, the mean is 0.
template <bool Layer>
__device__ __forceinline__ float2 kbki_moments_of(int64_t row, const float* mean, const float* rstd) {
    return make_float2(Layer ? __ldg(mean + row) : 0, __ldg(rstd + row));
}

// sums: the column sums for dw, then those for db.
template <class T, bool Layer>
__global__ void __launch_bounds__(256)
    kbk_layernorm_bwd_atomic_k(const T* dy, const T* x, const T* w, const float* mean, const float* rstd, T* dx,
                               float* sums, int64_t cols) {
    __shared__ float2 slots[32];
    kbki_follow_me();
    dy += blockIdx.x * cols, x += blockIdx.x * cols, dx += blockIdx.x * cols;
    const float2 m = kbki_moments_of<Layer>(blockIdx.x, mean, rstd);
    float2 s = make_float2(0, 0);
    for (int64_t c = threadIdx.x; c < cols; c += 256) {
        const float g = kbki_float(dy[c]) * kbki_float(w[c]);
        s.x += Layer ? g : 0, s.y += g * ((kbki_float(x[c]) - m.x) * m.y);
    }
    s = kbki_all<kbki_sum2, 256>(s, slots);
    s.x /= (float)cols, s.y /= (float)cols;
    for (int64_t c = threadIdx.x; c < cols; c += 256) {
        const float d = kbki_float(dy[c]), xhat = (kbki_float(x[c]) - m.x) * m.y;
        dx[c] = kbki_type<T>::from((d * kbki_float(w[c]) - s.x - xhat * s.y) * m.y);
        atomicAdd(sums + c, d * xhat);
        if (Layer) atomicAdd(sums + cols + c, d);
    }
}

template <class T, bool Layer>
__global__ void __launch_bounds__(128)
    kbk_layernorm_bwd_split_k(const T* dy, const T* x, const T* w, const float* mean, const float* rstd, T* dx,
                              int64_t rows, int64_t cols) {
    const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    kbki_follow_me();
    if (row >= rows) return;
    dy += row * cols, x += row * cols, dx += row * cols;
    const float2 m = kbki_moments_of<Layer>(row, mean, rstd);
    float2 s = make_float2(0, 0);
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32) {
        const float g = kbki_float(dy[c]) * kbki_float(w[c]);
        s.x += Layer ? g : 0, s.y += g * ((kbki_float(x[c]) - m.x) * m.y);
    }
    s = kbki_warp_all<kbki_sum2>(s);
    s.x /= (float)cols, s.y /= (float)cols;
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32) {
        const float g = kbki_float(dy[c]) * kbki_float(w[c]), xhat = (kbki_float(x[c]) - m.x) * m.y;
        dx[c] = kbki_type<T>::from((g - s.x - xhat * s.y) * m.y);
    }
}
template <class T, bool Layer>
__global__ void __launch_bounds__(1024)
    kbki_layernorm_bwd_columns_k(const T* dy, const T* x, const float* mean, const float* rstd, T* dw, T* db,
                                 float* part, unsigned* counters, int64_t rows, int64_t cols) {
    const auto term = [=](int64_t row, int64_t c) {
        const float2 m = kbki_moments_of<Layer>(row, mean, rstd);
        const float d = kbki_float(dy[row * cols + c]);
        return make_float2(d * ((kbki_float(x[row * cols + c]) - m.x) * m.y), d);
    };
    kbki_columns<Layer>(part, counters, rows, cols, term,
                        [=](int64_t c, float sum) { kbki_put_sum<Layer>(dw, db, cols, c, sum); });
}

// A thread has the same columns in every row, so their sums need no barrier. part: each CTA's sums for dw, then
// db.
template <class T, bool Layer>
__global__ void __launch_bounds__(512)
    kbk_layernorm_bwd_ticket_k(const T* dy, const T* x, const T* w, const float* mean, const float* rstd, T* dx,
                               T* dw, T* db, float* part, unsigned* counters, int64_t rows, int64_t cols) {
    extern __shared__ float kbki_sums[];
    __shared__ float2 slots[2][32];
    const int64_t width = Layer ? 2 * cols : cols;
    int turn = 0;
    for (int64_t c = threadIdx.x; c < cols; c += 512) {
        kbki_sums[c] = 0;
        if (Layer) kbki_sums[cols + c] = 0;
    }
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
        const int64_t at = row * cols;
        const float2 m = kbki_moments_of<Layer>(row, mean, rstd);
        float2 s = make_float2(0, 0);
#pragma unroll 4
        for (int64_t c = threadIdx.x; c < cols; c += 512) {
            const float g = kbki_float(dy[at + c]) * kbki_float(w[c]);
            s.x += Layer ? g : 0, s.y += g * ((kbki_float(x[at + c]) - m.x) * m.y);
        }
        s = kbki_all<kbki_sum2, 512>(s, slots[turn]);
        s.x /= (float)cols, s.y /= (float)cols;
#pragma unroll 4
        for (int64_t c = threadIdx.x; c < cols; c += 512) {
            const float d = kbki_float(dy[at + c]), xhat = (kbki_float(x[at + c]) - m.x) * m.y;
            kbki_sums[c] += d * xhat;
            if (Layer) kbki_sums[cols + c] += d;
            dx[at + c] = kbki_type<T>::from((d * kbki_float(w[c]) - s.x - xhat * s.y) * m.y);
        }
    }
    for (int64_t c = threadIdx.x; c < cols; c += 512) {
        part[blockIdx.x * width + c] = kbki_sums[c];
        if (Layer) part[blockIdx.x * width + cols + c] = kbki_sums[cols + c];
    }
    kbki_part_finish(part, counters, width,
                     [=](int64_t c, float sum) { kbki_put_sum<Layer>(dw, db, cols, c, sum); });
}

// ---- The kernels that add one idea each end here.

/*  A thread's vectors of dy and x, and its column sums over all rows so far. Held = false: to save registers, the
    vectors are loaded again from shared memory for dx. Keep: xhat and g stay in registers until dx is computed. */
template <class T, bool Layer, int Packs, int Threads, bool Held, bool Keep> struct kbki_dnorm_row {
    static constexpr int width = KBKI_WIDTH(T), held = Held ? Packs : 1, kept = Keep ? Packs : 1;
    kbki_pack<T, width> dy[held], x[held], w[Packs];
    float dw[Packs][width], db[Layer ? Packs : 1][width], xhat[kept][width], g[kept][width];
    __device__ __forceinline__ float centred(float v, float2 st) const {
        // not v * rstd - mean * rstd: the rounding error of mean * rstd is large if rstd is large
        return !Layer ? v * st.y : (v - st.x) * st.y;
    }
    // Loads vector u of dy and of x (`room` vectors later) from shared memory; a thread's vectors are 512 apart.
    __device__ __forceinline__ void take(const uint4* ring, int u, int room) {
        dy[Held ? u : 0].q = ring[u * 512], x[Held ? u : 0].q = ring[room + u * 512];
        dy[Held ? u : 0].forget(), x[Held ? u : 0].forget();
    }
    __device__ __forceinline__ float2 add(const uint4* ring, int room, int t, int packs, float2 st) {
        float2 s = make_float2(0, 0);
#pragma unroll
        for (int u = 0; u < (Held ? Packs : 0); u++)
            if (t + u * Threads < packs) take(ring, u, room);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            float f[width], e[width], h[width];
            int i = Held ? u : 0;
            if (!Held && t + u * Threads >= packs) continue;
            if (!Held) take(ring, u, room);
            dy[i].get(e), x[i].get(f), w[u].get(h);
#pragma unroll
            for (int k = 0; k < width; k++) {
                float v = centred(f[k], st), gw = e[k] * h[k];
                dw[u][k] = fmaf(e[k], v, dw[u][k]);
                if (Layer) db[u][k] += e[k], s.x += gw;
                s.y = fmaf(gw, v, s.y);
                if (Keep) xhat[u][k] = v, g[u][k] = gw;
            }
            if (!Keep) kbki_reread(dy[i]), kbki_reread(x[i]), kbki_reread(w[u]);
        }
        return s;
    }
    // s: the sums of the row divided by its length
    __device__ __forceinline__ void put(const uint4* ring, int room, T* dx, int t, int packs, float2 st, float2 s) {
        float a = Layer ? -s.x * st.y : 0, b = -s.y * st.y;
        dx += t * width;
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            float f[width], e[width], h[width];
            int i = Held ? u : 0;
            if (t + u * Threads >= packs) continue;
            if (!Held) take(ring, u, room);
            if (!Keep) kbki_reread(dy[i]), kbki_reread(x[i]), kbki_reread(w[u]);
            if (!Keep) dy[i].get(e), x[i].get(f), w[u].get(h);
#pragma unroll
            for (int k = 0; k < width; k++) {
                float v = Keep ? xhat[Keep ? u : 0][k] : centred(f[k], st),
                      gw = Keep ? g[Keep ? u : 0][k] : e[k] * h[k];
                f[k] = Layer && width == 4 ? fmaf(-s.y, v, gw - s.x) * st.y : fmaf(gw, st.y, fmaf(v, b, a));
            }
            dy[i].set(f);
            dy[i].store(dx + u * Threads * width);
        }
    }
    // Adds the column sums of all rows that a warp processes at the same time; every thread gets the totals.
    __device__ __forceinline__ void join() {
#pragma unroll
        for (int i = 0; i < Packs * width; i++)
#pragma unroll
            for (int d = Threads; d < 32; d *= 2) {
                dw[i / width][i % width] += __shfl_xor_sync(~0u, dw[i / width][i % width], d);
                if (Layer) db[i / width][i % width] += __shfl_xor_sync(~0u, db[i / width][i % width], d);
            }
    }
    // Position in shared memory, in float4, of thread t's four column sums with index `four`. Even and odd indices
    // of 16-bit types use different halves of the banks: no bank conflicts in writes and reads.
    static __device__ __forceinline__ int place(int four, int t) {
        return four * Threads + (t ^ four % (width / 4) * 4);
    }
    // Stores the sums of this thread's columns to shared memory: dw first, db `fours` float4 elements later.
    __device__ __forceinline__ void leave(float4* to, int t, int fours) const {
#pragma unroll
        for (int i = 0; i < Packs * width / 4; i++) {
            int u = i / (width / 4), k = i % (width / 4);
            const float *a = dw[u] + 4 * k, *b = db[Layer ? u : 0] + 4 * k;
            to[place(i, t)] = make_float4(a[0], a[1], a[2], a[3]);
            if (Layer) to[fours + place(i, t)] = make_float4(b[0], b[1], b[2], b[3]);
        }
    }
    // Adds the column sums of all groups of threads of the CTA and stores them to `part`: dw, then db.
    template <int Groups>
    static __device__ __forceinline__ void meet(const float4* from, int fours, int cols, float* part) {
        constexpr int n = width / 4, kinds = Layer ? 2 : 1;
        for (int i = threadIdx.x; i < fours * kinds; i += 512) {
            int j = i % fours, u = j / (Threads * n), t = j % (Threads * n) / n;
            const float4* at = from + (i - j + place(u * n + j % n, t));
            float4 sum = *at;
#pragma unroll
            for (int g = 1; g < Groups; g++) {
                float4 v = at[g * fours * kinds];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
            if (4 * j < cols) *reinterpret_cast<float4*>(part + 4 * j + (i < fours ? 0 : cols)) = sum;
        }
    }
};
/*  One CTA of 512 threads per SM (two for the shortest rows in f32) leaves few partial sums to add at the end.
    `Threads` threads process a row. The column sums of all groups are added in a fixed order. Rows beyond the last
    are replaced by zeros. */
template <class T, bool Layer, int Packs, int Threads, int Stages>
__global__ void __launch_bounds__(512, Threads <= 32)
    kbk_layernorm_bwd_onepass_k(const T* dy, const T* x, const T* w, const float* mean, const float* rstd, T* dx,
                                float* part, int64_t rows, int64_t cols) {
    extern __shared__ uint4 kbki_row[];
    constexpr int Width = KBKI_WIDTH(T), Groups = 512 / Threads, sums = Layer ? 2 : 1, room = Packs * 512,
                  fours = Packs * Threads * Width / 4;
    constexpr int Meeting = Threads < 32 ? 16 : Groups; // groups whose column sums are added in shared memory
    constexpr bool Held = !Layer || Packs * Width < 32, Keep = Packs * Width <= 16;
    __shared__ float2 slots[Threads > 32 ? Groups : 1][2][32];
    int t = threadIdx.x % Threads, group = threadIdx.x / Threads, packs = (int)(cols / Width), slot = 0;
    int place = Threads < 32 ? threadIdx.x % 32 / Threads : 0; // index of this thread's row in its warp
    int64_t row = (int64_t)blockIdx.x * Groups + group, step = (int64_t)gridDim.x * Groups;
    float each = 1 / (float)cols;
    kbki_dnorm_row<T, Layer, Packs, Threads, Held, Keep> r = {};
    kbki_follow_me();
    auto ask = [&](int64_t which, uint4* ring) {
#pragma unroll
        for (int u = 0; u < Packs; u++)
            if (which < rows && t + u * Threads < packs) {
                int64_t at = which * cols + t * Width + u * Threads * Width;
                kbki_ahead(ring + u * 512, dy + at);
                kbki_ahead(ring + room + u * 512, x + at);
            } else if (Threads < 32) {
                ring[u * 512] = ring[room + u * 512] = make_uint4(0, 0, 0, 0);
            }
        kbki_ahead_close();
    };
#pragma unroll
    for (int u = 0; u < Packs; u++)
        if (t + u * Threads < packs) r.w[u].load_cached(w + (t + u * Threads) * Width);
#pragma unroll
    for (int i = 0; i < Stages; i++) ask(row + i * step, kbki_row + i * 2 * room + threadIdx.x);
    float2 st, next = row < rows ? kbki_moments_of<Layer>(row, mean, rstd) : make_float2(0, 0);
    for (int turn = 0; row - place < rows; row += step, slot = slot + 1 == Stages ? 0 : slot + 1, turn ^= 1) {
        uint4* ring = kbki_row + slot * 2 * room + threadIdx.x;
        st = next;
        if (row + step < rows) // mean and rstd are loaded one row ahead, to hide the latency
            next = kbki_moments_of<Layer>(row + step, mean, rstd);
        else if (Threads < 32)
            next = make_float2(0, 0);
        kbki_ahead_wait<Stages - 1>();
        float2 s = r.add(ring, room, t, packs, st);
        if (Held) ask(row + Stages * step, ring);
        s = Layer ? kbki_group_all<kbki_sum2, Threads, Groups>(s, slots[Threads > 32 ? group : 0][turn])
                  : make_float2(0, kbki_group_all<kbki_sum<float>, Threads, Groups>(
                                       s.y, &slots[Threads > 32 ? group : 0][turn][0].x));
        s.x *= each, s.y *= each;
        r.put(ring, room, dx + row * cols, t, Threads >= 32 || row < rows ? packs : 0, st, s);
        if (!Held) ask(row + Stages * step, ring);
    }
    kbki_ahead_wait<0>();
    static_assert(Width * sums <= 8 * Stages, "the column sums must fit into the buffers of the rows");
    float4* meet = reinterpret_cast<float4*>(kbki_row);
    if (Threads < 32) r.join();
    __syncthreads();
    if (place == 0) r.leave(meet + (Threads < 32 ? threadIdx.x / 32 : group) * fours * sums, t, fours);
    __syncthreads();
    // Not needed for correctness. Without this barrier, racecheck reports a race that does not exist: it confuses
    // barrier 0 with a named barrier that fills while other warps wait at barrier 0.
    if (Threads > 32 && Groups > 1) __syncthreads();
    r.template meet<Meeting>(meet, fours, (int)cols, part + blockIdx.x * (sums * cols));
}

template <class T, bool Layer> struct kbki_dnorm {
    const T *dy, *x, *w;
    const float *mean, *rstd;
    T *dx, *dw, *db;
    int64_t rows, cols;
    unsigned* counters;
    float* part;
    static constexpr int sums = Layer ? 2 : 1; // dw and db, or only dw
};
template <class T>
__global__ void kbki_dnorm_finish_k(const float* sums, T* dw, T* db, int64_t width, int64_t cols) {
    int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    kbki_follow_wait();
    if (c < width) kbki_put_sum<true>(dw, db, cols, c, sums[c]);
}
template <class T, bool Layer> const char* kbki_dnorm_args(const kbk_args* a, kbki_dnorm<T, Layer>* io) {
    char* work = (char*)a->workspace;
    *io = { (const T*)a->in[0],
            (const T*)a->in[1],
            (const T*)a->in[2],
            Layer ? (const float*)a->in[3] : NULL,
            (const float*)a->in[Layer ? 4 : 3],
            (T*)a->out[0],
            (T*)a->out[1],
            Layer ? (T*)a->out[2] : NULL,
            a->s.rows,
            a->s.cols,
            (unsigned*)work,
            (float*)(work + KBK_TICKETS) };
    for (int k = 0; k < 3; k++)
        if (!kbki_aligned(a->in[k], sizeof(T)) || !kbki_aligned(a->out[k], sizeof(T))) return KBKI_TEXT_ALIGN;
    if (!kbki_aligned(io->mean, 4) || !kbki_aligned(io->rstd, 4)) return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(io->rows) || !kbki_grid_ok(2 * io->cols)) return KBKI_TEXT_GRID;
    const char* why = kbki_check_dims(&a->s);
    if (why || io->rows * io->cols == 0) return why;
    return kbki_check_workspace(a, kbki_part_bytes(io->sums * io->cols));
}
template <class T, bool Layer> const char* kbki_dnorm_none(const kbki_dnorm<T, Layer>& io, kbk_stream st) {
    const char* why = kbki_zeros(io.dw, io.cols, st);
    return why ? why : kbki_zeros(io.db, io.cols, st);
}
template <class T, bool Layer> const char* kbki_dnorm_atomic(const kbk_args* a, kbk_stream st) {
    kbki_dnorm<T, Layer> io;
    const char* why = kbki_dnorm_args(a, &io);
    if (why || io.rows * io.cols == 0) return why ? why : kbki_dnorm_none(io, st);
    int64_t width = io.sums * io.cols;
    if (cudaMemsetAsync(io.part, 0, (size_t)width * 4, st) != cudaSuccess) return kbki_launched();
    kbk_layernorm_bwd_atomic_k<T, Layer>
        <<<(unsigned)io.rows, 256, 0, st>>>(io.dy, io.x, io.w, io.mean, io.rstd, io.dx, io.part, io.cols);
    return kbki_follow(kbki_dnorm_finish_k<T>, dim3((unsigned)kbki_ceil(width, 256)), 256, st, io.part, io.dw,
                       io.db, width, io.cols);
}
template <class T, bool Layer> const char* kbki_dnorm_split(const kbk_args* a, kbk_stream st) {
    kbki_dnorm<T, Layer> io;
    const char* why = kbki_dnorm_args(a, &io);
    if (why || io.rows * io.cols == 0) return why ? why : kbki_dnorm_none(io, st);
    kbk_layernorm_bwd_split_k<T, Layer><<<(unsigned)kbki_ceil(io.rows, 4), 128, 0, st>>>(
        io.dy, io.x, io.w, io.mean, io.rstd, io.dx, io.rows, io.cols);
    return kbki_follow(kbki_layernorm_bwd_columns_k<T, Layer>,
                       kbki_columns_grid(io.rows, io.cols, io.sums * io.cols), 1024, st, io.dy, io.x, io.mean,
                       io.rstd, io.dw, io.db, io.part, io.counters, io.rows, io.cols);
}
template <class T, bool Layer> const char* kbki_dnorm_ticket(const kbk_args* a, kbk_stream st) {
    kbki_dnorm<T, Layer> io;
    const char* why = kbki_dnorm_args(a, &io);
    if (why || io.rows * io.cols == 0) return why ? why : kbki_dnorm_none(io, st);
    size_t bytes = (size_t)(io.sums * io.cols) * 4;
    int64_t most = kbki_part_ctas(io.sums * io.cols);
    unsigned ctas = 0;
    why = kbki_resident((const void*)kbk_layernorm_bwd_ticket_k<T, Layer>, 512, bytes,
                        most < io.rows ? most : io.rows, &ctas);
    if (why || !ctas) return why ? why : kbki_dnorm_split<T, Layer>(a, st);
    kbk_layernorm_bwd_ticket_k<T, Layer><<<ctas, 512, bytes, st>>>(io.dy, io.x, io.w, io.mean, io.rstd, io.dx, io.dw,
                                                                   io.db, io.part, io.counters, io.rows, io.cols);
    return kbki_launched();
}
template <class T, bool Layer> const char* kbki_dnorm_onepass(const kbk_args* a, kbk_stream st) {
    constexpr int Stages = Layer && sizeof(T) == 2 ? 3 : 2; // number of prefetch stages for the longest rows
    static const kbki_plan<void(const T* dy, const T* x, const T* w, const float* mean, const float* rstd, T* dx,
                                float* part, int64_t rows, int64_t cols)>
        plans[] = {
            { 8, kbk_layernorm_bwd_onepass_k<T, Layer, 1, 8, 4>, 8, 8 },
            { 16, kbk_layernorm_bwd_onepass_k<T, Layer, 2, 8, 2>, 8, 8 },
            { 32, kbk_layernorm_bwd_onepass_k<T, Layer, 1, 32, 4>, 32, 8 },
            { 64, kbk_layernorm_bwd_onepass_k<T, Layer, 2, 32, 2>, 32, 8 },
            { 128, kbk_layernorm_bwd_onepass_k<T, Layer, 2, 64, 2>, 64, 8 },
            { 256, kbk_layernorm_bwd_onepass_k<T, Layer, 2, 128, 2>, 128, 8 },
            { 512, kbk_layernorm_bwd_onepass_k<T, Layer, 2, 256, 2>, 256, 8 },
            { 1024, kbk_layernorm_bwd_onepass_k<T, Layer, 2, 512, 2>, 512, 8 },
            { 2048, kbk_layernorm_bwd_onepass_k<T, Layer, 4, 512, Stages>, 512, 8 * Stages },
        };
    kbki_dnorm<T, Layer> io;
    const char* why = kbki_dnorm_args(a, &io);
    if (why || io.rows * io.cols == 0) return why ? why : kbki_dnorm_none(io, st);
    int64_t packs = io.cols / KBKI_WIDTH(T), width = io.sums * io.cols, most = kbki_part_ctas(width);
    if (!kbki_whole_packs<T>(io.dy, io.x, io.cols) || !kbki_whole_packs<T>(io.dx, io.w, io.cols) || packs > 2048)
        return kbki_dnorm_ticket<T, Layer>(a, st);
    auto plan = kbki_plan_of(plans, packs);
    int64_t fit = kbki_ceil(io.rows, 512 / plan.threads);
    size_t bytes = (size_t)plan.room * 512 * 16;
    unsigned ctas = 0;
    why = kbki_resident((const void*)plan.kernel, 512, bytes, fit < most ? fit : most, &ctas);
    if (why || !ctas) return why ? why : kbki_dnorm_ticket<T, Layer>(a, st);
    plan.kernel<<<ctas, 512, bytes, st>>>(io.dy, io.x, io.w, io.mean, io.rstd, io.dx, io.part, io.rows, io.cols);
    return kbki_follow(kbki_part_add_k<T>, dim3((unsigned)kbki_ceil(width, 32)), 512, st, io.part, io.dw, io.db,
                       ctas, width, io.cols);
}
KBKI_LAUNCHER(kbk_layernorm_bwd_atomic, kbki_dnorm_atomic<T, true>)
KBKI_LAUNCHER(kbk_layernorm_bwd_split, kbki_dnorm_split<T, true>)
KBKI_LAUNCHER(kbk_layernorm_bwd_ticket, kbki_dnorm_ticket<T, true>)
KBKI_LAUNCHER(kbk_layernorm_bwd_onepass, kbki_dnorm_onepass<T, true>)
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>rmsnorm     RMS normalisation over the last axis: the kernels of >>layernorm and >>layernorm_bwd with the
                mean and the bias left out at compile time (their template parameter Layer = false).
-----------------------------------------------------------------*/

/*  rmsnorm fwd ----------------------------------------------------------------------------------------------
    y[r,c] = x[r,c] * rstd[r] * w[c]     rstd[r] = 1 / sqrt(mean_c(x^2) + eps), eps 1e-5
    x, y: R x C   w: C   rstd: R, f32, written if the pointer is not NULL
    flops  4*R*C + 3*R   square-add 2, scale 1, weight 1 per element; per row 1/C, +eps, rsqrt
    bytes  (2*R*C + C)*s + 4*R
    check  norm-wise f32 3e-6, f16 3e-4, bf16 2.5e-3; 64 ulp of the row scale in f32, 2 ulp at 16 bits
    1 naive    thread per row                            <- slow: not coalesced, two reads
    2 warp     warp per row, shuffles                    <- coalesced; two reads, the second from cache
    3 onepass  16-byte accesses, row in registers        <- one read, up to 32768 elements; longer rows take two
    4 persist  persistent kernel; w stays in registers; cp.async prefetches the next rows into shared memory
                                                         <- w read once per CTA; up to 2048 vectors of 16 bytes.
                                                            No gain: occupancy is 47 % instead of 92 %
    5 cluster  row split over 2, 4 or 8 CTAs             <- one read, up to 512 KiB per row; more SMs for few rows.
                                                            Slower for many short rows: 24 % occupancy, DRAM 75 %
    bound by   memory: compare with bytes / copy bandwidth. One reduction per row; layernorm needs two
    predict    before you run it: which of the kernels of layernorm gains most when mean and bias are left out?
    see        Zhang & Sennrich 2019, "Root Mean Square Layer Normalization" */
/*  measured rmsnorm fwd: f32 8192 x 4096, NVIDIA H100 80GB HBM3, 2026-11-27
    0.500 FLOP/B; floor on an H200 62.8 us = 268.5 MB / 4.276 TB/s; on this GPU 88.0 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
    1 naive    1122 us   9 %      -   32  6 % 11 %         0  thread per row, two uncoalesced passes
    2 warp    162.0 us  60 % 6.93 x   32 89 % 71 %         0  warp per row, shuffles, re-reads from cache
    3 onepass  84.6 us 115 % 1.91 x   32 92 % 88 %     164 k  16-byte loads, row in registers, one read
    4 persist  86.3 us 113 % 0.98 x   58 47 % 86 %      15 k  w in registers, next rows prefetched
    5 cluster  99.4 us  98 % 0.87 x   60 24 % 75 %      4678  row split over a cluster, up to 512 KiB
    end of measured */
KBKI_TENSORS(rmsnorm_fwd, 4, t[0] = kbki_in("x", n, cols), t[1] = kbki_in("w", cols, 0),
             t[2] = kbki_out("y", KBK_T, n, cols, 0), t[3] = kbki_out("rstd", KBK_KF32, rows, 1, 0),
             t[3].optional = 1)
KBKI_FORMULAS(rmsnorm_fwd, s->cols ? s->rows : 0, 4 * n + 3 * rows, (2 * n + cols) * elem + 4 * rows)
KBKI_REF(rmsnorm_fwd) {
    int64_t n = s->cols;
    for (int64_t r = u0; r < u1; r++) {
        const double* x = in[0] + r * n;
        double sum = 0;
        for (int64_t c = 0; c < n; c++) sum += x[c] * x[c];
        double rstd = 1 / sqrt(sum / (double)n + KBK_EPS);
        for (int64_t c = 0; out[0] && c < n; c++) out[0][(r - u0) * n + c] = x[c] * rstd * in[1][c];
        if (out[1]) out[1][r - u0] = rstd;
    }
}

/*  rmsnorm bwd ----------------------------------------------------------------------------------------------
    xhat = x * rstd     g = dy * w     dx = (g - xhat * mean_c(g * xhat)) * rstd     dw[c] = sum_r dy * xhat
    dy, x, dx: R x C   w, dw: C   rstd: R, f32
    flops  9*R*C + R     xhat 1, g 1, its sum with xhat 2, dx 3, dw 2; per row 1/C
    bytes  (3*R*C + 2*C)*s + 4*R
    check  as layernorm bwd
    1 atomic   CTA per row, one atomic per element for dw         <- slow: R atomics are serialised in each column
    2 split    dx by a warp per row, then column sums by tiles    <- no contention; x and dy are read twice
    3 ticket   persistent CTAs with column sums in shared memory, added by the last CTAs in index order
               <- one launch, the same bits every time; the second read of a row comes from the caches
    4 onepass  rows and column sums stay in registers; the next rows are prefetched into shared memory
               <- one read, and memory is always busy; up to 32 KiB per row, otherwise as ticket
    bound by   memory: compare with bytes / copy bandwidth
    predict    before you run it: one sum per column instead of two. Does rung 4 become faster, if memory limits it?
    see        as rmsnorm fwd */
/*  measured rmsnorm bwd: f32 8192 x 4096, NVIDIA H100 80GB HBM3, 2026-11-27
    0.750 FLOP/B; floor on an H200 94.2 us = 402.7 MB / 4.276 TB/s; on this GPU 132.0 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
    1 atomic  238.0 us  63 %      -   32 89 % 63 %      11 k  one atomic per element
    2 split   364.8 us  41 % 0.65 x   31 92 % 77 %      15 k  dx, then column sums: inputs are read twice
    3 ticket  178.8 us  84 % 2.04 x   40 60 % 66 %      11 k  column sums per CTA, added in index order
    4 onepass 129.5 us 115 % 1.38 x   84 45 % 90 %     138 k  one read, rows and sums in registers
    end of measured */
KBKI_TENSORS(rmsnorm_bwd, 6, t[0] = kbki_in("dy", n, cols), t[1] = kbki_in("x", n, cols),
             t[2] = kbki_in("w", cols, 0), t[3] = kbki_in("rstd", rows, 1), t[3].kind = KBK_KF32,
             t[3].fill = KBK_UNIFORM, t[3].a = 0.5, t[3].b = 1.5, t[4] = kbki_out("dx", KBK_T, n, cols, 1),
             t[5] = kbki_out("dw", KBK_T, cols, 0, cols))
KBKI_FORMULAS(rmsnorm_bwd, s->cols ? s->rows : 0, 9 * n + rows, (3 * n + 2 * cols) * elem + 4 * rows)
KBKI_REF(rmsnorm_bwd) {
    int64_t n = s->cols;
    double size = 0;
    for (int64_t r = u0; r < u1; r++) {
        kbki_norm_bwd_row(n, in[0] + r * n, in[1] + r * n, in[2], 0, in[3][r], 0,
                          out[0] ? out[0] + (r - u0) * n : NULL, &size);
        if (out[KBK_OUTS]) out[KBK_OUTS][r - u0] = elem == 4 ? size : 0.001 * size;
    }
    kbki_norm_bwd_columns(s, in[0], in[1], NULL, in[3], out[1], NULL, 0);
    kbki_norm_bwd_columns(s, in[0], in[1], NULL, in[3], out[KBK_OUTS + 1], NULL, elem == 4 ? 1 : 0.01);
}
KBKI_SCRATCH(rmsnorm_bwd) { return kbki_part_bytes(s->cols); }

#ifdef __CUDACC__
KBKI_LAUNCHER(kbk_rmsnorm_fwd_naive, kbki_norm_naive<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_fwd_warp, kbki_norm_warp<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_fwd_onepass, kbki_norm_onepass<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_fwd_persist, kbki_norm_persist<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_fwd_cluster, kbki_norm_cluster<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_bwd_atomic, kbki_dnorm_atomic<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_bwd_split, kbki_dnorm_split<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_bwd_ticket, kbki_dnorm_ticket<T, false>)
KBKI_LAUNCHER(kbk_rmsnorm_bwd_onepass, kbki_dnorm_onepass<T, false>)
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>reduction     The sum of n numbers: reductions within warps, CTAs and the grid.
-----------------------------------------------------------------*/

/*  sum run --------------------------------------------------------------------------------------------------
    out = sum_i x[i]      x: n = rows * cols     out: one f32; n = 0: 0
    flops  n
    bytes  n*s + 4
    check  1e-6 of sum_i |x[i]|, which the oracle returns as the magnitude
    1 atomic   one atomic per thread            <- slow: all atomics are serialised at one address. The sum is in
               f64, because an f32 sum stops growing at 2^24 times a term
    2 shared   sum per CTA, tree in shared memory (Harris 2007, "Optimizing Parallel Reduction in CUDA")
                                                <- one atomic per CTA; but a barrier for every halving
    3 warp     shuffles instead of the tree     <- no shared memory and no barrier: one atomic per warp
    4 ticket   16-byte loads, several in flight; partial sums in memory, added in index order by the last CTA
                                                <- one launch, no atomic addition, the same bits every time
    predict    from the DRAM share of rung 2: how much can rungs 3 and 4 gain at most? */
/*  measured sum run: f32 65536 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.250 FLOP/B; floor on an H200 251.1 us = 1.074 GB / 4.276 TB/s; on this GPU 352.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 atomic 472.0 ms   0 %      -   10 77 %  0 %         0  one atomic per thread
    2 shared 355.0 us 113 % 1330 x   22 99 % 91 %       883  tree per CTA, one atomic per CTA
    3 warp   356.2 us 113 % 1.00 x   24 97 % 90 %         0  shuffles, one atomic per warp
    4 ticket 345.3 us 116 % 1.03 x   44 52 % 93 %       211  16-byte loads, last CTA adds partial sums
    end of measured */
#define KBKI_SUM_CTAS 4096 // largest number of partial sums
KBKI_TENSORS(sum_run, 2, t[0] = kbki_in("x", n, 0), t[1] = kbki_out("out", KBK_KF32, 1, 1, 1))
KBKI_FORMULAS(sum_run, 1, n, 1 * n * elem + 4)
KBKI_SCRATCH(sum) { return KBK_TICKETS + KBKI_SUM_CTAS * sizeof(uint64_t); }
KBKI_REF(sum_run) {
    double sum = 0, magnitude = 0;
    int64_t n = s->rows * s->cols;
    for (int64_t i = 0; i < n; i++) sum += in[0][i], magnitude += fabs(in[0][i]);
    if (u0 >= u1) return;
    if (out[0]) out[0][0] = sum;
    if (out[KBK_OUTS]) out[KBK_OUTS][0] = magnitude;
}

#ifdef __CUDACC__
template <class T> __global__ void kbk_sum_run_atomic_k(const T* x, int64_t n, double* total) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    kbki_follow_me();
    if (i < n) atomicAdd(total, (double)kbki_float(x[i]));
}
template <class T>
__global__ void __launch_bounds__(256) kbk_sum_run_shared_k(const T* x, int64_t n, double* total) {
    __shared__ float s[256];
    int64_t first = (int64_t)blockIdx.x * 256 + threadIdx.x, step = (int64_t)gridDim.x * 256;
    float sum = 0;
    kbki_follow_me();
    for (int64_t i = first; i < n; i += step) sum += kbki_float(x[i]);
    sum = kbki_tree<kbki_sum<float>, 256>(sum, s);
    if (threadIdx.x == 0) atomicAdd(total, (double)sum);
}
template <class T>
__global__ void __launch_bounds__(256) kbk_sum_run_warp_k(const T* x, int64_t n, double* total) {
    int64_t first = (int64_t)blockIdx.x * 256 + threadIdx.x, step = (int64_t)gridDim.x * 256;
    float sum = 0;
    kbki_follow_me();
    for (int64_t i = first; i < n; i += step) sum += kbki_float(x[i]);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) atomicAdd(total, (double)sum);
}
template <class T> __global__ void kbki_total_k(const double* total, double count, T* out) {
    kbki_follow_wait();
    *out = (float)(*total / count);
}

// ---- The kernels that add one idea each end here.

/*  Adds x, or (x - y)^2 if Inputs = 2, and divides by `count`. Each thread has U vectors of each input in flight.
    Share: threads that read inputs. The last warp takes the CTA's ticket and helps to add the partial sums. */
template <class T, int Inputs, int Width, int U, int Share>
__global__ void __launch_bounds__(Share + 32)
    kbk_sum_run_ticket_k(const T* x, const T* y, int64_t n, double count, float* out, unsigned* counter,
                         unsigned long long* partial) {
    constexpr int Threads = Share + 32;
    __shared__ double slots[32];
    const unsigned number = kbki_slot_number(counter, partial);
    const kbki_span sp = kbki_split<T, Width>(x, n);
    const int64_t one = blockIdx.x ? -1 : kbki_single(sp, n, threadIdx.x);
    int64_t first = threadIdx.x < Share ? (int64_t)blockIdx.x * (Share * U) + threadIdx.x : sp.packs;
    kbki_long_sum sum;
    auto term = [](float a, float b) { return Inputs == 1 ? a : (a - b) * (a - b); };
    if (one >= 0) sum.add(term(kbki_float(x[one]), Inputs == 1 ? 0 : kbki_float(y[one])));
    for (int64_t i = first; i < sp.packs; i += (int64_t)gridDim.x * (Share * U)) {
        kbki_pack<T, Width> v[U], w[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int64_t at = sp.head + (i + u * Share) * Width;
            v[u].fill(0), w[u].fill(0);
            if (i + u * Share < sp.packs) v[u].load(x + at);
            if (Inputs == 2 && i + u * Share < sp.packs) w[u].load(y + at);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            float f[Width], g[Width], part = 0;
            v[u].get(f), w[u].get(g);
#pragma unroll
            for (int k = 0; k < Width; k++) part += term(f[k], g[k]);
            // a vector is summed first: small terms added to a large sum often round in the same direction
            sum.add(part);
        }
    }
    double all = 0;
    auto add = [&](float part) { all += part; };
    if (!kbki_by_slots<kbki_sum<float>, Threads>(sum.get(), number, counter, partial, add)) return;
    all = kbki_all<kbki_sum<double>, Threads>(all, slots);
    if (threadIdx.x == 0) *out = (float)(all / count);
}

// y is NULL if x is the only input.
template <class T> const char* kbki_total_check(const kbk_args* a, const void* y) {
    const int64_t n = a->s.rows * a->s.cols;
    if (!kbki_aligned(a->in[0], sizeof(T)) || !kbki_aligned(y, sizeof(T)) || !kbki_aligned(a->out[0], 4))
        return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(kbki_ceil(n, 256))) return KBKI_TEXT_GRID;
    const char* why = kbki_check_dims(&a->s);
    return why || n == 0 ? why : kbki_check_workspace(a, kbki_scratch_sum(&a->s, (int)sizeof(T), 0));
}
// Sets the total to 0, adds by atomics with at most `full` CTAs, and rounds to f32. y: the second input of mse.
template <class T, class Kernel, class... In>
const char* kbki_total_atomics(const kbk_args* a, kbk_stream st, Kernel* kernel, int64_t full, In... y) {
    constexpr bool Mean = sizeof...(In) > 0;
    const int64_t n = a->s.rows * a->s.cols, ctas = kbki_ceil(n, 256);
    const char* why = kbki_total_check<T>(a, Mean ? a->in[1] : NULL);
    if (why || n == 0) return why || Mean ? why : kbki_zeros((float*)a->out[0], 1, st);
    double* total = (double*)((char*)a->workspace + KBK_TICKETS);
    if (cudaMemsetAsync(total, 0, sizeof *total, st) != cudaSuccess) return kbki_launched();
    kernel<<<(unsigned)(ctas < full ? ctas : full), 256, 0, st>>>((const T*)a->in[0], y..., n, total);
    return kbki_follow(kbki_total_k<float>, dim3(1), 1, st, total, Mean ? (double)n : 1.0, (float*)a->out[0]);
}
template <class T, int Inputs, int Width, int U, int Share = 512>
const char* kbki_total_ticket(const kbk_args* a, int64_t ctas, double count, kbk_stream st) {
    const int64_t n = a->s.rows * a->s.cols, pieces = kbki_ceil(n, Share * U * Width);
    char* w = (char*)a->workspace;
    kbk_sum_run_ticket_k<T, Inputs, Width, U, Share><<<(unsigned)kbki_even(pieces, ctas), Share + 32, 0, st>>>(
        (const T*)a->in[0], (const T*)a->in[1], n, count, (float*)a->out[0], (unsigned*)w,
        (unsigned long long*)(w + KBK_TICKETS));
    return kbki_launched();
}
template <class T> const char* kbk_sum_run_atomic(const kbk_args* a, kbk_stream st) {
    return kbki_total_atomics<T>(a, st, kbk_sum_run_atomic_k<T>, 0x7FFFFFFF);
}
template <class T> const char* kbk_sum_run_shared(const kbk_args* a, kbk_stream st) {
    return kbki_total_atomics<T>(a, st, kbk_sum_run_shared_k<T>, (int64_t)kbki_sms() * 8);
}
template <class T> const char* kbk_sum_run_warp(const kbk_args* a, kbk_stream st) {
    return kbki_total_atomics<T>(a, st, kbk_sum_run_warp_k<T>, (int64_t)kbki_sms() * 8);
}
template <class T> const char* kbk_sum_run_ticket(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    const char* why = kbki_total_check<T>(a, NULL);
    if (why || a->s.rows * a->s.cols == 0) return why ? why : kbki_zeros((float*)a->out[0], 1, st);
    const int64_t sms = kbki_sms() < KBKI_SUM_CTAS / 4 ? kbki_sms() : KBKI_SUM_CTAS / 4;
    const int64_t packs = kbki_ceil(a->s.rows * a->s.cols, Width);
    // U grows until all loads of a small tensor are in flight at the same time
    if (packs <= sms * 512) return kbki_total_ticket<T, 1, Width, 1>(a, sms, 1, st);
    if (packs <= sms * 1024) return kbki_total_ticket<T, 1, Width, 2>(a, sms, 1, st);
    if (packs <= sms * 4096) return kbki_total_ticket<T, 1, Width, 4>(a, sms * 2, 1, st);
    // 16-bit elements take time to convert, so an SM has more CTAs, and a thread fewer vectors, than for f32
    if constexpr (sizeof(T) == 4)
        return kbki_total_ticket<T, 1, Width, 8>(a, sms * 2, 1, st);
    else
        return kbki_total_ticket<T, 1, Width, 2, 480>(a, sms * 4, 1, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>mse     Mean squared error: a reduction of many numbers to one.
-----------------------------------------------------------------*/

/*  mse fwd --------------------------------------------------------------------------------------------------
    out = mean_i (x[i] - y[i])^2      x, y: n = rows * cols     out: one f32; n = 0: not written (no mean)
    flops  3*n + 1     subtract 1, square-add 2; one division
    bytes  2*n*s + 4
    check  relative 1e-6
    1 atomic   one atomic per thread          <- slow: all atomics are serialised at one address; f64, as in sum
    2 block    sum per CTA in shared memory   <- one atomic per CTA; the order of additions is not fixed
    3 ticket   the kernel of sum with two inputs: 16-byte loads, partial sums added in index order by the last CTA
                                              <- one launch, and the same bits every time
    predict    rung 2 loads 2 bytes per thread and input. By how much do 16-byte loads raise the DRAM share, if the
               occupancy falls from 99 % to 78 %? (Little's law: bytes in flight = bandwidth * latency)
    see        Higham 1993, "The Accuracy of Floating Point Summation": explains why each vector is summed first */
/*  measured mse fwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.750 FLOP/B; floor on an H200 125.6 us = 536.9 MB / 4.276 TB/s; on this GPU 176.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 atomic 235.9 ms   0 %      -   12 78 %  0 %         0  one atomic per thread
    2 block  259.1 us  78 %  910 x   18 99 % 62 %       363  sum per CTA, one atomic per CTA
    3 ticket 173.6 us 116 % 1.49 x   32 78 % 93 %       443  16-byte loads, last CTA adds partial sums
    end of measured */
KBKI_TENSORS(mse_fwd, 3, t[0] = kbki_in("x", n, 0), t[1] = kbki_in("y", n, 0),
             t[2] = kbki_out("out", KBK_KF32, 1, 1, 0))
KBKI_FORMULAS(mse_fwd, s->rows && s->cols ? 1 : 0, 3 * n + 1, 2 * n * elem + 4)
KBKI_REF(mse_fwd) {
    double sum = 0;
    int64_t n = s->rows * s->cols;
    for (int64_t i = 0; i < n; i++) sum += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
    if (u0 < u1) out[0][0] = sum / (double)n;
}

#ifdef __CUDACC__
template <class T> __global__ void kbk_mse_fwd_atomic_k(const T* x, const T* y, int64_t n, double* total) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    kbki_follow_me();
    if (i >= n) return;
    float d = kbki_float(x[i]) - kbki_float(y[i]);
    atomicAdd(total, (double)(d * d));
}
template <class T>
__global__ void __launch_bounds__(256) kbk_mse_fwd_block_k(const T* x, const T* y, int64_t n, double* total) {
    __shared__ float s[256];
    kbki_long_sum mine;
    int64_t first = (int64_t)blockIdx.x * 256 + threadIdx.x, step = (int64_t)gridDim.x * 256;
    kbki_follow_me();
    for (int64_t i = first; i < n; i += step) {
        float d = kbki_float(x[i]) - kbki_float(y[i]);
        mine.add(d * d);
    }
    float sum = kbki_tree<kbki_sum<float>, 256>(mine.get(), s);
    if (threadIdx.x == 0) atomicAdd(total, (double)sum);
}

// ---- The kernels that add one idea each end here.

template <class T> const char* kbk_mse_fwd_atomic(const kbk_args* a, kbk_stream st) {
    return kbki_total_atomics<T>(a, st, kbk_mse_fwd_atomic_k<T>, 0x7FFFFFFF, (const T*)a->in[1]);
}
template <class T> const char* kbk_mse_fwd_block(const kbk_args* a, kbk_stream st) {
    return kbki_total_atomics<T>(a, st, kbk_mse_fwd_block_k<T>, (int64_t)kbki_sms() * 8, (const T*)a->in[1]);
}
template <class T> const char* kbk_mse_fwd_ticket(const kbk_args* a, kbk_stream st) {
    const char* why = kbki_total_check<T>(a, a->in[1]);
    const int64_t full = (int64_t)kbki_sms() * 3, ctas = full < KBKI_SUM_CTAS ? full : KBKI_SUM_CTAS;
    if (why || a->s.rows * a->s.cols == 0) return why;
    if (!kbki_congruent(a->in[0], a->in[1])) return kbki_total_ticket<T, 2, 1, 2>(a, ctas, kbki_n(&a->s), st);
    return kbki_total_ticket<T, 2, KBKI_WIDTH(T), 2>(a, ctas, kbki_n(&a->s), st);
}
#endif // __CUDACC__

/*  mse bwd --------------------------------------------------------------------------------------------------
    dx[i] = (2 g / n) (x[i] - y[i])      x, y, dx: n = rows * cols     g: one f32
    flops  2*n + 2     subtract 1, scale 1; once per tensor: 2 g and / n
    bytes  3*n*s + 4
    check  2 ulp; norm-wise f32 1e-6, f16 3e-4, bf16 2.5e-3
    1 naive    one element per thread           <- slow: 4 or 2 bytes in flight per thread and input
    2 unroll   two 16-byte vectors per input    <- 64 bytes in flight per thread; a new CTA for every 512 vectors,
               so that stores of one CTA overlap with loads of the next. If inputs and dx have different
               alignments modulo 16 bytes, rung 1 runs
    predict    how do loads of 16 bytes instead of 2 change the DRAM share, and the number of load instructions? */
/*  measured mse bwd: bf16 32768 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    0.333 FLOP/B; floor on an H200 188.3 us = 805.3 MB / 4.276 TB/s; on this GPU 264.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive  419.7 us  72 %      -   14 78 % 57 %         0  one element per thread
    2 unroll 258.2 us 118 % 1.63 x   30 86 % 91 %         0  two 16-byte vectors per input in flight
    end of measured */
KBKI_TENSORS(mse_bwd, 4, t[0] = kbki_in("x", n, 1), t[1] = kbki_in("y", n, 1), t[2] = kbki_in("g", 1, 0),
             t[2].kind = KBK_KF32, t[3] = kbki_out("dx", KBK_T, n, 1, 0))
KBKI_FORMULAS(mse_bwd, s->rows * s->cols, 2 * n + 2, 3 * n * elem + 4)
KBKI_REF(mse_bwd) {
    double c = 2 * in[2][0] / ((double)s->rows * (double)s->cols);
    for (int64_t i = u0; i < u1; i++) out[0][i - u0] = c * (in[0][i] - in[1][i]);
}

#ifdef __CUDACC__
template <class T>
__global__ void kbk_mse_bwd_naive_k(const T* x, const T* y, const float* g, T* dx, int64_t n, double two_over_n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float c = (float)(two_over_n * *g);
    if (i < n) dx[i] = kbki_type<T>::from(c * (kbki_float(x[i]) - kbki_float(y[i])));
}

// ---- The kernels that add one idea each end here.

template <class T, int U, int Width = KBKI_WIDTH(T)>
__global__ void __launch_bounds__(256)
    kbk_mse_bwd_unroll_k(const T* x, const T* y, const float* g, T* dx, int64_t n, double two_over_n) {
    kbki_pack<T, Width> v[U], w[U];
    const kbki_span sp = kbki_split<T, Width>(dx, n);
    const int64_t first = (int64_t)blockIdx.x * (256 * U) + threadIdx.x;
    const int64_t one = blockIdx.x ? -1 : kbki_single(sp, n, threadIdx.x);
#pragma unroll
    for (int u = 0; u < U; u++) {
        int64_t at = sp.head + (first + u * 256) * Width;
        if (first + u * 256 < sp.packs) v[u].load_cached(x + at), w[u].load_cached(y + at);
    }
    float c = (float)(two_over_n * __ldg(g));
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + u * 256 >= sp.packs) continue;
        float f[Width], h[Width];
        v[u].get(f), w[u].get(h);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = c * (f[k] - h[k]);
        v[u].set(f);
        v[u].store_cached(dx + sp.head + (first + u * 256) * Width);
    }
    if (one >= 0) dx[one] = kbki_type<T>::from(c * (kbki_float(x[one]) - kbki_float(y[one])));
}

template <class T>
const char* kbki_mse_bwd(const kbk_args* a, kbk_stream st, int per_cta,
                         void (*kernel)(const T*, const T*, const float*, T*, int64_t, double)) {
    const int64_t n = a->s.rows * a->s.cols;
    const char* why = kbki_check_dims(&a->s);
    if (!kbki_aligned(a->in[0], sizeof(T)) || !kbki_aligned(a->in[1], sizeof(T))) return KBKI_TEXT_ALIGN;
    if (!kbki_aligned(a->out[0], sizeof(T)) || !kbki_aligned(a->in[2], 4)) return KBKI_TEXT_ALIGN;
    if (why || n == 0) return why;
    if (!kbki_grid_ok(kbki_ceil(n, per_cta))) return KBKI_TEXT_GRID;
    kernel<<<(unsigned)kbki_ceil(n, per_cta), 256, 0, st>>>(
        (const T*)a->in[0], (const T*)a->in[1], (const float*)a->in[2], (T*)a->out[0], n, 2.0 / (double)n);
    return kbki_launched();
}
template <class T> const char* kbk_mse_bwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_mse_bwd(a, st, 256, kbk_mse_bwd_naive_k<T>);
}
template <class T> const char* kbk_mse_bwd_unroll(const kbk_args* a, kbk_stream st) {
    constexpr int U = 2;
    if (!kbki_congruent(a->in[0], a->out[0]) || !kbki_congruent(a->in[1], a->out[0]))
        return kbk_mse_bwd_naive<T>(a, st);
    return kbki_mse_bwd(a, st, 256 * U * KBKI_WIDTH(T), kbk_mse_bwd_unroll_k<T, U>);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>wsum     Weighted sum of each row: a matrix-vector product.
-----------------------------------------------------------------*/

/*  weighted_sum fwd -----------------------------------------------------------------------------------------
    y[r] = sum_c x[r,c] * w[c]      x: R x C   w: C   y: R
    flops  2*R*C     multiply-add
    bytes  (R*C + R + C)*s
    check  f32 1e-6 of sum_c |x w|; 16 bits: 1 ulp more
    1 naive    thread per row              <- slow: not coalesced; neighbouring threads read C elements apart
    2 split    two kernels: products to memory, then row sums
                                           <- coalesced. Slower: three times the compulsory traffic (16 bits: five
               times, because products are kept in f32)
    3 matmul   a GEMM with one column      <- no intermediate. Slower: 31 of 32 columns of a tile are padding, so
               DRAM is almost idle. A GEMM is the wrong tool for a matrix-vector product
    4 warp     warp per row, shuffles      <- one read of x, coalesced; no other traffic
    5 vec      16-byte loads of several rows in flight; each vector of w is loaded once for these rows; short rows
               share a warp, and a long row has a CTA of its own
                                           <- enough bytes in flight, few instructions. Each CTA has few rows and ends
               soon, so at any time all CTAs together read one contiguous part of memory
    predict    from the intensity: what share of the f32 rate can any rung reach?
    see        gemv of cuBLAS; Fujimoto 2008, "Faster Matrix-Vector Multiplication on GeForce 8800GTX" */
/*  measured weighted_sum fwd: f32 65536 x 4096, NVIDIA H100 80GB HBM3, 2026-11-27
    0.500 FLOP/B; floor on an H200 251.2 us = 1.074 GB / 4.276 TB/s; on this GPU 352.1 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive   1101 us  37 %      -   24 24 % 29 %         0  thread per row, uncoalesced
    2 split   1234 us  33 % 0.89 x   30 97 % 78 %      3244  two kernels: products to memory, row sums
    3 matmul  2703 us  15 % 0.46 x   32 97 % 12 %    1000 k  a GEMM with one column, mostly padding
    4 warp   355.6 us 114 % 7.60 x   32 93 % 90 %       485  warp per row, shuffles, one read
    5 vec    337.0 us 121 % 1.06 x   32 97 % 95 %     125 k  16-byte loads, several rows in flight
    end of measured */
KBKI_TENSORS(weighted_sum_fwd, 3, t[0] = kbki_in("x", n, cols), t[1] = kbki_in("w", cols, 0),
             t[2] = kbki_out("y", KBK_T, rows, 1, 1))
KBKI_FORMULAS(weighted_sum_fwd, s->rows, 2 * n, (n + rows + cols) * elem)
KBKI_REF(weighted_sum_fwd) {
    for (int64_t r = u0; r < u1; r++) {
        const double* x = in[0] + r * s->cols;
        double sum = 0, size = 0;
        for (int64_t c = 0; c < s->cols; c++) sum += x[c] * in[1][c], size += fabs(x[c] * in[1][c]);
        if (out[0]) out[0][r - u0] = sum;
        if (out[KBK_OUTS]) out[KBK_OUTS][r - u0] = elem == 4 ? size : 0.002 * size;
    }
}

KBKI_SCRATCH(weighted_sum_fwd) {
    return word != KBKI_WORD_split ? 0 : KBK_TICKETS + (size_t)s->rows * (size_t)s->cols * 4;
}
#ifdef __CUDACC__
template <class T>
__global__ void kbk_weighted_sum_fwd_naive_k(const T* x, const T* w, T* y, int64_t rows, int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int64_t c = 0; c < cols; c++) sum = fmaf(kbki_float(x[row * cols + c]), kbki_float(w[c]), sum);
    y[row] = kbki_type<T>::from(sum);
}

// Factors per column (w), or per row (dy) if ByRow. Products in 16 bits would make their sum inaccurate.
template <class T, bool ByRow>
__global__ void kbki_wsum_product_k(const T* x, const T* factor, float* product, int64_t n, int64_t cols) {
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    kbki_follow_me();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        product[i] = kbki_float(x[i]) * kbki_float(ByRow ? factor[i / cols] : factor[i % cols]);
}
template <class T>
__global__ void __launch_bounds__(128) kbki_wsum_rows_k(const float* product, T* y, int64_t rows, int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    kbki_follow_wait();
    if (row >= rows) return;
    float sum = 0;
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32) sum += product[row * cols + c];
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) y[row] = kbki_type<T>::from(sum);
}

template <class T>
__global__ void __launch_bounds__(128)
    kbk_weighted_sum_fwd_warp_k(const T* x, const T* w, T* y, int64_t rows, int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0;
    for (int64_t c = threadIdx.x % 32; c < cols; c += 32)
        sum = fmaf(kbki_float(x[row * cols + c]), kbki_float(w[c]), sum);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) y[row] = kbki_type<T>::from(sum);
}

// ---- The kernels that add one idea each end here.

// A thread loads U vectors of each of its Rows rows before it uses the first. A vector of w serves all Rows rows.
template <class T, int Width, int Lanes, int Rows, int U>
__global__ void __launch_bounds__(Lanes > 128 ? Lanes : 128)
    kbk_weighted_sum_fwd_vec_k(const T* x, const T* w, T* y, int64_t rows, int64_t cols) {
    constexpr int Share = (Lanes > 128 ? Lanes : 128) / Lanes * Rows; // rows of a CTA at a time
    __shared__ float slots[32];
    const int lane = threadIdx.x % Lanes;
    const int64_t packs = cols / Width;
    for (int64_t first = (int64_t)blockIdx.x * Share; first < rows; first += (int64_t)gridDim.x * Share) {
        const int64_t row = first + threadIdx.x / Lanes * Rows;
        float sum[Rows] = {}, mine = 0;
        for (int64_t i = lane; i < packs; i += U * Lanes) {
            kbki_pack<T, Width> v[U][Rows], factor;
#pragma unroll
            for (int u = 0; u < U; u++)
#pragma unroll
                for (int r = 0; r < Rows; r++) {
                    v[u][r].fill(0);
                    if (row + r < rows && i + u * Lanes < packs)
                        v[u][r].load(x + (row + r) * cols + (i + u * Lanes) * Width);
                }
#pragma unroll
            for (int u = 0; u < U; u++) {
                float f[Width], g[Width];
                if (i + u * Lanes >= packs) continue;
                factor.load_cached(w + (i + u * Lanes) * Width);
                factor.get(g);
#pragma unroll
                for (int r = 0; r < Rows; r++) {
                    v[u][r].get(f);
#pragma unroll
                    for (int k = 0; k < Width; k++) sum[r] = fmaf(f[k], g[k], sum[r]);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            sum[r] = kbki_all<kbki_sum<float>, Lanes>(sum[r], slots);
            if (lane == r) mine = sum[r];
        }
        if (lane < Rows && row + lane < rows) y[row + lane] = kbki_type<T>::from(mine);
    }
}

template <class T> const char* kbk_matmul_fwd_coalesced(const kbk_args* a, kbk_stream st);
template <class T> const char* kbk_matmul_fwd_shared(const kbk_args* a, kbk_stream st);

template <class T> struct kbki_wsum {
    const T *x, *w, *dy;
    T *y, *dx, *dw;
    int64_t rows, cols, n;
    unsigned* counters;
    float *part, *product;
    bool done; // true if the launcher has nothing to launch
    const char* get(const kbk_args* a, bool bwd, size_t scratch, kbk_stream st) {
        char* work = (char*)a->workspace;
        x = (const T*)a->in[bwd], w = (const T*)a->in[1 + bwd], dy = (const T*)a->in[0];
        y = dx = (T*)a->out[0], dw = bwd ? (T*)a->out[1] : NULL;
        rows = a->s.rows, cols = a->s.cols, n = rows * cols, counters = (unsigned*)work;
        part = (float*)(work + KBK_TICKETS);
        product = (float*)(work + (bwd ? (kbki_part_bytes(cols) + 255) / 256 * 256 : KBK_TICKETS));
        const char* why = kbki_check_dims(&a->s);
        done = true;
        for (int k = 0; k < 3; k++)
            if (!kbki_aligned(a->in[k], sizeof(T)) || !kbki_aligned(a->out[k], sizeof(T))) return KBKI_TEXT_ALIGN;
        if (!kbki_grid_ok(rows) || !kbki_grid_ok(cols)) return KBKI_TEXT_GRID;
        if (why || n == 0) return why ? why : kbki_zeros(bwd ? dw : y, bwd ? cols : rows, st);
        if (scratch) why = kbki_check_workspace(a, scratch);
        return done = why != NULL, why;
    }
    unsigned grid() const {
        int64_t most = (int64_t)kbki_sms() * 8, ctas = kbki_ceil(n, 256);
        return (unsigned)(ctas < most ? ctas : most);
    }
};
template <class T, class Kernel>
const char* kbki_wsum_plain(const kbk_args* a, kbk_stream st, Kernel* kernel, int rows_per_cta) {
    kbki_wsum<T> io;
    const char* why = io.get(a, false, 0, st);
    if (io.done) return why;
    kernel<<<(unsigned)kbki_ceil(io.rows, rows_per_cta), 128, 0, st>>>(io.x, io.w, io.y, io.rows, io.cols);
    return kbki_launched();
}
template <class T> const char* kbk_weighted_sum_fwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_wsum_plain<T>(a, st, kbk_weighted_sum_fwd_naive_k<T>, 128);
}
template <class T> const char* kbk_weighted_sum_fwd_split(const kbk_args* a, kbk_stream st) {
    kbki_wsum<T> io;
    const char* why = io.get(a, false, kbki_scratch_weighted_sum_fwd(&a->s, (int)sizeof(T), KBKI_WORD_split), st);
    if (io.done) return why;
    kbki_wsum_product_k<T, false><<<io.grid(), 256, 0, st>>>(io.x, io.w, io.product, io.n, io.cols);
    return kbki_follow(kbki_wsum_rows_k<T>, dim3((unsigned)kbki_ceil(io.rows, 4)), 128, st, io.product, io.y,
                       io.rows, io.cols);
}
template <class T> const char* kbk_weighted_sum_fwd_matmul(const kbk_args* a, kbk_stream st) {
    kbk_args m = *a;
    const char* why = kbki_check_dims(&a->s);
    m.s.cols = 1, m.s.k = a->s.cols, m.s.layout = KBK_NN;
    return why ? why : kbk_matmul_fwd_shared<T>(&m, st);
}
template <class T> const char* kbk_weighted_sum_fwd_warp(const kbk_args* a, kbk_stream st) {
    return kbki_wsum_plain<T>(a, st, kbk_weighted_sum_fwd_warp_k<T>, 4);
}
template <class T, int Width, int Lanes, int Rows, int U>
const char* kbki_wsum_vec(const kbki_wsum<T>& io, kbk_stream st) {
    constexpr int Threads = Lanes > 128 ? Lanes : 128;
    int64_t ctas = kbki_ceil(io.rows, Threads / Lanes * Rows), most = (int64_t)kbki_sms() * 16;
    // short rows: CTAs with only a few rows would mostly wait for their first loads
    if (U == 1 && ctas > most) ctas = most;
    kbk_weighted_sum_fwd_vec_k<T, Width, Lanes, Rows, U>
        <<<(unsigned)ctas, Threads, 0, st>>>(io.x, io.w, io.y, io.rows, io.cols);
    return kbki_launched();
}
template <class T> const char* kbk_weighted_sum_fwd_vec(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    kbki_wsum<T> io;
    const char* why = io.get(a, false, 0, st);
    if (io.done) return why;
    if (io.cols % Width || !kbki_aligned(io.x, 16) || !kbki_aligned(io.w, 16))
        return kbki_wsum_vec<T, 1, 32, 2, 4>(io, st);
    if (io.cols / Width <= 8) return kbki_wsum_vec<T, Width, 8, 8, 1>(io, st);
    if (io.cols / Width < 64) return kbki_wsum_vec<T, Width, 32, 32 / Width, 1>(io, st);
    if (kbki_plan_packs(io.rows, io.cols / Width) < 512) return kbki_wsum_vec<T, Width, 32, 2, 4>(io, st);
    return kbki_wsum_vec<T, Width, 256, 1, 4>(io, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>wsum_bwd     Weighted sum of each row, backward: an outer product, and sums along columns.
-----------------------------------------------------------------*/

/*  weighted_sum bwd -----------------------------------------------------------------------------------------
    dx[r,c] = dy[r] * w[c]     dw[c] = sum_r dy[r] * x[r,c]      dy: R   x, dx: R x C   w, dw: C
    flops  3*R*C     dx 1, dw 2 per element
    bytes  (2*R*C + R + 2*C)*s
    check  dx rounded once; dw f32 1e-5 of sum_r |dy x|, 16 bits: 2 ulp more
    1 naive    thread per element for dx, thread per column for dw     <- slow: only C threads read x
    2 split    three kernels: products to memory, dx, column sums      <- many readers, twice the traffic
               (16 bits: three times, because products are kept in f32)
    3 matmul   two GEMMs, K = 1 for dx, M = 1 for dw                   <- no intermediate. Slower: for dw, 31 of 32
               rows of a tile are padding; the column DRAM shows that memory is almost idle
    4 ticket   column sums of each CTA in memory; the last CTA of a group, then the last group, adds them in
               index order; dx separately    <- compulsory traffic only, no atomics, the same bits every time
    5 fused    16-byte accesses, dx and dw from one pass over x <- reads of x and writes of dx overlap
    6 vec      dx does not depend on x. If both exceed the caches, one kernel reads x, then another writes dx
                                             <- DRAM loses time at each switch between reads and writes
    predict    rung 5 reads and writes each byte once. How can two kernels that move the same bytes be faster? */
/*  measured weighted_sum bwd: f32 65536 x 4096, NVIDIA H100 80GB HBM3, 2026-11-27
    0.375 FLOP/B; floor on an H200 502.3 us = 2.148 GB / 4.276 TB/s; on this GPU 704.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive   7763 us  11 %      -   32 30 %  8 %         0  dx: thread per element; dw: thread per column
    2 split   2029 us  40 % 3.83 x   32 97 % 63 %      14 k  products to memory, dx, then column sums
    3 matmul  4888 us  17 % 0.42 x   32 59 % 13 %     792 k  two GEMMs, K = 1 and M = 1
    4 ticket 967.6 us  85 % 5.05 x   57 80 % 66 %       231  column sums per CTA, added in order; then dx
    5 fused  750.6 us 109 % 1.29 x   60 50 % 85 %         3  dx and dw from one pass, 16-byte accesses
    6 vec    681.3 us 120 % 1.10 x   64 66 % 93 %         0  large data: one kernel for dw, then one for dx
    end of measured */
KBKI_TENSORS(weighted_sum_bwd, 5, t[0] = kbki_in("dy", rows, 1), t[1] = kbki_in("x", n, cols),
             t[2] = kbki_in("w", cols, 0), t[3] = kbki_out("dx", KBK_T, n, cols, 0),
             t[4] = kbki_out("dw", KBK_T, cols, 0, cols))
KBKI_FORMULAS(weighted_sum_bwd, s->cols ? s->rows : 0, 3 * n, (2 * n + rows + 2 * cols) * elem)
KBKI_REF(weighted_sum_bwd) {
    int64_t n = s->cols;
    double *dw = out[1], *size = out[KBK_OUTS + 1];
    for (int64_t r = u0; out[0] && r < u1; r++)
        for (int64_t c = 0; c < n; c++) out[0][(r - u0) * n + c] = in[0][r] * in[2][c];
    for (int64_t c = 0; c < n; c++) {
        if (dw) dw[c] = 0;
        if (size) size[c] = 0;
    }
    for (int64_t r = 0; (dw || size) && r < s->rows; r++)
        for (int64_t c = 0; c < n; c++) {
            double term = in[0][r] * in[1][r * n + c];
            if (dw) dw[c] += term;
            if (size) size[c] += fabs(term) * (elem == 4 ? 1 : 0.01);
        }
}

KBKI_SCRATCH(weighted_sum_bwd) {
    const size_t parts = kbki_part_bytes(s->cols), products = (size_t)s->rows * (size_t)s->cols * 4;
    if (word == KBKI_WORD_split) return (parts + 255) / 256 * 256 + products;
    return word == KBKI_WORD_ticket || word == KBKI_WORD_fused || word == KBKI_WORD_vec ? parts : 0;
}

#ifdef __CUDACC__
template <class T> __global__ void kbki_wsum_dx_k(const T* dy, const T* w, T* dx, int64_t n, int64_t cols) {
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    kbki_follow_me();
    kbki_follow_wait();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        dx[i] = kbki_type<T>::from(kbki_float(dy[i / cols]) * kbki_float(w[i % cols]));
}
template <class T>
__global__ void kbk_weighted_sum_bwd_naive_k(const T* dy, const T* x, T* dw, int64_t rows, int64_t cols) {
    int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float sum = 0;
    for (int64_t r = 0; r < rows; r++) sum = fmaf(kbki_float(dy[r]), kbki_float(x[r * cols + c]), sum);
    dw[c] = kbki_type<T>::from(sum);
}

template <class T>
__global__ void __launch_bounds__(1024)
    kbki_wsum_columns_k(const float* product, T* dw, float* part, unsigned* counters, int64_t rows, int64_t cols) {
    const auto term = [=](int64_t r, int64_t c) { return make_float2(__ldcs(product + r * cols + c), 0); };
    kbki_columns<false>(part, counters, rows, cols, term,
                        [=](int64_t c, float sum) { dw[c] = kbki_type<T>::from(sum); });
}

// ---- The kernels that add one idea each end here.

/*  Each thread has one vector of columns, and loads of U rows in flight; `Across` threads share a row. At any
    time, all CTAs together read one contiguous part of memory. Column sums are added in a fixed order. */
template <class T, int Width, int Across, int U, bool WriteDx>
__global__ void __launch_bounds__(512, 2)
    kbki_wsum_bwd_k(const T* dy, const T* x, const T* w, T* dx, T* dw, int64_t rows, int64_t cols, float* part,
                    unsigned* counters) {
    constexpr int Groups = 512 / Across;
    __shared__ float meet[Groups > 1 ? 512 * Width : 1];
    const int group = threadIdx.x / Across;
    const int64_t c = ((int64_t)blockIdx.y * Across + threadIdx.x % Across) * Width;
    const int64_t step = (int64_t)gridDim.x * Groups;
    const bool mine = c < cols;
    float sum[Width] = {}, f[Width], g[Width];
    kbki_pack<T, Width> v[U], factor;
    kbki_follow_me();
    factor.fill(0);
    if (WriteDx && mine) factor.load_cached(w + c);
    for (int64_t row = (int64_t)blockIdx.x * Groups + group; mine && row < rows; row += U * step) {
        float y[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            v[u].fill(0);
            y[u] = 0;
            if (row + u * step >= rows) continue;
            v[u].load(x + (row + u * step) * cols + c);
            y[u] = kbki_float(__ldg(dy + row + u * step));
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            v[u].get(f);
#pragma unroll
            for (int k = 0; k < Width; k++) sum[k] = fmaf(y[u], f[k], sum[k]);
            if (!WriteDx || row + u * step >= rows) continue;
            factor.forget();
            factor.get(g);
#pragma unroll
            for (int k = 0; k < Width; k++) g[k] *= y[u];
            v[u].set(g);
            v[u].store(dx + (row + u * step) * cols + c);
        }
    }
    if (Groups > 1) {
#pragma unroll
        for (int k = 0; k < Width; k++) meet[k * 512 + threadIdx.x] = sum[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < Width; k++)
            for (int g = 1; g < Groups && group == 0; g++) sum[k] += meet[k * 512 + g * Across + threadIdx.x];
    }
#pragma unroll
    for (int k = 0; k < Width; k++)
        if (mine && group == 0) part[blockIdx.x * cols + c + k] = sum[k];
    kbki_part_finish(part, counters, cols, [&](int64_t i, float s) { dw[i] = kbki_type<T>::from(s); });
}
template <class T>
__global__ void __launch_bounds__(256) kbk_weighted_sum_bwd_vec_k(const T* dy, const T* w, T* dx, int64_t cols) {
    constexpr int Width = KBKI_WIDTH(T);
    const float y = kbki_float(dy[blockIdx.x]);
    for (int64_t c = threadIdx.x * Width; c < cols; c += 256 * Width) {
        kbki_pack<T, Width> v;
        float g[Width];
        v.load_cached(w + c);
        v.get(g);
#pragma unroll
        for (int k = 0; k < Width; k++) g[k] *= y;
        v.set(g);
        v.store(dx + blockIdx.x * cols + c);
    }
}

template <class T> const char* kbki_wsum_dx(const kbki_wsum<T>& io, kbk_stream st) {
    return kbki_follow(kbki_wsum_dx_k<T>, dim3(io.grid()), 256, st, io.dy, io.w, io.dx, io.n, io.cols);
}
template <class T> const char* kbk_weighted_sum_bwd_naive(const kbk_args* a, kbk_stream st) {
    kbki_wsum<T> io;
    const char* why = io.get(a, true, 0, st);
    if (io.done) return why;
    kbk_weighted_sum_bwd_naive_k<T>
        <<<(unsigned)kbki_ceil(io.cols, 128), 128, 0, st>>>(io.dy, io.x, io.dw, io.rows, io.cols);
    return kbki_wsum_dx(io, st);
}
template <class T> const char* kbk_weighted_sum_bwd_split(const kbk_args* a, kbk_stream st) {
    kbki_wsum<T> io;
    const char* why = io.get(a, true, kbki_scratch_weighted_sum_bwd(&a->s, (int)sizeof(T), KBKI_WORD_split), st);
    if (io.done) return why;
    kbki_wsum_product_k<T, true><<<io.grid(), 256, 0, st>>>(io.x, io.dy, io.product, io.n, io.cols);
    if ((why = kbki_wsum_dx(io, st)) != NULL) return why;
    return kbki_follow(kbki_wsum_columns_k<T>, kbki_columns_grid(io.rows, io.cols, io.cols), 1024, st, io.product,
                       io.dw, io.part, io.counters, io.rows, io.cols);
}
template <class T> const char* kbk_weighted_sum_bwd_matmul(const kbk_args* a, kbk_stream st) {
    kbk_args dx = *a, dw = *a;
    const char* why = kbki_check_dims(&a->s);
    if (why || a->s.rows * a->s.cols == 0) return why ? why : kbki_zeros((T*)a->out[1], a->s.cols, st);
    dx.in[1] = a->in[2], dx.s.k = 1, dx.s.layout = KBK_NN;                          // R x 1 times 1 x C
    dw.out[0] = a->out[1], dw.s.rows = 1, dw.s.k = a->s.rows, dw.s.layout = KBK_NN; // 1 x R times R x C
    why = kbk_matmul_fwd_coalesced<T>(&dx, st);
    return why ? why : kbk_matmul_fwd_shared<T>(&dw, st);
}
template <class T, int Width, int Across, int U, bool WriteDx>
const char* kbki_wsum_bwd(const kbk_args* a, const kbki_wsum<T>& io, kbk_stream st) {
    int64_t y = kbki_ceil(io.cols, Across * Width), x = 2 * kbki_sms() / y,
            most = kbki_ceil(io.rows, 512 / Across * U);
    // grid.y <= 65535; with more columns, even the naive kernel (one thread per column) fills the device
    if (y > 65535) return kbk_weighted_sum_bwd_naive<T>(a, st);
    if (x > most) x = most;
    if (x > kbki_part_ctas(io.cols)) x = kbki_part_ctas(io.cols);
    if (x < 1) x = 1;
    kbki_wsum_bwd_k<T, Width, Across, U, WriteDx><<<dim3((unsigned)x, (unsigned)y), 512, 0, st>>>(
        io.dy, io.x, io.w, io.dx, io.dw, io.rows, io.cols, io.part, io.counters);
    return kbki_launched();
}
template <class T> const char* kbk_weighted_sum_bwd_ticket(const kbk_args* a, kbk_stream st) {
    kbki_wsum<T> io;
    const char* why = io.get(a, true, kbki_scratch_weighted_sum_bwd(&a->s, (int)sizeof(T), KBKI_WORD_ticket), st);
    if (!io.done) why = kbki_wsum_bwd<T, 1, 128, 4, false>(a, io, st);
    return why || io.done ? why : kbki_wsum_dx(io, st);
}
template <class T> const char* kbk_weighted_sum_bwd_fused(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    kbki_wsum<T> io;
    const char* why = io.get(a, true, kbki_scratch_weighted_sum_bwd(&a->s, (int)sizeof(T), KBKI_WORD_fused), st);
    if (io.done) return why;
    if (io.cols % Width || !kbki_aligned(io.x, 16) || !kbki_aligned(io.dx, 16) || !kbki_aligned(io.w, 16))
        return kbki_wsum_bwd<T, 1, 128, 4, true>(a, io, st);
    if (io.cols / Width <= 32) return kbki_wsum_bwd<T, Width, 32, 4, true>(a, io, st);
    return kbki_wsum_bwd<T, Width, 512, 4, true>(a, io, st);
}
template <class T> const char* kbk_weighted_sum_bwd_vec(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    kbki_wsum<T> io;
    const char* why = io.get(a, true, kbki_scratch_weighted_sum_bwd(&a->s, (int)sizeof(T), KBKI_WORD_vec), st);
    if (io.done) return why;
    if (io.cols <= 256 * Width || io.n * (int64_t)sizeof(T) < (64 << 20) || io.cols % Width ||
        !kbki_aligned(io.x, 16) || !kbki_aligned(io.dx, 16) || !kbki_aligned(io.w, 16))
        return kbk_weighted_sum_bwd_fused<T>(a, st);
    why = kbki_wsum_bwd<T, Width, 512, 8, false>(a, io, st);
    if (!why) kbk_weighted_sum_bwd_vec_k<T><<<(unsigned)io.rows, 256, 0, st>>>(io.dy, io.w, io.dx, io.cols);
    return why ? why : kbki_launched();
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>transpose     Rows to columns: no arithmetic, only coalescing and bank conflicts.
-----------------------------------------------------------------*/

/*  transpose run --------------------------------------------------------------------------------------------
    y[c,r] = x[r,c]      x: R x C = rows x cols     y: C x R
    flops  0
    bytes  2*R*C*s
    check  bit-exact
    1 naive    one element per thread, reads along rows   <- slow: writes are not coalesced. The 32 writes of a
               warp are R elements apart, each to a 32-byte sector of its own
    2 shared   32 x 32 tile in shared memory (Ruetsch & Micikevicius 2009, "Optimizing Matrix Transpose in CUDA")
                                                          <- both sides coalesced; but a column of the tile is in
               one bank (16 bits: in two), so reading it has 32-way (16-way) bank conflicts
    3 padded   one more bank per row of the tile          <- elements of a column are in different banks
    4 vec      each thread transposes a square of 4 x 4 elements (16 bits: 8 x 8) in registers, and moves 16 bytes
               at a time through shared memory            <- a quarter (16 bits: an eighth) of the accesses, 64 or
               128 bytes in flight per thread, 256 contiguous bytes per row on both sides
    bound by   memory: compare with bytes / copy bandwidth. Unaligned addresses or rows: vec launches padded
    predict    each write of a warp of naive touches 32 sectors. Which share of the copy bandwidth is left? */
/*  measured transpose run: f32 16384 x 8192, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 251.1 us = 1.074 GB / 4.276 TB/s; on this GPU 352.0 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive   2717 us  15 %      -   16 81 % 14 %         0  one element per thread, strided writes
    2 shared 749.7 us  55 % 3.62 x   24 96 % 42 %     131 M  32 x 32 tile in shared memory, bank conflicts
    3 padded 482.4 us  85 % 1.55 x   24 96 % 65 %     259 k  32 x 33 tile, no conflicts
    4 vec    361.2 us 113 % 1.34 x   42 59 % 87 %     128 k  4 x 4 or 8 x 8 per thread, 16-byte accesses
    end of measured */
KBKI_TENSORS(transpose_run, 2, t[0] = kbki_in("x", n, 0), t[1] = kbki_out("y", KBK_T, n, rows, 0))
KBKI_FORMULAS(transpose_run, s->rows ? s->cols : 0, 0, 2 * n * elem)
KBKI_REF(transpose_run) {
    for (int64_t c = u0; c < u1; c++)
        for (int64_t r = 0; r < s->rows; r++) out[0][(c - u0) * s->rows + r] = in[0][r * s->cols + c];
}

#ifdef __CUDACC__
template <class T> __global__ void kbk_transpose_run_naive_k(const T* x, T* y, int64_t rows, int64_t cols) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, r = i / cols, c = i - r * cols;
    if (r < rows) y[c * rows + r] = x[i];
}

template <class T, int Pad>
__global__ void __launch_bounds__(256)
    kbk_transpose_run_shared_k(const T* x, T* y, int64_t rows, int64_t cols) {
    __shared__ T tile[32][32 + Pad];
    unsigned across = (unsigned)((cols + 31) / 32);
    int64_t r0 = (int64_t)(blockIdx.x / across) * 32, c0 = (int64_t)(blockIdx.x % across) * 32;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = warp; i < 32; i += 8)
        if (r0 + i < rows && c0 + lane < cols) tile[i][lane] = x[(r0 + i) * cols + c0 + lane];
    __syncthreads();
#pragma unroll
    for (int i = warp; i < 32; i += 8)
        if (c0 + i < cols && r0 + lane < rows) y[(c0 + i) * rows + r0 + lane] = tile[lane][i];
}

// ---- The kernels that add one idea each end here.

// A square of Width x Width elements; rows and columns are 16-byte vectors.
template <int Width> struct kbki_square {
    uint32_t w[Width][4];
    __device__ __forceinline__ void row(int i, uint4 q) {
        w[i][0] = q.x, w[i][1] = q.y, w[i][2] = q.z, w[i][3] = q.w;
    }
    __device__ __forceinline__ uint4 column(int j) const {
        if (Width == 4) return make_uint4(w[0][j], w[1][j], w[2][j], w[3][j]);
        const int from = j / 2, half = j % 2 ? 0x7632 : 0x5410;
        return make_uint4(__byte_perm(w[0][from], w[1 % Width][from], half),
                          __byte_perm(w[2 % Width][from], w[3 % Width][from], half),
                          __byte_perm(w[4 % Width][from], w[5 % Width][from], half),
                          __byte_perm(w[6 % Width][from], w[7 % Width][from], half));
    }
};

/*  A CTA transposes 16 x 16 squares, one per thread. Swizzle: vector p of row o of y is at position p ^ (o / Width
    mod 8), so that eight threads have no bank conflicts. Tiles are numbered column by column in bands of 1024 rows
    of tiles, so that CTAs that run at the same time write long contiguous parts of rows of y. */
template <class T>
__global__ void __launch_bounds__(256, sizeof(T) == 4 ? 4 : 3)
    kbk_transpose_run_vec_k(const T* x, T* y, int64_t rows, int64_t cols) {
    constexpr int Width = KBKI_WIDTH(T), Side = 16, Tile = Side * Width;
    const unsigned down = (unsigned)((rows + Tile - 1) / Tile), across = (unsigned)((cols + Tile - 1) / Tile);
    const unsigned band = min(down, 1024u); // band * across must fit into 32 bits
    __shared__ uint4 tile[Side * Width][Side];
    unsigned b = blockIdx.x / (band * across), rest = blockIdx.x - b * band * across;
    unsigned high = down - b * band < band ? down - b * band : band;
    int64_t r0 = (int64_t)(b * band + rest % high) * (Side * Width), c0 = (int64_t)(rest / high) * (Side * Width);
    int tx = threadIdx.x % Side, ty = threadIdx.x / Side;
    kbki_square<Width> square;
    if (r0 + ty * Width < rows && c0 + tx * Width < cols) {
        x += (r0 + ty * Width) * cols + c0 + tx * Width;
        kbki_pack<T, Width> v[Width];
#pragma unroll
        for (int i = 0; i < Width; i++) v[i].load(x + i * cols);
#pragma unroll
        for (int i = 0; i < Width; i++) square.row(i, v[i].q);
#pragma unroll
        for (int j = 0; j < Width; j++) tile[tx * Width + j][ty ^ (tx & 7)] = square.column(j);
    }
    __syncthreads();
    y += (c0 + ty) * rows + r0 + tx * Width;
#pragma unroll
    for (int i = 0; i < Width; i++) {
        int o = i * Side + ty;
        kbki_pack<T, Width> v;
        v.q = tile[o][tx ^ (o / Width & 7)];
        if (c0 + o < cols && r0 + tx * Width < rows) v.store(y + i * Side * rows);
    }
}

// Side: side length of a CTA's tile in elements. The 256 elements of a naive CTA count as a tile of 16 x 16.
template <class T, void (*Kernel)(const T*, T*, int64_t, int64_t), int Side>
const char* kbki_transpose(const kbk_args* a, kbk_stream st) {
    const int64_t rows = a->s.rows, cols = a->s.cols, down = kbki_ceil(rows, Side), across = kbki_ceil(cols, Side);
    const char* why = kbki_check_dims(&a->s);
    if (!kbki_aligned(a->in[0], sizeof(T)) || !kbki_aligned(a->out[0], sizeof(T))) return KBKI_TEXT_ALIGN;
    if (why || rows * cols == 0) return why;
    if (!kbki_grid_ok(down) || !kbki_grid_ok(across) || !kbki_grid_ok(down * across)) return KBKI_TEXT_GRID;
    Kernel<<<(unsigned)(down * across), 256, 0, st>>>((const T*)a->in[0], (T*)a->out[0], rows, cols);
    return kbki_launched();
}
KBKI_LAUNCHER(kbk_transpose_run_naive, kbki_transpose<T, kbk_transpose_run_naive_k<T>, 16>)
KBKI_LAUNCHER(kbk_transpose_run_shared, kbki_transpose<T, kbk_transpose_run_shared_k<T, 0>, 32>)
// the padding of a row is one bank wide (4 bytes)
KBKI_LAUNCHER(kbk_transpose_run_padded, kbki_transpose<T, kbk_transpose_run_shared_k<T, 4 / (int)sizeof(T)>, 32>)
template <class T> const char* kbk_transpose_run_vec(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    if (!kbki_aligned(a->in[0], 16) || !kbki_aligned(a->out[0], 16) || a->s.rows % Width || a->s.cols % Width)
        return kbk_transpose_run_padded<T>(a, st);
    return kbki_transpose<T, kbk_transpose_run_vec_k<T>, 16 * Width>(a, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>cross_entropy     Loss of integer targets for rows of logits; the softmax is never stored.
-----------------------------------------------------------------*/

/*  cross_entropy fwd ----------------------------------------------------------------------------------------
    lse[r] = log(sum_c exp(x[r,c]))     loss[r] = lse[r] - x[r,t[r]]     x: R x V = rows x cols   t: R, int32
    loss and lse have R elements of type f32; lse is written if its pointer is not NULL
    flops  4*R*V + 3*R     max 1, subtract 1, exp 1, sum 1 per logit; per row log, + max, - target logit
    bytes  R*V*s + 12*R
    check  8 ulp (relative 1e-6) + 1e-6; norm-wise 2e-6
           the loss is computed as (max - x_t) + log(sum), so that it keeps its digits if the target is the maximum
    targets   if t is KBK_IGNORE (-100), the loss is 0; the caller excludes the row from its mean. For any other t
              outside [0, V), the loss is NaN, and x is not read at t
    1 split    log-softmax to memory, then gather    <- slow: three reads, and 4 bytes written per logit
    2 online   CTA per row, online softmax           <- one read; only the results are written (Milakov &
               Gimelshein 2018, "Online Normalizer Calculation for Softmax")
    3 unroll   four 16-byte vectors in flight        <- 64 bytes in flight per thread, and one rescaling for 16 or
               32 logits. A row of up to 1024 vectors is processed by 8 lanes, a warp or a CTA, depending on its
               length. If rows are not aligned, each row's start is read separately (peeling)
    predict    rung 2 reads every logit once. Why is DRAM idle for more than half of the time? */
/*  measured cross_entropy fwd: bf16 8192 x 50304, NVIDIA H100 80GB HBM3, 2026-11-26
    2.000 FLOP/B; floor on an H200 192.8 us = 824.3 MB / 4.276 TB/s; on this GPU 270.2 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 split   1736 us  18 %      -   32 96 % 71 %      32 k  log-softmax to memory in f32, then a gather
    2 online 604.3 us  51 % 2.87 x   29 95 % 41 %      1247  CTA per row, online softmax, one read
    3 unroll 271.0 us 115 % 2.23 x   56 49 % 91 %      6471  16-byte vectors, four in flight per thread
    end of measured */
KBKI_TENSORS(cross_entropy_fwd, 4, t[0] = kbki_in("x", n, cols), t[1] = kbki_ids("t", rows, 1, cols),
             t[2] = kbki_out("loss", KBK_KF32, rows, 1, 0), t[3] = kbki_out("lse", KBK_KF32, rows, 1, 0),
             t[3].optional = 1)
KBKI_FORMULAS(cross_entropy_fwd, s->cols ? s->rows : 0, 4 * n + 3 * rows, 1 * n * elem + 12 * rows)
KBKI_SCRATCH(ce) {
    if (word != KBKI_WORD_split) return 0;
    return KBK_TICKETS + (size_t)(s->rows * s->cols) * sizeof(float);
}
KBKI_REF(cross_entropy_fwd) {
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
        // if all logits are -inf, top and log(sum) are -inf, and so is lse
        if (out[1]) out[1][r - u0] = top + log(sum);
    }
}

#ifdef __CUDACC__
// NaN if the target is outside the row.
template <class T> __device__ __forceinline__ float kbki_ce_logit(const T* x, int64_t cols, int target) {
    return target >= 0 && target < cols ? kbki_float(x[target]) : __int_as_float(0x7FC00000);
}
__device__ __forceinline__ float kbki_ce_loss(kbki_pair p, int target, float logit) {
    return target == KBK_IGNORE ? 0.0f : (p.m - logit) + p.log_sum();
}

// Three passes over the row; kbki_cross_entropy_fwd_gather_k then reads the losses from the log-softmax.
template <class T>
__global__ void __launch_bounds__(256)
    kbk_cross_entropy_fwd_split_k(const T* x, float* log_p, float* lse, int64_t cols) {
    __shared__ float s[256];
    int64_t row = blockIdx.x;
    float top = -INFINITY, sum = 0;
    x += row * cols;
    for (int64_t c = threadIdx.x; c < cols; c += 256) top = fmaxf(top, kbki_float(x[c]));
    top = kbki_tree<kbki_max, 256>(top, s);
    float low = top == -INFINITY ? 0.0f : top;
    for (int64_t c = threadIdx.x; c < cols; c += 256) sum += expf(kbki_float(x[c]) - low);
    float log_sum = logf(kbki_tree<kbki_sum<float>, 256>(sum, s));
    for (int64_t c = threadIdx.x; c < cols; c += 256) log_p[row * cols + c] = (kbki_float(x[c]) - top) - log_sum;
    if (threadIdx.x == 0 && lse) lse[row] = top + log_sum;
}
template <class T>
__global__ void kbki_cross_entropy_fwd_gather_k(const float* log_p, const int* t, T* loss, int64_t rows,
                                                int64_t cols) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) loss[row] = t[row] == KBK_IGNORE ? 0.0f : -kbki_ce_logit(log_p + row * cols, cols, t[row]);
}

template <class T>
__global__ void __launch_bounds__(256)
    kbk_cross_entropy_fwd_online_k(const T* x, const int* t, float* loss, float* lse, int64_t cols) {
    __shared__ kbki_pair slots[32];
    x += blockIdx.x * cols;
    // terms are summed in blocks: in one long sum, they would lose digits
    kbki_pair p = kbki_pair::none(), block = p;
    int n = 0, target = t[blockIdx.x];
    for (int64_t c = threadIdx.x; c < cols; c += 256) {
        block.add(kbki_float(x[c]));
        if (++n % 64 == 0) p = kbki_pair::join(p, block), block = kbki_pair::none();
    }
    p = kbki_all<kbki_pair, 256>(kbki_pair::join(p, block), slots);
    if (threadIdx.x) return;
    loss[blockIdx.x] = kbki_ce_loss(p, target, kbki_ce_logit(x, cols, target));
    if (lse) lse[blockIdx.x] = p.m + p.log_sum();
}

// ---- The kernels that add one idea each end here.

// Gradient: unit * (p - 1) for the target, else unit * p. p = norm * exp(x - m); m: maximum or lse of the row.
template <class T> struct kbki_ce_row {
    kbki_base base;
    float norm, unit;
    int64_t at;
    bool ignore;
    kbki_ce_row() = default;
    __device__ __forceinline__ kbki_ce_row(float m, float sum, float scale, int t, int64_t cols)
        : base(m), norm(1 / sum), unit(scale), at(t), ignore(t == KBK_IGNORE) {
        if (!ignore && (t < 0 || t >= cols)) unit = __int_as_float(0x7FC00000);
    }
    // lse: its rounding error (3e-5 at lse = 1000) is part of the tolerance of the operation.
    __device__ __forceinline__ kbki_ce_row(float lse, float scale, int t, int64_t cols)
        : kbki_ce_row(lse, 1, scale, t, cols) {
        norm = kbki_exp2(-base.rest(lse));
        // kbki_base replaces an lse of -inf or NaN by -FLT_MAX, but the gradient must be computed from lse itself
        if (!(fabsf(lse) < INFINITY)) base.b = lse, norm = 1;
    }
    // target: its index relative to the first of the Width logits.
    template <int Width>
    __device__ __forceinline__ void gradient_near(kbki_pack<T, Width>& v, unsigned target) const {
        float f[Width];
        const float factor = norm * unit;
        v.get(f);
#pragma unroll
        for (int k = 0; k < Width; k++) f[k] = kbki_exp_from(f[k], base) * factor;
        if (target < Width) {
            float x[Width];
            v.get(x);
#pragma unroll
            // f[k] - unit would be NaN if both are infinite
            for (int k = 0; k < Width; k++)
                if (target == k) f[k] = fmaf(kbki_exp_from(x[k], base), norm, -1.0f) * unit;
        }
        v.set(f);
        if (ignore) v.fill(0);
    }
    template <int Width> __device__ __forceinline__ void gradient(kbki_pack<T, Width>& v, int64_t c) const {
        gradient_near<Width>(v, at >= c && at < c + Width ? (unsigned)(at - c) : Width);
    }
    __device__ __forceinline__ void gradient_at(const T* x, T* dx, int64_t c) const {
        kbki_pack<T, 1> v;
        v.load(x + c), gradient<1>(v, c), v.store(dx + c);
    }
};

/*  Reads a row for the loss, then from its end for the gradient. Threads: 8 or 32 of a CTA of 128, or the whole
    CTA. dx may be x; therefore kbki_ce_load is a plain load, neither streaming nor read-only. */
template <class T, int Width> __device__ __forceinline__ void kbki_ce_load(kbki_pack<T, Width>& v, const T* p) {
    v = *reinterpret_cast<const kbki_pack<T, Width>*>(p);
}
template <class T, int Width, int Threads, bool Gradient>
__global__ void __launch_bounds__(KBKI_CTA(Threads), Gradient ? 1 : 1024 / KBKI_CTA(Threads))
    kbk_cross_entropy_fwd_unroll_k(const T* x, const int* t, float* loss, float* lse, float2* pair, T* dx,
                                   float scale, int64_t rows, int64_t cols) {
    __shared__ kbki_pair slots[32];
    const int lane = threadIdx.x % Threads;
    const int64_t r = (int64_t)blockIdx.x * KBKI_ROWS(Threads) + threadIdx.x / Threads;
    if (r >= rows) return;
    x += r * cols, dx += r * cols;
    const int at = __ldg(t + r);
    const kbki_pair mine = kbki_row_pair<T, Width, 4>(x, cols, lane, Threads);
    // read before the barrier, because dx may be x
    const float logit = lane == 0 ? kbki_ce_logit(x, cols, at) : 0.0f;
    const kbki_pair p = kbki_threads_pair<Threads>(mine, slots);
    if (lane == 0) loss[r] = kbki_ce_loss(p, at, logit);
    if (lane == 0 && lse) lse[r] = p.m + p.log_sum();
    if (lane == 0 && pair) pair[r] = make_float2(p.m, p.s);
    if constexpr (!Gradient) return;
    // Every lane must have read x before another lane overwrites it, because dx may be x.
    if (Threads <= 32) __syncwarp();
    const kbki_ce_row<T> row(p.m, p.s, scale, at, cols);
    const kbki_span sp = kbki_split<T, Width>(x, cols);
    const int64_t one = kbki_single(sp, cols, lane);
    if (one >= 0) row.gradient_at(x, dx, one);
    for (int64_t i = sp.packs - 1 - lane; i >= 0; i -= 4 * Threads) {
        kbki_pack<T, Width> v[4];
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (i >= u * Threads) kbki_ce_load(v[u], x + sp.head + (i - u * Threads) * Width);
#pragma unroll
        for (int u = 0; u < 4; u++) {
            if (i < u * Threads) continue;
            row.template gradient<Width>(v[u], sp.head + (i - u * Threads) * Width);
            v[u].store_cached(dx + sp.head + (i - u * Threads) * Width);
        }
    }
}

/*  Rows of vectors that fit into registers; eight lanes, a warp or a CTA per row. The target and its logit are
    loaded with the row, to hide their latency. Loss: loss, lse and pair are outputs; otherwise, the inputs are
    pair and scale, or lse and g if pair is NULL. dx may be x. */
template <class T, int Packs, int Threads, bool Loss, bool Gradient>
__global__ void __launch_bounds__(KBKI_CTA(Threads))
    kbki_cross_entropy_row_k(const T* x, const int* t, const float* g, float* loss, float* lse, float2* pair,
                             T* dx, float scale, int64_t rows, int64_t cols) {
    constexpr int Width = KBKI_WIDTH(T);
    __shared__ kbki_pair slots[32];
    const int lane = threadIdx.x % Threads, packs = (int)(cols / Width);
    const int64_t row = (int64_t)blockIdx.x * KBKI_ROWS(Threads) + threadIdx.x / Threads;
    if (row >= rows) return;
    const int at = __ldg(t + row);
    const int64_t first = row * cols + lane * Width;
    kbki_pack<T, Width> v[Packs];
    float f[Width], top = -INFINITY, sum = 0;
    kbki_ce_row<T> to;
#pragma unroll
    for (int u = 0; u < Packs; u++) {
        v[u].fill(kbki_type<T>::minus_inf);
        if (lane + u * Threads < packs) v[u].load(x + first + u * Threads * Width);
    }
    if constexpr (Loss) {
        const float logit = lane == 0 ? kbki_ce_logit(x + row * cols, cols, at) : 0.0f;
#pragma unroll
        for (int u = 0; u < Packs; u++) top = fmaxf(top, kbki_max_of(v[u]));
        top = kbki_warp_all<kbki_max, KBKI_LANES(Threads)>(top);
        const kbki_base base(top);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            if (u && u * Threads >= packs) continue;
            v[u].get(f);
#pragma unroll
            for (int k = 0; k < Width; k++) sum += kbki_exp_from(f[k], base);
            kbki_reread(v[u]);
        }
        sum = kbki_warp_all<kbki_sum<float>, KBKI_LANES(Threads)>(sum);
        const kbki_pair p = kbki_warps_pair<Threads>({ top, sum }, slots);
        if (lane == 0) loss[row] = kbki_ce_loss(p, at, logit);
        if (lane == 0 && lse) lse[row] = p.m + p.log_sum();
        if (lane == 0 && pair) pair[row] = make_float2(p.m, p.s);
        if constexpr (Gradient) to = kbki_ce_row<T>(p.m, p.s, scale, at, cols);
        if (Threads <= 32) __syncwarp(); // the target's logit must be read before another lane overwrites it
    } else {
        to = pair ? kbki_ce_row<T>(pair[row].x, pair[row].y, scale, at, cols)
                  : kbki_ce_row<T>(__ldg(lse + row), __ldg(g), at, cols);
    }
    if constexpr (Gradient) {
        // elements from this thread's first vector to the target
        const unsigned goal = (unsigned)at - (unsigned)(lane * Width);
#pragma unroll
        for (int u = 0; u < Packs; u++) {
            kbki_reread(v[u]);
            if (lane + u * Threads >= packs) continue;
            to.template gradient_near<Width>(v[u], goal - u * Threads * Width);
            v[u].store(dx + first + u * Threads * Width);
        }
    }
}

template <class T> struct kbki_ce {
    const T* x;
    const int* t;
    const float* g;
    float *loss, *lse;
    float2* pair; // fwdbwd split: (max, sum) of each row, for the backward kernel
    T* dx;
    float scale;
    int64_t rows, cols;
};
template <class T, bool Fwd, bool Bwd, class Run>
const char* kbki_ce_launch(const kbk_args* a, Run run, size_t scratch = 0) {
    kbki_ce<T> io = {};
    io.x = (const T*)a->in[0], io.t = (const int*)a->in[1], io.rows = a->s.rows, io.cols = a->s.cols;
    if (Fwd) io.loss = (float*)a->out[0], io.scale = a->scalar != 0 ? a->scalar : 1;
    if (!Fwd) io.g = (const float*)a->in[3];
    if (!Fwd || !Bwd) io.lse = (float*)(Fwd ? a->out[1] : a->in[2]);
    if (Bwd) io.dx = (T*)a->out[Fwd];
    if (!kbki_aligned(io.x, sizeof(T)) || !kbki_aligned(io.dx, sizeof(T)) || !kbki_aligned(io.t, 4) ||
        !kbki_aligned(io.g, 4) || !kbki_aligned(io.loss, 4) || !kbki_aligned(io.lse, 4))
        return KBKI_TEXT_ALIGN;
    const char* why = !kbki_grid_ok(io.rows) ? KBKI_TEXT_GRID : kbki_check_dims(&a->s);
    if (why || io.rows * io.cols == 0) return why;
    if (scratch) why = kbki_check_workspace(a, scratch);
    if (!why) why = run(io);
    return why ? why : kbki_launched();
}
// Returns whether kbki_cross_entropy_row_k was launched. Most: longest row in vectors. Longer gradients are left
// to kbk_cross_entropy_bwd_unroll_k, whose CTAs process 512 vectors.
template <bool Loss, bool Gradient, class T> bool kbki_ce_rows(const kbki_ce<T>& io, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T), Most = Loss ? 1024 : 512;
    typedef void kernel(const T*, const int*, const float*, float*, float*, float2*, T*, float, int64_t, int64_t);
    static const kbki_plan<kernel> plans[] = {
        { 32, kbki_cross_entropy_row_k<T, 4, 8, Loss, Gradient>, 8, 0 },
        { 128, kbki_cross_entropy_row_k<T, 4, 32, Loss, Gradient>, 32, 0 },
        { 512, kbki_cross_entropy_row_k<T, 4, 128, Loss, Gradient>, 128, 0 },
        { 1024, kbki_cross_entropy_row_k<T, 4, Most / 4, Loss, Gradient>, Most / 4, 0 },
    };
    if (!kbki_whole_packs<T>(io.x, Gradient ? io.dx : io.x, io.cols) || io.cols > Most * Width) return false;
    const auto& plan = kbki_plan_of(plans, kbki_plan_packs(io.rows, io.cols / Width));
    unsigned ctas = (unsigned)kbki_ceil(io.rows, KBKI_ROWS(plan.threads));
    plan.kernel<<<ctas, KBKI_CTA(plan.threads), 0, st>>>(io.x, io.t, io.g, io.loss, io.lse, io.pair, io.dx,
                                                         io.scale, io.rows, io.cols);
    return true;
}

template <class T> const char* kbk_cross_entropy_fwd_split(const kbk_args* a, kbk_stream st) {
    const auto run = [&](const kbki_ce<T>& io) {
        float* log_p = (float*)((char*)a->workspace + KBK_TICKETS);
        kbk_cross_entropy_fwd_split_k<T><<<(unsigned)io.rows, 256, 0, st>>>(io.x, log_p, io.lse, io.cols);
        kbki_cross_entropy_fwd_gather_k<float>
            <<<(unsigned)kbki_ceil(io.rows, 128), 128, 0, st>>>(log_p, io.t, io.loss, io.rows, io.cols);
        return (const char*)NULL;
    };
    return kbki_ce_launch<T, true, false>(a, run, kbki_scratch_ce(&a->s, (int)sizeof(T), KBKI_WORD_split));
}
template <class T> const char* kbk_cross_entropy_fwd_online(const kbk_args* a, kbk_stream st) {
    return kbki_ce_launch<T, true, false>(a, [&](const kbki_ce<T>& io) {
        kbk_cross_entropy_fwd_online_k<T><<<(unsigned)io.rows, 256, 0, st>>>(io.x, io.t, io.loss, io.lse, io.cols);
        return (const char*)NULL;
    });
}
template <bool Gradient, class T> const char* kbki_ce_loss_too(const kbki_ce<T>& io, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T), Many = Gradient ? 512 : 256;
    if (kbki_ce_rows<true, Gradient>(io, st)) return NULL;
    const bool vector = !Gradient || kbki_congruent(io.x, io.dx);
    const int threads = io.cols < 200 ? 8 : vector && io.cols <= 256 * Width ? 32 : Many;
    const auto kernel = threads == 8    ? kbk_cross_entropy_fwd_unroll_k<T, 1, 8, Gradient>
                        : threads == 32 ? kbk_cross_entropy_fwd_unroll_k<T, Width, 32, Gradient>
                        : vector        ? kbk_cross_entropy_fwd_unroll_k<T, Width, Many, Gradient>
                                        : kbk_cross_entropy_fwd_unroll_k<T, Gradient ? 1 : Width, Many, Gradient>;
    kernel<<<(unsigned)kbki_ceil(io.rows, KBKI_ROWS(threads)), KBKI_CTA(threads), 0, st>>>(
        io.x, io.t, io.loss, io.lse, io.pair, io.dx, io.scale, io.rows, io.cols);
    return NULL;
}
template <class T> const char* kbk_cross_entropy_fwd_unroll(const kbk_args* a, kbk_stream st) {
    return kbki_ce_launch<T, true, false>(a, [&](auto& io) { return kbki_ce_loss_too<false>(io, st); });
}
#endif // __CUDACC__

/*  cross_entropy bwd ----------------------------------------------------------------------------------------
    dx[r,c] = g (exp(x[r,c] - lse[r]) - (c == t[r]))     x, dx: R x V   t: R, int32   lse: R, f32   g: one f32
    flops  3*R*V + R       subtract 1, exp 1, times g 1 per logit; per row: - 1 at the target
    bytes  2*R*V*s + 8*R + 4
    check  norm-wise f32 1e-5, f16 4e-4, bf16 3e-3; 64 ulp of the element in f32, 2 ulp at 16 bits, + 1e-9. The row
           scale is not used, because the target alone determines it. The 1 is subtracted in f32, before rounding.
           The target's bound is that of a number as large as 2 g (16 bits: g / 1000)
    targets   if t is KBK_IGNORE, the row of dx is 0; for any other t outside [0, V), it is NaN. dx may be x itself
    1 naive    thread per element            <- slow: a division to find the row, 2 or 4 bytes in flight per thread
    2 unroll   two 16-byte vectors in flight <- 32 bytes in flight per thread; row and target are loaded once for 8
               or 16 logits; each row's unaligned start is read separately. Aligned rows of up to 512 vectors have
               four vectors in flight; other short rows have fewer threads, or are one sequence of vectors. If x and
               dx have different alignments modulo 16 bytes, they are read element by element
    predict    the gradient needs an exp per logit. Is memory or the special function unit the limit? (16 exp2 per
               clock and SM; 2 bytes read and 2 written per logit in bf16)
    limits     if all logits are -1e30, lse is rounded to -1e30, and log V is lost. exp(x - lse) is then 1, not 1/V.
               Only fwdbwd, which does not use lse, gives 1/V */
/*  measured cross_entropy bwd: bf16 8192 x 50304, NVIDIA H100 80GB HBM3, 2026-11-26
    0.750 FLOP/B; floor on an H200 385.5 us = 1.648 GB / 4.276 TB/s; on this GPU 540.4 us at 3.051 TB/s
                 time  peak   gain regs  occ DRAM conflicts
    1 naive   1570 us  40 %      -   20 81 % 31 %         0  one element per thread
    2 unroll 540.7 us 116 % 2.90 x   32 83 % 90 %         0  16-byte vectors, two in flight per thread
    end of measured */
// The random lse of tests has about the mean that log-sum-exp has for normal logits.
KBKI_TENSORS(cross_entropy_bwd, 5, t[0] = kbki_in("x", n, cols), t[1] = kbki_ids("t", rows, 1, cols),
             t[2] = kbki_in("lse", rows, 1), t[2].kind = KBK_KF32, t[3] = kbki_in("g", 1, 0), t[3].kind = KBK_KF32,
             t[4] = kbki_out("dx", KBK_T, n, cols, cols), t[2].a = log((double)(cols ? cols : 1)) + 0.5,
             t[2].b = 0.1, t[3].fill = KBK_SAME, t[3].a = 0.75)
KBKI_FORMULAS(cross_entropy_bwd, s->cols ? s->rows : 0, 3 * n + rows, 2 * n * elem + 8 * rows + 4)
KBKI_REF(cross_entropy_bwd) {
    for (int64_t r = u0; r < u1; r++) {
        const double *x = in[0] + r * s->cols, t = in[1][r], lse = in[2][r], g = in[3][0];
        double *dx = out[0] + (r - u0) * s->cols,
               *size = out[KBK_OUTS] ? out[KBK_OUTS] + (r - u0) * s->cols : NULL;
        int good = t >= 0 && t < (double)s->cols;
        for (int64_t c = 0; c < s->cols; c++) {
            dx[c] = good ? g * (exp(x[c] - lse) - (t == (double)c)) : kbki_from_bits(0x7FF8ull << 48);
            if (t == KBK_IGNORE) dx[c] = 0;
            if (size) size[c] = t == (double)c ? fabs(g) * (elem == 4 ? 2 : 1e-3) : 0;
        }
    }
}

#ifdef __CUDACC__
template <class T>
__global__ void kbk_cross_entropy_bwd_naive_k(const T* x, const int* t, const float* lse, const float* g, T* dx,
                                              int64_t rows, int64_t cols) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    // 32-bit division is much faster than 64-bit division
    int64_t r = (i | cols) >> 32 ? i / cols : (unsigned)i / (unsigned)cols;
    if (r >= rows) return;
    kbki_ce_row<T>(lse[r], *g, t[r], cols).gradient_at(x + r * cols, dx + r * cols, i - r * cols);
}

// ---- The kernels that add one idea each end here.

/*  Threads: 16 or 32 per row, or 256 per piece of a row. U: vectors in flight per thread. The gradient is computed
    from `pair` (max, sum) and `scale`, or from `lse` and `g` if `pair` is NULL. */
template <class T, int Width, int Threads, int U>
__global__ void __launch_bounds__(256)
    kbk_cross_entropy_bwd_unroll_k(const T* x, const int* t, const float* lse, const float* g, T* dx, int64_t rows,
                                   int64_t cols, unsigned pieces, const float2* pair, float scale) {
    const unsigned r = Threads < 256 ? blockIdx.x * (256 / Threads) + threadIdx.x / Threads : blockIdx.x / pieces;
    const unsigned piece = Threads < 256 ? 0 : blockIdx.x - r * pieces;
    if (r >= rows) return;
    x += r * cols, dx += r * cols;
    kbki_span sp = kbki_split<T, Width>(x, cols);
    kbki_pack<T, Width> v[U];
    int64_t i = (int64_t)piece * (Threads * U) + threadIdx.x % Threads;
    const int64_t one = piece ? -1 : kbki_single(sp, cols, threadIdx.x % Threads);
    kbki_ce_row<T> row;
    do {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u * Threads < sp.packs) kbki_ce_load(v[u], x + sp.head + (i + u * Threads) * Width);
        row = pair ? kbki_ce_row<T>(pair[r].x, pair[r].y, scale, __ldg(t + r), cols)
                   : kbki_ce_row<T>(__ldg(lse + r), __ldg(g), __ldg(t + r), cols);
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int64_t c = sp.head + (i + u * Threads) * Width;
            if (i + u * Threads >= sp.packs) continue;
            row.template gradient<Width>(v[u], c);
            v[u].store_cached(dx + c);
        }
        i += U * Threads;
    } while (Threads < 256 && i < sp.packs);
    if (one >= 0) row.gradient_at(x, dx, one);
}

// Short rows as one sequence of vectors. A vector that crosses the end of a row is computed once for each row.
template <class T, int U = 2, int Width = KBKI_WIDTH(T)>
__global__ void __launch_bounds__(256)
    kbki_cross_entropy_bwd_packs_k(const T* x, const int* t, const float* lse, const float* g, T* dx, int64_t rows,
                                   int64_t columns, const float2* pair, float scale) {
    const kbki_span sp = kbki_split<T, Width>(x, rows * columns);
    const int64_t start = (int64_t)blockIdx.x * (256 * U), at = sp.head + start * Width, r0 = at / columns;
    const unsigned cols = (unsigned)columns, c0 = (unsigned)(at - r0 * cols);
    kbki_pack<T, Width> v[U], w;
    float e[Width], f[Width];
    const auto row_of = [&](int64_t r) {
        return pair ? kbki_ce_row<T>(pair[r].x, pair[r].y, scale, __ldg(t + r), cols)
                    : kbki_ce_row<T>(__ldg(lse + r), __ldg(g), __ldg(t + r), cols);
    };
    const auto one = [&](int64_t r, int64_t c) { row_of(r).gradient_at(x + r * cols, dx + r * cols, c); };
#pragma unroll
    for (int u = 0; u < U; u++) {
        const unsigned i = threadIdx.x + u * 256;
        if (start + i < sp.packs) kbki_ce_load(v[u], x + at + i * Width);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        // the vector begins in column c of row r
        const unsigned i = threadIdx.x + u * 256, ahead = (c0 + i * Width) / cols;
        const unsigned c = c0 + i * Width - ahead * cols;
        const int64_t r = r0 + ahead;
        if (start + i >= sp.packs) continue;
        if (c + Width > cols && cols < Width) { // the vector may have elements of more than two rows
#pragma unroll 1
            for (unsigned k = c; k < c + Width; k++) one(r + k / cols, k % cols);
            continue;
        }
        w = v[u];
        kbki_ce_row<T> row = row_of(r);
        row.template gradient_near<Width>(v[u], (unsigned)row.at - c);
        if (c + Width > cols) {
            row = row_of(r + 1);
            row.template gradient_near<Width>(w, (unsigned)row.at + (cols - c));
            v[u].get(e), w.get(f);
#pragma unroll
            for (int k = 0; k < Width; k++) e[k] = c + k < cols ? e[k] : f[k];
            v[u].set(e);
        }
        v[u].store_cached(dx + at + i * Width);
    }
    const int64_t single = blockIdx.x ? -1 : kbki_single(sp, rows * columns, threadIdx.x);
    if (single >= 0) one(single / cols, single % cols);
}

template <class T> const char* kbk_cross_entropy_bwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_ce_launch<T, false, true>(a, [&](auto& io) {
        const int64_t ctas = kbki_ceil(io.rows * io.cols, 256);
        if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
        kbk_cross_entropy_bwd_naive_k<T>
            <<<(unsigned)ctas, 256, 0, st>>>(io.x, io.t, io.lse, io.g, io.dx, io.rows, io.cols);
        return (const char*)NULL;
    });
}
template <class T, int Width, int Threads> const char* kbki_ce_grad(const kbki_ce<T>& io, kbk_stream st) {
    constexpr int U = 2;
    const int64_t pieces = kbki_ceil(io.cols, Threads * U * Width);
    const int64_t ctas = Threads < 256 ? kbki_ceil(io.rows, 256 / Threads) : io.rows * pieces;
    if (!kbki_grid_ok(pieces) || !kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    kbk_cross_entropy_bwd_unroll_k<T, Width, Threads, U><<<(unsigned)ctas, 256, 0, st>>>(
        io.x, io.t, io.lse, io.g, io.dx, io.rows, io.cols, (unsigned)pieces, io.pair, io.scale);
    return NULL;
}
template <class T> const char* kbki_ce_bwd_unroll(const kbki_ce<T>& io, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    if (kbki_ce_rows<false, true>(io, st)) return NULL;
    if (!kbki_congruent(io.x, io.dx)) return kbki_ce_grad<T, 1, 256>(io, st);
    if (io.cols < 64) {
        const int64_t ctas = kbki_ceil(io.rows * io.cols, 512 * Width);
        if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
        kbki_cross_entropy_bwd_packs_k<T><<<(unsigned)ctas, 256, 0, st>>>(io.x, io.t, io.lse, io.g, io.dx, io.rows,
                                                                          io.cols, io.pair, io.scale);
        return NULL;
    }
    if (io.cols < 32 * Width) return kbki_ce_grad<T, Width, 16>(io, st);
    return io.cols < 256 * Width ? kbki_ce_grad<T, Width, 32>(io, st) : kbki_ce_grad<T, Width, 256>(io, st);
}
template <class T> const char* kbk_cross_entropy_bwd_unroll(const kbk_args* a, kbk_stream st) {
    return kbki_ce_launch<T, false, true>(a, [&](auto& io) { return kbki_ce_bwd_unroll(io, st); });
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>cross_entropy_both     Loss and gradient at once: how to read a long row only once.
-----------------------------------------------------------------*/

/*  cross_entropy fwdbwd -------------------------------------------------------------------------------------
    loss[r] = lse[r] - x[r,t[r]]     dx[r,c] = scale (exp(x[r,c] - lse[r]) - (c == t[r]))
    x, dx: R x V = rows x cols     t: R, int32     loss: R, f32     scale: args.scalar; 0 means 1
    flops  5*R*V + 5*R     max 1, subtract 1, exp 1, sum 1, times scale / sum 1 per logit; per row log, + max,
                           - target logit, scale / sum, - scale
    bytes  2*R*V*s + 8*R   if a row is read only once
    check  as cross_entropy bwd; its targets, too. dx may be x itself
    Rungs 1 and 2 use the kernels of >>cross_entropy.
    1 split    fwd unroll, then bwd unroll    <- slow: the logits are read from memory twice. (max, sum) is passed
               between the kernels, because an f32 lse is too coarse for logits near 1000
    2 fused    CTA per row; the second read runs backwards, as in fused_classifier of llm.c (Karpathy 2024)
                                              <- one launch; the end of the row is still in the L2 cache. Rows of
               up to 1024 vectors are read once, into registers, and short ones share a CTA
    3 shared   persistent kernel, row in shared memory, loaded by a cp.async pipeline; while a row is written, its
               buffers are filled with the next row       <- one read of x; loads overlap with computing and
               writing, and the SM reads and writes in bursts of a row. Rows up to 192 KiB
    4 cluster  row split over 2 to 8 CTAs; their (max, sum) pairs are exchanged through distributed shared memory
                                              <- one read of rows up to 1.4 MiB. Slower if a row fits into one SM:
               at every row, the CTAs wait for each other, and the DRAM share falls
               Rung 2 runs instead if rows are longer, or if x and dx have different alignments modulo 16 bytes
    predict    L2 has 50 MiB, and 264 CTAs process a row each. Does the second read of rung 2 come from DRAM? */
/*  measured cross_entropy fwdbwd: bf16 8192 x 50304, NVIDIA H100 80GB HBM3, 2026-11-26
    1.250 FLOP/B; floor on an H200 385.5 us = 1.648 GB / 4.276 TB/s; on this GPU 540.4 us at 3.051 TB/s
                  time  peak   gain regs  occ DRAM conflicts
    1 split   813.0 us  77 %      -   56 72 % 90 %      6852  kernel fwd/unroll, then kernel bwd/unroll
    2 fused   703.8 us  89 % 1.16 x   64 43 % 87 %      16 k  CTA per row; the second read runs backwards
    3 shared  573.6 us 109 % 1.23 x   56 39 % 85 %    1150 k  row in shared memory, one read
    4 cluster 596.0 us 105 % 0.96 x   64 46 % 82 %    1370 k  row split over 2 to 8 CTAs, sums by DSMEM
    end of measured */
// The magnitude of a loss is |loss| + 1/4, because a loss near 0 is the difference of larger numbers.
KBKI_TENSORS(cross_entropy_fwdbwd, 4, t[0] = kbki_in("x", n, cols), t[1] = kbki_ids("t", rows, 1, cols),
             t[2] = kbki_out("loss", KBK_KF32, rows, 1, 0), t[2].scales = 1,
             t[3] = kbki_out("dx", KBK_T, n, cols, cols))
KBKI_FORMULAS(cross_entropy_fwdbwd, s->cols ? s->rows : 0, 5 * n + 5 * rows, 2 * n * elem + 8 * rows)
KBKI_SCRATCH(ce_both) { return word != KBKI_WORD_split ? 0 : KBK_TICKETS + (size_t)s->rows * 2 * sizeof(float); }
KBKI_REF(cross_entropy_fwdbwd) {
    for (int64_t r = u0; r < u1; r++) {
        double loss, top = -HUGE_VAL, log_sum = 0, one = 1, *both[2] = { &loss, NULL },
                     *dx[2 * KBK_OUTS] = { NULL };
        const double *x = in[0] + r * s->cols, *grad[4] = { NULL, in[1] + r, &log_sum, &one };
        kbk_cross_entropy_fwd_ref(s, elem, in, both, r, r + 1);
        if (out[0]) out[0][r - u0] = loss;
        if (out[KBK_OUTS]) out[KBK_OUTS][r - u0] = kbk_is_nan(loss) || kbk_is_inf(loss) ? 0 : fabs(loss) + 0.25;
        if (!out[1]) continue;
        if (out[KBK_OUTS + 1]) dx[KBK_OUTS] = out[KBK_OUTS + 1] + (r - u0) * s->cols;
        grad[0] = dx[0] = out[1] + (r - u0) * s->cols;
        // The maximum is subtracted first: near -1e30, adding log(sum) to it would change nothing, even in double.
        for (int64_t c = 0; c < s->cols; c++) top = x[c] > top ? x[c] : top;
        for (int64_t c = 0; c < s->cols; c++) log_sum += exp(dx[0][c] = x[c] - top);
        log_sum = log(log_sum);
        kbk_cross_entropy_bwd_ref(s, elem, grad, dx, 0, 1);
    }
}

#ifdef __CUDACC__
#define KBKI_CE_SLOTS 14 // pieces (1024 vectors each) that fit into the shared memory of an SM
#define KBKI_CE_AHEAD 8  // most pieces in flight while a row is processed
// A thread's part of a row. c: first column. left: vectors to the end of the CTA's share. one: a lone element or
// -1.
struct kbki_ce_part {
    int64_t c, one;
    int left;
    template <class T>
    static __device__ __forceinline__ kbki_ce_part of(const T* row, int64_t cols, int share, int rank) {
        constexpr int Width = KBKI_WIDTH(T);
        const kbki_span sp = kbki_split<T, Width>(row, cols);
        const int64_t from = (int64_t)share * rank, end = min((int64_t)sp.packs, from + share),
                      i = from + threadIdx.x;
        return { sp.head + i * Width, rank ? -1 : kbki_single(sp, cols, threadIdx.x), (int)(end - i) };
    }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// One exponential per lane: an integer reduction finds the maximum first, on integers in the order of the floats.
__device__ __forceinline__ kbki_pair kbki_ce_warp(kbki_pair p) {
    int k = __float_as_int(p.m);
    k = __reduce_max_sync(~0u, k ^ (k >> 31 & 0x7FFFFFFF));
    float top = __int_as_float(k ^ (k >> 31 & 0x7FFFFFFF));
    return { top, kbki_warp_all<kbki_sum<float>>(p.s * kbki_rebase(p.m, kbki_base(top))) };
}
/*  Exchanges (max, sum) pairs in a cluster. Each warp sends its pair (st.async) to position `slot` of a table in
    every CTA, whose mbarrier counts bytes (one CTA: arrivals). A cluster barrier would also await stores to dx. */
template <int Cluster, int Warps>
__device__ __forceinline__ kbki_pair kbki_ce_all(kbki_pair p, kbki_pair* table, uint64_t* bar, int slot,
                                                 unsigned parity) {
    const unsigned lane = threadIdx.x % 32;
    p = kbki_ce_warp(p);
    if (Cluster == 1) {
        if (lane == 0) table[slot] = p, kbki_bar_arrive(bar);
        kbki_bar_wait(bar, parity);
    } else {
        if (threadIdx.x == 0) kbki_bar_expect(bar, Cluster * Warps * (unsigned)sizeof p);
        if (lane < Cluster)
            asm volatile(
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
                    kbki_cluster_at(kbki_shared(table + slot), lane)),
                "f"(p.m), "f"(p.s), "r"(kbki_cluster_at(kbki_shared(bar), lane))
                : "memory");
        kbki_bar_wait<true>(bar, parity);
    }
    p = kbki_pair::none();
#pragma unroll
    for (int i = 0; i < Cluster; i++)
        if (lane < Warps) p = i ? kbki_pair::join(p, table[i * Warps + lane]) : table[lane];
    return kbki_ce_warp(p);
}
#endif

/*  A cluster processes rows first, first + step, and so on. CTA `rank` has `share` vectors of each row, in
    `pieces` pieces of one vector per thread. Piece q of the sequence of its pieces is in slot q mod (pieces +
    ahead) of shared memory. Each thread loads only vectors that it uses (cp.async): no barrier is needed. After
    the exchange of (max, sum), gradients are written, and the slot of piece q is refilled with piece q + pieces +
    ahead. An SM therefore alternates between reading and writing a row. The target is loaded two rows ahead, its
    logit one. */
template <class T, int Cluster, int Threads>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
    kbki_cross_entropy_fwdbwd_ring_k(const T* x, const int* t, float* loss, T* dx, float scale, int rows,
                                     int64_t cols, int share, int pieces, int ahead) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    constexpr int Width = KBKI_WIDTH(T), Warps = Threads / 32, U = 8 / Width; // U vectors hold eight logits
    extern __shared__ uint4 kbki_ce_data[];
    __shared__ uint64_t met[2];
    __shared__ kbki_pair table[2][Cluster * Warps];
    const int rank = Cluster == 1 ? 0 : (int)kbki_cluster_rank(), warp = threadIdx.x / 32;
    const int first = blockIdx.x / Cluster, step = gridDim.x / Cluster;
    const bool leads = rank == 0 && threadIdx.x == 0;
    unsigned slot = kbki_shared(kbki_ce_data + threadIdx.x), begin = slot,
             end = slot + (pieces + ahead) * Threads * 16;
    if (threadIdx.x < 2) kbki_bar_init(met + threadIdx.x, Cluster == 1 ? Warps : 1);
    kbki_bar_ready(), __syncthreads();
    // a CTA must have started before another writes to its shared memory
    if (Cluster > 1) kbki_cluster_barrier();
    kbki_ce_part part = kbki_ce_part::of(x, cols, share, rank);
    // from: the next vector to load. origin: this thread's first vector of row 0, if all rows are aligned alike
    const T *origin = x + part.c, *from = x;
    int next = first, piece = 0, left = 0, count = part.left;
    // Hides from the compiler how the operands were computed, so that it keeps them in registers.
    asm volatile("" : "+r"(slot), "+r"(begin), "+r"(end), "+l"(origin), "+r"(count));
    auto aim = [&] {
        left = 0;
        if (next >= rows) return;
        from = origin + next * cols, left = count;
        if (cols % Width) {
            const kbki_ce_part p = kbki_ce_part::of(x + next * cols, cols, share, rank);
            from = x + next * cols + p.c, left = p.left;
        }
        asm volatile("" : "+l"(from), "+r"(left));
    };
    auto ask = [&](unsigned to) {
        if (left > 0) kbki_ahead_copy(to, from);
        kbki_ahead_close();
        from += Threads * Width, left -= Threads;
        if (++piece == pieces) piece = 0, next += step, aim();
    };
    aim();
#pragma unroll 1
    for (unsigned to = begin; to < end; to += Threads * 16) ask(to);
    auto target = [&](int r) { return r < rows ? __ldg(t + r) : 0; };
    int at = target(first), at_next = target(first + step);
    auto inside = [&](int at) { return at >= 0 && at < cols; };
    T logit = leads && inside(at) ? x[first * cols + at] : T(),
      logit_next = T(); // converted to float only when used
    unsigned turn = 0;
#pragma unroll 1
    for (int r = first; r < rows; r += step, turn++) {
        const T* row_x = x + r * cols;
        const int at_later = target(r + 2 * step);
        if (leads && r + step < rows && inside(at_next)) logit_next = row_x[step * cols + at_next];
        if (cols % Width) part = kbki_ce_part::of(row_x, cols, share, rank);
        float edge = part.one >= 0 ? kbki_float(row_x[part.one]) : -INFINITY;
        // empty groups are added, because cp.async.wait_group needs a constant number of groups
        for (int i = ahead; i < KBKI_CE_AHEAD; i++) kbki_ahead_close();
        kbki_ahead_wait<KBKI_CE_AHEAD>();
        kbki_pair p = kbki_pair::none();
        kbki_base base(p.m);
        unsigned read = slot;
        int rest = part.left;
#pragma unroll 1
        for (int i = 0; i < pieces; i += U) {
            kbki_pack<T, Width> v[U];
            float f[U][Width], top = -INFINITY, sum = 0;
#pragma unroll
            for (int u = 0; u < U; u++, rest -= Threads) {
                v[u].fill(kbki_type<T>::minus_inf);
                if (rest > 0) v[u].q = kbki_shared_pack(read);
                if ((read += Threads * 16) == end) read = begin;
                v[u].get(f[u]);
#pragma unroll
                for (int k = 0; k < Width; k++) top = fmaxf(top, f[u][k]);
            }
            // a new maximum is rare after the first vectors
            if (top > p.m) base = kbki_base(top), p.s *= kbki_rebase(p.m, base), p.m = top;
#pragma unroll
            for (int u = 0; u < U; u++)
#pragma unroll
                for (int k = 0; k < Width; k++) sum += kbki_exp_from(f[u][k], base);
            p.s += sum;
        }
        if (part.one >= 0) p.add(edge);
        p = kbki_ce_all<Cluster, Warps>(p, table[turn & 1], met + (turn & 1), rank * Warps + warp, turn >> 1 & 1);
        const kbki_ce_row<T> row(p.m, p.s, scale, at, cols);
        T* out = dx + r * cols + part.c;
        int goal = (int)(row.at - part.c); // column of the target minus first column of the vector
        if (leads) loss[r] = kbki_ce_loss(p, at, inside(at) ? kbki_float(logit) : __int_as_float(0x7FC00000));
        if (part.one >= 0) row.gradient_at(row_x, dx + r * cols, part.one);
        rest = part.left;
        asm volatile("" : "+l"(out), "+r"(goal), "+r"(rest));
#pragma unroll 1
        for (int i = 0; i < pieces; i++) {
            kbki_pack<T, Width> v;
            if (rest > 0) {
                v.q = kbki_shared_pack(slot);
                row.template gradient_near<Width>(v, (unsigned)goal);
                v.store(out);
            }
            ask(slot);
            out += Threads * Width, goal -= Threads * Width, rest -= Threads;
            if ((slot += Threads * 16) == end) slot = begin;
        }
        at = at_next, at_next = at_later, logit = logit_next;
    }
    if (Cluster > 1) kbki_cluster_barrier();
#endif
}

template <class T> const char* kbk_cross_entropy_fwdbwd_split(const kbk_args* a, kbk_stream st) {
    const auto run = [&](kbki_ce<T>& io) {
        io.pair = (float2*)((char*)a->workspace + KBK_TICKETS);
        const char* why = kbki_ce_loss_too<false>(io, st);
        return why ? why : kbki_ce_bwd_unroll(io, st);
    };
    return kbki_ce_launch<T, true, true>(a, run, kbki_scratch_ce_both(&a->s, (int)sizeof(T), KBKI_WORD_split));
}
template <class T> const char* kbk_cross_entropy_fwdbwd_fused(const kbk_args* a, kbk_stream st) {
    return kbki_ce_launch<T, true, true>(a, [&](auto& io) { return kbki_ce_loss_too<true>(io, st); });
}

// Preferred number of pieces of a row per CTA; five more pieces are then in flight.
#define KBKI_CE_PIECES 9
template <class T, int Cluster, int Threads> const char* kbki_ce_ring_of(const kbki_ce<T>& io, kbk_stream st) {
    constexpr int Slots = (Cluster < 8 ? KBKI_CE_SLOTS : KBKI_CE_SLOTS - 1) * 1024 / (1024 / Threads) / Threads;
    const auto kernel = kbki_cross_entropy_fwdbwd_ring_k<T, Cluster, Threads>;
    const int64_t share = kbki_ceil(io.cols / KBKI_WIDTH(T), Cluster);
    const int64_t pieces = share > 0 ? kbki_ceil(share, Threads) : 1;
    if (!kbki_congruent(io.x, io.dx) || pieces + 2 > Slots || io.rows > (1 << 29))
        return kbki_ce_loss_too<true>(io, st);
    const int64_t ahead = Slots - pieces < KBKI_CE_AHEAD ? Slots - pieces : KBKI_CE_AHEAD;
    size_t bytes = (size_t)(pieces + ahead) * Threads * 16;
    const char* why = kbki_needs(90);
    if (!why) why = kbki_want_shared(kernel, &bytes);
    if (why || !bytes) return why ? why : kbki_ce_loss_too<true>(io, st);
    return kbki_launch_clusters(kernel, Cluster, Threads, bytes, io.rows, true, st, io.x, io.t, io.loss, io.dx,
                                io.scale, (int)io.rows, io.cols, (int)share, (int)pieces, (int)ahead);
}
// Chooses the threads per CTA so that few are idle in the last piece of a row (one 16-byte vector per thread): a
// row of 50304 bf16 elements has 7.9 pieces of 800 threads, but 6.1 pieces of 1024 threads.
template <class T, int Cluster> const char* kbki_ce_ring(const kbki_ce<T>& io, kbk_stream st) {
    const int64_t share = kbki_ceil(io.cols / KBKI_WIDTH(T), Cluster);
    if (share <= KBKI_CE_PIECES * 512) return kbki_ce_ring_of<T, Cluster, 512>(io, st);
    return kbki_ceil(share, 800) * 800 < kbki_ceil(share, 1024) * 1024 ? kbki_ce_ring_of<T, Cluster, 800>(io, st)
                                                                       : kbki_ce_ring_of<T, Cluster, 1024>(io, st);
}
template <class T> const char* kbk_cross_entropy_fwdbwd_shared(const kbk_args* a, kbk_stream st) {
    return kbki_ce_launch<T, true, true>(a, [&](auto& io) { return kbki_ce_ring<T, 1>(io, st); });
}
template <class T> const char* kbk_cross_entropy_fwdbwd_cluster(const kbk_args* a, kbk_stream st) {
    const int64_t packs = a->s.cols / KBKI_WIDTH(T), most = KBKI_CE_PIECES * 1024;
    return kbki_ce_launch<T, true, true>(a, [&](auto& io) {
        if (packs <= 2 * most) return kbki_ce_ring<T, 2>(io, st);
        return packs <= 4 * most ? kbki_ce_ring_of<T, 4, 1024>(io, st) : kbki_ce_ring_of<T, 8, 1024>(io, st);
    });
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>embedding     Rows of a table, selected by index.
-----------------------------------------------------------------*/

/*  embedding fwd --------------------------------------------------------------------------------------------
    y[t,d] = W[ids[t],d]      W: V x D = vocabulary x cols     ids: T = rows, int32     y: T x D
    flops  0
    bytes  (U + T)*D*s + 4*T     U: distinct ids, taken as round(V (1 - (1 - 1/V)^T)), as for uniform ids
    check  bit-exact; for an id outside [0, V), the row is NaN, and W is not read
    1 naive    thread per element            <- slow: a division and a load of the id for every element
    2 vec      warp per token, 16-byte accesses  <- one load of the id per warp; the row is loaded after the id
    3 unroll   two vectors per thread, ids first, small CTAs  <- rows of several tokens in flight per warp: random
               rows need more loads in flight than a copy. If there are few tokens, each token has a CTA
    bound by   memory: compare with bytes / copy bandwidth. vec and unroll read element by element if rows are not
               multiples of 16 bytes, or W or y is not 16-byte aligned
    predict    16384 random ids of 50304. How many distinct rows are read? Which share of the traffic writes y? */
/*  measured embedding fwd: f32 16384 x 768 of 50304, NVIDIA H100 80GB HBM3, 2026-11-26
    0.000 FLOP/B; floor on an H200 21.8 us = 93.36 MB / 4.276 TB/s; on this GPU 30.6 us at 3.051 TB/s
                time peak   gain regs  occ DRAM conflicts
    1 naive  62.0 us 48 %      -   16 84 % 39 %         0  one element per thread
    2 vec    30.3 us 99 % 2.05 x   28 76 % 76 %         0  warp per token, 16-byte accesses
    3 unroll 30.6 us 98 % 0.99 x   28 84 % 76 %         0  ids loaded first, two vectors per thread
    end of measured */
KBKI_TENSORS(embedding_fwd, 3, t[0] = kbki_in("W", s->vocabulary * cols, 0),
             t[1] = kbki_ids("ids", rows, 1, s->vocabulary), t[2] = kbki_out("y", KBK_T, n, cols, 0))
KBK_FN double kbki_distinct(const kbk_shape* s) {
    double rows = (double)s->rows, all = (double)s->vocabulary, distinct = all > 1 ? 0 : rows > 0 ? all : 0;
    if (all > 1) distinct = floor(-all * expm1(rows * log1p(-1 / all)) + 0.5);
    return distinct;
}
KBKI_FORMULAS(embedding_fwd, s->cols ? s->rows : 0, 0, (kbki_distinct(s) + rows) * cols * elem + 4 * rows)
KBKI_REF(embedding_fwd) {
    for (int64_t t = u0; t < u1; t++) {
        double id = in[1][t];
        int good = id >= 0 && id < (double)s->vocabulary;
        for (int64_t d = 0; d < s->cols; d++)
            out[0][(t - u0) * s->cols + d] =
                good ? in[0][(int64_t)id * s->cols + d] : kbki_from_bits(0x7FF8ull << 48);
    }
}

#ifdef __CUDACC__
// Forward: x is W and y is the output. Backward: x is dy and y is dW.
template <class T> struct kbki_embedding_io {
    const T* x;
    const int* ids;
    T* y;
    int64_t tokens, cols, entries;
    __device__ __forceinline__ const T* row(int id) const { return id >= 0 && id < entries ? x + id * cols : NULL; }
};
template <class T> const char* kbki_embedding_args(const kbk_args* a, kbki_embedding_io<T>* io) {
    *io = { (const T*)a->in[0], (const int*)a->in[1], (T*)a->out[0], a->s.rows, a->s.cols, a->s.vocabulary };
    if (!kbki_aligned(io->x, sizeof(T)) || !kbki_aligned(io->y, sizeof(T)) || !kbki_aligned(io->ids, 4))
        return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(io->cols) || !kbki_grid_ok(kbki_ceil(io->tokens * io->cols, 128))) return KBKI_TEXT_GRID;
    return kbki_check_dims(&a->s);
}
template <class T> bool kbki_embedding_wide(const kbki_embedding_io<T>& io) {
    return kbki_whole_packs<T>(io.x, io.y, io.cols);
}
template <class T, int Width>
__device__ __forceinline__ void kbki_row_pack(kbki_pack<T, Width>& v, const T* row, int64_t at) {
    float none[Width];
    if (row) {
        v.load_cached(row + at);
    } else {
        for (int k = 0; k < Width; k++) none[k] = __int_as_float(0x7FC00000);
        v.set(none);
    }
}

template <class T> __global__ void kbk_embedding_fwd_naive_k(kbki_embedding_io<T> io) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, t = i / io.cols;
    if (t >= io.tokens) return;
    const T* row = io.row(io.ids[t]);
    io.y[i] = row ? row[i - t * io.cols] : kbki_type<T>::from(__int_as_float(0x7FC00000));
}
template <class T, int Width>
__global__ void __launch_bounds__(256) kbk_embedding_fwd_vec_k(kbki_embedding_io<T> io) {
    int64_t t = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (t >= io.tokens) return;
    const T* row = io.row(__ldg(io.ids + t));
    for (int64_t c = threadIdx.x % 32 * Width; c < io.cols; c += 32 * Width) {
        kbki_pack<T, Width> v;
        kbki_row_pack<T, Width>(v, row, c), v.store_cached(io.y + t * io.cols + c);
    }
}

// ---- The kernels that add one idea each end here.

// Vectors of y are numbered over all tokens; a row has `per`.
template <class T, int U, int Width = KBKI_WIDTH(T)>
__global__ void __launch_bounds__(64) kbk_embedding_fwd_unroll_k(kbki_embedding_io<T> io, int64_t per) {
    unsigned row = (unsigned)per; // per is below 2^31
    int64_t start = (int64_t)blockIdx.x * (64 * U), t0 = start >> 32 ? start / per : (unsigned)start / row;
    unsigned c0 = (unsigned)(start - t0 * per) + threadIdx.x;
    kbki_pack<T, Width> v[U];
    const T* from[U];
    int64_t c[U];
#pragma unroll
    for (int u = 0; u < U; u++) { // with at least 64 * U vectors per row, a CTA has parts of at most two rows
        unsigned at = c0 + u * 64, ahead = row >= 64 * U ? at >= row : at / row;
        c[u] = (int64_t)(at - ahead * row) * Width;
        from[u] = t0 + ahead < io.tokens ? io.row(__ldg(io.ids + t0 + ahead)) : NULL;
    }
#pragma unroll
    for (int u = 0; u < U; u++) kbki_row_pack<T, Width>(v[u], from[u], c[u]);
#pragma unroll
    for (int u = 0; u < U; u++) {
        int64_t p = start + threadIdx.x + u * 64;
        if (p < per * io.tokens) v[u].store(io.y + p * Width);
    }
}

// For few tokens: a CTA per token, so that all SMs have work, and no division to find the token.
template <class T> __global__ void __launch_bounds__(256) kbki_embedding_fwd_row_k(kbki_embedding_io<T> io, int per) {
    constexpr int Width = KBKI_WIDTH(T);
    const T* row = io.row(__ldg(io.ids + blockIdx.x));
    for (int p = threadIdx.x; p < per; p += blockDim.x) {
        kbki_pack<T, Width> v;
        kbki_row_pack<T, Width>(v, row, p * Width), v.store(io.y + blockIdx.x * io.cols + p * Width);
    }
}

template <class T> const char* kbk_embedding_fwd_naive(const kbk_args* a, kbk_stream st) {
    kbki_embedding_io<T> io;
    const char* why = kbki_embedding_args(a, &io);
    if (why || io.tokens * io.cols == 0) return why;
    kbk_embedding_fwd_naive_k<T><<<(unsigned)kbki_ceil(io.tokens * io.cols, 256), 256, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_embedding_fwd_vec(const kbk_args* a, kbk_stream st) {
    kbki_embedding_io<T> io;
    const char* why = kbki_embedding_args(a, &io);
    if (why || io.tokens * io.cols == 0) return why;
    unsigned ctas = (unsigned)kbki_ceil(io.tokens, 8);
    if (kbki_embedding_wide(io))
        kbk_embedding_fwd_vec_k<T, KBKI_WIDTH(T)><<<ctas, 256, 0, st>>>(io);
    else
        kbk_embedding_fwd_vec_k<T, 1><<<ctas, 256, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_embedding_fwd_unroll(const kbk_args* a, kbk_stream st) {
    constexpr int U = 2;
    kbki_embedding_io<T> io;
    const char* why = kbki_embedding_args(a, &io);
    if (why || io.tokens * io.cols == 0) return why;
    if (!kbki_embedding_wide(io)) return kbk_embedding_fwd_vec<T>(a, st);
    int64_t per = io.cols / KBKI_WIDTH(T);
    if (io.tokens <= 4 * kbki_sms()) {
        unsigned threads = per < 256 ? (unsigned)kbki_ceil(per, 32) * 32 : 256;
        kbki_embedding_fwd_row_k<T><<<(unsigned)io.tokens, threads, 0, st>>>(io, (int)per);
        return kbki_launched();
    }
    kbk_embedding_fwd_unroll_k<T, U><<<(unsigned)kbki_ceil(io.tokens * per, 64 * U), 64, 0, st>>>(io, per);
    return kbki_launched();
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>embedding_bwd     Gradient of an embedding table: several tokens may add to the same row.
-----------------------------------------------------------------*/

/*  embedding bwd --------------------------------------------------------------------------------------------
    dW[v,d] = sum of dy[t,d] over the t with ids[t] == v      dy: T x D     dW: V x D, all rows written
    flops  T*D
    bytes  (T + V)*D*s + 4*T
    check  f32 norm-wise 1e-5, 8 ulp of the sum of the terms' magnitudes; f16 4e-4, bf16 3e-3, 2 ulp of this sum.
           An id outside [0, V) adds nothing
    1 atomic   f32: dW = 0, then an atomicAdd per element    <- slow: dW is written twice, and atomics of tokens
               with the same id are serialised
    2 vec      f32, sm 90: red.global.add.v4.f32             <- a quarter of the atomics
    3 sorted   two kernels. Order: ids with the same remainder modulo a power of two (128 for 128 to 524288 rows of
               dW) form a class. One CTA per class selects its tokens, counts them by id and sorts the tokens of each
               id. Write: for the first token of each id, its row of dy, or the sum of all rows with this id, is
               written to dW. Then rows of dW without tokens are set to zero
                                           <- every row is written once: no zero-fill, no contention, the same bits
               every time. No data is read while the zeros are written. Sums are in f32 and in token order; for
               more than 32 tokens, sums of 8 interleaved streams. On sm 90, by programmatic dependent launch
               (PDL), the second kernel's first CTAs start beside the first kernel, and load their rows of dy
               before the order is known
    bound by   memory: compare with bytes / copy bandwidth; mostly writes. Each CTA of the first kernel reads all
               ids, from the L2 cache
    predict    how many bytes do atomic and sorted move per element of dW, with a token and without one? */
/*  measured embedding bwd: f32 16384 x 768 of 50304, NVIDIA H100 80GB HBM3, 2026-11-26
    0.061 FLOP/B; floor on an H200 47.9 us = 204.9 MB / 4.276 TB/s; on this GPU 67.2 us at 3.051 TB/s
                 time peak   gain regs  occ DRAM conflicts
    1 atomic 117.6 us 55 %      -   16 80 % 70 %         0  one atomic per element
    2 vec    108.1 us 60 % 1.09 x   16 79 % 75 %         0  red.global.add.v4.f32
    3 sorted  66.4 us 97 % 1.63 x   56 44 % 84 %      12 k  ids sorted; each row of dW is written once
    end of measured */
#define KBKI_EMB_TH 1024   // threads per CTA of kbki_emb_order_k
#define KBKI_EMB_ROWS 4096 // most rows of dW per CTA of kbki_emb_order_k
#define KBKI_EMB_LIST 1024 // most tokens in a list in shared memory; longer lists are in the workspace
#define KBKI_EMB_FEW 512   // if a class of ids has at most 512 tokens, each token is compared with all others
#define KBKI_EMB_HOT 32    // a row of dW with more than 32 tokens is hot: all threads of a CTA add its tokens
KBKI_TENSORS(embedding_bwd, 3, t[0] = kbki_in("dy", n, 0), t[1] = kbki_ids("ids", rows, 0, s->vocabulary),
             t[2] = kbki_out("dW", KBK_T, s->vocabulary * cols, cols, cols))
KBKI_FORMULAS(embedding_bwd, s->cols ? s->vocabulary : 0, n, (rows + (double)s->vocabulary) * cols * elem + 4 * rows)
// Ids with the same remainder modulo 2^bits form one class. Returns `bits`.
KBK_FN int kbki_emb_bits(int64_t entries) {
    int bits = 0;
    while (bits < 7 && ((int64_t)2 << bits) <= entries) bits++;
    while (((entries - 1) >> bits) + 1 > KBKI_EMB_ROWS) bits++;
    return bits;
}
// Returns the 32-bit words of a mask with one bit for each id of a class.
KBK_FN int64_t kbki_emb_words(int64_t entries, int bits) {
    return (((entries - 1) >> bits) + 32) / 32;
}
// Per token, one entry of info, spill, hot and order; per class of ids, one of hots and one bit per row of dW.
KBKI_SCRATCH(embedding) {
    int bits = kbki_emb_bits(s->vocabulary);
    if (word != KBKI_WORD_sorted || s->vocabulary <= 0) return 0;
    return KBK_TICKETS + (size_t)s->rows * 28 + ((size_t)(8 + 4 * kbki_emb_words(s->vocabulary, bits)) << bits);
}
KBKI_REF(embedding_bwd) {
    double *dw = out[0], *magnitude = out[KBK_OUTS];
    for (int64_t i = 0; i < (u1 - u0) * s->cols; i++) {
        if (dw) dw[i] = 0;
        if (magnitude) magnitude[i] = 0;
    }
    for (int64_t t = 0; t < s->rows; t++) {
        if (!(in[1][t] >= (double)u0 && in[1][t] < (double)u1)) continue;
        int64_t at = ((int64_t)in[1][t] - u0) * s->cols;
        for (int64_t d = 0; d < s->cols; d++) {
            if (dw) dw[at + d] += in[0][t * s->cols + d];
            if (magnitude) magnitude[at + d] += fabs(in[0][t * s->cols + d]);
        }
    }
}

#ifdef __CUDACC__
__device__ __forceinline__ void kbki_emb_add(float* p, const kbki_pack<float, 1>& v) { atomicAdd(p, v.v); }
__device__ __forceinline__ void kbki_emb_add(float* p, const kbki_pack<float, 4>& v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    float x[4];
    v.get(x);
    kbki_add4(p, x);
#endif
}
template <class T, int Width> __global__ void kbk_embedding_bwd_atomic_k(kbki_embedding_io<T> io) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, per = io.cols / Width, t = i / per;
    if (t >= io.tokens) return;
    int64_t id = __ldg(io.ids + t);
    kbki_pack<T, Width> v;
    v.load(io.x + i * Width);
    if (id >= 0 && id < io.entries) kbki_emb_add(io.y + id * io.cols + (i - t * per) * Width, v);
}

// ---- The kernels that add one idea each end here.

// Results of kbki_emb_order_k for kbk_embedding_bwd_sorted_k. Class c contains the ids c + (row << bits).
struct kbki_emb_order {
    const int* ids;
    int64_t tokens;
    unsigned entries, bits;
    int words;         // 32-bit words of each class in `some`
    // per token. x: tokens with its id, 0 unless it is the first. y: position in `order` of the first of several
    uint2* info;
    uint2* spill;      // lists of (token, row) of classes whose lists do not fit into shared memory
    // hot: rows of dW with more than KBKI_EMB_HOT tokens, by class. x: index of the row; y: position in `order` of
    // its first token. hots: per class. x: number of hot rows; y: position in `hot` of the first
    uint2 *hot, *hots;
    unsigned* order;   // tokens whose id occurs several times, grouped by id
    unsigned* some;    // one bit per row of dW: 1 if the row has a token
    // Returns the index of an id within class c, or ~0 if the id is in another class.
    __device__ __forceinline__ unsigned row(int id, unsigned c) const {
        return ((unsigned)id & ((1u << bits) - 1)) == c && (unsigned)id < entries ? (unsigned)id >> bits : ~0u;
    }
};

// Calls use(id, token, there) for the tokens of this warp's share; `there` is false beyond its end. Sixteen loads
// per thread are in flight. start() is called once, while the first loads are in flight.
template <class Start, class Use>
__device__ __forceinline__ void kbki_emb_scan_ids(const int* ids, int64_t tokens, Start start, Use use) {
    constexpr int U = 16;
    unsigned share = (unsigned)((tokens + KBKI_EMB_TH - 1) / KBKI_EMB_TH) * 32, t = share * (threadIdx.x / 32);
    int left = (unsigned)tokens > t ? (int)min(share, (unsigned)tokens - t) : 0, id[U];
    t += threadIdx.x % 32, left -= (int)(threadIdx.x % 32);
    const int* from = ids + t;
#pragma unroll
    for (int u = 0; u < U; u++) id[u] = u * 32 < left ? __ldg(from + u * 32) : -1;
    start();
#pragma unroll 1
    while (__any_sync(~0u, left > 0)) {
#pragma unroll
        for (int u = 0; u < U; u++) use(id[u], t + u * 32, u * 32 < left);
        from += 32 * U, t += 32 * U, left -= 32 * U;
#pragma unroll
        for (int u = 0; u < U; u++) id[u] = u * 32 < left ? __ldg(from + u * 32) : -1;
    }
}
// Sorts few tokens of a class, listed in any order: counts, for each token, the earlier tokens with its id.
__device__ __forceinline__ void kbki_emb_rank(const kbki_emb_order& o, const uint2* list, const unsigned* count,
                                              const unsigned* start, unsigned total) {
    const unsigned part = threadIdx.x % 8;
    // the bound is rounded up, so that all lanes of a warp execute the same number of iterations
    for (unsigned i = threadIdx.x / 8; i < (total + 3) / 4 * 4; i += KBKI_EMB_TH / 8) {
        uint2 e = i < total ? list[i] : make_uint2(0, ~0u);                             // (token, row)
        unsigned n = i < total ? count[e.y] : 0, rank = 0;
        if (n > 1)
#pragma unroll 4
            for (unsigned j = part; j < total; j += 8) rank += list[j].y == e.y && list[j].x < e.x;
        rank = kbki_warp_all<kbki_sum<unsigned>, 8>(rank);
        if (part || i >= total) continue;
        if (n > 1) o.order[start[e.y] + rank] = e.x;
        o.info[e.x] = make_uint2(rank ? 0 : n, n > 1 ? start[e.y] : 0);
    }
}
/*  Faster than kbki_emb_rank for many tokens: all threads rebuild the list in ascending order (`mine`: tokens
    found by a thread), then one warp takes 32 tokens at a time. start[row]: position in `order` of the row's next
    token. */
__device__ __forceinline__ void kbki_emb_walk(const kbki_emb_order& o, uint2* list, unsigned* count, unsigned* start,
                                              unsigned total, unsigned mine, unsigned* slots) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, lower = (1u << lane) - 1, seen = 1u << 31;
    mine = kbki_warp_all<kbki_sum<unsigned>>(mine);
    if (lane == 0) slots[warp] = mine;
    __syncthreads();
    unsigned at = kbki_warp_all<kbki_sum<unsigned>>(lane < warp ? slots[lane] : 0u);
    kbki_emb_scan_ids(
        o.ids, o.tokens, [] {},
        [&](int id, unsigned t, bool there) {
            unsigned row = there ? o.row(id, blockIdx.x) : ~0u, who = __ballot_sync(~0u, row != ~0u);
            if (row != ~0u) list[at + __popc(who & lower)] = make_uint2(t, row);
            at += __popc(who);
        });
    __syncthreads();
    if (warp) return;
    for (unsigned i = lane; i - lane < total; i += 32) {
        uint2 e = i < total ? list[i] : make_uint2(0, ~0u);
        unsigned same = __match_any_sync(~0u, e.y), rank = __popc(same & lower), n = 0, p = 0;
        if (e.y != ~0u) {
            n = count[e.y], p = n == 1 ? 0 : start[e.y];
            if (n != 1) o.order[p + rank] = e.x;
            o.info[e.x] = make_uint2(rank || n & seen ? 0 : n, p);
        }
        __syncwarp();
        if (e.y != ~0u && rank == 0 && n != 1) start[e.y] = p + __popc(same), count[e.y] = n | seen;
        __syncwarp();
    }
}

// Each CTA lists the tokens of one class of ids, and groups them by row of dW, in ascending order.
template <int> __global__ void __launch_bounds__(KBKI_EMB_TH, 1) kbki_emb_order_k(kbki_emb_order o) {
    extern __shared__ uint2 kbki_emb_memory[];
    __shared__ unsigned slots[32], total, top, hots, under;
    const unsigned lane = threadIdx.x % 32, mask = (1u << o.bits) - 1, c = blockIdx.x;
    uint2* list = kbki_emb_memory;
    unsigned *count = (unsigned*)(list + KBKI_EMB_LIST), *start = count + o.words * 32, mine = 0, below = 0;
    auto clear = [&] { // called while the first loads of ids are in flight
        for (int j = threadIdx.x; j < o.words * 32; j += KBKI_EMB_TH) count[j] = 0;
        if (threadIdx.x == 0) total = top = hots = under = 0;
        // The second kernel may start (PDL) only now, because its loads would delay this kernel's first loads
        kbki_follow_me();
        __syncthreads();
    };
    kbki_emb_scan_ids(o.ids, o.tokens, clear, [&](int id, unsigned t, bool there) {
        unsigned key = (unsigned)id < o.entries ? (unsigned)id & mask : ~0u; // id is -1 beyond the last token
        below += key < c;
        if (key != c) {
            if (c == 0 && key == ~0u && there) o.info[t] = make_uint2(0, 0);
            return;
        }
        unsigned k = atomicAdd(&total, 1u), row = (unsigned)id >> o.bits;
        if (k < KBKI_EMB_LIST) list[k] = make_uint2(t, row);
        atomicAdd(count + row, 1u), mine++;
    });
    below = kbki_warp_all<kbki_sum<unsigned>>(below);
    if (lane == 0) atomicAdd(&under, below);
    __syncthreads();
    below = under;
    for (int j = threadIdx.x; j < o.words * 32; j += KBKI_EMB_TH) {
        unsigned n = count[j], any = __ballot_sync(~0u, n > 0);
        if (lane == 0) o.some[c * o.words + j / 32] = any;
        if (n > 1) start[j] = below + atomicAdd(&top, n);
        if (n > KBKI_EMB_HOT) o.hot[below + atomicAdd(&hots, 1u)] = make_uint2(c + ((unsigned)j << o.bits), start[j]);
    }
    __syncthreads();
    if (threadIdx.x == 0) o.hots[c] = make_uint2(hots, below);
    if (total <= KBKI_EMB_FEW)
        kbki_emb_rank(o, list, count, start, total);
    else
        kbki_emb_walk(o, total > KBKI_EMB_LIST ? o.spill + below : list, count, start, total, mine, slots);
}

#define KBKI_EMB_PUT 128 // threads per CTA of kbk_embedding_bwd_sorted_k
#define KBKI_EMB_U 4     // 16-byte vectors of dy per thread

// 16 vectors of a hot row. Each of eight groups of 16 threads sums every eighth token; a fixed order adds the
// groups.
template <class T, int Width>
__device__ __forceinline__ void kbki_emb_hot_row(const kbki_embedding_io<T>& io, const kbki_emb_order& o, uint2 hot,
                                                 int64_t c, unsigned* tokens, float* part) {
    constexpr int Lanes = 16, Streams = KBKI_EMB_PUT / Lanes, Ahead = 4, Room = KBKI_EMB_PUT * 4;
    const unsigned stream = threadIdx.x / Lanes, lane = threadIdx.x % Lanes, n = o.info[o.order[hot.y]].x;
    float f[Width] = {}, g[Width];
#pragma unroll 1
    for (unsigned i0 = 0; i0 < n; i0 += Room) {
        unsigned m = n - i0 < Room ? n - i0 : Room;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < m; i += KBKI_EMB_PUT) tokens[i] = o.order[hot.y + i0 + i];
        __syncthreads();
#pragma unroll 1
        for (unsigned i = stream; c < io.cols && i < m; i += Ahead * Streams) {
            kbki_pack<T, Width> v[Ahead];
#pragma unroll
            for (int a = 0; a < Ahead; a++) {
                v[a].fill(0);
                if (i + a * Streams < m) v[a].load_cached(io.x + tokens[i + a * Streams] * io.cols + c);
            }
#pragma unroll
            for (int a = 0; a < Ahead; a++) {
                v[a].get(g);
#pragma unroll
                for (int w = 0; w < Width; w++) f[w] += g[w];
            }
        }
    }
#pragma unroll
    for (int w = 0; w < Width; w++) part[(stream * Width + w) * Lanes + lane] = f[w];
    __syncthreads();
    if (stream == 0 && c < io.cols) {
        kbki_pack<T, Width> v;
#pragma unroll
        for (int w = 0; w < Width; w++)
            for (int i = 1; i < Streams; i++) f[w] += part[(i * Width + w) * Lanes + lane];
        v.set(f);
        v.store(io.y + hot.x * io.cols + c);
    }
    __syncthreads();
}
// Hot rows of dW in work items of 16 vectors, which are distributed over the CTAs in round-robin order.
template <class T, int Width>
__device__ __forceinline__ void kbki_emb_hot(const kbki_embedding_io<T>& io, const kbki_emb_order& o, unsigned cta,
                                             unsigned ctas) {
    __shared__ unsigned tokens[KBKI_EMB_PUT * 4], many[KBKI_EMB_PUT], first[KBKI_EMB_PUT];
    __shared__ float part[KBKI_EMB_PUT * Width];
    const unsigned classes = 1u << o.bits, slices = (unsigned)((io.cols / Width + 15) / 16);
    unsigned item = cta; // next work item, relative to the first of the current class
#pragma unroll 1
    for (unsigned g0 = 0; g0 < classes; g0 += KBKI_EMB_PUT) {
        uint2 h = g0 + threadIdx.x < classes ? o.hots[g0 + threadIdx.x] : make_uint2(0, 0);
        if (!__syncthreads_or(h.x != 0)) continue;
        many[threadIdx.x] = h.x, first[threadIdx.x] = h.y;
        __syncthreads();
#pragma unroll 1
        for (unsigned g = 0; g < KBKI_EMB_PUT; g++) {
            unsigned items = many[g] * slices;
#pragma unroll 1
            for (; item < items; item += ctas) {
                int64_t c = ((int64_t)(item % slices) * 16 + threadIdx.x % 16) * Width;
                kbki_emb_hot_row<T, Width>(io, o, o.hot[first[g] + item / slices], c, tokens, part);
            }
            item -= items;
        }
        __syncthreads();
    }
}
// Adds to v, a vector of the first token, the vectors of the other n - 1 tokens with this id.
template <class T, int Width>
__device__ __forceinline__ void kbki_emb_add_rows(kbki_pack<T, Width>& v, const T* dy, int64_t cols,
                                                  const unsigned* order, unsigned n) {
    float f[Width], g[Width];
    v.get(f);
#pragma unroll 1
    for (unsigned i = 1; i < n; i += 2) {
        kbki_pack<T, Width> x[2];
#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            x[k].fill(0);
            if (i + k < n) x[k].load_cached(dy + order[i + k] * cols);
        }
#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            x[k].get(g);
#pragma unroll
            for (int w = 0; w < Width; w++) f[w] += g[w];
        }
    }
    v.set(f);
}
/*  Second kernel of `sorted`. The first `lead` CTAs of the grid add vectors of dy, and the next `hot` CTAs compute
    hot rows. Further CTAs add the remaining vectors of dy, and the last CTAs write zeros to rows of dW without
    tokens, `group` rows each. CTAs that start while the first kernel still runs (PDL) load their vectors of dy
    during this time. */
template <class T, int Width>
__global__ void __launch_bounds__(KBKI_EMB_PUT, 8)
    kbk_embedding_bwd_sorted_k(kbki_embedding_io<T> io, kbki_emb_order o, unsigned per, unsigned group,
                               unsigned lead, unsigned hot, unsigned sums) {
    constexpr int Threads = KBKI_EMB_PUT, U = KBKI_EMB_U;
    unsigned b = blockIdx.x < lead ? blockIdx.x : blockIdx.x - hot;
    if (blockIdx.x >= lead && blockIdx.x < lead + hot) {
        kbki_follow_wait();
        return kbki_emb_hot<T, Width>(io, o, blockIdx.x - lead, hot);
    }
    if (b >= sums) {
        kbki_follow_wait();
        int64_t r0 = (int64_t)(b - sums) * group, r = r0 + threadIdx.x % 32;
        unsigned rows = (unsigned)(io.entries - r0 < group ? io.entries - r0 : group), row = (unsigned)r >> o.bits,
                 bit = 0;
        if (threadIdx.x % 32 < rows)
            bit = o.some[((unsigned)r & ((1u << o.bits) - 1)) * o.words + row / 32] >> (row % 32) & 1;
        unsigned some = __ballot_sync(~0u, bit);
        kbki_pack<T, Width> v;
        v.fill(0);
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < rows * per; i += Threads)
            if (!(some >> i / per & 1)) v.store(io.y + r0 * io.cols + (int64_t)i * Width);
        return;
    }
    int64_t start = (int64_t)b * (Threads * U), t0 = start >> 32 ? start / per : (unsigned)start / per;
    unsigned c0 = (unsigned)(start - t0 * per) + threadIdx.x;
    kbki_pack<T, Width> v[U];
    uint2 info[U];
    unsigned c[U], token[U];
    int id[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        unsigned at = c0 + u * Threads, ahead = per >= Threads * U ? at >= per : at / per;
        c[u] = (at - ahead * per) * Width, token[u] = (unsigned)t0 + ahead;
        if (token[u] >= io.tokens) continue;
        id[u] = __ldg(io.ids + token[u]);
        v[u].load(io.x + (start + threadIdx.x + u * Threads) * Width);
    }
    kbki_follow_wait();
#pragma unroll
    for (int u = 0; u < U; u++) {
        info[u] = make_uint2(0, 0);
        if (token[u] < io.tokens) info[u] = o.info[token[u]];
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (info[u].x == 0 || info[u].x > KBKI_EMB_HOT) continue;
        if (info[u].x > 1) kbki_emb_add_rows<T, Width>(v[u], io.x + c[u], io.cols, o.order + info[u].y, info[u].x);
        v[u].store(io.y + id[u] * io.cols + c[u]);
    }
}

template <class T> const char* kbki_embedding_grad_args(const kbk_args* a, kbki_embedding_io<T>* io) {
    const char* why = kbki_embedding_args(a, io);
    return why || (kbki_grid_ok(io->tokens) && kbki_grid_ok(io->entries)) ? why : KBKI_TEXT_GRID;
}
// dW is set to 0 first, because a row of dW may have no tokens.
template <class T, int Width> const char* kbki_embedding_add(const kbki_embedding_io<T>& io, kbk_stream st) {
    int64_t ctas = kbki_ceil(io.tokens * (io.cols / Width), 256);
    if (!io.y || io.entries * io.cols == 0) return NULL;
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    if (cudaMemsetAsync(io.y, 0, (size_t)(io.entries * io.cols) * sizeof(T), st) != cudaSuccess)
        return kbki_launched();
    if (ctas) kbk_embedding_bwd_atomic_k<T, Width><<<(unsigned)ctas, 256, 0, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_embedding_bwd_atomic(const kbk_args* a, kbk_stream st) {
    kbki_embedding_io<T> io;
    const char* why = kbki_embedding_grad_args(a, &io);
    return why ? why : kbki_embedding_add<T, 1>(io, st);
}
template <class T> const char* kbk_embedding_bwd_vec(const kbk_args* a, kbk_stream st) {
    kbki_embedding_io<T> io;
    const char* why = kbki_embedding_grad_args(a, &io);
    if (!why && kbki_embedding_wide(io)) why = kbki_needs(90);
    if (why) return why;
    return kbki_embedding_wide(io) ? kbki_embedding_add<T, KBKI_WIDTH(T)>(io, st) : kbki_embedding_add<T, 1>(io, st);
}
template <class T, int Width>
const char* kbki_embedding_sorted(const kbki_embedding_io<T>& io, char* work, kbk_stream st) {
    kbki_emb_order o = {};
    int64_t per = io.cols / Width;
    unsigned group = 32; // rows of dW per CTA that writes zeros
    while (group > 1 && group * per > 1024) group /= 2;
    o.bits = (unsigned)kbki_emb_bits(io.entries), o.words = (int)kbki_emb_words(io.entries, (int)o.bits);
    o.ids = io.ids, o.tokens = io.tokens, o.entries = (unsigned)io.entries;
    o.info = (uint2*)work, o.spill = o.info + io.tokens, o.hot = o.spill + io.tokens;
    o.hots = o.hot + io.tokens, o.order = (unsigned*)(o.hots + (1u << o.bits)), o.some = o.order + io.tokens;
    int64_t sums = kbki_ceil(io.tokens * per, KBKI_EMB_PUT * KBKI_EMB_U), zeros = kbki_ceil(io.entries, group);
    unsigned hot = io.tokens > KBKI_EMB_HOT ? (unsigned)kbki_sms() : 0;
    size_t bytes = KBKI_EMB_LIST * 8 + (size_t)o.words * 32 * 8;
    if (!kbki_grid_ok(hot + sums + zeros)) return KBKI_TEXT_GRID;
    unsigned lead = (unsigned)(sums < 8 * kbki_sms() ? sums : 8 * kbki_sms());
    kbki_emb_order_k<0><<<1u << o.bits, KBKI_EMB_TH, bytes, st>>>(o);
    return kbki_follow(kbk_embedding_bwd_sorted_k<T, Width>, dim3((unsigned)(hot + sums + zeros)), KBKI_EMB_PUT, st,
                       io, o, (unsigned)per, group, lead, hot, (unsigned)sums);
}
template <class T> const char* kbk_embedding_bwd_sorted(const kbk_args* a, kbk_stream st) {
    kbki_embedding_io<T> io;
    const char* why = kbki_embedding_grad_args(a, &io);
    if (why || !io.y || io.entries * io.cols == 0) return why;
    if ((why = kbki_check_workspace(a, kbki_scratch_embedding(&a->s, (int)sizeof(T), KBKI_WORD_sorted))) != NULL)
        return why;
    char* work = (char*)a->workspace + KBK_TICKETS;
    return kbki_embedding_wide(io) ? kbki_embedding_sorted<T, KBKI_WIDTH(T)>(io, work, st)
                                   : kbki_embedding_sorted<T, 1>(io, work, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>rope     Rotary position embedding: pairs of columns are rotated by the angles of their token.
-----------------------------------------------------------------*/

/*  rope fwd -------------------------------------------------------------------------------------------------
    y[t,h,i]     = x[t,h,i] cos[t,i] - x[t,h,i+d] sin[t,i]      x, y: T x H x D, T = rows, H = heads, D = cols
    y[t,h,i+d]   = x[t,h,i+d] cos[t,i] + x[t,h,i] sin[t,i]      0 <= i < d, d = D / 2 rounded down
                   cs: T x D, f32: the d cosines of a token, then its d sines; all heads use the same values
    The layout is half-split (GPT-NeoX; Llama in Hugging Face Transformers): column i pairs with column i + d. One
    16-byte vector therefore holds the first elements of its pairs, another vector holds the second elements, and a
    thread rotates both vectors without a shuffle. The interleaved layout of the paper pairs columns 2i and 2i + 1; to
    convert it to the half-split layout, permute the rows of the projection matrix. If D is odd, the last column of x
    is copied unchanged.
    flops  6*T*H*d     4 products and 2 sums per pair
    bytes  2*T*H*D*s + 4*T*D
    check  f32 norm-wise 1e-6, 2 ulp of the sum of |terms|; f16 3e-4, bf16 2.5e-3, 1 ulp of this sum
    predict: H threads read each cosine and each sine in `cs`. With 32 heads, which share of the DRAM
    traffic do the reads of `cs` cause?
    1 naive    thread per pair                       <- accesses of 2 or 4 bytes; two 64-bit divisions per pair
    2 vec      two 16-byte vectors per thread, threads of a CTA share a token's angles   <- no 64-bit division
    bound by   memory. vec falls back to naive if d is not a multiple of a vector or an address is not aligned
    Su, Lu, Pan, Murtadha, Wen & Liu 2021 (RoFormer), arXiv 2104.09864, section 3.4.2 */
/*  measured rope fwd: bf16 32768 x 32 x 128, NVIDIA H100 80GB HBM3, 2026-11-26
    0.727 FLOP/B; floor on an H200 129.5 us = 553.6 MB / 4.276 TB/s; on this GPU 181.5 us at 3.051 TB/s
                time  peak   gain regs  occ DRAM conflicts
    1 naive 321.0 us  65 %      -   26 84 % 50 %         0  thread per pair of columns
    2 vec   179.4 us 116 % 1.79 x   40 62 % 89 %         0  two 16-byte vectors per thread
    end of measured */
KBKI_TENSORS(rope_fwd, 3, t[0] = kbki_in("x", n * s->heads, cols * s->heads), t[1] = kbki_in("cs", n, cols),
             t[1].kind = KBK_KF32, t[1].fill = KBK_UNIFORM, t[1].a = -1,
             t[2] = kbki_out("y", KBK_T, n * s->heads, cols * s->heads, cols * s->heads))
KBKI_FORMULAS(rope_fwd, s->heads && s->cols ? s->rows : 0, 6 * rows * (double)(s->heads * (s->cols / 2)),
              2 * n * (double)s->heads * elem + 4 * n)
KBKI_REF(rope_fwd) {
    const int64_t cols = s->cols, half = cols / 2;
    for (int64_t row = u0 * s->heads; row < u1 * s->heads; row++) {
        const double *x = in[0] + row * cols, *cosine = in[1] + row / s->heads * cols, *sine = cosine + half;
        for (int64_t i = 0; i < cols; i++) {
            const int64_t at = (row - u0 * s->heads) * cols + i, pair = i < half ? i : i - half;
            double own = x[i], other = 0;
            if (i < 2 * half) own *= cosine[pair], other = (i < half ? -x[i + half] : x[pair]) * sine[pair];
            out[0][at] = own + other;
            if (out[KBK_OUTS]) out[KBK_OUTS][at] = fabs(own) + fabs(other);
        }
    }
}

#ifdef __CUDACC__
template <class T>
__global__ void kbk_rope_fwd_naive_k(const T* x, const float* cs, T* y, int64_t rows, int heads, int cols) {
    // `pairs` also counts the last of an odd number of columns, which has no partner
    const int half = cols / 2, pairs = cols - half;
    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, row = n / pairs;
    if (row >= rows) return;
    const int i = (int)(n - row * pairs);
    const float* cosine = cs + row / heads * cols + i;
    x += row * cols + i, y += row * cols + i;
    if (i == half) {
        y[half] = x[half];
        return;
    }
    const float a = kbki_float(x[0]), b = kbki_float(x[half]), c = cosine[0], s = cosine[half];
    y[0] = kbki_type<T>::from(a * c - b * s);
    y[half] = kbki_type<T>::from(b * c + a * s);
}
// Threads with the same threadIdx.y process one token.
template <class T>
__global__ void kbk_rope_fwd_vec_k(const T* x, const float* cs, T* y, int64_t tokens, int heads, int cols) {
    constexpr int Width = KBKI_WIDTH(T);
    const int64_t token = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    if (token >= tokens) return;
    const int half = cols / 2, per = half / Width;
    for (int n = threadIdx.x; n < heads * per; n += blockDim.x) {
        const int i = n % per * Width;
        const int64_t at = (token * heads + n / per) * cols + i;
        kbki_pack<T, Width> low, high;
        float a[Width], b[Width], c[Width], s[Width];
        low.load(x + at), high.load(x + at + half);
        for (int k = 0; k < Width; k += 4) {
            kbki_pack<float, 4> angles;
            angles.load_cached(cs + token * cols + i + k), angles.get(c + k);
            angles.load_cached(cs + token * cols + half + i + k), angles.get(s + k);
        }
        low.get(a), high.get(b);
        for (int k = 0; k < Width; k++) {
            const float turned = a[k] * c[k] - b[k] * s[k];
            b[k] = b[k] * c[k] + a[k] * s[k], a[k] = turned;
        }
        low.set(a), high.set(b);
        low.store(y + at), high.store(y + at + half);
    }
}

template <class T> const char* kbki_rope_check(const kbk_args* a, int64_t ctas) {
    if (!kbki_aligned(a->in[0], sizeof(T)) || !kbki_aligned(a->in[1], 4) || !kbki_aligned(a->out[0], sizeof(T)))
        return KBKI_TEXT_ALIGN;
    if (!kbki_grid_ok(ctas) || !kbki_grid_ok(a->s.heads * a->s.cols)) return KBKI_TEXT_GRID;
    return a->s.heads < 0 ? "a dimension is negative" : kbki_check_dims(&a->s);
}
template <class T> const char* kbk_rope_fwd_naive(const kbk_args* a, kbk_stream st) {
    const int64_t rows = a->s.rows * a->s.heads, cols = a->s.cols, ctas = kbki_ceil(rows * (cols - cols / 2), 256);
    const char* why = kbki_rope_check<T>(a, ctas);
    if (why || rows * cols == 0) return why;
    kbk_rope_fwd_naive_k<T><<<(unsigned)ctas, 256, 0, st>>>((const T*)a->in[0], (const float*)a->in[1], (T*)a->out[0],
                                                            rows, (int)a->s.heads, (int)cols);
    return kbki_launched();
}
template <class T> const char* kbk_rope_fwd_vec(const kbk_args* a, kbk_stream st) {
    constexpr int Width = KBKI_WIDTH(T);
    bool aligned = kbki_aligned(a->in[0], 16) && kbki_aligned(a->in[1], 16) && kbki_aligned(a->out[0], 16);
    if (!aligned || a->s.cols % (2 * Width) || a->s.rows * a->s.heads * a->s.cols == 0)
        return kbk_rope_fwd_naive<T>(a, st);
    const int64_t packs = a->s.heads * (a->s.cols / (2 * Width));
    unsigned across = 1;
    while (across < 256 && across < packs) across *= 2;
    const int64_t ctas = kbki_ceil(a->s.rows, 256 / across);
    const char* why = kbki_rope_check<T>(a, ctas);
    if (why) return why;
    kbk_rope_fwd_vec_k<T><<<(unsigned)ctas, dim3(across, 256 / across), 0, st>>>(
        (const T*)a->in[0], (const float*)a->in[1], (T*)a->out[0], a->s.rows, (int)a->s.heads, (int)a->s.cols);
    return kbki_launched();
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_simt     Matrix product without tensor cores: tiling for shared memory, warps and registers.
-----------------------------------------------------------------*/

/*  matmul fwd -----------------------------------------------------------------------------------------------
    C[m,n] = sum_k A[m,k] B[k,n]     M = rows, N = cols, K = k, no alpha, no beta; f32 accumulation
    layout  KBK_NN: A M x K, B K x N.   KBK_NT: B given as N x K.   KBK_TN: A given as K x M.   All row-major
    strides strides[0][0], [1][0], [2][0]: the leading dimensions lda, ldb, ldc (elements between rows in memory)
    flops  2*M*N*K
    bytes  (M*K + K*N + M*N)*s
    check  norm-wise f32 1e-5, f16 5e-4, bf16 3e-3; per element 256 ulp in f32, 6 ulp at 16 bits, of
           sqrt(sum_k (A[m,k] B[k,n])^2), the expected size of a sum of terms with random signs. If K = 0, C is zero
    The backward pass of a product consists of two products. For layout NN: dA = dC B' in layout NT, and dB = A' dC in
    layout TN (X': transpose of X).
    1 naive     one thread per element of C; the threads of a warp compute neighbouring rows
                <- slow: each load instruction of a warp reads 32 rows of A, so 32 sectors for 32 elements
    2 coalesced the threads of a warp compute neighbouring columns of C
                <- a warp reads one sector of A and neighbouring elements of B (Boehm 2022, "How to Optimize a CUDA
                Matmul Kernel for cuBLAS-like Performance", kernel 2)
    3 shared    32 x 32 tiles in shared memory
                <- 32 times fewer global loads. Shared memory is the limit: each FMA needs two loads from it
    4 column    1-D block tiling: 64 x 64 tiles, 8 results of a column per thread
                <- 9 values from shared memory feed 8 FMAs
    5 regblock  2-D register blocking: 128 x 128 tiles, 8 x 8 results per thread
                <- 16 values from shared memory feed 64 FMAs (Volkov 2010, "Better Performance at Lower Occupancy").
                Neighbouring threads read columns 8 apart, so 16 threads read only four banks (439 M conflicts);
                rung 6 avoids this
    6 vec       each load and store moves four elements; A is transposed when it is stored in shared memory
                <- a quarter of the load and store instructions of rung 5
    7 cpasync   f32: cp.async pipeline of four tiles
                <- loads overlap with FMAs and bypass the registers
    8 warptile  f32: one tile size for the CTA, one for each warp, and one for each thread. Fragments are
                double-buffered in registers, CTAs take the tiles in bands, and split-K is used if there are few tiles
                <- 128 FMAs per six 16-byte loads, which are issued one value of k ahead (the tiling hierarchy of
                CUTLASS). Operands of a band stay in L2, and split-K lets a small product use all SMs
    Rungs 7 to 16 for f16 and bf16 use tensor cores and are in >>matmul_steps. Rungs 17 and 18, for GPUs without wgmma,
    are in >>matmul_mma. Rungs 19 and 20 are the production kernel in >>matmul_select, which combines the ideas of rungs
    9 to 16 with split-K, batches and any alignment.
    99 cublas   cublasGemmEx; multiplies f32 in full precision, not in TF32; workspace: 32 MiB
    predict     rung 4 reads 9 values from shared memory for 8 FMAs, rung 5 reads 16 values for 64. An SM can read 128
                bytes of shared memory and start 128 FMAs per clock. In which rung do FMAs first take longer than loads?
                */
/*  measured matmul fwd: f32 4096 x 4096 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    683 FLOP/B; floor on an H200 2679 us = 137.4 GFLOP / 51.3 TFLOP/s; on this GPU 2655 us at 51.77 TFLOP/s
                     time peak   gain regs   occ DRAM conflicts
     1 naive     273.6 ms  1 %      -   32 100 %  1 %         0  one thread per element, a warp has 32 rows
     2 coalesced 45.65 ms  5 % 5.99 x   32  99 %  3 %         0  a warp has 32 neighbouring columns
     3 shared    22.14 ms 10 % 2.06 x   32 100 % 11 %      11 M  32 x 32 tiles in shared memory
     4 column     8142 us 26 % 2.72 x   40  73 %  8 %     108 M  64 x 64 tiles, 8 results per thread
     5 regblock   6802 us 31 % 1.20 x  126  24 %  2 %     439 M  128 x 128 tiles, 8 x 8 results per thread
     6 vec        3937 us 53 % 1.73 x  125  25 %  3 %    4496 k  4 elements per access, A transposed in tiles
     7 cpasync    3074 us 69 % 1.28 x  128  24 %  6 %      54 M  cp.async pipeline of four tiles
     8 warptile   2741 us 77 % 1.12 x  231  12 %  4 %      32 M  warp tiles, fragment pipeline, split-K
    20 tf32      361.8 us 92 % 7.58 x  168  14 % 29 %     129 k  wgmma in TF32 (10 mantissa bits)
    99 cublas     2655 us 79 %      -  254  12 %  4 %      45 M  cublasGemmEx, f32 accumulation, no TF32
    end of measured */
#define KBKI_CUBLAS_BYTES ((size_t)32 << 20)
#define KBKI_MM_TILE 128 // rows and columns of a CTA's tile
KBKI_TENSORS(matmul_fwd, 3, t[0] = kbki_in("A", rows * s->k, s->layout == KBK_TN ? 0 : s->k),
             t[1] = kbki_in("B", s->k* cols, 0), t[2] = kbki_out("C", KBK_T, n, cols, cols))
KBKI_FORMULAS(matmul_fwd, s->cols ? s->rows : 0, 2 * n * (double)s->k, ((rows + cols) * (double)s->k + n) * elem)
/*  Returns the split-K factor for tiles of 128 x 256 elements. The split-K factor is the largest number of
    slices for which 132 SMs can run all CTAs at the same time, with one CTA per SM. K is split into at most 32
    slices, and each slice covers at least 64 values of k. The split-K factor depends on the shape alone, so
    every GPU computes bitwise the same result. */
KBK_FN int64_t kbki_mm_splits(const kbk_shape* s) {
    int64_t down = (s->rows + 127) / 128, across = (s->cols + 255) / 256, most = s->k / 64;
    int64_t n = down > 0 && across > 0 ? 132 / down / across : 1;
    if (n > most) n = most;
    return n < 1 ? 1 : n < 32 ? n : 32;
}
// A 16-bit operand is copied to padded rows if a stride is not a multiple of 16 bytes. Returns the number of elements
// of a padded row. `line` is the number of elements of a row before padding.
KBK_FN int64_t kbki_mm_pitch(int64_t line) { return (line + 7) / 8 * 8; }
KBK_FN int64_t kbki_mm_room(const kbk_shape* s, int b) {
    int64_t whole = (b ? s->cols : s->rows) * s->k, line = s->k;
    if (b ? s->layout != KBK_NT : s->layout == KBK_TN) line = b ? s->cols : s->rows;
    return line && (line | s->strides[b][0] | s->strides[b][1]) % 8 ? whole / line * kbki_mm_pitch(line) : 0;
}
// Returns the bytes of the padded copies of A and B for one product of a batch, rounded up to a multiple of 256
// bytes. If neither A nor B is copied, the result is 0.
KBK_FN size_t kbki_mm_copies(const kbk_shape* s, int elem) {
    return elem == 2 ? (2 * (size_t)(kbki_mm_room(s, 0) + kbki_mm_room(s, 1)) + 255) / 256 * 256 : 0;
}
// Returns the split-K factor of variant `mmapipe`, whose tiles have 128 x 128 elements. K is split only if the
// tiles alone would leave most SMs idle. The split-K factor is chosen so that each of 132 SMs has two CTAs. K is
// split into at most 66 slices, and each slice covers at least 512 values of k.
KBK_FN int64_t kbki_mma_splits(const kbk_shape* s) {
    int64_t tiles = (s->rows + 127) / 128 * ((s->cols + 127) / 128), most = s->k / 512;
    int64_t n = tiles > 0 && tiles <= 33 ? 264 / tiles : 1;
    if (n > most) n = most;
    return n < 1 ? 1 : n < 66 ? n : 66;
}
KBK_FN size_t kbki_select_pieces(const kbk_shape* s, int elem, int64_t batch); // >>matmul_select
KBK_FN size_t kbki_scratch_tf32(const kbk_shape* s, int64_t batch);
KBKI_SCRATCH(matmul) {
    size_t results = (size_t)(s->rows * s->cols) * sizeof(float), bytes = 0;
    int64_t splits = kbki_mm_splits(s), pieces = kbki_mma_splits(s);
    int select = word == KBKI_WORD_select;
    if (word == KBKI_WORD_cublas) return KBK_TICKETS + KBKI_CUBLAS_BYTES;
    if (word == KBKI_WORD_tf32) return kbki_scratch_tf32(s, 1);
    if (word == KBKI_WORD_warptile && splits > 1) bytes = (size_t)splits * results;
    if (word == KBKI_WORD_mmapipe && pieces > 1) bytes = (size_t)pieces * results;
    if (select) bytes = kbki_select_pieces(s, elem, 1);
    if (word == KBKI_WORD_mmapipe || select) bytes += kbki_mm_copies(s, elem);
    return bytes ? bytes + KBK_TICKETS : 0;
}
KBKI_REF(matmul_fwd) {
    int64_t rows = s->rows, cols = s->cols, depth = s->k, step = s->layout == KBK_TN ? rows : 1;
    for (int64_t m = u0; m < u1; m++) {
        const double *a = in[0] + (s->layout == KBK_TN ? m : m * depth), *b = in[1];
        double *c = out[0] + (m - u0) * cols, *size = out[KBK_OUTS] ? out[KBK_OUTS] + (m - u0) * cols : NULL;
        for (int64_t n = 0; n < cols; n++) c[n] = 0;
        for (int64_t n = 0; size && n < cols; n++) size[n] = 0;
        if (s->layout == KBK_NT) // B is K-major, so the innermost loop runs over k
            for (int64_t n = 0; n < cols; n++, b += depth) {
                double sum = 0, squares = 0;
                for (int64_t k = 0; k < depth; k++) sum += a[k] * b[k], squares += a[k] * b[k] * (a[k] * b[k]);
                c[n] = sum;
                if (size) size[n] = squares;
            }
        else
            for (int64_t k = 0; k < depth; k++, a += step, b += cols) {
                for (int64_t n = 0; n < cols; n++) c[n] += *a * b[n];
                for (int64_t n = 0; size && n < cols; n++) size[n] += *a * b[n] * (*a * b[n]);
            }
        for (int64_t n = 0; size && n < cols; n++) size[n] = sqrt(size[n]);
    }
}

#ifdef __CUDACC__
template <class T> struct kbki_mm_factors {};
template <> struct kbki_mm_factors<kbk_e4m3> {
    const float *scale_a, *scale_b; // device addresses of the scale factors of A and B, one float each
};
template <class T> struct kbki_mm : kbki_mm_factors<T> {
    const T *a, *b;
    kbki_result<T>* c;
    int64_t m, n, k, am, ak, bk, bn; // strides: A[i,k] is at i * am + k * ak, B[k,j] at k * bk + j * bn
    // leading dimensions: elements between consecutive rows of A, of B, or of C in memory
    int64_t lda, ldb, ldc;
    // row length | leading dimension | batch stride: a power of two that divides this number divides all three
    int64_t unit_a, unit_b, unit_c;
    // across: number of tiles along N; down: number of tiles along M. blockIdx.x counts over all tiles, because
    // grid.y is limited to 65535
    int64_t across, down;
    // distance, in elements, from one product of a batch to the next, for A, B and C; blockIdx.z is the index of
    // the product
    int64_t sa, sb, sc;
    unsigned* flags;                 // counters in the workspace that signal finished split-K slices
    float* part; // partial sums of split-K in the workspace; NULL if K is not split
    // deep: number of values of k per split-K slice. Only the production kernel uses `layers` and the members after
    // it. layers: number of products in the batch; whole: number of tiles that are not split along K
    int64_t deep, layers, whole;
    int64_t slices;              // number of split-K slices of each split tile
    bool store;                  // whether TMA stores C
    int parts;    // number of CTAs of a cluster that compute the same tile, each a part of K
    bool along_n; // whether the CTAs of a cluster share a tile of A and are neighbours along N, not along M
};
template <class T>
const char* kbki_mm_args(const kbk_args* a, int tile_m, int tile_n, kbki_mm<T>* io, int64_t* ctas) {
    const kbk_shape* s = &a->s;
    int64_t m = s->rows, n = s->cols, k = s->k;
    *io = {};
    io->a = (const T*)a->in[0], io->b = (const T*)a->in[1], io->c = (kbki_result<T>*)a->out[0];
    const bool tn = s->layout == KBK_TN, nt = s->layout == KBK_NT;
    auto stride = [s](int i, int d, int64_t dense) { return s->strides[i][d] ? s->strides[i][d] : dense; };
    io->m = m, io->n = n, io->k = k, io->deep = k;
    io->lda = stride(0, 0, tn ? m : k), io->ldb = stride(1, 0, nt ? k : n), io->ldc = stride(2, 0, n);
    io->am = tn ? 1 : io->lda, io->ak = tn ? io->lda : 1, io->bk = nt ? 1 : io->ldb, io->bn = nt ? io->ldb : 1;
    io->sa = stride(0, 1, (tn ? k : m) * io->lda), io->sb = stride(1, 1, (nt ? n : k) * io->ldb);
    io->sc = stride(2, 1, m * io->ldc), io->unit_c = io->ldc | io->sc | n;
    io->unit_a = io->lda | io->sa | (tn ? m : k), io->unit_b = io->ldb | io->sb | (nt ? k : n);
    io->across = kbki_ceil(n, tile_n), io->down = kbki_ceil(m, tile_m), io->flags = (unsigned*)a->workspace;
    *ctas = io->across * io->down;
    if (s->layout < KBK_NN || s->layout > KBK_TN) return "unknown layout";
    if (io->lda < (tn ? m : k) || io->ldb < (nt ? k : n) || io->ldc < n) return "a stride is smaller than a row";
    if (!kbki_aligned(io->a, sizeof(T)) || !kbki_aligned(io->b, sizeof(T)) || !kbki_aligned(io->c, sizeof *io->c))
        return KBKI_TEXT_ALIGN;
    if constexpr (sizeof(T) == 1) {
        io->scale_a = (const float*)a->in[2], io->scale_b = (const float*)a->in[3];
        if (!kbki_aligned(io->scale_a, 4) || !kbki_aligned(io->scale_b, 4)) return KBKI_TEXT_ALIGN;
        if (*ctas && s->layout != KBK_NT) return "e4m3 has layout KBK_NT only: B given as N x K";
    }
    if (!kbki_grid_ok(*ctas)) return KBKI_TEXT_GRID;
    return kbki_check_dims(s);
}
// Returns whether all rows of a matrix consist of aligned 16-byte vectors. p: first row; unit: see kbki_mm.
template <class T> bool kbki_mm_wide(const T* p, int64_t unit) {
    return kbki_aligned(p, 16) && unit % KBKI_WIDTH(T) == 0;
}
// Launches a batch of products. blockIdx.z is the index of the product; a launch has at most 65535 products.
template <class T, class Launch>
const char* kbki_mm_batch(kbki_mm<T> io, int64_t ctas, int64_t batch, Launch launch) {
    const int64_t most = 65535;
    for (int64_t z = 0; z < batch; z += most) {
        launch(io, dim3((unsigned)ctas, 1, (unsigned)(batch - z < most ? batch - z : most)));
        io.a += most * io.sa, io.b += most * io.sb, io.c += most * io.sc;
    }
    return kbki_launched();
}
// Sets C to zero, for K = 0.
template <class T> const char* kbki_mm_zeros(const kbki_mm<T>& io, int64_t batch, kbk_stream st) {
    const size_t size = sizeof *io.c;
    if (io.ldc == io.n && io.sc == io.m * io.n) return kbki_zeros(io.c, batch * io.sc, st);
    for (int64_t z = 0; z < batch; z++)
        cudaMemset2DAsync(io.c + z * io.sc, (size_t)io.ldc * size, 0, (size_t)io.n * size, (size_t)io.m, st);
    return kbki_launched();
}
// Returns a sum of e4m3 products multiplied by both scale factors; returns sums of other types unchanged. If K =
// 0, the result is 0, even if a scale factor is infinite or NaN.
template <class T>
__device__ __forceinline__ float kbki_mm_scaled(float sum, int64_t depth, const float* scale_a,
                                                const float* scale_b) {
    return sizeof(T) > 1 ? sum : depth ? sum * (*scale_a * *scale_b) : 0.0f;
}
template <class T> __device__ __forceinline__ float kbki_mm_scaled(const kbki_mm<T>& io, float sum) {
    if constexpr (sizeof(T) == 1) return kbki_mm_scaled<T>(sum, io.k, io.scale_a, io.scale_b);
    return sum;
}
template <class T> __device__ __forceinline__ kbki_result<T> kbki_mm_result(const kbki_mm<T>& io, float sum) {
    return kbki_type<kbki_result<T>>::from(kbki_mm_scaled(io, sum));
}
// Tells which operands are K-major (contiguous along k): A in layouts NN and NT, and B in layout NT.
template <bool AlongA, bool AlongB> struct kbki_lines { static constexpr bool a = AlongA, b = AlongB; };
template <class Run> const char* kbki_mm_by_layout(int layout, Run run) {
    if (layout == KBK_NT) return run(kbki_lines<true, true>());
    if (layout == KBK_TN) return run(kbki_lines<false, false>());
    return run(kbki_lines<true, false>());
}

// In the arguments of variants `naive` to `regblock`, element A[i,k] is at a[i * am + k * ak], and B[k,j] is at
// b[k * bk + j * bn]. One of the strides am and ak is 1, and one of the strides bk and bn is 1. A CTA computes one
// tile of C. scale_a and scale_b are used for e4m3 only.
// Each thread computes one element of C. The threads of a warp compute neighbouring rows, so a warp accesses 32
// rows of A and 32 rows of C.
template <class T, class Result>
__global__ void kbk_matmul_fwd_naive_k(const T* a, const T* b, Result* c, int64_t m, int64_t n, int64_t depth,
                                       int64_t am, int64_t ak, int64_t bk, int64_t bn, int64_t ldc,
                                       const float* scale_a, const float* scale_b) {
    int64_t across = (n + 7) / 8;
    int64_t i = blockIdx.x / across * 32 + threadIdx.x, j = blockIdx.x % across * 8 + threadIdx.y;
    if (i >= m || j >= n) return;
    float sum = 0;
    for (int64_t k = 0; k < depth; k++)
        sum = fmaf(kbki_float(a[i * am + k * ak]), kbki_float(b[k * bk + j * bn]), sum);
    c[i * ldc + j] = kbki_type<Result>::from(kbki_mm_scaled<T>(sum, depth, scale_a, scale_b));
}

// Coalescing: the threads of a warp compute neighbouring columns of one row of C.
template <class T, class Result>
__global__ void kbk_matmul_fwd_coalesced_k(const T* a, const T* b, Result* c, int64_t m, int64_t n, int64_t depth,
                                           int64_t am, int64_t ak, int64_t bk, int64_t bn, int64_t ldc,
                                           const float* scale_a, const float* scale_b) {
    int64_t across = (n + 31) / 32;
    int64_t i = blockIdx.x / across * 8 + threadIdx.y, j = blockIdx.x % across * 32 + threadIdx.x;
    if (i >= m || j >= n) return;
    float sum = 0;
    for (int64_t k = 0; k < depth; k++)
        sum = fmaf(kbki_float(a[i * am + k * ak]), kbki_float(b[k * bk + j * bn]), sum);
    c[i * ldc + j] = kbki_type<Result>::from(kbki_mm_scaled<T>(sum, depth, scale_a, scale_b));
}

// A CTA keeps tiles of A and B of 32 x 32 elements in shared memory. Each thread computes one element of C.
template <class T, class Result>
__global__ void __launch_bounds__(1024)
    kbk_matmul_fwd_shared_k(const T* a, const T* b, Result* c, int64_t m, int64_t n, int64_t depth, int64_t am,
                            int64_t ak, int64_t bk, int64_t bn, int64_t ldc, const float* scale_a,
                            const float* scale_b) {
    // the odd pitch of 33 floats avoids bank conflicts of transposed writes
    __shared__ float sa[32][33], sb[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t across = (n + 31) / 32, i0 = blockIdx.x / across * 32, j0 = blockIdx.x % across * 32;
    // Coalescing: neighbouring threads load neighbouring elements of A, and of B.
    int ay = ak == 1 ? y : x, ax = ak == 1 ? x : y;
    int by = bn == 1 ? y : x, bx = bn == 1 ? x : y;
    float sum = 0;
    for (int64_t k0 = 0; k0 < depth; k0 += 32) {
        bool ina = i0 + ay < m && k0 + ax < depth, inb = k0 + by < depth && j0 + bx < n;
        sa[ay][ax] = ina ? kbki_float(a[(i0 + ay) * am + (k0 + ax) * ak]) : 0.0f;
        sb[by][bx] = inb ? kbki_float(b[(k0 + by) * bk + (j0 + bx) * bn]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) sum = fmaf(sa[y][k], sb[k][x], sum); // the tiles hold zeros for k >= K
        __syncthreads();
    }
    if (i0 + y < m && j0 + x < n)
        c[(i0 + y) * ldc + j0 + x] = kbki_type<Result>::from(kbki_mm_scaled<T>(sum, depth, scale_a, scale_b));
}

// 1-D block tiling: 512 threads compute a tile of C of 64 x 64 elements. Each thread computes 8 elements of one
// column.
template <class T>
__global__ void __launch_bounds__(512)
    kbk_matmul_fwd_column_k(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t depth, int64_t am, int64_t ak,
                            int64_t bk, int64_t bn, int64_t ldc) {
    // the odd pitch of 65 floats reduces bank conflicts of transposed writes from 8-way to 4-way
    __shared__ float sa[8][65], sb[8][65];
    int t = threadIdx.x, y = t / 64 * 8, x = t % 64;
    unsigned across = (unsigned)((n + 63) / 64);
    int64_t i0 = blockIdx.x / across * 64, j0 = blockIdx.x % across * 64;
    int ay = ak == 1 ? t / 8 : t % 64, ax = ak == 1 ? t % 8 : t / 64;
    int by = bk == 1 ? t % 8 : t / 64, bx = bk == 1 ? t / 8 : t % 64;
    float sum[8] = {};
    for (int64_t k0 = 0; k0 < depth; k0 += 8) {
        bool ina = i0 + ay < m && k0 + ax < depth, inb = k0 + by < depth && j0 + bx < n;
        sa[ax][ay] = ina ? kbki_float(a[(i0 + ay) * am + (k0 + ax) * ak]) : 0.0f;
        sb[by][bx] = inb ? kbki_float(b[(k0 + by) * bk + (j0 + bx) * bn]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float v = sb[k][x];
#pragma unroll
            for (int e = 0; e < 8; e++) sum[e] = fmaf(sa[k][y + e], v, sum[e]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < 8; e++)
        if (i0 + y + e < m && j0 + x < n) c[(i0 + y + e) * ldc + j0 + x] = kbki_type<T>::from(sum[e]);
}

#define KBKI_MM_BAND 16
// Computes the row i0 and the column j0 of the first element of this CTA's tile, for tiles of tm x tn elements.
// Tiles are numbered in bands of 16 tile rows, column by column within a band. CTAs that run at the same time
// therefore share operands in L2 (grouped ordering; CUTLASS calls it threadblock swizzle).
template <class T>
__device__ __forceinline__ void kbki_mm_where(const kbki_mm<T>& io, int tm, int tn, int64_t* i0, int64_t* j0) {
    int64_t band = KBKI_MM_BAND * io.across, first = blockIdx.x / band * KBKI_MM_BAND;
    int64_t in = blockIdx.x % band, high = io.down - first < KBKI_MM_BAND ? io.down - first : KBKI_MM_BAND;
    *i0 = (first + in % high) * tm, *j0 = in / high * tn;
}
template <int Down, int Across>
__device__ __forceinline__ void kbki_mm_fma(const float* a, const float* b, float (*c)[Across]) {
#pragma unroll
    for (int i = 0; i < Down; i++)
#pragma unroll
        for (int j = 0; j < Across; j++) c[i][j] = fmaf(a[i], b[j], c[i][j]);
}
// Writes v[0] to v[3] to row i of an m x n matrix, from column j on, by one store if `wide` is true. ld: elements
// between rows.
template <class T>
__device__ __forceinline__ void kbki_mm_put(T* c, int64_t m, int64_t n, int64_t ld, int64_t i, int64_t j,
                                            const float* v, bool wide) {
    if (i >= m) return;
    c += i * ld + j;
    if (!wide) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (j + e < n) c[e] = kbki_type<T>::from(v[e]);
    } else if (j < n) {
        if constexpr (sizeof(T) == 4)
            *reinterpret_cast<float4*>(c) = make_float4(v[0], v[1], v[2], v[3]);
        else
            *reinterpret_cast<uint2*>(c) = make_uint2(kbki_word((T*)0, v), kbki_word((T*)0, v + 2));
    }
}

// 2-D register blocking: 256 threads compute a tile of C of 128 x 128 elements. Each thread computes 8 x 8
// elements. In a batch (bmm), blockIdx.z is the index of the product. Consecutive products are batch_a elements
// apart in A, batch_b elements apart in B, and batch_c elements apart in C.
template <class T>
__global__ void __launch_bounds__(256, 2)
    kbk_matmul_fwd_regblock_k(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t depth, int64_t am,
                              int64_t ak, int64_t bk, int64_t bn, int64_t ldc, int64_t batch_a, int64_t batch_b,
                              int64_t batch_c) {
    // The odd pitch of 129 floats reduces bank conflicts of transposed writes from 8-way to 4-way.
    __shared__ float sa[8][129], sb[8][129];
    int t = threadIdx.x, y = t / 16 * 8, x = t % 16 * 8;
    int64_t across = (n + 127) / 128, i0 = blockIdx.x / across * 128, j0 = blockIdx.x % across * 128;
    bool along_a = ak == 1, along_b = bk == 1; // coalescing: neighbouring threads load neighbouring elements
    float sum[8][8] = {};
    a += blockIdx.z * batch_a, b += blockIdx.z * batch_b, c += blockIdx.z * batch_c;
    for (int64_t k0 = 0; k0 < depth; k0 += 8) {
#pragma unroll 2
        for (int p = 0; p < 4; p++) {
            int ay = along_a ? t / 8 + 32 * p : t % 128, ax = along_a ? t % 8 : t / 128 + 2 * p;
            int by = along_b ? t % 8 : t / 128 + 2 * p, bx = along_b ? t / 8 + 32 * p : t % 128;
            bool ina = i0 + ay < m && k0 + ax < depth, inb = k0 + by < depth && j0 + bx < n;
            sa[ax][ay] = ina ? kbki_float(a[(i0 + ay) * am + (k0 + ax) * ak]) : 0.0f;
            sb[by][bx] = inb ? kbki_float(b[(k0 + by) * bk + (j0 + bx) * bn]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float u[8], v[8];
#pragma unroll
            for (int e = 0; e < 8; e++) u[e] = sa[k][y + e], v[e] = sb[k][x + e];
            kbki_mm_fma<8, 8>(u, v, sum);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (i0 + y + i < m && j0 + x + j < n) c[(i0 + y + i) * ldc + j0 + x + j] = kbki_type<T>::from(sum[i][j]);
}

/*  In shared memory, variants `vec` and `cpasync` store an f32 tile of A as [k][i], and an f32 tile of B as
    [k][j]. A K-major operand is transposed when it is stored in shared memory. The pitch of 132 floats spreads
    the stores of a warp over 32 different banks. Each thread computes 8 x 8 results, in four blocks of 4 x 4
    results. The four blocks of a thread are 64 rows or columns apart, so that the 16-byte reads of
    neighbouring threads are adjacent. */
#define KBKI_MM_PITCH (KBKI_MM_TILE + 4)
// Multiplies a tile of A by a tile of B, with 8 values of k, and adds the product to c.
__device__ __forceinline__ void kbki_mm_step8(const float (*a)[KBKI_MM_PITCH], const float (*b)[KBKI_MM_PITCH],
                                              float (*c)[8]) {
    int y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float u[8], v[8];
        *reinterpret_cast<float4*>(u) = *reinterpret_cast<const float4*>(&a[k][y]);
        *reinterpret_cast<float4*>(u + 4) = *reinterpret_cast<const float4*>(&a[k][y + 64]);
        *reinterpret_cast<float4*>(v) = *reinterpret_cast<const float4*>(&b[k][x]);
        *reinterpret_cast<float4*>(v + 4) = *reinterpret_cast<const float4*>(&b[k][x + 64]);
        kbki_mm_fma<8, 8>(u, v, c);
    }
}
template <class T>
__device__ __forceinline__ void kbki_mm_finish8(T* c, int64_t m, int64_t n, int64_t ldc, int64_t i0, int64_t j0,
                                                float (*sum)[8]) {
    bool wide = (n | ldc) % 4 == 0 && ((uintptr_t)c & 15) == 0;
    i0 += threadIdx.x / 16 * 4, j0 += threadIdx.x % 16 * 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        kbki_mm_put(c, m, n, ldc, i0 + i % 4 + i / 4 * 64, j0, sum[i], wide);
        kbki_mm_put(c, m, n, ldc, i0 + i % 4 + i / 4 * 64, j0 + 64, sum[i] + 4, wide);
    }
}
template <class T> __device__ __forceinline__ void kbki_mm_load4(const T* p, float* f) {
    if constexpr (sizeof(T) == 4) {
        *reinterpret_cast<float4*>(f) = *reinterpret_cast<const float4*>(p);
    } else {
        uint2 w = *reinterpret_cast<const uint2*>(p);
        kbki_unword((T*)0, w.x, f), kbki_unword((T*)0, w.y, f + 2);
    }
}
// Kernel of variant `vec`: each load and each store moves four elements. AlongA, AlongB: whether A, or B, is
// K-major. lda, ldb, ldc: elements between consecutive rows of A, B and C in memory.
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(256) kbk_matmul_fwd_vec_k(const T* a, const T* b, T* c, int64_t m, int64_t n,
                                                            int64_t depth, int64_t lda, int64_t ldb, int64_t ldc) {
    __shared__ __align__(16) float sa[8][KBKI_MM_PITCH], sb[8][KBKI_MM_PITCH];
    int t = threadIdx.x;
    int64_t across = (n + 127) / 128, i0 = blockIdx.x / across * 128, j0 = blockIdx.x % across * 128;
    int ay = AlongA ? t / 2 : t % 32 * 4, ax = AlongA ? t % 2 * 4 : t / 32;
    int by = AlongB ? t % 2 * 4 : t / 32, bx = AlongB ? t / 2 : t % 32 * 4;
    float sum[8][8] = {};
    for (int64_t k0 = 0; k0 < depth; k0 += 8) {
        float u[4] = {}, v[4] = {};
        if (i0 + ay < m && k0 + ax < depth)
            kbki_mm_load4(a + (AlongA ? (i0 + ay) * lda + k0 + ax : (k0 + ax) * lda + i0 + ay), u);
        if (j0 + bx < n && k0 + by < depth)
            kbki_mm_load4(b + (AlongB ? (j0 + bx) * ldb + k0 + by : (k0 + by) * ldb + j0 + bx), v);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            sa[ax + (AlongA ? e : 0)][ay + (AlongA ? 0 : e)] = u[e];
            sb[by + (AlongB ? e : 0)][bx + (AlongB ? 0 : e)] = v[e];
        }
        __syncthreads();
        kbki_mm_step8(sa, sb, sum);
        __syncthreads();
    }
    kbki_mm_finish8(c, m, n, ldc, i0, j0, sum);
}

// Launches the kernel of variant `naive`, `coalesced`, `shared`, `column` or `regblock` with one CTA per tile of
// C. more: the kernel arguments that follow the strides.
template <class T, class Kernel, class... More>
const char* kbki_mm_tiles(const kbk_args* a, kbk_stream st, Kernel* kernel, int tile_m, int tile_n, dim3 threads,
                          More... more) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, tile_m, tile_n, &io, &ctas);
    if (why || ctas == 0) return why;
    kernel<<<(unsigned)ctas, threads, 0, st>>>(io.a, io.b, io.c, io.m, io.n, io.k, io.am, io.ak, io.bk, io.bn, io.ldc,
                                               more...);
    return kbki_launched();
}
template <class T> const char* kbk_matmul_fwd_naive(const kbk_args* a, kbk_stream st) {
    return kbki_mm_tiles<T>(a, st, kbk_matmul_fwd_naive_k<T, kbki_result<T>>, 32, 8, dim3(32, 8),
                            (const float*)a->in[2], (const float*)a->in[3]);
}
template <class T> const char* kbk_matmul_fwd_coalesced(const kbk_args* a, kbk_stream st) {
    return kbki_mm_tiles<T>(a, st, kbk_matmul_fwd_coalesced_k<T, kbki_result<T>>, 8, 32, dim3(32, 8),
                            (const float*)a->in[2], (const float*)a->in[3]);
}
template <class T> const char* kbk_matmul_fwd_shared(const kbk_args* a, kbk_stream st) {
    return kbki_mm_tiles<T>(a, st, kbk_matmul_fwd_shared_k<T, kbki_result<T>>, 32, 32, dim3(32, 32),
                            (const float*)a->in[2], (const float*)a->in[3]);
}
template <class T> const char* kbk_matmul_fwd_column(const kbk_args* a, kbk_stream st) {
    return kbki_mm_tiles<T>(a, st, kbk_matmul_fwd_column_k<T>, 64, 64, 512);
}
template <class T> const char* kbk_matmul_fwd_regblock(const kbk_args* a, kbk_stream st) {
    return kbki_mm_tiles<T>(a, st, kbk_matmul_fwd_regblock_k<T>, 128, 128, 256, 0, 0, 0);
}
template <class T> const char* kbk_matmul_fwd_vec(const kbk_args* a, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 128, 128, &io, &ctas);
    if (why || ctas == 0) return why;
    if (!kbki_mm_wide(io.a, io.unit_a) || !kbki_mm_wide(io.b, io.unit_b)) return kbk_matmul_fwd_regblock<T>(a, st);
    return kbki_mm_by_layout(a->s.layout, [&](auto l) {
        kbk_matmul_fwd_vec_k<T, l.a, l.b>
            <<<(unsigned)ctas, 256, 0, st>>>(io.a, io.b, io.c, io.m, io.n, io.k, io.lda, io.ldb, io.ldc);
        return kbki_launched();
    });
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_steps     Matrix product of 16-bit types on tensor cores, from mma.sync to wgmma with TMA. Each rung is one
                     kernel and adds one idea; the production kernel is in >>matmul_hopper.
-----------------------------------------------------------------*/

/*  matmul fwd, continued: f16 and bf16 --------------------------------------------------------------------------
    7 warpmma   128 x 128 tile, 32 deep; eight warps of 64 x 32; mma.sync m16n8k16 on fragments that ldmatrix loads;
                tiles are copied element by element, as in rung 3
                <- one mma.sync multiplies 16 x 16 by 16 x 8: 4096 FLOPs per warp instruction; an FMA does 64. The 32
                lanes hold the fragments in a fixed order (PTX ISA, "Matrix Fragments for mma.m16n8k16"), and ldmatrix
                loads them in that order from shared memory
    8 swizzle   tiles are 64 deep and copied in 16-byte vectors; vector p of row r is stored in place p ^ r % 8
                <- an eighth of the load instructions of rung 7. Without swizzle or padding, the eight rows of 128
                bytes that ldmatrix reads would lie in the same banks; the swizzle spreads them over all 32 banks
    9 tmaload   one thread starts TMA copies of both tiles; all threads wait on an mbarrier that counts the copied
                bytes
                <- no thread computes addresses, checks edges or moves data. A and B need rows that are 16-byte aligned
    10 warpgroup  tiles are loaded as in rung 9, and multiplied by wgmma. The four warps of a warpgroup execute a
                wgmma together. One wgmma multiplies 64 x 16 by 16 x 128 elements
                <- operands come straight from shared memory: no fragment passes through registers, and the warps of a
                warpgroup do not each read the same part of B
    11 wgmma    double buffering: TMA loads one stage while wgmma multiplies the other
                <- in rungs 7 to 10, only other CTAs on the same SM hide the latency of the loads
    12 ws       warp specialization: one thread of a producer warpgroup keeps a pipeline of four stages full. Each
                stage has two mbarriers: one signals that the stage is full, the other that it is empty
                <- the consumer waits for data only, and issues products before the previous ones have finished
    13 coop     128 x 256 tile, a consumer warpgroup for each half of its rows (cooperative schedule); the producer
                releases registers for the consumers (setmaxnreg)
                <- per FLOP, TMA loads three quarters of the bytes that it loads for 128 x 128 tiles
    14 persist  persistent kernel: one CTA per SM computes one tile after another, in bands of 16 tile rows
                <- the pipeline stays full across tiles, while results are stored; operands of a band stay in L2
    15 multicast the two CTAs of a cluster share the same tile of B: each CTA multicasts half of the tile by TMA
                <- two thirds of rung 14's traffic from L2 to shared memory. No gain at M = N = K = 4096: stores
                of the epilogue without TMA limit rungs 14 and 15; DRAM is busy for 27 % of the time in both
    16 tma      the epilogue writes 64 columns at a time to shared memory, and TMA stores them
                <- the stores are coalesced and asynchronous, so they overlap with the products of the next tile. C
                needs rows that are 16-byte aligned, too
    predict     before you run it: which rung from 7 on first exceeds half of the tensor cores' peak, and why? How many
                FLOPs per byte read from shared memory does a tile of 128 x 128 x 64 need, and one of 128 x 256 x 64?
    see         CUTLASS, sm90 TMA warp-specialized GEMMs; Shankhdhar 2024, "Outperforming cuBLAS on H100: a Worklog"
    drawings    a tile: C 4096 x 4096 = 32 x 16 tiles of 128 x 256 (CTA) = 2 x 1 blocks of 64 rows (warpgroup) =
                        4 x 1 strips of 16 rows (warp) = 2 x 32 blocks of 8 x 8, a pair of columns per lane
                swizzle: row 0 | 0 1 2 3 4 5 6 7    place of 16-byte vector p in row r: p ^ r % 8. A column of
                         row 1 | 1 0 3 2 5 4 7 6    vectors (what ldmatrix reads from eight rows) lies in eight
                         row 2 | 2 3 0 1 6 7 4 5    different groups of four banks
                         row 3 | 3 2 1 0 7 6 5 4
                mma m16n8k16, A: lane l holds the pairs of columns 2 (l % 4) and 8 + 2 (l % 4) of rows l / 4, l / 4 + 8
                         k  0 1   2 3   4 5   6 7  | 8 9 ...
                  row 0     l0    l1    l2    l3   | l0 ...
                  row 1     l4    l5    l6    l7   | l4 ...
                ring of four stages over time, F: TMA fills, M: wgmma multiplies
                  stage 0  FFF MM .   FFF MM
                  stage 1   FFF  MM .  FFF  MM      the producer waits for a stage to be empty,
                  stage 2    FFF   MM .  FFF        the consumer for a stage to be full
                  stage 3     FFF    MM .  FFF                                                                */
/*  measured matmul fwd: bf16 4096 x 4096 x 4096, NVIDIA H100 80GB HBM3, 2026-11-26
    1365 FLOP/B; floor on an H200 175.5 us = 137.4 GFLOP / 783 TFLOP/s; on this GPU 172.9 us at 794.9 TFLOP/s
                     time  peak         gain regs   occ DRAM conflicts
     1 naive     272.1 ms   0 %            -   32 100 %  0 %         0  one thread per element, a warp has 32 rows
     2 coalesced 67.52 ms   0 %       4.03 x   32 100 %  1 %         0  a warp has 32 neighbouring columns
     3 shared    20.82 ms   1 %       3.24 x   32 100 %  4 %    7814 k  32 x 32 tiles in shared memory
     4 column     8253 us   2 %       2.52 x   40  73 %  2 %     104 M  64 x 64 tiles, 8 results per thread
     5 regblock   7121 us   2 %       1.16 x  126  24 %  1 %     437 M  128 x 128 tiles, 8 x 8 results per thread
     6 vec        3453 us   5 %       2.06 x  125  24 %  2 %    2851 k  4 elements per access, A transposed in tiles
     7 warpmma    1806 us  10 %       1.91 x  119  24 %  3 %      52 M  mma.sync, ldmatrix, tiles loaded by element
     8 swizzle   726.5 us  24 %       2.49 x  128  24 %  8 %     357 k  16-byte loads to swizzled tiles, 64 deep
     9 tmaload   418.0 us  41 %       1.74 x   97  24 % 14 %      25 k  one thread loads the tiles by TMA
    10 warpgroup 265.6 us  65 %       1.57 x  154  17 % 19 %         0  wgmma reads the tiles in shared memory
    11 wgmma     246.2 us  70 %       1.08 x  154  17 % 23 %         0  double buffering: loads during products
    12 ws        240.6 us  72 %       1.02 x  154   8 % 43 %         0  a producer warp fills a pipeline of 4 stages
    13 coop      209.0 us  83 %       1.15 x  168  14 % 29 %         0  128 x 256 tiles, two consumer warpgroups
    14 persist   193.1 us  89 %       1.08 x  168  14 % 27 %         0  a CTA per SM loops over the tiles, in bands
    15 multicast 193.9 us  89 %       1.00 x  168  19 % 27 %         0  pairs of CTAs share the tiles of B
    16 tma       174.5 us  99 %       1.11 x  168  19 % 30 %     118 k  TMA stores C while the next tile is computed
    17 mma       462.0 us  37 %  1.57 x of 8  242  12 % 12 %      38 k  ldmatrix, mma.sync m16n8k16, one stage
    18 mmapipe   278.7 us  62 %       1.66 x  248  12 % 19 %      14 k  mma.sync, cp.async pipeline; any alignment
    19 select    174.5 us  99 % 1.00 x of 16  168  14 % 30 %     146 k  tile size by shape; unaligned inputs copied
    99 cublas    172.9 us 100 %            -  168  15 % 31 %     128 k  cublasGemmEx, f32 accumulation, no TF32
    end of measured */
#ifdef __CUDACC__

// Loads a tile of 128 rows or columns (index x) with 32 elements along k. Elements outside the tensor are set to
// zero. The loads are coalesced in every layout. Each row starts 20 banks after the previous row, because the
// pitch is 40 elements. ldmatrix therefore reads eight rows without bank conflicts.
template <class T>
__device__ __forceinline__ void kbki_step_load(T (*s)[40], const T* p, int64_t x0, int64_t size, int64_t next_x,
                                               int64_t k0, int64_t depth, int64_t next_k) {
    const bool along = next_k == 1;
    int x = along ? threadIdx.x / 32 : threadIdx.x % 128, k = along ? threadIdx.x % 32 : threadIdx.x / 128;
    p += (x0 + x) * next_x + (k0 + k) * next_k;
#pragma unroll 8
    for (int i = 0; i < 16; i++, x += along ? 8 : 0, k += along ? 0 : 2, p += along ? 8 * next_x : 2 * next_k)
        s[x][k] = x0 + x < size && k0 + k < depth ? *p : kbki_type<T>::from(0.0f);
}
// Stores the 64 x 32 sums of a warp. In each block of 16 x 8 sums, lane l holds columns 2 (l % 4) and 2 (l % 4) +
// 1 of rows l / 4 and l / 4 + 8.
template <class T>
__device__ __forceinline__ void kbki_step_put(T* c, int64_t m, int64_t n, int64_t ldc, int64_t i0, int64_t j0,
                                              const float (*sum)[4][4]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < 64; e++) {
        int64_t i = i0 + e / 16 * 16 + lane / 4 + e / 2 % 2 * 8, j = j0 + e / 4 % 4 * 8 + lane % 4 * 2 + e % 2;
        if (i < m && j < n) c[i * ldc + j] = kbki_type<T>::from(sum[e / 16][e / 4 % 4][e % 4]);
    }
}
// Kernel of variant `warpmma`: tensor cores multiply by mma.sync. Barriers separate the loads of the tiles from
// the products.
template <class T>
__global__ void __launch_bounds__(256)
    kbk_matmul_fwd_warpmma_k(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t depth, int64_t am,
                             int64_t ak, int64_t bk, int64_t bn, int64_t ldc) {
    __shared__ __align__(16) T sa[128][40], sb[128][40]; // layouts: sa[i][k], sb[j][k]
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, y = warp / 4 * 64, x = warp % 4 * 32;
    int64_t across = (n + 127) / 128, i0 = blockIdx.x / across * 128, j0 = blockIdx.x % across * 128;
    float sum[4][4][4] = {};
    for (int64_t k0 = 0; k0 < depth; k0 += 32) {
        kbki_step_load(sa, a, i0, m, am, k0, depth, ak);
        kbki_step_load(sb, b, j0, n, bn, k0, depth, bk);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
            uint32_t u[4][4], v[2][4];
#pragma unroll
            // loads a 16 x 16 block of A as four 8 x 8 matrices: upper left, lower left, upper right, lower right
            for (int i = 0; i < 4; i++)
                kbki_ldmatrix<false>(kbki_shared(&sa[y + i * 16 + lane % 16][k + lane / 16 * 8]), u[i]);
#pragma unroll
            // loads 16 columns of B with 16 values of k as four 8 x 8 matrices: both halves of k for columns 0 to
            // 7, then both halves for columns 8 to 15
            for (int j = 0; j < 2; j++)
                kbki_ldmatrix<false>(kbki_shared(&sb[x + j * 16 + lane % 8 + lane / 16 * 8][k + lane / 8 % 2 * 8]),
                                     v[j]);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) kbki_mma_fixed<T>(sum[i][j], u[i], v[j / 2] + j % 2 * 2);
        }
        __syncthreads();
    }
    kbki_step_put(c, m, n, ldc, i0 + y, j0 + x, sum);
}
template <class T> const char* kbk_matmul_fwd_warpmma(const kbk_args* a, kbk_stream st) {
    const char* why = kbki_needs_mma<T>();
    return why ? why : kbki_mm_tiles<T>(a, st, kbk_matmul_fwd_warpmma_k<T>, 128, 128, 256);
}

/*  Copies a tile of 128 rows or columns with 64 elements along k. The layout of the tile in shared memory is
    the 128-byte swizzle, which TMA also writes (see kbki_map). A K-major tile has 128 rows of 64 elements. A
    tile that is not K-major has two panels; each panel has 64 rows of 64 elements, one row per value of k. A
    row has 128 bytes. The 16-byte vector p of a row is stored at position p ^ row % 8, which avoids bank
    conflicts. Each of 256 threads copies four 16-byte vectors of the tile. The contiguous dimension of the
    tensor is a multiple of 8, so a vector lies either completely inside or completely outside the tensor. */
template <bool Along, class T>
__device__ __forceinline__ void kbki_step_copy(char* tile, const T* p, int64_t ld, int64_t x0, int64_t size,
                                               int64_t k0, int64_t depth) {
#pragma unroll
    for (int t = threadIdx.x; t < 1024; t += 256) {
        // line: 128-byte row of the tile, 0 to 127; pack: 16-byte vector of this row
        int line = t / 8, pack = t % 8;
        int64_t x = x0 + (Along ? line : line / 64 * 64 + pack * 8), k = k0 + (Along ? pack * 8 : line % 64);
        uint4 v = make_uint4(0, 0, 0, 0);
        if (x < size && k < depth) v = *reinterpret_cast<const uint4*>(p + (Along ? x * ld + k : k * ld + x));
        *reinterpret_cast<uint4*>(tile + line * 128 + (pack ^ line % 8) * 16) = v;
    }
}
// Reads a fragment of mma.sync from a tile: 16 rows of A or 16 columns of B, with 16 elements along k. Second:
// true for operand B, whose fragment has registers 1 and 2 exchanged, compared with that of A.
template <bool Along, bool Second>
__device__ __forceinline__ void kbki_step_read(uint32_t tile, int x, int k, uint32_t* r) {
    int lane = threadIdx.x % 32, low = lane / 8 % 2 * 8, high = lane / 16 * 8;
    x += Second ? high : low, k += Second ? low : high;
    int line = lane % 8 + (Along ? x : k), pack = Along ? k / 8 : x % 64 / 8, panel = Along ? 0 : x / 64 * 8192;
    kbki_ldmatrix<!Along>(tile + panel + line * 128 + (pack ^ line % 8) * 16, r);
}
// Kernel of variant `swizzle`: tensor cores multiply by mma.sync. 16-byte vectors are copied to swizzled tiles
// with 64 elements along k.
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(256)
    kbk_matmul_fwd_swizzle_k(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t depth, int64_t lda,
                             int64_t ldb, int64_t ldc) {
    __shared__ __align__(1024) char sa[128 * 128], sb[128 * 128];
    int warp = threadIdx.x / 32, y = warp / 4 * 64, x = warp % 4 * 32;
    int64_t across = (n + 127) / 128, i0 = blockIdx.x / across * 128, j0 = blockIdx.x % across * 128;
    float sum[4][4][4] = {};
    for (int64_t k0 = 0; k0 < depth; k0 += 64) {
        kbki_step_copy<AlongA>(sa, a, lda, i0, m, k0, depth);
        kbki_step_copy<AlongB>(sb, b, ldb, j0, n, k0, depth);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 64; k += 16) {
            uint32_t u[4][4], v[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) kbki_step_read<AlongA, false>(kbki_shared(sa), y + i * 16, k, u[i]);
#pragma unroll
            for (int j = 0; j < 2; j++) kbki_step_read<AlongB, true>(kbki_shared(sb), x + j * 16, k, v[j]);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) kbki_mma_fixed<T>(sum[i][j], u[i], v[j / 2] + j % 2 * 2);
        }
        __syncthreads();
    }
    kbki_step_put(c, m, n, ldc, i0 + y, j0 + x, sum);
}
template <class T> const char* kbk_matmul_fwd_swizzle(const kbk_args* a, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 128, 128, &io, &ctas);
    if (why || ctas == 0) return why;
    if (!kbki_mm_wide(io.a, io.unit_a) || !kbki_mm_wide(io.b, io.unit_b)) return kbk_matmul_fwd_warpmma<T>(a, st);
    if ((why = kbki_needs_mma<T>()) != NULL) return why;
    return kbki_mm_by_layout(a->s.layout, [&](auto l) {
        kbk_matmul_fwd_swizzle_k<T, l.a, l.b>
            <<<(unsigned)ctas, 256, 0, st>>>(io.a, io.b, io.c, io.m, io.n, io.k, io.lda, io.ldb, io.ldc);
        return kbki_launched();
    });
}

// Starts the TMA copy of a tile of 128 rows or columns with 64 elements along k. Multicast: whether the copy goes
// to every CTA of the cluster whose bit is set in `mask`.
template <bool Along, bool Multicast = false>
__device__ __forceinline__ void kbki_step_fetch(char* tile, const kbki_map* map, uint64_t* full, int x, int k,
                                                unsigned mask = 0) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (Along)
        kbki_tma_load<Multicast>(tile, map, full, k, x, mask);
    else
        for (int half = 0; half < 128; half += 64)
            kbki_tma_load<Multicast>(tile + half * 128, map, full, x + half, k, mask);
#endif
}
// Kernel of variant `tmaload`: tensor cores multiply by mma.sync, and TMA loads the swizzled tiles. The mbarrier
// `full` counts the bytes that have arrived.
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(256)
    kbk_matmul_fwd_tmaload_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b, T* c,
                             int64_t ldc, int m, int n, int depth) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __shared__ __align__(1024) char sa[128 * 128], sb[128 * 128];
    __shared__ uint64_t full;
    int warp = threadIdx.x / 32, y = warp / 4 * 64, x = warp % 4 * 32;
    int across = (n + 127) / 128, i0 = (int)blockIdx.x / across * 128, j0 = (int)blockIdx.x % across * 128;
    float sum[4][4][4] = {};
    if (threadIdx.x == 0) kbki_bar_init(&full, 1), kbki_bar_ready();
    __syncthreads();
    for (int k0 = 0; k0 < depth; k0 += 64) {
        if (threadIdx.x == 0) {
            // The mbarrier always expects the bytes of complete tiles, because TMA writes zeros for elements
            // outside the tensor and counts these zeros as well.
            kbki_bar_expect(&full, sizeof sa + sizeof sb);
            kbki_step_fetch<AlongA>(sa, &map_a, &full, i0, k0), kbki_step_fetch<AlongB>(sb, &map_b, &full, j0, k0);
        }
        kbki_bar_wait(&full, k0 / 64 % 2);
#pragma unroll
        for (int k = 0; k < 64; k += 16) {
            uint32_t u[4][4], v[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) kbki_step_read<AlongA, false>(kbki_shared(sa), y + i * 16, k, u[i]);
#pragma unroll
            for (int j = 0; j < 2; j++) kbki_step_read<AlongB, true>(kbki_shared(sb), x + j * 16, k, v[j]);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) kbki_mma_fixed<T>(sum[i][j], u[i], v[j / 2] + j % 2 * 2);
        }
        __syncthreads();
    }
    kbki_step_put(c, m, n, ldc, i0 + y, j0 + x, sum);
#endif
}
// Launches a kernel that loads by TMA and whose tiles have 128 x Wide elements. cluster = 0 launches one CTA per
// tile; 1 launches persistent CTAs; 2 launches persistent clusters of two CTAs. bytes: bytes of dynamic shared
// memory per CTA. If K = 0, no kernel is launched, and C is set to zero.
template <class T, int Wide, bool Store = false, class Kernel>
const char* kbki_step_run(const kbk_args* a, kbk_stream st, Kernel kernel_of, int threads, size_t bytes,
                          int cluster, const char* (*needs)(void) = kbki_needs_hopper) {
    kbki_mm<T> io;
    kbki_map map_a, map_b, map_c;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 128, Wide, &io, &ctas);
    const bool along_a = a->s.layout != KBK_TN, along_b = a->s.layout == KBK_NT;
    if (why || ctas == 0) return why;
    if (io.m > 0x7FFFFC00 || io.n > 0x7FFFFC00 || io.k > 0x7FFFFC00) return "a dimension exceeds 2^31 - 1024";
    if (io.k == 0) return kbki_mm_zeros(io, 1, st);
    if (!kbki_mm_wide(io.a, io.unit_a) || !kbki_mm_wide(io.b, io.unit_b))
        return "TMA needs rows of A and B aligned to 16 bytes: use warpmma";
    if (Store && !kbki_mm_wide(io.c, io.unit_c))
        return "TMA stores need rows of C aligned to 16 bytes: use variant multicast";
    why = along_a ? kbki_map_lines(io.a, io.m, io.k, io.lda, 128, &map_a)
                  : kbki_map_lines(io.a, io.k, io.m, io.lda, 64, &map_a);
    if (!why)
        why = along_b ? kbki_map_lines(io.b, io.n, io.k, io.ldb, 128, &map_b)
                      : kbki_map_lines(io.b, io.k, io.n, io.ldb, 64, &map_b);
    if (!why && Store) why = kbki_map_lines(io.c, io.m, io.n, io.ldc, 64, &map_c);
    if (!why) why = needs();
    if (why) return why;
    return kbki_mm_by_layout(a->s.layout, [&](auto l) {
        const auto kernel = kernel_of(l);
        cudaLaunchConfig_t cfg = {};
        cudaLaunchAttribute attr = {};
        cudaError_t e = cudaSuccess;
        int most = kbki_sms();
        const char* no = bytes ? kbki_want_shared(kernel, &bytes) : NULL;
        if (no) return no;
        attr.id = cudaLaunchAttributeClusterDimension;
        attr.val.clusterDim.x = (unsigned)cluster, attr.val.clusterDim.y = attr.val.clusterDim.z = 1;
        cfg.gridDim = dim3(2), cfg.blockDim = dim3((unsigned)threads), cfg.dynamicSmemBytes = bytes,
        cfg.stream = st;
        cfg.attrs = &attr, cfg.numAttrs = cluster > 1;
        if (cluster > 1) e = kbki_clusters(kernel, &cfg, &most), ctas = io.across * kbki_ceil(io.down, 2);
        if (e == cudaSuccess && most < 1) return "this GPU cannot run a cluster of this size";
        if (cluster && ctas > most) ctas = most;
        cfg.gridDim.x = (unsigned)ctas * (cluster > 1 ? 2 : 1);
        if (e != cudaSuccess) return kbki_error(e);
        if constexpr (Store)
            e = cudaLaunchKernelEx(&cfg, kernel, map_a, map_b, map_c, (int)io.m, (int)io.n, (int)io.k);
        else
            e = cudaLaunchKernelEx(&cfg, kernel, map_a, map_b, io.c, io.ldc, (int)io.m, (int)io.n, (int)io.k);
        return e == cudaSuccess ? kbki_launched() : kbki_error(e);
    });
}
template <class T> const char* kbk_matmul_fwd_tmaload(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_tmaload_k<T, l.a, l.b>; };
    return kbki_step_run<T, 128>(a, st, kernel, 256, 0, 0, [] { return kbki_needs(90); });
}

// Stores the 64 x Width sums of a warpgroup. With r = t / 32 * 16 + t % 32 / 4, thread t holds two of every 8
// columns of rows r and r + 8.
template <class T, int Width>
__device__ __forceinline__ void kbki_step_store(T* c, int64_t ldc, int m, int n, int i0, int j0, const float* d) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    int t = threadIdx.x % 128;
    bool pairs = (n | ldc) % 2 == 0 && (uintptr_t)c % 4 == 0;
#pragma unroll
    for (int e = 0; e < Width / 2; e += 2) {
        int i = i0 + t / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8, j = j0 + e / 4 * 8 + t % 4 * 2;
        T* to = c + i * ldc + j;
        if (i >= m || j >= n) continue;
        if (pairs) {
            *reinterpret_cast<uint32_t*>(to) = kbki_word((T*)0, d + e);
        } else {
            to[0] = kbki_type<T>::from(d[e]);
            if (j + 1 < n) to[1] = kbki_type<T>::from(d[e + 1]);
        }
    }
#endif
}
/*  Kernel of variant `warpgroup`: by wgmma, a warpgroup of four warps multiplies operands that are in shared
    memory. A descriptor holds the address and the layout of an operand (kbki_wg_operand). wgmma is asynchronous
    (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"). wgmma.fence orders wgmma
    after earlier accesses to the registers that wgmma uses. commit_group closes a group of wgmma instructions,
    and wait_group waits for the results of a group. */
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(128)
    kbk_matmul_fwd_warpgroup_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b, T* c,
                               int64_t ldc, int m, int n, int depth) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(1024) char sa[128 * 128], sb[128 * 128];
    __shared__ uint64_t full;
    int across = (n + 127) / 128, i0 = (int)blockIdx.x / across * 128, j0 = (int)blockIdx.x % across * 128;
    kbki_wg_operand<AlongA> u;
    kbki_wg_operand<AlongB> v;
    float d[2][64]; // sums of two blocks of 64 rows by 128 columns
    u.set(sa), v.set(sb);
    if (threadIdx.x == 0) kbki_bar_init(&full, 1), kbki_bar_ready();
    __syncthreads();
#pragma unroll 1
    for (int k0 = 0; k0 < depth; k0 += 64) {
        if (threadIdx.x == 0) {
            kbki_bar_expect(&full, sizeof sa + sizeof sb);
            kbki_step_fetch<AlongA>(sa, &map_a, &full, i0, k0), kbki_step_fetch<AlongB>(sb, &map_b, &full, j0, k0);
        }
        kbki_bar_wait(&full, k0 / 64 % 2);
        kbki_wg_fence();
#pragma unroll
        // Each step computes the products for 16 values of k. The first product of a tile overwrites the sums
        // instead of adding to them.
        for (int step = 0; step < 4; step++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                kbki_wgmma<T, 128>::template shared<!AlongA, !AlongB>(
                    d[half], u.at(step * u.step16 + half * u.block64), v.at(step * v.step16), step ? 1 : k0);
        kbki_wg_commit();
        kbki_wg_wait<0>();
        __syncthreads();
    }
    kbki_wg_hold<64>(d[0]), kbki_wg_hold<64>(d[1]);
    kbki_step_store<T, 128>(c, ldc, m, n, i0, j0, d[0]);
    kbki_step_store<T, 128>(c, ldc, m, n, i0 + 64, j0, d[1]);
#endif
}
// Writes 64 rows of 64 results to shared memory by stmatrix. The results have the 128-byte swizzle, which the TMA
// store undoes.
template <class T> __device__ __forceinline__ void kbki_step_stage(char* to, const float* d) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    int lane = threadIdx.x % 32, line = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
    for (int x = 0; x < 8; x += 2) { // x: index of a vector of eight columns
        uint32_t w[4];
#pragma unroll
        for (int e = 0; e < 4; e++) w[e] = kbki_word((T*)0, d + x * 4 + e * 2);
        kbki_stmatrix(kbki_shared(to + line * 128 + ((x + lane / 16) ^ line % 8) * 16), w);
    }
#endif
}
template <class T> const char* kbk_matmul_fwd_warpgroup(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_warpgroup_k<T, l.a, l.b>; };
    return kbki_step_run<T, 128>(a, st, kernel, 128, 0, 0);
}

// --- A stage of the kernels below: 128 x 64 k of A, then 64 k x 128 of B, each with 128 bytes per row.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__device__ __forceinline__ char* kbki_wg_align(void* p) { return (char*)p + (0 - kbki_shared(p) & 1023); }
#endif
// Kernel of variant `wgmma` (double buffering): while wgmma multiplies the operands in one stage, TMA loads the
// operands of the next step into the other stage.
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(128)
    kbk_matmul_fwd_wgmma_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b, T* c,
                           int64_t ldc, int m, int n, int depth) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Bytes = 2 * 128 * 128; // bytes of a stage
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[2];
    char* stages = kbki_wg_align(kbki_mm_ring);
    int steps = (depth + 63) / 64;
    int across = (n + 127) / 128, i0 = (int)blockIdx.x / across * 128, j0 = (int)blockIdx.x % across * 128;
    kbki_wg_operand<AlongA> u;
    kbki_wg_operand<AlongB> v;
    float d[2][64];
    u.set(stages), v.set(stages + 128 * 128);
    auto load = [&](int step) { // only one thread calls load()
        char* stage = stages + step % 2 * Bytes;
        kbki_bar_expect(full + step % 2, Bytes);
        kbki_step_fetch<AlongA>(stage, &map_a, full + step % 2, i0, step * 64);
        kbki_step_fetch<AlongB>(stage + 128 * 128, &map_b, full + step % 2, j0, step * 64);
    };
    if (threadIdx.x == 0) {
        kbki_bar_init(full, 1), kbki_bar_init(full + 1, 1), kbki_bar_ready();
        load(0);
        if (steps > 1) load(1);
    }
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        uint32_t stage = step % 2 * (Bytes / 16);
        kbki_bar_wait(full + step % 2, step / 2 % 2);
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                kbki_wgmma<T, 128>::template shared<!AlongA, !AlongB>(
                    d[half], u.at(stage + k * u.step16 + half * u.block64), v.at(stage + k * v.step16),
                    k ? 1 : step);
        kbki_wg_commit();
        kbki_wg_wait<0>();
        __syncthreads(); // all warps have finished reading the stage that load() overwrites
        if (threadIdx.x == 0 && step + 2 < steps) load(step + 2);
    }
    kbki_wg_hold<64>(d[0]), kbki_wg_hold<64>(d[1]);
    kbki_step_store<T, 128>(c, ldc, m, n, i0, j0, d[0]);
    kbki_step_store<T, 128>(c, ldc, m, n, i0 + 64, j0, d[1]);
#endif
}
template <class T> const char* kbk_matmul_fwd_wgmma(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_wgmma_k<T, l.a, l.b>; };
    return kbki_step_run<T, 128>(a, st, kernel, 128, 1024 + 2 * 32768, 0);
}

/*  Kernel of variant `ws` (warp specialization): one thread of a producer warpgroup keeps a pipeline of four
    stages full, and the consumer warpgroup multiplies. Each stage has two mbarriers: `full` signals that the
    stage is full, and `empty` signals that it is empty. The consumer issues the products of a stage before the
    products of the previous stage have finished. */
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(256)
    kbk_matmul_fwd_ws_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b, T* c,
                        int64_t ldc, int m, int n, int depth) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Stages = 4, Bytes = 2 * 128 * 128;
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[Stages], empty[Stages];
    char* stages = kbki_wg_align(kbki_mm_ring);
    int steps = (depth + 63) / 64;
    int across = (n + 127) / 128, i0 = (int)blockIdx.x / across * 128, j0 = (int)blockIdx.x % across * 128;
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; i++) kbki_bar_init(full + i, 1), kbki_bar_init(empty + i, 1);
        kbki_bar_ready();
    }
    __syncthreads();
    if (threadIdx.x >= 128) { // producer
        for (int step = 0; threadIdx.x == 128 && step < steps; step++) {
            int slot = step % Stages;
            char* stage = stages + slot * Bytes;
            kbki_bar_wait(empty + slot, step / Stages % 2 ^ 1);
            kbki_bar_expect(full + slot, Bytes);
            kbki_step_fetch<AlongA>(stage, &map_a, full + slot, i0, step * 64);
            kbki_step_fetch<AlongB>(stage + 128 * 128, &map_b, full + slot, j0, step * 64);
        }
        return;
    }
    kbki_wg_operand<AlongA> u;
    kbki_wg_operand<AlongB> v;
    float d[2][64];
    u.set(stages), v.set(stages + 128 * 128);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        uint32_t stage = step % Stages * (Bytes / 16);
        kbki_bar_wait(full + step % Stages, step / Stages % 2);
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                kbki_wgmma<T, 128>::template shared<!AlongA, !AlongB>(
                    d[half], u.at(stage + k * u.step16 + half * u.block64), v.at(stage + k * v.step16),
                    k ? 1 : step);
        kbki_wg_commit();
        kbki_wg_wait<1>(); // waits until the products of the previous step have finished
        if (step && threadIdx.x == 0) kbki_bar_arrive(empty + (step - 1) % Stages);
    }
    kbki_wg_wait<0>();
    kbki_wg_hold<64>(d[0]), kbki_wg_hold<64>(d[1]);
    kbki_step_store<T, 128>(c, ldc, m, n, i0, j0, d[0]);
    kbki_step_store<T, 128>(c, ldc, m, n, i0 + 64, j0, d[1]);
#endif
}
template <class T> const char* kbk_matmul_fwd_ws(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_ws_k<T, l.a, l.b>; };
    return kbki_step_run<T, 128>(a, st, kernel, 256, 1024 + 4 * 32768, 0);
}

// --- A stage of the kernels below: 128 x 64 k of A, then 64 k x 256 of B.
// Kernel of variant `coop` (cooperative schedule): two consumer warpgroups share a tile of C of 128 x 256
// elements, and each of them computes 64 rows of the tile. The producer releases registers for the consumers,
// which hold 128 sums per thread.
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(384)
    kbk_matmul_fwd_coop_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b, T* c,
                          int64_t ldc, int m, int n, int depth) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Stages = 4, Bytes = 3 * 128 * 128;
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[Stages], empty[Stages];
    char* stages = kbki_wg_align(kbki_mm_ring);
    int steps = (depth + 63) / 64, group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    int across = (n + 255) / 256, i0 = (int)blockIdx.x / across * 128, j0 = (int)blockIdx.x % across * 256;
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; i++) kbki_bar_init(full + i, 1), kbki_bar_init(empty + i, 2);
        kbki_bar_ready();
    }
    __syncthreads();
    if (group == 2) { // producer
        kbki_wg_give<40>();
        for (int step = 0; threadIdx.x == 256 && step < steps; step++) {
            int slot = step % Stages;
            char* stage = stages + slot * Bytes;
            kbki_bar_wait(empty + slot, step / Stages % 2 ^ 1);
            kbki_bar_expect(full + slot, Bytes);
            kbki_step_fetch<AlongA>(stage, &map_a, full + slot, i0, step * 64);
            kbki_step_fetch<AlongB>(stage + 128 * 128, &map_b, full + slot, j0, step * 64);
            kbki_step_fetch<AlongB>(stage + 256 * 128, &map_b, full + slot, j0 + 128, step * 64);
        }
        return;
    }
    kbki_wg_take<232>();
    kbki_wg_operand<AlongA> u;
    kbki_wg_operand<AlongB> v;
    float d[128];
    u.set(stages + group * 64 * 128), v.set(stages + 128 * 128);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        uint32_t stage = step % Stages * (Bytes / 16);
        kbki_bar_wait(full + step % Stages, step / Stages % 2);
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
            kbki_wgmma<T, 256>::template shared<!AlongA, !AlongB>(d, u.at(stage + k * u.step16),
                                                                  v.at(stage + k * v.step16), k ? 1 : step);
        kbki_wg_commit();
        kbki_wg_wait<1>();
        if (step && threadIdx.x % 128 == 0) kbki_bar_arrive(empty + (step - 1) % Stages);
    }
    kbki_wg_wait<0>();
    kbki_wg_hold<128>(d);
    kbki_step_store<T, 256>(c, ldc, m, n, i0 + group * 64, j0, d);
#endif
}
template <class T> const char* kbk_matmul_fwd_coop(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_coop_k<T, l.a, l.b>; };
    return kbki_step_run<T, 256>(a, st, kernel, 384, 1024 + 4 * 49152, 0);
}

// Returns the tile row and the tile column of the tile that CTA `rank` of a cluster computes in work unit `index`.
// Tiles are numbered in bands of 16 tile rows, column by column within a band.
__device__ __forceinline__ int2 kbki_wg_tile(int across, int down, int pair, int index, int rank) {
    int most = KBKI_MM_BAND / pair;
    down = (down + pair - 1) / pair;
    int band = index < most * across ? 0 : index / (most * across), in = index - band * (most * across);
    int high = min(most, down - band * most), column = (int)((unsigned)in / (unsigned)high);
    return make_int2((band * most + in - column * high) * pair + rank, column);
}
/*  Kernel of variant `persist` (persistent kernel): one CTA per SM computes one tile after another. Tiles are
    taken in bands of 16 tile rows, column by column within a band, so that L2 keeps the operands of a band.
    The producer loads the first stages of the next tile while the consumers store the current tile. `turn`
    counts the pipeline stages over all tiles of the CTA. */
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(384)
    kbk_matmul_fwd_persist_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b, T* c,
                             int64_t ldc, int m, int n, int depth) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Stages = 4, Bytes = 3 * 128 * 128;
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[Stages], empty[Stages];
    char* stages = kbki_wg_align(kbki_mm_ring);
    int steps = (depth + 63) / 64, group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    int across = (n + 255) / 256, down = (m + 127) / 128, tiles = across * down, turn = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; i++) kbki_bar_init(full + i, 1), kbki_bar_init(empty + i, 2);
        kbki_bar_ready();
    }
    __syncthreads();
    if (group == 2) { // producer
        kbki_wg_give<40>();
        for (int tile = (int)blockIdx.x; threadIdx.x == 256 && tile < tiles; tile += (int)gridDim.x) {
            int2 at = kbki_wg_tile(across, down, 1, tile, 0);
            for (int step = 0; step < steps; step++, turn++) {
                int slot = turn % Stages;
                char* stage = stages + slot * Bytes;
                kbki_bar_wait(empty + slot, turn / Stages % 2 ^ 1);
                kbki_bar_expect(full + slot, Bytes);
                kbki_step_fetch<AlongA>(stage, &map_a, full + slot, at.x * 128, step * 64);
                kbki_step_fetch<AlongB>(stage + 128 * 128, &map_b, full + slot, at.y * 256, step * 64);
                kbki_step_fetch<AlongB>(stage + 256 * 128, &map_b, full + slot, at.y * 256 + 128, step * 64);
            }
        }
        return;
    }
    kbki_wg_take<232>();
    kbki_wg_operand<AlongA> u;
    kbki_wg_operand<AlongB> v;
    float d[128];
    u.set(stages + group * 64 * 128), v.set(stages + 128 * 128);
    for (int tile = (int)blockIdx.x; tile < tiles; tile += (int)gridDim.x) {
        int2 at = kbki_wg_tile(across, down, 1, tile, 0);
#pragma unroll 1
        for (int step = 0; step < steps; step++, turn++) {
            uint32_t stage = turn % Stages * (Bytes / 16);
            kbki_bar_wait(full + turn % Stages, turn / Stages % 2);
            kbki_wg_fence();
#pragma unroll
            for (int k = 0; k < 4; k++)
                kbki_wgmma<T, 256>::template shared<!AlongA, !AlongB>(d, u.at(stage + k * u.step16),
                                                                      v.at(stage + k * v.step16), k ? 1 : step);
            kbki_wg_commit();
            kbki_wg_wait<1>();
            if (step && threadIdx.x % 128 == 0) kbki_bar_arrive(empty + (turn - 1) % Stages);
        }
        kbki_wg_wait<0>();
        // signals that the tile's last stage is empty
        if (threadIdx.x % 128 == 0) kbki_bar_arrive(empty + (turn - 1) % Stages);
        kbki_wg_hold<128>(d);
        kbki_step_store<T, 256>(c, ldc, m, n, at.x * 128 + group * 64, at.y * 256, d);
    }
#endif
}
template <class T> const char* kbk_matmul_fwd_persist(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_persist_k<T, l.a, l.b>; };
    return kbki_step_run<T, 256>(a, st, kernel, 384, 1024 + 4 * 49152, 1);
}

// Kernel of variant `multicast`: the two CTAs of a cluster compute tiles one above the other, so both need the
// same tile of B. Each CTA loads half of the tile of B and multicasts this half to both CTAs. A stage is empty
// only when the consumers of both CTAs have released it, because both CTAs write to it.
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(384)
    kbk_matmul_fwd_multicast_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b, T* c,
                               int64_t ldc, int m, int n, int depth) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Stages = 4, Bytes = 3 * 128 * 128;
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[Stages], empty[Stages];
    char* stages = kbki_wg_align(kbki_mm_ring);
    int steps = (depth + 63) / 64, group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    int across = (n + 255) / 256, down = (m + 127) / 128, pairs = across * ((down + 1) / 2);
    int turn = 0, rank = (int)kbki_cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; i++) kbki_bar_init(full + i, 1), kbki_bar_init(empty + i, 4);
        kbki_bar_ready();
    }
    kbki_cluster_barrier();
    if (group == 2) { // producer
        kbki_wg_give<40>();
        for (int pair = (int)blockIdx.x / 2; threadIdx.x == 256 && pair < pairs; pair += (int)gridDim.x / 2) {
            int2 at = kbki_wg_tile(across, down, 2, pair, rank);
            for (int step = 0; step < steps; step++, turn++) {
                int slot = turn % Stages;
                char *stage = stages + slot * Bytes, *half = stage + (1 + rank) * 128 * 128;
                kbki_bar_wait(empty + slot, turn / Stages % 2 ^ 1);
                kbki_bar_expect(full + slot, Bytes); // expects the tile of A and both halves of the tile of B
                kbki_step_fetch<AlongA>(stage, &map_a, full + slot, at.x * 128, step * 64);
                kbki_step_fetch<AlongB, true>(half, &map_b, full + slot, at.y * 256 + rank * 128, step * 64, 3);
            }
        }
    } else {
        kbki_wg_take<232>();
        kbki_wg_operand<AlongA> u;
        kbki_wg_operand<AlongB> v;
        float d[128];
        u.set(stages + group * 64 * 128), v.set(stages + 128 * 128);
        for (int pair = (int)blockIdx.x / 2; pair < pairs; pair += (int)gridDim.x / 2) {
            int2 at = kbki_wg_tile(across, down, 2, pair, rank);
#pragma unroll 1
            for (int step = 0; step < steps; step++, turn++) {
                uint32_t stage = turn % Stages * (Bytes / 16);
                kbki_bar_wait(full + turn % Stages, turn / Stages % 2);
                kbki_wg_fence();
#pragma unroll
                for (int k = 0; k < 4; k++)
                    kbki_wgmma<T, 256>::template shared<!AlongA, !AlongB>(
                        d, u.at(stage + k * u.step16), v.at(stage + k * v.step16), k ? 1 : step);
                kbki_wg_commit();
                kbki_wg_wait<1>();
                if (step && threadIdx.x % 128 < 2) // thread 0 signals CTA 0, thread 1 CTA 1
                    kbki_bar_arrive_at(empty + (turn - 1) % Stages, threadIdx.x % 128);
            }
            kbki_wg_wait<0>();
            if (threadIdx.x % 128 < 2) kbki_bar_arrive_at(empty + (turn - 1) % Stages, threadIdx.x % 128);
            kbki_wg_hold<128>(d);
            kbki_step_store<T, 256>(c, ldc, m, n, at.x * 128 + group * 64, at.y * 256, d);
        }
    }
    __syncwarp();
    kbki_cluster_barrier(); // a CTA must not exit while the other CTA may access its shared memory
#endif
}
template <class T> const char* kbk_matmul_fwd_multicast(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_multicast_k<T, l.a, l.b>; };
    return kbki_step_run<T, 256>(a, st, kernel, 384, 1024 + 4 * 49152, 2);
}

// Kernel of variant `tma`: a consumer writes 64 columns of results at a time to a staging buffer. TMA stores the
// buffer to C while the next tile is multiplied. Each consumer has two staging buffers. Before a staging buffer is
// written again, the thread that started the TMA store of this buffer waits until the store has read it.
template <class T, bool AlongA, bool AlongB>
__global__ void __launch_bounds__(384)
    kbk_matmul_fwd_tma_k(const __grid_constant__ kbki_map map_a, const __grid_constant__ kbki_map map_b,
                         const __grid_constant__ kbki_map map_c, int m, int n, int depth) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Stages = 4, Bytes = 3 * 128 * 128;
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[Stages], empty[Stages];
    char* stages = kbki_wg_align(kbki_mm_ring);
    int steps = (depth + 63) / 64, group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    int across = (n + 255) / 256, down = (m + 127) / 128, pairs = across * ((down + 1) / 2);
    int turn = 0, rank = (int)kbki_cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < Stages; i++) kbki_bar_init(full + i, 1), kbki_bar_init(empty + i, 4);
        kbki_bar_ready();
    }
    kbki_cluster_barrier();
    if (group == 2) { // producer
        kbki_wg_give<40>();
        for (int pair = (int)blockIdx.x / 2; threadIdx.x == 256 && pair < pairs; pair += (int)gridDim.x / 2) {
            int2 at = kbki_wg_tile(across, down, 2, pair, rank);
            for (int step = 0; step < steps; step++, turn++) {
                int slot = turn % Stages;
                char *stage = stages + slot * Bytes, *half = stage + (1 + rank) * 128 * 128;
                kbki_bar_wait(empty + slot, turn / Stages % 2 ^ 1);
                kbki_bar_expect(full + slot, Bytes); // expects the tile of A and both halves of the tile of B
                kbki_step_fetch<AlongA>(stage, &map_a, full + slot, at.x * 128, step * 64);
                kbki_step_fetch<AlongB, true>(half, &map_b, full + slot, at.y * 256 + rank * 128, step * 64, 3);
            }
        }
    } else {
        kbki_wg_take<232>();
        kbki_wg_operand<AlongA> u;
        kbki_wg_operand<AlongB> v;
        float d[128];
        char* staging = stages + Stages * Bytes + group * 2 * 64 * 128;
        u.set(stages + group * 64 * 128), v.set(stages + 128 * 128);
        for (int pair = (int)blockIdx.x / 2; pair < pairs; pair += (int)gridDim.x / 2) {
            int2 at = kbki_wg_tile(across, down, 2, pair, rank);
#pragma unroll 1
            for (int step = 0; step < steps; step++, turn++) {
                uint32_t stage = turn % Stages * (Bytes / 16);
                kbki_bar_wait(full + turn % Stages, turn / Stages % 2);
                kbki_wg_fence();
#pragma unroll
                for (int k = 0; k < 4; k++)
                    kbki_wgmma<T, 256>::template shared<!AlongA, !AlongB>(
                        d, u.at(stage + k * u.step16), v.at(stage + k * v.step16), k ? 1 : step);
                kbki_wg_commit();
                kbki_wg_wait<1>();
                if (step && threadIdx.x % 128 < 2) // thread 0 signals CTA 0, thread 1 CTA 1
                    kbki_bar_arrive_at(empty + (turn - 1) % Stages, threadIdx.x % 128);
            }
            kbki_wg_wait<0>();
            if (threadIdx.x % 128 < 2) kbki_bar_arrive_at(empty + (turn - 1) % Stages, threadIdx.x % 128);
            kbki_wg_hold<128>(d);
#pragma unroll
            for (int x = 0; x < 256; x += 64) {
                char* buffer = staging + x / 64 % 2 * 64 * 128;
                // waits until all TMA stores but the last one have read their staging buffers
                if (threadIdx.x % 128 == 0) kbki_bulk_read<1>();
                kbki_barrier<128>(1 + group);
                kbki_step_stage<T>(buffer, d + x / 2);
                kbki_bulk_fence();
                kbki_barrier<128>(1 + group);
                if (threadIdx.x % 128 == 0)
                    kbki_tma_store(&map_c, buffer, at.y * 256 + x, at.x * 128 + group * 64);
            }
        }
        // a CTA must not exit before its TMA stores have read shared memory
        if (threadIdx.x % 128 == 0) kbki_bulk_read<0>();
    }
    __syncwarp();
    kbki_cluster_barrier(); // a CTA must not exit while the other CTA may access its shared memory
#endif
}
template <class T> const char* kbk_matmul_fwd_tma(const kbk_args* a, kbk_stream st) {
    const auto kernel = [](auto l) { return kbk_matmul_fwd_tma_k<T, l.a, l.b>; };
    return kbki_step_run<T, 256, true>(a, st, kernel, 384, 1024 + 4 * 49152 + 4 * 8192, 2);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_tile     Matrix product in f32, near the peak of FMAs: rungs 7 and 8 of matmul; card in >>matmul_simt.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

// ---- The kernels that add one idea each end here.

/*  Copies the tiles of one operand to shared memory by cp.async, one tile after the other along k. A tile has
    Breadth rows or columns and Depth elements along k. A K-major operand (Along) is copied element by element,
    which transposes it and accepts any address. An operand that is not K-major is copied in units of 16 bytes
    if Wide is true, else in units of 4 bytes. Wide requires rows that are aligned to 16 bytes. */
template <bool Along, bool Wide, bool Flat, int Breadth, int Depth, int Threads> struct kbki_mm_feed {
    static constexpr int width = Wide && !Along ? 4 : 1, pitch = Breadth + 4;
    static constexpr int per_pass = Along ? Threads / Depth : Threads / (Breadth / width); // rows per pass
    static constexpr int passes = (Along ? Breadth : Depth) / per_pass, step = Along ? per_pass : per_pass * pitch;
    static_assert(per_pass > 0 && passes * per_pass == (Along ? Breadth : Depth), "passes are whole");
    const float *p, *base;
    int64_t ld;
    // left: number of rows or columns from this thread's first element to the end of the tensor or of the tile. k:
    // index along k, within the tile, of the thread's first element. at: offset of the thread's first element in
    // the tile, in floats
    int left, k, at;
    bool whole;
    __device__ __forceinline__ void start(const float* tensor, int64_t line, int64_t x0, int64_t size, int64_t k0) {
        int t = threadIdx.x, x = Along ? t / Depth : t % (Breadth / width) * width;
        k = Along ? t % Depth : t / (Breadth / width), at = k * pitch + x;
        base = tensor, ld = line, p = tensor + (Along ? (x0 + x) * ld + k0 + k : (k0 + k) * ld + x0 + x);
        whole = x0 + Breadth <= size, left = whole ? Breadth - x : (int)(size - x0) - x;
    }
    // Starts copying the next tile to address s of shared memory. depth: number of values of k that remain,
    // including those of this tile.
    __device__ __forceinline__ void next(uint32_t s, int64_t depth) {
        const float* q = p;
        s += at * 4;
        if (whole && depth >= Depth) {
#pragma unroll
            for (int i = 0; i < passes; i++, q += per_pass * ld) kbki_ahead_copy<4 * width>(s + i * step * 4, q);
        } else {
            // If `Flat` is true, the loop for edge tiles is unrolled. The compiler then replaces the if/else by
            // predicated instructions of both branches, so that FMAs fill the gaps between copies. If `Flat` is
            // false, the if/else remains a branch. Unrolling makes the kernel faster in layout NN only.
#pragma unroll Flat ? passes : 1

            for (int i = 0; i < passes; i++, q += per_pass * ld) {
                bool in = Along ? k < depth && i * per_pass < left : k + i * per_pass < depth && left > 0;
                kbki_ahead_copy_if<4 * width>(s + i * step * 4, in ? q : base, in);
            }
        }
        p += Along ? Depth : Depth * ld;
    }
};

// Kernel of variant `cpasync`: a cp.async pipeline of four stages. Three stages are being loaded while the tiles
// of the fourth stage are multiplied.
template <bool AlongA, bool AlongB, bool Wide>
__global__ void __launch_bounds__(256, Wide || AlongB ? 2 : 1) kbk_matmul_fwd_cpasync_k(kbki_mm<float> io) {
    constexpr int Stages = 4;
    __shared__ __align__(16) float a[Stages][8][KBKI_MM_PITCH], b[Stages][8][KBKI_MM_PITCH];
    kbki_mm_feed<AlongA, Wide, AlongA && Wide, KBKI_MM_TILE, 8, 256> fa;
    kbki_mm_feed<AlongB, Wide, AlongA && Wide, KBKI_MM_TILE, 8, 256> fb;
    int64_t i0 = blockIdx.x / io.across * KBKI_MM_TILE, j0 = blockIdx.x % io.across * KBKI_MM_TILE;
    uint32_t sa = kbki_shared(a), sb = kbki_shared(b), size = sizeof a[0];
    float c[8][8] = {};
    fa.start(io.a, io.lda, i0, io.m, 0), fb.start(io.b, io.ldb, j0, io.n, 0);
    for (int s = 0; s < Stages - 1; s++) {
        fa.next(sa + s * size, io.k - 8 * s), fb.next(sb + s * size, io.k - 8 * s);
        kbki_ahead_close();
    }
    int now = 0, then = Stages - 1;
    for (int64_t k0 = 0; k0 < io.k; k0 += 8) {
        kbki_ahead_wait<Stages - 2>();
        // After this barrier, all threads see the tiles of the current stage. Before this barrier, all threads
        // have read the previous stage, which is overwritten next.
        __syncthreads();
        int64_t left = io.k - k0 - 8 * (Stages - 1);
        fa.next(sa + then * size, left), fb.next(sb + then * size, left);
        // At the end of K, a group of copies may be empty. Empty groups are closed as well, because
        // kbki_ahead_wait counts groups.
        kbki_ahead_close();
        kbki_mm_step8(a[now], b[now], c);
        now = now + 1 == Stages ? 0 : now + 1, then = then + 1 == Stages ? 0 : then + 1;
    }
    kbki_ahead_wait<0>();
    kbki_mm_finish8(io.c, io.m, io.n, io.ldc, i0, j0, c);
}

// Configuration of variant `warptile`. TileM, TileN, TileK: tile sizes of a CTA along M, N and K. WarpM, WarpN:
// tile sizes of a warp. LanesM: number of lanes of a warp along M. Stages: stages of the cp.async pipeline. Ctas:
// CTAs per SM.
template <int TileM, int TileN, int TileK, int WarpM, int WarpN, int LanesM, int Stages, int Ctas>
struct kbki_mm_plan {
    static constexpr int tile_m = TileM, tile_n = TileN, tile_k = TileK, stages = Stages, ctas = Ctas;
    static constexpr int warp_m = WarpM, warp_n = WarpN, threads = TileM / WarpM * (TileN / WarpN) * 32;
    static constexpr int lanes_m = LanesM, lanes_n = 32 / LanesM;
    static constexpr int thread_m = WarpM / lanes_m, thread_n = WarpN / lanes_n;
    // floats_a: floats of a tile of A in shared memory; stage: floats of a tile of A and a tile of B
    static constexpr int floats_a = TileK * (TileM + 4), stage = floats_a + TileK * (TileN + 4);
    static constexpr int bytes = Stages * stage * 4;
};
// Loads Count values of an operand for one value of k from shared memory to registers, in vectors of four.
// Consecutive vectors of a thread are 4 * Apart floats apart.
template <int Count, int Apart> __device__ __forceinline__ void kbki_mm_piece(const float* s, float* v) {
#pragma unroll
    for (int e = 0; e < Count; e += 4)
        *reinterpret_cast<float4*>(v + e) = *reinterpret_cast<const float4*>(s + e * Apart);
}
template <class Plan>
__device__ __forceinline__ void kbki_mm_finish(const kbki_mm<float>& io, int64_t i, int64_t j,
                                               float (*c)[Plan::thread_n]) {
    float* out = io.part ? io.part + blockIdx.y * io.m * io.n : io.c;
    const int64_t ld = io.part ? io.n : io.ldc;
    bool wide = (io.n | ld) % 4 == 0 && ((uintptr_t)out & 15) == 0;
#pragma unroll
    for (int y = 0; y < Plan::thread_m; y++)
#pragma unroll
        for (int x = 0; x < Plan::thread_n; x += 4)
            kbki_mm_put(out, io.m, io.n, ld, i + y % 4 + y / 4 * 4 * Plan::lanes_m, j + x * Plan::lanes_n, c[y] + x,
                        wide);
}
// Kernel of variant `warptile`, which combines a cp.async pipeline, tiles per CTA, per warp and per thread,
// double-buffered fragments, and split-K. blockIdx.y is the index of the split-K slice.
template <bool AlongA, bool AlongB, bool Wide, class Plan>
__global__ void __launch_bounds__(Plan::threads, Plan::ctas) kbk_matmul_fwd_warptile_k(kbki_mm<float> io) {
    extern __shared__ uint4 kbki_mm_ring[];
    float *ring = reinterpret_cast<float*>(kbki_mm_ring), c[Plan::thread_m][Plan::thread_n] = {},
          a[2][Plan::thread_m], b[2][Plan::thread_n];
    kbki_mm_feed<AlongA, Wide, AlongA && Wide, Plan::tile_m, Plan::tile_k, Plan::threads> fa;
    kbki_mm_feed<AlongB, Wide, AlongA && Wide, Plan::tile_n, Plan::tile_k, Plan::threads> fb;
    uint32_t s0 = kbki_shared(ring);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int y = warp / (Plan::tile_n / Plan::warp_n) * Plan::warp_m + lane / Plan::lanes_n * 4,
        x = warp % (Plan::tile_n / Plan::warp_n) * Plan::warp_n + lane % Plan::lanes_n * 4;
    int64_t i0, j0, k0 = blockIdx.y * io.deep, depth = io.k - k0 < io.deep ? io.k - k0 : io.deep;
    kbki_mm_where(io, Plan::tile_m, Plan::tile_n, &i0, &j0);
    fa.start(io.a, io.lda, i0, io.m, k0), fb.start(io.b, io.ldb, j0, io.n, k0);
    for (int s = 0; s < Plan::stages - 1; s++) {
        fa.next(s0 + s * Plan::stage * 4, depth - Plan::tile_k * s);
        fb.next(s0 + (s * Plan::stage + Plan::floats_a) * 4, depth - Plan::tile_k * s);
        kbki_ahead_close();
    }
    kbki_ahead_wait<Plan::stages - 2>();
    __syncthreads();
    float *now = ring, *end = ring + Plan::stages * Plan::stage;
    uint32_t then = s0 + (Plan::stages - 1) * Plan::stage * 4, last = then;
    kbki_mm_piece<Plan::thread_m, Plan::lanes_m>(now + y, a[0]);
    kbki_mm_piece<Plan::thread_n, Plan::lanes_n>(now + Plan::floats_a + x, b[0]);
    int64_t ahead = depth - Plan::tile_k * (Plan::stages - 1);
#pragma unroll 1
    for (; depth > 0; depth -= Plan::tile_k, ahead -= Plan::tile_k) {
#pragma unroll
        for (int k = 0; k < Plan::tile_k; k++) {
            constexpr int LastStep = Plan::tile_k - 1;
            if (k == LastStep) { // all threads have read the current tile, and the next tile has arrived
                now = now + Plan::stage == end ? ring : now + Plan::stage;
                kbki_ahead_wait<Plan::stages - 2>();
                __syncthreads();
            }
            const float* s = now + (k == LastStep ? 0 : (k + 1) * (Plan::tile_m + 4));
            kbki_mm_piece<Plan::thread_m, Plan::lanes_m>(s + y, a[(k + 1) % 2]);
            s = now + Plan::floats_a + (k == LastStep ? 0 : (k + 1) * (Plan::tile_n + 4));
            kbki_mm_piece<Plan::thread_n, Plan::lanes_n>(s + x, b[(k + 1) % 2]);
            if (k == 0) {
                fa.next(then, ahead), fb.next(then + Plan::floats_a * 4, ahead);
                kbki_ahead_close();
                then = then == last ? s0 : then + Plan::stage * 4;
            }
            kbki_mm_fma<Plan::thread_m, Plan::thread_n>(a[k % 2], b[k % 2], c);
        }
    }
    kbki_ahead_wait<0>();
    if (io.part) kbki_follow_me(); // lets kbki_mm_sum_k start
    kbki_mm_finish<Plan>(io, i0 + y, j0 + x, c);
}
// Adds the partial sums of the split-K slices in a fixed order, so that every launch computes bitwise the same
// result. Each thread has eight loads in flight.
template <class T> __global__ void __launch_bounds__(128) kbki_mm_sum_k(kbki_mm<T> io, int64_t splits) {
    int64_t n = io.m * io.n, i = blockIdx.x * (int64_t)128 + threadIdx.x;
    float sum = 0;
    kbki_follow_wait();
    if (i >= n) return;
    const float* p = io.part + i;
    for (; splits >= 8; splits -= 8, p += 8 * n) {
        float v[8];
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = p[e * n];
#pragma unroll
        for (int e = 0; e < 8; e++) sum += v[e];
    }
    for (; splits > 0; splits--, p += n) sum += *p;
    io.c[io.ldc == io.n ? i : i / io.n * io.ldc + i % io.n] = kbki_mm_result(io, sum);
}
template <class T> const char* kbki_mm_sum(const kbki_mm<T>& io, int64_t splits, kbk_stream st) {
    if (!kbki_grid_ok(kbki_ceil(io.m * io.n, 128))) return KBKI_TEXT_GRID;
    return kbki_follow(kbki_mm_sum_k<T>, dim3((unsigned)kbki_ceil(io.m * io.n, 128)), 128, st, io, splits);
}

template <class T> const char* kbk_matmul_fwd_cpasync(const kbk_args* a, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, KBKI_MM_TILE, KBKI_MM_TILE, &io, &ctas);
    if (why || ctas == 0) return why;
    if ((why = kbki_needs(80)) != NULL) return why;
    bool wide = kbki_mm_wide(io.b, io.unit_b) && (a->s.layout == KBK_NN || kbki_mm_wide(io.a, io.unit_a));
    return kbki_mm_by_layout(a->s.layout, [&](auto l) {
        if (wide)
            kbk_matmul_fwd_cpasync_k<l.a, l.b, !l.b><<<(unsigned)ctas, 256, 0, st>>>(io);
        else
            kbk_matmul_fwd_cpasync_k<l.a, l.b, false><<<(unsigned)ctas, 256, 0, st>>>(io);
        return kbki_launched();
    });
}
typedef kbki_mm_plan<128, 256, 16, 64, 64, 8, 3, 1> kbki_mm_best;
template <bool AlongA, bool AlongB, bool Wide, class Plan>
const char* kbki_mm_warptile(const kbki_mm<float>& io, int64_t ctas, int64_t splits, kbk_stream st) {
    size_t bytes = Plan::bytes;
    const char* why = kbki_want_shared(kbk_matmul_fwd_warptile_k<AlongA, AlongB, Wide, Plan>, &bytes);
    if (why || bytes == 0) return why ? why : "an SM of this GPU has too little shared memory for this kernel";
    dim3 grid((unsigned)ctas, (unsigned)splits);
    kbk_matmul_fwd_warptile_k<AlongA, AlongB, Wide, Plan><<<grid, Plan::threads, bytes, st>>>(io);
    return kbki_launched();
}
template <class T> const char* kbk_matmul_fwd_warptile(const kbk_args* a, kbk_stream st) {
    typedef kbki_mm_best Plan;
    kbki_mm<T> io;
    int64_t ctas, splits = kbki_mm_splits(&a->s);
    const char* why = kbki_mm_args(a, Plan::tile_m, Plan::tile_n, &io, &ctas);
    if (why || ctas == 0) return why;
    if ((why = kbki_needs(80)) != NULL) return why;
    if (splits > 1) {
        if ((why = kbki_check_workspace(a, kbki_scratch_matmul(&a->s, (int)sizeof(T), KBKI_WORD_warptile))) != NULL)
            return why;
        io.part = (float*)((char*)a->workspace + KBK_TICKETS);
        io.deep = kbki_ceil(kbki_ceil(io.k, splits), Plan::tile_k) * Plan::tile_k, splits = kbki_ceil(io.k, io.deep);
    }
    bool wide = kbki_mm_wide(io.b, io.unit_b) && (a->s.layout == KBK_NN || kbki_mm_wide(io.a, io.unit_a));
    why = kbki_mm_by_layout(a->s.layout, [&](auto l) {
        if (wide) return kbki_mm_warptile<l.a, l.b, !l.b, Plan>(io, ctas, splits, st);
        return kbki_mm_warptile<l.a, l.b, false, Plan>(io, ctas, splits, st);
    });
    return why || !io.part ? why : kbki_mm_sum(io, splits, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_mma     Matrix product of 16-bit types on tensor cores through mma.sync, for compute capability 8.0 and
                   later.
-----------------------------------------------------------------*/

/*  matmul fwd, continued: f16 and bf16, a branch of the ladder from rung 8 on for GPUs without wgmma ------------
    17 mma     128 x 128 tile, four warps of 64 x 64; ldmatrix, mma.sync m16n8k16; one buffer, no pipeline
               <- 4096 FLOPs per warp instruction (64 for an FMA), on operands of half the size of f32. The
               tensor cores are idle while a tile is loaded
    18 mmapipe cp.async pipeline of three tiles (multistage). Fragments are double-buffered in registers.
               CTAs take the tiles in bands. 128 x 256 tile, or 128 x 128 if there are few tiles or K is short
               <- copies and fragment loads are interleaved with the products, so memory latency is hidden. The loop
               over complete tiles has no branch. Rows whose length is no multiple of 8 are first copied to padded rows
               (workspace: 2*(M*K + K*N) bytes and padding). If an operand that is not copied has a base address that
               is not aligned to 16 bytes, rung 17 runs, which accepts any address. If there are few tiles and K is
               long, split-K is used. The slices are added in order (workspace: 4*M*N bytes per slice)
    bound by   arithmetic, and by mma.sync itself. On compute capability 9.0 mma.sync reaches about 62 % of the rate
               of wgmma, because all operands pass through registers

    In shared memory, variants `mma` and `mmapipe` keep the element order of global memory. Tiles have 64 values of
    k. A tile of a K-major operand is stored as [x][64], where x is the row or column. A tile of an operand that is
    not K-major is stored as [64][x], and ldmatrix transposes it. Swizzle: the 16-byte vector c of a row is stored
    at position c ^ (row % 8). In eight consecutive rows, the vectors with the same index c are therefore in
    different banks. As a result, neither ldmatrix nor the copies have bank conflicts. */
#ifdef __CUDACC__

// ---- The kernels that add one idea each end here.

#define KBKI_MMA_DEPTH 64
// Loads min(n, 8) elements of 16 bits from an address with any alignment. If 8 elements are loaded, aligned 4-byte
// loads read at least six of the elements. Elements n to 7 of the result are 0.
template <class T> __device__ __forceinline__ uint4 kbki_mma_gather(const T* p, int n) {
    const unsigned short* h = reinterpret_cast<const unsigned short*>(p);
    uint32_t w[5] = {};
    if (n >= 8 && ((uintptr_t)p & 2) == 0) {
        const uint32_t* q = reinterpret_cast<const uint32_t*>(p);
        return make_uint4(q[0], q[1], q[2], q[3]);
    }
    if (n >= 8) {
        const uint32_t* q = reinterpret_cast<const uint32_t*>(h + 1);
        w[0] = (uint32_t)h[0] << 16, w[1] = q[0], w[2] = q[1], w[3] = q[2], w[4] = h[7];
        return make_uint4(__funnelshift_r(w[0], w[1], 16), __funnelshift_r(w[1], w[2], 16),
                          __funnelshift_r(w[2], w[3], 16), __funnelshift_r(w[3], w[4], 16));
    }
#pragma unroll
    for (int e = 0; e < 7; e++)
        if (e < n) w[e / 2] |= (uint32_t)h[e] << e % 2 * 16;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

// Copies the tiles of one operand, one after the other along k. A tile has Breadth rows or columns and 64 elements
// along k. Thread t copies, in several rows, the 16-byte vector with index t % packs. Along: whether the operand
// is K-major.
template <class T, bool Along, int Breadth, int Threads> struct kbki_mma_feed {
    static constexpr int packs = Along ? KBKI_MMA_DEPTH / 8 : Breadth / 8; // 16-byte vectors per row
    static constexpr int per_pass = Threads / packs, lines = Along ? Breadth : KBKI_MMA_DEPTH,
                         passes = lines / per_pass;
    static constexpr int bytes = Breadth * KBKI_MMA_DEPTH * 2;
    static_assert(per_pass % 8 == 0 && passes * per_pass == lines, "all rows of a thread have the same swizzle");
    const T *p, *base;
    // jump: elements from this thread's vector of one pass to that of the next pass; turn: elements that are added
    // after the last pass of a tile, so that `p` points to the next tile along k
    int64_t jump, turn;
    // left: number of rows or columns from this thread's first element to the end of the tensor or of the tile. k:
    // index along k, within the tile, of the thread's first element. at: byte offset of the thread's first element
    // in the tile
    int left, k, at;
    bool whole;         // whether all rows or columns of the tile are inside the tensor
    __device__ __forceinline__ void start(const T* tensor, int64_t ld, int64_t x0, int64_t size) {
        int t = threadIdx.x, row = t / packs, pack = t % packs, x = Along ? row : pack * 8;
        base = tensor, jump = per_pass * ld, turn = Along ? KBKI_MMA_DEPTH - Breadth * ld : 0,
        k = Along ? pack * 8 : row;
        p = tensor + (Along ? (x0 + x) * ld + k : k * ld + x0 + x);
        asm volatile("" : "+l"(jump)); // keeps `jump` in registers; otherwise the compiler reloads `ld` for each use
        at = row * packs * 16 + (pack ^ row % 8) * 16;
        whole = x0 + Breadth <= size, left = whole ? Breadth - x : (int)(size - x0) - x;
    }
    // Returns how many elements, from this thread's vector of pass i on, are inside the tensor. If the result is 8
    // or more, all 8 elements of the vector are inside the tensor; if it is below 1, no element is inside.
    __device__ __forceinline__ int there(int i, int64_t depth) const {
        // number of values of k from the start of this vector to the end of the tile or of K
        int n = depth < KBKI_MMA_DEPTH ? (int)depth - k : KBKI_MMA_DEPTH - k;
        return Along ? (i * per_pass < left ? n : 0) : (i * per_pass < n ? left : 0);
    }
    // inside() copies a quarter of a tile that is completely inside the tensor; edge() copies a quarter of any
    // tile. Rows are aligned to 16 bytes, so a vector lies either completely inside or completely outside the
    // tensor.
    __device__ __forceinline__ void inside(uint32_t s, int quarter) {
        s += at + quarter * (bytes / 4);
#pragma unroll
        for (int i = 0; i < passes / 4; i++, p += jump) kbki_ahead_copy<16>(s + i * per_pass * packs * 16, p);
    }
    __device__ __forceinline__ void edge(uint32_t s, int quarter, int64_t depth) {
        s += at + quarter * (bytes / 4);
// The loop for edge tiles is not unrolled, so that it remains a branch. An unrolled loop would become predicated
// instructions, which would be issued even for tiles inside the tensor.
#pragma unroll 1
        for (int i = 0; i < passes / 4; i++, p += jump) {
            bool in = depth > 0 && there(quarter * (passes / 4) + i, depth) > 0;
            kbki_ahead_copy_if<16>(s + i * per_pass * packs * 16, in ? p : base, in);
        }
    }
    __device__ __forceinline__ void onward() { p += turn; }
    // Copies a tile through registers. If `Wide` is true, each load reads 16 aligned bytes; otherwise any
    // alignment is accepted.
    template <bool Wide> __device__ __forceinline__ void now(char* s, int64_t depth) {
        uint4 v[passes];
#pragma unroll
        for (int i = 0; i < passes; i++, p += jump) {
            int n = there(i, depth);
            v[i] = make_uint4(0, 0, 0, 0);
            if (n > 0) v[i] = Wide ? *reinterpret_cast<const uint4*>(p) : kbki_mma_gather(p, n);
        }
#pragma unroll
        for (int i = 0; i < passes; i++) *reinterpret_cast<uint4*>(s + at + i * per_pass * packs * 16) = v[i];
        p += turn;
    }
};
template <bool Yes> struct kbki_flag { static constexpr bool yes = Yes; };
// Copies a quarter of a tile of A and a quarter of a tile of B. Sure: whether the caller knows that both tiles are
// completely inside their tensors.
template <bool Sure, class FeedA, class FeedB>
__device__ __forceinline__ void kbki_mma_part(FeedA& a, FeedB& b, uint32_t s, int quarter, int64_t depth) {
    if (Sure || (a.whole && b.whole && depth >= KBKI_MMA_DEPTH))
        a.inside(s, quarter), b.inside(s + FeedA::bytes, quarter);
    else
        a.edge(s, quarter, depth), b.edge(s + FeedA::bytes, quarter, depth);
}

/*  Computes the addresses at which a lane reads the fragments of an operand by ldmatrix. A fragment has 16 rows
    or columns with 16 elements along k. mma.sync requires a certain order of the fragment's registers, and
    `First` selects this order. The correct value of `First` depends on the operand and on its layout. If
    `First` is true, lanes 8 to 15 read the next eight rows, and lanes 16 to 31 the next vector. If `First` is
    false, lanes 8 to 15 read the next vector, and lanes 16 to 31 the next eight rows. */
template <bool Along, bool First, int Breadth> struct kbki_mma_lane {
    static constexpr bool transpose = !Along;
    uint32_t at[4]; // addresses of steps 0 to 3 along k if the operand is K-major, else of fragments 0 to 3
    // x: first row or column of the tile that this warp reads, a multiple of 64.
    __device__ __forceinline__ void set(uint32_t tile, int x) {
        int lane = threadIdx.x % 32, low = lane / 8 % 2, high = lane / 16;
        int row = lane % 8 + (First ? low : high) * 8, pack = First ? high : low;
        tile += Along ? (x + row) * KBKI_MMA_DEPTH * 2 : row * Breadth * 2 + x * 2;
#pragma unroll
        for (int e = 0; e < 4; e++) at[e] = tile + (pack ^ lane % 8 ^ e * 2) * 16;
    }
    __device__ __forceinline__ void move(uint32_t bytes) {
#pragma unroll
        for (int e = 0; e < 4; e++) at[e] += bytes;
    }
    // Loads a fragment: rows or columns 16 i to 16 i + 15, with values 16 step to 16 step + 15 of k.
    __device__ __forceinline__ void read(int i, int step, uint32_t* r) const {
        kbki_ldmatrix<transpose>(Along ? at[step] + i * 16 * KBKI_MMA_DEPTH * 2 : at[i] + step * 16 * Breadth * 2, r);
    }
};
// Computes the products for 16 values of k, and adds them to 16 rows of a warp's 64 x 64 sums.
template <class T> __device__ __forceinline__ void kbki_mma_fma(const uint32_t* a, uint32_t (*b)[4], float (*c)[4]) {
#pragma unroll
    for (int j = 0; j < 8; j++) kbki_mma_fixed<T>(c[j], a, b[j / 2] + j % 2 * 2);
}
// Transposes a 4 x 4 matrix of 32-bit words in four neighbouring lanes: lane q gets word q of all four lanes.
__device__ __forceinline__ uint4 kbki_mma_quad(const uint32_t* w) {
    bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    uint32_t a = __shfl_xor_sync(~0u, odd ? w[0] : w[1], 1), b = __shfl_xor_sync(~0u, odd ? w[2] : w[3], 1);
    uint32_t w0 = odd ? a : w[0], w1 = odd ? w[1] : a, w2 = odd ? b : w[2], w3 = odd ? w[3] : b;
    a = __shfl_xor_sync(~0u, high ? w0 : w2, 2), b = __shfl_xor_sync(~0u, high ? w1 : w3, 2);
    return high ? make_uint4(a, b, w2, w3) : make_uint4(w0, w1, a, b);
}
template <class U> struct alignas(2 * sizeof(U)) kbki_pair_of {
    U a, b;
};
/*  Epilogue: stores 16 rows of a warp's sums, which have the register order of mma.sync and wgmma. In the
    register order of mma.sync, a thread holds pairs of neighbouring columns of two rows, lane / 4 and lane / 4
    + 8, of the 16 rows. If C has 16-bit elements and aligned rows, four lanes exchange 32-bit words, and each
    of them stores 16 bytes. ld: elements between rows of C. Turned: whether C is the transpose of the product. */
template <class U, int TileN, bool Turned = false>
__device__ __forceinline__ void kbki_mm_rows(U* c, int64_t m, int64_t n, int64_t ld, int64_t i0, int64_t j0,
                                             const float* d) {
    bool wide = sizeof(U) == 2 && !Turned && (n | ld) % 8 == 0 && ((uintptr_t)c & 15) == 0;
    bool pairs = !Turned && (n | ld) % 2 == 0 && ((uintptr_t)c & (2 * sizeof(U) - 1)) == 0;
    int q = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int64_t i = i0 + threadIdx.x % 32 / 4 + half * 8;
        U* line = Turned ? c + i : c + i * ld;
        if (wide)
#pragma unroll
            for (int x = 0; x < TileN / 8; x += 4) {
                int64_t j = j0 + (x + q) * 8;
                uint32_t w[4];
#pragma unroll
                for (int e = 0; e < 4; e++) w[e] = kbki_word((U*)0, d + (x + e) * 4 + half * 2);
                uint4 v = kbki_mma_quad(w);
                if (i < m && j < n) *reinterpret_cast<uint4*>(line + j) = v;
            }
        else if (i < m)
#pragma unroll
            for (int x = 0; x < TileN / 8; x++) {
                int64_t j = j0 + x * 8 + q * 2;
                const float* f = d + x * 4 + half * 2;
                if (j >= n) continue;
                U* to = Turned ? line + j * ld : line + j;
                if (pairs) {
                    kbki_pair_of<U> v = { kbki_type<U>::from(f[0]), kbki_type<U>::from(f[1]) };
                    *reinterpret_cast<kbki_pair_of<U>*>(to) = v;
                    continue;
                }
                *to = kbki_type<U>::from(f[0]);
                if (j + 1 < n) to[Turned ? ld : 1] = kbki_type<U>::from(f[1]);
            }
    }
}

// Kernel of variant `mma`, with one swizzled buffer per operand. Threads load tiles through registers,
// synchronise, and multiply by mma.sync.
template <class T, bool AlongA, bool AlongB, bool Wide>
__global__ void __launch_bounds__(128, 2) kbk_matmul_fwd_mma_k(kbki_mm<T> io) {
    typedef kbki_mma_feed<T, AlongA, 128, 128> FeedA;
    typedef kbki_mma_feed<T, AlongB, 128, 128> FeedB;
    __shared__ __align__(128) char tile[FeedA::bytes + FeedB::bytes];
    kbki_mma_lane<AlongA, AlongA, 128> la;
    kbki_mma_lane<AlongB, !AlongB, 128> lb;
    FeedA fa;
    FeedB fb;
    int warp = threadIdx.x / 32;
    uint32_t a[4][4], b[4][4];
    int64_t i0, j0;
    float c[4][8][4] = {};
    io.a += blockIdx.z * io.sa, io.b += blockIdx.z * io.sb, io.c += blockIdx.z * io.sc;
    kbki_mm_where(io, 128, 128, &i0, &j0);
    fa.start(io.a, io.lda, i0, io.m), fb.start(io.b, io.ldb, j0, io.n);
    la.set(kbki_shared(tile), warp / 2 * 64), lb.set(kbki_shared(tile + FeedA::bytes), warp % 2 * 64);
    for (int64_t depth = io.k; depth > 0; depth -= KBKI_MMA_DEPTH) {
        fa.template now<Wide>(tile, depth), fb.template now<Wide>(tile + FeedA::bytes, depth);
        __syncthreads();
#pragma unroll
        for (int step = 0; step < KBKI_MMA_DEPTH / 16; step++) {
#pragma unroll
            for (int i = 0; i < 4; i++) la.read(i, step, a[i]), lb.read(i, step, b[i]);
#pragma unroll
            for (int i = 0; i < 4; i++) kbki_mma_fma<T>(a[i], b, c[i]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
        kbki_mm_rows<T, 64>(io.c, io.m, io.n, io.ldc, i0 + warp / 2 * 64 + r * 16, j0 + warp % 2 * 64, c[r][0]);
}

// Prologue of the pipeline. Starts all loads of the first Stages - 1 stages, and a quarter of the loads of the
// last stage.
template <int Stages, class FeedA, class FeedB>
__device__ __forceinline__ void kbki_mma_first(FeedA& a, FeedB& b, uint32_t s, int64_t depth) {
    for (int i = 0; i < Stages - 1; i++) {
        for (int quarter = 0; quarter < 4; quarter++) kbki_mma_part<false>(a, b, s, quarter, depth);
        a.onward(), b.onward(), kbki_ahead_close();
        s += FeedA::bytes + FeedB::bytes, depth -= KBKI_MMA_DEPTH;
    }
    kbki_mma_part<false>(a, b, s, 0, depth);
}

// Restricts io to the work of this CTA: slice blockIdx.y of K, in matrix product blockIdx.z of the batch.
template <bool AlongA, bool AlongB, class T> __device__ __forceinline__ void kbki_mma_share(kbki_mm<T>& io) {
    int64_t k0 = blockIdx.y * io.deep;
    io.a += blockIdx.z * io.sa + k0 * (AlongA ? 1 : io.lda), io.b += blockIdx.z * io.sb + k0 * (AlongB ? 1 : io.ldb);
    io.c += blockIdx.z * io.sc, io.k = min(io.k - k0, io.deep);
}
// Kernel of variant `mmapipe`, which combines a cp.async pipeline of `Stages` swizzled tiles, double-buffered
// fragments, and split-K. blockIdx.y is the index of the split-K slice.
template <class T, bool AlongA, bool AlongB, int TileN, int Stages>
__global__ void __launch_bounds__(TileN, 256 / TileN) kbk_matmul_fwd_mmapipe_k(kbki_mm<T> io) {
    typedef kbki_mma_feed<T, AlongA, 128, TileN> FeedA; // TileN threads are 2 x (TileN / 64) warps
    typedef kbki_mma_feed<T, AlongB, TileN, TileN> FeedB;
    constexpr int StageBytes = FeedA::bytes + FeedB::bytes, Steps = KBKI_MMA_DEPTH / 16, LastStep = Steps - 1;
    extern __shared__ uint4 kbki_mm_ring[];
    kbki_mma_lane<AlongA, AlongA, 128> la;
    kbki_mma_lane<AlongB, !AlongB, TileN> lb;
    FeedA fa;
    FeedB fb;
    int warp = threadIdx.x / 32, y = warp / (TileN / 64) * 64, x = warp % (TileN / 64) * 64, slot = 0;
    uint32_t s0 = kbki_shared(kbki_mm_ring), then = s0 + (Stages - 1) * StageBytes, last = then;
    uint32_t a[2][4][4], b[2][4][4];
    int64_t i0, j0, stop = -KBKI_MMA_DEPTH * (Stages - 1);
    float c[4][8][4] = {};
    kbki_mma_share<AlongA, AlongB>(io);
    kbki_mm_where(io, 128, TileN, &i0, &j0);
    fa.start(io.a, io.lda, i0, io.m), fb.start(io.b, io.ldb, j0, io.n);
    la.set(s0, y), lb.set(s0 + FeedA::bytes, x);
    kbki_mma_first<Stages>(fa, fb, s0, io.k);
    kbki_ahead_wait<Stages - 2>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; i++) la.read(i, 0, a[0][i]), lb.read(i, 0, b[0][i]);
    // number of values of k from the start of the tile that is being loaded to the end of K
    int64_t depth = io.k - KBKI_MMA_DEPTH * (Stages - 1);
    auto turn = [&](auto sure) {
#pragma unroll
        for (int step = 0; step < Steps; step++) {
            int more = (step + 1) % Steps;
            if (step == LastStep) { // all threads have read the current tile, and the next tile has arrived
                slot = slot + 1 == Stages ? 0 : slot + 1;
                const int onward = slot ? StageBytes : -(Stages - 1) * StageBytes;
                la.move(onward), lb.move(onward);
                depth -= KBKI_MMA_DEPTH;
                kbki_ahead_wait<Stages - 2>();
                __syncthreads();
            }
#pragma unroll
            // fragment loads and copies are spread over the products, so that no instruction queue fills up
            for (int i = 0; i < 4; i++) {
                la.read(i, more, a[more % 2][i]), lb.read(i, more, b[more % 2][i]);
                kbki_mma_fma<T>(a[step % 2][i], b[step % 2], c[i]);
                if (i == 1) kbki_mma_part<sure.yes>(fa, fb, then, more, depth);
            }
            if (step == LastStep - 1) {
                fa.onward(), fb.onward(), kbki_ahead_close();
                then = then == last ? s0 : then + StageBytes;
            }
        }
    };
    if (fa.whole && fb.whole)
#pragma unroll 1
        while (depth >= 2 * KBKI_MMA_DEPTH) turn(kbki_flag<true>());
#pragma unroll 1
    while (depth > stop) turn(kbki_flag<false>());
    kbki_ahead_wait<0>();
    if (io.part) kbki_follow_me(); // lets kbki_mm_sum_k start
#pragma unroll
    for (int r = 0; r < 4; r++)
        if (io.part)
            kbki_mm_rows<float, 64>(io.part + blockIdx.y * io.m * io.n, io.m, io.n, io.n, i0 + y + r * 16, j0 + x,
                                    c[r][0]);
        else
            kbki_mm_rows<T, 64>(io.c, io.m, io.n, io.ldc, i0 + y + r * 16, j0 + x, c[r][0]);
}

template <class T> const char* kbki_mma(const kbk_args* a, int64_t batch, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 128, 128, &io, &ctas);
    if (why || ctas == 0) return why;
    if ((why = kbki_needs(80)) != NULL) return why;
    bool wide = kbki_mm_wide(io.a, io.unit_a) && kbki_mm_wide(io.b, io.unit_b);
    return kbki_mm_by_layout(a->s.layout, [&](auto l) {
        return kbki_mm_batch(io, ctas, batch, [&](const kbki_mm<T>& part, dim3 grid) {
            if (wide)
                kbk_matmul_fwd_mma_k<T, l.a, l.b, true><<<grid, 128, 0, st>>>(part);
            else
                kbk_matmul_fwd_mma_k<T, l.a, l.b, false><<<grid, 128, 0, st>>>(part);
        });
    });
}
// smallest number of CTAs for which 256-wide tiles are used: nearly one per SM of a large GPU
#define KBKI_MMA_FEW 120
// Copies the rows of matrices to rows that are padded with zeros to a multiple of 16 bytes. Each warp copies one
// row. A matrix has `per` rows, ld elements apart; matrices are `apart` elements apart. lines: rows of all matrices.
template <class T>
__global__ void __launch_bounds__(256)
    kbki_mma_align_k(const T* from, T* to, int64_t lines, int64_t length, int64_t per, int64_t ld, int64_t apart) {
    int64_t line = blockIdx.x * (int64_t)8 + threadIdx.x / 32, pitch = (length + 7) / 8 * 8;
    if (line >= lines) return;
    from += line / per * apart + line % per * ld;
    for (int64_t i = threadIdx.x % 32 * 8; i < length; i += 256) {
        int n = length - i < 8 ? (int)(length - i) : 8;
        *reinterpret_cast<uint4*>(to + line * pitch + i) = kbki_mma_gather(from + i, n);
    }
}
// If *unit, as in kbki_mm, is not a multiple of 16 bytes, copies an operand of all `batch` products to *room. Each
// product has `lines` rows of `length` elements. Sets *p, *unit, *ld and *stride to the address, the unit, the leading
// dimension and the batch stride of the copy, and moves *room to the end of the copy.
template <class T>
const char* kbki_mma_align(const T** p, int64_t* unit, int64_t* ld, int64_t* stride, int64_t lines, int64_t length,
                           int64_t batch, T** room, kbk_stream st) {
    int64_t pitch = kbki_mm_pitch(length), all = lines * batch;
    if (*unit % 8 == 0 || all * length == 0) return NULL;
    if (!kbki_grid_ok(kbki_ceil(all, 8))) return KBKI_TEXT_GRID;
    kbki_mma_align_k<T><<<(unsigned)kbki_ceil(all, 8), 256, 0, st>>>(*p, *room, all, length, lines, *ld, *stride);
    *p = *room, *unit = *ld = pitch, *stride = lines * pitch, *room += all * pitch;
    return kbki_launched();
}
// Returns whether kbki_mm_wide holds for an operand, at least after kbki_mma_align has copied it.
template <class T> bool kbki_mm_alignable(const T* p, int64_t unit) { return kbki_aligned(p, 16) || unit % 8; }
// Copies every operand (A or B) that has a stride that is not a multiple of 16 bytes. The copies take the first
// part of the workspace; a->workspace is set to the remaining part.
template <class T> const char* kbki_mma_align_both(kbk_args* a, int64_t batch, kbki_mm<T>* io, kbk_stream st) {
    size_t copies = (size_t)batch * kbki_mm_copies(&a->s, (int)sizeof(T));
    if (!copies) return NULL;
    const char* why = kbki_check_workspace(a, KBK_TICKETS + copies);
    T* room = (T*)((char*)a->workspace + KBK_TICKETS);
    const bool tn = a->s.layout == KBK_TN, nt = a->s.layout == KBK_NT;
    const int64_t m = io->m, n = io->n, k = io->k;
    if (!why)
        why = kbki_mma_align(&io->a, &io->unit_a, &io->lda, &io->sa, tn ? k : m, tn ? m : k, batch, &room, st);
    if (!why)
        why = kbki_mma_align(&io->b, &io->unit_b, &io->ldb, &io->sb, nt ? n : k, nt ? k : n, batch, &room, st);
    a->workspace = (char*)a->workspace + copies, a->workspace_bytes -= copies;
    return why;
}
template <class T, int TileN>
const char* kbki_mmapipe_run(const kbk_args* a, kbki_mm<T> io, int64_t batch, int64_t splits, kbk_stream st) {
    constexpr int Stages = 3;
    io.across = kbki_ceil(io.n, TileN), io.down = kbki_ceil(io.m, 128);
    return kbki_mm_by_layout(a->s.layout, [&](auto l) {
        size_t bytes = Stages * (128 + TileN) * KBKI_MMA_DEPTH * 2;
        const char* why = kbki_want_shared(kbk_matmul_fwd_mmapipe_k<T, l.a, l.b, TileN, Stages>, &bytes);
        if (why) return why;
        if (bytes == 0) // the SM has too little shared memory for this configuration
            return TileN == 256 ? kbki_mmapipe_run<T, 128>(a, io, batch, splits, st) : kbki_mma<T>(a, batch, st);
        why = kbki_mm_batch(io, io.across * io.down, batch, [&](const kbki_mm<T>& part, dim3 grid) {
            grid.y = (unsigned)splits;
            kbk_matmul_fwd_mmapipe_k<T, l.a, l.b, TileN, Stages><<<grid, TileN, bytes, st>>>(part);
        });
        return why || !io.part ? why : kbki_mm_sum(io, splits, st);
    });
}
template <class T> const char* kbki_mmapipe(const kbk_args* a, int64_t batch, int64_t splits, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    kbk_args rest = *a;
    const char* why = kbki_mm_args(a, 128, 128, &io, &ctas);
    if (why || ctas == 0 || batch == 0) return why;
    if ((why = kbki_needs(80)) != NULL) return why;
    if (!(kbki_mm_alignable(io.a, io.unit_a) && kbki_mm_alignable(io.b, io.unit_b)))
        return kbki_mma<T>(a, batch, st);
    if ((why = kbki_mma_align_both(&rest, batch, &io, st)) != NULL) return why;
    if (splits > 1) {
        size_t pieces = (size_t)(splits * io.m * io.n) * sizeof(float);
        if ((why = kbki_check_workspace(&rest, KBK_TICKETS + pieces)) != NULL) return why;
        io.part = (float*)((char*)rest.workspace + KBK_TICKETS);
        io.deep = kbki_ceil(kbki_ceil(io.k, splits), KBKI_MMA_DEPTH) * KBKI_MMA_DEPTH;
        return kbki_mmapipe_run<T, 128>(a, io, 1, kbki_ceil(io.k, io.deep), st);
    }
    // A 256-wide tile halves the traffic of A, but such tiles are faster only if there are enough of them and K is
    // long.
    bool wide = io.down * kbki_ceil(io.n, 256) * batch >= KBKI_MMA_FEW && io.k >= 512;
    return wide ? kbki_mmapipe_run<T, 256>(a, io, batch, 1, st) : kbki_mmapipe_run<T, 128>(a, io, batch, 1, st);
}
template <class T> const char* kbk_matmul_fwd_mma(const kbk_args* a, kbk_stream st) { return kbki_mma<T>(a, 1, st); }
template <class T> const char* kbk_matmul_fwd_mmapipe(const kbk_args* a, kbk_stream st) {
    return kbki_mmapipe<T>(a, 1, kbki_mma_splits(&a->s), st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_results     Epilogues of wgmma: sums go from registers to memory, directly or through shared memory by
                       TMA.
-----------------------------------------------------------------*/
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Epilogue: stores 64 rows of a warpgroup's sums from registers to C. (i0, j0): row and column of the first
// element. Turned: whether C is the transpose of the product.
template <class T, int TileN, bool Turned = false>
__device__ __forceinline__ void kbki_wg_finish(const kbki_mm<T>& io, int64_t i0, int64_t j0, const float* d,
                                               int layer = 0) {
    kbki_mm_rows<kbki_result<T>, TileN, Turned>(io.c + layer * io.sc, io.m, io.n, io.ldc,
                                                i0 + threadIdx.x % 128 / 32 * 16, j0, d);
}
/*  Writes 64 rows of 32 f32 results to shared memory, with the same swizzle as kbki_step_stage. If `Turned` is
    true, each column of results becomes two rows of 32 elements that are 4096 bytes apart. If `Turned` is
    false, lanes with even rows write columns 0 to 15 first, and lanes with odd rows write columns 16 to 31
    first, which avoids bank conflicts. */
template <bool Turned> __device__ __forceinline__ void kbki_wg_stage_f32(char* to, const float* d) {
    int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, q = t % 4, other = row % 2 * 16;
    if (Turned) {
#pragma unroll
        for (int e = 0; e < 16; e++) {
            int i = row + e / 2 % 2 * 8, j = e / 4 * 8 + q * 2 + e % 2;
            *(float*)(to + i / 32 * 4096 + j * 128 + (i % 32 / 4 ^ j % 8) * 16 + i % 4 * 4) = d[e];
        }
    } else {
#pragma unroll
        for (int e = 0; e < 8; e += 2) {
            int i = row + e / 2 % 2 * 8, j = e / 4 * 8 + q * 2;
            char* line = to + i * 128 + j % 4 * 4;
            float2 u = make_float2(d[e], d[e + 1]), v = make_float2(d[e + 8], d[e + 9]);
            *(float2*)(line + ((j + other) / 4 ^ i % 8) * 16) = other ? v : u;
            *(float2*)(line + ((j + 16 - other) / 4 ^ i % 8) * 16) = other ? u : v;
        }
    }
}
/*  Epilogue by TMA: stores a block of 64 rows, 128 bytes of columns at a time. The warpgroup has two staging
    buffers (double buffering), or one if shared memory has no room for two. The stores are asynchronous. Before a
    staging buffer is written again, the thread that started the TMA store of this buffer waits until the store has
    read it (cp.async.bulk.wait_group.read). If the tile width is not a multiple of 128 bytes, some columns are stored
    twice. If `Turned` is true, C is the transpose of the product, and an f32 buffer is stored as two TMA
    boxes. */
template <class T, class Plan, bool Turned>
__device__ __forceinline__ void kbki_wg_store(const kbki_map* c, char* staging, int group, int i0, int j0, int layer,
                                              int block, const float* d) {
    constexpr bool Two = Turned && sizeof(T) == 4;
    constexpr int Wide = 128 / (int)sizeof(T), Many = (Plan::tile_n + Wide - 1) / Wide;
    // true if the number of buffers per tile is odd: a tile then starts with the buffer with which the previous
    // tile ended
    constexpr bool Odd = Plan::buffers > 1 && Many * Plan::blocks % 2;
    bool first = threadIdx.x % 128 == 0;
#pragma unroll
    for (int i = 0; i < Many; i++) {
        const int x = i < Many - 1 ? i * Wide : Plan::tile_n - Wide;
        char* buffer = staging + (block * Many + i) % Plan::buffers * 8192;
        if (first && Odd && block == 0 && i == 0) kbki_bulk_read<0>();
        if (first) kbki_bulk_read<Plan::buffers == 1 ? 0 : Two ? 2 : 1>();
        kbki_barrier<128>(1 + group);
        if constexpr (sizeof(T) == 4)
            kbki_wg_stage_f32<Turned>(buffer, d + x / 2);
        else
            kbki_step_stage<T>(buffer, d + x / 2);
        kbki_bulk_fence();
        kbki_barrier<128>(1 + group);
        if (first) kbki_tma_store_3d(c, buffer, Turned ? i0 : j0 + x, Turned ? j0 + x : i0, layer);
        if (first && Two) kbki_tma_store_3d(c, buffer + 4096, i0 + 32, j0 + x, layer);
    }
}
#endif // __CUDA_ARCH_FEAT_SM90_ALL

/*-----------------------------------------------------------------
  >>matmul_hopper     Matrix product with wgmma and TMA, for compute capability 9.0 only: the production kernel. It
                      combines the ideas of rungs 12 to 16 of >>matmul_steps with split-K, batches and a ping-pong
                      schedule.
-----------------------------------------------------------------*/

#define KBKI_TEXT_TMA "TMA needs rows of A and B aligned to 16 bytes: use mmapipe or select"
// layout in which A is not K-major and B is K-major. In this layout, the kernel computes C' = B' A' instead of C =
// A B (X': transpose of X). The rows of C' are the columns of C.
#define KBKI_TT (KBK_TN + 1)
// number of SMs of the largest GPU of compute capability 9.0, for which the workspace is sized
#define KBKI_WG_SMS 132
/*  Returns the number of split-K slices for each tile of the last wave; 1 if the tiles of the last wave are not
    split. The tiles of the last wave are split if they would occupy at most half of the clusters. A slice has
    at least four pipeline stages. All split-K slices run at the same time. units: number of tiles, or of pairs
    of tiles; slots: number of clusters that run at the same time. */
KBK_FN int64_t kbki_wg_slices(int64_t units, int64_t stages, int64_t slots) {
    int64_t n = units % slots ? slots / (units % slots) : 1;
    if (n > stages / 4) n = stages / 4;
    return n > 1 ? n : 1;
}
// Returns the bytes of workspace that split-K needs on any GPU: for each CTA, the f32 sums of a tile of `results`
// elements. Returns 0 if K is too short for split-K.
KBK_FN size_t kbki_wg_room_bytes(int64_t units, int64_t stages, int pair, int results) {
    int64_t slots = KBKI_WG_SMS / pair, clusters = units * (stages / 4);
    return stages < 8 ? 0 : (size_t)((clusters < slots ? clusters : slots) * pair * results) * sizeof(float);
}
#ifdef __CUDACC__

/*  Configuration of the production kernel. TileM x TileN: tile of a CTA. Groups: number of consumer warpgroups,
    1 to 3. Stages: number of stages of the TMA pipeline. A stage holds 128 bytes along k. Pair: 2 if the two
    CTAs of a cluster share a tile of A or of B, else 1. Turns: whether the ping-pong schedule (CUTLASS) is used.
    In the ping-pong schedule, each tile belongs to one consumer warpgroup, and one warpgroup runs its epilogue
    while the other multiplies. */
template <int TileM, int TileN, int Groups, int Stages, int Pair, bool Turns> struct kbki_wg_plan {
    static constexpr int tile_m = TileM, tile_n = TileN, groups = Groups, stages = Stages, pair = Pair;
    static constexpr bool turns = Turns;
    static constexpr int workers = Turns ? 1 : Groups;  // number of consumer warpgroups that share a tile
    static constexpr int blocks = TileM / 64 / workers; // number of 64-row blocks per warpgroup
    static constexpr int threads = 128 * (1 + Groups);  // the first warpgroup is the producer
    static constexpr int a_bytes = TileM * 128, b_bytes = (TileN + 63) / 64 * 8192, stage_bytes = a_bytes + b_bytes;
    // buffers: number of staging buffers of a warpgroup, 2 if shared memory has room; staging: bytes of these buffers
    static constexpr int buffers = 1024 + Stages * stage_bytes + Groups * 16384 <= 227 * 1024 ? 2 : 1;
    static constexpr int staging = buffers * 64 * 128;
    static constexpr int bytes = 1024 + Stages * stage_bytes + Groups * staging; // includes 1024 bytes for alignment
    // keep: registers per consumer thread; spare: registers per producer thread. Of 65536 registers, a CTA uses
    // 128 * (40 + 2 * 232) or 128 * (32 + 3 * 160)
    static constexpr int keep = Groups == 3 ? 160 : 232, spare = Groups == 3 ? 32 : 40;
};
struct kbki_wg_maps {
    kbki_map a, b, c;
};
template <class T> constexpr int kbki_wg_k = 128 / (int)sizeof(T); // values of k per pipeline stage
// Returns the number of rows of a TMA box of an operand. `Along`: whether the operand is K-major; parts: number of
// CTAs that load a part of the tile each, and multicast this part. If the operand is K-major, the box holds a CTA's
// part of `tile` rows of the operand. Otherwise each row of the box holds a panel of the tile (128 bytes) for one
// value of k. A CTA loads complete panels, or a range of k of every panel if its part of the tile is not complete
// panels.
template <class T> __host__ __device__ constexpr int kbki_wg_high(bool along, int tile, int parts) {
    return along ? tile / parts : tile / parts % kbki_wg_k<T> ? kbki_wg_k<T> / parts : kbki_wg_k<T>;
}
// Returns the number of work units of one product: tiles, or pairs of tiles if a cluster has two CTAs.
template <class T> __host__ __device__ __forceinline__ int64_t kbki_wg_tiles(const kbki_mm<T>& io, int pair) {
    return ((io.along_n ? io.across : io.down) + pair - 1) / pair * (io.along_n ? io.down : io.across);
}
// Returns the number of pipeline stages that cover K.
template <class T> __host__ __device__ __forceinline__ int64_t kbki_wg_depth(const kbki_mm<T>& io) {
    return (io.k + kbki_wg_k<T> - 1) / kbki_wg_k<T>;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// A work unit is a tile, or one split-K slice of a tile.
struct kbki_wg_unit {
    // i0, j0: row and column of the tile's first element; layer: index of the product in the batch
    int i0, j0, layer;
    int first, depth;  // first: index of the first pipeline stage along K; depth: number of stages
    // slice: index of the split-K slice; slices: number of slices of the tile, 1 if it is not split
    int slice, slices;
};
/*  Iterates over the work units of a cluster. If the tiles of the last wave are split, the first work unit of
    each cluster is a slice of one of these tiles. The later work units of a cluster are complete tiles. The
    cluster with the last slice of a tile finishes the tile: it adds the sums of the earlier slices
    (kbki_wg_fetch) in a fixed order, so the result is reproducible. The clusters with earlier slices store
    their sums in the workspace (kbki_wg_keep) and never wait. Neighbouring clusters compute slices of
    neighbouring tiles over the same range of k, so that they share loads from L2. */
template <class Plan, class T> struct kbki_wg_walk {
    const kbki_mm<T>& io;
    // tiles: number of tiles of a product. all: number of pipeline stages of a tile. rest: number of tiles that
    // are split. rank: index of the CTA in its cluster. own: index of the cluster. index: next complete tile of
    // the cluster
    int tiles, all, rest, rank, own, index;
    bool split;                             // whether the next work unit is a slice
    __device__ __forceinline__ kbki_wg_walk(const kbki_mm<T>& of)
        : io(of), tiles((int)kbki_wg_tiles(of, Plan::pair)), all((int)kbki_wg_depth(of)),
          rest(tiles * (int)of.layers - (int)of.whole), rank(Plan::pair > 1 ? (int)kbki_cluster_rank() : 0),
          own((int)blockIdx.x / Plan::pair), index(own), split(own < rest * (int)of.slices) {
        if (of.parts > 1) own = index = own / of.parts;
    }
    __device__ __forceinline__ bool more() const { return split || index < io.whole; }
    // A division takes longer than a branch, and the first load of a CTA waits for the first call.
    __device__ __forceinline__ kbki_wg_unit next() {
        const int across = (int)io.across, down = (int)io.down;
        int tile = index, layer = 0, slices = io.parts, slice = 0, first = 0, depth = all;
        if (split)
            tile = (int)io.whole + own % rest, slices = (int)io.slices, slice = own / rest;
        else
            index += io.parts > 1 ? (int)io.whole : (int)gridDim.x / Plan::pair;
        if (io.parts > 1) slice = (int)blockIdx.x % io.parts;
        if (io.layers > 1) layer = tile / tiles, tile -= layer * tiles;
        if (slices > 1) {
            depth = all / slices, first = depth * slice + min(slice, all - depth * slices);
            depth += slice < all - depth * slices;
        }
        int2 at = io.along_n ? kbki_wg_tile(down, across, Plan::pair, tile, rank)
                             : kbki_wg_tile(across, down, Plan::pair, tile, rank);
        if (io.along_n) at = make_int2(at.y, at.x);
        split = false;
        return { at.x * Plan::tile_m, at.y * Plan::tile_n, layer, first, depth, slice, slices };
    }
};
// Returns the address, in the workspace of cluster `which`, of this thread's sums for rows i0 to i0 + 63. The sums
// are in the order of the registers, so that the stores of a warp are coalesced.
template <class Plan, class T>
__device__ __forceinline__ float4* kbki_wg_room(const kbki_mm<T>& io, int which, int rank, int i0) {
    float* room = io.part + ((int64_t)(which * Plan::pair + rank) * Plan::tile_m + i0 % Plan::tile_m) * Plan::tile_n;
    return (float4*)room + threadIdx.x % 128;
}
// Flag of a consumer warpgroup: one of bits 0 to 30 of a counter in the workspace. A flag is set if its bit
// differs from bit 31 of the counter.
struct kbki_wg_flag {
    unsigned *word, bit;
    __device__ __forceinline__ kbki_wg_flag(void* counters, int index)
        : word((unsigned*)counters + index / 31), bit((unsigned)(index % 31)) {}
    __device__ __forceinline__ void flip() const { atomicXor(word, 1u << bit); }
    __device__ __forceinline__ void wait() const {
        for (unsigned w = 0; ((w >> bit ^ w >> 31) & 1) == 0;)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(w) : "l"(word) : "memory");
    }
};
// Stores the sums of a split-K slice in the workspace, for the cluster that finishes the tile. flag: index of this
// warpgroup among the warpgroups that share the tile.
template <class Plan, class T>
__device__ __forceinline__ void kbki_wg_keep(const kbki_wg_walk<Plan, T>& walk, int i0, int group, int flag,
                                             float (*d)[Plan::tile_n / 2]) {
#pragma unroll
    for (int block = 0; block < Plan::blocks; block++) {
        float4* to = kbki_wg_room<Plan>(walk.io, walk.own, walk.rank, i0 + block * 64);
        const float* f = d[block];
        if (i0 + block * 64 < walk.io.m)
#pragma unroll
            for (int x = 0; x < Plan::tile_n / 8; x++, f += 4) to[x * 128] = make_float4(f[0], f[1], f[2], f[3]);
    }
    __threadfence();
    kbki_barrier<128>(1 + group);
    if (threadIdx.x % 128 == 0)
        kbki_wg_flag(walk.io.flags, (walk.own * Plan::pair + walk.rank) * Plan::workers + flag).flip();
}
// Waits for the flags of all earlier slices of a tile, resets these flags, and adds the sums of the earlier slices
// to d.
template <class Plan, class T>
__device__ __forceinline__ void kbki_wg_fetch(const kbki_wg_walk<Plan, T>& walk, int i0, int group, int flag,
                                              float (*d)[Plan::tile_n / 2]) {
    int first = walk.own % walk.rest;
    for (int which = first + threadIdx.x % 128 * walk.rest; which < walk.own; which += 128 * walk.rest) {
        kbki_wg_flag up(walk.io.flags, (which * Plan::pair + walk.rank) * Plan::workers + flag);
        up.wait(), up.flip();
    }
    kbki_barrier<128>(1 + group);
#pragma unroll 1
    for (int which = first; which < walk.own; which += walk.rest)
#pragma unroll
        for (int block = 0; block < Plan::blocks; block++) {
            const float4* p = kbki_wg_room<Plan>(walk.io, which, walk.rank, i0 + block * 64);
            if (i0 + block * 64 < walk.io.m)
#pragma unroll
                for (int x = 0; x < Plan::tile_n / 8; x++) {
                    float4 v = __ldcg(p + x * 128);
                    float* f = d[block] + x * 4;
                    f[0] += v.x, f[1] += v.y, f[2] += v.z, f[3] += v.w;
                }
        }
}
// Starts the TMA loads of a stage of one operand: rows from `at` on, values of k from k0 on. If Parts is 2, this CTA
// loads half of the tile and multicasts this half to both CTAs of the cluster. TMA always delivers full boxes, with
// zeros for elements outside the tensor.
template <class T, bool Along, int Tile, int Parts>
__device__ __forceinline__ void kbki_wg_load_tile(const kbki_map* map, char* to, uint64_t* full, int at, int k0,
                                                  int plane, int rank) {
    constexpr int Share = Tile / Parts, High = kbki_wg_high<T>(Along, Tile, Parts);
    constexpr bool Both = Parts > 1, Cut = !Along && High < kbki_wg_k<T>;
    constexpr unsigned All = (1u << Parts) - 1;
    if (Both) to += rank * (Cut ? High : Share) * 128, (Cut ? k0 : at) += rank * (Cut ? High : Share);
    if (Along) {
        kbki_tma_load_3d<Both>(to, map, full, k0, at, plane, All);
    } else {
#pragma unroll
        for (int x = 0; x < (Cut ? Tile : Share); x += kbki_wg_k<T>)
            kbki_tma_load_3d<Both>(to + x * 128, map, full, at + x, k0, plane, All);
    }
}
// Starts the TMA loads of one pipeline stage. The two CTAs of a cluster share the tile of A or the tile of B.
template <class T, class Plan, bool AlongA, bool AlongB>
__device__ __forceinline__ void kbki_wg_load(const kbki_wg_maps& maps, char* stage, uint64_t* full, int i0, int j0,
                                             int k0, int plane, int rank, bool along_n) {
    constexpr int Pair = Plan::pair;
    char* b = stage + Plan::a_bytes;
    kbki_bar_expect(full, Plan::a_bytes + (AlongB ? Plan::tile_n * 128 : Plan::b_bytes));
    if (Pair > 1 && along_n) {
        kbki_wg_load_tile<T, AlongA, Plan::tile_m, Pair>(&maps.a, stage, full, i0, k0, plane, rank);
        kbki_wg_load_tile<T, AlongB, Plan::tile_n, 1>(&maps.b, b, full, j0, k0, plane, 0);
    } else {
        kbki_wg_load_tile<T, AlongA, Plan::tile_m, 1>(&maps.a, stage, full, i0, k0, plane, 0);
        kbki_wg_load_tile<T, AlongB, Plan::tile_n, Pair>(&maps.b, b, full, j0, k0, plane, rank);
    }
}
// Operands of a consumer warpgroup in shared memory. multiply() issues the products of one stage as one wgmma
// group, which the tensor cores execute asynchronously.
template <class T, class Plan, bool AlongA, bool AlongB> struct kbki_wg_factors {
    kbki_wg_operand<AlongA> a;
    kbki_wg_operand<AlongB> b;
    __device__ __forceinline__ void set(const char* stages, int group) {
        a.set(stages + (Plan::turns ? 0 : group * Plan::blocks * 8192)), b.set(stages + Plan::a_bytes);
    }
    __device__ __forceinline__ void multiply(int slot, int keep, float (*d)[Plan::tile_n / 2]) const {
        uint32_t on = (uint32_t)slot * (Plan::stage_bytes / 16);
        kbki_wg_fence();
#pragma unroll
        for (int step = 0; step < 4; step++)
#pragma unroll
            for (int block = 0; block < Plan::blocks; block++)
                kbki_wgmma<T, Plan::tile_n>::template shared<!AlongA, !AlongB>(
                    d[block], a.at(on + step * a.step16 + block * a.block64), b.at(on + step * b.step16),
                    step ? 1 : keep);
        kbki_wg_commit();
    }
    // Issues the products of one stage for one block of 64 rows. The first product overwrites the sums instead of
    // adding to them.
    __device__ __forceinline__ void start(int slot, int block, float* sum) const {
        uint32_t on = (uint32_t)slot * (Plan::stage_bytes / 16);
        kbki_wg_fence();
#pragma unroll
        for (int step = 0; step < 4; step++)
            kbki_wgmma<T, Plan::tile_n>::template shared<!AlongA, !AlongB>(
                sum, a.at(on + step * a.step16 + block * a.block64), b.at(on + step * b.step16), step);
        kbki_wg_commit();
    }
};
// TMA pipeline between the producer and the consumers. To release a slot, one thread in every `Each` consumer
// threads arrives at the `empty` mbarrier of this slot.
template <class Plan, int Each = 128> struct kbki_wg_ring {
    static constexpr int arrivals = Plan::workers * Plan::pair * (128 / Each);
    char* stages;
    uint64_t *full, *empty;
    int slot;
    unsigned parity;
    __device__ __forceinline__ void next() {
        if (++slot == Plan::stages) slot = 0, parity ^= 1;
    }
    __device__ __forceinline__ void skip(int many) {
        many += slot, slot = many % Plan::stages, parity ^= many / Plan::stages & 1;
    }
    __device__ __forceinline__ char* stage() const { return stages + slot * Plan::stage_bytes; }
    // Releases a slot that this warpgroup (or warp) has read: one thread arrives at the `empty` mbarrier of each
    // CTA of the cluster, because all CTAs of the cluster write to the slot.
    __device__ __forceinline__ void release(int which) const {
        unsigned t = threadIdx.x % Each;
        if (Plan::pair == 1 && t == 0) kbki_bar_arrive(empty + which);
        if (Plan::pair > 1 && t < Plan::pair) kbki_bar_arrive_at(empty + which, t);
    }
};
// If threads instead of wgmma read an operand in shared memory, each warp arrives separately at the `empty`
// mbarrier.
template <class T, class Plan, bool AlongA>
using kbki_wg_slots = kbki_wg_ring<Plan, sizeof(T) == 4 && !AlongA ? 32 : 128>;
// Runs the producer. The producer is one thread, which loads the stages of one work unit after another.
template <class T, class Plan, bool AlongA, bool AlongB>
__device__ __forceinline__ void kbki_wg_produce(const kbki_wg_maps& maps, kbki_wg_walk<Plan, T> walk,
                                                kbki_wg_slots<T, Plan, AlongA> ring) {
    while (walk.more()) {
        kbki_wg_unit at = walk.next();
#pragma unroll 1
        for (int i = at.first; i < at.first + at.depth; i++) {
            kbki_bar_wait(ring.empty + ring.slot, ring.parity ^ 1);
            kbki_wg_load<T, Plan, AlongA, AlongB>(maps, ring.stage(), ring.full + ring.slot, at.i0, at.j0,
                                                  i * kbki_wg_k<T>, at.layer, walk.rank, walk.io.along_n);
            ring.next();
        }
    }
    if (Plan::pair > 1) // a CTA must not exit while the other CTA of the cluster may still arrive at its mbarriers
        for (int i = 0; i < Plan::stages; i++) kbki_bar_wait(ring.empty + ring.slot, ring.parity ^ 1), ring.next();
}
// Adds the results of a wgmma to d, after the caller has waited for this wgmma by kbki_wg_wait.
template <int Count> __device__ __forceinline__ void kbki_wg_add(float* d, float* sum) {
    kbki_wg_hold<Count>(sum);
#pragma unroll
    for (int i = 0; i < Count; i++) d[i] += sum[i];
}
/*  Computes a consumer's share of a work unit in e4m3. Tensor cores accumulate 8-bit products in fewer bits
    than f32 has. The sums of each stage (128 values of k) are therefore promoted: FADDs add them to d
    (DeepSeek-AI 2024, "DeepSeek-V3", section 3.3.2). If the registers can hold two sets of sums, the sums of
    one stage are added while the sums of the next stage are computed. If the registers hold one set of sums,
    the additions overlap only with the products of the other warpgroup. */
template <class Factors, class Plan>
__device__ __forceinline__ void kbki_wg_promoted(const Factors& factors, kbki_wg_ring<Plan>& ring, int depth,
                                                 float (*d)[Plan::tile_n / 2]) {
    constexpr int Count = Plan::tile_n / 2;
    float sum[Plan::blocks == 1 ? 2 : 1][Count];
    int done = 0;
#pragma unroll
    for (int i = 0; i < Plan::blocks * Count; i++) d[i / Count][i % Count] = 0;
    // The `do` loop processes one stage at a time. If there are several blocks, it processes all stages; otherwise
    // it processes the first stage if the number of stages is odd.
    if (Plan::blocks > 1 || depth % 2) {
#pragma unroll 1
        do {
            kbki_bar_wait(ring.full + ring.slot, ring.parity);
#pragma unroll
            for (int block = 0; block < Plan::blocks; block++) {
                factors.start(ring.slot, block, sum[0]);
                kbki_wg_wait<0>();
                kbki_wg_add<Count>(d[block], sum[0]);
            }
            ring.release(ring.slot), ring.next(), done++;
        } while (Plan::blocks > 1 && done < depth);
    }
    if constexpr (Plan::blocks == 1)
#pragma unroll 1
        for (; done < depth; done += 2) {
            int before = ring.slot;
            kbki_bar_wait(ring.full + ring.slot, ring.parity);
            factors.start(ring.slot, 0, sum[0]), ring.next();
            kbki_bar_wait(ring.full + ring.slot, ring.parity);
            factors.start(ring.slot, 0, sum[1]);
            kbki_wg_wait<1>();
            kbki_wg_add<Count>(d[0], sum[0]), ring.release(before);
            kbki_wg_wait<0>();
            kbki_wg_add<Count>(d[0], sum[1]), ring.release(ring.slot), ring.next();
        }
}
template <class Plan> __device__ __forceinline__ void kbki_wg_scale(float factor, float (*d)[Plan::tile_n / 2]) {
#pragma unroll
    for (int block = 0; block < Plan::blocks; block++)
#pragma unroll
        for (int i = 0; i < Plan::tile_n / 2; i++) d[block][i] *= factor;
}
/*  If the CTAs of a cluster compute parts of K of the same tile, kbki_wg_send sends a warpgroup's sums to the CTAs
    that add them. Block i of 64 x 32 results belongs to CTA i % parts. The sums replace the stages of the pipeline,
    so all CTAs must have read their stages; this barrier need not order accesses to memory. */
template <class Plan>
__device__ __forceinline__ void kbki_wg_send(const char* stages, const uint64_t* joined, int parts, int rank, int flag,
                                             float (*d)[Plan::tile_n / 2]) {
    kbki_cluster_begin(), kbki_cluster_begun();
#pragma unroll
    for (int n = 0; n < Plan::blocks * Plan::tile_n / 32; n++) {
        int i = flag * Plan::blocks * Plan::tile_n / 32 + n, turn = i / parts;
        const float4* to = (const float4*)stages + (turn * 4 * parts + rank) * 128 + threadIdx.x % 128;
        const float* f = d[n / (Plan::tile_n / 32)] + n % (Plan::tile_n / 32) * 16;
#pragma unroll
        for (int x = 0; x < 4; x++, f += 4)
            kbki_cluster_send(to + x * parts * 128, joined, (unsigned)(i - turn * parts),
                              make_float4(f[0], f[1], f[2], f[3]));
    }
}
// Returns the number of blocks of 64 x 32 results that CTA `rank` adds.
template <class Plan> __device__ __forceinline__ int kbki_wg_shares(int parts, int rank) {
    return (Plan::tile_m / 64 * Plan::tile_n / 32 - rank + parts - 1) / parts;
}
// Adds the sums that the CTAs of the cluster have sent, in a fixed order, and stores them in C.
template <class T, class Plan, bool Turned>
__device__ __forceinline__ void kbki_wg_join(const kbki_mm<T>& io, const char* stages, uint64_t* joined,
                                             kbki_wg_unit at, int group) {
    constexpr int Many = Plan::tile_n / 32;
    const int mine = kbki_wg_shares<Plan>(io.parts, at.slice);
    kbki_bar_wait(joined, 0);
    for (int turn = group; turn < mine; turn += Plan::groups) {
        const int i = turn * io.parts + at.slice;
        const float4* from = (const float4*)stages + turn * 4 * io.parts * 128 + threadIdx.x % 128;
        float d[16];
#pragma unroll
        for (int x = 0; x < 16; x += 4) {
            const float4 v = kbki_cluster_sum(from + x / 4 * io.parts * 128, io.parts);
            d[x] = v.x, d[x + 1] = v.y, d[x + 2] = v.z, d[x + 3] = v.w;
        }
        if constexpr (sizeof(T) == 1)
            for (int x = 0; x < 16; x++) d[x] *= kbki_mm_scaled(io, 1);
        kbki_wg_finish<T, 32, Turned>(io, at.i0 + i / Many * 64, at.j0 + i % Many * 32, d, at.layer);
    }
}
// Executes the epilogue of a work unit. The sums of a split-K slice that is not the last of its tile are stored in
// the workspace. The sums of a complete tile are stored in C; if the tile is split, the sums of its earlier slices
// are added first.
template <class T, class Plan, bool Turned>
__device__ __forceinline__ void kbki_wg_out(const kbki_wg_maps& maps, const kbki_wg_walk<Plan, T>& walk,
                                            char* staging, const uint64_t* joined, kbki_wg_unit at, int group,
                                            float (*d)[Plan::tile_n / 2]) {
    const kbki_mm<T>& io = walk.io;
    int flag = Plan::turns ? 0 : group;
    if (Plan::pair == 1 && io.parts > 1) {
#pragma unroll
        for (int block = 0; block < Plan::blocks; block++) kbki_wg_hold<Plan::tile_n / 2>(d[block]);
        return kbki_wg_send<Plan>(staging - group * Plan::staging - Plan::stages * Plan::stage_bytes, joined, io.parts,
                                  at.slice, flag, d);
    }
    at.i0 += flag * Plan::blocks * 64;
#pragma unroll
    for (int block = 0; block < Plan::blocks; block++) kbki_wg_hold<Plan::tile_n / 2>(d[block]);
    if (at.slice < at.slices - 1) return kbki_wg_keep(walk, at.i0, group, flag, d);
    if (at.slices > 1) kbki_wg_fetch(walk, at.i0, group, flag, d);
    if constexpr (sizeof(T) == 1) kbki_wg_scale<Plan>(kbki_mm_scaled(io, 1), d);
#pragma unroll
    for (int block = 0; block < Plan::blocks; block++)
        if (io.store)
            kbki_wg_store<kbki_result<T>, Plan, Turned>(&maps.c, staging, group, at.i0 + block * 64, at.j0, at.layer,
                                                        block, d[block]);
        else
            kbki_wg_finish<T, Plan::tile_n, Turned>(io, at.i0 + block * 64, at.j0, d[block], at.layer);
}
/*  Runs a consumer warpgroup, which multiplies the stages of the pipeline. After the consumer issues the
    products of a stage, it waits for the products of the previous stage and releases the slot of the previous
    stage. In the ping-pong schedule, each of two consumers takes every other work unit. A consumer starts a
    work unit when the other consumer has issued the last products of the preceding unit. The named barriers 3
    and 4 signal that the last products of a work unit have been issued. The two consumers must alternate,
    because an mbarrier distinguishes only odd and even phases: a consumer that falls two phases behind would
    wait for the wrong phase. */
template <class T, class Plan, bool AlongA, bool AlongB>
__device__ __forceinline__ void kbki_wg_consume(const kbki_wg_maps& maps, kbki_wg_walk<Plan, T> walk,
                                                kbki_wg_slots<T, Plan, AlongA> ring, const uint64_t* joined,
                                                int group) {
    // Fed: whether threads load operand A from shared memory into registers
    constexpr bool Turned = !AlongA && AlongB, Fed = Turned && sizeof(T) == 4;
    char* staging = ring.stages + Plan::stages * Plan::stage_bytes + group * Plan::staging;
    kbki_wg_factors<T, Plan, AlongA, AlongB> factors;
    float d[Plan::blocks][Plan::tile_n / 2];
    factors.set(ring.stages, group);
    if (Plan::turns && group == 1) kbki_barrier_arrive<256>(3);
    for (int n = 0; walk.more(); n++) {
        kbki_wg_unit at = walk.next();
        int depth = at.depth;
        if (Plan::turns && n % 2 != group) {
            ring.skip(depth);
            continue;
        }
        if (Plan::turns) kbki_barrier<256>(3 + group);
        if constexpr (sizeof(T) == 1) {
            static_assert(!Plan::turns, "kbki_wg_promoted does not signal when its last products are issued");
            kbki_wg_promoted(factors, ring, depth, d);
        } else {
            int before = 0;
#pragma unroll 1
            for (int i = 0; i < depth; i++) {
                kbki_bar_wait(ring.full + ring.slot, ring.parity);
                factors.multiply(ring.slot, i, d);
                kbki_wg_wait<Fed ? 0 : 1>();
                if constexpr (Fed) // all threads must have read a slot before TMA overwrites it
                    kbki_bulk_fence(), __syncwarp(), ring.release(ring.slot);
                else if (i)
                    ring.release(before);
                before = ring.slot, ring.next();
            }
            if (Plan::turns && walk.more()) kbki_barrier_arrive<256>(4 - group);
            kbki_wg_wait<0>();
            if (!Fed) ring.release(before);
        }
        kbki_wg_out<T, Plan, Turned>(maps, walk, staging, joined, at, group, d);
    }
    // a CTA must not exit before its TMA stores have read shared memory
    if (threadIdx.x % 128 == 0) kbki_bulk_read<0>();
}
#endif // __CUDA_ARCH_FEAT_SM90_ALL

// The production kernel of matmul, with warp specialization. The first warpgroup loads by TMA, and the other
// warpgroups multiply (kbki_wg_consume).
template <class T, bool AlongA, bool AlongB, class Plan>
__global__ void __launch_bounds__(Plan::threads, 1)
    kbki_wg_ring_k(const __grid_constant__ kbki_wg_maps maps, const __grid_constant__ kbki_mm<T> io) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[Plan::stages], empty[Plan::stages], joined;
    typedef kbki_wg_slots<T, Plan, AlongA> Ring;
    // a warpgroup with up to 64 x 128 sums needs no more registers per thread than it has at launch
    constexpr bool Moves = Plan::groups > 1 && (sizeof(T) == 1 || Plan::blocks * Plan::tile_n > 128);
    Ring ring = { kbki_wg_align(kbki_mm_ring), full, empty, 0, 0 };
    kbki_wg_walk<Plan, T> walk(io);
    // the shuffle tells the compiler that `group` is uniform in a warp
    int group = (int)__shfl_sync(~0u, threadIdx.x / 128, 0) - 1;
    if (threadIdx.x == 32) kbki_tma_prefetch(&maps.a), kbki_tma_prefetch(&maps.b);
    if (threadIdx.x == 0) {
        for (int i = 0; i < Plan::stages; i++) kbki_bar_init(full + i, 1), kbki_bar_init(empty + i, Ring::arrivals);
        if (Plan::pair == 1) kbki_bar_init(&joined, 1);
        kbki_bar_ready();
        if (Plan::pair == 1 && io.parts > 1)
            kbki_bar_expect(&joined, (unsigned)(kbki_wg_shares<Plan>(io.parts, (int)blockIdx.x % io.parts) * io.parts) *
                                         64 * 32 * sizeof(float));
    }
    __syncwarp();
    if (Plan::pair > 1) // kbki_bar_ready orders the accesses to the mbarriers
        kbki_cluster_begin(), kbki_cluster_begun();
    else if (group < 0) // the producer warpgroup arrives at the barrier without waiting for the consumers
        kbki_barrier_arrive<Plan::threads>(5);
    else
        kbki_barrier<Plan::threads>(5);
    if (group < 0) {
        if constexpr (Moves) kbki_wg_give<Plan::spare>();
        if (threadIdx.x == 0) kbki_wg_produce<T, Plan, AlongA, AlongB>(maps, walk, ring);
        __syncwarp();
        if (Plan::pair == 1 && io.parts > 1) kbki_cluster_begin(), kbki_cluster_begun();
    } else {
        if constexpr (Moves) kbki_wg_take<Plan::keep>();
        kbki_wg_consume<T, Plan, AlongA, AlongB>(maps, walk, ring, &joined, group);
        if (Plan::pair == 1 && io.parts > 1) {
            if (Plan::turns && group > 0) kbki_cluster_begin(), kbki_cluster_begun(); // as in kbki_wg_send
            kbki_wg_join<T, Plan, !AlongA && AlongB>(io, ring.stages, &joined, walk.next(), group);
        }
    }
#endif
}

#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_wgmma     Matrix product with wgmma: tensor maps and launches of the production kernel.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

// Launches a persistent kernel: the grid has no more CTAs than can be resident at the same time, and each CTA
// loops over work units.
template <class T, class Plan, class Kernel>
const char* kbki_wg_launch(Kernel* kernel, const kbki_wg_maps& maps, kbki_mm<T> io, int split, kbk_stream st) {
    const int64_t units = kbki_wg_tiles(io, Plan::pair) * io.layers;
    size_t bytes = Plan::bytes;
    int slots = 0; // number of clusters that can be resident at the same time
    const char* why = kbki_want_shared(kernel, &bytes);
    if (why || !bytes) return why ? why : "an SM of this GPU has too little shared memory for this kernel";
    cudaLaunchConfig_t cfg = {};
    cudaLaunchAttribute attr = {};
    attr.id = cudaLaunchAttributeClusterDimension;
    const int size = Plan::pair * io.parts;
    attr.val.clusterDim.x = (unsigned)size, attr.val.clusterDim.y = attr.val.clusterDim.z = 1;
    cfg.gridDim = dim3((unsigned)size), cfg.blockDim = dim3(Plan::threads), cfg.dynamicSmemBytes = bytes;
    cfg.stream = st, cfg.attrs = &attr, cfg.numAttrs = 1;
    cudaError_t e = kbki_clusters(kernel, &cfg, &slots);
    if (e != cudaSuccess) return kbki_error(e);
    if (slots < 1) return "this GPU cannot run a cluster of this size";
    io.slices = split == 1 ? kbki_wg_slices(units, kbki_wg_depth(io), slots) : 1;
    io.whole = io.slices > 1 ? units / slots * slots : units;
    int64_t clusters = io.whole ? io.whole : units * io.slices;
    if (clusters > slots && io.parts == 1) clusters = slots;
    cfg.gridDim = dim3((unsigned)(clusters * size));
    // A cluster of one CTA is launched without the cluster attribute, because this attribute makes a launch
    // slower: 6.4 us instead of 5.2 us for M = N = K = 1024.
    cfg.numAttrs = size > 1;
    e = cudaLaunchKernelEx(&cfg, kernel, maps, io);
    return e == cudaSuccess ? kbki_launched() : kbki_error(e);
}
// Makes the tensor maps for `batch` products. Returns NULL on success, otherwise the reason why TMA cannot load
// the operands.
template <class T, class Plan>
const char* kbki_wg_describe(const kbki_mm<T>& io, int layout, int64_t batch, kbki_wg_maps* maps) {
    bool along_a = layout < KBK_TN, along_b = layout == KBK_NT || layout == KBKI_TT;
    const char* why;
    if (!kbki_mm_wide(io.a, io.unit_a) || !kbki_mm_wide(io.b, io.unit_b)) return KBKI_TEXT_TMA;
    const int high_a = kbki_wg_high<T>(along_a, Plan::tile_m, io.along_n ? Plan::pair : 1),
              high_b = kbki_wg_high<T>(along_b, Plan::tile_n, io.along_n ? 1 : Plan::pair);
    why = along_a ? kbki_map_planes(io.a, batch, io.sa, io.m, io.k, io.lda, high_a, &maps->a)
                  : kbki_map_planes(io.a, batch, io.sa, io.k, io.m, io.lda, high_a, &maps->a);
    if (why) return why;
    why = along_b ? kbki_map_planes(io.b, batch, io.sb, io.n, io.k, io.ldb, high_b, &maps->b)
                  : kbki_map_planes(io.b, batch, io.sb, io.k, io.n, io.ldb, high_b, &maps->b);
    if (why || !io.store) return why;
    return layout == KBKI_TT
               ? kbki_map_planes(io.c, batch, io.sc, io.n, io.m, io.ldc, sizeof(T) == 4 ? 32 : 64, &maps->c)
               : kbki_map_planes(io.c, batch, io.sc, io.m, io.n, io.ldc, 64, &maps->c);
}
// Checks the arguments, makes the tensor maps, and launches `batch` products. split, along_n: as in kbki_wg_choice.
template <class T, class Plan>
const char* kbki_wg_run(const kbk_args* a, kbki_mm<T> io, int64_t batch, int split, bool along_n, kbk_stream st) {
    kbki_wg_maps maps = {};
    const int layout = a->s.layout;
    const char* why = kbki_needs_hopper();
    if (why || io.m == 0 || io.n == 0 || batch == 0) return why;
    io.across = kbki_ceil(io.n, Plan::tile_n), io.down = kbki_ceil(io.m, Plan::tile_m), io.layers = batch;
    io.along_n = along_n, io.parts = 1;
    if (split > 1 && Plan::pair == 1) io.parts = (int)(split < kbki_wg_depth(io) ? split : kbki_wg_depth(io));
    io.store = kbki_mm_wide(io.c, io.unit_c);
    if (io.m > 0x7FFFFC00 || io.n > 0x7FFFFC00 || io.k > 0x7FFFFC00) return "a dimension exceeds 2^31 - 1024";
    if (io.k == 0) return kbki_mm_zeros(io, batch, st);
    if (!kbki_grid_ok(kbki_wg_tiles(io, Plan::pair) * Plan::pair * batch)) return KBKI_TEXT_GRID;
    size_t room = kbki_wg_room_bytes(kbki_wg_tiles(io, Plan::pair) * batch, kbki_wg_depth(io), Plan::pair,
                                     Plan::tile_m * Plan::tile_n);
    if (split == 1 && !room) split = 0;
    if (split == 1 && (why = kbki_check_workspace(a, KBK_TICKETS + room)) != NULL) return why;
    if (split == 1) io.part = (float*)((char*)a->workspace + KBK_TICKETS);
    if ((why = kbki_wg_describe<T, Plan>(io, layout, batch, &maps)) != NULL) return why;
    auto run = [&](auto l) {
        return kbki_wg_launch<T, Plan>(kbki_wg_ring_k<T, l.a, l.b, Plan>, maps, io, split, st);
    };
    if constexpr (sizeof(T) == 2) return kbki_mm_by_layout(layout, run);
    if (layout == KBK_NT) return run(kbki_lines<true, true>());
    if constexpr (sizeof(T) == 4 && !Plan::turns)
        if (layout == KBKI_TT) return run(kbki_lines<false, true>());
    return KBKI_TEXT_TMA; // wgmma reads 8-bit and 32-bit operands only if they are K-major
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_thin     Matrix product of up to 64 rows (decoding): limited by the memory bandwidth at which the
                    other matrix is read.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

/*  Multiplies up to 16 rows of A by a K-major matrix B. Reading B once takes nearly all of the time. Both
    operands are loaded from global memory directly into the registers of mma.sync, 16 bytes per thread. The
    16-byte loads permute k: the elements that mma.sync uses as k = 2j, 2j + 1, 2j + 8 and 2j + 9 are neighbours
    in memory. The elements of A and of B are permuted in the same way, so the sums do not change. Several warps
    each compute the products for a part of K, and the sums of the warps are added in a fixed order. */
template <class T, int Tiles> // Tiles: number of tiles of 8 columns per warp
struct kbki_mm_thin_step {
    kbki_pack<T, 8> x[2][2], y[2][Tiles];
    // Loads this thread's elements of A and of B for 64 values of k. If `Whole` is false, only `left` values of k
    // remain from the thread's position on, and elements beyond them are set to zero. ia, ib: offsets, in
    // elements, at which the thread starts to read its rows of A and of B.
    template <bool Whole>
    __device__ __forceinline__ void load(const T* a, const T* b, const unsigned* ia, const unsigned* ib, int left) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            bool in = Whole || 32 * h < left;
#pragma unroll
            for (int t = 0; t < Tiles; t++)
                if (in)
                    y[h][t].load(b + ib[t] + 32 * h);
                else
                    y[h][t].fill(0);
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (in)
                    x[h][i].load(a + ia[i] + 32 * h);
                else
                    x[h][i].fill(0);
        }
    }
    __device__ __forceinline__ void multiply(float (*d)[4]) const {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint4 &above = x[h][0].q, &below = x[h][1].q;
            const uint32_t low[4] = { above.x, below.x, above.y, below.y },
                           high[4] = { above.z, below.z, above.w, below.w };
#pragma unroll
            for (int t = 0; t < Tiles; t++) {
                const uint32_t of[4] = { y[h][t].q.x, y[h][t].q.y, y[h][t].q.z, y[h][t].q.w };
                kbki_mma_fixed<T>(d[t], low, of), kbki_mma_fixed<T>(d[t], high, of + 2);
            }
        }
    }
};
// A CTA has `Across` groups of `Deep` warps. The groups of a CTA compute different columns of C. Each warp of a
// group computes the products for a part of K.
template <class T, int Tiles, int Across, int Deep>
__global__ void __launch_bounds__(Across* Deep * 32) kbki_mm_thin_k(kbki_mm<T> io) {
    constexpr int Columns = Tiles * 8;
    __shared__ float part[Deep][16][Across * Columns];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, j = lane % 4, deep = warp / Across;
    int depth = (int)io.k, k = deep * 64;
    int64_t first = (int64_t)blockIdx.x * (Across * Columns) + warp % Across * Columns;
    unsigned ia[2], ib[Tiles];
    float d[Tiles][4] = {};
    kbki_mm_thin_step<T, Tiles> step[2]; // double buffering: one step is loaded while the other step is multiplied
    auto next = [&](kbki_mm_thin_step<T, Tiles>& of) {
        if (k + 64 <= depth)
            of.template load<true>(io.a, io.b, ia, ib, 0);
        else
            of.template load<false>(io.a, io.b, ia, ib, depth - k - 8 * j);
        k += Deep * 64;
#pragma unroll
        for (int i = 0; i < 2; i++) ia[i] += Deep * 64;
#pragma unroll
        for (int t = 0; t < Tiles; t++) ib[t] += Deep * 64;
    };
#pragma unroll
    for (int i = 0; i < 2; i++) ia[i] = (unsigned)(min((int64_t)(g + 8 * i), io.m - 1) * io.lda) + 8 * j + k;
#pragma unroll
    for (int t = 0; t < Tiles; t++) ib[t] = (unsigned)(min(first + 8 * t + g, io.n - 1) * io.ldb) + 8 * j + k;
    next(step[0]);
#pragma unroll 1
    for (int done = deep * 64; done < depth; done += 2 * Deep * 64) {
        next(step[1]);
        step[0].multiply(d);
        next(step[0]);
        step[1].multiply(d);
    }
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        for (int e = 0; e < 4; e++)
            part[deep][g + e / 2 * 8][warp % Across * Columns + 8 * t + 2 * j + e % 2] = d[t][e];
    __syncthreads();
    for (int i = threadIdx.x; i < 16 * Across * Columns; i += Across * Deep * 32) {
        int row = i / (Across * Columns), column = i % (Across * Columns);
        int64_t n = (int64_t)blockIdx.x * (Across * Columns) + column;
        float sum = 0;
        for (int w = 0; w < Deep; w++) sum += part[w][row][column];
        if (row < io.m && n < io.n) io.c[row * io.ldc + n] = kbki_mm_result(io, sum);
    }
}
/*  Configuration of kbki_mm_stream_k, which multiplies up to Rows rows of A by a large K-major matrix B. By TMA,
    kbki_mm_stream_k keeps more loads in flight than kbki_mm_thin_k. The first operand of wgmma must have 64 rows.
    The matrix B is therefore the first operand, and the result is the transpose of C. A work unit is a block of 64
    columns of C; the CTAs of a cluster split K. Two CTAs run on an SM. */
template <int Rows> struct kbki_mm_stream {
    static constexpr int rows = Rows, stages = Rows < 32 ? 10 : Rows < 64 ? 8 : 6;
    static constexpr int stage_bytes = (64 + Rows) * 128, bytes = 1024 + stages * stage_bytes;
};
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <class Plan, class T>
__device__ __forceinline__ void kbki_mm_stream_in(const kbki_wg_maps& maps, const kbki_mm<T>& io, char* stages,
                                                  uint64_t* full, uint64_t* empty, int first, int end) {
    int slot = 0, parity = 1, size = (int)kbki_cluster_size();
    for (int unit = (int)blockIdx.x / size; unit < io.across; unit += (int)gridDim.x / size)
#pragma unroll 1
        for (int i = first; i < end; i++) {
            char* to = stages + slot * Plan::stage_bytes;
            kbki_bar_wait(empty + slot, parity);
            kbki_bar_expect(full + slot, Plan::stage_bytes);
            kbki_tma_load_3d<false>(to, &maps.b, full + slot, i * 64, unit * 64, 0);
            kbki_tma_load_3d<false>(to + 8192, &maps.a, full + slot, i * 64, 0, 0);
            if (++slot == Plan::stages) slot = 0, parity ^= 1;
        }
}
// Adds the sums of all CTAs of a cluster in a fixed order. CTA i % size adds the sums of rows 8 i to 8 i + 7 of C. The
// sums replace the stages of the pipeline.
template <class Plan, class T>
__device__ __forceinline__ void kbki_mm_stream_join(const kbki_mm<T>& io, const char* stages, uint64_t* joined,
                                                    int unit, const float* d) {
    const int t = threadIdx.x, size = (int)kbki_cluster_size(), rank = (int)kbki_cluster_rank();
    const float4* at = (const float4*)stages + t;
    int64_t n = (int64_t)unit * 64 + t / 32 * 16 + t % 32 / 4;
    kbki_cluster_begin(), kbki_cluster_begun();
    if (t >= 128) return;
#pragma unroll
    for (int i = 0; i < Plan::rows / 8; i++)
        kbki_cluster_send(at + (i / size * size + rank) * 128, joined, (unsigned)(i % size),
                          make_float4(d[i * 4], d[i * 4 + 1], d[i * 4 + 2], d[i * 4 + 3]));
    kbki_bar_wait(joined, 0);
    for (int i = rank; i < Plan::rows / 8; i += size) {
        const float4 v = kbki_cluster_sum(at + i / size * size * 128, size);
        const float sums[4] = { v.x, v.y, v.z, v.w };
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int64_t m = i * 8 + t % 4 * 2 + e % 2, column = n + e / 2 * 8;
            if (m < io.m && column < io.n) io.c[m * io.ldc + column] = kbki_mm_result(io, sums[e]);
        }
    }
}
template <class Plan, class T>
__device__ __forceinline__ void kbki_mm_stream_multiply(const kbki_mm<T>& io, char* stages, uint64_t* full,
                                                        uint64_t* empty, int first, int end, float* d) {
    kbki_wg_operand<true> a, b;
    int slot = 0, parity = 0, size = (int)kbki_cluster_size();
    a.set(stages), b.set(stages + 8192);
    for (int unit = (int)blockIdx.x / size; unit < io.across; unit += (int)gridDim.x / size) {
        int before = 0;
#pragma unroll 1
        for (int i = first; i < end; i++) {
            uint32_t on = (uint32_t)slot * (Plan::stage_bytes / 16);
            kbki_bar_wait(full + slot, parity);
            kbki_wg_fence();
#pragma unroll
            for (int step = 0; step < 4; step++)
                kbki_wgmma<T, Plan::rows>::template shared<0, 0>(d, a.at(on + step * a.step16),
                                                                 b.at(on + step * b.step16), step ? 1 : i - first);
            kbki_wg_commit();
            kbki_wg_wait<1>();
            if (i > first && threadIdx.x == 0) kbki_bar_arrive(empty + before);
            before = slot;
            if (++slot == Plan::stages) slot = 0, parity ^= 1;
        }
        kbki_wg_wait<0>();
        kbki_wg_hold<Plan::rows / 2>(d);
        if (size > 1) return;
        if (threadIdx.x == 0) kbki_bar_arrive(empty + before);
        int64_t column = (int64_t)unit * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int e = 0; e < Plan::rows / 2; e++) {
            int64_t n = column + e / 2 % 2 * 8, m = e / 4 * 8 + threadIdx.x % 4 * 2 + e % 2;
            if (m < io.m && n < io.n) io.c[m * io.ldc + n] = kbki_mm_result(io, d[e]);
        }
    }
}
#endif
// Warp 4 is the TMA producer. Warps 0 to 3 are one consumer warpgroup. A CTA of a cluster computes one work unit.
template <class T, class Plan>
__global__ void __launch_bounds__(160, 2)
    kbki_mm_stream_k(const __grid_constant__ kbki_wg_maps maps, const __grid_constant__ kbki_mm<T> io) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ uint4 kbki_mm_ring[];
    __shared__ uint64_t full[Plan::stages], empty[Plan::stages], joined;
    char* stages = kbki_wg_align(kbki_mm_ring);
    int depth = ((int)io.k + 63) / 64, size = (int)kbki_cluster_size(), rank = (int)kbki_cluster_rank();
    int first = depth * rank / size, end = depth * (rank + 1) / size;
    float d[Plan::rows / 2];
    if (threadIdx.x == 128) {
        for (int i = 0; i < Plan::stages; i++) kbki_bar_init(full + i, 1), kbki_bar_init(empty + i, 1);
        kbki_bar_init(&joined, 1);
        kbki_bar_ready();
        kbki_bar_expect(&joined, (unsigned)((Plan::rows / 8 - rank + size - 1) / size * size) * 2048);
    }
    if (threadIdx.x == 96) kbki_tma_prefetch(&maps.b), kbki_tma_prefetch(&maps.a);
    __syncthreads();
    if (threadIdx.x == 128) kbki_mm_stream_in<Plan>(maps, io, stages, full, empty, first, end);
    if (threadIdx.x < 128) kbki_mm_stream_multiply<Plan>(io, stages, full, empty, first, end, d);
    if (size == 1) return;
    __syncwarp();
    kbki_mm_stream_join<Plan>(io, stages, &joined, (int)blockIdx.x / size, d);
#endif
}
// parts: number of CTAs of a cluster, which split K
template <class T, class Plan> const char* kbki_mm_streamed(const kbk_args* a, int parts, kbk_stream st) {
    kbki_mm<T> io;
    kbki_wg_maps maps = {};
    int64_t ctas, most = (int64_t)kbki_sms() * 2;
    size_t bytes = Plan::bytes;
    const char* why = kbki_needs_hopper();
    if (!why) why = kbki_mm_args(a, Plan::rows, 64, &io, &ctas);
    if (!why) why = kbki_map_planes(io.b, 1, io.n * io.ldb, io.n, io.k, io.ldb, 64, &maps.b);
    if (!why) why = kbki_map_planes(io.a, 1, io.m * io.lda, io.m, io.k, io.lda, Plan::rows, &maps.a);
    if (!why) why = kbki_want_shared(kbki_mm_stream_k<T, Plan>, &bytes);
    if (why || !bytes) return why ? why : "an SM of this GPU has too little shared memory for this kernel";
    cudaLaunchConfig_t cfg = {};
    cudaLaunchAttribute attr = {};
    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim.x = (unsigned)parts, attr.val.clusterDim.y = attr.val.clusterDim.z = 1;
    cfg.gridDim = dim3((unsigned)(parts > 1 ? ctas * parts : ctas < most ? ctas : most)), cfg.blockDim = dim3(160);
    cfg.dynamicSmemBytes = bytes, cfg.stream = st, cfg.attrs = &attr, cfg.numAttrs = parts > 1;
    cudaError_t e = cudaLaunchKernelEx(&cfg, kbki_mm_stream_k<T, Plan>, maps, io);
    return e == cudaSuccess ? kbki_launched() : kbki_error(e);
}
template <class T, int Tiles, int Across, int Deep>
const char* kbki_mm_thin_run(const kbk_args* a, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 16, Tiles * 8 * Across, &io, &ctas);
    if (why || ctas == 0) return why;
    kbki_mm_thin_k<T, Tiles, Across, Deep><<<(unsigned)ctas, Across * Deep * 32, 0, st>>>(io);
    return kbki_launched();
}
// Multiplies up to 64 rows. Up to 16 rows, the number of columns of a CTA depends on the number of columns of C, so
// that every SM has work. More rows or columns are loaded by TMA, and clusters split K if the columns alone would
// leave SMs idle.
template <class T> const char* kbki_mm_thin(const kbk_args* a, kbk_stream st) {
    const int64_t sms = kbki_sms(), blocks = kbki_ceil(a->s.cols, 64);
    int parts = 1;
    while (parts < KBKI_CLUSTER && 2 * parts * blocks <= (parts > 1 ? sms - 12 : sms) && a->s.k >= 256 * parts)
        parts *= 2;
    if (a->s.rows > 32) return kbki_mm_streamed<T, kbki_mm_stream<64>>(a, parts, st);
    if (a->s.rows > 16) return kbki_mm_streamed<T, kbki_mm_stream<32>>(a, parts, st);
    if (a->s.cols <= 8 * sms) return kbki_mm_thin_run<T, 1, 1, 16>(a, st);
    if (a->s.cols <= 16 * sms) return kbki_mm_thin_run<T, 2, 1, 16>(a, st);
    if (a->s.cols <= 32 * sms) return kbki_mm_thin_run<T, 2, 2, 8>(a, st);
    return kbki_mm_streamed<T, kbki_mm_stream<16>>(a, parts, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_select     Matrix products with wgmma, configuration chosen by shape: rungs 19 and 20 of matmul, rungs 3
                      and 4 of bmm.
-----------------------------------------------------------------*/

/*  matmul fwd, continued: f16 and bf16 on compute capability 9.0 --------------------------------------------
    19 select    the configuration (tile shape, cluster, schedule) with the least predicted time, or the one that
                 kbk_tune measured as the fastest. If the last wave of tiles leaves at least half of the SMs idle
                 (wave quantization), its tiles may be split along K. The CTA with the last slice of a tile adds the
                 sums of the other slices (workspace: 4 bytes per result of a tile and SM). If there are few tiles,
                 the CTAs of a cluster compute parts of K of a tile, and exchange their sums by st.async. Stream-K
                 (Osama et al. 2023) balances any number of tiles, but its pipeline stages take 1.3 to 1.4 times as
                 long (fitted to times on an H100). No counter shows why; the presumed reason is that CTAs of
                 stream-K work on different parts of K at the same time.
                 Products of up to 32 rows (N <= 3840: up to 64) in layout NT: >>matmul_thin. Rows that are not
                 16-byte aligned are copied first (workspace: as for rung 18)
    bound by     arithmetic, like rungs 11 to 16; a product of up to 64 rows and a large matrix by memory bandwidth */

// Table of the configurations of the production kernel. The columns of the table are: name; bytes per element; the
// parameters of kbki_wg_plan; the clock cycles of a pipeline stage, if its loads take no longer than its products.
// clang-format off
#define KBKI_WG_TABLE(way)                                  \
    way(wide,       2, 128, 256, 2,  4, 2, 0,  940)         \
    way(square,     2, 192, 192, 3,  4, 2, 0, 1037)         \
    way(tall,       2, 256, 192, 2,  3, 2, 0, 1391)         \
    way(tall_160,   2, 256, 160, 2,  3, 2, 0, 1205)         \
    way(wide_192,   2, 128, 192, 2,  4, 2, 0,  720)         \
    way(tall_128,   2, 192, 128, 3,  4, 2, 0,  715)         \
    way(mid,        2, 128, 128, 2,  6, 2, 0,  577)         \
    way(turns,      2,  64, 128, 2,  8, 2, 1,  274)         \
    way(low,        2,  64, 128, 2,  8, 1, 1,    0)         \
    way(small,      2,  64,  64, 1, 12, 2, 0,   98)         \
    way(tf32_one,   4, 128, 256, 2,  4, 1, 0, 1150)         \
    way(tf32_192,   4, 128, 192, 2,  4, 1, 0,  890)         \
    way(tf32_tall,  4, 128,  64, 2,  8, 1, 0,  540)         \
    way(tf32_small, 4,  64,  64, 1, 12, 1, 0,  280)         \
    way(e4m3_big,   1, 256, 128, 2,  4, 1, 0, 1210)         \
    way(e4m3_mid,   1, 128, 128, 2,  6, 1, 0,  640)         \
    way(e4m3_small, 1,  64,  64, 1, 12, 1, 0,  260)
// clang-format on
#define KBKI_WG_ID(name, ...) KBKI_WG_##name,
enum { KBKI_WG_TABLE(KBKI_WG_ID) KBKI_WG_WAYS };
typedef struct kbki_wg_way {
    int elem, tile_m, tile_n, pair, turns;
    double stage;
} kbki_wg_way;
typedef struct kbki_wg_choice {
    // way: index of a configuration; split: 1 if the tiles of the last wave are split along K; above 1: number of
    // CTAs of a cluster that compute parts of K of the same tile
    int way, split;
    int along_n;    // 1 if the CTAs of a cluster share a tile of A and are neighbours along N
    double clocks;  // predicted time in clock cycles; in a tuned choice, the measured time in nanoseconds
} kbki_wg_choice;
#define KBKI_WG_CHOICES (18 * KBKI_WG_WAYS) // 9 values of `split`, 2 of `along_n`
#define KBKI_WG_ROW(name, elem, m, n, groups, stages, pair, turns, stage) { elem, m, n, pair, turns, stage },
KBK_FN kbki_wg_way kbki_wg_way_of(int way) {
    static const kbki_wg_way ways[KBKI_WG_WAYS] = { KBKI_WG_TABLE(KBKI_WG_ROW) };
    return ways[way];
}
// Writes the name of a choice, for example 64x128x1p: rows x columns of a tile x CTAs that share an operand, then
// p if the schedule is ping-pong, and n if these CTAs are neighbours along N. Returns `name`.
KBK_FN const char* kbki_wg_name(kbki_wg_choice by, char* name) {
    const kbki_wg_way w = kbki_wg_way_of(by.way);
    snprintf(name, 24, "%dx%dx%d%s%s", w.tile_m, w.tile_n, w.pair, w.turns ? "p" : "", by.along_n ? "n" : "");
    return name;
}
// Returns the number of work units of a batch: tiles, or pairs of tiles if two CTAs share an operand.
KBK_FN int64_t kbki_wg_units(const kbk_shape* s, kbki_wg_choice by, int64_t batch) {
    const kbki_wg_way w = kbki_wg_way_of(by.way);
    const int64_t down = (s->rows + w.tile_m - 1) / w.tile_m, across = (s->cols + w.tile_n - 1) / w.tile_n;
    return ((by.along_n ? across : down) + w.pair - 1) / w.pair * (by.along_n ? down : across) * batch;
}
// Returns the number of pipeline stages that cover K.
KBK_FN int64_t kbki_wg_stages(const kbk_shape* s, int elem) { return (s->k * elem + 127) / 128; }
// Returns whether the rows of A (b = 0) or of B (b = 1) are not aligned to 32 bytes, the size of a memory sector.
// TMA loads rows that are not aligned to 32 bytes at a lower rate.
KBK_FN int kbki_wg_off(const kbk_shape* s, int elem, int b) {
    int64_t line = s->k;
    if (!b && (s->layout == KBK_TN || s->layout == KBKI_TT)) line = s->rows;
    if (b && (s->layout == KBK_NN || s->layout == KBK_TN)) line = s->cols;
    return line * elem % 32 != 0;
}
/*  Predicts the time of a product, in clock cycles of an SM. Returns infinity if the configuration cannot
    compute the product. The model assumes that an SM computes one tile per wave. The time of a stage is the
    norm of order 4 of the time of its loads and the time of its products. The time of a tile is the time of its
    pipeline stages, plus 810 cycles for the first loads, plus 2500 cycles per 32768 results for the
    epilogue; the ping-pong schedule multiplies the latter two by 1.1. An SM loads 63 bytes per cycle from L2, or
    33 bytes if rows are not aligned to 32 bytes. Split-K of the last wave costs 3700 cycles, plus 0.021 cycles for
    each byte of the partial sums of all slices of a tile. A tile that a cluster computes costs 4500 cycles. DRAM
    moves 1600 bytes per cycle for all SMs together. The time of the computation overlaps with the time of the DRAM
    traffic, except for 0.41 of the shorter time. A launch takes 2000 cycles; CTAs that share an operand add 880
    cycles. All constants were fitted to measured times of bf16 products on an H100. */
KBK_FN double kbki_wg_clocks(const kbk_shape* s, int elem, int64_t batch, int sms, kbki_wg_choice by) {
    const kbki_wg_way w = kbki_wg_way_of(by.way);
    const int64_t units = kbki_wg_units(s, by, batch), stages = kbki_wg_stages(s, elem), slots = sms / w.pair;
    const int64_t parts = by.split > 1 ? by.split : 1;
    const double inf = (double)INFINITY;
    if (w.elem != elem || slots < 1 || (by.along_n && w.pair == 1)) return inf;
    // a cluster is in one GPC, so that clusters of three or more CTAs leave some SMs idle, those of 5 or 7 too many
    if (parts > 1 && (w.pair > 1 || stages < 2 * parts || units * parts > (parts > 2 ? sms - 15 : sms))) return inf;
    if (parts == 5 || parts == 7) return inf;
    const int64_t slices = by.split == 1 ? kbki_wg_slices(units, stages, slots) : parts;
    if (by.split == 1 && slices == 1) return inf;
    const double m = (double)s->rows, n = (double)s->cols, k = (double)stages * 128, results = w.tile_m * w.tile_n;
    const double a = 128 * (m < w.tile_m ? m : w.tile_m) / (by.along_n ? w.pair : 1);
    const double b = 128 * (n < w.tile_n ? n : w.tile_n) / (by.along_n ? 1 : w.pair);
    const double loads = a / (kbki_wg_off(s, elem, 0) ? 33 : 63) + b / (kbki_wg_off(s, elem, 1) ? 33 : 63);
    const double stage = sqrt(sqrt(pow(loads, 4) + pow(w.stage, 4)));
    const double end = (810 + 2500 / 32768.0 * results) * (w.turns ? 1.1 : 1);
    const double waves = (double)(parts > 1 ? 0 : units / slots);
    const double last = parts > 1 || units % slots ? (double)((stages + slices - 1) / slices) : 0;
    const double join = by.split > 1    ? 4500
                        : by.split == 1 ? 3700 + 0.021 * 4 * (double)slices * results
                                        : 0;
    const double work = waves * ((double)stages * stage + end) + (last > 0 ? last * stage + end : 0) + join;
    const double memory = ((m + n) * k + m * n * (elem == 1 ? 2 : elem)) * (double)batch / 1600;
    return (work > memory ? work + 0.41 * memory : memory + 0.41 * work) + 2000 + (w.pair > 1 ? 880 : 0);
}
// Writes to `best` the n choices with the shortest predicted times, in ascending order of time. Returns the number
// of choices written, which is less than n if fewer configurations can compute the product.
KBK_FN int kbki_wg_choose(const kbk_shape* s, int elem, int64_t batch, int sms, kbki_wg_choice* best, int n) {
    int many = 0;
    for (int i = 0; i < KBKI_WG_CHOICES; i++) {
        kbki_wg_choice by = { i / 18, i % 9, i / 9 % 2, 0 };
        by.clocks = kbki_wg_clocks(s, elem, batch, sms, by);
        if (!(by.clocks < (double)INFINITY) || (many == n && by.clocks >= best[n - 1].clocks)) continue;
        int at = many < n ? many++ : n - 1;
        for (; at > 0 && best[at - 1].clocks > by.clocks; at--) best[at] = best[at - 1];
        best[at] = by;
    }
    return many;
}
// Returns the bytes of workspace that split-K of the last wave needs with the most demanding configuration; these
// bytes suffice for every tuned choice.
KBK_FN size_t kbki_select_pieces(const kbk_shape* s, int elem, int64_t batch) {
    size_t most = 0;
    for (int i = 0; i < 2 * KBKI_WG_WAYS && s->rows > 0 && s->cols > 0 && s->k > 0; i++) {
        const kbki_wg_choice by = { i / 2, 1, i % 2, 0 };
        const kbki_wg_way w = kbki_wg_way_of(by.way);
        size_t bytes =
            kbki_wg_room_bytes(kbki_wg_units(s, by, batch), kbki_wg_stages(s, elem), w.pair, w.tile_m * w.tile_n);
        if (w.elem == elem && bytes > most) most = bytes;
    }
    return most;
}
// kbki_tf32_copy returns the bytes of the transposed copy of A (b = 0) or of B (b = 1) that variant `tf32` needs
// for all products of a batch. If the operand is not copied, kbki_tf32_copy returns 0 bytes. kbki_scratch_tf32
// returns the bytes of the complete workspace.
KBK_FN size_t kbki_tf32_copy(const kbk_shape* s, int64_t batch, int b) {
    int turn = b ? s->layout != KBK_NT && s->cols % 4 : s->layout == KBK_TN;
    return turn ? ((size_t)(batch * (b ? s->cols : s->rows) * s->k) * sizeof(float) + 255) / 256 * 256 : 0;
}
KBK_FN size_t kbki_scratch_tf32(const kbk_shape* s, int64_t batch) {
    kbk_shape f32 = *s;
    int turned = s->layout != KBK_NT && s->cols % 4 == 0;
    f32.layout = turned ? KBKI_TT : KBK_NT;
    if (turned) f32.rows = s->cols, f32.cols = s->rows;
    size_t bytes = kbki_tf32_copy(s, batch, 0) + kbki_tf32_copy(s, batch, 1) + kbki_select_pieces(&f32, 4, batch);
    return bytes ? bytes + KBK_TICKETS : 0;
}
/*  Tuned choices of configurations. kbk_tune (>>registry) appends one line per shape to a text file, for example
        kbk_tuned 1 2 NT 1024 1024 4096 1 128x192x2 1 11920 NVIDIA H100 80GB HBM3
    The fields of a line of the file are: version of the format; bytes per element; layout; M; N; K; batch;
    configuration (kbki_wg_name); `split` of kbki_wg_choice; nanoseconds; name of the GPU. If several lines have the
    same shape, element size and GPU, the last line is used. */
#define KBKI_TUNED_VERSION 1 // incremented when the name of a configuration denotes a different kernel
typedef struct kbki_tuned {
    kbk_shape s; // batch, rows, cols, k and layout are set; all other fields are 0
    int elem;    // bytes per element
    int gpu;     // hash of the name of the GPU
    kbki_wg_choice by;
} kbki_tuned;
typedef struct kbki_tuned_list {
    kbki_tuned* of; // array of tuned choices, allocated by realloc
    int64_t count;
} kbki_tuned_list;
KBK_FN const char* kbki_layout_name(int layout) {
    return layout == KBK_NN ? "NN" : layout == KBK_NT ? "NT" : layout == KBK_TN ? "TN" : "TT";
}
KBK_FN int kbki_tuned_gpu(const char* name) { // FNV-1a hash, 30 bits
    uint32_t hash = 2166136261u;
    for (; *name && *name != '\n'; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return (int)(hash >> 2);
}
KBK_FN kbki_tuned kbki_tuned_key(const kbk_shape* s, int elem, int64_t batch, int gpu) {
    kbki_tuned key;
    memset(&key, 0, sizeof key);
    key.s.batch = batch, key.s.rows = s->rows, key.s.cols = s->cols, key.s.k = s->k, key.s.layout = s->layout;
    key.elem = elem, key.gpu = gpu;
    return key;
}
KBK_FN kbki_tuned* kbki_tuned_find(const kbki_tuned_list* list, const kbki_tuned* key) {
    for (int64_t i = 0; i < list->count; i++) {
        kbki_tuned* t = &list->of[i];
        if (t->s.rows == key->s.rows && t->s.cols == key->s.cols && t->s.k == key->s.k &&
            t->s.batch == key->s.batch && t->s.layout == key->s.layout && t->elem == key->elem && t->gpu == key->gpu)
            return t;
    }
    return NULL;
}
// Adds an entry to the list, or replaces the entry with the same shape, element size and GPU. Returns NULL on
// success, otherwise the reason why the entry was not added.
KBK_FN const char* kbki_tuned_add(kbki_tuned_list* list, const kbki_tuned* t) {
    kbki_tuned* at = kbki_tuned_find(list, t);
    // the array is enlarged when its number of entries is 0 or a power of two; at any other number, it has a free
    // entry
    if (!at && (list->count & (list->count - 1)) == 0) {
        kbki_tuned* more = (kbki_tuned*)realloc(list->of, 2 * (size_t)(list->count + 1) * sizeof *more);
        if (!more) return "out of memory for tuned choices";
        list->of = more;
    }
    *(at ? at : &list->of[list->count++]) = *t;
    return NULL;
}
// Parses a line of a file of tuned choices. Returns NULL on success, otherwise the reason why the line cannot be
// used.
KBK_FN const char* kbki_tuned_parse(const char* line, kbki_tuned* t) {
    int version = 0, at = 0, name = 0, elem = 0, split = 0, layout = KBKI_TT;
    char in[4], tile[24], known[24];
    long long m = 0, n = 0, k = 0, batch = 0, ns = 0;
    if (!strchr(line, '\n')) return "the line is incomplete";
    if (sscanf(line, "kbk_tuned %d%n", &version, &at) < 1) return "kbk_tune did not write this line";
    if (version != KBKI_TUNED_VERSION) return "the line was written by another version of the library";
    if (sscanf(line + at, "%d %3s %lld %lld %lld %lld %23s %d %lld %n", &elem, in, &m, &n, &k, &batch, tile, &split,
               &ns, &name) < 9 ||
        !name || !line[at + name])
        return "a field is missing";
    while (layout >= KBK_NN && strcmp(in, kbki_layout_name(layout)) != 0) layout--;
    kbki_wg_choice by = { 0, split, 0, (double)ns };
    for (; by.way < KBKI_WG_WAYS; by.way += by.along_n, by.along_n ^= 1)
        if (kbki_wg_way_of(by.way).elem == elem && strcmp(kbki_wg_name(by, known), tile) == 0) break;
    if (layout < KBK_NN || by.way == KBKI_WG_WAYS || m < 1 || n < 1 || k < 1 || batch < 1 || ns < 1)
        return "a field has an invalid value";
    kbk_shape s;
    memset(&s, 0, sizeof s);
    s.rows = m, s.cols = n, s.k = k, s.layout = layout;
    *t = kbki_tuned_key(&s, elem, batch, kbki_tuned_gpu(line + at + name));
    t->by = by;
    return kbki_wg_clocks(&s, elem, batch, KBKI_WG_SMS, t->by) < (double)INFINITY
               ? NULL
               : "the configuration cannot compute this shape";
}
// Adds the entries of a file of tuned choices to the list. Returns NULL if the file could be read and no line was
// skipped. If the file cannot be read or a line is skipped, writes the first reason to `note` and returns `note`.
KBK_FN const char* kbki_tuned_read(kbki_tuned_list* list, const char* path, char* note, size_t size) {
    char line[512];
    int number = 0, skipped = 0, part = 0; // part: whether the last fgets() stopped before the end of a line
    FILE* f = fopen(path, "r");
    if (!f) return snprintf(note, size, "%s: the file of tuned choices cannot be read", path), note;
    while (fgets(line, sizeof line, f)) {
        kbki_tuned t;
        const int again = part;
        part = !strchr(line, '\n');
        if (again) continue;
        number++;
        if (line[0] == '\n' || line[0] == '#') continue;
        const char* why = kbki_tuned_parse(line, &t);
        if (!why) why = kbki_tuned_add(list, &t);
        if (why && skipped++ == 0) snprintf(note, size, "%s: line %d is skipped: %s", path, number, why);
    }
    fclose(f);
    return skipped ? note : NULL;
}
// Appends one tuned choice to a file. The line is written by a single write, so that several processes may append
// to the same file. If the file ends with an incomplete line, a newline is written first. Returns NULL on success,
// otherwise the reason why the line was not written.
KBK_FN const char* kbki_tuned_write(const char* path, const kbki_tuned* t, const char* gpu) {
    char name[24], line[512];
    FILE* f = fopen(path, "r");
    int complete = !f || fseek(f, -1, SEEK_END) != 0 || fgetc(f) == '\n';
    if (f) fclose(f);
    int n = snprintf(line, sizeof line, "%skbk_tuned %d %d %s %lld %lld %lld %lld %s %d %.0f %s\n",
                     complete ? "" : "\n", KBKI_TUNED_VERSION, t->elem, kbki_layout_name(t->s.layout),
                     (long long)t->s.rows, (long long)t->s.cols, (long long)t->s.k, (long long)t->s.batch,
                     kbki_wg_name(t->by, name), t->by.split, t->by.clocks, gpu);
    f = n < (int)sizeof line ? fopen(path, "a") : NULL;
    if (!f) return "the file of tuned choices cannot be written";
    setvbuf(f, NULL, _IONBF, 0);
    size_t written = fwrite(line, 1, (size_t)n, f);
    return fclose(f) == 0 && written == (size_t)n ? NULL : "the file of tuned choices cannot be written";
}

#ifdef __CUDACC__
// clang-format off
#define KBKI_WG_CASE(name, elem, m, n, groups, stages, pair, turns, stage)                                           \
    if constexpr (sizeof(T) == elem)                                                                                 \
        if (by.way == KBKI_WG_##name)                                                                                \
            return kbki_wg_run<T, kbki_wg_plan<m, n, groups, stages, pair, turns>>(a, io, batch, by.split,           \
                                                                                   by.along_n, st);
// clang-format on
template <class T>
const char* kbki_wg_select(const kbk_args* a, const kbki_mm<T>& io, int64_t batch, kbki_wg_choice by, kbk_stream st) {
    KBKI_WG_TABLE(KBKI_WG_CASE)
    return "unknown configuration";
}
// Rewrites the product C = A B as C' = B' A' (X': transpose of X).
template <class T> void kbki_wg_turn(kbk_args* a, kbki_mm<T>* io) {
    kbki_mm<T> to = *io;
    to.a = io->b, to.lda = io->ldb, to.sa = io->sb, to.unit_a = io->unit_b, to.m = io->n;
    to.b = io->a, to.ldb = io->lda, to.sb = io->sa, to.unit_b = io->unit_a, to.n = io->m;
    *io = to, a->s.rows = to.m, a->s.cols = to.n, a->s.layout = KBKI_TT;
}
// Returns the list of tuned choices of configurations of this process. The first call reads the file that the
// environment variable KBK_TUNED names.
KBK_FN kbki_tuned_list* kbki_tuned_all(void) {
    static kbki_tuned_list all;
    static const bool loaded = [] {
        char note[256];
        const char *path = getenv("KBK_TUNED"), *why = path ? kbki_tuned_read(&all, path, note, sizeof note) : NULL;
        if (why) fprintf(stderr, "KBK_TUNED: %s\n", why);
        return true;
    }();
    return (void)loaded, &all;
}
// Adds the entries of a file of tuned choices to the choices of this process. Returns NULL if the file could be
// read and no line was skipped. If the file cannot be read or a line is skipped, writes the first reason to `note`
// and returns `note`.
KBK_FN const char* kbk_tuned_load(const char* path, char* note, size_t size) {
    return kbki_tuned_read(kbki_tuned_all(), path, note, size);
}
// Returns the address of a thread-local pointer to a kbki_tuned. The pointer is NULL unless kbk_tune is launching
// a kernel. The launch uses the configuration in the member `by` of the kbki_tuned, and writes its shape, element
// size and GPU to the other members. If by.way is -1, the launch chooses a configuration as if kbk_tune were not
// running.
KBK_FN kbki_tuned** kbki_tuning(void) {
    static thread_local kbki_tuned* now;
    return &now;
}
// Returns the configuration for a launch of this shape on the current GPU: the one that kbk_tune is measuring,
// else a tuned choice, else the one with the shortest predicted time.
KBK_FN kbki_wg_choice kbki_wg_here(const kbk_shape* s, int elem, int64_t batch) {
    int gpu = 0;
    kbki_once(NULL, KBKI_ATTRIBUTE, 1, 0, 0, &gpu, [](int* to) {
        cudaDeviceProp p;
        int device = 0;
        cudaError_t e = cudaGetDevice(&device);
        if (e == cudaSuccess) e = cudaGetDeviceProperties(&p, device);
        if (e == cudaSuccess) *to = kbki_tuned_gpu(p.name);
        return e;
    });
    kbki_tuned key = kbki_tuned_key(s, elem, batch, gpu), *now = *kbki_tuning();
    const kbki_tuned* known = kbki_tuned_find(kbki_tuned_all(), &key);
    if (now) key.by = now->by, *now = key;
    if (now && now->by.way >= 0) return now->by;
    if (known) return known->by;
    kbki_wg_choose(s, elem, batch, kbki_sms(), &key.by, 1);
    return key.by;
}
// Launches the configuration that is chosen for the current GPU. The workspace must suffice for every
// configuration, because the choice may differ between processes.
template <class T>
const char* kbki_wg_chosen(const kbk_args* a, const kbki_mm<T>& io, int64_t batch, kbk_stream st) {
    size_t room = kbki_select_pieces(&a->s, (int)sizeof(T), batch);
    const char* why = room ? kbki_check_workspace(a, KBK_TICKETS + room) : NULL;
    return why ? why : kbki_wg_select(a, io, batch, kbki_wg_here(&a->s, (int)sizeof(T), batch), st);
}
// Launches a batch of products of 16-bit types. An operand whose row length is not a multiple of 16 bytes is
// copied to padded rows first. If the row length is a multiple of 16 bytes, but the base address is not, TMA
// cannot load the operand, and variant `mma` (rung 17) computes the product.
template <class T> const char* kbki_select(const kbk_args* a, int64_t batch, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    kbk_args rest = *a;
    const char* why = kbki_mm_args(a, 64, 64, &io, &ctas);
    if (why || ctas == 0 || batch == 0 || (why = kbki_needs_hopper()) != NULL) return why;
    if (io.k && !(kbki_mm_alignable(io.a, io.unit_a) && kbki_mm_alignable(io.b, io.unit_b)))
        return kbki_mma<T>(a, batch, st);
    if ((why = kbki_mma_align_both(&rest, batch, &io, st)) != NULL) return why;
    return kbki_wg_chosen(&rest, io, batch, st);
}
template <class T> const char* kbk_matmul_fwd_select(const kbk_args* a, kbk_stream st) {
    if constexpr (sizeof(T) == 2) {
        const kbk_shape* s = &a->s;
        kbki_mm<T> io;
        int64_t ctas;
        const char* why = kbki_mm_args(a, 64, 64, &io, &ctas);
        if (why || ctas == 0) return why;
        bool thin = s->layout == KBK_NT && s->rows <= (s->cols <= 3840 ? 64 : 32) && s->cols >= 256 && s->k >= 256 &&
                    s->cols < ((int64_t)1 << 31) / io.ldb && io.lda < 1 << 27;
        bool wide = kbki_mm_wide(io.a, io.unit_a) && kbki_mm_wide(io.b, io.unit_b);
        if (thin && wide) {
            // This kernel uses no workspace. The size of the workspace is checked nevertheless, so that the
            // required size does not depend on the alignment of the operands.
            size_t room = kbki_scratch_matmul(s, (int)sizeof(T), KBKI_WORD_select);
            why = kbki_needs_hopper();
            if (!why && room) why = kbki_check_workspace(a, room);
            return why ? why : kbki_mm_thin<T>(a, st);
        }
    }
    return kbki_select<T>(a, 1, st);
}

/*  matmul fwd, continued: f32 on compute capability 9.0 -----------------------------------------------------
    20 tf32      rung 19 for f32; the tensor cores use the first 10 of 23 mantissa bits. wgmma reads 32-bit operands
                 from shared memory only if they are K-major. In layouts NN and TN the product is therefore C' = B' A',
                 and threads load B' into registers. In layout TN, A is first transposed into the workspace
                 (4*M*K bytes). If the rows of B are not 16-byte aligned, B is transposed as well (4*K*N bytes)
    check        norm-wise 1.5e-3; per element 6 ulp of 10-bit mantissas, of the expected size, as for matmul */
#define KBKI_TEXT_TF32 "tf32 needs K to be a multiple of 4, and A and B aligned to 16 bytes: use warptile"
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/*  Operands of a tf32 product whose first operand is not K-major. In shared memory, the first operand consists
    of panels. A panel has one line of 32 elements for each of 32 values of k. wgmma reads 32-bit operands only
    if they are K-major, so threads load the first operand into registers. Each lane loads the elements of two
    values of k at a time. Lanes with an odd index load the two elements in reverse order, which avoids bank
    conflicts. */
template <class Plan> struct kbki_wg_factors<float, Plan, false, true> {
    static_assert(Plan::blocks == 1 && !Plan::turns, "a warpgroup has 64 rows and waits for each stage");
    kbki_wg_operand<true> b;
    const char* first; // address of the element that this lane loads first
    // second: offset from `first`, in bytes, of the element for the lane's second value of k; down: offset from
    // `first`, in bytes, of the element eight rows further down
    int second, down;
    bool odd;
    __device__ __forceinline__ void set(const char* stages, int group) {
        int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, k = t % 4 + t % 2 * 4;
        auto place = [&](int line) { return line * 128 + (row % 32 / 4 ^ line) * 16; };
        odd = t % 2, down = ((row % 32 / 4 ^ k) & 2) ? -32 : 32, b.set(stages + Plan::a_bytes);
        first = stages + group * 8192 + row / 32 * 4096 + row % 4 * 4 + place(k), second = place(k ^ 4) - place(k);
    }
    __device__ __forceinline__ void multiply(int slot, int keep, float (*d)[Plan::tile_n / 2]) const {
        uint32_t on = (uint32_t)slot * (Plan::stage_bytes / 16), x[4][4];
        const char* at = first + slot * Plan::stage_bytes;
#pragma unroll
        for (int step = 0; step < 4; step++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const char* from = at + step * 1024 + half * down;
                uint32_t u = *(const uint32_t*)from, v = *(const uint32_t*)(from + second);
                x[step][half] = odd ? v : u, x[step][2 + half] = odd ? u : v;
            }
        kbki_wg_fence();
#pragma unroll
        for (int step = 0; step < 4; step++)
            kbki_wgmma<float, Plan::tile_n>::registers(d[0], x[step], b.at(on + step * b.step16), step ? 1 : keep);
        kbki_wg_commit();
    }
};
#endif
// Transposes operand A (b = 0) or operand B (b = 1) of all products of a batch by one launch. The transposed
// matrices are side by side: row i of the result consists of row i (K elements) of each transposed matrix.
template <class T>
const char* kbki_tf32_turn(kbk_args* a, const kbk_shape* s, int64_t batch, int b, kbki_mm<T>* io, kbk_stream st) {
    kbk_args turn = {};
    size_t copy = kbki_tf32_copy(s, batch, b);
    if (!copy) return NULL;
    if (s->strides[b][0] || s->strides[b][1]) return "tf32 transposes only contiguous operands: use regblock";
    turn.s.rows = batch * io->k, turn.s.cols = b ? io->n : io->m, turn.in[0] = a->in[b];
    turn.out[0] = (char*)a->workspace + KBK_TICKETS;
    (b ? io->b : io->a) = (const T*)turn.out[0], (b ? io->ldb : io->lda) = batch * io->k,
                 (b ? io->sb : io->sa) = (b ? io->unit_b : io->unit_a) = io->k;
    a->workspace = (char*)a->workspace + copy, a->workspace_bytes -= copy;
    return kbk_transpose_run_vec<T>(&turn, st);
}
// Rewrites a tf32 product into a form that wgmma supports, and stores this form in *rest and *io. If A is not
// K-major, A is transposed. If B is not K-major and TMA can load B, the product becomes C' = B' A' (X': transpose
// of X), and threads load B' into registers. If TMA cannot load B, B is transposed.
template <class T>
const char* kbki_tf32_ready(const kbk_args* a, int64_t batch, kbk_args* rest, kbki_mm<T>* io, kbk_stream st) {
    size_t bytes = kbki_scratch_tf32(&a->s, batch);
    const char* why = kbki_needs_hopper();
    *rest = *a, rest->s.layout = KBK_NT;
    if (why) return why;
    if (io->k && (io->k % 4 || !kbki_aligned(io->a, 16) || !kbki_aligned(io->b, 16))) return KBKI_TEXT_TF32;
    if (bytes && (why = kbki_check_workspace(a, bytes)) != NULL) return why;
    for (int i = 0; i < 2; i++)
        if ((why = kbki_tf32_turn(rest, &a->s, batch, i, io, st)) != NULL) return why;
    if (a->s.layout == KBK_NT || a->s.cols % 4 || io->k == 0) return NULL;
    kbki_wg_turn(rest, io);
    return NULL;
}
template <class T> const char* kbki_tf32(const kbk_args* a, int64_t batch, kbk_stream st) {
    kbk_args rest;
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 64, 64, &io, &ctas);
    if (why || ctas == 0 || batch == 0) return why;
    why = kbki_tf32_ready(a, batch, &rest, &io, st);
    return why ? why : kbki_wg_chosen(&rest, io, batch, st);
}
template <class T> const char* kbk_matmul_fwd_tf32(const kbk_args* a, kbk_stream st) {
    return kbki_tf32<T>(a, 1, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>matmul_vendor     Matrix product by cuBLAS, for comparison: rung 99 of matmul and bmm; needs KBK_CUBLAS.
-----------------------------------------------------------------*/
#if defined(KBK_CUBLAS) && defined(__CUDACC__)
// cuBLAS is loaded by dlopen at its first use, because linking it would add about 60 ms to the start of every
// program.
struct kbki_cublas {
    cublasStatus_t (*create)(cublasHandle_t*);
    cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t);
    cublasStatus_t (*set_workspace)(cublasHandle_t, void*, size_t);
    cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                           const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                           cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
    cublasStatus_t (*batched)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                              const void*, cudaDataType, int, long long, const void*, cudaDataType, int, long long,
                              const void*, void*, cudaDataType, int, long long, int, cublasComputeType_t,
                              cublasGemmAlgo_t);
    cublasHandle_t handle[16]; // one handle per device
    bool opened;
};
KBK_FN void kbki_cublas_open(kbki_cublas* c) {
    static const char* const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so" };
    void* lib = NULL;
    for (int i = 0; i < 4 && !lib; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    c->opened = true;
    if (!lib) return;
    *(void**)&c->set_stream = dlsym(lib, "cublasSetStream_v2");
    *(void**)&c->set_workspace = dlsym(lib, "cublasSetWorkspace_v2");
    *(void**)&c->gemm = dlsym(lib, "cublasGemmEx");
    *(void**)&c->batched = dlsym(lib, "cublasGemmStridedBatchedEx");
    if (c->set_stream && c->set_workspace && c->gemm && c->batched)
        *(void**)&c->create = dlsym(lib, "cublasCreate_v2");
}
/*  Sets *h to a cuBLAS handle for the current device, with the caller's stream and workspace. Because the
    caller provides the workspace, cuBLAS calls allocate nothing and can be captured into a graph. The stream is
    set first, because setting the stream resets the workspace. The first call on a device creates the handle
    and cannot be captured. kbki_cublas_get is not thread-safe. Returns NULL on success, otherwise an error. */
KBK_FN const char* kbki_cublas_get(const kbk_args* a, kbk_stream st, kbki_cublas** lib, cublasHandle_t* h) {
    static kbki_cublas c;
    int device = 0;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const char* why = kbki_check_workspace(a, KBK_TICKETS + KBKI_CUBLAS_BYTES);
    if (why) return why;
    if (!c.opened) kbki_cublas_open(&c);
    if (!c.create) return "cuBLAS is not installed here (no libcublas.so)";
    if (cudaGetDevice(&device) != cudaSuccess || device >= 16) return "cuBLAS supports devices 0 to 15 only";
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
template <class T> const char* kbki_cublas_run(const kbk_args* a, int64_t batch, kbk_stream st) {
    const kbk_shape* s = &a->s;
    kbki_mm<T> io;
    kbki_cublas* lib;
    cublasHandle_t h;
    int64_t ctas;
    const char* why = kbki_mm_args(a, 32, 32, &io, &ctas);
    if (why || ctas == 0 || batch == 0) return why;
    if (io.m > 0x7FFFFFFF || (io.lda | io.ldb | io.ldc) >> 31 || io.k > 0x7FFFFFFF || batch > 0x7FFFFFFF)
        return "a dimension exceeds 2^31 - 1";
    if (io.k == 0) return kbki_mm_zeros(io, batch, st);
    if ((why = kbki_cublas_get(a, st, &lib, &h)) != NULL) return why;
    // cuBLAS is column-major and therefore sees the transpose of every row-major matrix. cuBLAS therefore computes
    // C' = B' A' (X': transpose of X), with the two inputs exchanged.
    int m = (int)io.n, n = (int)io.m, k = (int)io.k, lda = (int)io.lda, ldb = (int)io.ldb, ldc = (int)io.ldc;
    cublasOperation_t tb = s->layout == KBK_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t ta = s->layout == KBK_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t in_f32 = CUBLAS_COMPUTE_32F; // full precision, not TF32
    cudaDataType type = kbki_type<T>::cuda;
    float one = 1, zero = 0;
    cublasStatus_t e;
    if (batch == 1)
        e = lib->gemm(h, tb, ta, m, n, k, &one, io.b, type, ldb, io.a, type, lda, &zero, io.c, type, ldc, in_f32,
                      CUBLAS_GEMM_DEFAULT);
    else
        e = lib->batched(h, tb, ta, m, n, k, &one, io.b, type, ldb, io.sb, io.a, type, lda, io.sa, &zero, io.c, type,
                         ldc, io.sc, (int)batch, in_f32, CUBLAS_GEMM_DEFAULT);
    return e == CUBLAS_STATUS_SUCCESS ? kbki_launched() : "cuBLAS would not multiply";
}
template <class T> const char* kbk_matmul_fwd_cublas(const kbk_args* a, kbk_stream st) {
    return kbki_cublas_run<T>(a, 1, st);
}
#endif // KBK_CUBLAS

/*-----------------------------------------------------------------
  >>matmul_bytes     Matrix product of 8-bit floats (e4m3) with results in bf16, by the kernels of matmul; and by
                     cuBLASLt, which needs KBK_CUBLAS.
-----------------------------------------------------------------*/

/*  matmul_e4m3 fwd ------------------------------------------------------------------------------------------
    C[m,n] = sa sb sum_k A[m,k] B[n,k]     M = rows, N = cols, K = k
    A M x K and B N x K in e4m3     C in bf16     layout KBK_NT only
    sa, sb: scale factors of A and B, one f32 each, in device memory, so that an earlier kernel can compute them.
    flops  2*M*N*K
    bytes  (M + N)*K + 2*M*N + 8
    check  norm-wise 2e-2; per element 6 ulp (bf16) of the expected size of a sum, defined in the card of matmul.
           If K = 0, C is zero, whatever sa and sb are
    1 naive    one thread per element of C       <- slow: every FMA loads both operands through the caches, and
               converts both to f32
    2 shared   32 x 32 tiles in shared memory, as f32
                                                 <- 32 times fewer loads and conversions; still FMAs
    3 tma      the pipeline of >>matmul_hopper with tiles of 128 x 128: TMA loads and stores, one producer warp,
               two consumer warpgroups; a wgmma has 32 values of k; threads add the sums of every 128 values in f32
                                                 <- twice the products per clock of 16-bit types. Tensor cores keep
               about 14 bits of a sum (DeepSeek-AI 2024, DeepSeek-V3 Technical Report, section 3.3.2). That is too
               few for a long K, but enough for 128
    4 select   256 x 128 tiles; a warpgroup computes its two halves of a tile one after the other in the same
               registers; smaller tiles, 128 x 128 and 64 x 64, if large ones do not fill the GPU. Tiles are split
               along K as in rung 19 of matmul: those of the last wave (workspace: 4 bytes per result of a tile and
               SM), or all tiles, by the CTAs of a cluster
                                                 <- per product, tiles of 256 x 128 cause a quarter less traffic from
               L2 than tiles of 128 x 128; small products use more SMs
    99 cublas  cublasLtMatmul; fast accumulation is off: it would keep sums over all of K in the tensor cores,
               with about 14 bits. Workspace: 32 MiB
    bound by   arithmetic: compare with flops / rate of the tensor cores at 8 bits

    Rungs 3, 4 and 99 need K to be a multiple of 16, and A and B aligned to 16 bytes. Only rung 99 needs N to be a
    multiple of 16, and C and both scale factors aligned to 16 bytes. If the requirements of a rung are not met, the
    rung returns an error. */
/*  measured matmul_e4m3 fwd: bf16 4096 x 4096 x 4096 NT, NVIDIA H100 80GB HBM3, 2026-11-26
    2048 FLOP/B; floor on an H200 94.9 us = 137.4 GFLOP / 1448 TFLOP/s; on this GPU 99.4 us at 1383 TFLOP/s
                  time peak   gain regs   occ DRAM conflicts
     1 naive  274.6 ms  0 %      -   30  99 %  0 %         0  one thread per element of C
     2 shared 23.07 ms  0 % 11.9 x   32 100 %  0 %    3287 k  32 x 32 tiles in shared memory, in f32
     3 tma    118.1 us 74 %  195 x  168  14 % 19 %      96 k  wgmma on 128 x 128, f32 sums every 128 of K
     4 select 100.6 us 87 % 1.17 x  168  14 % 26 %     138 k  tile size by shape (up to 256 x 128); split-K
    99 cublas  99.4 us 89 %      -  168  15 % 25 %      96 k  cublasLtMatmul, no fast accumulation
    end of measured */
KBKI_TENSORS(matmul_e4m3_fwd, 5, t[0] = kbki_in("A", rows * s->k, s->k), t[1] = kbki_in("B", cols * s->k, 0),
             t[2] = kbki_in("sa", 1, 0), t[3] = kbki_in("sb", 1, 0), t[0].kind = t[1].kind = KBK_KE4M3,
             t[2].kind = t[3].kind = KBK_KF32, t[2].fill = t[3].fill = KBK_UNIFORM, t[2].a = t[3].a = 0.5,
             t[2].b = t[3].b = 1.5, t[4] = kbki_out("C", KBK_T, n, cols, cols))
KBKI_FORMULAS(matmul_e4m3_fwd, s->cols ? s->rows : 0, 2 * n * (double)s->k,
              (rows + cols) * (double)s->k + n * elem + 8)
KBKI_SCRATCH(matmul_e4m3) {
    if (word == KBKI_WORD_cublas) return KBK_TICKETS + KBKI_CUBLAS_BYTES;
    size_t pieces = word == KBKI_WORD_select ? kbki_select_pieces(s, 1, 1) : 0;
    return pieces ? pieces + KBK_TICKETS : 0;
}
KBKI_REF(matmul_e4m3_fwd) {
    kbk_shape nt = *s;
    const double factor = s->k ? in[2][0] * in[3][0] : 0;
    double* size = out[KBK_OUTS];
    nt.layout = KBK_NT;
    kbk_matmul_fwd_ref(&nt, elem, in, out, u0, u1);
    for (int64_t i = 0; i < (u1 - u0) * s->cols; i++) out[0][i] *= factor;
    for (int64_t i = 0; size && i < (u1 - u0) * s->cols; i++) size[i] *= fabs(factor);
}

#ifdef __CUDACC__
KBKI_LAUNCHER(kbk_matmul_e4m3_fwd_naive, kbk_matmul_fwd_naive<kbk_e4m3>)
KBKI_LAUNCHER(kbk_matmul_e4m3_fwd_shared, kbk_matmul_fwd_shared<kbk_e4m3>)

// Returns NULL if TMA can load A and B, otherwise the reason why not. Other errors, such as an unsupported layout,
// are detected when the kernel is launched.
KBK_FN const char* kbki_e4m3_refuses(const kbk_args* a) {
    const kbk_shape* s = &a->s;
    if (s->rows <= 0 || s->cols <= 0 || s->k <= 0 || s->layout != KBK_NT) return NULL;
    if (s->k % 16 == 0 && kbki_aligned(a->in[0], 16) && kbki_aligned(a->in[1], 16)) return NULL;
    return "e4m3 on tensor cores needs K to be a multiple of 16, and A and B aligned to 16 bytes: use shared";
}
template <class T> const char* kbki_e4m3_run(const kbk_args* a, kbki_wg_choice by, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_e4m3_refuses(a);
    if (!why) why = kbki_mm_args(a, 64, 64, &io, &ctas);
    if (why || ctas == 0) return why;
    return by.way < 0 ? kbki_wg_chosen(a, io, 1, st) : kbki_wg_select(a, io, 1, by, st);
}
template <class T> const char* kbk_matmul_e4m3_fwd_tma(const kbk_args* a, kbk_stream st) {
    return kbki_e4m3_run<kbk_e4m3>(a, { KBKI_WG_e4m3_mid, 0, 0, 0 }, st);
}
template <class T> const char* kbk_matmul_e4m3_fwd_select(const kbk_args* a, kbk_stream st) {
    return kbki_e4m3_run<kbk_e4m3>(a, { -1, 0, 0, 0 }, st);
}
#endif // __CUDACC__

#if defined(KBK_CUBLAS) && defined(__CUDACC__)
#if CUDART_VERSION >= 12000
struct kbki_cublaslt {
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtMatmulDescCreate) product;
    decltype(&cublasLtMatmulDescSetAttribute) set;
    decltype(&cublasLtMatmulDescDestroy) end_product;
    decltype(&cublasLtMatrixLayoutCreate) layout;
    decltype(&cublasLtMatrixLayoutDestroy) end_layout;
    decltype(&cublasLtMatmulPreferenceCreate) preference;
    decltype(&cublasLtMatmulPreferenceSetAttribute) prefer;
    decltype(&cublasLtMatmulPreferenceDestroy) end_preference;
    decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
    decltype(&cublasLtMatmul) multiply;
    // State of one device, which caches the algorithm of the last product, because choosing an algorithm takes
    // longer than a launch.
    struct {
        cublasLtHandle_t handle;
        cublasLtMatmulDesc_t product;
        cublasLtMatrixLayout_t a, b, c;
        cublasLtMatmulHeuristicResult_t how;
        int64_t m, n, k; // shape of the product whose algorithm is cached; m = 0: no algorithm is cached
        // alignment of A, B and C in bytes, at most 256; the choice of the algorithm may depend on this alignment
        uint32_t start;
    } on[16];
    bool opened, found;
};
KBK_FN void kbki_cublaslt_open(kbki_cublaslt* c) {
    static const char* const names[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so" };
    void* lib = NULL;
    for (int i = 0; i < 3 && !lib; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    c->opened = c->found = true;
    auto find = [&](auto* to, const char* name) {
        *(void**)to = lib ? dlsym(lib, name) : NULL;
        c->found = c->found && *to;
    };
    find(&c->create, "cublasLtCreate"), find(&c->product, "cublasLtMatmulDescCreate");
    find(&c->set, "cublasLtMatmulDescSetAttribute"), find(&c->end_product, "cublasLtMatmulDescDestroy");
    find(&c->layout, "cublasLtMatrixLayoutCreate"), find(&c->end_layout, "cublasLtMatrixLayoutDestroy");
    find(&c->preference, "cublasLtMatmulPreferenceCreate");
    find(&c->prefer, "cublasLtMatmulPreferenceSetAttribute");
    find(&c->end_preference, "cublasLtMatmulPreferenceDestroy");
    find(&c->choose, "cublasLtMatmulAlgoGetHeuristic"), find(&c->multiply, "cublasLtMatmul");
}
KBK_FN cublasStatus_t kbki_cublaslt_factors(kbki_cublaslt* c, cublasLtMatmulDesc_t product,
                                            const kbki_mm<kbk_e4m3>& io) {
    cublasStatus_t e = c->set(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &io.scale_b, sizeof io.scale_b);
    if (e != CUBLAS_STATUS_SUCCESS) return e;
    return c->set(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &io.scale_a, sizeof io.scale_a);
}
// Chooses a cuBLASLt algorithm for the shape and the alignment of a product. cuBLASLt is column-major, so it reads
// each row-major matrix X as X', the transpose of X. C = A B' is therefore computed as C' = B A', and its first
// operand, B, is passed as transposed. The scale factors are set before the algorithm is chosen, because not every
// algorithm supports them. Returns NULL on success, otherwise an error.
KBK_FN const char* kbki_cublaslt_plan(kbki_cublaslt* c, int device, const kbki_mm<kbk_e4m3>& io) {
    auto* on = &c->on[device];
    const int64_t m = io.m, n = io.n, k = io.k;
    uint32_t start = 256;
    while (start > 16 && (((uintptr_t)io.a | (uintptr_t)io.b | (uintptr_t)io.c) & (start - 1))) start /= 2;
    if (on->m == m && on->n == n && on->k == k && on->start == start) return NULL;
    if (on->product) c->end_product(on->product);
    if (on->a) c->end_layout(on->a);
    if (on->b) c->end_layout(on->b);
    if (on->c) c->end_layout(on->c);
    on->product = NULL, on->a = on->b = on->c = NULL, on->m = 0;
    cublasOperation_t turned = CUBLAS_OP_T;
    size_t room = KBKI_CUBLAS_BYTES;
    int found = 0;
    cublasLtMatmulPreference_t wish = NULL;
    bool good = c->product(&on->product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
                c->set(on->product, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned) == CUBLAS_STATUS_SUCCESS &&
                kbki_cublaslt_factors(c, on->product, io) == CUBLAS_STATUS_SUCCESS &&
                c->layout(&on->a, CUDA_R_8F_E4M3, (uint64_t)k, (uint64_t)n, k) == CUBLAS_STATUS_SUCCESS &&
                c->layout(&on->b, CUDA_R_8F_E4M3, (uint64_t)k, (uint64_t)m, k) == CUBLAS_STATUS_SUCCESS &&
                c->layout(&on->c, CUDA_R_16BF, (uint64_t)n, (uint64_t)m, n) == CUBLAS_STATUS_SUCCESS &&
                c->preference(&wish) == CUBLAS_STATUS_SUCCESS;
    const cublasLtMatmulPreferenceAttributes_t starts[] = { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES };
    for (auto which : starts) good = good && c->prefer(wish, which, &start, sizeof start) == CUBLAS_STATUS_SUCCESS;
    good = good &&
           c->prefer(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room) == CUBLAS_STATUS_SUCCESS &&
           c->choose(on->handle, on->product, on->a, on->b, on->c, on->c, wish, 1, &on->how, &found) ==
               CUBLAS_STATUS_SUCCESS;
    if (wish) c->end_preference(wish);
    if (!good || !found) return "cuBLASLt has no algorithm for this product";
    on->m = m, on->n = n, on->k = k, on->start = start;
    return NULL;
}
// Sets *lib to cuBLASLt, with a handle for the current device, and *device to the number of this device. Unlike
// cuBLAS, cuBLASLt takes the stream and the workspace as arguments of each call. Returns NULL on success,
// otherwise an error.
KBK_FN const char* kbki_cublaslt_get(const kbk_args* a, kbk_stream st, kbki_cublaslt** lib, int* device) {
    static kbki_cublaslt c;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const char* why = kbki_check_workspace(a, KBK_TICKETS + KBKI_CUBLAS_BYTES);
    if (why) return why;
    if (!c.opened) kbki_cublaslt_open(&c);
    if (!c.found) return "cuBLASLt of CUDA 12 or later is not installed here (no libcublasLt.so)";
    if (cudaGetDevice(device) != cudaSuccess || *device >= 16) return "cuBLASLt supports devices 0 to 15 only";
    *lib = &c;
    if (c.on[*device].handle) return NULL;
    if (cudaStreamIsCapturing(st, &capture) != cudaSuccess || capture != cudaStreamCaptureStatusNone)
        return "the first cuBLASLt call on a device cannot be captured";
    return c.create(&c.on[*device].handle) == CUBLAS_STATUS_SUCCESS ? NULL : "cublasLtCreate failed";
}
template <class T> const char* kbk_matmul_e4m3_fwd_cublas(const kbk_args* a, kbk_stream st) {
    kbki_mm<kbk_e4m3> io;
    kbki_cublaslt* lib;
    int64_t ctas;
    int device = 0;
    const float one = 1, zero = 0;
    const char* why = kbki_mm_args(a, 32, 32, &io, &ctas);
    if (why || ctas == 0) return why;
    if (io.k == 0) return kbki_mm_zeros(io, 1, st);
    if (io.k % 16 || io.n % 16 || !kbki_aligned(io.a, 16) || !kbki_aligned(io.b, 16) || !kbki_aligned(io.c, 16))
        return "cuBLASLt needs N and K to be multiples of 16, and A, B and C aligned to 16 bytes: use shared";
    if (!kbki_aligned(io.scale_a, 16) || !kbki_aligned(io.scale_b, 16))
        return "cuBLASLt needs both scale factors aligned to 16 bytes";
    if ((why = kbki_cublaslt_get(a, st, &lib, &device)) != NULL) return why;
    if ((why = kbki_cublaslt_plan(lib, device, io)) != NULL) return why;
    auto* on = &lib->on[device];
    cublasStatus_t e = kbki_cublaslt_factors(lib, on->product, io);
    if (e == CUBLAS_STATUS_SUCCESS)
        e = lib->multiply(on->handle, on->product, &one, io.b, on->a, io.a, on->b, &zero, io.c, on->c, io.c, on->c,
                          &on->how.algo, (char*)a->workspace + KBK_TICKETS, KBKI_CUBLAS_BYTES, st);
    return e == CUBLAS_STATUS_SUCCESS ? kbki_launched() : "cuBLASLt would not multiply";
}
#else
template <class T> const char* kbk_matmul_e4m3_fwd_cublas(const kbk_args*, kbk_stream) {
    return "built without 8-bit cuBLASLt, which needs CUDA 12";
}
#endif
#endif // KBK_CUBLAS

/*-----------------------------------------------------------------
  >>bmm     Batched matrix product: the kernels of matmul with the batch in the grid.
-----------------------------------------------------------------*/

/*  bmm fwd --------------------------------------------------------------------------------------------------
    C[b] = A[b] B[b]     b < batch; M = rows, N = cols, K = k, layouts and accumulation as matmul
    strides strides[i][0] between rows of A, B or C, strides[i][1] between their products
    The backward pass of bmm consists of two batched products.
    flops  2*batch*M*N*K
    bytes  batch*(M*K + K*N + M*N)*s
    check  as for matmul
    1 regblock the kernel of matmul, batch in grid.z     <- one launch instead of one per product: small
               products together use all SMs
    2 mmapipe  rung 18 of matmul, batch in grid.z        <- tensor cores by mma.sync
    3 select   wgmma; the batch is part of the tile order; unaligned rows are copied first
                                                         <- persistent kernel: a CTA continues with the next
               product. The next operands are loaded while results are stored, and no SM is idle at the end of a product
    4 tf32     rung 20 of matmul for a batch             <- one transposition for all products
    99 cublas  cublasGemmStridedBatchedEx; multiplies f32 in full precision, not in TF32; workspace: 32 MiB
    bound by   arithmetic, or memory if K is small: compare with the larger of the two times */
/*  measured bmm fwd: bf16 128 times 1024 x 512 x 512, NVIDIA H100 80GB HBM3, 2026-11-26
    205 FLOP/B; floor on an H200 87.8 us = 68.72 GFLOP / 783 TFLOP/s; on this GPU 110.0 us at 3.051 TB/s
                    time peak   gain regs  occ DRAM conflicts
     1 regblock  3824 us  3 %      -  126 25 %  3 %     219 M  the kernel of matmul, batch index in grid.z
     2 mmapipe  202.2 us 61 % 18.9 x  248 12 % 48 %     115 k  the kernel of matmul, batch index in grid.z
     3 select   128.5 us 95 % 1.57 x  168 14 % 75 %     345 k  wgmma, tile size by shape; persistent kernel
    99 cublas   126.2 us 97 %      -  168 15 % 76 %     429 k  cublasGemmStridedBatchedEx, no TF32
    end of measured */
// The oracle needs the complete matrix B for a row of C.
KBKI_TENSORS(bmm_fwd, 3, kbk_matmul_fwd_tensors(s, t), t[0].per_unit = t[1].per_unit = 0, t[0].count *= s->batch,
             t[1].count *= s->batch, t[2].count *= s->batch)
KBKI_FORMULAS(bmm_fwd, s->cols ? s->batch * s->rows : 0, (double)s->batch * 2 * n * (double)s->k,
              (double)s->batch * ((rows + cols) * (double)s->k + n) * elem)
KBKI_SCRATCH(bmm) {
    size_t bytes = 0;
    int64_t batch = s->batch > 0 ? s->batch : 0;
    int select = word == KBKI_WORD_select;
    if (word == KBKI_WORD_cublas) return KBK_TICKETS + KBKI_CUBLAS_BYTES;
    if (word == KBKI_WORD_tf32) return kbki_scratch_tf32(s, batch);
    if (select) bytes = kbki_select_pieces(s, elem, batch);
    if (select || word == KBKI_WORD_mmapipe) bytes += (size_t)batch * kbki_mm_copies(s, elem);
    return bytes ? bytes + KBK_TICKETS : 0;
}
KBKI_REF(bmm_fwd) {
    for (int64_t u = u0; u < u1;) {
        int64_t b = u / s->rows, first = u % s->rows, last = first + (u1 - u);
        if (last > s->rows) last = s->rows;
        const double* one[2] = { in[0] + b * s->rows * s->k, in[1] + b * s->k * s->cols };
        double* piece[2 * KBK_OUTS] = { out[0] + (u - u0) * s->cols };
        if (out[KBK_OUTS]) piece[KBK_OUTS] = out[KBK_OUTS] + (u - u0) * s->cols;
        kbk_matmul_fwd_ref(s, elem, one, piece, first, last);
        u += last - first;
    }
}

#define KBKI_TEXT_BATCH "the batch is negative"
#ifdef __CUDACC__
template <class T> const char* kbk_bmm_fwd_regblock(const kbk_args* a, kbk_stream st) {
    kbki_mm<T> io;
    int64_t ctas;
    const char* why = kbki_mm_args(a, KBKI_MM_TILE, KBKI_MM_TILE, &io, &ctas);
    if (why || ctas == 0) return why;
    if (a->s.batch < 0) return KBKI_TEXT_BATCH;
    return kbki_mm_batch(io, ctas, a->s.batch, [&](const kbki_mm<T>& part, dim3 grid) {
        kbk_matmul_fwd_regblock_k<T><<<grid, 256, 0, st>>>(part.a, part.b, part.c, part.m, part.n, part.k, part.am,
                                                           part.ak, part.bk, part.bn, part.ldc, part.sa, part.sb,
                                                           part.sc);
    });
}
template <class T> const char* kbk_bmm_fwd_mmapipe(const kbk_args* a, kbk_stream st) {
    return a->s.batch < 0 ? KBKI_TEXT_BATCH : kbki_mmapipe<T>(a, a->s.batch, 1, st);
}
template <class T> const char* kbk_bmm_fwd_select(const kbk_args* a, kbk_stream st) {
    return a->s.batch < 0 ? KBKI_TEXT_BATCH : kbki_select<T>(a, a->s.batch, st);
}
template <class T> const char* kbk_bmm_fwd_tf32(const kbk_args* a, kbk_stream st) {
    return a->s.batch < 0 ? KBKI_TEXT_BATCH : kbki_tf32<T>(a, a->s.batch, st);
}
#endif // __CUDACC__

#if defined(KBK_CUBLAS) && defined(__CUDACC__)
template <class T> const char* kbk_bmm_fwd_cublas(const kbk_args* a, kbk_stream st) {
    return a->s.batch < 0 ? KBKI_TEXT_BATCH : kbki_cublas_run<T>(a, a->s.batch, st);
}
#endif // KBK_CUBLAS

/*-----------------------------------------------------------------
  >>attention_simt     Attention forward without tensor cores: scores in memory, cuBLAS, online softmax, and tiles
                       that stay on the SM (FlashAttention).
-----------------------------------------------------------------*/

/*  attention fwd --------------------------------------------------------------------------------------------
    s[i,j] = q[i] k[j] / sqrt(d)     lse[i] = log sum_j exp(s[i,j])     o[i] = sum_j exp(s[i,j] - lse[i]) v[j]
    q, k, v, o: batch x heads x S x d, S = rows, d = cols = 64 or 128; lse: batch x heads x S, f32.
    causal: only keys j <= i
    strides strides[i] = { 3 H d, d, S 3 H d } if q, k and v are in one tensor batch x S x 3 x H x d, H = heads.
           Rungs flashpp, flashmma and flash accept strides; the last two need equal strides of q, k and v
    flops  4*B*H*S^2*d, half if causal         the two matrix products; the softmax is not counted
    bytes  4*B*H*S*d*s + 4*B*H*S               intensity at 16 bits: S / 2 FLOPs per byte, causal S / 4
    check  norm-wise f32 1e-5, f16 1e-3, bf16 6e-3; per element 128 ulp and 1e-6 in f32, 4 ulp at 16 bits, of the
           row scale or of max(1, L / 8) sqrt(sum_j (p v)^2), the error that rounding of the probabilities can cause;
           lse: 128 ulp of L / 4. L: the greatest sum of |q k| / sqrt(d)
    1 naive    scores in memory, three passes        <- slow: the S^2 scores are written three times and read four
                                                        times, and every FMA loads its operands through the caches.
                                                        S <= 2048
    2 cublas   cuBLAS for both products, own softmax <- tensor cores, but the scores still go through memory
    3 online   warp per row of q, online softmax     <- a running maximum and sum (Milakov & Gimelshein 2018) make
                                                        one pass enough: nothing of size S^2 is in memory. Every
                                                        FMA still loads one or two operands from shared memory
    4 flash    64 x 64 tiles, 4 x 4 scores a thread  <- tiling as in FlashAttention (Dao et al. 2022), with rows of
                                                        q in parallel (FlashAttention-2, Dao 2023). An operand
                                                        serves four FMAs; loads from L2 fall from S^2 d / 8 to S^2
                                                        d / 64. FMAs are the limit
    5 warpmma  mma.sync on 16-bit tiles              <- tensor cores multiply (f16 from compute capability 7.5 on),
                                                        but loads and products alternate. In >>attention_mma
    6 flashmma FlashAttention-2 on tensor cores      <- production kernel for 8.0; in >>attention_mma
    7 flashws, 8 flashrs, 9 pingpong   wgmma and TMA <- in >>attention_hopper, compared with 5
    10 flashpp FlashAttention-3, persistent          <- production kernel for 9.0; in >>attention_wgmma
    bound by   arithmetic. A row whose scores are all -inf gives o = 0 and lse = -inf. NaN or infinity in a row of v
               that the causal mask hides has no effect in `naive`, `online` and `flash`. The kernels on tensor cores
               multiply this row by a probability of zero, so that rows of the same tile become NaN.
               FlashAttention and cuDNN do the same
    predict    before you run it: the two products of 64 rows by 128 keys at d = 128 take 1024 clocks of an SM's
               tensor cores, and their 8192 exponentials take 512 clocks at 16 per clock. Which share of the peak can
               a kernel reach if products and exponentials alternate, and which rung first exceeds this share?
    drawing    flash: q is kept, loop over k and v     pingpong over time, Q: queued products, e: exponentials
                       k0   k1   k2                      warpgroup 0  QQQQ eeee QQQQ eeee QQQQ
                 q0  [ s ][ s ][ s ] -> o0, m, l         warpgroup 1       QQQQ eeee QQQQ eeee QQQQ
                       v0   v1   v2                      tensor cores QQQQ QQQQ QQQQ QQQQ QQQQ        */
/*  measured attention fwd: bf16 4 x 16 x 2048 x 128, NVIDIA H100 80GB HBM3, 2026-11-26
    1020 FLOP/B; floor on an H200 175.5 us = 137.4 GFLOP / 783 TFLOP/s; on this GPU 172.9 us at 794.9 TFLOP/s
                    time peak        gain regs  occ DRAM conflicts
     1 naive    242.4 ms  0 %           -   30 96 %  1 %         0  score matrix in memory, three passes
     2 cublas    1556 us 11 %       156 x  168 64 % 65 %     805 k  batched GEMMs of cuBLAS, own softmax kernel
     3 online   17.00 ms  1 %      0.09 x   64 50 %  0 %      18 M  warp per row, online softmax, 32-key tiles
     4 flash     6051 us  3 %      2.81 x  128 24 %  1 %    2090 k  64 x 64 tiles, 4 x 4 scores per thread, FMAs
     5 warpmma  904.6 us 19 %      6.69 x  127 24 %  4 %    1843 k  mma.sync, loads and products alternate
     6 flashmma 387.0 us 45 %      2.34 x  255 12 % 10 %     299 k  mma.sync, 32 rows per warp, double buffering
     7 flashws  255.0 us 68 % 3.55 x of 5  168 14 % 15 %       377  wgmma and TMA, warp specialization
     8 flashrs  238.3 us 73 %      1.07 x  128 20 % 16 %      3331  three independent consumers
     9 pingpong 224.7 us 77 % 1.13 x of 7  168 14 % 17 %      12 k  scores one tile ahead, 2 consumers alternate
    10 flashpp  215.5 us 81 %      1.04 x  128 20 % 18 %     423 k  persistent kernel, 2 to 4 consumers by shape
    end of measured */
KBK_FN int64_t kbki_attn_heads(const kbk_shape* s) { return s->batch * s->heads; }
KBKI_TENSORS(attention_fwd, 5, t[0] = kbki_in("q", kbki_attn_heads(s) * n, cols),
             t[1] = kbki_in("k", kbki_attn_heads(s) * n, 0), t[2] = kbki_in("v", kbki_attn_heads(s) * n, 0),
             t[3] = kbki_out("o", KBK_T, kbki_attn_heads(s) * n, cols, cols),
             t[4] = kbki_out("lse", KBK_KF32, kbki_attn_heads(s) * rows, 1, 1))
KBKI_FORMULAS(attention_fwd, s->cols ? kbki_attn_heads(s) * s->rows : 0,
              (s->causal ? 2 : 4) * (double)kbki_attn_heads(s) * n * rows,
              (double)kbki_attn_heads(s) * (4 * n * elem + 4 * rows))
// Returns the number of heads that variant `cublas` processes per cuBLAS call, chosen so that the scores of these
// heads take about 1 GiB.
KBK_FN int64_t kbki_attn_chunk(const kbk_shape* s, int elem) {
    int64_t each = s->rows * s->rows * (4 + elem) + 1, n = ((int64_t)1 << 30) / each;
    int64_t heads = kbki_attn_heads(s);
    return n < 1 ? 1 : n > heads ? heads : n;
}
KBKI_SCRATCH(attention_fwd) {
    size_t square = (size_t)s->rows * (size_t)s->rows;
    if (word == KBKI_WORD_naive) return KBK_TICKETS + (size_t)kbki_attn_heads(s) * square * 4;
    if (word == KBKI_WORD_cublas)
        return KBK_TICKETS + KBKI_CUBLAS_BYTES + (size_t)kbki_attn_chunk(s, elem) * square * (size_t)(4 + elem);
    return word == KBKI_WORD_flashpp ? KBK_TICKETS : 0;
}
KBK_FN double kbki_attn_dot(const double* a, const double* b, int64_t d, double* sum_of_sizes) {
    double sum = 0, size = 0;
    for (int64_t c = 0; c < d; c++) sum += a[c] * b[c], size += fabs(a[c] * b[c]);
    if (size > *sum_of_sizes) *sum_of_sizes = size;
    return sum;
}
KBK_FN double kbki_attn_finite(double x) { return kbk_is_nan(x) || kbk_is_inf(x) ? 0 : x; }
KBKI_REF(attention_fwd) {
    int64_t n = s->rows, d = s->cols;
    double scale = 1 / sqrt((double)d);
    for (int64_t u = u0; u < u1; u++) {
        const double *q = in[0] + u * d, *k = in[1] + u / n * n * d, *v = in[2] + u / n * n * d;
        int64_t keys = s->causal ? u % n + 1 : n;
        double top = -HUGE_VAL, sum = 0, size = 0;
        double *o = out[0] ? out[0] + (u - u0) * d : NULL, *mag = out[4] ? out[4] + (u - u0) * d : NULL;
        for (int64_t j = 0; j < keys; j++) {
            double x = scale * kbki_attn_dot(q, k + j * d, d, &size);
            top = x > top ? x : top;
        }
        double base = top == -HUGE_VAL ? 0 : top, doubt = scale * size > 8 ? scale * size / 8 : 1;
        for (int64_t c = 0; o && c < d; c++) o[c] = 0;
        for (int64_t c = 0; mag && c < d; c++) mag[c] = 0;
        for (int64_t j = 0; j < keys; j++) {
            double p = exp(scale * kbki_attn_dot(q, k + j * d, d, &size) - base);
            sum += p;
            for (int64_t c = 0; o && c < d; c++) o[c] += p * v[j * d + c];
            for (int64_t c = 0; mag && c < d; c++) mag[c] += p * p * v[j * d + c] * v[j * d + c];
        }
        double inv = sum == 0 ? 1 : 1 / sum;
        for (int64_t c = 0; o && c < d; c++) o[c] *= inv;
        for (int64_t c = 0; mag && c < d; c++) mag[c] = kbki_attn_finite(sqrt(mag[c]) * inv * doubt);
        if (out[1]) out[1][u - u0] = base + log(sum);
        if (out[5]) out[5][u - u0] = kbki_attn_finite(scale * size / 4);
    }
}

#ifdef __CUDACC__
template <class T> struct kbki_attn {
    const T *q, *k, *v;
    T* o;
    float* lse;
    int64_t heads, rows; // heads: number of heads of all batch elements; rows: rows of q per head
    float scale;
    int causal, vector; // vector: 1 if all addresses allow 16-byte accesses
    int span;           // heads per batch element; 0 if all tensors are contiguous
    longlong3 step[4];  // strides of q, k, v and o; x: rows, y: heads, z: batch
};
#define KBKI_TEXT_STRIDES "this variant needs contiguous tensors: use flashpp, flashmma, flash or (bwd) flashws"
// Sets step[i] to the strides of tensor i, for i < count, and *span to the number of heads per batch element, or to 0
// if all tensors are contiguous. accepts: whether the variant accepts strides.
KBK_FN const char* kbki_attn_steps(const kbk_shape* s, int count, bool accepts, longlong3* step, int* span) {
    bool strides = false;
    for (int i = 0; i < count; i++) {
        const int64_t* given = s->strides[i];
        strides = strides || given[0] || given[1] || given[2];
        step[i].x = given[0] ? given[0] : s->cols, step[i].y = given[1] ? given[1] : step[i].x * s->rows;
        step[i].z = given[2] ? given[2] : step[i].y * s->heads;
        if (step[i].x < s->cols) return "a stride is smaller than a row";
    }
    *span = strides ? (int)s->heads : 0;
    return strides && !accepts ? KBKI_TEXT_STRIDES : NULL;
}
// Returns the distance of head number `head`, counted over all batch elements, from the start of a tensor.
__device__ __forceinline__ int64_t kbki_attn_head(longlong3 step, int span, int head) {
    const int batch = span ? head / span : 0;
    return batch * step.z + (head - batch * span) * step.y;
}
KBK_FN bool kbki_attn_even(longlong3 step) { return (step.x | step.y | step.z) % 8 == 0; } // multiples of 16 bytes
#define KBKI_TEXT_HEAD "attention supports d = 64 and d = 128 only"
// Sets *heads to the number of heads of all batch elements and returns NULL, or returns an error. If *heads is 0,
// there is nothing to compute.
KBK_FN const char* kbki_attn_shape(const kbk_shape* s, int64_t* heads) {
    *heads = 0;
    if (s->batch < 0 || s->heads < 0) return "a dimension is negative";
    const char* why = kbki_check_dims(s);
    if (why || s->batch == 0 || s->heads == 0 || s->rows == 0 || s->cols == 0) return why;
    if (s->cols != 64 && s->cols != 128) return KBKI_TEXT_HEAD;
    if (s->rows > (1 << 30)) return "attention supports at most 2^30 rows per head";
    *heads = kbki_attn_heads(s);
    return NULL;
}
template <class T> const char* kbki_attn_args(const kbk_args* a, kbki_attn<T>* io, bool strides = false) {
    *io = {};
    io->q = (const T*)a->in[0], io->k = (const T*)a->in[1], io->v = (const T*)a->in[2];
    io->o = (T*)a->out[0], io->lse = (float*)a->out[1];
    io->rows = a->s.rows, io->causal = a->s.causal, io->vector = 1;
    const char* why = kbki_attn_shape(&a->s, &io->heads);
    if (why || !io->heads) return why;
    if ((why = kbki_attn_steps(&a->s, 4, strides, io->step, &io->span)) != NULL) return why;
    io->scale = 1.0f / sqrtf((float)a->s.cols);
    for (int i = 0; i < 3; i++) {
        if (!kbki_aligned(a->in[i], sizeof(T))) return KBKI_TEXT_ALIGN;
        io->vector &= kbki_aligned(a->in[i], 16);
    }
    io->vector &= kbki_aligned(io->o, 16);
    return kbki_aligned(io->o, sizeof(T)) && kbki_aligned(io->lse, 4) ? NULL : KBKI_TEXT_ALIGN;
}

// Launches kernel at_64 if d = 64, or kernel at_128 if d = 128, with one CTA per `rows` rows of q. bytes_64,
// bytes_128: bytes of dynamic shared memory per CTA of kernels at_64 and at_128. Strides: whether the kernel's last
// parameters are the heads per batch element, the strides of q, k and v, and those of o (x: rows, y: heads, z: batch).
template <class T, bool Strides = false, class Kernel>
const char* kbki_attn_launch(const kbk_args* a, Kernel* at_64, Kernel* at_128, int rows, unsigned threads,
                             size_t bytes_64, size_t bytes_128, kbk_stream st) {
    kbki_attn<T> io;
    const char* why = kbki_attn_args(a, &io, Strides);
    if (why || !io.heads) return why;
    const int64_t ctas = io.heads * kbki_ceil(io.rows, rows);
    Kernel* kernel = a->s.cols == 64 ? at_64 : at_128;
    size_t want = a->s.cols == 64 ? bytes_64 : bytes_128, bytes = want;
    if ((why = kbki_want_shared((const void*)kernel, &bytes)) != NULL) return why;
    if (bytes < want) return "an SM of this GPU has too little shared memory for this kernel";
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    for (int i = 1; i < 3; i++)
        if (memcmp(io.step, io.step + i, sizeof *io.step)) return "q, k and v need equal strides: use flashpp";
    if constexpr (Strides)
        kernel<<<(unsigned)ctas, threads, bytes, st>>>(io.q, io.k, io.v, io.o, io.lse, (int)io.rows, io.scale,
                                                       io.causal, io.span, io.step[0], io.step[3]);
    else
        kernel<<<(unsigned)ctas, threads, bytes, st>>>(io.q, io.k, io.v, io.o, io.lse, (int)io.rows, io.scale,
                                                       io.causal);
    return kbki_launched();
}

// Kernels of variant `naive`: the first kernel has one thread per score, the second kernel has one thread per row
// of scores, and the third kernel has one thread per element of o.
template <class T>
__global__ void kbk_attention_fwd_naive_k(const T* q, const T* k, float* scores, int64_t heads, int64_t n, int d,
                                          float scale, int causal) {
    int64_t at = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= heads * n * n) return;
    int64_t row = at / n, j = at % n, head = row / n;
    float sum = 0;
    for (int c = 0; c < d; c++) sum = fmaf(kbki_float(q[row * d + c]), kbki_float(k[(head * n + j) * d + c]), sum);
    scores[at] = causal && j > row % n ? -INFINITY : sum * scale;
}
template <class T> __global__ void kbki_attn_naive_rows_k(float* scores, float* lse, int64_t heads, int64_t n) {
    int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (row >= heads * n) return;
    float *s = scores + row * n, top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) top = fmaxf(top, s[j]);
    float base = top == -INFINITY ? 0.0f : top;
    for (int64_t j = 0; j < n; j++) sum += s[j] = expf(s[j] - base);
    for (int64_t j = 0; j < n; j++) s[j] = sum == 0 ? 0.0f : s[j] / sum;
    lse[row] = base + logf(sum);
}
template <class T>
__global__ void kbki_attn_naive_out_k(const float* scores, const T* v, T* o, int64_t heads, int64_t n, int d,
                                      int causal) {
    int64_t at = (int64_t)blockIdx.x * 256 + threadIdx.x, row = at / d, head = row / n;
    if (row >= heads * n) return;
    float sum = 0;
    for (int64_t j = 0; j < (causal ? row % n + 1 : n); j++)
        sum = fmaf(scores[row * n + j], kbki_float(v[(head * n + j) * d + at % d]), sum);
    o[at] = kbki_type<T>::from(sum);
}
template <class T> const char* kbk_attention_fwd_naive(const kbk_args* a, kbk_stream st) {
    kbki_attn<T> io;
    const char* why = kbki_attn_args(a, &io);
    if (why || !io.heads) return why;
    if (io.rows > 2048) return "the naive variant keeps all scores: S <= 2048 only";
    if ((why = kbki_check_workspace(a, kbki_scratch_attention_fwd(&a->s, (int)sizeof(T), KBKI_WORD_naive))) != NULL)
        return why;
    float* scores = (float*)((char*)a->workspace + KBK_TICKETS);
    int64_t rows = io.heads * io.rows, ctas = kbki_ceil(rows * io.rows, 256);
    int64_t outs = kbki_ceil(rows * a->s.cols, 256);
    int d = (int)a->s.cols;
    if (!kbki_grid_ok(ctas) || !kbki_grid_ok(outs)) return KBKI_TEXT_GRID;
    kbk_attention_fwd_naive_k<T>
        <<<(unsigned)ctas, 256, 0, st>>>(io.q, io.k, scores, io.heads, io.rows, d, io.scale, io.causal);
    kbki_attn_naive_rows_k<T><<<(unsigned)kbki_ceil(rows, 256), 256, 0, st>>>(scores, io.lse, io.heads, io.rows);
    kbki_attn_naive_out_k<T><<<(unsigned)outs, 256, 0, st>>>(scores, io.v, io.o, io.heads, io.rows, d, io.causal);
    return kbki_launched();
}

// Copies Rows rows of Dim elements to shared memory, element by element, as f32. Only the first `left` rows exist
// in memory; the remaining rows of the copy are set to zero. ld: elements between rows in memory.
template <int Dim, int Rows, int Threads, int Pitch, class T, class Ld = int>
__device__ __forceinline__ void kbki_attn_stage(float (*to)[Pitch], const T* from, int left, Ld ld = Dim) {
    constexpr int Step = Threads / Dim; // rows per pass
    const int r = threadIdx.x / Dim, c = threadIdx.x % Dim;
    from += r * ld + c;
#pragma unroll 8
    for (int i = 0; i < Rows; i += Step, from += Step * ld) to[r + i][c] = r + i < left ? kbki_float(*from) : 0.0f;
}
/*  Kernel of variant `online`: one warp processes one row of q. For each tile of 32 keys, a lane computes one
    score and then accumulates every 32nd column of o. Online softmax (Milakov & Gimelshein 2018): if the
    running maximum rises, earlier sums are multiplied by `factor`. The odd pitch of k and v avoids bank
    conflicts when the lanes of a warp read a column. */
template <class T, int Dim>
__global__ void __launch_bounds__(256, 4)
    kbk_attention_fwd_online_k(const T* q_in, const T* k_in, const T* v_in, T* out, float* lse, int n, float scale,
                               int causal) {
    __shared__ float q[8][Dim], k[32][Dim + 1], v[32][Dim + 1];
    int tiles = (n + 7) / 8, row0 = blockIdx.x % tiles * 8;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = row0 + warp;
    // end: first key that no row of the CTA sees; last: last key that this warp's row sees
    int end = causal && row0 + 8 < n ? row0 + 8 : n, last = causal && row < n ? row : n - 1;
    // index of the first row of the head
    int64_t head = (int64_t)(blockIdx.x / tiles) * n;
    float o[Dim / 32] = {}, top = -INFINITY, sum = 0;
    kbki_attn_stage<Dim, 8, 256>(q, q_in + (head + row0) * Dim, n - row0);
    for (int key = 0; key < end; key += 32) {
        float x = 0;
        __syncthreads(); // all warps have read the previous tile of k and v
        kbki_attn_stage<Dim, 32, 256>(k, k_in + (head + key) * Dim, n - key);
        kbki_attn_stage<Dim, 32, 256>(v, v_in + (head + key) * Dim, n - key);
        __syncthreads();
#pragma unroll 16
        for (int c = 0; c < Dim; c++) x = fmaf(q[warp][c], k[lane][c], x);
        // The score is rounded before the maximum is subtracted, so that the largest score gives a difference of
        // exactly 0.
        x = key + lane <= last ? __fmul_rn(x, scale) : -INFINITY;
        float now = fmaxf(top, kbki_warp_all<kbki_max>(x)), base = now == -INFINITY ? 0.0f : now;
        float p = expf(x - base), factor = expf(top - base);
        sum = sum * factor + kbki_warp_all<kbki_sum<float>>(p), top = now;
#pragma unroll
        for (int c = 0; c < Dim / 32; c++) o[c] *= factor;
        // The loop stops before the first masked key, because a masked v may be NaN, and 0 * NaN is NaN.
        for (int j = 0; j < 32 && key + j <= last; j++) {
            float weight = __shfl_sync(~0u, p, j);
#pragma unroll
            for (int c = 0; c < Dim / 32; c++) o[c] = fmaf(weight, v[j][lane + 32 * c], o[c]);
        }
    }
    if (row >= n) return;
#pragma unroll
    for (int c = 0; c < Dim / 32; c++)
        out[(head + row) * Dim + lane + 32 * c] = kbki_type<T>::from(sum == 0 ? 0.0f : o[c] / sum);
    if (lane == 0) lse[head + row] = (top == -INFINITY ? 0.0f : top) + logf(sum);
}
template <class T> const char* kbk_attention_fwd_online(const kbk_args* a, kbk_stream st) {
    return kbki_attn_launch<T>(a, kbk_attention_fwd_online_k<T, 64>, kbk_attention_fwd_online_k<T, 128>, 8, 256, 0, 0,
                               st);
}

// ---- The kernels without tensor cores that add one idea each end here. The kernels after this line are optimised.

/*  Variant `flash` holds three f32 tiles in shared memory: 64 rows of q, 64 rows of k or v, and the
    probabilities. Thread (y, x) of 16 x 16 threads computes rows 4 y to 4 y + 3 of the scores and of the
    output. In these rows, the thread computes columns x, x + 16, x + 32 and x + 48 of a tile of scores, and
    columns 4 x to 4 x + 3 of every 64 columns of the output. Rows in shared memory are padded by 4 floats, so
    that 16-byte accesses to neighbouring rows have no bank conflicts. Sixteen lanes of a warp share the same
    four rows, so reductions over a row use shuffles. */
template <int Dim, int Wide>
__device__ __forceinline__ void kbki_attn_scores(const float (*q)[Dim + 4], const float (*k)[Dim + 4], int y, int x,
                                                 float (&s)[4][Wide]) {
#pragma unroll 2
    for (int c = 0; c < Dim; c += 4) {
        float4 a[4], b[Wide];
#pragma unroll
        for (int r = 0; r < 4; r++) a[r] = *reinterpret_cast<const float4*>(&q[4 * y + r][c]);
#pragma unroll
        for (int e = 0; e < Wide; e++) b[e] = *reinterpret_cast<const float4*>(&k[x + 16 * e][c]);
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int e = 0; e < Wide; e++)
                s[r][e] =
                    fmaf(a[r].x, b[e].x, fmaf(a[r].y, b[e].y, fmaf(a[r].z, b[e].z, fmaf(a[r].w, b[e].w, s[r][e]))));
    }
}
/*  Computes, for one step of the online softmax, the base b of the exponentials 2^(score * log2_scale - b).
    In this step, the running maximum rises from `before` to `top`, and the caller multiplies earlier sums by
    `factor`. If the rounding error of b would be large, `coarse` is true (see kbki_coarse) and b is 0; the
    caller then first subtracts `top` from the scores, which is exact. */
struct kbki_attn_base {
    float b, factor;
    bool coarse;
    __device__ __forceinline__ kbki_attn_base(float before, float top, float log2_scale) {
        const float was = __fmul_rn(before, log2_scale);
        b = top == -INFINITY ? 0.0f : __fmul_rn(top, log2_scale), coarse = kbki_coarse(b);
        factor = kbki_coarse(was) ? 0.0f : kbki_exp2(was - b);
        if (coarse) b = 0.0f, factor = kbki_coarse(was) ? kbki_exp2((before - top) * log2_scale) : 0.0f;
    }
};
// Executes one step of the online softmax of a row. Each of 16 threads holds four scores of the row. Replaces the
// scores by exponentials relative to the running maximum. Returns the factor by which earlier sums must be
// multiplied.
__device__ __forceinline__ float kbki_attn_row(float (&s)[4], kbki_pair* run, float log2_scale) {
    float top = fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3]));
#pragma unroll
    for (int d = 8; d; d >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    top = fmaxf(top, run->m);
    float sum = 0;
    const kbki_attn_base base(run->m, top, log2_scale);
    if (base.coarse)
#pragma unroll
        for (int e = 0; e < 4; e++) s[e] -= top;
#pragma unroll
    for (int e = 0; e < 4; e++) sum += s[e] = kbki_exp2(fmaf(s[e], log2_scale, -base.b));
    run->m = top, run->s = run->s * base.factor + sum;
    return base.factor;
}
// Computes o += p v. hidden(r, k) returns whether key k is masked for row r; `hidden` is called only if `doubt` is
// true. For a masked key, the row of v is skipped. Multiplying the row by zero would not be enough, because a
// masked row of v may contain NaN.
template <int Dim, int Tile, class Hidden>
__device__ __forceinline__ void kbki_attn_values(const float (*p)[Tile + 4], const float (*v)[Dim + 4], int y, int x,
                                                 bool doubt, const Hidden& hidden, float (&o)[4][Dim / 16]) {
#pragma unroll 4
    for (int k = 0; k < Tile; k++) {
        float4 b[Dim / 64];
#pragma unroll
        for (int h = 0; h < Dim / 64; h++) b[h] = *reinterpret_cast<const float4*>(&v[k][4 * x + 64 * h]);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float w = p[4 * y + r][k];
            if (doubt && hidden(r, k)) continue;
#pragma unroll
            for (int h = 0; h < Dim / 64; h++) {
                o[r][4 * h] = fmaf(w, b[h].x, o[r][4 * h]);
                o[r][4 * h + 1] = fmaf(w, b[h].y, o[r][4 * h + 1]);
                o[r][4 * h + 2] = fmaf(w, b[h].z, o[r][4 * h + 2]);
                o[r][4 * h + 3] = fmaf(w, b[h].w, o[r][4 * h + 3]);
            }
        }
    }
}
// Kernel of variant `flash`: a CTA processes 64 rows of q and loops over all keys, in tiles of 64 keys.
template <class T, int Dim>
__global__ void __launch_bounds__(256)
    kbk_attention_fwd_flash_k(const T* q_in, const T* k_in, const T* v_in, T* out, float* lse, int n, float scale,
                              int causal, int heads, longlong3 in_step, longlong3 out_step) {
    extern __shared__ uint4 kbki_attn_shared[];
    auto q = reinterpret_cast<float(*)[Dim + 4]>(kbki_attn_shared), kv = q + 64;
    auto p = reinterpret_cast<float(*)[64 + 4]>(kv + 64);
    int tiles = (n + 63) / 64, tile = blockIdx.x % tiles;
    int64_t head = blockIdx.x / tiles, from = kbki_attn_head(in_step, heads, (int)head);
    if (causal) tile = tiles - 1 - tile; // the rows that see the most keys are processed first, for load balance
    int row0 = tile * 64, end = causal && row0 + 64 < n ? row0 + 64 : n, limit[4];
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    float o[4][Dim / 16] = {}, log2_scale = scale * KBKI_LOG2E;
    kbki_pair run[4] = { kbki_pair::none(), kbki_pair::none(), kbki_pair::none(), kbki_pair::none() };
#pragma unroll
    for (int r = 0; r < 4; r++) limit[r] = causal && row0 + 4 * y + r < n ? row0 + 4 * y + r : n - 1;
    out += kbki_attn_head(out_step, heads, (int)head);
    kbki_attn_stage<Dim, 64, 256>(q, q_in + from + row0 * in_step.x, n - row0, in_step.x);
    for (int key = 0; key < end; key += 64) {
        float s[4][4] = {};
        __syncthreads(); // all warps have read v of the previous tile
        kbki_attn_stage<Dim, 64, 256>(kv, k_in + from + key * in_step.x, n - key, in_step.x);
        __syncthreads();
        kbki_attn_scores<Dim>(q, kv, y, x, s);
#pragma unroll
        for (int r = 0; r < 4; r++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (key + x + 16 * e > limit[r]) s[r][e] = -INFINITY;
            float factor = kbki_attn_row(s[r], &run[r], log2_scale);
#pragma unroll
            for (int c = 0; c < Dim / 16; c++) o[r][c] *= factor;
#pragma unroll
            for (int e = 0; e < 4; e++) p[4 * y + r][x + 16 * e] = s[r][e];
        }
        __syncthreads();
        kbki_attn_stage<Dim, 64, 256>(kv, v_in + from + key * in_step.x, n - key, in_step.x);
        __syncthreads();
        kbki_attn_values<Dim, 64>(
            p, kv, y, x, key + 63 > limit[0], [&](int r, int k) { return key + k > limit[r]; }, o);
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        int row = row0 + 4 * y + r;
        float sum = run[r].s;
#pragma unroll
        for (int d = 8; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
        if (row >= n) continue;
        float inv = sum == 0 ? 1.0f : 1.0f / sum;
        float base = run[r].m == -INFINITY ? 0.0f : __fmul_rn(run[r].m, log2_scale);
#pragma unroll
        for (int c = 0; c < Dim / 16; c++)
            out[row * out_step.x + 4 * x + c / 4 * 64 + c % 4] = kbki_type<T>::from(o[r][c] * inv);
        if (x == 0) lse[head * n + row] = KBKI_LN2 * (base + log2f(sum));
    }
}
template <class T> const char* kbk_attention_fwd_flash(const kbk_args* a, kbk_stream st) {
    auto bytes = [](int d) { return (2 * 64 * (d + 4) + 64 * 68) * sizeof(float); };
    return kbki_attn_launch<T, true>(a, kbk_attention_fwd_flash_k<T, 64>, kbk_attention_fwd_flash_k<T, 128>, 64, 256,
                                     bytes(64), bytes(128), st);
}
#endif // __CUDACC__

#if defined(KBK_CUBLAS) && defined(__CUDACC__)
// Softmax kernel of variant `cublas`, with one CTA per row of scores. The kernel converts f32 scores to
// probabilities of type T. The probabilities of masked keys are zero.
template <class T>
__global__ void __launch_bounds__(256)
    kbki_attn_cublas_rows_k(kbki_attn<T> io, const float* scores, T* p, int64_t row0) {
    __shared__ kbki_pair slots[32];
    int64_t n = io.rows, row = blockIdx.x, keys = io.causal ? (row0 + row) % n + 1 : n;
    kbki_pair run = kbki_pair::none();
    scores += row * n, p += row * n;
    for (int64_t j = threadIdx.x; j < keys; j += 256) run.add(scores[j] * io.scale);
    run = kbki_all<kbki_pair, 256>(run, slots);
    const kbki_base base(run.m);
    const float inv = run.s == 0 ? 1.0f : 1.0f / run.s;
    for (int64_t j = threadIdx.x; j < n; j += 256)
        p[j] = kbki_type<T>::from(j < keys ? kbki_exp_from(scores[j] * io.scale, base) * inv : 0.0f);
    if (threadIdx.x == 0) io.lse[row0 + row] = run.m + run.log_sum();
}
template <class T> const char* kbk_attention_fwd_cublas(const kbk_args* a, kbk_stream st) {
    kbki_attn<T> io;
    kbki_cublas* lib;
    cublasHandle_t h;
    const char* why = kbki_attn_args(a, &io);
    if (why || !io.heads) return why;
    if ((why = kbki_check_workspace(a, kbki_scratch_attention_fwd(&a->s, (int)sizeof(T), KBKI_WORD_cublas))) != NULL)
        return why;
    if ((why = kbki_cublas_get(a, st, &lib, &h)) != NULL) return why;
    int64_t n = io.rows, chunk = kbki_attn_chunk(&a->s, (int)sizeof(T));
    int rows = (int)n, d = (int)a->s.cols;
    float *scores = (float*)((char*)a->workspace + KBK_TICKETS + KBKI_CUBLAS_BYTES), one = 1, zero = 0;
    T* p = (T*)(scores + chunk * n * n);
    cudaDataType type = kbki_type<T>::cuda;
    if (!kbki_grid_ok(chunk * n)) return KBKI_TEXT_GRID;
    for (int64_t head = 0; head < io.heads; head += chunk) {
        int64_t count = io.heads - head < chunk ? io.heads - head : chunk, at = head * n * d;
        // cuBLAS is column-major and sees the transpose X' of every row-major X: scores' = k q', o' = v' p'.
        cublasStatus_t e = lib->batched(h, CUBLAS_OP_T, CUBLAS_OP_N, rows, rows, d, &one, io.k + at, type, d, n * d,
                                        io.q + at, type, d, n * d, &zero, scores, CUDA_R_32F, rows, n * n, (int)count,
                                        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        if (e != CUBLAS_STATUS_SUCCESS) return "cublasGemmStridedBatchedEx failed";
        kbki_attn_cublas_rows_k<T><<<(unsigned)(count * n), 256, 0, st>>>(io, scores, p, head * n);
        e = lib->batched(h, CUBLAS_OP_N, CUBLAS_OP_N, d, rows, rows, &one, io.v + at, type, d, n * d, p, type, rows,
                         n * n, &zero, io.o + at, type, d, n * d, (int)count, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT);
        if (e != CUBLAS_STATUS_SUCCESS) return "cublasGemmStridedBatchedEx failed";
    }
    return kbki_launched();
}
#endif // KBK_CUBLAS

/*-----------------------------------------------------------------
  >>attention_mma     Attention forward on tensor cores with mma.sync, and functions that the backward pass uses,
                      too.
-----------------------------------------------------------------*/

/*  attention fwd, flashmma (FlashAttention-2, Dao 2023) ------------------------------------------------------
    A CTA processes 128 rows of q, in 4 warps. Tiles of k and v have 64 rows (128 at d = 64) and are double-buffered by
    cp.async. One barrier per tile is enough: a buffer is refilled after the barrier that follows its last use.
    A warp has 32 rows, so that an operand read from shared memory serves two mma instructions. With 16 rows per warp,
    reading operands takes longer than multiplying (256 bytes per mma of 4096 FLOPs, at 128 bytes per clock and SM).
    An SM runs two CTAs, so that one CTA computes exponentials while the other multiplies. Within a warp, the
    exponentials of 16 keys are interleaved with the mma instructions of the previous 16 keys.
    The output is rarely rescaled: if no row of a warp has a new maximum, the warp skips the multiplications. */
#ifdef __CUDACC__

template <class T> __device__ __forceinline__ uint32_t kbki_attn_pack(float x, float y) {
    float f[2] = { x, y };
    return kbki_word((T*)0, f);
}
/*  Copies Rows rows of Dim elements to shared memory, in units of 16 bytes if `vector` is true. Only the first
    `left` rows exist in memory; the remaining rows of the copy are set to zero. Rows in shared memory are
    padded by 8 elements, so each row starts 4 banks after the previous row. ldmatrix therefore reads eight rows
    without bank conflicts. */
template <int Dim, class T, int Rows>
__device__ __forceinline__ void kbki_attn_plain_stage(T (&to)[Rows][Dim + 8], const T* from, int left, bool vector) {
#pragma unroll
    for (int i = threadIdx.x; i < Rows * Dim / 8; i += 128) {
        int r = i / (Dim / 8), c = i % (Dim / 8) * 8;
        uint4 pack = {};
        if (r < left && vector) pack = *reinterpret_cast<const uint4*>(from + r * Dim + c);
        *reinterpret_cast<uint4*>(&to[r][c]) = pack;
        for (int k = 0; k < 8 && r < left && !vector; k++) to[r][c + k] = from[r * Dim + c + k];
    }
}
// s += a b', for 16 rows of `a` and 8 * Across rows of `b`.
template <class T, int Dim, int Across>
__device__ __forceinline__ void kbki_attn_plain_scores(float (&s)[Across][4], const T (*a)[Dim + 8],
                                                       const T (*b)[Dim + 8]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < Dim; c += 16) {
        uint32_t x[4], y[4];
        kbki_ldmatrix<false>(kbki_shared(&a[lane % 16][c + lane / 16 * 8]), x);
#pragma unroll
        for (int j = 0; j < Across; j += 2) {
            kbki_ldmatrix<false>(kbki_shared(&b[8 * j + lane % 8 + lane / 16 * 8][c + lane / 8 % 2 * 8]), y);
            kbki_mma_fixed<T>(s[j], x, y), kbki_mma_fixed<T>(s[j + 1], x, y + 2);
        }
    }
}
// Computes o += p v. The accumulators of the scores already have the register layout of a first operand of
// mma.sync, so only their type is converted.
template <class T, int Dim, int Across>
__device__ __forceinline__ void kbki_attn_plain_values(float (&o)[Dim / 8][4], const float (&p)[Across][4],
                                                       const T (*v)[Dim + 8]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < Across; j += 2) {
        const float(&left)[4] = p[j], (&right)[4] = p[j + 1];
        uint32_t y[4], x[4] = { kbki_attn_pack<T>(left[0], left[1]), kbki_attn_pack<T>(left[2], left[3]),
                                kbki_attn_pack<T>(right[0], right[1]), kbki_attn_pack<T>(right[2], right[3]) };
#pragma unroll
        for (int c = 0; c < Dim; c += 16) {
            kbki_ldmatrix<true>(kbki_shared(&v[8 * j + lane % 16][c + lane / 16 * 8]), y);
            kbki_mma_fixed<T>(o[c / 8], x, y), kbki_mma_fixed<T>(o[c / 8 + 1], x, y + 2);
        }
    }
}
// Kernel of variant `warpmma`: a warp processes 16 rows of q, and 32 keys at a time. In each block of 16 x 8
// scores, lane l holds columns 2 (l % 4) and 2 (l % 4) + 1 of rows l / 4 (h = 0) and l / 4 + 8 (h = 1). Four lanes
// hold the scores of a row.
template <class T, int Dim>
__global__ void __launch_bounds__(128)
    kbk_attention_fwd_warpmma_k(const T* q_in, const T* k_in, const T* v_in, T* out, float* lse, int n, float scale,
                                int causal) {
    __shared__ __align__(16) T q[64][Dim + 8], k[32][Dim + 8], v[32][Dim + 8];
    int tiles = (n + 63) / 64, row0 = blockIdx.x % tiles * 64;
    int lane = threadIdx.x % 32, y = threadIdx.x / 32 * 16, end = causal && row0 + 64 < n ? row0 + 64 : n;
    int64_t head = (int64_t)(blockIdx.x / tiles) * n;
    bool vector = (((uintptr_t)q_in | (uintptr_t)k_in | (uintptr_t)v_in) & 15) == 0;
    float o[Dim / 8][4] = {}, top[2] = { -INFINITY, -INFINITY }, sum[2] = {};
    kbki_attn_plain_stage<Dim>(q, q_in + (head + row0) * Dim, n - row0, vector);
    for (int key = 0; key < end; key += 32) {
        float s[4][4] = {};
        __syncthreads(); // all warps have read the previous tile of k and v
        kbki_attn_plain_stage<Dim>(k, k_in + (head + key) * Dim, n - key, vector);
        kbki_attn_plain_stage<Dim>(v, v_in + (head + key) * Dim, n - key, vector);
        __syncthreads();
        kbki_attn_plain_scores<T, Dim>(s, q + y, k);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = row0 + y + lane / 4 + 8 * h, last = causal && row < n ? row : n - 1;
            float now = top[h];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                float& x = s[e / 2][2 * h + e % 2];
                x = key + e / 2 * 8 + lane % 4 * 2 + e % 2 <= last ? __fmul_rn(x, scale) : -INFINITY;
                now = fmaxf(now, x);
            }
            now = kbki_warp_all<kbki_max, 4>(now);
            float base = now == -INFINITY ? 0.0f : now, factor = expf(top[h] - base);
            sum[h] *= factor, top[h] = now;
#pragma unroll
            for (int e = 0; e < 8; e++) sum[h] += s[e / 2][2 * h + e % 2] = expf(s[e / 2][2 * h + e % 2] - base);
#pragma unroll
            for (int c = 0; c < Dim / 8; c++) o[c][2 * h] *= factor, o[c][2 * h + 1] *= factor;
        }
        kbki_attn_plain_values<T, Dim>(o, s, v);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int row = row0 + y + lane / 4 + 8 * h;
        float all = kbki_warp_all<kbki_sum<float>, 4>(sum[h]), inv = all == 0 ? 1.0f : 1.0f / all;
        if (row >= n) continue;
        T* to = out + (head + row) * Dim + lane % 4 * 2;
#pragma unroll
        for (int e = 0; e < Dim / 4; e++) to[e / 2 * 8 + e % 2] = kbki_type<T>::from(o[e / 2][2 * h + e % 2] * inv);
        if (lane % 4 == 0) lse[head + row] = (top[h] == -INFINITY ? 0.0f : top[h]) + logf(all);
    }
}
template <class T> const char* kbk_attention_fwd_warpmma(const kbk_args* a, kbk_stream st) {
    const char* why = kbki_needs_mma<T>();
    return why ? why
               : kbki_attn_launch<T>(a, kbk_attention_fwd_warpmma_k<T, 64>, kbk_attention_fwd_warpmma_k<T, 128>, 64,
                                     128, 0, 0, st);
}

// ---- The kernels that add one idea each end here.

// Copies 16 bytes to shared memory synchronously, from an address that is not 16-byte aligned. If `valid` is
// false, writes zeros.
__device__ __forceinline__ void kbki_attn_copy_ones(uint32_t to, const void* from, bool valid) {
    const unsigned short* h = (const unsigned short*)from;
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
        unsigned short x = valid ? h[i] : (unsigned short)0;
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(to + 2 * i), "h"(x) : "memory");
    }
}
// Loads a tile of Rows rows of Dim elements to shared memory, in chunks of 16 bytes. Swizzle: chunk c of row r is
// stored at position c ^ (r & 7) of the row. ldmatrix therefore reads the same chunk of eight rows without bank
// conflicts. ld: elements between rows in memory.
template <class T, int Dim, int Rows, int Threads, class Ld = int>
__device__ __forceinline__ void kbki_attn_fetch(uint32_t to, const T* from, int left, bool vector, Ld ld = Dim) {
    constexpr int Chunks = Dim / 8, Step = Threads / Chunks;
    static_assert(Step % 8 == 0 && Rows % Step == 0, "a thread copies the same swizzled chunk of each row");
    int r = threadIdx.x / Chunks, c = threadIdx.x % Chunks;
    to += r * 2 * Dim + ((c ^ (r & 7)) << 4), from += r * ld + c * 8;
    if (vector) {
#pragma unroll
        for (int p = 0; p < Rows; p += Step) kbki_ahead_copy_if(to + p * 2 * Dim, from + p * ld, r + p < left);
    } else {
#pragma unroll 1
        for (int p = 0; p < Rows; p += Step) kbki_attn_copy_ones(to + p * 2 * Dim, from + p * ld, r + p < left);
    }
}
// Position from which a lane reads a 16 x 16 block of a tile by ldmatrix. left, right: row of the block that the
// lane reads; left_bit, right_bit: index of the 16-byte chunk in this row, after the swizzle. `left` is for a
// first operand of mma, and, with ldmatrix .trans, also for a second operand that is stored by rows. `right` is
// for a second operand that is stored by columns.
struct kbki_attn_lane {
    uint32_t left, right, left_bit, right_bit;
};
__device__ __forceinline__ kbki_attn_lane kbki_attn_lanes() {
    uint32_t l = threadIdx.x % 32;
    return { l & 15, (l & 7) + ((l >> 4) << 3), (l >> 4) ^ (l & 7), ((l >> 3) & 1) ^ (l & 7) };
}

/*  Stores a warp's results to `to`: 32 rows of 8 * Across columns, from 16-byte chunk `first` of a row on. Rows of
    `to` begin ld elements apart. `to` has only `left` rows, and further results are not stored. The results are
    first written to the same columns of 32 rows in shared memory, at address `rows`. The stores to `to` are
    therefore coalesced; a direct store from the accumulators would write only 16 bytes to each of eight rows. */
template <class T, int Dim, int Across>
__device__ __forceinline__ void kbki_attn_write(T* to, uint32_t rows, const float (&x)[2][Across][4], int first,
                                                int left, bool vector, kbki_attn_lane at, int64_t ld = Dim) {
#pragma unroll
    for (int i = 0; i < Across; i++) {
        const float(&a)[4] = x[i % 2][i & ~1], (&b)[4] = x[i % 2][i | 1];
        const uint32_t r[4] = { kbki_attn_pack<T>(a[0], a[1]), kbki_attn_pack<T>(a[2], a[3]),
                                kbki_attn_pack<T>(b[0], b[1]), kbki_attn_pack<T>(b[2], b[3]) };
        kbki_stmatrix(rows + (i % 2 * 16 + at.left) * 2 * Dim + ((at.left_bit ^ (first + (i & ~1))) << 4), r);
    }
    __syncwarp();
    int row = threadIdx.x % 32 / Across, c = first + threadIdx.x % Across;
#pragma unroll 4
    for (; row < 32; row += 32 / Across) {
        uint4 w = kbki_shared_pack(rows + row * 2 * Dim + ((c ^ (row & 7)) << 4));
        if (row >= left) continue;
        T* p = to + (int64_t)row * ld + c * 8;
        if (vector)
            *reinterpret_cast<uint4*>(p) = w;
        else
            for (int k = 0; k < 8; k++) p[k] = reinterpret_cast<const T*>(&w)[k];
    }
}

// Computes the product a b' in 16 x 8 blocks s[m][n]. `a` and `b` are in shared memory, as rows of Dim elements.
// Operands are loaded `Ahead` steps before the mma that uses them, because a scheduler has only one or two other
// warps, too few to hide the latency of operand loads.
template <class T, int Dim, int Down, int Across>
__device__ __forceinline__ void kbki_attn_rows_by_rows(float (&s)[Down][Across][4], uint32_t a, uint32_t b,
                                                       kbki_attn_lane at) {
    constexpr int Pairs = Across / 2, Steps = Dim / 16 * Pairs, Ahead = Down * Across > 8 ? 2 : 1;
    uint32_t x[2][Down][4], y[Ahead + 1][4];
    a += at.left * 2 * Dim, b += at.right * 2 * Dim;
#pragma unroll
    for (int e = 0; e < Down * Across * 4; e++) s[e / 4 / Across][e / 4 % Across][e % 4] = 0;
#pragma unroll
    for (int m = 0; m < Down; m++) kbki_ldmatrix<false>(a + m * 32 * Dim + (at.left_bit << 4), x[0][m]);
#pragma unroll
    for (int t = -Ahead; t < Steps; t++) {
        int next = t + Ahead, k = t / Pairs, n = t % Pairs * 2, soon = k + 1;
        if (next < Steps)
            kbki_ldmatrix<false>(b + next % Pairs * 32 * Dim + ((at.right_bit ^ (next / Pairs * 2)) << 4),
                                 y[next % (Ahead + 1)]);
        if (t < 0) continue;
        if (n == (Pairs > 2 ? 2 : 0) && soon < Dim / 16)
#pragma unroll
            for (int m = 0; m < Down; m++)
                kbki_ldmatrix<false>(a + m * 32 * Dim + ((at.left_bit ^ (2 * soon)) << 4), x[soon % 2][m]);
#pragma unroll
        for (int m = 0; m < Down; m++) {
            kbki_mma_free<T>(s[m][n], x[k % 2][m], y[t % (Ahead + 1)]);
            kbki_mma_free<T>(s[m][n + 1], x[k % 2][m], y[t % (Ahead + 1)] + 2);
        }
    }
}
// Computes c[m] += a[m] b. In shared memory, b has 16 * Deep rows of Dim elements. The product uses 8 * Across
// columns of b, from 16-byte chunk `first` on.
template <class T, int Dim, int Down, int Deep, int Across>
__device__ __forceinline__ void kbki_attn_by_rows(float (&c)[Down][Across][4], const uint32_t (&a)[Down][Deep][4],
                                                  uint32_t b, int first, kbki_attn_lane at) {
    constexpr int Pairs = Across / 2, Steps = Deep * Pairs, Ahead = Down == 1 ? 2 : 1;
    uint32_t y[Ahead + 1][4];
    b += at.left * 2 * Dim;
#pragma unroll
    for (int t = -Ahead; t < Steps; t++) {
        int next = t + Ahead, n = t % Pairs * 2, now = t % (Ahead + 1);
        if (next < Steps)
            kbki_ldmatrix<true>(b + next / Pairs * 32 * Dim + ((at.left_bit ^ (first + next % Pairs * 2)) << 4),
                                y[next % (Ahead + 1)]);
        if (t < 0) continue;
#pragma unroll
        for (int m = 0; m < Down; m++) {
            kbki_mma_free<T>(c[m][n], a[m][t / Pairs], y[now]);
            kbki_mma_free<T>(c[m][n + 1], a[m][t / Pairs], y[now] + 2);
        }
    }
}
// Sets the scores of masked keys to -inf. low, high: last key that the thread's first row sees, and last key that
// its second row sees. key: first key of the tile.
template <int Keys> __device__ __forceinline__ void kbki_attn_hide(float* s, int key, int low, int high) {
    const int column = key + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < Keys / 2; i++)
        if (column + i / 4 * 8 + i % 2 > (i / 2 % 2 ? high : low)) s[i] = -INFINITY;
}
// Online softmax for the thread's two rows of a 16-row block: updates the maximum m and the base of the
// exponentials (see kbki_attn_base). Returns whether any row of the warp has a new maximum. If a row has a new
// maximum, the caller must multiply earlier sums by `factor`.
template <int Across>
__device__ __forceinline__ bool kbki_attn_top(float (&s)[Across][4], float (&m)[2], float (&base)[2],
                                              float (&factor)[2], float log2_scale) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float top = fmaxf(s[0][2 * h], s[0][2 * h + 1]);
#pragma unroll
        for (int n = 1; n < Across; n++) top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        top = fmaxf(top, m[h]);
        const kbki_attn_base now(m[h], top, log2_scale);
        base[h] = now.b, factor[h] = now.factor, m[h] = top;
        if (now.coarse)
#pragma unroll
            for (int n = 0; n < Across; n++) s[n][2 * h] -= top, s[n][2 * h + 1] -= top;
    }
    return __any_sync(~0u, !(factor[0] == 1.0f && factor[1] == 1.0f));
}
// Converts two neighbouring 8-column blocks of scores to probabilities, adds the probabilities to `l`, and packs
// them into `p` as a first operand of mma.
template <class T>
__device__ __forceinline__ void kbki_attn_probabilities(uint32_t (&p)[4], const float (&s)[4], const float (&t)[4],
                                                        const float (&base)[2], float (&l)[2], float log2_scale) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const float(&from)[4] = e < 2 ? s : t;
        float x = kbki_exp2(fmaf(from[e % 2 * 2], log2_scale, -base[e % 2]));
        float y = kbki_exp2(fmaf(from[e % 2 * 2 + 1], log2_scale, -base[e % 2]));
        l[e % 2] += x + y;
        p[e] = kbki_attn_pack<T>(x, y);
    }
}
// Epilogue: divides `o` by the sums `l`, and stores `o` and lse of a warp's 32 rows. Only the first `left` rows of
// the warp exist. rows: shared memory for 32 rows, used by this warp only.
template <class T, int Dim>
__device__ __forceinline__ void kbki_attn_end(T* out, float* lse, int left, float (&o)[2][Dim / 8][4],
                                              const float (&m)[2][2], const float (&l)[2][2], float log2_scale,
                                              uint32_t rows, kbki_attn_lane at, bool vector, int64_t ld) {
    int lane = threadIdx.x % 32;
    if (left <= 0) return;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int r = lane / 4 + 8 * i;
        float sum = l[i / 2][i % 2] + __shfl_xor_sync(~0u, l[i / 2][i % 2], 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        float inv = sum == 0 ? 1.0f : 1.0f / sum, top = m[i / 2][i % 2];
#pragma unroll
        for (int n = 0; n < Dim / 8; n++) o[i / 2][n][i % 2 * 2] *= inv, o[i / 2][n][i % 2 * 2 + 1] *= inv;
        if (lane % 4 == 0 && r < left)
            lse[r] = KBKI_LN2 * ((top == -INFINITY ? 0.0f : __fmul_rn(top, log2_scale)) + log2f(sum));
    }
    kbki_attn_write<T, Dim, Dim / 8>(out, rows, o, 0, left, vector, at, ld);
}

// Processes 64 keys for the 32 rows of a warp. Edge: whether some of the keys may be masked. The exponentials of
// 16 keys and the mma instructions of the previous 16 keys are in one unrolled block, so that the compiler can
// interleave them.
template <class T, int Dim, bool Edge>
__device__ __forceinline__ void kbki_attn_step(float (&o)[2][Dim / 8][4], float (&m)[2][2], float (&l)[2][2],
                                               uint32_t q, uint32_t k, uint32_t v, kbki_attn_lane at,
                                               float log2_scale, int key, int row, int last, int causal) {
    float s[2][8][4], base[2][2], factor[2];
    kbki_attn_rows_by_rows<T, Dim, 2, 8>(s, q, k, at);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int low = row + 16 * i + threadIdx.x % 32 / 4, high = low + 8;
        if (Edge)
            kbki_attn_hide<64>(&s[i][0][0], key, causal && low < last ? low : last,
                               causal && high < last ? high : last);
        if (kbki_attn_top<8>(s[i], m[i], base[i], factor, log2_scale)) {
#pragma unroll
            for (int e = 0; e < Dim / 2; e++) o[i][e / 4][e % 4] *= factor[e % 4 / 2];
            l[i][0] *= factor[0], l[i][1] *= factor[1];
        }
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
        uint32_t p[2][1][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            kbki_attn_probabilities<T>(p[i][0], s[i][2 * c], s[i][2 * c + 1], base[i], l[i], log2_scale);
        kbki_attn_by_rows<T, Dim, 2, 1, Dim / 8>(o, p, v + c * 32 * Dim, 0, at);
    }
}
// Number of keys per buffer of K or V, chosen so that two CTAs fit into the shared memory of an SM.
template <int Dim> struct kbki_attn_keys { static constexpr int n = Dim == 64 ? 128 : 64; };
// Kernel of variant `flashmma`: a CTA processes 128 rows of q in four warps of 32 rows each. K and V are
// double-buffered by cp.async.
template <class T, int Dim>
__global__ void __launch_bounds__(128, 2)
    kbk_attention_fwd_flashmma_k(const T* q_in, const T* k_in, const T* v_in, T* out, float* lse, int n, float scale,
                                 int causal, int heads, longlong3 in_step, longlong3 out_step) {
    extern __shared__ uint4 kbki_attn_shared[];
    constexpr int Keys = kbki_attn_keys<Dim>::n;
    constexpr uint32_t TileBytes = Keys * 2 * Dim;
    const uint32_t q = kbki_shared(kbki_attn_shared), ring = q + 128 * 2 * Dim;
    const kbki_attn_lane at = kbki_attn_lanes();
    const int tiles = (n + 127) / 128;
    const bool vector = (((uintptr_t)q_in | (uintptr_t)k_in | (uintptr_t)v_in | (uintptr_t)out) & 15) == 0 &&
                        ((in_step.x | in_step.y | in_step.z | out_step.x | out_step.y | out_step.z) & 7) == 0;
    const int64_t head = blockIdx.x / tiles;
    int tile = blockIdx.x % tiles;
    // The rows that see the most keys are processed first, for load balance.
    if (causal) tile = tiles - 1 - tile;
    // row0: first row of the CTA; mine: first row of the warp
    const int warp = threadIdx.x / 32, row0 = tile * 128, mine = row0 + 32 * warp;
    const int end = causal && row0 + 128 < n ? row0 + 128 : n;
    const int seen = causal && mine + 31 < n - 1 ? mine + 31 : n - 1, plain = causal && mine < n - 1 ? mine : n - 1;
    const int64_t from = kbki_attn_head(in_step, heads, (int)head), ld = in_step.x;
    const T *k = k_in + from, *v = v_in + from;
    const float log2_scale = scale * KBKI_LOG2E;
    float o[2][Dim / 8][4] = {}, m[2][2], l[2][2] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) m[i / 2][i % 2] = -INFINITY;
    kbki_attn_fetch<T, Dim, 128, 128>(q, q_in + from + row0 * ld, n - row0, vector, ld);
    kbki_attn_fetch<T, Dim, Keys, 128>(ring, k, n, vector, ld);
    kbki_attn_fetch<T, Dim, Keys, 128>(ring + TileBytes, v, n, vector, ld);
    kbki_ahead_close();
    uint32_t stage = ring;
#pragma unroll 1
    for (int key = 0; key < end; key += Keys) {
        const uint32_t now = stage, rows = q + warp * 64 * Dim;
        const int next = key + Keys;
        stage = ring + ring + 2 * TileBytes - stage; // address of the other buffer
        kbki_ahead_wait<0>();
        __syncthreads();
        if (next < end) {
            kbki_attn_fetch<T, Dim, Keys, 128>(stage, k + next * ld, n - next, vector, ld);
            kbki_attn_fetch<T, Dim, Keys, 128>(stage + TileBytes, v + next * ld, n - next, vector, ld);
            kbki_ahead_close();
        }
#pragma unroll 1
        for (int part = 0; part < Keys; part += 64) {
            const uint32_t kk = now + part * 2 * Dim, vv = kk + TileBytes;
            if (key + part + 63 <= plain)
                kbki_attn_step<T, Dim, false>(o, m, l, rows, kk, vv, at, log2_scale, 0, 0, 0, 0);
            else if (key + part <= seen)
                kbki_attn_step<T, Dim, true>(o, m, l, rows, kk, vv, at, log2_scale, key + part, mine, n - 1, causal);
        }
    }
    out += kbki_attn_head(out_step, heads, (int)head) + mine * out_step.x;
    kbki_attn_end<T, Dim>(out, lse + head * n + mine, n - mine, o, m, l, log2_scale, q + warp * 64 * Dim, at, vector,
                          out_step.x);
}
template <class T> const char* kbk_attention_fwd_flashmma(const kbk_args* a, kbk_stream st) {
    auto bytes = [](size_t d, size_t keys) { return (128 + 4 * keys) * 2 * d; };
    const char* why = kbki_needs(80);
    return why ? why
               : kbki_attn_launch<T, true>(a, kbk_attention_fwd_flashmma_k<T, 64>,
                                           kbk_attention_fwd_flashmma_k<T, 128>, 128, 128,
                                           bytes(64, kbki_attn_keys<64>::n), bytes(128, kbki_attn_keys<128>::n), st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>attention_hopper     Attention forward with wgmma and TMA, for compute capability 9.0 only: rungs 7 to 9, each of
                         which adds one idea.
-----------------------------------------------------------------*/

/*  attention fwd, continued: f16 and bf16 on compute capability 9.0 -----------------------------------------
    7 flashws  wgmma and TMA: one thread of a producer warpgroup loads tiles of 128 keys into a ring of slots. Two
               consumer warpgroups of 64 rows compute scores, exponentials and products one after the other
               <- no thread moves operands. Both operands of the scores are in shared memory; probabilities stay in
               registers as the first operand of the second product
    8 flashrs  the kernel of rung 7 with three consumer warpgroups of 160 registers per thread
               <- while one consumer computes exponentials and another waits for its products, the third keeps the
               tensor cores busy. A tile serves 192 rows instead of 128
    9 pingpong each of two consumers issues the scores of a tile before the previous tile's product with V. The
               consumers issue products alternately (ping-pong schedule; FlashAttention-3, Shah et al. 2024, section 3)
               <- the tensor cores have products to execute while a warpgroup computes exponentials
    10 flashpp persistent CTAs take the next rows of q from a counter (dynamic scheduling).
               With a causal mask, the rows that see the most keys come first. Two to four consumers, chosen by
               shape. In >>attention_wgmma
               <- the next operands are loaded while results are stored. No CTA starts a long item when the others
               are about to finish. Work items that would not fill the last wave are cut into smaller ones
    bound by   arithmetic, and special functions. One exponential per score, at 16 per clock and SM, takes half the
               time of the products at d = 128, and as long as the products at d = 64

    Keys beyond the last one are read as zeros (TMA), and their scores are masked like scores of causally masked keys.
    TMA requires q, k and v to be aligned to 16 bytes; o and lse may have any alignment. */
#define KBKI_TEXT_TMA_HEADS "TMA needs q, k and v, and their strides, aligned to 16 bytes: use flashmma"
#ifdef __CUDACC__

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// --- shared by rungs 7 to 10. A warpgroup has 64 rows of q; thread t has row t / 32 * 16 + t % 32 / 4, and this row
//     plus 8.
__device__ __forceinline__ void kbki_fa_arrive(uint64_t* bar) {
    if (threadIdx.x % 128 == 0) kbki_bar_arrive(bar);
}
// Copies `high` rows of Panels * 64 elements to shared memory by TMA, one panel of 64 columns after the other.
// Only one thread calls kbki_fa_fetch.
template <int Panels, bool Strides = false>
__device__ __forceinline__ void kbki_fa_fetch(char* to, const kbki_map* map, uint64_t* full, int row, int high,
                                              int head, int span = 0) {
    for (int p = 0; p < Panels; p++)
        if (Strides)
            kbki_tma_load_4d(to + p * high * 128, map, full, p * 64, row, head % span, head / span);
        else
            kbki_tma_load_3d<false>(to + p * high * 128, map, full, p * 64, row, head);
}
// Sets the scores of masked keys to -inf. key: first key of the tile; row: first row of the warpgroup.
template <int Keys> __device__ __forceinline__ void kbki_fa_hide(float* s, int key, int row, int n, int causal) {
    const int mine = causal ? row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 : n - 1;
    kbki_attn_hide<Keys>(s, key, min(mine, n - 1), min(mine + 8, n - 1));
}
// Executes the online softmax: replaces scores by exponentials relative to the running maximum `m`, and adds the
// exponentials to the sums `l`. scale: converts scores to base-2 logarithms. factor: receives the factors by which
// earlier sums must be multiplied.
template <int Keys>
__device__ __forceinline__ void kbki_fa_exponentials(float* s, float (&m)[2], float (&l)[2], float (&factor)[2],
                                                     float scale) {
    float base[2], sum[2][2] = {};
    bool coarse[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float top = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
        for (int i = 4; i < Keys / 2; i += 4) top = fmaxf(top, fmaxf(s[i + 2 * h], s[i + 2 * h + 1]));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        top = fmaxf(top, m[h]);
        const kbki_attn_base now(m[h], top, scale);
        m[h] = top, factor[h] = now.factor, base[h] = now.b, coarse[h] = now.coarse;
    }
    if (coarse[0] || coarse[1])
#pragma unroll
        for (int i = 0; i < Keys / 2; i++) s[i] -= coarse[i / 2 % 2] ? m[i / 2 % 2] : 0;
#pragma unroll
    for (int i = 0; i < Keys / 2; i++) sum[i / 2 % 2][i % 2] += s[i] = kbki_exp2(fmaf(s[i], scale, -base[i / 2 % 2]));
#pragma unroll
    for (int h = 0; h < 2; h++) l[h] = l[h] * factor[h] + (sum[h][0] + sum[h][1]);
}
// Multiplies the sums `o` by `factor` if any row of the warp has a new maximum. In most calls, no row has a new
// maximum.
template <int Dim> __device__ __forceinline__ void kbki_fa_rescale(float* o, const float (&factor)[2]) {
    if (!__any_sync(~0u, !(factor[0] == 1.0f && factor[1] == 1.0f))) return;
#pragma unroll
    for (int i = 0; i < Dim / 2; i++) o[i] *= factor[i / 2 % 2];
}
// Stores lse of a warpgroup's 64 finished rows, from `row` on. Computes the factors `inv`, by which the sums `o`
// must be multiplied. n: number of rows of the head.
__device__ __forceinline__ void kbki_fa_close(float* lse, int row, int n, const float (&m)[2], const float (&l)[2],
                                              float scale, float (&inv)[2]) {
    row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = l[h] + __shfl_xor_sync(~0u, l[h], 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        inv[h] = sum == 0 ? 1.0f : kbki_reciprocal(sum);
        if (threadIdx.x % 4 == 0 && row + 8 * h < n)
            lse[row + 8 * h] = KBKI_LN2 * ((m[h] == -INFINITY ? 0.0f : __fmul_rn(m[h], scale)) + log2f(sum));
    }
}
// Multiplies the sums `o` of 64 finished rows by the factors `inv` and stores the results. ld: elements between rows.
template <class T, int Dim>
__device__ __forceinline__ void kbki_fa_finish(T* to, int row, int n, const float (&inv)[2], float* o,
                                               int64_t ld = Dim) {
    kbki_mm<T> out = {};
#pragma unroll
    for (int i = 0; i < Dim / 2; i++) o[i] *= inv[i / 2 % 2];
    out.c = to, out.m = n, out.n = Dim, out.ldc = ld;
    kbki_wg_finish<T, Dim>(out, row, 0, o);
}
#endif // __CUDA_ARCH_FEAT_SM90_ALL

// Kernel of variant `flashws` and, with three consumer warpgroups, of variant `flashrs`. The last warpgroup is the
// producer. One thread of the producer loads q, then fills a ring of slots; each slot has 128 rows of K and of V.
// Each consumer warpgroup processes 64 rows of q.
template <class T, int Dim, int Groups>
__global__ void __launch_bounds__(128 * (Groups + 1), 1)
    kbk_attention_fwd_flashws_k(const __grid_constant__ kbki_map map_q, const __grid_constant__ kbki_map map_k,
                                const __grid_constant__ kbki_map map_v, T* out, float* lse, int n, float scale,
                                int causal) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Stages = 2, Tile = 128 * Dim * 2, Queries = 64 * Dim * 2; // Tile, Queries: bytes
    extern __shared__ uint4 kbki_attn_shared[];
    __shared__ uint64_t q_full, k_full[Stages], v_full[Stages], empty[Stages];
    char *q = kbki_wg_align(kbki_attn_shared), *ring = q + Groups * Queries;
    const int tiles = (n + 64 * Groups - 1) / (64 * Groups), head = blockIdx.x / tiles;
    // with a causal mask, the rows that see the most keys are processed first, for load balance
    const int row0 = (causal ? tiles - 1 - blockIdx.x % tiles : blockIdx.x % tiles) * 64 * Groups;
    const int steps = ((causal ? min(n, row0 + 64 * Groups) : n) + 127) / 128;
    const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        kbki_bar_init(&q_full, 1);
        for (int i = 0; i < Stages; i++)
            kbki_bar_init(k_full + i, 1), kbki_bar_init(v_full + i, 1), kbki_bar_init(empty + i, Groups);
        kbki_bar_ready();
    }
    __syncthreads();
    if (group == Groups) { // producer
        kbki_wg_give<32>();
        if (threadIdx.x % 128) return;
        kbki_bar_expect(&q_full, Groups * Queries);
        for (int g = 0; g < Groups; g++)
            kbki_fa_fetch<Dim / 64>(q + g * Queries, &map_q, &q_full, row0 + g * 64, 64, head);
        for (int step = 0; step < steps; step++) {
            const int slot = step % Stages;
            kbki_bar_wait(empty + slot, step / Stages % 2 ^ 1);
            kbki_bar_expect(k_full + slot, Tile);
            kbki_fa_fetch<Dim / 64>(ring + slot * 2 * Tile, &map_k, k_full + slot, step * 128, 128, head);
            kbki_bar_expect(v_full + slot, Tile);
            kbki_fa_fetch<Dim / 64>(ring + slot * 2 * Tile + Tile, &map_v, v_full + slot, step * 128, 128, head);
        }
        return;
    }
    kbki_wg_take<Groups == 2 ? 232 : 160>();
    kbki_wg_operand<true> a, b;
    kbki_wg_operand<false, 128> c;
    const int row = row0 + group * 64;
    float s[64], o[Dim / 2] = {}, m[2] = { -INFINITY, -INFINITY }, l[2] = {}, factor[2];
    uint32_t p[32];
    a.set(q + group * Queries), b.set(ring), c.set(ring + Tile);
    auto scores = [&](int step) {
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < Dim / 16; k++) // panels of q are 8192 bytes apart, panels of K are 16384 bytes apart
            kbki_wgmma<T, 128>::template shared<0, 0>(
                s, a.at(k / 4 * 512 + k % 4 * a.step16),
                b.at(step % Stages * (2 * Tile / 16) + k / 4 * 1024 + k % 4 * b.step16), k != 0);
        kbki_wg_commit();
    };
    auto values = [&](int step) {
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < 8; k++)
            kbki_wgmma<T, Dim>::template registers<1>(o, p + k * 4,
                                                      c.at(step % Stages * (2 * Tile / 16) + k * c.step16), 1);
        kbki_wg_commit();
    };
    auto softmax = [&](int step) {
        if (step * 128 + 127 > (causal ? row : n - 1)) kbki_fa_hide<128>(s, step * 128, row, n, causal);
        kbki_fa_exponentials<128>(s, m, l, factor, scale);
    };
    auto pack = [&]() {
#pragma unroll
        for (int i = 0; i < 32; i++) p[i] = kbki_word((T*)0, s + 2 * i);
    };
    kbki_bar_wait(&q_full, 0);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        kbki_bar_wait(k_full + step % Stages, step / Stages % 2);
        scores(step);
        kbki_wg_wait<0>();
        kbki_wg_hold<64>(s);
        softmax(step);
        kbki_fa_rescale<Dim>(o, factor), pack();
        kbki_bar_wait(v_full + step % Stages, step / Stages % 2);
        values(step);
        kbki_wg_wait<0>();
        kbki_wg_hold<Dim / 2>(o);
        kbki_fa_arrive(empty + step % Stages);
    }
    kbki_fa_close(lse + (int64_t)head * n, row, n, m, l, scale, factor);
    kbki_fa_finish<T, Dim>(out + (int64_t)head * n * Dim, row, n, factor, o);
#endif
}
// Kernel of variant `pingpong`: a consumer issues two products together: the scores of a tile, and the product of
// the previous tile's probabilities with V. The tensor cores are therefore busy during the exponentials. The two
// consumers issue products alternately.
template <class T, int Dim>
__global__ void __launch_bounds__(384, 1)
    kbk_attention_fwd_pingpong_k(const __grid_constant__ kbki_map map_q, const __grid_constant__ kbki_map map_k,
                                 const __grid_constant__ kbki_map map_v, T* out, float* lse, int n, float scale,
                                 int causal) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int Groups = 2, Stages = 3, Tile = 128 * Dim * 2, Queries = 64 * Dim * 2; // Tile, Queries: bytes
    extern __shared__ uint4 kbki_attn_shared[];
    __shared__ uint64_t q_full, k_full[Stages], v_full[Stages], empty[Stages];
    char *q = kbki_wg_align(kbki_attn_shared), *ring = q + Groups * Queries;
    const int tiles = (n + 64 * Groups - 1) / (64 * Groups), head = blockIdx.x / tiles;
    // with a causal mask, the rows that see the most keys are processed first, for load balance
    const int row0 = (causal ? tiles - 1 - blockIdx.x % tiles : blockIdx.x % tiles) * 64 * Groups;
    const int steps = ((causal ? min(n, row0 + 64 * Groups) : n) + 127) / 128;
    const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        kbki_bar_init(&q_full, 1);
        for (int i = 0; i < Stages; i++)
            kbki_bar_init(k_full + i, 1), kbki_bar_init(v_full + i, 1), kbki_bar_init(empty + i, Groups);
        kbki_bar_ready();
    }
    __syncthreads();
    if (group == Groups) { // producer
        kbki_wg_give<32>();
        if (threadIdx.x % 128) return;
        kbki_bar_expect(&q_full, Groups * Queries);
        for (int g = 0; g < Groups; g++)
            kbki_fa_fetch<Dim / 64>(q + g * Queries, &map_q, &q_full, row0 + g * 64, 64, head);
        for (int step = 0; step < steps; step++) {
            const int slot = step % Stages;
            kbki_bar_wait(empty + slot, step / Stages % 2 ^ 1);
            kbki_bar_expect(k_full + slot, Tile);
            kbki_fa_fetch<Dim / 64>(ring + slot * 2 * Tile, &map_k, k_full + slot, step * 128, 128, head);
            kbki_bar_expect(v_full + slot, Tile);
            kbki_fa_fetch<Dim / 64>(ring + slot * 2 * Tile + Tile, &map_v, v_full + slot, step * 128, 128, head);
        }
        return;
    }
    kbki_wg_take<232>();
    kbki_wg_operand<true> a, b;
    kbki_wg_operand<false, 128> c;
    const int row = row0 + group * 64;
    float s[64], o[Dim / 2] = {}, m[2] = { -INFINITY, -INFINITY }, l[2] = {}, factor[2];
    uint32_t p[32];
    a.set(q + group * Queries), b.set(ring), c.set(ring + Tile);
    auto scores = [&](int step) {
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < Dim / 16; k++) // panels of q are 8192 bytes apart, panels of K are 16384 bytes apart
            kbki_wgmma<T, 128>::template shared<0, 0>(
                s, a.at(k / 4 * 512 + k % 4 * a.step16),
                b.at(step % Stages * (2 * Tile / 16) + k / 4 * 1024 + k % 4 * b.step16), k != 0);
        kbki_wg_commit();
    };
    auto values = [&](int step) {
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < 8; k++)
            kbki_wgmma<T, Dim>::template registers<1>(o, p + k * 4,
                                                      c.at(step % Stages * (2 * Tile / 16) + k * c.step16), 1);
        kbki_wg_commit();
    };
    auto softmax = [&](int step) {
        if (step * 128 + 127 > (causal ? row : n - 1)) kbki_fa_hide<128>(s, step * 128, row, n, causal);
        kbki_fa_exponentials<128>(s, m, l, factor, scale);
    };
    auto pack = [&]() {
#pragma unroll
        for (int i = 0; i < 32; i++) p[i] = kbki_word((T*)0, s + 2 * i);
    };
    if (group == 1) kbki_barrier_arrive<256>(4); // warpgroup 0 issues products first
    kbki_bar_wait(&q_full, 0), kbki_bar_wait(k_full, 0);
    scores(0);
    kbki_wg_wait<0>();
    kbki_wg_hold<64>(s);
    softmax(0), pack();
#pragma unroll 1
    for (int step = 1; step < steps; step++) {
        kbki_bar_wait(k_full + step % Stages, step / Stages % 2);
        kbki_bar_wait(v_full + (step - 1) % Stages, (step - 1) / Stages % 2);
        kbki_barrier<256>(4 + group); // waits until this warpgroup may issue products
        scores(step), values(step - 1);
        kbki_barrier_arrive<256>(4 + (group ^ 1)); // lets the other warpgroup issue products
        kbki_wg_wait<1>();
        kbki_wg_hold<64>(s);
        softmax(step);
        kbki_wg_wait<0>();
        kbki_wg_hold<Dim / 2>(o), kbki_wg_hold<64>(s);
        kbki_fa_arrive(empty + (step - 1) % Stages);
        kbki_fa_rescale<Dim>(o, factor), pack();
    }
    kbki_bar_wait(v_full + (steps - 1) % Stages, (steps - 1) / Stages % 2);
    values(steps - 1);
    kbki_wg_wait<0>();
    kbki_wg_hold<Dim / 2>(o);
    kbki_fa_close(lse + (int64_t)head * n, row, n, m, l, scale, factor);
    kbki_fa_finish<T, Dim>(out + (int64_t)head * n * Dim, row, n, factor, o);
#endif
}
struct kbki_fa_maps {
    kbki_map q, k, v;
};
// Makes tensor maps for tiles of 64 rows of q and for tiles of `keys` rows of k and v. Returns NULL on success,
// otherwise the reason why TMA cannot load q, k or v.
template <class T> const char* kbki_fa_make(const kbki_attn<T>& io, int64_t d, int keys, kbki_fa_maps* maps) {
    const T* const from[3] = { io.q, io.k, io.v };
    kbki_map* const to[3] = { &maps->q, &maps->k, &maps->v };
    const char* why = kbki_needs_hopper();
    for (int i = 0; i < 3 && !why; i++)
        why = kbki_aligned(from[i], 16) && kbki_attn_even(io.step[i])
                  ? kbki_map_heads(from[i], io.heads, io.span, io.rows, d, io.step[i], i ? keys : 64, to[i], 3)
                  : KBKI_TEXT_TMA_HEADS;
    return why;
}
// Launches the kernel of a variant with `groups` consumer warpgroups and a ring of `slots` slots for K and V.
template <class T, class Kernel>
const char* kbki_fa_rung(const kbk_args* a, Kernel* at_64, Kernel* at_128, int groups, int slots, kbk_stream st) {
    kbki_attn<T> io;
    kbki_fa_maps maps;
    const char* why = kbki_attn_args(a, &io);
    if (why || !io.heads) return why;
    const int64_t d = a->s.cols, ctas = io.heads * kbki_ceil(io.rows, 64 * groups);
    size_t bytes = (size_t)(1024 + (groups * 64 + slots * 256) * d * 2); // includes 1024 bytes for alignment
    Kernel* kernel = d == 64 ? at_64 : at_128;
    if ((why = kbki_fa_make(io, d, 128, &maps)) != NULL) return why;
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    if ((why = kbki_want_shared((const void*)kernel, &bytes)) != NULL) return why;
    if (!bytes) return "an SM of this GPU has too little shared memory for this kernel";
    kernel<<<(unsigned)ctas, 128 * (groups + 1), bytes, st>>>(maps.q, maps.k, maps.v, io.o, io.lse, (int)io.rows,
                                                              io.scale * KBKI_LOG2E, io.causal);
    return kbki_launched();
}
template <class T> const char* kbk_attention_fwd_flashws(const kbk_args* a, kbk_stream st) {
    return kbki_fa_rung<T>(a, kbk_attention_fwd_flashws_k<T, 64, 2>, kbk_attention_fwd_flashws_k<T, 128, 2>, 2, 2,
                           st);
}
template <class T> const char* kbk_attention_fwd_flashrs(const kbk_args* a, kbk_stream st) {
    return kbki_fa_rung<T>(a, kbk_attention_fwd_flashws_k<T, 64, 3>, kbk_attention_fwd_flashws_k<T, 128, 3>, 3, 2,
                           st);
}
template <class T> const char* kbk_attention_fwd_pingpong(const kbk_args* a, kbk_stream st) {
    return kbki_fa_rung<T>(a, kbk_attention_fwd_pingpong_k<T, 64>, kbk_attention_fwd_pingpong_k<T, 128>, 2, 3, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>attention_wgmma     Attention forward with wgmma and TMA: flashpp, the production kernel. The kernel processes
                        tiles of keys from the last to the first: only the first tile that a warpgroup sees has masked
                        keys.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

/*  Configuration of the kernel of variant `flashpp`. Groups: number of consumer warpgroups; each processes 64
    rows of q. Keys: number of keys per tile of K or V. Stages: number of stages of the K pipeline, and of the V
    pipeline. ItemPs: picoseconds per work item; KeyPs: picoseconds per key of a work item (both measured on an
    H200). shares: true if probabilities pass through shared memory; the registers then hold the next scores.
    turns: whether consumers issue products alternately (ping-pong schedule). Two consumers do not use the
    ping-pong schedule, because it took 1 to 2 % longer. */
template <int Dim, int Groups, int Keys, int Stages, int ItemPs, int KeyPs, bool Strides = false>
struct kbki_fa_plan {
    static constexpr int dim = Dim, groups = Groups, keys = Keys, stages = Stages, rows = 64 * Groups;
    static constexpr bool turns = Groups > 2, shares = turns && Dim > 64, strides = Strides;
    static constexpr int item_ps = ItemPs, key_ps = KeyPs;
    static constexpr int panels = Dim / 64, threads = 128 * (1 + Groups);     // the last warpgroup is the producer
    // q_bytes: bytes of q per consumer warpgroup; tile_bytes: bytes of a tile of K or V
    static constexpr int q_bytes = 64 * Dim * 2, tile_bytes = Keys * Dim * 2;
    // bytes of probabilities per warpgroup
    static constexpr int p_bytes = shares ? 64 * Keys * 2 : 0;
    static constexpr int k_at = Groups * q_bytes, v_at = k_at + Stages * tile_bytes,
                         p_at = v_at + Stages * tile_bytes;
    static constexpr int bytes = 1024 + p_at + Groups * p_bytes; // includes 1024 bytes for alignment
    // keep: registers per consumer thread; spare: registers per producer thread
    static constexpr int keep = Groups == 2 ? 232 : Groups == 3 ? 160 : 112;
    static constexpr int spare = Groups == 2 ? 40 : 32;
};
/*  Division of the rows of q into work items. A CTA processes one work item at a time. A big item has rows for
    all consumer warpgroups, and a small item has at most `small` rows. Heads with an index below `cut` have big
    items, followed by small items. Heads from index `cut` on have small items only. The heads below `cut` form
    sections of `span` heads. Within a section, work items are ordered by row, then by head, so that K and V of
    the section stay in L2. */
template <class T> struct kbki_fa {
    kbki_attn<T> io;
    // tiles: number of work items per head, for heads with an index below `cut`; bigs: number of big items among
    // these work items
    int tiles, bigs;
    // small: rows of q per small item; smalls: number of small items per head, for heads from index `cut` on
    int small, smalls;
    // cut: index of the first head without big items; span: heads per section; section: work items per section
    int cut, span, section;
    // whole: number of work items of the heads below `cut`; items: number of all work items
    int whole, items;
    unsigned* asked;        // counter of the dynamic scheduler: number of requests for a work item so far
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
struct kbki_fa_item {
    // row: first row of q; end: row after the last row; tiles: number of tiles of keys that at least one of these
    // rows sees
    int head, row, end, tiles;
};
template <class Plan, class T>
__device__ __forceinline__ kbki_fa_item kbki_fa_where(const kbki_fa<T>& work, int index) {
    const int n = (int)work.io.rows;
    int head, row, rows = work.small;
    if (index < work.whole) {
        int section = index / work.section, in = index - section * work.section;
        int wide = min(work.span, work.cut - section * work.span), tile = wide == 1 ? in : in / wide;
        head = section * work.span + in - tile * wide;
        // the rows that see the most keys are processed first, for load balance
        if (work.io.causal) tile = work.tiles - 1 - tile;
        row = min(tile, work.bigs) * Plan::rows + max(tile - work.bigs, 0) * work.small;
        if (tile < work.bigs) rows = Plan::rows;
    } else {
        const int in = index - work.whole, past = in / work.smalls;
        head = work.cut + past, row = (in - past * work.smalls) * work.small;
    }
    const int end = min(n, row + rows), seen = work.io.causal ? end : n;
    return { head, row, end, (seen + Plan::keys - 1) / Plan::keys };
}
// Task of a consumer warpgroup. head, row: head and first row of q of the warpgroup. tiles: number of tiles of
// keys in the work item; 0 if no work items are left. seen: number of tiles of keys that the rows of the warpgroup
// see; 0 if the warpgroup has no rows.
struct __align__(16) kbki_fa_task {
    int head, row, tiles, seen;
};
// mbarriers and tasks in shared memory. The mbarriers q_full and q_empty of a warpgroup cover two buffers: its
// rows of q, and its task. q_full signals that both are full, and q_empty that both are empty.
template <class Plan> struct kbki_fa_barriers {
    uint64_t q_full[Plan::groups], q_empty[Plan::groups];
    uint64_t k_full[Plan::stages], k_empty[Plan::stages], v_full[Plan::stages], v_empty[Plan::stages];
    kbki_fa_task task[Plan::groups];
};
template <class Plan> struct kbki_fa_ring {
    kbki_fa_barriers<Plan>* bar;
    uint32_t base; // shared memory address of q; K, V and probabilities follow
    int slot;
    unsigned parities; // mbarrier parities; bit 0: parity for K and V; bit 1: parity for q
    __device__ __forceinline__ unsigned parity() const { return parities & 1; }
    __device__ __forceinline__ unsigned q_parity() const { return parities >> 1; }
    __device__ __forceinline__ char* at(int byte) const { return (char*)__cvta_shared_to_generic(base + byte); }
    __device__ __forceinline__ char* q(int group) const { return at(group * Plan::q_bytes); }
    __device__ __forceinline__ char* k(int in) const { return at(Plan::k_at + in * Plan::tile_bytes); }
    __device__ __forceinline__ char* v(int in) const { return at(Plan::v_at + in * Plan::tile_bytes); }
    __device__ __forceinline__ char* p(int group) const { return at(Plan::p_at + group * Plan::p_bytes); }
    __device__ __forceinline__ void next() {
        if (++slot == Plan::stages) slot = 0, parities ^= 1;
    }
};

// Waits until a slot is empty, then loads a tile of K or V into the slot by TMA.
template <class Plan>
__device__ __forceinline__ void kbki_fa_fill(uint64_t* full, uint64_t* empty, unsigned parity, char* to,
                                             const kbki_map* map, int tile, int head, int span) {
    kbki_bar_wait(empty, parity ^ 1);
    kbki_bar_expect(full, Plan::tile_bytes);
    kbki_fa_fetch<Plan::panels, Plan::strides>(to, map, full, tile * Plan::keys, Plan::keys, head, span);
}
/*  Runs the producer. The producer is one thread, which fills the pipelines for one work item after another.
    For each work item, the producer loads the first keys before q, because the buffer of q becomes free later.
    Dynamic scheduling: the index of a CTA's first work item is the index of the CTA. The CTA gets the index of
    each further work item by incrementing an atomic counter. The first items of the CTAs need no request, but
    the last request of each CTA finds no item. The total number of requests of all CTAs therefore equals the
    number of work items. The last request resets the counter to 0. */
template <class T, class Plan>
__device__ __forceinline__ void kbki_fa_produce(const kbki_fa_maps& maps, const kbki_fa<T>& work,
                                                kbki_fa_ring<Plan> ring) {
    kbki_fa_barriers<Plan>& bar = *ring.bar;
    const int n = (int)work.io.rows;
    unsigned index = blockIdx.x, asked = 0;
    do {
        const kbki_fa_item item = kbki_fa_where<Plan>(work, (int)index);
        bool fresh = true;
#pragma unroll 1
        for (int tile = item.tiles - 1; tile >= 0; tile--, ring.next(), fresh = false) {
            if (tile == 0) asked = work.items > (int)gridDim.x ? atomicAdd(work.asked, 1u) : (unsigned)work.items;
            kbki_fa_fill<Plan>(bar.k_full + ring.slot, bar.k_empty + ring.slot, ring.parity(), ring.k(ring.slot),
                               &maps.k, tile, item.head, work.io.span);
#pragma unroll 1
            for (int g = 0; g < Plan::groups && fresh; g++) {
                kbki_bar_wait(bar.q_empty + g, ring.q_parity() ^ 1);
                const int row = item.row + g * 64, end = work.io.causal ? row + 64 : n;
                const bool rows = row < item.end;
                bar.task[g] = { item.head, row, item.tiles, rows ? (min(n, end) + Plan::keys - 1) / Plan::keys : 0 };
                if (rows)
                    kbki_bar_expect(bar.q_full + g, Plan::q_bytes);
                else
                    kbki_bar_arrive(bar.q_full + g);
                if (rows)
                    kbki_fa_fetch<Plan::panels, Plan::strides>(ring.q(g), &maps.q, bar.q_full + g, row, 64, item.head,
                                                               work.io.span);
            }
            kbki_fa_fill<Plan>(bar.v_full + ring.slot, bar.v_empty + ring.slot, ring.parity(), ring.v(ring.slot),
                               &maps.v, tile, item.head, work.io.span);
        }
        if (asked == (unsigned)work.items - 1) *work.asked = 0;
        ring.parities ^= 2, index = gridDim.x + asked;
    } while (index < (unsigned)work.items);
    for (int g = 0; g < Plan::groups; g++) {
        kbki_bar_wait(bar.q_empty + g, ring.q_parity() ^ 1);
        bar.task[g] = {};
        kbki_bar_arrive(bar.q_full + g);
    }
}

// Returns a zero that ptxas does not recognise as a constant. If this zero is added to an address in a loop, ptxas
// recomputes the address instead of keeping it in a register.
__device__ __forceinline__ uint32_t kbki_fa_zero() {
    uint32_t zero;
    asm volatile("mov.b32 %0, 0;" : "=r"(zero));
    return zero;
}

// State of a consumer warpgroup, which processes 64 rows of q. In the functions of kbki_fa_rows, s holds scores
// and later exponentials, and p holds exponentials as 16-bit values. p is unused if the exponentials are in shared
// memory.
template <class T, class Plan> struct kbki_fa_rows {
    kbki_wg_operand<true> q, k, shared;
    kbki_wg_operand<false, Plan::keys> v;
    float m[2], l[2], scale; // scale: converts scores to base-2 logarithms
    int group;

    __device__ __forceinline__ void set(const kbki_attn<T>& io, const kbki_fa_ring<Plan>& ring, int which) {
        q.set(ring.q(which)), k.set(ring.k(0)), v.set(ring.v(0));
        scale = io.scale * KBKI_LOG2E, group = which;
        if (Plan::shares) shared.set(ring.p(which));
    }
    __device__ __forceinline__ void begin() { m[0] = m[1] = -INFINITY, l[0] = l[1] = 0; }
    __device__ __forceinline__ void scores(int slot, float* s) {
        uint32_t on = (uint32_t)slot * (Plan::tile_bytes / 16), zero = Plan::turns ? kbki_fa_zero() : 0;
        kbki_wg_fence();
#pragma unroll
        for (int step = 0; step < Plan::dim / 16; step++)
            kbki_wgmma<T, Plan::keys>::template shared<0, 0>(
                s, q.at(zero + step / 4 * (8192 / 16) + step % 4 * q.step16),
                k.at(on + step / 4 * (Plan::keys * 128 / 16) + step % 4 * k.step16), step != 0);
        kbki_wg_commit();
    }
    // keep: 1 if the product is added to `o`, 0 if it overwrites `o`
    __device__ __forceinline__ void values(int slot, const uint32_t* p, float* o, int keep) {
        uint32_t on = (uint32_t)slot * (Plan::tile_bytes / 16), zero = Plan::turns ? kbki_fa_zero() : 0;
        kbki_wg_fence();
#pragma unroll
        for (int step = 0; step < Plan::keys / 16; step++)
            if constexpr (Plan::shares)
                kbki_wgmma<T, Plan::dim>::template shared<0, 1>(
                    o, shared.at(zero + step / 4 * (8192 / 16) + step % 4 * shared.step16),
                    v.at(on + step * v.step16), step ? 1 : keep);
            else
                kbki_wgmma<T, Plan::dim>::template registers<1>(o, p + step * 4, v.at(on + step * v.step16),
                                                                step ? 1 : keep);
        kbki_wg_commit();
    }
    __device__ __forceinline__ void hide(const kbki_attn<T>& io, float* s, int key, int row) const {
        if (io.causal || io.rows % Plan::keys) kbki_fa_hide<Plan::keys>(s, key, row, (int)io.rows, io.causal);
    }
    // Forces ptxas to compute the sums `l` at this point. Without settle(), ptxas moves the additions between the
    // next products, and scores occupy registers that the probabilities need. The condition of the nanosleep is
    // never true, because no sum is negative.
    __device__ __forceinline__ void settle() const {
        asm volatile(
            "{ .reg .pred never; setp.lt.f32 never, %0, 0f00000000; @never nanosleep.u32 1; }" ::"f"(l[0] + l[1])
            : "memory");
    }
    // Converts exponentials to 16 bits, and stores them in shared memory if Plan::shares is true, else in p.
    __device__ __forceinline__ void pack(const float* s, uint32_t* p) const {
        const uint32_t to = Plan::shares ? place() : 0;
#pragma unroll
        for (int step = 0; step < Plan::keys / 16; step++) {
            uint32_t w[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                (Plan::shares ? w[i] : p[step * 4 + i]) = kbki_word((T*)0, s + step * 8 + 2 * i);
            if (Plan::shares) kbki_stmatrix(place(to, step), w);
        }
        if (Plan::shares) kbki_bulk_fence();
    }
    // place() returns the shared-memory address of this thread's row of exponentials for the first 16 keys.
    // place(first, step) returns the address of this thread's exponentials for keys 16 step to 16 step + 15;
    // `first` is the result of place().
    __device__ __forceinline__ uint32_t place() const {
        const uint32_t thread = threadIdx.x + kbki_fa_zero(), lane = thread % 32,
                       line = thread % 128 / 32 * 16 + lane % 16;
        return ((shared.low & 0x3FFF) << 4) + line * 128 + (lane / 16 ^ lane % 8) * 16;
    }
    static __device__ __forceinline__ uint32_t place(uint32_t first, int step) {
        return (first ^ step % 4 * 32) + step / 4 * 8192;
    }
};

// Finished rows of a warpgroup: their head, their first row, and the factors by which o must be multiplied.
struct kbki_fa_out {
    int head, row;
    float inv[2];
};

// --- the loop of a consumer warpgroup over the tiles of an item, from the last that it sees to the first
// In the ping-pong schedule, kbki_fa_turn waits until this consumer may issue products, and kbki_fa_pass lets the
// next consumer issue products.
template <class Plan> __device__ __forceinline__ void kbki_fa_turn(int group) {
    if (Plan::turns) kbki_barrier<256>(5 + group);
}
template <class Plan> __device__ __forceinline__ void kbki_fa_pass(int group) {
    if (Plan::turns) kbki_barrier_arrive<256>(5 + (group + 1 == Plan::groups ? 0 : group + 1));
}
// Signals to the producer that q and the task of this warpgroup have been read. Lane 0 of each warp arrives at the
// mbarrier, because lane 0 has read the task.
template <class Plan> __device__ __forceinline__ void kbki_fa_done(const kbki_fa_ring<Plan>& ring, int group) {
    if (threadIdx.x % 32 == 0) kbki_bar_arrive(ring.bar->q_empty + group);
}
// Reads the next task of the warpgroup. Returns the number of tiles of keys that the rows of the warpgroup see.
template <class T, class Plan>
__device__ __forceinline__ int kbki_fa_take(kbki_fa_ring<Plan>& ring, kbki_fa_rows<T, Plan>& rows,
                                            kbki_fa_task* task) {
    kbki_bar_wait(ring.bar->q_full + rows.group, ring.q_parity());
    ring.parities ^= 2;
    kbki_fa_task it = {};
    if (threadIdx.x % 32 == 0) it = ring.bar->task[rows.group]; // the same lane releases the task in kbki_fa_done
    task->head = __shfl_sync(~0u, it.head, 0), task->row = __shfl_sync(~0u, it.row, 0);
    task->tiles = __shfl_sync(~0u, it.tiles, 0), task->seen = __shfl_sync(~0u, it.seen, 0);
    rows.begin();
    return task->seen;
}
// Skips a tile of keys that is masked for all rows of the warpgroup: waits for the tile and releases its slot.
template <class Plan> __device__ __forceinline__ void kbki_fa_skip(kbki_fa_ring<Plan>& ring, int group) {
    kbki_bar_wait(ring.bar->k_full + ring.slot, ring.parity());
    kbki_fa_turn<Plan>(group), kbki_fa_pass<Plan>(group);
    // synchronises the warps, so that no warp misses two phases of an mbarrier
    if (!Plan::turns) kbki_barrier<128>(1 + group);
    kbki_fa_arrive(ring.bar->k_empty + ring.slot);
    kbki_bar_wait(ring.bar->v_full + ring.slot, ring.parity());
    kbki_fa_arrive(ring.bar->v_empty + ring.slot);
    ring.next();
}
/*  Computes the first scores of the next work item in which this warpgroup has rows. No other product of this
    warpgroup overlaps with the product for these scores. On entry, *task is empty (tiles = 0), or is a work item
    in which this warpgroup has no rows. Returns the number of tiles of keys that remain after the first one, or -1
    if no further work item has rows for this warpgroup. */
template <class T, class Plan>
__device__ __forceinline__ int kbki_fa_first(const kbki_fa<T>& work, kbki_fa_ring<Plan>& ring,
                                             kbki_fa_rows<T, Plan>& rows, kbki_fa_task* task, uint32_t* p) {
    float s[Plan::keys / 2], factor[2];
    int left;
    do {
        if (task->tiles) kbki_fa_done(ring, rows.group);
        for (int hidden = task->tiles; hidden > 0; hidden--) kbki_fa_skip(ring, rows.group);
        left = kbki_fa_take(ring, rows, task) - 1;
    } while (left < 0 && task->tiles);
    if (left < 0) return left;
    for (int hidden = task->tiles - 1; hidden > left; hidden--) kbki_fa_skip(ring, rows.group);
    kbki_bar_wait(ring.bar->k_full + ring.slot, ring.parity());
    kbki_fa_turn<Plan>(rows.group);
    rows.scores(ring.slot, s);
    kbki_fa_pass<Plan>(rows.group);
    kbki_wg_wait<0>();
    kbki_wg_hold<Plan::keys / 2>(s);
    kbki_fa_arrive(ring.bar->k_empty + ring.slot);
    if (left == 0) kbki_fa_done(ring, rows.group);
    rows.hide(work.io, s, left * Plan::keys, task->row);
    kbki_fa_exponentials<Plan::keys>(s, rows.m, rows.l, factor, rows.scale);
    rows.pack(s, p);
    return left;
}
/*  Runs a consumer warpgroup. The consumer issues the scores of a tile before the product of the previous
    tile's probabilities with V, even if the previous tile belongs to the previous work item. Two products of a
    consumer are therefore in flight at the same time (intra-warpgroup pipelining, FlashAttention-3, Shah et al.
    2024, section 3.2). ptxas chooses the place of the exponentials: it puts most of them after the wait for the
    product with V. Computing all exponentials before the wait for the product with V took 1 to 2 % longer on
    an H200. first: whether the scores belong to the first tile of a work item. fresh: whether the product with
    V belongs to the first tile of a work item. */
template <class T, class Plan>
__device__ __forceinline__ void kbki_fa_consume(const kbki_fa<T>& work, kbki_fa_ring<Plan> ring, int group) {
    kbki_fa_rows<T, Plan> rows;
    kbki_fa_task task;
    float s[Plan::keys / 2], o[Plan::dim / 2] = {}, factor[2];
    uint32_t p[Plan::shares ? 1 : Plan::keys / 4];
    rows.set(work.io, ring, group);
    if (group == Plan::groups - 1) kbki_fa_pass<Plan>(group); // lets consumer 0 issue the first products
    task.tiles = 0;
#pragma unroll 1
    do {
        int left = kbki_fa_first(work, ring, rows, &task, p);
        if (left < 0) return;
        kbki_fa_out out = {};
        bool first, fresh = true;
        auto store = [&]() {
            const kbki_attn<T>& io = work.io;
            const int64_t at =
                Plan::strides ? kbki_attn_head(io.step[3], io.span, out.head) : out.head * io.rows * Plan::dim;
            kbki_fa_finish<T, Plan::dim>(io.o + at, out.row, (int)io.rows, out.inv, o,
                                         Plan::strides ? io.step[3].x : Plan::dim);
        };
        kbki_fa_ring<Plan> before = ring;
        for (ring.next();; before = ring, fresh = first, ring.next()) {
            if ((first = left == 0)) {
                out = { task.head, task.row, {} };
                kbki_fa_close(work.io.lse + out.head * work.io.rows, out.row, (int)work.io.rows, rows.m, rows.l,
                              rows.scale, out.inv);
                if ((left = kbki_fa_take(ring, rows, &task)) == 0) break;
                for (int hidden = task.tiles; hidden > left; hidden--) kbki_fa_skip(ring, group);
            }
            kbki_bar_wait(ring.bar->k_full + ring.slot, ring.parity());
            kbki_bar_wait(ring.bar->v_full + before.slot, before.parity());
            kbki_fa_turn<Plan>(group);
            rows.scores(ring.slot, s);
            rows.values(before.slot, p, o, !fresh);
            kbki_fa_pass<Plan>(group);
            kbki_wg_wait<1>();
            kbki_wg_hold<Plan::keys / 2>(s);
            kbki_fa_arrive(ring.bar->k_empty + ring.slot);
            if (--left == 0) kbki_fa_done(ring, group);
            if (first) rows.hide(work.io, s, left * Plan::keys, task.row);
            kbki_fa_exponentials<Plan::keys>(s, rows.m, rows.l, factor, rows.scale);
            kbki_wg_wait<0>();
            kbki_wg_hold<Plan::dim / 2>(o);
            kbki_wg_hold<Plan::keys / 2>(s); // the previous product with V reads `p` until here
            if (Plan::shares) rows.settle();
            kbki_fa_arrive(ring.bar->v_empty + before.slot);
            rows.pack(s, p);
            if (first)
                store();
            else
                kbki_fa_rescale<Plan::dim>(o, factor);
        }
        kbki_bar_wait(ring.bar->v_full + before.slot, before.parity());
        rows.values(before.slot, p, o, !fresh);
        kbki_wg_wait<0>();
        kbki_wg_hold<Plan::dim / 2>(o);
        kbki_fa_arrive(ring.bar->v_empty + before.slot);
        store();
    } while (task.tiles);
}
#endif // __CUDA_ARCH_FEAT_SM90_ALL

// Kernel of variant `flashpp`: the last warpgroup loads by TMA, and the other warpgroups compute.
template <class T, class Plan>
__global__ void __launch_bounds__(Plan::threads, 1)
    kbki_fa_k(const __grid_constant__ kbki_fa_maps maps, const __grid_constant__ kbki_fa<T> work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ uint4 kbki_attn_shared[];
    __shared__ kbki_fa_barriers<Plan> bar;
    kbki_fa_ring<Plan> ring = { &bar, kbki_shared(kbki_wg_align(kbki_attn_shared)), 0, 0 };
    // the shuffle tells the compiler that `group` is uniform in a warp
    const int group = (int)__shfl_sync(~0u, threadIdx.x / 128, 0);
    if (threadIdx.x == 128 * Plan::groups) {
        for (int i = 0; i < Plan::groups; i++) kbki_bar_init(bar.q_full + i, 1), kbki_bar_init(bar.q_empty + i, 4);
        for (int i = 0; i < Plan::stages; i++) {
            kbki_bar_init(bar.k_full + i, 1), kbki_bar_init(bar.k_empty + i, Plan::groups);
            kbki_bar_init(bar.v_full + i, 1), kbki_bar_init(bar.v_empty + i, Plan::groups);
        }
        kbki_bar_ready();
        kbki_tma_prefetch(&maps.q), kbki_tma_prefetch(&maps.k), kbki_tma_prefetch(&maps.v);
    }
    if (group == Plan::groups) {
        // Only the consumers wait for the mbarriers at this barrier: the producer has initialised the mbarriers.
        kbki_barrier_arrive<Plan::threads>(0);
        kbki_wg_give<Plan::spare>();
        if (threadIdx.x == 128 * Plan::groups) kbki_fa_produce<T, Plan>(maps, work, ring);
    } else {
        kbki_barrier<Plan::threads>(0);
        kbki_wg_take<Plan::keep>();
        kbki_fa_consume<T, Plan>(work, ring, group);
    }
#endif
}
// Division of the rows of q into work items. small: rows per small item; cut: number of heads that also have big
// items; ps: predicted time in picoseconds.
struct kbki_fa_deal {
    int small;
    int64_t cut, ps;
};
template <class Plan, class T> kbki_fa_deal kbki_fa_deal_plain(const kbki_attn<T>& io) {
    const int64_t rounds = kbki_ceil(io.heads * kbki_ceil(io.rows, Plan::rows), kbki_sms());
    return { Plan::rows, io.heads, rounds * (Plan::item_ps + io.rows * Plan::key_ps / (io.causal ? 2 : 1)) };
}
/*  Predicts the time, in picoseconds, at which all work items are finished, if every SM starts the next work
    item as soon as it is free. Each of the first `cut` heads has `bigs` big items and `rest` small items. Each
    head from index `cut` on has `smalls` small items. Small items end in the order in which they started, and
    so do big items. Two queues of end times, one for big items and one for small items, are therefore
    sufficient. */
KBK_FN int64_t kbki_fa_done_at(int sms, int64_t heads, int64_t cut, int64_t bigs, int64_t rest, int64_t smalls,
                               int64_t small_ps, int64_t big_ps) {
    int64_t at[2][256] = {}, last = 0;
    unsigned first[2] = { 0, 0 }, count[2] = { (unsigned)sms, 0 };
    for (int64_t head = 0; head < heads; head++)
        for (int64_t i = 0, all = head < cut ? bigs + rest : smalls; i < all; i++) {
            const int big = head < cut && i < bigs;
            const int who = count[1] && (!count[0] || at[1][first[1]] < at[0][first[0]]);
            const int64_t end = at[who][first[who]] + (big ? big_ps : small_ps);
            first[who] = (first[who] + 1) % 256, count[who]--;
            at[big][(first[big] + count[big]++) % 256] = end;
            if (end > last) last = end;
        }
    return last;
}
// Chooses the division into work items if there is no causal mask. Rows that would not fill the last wave of CTAs
// become small items; the last heads may have small items only. If only some warpgroups of a CTA have rows, a work
// item takes 42 % of the full time plus 58 % times the fraction of warpgroups with rows (measured on an H200).
template <class Plan> kbki_fa_deal kbki_fa_deal_full(int64_t heads, int64_t rows) {
    const int64_t sms = kbki_sms(), each = rows / Plan::rows, rest = rows % Plan::rows;
    const int64_t big = Plan::item_ps + rows * Plan::key_ps, over = heads > 8 * sms ? heads / sms - 8 : 0;
    kbki_fa_deal best = { Plan::rows, heads, INT64_MAX };
    if (sms > 256) return best;
    for (int groups = Plan::groups; groups > 0; groups--)
        for (int some = 0; some < 2; some++) { // some: whether the last heads have small items only
            const int64_t last = some && each ? kbki_ceil(heads * each % sms, each) : 0, few = heads - over * sms;
            const int64_t in = last || rest >= groups * 64 ? groups : kbki_ceil(rest, 64);
            if ((groups == Plan::groups || !last) && some) continue;
            const int64_t ps = kbki_fa_done_at((int)sms, few, few > last ? few - last : 0, each,
                                               kbki_ceil(rest, groups * 64), kbki_ceil(rows, groups * 64),
                                               big * (42 * Plan::groups + 58 * in) / (100 * Plan::groups), big) +
                               over * (each * big + (rest ? big / 2 : 0));
            if (ps < best.ps) best = { groups * 64, heads - last, ps };
        }
    return best;
}
// Returns the division into work items with the shortest predicted time. Recent results are cached, because a
// prediction takes longer than a launch.
template <class Plan, class T> kbki_fa_deal kbki_fa_deal_of(const kbki_attn<T>& io) {
    static thread_local struct {
        int64_t heads, rows; // shape of the cached division; heads = 0: the entry is empty
        kbki_fa_deal deal;
    } kept[16];
    if (io.causal) return kbki_fa_deal_plain<Plan>(io);
    auto* at = &kept[(uint64_t)(io.heads * 31 + io.rows) * 0x9E3779B97F4A7C15u >> 60];
    if (at->heads != io.heads || at->rows != io.rows)
        at->deal = kbki_fa_deal_full<Plan>(io.heads, io.rows), at->heads = io.heads, at->rows = io.rows;
    return at->deal;
}
template <class T, class Plan> const char* kbki_fa_launch(const kbk_args* a, const kbki_attn<T>& io, kbk_stream st) {
    kbki_fa_maps maps;
    kbki_fa<T> work;
    size_t bytes = Plan::bytes;
    const kbki_fa_deal deal = kbki_fa_deal_of<Plan>(io);
    const int64_t bigs = io.rows / Plan::rows, tiles = bigs + kbki_ceil(io.rows % Plan::rows, deal.small),
                  smalls = kbki_ceil(io.rows, deal.small), whole = deal.cut * tiles,
                  cut = (io.heads - deal.cut) * smalls;
    int64_t span = ((int64_t)32 << 20) / (io.rows * Plan::dim * 4), items = whole + cut;
    const char* why = kbki_fa_make(io, Plan::dim, Plan::keys, &maps);
    if (!why) why = kbki_check_workspace(a, KBK_TICKETS);
    if (!why) why = kbki_want_shared(kbki_fa_k<T, Plan>, &bytes);
    if (why || !bytes) return why ? why : "an SM of this GPU has too little shared memory for this kernel";
    if (!kbki_grid_ok(items)) return KBKI_TEXT_GRID;
    // span: 1 without a causal mask, else the number of heads whose K and V together fit into L2
    if (!io.causal || span < 1) span = 1;
    if (span > io.heads) span = io.heads;
    work.io = io, work.tiles = (int)tiles, work.bigs = (int)bigs, work.small = deal.small, work.smalls = (int)smalls;
    work.cut = (int)deal.cut, work.span = (int)span, work.section = (int)(span * tiles);
    work.whole = (int)whole, work.items = (int)items;
    work.asked = (unsigned*)a->workspace;
    if (items > kbki_sms()) items = kbki_sms();
    kbki_fa_k<T, Plan><<<(unsigned)items, Plan::threads, bytes, st>>>(maps, work);
    return kbki_launched();
}
// configurations of the kernel of variant `flashpp`, named after d and the number of consumer warpgroups
typedef kbki_fa_plan<128, 2, 128, 3, 1400000, 12500> kbki_fa_128x2;
typedef kbki_fa_plan<128, 3, 128, 2, 2100000, 17200> kbki_fa_128x3;
typedef kbki_fa_plan<64, 3, 128, 4, 930000, 12200> kbki_fa_64x3;
typedef kbki_fa_plan<64, 4, 64, 6, 1000000, 18900> kbki_fa_64x4;
// configurations for tensors with strides; code for strides would make the kernels for contiguous tensors 2 to 4 %
// slower (d = 64)
typedef kbki_fa_plan<128, 2, 128, 3, 1400000, 12500, true> kbki_fa_128x2s;
typedef kbki_fa_plan<128, 3, 128, 2, 2100000, 17200, true> kbki_fa_128x3s;
typedef kbki_fa_plan<64, 3, 128, 4, 930000, 12200, true> kbki_fa_64x3s;
typedef kbki_fa_plan<64, 4, 64, 6, 1000000, 18900, true> kbki_fa_64x4s;
template <class T, class Few, class Many>
const char* kbki_fa_cheaper(const kbk_args* a, const kbki_attn<T>& io, kbk_stream st) {
    return kbki_fa_deal_of<Few>(io).ps <= kbki_fa_deal_of<Many>(io).ps ? kbki_fa_launch<T, Few>(a, io, st)
                                                                       : kbki_fa_launch<T, Many>(a, io, st);
}
template <class T> const char* kbk_attention_fwd_flashpp(const kbk_args* a, kbk_stream st) {
    kbki_attn<T> io;
    const char* why = kbki_attn_args(a, &io, true);
    if (why || !io.heads) return why;
    const bool wide = a->s.cols == 128;
    if (io.span)
        return wide ? kbki_fa_cheaper<T, kbki_fa_128x2s, kbki_fa_128x3s>(a, io, st)
                    : kbki_fa_cheaper<T, kbki_fa_64x3s, kbki_fa_64x4s>(a, io, st);
    return wide ? kbki_fa_cheaper<T, kbki_fa_128x2, kbki_fa_128x3>(a, io, st)
                : kbki_fa_cheaper<T, kbki_fa_64x3, kbki_fa_64x4>(a, io, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>attention_bwd     Attention backward: shapes, oracle, card; kernels without tensor cores, with the S^2 matrices
                      in memory, and in tiles.
-----------------------------------------------------------------*/

/*  attention bwd --------------------------------------------------------------------------------------------
    p[i,j] = exp(q[i] k[j] / sqrt(d) - lse[i])    D[i] = do[i] o[i]    ds[i,j] = p[i,j] (do[i] v[j] - D[i])
    dv[j] = sum_i p[i,j] do[i]    dk[j] = sum_i ds[i,j] q[i] / sqrt(d)    dq[i] = sum_j ds[i,j] k[j] / sqrt(d)
    do, q, k, v, o, dq, dk, dv: batch x heads x S x d     lse: result of the forward pass     causal: keys j <= i only
    strides as in the forward pass, in rung flashws
    flops  10*B*H*S^2*d, half if causal         five matrix products
    bytes  8*B*H*S*d*s + 4*B*H*S                intensity at 16 bits: 5 S / 8 FLOPs per byte, causal half of it
    check  norm-wise f32 2e-5, f16 2e-3, bf16 1.5e-2; per element 128 ulp in f32, 8 ulp at 16 bits, of the row
           scale, or of the square root of the sum of the squared terms
    1 naive    p and ds in memory                 <- slow as in the forward pass, with two S^2 matrices. S <= 2048
    4 flash    32 x 32 tiles, 4 x 2 pairs a thread <- nothing of size S^2 in memory: p and ds are recomputed, twice,
                                                     so five products become seven (recomputation: Dao et al. 2022).
                                                     An operand serves several FMAs. FMAs are the limit
    5 warpmma  mma.sync on 16-bit tiles           <- tensor cores multiply (f16 from compute capability 7.5 on),
                                                     but loads and products alternate; in >>attention_bwd_mma
    6 flashmma mma.sync; p recomputed once        <- FlashAttention-2 (Dao 2023): a CTA keeps 128 keys, and their
                                                     dk and dv stay in registers in the loop over q. Atomics add
                                                     dq in f32, in the layout of accumulators, so that they are
                                                     coalesced. One barrier per tile; in >>attention_bwd_mma
    7 flashws  wgmma and TMA                      <- in >>attention_bwd_hopper
    bound by   arithmetic. If lse = -inf (the row sees no key), p = 0. Scores beyond 2^20 are not supported,
               because an f32 lse cannot hold both the maximum and the logarithm of the sum. NaN or infinity in a
               row or key that the causal mask hides has no effect in `naive` and `flash`; the kernels on tensor
               cores multiply hidden elements of q, k and `do` by zeros
    predict    before you run it: which of the five products can start before the exponentials, and how many bytes of
               f32 atomics does dq need per byte of k that a CTA keeps? */
/*  measured attention bwd: bf16 4 x 16 x 2048 x 128, NVIDIA H100 80GB HBM3, 2026-11-26
    1278 FLOP/B; floor on an H200 438.8 us = 343.6 GFLOP / 783 TFLOP/s; on this GPU 432.2 us at 794.9 TFLOP/s
                   time peak   gain regs  occ DRAM conflicts
    1 naive    337.6 ms  0 %      -   29 94 %  0 %         0  both S x S matrices in memory
    4 flash    19.79 ms  2 % 17.1 x   29 21 %  1 %      14 M  32 x 32 tiles, 4 x 2 pairs per thread, FMAs
    5 warpmma   5327 us  8 % 3.72 x   29 15 %  2 %    1460 k  mma.sync, loads and products alternate
    6 flashmma  1135 us 38 % 4.69 x   32 18 % 15 %    7267 k  128 keys per CTA, dq by atomics
    7 flashws  661.1 us 66 % 1.72 x   32 22 % 25 %    1189 k  like flashmma, with wgmma and TMA
    end of measured */
KBK_FN int kbk_attention_bwd_tensors(const kbk_shape* s, kbk_tensor* t) {
    static const char* const names[8] = { "do", "q", "k", "v", "o", "dq", "dk", "dv" };
    int64_t d = s->cols, rows = kbki_attn_heads(s) * s->rows;
    for (int i = 0; i < 5; i++) t[i] = kbki_in(names[i], rows * d, 0);
    t[5] = kbki_in("lse", rows, 0);
    // random values like the lse that the forward pass computes for random inputs
    t[5].kind = KBK_KF32, t[5].a = log((double)s->rows + 1) + 0.5, t[5].b = 0.25;
    for (int i = 6; i < 9; i++) t[i] = kbki_out(names[i - 1], KBK_T, rows * d, d, d);
    return 9;
}
KBKI_FORMULAS(attention_bwd, s->cols ? kbki_attn_heads(s) * s->rows : 0, 2.5 * kbk_attention_fwd_flops(s),
              (double)kbki_attn_heads(s) * (8 * n * elem + 4 * rows))
KBKI_SCRATCH(attention_bwd) {
    size_t heads = (size_t)kbki_attn_heads(s), rows = (size_t)s->rows, padded = (rows + 63) / 64 * 64;
    if (word == KBKI_WORD_naive) return KBK_TICKETS + heads * rows * (8 * rows + 4);
    if (word == KBKI_WORD_flash || word == KBKI_WORD_warpmma) return KBK_TICKETS + heads * rows * 4;
    return KBK_TICKETS + heads * padded * (8 + 4 * (size_t)s->cols);
}

// Probability p and derivative ds for one pair of row and key. about: scale of the rounding error of ds. ds is p
// times a difference of two terms; `about` is p times the sum of their absolute values.
typedef struct kbki_attn_pair {
    double p, ds, about;
} kbki_attn_pair;
KBK_FN kbki_attn_pair kbki_attn_pair_of(const kbk_shape* s, const double* const* in, int64_t i, int64_t j) {
    int64_t d = s->cols;
    double size = 0, scale = 1 / sqrt((double)d), lse = in[5][i], big = 0, dot = 0;
    double x = scale * kbki_attn_dot(in[1] + i * d, in[2] + j * d, d, &size);
    double dp = kbki_attn_dot(in[0] + i * d, in[3] + j * d, d, &big);
    for (int64_t c = 0; c < d; c++) dot += in[0][i * d + c] * in[4][i * d + c];
    kbki_attn_pair r;
    r.p = exp(x - (lse == -HUGE_VAL ? HUGE_VAL : lse));
    r.ds = r.p * (dp - dot) * scale;
    r.about = r.p * (fabs(dp) + fabs(dot)) * scale * (scale * size > 8 ? scale * size / 8 : 1);
    return r;
}
// y += w x; mag (if not NULL) += (about x)^2
KBK_FN void kbki_attn_add(double* y, double* mag, double w, double about, const double* x, int64_t d) {
    for (int64_t c = 0; c < d; c++) {
        y[c] += w * x[c];
        if (mag) mag[c] += about * about * x[c] * x[c];
    }
}
KBKI_REF(attention_bwd) {
    int64_t n = s->rows, d = s->cols;
    for (int64_t u = u0; u < u1; u++) {
        int64_t head = u / n * n;
        double* at[6];
        for (int k = 0; k < 6; k++) {
            double* base = out[k % 3 + (k < 3 ? 0 : KBK_OUTS)];
            at[k] = base ? base + (u - u0) * d : NULL;
            for (int64_t c = 0; at[k] && c < d; c++) at[k][c] = 0;
        }
        for (int64_t j = head; at[0] && j < (s->causal ? u + 1 : head + n); j++) {
            kbki_attn_pair r = kbki_attn_pair_of(s, in, u, j);
            kbki_attn_add(at[0], at[3], r.ds, r.about, in[2] + j * d, d);
        }
        for (int64_t i = s->causal ? u : head; (at[1] || at[2]) && i < head + n; i++) {
            kbki_attn_pair r = kbki_attn_pair_of(s, in, i, u);
            if (at[1]) kbki_attn_add(at[1], at[4], r.ds, r.about, in[1] + i * d, d);
            if (at[2]) kbki_attn_add(at[2], at[5], r.p, r.p, in[0] + i * d, d);
        }
        for (int k = 3; k < 6; k++)
            for (int64_t c = 0; at[k] && c < d; c++) at[k][c] = kbki_attn_finite(sqrt(at[k][c]));
    }
}

#ifdef __CUDACC__
template <class T> struct kbki_attn_back {
    const T *dout, *q, *k, *v, *o;
    const float* lse;
    T *dq, *dk, *dv;
    float2* stat; // per row: lse * log2(e), and D = sum(do * o); a head is padded to a multiple of 64 rows
    float* sum;   // sums of dq in f32, in the workspace
    int64_t heads, rows;
    float scale;
    int causal, vector;
    int span;          // heads per batch element; 0 if all tensors are contiguous
    longlong3 step[9]; // strides of the tensors in the order of the signature; x: rows, y: heads, z: batch
};
template <class T> const char* kbki_attn_back_args(const kbk_args* a, kbki_attn_back<T>* io, bool strides = false) {
    memset(io, 0, sizeof *io);
    const char* why = kbki_attn_shape(&a->s, &io->heads);
    if (why || !io->heads) return why;
    io->dout = (const T*)a->in[0], io->q = (const T*)a->in[1], io->k = (const T*)a->in[2];
    io->v = (const T*)a->in[3], io->o = (const T*)a->in[4], io->lse = (const float*)a->in[5];
    io->dq = (T*)a->out[0], io->dk = (T*)a->out[1], io->dv = (T*)a->out[2];
    if ((why = kbki_attn_steps(&a->s, 9, strides, io->step, &io->span)) != NULL) return why;
    io->rows = a->s.rows, io->causal = a->s.causal, io->scale = 1.0f / sqrtf((float)a->s.cols);
    io->vector = 1;
    for (int i = 0; i < 5; i++) {
        if (!kbki_aligned(a->in[i], sizeof(T))) return KBKI_TEXT_ALIGN;
        io->vector &= kbki_aligned(a->in[i], 16);
    }
    for (int i = 0; i < 3; i++) {
        if (!kbki_aligned(a->out[i], sizeof(T))) return KBKI_TEXT_ALIGN;
        io->vector &= kbki_aligned(a->out[i], 16);
    }
    for (int i = 0; i < 9; i++) io->vector &= kbki_attn_even(io->step[i]);
    return kbki_aligned(io->lse, 4) ? NULL : KBKI_TEXT_ALIGN;
}

// Checks the workspace of variants `flashmma` and `flashws`, and sets io->stat and io->sum to its parts. Returns
// NULL on success, otherwise an error.
template <class T> const char* kbki_attn_back_room(const kbk_args* a, int word, kbki_attn_back<T>* io) {
    const char* why = kbki_check_workspace(a, kbki_scratch_attention_bwd(&a->s, (int)sizeof(T), word));
    io->stat = (float2*)((char*)a->workspace + KBK_TICKETS);
    io->sum = (float*)(io->stat + io->heads * kbki_ceil(io->rows, 64) * 64);
    return why;
}

// Kernels of variant `naive`: kbki_attn_naive_dot_k has one thread per row. kbk_attention_bwd_naive_k has one
// thread per pair of row and key. kbki_attn_naive_grad_k has one thread per element of dq, dk and dv.
template <class T>
__global__ void kbk_attention_bwd_naive_k(const T* dout, const T* q, const T* k, const T* v, const float* lse,
                                          const float* dot, float* p, float* ds, int64_t rows, int64_t n, int d,
                                          float scale, int causal) {
    int64_t at = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= rows * n) return;
    int64_t row = at / n, j = at % n, key = row / n * n + j;
    float x = 0, y = 0;
    if (causal && j > row % n) return;
    for (int c = 0; c < d; c++) {
        x = fmaf(kbki_float(q[row * d + c]), kbki_float(k[key * d + c]), x);
        y = fmaf(kbki_float(dout[row * d + c]), kbki_float(v[key * d + c]), y);
    }
    p[at] = expf(x * scale - (lse[row] == -INFINITY ? INFINITY : lse[row]));
    ds[at] = p[at] * (y - dot[row]) * scale;
}
template <class T> __global__ void kbki_attn_naive_dot_k(const T* dout, const T* o, float* dot, int64_t rows, int d) {
    int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int c = 0; c < d; c++) sum = fmaf(kbki_float(dout[row * d + c]), kbki_float(o[row * d + c]), sum);
    dot[row] = sum;
}
template <class T>
__global__ void kbki_attn_naive_grad_k(const T* dout, const T* q, const T* k, const float* p, const float* ds, T* dq,
                                       T* dk, T* dv, int64_t rows, int64_t n, int d, int causal) {
    int64_t at = (int64_t)blockIdx.x * 256 + threadIdx.x, row = at / d, c = at % d;
    if (row >= rows) return;
    int64_t head = row / n * n, me = row % n;
    float x = 0, y = 0, z = 0;
    for (int64_t j = 0; j < (causal ? me + 1 : n); j++)
        x = fmaf(ds[row * n + j], kbki_float(k[(head + j) * d + c]), x);
    for (int64_t i = causal ? me : 0; i < n; i++) {
        y = fmaf(ds[(head + i) * n + me], kbki_float(q[(head + i) * d + c]), y);
        z = fmaf(p[(head + i) * n + me], kbki_float(dout[(head + i) * d + c]), z);
    }
    dq[at] = kbki_type<T>::from(x), dk[at] = kbki_type<T>::from(y), dv[at] = kbki_type<T>::from(z);
}
template <class T> const char* kbk_attention_bwd_naive(const kbk_args* a, kbk_stream st) {
    kbki_attn_back<T> io;
    const char* why = kbki_attn_back_args(a, &io);
    if (why || !io.heads) return why;
    if (io.rows > 2048) return "the naive variant keeps all scores: S <= 2048 only";
    if ((why = kbki_check_workspace(a, kbki_scratch_attention_bwd(&a->s, (int)sizeof(T), KBKI_WORD_naive))) != NULL)
        return why;
    int64_t rows = io.heads * io.rows, pairs = rows * io.rows;
    float *p = (float*)((char*)a->workspace + KBK_TICKETS), *ds = p + pairs, *dot = ds + pairs;
    int d = (int)a->s.cols;
    if (!kbki_grid_ok(kbki_ceil(pairs, 256)) || !kbki_grid_ok(kbki_ceil(rows * d, 256))) return KBKI_TEXT_GRID;
    kbki_attn_naive_dot_k<T><<<(unsigned)kbki_ceil(rows, 256), 256, 0, st>>>(io.dout, io.o, dot, rows, d);
    kbk_attention_bwd_naive_k<T><<<(unsigned)kbki_ceil(pairs, 256), 256, 0, st>>>(
        io.dout, io.q, io.k, io.v, io.lse, dot, p, ds, rows, io.rows, d, io.scale, io.causal);
    kbki_attn_naive_grad_k<T><<<(unsigned)kbki_ceil(rows * d, 256), 256, 0, st>>>(
        io.dout, io.q, io.k, p, ds, io.dq, io.dk, io.dv, rows, io.rows, d, io.causal);
    return kbki_launched();
}

// Launches the two passes of a variant that recomputes p and ds in each pass. `query` is the kernel of the first
// pass, which computes dq. `key` is the kernel of the second pass, which computes dk and dv.
template <class T>
using kbki_attn_pass = void(const T* dout, const T* q, const T* k, const T* v, const float* lse, const float* dot,
                            T* dq, T* dk, T* dv, int n, float scale, int causal);
template <class T>
const char* kbki_attn_passes(const kbk_args* a, int word, kbki_attn_pass<T>* query, kbki_attn_pass<T>* key, int rows,
                             unsigned threads, size_t bytes, kbk_stream st) {
    kbki_attn_back<T> io;
    const char* why = kbki_attn_back_args(a, &io);
    if (why || !io.heads) return why;
    const size_t want = bytes;
    if ((why = kbki_check_workspace(a, kbki_scratch_attention_bwd(&a->s, (int)sizeof(T), word))) != NULL) return why;
    if ((why = kbki_want_shared((const void*)query, &bytes)) != NULL) return why;
    if (bytes == want && (why = kbki_want_shared((const void*)key, &bytes)) != NULL) return why;
    if (bytes < want) return "an SM of this GPU has too little shared memory for this kernel";
    float* dot = (float*)((char*)a->workspace + KBK_TICKETS);
    const int64_t lines = io.heads * io.rows, ctas = io.heads * kbki_ceil(io.rows, rows);
    if (!kbki_grid_ok(ctas)) return KBKI_TEXT_GRID;
    kbki_attn_naive_dot_k<T>
        <<<(unsigned)kbki_ceil(lines, 256), 256, 0, st>>>(io.dout, io.o, dot, lines, (int)a->s.cols);
    for (auto kernel : { query, key })
        kernel<<<(unsigned)ctas, threads, bytes, st>>>(io.dout, io.q, io.k, io.v, io.lse, dot, io.dq, io.dk, io.dv,
                                                       (int)io.rows, io.scale, io.causal);
    return kbki_launched();
}

// ---- The kernels without tensor cores that add one idea each end here. The kernels after this line are optimised.

/*  Variant `flash` makes two passes over all pairs of row and key. p and ds are recomputed in each pass and never
    stored in memory. The first pass computes dq; a CTA of this pass keeps 32 rows of q and of `do`, and loops over
    all keys. The second pass (`Keys` is true) computes dk and dv; a CTA of this pass keeps 32 keys, and loops over
    all rows of q. No atomics are needed, because one thread computes each sum. Shared memory holds three f32 tiles
    of 32 rows and one of 32 x 32 (54 KiB at d = 128). Threads are arranged as in >>attention_simt. Thread (y, x)
    of 8 x 16 threads has rows 4 y to 4 y + 3 of the kept operand, and rows x and x + 16 of the loop operand. Of
    every 64 columns of a result, the thread computes columns 4 x to 4 x + 3. */
template <class T, int Dim, bool Keys>
__global__ void __launch_bounds__(128)
    kbk_attention_bwd_flash_k(const T* dout, const T* q, const T* k, const T* v, const float* lse, const float* dot,
                              T* dq, T* dk, T* dv, int n, float scale, int causal) {
    extern __shared__ uint4 kbki_attn_shared[];
    auto a = reinterpret_cast<float(*)[Dim + 4]>(kbki_attn_shared), b = a + 32, moving = b + 32;
    auto small = reinterpret_cast<float(*)[32 + 4]>(moving + 32);
    int tiles = (n + 31) / 32, first = blockIdx.x % tiles * 32;
    int x = threadIdx.x % 16, y = threadIdx.x / 16, mine = first + 4 * y;
    int end = causal && !Keys && first + 32 < n ? first + 32 : n;
    int64_t head = (int64_t)(blockIdx.x / tiles) * n;
    float sum[4][Dim / 16] = {}, sum_v[4][Dim / 16] = {};
    kbki_attn_stage<Dim, 32, 128>(a, (Keys ? k : dout) + (head + first) * Dim, n - first);
    kbki_attn_stage<Dim, 32, 128>(b, (Keys ? v : q) + (head + first) * Dim, n - first);
    for (int at = causal && Keys ? first : 0; at < end; at += 32) {
        float s[4][2] = {}, dp[4][2] = {};
        bool doubt = (causal && at == first) || at + 32 > n;
        // Returns whether the mask hides a pair of rows: row `r` of those that this thread keeps, and row `at + i`
        // of the loop operand.
        auto hidden = [&](int r, int i) {
            int row = Keys ? at + i : mine + r, key = Keys ? mine + r : at + i;
            return row >= n || key >= n || (causal && key > row);
        };
        __syncthreads(); // all warps have read the previous tile of the loop operand
        kbki_attn_stage<Dim, 32, 128>(moving, (Keys ? q : v) + (head + at) * Dim, n - at);
        __syncthreads();
        kbki_attn_scores<Dim>(a, moving, y, x, Keys ? s : dp);
        __syncthreads();
        kbki_attn_stage<Dim, 32, 128>(moving, (Keys ? dout : k) + (head + at) * Dim, n - at);
        __syncthreads();
        kbki_attn_scores<Dim>(b, moving, y, x, Keys ? dp : s);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int r = e / 2, i = x + e % 2 * 16;
            bool seen = !hidden(r, i);
            int64_t row = head + (Keys ? at + i : mine + r);
            float base = seen ? lse[row] : INFINITY; // lse is -inf if the row sees no key
            float p = seen ? expf(fmaf(s[r][e % 2], scale, base == -INFINITY ? -INFINITY : -base)) : 0.0f;
            dp[r][e % 2] = seen ? p * (dp[r][e % 2] - dot[row]) * scale : 0.0f;
            if (Keys) small[4 * y + r][i] = p;
        }
        if (Keys) {
            // a barrier of the warp suffices, because the sixteen lanes that write these four rows also read them
            __syncwarp();
            kbki_attn_values<Dim, 32>(small, moving, y, x, doubt, hidden, sum_v);
            __syncthreads();
            kbki_attn_stage<Dim, 32, 128>(moving, q + (head + at) * Dim, n - at);
        }
#pragma unroll
        for (int e = 0; e < 8; e++) small[4 * y + e / 2][x + e % 2 * 16] = dp[e / 2][e % 2];
        __syncthreads();
        kbki_attn_values<Dim, 32>(small, moving, y, x, doubt, hidden, sum);
    }
#pragma unroll
    for (int e = 0; e < Dim / 4; e++) {
        int r = e % 4, c = e / 4;
        int64_t to = (head + mine + r) * Dim + 4 * x + c / 4 * 64 + c % 4;
        if (mine + r >= n) continue;
        (Keys ? dk : dq)[to] = kbki_type<T>::from(sum[r][c]);
        if (Keys) dv[to] = kbki_type<T>::from(sum_v[r][c]);
    }
}
template <class T> const char* kbk_attention_bwd_flash(const kbk_args* a, kbk_stream st) {
    const size_t bytes = (size_t)(96 * (a->s.cols + 4) + 32 * 36) * sizeof(float);
    return a->s.cols == 64 ? kbki_attn_passes<T>(a, KBKI_WORD_flash, kbk_attention_bwd_flash_k<T, 64, false>,
                                                 kbk_attention_bwd_flash_k<T, 64, true>, 32, 128, bytes, st)
                           : kbki_attn_passes<T>(a, KBKI_WORD_flash, kbk_attention_bwd_flash_k<T, 128, false>,
                                                 kbk_attention_bwd_flash_k<T, 128, true>, 32, 128, bytes, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>attention_bwd_mma     Attention backward on tensor cores with mma.sync; the card is in >>attention_bwd.
-----------------------------------------------------------------*/
#ifdef __CUDACC__

/*  Variant `warpmma` makes two passes over all pairs of row and key, like variant `flash`. A CTA keeps rows of
    two operands in arrays `a` and `b`, and loops over the rows of two other operands in arrays `u` and `w`. If
    a CTA keeps rows of q and `do`, it loops over k and v; if it keeps rows of k and v, it loops over q and
    `do`. A warp keeps 16 rows of `a` and `b`, and processes 16 rows of `u` and `w` at a time. p and ds have
    the register layout of a first operand of mma.sync, as in variant `warpmma` of the forward pass. */
template <class T, int Dim, bool Keys>
__global__ void __launch_bounds__(128, 2)
    kbk_attention_bwd_warpmma_k(const T* dout, const T* q, const T* k, const T* v, const float* lse, const float* dot,
                                T* dq, T* dk, T* dv, int n, float scale, int causal) {
    __shared__ __align__(16) T a[64][Dim + 8], b[64][Dim + 8], u[16][Dim + 8], w[16][Dim + 8];
    int tiles = (n + 63) / 64, first = blockIdx.x % tiles * 64;
    int lane = threadIdx.x % 32, y = threadIdx.x / 32 * 16;
    int end = causal && !Keys && first + 64 < n ? first + 64 : n;
    int64_t head = (int64_t)(blockIdx.x / tiles) * n;
    bool vector = (((uintptr_t)dout | (uintptr_t)q | (uintptr_t)k | (uintptr_t)v) & 15) == 0;
    float sum_u[Dim / 8][4] = {}, sum_w[Dim / 8][4] = {};
    kbki_attn_plain_stage<Dim>(a, (Keys ? k : q) + (head + first) * Dim, n - first, vector);
    kbki_attn_plain_stage<Dim>(b, (Keys ? v : dout) + (head + first) * Dim, n - first, vector);
    for (int at = causal && Keys ? first : 0; at < end; at += 16) {
        float p[2][4] = {}, ds[2][4] = {};
        __syncthreads(); // all warps have read the previous tiles `u` and `w`
        kbki_attn_plain_stage<Dim>(u, (Keys ? q : k) + (head + at) * Dim, n - at, vector);
        kbki_attn_plain_stage<Dim>(w, (Keys ? dout : v) + (head + at) * Dim, n - at, vector);
        __syncthreads();
        kbki_attn_plain_scores<T, Dim>(p, a + y, u), kbki_attn_plain_scores<T, Dim>(ds, b + y, w);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int me = first + y + lane / 4 + e / 2 % 2 * 8, other = at + e / 4 * 8 + lane % 4 * 2 + e % 2;
            int row = Keys ? other : me, key = Keys ? me : other;
            float &s = p[e / 4][e % 4], &dp = ds[e / 4][e % 4];
            bool seen = row < n && key < (causal ? row + 1 : n);
            float base = seen ? lse[head + row] : INFINITY; // lse is -inf if the row sees no key
            s = seen ? expf(s * scale - (base == -INFINITY ? INFINITY : base)) : 0.0f;
            dp = seen ? s * (dp - dot[head + row]) : 0.0f;
        }
        kbki_attn_plain_values<T, Dim>(sum_u, ds, u);
        if (Keys) kbki_attn_plain_values<T, Dim>(sum_w, p, w);
    }
#pragma unroll
    for (int e = 0; e < Dim / 2; e++) {
        int me = first + y + lane / 4 + e / 2 % 2 * 8;
        int64_t to = (head + me) * Dim + e / 4 * 8 + lane % 4 * 2 + e % 2;
        if (me >= n) continue;
        (Keys ? dk : dq)[to] = kbki_type<T>::from(sum_u[e / 4][e % 4] * scale);
        if (Keys) dv[to] = kbki_type<T>::from(sum_w[e / 4][e % 4]);
    }
}
template <class T> const char* kbk_attention_bwd_warpmma(const kbk_args* a, kbk_stream st) {
    const char* why = kbki_needs_mma<T>();
    if (why) return why;
    return a->s.cols == 64 ? kbki_attn_passes<T>(a, KBKI_WORD_warpmma, kbk_attention_bwd_warpmma_k<T, 64, false>,
                                                 kbk_attention_bwd_warpmma_k<T, 64, true>, 64, 128, 0, st)
                           : kbki_attn_passes<T>(a, KBKI_WORD_warpmma, kbk_attention_bwd_warpmma_k<T, 128, false>,
                                                 kbk_attention_bwd_warpmma_k<T, 128, true>, 64, 128, 0, st);
}

// ---- The kernels that add one idea each end here.

// First kernel of variants `flashmma` and `flashws`: computes, for every row, D = sum(do * o), and base = lse *
// log2(e), which p = 2^(score - base) uses. For rows that pad the last tile, the base is infinite, so that p is
// zero. Each lane reads 8 elements of `do` and of `o`, and sets 8 sums of dq to zero.
template <class T, int Dim>
__global__ void __launch_bounds__(256)
    kbki_attn_stat_k(const T* dout, const T* o, const float* lse, float2* stat, float* sums, int64_t heads, int64_t n,
                     int vector, int span, longlong3 dout_step, longlong3 o_step) {
    constexpr int Lanes = Dim / 8;
    int64_t padded = (n + 63) / 64 * 64;
    int64_t at = ((int64_t)blockIdx.x * 256 + threadIdx.x) / Lanes, head = at / padded, row = at % padded;
    int lane = threadIdx.x % Lanes;
    bool in = row < n && head < heads;
    dout += kbki_attn_head(dout_step, span, (int)head) + row * dout_step.x + lane * 8;
    o += kbki_attn_head(o_step, span, (int)head) + row * o_step.x + lane * 8;
    float sum = 0;
    if (in && vector) {
        kbki_pack<T, 8> x, y;
        float f[8], g[8];
        x.load_cached(dout), y.load(o);
        x.get(f), y.get(g);
#pragma unroll
        for (int k = 0; k < 8; k++) sum = fmaf(f[k], g[k], sum);
    } else if (in) {
        for (int k = 0; k < 8; k++) sum = fmaf(kbki_float(dout[k]), kbki_float(o[k]), sum);
    }
#pragma unroll
    for (int d = Lanes / 2; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (head < heads) { // sets the f32 sums of dq to 0
        float4* zero = reinterpret_cast<float4*>(sums) + ((int64_t)blockIdx.x * 256 + threadIdx.x) * 2;
        zero[0] = zero[1] = make_float4(0, 0, 0, 0);
    }
    // kbki_follow_me is called late, so that waiting CTAs of the next kernel (PDL) do not occupy SMs
    kbki_follow_me();
    if (lane || head >= heads) return;
    float base = in ? lse[head * n + row] : INFINITY;
    stat[at] = make_float2(base == -INFINITY ? INFINITY : base * KBKI_LOG2E, sum);
}
// Last kernel of variants `flashmma` and `flashws`: converts the sums of dq from the layout of the main kernel's
// accumulators to rows of dq.
template <class T, int Dim>
__global__ void __launch_bounds__(Dim * 2)
    kbki_attn_dq_k(const float* sums, T* dq, int n, float scale, int vector, int span, longlong3 step) {
    __shared__ uint4 tile[64 * Dim / 8];
    int tiles = (n + 63) / 64, warp = threadIdx.x / 32, row = blockIdx.x % tiles * 64 + warp % 2 * 32;
    const float4* from =
        reinterpret_cast<const float4*>(sums) + (int64_t)blockIdx.x * (Dim * 16) + warp * 256 + threadIdx.x % 32;
    float4 y[8]; // all loads are issued before the first value is used
    float x[2][4][4];
    kbki_follow_wait();
#pragma unroll
    for (int f = 0; f < 8; f++) y[f] = __ldcs(from + f * 32);
#pragma unroll
    for (int f = 0; f < 8; f++) {
        float(&to)[4] = x[f / 4][f % 4];
        to[0] = y[f].x * scale, to[1] = y[f].y * scale, to[2] = y[f].z * scale, to[3] = y[f].w * scale;
    }
    dq += kbki_attn_head(step, span, blockIdx.x / tiles) + row * step.x;
    kbki_attn_write<T, Dim, 4>(dq, kbki_shared(tile) + warp % 2 * 64 * Dim, x, warp / 2 * 4, n - row, vector,
                               kbki_attn_lanes(), step.x);
}

/*  Configuration of variant `flashmma`. A warp keeps 32 keys and processes 32 rows of q at a time, so that
    each operand read from shared memory serves two mma instructions. Scores are computed transposed, with
    keys as rows. Therefore, p and ds have the register layout of a first operand, which the products for dv
    and dk need. At d = 64, dk and dv of 32 keys fill the registers of a warp. At d = 128, two warps share 32
    keys. Each of the two warps computes the scores of half of the rows of q, and half of the columns of dk
    and dv. The two warps exchange p and ds through shared memory. */
template <int Dim, int Keys> struct kbki_attn_plan {
    static constexpr int dim = Dim, lines = Keys, share = Dim / 64, warps = Keys / 32 * share, threads = 32 * warps;
    // buffers: number of buffers for tiles of q, and for tiles of `do`
    static constexpr int ctas = Keys == 128 ? 2 / share : 1, buffers = Keys == 128 ? 2 : 1;
    static constexpr uint32_t row = 2 * Dim, keys = Keys * row, tile = 64 * row, ds = Keys * 128, stat = 64 * 8;
    // kept: number of tiles of ds in shared memory. Before compute capability 9.0, shared memory may have room for
    // only one tile of ds. Computing dq then needs an additional barrier.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    static constexpr int kept = buffers == 1 ? 1 : 3 - share;
#else
    static constexpr int kept = buffers;
#endif
    static constexpr uint32_t bytes(int n) { return 2 * keys + buffers * (2 * tile + stat) + (n + share - 1) * ds; }
};
// Sets elements of p or ds to zero if their row or key is beyond the last one, or if their key is causally masked.
// key, row: key and row of this thread's first element.
__device__ __forceinline__ void kbki_attn_back_hide(float (&s)[2][4][4], bool causal, int key, int row, int last) {
#pragma unroll
    for (int n = 0; n < 32; n++) {
        int m = n / 16, c = n / 4 % 4, e = n % 4, j = key + 16 * m + e / 2 * 8, i = row + 8 * c + (e & 1);
        if (j > last || i > last || (causal && j > i)) s[m][c][e] = 0;
    }
}
// In shared memory, a tile of p or ds stores 64 elements per key, one per row of q, with the same swizzle as the
// tiles of q and k. Returns the address at which this lane accesses a block of 16 keys, from the warp's key 16 m
// on, by 16 rows of q, from row part + 16 c of the tile on. to: address of the warp's first key in this tile.
__device__ __forceinline__ uint32_t kbki_attn_back_at(uint32_t to, kbki_attn_lane at, int part, int m, int c) {
    return to + (m * 16 + at.left) * 128 + ((at.left_bit ^ (part / 8 + 2 * c)) << 4);
}
// Computes p and ds of 32 keys, from `key` on, for 32 rows of q, from `row` on. part: index of `row` in its tile.
// The exponentials overlap with the product of `do` and v, because neither of them depends on the other. hidden: 2
// if the causal mask hides some pairs of row and key, else 1 if some rows or keys are beyond the last one, else 0.
template <class T, class Plan>
__device__ __forceinline__ void kbki_attn_back_scores(uint32_t (&p)[2][2][4], uint32_t (&x)[2][2][4], uint32_t k,
                                                      uint32_t v, uint32_t q, uint32_t dout, uint32_t ds, uint32_t ps,
                                                      const float4* stat, kbki_attn_lane at, float log2_scale,
                                                      int hidden, int key, int row, int last, int part) {
    const int lane = threadIdx.x % 32, g = lane / 4, column = row + lane % 4 * 2;
    float s[2][4][4];
    kbki_attn_rows_by_rows<T, Plan::dim, 2, 4>(s, k, q, at);
#pragma unroll
    for (int i = 0; i < 32; i++) {
        float& e = s[i / 4 % 2][i / 8][i % 4];
        e = kbki_exp2(fmaf(e, log2_scale, i & 1 ? -stat[i / 8 * 4].z : -stat[i / 8 * 4].x));
    }
    if (hidden) kbki_attn_back_hide(s, hidden > 1, key + g, column, last);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float* two = &s[i / 8][i / 2 % 4][i % 2 * 2];
        p[i / 8][i / 4 % 2][i % 4] = kbki_attn_pack<T>(two[0], two[1]);
    }
    if (Plan::share > 1)
#pragma unroll
        for (int i = 0; i < 4; i++) kbki_stmatrix(kbki_attn_back_at(ps, at, part, i / 2, i % 2), p[i / 2][i % 2]);
    kbki_attn_rows_by_rows<T, Plan::dim, 2, 4>(s, v, dout, at);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float4 two = stat[i / 2 % 4 * 4];
        float w[2], *t = &s[i / 8][i / 2 % 4][i % 2 * 2];
        kbki_unword((T*)0, p[i / 8][i / 4 % 2][i % 4], w);
        t[0] = w[0] * (t[0] - two.y), t[1] = w[1] * (t[1] - two.w);
    }
    if (hidden) kbki_attn_back_hide(s, hidden > 1, key + g, column, last);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float* two = &s[i / 8][i / 2 % 4][i % 2 * 2];
        x[i / 8][i / 4 % 2][i % 4] = kbki_attn_pack<T>(two[0], two[1]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) kbki_stmatrix(kbki_attn_back_at(ds, at, part, i / 2, i % 2), x[i / 2][i % 2]);
}
// Returns the index, counted over all heads, of the 64-row tile that contains a row of a head.
template <class T> __device__ __forceinline__ int kbki_attn_tile(const kbki_attn_back<T>& io, int head, int row) {
    return head * (((int)io.rows + 63) / 64) + row / 64;
}
// Adds this warp's 32 x 32 block of dq to the sums in memory, for the tile of rows of q that starts at row `tile`.
// pass: index of the block if a warp computes several blocks, else 0.
template <class T, class Plan>
__device__ __forceinline__ void kbki_attn_back_dq(const kbki_attn_back<T>& io, int head, int tile, int key0,
                                                  uint32_t ds, uint32_t k, kbki_attn_lane at, int pass = 0) {
    const int warp = threadIdx.x / 32 + pass * Plan::warps, lane = threadIdx.x % 32;
    const int row = warp % 2 * 32, first = warp / 2 * 4;
    float acc[2][4][4] = {};
    ds += ((lane & 7) + (lane >> 4) * 8) * 128;
    const int swap[2] = { ((row / 8 + (lane >> 3 & 1)) ^ (lane & 7)) << 4,
                          ((row / 8 + 2 + (lane >> 3 & 1)) ^ (lane & 7)) << 4 };
    constexpr int Blocks = Plan::lines / 16;
    // number of blocks of 16 keys that at least one row of this block of dq sees; ds of the remaining keys was not
    // written
    const int seen = io.causal ? min(Blocks, (tile + row - key0) / 16 + 2) : Blocks;
    auto add = [&](int c) {
        uint32_t a[2][2][4];
#pragma unroll
        for (int i = 0; i < 4; i++) kbki_ldmatrix<true>(ds + (c + i % 2) * 2048 + swap[i / 2], a[i / 2][i % 2]);
        kbki_attn_by_rows<T, Plan::dim, 2, 2, 4>(acc, a, k + c * 16 * Plan::row, first, at);
    };
    if (seen == Blocks) {
#pragma unroll
        for (int c = 0; c < Blocks; c += 2) add(c);
    } else {
#pragma unroll 1
        for (int c = 0; c < seen; c += 2) add(c);
    }
    float* to = io.sum + (int64_t)kbki_attn_tile(io, head, tile) * (64 * Plan::dim) + warp * 1024 + lane * 4;
#pragma unroll
    for (int f = 0; f < 8; f++) kbki_add4(to + f * 128, acc[f / 4][f % 4]);
}
// State of a warp of variant `flashmma`: the addresses of its CTA's tiles in shared memory, its keys, and its
// sums.
template <class T, class Plan> struct kbki_attn_back_warp {
    const kbki_attn_back<T>& io;
    uint32_t k, v, ring, stats, ds, ps;
    // mine: index of the warp's first key in the CTA's tile of keys; turn: 0 if the warp processes the first half
    // of the rows of a tile first, 1 if it processes the second half first
    int n, warp, head, key0, mine, turn;
    kbki_attn_lane at;
    float log2_scale;
    float dk[2][8][4], dv[2][8][4];

    __device__ __forceinline__ uint32_t ds_of(int stage) const { return ds + stage % Plan::kept * Plan::ds; }
    __device__ __forceinline__ void fetch(int stage, int row) const {
        const int64_t from = ((int64_t)head * n + row) * Plan::dim;
        const uint32_t to = ring + stage * Plan::tile;
        kbki_attn_fetch<T, Plan::dim, 64, Plan::threads>(to, io.q + from, n - row, io.vector);
        kbki_attn_fetch<T, Plan::dim, 64, Plan::threads>(to + Plan::buffers * Plan::tile, io.dout + from, n - row,
                                                         io.vector);
        if (threadIdx.x < 32)
            kbki_ahead_copy_if(stats + stage * Plan::stat + threadIdx.x * 16,
                               io.stat + (int64_t)kbki_attn_tile(io, head, row) * 64 + threadIdx.x * 2, true);
        kbki_ahead_close();
    }

    // Processes half i (0 or 1) of the rows of a tile: computes p and ds of this warp's keys, and adds to the sums
    // dk and dv. before: whether to compute dq of the previous tile first.
    __device__ __forceinline__ void half(int i, int row, int stage, bool before) {
        extern __shared__ uint4 kbki_attn_shared[];
        // shift: first key minus first row of q
        const int part = 32 * (i ^ turn), shift = key0 + mine - row - part;
        // whether all pairs of key and row are masked
        const bool none = io.causal && shift > 0;
        const int hidden = io.causal && shift == 0 ? 2 : key0 + Plan::lines > n || row + 64 > n;
        const uint32_t my_ds = ds_of(stage) + mine * 128, my_p = ps + mine * 128;
        const uint32_t my_q = ring + stage * Plan::tile + part * Plan::row,
                       my_dout = my_q + Plan::buffers * Plan::tile;
        const float4* stat = reinterpret_cast<const float4*>(kbki_attn_shared) +
                             (stats - k + stage * Plan::stat + part * 8) / 16 + threadIdx.x % 4;
        uint32_t p[2][2][4], x[2][2][4];
        // dq of the previous tile is computed here, where register pressure is low. The registers of dq stay
        // occupied until the atomics have read them.
        if (before) kbki_attn_back_dq<T, Plan>(io, head, row - 64, key0, ds_of(stage ^ 1), k, at);
        if (Plan::buffers > 1 && i == 0 && Plan::kept == 1) __syncthreads();
        if (Plan::share == 1 || i == 0) {
            if (!none)
                kbki_attn_back_scores<T, Plan>(p, x, k + mine * Plan::row, v + mine * Plan::row, my_q, my_dout, my_ds,
                                               my_p, stat, at, log2_scale, hidden, key0 + mine, row + part, n - 1,
                                               part);
            // signals to the other warp of the pair that p and ds are written
            if (Plan::share > 1) kbki_barrier_arrive<64>(warp + 1);
        } else {
            kbki_barrier<64>((warp ^ 1) + 1);
#pragma unroll
            for (int b = 0; b < 4 && !none; b++) {
                kbki_ldmatrix<false>(kbki_attn_back_at(my_p, at, part, b / 2, b % 2), p[b / 2][b % 2]);
                kbki_ldmatrix<false>(kbki_attn_back_at(my_ds, at, part, b / 2, b % 2), x[b / 2][b % 2]);
            }
        }
        if (none) return;
        // each of the two products computes 32 keys by 64 columns of dv or dk, and sums over 32 rows of q
        kbki_attn_by_rows<T, Plan::dim, 2, 2, 8>(dv, p, my_dout, turn * 8, at);
        kbki_attn_by_rows<T, Plan::dim, 2, 2, 8>(dk, x, my_q, turn * 8, at);
    }
};
// Kernel of variant `flashmma`: a CTA keeps Keys keys and loops over the rows of q. cp.async loads 64 rows of q
// and of `do` at a time.
template <class T, int Dim, int Keys>
__global__ void __launch_bounds__(kbki_attn_plan<Dim, Keys>::threads, kbki_attn_plan<Dim, Keys>::ctas)
    kbk_attention_bwd_flashmma_k(const T* dout, const T* q, const T* k_in, const T* v_in, float2* row_stats,
                                 float* sums, T* dk, T* dv, int n, float scale, int causal, int vector) {
    const kbki_attn_back<T> io = { dout, q,         k_in, v_in, NULL, NULL,  NULL,   dk,
                                   dv,   row_stats, sums, 0,    n,    scale, causal, vector };
    typedef kbki_attn_plan<Dim, Keys> Plan;
    extern __shared__ uint4 kbki_attn_shared[];
    const uint32_t k = kbki_shared(kbki_attn_shared), v = k + Plan::keys, ring = v + Plan::keys;
    const uint32_t stats = ring + 2 * Plan::buffers * Plan::tile, ds = stats + Plan::buffers * Plan::stat;
    const kbki_attn_lane at = kbki_attn_lanes();
    const int tiles = (n + Keys - 1) / Keys, warp = threadIdx.x / 32;
    const int head = blockIdx.x / tiles, key0 = blockIdx.x % tiles * Keys;
    const int mine = warp / Plan::share * 32, turn = warp % Plan::share;
    kbki_attn_back_warp<T, Plan> me = { io,   k,    v,    ring, stats, ds, ds + Plan::kept * Plan::ds, n,
                                        warp, head, key0, mine, turn,  at, scale * KBKI_LOG2E,         {},
                                        {} };
    kbki_attn_fetch<T, Dim, Keys, Plan::threads>(k, k_in + ((int64_t)head * n + key0) * Dim, n - key0, vector);
    kbki_attn_fetch<T, Dim, Keys, Plan::threads>(v, v_in + ((int64_t)head * n + key0) * Dim, n - key0, vector);
    const int first = causal ? key0 : 0;
    int row = first;
    kbki_follow_wait();
    me.fetch(0, row);
#pragma unroll 1
    for (; row < n; row += 64) {
        const int stage = (row - first) / 64 & (Plan::buffers - 1);
        kbki_ahead_wait<0>();
        __syncthreads();
        if (Plan::buffers > 1 && row + 64 < n) me.fetch(stage ^ 1, row + 64);
#pragma unroll
        for (int i = 0; i < 2; i++) me.half(i, row, stage, Plan::buffers > 1 && i == Plan::kept - 1 && row > first);
        if (Plan::buffers > 1) continue;
        // all warps have read the current rows of q and `do`, which the next rows overwrite while dq is computed
        __syncthreads();
        if (row + 64 < n) me.fetch(0, row + 64);
#pragma unroll 1
        for (int pass = 0; pass < Dim / 16 / Plan::warps; pass++)
            kbki_attn_back_dq<T, Plan>(io, head, row, key0, ds, k, at, pass);
    }
    __syncthreads();
    if (Plan::buffers > 1)
        kbki_attn_back_dq<T, Plan>(io, head, row - 64, key0, me.ds_of((row - 64 - first) / 64 & 1), k, at);
#pragma unroll
    for (int e = 0; e < 64; e++) me.dk[e / 32][e / 4 % 8][e % 4] *= scale;
    kbki_follow_me();
    __syncthreads(); // all warps have read k and v, whose memory becomes the staging buffers of dk and dv
    const int64_t key = (int64_t)head * n + key0 + mine;
    const int left = n - key0 - mine;
    kbki_attn_write<T, Dim, 8>(dk + key * Dim, k + mine * Plan::row, me.dk, turn * 8, left, vector, at);
    kbki_attn_write<T, Dim, 8>(dv + key * Dim, v + mine * Plan::row, me.dv, turn * 8, left, vector, at);
}
// Launches the three kernels of variant `flashmma` or `flashws`. `launch` launches the second of them.
template <class T, int Dim, class Launch>
const char* kbki_attn_launch_sequence(const kbki_attn_back<T>& io, kbk_stream st, Launch launch) {
    const int64_t tiles = io.heads * kbki_ceil(io.rows, 64), stats = kbki_ceil(tiles * 64 * Dim, 8 * 256);
    if (!kbki_grid_ok(stats)) return KBKI_TEXT_GRID;
    kbki_attn_stat_k<T, Dim><<<(unsigned)stats, 256, 0, st>>>(io.dout, io.o, io.lse, io.stat, io.sum, io.heads,
                                                              io.rows, io.vector, io.span, io.step[0], io.step[4]);
    const char* why = kbki_launched();
    if (!why) why = launch();
    return why ? why
               : kbki_follow(kbki_attn_dq_k<T, Dim>, dim3((unsigned)tiles), 2 * Dim, st, io.sum, io.dq, (int)io.rows,
                             io.scale, io.vector, io.span, io.step[6]);
}
template <class T, int Dim, int Keys>
const char* kbki_attn_back_launch(const kbki_attn_back<T>& io, size_t bytes, kbk_stream st) {
    const int64_t keys = io.heads * kbki_ceil(io.rows, Keys);
    if (!bytes) return "an SM of this GPU has too little shared memory for this kernel";
    return kbki_attn_launch_sequence<T, Dim>(io, st, [&] {
        return kbki_follow(kbk_attention_bwd_flashmma_k<T, Dim, Keys>, dim3((unsigned)keys),
                           kbki_attn_plan<Dim, Keys>::threads, bytes, st, io.dout, io.q, io.k, io.v, io.stat, io.sum,
                           io.dk, io.dv, (int)io.rows, io.scale, io.causal, io.vector);
    });
}
// Launches the kernel of variant `flashmma` with 64 keys per CTA and one buffer for rows of q and `do`. The
// configuration with 64 keys is used at d = 128 if a CTA cannot have 161 KiB of shared memory.
template <class T> const char* kbki_attn_back_small(const kbki_attn_back<T>& io, kbk_stream st) {
    size_t bytes = kbki_attn_plan<128, 64>::bytes(1);
    const char* why = kbki_want_shared(kbk_attention_bwd_flashmma_k<T, 128, 64>, &bytes);
    return why ? why : kbki_attn_back_launch<T, 128, 64>(io, bytes, st);
}
template <class T, int Dim> const char* kbki_attn_back_flashmma(const kbki_attn_back<T>& io, kbk_stream st) {
    size_t bytes = kbki_attn_plan<Dim, 128>::bytes(2);
    const char* why = kbki_needs(80);
    if (!why) why = kbki_want_shared(kbk_attention_bwd_flashmma_k<T, Dim, 128>, &bytes);
    if (!why && !bytes) // code for compute capabilities below 9.0 needs less shared memory
        bytes = kbki_attn_plan<Dim, 128>::bytes(1),
        why = kbki_want_shared(kbk_attention_bwd_flashmma_k<T, Dim, 128>, &bytes);
    if (why) return why;
    if constexpr (Dim == 128)
        if (!bytes) return kbki_attn_back_small(io, st);
    return kbki_attn_back_launch<T, Dim, 128>(io, bytes, st);
}
template <class T> const char* kbk_attention_bwd_flashmma(const kbk_args* a, kbk_stream st) {
    kbki_attn_back<T> io;
    const char* why = kbki_attn_back_args(a, &io);
    if (why || !io.heads) return why;
    if ((why = kbki_attn_back_room(a, KBKI_WORD_flashmma, &io)) != NULL) return why;
    return a->s.cols == 64 ? kbki_attn_back_flashmma<T, 64>(io, st) : kbki_attn_back_flashmma<T, 128>(io, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>attention_bwd_hopper     Attention backward with wgmma and TMA, for compute capability 9.0 only: rung 7.
-----------------------------------------------------------------*/

/*  attention bwd, continued: f16 and bf16 on compute capability 9.0 -----------------------------------------
    7 flashws  warp specialization: a producer thread keeps a TMA pipeline full, with two tiles of q and of `do`. A
               tile has 64 rows at d = 128, and 128 rows at d = 64. A CTA keeps 128 keys in shared memory. Two
               consumer warpgroups hold dk and dv of 64 keys each in registers. Scores are computed transposed,
               with keys as rows, so that p and ds stay in registers as first operands for dv and dk. ds also goes
               to shared memory for dq: each warpgroup computes a 64 x 64 block of dq over all 128 keys
               <- no thread moves operands. Three of the five products of a tile overlap with other work: the product
               of `do` and v with the exponentials, the product for dv with computing ds, and the product for dk with
               the atomics of dq and the next scores. One barrier per tile remains. If all work items have about the
               same length, the kernel is persistent, and loads the next keys while results are stored. With a causal
               mask and many rows, a persistent kernel was slower. Bulk reductions of dq from shared memory were slower
               than atomics from registers: on an H200 (bf16, S = 4096) 548 TFLOP/s instead of 559 at d = 128, and 439
               instead of 494 at d = 64
    bound by   arithmetic, and the bandwidth of shared memory, which products of 64 x 64 use fully

    Rung 7 (`flashws`) launches three kernels; it shares the first and the last kernel with rung 6 (`flashmma`).
    For every row, the first kernel computes lse * log2(e) and D = sum(do * o). The last kernel converts the f32
    sums of dq, which are in the order of accumulators, to rows of dq. Rows and keys beyond the last one are read
    as zeros (TMA). p and ds are set to 0 for padded rows and keys, and for masked pairs. The tensors `do`, q, k
    and v must be aligned to 16 bytes; o, dq, dk and dv may have any alignment. */
#ifdef __CUDACC__

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Loads a tile of K, V, Q or dO by TMA, in boxes of 64 rows by 64 columns. Only one thread calls kbki_fab_load.
template <int Lines, int Panels>
__device__ __forceinline__ void kbki_fab_load(char* to, const kbki_map* map, uint64_t* bar, int line, int head,
                                              int batch) {
    for (int b = 0; b < Lines / 64 * Panels; b++)
        kbki_tma_load_4d(to + b * 8192, map, bar, b % Panels * 64, line + b / Panels * 64, head, batch);
}
// Declares registers as undefined before a product writes to them. Without this declaration, ptxas sees other
// writes to these registers while the product is in flight, and serialises the product.
template <int Count> __device__ __forceinline__ void kbki_fab_new(float* d) {
#pragma unroll
    for (int i = 0; i < Count; i++) asm volatile("" : "=f"(d[i]));
}
// Returns the descriptor of the operand at byte offset `bytes` after the operand `all`. The descriptor is recomputed
// for each tile, because the descriptors of K and V would otherwise take 48 registers.
template <bool Along>
__device__ __forceinline__ kbki_wg_operand<Along> kbki_fab_operand(const kbki_wg_operand<true>& all, uint32_t bytes) {
    kbki_wg_operand<Along> operand;
    operand.low = all.low + bytes / 16 + (Along ? 0 : (8192 / 16 - 1) << 16);
    asm volatile("" : "+r"(operand.low));
    return operand;
}
// Returns the statistics of the two rows of q whose scores this thread holds in column block b: for each row, lse
// * log2(e) and D.
__device__ __forceinline__ float4 kbki_fab_row_stats(const char* stat, int b) {
    float4 two;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(two.x), "=f"(two.y), "=f"(two.z), "=f"(two.w)
                 : "r"(kbki_shared(stat) + (b * 4 + threadIdx.x % 4) * 16)
                 : "memory");
    return two;
}
// Sets an element of s to 0 if its row or key is beyond the last one, or if its key is masked. row: first row of the
// tile of q. key: first key of the warpgroup.
template <int Rows> __device__ __forceinline__ void kbki_fab_hide(float* s, int row, int key, int n, int causal) {
    row += threadIdx.x % 4 * 2, key += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    const int low = key >= n ? n : causal ? key : 0, high = key + 8 >= n ? n : causal ? key + 8 : 0;
#pragma unroll
    for (int i = 0; i < Rows / 2; i++) {
        const int at = row + i / 4 * 8 + i % 2;
        if (at < (i / 2 % 2 ? high : low) || at >= n) s[i] = 0;
    }
}
#endif // __CUDA_ARCH_FEAT_SM90_ALL

/*  Kernel of variant `flashws`, with warp specialization. Shared memory holds K, V, two buffers for Q, two for dO, two
    tiles of ds, and two buffers for the statistics of rows. Q, K, V and dO are stored in blocks of 64 rows; each block
    is stored panel by panel (64 columns). ds is stored in blocks of 64 rows of q; each block has all 128 keys.
    A work item is a tile of 128 keys of one head. The heads form sections of `span` heads. Within a section, work
    items are ordered by key, so that the longest items come first: with a causal mask, most rows see the first keys.
    Each CTA takes one item per round; the number of CTAs decides whether the kernel is persistent. The kernel has more
    than 120 lines, because it is also the production kernel. */
template <class T, int Dim>
__global__ void __launch_bounds__(384, 1)
    kbk_attention_bwd_flashws_k(const __grid_constant__ kbki_map map_q, const __grid_constant__ kbki_map map_k,
                                const __grid_constant__ kbki_map map_v, const __grid_constant__ kbki_map map_dout,
                                const float2* stats, float* sums, T* dk_out, T* dv_out, int heads, int n, float scale,
                                int causal, int span, int heads_of_batch, longlong3 dk_step, longlong3 dv_step) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // Rows: rows of a tile of Q or dO; each warpgroup computes 64 x 64 elements of dq per tile
    constexpr int Rows = 8192 / Dim, Panels = Dim / 64, KeyBytes = 128 * Dim * 2, RowBytes = Rows * Dim * 2;
    constexpr int VAt = KeyBytes, QAt = VAt + KeyBytes, Dout = QAt + 2 * RowBytes; // byte offsets in shared memory
    constexpr int Ds = Dout + 2 * RowBytes, DsBytes = 128 * Rows * 2, Stat = Ds + 2 * DsBytes, StatBytes = Rows * 8;
    extern __shared__ uint4 kbki_attn_shared[];
    __shared__ struct { uint64_t k_full, v_full, keys_empty, q_full[2], dout_full[2], empty[2]; } bar;
    char* base = kbki_wg_align(kbki_attn_shared);
    const int tiles = (n + 127) / 128, lines = (n + 63) / 64;
    const unsigned items = heads * tiles, rounds = (items + gridDim.x - 1) / gridDim.x;
    // the shuffle tells the compiler that `group` is uniform in a warp
    const int group = (int)__shfl_sync(~0u, threadIdx.x / 128, 0) - 1;
    int head = 0, key0 = 0, row0 = 0; // a work item: its head, its first key, and the first row that sees a key
    unsigned slot = 0, parity = 0;    // pipeline slot of a tile of Q and dO
    // Sets the work item of this CTA in round `round`. In odd rounds, the CTAs take work items in reverse order, for
    // load balance. Returns false if this CTA has no work item in this round.
    auto take = [&](unsigned round) {
        unsigned index = round * gridDim.x + (round & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
        if (index >= items) return false;
        int section = (int)index / (span * tiles), in = (int)index - section * (span * tiles);
        int wide = min(span, heads - section * span);
        head = section * span + in % wide, key0 = in / wide * 128, row0 = causal ? key0 : 0;
        return true;
    };
    if (threadIdx.x == 0) {
        kbki_bar_init(&bar.k_full, 1), kbki_bar_init(&bar.v_full, 1), kbki_bar_init(&bar.keys_empty, 2);
        for (int i = 0; i < 2; i++)
            kbki_bar_init(bar.q_full + i, 1), kbki_bar_init(bar.dout_full + i, 1), kbki_bar_init(bar.empty + i, 2);
        kbki_bar_ready();
        kbki_tma_prefetch(&map_q), kbki_tma_prefetch(&map_k);
        kbki_tma_prefetch(&map_v), kbki_tma_prefetch(&map_dout);
    }
    __syncthreads();
    if (group < 0) { // producer: one thread loads K, V, and all tiles of Q and dO that see the item's keys
        kbki_wg_give<24>();
        for (unsigned round = 0; threadIdx.x == 0 && round < rounds; round++) {
            if (!take(round)) continue;
            const int batch = heads_of_batch ? head / heads_of_batch : 0, in_batch = head - batch * heads_of_batch;
#pragma unroll 1
            for (int row = row0; row < n; row += Rows, slot ^= 1, parity ^= slot == 0) {
                const unsigned stat_bytes = (unsigned)min(Rows, lines * 64 - row) * 8;
                kbki_bar_wait(bar.empty + slot, parity ^ 1);
                kbki_bar_expect(bar.q_full + slot, RowBytes + stat_bytes);
                kbki_fab_load<Rows, Panels>(base + QAt + slot * RowBytes, &map_q, bar.q_full + slot, row, in_batch,
                                            batch);
                kbki_bar_expect(bar.dout_full + slot, RowBytes);
                kbki_fab_load<Rows, Panels>(base + Dout + slot * RowBytes, &map_dout, bar.dout_full + slot, row,
                                            in_batch, batch);
                if (row == row0) {
                    kbki_bar_wait(&bar.keys_empty, ~round & 1);
                    kbki_bar_expect(&bar.k_full, KeyBytes);
                    kbki_fab_load<128, Panels>(base, &map_k, &bar.k_full, key0, in_batch, batch);
                    kbki_bar_expect(&bar.v_full, KeyBytes);
                    kbki_fab_load<128, Panels>(base + VAt, &map_v, &bar.v_full, key0, in_batch, batch);
                }
                // The previous kernel (PDL) computes the statistics of rows and sets the sums of dq to 0. Only the
                // producer waits for the previous kernel, because the consumers add to dq only after the
                // statistics of rows have arrived.
                kbki_follow_wait();
                kbki_bulk_load(base + Stat + slot * StatBytes, stats + (int64_t)(head * lines + row / 64) * 64,
                               stat_bytes, bar.q_full + slot);
            }
        }
        return;
    }
    kbki_wg_take<240>();
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    // Of a tile of dq, the warpgroup computes 64 columns from 64 * panel on, and 64 rows from 64 * block on.
    const int panel = group % Panels, block = group / Panels;
    const float log2_scale = scale * KBKI_LOG2E;
    kbki_wg_operand<true> all; // operand at the start of shared memory
    all.set(base);
    // s = a b', where a has rows of K or V, and b has rows of Q or dO
    auto scores = [&](uint32_t keys, uint32_t rows, float* s) {
        const auto a = kbki_fab_operand<true>(all, keys + (uint32_t)group * (Panels * 8192));
        const auto b = kbki_fab_operand<true>(all, rows);
        kbki_fab_new<Rows / 2>(s);
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < Dim / 16; k++) {
            const uint32_t on = k / 4 * a.block64 + k % 4 * a.step16;
            kbki_wgmma<T, Rows>::template shared<0, 0>(s, a.at(on), b.at(on), k != 0);
        }
        kbki_wg_commit();
    };
    // sum += p dO, or sum += ds Q
    auto add = [&](const uint32_t* p, uint32_t rows, float* sum) {
        const auto b = kbki_fab_operand<false>(all, rows);
        kbki_wg_fence();
#pragma unroll
        for (int k = 0; k < Rows / 16; k++)
            kbki_wgmma<T, Dim>::template registers<1>(sum, p + k * 4,
                                                      b.at(k / 4 * Panels * b.block64 + k % 4 * b.step16), 1);
        kbki_wg_commit();
    };
    for (unsigned round = 0; round < rounds; round++) {
        float dk[Dim / 2] = {}, dv[Dim / 2] = {};
        if (!take(round)) continue; // only the last round may have no item for this CTA
        int row = row0;
        kbki_bar_wait(&bar.k_full, round & 1), kbki_bar_wait(&bar.v_full, round & 1);
#pragma unroll 1
        do { // executed at least once, because every key is seen by a row
            const bool edge = (causal && row < key0 + 128) || key0 + 128 > n || row + Rows > n;
            const uint32_t q = QAt + slot * RowBytes, dout = Dout + slot * RowBytes, ds = Ds + slot * DsBytes;
            const char* stat = base + Stat + slot * StatBytes;
            float s[Rows / 2], t[Rows / 2], d[32]; // s: scores, then p; t: dO V', then ds; keys are rows
            uint32_t p[Rows / 4], x[Rows / 4];     // p and ds in 16 bits
            kbki_bar_wait(bar.q_full + slot, parity);
            scores(0, q, s);
            kbki_wg_wait<1>(); // waits until the previous tile's last product (for dk) has read the other slot
            if (row > row0) kbki_fa_arrive(bar.empty + (slot ^ 1));
            kbki_bar_wait(bar.dout_full + slot, parity);
            scores(VAt, dout, t);
            kbki_wg_wait<1>();
            kbki_wg_hold<Rows / 2>(s);
#pragma unroll
            for (int b = 0; b < Rows / 8; b++) {
                const float4 two = kbki_fab_row_stats(stat, b);
#pragma unroll
                for (int e = b * 4; e < b * 4 + 4; e++)
                    s[e] = kbki_exp2(fmaf(s[e], log2_scale, e & 1 ? -two.z : -two.x));
            }
            if (edge) kbki_fab_hide<Rows>(s, row, key0 + group * 64, n, causal);
#pragma unroll
            for (int i = 0; i < Rows / 4; i++) p[i] = kbki_word((T*)0, s + 2 * i);
            add(p, dout, dv);
            kbki_wg_wait<1>();
            kbki_wg_hold<Rows / 2>(t);
#pragma unroll
            for (int i = 0; i < Rows / 4; i++) {
                const float4 two = kbki_fab_row_stats(stat, i / 2);
                float w[2];
                kbki_unword((T*)0, p[i], w);
                t[2 * i] = w[0] * (t[2 * i] - two.y), t[2 * i + 1] = w[1] * (t[2 * i + 1] - two.w);
            }
            if (edge) kbki_fab_hide<Rows>(t, row, key0 + group * 64, n, causal);
#pragma unroll
            for (int i = 0; i < Rows / 4; i++) x[i] = kbki_word((T*)0, t + 2 * i);
#pragma unroll
            for (int c = 0; c < Rows / 16; c++) // stores ds; each warpgroup also needs the other's ds for dq
                kbki_stmatrix(kbki_shared(base + ds + (group * 64 + warp * 16 + lane % 16) * 128 +
                                          c / 4 * (128 * 128) + (((c % 4 * 2 + lane / 16) ^ (lane & 7)) << 4)),
                              x + c * 4);
            kbki_bulk_fence();
            kbki_barrier<256>(3);
            const auto a = kbki_fab_operand<false>(all, ds + (uint32_t)block * (128 * 128));
            const auto b = kbki_fab_operand<false>(all, panel * 8192);
            kbki_fab_new<32>(d);
            kbki_wg_fence();
#pragma unroll
            for (int k = 0; k < 8; k++) // the warpgroup's 64 x 64 block of dq, over all keys of the tile
                kbki_wgmma<T, 64>::template shared<1, 1>(d, a.at(k * a.step16),
                                                         b.at(k / 4 * Panels * b.block64 + k % 4 * b.step16), k != 0);
            kbki_wg_commit();
            add(x, q, dk);
            kbki_wg_wait<1>();
            kbki_wg_hold<32>(d);
            // adds the block to the sums in memory, in the layout that kbki_attn_dq_k reads
            float* to = sums + (int64_t)(head * lines + row / 64 + block) * (64 * Dim) +
                        (panel * 4 + warp / 2) * 1024 + warp % 2 * 512 + lane * 4;
#pragma unroll
            for (int f = 0; f < 8 && row + block * 64 < n; f++) kbki_add4(to + f / 4 * 2048 + f % 4 * 128, d + f * 4);
            row += Rows, slot ^= 1, parity ^= slot == 0;
        } while (row < n);
        kbki_wg_wait<0>();
        kbki_wg_hold<Dim / 2>(dk), kbki_wg_hold<Dim / 2>(dv);
        kbki_fa_arrive(bar.empty + (slot ^ 1)), kbki_fa_arrive(&bar.keys_empty);
        kbki_fa_finish<T, Dim>(dk_out + kbki_attn_head(dk_step, heads_of_batch, head), key0 + group * 64, n,
                               { scale, scale }, dk, dk_step.x);
        kbki_fa_finish<T, Dim>(dv_out + kbki_attn_head(dv_step, heads_of_batch, head), key0 + group * 64, n, { 1, 1 },
                               dv, dv_step.x);
        // kbki_follow_me is called late, so that waiting CTAs of the next kernel (PDL) do not occupy SMs
        if (round + 1 == rounds) kbki_follow_me();
    }
#endif
}
// stay: launches at most one CTA per SM, so that the kernel is persistent; else one CTA per work item.
template <class T, int Dim> const char* kbki_fab_launch(const kbki_attn_back<T>& io, bool stay, kbk_stream st) {
    size_t bytes = 1024 + 512 * Dim + (8 * Dim + 528) * (8192 / Dim); // includes 1024 bytes for alignment
    int64_t ctas = io.heads * kbki_ceil(io.rows, 128);
    // span: number of heads whose rows of q and `do` and whose f32 sums of dq together fit into L2
    int64_t span = ((int64_t)32 << 20) / (io.rows * Dim * 8);
    const auto kernel = kbk_attention_bwd_flashws_k<T, Dim>;
    const T* const from[4] = { io.dout, io.q, io.k, io.v };
    kbki_map maps[4];
    const char* why = kbki_needs_hopper();
    if (!io.causal || span < 1) span = 1;
    if (span > io.heads) span = io.heads;
    for (int i = 0; i < 4 && !why; i++)
        why = kbki_aligned(from[i], 16) && kbki_attn_even(io.step[i])
                  ? kbki_map_heads(from[i], io.heads, io.span, io.rows, Dim, io.step[i], 64, maps + i)
                  : "TMA needs do, q, k and v, and their strides, aligned to 16 bytes: use flashmma";
    if (!why) why = kbki_want_shared(kernel, &bytes);
    if (why || !bytes) return why ? why : "an SM of this GPU has too little shared memory for this kernel";
    if (stay && ctas > kbki_sms()) ctas = kbki_sms();
    return kbki_attn_launch_sequence<T, Dim>(io, st, [&] {
        return kbki_follow(kernel, dim3((unsigned)ctas), 384, bytes, st, maps[1], maps[2], maps[3], maps[0], io.stat,
                           io.sum, io.dk, io.dv, (int)io.heads, (int)io.rows, io.scale, io.causal, (int)span, io.span,
                           io.step[7], io.step[8]);
    });
}
template <class T> const char* kbk_attention_bwd_flashws(const kbk_args* a, kbk_stream st) {
    kbki_attn_back<T> io;
    const char* why = kbki_attn_back_args(a, &io, true);
    if (why || !io.heads) return why;
    if ((why = kbki_attn_back_room(a, KBKI_WORD_flashws, &io)) != NULL) return why;
    // if causal, the lengths of work items differ, unless a head has at most two tiles of keys
    const bool stay = !io.causal || io.rows <= 256;
    return a->s.cols == 64 ? kbki_fab_launch<T, 64>(io, stay, st) : kbki_fab_launch<T, 128>(io, stay, st);
}
#endif // __CUDACC__

/*-----------------------------------------------------------------
  >>registry     The tables, made from the rows of >>table; look-up and launch.
-----------------------------------------------------------------*/
#ifndef KBK_NO_REGISTRY

#define KBKI_OP_ID(op, dir, ...) KBK_OP_##op##_##dir,
#define KBKI_ID(op, dir, variant, ...) KBK_ID_##op##_##dir##_##variant,
enum { KBK_OPS(KBKI_OP_ID) KBK_OP_COUNT };
enum { KBK_TABLE(KBKI_ID) KBK_VARIANT_COUNT };

// clang-format off
#define KBKI_TYPES (KBKI_HAS_f32 << KBK_F32 | KBKI_HAS_f16 << KBK_F16 | KBKI_HAS_bf16 << KBK_BF16)
#ifndef __CUDACC__
#define KBKI_LAUNCH(has, f, T) NULL
#elif !defined(KBK_VARIANTS) && !defined(KBK_TYPES)
#define KBKI_LAUNCH(has, f, T) f<T>
#else
// Only a lambda leaves f<T> uncompiled if `has` is false.
#define KBKI_LAUNCH(has, f, T) \
    kbki_launch_of<has, T>([](auto t) -> kbk_launch_fn { return f<typename decltype(t)::type>; })
template <int Has, class T, class Launcher> constexpr kbk_launch_fn kbki_launch_of(Launcher launcher) {
    if constexpr (Has) return launcher(kbki_same<T>{});
    else return NULL;
}
#endif

// One macro for each mask of element types (KBK_ALL, ...): f<T> is compiled only for the types of the mask.
#define KBKI_LAUNCH_F32(has, f) KBKI_LAUNCH(has && KBKI_HAS_f32, f, float)
#define KBKI_LAUNCH_F16(has, f) KBKI_LAUNCH(has && KBKI_HAS_f16, f, __half)
#define KBKI_LAUNCH_BF16(has, f) KBKI_LAUNCH(has && KBKI_HAS_bf16, f, __nv_bfloat16)
#define KBKI_LAUNCH_KBK_ALL(has, f) {KBKI_LAUNCH_F32(has, f), KBKI_LAUNCH_F16(has, f), KBKI_LAUNCH_BF16(has, f)}
#define KBKI_LAUNCH_KBK_HALF(has, f) {NULL, KBKI_LAUNCH_F16(has, f), KBKI_LAUNCH_BF16(has, f)}
#define KBKI_LAUNCH_KBK_SINGLE(has, f) {KBKI_LAUNCH_F32(has, f), NULL, NULL}
#define KBKI_LAUNCH_KBK_BRAIN(has, f) {NULL, NULL, KBKI_LAUNCH_BF16(has, f)}
#define KBKI_ROW(op, dir, variant, rung, dtypes, sm, origin, note)                                           \
    {&kbk_ops[KBK_OP_##op##_##dir], #variant, rung, KBKI_HAS_##variant ? (dtypes) & KBKI_TYPES : 0,           \
     KBK_SM_##sm, origin, note, KBKI_LAUNCH_##dtypes(KBKI_HAS_##variant, kbk_##op##_##dir##_##variant),      \
     KBKI_WORD_##variant},
// clang-format on

KBK_DATA kbk_op kbk_ops[] = { KBK_OPS(KBKI_OP_ROW) };
KBK_DATA kbk_variant kbk_table[] = { KBK_TABLE(KBKI_ROW) };

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

// Returns the bytes of workspace of a launch; 0 also if kbk_launch rejects the shape.
KBK_FN size_t kbk_workspace(const kbk_variant* v, int dtype, const kbk_shape* s) {
    return kbk_check_shape(v->op, s) ? 0 : v->op->scratch(s, kbk_dtype_size(dtype), v->word);
}

// Returns the lowest compute capability on which a variant supports an element type (KBK_SM_<...>).
KBK_FN int kbk_least_sm(const kbk_variant* v, int dtype) {
    return v->sm == KBK_SM_75 && dtype == KBK_BF16 ? KBK_SM_80 : v->sm;
}
// Returns whether the variant supports the element type on compute capability sm (90 for 9.0).
KBK_FN int kbk_runs_on(const kbk_variant* v, int dtype, int sm) {
    int least = kbk_least_sm(v, dtype);
    return least & KBK_SM_EXACT ? sm == (least & ~KBK_SM_EXACT) : sm >= least;
}

KBK_FN const char* kbk_launch(const kbk_variant* v, int dtype, const kbk_args* a, kbk_stream stream) {
    if (!v || dtype < 0 || dtype >= KBK_DTYPES) return "unknown variant or element type";
    if (!(v->dtypes >> dtype & 1)) return "this variant does not support this element type";
    const char* why = kbki_check_args(v->op, a);
    if (why) return why;
#ifdef __CUDACC__
    why = kbki_needs_row(kbk_least_sm(v, dtype), v->origin);
    return why ? why : v->launch[dtype](a, stream);
#else
    (void)stream;
    return "built without CUDA: only formulas and oracles are available";
#endif
}

#define KBK_CANDIDATES 12 // configurations that kbk_tune measures
// --- tuning: the launchers `select` and `tf32` choose among configurations (>>matmul_select)
#ifdef __CUDACC__
typedef struct kbk_candidate { // one of the configurations that kbk_tune measures, and the launch that uses it
    const kbk_variant* variant;
    int dtype;
    const kbk_args* args;
    kbki_tuned choice;
    char name[40];
    const char* why; // error of the last launch that failed; NULL: none failed
} kbk_candidate;
KBK_FN void kbk_candidate_launch(kbk_stream stream, void* candidate) {
    kbk_candidate* c = (kbk_candidate*)candidate;
    *kbki_tuning() = &c->choice;
    const char* why = kbk_launch(c->variant, c->dtype, c->args, stream);
    *kbki_tuning() = NULL;
    if (why) c->why = why;
}
// Measures n candidates: sets ns[i] to the nanoseconds per launch of candidate i, or NaN if it was not measured.
// Returns NULL, or the reason why no candidate was measured.
typedef const char* (*kbk_clock)(kbk_candidate* candidates, int n, double* ns);
#ifdef KBENCH_H
// Measures in interleaved rounds with a cold L2 cache. The program must contain KBENCH_IMPLEMENTATION (kbench.h).
KBK_FN const char* kbk_clock_kbench(kbk_candidate* candidates, int n, double* ns) {
    kb_desc desc[KBK_CANDIDATES] = {};
    kb_function fn[KBK_CANDIDATES];
    void* user[KBK_CANDIDATES];
    kb_result result[KBK_CANDIDATES];
    for (int i = 0; i < n; i++) {
        desc[i].name = candidates[i].variant->op->name, desc[i].implementation = candidates[i].name;
        fn[i] = kbk_candidate_launch, user[i] = &candidates[i];
    }
    kb_compare(desc, fn, user, n, result);
    for (int i = 0; i < n; i++) {
        ns[i] = result[i].status == KB_OK && !candidates[i].why ? result[i].time_ms * 1e6 : (double)NAN;
        kb_result_free(&result[i]);
    }
    return NULL;
}
#endif
/*  Measures the configurations with the shortest predicted times for one shape, and keeps the fastest for later
    launches of this shape on this GPU. The choice is appended to the file `path`, or, if path is NULL, to the file
    that the environment variable KBK_TUNED names, if any. The first launch of a process reads the file of
    KBK_TUNED; for other files, call kbk_tuned_load. variant: `select` or `tf32` of matmul, matmul_e4m3 or bmm.
    args: as for kbk_launch; the outputs are overwritten. clock: kbk_clock_kbench, if kbench.h was included before
    this header, or a function of the caller. Synchronises the device. Do not call kbk_tune or kbk_tuned_load while
    another thread launches kernels. Returns NULL, or the reason why nothing was kept or the file was not written.
    */
KBK_FN const char* kbk_tune(const kbk_variant* variant, int dtype, const kbk_args* args, kbk_clock clock,
                            const char* path) {
    kbk_candidate c[KBK_CANDIDATES] = {};
    kbki_wg_choice by[KBK_CANDIDATES];
    double ns[KBK_CANDIDATES];
    cudaDeviceProp gpu;
    int device = 0, best = -1;
    // by.way = -1 lets the launch choose the configuration
    c[0].variant = variant, c[0].dtype = dtype, c[0].args = args, c[0].choice.by.way = -1;
    kbk_candidate_launch(NULL, &c[0]);
    if (c[0].why) return c[0].why;
    if (!c[0].choice.elem) return "this variant has only one configuration for this shape";
    const kbki_tuned key = c[0].choice;
    int n = kbki_wg_choose(&key.s, key.elem, key.s.batch, kbki_sms(), by, KBK_CANDIDATES);
    for (int i = 0; i < n; i++) {
        char name[24];
        c[i] = c[0], c[i].choice.by = by[i], ns[i] = NAN;
        snprintf(c[i].name, sizeof c[i].name, by[i].split ? "%s split-K %d" : "%s", kbki_wg_name(by[i], name),
                 by[i].split);
    }
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) return kbki_error(e);
    const char* why = clock(c, n, ns);
    if (why) return why;
    for (int i = 0; i < n; i++)
        if (ns[i] > 0 && (best < 0 || ns[i] < ns[best])) best = i; // the comparison is false if ns[i] is NaN
    if (best < 0) return "no configuration could be timed";
    c[best].choice.by.clocks = ns[best];
    if ((why = kbki_tuned_add(kbki_tuned_all(), &c[best].choice)) != NULL) return why;
    if (!path) path = getenv("KBK_TUNED");
    if (!path) return NULL;
    if ((e = cudaGetDevice(&device)) != cudaSuccess || (e = cudaGetDeviceProperties(&gpu, device)) != cudaSuccess)
        return kbki_error(e);
    return kbki_tuned_write(path, &c[best].choice, gpu.name);
}
#endif
#endif // KBK_NO_REGISTRY

/*-----------------------------------------------------------------
  >>shared     The table as plain C functions: for other languages, and for programs that link the compiled kernels.
-----------------------------------------------------------------*/
#endif // KBK_API_ONLY
#if defined(KBENCH_SHARED) || defined(KBK_API_ONLY)
#ifdef KBK_NO_REGISTRY
#error "kbench_kernels.cuh: KBENCH_SHARED exports the tables that KBK_NO_REGISTRY leaves out; define one of them"
#endif
#ifdef __cplusplus
#define KBK_API extern "C" __attribute__((visibility("default")))
#else
#define KBK_API __attribute__((visibility("default")))
#endif

/*  A row of the table: one implementation of an operation. Rows are numbered from 0 to kbk_abi("rows") - 1;
    numbers may differ between libraries built with different options. Tensors must be aligned to alignment[dtype]
    bytes, tensors of another kbk_tensor.kind to the size of an element, and the workspace to 256 bytes. */
typedef struct kbk_row {
    const char *operation, *direction, *implementation, *formula, *signature, *sizes, *note;
    const char* group;             // name of the operation's group, as in KBK_ONLY
    int32_t family, rung, origin;
    int32_t dtypes;                // compiled element types, as bits 1 << KBK_F32, ...; 0: none
    // sm: lowest compute capability, 90 for 9.0; if 75, bf16 needs 8.0. exact: 1 if the variant runs on no later
    // one
    int32_t sm, exact;
    int32_t alignment[KBK_DTYPES]; // alignment in bytes; 0: the element type is not supported
} kbk_row;

// Returns the size of a struct, or another constant, by its name, or -1. For callers without this header.
KBK_API int64_t kbk_abi(const char* what);
// Copies a row of the table to *r. Returns 1 on success, or 0 if the row does not exist.
KBK_API int kbk_row_get(int row, kbk_row* r);
// Returns the number of the row with this operation, direction and implementation, or -1 if no such row exists.
KBK_API int kbk_row_find(const char* operation, const char* direction, const char* implementation);
// kbk_row_tensors to kbk_row_bytes return -1 if the row does not exist or the shape is invalid. elem: bytes per
// element. kbk_row_tensors fills t[KBK_MAX_TENSORS] and returns the number of tensors.
KBK_API int kbk_row_tensors(int row, const kbk_shape* s, kbk_tensor* t);
KBK_API int64_t kbk_row_units(int row, const kbk_shape* s);
KBK_API int64_t kbk_row_workspace(int row, const kbk_shape* s, int elem);
KBK_API double kbk_row_flops(int row, const kbk_shape* s);
KBK_API double kbk_row_bytes(int row, const kbk_shape* s, int elem);
// Launches a row on `device` (that of memory and stream; -1: the current device), which is current meanwhile.
// Returns NULL, or the reason why nothing was launched. Outputs with kbk_tensor.optional may be NULL.
KBK_API const char* kbk_row_launch(int row, int dtype, const kbk_args* a, int device, void* stream);
KBK_API const char* kbk_row_oracle(int row, const kbk_shape* s, int elem, const double* const* in, double* const* out,
                                   int64_t u0, int64_t u1); // arguments as for kbk_op.ref
// Fills x with elements i0 to i0 + n - 1 of input tensor `id`. Returns NULL, or an error.
KBK_API const char* kbk_row_fill(int row, const kbk_shape* s, int id, int dtype, uint64_t seed, int64_t i0, int64_t n,
                                 double* x);
// kbk_to_doubles is kbk_widen; kbk_from_doubles is kbk_narrow.
KBK_API void kbk_to_doubles(int kind, int dtype, const void* p, double* x, int64_t n);
KBK_API void kbk_from_doubles(int kind, int dtype, const double* x, void* p, int64_t n);
// Checks output k as kbk_verify does. Returns 1 if the output is correct, else 0.
KBK_API int kbk_row_verify(int row, int dtype, const kbk_shape* s, int k, const void* got, double* const* out,
                           int64_t u0, int64_t u1, kbk_report* r);

#ifndef KBK_API_ONLY
KBK_FN const kbk_variant* kbki_numbered(int row) {
    return row >= 0 && row < (int)KBK_VARIANT_COUNT ? &kbk_table[row] : NULL;
}
// Returns NULL if the row does not exist, or if formulas and oracles do not support the shape.
KBK_FN const kbk_variant* kbki_numbered_of(int row, const kbk_shape* s) {
    const kbk_variant* v = kbki_numbered(row);
    return v && s && !kbk_check_shape(v->op, s) && s->layout >= 0 && s->layout <= KBK_TN ? v : NULL;
}
#define KBKI_TEXT_ROW "the row does not exist, or the shape or element type is invalid"

#define KBKI_ONE_OP(...) +1
#define KBKI_GROUP_ROW(group, x) { #group, 0 KBK_OPS_##group(KBKI_ONE_OP) },
KBK_FN const char* kbki_group(const kbk_op* op) {
    static const struct {
        const char* name;
        int ops;
    } groups[] = { KBKI_BUILT(KBKI_GROUP_ROW, ) };
    int at = (int)(op - kbk_ops), i = 0;
    for (; at >= groups[i].ops; i++) at -= groups[i].ops;
    return groups[i].name;
}

KBK_API int64_t kbk_abi(const char* what) {
    static const struct {
        const char* name;
        int64_t value;
    } known[] = {
        { "version", 100 }, // 10000 major + 100 minor + patch
#ifdef __CUDACC__
        { "cuda", 1 },
#else
        { "cuda", 0 },
#endif
        { "rows", KBK_VARIANT_COUNT },
        { "kbk_row", (int64_t)sizeof(kbk_row) },
        { "kbk_shape", (int64_t)sizeof(kbk_shape) },
        { "kbk_args", (int64_t)sizeof(kbk_args) },
        { "kbk_tensor", (int64_t)sizeof(kbk_tensor) },
        { "kbk_report", (int64_t)sizeof(kbk_report) },
        { "tensors", KBK_MAX_TENSORS },
        { "outputs", KBK_OUTS },
    };
    for (size_t i = 0; what && i < sizeof known / sizeof *known; i++)
        if (strcmp(what, known[i].name) == 0) return known[i].value;
    return -1;
}

KBK_API int kbk_row_get(int row, kbk_row* r) {
    const kbk_variant* v = kbki_numbered(row);
    if (!v || !r) return 0;
    memset(r, 0, sizeof *r);
    r->operation = v->op->name, r->direction = v->op->dir, r->implementation = v->name;
    r->formula = v->op->formula, r->signature = v->op->signature, r->sizes = v->op->sizes[0];
    r->note = v->note, r->group = kbki_group(v->op);
    r->family = v->op->family, r->rung = v->rung, r->origin = v->origin, r->dtypes = (int32_t)v->dtypes;
    r->sm = v->sm & ~KBK_SM_EXACT, r->exact = (v->sm & KBK_SM_EXACT) != 0;
    for (int i = 0; i < KBK_DTYPES; i++) r->alignment[i] = v->dtypes >> i & 1 ? kbk_dtype_size(i) : 0;
    return 1;
}
KBK_API int kbk_row_find(const char* operation, const char* direction, const char* implementation) {
    if (!operation || !direction || !implementation) return -1;
    const kbk_variant* v = kbk_find(operation, direction, implementation);
    return v ? (int)(v - kbk_table) : -1;
}

KBK_API int kbk_row_tensors(int row, const kbk_shape* s, kbk_tensor* t) {
    const kbk_variant* v = kbki_numbered_of(row, s);
    if (!v || !t) return -1;
    memset(t, 0, KBK_MAX_TENSORS * sizeof *t);
    return v->op->tensors(s, t);
}
#define KBKI_ROW_VALUE(function, value)                   \
    function {                                            \
        const kbk_variant* v = kbki_numbered_of(row, s);  \
        return v ? value : -1;                            \
    }
KBKI_ROW_VALUE(KBK_API int64_t kbk_row_units(int row, const kbk_shape* s), v->op->units(s))
KBKI_ROW_VALUE(KBK_API int64_t kbk_row_workspace(int row, const kbk_shape* s, int elem),
               (int64_t)v->op->scratch(s, elem, v->word))
KBKI_ROW_VALUE(KBK_API double kbk_row_flops(int row, const kbk_shape* s), v->op->flops(s))
KBKI_ROW_VALUE(KBK_API double kbk_row_bytes(int row, const kbk_shape* s, int elem), v->op->bytes(s, elem))

KBK_API const char* kbk_row_launch(int row, int dtype, const kbk_args* a, int device, void* stream) {
    const kbk_variant* v = a ? kbki_numbered_of(row, &a->s) : NULL;
    if (!v) return KBKI_TEXT_ROW;
    if (dtype < 0 || dtype >= KBK_DTYPES) return "unknown element type";
#ifdef __CUDACC__
    int now = device;
    cudaError_t e = device < 0 ? cudaSuccess : cudaGetDevice(&now);
    if (e == cudaSuccess && now != device) e = cudaSetDevice(device);
    if (e != cudaSuccess) return kbki_error(e);
    const char* why = kbk_launch(v, dtype, a, (kbk_stream)stream);
    if (now != device) cudaSetDevice(now);
    return why;
#else
    (void)device;
    return kbk_launch(v, dtype, a, (kbk_stream)stream);
#endif
}

KBK_API const char* kbk_row_oracle(int row, const kbk_shape* s, int elem, const double* const* in, double* const* out,
                                   int64_t u0, int64_t u1) {
    const kbk_variant* v = kbki_numbered_of(row, s);
    kbk_tensor t[KBK_MAX_TENSORS];
    if (!v) return KBKI_TEXT_ROW;
    if (!out || u0 < 0 || u0 > u1 || u1 > v->op->units(s)) return "the range of units is invalid";
    for (int i = 0, n = v->op->tensors(s, t), ins = 0; i < n; i++)
        if (t[i].role == KBK_IN && (!in || !in[ins++]) && t[i].count > 0) return "an input is null";
    if (!out[0] && !out[1] && !out[2] && !out[3]) return "all outputs are null";
    v->op->ref(s, elem, in, out, u0, u1);
    return NULL;
}
KBK_API const char* kbk_row_fill(int row, const kbk_shape* s, int id, int dtype, uint64_t seed, int64_t i0, int64_t n,
                                 double* x) {
    const kbk_variant* v = kbki_numbered_of(row, s);
    kbk_tensor t[KBK_MAX_TENSORS];
    if (!v || dtype < 0 || dtype >= KBK_DTYPES) return KBKI_TEXT_ROW;
    if (id < 0 || id >= v->op->tensors(s, t) || t[id].role != KBK_IN) return "no such input";
    if (!x || i0 < 0 || n < 0 || i0 + n > t[id].count) return "the range of elements is invalid";
    kbk_fill(&t[id], id, dtype, seed, i0, n, x);
    return NULL;
}
KBK_API void kbk_to_doubles(int kind, int dtype, const void* p, double* x, int64_t n) {
    kbk_widen(kind, dtype, p, x, n);
}
KBK_API void kbk_from_doubles(int kind, int dtype, const double* x, void* p, int64_t n) {
    kbk_narrow(kind, dtype, x, p, n);
}
KBK_API int kbk_row_verify(int row, int dtype, const kbk_shape* s, int k, const void* got, double* const* out,
                           int64_t u0, int64_t u1, kbk_report* r) {
    const kbk_variant* v = kbki_numbered_of(row, s);
    if (!r) return 0;
    memset(r, 0, sizeof *r);
    r->why = KBKI_TEXT_ROW, r->index = -1;
    if (!v || dtype < 0 || dtype >= KBK_DTYPES || k < 0 || k >= KBK_OUTS || !got || !out || u0 < 0 || u0 > u1)
        return 0;
    kbk_op op = kbk_op_of(v);
    return kbk_verify(&op, dtype, s, k, got, out, u0, u1, r);
}
#endif // KBK_API_ONLY
#endif // KBENCH_SHARED
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
