/* kbench.h - v0.1.0 - benchmarks of GPU kernels, and of C code, in one header - C11, C++11, CUDA C++17
   MIT or public domain, as you choose; both licences are at the end of this file.

QUICK START

    #define KBENCH_IMPLEMENTATION    // in exactly one .cu, .c or .cpp file
    #include "kbench.h"
    __global__ void scale(const float* x, float* y, int n) { ... }

    KBENCH(scale) {
        int n = 1 << 24; float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
        kb_fill(kb, x, n, KB_NORMAL);
        float* hx = kb_host(kb, x);                     // a copy on the host, for the check
        KB_TIME(kb) { scale<<<n / 256, 256, 0, kb->stream>>>(x, y, n); }
        KB_CHECK_EACH(kb, y, n, i, 0.5 * hx[i], 1e-6);  // a wrong result gets no time
        kb_bytes(kb, 2.0 * sizeof(float) * n);
    }
    KBENCH_MAIN()

    nvcc -O3 scale.cu -o scale && ./scale                  with a GPU
    cc -O2 first.c -o first -lm && ./first                 plain C: KB_TIME times C code; end it with kb_keep(result)
    Benchmarks in a static library need -Wl,--whole-archive, or one call of kb_add with an entry of that library.

HEADERS

    kbench.h                            measures, checks and writes the table, JSON, CSV; it needs no other file
    examples/addons/kbench_report.h     include it after kbench.h: baselines, races, Markdown, figures, pages
    examples/addons/kbench_inspect.h    include it after kbench.h: counters, timelines, energy, ncu, nsys

WHEN KBENCH WITHHOLDS A TIME

    For each case, kbench prints a time, or a flag that says why there is none (KB_FLAGS in >>types). A case gets a
    flag instead of a time if its result is wrong, a launch fails, its timed block copies data, synchronises or does
    no GPU work, or it crashes. After such a flag the exit code is 1, but kbench runs all other cases. kbench never
    drops a sample because of its value.

CONTENTS (to find a section, search for >>name; functions call no functions of later stages)

    API         >>options >>types >>api >>macros >>cxx
    foundation  >>system >>numbers >>util >>log >>files >>instruments >>names >>clock >>cpus >>random >>stats
                >>spread >>arrays >>fiber >>shared >>profile >>fields >>json
    declare     >>registry
    plan        >>cli >>ranges >>plan >>list
    measure     >>run >>meter >>process_state >>host >>memory >>device >>nvml >>cupti >>timers >>calibrate >>audit
                >>inspect >>roofs >>cuda >>work_change >>profiling >>engine >>calls >>body >>rounds
    judge       >>verdict >>comparison
    record      >>record >>store
    render      >>columns >>table >>csv >>progress
    program     >>budget >>worker >>outputs >>supervisor >>batches >>program >>embed >>main
    measure     >>ptx

DATA FLOW

    declare   macros register operations, implementations and axes
    plan      registry and command line give an ordered list of cases in comparison groups
    measure   a worker process runs the cases: a checked run, an audited run under stream capture, warm-up, samples,
              another checked run. Implementations of a group run in interleaved rounds on the same buffers
    judge     statistics, intervals, flags and verdicts, after all processes of a comparison group
    record    one record per case, in durable files
    render    the table on stdout, and the requested files
    The worker process runs the same executable. If a case crashes, hangs or exits, only its own time is lost.

OPTIONS

    prog [options] [FILTER...]      --help all lists the options; FILTER is a regular expression
    exit codes: 0 success; 1 a case failed or its result was wrong; 2 wrong usage, no matching case or a file that
    cannot be written; 3 a regression or a missed goal; 4 no reliable comparison, with --fail-on noise; 77 every
    selected case needs a GPU and there is none; 130 interrupted, with all finished records written.
    A program adds its own options with kb_add_options. The options of kbench are the rows of KBI_OPTIONS in >>cli.

THE RECORD

    --json FILE writes an array of records, one object per case. --jsonl FILE appends the same objects to FILE, one
    per line, and syncs FILE to disk before the next comparison group starts. Every record has all keys; null means
    that a value is not available. The table KB_RECORD in >>types gives the unit and meaning of each key, and defines
    struct kb_result. This is schema 3. Schema 2 had "mode" instead of "cache" and "timer", and "stage_shared" instead
    of "shared_buffers".
    --resume (of kbench_report.h) measures only cases that have no valid record in the --jsonl file. A record is valid
    if its executable (key "binary"), parameters, seed, GPU and processor are those of this run. If a case of a
    comparison group has no valid record, or has failed, kbench measures the whole group and removes its old lines.
    kbench replaces an old output file only when the new file is complete on disk; --jsonl and --history append.
    Several processes may append to one file, because each process locks the file. If another process changes an
    output file during the run, kbench returns 2 and saves the records in FILE.PID.jsonl or FILE.PID.json.
    kbench escapes control characters, invisible characters and commands of CI logs (::error::, ##[error]), for
    example as \x1b. Text from a record, a file or the machine thus cannot control a terminal, browser or CI log.

MEMORY RULES

    kbench frees the buffers of KB_ALLOC, KB_ALLOC_HOST and KB_ALLOC_PINNED when the benchmark function returns. New
    buffers contain 0xFF bytes, a NaN in every float type. A write into the 4 KiB before or after a buffer is reported
    as OVERRUN. Buffers are aligned to 256 bytes, to at least 512 if implementations share them. The benchmark
    function must free memory of other allocators, such as cudaMalloc; device memory that it leaves raises the flag
    LEAK. If an allocation fails, KB_ALLOC returns NULL, the flag is OOM, and later kb_ calls do nothing.  */
#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#error "kbench.h needs C11 or later: compile with -std=c11 or -std=gnu11"
#elif !defined(KBENCH_H)
#define KBENCH_H

/*-----------------------------------------------------------------
  >>options   What to define before including the file.
-----------------------------------------------------------------*/

/*  KBENCH_IMPLEMENTATION     define it in exactly one file: the header then also contains the function bodies
    KBENCH_CUDA               lets gcc and clang build GPU benchmarks (-I$CUDA/include, -lcudart). Define it for the
                              implementation, and in files whose timed blocks submit GPU work. nvcc implies it
    KBENCH_NO_CUDA            no GPU support, even under nvcc
    KBENCH_SHARED             builds a library for other languages: cc -O2 -shared -fPIC -x c -DKBENCH_SHARED kbench.h
                              -o libkbench.so -lm (with a GPU: -DKBENCH_CUDA -I$CUDA/include -L$CUDA/lib64 -lcudart)
    KBENCH_MALLOC(bytes), KBENCH_REALLOC(p, bytes), KBENCH_FREE(p)
                              the host allocator that kbench itself uses; define all three or none  */

#define KBENCH_VERSION_MAJOR 0
#define KBENCH_VERSION_MINOR 1
#define KBENCH_VERSION_PATCH 0
#define KBENCH_VERSION "0.1.0"
// A benchmark refers to KBI_DEMAND or KBI_DEMAND_CUDA, so that it links only with a matching build of kbench.
#define KBI_DEMAND kbench_0_1_0
#define KBI_DEMAND_CUDA kbench_0_1_0_built_with_KBENCH_CUDA
#if defined(KBENCH_MALLOC) != defined(KBENCH_FREE) || defined(KBENCH_MALLOC) != defined(KBENCH_REALLOC)
#error "kbench.h: define all of KBENCH_MALLOC, KBENCH_REALLOC and KBENCH_FREE, or none of them"
#endif
#if defined(KBENCH_SHARED)
#define KBENCH_IMPLEMENTATION
#endif
// With -std=c11, system headers declare POSIX only if _DEFAULT_SOURCE is defined before the first header.
#if defined(KBENCH_IMPLEMENTATION) && !defined(_GNU_SOURCE) && !defined(_DEFAULT_SOURCE)
#if defined(_FEATURES_H) && !defined(__USE_MISC) && !defined(_BSD_SOURCE)
#error "an earlier system header hides POSIX functions: include kbench.h first, or compile with -std=gnu11"
#endif
#define _DEFAULT_SOURCE 1
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__cplusplus) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS))
#define KBI_EXCEPTIONS 1
#include <new> // the smallest header that declares std::exception
#else
#define KBI_EXCEPTIONS 0
#endif

#if (defined(__CUDACC__) || defined(KBENCH_CUDA)) && !defined(KBENCH_NO_CUDA)
#define KBI_CUDA 1
#else
#define KBI_CUDA 0
#endif
#if defined(__OPTIMIZE__) && !defined(__CUDACC_DEBUG__) // nvcc -G
#define KBI_OPTIMISED 1
#else
#define KBI_OPTIMISED 0
#endif
#define KBI_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#define KBI_CONSTRUCTOR __attribute__((constructor))
#if defined(KBENCH_SHARED)
#define KBI_INLINE // other languages call KBI_INLINE functions by name, so a library exports them
#elif defined(__GNUC__) || defined(__clang__)
#define KBI_INLINE static inline __attribute__((unused))
#else
#error "kbench.h needs gcc, clang or nvcc on top of one of them (constructors register the benchmarks)"
#endif

/*-----------------------------------------------------------------
  >>types     dtypes, flags, axes, descriptions, statistics, the record.
-----------------------------------------------------------------*/

// clang-format off
typedef struct CUstream_st* kb_stream; // the same type as cudaStream_t; NULL on the cpu backend

typedef enum kb_dtype {
    KB_NODTYPE, KB_F32, KB_F64, KB_F16, KB_BF16, KB_I8, KB_U8, KB_I16, KB_U16, KB_I32, KB_U32, KB_I64, KB_U64,
    KB_TF32,         // stored as f32; tensor cores round each value to 11 significant bits
    KB_E4M3, KB_E5M2 // 8-bit floats (OCP): the largest finite value is 448 in e4m3, 57344 in e5m2
} kb_dtype;
// Element types for compilers without small floats. Types of CUDA, such as __half, are accepted as well.
typedef struct kb_f16 { uint16_t bits; } kb_f16; // IEEE binary16
typedef struct kb_bf16 { uint16_t bits; } kb_bf16;
typedef struct kb_e4m3 { uint8_t bits; } kb_e4m3;
typedef struct kb_e5m2 { uint8_t bits; } kb_e5m2;

// A value that kb_fill writes depends only on the seed, the index of the element and the number of earlier kb_fill
// calls. In integer arrays, KB_UNIFORM makes every bit random; KB_NORMAL is a normal deviate times 8, rounded.
typedef enum kb_kind {
    KB_ZERO,
    KB_NORMAL,  // mean 0, standard deviation 1
    KB_UNIFORM, // [0, 1)
    KB_IOTA     // element i is i; 8-bit floats saturate at their largest finite value
} kb_kind;
// Place of a buffer: GPU memory (on the cpu backend: host memory), host memory, or page-locked host memory.
typedef enum kb_place { KB_DEVICE, KB_HOST, KB_PINNED } kb_place;
// kb_bytes_as compares a launch with the measured peak of one kind of memory traffic.
typedef enum kb_traffic { KB_ANY_TRAFFIC, KB_READ, KB_WRITE, KB_COPY } kb_traffic;

typedef enum kb_expectation { // operations that kb_expect allows in a timed block
    KB_EXPECT_TRANSFER = 1,   // memory copies (cudaMemcpy), also within the GPU
    KB_EXPECT_ALLOC = 2,      // memory allocation and release; the host clock then times the block (timer wall)
    KB_EXPECT_SYNC = 4,       // synchronisation; the host clock then times the block (timer wall)
    KB_EXPECT_NO_CAPTURE = 8  // calls that stream capture rejects; kbench then skips the audit. Not needed with CUPTI
} kb_expectation;
typedef enum kb_needs { KB_NEEDS_NOTHING, KB_NEEDS_GPU, KB_NEEDS_CPU } kb_needs;

// Flags. The table prints the name of an ERROR instead of a time, and the mark of a WARN after the time.
//   x(name, level, mark, what happened, why the time is withheld or doubtful, what to do)
#define KB_FLAGS(x) \
    x(VERIFY_FAIL, ERROR, "", "the output is wrong", "the speed of a wrong result means nothing", \
      "fix the kernel, or widen the tolerance of the check") \
    x(STALE, ERROR, "", "the last launch did not write the output", "launches without work would count as fast", \
      "write the output in every launch; reset state in KB_SAMPLE") \
    x(WORK_CHANGED, ERROR, "", "later launches did different work", "the time is not that of the checked work", \
      "do the same work in every launch; reset state in KB_SAMPLE") \
    x(CUDA_ERROR, ERROR, "", "CUDA reported an error", "a failed launch returns at once and would look fast", \
      "run compute-sanitizer to find the failing access or call") \
    x(NO_WORK, ERROR, "", "the timed block submitted no work", "the time of an empty block is not a result", \
      "launch on kb->stream; for host code use KB_TIME_HOST and kb_keep") \
    x(NO_LOOP, ERROR, "", "no timed block was reached", "there is nothing to time", \
      "put the work to be timed into KB_TIME(kb) { ... }") \
    x(LEFT_EARLY, ERROR, "", "the timed block was left before its end", "the skipped work would count as done", \
      "do not leave the block by break, return or goto; continue is allowed") \
    x(TRANSFER, ERROR, "", "the timed block copies memory (cudaMemcpy)", "the copy would count as kernel time", \
      "move copies out of the block, or declare KB_EXPECT_TRANSFER") \
    x(SYNC_INSIDE, ERROR, "", "the timed block synchronises with the GPU", "launch latency would be in the time", \
      "synchronise after the block, or declare KB_EXPECT_SYNC") \
    x(ALLOC_INSIDE, ERROR, "", "the timed block allocates memory", "an allocation is slower than most kernels", \
      "allocate before the block (cuBLAS: a workspace), or KB_EXPECT_ALLOC") \
    x(SIDE_STREAM, ERROR, "", "the timed block uses a stream that kb->stream does not wait for", \
      "the timer sees only work that kb->stream waits for", \
      "launch on kb->stream, or make it wait for the other stream's event") \
    x(ABOVE_ROOF, ERROR, "", "the result exceeds the measured peak", "the declared work was not done", \
      "check what kb_bytes and kb_flops declare, and what the kernel computes") \
    x(NOT_COLD, ERROR, "", "the L2 cache could not be evicted between samples", \
      "cached data would count as data in memory", "allocate data with KB_ALLOC, or time cached data: --hot") \
    x(TIMEOUT, ERROR, "", "the case took longer than --timeout allows", "an unfinished case has no time", \
      "raise --timeout, or look for a hang") \
    x(OOM, ERROR, "", "there was not enough memory", "the case did not run", "reduce the size, or free memory") \
    x(CRASHED, ERROR, "", "the case crashed or exited", "an unfinished case has no time", \
      "run the case with --no-isolate under a debugger") \
    x(OVERRUN, ERROR, "", "the case wrote outside a buffer", "the output may be right only by chance", \
      "run compute-sanitizer to find the write") \
    x(BAD_CASE, ERROR, "", "the benchmark function failed or used kbench incorrectly", \
      "the time would not be that of the intended work", "fix the benchmark function as the message says") \
    x(FLOOR, WARN, "FL", "the uncertainty of the timer's bias exceeds 5 % of the time", \
      "the timer's bias may be a large part of the time", "do more work per launch") \
    x(QUANTISED, WARN, "QU", "the timer's resolution exceeds 1 % of the time", \
      "differences below one tick of the timer cannot be seen", "do more work per launch") \
    x(UNGATED, WARN, "UG", "the launches were not queued before the clock started", \
      "the time may include launch latency", "submit less work in the timed block, and do not synchronise in it") \
    x(UNVERIFIED, WARN, "UV", "the output was not checked", "a wrong kernel could be as fast", \
      "call kb_check or KB_CHECK_EACH after the timed block") \
    x(THROTTLED, WARN, "TH", "the GPU lowered its clock because of power or heat", "a cool GPU would be faster", \
      "let the GPU cool, or lock a sustainable clock: nvidia-smi -lgc") \
    x(CLOCK_VARIES, WARN, "CV", "the SM clock changed by more than 2 %", "the time changes with the clock", \
      "lock the clock (nvidia-smi -lgc), or try --thorough") \
    x(UNSETTLED, WARN, "US", "the warm-up ended before the time reached a steady state", \
      "early samples may differ from later ones", "try --thorough, or a longer --warmup") \
    x(DRIFT, WARN, "DR", "the time drifts during the samples", \
      "the median lies between early and late times", "try --thorough, or a longer --warmup") \
    x(AUTOCORR, WARN, "AC", "the samples are autocorrelated (effective sample size below 6)", \
      "the interval is unreliable", "try --thorough, or several processes: --procs 5") \
    x(BIMODAL, WARN, "BI", "the samples form two groups of at least 25 % each", \
      "the median of the next run may differ", "look at samples_ms in the record, or use --procs 5") \
    x(OUTLIERS, WARN, "OU", "outliers move the median by more than the +-, or the mean by over 10 %", \
      "the median hides the cost of rare long launches", "close other programs, or try --thorough") \
    x(NOISY, WARN, "NO", "the half-width of the interval exceeds 5 % of the time", \
      "the median of another run may differ by as much", "close other programs, use --cpu N, or raise --max-time") \
    x(FEW, WARN, "FE", "there are too few samples for an interval", "the error of the median is unknown", \
      "raise --max-time or --iters") \
    x(PLACEMENT, WARN, "PL", "no verdict: the implementations did not share their buffers", \
      "buffer addresses alone can change the time by 3 %", "use KB_ALLOC, in the same order in each implementation") \
    x(SHARED_GPU, WARN, "SG", "other processes use this GPU", "the time may include the work of other processes", \
      "end the other processes (see nvidia-smi), or use another --device") \
    x(DECLARED_BYTES, WARN, "DY", "kb_bytes declares over 10 % more bytes than the counters measured", \
      "GB/s and the share of the peak are too high", "compare kb_bytes with the bytes of --counters") \
    x(DECLARED_FLOPS, WARN, "DL", "kb_flops declares over 10 % more operations than the counters measured", \
      "GFLOP/s and the share of the peak are too high", "compare kb_flops with the operations of --counters") \
    x(CONSTANT_DATA, WARN, "CD", "the inputs are constant", "the kernel can be slower with random data", \
      "fill the inputs with kb_fill(kb, x, n, KB_NORMAL), or with your own data") \
    x(LEAK, WARN, "LK", "the benchmark function did not free its device memory", "later cases have less memory", \
      "free all memory that the function allocates, or use KB_ALLOC") \
    x(DEBUG_BUILD, WARN, "DB", "the program was compiled without optimisation, or is instrumented", \
      "host code runs slower than when optimised", "compile with -O2 or -O3, without sanitizers, coverage or -pg")
typedef enum kb_flag {
#define KBI_X(name, level, mark, what, why, advice) KB_FLAG_##name,
    KB_FLAGS(KBI_X)
#undef KBI_X
        KB_FLAG_COUNT
} kb_flag; // the flags of a record are a mask: (flags >> KB_FLAG_FLOOR) & 1

// One axis of a benchmark, as KB_AXIS, KB_AXIS_REAL, KB_AXIS_STR, KB_DTYPE and KB_SIZE write it.
#define KB_AXIS_MAX 32
typedef enum kb_axis_type { KB_AXIS_END, KB_AXIS_INTS, KB_AXIS_REALS, KB_AXIS_STRINGS, KB_AXIS_SIZE } kb_axis_type;
typedef struct kb_axis {
    const char* name; // name of the axis; in a KB_AXIS_SIZE: the category, such as "small"
    kb_axis_type type;
    int64_t i[KB_AXIS_MAX + 1];     // ends with KB_LAST_INT
    double r[KB_AXIS_MAX + 1];      // ends with KB_LAST_REAL
    const char* s[KB_AXIS_MAX + 1]; // ends with NULL; KB_AXIS_SIZE: one string "rows=512 cols=1024:4096:*2"
} kb_axis;
#define KB_LAST_INT INT64_MIN
#define KB_LAST_REAL __builtin_nan("") // terminates r; a NaN, because an infinity can be a value
typedef struct kb_state kb_state;
typedef void (*kb_body)(kb_state* kb);
typedef void (*kb_function)(kb_stream stream, void* user); // the code that kb_run and kb_compare measure

// How the source file that contains a benchmark was compiled.
typedef struct kb_build {
    const char* compiler; // version of the compiler, and options such as fast-math
    bool optimised, cuda;
    void (*call)(kb_body body, kb_state* kb); // calls a C++ benchmark function and reports its exceptions; NULL: C
    const char* demand;                       // KBI_DEMAND or KBI_DEMAND_CUDA: only a matching kbench can be linked
    const int32_t *marks, *marks_end;         // source lines that kb_keep and KBENCH mark; see KBI_MARK
} kb_build;

// A command line option of an add-on or of a program; see kb_add_options.
typedef struct kb_option {
    const char* name;     // "tsv" for --tsv
    const char* argument; // "FILE": a value is required; "[=SET]": optional, written --name=SET; NULL: no value
    const char* group;    // heading in --help; NULL: not shown
    const char* help;     // description of the option in --help
    // Parses value (NULL: there is none) and stores it in *values. Returns false after an error message.
    bool (*take)(const struct kb_option* option, void* values, const char* value); // NULL: nothing to store
    size_t offset;     // offset of the value in *values, in bytes
    double low;        // smallest allowed number, if `take` checks it
    int64_t high;      // largest allowed number, if `take` checks it
    const char* words; // allowed words, if `take` checks them
    unsigned rules;    // KBI_REPEATS, ...; 0: none
} kb_option;
typedef struct kb_option_set {
    const kb_option* options;
    int count;
    void* values;        // struct that `take` fills
    bool* given;         // given[i]: the command line has option i; NULL: kbench allocates the array
    void (*start)(void); // sets the default values; may be NULL
    bool (*agree)(void); // if options do not fit together, prints a message and returns false; may be NULL
    bool own;            // private: if the set has one option, kbench uses `own` as the array `given`
    struct kb_option_set* next; // set by kb_add_options
} kb_option_set;

// One implementation of one operation. The KBENCH macros register a kb_entry; code without these macros passes its
// kb_entry to kb_add. The struct, and everything that it points to, must stay valid until the program ends.
typedef struct kb_entry {
    const char* operation;
    const char* implementation;
    kb_body body;
    void* user;          // becomes kb->user in the benchmark function
    const kb_axis* axes; // ends with an axis of type KB_AXIS_END; NULL: none
    const char* origin;  // "own", "vendor" or "user" (the default)
    int rung;            // rank among the variants of a kernel, 1 for the naive one; 0: not ranked
    kb_needs needs;      // a case is planned only on a machine with this hardware
    int min_sm;          // lowest compute capability of the GPU, 90 for 9.0; 0: any
    const char* note;    // one line for --list-ops -v
    bool returns;        // true: kbench suspends the function without a fiber; see kb_loop
    // set by kb_add
    const char* file;
    int line, order;
    const kb_build* build;
    struct kb_entry* next;
} kb_entry;

// The argument of a benchmark function. Fields are read-only.
struct kb_state {
    kb_stream stream; // the stream for all GPU work of the timed block
    kb_dtype dtype;   // element type, from the axis KB_DTYPE; KB_NODTYPE: the case has no such axis
    const char* operation;
    const char* implementation;
    const char* direction; // value of the axis "dir", a string; NULL: the case has no such axis
    void* user;            // from kb_entry, kb_desc or kb_run
    uint64_t seed;         // --seed; the default is 42
    bool gpu;              // whether KB_ALLOC allocates GPU memory
    struct kbi_run* run;   // private
};
typedef struct kb_param { // value of one axis in one case; type says which of i, r and s holds it
    const char* name;
    kb_axis_type type;
    int64_t i;
    double r;
    const char* s;
} kb_param;

// Description of a measurement, for kb_open, kb_run and kb_compare. A field that is 0 or NULL gets its default.
typedef struct kb_desc {
    const char* name;           // the operation; required
    const char* implementation; // default: "default"
    const char* dtype;          // "f32", "bf16", ...: goes into the record, and sets kb->dtype
    double bytes, flops, items; // per launch, as with kb_bytes, kb_flops and kb_items
    void (*before)(kb_stream stream, void* user); // untimed reset, which kb_run calls before each sample
    void* user;                                   // kb_open: becomes kb->user
    int64_t samples;                              // exact number of samples; 0: as many as precision needs
    double precision; // sampling stops at this half-width of the interval / median; default: 0.005
    double max_time;  // longest sampling time, in seconds; default: 1
    unsigned expect;  // bits of kb_expectation
    uint64_t seed;    // default: 42
    int device;       // index of the GPU, from 0; one process can use only one GPU
    bool host;        // kb_run: the function is host code, as with KB_TIME_HOST
    void (*check)(kb_state* kb, void* user); // kb_run calls check after the first and after the last run of fn
    const char* mode;       // GPU work: "cold" (default), "hot" or "graph" (hot, launched back to back)
    const kb_param* params; // array of n_params axis values, for the record and the name of the case
    int n_params;
    uint32_t end_canary; // must be 0: detects an uninitialised struct
} kb_desc;

// The statistics of the samples: rows of KB_RECORD, and fields of kb_stats.
#define KB_STATISTICS(x) \
    x(real, time_ms, time, stats(median), "ms per launch: median minus bias_ms; --procs: mean over all processes") \
    x(real, time_ms_mean, time, stats(mean), "ms: arithmetic mean") \
    x(real, time_ms_std, time, stats(std), "ms: standard deviation, divisor n - 1") \
    x(real, time_ms_min, time, stats(min), "ms: shortest sample") \
    x(real, time_ms_max, time, stats(max), "ms: longest sample") \
    x(real, time_ms_mad, time, stats(mad), "ms: median of |x - median|, unscaled") \
    x(real, time_ms_p5, time, stats(p5), "ms: 0.05 quantile of the samples") \
    x(real, time_ms_p25, time, stats(p25), "ms: 0.25 quantile of the samples") \
    x(real, time_ms_p75, time, stats(p75), "ms: 0.75 quantile of the samples") \
    x(real, time_ms_p95, time, stats(p95), "ms: 0.95 quantile of the samples") \
    x(real, time_ms_p99, time, stats(p99), "ms: 0.99 quantile of the samples; null below 300 samples") \
    x(real, time_ms_ci_low, time, stats(ci_low), "ms: lower end of the 95 % interval of time_ms") \
    x(real, time_ms_ci_high, time, stats(ci_high), "ms: upper end of the 95 % interval of time_ms") \
    x(real, cv, time, stats(cv), "standard deviation / mean") \
    x(real, precision, time, stats(precision), "half-width of the 95 % interval / median")

// Summary of n values, in the unit of the values. NAN means that a statistic is not available. If a value is not
// finite, or exceeds 1e150 in magnitude, only n is set. Quantiles interpolate linearly between order statistics
// (Hyndman and Fan 1996, type 7). The 95 % interval contains the median; autocorrelation widens it. std and cv need
// at least 2 values, p99 needs 300, the interval and precision need 6 values. If the mean is 0, cv is NAN; if the
// median is 0, precision is NAN.
typedef struct kb_stats {
    int64_t n; // number of values; none is dropped
#define KBI_STATISTIC_stats(field) double field;
#define KBI_X(kind, key, group, source, meaning) KBI_STATISTIC_##source
    KB_STATISTICS(KBI_X)
#undef KBI_X
    double outliers_mild;   // fraction of values that lie 1.5 to 3 interquartile ranges beyond p25 or p75 (Tukey)
    double outliers_severe; // fraction of values over 3 interquartile ranges (at least 3 ticks) beyond p25 or p75
    double lag1;            // autocorrelation at lag 1, from -1 to 1; NAN if n < 3 or all values are equal
    double drift;           // (median of last 3 of 10 block medians - median of first 3) / |median|; NAN: n < 30
    int drift_significant;  // 1: |drift| exceeds 1 %, and the order of the block medians is not random (p < 0.01)
    int bimodal;            // 1: two groups, each 10 % of the values or more, at most 2 % between them. 0 if n < 30
                            // The gap between the groups exceeds 5 MAD, 5 timer ticks and 1 % of the median
    int64_t distinct;       // number of different values; a small number means a coarse timer
    double effective;       // effective sample size for the median; below 6 the interval is unreliable. NAN: n < 6
} kb_stats;

// Result of a comparison, from the interval of the speedup (time of the baseline / time of this implementation).
typedef enum kb_verdict {
    KB_NO_VERDICT, // nothing was compared
    KB_FASTER,     // the interval of the speedup lies above 1 + noise floor
    KB_SLOWER,     // the interval of the speedup lies below 1 / (1 + noise floor)
    KB_EQUIVALENT, // the speedup's interval lies within the equivalence margin; overrides FASTER and SLOWER
    KB_UNRESOLVED  // too few interleaved rounds, or too much noise, for another verdict
} kb_verdict;
typedef enum kb_status { KB_OK, KB_FAILED, KB_SKIPPED } kb_status;

// The record of a case: struct kb_result, the keys of JSON in their order, and the names that --columns takes. Kinds:
// text (char*, NULL is null), real (double, NaN is null), whole (int64_t, KB_NONE is null), truth (1, 0, or -1 for
// null), params, samples, flags, status and verdict.
//   x(kind, key, group, source, meaning with its unit).
// If `source` is stats(m), measured(m) or machine(m), kbi_result_take copies member m of that struct. If `source` is
// `code` or `timed`, a function under "judge" or "record" in CONTENTS sets the key. In a case without a time, keys
// whose source is `stats` or `timed` are null.
#define KB_NONE INT64_MIN
#define KB_RECORD(x) \
    x(text, name, what, code, "operation, direction, implementation, dtype and axes; unique within a run") \
    x(text, operation, what, code, "the operation") \
    x(text, direction, what, code, "fwd, bwd, ...: the value of the axis dir") \
    x(text, implementation, what, code, "the implementation") \
    x(text, origin, what, code, "origin of the implementation: own, vendor or user") \
    x(whole, rung, what, code, "rank among the operation's variants; 1 is the naive kernel") \
    x(text, dtype, what, code, "element type of the data") \
    x(whole, batch_size, what, code, "value of the axis batch_size") \
    x(whole, sequence_length, what, code, "value of the axis sequence_length") \
    x(whole, tensor_dimension, what, code, "value of the axis tensor_dimension") \
    x(params, params, what, code, "value of every axis by name; a number is a JSON number") \
    x(whole, planned, what, code, "number of planned cases of this operation and direction") \
    KB_STATISTICS(x) \
    x(whole, samples, time, stats(n), "number of samples; none is dropped") \
    x(samples, samples_ms, time, timed, "ms: all samples, in the order in which they were taken") \
    x(text, cache, time, measured(cache), "cache state: cold, hot, rotate or graph (hot, back to back); null: host") \
    x(text, timer, time, measured(timer), "the timer: events, cupti or wall (host clock)") \
    x(real, time_ms_raw, time, timed, "ms: median of the samples before bias_ms was subtracted") \
    x(real, bias_ms, time, timed, "ms: bias of the timer, subtracted from each sample") \
    x(real, floor_ms, time, timed, "ms: time that the timer gives for an empty kernel with the same cache state") \
    x(real, wall_ms, time, code, "ms: elapsed time of the whole case") \
    x(whole, launches_per_sample, time, code, "runs of the timed block that are averaged into one sample") \
    x(whole, samples_retaken, time, code, "number of samples that were repeated because a stall disturbed them") \
    x(whole, processes, time, timed, "number of processes that have a median in process_ms") \
    x(samples, process_ms, time, timed, "ms: median of the samples of each process") \
    x(real, inference_speed, rate, timed, "launches per second: 1000 / time_ms") \
    x(real, throughput_gbps, rate, timed, "GB/s (1e9 bytes per second), from kb_bytes") \
    x(real, gflops, rate, timed, "GFLOP/s (1e9 operations per second), from kb_flops") \
    x(real, items_per_second, rate, timed, "items per second, from kb_items") \
    x(real, queries_per_second, rate, timed, "queries per second, from kb_queries") \
    x(real, gpu_efficiency, rate, timed, "percent of the limiting peak; cold: of the rate of a same-size copy") \
    x(text, roof, rate, timed, "the limiting peak: copy, read, write, or a type such as int8") \
    x(text, compute_roof, rate, timed, "arithmetic peak of the element type, even if memory limits the case") \
    x(real, compute_roof_gflops, rate, timed, "GFLOP/s of the arithmetic peak that compute_roof names") \
    x(text, bound, rate, timed, "limit: memory, compute or latency; with --counters also L2 or launch") \
    x(real, bytes, rate, measured(bytes), "bytes per launch that kb_bytes declared") \
    x(real, flops, rate, measured(flops), "operations per launch that kb_flops declared") \
    x(real, flops_per_joule, rate, code, "operations per joule: kb_flops / energy_mj") \
    x(real, bytes_per_joule, rate, code, "bytes per joule: kb_bytes / energy_mj") \
    x(params, counters, rate, code, "values of kb_count, --counters, --ncu and --nsys, by name") \
    x(params, counter_units, rate, code, "units of the counters, by name") \
    x(real, memory_mb, memory, code, "MiB: peak device memory of the case") \
    x(whole, memory_bytes, memory, measured(memory), "bytes: peak device memory of the case") \
    x(real, host_memory_mb, memory, code, "MiB: peak host memory of the case") \
    x(whole, leaked_bytes, memory, measured(leaked), "bytes of device memory that the case did not free") \
    x(text, baseline, contest, code, "implementation with which the other implementations are compared") \
    x(real, speedup, contest, code, "time of the baseline / time of this case, from interleaved rounds") \
    x(real, speedup_low, contest, code, "lower end of the 95 % interval of speedup, simultaneous over the group") \
    x(real, speedup_high, contest, code, "upper end of the 95 % interval of speedup; see speedup_low") \
    x(real, noise_floor, contest, code, "deviation of speedup from 1 that identical code may show") \
    x(verdict, verdict, contest, code, "FASTER, SLOWER, EQUIVALENT or UNRESOLVED, against the baseline") \
    x(text, rating, contest, code, "fastest verified time / time_ms: excellent >= 0.8, good >= 0.5, fair >= 0.2") \
    x(truth, shared_buffers, contest, code, "whether all implementations ran on the same buffers") \
    x(text, winner, contest, code, "the fastest implementation, if at least two have times") \
    x(truth, winner_certain, contest, code, "whether the winner is significantly faster than every other case") \
    x(status, status, trust, measured(status), "ok, failed, skipped") \
    x(truth, verified, trust, measured(verified), "whether the checks passed; null if nothing was checked") \
    x(real, max_error, trust, measured(max_error), "largest error that the checks found; see tolerance") \
    x(real, tolerance, trust, measured(tolerance), "allowed error; in kb_check, of |got - want| / (1 + |want|)") \
    x(flags, flags, trust, measured(flags), "names of the raised flags (KB_FLAGS)") \
    x(text, message, trust, measured(message), "notes, for people") \
    x(text, kernel, kernel, measured(kernel), "name of the first kernel of the timed block") \
    x(text, grid, kernel, code, "number of blocks in the grid of the kernel, as XxYxZ") \
    x(text, block, kernel, code, "number of threads in a block of the kernel, as XxYxZ") \
    x(whole, registers, kernel, measured(registers), "registers per thread") \
    x(whole, shared_bytes, kernel, measured(shared_bytes), "shared memory per block, in bytes") \
    x(whole, local_bytes, kernel, measured(local_bytes), "local memory per thread, in bytes") \
    x(real, occupancy_theoretical, kernel, measured(occupancy), "theoretical occupancy: percent of an SM's threads") \
    x(real, occupancy_achieved, kernel, code, "achieved occupancy: percent of an SM's threads (--counters)") \
    x(text, backend, machine, machine(backend), "cuda or cpu") \
    x(whole, device, machine, code, "index of the GPU") \
    x(text, gpu, machine, machine(gpu), "name of the GPU") \
    x(text, compute_capability, machine, code, "compute capability, as 9.0") \
    x(text, driver, machine, machine(driver), "version of the driver") \
    x(text, cuda, machine, machine(cuda), "version of the CUDA runtime") \
    x(text, no_gpu, machine, code, "why no GPU was used; null with a GPU") \
    x(text, tool, machine, machine(tool), "tool, such as compute-sanitizer, that prevented all timing") \
    x(real, copy_roof_gbps, machine, code, "GB/s: measured peak of copies (bytes read plus bytes written)") \
    x(real, read_roof_gbps, machine, code, "GB/s: measured peak of reads") \
    x(real, write_roof_gbps, machine, code, "GB/s: measured peak of writes") \
    x(real, sm_clock_mhz, machine, measured(sm_clock), "MHz: clock of the SMs at the end of the samples") \
    x(real, memory_clock_mhz, machine, measured(memory_clock), "MHz: clock of the device memory") \
    x(truth, clocks_locked, machine, machine(clocks_locked), "whether the clocks of the GPU are locked") \
    x(real, power_w, machine, measured(power), "W: power of the GPU at the end of the samples") \
    x(real, energy_mj, machine, code, "mJ per launch, measured by --energy in back-to-back launches") \
    x(real, idle_power_w, machine, code, "W: power of the idle GPU, measured by --energy; energy_mj includes it") \
    x(real, temperature_c, machine, measured(temperature), "degrees Celsius") \
    x(text, throttle, machine, measured(throttle), "why the GPU lowered its clock") \
    x(whole, l2_bytes, machine, code, "bytes of L2 cache") \
    x(truth, ecc, machine, machine(ecc), "whether ECC is on") \
    x(truth, mig, machine, machine(mig), "whether the GPU is partitioned (MIG)") \
    x(text, host, machine, code, "name of the host") \
    x(text, cpu, machine, code, "name of the processor") \
    x(text, cpus, machine, machine(cpus), "processors that the measuring process may use, as in 0,2-3") \
    x(real, cpu_clock_mhz, machine, measured(cpu_clock), "MHz: clock of the processor at the end of the samples") \
    x(text, cpu_governor, machine, machine(governor), "frequency governor of the processor; null if unknown") \
    x(truth, cpu_boost, machine, machine(boost), "whether the processor may exceed its nominal clock") \
    x(whole, preemptions, machine, measured(preemptions), "number of preemptions during the samples") \
    x(real, cpu_waited, machine, measured(cpu_waited), "percent of the time in which the process waited for a CPU") \
    x(real, cpu_stolen, machine, measured(cpu_stolen), "percent of busy processor time that the hypervisor took") \
    x(text, kernel_version, machine, code, "version of the operating system's kernel") \
    x(params, environment, machine, code, "properties of the machine, by name: aslr, cpu_limit, ...") \
    x(text, kbench_version, run, code, "version of kbench") \
    x(whole, schema, run, code, "version of the record's format: 3") \
    x(text, date, run, code, "UTC, as 2026-01-31T23:59:59Z") \
    x(text, binary, run, code, "hash of the executable") \
    x(text, command, run, code, "the command line") \
    x(whole, seed, run, code, "seed of the data and of random orders") \
    x(text, git_commit, run, code, "git commit of the folder in which the program ran") \
    x(text, build, run, code, "compiler and options") \
    x(text, run_id, run, code, "identifier of the run") \
    x(text, shard, run, code, "K/N if the run measured only part K of N parts of the plan (--shard)") \
    x(whole, place, run, code, "position of the case in the whole plan, from 1")

typedef const char* kbi_field_text; typedef double kbi_field_real; typedef int64_t kbi_field_whole;
typedef int kbi_field_truth; typedef uint64_t kbi_field_flags;
typedef struct kbi_field_params { const kb_param* of; int64_t n; } kbi_field_params;
typedef struct kbi_field_samples { const double* of; int64_t n; } kbi_field_samples;
typedef kb_status kbi_field_status; typedef kb_verdict kbi_field_verdict;
// clang-format on
typedef struct kb_result {
#define KBI_X(kind, key, group, source, meaning) kbi_field_##kind key;
    KB_RECORD(KBI_X)
#undef KBI_X
    const struct kbi_inside* inside; // profile of the case; no output file contains it; NULL: none
    struct kbi_arena* owned;         // memory of the strings, params and samples; kb_result_free frees it
} kb_result;

/*-----------------------------------------------------------------
  >>api       Functions, by task. Unless a comment says otherwise, no function keeps a pointer of the caller.
-----------------------------------------------------------------*/

#ifdef __cplusplus
extern "C" {
#endif

// --- run ---
// For KBENCH_MAIN(): reads the command line, runs the registered benchmarks, and returns the exit code. Worker
// processes run main again, so main must do the same in each process before it calls kb_main.
int kb_main(int argc, char** argv);
// Call kb_default and kb_add_options before kb_main; the argument must stay valid. kb_default sets options, such as
// "--fast", for command lines that select neither cases nor a duration. kb_add_options adds the options of an add-on
// or program.
void kb_default(const char* options);
void kb_add_options(kb_option_set* set);
// Like kb_add, kb_open, kb_run and kb_compare, but the caller passes the build; NULL: unknown.
void kb_add_from(kb_entry* entry, const kb_build* build);
kb_state* kb_open_from(const kb_desc* desc, const kb_build* build);
kb_result kb_run_from(const kb_desc* desc, kb_function fn, void* user, const kb_build* build);
bool kb_compare_from(const kb_desc* descs, const kb_function* fns, void* const* users, int64_t n, kb_result* results,
                     const kb_build* build);
kb_result kb_close(kb_state* kb);       // ends kb_open; free the result with kb_result_free
void kb_result_free(kb_result* result); // frees the memory of a result, not the struct
void kb_print(const kb_result* results, int64_t n); // prints n results as the table, on stdout
// Replaces a file atomically by a JSON array of n results. Returns false after a message on stderr.
bool kb_write_json(const kb_result* results, int64_t n, const char* path);
// Writes a record as JSON. Like snprintf, writes at most size bytes and returns the length of the whole text.
int64_t kb_json(const kb_result* result, char* buffer, int64_t size);
// Describes the build, for bindings of other languages. "version": 10000 major + 100 minor + patch; "cuda": 1 if
// GPUs are measured; "kb_desc", "kb_param", "kb_result", "kb_state", "kb_entry", "kb_axis": bytes; otherwise -1.
int64_t kb_abi(const char* what);
// Returns the current case in a function or check that kb_run or kb_compare calls; NULL elsewhere.
kb_state* kb_current(void);

// --- values of the axes of this case; an unknown axis fails the case, and the message lists the axes ---
int64_t kb_int(kb_state* kb, const char* axis);
double kb_real(kb_state* kb, const char* axis);
const char* kb_str(kb_state* kb, const char* axis);
bool kb_has(kb_state* kb, const char* axis); // whether the case has this axis; an unknown axis is no error

// --- work of one launch of the timed block; doubles, because products of sizes overflow ints ---
void kb_bytes(kb_state* kb, double bytes); // bytes a launch must read and write, for GB/s and percent of the peak
void kb_flops(kb_state* kb, double flops); // number of arithmetic operations, for GFLOP/s and percent of the peak
// Like kb_bytes and kb_flops, for a chosen peak. dtype: type of the multiplied elements (a float, KB_I8 or KB_U8).
void kb_bytes_as(kb_state* kb, double bytes, kb_traffic traffic);
void kb_flops_as(kb_state* kb, double flops, kb_dtype dtype);
void kb_items(kb_state* kb, double items);   // number of work items, for items_per_second
void kb_queries(kb_state* kb, double items); // like kb_items; sets queries_per_second as well
// Sets a counter of the record; unit may be "". A case has at most 16 counters. Names consist of a-z, 0-9 and _.
void kb_count(kb_state* kb, const char* name, double value, const char* unit);

// --- memory ---
// Allocates count * size bytes until the case ends, and sets them to 0xFF. NULL means that the case has failed (OOM).
void* kb_alloc(kb_state* kb, kb_place place, size_t size, int64_t count);
// kb_to_host and kb_from_host wait for kb->stream, then copy bytes. Do not call them in KB_TIME or after kb_skip.
void kb_to_host(kb_state* kb, void* host, const void* from, size_t bytes);
void kb_from_host(kb_state* kb, void* to, const void* host, size_t bytes);
// Returns a host copy of a buffer of kb_alloc, from p on; kbench frees the copy. Returns NULL if the case has failed.
void* kb_host_copy(kb_state* kb, const void* p);

// --- checks of n elements, after the timed block; a check before the block raises BAD_CASE ---
// A check returns true if it passed and the case has not failed. got is memory of kb_alloc; want is host memory.

// Passes if |got - want| <= tolerance * (1 + |want|) for all elements. NaN matches only NaN, inf only the same inf.
bool kb_check_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type, int64_t n,
                    double tolerance);
// Passes if sqrt(sum (got - want)^2) <= tolerance * sqrt(sum want^2).
bool kb_check_norm_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                         int64_t n, double tolerance);
// Passes if |got - want| <= ulps * u for every element; u is the unit in the last place of want in got's type.
bool kb_check_ulp_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                        int64_t n, double ulps);
// Records the result of the caller's own check. `error` and `tolerance` go into the record; `format` says why the
// check failed.
bool kb_check_that(kb_state* kb, bool passed, double error, double tolerance, const char* format, ...)
    KBI_PRINTF(5, 6);

// --- control of the case ---
// Return after kb_skip (the case does not apply to this machine) and after kb_fail (the case cannot be measured).
void kb_skip(kb_state* kb, const char* format, ...) KBI_PRINTF(2, 3);
void kb_fail(kb_state* kb, const char* format, ...) KBI_PRINTF(2, 3);
void kb_note(kb_state* kb, const char* format, ...) KBI_PRINTF(2, 3); // adds a note to the record's message
void kb_expect(kb_state* kb, unsigned expectations); // allows operations of kb_expectation; call it before KB_TIME
// Runs fn as the timed block. Each run first calls before(kb->stream, user), untimed, if before is not NULL. host: fn
// is host work, as in KB_TIME_HOST. Returns true when the block has ended. If kb_entry.returns is set, kb_loop may
// return false. The benchmark function must then return; kbench calls that function again, which must call kb_loop
// again.
bool kb_loop(kb_state* kb, bool host, kb_function before, kb_function fn, void* user);

// --- outputs and instruments of add-ons and programs ---
typedef struct kb_text kb_text; // text that becomes a file; grows as needed
void kb_put(kb_text* to, const char* format, ...) KBI_PRINTF(2, 3); // appends formatted text

typedef struct kb_planned {  // a planned case
    const char* name;        // name of the case, as in its record
    int64_t group;           // cases of a comparison group, which are measured together, have the same number
    bool runs;               // whether this machine can run the case
    const kb_result* record; // earlier record, set by `recall`; kbench then does not measure the case
} kb_planned;

// An output has a command line option and functions that receive the records. Define a kb_output as a static
// variable, because unset members must be zero. KBENCH_OUTPUT defines an output that writes a file.
typedef struct kb_output {
    const char* option;   // "tsv" for --tsv; NULL: the output has no option and is always active
    const char* argument; // "FILE", for --help; NULL: the option takes no value
    const char* help;
    // Appends n records to a text. At the end of the run, a text that is not empty replaces the file of the option.
    void (*fill)(kb_text* to, const kb_result* records, int64_t n);
    // An old file is replaced only if it is empty, or starts with `begins` and contains `inside` in its first `lines`
    // lines (default 8).
    const char *begins, *inside;
    int lines;
    // `ready` is called before files are opened, and `open` before cases are measured. `ready` and `open` may print
    // a message and return false; the exit code is then 2.
    bool (*ready)(const char* value);
    bool (*open)(const char* value);
    // Called in place of all measurements. Returns the exit code, or -1 if kbench has to measure after all.
    int (*instead)(const char* value);
    // Called before the n cases are measured. Sets `record` of a case to an earlier record, which the output owns.
    // If one case has to run, its whole group runs. `like` holds the values that all records of this run share. If
    // `like` is NULL, kbench only lists the cases to run. May print a message and return false, like `open`.
    bool (*recall)(kb_planned* cases, int64_t n, const kb_result* like);
    void (*each)(const kb_result* record); // called for each record when its comparison group has ended
    void (*below)(kb_text* to, const kb_result* record, int width); // appends lines below the table row of the record
    // Called when all files are written, with the exit code so far, `code`. Returns the new exit code.
    int (*end)(const kb_result* records, int64_t n, int code);
    const char* value; // argument of the option; kbench sets `value` and all members below it
    bool on;           // the option was given
    struct kb_output* next;
    kb_option row;
    kb_option_set set;
} kb_output;
void kb_add_output(kb_output* output); // call it before kb_main; *output must stay valid

struct kbi_inside;
struct kbi_machine;
// An instrument has an option and functions that count events. For an instrument, each case that has a time runs its
// timed block again, in a process that measures no time. Define a kb_instrument as a static variable.
typedef struct kb_instrument {
    const char *option, *argument, *help; // as in kb_output
    bool host;                            // true: counts host work; false: counts GPU work
    bool (*ready)(const char* value);     // called before measurements; false, after a message, gives exit code 2
    bool (*open)(kb_state* kb);           // called before the first run; false: cannot count (see kb_not_found)
    int64_t (*begin)(kb_state* kb);       // starts counting; returns the number of runs before `end`; NULL: 1 run
    bool (*end)(kb_state* kb);            // stops counting; true: kbench calls `begin` and `end` again
    void (*close)(kb_state* kb);          // called after the last run of the block
    double seconds;                       // expected duration per case in seconds; 0: that of a few runs
    bool (*before)(void);                 // called before the first case; false: there is no data, exit code 2
    void (*after)(void);                  // prints text below the table
    void (*machine)(struct kbi_machine* machine); // adds properties of the machine for --env
    void (*amend)(kb_result* record, int64_t number); // changes a record before flags are set; number: plan index
    void (*judge)(kb_result* record, struct kbi_inside* found, const struct kbi_machine* machine);
    // Marks a case or phase for an external profiler, also without the option of the instrument. Ends range *range
    // if not 0, and begins a range if `name` is not NULL. category: the operation of a case, or "phase".
    void (*range)(uint64_t* range, const char* name, const char* category);
    const char* value; // argument of the option; kbench sets `value` and all members below it
    bool on;
    unsigned bit;      // bit of this instrument in a mask of instruments
    struct kb_instrument* next;
    kb_option row;
    kb_option_set set;
} kb_instrument;
void kb_add_instrument(kb_instrument* instrument); // call it before kb_main; *instrument must stay valid
// Between `open` and `close`, kb_found sets a counter of the record; kb_not_found says why a counter is missing.
void kb_found(kb_state* kb, const char* name, double value, const char* unit);
void kb_not_found(kb_state* kb, const char* format, ...) KBI_PRINTF(2, 3);

// --- statistics and names ---
kb_stats kb_summarize(const double* samples, int64_t n); // pass the samples in the order of measurement
const char* kb_dtype_name(kb_dtype dtype);               // "f32"
kb_dtype kb_dtype_of(const char* name);                  // KB_NODTYPE if the name is unknown
size_t kb_dtype_size(kb_dtype dtype);                    // bytes per element
const char* kb_flag_name(kb_flag flag);
const char* kb_flag_advice(kb_flag flag);
bool kb_flag_is_error(kb_flag flag);

// --- private functions that the macros call ---
int64_t kbi_next(kb_state* kb, bool host, int line);
bool kbi_sample(kb_state* kb);
void kbi_leave(kb_state* kb);
void kbi_fill(kb_state* kb, void* p, kb_dtype dtype, int64_t n, kb_kind kind);
void kbi_register(kb_entry* entry, const char* operation, const char* implementation, const kb_build* build);
void kbi_threw(kb_state* kb, const char* what);
extern const char KBI_DEMAND[], KBI_DEMAND_CUDA[];
#if KBI_EXCEPTIONS
KBI_INLINE void kbi_call_body(kb_body body, kb_state* kb) {
    try {
        body(kb);
    } catch (const std::exception& e) { kbi_threw(kb, e.what()); } catch (const char* text) {
        kbi_threw(kb, text);
    } catch (...) { kbi_threw(kb, NULL); }
}
#else
#define kbi_call_body NULL
#endif
// The linker defines these symbols: begin and end of the section kbi_marks.
extern const int32_t __start_kbi_marks[] __attribute__((weak, visibility("hidden")));
extern const int32_t __stop_kbi_marks[] __attribute__((weak, visibility("hidden")));

KBI_INLINE const kb_build* kbi_build(void) {
    static const kb_build build = {
        __VERSION__
#if defined(__FAST_MATH__) || defined(__USE_FAST_MATH__)
        " fast-math"
#endif
#if defined(__AVX512F__)
        " AVX-512"
#elif defined(__AVX2__)
        " AVX2"
#endif
        , KBI_OPTIMISED, KBI_CUDA, kbi_call_body, KBI_CUDA ? KBI_DEMAND_CUDA : KBI_DEMAND,
        __start_kbi_marks, __stop_kbi_marks
    };
    return &build;
}

// --- benchmarks without macros; the record says how the file that calls these functions was compiled ---

// Registers one implementation; *entry must stay valid. Implementations are sorted by file, line and call; the first
// one of an operation is the baseline.
KBI_INLINE void kb_add(kb_entry* entry) { kb_add_from(entry, kbi_build()); }
// Measures the KB_TIME loop between kb_open and kb_close, in the calling process. Returns NULL if memory is short. If
// desc is invalid, the loop does not run, and the result of kb_close says why. Until kb_close, kbench handles
// SIGCONT, so that it notices when the process was stopped; it also calls the program's handler of SIGCONT.
KBI_INLINE kb_state* kb_open(const kb_desc* desc) { return kb_open_from(desc, kbi_build()); }
// Measures fn(stream, user) as the timed block. Free the result with kb_result_free.
KBI_INLINE kb_result kb_run(const kb_desc* desc, kb_function fn, void* user) {
    return kb_run_from(desc, fn, user, kbi_build());
}
// Compares n functions in interleaved rounds, and judges each against the first function. The first description sets
// name, params, host, mode, samples, precision, max_time, seed and device; other descriptions may leave them 0.
// users: n pointers, or NULL. results: n records, for kb_result_free. Returns whether all functions were measured.
KBI_INLINE bool kb_compare(const kb_desc* descs, const kb_function* fns, void* const* users, int64_t n,
                           kb_result* results) {
    return kb_compare_from(descs, fns, users, n, results, kbi_build());
}

#ifdef __cplusplus
}
#endif

/*-----------------------------------------------------------------
  >>macros    The statements a benchmark is written in.
-----------------------------------------------------------------*/

// clang-format off
// KBENCH(op, axes...) { code } registers code as the benchmark function of operation op, implementation "default". A
// name may be a string literal or a macro, which is expanded.
#define KBENCH(...) KBI_BENCH(__COUNTER__, KBI_OPERATION(__VA_ARGS__, 0), NULL, KBI_TAIL_1(__VA_ARGS__, KBI_AXES_END))
// KBENCH_IMPL(op, impl, axes...) registers one implementation of op. The first implementation of op is the baseline.
#define KBENCH_IMPL(...) \
    KBI_BENCH(__COUNTER__, KBI_OPERATION(__VA_ARGS__, 0), KBI_IMPLEMENTATION(__VA_ARGS__, 0), \
              KBI_TAIL_2(__VA_ARGS__, KBI_AXES_END))
// KBENCH_OUTPUT(tsv, "FILE", "tab-separated values") { ... } adds an option --tsv FILE. The function fills the
// file: void (kb_text* to, const kb_result* records, int64_t n), with kb_put(to, format, ...).
#define KBENCH_OUTPUT(name, argument_, help_) KBI_OUTPUT(name, argument_, help_) // expands the arguments
#define KBI_OUTPUT(name, argument_, help_) \
    static void kbi_fill_##name(kb_text* to, const kb_result* records, int64_t n); \
    KBI_CONSTRUCTOR static void kbi_add_output_##name(void) { \
        static kb_output output; \
        output.option = #name, output.argument = argument_, output.help = help_; \
        output.fill = kbi_fill_##name; \
        kb_add_output(&output); \
    } \
    static void kbi_fill_##name(kb_text* to, const kb_result* records, int64_t n)
// Defines a main function that runs all registered benchmarks.
#define KBENCH_MAIN() int main(int argc, char** argv) { return kb_main(argc, argv); }

// KB_TIME marks the timed block: GPU work on kb->stream if this file is compiled with CUDA, else host work. kbi_next
// returns how often the block runs before the next kbi_next. In C++, ~kbi_loop detects a block left early.
#define KB_TIME(kb) KBI_TIME(kb, false)
// KB_TIME_HOST marks a timed block of host work, also with CUDA (timer wall).
#define KB_TIME_HOST(kb) KBI_TIME(kb, true)
#ifdef __cplusplus
#define KBI_TIME(kb, host) \
    for (kbi_loop kbi_this(kb); kbi_this.left > 0 || (kbi_this.left = kbi_next((kb), (host), __LINE__)) > 0; \
         --kbi_this.left)
#else
#define KBI_TIME(kb, host) \
    for (int64_t kbi_left = 0; kbi_left > 0 || (kbi_left = kbi_next((kb), (host), __LINE__)) > 0; --kbi_left)
#endif
// KB_SAMPLE(kb) { reset; KB_TIME(kb) { launch; } } runs the untimed reset before every timed run.
#define KB_SAMPLE(kb) for (; kbi_sample(kb);)

// An axis has at most KB_AXIS_MAX constant integers, reals (also infinities) or strings; -a NAME=LIST replaces them.
// LIST may contain 0 only if a declared value is below 1, and negative integers only if a declared value is negative.
#define KB_AXIS(name, ...) \
    { name, KBI_FITS(KB_AXIS_INTS, int64_t, __VA_ARGS__), { __VA_ARGS__, KB_LAST_INT }, { 0 }, { NULL } }
#define KB_AXIS_REAL(name, ...) \
    { name, KBI_FITS(KB_AXIS_REALS, double, __VA_ARGS__), { 0 }, { __VA_ARGS__, KB_LAST_REAL }, { NULL } }
#define KB_AXIS_STR(name, ...) \
    { name, KBI_FITS(KB_AXIS_STRINGS, const char*, __VA_ARGS__), { 0 }, { 0 }, { __VA_ARGS__, NULL } }
// Element types ("f32", "tf32", "f16", "bf16", "e4m3", ...); the function reads kb->dtype.
#define KB_DTYPE(...) KB_AXIS_STR("dtype", __VA_ARGS__)
// Values or a small grid of several axes, in a category: KB_SIZE("small", "rows=512 cols=256,1024").
#define KB_SIZE(category, spec) { category, KB_AXIS_SIZE, { 0 }, { 0 }, { spec, NULL } }

// Allocate n elements of type T in GPU memory (cpu backend: host memory), host memory, or page-locked host memory.
#define KB_ALLOC(kb, T, n) KBI_POINTER(T, kb_alloc((kb), KB_DEVICE, sizeof(T), (n)))
#define KB_ALLOC_HOST(kb, T, n) KBI_POINTER(T, kb_alloc((kb), KB_HOST, sizeof(T), (n)))
#define KB_ALLOC_PINNED(kb, T, n) KBI_POINTER(T, kb_alloc((kb), KB_PINNED, sizeof(T), (n)))

// KB_CHECK_EACH(kb, y, n, i, 0.5 * hx[i], 0) compares y[i] with an expression of i, as kb_check does. Call it after
// KB_TIME, but set hx = kb_host(kb, x) before. If the case has failed, hx may be NULL, and is not read.
#define KB_CHECK_EACH(kb, got, n, i, expression, tolerance) \
    do { \
        const int64_t kbi_n = (n); \
        double* const kbi_want = KB_ALLOC_HOST(kb, double, kbi_n); \
        for (int64_t i = 0; kbi_want && i < kbi_n; i++) kbi_want[i] = (double)(expression); \
        if (kbi_want) (void)kb_check(kb, got, kbi_want, kbi_n, tolerance); \
    } while (0)

// Element types of C and C++. KB_TYPE_OF adds unsigned long long as its last entry, after which C allows no comma.
#define KBI_TYPES(x) \
    x(float, KB_F32) x(double, KB_F64) x(kb_f16, KB_F16) x(kb_bf16, KB_BF16) x(kb_e4m3, KB_E4M3) \
    x(kb_e5m2, KB_E5M2) x(signed char, KB_I8) x(char, KB_I8) x(unsigned char, KB_U8) x(short, KB_I16) \
    x(unsigned short, KB_U16) x(int, KB_I32) x(unsigned, KB_U32) x(long, sizeof(long) == 8 ? KB_I64 : KB_I32) \
    x(unsigned long, sizeof(long) == 8 ? KB_U64 : KB_U32) x(long long, KB_I64)

// kb_keep(a, b, ...) acts like unknown code that reads and changes a, b, ... and the data to which they point, so that
// the compiler computes them in each run. In C, kb_keep takes at most 8 expressions, and only variables and array
// elements with at most 24 characters of source text count as changed. For a bit-field, write kb_keep(+s.bits).
#ifdef __cplusplus
#define KBI_POINTER(T, p) static_cast<T*>(p)
#define kb_keep(...) kbi_keep<__LINE__>(__VA_ARGS__)
#else
#define KBI_POINTER(T, p) ((T*)(p))
#define kb_keep(...) \
    __extension__({ KBI_JOIN(KBI_KEEP_, KBI_ARGUMENTS(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0))(__VA_ARGS__); })
// In C++, overloads in >>cxx replace the macros kb_fill to kb_check_ulp.
#define KBI_TYPE_CASE(T, code) T: code,
#define KB_TYPE_OF(p) _Generic(*(p), KBI_TYPES(KBI_TYPE_CASE) unsigned long long: KB_U64)
#define kb_fill(kb, p, n, kind) kbi_fill((kb), (p), KB_TYPE_OF(p), (n), (kind))
#define kb_host(kb, p) ((__typeof__(&(p)[0]))kb_host_copy((kb), (p)))
#define kb_check(kb, got, want, n, tolerance) \
    kb_check_typed((kb), (got), KB_TYPE_OF(got), (want), KB_TYPE_OF(want), (n), (tolerance))
#define kb_check_norm(kb, got, want, n, tolerance) \
    kb_check_norm_typed((kb), (got), KB_TYPE_OF(got), (want), KB_TYPE_OF(want), (n), (tolerance))
#define kb_check_ulp(kb, got, want, n, ulps) \
    kb_check_ulp_typed((kb), (got), KB_TYPE_OF(got), (want), KB_TYPE_OF(want), (n), (ulps))
#endif

// Puts a mark for a source line into a linker section; marks show whether a timed block keeps a value. A mark is 8
// * line, plus 4 if the compiler knows the kept value; the mark of a KBENCH macro is 8 * line + 1.
#define KBI_MARK(line) ".pushsection kbi_marks,\"a\"\n\t.long " line "\n\t.popsection"
// An asm statement hides the new value of its output object from the compiler. Integers and pointers are in a general
// register, floats in a floating-point register, other types in memory. If a constraint also allowed memory, clang
// would use memory.
#if defined(__SSE2__)
#define KBI_IN_FLOATS "+x"
#elif defined(__aarch64__)
#define KBI_IN_FLOATS "+w"
#else
#define KBI_IN_FLOATS "+m"
#endif
#define KBI_KEEP_IN(constraint, object, line, x) \
    __asm__ __volatile__(KBI_MARK("%c1 + 4 * %c2") \
                         : constraint(object) : "i"(8 * (line)), "i"(__builtin_constant_p(x)) : "memory")
#define KBI_KEEP_AT(address, line, x) \
    __asm__ __volatile__(KBI_MARK("%c1 + 4 * %c2") \
                         : : "r"(address), "i"(8 * (line)), "i"(__builtin_constant_p(x)) : "memory")
#ifndef __cplusplus
#define KBI_JOIN(a, b) KBI_JOIN_(a, b)
#define KBI_JOIN_(a, b) a##b
#define KBI_ARGUMENTS(a, b, c, d, e, f, g, h, n, ...) n
#define KBI_KEEP_2(a, ...) KBI_KEEP_1(a); KBI_KEEP_1(__VA_ARGS__)
#define KBI_KEEP_3(a, ...) KBI_KEEP_1(a); KBI_KEEP_2(__VA_ARGS__)
#define KBI_KEEP_4(a, ...) KBI_KEEP_1(a); KBI_KEEP_3(__VA_ARGS__)
#define KBI_KEEP_5(a, ...) KBI_KEEP_1(a); KBI_KEEP_4(__VA_ARGS__)
#define KBI_KEEP_6(a, ...) KBI_KEEP_1(a); KBI_KEEP_5(__VA_ARGS__)
#define KBI_KEEP_7(a, ...) KBI_KEEP_1(a); KBI_KEEP_6(__VA_ARGS__)
#define KBI_KEEP_8(a, ...) KBI_KEEP_1(a); KBI_KEEP_7(__VA_ARGS__)
// C cannot test for an lvalue, but a text of only letters, digits, _ and [] is a variable or an array element. In
// constant expressions, compilers accept memcmp of literals, but no comparison of characters.
#define KBI_BELOW(c, bound) (__builtin_memcmp(c, bound, 1) < 0)
#define KBI_IN_NAME(c) \
    (!KBI_BELOW(c, "0") && (KBI_BELOW(c, ":") || !KBI_BELOW(c, "@")) && KBI_BELOW(c, "{") && \
        __builtin_memcmp(c, "^", 1) != 0)
#define KBI_NAME_1(t, i) (sizeof(t) <= i + 1 || KBI_IN_NAME(&t[sizeof(t) > i ? i : 0]))
#define KBI_NAME_4(t, i) (KBI_NAME_1(t, i) && KBI_NAME_1(t, i + 1) && KBI_NAME_1(t, i + 2) && KBI_NAME_1(t, i + 3))
#define KBI_NAME(t) \
    (sizeof(t) <= 25 && KBI_NAME_4(t, 0) && KBI_NAME_4(t, 4) && KBI_NAME_4(t, 8) && KBI_NAME_4(t, 12) && \
        KBI_NAME_4(t, 16) && KBI_NAME_4(t, 20))
#define KBI_IF(condition, a, b) __builtin_choose_expr(condition, a, b)
#define KBI_NAMED(x) KBI_IF(kbi_keep_named, KBI_IF(__builtin_constant_p(x), 0, x), 0)
#define KBI_OBJECT(x) KBI_IF(kbi_hides, x, kbi_value)
// If an object is const, a constant, or an array (which decays to a pointer), its copy is kept instead.
#define KBI_KEEP_1(x) \
    do { \
        enum { kbi_keep_named = KBI_NAME(#x) }; \
        enum { \
            kbi_hides = kbi_keep_named && KBI_IF(__builtin_constant_p(x), 0, 1) && \
                !__builtin_types_compatible_p(__typeof__(KBI_NAMED(x))*, const __typeof__(KBI_NAMED(x))*) && \
                __builtin_types_compatible_p(__typeof__(KBI_NAMED(x)), __typeof__(((void)0, KBI_NAMED(x)))) \
        }; \
        __auto_type kbi_value = ((void)0, KBI_IF(kbi_hides, 0, x)); \
        enum { \
            kbi_keep_class = __builtin_classify_type(KBI_OBJECT(x)), /* <= 5: integer, pointer; 8: float */ \
            kbi_keep_word = kbi_keep_class <= 5 && sizeof(((void)0, KBI_OBJECT(x))) <= sizeof(void*), \
            kbi_keep_float = kbi_keep_class == 8 && sizeof(((void)0, KBI_OBJECT(x))) <= 8 \
        }; \
        double kbi_no_float; \
        int kbi_no_word; \
        if (kbi_keep_word) \
            KBI_KEEP_IN("+r", KBI_IF(kbi_keep_word, KBI_OBJECT(x), kbi_no_word), __LINE__, x); \
        else if (kbi_keep_float) \
            KBI_KEEP_IN(KBI_IN_FLOATS, KBI_IF(kbi_keep_float, KBI_OBJECT(x), kbi_no_float), __LINE__, x); \
        else \
            KBI_KEEP_AT(&KBI_IF(kbi_keep_word || kbi_keep_float, kbi_no_word, KBI_OBJECT(x)), __LINE__, x); \
    } while (0)
// More than KB_AXIS_MAX values are a compile-time error; C would only drop the excess values.
#define KBI_FITS(type, T, ...) \
    ((kb_axis_type)(type + 0 * sizeof(struct { \
                        int an_axis_has_at_most_32_values \
                            : sizeof((T[]){ __VA_ARGS__ }) / sizeof(T) <= KB_AXIS_MAX ? 1 : -1; \
                    })))
// 0, not NULL: KBENCH(op, "name") then compiles, and the message of kbi_register says what to write.
#define KBI_AXES_END { 0, KB_AXIS_END, { 0 }, { 0 }, { 0 } }
#else
#define KBI_FITS(type, T, ...) type
#define KBI_AXES_END { NULL, KB_AXIS_END, { 0 }, { 0 }, { NULL } }
#endif
#define KBI_OPERATION(...) KBI_OPERATION_(__VA_ARGS__)
#define KBI_OPERATION_(op, ...) #op
#define KBI_IMPLEMENTATION(...) KBI_IMPLEMENTATION_(__VA_ARGS__)
#define KBI_IMPLEMENTATION_(op, impl, ...) #impl
#define KBI_TAIL_1(op, ...) __VA_ARGS__
#define KBI_TAIL_2(op, impl, ...) __VA_ARGS__
#define KBI_BENCH(n, op, impl, ...) KBI_BENCH_(n, op, impl, __VA_ARGS__)
#define KBI_BENCH_(n, op, impl, ...) \
    static void kbi_body_##n(kb_state* kb) __attribute__((aligned(64))); /* see kbi_code_effect */ \
    static const kb_axis kbi_axes_##n[] = { __VA_ARGS__ }; \
    static kb_entry kbi_entry_##n = { NULL, NULL, kbi_body_##n, NULL, kbi_axes_##n, NULL, 0, KB_NEEDS_NOTHING, 0, \
                                      NULL, false, __FILE__, __LINE__, n + 1, NULL, NULL }; \
    KBI_CONSTRUCTOR static void kbi_register_##n(void) { \
        __asm__ __volatile__(KBI_MARK("%c0") : : "i"(8 * __LINE__ + 1)); \
        kbi_register(&kbi_entry_##n, op, impl, kbi_build()); \
    } \
    static void kbi_body_##n(kb_state* kb)

/*-----------------------------------------------------------------
  >>cxx       C++ overloads: element types from pointers, descriptions by reference, lambdas.
-----------------------------------------------------------------*/

#ifdef __cplusplus
struct __half;        // cuda_fp16.h
struct __nv_bfloat16; // cuda_bf16.h
struct __nv_fp8_e4m3; struct __nv_fp8_e5m2; // cuda_fp8.h
template <class T> struct kbi_type;
template <class T> struct kbi_type<const T> : kbi_type<T> {};
#define KBI_X(T, code) template <> struct kbi_type<T> { static const kb_dtype value = code; };
KBI_TYPES(KBI_X) KBI_X(unsigned long long, KB_U64)
KBI_X(__half, KB_F16) KBI_X(__nv_bfloat16, KB_BF16) KBI_X(__nv_fp8_e4m3, KB_E4M3) KBI_X(__nv_fp8_e5m2, KB_E5M2)
#undef KBI_X
template <class T>
void kb_fill(kb_state* kb, T* p, int64_t n, kb_kind kind) { kbi_fill(kb, p, kbi_type<T>::value, n, kind); }
template <class T> T* kb_host(kb_state* kb, const T* p) { return static_cast<T*>(kb_host_copy(kb, p)); }
#define KBI_X(check, bound) \
    template <class T, class U> bool check(kb_state* kb, T* got, U* want, int64_t n, double bound) { \
        return check##_typed(kb, got, kbi_type<T>::value, want, kbi_type<U>::value, n, bound); \
    }
KBI_X(kb_check, tolerance) KBI_X(kb_check_norm, tolerance) KBI_X(kb_check_ulp, ulps)
#undef KBI_X
// kb_keep puts a value of kbi_operand<0> in memory, <1> in a general register, <2> in a register for floats.
template <int where> struct kbi_operand {};
template <class T> struct kbi_operand_of :
    kbi_operand<!__is_class(T) && !__is_union(T) && sizeof(T) <= sizeof(void*)> {};
template <> struct kbi_operand_of<float> : kbi_operand<2> {};
template <> struct kbi_operand_of<double> : kbi_operand<2> {};
#define KBI_KEEPER(...) template <int line, __VA_ARGS__> inline __attribute__((always_inline)) void
KBI_KEEPER(class T) kbi_keep_in(T& x, kbi_operand<0>) { KBI_KEEP_AT(__builtin_addressof(x), line, x); }
#define KBI_X(where, constraint) \
    KBI_KEEPER(class T) kbi_keep_in(T& x, kbi_operand<where>) { KBI_KEEP_IN(constraint, x, line, x); } \
    KBI_KEEPER(class T) kbi_keep_in(const T& x, kbi_operand<where> same) { \
        T value = x; \
        kbi_keep_in<line>(value, same); \
    }
KBI_X(1, "+r") KBI_X(2, KBI_IN_FLOATS)
#undef KBI_X
KBI_KEEPER(class T) kbi_keep_one(T& x) { kbi_keep_in<line>(x, kbi_operand_of<T>()); }
KBI_KEEPER(class T, size_t n) kbi_keep_one(T (&x)[n]) { kbi_keep_in<line>(x, kbi_operand<0>()); }
KBI_KEEPER(class To, class... From) kbi_keep_one(To (&x)(From...)) { kbi_keep_in<line>(x, kbi_operand<0>()); }
template <int line> inline void kbi_keep() {}
KBI_KEEPER(class T, class... Rest) kbi_keep(T&& x, Rest&&... rest) {
    kbi_keep_one<line>(x);
    kbi_keep<line>(rest...);
}
// clang-format on

// If an exception, break or return leaves the timed block, ~kbi_loop ends the block before objects of the benchmark
// function are destroyed. Otherwise a destructor that frees memory would wait for a stream that waits for kbench.
struct kbi_loop {
    kb_state* kb;
    int64_t left;
    explicit kbi_loop(kb_state* state) : kb(state), left(0) {}
    ~kbi_loop() {
        if (left > 0) kbi_leave(kb);
    }
};
KBI_INLINE kb_state* kb_open(const kb_desc& desc) { return kb_open(&desc); }
// fn: any callable with a kb_stream argument, usually a lambda.
template <class Callable> void kbi_call(kb_stream stream, void* user) { (*static_cast<Callable*>(user))(stream); }
template <class Callable> kb_result kb_run(const kb_desc& desc, Callable fn) {
    return kb_run(&desc, kbi_call<Callable>, &fn);
}
#endif
#endif // KBENCH_H

/*===============================================================================================================
  Stop here if you only want the API.
===============================================================================================================*/

#if defined(KBENCH_H) && defined(KBENCH_IMPLEMENTATION) && !defined(KBENCH_IMPLEMENTED) && !defined(__CUDA_ARCH__)
#define KBENCH_IMPLEMENTED
#if KBI_CUDA
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#endif
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if !defined(KBI_FIBERS) && defined(__GLIBC__) // musl has no ucontext, so the cases of a group run one after another
#include <ucontext.h>
#define KBI_FIBERS 1
#elif !defined(KBI_FIBERS)
#define KBI_FIBERS 0
#endif
#ifndef KBENCH_MALLOC
#define KBENCH_MALLOC(bytes) malloc(bytes)
#define KBENCH_REALLOC(p, bytes) realloc(p, bytes)
#define KBENCH_FREE(p) free(p)
#endif

/*-----------------------------------------------------------------
  >>system    foundation: compiler optimisation, and small wrappers of system calls.
-----------------------------------------------------------------*/

// Most functions below run once per case; they are not optimised, which shortens compilation. Functions that loop
// over data are between KBI_SLOW_END and KBI_SLOW_BEGIN.
#if defined(__clang__)
#define KBI_SLOW_BEGIN _Pragma("clang optimize off")
#define KBI_SLOW_END _Pragma("clang optimize on")
#define KBI_CODE_BEGIN KBI_SLOW_BEGIN
#define KBI_CODE_END KBI_SLOW_END
#define KBI_OPTIMISE __attribute__((noinline))
#else
#ifdef __CUDACC__
#pragma nv_diag_suppress 1675 // cudafe does not know the pragma optimize, but gcc, which runs later, knows it
#endif
#ifdef __cplusplus
#define KBI_MACROS(push_or_pop)
#else // in C, #pragma GCC optimize changes these macros, and pop_options does not restore them
#define KBI_MACROS(push_or_pop) \
    KBI_PRAGMA(push_or_pop("__OPTIMIZE__")) KBI_PRAGMA(push_or_pop("__OPTIMIZE_SIZE__")) \
        KBI_PRAGMA(push_or_pop("__FAST_MATH__")) KBI_PRAGMA(push_or_pop("__FINITE_MATH_ONLY__"))
#define KBI_PRAGMA(text) _Pragma(#text)
#endif
#define KBI_CODE_BEGIN _Pragma("GCC push_options") KBI_MACROS(push_macro) KBI_SLOW_BEGIN
#define KBI_CODE_END _Pragma("GCC pop_options") KBI_MACROS(pop_macro)
#define KBI_SLOW_BEGIN _Pragma("GCC optimize(\"O0\")")
#define KBI_SLOW_END _Pragma("GCC optimize(\"Og\")")
#define KBI_OPTIMISE __attribute__((noinline, optimize("O2")))
#endif
#define KBI_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#ifdef __cplusplus
#define KBI_EXTERN_C extern "C"
#define KBI_STATIC_ASSERT static_assert
#else
#define KBI_EXTERN_C extern
#define KBI_STATIC_ASSERT _Static_assert
#endif
#define KBI_BLANK { NULL, 0, 0 }
#define KBI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define KBI_MAX(a, b) ((a) > (b) ? (a) : (b))
// kbi_open_file and the next functions precede KBI_CODE_BEGIN, because fortified functions of glibc warn without
// optimisation. O_NONBLOCK keeps open() from waiting until another process opens the other end of a pipe.
static int kbi_open_file(const char* path, int flags) {
    return open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
}
// Opens stdin, stdout and stderr if closed; otherwise a file opened later could become stdout and get the table.
static void kbi_open_standard_files(void) {
    int file = 0;
    while (file >= 0 && file <= 2) file = open("/dev/null", O_RDWR);
    if (file > 2) close(file);
}
// Makes stdout and stderr blocking, because stdio loses text if a non-blocking pipe is full.
static void kbi_block_standard_files(void) {
    for (int file = 1; file <= 2; file++) {
        int flags = fcntl(file, F_GETFL);
        if (flags >= 0 && (flags & O_NONBLOCK)) fcntl(file, F_SETFL, flags & ~O_NONBLOCK);
    }
}
// Duplicates a file descriptor to 100 or above if the limit permits, because some code closes all low descriptors.
static int kbi_high_file(int file) {
    int high = fcntl(file, F_DUPFD_CLOEXEC, 100);
    return high >= 0 ? high : fcntl(file, F_DUPFD_CLOEXEC, 3);
}
static ssize_t kbi_read_some(int file, void* to, size_t n) { return read(file, to, n); }
static char* kbi_get_line(char* to, int size, FILE* f) { return fgets(to, size, f); }
static bool kbi_folder_here(char* to, size_t size) { return getcwd(to, size) != NULL; }
static bool kbi_poll(int file, short events, int milliseconds) {
    struct pollfd p = { file, events, 0 };
    return poll(&p, 1, milliseconds) > 0;
}
static bool kbi_readable(int file, int milliseconds) { return kbi_poll(file, POLLIN, milliseconds); } // -1: waits

KBI_CODE_BEGIN
/*-----------------------------------------------------------------
  >>numbers   foundation: writes and reads doubles exactly, in every locale.
-----------------------------------------------------------------*/

// Returns the bits of |x|. A comparison of bits works with -ffast-math, which assumes that no NaN or infinity occurs.
static uint64_t kbi_magnitude(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits << 1 >> 1;
}
static bool kbi_finite(double x) { return kbi_magnitude(x) < (uint64_t)0x7ff << 52; }
static bool kbi_nan(double x) { return kbi_magnitude(x) > (uint64_t)0x7ff << 52; }

static void kbi_unlocalise(char* s) {
    const char* point = localeconv()->decimal_point;
    char *p = strstr(s, point), *rest = p ? p + strlen(point) : NULL;
    if (!p || p == rest) return;
    *p = '.';
    memmove(p + 1, rest, strlen(rest) + 1);
}

// Reads a number like strtod, but with '.' as decimal point in every locale. A comma ends the number.
static double kbi_real_of(const char* s, char** end) {
    const char* locale_point = localeconv()->decimal_point;
    if (strcmp(locale_point, ".") == 0) return strtod(s, end);
    char text[160], *stop;
    snprintf(text, sizeof text, "%.*s", (int)KBI_MIN(strcspn(s, ","), sizeof text - 1), s);
    char* point = strchr(text, '.');
    if (point && strlen(locale_point) == 1) *point = *locale_point;
    double x = strtod(text, &stop);
    *end = (char*)s + (stop - text);
    return x;
}

// Writes x as "%g" does, with the fewest of 15, 16 or 17 digits from which strtod returns x.
static const char* kbi_number(double x, char out[40]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 40, "%.*g", digits, x);
        if (strtod(out, NULL) == x) break;
    }
    return kbi_unlocalise(out), out;
}
// Writes x with `digits` significant digits. If x is 1e15 or more, the text has an exponent.
static const char* kbi_digits(double x, int digits, char out[40]) {
    int whole = 1; // digits before the decimal point
    snprintf(out, 40, "%.*e", digits - 1, x); // rounds x before digits are counted: 9.9999 becomes 10.00
    const char* exponent = strchr(out, 'e');
    if (x != 0 && exponent) whole = (int)strtol(exponent + 1, NULL, 10) + 1;
    if (whole <= 15) snprintf(out, 40, "%.*f", KBI_MAX(0, KBI_MIN(digits - whole, 9)), x);
    return kbi_unlocalise(out), out;
}

/*-----------------------------------------------------------------
  >>util      foundation: arenas, growing text, suggestions for mistyped names.
-----------------------------------------------------------------*/

// Like realloc, but ends the process if memory is short.
static void* kbi_grow(void* p, size_t bytes) {
    void* q = KBENCH_REALLOC(p, bytes ? bytes : 1);
    if (q) return q;
    fprintf(stderr, "kbench: error: out of host memory (%zu bytes): free some, or choose fewer cases\n", bytes);
    _exit(1);
}
#define KBI_GROW(p, type, n) ((type*)kbi_grow(p, sizeof(type) * (size_t)(n)))

typedef struct kbi_arena { // memory of strings and arrays that are freed together
    char* block;           // the newest block; it begins with the address of the previous block
    size_t used, size;
} kbi_arena;
static void* kbi_arena_alloc(kbi_arena* a, size_t bytes) { // returns zeroed memory, aligned to 16 bytes
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->block || a->used + bytes > a->size) {
        size_t size = KBI_MAX(bytes + 16, (size_t)4096);
        char* block = (char*)kbi_grow(NULL, size);
        memcpy(block, &a->block, sizeof(char*));
        a->block = block, a->size = size, a->used = 16;
    }
    void* p = a->block + a->used;
    a->used += bytes;
    memset(p, 0, bytes);
    return p;
}
#define KBI_ARRAY(arena, type, n) ((type*)kbi_arena_alloc(arena, sizeof(type) * (size_t)(n)))
static void kbi_arena_free(kbi_arena* a) {
    while (a->block) {
        char* previous;
        memcpy(&previous, a->block, sizeof(char*));
        KBENCH_FREE(a->block);
        a->block = previous;
    }
    a->used = a->size = 0;
}
static char* kbi_arena_text_n(kbi_arena* a, const char* s, size_t n) {
    void* p = kbi_arena_alloc(a, n + 1);
    return (char*)(n ? memcpy(p, s, n) : p);
}
static char* kbi_arena_text(kbi_arena* a, const char* s) { return s ? kbi_arena_text_n(a, s, strlen(s)) : NULL; }
static char* kbi_keep_text(const char* s) { return strcpy((char*)kbi_grow(NULL, strlen(s) + 1), s); }

struct kb_text { // text that grows; s is NULL or ends with a 0
    char* s;
    size_t n, size;
};
typedef struct kb_text kbi_text;
KBI_SLOW_END
static void kbi_reserve(kbi_text* t, size_t n) {
    if (t->n + n + 1 <= t->size) return;
    t->size = 2 * t->size + n + 256;
    t->s = (char*)kbi_grow(t->s, t->size);
}
static void kbi_put(kbi_text* t, const char* s, size_t n) {
    kbi_reserve(t, n);
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}
static void kbi_puts(kbi_text* t, const char* s) { kbi_put(t, s, strlen(s)); }
KBI_SLOW_BEGIN
static void kbi_vputf(kbi_text* t, const char* format, va_list list) {
    va_list again;
    va_copy(again, list);
    kbi_put(t, "", 0);
    int n = vsnprintf(t->s + t->n, t->size - t->n, format, list);
    if (n > 0 && (size_t)n >= t->size - t->n) {
        kbi_reserve(t, (size_t)n);
        vsnprintf(t->s + t->n, (size_t)n + 1, format, again);
    }
    va_end(again);
    t->n += (size_t)KBI_MAX(n, 0);
}

#define kbi_putf kb_put
void kb_put(kbi_text* t, const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_vputf(t, format, list);
    va_end(list);
}
// Writes text to out + start; out has size bytes. A text that does not fit is cut; it ends with "...".
static void kbi_vfit(char* out, size_t start, size_t size, const char* format, va_list list) {
    int n = vsnprintf(out + start, size - start, format, list);
    if (n < 0 || (size_t)n < size - start) return;
    for (n = (int)size - 4; n && ((unsigned char)out[n] & 0xc0) == 0x80; n--) {}
    memcpy(out + n, "...", 4);
}
KBI_PRINTF(4, 5) static void kbi_fit(char* out, size_t start, size_t size, const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_vfit(out, start, size, format, list);
    va_end(list);
}

static void kbi_text_free(kbi_text* t) {
    KBENCH_FREE(t->s);
    memset(t, 0, sizeof *t);
}

// Returns the length of the UTF-8 sequence at s and sets *code to its character; 0: the sequence is invalid.
static int kbi_utf8(const char* s, unsigned* code) {
    static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned first = (unsigned char)*s;
    int n = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
    *code = n > 1 ? first & (0x7fu >> n) : first;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | ((unsigned char)s[i] & 63u);
    }
    return *code >= least[n] && *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff) ? n : 0;
}

// Returns whether a character is invisible: control (C0, C1), writing direction, zero width, tag.
static bool kbi_invisible(unsigned code) {
    static const unsigned first_last[] = { 0,      0x1f,   0x7f,   0x9f,   0xad,   0xad,    0x61c,   0x61c,   0x180e,
                                           0x180e, 0x200b, 0x200f, 0x2028, 0x202e, 0x2060,  0x206f,  0xfeff,  0xfeff,
                                           0xfff9, 0xfffb, 0x1d173, 0x1d17a, 0xe0000, 0xe0fff };
    for (int i = 0; i < KBI_COUNT(first_last); i += 2)
        if (code >= first_last[i] && code <= first_last[i + 1]) return true;
    return false;
}
static bool kbi_starts_invisible(const char* s) {
    unsigned code;
    return *s && kbi_utf8(s, &code) && kbi_invisible(code);
}

static void kbi_put_quoted(kbi_text* t, const char* word) {
    bool plain = *word && !word[strcspn(word, " \t\r\n\\'\"$`*?[]{}()<>|&;#~!")];
    if (!plain) kbi_puts(t, "'");
    for (; *word; word++) kbi_putf(t, !plain && *word == '\'' ? "'\\''" : "%c", *word);
    if (!plain) kbi_puts(t, "'");
}

KBI_SLOW_END
// Appends text from outside the program so that no terminal, browser or CI log executes it. Escapes invisible
// characters and commands of CI logs ("::" that does not follow a name, "##"). Bytes that are not UTF-8 become
// U+FFFD. If json is set, escapes s for a JSON string; if not, tabs and line ends become spaces.
static void kbi_escape(kbi_text* t, const char* s, bool json) {
    const char first = json ? '"' : ':', second = json ? '\\' : ':';
    for (unsigned code; *s;) {
        const char* plain = s;
        while (*s >= 0x20 && *s < 0x7f && *s != first && *s != second && *s != '#') s++;
        kbi_put(t, plain, (size_t)(s - plain));
        if (!*s) break;
        int n = kbi_utf8(s, &code);
        char last = t->n ? t->s[t->n - 1] : ' ';
        bool in_name = isalnum((unsigned char)last) || strchr("_>)]}'", last);
        bool command = *s == s[1] && (*s == '#' || (*s == ':' && !in_name));
        if (!n)
            kbi_puts(t, "\xef\xbf\xbd");
        else if (json && (*s == '"' || *s == '\\'))
            kbi_putf(t, "\\%c", *s);
        else if (!command && !kbi_invisible(code))
            kbi_put(t, s, (size_t)n);
        else if (json && (*s == '\n' || *s == '\t'))
            kbi_puts(t, *s == '\n' ? "\\n" : "\\t");
        else if (json && code > 0xffff) // a surrogate pair of UTF-16
            kbi_putf(t, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
        else if (!json && code >= '\t' && code <= '\r')
            kbi_puts(t, " ");
        else
            kbi_putf(t, json || code > 255 ? "\\u%04x" : "\\x%02x", code);
        s += KBI_MAX(n, 1);
    }
}

static void kbi_clean(kbi_text* t, const char* s) { kbi_escape(t, s, false); }
static void kbi_json_text(kbi_text* t, const char* s) { // NULL: null
    kbi_puts(t, s ? "\"" : "null");
    if (s) kbi_escape(t, s, true), kbi_puts(t, "\"");
}
static void kbi_json_real(kbi_text* t, double x) {
    char number[40];
    kbi_puts(t, kbi_finite(x) ? kbi_number(x, number) : "null");
}
KBI_SLOW_BEGIN
static void kbi_print_text(FILE* f, kbi_text* text) {
    kbi_text line = KBI_BLANK;
    kbi_clean(&line, text->s);
    kbi_puts(&line, "\n");
    fwrite(line.s, 1, line.n, f);
    kbi_text_free(text);
    kbi_text_free(&line);
}
KBI_PRINTF(2, 3) static void kbi_print_line(FILE* f, const char* format, ...) {
    kbi_text text = KBI_BLANK;
    va_list list;
    va_start(list, format);
    kbi_vputf(&text, format, list);
    va_end(list);
    kbi_print_text(f, &text);
}

static bool kbi_is(const char* a, const char* b) { return a && b && strcmp(a, b) == 0; }
static bool kbi_same_text(const char* a, const char* b) { return kbi_is(a, b) || (!a && !b); }
// Compares names of n and m bytes, ignoring case, '-' and '_'.
static bool kbi_same_name_n(const char* a, size_t n, const char* b, size_t m) {
    for (const char *a_end = a + n, *b_end = b + m;; a++, b++) {
        while (a < a_end && (*a == '_' || *a == '-')) a++;
        while (b < b_end && (*b == '_' || *b == '-')) b++;
        if (a == a_end || b == b_end) return a == a_end && b == b_end;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
    }
}
static bool kbi_same_name(const char* a, const char* b) {
    return a && b && kbi_same_name_n(a, strlen(a), b, strlen(b));
}

// Returns the next word of a list; *n becomes the length of the word at p. "tile(64, 2),plain" has two words.
static const char* kbi_word(const char* p, size_t* n) {
    int depth = 0;
    for (*n = 0; p[*n] && (p[*n] != ',' || depth > 0); ++*n)
        depth += strchr("([{", p[*n]) ? 1 : strchr(")]}", p[*n]) ? -1 : 0;
    if (depth) *n = strcspn(p, ","); // if a bracket is not closed, any comma ends the word
    return p + *n + (p[*n] == ',');
}

static bool kbi_lists(const char* list, const char* name) {
    size_t n;
    if (kbi_same_name(list, name)) return true; // a name with a comma
    for (const char *p = list, *next; *p; p = next) {
        next = kbi_word(p, &n);
        if (kbi_same_name_n(p, n, name, strlen(name))) return true;
    }
    return false;
}

// Returns the edit distance, ignoring case; 64: a name is too long. Swapped neighbours are one edit (Damerau 1964).
static int kbi_distance(const char* a, const char* b) {
    int rows[3][64], n = (int)strlen(b), i = 1;
    if (n >= 64 || strlen(a) >= 64) return 64;
    for (int j = 0; j <= n; j++) rows[0][j] = j;
    for (; a[i - 1]; i++) {
        int *row = rows[i % 3], *previous = rows[(i - 1) % 3], *older = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = KBI_MIN(previous[j - 1] + (x != y), KBI_MIN(previous[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]))
                row[j] = KBI_MIN(row[j], older[j - 2] + 1);
        }
    }
    return rows[(i - 1) % 3][n];
}

typedef struct kbi_nearest {
    const char* wanted;
    const char* name;
    int distance;
} kbi_nearest;
// If name begins with best->wanted, or ends with _ and best->wanted (time_ms_p99 and p99), the distance is at most 1.
static void kbi_offer(kbi_nearest* best, const char* name) {
    int distance = name ? kbi_distance(best->wanted, name) : 64;
    size_t n = strlen(best->wanted), all = name ? strlen(name) : 0;
    if (n > 1 && all > n &&
        (kbi_same_name_n(best->wanted, n, name, n) ||
         (name[all - n - 1] == '_' && kbi_same_name_n(best->wanted, n, name + all - n, n))))
        distance = KBI_MIN(distance, 1);
    if (!best->name || distance < best->distance) best->name = name, best->distance = distance;
}

static uint64_t kbi_hash_bytes(uint64_t h, const char* s, size_t n) { // FNV-1a, 64 bits (Fowler, Noll, Vo)
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return h;
}
static uint64_t kbi_hash(uint64_t h, const char* s) { return kbi_hash_bytes(h, s, strlen(s)); }

typedef struct kbi_mapped {
    uint64_t key; // a hash or an address; 0: the slot is free
    intptr_t at;  // value of the key: an index or an address
} kbi_mapped;
typedef struct kbi_map { // hash table with linear probing
    kbi_mapped* slots;   // at most half of the slots are used
    size_t n, size;      // number of used slots; number of all slots, a power of 2
} kbi_map;
typedef kbi_map kbi_set;

// Returns the slot of a key, or a free slot for kbi_map_take. The slot is valid until the next kbi_map_find.
KBI_INLINE kbi_mapped* kbi_map_find(kbi_map* p, uint64_t key) {
    key += key == 0;
    if (2 * (p->n + 1) > p->size) {
        kbi_map larger = { NULL, 0, p->size ? 2 * p->size : 64 };
        size_t bytes = sizeof(kbi_mapped) * larger.size;
        larger.slots = (kbi_mapped*)memset(kbi_grow(NULL, bytes), 0, bytes);
        for (size_t i = 0; i < p->size; i++)
            if (p->slots[i].key) *kbi_map_find(&larger, p->slots[i].key) = p->slots[i], larger.n++;
        KBENCH_FREE(p->slots);
        *p = larger;
    }
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (p->size - 1); // Fibonacci hashing (Knuth)
    while (p->slots[at].key && p->slots[at].key != key) at = (at + 1) & (p->size - 1);
    return &p->slots[at];
}

KBI_INLINE void kbi_map_take(kbi_map* p, kbi_mapped* slot, uint64_t key, intptr_t at) {
    p->n += slot->key == 0;
    slot->key = key + (key == 0);
    slot->at = at;
}
static bool kbi_set_add(kbi_set* s, uint64_t key) {
    kbi_mapped* slot = kbi_map_find(s, key);
    bool added = !slot->key;
    kbi_map_take(s, slot, key, 0);
    return added;
}
static void kbi_set_free(kbi_set* s) {
    KBENCH_FREE(s->slots);
    memset(s, 0, sizeof *s);
}

// Writes a time like "41.23 us", with four digits, of which one to three are before the point.
static const char* kbi_show_time(double ms, char out[40]) {
    static const char* const units[] = { "s", "ms", "us", "ns" };
    char number[40];
    int u = 0;
    for (ms *= 1e-3; u < 3 && ms * (1 + 5e-5) < 1; u++) ms *= 1e3;
    snprintf(out, 40, "%.30s %s", kbi_digits(ms, 4, number), units[u]);
    return out;
}
// "1.5 s", "45 s", "3 min", "2.5 h"
static const char* kbi_show_span(double seconds, char out[40]) {
    double scale = seconds > 90 * 60 ? 3600 : seconds > 90 ? 60 : 1, x = seconds / scale;
    snprintf(out, 40, "%.*g %s", x < 100 ? 2 : 4, x, scale > 60 ? "h" : scale > 1 ? "min" : "s");
    return kbi_unlocalise(out), out;
}
static const char* kbi_show_bytes(double bytes, char out[40]) {
    char number[40];
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++) bytes /= 1024;
    snprintf(out, 40, "%.30s %.1s%s", kbi_digits(bytes, unit ? 3 : 1, number), &"BKMGT"[unit], unit ? "iB" : "");
    return out;
}
static const char* kbi_show_percent(double x, char out[40]) {
    char number[40];
    if (!kbi_finite(x)) return "-";
    snprintf(out, 40, "%.30s%%", x < 0.000995 ? "<0.1" : kbi_digits(100 * x, x < 0.1 ? 2 : 3, number));
    return out;
}
static const char* kbi_show(double x, int digits, char out[40]) {
    return kbi_finite(x) ? kbi_digits(x, digits, out) : "-";
}

KBI_INLINE void kbi_find(void* library, const char* name, void* function) {
    void* p = dlsym(library, name);
    memcpy(function, &p, sizeof p);
}

/*-----------------------------------------------------------------
  >>log       foundation: warnings and errors, one line each, on stderr.
-----------------------------------------------------------------*/

static struct kbi_process {
    const char* program; // program name, which begins each message; NULL: kbench
    bool quiet;          // --quiet: print errors only
    const char* usual;   // options of kb_default; NULL: none
    kb_entry* entries;
    int entry_count;
    const kb_entry* last_entry;
    kb_output* outputs;
    kb_instrument* instruments;
    int instrument_count;
    const char* own_device; // name of a backend that the program adds, for --device NAME; NULL: none
    const struct kbi_backend* own_backend;
} kbi_process;
#define KBI_EACH_OUTPUT(o) for (kb_output* o = kbi_process.outputs; o; o = o->next)
#define KBI_EACH_INSTRUMENT(i) for (kb_instrument* i = kbi_process.instruments; i; i = i->next)
static void kbi_say(const char* level, const char* format, va_list list) {
    kbi_text text = KBI_BLANK;
    kbi_putf(&text, "%s: %s", kbi_process.program ? kbi_process.program : "kbench", level);
    kbi_vputf(&text, format, list);
    fflush(stdout);
    kbi_print_text(stderr, &text);
    fflush(stderr);
}

// Prints an error message and returns false. A function that has called kbi_error returns false, too.
KBI_PRINTF(1, 2) static bool kbi_error(const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_say("error: ", format, list);
    va_end(list);
    return false;
}
KBI_PRINTF(1, 2) static void kbi_warn(const char* format, ...) {
    if (kbi_process.quiet) return;
    va_list list;
    va_start(list, format);
    kbi_say("", format, list);
    va_end(list);
}

/*-----------------------------------------------------------------
  >>files     foundation: reads files, replaces them atomically, or appends to them under a lock. Failures set errno.
-----------------------------------------------------------------*/

// Reads up to n bytes and returns their number; 0: end of the file; -1: error. If a pipe is empty, waits for data.
static ssize_t kbi_read_more(int file, void* to, size_t n) {
    for (;;) {
        ssize_t done = kbi_read_some(file, to, n);
        if (done >= 0) return done;
        if (errno == EAGAIN)
            kbi_readable(file, 1000);
        else if (errno != EINTR)
            return -1;
    }
}

// Reads exactly n bytes. Returns false with errno 0 if the file ends early.
static bool kbi_read_all(int file, void* to, size_t n) {
    ssize_t done = 1;
    for (char* p = (char*)to; n && done > 0; p += done) {
        done = kbi_read_more(file, p, n);
        n -= (size_t)KBI_MAX(done, 0);
    }
    if (done == 0) errno = 0;
    return !n;
}

static bool kbi_read_file(int file, kbi_text* out, size_t most) {
    char some[4096]; // small, because the stack of kbi_startup_read may be small
    ssize_t n = 1;
    while (n > 0 && most) {
        n = kbi_read_more(file, some, KBI_MIN(sizeof some, most));
        if (n > 0) kbi_put(out, some, (size_t)n), most -= (size_t)n;
    }
    return n >= 0;
}

static int kbi_open_input(const char* path, bool pipes) {
    struct stat about;
    int file = kbi_open_file(path, O_RDONLY);
    if (file < 0) return -1;
    bool known = fstat(file, &about) == 0;
    int why = !known ? errno : S_ISDIR(about.st_mode) ? EISDIR : ESPIPE;
    if (known && (S_ISREG(about.st_mode) || (pipes && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)))))
        return file;
    close(file);
    return errno = why, -1;
}
// Appends a regular file's text to out. Returns false if the file is empty or cannot be read.
KBI_INLINE bool kbi_file_text(const char* path, kbi_text* out) {
    int file = kbi_open_input(path, false);
    bool good = file >= 0 && kbi_read_file(file, out, SIZE_MAX);
    if (file >= 0) close(file);
    return good && out->n > 0;
}

static const char* kbi_why_not_open(int error) {
    return error == ENXIO    ? "no process reads this pipe"
           : error == ESPIPE ? "it is not a regular file"
           : error == EBUSY  ? "another process has locked it; wait until that process has ended"
                             : strerror(error);
}

// Copies the first line of a regular file without the line end, at most size - 1 bytes.
static bool kbi_first_line(const char* path, char* out, int size) {
    int file = kbi_open_input(path, false);
    ssize_t n = file < 0 ? -1 : kbi_read_more(file, out, (size_t)(size - 1));
    if (file >= 0) close(file);
    out[KBI_MAX(n, 0)] = 0;
    out[strcspn(out, "\r\n")] = 0;
    return n > 0;
}

typedef struct kbi_signature {
    const char *begin, *inside; // how a file begins, ignoring blanks; a text in the first `lines` lines of the file
    int lines;
} kbi_signature;
static const kbi_signature kbi_array_mark = { "[{\"name\":", "\"operation\":", 8 }; // --json
static const kbi_signature kbi_line_mark = { "{\"name\": \"", "\", \"operation\": ", 1 };

static bool kbi_text_marked(const char* s, const kbi_signature* mark) {
    const char *inside, *end = s;
    for (const char *p = s, *begin = mark->begin; *begin; p++) {
        if (*p == *begin)
            begin++;
        else if (!*p || !strchr(" \t\r\n", *p))
            return false;
    }
    for (int i = 0; i < mark->lines && end; i++) end = (end = strchr(end, '\n')) ? end + 1 : NULL;
    return (inside = strstr(s, mark->inside)) != NULL && (!end || inside < end);
}

// Returns whether an open file is empty or has this signature; false with errno 0: it is another kind of file. A
// file of lines needs only one record: other tools may have added lines, and the first record may be incomplete.
static bool kbi_file_ours(int file, const kbi_signature* mark) {
    enum { KBI_HEAD = 1 << 18 };
    kbi_text head = KBI_BLANK;
    kbi_put(&head, "", 0);
    bool good = lseek(file, 0, SEEK_SET) == 0 && kbi_read_file(file, &head, KBI_HEAD);
    int why = good ? 0 : errno;
    size_t blank = strspn(head.s, mark == &kbi_array_mark ? " \t\r\n[]" : " \t\r\n");
    bool ours = (blank == head.n && blank < KBI_HEAD) || kbi_text_marked(head.s, mark);
    if (mark == &kbi_line_mark && head.s[blank] != '[') {
        ours |= !strchr(head.s, '\n') && strncmp(head.s, mark->begin, KBI_MIN(head.n, strlen(mark->begin))) == 0;
        for (const char* p = head.s; !ours && (p = strchr(p, '\n')) != NULL;) ours = kbi_text_marked(++p, mark);
    }
    kbi_text_free(&head);
    return errno = why, good && ours;
}

static size_t kbi_folder_length(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

// Returns the absolute path, without symbolic links; the caller frees it.
static char* kbi_real_path(const char* path) {
    char *real = realpath(path, NULL), *folder = NULL;
    int n = (int)kbi_folder_length(path);
    kbi_text out = KBI_BLANK;
    if (!real) {
        kbi_putf(&out, "%.*s", n ? n : 1, n ? path : ".");
        folder = realpath(out.s, NULL);
        out.n = 0;
    }
    kbi_putf(&out, "%s", real ? real : folder ? folder : path);
    if (folder) kbi_putf(&out, "%s%s", folder[1] ? "/" : "", path + n);
    free(real), free(folder); // from the C library
    return out.s;
}

static bool kbi_same_file(const struct stat* a, const struct stat* b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Returns the text PATH.PID plus ending, which the caller frees. The file name of PATH is cut to 220 bytes.
static char* kbi_name_beside(const char* path, const char* ending) {
    kbi_text out = KBI_BLANK;
    size_t n = kbi_folder_length(path);
    kbi_putf(&out, "%.*s%.220s.%ld%s", (int)n, path, path + n, (long)getpid(), ending);
    return out.s;
}

// Writes n bytes, or fewer on an error, and returns their number. milliseconds: longest wait while a pipe is full.
static size_t kbi_write(int file, const char* s, size_t n, int milliseconds) {
    size_t done = 0;
    while (done < n) {
        ssize_t k = write(file, s + done, n - done);
        if (k > 0) done += (size_t)k;
        if (k > 0 || (k < 0 && errno == EINTR)) continue;
        if (k == 0) errno = ENOSPC;
        if (errno != EAGAIN || !kbi_poll(file, POLLOUT, milliseconds)) break;
    }
    return done;
}
static bool kbi_write_all(int file, const char* s, size_t n) { return kbi_write(file, s, n, -1) == n; }
// Writes the text `waiting` and removes the written part from it.
static bool kbi_flush(int file, kbi_text* waiting, int milliseconds) {
    size_t done = kbi_write(file, waiting->s, waiting->n, milliseconds);
    if (done) memmove(waiting->s, waiting->s + done, waiting->n - done), waiting->n -= done;
    return !waiting->n;
}

// Returns whether the data is on the disk; true also if the file, such as a pipe, has no disk.
static bool kbi_sync(int file) { return fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS; }

// Opens a character device or a pipe for writing. Waits up to 2 s for a reader of the pipe.
static int kbi_open_in_place(const char* path) {
    struct stat about;
    if (stat(path, &about) != 0) return -1;
    if (S_ISBLK(about.st_mode)) return errno = ESPIPE, -1;
    for (int i = 0;; i++) {
        int file = kbi_open_file(path, O_WRONLY);
        if (file >= 0 || errno != ENXIO || i == 20 || !S_ISFIFO(about.st_mode)) return file;
        kbi_readable(-1, 100);
    }
}

// Replaces a file atomically and keeps its permissions. *old describes the file; st_nlink 0: there was no file. On
// failure, the file is unchanged; errno ESTALE: another process has changed the file.
static bool kbi_replace(const char* path, const kbi_text* text, const struct stat* old) {
    struct stat now;
    char ending[40];
    size_t n = kbi_folder_length(path);
    snprintf(ending, sizeof ending, ".%ld.tmp", (long)time(NULL)); // two machines can use equal PIDs: adds the time
    char *name = kbi_name_beside(path, ending), first = name[n];
    name[n] = 0;
    int folder = kbi_open_file(name, O_RDONLY);
    name[n] = first;
    int file = kbi_open_file(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    bool good = file >= 0 && (!old->st_nlink || fchmod(file, old->st_mode & 0777u) == 0) &&
                kbi_write_all(file, text->s, text->n) && kbi_sync(file);
    // If two processes end together, the lock makes one wait until the other has compared and renamed its file.
    for (int i = 0; good && i < 100 && flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; i++)
        kbi_readable(-1, 20);
    bool exists = good && stat(path, &now) == 0, gone = good && !exists && errno == ENOENT;
    bool same = exists && old->st_nlink && kbi_same_file(&now, old) && now.st_size == old->st_size &&
                now.st_mtime == old->st_mtime;
    if (exists && !same) errno = ESTALE;
    good = (same || gone) && rename(name, path) == 0;
    int why = errno;
    if (file >= 0 && !good) unlink(name);
    if (file >= 0 && close(file) != 0 && good) good = false, why = errno;
    if (folder >= 0 && !kbi_sync(folder) && good) good = false, why = errno; // the new name must also reach the disk
    if (folder >= 0) close(folder);
    KBENCH_FREE(name);
    return errno = why, good;
}

// --- output files: replaced at the end, written in place (pipe, device, stdout), or appended to under a lock ---
typedef struct kbi_out {
    const char* option;
    char* path;                // absolute, without links
    const kbi_signature* mark; // kind of the file; kbi_line_mark: records are appended under a lock
    struct stat old;           // state of the file to replace; st_nlink 0: there is no file
    int file;                  // descriptor: device, pipe, file to append to, stdout (1); -1: a file is replaced
    kbi_text waiting;          // not written yet
    // only for kbi_line_mark
    kbi_text written;
    off_t end;        // size of the file after the last line of this process
    bool lockless;    // whether the file system has no locks
    bool unsafe;      // whether fsync failed after a write
    bool moved;
} kbi_out;
typedef kbi_out kbi_lines;
static void kbi_out_free(kbi_out* o) { // does not write `waiting` to the file
    if (o->file > 2) close(o->file);
    KBENCH_FREE(o->path);
    kbi_text_free(&o->waiting);
    kbi_text_free(&o->written);
    o->path = NULL;
    o->file = -1;
}

// Opens and locks the file at l->path, even if another process replaces the file meanwhile. The lock ends when this
// process closes any descriptor of the file. EBUSY: the file stayed locked for 10 s.
static int kbi_lines_lock(kbi_lines* l) {
    for (int waited_ms = 0;; waited_ms += 10) {
        struct flock lock;
        struct stat opened, now;
        int file = kbi_open_file(l->path, O_RDWR | O_APPEND);
        if (file < 0) return -1;
        memset(&lock, 0, sizeof lock);
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        bool locked = fcntl(file, F_SETLK, &lock) == 0, held = !locked && (errno == EACCES || errno == EAGAIN);
        if (!locked && !held && !l->lockless) {
            kbi_warn("--%s %s cannot be locked (%s): only one process at a time may write to it", l->option, l->path,
                     strerror(errno));
            l->lockless = true;
        }
        bool regular = fstat(file, &opened) == 0 && S_ISREG(opened.st_mode);
        if (!held && regular && stat(l->path, &now) == 0 && kbi_same_file(&opened, &now)) return errno = 0, file;
        close(file);
        if (!regular || waited_ms >= 10000) return errno = regular ? EBUSY : ESPIPE, -1;
        kbi_readable(-1, 10);
    }
}

// Opens an output file; the path "-" is stdout. append: the output is appended to a regular file, without a lock.
static bool kbi_out_open(kbi_out* o, const char* option, const char* path, const kbi_signature* mark, bool append) {
    memset(o, 0, sizeof *o);
    o->option = option;
    o->mark = mark;
    o->file = -1;
    if (!*path) return kbi_error("--%s needs the name of a file, and this name is empty", option), false;
    o->path = kbi_is(path, "-") ? kbi_keep_text(path) : kbi_real_path(path);
    if (kbi_is(path, "-")) return o->file = 1, true;
    bool exists = stat(o->path, &o->old) == 0, good = exists || errno == ENOENT, ours = true;
    bool lines = mark == &kbi_line_mark;
    bool in_place = exists && !S_ISREG(o->old.st_mode);
    if (good && (in_place || append)) {
        o->file = in_place ? kbi_open_in_place(o->path) : kbi_open_file(o->path, O_WRONLY | O_CREAT | O_APPEND);
        good = o->file >= 0;
    } else if (good) {
        int file = lines ? kbi_open_file(o->path, O_WRONLY | O_CREAT) : -1, why;
        if (file >= 0) close(file);
        if (lines ? file >= 0 : exists) file = lines ? kbi_lines_lock(o) : kbi_open_input(o->path, false);
        ours = file >= 0 ? kbi_file_ours(file, mark) : !exists && !lines;
        why = errno;
        if (file >= 0) close(file);
        char *name = o->path + kbi_folder_length(o->path), first = *name;
        *name = 0;
        errno = why;
        good = ours && (lines || access(o->path, W_OK | X_OK) == 0); // the folder must be writable
        *name = first;
    }
    if (!good && !ours && !errno)
        kbi_error("--%s %s: another program wrote this file, so it is not replaced; name another file",
                  option, path);
    else if (!good)
        kbi_error("cannot write --%s %s: %s", option, path, kbi_why_not_open(errno));
    if (!good) kbi_out_free(o);
    return good;
}

// Moves the output, with all text of this run, to a new file beside o->path. The caller leaves the reason in errno:
// EBUSY if the file was locked, another error if it was changed.
static bool kbi_out_move(kbi_out* o) {
    const char* reason =
        errno == EBUSY ? "is locked by another process" : "was changed by another process during this run";
    const char* ending = o->mark == &kbi_line_mark ? ".jsonl" : o->mark == &kbi_array_mark ? ".json" : "";
    char* beside = kbi_name_beside(o->path, ending);
    int file = kbi_open_file(beside, O_WRONLY | O_CREAT | O_NOFOLLOW);
    if (file < 0 || fstat(file, &o->old) != 0) return KBENCH_FREE(beside), false;
    close(file);
    kbi_error("--%s %s %s; what this run wrote is in %s", o->option, o->path, reason, beside);
    KBENCH_FREE(o->path);
    o->path = beside;
    if (o->waiting.n) kbi_put(&o->written, o->waiting.s, o->waiting.n);
    kbi_text_free(&o->waiting);
    o->waiting = o->written;
    memset(&o->written, 0, sizeof o->written);
    return o->moved = true;
}

// Replaces the old file, or writes a new file beside it if another process changed the old file. Returns false
// with errno 0 if a message was printed.
static bool kbi_out_end(kbi_out* o, int milliseconds) {
    int file = o->file;
    if (file >= 0) {
        if (!kbi_flush(file, &o->waiting, milliseconds) || !kbi_sync(file)) return false;
        return o->file = -1, file <= 2 || close(file) == 0;
    }
    if (kbi_replace(o->path, &o->waiting, &o->old)) return true;
    if (errno == ESTALE && kbi_out_move(o) && kbi_replace(o->path, &o->waiting, &o->old)) errno = 0;
    return false;
}

static bool kbi_lines_open(kbi_lines* l, const char* option, const char* path) {
    return kbi_out_open(l, option, path, &kbi_line_mark, false);
}

static bool kbi_lines_kept(const kbi_lines* l, int file) {
    kbi_text all = KBI_BLANK;
    bool good = lseek(file, 0, SEEK_SET) == 0 && kbi_read_file(file, &all, SIZE_MAX) && all.n;
    const char *line = good ? all.s : NULL, *missing = l->written.s;
    while (line && *missing) {
        size_t n = strcspn(missing, "\n") + 1;
        if (strncmp(line, missing, n) == 0) missing += n;
        line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    }
    kbi_text_free(&all);
    return !*missing;
}

// Ends an incomplete last line that a killed process left, then appends all waiting lines or none. After an error,
// the next call tries again to append the lines.
static bool kbi_lines_flush(kbi_lines* l, int milliseconds) {
    kbi_text all = KBI_BLANK;
    char last = 0;
    if (l->file >= 0) return kbi_flush(l->file, &l->waiting, milliseconds);
    if (!l->waiting.n) return !l->unsafe || (errno = EIO, false);
    int file = kbi_lines_lock(l);
    if (file < 0 && l->moved) return false;
    off_t end = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (file < 0 || (end < l->end && l->written.n && !l->moved && !kbi_lines_kept(l, file))) {
        if (file >= 0) close(file);
        return kbi_out_move(l) && kbi_lines_flush(l, milliseconds);
    }
    bool ended =
        end == 0 || (end > 0 && lseek(file, -1, SEEK_END) >= 0 && kbi_read_more(file, &last, 1) == 1 && last == '\n');
    if (!ended) kbi_puts(&all, "\n");
    kbi_put(&all, l->waiting.s, l->waiting.n);
    bool good = kbi_flush(file, &all, milliseconds);
    int why = errno;
    if (!good && (end < 0 || ftruncate(file, end) != 0)) why = EIO; // the next call ends this incomplete line
    if (good) {
        kbi_put(&l->written, l->waiting.s, l->waiting.n);
        l->waiting.n = 0;
        l->end = lseek(file, 0, SEEK_END);
        if (!kbi_sync(file)) l->unsafe = true, why = errno;
    }
    close(file);
    kbi_text_free(&all);
    return errno = why, good && !l->unsafe;
}

// Writes all waiting lines, then checks all lines in the file.
static bool kbi_lines_end(kbi_lines* l, int milliseconds) {
    if (l->file >= 0) return kbi_out_end(l, milliseconds);
    bool good = kbi_lines_flush(l, milliseconds);
    if (good && l->written.n && !l->moved) {
        int file = kbi_lines_lock(l);
        bool kept = file >= 0 && kbi_lines_kept(l, file);
        if (file >= 0) close(file);
        if (!kept) good = kbi_out_move(l) && kbi_lines_flush(l, milliseconds);
    }
    if (good && l->moved) errno = 0;
    return good && !l->moved;
}

/*-----------------------------------------------------------------
  >>instruments foundation: sanitizers, coverage and profilers that this process was built with.
-----------------------------------------------------------------*/

// Not every compiler has a macro for instrumented code, so kbench looks for a function of each instrument's runtime.
#define KBI_INSTRUMENTS(x) \
    x(__asan_init, (void), "ASan") x(__hwasan_init, (void), "HWASan") x(__tsan_init, (void), "TSan") \
    x(__msan_init, (void), "MSan") x(__ubsan_handle_add_overflow, (void*, void*, void*), "UBSan") \
    x(__lsan_init, (void), "LSan") x(__gcov_init, (void*), "gcov") x(llvm_gcov_init, (void*, void*), "gcov") \
    x(__llvm_profile_write_file, (void), "-fprofile-instr-generate") x(__gmon_start__, (void), "-pg")
#define KBI_X(symbol, parameters, name) KBI_EXTERN_C __attribute__((weak)) void symbol parameters;
KBI_INSTRUMENTS(KBI_X)
#undef KBI_X

// Returns a bit for each row of KBI_INSTRUMENTS; bit 0 is AddressSanitizer.
static unsigned kbi_instruments_here(void) {
    unsigned bits = 0;
#ifndef KBI_NO_INSTRUMENTS // defined by tests that run under a sanitizer
    unsigned bit = 1;
#define KBI_X(symbol, parameters, name) bits |= symbol ? bit : 0, bit *= 2;
    KBI_INSTRUMENTS(KBI_X)
#undef KBI_X
    if (bits & 15) bits &= ~48u; // clang's other sanitizers include UBSan and LSan, so these two are ignored
#endif
    return bits;
}

// Writes the names of the instruments in the mask `bits` to out: ", instrumented (ASan gcov)"; "" if the mask is 0.
static const char* kbi_show_instruments(unsigned bits, char* out, size_t size) {
#define KBI_X(symbol, parameters, name) name,
    static const char* const names[] = { KBI_INSTRUMENTS(KBI_X) };
#undef KBI_X
    size_t n = 0;
    *out = 0;
    for (int i = 0; i < KBI_COUNT(names) && n < size; i++)
        if (bits >> i & 1) n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : ", instrumented (", names[i]);
    if (n && n < size) snprintf(out + n, size - n, ")");
    return out;
}

/*-----------------------------------------------------------------
  >>names     foundation: names of dtypes and flags.
-----------------------------------------------------------------*/

static const struct {
    const char* name;
    unsigned char bytes; // per element
    signed char digits;  // precision of a float type in binary digits; 0: an integer type
    short least;         // smallest exponent of a normal float, as frexp returns it
} kbi_dtypes[] = { { "none", 0, 0, 0 },    { "f32", 4, 24, -125 },  { "f64", 8, 53, -1021 }, { "f16", 2, 11, -13 },
                   { "bf16", 2, 8, -125 }, { "i8", 1, 0, 0 },       { "u8", 1, 0, 0 },       { "i16", 2, 0, 0 },
                   { "u16", 2, 0, 0 },     { "i32", 4, 0, 0 },      { "u32", 4, 0, 0 },      { "i64", 8, 0, 0 },
                   { "u64", 8, 0, 0 },     { "tf32", 4, 11, -125 }, { "e4m3", 1, 4, -5 },    { "e5m2", 1, 3, -13 } };
KBI_STATIC_ASSERT(KBI_COUNT(kbi_dtypes) == KB_E5M2 + 1, "a row for each kb_dtype");
static size_t kbi_dtype_size(int dtype) { // returns bytes; 0 for an invalid code
    return dtype >= 0 && dtype < KBI_COUNT(kbi_dtypes) ? kbi_dtypes[dtype].bytes : 0;
}
size_t kb_dtype_size(kb_dtype dtype) { return kbi_dtype_size((int)dtype); }
const char* kb_dtype_name(kb_dtype dtype) {
    return kbi_dtypes[kbi_dtype_size((int)dtype) ? dtype : KB_NODTYPE].name;
}
kb_dtype kb_dtype_of(const char* name) {
    int i = KBI_COUNT(kbi_dtypes) - 1;
    while (i && !kbi_same_name(kbi_dtypes[i].name, name)) i--;
    return (kb_dtype)i;
}

static const struct {
    const char *name, *mark, *what, *why, *advice;
    bool error;
} kbi_flags[] = {
#define KBI_LEVEL_ERROR true
#define KBI_LEVEL_WARN false
#define KBI_X(name, level, mark, what, why, advice) { #name, mark, what, why, advice, KBI_LEVEL_##level },
    KB_FLAGS(KBI_X)
#undef KBI_X
};
KBI_STATIC_ASSERT(KB_FLAG_COUNT <= 64, "the mask of flags in a record has 64 bits");
const char* kb_flag_name(kb_flag flag) { return kbi_flags[flag].name; }
bool kb_flag_is_error(kb_flag flag) { return kbi_flags[flag].error; }
// Replaces the terms of C in a message or advice by those of another language. The result must stay valid; NULL: the
// text stays as it is.
static const char* (*kbi_rephrase)(const char* text);
#if defined(KBENCH_SHARED)
#if defined(__cplusplus)
extern "C"
#endif
    void
    kbi_set_rephrase(const char* (*rephrase)(const char* text)) {
    kbi_rephrase = rephrase;
}
#endif
// Some flags need other advice on a CPU than on a GPU. valgrind and sanitizers do not see the guards of KB_ALLOC.
static const char* kbi_flag_advice(kb_flag flag, bool gpu) {
    const char* advice =
        gpu                            ? kbi_flags[flag].advice
        : flag == KB_FLAG_OVERRUN      ? "with malloc for KB_ALLOC, valgrind or -fsanitize=address finds the write"
        : flag == KB_FLAG_CUDA_ERROR   ? "run the case with --no-isolate under a debugger"
        : flag == KB_FLAG_THROTTLED    ? "let the processor cool, or fix its clock at a sustainable rate"
        : flag == KB_FLAG_CLOCK_VARIES ? "fix the processor's clock, or try --thorough"
        : flag == KB_FLAG_SHARED_GPU   ? "end the other processes"
        : flag == KB_FLAG_NO_WORK      ? "call kb_keep(result) in the block: unused results are not computed"
                                       : kbi_flags[flag].advice;
    const char* other = kbi_rephrase ? kbi_rephrase(advice) : NULL;
    return other ? other : advice;
}
const char* kb_flag_advice(kb_flag flag) { return kbi_flag_advice(flag, KBI_CUDA); }

KBI_SLOW_END
/*-----------------------------------------------------------------
  >>clock     foundation: the host's monotonic clock, and the processor time of a thread, in ns.
-----------------------------------------------------------------*/

static int64_t kbi_clock_ns(int clock) {
    struct timespec t = { 0, 0 };
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static int64_t kbi_now(void) { return kbi_clock_ns(CLOCK_MONOTONIC); }

static double kbi_seconds_since(int64_t start_ns) { return (double)(kbi_now() - start_ns) * 1e-9; }

KBI_SLOW_BEGIN
/*-----------------------------------------------------------------
  >>cpus      foundation: the processors this process may use, their clock, and who else used them.
-----------------------------------------------------------------*/

// --- which processors this thread may run on; glibc hides its functions without _GNU_SOURCE ---
enum { KBI_CPUS = 8192, KBI_CPUS_IN = 8 * sizeof(unsigned long) };
typedef struct kbi_cpus { // set of processors, one bit each
    unsigned long words[KBI_CPUS / KBI_CPUS_IN];
} kbi_cpus;
static bool kbi_cpus_has(const kbi_cpus* c, int i) { return (c->words[i / KBI_CPUS_IN] >> i % KBI_CPUS_IN & 1) != 0; }
static bool kbi_cpus_allowed(kbi_cpus* c) {
    memset(c, 0, sizeof *c);
    return syscall(SYS_sched_getaffinity, 0, sizeof c->words, c->words) > 0;
}
// Pins this thread, and threads that it starts later, to processors.
static bool kbi_cpus_pin(const kbi_cpus* c) {
    return syscall(SYS_sched_setaffinity, 0, sizeof c->words, c->words) == 0;
}

static bool kbi_cpus_parse(const char* s, kbi_cpus* c) {
    memset(c, 0, sizeof *c);
    for (;; s++) {
        char* end;
        long from = isdigit((unsigned char)*s) ? strtol(s, &end, 10) : -1, to = from;
        if (from < 0) return false;
        if (*end == '-') {
            s = end + 1;
            to = isdigit((unsigned char)*s) ? strtol(s, &end, 10) : -1;
        }
        if (to < from || to >= KBI_CPUS) return false;
        for (long i = from; i <= to; i++) c->words[i / KBI_CPUS_IN] |= 1ul << i % KBI_CPUS_IN;
        if (!*end) return true;
        if (*end != ',') return false;
        s = end;
    }
}

// Writes a set of processors to out, as in "0,4-7". If out is too small, the text ends with "...".
static const char* kbi_cpus_show(const kbi_cpus* c, char* out, size_t size) {
    *out = 0;
    for (int i = 0, last; i < KBI_CPUS; i = last + 1) {
        size_t n = strlen(out);
        last = i;
        if (!kbi_cpus_has(c, i)) continue;
        while (last + 1 < KBI_CPUS && kbi_cpus_has(c, last + 1)) last++;
        char one[32];
        snprintf(one, sizeof one, last > i ? "%s%d-%d" : "%s%d", n ? "," : "", i, last);
        bool fits = n + strlen(one) + 5 <= size;
        snprintf(out + n, size - n, "%s", fits ? one : ",...");
        if (!fits) break;
    }
    return out;
}

static int kbi_cpu_now(void) {
    unsigned cpu = 0;
    return syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 ? (int)cpu : 0;
}

// --- clock of the processors, from cpufreq in folder root; virtual machines usually have none ---
static const char kbi_cpu_root[] = "/sys/devices/system/cpu";

static bool kbi_line_below(const char* root, const char* name, char* out, int size) {
    char path[512];
    snprintf(path, sizeof path, "%.400s/%s", root, name);
    return kbi_first_line(path, out, size);
}
static bool kbi_cpu_says(const char* root, int cpu, const char* key, char* out, int size) {
    char name[80];
    snprintf(name, sizeof name, "cpu%d/cpufreq/%s", cpu, key);
    return kbi_line_below(root, name, out, size) && *out;
}
static double kbi_cpu_mhz(const char* root, int cpu) { // NaN: unknown
    char line[64];
    double khz = kbi_cpu_says(root, cpu, "scaling_cur_freq", line, (int)sizeof line) ? strtod(line, NULL) : 0;
    return khz > 0 ? khz * 1e-3 : (double)NAN;
}

// Returns 1 if the processor clock may exceed its nominal rate, 0 if not, -1 if unknown.
static int kbi_cpu_boost(const char* root) {
    char line[64];
    if (kbi_line_below(root, "intel_pstate/no_turbo", line, (int)sizeof line)) return *line == '0';
    return kbi_line_below(root, "cpufreq/boost", line, (int)sizeof line) ? *line == '1' : -1;
}

// --- interference from other threads and machines, as the Linux kernel counts it ---
typedef struct kbi_turn {
    int64_t ran, waits; // ns of processor time; how often this thread gave up the processor, -1: unknown
} kbi_turn;
static kbi_turn kbi_turn_now(void) {
    struct rusage used;
    const int thread = 1; // RUSAGE_THREAD, which needs _GNU_SOURCE
    kbi_turn t = { 0, getrusage(thread, &used) == 0 ? used.ru_nvcsw : -1 };
    t.ran = kbi_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return t;
}

typedef struct kbi_load {
    int64_t at, switches; // time in ns; number of preemptions of this process, KB_NONE: unknown
    double waited;        // ns that this thread was ready but had no processor; NaN: unknown
    double busy, stolen;  // ticks in which processors were busy; those of them that the hypervisor took; NaN: unknown
} kbi_load;
static kbi_load kbi_load_now(const char* root) { // root: /proc
    char line[512];
    struct rusage used;
    const int process = 0; // RUSAGE_SELF
    kbi_load l = { kbi_now(), KB_NONE, NAN, NAN, NAN };
    double x[6], ran, waited; // x: ticks of user, nice, system, irq, softirq, steal
    if (getrusage(process, &used) == 0) l.switches = used.ru_nivcsw;
    if (kbi_line_below(root, "thread-self/schedstat", line, (int)sizeof line) &&
        sscanf(line, "%lf %lf", &ran, &waited) == 2)
        l.waited = waited;
    if (kbi_line_below(root, "stat", line, (int)sizeof line) &&
        sscanf(line, "cpu %lf %lf %lf %*f %*f %lf %lf %lf", x, x + 1, x + 2, x + 3, x + 4, x + 5) == 6) {
        l.busy = x[0] + x[1] + x[2] + x[3] + x[4] + x[5];
        l.stolen = x[5];
    }
    return l;
}

KBI_SLOW_END
/*-----------------------------------------------------------------
  >>random    foundation: reproducible fills: an element depends on seed, tensor and index alone.
-----------------------------------------------------------------*/

// kb_fill uses Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): key and counter give a block of 4 words. The key is
// the seed (low, high), the counter (block low, block high, tensor, purpose). Element i uses word i mod 4 of block
// i / 4, with purpose 0; purpose 1 gives the high halves of uniform 64-bit integers. From its word w and a normal
// deviate z, the value of element i is:
//   kind         floats                                integers
//   KB_ZERO      0                                     0
//   KB_NORMAL    z, a float                            8 z rounded, halves away from 0, clamped to the type
//   KB_UNIFORM   (w >> 8) / 2^24, in [0,1)             w truncated; 64-bit: w | (word under purpose 1) << 32
//   KB_IOTA      i, nearest (f16: inf from 65520 on;   i, wrapped
//                e4m3: 448 from there on, e5m2: 57344)
// A float is rounded to f32 first (except KB_IOTA in f64), then to its type, both to nearest even. Host and GPU
// give the same bits. If a compiler contracts a * b + c to an FMA, a normal deviate can change by one ulp.

KBI_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "kbench.h runs on little-endian machines");
static uint32_t kbi_float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static float kbi_bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

// Rounds a float to nearest even, to a format with `fraction` fraction bits: 10 is binary16 (IEEE 754), 3 is e4m3, 2
// is e5m2 (OCP). NaN stays NaN. Overflow gives infinity in binary16, the largest finite value in e4m3 and e5m2.
static uint32_t kbi_f32_to_small(float f, uint32_t fraction) {
    bool half = fraction == 10u;
    uint32_t u = kbi_float_bits(f), sign = u >> 31 << (half ? 15 : 7), a = u & 0x7fffffffu, e = a >> 23;
    uint32_t least = fraction == 3u ? 121u : 113u; // biased f32 exponent of the smallest normal number
    uint32_t most = half ? 0x7c00u : fraction == 3u ? 0x7eu : 0x7bu, shift = 23u - fraction;
    uint32_t r = e < least ? (a & 0x7fffffu) | 0x800000u : a - ((least - 1u) << 23);
    if (a > 0x7f800000u) return sign | (half ? 0x7e00u | (a >> 13 & 0x1ffu) : 0x7fu);
    if (e < least) shift += least - e;
    if (shift > 24u) return sign; // |f| is below half of the smallest subnormal number
    r = (r + (1u << (shift - 1u)) - 1u + ((r >> shift) & 1u)) >> shift;
    return sign | KBI_MIN(r, most);
}

// Widens binary16 (fraction 10) or e4m3 (fraction 3); exact.
static float kbi_small_to_f32(uint32_t small, uint32_t fraction) {
    bool half = fraction == 10u;
    uint32_t magnitude = small & (half ? 0x7fffu : 0x7fu), bits = magnitude << (23u - fraction);
    float value = kbi_bits_float(bits + ((half ? 112u : 120u) << 23));
    if (magnitude < 1u << fraction) value = (float)magnitude * (half ? 5.9604644775390625e-8f : 0.001953125f);
    if (magnitude >= (half ? 0x7c00u : 0x7fu))
        value = kbi_bits_float(0x7f800000u | (bits & (half ? 0x7fffffu : 0x400000u)));
    return small == magnitude ? value : -value;
}

// Rounds a float to nearest even, to bfloat16, which is the upper half of a float. NaN becomes a quiet NaN.
static uint16_t kbi_f32_to_bf16(float f) {
    uint32_t u = kbi_float_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// Returns element i of an array as a double. 64-bit integers beyond 2^53 are rounded. The array may be unaligned.
static double kbi_load_double(const void* p, int64_t i, int dtype) {
    size_t size = kbi_dtype_size(dtype);
    uint64_t bits = 0;
    double d;
    memcpy(&bits, (const unsigned char*)p + i * (int64_t)size, size);
    switch (dtype) {
    case KB_F32:
    case KB_TF32: return kbi_bits_float((uint32_t)bits);
    case KB_F64: memcpy(&d, &bits, 8); return d;
    case KB_E4M3: return kbi_small_to_f32((uint32_t)bits, 3);
    case KB_E5M2: return kbi_small_to_f32((uint32_t)bits << 8, 10); // e5m2 is the upper half of binary16
    case KB_F16: return kbi_small_to_f32((uint32_t)bits, 10);
    case KB_BF16: return kbi_bits_float((uint32_t)bits << 16);
    case KB_I8: return (signed char)bits;
    case KB_I16: return (int16_t)bits;
    case KB_I32: return (int32_t)bits;
    case KB_I64: return (double)(int64_t)bits;
    default: return (double)bits;
    }
}

// Ten rounds of (c0,c1,c2,c3) -> (hi(B c2)^c1^k0, lo(B c2), hi(A c0)^c3^k1, lo(A c0)), constants of table 2.
static void kbi_philox(uint32_t ctr[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = ctr[0], c1 = ctr[1], c2 = ctr[2], c3 = ctr[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0, c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1, c3 = (uint32_t)a;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

// Writes a random permutation of 0 to n - 1 (Fisher and Yates), which depends only on seed, purpose and number.
static void kbi_shuffle(int* order, int n, uint64_t seed, uint32_t purpose, uint32_t number) {
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        uint32_t counter[4] = { (uint32_t)i, number, 0, purpose }, word[4];
        uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
        kbi_philox(counter, key, word);
        int j = (int)(word[0] % (uint32_t)(i + 1)), last = order[i];
        order[i] = order[j], order[j] = last;
    }
}

// Returns the upper 24 bits of word, divided by 2^24, which float and double represent exactly.
static double kbi_random_uniform(uint32_t word) { return (double)(int32_t)(word >> 8) * 5.9604644775390625e-8; }
static double kbi_polynomial(const double* c, int n, double x) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum = sum * x + c[i];
    return sum;
}

// -ln(m / 2^24) for m = 1 .. 2^24: m = f 2^e with f in [sqrt(1/2), sqrt(2)), s = (f-1)/(f+1), ln f = 2 atanh s.
// The series s + s^3/3 + ... + s^15/15 has a relative error below 2^-44.
static double kbi_minus_log(uint32_t m) {
    static const double series[] = { 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0 };
    double f = (double)(int32_t)m, s;
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits += (uint64_t)(0x3ff00000 - 0x3fe6a09e) << 32; // 0x3fe6a09e: the upper half of sqrt(1/2)
    int32_t e = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) + ((uint64_t)0x3fe6a09e << 32);
    memcpy(&f, &bits, sizeof f);
    s = (f - 1.0) / (f + 1.0);
    return (double)(24 - e) * 0.69314718055994530942 - 2.0 * s * kbi_polynomial(series, KBI_COUNT(series), s * s);
}

// Two N(0,1) deviates from two words (Box and Muller 1958): r = sqrt(-2 ln u1), z = (r cos 2 pi u2, r sin 2 pi u2),
// rounded to float once. u1 is in (0,1]. The turn u2 = k / 2^24 is split exactly into quarter turns and a remainder
// of at most 1/8 turn. The Taylor series for sine and cosine of this remainder have errors below 2^-40.
static void kbi_random_normal(uint32_t word0, uint32_t word1, float z[2]) {
    static const double sine[] = { 1 / 6227020800., -1 / 39916800., 1 / 362880., -1 / 5040., 1 / 120., -1 / 6. };
    static const double cosine[] = { 1 / 479001600., -1 / 3628800., 1 / 40320., -1 / 720., 1 / 24., -0.5, 1 };
    double r = sqrt(2.0 * kbi_minus_log((word0 >> 8) + 1u));
    uint32_t k = word1 >> 8, quarter = (k + 0x200000u) >> 22;
    double x = (double)((int32_t)k - (int32_t)(quarter << 22)) * 3.7450702829238413e-07, q = x * x; // 2 pi / 2^24
    double s = kbi_polynomial(sine, KBI_COUNT(sine), q) * q * x + x;
    double c = kbi_polynomial(cosine, KBI_COUNT(cosine), q);
    // a quarter turn takes (c, s) to (-s, c)
    z[0] = (float)(r * ((quarter & 1u) ? s : c));
    z[1] = (float)(r * ((quarter & 1u) ? c : s));
    if ((quarter + 1u) & 2u) z[0] = -z[0];
    if (quarter & 2u) z[1] = -z[1];
}

// Returns the bit pattern of an element, in the low bits. value: the element or, for integers, the normal deviate.
static uint64_t kbi_value_bits(double value, int dtype) {
    uint64_t u;
    double t;
    switch (dtype) {
    case KB_F32:
    case KB_TF32: return kbi_float_bits((float)value);
    case KB_F64: memcpy(&u, &value, sizeof u); return u;
    case KB_E4M3: return kbi_f32_to_small((float)value, 3);
    case KB_E5M2: return kbi_f32_to_small((float)value, 2);
    case KB_F16: return kbi_f32_to_small((float)value, 10);
    case KB_BF16: return kbi_f32_to_bf16((float)value);
    default: break;
    }
    t = value * 8.0; // |t| < 48 because u1 >= 2^-24: only unsigned types need a clamp, at 0
    t = t < 0.0 ? t - 0.5 : t + 0.5;
    if (t < 0.0 && (dtype == KB_U8 || dtype == KB_U16 || dtype == KB_U32 || dtype == KB_U64)) t = 0.0;
    return (uint64_t)(int64_t)t;
}

static void kbi_fill_block(uint64_t bits[4], uint64_t block, int dtype, int kind, uint64_t seed, uint32_t tensor) {
    bool is_float = dtype <= KB_BF16 || dtype >= KB_TF32;
    uint32_t ctr[4] = { (uint32_t)block, (uint32_t)(block >> 32), tensor, 0 }, w[4] = { 0, 0, 0, 0 };
    uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) }, high[4] = { 0, 0, 0, 0 };
    float z[4] = { 0, 0, 0, 0 };
    if (kind == KB_NORMAL || kind == KB_UNIFORM) kbi_philox(ctr, key, w);
    if (kind == KB_NORMAL) kbi_random_normal(w[0], w[1], z), kbi_random_normal(w[2], w[3], z + 2);
    ctr[3] = 1;
    if (kind == KB_UNIFORM && (dtype == KB_I64 || dtype == KB_U64)) kbi_philox(ctr, key, high);
    for (int j = 0; j < 4; j++) {
        uint64_t i = block * 4 + (uint64_t)j, whole = kind == KB_UNIFORM ? w[j] | (uint64_t)high[j] << 32 : i;
        double x = kind == KB_NORMAL ? z[j] : kind == KB_UNIFORM ? kbi_random_uniform(w[j]) : (double)(int64_t)i;
        bits[j] = is_float || kind == KB_NORMAL ? kbi_value_bits(x, dtype) : whole;
    }
}

// Writes n elements of a tensor, from element `first` on, to p. The address p may be unaligned.
static void kbi_fill_host(void* p, int64_t first, int64_t n, int dtype, int kind, uint64_t seed, uint32_t tensor) {
    unsigned char* out = (unsigned char*)p;
    size_t size = kbi_dtype_size(dtype);
    uint64_t bits[4];
    if (kind == KB_ZERO && n > 0) memset(p, 0, (size_t)n * size), n = 0;
    for (int64_t i = first; i < first + n; i++, out += size) {
        if (i == first || i % 4 == 0) kbi_fill_block(bits, (uint64_t)i / 4, dtype, kind, seed, tensor);
        memcpy(out, &bits[i % 4], size);
    }
}

/*-----------------------------------------------------------------
  >>stats     foundation: summaries of a sample and its interval. Pure functions; no globals.
-----------------------------------------------------------------*/

#define KBI_STATS_LIMIT 1e150  // largest magnitude of a value: its square and sums of squares stay finite
#define KBI_STATS_BLOCKS 10    // number of consecutive blocks of a sample; block medians are nearly independent
#define KBI_STATS_MIN 30       // smallest sample size that gives blocks of 3 values
#define KBI_STATS_P99_MIN 300  // smallest sample size that gives a p99
#define KBI_STATS_ENOUGH 6     // smallest (effective) sample size with a 95 % interval by the sign test
#define KBI_STATS_NOTABLE 0.01 // smallest drift, or distance of modes, that is reported, divided by the median

// Returns whether v is finite and |v| <= KBI_STATS_LIMIT. Compares bits, because -ffast-math assumes no NaN.
static int kbi_usable(double v) {
    const double limit = KBI_STATS_LIMIT;
    uint64_t bits, bound;
    memcpy(&bits, &v, sizeof bits);
    memcpy(&bound, &limit, sizeof bound);
    return (bits & (UINT64_MAX >> 1)) <= bound;
}

// Allocates m doubles, which the caller frees. Returns NULL if n is 0 or one of the n values of x is not usable.
static double* kbi_stats_alloc(const double* x, int64_t n, int64_t m) {
    for (int64_t i = 0; x && i < n; i++)
        if (!kbi_usable(x[i])) return NULL;
    return x && n > 0 ? (double*)kbi_grow(NULL, (size_t)m * sizeof(double)) : NULL;
}

// Returns a / b; 0 for 0 / 0; NAN for other divisions by 0 and if |a / b| would exceed 1e150.
static double kbi_ratio(double a, double b) {
    if (a == 0.0 && b == 0.0) return 0.0;
    return b == 0.0 || fabs(a) > fabs(b) * 1e150 ? (double)NAN : a / b;
}

static int kbi_compare_doubles(const void* a, const void* b) {
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}
static void kbi_sort(double* a, int64_t n) {
    if (n > 1) qsort(a, (size_t)n, sizeof *a, kbi_compare_doubles);
}

// Quickselect (Hoare 1961): moves the value of rank k (from 0) to a[k], smaller values before a[k] and larger ones
// after it. Both scans stop at values equal to the pivot, so that equal values split evenly.
static double kbi_select(double* a, int64_t n, int64_t k) {
    for (int64_t low = 0, high = n - 1; low < high;) {
        const double pivot = a[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i > j) break;
            const double swapped = a[i];
            a[i++] = a[j];
            a[j--] = swapped;
        }
        if (k > j) low = i;
        if (k < i) high = j;
    }
    return a[k];
}

// Returns quantile q in [0, 1] of n >= 1 values, type 7 of Hyndman and Fan 1996: linear, at h = (n - 1) q.
static double kbi_quantile(const double* sorted, int64_t n, double q) {
    const double h = (double)(n - 1) * q;
    const int64_t i = (int64_t)h;
    return i >= n - 1 ? sorted[n - 1] : sorted[i] + (h - (double)i) * (sorted[i + 1] - sorted[i]);
}

static double kbi_median_sorted(const double* sorted, int64_t n) {
    return n < 1 ? (double)NAN : 0.5 * sorted[(n - 1) / 2] + 0.5 * sorted[n / 2];
}

// Returns the median of n finite values in O(n) time; NAN if there are none. scratch: n values, or x itself.
static double kbi_median_of(const double* x, int64_t n, double* scratch) {
    if (n < 1) return NAN;
    memmove(scratch, x, (size_t)n * sizeof(double));
    const double upper = kbi_select(scratch, n, n / 2);
    if (n % 2 == 1) return upper;
    double lower = scratch[0];
    for (int64_t i = 1; i < n / 2; i++) lower = scratch[i] > lower ? scratch[i] : lower;
    return 0.5 * lower + 0.5 * upper;
}

static double kbi_mad_of(const double* x, int64_t n, double centre, double* scratch) {
    for (int64_t i = 0; i < n; i++) scratch[i] = fabs(x[i] - centre);
    return kbi_median_of(scratch, n, scratch);
}

// The interval of the median by the sign test goes from rank k to rank n + 1 - k (Thompson 1936; Le Boudec 2010).
// Returns k, the largest rank with 1 - 2 P(B < k) >= 1 - alpha, B ~ Binomial(n, 1/2); 0: there is none. The sums
// use P(B = j) divided by its maximum, so that nothing underflows: k is exact for every n and alpha >= 1e-250.
static int64_t kbi_sign_rank(int64_t n, double alpha) {
    if (n < 1 || !(alpha > 0.0 && alpha < 1.0)) return 0;
    int64_t j = n / 2;
    double weight = 1.0, lower = 0.0;
    for (; j > 0 && weight > 1e-290; j--) {
        weight *= (double)j / (double)(n - j + 1);
        lower += weight;
    }
    const double total = n % 2 == 1 ? 2.0 * (1.0 + lower) : 1.0 + 2.0 * lower;
    const double limit = 0.5 * alpha * total * (1.0 + 1e-12); // accepts a tail that exceeds alpha/2 only by rounding
    int64_t rank = 0;
    for (double tail = weight; tail <= limit; tail += weight) {
        weight *= (double)(n - j) / (double)(j + 1);
        rank = ++j;
    }
    return rank;
}

// Returns the index after the last value of block b, one of 10 consecutive blocks of nearly equal size.
static int64_t kbi_block_end(int b, int64_t n) {
    return n / KBI_STATS_BLOCKS * (b + 1) + n % KBI_STATS_BLOCKS * (b + 1) / KBI_STATS_BLOCKS;
}

static void kbi_block_medians(const double* x, int64_t n, double* scratch, double* blocks) {
    for (int64_t b = 0, begin = 0, end; b < KBI_STATS_BLOCKS; b++, begin = end) {
        end = kbi_block_end((int)b, n);
        blocks[b] = kbi_median_of(x + begin, end - begin, scratch);
    }
}

// Returns the factor (1 + r) / (1 - r), at least 1, by which autocorrelation r at lag 1 inflates the variance of a
// mean (exact for AR(1)). Corrects the bias of r, about -(1 + 4 r) / n (Marriott and Pope 1954; Kendall 1954).
static double kbi_inflation(double r, int64_t n) {
    r += (1.0 + 4.0 * r) / (double)n;
    r = r < 0.99 ? r : 0.99;
    return r > 0.0 ? (1.0 + r) / (1.0 - r) : 1.0;
}

// Returns the effective sample size of n values for their median: n divided by the larger of two variance inflations.
// Inflation A comes from the lag-1 autocorrelation of the values. Inflation B also covers slow drift hidden by noise:
// it is the variance of the sums of 10 blocks, divided by the variance for independent values, times the inflation
// from the lag-1 autocorrelation of the sums. Values are clipped at 3 MAD from the median (Huber 1964), so that
// outliers do not hide autocorrelation; if the MAD is 0, signs replace deviations. For less than 30 values, only
// inflation A is used, and only if the autocorrelation is significant (one-sided 5 %). *spread receives the standard
// deviation of the clipped values. scratch has room for n values.
static double kbi_effective(const double* x, int64_t n, double median, double* scratch, double* spread) {
    double sum = 0.0, squares = 0.0, products = 0.0, previous = 0.0, block[KBI_STATS_BLOCKS];
    const double clip = 3.0 * kbi_mad_of(x, n, median, scratch);
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - median, sign = (double)((d > 0.0) - (d < 0.0));
        scratch[i] = fabs(d) < clip ? d / clip : sign;
        sum += scratch[i];
    }
    int64_t i = 0;
    for (int b = 0; b < KBI_STATS_BLOCKS; b++) {
        block[b] = 0.0;
        for (const int64_t end = kbi_block_end(b, n); i < end; i++) {
            const double d = scratch[i] - sum / (double)n;
            squares += d * d;
            products += d * previous;
            block[b] += previous = d;
        }
    }
    *spread = n > 1 ? clip * sqrt(squares / (double)(n - 1)) : 0.0;
    if (!(squares > 0.0)) return (double)n;
    const double lag1 = products / squares;
    if (n < KBI_STATS_MIN && lag1 + 1.0 / (double)n < 1.645 / sqrt((double)n)) return (double)n;
    double inflation = kbi_inflation(lag1, n), block_squares = 0.0, block_products = 0.0;
    for (int b = 0; b < KBI_STATS_BLOCKS; b++) {
        block_squares += block[b] * block[b];
        block_products += b > 0 ? block[b] * block[b - 1] : 0.0;
    }
    if (n >= KBI_STATS_MIN && block_squares > 0.0) {
        const double slow = block_squares / squares * KBI_STATS_BLOCKS / (KBI_STATS_BLOCKS - 1) *
                            kbi_inflation(block_products / block_squares, KBI_STATS_BLOCKS);
        inflation = slow > inflation ? slow : inflation;
    }
    return (double)n / inflation;
}

// Computes a 95 % interval of the median of n values that may be autocorrelated, and returns their effective sample
// size m. Rank k of the sign test for m values becomes rank (k - 1/2) n / m + 1/2 of the n values. If n < 6, m and
// the interval are NAN. If m < 6, the interval is unreliable: it is computed for m = 6, and each end is at least
// t(0.975; 5 df) standard errors from the median. This standard error uses the variance s^2 / (1 - 1/m), because s^2
// misses drift over times longer than the sample.
static double kbi_median_interval(const double* x, int64_t n, double median, double* scratch, double* lo,
                                  double* hi) {
    double spread, reach = 0.0; // reach: least distance of both ends from the median
    *lo = *hi = NAN;
    if (n < KBI_STATS_ENOUGH) return NAN;
    const double effective = kbi_effective(x, n, median, scratch, &spread);
    const int64_t m = effective > KBI_STATS_ENOUGH ? (int64_t)effective : KBI_STATS_ENOUGH;
    const int64_t rank = (int64_t)(((double)kbi_sign_rank(m, 0.05) - 0.5) * (double)n / (double)m + 0.5);
    memmove(scratch, x, (size_t)n * sizeof(double));
    *lo = kbi_select(scratch, n, rank - 1);
    *hi = kbi_select(scratch, n, n - rank);
    if (effective < KBI_STATS_ENOUGH) {
        const double remaining = 1.0 - 1.0 / effective;
        reach = 2.571 * spread * sqrt(1.0 / effective / (remaining > 0.2 ? remaining : 0.2));
    }
    *lo = median - reach < *lo ? median - reach : *lo;
    *hi = median + reach > *hi ? median + reach : *hi;
    return effective;
}

static double kbi_half_width(double lo, double hi, double median) {
    return kbi_usable(lo) && kbi_usable(hi) ? kbi_ratio(0.5 * (hi - lo), fabs(median)) : (double)NAN;
}

// Returns kb_stats.precision in O(n), because it runs between samples, and a GPU that waits long lowers its clock.
static double kbi_precision_of(const double* x, int64_t n) {
    double lo, hi, *scratch = kbi_stats_alloc(x, n, n);
    if (!scratch) return NAN;
    const double median = kbi_median_of(x, n, scratch);
    kbi_median_interval(x, n, median, scratch, &lo, &hi);
    KBENCH_FREE(scratch);
    return kbi_half_width(lo, hi, median);
}

// mean = c + sum(x - c)/n, with the median c, is exact if all values are equal. The variance (sum d^2 - (sum d)^2/n)
// / (n - 1) has the correction of Chan, Golub and LeVeque 1983. lag1 = sum d[t] d[t+1] / sum d^2 (Box and Jenkins).
static void kbi_moments(const double* x, int64_t n, kb_stats* s) {
    double sum = 0.0, rest = 0.0, squares = 0.0, products = 0.0, previous = 0.0;
    for (int64_t i = 0; i < n; i++) sum += x[i] - s->median;
    s->mean = s->median + sum / (double)n;
    s->mean = s->mean < s->min ? s->min : s->mean > s->max ? s->max : s->mean;
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - s->mean;
        rest += d;
        squares += d * d;
        products += d * previous;
        previous = d;
    }
    if (n < 2) return;
    const double variance = (squares - rest * rest / (double)n) / (double)(n - 1);
    s->std = s->min == s->max || !(variance > 0.0) ? 0.0 : sqrt(variance);
    s->cv = kbi_ratio(s->std, s->mean);
    if (n >= 3 && s->min < s->max && squares > 0.0) s->lag1 = products / squares;
}

// Returns the tick of the timer: the smallest difference of distinct values; 0 if it exceeds a tenth of the median.
// If values are continuous, the tick is negligible. *distinct receives the number of distinct values.
static double kbi_step_of(const double* sorted, int64_t n, double median, int64_t* distinct) {
    double step = 0.0;
    *distinct = n > 0;
    for (int64_t i = 1; i < n; i++) {
        const double gap = sorted[i] - sorted[i - 1];
        *distinct += gap > 0.0;
        if (gap > 0.0 && (step == 0.0 || gap < step)) step = gap;
    }
    return step <= 0.1 * fabs(median) ? step : 0.0;
}

// Mild outliers lie over 1.5, severe ones over 3 interquartile ranges outside the quartiles (Tukey 1977). An
// interquartile range counts as at least one tick: if most values are equal, a value one tick away is no outlier.
static void kbi_outliers(const double* sorted, double step, kb_stats* s) {
    const double range = s->p75 - s->p25 > step ? s->p75 - s->p25 : step;
    int64_t mild = 0, severe = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double out = sorted[i] < s->p25 ? s->p25 - sorted[i] : sorted[i] - s->p75;
        severe += out > 3.0 * range;
        mild += out > 1.5 * range && out <= 3.0 * range;
    }
    s->outliers_mild = (double)mild / (double)s->n;
    s->outliers_severe = (double)severe / (double)s->n;
}

// Returns whether there are two modes: the widest gap with at least 10 % of the values on each side exceeds 5 MAD and
// 1 % of the median. The gap may contain 2 % of the values, so that one value between the modes does not halve the
// gap. The MAD is the larger MAD of the two sides, and at least one tick, so that neighbouring ticks are not modes.
static int kbi_bimodal(const double* sorted, int64_t n, double median, double step, double* scratch) {
    if (n < KBI_STATS_MIN) return 0;
    const int64_t side = (n + 9) / 10, stretch = 1 + n / 50;
    int64_t split = -1;
    double widest = KBI_STATS_NOTABLE * fabs(median);
    for (int64_t i = side - 1; i + stretch <= n - side; i++) {
        const double width = sorted[i + stretch] - sorted[i];
        if (width > widest) widest = width, split = i;
    }
    if (split < 0) return 0;
    const double* upper = sorted + split + stretch;
    const int64_t left = split + 1, right = n - split - stretch;
    const double below = kbi_mad_of(sorted, left, kbi_median_sorted(sorted, left), scratch);
    const double above = kbi_mad_of(upper, right, kbi_median_sorted(upper, right), scratch);
    const double mad = below > above ? below : above;
    return widest > 5.0 * (mad > step ? mad : step);
}

// Tests whether 10 block medians are in random order: p = 0.0092, because 33,508 of 3,628,800 orders fail; ties lower
// p. Detects a shift (one half lies above the other: Pettitt 1976, extreme U = 25) and a trend (Mann 1945: |S| >= 33,
// S = rising minus falling pairs). A test of single values would report drift whenever they are autocorrelated.
static int kbi_order_significant(const double* blocks) {
    int score = 0, rising = 1, falling = 1;
    for (int i = 0; i < KBI_STATS_BLOCKS; i++) {
        for (int j = i + 1; j < KBI_STATS_BLOCKS; j++) {
            const int sign = (blocks[j] > blocks[i]) - (blocks[j] < blocks[i]);
            score += sign;
            if (i >= KBI_STATS_BLOCKS / 2 || j < KBI_STATS_BLOCKS / 2) continue;
            rising = rising && sign > 0;
            falling = falling && sign < 0;
        }
    }
    return rising || falling || score >= 33 || score <= -33;
}

static kb_stats kbi_stats_none(int64_t n) {
    kb_stats s;
    memset(&s, 0, sizeof s);
    s.n = n > 0 ? n : 0;
#define KBI_NONE_stats(field) s.field = NAN;
#define KBI_X(kind, key, group, source, meaning) KBI_NONE_##source
    KB_STATISTICS(KBI_X)
#undef KBI_X
    s.outliers_mild = s.outliers_severe = s.lag1 = s.drift = s.effective = NAN;
    return s;
}

// Like kb_summarize. known_step: tick of the timer in the unit of x; 0: the tick is estimated from the values.
static kb_stats kbi_summarize(const double* x, int64_t n, double known_step) {
    double blocks[KBI_STATS_BLOCKS], third[3];
    kb_stats s = kbi_stats_none(n);
    double* sorted = kbi_stats_alloc(x, n, 2 * n);
    if (!sorted) return s;
    double* scratch = sorted + n;
    s.median = kbi_median_of(x, n, scratch);
    s.effective = kbi_median_interval(x, n, s.median, scratch, &s.ci_low, &s.ci_high);
    s.precision = kbi_half_width(s.ci_low, s.ci_high, s.median);
    if (n >= KBI_STATS_MIN) {
        kbi_block_medians(x, n, scratch, blocks);
        const double first = kbi_median_of(blocks, 3, third), last = kbi_median_of(blocks + 7, 3, third);
        s.drift = kbi_ratio(last - first, fabs(s.median));
        const bool notable = kbi_usable(s.drift) && fabs(s.drift) > KBI_STATS_NOTABLE;
        s.drift_significant = notable && kbi_order_significant(blocks);
    }
    memcpy(sorted, x, (size_t)n * sizeof(double));
    kbi_sort(sorted, n);
    s.min = sorted[0], s.max = sorted[n - 1];
    s.p5 = kbi_quantile(sorted, n, 0.05), s.p95 = kbi_quantile(sorted, n, 0.95);
    s.p25 = kbi_quantile(sorted, n, 0.25), s.p75 = kbi_quantile(sorted, n, 0.75);
    if (n >= KBI_STATS_P99_MIN) s.p99 = kbi_quantile(sorted, n, 0.99);
    s.mad = kbi_mad_of(x, n, s.median, scratch);
    kbi_moments(x, n, &s);
    const double estimate = kbi_step_of(sorted, n, s.median, &s.distinct);
    const double step = kbi_usable(known_step) && known_step > 0.0 ? known_step : estimate;
    kbi_outliers(sorted, step, &s);
    s.bimodal = kbi_bimodal(sorted, n, s.median, step, scratch);
    KBENCH_FREE(sorted);
    return s;
}

kb_stats kb_summarize(const double* x, int64_t n) { return kbi_summarize(x, n, 0.0); }

// Returns the mean of x without its `cut` smallest and `cut` largest values; unlike a median, this trimmed mean can
// change by less than a timer tick. Sorts x.
static double kbi_trimmed(double* x, int n, int cut) {
    double sum = 0;
    kbi_sort(x, n);
    for (int i = cut; i < n - cut; i++) sum += x[i];
    return sum / (n - 2 * cut);
}

KBI_SLOW_BEGIN
// Computes the median of the rounds' log ratios, and its interval by the sign test. Drift, clock steps and
// autocorrelation cancel, because each round measures both implementations. The caller divides alpha by the number of
// implementations (Bonferroni). Returns false if there are too few rounds. A ratio that is not usable makes the
// median NAN.
static bool kbi_paired(const double* log_ratio, int64_t rounds, double alpha, double* median, double* lo,
                       double* hi) {
    *median = *lo = *hi = NAN;
    double* sorted = kbi_stats_alloc(log_ratio, rounds, rounds);
    if (!sorted) return false;
    memcpy(sorted, log_ratio, (size_t)rounds * sizeof(double));
    kbi_sort(sorted, rounds);
    *median = kbi_median_sorted(sorted, rounds);
    const int64_t rank = kbi_sign_rank(rounds, alpha);
    if (rank) *lo = sorted[rank - 1], *hi = sorted[rounds - rank];
    KBENCH_FREE(sorted);
    return rank > 0;
}

// Returns the noise floor that follows from the interval lo to hi of the A/A control's ratio; NAN: no interval.
static double kbi_noise_floor(double lo, double hi) {
    if (!kbi_usable(lo) || !kbi_usable(hi) || !(lo > 0.0 && hi >= lo)) return NAN;
    return KBI_MAX(hi, 1.0 / KBI_MAX(lo, 1e-150)) - 1.0;
}

// Returns the verdict from an interval of the speedup (baseline time / time). The first condition that holds decides:
//   UNRESOLVED   an end is not finite (too few rounds);   NONE   not an interval of a ratio: lo <= 0 or lo > hi
//   EQUIVALENT   1/(1+delta) <= lo and hi <= 1+delta, delta > 0 (two one-sided tests, Schuirmann 1987)
//   FASTER       lo > 1 + noise;   SLOWER   hi < 1/(1+noise);   UNRESOLVED   otherwise
// noise is the noise floor; a negative or NAN noise counts as 0.
static kb_verdict kbi_judge_ratio(double lo, double hi, double delta, double noise) {
    if (!kbi_usable(lo) || !kbi_usable(hi)) return KB_UNRESOLVED;
    if (!(lo > 0.0) || lo > hi) return KB_NO_VERDICT;
    if (delta > 0.0 && lo >= 1.0 / (1.0 + delta) && hi <= 1.0 + delta) return KB_EQUIVALENT;
    const double threshold = kbi_usable(noise) && noise > 0.0 ? 1.0 + noise : 1.0;
    return lo > threshold ? KB_FASTER : hi < 1.0 / threshold ? KB_SLOWER : KB_UNRESOLVED;
}

/*-----------------------------------------------------------------
  >>spread    foundation: intervals that include scatter between processes and known errors. Pure functions.
-----------------------------------------------------------------*/

// Widens a 95 % interval about `centre` by a normal error of standard deviation sd; to NAN if sd is not usable.
static void kbi_interval_add(double centre, double sd, double* lo, double* hi) {
    const double error = kbi_usable(sd) ? 1.959963984540054 * sd : (double)NAN;
    *lo = centre - hypot(centre - *lo, error);
    *hi = centre + hypot(*hi - centre, error);
}

// Regularised incomplete beta function I_x(a, b) for x below its mean: continued fraction (DLMF 8.17.22) by the
// modified Lentz method (Lentz 1976; Thompson and Barnett 1986).
static double kbi_beta_below(double a, double b, double x) {
    double c = 1.0, d = 1.0 - (a + b) * x / (a + 1.0), value;
    d = 1.0 / (fabs(d) > 1e-300 ? d : 1e-300);
    value = d;
    for (int m = 1; m < 10000; m++) {
        for (int odd = 0; odd < 2; odd++) {
            const double k = (double)m, top = odd ? -(a + k) * (a + b + k) : k * (b - k);
            const double term = top * x / ((a + 2.0 * k - 1.0 + odd) * (a + 2.0 * k + odd));
            d = 1.0 + term * d;
            c = 1.0 + term / c;
            d = 1.0 / (fabs(d) > 1e-300 ? d : 1e-300);
            c = fabs(c) > 1e-300 ? c : 1e-300;
            value *= c * d;
        }
        if (fabs(c * d - 1.0) < 1e-15) break;
    }
    return value * exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a;
}

// P(T > t) of Student's t, t > 0: I_{df / (df + t^2)}(df/2, 1/2) / 2.
static double kbi_student_tail(double t, double df) {
    const double a = 0.5 * df, x = df / (df + t * t), rest = t * t / (df + t * t);
    if (x < (a + 1.0) / (a + 2.5)) return 0.5 * kbi_beta_below(a, 0.5, x);
    return 0.5 - 0.5 * kbi_beta_below(0.5, a, rest);
}

// Returns quantile p of Student's t for real df >= 0.1, by bisection; NAN if p is not in (0, 1) or df is below 0.1.
// The tail probability has an error below 1e-9 for p from 1e-6 to 1 - 1e-6.
static double kbi_student_quantile(double p, double df) {
    if (!(p > 0.0 && p < 1.0) || !(df >= 0.1)) return NAN;
    if (p == 0.5) return 0.0;
    const double tail = p < 0.5 ? p : 1.0 - p, freedom = df < 1e7 ? df : 1e7;
    double low = 0.0, high = 1.0;
    while (high < 1e140 && kbi_student_tail(high, freedom) > tail) low = high, high *= 2.0;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        *(kbi_student_tail(middle, freedom) > tail ? &low : &high) = middle;
    }
    return p < 0.5 ? -high : high;
}

// psi(x) and psi'(x), x > 0: recurrence up to x >= 8, then the asymptotic series (DLMF 5.11.2, 5.15.8). The first
// omitted term of each series is below 1e-10.
static double kbi_digamma(double x) {
    double sum = 0.0;
    for (; x < 8.0; x += 1.0) sum -= 1.0 / x;
    const double q = 1.0 / (x * x);
    return sum + log(x) - 0.5 / x - q * (1.0 / 12 - q * (1.0 / 120 - q * (1.0 / 252 - q * (1.0 / 240 - q / 132))));
}
static double kbi_trigamma(double x) {
    double sum = 0.0;
    for (; x < 8.0; x += 1.0) sum += 1.0 / (x * x);
    const double q = 1.0 / (x * x);
    const double series = q * (1.0 / 6 - q * (1.0 / 30 - q * (1.0 / 42 - q * (1.0 / 30 - q * 5.0 / 66))));
    return sum + (1.0 + 0.5 / x + series) / x;
}

typedef struct kbi_spread { // how log medians or log ratios of one case scatter between processes
    int n;                  // number of processes that gave a value
    double mean, lo, hi;    // mean and its 95 % interval; NAN if n < 2
    double sd, df;          // pooled standard deviation between processes, and its degrees of freedom
    double log_variance, octaves; // see kbi_spread_own
} kbi_spread;

// Returns the half-width of the 1 - alpha interval of the mean. reference_variance: see kbi_spread_of.
static double kbi_spread_reach(const kbi_spread* s, double alpha, double reference_variance) {
    const double quantile = s->n > 1 ? kbi_student_quantile(1.0 - 0.5 * alpha, s->df) : (double)NAN;
    return quantile * s->sd * sqrt(1.0 / KBI_MAX(s->n, 1) + reference_variance);
}

// Returns the weight of a case in the prior of another case. octaves: log2 of the ratio of the two cases' times.
static double kbi_spread_weight(double octaves) { return fabs(octaves) < 5.0 ? exp(-0.5 * octaves * octaves) : 0.0; }

// Computes a case's statistics from its own values. log_variance: unbiased log variance (Smyth, Statistical
// Applications in Genetics and Molecular Biology 3, 2004); NAN if the variance is 0. octaves: log2 of the case's
// time.
static void kbi_spread_own(const double* values, int processes, double time, kbi_spread* s) {
    double sum = 0.0, squares = 0.0;
    s->n = 0;
    for (int p = 0; p < processes; p++)
        if (kbi_usable(values[p])) sum += values[p], s->n++;
    s->mean = s->n ? sum / s->n : (double)NAN;
    for (int p = 0; p < processes; p++)
        if (kbi_usable(values[p])) squares += (values[p] - s->mean) * (values[p] - s->mean);
    s->df = s->n > 1 ? s->n - 1 : 0;
    s->sd = s->n > 1 ? sqrt(squares / s->df) : (double)NAN;
    s->log_variance = s->sd > 0.0 ? 2.0 * log(s->sd) - kbi_digamma(0.5 * s->df) + log(0.5 * s->df) : (double)NAN;
    s->octaves = kbi_usable(time) && time > 0.0 ? log(time) / 0.6931471805599453 : 0.0;
}

// Returns the degrees of freedom of the prior (Smyth 2004, section 6.2). The less the log variances of cases with
// similar times differ, the larger the result: 2e6 if they differ only by chance.
static double kbi_spread_prior(const kbi_spread* s, int cases) {
    double weights = 0.0, excess = 0.0, low = 0.05, high = 1e6;
    for (int i = 0; i < cases; i++) {
        for (int j = 0; j < i; j++) {
            const double d = s[i].log_variance - s[j].log_variance;
            const double weight = kbi_spread_weight(s[i].octaves - s[j].octaves);
            if (!(weight > 0.0) || !kbi_usable(d)) continue;
            excess += 0.5 * weight * (d * d - kbi_trigamma(0.5 * s[i].df) - kbi_trigamma(0.5 * s[j].df));
            weights += weight;
        }
    }
    excess = weights > 0.0 ? excess / weights : 0.0;
    for (int i = 0; i < 60; i++) { // solves psi'(x) = excess by bisection
        const double middle = sqrt(low * high);
        *(kbi_trigamma(middle) > excess ? &low : &high) = middle;
    }
    return 2.0 * high;
}

// Computes 95 % t intervals of the mean log median of each case over `processes` processes. The values of case c begin
// at values[c * processes]; NAN: a process gave no value. times: typical times of the cases, all in one unit. The
// variance of a case is (d s^2 + p s0^2) / (d + p), with d + p degrees of freedom (Smyth 2004), and at least its own
// s^2. s0^2 is the prior from the other cases; 1/p = 1/min(d0, d) + 1/D, with d0 from kbi_spread_prior and D degrees
// of freedom of the other cases. reference_variance: variance of the reference with which the mean is compared,
// divided by the variance of one process; 0 for the true mean, 1 for one further process, pi / 2m for the median of m
// processes. Log ratios need a separate call, because they vary less than log times.
static void kbi_spread_of(const double* values, int processes, int cases, const double* times,
                          double reference_variance, kbi_spread* s) {
    for (int i = 0; i < cases; i++)
        kbi_spread_own(values + (size_t)i * (size_t)processes, processes, times[i], &s[i]);
    const double d0 = kbi_spread_prior(s, cases), shift = kbi_digamma(0.5 * d0) - log(0.5 * d0);
    for (int i = 0; i < cases; i++) {
        double known = 0.0, weights = 0.0, logs = 0.0;
        const double d = s[i].n > 1 ? s[i].n - 1 : 0;
        for (int j = 0; j < cases && d > 0.0; j++) {
            if (j == i || !kbi_usable(s[j].log_variance)) continue;
            const double weight = kbi_spread_weight(s[i].octaves - s[j].octaves);
            known += weight * (s[j].n - 1);
            weights += weight;
            logs += weight * s[j].log_variance;
        }
        if (known > 1e-6) {
            const double p = 1.0 / (1.0 / (d0 < d ? d0 : d) + 1.0 / known);
            const double pooled = sqrt((d * s[i].sd * s[i].sd + p * exp(logs / weights + shift)) / (d + p));
            s[i].sd = pooled > s[i].sd ? pooled : s[i].sd;
            s[i].df = d + p;
        }
        const double reach = kbi_spread_reach(&s[i], 0.05, reference_variance);
        s[i].lo = s[i].mean - reach;
        s[i].hi = s[i].mean + reach;
    }
}
KBI_SLOW_END

/*-----------------------------------------------------------------
  >>arrays    foundation: comparison of two arrays within a tolerance. Pure functions.
-----------------------------------------------------------------*/

typedef enum kbi_match_how { KBI_CHECK_MIXED, KBI_CHECK_NORM, KBI_CHECK_ULP } kbi_match_how;

typedef struct kbi_matched {
    bool passed;
    double error;       // largest error, in the unit of the tolerance; infinite for a wrong NaN or infinity
    int64_t worst, bad; // index of the element with the largest error, -1: none; number of failed elements
    double got, want;
} kbi_matched;

static double kbi_ulp(double x, kb_dtype dtype) {
    int exponent, digits = kbi_dtypes[dtype].digits, least = kbi_dtypes[dtype].least;
    if (!digits) return 1;
    frexp(x, &exponent); // x = m * 2^exponent, m in [0.5, 1)
    if (x == 0) exponent = least;
    return ldexp(1, KBI_MAX(exponent, least) - digits);
}

// Compares n elements. The error is |got - want| / (1 + |want|) in KBI_CHECK_MIXED, 2-norm of got - want / 2-norm
// of want in KBI_CHECK_NORM, units in the last place of got_type in KBI_CHECK_ULP. NaN equals NaN; infinities equal
// themselves.
static kbi_matched kbi_match(const void* got, kb_dtype got_type, const void* want, kb_dtype want_type, int64_t n,
                             kbi_match_how how, double tolerance) {
    kbi_matched c = { true, 0, -1, 0, 0, 0 };
    if (!kbi_finite(tolerance)) tolerance = -1; // with -ffast-math, a comparison with NaN could pass
    double difference = 0, norm = 0, unit = 1; // unit: power of two that keeps squares from overflow and underflow
    bool wide = got_type == want_type && (got_type == KB_I64 || got_type == KB_U64);
    for (int64_t i = 0; i < n && how == KBI_CHECK_NORM; i++) {
        double w = fabs(kbi_load_double(want, i, (int)want_type)), g = fabs(kbi_load_double(got, i, (int)got_type));
        if (kbi_finite(g) && kbi_finite(w)) norm = KBI_MAX(norm, KBI_MAX(g, w));
    }
    if (norm > 1e150 || norm < 1e-150) unit = ldexp(1, norm > 1 ? -600 : 600);
    norm = 0;
    for (int64_t i = 0; i < n; i++) {
        double g = kbi_load_double(got, i, (int)got_type), w = kbi_load_double(want, i, (int)want_type), error = 0;
        bool good = true;
        if (!kbi_finite(g) || !kbi_finite(w)) {
            good = kbi_nan(g) ? kbi_nan(w) : !kbi_nan(w) && g == w;
            error = good ? 0 : (double)INFINITY;
        } else if (how == KBI_CHECK_NORM) {
            double d = g * unit - w * unit;
            difference += d * d;
            norm += w * unit * (w * unit);
        } else {
            double d = fabs(g - w);
            if (wide) { // different 64-bit integers can be equal as doubles
                uint64_t a, b;
                memcpy(&a, (const char*)got + 8 * i, 8);
                memcpy(&b, (const char*)want + 8 * i, 8);
                bool above = got_type == KB_I64 ? (int64_t)a > (int64_t)b : a > b;
                d = (double)(above ? a - b : b - a);
            }
            error = how == KBI_CHECK_MIXED ? d / (1 + fabs(w)) : d / kbi_ulp(w, got_type);
            good = error <= tolerance;
        }
        c.bad += !good;
        if (error > c.error || (!good && c.worst < 0)) c.error = error, c.worst = i, c.got = g, c.want = w;
    }
    if (how == KBI_CHECK_NORM && !c.bad) {
        c.error = norm > 0 ? sqrt(difference / norm) : difference > 0 ? (double)INFINITY : 0;
        c.bad = !(c.error <= tolerance);
    }
    c.passed = c.bad == 0;
    return c;
}

KBI_SLOW_BEGIN

/*-----------------------------------------------------------------
  >>fiber     foundation: functions that suspend and resume, each on its own stack.
-----------------------------------------------------------------*/

// A fiber runs a benchmark function on its own stack in the same thread, and suspends it in its timed loop. The
// implementations of a comparison thus run on the same core, with the same CUDA context, and one at a time.
typedef struct kbi_fiber {
#if KBI_FIBERS
    ucontext_t body, conductor;
#endif
    void (*main)(void* user);
    void* user;
    char* stack;
    size_t size;
} kbi_fiber;

#if KBI_FIBERS
static void kbi_fiber_rest(kbi_fiber* f) { swapcontext(&f->body, &f->conductor); }
static void kbi_fiber_resume(kbi_fiber* f) { swapcontext(&f->conductor, &f->body); }

static void kbi_fiber_enter(unsigned high, unsigned low) {
    kbi_fiber* f = (kbi_fiber*)(uintptr_t)((uint64_t)high << 32 | low);
    f->main(f->user);
    kbi_fiber_rest(f);
}

// Returns false if there is no memory for the stack, which has the size limit of the main stack (8 to 64 MiB).
static bool kbi_fiber_make(kbi_fiber* f, void (*body)(void*), void* user) {
    struct rlimit limit;
    rlim_t most = (rlim_t)64 << 20, size = getrlimit(RLIMIT_STACK, &limit) == 0 ? limit.rlim_cur : 0;
    f->main = body;
    f->user = user;
    f->size = (size_t)KBI_MIN(KBI_MAX(size, (rlim_t)8 << 20), most) & ~(size_t)65535;
    void* stack = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) return false;
    mprotect(stack, 4096, PROT_NONE); // a stack overflow crashes instead of corrupting memory
    f->stack = (char*)stack;
    if (getcontext(&f->body) != 0) return false;
    f->body.uc_stack.ss_sp = f->stack;
    f->body.uc_stack.ss_size = f->size;
    f->body.uc_link = NULL;
    uint64_t self = (uint64_t)(uintptr_t)f;
    makecontext(&f->body, (void (*)(void))kbi_fiber_enter, 2, (unsigned)(self >> 32), (unsigned)self);
    return true;
}

static void kbi_fiber_free(kbi_fiber* f) {
    if (f->stack) munmap(f->stack, f->size);
}
#else
static bool kbi_fiber_make(kbi_fiber* f, void (*body)(void*), void* user) {
    return (void)f, (void)body, (void)user, false;
}
static void kbi_fiber_resume(kbi_fiber* f) { (void)f; }
static void kbi_fiber_rest(kbi_fiber* f) { (void)f; }
static void kbi_fiber_free(kbi_fiber* f) { (void)f; }
#endif

/*-----------------------------------------------------------------
  >>shared    foundation: types that the stages share: recipe, case, measured, machine.
-----------------------------------------------------------------*/

static const char kbi_apart_note[] = // note in the record of a case that was compared without fibers
    "measured one after another, not in interleaved rounds: kbench has no fibers for this C library and "
    "processor. --procs 5 compares over several processes";

typedef struct kbi_registered {
    kb_entry** of;
    int n;
} kbi_registered;

typedef enum kbi_target { KBI_ON_GPU, KBI_ON_CPU, KBI_ON_OWN } kbi_target; // KBI_ON_OWN: the program adds the backend
typedef enum kbi_mode { KBI_COLD, KBI_HOT, KBI_ROTATE, KBI_GRAPH, KBI_EVENT_MODES = KBI_ROTATE } kbi_mode;
typedef enum kbi_timing { KBI_BY_EVENTS, KBI_BY_CUPTI, KBI_BY_BOTH, KBI_BY_WALL } kbi_timing;

// Result of the inspection of a case's CUDA calls, in a separate process that times nothing.
typedef struct kbi_verdict {
    int32_t known;     // 1: the case was inspected; 0: it was not, for the reason in note ("": not requested)
    int32_t flag;      // kb_flag that withholds the time, for the reason in message; -1: no error
    int32_t captures;  // 1: stream capture accepts every call of the block
    int32_t followed;  // 1: the calls were recorded; 0: this machine cannot inspect any case
    int64_t work;      // number of calls that submit work to a stream
    char message[320];
    char note[320];
} kbi_verdict;

typedef struct kbi_recipe {
    kbi_target target;
    int device;
    kbi_mode mode;
    kbi_timing timing;
    bool verify, audit;          // verify: run kb_check; audit: inspect the timed block
    bool fresh;                  // run kb_check also with two other inputs
    bool looked;
    unsigned inside;             // mask of the instruments that profile the untimed block; 0: none
    const kbi_verdict* verdicts; // inspection result of each case of the group; NULL: no inspection
    uint64_t seed;
    double precision, min_time, max_time, warmup_time; // a fraction; times in s; warmup_time < 0: until steady
    int64_t warmup_samples;                            // number of samples; negative: warm-up until steady state
    int64_t samples, rounds;                           // exact number of each; 0: as many as precision requires
    int64_t launches;                                  // launches per sample; 0: the timer chooses
    int64_t min_samples, max_samples, max_rounds;
    int placement; // together with seed, selects the addresses of the buffers; 0: no displacement
} kbi_recipe;

enum { KBI_ROUNDS_LIMIT = 512, KBI_LAUNCHES_LIMIT = 4096, KBI_PROCESSES = 64 };

static void kbi_recipe_default(kbi_recipe* r) {
    memset(r, 0, sizeof *r);
    r->verify = r->audit = true;
    r->seed = 42;
    r->precision = 0.005;
    r->max_time = 1;
    r->warmup_time = -1, r->warmup_samples = -1;
    r->min_samples = 30, r->max_samples = 2000, r->max_rounds = 64;
}

// Changes the recipe from timing to profiling. kb_check does not run again, because it ran when the case was timed.
static void kbi_recipe_inside(kbi_recipe* r, unsigned instruments) {
    r->inside = instruments;
    if (instruments) r->verify = r->fresh = false;
}

static const kb_build* kbi_build_of(const kb_entry* entry) { return entry->build ? entry->build : kbi_build(); }

typedef struct kbi_case {
    const kb_entry* entry;
    const char *name, *direction, *size; // size: category; NULL: none
    kb_dtype dtype;
    const kb_param* params; // values of all axes except dir
    int n_params, group;
    int place;           // position in the plan, from 1, counted over all shards
    uint64_t key;        // hash of operation and params in any order; cases with equal keys form a group
    const kb_desc* desc; // description of a measurement in another program; NULL: the case is in a plan
} kbi_case;

// clang-format off
typedef enum kbi_roof { // NO_ROOF: the device has no such peak; ABOVE_ALL: the rate exceeds every peak
    KBI_ROOF_COPY, KBI_ROOF_READ, KBI_ROOF_WRITE, KBI_ROOF_F64, KBI_ROOF_F32, KBI_ROOF_TF32, KBI_ROOF_F16,
    KBI_ROOF_BF16, KBI_ROOF_FP8, KBI_ROOF_INT8, KBI_ROOFS, KBI_NO_ROOF = -1, KBI_ABOVE_ALL = -2
} kbi_roof;
// clang-format on
static const char* const kbi_roof_names[] = { "copy", "read", "write", "f64", "f32",
                                              "tf32", "f16",  "bf16",  "fp8", "int8" };
KBI_STATIC_ASSERT(KBI_COUNT(kbi_roof_names) == KBI_ROOFS, "a name for each peak");
static bool kbi_roof_is_memory(const char* roof) {
    return kbi_is(roof, "copy") || kbi_is(roof, "read") || kbi_is(roof, "write");
}

// Measured peaks of a device, in bytes or operations per second. A peak is NaN if it was not measured, 0 if the
// device lacks the unit, and KBI_UNTOLD if it cannot be measured. Data that draws more power lowers the clock and the
// peak.
typedef struct kbi_roofs {
    double of[KBI_ROOFS];   // with random data
    double most[KBI_ROOFS]; // with zeros as data, an upper bound for all data
    double took[KBI_ROOFS]; // seconds that the measurement took
} kbi_roofs;
#define KBI_UNTOLD (-1.0)

static void kbi_roof_put(kbi_roofs* r, int which, double of, double most, double took) {
    r->of[which] = of, r->most[which] = most, r->took[which] = took;
}
static void kbi_roofs_clear(kbi_roofs* r) {
    for (int i = 0; i < KBI_ROOFS; i++) kbi_roof_put(r, i, NAN, NAN, NAN);
}
static double kbi_roof_known(const kbi_roofs* r, int which) { // 0: not known
    return which >= 0 && !kbi_nan(r->of[which]) && r->of[which] > 0 ? r->of[which] : 0;
}

enum { KBI_COUNTERS = 16 };
typedef struct kbi_counter {
    char name[64], unit[32];
    double value;
} kbi_counter;

enum { KBI_NO_SHAPE = -1 };
// What kb_keep receives in timed host work. KBI_KEPT_BY_CALL: the work is called by pointer, so it is not removed.
enum kbi_kept { KBI_NOT_HOST, KBI_KEPT_NOTHING, KBI_KEPT_CONSTANTS, KBI_KEPT_VALUES, KBI_KEPT_BY_CALL };

typedef struct kbi_measured {
    int32_t status; // kb_status
    int32_t verified, settled;
    int32_t queries;             // items are queries
    int32_t constant;            // 1: the inputs are constant
    int32_t stage;               // buffers of a comparison: 1: shared; 0: separate; -1: no comparison
    int32_t proven;              // 1: a check passed on output of the block's last run
    int32_t ungated;             // 1: the launch gate failed, so launches were not queued in time
    int32_t launches;            // launches per sample; a sample is the mean of their times
    int64_t retaken;             // number of samples that were repeated because the process or the gate stalled
    int32_t others;              // number of other processes on this GPU
    int32_t dtype;
    int32_t traffic, arithmetic; // kb_traffic of kb_bytes_as, kb_dtype of kb_flops_as; 0: not given
    int32_t core;                // 1: roofs are peaks of one core of the host
    int32_t debug_build;         // 1: the benchmark's file was compiled without optimisation
    int32_t bias_fitted;         // 1: the duration of an empty kernel was fitted, not measured
    int32_t empty;               // launch shape whose bias was subtracted; KBI_NO_SHAPE: unbatched CPU runs
    uint64_t flags;
    char message[1024];
    char cache[8], timer[8]; // cache "": host work
    int64_t n, rounds;
    double* samples;         // ns per launch; a process that receives this struct allocates its arrays
    double* round_ns;        // ns per launch for each round of a comparison
    double* control_ns;      // ns per launch of the A/A control for each round; NULL: not the baseline
    int32_t arms, contest;   // number of compared implementations; plan index of the first one
    double bias_ns, floor_ns, wall_ns, step_ns; // step_ns: tick of the timer / launches; NaN: not known
    int32_t kept;
    double bias_error_ns;                       // standard deviation of bias_ns
    double bias_apart_ns;                       // part of bias_error_ns that differs between launch shapes
    double bytes, flops, items;                 // NaN: not given
    double max_error, tolerance;
    int64_t memory, host_memory, leaked; // bytes; KB_NONE: not known
    char kernel[256];
    int32_t grid[3], block[3];
    int64_t registers, shared_bytes, local_bytes;
    double occupancy;                                  // percent
    double sm_clock, memory_clock, power, temperature; // in MHz, MHz, W and degrees Celsius; NaN: not known
    double clock_low, clock_high;
    char throttle[96];
    int64_t preemptions;                      // number during the samples; KB_NONE: not known
    double cpu_clock, cpu_waited, cpu_stolen; // in MHz, in percent of sampling time, in percent of busy time
    kbi_roofs roofs;
    double reached; // bytes per second of a copy, read or write of the same size and cache state; NaN: not known
    int32_t n_counters;
    kbi_counter counters[KBI_COUNTERS];
} kbi_measured;

typedef struct kbi_machine {
    char backend[8];
    int32_t gpu_present, device, devices, sm;         // sm: 90 for 9.0
    int32_t ecc, mig, clocks_locked, multiprocessors; // -1: not known
    char gpu[96], driver[40], cuda[16], why[200];     // why: reason why no GPU is used
    int64_t memory, l2;
    kbi_roofs roofs, core;
    double floor[3], bias[2];     // ns: time of an empty kernel (cold, hot, graph); bias of event times (cold, hot)
    double own_error;             // ns: uncertainty of an empty kernel's fitted duration; 0: it was measured
    double quantum, empty_pair;   // ns: tick of event times; time between two events without work between them
    char truth[64];               // how the bias of event times was found
    double cold;                  // fraction of an L2-sized buffer that is evicted; NaN: not known
    double counted_cold;          // evicted part of an L2-sized buffer in percent, by counters; NaN: not known
    char counted_why[200];
    char tool[24];                // tool that prevents timing, because it changes launches; "": none
    int32_t simulated;            // 1: the tool also changes host work
    char cpus[200], governor[32]; // processors that the process may use; their frequency governor; "": not known
    int32_t boost;                // 1: the processor clock may exceed its nominal rate; -1: not known
} kbi_machine;

// Durations of empty kernels by CUPTI, in ns: [cold, hot][read, write][one block, one block per multiprocessor]
// [32, 256, 1024 threads].
typedef struct kbi_reference {
    double ns[KBI_EVENT_MODES][2][2][3];
} kbi_reference;

static void kbi_measured_clear(kbi_measured* m) {
    memset(m, 0, sizeof *m);
    m->verified = m->stage = -1;
    m->settled = 1;
    m->bytes = m->flops = m->items = m->max_error = m->tolerance = m->reached = NAN;
    m->step_ns = m->bias_ns = m->floor_ns = m->wall_ns = m->occupancy = NAN;
    m->sm_clock = m->memory_clock = m->power = m->temperature = m->clock_low = m->clock_high = NAN;
    m->cpu_clock = m->cpu_waited = m->cpu_stolen = NAN;
    m->preemptions = KB_NONE;
    m->memory = m->host_memory = m->leaked = m->registers = m->shared_bytes = m->local_bytes = KB_NONE;
    kbi_roofs_clear(&m->roofs);
}

typedef struct kbi_arithmetic {
    int base;        // peak with which a case is compared; KBI_NO_ROOF: its type has no peak
    unsigned others; // mask of further kbi_roof peaks that may apply to the element type
} kbi_arithmetic;

// If `said` is true, kb_flops_as gave `dtype`. If not, `dtype` is the type in memory (KB_DTYPE): the arithmetic may
// use a wider type or, for f32 in libraries, a narrower one. KB_NODTYPE: any type is possible. F16 and BF16 use the
// same hardware.
static kbi_arithmetic kbi_arithmetic_by(kb_dtype dtype, bool said) {
    // clang-format off
    enum { KBI_TF32 = 1 << KBI_ROOF_TF32, KBI_HALF = 1 << KBI_ROOF_F16 | 1 << KBI_ROOF_BF16,
           KBI_FP8 = 1 << KBI_ROOF_FP8, KBI_INT8 = 1 << KBI_ROOF_INT8 };
    static const struct { kb_dtype dtype; kbi_arithmetic peaks; } rows[] = {
        { KB_NODTYPE, { KBI_ROOF_F32, KBI_TF32 | KBI_HALF | KBI_FP8 | KBI_INT8 } }, { KB_F64, { KBI_ROOF_F64, 0 } },
        { KB_F32, { KBI_ROOF_F32, KBI_TF32 | KBI_HALF } }, { KB_TF32, { KBI_ROOF_TF32, 0 } },
        { KB_F16, { KBI_ROOF_F16, KBI_HALF } }, { KB_BF16, { KBI_ROOF_BF16, KBI_HALF } },
        { KB_E4M3, { KBI_ROOF_FP8, KBI_HALF } }, { KB_E5M2, { KBI_ROOF_FP8, KBI_HALF } },
        { KB_I8, { KBI_ROOF_INT8, KBI_HALF | KBI_FP8 } }, { KB_U8, { KBI_ROOF_INT8, KBI_HALF | KBI_FP8 } }
    };
    // clang-format on
    kbi_arithmetic peaks = { KBI_NO_ROOF, 0 };
    for (int i = 0; i < KBI_COUNT(rows); i++)
        if (rows[i].dtype == dtype) peaks = rows[i].peaks;
    if (said && dtype != KB_F16 && dtype != KB_BF16) peaks.others = 0;
    return peaks;
}

static kbi_arithmetic kbi_arithmetic_of(const kbi_measured* m) {
    kbi_arithmetic peaks = kbi_arithmetic_by((kb_dtype)(m->arithmetic ? m->arithmetic : m->dtype), m->arithmetic != 0);
    if (!m->core || peaks.base < 0) return peaks;
    peaks.others = 0; // a CPU computes in f64 and f32; smaller floats are converted to f32
    peaks.base = peaks.base == KBI_ROOF_INT8 ? KBI_NO_ROOF : KBI_MIN(peaks.base, KBI_ROOF_F32);
    return peaks;
}

static int kbi_traffic_roof(int traffic) {
    return traffic == KB_READ ? KBI_ROOF_READ : traffic == KB_WRITE ? KBI_ROOF_WRITE : KBI_ROOF_COPY;
}

static const double kbi_roof_margin = 1.05; // a rate above this multiple of the peak is not credible
static const double kbi_product_margin = 1.1; // larger for matrix products: fp8 rates vary by 8 % on an H200

// Returns the first peak (peaks.base, then peaks.others) that is unknown or not exceeded by `rate` in operations/s.
static int kbi_roof_over(const kbi_roofs* r, kbi_arithmetic peaks, double rate) {
    int best = KBI_NO_ROOF;
    for (int k = -1; k < KBI_ROOFS; k++) {
        int i = k < 0 ? peaks.base : k;
        if (i < 0 || (k >= 0 && (k == peaks.base || !(peaks.others >> k & 1)))) continue;
        if (kbi_nan(r->of[i]) || r->most[i] < 0) return i;
        if (!(r->of[i] > 0)) continue;
        if (rate <= kbi_roof_margin * r->most[i]) return i;
        if (best < 0 || r->most[i] > r->most[best]) best = i;
    }
    if (best >= KBI_ROOF_TF32 && rate <= kbi_product_margin * r->most[best]) return best;
    return best < 0 ? KBI_NO_ROOF : KBI_ABOVE_ALL;
}

static double* kbi_copy_reals(const void* from, int64_t n) {
    double* to = KBI_GROW(NULL, double, n + 1);
    if (n) memcpy(to, from, sizeof(double) * (size_t)n);
    return to;
}
static void kbi_measured_free(kbi_measured* m) {
    KBENCH_FREE(m->samples);
    KBENCH_FREE(m->round_ns);
    KBENCH_FREE(m->control_ns);
    m->samples = m->round_ns = m->control_ns = NULL;
}

static void kbi_vsay(char* message, size_t size, const char* format, va_list list) {
    size_t n = strlen(message);
    kbi_fit(message, n, size, n ? "; " : "");
    n = strlen(message);
    kbi_vfit(message, n, size, format, list);
    const char* other = kbi_rephrase ? kbi_rephrase(message + n) : NULL;
    if (other) kbi_fit(message, n, size, "%s", other);
}

KBI_PRINTF(2, 3) static void kbi_note(kbi_measured* m, const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_vsay(m->message, sizeof m->message, format, list);
    va_end(list);
}

/*-----------------------------------------------------------------
  >>profile   foundation: the profile of a case: kernels, copies, calls of its block. Pure functions.
-----------------------------------------------------------------*/

enum { KBI_WISH_STREAMS = 1 }; // mask bit: inspect the CUDA calls; higher bits: instruments

enum { KBI_EVENT_RUN, KBI_EVENT_CALL, KBI_EVENT_KERNEL, KBI_EVENT_COPY, KBI_EVENT_SET };
// Resource that limits the number of resident warps on a multiprocessor
enum { KBI_NO_LIMIT, KBI_BY_WARPS, KBI_BY_REGISTERS, KBI_BY_SHARED, KBI_BY_BLOCKS, KBI_BY_GRID };

typedef struct kbi_event {
    int64_t start, end;    // ns, on one clock for host and device
    int64_t bytes;
    int32_t kind, run;
    int32_t name, cause;   // offset of the name in the texts; index of the submitting call, -1: unknown
    int32_t symbol;        // offset of a kernel's linker name in the texts
    uint32_t lane;         // number of the stream of GPU work, or of the thread of a call
    int32_t grid[3], block[3], cluster[3], registers, shared, local;
    float occupancy; // resident warps in percent of a multiprocessor's limit; 0: not known
    int32_t limit;
} kbi_event;

typedef struct kbi_inside { // profile in one block of memory: this structure, then its events, counters and texts
    int64_t events, counters, texts; // number of events; number of counters; bytes of texts
    int64_t dropped;                 // number of CUPTI records lost because a buffer was full
    int32_t runs, device;
    double energy_mj, idle_w; // energy in mJ per launch, idle power in W; 0: not known
    char message[400];
    kbi_verdict verdict;
} kbi_inside;

static const kbi_event* kbi_events_of(const kbi_inside* in) { return (const kbi_event*)(const void*)(in + 1); }
static const kbi_counter* kbi_counters_of(const kbi_inside* in) {
    return (const kbi_counter*)(const void*)(kbi_events_of(in) + in->events);
}
static const char* kbi_texts_of(const kbi_inside* in) { return (const char*)(kbi_counters_of(in) + in->counters); }
static size_t kbi_inside_size(const kbi_inside* in) {
    return (size_t)(kbi_texts_of(in) + in->texts - (const char*)in);
}

static kbi_inside* kbi_inside_without(const char* why) {
    kbi_inside* in = (kbi_inside*)kbi_grow(NULL, sizeof *in);
    memset(in, 0, sizeof *in);
    in->verdict.flag = -1;
    snprintf(in->message, sizeof in->message, "%s", why);
    return in;
}

/*-----------------------------------------------------------------
  >>fields    foundation: table of the keys of a record, and the names that select them.
-----------------------------------------------------------------*/

// clang-format off
typedef enum kbi_kind {
    KBI_KIND_text, KBI_KIND_real, KBI_KIND_whole, KBI_KIND_truth, KBI_KIND_params, KBI_KIND_samples, KBI_KIND_flags,
    KBI_KIND_status, KBI_KIND_verdict
} kbi_kind;
// clang-format on

typedef enum kbi_source { KBI_OF_CODE, KBI_OF_STATS, KBI_OF_MEASURED, KBI_OF_MACHINE } kbi_source;
typedef struct kbi_key {
    const char* name;
    kbi_kind kind;
    size_t offset, size;
    const char *group, *meaning;
    bool withheld;
    kbi_source source;
    size_t from; // offset in kb_stats, kbi_measured or kbi_machine
} kbi_key;

static const kbi_key kbi_keys[] = {
#define KBI_AT_code false, KBI_OF_CODE, 0
#define KBI_AT_timed true, KBI_OF_CODE, 0
#define KBI_AT_stats(member) true, KBI_OF_STATS, offsetof(kb_stats, member)
#define KBI_AT_measured(member) false, KBI_OF_MEASURED, offsetof(kbi_measured, member)
#define KBI_AT_machine(member) false, KBI_OF_MACHINE, offsetof(kbi_machine, member)
#define KBI_X(kind, key, group, source, meaning) \
    { #key, KBI_KIND_##kind, offsetof(kb_result, key), sizeof(kbi_field_##kind), #group, meaning, KBI_AT_##source },
    KB_RECORD(KBI_X)
#undef KBI_X
};

enum { KBI_SCHEMA = 3 };

static const char* kbi_status_name(kb_status s) { return s == KB_OK ? "ok" : s == KB_FAILED ? "failed" : "skipped"; }
static const char* kbi_verdict_name(kb_verdict v) {
    static const char* const names[] = { NULL, "FASTER", "SLOWER", "EQUIVALENT", "UNRESOLVED" };
    return names[v];
}

static const void* kbi_field(const kb_result* r, const kbi_key* key) { return (const char*)r + key->offset; }

static double kbi_field_number(const kb_result* r, const kbi_key* key) { // NAN: the value is null or no number
    const void* field = kbi_field(r, key);
    if (key->kind == KBI_KIND_real) return *(const kbi_field_real*)field;
    int64_t whole = key->kind == KBI_KIND_whole   ? *(const kbi_field_whole*)field
                    : key->kind == KBI_KIND_truth ? *(const kbi_field_truth*)field
                                                  : KB_NONE;
    return whole == KB_NONE || (key->kind == KBI_KIND_truth && whole < 0) ? (double)NAN : (double)whole;
}

static const char* kbi_field_words(const kb_result* r, const kbi_key* key) { // NULL: the value is null or no text
    const void* field = kbi_field(r, key);
    if (key->kind == KBI_KIND_text) return *(const kbi_field_text*)field;
    if (key->kind == KBI_KIND_status) return kbi_status_name(*(const kbi_field_status*)field);
    if (key->kind == KBI_KIND_verdict) return kbi_verdict_name(*(const kbi_field_verdict*)field);
    if (key->kind != KBI_KIND_truth || *(const kbi_field_truth*)field < 0) return NULL;
    return *(const kbi_field_truth*)field ? "yes" : "no";
}

static void kbi_field_clear(kb_result* r, const kbi_key* key) {
    void* field = (char*)r + key->offset;
    memset(field, 0, key->size);
    if (key->kind == KBI_KIND_real) *(kbi_field_real*)field = NAN;
    if (key->kind == KBI_KIND_whole) *(kbi_field_whole*)field = KB_NONE;
    if (key->kind == KBI_KIND_truth) *(kbi_field_truth*)field = -1;
}

static void kbi_result_clear(kb_result* r) {
    memset(r, 0, sizeof *r);
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) kbi_field_clear(r, &kbi_keys[i]);
    r->owned = KBI_GROW(NULL, struct kbi_arena, 1);
    memset(r->owned, 0, sizeof(kbi_arena));
}

void kb_result_free(kb_result* result) {
    if (result->owned) kbi_arena_free((kbi_arena*)result->owned);
    KBENCH_FREE(result->owned);
    memset(result, 0, sizeof *result);
}

// A text is a char array in *from; an empty text becomes NULL.
static void kbi_result_take(kb_result* r, kbi_source source, const void* from) {
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        const kbi_key* key = &kbi_keys[i];
        void* to = (char*)r + key->offset;
        const char* member = (const char*)from + key->from;
        if (key->source != source) continue;
        if (key->kind == KBI_KIND_text)
            *(kbi_field_text*)to = kbi_arena_text(r->owned, *member ? member : NULL);
        else
            memcpy(to, member, key->size);
    }
}

static void kbi_param_text(kbi_text* s, const kb_param* p) {
    char number[40];
    if (p->type == KB_AXIS_STRINGS)
        kbi_clean(s, p->s ? p->s : "");
    else if (p->type == KB_AXIS_REALS)
        kbi_puts(s, kbi_number(p->r, number));
    else
        kbi_putf(s, "%lld", (long long)p->i);
}

static const kb_param* kbi_object_find(const kbi_field_params* object, const char* name) {
    for (int64_t i = 0; i < object->n; i++)
        if (strcmp(object->of[i].name, name) == 0) return &object->of[i];
    return NULL;
}

static bool kbi_same_param(const kb_param* a, const kb_param* b) {
    if (!a || !b || a->type != b->type) return false;
    if (a->type == KB_AXIS_STRINGS) return kbi_same_text(a->s, b->s);
    return a->type == KB_AXIS_REALS ? memcmp(&a->r, &b->r, sizeof a->r) == 0 : a->i == b->i;
}

static bool kbi_same_params(const kbi_field_params* a, const kbi_field_params* b) {
    for (int64_t i = 0; i < a->n; i++)
        if (!kbi_same_param(&a->of[i], kbi_object_find(b, a->of[i].name))) return false;
    return a->n == b->n;
}

static double kbi_object_number(const kbi_field_params* object, const char* name) { // NAN: no such number
    const kb_param* p = kbi_object_find(object, name);
    return !p ? (double)NAN : p->type == KB_AXIS_REALS ? p->r : p->type == KB_AXIS_INTS ? (double)p->i : (double)NAN;
}

static const char* kbi_object_text(const kbi_field_params* object, const char* name) {
    const kb_param* p = kbi_object_find(object, name);
    return p && p->type == KB_AXIS_STRINGS ? p->s : NULL;
}

// A narrow terminal drops columns in the order of `drop`, except those with 0. `wide` columns need a terminal of
// at least KBI_WIDE characters.
// clang-format off
#define KBI_COLUMNS(x) \
    x(KBI_COLUMN_TIME, "time", "time_ms", 8, 0, false) \
    x(KBI_COLUMN_SPREAD, "+-", "precision", 6, 12, false) \
    x(KBI_COLUMN_GBPS, "GB/s", "throughput_gbps", 8, 8, false) \
    x(KBI_COLUMN_GFLOPS, "GFLOP/s", "gflops", 8, 6, false) \
    x(KBI_COLUMN_ITEMS, "items/s", "items_per_second", 8, 5, false) \
    x(KBI_COLUMN_ROOF, "roof", "gpu_efficiency", 6, 7, false) \
    x(KBI_COLUMN_BAR, "bar", "gpu_efficiency", 10, 2, true) \
    x(KBI_COLUMN_MEMORY, "memory", "memory_bytes", 8, 4, false) \
    x(KBI_COLUMN_ENERGY, "energy", "energy_mj", 8, 11, false) \
    x(KBI_COLUMN_FLOP_J, "FLOP/J", "flops_per_joule", 8, 10, false) \
    x(KBI_COLUMN_BYTE_J, "B/J", "bytes_per_joule", 8, 9, false) \
    x(KBI_COLUMN_SAMPLES, "samples", "samples", 7, 1, true) \
    x(KBI_COLUMN_SPEEDUP, "speedup", "speedup", 8, 13, false) \
    x(KBI_COLUMN_INTERVAL, "interval", "speedup_low", 14, 3, true)
// clang-format on

#define KBI_X(name, title, key, width, drop, wide) name,
enum { KBI_COLUMNS(KBI_X) KBI_COLUMN_COUNT };
#undef KBI_X
#define KBI_X(name, title, key, width, drop, wide) { title, key, width, drop, wide },
static const struct {
    const char *title, *key;
    int width, drop;
    bool wide;
} kbi_columns[] = { KBI_COLUMNS(KBI_X) };
#undef KBI_X
KBI_STATIC_ASSERT(KBI_COLUMN_COUNT < 32, "a mask of 32 bits has a bit for each column and a spare bit");

enum { KBI_UNITS_EACH = 4 };
static const struct { // units of a column, from small to large; scales: factors from the unit of the column's key
    int column;
    const char* titles[KBI_UNITS_EACH];
    double scales[KBI_UNITS_EACH];
} kbi_units[] = { { KBI_COLUMN_TIME, { "time ns", "time us", "time ms", "time s" }, { 1e6, 1e3, 1, 1e-3 } },
                  { KBI_COLUMN_GFLOPS, { "GFLOP/s", "TFLOP/s" }, { 1, 1e-3 } },
                  { KBI_COLUMN_ITEMS, { "items/s", "kitems/s", "Mitems/s", "Gitems/s" }, { 1, 1e-3, 1e-6, 1e-9 } },
                  { KBI_COLUMN_ENERGY, { "uJ", "mJ", "J" }, { 1e3, 1, 1e-3 } },
                  { KBI_COLUMN_FLOP_J, { "FLOP/J", "MFLOP/J", "GFLOP/J", "TFLOP/J" }, { 1, 1e-6, 1e-9, 1e-12 } },
                  { KBI_COLUMN_BYTE_J, { "B/J", "MB/J", "GB/J" }, { 1, 1e-6, 1e-9 } },
                  { KBI_COLUMN_MEMORY, { "mem B", "mem KiB", "mem MiB", "mem GiB" },
                    { 1, 1.0 / 1024, 1.0 / 1048576, 1.0 / 1073741824 } } };

typedef struct kbi_shown {
    int column;         // of kbi_columns; -1: the plain value of a key
    const kbi_key* key;
    bool down;          // --sort: largest value first
    char counter[128];  // name of the counter; "": the value is no counter
} kbi_shown;
enum { KBI_SHOWN = 32 };

static const kbi_key* kbi_key_named(const char* name) {
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++)
        if (kbi_same_name(kbi_keys[i].name, name)) return &kbi_keys[i];
    return NULL;
}

static kbi_shown kbi_shown_column(int column) {
    kbi_shown shown = { column, kbi_key_named(kbi_columns[column].key), false, "" };
    return shown;
}

static double kbi_shown_number(const kb_result* r, const kbi_shown* what) {
    return what->counter[0] ? kbi_object_number(&r->counters, what->counter) : kbi_field_number(r, what->key);
}

static bool kbi_shown_named(const char* option, const char* name, kbi_shown* out) {
    kbi_nearest best = { name, NULL, 64 };
    memset(out, 0, sizeof *out);
    out->column = -1;
    for (int i = 0; i < KBI_COLUMN_COUNT; i++) {
        kbi_offer(&best, kbi_columns[i].title);
        if (kbi_same_name(kbi_columns[i].title, name)) out->column = i;
    }
    for (int i = 0; i < KBI_COUNT(kbi_units) * KBI_UNITS_EACH; i++)
        if (kbi_same_name(kbi_units[i / KBI_UNITS_EACH].titles[i % KBI_UNITS_EACH], name))
            out->column = kbi_units[i / KBI_UNITS_EACH].column;
    if (out->column >= 0) return *out = kbi_shown_column(out->column), true;
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        kbi_kind kind = kbi_keys[i].kind;
        if (kind == KBI_KIND_params || kind == KBI_KIND_samples || kind == KBI_KIND_flags) continue;
        kbi_offer(&best, kbi_keys[i].name);
        if (kbi_same_name(kbi_keys[i].name, name)) out->key = &kbi_keys[i];
    }
    if (strncmp(name, "counter:", 8) == 0 && name[8]) {
        out->key = kbi_key_named("counters");
        snprintf(out->counter, sizeof out->counter, "%s", name + 8);
    }
    if (out->key) return true;
    bool near = best.distance <= 3;
    return kbi_error("--%s: '%s' is neither a column of the table nor a key of --json with one value%s%s%s",
                     option, name, near ? "; nearest is '" : "", near ? best.name : "", near ? "'" : "");
}

// Reads a list like "time,-gflops".
static int kbi_shown_parse(const char* option, const char* list, kbi_shown out[KBI_SHOWN]) {
    int n = 0;
    for (const char* p = list;; p++) {
        char name[160];
        bool down = kbi_is(option, "sort") && *p == '-';
        int length = (int)strcspn(p += down, ",");
        snprintf(name, sizeof name, "%.*s", length, p);
        if (n == KBI_SHOWN) return kbi_error("--%s takes at most %d names; leave some out", option, (int)KBI_SHOWN);
        if (!kbi_shown_named(option, name, &out[n])) return 0;
        out[n++].down = down;
        p += length;
        if (!*p) return n;
    }
}

/*-----------------------------------------------------------------
  >>json      foundation: writes a record as an object, without NaN or Infinity, in every locale.
-----------------------------------------------------------------*/

static void kbi_json_whole(kbi_text* t, int64_t x) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)x);
    kbi_puts(t, x == KB_NONE ? "null" : digits);
}

static void kbi_json_params(kbi_text* t, kbi_field_params params) {
    kbi_puts(t, "{");
    for (int64_t i = 0; i < params.n; i++) {
        const kb_param* p = &params.of[i];
        if (i) kbi_puts(t, ", ");
        kbi_json_text(t, p->name);
        kbi_puts(t, ": ");
        if (p->type == KB_AXIS_STRINGS)
            kbi_json_text(t, p->s);
        else if (p->type == KB_AXIS_REALS)
            kbi_json_real(t, p->r);
        else
            kbi_json_whole(t, p->i);
    }
    kbi_puts(t, "}");
}

static void kbi_json_field(kbi_text* t, const kb_result* r, const kbi_key* key) {
    const void* field = kbi_field(r, key);
    const kbi_field_samples* samples = (const kbi_field_samples*)field;
    const char *words = kbi_field_words(r, key), *before = "[";
    switch (key->kind) {
    case KBI_KIND_real: kbi_json_real(t, *(const kbi_field_real*)field); break;
    case KBI_KIND_whole: kbi_json_whole(t, *(const kbi_field_whole*)field); break;
    case KBI_KIND_truth: kbi_puts(t, !words ? "null" : *words == 'y' ? "true" : "false"); break;
    case KBI_KIND_params: kbi_json_params(t, *(const kbi_field_params*)field); break;
    case KBI_KIND_samples:
        for (int64_t i = 0; i < samples->n; i++, before = ", ") kbi_puts(t, before), kbi_json_real(t, samples->of[i]);
        kbi_puts(t, samples->n ? "]" : "null");
        break;
    case KBI_KIND_flags:
        for (int f = 0; f < KB_FLAG_COUNT; f++) {
            if (!(*(const kbi_field_flags*)field >> f & 1)) continue;
            kbi_putf(t, "%s\"%s\"", before, kb_flag_name((kb_flag)f));
            before = ", ";
        }
        kbi_puts(t, *before == '[' ? "[]" : "]");
        break;
    default: kbi_json_text(t, words);
    }
}

static void kbi_json_result(kbi_text* t, const kb_result* r) {
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        kbi_putf(t, "%s\"%s\": ", i ? ", " : "{", kbi_keys[i].name);
        kbi_json_field(t, r, &kbi_keys[i]);
    }
    kbi_puts(t, "}");
}

int64_t kb_json(const kb_result* result, char* buffer, int64_t size) {
    kbi_text t = KBI_BLANK;
    kbi_json_result(&t, result);
    int64_t length = (int64_t)t.n, n = KBI_MIN(length, size - 1);
    if (n >= 0) memcpy(buffer, t.s, (size_t)n), buffer[n] = 0;
    kbi_text_free(&t);
    return length;
}

/*-----------------------------------------------------------------
  >>registry  declare: registered benchmarks, in source order.
-----------------------------------------------------------------*/

const char KBI_DEMAND[] = KBENCH_VERSION;
#if KBI_CUDA
const char KBI_DEMAND_CUDA[] = KBENCH_VERSION;
#endif

static int kbi_compare_entries(const void* a, const void* b) {
    const kb_entry *x = *(kb_entry*const*)a, *y = *(kb_entry*const*)b;
    int file = strcmp(x->file, y->file), line = (x->line > y->line) - (x->line < y->line);
    return file ? file : line ? line : (x->order > y->order) - (x->order < y->order);
}

// Returns all entries sorted by file and line, except that the entries of an operation stay together.
static kbi_registered kbi_registry(void) {
    size_t n = (size_t)kbi_process.entry_count, k = 0;
    kbi_registered all = { KBI_GROW(NULL, kb_entry*, n), 0 };
    kb_entry** sorted = KBI_GROW(NULL, kb_entry*, n);
    size_t* next = KBI_GROW(NULL, size_t, n); // [i]: index of the next entry with i's operation; n: i is the last
    kbi_map operations = KBI_BLANK;
    for (kb_entry* e = kbi_process.entries; e; e = e->next) sorted[k++] = e;
    qsort(sorted, n, sizeof *sorted, kbi_compare_entries);
    for (size_t i = 0; i < n; i++) {
        uint64_t key = kbi_hash(0, sorted[i]->operation);
        kbi_mapped* slot = kbi_map_find(&operations, key);
        if (slot->key) next[slot->at] = i;
        kbi_map_take(&operations, slot, key, (intptr_t)i);
        next[i] = n;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n && sorted[j]; j = next[j]) all.of[all.n++] = sorted[j], sorted[j] = NULL;
    KBENCH_FREE(sorted);
    KBENCH_FREE(next);
    KBENCH_FREE(operations.slots);
    return all;
}

static const char* kbi_name_of(const char* s, const char* otherwise) {
    const char* p = s;
    size_t n = 0;
    char* name = (char*)kbi_grow(NULL, strlen(s) + 1); // must live until the program ends, like the entry
    while (*p == '"') {
        for (p++; *p && *p != '"'; p++) {
            if (*p == '\\' && (p[1] == '"' || p[1] == '\\')) p++;
            name[n++] = *p;
        }
        p += *p == '"';
        p += strspn(p, " ");
    }
    if (*p) n = strlen(s), memcpy(name, s, n); // s has more than string literals
    name[n] = 0;
    if (n) return name;
    KBENCH_FREE(name);
    return otherwise;
}

void kb_add_from(kb_entry* entry, const kb_build* build) {
    if (entry->next || (kbi_process.entries && entry == kbi_process.last_entry)) return; // added before
    if (!entry->operation) entry->operation = "unnamed";
    if (!entry->implementation) entry->implementation = "default";
    if (!entry->file) entry->file = "";
    // clang registers the benchmarks of a module once for each file that imports it: keeps the first entry
    for (const kb_entry* e = entry->line ? kbi_process.entries : NULL; e; e = e->next)
        if (e->line == entry->line && e->order == entry->order && kbi_is(e->file, entry->file) &&
            kbi_is(e->operation, entry->operation) && kbi_is(e->implementation, entry->implementation))
            return;
    if (!entry->order) entry->order = kbi_process.entry_count;
    if (!entry->build) entry->build = build;
    if (!kbi_process.entries) kbi_process.last_entry = entry;
    entry->next = kbi_process.entries;
    kbi_process.entries = entry;
    kbi_process.entry_count++;
}

void kb_add_output(kb_output* output) {
    kb_output** link = &kbi_process.outputs;
    while (*link && *link != output) link = &(*link)->next;
    *link = output;
}

static kb_output* kbi_output_named(const char* option) {
    kb_output* i = kbi_process.outputs;
    while (i && !kbi_is(i->option, option)) i = i->next;
    return i;
}

void kb_add_instrument(kb_instrument* instrument) {
    kb_instrument** link = &kbi_process.instruments;
    while (*link && *link != instrument) link = &(*link)->next;
    if (*link) return;
    if (kbi_process.instrument_count == 30) {
        kbi_error("more than 30 instruments: --%s is ignored", instrument->option ? instrument->option : "(none)");
        return;
    }
    instrument->bit = 2u << kbi_process.instrument_count++; // bit 0 is KBI_WISH_STREAMS
    *link = instrument;
}

void kbi_register(kb_entry* entry, const char* operation, const char* implementation, const kb_build* build) {
    entry->operation = kbi_name_of(operation, "unnamed");
    if (implementation) entry->implementation = kbi_name_of(implementation, "default");
    kb_add_from(entry, build);
}

/*-----------------------------------------------------------------
  >>cli       plan: table of options, which defines --help, the parser and struct kbi_options.
-----------------------------------------------------------------*/

enum { // clang-format off
    KBI_EXIT_FINE = 0, KBI_EXIT_FAILED = 1, KBI_EXIT_USAGE = 2, KBI_EXIT_REGRESSED = 3, KBI_EXIT_UNCERTAIN = 4,
    KBI_EXIT_NO_GPU = 77, KBI_EXIT_INTERRUPTED = 130
}; // clang-format on

enum { KBI_LISTS = 64, KBI_SHARDS = 1000000 };
typedef struct kbi_strings {
    const char* of[KBI_LISTS];
    int n;
} kbi_strings;

typedef char kbi_none;

enum {
    KBI_REPEATS = 1,   // may be given more than once
    KBI_MORE = 2,      // takes further words, up to the next option
    KBI_CHOOSES = 4,   // selects cases
    KBI_IDLE = 8,      // does something instead of measuring
    KBI_MEASURES = 16, // needs measurements: excludes options with KBI_IDLE
    KBI_GPU = 32,      // has no effect on host code
    KBI_WRITES = 64,   // writes records to a file
    KBI_EFFORT = 128,
    KBI_APART = 256,       // kb_default does not apply
    KBI_IN_LOAD = 512,     // allowed with --load
    KBI_IN_COMPARE = 1024, // allowed with --compare
    KBI_IN_RACE = 2048,    // allowed with --race
    KBI_REST = 4096,       // takes all words after the word --
    KBI_RARE = 8192,       // only in --help all
    KBI_COMMON = 8192,     // in KBI_OPTIONS, the opposite of KBI_RARE: --help shows it
    KBI_SELECTS = KBI_CHOOSES | KBI_REPEATS,
    KBI_INSTEAD = KBI_IDLE | KBI_APART,
    KBI_IN_SHOWN = KBI_IN_LOAD | KBI_IN_COMPARE,
    KBI_SELECTS_SHOWN = KBI_SELECTS | KBI_IN_SHOWN,
    KBI_ALWAYS = KBI_IN_SHOWN | KBI_IN_RACE
};

// A row has: identifier, name, argument, group, help; type of its field in kbi_options, reader, limits, rules. An
// argument in brackets is optional and follows the name and =. --help omits an option without a group.
#define KBI_ANY 0, 0, NULL
#define KBI_FROM(low, high) low, high, NULL
#define KBI_ONE_OF(words) 0, 0, words
#define KBI_BARE(id, name, group, help, rules) KBI_X(id, name, NULL, group, help, kbi_none, NULL, KBI_ANY, rules)
#define KBI_TEXT(id, name, argument, group, help, rules) \
    KBI_X(id, name, argument, group, help, const char*, kbi_take_text, KBI_ANY, rules)
#define KBI_LIST(id, name, argument, group, help, rules) \
    KBI_X(id, name, argument, group, help, kbi_strings, kbi_take_list, KBI_ANY, rules)
#define KBI_SPAN(id, name, group, help, low, rules) \
    KBI_X(id, name, "T", group, help, double, kbi_take_number, KBI_FROM(low, 0), rules)
#define KBI_SHARE(id, name, group, help, low, high, rules) \
    KBI_X(id, name, "PCT", group, help, double, kbi_take_number, KBI_FROM(low, high), rules)
#define KBI_NUMBER(id, name, group, help, high, rules) \
    KBI_X(id, name, "N", group, help, int64_t, kbi_take_number, KBI_FROM(1, high), rules)
#define KBI_WORD(id, name, argument, group, help, words, rules) \
    KBI_X(id, name, argument, group, help, const char*, kbi_take_word, KBI_ONE_OF(words), rules)
// clang-format off
#define KBI_OPTIONS \
    KBI_BARE(list, "list", "choose", "print the selected cases, one per line", KBI_INSTEAD | KBI_COMMON) \
    KBI_BARE(list_ops, "list-ops", "choose", "print operations, directions, dtypes and implementations", \
      KBI_INSTEAD) \
    KBI_BARE(list_sizes, "list-sizes", "choose", "print the sizes of each operation, by category", KBI_INSTEAD) \
    KBI_LIST(op, "op", "A,B", "choose", "operations; aliases: swish, gelu, loss", KBI_SELECTS_SHOWN | KBI_COMMON) \
    KBI_LIST(impl, "impl", "A,B", "choose", "implementations", KBI_SELECTS_SHOWN) \
    KBI_LIST(dtype, "dtype", "A,B", "choose", "element types: f32, f16, bf16, ...", KBI_SELECTS_SHOWN) \
    KBI_LIST(size, "size", "A,B", "choose", "size categories: small, medium, large, batch, ...", KBI_SELECTS) \
    KBI_X(axis, "axis", "NAME=LIST", "choose", "replace the values of an axis: -a rows=512,1k:8k:*2", kbi_strings, \
      kbi_take_axis, KBI_ANY, KBI_SELECTS | KBI_COMMON) \
    KBI_LIST(filter, "filter", "RE", "choose", "run cases whose name matches RE (like FILTER)", KBI_SELECTS_SHOWN) \
    KBI_LIST(exclude, "exclude", "RE", "choose", "leave out cases whose name matches RE", KBI_SELECTS_SHOWN) \
    KBI_X(shard, "shard", "K/N|auto", "choose", "run part K of N parts; auto: from a Slurm job array", int64_t, \
      kbi_take_shard, KBI_ANY, 0) \
    KBI_X(device, "device", KBI_CUDA ? "N|all|cpu" : "cpu", "choose", \
      KBI_CUDA ? "index of a GPU, 'all' GPUs in turn, or 'cpu' (default 0)" \
      : "cpu is the only device in a build without CUDA", \
      const char*, kbi_take_device, KBI_ANY, KBI_COMMON) \
    KBI_BARE(fast, "fast", "how long", "0.2 s and 2 % precision per case; skip size large", KBI_EFFORT | KBI_COMMON) \
    KBI_BARE(thorough, "thorough", "how long", "10 s per case", KBI_EFFORT | KBI_COMMON) \
    KBI_SHARE(precision, "precision", "how long", "stop at this half-width of the interval (default 0.5 %)", 1e-300, \
      100, KBI_EFFORT) \
    KBI_SPAN(max_time, "max-time", "how long", "longest sampling time per case (default 1s)", 1e-9, KBI_EFFORT) \
    KBI_SPAN(min_time, "min-time", "how long", "shortest sampling time per case (default 0s)", 0, KBI_EFFORT) \
    KBI_SPAN(budget, "budget", "how long", "time for all cases together (default of --race: 60s)", 1e-3, \
      KBI_EFFORT | KBI_MEASURES | KBI_IN_RACE | KBI_COMMON) \
    KBI_NUMBER(rounds, "rounds", "how long", "rounds of a comparison (default 16 to 64)", KBI_ROUNDS_LIMIT, \
      KBI_EFFORT) \
    KBI_NUMBER(iters, "iters", "how long", "number of samples per case", 10000000, KBI_EFFORT) \
    KBI_NUMBER(launches, "launches", "how long", "launches per sample (default 8, more on a CPU)", \
      KBI_LAUNCHES_LIMIT, 0) \
    KBI_X(warmup, "warmup", "N|T", "how long", "warm-up in samples or time (default: until steady)", \
      kbi_none, kbi_take_warmup, KBI_FROM(0, 1000000), 0) \
    KBI_SPAN(timeout, "timeout", "how long", "end a case after this time (default 60s)", 1e-9, 0) \
    KBI_BARE(all, "all", "how long", "run all cases of a program that by default runs a part", 0) \
    KBI_BARE(dry_run, "dry-run", "how long", "print the plan; run nothing", KBI_IDLE) \
    KBI_BARE(cold, "cold", "how", "evict L2 before each launch (the default)", KBI_GPU) \
    KBI_BARE(hot, "hot", "how", "launch repeatedly on the same data, in cache", KBI_GPU | KBI_COMMON) \
    KBI_BARE(rotate, "rotate", "how", "rotate copies of the data that together exceed L2", KBI_GPU) \
    KBI_WORD(timer, "timer", "WHICH", "how", "events, cupti, wall, or both (events and cupti in turn)", \
      "events,cupti,both,wall", KBI_GPU) \
    KBI_BARE(no_verify, "no-verify", "how", "skip kb_check; records are UNVERIFIED", 0) \
    KBI_BARE(fresh, "fresh", "how", "run kb_check also with two other inputs", 0) \
    KBI_BARE(no_audit, "no-audit", "how", "do not inspect the timed block", 0) \
    KBI_BARE(no_isolate, "no-isolate", "how", "use one process, for debuggers and profilers", 0) \
    KBI_NUMBER(procs, "procs", "how", "processes per case; buffer addresses vary (default 1)", KBI_PROCESSES, \
      KBI_COMMON) \
    KBI_BARE(shuffle, "shuffle", "how", "run comparison groups in random order", 0) \
    KBI_X(cpu, "cpu", "N,M-K", "how", "processors to use (default any)", const char*, kbi_take_cpu, KBI_ANY, 0) \
    KBI_X(seed, "seed", "N", "how", "seed of data and of random orders (default 42)", uint64_t, kbi_take_number, \
      KBI_FROM(0, INT64_MAX), 0) \
    KBI_TEXT(json, "json", "FILE", "out", "write records as a JSON array; FILE - is stdout", \
      KBI_WRITES | KBI_IN_LOAD | KBI_COMMON) \
    KBI_TEXT(jsonl, "jsonl", "FILE", "out", "append each record to FILE as a line of JSON", \
      KBI_WRITES | KBI_IN_LOAD | KBI_COMMON) \
    KBI_TEXT(csv, "csv", "FILE", "out", "write records as CSV, one row per case", KBI_WRITES | KBI_IN_LOAD) \
    KBI_X(sort, "sort", "KEY,-KEY", "out", "sort the rows of an operation by KEY; -KEY: descending", const char*, \
      kbi_take_columns, KBI_ANY, KBI_IN_LOAD) \
    KBI_X(columns, "columns", "A,B,C", "out", "show these columns of the table, or keys of the record", const char*, \
      kbi_take_columns, KBI_ANY, KBI_IN_LOAD) \
    KBI_WORD(color, "color", "WHEN", "out", "use color 'always', 'never', or 'auto' (on a terminal)", \
      "always,auto,never", KBI_ALWAYS) \
    KBI_BARE(no_color, "no-color", "out", "plain text (the same as NO_COLOR)", KBI_ALWAYS) \
    KBI_BARE(no_progress, "no-progress", "out", "print no progress line on stderr", KBI_ALWAYS) \
    KBI_BARE(quiet, "quiet", "out", "print no warnings and no progress line", KBI_ALWAYS) \
    KBI_BARE(verbose, "verbose", "out", "print messages and winners of all cases (-v)", KBI_ALWAYS) \
    KBI_BARE(help, "help", "out", "print common options; --help all prints all (-h)", 0) \
    KBI_BARE(version, "version", "out", "print the version", 0) \
    KBI_BARE(env, "env", "inspect", "print the properties of the machine", \
      KBI_INSTEAD | KBI_IN_LOAD | KBI_COMMON)
// clang-format on

enum kbi_option_id {
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) KBI_OPTION_##id,
    KBI_OPTIONS
#undef KBI_X
        KBI_OPTION_COUNT
};

typedef struct kbi_options {
    bool on[KBI_OPTION_COUNT];
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) type id;
    KBI_OPTIONS
#undef KBI_X
    double warmup_time;   // warm-up in seconds; negative: not given
    int64_t warmup_count; // warm-up samples; negative: not given
    int64_t min_samples, max_samples;
    int64_t shards; // number of parts of the plan, 0: no parts; shard is 1 to shards
    int64_t gpu;
    char** rest;
    bool usual;
    int argc;
    char** argv;
} kbi_options;

static void kbi_options_default(kbi_options* o) {
    memset(o, 0, sizeof *o);
    o->precision = 0.005;
    o->max_time = 1, o->timeout = 60;
    o->warmup_time = -1, o->warmup_count = -1;
    o->min_samples = 30, o->max_samples = 2000;
    o->procs = 1;
    o->seed = 42;
}

// --- readers of values: false after an error message ---

static void* kbi_option_field(const kb_option* option, void* values) { return (char*)values + option->offset; }

static bool kbi_take_text(const kb_option* option, void* values, const char* value) {
    *(const char**)kbi_option_field(option, values) = value;
    return true;
}

static bool kbi_refuse_value(const kb_option* option, const char* takes, const char* value) {
    return kbi_error("--%s takes %s, not '%.100s'", option->name, takes, value);
}

static bool kbi_take_word(const kb_option* option, void* values, const char* value) {
    if (*value && !strchr(value, ',') && kbi_lists(option->words, value)) return kbi_take_text(option, values, value);
    return kbi_refuse_value(option, option->words, value);
}

static bool kbi_add_string(const char* option, kbi_strings* list, const char* s) {
    if (list->n < KBI_LISTS) return list->of[list->n++] = s, true;
    return kbi_error("--%s was given more than %d times; join values: A,B (A|B for RE)", option, KBI_LISTS);
}

static bool kbi_take_list(const kb_option* option, void* values, const char* value) {
    return kbi_add_string(option->name, (kbi_strings*)kbi_option_field(option, values), value);
}

static double kbi_parse_time(const char* s) {
    static const char* const units[] = { "ns", "us", "ms", "s", "m", "min", "h" };
    static const double seconds[] = { 1e-9, 1e-6, 1e-3, 1, 60, 60, 3600 };
    char* end;
    double x = kbi_real_of(s, &end);
    for (int i = 0; i < KBI_COUNT(units) && end != s && x >= 0 && isfinite(x); i++)
        if (strcmp(end, units[i]) == 0) return x * seconds[i];
    return -1;
}

static bool kbi_parse_whole(const char* s, int64_t low, int64_t high, int64_t* out) {
    char* end;
    errno = 0;
    long long x = strtoll(s, &end, s[strspn(s, "+-")] == '0' && (s[strspn(s, "+-") + 1] | 32) == 'x' ? 16 : 10);
    if (end == s || *end || errno || x < low || x > high) return false;
    *out = x;
    return true;
}

// Reads a time ("T", stored in seconds), a percentage ("PCT", stored as a fraction) or a whole number ("N").
static bool kbi_take_number(const kb_option* option, void* values, const char* value) {
    void* field = kbi_option_field(option, values);
    const char *above = option->low > 0 ? " above 0" : "", *kind = option->argument;
    char takes[80], *end;
    if (*kind == 'N') {
        if (kbi_parse_whole(value, (int64_t)option->low, option->high, (int64_t*)field)) return true;
        snprintf(takes, sizeof takes, "a whole number from %.0f to %lld", option->low, (long long)option->high);
        return kbi_refuse_value(option, takes, value);
    }
    double x = *kind == 'T' ? kbi_parse_time(value) : kbi_real_of(value, &end);
    bool good = *kind == 'T' || (end != value && (!*end || kbi_is(end, "%")) && x <= (double)option->high);
    snprintf(takes, sizeof takes, "a %s%s%s", *kind == 'T' ? "time" : "percentage", above,
             *kind == 'T' ? " with its unit, as in 200ms or 3s" : ", as in 0.5");
    if (!good || !(x >= option->low && x >= 0)) return kbi_refuse_value(option, takes, value);
    *(double*)field = *kind == 'T' ? x : x / 100;
    return true;
}

KBI_INLINE bool kbi_only_letters(const char* s, const char* others) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    while (*s && (strchr(letters, *s) || strchr(others, *s))) s++;
    return !*s;
}

static bool kbi_take_axis(const kb_option* option, void* values, const char* value) {
    kbi_strings* list = (kbi_strings*)kbi_option_field(option, values);
    const char* equals = strchr(value, '=');
    if (!equals) return kbi_refuse_value(option, "NAME=LIST, as in rows=512,1024", value);
    for (int i = 0; i < list->n; i++)
        if (kbi_same_name_n(value, (size_t)(equals - value), list->of[i], strcspn(list->of[i], "=")))
            return kbi_error("-a %s and -a %s set the same axis; join the lists with a comma", list->of[i], value);
    return kbi_add_string(option->name, list, value);
}

static bool kbi_take_columns(const kb_option* option, void* values, const char* value) {
    kbi_shown shown[KBI_SHOWN];
    return kbi_take_text(option, values, value) && kbi_shown_parse(option->name, value, shown) > 0;
}

static bool kbi_take_warmup(const kb_option* option, void* values, const char* value) {
    kbi_options* o = (kbi_options*)values;
    o->warmup_time = kbi_parse_time(value);
    if (o->warmup_time >= 0 || kbi_parse_whole(value, 0, option->high, &o->warmup_count)) return true;
    return kbi_refuse_value(option, "a number of samples or a time with its unit, as in 10 or 200ms", value);
}

static bool kbi_take_device(const kb_option* option, void* values, const char* value) {
    bool named = kbi_is(value, "all") || kbi_is(value, "cpu") || kbi_is(value, kbi_process.own_device);
    int64_t* gpu = &((kbi_options*)values)->gpu;
    *gpu = 0;
    if (named || kbi_parse_whole(value, 0, 1023, gpu)) return kbi_take_text(option, values, value);
    return kbi_refuse_value(option, "a number, all or cpu", value);
}

static bool kbi_take_cpu(const kb_option* option, void* values, const char* value) {
    kbi_cpus list, allowed;
    char text[200];
    if (!kbi_cpus_parse(value, &list))
        return kbi_refuse_value(option, "numbers of processors, as in 2 or 0,4-7", value);
    kbi_cpus_allowed(&allowed);
    for (int i = 0; i < KBI_COUNT(list.words); i++)
        if (list.words[i] & ~allowed.words[i])
            return kbi_error("--cpu %s: this process may run on %s only", value,
                             kbi_cpus_show(&allowed, text, sizeof text));
    return kbi_take_text(option, values, value);
}

static bool kbi_options_pin(const kbi_options* o) {
    kbi_cpus list;
    if (!o->cpu || (kbi_cpus_parse(o->cpu, &list) && kbi_cpus_pin(&list))) return true;
    return kbi_error("--cpu %s: %s; leave it out", o->cpu, strerror(errno));
}

// Reads K/N, or gets K and N from a Slurm array task. Unequal steps of task ids are an error: K is unknown.
static bool kbi_take_shard(const kb_option* option, void* values, const char* value) {
    static const char* const names[] = { "ID", "MIN", "MAX", "STEP", "COUNT" };
    int64_t task[] = { -1, 0, -1, 1, -1 };
    kbi_options* o = (kbi_options*)values;
    const char* slash = strchr(value, '/');
    char text[40];
    bool good = true;
    if (!kbi_is(value, "auto")) {
        snprintf(text, sizeof text, "%.*s", (int)(slash ? slash - value : 0), value);
        good = slash && kbi_parse_whole(slash + 1, 1, KBI_SHARDS, &o->shards) &&
               kbi_parse_whole(text, 1, o->shards, &o->shard);
        return good || kbi_refuse_value(option, "K/N with K from 1 to N, as in 2/8, or auto", value);
    }
    for (int i = 0; i < KBI_COUNT(names); i++) {
        snprintf(text, sizeof text, "SLURM_ARRAY_TASK_%s", names[i]);
        const char* s = getenv(text);
        good = good && (!s || kbi_parse_whole(s, i > 2, KBI_SHARDS, &task[i]));
    }
    o->shards = (task[2] - task[1]) / task[3] + 1;
    o->shard = (task[0] - task[1]) / task[3] + 1;
    good = good && task[0] >= task[1] && task[0] <= task[2] && (task[0] - task[1]) % task[3] == 0;
    if (good && (task[4] < 0 || task[4] == o->shards)) return true;
    return kbi_error("--shard auto needs a task of a Slurm job array whose ids have equal steps, as with "
                     "sbatch --array=1-8; elsewhere --shard K/N selects a part");
}

static const kb_option kbi_options_table[] = {
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) \
    { name, argument, group, help, read, offsetof(kbi_options, id), limits, (rules) ^ KBI_RARE },
    KBI_OPTIONS
#undef KBI_X
};

static const kbi_options* kbi_options_now;

static kb_option_set kbi_option_sets = { kbi_options_table, KBI_OPTION_COUNT, NULL, NULL, NULL, NULL, false, NULL };

void kb_add_options(kb_option_set* set) {
    kb_option_set* last = &kbi_option_sets;
    while (last != set && last->next) last = last->next;
    if (last == set) return;
    last->next = set, set->next = NULL;
    if (!set->given)
        set->given = KBI_GROW(NULL, bool, set->count); // lives as long as the set, until the program ends
    memset(set->given, 0, sizeof(bool) * (size_t)set->count);
}

// *k: index of an option among the options of all sets. Returns the option's set; *k becomes the index in this set.
static const kb_option_set* kbi_option_set_of(int* k) {
    const kb_option_set* set = &kbi_option_sets;
    for (; set && *k >= set->count; set = set->next) *k -= set->count;
    return set;
}

static const kb_option* kbi_option_at(int k) {
    const kb_option_set* set = kbi_option_set_of(&k);
    return set ? &set->options[k] : NULL;
}

static bool kbi_option_given(const kbi_options* o, int k) {
    const kb_option_set* set = kbi_option_set_of(&k);
    return set->given ? set->given[k] : o->on[k];
}

// Returns the first given option from *k on that has one of the rules, or NULL. *k becomes the next index.
static const kb_option* kbi_option_next(const kbi_options* o, unsigned rules, int* k) {
    for (const kb_option* option; (option = kbi_option_at(*k)) != NULL;)
        if (kbi_option_given(o, (*k)++) && (option->rules & rules)) return option;
    return NULL;
}

static const kb_option* kbi_option_any(const kbi_options* o, unsigned rules) {
    int k = 0;
    return kbi_option_next(o, rules, &k);
}

static int kbi_option_index(const char* name) { // -1: no option has this name
    for (int k = 0; kbi_option_at(k); k++)
        if (kbi_is(kbi_option_at(k)->name, name)) return k;
    return -1;
}

static bool kbi_option_own(kb_option_set* set, kb_option* row, const char* name, const char* argument,
                           const char* group, const char* help, unsigned rules) {
    int k = kbi_option_index(name);
    if (k >= 0 && k < KBI_OPTION_COUNT && k != KBI_OPTION_csv)
        return kbi_error("--%s is kbench's own option: an output or instrument of the program needs another name",
                         name);
    if (!name || k >= 0) return true;
    memset(row, 0, sizeof *row);
    row->name = name, row->argument = argument, row->group = group, row->help = help, row->rules = rules;
    set->options = row;
    set->count = 1;
    set->given = &set->own;
    kb_add_options(set);
    return true;
}

static bool kbi_option_shown(const kb_option* o) { return o->group && (KBI_CUDA || !(o->rules & KBI_GPU)); }

static void kbi_help_row(const kb_option* option) {
    const char* argument = option->argument ? option->argument : "";
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", option->name, strchr("[", *argument) ? "" : " ", argument);
    printf("  %-22s %s\n", left, option->help);
}

static void kbi_help(bool all) {
    const kb_option *first, *option; // first: first option of a group; options of add-ons may join a group
    kbi_print_line(stdout, "usage: %s [options] [FILTER...]", kbi_process.program);
    if (!all) printf("\n");
    for (int k = 0; (first = kbi_option_at(k)) != NULL; k++) {
        if (!kbi_option_shown(first)) continue;
        for (int i = 0; (option = kbi_option_at(i)) != NULL; i++) {
            if (!kbi_option_shown(option) || !kbi_is(option->group, first->group)) continue;
            if (all && i < k) break;
            if (all && i == k) printf("\n%s\n", first->group);
            if (all || (i == k && !(option->rules & KBI_RARE))) kbi_help_row(option);
        }
    }
    printf(all ? "\nFILTER is a regular expression on case names. -a is --axis; --quick is --fast.\n"
                 "KIND: speed, roofline, time, gbps, gflops, efficiency, heat, fits, samples, ratios, changes.\n"
                 "Values of an axis may be ranges: 1:64:*2, 0:100:+25. The suffixes k, M, G and T\n"
                 "of whole numbers are powers of 1024. Times carry a unit: 200ms, 3s.\n"
                 "Exit codes: 0 fine, 1 a case failed, 2 usage, 3 a regression or a missed goal,\n"
                 "4 inconclusive (--fail-on noise), 77 every case needs a GPU and there is none,\n"
                 "130 interrupted.\n"
               : "\nFILTER is a regular expression on case names.\n"
                 "--help all lists all options, values and exit codes.\n");
}

static void kbi_option_unknown(const char* word, const char* name) {
#define KBI_INCLUDE "include it after kbench.h, in the file that defines KBENCH_IMPLEMENTATION"
    static const struct {
        const char *names, *file, *cure;
    } addons[] = {
        { "load,compare,race,baseline,history,threshold,memory-threshold,alpha,noise,fail-on,ignore-env,goal,md,"
          "gbench,go,github,report,html,svg,plot,where,explain,benchmark_out,benchmark_out_format,"
          "benchmark_repetitions,benchmark_display_aggregates_only",
          "kbench_report.h", KBI_INCLUDE ", or use build/kbench (make tool) with records of --json" },
        { "resume,save-baseline", "kbench_report.h", KBI_INCLUDE },
        { "profile,counters,trace,energy,sass,ncu,nsys", "kbench_inspect.h", KBI_INCLUDE },
        { "selftest", "selftest.cu", "build and run that program" }
    };
    kbi_nearest best = { name, NULL, 64 };
    for (int i = 0; i < KBI_COUNT(addons) && *name && !strchr(name, ','); i++) {
        if (!kbi_lists(addons[i].names, name)) continue;
        kbi_error("%s is an option of examples/addons/%s: %s", word, addons[i].file, addons[i].cure);
        return;
    }
    for (int k = 0; kbi_option_at(k) && word[1] == '-'; k++)
        if (kbi_option_at(k)->group) kbi_offer(&best, kbi_option_at(k)->name);
    bool near = best.distance <= 3;
    kbi_error("unknown option %s%s%s%s (--help all lists them)", word, near ? "; did you mean --" : "",
              near ? best.name : "", near ? "?" : "");
}

// Returns the index of the option that the first n bytes of s name ("--json", "-a"); -1 after an error message.
static int kbi_option_named(const char* s, size_t n) {
    static const char* const aliases[][2] = {
        // clang-format off
        { "-a", "axis" }, { "-v", "verbose" }, { "-q", "quiet" }, { "-h", "help" }, { "--quick", "fast" },
        { "--benchmark_out", "gbench" }, { "--benchmark_filter", "filter" } // clang-format on
    };
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n, s);
    const char* name = strncmp(word, "--", 2) == 0 ? word + 2 : "";
    for (int i = 0; i < KBI_COUNT(aliases); i++)
        if (kbi_is(word, aliases[i][0])) name = aliases[i][1];
    int k = kbi_option_index(name);
    if (k < 0) kbi_option_unknown(word, name);
    return k;
}

// value is NULL if the option has no value.
static bool kbi_option_set(kbi_options* o, int k, const char* value) {
    const kb_option* option = kbi_option_at(k);
    const kb_option_set* set = kbi_option_set_of(&k);
    *(set->given ? &set->given[k] : &o->on[k]) = true;
    KBI_EACH_OUTPUT(i)
        if (kbi_is(i->option, option->name)) i->on = true, i->value = value;
    KBI_EACH_INSTRUMENT(i)
        if (kbi_is(i->option, option->name)) i->on = true, i->value = value;
    return !option->take || option->take(option, set->given ? set->values : o, value);
}

static int kbi_option_read(kbi_options* o, int words, char** word) {
    const char* equals = word[0][1] == '-' ? strchr(word[0], '=') : NULL;
    int k = kbi_option_named(word[0], equals ? (size_t)(equals - word[0]) : strlen(word[0])), n = 1;
    if (k < 0) return 0;
    const kb_option* option = kbi_option_at(k);
    const char *argument = option->argument, *value = equals ? equals + 1 : NULL;
    bool file = argument && (strstr(argument, "FILE") || kbi_is(argument, "NAME") || kbi_is(argument, "DIR"));
    if (!argument && equals) return kbi_error("--%s takes no value", option->name), 0;
    if (argument && !equals && *argument != '[') { // the value is the next word, unless that looks like an option
        if (words == 1 || strncmp(word[1], "--", 2) == 0 || (file && word[1][0] == '-' && word[1][1]))
            return kbi_error("--%s needs %s after it", option->name, argument), 0;
        value = word[n++];
    }
    if (kbi_option_given(o, k) && argument && !(option->rules & KBI_REPEATS))
        return kbi_error("--%s was given twice and takes one value; leave one out", option->name), 0;
    const kb_output* own = kbi_output_named(option->name);
    // an output without the function `fill` opens its file itself, so /dev/stdout does not become "-"
    if (file && kbi_is(value, "/dev/stdout") && (!own || own->fill)) value = "-";
    if (!kbi_option_set(o, k, value)) return 0;
    int most = option->rules & KBI_MORE ? words : kbi_is(argument, "A B") ? 3 : 0;
    for (; n < most && n < words && (word[n][0] != '-' || (file && !word[n][1])); n++)
        if (!kbi_option_set(o, k, word[n])) return 0;
    return n;
}

static bool kbi_options_read(kbi_options* o, int argc, char** argv) {
    bool only_filters = false;
    for (int i = 1, n; i < argc; i += n) {
        n = 1;
        if (!only_filters && kbi_is(argv[i], "--")) {
            if (kbi_option_any(o, KBI_REST)) return o->rest = argv + i + 1, true;
            only_filters = true;
        } else if (only_filters || argv[i][0] != '-' || !argv[i][1]) {
            if (!kbi_add_string("filter", &o->filter, argv[i])) return false;
        } else {
            n = kbi_option_read(o, argc - i, argv + i);
            if (!n) return false;
        }
    }
    return true;
}

static bool kbi_options_usual(kbi_options* o) {
    bool chosen = kbi_option_any(o, KBI_EFFORT | KBI_CHOOSES) || o->filter.n, all = o->on[KBI_OPTION_all];
    if (all && (!kbi_process.usual || chosen))
        return kbi_error("--all has no effect: no case is left out, or another option selects cases; remove it");
    if (!kbi_process.usual || all || chosen || kbi_option_any(o, KBI_APART)) return true;
    char* argv[32] = { NULL };
    int argc = 1;
    for (char* p = strtok(kbi_keep_text(kbi_process.usual), " "); p && argc < KBI_COUNT(argv); p = strtok(NULL, " "))
        argv[argc++] = p;
    if (argc == KBI_COUNT(argv)) return kbi_error("kb_default: more than %d words", KBI_COUNT(argv) - 2);
    return o->usual = kbi_options_read(o, argc, argv);
}

static bool kbi_options_agree(const kbi_options* o) {
    // clang-format off
    static const char* const exclusive[] = {
        "timer wall", "cold", "hot", "rotate", NULL, "fast", "thorough", NULL, "iters", "rounds", NULL,
        "quiet", "verbose", NULL, "color", "no-color", NULL, "all", "budget", NULL, "fresh", "no-verify", NULL,
        "launches", "rotate", NULL, "timer cupti", "launches", NULL, "timer both", "rotate", NULL, "procs", "no-isolate"
    };
    // clang-format on
    const char* given = NULL;
    const kb_option *idle = NULL, *option;
    for (int i = 0; i < KBI_COUNT(exclusive); i++) {
        const char* name = exclusive[i];
        if (!name) given = NULL;
        if (!name || (kbi_is(name, "procs") && o->procs == 1)) continue;
        if (strncmp(name, "timer ", 6) == 0 ? !kbi_same_name(o->timer, name + 6) : !o->on[kbi_option_index(name)])
            continue;
        if (given) return kbi_error("--%s and --%s exclude each other; leave one out", given, name);
        given = name;
    }
    for (int k = 0; (option = kbi_option_next(o, KBI_IDLE, &k)) != NULL; idle = option)
        if (idle)
            return kbi_error("--%s and --%s exclude each other; leave one out", idle->name, option->name);
    if (o->on[KBI_OPTION_min_time] && o->on[KBI_OPTION_max_time] && o->min_time > o->max_time)
        return kbi_error("--min-time exceeds --max-time");
    for (const kb_option_set* set = kbi_option_sets.next; set; set = set->next)
        if (set->agree && !set->agree()) return false;
    for (int k = 0; idle && (option = kbi_option_next(o, KBI_MEASURES, &k)) != NULL;)
        if (!(o->on[KBI_OPTION_dry_run] && k - 1 == KBI_OPTION_budget))
            return kbi_error("--%s measures no case: leave out --%s", idle->name, option->name);
    return true;
}

static bool kbi_options_parse(kbi_options* o, int argc, char** argv) {
    o->argc = argc, o->argv = argv;
    kbi_options_now = o;
    KBI_EACH_OUTPUT(i) {
        i->on = !i->option, i->value = NULL;
        if (!kbi_option_own(&i->set, &i->row, i->option, i->argument, "out", i->help,
                            KBI_IN_LOAD | (i->fill ? KBI_WRITES : 0)))
            return false;
        if (i->fill && i->row.name && !i->argument)
            return kbi_error("--%s fills a file, so its argument must be \"FILE\"", i->option);
        if (i->option && kbi_output_named(i->option) != i)
            return kbi_error("two outputs define the option --%s; rename one", i->option);
    }
    KBI_EACH_INSTRUMENT(i) {
        i->on = false, i->value = NULL;
        if (!kbi_option_own(&i->set, &i->row, i->option, i->argument, "inspect", i->help,
                            KBI_MEASURES | (i->host ? 0 : KBI_GPU)))
            return false;
    }
    for (const kb_option_set* set = &kbi_option_sets; set; set = set->next) {
        if (set->given) memset(set->given, 0, sizeof(bool) * (size_t)set->count);
        if (set->start) set->start();
    }
    if (!kbi_options_read(o, argc, argv) || !kbi_options_usual(o) || !kbi_options_agree(o)) return false;
    bool fast = o->on[KBI_OPTION_fast], thorough = o->on[KBI_OPTION_thorough];
    if ((fast || thorough) && !o->on[KBI_OPTION_max_time]) o->max_time = fast ? 0.2 : 10;
    if ((fast || thorough) && !o->on[KBI_OPTION_precision]) o->precision = fast ? 0.02 : 0.002;
    if (fast) o->min_samples = 10;
    if (thorough) o->max_samples = 20000;
    if (o->min_time > o->max_time) o->max_time = o->min_time;
    return true;
}

/*-----------------------------------------------------------------
  >>ranges    plan: the values of axes, written as lists: 512,1024:8192:*2.
-----------------------------------------------------------------*/

typedef struct kbi_dimension {
    const char* name;
    kb_axis_type type;
    kb_param* values;
    int n;             // 0 after an error
    const char* wrong;
} kbi_dimension;

enum { KBI_DIMENSIONS = 16, KBI_VALUES = 4096, KBI_CASES = 1000000 };

typedef struct kbi_list_reader {
    kbi_dimension d;
    kbi_arena* arena;
    const char* next;
} kbi_list_reader;

KBI_PRINTF(2, 3) static bool kbi_list_wrong(kbi_list_reader* l, const char* format, ...) {
    char text[120];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    l->d.wrong = kbi_arena_text(l->arena, text);
    return false;
}

// Reads a number like "512", "2^20" or "inf". In a whole number, a suffix as in "64k" is a power of 1024.
static bool kbi_parse_value(kbi_list_reader* l, double* out) {
    static const char suffixes[] = "kMGT";
    const char* s = l->next;
    char* end;
    errno = 0;
    double x = kbi_real_of(s, &end);
    bool infinite = end != s && tolower((unsigned char)s[*s == '-' || *s == '+']) == 'i', underflow = x == 0 && errno;
    if (end != s && *end == '^') {
        const char* power = end + 1;
        double base = x, y = kbi_real_of(power, &end);
        x = end == power || !kbi_finite(base) || !kbi_finite(y) ? (double)NAN : pow(base, y);
        underflow = x == 0 && base != 0;
    }
    const char* suffix = end != s && *end ? strchr(suffixes, *end == 'K' ? 'k' : *end) : NULL;
    if (suffix && l->d.type == KB_AXIS_INTS && !infinite)
        for (end++; suffix >= suffixes; suffix--) x *= 1024;
    l->next = end;
    *out = x;
    if (end != s && strchr(",:", *end) && !kbi_nan(x) && !underflow && (infinite || kbi_finite(x))) return true;
    size_t n = strcspn(s, ",:");
    if (!n) return kbi_list_wrong(l, "a number is missing");
    return kbi_list_wrong(l, "'%.*s' is not a number, or beyond the range of a double", (int)KBI_MIN(n, (size_t)40),
                          s);
}

static bool kbi_add_value(kbi_list_reader* l, double x, const char* s) {
    bool ints = l->d.type == KB_AXIS_INTS;
    char number[40];
    if (l->d.n == KBI_VALUES) return kbi_list_wrong(l, "there are more than %d values", (int)KBI_VALUES);
    if (ints && (x != floor(x) || fabs(x) >= 1e15))
        return kbi_list_wrong(l, "%s is not a whole number of at most 15 digits", kbi_number(x, number));
    kb_param p = { l->d.name, l->d.type, ints ? (int64_t)x : 0, ints && x == 0 ? 0 : x, s }; // no -0 of integers
    l->d.values[l->d.n++] = p;
    return true;
}

// Reads one item of a list of numbers: "a", "a:b", "a:b:+step" or "a:b:*factor".
static bool kbi_parse_item(kbi_list_reader* l) {
    double from, to, step = 1;
    char how = '+';
    if (!kbi_parse_value(l, &from)) return false;
    if (*l->next != ':') return kbi_add_value(l, from, NULL);
    l->next++;
    if (!kbi_parse_value(l, &to)) return false;
    if (*l->next == ':') {
        how = l->next[1];
        if (how != '+' && how != '*')
            return kbi_list_wrong(l, "a step is + or * and a number, as in 1:9:+2 and 1:64:*2");
        l->next += 2;
        if (!kbi_parse_value(l, &step)) return false;
    }
    if (!kbi_finite(from) || !kbi_finite(to) || !kbi_finite(step) || to < from)
        return kbi_list_wrong(l, "a range has finite ends and a finite step, and ends above its start");
    if (how == '+' ? step <= 0 : step <= 1 || from <= 0)
        return kbi_list_wrong(l, "a step must be > 0, a factor > 1, and the start of a '*' range > 0");
    double slack = 1e-9 * (how == '+' ? step : to);
    for (int i = 0; i <= KBI_VALUES; i++) {
        char text[40], *end;
        double x = how == '+' ? from + i * step : from * pow(step, i);
        if (x > to + slack) break;
        if (how == '+' && fabs(x) < slack) x = 0;
        snprintf(text, sizeof text, "%.14e", x); // 0.3, not 0.30000000000000004
        kbi_unlocalise(text);
        if (!kbi_add_value(l, i ? kbi_real_of(text, &end) : from, NULL)) return false;
    }
    return true;
}

// Reads a word of a list; it ends at a comma that is not in brackets.
static bool kbi_parse_word(kbi_list_reader* l) {
    const char* s = l->next;
    size_t n;
    kbi_word(s, &n);
    l->next += n;
    if (!n) return kbi_list_wrong(l, "a word is missing");
    for (size_t i = 0; i < n; i++)
        if (kbi_starts_invisible(s + i)) return kbi_list_wrong(l, "a value must not contain control characters");
    return kbi_add_value(l, 0, kbi_arena_text_n(l->arena, s, n));
}

// Reads a list like "512,1024:8192:*2" for an axis of this type. The arena owns the values.
static kbi_dimension kbi_parse_list(kbi_arena* a, const char* name, kb_axis_type type, const char* s, size_t length) {
    kbi_list_reader l = { { kbi_arena_text(a, name), type, NULL, 0, NULL }, a, kbi_arena_text_n(a, s, length) };
    kb_param* buffer = l.d.values = KBI_GROW(NULL, kb_param, KBI_VALUES);
    while ((type == KB_AXIS_STRINGS ? kbi_parse_word(&l) : kbi_parse_item(&l)) && *l.next)
        if (*l.next++ != ',') {
            kbi_list_wrong(&l, "a comma is missing before '%.40s'", l.next - 1);
            break;
        }
    if (l.d.wrong) l.d.n = 0;
    l.d.values = KBI_ARRAY(a, kb_param, l.d.n + 1);
    memcpy(l.d.values, buffer, sizeof(kb_param) * (size_t)l.d.n);
    KBENCH_FREE(buffer);
    return l.d;
}

static kbi_dimension kbi_axis_dimension(kbi_arena* a, const kb_axis* axis) {
    bool ints = axis->type == KB_AXIS_INTS, reals = axis->type == KB_AXIS_REALS, ended = false;
    kb_param* values = KBI_ARRAY(a, kb_param, KB_AXIS_MAX + 1);
    kbi_dimension d = { axis->name, axis->type, values, 0, "has more than 32 values (KB_AXIS_MAX) or no terminator" };
    for (int n = 0; n <= KB_AXIS_MAX; n++) {
        kb_param p = { axis->name, axis->type, axis->i[n], ints ? (double)axis->i[n] : axis->r[n], axis->s[n] };
        bool last = ints ? p.i == KB_LAST_INT : reals ? kbi_nan(p.r) : !p.s;
        if (ended && (ints ? p.i != 0 && !last : reals ? !(p.r == 0) : !last)) // a value after the terminator
            d.wrong = "holds INT64_MIN, a NaN or NULL, which ends it";
        if (last && !ended) ended = true, d.wrong = NULL;
        if (!ended && n < KB_AXIS_MAX) values[d.n++] = p;
    }
    return d;
}

// Reads the axes of "rows=512 cols=1024:4096:*2" into out, up to KBI_DIMENSIONS. Returns an error message or NULL.
static const char* kbi_size_dimensions(kbi_arena* a, const char* spec, kbi_dimension* out, int* n) {
    for (const char* p = spec; *p;) {
        p += strspn(p, " ");
        size_t name = strcspn(p, "= "), value = p[name] == '=' ? strcspn(p + name + 1, " ") : 0;
        if (!name && !*p) break;
        if (!name || !value) return "is not of the form \"rows=512 cols=1,2\"";
        if (*n == KBI_DIMENSIONS) return "gives the case more than 16 axes";
        out[*n] = kbi_parse_list(a, kbi_arena_text_n(a, p, name), KB_AXIS_INTS, p + name + 1, value);
        if (out[(*n)++].wrong) return out[*n - 1].wrong;
        p += name + 1 + value;
    }
    return NULL;
}

typedef struct kbi_patterns {
    regex_t of[KBI_LISTS];
    int n;
} kbi_patterns;

static void kbi_patterns_free(kbi_patterns* p) {
    for (int i = 0; i < p->n; i++) regfree(&p->of[i]);
    p->n = 0;
}

static bool kbi_patterns_compile(kbi_patterns* p, const kbi_strings* texts) {
    for (p->n = 0; p->n < texts->n; p->n++) {
        int error = regcomp(&p->of[p->n], texts->of[p->n], REG_EXTENDED | REG_ICASE | REG_NOSUB);
        if (!error) continue;
        char why[128];
        regerror(error, &p->of[p->n], why, sizeof why);
        return kbi_error("'%.100s' is not a regular expression: %s; put \\ before a special character that is "
                         "meant literally",
                         texts->of[p->n], why);
    }
    return true;
}

static bool kbi_patterns_match(const kbi_patterns* p, const char* s) {
    for (int i = 0; i < p->n; i++)
        if (regexec(&p->of[i], s, 0, NULL, 0) == 0) return true;
    return false;
}

/*-----------------------------------------------------------------
  >>plan      plan: from registry and command line to an ordered list of cases in comparison groups.
-----------------------------------------------------------------*/

typedef struct kbi_plan {
    kbi_case* cases; // cases by group, each baseline first; then cases of other shards
    int n, groups;
    int n_all;
    kbi_arena arena;
} kbi_plan;

// Returns the time limit in s of a process for n cases. In a comparison, the baseline is sampled twice.
static double kbi_group_seconds(const kbi_options* o, double max_time, int n) {
    double warm_up = o->warmup_time >= 0 ? o->warmup_time : 0.5 * KBI_MIN(max_time, 2.0), profiling = 0;
    KBI_EACH_INSTRUMENT(i) profiling += i->on ? i->seconds : 0;
    return KBI_MIN(n * warm_up + (n + (n > 1)) * max_time, n * o->timeout) + n * profiling;
}

static int kbi_group_end(const kbi_plan* plan, int first) {
    int end = first;
    while (end < plan->n && plan->cases[end].group == plan->cases[first].group) end++;
    return end;
}

static bool kbi_any_lists(const kbi_strings* lists, const char* name) {
    for (int i = 0; i < lists->n; i++)
        if (kbi_lists(lists->of[i], name)) return true;
    return false;
}

static bool kbi_names_operation(const char* list, const char* operation) {
    static const char* const aliases[][2] = {
        { "swish", "silu" }, { "gelu", "gelu_erf,gelu_tanh" }, { "loss", "mse,cross_entropy" }
    };
    bool named = kbi_lists(list, operation);
    for (int i = 0; i < KBI_COUNT(aliases); i++)
        named |= kbi_lists(aliases[i][1], operation) && kbi_lists(list, aliases[i][0]);
    return named;
}

static bool kbi_selects_operation(const kbi_options* o, const char* operation) {
    int i = 0;
    while (i < o->op.n && !kbi_names_operation(o->op.of[i], operation)) i++;
    return !o->op.n || i < o->op.n;
}

static bool kbi_selects_size(const kbi_options* o, const char* size) {
    if (o->size.n) return size && kbi_any_lists(&o->size, size);
    return !(o->on[KBI_OPTION_fast] && size && kbi_same_name(size, "large"));
}

// --- cases of an entry; functions that return false have printed an error ---

static void kbi_put_param(kbi_text* t, char separator, const kb_param* p) { // strings stay unescaped
    kbi_putf(t, "%c%s=", separator, p->name);
    if (p->type == KB_AXIS_STRINGS)
        kbi_puts(t, p->s);
    else
        kbi_param_text(t, p);
}

static kbi_case kbi_case_of(kbi_arena* a, const kb_entry* e, const kb_param* const* values, int n) {
    const uint64_t start = 14695981039346656037u;
    kbi_case c;
    kbi_text name = KBI_BLANK;
    memset(&c, 0, sizeof c);
    kb_param* params = KBI_ARRAY(a, kb_param, n + 1);
    for (int i = 0; i < n; i++)
        if (kbi_is(values[i]->name, "dir") && values[i]->type == KB_AXIS_STRINGS)
            c.direction = values[i]->s;
        else
            params[c.n_params++] = *values[i];
    kbi_puts(&name, e->operation);
    if (c.direction) kbi_putf(&name, "/dir=%s", c.direction);
    c.key = kbi_hash(start, name.s);
    kbi_putf(&name, "/impl=%s", e->implementation);
    for (int k = 0; k < 2 * c.n_params; k++) { // dtype first
        const kb_param* p = &params[k % c.n_params];
        const size_t begin = name.n;
        if (kbi_is(p->name, "dtype") != (k < c.n_params)) continue;
        if (k < c.n_params) c.dtype = kb_dtype_of(p->s);
        kbi_put_param(&name, '/', p);
        uint64_t h = kbi_hash(start, name.s + begin); // mixed as in MurmurHash3, because key is a sum of hashes
        h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
        c.key += (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    }
    c.entry = e;
    c.params = params;
    c.name = kbi_arena_text(a, name.s);
    kbi_text_free(&name);
    return c;
}

// Adds the product of the axes to the plan; the first axis varies slowest.
static bool kbi_plan_product(kbi_plan* plan, const kb_entry* e, const char* size, const kbi_dimension* d, int n) {
    double count = 1;
    for (int i = 0; i < n; i++) count *= d[i].n;
    if (count > KBI_CASES - plan->n) return kbi_error("more than %d cases; narrow the axes", (int)KBI_CASES);
    for (int k = 0; k < (int)count; k++) {
        const kb_param* values[KBI_DIMENSIONS];
        for (int i = n - 1, rest = k; i >= 0; rest /= d[i--].n) values[i] = &d[i].values[rest % d[i].n];
        if ((plan->n & (plan->n - 1)) == 0)
            plan->cases = KBI_GROW(plan->cases, kbi_case, KBI_MAX(16, 2 * plan->n));
        plan->cases[plan->n] = kbi_case_of(&plan->arena, e, values, n);
        plan->cases[plan->n++].size = size;
    }
    return true;
}

static bool kbi_axis_error(const kb_entry* e, const char* axis, const char* wrong) {
    return kbi_error("%s/%s: axis '%s' %s", e->operation, e->implementation, axis, wrong);
}

static bool kbi_plan_axis(kbi_plan* plan, const kbi_options* o, const kb_entry* e, kbi_dimension* d, int index) {
    kbi_dimension* axis = &d[index];
    const char* name = axis->name ? axis->name : "";
    bool types = kbi_is(name, "dtype");
    if (!*name) return kbi_axis_error(e, name, "has no name");
    for (int i = 0; i < index; i++)
        if (kbi_is(d[i].name, name)) return kbi_axis_error(e, name, "occurs twice");
    for (int i = 0; i < o->axis.n; i++) {
        const char *s = o->axis.of[i], *equals = strchr(s, '=');
        if (!kbi_same_name_n(s, (size_t)(equals - s), name, strlen(name))) continue;
        // -a cannot give an undeclared size 0: a function may then return at once, and kbench would time no work
        int64_t lowest = axis->n > 0;
        for (int v = 0; v < axis->n; v++) lowest = KBI_MIN(lowest, axis->values[v].i);
        if (axis->type != KB_AXIS_INTS || lowest < 0) lowest = INT64_MIN;
        *axis = kbi_parse_list(&plan->arena, name, axis->type, equals + 1, strlen(equals + 1));
        if (axis->wrong)
            return kbi_error("-a %.100s: %s; as in %s=%s", s, axis->wrong, name,
                             axis->type == KB_AXIS_STRINGS ? "this,that" : "1,2,16:64:*2");
        for (int v = 0; v < axis->n; v++)
            if (axis->values[v].i < lowest)
                return kbi_error("-a %s: %s/%s takes no %s below %d, because no declared value is that small", s,
                                 e->operation, e->implementation, name, (int)lowest);
    }
    if (axis->wrong || !axis->n) return kbi_axis_error(e, name, axis->wrong ? axis->wrong : "has no values");
    int n = 0;
    for (int i = 0; i < axis->n; i++) {
        kb_param p = axis->values[i];
        kb_dtype type = types && p.type == KB_AXIS_STRINGS ? kb_dtype_of(p.s) : KB_NODTYPE;
        if (types && !type)
            return kbi_error("%s/%s: axis 'dtype' takes f32, f64, f16, bf16, tf32, e4m3, e5m2 and i8 to u64, not %s",
                             e->operation, e->implementation, p.type == KB_AXIS_STRINGS ? p.s : "numbers");
        if (type) p.s = kb_dtype_name(type);
        if (!types || !o->dtype.n || kbi_any_lists(&o->dtype, p.s)) axis->values[n++] = p;
    }
    axis->n = n;
    return true;
}

static bool kbi_plan_size(kbi_plan* plan, const kbi_options* o, const kb_entry* e, const kb_axis* size) {
    kbi_dimension d[KBI_DIMENSIONS];
    int n = 0;
    bool has_dtype = false;
    for (const kb_axis* a = e->axes; a && a->type != KB_AXIS_END; a++) {
        if (a->type == KB_AXIS_SIZE && a != size) continue;
        int first = n;
        const char* wrong = n == KBI_DIMENSIONS ? "is one too many: an entry has at most 16 axes" : NULL;
        if (a->type == KB_AXIS_SIZE)
            wrong = kbi_size_dimensions(&plan->arena, a->s[0], d, &n);
        else if (!wrong)
            d[n++] = kbi_axis_dimension(&plan->arena, a);
        if (wrong) return kbi_axis_error(e, a->name ? a->name : "", wrong);
        for (int i = first; i < n; i++) {
            if (!kbi_plan_axis(plan, o, e, d, i)) return false;
            has_dtype |= kbi_is(d[i].name, "dtype");
        }
    }
    if (o->dtype.n && !has_dtype) return true;
    return kbi_plan_product(plan, e, size ? size->name : NULL, d, n);
}

static bool kbi_plan_entry(kbi_plan* plan, const kbi_options* o, const kb_entry* e) {
    const kb_axis* a = e->axes;
    bool sized = false, chosen = !o->impl.n || kbi_any_lists(&o->impl, e->implementation);
    if (!chosen || !kbi_selects_operation(o, e->operation)) return true;
    for (; a && a->type != KB_AXIS_END; a++) {
        if (a->type != KB_AXIS_SIZE) continue;
        sized = true;
        if (kbi_selects_size(o, a->name) && !kbi_plan_size(plan, o, e, a)) return false;
    }
    if (a && a->name) // in C, KBENCH(op, impl) is an error: impl becomes the terminator's name
        return kbi_error("%s/%s: one of its axes is not KB_AXIS, KB_DTYPE, ...; to name an implementation, "
                         "write KBENCH_IMPL(%s, NAME)",
                         e->operation, e->implementation, e->operation);
    return sized || !kbi_selects_size(o, NULL) || kbi_plan_size(plan, o, e, NULL);
}

// Removes an entry's duplicate cases, due to equal sizes or values. Returns false if two entries have the same case.
static bool kbi_plan_unique(kbi_plan* plan) {
    kbi_map names = KBI_BLANK;
    int n = 0, count = plan->n;
    for (plan->n = 0; n < count; n++) {
        const kbi_case c = plan->cases[n];
        kbi_mapped* slot = kbi_map_find(&names, kbi_hash(0, c.name));
        bool repeated = slot->key && kbi_is(plan->cases[slot->at].name, c.name);
        const kb_entry *e = c.entry, *other = repeated ? plan->cases[slot->at].entry : e;
        if (other != e) {
            kbi_error("%s is registered twice, at %.150s:%d and at %.150s:%d. Records with the same name could not "
                      "be distinguished. Rename one, as with KBENCH_IMPL(%s, OTHER), or include a header only once",
                      c.name, *other->file ? other->file : "kb_add", *other->file ? other->line : other->order + 1,
                      *e->file ? e->file : "kb_add", *e->file ? e->line : e->order + 1, e->operation);
            break;
        }
        if (!slot->key) kbi_map_take(&names, slot, kbi_hash(0, c.name), plan->n);
        if (!repeated) plan->cases[plan->n++] = c;
    }
    KBENCH_FREE(names.slots);
    return n == count;
}

static int kbi_order_cases(const void* a, const void* b) {
    const kbi_case *x = (const kbi_case*)a, *y = (const kbi_case*)b;
    return x->group != y->group ? (x->group > y->group ? 1 : -1) : (x->place > y->place) - (x->place < y->place);
}

// Cases with the same key form a comparison group. Groups are in order of their first cases, or shuffled.
static void kbi_plan_group(kbi_plan* plan, const kbi_options* o) {
    kbi_map keys = KBI_BLANK;
    plan->groups = 0;
    for (int i = 0; i < plan->n; i++) {
        kbi_mapped* slot = kbi_map_find(&keys, plan->cases[i].key);
        if (!slot->key) kbi_map_take(&keys, slot, plan->cases[i].key, plan->groups++);
        plan->cases[i].group = (int)slot->at;
        plan->cases[i].place = i;
    }
    KBENCH_FREE(keys.slots);
    int* order = KBI_GROW(NULL, int, plan->groups);
    kbi_shuffle(order, plan->groups, o->seed, 2, 0);
    for (int i = 0; i < plan->n && o->on[KBI_OPTION_shuffle]; i++) plan->cases[i].group = order[plan->cases[i].group];
    KBENCH_FREE(order);
    qsort(plan->cases, (size_t)plan->n, sizeof *plan->cases, kbi_order_cases);
    plan->n_all = plan->n;
    for (int i = 0; i < plan->n; i++) plan->cases[i].place = i + 1;
}

// Moves the cases of other shards to the plan's end. Groups are distributed by size, largest first, in alternating
// direction, because one shard could otherwise get all large cases.
static void kbi_plan_shard(kbi_plan* plan, const kbi_options* o) {
    int groups = plan->groups, shards = (int)KBI_MIN(o->shards, (int64_t)groups + 1);
    double* dealt = KBI_GROW(NULL, double, groups); // -(cases) * 2^32 + first case, exactly
    for (int g = 0, first = 0, end; g < groups; g++, first = end) {
        end = kbi_group_end(plan, first);
        dealt[g] = (first - end) * 4294967296.0 + first;
    }
    kbi_sort(dealt, groups);
    plan->n = plan->groups = 0;
    for (int k = 0; k < groups; k++) {
        int count = (int)ceil(-dealt[k] / 4294967296.0), turn = k % shards;
        int first = (int)(dealt[k] + count * 4294967296.0);
        bool own = (k / shards % 2 ? shards - 1 - turn : turn) == o->shard - 1;
        plan->groups += own;
        plan->n += own ? count : 0;
        for (int i = first; i < first + count && !own; i++) plan->cases[i].group += groups;
    }
    KBENCH_FREE(dealt);
    qsort(plan->cases, (size_t)plan->n_all, sizeof *plan->cases, kbi_order_cases);
}

enum { KBI_NAME_OP, KBI_NAME_IMPL, KBI_NAME_DTYPE, KBI_NAME_SIZE, KBI_NAME_AXIS };

// Returns whether best->wanted or `list` is a registered name; such a name may contain commas. Sets best->name.
static bool kbi_find_name(kbi_arena* a, const kbi_registered* all, kbi_nearest* best, const char* list, int kind) {
    const bool commas = strchr(list, ',') != NULL;
    bool found = false;
#define KBI_OFFER(name) \
    kbi_offer(best, name), found |= kbi_same_name(best->wanted, name) || (commas && kbi_same_name(list, name))
    for (int k = 0; k < all->n && !found; k++) {
        const kb_entry* e = all->of[k];
        if (kind == KBI_NAME_OP) KBI_OFFER(e->operation), found |= kbi_names_operation(best->wanted, e->operation);
        if (kind == KBI_NAME_IMPL) KBI_OFFER(e->implementation);
        for (const kb_axis* x = e->axes; x && x->type != KB_AXIS_END; x++) {
            bool sized = x->type == KB_AXIS_SIZE;
            kbi_dimension d[KBI_DIMENSIONS];
            int n = 0;
            if (x->name && kind == (sized ? KBI_NAME_SIZE : KBI_NAME_AXIS)) KBI_OFFER(x->name);
            if (kind == KBI_NAME_AXIS && sized) kbi_size_dimensions(a, x->s[0], d, &n);
            for (int i = 0; i < n; i++) KBI_OFFER(d[i].name);
            for (int i = 0; kind == KBI_NAME_DTYPE && kbi_is(x->name, "dtype") && x->s[i]; i++) KBI_OFFER(x->s[i]);
        }
    }
#undef KBI_OFFER
    return found;
}

static bool kbi_check_names(const kbi_registered* all, const kbi_strings* lists, int kind) {
    static const char* const nouns[] = { "operation", "implementation", "dtype", "size", "axis" };
    static const char* const options[] = { "op", "impl", "dtype", "size" };
    kbi_arena arena = KBI_BLANK;
    bool good = true;
    for (int i = 0; i < lists->n && good; i++)
        for (const char *p = lists->of[i], *next; *p && good; p = next) {
            size_t n = strcspn(p, "=");
            next = kind == KBI_NAME_AXIS ? p + strlen(p) : kbi_word(p, &n);
            kbi_nearest best = { kbi_arena_text_n(&arena, p, n), NULL, 64 };
            good = kbi_find_name(&arena, all, &best, kind == KBI_NAME_AXIS ? "" : lists->of[i], kind);
            bool near = best.name && best.distance <= 3;
            for (int k = 0; kind == KBI_NAME_AXIS && !good && k < KBI_NAME_AXIS; k++)
                if (kbi_is(best.wanted, options[k]))
                    return kbi_arena_free(&arena), kbi_error("no axis is '%s'; use --%s", options[k], options[k]);
            if (!good)
                kbi_error("unknown %s '%.100s'%s%s%s (--list%s lists them all)", nouns[kind], best.wanted,
                          near ? "; nearest is '" : "", near ? best.name : "", near ? "'" : "",
                          kind >= KBI_NAME_SIZE ? "-sizes" : "-ops");
        }
    kbi_arena_free(&arena);
    return good;
}

static void kbi_plan_free(kbi_plan* plan) {
    KBENCH_FREE(plan->cases);
    kbi_arena_free(&plan->arena);
    memset(plan, 0, sizeof *plan);
}

// Makes the plan, which kbi_plan_free frees. Returns false if no case is selected.
static bool kbi_plan_make(kbi_plan* plan, const kbi_options* o, const kbi_registered* all) {
    memset(plan, 0, sizeof *plan);
#if defined(KBENCH_SHARED)
    if (!all->n) kbi_error("no benchmark is registered: use @kbench.bench in Python, kb_add in other languages");
#else
    if (!all->n)
        kbi_error("no benchmark is registered in this program%s. From a static library, a linker takes only functions "
                  "that are called: put the library between -Wl,--whole-archive and -Wl,--no-whole-archive, or call "
                  "kb_add once with one of its entries",
                  kbi_output_named("load") ? " (--load FILE shows the records of another program)" : "");
#endif
    const kbi_strings* lists[] = { &o->op, &o->impl, &o->dtype, &o->size, &o->axis };
    kbi_patterns filter, exclude;
    filter.n = exclude.n = 0;
    bool good = all->n > 0;
    for (int i = 0; good && i < KBI_COUNT(lists); i++) good = kbi_check_names(all, lists[i], i);
    for (int i = 0; good && i < all->n; i++) good = kbi_plan_entry(plan, o, all->of[i]);
    good = good && kbi_patterns_compile(&filter, &o->filter) && kbi_patterns_compile(&exclude, &o->exclude);
    const int all_n = filter.n ? plan->n : 0, patterns = filter.n + exclude.n;
    int n = 0;
    for (int i = 0; good && i < plan->n; i++) {
        const char* name = plan->cases[i].name;
        if ((!filter.n || kbi_patterns_match(&filter, name)) && !kbi_patterns_match(&exclude, name))
            plan->cases[n++] = plan->cases[i];
    }
    plan->n = n;
    kbi_patterns_free(&filter);
    kbi_patterns_free(&exclude);
    if (good && !plan->n && all_n)
        kbi_error("no name of %d cases matches '%.100s'%s; --list shows the names, -a NAME=LIST sets other values",
                  all_n, o->filter.of[0], patterns > 1 ? " and the other filters" : "");
    else if (good && !plan->n)
        kbi_error("nothing matched; --list shows the cases, --list-ops the operations");
    if (!good || !plan->n || !kbi_plan_unique(plan)) return kbi_plan_free(plan), false;
    kbi_plan_group(plan, o);
    if (o->shards > 1) kbi_plan_shard(plan, o);
    return true;
}

static void kbi_recipe_of(kbi_recipe* r, const kbi_options* o) {
    kbi_recipe_default(r);
    r->target = kbi_is(o->device, "cpu")                    ? KBI_ON_CPU
                : kbi_is(o->device, kbi_process.own_device) ? KBI_ON_OWN
                                                            : KBI_ON_GPU;
    r->mode = o->on[KBI_OPTION_rotate] ? KBI_ROTATE : o->on[KBI_OPTION_hot] ? KBI_HOT : KBI_COLD;
    r->timing = kbi_same_name(o->timer, "cupti")  ? KBI_BY_CUPTI
                : kbi_same_name(o->timer, "both") ? KBI_BY_BOTH
                : kbi_same_name(o->timer, "wall") ? KBI_BY_WALL
                                                  : KBI_BY_EVENTS;
    r->verify = !o->on[KBI_OPTION_no_verify], r->fresh = o->on[KBI_OPTION_fresh];
    r->audit = !o->on[KBI_OPTION_no_audit];
    r->seed = o->seed, r->precision = o->precision;
    r->min_time = o->min_time, r->max_time = o->max_time;
    r->warmup_time = o->warmup_time, r->warmup_samples = o->warmup_count;
    r->samples = o->iters, r->rounds = o->rounds, r->launches = o->launches;
    r->min_samples = o->min_samples, r->max_samples = o->max_samples;
    if (o->on[KBI_OPTION_thorough]) r->max_rounds = KBI_ROUNDS_LIMIT;
}

static unsigned kbi_profile_bits(bool host) {
    unsigned bits = 0;
    KBI_EACH_INSTRUMENT(i)
        if (i->on && (i->open || i->end || i->close) && (i->host || !host)) bits |= i->bit;
    return bits;
}

static kb_planned* kbi_planned_cases(const kbi_plan* plan) {
    kb_planned* cases = KBI_GROW(NULL, kb_planned, plan->n);
    for (int i = 0; i < plan->n; i++) {
        cases[i].name = plan->cases[i].name, cases[i].group = plan->cases[i].group;
        cases[i].runs = true, cases[i].record = NULL;
    }
    return cases;
}

static bool kbi_group_recorded(const kb_planned* cases, const kbi_plan* plan, int first) {
    bool any = false;
    for (int i = first, end = kbi_group_end(plan, first); cases && i < end; i++) {
        any |= cases[i].record != NULL;
        if (cases[i].runs && !cases[i].record) return false;
    }
    return any;
}

static bool kbi_recalls(void) {
    const kb_output* i = kbi_process.outputs;
    while (i && !(i->on && i->recall)) i = i->next;
    return i != NULL;
}

static bool kbi_recall(kb_planned* cases, const kbi_plan* plan, const kb_result* like) {
    KBI_EACH_OUTPUT(i)
        if (i->on && i->recall && !i->recall(cases, plan->n, like)) return false;
    for (int first = 0, end; first < plan->n; first = end) {
        bool whole = kbi_group_recorded(cases, plan, first);
        end = kbi_group_end(plan, first);
        for (int i = first; i < end && !whole; i++) cases[i].record = NULL;
    }
    return true;
}

// Returns whether a selected case has the axis that `arg`, as in -a rows=512, names.
static bool kbi_plan_has(const kbi_plan* plan, const char* arg) {
    const size_t n = strcspn(arg, "=");
    for (const kbi_case* c = plan->cases; c < plan->cases + plan->n_all; c++) {
        if (c->direction && kbi_same_name_n(arg, n, "dir", 3)) return true;
        for (int i = 0; i < c->n_params; i++)
            if (kbi_same_name_n(arg, n, c->params[i].name, strlen(c->params[i].name))) return true;
    }
    return false;
}

static bool kbi_plan_recall(kbi_plan* plan) { // for --list: removes the cases that have a record
    kb_planned* cases = kbi_planned_cases(plan);
    bool good = kbi_recall(cases, plan, NULL);
    int n = 0;
    plan->groups = 0;
    for (int i = 0; i < plan->n; i++) {
        if (cases[i].record) continue;
        plan->groups += !n || plan->cases[i].group != plan->cases[n - 1].group;
        plan->cases[n++] = plan->cases[i];
    }
    plan->n = n;
    KBENCH_FREE(cases);
    return good;
}

/*-----------------------------------------------------------------
  >>list      plan: output of --list, --list-ops and --list-sizes.
-----------------------------------------------------------------*/

static void kbi_list_cases(kbi_text* t, const kbi_plan* plan) {
    for (int i = 0; i < plan->n; i++) kbi_clean(t, plan->cases[i].name), kbi_puts(t, "\n");
}

static void kbi_list_ops(kbi_text* t, const kbi_plan* plan, bool notes) {
    for (int i = 0, end; i < plan->n; i = end) {
        kbi_set listed = KBI_BLANK;
        kbi_text text = KBI_BLANK;
        const char* operation = plan->cases[i].entry->operation;
        for (end = i; end < plan->n && kbi_is(plan->cases[end].entry->operation, operation);) end++;
        kbi_clean(t, operation);
        for (int column = 0; column < 4; column++) {
            if (column == 1 || column == 2) kbi_puts(t, " ");
            if (column == 3) kbi_puts(t, "\n");
            for (const kbi_case* c = plan->cases + i; c < plan->cases + end; c++) {
                const char* word = column == 0   ? c->direction
                                   : column == 2 ? c->entry->implementation
                                   : column == 3 ? (notes ? c->entry->note : NULL)
                                   : c->dtype    ? kb_dtype_name(c->dtype)
                                                 : NULL;
                if (!word) continue;
                text.n = 0;
                kbi_putf(&text, column < 3 ? " %s" : "    %-10s %s", column < 3 ? word : c->entry->implementation,
                         word);
                if (!kbi_set_add(&listed, kbi_hash((uint64_t)column << 60, text.s))) continue;
                kbi_clean(t, text.s);
                if (column == 3) kbi_puts(t, "\n");
            }
        }
        kbi_set_free(&listed);
        kbi_text_free(&text);
    }
}

static void kbi_list_sizes(kbi_text* t, const kbi_plan* plan) {
    kbi_set listed = KBI_BLANK;
    kbi_text line = KBI_BLANK;
    for (const kbi_case* c = plan->cases; c < plan->cases + plan->n; c++) {
        line.n = 0;
        kbi_putf(&line, "%-16s %-8s", c->entry->operation, c->size ? c->size : "-");
        for (int i = 0; i < c->n_params; i++)
            if (!kbi_is(c->params[i].name, "dtype")) kbi_put_param(&line, ' ', &c->params[i]);
        if (kbi_set_add(&listed, kbi_hash(0, line.s))) kbi_clean(t, line.s), kbi_puts(t, "\n");
    }
    kbi_text_free(&line);
    kbi_set_free(&listed);
}

static bool kbi_list(kbi_text* t, const kbi_plan* plan, const kbi_options* o) {
    if (o->on[KBI_OPTION_list]) kbi_list_cases(t, plan);
    if (o->on[KBI_OPTION_list_ops]) kbi_list_ops(t, plan, o->on[KBI_OPTION_verbose]);
    if (o->on[KBI_OPTION_list_sizes]) kbi_list_sizes(t, plan);
    return o->on[KBI_OPTION_list] || o->on[KBI_OPTION_list_ops] || o->on[KBI_OPTION_list_sizes];
}

/*-----------------------------------------------------------------
  >>run       measure: state of a running benchmark function, and interface of a device.
-----------------------------------------------------------------*/

struct kbi_run;

// `begin` returns how often the block runs before `end`, which adds samples.
typedef struct kbi_timer {
    const char* name;
    int64_t (*begin)(struct kbi_run* run);
    void (*end)(struct kbi_run* run);
    void (*replay)(struct kbi_run* run); // measures the captured graph; NULL: `begin` and `end` measure the block
    bool host_clock;                     // a sample has enough runs of the block for the host clock's resolution
    bool steady;                         // needs no warm-up
} kbi_timer;

// A function is NULL if the device cannot do it.
typedef struct kbi_backend {
    const char* name;
    bool gpu;
    bool (*open)(kbi_machine* machine, const kbi_recipe* recipe); // false: machine->why has the reason
    struct {
        void* (*alloc)(kb_place place, size_t bytes); // returns memory aligned to 256 bytes; NULL: out of memory
        void (*release)(kb_place place, void* p);
        void (*set)(void* p, int byte, size_t bytes);
        void (*copy)(void* to, const void* from, size_t bytes); // any direction; synchronous
        void (*fill)(void* p, kb_dtype dtype, int64_t n, kb_kind kind, uint64_t seed, uint32_t tensor);
        int64_t (*free_bytes)(void);
        int64_t (*pool_peak)(bool reset); // peak of stream-ordered memory; reset: sets the peak to the bytes in use
    } memory;
    struct {
        const kbi_timer* (*choose)(struct kbi_run* run);
        kb_stream (*stream)(void);
        void (*prepare)(struct kbi_run* run);    // called before each call of the benchmark function
        const char* (*wait)(void);               // waits for the device; returns its error since the last wait
        bool (*lost)(void);                      // whether the error of `wait` makes all later work fail
        const char* (*broken)(void);             // returns how the case damaged the context or kb->stream, or NULL
        void (*abandon)(void);
        void (*roof)(kbi_machine* m, int which);
    } timing;
    struct { // the audit: after `begin`, the engine calls exactly one of `end`, `compare` and `left`
        void (*begin)(struct kbi_run* run);
        void (*end)(struct kbi_run* run);
        void (*compare)(struct kbi_run* run);
        void (*left)(struct kbi_run* run);
        void (*forget)(struct kbi_run* run);
        int64_t (*repeats)(struct kbi_run* run, int replicas);      // launches of the block per graph; 0: unsupported
        void (*repeat)(struct kbi_run* run, int which, bool begin); // captures repeats() launches (0), or 2x that (1)
    } capture;
    struct {
        double (*clock)(void);                         // SM clock in MHz; NaN: unknown
        void (*sense)(kbi_measured* m);
        void (*mark)(struct kbi_run* run, bool begin);
        void (*throttled)(kbi_measured* m);            // reads only the throttling state, which is quick
    } sensors;
    const kb_instrument* (*inspect)(void);
} kbi_backend;

enum { KBI_GUARD = 4096, KBI_GUARD_BYTE = 0xA5, KBI_POISON = 0xFF };
typedef struct kbi_block { // layout in memory: guard, data padded to a multiple of 256 bytes, guard
    char* data;            // start of the data; NULL: the block is not allocated
    char* saved;           // copy of the data from the start of the timed loop; NULL: no copy
    size_t bytes, shift;   // bytes: size of the data; shift: bytes before the first guard
    kb_place place;
    bool shared;
    bool output;  // whether the first call of the function, after its timed loop, read the data
    bool changed; // whether the timed block changed the data after they were saved
} kbi_block;

// Buffers that the implementations of a comparison use in turn, because different addresses change the time of a
// small kernel by 1 to 3 %. Before another implementation runs, the buffers' contents are saved, and that
// implementation's contents are restored.
typedef struct kbi_shared_buffers {
    const struct kbi_backend* backend;
    char *base, *allocated;
    size_t stride;            // bytes from one --rotate copy of the data to the next
    struct kbi_memory* owner;
} kbi_shared_buffers;

typedef struct kbi_memory {
    kbi_block* blocks;
    int n, n_known;                   // n: blocks allocated by this call; n_known: entries of `blocks`
    kbi_shared_buffers* shared;       // NULL: each block is a separate allocation
    size_t layout_bytes, layout_peak; // bytes in shared buffers: of this call; maximum of all calls of a function
    bool separate;                    // a block did not fit into the shared buffers of the checked call
    struct kbi_memory* original;      // for a copy made by --rotate: memory of the copied case; otherwise NULL
    int copies;                       // number of copies in the shared buffers, including the original; 0 means 1
    size_t copy_offset, used_bytes;   // bytes before this copy; bytes of all copies (only in the original)
    char* saved;
    uint64_t placement;
    bool keep;                        // the next call of the function reuses the blocks of this call
    int64_t output_bytes, saved_bytes;
    bool unsaved;                      // an output was not saved, because memory was short
    int64_t device, device_peak, host, host_peak; // bytes allocated
    int64_t free_before, free_lowest; // free device bytes: before the call; minimum since then; KB_NONE: unknown
    int64_t pool_before;              // bytes in use in CUDA's memory pool before the call
} kbi_memory;

// clang-format off
typedef enum kbi_unit {
    KBI_NO_UNIT, KBI_CHECKED, KBI_AUDITED, KBI_CAPTURED, KBI_WARM, KBI_SAMPLE, KBI_COMPARED, KBI_FINAL, KBI_PROFILED
} kbi_unit;
typedef enum kbi_phase { // phases of a case; PROFILE is in an extra call of the benchmark function
    KBI_PHASE_CHECK, KBI_PHASE_AUDIT, KBI_PHASE_WARM, KBI_PHASE_SAMPLE, KBI_PHASE_SINGLES, KBI_PHASE_COMPARE,
    KBI_PHASE_FINAL, KBI_PHASE_PROFILE, KBI_PHASE_DONE
} kbi_phase;
// clang-format on

typedef enum kbi_command { // commands that a comparison sends to a case
    KBI_UNMANAGED,         // not interleaved: the case itself decides when it has enough samples
    KBI_HOLD,              // suspend the function between audit and warm-up
    KBI_CAPTURE,           // run the block once in the stream capture that is open, then suspend
    KBI_SLOT,              // take samples until their number is slot_end, then suspend
    KBI_FINISH             // take no more samples
} kbi_command;

typedef struct kbi_schedule {
    kbi_command command;
    bool interleaved;
    bool is_copy;         // this is a copy for --rotate or the A/A control, and makes no record
    kbi_fiber* fiber;     // stack of the function; if NULL, the function suspends by returning, and is called again
    bool suspended;
    int64_t slot_end;     // number of samples at which the case's slot in this round ends
    int discard;
    double* discarded_ns;
} kbi_schedule;

enum { KBI_WINDOW = 512 };
typedef struct kbi_window {
    double ns[KBI_WINDOW];
    int n;
    int64_t start_ns;
    double median, clock;
} kbi_window;

typedef struct kbi_body_call {
    kbi_phase phase, last;     // current phase; phase after which this call ends
    kbi_unit unit, next_unit;
    bool loop_entered, looped;
    bool sampled, ended;       // KB_SAMPLE is used; the loop of KB_SAMPLE has ended
    bool restored;             // the last run of the block began with restored outputs
    bool fresh;                // --fresh: new inputs in the memory of the previous call
    const char* forbidden_call; // kb_ function that the timed block called; NULL: none
    int profile_runs, marked;  // runs left to profile; number of the case, for marks in profiles
    uint32_t fills, zeros;
    int64_t warm_units, phase_start_ns;
    kbi_window window;
} kbi_body_call;

typedef struct kbi_work {
    bool host, checked;
    bool by_pointer;      // the block is called by pointer, so the compiler cannot remove it
    int line;
    unsigned expect;      // KB_EXPECT_ bits
    int64_t estimate_ns;  // shortest time of a run so far
    int64_t nodes, recorded;    // nodes of the captured graph; nodes for which CUPTI makes records
    bool on_device, captured;   // every memory copy stays on the device; the audit is capturing the block
    int empty_kernel;           // index of the empty kernel with the block's launch shape
    uint64_t shape;             // kbi_work_hash of the captured block; 0: unknown
    void* graph;                // graph captured by the backend, for timers that replay it
    int busy_checks, busy;      // number of checks after the block; number that found the device busy
    bool repeat_audit;
    const kbi_verdict* verdict;
} kbi_work;

enum { KBI_TRACED = 256 };
typedef struct kbi_sampling {
    const kbi_timer* timer;
    int64_t next_check;           // number of samples at which the precision is checked next
    bool open, gated;             // the sample needs further launches; launches can wait behind a gate
    int alarms, missed;           // consecutive samples: ended by the watchdog; not fully recorded by CUPTI
    int stop_count;               // kbi_meter.stops at the start of the sample
    int launches;
    int64_t batch;                // runs of the block between two readings of the host's clock
    bool resolved;                // a batch takes long enough for the clock's resolution
    kbi_load load;
    double sum_ns;
    int64_t sum_runs, n_traced;   // sum_runs: runs in sum_ns; n_traced: samples that CUPTI timed
    bool traced;
    double traced_ns[KBI_TRACED];
} kbi_sampling;

enum { KBI_EARLY = 4, KBI_SINGLES = 24, KBI_COMPARISONS = 4 };
typedef struct kbi_work_change {
    double early_ns[KBI_EARLY];    // first launches of the warm-up, each timed alone
    int n_early;
    double early_mhz;              // SM clock at the first warm-up launch; NaN: unknown
    double single_ns[KBI_SINGLES]; // consecutive launches after the samples, each timed alone
    int compared;                  // number of launches whose captured graph was compared with the audit's
    char finding[160];             // message about work that changed; "": no change found
} kbi_work_change;

// Messages about a case, in the order of sending; a worker process sends messages to its supervisor.
typedef enum kbi_message_type {
    KBI_HELLO = 1, // data: kbi_machine, after the device was opened or a peak measured
    KBI_ENTER,
    KBI_BEAT,      // sign of life; if kbi_tell's index is 1, --timeout ignores the time up to the next message
    KBI_STATUS,    // data: kbi_measured of a failed or skipped case; valid even if the process then ends
    KBI_RESULT,    // data: kbi_measured, whose arrays the receiver frees
    KBI_FOUND,     // data: kbi_inside, a profile, which the receiver frees
    KBI_DONE       // the job is done; if the index is 0, this process cannot run another job
} kbi_message_type;

typedef struct kbi_sink {
    void (*tell)(void* to, kbi_message_type type, int index, void* what);
    void* to;
} kbi_sink;

static void kbi_tell(const kbi_sink* sink, kbi_message_type type, int index, void* what) {
    if (sink) sink->tell(sink->to, type, index, what);
}

typedef struct kbi_run {
    kb_state kb;
    const kbi_recipe* recipe;
    const kbi_backend* backend;
    kbi_machine* machine; // its peaks are measured when first needed
    const kbi_case* bench_case;
    const kbi_sink* sink;      // NULL: messages are dropped
    int index;                 // index of the case in the plan; -1: this run is a copy of a case
    int64_t start_ns, beat_ns;
    uint64_t ranges[2];        // ranges of kbi_show_range: case and phase
    kbi_schedule schedule;
    kbi_body_call call;
    kbi_work work;
    kbi_sampling sampling;
    kbi_work_change work_change;
    kbi_memory memory;
    kbi_measured m;
} kbi_run;

// Ends the current range in every profiler that shows ranges. Unless name is NULL, begins a range of this name.
static void kbi_show_range(uint64_t* range, const char* name, const char* category) {
    KBI_EACH_INSTRUMENT(i)
        if (i->range) i->range(range, name, category);
}

static bool kbi_failed(const kbi_run* run) { return run->m.status == KB_FAILED; }
static bool kbi_lost(const kbi_run* run) {
    return kbi_failed(run) && run->backend->timing.lost && run->backend->timing.lost();
}
static int64_t kbi_free_bytes(const kbi_backend* b) {
    return b->memory.free_bytes ? b->memory.free_bytes() : KB_NONE;
}
static int64_t kbi_pool_peak(const kbi_backend* b, bool reset) {
    return b->memory.pool_peak ? b->memory.pool_peak(reset) : 0;
}
static double kbi_clock_mhz(const kbi_run* run) {
    return run->backend->sensors.clock ? run->backend->sensors.clock() : (double)NAN;
}
static void kbi_sense(kbi_run* run) {
    if (run->backend->sensors.sense) run->backend->sensors.sense(&run->m);
}
static void kbi_raise(kbi_run* run, kb_flag flag) { run->m.flags |= (uint64_t)1 << flag; }
static void kbi_beat(kbi_run* run, bool machine) { kbi_tell(run->sink, KBI_BEAT, machine, NULL); }

static void kbi_note_call(kb_state* kb, const char* name, bool host) {
    kbi_run* run = kb->run;
    bool timed = run->call.unit != KBI_NO_UNIT && (!host || run->work.host || !run->backend->gpu);
    if (timed && !run->call.forbidden_call) run->call.forbidden_call = name;
}

static void kbi_set_status(kbi_run* run, kb_status status) {
    bool first = run->m.status == KB_OK;
    run->m.status = (int32_t)status;
    if (first && run->index >= 0) kbi_tell(run->sink, KBI_STATUS, run->index, &run->m);
}

static void kbi_vstop(kbi_run* run, kb_flag flag, const char* format, va_list list) {
    kbi_raise(run, flag);
    if (!kbi_failed(run)) kbi_vsay(run->m.message, sizeof run->m.message, format, list);
    kbi_set_status(run, KB_FAILED);
}

KBI_PRINTF(3, 4) static void kbi_stop(kbi_run* run, kb_flag flag, const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_vstop(run, flag, format, list);
    va_end(list);
}

static void kbi_stop_on_error(kbi_run* run, const char* when) {
    const char* error = run->backend->timing.wait ? run->backend->timing.wait() : NULL;
    if (!error) return;
    if (strstr(error, "MemoryAllocation")) kbi_raise(run, KB_FLAG_OOM); // the benchmark function ran out of memory
    kbi_stop(run, KB_FLAG_CUDA_ERROR, "%s %s", error, when);
}

static bool kbi_timed_alone(const kbi_run* run) {
    bool early = run->call.unit == KBI_WARM && run->work_change.n_early < KBI_EARLY;
    return early || run->call.phase == KBI_PHASE_SINGLES;
}

static void kbi_add_sample(kbi_run* run, double ns) {
    if (run->call.unit == KBI_WARM) {
        if (ns < (double)run->work.estimate_ns) run->work.estimate_ns = (int64_t)ns; // ignores runs that load code
        if (run->work_change.n_early < KBI_EARLY) run->work_change.early_ns[run->work_change.n_early++] = ns;
        run->call.window.ns[run->call.window.n++ % KBI_WINDOW] = ns;
    } else if (run->call.unit == KBI_SAMPLE && run->schedule.discard > 0) {
        if (run->schedule.discarded_ns) *run->schedule.discarded_ns++ = ns;
        run->schedule.discard--;
    } else {
        if (run->m.n % 256 == 0)
            run->m.samples = KBI_GROW(run->m.samples, double, run->m.n + 256);
        run->m.samples[run->m.n++] = ns;
    }
}

/*-----------------------------------------------------------------
  >>meter     measure: the state that a measuring process keeps from one case to the next.
-----------------------------------------------------------------*/

#if KBI_CUDA
enum { KBI_TOUCHED = 1 << 20, KBI_WAKING = 4, KBI_LAUNCHES = 8, KBI_GATE_NODES = 256 };
enum { KBI_GATE_SECONDS = 1, KBI_ALARMS = 2, KBI_MISSES = 2, KBI_EMPTY_KERNELS = 14 };
// clang-format off
enum kbi_function {
    KBI_F_NULL, KBI_F_READ, KBI_F_COPY, KBI_F_WRITE, KBI_F_CLOCK, KBI_F_FILL, KBI_F_FMA, KBI_F_SPIN, KBI_F_COUNT
};
// clang-format on
static const char* const kbi_function_names[] = { "kbi_null",  "kbi_read", "kbi_copy", "kbi_write",
                                                  "kbi_clock", "kbi_fill", "kbi_fma",  "kbi_spin" };

// Argument sizes of the empty kernels, in bytes. Fetching evicted arguments adds up to 0.6 us to event times.
static const int kbi_empty_bytes[] = { 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096 };

typedef struct kbi_shape {
    int blocks, threads;
    int shared, cluster;   // bytes of shared memory per block; blocks per cluster
    int which;
    int writes;            // 1: an argument points to device memory, which the kernel may write
} kbi_shape;

// Types of driver functions, by the driver's ABI. The CUDA runtime finds the functions, so -lcuda is not needed.
typedef int (*kbi_cu_launch)(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, kb_stream stream, void** arguments, void** extra);
typedef struct kbi_cu_attribute { // the driver's CUlaunchAttribute
    int id, gap;
    unsigned value[16];
} kbi_cu_attribute;
typedef struct kbi_cu_config { // the driver's CUlaunchConfig
    unsigned grid[3], block[3], shared;
    kb_stream stream;
    kbi_cu_attribute* attributes;
    unsigned n;
} kbi_cu_config;
typedef int (*kbi_cu_launch_as)(const kbi_cu_config* config, void* function, void** arguments, void** extra);
typedef int (*kbi_cu_get)(int* value, int attribute, void* function);
enum { KBI_CU_MAX_SHARED = 8, KBI_CU_CLUSTER_X = 11, KBI_CU_ANY_CLUSTER = 14, KBI_CU_LAUNCH_CLUSTER = 4 };
enum { KBI_CU_SHARED = 1, KBI_CU_LOCAL = 3, KBI_CU_REGISTERS = 4 };
typedef struct kbi_cu_kernel { // CUDA_KERNEL_NODE_PARAMS, with room for fields of later versions
    void* function;
    unsigned grid[3], block[3], shared;
    void **given, **extra, *more[24];
} kbi_cu_kernel;
typedef int (*kbi_cu_wait)(kb_stream stream, unsigned long long address, unsigned value, unsigned flags);

typedef struct kbi_gpu {
    kb_stream stream;
    cudaEvent_t start, stop;
    volatile unsigned* flag; // the gate, in mapped host memory; 0: closed, 1: open
    void* device_flag;
    uint64_t *clock, *device_clock;
    void* functions[(int)KBI_F_COUNT + (int)KBI_EMPTY_KERNELS];
    unsigned empties;
    kbi_cu_launch launch;
    kbi_cu_launch_as launch_as;       // NULL: the driver cannot launch clusters
    kbi_cu_wait wait_value;           // NULL: there is no launch gate
    int (*number_of)(kb_stream stream, unsigned long long* number); // gets a stream's number, unique per process
    unsigned long long stream_number;                               // 0: unknown
    char *clean, *touch;              // buffers: evicting L2 reads `clean`; empty kernels write to `touch`
    size_t clean_bytes;
    int multiprocessors, max_threads, max_shared; // max_threads: per multiprocessor; max_shared: bytes per block
    int all_registers, all_shared, most_blocks;   // registers, shared bytes and blocks per multiprocessor
    int shared_taken;
    int at, size;                                 // index of the next launch of a sample; launches per sample
    double ns[KBI_LAUNCHES_LIMIT];
    bool gated, closed; // launches of the sample wait behind a gate; the gate is closed
    bool ungated;       // no gate: a tool waits for each launch, or the GPU has no stream memory operations
    bool persisting;    // the program has set aside a part of L2 for persisting accesses
    int alarms;         // consecutive launches of an empty kernel during which the watchdog fired
    char error[256];
    volatile sig_atomic_t alarmed;
} kbi_gpu;

typedef struct kbi_nvml { // functions of NVML, found by dlopen because nvml.h is often not installed
    void* device;
    int (*init)(void);
    int (*handle)(const char*, void**);
    int (*driver)(char*, unsigned);
    int (*mig)(void*, unsigned*, unsigned*);
    int (*clock)(void*, int, unsigned*);
    int (*power)(void*, unsigned*);
    int (*energy)(void*, unsigned long long*);
    int (*temperature)(void*, int, unsigned*);
    int (*reasons)(void*, unsigned long long*);
    int (*processes)(void*, unsigned*, void*);
} kbi_nvml;

// Layout of CUpti_ActivityKernel4 and later versions, which have the cluster fields since CUPTI 18.
typedef struct kbi_activity {
    uint32_t kind;
    uint8_t cache[2];
    uint16_t registers;
    uint32_t cache_asked, cache_used;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, dynamic_shared;
    uint32_t local, local_total, correlation;
    int64_t grid_id;
    const char* name;
    const void* reserved;
    uint64_t queued, submitted;
    uint8_t launch[4];
    uint32_t shared_used;
    uint64_t node;
    uint32_t limit, graph;
    const void* window;
    uint32_t channel, channel_type;
    int32_t cluster[3];
} kbi_activity;
typedef struct kbi_activity_copy { // begin of CUpti_ActivityMemcpy4, ActivityMemset3 and later versions
    uint32_t kind;
    uint8_t which, from, to, flags; // value of a memset
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
} kbi_activity_copy;
enum { KBI_ACTIVITY_COPY = 1, KBI_ACTIVITY_SET = 2, KBI_ACTIVITY_DRIVER = 4, KBI_ACTIVITY_RUNTIME = 5 };
enum { KBI_ACTIVITY_KERNEL = 10, KBI_SPANS = 1 << 15, KBI_ACTIVITY_BYTES = 1 << 20 };
typedef struct kbi_span {
    uint64_t start, end;
} kbi_span;
typedef struct kbi_cupti {
    int (*callbacks)(void (*request)(uint8_t**, size_t*, size_t*),
                     void (*done)(void*, uint32_t, uint8_t*, size_t, size_t));
    int (*enable)(int kind);
    int (*flush)(uint32_t flags);
    int (*next)(uint8_t* buffer, size_t valid, kbi_activity** record);
    int (*disable)(int kind);
    int (*time)(uint64_t* ns); // gets the time on the clock of CUPTI's records
    int (*version)(uint32_t* version);
    int (*text)(int error, const char** text);
    int (*call)(int domain, uint32_t id, const char** name);
    int (*dropped)(void* context, uint32_t stream, size_t* n);
    int (*subscribe)(void** subscriber, void (*called)(void*, int, uint32_t, const void*), void* user);
    int (*follow)(uint32_t on, void* subscriber, int domain); // domain 1: driver functions; 2: runtime functions
    void* library;
    bool loaded, open;                        // CUPTI is attached; kernel records are enabled
    int error;                                // error of the last attempt to enable CUPTI; 0: none
    void (*look)(const kbi_activity* record); // called with every record; NULL: records go to spans
    kbi_span* spans;
    int n;
} kbi_cupti;

enum { KBI_RECENT = 64, KBI_EMPTIES = 2 };
typedef struct kbi_readings {
    double ns[KBI_RECENT];
    int64_t n;
} kbi_readings;
typedef struct kbi_empty {
    kbi_shape shape;
    kbi_readings read[KBI_EVENT_MODES][2]; // event times; [0]: without a gate; [1]: behind a gate
    double most[KBI_EVENT_MODES];          // upper bound of the duration in ns; 0: not computed yet
} kbi_empty;
typedef struct kbi_calibration {
    kbi_empty* empties; // empties[0] has one warp and one argument, and writes memory
    int n_empties;
    double graph_floor, empty_pair, quantum;
    double row;                              // ns per kernel in a graph of kernels like empties[0]; NaN: unknown
    kbi_reference truth;
    bool measured; // `truth` was measured by CUPTI
} kbi_calibration;
#endif

enum { KBI_INSIDE_RUNS = 8 };
typedef struct kbi_insight {
    const kb_instrument* by; // current instrument
    bool open, again, over;  // `by` is open; `by` needs another run; all instruments are done
    kbi_text events, counters, texts;
    kbi_map names; // offsets in texts
    int passes;
    int64_t window[KBI_INSIDE_RUNS][2], began;
    kbi_inside head; // head.runs does not count the first run; -1: the first run has not ended
} kbi_insight;

static struct kbi_meter {
    kbi_roofs roofs, core; // peaks of the device and of one core that another process of this run measured
    bool roofs_known;
    int64_t wall_start, wall_end;
    double wall_step, wall_bias;    // ns: tick of the host's clock; time between two consecutive readings
    volatile sig_atomic_t stops;    // how often the process was stopped and continued
    int64_t stopped_ns;             // total time of samples in which the process was stopped
    kbi_turn turn;
    int64_t undisturbed, disturbed;
    bool thread_clock_coarse;       // the thread's clock is too coarse to detect disturbed samples
    char folder[4096];              // working directory of the first call, restored for later ones; "": unknown
    volatile uintptr_t* escaped;    // in shared memory: case whose function returned in a forked child; 0: none
    uintptr_t running_case;
    kbi_insight insight;
#if KBI_CUDA
    kbi_gpu gpu;
    kbi_nvml nvml;
    kbi_cupti cupti;
    kbi_calibration calibration;
#endif
} kbi_meter;

KBI_INLINE void kbi_insight_count(const char* name, const char* unit, double value) {
    kbi_text* counters = &kbi_meter.insight.counters;
    const kbi_counter* known = (const kbi_counter*)(const void*)counters->s;
    kbi_counter c;
    for (size_t i = 0; i < counters->n / sizeof c; i++)
        if (kbi_is(known[i].name, name)) return;
    if (!kbi_finite(value)) return;
    memset(&c, 0, sizeof c);
    snprintf(c.name, sizeof c.name, "%.60s", name);
    snprintf(c.unit, sizeof c.unit, "%s", unit);
    c.value = value;
    kbi_put(counters, (const char*)&c, sizeof c);
}

#define kbi_insight_say(...) kb_not_found(NULL, __VA_ARGS__)
void kb_not_found(kb_state* kb, const char* format, ...) {
    va_list list;
    (void)kb;
    va_start(list, format);
    kbi_vsay(kbi_meter.insight.head.message, sizeof kbi_meter.insight.head.message, format, list);
    va_end(list);
}

void kb_found(kb_state* kb, const char* name, double value, const char* unit) {
    (void)kb;
    if (*name && strlen(name) < 60 && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        kbi_insight_count(name, unit ? unit : "", value);
    else
        kbi_insight_say("kb_found: a name has letters a-z, digits and _, not '%.40s'", name);
}

/*-----------------------------------------------------------------
  >>process_state measure: detects what a function changed in its process; that process ends.
-----------------------------------------------------------------*/

#ifndef __cplusplus
extern char** environ;
#endif

typedef struct kbi_process_state {
    uint64_t settings;
    int64_t threads, files, memory; // numbers of threads and open files (lowest free descriptor); resident bytes
} kbi_process_state;

static struct kbi_process_start {
    bool known;
    fenv_t floats;
    kbi_process_state state;
} kbi_process_start;

static uint64_t kbi_status_number(const char* status, const char* name, int base) {
    const char* line = strstr(status, name);
    return line ? strtoull(line + strlen(name), NULL, base) : 0;
}

static kbi_process_state kbi_process_state_now(void) {
    const uint64_t library = ~((uint64_t)7 << 31); // all signals except those that the C library's threads use
    const char* locale = setlocale(LC_ALL, NULL);
    const mode_t mode = umask(077);
    uint64_t settings[4 + 6 + 2 * 16], *next = settings;
    kbi_process_state now;
    kbi_cpus cpus;
    char status[4096];
    memset(&now, 0, sizeof now);
    memset(settings, 0, sizeof settings);
    umask(mode);
    int file = kbi_open_file("/proc/self/status", O_RDONLY);
    ssize_t n = file < 0 ? -1 : kbi_read_some(file, status, sizeof status - 1);
    if (file >= 0) close(file);
    status[KBI_MAX(n, (ssize_t)0)] = 0;
    now.files = file < 0 ? INT32_MAX : file;
    now.threads = (int64_t)kbi_status_number(status, "\nThreads:", 10);
    now.memory = (int64_t)kbi_status_number(status, "\nVmRSS:", 10) * 1024;
    *next++ = mode | (uint64_t)(unsigned)getpriority(PRIO_PROCESS, 0) << 32;
    *next++ = kbi_status_number(status, "\nSigBlk:", 16);
    *next++ = kbi_status_number(status, "\nSigIgn:", 16) & library;
    *next++ = kbi_status_number(status, "\nSigCgt:", 16) & library;
    for (int i = 0; i < 3; i++) {
        struct stat about;
        bool open = fstat(i, &about) == 0;
        *next++ = open ? (uint64_t)about.st_dev : UINT64_MAX;
        *next++ = open ? (uint64_t)about.st_ino : UINT64_MAX;
    }
    for (int i = 0; i < 16; i++, next += 2) syscall(SYS_prlimit64, 0, i, NULL, next); // RLIM_NLIMITS
    kbi_cpus_allowed(&cpus);
    now.settings = kbi_hash_bytes(14695981039346656037u, (const char*)settings, sizeof settings);
    now.settings = kbi_hash_bytes(now.settings, (const char*)&cpus, sizeof cpus);
    now.settings = kbi_hash(now.settings, locale ? locale : "");
    for (char** v = environ; v && *v; v++) now.settings = kbi_hash_bytes(now.settings, *v, strlen(*v) + 1);
#ifdef LC_GLOBAL_LOCALE
    now.settings ^= (uint64_t)(uintptr_t)uselocale((locale_t)0);
#endif
    return now;
}

static void kbi_process_restore(void) {
    const struct itimerval none = { { 0, 0 }, { 0, 0 } };
    setitimer(ITIMER_REAL, &none, NULL);
    setitimer(ITIMER_VIRTUAL, &none, NULL);
    setitimer(ITIMER_PROF, &none, NULL);
    if (kbi_process_start.known) fesetenv(&kbi_process_start.floats);
}

static double kbi_physical_bytes(void) { return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE); }
static int64_t kbi_other_threads_ns(void) {
    return kbi_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - kbi_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

// Returns how benchmark functions changed this process; NULL: the next case can run in this process.
static const char* kbi_process_changed(bool gpu) {
    kbi_process_restore();
    if (!kbi_process_start.known) return NULL;
    const kbi_process_state *start = &kbi_process_start.state, now = kbi_process_state_now();
    if (now.settings != start->settings)
        return "it changed the environment, locale, signals, processors, limits, umask, priority or standard files";
    if (now.files > start->files + 64) return "it left files open";
    if ((double)(now.memory - start->memory) > kbi_physical_bytes() / 16) return "it left memory allocated";
    if (now.threads <= start->threads) return NULL;
    int64_t ran = kbi_other_threads_ns();
    if (gpu) kbi_readable(-1, 5); // waits 5 ms, during which CUDA's own threads sleep
    return gpu && kbi_other_threads_ns() - ran < 2500000 ? NULL : "it left threads running";
}

/*-----------------------------------------------------------------
  >>host      measure: the cpu backend, and the timer by the host's clock.
-----------------------------------------------------------------*/

// --- the wall timer: host clock around a batch of runs, for host work and for work that must synchronise ---

// Sorts n measured durations, which differ slightly, and returns the clock's tick in ns. The durations cluster at
// multiples of the tick, with a jitter of 1 or 2 ns. Returns 1 if there are no clusters, 0 if all durations are
// equal.
static double kbi_clock_lattice(double* ns, int n) {
    double step = INFINITY, last = NAN;
    kbi_sort(ns, n);
    if (ns[n - 1] - ns[0] < 1) return 0;
    for (int i = 0, begin = 0; i < n; i++) {
        if (i < n - 1 && ns[i + 1] - ns[i] <= 2.5) continue;
        const double middle = ns[begin + (i - begin) / 2];
        if (i - begin + 1 >= n / 50) { // ignores clusters of less than 2 % of the values
            if (!kbi_nan(last)) step = KBI_MIN(step, middle - last);
            last = middle;
        }
        begin = i + 1;
    }
    return kbi_finite(step) ? step : 1;
}

static double kbi_clock_step(void) {
    double ns[1000];
    volatile int spent = 0;
    for (int i = 0; i < KBI_COUNT(ns); i++) {
        int64_t begin = kbi_now();
        for (int k = 0; k < i % 41; k++) spent = spent + 1;
        ns[i] = (double)(kbi_now() - begin);
    }
    double step = kbi_clock_lattice(ns, KBI_COUNT(ns));
    if (ns[KBI_COUNT(ns) / 2] > 0) return step > 0 ? step : 1e9;
    for (int i = 0; i < KBI_COUNT(ns); i++)
        if (ns[i] > 0) return ns[i];
    return 1e9;
}

static void kbi_serialise(void) { // delays later instructions until earlier ones have completed
#if defined(__x86_64__) || defined(__i386__)
    __asm__ __volatile__("lfence" : : : "memory");
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" : : : "memory");
#endif
}

// Returns the overhead of timing a block, in ns: the time between two clock readings without work between them.
// Means of batches resolve times below the clock's tick.
static double kbi_measure_wall_bias(void) {
    double mean[20], scratch[KBI_COUNT(mean)];
    for (int i = 0; i < KBI_COUNT(mean); i++) {
        int64_t sum = 0;
        for (int k = 0; k < 50; k++) {
            kbi_meter.turn = kbi_turn_now();
            int64_t begin = kbi_now();
            kbi_serialise();
            sum += kbi_now() - begin;
            kbi_meter.turn = kbi_turn_now();
        }
        mean[i] = (double)sum / 50;
    }
    return KBI_MAX(kbi_median_of(mean, KBI_COUNT(mean), scratch), 1e-3); // 0 would mean that the bias is unknown
}

// Returns what kb_keep keeps between the KB_TIME in source line `line` and the next benchmark: nothing, constants,
// or values. Unless values are kept, the compiler may remove or precompute the block.
static int32_t kbi_kept_values(const kb_build* build, int line) {
    int end = line + 100, constants = 0, places = 0;
    for (const int32_t* m = build->marks; m < build->marks_end; m++)
        if (*m % 2 && *m / 8 > line) end = KBI_MIN(end, *m / 8);
    for (const int32_t* m = build->marks; m < build->marks_end; m++) {
        if (*m % 2 || *m / 8 < line || *m / 8 >= end) continue;
        places++;
        constants += *m / 4 % 2;
    }
    return !places ? KBI_KEPT_NOTHING : constants == places ? KBI_KEPT_CONSTANTS : KBI_KEPT_VALUES;
}

// Counts stops (SIGSTOP, Ctrl-Z) of the process: a sample that was interrupted by a stop is taken again.
static struct sigaction kbi_sigcont; // the program's own action, whose handler is called, too
static void kbi_count_stop(int number, siginfo_t* info, void* context) {
    kbi_meter.stops = kbi_meter.stops + 1;
    if (kbi_sigcont.sa_flags & SA_SIGINFO)
        kbi_sigcont.sa_sigaction(number, info, context);
    else if (kbi_sigcont.sa_handler != SIG_DFL && kbi_sigcont.sa_handler != SIG_IGN)
        kbi_sigcont.sa_handler(number);
}
// step: 1 at the start of a measurement, -1 at its end; measurements can nest. After the outermost measurement,
// the program's SIGCONT action is restored, unless the program has replaced kbench's action.
static void kbi_watch_stops(int step) {
    static int open;
    struct sigaction now;
    const bool first = step > 0 && !open;
    open += step;
    sigaction(SIGCONT, NULL, &now);
    if (first) {
        kbi_sigcont = now;
        now.sa_flags = (now.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO | SA_RESTART;
        now.sa_sigaction = kbi_count_stop;
        sigaction(SIGCONT, &now, NULL);
    } else if (!open && now.sa_flags & SA_SIGINFO && now.sa_sigaction == kbi_count_stop) {
        sigaction(SIGCONT, &kbi_sigcont, NULL);
    }
}
static bool kbi_waits_for_device(const kbi_run* run) { return run->backend->gpu && !run->work.host; }

static int64_t kbi_wall_runs(const kbi_run* run) {
    if (run->call.sampled || kbi_timed_alone(run)) return 1;
    return run->recipe->launches ? run->recipe->launches : run->sampling.batch;
}

static int64_t kbi_wall_begin(kbi_run* run) {
    if (!(kbi_meter.wall_bias > 0)) kbi_meter.wall_bias = kbi_measure_wall_bias();
    if (!(kbi_meter.wall_step > 0)) kbi_meter.wall_step = kbi_clock_step();
    if (kbi_meter.wall_step > 20000)
        kbi_stop(run, KB_FLAG_BAD_CASE,
                 "the resolution of the host's clock exceeds 20 us, which is too coarse to time the block");
    if (kbi_waits_for_device(run)) kbi_stop_on_error(run, "before the timed block");
    run->sampling.stop_count = kbi_meter.stops;
    if (!kbi_waits_for_device(run) || kbi_timed_alone(run)) kbi_meter.turn = kbi_turn_now();
    return kbi_wall_runs(run); // kbi_next reads the clock
}

// Returns whether another thread held the processor during a sample of host work: the thread's clock stood still,
// although the thread did not wait. Samples of 10 ms always lose the processor for a while, and are accepted. If a
// third of the shorter samples are disturbed, the cause is the machine or the block itself; all samples are then
// accepted.
static bool kbi_wall_lost(const kbi_run* run, double ns) {
    struct kbi_meter* const meter = &kbi_meter;
    if (run->call.unit != KBI_SAMPLE || meter->thread_clock_coarse || kbi_waits_for_device(run)) return false;
    const kbi_turn now = kbi_turn_now();
    const double ran = (double)(now.ran - meter->turn.ran);
    const bool disturbed = ns - ran > KBI_MAX(0.01 * ns, 1000) && now.waits == meter->turn.waits;
    meter->thread_clock_coarse = ran <= 0;
    if (ran <= 0 || ran >= 1e7 || now.waits < 0) return false;
    if (!disturbed) return meter->undisturbed++, false;
    return 2 * ++meter->disturbed <= meter->undisturbed + 8;
}

// During the warm-up, the runs per batch increase until a batch takes 20 us and 1000 ticks of the clock.
static void kbi_wall_end(kbi_run* run) {
    enum { KBI_BATCH_MAX = 1 << 30 };
    kbi_sampling* s = &run->sampling;
    int64_t now = kbi_meter.wall_end;
    if (kbi_waits_for_device(run)) {
        kbi_stop_on_error(run, "in the timed loop");
        now = kbi_now();
    }
    double ns = (double)(now - kbi_meter.wall_start), target = KBI_MAX(20000, 1000 * kbi_meter.wall_step);
    int64_t runs = kbi_wall_runs(run), launches = run->recipe->launches ? run->recipe->launches : runs;
    bool warm = run->call.unit == KBI_WARM, stopped = s->stop_count != kbi_meter.stops;
    if (stopped) { // the phase does not include the time for which the process was stopped
        kbi_meter.stopped_ns += now - kbi_meter.wall_start;
        run->call.phase_start_ns += now - kbi_meter.wall_start;
    } else if (kbi_timed_alone(run)) { // to detect changed work, only the thread's own CPU time counts
        double busy = KBI_MIN(ns, (double)(kbi_turn_now().ran - kbi_meter.turn.ran));
        kbi_add_sample(run, warm ? ns : busy);
        if (warm) run->work_change.early_ns[run->work_change.n_early - 1] = busy;
        return;
    }
    if (stopped || kbi_wall_lost(run, ns)) {
        run->m.retaken++;
        return;
    }
    s->sum_ns += ns;
    s->sum_runs += runs;
    s->open = s->sum_runs < launches;
    if (s->open) return;
    kbi_add_sample(run, s->sum_ns / (double)launches);
    s->sum_ns = 0, s->sum_runs = 0;
    if (warm && !run->call.sampled && !run->recipe->launches && ns < target && s->batch < KBI_BATCH_MAX) {
        double factor = ns > 0 ? target / ns : 10;
        s->batch = (int64_t)((double)s->batch * KBI_MIN(KBI_MAX(factor * 1.1, 2), 1000));
        run->call.window.n = 0; // drops the times of smaller batches: they are not comparable
    } else {
        s->resolved = true;
    }
    run->m.bias_ns = run->m.floor_ns = kbi_meter.wall_bias / (double)runs;
    // The time of a single run is a multiple of the clock's tick, so the median is known within half a tick. The
    // processor may start a block before it reads the clock; the 95 % bound of this effect is half of the time
    // between two readings. Both bounds are added, because their root sum of squares is too small: on a busy
    // machine, the error of 13 ns blocks reached 1.1 times the root sum of squares.
    if (run->call.sampled) {
        run->m.step_ns = kbi_meter.wall_step / (double)KBI_MAX(run->recipe->launches, (int64_t)1);
        run->m.bias_error_ns = run->m.bias_apart_ns = (kbi_meter.wall_step + kbi_meter.wall_bias) / 2 / 1.96;
        run->m.empty = KBI_NO_SHAPE;
    }
    run->m.launches = (int32_t)KBI_MIN(launches, (int64_t)INT32_MAX);
    if (run->call.unit == KBI_SAMPLE && !run->call.sampled)
        run->m.kept = run->work.by_pointer ? KBI_KEPT_BY_CALL
                                           : kbi_kept_values(kbi_build_of(run->bench_case->entry), run->work.line);
}

static const kbi_timer kbi_wall_timer = { "wall", kbi_wall_begin, kbi_wall_end, NULL, true, false };

static void* kbi_cpu_alloc(kb_place place, size_t bytes) {
    (void)place;
    if ((double)bytes > kbi_physical_bytes()) return NULL; // Linux would grant it, and kill the process on use
    return aligned_alloc(256, (bytes + 511) & ~(size_t)255); // aligned as by cudaMalloc; never 0 bytes
}
static void kbi_cpu_release(kb_place place, void* p) { (void)place, free(p); }
static void kbi_cpu_set(void* p, int byte, size_t bytes) { memset(p, byte, bytes); }
static void kbi_cpu_copy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }
static void kbi_cpu_fill(void* p, kb_dtype dtype, int64_t n, kb_kind kind, uint64_t seed, uint32_t tensor) {
    kbi_fill_host(p, 0, n, (int)dtype, (int)kind, seed, tensor);
}
static const kbi_timer* kbi_cpu_choose(struct kbi_run* run) { return (void)run, &kbi_wall_timer; }

static bool kbi_valgrind(void) { // whether valgrind, which simulates the processor, runs this process
    const char* preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "/vgpreload_");
}

static void kbi_machine_clear(kbi_machine* m, const char* backend) {
    memset(m, 0, sizeof *m);
    snprintf(m->backend, sizeof m->backend, "%s", backend);
    m->device = m->ecc = m->mig = m->clocks_locked = m->multiprocessors = m->boost = -1;
    kbi_roofs_clear(&m->roofs);
    kbi_roofs_clear(&m->core);
    if (kbi_meter.roofs_known) m->roofs = kbi_meter.roofs, m->core = kbi_meter.core;
    m->floor[0] = m->floor[1] = m->floor[2] = m->bias[0] = m->bias[1] = NAN;
    m->quantum = m->empty_pair = m->cold = m->counted_cold = NAN;
    m->simulated = kbi_valgrind();
    if (m->simulated) snprintf(m->tool, sizeof m->tool, "valgrind");
}

static void kbi_machine_cpus(kbi_machine* m, const char* root) {
    kbi_cpus allowed;
    m->boost = kbi_cpu_boost(root);
    if (!kbi_cpu_says(root, kbi_cpu_now(), "scaling_governor", m->governor, (int)sizeof m->governor)) *m->governor = 0;
    if (kbi_cpus_allowed(&allowed)) kbi_cpus_show(&allowed, m->cpus, sizeof m->cpus);
}

static void kbi_note_load(kbi_measured* m, const kbi_load* start, const char* proc, const char* root) {
    kbi_load now = kbi_load_now(proc);
    double ns = (double)(now.at - start->at), busy = now.busy - start->busy;
    if (now.switches != KB_NONE && start->switches != KB_NONE) m->preemptions = now.switches - start->switches;
    if (ns > 0) m->cpu_waited = 100 * (now.waited - start->waited) / ns;
    if (busy >= 0) m->cpu_stolen = busy > 0 ? 100 * (now.stolen - start->stolen) / busy : 0;
    m->cpu_clock = kbi_cpu_mhz(root, kbi_cpu_now());
}

static bool kbi_cpu_open(kbi_machine* m, const kbi_recipe* recipe) {
    (void)recipe;
    kbi_machine_clear(m, "cpu");
    return true;
}

// clang-format off
static const kbi_backend kbi_cpu = {
    "cpu", false, kbi_cpu_open,
    { kbi_cpu_alloc, kbi_cpu_release, kbi_cpu_set, kbi_cpu_copy, kbi_cpu_fill, NULL, NULL },
    { kbi_cpu_choose, NULL, NULL, NULL, NULL, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL, NULL, NULL }, { NULL, NULL, NULL, NULL }, NULL
};
// clang-format on

/*-----------------------------------------------------------------
  >>memory    measure: tracked allocations with guard bands; peaks, leaks and overwritten guards.
-----------------------------------------------------------------*/

enum { KBI_SHARED_LARGE = 1 << 20, KBI_PAGE = 2 << 20 };
static size_t kbi_block_total(size_t bytes) { return ((bytes + 255) & ~(size_t)255) + 2 * KBI_GUARD; }

static const kbi_backend* kbi_block_backend(const kbi_backend* b, kb_place place) {
    return place == KB_HOST ? &kbi_cpu : b;
}

// --- placement: processes whose times are pooled use other addresses, which change the time of a small kernel

static uint64_t kbi_placement(const kbi_recipe* r) {
    uint32_t counter[4] = { (uint32_t)r->placement, 0, 0, 5 }, word[4];
    uint32_t key[2] = { (uint32_t)r->seed, (uint32_t)(r->seed >> 32) };
    kbi_philox(counter, key, word);
    return r->placement ? (uint64_t)word[0] << 32 | word[1] : 0;
}

// Returns the bytes by which the start of a buffer is shifted to vary its placement. On a GPU, shared buffers
// shift within a page, and other blocks get other pages instead (kbi_gpu_take_pages). On the host, blocks shift
// within 16 pages, and thus to other cache sets.
static size_t kbi_placement_shift(const kbi_backend* b, uint64_t placement, bool shared) {
    if (b->gpu) return shared ? placement % (KBI_PAGE / 512) * 512 : 0;
    return placement % (16 * 4096 / 256) * 256;
}

// --- outputs: restored before the final run of the block, so that a correct output proves that this run wrote it

static bool kbi_block_unchanged(const kbi_run* run, const kbi_block* block) {
    char now[64], saved[64];
    const kbi_backend* b = kbi_block_backend(run->backend, block->place);
    size_t n = KBI_MIN(sizeof now, block->bytes), rest = block->bytes - n;
    for (size_t i = 0; i < 16; i++) {
        size_t offset = rest * i / 15; // the last sample ends with the block
        b->memory.copy(now, block->data + offset, n);
        b->memory.copy(saved, block->saved + offset, n);
        if (memcmp(now, saved, n) != 0) return false;
    }
    return true;
}

static void kbi_save_block(kbi_run* run, kbi_block* block) {
    const kbi_backend* b = kbi_block_backend(run->backend, block->place);
    if (!block->saved) {
        block->saved = (char*)b->memory.alloc(block->place, block->bytes);
        if (block->saved && block->place == KB_DEVICE) run->memory.saved_bytes += (int64_t)block->bytes;
    }
    if (block->saved) b->memory.copy(block->saved, block->data, block->bytes);
    run->memory.unsaved |= !block->saved;
}

// Saves the outputs, which the checked call found, at the start of the timed loop. kb_open has no checked call, so
// its outputs are unknown: all blocks are saved if small. A block equal to its saved copy is not saved again.
static void kbi_save_outputs(kbi_run* run) {
    kbi_memory* m = &run->memory;
    bool embedded = run->call.last != KBI_PHASE_CHECK && !run->work.checked;
    int64_t room = kbi_free_bytes(run->backend), all = m->device + m->host;
    m->unsaved |= embedded && (all > (int64_t)1 << 30 || (room != KB_NONE && all > room / 2));
    for (int i = 0; i < m->n && !(embedded && m->unsaved); i++) {
        kbi_block* block = &m->blocks[i];
        if (!block->bytes || (!embedded && !block->output)) continue;
        block->changed = block->saved && kbi_block_unchanged(run, block);
        if (!block->changed) kbi_save_block(run, block);
    }
}

static bool kbi_restore_outputs(kbi_run* run) { // returns false if no output was saved
    bool any = false;
    for (int i = 0; i < run->memory.n; i++) {
        kbi_block* block = &run->memory.blocks[i];
        if (!block->saved) continue;
        any = true;
        block->changed = !kbi_block_unchanged(run, block);
        kbi_block_backend(run->backend, block->place)->memory.copy(block->data, block->saved, block->bytes);
    }
    return any;
}

// Returns whether the last run wrote an output after kbench had restored it; if stale is true, whether the last run
// did not write an output that earlier runs wrote.
static bool kbi_output_seen(const kbi_run* run, bool stale) {
    for (int i = 0; run->call.restored && i < run->memory.n; i++) {
        const kbi_block* block = &run->memory.blocks[i];
        if (block->saved && (!stale || block->changed) && kbi_block_unchanged(run, block) == stale) return true;
    }
    return false;
}

// --- shared buffers

// Returns the first offset from `offset` on at which a block of `total` bytes may begin, aligned as by cudaMalloc.
static size_t kbi_shared_align(size_t offset, size_t total) {
    size_t boundary = total >= KBI_SHARED_LARGE ? KBI_PAGE : 512;
    return (offset + boundary - 1) & ~(boundary - 1);
}

static size_t kbi_shared_span(const kbi_memory* m, size_t stride) {
    return m->layout_peak ? (size_t)(KBI_MAX(m->copies, 1) - 1) * stride + m->layout_peak : 0;
}

static char* kbi_shared_place(const kbi_backend* b, kbi_memory* m, kb_place place, size_t total) {
    if (place != KB_DEVICE && (b->gpu || place != KB_HOST)) return NULL;
    size_t begin = kbi_shared_align(m->layout_bytes, total);
    kbi_memory* original = m->original ? m->original : m;
    if (m->shared && begin + total > m->layout_peak) m->separate = original->separate = true;
    if (m->shared && m->separate) return NULL;
    m->layout_bytes = begin + total;
    m->layout_peak = KBI_MAX(m->layout_peak, m->layout_bytes);
    if (!m->shared) return NULL;
    original->used_bytes = KBI_MAX(original->used_bytes, m->copy_offset + m->layout_bytes);
    return m->shared->base + m->copy_offset + begin;
}

static void kbi_shared_close(kbi_shared_buffers* s, kbi_memory** memories, int n) {
    for (int i = 0; i < n; i++) memories[i]->saved = NULL, memories[i]->shared = NULL;
    s->backend->memory.release(KB_DEVICE, s->allocated);
}

static bool kbi_shared_open(kbi_shared_buffers* s, const kbi_backend* b, kbi_memory** memories, int n) {
    size_t largest = 0, size = 0, shift = kbi_placement_shift(b, memories[0]->placement, true);
    memset(s, 0, sizeof *s);
    s->backend = b;
    for (int i = 0; i < n; i++) largest = KBI_MAX(largest, memories[i]->layout_peak);
    s->stride = kbi_shared_align(largest, largest);
    for (int i = 0; i < n; i++) size = KBI_MAX(size, kbi_shared_span(memories[i], s->stride));
    if (n > 1) size = kbi_shared_align(size, size);
    if (size) s->allocated = (char*)b->memory.alloc(KB_DEVICE, (n > 1 ? (size_t)n + 1 : 1) * size + KBI_PAGE + shift);
    if (!s->allocated) return false;
    s->base = (char*)((((uintptr_t)s->allocated + KBI_PAGE - 1) & ~(uintptr_t)(KBI_PAGE - 1)) + shift);
    for (int i = 0; i < n; i++) {
        memories[i]->shared = s;
        if (n > 1 && memories[i]->layout_peak) memories[i]->saved = s->base + (size_t)(i + 1) * size;
    }
    return true;
}

static void kbi_shared_enter(kbi_memory* m) {
    kbi_shared_buffers* s = m->shared;
    if (m->original) m = m->original;
    if (!s || s->owner == m) return;
    const kbi_memory* old = s->owner;
    if (old && old->saved && old->used_bytes) s->backend->memory.copy(old->saved, s->base, old->used_bytes);
    if (m->saved && m->used_bytes) s->backend->memory.copy(s->base, m->saved, m->used_bytes);
    s->owner = m;
}

// Releases the blocks from index `first` on, but not their table entries, because the next call needs `output`.
// lost: the device no longer answers, so device memory is not released.
static void kbi_blocks_free(const kbi_backend* b, kbi_memory* m, int first, bool lost) {
    for (int i = m->n_known - 1; i >= first; i--) {
        kbi_block* block = &m->blocks[i];
        const kbi_backend* home = kbi_block_backend(b, block->place);
        if (!block->data) continue;
        *(block->place == KB_DEVICE ? &m->device : &m->host) -= (int64_t)block->bytes;
        if (!lost || home == &kbi_cpu) {
            if (block->saved) home->memory.release(block->place, block->saved);
            if (!block->shared) home->memory.release(block->place, block->data - KBI_GUARD - block->shift);
        }
        block->data = block->saved = NULL;
    }
}

static void kbi_memory_free(const kbi_backend* b, kbi_memory* m, bool lost, bool last) {
    kbi_blocks_free(b, m, 0, lost);
    m->layout_bytes = 0;
    m->saved_bytes = m->n = 0;
    if (m->copies <= 1) m->used_bytes = 0; // the copies of --rotate still need used_bytes
    if (!last) return;
    KBENCH_FREE(m->blocks);
    m->blocks = NULL;
    m->n_known = 0;
}

static void kbi_memory_reuse(kbi_run* run) { // keeps all blocks, with their contents, for the function's next call
    kbi_memory* m = &run->memory;
    for (int i = 0; i < m->n; i++)
        if (m->blocks[i].bytes && m->blocks[i].output) kbi_save_block(run, &m->blocks[i]);
    m->layout_bytes = 0;
    m->n = 0;
}

// Allocates block m->n, or reuses block m->n of the previous call of the benchmark function. NULL: out of memory.
static void* kbi_memory_alloc(const kbi_backend* b, kbi_memory* m, kb_place place, size_t bytes) {
    const kbi_backend* home = kbi_block_backend(b, place);
    size_t total = kbi_block_total(bytes);
    char* shared = kbi_shared_place(b, m, place, total);
    if (m->n == m->n_known) {
        if ((m->n & (m->n - 1)) == 0)
            m->blocks = KBI_GROW(m->blocks, kbi_block, KBI_MAX(4, 2 * m->n));
        memset(&m->blocks[m->n_known++], 0, sizeof(kbi_block));
    }
    kbi_block* block = &m->blocks[m->n];
    bool same = block->place == place && block->bytes == bytes && block->shared == (shared != NULL);
    if (!same || (shared && block->data != shared + KBI_GUARD)) kbi_blocks_free(b, m, m->n, false);
    if (!block->data) {
        size_t shift = shared ? 0 : kbi_placement_shift(home, m->placement, false);
        char* base = shared ? shared : (char*)home->memory.alloc(place, total + shift);
        if (!base) return NULL;
        block->data = base + shift + KBI_GUARD;
        block->bytes = bytes, block->shift = shift;
        block->place = place, block->shared = shared != NULL;
        block->changed = false;
        home->memory.set(base + shift, KBI_GUARD_BYTE, total);
        home->memory.set(block->data, KBI_POISON, bytes);
        *(place == KB_DEVICE ? &m->device : &m->host) += (int64_t)bytes;
        m->device_peak = KBI_MAX(m->device_peak, m->device);
        m->host_peak = KBI_MAX(m->host_peak, m->host);
        int64_t room = kbi_free_bytes(b);
        if (room != KB_NONE) m->free_lowest = KBI_MIN(m->free_lowest, room);
    }
    m->n++;
    return block->data;
}

// Fails the case if a byte next to a block was overwritten. Padding of a block to 256 bytes is part of the guard.
static void kbi_check_guards(kbi_run* run) {
    static unsigned char guard[2 * KBI_GUARD + 256];
    for (int i = 0; i < run->memory.n; i++) {
        const kbi_block* block = &run->memory.blocks[i];
        const kbi_backend* home = kbi_block_backend(run->backend, block->place);
        int before = 0, behind = 0, size = (int)(kbi_block_total(block->bytes) - KBI_GUARD - block->bytes);
        home->memory.copy(guard, block->data - KBI_GUARD, KBI_GUARD);
        home->memory.copy(guard + KBI_GUARD, block->data + block->bytes, (size_t)size);
        while (before < KBI_GUARD && guard[KBI_GUARD - 1 - before] == KBI_GUARD_BYTE) before++;
        while (behind < size && guard[KBI_GUARD + behind] == KBI_GUARD_BYTE) behind++;
        if (before == KBI_GUARD && behind == size) continue;
        bool front = before < KBI_GUARD;
        kbi_stop(run, KB_FLAG_OVERRUN, "byte %d %s a block of %zu bytes was overwritten",
                 (front ? before : behind) + 1, front ? "before the start of" : "after the end of", block->bytes);
        return;
    }
}

void* kb_alloc(kb_state* kb, kb_place place, size_t size, int64_t count) {
    kbi_run* run = kb->run;
    if (run->m.status != KB_OK) return NULL;
    kbi_note_call(kb, "KB_ALLOC", false);
    if (KBI_CUDA && !run->backend->gpu && place != KB_HOST && run->recipe->target != KBI_ON_CPU) {
        kb_skip(kb, "%s", run->machine->why[0] ? run->machine->why : "needs a GPU");
        return NULL;
    }
    if (count < 0 || (size && (uint64_t)count > (uint64_t)INT64_MAX / size))
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_alloc of %lld elements of %zu bytes is impossible", (long long)count, size);
    else if (place < KB_DEVICE || place > KB_PINNED)
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_alloc takes KB_DEVICE, KB_HOST or KB_PINNED");
    else if (run->call.sampled && !run->call.ended && run->call.unit == KBI_NO_UNIT)
        kbi_stop(run, KB_FLAG_BAD_CASE, "KB_ALLOC in KB_SAMPLE would allocate before each sample; call it earlier");
    if (kbi_failed(run)) return NULL;
    void* p = kbi_memory_alloc(run->backend, &run->memory, place, size * (size_t)count);
    char text[40];
    if (!p) kbi_stop(run, KB_FLAG_OOM, "no room for %s", kbi_show_bytes((double)size * (double)count, text));
    return p;
}

static kbi_block* kbi_block_of(const kbi_run* run, const void* p) {
    const char* byte = (const char*)p;
    for (int i = 0; i < run->memory.n; i++) {
        kbi_block* block = &run->memory.blocks[i];
        if (byte >= block->data && byte < block->data + KBI_MAX(block->bytes, (size_t)1)) return block;
    }
    return NULL;
}

static void kbi_mark_output(kbi_run* run, const void* p) {
    kbi_block* block = run->call.looped && run->call.last == KBI_PHASE_CHECK ? kbi_block_of(run, p) : NULL;
    if (!block || block->output) return;
    block->output = true;
    run->memory.output_bytes += (int64_t)block->bytes;
}

// Fails the case if n elements of `size` bytes at p exceed their block; call: name of the kb_ function. Memory
// that kb_alloc did not allocate is not checked, because its size is unknown.
static bool kbi_range_valid(kbi_run* run, const char* call, const void* p, int64_t n, size_t size, const char* unit) {
    if (run->m.status != KB_OK) return false;
    const kbi_block* block = kbi_block_of(run, p);
    if (n < 0)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s of %lld %s: the number is negative", call, (long long)n, unit);
    else if (!p && n)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s got a NULL pointer", call);
    else if (!size)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s got %s without a type", call, unit);
    else if (block && (size_t)n > (size_t)(block->data + block->bytes - (const char*)p) / size)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s of %lld %s exceeds its block of %zu bytes", call, (long long)n, unit,
                 block->bytes);
    return run->m.status == KB_OK;
}

static bool kbi_copy_valid(kb_state* kb, const char* call, const void* memory, const void* host, size_t bytes) {
    int64_t n = (int64_t)bytes;
    kbi_note_call(kb, call, false);
    return kbi_range_valid(kb->run, call, memory, n, 1, "bytes") &&
           kbi_range_valid(kb->run, call, host, n, 1, "bytes") && n;
}

void kb_to_host(kb_state* kb, void* host, const void* from, size_t bytes) {
    if (!kbi_copy_valid(kb, "kb_to_host", from, host, bytes)) return;
    kbi_mark_output(kb->run, from);
    kb->run->backend->memory.copy(host, from, bytes);
}

void* kb_host_copy(kb_state* kb, const void* p) {
    kbi_run* run = kb->run;
    kbi_note_call(kb, "kb_host", false);
    if (run->m.status != KB_OK) return NULL;
    const kbi_block* block = kbi_block_of(run, p);
    if (!block) {
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_host takes a pointer of KB_ALLOC, and this one is %s",
                 p ? "not" : "NULL");
        return NULL;
    }
    int64_t bytes = block->data + block->bytes - (const char*)p;
    void* copy = kb_alloc(kb, KB_HOST, 1, bytes);
    if (copy) kb_to_host(kb, copy, p, (size_t)bytes);
    return copy;
}

void kb_from_host(kb_state* kb, void* to, const void* host, size_t bytes) {
    if (kbi_copy_valid(kb, "kb_from_host", to, host, bytes)) kb->run->backend->memory.copy(to, host, bytes);
}

void kbi_fill(kb_state* kb, void* p, kb_dtype dtype, int64_t n, kb_kind kind) {
    kbi_run* run = kb->run;
    uint32_t tensor = run->call.fills++;
    kbi_note_call(kb, "kb_fill", false);
    run->call.zeros += kind == KB_ZERO;
    if (!kbi_range_valid(run, "kb_fill", p, n, kb_dtype_size(dtype), "elements")) return;
    const kbi_block* block = kbi_block_of(run, p);
    const kbi_backend* b = block && block->place != KB_DEVICE ? &kbi_cpu : run->backend;
    if (kind < KB_ZERO || kind > KB_IOTA)
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_fill takes KB_ZERO, KB_NORMAL, KB_UNIFORM or KB_IOTA");
    else if (b->gpu && (uintptr_t)p % kb_dtype_size(dtype))
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_fill takes a pointer that is aligned to its elements");
    else if (n)
        b->memory.fill(p, dtype, n, kind, kb->seed, tensor);
}

/*-----------------------------------------------------------------
  >>device    measure: the GPU: stream, gate, events, eviction, clock.
-----------------------------------------------------------------*/

#if KBI_CUDA
static const char* kbi_cuda_text(cudaError_t e) {
    snprintf(kbi_meter.gpu.error, sizeof kbi_meter.gpu.error, "%s: %s", cudaGetErrorName(e), cudaGetErrorString(e));
    return kbi_meter.gpu.error;
}

static void kbi_driver_find(const char* name, unsigned version, void* function) {
    void* p = NULL;
    enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &p, version, cudaEnableDefault, &found);
#else
    (void)version;
    cudaError_t e = cudaGetDriverEntryPoint(name, &p, cudaEnableDefault, &found);
#endif
    if (e != cudaSuccess || found != cudaDriverEntryPointSuccess) p = NULL;
    memcpy(function, &p, sizeof p);
}

// names: separated by blanks. Returns false if a function is missing; its pointer is then NULL.
static bool kbi_find_all(void* library, const char* names, void* functions) {
    char name[64], *to = (char*)functions;
    void* p = NULL;
    bool all = true;
    for (; sscanf(names, "%63s", name) == 1; names += strspn(names, " ") + strlen(name), to += sizeof p) {
        kbi_find(library, name, &p);
        memcpy(to, &p, sizeof p);
        all &= p != NULL;
    }
    return all;
}

static void kbi_ptx_put(kbi_text* to);

// Appends the PTX of the empty kernels. Unless its first argument is zero, an empty kernel writes one cache line
// per thread block. The GPU flushes writes at the end of a kernel; event times include the flush, CUPTI's do not.
static void kbi_empty_put(kbi_text* to) {
    for (int i = 0; i < KBI_EMPTY_KERNELS; i++)
        kbi_putf(to,
                 ".visible .entry kbi_empty_%d(.param .align 8 .b8 a[%d]) { .reg .b64 %%a<4>; .reg .b32 %%r<2>;"
                 " .reg .pred %%p<3>; ld.param.u64 %%a0, [a]; ld.param.u64 %%a1, [a+%d]; mov.u32 %%r0, %%tid.x;"
                 " setp.ne.u32 %%p0, %%r0, 0; @%%p0 ret; setp.eq.s64 %%p1, %%a0, 0; @%%p1 ret;"
                 " mov.u32 %%r1, %%ctaid.x; mul.wide.u32 %%a2, %%r1, 128;"
                 " add.s64 %%a3, %%a0, %%a2; st.global.u64 [%%a3], %%a1; ret; }\n",
                 i, kbi_empty_bytes[i], kbi_empty_bytes[i] - 8);
}

static int kbi_load_module(const char* ptx, const char* const* names, int n, void** functions) {
    int (*load)(void** module, const void* image);
    int (*get)(void** function, void* module, const char* name);
    void* module = NULL;
    kbi_driver_find("cuModuleLoadData", 12000, &load);
    kbi_driver_find("cuModuleGetFunction", 12000, &get);
    int error = load && get ? load(&module, ptx) : -1;
    for (int i = 0; !error && i < n; i++) error = get(&functions[i], module, names[i]);
    return error;
}

static bool kbi_load_functions(char why[200]) {
    enum { KBI_ALL = (int)KBI_F_COUNT + (int)KBI_EMPTY_KERNELS };
    kbi_gpu* g = &kbi_meter.gpu;
    char empty[KBI_EMPTY_KERNELS][16];
    const char* names[KBI_ALL];
    int (*set)(void* function, int attribute, int value);
    kbi_text ptx = KBI_BLANK;
    kbi_driver_find("cuLaunchKernel", 12000, &g->launch);
    kbi_driver_find("cuLaunchKernelEx", 12000, &g->launch_as);
    kbi_driver_find("cuFuncSetAttribute", 12000, &set);
    kbi_driver_find("cuStreamWaitValue32", 12000, &g->wait_value);
    kbi_driver_find("cuStreamGetId", 12000, &g->number_of);
    kbi_ptx_put(&ptx);
    kbi_empty_put(&ptx);
    memcpy(names, kbi_function_names, sizeof kbi_function_names);
    for (int i = 0; i < KBI_EMPTY_KERNELS; i++) {
        snprintf(empty[i], sizeof *empty, "kbi_empty_%d", i);
        names[KBI_F_COUNT + i] = empty[i];
    }
    int error = g->launch ? kbi_load_module(ptx.s, names, KBI_ALL, g->functions) : -1;
    kbi_text_free(&ptx);
    if (error) return snprintf(why, 200, "the driver did not load kbench's own kernels (CUresult %d)", error), false;
    for (int i = KBI_F_COUNT; i < KBI_ALL && set; i++) {
        set(g->functions[i], KBI_CU_MAX_SHARED, g->max_shared);
        set(g->functions[i], KBI_CU_ANY_CLUSTER, 1);
    }
    return true;
}

static int kbi_launch(enum kbi_function f, unsigned blocks, unsigned threads, void** arguments) {
    const kbi_gpu* g = &kbi_meter.gpu;
    return g->launch(g->functions[f], blocks, 1, 1, threads, 1, 1, 0, g->stream, arguments, NULL);
}

static bool kbi_launch_empty(const kbi_shape* shape) { // returns false if this GPU cannot launch the shape
    static void* arguments[4096 / sizeof(void*)];
    kbi_gpu* g = &kbi_meter.gpu;
    void *f = g->functions[KBI_F_COUNT + shape->which], *all[] = { arguments };
    unsigned blocks = (unsigned)shape->blocks, threads = (unsigned)shape->threads, shared = (unsigned)shape->shared;
    arguments[0] = NULL;
    if (shape->writes) // each launch writes another cache line, so that mean times cover near and far lines
        arguments[0] = g->touch + (g->empties++ * 2654435761u >> 12) % (KBI_TOUCHED / 2) / 128 * 128;
    if (shape->cluster <= 1) return g->launch(f, blocks, 1, 1, threads, 1, 1, shared, g->stream, all, NULL) == 0;
    kbi_cu_attribute cluster = { KBI_CU_LAUNCH_CLUSTER, 0, { (unsigned)shape->cluster, 1, 1 } };
    kbi_cu_config config = { { blocks, 1, 1 }, { threads, 1, 1 }, shared, g->stream, &cluster, 1 };
    return g->launch_as && g->launch_as(&config, f, all, NULL) == 0;
}

static int kbi_launch_wide(enum kbi_function f, void** arguments) {
    return kbi_launch(f, (unsigned)kbi_meter.gpu.multiprocessors * 8, 256, arguments);
}

static void kbi_gpu_read(const void* p, size_t bytes) {
    uint64_t n = bytes / 16;
    void *sink = kbi_meter.gpu.device_clock, *arguments[] = { &p, &n, &sink };
    kbi_launch_wide(KBI_F_READ, arguments);
}

static void kbi_check_persisting(void) { // cache lines in a persisting part of L2 survive an eviction
    size_t bytes = 0;
    kbi_meter.gpu.persisting = cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess && bytes > 0;
}

// Evicts L2 by reads: written lines would be written back while the timed kernel runs.
static void kbi_evict(void) { kbi_gpu_read(kbi_meter.gpu.clean, kbi_meter.gpu.clean_bytes); }

// --- the gate: work that is queued behind it starts when the host opens it ---

// The SIGALRM handler opens the gate: a block that waits for work behind a closed gate would never end.
static void kbi_gate_alarm(int number) {
    signal(number, kbi_gate_alarm); // signal() of System V, which -std=c11 may select, resets the handler
    if (kbi_meter.gpu.flag) *kbi_meter.gpu.flag = 1;
    kbi_meter.gpu.alarmed = 1;
}

static void kbi_gate_close(void) {
    kbi_gpu* g = &kbi_meter.gpu;
    *g->flag = 0;
    g->closed = g->wait_value && g->wait_value(g->stream, (unsigned long long)(uintptr_t)g->device_flag, 1, 0) == 0;
    g->gated = g->closed;
    g->ungated |= !g->closed; // if the gate stays open, this GPU has no stream memory operations
    if (g->closed) alarm(KBI_GATE_SECONDS);
}

static void kbi_gate_open(void) {
    if (!kbi_meter.gpu.closed) return;
    __sync_synchronize();
    *kbi_meter.gpu.flag = 1;
    kbi_meter.gpu.closed = false;
    alarm(0);
    if (kbi_meter.gpu.alarmed) kbi_meter.gpu.gated = false; // later gates of the sample would also time out
}

// Prepares a case: earlier cases may have changed the SIGALRM handler or the device, or left persisting L2 lines.
static void kbi_gpu_prepare(struct kbi_run* run) {
    signal(SIGALRM, kbi_gate_alarm);
    cudaSetDevice(run->machine->device);
    cudaCtxResetPersistingL2Cache();
    cudaGetLastError();
}

static kb_stream kbi_gpu_stream(void) { return kbi_meter.gpu.stream; }
static void kbi_gpu_release(kb_place place, void* p) { (void)(place == KB_PINNED ? cudaFreeHost(p) : cudaFree(p)); }
static void* kbi_gpu_alloc(kb_place place, size_t bytes) {
    void* p = NULL;
    cudaError_t e = place == KB_PINNED ? cudaHostAlloc(&p, bytes, cudaHostAllocMapped) : cudaMalloc(&p, bytes);
    if (e == cudaSuccess) return p;
    cudaGetLastError();
    return NULL;
}

static void kbi_gpu_set(void* p, int byte, size_t bytes) {
    cudaMemsetAsync(p, byte, bytes, kbi_meter.gpu.stream);
    cudaStreamSynchronize(kbi_meter.gpu.stream); // waits, because the host may access pinned memory next
}

static void kbi_gpu_copy(void* to, const void* from, size_t bytes) {
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, kbi_meter.gpu.stream);
    cudaStreamSynchronize(kbi_meter.gpu.stream);
}

static void kbi_gpu_fill(void* p, kb_dtype dtype, int64_t n, kb_kind kind, uint64_t seed, uint32_t tensor) {
    uint64_t count = (uint64_t)n;
    uint32_t type = (uint32_t)dtype, what = (uint32_t)kind;
    void* arguments[] = { &p, &count, &type, &what, &seed, &tensor };
    kbi_launch_wide(KBI_F_FILL, arguments);
}

static const char* kbi_gpu_wait(void) {
    cudaError_t e = cudaDeviceSynchronize(), last = cudaGetLastError();
    if (e == cudaSuccess) e = last;
    return e == cudaSuccess ? NULL : kbi_cuda_text(e);
}

// Returns how a benchmark function damaged the context or kb->stream, which all cases share; otherwise NULL.
// Streams are compared by number, because a new stream may get the address of a destroyed one.
static const char* kbi_gpu_broken(void) {
    struct cudaPointerAttributes flag;
    const kbi_gpu* g = &kbi_meter.gpu;
    unsigned long long number = g->stream_number;
    cudaError_t e = cudaPointerGetAttributes(&flag, (const void*)(uintptr_t)g->flag);
    if (e == cudaSuccess && flag.type != cudaMemoryTypeHost) return "the function reset the device (cudaDeviceReset)";
    if (e == cudaSuccess) e = cudaStreamQuery(g->stream);
    if (e != cudaSuccess) cudaGetLastError();
    bool queried = e == cudaSuccess || e == cudaErrorNotReady;
    if (queried && number && g->number_of(g->stream, &number) != 0) number = 0;
    if (number != g->stream_number || e == cudaErrorInvalidResourceHandle) return "the function destroyed kb->stream";
    return e == cudaErrorContextIsDestroyed ? "the function destroyed the context of the device" : NULL;
}

static bool kbi_gpu_lost(void) { return cudaDeviceSynchronize() != cudaSuccess || kbi_gpu_broken(); }
static int64_t kbi_gpu_free_bytes(void) {
    size_t free_bytes = 0, total = 0;
    return cudaMemGetInfo(&free_bytes, &total) == cudaSuccess ? (int64_t)free_bytes : KB_NONE;
}

static int64_t kbi_gpu_pool_peak(bool reset) {
    cudaMemPool_t pool;
    uint64_t high = 0;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess) return 0;
    if (reset) cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high);
    cudaMemPoolGetAttribute(pool, reset ? cudaMemPoolAttrUsedMemCurrent : cudaMemPoolAttrUsedMemHigh, &high);
    cudaGetLastError();
    return (int64_t)high;
}

// One thread counts cycles and nanoseconds for about 50 us.
static double kbi_gpu_clock(void) {
    uint64_t cycles = 80000;
    void* arguments[] = { &kbi_meter.gpu.device_clock, &cycles };
    kbi_launch(KBI_F_CLOCK, 1, 1, arguments);
    const uint64_t* clock = kbi_meter.gpu.clock; // ns, cycles
    if (cudaStreamSynchronize(kbi_meter.gpu.stream) != cudaSuccess || !clock[0]) return NAN;
    return 1000.0 * (double)clock[1] / (double)clock[0];
}

static void kbi_gpu_mark(kbi_run* run, bool begin) {
    if (begin && run->recipe->mode == KBI_COLD) kbi_evict();
    cudaDeviceSynchronize();
    if (begin) cudaProfilerStart();
    kbi_launch(KBI_F_NULL, (unsigned)(2 * run->call.marked + (begin ? 1 : 2)), 1, NULL);
    cudaDeviceSynchronize();
    if (!begin) cudaProfilerStop();
}

// Ends the capture that a function left open on kb->stream, if any. Stores the errors of captured calls (inside)
// and of the end of the capture (end).
static bool kbi_capture_abort(cudaError_t* inside, cudaError_t* end) {
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    if (cudaStreamIsCapturing(kbi_meter.gpu.stream, &status) != cudaSuccess || status == cudaStreamCaptureStatusNone)
        return false;
    *inside = cudaGetLastError();
    *end = cudaStreamEndCapture(kbi_meter.gpu.stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    return true;
}

static void kbi_gpu_abandon(void) {
    cudaError_t inside, end;
    kbi_gate_open();
    kbi_meter.gpu.at = 0;
    kbi_capture_abort(&inside, &end);
    cudaGetLastError();
    cudaStreamSynchronize(kbi_meter.gpu.stream);
}
#endif

/*-----------------------------------------------------------------
  >>nvml      measure: clocks, power, temperature, throttling and other processes, by NVML.
-----------------------------------------------------------------*/

#if KBI_CUDA
static void kbi_nvml_open(kbi_machine* m) {
    kbi_nvml* n = &kbi_meter.nvml;
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    char bus[64];
    unsigned enabled = 0, pending = 0;
    unsigned long long mask = 0; // bit 0x2: an administrator has locked the clocks
    if (!library || cudaDeviceGetPCIBusId(bus, (int)sizeof bus, m->device) != cudaSuccess) return;
    kbi_find_all(library,
                 "nvmlInit_v2 nvmlDeviceGetHandleByPciBusId_v2 nvmlSystemGetDriverVersion nvmlDeviceGetMigMode "
                 "nvmlDeviceGetClockInfo nvmlDeviceGetPowerUsage nvmlDeviceGetTotalEnergyConsumption "
                 "nvmlDeviceGetTemperature nvmlDeviceGetCurrentClocksThrottleReasons "
                 "nvmlDeviceGetComputeRunningProcesses_v3",
                 &n->init);
    if (!n->init || !n->handle || n->init() != 0 || n->handle(bus, &n->device) != 0) return;
    if (n->driver) n->driver(m->driver, (unsigned)sizeof m->driver);
    if (n->mig) m->mig = n->mig(n->device, &enabled, &pending) == 0 ? (int)enabled : 0;
    if (n->reasons && n->reasons(n->device, &mask) == 0) m->clocks_locked = (mask & 0x2) != 0;
}

static void kbi_gpu_throttled(kbi_measured* m) {
    static const char* const reasons[] = { NULL, NULL, "power cap", "hardware slowdown", NULL, // by bit
                                           "thermal (software)", "thermal (hardware)", "power brake" };
    const kbi_nvml* n = &kbi_meter.nvml;
    unsigned long long mask = 0;
    if (!n->device || !n->reasons || n->reasons(n->device, &mask) != 0) return;
    for (int i = 0; i < KBI_COUNT(reasons); i++)
        if (mask >> i & 1 && reasons[i] && !strstr(m->throttle, reasons[i]))
            kbi_fit(m->throttle, strlen(m->throttle), sizeof m->throttle, "%s%s", *m->throttle ? ", " : "",
                    reasons[i]);
}

static void kbi_gpu_sense(kbi_measured* m) {
    const kbi_nvml* n = &kbi_meter.nvml;
    unsigned char processes[64 * 24]; // nvmlProcessInfo_t: pid, memory, two instance ids
    unsigned value = 0, count = 64;
    if (!n->device) return;
    if (n->clock && n->clock(n->device, 2, &value) == 0) m->memory_clock = value;
    if (n->power && n->power(n->device, &value) == 0) m->power = value / 1000.0;
    if (n->temperature && n->temperature(n->device, 0, &value) == 0) m->temperature = value;
    if (n->processes && n->processes(n->device, &count, processes) == 0 && count > 1) m->others = (int32_t)count - 1;
    kbi_gpu_throttled(m);
}
#endif

/*-----------------------------------------------------------------
  >>cupti     measure: CUPTI: durations of kernels as the driver records them, for timers and profiles.
-----------------------------------------------------------------*/

#if KBI_CUDA
static void kbi_cupti_request(uint8_t** buffer, size_t* size, size_t* most) {
    *size = KBI_ACTIVITY_BYTES;
    *buffer = (uint8_t*)kbi_grow(NULL, KBI_ACTIVITY_BYTES); // CUPTI needs an alignment of 8 bytes
    *most = 0;
}

static void kbi_cupti_add_span(const kbi_activity* r) {
    static const char* const own[] = { "kbi_read", "kbi_null", "kbi_clock" };
    const kbi_activity_copy* c = (const kbi_activity_copy*)(const void*)r;
    bool kernel = r->kind == KBI_ACTIVITY_KERNEL, copy = r->kind == KBI_ACTIVITY_COPY || r->kind == KBI_ACTIVITY_SET;
    kbi_span span = { kernel ? r->start : c->start, kernel ? r->end : c->end };
    for (int i = 0; i < KBI_COUNT(own) && kernel && r->name; i++) kernel = !kbi_is(r->name, own[i]);
    if ((kernel || copy) && kbi_meter.cupti.n < KBI_SPANS && span.start && span.end >= span.start)
        kbi_meter.cupti.spans[kbi_meter.cupti.n++] = span;
}

static void kbi_cupti_completed(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
    kbi_activity* r = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && kbi_meter.cupti.next(buffer, valid, &r) == 0) {
        if (kbi_meter.cupti.look)
            kbi_meter.cupti.look(r);
        else if (kbi_meter.cupti.open)
            kbi_cupti_add_span(r);
    }
    KBENCH_FREE(buffer);
}

static const char* kbi_cupti_error_text(const char* call, int error, char out[400]) {
    const char *text = NULL, *advice = "";
    if (!kbi_meter.cupti.text || kbi_meter.cupti.text(error, &text) != 0 || !text) text = "an error";
    if (error == 26) advice = "; another profiler or DCGM uses the GPU's counters (dcgmi profile --pause frees them)";
    if (error == 35)
        advice =
            "; reading the GPU's counters is not allowed: run as root, give the container CAP_SYS_ADMIN, or load "
            "the driver with NVreg_RestrictProfilingToAdminUsers=0";
    if (error == 39) advice = "; another profiler is attached to this process: run it without nsys and ncu";
    return snprintf(out, 400, "%s: %s (%d)%s", call, text, error, advice), out;
}

static bool kbi_cupti_load(void) {
    static const char* const paths[] = { "libcupti.so", "libcupti.so.13", "libcupti.so.12",
                                         "/usr/local/cuda/lib64/libcupti.so",
                                         "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so" };
    kbi_cupti* c = &kbi_meter.cupti;
    for (int i = 0; i < KBI_COUNT(paths) && !c->library; i++) c->library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (c->loaded || !c->library) return c->loaded;
    kbi_find_all(c->library,
                 "cuptiActivityRegisterCallbacks cuptiActivityEnable cuptiActivityFlushAll "
                 "cuptiActivityGetNextRecord cuptiActivityDisable cuptiGetTimestamp cuptiGetVersion "
                 "cuptiGetResultString cuptiGetCallbackName cuptiActivityGetNumDroppedRecords "
                 "cuptiSubscribe cuptiEnableDomain",
                 &c->callbacks);
    bool found = c->callbacks && c->enable && c->flush && c->next && c->disable;
    return c->loaded = found && c->callbacks(kbi_cupti_request, kbi_cupti_completed) == 0;
}

// Launches an untimed kernel, because the first launch after CUPTI is enabled or disabled is slow. If more than
// 0.3 ms have passed since `began`, a spinning kernel raises the GPU's clock again.
static void kbi_cupti_settle(int64_t began) {
    enum { KBI_PAUSE = 300000, KBI_PAUSE_MOST = 20000000 }; // ns
    kbi_launch(KBI_F_NULL, 1, 1, NULL);
    cudaStreamSynchronize(kbi_meter.gpu.stream);
    int64_t took = kbi_now() - began;
    uint64_t cycles = 2 * (uint64_t)KBI_MIN(took, (int64_t)KBI_PAUSE_MOST);
    void* arguments[] = { &cycles };
    if (took < KBI_PAUSE) return;
    kbi_launch(KBI_F_SPIN, 1, 1, arguments);
    cudaStreamSynchronize(kbi_meter.gpu.stream);
}

static const int kbi_cupti_kinds[] = { KBI_ACTIVITY_KERNEL, KBI_ACTIVITY_COPY, KBI_ACTIVITY_SET };
static bool kbi_cupti_open(void) {
    kbi_cupti* c = &kbi_meter.cupti;
    int64_t began = kbi_now();
    if (c->open) return true;
    c->error = 0;
    if (!kbi_cupti_load()) return false;
    if (!c->spans) c->spans = KBI_GROW(NULL, kbi_span, KBI_SPANS);
    for (int i = 0; i < KBI_COUNT(kbi_cupti_kinds) && !c->error; i++) c->error = c->enable(kbi_cupti_kinds[i]);
    c->open = c->error == 0;
    if (c->open) kbi_cupti_settle(began);
    return c->open;
}

static const char* kbi_cupti_unavailable(char out[400]) {
    if (kbi_meter.cupti.error) return kbi_cupti_error_text("cuptiActivityEnable", kbi_meter.cupti.error, out);
    if (kbi_meter.cupti.library) return "libcupti.so does not accept buffers, or lacks a function";
    return "libcupti.so is not found; LD_LIBRARY_PATH can name its folder";
}

static void kbi_cupti_close(void) {
    int64_t began = kbi_now();
    if (!kbi_meter.cupti.open) return;
    for (int i = 0; i < KBI_COUNT(kbi_cupti_kinds); i++) kbi_meter.cupti.disable(kbi_cupti_kinds[i]);
    kbi_meter.cupti.open = false;
    kbi_cupti_settle(began);
}

static int kbi_order_spans(const void* a, const void* b) {
    const kbi_span *x = (const kbi_span*)a, *y = (const kbi_span*)b;
    return (x->start > y->start) - (x->start < y->start);
}

// Splits CUPTI's records since the last call into groups of `kernels` consecutive records. Returns the number of
// groups, at most `most`.
static int kbi_cupti_read(int kernels, double* ns, int most) {
    kbi_cupti* c = &kbi_meter.cupti;
    int n = 0;
    c->flush(1);
    qsort(c->spans, (size_t)c->n, sizeof(kbi_span), kbi_order_spans);
    for (int i = 0; i + kernels <= c->n && n < most; i += kernels) {
        uint64_t end = 0;
        for (int k = i; k < i + kernels; k++) end = KBI_MAX(end, c->spans[k].end);
        ns[n++] = (double)(end - c->spans[i].start);
    }
    c->n = 0;
    return n;
}
#endif

/*-----------------------------------------------------------------
  >>timers    measure: timers for a block of GPU work: cold, hot, rotating, by CUPTI.
-----------------------------------------------------------------*/

#if KBI_CUDA
// A sample is the mean of several launches, so its resolution is finer than that of event times. Each launch has
// its own gate, because event times are up to 0.6 us longer if a gate holds back more than 8 kernels. All launches
// use the same two events, because pairs of events differ by 0.2 to 1 us (H200, driver 580).
static void kbi_sample_open(bool gated, int size) {
    kbi_gpu* g = &kbi_meter.gpu;
    g->alarmed = 0;
    g->at = 0;
    g->size = size;
    g->gated = gated && !g->ungated;
}

static void kbi_launch_begin(bool cold) {
    if (cold && kbi_meter.gpu.persisting) cudaCtxResetPersistingL2Cache();
    if (kbi_meter.gpu.gated) kbi_gate_close();
    if (cold) kbi_evict();
    // Eviction also removes the page tables of the command buffers; empty kernels reload them in 0.3 to 0.9 us.
    for (int i = 0; cold && i < KBI_WAKING; i++) kbi_launch(KBI_F_NULL, 1, 1, NULL);
    cudaEventRecord(kbi_meter.gpu.start, kbi_meter.gpu.stream);
}

static bool kbi_launch_end(void) {
    kbi_gpu* g = &kbi_meter.gpu;
    float ms = NAN;
    cudaEventRecord(g->stop, g->stream);
    kbi_gate_open();
    cudaStreamSynchronize(g->stream);
    cudaEventElapsedTime(&ms, g->start, g->stop);
    g->ns[g->at++] = (double)ms * 1e6;
    return g->at >= g->size;
}

static void kbi_single_begin(bool gated, bool cold) {
    kbi_sample_open(gated, 1);
    kbi_launch_begin(cold);
}

static double kbi_single_end(void) {
    kbi_gpu* g = &kbi_meter.gpu;
    kbi_launch_end();
    g->at = 0;
    // If each launch blocks the host (compute-sanitizer, CUDA_LAUNCH_BLOCKING), the watchdog must open each gate.
    // A single alarm can also have another cause: the machine was suspended.
    g->alarms = g->alarmed ? g->alarms + 1 : 0;
    if (g->alarms > 1) g->ungated = true;
    return g->ns[0];
}

typedef struct kbi_graph {
    cudaGraph_t one;
    cudaGraphExec_t many[2]; // N and 2 N consecutive launches
    int64_t launches;        // N
    bool ungated;
} kbi_graph;

// A copy of pageable memory blocks the host until the stream reaches the copy: with a gate, the host could submit
// no later work.
static bool kbi_copies_wait(const kbi_run* run) {
    return (run->work.expect & KB_EXPECT_TRANSFER) && !run->work.on_device;
}

static int64_t kbi_events_begin(kbi_run* run) {
    kbi_sampling* s = &run->sampling;
    char why[400];
    if (!s->open) {
        // With --timer both, CUPTI times every second sample, and events time the others.
        if (run->recipe->timing == KBI_BY_BOTH) {
            s->traced = !s->traced && run->call.unit == KBI_SAMPLE && !run->schedule.discard;
            if (!s->traced) kbi_cupti_close();
            if (s->traced && !kbi_cupti_open())
                kbi_stop(run, KB_FLAG_CUDA_ERROR, "CUPTI no longer records: %s", kbi_cupti_unavailable(why));
        }
        if (kbi_meter.cupti.open) cudaDeviceSynchronize(), kbi_cupti_read(1, NULL, 0); // drops set-up records
        bool one = run->call.sampled || run->work.estimate_ns > 500000;
        int size = run->recipe->launches ? (int)run->recipe->launches : one ? 1 : KBI_LAUNCHES;
        if (run->schedule.discard > 0 || kbi_timed_alone(run)) size = 1;
        kbi_sample_open(s->gated && run->work.nodes < KBI_GATE_NODES, size);
        s->open = true;
        s->stop_count = kbi_meter.stops;
    }
    kbi_launch_begin(run->recipe->mode == KBI_COLD);
    return 1;
}

// A sample is repeated if the process was stopped or the watchdog opened the gate.
static bool kbi_sample_valid(kbi_run* run) {
    kbi_stop_on_error(run, "in the timed loop");
    run->sampling.alarms = kbi_meter.gpu.alarmed ? run->sampling.alarms + 1 : 0;
    bool disturbed = kbi_meter.gpu.alarmed || run->sampling.stop_count != kbi_meter.stops;
    if (kbi_failed(run) || !disturbed) return !kbi_failed(run);
    run->m.retaken++;
    if (run->sampling.alarms < KBI_ALARMS) return false;
    // The block waits for work behind the gate: gated samples are dropped, and repeated without a gate.
    run->sampling.gated = false;
    if (run->call.unit == KBI_SAMPLE) run->m.retaken += run->m.n, run->m.n = 0;
    return false;
}

// --- the bias: event time of an empty kernel minus the duration of that kernel ---

// Returns the index of the empty kernel with this launch shape; 0 (the smallest kernel) if it cannot be launched.
static int kbi_empty_index(const kbi_shape* shape) {
    kbi_calibration* c = &kbi_meter.calibration;
    const int n = c->n_empties;
    for (int i = 0; i < n; i++)
        if (memcmp(&c->empties[i].shape, shape, sizeof *shape) == 0) return i;
    if (n && !kbi_launch_empty(shape)) return 0;
    c->empties = KBI_GROW(c->empties, kbi_empty, n + 1);
    memset(&c->empties[n], 0, sizeof(kbi_empty));
    c->empties[n].shape = *shape;
    return c->n_empties++;
}

// Times an empty kernel once, and returns the trimmed mean of its latest times in ns. Block and empty kernel are
// timed alternately, because event times drift by 0.1 us, equally for all kernels with one launch shape.
static double kbi_time_empty(kbi_mode mode, bool gated, int which) {
    kbi_empty* empty = &kbi_meter.calibration.empties[which];
    kbi_readings* r = &empty->read[mode][gated && !kbi_meter.gpu.ungated];
    double sorted[KBI_RECENT];
    kbi_single_begin(gated, mode == KBI_COLD);
    kbi_launch_empty(&empty->shape);
    double ns = kbi_single_end();
    if (!kbi_meter.gpu.alarmed) r->ns[r->n++ % KBI_RECENT] = ns;
    int n = (int)KBI_MIN(r->n, (int64_t)KBI_RECENT);
    if (!n) return NAN;
    memcpy(sorted, r->ns, sizeof(double) * (size_t)n);
    return kbi_trimmed(sorted, n, n / 8);
}

static const int kbi_reference_threads[] = { 32, 256, 1024 };
static double kbi_reference_time(kbi_mode mode, const kbi_shape* shape) {
    const kbi_reference* reference = &kbi_meter.calibration.truth;
    double spread = KBI_MIN((shape->blocks - 1) / KBI_MAX(kbi_meter.gpu.multiprocessors - 1.0, 1.0), 1.0), time[2];
    int k = shape->threads > 256;
    double first = kbi_reference_threads[k], next = kbi_reference_threads[k + 1];
    double share = KBI_MAX(shape->threads - first, 0) / (next - first);
    for (int i = 0; i < 2; i++) { // grids of one block and of one block per multiprocessor
        const double* ns = reference->ns[mode][shape->writes][i];
        time[i] = ns[k] + share * (ns[k + 1] - ns[k]);
    }
    return time[0] + spread * (time[1] - time[0]);
}

// Without CUPTI, returns an upper bound in ns for the duration of empty kernel K = empties[which]: the event time of
// K, or a smaller bound from graphs. The bound from graphs is the time of empties[0] in a graph, plus the event time
// of K, minus the event time of empties[0].
static double kbi_empty_time_limit(kbi_mode mode, int which) {
    double plain = NAN, reads = NAN, row = kbi_meter.calibration.row;
    for (int i = 0; i < KBI_RECENT / 4; i++)
        plain = kbi_time_empty(KBI_HOT, true, 0), reads = kbi_time_empty(mode, true, which);
    return KBI_MIN(kbi_finite(row) && row > 0 ? row + KBI_MAX(reads - plain, 0) : reads, reads);
}

// Returns the duration of an empty kernel in ns: measured by CUPTI, or half of an upper bound. error: standard
// deviation of the bias in ns (without CUPTI, any duration up to the bound is equally likely); apart: the part of
// `error` that differs between launch shapes.
static double kbi_empty_time(kbi_mode mode, int which, double* error, double* apart) {
    kbi_empty* empty = &kbi_meter.calibration.empties[which];
    double row = kbi_meter.calibration.row, *most = &empty->most[mode];
    *error = *apart = 60; // ns: scatter of kernels with one launch shape (tests/gpu/shapes.py)
    if (kbi_meter.calibration.measured) return kbi_reference_time(mode, &empty->shape);
    if (!(*most > 0)) *most = kbi_empty_time_limit(mode, which);
    *error = hypot(*error, *most / sqrt(12));
    *apart = hypot(*apart, KBI_MAX(*most - (kbi_finite(row) ? row : 0), 0) / sqrt(12));
    return *most / 2;
}

static void kbi_bias_update(kbi_run* run, kbi_mode mode, bool gated) {
    const kbi_empty* empty = &kbi_meter.calibration.empties[run->work.empty_kernel];
    bool first = empty->read[mode][gated && !kbi_meter.gpu.ungated].n == 0;
    for (int i = 0; i < (first ? KBI_RECENT / 4 : KBI_EMPTIES); i++)
        run->m.floor_ns = kbi_time_empty(mode, gated, run->work.empty_kernel);
    run->m.bias_ns =
        run->m.floor_ns - kbi_empty_time(mode, run->work.empty_kernel, &run->m.bias_error_ns, &run->m.bias_apart_ns);
    run->m.bias_fitted = !kbi_meter.calibration.measured;
    run->m.empty = run->work.empty_kernel;
    run->m.step_ns = kbi_meter.calibration.quantum / KBI_MAX(run->sampling.launches, 1);
}

// --- graphs of N and 2 N consecutive launches: the difference of their times, divided by N, is one launch ---

static double kbi_graph_ns(cudaGraphExec_t exec, bool gated) {
    kbi_single_begin(gated, false);
    cudaGraphLaunch(exec, kbi_meter.gpu.stream);
    kbi_launch_end();
    return kbi_meter.gpu.ns[0];
}

// Returns N, the number of launches in a graph. The graph takes about 200 us and runs each replica equally often.
// 0: no graph.
static int64_t kbi_graph_repeats(kbi_run* run, int copies) {
    kbi_graph* g = (kbi_graph*)run->work.graph;
    cudaGraphExec_t probe = NULL;
    if (!g || run->call.sampled || cudaGraphInstantiateWithFlags(&probe, g->one, 0) != cudaSuccess)
        return cudaGetLastError(), 0;
    kbi_graph_ns(probe, true);
    double each = kbi_graph_ns(probe, true) - 2000; // the two events add about 2 us
    cudaGraphExecDestroy(probe);
    int64_t most = 2000 / KBI_MAX(run->work.nodes, (int64_t)1), n = (int64_t)(200000 / KBI_MAX(each, 500)) + 1;
    g->launches = (KBI_MAX((int64_t)1, KBI_MIN(n, most)) + copies - 1) / copies * copies;
    run->m.launches = (int32_t)g->launches;
    // a slot is one sample if samples are longer than 2 ms, because a comparison needs many rounds
    if ((double)g->launches * each > 2e6) run->sampling.launches = run->m.launches;
    return g->launches;
}

static void kbi_graph_capture_begin(void) {
    cudaStreamBeginCapture(kbi_meter.gpu.stream, cudaStreamCaptureModeThreadLocal);
}

static cudaGraphExec_t kbi_graph_capture_end(void) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (cudaStreamEndCapture(kbi_meter.gpu.stream, &graph) == cudaSuccess) {
        if (cudaGraphInstantiateWithFlags(&exec, graph, 0) != cudaSuccess) exec = NULL;
        cudaGraphDestroy(graph);
    }
    cudaGetLastError();
    return exec;
}

static void kbi_gpu_repeat(kbi_run* run, int which, bool begin) {
    if (begin) {
        kbi_graph_capture_begin();
        return;
    }
    cudaGraphExec_t exec = ((kbi_graph*)run->work.graph)->many[which] = kbi_graph_capture_end();
    if (!exec) kbi_stop(run, KB_FLAG_CUDA_ERROR, "consecutive launches of the block cannot form one graph");
}

static double kbi_graph_slope(const kbi_graph* g) {
    double once = kbi_graph_ns(g->many[0], !g->ungated);
    bool alarmed = kbi_meter.gpu.alarmed != 0;
    double twice = kbi_graph_ns(g->many[1], !g->ungated);
    if (alarmed) kbi_meter.gpu.alarmed = 1;
    return (twice - once) / (double)g->launches;
}

static void kbi_graph_alone(kbi_run* run) {
    kbi_graph* g = (kbi_graph*)run->work.graph;
    run->sampling.stop_count = kbi_meter.stops;
    g->ungated = !run->sampling.gated;
    double ns = kbi_graph_slope(g);
    bool gated = kbi_meter.gpu.gated;
    if (!kbi_sample_valid(run)) return;
    run->m.ungated = !gated;
    run->m.bias_ns = 0; // no correction: a launch in a graph includes the gap to the next launch
    run->m.floor_ns = kbi_meter.calibration.graph_floor;
    kbi_add_sample(run, ns);
}

static void kbi_graph_forget(kbi_run* run) {
    kbi_graph* g = (kbi_graph*)run->work.graph;
    if (!g) return;
    for (int i = 0; i < 2; i++)
        if (g->many[i]) cudaGraphExecDestroy(g->many[i]);
    cudaGraphDestroy(g->one);
    KBENCH_FREE(g);
    run->work.graph = NULL;
}

// Returns the mean of a sample in ns, timed by CUPTI; NaN: records are missing, so the sample is repeated. The
// number of records per launch is known from stream capture, or from the first sample in which it is an integer.
static double kbi_cupti_sample_mean(kbi_run* run, int size) {
    double ns[KBI_LAUNCHES_LIMIT], sum = 0;
    kbi_sampling* s = &run->sampling;
    if (!run->work.recorded) {
        kbi_meter.cupti.flush(1);
        if (kbi_meter.cupti.n % size == 0) run->work.recorded = kbi_meter.cupti.n / size;
    }
    int n = kbi_cupti_read((int)KBI_MAX(run->work.recorded, (int64_t)1), ns, KBI_COUNT(ns));
    for (int i = 0; i < n; i++) sum += ns[i];
    s->missed = n == size ? 0 : s->missed + 1;
    run->m.retaken += n != size;
    if (s->missed > KBI_MISSES) kbi_stop(run, KB_FLAG_CUDA_ERROR, "CUPTI recorded %d of %d launches", n, size);
    return n == size ? sum / size : (double)NAN;
}

static void kbi_launches_end(kbi_run* run) {
    double sorted[KBI_TRACED], sum = 0;
    kbi_sampling* s = &run->sampling;
    const bool gated = kbi_meter.gpu.gated;
    const int size = kbi_meter.gpu.size;
    if (!kbi_launch_end()) return;
    s->open = false;
    kbi_meter.gpu.at = 0;
    if (!kbi_sample_valid(run)) return;
    for (int i = 0; i < size; i++) sum += kbi_meter.gpu.ns[i];
    double ns = s->traced ? kbi_cupti_sample_mean(run, size) : sum / size;
    if (kbi_failed(run) || kbi_nan(ns)) return;
    if (s->traced && run->recipe->timing == KBI_BY_BOTH) { // stores the median of CUPTI's samples as a counter
        s->traced_ns[s->n_traced++ % KBI_TRACED] = ns;
        int n = (int)KBI_MIN(s->n_traced, (int64_t)KBI_TRACED);
        memcpy(sorted, s->traced_ns, sizeof(double) * (size_t)n);
        kb_count(&run->kb, "cupti", kbi_trimmed(sorted, n, (n - 1) / 2) * 1e-3, "us");
        return;
    }
    if (!(run->schedule.discard > 0 && run->call.unit == KBI_SAMPLE)) {
        s->launches = run->m.launches = size;
        run->m.ungated = !s->traced && !gated && !kbi_copies_wait(run);
        if (s->traced)
            run->m.bias_ns = run->m.floor_ns = 0;
        else
            kbi_bias_update(run, run->recipe->mode == KBI_COLD ? KBI_COLD : KBI_HOT, gated);
    }
    kbi_add_sample(run, ns);
}

static const kbi_timer kbi_event_timer = { "events", kbi_events_begin, kbi_launches_end, NULL, false, false };
static const kbi_timer kbi_graph_timer = {
    "events", kbi_events_begin, kbi_launches_end, kbi_graph_alone, false, false
};
static const kbi_timer kbi_cupti_timer = { "cupti", kbi_events_begin, kbi_launches_end, NULL, false, false };

static const kbi_timer* kbi_gpu_choose(kbi_run* run) {
    const kbi_recipe* recipe = run->recipe;
    const kbi_graph* g = (const kbi_graph*)run->work.graph;
    const bool graph = recipe->mode >= KBI_ROTATE && g && g->many[1], both = recipe->timing == KBI_BY_BOTH;
    bool open = false;
    char why[400];
    kbi_check_persisting();
    if (both) kbi_cupti_close(); // an earlier case may have left CUPTI on
    if (kbi_copies_wait(run) && !graph) run->sampling.gated = false; // a copy blocks the host, except in a graph
    if (run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC) || recipe->timing == KBI_BY_WALL)
        return &kbi_wall_timer;
    if (both || recipe->timing == KBI_BY_CUPTI) {
        open = kbi_cupti_open(); // opens CUPTI now, because opening it later would delay a sample
        if (both) kbi_cupti_close();
        if (!open)
            kbi_stop(run, KB_FLAG_BAD_CASE, "--timer %s: %s", both ? "both" : "cupti", kbi_cupti_unavailable(why));
    }
    if (open && both) return &kbi_event_timer;
    if (!graph && recipe->mode == KBI_GRAPH)
        kbi_stop(run, KB_FLAG_BAD_CASE, "stream capture rejects this block, so mode graph cannot measure it");
    if (!graph && recipe->mode == KBI_ROTATE)
        kbi_stop(run, KB_FLAG_NOT_COLD, "--rotate needs a block that stream capture accepts, without KB_SAMPLE");
    if (open && graph) kbi_stop(run, KB_FLAG_BAD_CASE, "CUPTI does not time graphs: use --timer events");
    run->sampling.traced = open;
    return open ? &kbi_cupti_timer : graph ? &kbi_graph_timer : &kbi_event_timer;
}
#endif

/*-----------------------------------------------------------------
  >>calibrate measure: the bias of events: event time of an empty kernel minus its duration.
-----------------------------------------------------------------*/

#if KBI_CUDA
// Measures the resolution of event times: the smallest difference above 0.5 ns between the event times of empty
// kernels and of empty event pairs.
static void kbi_calibrate_quantum(void) {
    double ns[128], pair[KBI_COUNT(ns) / 2], step = INFINITY;
    for (int i = 0; i < KBI_COUNT(ns); i++) {
        kbi_single_begin(true, false);
        if (i % 2) kbi_launch(KBI_F_NULL, 1, 1, NULL);
        ns[i] = kbi_single_end();
        if (i % 2 == 0) pair[i / 2] = ns[i];
    }
    kbi_meter.calibration.empty_pair = kbi_trimmed(pair, KBI_COUNT(pair), KBI_COUNT(pair) / 4);
    kbi_sort(ns, KBI_COUNT(ns));
    for (int i = 1; i < KBI_COUNT(ns); i++)
        if (ns[i] - ns[i - 1] > 0.5) step = KBI_MIN(step, ns[i] - ns[i - 1]);
    kbi_meter.calibration.quantum = step;
}

static double kbi_calibrate_graph(const kbi_shape* shape) {
    double ns[32];
    kbi_graph g;
    memset(&g, 0, sizeof g);
    g.launches = 150;
    for (int k = 0; k < 2; k++) {
        kbi_graph_capture_begin();
        for (int64_t i = 0; i < (k + 1) * g.launches; i++)
            if (shape)
                kbi_launch_empty(shape);
            else
                kbi_launch(KBI_F_NULL, 1, 1, NULL);
        g.many[k] = kbi_graph_capture_end();
    }
    for (int i = 0; i < KBI_COUNT(ns); i++) ns[i] = g.many[0] && g.many[1] ? kbi_graph_slope(&g) : (double)NAN;
    for (int k = 0; k < 2; k++)
        if (g.many[k]) cudaGraphExecDestroy(g.many[k]);
    return kbi_trimmed(ns, KBI_COUNT(ns), KBI_COUNT(ns) / 4);
}

static void kbi_calibrate(kbi_machine* m) {
    static const kbi_shape plainest = { 1, 32, 0, 1, 0, 1 };
    kbi_calibration* c = &kbi_meter.calibration;
    double error, apart;
    for (int i = 0; i < 200; i++) kbi_evict(); // raises the clock of an idle GPU
    kbi_empty_index(&plainest);
    kbi_calibrate_quantum();
    for (int mode = 0; mode < KBI_EVENT_MODES; mode++)
        for (int i = 0; i < KBI_RECENT; i++) kbi_time_empty((kbi_mode)mode, true, 0);
    c->graph_floor = kbi_calibrate_graph(NULL);
    c->row = c->measured ? (double)NAN : kbi_calibrate_graph(&plainest);
    for (int mode = 0; mode < KBI_EVENT_MODES; mode++) {
        double own = kbi_empty_time((kbi_mode)mode, 0, &error, &apart);
        m->floor[mode] = kbi_time_empty((kbi_mode)mode, true, 0);
        m->bias[mode] = m->floor[mode] - own;
        m->own_error = c->measured ? 0 : own; // --env shows the error of mode hot, the last of the loop
    }
    m->floor[KBI_ROTATE] = c->graph_floor;
    m->quantum = c->quantum;
    m->empty_pair = c->empty_pair;
    snprintf(m->truth, sizeof m->truth, "%s",
             c->measured ? "measured by CUPTI" : "estimated, not measured: half of the kernel's time in a graph");
}

// Times empty kernels by CUPTI, in a separate process, because CUPTI cannot be unloaded. false: CUPTI failed.
static bool kbi_measure_truth(kbi_reference* truth) {
    enum { KBI_TRUTH_LAUNCHES = 96 };
    double ns[KBI_TRUTH_LAUNCHES];
    if (!kbi_cupti_open()) return false;
    for (int i = 0; i < 200; i++) kbi_evict();
    for (int i = 0; i < 12 * KBI_EVENT_MODES; i++) {
        int mode = i / 12, writes = i / 6 % 2, wide = i / 3 % 2, deep = i % 3;
        kbi_shape shape = { wide ? kbi_meter.gpu.multiprocessors : 1, kbi_reference_threads[deep], 0, 1, 0, writes };
        int empty = kbi_empty_index(&shape);
        cudaStreamSynchronize(kbi_meter.gpu.stream);
        kbi_cupti_read(1, ns, KBI_TRUTH_LAUNCHES);
        for (int k = 0; k < KBI_TRUTH_LAUNCHES; k++) kbi_time_empty((kbi_mode)mode, true, empty);
        int n = kbi_cupti_read(1, ns, KBI_TRUTH_LAUNCHES);
        if (n < KBI_TRUTH_LAUNCHES * 3 / 4) return false;
        truth->ns[mode][writes][wide][deep] = kbi_trimmed(ns, n, n / 4);
    }
    return true;
}
#endif

static void kbi_reference_set(const kbi_reference* truth) {
    (void)truth;
#if KBI_CUDA
    kbi_meter.calibration.truth = *truth;
    kbi_meter.calibration.measured = true;
#endif
}

/*-----------------------------------------------------------------
  >>audit     measure: the timed block, called once under stream capture, which records its work.
-----------------------------------------------------------------*/

#if KBI_CUDA
typedef struct kbi_captured {
    size_t kernels, copies, within, sets, host, allocations, others; // within: device-to-device copies
    cudaGraphNode_t node;
    kbi_cu_kernel first;
} kbi_captured;

// Gets the parameters of a graph's kernel from the driver, which knows the kernels of all CUDA runtimes. function:
// NULL if unknown.
static void kbi_kernel_node(cudaGraphNode_t node, kbi_cu_kernel* kernel) {
    int (*get)(cudaGraphNode_t node, kbi_cu_kernel* kernel);
    kbi_driver_find("cuGraphKernelNodeGetParams", 11000, &get);
    memset(kernel, 0, sizeof *kernel);
    if (get && get(node, kernel) != 0) kernel->function = NULL;
}

static void kbi_count_node(kbi_captured* work, cudaGraphNode_t node) {
    enum cudaGraphNodeType type;
    struct cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof copy);
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return;
    switch (type) {
    case cudaGraphNodeTypeKernel:
        if (!work->kernels++) kbi_kernel_node(work->node = node, &work->first);
        break;
    case cudaGraphNodeTypeMemcpy:
        work->copies++;
        work->within +=
            cudaGraphMemcpyNodeGetParams(node, &copy) == cudaSuccess && copy.kind == cudaMemcpyDeviceToDevice;
        break;
    case cudaGraphNodeTypeHost: work->host++; break;
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: work->allocations++; break;
    case cudaGraphNodeTypeMemset: work->sets++; break;
    case cudaGraphNodeTypeGraph: work->others++; break;
    default: break; // event nodes and empty nodes are not work
    }
}

#if defined(__cplusplus)
extern "C" char* __cxa_demangle(const char* name, char* out, size_t* length, int* status);
#endif

static void kbi_kernel_name(char* out, size_t size, const char* name) {
    char* plain = NULL;
#if defined(__cplusplus)
    int status = 0;
    if (strncmp(name, "_Z", 2) == 0) plain = __cxa_demangle(name, NULL, NULL, &status); // "f" alone is float
#endif
    kbi_fit(out, 0, size, "%s", plain ? plain : name);
    free(plain); // __cxa_demangle calls malloc
}

static void kbi_kernel_properties(kbi_measured* m, const kbi_cu_kernel* k) {
    static const int which[3] = { KBI_CU_REGISTERS, KBI_CU_LOCAL, KBI_CU_SHARED };
    kbi_cu_get get;
    int (*fits)(int* blocks, void* function, int threads, size_t shared);
    int (*name_of)(const char** name, void* function);
    const char* name = NULL;
    int value[3] = { 0, 0, 0 }, blocks = 0, threads = (int)(k->block[0] * k->block[1] * k->block[2]);
    kbi_driver_find("cuFuncGetAttribute", 12000, &get);
    kbi_driver_find("cuOccupancyMaxActiveBlocksPerMultiprocessor", 12000, &fits);
    kbi_driver_find("cuFuncGetName", 12030, &name_of);
    for (int i = 0; i < 3; i++) m->grid[i] = (int)k->grid[i], m->block[i] = (int)k->block[i];
    for (int i = 0; i < 3; i++)
        if (!get || get(&value[i], which[i], k->function) != 0) return;
    m->registers = value[0];
    m->local_bytes = value[1];
    m->shared_bytes = value[2] + (int64_t)k->shared;
    if (fits && fits(&blocks, k->function, threads, k->shared) == 0)
        m->occupancy = 100.0 * blocks * threads / kbi_meter.gpu.max_threads;
    if (name_of && name_of(&name, k->function) == 0 && name) kbi_kernel_name(m->kernel, sizeof m->kernel, name);
}

static bool kbi_points_to_memory(const void* argument, size_t bytes) {
    for (size_t i = 0; i + sizeof(void*) <= bytes; i += sizeof(void*)) {
        struct cudaPointerAttributes attributes;
        void* p;
        memcpy(&p, (const char*)argument + i, sizeof p);
        if ((uintptr_t)p >= 4096 && cudaPointerGetAttributes(&attributes, p) == cudaSuccess &&
            (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged))
            return true;
    }
    return false;
}

// Returns the index of an empty kernel with the launch shape of the block's first kernel. An empty kernel has at
// most one thread block per multiprocessor, because further thread blocks take time.
static int kbi_empty_match(const kbi_captured* work, const kbi_measured* m, const kbi_machine* machine) {
    const kbi_cu_kernel* k = &work->first;
    kbi_shape shape = { 1, (int)(k->block[0] * k->block[1] * k->block[2]), 0, 1, 0, 0 };
    int (*argument)(void* function, size_t index, size_t* offset, size_t* size);
    kbi_cu_get get;
    size_t offset = 0, size = 0, bytes = 0;
    if (machine->tool[0] || !k->function) return 0; // compute-sanitizer would report a query past the last argument
    kbi_driver_find("cuFuncGetParamInfo", 12040, &argument);
    kbi_driver_find("cuFuncGetAttribute", 12000, &get);
    shape.writes = !argument;
    for (size_t i = 0; argument && argument(k->function, i, &offset, &size) == 0; i++) {
        bytes = offset + size;
        if (!shape.writes) shape.writes = !k->given || kbi_points_to_memory(k->given[i], size);
    }
    while (shape.which < KBI_EMPTY_KERNELS - 1 && kbi_empty_bytes[shape.which] < (int)bytes) shape.which++;
    for (int i = 0, extent; get && i < 3; i++) // cluster size set at compile time
        if (get(&extent, KBI_CU_CLUSTER_X + i, k->function) == 0) shape.cluster *= KBI_MAX(extent, 1);
    cudaKernelNodeAttrValue launch; // cluster size set at launch
    memset(&launch, 0, sizeof launch);
    if (cudaGraphKernelNodeGetAttribute(work->node, cudaLaunchAttributeClusterDimension, &launch) == cudaSuccess)
        shape.cluster =
            KBI_MAX(shape.cluster, (int)(launch.clusterDim.x * launch.clusterDim.y * launch.clusterDim.z));
    double blocks = (double)k->grid[0] * k->grid[1] * k->grid[2];
    shape.blocks = (int)KBI_MIN(blocks, (double)machine->multiprocessors);
    shape.blocks = KBI_MAX(shape.blocks / shape.cluster, 1) * shape.cluster;
    shape.shared = (int)KBI_MAX(m->shared_bytes, (int64_t)0);
    return kbi_empty_index(&shape);
}

static void kbi_gpu_audit_begin(kbi_run* run) {
    cudaDeviceSynchronize(); // waits for the set-up of the benchmark
    run->work.captured = run->recipe->audit && !(run->work.expect & KB_EXPECT_NO_CAPTURE);
    if (run->work.captured) cudaStreamBeginCapture(run->kb.stream, cudaStreamCaptureModeThreadLocal);
}

// Checks for work on other streams. The GPU must be idle after a captured block, and after any other block when
// kb->stream has ended. stream_ns: time that the host waited for kb->stream. A single check may be wrong, because
// the host was preempted or the other work ended early: two idle checks accept the block, and four busy checks
// raise SIDE_STREAM.
static void kbi_check_other_streams(kbi_run* run, int64_t stream_ns) {
    enum { KBI_LOOKS_CLEAR = 2, KBI_LOOKS_BUSY = 4, KBI_BUSY_NS = 50000 };
    kbi_work* w = &run->work;
    int64_t begin = kbi_now();
    bool good = cudaDeviceSynchronize() == cudaSuccess;
    w->busy_checks++;
    w->busy += good && kbi_now() - begin > KBI_MAX((int64_t)KBI_BUSY_NS, stream_ns / 20);
    if (w->busy >= KBI_LOOKS_BUSY)
        kbi_stop(run, KB_FLAG_SIDE_STREAM, "work on a stream that kb->stream does not wait for");
    w->repeat_audit = !kbi_failed(run) && w->busy_checks - w->busy < KBI_LOOKS_CLEAR;
}

static void kbi_judge_captured(kbi_run* run, const kbi_captured* work) {
    run->work.recorded = (int64_t)(work->kernels + work->copies + work->sets);
    run->work.nodes = run->work.recorded + (int64_t)(work->others + work->allocations);
    run->work.on_device = work->within == work->copies;
    if (work->first.function) kbi_kernel_properties(&run->m, &work->first);
    run->work.empty_kernel = kbi_empty_match(work, &run->m, run->machine);
    if (work->copies && !(run->work.expect & KB_EXPECT_TRANSFER))
        kbi_stop(run, KB_FLAG_TRANSFER, "%zu cop%s in the timed block", work->copies,
                 work->copies == 1 ? "y" : "ies");
    else if (work->allocations)
        kbi_stop(run, KB_FLAG_ALLOC_INSIDE, "cudaMallocAsync or cudaFreeAsync in the timed block");
    else if (work->host && !(run->work.verdict && run->work.verdict->known))
        kb_note(&run->kb, "a host function in the timed block's stream: its time is in the result");
    else if (!run->work.nodes && !work->host)
        kbi_stop(run, KB_FLAG_NO_WORK, "no GPU work was submitted to kb->stream");
}

typedef struct kbi_capture {
    cudaGraph_t graph;       // NULL: the capture failed
    cudaGraphNode_t* nodes;  // NULL: the graph cannot be read
    size_t n;
    cudaError_t inside, end;
} kbi_capture;

static kbi_capture kbi_capture_end(kbi_run* run) {
    kbi_capture c = { NULL, NULL, 0, cudaGetLastError(), cudaSuccess };
    c.end = cudaStreamEndCapture(run->kb.stream, &c.graph);
    if (c.inside == cudaSuccess && c.end == cudaSuccess && cudaGraphGetNodes(c.graph, NULL, &c.n) == cudaSuccess) {
        c.nodes = KBI_GROW(NULL, cudaGraphNode_t, c.n + 1);
        cudaGraphGetNodes(c.graph, c.nodes, &c.n);
    }
    return c;
}

// Returns a hash of a graph's nodes, independent of their order. The hash covers the type of each node and, for
// kernels, the first fields of the driver's structure: function, grid, block and shared memory.
static uint64_t kbi_work_hash(const cudaGraphNode_t* nodes, size_t n) {
    enum { KBI_SHAPE_BYTES = 8 + 7 * 4 };
    uint64_t sum = 1;
    for (size_t i = 0; i < n; i++) {
        kbi_cu_kernel kernel;
        enum cudaGraphNodeType type;
        memset(&kernel, 0, sizeof kernel);
        if (cudaGraphNodeGetType(nodes[i], &type) != cudaSuccess) continue;
        if (type == cudaGraphNodeTypeKernel) kbi_kernel_node(nodes[i], &kernel);
        sum += kbi_hash_bytes(14695981039346656037u + (uint64_t)type, (const char*)&kernel, KBI_SHAPE_BYTES);
    }
    return sum;
}

static void kbi_audit_rejected(kbi_run* run, cudaError_t inside, cudaError_t end) {
    const kbi_verdict* v = run->work.verdict;
    const cudaError_t error = inside != cudaSuccess ? inside : end;
    if (inside == cudaErrorStreamCaptureImplicit)
        kbi_stop(run, KB_FLAG_SIDE_STREAM, "work on the default stream, or a synchronous copy, in the timed block");
    else if (end == cudaErrorStreamCaptureUnjoined || end == cudaErrorStreamCaptureUnmatched ||
             inside == cudaErrorStreamCaptureIsolation)
        kbi_stop(run, KB_FLAG_SIDE_STREAM, "work on a stream that kb->stream does not wait for");
    else if (error == cudaErrorStreamCaptureUnsupported || error == cudaErrorStreamCaptureInvalidated)
        kbi_stop(run, KB_FLAG_SYNC_INSIDE,
                 "stream capture rejected a call in the timed block: a synchronisation, cudaMalloc, cudaFree, "
                 "cudaGraphLaunch, cudaMemPrefetchAsync or work on the default stream. The rejected call is "
                 "unknown%s%s. If the call does not wait: kb_expect(kb, KB_EXPECT_NO_CAPTURE)",
                 v && v->note[0] ? ": " : ", because only a separate process inspects the calls", v ? v->note : "");
    else
        kbi_stop(run, KB_FLAG_CUDA_ERROR, "%s under stream capture", kbi_cuda_text(error));
}

static void kbi_gpu_audit_end(kbi_run* run) {
    kbi_work* w = &run->work;
    const bool inspected = w->verdict && w->verdict->known;
    w->repeat_audit = false;
    if (!w->captured) {
        int64_t begin = kbi_now();
        cudaStreamSynchronize(run->kb.stream);
        if (!run->schedule.is_copy) kbi_check_other_streams(run, kbi_now() - begin);
        return;
    }
    kbi_capture c = kbi_capture_end(run);
    bool judged = c.nodes && !(w->expect & KB_EXPECT_NO_CAPTURE); // the block itself may have set `expect`
    // Captured work does not execute: if the GPU is busy, the block submitted work to another stream.
    if (c.nodes && !run->schedule.is_copy && !inspected) kbi_check_other_streams(run, 0);
    if (!c.nodes && inspected) { // the inspection found no error
        w->expect |= KB_EXPECT_NO_CAPTURE;
        kb_note(&run->kb, "not audited: stream capture rejected the block (%s); only its calls were inspected",
                cudaGetErrorName(c.inside != cudaSuccess ? c.inside : c.end));
    } else if (!c.nodes) {
        kbi_audit_rejected(run, c.inside, c.end);
    } else if (judged && !w->repeat_audit) {
        kbi_captured work;
        memset(&work, 0, sizeof work);
        for (size_t i = 0; i < c.n; i++) kbi_count_node(&work, c.nodes[i]);
        if (!run->machine->tool[0]) w->shape = kbi_work_hash(c.nodes, c.n);
        kbi_judge_captured(run, &work);
    }
    KBENCH_FREE(c.nodes);
    cudaGetLastError();
    if (judged && !w->repeat_audit && !kbi_failed(run)) { // keeps the graph for --rotate and mode graph
        kbi_graph* kept = KBI_GROW(NULL, kbi_graph, 1);
        memset(kept, 0, sizeof *kept);
        kept->one = c.graph;
        w->graph = kept;
    } else if (c.graph) {
        cudaGraphDestroy(c.graph);
    }
}

// Called if C++ code left the audited block: a library may throw because stream capture rejected a call.
static void kbi_gpu_audit_left(kbi_run* run) {
    cudaError_t inside, end;
    if (kbi_capture_abort(&inside, &end) && (inside != cudaSuccess || end != cudaSuccess))
        kbi_audit_rejected(run, inside, end);
}

static void kbi_gpu_compare(kbi_run* run) {
    kbi_capture c = kbi_capture_end(run);
    if (!c.nodes)
        kbi_audit_rejected(run, c.inside, c.end);
    else if (kbi_work_hash(c.nodes, c.n) != run->work.shape)
        kbi_stop(run, KB_FLAG_WORK_CHANGED,
                 "a launch after the samples submits different work from the first launch (%zu nodes)", c.n);
    KBENCH_FREE(c.nodes);
    if (c.graph) cudaGraphDestroy(c.graph);
    cudaGetLastError();
}
#endif

/*-----------------------------------------------------------------
  >>inspect   measure: the CUDA calls of the timed block, recorded by CUPTI in an untimed run.
-----------------------------------------------------------------*/

#if KBI_CUDA
enum {
    KBI_SUBMITS = 1 << 0,
    KBI_KERNEL = 1 << 1,  // launches a kernel whose name CUPTI knows
    KBI_COPIES = 1 << 2,
    KBI_ALLOCATES = 1 << 3,
    KBI_RECORDS = 1 << 4,        // records an event, or writes to an address
    KBI_STREAM_WAITS = 1 << 5,   // a stream waits for an event or address
    KBI_HOST_STREAM = 1 << 6,    // the host waits for, or queries, a stream
    KBI_HOST_EVENT = 1 << 7,     // the host waits for, or queries, an event
    KBI_HOST_ALL = 1 << 8,       // the host waits for all streams
    KBI_HOST_WAITS = 7 << 6,     // any KBI_HOST_ bit above
    KBI_CREATES = 1 << 9,
    KBI_CAPTURES = 1 << 10,
    KBI_HOST_FUNCTION = 1 << 11,
    KBI_UNCAPTURED = 1 << 12,    // stream capture rejects the call or changes its effect
};
enum { KBI_STREAM_LEGACY = 1, KBI_STREAM_PER_THREAD = 2 }; // the driver's handles of the default streams
enum { KBI_ERROR_NOT_READY = 600, KBI_CALLS_LIMIT = 1 << 16 };

typedef struct kbi_cuda_call {
    int32_t kind, number;
    int32_t error;
    uint64_t stream, object;
    const char* name;
    char kernel[80];        // "": not a kernel launch
    bool follows, precedes; // the call's work starts after the start event; ends before the stop event
} kbi_cuda_call;

// --- whether kb->stream waits for the work of the calls ---

// A node of the order graph is the host, a stream, an event, or an address that a stream writes. If CUDA reuses a
// handle, the handle gets a new node. kb->stream and the legacy default stream share a node, because each waits
// for the other.
typedef struct kbi_order_node {
    uint64_t handle;
    bool stream, reached;
} kbi_order_node;

// Later work of node `second` waits for earlier work of node `first`. A negative `second` means call -1 - second.
typedef struct kbi_order_edge {
    int first, second;
} kbi_order_edge;

static struct kbi_order_graph {
    kbi_order_node* nodes;
    int n;
    kbi_text edges;
} kbi_order_graph;

static int kbi_order_add(uint64_t handle, bool stream) {
    struct kbi_order_graph* g = &kbi_order_graph;
    const kbi_order_node node = { handle, stream, false };
    g->nodes = (kbi_order_node*)kbi_grow(g->nodes, sizeof node * (size_t)(g->n + 1));
    g->nodes[g->n] = node;
    return g->n++;
}

static int kbi_order_find(uint64_t handle, bool stream) {
    if (stream && handle == KBI_STREAM_LEGACY) return 1;
    for (int i = kbi_order_graph.n - 1; i > 0; i--)
        if (kbi_order_graph.nodes[i].handle == handle && kbi_order_graph.nodes[i].stream == stream) return i;
    return kbi_order_add(handle, stream);
}

static void kbi_order_edge_add(int first, int second) {
    const kbi_order_edge edge = { first, second };
    kbi_put(&kbi_order_graph.edges, (const char*)&edge, sizeof edge);
}

// Sets `follows` if the call's work waits, through streams, events or the host, for the start event in kb->stream.
// Sets `precedes` if the stop event in kb->stream waits for the call's work. Work that the host submits starts
// after all work that the host has waited for.
static void kbi_order_calls(kbi_cuda_call* calls, int n, uint64_t timed_stream) {
    const int on_stream = KBI_SUBMITS | KBI_RECORDS | KBI_STREAM_WAITS | KBI_HOST_STREAM;
    struct kbi_order_graph* g = &kbi_order_graph;
    memset(g, 0, sizeof *g);
    kbi_order_add(0, false);
    kbi_order_add(timed_stream, true);
    for (int i = 0; i < n; i++) {
        const kbi_cuda_call* c = &calls[i];
        int stream = 0, event = 0, kind = c->error ? 0 : c->kind;
        if (kind & KBI_CREATES) kbi_order_add(c->stream, true);
        if (kind & on_stream) kbi_order_edge_add(0, stream = kbi_order_find(c->stream, true));
        if (kind & (KBI_STREAM_WAITS | KBI_HOST_EVENT)) event = kbi_order_find(c->object, false);
        if (kind & KBI_RECORDS) event = kbi_order_add(c->object, false);
        if (kind & KBI_SUBMITS) kbi_order_edge_add(stream, -1 - i);
        if (kind & KBI_RECORDS) kbi_order_edge_add(stream, event);
        if (kind & KBI_STREAM_WAITS) kbi_order_edge_add(event, stream);
        if (kind & KBI_HOST_STREAM) kbi_order_edge_add(stream, 0);
        if (kind & KBI_HOST_EVENT) kbi_order_edge_add(event, 0);
        for (int k = 1; k < g->n && kind & KBI_HOST_ALL; k++)
            if (g->nodes[k].stream) kbi_order_edge_add(k, 0);
    }
    kbi_order_edge_add(0, 1);
    const kbi_order_edge* edges = (const kbi_order_edge*)(const void*)g->edges.s;
    const size_t n_edges = g->edges.n / sizeof *edges;
    for (int backward = 0; backward < 2; backward++) {
        for (int i = 0; i < g->n; i++) g->nodes[i].reached = i == 1;
        for (size_t i = 0; i < n_edges; i++) {
            const kbi_order_edge e = edges[backward ? n_edges - 1 - i : i];
            const int from = backward ? e.second : e.first, to = backward ? e.first : e.second;
            if (e.second >= 0)
                g->nodes[to].reached |= g->nodes[from].reached;
            else
                *(backward ? &calls[-1 - from].precedes : &calls[-1 - to].follows) = g->nodes[e.first].reached;
        }
    }
    KBENCH_FREE(g->nodes);
    kbi_text_free(&g->edges);
}

KBI_PRINTF(4, 5)
static bool kbi_verdict_set(kbi_verdict* v, kb_flag flag, const kbi_cuda_call* c, const char* format, ...) {
    va_list list;
    snprintf(v->message, sizeof v->message, "%.60s%s%s, call %d of the block", c->name, *c->kernel ? " of " : "",
             c->kernel, c->number);
    v->flag = (int32_t)flag;
    va_start(list, format);
    kbi_vfit(v->message, strlen(v->message), sizeof v->message, format, list);
    va_end(list);
    return true;
}

// cudaErrorNotReady of a query is no error.
static bool kbi_judge_errors(kbi_verdict* v, const kbi_cuda_call* calls, int n, unsigned expect) {
    for (const kbi_cuda_call* c = calls; c < calls + n; c++) {
        bool query = c->kind & KBI_HOST_WAITS && c->error == KBI_ERROR_NOT_READY;
        bool allocates = c->kind & KBI_ALLOCATES && !(expect & KB_EXPECT_ALLOC);
        if (!c->error || c->kind == 0 || query) continue;
        return kbi_verdict_set(v, allocates ? KB_FLAG_ALLOC_INSIDE : KB_FLAG_CUDA_ERROR, c, ", failed (%s), %s",
                               cudaGetErrorName((cudaError_t)c->error),
                               allocates ? "and allocation is timed" : "so its work is missing from the time");
    }
    return false;
}

// Judges the CUDA calls of a block. If the block may synchronize or allocate, the host's clock times the work of all
// streams, so streams are not checked. KB_EXPECT_NO_CAPTURE allows the default stream if kb->stream waits for it.
static void kbi_streams_judge(kbi_verdict* v, kbi_cuda_call* calls, int n, uint64_t stream, unsigned expect) {
    static const struct {
        int kinds;
        unsigned expected;
        kb_flag flag;
        const char* why;
    } bad[] = { { KBI_ALLOCATES, KB_EXPECT_ALLOC, KB_FLAG_ALLOC_INSIDE, ": allocation is timed" },
                { KBI_COPIES, KB_EXPECT_TRANSFER, KB_FLAG_TRANSFER, ": a copy is timed" },
                { KBI_HOST_WAITS, 0, KB_FLAG_SYNC_INSIDE, ": the host waits inside the timed block" } };
    const bool by_host = (expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC)) != 0;
    const bool strict = !by_host && !(expect & KB_EXPECT_NO_CAPTURE);
    memset(v, 0, sizeof *v);
    v->known = v->captures = 1;
    v->flag = -1;
    bool wrong = kbi_judge_errors(v, calls, n, expect);
    for (const kbi_cuda_call* c = calls; c < calls + n; c++) {
        v->work += !c->error && c->kind & (KBI_SUBMITS | KBI_COPIES);
        if (c->kind & KBI_UNCAPTURED) v->captures = 0;
        if (!(c->kind & KBI_CAPTURES) || wrong || by_host) continue;
        v->known = 0;
        snprintf(v->note, sizeof v->note, "the block captures work into a graph of its own (%.60s)", c->name);
        return;
    }
    if (!wrong && !by_host) kbi_order_calls(calls, n, stream);
    for (const kbi_cuda_call* c = calls; c < calls + n && !wrong && !by_host; c++) {
        const char* where = c->stream == KBI_STREAM_PER_THREAD ? "the per-thread default stream" : "another stream";
        if (c->error || !(c->kind & KBI_SUBMITS)) continue;
        if (strict && c->stream == KBI_STREAM_LEGACY)
            wrong = kbi_verdict_set(v, KB_FLAG_SIDE_STREAM, c, ": its work went to the default stream");
        else if (!c->precedes || !c->follows)
            wrong = kbi_verdict_set(v, KB_FLAG_SIDE_STREAM, c, ": its work went to %s that %s", where,
                                    c->precedes ? "does not wait for kb->stream" : "kb->stream does not wait for");
    }
    for (int i = 0; i < KBI_COUNT(bad) && strict; i++)
        for (const kbi_cuda_call* c = calls; c < calls + n && !wrong && !(expect & bad[i].expected); c++)
            if (c->kind & bad[i].kinds) wrong = kbi_verdict_set(v, bad[i].flag, c, "%s", bad[i].why);
    for (const kbi_cuda_call* c = calls; c < calls + n && strict && !wrong && !*v->note; c++)
        if (c->kind & (KBI_UNCAPTURED | KBI_HOST_FUNCTION))
            snprintf(v->note, sizeof v->note, "%.60s in the block%s", c->name,
                     v->captures ? "" : ": the block was not captured; only its calls were inspected");
}

// Driver functions that submit or order work, wait, or allocate; runtime functions call driver functions. stream,
// object: offsets of the stream, and of the event or address, in CUPTI's parameters; -1: not a parameter.
enum { KBI_IN_CONFIG = -2, KBI_CONFIG_STREAM = 32 }; // the stream's offset in CUlaunchConfig
typedef struct kbi_driver_call {
    const char* names; // function names without _ptsz or _ptds, and without _v2 unless versions differ
    int16_t kind;
    int8_t stream, object;
} kbi_driver_call;
// clang-format off
static const kbi_driver_call kbi_driver_calls[] = {
    { "cuLaunchKernel cuLaunchCooperativeKernel", KBI_SUBMITS | KBI_KERNEL, 40, -1 },
    { "cuLaunchKernelEx", KBI_SUBMITS | KBI_KERNEL, KBI_IN_CONFIG, -1 },
    { "cuLaunchGridAsync", KBI_SUBMITS | KBI_KERNEL, 16, -1 },
    { "cuGraphLaunch", KBI_SUBMITS | KBI_UNCAPTURED, 8, -1 },
    { "cuLaunchHostFunc cuStreamAddCallback", KBI_SUBMITS | KBI_HOST_FUNCTION, 0, -1 },
    { "cuStreamAttachMemAsync", KBI_SUBMITS | KBI_UNCAPTURED, 0, -1 },
    { "cuMemPrefetchAsync", KBI_SUBMITS | KBI_UNCAPTURED, 24, -1 },
    { "cuMemPrefetchAsync_v2 cuMemDiscardBatchAsync cuMemBatchDecompressAsync",
      KBI_SUBMITS | KBI_UNCAPTURED, 32, -1 },
    { "cuMemPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync", KBI_SUBMITS | KBI_UNCAPTURED, 56, -1 },
    { "cuMemcpy2DAsync cuMemcpy3DAsync cuMemcpy3DPeerAsync", KBI_SUBMITS | KBI_COPIES, 8, -1 },
    { "cuMemcpyAsync cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemcpy3DBatchAsync_v2",
      KBI_SUBMITS | KBI_COPIES, 24, -1 },
    { "cuMemcpyHtoAAsync cuMemcpyAtoHAsync cuMemcpy3DBatchAsync", KBI_SUBMITS | KBI_COPIES, 32, -1 },
    { "cuMemcpyPeerAsync", KBI_SUBMITS | KBI_COPIES, 40, -1 },
    { "cuMemcpyBatchAsync_v2", KBI_SUBMITS | KBI_COPIES, 56, -1 },
    { "cuMemcpyBatchAsync", KBI_SUBMITS | KBI_COPIES, 64, -1 },
    { "cuMemcpy cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpyDtoA cuMemcpyAtoD cuMemcpyHtoA cuMemcpyAtoH "
      "cuMemcpyAtoA cuMemcpy2D cuMemcpy2DUnaligned cuMemcpy3D cuMemcpy3DPeer cuMemcpyPeer",
      KBI_COPIES | KBI_HOST_STREAM | KBI_UNCAPTURED, -1, -1 },
    { "cuMemsetD8Async cuMemsetD16Async cuMemsetD32Async", KBI_SUBMITS, 24, -1 },
    { "cuMemsetD2D8Async cuMemsetD2D16Async cuMemsetD2D32Async", KBI_SUBMITS, 40, -1 },
    { "cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32", KBI_SUBMITS, -1, -1 },
    { "cuEventRecord cuEventRecordWithFlags", KBI_RECORDS, 8, 0 },
    { "cuStreamWriteValue32 cuStreamWriteValue64", KBI_RECORDS, 0, 8 },
    { "cuStreamWaitEvent cuStreamWaitValue32 cuStreamWaitValue64", KBI_STREAM_WAITS, 0, 8 },
    { "cuCtxSynchronize", KBI_HOST_ALL | KBI_UNCAPTURED, -1, -1 },
    { "cuStreamSynchronize cuStreamQuery", KBI_HOST_STREAM | KBI_UNCAPTURED, 0, -1 },
    { "cuEventSynchronize cuEventQuery", KBI_HOST_EVENT | KBI_UNCAPTURED, -1, 0 },
    { "cuMemFreeAsync", KBI_ALLOCATES, 8, -1 },
    { "cuMemAllocAsync", KBI_ALLOCATES, 16, -1 },
    { "cuMemAllocFromPoolAsync", KBI_ALLOCATES, 24, -1 },
    { "cuMemAlloc cuMemAllocPitch cuMemAllocManaged cuMemAllocHost cuMemFree cuMemFreeHost cuMemHostAlloc "
      "cuMemHostRegister cuMemHostUnregister cuMemCreate cuMemRelease cuMemMap cuMemUnmap cuArrayCreate "
      "cuArray3DCreate cuArrayDestroy", KBI_ALLOCATES | KBI_UNCAPTURED, -1, -1 },
    { "cuStreamCreate cuStreamCreateWithPriority", KBI_CREATES, -1, 0 },
    { "cuStreamBeginCapture cuStreamBeginCaptureToGraph", KBI_CAPTURES | KBI_UNCAPTURED, 0, -1 },
};
// clang-format on

// If a runtime function with one of these prefixes fails, the work of the block is incomplete, even if the
// function did not call the driver.
static const char kbi_runtime_calls[] =
    "cudaLaunch cudaMemcpy cudaMemset cudaMemPrefetch cudaGraphLaunch cudaGraphInstantiate cudaEventRecord "
    "cudaStreamWait cudaMalloc cudaFree cudaHostAlloc cudaDeviceSynchronize cudaEventSync cudaStreamSynchronize";

typedef struct kbi_api_call { // CUpti_CallbackData
    int32_t exits, gap;
    const char* name;
    const void* parameters;
    const int* result;
    const char* symbol;
} kbi_api_call;

static struct kbi_calls {
    kbi_cuda_call* list;
    int n, number; // n: length of list; number: number of the latest call
    bool on, lost;
    volatile char busy;
    void* subscriber;
} kbi_calls;

static __thread struct kbi_runtime_call {
    const char* name;
    int number, first;                    // number of the call; index in kbi_calls.list of its first driver call
} kbi_runtime_call;

static bool kbi_names_contain(const char* list, const char* name, size_t n, bool prefix) {
    for (; *list; list += strspn(list, " ")) {
        const size_t length = strcspn(list, " ");
        if ((length == n || (prefix && length < n)) && strncmp(list, name, length) == 0) return true;
        list += length;
    }
    return false;
}

// Returns the row for "cuMemAlloc_v2_ptsz" or "cuMemAlloc"; NULL: none. per_thread: the name has _ptsz or _ptds.
static const kbi_driver_call* kbi_driver_call_find(const char* name, bool* per_thread) {
    const char* end = strstr(name, "_pt");
    *per_thread = end != NULL;
    for (int cut = 0; cut < 2; cut++) {
        const size_t n = end ? (size_t)(end - name) : strlen(name);
        for (int i = 0; i < KBI_COUNT(kbi_driver_calls); i++)
            if (kbi_names_contain(kbi_driver_calls[i].names, name, n, false)) return &kbi_driver_calls[i];
        if (strstr(name, "_v")) end = strstr(name, "_v");
    }
    return NULL;
}

static uint64_t kbi_word_at(const void* from, int offset) {
    uint64_t word = 0;
    if (from && offset >= 0) memcpy(&word, (const char*)from + offset, sizeof word);
    return word;
}

// symbol: the mangled name of the kernel that the call launches, or NULL.
static kbi_cuda_call* kbi_call_add(const kbi_api_call* api, int kind, const char* symbol) {
    static kbi_cuda_call unlisted;
    struct kbi_calls* all = &kbi_calls;
    char plain[512];
    if (!all->list) all->list = KBI_GROW(NULL, kbi_cuda_call, KBI_CALLS_LIMIT);
    all->lost |= all->n >= KBI_CALLS_LIMIT;
    kbi_cuda_call* c = all->lost ? &unlisted : &all->list[all->n++];
    memset(c, 0, sizeof *c);
    c->kind = kind;
    c->error = api->result ? *api->result : 0;
    c->name = kbi_runtime_call.name ? kbi_runtime_call.name : api->name;
    c->number = kbi_runtime_call.name ? kbi_runtime_call.number : ++all->number;
    if (symbol && *symbol) {
        kbi_kernel_name(plain, sizeof plain, symbol);
        const char* name = strncmp(plain, "void ", 5) == 0 ? plain + 5 : plain;
        snprintf(c->kernel, sizeof c->kernel, "%.*s", 1 + (int)strcspn(name + 1, "(<"), name);
    }
    return c;
}

static void kbi_driver_returned(const kbi_api_call* api) {
    bool per_thread = false;
    const kbi_driver_call* row = kbi_driver_call_find(api->name, &per_thread);
    if (!row) return;
    kbi_cuda_call* c = kbi_call_add(api, row->kind, row->kind & KBI_KERNEL ? api->symbol : NULL);
    c->object = kbi_word_at(api->parameters, row->object);
    c->stream = kbi_word_at(api->parameters, row->stream);
    if (row->stream == KBI_IN_CONFIG)
        c->stream = kbi_word_at((const void*)(uintptr_t)kbi_word_at(api->parameters, 0), KBI_CONFIG_STREAM);
    if (c->kind == KBI_CREATES && !c->error) c->stream = kbi_word_at((const void*)(uintptr_t)c->object, 0);
    if (!c->stream) c->stream = per_thread ? KBI_STREAM_PER_THREAD : KBI_STREAM_LEGACY;
}

static void kbi_runtime_returned(const kbi_api_call* api) {
    int error = api->result ? *api->result : 0;
    bool known = false;
    for (int i = kbi_runtime_call.first; i < kbi_calls.n; i++) {
        kbi_cuda_call* driver = &kbi_calls.list[i];
        if (driver->number != kbi_runtime_call.number || !driver->error) continue;
        known = true;
        if (error)
            driver->error = error;
        else
            driver->kind = 0;
    }
    if (error && !known && kbi_names_contain(kbi_runtime_calls, api->name, strlen(api->name), true))
        kbi_call_add(api, KBI_UNCAPTURED, api->symbol);
}

static void kbi_api_called(void* user, int domain, uint32_t id, const void* data) {
    const kbi_api_call* api = (const kbi_api_call*)data;
    (void)user, (void)id;
    if (!kbi_calls.on) return;
    while (__atomic_test_and_set(&kbi_calls.busy, __ATOMIC_ACQUIRE)) {}
    if (domain == 1) {
        if (api->exits) kbi_driver_returned(api);
    } else if (!api->exits) {
        kbi_runtime_call.name = api->name;
        kbi_runtime_call.number = ++kbi_calls.number;
        kbi_runtime_call.first = kbi_calls.n;
    } else if (kbi_runtime_call.name) {
        kbi_runtime_returned(api);
        kbi_runtime_call.name = NULL;
    }
    __atomic_clear(&kbi_calls.busy, __ATOMIC_RELEASE);
}

static bool kbi_inspect_open(kb_state* kb) {
    char why[400];
    int error = 0;
    (void)kb;
    const bool found = kbi_cupti_load() && kbi_meter.cupti.subscribe && kbi_meter.cupti.follow;
    if (found && !kbi_calls.subscriber)
        error = kbi_meter.cupti.subscribe(&kbi_calls.subscriber, kbi_api_called, NULL);
    if (found && !error) return true;
    kbi_calls.subscriber = NULL;
    snprintf(kbi_meter.insight.head.verdict.note, sizeof kbi_meter.insight.head.verdict.note, "%.300s",
             found ? kbi_cupti_error_text("cuptiSubscribe", error, why) : kbi_cupti_unavailable(why));
    return false;
}

static int64_t kbi_inspect_begin(kb_state* kb) {
    (void)kb;
    cudaDeviceSynchronize();
    kbi_calls.n = kbi_calls.number = kbi_calls.lost = 0;
    memset(&kbi_runtime_call, 0, sizeof kbi_runtime_call);
    for (int domain = 1; domain <= 2; domain++) kbi_meter.cupti.follow(1, kbi_calls.subscriber, domain);
    kbi_calls.on = true;
    return 1;
}

static bool kbi_inspect_end(kb_state* kb) {
    (void)kb;
    kbi_calls.on = false;
    for (int domain = 1; domain <= 2; domain++) kbi_meter.cupti.follow(0, kbi_calls.subscriber, domain);
    cudaGetLastError(); // clears the error, which kbi_calls holds
    return false;
}

static void kbi_inspect_close(kb_state* kb) {
    kbi_run* run = kb->run;
    kbi_verdict* v = &kbi_meter.insight.head.verdict;
    cudaDeviceSynchronize();
    if (!kbi_failed(run))
        kbi_streams_judge(v, kbi_calls.list, kbi_calls.n, (uint64_t)(uintptr_t)run->kb.stream, run->work.expect);
    else if (!kbi_lost(run))
        v->known = kbi_judge_errors(v, kbi_calls.list, kbi_calls.n, run->work.expect);
    v->followed = 1;
    if (!kbi_calls.lost) return;
    v->known = 0, v->flag = -1;
    snprintf(v->note, sizeof v->note, "the block makes too many CUDA calls to inspect");
}

static const kb_instrument* kbi_inspect_instrument(void) {
    static kb_instrument i;
    i.bit = KBI_WISH_STREAMS;
    i.open = kbi_inspect_open, i.begin = kbi_inspect_begin, i.end = kbi_inspect_end, i.close = kbi_inspect_close;
    return &i;
}
#endif

/*-----------------------------------------------------------------
  >>roofs     measure: peaks of this device: copy, read and write bandwidth, arithmetic throughput.
-----------------------------------------------------------------*/

// A case is compared with measured peaks (roofs). The peak of bandwidth is the copy peak, or the read or write
// peak if kb_bytes_as declares one direction. The peak of operations is that of the type given to kb_flops_as,
// else of KB_DTYPE, else of f32. A launch above this peak is compared with faster types that its elements allow:
// tf32, f16, bf16 and, if no type is declared, fp8 and int8. On a GPU, a rate above 1.05 times the highest
// applicable peak (tensor cores: 1.1) raises ABOVE_ROOF. Bandwidth is checked only if the cache is cold and the
// data exceed 4 times the size of L2. The bandwidth check subtracts the size of L2 from the bytes of a launch that
// writes, because written bytes may reach memory after the launch. The peaks for ABOVE_ROOF are measured with
// matrices of zeros: random numbers draw more power, which lowers the clock. The f32 peak is measured by chains of
// FMA, other types by matrix products of cuBLASLt, if installed. On the CPU, a peak is that of one core with data
// outside the caches. CPU rates are not checked: several threads may exceed the peak of one core.

KBI_SLOW_END
#if defined(__AVX512F__)
enum { KBI_VECTOR = 64 };
#elif defined(__AVX__)
enum { KBI_VECTOR = 32 };
#else
enum { KBI_VECTOR = 16 }; // SSE2, NEON
#endif
typedef float kbi_floats __attribute__((vector_size(KBI_VECTOR)));
typedef uint64_t kbi_words __attribute__((vector_size(KBI_VECTOR), may_alias));

// Runs 12 independent chains x = x a + b, enough for two FMA units with a latency of up to five cycles. The
// compiler can neither precompute nor remove the chains.
KBI_OPTIMISE static void kbi_core_fma(int64_t steps, volatile float* seed) {
#define KBI_TWELVE(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)
#define KBI_CHAIN_BEGIN(i) , v##i = x[i]
#define KBI_CHAIN_STEP(i) v##i = v##i * a + b;
#define KBI_CHAIN_END(i) x[i] = v##i;
    float start[14 * KBI_VECTOR / sizeof(float)];
    kbi_floats x[14];
    for (size_t i = 0; i < sizeof start / sizeof *start; i++) start[i] = *seed;
    memcpy(x, start, sizeof x);
    kbi_floats a = x[12], b = x[13] KBI_TWELVE(KBI_CHAIN_BEGIN);
    for (; steps > 0; steps--) { KBI_TWELVE(KBI_CHAIN_STEP) }
    KBI_TWELVE(KBI_CHAIN_END)
    __asm__ __volatile__("" : : "r"(x) : "memory");
}

KBI_OPTIMISE static void kbi_core_read(const char* from, size_t bytes) {
    const kbi_words* word = (const kbi_words*)(const void*)from;
    kbi_words sum[2];
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < bytes / KBI_VECTOR; i += 4) {
        // the hardware does not prefetch across pages, and alone reaches only 60 % of the bandwidth
        for (size_t k = 0; k < 4 * KBI_VECTOR; k += 64) __builtin_prefetch(from + i * KBI_VECTOR + k + 4096);
        sum[0] ^= word[i] ^ word[i + 1], sum[1] ^= word[i + 2] ^ word[i + 3];
    }
    __asm__ __volatile__("" : : "r"(sum) : "memory");
}
KBI_SLOW_BEGIN

static int64_t kbi_core_cache(void) { // returns the bytes of the host's largest cache, or 32 MiB
    int64_t largest = 0;
    for (int i = 0; i < 10; i++) {
        char path[80], size[32];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (!kbi_first_line(path, size, (int)sizeof size)) continue;
        largest = KBI_MAX(largest, (int64_t)strtoll(size, NULL, 10) << (strchr(size, 'M') ? 20 : 10));
    }
    return largest ? largest : (int64_t)32 << 20;
}

// Measures a peak of one core: the fastest of at least three passes, in 50 to 250 ms. The time of a preempted pass
// is its CPU time.
static void kbi_core_roof(kbi_roofs* r, int which) {
    volatile float one = 1;
    const bool memory = which <= KBI_ROOF_WRITE;
    int64_t began = kbi_now(), steps = 100000, last = 0;
    // buffer size: twice the largest cache, but 64 to 512 MiB, and at most an eighth of the memory
    int64_t wanted = KBI_MIN(KBI_MAX(2 * kbi_core_cache(), (int64_t)64 << 20), (int64_t)512 << 20);
    size_t size = memory ? (size_t)KBI_MIN(wanted, (int64_t)(kbi_physical_bytes() / 8)) & ~(size_t)4095 : 0;
    double lanes = which == KBI_ROOF_F64 ? KBI_VECTOR / 8 : KBI_VECTOR / 4, best_ns = INFINITY;
    double work = memory ? (double)size : 2 * 12 * lanes * (double)steps;
    char* a = NULL;
    kbi_roof_put(r, which, memory ? KBI_UNTOLD : 0, memory ? KBI_UNTOLD : 0, 0);
    if (which > KBI_ROOF_F32) return;
    if (memory) {
        a = (char*)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (a == MAP_FAILED) return;
#ifdef MADV_HUGEPAGE
        madvise(a, size, MADV_HUGEPAGE);
#endif
        memset(a, 1, size); // allocates the pages
    }
    const int64_t measured = kbi_now();
    for (int i = 0; i < 3 || kbi_now() - measured < 50000000; i++) {
        if (i && kbi_now() - began + last >= 250000000) break;
        int64_t start = kbi_now(), ran = kbi_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (which == KBI_ROOF_COPY) memcpy(a + size / 2, a, size / 2);
        if (which == KBI_ROOF_READ) kbi_core_read(a, size);
        if (which == KBI_ROOF_WRITE) memset(a, i & 255, size);
        if (!memory) kbi_core_fma(steps, &one);
        __asm__ __volatile__("" : : "r"(a) : "memory");
        last = kbi_now() - start, ran = kbi_clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
        best_ns = KBI_MIN(best_ns, (double)(memory && ran > last / 100 ? KBI_MIN(last, ran) : last));
    }
    if (a) munmap(a, size);
    kbi_roof_put(r, which, work / best_ns * 1e9, work / best_ns * 1e9, kbi_seconds_since(began));
}

#if KBI_CUDA
// Returns the time in ns to copy, read or write `size` bytes: after a warm-up launch, the median (if cold) or minimum
// of five launches. Copies and writes take the faster of kbench's kernel and the CUDA runtime's function. Reads take
// the faster of a grid that fills the device and a grid with a block per 16 KiB (6 % faster on an H100).
static double kbi_time_memory(int which, bool cold, char* a, char* b, size_t size) {
    const bool copies = which == KBI_ROOF_COPY;
    double best = INFINITY;
    uint64_t n = size / 16;
    uint32_t value = 0x3f000000;
    void *write[] = { &b, &n, &value }, *copy[] = { &b, &a, &n }, *sink = kbi_meter.gpu.device_clock;
    void* read[] = { &a, &n, &sink };
    for (int runtime = 0; runtime < 2; runtime++) {
        double ns[6];
        for (int i = 0; i < KBI_COUNT(ns); i++) {
            kbi_single_begin(cold, cold);
            if (which == KBI_ROOF_READ && runtime)
                kbi_launch(KBI_F_READ, (unsigned)KBI_MIN((n + 1023) / 1024, (uint64_t)INT32_MAX), 256, read);
            else if (which == KBI_ROOF_READ)
                kbi_gpu_read(a, size);
            else if (!runtime)
                kbi_launch_wide(copies ? KBI_F_COPY : KBI_F_WRITE, copies ? copy : write);
            else if (copies)
                cudaMemcpyAsync(b, a, size, cudaMemcpyDeviceToDevice, kbi_meter.gpu.stream);
            else
                cudaMemsetAsync(b, 63, size, kbi_meter.gpu.stream);
            ns[i] = kbi_single_end();
        }
        kbi_sort(ns + 1, KBI_COUNT(ns) - 1);
        best = KBI_MIN(best, ns[cold ? 3 : 1]);
    }
    return best;
}

// Allocates 2 * size bytes, which the caller frees; the first half is random.
static char* kbi_buffer_pair(size_t size) {
    char* two = NULL;
    if (cudaMalloc((void**)&two, 2 * size) != cudaSuccess) return cudaGetLastError(), (char*)NULL;
    kbi_gpu_fill(two, KB_U32, (int64_t)(size / 4), KB_UNIFORM, 42, 0);
    return two;
}

// Measures the bandwidth of a cold copy, read or write of as many bytes as the case moves, up to 64 times L2. A
// small copy exceeds the copy peak, because the data written last reach memory after the launch.
static void kbi_measure_same_size(kbi_run* run, int which) {
    static struct {
        int which;
        double bytes, rate;
    } last; // one measurement serves all implementations of a comparison
    double bytes = run->m.bytes, bias = run->m.bias_ns;
    size_t size = (size_t)(which == KBI_ROOF_COPY ? bytes / 2 : bytes) & ~(size_t)15;
    bool cold = kbi_is(run->m.cache, "cold") && run->backend->gpu && !run->machine->tool[0];
    if (!cold || bytes < 1 << 20 || !(bytes < 64.0 * (double)run->machine->l2) || !kbi_finite(bias)) return;
    if (last.which != which || last.bytes < bytes || last.bytes > bytes) {
        kbi_beat(run, true);
        char* two = (double)kbi_gpu_free_bytes() > 2.5 * (double)size ? kbi_buffer_pair(size) : NULL;
        last.which = which, last.bytes = bytes;
        last.rate = two ? bytes / (kbi_time_memory(which, true, two, two + size, size) - bias) * 1e9 : (double)NAN;
        cudaFree(two);
        kbi_beat(run, false);
    }
    run->m.reached = last.rate;
}

enum { KBI_PROBE = 65536 };
static const size_t kbi_tool_bytes = (size_t)16 << 20; // small, because tools slow every access

// Returns the time in ns for one warp to read 64 KiB, one load after another. Memory takes twice as long as L2.
static double kbi_probe_ns(const char* p, bool cold) {
    uint64_t n = KBI_PROBE / 16;
    void *sink = kbi_meter.gpu.device_clock, *arguments[] = { &p, &n, &sink };
    kbi_single_begin(true, cold);
    kbi_launch(KBI_F_READ, 1, 32, arguments);
    return kbi_single_end();
}

// Returns the share of L2 that the eviction empties, the minimum over 8 addresses. The share is 0 if reads after
// the eviction are as fast as from L2, 1 if they are as slow as from memory; NaN: L2 and memory are equally fast.
static double kbi_measure_cold(const kbi_machine* m, const char* probe, const char* large, size_t size) {
    enum { KBI_PLACES = 8 };
    double least = INFINITY;
    size_t span = (size_t)m->l2 / KBI_PLACES & ~(size_t)4095;
    if (span < KBI_PROBE || size < 8 * (size_t)m->l2) return NAN;
    for (int place = 0; place < KBI_PLACES; place++) {
        const char* p = probe + (size_t)place * span;
        double cached[5], uncached[5], evicted[5], scratch[5];
        for (int i = 0; i < 5; i++) {
            kbi_gpu_read(p, KBI_PROBE);
            cached[i] = kbi_probe_ns(p, false);
            kbi_gpu_read(large, size);
            uncached[i] = kbi_probe_ns(p, false);
            kbi_gpu_read(probe, (size_t)m->l2);
            kbi_evict();
            evicted[i] = kbi_probe_ns(p, false);
        }
        double low = kbi_median_of(cached, 5, scratch), high = kbi_median_of(uncached, 5, scratch);
        if (!(high > 1.2 * low)) return NAN;
        least = KBI_MIN(least, (kbi_median_of(evicted, 5, scratch) - low) / (high - low));
    }
    return least;
}

static void kbi_measure_memory(kbi_machine* m) {
    size_t eighth = (size_t)(kbi_gpu_free_bytes() / 8) & ~(size_t)4095;
    size_t size = KBI_MIN(m->tool[0] ? kbi_tool_bytes : (size_t)1 << 30, eighth);
    char* two = kbi_buffer_pair(size);
    for (int which = KBI_ROOF_COPY; which <= KBI_ROOF_WRITE && two; which++) {
        if (!kbi_nan(m->roofs.of[which])) continue;
        int64_t began = kbi_now();
        double ns = kbi_time_memory(which, false, two, two + size, size), rate = KBI_UNTOLD;
        if (!m->tool[0] && ns > 0) rate = (which == KBI_ROOF_COPY ? 2 : 1) * (double)size / ns * 1e9;
        kbi_roof_put(&m->roofs, which, rate, rate, kbi_seconds_since(began));
    }
    if (two && !m->tool[0]) m->cold = kbi_measure_cold(m, two + size, two, size);
    cudaFree(two);
    cudaGetLastError();
}

// Returns f32 operations per second of a grid that fills the device. KBI_UNTOLD: it failed.
static double kbi_fma_roof(void) {
    double best_ns = INFINITY;
    uint64_t iterations = 200;
    void *sink = kbi_meter.gpu.touch, *arguments[] = { &sink, &iterations };
    for (int i = 0; i < 5; i++) {
        kbi_single_begin(false, false);
        int failed = kbi_launch_wide(KBI_F_FMA, arguments);
        double ns = kbi_single_end();
        if (failed || !(ns > 0)) return cudaGetLastError(), KBI_UNTOLD;
        if (i) best_ns = KBI_MIN(best_ns, ns);
    }
    return 2 * 256 * (double)iterations * kbi_meter.gpu.multiprocessors * 8 * 256.0 / best_ns * 1e9;
}

// The functions of cuBLASLt. Prototypes and codes are those of cublasLt.h, which need not be installed.
typedef struct kbi_cublas {
    int (*create)(void** handle);
    int (*destroy)(void* handle);
    int (*describe)(void** product, int compute, int scale);
    int (*set)(void* product, int attribute, const void* value, size_t bytes);
    int (*forget)(void* product);
    int (*layout)(void** matrix, int type, uint64_t rows, uint64_t columns, int64_t stride);
    int (*layout_end)(void* matrix);
    int (*multiply)(void* handle, void* product, const void* alpha, const void* a, void* layout_a, const void* b,
                    void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
                    const void* algorithm, void* workspace, size_t bytes, kb_stream stream);
    void* handle;
} kbi_cublas;
static const char kbi_cublas_names[] =
    "cublasLtCreate cublasLtDestroy cublasLtMatmulDescCreate cublasLtMatmulDescSetAttribute cublasLtMatmulDescDestroy "
    "cublasLtMatrixLayoutCreate cublasLtMatrixLayoutDestroy cublasLtMatmul";

typedef struct kbi_product { // codes of cublasComputeType_t and cudaDataType
    int roof, compute, scale, in, out, in_bytes, out_bytes;
    kb_dtype fill;
    uint64_t one; // bits of the number 1 in the type `scale`
} kbi_product;

enum { KBI_LT_TRANSPOSE_A = 3, KBI_LT_FAST_SUM = 25, KBI_LT_UNSUPPORTED = 15, KBI_LT_WORKSPACE = 32 << 20 };

// f16 has two rows, for f32 and f16 accumulation: the latter is faster on some GPUs.
static const kbi_product kbi_products[] = { { KBI_ROOF_F64, 70, 1, 1, 1, 8, 8, KB_F64, 0x3ff0000000000000 },
                                            { KBI_ROOF_TF32, 77, 0, 0, 0, 4, 4, KB_F32, 0x3f800000 },
                                            { KBI_ROOF_F16, 68, 0, 2, 2, 2, 2, KB_F16, 0x3f800000 },
                                            { KBI_ROOF_F16, 64, 2, 2, 2, 2, 2, KB_F16, 0x3c00 },
                                            { KBI_ROOF_BF16, 68, 0, 14, 14, 2, 2, KB_BF16, 0x3f800000 },
                                            { KBI_ROOF_FP8, 68, 0, 28, 14, 1, 2, KB_E4M3, 0x3f800000 },
                                            { KBI_ROOF_INT8, 72, 10, 3, 10, 1, 4, KB_I8, 1 } };

static bool kbi_cublas_open(kbi_cublas* c) {
    for (int version = 16; version >= 10; version--) {
        char name[64];
        snprintf(name, sizeof name, version > 10 ? "libcublasLt.so.%d" : "libcublasLt.so", version);
        void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library && kbi_find_all(library, kbi_cublas_names, c) && c->create(&c->handle) == 0) return true;
        if (library) dlclose(library);
    }
    return false;
}

// Returns the shortest time in ns of three launches of A^T B; 0: the library has no such product; NaN: a call
// failed. data: workspace, A, B, result. While the host submits, a spinning kernel keeps the clock high.
static double kbi_time_product(const kbi_cublas* c, const kbi_product* p, char* data, int64_t side) {
    void *product = NULL, *in = NULL, *out = NULL;
    int transposed = 1;
    signed char fast = 1;
    size_t bytes = (size_t)(side * side * p->in_bytes);
    char *a = data + KBI_LT_WORKSPACE, *b = a + bytes, *d = b + bytes;
    uint64_t zero = 0, cycles = 400000;
    void* arguments[] = { &cycles };
    double best_ns = INFINITY;
    int e = c->describe(&product, p->compute, p->scale);
    if (!e) e = c->set(product, KBI_LT_TRANSPOSE_A, &transposed, sizeof transposed);
    if (!e && p->roof == KBI_ROOF_FP8) e = c->set(product, KBI_LT_FAST_SUM, &fast, sizeof fast);
    if (!e) e = c->layout(&in, p->in, (uint64_t)side, (uint64_t)side, side);
    if (!e) e = c->layout(&out, p->out, (uint64_t)side, (uint64_t)side, side);
    for (int i = 0; i < 4 && !e; i++) { // the first launch loads code and is dropped
        kbi_launch(KBI_F_SPIN, 1, 1, arguments);
        kbi_single_begin(false, false);
        e = c->multiply(c->handle, product, &p->one, a, in, b, in, &zero, d, out, d, out, NULL, data,
                        KBI_LT_WORKSPACE, kbi_meter.gpu.stream);
        double ns = kbi_single_end();
        if (kbi_nan(ns)) break;
        if (i && !e) best_ns = KBI_MIN(best_ns, ns);
    }
    if (out) c->layout_end(out);
    if (in) c->layout_end(in);
    if (product) c->forget(product);
    cudaGetLastError();
    return kbi_finite(best_ns) ? best_ns : e == KBI_LT_UNSUPPORTED ? 0 : (double)NAN;
}

// Finds the highest rates over several matrix sizes: `of` with random numbers, `most` with random numbers or zeros.
static void kbi_product_roof(const kbi_cublas* c, int which, double* of, double* most) {
    int64_t began = kbi_now(), largest = 8192, room = kbi_gpu_free_bytes() / 4 - KBI_LT_WORKSPACE;
    const kbi_product *first = kbi_products, *end = kbi_products + KBI_COUNT(kbi_products);
    char* data = NULL;
    bool known = false;
    while (first->roof != which) first++;
    const int bytes = 2 * first->in_bytes + first->out_bytes;
    while (largest > 1024 && largest * largest * bytes > room) largest /= 2;
    *of = *most = NAN; // stays NaN if memory is short, so that a later case measures again
    if (cudaMalloc((void**)&data, (size_t)(largest * largest * bytes) + KBI_LT_WORKSPACE) != cudaSuccess) return;
    *of = *most = 0;
    uint64_t pause = 40000000; // cycles in which the device cools down
    void* arguments[] = { &pause };
    kbi_launch(KBI_F_SPIN, 1, 1, arguments);
    for (int64_t side = KBI_MIN(largest, (int64_t)2048); side <= largest; side *= 2)
        for (const kbi_product* p = first; p < end && p->roof == which; p++) {
            double operations = 2.0 * (double)(side * side * side);
            for (int zeros = 0; zeros < 2; zeros++) {
                char* a = data + KBI_LT_WORKSPACE;
                if (*of > 0 && 4 * operations / *of > 0.2 - kbi_seconds_since(began)) break; // 0.2 s for a peak
                if (zeros)
                    cudaMemsetAsync(a, 0, (size_t)(2 * side * side * p->in_bytes), kbi_meter.gpu.stream);
                else
                    kbi_gpu_fill(a, p->fill, 2 * side * side, KB_NORMAL, 42, 0);
                double ns = kbi_time_product(c, p, data, side), rate = ns > 0 ? operations / ns * 1e9 : 0;
                known |= !kbi_nan(ns);
                if (!zeros) *of = KBI_MAX(*of, rate);
                *most = KBI_MAX(*most, rate);
            }
        }
    cudaFree(data);
    if (!known || (which == KBI_ROOF_F64 && *of <= 0)) *of = *most = KBI_UNTOLD; // every GPU has f64
}

static void kbi_gpu_roof(kbi_machine* m, int which) {
    double of = KBI_UNTOLD, most = KBI_UNTOLD;
    kbi_cublas c;
    if (which <= KBI_ROOF_WRITE || m->tool[0]) return; // kbi_measure_memory measures these at the start
    bool open = which != KBI_ROOF_F32 && kbi_cublas_open(&c);
    int64_t began = kbi_now(); // excludes 0.25 s to open the library
    if (which == KBI_ROOF_F32) of = most = kbi_fma_roof();
    if (open) {
        kbi_product_roof(&c, which, &of, &most);
        c.destroy(c.handle);
    }
    cudaGetLastError();
    kbi_roof_put(&m->roofs, which, of, most, kbi_seconds_since(began));
}
#endif

static void kbi_require_roof(kbi_run* run, int which) {
    kbi_roofs* roofs = run->m.core ? &run->machine->core : &run->machine->roofs;
    if (which < 0 || !kbi_nan(roofs->of[which])) return;
    kbi_beat(run, true); // exempts this time from the case's --timeout
    if (run->m.core)
        kbi_core_roof(roofs, which);
    else if (run->backend->timing.roof)
        run->backend->timing.roof(run->machine, which);
    kbi_beat(run, false);
}

static void kbi_require_roofs(kbi_run* run) {
    kbi_measured* m = &run->m;
    m->core = run->work.host || !run->backend->gpu;
    const kbi_roofs* roofs = m->core ? &run->machine->core : &run->machine->roofs;
    // A run may read data in the host's caches many times, so memory bandwidth does not limit such data.
    const double caches = m->core ? 2 * (double)kbi_core_cache() : 0;
    const double tracked = (double)KBI_MAX(m->memory, (int64_t)0) + (double)KBI_MAX(m->host_memory, (int64_t)0);
    const bool cached = m->bytes < caches || (tracked > 0 && tracked < caches);
    const bool bytes = kbi_finite(m->bytes) && m->bytes > 0 && !cached, flops = kbi_finite(m->flops) && m->flops > 0;
    if (m->status == KB_OK && m->n > 0 && !run->machine->tool[0]) {
        if (bytes) kbi_require_roof(run, kbi_traffic_roof(m->traffic));
#if KBI_CUDA
        if (bytes && !m->core) kbi_measure_same_size(run, kbi_traffic_roof(m->traffic));
#endif
        for (int i = KBI_ROOF_COPY; i <= KBI_ROOF_WRITE && bytes && !m->core && !m->traffic; i++)
            kbi_require_roof(run, i); // unknown direction: the highest peak is the limit
        double* scratch = KBI_GROW(NULL, double, m->n);
        double ns = kbi_median_of(run->m.samples, (int)m->n, scratch);
        if (kbi_finite(m->bias_ns)) ns -= m->bias_ns;
        KBENCH_FREE(scratch);
        double rate = ns > 0 ? m->flops / ns * 1e9 * 1.02 : 0; // the final rate may be up to 2 % higher
        for (int which = 0, last = -1; flops; last = which) {
            which = kbi_roof_over(roofs, kbi_arithmetic_of(m), rate);
            if (which < 0 || which == last || !kbi_nan(roofs->of[which])) break;
            kbi_require_roof(run, which);
        }
    }
    m->roofs = *roofs;
    for (int i = KBI_ROOF_COPY; i <= KBI_ROOF_WRITE && cached; i++) m->roofs.of[i] = m->roofs.most[i] = NAN;
}

/*-----------------------------------------------------------------
  >>cuda      measure: the cuda backend, and the backend that a recipe asks for.
-----------------------------------------------------------------*/

#if KBI_CUDA
static bool kbi_gpu_resources(char why[200]) {
    kbi_gpu* g = &kbi_meter.gpu;
    void *host = NULL, *device = NULL;
    cudaError_t e = cudaStreamCreate(&g->stream); // a blocking stream, which waits for the default stream
    g->stream_number = 0;
    if (g->number_of && g->number_of(g->stream, &g->stream_number) != 0) g->stream_number = 0;
    if (e == cudaSuccess) e = cudaEventCreate(&g->start);
    if (e == cudaSuccess) e = cudaEventCreate(&g->stop);
    if (e == cudaSuccess) e = cudaHostAlloc(&host, 256, cudaHostAllocMapped);
    if (e == cudaSuccess) e = cudaHostGetDevicePointer(&device, host, 0);
    if (e == cudaSuccess) e = cudaMalloc((void**)&g->clean, g->clean_bytes);
    if (e == cudaSuccess) e = cudaMemset(g->clean, 1, g->clean_bytes);
    if (e == cudaSuccess) e = cudaMalloc((void**)&g->touch, KBI_TOUCHED);
    if (e != cudaSuccess) return snprintf(why, 200, "%.190s", kbi_cuda_text(e)), false;
    memset(host, 0, 256);
    g->flag = (volatile unsigned*)host, g->device_flag = device;
    g->clock = (uint64_t*)host + 16, g->device_clock = (uint64_t*)device + 16;
    return true;
}

static void kbi_gpu_facts(kbi_machine* m) {
    struct cudaDeviceProp p;
    int runtime = 0, driver = 0;
    kbi_gpu* g = &kbi_meter.gpu;
    if (cudaGetDeviceProperties(&p, m->device) != cudaSuccess) return;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    snprintf(m->gpu, sizeof m->gpu, "%.90s", p.name);
    snprintf(m->cuda, sizeof m->cuda, "%d.%d", runtime / 1000, runtime % 1000 / 10);
    snprintf(m->driver, sizeof m->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    m->sm = p.major * 10 + p.minor;
    m->memory = (int64_t)p.totalGlobalMem;
    m->l2 = p.l2CacheSize;
    m->ecc = p.ECCEnabled;
    m->multiprocessors = g->multiprocessors = p.multiProcessorCount;
    g->max_threads = p.maxThreadsPerMultiProcessor;
    g->max_shared = (int)p.sharedMemPerBlockOptin;
    g->all_registers = p.regsPerMultiprocessor;
    g->all_shared = (int)p.sharedMemPerMultiprocessor;
    g->most_blocks = p.maxBlocksPerMultiProcessor;
    g->shared_taken = (int)p.reservedSharedMemPerBlock;
}

static bool kbi_gpu_open(kbi_machine* m, int device) { // false: m->why holds the reason
    static const char* const tools[][2] = { { "libsanitizer-collection.so", "compute-sanitizer" },
                                            { "libcuda-injection.so", "Nsight Compute" } };
    kbi_gpu* g = &kbi_meter.gpu;
    kbi_machine_clear(m, "cuda");
    cudaError_t e = cudaGetDeviceCount(&m->devices);
    int driver = 1;
    if (e == cudaErrorInsufficientDriver) cudaDriverGetVersion(&driver); // version 0: no driver is installed
    if (e != cudaSuccess || !m->devices)
        snprintf(m->why, sizeof m->why, "no GPU: %s",
                 e == cudaSuccess ? "none found" : driver ? cudaGetErrorString(e) : "no NVIDIA driver was found");
    else if (device >= m->devices)
        snprintf(m->why, sizeof m->why, "no GPU %d: this machine has %d", device, m->devices);
    if (m->why[0]) return false;
    m->device = device;
    e = cudaSetDevice(device);
    if (e == cudaSuccess) e = cudaFree(0);
    if (e != cudaSuccess)
        return snprintf(m->why, sizeof m->why, "GPU %d does not start: %.150s", device, cudaGetErrorString(e)), false;
    kbi_gpu_facts(m);
    for (int i = 0; i < KBI_COUNT(tools); i++) {
        void* library = dlopen(tools[i][0], RTLD_LAZY | RTLD_NOLOAD);
        if (library) snprintf(m->tool, sizeof m->tool, "%s", tools[i][1]);
        if (library) dlclose(library);
    }
    g->ungated = m->tool[0] != 0;
    g->clean_bytes = g->ungated ? kbi_tool_bytes : (size_t)KBI_MAX(4 * m->l2, (int64_t)64 << 20);
    if (!kbi_load_functions(m->why) || !kbi_gpu_resources(m->why)) return false;
    signal(SIGALRM, kbi_gate_alarm);
    kbi_nvml_open(m);
    m->gpu_present = 1;
    return true;
}

// Allocates 2 MiB pages and never frees them, so that buffers lie on other pages than in other processes. Errors
// are ignored, because opening the GPU will report them.
static void kbi_gpu_take_pages(const kbi_recipe* recipe) {
    uint64_t placement = kbi_placement(recipe);
    void* page;
    if (!placement) return;
    cudaError_t e = cudaSetDevice(recipe->device);
    for (uint64_t n = 1 + (placement >> 32) % 64; n > 0 && e == cudaSuccess; n--) e = cudaMalloc(&page, KBI_PAGE);
    cudaGetLastError();
}

static bool kbi_gpu_open_measured(kbi_machine* m, const kbi_recipe* recipe) {
    kbi_calibration* c = &kbi_meter.calibration;
    kbi_gpu_take_pages(recipe);
    if (!kbi_gpu_open(m, recipe->device)) return false;
    if (recipe->looked || recipe->inside) return true;
    kbi_measure_memory(m);
    c->n_empties = 0; // drops empty kernels of another GPU
    kbi_calibrate(m);
    if (recipe->timing != KBI_BY_BOTH && recipe->timing != KBI_BY_CUPTI) return true;
    // CUPTI opens now: some versions do not record graphs that were made earlier. If CUPTI does not open, each
    // case reports the error. CUPTI can change event times, so times of empty kernels are measured again.
    kbi_cupti_open();
    if (recipe->timing == KBI_BY_BOTH) kbi_cupti_close();
    memset(c->empties[0].read, 0, sizeof c->empties[0].read);
    return true;
}

// clang-format off
static const kbi_backend kbi_cuda = {
    "cuda", true, kbi_gpu_open_measured,
    { kbi_gpu_alloc, kbi_gpu_release, kbi_gpu_set, kbi_gpu_copy, kbi_gpu_fill, kbi_gpu_free_bytes, kbi_gpu_pool_peak },
    { kbi_gpu_choose, kbi_gpu_stream, kbi_gpu_prepare, kbi_gpu_wait, kbi_gpu_lost, kbi_gpu_broken, kbi_gpu_abandon,
      kbi_gpu_roof },
    { kbi_gpu_audit_begin, kbi_gpu_audit_end, kbi_gpu_compare, kbi_gpu_audit_left, kbi_graph_forget,
      kbi_graph_repeats, kbi_gpu_repeat },
    { kbi_gpu_clock, kbi_gpu_sense, kbi_gpu_mark, kbi_gpu_throttled },
    kbi_inspect_instrument
};
// clang-format on
#endif

// If there is no GPU, opens the cpu backend instead, so that host work still runs.
static const kbi_backend* kbi_backend_open(const kbi_recipe* recipe, kbi_machine* machine) {
    const kbi_backend* b = recipe->target == KBI_ON_OWN ? kbi_process.own_backend : &kbi_cpu;
#if KBI_CUDA
    if (recipe->target == KBI_ON_GPU) b = &kbi_cuda;
#endif
    if (!b->open(machine, recipe)) {
        kbi_machine failed = *machine;
        b = &kbi_cpu;
        b->open(machine, recipe);
        memcpy(machine->why, failed.why, sizeof machine->why);
        machine->devices = failed.devices;
    }
    kbi_machine_cpus(machine, kbi_cpu_root);
    return b;
}

static void kbi_measure_all(const kbi_backend* b, kbi_machine* m) {
    KBI_EACH_INSTRUMENT(i)
        if (i->on && i->machine && m->gpu_present) i->machine(m);
    for (int i = 0; i < KBI_ROOFS; i++) {
        if (kbi_nan(m->roofs.of[i]) && b->timing.roof) b->timing.roof(m, i);
        if (kbi_nan(m->core.of[i])) kbi_core_roof(&m->core, i);
    }
}

/*-----------------------------------------------------------------
  >>work_change measure: detects by their times whether launches differ in their work.
-----------------------------------------------------------------*/

// The times of launches that do the same work differ by at most these factors. A CPU's branch prediction alone
// made a loop 7 times as fast.
static const double kbi_early_ratio[] = { 2, 20 }, kbi_single_ratio[] = { 1.5, 4 }; // { GPU work, host work }

static double kbi_bias_of(const kbi_measured* m) { return kbi_finite(m->bias_ns) ? m->bias_ns : 0; }

// Sets work_change.finding if the medians of ten consecutive blocks of samples fall monotonically, or if warm-up
// launches 2 to 4 took much longer than the samples (times are scaled to the SM clock of the samples).
static void kbi_find_speedup_over_time(kbi_run* run) {
    kbi_work_change* a = &run->work_change;
    const int64_t n = run->m.n;
    double bias = kbi_bias_of(&run->m), early = INFINITY, blocks[KBI_STATS_BLOCKS];
    char text[2][40];
    if (n <= 0 || kbi_failed(run)) return;
    double* scratch = KBI_GROW(NULL, double, n);
    double first = 0, last = kbi_median_of(run->m.samples, n, scratch);
    bool falls = n >= 30;
    if (falls) kbi_block_medians(run->m.samples, n, scratch, blocks);
    for (int i = 1; i < KBI_STATS_BLOCKS && falls; i++) falls = blocks[i] < blocks[i - 1];
    if (falls) first = blocks[0] - bias, last = blocks[KBI_STATS_BLOCKS - 1];
    last = KBI_MAX(last - bias, 0);
    KBENCH_FREE(scratch);
    for (int i = 1; i < KBI_EARLY; i++) early = KBI_MIN(early, a->early_ns[i] - bias);
    if (kbi_finite(a->early_mhz) && kbi_finite(run->m.sm_clock) && a->early_mhz < run->m.sm_clock)
        early *= a->early_mhz / run->m.sm_clock;
    const kbi_timer* timer = run->sampling.timer;
    bool warmed = a->n_early == KBI_EARLY && !timer->replay, samples = first > 1.5 * last;
    if (!samples && !(warmed && early > kbi_early_ratio[timer->host_clock] * last + 1000)) return;
    snprintf(a->finding, sizeof a->finding, "the first %s took %s, later ones %s",
             samples ? "samples" : "launches of the warm-up",
             kbi_show_time((samples ? first : early) * 1e-6, text[0]), kbi_show_time(last * 1e-6, text[1]));
}

static void kbi_find_alternation(kbi_run* run, const double* ns) {
    kbi_work_change* a = &run->work_change;
    bool host = run->sampling.timer->host_clock;
    double bias = host ? kbi_meter.wall_bias : kbi_bias_of(&run->m);
    double ratio = kbi_single_ratio[host], least = host ? 200 : 500; // minimum in ns: above the timer's scatter
    for (int period = 2; period <= 4; period++)
        for (int phase = 0; phase < period && !a->finding[0]; phase++) {
            double low[2] = { INFINITY, INFINITY }, high[2] = { 0, 0 }; // [1]: launches of this phase; [0]: others
            for (int i = 0; i < KBI_SINGLES; i++) {
                int in = i % period == phase;
                low[in] = KBI_MIN(low[in], ns[i] - bias);
                high[in] = KBI_MAX(high[in], ns[i] - bias);
            }
            for (int in = 0; in < 2; in++)
                if (low[in] > ratio * high[!in] && low[in] - high[!in] > least)
                    snprintf(a->finding, sizeof a->finding,
                             "one launch in %d takes a different time from the others", period);
        }
}

/*-----------------------------------------------------------------
  >>profiling measure: untimed runs of the block for instruments.
-----------------------------------------------------------------*/

static void kbi_insight_clear(void) {
    kbi_insight* in = &kbi_meter.insight;
    kbi_text_free(&in->events);
    kbi_text_free(&in->counters);
    kbi_text_free(&in->texts);
    KBENCH_FREE(in->names.slots);
    memset(in, 0, sizeof *in);
    in->head.verdict.flag = -1;
}

// Opens and closes instruments in order, until one needs a run of the block; this instrument stays open. Returns
// false if no instrument needs a run.
static bool kbi_inside_wants(kbi_run* run) {
    kbi_insight* in = &kbi_meter.insight;
    bool host = run->work.host || !run->backend->gpu, inspects = run->recipe->inside == KBI_WISH_STREAMS;
    if (!in->by)
        in->by = !inspects ? kbi_process.instruments : run->backend->inspect ? run->backend->inspect() : NULL;
    for (; in->by && !in->over; in->by = in->by->next ? in->by->next : in->by) {
        const kb_instrument* i = in->by;
        if ((i->bit & run->recipe->inside) && i->host == host) {
            if (!in->open) in->open = in->again = !i->open || i->open(&run->kb);
            if (in->open && in->again) return true;
            if (in->open && i->close) i->close(&run->kb);
            in->open = false;
        }
        in->over = !i->next;
    }
    return false;
}

static int64_t kbi_inside_begin(kbi_run* run) {
    const kb_instrument* i = kbi_meter.insight.by;
    int64_t runs = i->begin ? i->begin(&run->kb) : 1;
    return KBI_MAX(runs, (int64_t)1);
}
static void kbi_inside_end(kbi_run* run) {
    const kb_instrument* i = kbi_meter.insight.by;
    kbi_meter.insight.again = i->end && i->end(&run->kb);
    kbi_stop_on_error(run, "while the block was profiled");
}

static kbi_inside* kbi_inside_take(kbi_run* run) {
    kbi_insight* in = &kbi_meter.insight;
    const kbi_text* parts[] = { &in->events, &in->counters, &in->texts };
    kbi_text all = KBI_BLANK;
    kbi_inside* head = &in->head;
    if (in->open && in->by->close) in->by->close(&run->kb);
    if (kbi_failed(run)) kbi_insight_say("%.300s", run->m.message);
    head->runs = KBI_MAX(head->runs, 0);
    head->device = run->machine->device;
    head->events = (int64_t)(in->events.n / sizeof(kbi_event));
    head->counters = (int64_t)(in->counters.n / sizeof(kbi_counter));
    head->texts = (int64_t)in->texts.n;
    kbi_put(&all, (const char*)head, sizeof *head);
    for (int i = 0; i < KBI_COUNT(parts); i++)
        if (parts[i]->n) kbi_put(&all, parts[i]->s, parts[i]->n);
    kbi_insight_clear();
    return (kbi_inside*)(void*)all.s;
}

/*-----------------------------------------------------------------
  >>engine    measure: the state machine that chooses the next unit (audit, warm-up, sample, ...).
-----------------------------------------------------------------*/

static void kbi_note_clock(kbi_run* run, double mhz) {
    kbi_measured* m = &run->m;
    if (!isfinite(mhz)) return;
    m->sm_clock = mhz;
    m->clock_low = isfinite(m->clock_low) ? KBI_MIN(m->clock_low, mhz) : mhz;
    m->clock_high = isfinite(m->clock_high) ? KBI_MAX(m->clock_high, mhz) : mhz;
}

// Returns whether the median time and the clock agree with those of the last window.
static bool kbi_window_agrees(kbi_run* run, double tolerance) {
    kbi_window* w = &run->call.window;
    double clock = kbi_clock_mhz(run);
    int n = KBI_MIN(w->n, (int)KBI_WINDOW);
    double median = kbi_trimmed(w->ns, n, n / 10);
    double step = run->backend->gpu ? 100 : 0; // tolerance in ns: three times the resolution of events
    bool same_time = w->median > 0 && fabs(median - w->median) <= KBI_MAX(tolerance * w->median, step);
    bool same_clock = !isfinite(clock) || (w->clock > 0 && fabs(clock - w->clock) <= 0.01 * w->clock);
    w->median = median;
    w->clock = isfinite(clock) ? clock : 0;
    w->n = 0;
    w->start_ns = kbi_now();
    return same_time && same_clock;
}

// Returns whether the block is not timed: under valgrind or, for GPU work, under compute-sanitizer or a profiler.
static bool kbi_only_checked(const kbi_run* run) {
    return run->machine->simulated || (run->machine->tool[0] && run->backend->gpu && !run->work.host);
}

static bool kbi_warm_enough(kbi_run* run) {
    const kbi_recipe* r = run->recipe;
    const kbi_body_call* call = &run->call;
    const int64_t ns = run->work.estimate_ns;
    double time = kbi_seconds_since(call->phase_start_ns), scale = KBI_MIN(r->max_time, 2.0);
    if (run->sampling.timer->steady) return true;
    // host work below 1 ms per run warms up until the batch size is known, despite --warmup
    bool resolved = !run->sampling.timer->host_clock || call->sampled || ns >= 1000000 || run->sampling.resolved;
    if (!resolved && !kbi_only_checked(run)) return false;
    if (r->warmup_samples >= 0) return call->warm_units >= r->warmup_samples;
    if (kbi_only_checked(run)) return call->warm_units > 0;
    if (r->warmup_time >= 0) return call->warm_units > 0 && time >= r->warmup_time;
    bool full = kbi_seconds_since(call->window.start_ns) >= 0.025 * scale && call->window.n >= (ns > 500000 ? 2 : 4);
    if (full && kbi_window_agrees(run, run->backend->gpu ? 0.01 : 0.03)) return true;
    bool out_of_time = time >= 0.5 * scale && call->warm_units >= 2;
    if (out_of_time && time < 10 * scale) run->m.settled = ns > 100000000; // launches over 100 ms count as settled
    return out_of_time;
}

// Returns whether a case that is not in a comparison has enough samples. time: seconds since the first sample.
static bool kbi_sampled_enough(kbi_run* run, double time) {
    const kbi_recipe* r = run->recipe;
    int64_t n = run->m.n;
    if (r->samples) return n >= r->samples;
    if (kbi_only_checked(run)) return n > 0;
    if ((time >= r->max_time && n >= 7) || (time >= 4 * r->max_time && n >= 3)) return true;
    if (n < r->min_samples || time < r->min_time) return false;
    if (n >= r->max_samples) return true;
    if (n < run->sampling.next_check) return false;
    run->sampling.next_check = n + KBI_MAX((int64_t)8, n / 10); // computing the precision sorts all samples
    double sum = 0, bias = kbi_bias_of(&run->m);
    for (int64_t i = 0; i < n; i++) sum += run->m.samples[i];
    double mean = sum / (double)n - bias;
    return mean > 0 && kbi_precision_of(run->m.samples, n) * (mean + bias) / mean <= r->precision;
}

static void kbi_phase_enter(kbi_run* run, kbi_phase phase) {
    static const char* const names[] = { "check",   "audit", "warm-up",     "samples", "turns",
                                         "compare", "final", "profile", NULL };
    if (phase == KBI_PHASE_WARM && run->call.last == KBI_PHASE_PROFILE) phase = KBI_PHASE_PROFILE;
    run->call.phase = phase;
    if (!run->schedule.is_copy) {
        const kbi_case* c = run->bench_case;
        if (!run->ranges[0]) kbi_show_range(&run->ranges[0], c->name, c->entry->operation);
        kbi_show_range(&run->ranges[1], names[phase], "phase");
    }
    run->call.phase_start_ns = run->call.window.start_ns = kbi_now();
    if (phase == KBI_PHASE_WARM) run->sampling.timer = NULL;
    if (phase != KBI_PHASE_SAMPLE) return;
    run->sampling.load = kbi_load_now("/proc");
    kbi_note_clock(run, kbi_clock_mhz(run));
}

static bool kbi_wants_audit(const kbi_run* run) {
    bool captures = !(run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC | KB_EXPECT_NO_CAPTURE));
    return run->backend->capture.begin && !run->work.host && captures && run->recipe->audit;
}

static const kbi_verdict* kbi_inspection(const kbi_run* run) {
    const kbi_verdict* v = run->work.verdict;
    return v && v->known && !run->work.host ? v : NULL;
}

static bool kbi_audit_begins(kbi_run* run) {
    const kbi_verdict* v = kbi_inspection(run);
    if (run->recipe->inside == KBI_WISH_STREAMS) return false;
    if (v && run->recipe->audit && v->note[0] && !run->schedule.is_copy) kb_note(&run->kb, "%s", v->note);
    if (kbi_wants_audit(run)) {
        if (!v || v->captures) return true;
        run->work.expect |= KB_EXPECT_NO_CAPTURE;
        run->work.nodes = v->work;
        return false;
    }
    return run->backend->capture.begin && !run->work.host && !v && !run->schedule.is_copy &&
           !(run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC));
}

static void kbi_enter_loop(kbi_run* run) {
    kbi_body_call* call = &run->call;
    if (call->loop_entered) return;
    call->loop_entered = true;
    bool saves = call->last != KBI_PHASE_CHECK || call->fresh;
    if (saves && run->recipe->verify && !run->schedule.is_copy) kbi_save_outputs(run);
    call->restored = call->fresh;
}

static void kbi_observe(kbi_run* run, kbi_unit unit) {
    int64_t now = kbi_now();
    if (run->sampling.open || now - run->beat_ns <= 100000000) return;
    run->beat_ns = now;
    kbi_beat(run, false);
    if (unit != KBI_SAMPLE || run->call.phase != KBI_PHASE_SAMPLE) return;
    if (run->backend->sensors.throttled) run->backend->sensors.throttled(&run->m);
    kbi_note_clock(run, kbi_clock_mhz(run));
}

// Suspends the function on its fiber. Without a fiber, returns false: the function must return, and is called again.
static bool kbi_rest(kbi_run* run) {
    run->schedule.suspended = !run->schedule.fiber;
    if (run->schedule.fiber) kbi_fiber_rest(run->schedule.fiber);
    return !run->schedule.suspended;
}

static kbi_unit kbi_choose_warm(kbi_run* run) {
    while (run->schedule.command == KBI_HOLD)
        if (!kbi_rest(run)) return KBI_NO_UNIT;
    if (run->schedule.command == KBI_CAPTURE) return run->schedule.command = KBI_HOLD, KBI_CAPTURED;
    if (!run->sampling.timer) { // the timer depends on the audit and on the graphs of --rotate
        static const char* const caches[] = { "cold", "hot", "rotate", "graph" }; // by kbi_mode
        const kbi_verdict* v = kbi_inspection(run);
        const bool host = run->work.host;
        const kbi_timer* timer = run->sampling.timer = host ? &kbi_wall_timer : run->backend->timing.choose(run);
        const bool wall = timer == &kbi_wall_timer; // does not evict
        snprintf(run->m.timer, sizeof run->m.timer, "%s", timer->name);
        if (!host && (!wall || run->kb.gpu))
            snprintf(run->m.cache, sizeof run->m.cache, "%s", caches[wall ? KBI_HOT : run->recipe->mode]);
        run->work_change.early_mhz = host ? (double)NAN : kbi_clock_mhz(run);
        run->call.phase_start_ns = run->call.window.start_ns = kbi_now();
        if (!host && (run->work.expect & KB_EXPECT_NO_CAPTURE) && !(v && v->note[0]))
            kb_note(&run->kb, "not audited: cannot be captured");
    }
    if (run->schedule.command != KBI_FINISH)
        return run->sampling.open || !kbi_warm_enough(run) ? KBI_WARM : KBI_NO_UNIT;
    kbi_phase_enter(run, KBI_PHASE_DONE);
    return KBI_NO_UNIT;
}

static kbi_unit kbi_choose_sample(kbi_run* run) {
    const kbi_schedule* s = &run->schedule;
    const bool alone = s->command == KBI_UNMANAGED;
    if (run->sampling.open) return KBI_SAMPLE;
    if (s->command == KBI_SLOT && !s->discard && run->m.n >= s->slot_end && !kbi_rest(run)) return KBI_NO_UNIT;
    if (!(alone ? kbi_sampled_enough(run, kbi_seconds_since(run->call.phase_start_ns)) : s->command == KBI_FINISH))
        return KBI_SAMPLE;
    if (alone) { // reads the GPU's clock at once, because the clock changes when the GPU idles
        kbi_note_clock(run, kbi_clock_mhz(run));
        kbi_sense(run);
        kbi_note_load(&run->m, &run->sampling.load, "/proc", kbi_cpu_root);
    }
    kbi_find_speedup_over_time(run);
    return KBI_NO_UNIT;
}

// Times consecutive launches one by one, unless the last samples on a GPU already are single launches.
static kbi_unit kbi_choose_turn(kbi_run* run) {
    const kbi_timer* timer = run->sampling.timer;
    kbi_schedule* s = &run->schedule;
    bool possible = !timer->steady && !timer->replay && !kbi_only_checked(run);
    bool from_samples =
        !timer->host_clock && run->m.launches == 1 && s->command == KBI_UNMANAGED && run->m.n >= KBI_SINGLES;
    bool quick = (double)(KBI_SINGLES * run->work.estimate_ns) < 0.2e9 * run->recipe->max_time;
    if (!s->discarded_ns && possible && !s->is_copy && !from_samples && quick) {
        s->discard = KBI_SINGLES;
        s->discarded_ns = run->work_change.single_ns;
    }
    if (s->discard > 0 || run->sampling.open) return KBI_SAMPLE;
    if (s->discarded_ns || (possible && from_samples)) // discarded_ns points past the end of single_ns
        kbi_find_alternation(run, s->discarded_ns ? run->work_change.single_ns
                                                  : run->m.samples + run->m.n - KBI_SINGLES);
    s->discarded_ns = NULL;
    return KBI_NO_UNIT;
}

static kbi_unit kbi_choose_unit(kbi_run* run) {
    kbi_unit unit = KBI_NO_UNIT;
    kbi_body_call* call = &run->call;
    while (unit == KBI_NO_UNIT && !kbi_failed(run) && !run->schedule.suspended && call->phase <= call->last) {
        const kbi_phase phase = call->phase;
        switch (phase) {
        case KBI_PHASE_CHECK: unit = KBI_CHECKED; break;
        case KBI_PHASE_AUDIT: unit = run->work.repeat_audit || kbi_audit_begins(run) ? KBI_AUDITED : unit; break;
        case KBI_PHASE_WARM: unit = kbi_choose_warm(run); break;
        case KBI_PHASE_SAMPLE: unit = kbi_choose_sample(run); break;
        case KBI_PHASE_SINGLES: unit = kbi_choose_turn(run); break;
        case KBI_PHASE_COMPARE: // compares several launches: a defect may change the work of only some
            if (run->backend->capture.compare && !kbi_only_checked(run) && !run->schedule.is_copy &&
                run->work.shape && run->work_change.compared++ < KBI_COMPARISONS)
                unit = KBI_COMPARED;
            break;
        case KBI_PHASE_FINAL:
            kbi_phase_enter(run, KBI_PHASE_DONE);
            // a function of kb_run may allocate new outputs in each call; KBI_COMPARED does not write them
            if (kbi_restore_outputs(run) || (run->work.by_pointer && run->work_change.compared > 0)) unit = KBI_FINAL;
            break;
        case KBI_PHASE_PROFILE: unit = kbi_inside_wants(run) ? KBI_PROFILED : unit; break;
        default: return KBI_NO_UNIT;
        }
        if (unit == KBI_NO_UNIT && call->phase == phase && !run->schedule.suspended)
            kbi_phase_enter(run, (kbi_phase)(phase + 1));
        if ((unit == KBI_WARM || unit == KBI_SAMPLE) && run->sampling.timer->replay) {
            call->unit = unit;
            call->warm_units += unit == KBI_WARM;
            run->sampling.timer->replay(run);
            kbi_observe(run, unit);
            unit = call->unit = KBI_NO_UNIT;
        }
    }
    return unit;
}

static int64_t kbi_unit_begin(kbi_run* run, kbi_unit unit) {
    const kbi_verdict* v = kbi_inspection(run);
    run->call.unit = unit;
    run->call.forbidden_call = NULL;
    switch (unit) {
    case KBI_CHECKED:
        kbi_stop_on_error(run, "before the timed block");
        if (v && v->flag >= 0 && run->recipe->audit) kbi_stop(run, (kb_flag)v->flag, "%s", v->message);
        // the inspection includes the first run, so that it can name a CUDA call that fails
        if (run->recipe->inside == KBI_WISH_STREAMS && !kbi_failed(run) && kbi_inside_wants(run))
            kbi_inside_begin(run);
        if (run->call.profile_runs == 1 && run->backend->sensors.mark) run->backend->sensors.mark(run, true);
        return kbi_failed(run) ? 0 : 1;
    case KBI_COMPARED:
    case KBI_AUDITED: run->backend->capture.begin(run); return 1;
    case KBI_CAPTURED: return 1;
    case KBI_FINAL: run->call.restored = true; return 1;
    case KBI_PROFILED: return kbi_inside_begin(run);
    default: run->call.warm_units += unit == KBI_WARM; return run->sampling.timer->begin(run);
    }
}

static void kbi_unit_end(kbi_run* run) {
    kbi_unit unit = run->call.unit;
    const char* called = run->call.forbidden_call;
    kbi_insight* in = &kbi_meter.insight;
    if (called)
        kbi_stop(run, kbi_is(called, "KB_ALLOC") ? KB_FLAG_ALLOC_INSIDE : KB_FLAG_BAD_CASE,
                 "the timed block calls %s, so its time would be included; call it before or after the block",
                 called);
    switch (unit) {
    case KBI_CHECKED:
        if (run->call.profile_runs == 1 && run->backend->sensors.mark) run->backend->sensors.mark(run, false);
        if (run->call.profile_runs) run->call.profile_runs--;
        if (run->recipe->inside == KBI_WISH_STREAMS && !kbi_failed(run) && in->open) {
            in->by->end(&run->kb);
            in->again = true;
        }
        kbi_stop_on_error(run, "in the first run of the timed block");
        run->work.estimate_ns = kbi_now() - kbi_meter.wall_start;
        if (!run->call.profile_runs) kbi_phase_enter(run, KBI_PHASE_AUDIT);
        break;
    case KBI_AUDITED:
        run->backend->capture.end(run);
        if (!run->work.repeat_audit) kbi_phase_enter(run, KBI_PHASE_WARM);
        break;
    case KBI_COMPARED: run->backend->capture.compare(run); break;
    case KBI_FINAL: kbi_stop_on_error(run, "in the last run of the timed block"); break;
    case KBI_PROFILED: kbi_inside_end(run); break;
    case KBI_CAPTURED: break;
    default: run->sampling.timer->end(run);
    }
    run->call.unit = KBI_NO_UNIT;
    kbi_observe(run, unit);
}

// KB_TIME: ends a run of the block (kbi_unit) and chooses the next. Returns how often KB_TIME now runs the block;
// 0: never again.
int64_t kbi_next(kb_state* kb, bool host, int line) {
    kbi_run* run = kb->run;
    kbi_body_call* call = &run->call;
    kbi_unit unit = call->next_unit;
    kbi_meter.wall_end = kbi_now();
    run->work.line = line;
    if (call->unit != KBI_NO_UNIT) {
        kbi_unit_end(run);
        if (call->sampled) return 0;
        unit = kbi_choose_unit(run);
    } else {
        bool second = call->sampled ? unit == KBI_NO_UNIT : call->looped && !run->work.by_pointer;
        call->next_unit = KBI_NO_UNIT;
        if (run->m.status != KB_OK) return 0;
        run->work.host = host;
        if (!host && !run->backend->gpu && KBI_CUDA) {
            kb_skip(kb, "%s", run->machine->why[0] ? run->machine->why : "needs a GPU; the device is cpu");
            return 0;
        }
        if (second)
            kbi_stop(run, KB_FLAG_BAD_CASE, "two timed blocks in one %s",
                     call->sampled && !call->ended ? "KB_SAMPLE" : "benchmark");
        if (!call->sampled) {
            kbi_enter_loop(run);
            unit = kbi_choose_unit(run);
        }
    }
    call->looped = true;
    if (unit == KBI_NO_UNIT || kbi_failed(run)) return call->unit = KBI_NO_UNIT, 0;
    const int64_t runs = kbi_unit_begin(run, unit);
    kbi_meter.wall_start = kbi_now();
    kbi_serialise();
    return runs;
}

// KB_SAMPLE: chooses the next run's purpose (kbi_unit) before the user's reset code runs; false: the loop ends.
bool kbi_sample(kb_state* kb) {
    kbi_run* run = kb->run;
    kbi_body_call* call = &run->call;
    if (run->m.status != KB_OK || call->unit != KBI_NO_UNIT) return false; // after a break: see kbi_body_ended
    if (call->next_unit != KBI_NO_UNIT)
        return kbi_stop(run, KB_FLAG_NO_LOOP, "KB_SAMPLE without KB_TIME inside"), false;
    if (call->ended || (call->looped && !call->sampled))
        return kbi_stop(run, KB_FLAG_BAD_CASE, "two timed blocks in one benchmark"), false;
    call->sampled = true;
    kbi_enter_loop(run);
    call->next_unit = kbi_choose_unit(run);
    call->ended = call->next_unit == KBI_NO_UNIT && !run->schedule.suspended;
    if (kbi_failed(run)) call->next_unit = KBI_NO_UNIT;
    return call->next_unit != KBI_NO_UNIT;
}

// Called if C++ code leaves the timed block early. Opens the gate, because destructors may wait for the device.
void kbi_leave(kb_state* kb) {
    kbi_run* run = kb->run;
    if (run->call.unit == KBI_AUDITED && run->backend->capture.left) run->backend->capture.left(run);
    if (run->backend->timing.abandon) run->backend->timing.abandon();
}

/*-----------------------------------------------------------------
  >>calls     measure: the calls of a benchmark function: first checked, second timed, others profiled.
-----------------------------------------------------------------*/

void kbi_threw(kb_state* kb, const char* what) {
    if (kb->run->m.status == KB_OK)
        kbi_stop(kb->run, KB_FLAG_CRASHED, "C++ exception%s%s", what ? ": " : "",
                 what ? what : " that is no std::exception");
}

// Restores the folder and the floating-point environment that the first call had.
static void kbi_call_clear(void) {
    if (!kbi_process_start.known) {
        kbi_process_start.known = true;
        fegetenv(&kbi_process_start.floats);
        kbi_process_start.state = kbi_process_state_now();
    }
    kbi_process_restore();
    if (kbi_meter.folder[0] ? chdir(kbi_meter.folder) != 0
                            : !kbi_folder_here(kbi_meter.folder, sizeof kbi_meter.folder))
        kbi_meter.folder[0] = 0; // unknown: the folder was removed
}

static void kbi_stray(void) {
    if (kbi_meter.escaped) *kbi_meter.escaped = kbi_meter.running_case;
    _exit(1);
}

// Calls a case's function. A child process that the function forks must not return: two processes would measure.
static void kbi_call_function(kbi_run* run) {
    const kb_entry* entry = run->bench_case->entry;
    const volatile pid_t here = getpid();
    const uintptr_t id = (uintptr_t)run->bench_case;
    const bool own = !run->bench_case->desc; // false in kb_run: the program controls folder and child processes
    if (own) kbi_call_clear();
    kbi_meter.running_case = id;
    if (own && !kbi_meter.escaped) {
        void* p = mmap(NULL, sizeof *kbi_meter.escaped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) kbi_meter.escaped = (volatile uintptr_t*)p;
    }
    if (entry->build && entry->build->call)
        entry->build->call(entry->body, &run->kb);
    else
        entry->body(&run->kb);
    if (!own) return;
    if (getpid() != here) kbi_stray();
    if (!kbi_meter.escaped || *kbi_meter.escaped != id) return;
    *kbi_meter.escaped = 0;
    kbi_stop(run, KB_FLAG_BAD_CASE, "a child process that the function forked has returned; it must call _exit");
}

static void kbi_body_begins(kbi_run* run, kbi_phase first, kbi_phase last) {
    const kbi_body_call before = run->call;
    memset(&run->call, 0, sizeof run->call);
    run->call.last = last;
    run->call.fresh = before.fresh, run->call.profile_runs = before.profile_runs, run->call.marked = before.marked;
    run->sampling.batch = 1;
    kbi_phase_enter(run, first);
    if (run->backend->timing.prepare) run->backend->timing.prepare(run);
    if (run->call.fresh) return;
    run->memory.free_before = run->memory.free_lowest = kbi_free_bytes(run->backend);
    run->memory.pool_before = kbi_pool_peak(run->backend, true);
}

static void kbi_memory_facts(kbi_run* run) {
    kbi_memory* m = &run->memory;
    int64_t pool = kbi_pool_peak(run->backend, false) - m->pool_before, tracked = m->device_peak + KBI_MAX(pool, 0);
    int64_t room = kbi_free_bytes(run->backend), lowest = m->free_lowest;
    if (room != KB_NONE) lowest = KBI_MIN(lowest, room);
    int64_t fell = m->free_before == KB_NONE ? 0 : m->free_before - lowest - m->saved_bytes;
    run->m.memory = KBI_MAX(KBI_MAX(tracked, fell), run->m.memory);
    run->m.host_memory = KBI_MAX(m->host_peak, run->m.host_memory);
}

static bool kbi_all_constant(const kbi_run* run) {
    unsigned char poison[64], sample[64];
    bool any = false;
    if (!run->call.zeros || run->call.zeros != run->call.fills) return false;
    memset(poison, KBI_POISON, sizeof poison);
    for (const kbi_block* block = run->memory.blocks; block < run->memory.blocks + run->memory.n; block++)
        for (size_t i = 0; i < 4 && block->bytes >= sizeof sample; i++) {
            kbi_block_backend(run->backend, block->place)
                ->memory.copy(sample, block->data + (block->bytes - sizeof sample) / 3 * i, sizeof sample);
            if (memcmp(sample, poison, sizeof sample) == 0) continue;
            if (memcmp(sample, sample + 8, sizeof sample - 8) != 0) return false;
            any = true;
        }
    return any;
}

static void kbi_body_ended(kbi_run* run) {
    const kbi_backend* b = run->backend;
    kbi_body_call* call = &run->call;
    bool in_flight = call->unit != KBI_NO_UNIT || run->sampling.open;
    if (in_flight && !kbi_failed(run)) kbi_stop(run, KB_FLAG_LEFT_EARLY, "the timed block was left early");
    if (in_flight && b->timing.abandon) b->timing.abandon();
    kbi_show_range(&run->ranges[1], NULL, NULL);
    call->unit = KBI_NO_UNIT;
    run->sampling.open = false;
    if ((call->next_unit != KBI_NO_UNIT || !call->looped) && run->m.status == KB_OK)
        kbi_stop(run, KB_FLAG_NO_LOOP,
                 call->next_unit != KBI_NO_UNIT ? "KB_SAMPLE without KB_TIME inside" : "no timed block was reached");
    if (call->sampled && !call->ended && !run->schedule.suspended && run->m.status == KB_OK)
        kbi_stop(run, KB_FLAG_LEFT_EARLY, "KB_SAMPLE was left before kbench ended it");
    kbi_stop_on_error(run, "after the timed block");
    const char* broken = b->timing.broken ? b->timing.broken() : NULL;
    if (broken) {
        kbi_raise(run, KB_FLAG_CUDA_ERROR);
        kbi_note(&run->m, "%s; do not change the context or kb->stream: all cases of this process use them", broken);
        kbi_set_status(run, KB_FAILED);
    }
    if (run->work_change.finding[0] && !kbi_failed(run))
        kbi_stop(run, KB_FLAG_WORK_CHANGED, "%s", run->work_change.finding);
    bool lost = kbi_lost(run), checked = run->m.status == KB_OK && run->m.verified == 1;
    bool keeps = run->recipe->fresh && !call->fresh && checked && !run->schedule.is_copy;
    if (run->memory.unsaved && call->last != KBI_PHASE_CHECK && run->m.verified > 0)
        kb_note(&run->kb, "not proven that the last launch wrote the outputs: their old contents could not be "
                          "restored before it");
    if (!run->schedule.interleaved && !call->fresh) kbi_memory_facts(run); // else, other cases' memory would count
    if (!lost) kbi_check_guards(run);
    if (!lost && call->last == KBI_PHASE_CHECK && !call->fresh && kbi_all_constant(run)) run->m.constant = 1;
    if (!lost && run->work.graph) b->capture.forget(run);
    run->memory.keep = keeps;
    bool last_call = call->last != KBI_PHASE_CHECK || run->m.status != KB_OK || run->work.checked;
    if (keeps) kbi_memory_reuse(run);
    if (!keeps) kbi_memory_free(b, &run->memory, lost, last_call);
    int64_t left = kbi_free_bytes(b);
    if (left == KB_NONE || lost || keeps || run->schedule.interleaved) return;
    run->m.leaked = KBI_MAX(run->memory.free_before - left, (int64_t)0) / (call->fresh ? 2 : 1); // of two calls
}

static void kbi_run_init(kbi_run* run, const kbi_backend* b, kbi_machine* machine, const kbi_recipe* recipe,
                         const kbi_case* c) {
    memset(run, 0, sizeof *run);
    kbi_measured_clear(&run->m);
    run->backend = b, run->machine = machine, run->recipe = recipe, run->bench_case = c;
    run->work.expect = c->desc ? c->desc->expect : 0;
    run->work.by_pointer = c->entry->returns;
    run->memory.placement = kbi_placement(recipe);
    run->sampling.gated = true;
    run->start_ns = kbi_now();
    kbi_meter.undisturbed = kbi_meter.disturbed = 0;
    run->kb.run = run, run->kb.gpu = b->gpu, run->kb.seed = recipe->seed;
    run->kb.stream = b->timing.stream ? b->timing.stream() : NULL;
    run->kb.operation = c->entry->operation, run->kb.implementation = c->entry->implementation;
    run->kb.direction = c->direction, run->kb.dtype = c->dtype, run->kb.user = c->entry->user;
    run->m.dtype = (int32_t)c->dtype;
    run->m.debug_build = !kbi_build_of(c->entry)->optimised || kbi_instruments_here();
    if (!c->desc) return;
    if (c->desc->bytes > 0) run->m.bytes = c->desc->bytes;
    if (c->desc->flops > 0) run->m.flops = c->desc->flops;
    if (c->desc->items > 0) run->m.items = c->desc->items;
}

static void kbi_run_finish(kbi_run* run) {
    if (run->m.status == KB_OK && kbi_only_checked(run)) {
        run->m.status = KB_SKIPPED;
        kbi_note(&run->m, "not timed under %s", run->machine->tool);
    }
    if (!kbi_finite(run->m.power)) kbi_sense(run);
    kbi_show_range(&run->ranges[0], NULL, NULL);
    run->m.wall_ns = (double)(kbi_now() - run->start_ns);
    kbi_require_roofs(run);
}

static void kbi_make_call(kbi_run* run, kbi_phase first, kbi_phase last) {
    kbi_body_begins(run, first, last);
    kbi_call_function(run);
    kbi_body_ended(run);
}

// --fresh: runs the block in the same buffers with inputs from another seed, and checks the outputs. The check fails
// if a kernel reuses results cached by address, or does not overwrite old outputs.
static void kbi_fresh_call(kbi_run* run, uint64_t seed, const char* when) {
    if (!run->memory.keep) return;
    const kbi_work work = run->work;
    const kbi_measured before = run->m;
    run->memory.keep = false;
    run->m.verified = -1;
    run->kb.seed = seed;
    run->call.fresh = true;
    kbi_make_call(run, KBI_PHASE_CHECK, KBI_PHASE_CHECK);
    run->call.fresh = false;
    run->kb.seed = run->recipe->seed;
    run->work = work;
    if (kbi_failed(run))
        kbi_note(&run->m, "with fresh inputs (seed %llu) %s%s", (unsigned long long)seed, when,
                 run->m.flags >> KB_FLAG_VERIFY_FAIL & 1 ? "; compute the expected values from these inputs" : "");
    run->m.bytes = before.bytes, run->m.flops = before.flops, run->m.items = before.items;
    run->m.queries = before.queries, run->m.proven = before.proven;
}

// Makes the first, checked call. Repeats the call if memory seems leaked: loaded code occupies memory, too.
static void kbi_check_call(kbi_run* run) {
    for (int i = 0; i < 2; i++) {
        kbi_make_call(run, KBI_PHASE_CHECK, KBI_PHASE_CHECK);
        kbi_fresh_call(run, run->recipe->seed + 1, "before the samples");
        if (run->m.status != KB_OK || run->m.leaked <= 0) break;
    }
    if (run->m.verified == 1) run->m.verified = -1; // unknown until the check after the last launch
    run->work.checked = true;
}

/*-----------------------------------------------------------------
  >>body      measure: functions that a benchmark function calls: axes, amounts of work, checks, notes.
-----------------------------------------------------------------*/

static const kb_param* kbi_param_find(const kb_state* kb, const char* axis) {
    const kbi_case* c = kb->run->bench_case;
    for (int i = 0; i < c->n_params; i++)
        if (kbi_is(c->params[i].name, axis)) return &c->params[i];
    return NULL;
}

static const kb_param* kbi_param_of(kb_state* kb, const char* call, const char* axis, const char* values,
                                    kb_axis_type a, kb_axis_type b) {
    const kb_param* p = kbi_param_find(kb, axis);
    kbi_note_call(kb, call, true);
    if (p && (p->type == a || p->type == b)) return p;
    kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s: this case has no axis '%s' of %s", call, axis ? axis : "NULL", values);
    return NULL;
}

int64_t kb_int(kb_state* kb, const char* axis) {
    const kb_param* p = kbi_param_of(kb, "kb_int", axis, "integers", KB_AXIS_INTS, KB_AXIS_INTS);
    return p ? p->i : 0;
}
double kb_real(kb_state* kb, const char* axis) {
    const kb_param* p = kbi_param_of(kb, "kb_real", axis, "numbers", KB_AXIS_REALS, KB_AXIS_INTS);
    return p ? p->r : 0;
}
const char* kb_str(kb_state* kb, const char* axis) {
    if (kb->direction && kbi_is(axis, "dir")) return kb->direction;
    const kb_param* p = kbi_param_of(kb, "kb_str", axis, "words", KB_AXIS_STRINGS, KB_AXIS_STRINGS);
    return p ? p->s : "";
}
bool kb_has(kb_state* kb, const char* axis) {
    kbi_note_call(kb, "kb_has", true);
    return kbi_param_find(kb, axis) || (kb->direction && kbi_is(axis, "dir"));
}

static void kbi_set_amount(kb_state* kb, double* to, double amount, const char* name) {
    kbi_note_call(kb, name, true);
    if (amount >= 0 && kbi_finite(amount))
        *to = amount;
    else
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s takes a number >= 0", name);
}

void kb_bytes(kb_state* kb, double bytes) { kb_bytes_as(kb, bytes, KB_ANY_TRAFFIC); }
void kb_bytes_as(kb_state* kb, double bytes, kb_traffic traffic) {
    kbi_set_amount(kb, &kb->run->m.bytes, bytes, "kb_bytes");
    if (traffic < KB_ANY_TRAFFIC || traffic > KB_COPY)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "kb_bytes_as takes KB_READ, KB_WRITE or KB_COPY");
    kb->run->m.traffic = (int32_t)traffic;
}
void kb_flops(kb_state* kb, double flops) { kb_flops_as(kb, flops, KB_NODTYPE); }
void kb_flops_as(kb_state* kb, double flops, kb_dtype dtype) {
    kbi_set_amount(kb, &kb->run->m.flops, flops, "kb_flops");
    if (kbi_arithmetic_by(dtype, true).base < 0)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE,
                 "kb_flops_as knows no peak of %s: it takes f64, f32, tf32, f16, bf16, e4m3, e5m2, i8 and u8",
                 kb_dtype_name(dtype));
    kb->run->m.arithmetic = (int32_t)dtype;
}
void kb_items(kb_state* kb, double items) { kbi_set_amount(kb, &kb->run->m.items, items, "kb_items"); }
void kb_queries(kb_state* kb, double items) {
    kbi_set_amount(kb, &kb->run->m.items, items, "kb_queries");
    kb->run->m.queries = 1;
}

void kb_count(kb_state* kb, const char* name, double value, const char* unit) {
    kbi_measured* m = &kb->run->m;
    kbi_counter *c = m->counters, *end = c + m->n_counters;
    size_t n = name ? strlen(name) : 0;
    kbi_note_call(kb, "kb_count", true);
    while (n && c < end && strcmp(c->name, name) != 0) c++;
    bool named = n && n < sizeof c->name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
    bool united = !unit || (strlen(unit) < sizeof c->unit && !unit[strcspn(unit, " \t\r\n\"\\")]);
    bool valid = named && united && kbi_finite(value) && c < m->counters + KBI_COUNTERS;
    if (!valid)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE,
                 "kb_count of '%.80s': a name has 1 to 63 of a-z, 0-9 and _, a unit at most 31 characters and no "
                 "blanks; a value is finite, and a case has at most 16 counters",
                 name ? name : "");
    if (!valid) return;
    m->n_counters += c == end;
    memcpy(c->name, name, n + 1);
    snprintf(c->unit, sizeof c->unit, "%s", unit ? unit : "");
    c->value = value;
}

bool kb_loop(kb_state* kb, bool host, kb_function before, kb_function fn, void* user) {
    if (before) {
        KB_SAMPLE(kb) {
            before(kb->stream, user);
            KBI_TIME(kb, host) fn(kb->stream, user);
        }
    } else {
        KBI_TIME(kb, host) fn(kb->stream, user);
    }
    return !kb->run->schedule.suspended;
}

static bool kbi_checks_now(kb_state* kb, const char* call) {
    kbi_run* run = kb->run;
    kbi_note_call(kb, call, false);
    if (run->m.status != KB_OK || run->schedule.is_copy || !run->recipe->verify) return false;
    if (!run->call.looped)
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check is called before the timed block; call it after the block");
    return run->call.looped;
}

// Returns false if the output is wrong; the caller must then fail the case.
static bool kbi_check_done(kbi_run* run, bool passed, double error, double tolerance) {
    run->m.verified = run->m.verified == 0 ? 0 : passed;
    if (passed && !run->m.proven) run->m.proven = kbi_output_seen(run, false);
    if (!(run->m.max_error >= error)) run->m.max_error = error;
    run->m.tolerance = tolerance;
    if (passed || !kbi_output_seen(run, true)) return passed;
    kbi_stop(run, KB_FLAG_STALE, "the last launch did not write the output, although an earlier one did");
    return true;
}

static bool kbi_check_arrays(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                             int64_t n, kbi_match_how how, double tolerance) {
    kbi_run* run = kb->run;
    const size_t bytes = (size_t)n * kb_dtype_size(got_type);
    const char* late = run->call.last == KBI_PHASE_CHECK ? "" : " after the timed loop";
    if (!kbi_checks_now(kb, "kb_check")) return !run->recipe->verify && !kbi_failed(run);
    if (!kbi_range_valid(run, "kb_check", got, n, kb_dtype_size(got_type), "elements") ||
        !kbi_range_valid(run, "kb_check", want, n, kb_dtype_size(want_type), "elements"))
        return false;
    if (!(tolerance >= 0) || !kbi_finite(tolerance))
        return kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check takes a tolerance from 0 up, not %g", tolerance), false;
    if (!n) return kb_note(kb, "kb_check of 0 elements proves nothing"), true;
    kbi_mark_output(run, got);
    void* host = KBENCH_MALLOC(bytes);
    if (!host) return kbi_stop(run, KB_FLAG_OOM, "no host memory to check %zu bytes", bytes), false;
    run->backend->memory.copy(host, got, bytes);
    kbi_stop_on_error(run, "before or during kb_check's copy of the output");
    if (kbi_failed(run)) return KBENCH_FREE(host), false;
    kbi_matched c = kbi_match(host, got_type, want, want_type, n, how, tolerance);
    KBENCH_FREE(host);
    if (kbi_check_done(run, c.passed, c.error, tolerance)) return c.passed;
    if (how == KBI_CHECK_NORM && c.worst < 0)
        kbi_stop(run, KB_FLAG_VERIFY_FAIL, "norm-wise error %.3g, tolerance %.3g%s", c.error, tolerance, late);
    else
        kbi_stop(run, KB_FLAG_VERIFY_FAIL,
                 "%lld of %lld elements wrong%s, worst [%lld]: got %.9g, want %.9g (%s %.3g, tolerance %.3g)",
                 (long long)c.bad, (long long)n, late, (long long)c.worst, c.got, c.want,
                 how == KBI_CHECK_MIXED ? "|got - want| / (1 + |want|) is"
                 : how == KBI_CHECK_ULP ? "error in ulps"
                                        : "norm-wise error",
                 c.error, tolerance);
    return false;
}

bool kb_check_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type, int64_t n,
                    double tolerance) {
    return kbi_check_arrays(kb, got, got_type, want, want_type, n, KBI_CHECK_MIXED, tolerance);
}
bool kb_check_norm_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                         int64_t n, double tolerance) {
    return kbi_check_arrays(kb, got, got_type, want, want_type, n, KBI_CHECK_NORM, tolerance);
}
bool kb_check_ulp_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                        int64_t n, double ulps) {
    return kbi_check_arrays(kb, got, got_type, want, want_type, n, KBI_CHECK_ULP, ulps);
}

bool kb_check_that(kb_state* kb, bool passed, double error, double tolerance, const char* format, ...) {
    va_list list;
    if (!kbi_checks_now(kb, "kb_check_that")) return !kb->run->recipe->verify && !kbi_failed(kb->run);
    va_start(list, format);
    if (!kbi_check_done(kb->run, passed, error, tolerance)) kbi_vstop(kb->run, KB_FLAG_VERIFY_FAIL, format, list);
    va_end(list);
    return passed;
}

void kb_skip(kb_state* kb, const char* format, ...) {
    va_list list;
    if (kb->run->m.status != KB_OK) return;
    va_start(list, format);
    kbi_vsay(kb->run->m.message, sizeof kb->run->m.message, format, list);
    va_end(list);
    kbi_set_status(kb->run, KB_SKIPPED);
}

void kb_fail(kb_state* kb, const char* format, ...) {
    va_list list;
    if (kb->run->m.status == KB_SKIPPED) return;
    va_start(list, format);
    kbi_vstop(kb->run, KB_FLAG_BAD_CASE, format, list);
    va_end(list);
}

void kb_note(kb_state* kb, const char* format, ...) {
    char text[sizeof kb->run->m.message];
    const char* message = kb->run->m.message;
    va_list list;
    kbi_note_call(kb, "kb_note", true);
    va_start(list, format);
    kbi_vfit(text, 0, sizeof text, format, list);
    va_end(list);
    if (kbi_failed(kb->run)) return;
    const char* other = kbi_rephrase ? kbi_rephrase(text) : NULL;
    if (other) kbi_fit(text, 0, sizeof text, "%s", other);
    size_t n = strlen(text);
    for (const char* p = message; n && (p = strstr(p, text)); p++) // omits a note that an earlier call added
        if ((p == message || (p[-1] == ' ' && p[-2] == ';')) && (!p[n] || p[n] == ';')) return;
    kbi_note(&kb->run->m, "%s", text);
}

void kb_expect(kb_state* kb, unsigned expectations) {
    const unsigned known = KB_EXPECT_TRANSFER | KB_EXPECT_ALLOC | KB_EXPECT_SYNC | KB_EXPECT_NO_CAPTURE;
    kbi_note_call(kb, "kb_expect", true);
    kb->run->work.expect |= expectations & known;
    if (expectations & ~known)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE,
                 "kb_expect knows KB_EXPECT_TRANSFER, _ALLOC, _SYNC and _NO_CAPTURE, not %#x", expectations & ~known);
}

/*-----------------------------------------------------------------
  >>rounds    measure: the cases of a comparison group, alone or in interleaved rounds.
-----------------------------------------------------------------*/

enum { KBI_REPLICAS = 64, KBI_ROUNDS_MIN = 16, KBI_MEMBERS = 64, KBI_SLOTS = KBI_MEMBERS + 1 };

typedef struct kbi_member {
    kbi_run run;
    int index, n_replicas;
    kbi_fiber fiber;
    struct kbi_member* replicas;
    bool over;
    double ns[KBI_ROUNDS_LIMIT];
} kbi_member;

typedef struct kbi_comparison {
    kbi_member* members[KBI_SLOTS];
    int n, slots, rounds;
    int settling;                   // number of discarded runs at the start of a slot
    bool staged, lost;
    const kbi_recipe* recipe;
} kbi_comparison;

// Makes the second call of the function: audit, warm-up, samples, final check. Without a fiber, the function
// suspends by returning, and is called again.
static void kbi_member_main(void* p) {
    kbi_member* a = (kbi_member*)p;
    kbi_run* run = &a->run;
    if (!run->schedule.suspended) kbi_body_begins(run, KBI_PHASE_AUDIT, KBI_PHASE_FINAL);
    run->schedule.suspended = false;
    kbi_call_function(run);
    if (run->schedule.suspended) return;
    kbi_body_ended(run);
    kbi_fresh_call(run, run->recipe->seed + 2, "after the samples");
    a->over = true;
}

static void kbi_member_resume(kbi_comparison* c, kbi_member* a) {
    if (c->lost) return;
    kbi_tell(a->run.sink, KBI_ENTER, a->index, NULL);
    kbi_meter.running_case = (uintptr_t)a->run.bench_case;
    kbi_shared_enter(&a->run.memory);
    if (a->run.schedule.fiber)
        kbi_fiber_resume(&a->fiber);
    else
        kbi_member_main(a);
    c->lost = kbi_lost(&a->run);
}

static void kbi_member_copy(kbi_member* a, const kbi_member* first) {
    const kbi_run* run = &first->run;
    memset(a, 0, sizeof *a);
    kbi_run_init(&a->run, run->backend, run->machine, run->recipe, run->bench_case);
    a->run.work.verdict = run->work.verdict;
    a->run.sink = run->sink, a->run.index = -1;
    a->run.schedule.is_copy = true;
    a->index = first->index;
}

static void kbi_member_begin(kbi_comparison* c, kbi_member* a, kbi_command command, bool interleaved) {
    kbi_schedule* s = &a->run.schedule;
    s->command = command;
    s->interleaved = interleaved;
    s->fiber = interleaved && !a->run.work.by_pointer ? &a->fiber : NULL;
    a->over = s->fiber && !kbi_fiber_make(&a->fiber, kbi_member_main, a);
    if (a->over)
        kbi_stop(&a->run, KB_FLAG_OOM, "no memory for the stack of the benchmark function");
    else
        kbi_member_resume(c, a);
}

// Returns how many copies of the data together exceed twice the size of L2; 0: no data.
static int64_t kbi_copies_needed(const kbi_run* run, int64_t bytes) {
    return bytes > 0 ? 2 * run->machine->l2 / bytes + 2 : 0;
}

// Makes copies of the case until their data exceed twice the size of L2, so that no launch finds its data in L2.
static void kbi_member_replicate(kbi_comparison* c, kbi_member* a) {
    kbi_run* run = &a->run;
    kbi_memory* first = &run->memory;
    int64_t n = kbi_copies_needed(run, first->device);
    int64_t room = first->shared ? INT64_MAX : kbi_free_bytes(run->backend) / 10 * 9; // already allocated
    if (c->recipe->mode == KBI_GRAPH || !run->work.graph) return; // the timer then reports why --rotate is impossible
    if (n < 2)
        kbi_stop(run, KB_FLAG_NOT_COLD, "--rotate needs the data in KB_ALLOC");
    else if (n > KBI_REPLICAS || n * first->device > room)
        kbi_stop(run, KB_FLAG_NOT_COLD,
                 "%lld copies of this data exceed twice the size of L2; the limit is %d copies or the free memory",
                 (long long)n, KBI_REPLICAS);
    if (kbi_failed(run)) return;
    a->replicas = KBI_GROW(NULL, kbi_member, n - 1);
    for (int i = 1; i < n && !kbi_failed(run); i++) {
        kbi_member* copy = &a->replicas[a->n_replicas++];
        kbi_memory* memory = &copy->run.memory;
        kbi_member_copy(copy, a);
        if (first->shared && i >= first->copies) { // the timed call allocated more than the checked one
            first->separate = true;
        } else if (first->shared) {
            memory->original = first, memory->shared = first->shared, memory->layout_peak = first->layout_peak;
            memory->copy_offset = (size_t)i * first->shared->stride;
        }
        kbi_member_begin(c, copy, KBI_HOLD, true);
        if (kbi_failed(&copy->run) || !copy->run.work.graph)
            kbi_stop(run, KB_FLAG_NOT_COLD, "a copy of the case failed: %s", copy->run.m.message);
    }
}

static void kbi_member_start(kbi_comparison* c, kbi_member* a) {
    kbi_run* run = &a->run;
    bool many = c->recipe->mode >= KBI_ROTATE && run->backend->capture.repeats && !run->work.host;
    kbi_command command = c->n > 1 ? KBI_SLOT : KBI_UNMANAGED;
    kbi_member_begin(c, a, many ? KBI_HOLD : command, c->n > 1 || many);
    if (!many || a->over) return;
    kbi_member_replicate(c, a);
    // --rotate and mode graph: captures launches of the case and its replicas alternately in one graph
    int each = a->n_replicas + 1;
    int64_t n = kbi_failed(run) || c->lost ? 0 : run->backend->capture.repeats(run, each);
    for (int which = 0; which < 2 && n; which++) {
        run->backend->capture.repeat(run, which, true);
        for (int64_t i = 0; i < (which + 1) * n; i++) {
            kbi_member* next = i % each ? &a->replicas[i % each - 1] : a;
            next->run.schedule.command = KBI_CAPTURE;
            kbi_member_resume(c, next);
        }
        run->backend->capture.repeat(run, which, false);
    }
    run->schedule.command = command;
    kbi_member_resume(c, a);
}

static void kbi_member_end(kbi_comparison* c, kbi_member* a) {
    a->run.schedule.command = KBI_FINISH;
    if (!a->over) kbi_member_resume(c, a);
    for (int i = 0; i < a->n_replicas; i++) {
        kbi_member_end(c, &a->replicas[i]);
        kbi_measured_free(&a->replicas[i].run.m);
    }
    KBENCH_FREE(a->replicas);
    kbi_fiber_free(&a->fiber);
}

// Takes one slot: 8 samples, or 1 if samples are long. Returns the slot's trimmed mean in ns; NAN: the case ended.
static double kbi_slot(kbi_comparison* c, kbi_member* a) {
    kbi_run* run = &a->run;
    double slot[64];
    int64_t from = run->m.n;
    bool one = run->work.estimate_ns > 2000000 || run->sampling.launches > 1; // one sample per slot, not 8
    int64_t end = from + (one ? 1 : 8);
    if (c->recipe->samples) end = KBI_MIN(end, c->recipe->samples);
    if (a->over || end == from) return NAN;
    run->schedule.slot_end = end;
    run->schedule.discard = c->settling;
    kbi_member_resume(c, a);
    int64_t n = KBI_MIN(run->m.n - from, (int64_t)KBI_COUNT(slot));
    if (kbi_failed(run) || n <= 0) return NAN;
    memcpy(slot, run->m.samples + from, sizeof(double) * (size_t)n);
    return kbi_trimmed(slot, (int)n, (int)n / 8);
}

// Sets the order of the n slots in a round (Williams 1949). In n rounds (2 n if n is odd), each case has every
// position, and follows each other case, equally often. Later rounds use a new random Latin square.
static void kbi_slot_order(int* order, int n, int round, uint64_t seed) {
    int rows[2 * KBI_SLOTS], numbers[KBI_SLOTS], cycle = n % 2 ? 2 * n : n;
    kbi_shuffle(rows, cycle, seed, 3, (uint32_t)(round / cycle));
    kbi_shuffle(numbers, n, seed, 4, (uint32_t)(round / cycle));
    int row = rows[round % cycle];
    for (int k = 0; k < n; k++) { // 0, 1, n - 1, 2, n - 2, ...
        int first = k == 0 ? 0 : k % 2 ? (k + 1) / 2 : n - k / 2;
        order[row < n ? k : n - 1 - k] = numbers[(first + row) % n];
    }
}

typedef struct kbi_estimate { double value, low, high; } kbi_estimate;

// Returns the ratio of two cases' times, each minus its bias, over all rounds in which both cases were timed.
static kbi_estimate kbi_rounds_ratio(const double* first_ns, double first_bias, const double* second_ns,
                                  double second_bias, int64_t rounds, double alpha) {
    double log_ratio[KBI_ROUNDS_LIMIT];
    int64_t n = 0;
    kbi_estimate q;
    for (int64_t r = 0; r < rounds; r++)
        if (kbi_finite(first_ns[r]) && kbi_finite(second_ns[r]))
            log_ratio[n++] =
                log(KBI_MAX(first_ns[r] - first_bias, 1e-3) / KBI_MAX(second_ns[r] - second_bias, 1e-3));
    kbi_paired(log_ratio, n, alpha, &q.value, &q.low, &q.high);
    q.value = exp(q.value), q.low = exp(q.low), q.high = exp(q.high);
    return q;
}

static double kbi_comparison_width(const kbi_comparison* c) {
    double widest = 0;
    const kbi_member* base = c->members[0];
    for (int i = 1; i < c->slots; i++) {
        const kbi_member* a = c->members[i];
        if (a->over || base->over) continue;
        kbi_estimate q = kbi_rounds_ratio(base->ns, 0, a->ns, 0, c->rounds, 0.05 / KBI_MAX(c->n - 1, 1));
        if (!(q.high > 0)) return INFINITY;
        widest = KBI_MAX(widest, log(q.high / q.low) / 2);
    }
    return widest;
}

static bool kbi_comparison_enough(const kbi_comparison* c, double seconds) {
    const kbi_recipe* r = c->recipe;
    double time = seconds / (c->n + 1);
    bool each = true, look = c->rounds % 8 == 0; // every eighth round computes the precision
    for (int i = 0; i < c->n; i++) {
        kbi_run* run = &c->members[i]->run;
        run->sampling.next_check = look ? 0 : INT64_MAX;
        if (!c->members[i]->over && !kbi_sampled_enough(run, time)) each = false;
    }
    if (c->rounds == KBI_ROUNDS_LIMIT) return true;
    if (r->samples || kbi_only_checked(&c->members[0]->run)) return each;
    if (r->rounds) return c->rounds >= r->rounds;
    if (time >= r->max_time && (kbi_comparison_width(c) < INFINITY || time >= 4 * r->max_time)) return each;
    bool resolved = look && c->rounds >= KBI_ROUNDS_MIN && kbi_comparison_width(c) <= r->precision;
    return each && (resolved || c->rounds >= r->max_rounds);
}

enum { KBI_TRIALS = 4, KBI_TRIAL_RUNS = 16, KBI_TRIAL_LONG = 32 };

// Returns how many runs at the start of a slot are affected by the previous slot. Affected runs differ from the
// median of the slot's second half by more than 0.5 % and by more than 3 median absolute deviations of that half.
static int kbi_settling_runs(double ns[KBI_TRIALS][KBI_TRIAL_LONG], int runs) {
    double median[KBI_TRIAL_LONG], half[KBI_TRIAL_LONG / 2], scratch[KBI_TRIAL_LONG];
    int n = runs / 2, settling = n;
    for (int i = 0; i < runs; i++) {
        double each[KBI_TRIALS];
        for (int t = 0; t < KBI_TRIALS; t++) each[t] = ns[t][i];
        median[i] = kbi_median_of(each, KBI_TRIALS, scratch);
    }
    double steady = kbi_median_of(median + n, n, scratch);
    for (int i = 0; i < n; i++) half[i] = fabs(median[n + i] - steady);
    double scatter = KBI_MAX(0.005 * steady, 3 * kbi_median_of(half, n, scratch));
    while (settling > 0 && fabs(median[settling - 1] - steady) <= scatter) settling--;
    return settling;
}

static void kbi_comparison_settle(kbi_comparison* c) {
    double ns[KBI_TRIALS][KBI_TRIAL_LONG];
    c->settling = 1;
    for (int i = 0; i < c->n; i++) {
        const kbi_run* run = &c->members[i]->run;
        bool none = !run->sampling.timer || run->sampling.timer->steady || kbi_only_checked(run);
        if (none) c->settling = 0;
        if (none || run->work.estimate_ns > 500000) return; // other slots hardly affect a long run
    }
    for (int i = 0; i < c->slots; i++) {
        kbi_member* a = c->members[i];
        for (int runs = KBI_TRIAL_RUNS; runs <= KBI_TRIAL_LONG && !a->over; runs *= 2) {
            for (int t = 0; t < 2 * KBI_TRIALS; t++) {
                kbi_member* now = t % 2 ? a : c->members[(i + 1 + t / 2 % (c->slots - 1)) % c->slots];
                kbi_schedule* s = &now->run.schedule;
                if (now->over) continue;
                s->slot_end = now->run.m.n;
                s->discard = now == a ? runs : 1;
                s->discarded_ns = now == a ? ns[t / 2] : NULL;
                kbi_member_resume(c, now);
                s->discarded_ns = NULL;
            }
            int settling = a->over || c->lost ? 0 : kbi_settling_runs(ns, runs);
            c->settling = KBI_MAX(c->settling, settling);
            if (settling < runs / 2) break;
        }
    }
}

static void kbi_comparison_rounds(kbi_comparison* c) {
    int order[KBI_SLOTS];
    bool live = true, enough = false;
    kbi_comparison_settle(c);
    int64_t began = kbi_now() - kbi_meter.stopped_ns;
    while (live && !c->lost && !enough) {
        kbi_slot_order(order, c->slots, c->rounds, c->recipe->seed);
        for (int k = 0; k < c->slots; k++) c->members[order[k]]->ns[c->rounds] = kbi_slot(c, c->members[order[k]]);
        c->rounds++;
        live = false;
        for (int i = 0; i < c->n; i++) live |= !c->members[i]->over;
        enough = kbi_comparison_enough(c, (double)(kbi_now() - kbi_meter.stopped_ns - began) * 1e-9);
    }
    for (int i = 0; i < 2 * c->n; i++) { // first reads the clocks, before the device idles, then slower sensors
        kbi_run* run = &c->members[i % c->n]->run;
        if (c->members[i % c->n]->over) continue;
        if (i < c->n) kbi_note_clock(run, kbi_clock_mhz(run));
        if (i < c->n) continue;
        kbi_sense(run);
        kbi_note_load(&run->m, &run->sampling.load, "/proc", kbi_cpu_root);
    }
}

static void kbi_member_keep_rounds(const kbi_comparison* c, kbi_member* a) {
    kbi_run* run = &a->run;
    if (c->n < 2 || kbi_failed(run)) return;
    run->m.rounds = c->rounds;
    run->m.round_ns = kbi_copy_reals(a->ns, c->rounds);
    if (a == c->members[0] && c->slots > c->n) run->m.control_ns = kbi_copy_reals(c->members[c->n]->ns, c->rounds);
    run->m.stage = c->staged && !run->memory.separate && run->memory.layout_peak > 0; // 0: no data in KB_ALLOC
    run->m.arms = c->n;
    run->m.contest = c->members[0]->index;
}

static void kbi_member_result(kbi_member* a) {
    kbi_run_finish(&a->run);
    kbi_tell(a->run.sink, KBI_RESULT, a->index, &a->run.m);
}

// Measures cases that passed the first check, in interleaved rounds if memory allows. Returns false if the device
// is lost.
static bool kbi_comparison_all(kbi_member** members, int n, const kbi_recipe* recipe) {
    const kbi_backend* b = members[0]->run.backend;
    int64_t free_now = kbi_free_bytes(b), physical = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t device = 0, host = 0, stage_bytes = 0;
    size_t largest = 0;
    for (int i = 0; i < n; i++) {
        kbi_run* run = &members[i]->run;
        bool rotate = recipe->mode == KBI_ROTATE && b->capture.repeats && kbi_wants_audit(run);
        int64_t copies = rotate ? kbi_copies_needed(run, run->memory.device_peak) : 1;
        run->memory.copies = copies > 1 && copies <= KBI_REPLICAS ? (int)copies : 1;
        largest = KBI_MAX(largest, run->memory.layout_peak);
    }
    for (int i = 0; i < n + (n > 1); i++) {
        const kbi_run* run = &members[i % n]->run;
        int64_t span = (int64_t)kbi_shared_span(&run->memory, kbi_shared_align(largest, largest));
        device += KBI_MAX(run->memory.copies * run->m.memory, run->memory.copies > 1 ? span : 0);
        device += run->memory.output_bytes;
        host += run->memory.copies * run->m.host_memory;
        stage_bytes = KBI_MAX(stage_bytes, span);
    }
    device += stage_bytes;
    if (free_now == KB_NONE) host += device; // the cpu backend allocates host memory
    bool fits = host < physical / 2 && (free_now == KB_NONE || device < free_now / 10 * 9);
    bool together = fits && (KBI_FIBERS || members[0]->run.work.by_pointer), good = true;
    // no shared buffers under a tool that checks each allocation, or if saving and restoring takes too long
    bool wanted = !(kbi_instruments_here() & 1) && !members[0]->run.machine->tool[0] && stage_bytes > 0 &&
                  stage_bytes <= (b->gpu ? (int64_t)4 << 30 : (int64_t)64 << 20);
    for (int i = 0; i < n && n > 1 && fits && !together; i++) kb_note(&members[i]->run.kb, "%s", kbi_apart_note);
    for (int i = 0; i < n && good; i += together ? n : 1) {
        kbi_comparison c;
        kbi_shared_buffers stage;
        kbi_memory* memories[KBI_SLOTS];
        memset(&c, 0, sizeof c);
        c.recipe = recipe;
        c.n = c.slots = together ? n : 1;
        memcpy(c.members, members + i, sizeof *members * (size_t)c.n);
        if (c.n > 1) {
            kbi_member* control = c.members[c.slots++] = KBI_GROW(NULL, kbi_member, 1);
            kbi_member_copy(control, members[0]);
            control->run.work = members[0]->run.work;
            control->run.memory.layout_peak = members[0]->run.memory.layout_peak;
            control->run.memory.copies = members[0]->run.memory.copies;
        }
        for (int k = 0; k < c.slots; k++) memories[k] = &c.members[k]->run.memory;
        c.staged = wanted && kbi_shared_open(&stage, b, memories, c.slots);
        for (int k = 0; k < c.slots && !c.lost; k++) kbi_member_start(&c, c.members[k]);
        if (c.n > 1 && !c.lost) kbi_comparison_rounds(&c);
        for (int k = c.slots - 1; k >= 0 && !c.lost; k--) { // the control first
            kbi_member_end(&c, c.members[k]);
            kbi_member_keep_rounds(&c, c.members[k]);
        }
        good = !c.lost;
        if (c.staged && good) kbi_shared_close(&stage, memories, c.slots);
        for (int k = 0; k < c.n; k++)
            if (good || c.members[k]->over) kbi_member_result(c.members[k]);
        if (c.slots > c.n && good) kbi_measured_free(&c.members[c.n]->run.m), KBENCH_FREE(c.members[c.n]);
    }
    return good;
}

// Runs case first + i if wanted[i] is set. Returns false if the device is lost.
static bool kbi_run_cases(const kbi_case* cases, const kbi_recipe* recipe, const kbi_backend* b, kbi_machine* machine,
                          int first, int n, const char* wanted, const kbi_sink* sink) {
    kbi_member** members = KBI_GROW(NULL, kbi_member*, n);
    int count = 0;
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        if (!wanted[i]) continue;
        kbi_member* a = KBI_GROW(NULL, kbi_member, 1);
        memset(a, 0, sizeof *a);
        kbi_run_init(&a->run, b, machine, recipe, &cases[first + i]);
        if (recipe->verdicts) a->run.work.verdict = &recipe->verdicts[i];
        a->run.sink = sink, a->run.index = a->index = first + i;
        kbi_tell(sink, KBI_ENTER, a->index, NULL);
        if (recipe->inside) {
            kbi_insight_clear();
            kbi_make_call(&a->run, KBI_PHASE_CHECK, KBI_PHASE_PROFILE);
            kbi_show_range(&a->run.ranges[0], NULL, NULL);
            kbi_tell(sink, KBI_FOUND, a->index, kbi_inside_take(&a->run));
            kbi_measured_free(&a->run.m);
        } else {
            kbi_check_call(&a->run);
            members[count] = a;
            if (a->run.m.status == KB_OK && ++count) continue;
            kbi_member_result(a);
        }
        good = !kbi_lost(&a->run);
        KBENCH_FREE(a);
    }
    for (int i = 0; i < count && good; i += KBI_MEMBERS)
        good = kbi_comparison_all(members + i, KBI_MIN(count - i, (int)KBI_MEMBERS), recipe);
    for (int i = 0; i < count && good; i++) KBENCH_FREE(members[i]);
    KBENCH_FREE(members);
    return good;
}

/*-----------------------------------------------------------------
  >>verdict   judge: computes statistics, rates and flags from samples and observations.
-----------------------------------------------------------------*/

static void kbi_flag_set(kb_result* r, kb_flag flag, bool raised) {
    if (raised) r->flags |= (uint64_t)1 << flag;
}

KBI_PRINTF(2, 3) static void kbi_judge_say(kb_result* r, const char* format, ...) {
    kbi_text all = KBI_BLANK;
    va_list list;
    va_start(list, format);
    if (r->message) kbi_putf(&all, "%s; ", r->message);
    kbi_vputf(&all, format, list);
    va_end(list);
    r->message = kbi_arena_text(r->owned, all.s);
    kbi_text_free(&all);
}

// Returns the timer's resolution in ms; if unknown, the distance from the median to the nearest other time, or 0
// if that exceeds 10 % of the median.
static double kbi_judge_step(const kb_stats* s, const kbi_measured* m, const double* ms) {
    double nearest = INFINITY;
    if (kbi_finite(m->step_ns) && m->step_ns > 0) return m->step_ns * 1e-6;
    for (int64_t i = 0; i < s->n; i++)
        if (ms[i] < s->median || ms[i] > s->median) nearest = KBI_MIN(nearest, fabs(ms[i] - s->median));
    return nearest <= 0.1 * s->median ? nearest : 0;
}

static void kbi_judge_flags(kb_result* r, const kbi_measured* m, const kb_stats* s, const double* ms) {
    double* scratch = KBI_GROW(NULL, double, s->n + 1);
    const double median = s->median, precision = r->precision, spread = s->p95 - s->p5;
    double clock_range = (m->clock_high - m->clock_low) / m->clock_high, low, high;
    kbi_flag_set(r, KB_FLAG_FEW, s->n < KBI_STATS_ENOUGH);
    kbi_flag_set(r, KB_FLAG_NOISY, s->precision > 0.05);
    if (s->n >= KBI_STATS_MIN) { // how far the median moves without the samples beyond Tukey's outer fences
        double step = kbi_judge_step(s, m, ms) / median, fence = 3 * (s->p75 - s->p25);
        int64_t n = 0;
        for (int64_t i = 0; i < s->n; i++)
            if (ms[i] >= s->p25 - fence && ms[i] <= s->p75 + fence) scratch[n++] = ms[i];
        double shift = fabs(kbi_median_of(scratch, n, scratch) / median - 1);
        kbi_flag_set(r, KB_FLAG_QUANTISED, step > KBI_STATS_NOTABLE && step > precision);
        kbi_flag_set(r, KB_FLAG_OUTLIERS, shift > KBI_STATS_NOTABLE && shift > precision);
    }
    if (s->n >= KBI_STATS_ENOUGH && fabs(s->mean - median) > KBI_MAX(0.1, precision) * median) {
        char texts[3][40];
        kbi_flag_set(r, KB_FLAG_OUTLIERS, true);
        kbi_judge_say(r, "the mean is %s, the median %s, the longest sample %s", kbi_show_time(s->mean, texts[0]),
                      kbi_show_time(median, texts[1]), kbi_show_time(s->max, texts[2]));
    }
    if (!m->settled) { // is the median outside the confidence interval of the second half of the samples?
        const int64_t half = s->n / 2;
        double later = kbi_median_of(ms + half, s->n - half, scratch), notable = KBI_STATS_NOTABLE * median;
        kbi_median_interval(ms + half, s->n - half, later, scratch, &low, &high);
        kbi_flag_set(r, KB_FLAG_UNSETTLED,
                     (median < low && median < later - notable) || (median > high && median > later + notable));
    }
    KBENCH_FREE(scratch);
    // a drift above 10 % is flagged even if the confidence interval is wider
    bool drift = s->drift_significant && (fabs(s->drift) > 2 * precision || fabs(s->drift) > 0.1);
    kbi_flag_set(r, KB_FLAG_DRIFT, drift);
    // not flagged: an interval narrower than 1 % is harmless, and a spread above 25 % is obvious
    bool unreliable = s->effective < KBI_STATS_ENOUGH && precision > KBI_STATS_NOTABLE && spread < 0.25 * median;
    kbi_flag_set(r, KB_FLAG_AUTOCORR, unreliable && !drift);
    // gap: distance from the median to a second mode with at least a quarter of the samples
    double up = s->p75 - median, down = median - s->p25, gap = 0;
    if (up > 3 * (s->p95 - s->p75)) gap = up / median;
    if (down > 3 * (s->p25 - s->p5)) gap = KBI_MAX(gap, down / median);
    kbi_flag_set(r, KB_FLAG_BIMODAL, s->bimodal && gap > KBI_STATS_NOTABLE && gap > 2 * precision);
    // CLOCK_VARIES: times that follow the clock are autocorrelated, and spread at least half as much as the clock
    kbi_flag_set(r, KB_FLAG_CLOCK_VARIES,
                 clock_range > 0.02 && spread > 0.5 * clock_range * median && s->effective < 0.5 * (double)s->n);
}

// sd: standard deviation of the bias in ms; widens the interval.
static void kbi_judge_bias_error(kb_result* r, double sd) {
    kbi_interval_add(r->time_ms, sd, &r->time_ms_ci_low, &r->time_ms_ci_high);
    r->precision = kbi_half_width(r->time_ms_ci_low, r->time_ms_ci_high, r->time_ms);
    if (r->time_ms_ci_low < 0) r->time_ms_ci_low = 0;
}

static const char kbi_empty_note[] =
    "the block takes no more time than an empty loop: the compiler did the work in advance, or removed it; call "
    "kb_keep on an input before the work, and on the result after it";

static void kbi_judge_times(kb_result* r, const kbi_measured* m) {
    // [kbi_kept]: time in ms of an empty loop or function; longer if another process shares the core
    static const double empty_ms[] = { 0, 5e-6, 5e-6, 2e-6, 4e-6 };
    double* ms = KBI_ARRAY(r->owned, double, KBI_MAX(m->n, (int64_t)1));
    double bias = kbi_bias_of(m);
    bool usable = true;
    for (int64_t i = 0; i < m->n; i++) {
        usable &= kbi_finite(m->samples[i]);
        ms[i] = KBI_MAX(m->samples[i] - bias, 0) * 1e-6; // differences of times (--rotate) may be < 0
    }
    kb_stats s = kbi_summarize(ms, m->n, kbi_finite(m->step_ns) ? m->step_ns * 1e-6 : 0);
    bool empty = usable && s.median > 0 && s.median <= empty_ms[m->kept] && !m->proven;
    bool no_work = empty && m->kept <= KBI_KEPT_CONSTANTS;
    if (no_work || !usable || !(s.median > 0)) {
        kbi_flag_set(r, no_work ? KB_FLAG_NO_WORK : KB_FLAG_BAD_CASE, true);
        r->status = KB_FAILED;
        r->message = !usable    ? "the clock returned a time that is not a number"
                     : !no_work ? "the time is not longer than reading the clock; put more work into the block"
                                : kbi_empty_note;
        return;
    }
    kbi_result_take(r, KBI_OF_STATS, &s);
    r->samples_ms.of = ms;
    r->samples_ms.n = m->n;
    r->process_ms.of = (double*)memcpy(kbi_arena_alloc(r->owned, sizeof s.median), &s.median, sizeof s.median);
    r->processes = r->process_ms.n = 1;
    r->time_ms_raw = s.median + bias * 1e-6;
    r->bias_ms = bias * 1e-6;
    r->floor_ms = m->floor_ns * 1e-6;
    // with an unknown bias error, times near that of an empty kernel get FLOOR
    bool floored = m->bias_error_ns > 0 ? 1.96 * m->bias_error_ns * 1e-6 > 0.05 * s.median
                                        : r->time_ms_raw < 5 * r->floor_ms;
    kbi_flag_set(r, KB_FLAG_FLOOR, floored || empty);
    if (empty) kbi_judge_say(r, "%s", kbi_empty_note); // no failure: the loop's own time can hide one instruction
    kbi_judge_bias_error(r, m->bias_error_ns * 1e-6);
    kbi_judge_flags(r, m, &s, ms);
}

static void kbi_judge_rates(kb_result* r, const kbi_measured* m, const kbi_machine* machine) {
    const double seconds = r->time_ms * 1e-3, l2 = (double)machine->l2;
    const double bytes = kbi_finite(m->bytes) ? m->bytes : 0, flops = kbi_finite(m->flops) ? m->flops : 0;
    if (!(seconds > 0)) return;
    r->inference_speed = 1 / seconds;
    r->throughput_gbps = m->bytes / seconds * 1e-9;
    r->gflops = m->flops / seconds * 1e-9;
    r->items_per_second = m->items / seconds;
    if (m->queries) r->queries_per_second = r->items_per_second;
    int moves = kbi_traffic_roof(m->traffic), computes = KBI_NO_ROOF, above = KBI_NO_ROOF;
    double peak = 0;
    kbi_arithmetic meant = kbi_arithmetic_of(m);
    if (flops > 0) computes = m->core ? meant.base : kbi_roof_over(&m->roofs, meant, flops / seconds);
    const bool impossible = computes == KBI_ABOVE_ALL;
    if (impossible) {
        above = meant.base;
        for (int i = 0; i < KBI_ROOFS; i++)
            if (meant.others >> i & 1 && m->roofs.most[i] > m->roofs.most[above]) above = i;
        peak = m->roofs.most[above];
    } else if (!m->core && kbi_is(m->cache, "cold") && bytes >= 4 * l2) { // L2 cannot supply so many bytes
        int which = moves;
        for (int i = KBI_ROOF_COPY; !m->traffic && i <= KBI_ROOF_WRITE; i++)
            if (kbi_roof_known(&m->roofs, i) > kbi_roof_known(&m->roofs, which)) which = i;
        peak = kbi_roof_known(&m->roofs, which);
        double unwritten = m->traffic == KB_READ ? 0 : l2; // bytes that may reach memory after the launch
        if (peak > 0 && (bytes - unwritten) / seconds > kbi_roof_margin * peak) above = which;
    }
    if (above >= 0) {
        char texts[2][40];
        kbi_judge_say(r, "%s %s, where the machine reaches %s (%s)",
                      kbi_digits((impossible ? flops : bytes) / seconds * 1e-9, 4, texts[0]),
                      impossible ? "GFLOP/s by kb_flops" : "GB/s by kb_bytes", kbi_digits(peak * 1e-9, 4, texts[1]),
                      kbi_roof_names[above]);
        kbi_flag_set(r, KB_FLAG_ABOVE_ROOF, true);
        r->status = KB_FAILED;
        return;
    }
    double memory = kbi_roof_known(&m->roofs, moves), arithmetic = kbi_roof_known(&m->roofs, computes);
    if (arithmetic > 0 && m->roofs.most[computes] < 0 && flops / seconds > kbi_roof_margin * arithmetic)
        arithmetic = 0;
    if (arithmetic > 0) r->compute_roof = kbi_roof_names[computes], r->compute_roof_gflops = arithmetic * 1e-9;
    double moved = memory > 0 ? bytes / seconds / memory : 0;
    double computed = arithmetic > 0 ? flops / seconds / arithmetic : 0;
    // if the arithmetic peak is unknown, the case is memory-bound only above half of the bandwidth peak
    if ((computes >= 0 && !(arithmetic > 0) && moved < 0.5) || (!(moved > 0) && !(computed > 0))) return;
    const bool by_memory = moved >= computed;
    r->gpu_efficiency = 100 * (by_memory ? bytes / seconds / (m->reached > 0 ? m->reached : memory) : computed);
    r->roof = kbi_roof_names[by_memory ? moves : computes];
    r->bound = r->flags >> KB_FLAG_FLOOR & 1 || KBI_MAX(moved, computed) < 0.1 ? "latency"
               : by_memory                                                    ? "memory"
                                                                              : "compute";
    // a rate above 1.5 times the memory peak shows that data come from caches, or that several cores work
    if (m->core && by_memory && moved > 1.5) r->bound = NULL;
}

static void kbi_judge_withdraw(kb_result* r) {
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++)
        if (kbi_keys[i].withheld) kbi_field_clear(r, &kbi_keys[i]);
}

static void kbi_judge_cold(kb_result* r, const kbi_measured* m, const kbi_machine* machine) {
    if (!kbi_is(m->cache, "cold")) return;
    if (!kbi_finite(machine->cold) && kbi_is(machine->backend, "cuda"))
        kbi_judge_say(r, "not proven cold: it could not be measured whether the eviction empties the L2 cache");
    if (!kbi_finite(machine->cold) || machine->cold >= 0.7) return;
    kbi_judge_say(r, "after the eviction %.0f %% of L2's data was still there", 100 * (1 - machine->cold));
    kbi_flag_set(r, KB_FLAG_NOT_COLD, true);
    r->status = KB_FAILED;
}

static void kbi_judge_noise(kb_result* r, const kbi_measured* m) {
    if (!(r->flags >> KB_FLAG_NOISY & 1) || !kbi_is(m->timer, "wall")) return;
    if (m->cpu_waited >= 1)
        kbi_judge_say(r, "other programs used the processor for %.0f %% of the time (%lld preemptions)", m->cpu_waited,
                      (long long)KBI_MAX(m->preemptions, (int64_t)0));
    if (m->cpu_stolen >= 1)
        kbi_judge_say(r, "the hypervisor gave %.0f %% of the processors' time to other machines", m->cpu_stolen);
}

// r: cleared, or from kbi_record_start.
static void kbi_judge(kb_result* r, const kbi_measured* m, const kbi_machine* machine) {
    kbi_result_take(r, KBI_OF_MEASURED, m);
    r->wall_ms = m->wall_ns * 1e-6;
    kbi_flag_set(r, KB_FLAG_THROTTLED, m->throttle[0] != 0);
    kbi_flag_set(r, KB_FLAG_SHARED_GPU, m->others > 0);
    kbi_flag_set(r, KB_FLAG_LEAK, m->leaked > 0);
    kbi_flag_set(r, KB_FLAG_UNGATED, m->ungated != 0);
    kbi_flag_set(r, KB_FLAG_CONSTANT_DATA, m->constant != 0);
    if (r->status == KB_OK) {
        kbi_judge_times(r, m);
        kbi_judge_rates(r, m, machine);
        if (r->status == KB_OK) kbi_judge_noise(r, m);
        if (r->status == KB_OK) kbi_judge_cold(r, m, machine);
        kbi_flag_set(r, KB_FLAG_UNVERIFIED, r->verified < 0);
        kbi_flag_set(r, KB_FLAG_DEBUG_BUILD, m->debug_build != 0);
    }
    if (r->status != KB_OK || !(r->time_ms >= 0)) kbi_judge_withdraw(r);
}

/*-----------------------------------------------------------------
  >>comparison judge: combines the processes of a case, and tests which implementation of a group is faster.
-----------------------------------------------------------------*/

static const double kbi_equivalence = 0.01; // two times within 1 % of each other are EQUIVALENT
// The addresses of buffers change a kernel's time by up to 3 % (H200: row sums).
static const double kbi_placement_effect = 0.03;
// Code at another address changes a CPU's time by 1 %, which an A/A control of the same code cannot show.
static const double kbi_code_effect = 0.01;

// The printed interval predicts the median of 15 other processes, with (pi / 2) / 15 of the variance of one process.
static const double kbi_prediction_variance = 0.10471975511965977;

// A table of log times or log ratios. Rows with similar times share one estimate of the variance.
typedef struct kbi_pool {
    double *values, *ms; // values: [case or pair][process]; ms: time of each row
    kbi_spread* spread;
    int rows, processes;
} kbi_pool;

typedef struct kbi_pools { kbi_pool times, ratios, equals; } kbi_pools;

static void kbi_pools_open(kbi_pools* pools, kbi_arena* a, int cases, int processes) {
    kbi_pool p = { NULL, NULL, NULL, 0, processes };
    const size_t rows = 2 * (size_t)cases;
    for (int i = 0; i < 3; i++) {
        p.values = KBI_ARRAY(a, double, rows * (size_t)processes);
        p.ms = KBI_ARRAY(a, double, rows);
        p.spread = KBI_ARRAY(a, kbi_spread, rows);
        *(i == 0 ? &pools->times : i == 1 ? &pools->ratios : &pools->equals) = p;
    }
}

static int kbi_pool_add(kbi_pool* p, const double* values, double ms) {
    memcpy(p->values + p->rows * p->processes, values, sizeof(double) * (size_t)p->processes);
    p->ms[p->rows] = ms;
    return p->rows++;
}

static void kbi_pool_settle(kbi_pool* p, double beside) {
    kbi_spread_of(p->values, p->processes, p->rows, p->ms, beside, p->spread);
}

// Returns the process whose record represents a case: the first that failed, else the first that skipped the case,
// else the one with the median time (of two middle times, the lower). Returns -1 if only one of several processes
// has a time.
static int kbi_judge_representative(kb_result* const* records, int processes) {
    double ms[KBI_PROCESSES];
    int n = 0;
    for (int status = KB_FAILED; status <= KB_SKIPPED; status++)
        for (int p = 0; p < processes; p++)
            if (records[p] && records[p]->status == (kb_status)status) return p;
    for (int p = 0; p < processes; p++)
        if (records[p]) ms[n++] = records[p]->time_ms;
    if (n < KBI_MIN(2, processes)) return -1;
    kbi_sort(ms, n);
    for (int p = 0; p < processes; p++)
        if (records[p] && memcmp(&records[p]->time_ms, &ms[(n - 1) / 2], sizeof ms[0]) == 0) return p;
    return -1;
}

static void kbi_judge_name_process(kb_result* r, int process, int processes) {
    const char* message = r->message;
    r->message = NULL;
    kbi_judge_say(r, "process %d of %d%s%s", process + 1, processes, message ? ": " : "", message ? message : "");
}

// Merges the records of all processes into the representative record r. The time of r is the geometric mean of the
// processes' medians. r gets each flag that most processes raise, but NOISY depends on the merged interval.
static void kbi_judge_merge(kb_result* r, kb_result* const* records, int processes, const kbi_measured* m,
                            const kbi_spread* s) {
    const double time = exp(s->mean), scale = r->time_ms / time;
    double* rates[] = { &r->inference_speed, &r->throughput_gbps,  &r->gflops,
                        &r->gpu_efficiency,  &r->items_per_second, &r->queries_per_second };
    double* ms = KBI_ARRAY(r->owned, double, processes);
    int n = 0, raised[KB_FLAG_COUNT] = { 0 };
    r->wall_ms = 0;
    for (int p = 0; p < processes; p++) {
        if (!records[p]) continue;
        ms[n++] = records[p]->time_ms;
        r->wall_ms += records[p]->wall_ms;
        r->verified = KBI_MIN(r->verified, records[p]->verified);
        if (records[p]->max_error > r->max_error) r->max_error = records[p]->max_error;
        for (int f = 0; f < KB_FLAG_COUNT; f++) raised[f] += (int)(records[p]->flags >> f & 1);
    }
    r->flags = 0;
    raised[KB_FLAG_FEW] = raised[KB_FLAG_NOISY] = 0;
    for (int f = 0; f < KB_FLAG_COUNT; f++) kbi_flag_set(r, (kb_flag)f, 2 * raised[f] > n);
    r->time_ms = time;
    r->time_ms_ci_low = exp(s->lo), r->time_ms_ci_high = exp(s->hi);
    r->precision = kbi_half_width(r->time_ms_ci_low, r->time_ms_ci_high, time);
    kbi_flag_set(r, KB_FLAG_NOISY, r->precision > 0.05);
    // adds the error of an estimated bias, which the variance between processes does not include
    if (m->bias_fitted || m->empty == KBI_NO_SHAPE) kbi_judge_bias_error(r, m->bias_error_ns * 1e-6);
    for (int i = 0; i < KBI_COUNT(rates); i++) *rates[i] *= scale;
    r->process_ms.of = ms;
    r->processes = r->process_ms.n = n;
}

typedef struct kbi_compared {
    kb_result* results;
    int n, processes;
    int fastest;            // index of the fastest case; -1: fewer than two cases have times
    const kbi_measured** m; // [p * n + i]: case i in process p; NULL: not measured
    int* rows; // rows in pools; -1: none; ratios: [0] baseline/control; [i] baseline/case i; [n+i] case i/fastest
} kbi_compared;

enum { KBI_CONTROL = -1 }; // as `second` case: the baseline's A/A control
static const kbi_estimate kbi_unknown_ratio = { NAN, NAN, NAN };

static bool kbi_judge_has_time(const kbi_compared* c, int i) {
    return c->results[i].status == KB_OK && c->results[i].time_ms > 0;
}

// Returns the ratio of the times of two cases in one process; NAN: the cases did not run in the same rounds.
static kbi_estimate kbi_judge_ratio_in(const kbi_compared* c, int process, int first, int second, double alpha) {
    const kbi_measured *a = c->m[process * c->n + first], *b = second < 0 ? a : c->m[process * c->n + second];
    if (!a || !b || a->status != KB_OK || b->status != KB_OK || a->rounds < 1 || (second < 0 && !a->control_ns) ||
        a->rounds != b->rounds || a->contest != b->contest)
        return kbi_unknown_ratio;
    return kbi_rounds_ratio(a->round_ns, kbi_bias_of(a), second < 0 ? a->control_ns : b->round_ns, kbi_bias_of(b),
                            a->rounds, alpha);
}

// Returns the ratio of the times of two cases. With several processes, the interval is the t interval of the mean
// log ratio. If the launch shapes of the cases differ, the errors of the biases widen the interval.
static kbi_estimate kbi_judge_ratio_over(const kbi_compared* c, const kbi_pools* pools, int first, int second,
                                      double alpha) {
    const kbi_measured *a = c->m[first], *b = second < 0 ? a : c->m[second];
    kbi_estimate q = kbi_unknown_ratio;
    const int row = c->processes == 1 ? -1 : c->rows[second < 0 ? first : first ? c->n + first : second];
    if (c->processes == 1) {
        q = kbi_judge_ratio_in(c, 0, first, second, alpha);
    } else if (row >= 0) {
        const kbi_spread* s = &(second < 0 ? &pools->equals : &pools->ratios)->spread[row];
        double reach = kbi_spread_reach(s, alpha, 0);
        q.value = exp(s->mean), q.low = exp(s->mean - reach), q.high = exp(s->mean + reach);
    }
    if (!a || !b || second < 0 || !(q.low > 0) || (a->empty == b->empty && a->empty != KBI_NO_SHAPE)) return q;
    double down = log(q.value / q.low), up = log(q.high / q.value);
    for (int k = 0; k < 2; k++) { // asymmetric: log(1 - share) is further from 0 than log(1 + share)
        double share = 1.959963984540054e-6 * (k ? b : a)->bias_apart_ns / c->results[k ? second : first].time_ms;
        double longer = log1p(share), shorter = -log1p(-KBI_MIN(share, 0.999));
        down = hypot(down, k ? longer : shorter), up = hypot(up, k ? shorter : longer);
    }
    q.low = KBI_MAX(q.value * exp(-down), 1e-3), q.high = KBI_MIN(q.value * exp(up), 1e3); // wider: no information
    return q;
}

// Adds a row to a pool: the log ratio of two cases (or of their medians) in each process.
static int kbi_compared_pair(const kbi_compared* c, kbi_pool* pool, int first, int second) {
    double values[KBI_PROCESSES];
    int n = 0;
    for (int p = 0; p < c->processes; p++) {
        double ratio = kbi_judge_ratio_in(c, p, first, second, 0.05).value, ns[2] = { NAN, NAN };
        for (int k = 0; k < 2 && !kbi_finite(ratio) && second >= 0; k++) {
            const kbi_measured* m = c->m[p * c->n + (k ? second : first)];
            if (!m || m->status != KB_OK || m->arms > 1 || m->n < 1) break;
            double* scratch = KBI_GROW(NULL, double, m->n);
            ns[k] = kbi_median_of(m->samples, m->n, scratch) - kbi_bias_of(m);
            KBENCH_FREE(scratch);
        }
        if (ns[0] > 0 && ns[1] > 0) ratio = ns[0] / ns[1];
        values[p] = log(ratio);
        n += kbi_finite(values[p]);
    }
    // pairs are pooled by their shorter time, which causes most of the variance of the log ratio
    double ms = KBI_MIN(c->results[first].time_ms, c->results[second < 0 ? first : second].time_ms);
    return n ? kbi_pool_add(pool, values, ms) : -1;
}

// The caller sets c->m; kbi_judge_group frees the arrays.
static void kbi_compared_open(kbi_compared* c, kb_result* results, int n, int processes) {
    memset(c, 0, sizeof *c);
    c->results = results;
    c->n = n;
    c->processes = processes;
    c->m = KBI_GROW(NULL, const kbi_measured*, (size_t)n * (size_t)processes);
    c->rows = KBI_GROW(NULL, int, 2 * (size_t)n);
}

static void kbi_compared_pool(kbi_compared* c, kbi_pools* pools) {
    int timed = 0;
    c->fastest = -1;
    for (int i = 0; i < c->n; i++) {
        c->rows[i] = c->rows[c->n + i] = -1;
        if (!kbi_judge_has_time(c, i)) continue;
        timed++;
        if (c->fastest < 0 || c->results[i].time_ms < c->results[c->fastest].time_ms) c->fastest = i;
    }
    if (timed < 2) c->fastest = -1;
    for (int i = 0; i < c->n && c->processes > 1 && timed >= 2; i++) {
        if (!kbi_judge_has_time(c, i)) continue;
        if (kbi_judge_has_time(c, 0))
            c->rows[i] = kbi_compared_pair(c, i ? &pools->ratios : &pools->equals, 0, i ? i : KBI_CONTROL);
        if (i && c->fastest > 0 && i != c->fastest)
            c->rows[c->n + i] = kbi_compared_pair(c, &pools->ratios, i, c->fastest);
    }
}

// In one process, equal kernels on separate buffers can differ by 3 %; intervals over several processes include this.
static kb_verdict kbi_judge_verdict(const kbi_compared* c, int first, int second, kbi_estimate q, double* noise) {
    bool shared = c->processes > 1 || (c->m[first]->stage == 1 && c->m[second]->stage == 1);
    if (!shared && !(*noise > kbi_placement_effect)) *noise = kbi_placement_effect;
    kb_verdict v = kbi_judge_ratio(q.low, q.high, kbi_equivalence, *noise);
    return v == KB_EQUIVALENT || kbi_finite(*noise) ? v : KB_UNRESOLVED;
}

// Sets speedup, verdict, winner, and rating (best verified time / time) of each case. Frees the arrays.
static void kbi_judge_group(kbi_compared* c, const kbi_pools* pools) {
    const kbi_measured* base = c->m[0];
    double best = INFINITY, noise = NAN;
    bool certain = c->fastest >= 0;
    for (int i = 0; i < c->n; i++)
        if (kbi_judge_has_time(c, i) && c->results[i].verified == 1)
            best = KBI_MIN(best, c->results[i].time_ms);
    kbi_estimate q = kbi_judge_ratio_over(c, pools, 0, KBI_CONTROL, 0.05);
    if (kbi_finite(q.value)) noise = kbi_noise_floor(q.low, q.high);
    if (!kbi_finite(noise) && c->processes > 1 && base && base->arms <= 1) noise = kbi_placement_effect;
    if (base && base->core) noise = KBI_MAX(noise, kbi_code_effect);
    for (int i = 0; i < c->n && c->n > 1; i++) {
        kb_result* r = &c->results[i];
        double share = best / r->time_ms, winner_noise = noise;
        r->baseline = kbi_arena_text(r->owned, c->results[0].implementation);
        if (c->fastest >= 0) r->winner = kbi_arena_text(r->owned, c->results[c->fastest].implementation);
        int arms = 2; // number of cases; Bonferroni: alpha / (arms - 1) per comparison
        if (!kbi_judge_has_time(c, i)) continue;
        for (int p = 0; p < c->processes; p++)
            if (c->m[p * c->n + i]) arms = KBI_MAX(arms, c->m[p * c->n + i]->arms);
        if (r->verified == 1)
            r->rating = share >= 0.8 ? "excellent" : share >= 0.5 ? "good" : share >= 0.2 ? "fair" : "needs work";
        q = kbi_unknown_ratio;
        if (i && c->results[0].status == KB_OK) q = kbi_judge_ratio_over(c, pools, 0, i, 0.05 / (arms - 1));
        r->speedup = kbi_finite(q.value) ? q.value : c->results[0].time_ms / r->time_ms;
        if (kbi_finite(q.value)) {
            r->speedup_low = q.low, r->speedup_high = q.high;
            r->noise_floor = noise;
            r->verdict = kbi_judge_verdict(c, 0, i, q, &r->noise_floor);
            kbi_flag_set(r, KB_FLAG_PLACEMENT,
                         kbi_finite(noise) &&
                             r->verdict != kbi_judge_ratio(q.low, q.high, kbi_equivalence, noise));
        } else if (i && kbi_judge_has_time(c, 0)) {
            r->verdict = KB_UNRESOLVED;
        }
        if (!certain || i == c->fastest) continue;
        int first = c->fastest ? i : 0, second = c->fastest ? c->fastest : i;
        q = kbi_judge_ratio_over(c, pools, first, second, 0.05 / (c->n - 1));
        certain = kbi_finite(q.value) && kbi_judge_verdict(c, first, second, q, &winner_noise) ==
                                             (c->fastest ? KB_FASTER : KB_SLOWER);
    }
    for (int i = 0; i < c->n && c->fastest >= 0; i++) c->results[i].winner_certain = certain;
    KBENCH_FREE(c->m);
    KBENCH_FREE(c->rows);
}

/*-----------------------------------------------------------------
  >>record    record: adds the case's identity, the machine and the run to the record.
-----------------------------------------------------------------*/

static kb_param* kbi_params_reserve(kb_result* r, kbi_field_params* list, int64_t more) {
    size_t used = sizeof(kb_param) * (size_t)list->n;
    kb_param* all = (kb_param*)kbi_arena_alloc(r->owned, used + sizeof(kb_param) * (size_t)more);
    if (used) memcpy(all, list->of, used);
    list->of = all;
    return all + list->n;
}

// Of counters with the same name, the first is kept.
static void kbi_record_counters(kb_result* r, const kbi_counter* counters, int n) {
    kb_param *value = kbi_params_reserve(r, &r->counters, n), *unit = kbi_params_reserve(r, &r->counter_units, n);
    for (const kbi_counter* c = counters; n-- > 0; c++) {
        if (kbi_finite(kbi_object_number(&r->counters, c->name))) continue;
        value->name = kbi_arena_text(r->owned, c->name);
        value->type = KB_AXIS_REALS;
        value->r = c->value;
        if (c->unit[0]) {
            unit->name = value->name;
            unit->type = KB_AXIS_STRINGS;
            unit->s = kbi_arena_text(r->owned, c->unit);
            unit++, r->counter_units.n++;
        }
        value++, r->counters.n++;
    }
}

// Adds a text to the environment of a record, as a number if it is one.
static void kbi_fact(kb_result* r, const char* name, const char* text) {
    char* end;
    if (!*text) return;
    kb_param* p = kbi_params_reserve(r, &r->environment, 1);
    p->name = name;
    p->r = kbi_real_of(text, &end);
    p->type = *end || !kbi_finite(p->r) || strchr(text, 'x') ? KB_AXIS_STRINGS : KB_AXIS_REALS; // 0x10 is a text
    p->s = kbi_arena_text(r->owned, text);
    r->environment.n++;
}

static void kbi_environment_read(kb_result* r, const char* root) {
    static const struct {
        const char *name, *path, *value; // value NULL: use the file's first line, or only its word in []
    } files[] = { { "aslr", "/proc/sys/kernel/randomize_va_space", NULL },
                  { "huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled", NULL },
                  { "numa_nodes", "/sys/devices/system/node/online", NULL },
                  { "numa_balancing", "/proc/sys/kernel/numa_balancing", NULL },
                  { "smt", "/sys/devices/system/cpu/smt/active", NULL },
                  { "clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource", NULL },
                  { "container", "/.dockerenv", "docker" },
                  { "container", "/run/.containerenv", "podman" } };
    char path[800], line[4096], limit[80];
    double quota, period, least = NAN;
    for (int i = 0; i < KBI_COUNT(files); i++) {
        const char* value = files[i].value;
        snprintf(path, sizeof path, "%.200s%s", root, files[i].path);
        if (value ? access(path, F_OK) != 0 : !kbi_first_line(path, line, 256)) continue;
        char* chosen = value ? NULL : strchr(line, '[');
        if (chosen) chosen[strcspn(chosen, "]")] = 0;
        kbi_fact(r, files[i].name, value ? value : chosen ? chosen + 1 : line);
    }
    snprintf(path, sizeof path, "%.200s/proc/cpuinfo", root);
    FILE* file = fopen(path, "r");
    while (file && kbi_get_line(line, (int)sizeof line, file) && line[0] != '\n') { // lines of the first processor
        char* colon = strchr(line, ':');
        if (!colon) continue;
        line[strcspn(line, "\n")] = 0;
        const char* value = colon + 1 + (colon[1] == ' ');
        if (strncmp(line, "model name", 10) == 0) r->cpu = kbi_arena_text(r->owned, value);
        if (strncmp(line, "microcode", 9) == 0) kbi_fact(r, "microcode", value);
        if (strncmp(line, "flags", 5) != 0 || !strstr(line, " hypervisor")) continue;
        snprintf(path, sizeof path, "%.200s/sys/class/dmi/id/sys_vendor", root);
        kbi_fact(r, "hypervisor", kbi_first_line(path, line, 80) && line[0] ? line : "yes");
    }
    if (file) fclose(file);
    // the number of processors that the cgroups (v2) "0::/outer/inner", "0::/outer" and "0::" allow
    snprintf(path, sizeof path, "%.200s/proc/self/cgroup", root);
    bool grouped = kbi_first_line(path, line, 400) && strncmp(line, "0::/", 4) == 0;
    for (char* slash = grouped ? line + 3 : NULL; slash;) {
        snprintf(path, sizeof path, "%.200s/sys/fs/cgroup%.400s/cpu.max", root, line + 3);
        if (kbi_first_line(path, limit, (int)sizeof limit) && sscanf(limit, "%lf %lf", &quota, &period) == 2 &&
            quota > 0 && period > 0 && !(quota / period >= least))
            least = quota / period;
        slash = strrchr(line + 3, '/');
        if (slash) *slash = 0;
    }
    if (kbi_finite(least)) kbi_fact(r, "cpu_limit", kbi_number(least, limit));
}

// Adds the machine's values to each record anew, because a case may have measured a further peak.
static void kbi_record_machine(kb_result* r, const kbi_machine* machine) {
    const kbi_roofs* roofs = kbi_is(machine->backend, "cpu") ? &machine->core : &machine->roofs;
    double* gbps[] = { &r->copy_roof_gbps, &r->read_roof_gbps, &r->write_roof_gbps };
    kbi_result_take(r, KBI_OF_MACHINE, machine);
    for (int i = KBI_ROOF_COPY; i <= KBI_ROOF_WRITE; i++)
        *gbps[i] = kbi_roof_known(roofs, i) > 0 ? kbi_roof_known(roofs, i) * 1e-9 : (double)NAN;
    if (machine->l2 > 0) r->l2_bytes = machine->l2;
    if (machine->gpu_present) {
        char capability[16];
        snprintf(capability, sizeof capability, "%d.%d", machine->sm / 10, machine->sm % 10);
        r->device = machine->device;
        r->compute_capability = kbi_arena_text(r->owned, capability);
    } else {
        const char* why = machine->why[0] ? machine->why : KBI_CUDA ? "--device cpu" : "built without CUDA";
        r->no_gpu = kbi_arena_text(r->owned, why);
    }
}

static void kbi_show_build(char* text, size_t size, const kb_build* b) {
    const char* name = isdigit((unsigned char)b->compiler[0]) ? "gcc " : ""; // gcc's text is only a number
    char instruments[120];
    kbi_show_instruments(kbi_instruments_here(), instruments, sizeof instruments);
    snprintf(text, size, "%s%.80s%s%s%s", name, b->compiler, b->optimised ? ", optimised" : ", not optimised",
             instruments, b->cuda ? ", CUDA" : "");
}

static char* kbi_triple(kbi_arena* a, const int32_t x[3]) {
    char text[64];
    snprintf(text, sizeof text, "%dx%dx%d", x[0], x[1], x[2]);
    return kbi_arena_text(a, text);
}

static void kbi_record_start(kb_result* r, const kb_result* run) {
    *r = *run;
    r->owned = KBI_GROW(NULL, struct kbi_arena, 1);
    memset(r->owned, 0, sizeof(kbi_arena));
}

static void kbi_record_case(kb_result* r, const kbi_case* c, const kbi_measured* m) {
    kbi_arena* a = r->owned;
    char build[260], both[540];
    r->name = kbi_arena_text(a, c->name);
    r->operation = kbi_arena_text(a, c->entry->operation);
    r->direction = kbi_arena_text(a, c->direction);
    r->implementation = kbi_arena_text(a, c->entry->implementation);
    r->origin = kbi_arena_text(a, c->entry->origin ? c->entry->origin : "user");
    if (c->entry->rung) r->rung = c->entry->rung;
    if (c->place) r->place = c->place;
    if (c->dtype) r->dtype = kb_dtype_name(c->dtype);
    kb_param* p = kbi_params_reserve(r, &r->params, c->n_params + 1);
    for (int i = 0; i < c->n_params; i++, p++) {
        *p = c->params[i];
        p->name = kbi_arena_text(a, p->name);
        p->s = kbi_arena_text(a, p->s);
        int64_t* key = kbi_is(p->name, "batch_size")         ? &r->batch_size
                       : kbi_is(p->name, "sequence_length")  ? &r->sequence_length
                       : kbi_is(p->name, "tensor_dimension") ? &r->tensor_dimension
                                                             : NULL;
        if (key && p->type == KB_AXIS_INTS) *key = p->i;
    }
    p->name = "dir";
    p->type = KB_AXIS_STRINGS;
    p->s = r->direction;
    r->params.n = c->n_params + (r->direction != NULL);
    kbi_show_build(build, sizeof build, kbi_build_of(c->entry));
    snprintf(both, sizeof both, "%s; kbench: %s", build, r->build ? r->build : build);
    if (!kbi_is(r->build, build)) r->build = kbi_arena_text(a, r->build ? both : build);
    kbi_record_counters(r, m->counters, m->n_counters);
    if (m->memory != KB_NONE) r->memory_mb = (double)m->memory / 1048576;
    if (m->host_memory != KB_NONE) r->host_memory_mb = (double)m->host_memory / 1048576;
    if (m->grid[0]) r->grid = kbi_triple(a, m->grid), r->block = kbi_triple(a, m->block);
    if (m->rounds) r->shared_buffers = m->stage;
    if (m->bias_fitted) kbi_fact(r, "bias", "fitted");
    if (m->n > 0) r->samples_retaken = m->retaken;
    if (m->n > 0 && m->launches > 0) r->launches_per_sample = m->launches;
}

static void kbi_record_inside(kb_result* r, const kbi_inside* found, const kbi_machine* machine) {
    size_t size = kbi_inside_size(found);
    kbi_inside* in = (kbi_inside*)memcpy(kbi_arena_alloc(r->owned, size), found, size);
    KBI_EACH_INSTRUMENT(i)
        if (i->judge && i->on) i->judge(r, in, machine);
    r->inside = in;
    kbi_record_counters(r, kbi_counters_of(in), (int)in->counters);
    if (in->message[0]) kbi_judge_say(r, "not profiled: %s", in->message);
}

KBI_SLOW_END
static uint64_t kbi_hash_words(uint64_t h, const uint64_t* words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}
KBI_SLOW_BEGIN

// Adds the bytes of a file to a hash, and closes the file; false: the file cannot be read (errno).
static bool kbi_hash_file(uint64_t* h, int file) {
    static uint64_t words[8192];
    uint64_t bytes = 0;
    ssize_t n = file < 0 ? -1 : 1;
    while (n > 0) {
        size_t have = 0;
        while (have < sizeof words && (n = kbi_read_more(file, (char*)words + have, sizeof words - have)) > 0)
            have += (size_t)n;
        memset((char*)words + have, 0, (size_t)(-have & 7));
        *h = kbi_hash_words(*h, words, (have + 7) / 8);
        bytes += have;
    }
    int error = errno;
    if (file >= 0) close(file);
    *h = kbi_hash_words(*h, &bytes, 1);
    return errno = error, n == 0;
}

static const char* kbi_binary_hash(void) {
    static char hash[24];
    static bool warned;
    const char* script = getenv("KBENCH_SCRIPT");
    uint64_t h = 14695981039346656037u;
    if (hash[0] || warned) return hash;
    char* path = realpath("/proc/self/exe", NULL);
    bool loader = path && (strstr(path, "/ld-") || strstr(path, "/ld.so"));
    free(path);
    bool program = !loader && kbi_hash_file(&h, kbi_open_file("/proc/self/exe", O_RDONLY));
    if (loader) errno = ENOEXEC;
    warned = !program || (script && *script && !kbi_hash_file(&h, kbi_open_input(script, false)));
    if (!warned)
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)h);
    else
        kbi_warn("the file of this %s cannot be read (%s): records have no hash of it",
                 program ? "script" : "program", kbi_why_not_open(errno));
    return hash;
}

// Returns the Git commit that is checked out in this folder or a parent folder; NULL: unknown.
static const char* kbi_git_commit(kbi_arena* a) {
    char path[512], line[256], up[64] = "";
    for (int i = 0; i < 20; i++, snprintf(up + strlen(up), sizeof up - strlen(up), "../")) {
        snprintf(path, sizeof path, "%s.git", up);
        if (kbi_first_line(path, line, (int)sizeof line)) return NULL; // .git of a worktree or submodule is a file
        snprintf(path, sizeof path, "%s.git/HEAD", up);
        if (!kbi_first_line(path, line, (int)sizeof line)) continue;
        if (strncmp(line, "ref: refs/", 10) == 0 && !strstr(line, "..")) { // reads no file outside .git
            snprintf(path, sizeof path, "%s.git/%.200s", up, line + 5);
            if (!kbi_first_line(path, line, (int)sizeof line)) return NULL; // unknown: packed refs, or no commit
        }
        size_t n = strspn(line, "0123456789abcdef");
        return !line[n] && (n == 40 || n == 64) ? kbi_arena_text(a, line) : NULL;
    }
    return NULL;
}

// Makes a record with the values that all records of the run share. kb_result_free must free it after them.
static void kbi_record_run(kb_result* r, int argc, char** argv, uint64_t seed) {
    struct utsname u;
    char text[260] = "";
    kbi_text command = KBI_BLANK;
    time_t now = time(NULL);
    const struct tm* t = gmtime(&now);
    memset(&u, 0, sizeof u);
    uname(&u);
    kbi_result_clear(r);
    r->kbench_version = KBENCH_VERSION;
    r->schema = KBI_SCHEMA;
    r->seed = (int64_t)seed;
    r->host = kbi_arena_text(r->owned, u.nodename);
    r->kernel_version = kbi_arena_text(r->owned, u.release);
    r->git_commit = kbi_git_commit(r->owned);
    kbi_environment_read(r, "");
    if (t) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", t);
    r->date = kbi_arena_text(r->owned, text);
    uint64_t id = kbi_hash(14695981039346656037u ^ (uint64_t)kbi_now() ^ ((uint64_t)getpid() << 32), u.nodename);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)kbi_hash(id, r->date));
    r->run_id = kbi_arena_text(r->owned, text);
    kbi_show_build(text, sizeof text, kbi_build());
    r->build = kbi_arena_text(r->owned, text);
    const char* binary = kbi_binary_hash();
    if (*binary) r->binary = kbi_arena_text(r->owned, binary);
    for (int i = 0; i < argc; i++) {
        kbi_puts(&command, i ? " " : "");
        kbi_put_quoted(&command, argv[i]);
    }
    r->command = kbi_arena_text(r->owned, command.s);
    kbi_text_free(&command);
}

/*-----------------------------------------------------------------
  >>store     record: the output files of records: a JSON array, and JSON lines.
-----------------------------------------------------------------*/

typedef struct kbi_store {
    const char *json, *jsonl; // paths
    kbi_out array;
    kbi_lines lines;
    int64_t n;
    bool json_failed, jsonl_failed, keep; // *_failed: a write failed; keep: a run without records keeps the old file
} kbi_store;

static bool kbi_store_open(kbi_store* s, const char* json, const char* jsonl) {
    memset(s, 0, sizeof *s);
    s->json = json, s->jsonl = jsonl;
    s->array.file = s->lines.file = -1;
    if (kbi_is(json, "-") && kbi_is(jsonl, "-"))
        return kbi_error("--json - and --jsonl - would mix on stdout; give one of them a file"), false;
    if ((!json || kbi_out_open(&s->array, "json", json, &kbi_array_mark, false)) &&
        (!jsonl || kbi_lines_open(&s->lines, "jsonl", jsonl)))
        return true;
    kbi_out_free(&s->array);
    kbi_out_free(&s->lines);
    return false;
}

static void kbi_store_failed(bool* failed, const char* option, const char* path) {
    if (!*failed) kbi_error("writing --%s %s failed: %s", option, path, strerror(errno));
    *failed = true;
}

// Writes records that earlier calls failed to write, then n new records; to --jsonl only if `appended` is true.
static void kbi_store_add(kbi_store* s, const kb_result* results, int64_t n, bool appended) {
    kbi_text record = KBI_BLANK;
    if (!n || (!s->json && !s->jsonl)) return;
    fflush(stdout);
    for (int64_t i = 0; i < n; i++) {
        record.n = 0;
        kbi_json_result(&record, &results[i]);
        if (s->json) kbi_putf(&s->array.waiting, "%s%s", s->n++ ? ",\n" : "[\n", record.s);
        if (s->jsonl && appended) kbi_putf(&s->lines.waiting, "%s\n", record.s);
    }
    kbi_text_free(&record);
    if (s->array.file >= 0 && !kbi_flush(s->array.file, &s->array.waiting, 1000))
        kbi_store_failed(&s->json_failed, "json", s->json);
    if (s->jsonl && !kbi_lines_flush(&s->lines, 1000)) kbi_store_failed(&s->jsonl_failed, "jsonl", s->jsonl);
}

// Completes the --json and --jsonl files; the new --json file replaces the old one.
static bool kbi_store_close(kbi_store* s) {
    bool unchanged = s->keep && !s->n && s->array.file < 0 && s->array.old.st_nlink;
    bool lines = !s->jsonl || kbi_lines_end(&s->lines, 5000), array = !s->json || unchanged;
    if (lines && s->jsonl_failed) kbi_warn("--jsonl %s: a later attempt wrote all of it", s->jsonl);
    if (!lines && errno)
        kbi_error("--jsonl %s: %zu bytes could not be written: %s", s->jsonl, s->lines.waiting.n, strerror(errno));
    if (!array) {
        kbi_puts(&s->array.waiting, s->n ? "\n]\n" : "[]\n");
        array = kbi_out_end(&s->array, 5000);
        if (!array && errno) kbi_error("writing --json %s failed: %s", s->json, strerror(errno));
    }
    kbi_out_free(&s->array);
    kbi_out_free(&s->lines);
    return lines && array;
}

bool kb_write_json(const kb_result* results, int64_t n, const char* path) {
    kbi_store store;
    kbi_set names = KBI_BLANK;
    const char* repeated = NULL;
    for (int64_t i = 0; i < n; i++) {
        const char* name = results[i].name ? results[i].name : "";
        if (!kbi_set_add(&names, kbi_hash(14695981039346656037u, name))) repeated = name;
    }
    kbi_set_free(&names);
    if (!kbi_store_open(&store, path, NULL)) return false;
    if (repeated)
        kbi_warn("kb_write_json: several results are named %s, and comparisons use the last one; set "
                 "kb_desc.implementation or kb_desc.params",
                 repeated);
    kbi_store_add(&store, results, n, true);
    return kbi_store_close(&store);
}

/*-----------------------------------------------------------------
  >>columns   render: options of the table, widths of text, and the text of a field in its column.
-----------------------------------------------------------------*/

typedef struct kbi_how {
    FILE* out;
    int width;
    bool colour, verbose, quiet, counters;
    const char *sort, *columns;
} kbi_how;

static bool kbi_terminal(FILE* f) { return isatty(fileno(f)) && !kbi_is(getenv("TERM"), "dumb"); }

static int kbi_terminal_width(FILE* f) {
    struct winsize size;
    const char* columns = getenv("COLUMNS");
    bool known = ioctl(fileno(f), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    long width = known ? KBI_MAX((int)size.ws_col, 40) : columns ? strtol(columns, NULL, 10) : 0;
    return width >= 40 && width <= 1000 ? (int)width : 80;
}

// Returns whether to use colour. when: "always" or "never"; NULL or "auto": the environment and terminal decide.
static bool kbi_colour(FILE* f, const char* when) {
    const char *force = getenv("CLICOLOR_FORCE"), *never = getenv("NO_COLOR");
    if (!force || !*force) force = getenv("FORCE_COLOR");
    if (when && !kbi_same_name(when, "auto")) return kbi_same_name(when, "always");
    if (never && *never) return false;
    return (force && *force && !kbi_is(force, "0")) || kbi_terminal(f);
}

static void kbi_how_default(kbi_how* how, FILE* out) {
    memset(how, 0, sizeof *how);
    how->out = out;
    how->width = kbi_terminal_width(out);
    how->colour = kbi_colour(out, NULL);
}

static int kbi_character_width(unsigned code) {
    static const unsigned ranges[][2] = {
        { 0x300, 0x36f },   { 0x200b, 0x200f },   { 0x20d0, 0x20ff },   { 0xfe00, 0xfe0f },  { 0x1100, 0x115f },
        { 0x2e80, 0xa4cf }, { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },  { 0xff00, 0xff60 },
        { 0xffe0, 0xffe6 }, { 0x1f300, 0x1f64f }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd }
    };
    for (int i = 0; i < KBI_COUNT(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return i < 4 ? 0 : 2; // 0 to 3: combining marks
    return 1;
}

// Returns the bytes of the longest prefix of s (n bytes) that is at most `columns` wide; used: the prefix's width.
static size_t kbi_fitting(const char* s, size_t n, int columns, int* used) {
    size_t length = 0;
    *used = 0;
    while (length < n) {
        unsigned code;
        int bytes = kbi_utf8(s + length, &code), width = kbi_character_width(code);
        if (*used + width > columns) break;
        *used += width;
        length += (size_t)KBI_MAX(bytes, 1);
    }
    return length;
}

static int kbi_width(const char* s, size_t n) {
    int used;
    kbi_fitting(s, n, 1 << 30, &used);
    return used;
}

// Appends a text. "..." replaces the middle of a text that is too wide, because names differ at both ends.
static void kbi_cut(kbi_text* t, const char* s, int columns) {
    size_t n = strlen(s);
    int used, width = kbi_width(s, n);
    bool whole = columns < 5 || width <= columns;
    kbi_put(t, s, kbi_fitting(s, n, whole ? columns : (columns - 2) / 2, &used));
    int more = width - (columns - 3 - used); // columns to skip before the end of the text
    size_t tail = kbi_fitting(s, n, more, &used);
    if (used < more) tail += kbi_fitting(s + tail, n - tail, 2, &used); // a wide character
    if (!whole) kbi_putf(t, "...%s", s + tail);
}

typedef struct kbi_cell {
    kbi_shown what;
    const char* title;
    double scale; // factor from the key's unit to the unit in the title
    int width;
} kbi_cell;

// Chooses the largest unit in which all values are at least 1. If the largest value is then 1e5 or more, it
// chooses the largest unit in which all values are at least 0.01.
static void kbi_cell_unit(kbi_cell* cell, const kb_result* const* rows, int n) {
    double most = 0, least = INFINITY, smaller = 0; // smaller: scale of the smaller unit; 0: not chosen yet
    for (int i = 0; i < n; i++) {
        double x = kbi_shown_number(rows[i], &cell->what);
        if (!kbi_finite(x) || x <= 0) continue;
        most = KBI_MAX(most, x);
        least = KBI_MIN(least, x);
    }
    for (int unit = 0; unit < KBI_COUNT(kbi_units); unit++)
        for (int i = 0; i < KBI_UNITS_EACH && kbi_units[unit].titles[i]; i++) {
            double scale = kbi_units[unit].scales[i], rounded = scale * (1 + 5e-5);
            if (kbi_units[unit].column != cell->what.column) continue;
            if (smaller > 0 && (most * rounded < 1 || least * rounded < (most * smaller < 1e5 ? 1 : 0.01))) continue;
            cell->title = kbi_units[unit].titles[i];
            cell->scale = smaller = scale;
        }
}

static bool kbi_cell_reads(const kbi_cell* cell, const kb_result* const* rows, int n) {
    for (int i = 0; i < n; i++) {
        double x = kbi_shown_number(rows[i], &cell->what) * cell->scale;
        if (kbi_finite(x) && x > 0 && (x < 0.01 || x >= 1e5)) return false;
    }
    return true;
}

static const char* kbi_show_count(double x, char out[40]) {
    bool whole = fabs(x) < 1e15 && x == floor(x);
    return whole ? kbi_number(x, out) : kbi_digits(x, 4, out);
}

static void kbi_cell_text(kbi_text* s, const kbi_cell* cell, const kb_result* r) {
    char out[40], high[40];
    int column = cell->what.column;
    const kbi_key* key = cell->what.key;
    const char* text = kbi_field_words(r, key);
    const char* sign = r->verdict == KB_EQUIVALENT ? "=" : r->verdict == KB_UNRESOLVED ? "~" : "";
    double x = kbi_shown_number(r, &cell->what);
    if (text)
        kbi_clean(s, text);
    else if (!kbi_finite(x) || (column == KBI_COLUMN_MEMORY && x <= 0))
        kbi_puts(s, column == KBI_COLUMN_BAR ? "" : "-");
    else if (column == KBI_COLUMN_SPREAD || column == KBI_COLUMN_ROOF)
        kbi_puts(s, kbi_show_percent(column == KBI_COLUMN_ROOF ? x / 100 : x, out));
    else if (column == KBI_COLUMN_BAR)
        for (int i = 0; i < cell->width; i++) kbi_puts(s, (i + 0.5) / cell->width <= x / 100 ? "#" : ".");
    else if (column == KBI_COLUMN_INTERVAL)
        kbi_putf(s, "[%s, %s]", kbi_digits(x, 3, out), kbi_show(r->speedup_high, 3, high));
    else if (column == KBI_COLUMN_SPEEDUP)
        kbi_putf(s, "%s%s", kbi_digits(x, 3, out), sign);
    else if (cell->what.counter[0])
        kbi_puts(s, kbi_show_count(x, out));
    else if (key->kind == KBI_KIND_whole && column != KBI_COLUMN_MEMORY)
        kbi_putf(s, "%lld", (long long)*(const kbi_field_whole*)kbi_field(r, key));
    else { // shows fewer digits if a number below 1 is too wide
        int digits = column == KBI_COLUMN_MEMORY ? 3 : 4;
        while (strlen(kbi_digits(x * cell->scale, digits, out)) > (size_t)cell->width && digits > 1) digits--;
        kbi_puts(s, out);
    }
}

/*-----------------------------------------------------------------
  >>table     render: the terminal table: columns, rows, and the notes below it.
-----------------------------------------------------------------*/

#define KBI_WINNER_BIT 0x80000000u // in addition to bits of kbi_columns: rows have room for " fastest?"
enum {
    KBI_LABEL = 21, // width of the first column for short labels
    KBI_LABEL_MOST = 46,
    KBI_LABEL_MIN = 8,
    KBI_LABEL_SPARE = 3,  // extra width for longer labels in later rows
    KBI_WIDE = 100,
    KBI_WINNER_WIDTH = 9, // " fastest?"
    KBI_MARKS_WIDTH = 4   // " UV+": mark of a flag; "+": more flags
};

// Below the table, each sign that occurs is explained; with --quiet, only KBI_SIGN_EQUAL and the signs after it.
enum { KBI_SIGN_COLD = 2, KBI_SIGN_ENERGY, KBI_SIGN_EQUAL, KBI_SIGN_OPEN, KBI_SIGN_APART, KBI_SIGNS };
static const char* const kbi_signs[] = {
    "+-: 95 % interval of the median in one process, with bias; other processes may differ by more",
    "+-: 95 % interval over several processes",
    "cold: written data (at most the size of L2) may reach memory after the measured time",
    "J: energy of one launch, from back-to-back launches over 2 s (data may stay in L2), with idle power",
    "=: within 1 % of the baseline.",
    "~, fastest?: not significant at 95 %.",
    kbi_apart_note,
};

typedef struct kbi_layout {
    kbi_cell cells[KBI_SHOWN];
    int n_cells, label;
    unsigned wanted;
} kbi_layout;

typedef struct kbi_wins {
    char operation[96], winner[64];
    int groups;
} kbi_wins;

typedef struct kbi_table {
    kbi_how how;
    kbi_shown chosen[KBI_SHOWN], order[KBI_SHOWN];
    int n_chosen, n_order;
    bool bare;
    bool alone;       // the heading is shared by operations with one case each
    uint64_t heading;
    uint64_t machine; // hash of the latest line about a machine; 0: none
    kbi_layout layout;
    bool signs[KBI_SIGNS];
    int64_t cases[3];
    int64_t flagged[KB_FLAG_COUNT];
    bool gpu;
    kbi_wins* wins;
    int n_wins;
    kbi_text text;
    kbi_arena scratch;
} kbi_table;

static void kbi_table_open(kbi_table* t, const kbi_how* how) {
    memset(t, 0, sizeof *t);
    t->how = *how;
    if (how->columns) t->n_chosen = kbi_shown_parse("columns", how->columns, t->chosen);
    if (how->sort) t->n_order = kbi_shown_parse("sort", how->sort, t->order);
}

static void kbi_table_flush(kbi_table* t) {
    fwrite(t->text.n ? t->text.s : "", 1, t->text.n, t->how.out);
    fflush(t->how.out);
    kbi_text_free(&t->text);
    kbi_arena_free(&t->scratch);
}

// Texts of kbi_table_keep, _text and _clean are valid until the table is flushed. kbi_table_keep frees `text`.
static const char* kbi_table_keep(kbi_table* t, kbi_text* text) {
    const char* copy = kbi_arena_text_n(&t->scratch, text->n ? text->s : "", text->n);
    kbi_text_free(text);
    return copy;
}

KBI_PRINTF(2, 3) static const char* kbi_table_text(kbi_table* t, const char* format, ...) {
    kbi_text text = KBI_BLANK;
    va_list list;
    va_start(list, format);
    kbi_vputf(&text, format, list);
    va_end(list);
    return kbi_table_keep(t, &text);
}

static const char* kbi_table_clean(kbi_table* t, const char* s) {
    kbi_text text = KBI_BLANK;
    kbi_clean(&text, s ? s : "");
    return kbi_table_keep(t, &text);
}

static void kbi_table_colour(kbi_table* t, const char* code) {
    if (t->how.colour) kbi_puts(&t->text, code);
}

// Writes a text, padded to a width on its left or, if width < 0, on its right.
static int kbi_table_pad(kbi_table* t, int width, const char* s) {
    int n = kbi_width(s, strlen(s)), room = KBI_MAX((width < 0 ? -width : width) - n, 0);
    kbi_putf(&t->text, "%*s%s%*s", width < 0 ? 0 : room, "", s, width < 0 ? room : 0, "");
    return n + room;
}

static void kbi_table_line_end(kbi_table* t) {
    while (t->text.n && t->text.s[t->text.n - 1] == ' ') t->text.s[--t->text.n] = 0;
    kbi_puts(&t->text, "\n");
}

// Wraps a text. The current line has `used` columns, and further lines are indented. Each line is escaped on its
// own, because "::" at the start of a line is a command in CI logs.
static void kbi_table_hang(kbi_table* t, int used, int indent, const char* text) {
    for (const char* s = kbi_table_clean(t, text); *s;) {
        size_t n = strcspn(s, " ");
        if (strncmp(s + n, " %", 2) == 0) n += 1 + strcspn(s + n + 1, " "); // "10 %" stays on one line
        int width = kbi_width(s, n), gap = used > indent;
        if (gap && used + gap + width > t->how.width) kbi_puts(&t->text, "\n"), used = gap = 0;
        int blanks = used ? gap : indent, taken;
        size_t fits = kbi_fitting(s, n, KBI_MAX(t->how.width - used - blanks, 1), &taken);
        kbi_putf(&t->text, "%*s", blanks, "");
        kbi_clean(&t->text, kbi_arena_text_n(&t->scratch, s, fits));
        used += blanks + taken;
        s += fits;
        s += strspn(s, " ");
    }
    if (used) kbi_puts(&t->text, "\n");
}

static void kbi_table_wrap(kbi_table* t, int indent, const char* text) { kbi_table_hang(t, 0, indent, text); }

static void kbi_table_count(kbi_text* s, double x, const char* unit) {
    char out[40];
    bool time = kbi_is(unit, "ns"), bytes = kbi_is(unit, "B") || kbi_is(unit, "byte");
    kbi_puts(s, time ? kbi_show_time(x * 1e-6, out) : bytes ? kbi_show_bytes(x, out) : kbi_show_count(x, out));
    if (unit && *unit && !time && !bytes) kbi_puts(s, " "), kbi_clean(s, unit);
}

static void kbi_table_counters(kbi_table* t, const kb_result* r) {
    kbi_text line = KBI_BLANK;
    for (int64_t i = 0; i < r->counters.n; i++) {
        const char* name = r->counters.of[i].name;
        double x = kbi_object_number(&r->counters, name);
        if (!kbi_finite(x) || !(fabs(x) > 0) || !*name) continue;
        kbi_putf(&line, "%s%s ", line.n ? ", " : "", name);
        kbi_table_count(&line, x, kbi_object_text(&r->counter_units, name));
    }
    if (line.n) kbi_table_wrap(t, 4, line.s);
    kbi_text_free(&line);
}

static bool kbi_same_operation(const kb_result* a, const kb_result* b) {
    return kbi_is(a->operation, b->operation) && kbi_same_text(a->direction, b->direction);
}

static bool kbi_same_group(const kb_result* a, const kb_result* b) {
    return a->planned != KB_NONE && b->planned != KB_NONE && kbi_is(a->run_id, b->run_id) && a->device == b->device &&
           kbi_same_operation(a, b) && kbi_same_params(&a->params, &b->params);
}

// Returns whether the operation has no own heading: the plan has only one case of it, or is unknown.
static bool kbi_table_single(const kb_result* r) { return r->planned == KB_NONE || r->planned == 1; }

static const char* kbi_table_value(kbi_table* t, const kbi_cell* cell, const kb_result* r) {
    kbi_text text = KBI_BLANK;
    kbi_cell_text(&text, cell, r);
    return kbi_table_keep(t, &text);
}

static const char* kbi_table_operation(kbi_table* t, const kb_result* r) {
    const char *operation = r->operation ? r->operation : "", *direction = r->direction ? r->direction : "";
    return kbi_table_text(t, "%s%s%s", operation, *direction ? " " : "", direction);
}

static const char* kbi_table_shape(kbi_table* t, const kb_result* r) {
    kbi_text shape = KBI_BLANK;
    for (int64_t i = 0; i < r->params.n; i++) {
        const kb_param* p = &r->params.of[i];
        if (kbi_is(p->name, "dtype") || (kbi_is(p->name, "dir") && p->type == KB_AXIS_STRINGS)) continue;
        kbi_putf(&shape, "%s%s=", shape.n ? " " : "", p->name), kbi_param_text(&shape, p);
    }
    return kbi_table_keep(t, &shape);
}

// Returns the label of a row: the implementation, and those properties of the case that the heading does not show.
static const char* kbi_table_label(kbi_table* t, const kb_result* r, bool compared) {
    const char* shape = compared ? "" : kbi_table_shape(t, r);
    bool named = compared || !kbi_is(r->implementation, "default") || (!t->alone && !*shape);
    const char* parts[] = { t->alone ? r->operation : NULL, t->alone ? r->direction : NULL,
                            named ? r->implementation : NULL, compared ? NULL : r->dtype, shape };
    kbi_text label = KBI_BLANK;
    for (int i = 0; i < KBI_COUNT(parts); i++)
        if (parts[i] && *parts[i]) kbi_puts(&label, label.n ? " " : ""), kbi_puts(&label, parts[i]);
    return kbi_table_clean(t, kbi_table_keep(t, &label));
}

static void kbi_layout_add(kbi_table* t, kbi_layout* l, kbi_shown what, const kb_result* const* rows, int n) {
    kbi_cell* cell = &l->cells[l->n_cells++];
    const kbi_cell* old = NULL;
    for (int i = 0; i < t->layout.n_cells && what.column >= 0; i++)
        if (t->layout.cells[i].what.column == what.column) old = &t->layout.cells[i];
    cell->what = what;
    cell->scale = 1;
    cell->title = what.counter[0] ? cell->what.counter : what.key->name;
    cell->width = 8;
    if (what.column >= 0) cell->title = kbi_columns[what.column].title, cell->width = kbi_columns[what.column].width;
    if (old && kbi_cell_reads(old, rows, n))
        cell->title = old->title, cell->scale = old->scale;
    else
        kbi_cell_unit(cell, rows, n);
    for (int i = -1; i < n && what.column < 0; i++) {
        const char* s = i < 0 ? kbi_table_clean(t, cell->title) : kbi_table_value(t, cell, rows[i]);
        cell->width = KBI_MAX(cell->width, kbi_width(s, strlen(s)));
    }
}

// Chooses the columns for which these rows, or earlier rows below the same heading, have values. If the line is
// too narrow, drops columns in the order of kbi_columns[].drop.
static void kbi_table_layout(kbi_table* t, kbi_layout* l, const kb_result* const* rows, int n, bool compared) {
    unsigned wanted = 1u << KBI_COLUMN_TIME | 1u << KBI_COLUMN_SPREAD | (compared ? KBI_WINNER_BIT : 0);
    int longest = 0, used = KBI_MARKS_WIDTH, columns = KBI_COUNT(kbi_columns);
    bool memory = rows[0]->roof && kbi_roof_is_memory(rows[0]->roof);
    memset(l, 0, sizeof *l);
    for (int i = 0; i < n; i++) {
        const char* s = kbi_table_label(t, rows[i], compared);
        longest = KBI_MAX(longest, kbi_width(s, strlen(s)) + !t->alone);
        for (int c = 0; c < columns; c++) {
            double x = kbi_field_number(rows[i], kbi_key_named(kbi_columns[c].key));
            if (!kbi_finite(x) || (kbi_columns[c].wide && t->how.width < KBI_WIDE)) continue;
            if (x > 0 || c != KBI_COLUMN_MEMORY) wanted |= 1u << c;
        }
    }
    if (wanted >> KBI_COLUMN_FLOP_J & 1) // bytes per joule if memory is the limit, otherwise operations per joule
        wanted &= ~(1u << (memory ? KBI_COLUMN_FLOP_J : KBI_COLUMN_BYTE_J));
    wanted = l->wanted = wanted | t->layout.wanted;
    int need = KBI_MIN((int)KBI_LABEL, t->how.width / 4 - 1);
    need = KBI_MAX(KBI_MIN(longest, need), (int)KBI_LABEL_MIN);
    if (wanted & KBI_WINNER_BIT) used += KBI_WINNER_WIDTH;
    for (int i = 0; i < t->n_chosen; i++)
        kbi_layout_add(t, l, t->chosen[i], rows, n), used += l->cells[i].width + 1, wanted = 0;
    for (int i = 0; i < columns; i++) used += wanted >> i & 1 ? kbi_columns[i].width + 1 : 0;
    for (int drop = 1; drop < columns; drop++)
        for (int i = 0; i < columns && used + need > t->how.width; i++)
            if (kbi_columns[i].drop == drop && wanted >> i & 1)
                wanted &= ~(1u << i), used -= kbi_columns[i].width + 1;
    for (int i = 0; i < columns; i++)
        if (wanted >> i & 1) kbi_layout_add(t, l, kbi_shown_column(i), rows, n);
    l->label = KBI_MAX(KBI_MAX(longest + KBI_LABEL_SPARE, t->layout.label), (int)KBI_LABEL);
    l->label = KBI_MIN(l->label, KBI_MIN(t->how.width - used, (int)KBI_LABEL_MOST));
    l->label = KBI_MAX(l->label, (int)KBI_LABEL_MIN);
}

static void kbi_table_heading(kbi_table* t, const kb_result* const* rows, int n, bool compared) {
    const kb_result* r = rows[0];
    const char* title = kbi_table_operation(t, r);
    kbi_layout l;
    bool alone = kbi_table_single(r), timed = false;
    uint64_t heading = alone ? 1 : kbi_hash(0, title);
    if (t->heading != heading) memset(&t->layout, 0, sizeof t->layout);
    t->heading = heading;
    t->alone = alone;
    for (int i = 0; i < n; i++) timed |= rows[i]->status == KB_OK;
    if (t->layout.n_cells && !timed) return;
    kbi_table_layout(t, &l, rows, n, compared);
    bool changed = l.n_cells != t->layout.n_cells; // true for the first heading: the old layout has 0 columns
    for (int i = 0; i < l.n_cells && !changed; i++) {
        const kbi_cell *cell = &l.cells[i], *old = &t->layout.cells[i];
        changed = cell->what.column != old->what.column || cell->width > old->width || cell->scale < old->scale ||
                  cell->scale > old->scale;
    }
    if (!changed) return;
    if (t->layout.n_cells) t->layout.n_cells = 0, kbi_table_layout(t, &l, rows, n, compared); // new units
    t->layout = l;
    kbi_puts(&t->text, "\n");
    kbi_table_colour(t, "\033[1m");
    title = alone ? "" : kbi_table_clean(t, title);
    if (kbi_width(title, strlen(title)) > l.label) kbi_table_wrap(t, 0, title), title = "";
    kbi_table_pad(t, -l.label, title);
    kbi_table_colour(t, "\033[0m");
    for (const kbi_cell* cell = l.cells; cell < l.cells + l.n_cells; cell++) {
        kbi_puts(&t->text, " ");
        kbi_table_pad(t, cell->what.column == KBI_COLUMN_BAR ? -cell->width : cell->width,
                      kbi_table_clean(t, cell->title));
    }
    kbi_table_line_end(t);
}

// won: 1 if the time is shortest, 2 if this is significant.
static void kbi_table_numbers(kbi_table* t, const kb_result* r, int won) {
    int used = t->layout.label;
    bool memory = r->roof && kbi_roof_is_memory(r->roof), gpu = kbi_is(r->backend, "cuda");
    kbi_text marks = KBI_BLANK;
    for (int i = 0; i < t->layout.n_cells; i++) {
        const kbi_cell* cell = &t->layout.cells[i];
        int column = cell->what.column;
        const char* s = kbi_table_value(t, cell, r);
        if (column == KBI_COLUMN_SPEEDUP && !strpbrk(s, "=~")) s = kbi_table_text(t, "%s ", s);
        kbi_puts(&t->text, " ");
        used += 1 + kbi_table_pad(t, cell->width, s);
        t->signs[r->processes > 1] |= column == KBI_COLUMN_SPREAD && kbi_finite(r->precision);
        t->signs[KBI_SIGN_COLD] |= column == KBI_COLUMN_ROOF && memory && kbi_is(r->cache, "cold") && gpu;
        t->signs[KBI_SIGN_ENERGY] |= column == KBI_COLUMN_ENERGY && kbi_finite(r->energy_mj);
        t->signs[KBI_SIGN_EQUAL] |= column == KBI_COLUMN_SPEEDUP && r->verdict == KB_EQUIVALENT;
        t->signs[KBI_SIGN_OPEN] |= won == 1 || (column == KBI_COLUMN_SPEEDUP && r->verdict == KB_UNRESOLVED);
    }
    t->signs[KBI_SIGN_APART] |= r->message && strstr(r->message, kbi_apart_note);
    if (won) {
        kbi_table_colour(t, "\033[0;1;32m");
        used += kbi_table_pad(t, 0, won > 1 ? " fastest" : " fastest?");
        kbi_table_colour(t, "\033[0m");
    }
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        if (!(r->flags >> f & 1) || !*kbi_flags[f].mark) continue;
        t->flagged[f]++;
        kbi_putf(&marks, " %s", kbi_flags[f].mark);
    }
    int room = KBI_MAX(t->how.width - used, (int)KBI_MARKS_WIDTH);
    bool fits = marks.n <= (size_t)room; // "+" replaces the marks of flags that do not fit
    kbi_putf(&t->text, "%.*s%s", fits ? room : (room - 1) / 3 * 3, marks.n ? marks.s : "", fits ? "" : "+");
    kbi_text_free(&marks);
    kbi_table_line_end(t);
    bool details = t->how.verbose || t->how.counters, wall = kbi_is(r->timer, "wall");
    bool numbers = (r->flags >> KB_FLAG_OUTLIERS & 1) || (wall && (r->flags >> KB_FLAG_FLOOR & 1)); // in the message
    if ((details || numbers) && r->message) kbi_table_wrap(t, 4, r->message);
    if (details) kbi_table_counters(t, r);
    KBI_EACH_OUTPUT(o)
        if (o->below && o->on) o->below(&t->text, r, t->how.width);
}

static void kbi_table_reason(kbi_table* t, const kb_result* r) {
    const char* status = r->status == KB_SKIPPED ? "skipped" : "FAILED";
    for (int f = KB_FLAG_COUNT - 1; f >= 0 && r->status == KB_FAILED; f--) {
        if (!(r->flags >> f & 1) || !kb_flag_is_error((kb_flag)f)) continue;
        status = kb_flag_name((kb_flag)f);
        t->flagged[f]++;
    }
    kbi_puts(&t->text, " ");
    kbi_table_colour(t, r->status == KB_SKIPPED ? "" : "\033[31m");
    kbi_puts(&t->text, status);
    kbi_table_colour(t, "\033[0m");
    // the line about the machine already says why there is no GPU
    const char* why = kbi_table_clean(t, kbi_is(r->message, r->no_gpu) ? NULL : r->message);
    bool fits = *why && t->layout.label + 3 + (int)strlen(status) + kbi_width(why, strlen(why)) <= t->how.width;
    kbi_putf(&t->text, fits ? ": %s\n" : "\n", why);
    if (!fits) kbi_table_wrap(t, 4, why);
}

static const kbi_table* kbi_table_sorted;

// Rows that have no value come last, also in descending order.
static int kbi_table_compare(const void* left, const void* right) {
    const kb_result *a = *(const kb_result*const*)left, *b = *(const kb_result*const*)right;
    for (int i = 0; i < kbi_table_sorted->n_order; i++) {
        const kbi_shown* by = &kbi_table_sorted->order[i];
        const char *text_a = kbi_field_words(a, by->key), *text_b = kbi_field_words(b, by->key);
        double x = kbi_shown_number(a, by), y = kbi_shown_number(b, by);
        bool has_a = text_a || kbi_finite(x), has_b = text_b || kbi_finite(y);
        int order = !has_a || !has_b ? 0 : text_a && text_b ? strcmp(text_a, text_b) : (x > y) - (x < y);
        if (has_a != has_b) return has_a ? -1 : 1;
        if (order) return by->down ? -order : order;
    }
    return (a > b) - (a < b); // a stable sort: both pointers are into one array
}

// Returns whether two cases share a heading and are sorted together. A resumed run counts as the original run.
static bool kbi_table_together(const kb_result* a, const kb_result* b) {
    bool single = kbi_table_single(a);
    bool one_run = kbi_is(a->run_id, b->run_id) || (kbi_is(a->binary, b->binary) && a->seed == b->seed);
    return one_run && a->device == b->device && single == kbi_table_single(b) && (single || kbi_same_operation(a, b));
}

// Prints the line about the machine if it differs from the last one in more than the copy bandwidth.
static void kbi_table_machine(kbi_table* t, const kb_result* r) {
    char copy[40];
    kbi_text line = KBI_BLANK;
    kbi_putf(&line, "kbench %s ", r->kbench_version ? r->kbench_version : "");
    if (r->gpu) {
        kbi_putf(&line, "%s sm_", r->gpu + (strncmp(r->gpu, "NVIDIA ", 7) ? 0 : 7));
        for (const char* s = r->compute_capability; s && *s; s++) kbi_put(&line, s, *s != '.');
        kbi_putf(&line, " driver %s CUDA %s ", r->driver ? r->driver : "-", r->cuda ? r->cuda : "-");
        if (r->tool) kbi_putf(&line, "under %s: not timed", r->tool);
    } else {
        kbi_putf(&line, "CPU times (%s) %s", r->no_gpu ? r->no_gpu : "no GPU", r->cpu ? r->cpu : "processor unknown");
    }
    uint64_t machine = kbi_hash((uint64_t)r->device, line.s) | 1;
    if (r->gpu && !r->tool) kbi_putf(&line, "copy %s GB/s", kbi_show(r->copy_roof_gbps, 4, copy));
    if (!t->bare && machine != t->machine) {
        if (t->machine) kbi_puts(&t->text, "\n");
        t->machine = machine;
        t->heading = 0;
        kbi_table_wrap(t, 0, line.s);
    }
    kbi_text_free(&line);
}

static void kbi_table_won(kbi_table* t, const kb_result* r, const char* winner) {
    kbi_wins w;
    w.groups = 0;
    snprintf(w.operation, sizeof w.operation, "%s", kbi_table_operation(t, r));
    snprintf(w.winner, sizeof w.winner, "%s", winner);
    int i = 0;
    while (i < t->n_wins && (!kbi_is(t->wins[i].operation, w.operation) || !kbi_is(t->wins[i].winner, w.winner))) i++;
    if (i == t->n_wins) {
        t->wins = (kbi_wins*)kbi_grow(t->wins, sizeof w * (size_t)++t->n_wins);
        t->wins[i] = w;
    }
    t->wins[i].groups++;
}

static void kbi_table_block(kbi_table* t, const kb_result* const* rows, int n, bool compared) {
    const kb_result* best = NULL;
    int timed = 0;
    kbi_table_machine(t, rows[0]);
    kbi_table_heading(t, rows, n, compared);
    if (compared) {
        const char *dtype = rows[0]->dtype ? rows[0]->dtype : "", *shape = kbi_table_shape(t, rows[0]);
        kbi_table_wrap(t, 1, kbi_table_text(t, "%s%s%s", dtype, *dtype && *shape ? " " : "", shape));
    }
    for (int i = 0; i < n && compared; i++) {
        if (rows[i]->status != KB_OK) continue;
        timed++;
        if (kbi_is(rows[i]->winner, rows[i]->implementation) && (!best || rows[i]->time_ms < best->time_ms))
            best = rows[i];
    }
    if (timed > 1 && best) kbi_table_won(t, best, best->winner_certain == 1 ? best->implementation : "");
    for (int i = 0; i < n; i++) {
        const kb_result* r = rows[i];
        int won = r != best ? 0 : r->winner_certain == 1 ? 2 : 1, indent = !t->alone;
        const char* label = kbi_table_label(t, r, compared);
        if (won) kbi_table_colour(t, "\033[1m");
        if (kbi_width(label, strlen(label)) + indent > t->layout.label)
            kbi_table_wrap(t, indent, label), label = "";
        kbi_puts(&t->text, indent ? " " : "");
        kbi_table_pad(t, indent - t->layout.label, label);
        if (r->status == KB_OK)
            kbi_table_numbers(t, r, won);
        else
            kbi_table_reason(t, r);
        t->cases[r->status]++;
        t->gpu |= r->gpu != NULL;
    }
}

static void kbi_table_add(kbi_table* t, const kb_result* records, int64_t n) {
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && kbi_same_group(&records[first], &records[end]);) end++;
        bool compared = end - first > 1;
        while (t->n_order && !compared && end < n && kbi_table_together(&records[first], &records[end]) &&
               !(end + 1 < n && kbi_same_group(&records[end], &records[end + 1])))
            end++;
        const kb_result** rows = KBI_ARRAY(&t->scratch, const kb_result*, end - first);
        for (int64_t i = first; i < end; i++) rows[i - first] = &records[i];
        kbi_table_sorted = t;
        qsort(rows, (size_t)(end - first), sizeof *rows, kbi_table_compare);
        kbi_table_block(t, rows, (int)(end - first), compared);
    }
    kbi_table_flush(t);
}

static void kbi_summary_flags(kbi_table* t) {
    char head[80];
    const char* gap = "\n";
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        int64_t n = t->flagged[f];
        const char* mark = kbi_flags[f].mark;
        if (!n) continue;
        kbi_puts(&t->text, gap), gap = "";
        snprintf(head, sizeof head, "%s%s%s, %lld case%s", mark, *mark ? " " : "", kb_flag_name((kb_flag)f),
                 (long long)n, n == 1 ? "" : "s");
        kbi_table_colour(t, kb_flag_is_error((kb_flag)f) ? "\033[31m" : "\033[1m");
        kbi_puts(&t->text, head);
        kbi_table_colour(t, "\033[0m");
        kbi_puts(&t->text, t->how.quiet ? "\n" : ":");
        if (t->how.quiet) continue;
        kbi_table_hang(t, (int)strlen(head) + 1, 3, kbi_table_text(t, "%s; %s", kbi_flags[f].what, kbi_flags[f].why));
        kbi_table_wrap(t, 3, kbi_table_text(t, "-> %s", kbi_flag_advice((kb_flag)f, t->gpu)));
    }
}

static void kbi_table_end(kbi_table* t) {
    int64_t ok = t->cases[KB_OK], failed = t->cases[KB_FAILED], skipped = t->cases[KB_SKIPPED];
    int64_t n = ok + failed + skipped;
    const char* gap = "\n";
    for (int i = 0; i < KBI_COUNT(kbi_signs); i++) {
        if (!t->signs[i] || (t->how.quiet && i < KBI_SIGN_EQUAL)) continue;
        kbi_puts(&t->text, gap), gap = "";
        kbi_table_wrap(t, 0, kbi_signs[i]);
    }
    for (int i = 0; i < t->n_wins && !t->how.quiet; i++) {
        const kbi_wins* w = &t->wins[i];
        int all = 0;
        for (int k = 0; k < t->n_wins; k++) all += kbi_is(t->wins[k].operation, w->operation) ? t->wins[k].groups : 0;
        const char* winner = *w->winner ? kbi_table_text(t, "%s is fastest", w->winner) : "no significant winner";
        kbi_puts(&t->text, i ? "" : "\n");
        const char* count = all > 1 ? kbi_table_text(t, " in %d of %d comparisons", w->groups, all) : "";
        kbi_table_wrap(t, 0, kbi_table_text(t, "%s: %s%s", w->operation, winner, count));
    }
    kbi_summary_flags(t);
    kbi_putf(&t->text, "\n%lld case%s: %lld ok", (long long)n, n == 1 ? "" : "s", (long long)ok);
    if (failed) kbi_putf(&t->text, ", %lld failed", (long long)failed);
    if (skipped) kbi_putf(&t->text, ", %lld skipped", (long long)skipped);
    kbi_puts(&t->text, "\n");
    kbi_table_flush(t);
    KBENCH_FREE(t->wins);
}

void kb_print(const kb_result* results, int64_t n) {
    kbi_table t;
    kbi_how how;
    kbi_how_default(&how, stdout);
    kbi_table_open(&t, &how);
    t.bare = true;
    kbi_table_add(&t, results, n);
    kbi_summary_flags(&t);
    kbi_table_flush(&t);
    KBENCH_FREE(t.wins);
}

/*-----------------------------------------------------------------
  >>csv       render: records as CSV.
-----------------------------------------------------------------*/

// Writes a text by RFC 4180. Puts "'" before a text that spreadsheets could take for a formula, even if the text
// begins with a full-width sign (byte 0xef).
static void kbi_csv_text(kbi_text* t, const char* text) {
    kbi_text clean = KBI_BLANK;
    kbi_clean(&clean, text), kbi_put(&clean, "", 0);
    const char *p = clean.s + strspn(clean.s, " "), *quote = clean.s[strcspn(clean.s, ",;\"\t")] ? "\"" : "";
    kbi_putf(t, "%s%s", quote, *p && strchr("=+-@\xef", *p) ? "'" : "");
    for (p = clean.s; *p; p++) kbi_puts(t, *p == '"' ? "\"" : ""), kbi_put(t, p, 1);
    kbi_puts(t, quote);
    kbi_text_free(&clean);
}

static void kbi_csv_flags(kbi_text* t, uint64_t flags) {
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (flags >> f & 1) kbi_putf(t, "%s%s", flags & ((1ull << f) - 1) ? " " : "", kb_flag_name((kb_flag)f));
}

static const char** kbi_object_names(const kb_result* records, int64_t n, const kbi_key* key, int* count) {
    const char** names = NULL;
    kbi_set known = KBI_BLANK;
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        const kbi_field_params* object = (const kbi_field_params*)kbi_field(&records[i], key);
        for (int64_t k = 0; k < object->n; k++) {
            if (!kbi_set_add(&known, kbi_hash(14695981039346656037u, object->of[k].name))) continue;
            names = KBI_GROW((void*)names, const char*, *count + 1);
            names[(*count)++] = object->of[k].name;
        }
    }
    kbi_set_free(&known);
    return names;
}

static void kbi_csv(kbi_text* t, const kb_result* records, int64_t n) {
    static const char* const objects[3][2] = { { "params", "params." },
                                               { "counters", "counter:" },
                                               { "environment", "environment." } };
    const char** names[3];
    int count[3];
    for (int64_t i = -1; i < n; i++) { // -1: the heading
        const kb_result* r = i < 0 ? NULL : &records[i];
        for (int k = 0; k < KBI_COUNT(kbi_keys); k++) {
            const kbi_key* key = &kbi_keys[k];
            if (key->kind == KBI_KIND_params || key->kind == KBI_KIND_samples) continue;
            const char* text = !r ? key->name : key->kind == KBI_KIND_truth ? NULL : kbi_field_words(r, key);
            kbi_puts(t, k ? "," : "");
            if (text)
                kbi_csv_text(t, text);
            else if (key->kind == KBI_KIND_flags)
                kbi_csv_flags(t, r->flags);
            else if (kbi_finite(kbi_field_number(r, key)))
                kbi_json_field(t, r, key);
        }
        for (int o = 0; o < KBI_COUNT(objects); o++) {
            const kbi_key* key = kbi_key_named(objects[o][0]);
            const kbi_field_params* values = r ? (const kbi_field_params*)kbi_field(r, key) : NULL;
            if (!r) names[o] = kbi_object_names(records, n, key, &count[o]);
            for (int k = 0; k < count[o]; k++) {
                kbi_text name = KBI_BLANK;
                const kb_param* p = r ? kbi_object_find(values, names[o][k]) : NULL;
                kbi_puts(t, ",");
                if (!r)
                    kbi_putf(&name, "%s%s", objects[o][1], names[o][k]), kbi_csv_text(t, name.s);
                else if (p && p->type == KB_AXIS_STRINGS)
                    kbi_csv_text(t, p->s ? p->s : "");
                else if (p && !(p->type == KB_AXIS_REALS && !kbi_finite(p->r)))
                    kbi_param_text(t, p);
                kbi_text_free(&name);
            }
        }
        kbi_puts(t, "\r\n");
    }
    for (int o = 0; o < KBI_COUNT(objects); o++) KBENCH_FREE((void*)names[o]);
}

/*-----------------------------------------------------------------
  >>progress  render: the progress line on stderr.
-----------------------------------------------------------------*/

typedef struct kbi_progress {
    bool on, shown;
    int process, processes;
    int64_t began, last;    // ns: start of the device's cases; last update of the progress line
    double allowed, finished, current; // time limits in s: all groups of the device; finished groups; this group
    double took, group_began;          // s: time of finished groups; time from `began` to the current group
} kbi_progress;

static void kbi_progress_begin(kbi_progress* p, double allowed) {
    p->allowed = allowed;
    p->finished = p->current = p->took = p->group_began = 0;
    p->began = kbi_now();
}

static void kbi_progress_group(kbi_progress* p, double allowed) {
    double now = (double)(kbi_now() - p->began) * 1e-9;
    if (p->current > 0) p->took += now - p->group_began;
    p->finished += p->current;
    p->current = allowed;
    p->group_began = now;
}

static double kbi_time_left(const kbi_progress* p, double now) {
    double share = p->finished > 0 ? p->took / p->finished : 1;
    return KBI_MAX((p->allowed - p->finished) * share - (now - p->group_began), 0.0);
}

static void kbi_progress_clear(kbi_progress* p) {
    if (p->shown) fputs("\r\033[K", stderr), fflush(stderr);
    p->shown = false;
}

// Rewrites the progress line: the progress and, if at least eight columns are left, the case's name.
static void kbi_progress_line(const char* progress, const char* name) {
    kbi_text clean = KBI_BLANK, line = KBI_BLANK;
    int width = kbi_terminal_width(stderr) - 1; // some terminals start a new line after the last column
    int room = width - 2 - (int)strlen(progress);
    kbi_cut(&line, progress, width);
    kbi_clean(&clean, name);
    if (room >= 8 && clean.n) kbi_puts(&line, "  "), kbi_cut(&line, clean.s, room);
    fprintf(stderr, "\r%s\033[K", line.s);
    fflush(stderr);
    kbi_text_free(&clean);
    kbi_text_free(&line);
}

static void kbi_progress_show(kbi_progress* p, int done, int all, const char* name) {
    char left[64] = "", process[48] = "", progress[160], span[40];
    int64_t now = kbi_now();
    double seconds = (double)(now - p->began) * 1e-9;
    if (!p->on || now - p->last < 50000000) return;
    p->last = now;
    kbi_show_span(floor(kbi_time_left(p, seconds) + 0.5), span);
    if (seconds > 1) snprintf(left, sizeof left, "  %s left", span);
    if (p->processes > 1) snprintf(process, sizeof process, " process %d of %d", p->process + 1, p->processes);
    snprintf(progress, sizeof progress, "[%d/%d]%s%s", done + 1, all, process, left);
    kbi_progress_line(progress, name);
    p->shown = true;
}

/*-----------------------------------------------------------------
  >>budget    program: --budget, a time limit for the run: the share of each case, and which cases are omitted.
-----------------------------------------------------------------*/

// --budget: all remaining cases get the same share of the remaining time. This share is the max_time of the next
// group. The mean time that measured cases took for set-up, check and audit is reserved for each remaining case.
typedef struct kbi_budget {
    int64_t until;             // when the budget ends, in ns; 0: no budget
    double shares, cases;      // remaining shares (kbi_budget_add) and cases, over all processes
    double overhead, measured; // seconds that measured cases took beyond their shares; number of measured cases
    bool begun;                // whether a group was measured; the first group is always measured
    int left_out;
} kbi_budget;

static void kbi_budget_add(kbi_budget* b, const kbi_options* o, int n, double processes) {
    double warm = o->warmup_time >= 0 ? 0 : 0.5;
    b->shares += processes * (n ? warm * n + n + (n > 1) : 0);
    b->cases += processes * n;
}

static double kbi_budget_share(const kbi_budget* b, const kbi_options* o, int64_t now) {
    double left = (double)(b->until - now) * 1e-9, each = b->measured > 0 ? b->overhead / b->measured : 0;
    if (o->warmup_time >= 0) each += o->warmup_time;
    double share = (left - each * b->cases) / KBI_MAX(b->shares, 1.0);
    if (o->on[KBI_OPTION_max_time]) share = KBI_MIN(share, o->max_time);
    return KBI_MAX(KBI_MAX(share, 1e-3), o->min_time);
}

static void kbi_budget_took(kbi_budget* b, const kbi_options* o, int n, double share, double seconds) {
    double overhead = seconds - kbi_group_seconds(o, share, n);
    b->begun = true;
    b->measured += n;
    b->overhead += KBI_MAX(overhead, 0.0);
}

// Returns whether the budget has no time for another group. A confidence interval needs two processes: process 1
// always runs, and process 0 leaves it as much time as process 0 used for the batch.
static bool kbi_budget_over(const kbi_budget* b, int process, int processes, int64_t batch_began, int64_t now) {
    if (!b->until || !b->begun || process == 1) return false;
    return now + (process == 0 && processes > 1 ? now - batch_began : 0) >= b->until;
}

/*-----------------------------------------------------------------
  >>worker    program: the process that runs cases for the supervisor.
-----------------------------------------------------------------*/

// Header of a message from a worker to the supervisor; the message's data follow.
typedef struct kbi_message {
    uint32_t magic;
    int32_t type, index; // kbi_message_type; index of the case in the plan
    uint32_t size;       // bytes of the data
} kbi_message;
enum { KBI_MAGIC = 0x6b626e63, KBI_MESSAGE_LIMIT = 1 << 30 };

// Size of the structure with which a message's data begin, by kbi_message_type.
static const size_t kbi_message_bytes[] = {
    0, sizeof(kbi_machine), 0, 0, sizeof(kbi_measured), sizeof(kbi_measured), sizeof(kbi_inside), 0
};
KBI_STATIC_ASSERT(KBI_COUNT(kbi_message_bytes) == KBI_DONE + 1, "a size for each message");

// Who started this process, and why: STARTED: a user or program; WORKER: a supervisor, to run cases (the role is
// then BUSY); REFERENCE: a supervisor or kbench.py, to time empty kernels by CUPTI.
typedef enum kbi_role { KBI_STARTED, KBI_WORKER, KBI_REFERENCE, KBI_BUSY } kbi_role;

// A constructor sets this, because main may change its arguments. kb_main removes KBENCH_STARTED_AS.
static struct kbi_startup {
    kbi_role role;
    pid_t process;    // differs from getpid() in a process that a benchmark forks
    int in, out;      // WORKER: socket to the supervisor, -1; REFERENCE: device, pipe to the supervisor
    off_t input;      // offset of stdin; -1 if stdin is a pipe or a terminal
    char folder[4096]; // working directory; "": unknown
    kbi_text command; // command line; each argument ends with a zero byte
} kbi_startup;

#define KBI_STARTED_AS "KBENCH_STARTED_AS"
#define KBI_WORKER_MARK (SIGRTMAX - 1) // a worker ignores this signal from exec to kb_main; valgrind uses SIGRTMAX

static void kbi_startup_read(void) {
    struct kbi_startup* start = &kbi_startup;
    const char* s = getenv(KBI_STARTED_AS);
    long process;
    int role;
    start->process = getpid();
    start->input = lseek(0, 0, SEEK_CUR);
    if (!kbi_folder_here(start->folder, sizeof start->folder)) start->folder[0] = 0;
    if (s && sscanf(s, "%ld,%d,%d,%d", &process, &role, &start->in, &start->out) == 4 && process == (long)getpid()) {
        start->role = (kbi_role)role;
        return;
    }
    int file = kbi_open_file("/proc/self/cmdline", O_RDONLY);
    if (file < 0) return;
    if (!kbi_read_file(file, &start->command, SIZE_MAX)) kbi_text_free(&start->command);
    close(file);
}

KBI_CONSTRUCTOR static void kbi_startup_begin(void) {
    const int before = errno; // C promises main an errno of 0
    kbi_startup_read();
    errno = before;
}

static char** kbi_split_command(char* text, size_t size, int* count) {
    char** words = KBI_GROW(NULL, char*, size + 1);
    *count = 0;
    for (size_t i = 0; i < size; i += strlen(text + i) + 1) words[(*count)++] = text + i;
    words[*count] = NULL;
    return words;
}

// Returns the command line of this process, even if main passed other arguments to kb_main.
static char** kbi_own_words(const kbi_options* o) {
    int count;
    char** argv = kbi_split_command(kbi_startup.command.s, kbi_startup.command.n, &count);
    return count ? argv : o->argv;
}

static bool kbi_receive_command(int* argc, char*** argv) {
    size_t size = 0;
    if (!kbi_read_all(kbi_startup.in, &size, sizeof size)) return false;
    char* text = (char*)kbi_grow(NULL, size);
    *argv = kbi_split_command(text, kbi_read_all(kbi_startup.in, text, size) ? size : 0, argc);
    return *argc > 0;
}

// Executes another program in a child process. The program's stderr (and stdout if `all`) is redirected to a file.
KBI_INLINE void kbi_exec(char** argv, const char* path, bool all, pid_t parent) {
    int nowhere = kbi_open_file("/dev/null", O_RDWR), file = kbi_open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    if (nowhere < 0 || file < 0 || dup2(nowhere, 0) < 0 || dup2(all ? file : nowhere, 1) < 0 || dup2(file, 2) < 0)
        _exit(1);
    execv(argv[0], argv);
    kbi_print_line(stderr, "%s: %s", argv[0], strerror(errno));
    _exit(2);
}

// Returns whether main has read its input from a pipe or terminal: in a worker, main would read something else. The
// first read allocates the buffer. _shortbuf: main disabled buffering.
static bool kbi_input_gone(void) {
#if defined(__GLIBC__)
    const bool buffered = stdin->_IO_buf_base != NULL && stdin->_IO_buf_base != stdin->_shortbuf;
    return buffered && kbi_startup.input < 0 && lseek(0, 0, SEEK_CUR) < 0; // now >= 0: main opened a file as stdin
#else
    return false;
#endif
}

static bool kbi_profiled(void) {
    static const char* const names[] = { "CUDA_INJECTION64_PATH", "NV_NSIGHT_INJECTION_PORT_BASE",
                                         "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "NSYS_PROFILING_SESSION_ID",
                                         "NV_SANITIZER_INJECTION_PORT_BASE" };
    for (int i = 0; i < KBI_COUNT(names); i++)
        if (getenv(names[i])) return true;
    return kbi_valgrind(); // valgrind counts as a profiler: by default, it does not follow workers
}

// Sends a message to the socket *to. KBI_RESULT also sends the arrays of the result, and frees them.
static void kbi_send(void* to, kbi_message_type type, int index, void* data) {
    kbi_text message = KBI_BLANK;
    kbi_message head = { KBI_MAGIC, (int32_t)type, index, 0 };
    size_t size = type == KBI_FOUND ? kbi_inside_size((kbi_inside*)data) : kbi_message_bytes[type];
    if (getpid() != kbi_startup.process) kbi_stray(); // a benchmark forked this process
    kbi_put(&message, (const char*)&head, sizeof head);
    if (size) kbi_put(&message, (const char*)data, size);
    if (type == KBI_RESULT) {
        kbi_measured* m = (kbi_measured*)data;
        const double* arrays[] = { m->samples, m->round_ns, m->control_ns };
        for (int k = 0; k < 3; k++)
            if (arrays[k]) kbi_put(&message, (const char*)arrays[k], sizeof(double) * (size_t)(k ? m->rounds : m->n));
        kbi_measured_free(m);
    }
    head.size = (uint32_t)(message.n - sizeof head);
    memcpy(message.s, &head, sizeof head);
    if (type >= KBI_RESULT) fflush(stdout);
    if (!kbi_write_all(*(int*)to, message.s, message.n)) _exit(1); // the supervisor has ended
    kbi_text_free(&message);
    if (type == KBI_FOUND) KBENCH_FREE(data);
}

typedef struct kbi_job { // sent to a worker, then n bytes (1: the case is wanted) and n verdicts
    int32_t first, n;
    int32_t device;
    int32_t process;
    uint32_t instruments; // bits of the instruments that profile; 0: the job measures
    int32_t has_reference;
    double max_time;
    kbi_reference reference;
    kbi_roofs roofs, core; // peaks that earlier workers measured
} kbi_job;

// If b is NULL, opens the device. Returns the backend; NULL: error.
static const kbi_backend* kbi_job_run(const kbi_options* o, const kbi_job* job, const kbi_case* cases,
                                      const char* wanted, const kbi_verdict* verdicts, const kbi_backend* b,
                                      kbi_machine* machine, const kbi_sink* sink) {
    kbi_recipe recipe;
    kbi_recipe_of(&recipe, o);
    recipe.device = job->device;
    recipe.placement = job->process;
    recipe.max_time = job->max_time;
    recipe.verdicts = verdicts;
    kbi_recipe_inside(&recipe, job->instruments);
    if (!b) {
        if (!kbi_options_pin(o)) return NULL;
        if (job->has_reference) kbi_reference_set(&job->reference);
        kbi_meter.roofs = job->roofs, kbi_meter.core = job->core, kbi_meter.roofs_known = true;
        b = kbi_backend_open(&recipe, machine);
        if (o->on[KBI_OPTION_env]) kbi_measure_all(b, machine);
        if (!job->instruments) kbi_tell(sink, KBI_HELLO, 0, machine);
    }
    bool usable = kbi_run_cases(cases, &recipe, b, machine, job->first, job->n, wanted, sink);
    const char* change = kbi_process_changed(machine->gpu_present != 0);
    if (!job->instruments) kbi_tell(sink, KBI_HELLO, 0, machine);
    kbi_tell(sink, KBI_DONE, usable && !change, (void*)change);
    return b;
}

// Runs in a child process: times empty kernels by CUPTI and sends the durations. Without CUPTI, sends nothing.
static int kbi_reference_main(void) {
#if KBI_CUDA
    kbi_machine machine;
    kbi_reference reference;
    if (kbi_gpu_open(&machine, kbi_startup.in) && kbi_measure_truth(&reference))
        kbi_write_all(kbi_startup.out, (const char*)&reference, sizeof reference);
#endif
    _exit(0);
}

static bool kbi_plan_here(kbi_plan* plan, const kbi_options* o) {
    kbi_registered all = kbi_registry();
    bool good = kbi_plan_make(plan, o, &all);
    KBENCH_FREE(all.of);
    return good;
}

static int kbi_worker_main(const kbi_options* o) {
    static const int ignored[] = { SIGINT, SIGQUIT,    // the supervisor handles these signals
                                   SIGTTIN, SIGTTOU }; // a background process would stop at the terminal
    kbi_plan plan;
    kbi_machine machine;
    kbi_job job;
    const kbi_backend* b = NULL;
    int link = kbi_high_file(kbi_startup.in);
    const kbi_sink sink = { kbi_send, &link };
    close(kbi_startup.in);
    kbi_startup.role = KBI_BUSY;
    for (int i = 0; i < KBI_COUNT(ignored); i++) signal(ignored[i], SIG_IGN);
    kbi_watch_stops(1);
    memset(&plan, 0, sizeof plan);
    if (link < 0 || (!o->on[KBI_OPTION_env] && !kbi_plan_here(&plan, o))) return KBI_EXIT_USAGE;
    while (kbi_read_all(link, &job, sizeof job)) {
        kbi_arena arena = KBI_BLANK;
        size_t n = (size_t)job.n;
        char* wanted = KBI_ARRAY(&arena, char, n);
        kbi_verdict* verdicts = KBI_ARRAY(&arena, kbi_verdict, n);
        if (!kbi_read_all(link, wanted, n) || !kbi_read_all(link, verdicts, sizeof(kbi_verdict) * n)) break;
        b = kbi_job_run(o, &job, plan.cases, wanted, verdicts, b, &machine, &sink);
        if (!b) return KBI_EXIT_USAGE;
        kbi_arena_free(&arena);
    }
    _exit(0); // exit handlers of CUDA can hang after the device was lost
}

/*-----------------------------------------------------------------
  >>outputs   program: files of the registered output formats: opened before any case runs, replaced at the end.
-----------------------------------------------------------------*/

enum { KBI_OUTPUT_FILES = 24 };
typedef struct kbi_output_file {
    kbi_out to;
    kbi_signature mark;
    void (*fill)(kbi_text* t, const kb_result* records, int64_t n);
} kbi_output_file;

typedef struct kbi_outputs {
    kbi_output_file of[KBI_OUTPUT_FILES];
    int n;
    bool keeps;
    kb_result* kept; // all records, which this structure owns
    int64_t n_kept;
} kbi_outputs;

// Real paths of the files that options write, for kbi_outputs_apart. options[i] is NULL for stdout and stderr.
static struct kbi_destinations {
    const char* options[KBI_OUTPUT_FILES + 4];
    char* paths[KBI_OUTPUT_FILES + 4];
    int n;
} kbi_destinations;

// If another option or stdout already writes the file, prints an error and returns false.
static bool kbi_destination_take(const char* option, const char* path) {
    struct kbi_destinations* all = &kbi_destinations;
    struct stat about;
    bool standard = kbi_is(path, "-");
    int same = 0;
    if (all->n == KBI_COUNT(all->paths)) return kbi_error("--%s: too many files", option);
    char* real = standard ? kbi_keep_text(path) : kbi_real_path(path);
    bool device = !standard && stat(real, &about) == 0 && S_ISCHR(about.st_mode);
    while (same < all->n && (device || !kbi_is(all->paths[same], real))) same++;
    bool apart = same == all->n;
    if (!apart)
        kbi_error("%s%s and --%s %s are one file; give each its own", all->options[same] ? "--" : "",
                  all->options[same] ? all->options[same] : "stdout or stderr", option, standard ? "(stdout)" : path);
    all->options[all->n] = option;
    all->paths[all->n++] = real;
    return apart;
}

static bool kbi_outputs_apart(const kbi_options* o) {
    struct kbi_destinations* all = &kbi_destinations;
    struct stat about;
    for (int file = 1; file <= 2; file++)
        if (fstat(file, &about) == 0 && S_ISREG(about.st_mode))
            all->paths[all->n++] = kbi_real_path(file == 1 ? "/proc/self/fd/1" : "/proc/self/fd/2");
    bool apart = !o->json || !*o->json || kbi_destination_take("json", o->json);
    if (apart && o->jsonl && *o->jsonl) apart = kbi_destination_take("jsonl", o->jsonl);
    KBI_EACH_OUTPUT(i)
        if (apart && i->on && i->value && *i->value &&
            (i->fill || (i->row.name && i->argument && strstr(i->argument, "FILE"))))
            apart = kbi_destination_take(i->option, i->value);
    KBI_EACH_OUTPUT(i)
        if (apart && i->on && i->ready) apart = i->ready(i->value);
    for (int i = 0; i < all->n; i++) KBENCH_FREE(all->paths[i]);
    memset(all, 0, sizeof *all);
    return apart;
}

static kbi_outputs* kbi_outputs_now;

static void kbi_outputs_free(kbi_outputs* all) {
    for (int i = 0; i < all->n; i++) kbi_out_free(&all->of[i].to);
    for (int64_t i = 0; i < all->n_kept; i++) kb_result_free(&all->kept[i]);
    KBENCH_FREE(all->kept);
    memset(all, 0, sizeof *all);
}

static bool kbi_outputs_add(kbi_outputs* all, const char* option,
                            void (*fill)(kbi_text* t, const kb_result* records, int64_t n), const kbi_signature* mark,
                            const char* path, bool append) {
    if (all->n == KBI_OUTPUT_FILES) return kbi_error("--%s: too many files", option);
    kbi_output_file* f = &all->of[all->n];
    f->mark = *mark;
    f->fill = fill;
    if (!kbi_out_open(&f->to, option, path, &f->mark, append)) return false;
    return all->n++, all->keeps = true;
}

static bool kbi_outputs_open(kbi_outputs* all) {
    bool good = true;
    memset(all, 0, sizeof *all);
    kbi_outputs_now = all;
    KBI_EACH_OUTPUT(i) {
        kbi_signature mark = { i->begins ? i->begins : "", i->inside ? i->inside : "", i->lines ? i->lines : 8 };
        if (!i->on || !good) continue;
        if (i->fill && i->option && !i->value) good = kbi_error("--%s needs a file: --%s=FILE", i->option, i->option);
        good = good && (!i->open || i->open(i->value));
        if (good && i->fill && i->value) good = kbi_outputs_add(all, i->option, i->fill, &mark, i->value, false);
        all->keeps |= i->end != NULL;
    }
    if (!good) kbi_outputs_free(all);
    return good;
}

static bool kbi_outputs_stdout(const kbi_options* o) {
    bool some = kbi_is(o->json, "-") || kbi_is(o->jsonl, "-");
    KBI_EACH_OUTPUT(i) some |= i->on && i->fill && kbi_is(i->value, "-");
    return some;
}

// If there are no records, existing files are not replaced.
static bool kbi_outputs_write(kbi_outputs* all, const kb_result* records, int64_t n) {
    bool good = true;
    for (int i = 0; i < all->n; i++) {
        kbi_out* to = &all->of[i].to;
        if (!n && to->file < 0 && to->old.st_nlink) continue;
        all->of[i].fill(&to->waiting, records, n);
        if (!to->waiting.n) continue;
        fflush(stdout);
        if (kbi_out_end(to, 5000)) continue;
        if (errno) kbi_error("writing --%s %s failed: %s", to->option, to->path, strerror(errno));
        good = false;
    }
    return good;
}

static void kbi_csv_add(void) {
    static kb_output csv;
    csv.option = "csv", csv.fill = kbi_csv, csv.begins = "name,operation,direction,", csv.lines = 1;
    kb_add_output(&csv);
}

static int kbi_outputs_end(const kb_result* records, int64_t n, int code) {
    KBI_EACH_OUTPUT(i)
        if (i->on && i->end) code = i->end(records, n, code);
    return code;
}

/*-----------------------------------------------------------------
  >>supervisor program: the process that owns the terminal, the files and the watchdog. It never touches the GPU.
-----------------------------------------------------------------*/

typedef struct kbi_worker {
    pid_t process;
    int link;
    int first;
    bool mixed;
    bool failed;            // a case failed, so the next case needs a new worker
    bool invalid;
    bool ended;
    int status;
} kbi_worker;

typedef struct kbi_group {
    int first, n;
    kbi_measured* m;             // [n]: results; samples NULL: the case was not measured
    kbi_inside** profiles;       // [n]: profiles; NULL: the cases are measured
    char* wanted;
    int64_t* spent_ns;           // [n]: time that the case took in this worker
    const kbi_verdict* verdicts; // inspection result of each case of the group; NULL: no inspection
    int current;
    kbi_measured failed; // flags and message of the running case, if it has failed or was skipped
    bool machine;        // the worker measures the machine, which does not count as the case's time
    int64_t idle_ns;     // ns since the last message, while no case runs
    int deaths;
} kbi_group;

typedef struct kbi_supervisor {
    const kbi_options* o;
    const kbi_plan* plan;
    kbi_recipe recipe;
    kbi_machine machine;
    bool isolated, unseen, unstored; // unseen: an instrument found no data; unstored: a file was not written
    const kbi_backend* backend;
    kbi_worker worker;
    kbi_group group;
    kbi_job job;
    kbi_store store;
    kbi_outputs outputs;
    kb_result run_record;
    kb_planned* planned;  // cases of the plan, with records of earlier runs (--resume)
    kbi_table table;
    kb_result* held; // records not yet printed: --sort waits until an operation is complete
    int64_t n_held;
    kbi_progress progress;
    kbi_budget budget;
    bool silent;
    unsigned instruments;
    kbi_verdict* verdicts;      // [case]: results of inspecting the CUDA calls
    char warned[400];
    int64_t read_ns;            // when the supervisor last waited for messages
    int done, absent, recalled;
    int inspected, counts[3];
} kbi_supervisor;

static struct kbi_control {
    volatile sig_atomic_t interrupted, one_process;
    kbi_supervisor run;
} kbi_control;

// The first signal ends the worker. With --no-isolate, a second signal ends the process, even if a function hangs.
// Otherwise, a third signal ends the supervisor, even if results are not stored.
static void kbi_interrupt(int number) {
    signal(number, kbi_control.one_process || kbi_control.interrupted ? SIG_DFL : kbi_interrupt);
    kbi_control.interrupted = number;
}

// Signals that were ignored at the start (nohup, background jobs of a shell) stay ignored, except SIGTERM.
static void kbi_watch_ends(void) {
    static const int numbers[] = { SIGINT, SIGHUP, SIGQUIT, SIGTERM };
    for (int i = 0; i < KBI_COUNT(numbers); i++)
        if (signal(numbers[i], kbi_interrupt) == SIG_IGN && numbers[i] != SIGTERM) signal(numbers[i], SIG_IGN);
}

// Returns whether a child process has ended. A traced process that is only stopped has not ended.
static bool kbi_ended(pid_t process, int* status) {
    int now = 0;
    pid_t got = waitpid(process, &now, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return false;
    *status = now;
    return got < 0 || !WIFSTOPPED(now);
}

static bool kbi_worker_ended(kbi_worker* w) { return w->ended |= !w->ended && kbi_ended(w->process, &w->status); }

// Ends the worker, if any, and its child processes. kill_now false: first waits 2 s for the worker to exit.
static void kbi_worker_end(kbi_worker* w, bool kill_now) {
    if (!w->process) return;
    close(w->link);
    for (int i = 0; i < 200 && !kbi_worker_ended(w); i++) {
        if (i == (kill_now ? 0 : 100)) kill(w->process, SIGKILL);
        kbi_readable(-1, i ? 20 : 1);
    }
    kill(-w->process, SIGKILL);
    w->process = 0;
}

static bool kbi_worker_error(void) {
    return kbi_error("cannot start a worker: %s; --no-isolate needs none", strerror(errno));
}

// In a worker, main runs again up to kb_main, so it gets the folder and the stdin that main had in this process. The
// file of stdin is opened again, because other processes may share its offset.
static void kbi_startup_restore(void) {
    const struct kbi_startup* start = &kbi_startup;
    int file = start->input >= 0 ? kbi_open_file("/proc/self/fd/0", O_RDONLY) : -1;
    if (file >= 0 && lseek(file, start->input, SEEK_SET) >= 0) dup2(file, 0);
    if (file >= 0) close(file);
    if (start->folder[0] && chdir(start->folder) != 0) return; // the folder was removed
}

static pid_t kbi_start_again(const kbi_options* o, kbi_role role, int in, int out) {
    fflush(NULL);
    pid_t parent = getpid(), process = fork();
    if (process < 0) kbi_worker_error();
    if (process > 0) setpgid(process, process);
    if (process != 0) return process;
    char started_as[80], **argv = kbi_own_words(o);
    setpgid(0, 0);
    dup2(2, 1); // goes to stderr: stdout of benchmarks is not part of the results
    kbi_startup_restore();
    signal(SIGXFSZ, SIG_DFL);
    signal(KBI_WORKER_MARK, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    snprintf(started_as, sizeof started_as, "%ld,%d,%d,%d", (long)getpid(), (int)role, in, out);
    setenv(KBI_STARTED_AS, started_as, 1);
    execv("/proc/self/exe", argv);
    kbi_worker_error();
    _exit(1);
}

static double kbi_start_limit(const kbi_supervisor* s) { return KBI_MAX(120.0, s->o->timeout); }

// Returns false if the worker ended or did not read in time, or the run was interrupted.
static bool kbi_worker_write(kbi_worker* w, const void* data, size_t n) {
    const char* p = (const char*)data;
    while (n && !kbi_control.interrupted) {
        ssize_t done = write(w->link, p, n);
        if (done <= 0 && errno != EINTR) return false;
        if (done > 0) p += done, n -= (size_t)done;
    }
    return !n;
}

static bool kbi_worker_start(kbi_supervisor* s) {
    kbi_worker* w = &s->worker;
    kbi_text command = KBI_BLANK;
    int link[2];
    // <sys/socket.h> is not included, because users' functions may be named send, bind or listen
    enum { KBI_AF_UNIX = 1, KBI_SOCK_STREAM = 1, KBI_SOL_SOCKET = 1, KBI_SO_RCVTIMEO = 20, KBI_SO_SNDTIMEO = 21 };
    const struct timeval receive = { 10, 0 }, start = { (time_t)kbi_start_limit(s), 0 };
    memset(w, 0, sizeof *w);
    w->first = -1;
    if (syscall(SYS_socketpair, KBI_AF_UNIX, KBI_SOCK_STREAM, 0, link) != 0) return kbi_worker_error();
    fcntl(link[0], F_SETFD, FD_CLOEXEC);
    syscall(SYS_setsockopt, link[0], KBI_SOL_SOCKET, KBI_SO_RCVTIMEO, &receive, sizeof receive);
    syscall(SYS_setsockopt, link[0], KBI_SOL_SOCKET, KBI_SO_SNDTIMEO, &start, sizeof start);
    pid_t process = kbi_start_again(s->o, KBI_WORKER, link[1], -1);
    close(link[1]);
    if (process < 0) return close(link[0]), false;
    w->process = process;
    w->link = link[0];
    for (int i = 0; i < s->o->argc; i++) kbi_put(&command, s->o->argv[i], strlen(s->o->argv[i]) + 1);
    if (!kbi_worker_write(w, &command.n, sizeof command.n) || !kbi_worker_write(w, command.s, command.n))
        close(w->link), w->link = -1;
    kbi_text_free(&command);
    return true;
}

static void kbi_ask_reference(kbi_supervisor* s) {
    kbi_reference* to = &s->job.reference;
    int ends[2];
    if (s->job.has_reference || pipe(ends) != 0) return;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    pid_t process = kbi_start_again(s->o, KBI_REFERENCE, s->job.device, ends[1]);
    close(ends[1]);
    for (int i = 0; process > 0 && i < 100 && !kbi_control.interrupted && !kbi_readable(ends[0], 100);) i++;
    if (process > 0) kill(-process, SIGKILL), kill(process, SIGKILL), waitpid(process, NULL, 0);
    s->job.has_reference = kbi_readable(ends[0], 0) && kbi_read_all(ends[0], to, sizeof *to);
    close(ends[0]);
}

static void kbi_warn_once(kbi_supervisor* s, int i, const char* problem, const char* reason, const char* advice) {
    if (kbi_is(reason, s->warned)) return;
    kbi_progress_clear(&s->progress);
    kbi_warn("%s%s: %s%s", s->plan->cases[s->group.first + i].name, problem, reason, advice);
    snprintf(s->warned, sizeof s->warned, "%s", reason);
}

// Takes ownership of the case's result m or, if m is NULL, of its profile.
static void kbi_case_end(kbi_supervisor* s, int i, kbi_measured* m, kbi_inside* profile) {
    kbi_group* g = &s->group;
    g->wanted[i] = false;
    g->current = -1;
    if (!m) {
        g->profiles[i] = profile;
        if (profile->message[0] && s->instruments != KBI_WISH_STREAMS)
            kbi_warn_once(s, i, " is not profiled", profile->message, "");
        return;
    }
    if (!m->samples) m->samples = kbi_copy_reals(NULL, 0);
    g->m[i] = *m;
    s->worker.failed |= m->status == KB_FAILED;
    s->done++;
}

static void kbi_handle_message(void* to, kbi_message_type type, int index, void* data) {
    kbi_supervisor* s = (kbi_supervisor*)to;
    kbi_group* g = &s->group;
    int i = index - g->first;
    g->idle_ns = 0;
    switch (type) {
    case KBI_HELLO:
        memmove(&s->machine, data, sizeof s->machine); // may overlap: --no-isolate
        s->job.roofs = s->machine.roofs;
        s->job.core = s->machine.core;
        return;
    case KBI_ENTER:
        g->current = i;
        g->machine = false;
        g->failed.status = KB_OK;
        g->deaths = 0;
        if (s->worker.first < 0) s->worker.first = index;
        s->worker.mixed |= index != s->worker.first;
        break;
    case KBI_BEAT:
        if (g->current < 0) return;
        g->machine = index != 0;
        break;
    case KBI_STATUS: { // the pointers in the message are valid only in the worker
        const kbi_measured* m = (const kbi_measured*)data;
        kbi_measured_clear(&g->failed);
        g->failed.status = m->status;
        g->failed.flags = m->flags;
        memcpy(g->failed.message, m->message, sizeof m->message);
        return;
    }
    case KBI_RESULT: kbi_case_end(s, i, (kbi_measured*)data, NULL); return;
    case KBI_FOUND: kbi_case_end(s, i, NULL, (kbi_inside*)data); return;
    case KBI_DONE:
        if (!s->isolated && data)
            kbi_warn_once(s, 0, "", (const char*)data,
                          ". Later cases of this process may fail or be slower. "
                          "Isolated runs (the default) start a fresh process.");
        return;
    }
    kbi_progress_show(&s->progress, s->done, s->plan->n, s->plan->cases[g->first + g->current].name);
}

// Fails a case whose worker has ended. A flag that the case has already raised, such as OOM, is kept.
static void kbi_case_lost(kbi_supervisor* s, int i, kb_flag flag, const char* why) {
    kbi_measured m;
    kbi_measured_clear(&m);
    m.status = KB_FAILED;
    m.flags = (uint64_t)1 << flag;
    if (i == s->group.current && s->group.failed.status != KB_OK) m = s->group.failed;
    if (m.status != KB_SKIPPED) kbi_note(&m, "%s", why);
    m.wall_ns = (double)s->group.spent_ns[i];
    if (s->group.profiles)
        kbi_case_end(s, i, NULL, kbi_inside_without(m.message)); // the case keeps its measured time
    else
        kbi_case_end(s, i, &m, NULL);
}

// Ends a worker and marks its current case as failed. limit: exceeded time limit in seconds; 0: the worker has ended.
// If no case has begun, the worker is replaced twice before the first wanted case fails.
static void kbi_worker_lost(kbi_supervisor* s, double limit) {
    kbi_group* g = &s->group;
    kbi_worker* w = &s->worker;
    char why[160], time[40];
    int i = g->current;
    kbi_worker_end(w, w->invalid || limit > 0);
    int number = WTERMSIG(w->status);
    if (i < 0 && limit <= 0 && g->deaths++ < 2) return;
    for (int j = g->n - 1; g->current < 0 && j >= 0; j--)
        if (g->wanted[j]) i = j;
    if (i < 0) return;
    if (limit > 0)
        snprintf(why, sizeof why, "longer than %s", kbi_show_time(limit * 1e3, time));
    else if (w->invalid)
        snprintf(why, sizeof why, "its process sent an invalid message");
    else if (WIFSIGNALED(w->status))
        snprintf(why, sizeof why, "signal %d (%s)%s", number,
                 number == SIGKILL ? "killed, perhaps because memory ran out" : strsignal(number),
                 w->mixed ? ", in a process that had run other cases" : "");
    else
        snprintf(why, sizeof why, "the benchmark ended the process with exit code %d", WEXITSTATUS(w->status));
    kbi_case_lost(s, i, limit > 0 ? KB_FLAG_TIMEOUT : KB_FLAG_CRASHED, why);
}

typedef enum kbi_link_state { KBI_LINK_OPEN, KBI_LINK_DONE, KBI_LINK_LOST } kbi_link_state;

static bool kbi_message_possible(const kbi_supervisor* s, const kbi_message* m) {
    const kbi_group* g = &s->group;
    int i = m->index - g->first;
    if (m->magic != KBI_MAGIC || m->type < KBI_HELLO || m->type > KBI_DONE) return false;
    size_t least = kbi_message_bytes[m->type];
    if (m->size < least || m->size > (least ? KBI_MESSAGE_LIMIT : 0)) return false;
    if (m->type == KBI_HELLO || m->type == KBI_BEAT || m->type == KBI_DONE) return true;
    if (m->type == (g->profiles ? KBI_RESULT : KBI_FOUND)) return false;
    return i >= 0 && i < g->n && g->wanted && g->wanted[i];
}

static bool kbi_measured_receive(kbi_measured* m, size_t size) {
    const char* values = (const char*)(m + 1);
    double** arrays[] = { &m->samples, &m->round_ns, &m->control_ns };
    size_t left = (size - sizeof *m) / sizeof(double);
    for (int k = 0; k < 3; k++) {
        size_t n = !*arrays[k] ? 0 : (size_t)(k ? m->rounds : m->n);
        if (n > left) return false;
        if (*arrays[k]) *arrays[k] = kbi_copy_reals(values, (int64_t)n);
        values += sizeof(double) * n, left -= n;
    }
    return !left;
}

static kbi_link_state kbi_receive(kbi_supervisor* s) {
    kbi_worker* w = &s->worker;
    kbi_message m;
    if (!kbi_read_all(w->link, &m, sizeof m)) return KBI_LINK_LOST;
    w->invalid = !kbi_message_possible(s, &m);
    if (w->invalid) return KBI_LINK_LOST;
    void* data = kbi_grow(NULL, (size_t)m.size + 1);
    bool whole = kbi_read_all(w->link, data, m.size);
    w->invalid = whole && ((m.type == KBI_RESULT && !kbi_measured_receive((kbi_measured*)data, m.size)) ||
                           (m.type == KBI_FOUND && kbi_inside_size((kbi_inside*)data) != m.size));
    bool good = whole && !w->invalid;
    if (good) kbi_handle_message(s, (kbi_message_type)m.type, m.index, data);
    if (!good || m.type != KBI_FOUND) KBENCH_FREE(data);
    if (m.type != KBI_DONE) return good ? KBI_LINK_OPEN : KBI_LINK_LOST;
    if (!m.index) kbi_worker_end(w, true);
    return KBI_LINK_DONE;
}

// Returns DONE: the worker has done its job; LOST: it has ended; OPEN: it timed out, or the run was interrupted.
static kbi_link_state kbi_listen(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    kbi_worker* w = &s->worker;
    const int64_t wait_ns = 100000000;
    while (!kbi_control.interrupted) {
        // a wait counts as 0.1 s at most, because the supervisor may have been stopped meanwhile
        bool ready = kbi_readable(w->link, 100);
        int64_t now = kbi_now(), step = KBI_MIN(KBI_MAX(now - s->read_ns, (int64_t)0), wait_ns);
        bool counts = g->current >= 0 && !g->machine;
        int64_t* spent = counts ? &g->spent_ns[g->current] : &g->idle_ns;
        double limit = counts ? s->o->timeout : kbi_start_limit(s);
        *spent += ready ? step : wait_ns;
        s->read_ns = now;
        if ((double)*spent * 1e-9 > limit) return kbi_worker_lost(s, limit), KBI_LINK_OPEN;
        // a child process of the worker may keep the socket open after the worker has ended
        kbi_link_state next = KBI_LINK_OPEN;
        if (ready)
            next = kbi_receive(s);
        else if (kbi_worker_ended(w) && !kbi_readable(w->link, 0))
            next = KBI_LINK_LOST;
        if (next == KBI_LINK_LOST) kbi_worker_lost(s, 0);
        if (next != KBI_LINK_OPEN) return next;
    }
    return KBI_LINK_OPEN;
}

static bool kbi_runs_here(const kbi_supervisor* s, const kbi_case* c) {
    if (!s->machine.gpu_present) return c->entry->needs != KB_NEEDS_GPU;
    return c->entry->needs != KB_NEEDS_CPU && c->entry->min_sm <= s->machine.sm;
}

// m: n results; profiles: n profiles, or NULL to measure the cases.
static void kbi_group_open(kbi_supervisor* s, int first, int n, kbi_measured* m, kbi_inside** profiles) {
    kbi_group* g = &s->group;
    memset(g, 0, sizeof *g);
    g->first = first;
    g->n = n;
    g->m = m;
    g->profiles = profiles;
    if (!n) return;
    g->spent_ns = KBI_GROW(NULL, int64_t, n);
    g->wanted = (char*)memset(kbi_grow(NULL, (size_t)n), 0, (size_t)n);
    g->verdicts = s->verdicts + first;
}

// Sends the wanted cases of the group to the worker, or runs them in this process (--no-isolate). false: failed.
static bool kbi_job_send(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    const size_t n = (size_t)g->n;
    s->job.first = g->first;
    s->job.n = g->n;
    s->job.instruments = g->profiles ? s->instruments : 0;
    g->current = -1;
    g->machine = false;
    g->idle_ns = 0;
    s->read_ns = kbi_now();
    for (int i = 0; i < g->n; i++) g->spent_ns[i] = 0; // counts time in this worker only
    if (s->isolated)
        return kbi_worker_write(&s->worker, &s->job, sizeof s->job) && kbi_worker_write(&s->worker, g->wanted, n) &&
               kbi_worker_write(&s->worker, g->verdicts, sizeof(kbi_verdict) * n);
    const kbi_sink sink = { kbi_handle_message, s };
    s->backend = kbi_job_run(s->o, &s->job, s->plan->cases, g->wanted, g->verdicts, s->backend, &s->machine, &sink);
    kbi_process_start.known = false; // the program may change its state between groups
    return true;
}

static bool kbi_learn_machine(kbi_supervisor* s) {
    bool gpu = KBI_CUDA && s->recipe.target == KBI_ON_GPU;
    kbi_group_open(s, 0, 0, NULL, NULL);
    if (gpu && s->isolated && (s->recipe.timing == KBI_BY_EVENTS || s->recipe.timing == KBI_BY_BOTH))
        kbi_ask_reference(s);
    s->backend = NULL;
    if (s->isolated && !kbi_worker_start(s)) return false;
    bool sent = kbi_job_send(s);
    kbi_link_state next = !s->isolated ? KBI_LINK_DONE : sent ? kbi_listen(s) : KBI_LINK_LOST;
    if (next == KBI_LINK_DONE) return s->isolated || s->backend;
    bool ended = next == KBI_LINK_LOST && (!s->worker.process || kbi_worker_ended(&s->worker));
    kbi_worker_end(&s->worker, true);
    if (kbi_control.interrupted) return false;
    if (ended) return kbi_error("the worker ended before it began a case; --no-isolate shows why");
    return kbi_error("the worker did not start in %.0f s; check that nvidia-smi answers, and that main reaches kb_main",
                     kbi_start_limit(s));
}

static void kbi_measure_group(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    kbi_worker* w = &s->worker;
    while (!kbi_control.interrupted && memchr(g->wanted, 1, (size_t)g->n)) {
        if (w->failed) kbi_worker_end(w, true);
        bool started = !s->isolated || w->process || kbi_worker_start(s);
        if (started && !kbi_job_send(s))
            kbi_worker_lost(s, 0);
        else if (started && s->isolated)
            kbi_listen(s);
        if (started && s->isolated) continue;
        for (int i = 0; i < g->n; i++)
            if (g->wanted[i])
                kbi_case_lost(s, i, started ? KB_FLAG_CUDA_ERROR : KB_FLAG_CRASHED,
                              started ? "an earlier case lost the device"
                                      : "not run: its process could not be started");
    }
    KBENCH_FREE(g->spent_ns);
    KBENCH_FREE(g->wanted);
    g->wanted = NULL; // so that late messages of the worker are invalid
}

/*-----------------------------------------------------------------
  >>batches   program: a batch, the part of the plan that is measured, judged, recorded and shown together.
-----------------------------------------------------------------*/

enum { KBI_BATCH_CASES = 16 };

// A batch: consecutive groups of the plan. Each measured case has a row in `results`. `memory` owns all arrays of
// a batch.
typedef struct kbi_batch {
    int first, n, processes, n_rows, n_groups;
    int64_t began;
    kbi_measured* m;       // [process * n + case]; samples NULL: not measured
    bool* excluded;        // [case]: failed or skipped in a process; later processes omit it
    bool* late;            // [first case of a group]: --budget left no time for the group in a process
    kbi_inside** profiles; // [case]; NULL: not profiled
    kb_result* results;
    kbi_compared* groups;
    kbi_arena memory;
} kbi_batch;

// A batch is one group; with --procs or profiles, which start processes, a batch is KBI_BATCH_CASES or more cases.
// Profiling with --no-isolate takes one batch for all cases.
static int kbi_batch_end(const kbi_supervisor* s, int first) {
    const kbi_plan* plan = s->plan;
    int end = kbi_group_end(plan, first), least = s->o->procs > 1 || s->instruments ? (int)KBI_BATCH_CASES : 0;
    if ((s->instruments && !s->isolated) || plan->n - first < 2 * least) least = plan->n;
    while (end < plan->n && end - first < least && !kbi_group_recorded(s->planned, plan, end))
        end = kbi_group_end(plan, end);
    return end;
}

// In another process, inspects the CUDA calls of all cases before `end`, then those of later cases for up to 10 s.
// Without CUPTI, all cases get the verdict of the first inspected group.
static void kbi_inspect_to(kbi_supervisor* s, int first, int end) {
    if (!KBI_CUDA || !s->isolated || !s->machine.gpu_present || !s->recipe.audit || s->machine.tool[0]) return;
    if (s->inspected >= end) return;
    const kbi_plan* plan = s->plan;
    const kbi_worker measuring = s->worker;
    const unsigned instruments = s->instruments;
    const int64_t began = kbi_now();
    double limit_s = 10;
    bool has_cupti = true;
    kbi_arena memory = KBI_BLANK;
    if (s->budget.until) limit_s = KBI_MIN(limit_s, (double)(s->budget.until - began) * 1e-10);
    memset(&s->worker, 0, sizeof s->worker);
    s->instruments = KBI_WISH_STREAMS;
    for (int i = KBI_MAX(first, s->inspected), next; i < plan->n && has_cupti && !kbi_control.interrupted; i = next) {
        next = kbi_group_end(plan, i);
        if (i >= end && kbi_seconds_since(began) > limit_s) break;
        s->inspected = next;
        if (kbi_group_recorded(s->planned, plan, i)) continue;
        kbi_inside** found = KBI_ARRAY(&memory, kbi_inside*, next - i);
        kbi_group_open(s, i, next - i, NULL, found);
        for (int k = i; k < next; k++) s->group.wanted[k - i] = kbi_runs_here(s, &plan->cases[k]);
        kbi_measure_group(s);
        for (int k = i; k < next; k++) {
            if (found[k - i]) s->verdicts[k] = found[k - i]->verdict;
            has_cupti &= s->verdicts[k].followed || !s->verdicts[k].note[0];
            KBENCH_FREE(found[k - i]);
        }
    }
    kbi_arena_free(&memory);
    for (int i = s->inspected; i < plan->n && !has_cupti; i++) s->verdicts[i] = s->verdicts[s->inspected - 1];
    if (!has_cupti) s->inspected = plan->n;
    kbi_worker_end(&s->worker, true);
    s->worker = measuring;
    s->instruments = instruments;
}

// Measures all groups in one process (with --procs, in a new process). With --budget, sets max_time of each group.
// If --budget leaves a process no time for a group, that process and later ones omit the group.
static void kbi_batch_measure(kbi_supervisor* s, kbi_batch* b) {
    const int process = s->job.process;
    kbi_budget* left = &s->budget;
    s->done = b->first;
    s->progress.process = process;
    s->progress.processes = b->processes;
    for (int first = b->first, next; first < b->first + b->n && !kbi_control.interrupted; first = next) {
        int here = 0, at = first - b->first;
        next = kbi_group_end(s->plan, first);
        for (int i = first; i < next; i++) here += kbi_runs_here(s, &s->plan->cases[i]);
        if (left->until) {
            b->late[at] |= here && kbi_budget_over(left, process, b->processes, b->began, kbi_now());
            if (!b->late[at]) s->job.max_time = kbi_budget_share(left, s->o, kbi_now());
            kbi_budget_add(left, s->o, here, -1);
            if (b->late[at] && !process) left->left_out += here;
            if (b->late[at]) continue;
        }
        kbi_group_open(s, first, next - first, b->m + (process * b->n + at), NULL);
        if (!process) s->absent += next - first - here;
        for (int i = 0; i < next - first; i++) {
            s->group.wanted[i] = kbi_runs_here(s, &s->plan->cases[first + i]) && !b->excluded[at + i];
            s->done += !s->group.wanted[i];
        }
        int64_t began = kbi_now();
        kbi_progress_group(&s->progress, kbi_group_seconds(s->o, s->job.max_time, here));
        kbi_measure_group(s);
        if (here) kbi_budget_took(left, s->o, here, s->job.max_time, kbi_seconds_since(began));
    }
    for (int i = 0; i < b->n; i++) {
        const kbi_measured* m = &b->m[process * b->n + i];
        b->excluded[i] |= m->samples && m->status != KB_OK;
    }
    if (b->processes > 1) kbi_worker_end(&s->worker, true);
}

// Profiles the cases that have times, in a separate process, because a profiler stays loaded.
static void kbi_batch_profile(kbi_supervisor* s, kbi_batch* b) {
    bool late = s->budget.until && kbi_now() > s->budget.until;
    if (!s->instruments || !kbi_profile_bits(!s->machine.gpu_present) || s->machine.tool[0] || late) return;
    kbi_worker_end(&s->worker, true);
    for (int first = b->first, next; first < b->first + b->n && !kbi_control.interrupted; first = next) {
        int at = first - b->first;
        next = kbi_group_end(s->plan, first);
        kbi_group_open(s, first, next - first, NULL, b->profiles + at);
        for (int i = 0; i < next - first; i++) s->group.wanted[i] = b->m[at + i].samples && !b->excluded[at + i];
        kbi_measure_group(s);
    }
    kbi_worker_end(&s->worker, true);
}

static int64_t kbi_planned(const kbi_plan* plan, const kbi_case* like) {
    int64_t n = 0;
    for (const kbi_case* c = plan->cases; c < plan->cases + plan->n_all; c++)
        n += kbi_is(c->entry->operation, like->entry->operation) && kbi_same_text(c->direction, like->direction);
    return n;
}

static void kbi_batch_judge(kbi_supervisor* s, kbi_batch* b) {
    const int n = b->n, processes = b->processes;
    const size_t cases = (size_t)n, cells = cases * (size_t)processes;
    kb_result* judged = KBI_ARRAY(&b->memory, kb_result, cells);
    kb_result** by_case = KBI_ARRAY(&b->memory, kb_result*, cells); // [i * processes + p]
    kbi_pools pools;
    kbi_pools_open(&pools, &b->memory, n, processes);
    kbi_record_machine(&s->run_record, &s->machine);
    int* selected = KBI_ARRAY(&b->memory, int, cases); // representative process, or -1
    int* rows = KBI_ARRAY(&b->memory, int, cases);
    for (int i = 0; i < n; i++) {
        double values[KBI_PROCESSES], sum = 0;
        int count = 0;
        for (int p = 0; p < processes; p++) {
            const kbi_measured* m = &b->m[p * n + i];
            kb_result* r = &judged[i * processes + p];
            values[p] = (double)NAN;
            if (!m->samples) continue;
            kbi_record_start(r, &s->run_record);
            kbi_judge(r, m, &s->machine);
            by_case[i * processes + p] = r;
            values[p] = log(r->time_ms);
            sum += values[p], count++;
        }
        selected[i] = count ? kbi_judge_representative(by_case + i * processes, processes) : -1;
        if (processes == 1 || selected[i] < 0 || judged[i * processes + selected[i]].status != KB_OK) continue;
        kbi_pool_add(&pools.times, values, exp(sum / count));
    }
    kbi_pool_settle(&pools.times, kbi_prediction_variance);
    for (int i = 0, pooled = 0; i < n; i++) {
        if (selected[i] < 0) continue;
        const kbi_case* c = &s->plan->cases[b->first + i];
        const kbi_measured* m = &b->m[selected[i] * n + i];
        kb_result* r = &b->results[b->n_rows];
        *r = judged[i * processes + selected[i]];
        if (processes > 1 && r->status == KB_OK)
            kbi_judge_merge(r, by_case + i * processes, processes, m, &pools.times.spread[pooled++]);
        else if (processes > 1 && (r->status == KB_FAILED || selected[i] > 0)) // if process 0 skipped the case, all did
            kbi_judge_name_process(r, selected[i], processes);
        kbi_record_case(r, c, m);
        r->planned = kbi_planned(s->plan, c);
        KBI_EACH_INSTRUMENT(k)
            if (k->amend && k->on) k->amend(r, b->first + i);
        if (b->profiles[i] && r->status == KB_OK) kbi_record_inside(r, b->profiles[i], &s->machine);
        rows[b->n_rows++] = i;
    }
    for (int i = 0; i < n * processes; i++)
        if (by_case[i] && i % processes != selected[i / processes]) kb_result_free(by_case[i]);
    for (int row = 0, end; row < b->n_rows; row = end) {
        int stop = kbi_group_end(s->plan, b->first + rows[row]) - b->first;
        for (end = row; end < b->n_rows && rows[end] < stop;) end++;
        kbi_compared* c = &b->groups[b->n_groups++];
        kbi_compared_open(c, b->results + row, end - row, processes);
        for (int k = 0; k < c->n * processes; k++) {
            const kbi_measured* m = &b->m[k / c->n * n + rows[row + k % c->n]];
            c->m[k] = m->samples ? m : NULL;
        }
        kbi_compared_pool(c, &pools);
    }
    kbi_pool_settle(&pools.ratios, 0);
    kbi_pool_settle(&pools.equals, 0);
    for (kbi_compared* c = b->groups; c < b->groups + b->n_groups; c++) kbi_judge_group(c, &pools);
}

static void kbi_show_held(kbi_supervisor* s) {
    if (!s->silent) kbi_table_add(&s->table, s->held, s->n_held);
    for (int64_t i = 0; i < s->n_held; i++) {
        KBI_EACH_OUTPUT(o)
            if (o->each && o->on) o->each(&s->held[i]);
        if (!s->outputs.keeps) kb_result_free(&s->held[i]);
    }
    KBENCH_FREE(s->held);
    s->held = NULL;
    s->n_held = 0;
}

static void kbi_records_append(kb_result** all, int64_t* n_all, const kb_result* results, int n) {
    *all = KBI_GROW(*all, kb_result, *n_all + n);
    memcpy(*all + *n_all, results, sizeof(kb_result) * (size_t)n);
    *n_all += n;
}

static void kbi_output_group(kbi_supervisor* s, const kb_result* results, int n, bool appended) {
    kbi_progress_clear(&s->progress);
    if (!n) return;
    kbi_store_add(&s->store, results, n, appended);
    if (s->outputs.keeps) kbi_records_append(&s->outputs.kept, &s->outputs.n_kept, results, n);
    if (s->n_held && !kbi_table_together(&s->held[0], &results[0])) kbi_show_held(s);
    kbi_records_append(&s->held, &s->n_held, results, n);
    if (!s->table.how.sort) kbi_show_held(s);
}

static void kbi_batch_run(kbi_supervisor* s, int first, int n) {
    kbi_batch b;
    size_t cases = (size_t)n, processes = (size_t)s->o->procs;
    memset(&b, 0, sizeof b);
    b.first = first, b.n = n, b.processes = (int)processes;
    b.began = kbi_now();
    b.m = KBI_ARRAY(&b.memory, kbi_measured, cases * processes);
    b.excluded = KBI_ARRAY(&b.memory, bool, cases);
    b.late = KBI_ARRAY(&b.memory, bool, cases);
    b.profiles = KBI_ARRAY(&b.memory, kbi_inside*, cases);
    b.results = KBI_ARRAY(&b.memory, kb_result, cases);
    b.groups = KBI_ARRAY(&b.memory, kbi_compared, cases);
    kbi_inspect_to(s, first, first + n);
    for (int p = 0; p < b.processes && !kbi_control.interrupted; p++) {
        s->job.process = p;
        kbi_batch_measure(s, &b);
    }
    s->job.process = 0;
    kbi_batch_profile(s, &b);
    kbi_batch_judge(s, &b);
    for (int i = 0; i < b.n_rows; i++) s->counts[b.results[i].status]++;
    for (int i = 0; i < b.n_groups; i++) kbi_output_group(s, b.groups[i].results, b.groups[i].n, true);
    for (size_t i = 0; i < cases * processes; i++) kbi_measured_free(&b.m[i]);
    for (size_t i = 0; i < cases; i++) KBENCH_FREE(b.profiles[i]);
    kbi_arena_free(&b.memory);
}

/*-----------------------------------------------------------------
  >>program   program: a run from command line to exit code.
-----------------------------------------------------------------*/

static const char* kbi_no_gpu(const kbi_supervisor* s) {
    if (s->recipe.target == KBI_ON_CPU) return "--device cpu uses no GPU";
    return s->machine.why[0] ? s->machine.why : "no GPU: this program was built without CUDA; use nvcc";
}

static void kbi_output_recalled(kbi_supervisor* s, int first, int end) {
    kb_result* results = KBI_GROW(NULL, kb_result, end - first);
    int n = 0;
    for (int i = first; i < end; i++) {
        if (!s->planned[i].record) continue;
        results[n] = *s->planned[i].record;
        results[n++].owned = NULL;
    }
    kbi_output_group(s, results, n, false);
    KBENCH_FREE(results);
}

// Adds the cases that run on this device to the budget, and counts them. Returns an upper bound in seconds for the
// time of all cases on this device. devices: number of devices still to be measured, including this one.
static double kbi_plan_time(kbi_supervisor* s, int devices, int* cases) {
    const kbi_options* o = s->o;
    double seconds = 0;
    s->budget.shares = s->budget.cases = 0;
    *cases = 0;
    for (int first = 0, end; first < s->plan->n; first = end) {
        int here = 0;
        end = kbi_group_end(s->plan, first);
        for (int i = first; i < end && !kbi_group_recorded(s->planned, s->plan, first); i++)
            here += kbi_runs_here(s, &s->plan->cases[i]);
        seconds += (double)o->procs * kbi_group_seconds(o, o->max_time, here);
        *cases += here;
        kbi_budget_add(&s->budget, o, here, (double)o->procs * devices);
    }
    return s->budget.until ? KBI_MAX((double)(s->budget.until - kbi_now()) * 1e-9 / devices, 0.0) : seconds;
}

// required: without a GPU, the run fails. Returns 0, or the exit code to end with.
static int kbi_run_device(kbi_supervisor* s, int device, bool required) {
    const kbi_plan* plan = s->plan;
    const kbi_options* o = s->o;
    s->job.device = device;
    s->job.has_reference = false;
    kbi_roofs_clear(&s->job.roofs);
    s->verdicts = KBI_GROW(NULL, kbi_verdict, plan->n);
    for (int i = 0; i < plan->n; i++) memset(&s->verdicts[i], 0, sizeof(kbi_verdict)), s->verdicts[i].flag = -1;
    s->inspected = s->done = 0;
    if (!kbi_learn_machine(s)) return kbi_control.interrupted ? 0 : KBI_EXIT_FAILED;
    const bool gpu = s->machine.gpu_present != 0, host = !gpu && !required && s->recipe.target != KBI_ON_OWN;
    const kb_option* option;
    for (int k = 0; host && (option = kbi_option_next(o, KBI_GPU, &k)) != NULL;)
        if (option != &kbi_options_table[KBI_OPTION_cold] && !kbi_same_name(o->timer, "wall"))
            kbi_warn("--%s is without effect: there is no GPU here", option->name);
    if (required && !gpu) {
        kbi_error("%s", kbi_no_gpu(s));
        return s->machine.devices > 0 ? KBI_EXIT_USAGE : KBI_EXIT_NO_GPU;
    }
    // asks the outputs for existing records of cases on this device (--resume)
    KBENCH_FREE(s->planned);
    s->planned = kbi_planned_cases(plan);
    for (int i = 0; i < plan->n; i++) s->planned[i].runs = kbi_runs_here(s, &plan->cases[i]);
    kbi_record_machine(&s->run_record, &s->machine);
    if (!kbi_recall(s->planned, plan, &s->run_record)) return KBI_EXIT_USAGE;
    for (int i = 0; i < plan->n; i++) s->recalled += s->planned[i].record != NULL;
    int cases;
    double seconds = kbi_plan_time(s, kbi_is(o->device, "all") ? KBI_MAX(s->machine.devices - device, 1) : 1, &cases);
    if (!s->silent && cases && (o->usual || (seconds >= 60 && !o->on[KBI_OPTION_no_progress]))) {
        char text[40];
        kbi_warn("%d case%s%s%s, at most %s%s", cases, cases == 1 ? "" : "s", gpu ? " on " : "",
                 gpu ? s->machine.gpu : "", kbi_show_span(seconds, text), o->usual ? "; --all runs everything" : "");
    }
    if (!s->silent) kbi_table_machine(&s->table, &s->run_record), kbi_table_flush(&s->table);
    kbi_progress_begin(&s->progress, seconds);
    for (int first = 0, end; first < plan->n && !kbi_control.interrupted; first = end) {
        bool recalled = kbi_group_recorded(s->planned, plan, first);
        end = recalled ? kbi_group_end(plan, first) : kbi_batch_end(s, first);
        if (recalled)
            kbi_output_recalled(s, first, end);
        else
            kbi_batch_run(s, first, end - first);
    }
    KBENCH_FREE(s->verdicts);
    kbi_show_held(s);
    kbi_worker_end(&s->worker, true);
    return 0;
}

static kbi_how kbi_how_of(const kbi_options* o, FILE* out) {
    kbi_how how;
    kbi_how_default(&how, out);
    how.colour = kbi_colour(out, o->on[KBI_OPTION_no_color] ? "never" : o->color);
    how.verbose = o->on[KBI_OPTION_verbose];
    how.quiet = o->on[KBI_OPTION_quiet];
    KBI_EACH_INSTRUMENT(i)
        how.counters |= i->on && i->option && (i->open || i->end || i->close);
    how.sort = o->sort;
    how.columns = o->columns;
    return how;
}

static int kbi_nothing_measured(const kbi_supervisor* s) {
    bool no_gpu = !s->machine.gpu_present && s->recipe.target != KBI_ON_OWN && (KBI_CUDA || s->absent);
    if (!no_gpu && (!s->absent || s->counts[KB_SKIPPED])) {
        if (!s->silent) kbi_warn("nothing was measured: all selected cases were skipped; the table says why");
        return KBI_EXIT_FINE;
    }
    const char* why = "the selected cases are not for this GPU; --device cpu runs the benchmarks for the CPU";
    if (!s->silent || !no_gpu) kbi_error("nothing was measured: %s", no_gpu ? kbi_no_gpu(s) : why);
    return KBI_EXIT_NO_GPU;
}

static kbi_supervisor* kbi_supervisor_init(const kbi_options* o, const kbi_plan* plan, FILE* out) {
    kbi_supervisor* s = &kbi_control.run;
    memset(s, 0, sizeof *s);
    s->o = o;
    s->plan = plan;
    kbi_recipe_of(&s->recipe, o);
    s->job.max_time = s->recipe.max_time;
    kbi_roofs_clear(&s->job.roofs);
    kbi_roofs_clear(&s->job.core);
    s->isolated = !o->on[KBI_OPTION_no_isolate] && !kbi_profiled() && !kbi_input_gone();
    kbi_record_run(&s->run_record, o->argc, o->argv, o->seed);
    const kbi_how how = kbi_how_of(o, out);
    kbi_table_open(&s->table, &how);
    signal(SIGPIPE, SIG_IGN);
    return s;
}

static int kbi_run_plan(const kbi_options* o, const kbi_plan* plan, bool silent) {
    kbi_supervisor* s = kbi_supervisor_init(o, plan, kbi_outputs_stdout(o) ? stderr : stdout);
    s->silent = silent;
    s->instruments = kbi_profile_bits(false);
    if (o->budget > 0) s->budget.until = kbi_now() + (int64_t)(o->budget * 1e9);
    if (!s->isolated && o->procs > 1)
        return kbi_error("--procs starts several processes, but %s",
                         kbi_input_gone() ? "main has read stdin, which only one process can read; read a file"
                                          : "a profiler allows only one; leave out one of them"),
               KBI_EXIT_USAGE;
    if (!kbi_outputs_open(&s->outputs)) return KBI_EXIT_USAGE;
    if (!kbi_store_open(&s->store, o->json, o->jsonl)) return kbi_outputs_free(&s->outputs), KBI_EXIT_USAGE;
    s->store.keep = true;
    char shard[48];
    snprintf(shard, sizeof shard, "%lld/%lld", (long long)o->shard, (long long)o->shards);
    if (o->shards) s->run_record.shard = kbi_arena_text(s->run_record.owned, shard);
    s->progress.on = !o->on[KBI_OPTION_no_progress] && !o->on[KBI_OPTION_quiet] && kbi_terminal(stderr);
    kbi_control.one_process = !s->isolated;
    kbi_watch_ends();
    if (!s->isolated) {
        if (kbi_input_gone()) kbi_warn("main has read stdin, which a worker process cannot read again; read a file");
        kbi_warn("one process: a crash ends the run, and --timeout has no effect");
        kbi_watch_stops(1);
    }
    for (int i = 0; i < o->axis.n; i++)
        if (!kbi_plan_has(plan, o->axis.of[i]))
            kbi_warn("-a %.100s: no selected case has this axis; --list shows the axes", o->axis.of[i]);
    static const int efforts[] = { KBI_OPTION_precision, KBI_OPTION_min_time, KBI_OPTION_max_time };
    for (int i = 0; o->on[KBI_OPTION_iters] && i < KBI_COUNT(efforts); i++)
        if (o->on[efforts[i]])
            kbi_warn("--iters sets the number of samples: --%s does not change it", kbi_options_table[efforts[i]].name);
    signal(SIGXFSZ, SIG_IGN); // a write over the file size limit fails, as on a full disk
    signal(SIGCHLD, SIG_DFL); // if ignored, waitpid would not report how a worker ended
    KBI_EACH_INSTRUMENT(i)
        if (i->before && i->on && !kbi_control.interrupted && !i->before()) s->unseen = true;
    int code = plan->n ? kbi_run_device(s, (int)o->gpu, o->device && s->recipe.target == KBI_ON_GPU) : 0;
    int devices = kbi_is(o->device, "all") ? s->machine.devices : 0;
    for (int device = 1; !code && device < devices && !kbi_control.interrupted; device++) {
        bool over = kbi_budget_over(&s->budget, 0, 1, 0, kbi_now());
        for (int i = 0; over && i < plan->n; i++) s->budget.left_out += kbi_runs_here(s, &plan->cases[i]);
        if (!over) code = kbi_run_device(s, device, true);
    }
    kbi_progress_clear(&s->progress);
    if (!code && !silent) {
        kbi_table_end(&s->table);
        if (s->absent)
            kbi_warn("%d not run: %s", s->absent, s->machine.gpu_present ? "not for this GPU" : "they need a GPU");
        if (s->budget.left_out)
            kbi_warn("--budget %gs: %d not run%s", o->budget, s->budget.left_out,
                     o->jsonl ? "; the same command with --resume runs them" : "");
        if (kbi_control.interrupted) kbi_warn("interrupted: cases that were not finished have no record");
    }
    KBI_EACH_INSTRUMENT(i)
        if (i->after && i->on) i->after();
    bool stored = kbi_store_close(&s->store);
    if (!kbi_outputs_write(&s->outputs, s->outputs.kept, s->outputs.n_kept)) stored = false;
    s->unstored = !stored;
    if (!code && kbi_control.interrupted)
        code = KBI_EXIT_INTERRUPTED;
    else if (!code && s->counts[KB_FAILED])
        code = KBI_EXIT_FAILED;
    else if (!code && !s->counts[KB_OK] && !s->recalled && plan->n)
        code = kbi_nothing_measured(s);
    code = kbi_outputs_end(s->outputs.kept, s->outputs.n_kept, code);
    kbi_outputs_free(&s->outputs);
    KBENCH_FREE(s->planned);
    kb_result_free(&s->run_record);
    return code;
}

static void kbi_env_line(const char* name, const char* text, const char* unit) {
    if (*text) kbi_print_line(stdout, "  %-34s %s%s%s", name, text, *unit ? " " : "", unit);
}

static void kbi_env_roofs(const kbi_roofs* roofs, const char* whose) {
    for (int i = 0; i < KBI_ROOFS; i++) {
        char name[40], unit[80], took[40], number[40];
        double peak = kbi_roof_known(roofs, i);
        bool memory = i <= KBI_ROOF_WRITE;
        if (peak <= 0) continue;
        snprintf(name, sizeof name, "%s roof%s", kbi_roof_names[i], whose);
        snprintf(unit, sizeof unit, "%s  (measured in %s)", memory ? "GB/s" : i == KBI_ROOF_INT8 ? "Top/s" : "TFLOP/s",
                 kbi_show_time(roofs->took[i] * 1e3, took));
        kbi_env_line(name, kbi_show(peak * (memory ? 1e-9 : 1e-12), 4, number), unit);
    }
}

static int kbi_show_env(const kbi_options* o, const kbi_plan* plan) {
    kbi_supervisor* s = kbi_supervisor_init(o, plan, stdout);
    const kbi_machine* m = &s->machine;
    char number[40];
    s->job.device = (int)o->gpu;
    if (!kbi_learn_machine(s)) return KBI_EXIT_FAILED;
    kbi_worker_end(&s->worker, true);
    const kb_result* r = &s->run_record;
    kbi_record_machine(&s->run_record, m);
    kbi_table_machine(&s->table, r);
    kbi_table_flush(&s->table);
    for (const kbi_key* key = kbi_keys; key < kbi_keys + KBI_COUNT(kbi_keys); key++) {
        const char* words = kbi_field_words(r, key);
        double x = kbi_field_number(r, key);
        if (!kbi_is(key->group, "machine") || strstr(key->name, "_roof_")) continue;
        if (words || kbi_finite(x)) kbi_env_line(key->name, words ? words : kbi_number(x, number), "");
    }
    for (int64_t i = 0; i < r->environment.n; i++) kbi_env_line(r->environment.of[i].name, r->environment.of[i].s, "");
    kbi_env_line("build", r->build, "");
    if (!KBI_FIBERS) kbi_env_line("interleaved rounds", "off: no fibers for this C library and processor", "");
    const struct {
        const char* name;
        double value; // the line is omitted if the value is unknown or 0
        const char* unit;
    } numbers[] = { { "resolution of the host's clock", kbi_clock_step(), "ns" },
                    { "time to read the host's clock", kbi_measure_wall_bias(), "ns" },
                    { "share of L2 that eviction empties", 100 * m->cold, "%" },
                    { "    by the counters of DRAM", m->counted_cold, "%" },
                    { "resolution of event times", m->quantum, "ns" },
                    { "time of an empty event pair", m->empty_pair, "ns" },
                    { "cold: event time of empty kernel", m->floor[0], "ns" },
                    { "    subtracted bias", m->bias[0], "ns" },
                    { "hot: event time of empty kernel", m->floor[1], "ns" },
                    { "    subtracted bias", m->bias[1], "ns" },
                    { "graph: time of an empty kernel", m->floor[2], "ns" },
                    { "an empty kernel's own duration", m->floor[1] - m->bias[1], "ns" },
                    { "    largest error", m->own_error, "ns" } };
    for (int i = 0; i < (m->gpu_present ? KBI_COUNT(numbers) : 2); i++)
        if (kbi_finite(numbers[i].value) && numbers[i].value > 0)
            kbi_env_line(numbers[i].name, kbi_show(numbers[i].value, 4, number), numbers[i].unit);
    if (m->gpu_present) {
        kbi_env_line("    by", m->truth, "");
        kbi_env_line("    by the counters of DRAM", m->counted_why, "");
        kbi_env_roofs(&m->roofs, "");
    }
    kbi_env_roofs(&m->core, ", one core");
    kbi_env_line("roof", "a measured peak rate; work on the CPU is compared with the peak of one core", "");
    kb_result_free(&s->run_record);
    return KBI_EXIT_FINE;
}

static void kbi_dry_run(kbi_text* t, const kbi_options* o, const kbi_plan* plan) {
    char text[40];
    double seconds = 0;
    kbi_list_cases(t, plan);
    for (int first = 0, end; first < plan->n; first = end) {
        end = kbi_group_end(plan, first);
        seconds += (double)o->procs * kbi_group_seconds(o, o->max_time, end - first);
    }
    if (o->budget > 0) seconds = KBI_MIN(seconds, o->budget);
    kbi_putf(t, "%d case%s in %d comparison group%s; at most about %s", plan->n, plan->n == 1 ? "" : "s",
             plan->groups, plan->groups == 1 ? "" : "s", kbi_show_span(seconds, text));
    if (o->shards) kbi_putf(t, "; shard %lld/%lld", (long long)o->shard, (long long)o->shards);
    kbi_puts(t, o->usual ? "; --all runs everything\n" : "\n");
}

/*-----------------------------------------------------------------
  >>embed     program: measuring inside another program.
-----------------------------------------------------------------*/

typedef struct kbi_pending {
    kb_desc desc;
    kb_entry entry;
    kb_function fn;
    void* user;
    const char* fault;
} kbi_pending;

static struct kbi_host_program {
    const kbi_backend* backend;
    kbi_machine machine;
    int device;
    kb_state* current;
} kbi_host_program;

static const char* kbi_desc_fault(const kb_desc* d) {
    if (!d->name || !*d->name) return "kb_desc.name is missing";
    if (d->dtype && !kb_dtype_of(d->dtype)) return "kb_desc.dtype must be f32, f64, f16, bf16, i8, u8, ... or u64";
    if (d->samples < 0 || d->device < 0) return "kb_desc: samples and device cannot be negative";
    const double numbers[] = { d->precision, d->max_time, d->bytes, d->flops, d->items };
    for (int i = 0; i < KBI_COUNT(numbers); i++)
        if (!(numbers[i] >= 0 && kbi_finite(numbers[i])))
            return "kb_desc: precision, max_time, bytes, flops and items are finite numbers >= 0";
    if (d->mode && !kbi_is(d->mode, "cold") && !kbi_is(d->mode, "hot") && !kbi_is(d->mode, "graph"))
        return "kb_desc.mode must be cold, hot or graph; only cases of KBENCH can use --rotate";
    if (kbi_host_program.backend && KBI_CUDA && d->device != kbi_host_program.device)
        return "kb_desc.device: a process measures on one GPU, that of its first kb_open, kb_run or kb_compare";
    if (d->n_params < 0 || d->n_params >= KBI_DIMENSIONS || (d->n_params && !d->params))
        return "kb_desc.n_params must be the length of params, 0 to 15";
    for (const kb_param* p = d->params; p && p < d->params + d->n_params; p++) {
        bool known = p->type == KB_AXIS_INTS || p->type == KB_AXIS_REALS || (p->type == KB_AXIS_STRINGS && p->s);
        if (!p->name || !*p->name || !known)
            return "kb_desc.params: each has a name, a type (KB_AXIS_INTS, _REALS, _STRINGS) and that type's value";
        if (d->dtype && kbi_is(p->name, "dtype")) return "kb_desc.params: dtype is also given as kb_desc.dtype";
        for (const kb_param* q = d->params; q < p; q++)
            if (kbi_is(q->name, p->name)) return "kb_desc.params: two parameters have the same name";
    }
    return NULL;
}

// Checks a kb_desc and makes a case of it, with copies of its texts in the arena. Members that desc leaves out come
// from `first`, if it is not NULL. After an error, the case has only names.
static kbi_case kbi_pending_case(kbi_pending* g, const kb_desc* desc, const kbi_pending* first, kbi_arena* a,
                                 kb_body body, const kb_build* build) {
    const kb_param* values[KBI_DIMENSIONS];
    kb_desc* d = &g->desc;
    kb_param dtype;
    int n = 0;
    if (!desc)
        g->fault = "kb_desc is NULL";
    else if (desc->end_canary)
        g->fault = "kb_desc is not initialised: start from = {0}, or name its fields";
    else
        *d = *desc;
    const kb_desc* lead = first ? &first->desc : d;
    if (!g->fault && first && !first->fault && !d->name) d->name = lead->name;
    if (!g->fault) g->fault = kbi_desc_fault(d);
    if (g->fault) {
        const char *name = d->name && *d->name ? d->name : "unnamed", *implementation = d->implementation;
        memset(d, 0, sizeof *d);
        d->name = name, d->implementation = implementation;
    } else if (!kbi_is(d->name, lead->name)) {
        g->fault = "kb_compare: a comparison has one operation, and this kb_desc.name differs from the first name";
#define KBI_DIFFERS(member) (d->member != 0 && d->member != lead->member)
    } else if (KBI_DIFFERS(device) || KBI_DIFFERS(seed) || KBI_DIFFERS(samples) || KBI_DIFFERS(host) ||
               KBI_DIFFERS(precision) || KBI_DIFFERS(max_time) ||
               (d->mode && !kbi_is(d->mode, lead->mode ? lead->mode : "cold"))) {
        g->fault =
            "kb_compare: set host, mode, samples, precision, max_time, seed and device only in the first kb_desc";
    } else {
        d->host = lead->host;
        if (!d->n_params) d->params = lead->params, d->n_params = lead->n_params;
    }
    memset(&dtype, 0, sizeof dtype);
    dtype.name = "dtype", dtype.type = KB_AXIS_STRINGS, dtype.s = kbi_arena_text(a, d->dtype);
    if (dtype.s) values[n++] = &dtype;
    for (int i = 0; i < d->n_params; i++) {
        kb_param* p = (kb_param*)kbi_arena_alloc(a, sizeof *p);
        *p = d->params[i];
        p->name = kbi_arena_text(a, p->name);
        if (p->type == KB_AXIS_STRINGS) p->s = kbi_arena_text(a, p->s);
        values[n++] = p;
    }
    g->entry.operation = kbi_arena_text(a, d->name);
    g->entry.implementation = kbi_arena_text(a, d->implementation ? d->implementation : "default");
    g->entry.body = body;
    g->entry.build = build;
    g->entry.user = body ? (void*)g : d->user;
    g->entry.returns = body != NULL;
    kbi_case c = kbi_case_of(a, &g->entry, values, n);
    c.desc = d;
    return c;
}

static void kbi_host_program_open(kbi_recipe* r, const kb_desc* d) {
    kbi_recipe_default(r);
    r->device = d->device;
    if (kbi_is(d->mode, "hot")) r->mode = KBI_HOT;
    if (kbi_is(d->mode, "graph")) r->mode = KBI_GRAPH;
    if (d->precision > 0) r->precision = d->precision;
    if (d->max_time > 0) r->max_time = d->max_time;
    if (d->samples > 0) r->samples = d->samples;
    if (d->seed) r->seed = d->seed;
    if (kbi_host_program.backend) return;
    kbi_host_program.backend = kbi_backend_open(r, &kbi_host_program.machine);
    kbi_host_program.device = r->device;
}

static kb_result kbi_pending_result(const kbi_case* c, kbi_measured* m, const kbi_recipe* recipe) {
    kb_result r;
    m->leaked = KB_NONE; // memory that the program keeps is no leak
    kbi_record_run(&r, 0, NULL, recipe->seed);
    kbi_record_machine(&r, &kbi_host_program.machine);
    kbi_judge(&r, m, &kbi_host_program.machine);
    kbi_record_case(&r, c, m);
    return r;
}

typedef struct kbi_embedded {
    kbi_run run; // must be the first member: kb_close gets a pointer to it
    kbi_recipe recipe;
    kbi_case planned;
    kbi_pending pending;
    kbi_arena arena;
} kbi_embedded;

kb_state* kb_open_from(const kb_desc* desc, const kb_build* build) {
    kbi_embedded* e = (kbi_embedded*)KBENCH_MALLOC(sizeof(kbi_embedded));
    if (!e) return NULL;
    memset(e, 0, sizeof *e);
    e->planned = kbi_pending_case(&e->pending, desc, NULL, &e->arena, NULL, build);
    kbi_host_program_open(&e->recipe, &e->pending.desc);
    kbi_run_init(&e->run, kbi_host_program.backend, &kbi_host_program.machine, &e->recipe, &e->planned);
    kbi_watch_stops(1);
    kbi_body_begins(&e->run, KBI_PHASE_CHECK, KBI_PHASE_FINAL);
    if (e->pending.fault) kbi_stop(&e->run, KB_FLAG_BAD_CASE, "%s", e->pending.fault);
    return &e->run.kb;
}

kb_result kb_close(kb_state* kb) {
    kb_result r;
    if (!kb) {
        kbi_result_clear(&r);
        r.status = KB_FAILED;
        r.flags = (uint64_t)1 << KB_FLAG_OOM;
        return r;
    }
    kbi_embedded* e = (kbi_embedded*)kb->run;
    kbi_body_ended(&e->run);
    kbi_run_finish(&e->run);
    kbi_watch_stops(-1);
    r = kbi_pending_result(&e->planned, &e->run.m, &e->recipe);
    kbi_measured_free(&e->run.m);
    kbi_arena_free(&e->arena);
    KBENCH_FREE(e);
    return r;
}

kb_state* kb_current(void) { return kbi_host_program.current; }

static void kbi_pending_body(kb_state* kb) {
    const kbi_pending* g = (const kbi_pending*)kb->run->bench_case->entry->user;
    bool over = true;
    kb->user = g->user;
    kbi_host_program.current = kb;
    if (g->fault)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s", g->fault);
    else
        over = kb_loop(kb, g->desc.host, g->desc.before, g->fn, g->user);
    if (over && g->desc.check) g->desc.check(kb, g->user);
    kbi_host_program.current = NULL;
}

static void kbi_pending_tell(void* to, kbi_message_type type, int index, void* data) {
    if (type == KBI_RESULT) ((kbi_measured*)to)[index] = *(kbi_measured*)data;
}

bool kb_compare_from(const kb_desc* descs, const kb_function* fns, void* const* users, int64_t n, kb_result* results,
                     const kb_build* build) {
    if (n < 1 || n > KBI_CASES || !fns || !results)
        return kbi_error("kb_compare needs n functions and an array of n results");
    const size_t count = (size_t)n;
    kbi_arena a = KBI_BLANK;
    kbi_pending* pending = KBI_ARRAY(&a, kbi_pending, count);
    kbi_case* cases = KBI_ARRAY(&a, kbi_case, count);
    kbi_measured* m = KBI_ARRAY(&a, kbi_measured, count);
    char* wanted = (char*)memset(kbi_arena_alloc(&a, count), 1, count);
    const kbi_sink sink = { kbi_pending_tell, m };
    kbi_recipe recipe;
    kbi_compared c;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        kbi_pending* g = &pending[i];
        g->fn = fns[i];
        g->user = users ? users[i] : NULL;
        cases[i] = kbi_pending_case(g, descs ? &descs[i] : NULL, i ? pending : NULL, &a, kbi_pending_body, build);
        if (!g->fn && !g->fault) g->fault = "the function is NULL";
        for (size_t k = 0; k < i && !g->fault; k++)
            if (!pending[k].fault && kbi_is(cases[k].name, cases[i].name))
                g->fault = "kb_compare: two functions have one name; give each its kb_desc.implementation";
        kbi_measured_clear(&m[i]);
        m[i].status = KB_FAILED;
        m[i].flags = (uint64_t)1 << KB_FLAG_CUDA_ERROR;
        kbi_note(&m[i], "another function of the comparison lost the device, and this process cannot get it back");
    }
    kbi_host_program_open(&recipe, &pending[0].desc);
    kbi_watch_stops(1);
    kbi_run_cases(cases, &recipe, kbi_host_program.backend, &kbi_host_program.machine, 0, (int)n, wanted, &sink);
    kbi_watch_stops(-1);
    kbi_compared_open(&c, results, (int)n, 1);
    for (size_t i = 0; i < count; i++) {
        results[i] = kbi_pending_result(&cases[i], &m[i], &recipe);
        results[i].planned = n;
        c.m[i] = &m[i];
        good = good && results[i].status == KB_OK;
    }
    kbi_compared_pool(&c, NULL);
    kbi_judge_group(&c, NULL);
    for (size_t i = 0; i < count; i++) kbi_measured_free(&m[i]);
    kbi_arena_free(&a);
    return good;
}

kb_result kb_run_from(const kb_desc* desc, kb_function fn, void* user, const kb_build* build) {
    kb_result r;
    kb_compare_from(desc, &fn, &user, 1, &r, build);
    return r;
}

#if defined(KBENCH_SHARED)
// Before measurements, sets empty-kernel durations from a KBI_REFERENCE process. Returns false if any is invalid.
#if defined(__cplusplus)
extern "C"
#endif
    bool
    kbi_calibrate_from(const void* reference, int64_t bytes) {
    kbi_reference r;
    const double* ns = &r.ns[0][0][0][0];
    if (!KBI_CUDA || kbi_host_program.backend || !reference || bytes != (int64_t)sizeof r) return false;
    memcpy(&r, reference, sizeof r);
    for (size_t i = 0; i < sizeof r / sizeof *ns; i++)
        if (!(ns[i] > 1 && ns[i] < 1e6)) return false;
    kbi_reference_set(&r);
    return true;
}
#endif

int64_t kb_abi(const char* what) {
    static const struct {
        const char* name;
        size_t value;
    } known[] = { { "version", KBENCH_VERSION_MAJOR * 10000 + KBENCH_VERSION_MINOR * 100 + KBENCH_VERSION_PATCH },
                  { "cuda", KBI_CUDA },
                  { "kb_desc", sizeof(kb_desc) },
                  { "kb_param", sizeof(kb_param) },
                  { "kb_result", sizeof(kb_result) },
                  { "kb_state", sizeof(kb_state) },
                  { "kb_entry", sizeof(kb_entry) },
                  { "kb_axis", sizeof(kb_axis) } };
    for (int i = 0; i < KBI_COUNT(known); i++)
        if (kbi_is(what, known[i].name)) return (int64_t)known[i].value;
    return -1;
}

/*-----------------------------------------------------------------
  >>main      program: what KBENCH_MAIN calls.
-----------------------------------------------------------------*/

static int kbi_main(kbi_options* o, int argc, char** argv) {
    kbi_plan plan;
    const char* slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const bool worker = kbi_startup.role == KBI_WORKER;
    struct sigaction mark;
    const bool marked = sigaction(KBI_WORKER_MARK, NULL, &mark) == 0 && mark.sa_handler == SIG_IGN;
    if (marked) signal(KBI_WORKER_MARK, SIG_DFL);
    kbi_process.program = argc > 0 ? (slash ? slash + 1 : argv[0]) : "kbench";
    kbi_open_standard_files();
    unsetenv(KBI_STARTED_AS); // programs that a benchmark starts are not workers
    kbi_startup.process = getpid();
    if (kbi_startup.role == KBI_STARTED && marked) // otherwise, workers would start workers without end
        return kbi_error("a worker's main started this program again without %s in its environment. Keep "
                         "KBENCH_STARTED_AS when main calls exec.",
                         KBI_STARTED_AS),
               KBI_EXIT_USAGE;
    if (kbi_startup.role == KBI_STARTED) kbi_block_standard_files();
    if (kbi_startup.role == KBI_BUSY)
        return kbi_error("a benchmark function cannot run other benchmarks"), KBI_EXIT_USAGE;
    if (kbi_startup.role == KBI_REFERENCE) return kbi_reference_main();
    if (worker && !kbi_receive_command(&argc, &argv)) return KBI_EXIT_FAILED;
    kbi_csv_add();
    if (!kbi_options_parse(o, argc, argv)) return KBI_EXIT_USAGE;
    kbi_process.quiet = o->on[KBI_OPTION_quiet];
    if (o->on[KBI_OPTION_help]) return kbi_help(o->filter.n == 1 && kbi_is(o->filter.of[0], "all")), KBI_EXIT_FINE;
    if (o->on[KBI_OPTION_version]) return printf("kbench %s\n", KBENCH_VERSION), KBI_EXIT_FINE;
    KBI_EACH_INSTRUMENT(i)
        if (i->ready && (!worker || i->open || i->end || i->close) && (i->on || !i->option) && !i->ready(i->value))
            return KBI_EXIT_USAGE;
    if (worker) return kbi_worker_main(o);
    if (!kbi_outputs_apart(o)) return KBI_EXIT_USAGE;
    const kb_option *idle = kbi_option_any(o, KBI_IDLE), *option;
    for (int k = 0; idle && (option = kbi_option_at(k)) != NULL; k++) {
        bool given = kbi_option_given(o, k) || (k == KBI_OPTION_filter && o->filter.n);
        if (given && (option->rules & KBI_WRITES) && !(k == KBI_OPTION_jsonl && kbi_recalls()))
            kbi_warn("--%s writes no records: --%s is without effect", idle->name, option->name);
    }
    KBI_EACH_OUTPUT(i) {
        int instead = i->instead && i->on ? i->instead(i->value) : -1;
        if (instead >= 0) return instead;
    }
    if (o->on[KBI_OPTION_env] && o->filter.n)
        return kbi_error("--env takes no FILTER such as '%.100s'; --env --load A B shows what differs in two files",
                         o->filter.of[0]),
               KBI_EXIT_USAGE;
    if (o->on[KBI_OPTION_env]) return memset(&plan, 0, sizeof plan), kbi_show_env(o, &plan);
    if (!kbi_plan_here(&plan, o)) return KBI_EXIT_USAGE;
    if (!plan.n)
        kbi_warn("shard %lld/%lld has nothing to do: there are fewer comparison groups than shards",
                 (long long)o->shard, (long long)o->shards);
    if (idle && !kbi_plan_recall(&plan)) return KBI_EXIT_USAGE;
    int code = KBI_EXIT_FINE;
    kbi_text lists = KBI_BLANK;
    bool listed = kbi_list(&lists, &plan, o);
    if (!listed && o->on[KBI_OPTION_dry_run])
        kbi_dry_run(&lists, o, &plan);
    else if (!listed)
        code = kbi_run_plan(o, &plan, false);
    fwrite(lists.n ? lists.s : "", 1, lists.n, stdout);
    kbi_text_free(&lists);
    kbi_plan_free(&plan);
    if (kbi_control.run.unstored || (code == KBI_EXIT_FINE && kbi_control.run.unseen)) return KBI_EXIT_USAGE;
    return code;
}

// Returns the exit code of the run, or KBI_EXIT_FAILED if writing to stdout failed.
int kb_main(int argc, char** argv) {
    kbi_options o;
    kbi_options_default(&o);
    int code = kbi_main(&o, argc, argv);
    bool refused = fflush(stdout) != 0;
    const char* why = refused ? strerror(errno) : "a part of the output is missing";
    if ((!refused && !ferror(stdout)) || code != KBI_EXIT_FINE || kbi_startup.role != KBI_STARTED) return code;
    return kbi_error("writing to stdout failed: %s", why), KBI_EXIT_FAILED;
}

void kb_default(const char* options) { kbi_process.usual = options; }

/*-----------------------------------------------------------------
  >>ptx       measure: the device functions of the engine, as text that the driver compiles.
-----------------------------------------------------------------*/

#if KBI_CUDA
// The PTX was compiled by nvcc from CUDA C (no contraction, no flush to zero) and lowered to PTX 6.4 for sm_70, so
// that every driver since CUDA 10.1 loads it on every GPU since Volta. The source is tests/ptx/engine.cu;
// tests/ptx/make.py generates the text with nvcc 13.0.88. Change the source, not this text. The strings of an array
// are joined in order, because C guarantees only 4095 characters per literal. kbi_fill contains the values of the
// enums of dtypes and kinds; if one changes, the division below fails to compile.
// clang-format off
enum { KBI_PTX_CODES = 1 / (int)(KB_F32 == 1 && KB_F64 == 2 && KB_F16 == 3 && KB_BF16 == 4 && KB_I8 == 5 && KB_U8 == 6
                                 && KB_I16 == 7 && KB_U16 == 8 && KB_I32 == 9 && KB_U32 == 10 && KB_I64 == 11 &&
                                 KB_U64 == 12 && KB_TF32 == 13 && KB_E4M3 == 14 && KB_E5M2 == 15 && KB_ZERO == 0 &&
                                 KB_NORMAL == 1 && KB_UNIFORM == 2 && KB_IOTA == 3) };

// kbi_fma contains this macro 16 times
#define KBI_PTX_FMA                                                                                    \
    "fma.rn.f32 %f116,%f116,%f1,%f51;fma.rn.f32 %f115,%f115,%f1,%f51;fma.rn.f32 %f114,%f114,%f1,%f51;" \
    "fma.rn.f32 %f113,%f113,%f1,%f51;fma.rn.f32 %f112,%f112,%f1,%f51;fma.rn.f32 %f111,%f111,%f1,%f51;" \
    "fma.rn.f32 %f110,%f110,%f1,%f51;fma.rn.f32 %f109,%f109,%f1,%f51;fma.rn.f32 %f108,%f108,%f1,%f51;" \
    "fma.rn.f32 %f107,%f107,%f1,%f51;fma.rn.f32 %f106,%f106,%f1,%f51;fma.rn.f32 %f105,%f105,%f1,%f51;" \
    "fma.rn.f32 %f104,%f104,%f1,%f51;fma.rn.f32 %f103,%f103,%f1,%f51;fma.rn.f32 %f102,%f102,%f1,%f51;" \
    "fma.rn.f32 %f101,%f101,%f1,%f51;"

static const char* const kbi_ptx[] = {
    ".version 6.4\n.target sm_70\n.address_size 64\n",
    // kbi_null()
    ".visible .entry kbi_null(){ret;}\n",
    // kbi_read(p, n16, sink)
    ".visible .entry kbi_read(.param .u64 p0,.param .u64 p1,.param .u64 p2){.reg .pred %p<6>;.reg .b32 %r<6>;"
    ".reg .b64 %d<62>;ld.param.u64 %d18,[p0];ld.param.u64 %d19,[p1];ld.param.u64 %d20,[p2];mov.u32 %r1,%ntid.x;"
    "cvt.u64.u32 %d1,%r1;mov.u32 %r2,%ctaid.x;cvt.u64.u32 %d22,%r2;mul.wide.u32 %d2,%r1,4;mul.lo.s64 %d23,%d2,%d22;"
    "mov.u32 %r3,%tid.x;cvt.u64.u32 %d24,%r3;add.s64 %d57,%d23,%d24;mul.wide.u32 %d4,%r1,3;add.s64 %d25,%d57,%d4;"
    "setp.ge.u64 %p1,%d25,%d19;mov.u64 %d61,0;@%p1 bra $3;shl.b64 %d5,%d1,4;mov.u32 %r4,%nctaid.x;"
    "cvt.u64.u32 %d27,%r4;mul.lo.s64 %d6,%d2,%d27;mov.u64 %d61,0;$2:.pragma \"nounroll\";shl.b64 %d40,%d57,4;"
    "add.s64 %d30,%d18,%d40;ld.global.cg.v2.u64 {%d28,%d29},[%d30];add.s64 %d33,%d30,%d5;"
    "ld.global.cg.v2.u64 {%d31,%d32},[%d33];add.s64 %d36,%d33,%d5;ld.global.cg.v2.u64 {%d34,%d35},[%d36];"
    "add.s64 %d39,%d36,%d5;ld.global.cg.v2.u64 {%d37,%d38},[%d39];xor.b64 %d41,%d29,%d61;xor.b64 %d42,%d41,%d28;"
    "xor.b64 %d43,%d42,%d31;xor.b64 %d44,%d43,%d32;xor.b64 %d45,%d44,%d34;xor.b64 %d46,%d45,%d35;"
    "xor.b64 %d47,%d46,%d37;xor.b64 %d61,%d47,%d38;add.s64 %d57,%d57,%d6;add.s64 %d48,%d57,%d4;"
    "setp.lt.u64 %p2,%d48,%d19;@%p2 bra $2;$3:setp.ge.u64 %p3,%d57,%d19;@%p3 bra $5;$4:.pragma \"nounroll\";"
    "shl.b64 %d52,%d57,4;add.s64 %d51,%d18,%d52;ld.global.cg.v2.u64 {%d49,%d50},[%d51];xor.b64 %d53,%d50,%d61;"
    "xor.b64 %d61,%d53,%d49;add.s64 %d57,%d57,%d1;setp.lt.u64 %p4,%d57,%d19;@%p4 bra $4;$5:"
    "setp.ne.s64 %p5,%d61,-7121221799741372324;@%p5 bra $7;cvta.to.global.u64 %d54,%d20;mov.u32 %r5,-1012545444;"
    "st.global.u32 [%d54],%r5;$7:ret;}\n",
    // kbi_copy(dst, src, n16)
    ".visible .entry kbi_copy(.param .u64 p0,.param .u64 p1,.param .u64 p2){.reg .pred %p<5>;.reg .b32 %r<45>;"
    ".reg .b64 %d<36>;ld.param.u64 %d12,[p0];ld.param.u64 %d13,[p1];ld.param.u64 %d14,[p2];mov.u32 %r1,%ntid.x;"
    "cvt.u64.u32 %d1,%r1;mov.u32 %r2,%ctaid.x;cvt.u64.u32 %d15,%r2;mul.wide.u32 %d2,%r1,4;mul.lo.s64 %d16,%d2,%d15;"
    "mov.u32 %r3,%tid.x;cvt.u64.u32 %d17,%r3;add.s64 %d34,%d16,%d17;mul.wide.u32 %d4,%r1,3;add.s64 %d18,%d34,%d4;"
    "setp.ge.u64 %p1,%d18,%d14;@%p1 bra $3;shl.b64 %d5,%d1,4;mov.u32 %r4,%nctaid.x;cvt.u64.u32 %d19,%r4;"
    "mul.lo.s64 %d6,%d2,%d19;$2:.pragma \"nounroll\";shl.b64 %d28,%d34,4;add.s64 %d20,%d13,%d28;"
    "ld.global.cs.v4.u32 {%r5,%r6,%r7,%r8},[%d20];add.s64 %d21,%d20,%d5;"
    "ld.global.cs.v4.u32 {%r9,%r10,%r11,%r12},[%d21];add.s64 %d22,%d21,%d5;"
    "ld.global.cs.v4.u32 {%r13,%r14,%r15,%r16},[%d22];add.s64 %d23,%d22,%d5;"
    "ld.global.cs.v4.u32 {%r17,%r18,%r19,%r20},[%d23];add.s64 %d24,%d12,%d28;"
    "st.global.cs.v4.u32 [%d24],{%r5,%r6,%r7,%r8};add.s64 %d25,%d24,%d5;"
    "st.global.cs.v4.u32 [%d25],{%r9,%r10,%r11,%r12};add.s64 %d26,%d25,%d5;"
    "st.global.cs.v4.u32 [%d26],{%r13,%r14,%r15,%r16};add.s64 %d27,%d26,%d5;"
    "st.global.cs.v4.u32 [%d27],{%r17,%r18,%r19,%r20};add.s64 %d34,%d34,%d6;add.s64 %d29,%d34,%d4;"
    "setp.lt.u64 %p2,%d29,%d14;@%p2 bra $2;$3:setp.ge.u64 %p3,%d34,%d14;@%p3 bra $5;$4:.pragma \"nounroll\";"
    "shl.b64 %d32,%d34,4;add.s64 %d30,%d13,%d32;ld.global.cs.v4.u32 {%r37,%r38,%r39,%r40},[%d30];"
    "add.s64 %d31,%d12,%d32;st.global.cs.v4.u32 [%d31],{%r37,%r38,%r39,%r40};add.s64 %d34,%d34,%d1;"
    "setp.lt.u64 %p4,%d34,%d14;@%p4 bra $4;$5:ret;}\n",
    // kbi_write(dst, n16, value)
    ".visible .entry kbi_write(.param .u64 p0,.param .u64 p1,.param .u32 p2){.reg .pred %p<5>;.reg .b32 %r<26>;"
    ".reg .b64 %d<30>;ld.param.u64 %d12,[p0];ld.param.u64 %d13,[p1];ld.param.u32 %r1,[p2];mov.u32 %r2,%ntid.x;"
    "cvt.u64.u32 %d1,%r2;mov.u32 %r3,%ctaid.x;cvt.u64.u32 %d14,%r3;mul.wide.u32 %d2,%r2,4;mul.lo.s64 %d15,%d2,%d14;"
    "mov.u32 %r4,%tid.x;cvt.u64.u32 %d16,%r4;add.s64 %d28,%d15,%d16;mul.wide.u32 %d4,%r2,3;add.s64 %d17,%d28,%d4;"
    "setp.ge.u64 %p1,%d17,%d13;@%p1 bra $3;shl.b64 %d5,%d1,4;mov.u32 %r5,%nctaid.x;cvt.u64.u32 %d18,%r5;"
    "mul.lo.s64 %d6,%d2,%d18;$2:.pragma \"nounroll\";shl.b64 %d23,%d28,4;add.s64 %d19,%d12,%d23;"
    "st.global.cs.v4.u32 [%d19],{%r1,%r1,%r1,%r1};add.s64 %d20,%d19,%d5;"
    "st.global.cs.v4.u32 [%d20],{%r1,%r1,%r1,%r1};add.s64 %d21,%d20,%d5;"
    "st.global.cs.v4.u32 [%d21],{%r1,%r1,%r1,%r1};add.s64 %d22,%d21,%d5;"
    "st.global.cs.v4.u32 [%d22],{%r1,%r1,%r1,%r1};add.s64 %d28,%d28,%d6;add.s64 %d24,%d28,%d4;"
    "setp.lt.u64 %p2,%d24,%d13;@%p2 bra $2;$3:setp.ge.u64 %p3,%d28,%d13;@%p3 bra $5;$4:.pragma \"nounroll\";"
    "shl.b64 %d26,%d28,4;add.s64 %d25,%d12,%d26;st.global.cs.v4.u32 [%d25],{%r1,%r1,%r1,%r1};add.s64 %d28,%d28,%d1;"
    "setp.lt.u64 %p4,%d28,%d13;@%p4 bra $4;$5:ret;}\n",
    // kbi_spin(cycles)
    ".visible .entry kbi_spin(.param .u64 p0){.reg .pred %p<2>;.reg .b64 %d<6>;ld.param.u64 %d2,[p0];"
    "mov.u64 %d3,%clock64;$1:.pragma \"nounroll\";mov.u64 %d4,%clock64;sub.s64 %d5,%d4,%d3;setp.lt.u64 %p1,%d5,%d2;"
    "@%p1 bra $1;ret;}\n",
    // kbi_clock(out, cycles)
    ".visible .entry kbi_clock(.param .u64 p0,.param .u64 p1){.reg .pred %p<9>;.reg .b32 %r<4>;.reg .b64 %d<27>;"
    "ld.param.u64 %d11,[p0];ld.param.u64 %d12,[p1];mov.u32 %r1,%tid.x;mov.u32 %r2,%ctaid.x;or.b32 %r3,%r2,%r1;"
    "setp.ne.s32 %p1,%r3,0;@%p1 bra $8;cvta.to.global.u64 %d1,%d11;add.s64 %d2,%d12,268435456;mov.u64 %d13,%clock64;"
    "mov.u64 %d14,%globaltimer;$2:.pragma \"nounroll\";mov.u64 %d15,%globaltimer;mov.u64 %d16,%clock64;"
    "setp.eq.s64 %p2,%d15,%d14;sub.s64 %d17,%d16,%d13;setp.lt.u64 %p3,%d17,%d2;and.pred %p4,%p2,%p3;@%p4 bra $2;"
    "mov.u64 %d18,%clock64;$4:.pragma \"nounroll\";mov.u64 %d19,%clock64;sub.s64 %d20,%d19,%d16;"
    "setp.lt.u64 %p5,%d20,%d12;@%p5 bra $4;mov.u64 %d21,%globaltimer;$6:.pragma \"nounroll\";"
    "mov.u64 %d22,%globaltimer;mov.u64 %d23,%clock64;setp.eq.s64 %p6,%d22,%d21;sub.s64 %d24,%d23,%d18;"
    "setp.lt.u64 %p7,%d24,%d2;and.pred %p8,%p6,%p7;@%p8 bra $6;sub.s64 %d25,%d22,%d15;st.global.u64 [%d1],%d25;"
    "sub.s64 %d26,%d23,%d16;st.global.u64 [%d1+8],%d26;$8:ret;}\n",
    // kbi_fma(out, iters)
    ".visible .entry kbi_fma(.param .u64 p0,.param .u64 p1){.reg .pred %p<4>;.reg .f32 %f<117>;.reg .b32 %r<2>;"
    ".reg .b64 %d<7>;ld.param.u64 %d4,[p0];ld.param.u64 %d6,[p1];mov.u32 %r1,%tid.x;cvt.rn.f32.u32 %f35,%r1;"
    "mul.rn.f32 %f36,%f35,0f358637BD;add.rn.f32 %f1,%f36,0f3F000000;setp.eq.s64 %p1,%d6,0;@%p1 bra $5;"
    "cvta.to.global.u64 %d1,%d4;mov.f32 %f116,0f00000000;mov.f32 %f51,0f3F800000;mov.f32 %f114,0f40000000;"
    "mov.f32 %f113,0f40400000;mov.f32 %f112,0f40800000;mov.f32 %f111,0f40A00000;mov.f32 %f110,0f40C00000;"
    "mov.f32 %f109,0f40E00000;mov.f32 %f108,0f41000000;mov.f32 %f107,0f41100000;mov.f32 %f106,0f41200000;"
    "mov.f32 %f105,0f41300000;mov.f32 %f104,0f41400000;mov.f32 %f103,0f41500000;mov.f32 %f102,0f41600000;"
    "mov.f32 %f101,0f41700000;mov.f32 %f115,%f51;$2:.pragma \"nounroll\";",
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    "add.s64 %d6,%d6,-1;setp.ne.s64 %p2,%d6,0;@%p2 bra $2;add.rn.f32 %f87,%f116,%f115;add.rn.f32 %f88,%f87,%f114;"
    "add.rn.f32 %f89,%f88,%f113;add.rn.f32 %f90,%f89,%f112;add.rn.f32 %f91,%f90,%f111;add.rn.f32 %f92,%f91,%f110;"
    "add.rn.f32 %f93,%f92,%f109;add.rn.f32 %f94,%f93,%f108;add.rn.f32 %f95,%f94,%f107;add.rn.f32 %f96,%f95,%f106;"
    "add.rn.f32 %f97,%f96,%f105;add.rn.f32 %f98,%f97,%f104;add.rn.f32 %f99,%f98,%f103;add.rn.f32 %f100,%f99,%f102;"
    "add.rn.f32 %f34,%f100,%f101;setp.num.f32 %p3,%f34,%f34;@%p3 bra $5;st.global.f32 [%d1],%f34;$5:ret;}\n",
    // kbi_fill(p, n, dtype, kind, seed, tensor)
    ".visible .entry kbi_fill(.param .u64 p0,.param .u64 p1,.param .u32 p2,.param .u32 p3,.param .u64 p4,"
    ".param .u32 p5){.reg .pred %p<37>;.reg .b16 %h<5>;.reg .f32 %f<4>;.reg .b32 %r<114>;.reg .f64 %g<71>;"
    ".reg .b64 %d<51>;ld.param.u64 %d22,[p0];ld.param.u64 %d20,[p1];ld.param.u32 %r41,[p2];ld.param.u32 %r42,[p3];"
    "ld.param.u64 %d21,[p4];ld.param.u32 %r43,[p5];cvta.to.global.u64 %d1,%d22;mov.u32 %r44,%ctaid.x;"
    "mov.u32 %r45,%ntid.x;cvt.u64.u32 %d2,%r45;mul.wide.u32 %d23,%r44,%r45;mov.u32 %r46,%tid.x;"
    "cvt.u64.u32 %d24,%r46;add.s64 %d48,%d23,%d24;setp.ge.u64 %p2,%d48,%d20;@%p2 bra $35;setp.eq.s32 %p3,%r42,2;"
    "add.s32 %r47,%r41,-11;setp.lt.u32 %p4,%r47,2;and.pred %p5,%p3,%p4;add.s32 %r48,%r41,-5;setp.lt.u32 %p6,%r48,8;"
    "setp.ne.s32 %p7,%r42,1;and.pred %p1,%p6,%p7;selp.u32 %r1,1,0,%p5;cvt.u32.u64 %r2,%d21;shr.u64 %d25,%d21,32;"
    "cvt.u32.u64 %r3,%d25;shl.b32 %r49,%r41,2;mov.u64 %d26,9906741768688416;shr.u64 %d27,%d26,%r49;"
    "cvt.u16.u64 %h2,%d27;and.b16 %h1,%h2,15;setp.eq.s32 %p8,%r41,14;selp.b32 %r4,20,21,%p8;"
    "selp.b32 %r5,126,123,%p8;selp.b32 %r6,121,113,%p8;mad.lo.s32 %r7,%r6,-8388608,8388608;and.b32 %r8,%r41,1;"
    "mov.u32 %r50,%nctaid.x;cvt.u64.u32 %d28,%r50;mul.lo.s64 %d4,%d28,%d2;$2:.pragma \"nounroll\";"
    "cvt.u32.u64 %r54,%d48;and.b32 %r9,%r54,1;setp.eq.s32 %p9,%r42,0;mov.u32 %r109,0;mov.u32 %r110,%r109;"
    "mov.u32 %r111,%r109;@%p9 bra $8;and.b64 %d6,%d48,2;shr.u64 %d29,%d48,2;cvt.u32.u64 %r10,%d29;"
    "shr.u64 %d7,%d48,34;mov.u32 %r56,0;mov.u32 %r109,%r56;mov.u32 %r110,%r56;mov.u32 %r102,%r1;$4:"
    ".pragma \"nounroll\";mov.u32 %r12,%r110;mov.u32 %r11,%r109;mov.u64 %d49,%d7;mov.u32 %r103,%r56;"
    "mov.u32 %r104,%r3;mov.u32 %r105,%r2;mov.u32 %r106,%r102;mov.u32 %r107,%r43;mov.u32 %r108,%r10;$5:"
    ".pragma \"nounroll\";mul.wide.u32 %d9,%r108,-766435501;mul.wide.u32 %d10,%r107,-845247145;"
    "cvt.u32.u64 %r58,%d49;xor.b32 %r59,%r105,%r58;shr.u64 %d30,%d10,32;cvt.u32.u64 %r60,%d30;"
    "xor.b32 %r108,%r59,%r60;shr.u64 %d31,%d9,32;cvt.u32.u64 %r61,%d31;xor.b32 %r62,%r104,%r106;"
    "xor.b32 %r107,%r62,%r61;cvt.u32.u64 %r106,%d9;add.s32 %r105,%r105,-1640531527;add.s32 %r104,%r104,-1150833019;"
    "add.s32 %r103,%r103,1;setp.ne.s32 %p10,%r103,10;mov.u64 %d49,%d10;@%p10 bra $5;setp.eq.s64 %p11,%d6,0;"
    "selp.b32 %r109,%r108,%r107,%p11;selp.b64 %d32,%d10,%d9,%p11;cvt.u32.u64 %r110,%d32;add.s32 %r28,%r102,-1;"
    "setp.gt.s32 %p12,%r102,0;mov.u32 %r102,%r28;@%p12 bra $4;setp.eq.s32 %p13,%r9,0;selp.b32 %r111,%r11,%r12,%p13;"
    "$8:setp.eq.s32 %p14,%r9,0;selp.b32 %r33,%r109,%r110,%p14;@!%p1 bra $9;setp.eq.s32 %p30,%r42,3;"
    "cvt.u64.u32 %d38,%r111;cvt.u64.u32 %d39,%r33;bfi.b64 %d40,%d38,%d39,32,32;selp.b64 %d50,%d48,%d40,%p30;"
    "bra.uni $25;$9:shr.u32 %r63,%r33,8;cvt.rn.f64.s32 %g4,%r63;mul.rn.f64 %g5,%g4,0d3E70000000000000;"
    "cvt.rn.f64.s64 %g6,%d48;setp.eq.s32 %p16,%r42,3;selp.f64 %g3,%g6,%g5,%p16;@%p7 bra $11;shr.u32 %r64,%r109,8;"
    "add.s32 %r65,%r64,1;cvt.rn.f64.s32 %g7,%r65;mov.b64 %d33,%g7;add.s64 %d34,%d33,2638149301829632;"
    "shr.u64 %d35,%d34,52;cvt.u32.u64 %r66,%d35;and.b64 %d36,%d34,4503599627370495;"
    "add.s64 %d37,%d36,4604544269498187776;mov.b64 %g8,%d37;add.rn.f64 %g9,%g8,0dBFF0000000000000;"
    "add.rn.f64 %g10,%g8,0d3FF0000000000000;div.rn.f64 %g11,%g9,%g10;mul.rn.f64 %g12,%g11,%g11;"
    "mul.rn.f64 %g13,%g12,0d3FB1111111111111;add.rn.f64 %g14,%g13,0d3FB3B13B13B13B14;mul.rn.f64 %g15,%g12,%g14;"
    "add.rn.f64 %g16,%g15,0d3FB745D1745D1746;mul.rn.f64 %g17,%g12,%g16;add.rn.f64 %g18,%g17,0d3FBC71C71C71C71C;"
    "mul.rn.f64 %g19,%g12,%g18;add.rn.f64 %g20,%g19,0d3FC2492492492492;mul.rn.f64 %g21,%g12,%g20;"
    "add.rn.f64 %g22,%g21,0d3FC999999999999A;mul.rn.f64 %g23,%g12,%g22;add.rn.f64 %g24,%g23,0d3FD5555555555555;"
    "mul.rn.f64 %g25,%g12,%g24;add.rn.f64 %g26,%g25,0d3FF0000000000000;mov.u32 %r67,1047;sub.s32 %r68,%r67,%r66;"
    "cvt.rn.f64.s32 %g27,%r68;mul.rn.f64 %g28,%g27,0d3FE62E42FEFA39EF;mul.rn.f64 %g29,%g11,0dC000000000000000;"
    "mul.rn.f64 %g30,%g29,%g26;add.rn.f64 %g31,%g28,%g30;add.rn.f64 %g32,%g31,%g31;sqrt.rn.f64 %g33,%g32;"
    "shr.u32 %r69,%r110,8;add.s32 %r70,%r69,2097152;shr.u32 %r71,%r70,22;and.b32 %r72,%r70,29360128;"
    "sub.s32 %r73,%r69,%r72;cvt.rn.f64.s32 %g34,%r73;mul.rn.f64 %g35,%g34,0d3E9921FB54442C73;",
    "mul.rn.f64 %g36,%g35,%g35;mul.rn.f64 %g37,%g36,0d3DE6124613A86D09;add.rn.f64 %g38,%g37,0dBE5AE64567F544E4;"
    "mul.rn.f64 %g39,%g36,%g38;add.rn.f64 %g40,%g39,0d3EC71DE3A556C734;mul.rn.f64 %g41,%g36,%g40;"
    "add.rn.f64 %g42,%g41,0dBF2A01A01A01A01A;mul.rn.f64 %g43,%g36,%g42;add.rn.f64 %g44,%g43,0d3F81111111111111;"
    "mul.rn.f64 %g45,%g36,%g44;add.rn.f64 %g46,%g45,0dBFC5555555555555;mul.rn.f64 %g47,%g36,%g46;"
    "mul.rn.f64 %g48,%g35,%g47;add.rn.f64 %g49,%g35,%g48;mul.rn.f64 %g50,%g36,0d3E21EED8EFF8D898;"
    "add.rn.f64 %g51,%g50,0dBE927E4FB7789F5C;mul.rn.f64 %g52,%g36,%g51;add.rn.f64 %g53,%g52,0d3EFA01A01A01A01A;"
    "mul.rn.f64 %g54,%g36,%g53;add.rn.f64 %g55,%g54,0dBF56C16C16C16C17;mul.rn.f64 %g56,%g36,%g55;"
    "add.rn.f64 %g57,%g56,0d3FA5555555555555;mul.rn.f64 %g58,%g36,%g57;add.rn.f64 %g59,%g58,0dBFE0000000000000;"
    "mul.rn.f64 %g60,%g36,%g59;add.rn.f64 %g61,%g60,0d3FF0000000000000;mad.lo.s32 %r74,%r9,3,%r71;"
    "and.b32 %r75,%r74,1;setp.eq.b32 %p17,%r75,1;selp.f64 %g62,%g49,%g61,%p17;add.s32 %r76,%r74,1;"
    "and.b32 %r77,%r76,2;setp.eq.s32 %p18,%r77,0;neg.f64 %g63,%g62;selp.f64 %g64,%g62,%g63,%p18;"
    "mul.rn.f64 %g65,%g64,%g33;cvt.rn.f32.f64 %f2,%g65;cvt.f64.f32 %g3,%f2;$11:cvt.rn.f32.f64 %f1,%g3;"
    "mov.b32 %r34,%f1;setp.eq.s32 %p19,%r41,13;@%p19 bra $13;setp.ne.s32 %p20,%r41,1;@%p20 bra $14;$13:"
    "cvt.u64.u32 %d50,%r34;bra.uni $25;$14:setp.gt.u32 %p21,%r41,13;@!%p21 bra $15;and.b32 %r83,%r34,2147483647;"
    "shr.u32 %r35,%r83,23;add.s32 %r113,%r7,%r83;setp.ge.u32 %p29,%r35,%r6;mov.u32 %r112,%r4;@%p29 bra $23;"
    "and.b32 %r84,%r34,8388607;or.b32 %r113,%r84,8388608;sub.s32 %r85,%r4,%r35;add.s32 %r86,%r85,%r6;"
    "min.u32 %r112,%r86,25;$23:add.s32 %r87,%r112,-1;mov.u32 %r88,1;shl.b32 %r89,%r88,%r87;shr.u32 %r90,%r113,%r112;"
    "and.b32 %r91,%r90,1;add.s32 %r92,%r113,%r89;add.s32 %r93,%r92,%r91;add.s32 %r94,%r93,-1;"
    "shr.u32 %r95,%r94,%r112;shr.u32 %r96,%r34,24;and.b32 %r97,%r96,128;min.u32 %r98,%r95,%r5;or.b32 %r99,%r98,%r97;"
    "cvt.u64.u32 %d50,%r99;bra.uni $25;$15:mov.b64 %d50,%g3;setp.eq.s32 %p22,%r41,2;@%p22 bra $25;"
    "setp.eq.s32 %p23,%r41,3;@%p23 bra $19;setp.ne.s32 %p24,%r41,4;@%p24 bra $20;shr.u32 %r78,%r34,16;"
    "and.b32 %r79,%r78,1;add.s32 %r80,%r34,%r79;add.s32 %r81,%r80,32767;shr.u32 %r82,%r81,16;cvt.u64.u32 %d50,%r82;"
    "bra.uni $25;$19:cvt.rn.f16.f32 %h3,%f1;cvt.u64.u16 %d50,%h3;bra.uni $25;$20:setp.eq.s32 %p25,%r8,0;"
    "mul.rn.f64 %g66,%g3,0d4020000000000000;setp.lt.f64 %p26,%g66,0d0000000000000000;"
    "selp.f64 %g67,0dBFE0000000000000,0d3FE0000000000000,%p26;add.rn.f64 %g68,%g66,%g67;"
    "setp.lt.f64 %p27,%g68,0d0000000000000000;and.pred %p28,%p25,%p27;selp.f64 %g69,0d0000000000000000,%g68,%p28;"
    "cvt.rzi.s64.f64 %d50,%g69;$25:setp.gt.s16 %p31,%h1,1;@%p31 bra $29;setp.eq.s16 %p34,%h1,0;@%p34 bra $33;"
    "setp.eq.s16 %p35,%h1,1;@!%p35 bra $34;shl.b64 %d45,%d48,1;add.s64 %d46,%d1,%d45;st.global.u16 [%d46],%d50;"
    "bra.uni $34;$29:setp.eq.s16 %p32,%h1,2;@%p32 bra $32;setp.ne.s16 %p33,%h1,3;@%p33 bra $34;shl.b64 %d41,%d48,3;"
    "add.s64 %d42,%d1,%d41;st.global.u64 [%d42],%d50;bra.uni $34;$33:add.s64 %d47,%d1,%d48;st.global.u8 [%d47],%d50;"
    "bra.uni $34;$32:shl.b64 %d43,%d48,2;add.s64 %d44,%d1,%d43;st.global.u32 [%d44],%d50;$34:add.s64 %d48,%d48,%d4;"
    "setp.lt.u64 %p36,%d48,%d20;@%p36 bra $2;$35:ret;}\n",
};
// clang-format on

static void kbi_ptx_put(kbi_text* to) {
    for (int i = 0; i < KBI_COUNT(kbi_ptx); i++) kbi_puts(to, kbi_ptx[i]);
}
#endif

KBI_CODE_END
#endif // KBENCH_IMPLEMENTATION

/*-----------------------------------------------------------------
  This software is available under two licences; choose whichever you prefer.
-----------------------------------------------------------------------------------------------------------------
  Licence A - MIT License
  Copyright (c) 2026 the kbench authors

  Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
  documentation files (the "Software"), to deal in the Software without restriction, including without limitation
  the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
  to permit persons to whom the Software is furnished to do so, subject to the following conditions:

  The above copyright notice and this permission notice shall be included in all copies or substantial portions
  of the Software.

  THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
  TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
  THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
  CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
  DEALINGS IN THE SOFTWARE.
-----------------------------------------------------------------------------------------------------------------
  Licence B - Public Domain (www.unlicense.org)

  This is free and unencumbered software released into the public domain.

  Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either in source code
  form or as a compiled binary, for any purpose, commercial or non-commercial, and by any means.

  In jurisdictions that recognize copyright laws, the author or authors of this software dedicate any and all
  copyright interest in the software to the public domain. We make this dedication for the benefit of the public
  at large and to the detriment of our heirs and successors. We intend this dedication to be an overt act of
  relinquishment in perpetuity of all present and future rights to this software under copyright law.

  THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
  TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
  THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
  OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
-----------------------------------------------------------------*/
