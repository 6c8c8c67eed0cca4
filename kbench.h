/* kbench.h - v0.1.0 - benchmarks of GPU kernels, and of C code, in one header - C11, C++11, CUDA C++17
   MIT or public domain, as you choose; both texts stand at the end.

QUICK START

    #define KBENCH_IMPLEMENTATION               in exactly one .cu, .c or .cpp file
    #include "kbench.h"
    __global__ void scale(const float* x, float* y, int n) { ... }

    KBENCH(scale) {
        int n = 1 << 24; float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
        kb_fill(kb, x, n, KB_NORMAL);
        KB_TIME(kb) { scale<<<n / 256, 256, 0, kb->stream>>>(x, y, n); }
        kb_bytes(kb, 2.0 * sizeof(float) * n);
    }
    KBENCH_MAIN()

    nvcc -O3 scale.cu -o scale && ./scale                  with a GPU
    cc -O2 first.c -o first -lm && ./first                 plain C: KB_TIME then times the C code itself
    Benchmarks in a static library need -Wl,--whole-archive, or one call of kb_add with an entry of theirs.

WHAT IT REFUSES TO DO

    It prints a number or a word, never a doubtful number. A wrong result, a failed launch, a copy or a
    synchronisation inside the timed block, a block without GPU work, a crash: each gives a word (see >>types,
    KB_FLAGS) and exit code 1, and the other cases go on.
    It drops no sample for its value, and does not retry until a number looks good; what was timed while the
    process or the gate stood still is timed again, and counted (samples_retaken).
    It does not profile whole programs, has no window, and does not run on Windows.

CONTENTS (search for the tag)

    >>options      what to define before including the file
    >>types        dtypes, flags, axes, descriptions, statistics, the record
    >>api          functions, by task
    >>macros       KBENCH, KB_TIME, KB_SAMPLE, KB_ALLOC, kb_fill, kb_check, ...
    >>cxx          the few overloads that C++ gets
    ---            stop here if you only want the API
    >>system       foundation: what strict standards hide, what is optimised, and the smallest calls of the system
    >>log          foundation: warnings and errors, one line each, on stderr
    >>util         foundation: arenas, growing text, numbers as text, names that people mistype, files
    >>names        foundation: what dtypes and flags are called
    >>clock        foundation: the host's monotonic clock, in nanoseconds
    >>random       foundation: reproducible fills: an element depends on seed, tensor and index alone
    >>stats        foundation: summaries of a sample and its interval. Pure functions; no globals
    >>paired       foundation: two arms measured in the same rounds: interval and verdict. Pure functions
    >>spread       foundation: what fresh processes, and errors known beforehand, add to an interval. Pure functions
    >>arrays       foundation: whether one array matches another; NaN never does. Pure functions
    >>fiber        foundation: a function suspended in its middle, on a stack of its own
    >>handed       foundation: what the stages hand to each other: recipe, case, measured, machine
    >>fields       foundation: a record's keys as data, and the names by which people choose among them
    >>registry     declare: what the KBENCH macros registered, in the order of the source
    >>cli          plan: the command line, from one table that also prints --help
    >>ranges       plan: the values of axes, written as lists: 512,1024:8192:*2
    >>plan         plan: from registry and command line to an ordered list of cases in comparison groups
    >>list         plan: what --list, --list-ops and --list-sizes print
    >>run          measure: one benchmark function being run: its state, and the table of functions a device fills in
    >>lab          measure: all that a measuring process keeps from one case to the next
    >>host         measure: the cpu backend, and the tests' script backend, with their timers
    >>memory       measure: tracked allocations with guard bands; peaks, leaks and overwritten guards
    >>device       measure: the GPU: stream, gate, events, eviction, clock
    >>nvml         measure: clocks, power, temperature, throttling, other processes, through NVML
    >>cupti        measure: durations of kernels as the driver records them, through CUPTI
    >>timers       measure: how a block of GPU work is timed: cold, hot, rotating, by CUPTI
    >>calibrate    measure: what events read too much, against what an empty kernel takes
    >>audit        measure: the timed block seen once under stream capture, where nothing executes
    >>roofs        measure: what this device reaches: bandwidth of copies, reads and writes, arithmetic
    >>cuda         measure: the cuda backend put together and opened; which backend a recipe asks for
    >>engine       measure: the state machine that hands out checked, audited, warm-up and sample units
    >>body         measure: what a body asks and says: axes, amounts, checks, words
    >>rounds       measure: the cases of a comparison group, one alone or several in turn
    >>verdict      judge: from samples and facts to statistics, flags, speedup and rating
    >>record       record: a case's identity, machine and run, put into its record
    >>json         record: one object per case; never NaN, never Infinity, never a comma for a point
    >>store        record: files that survive a crash
    >>columns      render: what render is told beside the records, and what stands in a column
    >>table        render: the terminal table and its summary
    >>progress     render: the progress line on stderr
    >>worker       program: the process that runs cases, told by pipe which, and answering
    >>supervisor   program: the process that owns the terminal, the files and the watchdog. It never touches the GPU
    >>program      program: a run from command line to exit code
    >>embed        program: measuring inside another program
    >>selftest     program: the measurement measured: known work, equal rivals, planted differences and planted mistakes
    >>main         program: what KBENCH_MAIN calls
    >>ptx          measure: the engine's device functions, as text that the driver compiles at start

HOW A MEASUREMENT WORKS

    The way of the data: declare -> plan -> measure -> judge -> record -> render; no stage knows a later one.

    A benchmark's function is called twice. The first call runs the timed block once, waits, and looks at
    errors; kb_check after the block then decides whether there will be any timing at all. The second call
    runs the block once under stream capture (nothing executes; the audit sees copies, allocations,
    synchronisation, or no work at all), then warms up until times and clock have settled, then takes samples
    until the 95 % interval of the median is within 0.5 % of it (30 to 2,000 samples, about 1 s). In the end
    the buffers that kb_check or kb_to_host read are put back as they were when the loop was entered, the block
    runs once more, and kb_check looks at what that run left: work done only in the first launch is STALE.
    Host code inside the block runs in all of these.

    Implementations of one operation are measured in rounds, each in its turn, on one stage: the same memory
    for all of them (what each left there is swapped out and in, untimed), since where a buffer lies decides
    1 to 3 % of a small kernel's time. The first runs of a turn, which belong to the one before, do not count;
    who follows whom is balanced; and the baseline plays once more as a rival of itself, the noise floor.

    A launch on a GPU: evict L2 by reading a clean buffer; event; the block; event. All of it waits in the
    stream behind a gate until it is queued, so that no launch latency lies between the events; a sample is
    the mean of eight such launches (one where it takes longer than 0.5 ms). From it is taken what the same
    events read too much around an empty kernel, timed in turn with the block; time_ms_raw and bias_ms keep
    both. The stream is a blocking one: work put on the default stream by mistake is waited for, not missed.
    A sample on the CPU: as many calls of the block as the clock needs to resolve them, divided by their number.

    The program starts itself again as a worker and runs the cases there. A case that crashes, hangs or exits
    loses its own number and no other. Results go to stdout, everything else to stderr. Under compute-sanitizer
    or Nsight Compute it is one process; a few launches of every case run and are checked, and nothing is timed.

    time_ms is the median. The interval is that of the median (order statistics: Le Boudec, Performance
    Evaluation, 2010), for as many values as the samples are worth, given how they hang together.
    gpu_efficiency is the larger of bytes a second over the copy bandwidth and operations a second over the
    arithmetic rate, both measured on this very device, not a data sheet's.

COMMAND LINE

    prog [options] [FILTER...]      --help lists the options of this build; FILTER is a regular expression
    exit codes: 0 fine; 1 a case failed or was wrong; 2 usage, nothing matched, file not writable;
    77 every selected case needs a GPU and there is none; 130 interrupted, with all that finished written

MEMORY RULES

    KB_ALLOC, KB_ALLOC_HOST and KB_ALLOC_PINNED belong to the case: freed by kbench when the function
    returns. Contents are 0xFF bytes (a NaN in every float type) until filled. 4 KiB on both sides are
    guarded; a write there is reported as OVERRUN. What the function allocates itself it frees itself; what it
    does not free is reported as leaked. Where nothing can be allocated the pointer is NULL, the case is marked
    OOM, and every later kb_ call of this case does nothing.

THE RECORD

    --json FILE writes an array of objects, one a case; --jsonl FILE appends the same objects, one a line, each
    synced before the next case starts. All values are scalars but params (an object of the axes), samples_ms,
    process_ms and flags (lists). The keys stand in one table, KB_RECORD in >>types, with
    their groups, units and meanings: it makes the fields of kb_result and the file, in that order, all always
    present, null where they do not apply. A record says all that the table on the terminal shows of its case.
    schema 2 (0.1.0): planned, stage_shared, winner, winner_certain, roof, the machine's roofs, tool and no_gpu, binary,
    launches_per_sample, samples_retaken, processes, process_ms came to 1; files of schema 1 lack these.

LAST REVISIONS

    0.1.0   the first: faces, plan, measurement with gate and clean eviction, record, table, supervisor
*/
#ifndef KBENCH_H
#define KBENCH_H

/*---------------------------------------------------------------------------------------------------------------
  >>options   What to define before including the file.
              Public: KBENCH_*
              Used by: programs, >>api, >>macros, >>cxx, foundation, >>registry, >>cli, measure, >>verdict,
                       >>record, program
---------------------------------------------------------------------------------------------------------------*/

/*  KBENCH_IMPLEMENTATION     in one file: brings the code, not only the declarations
    KBENCH_CUDA               in the file with the implementation, if it is compiled by a C or C++ compiler but
                              has the CUDA runtime at hand (-I, -lcudart), and in C or C++ files whose timed
                              blocks are GPU work; under nvcc it is implied
    KBENCH_NO_CUDA            no GPU support, also under nvcc
    KBENCH_MALLOC(bytes), KBENCH_REALLOC(p, bytes), KBENCH_FREE(p)
                              the host allocator of the harness itself; define all three or none  */

#define KBENCH_VERSION_MAJOR 0
#define KBENCH_VERSION_MINOR 1
#define KBENCH_VERSION_PATCH 0
#define KBENCH_VERSION "0.1.0"

#if defined(KBENCH_MALLOC) != defined(KBENCH_FREE) || defined(KBENCH_MALLOC) != defined(KBENCH_REALLOC)
#error "kbench.h: define all of KBENCH_MALLOC, KBENCH_REALLOC and KBENCH_FREE, or none of them"
#endif

// strict -std=c11 hides POSIX; this must come before the first system header, and cannot when the user's came
// earlier: >>util declares then what it needs
#if defined(KBENCH_IMPLEMENTATION) && !defined(_GNU_SOURCE) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__cplusplus) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS))
#define KBI_EXCEPTIONS 1
#include <new> // the smallest header that has std::exception; CUDA's own bring it anyway
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

// kbench_0_1_0 and kbench_0_1_0_built_with_KBENCH_CUDA: what a file with benchmarks asks of the implementation that it
// is linked with. Where that is of another version or without CUDA the link fails, and the name says why.
#define KBI_DEMAND_(major, minor, patch) kbench_##major##_##minor##_##patch
#define KBI_DEMAND_CUDA_(major, minor, patch) kbench_##major##_##minor##_##patch##_built_with_KBENCH_CUDA
#define KBI_DEMAND_OF(demand, major, minor, patch) demand(major, minor, patch)
#define KBI_DEMAND KBI_DEMAND_OF(KBI_DEMAND_, KBENCH_VERSION_MAJOR, KBENCH_VERSION_MINOR, KBENCH_VERSION_PATCH)
#define KBI_DEMAND_CUDA \
    KBI_DEMAND_OF(KBI_DEMAND_CUDA_, KBENCH_VERSION_MAJOR, KBENCH_VERSION_MINOR, KBENCH_VERSION_PATCH)

#if defined(__GNUC__) || defined(__clang__)
#define KBI_PRINTF(at, first) __attribute__((format(printf, at, first)))
#define KBI_CONSTRUCTOR __attribute__((constructor))
#define KBI_INLINE static inline __attribute__((unused))
#else
#error "kbench.h needs gcc, clang or nvcc on top of one of them (constructors register the benchmarks)"
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>types     dtypes, flags, axes, descriptions, statistics, the record.
              Public: all of it      Used by: programs, everything after it
---------------------------------------------------------------------------------------------------------------*/

typedef struct CUstream_st* kb_stream; // is cudaStream_t; NULL on the cpu backend

typedef enum kb_dtype {
    KB_NODTYPE,
    KB_F32,
    KB_F64,
    KB_F16,
    KB_BF16,
    KB_I8,
    KB_U8,
    KB_I16,
    KB_U16,
    KB_I32,
    KB_U32,
    KB_I64,
    KB_U64
} kb_dtype;

typedef struct kb_f16 {
    uint16_t bits;
} kb_f16; // IEEE binary16 where the compiler has no type for it
typedef struct kb_bf16 {
    uint16_t bits;
} kb_bf16; // bfloat16, likewise

// What kb_fill writes. Values depend on the seed, the element's index and the number of kb_fill calls before it
// in the function, and on nothing else. Integers: KB_UNIFORM all bits, KB_NORMAL round(8 * normal) clamped.
typedef enum kb_kind {
    KB_ZERO,
    KB_NORMAL,  // mean 0, deviation 1
    KB_UNIFORM, // [0, 1)
    KB_IOTA     // 0, 1, 2, ...
} kb_kind;

// Where kb_alloc puts a block: what KB_ALLOC, KB_ALLOC_HOST and KB_ALLOC_PINNED pass.
typedef enum kb_place { KB_DEVICE, KB_HOST, KB_PINNED } kb_place;

// What a timed block is allowed to do because it is the thing being measured; see kb_expect.
typedef enum kb_expectation {
    KB_EXPECT_TRANSFER = 1, // copies
    KB_EXPECT_ALLOC = 2,    // allocation and release: timed by the host clock, mode wall
    KB_EXPECT_SYNC = 4      // synchronisation: timed by the host clock, mode wall
} kb_expectation;

// Which machine an implementation can run on; see kb_entry.
typedef enum kb_needs { KB_NEEDS_NOTHING, KB_NEEDS_GPU, KB_NEEDS_CPU } kb_needs;

// Flags: an ERROR takes the number away and puts its word in the table; a WARN stands beside the number.
//      name           level  advice
// clang-format off
#define KB_FLAGS(x)                                                                                            \
    x(VERIFY_FAIL,     ERROR, "the output is wrong: fix the kernel, or the tolerance")                            \
    x(STALE,           ERROR, "each launch has to write its output: state that outlives one must be reset")       \
    x(CUDA_ERROR,      ERROR, "compute-sanitizer finds where")                                                    \
    x(NO_WORK,         ERROR, "launch on kb->stream; host code is timed with KB_TIME_HOST, and kept with kb_keep") \
    x(NO_LOOP,         ERROR, "put the work to be timed into KB_TIME(kb) { ... }")                                \
    x(LEFT_EARLY,      ERROR, "no break, return or goto out of the timed block; continue is fine")                \
    x(TRANSFER,        ERROR, "move copies out of the timed block, or kb_expect(kb, KB_EXPECT_TRANSFER)")         \
    x(SYNC_INSIDE,     ERROR, "move the waiting out of the timed block, or kb_expect(kb, KB_EXPECT_SYNC)")        \
    x(ALLOC_INSIDE,    ERROR, "move allocations out of the timed block (cuBLAS: give the handle a workspace), "   \
                              "or kb_expect(kb, KB_EXPECT_ALLOC)")                                                \
    x(SIDE_STREAM,     ERROR, "launch and copy on kb->stream")                                                    \
    x(ABOVE_ROOF,      ERROR, "check kb_bytes and kb_flops, and what is really computed")                         \
    x(NOT_COLD,        ERROR, "the L2 cache could not be evicted between samples")                                \
    x(TIMEOUT,         ERROR, "raise --timeout, or look for a hang")                                              \
    x(OOM,             ERROR, "choose a smaller size")                                                            \
    x(CRASHED,         ERROR, "--no-isolate under a debugger shows where")                                        \
    x(OVERRUN,         ERROR, "something wrote beside a buffer: compute-sanitizer finds where")                   \
    x(BAD_CASE,        ERROR, "mend the benchmark's function")                                                    \
    x(FLOOR,           WARN,  "what the bias may be off is over 2 % of the time; time more work per launch")          \
    x(QUANTISED,       WARN,  "few distinct times: the timer's step is a large part of the time")                  \
    x(UNGATED,         WARN,  "launch latency may be in the time; submit less, and do not wait, in the block") \
    x(UNVERIFIED,      WARN,  "no kb_check looked at the output")                                                  \
    x(THROTTLED,       WARN,  "the GPU lowered its clock for power or heat while this ran")                        \
    x(CLOCK_VARIES,    WARN,  "the SM clock changed by more than 2 % while this ran")                              \
    x(UNSETTLED,       WARN,  "times or clock had not settled when the warm-up ran out; try --thorough")           \
    x(DRIFT,           WARN,  "the time drifts while being measured; the median lies between two states")          \
    x(AUTOCORR,        WARN,  "consecutive samples resemble each other; the interval allows for it, roughly")      \
    x(BIMODAL,         WARN,  "the samples fall into two groups; look at samples_ms")                              \
    x(OUTLIERS,        WARN,  "more than 5 % of the samples lie far outside; something else uses this machine?")   \
    x(FEW,             WARN,  "too few samples for an interval; raise --max-time")                                 \
    x(SHARED_GPU,      WARN,  "other processes use this GPU")                                                      \
    x(CONSTANT_DATA,   WARN,  "inputs are constant; real data can run slower")                                     \
    x(LEAK,            WARN,  "the function left device memory allocated")                                         \
    x(DEBUG_BUILD,     WARN,  "compiled without optimisation; use -O2 or -O3")
// clang-format on

typedef enum kb_flag {
#define KBI_X(name, level, advice) KB_FLAG_##name,
    KB_FLAGS(KBI_X)
#undef KBI_X
        KB_FLAG_COUNT
} kb_flag; // the record's flags are a mask: (flags >> KB_FLAG_FLOOR) & 1

// One axis of a benchmark: built by KB_AXIS, KB_AXIS_REAL, KB_AXIS_STR, KB_DTYPE, KB_SIZE.
#define KB_AXIS_MAX 32
typedef enum kb_axis_type { KB_AXIS_END, KB_AXIS_INTS, KB_AXIS_REALS, KB_AXIS_STRINGS, KB_AXIS_SIZE } kb_axis_type;
typedef struct kb_axis {
    const char* name; // KB_AXIS_SIZE: the category (small, medium, large, batch, or your own)
    kb_axis_type type;
    int64_t i[KB_AXIS_MAX + 1];     // ends with KB_LAST_INT
    double r[KB_AXIS_MAX + 1];      // ends with KB_LAST_REAL
    const char* s[KB_AXIS_MAX + 1]; // ends with NULL; KB_AXIS_SIZE: one string "rows=512 cols=1024:4096:*2"
} kb_axis;
#define KB_LAST_INT INT64_MIN
#define KB_LAST_REAL __builtin_nan("") // so every number can be a value, infinities too; a NaN cannot

typedef struct kb_state kb_state;
typedef void (*kb_body)(kb_state* kb);

// How a file was compiled: what the record says of the one that registers or opens a benchmark.
typedef struct kb_build {
    const char* compiler; // its version, in its own words
    bool optimised, cuda;
    void (*call)(kb_body body, kb_state* kb); // C++: calls body; what it throws goes to the record. NULL: C
    const char* demand;                       // of the implementation, at the link
} kb_build;

// One implementation of one operation, as the KBENCH macros register it. Programs with a table of kernels
// fill it themselves and call kb_add; everything pointed to must live as long as the program.
typedef struct kb_entry {
    const char* operation;
    const char* implementation;
    kb_body body;
    void* user;          // kb->user in the body
    const kb_axis* axes; // ends with an axis of type KB_AXIS_END; NULL: none
    const char* origin;  // "own", "vendor" or "user" (the default)
    int rung;            // step of a ladder, 0: none
    kb_needs needs;      // not planned on a machine without it
    int min_sm;          // lowest compute capability, 90 for 9.0; 0: any
    const char* note;    // one line for --list-ops -v
    // set by kb_add
    const char* file;
    int line, order;
    const kb_build* build;
    struct kb_entry* next;
} kb_entry;

// What a body sees. Fields are read-only.
struct kb_state {
    kb_stream stream; // launch here
    kb_dtype dtype;   // from KB_DTYPE; KB_NODTYPE without it
    const char* operation;
    const char* implementation;
    const char* direction; // from an axis of strings named "dir"; NULL without it
    void* user;            // from kb_entry or kb_run
    uint64_t seed;         // --seed, 42 by default
    bool gpu;              // KB_DEVICE memory lies on a GPU
    struct kbi_run* run;   // the engine's own
};

// What kb_open and kb_run take. Zero means default; fields stand in the order people write them.
typedef struct kb_desc {
    const char* name;                             // the operation; required
    const char* implementation;                   // "default"
    const char* dtype;                            // "f32", "bf16", ...: for the record, and for kb->dtype
    double bytes, flops, items;                   // per launch; also settable by kb_bytes, ...
    void (*before)(kb_stream stream, void* user); // kb_run: untimed reset before each sample
    void* user;                                   // kb->user; kb_run passes its own
    int64_t samples;                              // exactly so many, instead of a precision
    double precision;                             // half-width of the interval over the median to stop at; 0.005
    double max_time;                              // seconds of sampling; 1
    unsigned expect;                              // kb_expectation
    uint64_t seed;                                // 42
    int device;                                   // which GPU, 0 first; the same in all of a process
    bool host;                                    // kb_run: the function is host code, as with KB_TIME_HOST
    uint32_t end_canary;                          // leave zero: guards against an uninitialised struct
} kb_desc;

// Summary of one sample, in the unit of its values. NAN means "not available". A sample that holds a value
// that is not finite, or beyond 1e150 in magnitude (its square has no double), keeps n; the rest is NAN, 0.
typedef struct kb_stats {
    int64_t n;              // values; none is ever dropped
    double median;          // quantile 0.5. Quantiles are linear between order statistics (Hyndman and Fan
                            // 1996, type 7; NumPy's default)
    double mean;            // arithmetic mean
    double std;             // standard deviation, divisor n - 1; NAN below 2 values
    double min;             // smallest value
    double max;             // largest value
    double mad;             // median of |x - median|, unscaled (times 1.4826 it estimates a normal's std)
    double cv;              // std / mean, no unit; NAN below 2 values, or next to a mean of 0
    double p5;              // quantile 0.05
    double p25;             // quantile 0.25
    double p75;             // quantile 0.75
    double p95;             // quantile 0.95
    double p99;             // quantile 0.99; NAN below 300 values: fewer than 3 would lie above it
    double ci_low, ci_high; // 95 % interval of the median, which lies in it, widened for what the values have to
                            // do with each other; below 6 values no such interval exists: NAN
    double precision;       // (ci_high - ci_low) / 2 / |median|, no unit; NAN below 6 values, or next to a
                            // median of 0
    double outliers_mild;   // fraction of n beyond 1.5 but not 3 interquartile ranges from p25, p75 (Tukey
                            // 1977)
    double outliers_severe; // fraction of n beyond 3; a range below the timer's step counts as one step
    double lag1;            // autocorrelation at lag 1, -1 to 1; NAN below 3 values, or if all are equal
    double drift;           // (median of the last 3 of 10 block medians - of the first 3) / |median|; NAN
                            // below 30 values, or next to a median of 0
    int drift_significant;  // 1: |drift| above 1 %, and an exact test of the order of the block medians has
                            // p below 0.01
    int bimodal;            // 1: two modes: an almost empty stretch (2 % of the values at most) with 10 % of
                            // the values on each side, wider than 5 MAD of either side, 5 steps of the timer
                            // and 1 % of the median; 0 below 30 values
    int64_t distinct;       // different values; few mean a coarse timer
    double effective;       // independent values that the n are worth to the median, at most n; below 6 the interval
                            // is a wide guess: take more samples. NAN below 6 values
} kb_stats;

// What an interval of the speedup (the baseline's time / this one's) says.
typedef enum kb_verdict {
    KB_NO_VERDICT, // nothing was compared
    KB_FASTER,     // the whole interval lies above 1 and above the noise floor
    KB_SLOWER,     // the whole interval lies below 1 and below the noise floor
    KB_EQUIVALENT, // the whole interval lies within the margin; goes before FASTER and SLOWER
    KB_UNRESOLVED  // too few rounds, or too much noise, to say any of these
} kb_verdict;
typedef enum kb_status { KB_OK, KB_FAILED, KB_SKIPPED } kb_status;

typedef struct kb_param { // one axis's value in one case
    const char* name;
    kb_axis_type type;
    int64_t i;
    double r;
    const char* s;
} kb_param;

// The record of a case. One table gives the struct, the JSON with its order, and what --columns and --sort can name.
// Kinds: text (NULL is null), real (NaN is null), whole (int64_t, KB_NONE is null), truth (int: 1, 0, or -1 for null),
// and those that have a form of their own: params, samples, flags, and the enums status and verdict.
#define KB_NONE INT64_MIN
// clang-format off
//    kind     key                    group    meaning, with its unit
#define KB_RECORD(x)                                                                                                  \
    x(text,    name,                  what,    "operation, dir, impl, dtype and axes: unique within a run")           \
    x(text,    operation,             what,    "what is computed")                                                    \
    x(text,    direction,             what,    "fwd, bwd, ...: the value of the axis dir")                            \
    x(text,    implementation,        what,    "how it is computed")                                                  \
    x(text,    origin,                what,    "own, vendor or user")                                                 \
    x(whole,   rung,                  what,    "step of the ladder from naive up")                                    \
    x(text,    dtype,                 what,    "element type")                                                        \
    x(whole,   batch_size,            what,    "value of the axis of that name")                                      \
    x(whole,   sequence_length,       what,    "value of the axis of that name")                                      \
    x(whole,   tensor_dimension,      what,    "value of the axis of that name")                                      \
    x(params,  params,                what,    "every axis and its value; numbers are numbers")                       \
    x(whole,   planned,               what,    "cases of this operation and direction that the run set out for")      \
    x(real,    time_ms,               time,    "ms a launch: the median, less bias_ms")                               \
    x(real,    time_ms_mean,          time,    "ms: arithmetic mean")                                                 \
    x(real,    time_ms_std,           time,    "ms: standard deviation, divisor n - 1")                               \
    x(real,    time_ms_min,           time,    "ms: shortest")                                                        \
    x(real,    time_ms_max,           time,    "ms: longest")                                                         \
    x(real,    time_ms_mad,           time,    "ms: median of |x - median|, unscaled")                                \
    x(real,    time_ms_p5,            time,    "ms: quantile 0.05")                                                   \
    x(real,    time_ms_p25,           time,    "ms: quantile 0.25")                                                   \
    x(real,    time_ms_p75,           time,    "ms: quantile 0.75")                                                   \
    x(real,    time_ms_p95,           time,    "ms: quantile 0.95")                                                   \
    x(real,    time_ms_p99,           time,    "ms: quantile 0.99, from 300 samples")                                 \
    x(real,    time_ms_ci_low,        time,    "ms: lower end of the median's 95 % interval")                         \
    x(real,    time_ms_ci_high,       time,    "ms: its upper end")                                                   \
    x(real,    cv,                    time,    "std over mean, no unit")                                              \
    x(real,    precision,             time,    "half the interval over the median, no unit")                          \
    x(whole,   samples,               time,    "how many were taken; none is dropped")                                \
    x(samples, samples_ms,            time,    "ms: each, in the order they were taken")                              \
    x(text,    mode,                  time,    "cold, hot, rotate, cupti or wall: how the block was timed")           \
    x(real,    time_ms_raw,           time,    "ms: the median before the bias was taken off")                        \
    x(real,    bias_ms,               time,    "ms that the timer reads too much, taken off each sample")             \
    x(real,    floor_ms,              time,    "ms that an empty kernel reads in this mode")                          \
    x(real,    wall_ms,               time,    "ms that the case took in all")                                        \
    x(whole,   launches_per_sample,   time,    "runs of the block whose mean is one sample")                          \
    x(whole,   samples_retaken,       time,    "samples taken anew because something disturbed them")                 \
    x(whole,   processes,             time,    "processes that the samples come from")                                \
    x(samples, process_ms,            time,    "ms: the median of each process")                                      \
    x(real,    inference_speed,       rate,    "launches a second, 1000 / time_ms")                                   \
    x(real,    throughput_gbps,       rate,    "1e9 bytes a second, by kb_bytes")                                     \
    x(real,    gflops,                rate,    "1e9 operations a second, by kb_flops")                                \
    x(real,    items_per_second,      rate,    "items a second, by kb_items")                                         \
    x(real,    queries_per_second,    rate,    "queries a second, by kb_queries")                                     \
    x(real,    gpu_efficiency,        rate,    "percent of the measured roof that is nearest")                        \
    x(text,    roof,                  rate,    "which roof that is")                                                  \
    x(text,    bound,                 rate,    "memory, compute or latency")                                          \
    x(real,    bytes,                 rate,    "bytes a launch, as declared")                                         \
    x(real,    flops,                 rate,    "operations a launch, as declared")                                    \
    x(real,    memory_mb,             memory,  "MiB of device memory at the case's peak")                             \
    x(whole,   memory_bytes,          memory,  "the same in bytes")                                                   \
    x(real,    host_memory_mb,        memory,  "MiB of host memory at the case's peak")                               \
    x(whole,   leaked_bytes,          memory,  "bytes of device memory that the function left allocated")             \
    x(text,    baseline,              contest, "implementation that the others of the group are compared with")       \
    x(real,    speedup,               contest, "the baseline's time over this one's, from common rounds")             \
    x(real,    speedup_low,           contest, "lower end of its interval, 95 % for all of the group at once")        \
    x(real,    speedup_high,          contest, "its upper end")                                                       \
    x(real,    noise_floor,           contest, "how far from 1 the baseline's ratio to itself may lie")               \
    x(verdict, verdict,               contest, "FASTER, SLOWER, EQUIVALENT, UNRESOLVED than the baseline")            \
    x(text,    rating,                contest, "best verified time over this: excellent 0.8, good 0.5, fair 0.2")     \
    x(truth,   stage_shared,          contest, "whether all rivals had their data at the same addresses and pages")   \
    x(text,    winner,                contest, "implementation that was fastest, of two or more that have times")     \
    x(truth,   winner_certain,        contest, "whether it is surely faster than each of the others")                 \
    x(status,  status,                trust,   "ok, failed, skipped")                                                 \
    x(truth,   verified,              trust,   "whether a check passed; null: nothing was checked")                   \
    x(real,    max_error,             trust,   "largest error that the checks saw")                                   \
    x(real,    tolerance,             trust,   "what they allowed")                                                   \
    x(flags,   flags,                 trust,   "names of KB_FLAGS")                                                   \
    x(text,    message,               trust,   "what was remarked, for people")                                       \
    x(text,    kernel,                kernel,  "name of the block's first kernel, as the audit saw it")               \
    x(text,    grid,                  kernel,  "its blocks, XxYxZ")                                                   \
    x(text,    block,                 kernel,  "its threads in a block, XxYxZ")                                       \
    x(whole,   registers,             kernel,  "a thread")                                                            \
    x(whole,   shared_bytes,          kernel,  "bytes of shared memory a block")                                      \
    x(whole,   local_bytes,           kernel,  "bytes of local memory a thread")                                      \
    x(real,    occupancy_theoretical, kernel,  "percent of the threads that fit on a multiprocessor")                 \
    x(real,    occupancy_achieved,    kernel,  "percent, as counters saw it")                                         \
    x(text,    backend,               machine, "cuda, cpu; script in tests")                                          \
    x(whole,   device,                machine, "number of the GPU")                                                   \
    x(text,    gpu,                   machine, "its name")                                                            \
    x(text,    compute_capability,    machine, "9.0")                                                                 \
    x(text,    driver,                machine, "its version")                                                         \
    x(text,    cuda,                  machine, "version of the runtime")                                              \
    x(text,    no_gpu,                machine, "why there is none, for people; null with one")                        \
    x(text,    tool,                  machine, "compute-sanitizer or the like, under which nothing is timed")         \
    x(real,    copy_roof_gbps,        machine, "1e9 bytes a second of the best copy, read and written")               \
    x(real,    read_roof_gbps,        machine, "1e9 bytes a second of the best read")                                 \
    x(real,    write_roof_gbps,       machine, "1e9 bytes a second of the best write")                                \
    x(real,    sm_clock_mhz,          machine, "MHz at the end of the samples")                                       \
    x(real,    memory_clock_mhz,      machine, "MHz")                                                                 \
    x(truth,   clocks_locked,         machine, "whether somebody fixed the clocks")                                   \
    x(real,    power_w,               machine, "W at the end of the samples")                                         \
    x(real,    energy_mj,             machine, "mJ a launch")                                                         \
    x(real,    temperature_c,         machine, "degrees Celsius")                                                     \
    x(text,    throttle,              machine, "why the clock was lowered")                                           \
    x(truth,   ecc,                   machine, "whether error correction is on")                                      \
    x(truth,   mig,                   machine, "whether the GPU is partitioned")                                      \
    x(text,    host,                  machine, "its name")                                                            \
    x(text,    cpu,                   machine, "its processor")                                                       \
    x(text,    kernel_version,        machine, "of the operating system")                                             \
    x(text,    kbench_version,        run,     "of the program that measured")                                        \
    x(whole,   schema,                run,     "of this table; 2")                                                    \
    x(text,    date,                  run,     "UTC, 2026-01-31T23:59:59Z")                                           \
    x(text,    binary,                run,     "hash of the executable")                                              \
    x(text,    command,               run,     "the command line")                                                    \
    x(whole,   seed,                  run,     "of data and order")                                                   \
    x(text,    git_commit,            run,     "of the folder in which the program ran")                              \
    x(text,    build,                 run,     "compiler and options")                                                \
    x(text,    run_id,                run,     "the same for all records of a run, and for no others")                \
    x(text,    shard,                 run,     "K/N, the part of the plan that this run was")
// clang-format on

typedef const char* kbi_field_text;
typedef double kbi_field_real;
typedef int64_t kbi_field_whole;
typedef int kbi_field_truth;
typedef struct kbi_field_params {
    const kb_param* of;
    int64_t n;
} kbi_field_params;
typedef struct kbi_field_samples {
    const double* of;
    int64_t n;
} kbi_field_samples;
typedef uint64_t kbi_field_flags;
typedef kb_status kbi_field_status;
typedef kb_verdict kbi_field_verdict;

typedef struct kb_result {
#define KBI_X(kind, key, group, meaning) kbi_field_##kind key;
    KB_RECORD(KBI_X)
#undef KBI_X
    struct kbi_arena* owned; // strings, params and samples: kb_result_free gives them back
} kb_result;

/*---------------------------------------------------------------------------------------------------------------
  >>api       Functions, by task. All take what they need and keep no pointer of yours unless it says so.
              Public: all of it      Used by: programs, >>macros, >>cxx, >>handed, >>record, >>selftest
---------------------------------------------------------------------------------------------------------------*/

#ifdef __cplusplus
extern "C" {
#endif

// --- run ---

// What KBENCH_MAIN() calls: reads the command line, runs what is registered, returns the exit code.
int kb_main(int argc, char** argv);
// kb_add, kb_open and kb_run (see the end of this section) for other languages: build may be NULL.
void kb_add_from(kb_entry* entry, const kb_build* build);
kb_state* kb_open_from(const kb_desc* desc, const kb_build* build);
kb_result kb_run_from(const kb_desc* desc, void (*fn)(kb_stream stream, void* user), void* user,
                      const kb_build* build);
kb_result kb_close(kb_state* kb); // of a kb_open
void kb_result_free(kb_result* result);
// Results as the table (stdout), or as a JSON array in a file, replaced as a whole; false: see stderr.
void kb_print(const kb_result* results, int64_t n);
bool kb_write_json(const kb_result* results, int64_t n, const char* path);

// --- the case: values of this case's axes; an unknown name fails the case and lists the axes ---

int64_t kb_int(kb_state* kb, const char* axis);
double kb_real(kb_state* kb, const char* axis);
const char* kb_str(kb_state* kb, const char* axis);
bool kb_has(kb_state* kb, const char* axis); // whether the case has such an axis; fails nothing

// --- what one launch of the block does; doubles, because products of sizes overflow ints ---

void kb_bytes(kb_state* kb, double bytes);   // compulsory traffic: gives GB/s and % of the machine
void kb_flops(kb_state* kb, double flops);   // arithmetic: gives GFLOP/s
void kb_items(kb_state* kb, double items);   // anything else worth a rate: the record's items_per_second
void kb_queries(kb_state* kb, double items); // as kb_items, and the record's queries_per_second

// --- memory ---

// count elements of size bytes, 256-byte aligned, poisoned, tracked, freed by kbench; NULL marks the case OOM.
void* kb_alloc(kb_state* kb, kb_place place, size_t size, int64_t count);
// Copies between the host and memory of kb_alloc, ordered after everything on kb->stream; untimed places only.
void kb_to_host(kb_state* kb, void* host, const void* from, size_t bytes);
void kb_from_host(kb_state* kb, void* to, const void* host, size_t bytes);

// --- correctness: after the timed block (before it: BAD_CASE, since it would see nothing of what the block writes).
// Each returns whether it passed, and false in a case that already failed ---

// got lies where kb_alloc put it, want on the host. Passes when |got - want| <= tolerance * (1 + |want|) for every
// element; NaN passes only where want is NaN, an infinity only where want is the same infinity.
bool kb_check_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type, int64_t n,
                    double tolerance);
// Norm-wise: sqrt(sum (got - want)^2) <= tolerance * sqrt(sum want^2); NaN and infinity as above.
bool kb_check_norm_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                         int64_t n, double tolerance);
// |got - want| <= ulps units in the last place of got's type at want.
bool kb_check_ulp_typed(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                        int64_t n, double ulps);
// A verdict of your own: counts as a check. error is for the record; the text says what was wrong.
bool kb_check_that(kb_state* kb, bool passed, double error, double tolerance, const char* format, ...)
    KBI_PRINTF(5, 6);

// --- words ---

void kb_skip(kb_state* kb, const char* format, ...) KBI_PRINTF(2, 3); // this case does not apply here; then return
void kb_fail(kb_state* kb, const char* format, ...) KBI_PRINTF(2, 3); // this case cannot be measured; then return
void kb_note(kb_state* kb, const char* format, ...) KBI_PRINTF(2, 3); // goes to the record's message
void kb_expect(kb_state* kb, unsigned expectations);                  // before the timed block; kb_expectation

// --- statistics and names ---

// Of n samples in the order they were taken. A sample with a NaN or infinity in it gives NaN throughout.
kb_stats kb_summarize(const double* samples, int64_t n);
const char* kb_dtype_name(kb_dtype dtype); // "f32"
kb_dtype kb_dtype_of(const char* name);    // KB_NODTYPE when unknown
size_t kb_dtype_size(kb_dtype dtype);      // bytes
const char* kb_flag_name(kb_flag flag);    // "FLOOR"
const char* kb_flag_advice(kb_flag flag);
bool kb_flag_is_error(kb_flag flag);

// --- what the macros call ---

int64_t kbi_next(kb_state* kb, bool host, int line);
bool kbi_sample(kb_state* kb);
void kbi_leave(kb_state* kb);
void kbi_fill(kb_state* kb, void* p, kb_dtype dtype, int64_t n, kb_kind kind);
void kbi_register(kb_entry* entry, int words, const char* names, const kb_build* build);
void kbi_threw(kb_state* kb, const char* what);
extern const char KBI_DEMAND[], KBI_DEMAND_CUDA[];

// --- benchmarks of a program's own making: the record says how the file that calls these was compiled ---

#if KBI_EXCEPTIONS
KBI_INLINE void kbi_call_body(kb_body body, kb_state* kb) {
    try {
        body(kb);
    } catch (const std::exception& e) { kbi_threw(kb, e.what()); } catch (const char* text) {
        kbi_threw(kb, text);
    } catch (...) { kbi_threw(kb, 0); }
}
#endif

KBI_INLINE const kb_build* kbi_build(void) {
    static const kb_build build = {
        __VERSION__,
        KBI_OPTIMISED,
        KBI_CUDA,
#if KBI_EXCEPTIONS
        kbi_call_body,
#else
        0,
#endif
#if KBI_CUDA
        KBI_DEMAND_CUDA
#else
        KBI_DEMAND
#endif
    };
    return &build;
}

// Registers one implementation. The entry must live as long as the program. Order: file, line, order of the
// call; entries of one operation stand together at the place of the first, which is the baseline.
KBI_INLINE void kb_add(kb_entry* entry) { kb_add_from(entry, kbi_build()); }
// Unregistered: a KB_TIME loop between kb_open and kb_close measures in the calling process. NULL only when out
// of memory; a bad description gives a state whose KB_TIME does not run and whose result says why.
KBI_INLINE kb_state* kb_open(const kb_desc* desc) { return kb_open_from(desc, kbi_build()); }
// Callback form: opens, times fn(stream, user) as the block, closes.
KBI_INLINE kb_result kb_run(const kb_desc* desc, void (*fn)(kb_stream stream, void* user), void* user) {
    return kb_run_from(desc, fn, user, kbi_build());
}

#ifdef __cplusplus
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>macros    The statements a benchmark is written in.
              Public: all but KBI_*      Used by: programs, >>embed, >>selftest
---------------------------------------------------------------------------------------------------------------*/

// clang-format off
// KBENCH(op, axes...): registers the function that follows as operation op, implementation "default".
#define KBENCH(...) KBI_BENCH(__COUNTER__, 1, #__VA_ARGS__, KBI_TAIL_1(__VA_ARGS__, KBI_AXES_END))
// KBENCH_IMPL(op, impl, axes...): one implementation of op. The first registered is the baseline.
#define KBENCH_IMPL(...) KBI_BENCH(__COUNTER__, 2, #__VA_ARGS__, KBI_TAIL_2(__VA_ARGS__, KBI_AXES_END))
// A main function that does everything.
#define KBENCH_MAIN()                                                                                            \
    int main(int argc, char** argv) { return kb_main(argc, argv); }

// The timed block: GPU work put on kb->stream where the program is built with CUDA, host work elsewhere.
#define KB_TIME(kb) KBI_TIME(kb, false)
// The timed block is host work, on every machine; mode wall.
#define KB_TIME_HOST(kb) KBI_TIME(kb, true)
// KB_SAMPLE(kb) { reset; KB_TIME(kb) { launch; } } runs the untimed reset before every single timed run.
#define KB_SAMPLE(kb) for (; kbi_sample(kb);)

// Axes. Integers, reals (infinities too), strings; at most KB_AXIS_MAX values, constant expressions. -a NAME=LIST puts
// other values in their place. Where all declared integers are above 0, as with sizes, it takes none below 1; where
// none is negative, none below 0: a function that works with such values says so by declaring one.
#define KB_AXIS(name, ...) { name, KB_AXIS_INTS, { __VA_ARGS__, KB_LAST_INT }, { 0 }, { 0 } }
#define KB_AXIS_REAL(name, ...) { name, KB_AXIS_REALS, { 0 }, { __VA_ARGS__, KB_LAST_REAL }, { 0 } }
#define KB_AXIS_STR(name, ...) { name, KB_AXIS_STRINGS, { 0 }, { 0 }, { __VA_ARGS__, 0 } }
// Element types, "f32", "f16", "bf16", ...: kb->dtype in the body.
#define KB_DTYPE(...) KB_AXIS_STR("dtype", __VA_ARGS__)
// One point (or small grid) of several axes at once, in a category: KB_SIZE("small", "rows=512 cols=256,1024").
#define KB_SIZE(category, spec) { category, KB_AXIS_SIZE, { 0 }, { 0 }, { spec, 0 } }

// n elements of type T: on the GPU (on the cpu backend: host), on the host, on the host page-locked.
#define KB_ALLOC(kb, T, n) ((T*)kb_alloc((kb), KB_DEVICE, sizeof(T), (n)))
#define KB_ALLOC_HOST(kb, T, n) ((T*)kb_alloc((kb), KB_HOST, sizeof(T), (n)))
#define KB_ALLOC_PINNED(kb, T, n) ((T*)kb_alloc((kb), KB_PINNED, sizeof(T), (n)))

// Keeps a value, and what a pointer leads to, from being optimised away. What the compiler knows of the value it still
// knows: arguments that are constants belong into volatile variables.
#define kb_keep(value) __asm__ __volatile__(KBI_MARK("%c1") : : "r,m"(value), "i,i"(2 * __LINE__) : "memory")
// Notes a line in a section of its own, at no cost at run time: an empty block is told from one that keeps something.
#define KBI_MARK(line) ".pushsection kbi_marks,\"a\"\n\t.long " line "\n\t.popsection"

#ifndef __cplusplus // C++ has overloads for these in >>cxx
#define KB_TYPE_OF(p)                                                                                            \
    _Generic(*(p), float: KB_F32, double: KB_F64, kb_f16: KB_F16, kb_bf16: KB_BF16, signed char: KB_I8,            \
        char: KB_I8, unsigned char: KB_U8, short: KB_I16, unsigned short: KB_U16, int: KB_I32, unsigned: KB_U32,  \
        long: sizeof(long) == 8 ? KB_I64 : KB_I32, unsigned long: sizeof(long) == 8 ? KB_U64 : KB_U32,            \
        long long: KB_I64, unsigned long long: KB_U64)
#define kb_fill(kb, p, n, kind) kbi_fill((kb), (p), KB_TYPE_OF(p), (n), (kind))
#define kb_check(kb, got, want, n, tolerance)                                                                    \
    kb_check_typed((kb), (got), KB_TYPE_OF(got), (want), KB_TYPE_OF(want), (n), (tolerance))
#define kb_check_norm(kb, got, want, n, tolerance)                                                               \
    kb_check_norm_typed((kb), (got), KB_TYPE_OF(got), (want), KB_TYPE_OF(want), (n), (tolerance))
#define kb_check_ulp(kb, got, want, n, ulps)                                                                     \
    kb_check_ulp_typed((kb), (got), KB_TYPE_OF(got), (want), KB_TYPE_OF(want), (n), (ulps))
#endif

// Each pass of the loop is one run of the block; kbi_next says how many are to follow without coming back to it, so a
// block of a few nanoseconds is timed without a call in between. In C++ the loop knows when it is left in its middle.
#ifdef __cplusplus
#define KBI_TIME(kb, host)                                                                                       \
    for (kbi_loop kbi_this(kb); kbi_this.left > 0 || (kbi_this.left = kbi_next((kb), (host), __LINE__)) > 0;       \
         --kbi_this.left)
#else
#define KBI_TIME(kb, host)                                                                                       \
    for (int64_t kbi_left = 0; kbi_left > 0 || (kbi_left = kbi_next((kb), (host), __LINE__)) > 0; --kbi_left)
#endif

#define KBI_AXES_END { 0, KB_AXIS_END, { 0 }, { 0 }, { 0 } }
#define KBI_TAIL_1(...) KBI_TAIL_1_(__VA_ARGS__)
#define KBI_TAIL_1_(op, ...) __VA_ARGS__
#define KBI_TAIL_2(...) KBI_TAIL_2_(__VA_ARGS__)
#define KBI_TAIL_2_(op, impl, ...) __VA_ARGS__
#define KBI_BENCH(n, words, names, ...) KBI_BENCH_(n, words, names, __VA_ARGS__)
#define KBI_BENCH_(n, words, names, ...)                                                                         \
    static void kbi_body_##n(kb_state* kb);                                                                      \
    static const kb_axis kbi_axes_##n[] = { __VA_ARGS__ };                                                       \
    static kb_entry kbi_entry_##n = { 0, 0, kbi_body_##n, 0, kbi_axes_##n, 0, 0, KB_NEEDS_NOTHING, 0, 0,         \
                                      __FILE__, __LINE__, n + 1, 0, 0 };                                         \
    KBI_CONSTRUCTOR static void kbi_register_##n(void) {                                                         \
        __asm__ __volatile__(KBI_MARK("%c0") : : "i"(2 * __LINE__ + 1));                                         \
        kbi_register(&kbi_entry_##n, words, names, kbi_build());                                                 \
    }                                                                                                            \
    static void kbi_body_##n(kb_state* kb)
// clang-format on

/*---------------------------------------------------------------------------------------------------------------
  >>cxx       Overloads that C++ gets: element types from pointers, descriptions by reference, lambdas.
              Public: kb_fill, kb_check, kb_check_norm, kb_check_ulp, kb_open, kb_run
              Used by: programs, >>macros
---------------------------------------------------------------------------------------------------------------*/

#ifdef __cplusplus
// clang-format off
struct __half;        // cuda_fp16.h
struct __nv_bfloat16; // cuda_bf16.h
template <class T> struct kbi_type;
template <class T> struct kbi_type<const T> : kbi_type<T> {};
#define KBI_X(T, code) template <> struct kbi_type<T> { static const kb_dtype value = code; };
KBI_X(float, KB_F32) KBI_X(double, KB_F64) KBI_X(kb_f16, KB_F16) KBI_X(kb_bf16, KB_BF16) KBI_X(__half, KB_F16)
KBI_X(__nv_bfloat16, KB_BF16) KBI_X(signed char, KB_I8) KBI_X(char, KB_I8) KBI_X(unsigned char, KB_U8)
KBI_X(short, KB_I16) KBI_X(unsigned short, KB_U16) KBI_X(int, KB_I32) KBI_X(unsigned, KB_U32)
KBI_X(long, sizeof(long) == 8 ? KB_I64 : KB_I32) KBI_X(unsigned long, sizeof(long) == 8 ? KB_U64 : KB_U32)
KBI_X(long long, KB_I64) KBI_X(unsigned long long, KB_U64)
#undef KBI_X
    // clang-format on
    template <class T>
    void kb_fill(kb_state* kb, T* p, int64_t n, kb_kind kind) {
    kbi_fill(kb, p, kbi_type<T>::value, n, kind);
}
template <class T, class U> bool kb_check(kb_state* kb, T* got, U* want, int64_t n, double tolerance) {
    return kb_check_typed(kb, got, kbi_type<T>::value, want, kbi_type<U>::value, n, tolerance);
}
template <class T, class U> bool kb_check_norm(kb_state* kb, T* got, U* want, int64_t n, double tolerance) {
    return kb_check_norm_typed(kb, got, kbi_type<T>::value, want, kbi_type<U>::value, n, tolerance);
}
template <class T, class U> bool kb_check_ulp(kb_state* kb, T* got, U* want, int64_t n, double ulps) {
    return kb_check_ulp_typed(kb, got, kbi_type<T>::value, want, kbi_type<U>::value, n, ulps);
}
// Left by an exception, break or return: at once, before whatever the body holds gives its memory back, which would
// wait for a stream that waits for the engine.
struct kbi_loop {
    kb_state* kb;
    int64_t left;
    explicit kbi_loop(kb_state* of) : kb(of), left(0) {}
    ~kbi_loop() {
        if (left > 0) kbi_leave(kb);
    }
};
KBI_INLINE kb_state* kb_open(const kb_desc& desc) { return kb_open(&desc); }
template <class Callable> void kbi_call(kb_stream stream, void* user) { (*(Callable*)user)(stream); }
// fn: anything callable with a kb_stream, a lambda as a rule.
template <class Callable> kb_result kb_run(const kb_desc& desc, Callable fn) {
    return kb_run(&desc, kbi_call<Callable>, &fn);
}
#endif

#endif // KBENCH_H

/*===============================================================================================================
  Stop here if you only want the API.
===============================================================================================================*/

#if defined(KBENCH_IMPLEMENTATION) && !defined(KBENCH_IMPLEMENTED) && !defined(__CUDA_ARCH__)
#define KBENCH_IMPLEMENTED

#if KBI_CUDA
#include <cuda_runtime_api.h>
#endif

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <ucontext.h> // musl has none: there the cases of a group are measured one after another
#define KBI_FIBERS 1
#else
#define KBI_FIBERS 0
#endif

#ifndef KBENCH_MALLOC
#define KBENCH_MALLOC(bytes) malloc(bytes)
#define KBENCH_REALLOC(p, bytes) realloc(p, bytes)
#define KBENCH_FREE(p) free(p)
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>system    foundation: what strict standards hide, what is optimised, and the smallest calls of the system.
              Public: none      Used by: everything after it
---------------------------------------------------------------------------------------------------------------*/

// The feature macros came too late: a system header was included before this file under a strict standard. These are
// POSIX's own prototypes, in the plain types that glibc gives them.
#if !defined(__cplusplus) && defined(_FEATURES_H) && !defined(__USE_POSIX199309)
extern int clock_gettime(int clock, struct timespec* out);
extern int fsync(int file);
extern int fileno(FILE* f);
extern int kill(int process, int signal);
extern int lstat(const char* path, struct stat* out);
#endif
#ifdef CLOCK_MONOTONIC
#define KBI_CLOCK_MONOTONIC CLOCK_MONOTONIC
#else
#define KBI_CLOCK_MONOTONIC 1 // Linux
#endif
#ifndef F_DUPFD_CLOEXEC
#define F_DUPFD_CLOEXEC 1030 // likewise
#endif
#ifdef O_CLOEXEC
#define KBI_CLOEXEC O_CLOEXEC
#else
#define KBI_CLOEXEC 0
#endif
#ifdef O_NOFOLLOW
#define KBI_NOFOLLOW O_NOFOLLOW
#else
#define KBI_NOFOLLOW 0
#endif
#ifdef MAP_ANONYMOUS
#define KBI_MAP_ANONYMOUS MAP_ANONYMOUS
#else
#define KBI_MAP_ANONYMOUS 0x20 // likewise
#endif
#ifdef MAP_NORESERVE
#define KBI_MAP_NORESERVE MAP_NORESERVE
#else
#define KBI_MAP_NORESERVE 0
#endif

// Most of what follows runs once a case: no compiler need spend its user's time on making that fast. What walks over
// data stands between KBI_SLOW_END and KBI_SLOW_BEGIN.
#if defined(__clang__)
#define KBI_SLOW_BEGIN _Pragma("clang optimize off")
#define KBI_SLOW_END _Pragma("clang optimize on")
#else
#ifdef __CUDACC__
#pragma nv_diag_suppress 1675 // cudafe does not know the pragma, the compiler behind it does
#endif
#pragma GCC push_options
#define KBI_SLOW_BEGIN _Pragma("GCC optimize(\"O0\")")
#define KBI_SLOW_END _Pragma("GCC optimize(\"Og\")")
#endif

#define KBI_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define KBI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define KBI_MAX(a, b) ((a) > (b) ? (a) : (b))

// glibc's fortified forms of these complain or fail where they are not optimised, so they stand before the rest.
static int kbi_open_file(const char* path, int flags) { return open(path, flags | KBI_CLOEXEC, 0666); }
// Started with a standard file closed: no file or pipe of ours may get its number, and the table's text with it.
static void kbi_open_standard_files(void) {
    int file = 0;
    while (file >= 0 && file <= 2) file = open("/dev/null", O_RDWR);
    if (file > 2) close(file);
}
static ssize_t kbi_read_some(int file, void* to, size_t n) { return read(file, to, n); }
static char* kbi_get_line(char* to, int size, FILE* f) { return fgets(to, size, f); }
static bool kbi_readable(int file, int milliseconds) { // file -1: only waits
    struct pollfd p = { file, POLLIN, 0 };
    return poll(&p, 1, milliseconds) > 0;
}

KBI_SLOW_BEGIN
/*---------------------------------------------------------------------------------------------------------------
  >>log       foundation: warnings and errors, one line each, on stderr.
              Public: none      Used by: >>util, >>fields, >>registry, plan, >>store, program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_set { // of hashes and addresses
    uint64_t* slots;     // 0: free; at most half are taken
    size_t n, size;
} kbi_set;

// What every process keeps: who it is, and what was registered in it before main.
static struct kbi_process {
    const char* program; // the name that stands before each line; NULL: kbench
    bool quiet;          // --quiet: errors only
    kb_entry* entries;   // constructors of other files push here
    int entry_count;
    kbi_set entry_set; // their addresses, from an addition to the next look at all of them
} kbi_process;

static void kbi_say(const char* level, const char* format, va_list list) {
    fflush(stdout);
    fprintf(stderr, "%s: %s", kbi_process.program ? kbi_process.program : "kbench", level);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    fflush(stderr);
}

KBI_PRINTF(1, 2) static void kbi_error(const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_say("error: ", format, list);
    va_end(list);
}

KBI_PRINTF(1, 2) static void kbi_warn(const char* format, ...) {
    if (kbi_process.quiet) return;
    va_list list;
    va_start(list, format);
    kbi_say("", format, list);
    va_end(list);
}

/*---------------------------------------------------------------------------------------------------------------
  >>util      foundation: arenas, growing text, numbers as text, names that people mistype, files.
              Public: none      Used by: everything after it
---------------------------------------------------------------------------------------------------------------*/

// The harness needs little memory; where even that is missing nothing sensible can follow.
static void* kbi_grow(void* p, size_t bytes) {
    void* q = KBENCH_REALLOC(p, bytes ? bytes : 1);
    if (!q) {
        kbi_error("out of host memory (%zu bytes)", bytes);
        _exit(1);
    }
    return q;
}

typedef struct kbi_arena { // strings and arrays with one common end
    char* block;           // starts with a pointer to the block before it
    size_t used, size;
} kbi_arena;

static void* kbi_arena_alloc(kbi_arena* a, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->block || a->used + bytes > a->size) {
        size_t size = KBI_MAX(bytes + 16, (size_t)4096);
        char* block = (char*)kbi_grow(NULL, size);
        memcpy(block, &a->block, sizeof(char*));
        a->block = block;
        a->size = size;
        a->used = 16;
    }
    void* p = a->block + a->used;
    a->used += bytes;
    memset(p, 0, bytes);
    return p;
}

static void kbi_arena_free(kbi_arena* a) {
    while (a->block) {
        char* before;
        memcpy(&before, a->block, sizeof(char*));
        KBENCH_FREE(a->block);
        a->block = before;
    }
    a->used = a->size = 0;
}

static char* kbi_arena_text_n(kbi_arena* a, const char* s, size_t n) {
    char* p = (char*)kbi_arena_alloc(a, n + 1);
    memcpy(p, s, n);
    return p;
}

static char* kbi_keep_text(const char* s) { // for the program's whole life
    char* p = (char*)kbi_grow(NULL, strlen(s) + 1);
    return strcpy(p, s);
}

static char* kbi_arena_text(kbi_arena* a, const char* s) { return s ? kbi_arena_text_n(a, s, strlen(s)) : NULL; }

typedef struct kbi_text { // text that grows; always ends with a zero
    char* s;
    size_t n, size;
} kbi_text;

static void kbi_put(kbi_text* t, const char* s, size_t n) {
    if (t->n + n + 1 > t->size) {
        t->size = 2 * t->size + n + 256;
        t->s = (char*)kbi_grow(t->s, t->size);
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

static void kbi_puts(kbi_text* t, const char* s) { kbi_put(t, s, strlen(s)); }

KBI_PRINTF(2, 3) static void kbi_putf(kbi_text* t, const char* format, ...) {
    char small[512];
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(small, sizeof small, format, list);
    if (n >= 0 && n < (int)sizeof small) {
        kbi_put(t, small, (size_t)n);
    } else if (n >= 0) {
        char* large = (char*)kbi_grow(NULL, (size_t)n + 1);
        vsnprintf(large, (size_t)n + 1, format, again);
        kbi_put(t, large, (size_t)n);
        KBENCH_FREE(large);
    }
    va_end(again);
    va_end(list);
}

static void kbi_text_free(kbi_text* t) {
    KBENCH_FREE(t->s);
    memset(t, 0, sizeof *t);
}

// The length of the UTF-8 sequence at s, 0 when it is none (overlong forms and surrogates are none).
static int kbi_utf8(const unsigned char* s) {
    if (s[0] < 0x80) return 1;
    int n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)) return 0;
    return n;
}

// A program may have called setlocale, and then printf writes 0,5: put the point back.
static void kbi_unlocalise(char* s) {
    const char* point = localeconv()->decimal_point;
    size_t n = point ? strlen(point) : 0;
    char* p = n && strcmp(point, ".") != 0 ? strstr(s, point) : NULL;
    if (!p) return;
    *p = '.';
    memmove(p + 1, p + n, strlen(p + n) + 1);
}

// strtod with a point, whatever the locale; a comma ends the number, as in a list.
static double kbi_real_of(const char* s, char** end) {
    const char* point = localeconv()->decimal_point;
    char text[128], *stop;
    size_t more = point && *point ? strlen(point) - 1 : 0, n = KBI_MIN(strcspn(s, ","), sizeof text - 32);
    snprintf(text, sizeof text, "%.*s", (int)n, s);
    char* at = strcmp(point ? point : ".", ".") != 0 && more < 16 ? strchr(text, '.') : NULL;
    if (at) {
        memmove(at + 1 + more, at + 1, strlen(at + 1) + 1);
        memcpy(at, point, more + 1);
    }
    double x = strtod(text, &stop);
    *end = (char*)s + (stop - text) - (at && stop > at ? more : 0);
    return x;
}

// The shortest of 15, 16 and 17 digits that reads back to the same double.
static const char* kbi_number(double x, char out[40]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 40, "%.*g", digits, x);
        if (strtod(out, NULL) == x) break;
    }
    kbi_unlocalise(out);
    return out;
}

// x with so many significant digits, never in exponent form: for people.
static const char* kbi_digits(double x, int digits, char out[40]) {
    int whole = 1;
    snprintf(out, 40, "%.*e", digits - 1, x); // rounds before it counts: 9.9999 is 10.00
    const char* exponent = strchr(out, 'e');
    if (x != 0 && exponent) whole = (int)strtol(exponent + 1, NULL, 10) + 1;
    snprintf(out, 40, "%.*f", KBI_MAX(0, KBI_MIN(digits - whole, 9)), x);
    kbi_unlocalise(out);
    return out;
}

static bool kbi_is(const char* a, const char* b) { return a && b && strcmp(a, b) == 0; }

// Names are compared without regard to case, and '-' and '_' are nothing: LayerNorm is layernorm, layer_norm too.
static bool kbi_same_name(const char* a, const char* b) {
    if (!a || !b) return false;
    for (;; a++, b++) {
        while (*a == '_' || *a == '-') a++;
        while (*b == '_' || *b == '-') b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

// Whether a comma-separated list names it.
static bool kbi_lists(const char* list, const char* name) {
    char word[128];
    for (const char* p = list; *p; p += strcspn(p, ","), p += *p == ',') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(p, ","), p);
        if (kbi_same_name(word, name)) return true;
    }
    return false;
}

// By its bits, so that -ffast-math cannot decide that there are no NaNs.
static bool kbi_finite(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 52 & 0x7ff) != 0x7ff;
}

static bool kbi_nan(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 52 & 0x7ff) == 0x7ff && (bits << 12) != 0;
}

// Levenshtein's distance, case ignored; names longer than the row are far from everything.
static int kbi_distance(const char* a, const char* b) {
    int row[64], n = (int)strlen(b);
    if (n >= 64 || strlen(a) >= 64) return 64;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int up = row[j];
            int change = diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            row[j] = KBI_MIN(change, KBI_MIN(up, row[j - 1]) + 1);
            diagonal = up;
        }
    }
    return row[n];
}

typedef struct kbi_nearest { // the best of the names offered so far
    const char* wanted;
    const char* name;
    int distance;
} kbi_nearest;

static void kbi_offer(kbi_nearest* best, const char* name) {
    int d = name ? kbi_distance(best->wanted, name) : 64;
    if (!best->name || d < best->distance) {
        best->name = name;
        best->distance = d;
    }
}

static uint64_t kbi_hash(uint64_t h, const char* s) { // FNV-1a, 64 bits (Fowler, Noll, Vo)
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

// Whether the key was not in it yet; it is now.
static bool kbi_set_add(kbi_set* s, uint64_t key) {
    key += key == 0;
    if (2 * (s->n + 1) > s->size) {
        kbi_set larger = { NULL, 0, s->size ? 2 * s->size : 64 };
        larger.slots = (uint64_t*)kbi_grow(NULL, sizeof(uint64_t) * larger.size);
        memset(larger.slots, 0, sizeof(uint64_t) * larger.size);
        for (size_t i = 0; i < s->size; i++)
            if (s->slots[i]) kbi_set_add(&larger, s->slots[i]);
        KBENCH_FREE(s->slots);
        *s = larger;
    }
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (s->size - 1); // the golden ratio: addresses lie in rows
    for (; s->slots[at] && s->slots[at] != key; at = (at + 1) & (s->size - 1)) {}
    if (s->slots[at]) return false;
    s->slots[at] = key;
    s->n++;
    return true;
}

static void kbi_set_free(kbi_set* s) {
    KBENCH_FREE(s->slots);
    memset(s, 0, sizeof *s);
}

// "41.23 us": four digits and the unit that leaves one to three of them before the point.
static const char* kbi_show_time(double ms, char out[40]) {
    static const struct {
        double from, scale;
        const char* unit;
    } units[] = { { 1e3, 1e-3, "s" }, { 1, 1, "ms" }, { 1e-3, 1e3, "us" }, { 0, 1e6, "ns" } };
    char number[40];
    for (int i = 0; i < KBI_COUNT(units); i++) {
        if (ms * (1 + 5e-5) < units[i].from) continue;
        snprintf(out, 40, "%.30s %s", kbi_digits(ms * units[i].scale, 4, number), units[i].unit);
        break;
    }
    return out;
}

static const char* kbi_show_bytes(double bytes, char out[40]) {
    static const char* const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    char number[40];
    int u = 0;
    while (bytes >= 1000 && u + 1 < KBI_COUNT(units)) bytes /= 1024, u++;
    snprintf(out, 40, "%.30s %s", kbi_digits(bytes, u ? 3 : 1, number), units[u]);
    return out;
}

static const char* kbi_show_percent(double x, char out[40]) {
    char number[40];
    if (!kbi_finite(x)) return "-";
    snprintf(out, 40, "%.30s%%", x < 0.0005 ? "<0.1" : kbi_digits(100 * x, x < 0.1 ? 2 : 3, number));
    return out;
}

static const char* kbi_show(double x, int digits, char out[40]) {
    return kbi_finite(x) ? kbi_digits(x, digits, out) : "-";
}

static bool kbi_write_all(int file, const char* s, size_t n) {
    while (n) {
        ssize_t done = write(file, s, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        s += done;
        n -= (size_t)done;
    }
    return true;
}

static bool kbi_read_all(int file, void* to, size_t n) {
    char* p = (char*)to;
    while (n) {
        ssize_t done = kbi_read_some(file, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

// The first line of a file, without its end; false when there is none.
static bool kbi_first_line(const char* path, char* out, int size) {
    FILE* f = fopen(path, "r");
    bool good = f && kbi_get_line(out, size, f);
    if (f) fclose(f);
    if (good) out[strcspn(out, "\r\n")] = 0;
    return good;
}

#if KBI_CUDA
// A function of a library that was opened; the standard has no cast from object to function pointers.
static void kbi_find(void* library, const char* name, void* function) {
    void* p = dlsym(library, name);
    memcpy(function, &p, sizeof p);
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>names     foundation: what dtypes and flags are called.
              Public: kb_dtype_name, kb_dtype_of, kb_dtype_size, kb_flag_name, kb_flag_advice, kb_flag_is_error
              Used by: programs, >>random, >>plan, >>list, measure, >>record, >>json, >>table, >>embed, >>selftest
---------------------------------------------------------------------------------------------------------------*/

// bytes of one element, by the order of kb_dtype; 0 for a code that is no dtype
static size_t kbi_dtype_size(int dtype) {
    static const unsigned char size[] = { 0, 4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8 };
    return dtype >= 0 && dtype <= KB_U64 ? size[dtype] : 0;
}

// --- names ---

static const struct {
    kb_dtype dtype;
    const char* name;
} kbi_dtypes[] = { { KB_F32, "f32" }, { KB_F64, "f64" }, { KB_F16, "f16" }, { KB_BF16, "bf16" },
                   { KB_I8, "i8" },   { KB_U8, "u8" },   { KB_I16, "i16" }, { KB_U16, "u16" },
                   { KB_I32, "i32" }, { KB_U32, "u32" }, { KB_I64, "i64" }, { KB_U64, "u64" } };

const char* kb_dtype_name(kb_dtype dtype) {
    for (int i = 0; i < KBI_COUNT(kbi_dtypes); i++)
        if (kbi_dtypes[i].dtype == dtype) return kbi_dtypes[i].name;
    return "none";
}

kb_dtype kb_dtype_of(const char* name) {
    for (int i = 0; i < KBI_COUNT(kbi_dtypes); i++)
        if (kbi_same_name(kbi_dtypes[i].name, name)) return kbi_dtypes[i].dtype;
    return KB_NODTYPE;
}

size_t kb_dtype_size(kb_dtype dtype) { return kbi_dtype_size((int)dtype); }

static const struct {
    const char *name, *advice;
    bool error;
} kbi_flag_table[] = {
#define KBI_LEVEL_ERROR true
#define KBI_LEVEL_WARN false
#define KBI_X(name, level, advice) { #name, advice, KBI_LEVEL_##level },
    KB_FLAGS(KBI_X)
#undef KBI_X
};

const char* kb_flag_name(kb_flag flag) { return kbi_flag_table[flag].name; }
const char* kb_flag_advice(kb_flag flag) { return kbi_flag_table[flag].advice; }
bool kb_flag_is_error(kb_flag flag) { return kbi_flag_table[flag].error; }

// The advice where there is no GPU: for some flags it is another. The guards of KB_ALLOC lie inside a block of malloc,
// where neither valgrind nor a compiler's sanitizer looks.
static const char* kbi_flag_advice(kb_flag flag, bool gpu) {
    if (!gpu && flag == KB_FLAG_OVERRUN)
        return "something wrote beside a buffer: with malloc in place of KB_ALLOC, valgrind or -fsanitize=address "
               "finds where";
    if (!gpu && flag == KB_FLAG_CUDA_ERROR) return "the message says what; --no-isolate under a debugger shows where";
    if (!gpu && flag == KB_FLAG_FLOOR) return "close to what reading the clock costs; time more work per launch";
    return kbi_flag_table[flag].advice;
}

KBI_SLOW_END
/*---------------------------------------------------------------------------------------------------------------
  >>clock     foundation: the host's monotonic clock, in nanoseconds.
              Public: none      Used by: measure, >>record, >>progress, program
---------------------------------------------------------------------------------------------------------------*/

static int64_t kbi_now(void) {
    struct timespec t;
    clock_gettime(KBI_CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// The smallest step that two readings show; what one reading costs is in it.
static int64_t kbi_clock_step(void) {
    int64_t best = INT64_MAX;
    for (int i = 0; i < 200; i++) {
        int64_t a = kbi_now(), b = a;
        while (b == a) b = kbi_now();
        best = KBI_MIN(best, b - a);
    }
    return best;
}

static double kbi_seconds_since(int64_t t) { return (double)(kbi_now() - t) * 1e-9; }

/*---------------------------------------------------------------------------------------------------------------
  >>random    foundation: reproducible fills: an element depends on seed, tensor and index alone.
              Public: none      Used by: >>arrays, >>plan, >>host, >>rounds
---------------------------------------------------------------------------------------------------------------*/

// Generator: Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC11. Key = (seed low, seed high); counter = (block low, block high, tensor, purpose). Element i takes word
// i mod 4 of block i / 4 under purpose 0; purpose 1 gives the high halves of uniform 64-bit integers.
//
// What each kind puts into element i (w = its word, z = its normal deviate):
//   kind         f32 f64 f16 bf16                      integers
//   KB_ZERO      0                                     0
//   KB_NORMAL    z, a float                            8 z rounded, halves away from 0, clamped to the type
//   KB_UNIFORM   (w >> 8) / 2^24, in [0,1)             w truncated; 64-bit: w | (word under purpose 1) << 32
//   KB_IOTA      i, nearest (f16: inf from 65520 on)   i, wrapped
// Floating values are rounded to float first (KB_IOTA in f64 is not), then to f16 or bf16, to nearest even.
// The kernel kbi_fill does the same operations in the same order, hence the same bits; only a host compiler
// that contracts a * b + c can move a normal deviate, by one ulp of float, about once in 10^8.

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

// IEEE 754 binary16: 5 exponent bits (bias 15), 10 fraction bits; to nearest even, NaN kept quiet
static uint16_t kbi_f32_to_f16(float f) {
    uint32_t u = kbi_float_bits(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    uint32_t r, m, shift, rest, half;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x1ffu));
    if (a >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); // 2^16 and above
    if (a >= 0x38800000u) {                                  // 2^-14, the least normal
        r = a - (112u << 23);                                // bias 127 -> 15; a carry out of 65504 gives inf
        return (uint16_t)(sign | ((r + 0xfffu + ((r >> 13) & 1u)) >> 13));
    }
    if (a < 0x33000000u) return (uint16_t)sign; // below 2^-25, half of the least subnormal
    m = (a & 0x7fffffu) | 0x800000u;
    shift = 126u - (a >> 23); // the value is m 2^(e-150), the unit of a subnormal 2^-24
    r = m >> shift;
    rest = m & ((1u << shift) - 1u);
    half = 1u << (shift - 1u);
    if (rest > half || (rest == half && (r & 1u))) r++;
    return (uint16_t)(sign | r);
}

static float kbi_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7fffu;
    if (a >= 0x7c00u) return kbi_bits_float(sign | 0x7f800000u | ((a & 0x3ffu) << 13));
    if (a >= 0x0400u) return kbi_bits_float(sign | ((a << 13) + (112u << 23)));
    return kbi_bits_float(sign | kbi_float_bits((float)a * 5.9604644775390625e-8f)); // a / 2^24, exact
}

// bfloat16: the upper half of a float; to nearest even, NaN kept quiet
static uint16_t kbi_f32_to_bf16(float f) {
    uint32_t u = kbi_float_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

static float kbi_bf16_to_f32(uint16_t h) { return kbi_bits_float((uint32_t)h << 16); }

// element i of an array as a double; 64-bit integers beyond 2^53 are rounded. The array may be unaligned.
static double kbi_load_double(const void* p, int64_t i, int dtype) {
    size_t size = kbi_dtype_size(dtype);
    const unsigned char* at = (const unsigned char*)p + i * (int64_t)size;
    uint64_t u64 = 0;
    uint32_t u32 = 0;
    uint16_t u16 = 0;
    double d = 0;
    if (size == 8) memcpy(&u64, at, 8);
    if (size == 4) memcpy(&u32, at, 4);
    if (size == 2) memcpy(&u16, at, 2);
    switch (dtype) {
    case KB_F32: return kbi_bits_float(u32);
    case KB_F64: memcpy(&d, &u64, 8); return d;
    case KB_F16: return kbi_f16_to_f32(u16);
    case KB_BF16: return kbi_bf16_to_f32(u16);
    case KB_I8: return (signed char)at[0];
    case KB_U8: return at[0];
    case KB_I16: return (int16_t)u16;
    case KB_U16: return u16;
    case KB_I32: return (int32_t)u32;
    case KB_U32: return u32;
    case KB_I64: return (double)(int64_t)u64;
    case KB_U64: return (double)u64;
    default: return 0;
    }
}

// Ten rounds of (c0,c1,c2,c3) -> (hi(B c2)^c1^k0, lo(B c2), hi(A c0)^c3^k1, lo(A c0)); the key advances by
// the golden ratio and sqrt(3) - 1 (Weyl sequences). Constants: table 2 of the paper. ctr is left as it was.
static void kbi_philox(uint32_t ctr[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = ctr[0], c1 = ctr[1], c2 = ctr[2], c3 = ctr[3], k0 = key[0], k1 = key[1];
    int round;
    for (round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

// 0 .. n - 1 in random order (Fisher and Yates), the same for a seed, a purpose and a number.
static void kbi_shuffle(int* of, int n, uint64_t seed, uint32_t purpose, uint32_t number) {
    for (int i = 0; i < n; i++) of[i] = i;
    for (int i = n - 1; i > 0; i--) {
        uint32_t counter[4] = { (uint32_t)i, number, 0, purpose }, word[4];
        uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
        kbi_philox(counter, key, word);
        int j = (int)(word[0] % (uint32_t)(i + 1)), swap = of[i];
        of[i] = of[j];
        of[j] = swap;
    }
}

// 24 bits, so that float and double hold the same value
static double kbi_random_uniform(uint32_t word) {
    return (double)(int32_t)(word >> 8) * 5.9604644775390625e-8; // 2^-24
}

// -ln(m / 2^24) for m = 1 .. 2^24: m = f 2^e with f in [sqrt(1/2), sqrt(2)), s = (f-1)/(f+1),
// ln f = 2 atanh s = 2 (s + s^3/3 + s^5/5 + ...); |s| < 0.172, the first term left out is below 2^-44 of it.
static double kbi_minus_log(uint32_t m) {
    double f = (double)(int32_t)m, s, q, series;
    uint64_t bits;
    int32_t e;
    memcpy(&bits, &f, sizeof bits);
    bits += (uint64_t)(0x3ff00000 - 0x3fe6a09e) << 32; // 0x3fe6a09e: the upper half of sqrt(1/2)
    e = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) + ((uint64_t)0x3fe6a09e << 32);
    memcpy(&f, &bits, sizeof f);
    s = (f - 1.0) / (f + 1.0);
    q = s * s;
    series = q * (1.0 / 15) + 1.0 / 13;
    series = series * q + 1.0 / 11;
    series = series * q + 1.0 / 9;
    series = series * q + 1.0 / 7;
    series = series * q + 1.0 / 5;
    series = series * q + 1.0 / 3;
    series = series * q + 1.0;
    return (double)(24 - e) * 0.69314718055994530942 - 2.0 * s * series;
}

// Two N(0,1) deviates from two words, Box-Muller 1958: r = sqrt(-2 ln u1), (r cos 2 pi u2, r sin 2 pi u2), u1
// in (0,1] so that the logarithm exists. u2 = k / 2^24 is split exactly into quarter turns and a rest within
// 1/8 turn, where the Taylor series of sine and cosine leave less than 2^-40. Rounded to float once.
static void kbi_random_normal(uint32_t word0, uint32_t word1, float z[2]) {
    double r = sqrt(2.0 * kbi_minus_log((word0 >> 8) + 1u));
    uint32_t k = word1 >> 8, quarter = (k + 0x200000u) >> 22;
    double x = (double)((int32_t)k - (int32_t)(quarter << 22)) * 3.7450702829238413e-07; // 2 pi / 2^24
    double q = x * x, s, c, swap;
    s = q * (1.0 / 6227020800.0) - 1.0 / 39916800.0; // 13! 11! 9! 7! 5! 3!
    s = s * q + 1.0 / 362880.0;
    s = s * q - 1.0 / 5040.0;
    s = s * q + 1.0 / 120.0;
    s = s * q - 1.0 / 6.0;
    s = s * q * x + x;
    c = q * (1.0 / 479001600.0) - 1.0 / 3628800.0; // 12! 10! 8! 6! 4! 2!
    c = c * q + 1.0 / 40320.0;
    c = c * q - 1.0 / 720.0;
    c = c * q + 1.0 / 24.0;
    c = c * q - 1.0 / 2.0;
    c = c * q + 1.0;
    // a quarter turn takes (c, s) to (-s, c)
    swap = (quarter & 1u) ? s : c;
    s = (quarter & 1u) ? c : s;
    c = ((quarter + 1u) & 2u) ? -swap : swap;
    s = (quarter & 2u) ? -s : s;
    z[0] = (float)(r * c);
    z[1] = (float)(r * s);
}

// the bits of one element, in the low end of the result, from its value (floats) or its deviate (integers)
static uint64_t kbi_value_bits(double v, int dtype) {
    uint64_t u;
    double t;
    switch (dtype) {
    case KB_F32: return kbi_float_bits((float)v);
    case KB_F64: memcpy(&u, &v, sizeof u); return u;
    case KB_F16: return kbi_f32_to_f16((float)v);
    case KB_BF16: return kbi_f32_to_bf16((float)v);
    default: break;
    }
    t = v * 8.0; // at most 47, since u1 >= 2^-24: only the sign of an unsigned type needs the clamp
    t = t < 0.0 ? t - 0.5 : t + 0.5;
    if (t < 0.0 && (dtype == KB_U8 || dtype == KB_U16 || dtype == KB_U32 || dtype == KB_U64)) t = 0.0;
    return (uint64_t)(int64_t)t;
}

// the bits of elements 4 block .. 4 block + 3
static void kbi_fill_block(uint64_t bits[4], uint64_t block, int dtype, int kind, uint64_t seed, uint32_t tensor) {
    int is_float = dtype == KB_F32 || dtype == KB_F64 || dtype == KB_F16 || dtype == KB_BF16, j;
    uint32_t ctr[4], key[2], w[4] = { 0, 0, 0, 0 }, high[4] = { 0, 0, 0, 0 };
    float z[4];
    ctr[0] = (uint32_t)block;
    ctr[1] = (uint32_t)(block >> 32);
    ctr[2] = tensor;
    ctr[3] = 0;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    if (kind == KB_NORMAL || kind == KB_UNIFORM) kbi_philox(ctr, key, w);
    if (kind == KB_NORMAL) {
        kbi_random_normal(w[0], w[1], z);
        kbi_random_normal(w[2], w[3], z + 2);
        for (j = 0; j < 4; j++) bits[j] = kbi_value_bits(z[j], dtype);
    } else if (kind == KB_UNIFORM && is_float) {
        for (j = 0; j < 4; j++) bits[j] = kbi_value_bits(kbi_random_uniform(w[j]), dtype);
    } else if (kind == KB_UNIFORM) {
        ctr[3] = 1;
        if (dtype == KB_I64 || dtype == KB_U64) kbi_philox(ctr, key, high);
        for (j = 0; j < 4; j++) bits[j] = w[j] | (uint64_t)high[j] << 32;
    } else if (kind == KB_IOTA && is_float) {
        for (j = 0; j < 4; j++) bits[j] = kbi_value_bits((double)(int64_t)(block * 4 + (uint64_t)j), dtype);
    } else {
        for (j = 0; j < 4; j++) bits[j] = kind == KB_IOTA ? block * 4 + (uint64_t)j : 0;
    }
}

// Elements first .. first + n - 1 of a tensor; p is where element `first` goes and may be unaligned.
static void kbi_fill_host(void* p, int64_t first, int64_t n, int dtype, int kind, uint64_t seed, uint32_t tensor) {
    unsigned char* at = (unsigned char*)p;
    size_t size = kbi_dtype_size(dtype);
    int64_t i = first, end = first + n;
    uint64_t bits[4];
    if (n <= 0 || size == 0) return;
    if (kind == KB_ZERO) {
        memset(p, 0, (size_t)n * size);
        return;
    }
    while (i < end) {
        int j = (int)(i & 3), stop = end - (i - j) < 4 ? (int)(end - (i - j)) : 4;
        kbi_fill_block(bits, (uint64_t)i / 4, dtype, kind, seed, tensor);
        i += stop - j;
        for (; j < stop; j++, at += size) { // narrowed, then copied: right on either byte order
            uint8_t b8 = (uint8_t)bits[j];
            uint16_t b16 = (uint16_t)bits[j];
            uint32_t b32 = (uint32_t)bits[j];
            if (size == 1)
                memcpy(at, &b8, 1);
            else if (size == 2)
                memcpy(at, &b16, 2);
            else if (size == 4)
                memcpy(at, &b32, 4);
            else
                memcpy(at, &bits[j], 8);
        }
    }
}

/*---------------------------------------------------------------------------------------------------------------
  >>stats     foundation: summaries of a sample and its interval. Pure functions; no globals.
              Public: kb_summarize      Used by: programs, >>paired, >>spread, measure, >>verdict, >>selftest
---------------------------------------------------------------------------------------------------------------*/

// Largest magnitude taken as a measurement: squares and their sums stay finite. The test reads the bits, so
// that it also holds under -ffast-math, and NaN and infinity fail it.
#define KBI_STATS_LIMIT 1e150
#define KBI_STATS_BLOCKS 10    // blocks of consecutive values, whose medians are nearly independent
#define KBI_STATS_MIN 30       // fewest values cut into blocks: 3 in each
#define KBI_STATS_P99_MIN 300  // fewest values with a p99
#define KBI_STATS_ENOUGH 6     // fewest values, or what they are worth, that the sign test makes an interval of
#define KBI_STATS_NOTABLE 0.01 // drift and distance of modes, relative to the median, that are worth a word

static int kbi_usable(double v) {
    const double limit = KBI_STATS_LIMIT;
    uint64_t bits, bound;
    memcpy(&bits, &v, sizeof bits);
    memcpy(&bound, &limit, sizeof bound);
    return (bits & (UINT64_MAX >> 1)) <= bound;
}

static int kbi_all_usable(const double* x, int64_t n) {
    if (x == NULL) return n <= 0;
    for (int64_t i = 0; i < n; i++) {
        if (!kbi_usable(x[i])) return 0;
    }
    return 1;
}

static double* kbi_stats_alloc(int64_t n) {
    if (n <= 0 || (uint64_t)n > (uint64_t)(SIZE_MAX / 2 / sizeof(double))) return NULL;
    return (double*)KBENCH_MALLOC((size_t)n * sizeof(double));
}

// a / b; 0 for 0 / 0, NAN where the quotient is none.
static double kbi_ratio(double a, double b) {
    if (a == 0.0 && b == 0.0) return 0.0;
    if (b == 0.0 || fabs(a) > fabs(b) * 1e150) return (double)NAN;
    return a / b;
}

// -- order ------------------------------------------------------------------------------------------------

static void kbi_insertion_sort(double* a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const double v = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

static void kbi_sift_down(double* a, int64_t root, int64_t n) {
    const double v = a[root];
    for (int64_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && a[child + 1] > a[child]) child++;
        if (a[child] <= v) break;
        a[root] = a[child];
        root = child;
    }
    a[root] = v;
}

static void kbi_heap_sort(double* a, int64_t n) {
    for (int64_t i = n / 2; i-- > 0;) kbi_sift_down(a, i, n);
    for (int64_t end = n - 1; end > 0; end--) {
        const double top = a[0];
        a[0] = a[end];
        a[end] = top;
        kbi_sift_down(a, 0, end);
    }
}

// Hoare 1961 about the median of three. Returns j, 0 <= j < n - 1, with a[0..j] <= a[j+1..n-1]; n >= 3.
// Stopping at equal values keeps both parts large in quantised samples.
static int64_t kbi_partition(double* a, int64_t n) {
    const double u = a[0], v = a[n / 2], w = a[n - 1];
    const double pivot = u < v ? (v < w ? v : (u < w ? w : u)) : (u < w ? u : (v < w ? w : v));
    for (int64_t i = 0, j = n - 1;; i++, j--) {
        while (a[i] < pivot) i++;
        while (a[j] > pivot) j--;
        if (i >= j) return j;
        const double t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

// Partitions allowed before a heap sort takes over (Musser 1997): 2 log2 n.
static int kbi_sort_budget(int64_t n) {
    int budget = 0;
    for (; n > 1; n /= 2) budget += 2;
    return budget;
}

static void kbi_sort(double* a, int64_t n) {
    int budget = kbi_sort_budget(n);
    while (n > 24) { // below, insertion is faster
        if (budget-- == 0) {
            kbi_heap_sort(a, n);
            return;
        }
        const int64_t left = kbi_partition(a, n) + 1;
        if (left < n - left) {
            kbi_sort(a, left);
            a += left;
            n -= left;
        } else {
            kbi_sort(a + left, n - left);
            n = left;
        }
    }
    kbi_insertion_sort(a, n);
}

// Moves the value of rank k (from 0) to a[k], smaller ones before it and larger ones after (quickselect,
// Hoare 1961).
static double kbi_select(double* a, int64_t n, int64_t k) {
    int budget = kbi_sort_budget(n);
    while (n > 24 && budget-- > 0) {
        const int64_t left = kbi_partition(a, n) + 1;
        if (k < left) {
            n = left;
        } else {
            a += left;
            n -= left;
            k -= left;
        }
    }
    kbi_sort(a, n);
    return a[k];
}

// Type 7: x(h) + (h - floor h) (x(h+1) - x(h)), h = (n - 1) q from 0 (Hyndman and Fan 1996). NAN when n < 1.
static double kbi_quantile(const double* sorted, int64_t n, double q) {
    if (n < 1 || !kbi_usable(q)) return (double)NAN;
    const double h = (double)(n - 1) * (q < 0.0 ? 0.0 : q > 1.0 ? 1.0 : q);
    const int64_t i = (int64_t)h;
    if (i >= n - 1) return sorted[n - 1];
    return sorted[i] + (h - (double)i) * (sorted[i + 1] - sorted[i]);
}

static double kbi_median_sorted(const double* sorted, int64_t n) {
    return n < 1 ? (double)NAN : 0.5 * sorted[(n - 1) / 2] + 0.5 * sorted[n / 2];
}

// Median in O(n); scratch holds n values. Values must be finite; NAN when n < 1.
static double kbi_median_of(const double* x, int64_t n, double* scratch) {
    if (n < 1) return (double)NAN;
    memmove(scratch, x, (size_t)n * sizeof(double));
    const double upper = kbi_select(scratch, n, n / 2);
    if (n % 2 == 1) return upper;
    double lower = scratch[0];
    for (int64_t i = 1; i < n / 2; i++) lower = scratch[i] > lower ? scratch[i] : lower;
    return 0.5 * lower + 0.5 * upper;
}

// Median of |x - centre| in O(n): the deviations are two sorted runs that begin at the centre and are merged.
static double kbi_mad_sorted(const double* sorted, int64_t n, double centre) {
    int64_t right = 0, high = n;
    while (right < high) {
        const int64_t mid = right + (high - right) / 2;
        if (sorted[mid] < centre)
            right = mid + 1;
        else
            high = mid;
    }
    double before = 0.0, deviation = 0.0;
    int64_t left = right - 1;
    for (int64_t taken = 0; taken <= n / 2 && n > 0; taken++) {
        before = deviation;
        if (right >= n || (left >= 0 && centre - sorted[left] <= sorted[right] - centre)) {
            deviation = centre - sorted[left--];
        } else {
            deviation = sorted[right++] - centre;
        }
    }
    return n < 1 ? (double)NAN : n % 2 == 1 ? deviation : 0.5 * before + 0.5 * deviation;
}

// -- interval of the median -------------------------------------------------------------------------------

// Ranks lo = k and hi = n + 1 - k (from 1) of an interval of the median with coverage 1 - 2 P(B <= k - 1) >=
// 1 - alpha, k as large as that allows, B ~ Binomial(n, 1/2) (Thompson 1936; Le Boudec 2010). The
// probabilities are taken relative to the mode's, where none overflows and what underflows does not count, so
// the ranks are exact for every n and for alpha down to 1e-250. 0 when no such interval exists.
static int kbi_sign_ranks(int64_t n, double alpha, int64_t* lo, int64_t* hi) {
    *lo = *hi = 0;
    if (n < 1 || !(alpha > 0.0 && alpha < 1.0)) return 0;
    int64_t j = n / 2, k = 0;
    double weight = 1.0, lower = 0.0;
    while (j > 0 && weight > 1e-290) {
        weight *= (double)j / (double)(n - j + 1);
        lower += weight;
        j--;
    }
    const double total = n % 2 == 1 ? 2.0 * (1.0 + lower) : 1.0 + 2.0 * lower;
    const double limit = 0.5 * alpha * total * (1.0 + 1e-12); // a tail that equals alpha/2 but for rounding is in
    for (double tail = weight; tail <= limit; tail += weight) {
        k = j + 1;
        weight *= (double)(n - j) / (double)(j + 1);
        j++;
    }
    if (k < 1) return 0;
    *lo = k;
    *hi = n + 1 - k;
    return 1;
}

// Behind the last value of block b of 10 consecutive ones, as equal as possible.
static int64_t kbi_block_end(int b, int64_t n) {
    return n / KBI_STATS_BLOCKS * (b + 1) + n % KBI_STATS_BLOCKS * (b + 1) / KBI_STATS_BLOCKS;
}

// Their medians; n >= 10.
static void kbi_block_medians(const double* x, int64_t n, double* scratch, double* blocks) {
    int64_t begin = 0;
    for (int b = 0; b < KBI_STATS_BLOCKS; b++) {
        const int64_t end = kbi_block_end(b, n);
        blocks[b] = kbi_median_of(x + begin, end - begin, scratch);
        begin = end;
    }
}

// By how much autocorrelation r at lag 1 inflates the variance of a mean: (1 + r) / (1 - r), exact for AR(1). Taking
// off the sample's own mean pulled r down by about (1 + 4 r) / n (Marriott and Pope 1954; Kendall 1954). At least 1.
static double kbi_inflation(double r, int64_t n) {
    r += (1.0 + 4.0 * r) / (double)n;
    r = r < 0.99 ? r : 0.99;
    return r > 0.0 ? (1.0 + r) / (1.0 - r) : 1.0;
}

// How many independent values the n are worth to their median: n over the larger of two inflations,
//   - that of lag 1: right where the correlation dies away from value to value;
//   - the variance of the sums of 10 consecutive blocks over what independent values would give, times the inflation
//     of the sums' own lag 1: right where slow wandering hides under noise that does not last.
// Of values clipped at 3 MAD from the median (Huber 1964), so that no straggler hides the rest; of signs where the MAD
// is 0. Below 30 values too few for blocks, and only a correlation that stands out (one-sided 5 %) counts. spread:
// standard deviation of the clipped values. O(n); scratch holds n values.
static double kbi_effective(const double* x, int64_t n, double median, double* scratch, double* spread) {
    double sum = 0.0, squares = 0.0, products = 0.0, previous = 0.0, block[KBI_STATS_BLOCKS];
    for (int64_t i = 0; i < n; i++) scratch[i] = fabs(x[i] - median);
    const double clip = 3.0 * kbi_median_of(scratch, n, scratch);
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
    double inflation = kbi_inflation(lag1, n), wander = 0.0, turns = 0.0;
    for (int b = 0; b < KBI_STATS_BLOCKS; b++) {
        wander += block[b] * block[b];
        turns += b > 0 ? block[b] * block[b - 1] : 0.0;
    }
    if (n >= KBI_STATS_MIN && wander > 0.0) {
        const double slow = wander / squares * KBI_STATS_BLOCKS / (KBI_STATS_BLOCKS - 1) *
                            kbi_inflation(turns / wander, KBI_STATS_BLOCKS);
        inflation = slow > inflation ? slow : inflation;
    }
    return (double)n / inflation;
}

// 95 % interval of the median of values that may be correlated: the ranks of the sign test for as many values as they
// are worth, spread over the n: (k - 1/2) n / worth + 1/2. Returns what they are worth. Below KBI_STATS_ENOUGH no ranks
// would do: the interval is that of 6, and at least t(0.975; 5 df) standard errors long on each side, with the standard
// deviation that n values show of a process that wanders farther, s^2 / (1 - 1/worth). That holds, too, but is a guess
// from too few: take more. NAN, and no interval, below 6 values. O(n); scratch holds n values.
static double kbi_median_interval(const double* x, int64_t n, double median, double* scratch, double* lo,
                                  double* hi) {
    double spread, reach = 0.0; // at least to the median, which may be rounded out of the ranks
    int64_t low, high;
    *lo = *hi = (double)NAN;
    if (n < KBI_STATS_ENOUGH) return (double)NAN;
    const double worth = kbi_effective(x, n, median, scratch, &spread);
    const int64_t count = worth > KBI_STATS_ENOUGH ? (int64_t)worth : KBI_STATS_ENOUGH;
    kbi_sign_ranks(count, 0.05, &low, &high);
    const int64_t rank = (int64_t)(((double)low - 0.5) * (double)n / (double)count + 0.5);
    memmove(scratch, x, (size_t)n * sizeof(double));
    *lo = kbi_select(scratch, n, rank - 1);
    *hi = kbi_select(scratch, n, n - rank);
    if (worth < KBI_STATS_ENOUGH) {
        const double left = 1.0 - 1.0 / worth;
        reach = 2.571 * spread * sqrt(1.0 / worth / (left > 0.2 ? left : 0.2));
    }
    *lo = median - reach < *lo ? median - reach : *lo;
    *hi = median + reach > *hi ? median + reach : *hi;
    return worth;
}

static double kbi_half_width(double lo, double hi, double median) {
    return kbi_usable(lo) && kbi_usable(hi) ? kbi_ratio(0.5 * (hi - lo), fabs(median)) : (double)NAN;
}

// kb_stats.precision alone, in O(n) and without allocation: the stopping rule asks between samples, and a GPU
// that waits for the host lowers its clock. scratch holds n values.
static double kbi_precision_in(const double* x, int64_t n, double* scratch) {
    double lo, hi;
    if (n < 1 || !kbi_all_usable(x, n)) return (double)NAN;
    const double median = kbi_median_of(x, n, scratch);
    kbi_median_interval(x, n, median, scratch, &lo, &hi);
    return kbi_half_width(lo, hi, median);
}

static double kbi_precision_of(const double* x, int64_t n) {
    double* scratch = kbi_stats_alloc(n);
    if (scratch == NULL) return (double)NAN;
    const double precision = kbi_precision_in(x, n, scratch);
    KBENCH_FREE(scratch);
    return precision;
}

// -- summary ----------------------------------------------------------------------------------------------

// mean = c + sum(x - c)/n about the median c, which is exact for equal values; then two passes with the
// correction of Chan, Golub and LeVeque 1983: (sum d^2 - (sum d)^2/n) / (n - 1). r1 = sum d[t] d[t+1] / sum
// d^2 (Box and Jenkins).
static void kbi_moments(const double* x, int64_t n, kb_stats* s) {
    double sum = 0.0, rest = 0.0, squares = 0.0, products = 0.0, previous = 0.0;
    for (int64_t i = 0; i < n; i++) sum += x[i] - s->median;
    s->mean = s->median + sum / (double)n;
    s->mean = s->mean < s->min ? s->min : s->mean > s->max ? s->max : s->mean;
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - s->mean;
        rest += d;
        squares += d * d;
        if (i > 0) products += d * previous;
        previous = d;
    }
    if (n < 2) return;
    const double variance = (squares - rest * rest / (double)n) / (double)(n - 1);
    s->std = s->min == s->max || !(variance > 0.0) ? 0.0 : sqrt(variance);
    s->cv = kbi_ratio(s->std, s->mean);
    if (n >= 3 && s->min < s->max && squares > 0.0) s->lag1 = products / squares;
}

// Step of the timer, seen as the smallest distance of different values. Above a tenth of the median it is
// taken for a real distance, not a step; in a continuous sample it is next to nothing and changes nothing.
// Counts them as well.
static double kbi_step_of(const double* sorted, int64_t n, double median, int64_t* distinct) {
    double step = 0.0;
    *distinct = n > 0;
    for (int64_t i = 1; i < n; i++) {
        const double gap = sorted[i] - sorted[i - 1];
        if (!(sorted[i] > sorted[i - 1])) continue;
        step = step == 0.0 || gap < step ? gap : step;
        (*distinct)++;
    }
    return step <= 0.1 * fabs(median) ? step : 0.0;
}

// Tukey 1977: inner fences at 1.5, outer at 3 interquartile ranges. Where most values share one tick of the
// timer the range is 0 and every neighbouring tick would be an outlier, so the range is at least the step.
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

// Two modes: the widest stretch between values is over 5 MAD wide. Four amends to "largest gap > 5 MAD with
// 10 % on each side":
//   - only stretches with 10 % on each side compete: one far outlier would own the largest gap of all;
//   - a stretch may hold 2 % of the values: a single straggler between the modes would halve the gap;
//   - the MAD is that of each side, the larger counts: with even modes the MAD of all is half their distance;
//   - it is at least the timer's step: on a coarse timer the MAD is 0 and neighbouring ticks are no modes.
// Modes closer than 1 % of the median are nobody's concern.
static int kbi_bimodal(const double* sorted, int64_t n, double median, double step) {
    if (n < KBI_STATS_MIN) return 0;
    const int64_t side = (n + 9) / 10, stretch = 1 + n / 50;
    int64_t split = -1;
    double widest = 0.0;
    for (int64_t i = side - 1; i + stretch <= n - side; i++) {
        const double width = sorted[i + stretch] - sorted[i];
        if (!(width > widest)) continue;
        widest = width;
        split = i;
    }
    if (split < 0 || !(widest > KBI_STATS_NOTABLE * fabs(median))) return 0;
    const double* upper = sorted + split + stretch;
    const int64_t left = split + 1, right = n - split - stretch;
    const double below = kbi_mad_sorted(sorted, left, kbi_median_sorted(sorted, left));
    const double above = kbi_mad_sorted(upper, right, kbi_median_sorted(upper, right));
    const double mad = below > above ? below : above;
    return widest > 5.0 * (mad > step ? mad : step);
}

// Exact test that 10 block medians came in no particular order. Rejects when one half lies wholly above the
// other (a step: Pettitt 1976 at his extreme, 25) or Mann's (1945) S, rising less falling pairs, reaches +-33
// (a trend): 33,508 of the 10! orders, p = 0.0092; ties only make it rarer. Rank sums of three blocks against
// three cannot get below 0.1, and the values themselves are no basis: with autocorrelation any test that
// takes them as independent finds drift everywhere.
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

static void kbi_drift(const double* x, double* scratch, kb_stats* s) {
    double blocks[KBI_STATS_BLOCKS], third[3];
    if (s->n < KBI_STATS_MIN) return;
    kbi_block_medians(x, s->n, scratch, blocks);
    const double first = kbi_median_of(blocks, 3, third);
    const double last = kbi_median_of(blocks + KBI_STATS_BLOCKS - 3, 3, third);
    s->drift = kbi_ratio(last - first, fabs(s->median));
    s->drift_significant =
        kbi_usable(s->drift) && fabs(s->drift) > KBI_STATS_NOTABLE && kbi_order_significant(blocks);
}

static kb_stats kbi_stats_none(int64_t n) {
    const double none = (double)NAN;
    kb_stats s;
    memset(&s, 0, sizeof s);
    s.n = n > 0 ? n : 0;
    s.median = s.mean = s.std = s.min = s.max = s.mad = s.cv = none;
    s.p5 = s.p25 = s.p75 = s.p95 = s.p99 = s.ci_low = s.ci_high = s.precision = none;
    s.outliers_mild = s.outliers_severe = s.lag1 = s.drift = s.effective = none;
    return s;
}

// kb_summarize for a timer whose step is known, in the unit of x; 0: to be seen in the values.
static kb_stats kbi_summarize(const double* x, int64_t n, double known_step) {
    kb_stats s = kbi_stats_none(n);
    double* sorted = n > 0 && kbi_all_usable(x, n) ? kbi_stats_alloc(n) : NULL;
    if (sorted == NULL) return s;
    s.median = kbi_median_of(x, n, sorted);
    s.effective = kbi_median_interval(x, n, s.median, sorted, &s.ci_low, &s.ci_high);
    s.precision = kbi_half_width(s.ci_low, s.ci_high, s.median);
    kbi_drift(x, sorted, &s);

    memcpy(sorted, x, (size_t)n * sizeof(double));
    kbi_sort(sorted, n);
    s.min = sorted[0];
    s.max = sorted[n - 1];
    s.p5 = kbi_quantile(sorted, n, 0.05);
    s.p25 = kbi_quantile(sorted, n, 0.25);
    s.p75 = kbi_quantile(sorted, n, 0.75);
    s.p95 = kbi_quantile(sorted, n, 0.95);
    if (n >= KBI_STATS_P99_MIN) s.p99 = kbi_quantile(sorted, n, 0.99);
    s.mad = kbi_mad_sorted(sorted, n, s.median);
    kbi_moments(x, n, &s);
    const double seen = kbi_step_of(sorted, n, s.median, &s.distinct);
    const double step = kbi_usable(known_step) && known_step > 0.0 ? known_step : seen;
    kbi_outliers(sorted, step, &s);
    s.bimodal = kbi_bimodal(sorted, n, s.median, step);
    KBENCH_FREE(sorted);
    return s;
}

kb_stats kb_summarize(const double* x, int64_t n) { return kbi_summarize(x, n, 0.0); }

// Mean without so many at each end, of values that it leaves sorted: finer than the timer's step, deaf to stragglers.
static double kbi_trimmed(double* x, int n, int away) {
    double sum = 0;
    kbi_sort(x, n);
    for (int i = away; i < n - away; i++) sum += x[i];
    return sum / (n - 2 * away);
}

KBI_SLOW_BEGIN
/*---------------------------------------------------------------------------------------------------------------
  >>paired    foundation: two arms measured in the same rounds: interval and verdict. Pure functions.
              Public: none      Used by: >>rounds, >>verdict
---------------------------------------------------------------------------------------------------------------*/

// -- paired -----------------------------------------------------------------------------------------------

// Median of the rounds' log ratios with the interval of the sign test (Thompson 1936): each round holds both
// arms, so drift, clock steps and autocorrelation cancel. Share alpha among arms first (Bonferroni). lo, hi
// NAN and 0 returned when no interval exists (below 6 rounds for alpha = 0.05); all NAN when a value is not
// finite.
static int kbi_paired(const double* log_ratio, int64_t rounds, double alpha, double* median, double* lo, double* hi) {
    int64_t low, high;
    *median = *lo = *hi = (double)NAN;
    double* sorted = rounds > 0 && kbi_all_usable(log_ratio, rounds) ? kbi_stats_alloc(rounds) : NULL;
    if (sorted == NULL) return 0;
    memcpy(sorted, log_ratio, (size_t)rounds * sizeof(double));
    kbi_sort(sorted, rounds);
    *median = kbi_median_sorted(sorted, rounds);
    const int found = kbi_sign_ranks(rounds, alpha, &low, &high);
    if (found) {
        *lo = sorted[low - 1];
        *hi = sorted[high - 1];
    }
    KBENCH_FREE(sorted);
    return found;
}

// Noise floor of an A/A arm: the farthest its interval of the ratio reaches from 1, max(hi, 1/lo) - 1; NaN when
// there is none.
static double kbi_noise_floor(double lo, double hi) {
    if (!kbi_usable(lo) || !kbi_usable(hi) || !(lo > 0.0 && hi >= lo)) return NAN;
    const double below = 1.0 / (lo > 1e-150 ? lo : 1e-150);
    const double reach = (hi > below ? hi : below) - 1.0;
    return reach > 0.0 ? reach : 0.0;
}

// Verdict on an interval of speedup = baseline / this, in this order:
//   UNRESOLVED  an end is not finite (too few rounds);  NONE  no interval of a ratio: lo <= 0 or lo > hi
//   EQUIVALENT  1/(1+delta) <= lo and hi <= 1+delta, delta > 0 (two one-sided tests, Schuirmann 1987)
//   FASTER      lo > 1 + noise;  SLOWER  hi < 1/(1+noise);  UNRESOLVED  otherwise
// noise is kbi_noise_floor of the A/A arm; negative or not finite counts as 0.
static kb_verdict kbi_judge_ratio(double lo, double hi, double delta, double noise) {
    if (!kbi_usable(lo) || !kbi_usable(hi)) return KB_UNRESOLVED;
    if (!(lo > 0.0) || lo > hi) return KB_NO_VERDICT;
    const double margin = kbi_usable(delta) && delta > 0.0 ? 1.0 + delta : 0.0;
    const double floor_ratio = kbi_usable(noise) && noise > 0.0 ? 1.0 + noise : 1.0;
    if (margin > 0.0 && lo >= 1.0 / margin && hi <= margin) return KB_EQUIVALENT;
    if (lo > floor_ratio) return KB_FASTER;
    if (hi < 1.0 / floor_ratio) return KB_SLOWER;
    return KB_UNRESOLVED;
}

/*---------------------------------------------------------------------------------------------------------------
  >>spread    foundation: what fresh processes, and errors known beforehand, add to an interval. Pure functions.
              Public: none      Used by: >>verdict
---------------------------------------------------------------------------------------------------------------*/

// Adds an independent error of known standard deviation, such as that of a bias that was taken off, to a 95 % interval
// about `centre`: each side becomes the root of the sum of squares of itself and 1.96 sd, as independent normal errors
// add. An error that is not known leaves no interval: NAN.
static void kbi_interval_add(double centre, double sd, double* lo, double* hi) {
    const double error = kbi_usable(sd) ? 1.959963984540054 * sd : (double)NAN;
    *lo = centre - hypot(centre - *lo, error);
    *hi = centre + hypot(*hi - centre, error);
}

// -- distributions ----------------------------------------------------------------------------------------

// Regularised incomplete beta I_x(a, b) for x below its mean: continued fraction (DLMF 8.17.22), evaluated from the
// front (Lentz 1976; Thompson and Barnett 1986).
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

// Quantile p of Student's t with df degrees of freedom, any real number from 0.1 on: bisection of the tail, within
// 1e-9 of it for p from 1e-6 to 1 - 1e-6. From 1e7 on df is taken as 1e7. NAN for p outside of (0, 1) and other df.
static double kbi_student_quantile(double p, double df) {
    if (!(p > 0.0 && p < 1.0) || !(df >= 0.1)) return (double)NAN;
    if (p == 0.5) return 0.0;
    const double tail = p < 0.5 ? p : 1.0 - p, freedom = df < 1e7 ? df : 1e7;
    double low = 0.0, high = 1.0;
    while (high < 1e140 && kbi_student_tail(high, freedom) > tail) low = high, high *= 2.0;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (kbi_student_tail(middle, freedom) > tail)
            low = middle;
        else
            high = middle;
    }
    return p < 0.5 ? -high : high;
}

// psi(x) and psi'(x), x > 0: up to x >= 8 by psi(x) = psi(x + 1) - 1/x, then their asymptotic series (DLMF 5.11.2,
// 5.15.8), of which the first term left out is below 1e-10.
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
    return sum +
           (1.0 + 0.5 / x + q * (1.0 / 6 - q * (1.0 / 30 - q * (1.0 / 42 - q * (1.0 / 30 - q * 5.0 / 66))))) / x;
}

// -- fresh processes --------------------------------------------------------------------------------------

typedef struct kbi_spread { // of a case's log medians over processes, or of a rival's log ratios
    int n;                  // processes that gave one
    double mean, lo, hi;    // their mean with its 95 % interval; NAN below 2
    double sd, df;          // of one process about the true mean, and how many degrees of freedom know it: pooled
} kbi_spread;

// How alike the scatter of two cases is taken to be, by their times in octaves: 1, 0.61 one octave apart, 0.14 two.
static double kbi_spread_weight(double octaves) { return fabs(octaves) < 5.0 ? exp(-0.5 * octaves * octaves) : 0.0; }

// Each case by itself. In lo: the logarithm of its variance, corrected so that its mean is that of the true one (Smyth
// 2004), NAN for a variance of 0; in hi: its time in octaves.
static void kbi_spread_own(const double* values, int processes, double time, kbi_spread* s) {
    double sum = 0.0, squares = 0.0;
    s->n = 0;
    for (int p = 0; p < processes; p++) {
        if (!kbi_usable(values[p])) continue;
        sum += values[p];
        s->n++;
    }
    s->mean = s->n ? sum / s->n : (double)NAN;
    for (int p = 0; p < processes; p++)
        if (kbi_usable(values[p])) squares += (values[p] - s->mean) * (values[p] - s->mean);
    s->df = s->n > 1 ? s->n - 1 : 0;
    s->sd = s->n > 1 ? sqrt(squares / s->df) : (double)NAN;
    s->lo = s->sd > 0.0 ? 2.0 * log(s->sd) - kbi_digamma(0.5 * s->df) + log(0.5 * s->df) : (double)NAN;
    s->hi = kbi_usable(time) && time > 0.0 ? log(time) / 0.6931471805599453 : 0.0;
}

// Degrees of freedom of the prior: by how much more than chance the logarithms of the variances of cases of like length
// differ (Smyth 2004, section 6.2, with pairs in place of a common mean). Infinite, that is 2e6, where no more.
static double kbi_spread_prior(const kbi_spread* s, int cases) {
    double weights = 0.0, excess = 0.0, low = 0.05, high = 1e6;
    for (int i = 0; i < cases; i++) {
        for (int j = 0; j < i && kbi_usable(s[i].lo); j++) {
            const double apart = s[i].lo - s[j].lo, weight = kbi_spread_weight(s[i].hi - s[j].hi);
            if (!(weight > 0.0) || !kbi_usable(s[j].lo)) continue;
            excess += 0.5 * weight * (apart * apart - kbi_trigamma(0.5 * s[i].df) - kbi_trigamma(0.5 * s[j].df));
            weights += weight;
        }
    }
    excess = weights > 0.0 ? excess / weights : 0.0;
    for (int i = 0; i < 60; i++) { // the inverse of psi'
        const double middle = sqrt(low * high);
        if (kbi_trigamma(middle) > excess)
            low = middle;
        else
            high = middle;
    }
    return 2.0 * high;
}

// 95 % t intervals of the cases' mean log medians, each over `processes` fresh processes: case c owns
// values[c * processes] and on, NAN where a process gave none. times: how long the cases typically take, in one unit;
// cases of like length scatter alike.
//
// A case's variance is (d s^2 + p s0^2) / (d + p) with d + p degrees of freedom (Smyth 2004): s0^2 the prior that the
// others make, 1/p = 1/min(d0, d) + 1/D, d0 from how much the others differ, D what they know. d0 counts as the case's
// own d at most, and the variance is never below its own s^2: a case that scatters three times as far as its like is
// what a reader must not miss. A case alone stands on its own.
//
// What is to be compared with the mean has a variance of its own, `beside` times that of a process: 0 for the true
// mean, 1 for one further process, pi / 2m for the median of m. Log ratios of rivals work alike, in a call of their
// own: they scatter less than times do.
__attribute__((unused)) static void kbi_spread_of(const double* values, int processes, int cases, const double* times,
                                                  double beside, kbi_spread* s) {
    for (int i = 0; i < cases; i++)
        kbi_spread_own(values + (size_t)i * (size_t)processes, processes, times[i], &s[i]);
    const double d0 = kbi_spread_prior(s, cases), shift = kbi_digamma(0.5 * d0) - log(0.5 * d0);
    for (int i = 0; i < cases; i++) {
        double known = 0.0, weights = 0.0, logs = 0.0;
        const double d = s[i].n > 1 ? s[i].n - 1 : 0;
        for (int j = 0; j < cases && d > 0.0; j++) {
            if (j == i || !kbi_usable(s[j].lo)) continue;
            const double weight = kbi_spread_weight(s[i].hi - s[j].hi);
            known += weight * (s[j].n - 1);
            weights += weight;
            logs += weight * s[j].lo;
        }
        if (!(known > 1e-6)) continue;
        const double p = 1.0 / (1.0 / (d0 < d ? d0 : d) + 1.0 / known);
        const double pooled = sqrt((d * s[i].sd * s[i].sd + p * exp(logs / weights + shift)) / (d + p));
        s[i].sd = pooled > s[i].sd ? pooled : s[i].sd;
        s[i].df = d + p;
    }
    for (int i = 0; i < cases; i++) {
        const double reach = s[i].n > 1 ? kbi_student_quantile(0.975, s[i].df) * s[i].sd : (double)NAN;
        s[i].lo = s[i].mean - reach * sqrt(1.0 / KBI_MAX(s[i].n, 1) + beside);
        s[i].hi = s[i].mean + reach * sqrt(1.0 / KBI_MAX(s[i].n, 1) + beside);
    }
}
KBI_SLOW_END

/*---------------------------------------------------------------------------------------------------------------
  >>arrays    foundation: whether one array matches another; NaN never does. Pure functions.
              Public: none      Used by: >>body
---------------------------------------------------------------------------------------------------------------*/

typedef enum kbi_match_how { KBI_CHECK_MIXED, KBI_CHECK_NORM, KBI_CHECK_ULP } kbi_match_how;

typedef struct kbi_matched {
    bool passed;
    double error;       // in the unit of the tolerance; infinite when a NaN or infinity is out of place
    int64_t worst, bad; // element; how many fail
    double got, want;   // there
} kbi_matched;

// One unit in the last place of a type at x; integers: 1.
static double kbi_ulp(double x, kb_dtype dtype) {
    int exponent, digits = 0, least = 0;
    if (dtype == KB_F32)
        digits = 24, least = -125;
    else if (dtype == KB_F64)
        digits = 53, least = -1021;
    else if (dtype == KB_F16)
        digits = 11, least = -13;
    else if (dtype == KB_BF16)
        digits = 8, least = -125;
    else
        return 1;
    frexp(x, &exponent); // x = m * 2^exponent, m in [0.5, 1)
    if (x == 0) exponent = least;
    return ldexp(1, KBI_MAX(exponent, least) - digits);
}

static void kbi_match_note(kbi_matched* c, int64_t i, double got, double want, double error, bool good) {
    if (!good) c->bad++;
    if (error > c->error || (!good && c->worst < 0)) {
        c->error = KBI_MAX(error, c->error);
        c->worst = i;
        c->got = got;
        c->want = want;
    }
}

// What is not finite must be the same on both sides; true when the pair is settled by that.
static bool kbi_match_special(kbi_matched* c, int64_t i, double got, double want) {
    if (kbi_finite(got) && kbi_finite(want)) return false;
    bool same = (kbi_nan(got) && kbi_nan(want)) || (!kbi_nan(got) && !kbi_nan(want) && got == want);
    kbi_match_note(c, i, got, want, same ? 0 : (double)INFINITY, same);
    return true;
}

// Got minus want of 64-bit integers, which doubles may not tell apart.
static double kbi_whole_difference(const void* got, const void* want, int64_t i, kb_dtype dtype) {
    uint64_t g, w;
    memcpy(&g, (const char*)got + 8 * i, 8);
    memcpy(&w, (const char*)want + 8 * i, 8);
    bool above = dtype == KB_I64 ? (int64_t)g > (int64_t)w : g > w;
    return above ? (double)(g - w) : -(double)(w - g);
}

static kbi_matched kbi_match(const void* got, kb_dtype got_type, const void* want, kb_dtype want_type, int64_t n,
                             kbi_match_how what, double tolerance) {
    kbi_matched c = { true, 0, -1, 0, 0, 0 };
    if (!kbi_finite(tolerance)) tolerance = -1; // a NaN must not let anything pass, whatever the compiler assumes
    double difference2 = 0, want2 = 0, most = 0;
    bool whole = got_type == want_type && (got_type == KB_I64 || got_type == KB_U64);
    for (int64_t i = 0; i < n && what == KBI_CHECK_NORM; i++) {
        double g = fabs(kbi_load_double(got, i, (int)got_type)), w = fabs(kbi_load_double(want, i, (int)want_type));
        if (kbi_finite(g) && kbi_finite(w)) most = KBI_MAX(most, KBI_MAX(g, w));
    }
    // 0 and infinity are the squares of many a double; a power of two, because a compiler may divide by reciprocals
    double unit = most > 1e150 ? ldexp(1, -600) : most < 1e-150 ? ldexp(1, 600) : 1;
    for (int64_t i = 0; i < n; i++) {
        double g = kbi_load_double(got, i, (int)got_type), w = kbi_load_double(want, i, (int)want_type);
        if (kbi_match_special(&c, i, g, w)) continue;
        double d = fabs(whole ? kbi_whole_difference(got, want, i, got_type) : g - w);
        if (what == KBI_CHECK_NORM) {
            double a = g * unit - w * unit, b = w * unit;
            difference2 += a * a;
            want2 += b * b;
            kbi_match_note(&c, i, g, w, 0, true);
            continue;
        }
        double error = what == KBI_CHECK_MIXED ? d / (1 + fabs(w)) : d / kbi_ulp(w, got_type);
        kbi_match_note(&c, i, g, w, error, error <= tolerance);
    }
    if (what == KBI_CHECK_NORM && !c.bad) {
        c.error = want2 > 0 ? sqrt(difference2 / want2) : difference2 > 0 ? (double)INFINITY : 0;
        c.bad = !(c.error <= tolerance);
    }
    c.passed = c.bad == 0;
    return c;
}

KBI_SLOW_BEGIN
/*---------------------------------------------------------------------------------------------------------------
  >>fiber     foundation: a function suspended in its middle, on a stack of its own.
              Public: none      Used by: measure
---------------------------------------------------------------------------------------------------------------*/

// A fiber: a body suspended in its timed loop, on a stack of its own but in the same thread, so that whoever is
// measured is measured on the same core, with the same CUDA context, and nobody else runs meanwhile.
#if KBI_FIBERS
typedef struct kbi_fiber {
    ucontext_t body, conductor;
    void (*main)(void* user);
    void* user;
    char* stack;
    size_t size;
} kbi_fiber;

static void kbi_fiber_enter(unsigned high, unsigned low) { // makecontext passes ints
    kbi_fiber* f = (kbi_fiber*)(uintptr_t)((uint64_t)high << 32 | low);
    f->main(f->user);
    swapcontext(&f->body, &f->conductor);
}

static bool kbi_fiber_make(kbi_fiber* f, void (*body)(void*), void* user) {
    f->main = body;
    f->user = user;
    struct rlimit limit; // as large as the stack that the first call of the body had, from 8 to 64 MiB
    rlim_t most = (rlim_t)64 << 20, size = getrlimit(RLIMIT_STACK, &limit) == 0 ? limit.rlim_cur : 0;
    f->size = (size_t)KBI_MIN(KBI_MAX(size, (rlim_t)8 << 20), most) & ~(size_t)65535;
    void* stack =
        mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | KBI_MAP_ANONYMOUS | KBI_MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || getcontext(&f->body) != 0) return false;
    mprotect(stack, 4096, PROT_NONE); // an overflow is a crash, not a riddle
    f->stack = (char*)stack;
    f->body.uc_stack.ss_sp = stack;
    f->body.uc_stack.ss_size = f->size;
    f->body.uc_link = NULL;
    uint64_t self = (uint64_t)(uintptr_t)f;
    makecontext(&f->body, (void (*)(void))kbi_fiber_enter, 2, (unsigned)(self >> 32), (unsigned)self);
    return true;
}

static void kbi_fiber_resume(kbi_fiber* f) { swapcontext(&f->conductor, &f->body); }

static void kbi_fiber_rest(kbi_fiber* f) { swapcontext(&f->body, &f->conductor); }
static void kbi_fiber_free(kbi_fiber* f) {
    if (f->stack) munmap(f->stack, f->size);
}
#else
typedef struct kbi_fiber {
    int unused;
} kbi_fiber;
static bool kbi_fiber_make(kbi_fiber* f, void (*body)(void*), void* user) {
    return (void)f, (void)body, (void)user, false;
}
static void kbi_fiber_resume(kbi_fiber* f) { (void)f; }
static void kbi_fiber_rest(kbi_fiber* f) { (void)f; }
static void kbi_fiber_free(kbi_fiber* f) { (void)f; }
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>handed    foundation: what the stages hand to each other: recipe, case, measured, machine.
              Public: none      Used by: >>registry, plan, measure, >>verdict, >>record, program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_registered { // what declare gives: the implementations, in the order of the source
    kb_entry** of;
    int n;
} kbi_registered;

typedef enum kbi_target { KBI_ON_GPU, KBI_ON_CPU, KBI_ON_SCRIPT } kbi_target;
typedef enum kbi_mode { KBI_COLD, KBI_HOT, KBI_ROTATE, KBI_EVENT_MODES = KBI_ROTATE } kbi_mode;
typedef enum kbi_timing { KBI_BY_EVENTS, KBI_BY_CUPTI, KBI_BY_WALL } kbi_timing;

// What to measure and for how long: the only way in which a command line, or a kb_desc, reaches the measuring.
typedef struct kbi_recipe {
    kbi_target target;
    int device; // which GPU
    kbi_mode mode;
    kbi_timing timing;
    bool verify, audit, energy; // ask kb_check; look into the timed block; count the energy of a launch
    unsigned expect;            // kb_expectation
    uint64_t seed;
    double precision, min_time, max_time, warmup_time; // fraction; seconds; warm-up negative: until settled
    int64_t warmup_samples;                            // negative: until settled
    int64_t samples, rounds;                           // exactly so many; 0: as many as the precision takes
    int64_t min_samples, max_samples, max_rounds;
} kbi_recipe;

enum { KBI_ROUNDS_LIMIT = 512 }; // rounds of a comparison at most

static void kbi_recipe_default(kbi_recipe* r) {
    memset(r, 0, sizeof *r);
    r->verify = r->audit = true;
    r->seed = 42;
    r->precision = 0.005;
    r->max_time = 1;
    r->warmup_time = -1;
    r->warmup_samples = -1;
    r->min_samples = 30;
    r->max_samples = 2000;
    r->max_rounds = 64;
}

static const kb_build* kbi_build_of(const kb_entry* entry) { return entry->build ? entry->build : kbi_build(); }
static bool kbi_debug_build(const kb_entry* entry) { return !kbi_build_of(entry)->optimised; }

typedef struct kbi_case {
    const kb_entry* entry;
    const char *name, *direction, *size; // size: category, NULL without one
    kb_dtype dtype;
    const kb_param* params; // every axis but dir
    int n_params;
    int group;
    uint64_t key; // hash of operation and params in whatever order: equal inside a comparison group
} kbi_case;

typedef struct kbi_measured {
    int32_t status; // kb_status
    int32_t verified, settled;
    int32_t queries;     // items are queries
    int32_t constant;    // the inputs are
    int32_t stage;       // whether rivals had their data at the same addresses; -1: there were none
    int32_t proven;      // the last run of the block wrote an output that a check liked
    int32_t ungated;     // launches did not wait behind a gate, and nobody said that they would not
    int32_t launches;    // whose mean is a sample
    int64_t retaken;     // samples thrown away and taken again, because the process or the gate stood still
    int32_t others;      // processes on this GPU
    int32_t dtype;       // kb_dtype: of the case's elements
    int32_t debug_build; // the benchmark's file is not optimised
    uint64_t flags;
    char message[512];
    char mode[8];
    int64_t n, rounds, again; // samples in ns, then rounds and (the baseline) as many again: ns of each round, follow
    int32_t arms, contest;    // how many were compared in these rounds, and the plan's index of their first
    double bias_ns, floor_ns, wall_ns, step_ns; // step: of the timer, per launch; NaN: not known
    double loop_ns;             // the least that a turn of the loop takes with nothing in it; 0: no matter
    double bias_error_ns;       // standard deviation of what the bias may be off
    double bytes, flops, items; // NaN: not said
    double max_error, tolerance;
    int64_t memory, host_memory, leaked; // bytes; KB_NONE: not known
    char kernel[256];
    int32_t grid[3], block[3];
    int64_t registers, shared_bytes, local_bytes;
    double occupancy, energy;                          // percent; mJ a launch
    double sm_clock, memory_clock, power, temperature; // MHz, W, degrees Celsius; NaN: not known
    double clock_low, clock_high;                      // of the SM clock over the samples
    char throttle[96];
} kbi_measured;

typedef struct kbi_machine {
    char backend[8];
    int32_t gpu_present, device, devices, sm;         // sm: 90 for 9.0
    int32_t ecc, mig, clocks_locked, multiprocessors; // -1: not known
    char gpu[96], driver[40], cuda[16], why[200];     // why: no GPU, for people
    int64_t memory, l2;
    double copy_roof, read_roof, write_roof; // bytes a second, measured; NaN: not
    double flop_roof[3];                     // f32, f16, bf16: operations a second, measured; NaN: not
    double floor[3], bias[2];                // ns: cold, hot by events, graph; of an empty kernel
    double fitted;                           // ns, an empty kernel's duration without CUPTI
    double quantum, empty_pair;              // ns, of events
    char truth[64];                          // what the bias was held against
    int32_t stated;                          // whether what is stated for a GPU that was measured fits this one
    double cold;   // share of an L2's worth of data that the eviction pushes out; NaN: not known
    char tool[24]; // that changes how launches run: nothing is timed under it; "": none
} kbi_machine;

typedef struct kbi_contest_end { // of a group, as it was judged
    int fastest;                 // its place, -1 where fewer than two have times
    bool certain;                // that it is the fastest
} kbi_contest_end;

static void kbi_measured_clear(kbi_measured* m) {
    memset(m, 0, sizeof *m);
    m->verified = m->stage = -1;
    m->settled = 1;
    m->bytes = m->flops = m->items = m->max_error = m->tolerance = NAN;
    m->bias_error_ns = 0;
    m->step_ns = m->bias_ns = m->floor_ns = m->wall_ns = m->occupancy = m->energy = NAN;
    m->sm_clock = m->memory_clock = m->power = m->temperature = m->clock_low = m->clock_high = NAN;
    m->memory = m->host_memory = m->leaked = m->registers = m->shared_bytes = m->local_bytes = KB_NONE;
}

// The doubles that follow: samples, rounds, the baseline's second rounds.
static size_t kbi_values(const kbi_measured* m) { return (size_t)(m->n + m->rounds + m->again); }

static void kbi_say_more(kbi_measured* m, const char* format, va_list list) {
    size_t n = strlen(m->message);
    if (n && n + 3 < sizeof m->message) {
        memcpy(m->message + n, "; ", 3);
        n += 2;
    }
    vsnprintf(m->message + n, sizeof m->message - n, format, list);
}

KBI_PRINTF(2, 3) static void kbi_remark(kbi_measured* m, const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_say_more(m, format, list);
    va_end(list);
}

/*---------------------------------------------------------------------------------------------------------------
  >>fields    foundation: a record's keys as data, and the names by which people choose among them.
              Public: kb_result_free
              Used by: programs, >>cli, >>verdict, >>json, >>columns, >>table, >>supervisor, >>embed
---------------------------------------------------------------------------------------------------------------*/

// KB_RECORD as data: for whatever walks over a record's keys, or is given one by its name.
typedef enum kbi_kind {
    KBI_KIND_text,
    KBI_KIND_real,
    KBI_KIND_whole,
    KBI_KIND_truth,
    KBI_KIND_params,
    KBI_KIND_samples,
    KBI_KIND_flags,
    KBI_KIND_status,
    KBI_KIND_verdict
} kbi_kind;

typedef struct kbi_key {
    const char* name;
    kbi_kind kind;
    size_t offset; // in kb_result
    const char *group, *meaning;
} kbi_key;

static const kbi_key kbi_keys[] = {
#define KBI_X(kind, key, group, meaning) { #key, KBI_KIND_##kind, offsetof(kb_result, key), #group, meaning },
    KB_RECORD(KBI_X)
#undef KBI_X
};

static const char* kbi_status_name(kb_status s) { return s == KB_OK ? "ok" : s == KB_FAILED ? "failed" : "skipped"; }
static const char* kbi_verdict_name(kb_verdict v) { // NULL without one
    static const char* const names[] = { NULL, "FASTER", "SLOWER", "EQUIVALENT", "UNRESOLVED" };
    return names[v];
}

// Where a record has it: a kbi_field_ of its kind.
static const void* kbi_field(const kb_result* r, const kbi_key* key) { return (const char*)r + key->offset; }

static double kbi_field_number(const kb_result* r, const kbi_key* key) { // NAN: none, or null
    const void* field = kbi_field(r, key);
    if (key->kind == KBI_KIND_real) return *(const kbi_field_real*)field;
    int64_t whole = key->kind == KBI_KIND_whole   ? *(const kbi_field_whole*)field
                    : key->kind == KBI_KIND_truth ? *(const kbi_field_truth*)field
                                                  : KB_NONE;
    return whole == KB_NONE || (key->kind == KBI_KIND_truth && whole < 0) ? (double)NAN : (double)whole;
}

static const char* kbi_field_words(const kb_result* r, const kbi_key* key) { // NULL: none, or null
    const void* field = kbi_field(r, key);
    if (key->kind == KBI_KIND_text) return *(const kbi_field_text*)field;
    if (key->kind == KBI_KIND_status) return kbi_status_name(*(const kbi_field_status*)field);
    if (key->kind == KBI_KIND_verdict) return kbi_verdict_name(*(const kbi_field_verdict*)field);
    if (key->kind != KBI_KIND_truth || *(const kbi_field_truth*)field < 0) return NULL;
    return *(const kbi_field_truth*)field ? "yes" : "no";
}

static void kbi_result_clear(kb_result* r) {
    memset(r, 0, sizeof *r);
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        void* field = (char*)r + kbi_keys[i].offset;
        if (kbi_keys[i].kind == KBI_KIND_real) *(kbi_field_real*)field = NAN;
        if (kbi_keys[i].kind == KBI_KIND_whole) *(kbi_field_whole*)field = KB_NONE;
        if (kbi_keys[i].kind == KBI_KIND_truth) *(kbi_field_truth*)field = -1;
    }
    r->owned = (struct kbi_arena*)kbi_grow(NULL, sizeof(kbi_arena));
    memset(r->owned, 0, sizeof(kbi_arena));
}

void kb_result_free(kb_result* result) {
    if (result->owned) kbi_arena_free((kbi_arena*)result->owned);
    KBENCH_FREE(result->owned);
    memset(result, 0, sizeof *result);
}

// --- by name: the columns of the table, and every key that is a number or a text ---

enum {
    KBI_COLUMN_TIME,
    KBI_COLUMN_SPREAD,
    KBI_COLUMN_GBPS,
    KBI_COLUMN_GFLOPS,
    KBI_COLUMN_ITEMS,
    KBI_COLUMN_ROOF,
    KBI_COLUMN_MEMORY,
    KBI_COLUMN_SAMPLES,
    KBI_COLUMN_SPEEDUP
};

static const struct {
    const char *title, *key;
    int width;
} kbi_columns[] = { { "time", "time_ms", 9 },
                    { "+-", "precision", 6 },
                    { "GB/s", "throughput_gbps", 8 },
                    { "GFLOP/s", "gflops", 8 },
                    { "items/s", "items_per_second", 8 },
                    { "roof", "gpu_efficiency", 6 },
                    { "memory", "memory_bytes", 8 },
                    { "samples", "samples", 7 },
                    { "speedup", "speedup", 7 } };

static const struct {
    int column;
    const char* title;
    double scale;
} kbi_units[] = { { KBI_COLUMN_GFLOPS, "GFLOP/s", 1 },    { KBI_COLUMN_GFLOPS, "TFLOP/s", 1e-3 },
                  { KBI_COLUMN_ITEMS, "items/s", 1 },     { KBI_COLUMN_ITEMS, "kitems/s", 1e-3 },
                  { KBI_COLUMN_ITEMS, "Mitems/s", 1e-6 }, { KBI_COLUMN_ITEMS, "Gitems/s", 1e-9 } };

typedef struct kbi_shown {
    int column;         // of kbi_columns; -1: the plain value of a key
    const kbi_key* key; // what it shows
    bool down;          // --sort: the largest first
} kbi_shown;
enum { KBI_SHOWN = 32 };

static const kbi_key* kbi_key_named(const char* name) {
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++)
        if (kbi_same_name(kbi_keys[i].name, name)) return &kbi_keys[i];
    return NULL;
}

static kbi_shown kbi_shown_column(int column) {
    kbi_shown shown = { column, kbi_key_named(kbi_columns[column].key), false };
    return shown;
}

// false after an error message.
static bool kbi_shown_named(const char* option, const char* name, kbi_shown* out) {
    kbi_nearest best = { name, NULL, 64 };
    const kbi_key* key = kbi_key_named(name);
    int column = -1;
    for (int i = 0; i < KBI_COUNT(kbi_columns); i++) {
        kbi_offer(&best, kbi_columns[i].title);
        if (kbi_same_name(kbi_columns[i].title, name)) column = i;
    }
    for (int i = 0; i < KBI_COUNT(kbi_units); i++)
        if (kbi_same_name(kbi_units[i].title, name)) column = kbi_units[i].column;
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) kbi_offer(&best, kbi_keys[i].name);
    if (column >= 0) return *out = kbi_shown_column(column), true;
    out->column = -1;
    out->key = key;
    out->down = false;
    if (key && key->kind != KBI_KIND_params && key->kind != KBI_KIND_samples && key->kind != KBI_KIND_flags)
        return true;
    if (key)
        kbi_error("--%s: %s is a list, neither a number nor a text", option, key->name);
    else if (!*name)
        kbi_error("--%s: a name is missing in its list", option);
    else if (best.distance <= 3)
        kbi_error("--%s: neither a column nor a key of the record is called '%s'; nearest is '%s'", option, name,
                  best.name);
    else
        kbi_error("--%s: neither a column nor a key of the record is called '%s'", option, name);
    return false;
}

// "time,-gflops": how many there are, 0 after an error message.
static int kbi_shown_parse(const char* option, const char* list, kbi_shown out[KBI_SHOWN]) {
    int n = 0;
    for (const char* p = list;; p++) {
        char name[64];
        bool down = kbi_is(option, "sort") && *p == '-';
        int length = (int)strcspn(p, ",") - down;
        snprintf(name, sizeof name, "%.*s", length, p + down);
        if (n == KBI_SHOWN) return kbi_error("--%s: more than %d names", option, (int)KBI_SHOWN), 0;
        if (!kbi_shown_named(option, name, &out[n])) return 0;
        out[n++].down = down;
        p += length + down;
        if (!*p) return n;
    }
}

static bool kbi_shown_check(const char* option, const char* list) {
    kbi_shown shown[KBI_SHOWN];
    return kbi_shown_parse(option, list, shown) > 0;
}

/*---------------------------------------------------------------------------------------------------------------
  >>registry  declare: what the KBENCH macros registered, in the order of the source.
              Public: kb_add_from      Used by: programs, >>worker
---------------------------------------------------------------------------------------------------------------*/

const char KBI_DEMAND[] = KBENCH_VERSION;
#if KBI_CUDA
const char KBI_DEMAND_CUDA[] = KBENCH_VERSION;
#endif

static int kbi_order_entries(const void* a, const void* b) {
    const kb_entry *x = *(kb_entry*const*)a, *y = *(kb_entry*const*)b;
    int file = strcmp(x->file, y->file);
    if (file) return file;
    return x->line != y->line ? (x->line > y->line) - (x->line < y->line)
                              : (x->order > y->order) - (x->order < y->order);
}

typedef struct kbi_placed { // an entry in the order of the source
    kb_entry* entry;
    int at, first; // where it stands there, and the first of its operation
} kbi_placed;

static int kbi_order_by_operation(const void* a, const void* b) {
    const kbi_placed *x = (const kbi_placed*)a, *y = (const kbi_placed*)b;
    int operation = strcmp(x->entry->operation, y->entry->operation);
    return operation ? operation : (x->at > y->at) - (x->at < y->at);
}

static int kbi_order_by_first(const void* a, const void* b) {
    const kbi_placed *x = (const kbi_placed*)a, *y = (const kbi_placed*)b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : (x->at > y->at) - (x->at < y->at);
}

// The entries in order, operations together at the place of their first; to be freed.
static kbi_registered kbi_registry(void) {
    size_t n = (size_t)kbi_process.entry_count;
    kb_entry** out = (kb_entry**)kbi_grow(NULL, sizeof(kb_entry*) * n);
    kbi_placed* all = (kbi_placed*)kbi_grow(NULL, sizeof(kbi_placed) * n);
    int count = 0;
    for (kb_entry* e = kbi_process.entries; e; e = e->next) out[count++] = e;
    qsort(out, n, sizeof *out, kbi_order_entries);
    for (int i = 0; i < count; i++) all[i].entry = out[i], all[i].at = i;
    qsort(all, n, sizeof *all, kbi_order_by_operation);
    for (int i = 0; i < count; i++) {
        bool same = i && strcmp(all[i].entry->operation, all[i - 1].entry->operation) == 0;
        all[i].first = same ? all[i - 1].first : all[i].at;
    }
    qsort(all, n, sizeof *all, kbi_order_by_first);
    for (int i = 0; i < count; i++) out[i] = all[i].entry;
    KBENCH_FREE(all);
    kbi_set_free(&kbi_process.entry_set);
    kbi_registered registered = { out, count };
    return registered;
}

// The next top-level word of "layernorm, naive, KB_AXIS(...)": what #__VA_ARGS__ of KBENCH and KBENCH_IMPL gives.
static const char* kbi_next_word(const char** names, const char* otherwise) {
    const char* s = *names;
    while (*s == ' ' || *s == ',') s++;
    size_t n = strcspn(s, ",");
    *names = s + n;
    while (n && s[n - 1] == ' ') n--;
    if (!n) return otherwise;
    char* word = (char*)kbi_grow(NULL, n + 1); // lives as long as the program, like the entry
    memcpy(word, s, n);
    word[n] = 0;
    return word;
}

void kb_add_from(kb_entry* entry, const kb_build* build) {
    for (const kb_entry* e = kbi_process.entry_set.n ? NULL : kbi_process.entries; e; e = e->next)
        kbi_set_add(&kbi_process.entry_set, (uint64_t)(uintptr_t)e);
    if (!kbi_set_add(&kbi_process.entry_set, (uint64_t)(uintptr_t)entry)) return;
    if (!entry->operation) entry->operation = "unnamed";
    if (!entry->implementation) entry->implementation = "default";
    if (!entry->file) entry->file = "";
    if (!entry->order) entry->order = kbi_process.entry_count;
    if (!entry->build) entry->build = build;
    entry->next = kbi_process.entries;
    kbi_process.entries = entry;
    kbi_process.entry_count++;
}

void kbi_register(kb_entry* entry, int words, const char* names, const kb_build* build) {
    entry->operation = kbi_next_word(&names, "unnamed");
    if (words > 1) entry->implementation = kbi_next_word(&names, "default");
    kb_add_from(entry, build);
}

/*---------------------------------------------------------------------------------------------------------------
  >>cli       plan: the command line, from one table that also prints --help.
              Public: none      Used by: >>plan, program
---------------------------------------------------------------------------------------------------------------*/

enum { KBI_EXIT_FINE = 0, KBI_EXIT_FAILED = 1, KBI_EXIT_USAGE = 2, KBI_EXIT_NO_GPU = 77, KBI_EXIT_INTERRUPTED = 130 };

//      id            name            argument         section       help
// clang-format off
#define KBI_OPTIONS(x)                                                                                           \
    x(list,           "list",         NULL,            "choose",     "the selected cases, one a line")               \
    x(list_ops,       "list-ops",     NULL,            "choose",     "operations with directions, dtypes, variants") \
    x(list_sizes,     "list-sizes",   NULL,            "choose",     "the sizes of each operation, by category")     \
    x(op,             "op",           "A,B",           "choose",     "operations; swish, gelu, loss are understood") \
    x(impl,           "impl",         "A,B",           "choose",     "implementations")                              \
    x(dtype,          "dtype",        "A,B",           "choose",     "element types: f32, f16, bf16, ...")           \
    x(size,           "size",         "A,B",           "choose",     "categories: small, medium, large, batch, ...") \
    x(axis,           "axis",         "NAME=LIST",     "choose",     "other values: -a rows=512,1024:8192:*2") \
    x(filter,         "filter",       "RE",            "choose",     "cases whose name matches (as does FILTER)")    \
    x(exclude,        "exclude",      "RE",            "choose",     "cases whose name does not match")              \
    x(device,         "device",       "N|all|cpu",     "choose",     "which GPU, every GPU in turn, or none; 0")     \
    x(fast,           "fast",         NULL,            "how long",   "0.2 s and 2 % a case, sizes small and medium") \
    x(quick,          "quick",        NULL,            NULL,         NULL)                                           \
    x(thorough,       "thorough",     NULL,            "how long",   "10 s a case")                                  \
    x(precision,      "precision",    "PCT",           "how long",   "stop when the median is known so well; 0.5 %") \
    x(max_time,       "max-time",     "T",             "how long",   "time of sampling a case at most; 1s")          \
    x(min_time,       "min-time",     "T",             "how long",   "time of sampling a case at least; 0s")         \
    x(rounds,         "rounds",       "N",             "how long",   "exactly N rounds of a comparison; 16 to 64")   \
    x(iters,          "iters",        "N",             "how long",   "exactly N samples a case")                     \
    x(warmup,         "warmup",       "N|T",           "how long",   "samples or time of warm-up; until settled")    \
    x(timeout,        "timeout",      "T",             "how long",   "a case that takes longer is ended; 60s")       \
    x(dry_run,        "dry-run",      NULL,            "how long",   "the plan, without running it")                 \
    x(cold,           "cold",         NULL,            "how",        "L2 evicted before each launch (the default)")   \
    x(hot,            "hot",          NULL,            "how",        "again on the same data, in cache")              \
    x(rotate,         "rotate",       NULL,            "how",        "back to back on copies of the data beyond L2")  \
    x(timer,          "timer",        "WHICH",         "how",        "events, cupti or wall")                        \
    x(no_verify,      "no-verify",    NULL,            "how",        "kb_check is not asked; records say UNVERIFIED") \
    x(no_audit,       "no-audit",     NULL,            "how",        "the timed block is not looked into")           \
    x(no_isolate,     "no-isolate",   NULL,            "how",        "one process: for debuggers and profilers")     \
    x(shuffle,        "shuffle",      NULL,            "how",        "comparison groups in random order")            \
    x(seed,           "seed",         "N",             "how",        "of data and order; 42")                        \
    x(json,           "json",         "FILE",          "out",        "records as one array, - for stdout")           \
    x(jsonl,          "jsonl",        "FILE",          "out",        "records appended, one a line, as they finish") \
    x(sort,           "sort",         "KEY,-KEY",      "out",        "rows, once an operation is done; -KEY: down")   \
    x(columns,        "columns",      "A,B,C",         "out",        "of the table: its own, or keys of the record")  \
    x(no_color,       "no-color",     NULL,            "out",        "plain text (as NO_COLOR)")                     \
    x(no_progress,    "no-progress",  NULL,            "out",        "no progress line on stderr")                   \
    x(quiet,          "quiet",        NULL,            "out",        "no warnings, no progress")                     \
    x(verbose,        "verbose",      NULL,            "out",        "advice for each flag, notes (-v)")             \
    x(help,           "help",         NULL,            "out",        "this text (-h)")                               \
    x(version,        "version",      NULL,            "out",        "the version")                                  \
    x(env,            "env",          NULL,            "look inside", "the machine and its calibration")            \
    x(selftest,       "selftest",     NULL,            "look inside", "measures the measurement; --fast: in short")   \
    x(truth,          "kbi-truth",    "DEVICE,OUT",    NULL,         NULL)                                           \
    x(worker,         "kbi-worker",   "IN,OUT",        NULL,         NULL)
// clang-format on

enum kbi_option_id {
#define KBI_X(id, name, argument, section, help) KBI_OPTION_##id,
    KBI_OPTIONS(KBI_X)
#undef KBI_X
        KBI_OPTION_COUNT
};

typedef struct kbi_option {
    const char *name, *argument, *section, *help; // section NULL: not shown
} kbi_option;

static const kbi_option kbi_options_table[] = {
#define KBI_X(id, name, argument, section, help) { name, argument, section, help },
    KBI_OPTIONS(KBI_X)
#undef KBI_X
};

enum { KBI_LISTS = 64 };
typedef struct kbi_strings { // the values of an option given more than once
    const char* of[KBI_LISTS];
    int n;
} kbi_strings;

typedef struct kbi_options {
    bool on[KBI_OPTION_COUNT]; // whether an option was given
    kbi_strings filter, exclude, op, impl, dtype, size, axis;
    const char *json, *jsonl, *device, *timer, *sort, *columns;
    double precision, max_time, min_time, warmup_time, timeout; // fractions and seconds
    int64_t iters, rounds, warmup_count, min_samples, max_samples;
    uint64_t seed;
    int worker_in, worker_out;
    int argc;
    char** argv;
} kbi_options;

static void kbi_options_default(kbi_options* o) {
    memset(o, 0, sizeof *o);
    o->precision = 0.005;
    o->max_time = 1;
    o->warmup_time = -1;
    o->warmup_count = -1;
    o->timeout = 60;
    o->min_samples = 30;
    o->max_samples = 2000;
    o->seed = 42;
    o->worker_in = o->worker_out = -1;
}

// What chooses cases; each of these may be there more than once.
static const int kbi_choosing_options[] = { KBI_OPTION_op,   KBI_OPTION_impl,   KBI_OPTION_dtype,  KBI_OPTION_size,
                                            KBI_OPTION_axis, KBI_OPTION_filter, KBI_OPTION_exclude };

static bool kbi_option_is_of(int id, const int* ids, int n) {
    for (int i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

// What is done instead of a run.
static const int kbi_idle_options[] = { KBI_OPTION_selftest, KBI_OPTION_env,        KBI_OPTION_list,
                                        KBI_OPTION_list_ops, KBI_OPTION_list_sizes, KBI_OPTION_dry_run };
// What only work on a GPU can be told.
static const int kbi_gpu_options[] = { KBI_OPTION_cold, KBI_OPTION_hot, KBI_OPTION_rotate, KBI_OPTION_timer };

static void kbi_help(void) {
    const char* section = NULL;
    printf("usage: %s [options] [FILTER...]\n", kbi_process.program);
    for (int i = 0; i < KBI_COUNT(kbi_options_table); i++) {
        static const kbi_option host = { "device", "cpu", "choose", "the only one: this build is without CUDA" };
        const kbi_option* o = i == KBI_OPTION_device && !KBI_CUDA ? &host : &kbi_options_table[i];
        if (!o->section || (!KBI_CUDA && kbi_option_is_of(i, kbi_gpu_options, KBI_COUNT(kbi_gpu_options)))) continue;
        if (!kbi_is(section, o->section)) printf("\n%s\n", o->section);
        section = o->section;
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        printf("  %-22s %s\n", left, o->help);
    }
    printf("\nFILTER is a regular expression on case names; -a is --axis, --quick is --fast.\n"
           "LISTs may have ranges: 1:64:*2, 0:100:+25. Times carry a unit: 200ms, 3s.\n"
           "Exit codes: 0 fine, 1 a case failed, 2 usage, 77 no GPU where every case needs\n"
           "one, 130 interrupted.\n");
}

// "200ms", "3s", "1.5m": seconds; negative when it is none.
static double kbi_parse_time(const char* s) {
    static const struct {
        const char* unit;
        double seconds;
    } units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 },
                  { "m", 60 },    { "min", 60 },  { "h", 3600 } };
    char* end;
    double x = kbi_real_of(s, &end);
    if (end == s || !(x >= 0) || !isfinite(x)) return -1;
    for (int i = 0; i < KBI_COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0) return x * units[i].seconds;
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

static bool kbi_need_time(const char* option, const char* s, double low, double* out) {
    double t = kbi_parse_time(s);
    if (t < 0)
        kbi_error("--%s takes a time with its unit, as in 200ms or 3s, not '%s'", option, s);
    else if (t < low)
        kbi_error("--%s takes a time above 0, not '%s'", option, s);
    else
        *out = t;
    return t >= low;
}

static bool kbi_need_count(const char* option, const char* s, int64_t low, int64_t high, int64_t* out) {
    if (kbi_parse_whole(s, low, high, out)) return true;
    kbi_error("--%s takes a whole number from %lld to %lld, not '%s'", option, (long long)low, (long long)high, s);
    return false;
}

static bool kbi_add_string(const char* option, kbi_strings* list, const char* s) {
    if (list->n == KBI_LISTS) {
        kbi_error("--%s was given more than %d times", option, KBI_LISTS);
        return false;
    }
    list->of[list->n++] = s;
    return true;
}

static bool kbi_option_precision(const char* value, kbi_options* o) {
    char* end;
    double x = kbi_real_of(value, &end);
    bool good = end != value && (!*end || kbi_is(end, "%")) && x > 0 && x <= 100;
    if (!good) kbi_error("--precision takes a percentage above 0, as in 0.5, not '%s'", value);
    o->precision = x / 100;
    return good;
}

static bool kbi_option_warmup(const char* value, kbi_options* o) {
    o->warmup_time = kbi_parse_time(value);
    if (o->warmup_time >= 0) return true;
    if (kbi_parse_whole(value, 0, 1000000, &o->warmup_count)) return true;
    kbi_error("--warmup takes a number of samples or a time with its unit, as in 10 or 200ms, not '%s'", value);
    return false;
}

static bool kbi_option_worker(const char* value, kbi_options* o) {
    return sscanf(value, "%d,%d", &o->worker_in, &o->worker_out) == 2;
}

// Of two values for one option, or two lists for one axis, neither can silently be the one that counts.
static bool kbi_option_is_second(const kbi_options* o, int id, const char* value) {
    const char* equals = id == KBI_OPTION_axis ? strchr(value, '=') : NULL;
    if (o->on[id] && kbi_options_table[id].argument &&
        !kbi_option_is_of(id, kbi_choosing_options, KBI_COUNT(kbi_choosing_options)))
        return kbi_error("--%s is there twice; it takes one value", kbi_options_table[id].name), true;
    for (int i = 0; equals && i < o->axis.n; i++) {
        char name[128], other[128];
        snprintf(name, sizeof name, "%.*s", (int)(equals - value), value);
        snprintf(other, sizeof other, "%.*s", (int)strcspn(o->axis.of[i], "="), o->axis.of[i]);
        if (!kbi_same_name(name, other)) continue;
        kbi_error("-a %s and -a %s name one axis; join the lists with a comma", o->axis.of[i], value);
        return true;
    }
    return false;
}

// One option with its value; false after an error message.
static bool kbi_option_set(kbi_options* o, int id, const char* value) {
    const char* name = kbi_options_table[id].name;
    int64_t whole = 0;
    if (kbi_option_is_second(o, id, value)) return false;
    o->on[id] = true;
    switch (id) {
    case KBI_OPTION_filter: return kbi_add_string(name, &o->filter, value);
    case KBI_OPTION_exclude: return kbi_add_string(name, &o->exclude, value);
    case KBI_OPTION_op: return kbi_add_string(name, &o->op, value);
    case KBI_OPTION_impl: return kbi_add_string(name, &o->impl, value);
    case KBI_OPTION_dtype: return kbi_add_string(name, &o->dtype, value);
    case KBI_OPTION_size: return kbi_add_string(name, &o->size, value);
    case KBI_OPTION_axis: return kbi_add_string(name, &o->axis, value);
    case KBI_OPTION_device: o->device = value; return true;
    case KBI_OPTION_quick: o->on[KBI_OPTION_fast] = true; return true;
    case KBI_OPTION_timer:
        o->timer = value;
        if (kbi_same_name(value, "events") || kbi_same_name(value, "cupti") || kbi_same_name(value, "wall"))
            return true;
        return kbi_error("--timer takes events, cupti or wall, not '%s'", value), false;
    case KBI_OPTION_json: o->json = value; return true;
    case KBI_OPTION_jsonl: o->jsonl = value; return true;
    case KBI_OPTION_sort: o->sort = value; return kbi_shown_check(name, value);
    case KBI_OPTION_columns: o->columns = value; return kbi_shown_check(name, value);
    case KBI_OPTION_max_time: return kbi_need_time(name, value, 1e-9, &o->max_time);
    case KBI_OPTION_min_time: return kbi_need_time(name, value, 0, &o->min_time);
    case KBI_OPTION_timeout: return kbi_need_time(name, value, 1e-9, &o->timeout);
    case KBI_OPTION_rounds: return kbi_need_count(name, value, 1, KBI_ROUNDS_LIMIT, &o->rounds);
    case KBI_OPTION_iters: return kbi_need_count(name, value, 1, 10000000, &o->iters);
    case KBI_OPTION_seed:
        if (!kbi_need_count(name, value, 0, INT64_MAX, &whole)) return false;
        o->seed = (uint64_t)whole;
        return true;
    case KBI_OPTION_precision: return kbi_option_precision(value, o);
    case KBI_OPTION_warmup: return kbi_option_warmup(value, o);
    case KBI_OPTION_truth:
    case KBI_OPTION_worker: return kbi_option_worker(value, o);
    default: return true;
    }
}

// An option's number by its name (n characters of s), -1 after an error message.
static int kbi_option_named(const char* s, size_t n) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)KBI_MIN(n, sizeof name - 1), s);
    kbi_nearest best = { name, NULL, 64 };
    for (int i = 0; i < KBI_COUNT(kbi_options_table); i++) {
        if (strcmp(name, kbi_options_table[i].name) == 0) return i;
        if (kbi_options_table[i].section) kbi_offer(&best, kbi_options_table[i].name);
    }
    if (best.distance <= 3)
        kbi_error("unknown option --%s; did you mean --%s? (--help lists all)", name, best.name);
    else
        kbi_error("unknown option --%s (--help lists all)", name);
    return -1;
}

static int kbi_option_short(const char* s) {
    if (kbi_is(s, "-a")) return KBI_OPTION_axis;
    if (kbi_is(s, "-v")) return KBI_OPTION_verbose;
    if (kbi_is(s, "-q")) return KBI_OPTION_quiet;
    if (kbi_is(s, "-h")) return KBI_OPTION_help;
    kbi_error("unknown option %s (--help lists all)", s);
    return -1;
}

// What --fast and --thorough stand for, unless said otherwise on the same line.
static void kbi_options_effort(kbi_options* o) {
    if (o->on[KBI_OPTION_fast]) {
        if (!o->on[KBI_OPTION_max_time]) o->max_time = 0.2;
        if (!o->on[KBI_OPTION_precision]) o->precision = 0.02;
        o->min_samples = 10;
    } else if (o->on[KBI_OPTION_thorough]) {
        if (!o->on[KBI_OPTION_max_time]) o->max_time = 10;
        if (!o->on[KBI_OPTION_precision]) o->precision = 0.002;
        o->max_samples = 20000;
    }
    if (o->min_time > o->max_time) o->max_time = o->min_time;
}

static bool kbi_one_of(const kbi_options* o, const int* ids, int n, const char* why) {
    for (int i = 0, first = -1; i < n; i++) {
        if (!o->on[ids[i]]) continue;
        if (first >= 0)
            return kbi_error("--%s and --%s exclude each other%s", kbi_options_table[ids[first]].name,
                             kbi_options_table[ids[i]].name, why),
                   false;
        first = i;
    }
    return true;
}

// Where one option would silently take away what another one asks for; false after an error message.
static bool kbi_options_agree(const kbi_options* o) {
    static const int mode[] = { KBI_OPTION_cold, KBI_OPTION_hot, KBI_OPTION_rotate };
    static const int effort[] = { KBI_OPTION_fast, KBI_OPTION_thorough };
    static const int count[] = { KBI_OPTION_iters, KBI_OPTION_rounds };
    static const int words[] = { KBI_OPTION_quiet, KBI_OPTION_verbose };
    if (!kbi_one_of(o, mode, KBI_COUNT(mode), "") || !kbi_one_of(o, effort, KBI_COUNT(effort), "") ||
        !kbi_one_of(o, count, KBI_COUNT(count), ": both say how many samples there are") ||
        !kbi_one_of(o, words, KBI_COUNT(words), "") ||
        !kbi_one_of(o, kbi_idle_options, KBI_COUNT(kbi_idle_options), ": one at a time"))
        return false;
    for (int i = 0; i < KBI_COUNT(mode); i++)
        if (o->on[mode[i]] && kbi_same_name(o->timer, "wall"))
            return kbi_error("--timer wall is the host's clock around each run: without --%s",
                             kbi_options_table[mode[i]].name),
                   false;
    if (o->on[KBI_OPTION_min_time] && o->on[KBI_OPTION_max_time] && o->min_time > o->max_time)
        return kbi_error("--min-time is above --max-time: there is no time between the two"), false;
    struct stat about;
    if (kbi_is(o->json, o->jsonl) && !kbi_is(o->json, "-") && (stat(o->json, &about) != 0 || S_ISREG(about.st_mode)))
        return kbi_error("--json and --jsonl both write %s; give each a file of its own", o->json), false;
    return true;
}

static bool kbi_options_parse(kbi_options* o, int argc, char** argv) {
    bool only_filters = false;
    o->argc = argc;
    o->argv = argv;
    for (int i = 1; i < argc; i++) {
        const char* s = argv[i];
        if (only_filters || s[0] != '-' || !s[1]) {
            if (!kbi_add_string("filter", &o->filter, s)) return false;
            continue;
        }
        if (kbi_is(s, "--")) {
            only_filters = true;
            continue;
        }
        const char* equals = s[1] == '-' ? strchr(s, '=') : NULL;
        size_t n = equals ? (size_t)(equals - s) - 2 : strlen(s) - 1;
        int id = s[1] == '-' ? kbi_option_named(s + 2, n) : kbi_option_short(s);
        if (id < 0) return false;
        bool wants = kbi_options_table[id].argument != NULL;
        if (!wants && equals) return kbi_error("--%s takes no value", kbi_options_table[id].name), false;
        if (wants && !equals && (i + 1 == argc || strncmp(argv[i + 1], "--", 2) == 0))
            return kbi_error("--%s needs %s", kbi_options_table[id].name, kbi_options_table[id].argument), false;
        if (!kbi_option_set(o, id, !wants ? NULL : equals ? equals + 1 : argv[++i])) return false;
    }
    if (!kbi_options_agree(o)) return false;
    kbi_options_effort(o);
    return true;
}

/*---------------------------------------------------------------------------------------------------------------
  >>ranges    plan: the values of axes, written as lists: 512,1024:8192:*2.
              Public: none      Used by: >>plan
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_dimension { // an axis with the values that are to be run
    const char* name;
    kb_axis_type type;
    const kb_param* values;
    int n;
} kbi_dimension;

enum { KBI_DIMENSIONS = 16, KBI_VALUES = 4096, KBI_CASES = 1000000 };

// "512", "2^20", "inf"
static bool kbi_parse_value(const char** s, double* out) {
    char* end;
    double x = kbi_real_of(*s, &end);
    bool infinite = end != *s && tolower((unsigned char)(*s)[**s == '-' || **s == '+']) == 'i';
    if (*end == '^' && end != *s) {
        const char* power = end + 1;
        double y = kbi_real_of(power, &end);
        if (end == power) return false;
        x = pow(x, y);
    }
    if (end == *s || (!infinite && !kbi_finite(x))) return false; // 1e999 is no way to write it
    *s = end;
    *out = x;
    return true;
}

static bool kbi_add_value(kb_param* values, int* n, kb_axis_type type, double x) {
    if (*n == KBI_VALUES || (type == KB_AXIS_INTS && (x != floor(x) || fabs(x) > 9e15))) return false;
    memset(&values[*n], 0, sizeof values[*n]);
    values[*n].type = type;
    if (type == KB_AXIS_INTS) values[*n].i = (int64_t)x;
    values[(*n)++].r = x;
    return true;
}

// One item of a list of numbers: "a", "a:b", "a:b:+step", "a:b:*factor".
static bool kbi_parse_item(const char** s, kb_param* values, int* n, kb_axis_type type) {
    double from, to, step = 1;
    char how = '+';
    if (!kbi_parse_value(s, &from)) return false;
    if (**s != ':') return kbi_add_value(values, n, type, from);
    (*s)++;
    if (!kbi_parse_value(s, &to)) return false;
    if (**s == ':') {
        how = (*s)[1];
        if (how != '+' && how != '*') return false;
        *s += 2;
        if (!kbi_parse_value(s, &step)) return false;
    }
    if (!kbi_finite(from) || !kbi_finite(to) || !kbi_finite(step)) return false;
    if (to < from || (how == '+' ? step <= 0 : step <= 1 || from <= 0)) return false;
    double slack = 1e-9 * (how == '+' ? step : to); // what adding up leaves
    for (double x = from; x <= to + slack; x = how == '+' ? x + step : x * step)
        if (!kbi_add_value(values, n, type, x)) return false;
    return true;
}

// "512,1024:8192:*2" for an axis of that type; n stays 0 when it is no such list.
static kbi_dimension kbi_parse_list(kbi_arena* a, const char* name, kb_axis_type type, const char* s, size_t length) {
    char* text = kbi_arena_text_n(a, s, length);
    kb_param* values = (kb_param*)kbi_grow(NULL, sizeof(kb_param) * KBI_VALUES); // touched as far as the list goes
    int n = 0;
    bool good = *text != 0;
    for (const char* p = text; good && *p;) {
        if (type == KB_AXIS_STRINGS) {
            size_t word = strcspn(p, ",");
            good = word > 0 && n < KBI_VALUES;
            if (!good) break;
            memset(&values[n], 0, sizeof values[n]);
            values[n].type = type;
            values[n++].s = kbi_arena_text_n(a, p, word);
            p += word;
        } else {
            good = kbi_parse_item(&p, values, &n, type);
        }
        if (good && *p) good = *p == ',' && p[1] && *++p;
    }
    kbi_dimension d = { kbi_arena_text(a, name), type, NULL, good ? n : 0 };
    kb_param* kept = (kb_param*)kbi_arena_alloc(a, sizeof(kb_param) * (size_t)(d.n + 1));
    memcpy(kept, values, sizeof(kb_param) * (size_t)d.n);
    for (int i = 0; i < d.n; i++) kept[i].name = d.name;
    d.values = kept;
    KBENCH_FREE(values);
    return d;
}

// Whether an axis of reals ends there. A NaN that something follows was given as a value.
static bool kbi_reals_end(const double* r, int at) {
    static const double zero = 0;
    for (int i = at + 1; i <= KB_AXIS_MAX; i++)
        if (memcmp(&r[i], &zero, sizeof zero) != 0) return false;
    return kbi_nan(r[at]);
}

static kbi_dimension kbi_axis_dimension(kbi_arena* a, const kb_axis* axis) {
    int n = 0;
    kb_param* values = (kb_param*)kbi_arena_alloc(a, sizeof(kb_param) * (KB_AXIS_MAX + 1));
    for (; n < KB_AXIS_MAX; n++) {
        bool last = axis->type == KB_AXIS_INTS    ? axis->i[n] == KB_LAST_INT
                    : axis->type == KB_AXIS_REALS ? kbi_reals_end(axis->r, n)
                                                  : !axis->s[n];
        if (last) break;
        values[n].name = axis->name;
        values[n].type = axis->type;
        values[n].i = axis->i[n];
        values[n].r = axis->type == KB_AXIS_INTS ? (double)axis->i[n] : axis->r[n];
        values[n].s = axis->s[n];
    }
    kbi_dimension d = { axis->name, axis->type, values, n };
    return d;
}

// The axes of "rows=512 cols=1024:4096:*2"; false when the text is no such thing.
static bool kbi_size_dimensions(kbi_arena* a, const char* spec, kbi_dimension* out, int* n) {
    for (const char* p = spec; *p;) {
        p += strspn(p, " ");
        size_t name = strcspn(p, "= "), value = p[name] == '=' ? strcspn(p + name + 1, " ") : 0;
        if (!name && !*p) break;
        if (!name || !value || *n == KBI_DIMENSIONS) return false;
        out[*n] = kbi_parse_list(a, kbi_arena_text_n(a, p, name), KB_AXIS_INTS, p + name + 1, value);
        if (!out[(*n)++].n) return false;
        p += name + 1 + value;
    }
    return true;
}

// The lowest integer that an entry declares for an axis, in any size.
static int64_t kbi_lowest_declared(kbi_arena* arena, const kb_entry* e, const char* name) {
    int64_t lowest = INT64_MAX;
    for (const kb_axis* a = e->axes; a && a->type != KB_AXIS_END; a++) {
        kbi_dimension d[KBI_DIMENSIONS];
        int n = 0;
        if (a->type == KB_AXIS_INTS)
            d[n++] = kbi_axis_dimension(arena, a);
        else if (a->type == KB_AXIS_SIZE)
            kbi_size_dimensions(arena, a->s[0], d, &n);
        for (int i = 0; i < n; i++)
            for (int v = 0; v < d[i].n && kbi_is(d[i].name, name); v++) lowest = KBI_MIN(lowest, d[i].values[v].i);
    }
    return lowest;
}

// Whether an entry takes these values of -a. A function that was only ever meant for sizes above 0 makes of a 0 a time
// of nothing, and of less whatever its arithmetic makes of it.
static bool kbi_takes_values(kbi_arena* arena, const kb_entry* e, const kbi_dimension* d, const char* said) {
    if (d->type != KB_AXIS_INTS) return true;
    int64_t lowest = kbi_lowest_declared(arena, e, d->name), least = lowest > 0 ? 1 : lowest == 0 ? 0 : INT64_MIN;
    for (int i = 0; i < d->n; i++) {
        if (d->values[i].i >= least) continue;
        kbi_error("-a %s: %s/%s takes no %s below %d: it declares none (its lowest is %lld)", said, e->operation,
                  e->implementation, d->name, (int)least, (long long)lowest);
        return false;
    }
    return true;
}

/*---------------------------------------------------------------------------------------------------------------
  >>plan      plan: from registry and command line to an ordered list of cases in comparison groups.
              Public: none      Used by: >>list, program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_plan {
    kbi_case* cases; // a group's cases stand together, the baseline first
    int n, groups;
    kbi_arena arena;
} kbi_plan;

static bool kbi_any_lists(const kbi_strings* lists, const char* name) {
    for (int i = 0; i < lists->n; i++)
        if (kbi_lists(lists->of[i], name)) return true;
    return false;
}

static const struct {
    const char *said, *meant;
} kbi_synonyms[] = { { "swish", "silu" }, { "gelu", "gelu_erf,gelu_tanh" }, { "loss", "mse,cross_entropy" } };

static bool kbi_word_is_operation(const char* word, const char* operation) {
    if (kbi_same_name(word, operation)) return true;
    for (int i = 0; i < KBI_COUNT(kbi_synonyms); i++)
        if (kbi_same_name(word, kbi_synonyms[i].said) && kbi_lists(kbi_synonyms[i].meant, operation)) return true;
    return false;
}

static bool kbi_selects_operation(const kbi_options* o, const char* operation) {
    char word[128];
    for (int i = 0; i < o->op.n; i++)
        for (const char* p = o->op.of[i]; *p; p += strcspn(p, ","), p += *p == ',') {
            snprintf(word, sizeof word, "%.*s", (int)strcspn(p, ","), p);
            if (kbi_word_is_operation(word, operation)) return true;
        }
    return o->op.n == 0;
}

// --size; --fast without it leaves the large ones out. A case without a category is in none.
static bool kbi_selects_size(const kbi_options* o, const char* size) {
    if (o->size.n) return size && kbi_any_lists(&o->size, size);
    return !(o->on[KBI_OPTION_fast] && size && kbi_same_name(size, "large"));
}

// -a NAME=LIST replaces an axis's values. An error message when the list does not fit the axis.
static bool kbi_override(kbi_arena* a, const kbi_options* o, const kb_entry* e, kbi_dimension* d) {
    for (int i = 0; i < o->axis.n; i++) {
        const char *s = o->axis.of[i], *equals = strchr(s, '=');
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(equals - s), s);
        if (!kbi_same_name(name, d->name)) continue;
        *d = kbi_parse_list(a, d->name, d->type, equals + 1, strlen(equals + 1));
        if (d->n && kbi_takes_values(a, e, d, s)) continue;
        if (d->n) return false;
        kbi_error("-a %s: not a list of at most %d %s; as in %s=1,2,16:64:*2", s, (int)KBI_VALUES,
                  d->type == KB_AXIS_REALS     ? "numbers"
                  : d->type == KB_AXIS_STRINGS ? "words"
                                               : "whole numbers",
                  d->name);
        return false;
    }
    return true;
}

static void kbi_put_param(kbi_text* t, char before, const kb_param* p) {
    char number[40];
    kbi_putf(t, "%c%s=", before, p->name);
    if (p->type == KB_AXIS_STRINGS)
        kbi_puts(t, p->s);
    else if (p->type == KB_AXIS_REALS)
        kbi_puts(t, kbi_number(p->r, number));
    else
        kbi_putf(t, "%lld", (long long)p->i);
}

// Adds the case of these values: its name, its key, and what has a meaning of its own (dtype; dir where it is strings,
// while numbers of that name are an axis like any).
static void kbi_plan_case(kbi_plan* plan, const kb_entry* e, const char* size, const kb_param* const* values, int n) {
    kbi_case c;
    kbi_text name, key;
    memset(&c, 0, sizeof c);
    memset(&name, 0, sizeof name);
    memset(&key, 0, sizeof key);
    kb_param* params = (kb_param*)kbi_arena_alloc(&plan->arena, sizeof(kb_param) * (size_t)(n + 1));
    const kb_param* dtype = NULL;
    for (int i = 0; i < n; i++) {
        if (kbi_is(values[i]->name, "dir") && values[i]->type == KB_AXIS_STRINGS)
            c.direction = values[i]->s;
        else
            params[c.n_params++] = *values[i];
        if (kbi_is(values[i]->name, "dtype")) dtype = values[i];
    }
    c.dtype = dtype ? kb_dtype_of(dtype->s) : KB_NODTYPE;
    kbi_puts(&name, e->operation);
    if (c.direction) kbi_putf(&name, "/dir=%s", c.direction);
    c.key = kbi_hash(14695981039346656037u, name.s);
    kbi_putf(&name, "/impl=%s", e->implementation);
    if (dtype) kbi_put_param(&name, '/', dtype);
    for (int i = 0; i < c.n_params; i++) {
        if (!kbi_is(params[i].name, "dtype")) kbi_put_param(&name, '/', &params[i]);
        key.n = 0;
        kbi_put_param(&key, '/', &params[i]);
        uint64_t h = kbi_hash(14695981039346656037u, key.s); // mixed (MurmurHash3's end), because they are added
        h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
        c.key += (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    }
    c.entry = e;
    c.size = size;
    c.params = params;
    c.name = kbi_arena_text(&plan->arena, name.s);
    if ((plan->n & (plan->n - 1)) == 0) // grows at powers of two
        plan->cases = (kbi_case*)kbi_grow(plan->cases, sizeof(kbi_case) * (size_t)KBI_MAX(16, 2 * plan->n));
    plan->cases[plan->n++] = c;
    kbi_text_free(&name);
    kbi_text_free(&key);
}

// The cartesian product, first axis slowest.
static bool kbi_plan_product(kbi_plan* plan, const kb_entry* e, const char* size, const kbi_dimension* d, int n) {
    const kb_param* values[KBI_DIMENSIONS];
    int at[KBI_DIMENSIONS] = { 0 };
    for (;;) {
        for (int i = 0; i < n; i++) values[i] = &d[i].values[at[i]];
        kbi_plan_case(plan, e, size, values, n);
        if (plan->n > KBI_CASES) return kbi_error("more than %d cases; narrow the axes", (int)KBI_CASES), false;
        int i = n - 1;
        while (i >= 0 && ++at[i] == d[i].n) at[i--] = 0;
        if (i < 0) return true;
    }
}

static bool kbi_restrict_dtypes(kbi_arena* a, const kbi_options* o, kbi_dimension* d) {
    if (!o->dtype.n || !kbi_is(d->name, "dtype")) return true;
    kb_param* kept = (kb_param*)kbi_arena_alloc(a, sizeof(kb_param) * (size_t)(d->n + 1));
    int n = 0;
    for (int i = 0; i < d->n; i++)
        if (kbi_any_lists(&o->dtype, d->values[i].s)) kept[n++] = d->values[i];
    d->values = kept;
    d->n = n;
    return n > 0;
}

// false after an error message: an axis without a name or a value, one that is there twice, an unknown element type.
static bool kbi_axis_sound(const kb_entry* e, const kbi_dimension* d, int at) {
    const char *name = d[at].name, *wrong = !name ? "is without a name" : !d[at].n ? "has no values" : NULL;
    for (int i = 0; i < at && !wrong; i++)
        if (kbi_is(d[i].name, name)) wrong = "is there twice";
    for (int i = 0; i < d[at].n && !wrong; i++)
        if (d[at].type == KB_AXIS_REALS && kbi_nan(d[at].values[i].r)) wrong = "holds a NaN";
    if (wrong) kbi_error("%s/%s: axis '%s' %s", e->operation, e->implementation, name ? name : "", wrong);
    for (int i = 0; i < d[at].n && !wrong && kbi_is(name, "dtype"); i++) {
        const char* type = d[at].type == KB_AXIS_STRINGS ? d[at].values[i].s : NULL;
        if (kb_dtype_of(type)) continue;
        wrong = "dtype";
        kbi_error("%s/%s: '%s' is no dtype; there are f32, f64, f16, bf16 and i8, u8 to i64, u64", e->operation,
                  e->implementation, type ? type : "a number");
    }
    return !wrong;
}

// The cases of one entry in one size (NULL: the entry has none).
static bool kbi_plan_size(kbi_plan* plan, const kbi_options* o, const kb_entry* e, const kb_axis* size) {
    kbi_dimension d[KBI_DIMENSIONS];
    int n = 0;
    bool has_dtype = false;
    for (const kb_axis* a = e->axes; a && a->type != KB_AXIS_END; a++) {
        if (a->type == KB_AXIS_SIZE && a != size) continue;
        int first = n;
        if (a->type == KB_AXIS_SIZE) {
            if (!kbi_size_dimensions(&plan->arena, a->s[0], d, &n))
                return kbi_error("%s/%s: KB_SIZE(\"%s\", \"%s\") is not of the form \"rows=512 cols=1,2\"",
                                 e->operation, e->implementation, a->name, a->s[0]),
                       false;
        } else {
            if (n == KBI_DIMENSIONS)
                return kbi_error("%s/%s has more than %d axes", e->operation, e->implementation, (int)KBI_DIMENSIONS),
                       false;
            d[n++] = kbi_axis_dimension(&plan->arena, a);
        }
        for (int i = first; i < n; i++) {
            if (!kbi_override(&plan->arena, o, e, &d[i]) || !kbi_axis_sound(e, d, i)) return false;
            if (!kbi_restrict_dtypes(&plan->arena, o, &d[i])) return true;
            has_dtype |= kbi_is(d[i].name, "dtype");
        }
    }
    if (o->dtype.n && !has_dtype) return true;
    return kbi_plan_product(plan, e, size ? size->name : NULL, d, n);
}

static bool kbi_plan_entry(kbi_plan* plan, const kbi_options* o, const kb_entry* e) {
    bool sized = false;
    if (!kbi_selects_operation(o, e->operation)) return true;
    if (o->impl.n && !kbi_any_lists(&o->impl, e->implementation)) return true;
    for (const kb_axis* a = e->axes; a && a->type != KB_AXIS_END; a++) {
        if (a->type != KB_AXIS_SIZE) continue;
        sized = true;
        if (kbi_selects_size(o, a->name) && !kbi_plan_size(plan, o, e, a)) return false;
    }
    return sized || !kbi_selects_size(o, NULL) ? true : kbi_plan_size(plan, o, e, NULL);
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
        kbi_error("'%s' is not a regular expression: %s", texts->of[p->n], why);
        return false;
    }
    return true;
}

static bool kbi_patterns_match(const kbi_patterns* p, const char* s) {
    for (int i = 0; i < p->n; i++)
        if (regexec(&p->of[i], s, 0, NULL, 0) == 0) return true;
    return false;
}

// Drops what the filters exclude.
static bool kbi_plan_filter(kbi_plan* plan, const kbi_options* o) {
    kbi_patterns with, without;
    without.n = 0;
    bool good = kbi_patterns_compile(&with, &o->filter) && kbi_patterns_compile(&without, &o->exclude);
    int n = 0;
    for (int i = 0; good && i < plan->n; i++) {
        const char* name = plan->cases[i].name;
        if ((with.n && !kbi_patterns_match(&with, name)) || kbi_patterns_match(&without, name)) continue;
        plan->cases[n++] = plan->cases[i];
    }
    plan->n = n;
    kbi_patterns_free(&with);
    kbi_patterns_free(&without);
    return good;
}

typedef struct kbi_keyed {
    uint64_t key;
    int at;
} kbi_keyed;

static int kbi_order_keyed(const void* a, const void* b) {
    const kbi_keyed *x = (const kbi_keyed*)a, *y = (const kbi_keyed*)b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->at > y->at) - (x->at < y->at);
}

// Drops the later of two cases that are one: the same shape in two sizes, or made the same by -a.
static void kbi_plan_unique(kbi_plan* plan) {
    kbi_keyed* keyed = (kbi_keyed*)kbi_grow(NULL, sizeof(kbi_keyed) * (size_t)plan->n);
    kbi_set seen = { NULL, 0, 0 };
    const kb_entry *twice = NULL, *before = NULL;
    int n = 0;
    for (int i = 0; i < plan->n; i++) keyed[i].key = plan->cases[i].key, keyed[i].at = i;
    qsort(keyed, (size_t)plan->n, sizeof *keyed, kbi_order_keyed);
    for (int i = 0; i < plan->n; i++) { // an entry's cases stand together, also among those of one key
        kbi_case* c = &plan->cases[keyed[i].at];
        if (i && keyed[i].key == keyed[i - 1].key && c->entry == before)
            c->name = NULL;
        else if (!kbi_set_add(&seen, kbi_hash(keyed[i].key, c->entry->implementation)) && !twice)
            twice = c->entry;
        before = c->entry;
    }
    kbi_set_free(&seen);
    if (twice)
        kbi_warn("%s/%s is registered twice: its records share a name", twice->operation, twice->implementation);
    for (int i = 0; i < plan->n; i++)
        if (plan->cases[i].name) plan->cases[n++] = plan->cases[i];
    plan->n = n;
    KBENCH_FREE(keyed);
}

// Cases with the same key form a group, at the place of its first; --shuffle then permutes the groups.
static void kbi_plan_group(kbi_plan* plan, const kbi_options* o) {
    size_t n = (size_t)plan->n;
    kbi_keyed* keyed = (kbi_keyed*)kbi_grow(NULL, sizeof(kbi_keyed) * n);
    int* place = (int*)kbi_grow(NULL, sizeof(int) * n);
    for (int i = 0; i < plan->n; i++) keyed[i].key = plan->cases[i].key, keyed[i].at = i;
    qsort(keyed, n, sizeof *keyed, kbi_order_keyed);
    for (int i = 0, first = 0; i < plan->n; i++) {
        if (keyed[i].key != keyed[first].key) first = i;
        plan->cases[keyed[i].at].group = keyed[first].at; // the group's first case: increases with the order
    }
    plan->groups = 0;
    for (int i = 0; i < plan->n; i++)
        if (plan->cases[i].group == i) place[i] = plan->groups++;
    for (int i = 0; i < plan->n; i++) plan->cases[i].group = place[plan->cases[i].group];
    if (o->on[KBI_OPTION_shuffle]) {
        kbi_shuffle(place, plan->groups, o->seed, 2, 0);
        for (int i = 0; i < plan->n; i++) plan->cases[i].group = place[plan->cases[i].group];
    }
    // a stable counting sort by group
    kbi_case* sorted = (kbi_case*)kbi_grow(NULL, sizeof(kbi_case) * n);
    int* start = (int*)kbi_grow(NULL, sizeof(int) * (size_t)(plan->groups + 1));
    memset(start, 0, sizeof(int) * (size_t)(plan->groups + 1));
    for (int i = 0; i < plan->n; i++) start[plan->cases[i].group + 1]++;
    for (int g = 0; g < plan->groups; g++) start[g + 1] += start[g];
    for (int i = 0; i < plan->n; i++) sorted[start[plan->cases[i].group]++] = plan->cases[i];
    KBENCH_FREE(plan->cases);
    plan->cases = sorted;
    KBENCH_FREE(start);
    KBENCH_FREE(place);
    KBENCH_FREE(keyed);
}

typedef enum kbi_naming { KBI_NAMES_OP, KBI_NAMES_IMPL, KBI_NAMES_DTYPE, KBI_NAMES_SIZE, KBI_NAMES_AXIS } kbi_naming;

// Offers every name of that sort which an entry has; true when one is the word itself.
static bool kbi_offer_entry(kbi_nearest* best, const kb_entry* e, kbi_naming what) {
    bool found = false;
    if (what == KBI_NAMES_OP)
        kbi_offer(best, e->operation), found = kbi_word_is_operation(best->wanted, e->operation);
    if (what == KBI_NAMES_IMPL) {
        kbi_offer(best, e->implementation);
        found = kbi_same_name(best->wanted, e->implementation);
    }
    for (const kb_axis* a = e->axes; a && a->type != KB_AXIS_END; a++) {
        if (what == KBI_NAMES_SIZE && a->type == KB_AXIS_SIZE) {
            kbi_offer(best, a->name);
            found |= kbi_same_name(best->wanted, a->name);
        } else if (what == KBI_NAMES_AXIS && a->type != KB_AXIS_SIZE) {
            kbi_offer(best, a->name);
            found |= kbi_same_name(best->wanted, a->name);
        } else if (what == KBI_NAMES_AXIS) {
            kbi_arena arena = { NULL, 0, 0 };
            kbi_dimension d[KBI_DIMENSIONS];
            int n = 0;
            kbi_size_dimensions(&arena, a->s[0], d, &n);
            for (int i = 0; i < n; i++) {
                found |= kbi_same_name(best->wanted, d[i].name);
                if (kbi_distance(best->wanted, d[i].name) < best->distance) { // the name dies with the arena
                    best->distance = kbi_distance(best->wanted, d[i].name);
                    best->name = NULL;
                    for (const char* p = a->s[0]; *p && !best->name; p++)
                        if (strncmp(p, d[i].name, strlen(d[i].name)) == 0) best->name = p;
                }
            }
            kbi_arena_free(&arena);
        } else if (what == KBI_NAMES_DTYPE && kbi_is(a->name, "dtype")) {
            for (int i = 0; a->s[i]; i++) {
                kbi_offer(best, a->s[i]);
                found |= kbi_same_name(best->wanted, a->s[i]);
            }
        }
    }
    return found;
}

// Every word of the lists must be the name of something registered.
static bool kbi_check_names(const kbi_registered* all, const kbi_strings* lists, kbi_naming what, const char* noun) {
    for (int i = 0; i < lists->n; i++)
        for (const char* p = lists->of[i]; *p; p += strcspn(p, ","), p += *p == ',') {
            char word[128];
            snprintf(word, sizeof word, "%.*s", (int)strcspn(p, what == KBI_NAMES_AXIS ? "=" : ","), p);
            if (what == KBI_NAMES_AXIS && !strchr(lists->of[i], '='))
                return kbi_error("-a takes NAME=LIST, as in rows=512,1024, not '%s'", lists->of[i]), false;
            kbi_nearest best = { word, NULL, 64 };
            bool found = false;
            for (int e = 0; e < all->n && !found; e++) found = kbi_offer_entry(&best, all->of[e], what);
            if (!found && best.distance > 3)
                kbi_error("unknown %s '%s' (--list%s shows what there is)", noun, word,
                          what == KBI_NAMES_SIZE || what == KBI_NAMES_AXIS ? "-sizes" : "-ops");
            else if (!found && best.name)
                kbi_error("unknown %s '%s'; nearest is '%.*s' (--list%s)", noun, word, (int)strcspn(best.name, "= "),
                          best.name, what == KBI_NAMES_SIZE ? "-sizes" : "-ops");
            else if (!found)
                kbi_error("unknown %s '%s': this program has none", noun, word);
            if (!found) return false;
            if (what == KBI_NAMES_AXIS) break;
        }
    return true;
}

static bool kbi_plan_check(const kbi_registered* all, const kbi_options* o) {
    return kbi_check_names(all, &o->op, KBI_NAMES_OP, "operation") &&
           kbi_check_names(all, &o->impl, KBI_NAMES_IMPL, "implementation") &&
           kbi_check_names(all, &o->dtype, KBI_NAMES_DTYPE, "dtype") &&
           kbi_check_names(all, &o->size, KBI_NAMES_SIZE, "size") &&
           kbi_check_names(all, &o->axis, KBI_NAMES_AXIS, "axis");
}

static void kbi_plan_free(kbi_plan* plan) {
    KBENCH_FREE(plan->cases);
    kbi_arena_free(&plan->arena);
    memset(plan, 0, sizeof *plan);
}

// false after an error message, also when nothing matched.
static bool kbi_plan_make(kbi_plan* plan, const kbi_options* o, const kbi_registered* all) {
    memset(plan, 0, sizeof *plan);
    if (!all->n)
        kbi_error(
            "no benchmark is registered in this program; a linker takes from a static library only what is called: "
            "put -Wl,--whole-archive before it and -Wl,--no-whole-archive behind it, or call kb_add once with "
            "an entry of its own");
    bool good = all->n && kbi_plan_check(all, o);
    for (int i = 0; good && i < all->n; i++) good = kbi_plan_entry(plan, o, all->of[i]);
    good = good && kbi_plan_filter(plan, o);
    if (good && !plan->n) kbi_error("nothing matched; --list shows the cases, --list-ops the operations");
    if (!good || !plan->n) return kbi_plan_free(plan), false;
    kbi_plan_unique(plan);
    kbi_plan_group(plan, o);
    return true;
}

// What the options ask of the measuring.
static void kbi_recipe_of(kbi_recipe* r, const kbi_options* o) {
    kbi_recipe_default(r);
    r->target = kbi_is(o->device, "cpu") ? KBI_ON_CPU : kbi_is(o->device, "script") ? KBI_ON_SCRIPT : KBI_ON_GPU;
    r->mode = o->on[KBI_OPTION_rotate] ? KBI_ROTATE : o->on[KBI_OPTION_hot] ? KBI_HOT : KBI_COLD;
    r->timing = kbi_same_name(o->timer, "cupti")  ? KBI_BY_CUPTI
                : kbi_same_name(o->timer, "wall") ? KBI_BY_WALL
                                                  : KBI_BY_EVENTS;
    r->verify = !o->on[KBI_OPTION_no_verify];
    r->audit = !o->on[KBI_OPTION_no_audit];
    r->energy = o->on[KBI_OPTION_thorough];
    r->seed = o->seed;
    r->precision = o->precision;
    r->min_time = o->min_time;
    r->max_time = o->max_time;
    r->warmup_time = o->warmup_time;
    r->warmup_samples = o->warmup_count;
    r->samples = o->iters;
    r->rounds = o->rounds;
    r->min_samples = o->min_samples;
    r->max_samples = o->max_samples;
    if (o->on[KBI_OPTION_thorough]) r->max_rounds = KBI_ROUNDS_LIMIT;
}

// What n cases in one group take at most, in seconds, as far as the options say it: warm-ups, and samples, of which the
// baseline of a comparison has twice as many.
static double kbi_group_seconds(const kbi_options* o, int n) {
    double warm = o->warmup_time >= 0 ? o->warmup_time : 0.5 * KBI_MIN(o->max_time, 2.0);
    return KBI_MIN(n * warm + (n + (n > 1)) * o->max_time, n * o->timeout);
}

// Where a group begins, and where the next does.
static int kbi_group_end(const kbi_plan* plan, int first) {
    int end = first;
    while (end < plan->n && plan->cases[end].group == plan->cases[first].group) end++;
    return end;
}

/*---------------------------------------------------------------------------------------------------------------
  >>list      plan: what --list, --list-ops and --list-sizes print.
              Public: none      Used by: >>program, >>main
---------------------------------------------------------------------------------------------------------------*/

static void kbi_list_cases(const kbi_plan* plan) {
    for (int i = 0; i < plan->n; i++) printf("%s\n", plan->cases[i].name);
}

// Prints a word of a column, once a line.
static void kbi_list_word(kbi_set* seen, uint64_t column, const char* word) {
    if (kbi_set_add(seen, kbi_hash(column << 60, word))) printf(" %s", word);
}

// The selected operations, one a line: name, directions, dtypes, implementations; -v adds the notes.
static void kbi_list_ops(const kbi_plan* plan, bool notes) {
    for (int i = 0, end; i < plan->n; i = end) {
        kbi_set seen = { NULL, 0, 0 };
        const char* operation = plan->cases[i].entry->operation;
        for (end = i; end < plan->n && kbi_is(plan->cases[end].entry->operation, operation);) end++;
        printf("%s", operation);
        for (int j = i; j < end; j++)
            if (plan->cases[j].direction) kbi_list_word(&seen, 1, plan->cases[j].direction);
        printf(" ");
        for (int j = i; j < end; j++)
            if (plan->cases[j].dtype) kbi_list_word(&seen, 2, kb_dtype_name(plan->cases[j].dtype));
        printf(" ");
        for (int j = i; j < end; j++) kbi_list_word(&seen, 3, plan->cases[j].entry->implementation);
        printf("\n");
        for (int j = i; notes && j < end; j++) {
            const kb_entry* e = plan->cases[j].entry;
            if (e->note && kbi_set_add(&seen, (uint64_t)(uintptr_t)e))
                printf("    %-10s %s\n", e->implementation, e->note);
        }
        kbi_set_free(&seen);
    }
}

// The selected shapes, one a line: operation, category, and every axis that -a can set but what --list-ops shows.
static void kbi_list_sizes(const kbi_plan* plan) {
    kbi_set seen = { NULL, 0, 0 };
    for (int i = 0; i < plan->n; i++) {
        const kbi_case* c = &plan->cases[i];
        kbi_text line = { NULL, 0, 0 };
        kbi_putf(&line, "%-16s %-8s", c->entry->operation, c->size ? c->size : "-");
        for (int j = 0; j < c->n_params; j++)
            if (!kbi_is(c->params[j].name, "dtype")) kbi_put_param(&line, ' ', &c->params[j]);
        if (kbi_set_add(&seen, kbi_hash(0, line.s))) printf("%s\n", line.s);
        kbi_text_free(&line);
    }
    kbi_set_free(&seen);
}

/*---------------------------------------------------------------------------------------------------------------
  >>run       measure: one benchmark function being run: its state, and the table of functions a device fills in.
              Public: none      Used by: measure, program
---------------------------------------------------------------------------------------------------------------*/

struct kbi_run;

// How a block is timed. begin answers how often the block is to run before end; end adds samples with kbi_add_sample,
// perhaps several at once, and perhaps only at the end of several launches.
typedef struct kbi_timer {
    const char* mode;
    int64_t (*begin)(struct kbi_run* run);
    void (*end)(struct kbi_run* run);
    void (*alone)(struct kbi_run* run); // instead of both: a sample of what the audit captured; NULL: the block runs
    bool by_clock;                      // the host's: a sample is as many calls of the block as the clock needs
    bool steady;                        // settled from the start
} kbi_timer;

// What a device fills in, in four groups. NULL: it has no such thing.
typedef struct kbi_backend {
    const char* name;
    bool gpu;       // KB_DEVICE memory lies on a GPU, and blocks submit their work to a stream
    bool stands_in; // for any device: GPU work runs here like host work
    bool (*open)(kbi_machine* machine, const kbi_recipe* recipe); // facts; false: machine->why says why not
    struct {
        void* (*alloc)(kb_place place, size_t bytes); // NULL: out of memory
        void (*release)(kb_place place, void* p);
        void (*set)(void* p, int byte, size_t bytes);
        void (*copy)(void* to, const void* from, size_t bytes); // any direction, waits
        void (*fill)(void* p, kb_dtype dtype, int64_t n, kb_kind kind, uint64_t seed, uint32_t tensor);
        int64_t (*free_bytes)(void);      // of the device
        int64_t (*pool_peak)(bool reset); // high-water mark of the stream-ordered pool; reset: what is in use now
    } memory;
    struct {
        const kbi_timer* (*choose)(struct kbi_run* run); // for blocks of device work
        kb_stream (*stream)(void);
        void (*prepare)(struct kbi_run* run); // before each call of the body
        const char* (*wait)(void);            // for all work; the text of an error since the last call, or NULL
        bool (*lost)(void);                   // whether no later work of this process survives that error
        void (*abandon)(void);                // ends what a block that was left early keeps from ending
        void (*roofs)(kbi_machine* m, kb_dtype dtype); // of arithmetic, when first wanted
    } timing;
    struct {
        void (*settle)(struct kbi_run* run); // after the first run of the block: is anything still at work beside it?
        void (*begin)(struct kbi_run* run);  // the audit
        void (*end)(struct kbi_run* run);
        void (*forget)(struct kbi_run* run); // what the audit captured
        int64_t (*repeats)(struct kbi_run* run,
                           int replicas); // how often to capture the block in a row; 0: it cannot be
        void (*repeat)(struct kbi_run* run, int which, bool begin); // captures it so often (0), twice so often (1)
    } capture;
    struct {
        double (*clock)(void);                 // of the SMs, in MHz; NaN: not known
        void (*sense)(kbi_measured* m);        // power, temperature, clocks, throttling
        double (*energy)(struct kbi_run* run); // mJ a launch; NaN: cannot be told
    } sensors;
} kbi_backend;

enum { KBI_READ_WORDS = 16 };
enum { KBI_GUARD = 4096, KBI_GUARD_BYTE = 0xA5, KBI_POISON = 0xFF };

typedef struct kbi_block { // [guard][bytes, rounded up to 256][guard]
    char* base;
    size_t bytes;
    kb_place place;
    bool staged;  // lies on the stage, and is not given back by itself
    bool changed; // by the timed block, since it was held
    int ordinal;  // of the call's blocks
    char* held;   // what was in it when the timed loop was entered; NULL: not kept
    struct kbi_block* next;
} kbi_block;

// Memory on which all implementations of a group play, one at a time: where a buffer lies decides 1 to 3 % of a small
// kernel's time, so rivals have theirs at the same addresses and pages. What an implementation left there waits in its
// wings, a copy, until its next turn.
typedef struct kbi_stage {
    const struct kbi_backend* backend;
    char *base, *allocated;
    size_t size;
    struct kbi_memory* on; // whose contents lie there
} kbi_stage;

typedef struct kbi_memory {
    kbi_block* blocks;
    kbi_stage* stage;              // NULL: every block is an allocation of its own
    size_t laid, most;             // bytes that the blocks of this call take on a stage; the most that any call took
    char* wings;                   // most bytes; NULL: nobody else plays
    bool strayed;                  // a block did not fit where the first call's had
    int taken;                     // blocks of this call so far
    uint64_t read[KBI_READ_WORDS]; // ordinals of the first call's blocks that were read after the loop
    int64_t read_bytes, held;      // their size; what was kept of them
    int64_t device, device_peak, host, host_peak;
    int64_t free_before, free_lowest; // cudaMemGetInfo's, over the case; KB_NONE: there is no such thing
    int64_t pool_before;              // in use of the pool when the case began
} kbi_memory;

typedef enum kbi_unit {
    KBI_NO_UNIT,
    KBI_CHECKED,
    KBI_AUDITED,
    KBI_CAPTURED,
    KBI_WARM,
    KBI_SAMPLE,
    KBI_PROVED
} kbi_unit;
typedef enum kbi_phase {
    KBI_PHASE_CHECK,
    KBI_PHASE_AUDIT,
    KBI_PHASE_WARM,
    KBI_PHASE_SAMPLE,
    KBI_PHASE_PROVE,
    KBI_PHASE_DONE
} kbi_phase;

typedef enum kbi_order { // what the conductor of several runs wants of this one
    KBI_BY_ITSELF,       // there is none: the engine says when it is enough
    KBI_HOLD,            // rest between audit and warm-up
    KBI_CAPTURE,         // run the block once into a capture that the conductor has begun, and hold again
    KBI_SLOT,            // take samples up to slot_end, then rest
    KBI_FINISH           // no more samples
} kbi_order;

typedef struct kbi_place { // among those that are measured in turn
    kbi_order order;
    kbi_fiber* fiber; // where the body rests; NULL: it runs to its end
    int64_t slot_end; // samples to have before another one's turn
    int settling;     // runs of the block to come that settle it in its slot, and are no samples
    double* settled;  // where the times of these go; NULL: nowhere
    bool stand_in;    // its results are nobody's: a copy for --rotate, or the baseline's equal rival
} kbi_place;

enum { KBI_WINDOW = 512 };
typedef struct kbi_window { // of the warm-up: times and clock over a stretch of it
    double ns[KBI_WINDOW];
    int n;
    int64_t begin;
    double median, clock; // of the window before
} kbi_window;

typedef struct kbi_body_call { // of the body
    kbi_phase phase, last;     // the phase to come, and the one after which the call ends
    kbi_unit unit, ready;      // in flight; and the one that KB_SAMPLE announced
    bool looped, sampled;      // KB_TIME was entered; inside KB_SAMPLE
    bool entered, proved;      // the loop, before the first reset; the last run began where the first one had
    uint32_t fills, zeros;     // calls of kb_fill; those with KB_ZERO
    int64_t warm_units, phase_began;
    kbi_window window;
} kbi_body_call;

typedef struct kbi_work { // what is known of the timed block
    bool host;            // it is host work
    unsigned expect;
    int64_t nodes, kernels; // of its capture
    int64_t estimate_ns;    // the least that it was seen to take
    bool checked;           // in a call of its own
    int line;               // of KB_TIME in its file
    bool called;            // a function of kb_run: no compiler can remove it
    int empty;              // which of the empty kernels has about as many bytes of arguments
    void* graph;            // what the audit captured, kept for timers that run it alone; the backend's
} kbi_work;

typedef struct kbi_sampling {
    const kbi_timer* timer;
    double* samples; // ns, raw, m.n of them; in the end the rounds behind them
    int64_t capacity, next_look;
    bool open;     // a sample was begun, and not all of its launches are done
    bool gated;    // launches can wait behind a gate
    int alarms;    // of the gate's watchdog, in a row
    int stops;     // of the process, when the sample was begun
    int launches;  // whose mean is a sample
    int64_t batch; // calls of the block that the host's clock times together
    bool resolved; // they are long enough for the clock
} kbi_sampling;

typedef struct kbi_run {
    kb_state kb;
    const kbi_recipe* recipe;
    const kbi_backend* backend;
    kbi_machine* machine; // its roofs of arithmetic are measured when first wanted
    const kbi_case* of;
    void (*progress)(void* to); // called between units, at most some times a second; NULL: nobody wants to know
    void* progress_to;
    int64_t began, shown;
    kbi_place place;
    kbi_body_call call;
    kbi_work work;
    kbi_sampling sampling;
    kbi_memory memory;
    kbi_measured m;
} kbi_run;

static bool kbi_failed(const kbi_run* run) { return run->m.status == KB_FAILED; }
static bool kbi_lost(const kbi_run* run) { // the device, by an error of this run's
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

KBI_PRINTF(3, 4) static void kbi_stop(kbi_run* run, kb_flag flag, const char* format, ...) {
    va_list list;
    kbi_raise(run, flag);
    if (!kbi_failed(run)) {
        va_start(list, format);
        kbi_say_more(&run->m, format, list);
        va_end(list);
    }
    run->m.status = KB_FAILED;
}

static void kbi_stop_on_error(kbi_run* run, const char* when) {
    const char* error = run->backend->timing.wait ? run->backend->timing.wait() : NULL;
    if (!error) return;
    bool memory = strstr(error, "MemoryAllocation") != NULL;
    kbi_stop(run, memory ? KB_FLAG_OOM : KB_FLAG_CUDA_ERROR, "%s %s", error, when);
}

static void kbi_add_sample(kbi_run* run, double ns) {
    if (run->call.unit == KBI_SAMPLE && run->place.settling > 0) {
        if (run->place.settled) *run->place.settled++ = ns;
        run->place.settling--;
        return;
    }
    if (run->call.unit == KBI_WARM) { // the first run may have loaded code
        if (ns < (double)run->work.estimate_ns) run->work.estimate_ns = (int64_t)ns;
        run->call.window.ns[run->call.window.n++ % KBI_WINDOW] = ns;
        return;
    }
    if (run->m.n == run->sampling.capacity) {
        run->sampling.capacity = KBI_MAX((int64_t)256, 2 * run->sampling.capacity);
        run->sampling.samples =
            (double*)kbi_grow(run->sampling.samples, sizeof(double) * (size_t)run->sampling.capacity);
    }
    run->sampling.samples[run->m.n++] = ns;
}

/*---------------------------------------------------------------------------------------------------------------
  >>lab       measure: all that a measuring process keeps from one case to the next.
              Public: none      Used by: measure, >>program, >>selftest
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
enum { KBI_LAUNCHES = 8, KBI_GATE_NODES = 256, KBI_GATE_SECONDS = 1, KBI_ALARMS = 2 };
enum kbi_function {
    KBI_F_NULL,
    KBI_F_READ,
    KBI_F_COPY,
    KBI_F_WRITE,
    KBI_F_GATE,
    KBI_F_CLOCK,
    KBI_F_FILL,
    KBI_F_FMA,
    KBI_F_SPIN,
    KBI_F_COUNT
};
static const char* const kbi_function_names[] = { "kbi_null",  "kbi_read", "kbi_copy", "kbi_write", "kbi_gate",
                                                  "kbi_clock", "kbi_fill", "kbi_fma",  "kbi_spin" };

// Empty kernels by the bytes of their arguments: after an eviction these are fetched before a kernel starts, and what
// its events read grows by up to 0.6 us with them.
static const int kbi_empty_bytes[] = { 0, 24, 48, 96, 160, 256, 512, 1024, 2048, 4096 };
enum { KBI_EMPTY_KERNELS = 10 };

// The driver's functions come from the runtime, so that -lcuda is not needed. Their types are the driver's ABI.
typedef int (*kbi_cu_load)(void** module, const void* image);
typedef int (*kbi_cu_function)(void** function, void* module, const char* name);
typedef int (*kbi_cu_launch)(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, kb_stream stream, void** arguments, void** extra);
typedef int (*kbi_cu_node)(cudaGraphNode_t node, void* parameters);
typedef int (*kbi_cu_arguments)(void* function, size_t index, size_t* offset, size_t* size);
typedef int (*kbi_cu_wait)(kb_stream stream, unsigned long long address, unsigned value, unsigned flags);

typedef struct kbi_gpu {
    kb_stream stream;
    cudaEvent_t start, stop;
    volatile unsigned* flag; // the gate: mapped host memory
    void* device_flag;
    uint64_t *clock, *device_clock;
    void *functions[KBI_F_COUNT], *empty[KBI_EMPTY_KERNELS];
    kbi_cu_launch launch;
    kbi_cu_wait wait_value; // NULL: the gate is a spinning kernel
    char* clean;            // what eviction reads; never written after start
    char* touch;            // where calibrating kernels write
    size_t clean_bytes;
    int multiprocessors, max_threads;
    int at, size; // launch in its sample
    double ns[KBI_LAUNCHES];
    bool gated, closed; // the sample's launches; the gate now
    bool ungated;       // under tools that wait for every launch nothing can be queued behind a gate
    int alarms;         // in a row, while the empty kernel was timed
    bool persisting;    // the program has set aside a part of L2
    char error[256];
    volatile sig_atomic_t alarmed; // the gate's watchdog went off
} kbi_gpu;

// Found with dlopen: nvml.h is often not installed, so the few prototypes that are needed stand here.
typedef struct kbi_nvml {
    void* device; // NULL: not available
    int (*clock)(void*, int, unsigned*);
    int (*power)(void*, unsigned*);
    int (*energy)(void*, unsigned long long*);
    int (*temperature)(void*, int, unsigned*);
    int (*reasons)(void*, unsigned long long*);
    int (*processes)(void*, unsigned*, void*);
} kbi_nvml;

// The head of CUpti_ActivityKernel4 and all later ones, which have kept its layout.
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
} kbi_activity;

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
    bool open;
    kbi_span* spans; // of kernels that are not the harness's own, as they come
    int n;
} kbi_cupti;

enum { KBI_RECENT = 64, KBI_EMPTIES = 2 };

typedef struct kbi_readings { // the latest of the empty kernel's
    double ns[KBI_RECENT];
    int64_t n;
} kbi_readings;

typedef struct kbi_calibration {
    kbi_readings empty[KBI_EVENT_MODES][2][KBI_EMPTY_KERNELS]; // [1]: behind a gate
    double graph_floor, empty_pair, quantum, fitted;           // ns
    double truth[KBI_EVENT_MODES]; // ns, what an empty kernel takes by CUPTI, cold and hot
    const char* source;            // of the truth; NULL: not known yet
} kbi_calibration;
#endif

static struct kbi_lab {
    double (*script)(const char* case_name, int64_t sample, uint64_t* flags); // --device script: a test's own times
    int64_t wall_start, wall_step;                                            // of the wall timer, ns
    double wall_bias;            // ns that two readings of the clock cost
    volatile sig_atomic_t stops; // how often the process was stopped and went on (SIGSTOP, Ctrl-Z)
#if KBI_CUDA
    kbi_gpu gpu;
    kbi_nvml nvml;
    kbi_cupti cupti;
    kbi_calibration calibration;
#endif
} kbi_lab;

/*---------------------------------------------------------------------------------------------------------------
  >>host      measure: the cpu backend, and the tests' script backend, with their timers.
              Public: none      Used by: measure, >>worker, >>program
---------------------------------------------------------------------------------------------------------------*/

// --- the wall timer: host clock around a batch of runs, for host work and for work that must synchronise ---

static double kbi_measure_wall_bias(void) {
    double ns[101], scratch[101];
    for (int i = 0; i < KBI_COUNT(ns); i++) {
        int64_t a = kbi_now();
        ns[i] = (double)(kbi_now() - a);
    }
    return kbi_median_of(ns, KBI_COUNT(ns), scratch);
}

// So many turns of KB_TIME's loop with nothing in it, in ns a turn. Aligned: a turn is a cycle, not two.
static double kbi_time_loop(int64_t turns) {
    int64_t began = kbi_now();
    __asm__ __volatile__(".p2align 6");
    for (int64_t left = turns; left > 0; --left) __asm__ __volatile__("" : : : "memory");
    return (double)(kbi_now() - began) / (double)turns;
}

// Lines that kb_keep (even) and KBENCH (odd) noted; the linker knows where the section begins and ends.
extern const int32_t __start_kbi_marks[] __attribute__((weak)), __stop_kbi_marks[] __attribute__((weak));

// Whether kb_keep stands between a line with KB_TIME and the next benchmark: then the block is not empty, though an
// empty loop takes as long.
static bool kbi_keeps(int line) {
    int end = line + 100;
    bool keeps = false;
    for (const int32_t* m = __start_kbi_marks; m < __stop_kbi_marks; m++)
        if (*m % 2 && *m / 2 > line) end = KBI_MIN(end, *m / 2);
    for (const int32_t* m = __start_kbi_marks; m < __stop_kbi_marks; m++)
        keeps |= *m % 2 == 0 && *m / 2 >= line && *m / 2 < end;
    return keeps;
}

// What was measured while the process stood still is measured again: its time is that of somebody's Ctrl-Z.
static void kbi_went_on(int number) {
    signal(number, kbi_went_on);
    kbi_lab.stops = kbi_lab.stops + 1;
}
static void kbi_watch_stops(void) { signal(SIGCONT, kbi_went_on); }

static int64_t kbi_wall_begin(kbi_run* run) {
    if (!kbi_lab.wall_bias) kbi_lab.wall_bias = KBI_MAX(kbi_measure_wall_bias(), 1e-3);
    if (run->backend->gpu && !run->work.host) kbi_stop_on_error(run, "before the timed block");
    run->sampling.stops = kbi_lab.stops;
    kbi_lab.wall_start = kbi_now();
    return run->sampling.batch;
}

enum { KBI_BATCH_MAX = 1 << 30, KBI_LOOP_NS = 3 }; // nothing that a block does is so short; what may be an empty loop

// During the warm-up the batch grows until a sample is a thousand steps of the clock long, and 20 us.
static void kbi_wall_end(kbi_run* run) {
    int64_t now = kbi_now();
    if (run->backend->gpu && !run->work.host) {
        kbi_stop_on_error(run, "in the timed loop");
        now = kbi_now();
    }
    double ns = (double)(now - kbi_lab.wall_start), target = 20000;
    if (run->sampling.stops != kbi_lab.stops) {
        run->m.retaken++;
        return;
    }
    if (!kbi_lab.wall_step) kbi_lab.wall_step = kbi_clock_step();
    target = KBI_MAX(target, 1000.0 * (double)kbi_lab.wall_step);
    kbi_add_sample(run, ns / (double)run->sampling.batch);
    if (run->call.unit == KBI_WARM && !run->call.sampled && ns < target && run->sampling.batch < KBI_BATCH_MAX) {
        double factor = ns > 0 ? target / ns : 1000;
        run->sampling.batch = (int64_t)((double)run->sampling.batch * KBI_MIN(KBI_MAX(factor * 1.1, 2), 1000));
        run->call.window.n = 0; // times of another batch size are no measure for this one
    } else {
        run->sampling.resolved = true;
    }
    run->m.bias_ns = run->m.floor_ns = kbi_lab.wall_bias / (double)run->sampling.batch;
    run->m.launches = (int32_t)KBI_MIN(run->sampling.batch, (int64_t)INT32_MAX);
    bool short_enough = ns <= (double)KBI_LOOP_NS * (double)run->sampling.batch && !run->work.called;
    if (run->call.unit != KBI_SAMPLE || run->call.sampled || !short_enough || kbi_keeps(run->work.line)) return;
    for (int i = 0; i < 3;
         i++) { // in turn with the block: what slows one slows the other; the least, as of the samples
        double loop = kbi_time_loop(run->sampling.batch);
        run->m.loop_ns = run->m.loop_ns > 0 ? KBI_MIN(run->m.loop_ns, loop) : loop;
    }
}

static const kbi_timer kbi_wall_timer = { "wall", kbi_wall_begin, kbi_wall_end, NULL, true, false };

// --- the cpu backend ---

// Blocks are aligned to 256 bytes, as cudaMalloc's are; the pointer to release stands before them.
static void* kbi_cpu_alloc(kb_place place, size_t bytes) {
    (void)place;
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if ((uint64_t)bytes > (uint64_t)memory) return NULL; // malloc would promise it, and the process be killed
    char* base = (char*)KBENCH_MALLOC(bytes + 256 + sizeof(void*));
    if (!base) return NULL;
    char* p = (char*)(((uintptr_t)base + sizeof(void*) + 255) & ~(uintptr_t)255);
    memcpy(p - sizeof(void*), &base, sizeof(void*));
    return p;
}

static void kbi_cpu_release(kb_place place, void* p) {
    (void)place;
    void* base;
    memcpy(&base, (char*)p - sizeof(void*), sizeof(void*));
    KBENCH_FREE(base);
}

static void kbi_cpu_set(void* p, int byte, size_t bytes) { memset(p, byte, bytes); }
static void kbi_cpu_copy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }
static void kbi_cpu_fill(void* p, kb_dtype dtype, int64_t n, kb_kind kind, uint64_t seed, uint32_t tensor) {
    kbi_fill_host(p, 0, n, (int)dtype, (int)kind, seed, tensor);
}
static const kbi_timer* kbi_cpu_choose(struct kbi_run* run) { return (void)run, &kbi_wall_timer; }

static void kbi_machine_clear(kbi_machine* m, const char* backend) {
    memset(m, 0, sizeof *m);
    snprintf(m->backend, sizeof m->backend, "%s", backend);
    m->device = m->ecc = m->mig = m->clocks_locked = m->multiprocessors = -1;
    m->copy_roof = m->read_roof = m->write_roof = NAN;
    for (int i = 0; i < 3; i++) m->flop_roof[i] = m->floor[i] = NAN;
    for (int i = 0; i < 2; i++) m->bias[i] = NAN;
    m->quantum = m->empty_pair = m->fitted = m->cold = NAN;
}

static bool kbi_cpu_open(kbi_machine* m, const kbi_recipe* recipe) {
    (void)recipe;
    kbi_machine_clear(m, "cpu");
    return true;
}

// clang-format off
#define KBI_HOST_MEMORY { kbi_cpu_alloc, kbi_cpu_release, kbi_cpu_set, kbi_cpu_copy, kbi_cpu_fill, NULL, NULL }
static const kbi_backend kbi_cpu = {
    "cpu", false, false, kbi_cpu_open,
    KBI_HOST_MEMORY,
    { kbi_cpu_choose, NULL, NULL, NULL, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL, NULL },
    { NULL, NULL, NULL }
};
// clang-format on

// The script backend, --device script: blocks run, and their times come from a function that the tests install before
// kb_main. It may raise flags (1 << KB_FLAG_...), and an ERROR flag ends the case.
static int64_t kbi_script_begin(kbi_run* run) { return (void)run, 1; }

static void kbi_script_end(kbi_run* run) {
    uint64_t flags = 0;
    double ns = kbi_lab.script(run->of->name, run->call.unit == KBI_SAMPLE ? run->m.n : -1, &flags);
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        if (!((flags >> f) & 1)) continue;
        if (kb_flag_is_error((kb_flag)f))
            kbi_stop(run, (kb_flag)f, "the script says so");
        else
            kbi_raise(run, (kb_flag)f);
    }
    run->m.bias_ns = run->m.floor_ns = 0;
    kbi_add_sample(run, ns);
}

static const kbi_timer kbi_script_timer = { "cold", kbi_script_begin, kbi_script_end, NULL, false, true };
static const kbi_timer* kbi_script_choose(struct kbi_run* run) { return (void)run, &kbi_script_timer; }

static bool kbi_script_open(kbi_machine* m, const kbi_recipe* recipe) {
    (void)recipe;
    kbi_machine_clear(m, "script");
    m->copy_roof = 1e12; // so that efficiency and ABOVE_ROOF can be tested
    m->l2 = 1 << 20;
    return true;
}

// clang-format off
static const kbi_backend kbi_scripted = {
    "script", false, true, kbi_script_open,
    KBI_HOST_MEMORY,
    { kbi_script_choose, NULL, NULL, NULL, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL, NULL },
    { NULL, NULL, NULL }
};
// clang-format on

/*---------------------------------------------------------------------------------------------------------------
  >>memory    measure: tracked allocations with guard bands; peaks, leaks and overwritten guards.
              Public: kb_alloc, kb_to_host, kb_from_host      Used by: programs, measure, >>selftest
---------------------------------------------------------------------------------------------------------------*/

enum { KBI_STAGE_LARGE = 1 << 20, KBI_STAGE_PAGE = 2 << 20 };
// AddressSanitizer looks at what lies between allocations.
#if defined(__SANITIZE_ADDRESS__)
#define KBI_STAGES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KBI_STAGES 0
#endif
#endif
#ifndef KBI_STAGES
#define KBI_STAGES 1
#endif

static size_t kbi_block_total(size_t bytes) { return ((bytes + 255) & ~(size_t)255) + 2 * KBI_GUARD; }

static void kbi_memory_count(kbi_memory* m, kb_place place, int64_t bytes) {
    if (place == KB_DEVICE) {
        m->device += bytes;
        m->device_peak = KBI_MAX(m->device_peak, m->device);
    } else {
        m->host += bytes;
        m->host_peak = KBI_MAX(m->host_peak, m->host);
    }
}

static void kbi_memory_look(const kbi_backend* b, kbi_memory* m) {
    int64_t now = kbi_free_bytes(b);
    if (now != KB_NONE) m->free_lowest = KBI_MIN(m->free_lowest, now);
}

// --- what the block's outputs held before: put back for the last run, so that only that can have written them

static const kbi_backend* kbi_block_home(const kbi_run* run, const kbi_block* block) {
    return block->place == KB_HOST ? &kbi_cpu : run->backend;
}

// Whether a block holds what was kept of it, as far as 16 looks can tell.
static bool kbi_block_as_held(const kbi_run* run, const kbi_block* block) {
    enum { KBI_LOOKS = 16 };
    char now[64], then[64];
    const kbi_backend* b = kbi_block_home(run, block);
    size_t n = KBI_MIN(sizeof now, block->bytes), step = (block->bytes - n) / (KBI_LOOKS - 1);
    for (size_t i = 0; i < KBI_LOOKS; i++) {
        b->memory.copy(now, block->base + KBI_GUARD + i * step, n);
        b->memory.copy(then, block->held + i * step, n);
        if (memcmp(now, then, n) != 0) return false;
    }
    return true;
}

// The first call tells which blocks are read after the loop; kb_open has no such call, and keeps all if they are small.
static void kbi_hold(kbi_run* run) {
    kbi_memory* m = &run->memory;
    bool embedded = run->call.last != KBI_PHASE_CHECK && !run->work.checked;
    int64_t room = kbi_free_bytes(run->backend), all = m->device + m->host;
    if (embedded && (all > (int64_t)1 << 30 || (room != KB_NONE && all > room / 2))) return;
    for (kbi_block* block = m->blocks; block; block = block->next) {
        int i = block->ordinal;
        bool wanted = embedded || (i < 64 * KBI_READ_WORDS && (m->read[i / 64] >> i % 64 & 1) != 0);
        const kbi_backend* b = kbi_block_home(run, block);
        if (!wanted || !block->bytes) continue;
        block->held = (char*)b->memory.alloc(block->place, block->bytes);
        if (!block->held) continue; // no room to prove it
        b->memory.copy(block->held, block->base + KBI_GUARD, block->bytes);
        if (block->place == KB_DEVICE) m->held += (int64_t)block->bytes;
    }
}

// Whether there is anything to prove; then the outputs are as they were.
static bool kbi_put_back(kbi_run* run) {
    bool any = false;
    for (kbi_block* block = run->memory.blocks; block; block = block->next) {
        if (!block->held) continue;
        any = true;
        block->changed = !kbi_block_as_held(run, block);
        kbi_block_home(run, block)->memory.copy(block->base + KBI_GUARD, block->held, block->bytes);
    }
    return any;
}

// Whether the last run was seen to write an output.
static bool kbi_proven(const kbi_run* run) {
    const kbi_block* block = run->call.proved ? run->memory.blocks : NULL;
    for (; block; block = block->next)
        if (block->held && !kbi_block_as_held(run, block)) return true;
    return false;
}

// Whether an output is what it was before the last run, though earlier ones wrote it.
static bool kbi_stale(const kbi_run* run) {
    const kbi_block* block = run->call.proved ? run->memory.blocks : NULL;
    for (; block; block = block->next)
        if (block->held && block->changed && kbi_block_as_held(run, block)) return true;
    return false;
}

// Where the next block goes: on boundaries as cudaMalloc's own.
static size_t kbi_stage_at(size_t laid, size_t total) {
    size_t boundary = total >= KBI_STAGE_LARGE ? KBI_STAGE_PAGE : 512;
    return (laid + boundary - 1) & ~(boundary - 1);
}

// NULL: it has to be an allocation of its own.
static char* kbi_stage_place(const kbi_backend* b, kbi_memory* m, kb_place place, size_t total) {
    if (place != KB_DEVICE && (b->gpu || place != KB_HOST)) return NULL;
    size_t at = kbi_stage_at(m->laid, total);
    if (m->stage && at + total > m->most) m->strayed = true;
    if (m->stage && m->strayed) return NULL;
    m->laid = at + total;
    m->most = KBI_MAX(m->most, m->laid);
    return m->stage ? m->stage->base + at : NULL;
}

static void* kbi_memory_alloc(const kbi_backend* b, kbi_memory* m, kb_place place, size_t bytes) {
    const kbi_backend* host = place == KB_HOST ? &kbi_cpu : b; // plain host memory needs no GPU
    size_t total = kbi_block_total(bytes);
    char *staged = kbi_stage_place(b, m, place, total), *base = staged;
    if (!base) base = (char*)host->memory.alloc(place, total);
    if (!base) return NULL;
    host->memory.set(base, KBI_GUARD_BYTE, total);
    host->memory.set(base + KBI_GUARD, KBI_POISON, bytes);
    kbi_block* block = (kbi_block*)kbi_grow(NULL, sizeof(kbi_block));
    block->base = base;
    block->bytes = bytes;
    block->place = place;
    block->staged = staged != NULL;
    block->changed = false;
    block->ordinal = m->taken++;
    block->held = NULL;
    block->next = m->blocks;
    m->blocks = block;
    kbi_memory_count(m, place, (int64_t)bytes);
    kbi_memory_look(b, m);
    return base + KBI_GUARD;
}

// A stage for the largest of them, with wings for each when there are several. false: no room, and none was made.
static bool kbi_stage_open(kbi_stage* s, const kbi_backend* b, kbi_memory** memories, int n) {
    memset(s, 0, sizeof *s);
    s->backend = b;
    for (int i = 0; i < n; i++) s->size = KBI_MAX(s->size, memories[i]->most);
    if (!s->size) return false;
    bool good = (s->allocated = (char*)b->memory.alloc(KB_DEVICE, s->size + KBI_STAGE_PAGE)) != NULL;
    s->base = (char*)(((uintptr_t)s->allocated + KBI_STAGE_PAGE - 1) & ~(uintptr_t)(KBI_STAGE_PAGE - 1));
    for (int i = 0; i < n && n > 1 && good; i++)
        if (memories[i]->most)
            good = (memories[i]->wings = (char*)b->memory.alloc(KB_DEVICE, memories[i]->most)) != NULL;
    for (int i = 0; i < n && good; i++) memories[i]->stage = s;
    for (int i = 0; i < n && !good; i++) {
        if (memories[i]->wings) b->memory.release(KB_DEVICE, memories[i]->wings);
        memories[i]->wings = NULL;
    }
    if (!good && s->allocated) b->memory.release(KB_DEVICE, s->allocated);
    return good;
}

// Untimed, before the gate: what the last one left goes into its wings, and what this one left comes back.
static void kbi_stage_enter(kbi_memory* m) {
    kbi_stage* s = m->stage;
    if (!s || s->on == m) return;
    if (s->on && s->on->wings && s->on->laid) s->backend->memory.copy(s->on->wings, s->base, s->on->laid);
    if (m->wings && m->laid) s->backend->memory.copy(s->base, m->wings, m->laid);
    s->on = m;
}

static void kbi_stage_close(kbi_stage* s, kbi_memory** memories, int n) {
    for (int i = 0; i < n; i++) {
        if (memories[i]->wings) s->backend->memory.release(KB_DEVICE, memories[i]->wings);
        memories[i]->wings = NULL;
        memories[i]->stage = NULL;
    }
    s->backend->memory.release(KB_DEVICE, s->allocated);
}

// The first overwritten byte beside a block, as an offset from its begin; KB_NONE when both guards stand. What
// rounding to 256 bytes adds behind the block is guard, too.
static int64_t kbi_guard_broken(const kbi_backend* b, const kbi_block* block) {
    static unsigned char bytes[KBI_GUARD + 256];
    const kbi_backend* host = block->place == KB_HOST ? &kbi_cpu : b;
    size_t behind = kbi_block_total(block->bytes) - KBI_GUARD - block->bytes;
    host->memory.copy(bytes, block->base, KBI_GUARD);
    for (int i = KBI_GUARD - 1; i >= 0; i--)
        if (bytes[i] != KBI_GUARD_BYTE) return i - KBI_GUARD;
    host->memory.copy(bytes, block->base + KBI_GUARD + block->bytes, behind);
    for (size_t i = 0; i < behind; i++)
        if (bytes[i] != KBI_GUARD_BYTE) return (int64_t)(block->bytes + i);
    return KB_NONE;
}

// Gives everything back. lost: the device no longer answers, so only the list is freed.
static void kbi_memory_free(const kbi_backend* b, kbi_memory* m, bool lost) {
    while (m->blocks) {
        kbi_block* block = m->blocks;
        m->blocks = block->next;
        kbi_memory_count(m, block->place, -(int64_t)block->bytes);
        const kbi_backend* host = block->place == KB_HOST ? &kbi_cpu : b;
        if (block->held && (!lost || host == &kbi_cpu)) host->memory.release(block->place, block->held);
        if (block->staged)
            ; // the stage's
        else if (block->place == KB_HOST)
            kbi_cpu.memory.release(block->place, block->base);
        else if (!lost)
            b->memory.release(block->place, block->base);
        KBENCH_FREE(block);
    }
    m->laid = 0;
    m->taken = 0;
    m->held = 0;
}

void* kb_alloc(kb_state* kb, kb_place place, size_t size, int64_t count) {
    kbi_run* run = kb->run;
    if (run->m.status != KB_OK) return NULL;
    bool absent = KBI_CUDA && !run->backend->gpu && !run->backend->stands_in && place != KB_HOST;
    if (absent && run->recipe->target != KBI_ON_CPU) {
        kb_skip(kb, "%s", run->machine->why[0] ? run->machine->why : "needs a GPU");
        return NULL;
    }
    if (count < 0 || (size && (uint64_t)count > (uint64_t)INT64_MAX / size)) {
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_alloc of %lld elements of %zu bytes", (long long)count, size);
        return NULL;
    }
    void* p = kbi_memory_alloc(run->backend, &run->memory, place, size * (size_t)count);
    char text[40];
    if (!p) kbi_stop(run, KB_FLAG_OOM, "no room for %s", kbi_show_bytes((double)size * (double)count, text));
    return p;
}

// The tracked block that p lies in, or NULL.
static const kbi_block* kbi_block_of(const kbi_run* run, const void* p) {
    const kbi_block* block = run->memory.blocks;
    for (; block; block = block->next)
        if ((const char*)p >= block->base + KBI_GUARD && (const char*)p < block->base + KBI_GUARD + block->bytes)
            break;
    return block;
}

// What is read after the loop of the first call is an output.
static void kbi_mark_read(kbi_run* run, const void* p) {
    kbi_memory* m = &run->memory;
    const kbi_block* block = run->call.looped && run->call.last == KBI_PHASE_CHECK ? kbi_block_of(run, p) : NULL;
    int i = block ? block->ordinal : 64 * KBI_READ_WORDS;
    if (i >= 64 * KBI_READ_WORDS || (m->read[i / 64] >> i % 64 & 1) != 0) return;
    m->read[i / 64] |= (uint64_t)1 << i % 64;
    m->read_bytes += (int64_t)block->bytes;
}

void kb_to_host(kb_state* kb, void* host, const void* from, size_t bytes) {
    if (kbi_failed(kb->run) || !host || !from) return;
    kbi_mark_read(kb->run, from);
    kb->run->backend->memory.copy(host, from, bytes);
}

void kb_from_host(kb_state* kb, void* to, const void* host, size_t bytes) {
    if (!kbi_failed(kb->run) && to && host) kb->run->backend->memory.copy(to, host, bytes);
}

void kbi_fill(kb_state* kb, void* p, kb_dtype dtype, int64_t n, kb_kind kind) {
    kbi_run* run = kb->run;
    uint32_t tensor = run->call.fills++;
    run->call.zeros += kind == KB_ZERO;
    if (kbi_failed(run) || !p || n <= 0) return;
    if (!kb_dtype_size(dtype)) {
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_fill of elements without a type");
        return;
    }
    const kbi_block* block = kbi_block_of(run, p);
    if (block && (size_t)n > (size_t)(block->base + KBI_GUARD + block->bytes - (char*)p) / kb_dtype_size(dtype)) {
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_fill of %lld elements into a block of %zu bytes", (long long)n,
                 block->bytes);
        return;
    }
    const kbi_backend* b = block && block->place != KB_DEVICE ? &kbi_cpu : run->backend;
    b->memory.fill(p, dtype, n, kind, kb->seed, tensor);
}

/*---------------------------------------------------------------------------------------------------------------
  >>device    measure: the GPU: stream, gate, events, eviction, clock.
              Public: none      Used by: measure, >>selftest
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
static const char* kbi_cuda_text(cudaError_t e) {
    snprintf(kbi_lab.gpu.error, sizeof kbi_lab.gpu.error, "%s: %s", cudaGetErrorName(e), cudaGetErrorString(e));
    return kbi_lab.gpu.error;
}

static void* kbi_driver_function(const char* name, unsigned version) {
    void* p = NULL;
    enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &p, version, cudaEnableDefault, &found);
#else
    (void)version;
    cudaError_t e = cudaGetDriverEntryPoint(name, &p, cudaEnableDefault, &found);
#endif
    return e == cudaSuccess && found == cudaDriverEntryPointSuccess ? p : NULL;
}

static void kbi_ptx_put(kbi_text* to); // stands behind the code
static bool kbi_load_functions(char why[200]) {
    kbi_cu_load load;
    kbi_cu_function get;
    void* p;
    void* module = NULL;
    kbi_text ptx = { NULL, 0, 0 };
    p = kbi_driver_function("cuModuleLoadData", 12000), memcpy(&load, &p, sizeof p);
    p = kbi_driver_function("cuModuleGetFunction", 12000), memcpy(&get, &p, sizeof p);
    p = kbi_driver_function("cuLaunchKernel", 12000), memcpy(&kbi_lab.gpu.launch, &p, sizeof p);
    p = kbi_driver_function("cuStreamWaitValue32", 12000), memcpy(&kbi_lab.gpu.wait_value, &p, sizeof p);
    kbi_ptx_put(&ptx);
    for (int i = 1; i < KBI_EMPTY_KERNELS; i++) // reads its first and its last argument
        kbi_putf(&ptx,
                 ".visible .entry kbi_empty_%d(.param .align 8 .b8 a[%d]) { .reg .b64 %%a<2>; .reg .pred %%p<2>;"
                 " ld.param.u64 %%a0, [a]; ld.param.u64 %%a1, [a+%d]; setp.eq.s64 %%p0, %%a0, 1;"
                 " setp.eq.and.s64 %%p1, %%a1, 1, %%p0; @%%p1 trap; ret; }\n",
                 i, kbi_empty_bytes[i], kbi_empty_bytes[i] - 8);
    int error = load && get && kbi_lab.gpu.launch ? load(&module, ptx.s) : -1;
    for (int i = 0; !error && i < KBI_F_COUNT; i++)
        error = get(&kbi_lab.gpu.functions[i], module, kbi_function_names[i]);
    kbi_lab.gpu.empty[0] = kbi_lab.gpu.functions[KBI_F_NULL];
    for (int i = 1; !error && i < KBI_EMPTY_KERNELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "kbi_empty_%d", i);
        error = get(&kbi_lab.gpu.empty[i], module, name);
    }
    kbi_text_free(&ptx);
    if (error) snprintf(why, 200, "the driver did not load the harness's own kernels (CUresult %d)", error);
    return !error;
}

static void kbi_launch(enum kbi_function f, unsigned blocks, unsigned threads, void** arguments) {
    kbi_lab.gpu.launch(kbi_lab.gpu.functions[f], blocks, 1, 1, threads, 1, 1, 0, kbi_lab.gpu.stream, arguments, NULL);
}

static void kbi_launch_empty(int which) {
    static char arguments[4096]; // zeros
    void* all[] = { arguments };
    kbi_lab.gpu.launch(kbi_lab.gpu.empty[which], 1, 1, 1, 1, 1, 1, 0, kbi_lab.gpu.stream, which ? all : NULL, NULL);
}

static void kbi_gpu_read(const void* p, size_t bytes) {
    uint64_t n = bytes / 16;
    void* sink = kbi_lab.gpu.device_clock;
    void* arguments[] = { &p, &n, &sink };
    kbi_launch(KBI_F_READ, (unsigned)kbi_lab.gpu.multiprocessors * 8, 256, arguments);
}

static void kbi_gpu_copy_kernel(void* to, const void* from, size_t bytes) {
    uint64_t n = bytes / 16;
    void* arguments[] = { &to, &from, &n };
    kbi_launch(KBI_F_COPY, (unsigned)kbi_lab.gpu.multiprocessors * 8, 256, arguments);
}

static void kbi_gpu_write(void* to, size_t bytes) {
    uint64_t n = bytes / 16;
    uint32_t value = 0x3f000000;
    void* arguments[] = { &to, &n, &value };
    kbi_launch(KBI_F_WRITE, (unsigned)kbi_lab.gpu.multiprocessors * 8, 256, arguments);
}

// Reading lines that nobody writes leaves nothing to be written back at the timed kernel's expense.
static void kbi_evict(void) { kbi_gpu_read(kbi_lab.gpu.clean, kbi_lab.gpu.clean_bytes); }

// --- the gate: what is queued behind it starts when the host opens it ---

static void kbi_gate_alarm(int number) {
    (void)number;
    signal(SIGALRM, kbi_gate_alarm); // System V's signal, which -std=c11 can bring, forgets the handler
    if (kbi_lab.gpu.flag) *kbi_lab.gpu.flag = 1;
    kbi_lab.gpu.alarmed = 1;
}

static void kbi_gate_watch(int seconds) { // a block that waits for the GPU behind a closed gate would wait for ever
    struct itimerval t;
    memset(&t, 0, sizeof t);
    t.it_value.tv_sec = seconds;
    setitimer(ITIMER_REAL, &t, NULL);
}

static void kbi_gate_close(void) {
    *kbi_lab.gpu.flag = 0;
    kbi_lab.gpu.closed = true;
    if (kbi_lab.gpu.wait_value) {
        unsigned long long address = (unsigned long long)(uintptr_t)kbi_lab.gpu.device_flag;
        if (kbi_lab.gpu.wait_value(kbi_lab.gpu.stream, address, 1, 0) != 0) kbi_lab.gpu.wait_value = NULL;
    }
    if (!kbi_lab.gpu.wait_value) {
        uint64_t deadline =
            (uint64_t)KBI_GATE_SECONDS * 2000000000u; // the host's watchdog comes first, and is noticed
        void* arguments[] = { &kbi_lab.gpu.device_flag, &deadline };
        kbi_launch(KBI_F_GATE, 1, 1, arguments);
    }
    kbi_gate_watch(KBI_GATE_SECONDS);
}

static void kbi_gate_open(void) {
    if (!kbi_lab.gpu.closed) return;
    __sync_synchronize();
    *kbi_lab.gpu.flag = 1;
    kbi_lab.gpu.closed = false;
    kbi_gate_watch(0);
    if (kbi_lab.gpu.alarmed) kbi_lab.gpu.gated = false; // the next gate of the group would only wait as long
}

// --- what the engine asks for ---

// An earlier case, or another thread, may have chosen another device; lines that it made persist in L2 would survive
// the eviction.
static void kbi_gpu_prepare(struct kbi_run* run) {
    cudaSetDevice(run->machine->device);
    cudaCtxResetPersistingL2Cache();
    cudaGetLastError();
}

static kb_stream kbi_gpu_stream(void) { return kbi_lab.gpu.stream; }

static void* kbi_gpu_alloc(kb_place place, size_t bytes) {
    void* p = NULL;
    cudaError_t e = place == KB_PINNED ? cudaHostAlloc(&p, bytes, cudaHostAllocMapped) : cudaMalloc(&p, bytes);
    if (e == cudaSuccess) return p;
    cudaGetLastError();
    return NULL;
}

static void kbi_gpu_release(kb_place place, void* p) {
    if (place == KB_PINNED)
        cudaFreeHost(p);
    else
        cudaFree(p);
}

static void kbi_gpu_set(void* p, int byte, size_t bytes) {
    cudaMemsetAsync(p, byte, bytes, kbi_lab.gpu.stream);
    cudaStreamSynchronize(kbi_lab.gpu.stream); // pinned memory is the host's as well
}

static void kbi_gpu_copy(void* to, const void* from, size_t bytes) {
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, kbi_lab.gpu.stream);
    cudaStreamSynchronize(kbi_lab.gpu.stream);
}

static void kbi_gpu_fill(void* p, kb_dtype dtype, int64_t n, kb_kind kind, uint64_t seed, uint32_t tensor) {
    uint64_t count = (uint64_t)n;
    uint32_t type = (uint32_t)dtype, what = (uint32_t)kind;
    void* arguments[] = { &p, &count, &type, &what, &seed, &tensor };
    kbi_launch(KBI_F_FILL, (unsigned)kbi_lab.gpu.multiprocessors * 8, 256, arguments);
}

static const char* kbi_gpu_wait(void) {
    cudaError_t e = cudaDeviceSynchronize(), last = cudaGetLastError();
    if (e == cudaSuccess) e = last;
    return e == cudaSuccess ? NULL : kbi_cuda_text(e);
}

static bool kbi_gpu_lost(void) { return cudaDeviceSynchronize() != cudaSuccess; }

static int64_t kbi_gpu_free_bytes(void) {
    size_t free_now = 0, total = 0;
    return cudaMemGetInfo(&free_now, &total) == cudaSuccess ? (int64_t)free_now : KB_NONE;
}

static int64_t kbi_gpu_pool_peak(bool reset) {
    cudaMemPool_t pool;
    uint64_t high = 0;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetDefaultMemPool(&pool, device) != cudaSuccess) return 0;
    if (reset) cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high); // to what is in use
    cudaMemPoolGetAttribute(pool, reset ? cudaMemPoolAttrUsedMemCurrent : cudaMemPoolAttrUsedMemHigh, &high);
    cudaGetLastError();
    return (int64_t)high;
}

// The SM clock now, from cycles against nanoseconds in one thread for about 50 us.
static double kbi_gpu_clock(void) {
    uint64_t cycles = 80000;
    void* arguments[] = { &kbi_lab.gpu.device_clock, &cycles };
    kbi_launch(KBI_F_CLOCK, 1, 1, arguments);
    if (cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess || !kbi_lab.gpu.clock[0]) return NAN;
    return 1000.0 * (double)kbi_lab.gpu.clock[1] / (double)kbi_lab.gpu.clock[0];
}

static void kbi_gpu_abandon(void) {
    kbi_gate_open();
    kbi_lab.gpu.at = 0;
    enum cudaStreamCaptureStatus status;
    if (cudaStreamIsCapturing(kbi_lab.gpu.stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone) {
        cudaGraph_t graph = NULL;
        cudaStreamEndCapture(kbi_lab.gpu.stream, &graph);
        if (graph) cudaGraphDestroy(graph);
    }
    cudaGetLastError();
    cudaStreamSynchronize(kbi_lab.gpu.stream);
}

#endif

/*---------------------------------------------------------------------------------------------------------------
  >>nvml      measure: clocks, power, temperature, throttling, other processes, through NVML.
              Public: none      Used by: >>cuda
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA

static void kbi_nvml_open(kbi_machine* m) {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    char bus[64];
    int (*init)(void) = NULL;
    int (*handle)(const char*, void**) = NULL;
    int (*driver)(char*, unsigned) = NULL;
    int (*mig)(void*, unsigned*, unsigned*) = NULL;
    unsigned now = 0, pending = 0;
    if (!library || cudaDeviceGetPCIBusId(bus, (int)sizeof bus, m->device) != cudaSuccess) return;
    kbi_find(library, "nvmlInit_v2", &init);
    kbi_find(library, "nvmlDeviceGetHandleByPciBusId_v2", &handle);
    kbi_find(library, "nvmlSystemGetDriverVersion", &driver);
    kbi_find(library, "nvmlDeviceGetMigMode", &mig);
    kbi_find(library, "nvmlDeviceGetClockInfo", &kbi_lab.nvml.clock);
    kbi_find(library, "nvmlDeviceGetPowerUsage", &kbi_lab.nvml.power);
    kbi_find(library, "nvmlDeviceGetTotalEnergyConsumption", &kbi_lab.nvml.energy);
    kbi_find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &kbi_lab.nvml.processes);
    kbi_find(library, "nvmlDeviceGetTemperature", &kbi_lab.nvml.temperature);
    kbi_find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &kbi_lab.nvml.reasons);
    if (!init || !handle || init() != 0 || handle(bus, &kbi_lab.nvml.device) != 0) return;
    if (driver) driver(m->driver, (unsigned)sizeof m->driver);
    if (mig) m->mig = mig(kbi_lab.nvml.device, &now, &pending) == 0 ? (int)now : 0;
    unsigned long long mask = 0; // 0x2: clocks are held at what an administrator set
    if (kbi_lab.nvml.reasons && kbi_lab.nvml.reasons(kbi_lab.nvml.device, &mask) == 0)
        m->clocks_locked = (mask & 0x2) != 0;
}

// Reasons are the bits of nvml.h's nvmlClocksEventReasons; idle and user-set clocks are no throttling.
static void kbi_nvml_reasons(kbi_measured* m, unsigned long long mask) {
    static const struct {
        unsigned long long bit;
        const char* name;
    } reasons[] = { { 0x4, "power cap" },
                    { 0x8, "hardware slowdown" },
                    { 0x20, "thermal (software)" },
                    { 0x40, "thermal (hardware)" },
                    { 0x80, "power brake" } };
    for (int i = 0; i < KBI_COUNT(reasons); i++) {
        size_t n = strlen(m->throttle);
        if (!(mask & reasons[i].bit) || strstr(m->throttle, reasons[i].name)) continue;
        snprintf(m->throttle + n, sizeof m->throttle - n, "%s%s", n ? ", " : "", reasons[i].name);
    }
}

static void kbi_gpu_sense(kbi_measured* m) {
    unsigned value = 0;
    unsigned long long mask = 0;
    if (!kbi_lab.nvml.device) return;
    if (kbi_lab.nvml.clock && kbi_lab.nvml.clock(kbi_lab.nvml.device, 2, &value) == 0) m->memory_clock = value;
    if (kbi_lab.nvml.power && kbi_lab.nvml.power(kbi_lab.nvml.device, &value) == 0) m->power = value / 1000.0;
    if (kbi_lab.nvml.temperature && kbi_lab.nvml.temperature(kbi_lab.nvml.device, 0, &value) == 0)
        m->temperature = value;
    if (kbi_lab.nvml.reasons && kbi_lab.nvml.reasons(kbi_lab.nvml.device, &mask) == 0) kbi_nvml_reasons(m, mask);
    unsigned char processes[64 * 24]; // nvmlProcessInfo_t: pid, memory, two instance ids
    unsigned count = 64;
    if (kbi_lab.nvml.processes && kbi_lab.nvml.processes(kbi_lab.nvml.device, &count, processes) == 0 && count > 1)
        m->others = (int32_t)count - 1;
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>cupti     measure: durations of kernels as the driver records them, through CUPTI.
              Public: none      Used by: >>timers, >>calibrate
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
static void kbi_cupti_request(uint8_t** buffer, size_t* size, size_t* most) {
    *size = KBI_ACTIVITY_BYTES;
    *buffer = (uint8_t*)kbi_grow(NULL, KBI_ACTIVITY_BYTES); // malloc aligns to 16, CUPTI wants 8
    *most = 0;
}

static void kbi_cupti_done(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
    kbi_activity* r = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && kbi_lab.cupti.next(buffer, valid, &r) == 0) {
        bool own =
            r->name && (kbi_is(r->name, "kbi_read") || kbi_is(r->name, "kbi_gate") || kbi_is(r->name, "kbi_clock"));
        if (r->kind != KBI_ACTIVITY_KERNEL || own || kbi_lab.cupti.n == KBI_SPANS) continue;
        kbi_lab.cupti.spans[kbi_lab.cupti.n].start = r->start;
        kbi_lab.cupti.spans[kbi_lab.cupti.n++].end = r->end;
    }
    KBENCH_FREE(buffer);
}

static bool kbi_cupti_open(void) {
    static const char* const names[] = { "libcupti.so",
                                         "libcupti.so.13",
                                         "libcupti.so.12",
                                         "/usr/local/cuda/lib64/libcupti.so",
                                         "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                         "/usr/local/cuda/targets/x86_64-linux/lib/libcupti.so" };
    void* library = NULL;
    if (kbi_lab.cupti.open) return true;
    for (int i = 0; i < KBI_COUNT(names) && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    kbi_find(library, "cuptiActivityRegisterCallbacks", &kbi_lab.cupti.callbacks);
    kbi_find(library, "cuptiActivityEnable", &kbi_lab.cupti.enable);
    kbi_find(library, "cuptiActivityFlushAll", &kbi_lab.cupti.flush);
    kbi_find(library, "cuptiActivityGetNextRecord", &kbi_lab.cupti.next);
    if (!kbi_lab.cupti.callbacks || !kbi_lab.cupti.enable || !kbi_lab.cupti.flush || !kbi_lab.cupti.next)
        return false;
    kbi_lab.cupti.spans = (kbi_span*)kbi_grow(NULL, sizeof(kbi_span) * KBI_SPANS);
    kbi_lab.cupti.open = kbi_lab.cupti.callbacks(kbi_cupti_request, kbi_cupti_done) == 0 &&
                         kbi_lab.cupti.enable(KBI_ACTIVITY_KERNEL) == 0;
    return kbi_lab.cupti.open;
}

static int kbi_order_spans(const void* a, const void* b) {
    const kbi_span *x = (const kbi_span*)a, *y = (const kbi_span*)b;
    return (x->start > y->start) - (x->start < y->start);
}

// The spans of groups of `kernels` consecutive kernels since the last call, in ns: first start to last end.
static int kbi_cupti_read(int kernels, double* ns, int most) {
    int n = 0;
    kbi_lab.cupti.flush(1);
    qsort(kbi_lab.cupti.spans, (size_t)kbi_lab.cupti.n, sizeof(kbi_span), kbi_order_spans);
    for (int i = 0; i + kernels <= kbi_lab.cupti.n && n < most; i += kernels) {
        uint64_t end = 0;
        for (int k = i; k < i + kernels; k++) end = KBI_MAX(end, kbi_lab.cupti.spans[k].end);
        ns[n++] = (double)(end - kbi_lab.cupti.spans[i].start);
    }
    kbi_lab.cupti.n = 0;
    return n;
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>timers    measure: how a block of GPU work is timed: cold, hot, rotating, by CUPTI.
              Public: none      Used by: measure
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
// A kernel that works on memory is seen to end later by events than by CUPTI, in ns: the median over 12 kernels of 1 to
// 20 us (tests/gpu/accuracy.cu) in 8 processes on an H200; other GPUs are not known.
static const double kbi_memory_ns[KBI_EVENT_MODES] = { 90, 65 };

// What CUPTI says an empty kernel takes, cold and hot, in ns, on an H200 (driver 580.159, CUDA 13.0). It is used where
// the fit to %globaltimer, made at every start, comes out within kbi_stated_near of it, whatever the GPU is called.
// --env and --thorough measure it anew in a child process, as does every start on another GPU that has CUPTI.
static const double kbi_stated_ns[KBI_EVENT_MODES] = { 576, 576 };
static const double kbi_stated_near = 100;

/*  A group: launches whose mean is a sample, finer than the steps of their events. Two habits of the driver's would
    show in it (an H200, driver 580). With more than 8 kernels queued behind it a launch's events read up to 0.6 us
    more: so each waits behind a gate of its own. And pairs of events differ from each other by 0.2 to 1 us, in a
    pattern that the kernel's arguments decide: so all launches use the same pair.                                   */
static void kbi_sample_open(bool gated, int size) {
    kbi_lab.gpu.at = 0;
    kbi_lab.gpu.size = size;
    kbi_lab.gpu.gated = gated && !kbi_lab.gpu.ungated;
    kbi_lab.gpu.alarmed = 0;
}

static void kbi_launch_begin(bool cold) {
    if (cold && kbi_lab.gpu.persisting) cudaCtxResetPersistingL2Cache(); // or lines set aside outlive the eviction
    if (kbi_lab.gpu.gated) kbi_gate_close();
    if (cold) kbi_evict();
    cudaEventRecord(kbi_lab.gpu.start, kbi_lab.gpu.stream);
}

// Whether that was the last launch of the group.
static bool kbi_launch_end(void) {
    float ms = NAN;
    cudaEventRecord(kbi_lab.gpu.stop, kbi_lab.gpu.stream);
    kbi_gate_open();
    cudaStreamSynchronize(kbi_lab.gpu.stream);
    cudaEventElapsedTime(&ms, kbi_lab.gpu.start, kbi_lab.gpu.stop);
    kbi_lab.gpu.ns[kbi_lab.gpu.at++] = (double)ms * 1e6;
    return kbi_lab.gpu.at >= kbi_lab.gpu.size;
}

typedef struct kbi_graph { // the block captured once, and many times in a row
    cudaGraph_t one;       // what the audit captured
    cudaGraphExec_t many[2];
    int64_t launches; // N
} kbi_graph;

static double kbi_sample_mean(int size) {
    double sum = 0;
    for (int i = 0; i < size; i++) sum += kbi_lab.gpu.ns[i];
    return sum / size;
}

// Whether graphs of the block are timed instead of single launches.
static bool kbi_wants_graph(const kbi_run* run) {
    return run->recipe->mode == KBI_ROTATE && run->work.graph && ((kbi_graph*)run->work.graph)->many[1];
}

static int64_t kbi_events_begin(kbi_run* run) {
    if (!run->sampling.open) {
        if (kbi_lab.cupti.open) kbi_cupti_read(1, NULL, 0); // what set-up launched
        bool one = run->call.sampled || run->work.estimate_ns > 500000 || run->place.settling > 0;
        int size = one ? 1 : KBI_LAUNCHES;
        kbi_sample_open(run->sampling.gated && run->work.nodes < KBI_GATE_NODES, size);
        run->sampling.open = true;
        run->sampling.stops = kbi_lab.stops;
    }
    kbi_launch_begin(run->recipe->mode == KBI_COLD);
    return 1;
}

// Ends a sample; true when its group is complete and its times can be read.
static bool kbi_sample_complete(kbi_run* run) {
    if (!kbi_launch_end()) return false;
    run->sampling.open = false;
    kbi_lab.gpu.at = 0;
    kbi_stop_on_error(run, "in the timed loop");
    run->sampling.alarms = kbi_lab.gpu.alarmed ? run->sampling.alarms + 1 : 0;
    bool spoilt = kbi_lab.gpu.alarmed || run->sampling.stops != kbi_lab.stops;
    if (kbi_failed(run) || !spoilt) return !kbi_failed(run);
    run->m.retaken++;
    if (run->sampling.alarms < KBI_ALARMS) return false; // the machine stood still
    // the block waits for work behind the gate: from here on there is none, and what was timed behind it is no rival to
    // what is not
    run->sampling.gated = false;
    if (run->call.unit == KBI_SAMPLE) run->m.retaken += run->m.n, run->m.n = 0;
    return false;
}

/*  What events read around an empty kernel now: it changes by 0.1 us in the course of a process and by 0.3 us from one
    to the next, and about alike for every kernel. So the empty kernel is timed all along, in turn with the block.   */
static double kbi_time_empty(kbi_mode mode, bool gated, int which) {
    kbi_readings* r = &kbi_lab.calibration.empty[mode][gated && !kbi_lab.gpu.ungated][which];
    double sorted[KBI_RECENT];
    kbi_sample_open(gated, 1);
    kbi_launch_begin(mode == KBI_COLD);
    kbi_launch_empty(which);
    kbi_launch_end();
    kbi_lab.gpu.at = 0;
    // a tool that waits for every launch (compute-sanitizer does) makes a gate worth nothing but the watchdog's second;
    // once may be a machine that stood still
    kbi_lab.gpu.alarms = kbi_lab.gpu.alarmed ? kbi_lab.gpu.alarms + 1 : 0;
    if (kbi_lab.gpu.alarms > 1) kbi_lab.gpu.ungated = true;
    if (!kbi_lab.gpu.alarmed) r->ns[r->n++ % KBI_RECENT] = kbi_lab.gpu.ns[0];
    int n = (int)KBI_MIN(r->n, (int64_t)KBI_RECENT);
    if (!n) return NAN;
    memcpy(sorted, r->ns, sizeof(double) * (size_t)n);
    return kbi_trimmed(sorted, n, n / 8);
}

// How far the bias of a process is off, alike for all of its launches, in ns: what events read of any kernel, and
// CUPTI's own durations, shift by up to 0.1 us from one process to the next (an H200, driver 580).
static const double kbi_bias_error_ns = 40;

static void kbi_bias_update(kbi_run* run, kbi_mode mode, bool gated) {
    double empty = NAN;
    bool first = kbi_lab.calibration.empty[mode][gated && !kbi_lab.gpu.ungated][run->work.empty].n == 0;
    int more = first ? KBI_RECENT / 4 : KBI_EMPTIES;
    for (int i = 0; i < more; i++) empty = kbi_time_empty(mode, gated, run->work.empty);
    bool on_memory = run->memory.device > 0 && run->machine->stated;
    run->m.bias_ns = empty - kbi_lab.calibration.truth[mode] + (on_memory ? kbi_memory_ns[mode] : 0);
    run->m.floor_ns = empty;
    run->m.bias_error_ns = kbi_bias_error_ns;
    run->m.step_ns = kbi_lab.calibration.quantum / KBI_MAX(run->sampling.launches, 1);
}

static void kbi_events_end(kbi_run* run) {
    bool gated = kbi_lab.gpu.gated;
    int size = kbi_lab.gpu.size;
    if (!kbi_sample_complete(run)) return;
    double ns = kbi_sample_mean(size);
    if (run->place.settling > 0 && run->call.unit == KBI_SAMPLE) {
        kbi_add_sample(run, ns);
        return;
    }
    run->sampling.launches = run->m.launches = size;
    run->m.ungated = !gated && !(run->work.expect & KB_EXPECT_TRANSFER);
    kbi_bias_update(run, run->recipe->mode == KBI_COLD ? KBI_COLD : KBI_HOT, gated);
    kbi_add_sample(run, ns);
}

// --- graphs: the block captured N and 2N times in a row; the difference over N is one launch ---

static double kbi_graph_ns(cudaGraphExec_t exec) {
    kbi_sample_open(true, 1);
    kbi_launch_begin(false);
    cudaGraphLaunch(exec, kbi_lab.gpu.stream);
    kbi_launch_end();
    return kbi_lab.gpu.ns[0];
}

// N so that a graph takes some 200 us and holds every copy of a rotation as often; 0 when the block makes no graph.
static int64_t kbi_graph_repeats(kbi_run* run, int copies) {
    kbi_graph* g = (kbi_graph*)run->work.graph;
    cudaGraphExec_t probe = NULL;
    if (!g || run->call.sampled || cudaGraphInstantiateWithFlags(&probe, g->one, 0) != cudaSuccess)
        return cudaGetLastError(), 0;
    kbi_graph_ns(probe);
    double each = KBI_MAX(kbi_graph_ns(probe) - 2000, 500); // about; 2 us of it are the events'
    cudaGraphExecDestroy(probe);
    int64_t most = 2000 / KBI_MAX(run->work.nodes, (int64_t)1), n = (int64_t)(200000 / each) + 1;
    n = KBI_MAX((int64_t)1, KBI_MIN(n, most));
    return g->launches = (n + copies - 1) / copies * copies;
}

static void kbi_graph_capture_begin(void) {
    cudaStreamBeginCapture(kbi_lab.gpu.stream, cudaStreamCaptureModeThreadLocal);
}

static cudaGraphExec_t kbi_graph_capture_end(void) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    if (cudaStreamEndCapture(kbi_lab.gpu.stream, &graph) != cudaSuccess)
        return cudaGetLastError(), (cudaGraphExec_t)NULL;
    if (cudaGraphInstantiateWithFlags(&made, graph, 0) != cudaSuccess) made = NULL;
    cudaGraphDestroy(graph);
    cudaGetLastError();
    return made;
}

static void kbi_gpu_repeat(kbi_run* run, int which, bool begin) {
    kbi_graph* g = (kbi_graph*)run->work.graph;
    if (begin)
        kbi_graph_capture_begin();
    else
        g->many[which] = kbi_graph_capture_end();
    if (!begin && !g->many[which])
        kbi_stop(run, KB_FLAG_CUDA_ERROR, "the block could not be captured many times in a row");
}

static double kbi_graph_slope(const kbi_graph* g) {
    double once = kbi_graph_ns(g->many[0]);
    return (kbi_graph_ns(g->many[1]) - once) / (double)g->launches;
}

static void kbi_graph_alone(kbi_run* run) {
    kbi_graph* g = (kbi_graph*)run->work.graph;
    if (kbi_lab.cupti.open) {
        double ns[4096];
        kbi_cupti_read(1, ns, 4096);
        cudaGraphLaunch(g->many[0], kbi_lab.gpu.stream);
        kbi_stop_on_error(run, "in the timed loop");
        int n = kbi_cupti_read((int)KBI_MAX(run->work.kernels, (int64_t)1), ns, 4096);
        for (int i = 0; i < n && !kbi_failed(run); i++) kbi_add_sample(run, ns[i]);
        run->m.bias_ns = run->m.floor_ns = 0;
        return;
    }
    double ns = kbi_graph_slope(g);
    kbi_stop_on_error(run, "in the timed loop");
    run->m.bias_ns = 0; // what a launch takes in a row of launches, the gaps between them included
    run->m.floor_ns = kbi_lab.calibration.graph_floor;
    run->m.launches = (int32_t)g->launches;
    if (!kbi_failed(run)) kbi_add_sample(run, ns);
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

// --- CUPTI's durations instead of events ---

static void kbi_cupti_end(kbi_run* run) {
    double ns[KBI_LAUNCHES * 4];
    int size = kbi_lab.gpu.size;
    if (!kbi_sample_complete(run)) return;
    int n = kbi_cupti_read((int)KBI_MAX(run->work.kernels, (int64_t)1), ns, KBI_COUNT(ns));
    run->m.bias_ns = run->m.floor_ns = 0;
    if (n != size) kbi_stop(run, KB_FLAG_CUDA_ERROR, "CUPTI recorded %d of %d launches", n, size);
    for (int i = 0; i < n && !kbi_failed(run); i++) kbi_add_sample(run, ns[i]);
}

static const kbi_timer kbi_cold_timer = { "cold", kbi_events_begin, kbi_events_end, NULL, false, false };
static const kbi_timer kbi_hot_timer = { "hot", kbi_events_begin, kbi_events_end, NULL, false, false };
static const kbi_timer kbi_rotate_timer = {
    "rotate", kbi_events_begin, kbi_events_end, kbi_graph_alone, false, false
};
static const kbi_timer kbi_cupti_timer = { "cupti", kbi_events_begin, kbi_cupti_end, NULL, false, false };
static const kbi_timer kbi_cupti_graph_timer = { "cupti", kbi_events_begin, kbi_cupti_end, kbi_graph_alone, false,
                                                 false };

static const kbi_timer* kbi_gpu_choose(kbi_run* run) {
    const kbi_recipe* recipe = run->recipe;
    bool waits = (run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC)) != 0, graph = kbi_wants_graph(run);
    size_t aside = 0;
    kbi_lab.gpu.persisting = cudaDeviceGetLimit(&aside, cudaLimitPersistingL2CacheSize) == cudaSuccess && aside > 0;
    if (run->work.expect & KB_EXPECT_TRANSFER) run->sampling.gated = false; // a pageable copy waits for the stream
    if (waits || recipe->timing == KBI_BY_WALL) return &kbi_wall_timer;
    if (recipe->timing == KBI_BY_CUPTI) {
        if (kbi_cupti_open()) return graph ? &kbi_cupti_graph_timer : &kbi_cupti_timer;
        kbi_stop(run, KB_FLAG_BAD_CASE,
                 "--timer cupti: libcupti.so is not found; LD_LIBRARY_PATH can name its folder");
    }
    if (graph) return &kbi_rotate_timer;
    if (recipe->mode == KBI_ROTATE)
        kbi_stop(run, KB_FLAG_NOT_COLD, "--rotate needs a block that can be captured, and no KB_SAMPLE");
    return recipe->mode == KBI_COLD ? &kbi_cold_timer : &kbi_hot_timer;
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>calibrate measure: what events read too much, against what an empty kernel takes.
              Public: none      Used by: >>cuda, >>worker, >>supervisor
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
// --- calibration ---

// The least difference between any two, above noise.
static double kbi_least_gap(double* ns, int n) {
    double step = INFINITY;
    kbi_sort(ns, n);
    for (int i = 1; i < n; i++)
        if (ns[i] - ns[i - 1] > 0.5) step = KBI_MIN(step, ns[i] - ns[i - 1]);
    return step;
}

// The smallest step between event times: from empty pairs, which differ by few of them.
static void kbi_calibrate_quantum(void) {
    double ns[128], pair[KBI_COUNT(ns) / 2];
    kbi_sample_open(true, 1);
    for (int i = 0; i < KBI_COUNT(ns); i++) {
        kbi_lab.gpu.at = 0;
        kbi_launch_begin(false);
        if (i % 2) kbi_launch(KBI_F_NULL, 1, 1, NULL);
        kbi_launch_end();
        ns[i] = kbi_lab.gpu.ns[0];
        if (i % 2 == 0) pair[i / 2] = ns[i];
    }
    kbi_lab.calibration.empty_pair = kbi_trimmed(pair, KBI_COUNT(pair), KBI_COUNT(pair) / 4);
    kbi_lab.calibration.quantum = kbi_least_gap(ns, KBI_COUNT(ns));
}

static double kbi_calibrate_graph(void) {
    double ns[32];
    kbi_graph g;
    memset(&g, 0, sizeof g);
    g.launches = 150;
    for (int k = 0; k < 2; k++) {
        kbi_graph_capture_begin();
        for (int64_t i = 0; i < (k + 1) * g.launches; i++) kbi_launch(KBI_F_NULL, 1, 1, NULL);
        g.many[k] = kbi_graph_capture_end();
    }
    for (int i = 0; i < KBI_COUNT(ns); i++) ns[i] = g.many[0] && g.many[1] ? kbi_graph_slope(&g) : (double)NAN;
    for (int k = 0; k < 2; k++)
        if (g.many[k]) cudaGraphExecDestroy(g.many[k]);
    return kbi_trimmed(ns, KBI_COUNT(ns), KBI_COUNT(ns) / 4);
}

/*  The empty kernel's duration without CUPTI. A kernel that spins between two edges of %globaltimer says how long that
    was, and waits half a step of it for the first edge. What events read beyond that, at three lengths, is fitted to a
    line. Its slope has to be 0, or the two clocks do not agree and nothing is known. At length 0 it gives what events
    read too much, but for the way into a kernel and out of it, which no clock in the kernel sees: in_and_out, what
    CUPTI adds on an H200.                                                                                           */
static double kbi_fit_empty(void) {
    static const uint64_t lengths[] = { 4000, 20000, 100000 };
    enum { KBI_EACH = 24 };
    static const double in_and_out = 765; // ns
    double ns[KBI_EACH], spans[KBI_EACH], x[3], y[3], mean_x = 0, mean_y = 0, xx = 0, xy = 0, tick = INFINITY;
    void* to = kbi_lab.gpu.touch;
    for (int k = 0; k < 3; k++) {
        uint64_t cycles = lengths[k], seen[2];
        void* arguments[] = { &to, &cycles };
        for (int i = 0; i < KBI_EACH; i++) {
            kbi_sample_open(true, 1);
            kbi_launch_begin(false);
            kbi_launch(KBI_F_CLOCK, 1, 1, arguments);
            kbi_launch_end();
            if (cudaMemcpy(seen, to, sizeof seen, cudaMemcpyDeviceToHost) != cudaSuccess) return NAN;
            spans[i] = (double)seen[0];
            ns[i] = kbi_lab.gpu.ns[0] - spans[i];
        }
        x[k] = kbi_trimmed(spans, KBI_EACH, KBI_EACH / 4);
        y[k] = kbi_trimmed(ns, KBI_EACH, KBI_EACH / 4);
        tick = KBI_MIN(tick, kbi_least_gap(spans, KBI_EACH));
        mean_x += x[k] / 3, mean_y += y[k] / 3;
    }
    kbi_lab.gpu.at = 0;
    for (int k = 0; k < 3; k++) xx += (x[k] - mean_x) * (x[k] - mean_x), xy += (x[k] - mean_x) * (y[k] - mean_y);
    double slope = xy / xx, bias = mean_y - slope * mean_x - (isfinite(tick) ? tick / 2 : 0) - in_and_out;
    return fabs(slope) < 0.005 && isfinite(bias) ? kbi_time_empty(KBI_HOT, true, 0) - bias : (double)NAN;
}

static void kbi_calibrate(kbi_machine* m) {
    kbi_calibration* c = &kbi_lab.calibration;
    for (int i = 0; i < 200; i++) kbi_evict(); // out of the idle clock
    kbi_calibrate_quantum();
    for (int mode = 0; mode < KBI_EVENT_MODES; mode++)
        for (int i = 0; i < KBI_RECENT; i++) kbi_time_empty((kbi_mode)mode, true, 0);
    c->graph_floor = kbi_calibrate_graph();
    c->fitted = kbi_fit_empty();
    m->stated = !isfinite(c->fitted) || fabs(c->fitted - kbi_stated_ns[KBI_HOT]) <= kbi_stated_near;
    for (int mode = 0; mode < KBI_EVENT_MODES && !c->source; mode++)
        c->truth[mode] = m->stated ? kbi_stated_ns[mode] : c->fitted;
    if (!c->source) c->source = m->stated ? "stated for the H200" : "fitted to %globaltimer";
    for (int mode = 0; mode < KBI_EVENT_MODES; mode++) {
        m->floor[mode] = kbi_time_empty((kbi_mode)mode, true, 0);
        m->bias[mode] = m->floor[mode] - c->truth[mode];
    }
    m->floor[KBI_ROTATE] = c->graph_floor;
    m->fitted = c->fitted;
    m->quantum = c->quantum;
    m->empty_pair = c->empty_pair;
    snprintf(m->truth, sizeof m->truth, "%s", c->source);
}

// The truth, measured: CUPTI's durations. For a process of its own: CUPTI stays in it.
static bool kbi_measure_truth(double truth[KBI_EVENT_MODES]) {
    enum { KBI_TRUTH_LAUNCHES = 512 };
    double ns[KBI_TRUTH_LAUNCHES];
    if (!kbi_cupti_open()) return false;
    for (int i = 0; i < 200; i++) kbi_evict();
    for (int mode = 0; mode < KBI_EVENT_MODES; mode++) {
        cudaStreamSynchronize(kbi_lab.gpu.stream);
        kbi_cupti_read(1, ns, KBI_TRUTH_LAUNCHES);
        for (int i = 0; i < KBI_TRUTH_LAUNCHES; i++) kbi_time_empty((kbi_mode)mode, true, 0);
        if (kbi_cupti_read(1, ns, KBI_TRUTH_LAUNCHES) != KBI_TRUTH_LAUNCHES) return false;
        truth[mode] = kbi_trimmed(ns, KBI_TRUTH_LAUNCHES, KBI_TRUTH_LAUNCHES / 4);
    }
    return true;
}
#endif

// What the calibration is held against, if another process measured it.
static void kbi_truth_set(const double truth[2]) {
#if KBI_CUDA
    memcpy(kbi_lab.calibration.truth, truth, sizeof kbi_lab.calibration.truth);
    kbi_lab.calibration.source = "measured by CUPTI";
#else
    (void)truth;
#endif
}

/*---------------------------------------------------------------------------------------------------------------
  >>audit     measure: the timed block seen once under stream capture, where nothing executes.
              Public: none      Used by: >>cuda
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
typedef struct kbi_seen { // what a captured block holds
    size_t kernels, copies, host, allocations, others;
    bool has_kernel;
    struct cudaKernelNodeParams first;
    cudaGraphNode_t node; // its
} kbi_seen;

static void kbi_see_node(kbi_seen* seen, cudaGraphNode_t node) {
    enum cudaGraphNodeType type;
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return;
    switch (type) {
    case cudaGraphNodeTypeKernel:
        if (!seen->kernels++) {
            seen->has_kernel = cudaGraphKernelNodeGetParams(node, &seen->first) == cudaSuccess;
            seen->node = node;
        }
        break;
    case cudaGraphNodeTypeMemcpy: seen->copies++; break;
    case cudaGraphNodeTypeHost: seen->host++; break;
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: seen->allocations++; break;
    case cudaGraphNodeTypeMemset:
    case cudaGraphNodeTypeGraph: seen->others++; break;
    default: break; // events and empty nodes are no work
    }
}

#if defined(__cplusplus)
extern "C" char* __cxa_demangle(const char* name, char* out, size_t* length, int* status);
#endif

static void kbi_kernel_name(kbi_measured* m, const char* name) {
    char* plain = NULL;
#if defined(__cplusplus)
    int status = 0;
    plain = __cxa_demangle(name, NULL, NULL, &status);
#endif
    snprintf(m->kernel, sizeof m->kernel, "%s", plain ? plain : name);
    free(plain); // the demangler's own malloc
}

// Name, launch shape, registers and occupancy of the first kernel, as far as the runtime knows it.
static void kbi_kernel_facts(kbi_measured* m, const struct cudaKernelNodeParams* k) {
    struct cudaFuncAttributes a;
    int blocks = 0;
    m->grid[0] = (int)k->gridDim.x, m->grid[1] = (int)k->gridDim.y, m->grid[2] = (int)k->gridDim.z;
    m->block[0] = (int)k->blockDim.x, m->block[1] = (int)k->blockDim.y, m->block[2] = (int)k->blockDim.z;
    if (k->func && cudaFuncGetAttributes(&a, k->func) == cudaSuccess) {
        m->registers = a.numRegs;
        m->local_bytes = (int64_t)a.localSizeBytes;
        m->shared_bytes = (int64_t)a.sharedSizeBytes + (int64_t)k->sharedMemBytes;
        int threads = m->block[0] * m->block[1] * m->block[2];
        if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k->func, threads, k->sharedMemBytes) ==
            cudaSuccess)
            m->occupancy = 100.0 * blocks * threads / kbi_lab.gpu.max_threads;
#if CUDART_VERSION >= 12030
        const char* name = NULL;
        if (cudaFuncGetName(&name, k->func) == cudaSuccess && name) kbi_kernel_name(m, name);
#endif
    }
    cudaGetLastError();
}

// The empty kernel nearest to a node's in bytes of arguments; the second where the driver (before 12.4) does not tell.
static int kbi_empty_like(cudaGraphNode_t node, const kbi_machine* m) {
    kbi_cu_node get;
    kbi_cu_arguments argument;
    void *of_node[32] = { NULL }, *p; // its first member is the function
    size_t offset = 0, size = 0, bytes = 0;
    if (m->tool[0]) return 0; // compute-sanitizer reports the call behind the last argument as an error
    p = kbi_driver_function("cuGraphKernelNodeGetParams", 11000), memcpy(&get, &p, sizeof p);
    p = kbi_driver_function("cuFuncGetParamInfo", 12040), memcpy(&argument, &p, sizeof p);
    if (!get || !argument || get(node, of_node) != 0 || !of_node[0]) return 1;
    for (size_t i = 0; argument(of_node[0], i, &offset, &size) == 0; i++) bytes = offset + size;
    int best = 0;
    if (bytes <= 8) return 0;
    for (int i = 1; i < KBI_EMPTY_KERNELS; i++)
        if (fabs(kbi_empty_bytes[i] - (double)bytes) < fabs(kbi_empty_bytes[best] - (double)bytes)) best = i;
    return best;
}

static void kbi_gpu_audit_begin(kbi_run* run) {
    cudaStreamSynchronize(run->kb.stream); // what set-up launched is no work of the block's
    cudaStreamBeginCapture(run->kb.stream, cudaStreamCaptureModeThreadLocal);
}

// When the bench stream has finished and the device has not, some of the work is elsewhere, and events would miss it.
static void kbi_gpu_settle(kbi_run* run) {
    int64_t begin = kbi_now();
    cudaStreamSynchronize(kbi_lab.gpu.stream);
    int64_t stream = kbi_now();
    cudaDeviceSynchronize();
    int64_t longer = kbi_now() - stream;
    if (longer > 50000 && longer > (stream - begin) / 20 && cudaPeekAtLastError() == cudaSuccess)
        kbi_stop(run, KB_FLAG_SIDE_STREAM, "work on a stream that kb->stream does not wait for");
}

static void kbi_audit_seen(kbi_run* run, const kbi_seen* seen) {
    run->work.nodes = (int64_t)(seen->kernels + seen->copies + seen->others + seen->allocations);
    if (seen->has_kernel) kbi_kernel_facts(&run->m, &seen->first);
    run->work.empty = seen->kernels ? kbi_empty_like(seen->node, run->machine) : 0;
    if (seen->copies && !(run->work.expect & KB_EXPECT_TRANSFER))
        kbi_stop(run, KB_FLAG_TRANSFER, "%zu cop%s in the timed block", seen->copies,
                 seen->copies == 1 ? "y" : "ies");
    else if (seen->allocations)
        kbi_stop(run, KB_FLAG_ALLOC_INSIDE, "cudaMallocAsync or cudaFreeAsync in the timed block");
    else if (seen->host)
        kbi_stop(run, KB_FLAG_SYNC_INSIDE, "a host function in the timed block's stream");
    else if (!run->work.nodes)
        kbi_stop(run, KB_FLAG_NO_WORK, "no GPU work was submitted to kb->stream");
}

// Calls that capture forbids: the error of the call, if the block did not fetch it, says more than that of the end.
static void kbi_audit_refused(kbi_run* run, cudaError_t inside, cudaError_t end) {
    if (inside == cudaErrorStreamCaptureImplicit)
        kbi_stop(run, KB_FLAG_SIDE_STREAM, "work on the default stream, or a synchronous copy, in the timed block");
    else if (end == cudaErrorStreamCaptureUnjoined || end == cudaErrorStreamCaptureUnmatched ||
             inside == cudaErrorStreamCaptureIsolation)
        kbi_stop(run, KB_FLAG_SIDE_STREAM, "work on a stream that kb->stream does not wait for");
    else if (inside == cudaErrorStreamCaptureUnsupported || inside == cudaErrorStreamCaptureInvalidated ||
             end == cudaErrorStreamCaptureInvalidated)
        kbi_stop(run, KB_FLAG_SYNC_INSIDE, "a synchronisation, cudaMalloc or cudaFree in the timed block");
    else
        kbi_stop(run, KB_FLAG_CUDA_ERROR, "%s under stream capture",
                 kbi_cuda_text(end != cudaSuccess ? end : inside));
}

static void kbi_gpu_audit_end(kbi_run* run) {
    cudaError_t inside = cudaGetLastError();
    cudaGraph_t graph = NULL;
    cudaError_t end = cudaStreamEndCapture(run->kb.stream, &graph);
    cudaGetLastError();
    size_t n = 0;
    kbi_seen seen;
    seen.kernels = seen.copies = seen.host = seen.allocations = seen.others = 0;
    seen.has_kernel = false;
    seen.node = NULL;
    if (inside != cudaSuccess || end != cudaSuccess || cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess) {
        kbi_audit_refused(run, inside, end);
    } else {
        cudaGraphNode_t* nodes = (cudaGraphNode_t*)kbi_grow(NULL, sizeof(cudaGraphNode_t) * (n + 1));
        cudaGraphGetNodes(graph, nodes, &n);
        for (size_t i = 0; i < n; i++) kbi_see_node(&seen, nodes[i]);
        KBENCH_FREE(nodes);
        kbi_audit_seen(run, &seen);
        run->work.kernels = (int64_t)seen.kernels;
    }
    // nothing of a captured block runs; what does went to a stream that was not captured
    int64_t before = kbi_now();
    cudaDeviceSynchronize();
    if (kbi_now() - before > 50000)
        kbi_stop(run, KB_FLAG_SIDE_STREAM, "work on a stream that kb->stream does not wait for");
    cudaGetLastError();
    if (!graph) return;
    if (kbi_failed(run)) {
        cudaGraphDestroy(graph);
    } else { // kept for --hot and --rotate
        kbi_graph* kept = (kbi_graph*)kbi_grow(NULL, sizeof(kbi_graph));
        memset(kept, 0, sizeof *kept);
        kept->one = graph;
        run->work.graph = kept;
    }
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>roofs     measure: what this device reaches: bandwidth of copies, reads and writes, arithmetic.
              Public: none      Used by: >>cuda
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
// The best of five, by events, in bytes a second; bytes counts what the kernel reads and writes.
static double kbi_roof(int what, char* a, char* b, size_t size, double bytes) {
    float best = 0;
    for (int i = 0; i < 6; i++) {
        float ms = 0;
        cudaEventRecord(kbi_lab.gpu.start, kbi_lab.gpu.stream);
        if (what == 0) kbi_gpu_copy_kernel(b, a, size);
        if (what == 1) cudaMemcpyAsync(b, a, size, cudaMemcpyDeviceToDevice, kbi_lab.gpu.stream);
        if (what == 2) kbi_gpu_read(a, size);
        if (what == 3) kbi_gpu_write(b, size);
        cudaEventRecord(kbi_lab.gpu.stop, kbi_lab.gpu.stream);
        if (cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess) return NAN;
        cudaEventElapsedTime(&ms, kbi_lab.gpu.start, kbi_lab.gpu.stop);
        if (i && (best == 0 || ms < best)) best = ms; // the first one warms up
    }
    return best > 0 ? bytes / best * 1e3 : NAN;
}

enum { KBI_PROBE = 65536 };

static const size_t kbi_tool_bytes = (size_t)16 << 20; // under a tool everything runs, and as little of it as will do

// One warp reads 64 KiB, which takes as long as its loads take one after the other: L2 or memory is a factor of 2.
static double kbi_probe_ns(const char* p) {
    uint64_t n = KBI_PROBE / 16;
    void *sink = kbi_lab.gpu.device_clock, *arguments[] = { &p, &n, &sink };
    kbi_sample_open(true, 1);
    kbi_launch_begin(false);
    kbi_launch(KBI_F_READ, 1, 32, arguments);
    kbi_launch_end();
    kbi_lab.gpu.at = 0;
    return kbi_lab.gpu.ns[0];
}

// How much of an L2's worth of data is gone after the eviction: 0, it reads as what was just read; 1, as what a buffer
// of many times its size has pushed out. The least of so many places. NaN where these two cannot be told apart.
static double kbi_measure_cold(const kbi_machine* m, const char* probe, const char* large, size_t size) {
    enum { KBI_PLACES = 8 };
    double least = INFINITY;
    size_t span = (size_t)m->l2 / KBI_PLACES & ~(size_t)4095;
    if (span < KBI_PROBE || size < 8 * (size_t)m->l2) return NAN;
    for (int place = 0; place < KBI_PLACES; place++) {
        const char* at = probe + (size_t)place * span;
        double ns[3][5], scratch[5];
        for (int i = 0; i < 5; i++) {
            kbi_gpu_read(at, KBI_PROBE);
            ns[0][i] = kbi_probe_ns(at);
            kbi_gpu_read(large, size);
            ns[1][i] = kbi_probe_ns(at);
            kbi_gpu_read(probe, (size_t)m->l2);
            kbi_evict();
            ns[2][i] = kbi_probe_ns(at);
        }
        for (int k = 0; k < 3; k++) ns[k][0] = kbi_median_of(ns[k], 5, scratch);
        if (!(ns[1][0] > 1.2 * ns[0][0])) return NAN;
        least = KBI_MIN(least, (ns[2][0] - ns[0][0]) / (ns[1][0] - ns[0][0]));
    }
    return least;
}

// Copy, read and write bandwidth over 1 GiB, or what an eighth of the free memory allows.
static void kbi_measure_roofs(kbi_machine* m) {
    size_t size = m->tool[0] ? kbi_tool_bytes : (size_t)1 << 30,
           eighth = (size_t)(kbi_gpu_free_bytes() / 8) & ~(size_t)4095;
    if (size > eighth) size = eighth;
    char *a = NULL, *b = NULL;
    if (cudaMalloc((void**)&a, size) == cudaSuccess && cudaMalloc((void**)&b, size) == cudaSuccess) {
        kbi_gpu_fill(a, KB_U32, (int64_t)(size / 4), KB_UNIFORM, 42, 0);
        double kernel = kbi_roof(0, a, b, size, 2.0 * (double)size),
               api = kbi_roof(1, a, b, size, 2.0 * (double)size);
        m->copy_roof = KBI_MAX(kernel, api);
        m->read_roof = kbi_roof(2, a, b, size, (double)size);
        m->write_roof = kbi_roof(3, a, b, size, (double)size);
        if (!m->tool[0]) m->cold = kbi_measure_cold(m, b, a, size);
    }
    cudaFree(a);
    cudaFree(b);
    cudaGetLastError();
    if (m->tool[0]) m->copy_roof = m->read_roof = m->write_roof = NAN;
}

// FMA rate of f32, from a full grid of independent chains: two operations each.
static double kbi_fma_roof(void) {
    float best = 0;
    uint64_t iterations = 200;
    void* sink = kbi_lab.gpu.touch;
    void* arguments[] = { &sink, &iterations };
    unsigned blocks = (unsigned)kbi_lab.gpu.multiprocessors * 8;
    for (int i = 0; i < 5; i++) {
        float ms = 0;
        cudaEventRecord(kbi_lab.gpu.start, kbi_lab.gpu.stream);
        kbi_launch(KBI_F_FMA, blocks, 256, arguments);
        cudaEventRecord(kbi_lab.gpu.stop, kbi_lab.gpu.stream);
        if (cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess) return NAN;
        cudaEventElapsedTime(&ms, kbi_lab.gpu.start, kbi_lab.gpu.stop);
        if (i && (best == 0 || ms < best)) best = ms;
    }
    return best > 0 ? 512.0 * (double)iterations * blocks * 256.0 / best * 1e3 : NAN;
}

// Matrix rate of f16 or bf16: cuBLAS on 8192 cubed of random numbers, the only way to it that is the same on every GPU.
static double kbi_matrix_roof(kb_dtype dtype) {
    typedef int (*create_fn)(void**);
    typedef int (*stream_fn)(void*, kb_stream);
    typedef int (*gemm_fn)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                           const void*, void*, int, int, int, int);
    static const char* const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so" };
    enum { KBI_SIDE = 8192, KBI_R_16F = 2, KBI_R_16BF = 14, KBI_COMPUTE_32F = 68 };
    void *library = NULL, *handle = NULL;
    char* data = NULL;
    create_fn create;
    stream_fn stream;
    gemm_fn gemm;
    float one = 1, zero = 0, best = 0;
    for (int i = 0; i < KBI_COUNT(names) && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return NAN;
    kbi_find(library, "cublasCreate_v2", &create);
    kbi_find(library, "cublasSetStream_v2", &stream);
    kbi_find(library, "cublasGemmEx", &gemm);
    size_t bytes = (size_t)KBI_SIDE * KBI_SIDE * 2;
    if (!create || !stream || !gemm || create(&handle) != 0 || stream(handle, kbi_lab.gpu.stream) != 0) return NAN;
    if (cudaMalloc((void**)&data, 3 * bytes) != cudaSuccess) return cudaGetLastError(), (double)NAN;
    kbi_gpu_fill(data, dtype, 2 * (int64_t)KBI_SIDE * KBI_SIDE, KB_NORMAL, 42, 0);
    int code = dtype == KB_F16 ? KBI_R_16F : KBI_R_16BF;
    for (int i = 0; i < 6; i++) {
        float ms = 0;
        cudaEventRecord(kbi_lab.gpu.start, kbi_lab.gpu.stream);
        int e = gemm(handle, 0, 0, KBI_SIDE, KBI_SIDE, KBI_SIDE, &one, data, code, KBI_SIDE, data + bytes, code,
                     KBI_SIDE, &zero, data + 2 * bytes, code, KBI_SIDE, KBI_COMPUTE_32F, -1);
        cudaEventRecord(kbi_lab.gpu.stop, kbi_lab.gpu.stream);
        if (e != 0 || cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess) break;
        cudaEventElapsedTime(&ms, kbi_lab.gpu.start, kbi_lab.gpu.stop);
        if (i && (best == 0 || ms < best)) best = ms;
    }
    cudaFree(data);
    cudaGetLastError();
    return best > 0 ? (double)(2 * (int64_t)KBI_SIDE * KBI_SIDE * KBI_SIDE) / best * 1e3 : NAN;
}

static void kbi_gpu_roofs(kbi_machine* m, kb_dtype dtype) {
    int which = dtype == KB_F16 ? 1 : dtype == KB_BF16 ? 2 : 0;
    if (kbi_finite(m->flop_roof[which]) || (dtype != KB_F32 && !which) || m->tool[0]) return;
    m->flop_roof[which] = which ? kbi_matrix_roof(dtype) : kbi_fma_roof();
    if (!kbi_finite(m->flop_roof[which])) m->flop_roof[which] = 0; // do not try again
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>cuda      measure: the cuda backend put together and opened; which backend a recipe asks for.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
static bool kbi_gpu_resources(char why[200]) {
    cudaError_t e = cudaStreamCreate(&kbi_lab.gpu.stream); // blocking: the default stream's work is waited for
    if (e == cudaSuccess) e = cudaEventCreate(&kbi_lab.gpu.start);
    if (e == cudaSuccess) e = cudaEventCreate(&kbi_lab.gpu.stop);
    void* host = NULL;
    if (e == cudaSuccess) e = cudaHostAlloc(&host, 256, cudaHostAllocMapped);
    void* device = NULL;
    if (e == cudaSuccess) e = cudaHostGetDevicePointer(&device, host, 0);
    if (e == cudaSuccess) {
        memset(host, 0, 256);
        kbi_lab.gpu.flag = (volatile unsigned*)host;
        kbi_lab.gpu.device_flag = device;
        kbi_lab.gpu.clock = (uint64_t*)host + 16;
        kbi_lab.gpu.device_clock = (uint64_t*)device + 16;
        e = cudaMalloc((void**)&kbi_lab.gpu.clean, kbi_lab.gpu.clean_bytes);
    }
    if (e == cudaSuccess) e = cudaMemset(kbi_lab.gpu.clean, 1, kbi_lab.gpu.clean_bytes);
    if (e == cudaSuccess) e = cudaMalloc((void**)&kbi_lab.gpu.touch, 4096);
    if (e != cudaSuccess) snprintf(why, 200, "%.190s", kbi_cuda_text(e));
    return e == cudaSuccess;
}

// Tools that instrument, serialise or replay kernels are known by the library they put into the process.
static void kbi_attached_tool(kbi_machine* m) {
    static const char* const tools[][2] = { { "libsanitizer-collection.so", "compute-sanitizer" },
                                            { "libcuda-injection.so", "Nsight Compute" } };
    for (int i = 0; i < KBI_COUNT(tools); i++) {
        void* library = dlopen(tools[i][0], RTLD_LAZY | RTLD_NOLOAD);
        if (!library) continue;
        dlclose(library);
        snprintf(m->tool, sizeof m->tool, "%s", tools[i][1]);
    }
}

static void kbi_gpu_facts(kbi_machine* m) {
    struct cudaDeviceProp p;
    int runtime = 0, driver = 0;
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
    m->multiprocessors = p.multiProcessorCount;
    kbi_lab.gpu.multiprocessors = p.multiProcessorCount;
    kbi_lab.gpu.max_threads = p.maxThreadsPerMultiProcessor;
}

static bool kbi_gpu_open(kbi_machine* m, int device) {
    kbi_machine_clear(m, "cuda");
    cudaError_t e = cudaGetDeviceCount(&m->devices);
    if (e != cudaSuccess || !m->devices) {
        snprintf(m->why, sizeof m->why, "no GPU: %s", e == cudaSuccess ? "none found" : cudaGetErrorString(e));
        return false;
    }
    if (device >= m->devices) {
        snprintf(m->why, sizeof m->why, "no GPU %d: this machine has %d", device, m->devices);
        return false;
    }
    m->device = device;
    e = cudaSetDevice(device);
    if (e == cudaSuccess) e = cudaFree(0);
    if (e != cudaSuccess) {
        snprintf(m->why, sizeof m->why, "GPU %d does not start: %.150s", device, cudaGetErrorString(e));
        return false;
    }
    kbi_gpu_facts(m);
    kbi_attached_tool(m);
    kbi_lab.gpu.clean_bytes = m->tool[0] ? kbi_tool_bytes : (size_t)KBI_MAX(4 * m->l2, (int64_t)64 << 20);
    kbi_lab.gpu.ungated = m->tool[0] != 0;
    if (!kbi_load_functions(m->why) || !kbi_gpu_resources(m->why)) return false;
    signal(SIGALRM, kbi_gate_alarm);
    kbi_nvml_open(m);
    m->gpu_present = 1;
    return true;
}

// Energy of a launch, from the GPU's counter over two seconds of graphs: it is too slow a counter for less.
static double kbi_gpu_energy(kbi_run* run) {
    kbi_graph* g = (kbi_graph*)run->work.graph;
    unsigned long long before = 0, after = 0;
    int64_t began, launches = 0;
    if (!g || !g->many[1] || !kbi_lab.nvml.energy) return NAN; // only --hot and --rotate have such graphs
    if (kbi_lab.nvml.energy(kbi_lab.nvml.device, &before) != 0) return NAN;
    for (began = kbi_now(); kbi_now() - began < 2000000000;) {
        for (int i = 0; i < 16; i++) cudaGraphLaunch(g->many[1], kbi_lab.gpu.stream);
        launches += 32 * g->launches;
        if (cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess) return NAN;
    }
    return kbi_lab.nvml.energy(kbi_lab.nvml.device, &after) == 0 ? (double)(after - before) / (double)launches : NAN;
}

// What a worker does before it measures, and a process that asks CUPTI for the truth does not.
static bool kbi_gpu_open_measured(kbi_machine* m, const kbi_recipe* recipe) {
    const char* source = kbi_lab.calibration.source;
    double truth[KBI_EVENT_MODES];
    memcpy(truth, kbi_lab.calibration.truth, sizeof truth);
    if (!kbi_gpu_open(m, recipe->device)) return false;
    kbi_measure_roofs(m);
    memset(&kbi_lab.calibration, 0, sizeof kbi_lab.calibration); // perhaps another GPU's
    memcpy(kbi_lab.calibration.truth, truth, sizeof truth);
    kbi_lab.calibration.source = source;
    kbi_calibrate(m);
    return true;
}

// clang-format off
static const kbi_backend kbi_cuda = {
    "cuda", true, false, kbi_gpu_open_measured,
    { kbi_gpu_alloc, kbi_gpu_release, kbi_gpu_set, kbi_gpu_copy, kbi_gpu_fill, kbi_gpu_free_bytes, kbi_gpu_pool_peak },
    { kbi_gpu_choose, kbi_gpu_stream, kbi_gpu_prepare, kbi_gpu_wait, kbi_gpu_lost, kbi_gpu_abandon, kbi_gpu_roofs },
    { kbi_gpu_settle, kbi_gpu_audit_begin, kbi_gpu_audit_end, kbi_graph_forget, kbi_graph_repeats, kbi_gpu_repeat },
    { kbi_gpu_clock, kbi_gpu_sense, kbi_gpu_energy }
};
// clang-format on
#endif

// The backend that a recipe asks for. Without a GPU host work still runs, on the cpu backend, which remembers why.
static const kbi_backend* kbi_backend_open(const kbi_recipe* recipe, kbi_machine* machine) {
    const kbi_backend* b = recipe->target == KBI_ON_SCRIPT ? &kbi_scripted : &kbi_cpu;
#if KBI_CUDA
    if (recipe->target == KBI_ON_GPU) b = &kbi_cuda;
#endif
    if (b->open(machine, recipe)) return b;
    kbi_machine found = *machine;
    kbi_cpu.open(machine, recipe);
    memcpy(machine->why, found.why, sizeof machine->why);
    machine->devices = found.devices;
    return &kbi_cpu;
}

/*---------------------------------------------------------------------------------------------------------------
  >>engine    measure: the state machine that hands out checked, audited, warm-up and sample units.
              Public: none      Used by: programs, >>rounds, >>embed, >>selftest
---------------------------------------------------------------------------------------------------------------*/

// --- samples, and when there are enough ---

static void kbi_note_clock(kbi_run* run, double mhz) {
    kbi_measured* m = &run->m;
    if (!isfinite(mhz)) return;
    m->sm_clock = mhz;
    m->clock_low = isfinite(m->clock_low) ? KBI_MIN(m->clock_low, mhz) : mhz;
    m->clock_high = isfinite(m->clock_high) ? KBI_MAX(m->clock_high, mhz) : mhz;
}

// Closes a window of the warm-up: settled when its median time and its clock are those of the window before.
static bool kbi_window_agrees(kbi_run* run, double tolerance) {
    kbi_window* w = &run->call.window;
    double clock = kbi_clock_mhz(run);
    int n = KBI_MIN(w->n, (int)KBI_WINDOW);
    double median = kbi_trimmed(w->ns, n, n / 10);
    double step = run->backend->gpu ? 100 : 0; // three steps of the event timer
    bool same_time = w->median > 0 && fabs(median - w->median) <= KBI_MAX(tolerance * w->median, step);
    bool same_clock = !isfinite(clock) || (w->clock > 0 && fabs(clock - w->clock) <= 0.01 * w->clock);
    w->median = median;
    w->clock = isfinite(clock) ? clock : 0;
    w->n = 0;
    w->begin = kbi_now();
    return same_time && same_clock;
}

// Under compute-sanitizer or a profiler every kernel is to run, and none of the times will be told.
static bool kbi_only_checked(const kbi_run* run) {
    return run->machine->tool[0] && run->backend->gpu && !run->work.host;
}

static bool kbi_warm_enough(kbi_run* run) {
    const kbi_recipe* r = run->recipe;
    const kbi_body_call* call = &run->call;
    double time = kbi_seconds_since(call->phase_began), scale = KBI_MIN(r->max_time, 2.0);
    if (run->sampling.timer->steady) return true;
    // whatever --warmup says; what takes a millisecond needs no batch
    bool unresolved =
        run->sampling.timer->by_clock && !call->sampled && run->work.estimate_ns < 1000000 && !run->sampling.resolved;
    if (unresolved && !kbi_only_checked(run)) return false;
    if (r->warmup_samples >= 0) return call->warm_units >= r->warmup_samples;
    if (kbi_only_checked(run)) return call->warm_units > 0;
    if (r->warmup_time >= 0) return call->warm_units > 0 && time >= r->warmup_time;
    bool full = kbi_seconds_since(call->window.begin) >= 0.025 * scale &&
                call->window.n >= (run->work.estimate_ns > 500000 ? 2 : 4);
    if (call->window.n && full && kbi_window_agrees(run, run->backend->gpu ? 0.01 : 0.03)) return true;
    bool out_of_time = time >= 0.5 * scale && call->warm_units >= 2;
    if (out_of_time && time < 10 * scale)
        run->m.settled = run->work.estimate_ns > 100000000; // long runs have no windows
    return out_of_time;
}

// Whether a case measured for so many seconds is known well enough, by itself.
static bool kbi_sampled_enough(kbi_run* run, double time) {
    const kbi_recipe* r = run->recipe;
    int64_t n = run->m.n;
    if (r->samples) return n >= r->samples;
    if (kbi_only_checked(run)) return n > 0;
    if (time >= r->max_time && n >= 7) return true;
    if (time >= 4 * r->max_time && n >= 3) return true;
    if (n < r->min_samples || time < r->min_time) return false;
    if (n >= r->max_samples) return true;
    if (n < run->sampling.next_look) return false;
    run->sampling.next_look = n + KBI_MAX((int64_t)8, n / 10); // looking costs a sort
    // of the time that will be told: what was read, less the bias
    double sum = 0, bias = kbi_finite(run->m.bias_ns) ? run->m.bias_ns : 0;
    for (int64_t i = 0; i < n; i++) sum += run->sampling.samples[i];
    double left = sum / (double)n - bias;
    return left > 0 && kbi_precision_of(run->sampling.samples, n) * (left + bias) / left <= r->precision;
}

// --- units ---

// The timer is chosen when the warm-up begins: by then what it might launch has been recorded.
static void kbi_warm_begin(kbi_run* run) {
    run->sampling.timer = run->work.host ? &kbi_wall_timer : run->backend->timing.choose(run);
    snprintf(run->m.mode, sizeof run->m.mode, "%s", run->sampling.timer->mode);
    run->call.phase_began = run->call.window.begin = kbi_now();
}

static void kbi_phase_enter(kbi_run* run, kbi_phase phase) {
    run->call.phase = phase;
    run->call.phase_began = run->call.window.begin = kbi_now();
    if (phase == KBI_PHASE_WARM) run->sampling.timer = NULL;
    if (phase == KBI_PHASE_SAMPLE) kbi_note_clock(run, kbi_clock_mhz(run));
}

static bool kbi_wants_audit(const kbi_run* run) {
    bool waits = (run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC)) != 0;
    return run->backend->capture.begin && !run->work.host && !waits && run->recipe->audit;
}

// The loop is about to be entered, and KB_SAMPLE's first reset has not run.
static void kbi_enter_loop(kbi_run* run) {
    if (run->call.entered) return;
    run->call.entered = true;
    if (run->call.last != KBI_PHASE_CHECK && run->recipe->verify && !run->place.stand_in) kbi_hold(run);
}

static void kbi_sample_alone(kbi_run* run, kbi_unit unit) {
    run->call.unit = unit;
    run->call.warm_units += unit == KBI_WARM;
    run->sampling.timer->alone(run);
    run->call.unit = KBI_NO_UNIT;
}

// At the end of its slot a run rests until it is given another, or told that it is enough.
static bool kbi_wants_sample(kbi_run* run) {
    if (run->place.order == KBI_BY_ITSELF) return !kbi_sampled_enough(run, kbi_seconds_since(run->call.phase_began));
    bool full = !run->place.settling && run->m.n >= run->place.slot_end;
    if (run->place.order == KBI_SLOT && full) kbi_fiber_rest(run->place.fiber);
    return run->place.order != KBI_FINISH;
}

// Warm-up, but first what the conductor wants. KBI_NO_UNIT: look again.
static kbi_unit kbi_choose_warm(kbi_run* run) {
    if (run->place.order == KBI_HOLD) kbi_fiber_rest(run->place.fiber);
    if (run->place.order == KBI_CAPTURE) return run->place.order = KBI_HOLD, KBI_CAPTURED;
    if (run->place.order == KBI_HOLD) return KBI_NO_UNIT;
    if (!run->sampling.timer) kbi_warm_begin(run);
    if (run->place.order == KBI_FINISH)
        kbi_phase_enter(run, KBI_PHASE_DONE);
    else if (!run->sampling.open && kbi_warm_enough(run))
        kbi_phase_enter(run, KBI_PHASE_SAMPLE);
    else if (run->sampling.timer->alone)
        kbi_sample_alone(run, KBI_WARM);
    else
        return KBI_WARM;
    return KBI_NO_UNIT;
}

static kbi_unit kbi_choose_sample(kbi_run* run) {
    if (!run->sampling.open && !kbi_wants_sample(run)) {
        if (run->place.order == KBI_BY_ITSELF) { // now: the clock falls, and throttling ends, when the device idles
            kbi_note_clock(run, kbi_clock_mhz(run));
            kbi_sense(run);
        }
        if (run->recipe->energy && run->backend->sensors.energy) run->m.energy = run->backend->sensors.energy(run);
        kbi_phase_enter(run, KBI_PHASE_PROVE);
    } else if (run->sampling.timer->alone)
        kbi_sample_alone(run, KBI_SAMPLE);
    else
        return KBI_SAMPLE;
    return KBI_NO_UNIT;
}

// The next unit of this call of the body, KBI_NO_UNIT when it is at its end.
static kbi_unit kbi_choose_unit(kbi_run* run) {
    kbi_unit unit = KBI_NO_UNIT;
    while (unit == KBI_NO_UNIT && !kbi_failed(run) && run->call.phase <= run->call.last) switch (run->call.phase) {
        case KBI_PHASE_CHECK: unit = KBI_CHECKED; break;
        case KBI_PHASE_AUDIT:
            if (kbi_wants_audit(run))
                unit = KBI_AUDITED;
            else
                kbi_phase_enter(run, KBI_PHASE_WARM);
            break;
        case KBI_PHASE_WARM: unit = kbi_choose_warm(run); break;
        case KBI_PHASE_SAMPLE: unit = kbi_choose_sample(run); break;
        case KBI_PHASE_PROVE:
            kbi_phase_enter(run, KBI_PHASE_DONE);
            if (kbi_put_back(run)) unit = KBI_PROVED;
            break;
        default: return KBI_NO_UNIT;
        }
    return unit;
}

static int64_t kbi_unit_begin(kbi_run* run, kbi_unit unit) {
    run->call.unit = unit;
    switch (unit) {
    case KBI_CHECKED:
        kbi_stop_on_error(run, "before the timed block");
        kbi_lab.wall_start = kbi_now();
        return kbi_failed(run) ? 0 : 1;
    case KBI_AUDITED: run->backend->capture.begin(run); return 1;
    case KBI_CAPTURED: return 1;
    case KBI_PROVED: run->call.proved = true; return 1;
    case KBI_WARM: run->call.warm_units++; return run->sampling.timer->begin(run);
    default: return run->sampling.timer->begin(run);
    }
}

static void kbi_unit_end(kbi_run* run) {
    kbi_unit unit = run->call.unit;
    if (unit == KBI_CHECKED) {
        if (run->backend->capture.settle) run->backend->capture.settle(run);
        kbi_stop_on_error(run, "in the first run of the timed block");
        run->work.estimate_ns = kbi_now() - kbi_lab.wall_start;
        kbi_phase_enter(run, KBI_PHASE_AUDIT);
    } else if (unit == KBI_AUDITED) {
        run->backend->capture.end(run);
        kbi_phase_enter(run, KBI_PHASE_WARM);
    } else if (unit == KBI_PROVED) {
        kbi_stop_on_error(run, "in the last run of the timed block");
    } else if (unit != KBI_CAPTURED) {
        run->sampling.timer->end(run);
    }
    run->call.unit = KBI_NO_UNIT;
    int64_t now = kbi_now();
    if (run->progress && !run->sampling.open && now - run->shown > 100000000) {
        run->shown = now;
        run->progress(run->progress_to);
        if (unit == KBI_SAMPLE) kbi_note_clock(run, kbi_clock_mhz(run));
    }
}

// Whether the timed block can run at all on what is there; a case without a GPU is skipped, not wrong.
static bool kbi_can_run(kbi_run* run, bool host) {
    if (run->m.status != KB_OK) return false;
    run->work.host = host;
    if (host || run->backend->gpu || !KBI_CUDA || run->backend->stands_in) return true;
    kb_skip(&run->kb, "%s", run->machine->why[0] ? run->machine->why : "needs a GPU; the device is cpu");
    return false;
}

int64_t kbi_next(kb_state* kb, bool host, int line) {
    kbi_run* run = kb->run;
    kbi_unit unit;
    run->work.line = line;
    if (run->call.unit != KBI_NO_UNIT) {
        kbi_unit_end(run);
        if (run->call.sampled) return 0;
        unit = kbi_choose_unit(run);
    } else if (run->call.sampled) {
        unit = run->call.ready;
        if (unit == KBI_NO_UNIT && !kbi_failed(run))
            kbi_stop(run, KB_FLAG_BAD_CASE, "two timed blocks in one KB_SAMPLE");
        run->call.ready = KBI_NO_UNIT;
        if (!kbi_can_run(run, host)) return 0;
    } else {
        if (!kbi_can_run(run, host)) return 0;
        if (run->call.looped) kbi_stop(run, KB_FLAG_BAD_CASE, "two timed blocks in one benchmark");
        kbi_enter_loop(run);
        unit = kbi_choose_unit(run);
    }
    run->call.looped = true;
    return unit == KBI_NO_UNIT || kbi_failed(run) ? (run->call.unit = KBI_NO_UNIT, 0) : kbi_unit_begin(run, unit);
}

bool kbi_sample(kb_state* kb) {
    kbi_run* run = kb->run;
    if (run->m.status != KB_OK) return false;
    if (run->call.unit != KBI_NO_UNIT) return false; // left by break: kbi_body_ended says so
    if (run->call.ready != KBI_NO_UNIT)
        return kbi_stop(run, KB_FLAG_NO_LOOP, "KB_SAMPLE without KB_TIME inside"), false;
    run->call.sampled = true;
    kbi_enter_loop(run);
    run->call.ready = kbi_choose_unit(run);
    return run->call.ready != KBI_NO_UNIT;
}

// The timed block of a C++ program is being left: what its destructors wait for must not wait for the engine.
void kbi_leave(kb_state* kb) {
    if (kb->run->backend->timing.abandon) kb->run->backend->timing.abandon();
}

// --- a call of the body, and the two calls that make a case ---

void kbi_threw(kb_state* kb, const char* what) {
    kbi_stop(kb->run, KB_FLAG_CRASHED, "C++ exception%s%s", what ? ": " : "",
             what ? what : " that is no std::exception");
}

static void kbi_call_guarded(kbi_run* run, kb_body body) {
    const kb_build* build = run->of->entry->build;
    if (build && build->call)
        build->call(body, &run->kb);
    else
        body(&run->kb);
}

static void kbi_body_begins(kbi_run* run, kbi_phase first, kbi_phase last) {
    run->call.phase = first;
    run->call.last = last;
    run->call.unit = run->call.ready = KBI_NO_UNIT;
    run->call.looped = run->call.sampled = run->call.entered = run->call.proved = false;
    run->sampling.batch = 1;
    run->call.fills = run->call.zeros = 0;
    if (run->backend->timing.prepare) run->backend->timing.prepare(run);
    run->memory.free_before = run->memory.free_lowest = kbi_free_bytes(run->backend);
    run->memory.pool_before = kbi_pool_peak(run->backend, true);
}

static void kbi_memory_facts(kbi_run* run) {
    kbi_memory* m = &run->memory;
    kbi_memory_look(run->backend, m);
    int64_t tracked = m->device_peak + KBI_MAX(kbi_pool_peak(run->backend, false) - m->pool_before, (int64_t)0);
    int64_t fell = m->free_before == KB_NONE ? 0 : m->free_before - m->free_lowest - m->held;
    run->m.memory = KBI_MAX(KBI_MAX(tracked, fell), run->m.memory);
    run->m.host_memory = KBI_MAX(m->host_peak, run->m.host_memory);
}

static void kbi_check_guards(kbi_run* run) {
    for (kbi_block* b = run->memory.blocks; b; b = b->next) {
        int64_t at = kbi_guard_broken(run->backend, b);
        if (at == KB_NONE) continue;
        kbi_stop(run, KB_FLAG_OVERRUN, "a byte %lld %s a block of %zu bytes was overwritten",
                 (long long)(at < 0 ? -at : at - (int64_t)b->bytes + 1), at < 0 ? "before" : "behind the end of",
                 b->bytes);
        return;
    }
}

// Whether nothing but zeros was put into this call's memory: kb_fill wrote no others, and neither did anybody else, as
// far as four looks into each block can tell. What was never written is still poison, and a counter's few bytes say
// nothing of the data.
static bool kbi_all_constant(const kbi_run* run) {
    unsigned char poison[64], seen[64];
    bool any = false;
    if (!run->call.zeros || run->call.zeros != run->call.fills) return false;
    memset(poison, KBI_POISON, sizeof poison);
    for (const kbi_block* block = run->memory.blocks; block; block = block->next)
        for (size_t i = 0; i < 4 && block->bytes >= sizeof seen; i++) {
            const kbi_backend* b = block->place == KB_HOST ? &kbi_cpu : run->backend;
            b->memory.copy(seen, block->base + KBI_GUARD + (block->bytes - sizeof seen) / 3 * i, sizeof seen);
            if (memcmp(seen, poison, sizeof seen) == 0) continue;
            if (memcmp(seen, seen + 8, sizeof seen - 8) != 0) return false;
            any = true;
        }
    return any;
}

// What is left to say when the body has returned: early exits, guards, leaks; then its memory goes back.
static void kbi_body_ended(kbi_run* run) {
    bool in_flight = run->call.unit != KBI_NO_UNIT || run->sampling.open;
    if (in_flight && !kbi_failed(run)) kbi_stop(run, KB_FLAG_LEFT_EARLY, "the timed block was left in its middle");
    if (in_flight && run->backend->timing.abandon) run->backend->timing.abandon();
    run->call.unit = KBI_NO_UNIT;
    run->sampling.open = false;
    if (run->call.ready != KBI_NO_UNIT) kbi_stop(run, KB_FLAG_NO_LOOP, "KB_SAMPLE without KB_TIME inside");
    if (!run->call.looped && run->m.status == KB_OK) kbi_stop(run, KB_FLAG_NO_LOOP, "no timed block was reached");
    kbi_stop_on_error(run, "after the timed block");
    bool lost = kbi_lost(run);
    if (!run->place.fiber)
        kbi_memory_facts(run); // otherwise others allocate at the same time, and the first call said it
    if (!lost) kbi_check_guards(run);
    if (!lost && run->call.last == KBI_PHASE_CHECK && kbi_all_constant(run)) run->m.constant = 1;
    if (!lost && run->work.graph) run->backend->capture.forget(run);
    kbi_memory_free(run->backend, &run->memory, lost);
    int64_t left = kbi_free_bytes(run->backend);
    if (left != KB_NONE && !lost && !run->place.fiber)
        run->m.leaked = KBI_MAX(run->memory.free_before - left, (int64_t)0);
}

static void kbi_run_init(kbi_run* run, const kbi_backend* b, kbi_machine* machine, const kbi_recipe* recipe) {
    memset(run, 0, sizeof *run);
    kbi_measured_clear(&run->m);
    run->backend = b;
    run->machine = machine;
    run->recipe = recipe;
    run->work.expect = recipe->expect;
    run->sampling.gated = true;
    run->began = kbi_now();
    run->kb.stream = b->timing.stream ? b->timing.stream() : NULL;
    run->kb.gpu = b->gpu;
    run->kb.seed = recipe->seed;
    run->kb.run = run;
}

static void kbi_run_finish(kbi_run* run) {
    if (run->m.status == KB_OK && kbi_only_checked(run)) {
        run->m.status = KB_SKIPPED;
        kbi_remark(&run->m, "not timed under %s", run->machine->tool);
    }
    if (run->m.status == KB_OK && kbi_finite(run->m.flops) && !run->work.host && run->backend->timing.roofs)
        run->backend->timing.roofs(run->machine, run->kb.dtype ? run->kb.dtype : KB_F32);
    if (!kbi_finite(run->m.power)) kbi_sense(run); // nothing was sampled
    run->m.wall_ns = (double)(kbi_now() - run->began);
    run->m.dtype = (int32_t)run->kb.dtype;
}

static void kbi_run_case(kbi_run* run, const kbi_case* c) {
    run->of = c;
    run->kb.operation = c->entry->operation;
    run->kb.implementation = c->entry->implementation;
    run->kb.direction = c->direction;
    run->kb.dtype = c->dtype;
    run->kb.user = c->entry->user;
    run->m.debug_build = kbi_debug_build(c->entry);
}

// The first call of a body: one run of the block, and its check. Device memory that is missing afterwards is a leak
// if it goes missing a second time: the first call may have loaded code.
static void kbi_check_call(kbi_run* run) {
    for (int i = 0; i < 2; i++) {
        kbi_body_begins(run, KBI_PHASE_CHECK, KBI_PHASE_CHECK);
        kbi_call_guarded(run, run->of->entry->body);
        kbi_body_ended(run);
        if (run->m.status != KB_OK || run->m.leaked <= 0) break;
    }
    if (run->m.verified == 1) run->m.verified = -1; // the last launch has to be right as well
    run->work.checked = true;
}

// The second call: audit, warm-up, samples, and the check of what the last one left.
static void kbi_measure_call(kbi_run* run) {
    kbi_body_begins(run, KBI_PHASE_AUDIT, KBI_PHASE_PROVE);
    kbi_call_guarded(run, run->of->entry->body);
    kbi_body_ended(run);
}

/*---------------------------------------------------------------------------------------------------------------
  >>body      measure: what a body asks and says: axes, amounts, checks, words.
              Public: kb_int, kb_real, kb_str, kb_has, kb_bytes, kb_flops, kb_items, kb_queries, kb_check_typed,
                      kb_check_norm_typed, kb_check_ulp_typed, kb_check_that, kb_skip, kb_fail, kb_note, kb_expect
              Used by: programs, >>memory, >>engine, >>selftest
---------------------------------------------------------------------------------------------------------------*/

// --- run ---
// --- the case ---

static const kb_param* kbi_param_of(kb_state* kb, const char* axis, const char* type, kb_axis_type a,
                                    kb_axis_type b) {
    const kbi_case* c = kb->run->of;
    kbi_text known = { NULL, 0, 0 };
    const kb_param* found = NULL;
    for (int i = 0; i < c->n_params; i++) {
        if (strcmp(c->params[i].name, axis) == 0) found = &c->params[i];
        kbi_putf(&known, "%s%s", i ? ", " : "", c->params[i].name);
    }
    if (!found)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "no axis '%s' here; there is %s", axis, known.n ? known.s : "none");
    else if (found->type != a && found->type != b)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "axis '%s' has no %s", axis, type), found = NULL;
    kbi_text_free(&known);
    return found;
}

int64_t kb_int(kb_state* kb, const char* axis) {
    const kb_param* p = kbi_param_of(kb, axis, "integers", KB_AXIS_INTS, KB_AXIS_INTS);
    return p ? p->i : 0;
}

double kb_real(kb_state* kb, const char* axis) {
    const kb_param* p = kbi_param_of(kb, axis, "numbers", KB_AXIS_REALS, KB_AXIS_INTS);
    return p ? p->r : 0;
}

const char* kb_str(kb_state* kb, const char* axis) {
    if (kb->direction && kbi_is(axis, "dir")) return kb->direction;
    const kb_param* p = kbi_param_of(kb, axis, "words", KB_AXIS_STRINGS, KB_AXIS_STRINGS);
    return p ? p->s : "";
}

bool kb_has(kb_state* kb, const char* axis) {
    const kbi_case* c = kb->run->of;
    for (int i = 0; i < c->n_params; i++)
        if (strcmp(c->params[i].name, axis) == 0) return true;
    return kb->direction && kbi_is(axis, "dir");
}

static void kbi_set_amount(kb_state* kb, double* to, double amount, const char* name) {
    if (!(amount >= 0) || !kbi_finite(amount))
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s takes a number from 0 up", name);
    else
        *to = amount;
}

void kb_bytes(kb_state* kb, double bytes) { kbi_set_amount(kb, &kb->run->m.bytes, bytes, "kb_bytes"); }
void kb_flops(kb_state* kb, double flops) { kbi_set_amount(kb, &kb->run->m.flops, flops, "kb_flops"); }
void kb_items(kb_state* kb, double items) { kbi_set_amount(kb, &kb->run->m.items, items, "kb_items"); }
void kb_queries(kb_state* kb, double items) {
    kbi_set_amount(kb, &kb->run->m.items, items, "kb_queries");
    kb->run->m.queries = 1;
}

// --- memory ---

// --- correctness ---

static bool kbi_checks_now(kbi_run* run) {
    return run->m.status == KB_OK && !run->place.stand_in && run->recipe->verify;
}

static bool kbi_check_done(kbi_run* run, bool passed, double error, double tolerance) {
    if (!run->call.looped && passed) {
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check before the timed block sees nothing of what that writes");
        return false;
    }
    run->m.verified = run->m.verified == 0 ? 0 : passed;
    if (passed && !run->m.proven) run->m.proven = kbi_proven(run);
    if (!(run->m.max_error >= error)) run->m.max_error = error;
    run->m.tolerance = tolerance;
    return passed;
}

static bool kbi_check_arrays(kb_state* kb, const void* got, kb_dtype got_type, const void* want, kb_dtype want_type,
                             int64_t n, kbi_match_how what, double tolerance) {
    kbi_run* run = kb->run;
    const char* late = run->call.last == KBI_PHASE_CHECK ? "" : " after the timed loop";
    if (!kbi_checks_now(run)) return !run->recipe->verify && !kbi_failed(run);
    if (!got || !want) return kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check of a NULL pointer"), false;
    if (n < 0) return kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check of %lld elements", (long long)n), false;
    if (!kb_dtype_size(got_type) || !kb_dtype_size(want_type))
        return kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check of elements without a type"), false;
    const kbi_block* block = kbi_block_of(run, got);
    if (block &&
        (size_t)n > (size_t)(block->base + KBI_GUARD + block->bytes - (const char*)got) / kb_dtype_size(got_type))
        return kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check of %lld elements in a block of %zu bytes", (long long)n,
                        block->bytes),
               false;
    kbi_mark_read(run, got);
    size_t bytes = (size_t)n * kb_dtype_size(got_type);
    void* host = KBENCH_MALLOC(bytes ? bytes : 1);
    if (!host) return kbi_stop(run, KB_FLAG_OOM, "no host memory to check %zu bytes", bytes), false;
    run->backend->memory.copy(host, got, bytes);
    kbi_stop_on_error(run, "before or in the copy that kb_check looks at");
    if (kbi_failed(run)) return KBENCH_FREE(host), false;
    kbi_matched c = kbi_match(host, got_type, want, want_type, n, what, tolerance);
    KBENCH_FREE(host);
    bool passed = kbi_check_done(run, c.passed, c.error, tolerance);
    if (!c.passed && kbi_stale(run))
        kbi_stop(run, KB_FLAG_STALE, "the last launch wrote nothing, though an earlier one did");
    else if (!c.passed && what == KBI_CHECK_NORM && c.worst < 0)
        kbi_stop(run, KB_FLAG_VERIFY_FAIL, "norm-wise error %.3g, tolerance %.3g%s", c.error, tolerance, late);
    else if (!c.passed)
        kbi_stop(run, KB_FLAG_VERIFY_FAIL, "%lld of %lld elements wrong%s, worst [%lld]: got %.9g, want %.9g",
                 (long long)c.bad, (long long)n, late, (long long)c.worst, c.got, c.want);
    return passed;
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
    kbi_run* run = kb->run;
    char text[400];
    va_list list;
    if (!kbi_checks_now(run)) return !run->recipe->verify && !kbi_failed(run);
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    kbi_check_done(run, passed, error, tolerance);
    if (!passed && kbi_stale(run))
        kbi_stop(run, KB_FLAG_STALE, "the last launch wrote nothing, though an earlier one did; %s", text);
    else if (!passed)
        kbi_stop(run, KB_FLAG_VERIFY_FAIL, "%s", text);
    return passed;
}

// --- words ---

void kb_skip(kb_state* kb, const char* format, ...) {
    va_list list;
    if (kb->run->m.status != KB_OK) return;
    kb->run->m.status = KB_SKIPPED;
    va_start(list, format);
    kbi_say_more(&kb->run->m, format, list);
    va_end(list);
}

void kb_fail(kb_state* kb, const char* format, ...) {
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s", text);
}

void kb_note(kb_state* kb, const char* format, ...) {
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (kbi_failed(kb->run)) return;
    size_t n = strlen(text);
    for (const char* p = kb->run->m.message; n && (p = strstr(p, text)); p++) { // the function runs more than once
        bool begins = p == kb->run->m.message || (p[-1] == ' ' && p[-2] == ';');
        if (begins && (!p[n] || p[n] == ';')) return;
    }
    va_start(list, format);
    kbi_say_more(&kb->run->m, format, list);
    va_end(list);
}

void kb_expect(kb_state* kb, unsigned expectations) { kb->run->work.expect |= expectations; }

/*---------------------------------------------------------------------------------------------------------------
  >>rounds    measure: the cases of a comparison group, one alone or several in turn.
              Public: none      Used by: >>worker, >>supervisor
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_sink { // where what happens to cases goes: a pipe, or straight to the supervisor's tables
    void (*enter)(void* to, int index);
    void (*beat)(void* to);
    void (*result)(void* to, int index, const kbi_measured* m, const double* samples);
    void* to;
} kbi_sink;

enum { KBI_REPLICAS = 64, KBI_ROUNDS_MIN = 16, KBI_SLOTS = 64 + 1 };

typedef struct kbi_arm { // a case of the group, with its body suspended
    kbi_run run;
    int index; // of the case in the plan
    kbi_fiber fiber;
    struct kbi_arm* replicas; // --rotate
    int n_replicas;
    bool over;                   // failed, or its body has returned
    double ns[KBI_ROUNDS_LIMIT]; // the slots of each round
} kbi_arm;

typedef struct kbi_contest {
    kbi_arm** arms; // the first is the baseline
    kbi_arm* equal; // a second instance of the baseline, with a rival's slots: what an equal one looks like; or NULL
    int n, rounds;
    int settling; // runs of the block that settle it in its slot
    kbi_stage* stage;
    const kbi_sink* sink;
    const kbi_recipe* recipe;
} kbi_contest;

static int kbi_contest_slots(const kbi_contest* c) { return c->n + (c->equal != NULL); }
static kbi_arm* kbi_contest_arm(const kbi_contest* c, int i) { return i < c->n ? c->arms[i] : c->equal; }

static void kbi_arm_main(void* p) {
    kbi_arm* a = (kbi_arm*)p;
    kbi_measure_call(&a->run);
    a->over = true;
}

// Lets an arm go on until it rests again or is over.
static void kbi_go_on(kbi_contest* c, kbi_arm* a) {
    c->sink->enter(c->sink->to, a->index);
    kbi_stage_enter(&a->run.memory);
    if (a->run.place.fiber)
        kbi_fiber_resume(&a->fiber);
    else
        kbi_arm_main(a);
}

// --rotate: the same case set up again and again, each with data of its own, until the data exceeds L2 twice. Their
// captured blocks then run in turn, so that no launch finds its data in cache.
static void kbi_arm_replicate(kbi_contest* c, kbi_arm* a) {
    int64_t bytes = a->run.memory.device, wanted = 2 * a->run.machine->l2;
    int64_t n = bytes > 0 ? wanted / bytes + 2 : 0, room = kbi_free_bytes(a->run.backend);
    if (!a->run.work.graph) return; // the timer says why
    if (n < 2 || n > KBI_REPLICAS || n * bytes > room / 10 * 9) {
        kbi_stop(&a->run, KB_FLAG_NOT_COLD,
                 n < 2 ? "--rotate needs the data in KB_ALLOC" : "too many copies to exceed L2");
        return;
    }
    a->replicas = (kbi_arm*)kbi_grow(NULL, sizeof(kbi_arm) * (size_t)(n - 1));
    memset(a->replicas, 0, sizeof(kbi_arm) * (size_t)(n - 1));
    for (int i = 0; i < n - 1 && !kbi_failed(&a->run); i++) {
        kbi_arm* copy = &a->replicas[i];
        kbi_run_init(&copy->run, a->run.backend, a->run.machine, a->run.recipe);
        kbi_run_case(&copy->run, a->run.of);
        copy->index = a->index;
        copy->run.place.order = KBI_HOLD;
        copy->run.place.stand_in = true;
        copy->run.place.fiber = &copy->fiber;
        if (!kbi_fiber_make(&copy->fiber, kbi_arm_main, copy)) {
            kbi_stop(&a->run, KB_FLAG_NOT_COLD, "no memory for as many copies as exceed L2");
            return;
        }
        a->n_replicas++;
        kbi_go_on(c, copy);
        if (kbi_failed(&copy->run) || !copy->run.work.graph)
            kbi_stop(&a->run, KB_FLAG_NOT_COLD, "a copy of the case failed: %s", copy->run.m.message);
    }
}

// --hot and --rotate: captures the block many times in a row, that of the copies in turn.
static void kbi_arm_capture(kbi_contest* c, kbi_arm* a) {
    int each = a->n_replicas + 1;
    int64_t n = kbi_failed(&a->run) ? 0 : a->run.backend->capture.repeats(&a->run, each);
    for (int which = 0; which < 2 && n; which++) {
        a->run.backend->capture.repeat(&a->run, which, true);
        for (int64_t i = 0; i < (which + 1) * n; i++) {
            kbi_arm* next = i % each ? &a->replicas[i % each - 1] : a;
            next->run.place.order = KBI_CAPTURE;
            kbi_go_on(c, next);
        }
        a->run.backend->capture.repeat(&a->run, which, false);
    }
}

static void kbi_arm_replicas_end(kbi_contest* c, kbi_arm* a) {
    for (int i = 0; i < a->n_replicas; i++) {
        a->replicas[i].run.place.order = KBI_FINISH;
        if (!a->replicas[i].over) kbi_go_on(c, &a->replicas[i]);
        kbi_fiber_free(&a->replicas[i].fiber);
        KBENCH_FREE(a->replicas[i].run.sampling.samples);
    }
    KBENCH_FREE(a->replicas);
    a->replicas = NULL;
    a->n_replicas = 0;
}

// A slot of an arm: a few samples, as many for every arm. The mean of their middle, NaN when the arm is over.
static double kbi_slot(kbi_contest* c, kbi_arm* a) {
    double slot[64];
    int64_t from = a->run.m.n;
    if (a->over) return NAN;
    a->run.place.slot_end = from + (a->run.work.estimate_ns > 2000000 || a->run.sampling.launches > 1
                                        ? 1
                                        : 8); // launches are a slot by themselves
    if (c->recipe->samples) a->run.place.slot_end = KBI_MIN(a->run.place.slot_end, c->recipe->samples);
    if (a->run.place.slot_end == from) return NAN;
    a->run.place.settling = c->settling;
    kbi_go_on(c, a);
    int64_t n = KBI_MIN(a->run.m.n - from, (int64_t)64);
    if (kbi_failed(&a->run) || n <= 0) return NAN;
    memcpy(slot, a->run.sampling.samples + from, sizeof(double) * (size_t)n);
    return kbi_trimmed(slot, (int)n, (int)n / 8);
}

// Order of the slots. Over n rounds (2 n where n is odd) everybody stands at every place and follows everybody else
// equally often, so that drift, and what a predecessor leaves behind, fall on all alike (Williams 1949: designs that
// are balanced for residual effects). Who is who, and the order of the rounds, are drawn anew each time.
static void kbi_slot_order(int* order, int n, int round, uint64_t seed) {
    int rows[2 * KBI_SLOTS], who[KBI_SLOTS], cycle = n % 2 ? 2 * n : n;
    kbi_shuffle(rows, cycle, seed, 3, (uint32_t)(round / cycle));
    kbi_shuffle(who, n, seed, 4, (uint32_t)(round / cycle));
    int row = rows[round % cycle];
    for (int k = 0; k < n; k++) { // 0, 1, n - 1, 2, n - 2, ...
        int first = k == 0 ? 0 : k % 2 ? (k + 1) / 2 : n - k / 2;
        order[row < n ? k : n - 1 - k] = who[(first + row) % n];
    }
}

// The widest half-width among the intervals of the log ratios to the baseline.
static double kbi_contest_width(const kbi_contest* c) {
    double log_ratio[KBI_ROUNDS_LIMIT], widest = 0;
    const kbi_arm* base = c->arms[0];
    for (int i = 1; i < kbi_contest_slots(c); i++) {
        double median, lo, hi;
        const kbi_arm* a = kbi_contest_arm(c, i);
        if (a->over || base->over) continue;
        for (int r = 0; r < c->rounds; r++) log_ratio[r] = log(base->ns[r] / a->ns[r]);
        if (!kbi_paired(log_ratio, c->rounds, 0.05 / KBI_MAX(c->n - 1, 1), &median, &lo, &hi)) return INFINITY;
        widest = KBI_MAX(widest, (hi - lo) / 2);
    }
    return widest;
}

static bool kbi_contest_enough(const kbi_contest* c, double seconds) {
    const kbi_recipe* r = c->recipe;
    bool each = true;
    for (int i = 0; i < c->n; i++) // all look in the same rounds, those in which the contest may be resolved
        c->arms[i]->run.sampling.next_look = c->rounds % 8 ? INT64_MAX : 0;
    for (int i = 0; i < c->n; i++)
        if (!c->arms[i]->over && !kbi_sampled_enough(&c->arms[i]->run, seconds / (c->n + 1))) each = false;
    if (c->rounds == KBI_ROUNDS_LIMIT) return true;
    if (r->samples || kbi_only_checked(&c->arms[0]->run)) return each;
    if (r->rounds) return c->rounds >= r->rounds;
    if (seconds >= r->max_time * (c->n + 1)) return each;
    bool resolved = c->rounds % 8 == 0 && c->rounds >= KBI_ROUNDS_MIN && kbi_contest_width(c) <= r->precision;
    return each && (resolved || c->rounds >= r->max_rounds);
}

enum { KBI_TRIALS = 4, KBI_TRIAL_RUNS = 16 };

// How many of the first runs of a slot belong to the slot before: those that differ from the second half of it by more
// than half a percent, and by more than that half scatters.
static int kbi_settling_of(double ns[KBI_TRIALS][KBI_TRIAL_RUNS]) {
    double mean[KBI_TRIAL_RUNS], half[KBI_TRIAL_RUNS / 2], scratch[KBI_TRIAL_RUNS];
    int n = KBI_TRIAL_RUNS / 2, settling = n;
    for (int i = 0; i < KBI_TRIAL_RUNS; i++) {
        double each[KBI_TRIALS];
        for (int t = 0; t < KBI_TRIALS; t++) each[t] = ns[t][i];
        mean[i] = kbi_median_of(each, KBI_TRIALS, scratch);
    }
    double steady = kbi_median_of(mean + n, n, scratch);
    for (int i = 0; i < n; i++) half[i] = fabs(mean[n + i] - steady);
    double scatter = KBI_MAX(0.005 * steady, 3 * kbi_median_of(half, n, scratch));
    while (settling > 0 && fabs(mean[settling - 1] - steady) <= scatter) settling--;
    return settling;
}

// Tries slots before any counts. false: the device is lost.
static bool kbi_contest_settle(kbi_contest* c) {
    double ns[KBI_TRIALS][KBI_TRIAL_RUNS];
    int slots = kbi_contest_slots(c), settling = 1;
    bool slow = false, steady = false;
    for (int i = 0; i < c->n; i++) {
        slow |= c->arms[i]->run.work.estimate_ns > 500000;
        steady |= !c->arms[i]->run.sampling.timer || c->arms[i]->run.sampling.timer->steady;
    }
    c->settling = 0;
    if (steady || kbi_only_checked(&c->arms[0]->run)) return true;
    for (int i = 0; i < slots && !slow; i++) {
        kbi_arm* a = kbi_contest_arm(c, i);
        for (int t = 0; t < KBI_TRIALS && !a->over; t++) { // each time after somebody else
            kbi_arm* other = kbi_contest_arm(c, (i + 1 + t % (slots - 1)) % slots);
            for (int k = 0; k < 2; k++) {
                kbi_arm* now = k ? a : other;
                if (now->over) continue;
                now->run.place.slot_end = now->run.m.n;
                now->run.place.settling = k ? KBI_TRIAL_RUNS : 1;
                now->run.place.settled = k ? ns[t] : NULL;
                kbi_go_on(c, now);
                now->run.place.settled = NULL;
                if (kbi_lost(&now->run)) return false;
            }
        }
        if (!a->over) settling = KBI_MAX(settling, kbi_settling_of(ns));
    }
    c->settling = settling;
    return true;
}

static void kbi_contest_rounds_run(kbi_contest* c) {
    int order[KBI_SLOTS], slots = kbi_contest_slots(c);
    int64_t began = kbi_now();
    for (c->rounds = 0; c->rounds < KBI_ROUNDS_LIMIT;) {
        int live = 0;
        kbi_slot_order(order, slots, c->rounds, c->recipe->seed);
        for (int k = 0; k < slots; k++) {
            kbi_arm* a = kbi_contest_arm(c, order[k]);
            a->ns[c->rounds] = kbi_slot(c, a);
            if (kbi_lost(&a->run)) return;
        }
        c->rounds++;
        for (int i = 0; i < c->n; i++) live += !c->arms[i]->over;
        if (!live || kbi_contest_enough(c, (double)(kbi_now() - began) * 1e-9)) return;
    }
}

static void kbi_contest_rounds(kbi_contest* c) {
    if (kbi_contest_settle(c)) kbi_contest_rounds_run(c);
    for (int i = 0; i < c->n; i++) // now, before bodies look at their results and the device idles
        if (!c->arms[i]->over) kbi_note_clock(&c->arms[i]->run, kbi_clock_mhz(&c->arms[i]->run));
    for (int i = 0; i < c->n; i++)
        if (!c->arms[i]->over) kbi_sense(&c->arms[i]->run);
}

// Appends an arm's rounds to its samples, to travel with them.
static void kbi_arm_pack(const kbi_contest* c, kbi_arm* a) {
    kbi_run* run = &a->run;
    size_t n = (size_t)run->m.n, rounds = (size_t)c->rounds;
    if (c->n < 2 || kbi_failed(run)) return;
    run->sampling.samples = (double*)kbi_grow(run->sampling.samples, sizeof(double) * (n + 2 * rounds + 1));
    run->m.rounds = c->rounds;
    run->m.again = a == c->arms[0] && c->equal ? c->rounds : 0;
    run->m.stage = c->stage != NULL && !run->memory.strayed;
    memcpy(run->sampling.samples + n, a->ns, sizeof(double) * rounds);
    if (run->m.again) memcpy(run->sampling.samples + n + rounds, c->equal->ns, sizeof(double) * rounds);
    run->m.arms = c->n;
    run->m.contest = c->arms[0]->index;
}

// Starts an arm up to its first rest; one alone, which needs neither fiber nor rounds, goes on to its end.
static void kbi_arm_start(kbi_contest* c, kbi_arm* a) {
    const kbi_recipe* r = c->recipe;
    bool rotate = r->mode == KBI_ROTATE, energy = r->mode == KBI_HOT && r->energy;
    bool many = (rotate || energy) && a->run.backend->capture.repeats && !a->run.work.host;
    a->run.place.fiber = c->n > 1 || many ? &a->fiber : NULL;
    a->run.place.order = many ? KBI_HOLD : c->n > 1 ? KBI_SLOT : KBI_BY_ITSELF;
    a->over = a->run.place.fiber && !kbi_fiber_make(&a->fiber, kbi_arm_main, a);
    if (a->over)
        kbi_stop(&a->run, KB_FLAG_OOM, "no stack for it");
    else
        kbi_go_on(c, a);
    if (many && !a->over) {
        if (rotate) kbi_arm_replicate(c, a);
        kbi_arm_capture(c, a);
        a->run.place.order = c->n > 1 ? KBI_SLOT : KBI_BY_ITSELF;
        kbi_go_on(c, a);
    }
}

// Measures arms that passed their check: starts each, runs the rounds, ends each. false: the device is lost.
static bool kbi_contest_run(kbi_contest* c) {
    int slots = kbi_contest_slots(c);
    bool good = true;
    for (int i = 0; i < slots && good; i++) {
        kbi_arm_start(c, kbi_contest_arm(c, i));
        good = !kbi_lost(&kbi_contest_arm(c, i)->run);
    }
    if (good && c->n > 1) kbi_contest_rounds(c);
    for (int i = 0; i < slots; i++) // the others stay where they are: the process ends
        if (kbi_lost(&kbi_contest_arm(c, i)->run)) good = false;
    for (int i = slots - 1; i >= 0; i--) { // the equal one first: it has nothing to say
        kbi_arm* a = kbi_contest_arm(c, i);
        a->run.place.order = KBI_FINISH;
        if (kbi_lost(&a->run)) good = false;
        if (!a->over && good) kbi_go_on(c, a);
        if (good) kbi_arm_replicas_end(c, a), kbi_arm_pack(c, a), kbi_fiber_free(&a->fiber);
    }
    return good;
}

static void kbi_arm_result(kbi_arm* a, const kbi_sink* sink) {
    kbi_run_finish(&a->run);
    sink->result(sink->to, a->index, &a->run.m, a->run.sampling.samples);
    KBENCH_FREE(a->run.sampling.samples);
    a->run.sampling.samples = NULL;
}

// What the contest of these needs: for each its blocks, or its wings beside a stage for the largest.
typedef struct kbi_room {
    int64_t device, host, largest; // bytes; of the largest stage
} kbi_room;

static kbi_room kbi_room_of(kbi_arm** arms, int n, bool equal) {
    kbi_room r = { 0, 0, 0 };
    for (int i = 0; i < n + equal; i++) {
        const kbi_run* run = &arms[i % n]->run;
        r.device += run->m.memory + run->memory.read_bytes;
        r.host += run->m.host_memory;
        r.largest = KBI_MAX(r.largest, (int64_t)run->memory.most);
    }
    return r;
}

// Whether rivals can be given one stage: not where a tool wants every block to be an allocation of its own, nor with
// copies for --rotate, nor where swapping takes longer than measuring.
static bool kbi_stage_wanted(const kbi_run* run, int64_t largest) {
    int64_t most = run->backend->gpu ? (int64_t)4 << 30 : (int64_t)64 << 20;
    bool replicas = run->recipe->mode == KBI_ROTATE && run->backend->capture.repeats && !run->work.host;
    return KBI_STAGES && !run->machine->tool[0] && !replicas && largest > 0 && largest <= most;
}

// The baseline once more. It was checked; nobody asks it.
static kbi_arm* kbi_equal_of(const kbi_arm* baseline) {
    kbi_arm* a = (kbi_arm*)kbi_grow(NULL, sizeof(kbi_arm));
    const kbi_run* of = &baseline->run;
    memset(a, 0, sizeof *a);
    kbi_run_init(&a->run, of->backend, of->machine, of->recipe);
    kbi_run_case(&a->run, of->of);
    a->run.work = of->work;
    a->run.memory.most = of->memory.most;
    a->run.progress = of->progress;
    a->run.progress_to = of->progress_to;
    a->run.place.stand_in = true;
    a->index = baseline->index;
    return a;
}

static bool kbi_contest_staged(kbi_contest* c, int64_t largest) {
    kbi_stage stage;
    kbi_memory* memories[KBI_SLOTS];
    const kbi_backend* b = c->arms[0]->run.backend;
    int n = kbi_contest_slots(c);
    for (int i = 0; i < n; i++) memories[i] = &kbi_contest_arm(c, i)->run.memory;
    bool staged = kbi_stage_wanted(&c->arms[0]->run, largest) && kbi_stage_open(&stage, b, memories, n);
    c->stage = staged ? &stage : NULL;
    bool good = kbi_contest_run(c);
    if (staged && good) kbi_stage_close(&stage, memories, n);
    return good;
}

// Runs a list of arms against each other if their memory allows it, otherwise one after another. false: device lost.
static bool kbi_contest_all(kbi_arm** arms, int n, const kbi_recipe* recipe, const kbi_sink* sink) {
    int64_t free_now = n ? kbi_free_bytes(arms[0]->run.backend) : KB_NONE;
    int64_t physical = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    bool equal = n > 1 && !recipe->samples; // so many samples and no more: nobody else's
    kbi_room room = kbi_room_of(arms, n, equal);
    int64_t device = room.device + room.largest;
    if (free_now == KB_NONE) room.host += device; // KB_ALLOC is the host's, too
    bool fits = room.host < physical / 2 && (free_now == KB_NONE || device < free_now / 10 * 9);
    bool together = KBI_FIBERS && fits, good = true;
    for (int i = 0; i < n && good; i += together ? n : 1) {
        kbi_contest c;
        memset(&c, 0, sizeof c);
        c.arms = arms + i;
        c.n = together ? n : 1;
        c.equal = together && equal ? kbi_equal_of(arms[0]) : NULL;
        c.sink = sink;
        c.recipe = recipe;
        good = kbi_contest_staged(&c, room.largest);
        for (int j = 0; j < c.n; j++)
            if (good || c.arms[j]->over) kbi_arm_result(c.arms[j], sink);
        if (c.equal && good) KBENCH_FREE(c.equal->run.sampling.samples), KBENCH_FREE(c.equal);
    }
    return good;
}

// Runs the cases of a group that are marked. false: the device is lost, and cases without a result are to be run again.
static bool kbi_run_cases(const kbi_case* cases, const kbi_recipe* recipe, const kbi_backend* b, kbi_machine* machine,
                          int first, int n, const char* wanted, const kbi_sink* sink) {
    kbi_arm** arms = (kbi_arm**)kbi_grow(NULL, sizeof(kbi_arm*) * (size_t)(n + 1));
    int count = 0;
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        if (!wanted[i]) continue;
        kbi_arm* a = (kbi_arm*)kbi_grow(NULL, sizeof(kbi_arm));
        memset(a, 0, sizeof *a);
        kbi_run_init(&a->run, b, machine, recipe);
        kbi_run_case(&a->run, &cases[first + i]);
        a->run.progress = sink->beat;
        a->run.progress_to = sink->to;
        a->index = first + i;
        sink->enter(sink->to, a->index);
        kbi_check_call(&a->run);
        bool fine = a->run.m.status == KB_OK;
        good = fine || !kbi_lost(&a->run);
        if (fine)
            arms[count++] = a;
        else
            kbi_arm_result(a, sink), KBENCH_FREE(a);
    }
    for (int i = 0; i < count && good; i += 64) // as many at once
        good = kbi_contest_all(arms + i, KBI_MIN(count - i, 64), recipe, sink);
    for (int i = 0; i < count && good; i++) KBENCH_FREE(arms[i]);
    KBENCH_FREE(arms);
    return good;
}

/*---------------------------------------------------------------------------------------------------------------
  >>verdict   judge: from samples and facts to statistics, flags, speedup and rating.
              Public: none      Used by: >>supervisor, >>embed
---------------------------------------------------------------------------------------------------------------*/

static void kbi_flag_set(kb_result* r, kb_flag flag, bool raised) {
    if (raised) r->flags |= (uint64_t)1 << flag;
}

// Adds to what measuring said.
KBI_PRINTF(2, 3) static void kbi_judge_say(kb_result* r, const char* format, ...) {
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    kbi_text all = { NULL, 0, 0 };
    kbi_putf(&all, "%s%s%s", r->message ? r->message : "", r->message ? "; " : "", text);
    r->message = kbi_arena_text(r->owned, all.s);
    kbi_text_free(&all);
}

// Median and the rest, in ms, of samples less the bias of their mode.
static void kbi_judge_times(kb_result* r, const kbi_measured* m, const double* samples) {
    double* ms = (double*)kbi_arena_alloc(r->owned, sizeof(double) * (size_t)KBI_MAX(m->n, (int64_t)1));
    double bias = isfinite(m->bias_ns) ? m->bias_ns : 0;
    bool usable = true;
    for (int64_t i = 0; i < m->n; i++) {
        usable &= kbi_finite(samples[i]); // a difference of graphs (--rotate) can be negative, their median not
        ms[i] = KBI_MAX(samples[i] - bias, 0) * 1e-6;
    }
    kb_stats s = kbi_summarize(ms, m->n, kbi_finite(m->step_ns) ? m->step_ns * 1e-6 : 0);
    if (usable && m->loop_ns > 0 && s.median > 0 && !m->proven && s.min * 1e6 <= 1.5 * m->loop_ns) {
        r->status = KB_FAILED;
        r->flags |= (uint64_t)1 << KB_FLAG_NO_WORK;
        r->message = "no longer than an empty loop: nothing of the block is left, or too little to be timed";
        return;
    }
    if (!usable || !(s.median > 0)) {
        r->status = KB_FAILED;
        r->flags |= (uint64_t)1 << KB_FLAG_BAD_CASE;
        r->message = usable ? "nothing is left of the time but what reading the clock costs; time more work"
                            : "the clock gave a time that is none";
        return;
    }
    r->time_ms = s.median, r->time_ms_mean = s.mean, r->time_ms_std = s.std, r->time_ms_min = s.min;
    r->time_ms_max = s.max, r->time_ms_mad = s.mad, r->time_ms_p5 = s.p5, r->time_ms_p25 = s.p25;
    r->time_ms_p75 = s.p75, r->time_ms_p95 = s.p95, r->time_ms_p99 = s.p99, r->time_ms_ci_low = s.ci_low;
    r->time_ms_ci_high = s.ci_high, r->cv = s.cv, r->precision = s.precision;
    r->samples = m->n;
    r->samples_ms.of = ms;
    r->samples_ms.n = m->n;
    r->time_ms_raw = s.median + bias * 1e-6;
    r->bias_ms = bias * 1e-6;
    r->floor_ms = m->floor_ns * 1e-6;
    double step = s.distinct > 1 ? (s.max - s.min) / (double)(s.distinct - 1) : 0;
    kbi_flag_set(r, KB_FLAG_FEW, m->n < 6);
    kbi_flag_set(r, KB_FLAG_QUANTISED, m->n >= 30 && s.distinct <= 10 && step > 0.01 * s.median);
    kbi_flag_set(r, KB_FLAG_DRIFT, s.drift_significant != 0);
    kbi_flag_set(r, KB_FLAG_AUTOCORR, m->n >= 30 && !m->rounds && s.lag1 > 0.3); // slots of rounds are far apart
    kbi_flag_set(r, KB_FLAG_BIMODAL, s.bimodal != 0);
    bool known = m->bias_error_ns > 0; // how far the bias may be off; else a time near what reads nothing is doubted
    bool floored = known ? 1.96 * m->bias_error_ns * 1e-6 > 0.02 * s.median : r->time_ms_raw < 5 * r->floor_ms;
    kbi_flag_set(r, KB_FLAG_FLOOR, floored); // there the timer's own scatter is what would show as outliers
    kbi_flag_set(r, KB_FLAG_OUTLIERS, m->n >= 30 && !floored && s.outliers_severe > 0.05);
    kbi_interval_add(s.median, m->bias_error_ns * 1e-6, &r->time_ms_ci_low, &r->time_ms_ci_high);
    r->precision = kbi_half_width(r->time_ms_ci_low, r->time_ms_ci_high, s.median);
    kbi_flag_set(r, KB_FLAG_CLOCK_VARIES, m->clock_high - m->clock_low > 0.02 * m->clock_high);
}

// Faster than anything this machine was seen to do: an error where the data cannot come from cache, else a warning.
static void kbi_judge_roof(kb_result* r, const kbi_measured* m, const kbi_machine* machine, double rate,
                           double computed) {
    double best = 0; // of those that were measured
    if (machine->copy_roof > best) best = machine->copy_roof;
    if (machine->read_roof > best) best = machine->read_roof;
    if (machine->write_roof > best) best = machine->write_roof;
    bool moves = best > 0 && rate > 1.05 * best, computes = computed > 1.05;
    bool sure = computes || (kbi_is(m->mode, "cold") && m->bytes >= 4.0 * (double)machine->l2);
    kbi_flag_set(r, KB_FLAG_ABOVE_ROOF, moves || computes);
    if ((!moves && !computes) || !sure) return;
    char is[40], roof[40];
    kbi_text why = { NULL, 0, 0 };
    if (moves)
        kbi_putf(&why, "%s GB/s by kb_bytes, where the machine reaches %s GB/s", kbi_digits(rate * 1e-9, 4, is),
                 kbi_digits(best * 1e-9, 4, roof));
    else
        kbi_putf(&why, "%s times the measured arithmetic roof, by kb_flops", kbi_digits(computed, 3, is));
    r->message = kbi_arena_text(r->owned, why.s);
    kbi_text_free(&why);
    r->status = KB_FAILED;
    r->gpu_efficiency = NAN;
}

// A clock that ends at its lowest, well below its highest, fell from burst to sustained while this ran.
static void kbi_judge_regime(kb_result* r, const kbi_measured* m) {
    bool fell = m->clock_high - m->sm_clock > 0.02 * m->clock_high;
    if (fell && m->sm_clock - m->clock_low <= 0.005 * m->clock_high)
        kbi_judge_say(r, "the SM clock fell from %.0f MHz (burst) to %.0f MHz (sustained); samples are of both",
                      m->clock_high, m->sm_clock);
}

static void kbi_judge_rates(kb_result* r, const kbi_measured* m, const kbi_machine* machine) {
    double seconds = r->time_ms * 1e-3, bytes = isfinite(m->bytes) ? m->bytes : 0;
    if (!(seconds > 0)) return;
    r->inference_speed = 1 / seconds;
    r->throughput_gbps = m->bytes / seconds * 1e-9;
    r->gflops = m->flops / seconds * 1e-9;
    r->items_per_second = m->items / seconds;
    if (m->queries) r->queries_per_second = r->items_per_second;
    int which = m->dtype == KB_F16 ? 1 : m->dtype == KB_BF16 ? 2 : 0;
    bool real = m->dtype == KB_NODTYPE || which || m->dtype == KB_F32;
    double flop_roof = real ? machine->flop_roof[which] : (double)NAN;
    double moved = machine->copy_roof > 0 ? bytes / seconds / machine->copy_roof : 0;
    double computed = flop_roof > 0 && kbi_finite(m->flops) ? m->flops / seconds / flop_roof : 0;
    if (!(moved > 0) && !(computed > 0)) return;
    r->gpu_efficiency = 100 * KBI_MAX(moved, computed);
    bool floored = (r->flags >> KB_FLAG_FLOOR & 1) != 0;
    r->bound = floored || KBI_MAX(moved, computed) < 0.1 ? "latency" : moved >= computed ? "memory" : "compute";
    kbi_judge_roof(r, m, machine, bytes / seconds, computed);
}

// A wrong, failed or implausible case keeps its identity and its message, and loses every number of time.
static void kbi_judge_withdraw(kb_result* r) {
    r->time_ms = r->time_ms_mean = r->time_ms_std = r->time_ms_min = r->time_ms_max = r->time_ms_mad = NAN;
    r->time_ms_p5 = r->time_ms_p25 = r->time_ms_p75 = r->time_ms_p95 = r->time_ms_p99 = r->time_ms_raw = NAN;
    r->time_ms_ci_low = r->time_ms_ci_high = r->cv = r->precision = r->bias_ms = r->floor_ms = NAN;
    r->inference_speed = r->throughput_gbps = r->gflops = r->items_per_second = r->queries_per_second =
        r->gpu_efficiency = NAN;
    r->samples = KB_NONE;
    r->samples_ms.n = 0;
}

// A cold time is one only where the eviction was seen to work.
static void kbi_judge_cold(kb_result* r, const kbi_measured* m, const kbi_machine* machine) {
    if (!kbi_is(m->mode, "cold") || !kbi_finite(machine->cold) || machine->cold >= 0.7) return;
    kbi_flag_set(r, KB_FLAG_NOT_COLD, true);
    kbi_judge_say(r, "after the eviction %.0f %% of L2's data was still there", 100 * (1 - machine->cold));
    r->status = KB_FAILED;
}

// What measuring found beside the times.
static void kbi_judge_facts(kb_result* r, const kbi_measured* m) {
    kbi_flag_set(r, KB_FLAG_THROTTLED, m->throttle[0] != 0);
    kbi_flag_set(r, KB_FLAG_SHARED_GPU, m->others > 0);
    kbi_flag_set(r, KB_FLAG_LEAK, m->leaked > 0);
    kbi_flag_set(r, KB_FLAG_UNGATED, m->ungated != 0);
    kbi_flag_set(r, KB_FLAG_CONSTANT_DATA, m->constant != 0);
}

static void kbi_judge(kb_result* r, const kbi_measured* m, const double* samples, const kbi_machine* machine) {
    kbi_result_clear(r);
    r->status = (kb_status)m->status;
    r->flags = m->flags;
    r->verified = m->verified;
    r->max_error = m->max_error, r->tolerance = m->tolerance;
    if (m->message[0]) r->message = kbi_arena_text(r->owned, m->message);
    kbi_judge_facts(r, m);
    if (r->status == KB_OK) {
        kbi_judge_times(r, m, samples);
        kbi_judge_rates(r, m, machine);
        if (r->status == KB_OK) kbi_judge_regime(r, m);
        if (r->status == KB_OK) kbi_judge_cold(r, m, machine);
        kbi_flag_set(r, KB_FLAG_UNVERIFIED, r->verified < 0);
        kbi_flag_set(r, KB_FLAG_UNSETTLED, !m->settled);
        kbi_flag_set(r, KB_FLAG_DEBUG_BUILD, m->debug_build != 0);
    }
    if (r->status != KB_OK || !(r->time_ms >= 0)) kbi_judge_withdraw(r);
}

// What the rounds say of an arm against another: the ratio of their times with its interval, in lo and hi.
static double kbi_judge_ratio_of(const double* theirs, const double* mine, int64_t rounds, double alpha, double* lo,
                                 double* hi) {
    double log_ratio[KBI_ROUNDS_LIMIT], median;
    int64_t n = 0; // rounds that both were in: with --iters one has all its samples before the other
    for (int64_t r = 0; r < rounds; r++)
        if (kbi_finite(theirs[r]) && kbi_finite(mine[r])) log_ratio[n++] = log(theirs[r] / mine[r]);
    kbi_paired(log_ratio, n, alpha, &median, lo, hi);
    *lo = exp(*lo), *hi = exp(*hi);
    return exp(median);
}

static const double kbi_delta = 0.01; // two times within 1 % of each other are EQUIVALENT

// The rounds of a measured case, less the bias of its mode; NULL without any.
static const double* kbi_judge_rounds(const kbi_measured* m, double* samples, bool again) {
    double* rounds = samples + m->n + (again ? m->rounds : 0);
    return m->status == KB_OK && (again ? m->again : m->rounds) > 0 ? rounds : NULL;
}

static void kbi_judge_unbias(const kbi_measured* m, double* samples) {
    double bias = isfinite(m->bias_ns) ? m->bias_ns : 0;
    for (int64_t i = m->n; i < m->n + m->rounds + m->again; i++)
        if (kbi_finite(samples[i])) samples[i] = KBI_MAX(samples[i] - bias, 1e-3);
}

// Whether two were measured in the same rounds: a group of more than 64 is several contests.
static bool kbi_judge_together(const kbi_measured* a, const kbi_measured* b) {
    return a->rounds == b->rounds && a->contest == b->contest;
}

// Speedup, its interval and verdict, from rounds that both were measured in; else the ratio of the medians alone.
static void kbi_judge_speedup(kb_result* results, const kbi_measured* const* m, double* const* samples, int i,
                              double noise) {
    kb_result *base = &results[0], *r = &results[i];
    const double *theirs = kbi_judge_rounds(m[0], samples[0], false),
                 *mine = kbi_judge_rounds(m[i], samples[i], false);
    r->speedup = base->time_ms / r->time_ms;
    if (i == 0 || !theirs || !mine || !kbi_judge_together(m[0], m[i])) return;
    double alpha = 0.05 / KBI_MAX(m[i]->arms - 1, 1);
    r->speedup = kbi_judge_ratio_of(theirs, mine, m[i]->rounds, alpha, &r->speedup_low, &r->speedup_high);
    r->noise_floor = noise;
    r->verdict = kbi_judge_ratio(r->speedup_low, r->speedup_high, kbi_delta, noise);
}

// Whether the fastest of a group is surely faster than each of the others.
static bool kbi_judge_certain(const kb_result* results, const kbi_measured* const* m, double* const* samples, int n,
                              int fastest, double noise) {
    const double* mine = fastest < 0 ? NULL : kbi_judge_rounds(m[fastest], samples[fastest], false);
    for (int i = 0; i < n; i++) {
        double lo, hi;
        if (i == fastest || results[i].status != KB_OK) continue;
        const double* theirs = kbi_judge_rounds(m[i], samples[i], false);
        if (!mine || !theirs || !kbi_judge_together(m[i], m[fastest])) return false;
        kbi_judge_ratio_of(theirs, mine, m[i]->rounds, 0.05 / KBI_MAX(n - 1, 1), &lo, &hi);
        if (kbi_judge_ratio(lo, hi, kbi_delta, noise) != KB_FASTER) return false;
    }
    return mine != NULL;
}

// Speedup against the first of the group, and the rating against its best verified time.
static kbi_contest_end kbi_judge_group(kb_result* results, const kbi_measured* const* m, double* const* samples,
                                       int n) {
    kbi_contest_end end = { -1, false };
    double best = INFINITY, noise = NAN, lo, hi;
    for (int i = 0; i < n; i++) {
        const kb_result* r = &results[i];
        if (r->status != KB_OK || !(r->time_ms > 0)) continue;
        kbi_judge_unbias(m[i], samples[i]);
        if (r->verified == 1) best = KBI_MIN(best, r->time_ms);
        if (end.fastest < 0 || r->time_ms < results[end.fastest].time_ms) end.fastest = i;
    }
    const double *one = n ? kbi_judge_rounds(m[0], samples[0], false) : NULL,
                 *two = n ? kbi_judge_rounds(m[0], samples[0], true) : NULL;
    if (one && two) {
        kbi_judge_ratio_of(one, two, m[0]->rounds, 0.05, &lo, &hi);
        noise = kbi_noise_floor(lo, hi);
    }
    for (int i = 0; i < n && n > 1; i++) {
        kb_result* r = &results[i];
        if (r->status != KB_OK || !(r->time_ms > 0)) continue;
        kbi_judge_speedup(results, m, samples, i, noise);
        double share = best / r->time_ms;
        if (r->verified == 1)
            r->rating = share >= 0.8 ? "excellent" : share >= 0.5 ? "good" : share >= 0.2 ? "fair" : "needs work";
    }
    int rivals = 0;
    for (int i = 0; i < n; i++) rivals += results[i].status == KB_OK && results[i].time_ms > 0;
    if (rivals < 2) end.fastest = -1;
    end.certain = kbi_judge_certain(results, m, samples, n, end.fastest, noise);
    return end;
}

/*---------------------------------------------------------------------------------------------------------------
  >>record    record: a case's identity, machine and run, put into its record.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

static void kbi_record_identity(kb_result* r, const kbi_case* c) {
    kb_param* params = (kb_param*)kbi_arena_alloc(r->owned, sizeof(kb_param) * (size_t)(c->n_params + 2));
    r->name = kbi_arena_text(r->owned, c->name);
    r->operation = kbi_arena_text(r->owned, c->entry->operation);
    r->implementation = kbi_arena_text(r->owned, c->entry->implementation);
    r->direction = kbi_arena_text(r->owned, c->direction);
    r->origin = kbi_arena_text(r->owned, c->entry->origin ? c->entry->origin : "user");
    if (c->entry->rung) r->rung = c->entry->rung;
    if (c->dtype) r->dtype = kb_dtype_name(c->dtype);
    for (int i = 0; i < c->n_params; i++) {
        const kb_param* p = &c->params[i];
        params[r->params.n] = *p;
        params[r->params.n].name = kbi_arena_text(r->owned, p->name);
        params[r->params.n++].s = kbi_arena_text(r->owned, p->s);
        if (p->type != KB_AXIS_INTS) continue;
        if (kbi_is(p->name, "batch_size")) r->batch_size = p->i;
        if (kbi_is(p->name, "sequence_length")) r->sequence_length = p->i;
        if (kbi_is(p->name, "tensor_dimension")) r->tensor_dimension = p->i;
    }
    if (c->direction) {
        params[r->params.n].name = "dir";
        params[r->params.n].type = KB_AXIS_STRINGS;
        params[r->params.n++].s = r->direction;
    }
    r->params.of = params;
}

static char* kbi_triple(kbi_arena* a, const int32_t x[3]) {
    char text[64];
    snprintf(text, sizeof text, "%dx%dx%d", x[0], x[1], x[2]);
    return kbi_arena_text(a, text);
}

static void kbi_record_measured(kb_result* r, const kbi_measured* m) {
    r->memory_bytes = m->memory;
    if (m->memory != KB_NONE) r->memory_mb = (double)m->memory / 1048576;
    if (m->host_memory != KB_NONE) r->host_memory_mb = (double)m->host_memory / 1048576;
    r->leaked_bytes = m->leaked;
    if (m->kernel[0]) r->kernel = kbi_arena_text(r->owned, m->kernel);
    if (m->grid[0]) r->grid = kbi_triple(r->owned, m->grid), r->block = kbi_triple(r->owned, m->block);
    r->registers = m->registers, r->shared_bytes = m->shared_bytes, r->local_bytes = m->local_bytes;
    r->occupancy_theoretical = m->occupancy;
    r->sm_clock_mhz = m->sm_clock, r->memory_clock_mhz = m->memory_clock;
    r->power_w = m->power, r->temperature_c = m->temperature, r->energy_mj = m->energy;
    if (m->throttle[0]) r->throttle = kbi_arena_text(r->owned, m->throttle);
    if (m->mode[0]) r->mode = kbi_arena_text(r->owned, m->mode);
    r->wall_ms = m->wall_ns * 1e-6;
    r->bytes = m->bytes, r->flops = m->flops;
    r->stage_shared = m->rounds ? m->stage : -1;
    if (m->n <= 0) return;
    r->samples_retaken = m->retaken;
    if (m->launches > 0) r->launches_per_sample = m->launches;
}

static void kbi_record_machine(kb_result* r, const kbi_machine* machine) {
    r->backend = kbi_arena_text(r->owned, machine->backend);
    if (machine->tool[0]) r->tool = kbi_arena_text(r->owned, machine->tool);
    r->copy_roof_gbps = machine->copy_roof * 1e-9;
    r->read_roof_gbps = machine->read_roof * 1e-9;
    r->write_roof_gbps = machine->write_roof * 1e-9;
    r->ecc = machine->ecc, r->mig = machine->mig, r->clocks_locked = machine->clocks_locked;
    if (machine->gpu_present) {
        char capability[16];
        snprintf(capability, sizeof capability, "%d.%d", machine->sm / 10, machine->sm % 10);
        r->device = machine->device;
        r->gpu = kbi_arena_text(r->owned, machine->gpu);
        r->compute_capability = kbi_arena_text(r->owned, capability);
        r->driver = kbi_arena_text(r->owned, machine->driver);
        r->cuda = kbi_arena_text(r->owned, machine->cuda);
    } else if (machine->why[0]) {
        r->no_gpu = kbi_arena_text(r->owned, machine->why);
    } else {
        r->no_gpu = kbi_is(machine->backend, "script") ? "scripted"
                    : KBI_CUDA                         ? "--device cpu"
                                                       : "built without CUDA";
    }
}

// Who was compared with whom, and who won: the same in all records of a group.
static void kbi_record_contest(kb_result* results, int n, kbi_contest_end end) {
    for (int i = 0; i < n && n > 1; i++) {
        kb_result* r = &results[i];
        r->baseline = kbi_arena_text(r->owned, results[0].implementation);
        if (end.fastest < 0) continue;
        r->winner = kbi_arena_text(r->owned, results[end.fastest].implementation);
        r->winner_certain = end.certain;
    }
}

typedef struct kbi_session { // the same for every record of a run
    char host[72], kernel_version[72], cpu[96], date[32], git_commit[48], build[160], run_id[24];
    char* command;
    uint64_t seed;
} kbi_session;

static void kbi_session_cpu(kbi_session* s) {
    char line[256];
    FILE* f = fopen("/proc/cpuinfo", "r");
    while (f && kbi_get_line(line, (int)sizeof line, f)) {
        const char* colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(s->cpu, sizeof s->cpu, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f) fclose(f);
}

// The commit that is checked out here or in a folder above, read from .git itself.
static void kbi_session_commit(kbi_session* s) {
    char path[512], up[256] = "", line[256], name[512];
    for (int i = 0; i < 20 && !s->git_commit[0]; i++) {
        snprintf(path, sizeof path, "%s.git", up);
        if (kbi_first_line(path, line, (int)sizeof line)) return; // worktree, submodule: their HEAD is elsewhere
        snprintf(path, sizeof path, "%s.git/HEAD", up);
        if (kbi_first_line(path, line, (int)sizeof line)) {
            if (strncmp(line, "ref: ", 5) == 0) {
                snprintf(name, sizeof name, "%s.git/%.200s", up, line + 5);
                if (!kbi_first_line(name, line, (int)sizeof line)) return; // packed, or no commit yet
            }
            snprintf(s->git_commit, sizeof s->git_commit, "%.40s", line);
            return;
        }
        if (strlen(up) + 4 > sizeof up) return;
        strcat(up, "../");
    }
}

static void kbi_show_build(char* text, size_t size, const kb_build* b) {
    snprintf(text, size, "%.80s%s%s", b->compiler, b->optimised ? ", optimised" : ", not optimised",
             b->cuda ? ", CUDA" : "");
}

// How the file with the benchmark was compiled, and kbench itself where that was done otherwise.
static void kbi_record_build(kb_result* r, const kb_entry* entry) {
    char own[160], text[340];
    kbi_show_build(own, sizeof own, kbi_build());
    kbi_show_build(text, sizeof text, kbi_build_of(entry));
    if (strcmp(text, own) != 0) snprintf(text + strlen(text), 180, "; kbench: %s", own);
    r->build = kbi_arena_text(r->owned, text);
}

static void kbi_session_open(kbi_session* s, int argc, char** argv, uint64_t seed) {
    struct utsname u;
    kbi_text command = { NULL, 0, 0 };
    time_t now = time(NULL);
    const struct tm* t = gmtime(&now);
    memset(s, 0, sizeof *s);
    if (uname(&u) == 0) {
        snprintf(s->host, sizeof s->host, "%.70s", u.nodename);
        snprintf(s->kernel_version, sizeof s->kernel_version, "%.70s", u.release);
    }
    kbi_session_cpu(s);
    kbi_session_commit(s);
    if (t) strftime(s->date, sizeof s->date, "%Y-%m-%dT%H:%M:%SZ", t);
    kbi_show_build(s->build, sizeof s->build, kbi_build());
    for (int i = 0; i < argc; i++) kbi_putf(&command, "%s%s", i ? " " : "", argv[i]);
    s->command = command.s;
    s->seed = seed;
    uint64_t id = kbi_hash(14695981039346656037u ^ (uint64_t)kbi_now() ^ ((uint64_t)getpid() << 32), s->host);
    snprintf(s->run_id, sizeof s->run_id, "%016llx", (unsigned long long)kbi_hash(id, s->date));
}

// Everything of a case but what was judged.
static void kbi_record_case(kb_result* r, const kbi_case* c, const kbi_measured* m, const kbi_machine* machine) {
    kbi_record_identity(r, c);
    kbi_record_build(r, c->entry);
    kbi_record_measured(r, m);
    kbi_record_machine(r, machine);
}

static void kbi_record_session(kb_result* r, const kbi_session* s) {
    r->host = kbi_arena_text(r->owned, s->host);
    r->kernel_version = kbi_arena_text(r->owned, s->kernel_version);
    if (s->cpu[0]) r->cpu = kbi_arena_text(r->owned, s->cpu);
    r->date = kbi_arena_text(r->owned, s->date);
    if (s->git_commit[0]) r->git_commit = kbi_arena_text(r->owned, s->git_commit);
    r->run_id = kbi_arena_text(r->owned, s->run_id);
    r->command = kbi_arena_text(r->owned, s->command);
    r->seed = (int64_t)s->seed;
    r->kbench_version = KBENCH_VERSION;
    r->schema = 2;
}

/*---------------------------------------------------------------------------------------------------------------
  >>json      record: one object per case; never NaN, never Infinity, never a comma for a point.
              Public: none      Used by: >>store
---------------------------------------------------------------------------------------------------------------*/

static void kbi_json_text(kbi_text* t, const char* s) {
    if (!s) {
        kbi_puts(t, "null");
        return;
    }
    kbi_puts(t, "\"");
    for (const unsigned char* p = (const unsigned char*)s; *p;) {
        int n = kbi_utf8(p);
        if (*p == '"' || *p == '\\')
            kbi_putf(t, "\\%c", *p);
        else if (*p == '\n')
            kbi_puts(t, "\\n");
        else if (*p == '\t')
            kbi_puts(t, "\\t");
        else if (*p < 0x20 || *p == 0x7f)
            kbi_putf(t, "\\u%04x", *p);
        else if (n)
            kbi_put(t, (const char*)p, (size_t)n);
        else
            kbi_puts(t, "\xef\xbf\xbd"); // not UTF-8: the replacement character
        p += n ? n : 1;
    }
    kbi_puts(t, "\"");
}

static void kbi_json_real(kbi_text* t, double x) {
    char number[40];
    kbi_puts(t, kbi_finite(x) ? kbi_number(x, number) : "null");
}

static void kbi_json_whole(kbi_text* t, int64_t x) {
    if (x == KB_NONE)
        kbi_puts(t, "null");
    else
        kbi_putf(t, "%lld", (long long)x);
}

static void kbi_json_truth(kbi_text* t, int x) { kbi_puts(t, x < 0 ? "null" : x ? "true" : "false"); }

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

static void kbi_json_samples(kbi_text* t, kbi_field_samples samples) {
    kbi_puts(t, samples.n ? "[" : "null");
    for (int64_t i = 0; i < samples.n; i++) {
        if (i) kbi_puts(t, ", ");
        kbi_json_real(t, samples.of[i]);
    }
    if (samples.n) kbi_puts(t, "]");
}

static void kbi_json_flags(kbi_text* t, uint64_t flags) {
    bool first = true;
    kbi_puts(t, "[");
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        if (!((flags >> f) & 1)) continue;
        kbi_putf(t, "%s\"%s\"", first ? "" : ", ", kb_flag_name((kb_flag)f));
        first = false;
    }
    kbi_puts(t, "]");
}

static void kbi_json_field(kbi_text* t, const void* field, kbi_kind kind) {
    switch (kind) {
    case KBI_KIND_text: kbi_json_text(t, *(const kbi_field_text*)field); break;
    case KBI_KIND_real: kbi_json_real(t, *(const kbi_field_real*)field); break;
    case KBI_KIND_whole: kbi_json_whole(t, *(const kbi_field_whole*)field); break;
    case KBI_KIND_truth: kbi_json_truth(t, *(const kbi_field_truth*)field); break;
    case KBI_KIND_params: kbi_json_params(t, *(const kbi_field_params*)field); break;
    case KBI_KIND_samples: kbi_json_samples(t, *(const kbi_field_samples*)field); break;
    case KBI_KIND_flags: kbi_json_flags(t, *(const kbi_field_flags*)field); break;
    case KBI_KIND_status: kbi_json_text(t, kbi_status_name(*(const kbi_field_status*)field)); break;
    case KBI_KIND_verdict: kbi_json_text(t, kbi_verdict_name(*(const kbi_field_verdict*)field)); break;
    }
}

static void kbi_json_result(kbi_text* t, const kb_result* r) {
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        kbi_putf(t, "%s\"%s\": ", i ? ", " : "{", kbi_keys[i].name);
        kbi_json_field(t, kbi_field(r, &kbi_keys[i]), kbi_keys[i].kind);
    }
    kbi_puts(t, "}");
}

/*---------------------------------------------------------------------------------------------------------------
  >>store     record: files that survive a crash.
              Public: kb_write_json      Used by: programs, >>supervisor, >>program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_store {
    const char *json, *jsonl;
    char* temporary; // beside json, renamed over it at the end; NULL: json is written in place
    int json_file, jsonl_file;
    kbi_text array, path; // path: json from the root on, since a body may change the directory
    unsigned failed;      // bits: json, jsonl
    bool keep;            // results of an earlier run are worth more than an empty array
} kbi_store;
enum { KBI_JSON_FAILED = 1, KBI_JSONL_FAILED = 2 };

// Whether a path still leads to the plain file that was opened under it.
static bool kbi_file_is(int file, const char* path) {
    struct stat open_one, there;
    return fstat(file, &open_one) == 0 && lstat(path, &there) == 0 && S_ISREG(there.st_mode) &&
           open_one.st_dev == there.st_dev && open_one.st_ino == there.st_ino;
}

// Removes a temporary file unless a run holds its lock, on whatever machine or in whatever container.
static bool kbi_remove_left(const char* path) {
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    int file = kbi_open_file(path, O_RDWR | KBI_NOFOLLOW);
    bool gone = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 && kbi_file_is(file, path) && unlink(path) == 0;
    if (file >= 0) close(file);
    return gone;
}

// Removes what runs left beside this file when they were killed: NAME.tmpPID where there is no such process.
static void kbi_remove_all_left(const char* path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    kbi_text folder = { NULL, 0, 0 };
    kbi_put(&folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    DIR* d = opendir(folder.s);
    for (struct dirent* e; d && (e = readdir(d)) != NULL;) {
        const char* number = e->d_name + n + 4;
        if (strncmp(e->d_name, name, n) != 0 || strncmp(e->d_name + n, ".tmp", 4) != 0) continue;
        if (strlen(number) < 1 || strlen(number) > 9 || number[strspn(number, "0123456789")]) continue;
        if (kill((pid_t)strtol(number, NULL, 10), 0) == 0 || errno != ESRCH) continue;
        kbi_text left = { NULL, 0, 0 };
        kbi_putf(&left, "%s%s", slash ? folder.s : "", e->d_name);
        kbi_remove_left(left.s);
        kbi_text_free(&left);
    }
    if (d) closedir(d);
    kbi_text_free(&folder);
}

// A file of one's own, locked until it is closed; -1: errno says why not.
static int kbi_open_temporary(const char* path) {
    for (int i = 0; i < 10; i++) {
        int file = kbi_open_file(path, O_WRONLY | O_CREAT | O_EXCL | KBI_NOFOLLOW);
        bool there = file < 0 && errno == EEXIST;
        if (there && kbi_remove_left(path)) continue; // left by another process of this number
        if (file < 0) return errno = there ? EEXIST : errno, -1;
        flock(file, LOCK_EX | LOCK_NB);
        if (kbi_file_is(file, path)) return file; // nobody took it for left before it was locked
        close(file);
    }
    return errno = EEXIST, -1;
}

static bool kbi_store_open_json(kbi_store* s) {
    struct stat about;
    if (kbi_is(s->json, "-")) return true;
    // a device, a pipe or a symbolic link is written to, a plain file is replaced as a whole
    bool plain = lstat(s->json, &about) != 0 || S_ISREG(about.st_mode);
    kbi_text name = { NULL, 0, 0 };
    kbi_putf(&name, plain ? "%s.tmp%ld" : "%s", s->json, (long)getpid());
    if (plain) kbi_remove_all_left(s->json);
    s->json_file = plain ? kbi_open_temporary(name.s) : kbi_open_file(name.s, O_WRONLY | O_CREAT);
    if (s->json_file < 0 && plain && errno == EEXIST)
        kbi_error("cannot write --json %s: %s is in use by another run, or no plain file", s->json, name.s);
    else if (s->json_file < 0)
        kbi_error("cannot write --json %s: %s", s->json, strerror(errno));
    if (plain && s->json_file >= 0)
        s->temporary = name.s;
    else
        kbi_text_free(&name);
    return s->json_file >= 0;
}

// Ends a line that an earlier run was killed in the middle of, so that ours does not continue it.
static bool kbi_store_open_jsonl(kbi_store* s) {
    char last = '\n';
    if (kbi_is(s->jsonl, "-")) return true;
    s->jsonl_file = kbi_open_file(s->jsonl, O_RDWR | O_CREAT | O_APPEND);
    if (s->jsonl_file < 0) s->jsonl_file = kbi_open_file(s->jsonl, O_WRONLY | O_APPEND); // a pipe
    if (s->jsonl_file < 0) return kbi_error("cannot write --jsonl %s: %s", s->jsonl, strerror(errno)), false;
    if (lseek(s->jsonl_file, -1, SEEK_END) >= 0 && kbi_read_some(s->jsonl_file, &last, 1) == 1 && last != '\n' &&
        !kbi_write_all(s->jsonl_file, "\n", 1))
        return kbi_error("cannot write --jsonl %s: %s", s->jsonl, strerror(errno)), false;
    return true;
}

// The files of records as an array and of records a line; NULL: none.
static bool kbi_store_open(kbi_store* s, const char* json, const char* jsonl) {
    memset(s, 0, sizeof *s);
    s->json = json;
    s->jsonl = jsonl;
    s->json_file = s->jsonl_file = -1;
    if ((s->json && !*s->json) || (s->jsonl && !*s->jsonl))
        return kbi_error("--%s needs a file's name; its is empty", s->json && !*s->json ? "json" : "jsonl"), false;
    if (kbi_is(s->json, "-") && kbi_is(s->jsonl, "-"))
        return kbi_error("--json - and --jsonl - would mix on stdout; give one of them a file"), false;
    char here[4096];
    if (s->json && *s->json != '/' && !kbi_is(s->json, "-") && getcwd(here, sizeof here))
        kbi_putf(&s->path, "%s/%s", here, s->json), s->json = s->path.s;
    bool json_opened = !s->json || kbi_store_open_json(s), jsonl_opened = !s->jsonl || kbi_store_open_jsonl(s);
    if (json_opened && jsonl_opened) return true;
    if (s->json_file >= 0) close(s->json_file);
    if (s->jsonl_file >= 0) close(s->jsonl_file);
    if (s->temporary) unlink(s->temporary);
    KBENCH_FREE(s->temporary);
    s->temporary = NULL;
    kbi_text_free(&s->path);
    return false;
}

static void kbi_store_trouble(kbi_store* s, unsigned which, const char* path) { // said once of each
    if (!(s->failed & which))
        kbi_error("writing --%s %s failed: %s", which == KBI_JSON_FAILED ? "json" : "jsonl", path, strerror(errno));
    s->failed |= which;
}

static void kbi_store_add(kbi_store* s, const kb_result* r) {
    kbi_text line = { NULL, 0, 0 };
    if (!s->json && !s->jsonl) return;
    kbi_json_result(&line, r);
    if (s->json) kbi_putf(&s->array, "%s", s->array.n ? ",\n" : "[\n"), kbi_puts(&s->array, line.s);
    kbi_puts(&line, "\n");
    if (kbi_is(s->jsonl, "-"))
        fputs(line.s, stdout), fflush(stdout);
    else if (s->jsonl && !kbi_write_all(s->jsonl_file, line.s, line.n))
        kbi_store_trouble(s, KBI_JSONL_FAILED, s->jsonl);
    else if (s->jsonl)
        fsync(s->jsonl_file);
    kbi_text_free(&line);
}

// Writes the array; the old file stays as it is until the new one is complete.
static bool kbi_store_close(kbi_store* s) {
    if (s->jsonl_file >= 0) close(s->jsonl_file);
    bool nothing = s->keep && !s->array.n && s->json_file >= 0 && access(s->json, F_OK) == 0;
    if (s->json) kbi_puts(&s->array, s->array.n ? "\n]\n" : "[]\n");
    if (nothing) {
        close(s->json_file);
        if (s->temporary) unlink(s->temporary);
    } else if (kbi_is(s->json, "-")) {
        fputs(s->array.s, stdout);
        if (fflush(stdout) != 0) kbi_store_trouble(s, KBI_JSON_FAILED, "-");
    } else if (s->json_file >= 0) {
        int again = s->temporary ? -1 : kbi_open_file(s->json, O_WRONLY | O_TRUNC); // what stands behind a link
        if (again >= 0) close(again);
        bool good =
            kbi_write_all(s->json_file, s->array.s, s->array.n) && (fsync(s->json_file) == 0 || errno == EINVAL);
        if (good && s->temporary && rename(s->temporary, s->json) != 0) good = false; // still locked
        if (close(s->json_file) != 0) good = false;
        if (!good) kbi_store_trouble(s, KBI_JSON_FAILED, s->json);
        if (!good && s->temporary) unlink(s->temporary);
    }
    kbi_text_free(&s->array);
    kbi_text_free(&s->path);
    KBENCH_FREE(s->temporary);
    s->temporary = NULL;
    return !s->failed;
}

bool kb_write_json(const kb_result* results, int64_t n, const char* path) {
    kbi_store store;
    if (!kbi_store_open(&store, path, NULL)) return false;
    for (int64_t i = 0; i < n; i++) kbi_store_add(&store, &results[i]);
    return kbi_store_close(&store);
}

/*---------------------------------------------------------------------------------------------------------------
  >>columns   render: what render is told beside the records, and what stands in a column.
              Public: none      Used by: >>table, >>progress, >>program
---------------------------------------------------------------------------------------------------------------*/

// What render is told beside the records.
typedef struct kbi_how {
    FILE* out;
    int width;
    bool colour, verbose;
    const char *sort, *columns; // as on the command line; NULL: as measured, and what the records have
} kbi_how;

// Whether that is a terminal that knows colours and how to clear a line.
static bool kbi_terminal(FILE* f) { return isatty(fileno(f)) && !kbi_is(getenv("TERM"), "dumb"); }

// A terminal's own, else what COLUMNS says.
static int kbi_terminal_width(FILE* f) {
    struct winsize size;
    const char* said = getenv("COLUMNS");
    bool known = ioctl(fileno(f), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    long width = known ? size.ws_col : said ? strtol(said, NULL, 10) : 0;
    return width >= 40 && width <= 1000 ? (int)width : 80;
}

static void kbi_how_default(kbi_how* how, FILE* out) {
    memset(how, 0, sizeof *how);
    how->out = out;
    how->width = kbi_terminal_width(out);
    how->colour = kbi_terminal(out) && !getenv("NO_COLOR");
}

// --- text of others' making ---

// Adds text of others' making: what is no UTF-8, and what would move the cursor, is replaced.
static void kbi_clean(kbi_text* t, const char* s) {
    for (const unsigned char* p = (const unsigned char*)s; *p;) {
        int n = kbi_utf8(p);
        if (!n)
            kbi_puts(t, "\xef\xbf\xbd");
        else if (*p < 0x20 || *p == 0x7f)
            kbi_puts(t, " ");
        else
            kbi_put(t, (const char*)p, (size_t)n);
        p += n ? n : 1;
    }
}

static int kbi_width(const char* s, size_t n) { // of n bytes, in characters
    int width = 0;
    for (size_t i = 0; i < n; i++) width += (s[i] & 0xc0) != 0x80;
    return width;
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

// --- a column under a heading ---

typedef struct kbi_cell { // a column under the heading above
    kbi_shown what;
    const char* title;
    double scale; // from the key's unit to the title's
    int width;
} kbi_cell;

// The unit in which the largest of the records' values has a digit before the point.
static void kbi_cell_unit(kbi_cell* cell, const kb_result* const* rows, int n) {
    double most = 0;
    for (int i = 0; i < n; i++) {
        double x = kbi_field_number(rows[i], cell->what.key);
        if (kbi_finite(x)) most = KBI_MAX(most, x);
    }
    for (int i = 0; i < KBI_COUNT(kbi_units); i++) {
        if (kbi_units[i].column != cell->what.column || (kbi_units[i].scale < 1 && most * kbi_units[i].scale < 1))
            continue;
        cell->title = kbi_units[i].title;
        cell->scale = kbi_units[i].scale;
    }
}

// Whether the records' values can be read in the unit of the heading above, or there is no better one.
static bool kbi_cell_reads(const kbi_cell* cell, const kb_result* const* rows, int n) {
    kbi_cell better = *cell;
    kbi_cell_unit(&better, rows, n);
    for (int i = 0; i < n && better.scale != cell->scale; i++) {
        double x = kbi_field_number(rows[i], cell->what.key) * cell->scale;
        if (kbi_finite(x) && x > 0 && (x < 1e-3 || x >= 1e5)) return false;
    }
    return true;
}

// Text of a field of a record in its column, "-" for none.
static void kbi_cell_text(kbi_text* s, const kbi_cell* cell, const kb_result* r) {
    char out[40];
    const kbi_key* key = cell->what.key;
    const char* words = kbi_field_words(r, key);
    double x = kbi_field_number(r, key);
    if (!words && !kbi_finite(x))
        kbi_puts(s, "-");
    else if (cell->what.column == KBI_COLUMN_TIME)
        kbi_puts(s, kbi_show_time(x, out));
    else if (cell->what.column == KBI_COLUMN_SPREAD)
        kbi_puts(s, kbi_show_percent(x, out));
    else if (cell->what.column == KBI_COLUMN_ROOF)
        kbi_puts(s, kbi_show_percent(x / 100, out));
    else if (cell->what.column == KBI_COLUMN_MEMORY)
        kbi_puts(s, x > 0 ? kbi_show_bytes(x, out) : "-");
    else if (cell->what.column == KBI_COLUMN_SPEEDUP) // = and ~ stand for what the number alone would not say
        kbi_putf(s, "%s%s", kbi_digits(x, 3, out),
                 r->verdict == KB_EQUIVALENT   ? "="
                 : r->verdict == KB_UNRESOLVED ? "~"
                                               : "");
    else if (words)
        kbi_clean(s, words);
    else if (key->kind == KBI_KIND_whole)
        kbi_putf(s, "%lld", (long long)*(const kbi_field_whole*)kbi_field(r, key));
    else { // four digits, or as many as have room behind the zeros of a small number
        int digits = 4;
        while (strlen(kbi_digits(x * cell->scale, digits, out)) > (size_t)cell->width && digits > 1) digits--;
        kbi_puts(s, out);
    }
}

/*---------------------------------------------------------------------------------------------------------------
  >>table     render: the terminal table and its summary.
              Public: kb_print      Used by: programs, >>supervisor, >>program
---------------------------------------------------------------------------------------------------------------*/

#define KBI_CONTEST 0x80000000u // beside the bits of columns: room for who won
enum {
    KBI_LABEL = 21, // of the first column: as in a line of 80, and what a longer line may add
    KBI_LABEL_MORE = 25,
    KBI_LABEL_MIN = 12,
    KBI_WIDE = 110,        // a line so long has room for more columns
    KBI_MARK_ROOM = 9,     // " fastest?"
    KBI_INTERVAL_ROOM = 17 // " [0.998, 1.002]"
};

// Is fed records, a group's at least at a time, and prints them: groups, headings and machines are in the records.
typedef struct kbi_table {
    kbi_how how;
    kbi_shown chosen[KBI_SHOWN], order[KBI_SHOWN]; // by --columns and --sort
    int n_chosen, n_order;
    bool bare;                   // records alone, without their machine
    bool alone;                  // the heading above is that of operations with one case each
    bool equivalent, unresolved; // such verdicts were shown
    kbi_cell cells[KBI_SHOWN];
    int n_cells, label;                          // label: width of the first column
    unsigned wanted;                             // a bit for each of kbi_columns that the heading above was made for
    char heading[128], direction[32], axes[256]; // of the operation above; axes that rows leave out
    uint64_t machine;                            // of the line above; 0: none
    int64_t ok, failed, skipped;
    kbi_text text; // not yet written
} kbi_table;

static void kbi_table_open(kbi_table* t, const kbi_how* how) {
    memset(t, 0, sizeof *t);
    t->how = *how;
    if (how->columns) t->n_chosen = kbi_shown_parse("columns", how->columns, t->chosen);
    if (how->sort) t->n_order = kbi_shown_parse("sort", how->sort, t->order);
}

static void kbi_table_flush(kbi_table* t) {
    if (t->text.n) fwrite(t->text.s, 1, t->text.n, t->how.out);
    fflush(t->how.out);
    kbi_text_free(&t->text);
}

static void kbi_table_colour(kbi_table* t, const char* code) {
    if (t->how.colour) kbi_puts(&t->text, code);
}

// Text at the left (width below 0) or at the right of so many columns.
static int kbi_table_pad(kbi_table* t, int width, const char* s) {
    int n = kbi_width(s, strlen(s)), room = KBI_MAX((width < 0 ? -width : width) - n, 0);
    kbi_putf(&t->text, "%*s%s%*s", width < 0 ? 0 : room, "", s, width < 0 ? room : 0, "");
    return n + room;
}

// Text in words, wrapped under an indent.
static void kbi_table_wrap(kbi_table* t, int indent, const char* text) {
    kbi_text clean = { NULL, 0, 0 };
    int at = 0;
    kbi_clean(&clean, text);
    for (const char* s = clean.s ? clean.s : ""; *s;) {
        size_t n = strcspn(s, " ");
        int width = kbi_width(s, n);
        if (at && at + 1 + width > t->how.width) kbi_puts(&t->text, "\n"), at = 0;
        kbi_putf(&t->text, "%*s", at ? 1 : indent, "");
        kbi_put(&t->text, s, n);
        at += (at ? 1 : indent) + width;
        s += n;
        s += strspn(s, " ");
    }
    if (at) kbi_puts(&t->text, "\n");
    kbi_text_free(&clean);
}

// --- groups: which records belong together ---

static bool kbi_same_param(const kb_param* a, const kb_param* b) {
    kbi_text x = { NULL, 0, 0 }, y = { NULL, 0, 0 };
    kbi_param_text(&x, a);
    kbi_param_text(&y, b);
    bool same = kbi_is(a->name, b->name) && kbi_is(x.s ? x.s : "", y.s ? y.s : "");
    kbi_text_free(&x);
    kbi_text_free(&y);
    return same;
}

static bool kbi_same_text(const char* a, const char* b) { return kbi_is(a, b) || (!a && !b); }

static bool kbi_same_operation(const kb_result* a, const kb_result* b) {
    return kbi_is(a->operation, b->operation) && kbi_same_text(a->direction, b->direction);
}

// Whether two differ in nothing but the implementation, and come from one run on one device.
static bool kbi_same_group(const kb_result* a, const kb_result* b) {
    if (a->planned == KB_NONE || b->planned == KB_NONE || !kbi_is(a->run_id, b->run_id)) return false;
    if (a->device != b->device || a->params.n != b->params.n || !kbi_same_operation(a, b)) return false;
    for (int64_t i = 0; i < a->params.n; i++) {
        bool found = false;
        for (int64_t j = 0; j < b->params.n && !found; j++)
            found = kbi_same_param(&a->params.of[i], &b->params.of[j]);
        if (!found) return false;
    }
    return true;
}

// An operation that has no other case shares its heading; a record of no plan does likewise.
static bool kbi_table_single(const kb_result* r) { return r->planned == KB_NONE || r->planned == 1; }

// --- columns ---

// Which of the table's own columns these records have something for.
static unsigned kbi_table_wants(const kbi_table* t, const kb_result* const* rows, int n) {
    unsigned wanted = 1u << KBI_COLUMN_TIME | 1u << KBI_COLUMN_SPREAD;
    if (t->how.width >= KBI_WIDE) wanted |= 1u << KBI_COLUMN_SAMPLES;
    for (int i = 0; i < n; i++) {
        const kb_result* r = rows[i];
        if (kbi_finite(r->bytes) || kbi_finite(r->throughput_gbps)) wanted |= 1u << KBI_COLUMN_GBPS;
        if (kbi_finite(r->flops) || kbi_finite(r->gflops)) wanted |= 1u << KBI_COLUMN_GFLOPS;
        if (kbi_finite(r->items_per_second)) wanted |= 1u << KBI_COLUMN_ITEMS;
        if (kbi_finite(r->gpu_efficiency)) wanted |= 1u << KBI_COLUMN_ROOF;
        if (r->memory_bytes > 0) wanted |= 1u << KBI_COLUMN_MEMORY;
        if (kbi_finite(r->speedup)) wanted |= 1u << KBI_COLUMN_SPEEDUP;
        if (r->baseline) wanted |= KBI_CONTEST;
    }
    return wanted;
}

static void kbi_table_cell(kbi_table* t, kbi_shown what, const kb_result* const* rows, int n) {
    kbi_cell* cell = &t->cells[t->n_cells++];
    memset(cell, 0, sizeof *cell);
    cell->what = what;
    cell->scale = 1;
    cell->title = what.column < 0 ? what.key->name : kbi_columns[what.column].title;
    cell->width = what.column < 0 ? KBI_MAX((int)strlen(cell->title), 8) : kbi_columns[what.column].width;
    kbi_cell_unit(cell, rows, n);
    for (int i = 0; i < n && what.column < 0; i++) {
        kbi_text s = { NULL, 0, 0 };
        kbi_cell_text(&s, cell, rows[i]);
        cell->width = KBI_MAX(cell->width, kbi_width(s.s, s.n));
        kbi_text_free(&s);
    }
}

// What stands beside the first column.
static int kbi_table_beside(const kbi_table* t, unsigned columns) {
    int used = 0;
    for (int i = 0; i < t->n_chosen; i++) used += t->cells[i].width + 1;
    for (int i = 0; i < KBI_COUNT(kbi_columns) && !t->n_chosen; i++)
        if (columns >> i & 1) used += kbi_columns[i].width + 1;
    if (columns & KBI_CONTEST)
        used += KBI_MARK_ROOM + (t->how.width >= KBI_WIDE && !t->n_chosen ? KBI_INTERVAL_ROOM : 0);
    return used;
}

// Columns for these records; where the line is too short for all, those that say least are left out.
static void kbi_table_columns(kbi_table* t, unsigned wanted, const kb_result* const* rows, int n) {
    static const int least[] = { KBI_COLUMN_SAMPLES, KBI_COLUMN_MEMORY, KBI_COLUMN_SPREAD, KBI_COLUMN_ROOF,
                                 KBI_COLUMN_ITEMS,   KBI_COLUMN_GFLOPS, KBI_COLUMN_GBPS };
    t->wanted = wanted;
    t->n_cells = 0;
    for (int i = 0; i < t->n_chosen; i++) kbi_table_cell(t, t->chosen[i], rows, n);
    for (int i = 0; i < KBI_COUNT(least) && !t->n_chosen; i++)
        if (kbi_table_beside(t, wanted) + KBI_LABEL_MIN > t->how.width) wanted &= ~(1u << least[i]);
    for (int i = 0; i < KBI_COUNT(kbi_columns) && !t->n_chosen; i++)
        if (wanted >> i & 1) kbi_table_cell(t, kbi_shown_column(i), rows, n);
    t->label = KBI_LABEL + KBI_MAX(0, KBI_MIN(t->how.width - 80, (int)KBI_LABEL_MORE));
    t->label = KBI_MAX(KBI_MIN(t->label, t->how.width - kbi_table_beside(t, wanted)), (int)KBI_LABEL_MIN);
}

// --- lines ---

// The names of the columns, beside the operation's own name when it has more than one case.
static void kbi_table_heading(kbi_table* t, const kb_result* r) {
    kbi_text name = { NULL, 0, 0 };
    if (!t->alone) kbi_clean(&name, r->operation ? r->operation : "");
    if (!t->alone && r->direction) kbi_puts(&name, " "), kbi_clean(&name, r->direction);
    kbi_puts(&t->text, "\n");
    kbi_table_colour(t, "\033[1m");
    int used = kbi_table_pad(t, -t->label, name.s ? name.s : "");
    kbi_table_colour(t, "\033[0m");
    if (used > t->label) kbi_putf(&t->text, "\n%*s", t->label, "");
    for (int i = 0; i < t->n_cells; i++) kbi_putf(&t->text, " %*s", t->cells[i].width, t->cells[i].title);
    kbi_puts(&t->text, "\n");
    kbi_text_free(&name);
}

// A new heading for each operation (those with a single case share one), and where other columns are needed.
static void kbi_table_follow(kbi_table* t, const kb_result* const* rows, int n) {
    const kb_result* r = rows[0];
    bool alone = kbi_table_single(r), numbers = false, reads = true;
    bool same = t->n_cells && (alone ? t->alone
                                     : !t->alone && kbi_is(t->heading, r->operation) &&
                                           kbi_is(t->direction, r->direction ? r->direction : ""));
    unsigned wanted = kbi_table_wants(t, rows, n);
    for (int i = 0; i < n; i++) numbers |= rows[i]->status == KB_OK;
    for (int i = 0; i < t->n_cells; i++) reads &= kbi_cell_reads(&t->cells[i], rows, n);
    t->alone = alone;
    snprintf(t->heading, sizeof t->heading, "%s", r->operation ? r->operation : "");
    snprintf(t->direction, sizeof t->direction, "%s", r->direction ? r->direction : "");
    if (same && (!numbers || (reads && (t->n_chosen || !(wanted & ~t->wanted))))) return;
    kbi_table_columns(t, same ? wanted | t->wanted : wanted, rows, n);
    kbi_table_heading(t, r);
    t->axes[0] = 0;
}

// The flags that stand beside a number: on its line where all have room there, else below it.
static void kbi_table_flags(kbi_table* t, const kb_result* r, int used) {
    int all = used;
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (r->flags >> f & 1) all += 1 + (int)strlen(kb_flag_name((kb_flag)f));
    if (all > used && all > t->how.width) used = t->how.width; // the first begins a line
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        const char* name = kb_flag_name((kb_flag)f);
        if (!(r->flags >> f & 1)) continue;
        if (used + 1 + (int)strlen(name) > t->how.width) kbi_putf(&t->text, "\n%*s", t->label, ""), used = t->label;
        kbi_putf(&t->text, " %s", name);
        used += 1 + (int)strlen(name);
    }
    kbi_puts(&t->text, "\n");
    for (int f = 0; t->how.verbose && f < KB_FLAG_COUNT; f++) {
        if (!(r->flags >> f & 1)) continue;
        char line[256];
        snprintf(line, sizeof line, "%s: %s", kb_flag_name((kb_flag)f), kbi_flag_advice((kb_flag)f, r->gpu != NULL));
        kbi_table_wrap(t, 4, line);
    }
}

// won: nobody knows (0), this one, perhaps (1) or surely (2).
static void kbi_table_numbers(kbi_table* t, const kb_result* r, int won) {
    char low[40], high[40];
    int used = t->label;
    bool compared = false;
    for (int i = 0; i < t->n_cells; i++) {
        kbi_text s = { NULL, 0, 0 };
        kbi_cell_text(&s, &t->cells[i], r);
        kbi_puts(&t->text, " ");
        used += 1 + kbi_table_pad(t, t->cells[i].width, s.s);
        compared |= t->cells[i].what.column == KBI_COLUMN_SPEEDUP;
        kbi_text_free(&s);
    }
    t->equivalent |= compared && r->verdict == KB_EQUIVALENT;
    t->unresolved |= (compared && r->verdict == KB_UNRESOLVED) || won == 1;
    if (compared && !t->n_chosen && t->how.width >= KBI_WIDE && kbi_finite(r->speedup_low)) {
        size_t before = t->text.n;
        kbi_putf(&t->text, " [%s, %s]", kbi_digits(r->speedup_low, 3, low), kbi_digits(r->speedup_high, 3, high));
        used += (int)(t->text.n - before);
    }
    if (won) {
        kbi_table_colour(t, "\033[32m");
        kbi_putf(&t->text, " %s", won > 1 ? "fastest" : "fastest?");
        kbi_table_colour(t, "\033[0m");
        used += won > 1 ? 8 : 9;
    }
    kbi_table_flags(t, r, used);
    if (t->how.verbose && r->message) kbi_table_wrap(t, 4, r->message);
}

// A word instead of a number, why, and what to do about it.
static void kbi_table_word(kbi_table* t, const kb_result* r) {
    const char *word = "FAILED", *advice = NULL;
    for (int f = KB_FLAG_COUNT - 1; f >= 0; f--) {
        if (!(r->flags >> f & 1) || !kb_flag_is_error((kb_flag)f)) continue;
        word = kb_flag_name((kb_flag)f);
        advice = kbi_flag_advice((kb_flag)f, r->gpu != NULL);
    }
    if (r->status == KB_SKIPPED) word = "skipped";
    kbi_puts(&t->text, " ");
    kbi_table_colour(t, r->status == KB_SKIPPED ? "" : "\033[31m");
    kbi_puts(&t->text, word);
    kbi_table_colour(t, "\033[0m");
    kbi_puts(&t->text, "\n");
    if (r->message) kbi_table_wrap(t, 4, r->message);
    if (advice && r->status == KB_FAILED) kbi_table_wrap(t, 4, advice);
}

// The axes of a record, "rows=16 cols=4096"; or "16x4096" with their names in axes, false if not all are numbers.
static bool kbi_table_params(kbi_text* s, kbi_text* axes, const kb_result* r) {
    bool numbers = true;
    for (int64_t i = 0; i < r->params.n; i++) {
        const kb_param* p = &r->params.of[i];
        bool elsewhere = kbi_is(p->name, "dtype") || (kbi_is(p->name, "dir") && p->type == KB_AXIS_STRINGS);
        if (elsewhere) continue;
        numbers &= p->type != KB_AXIS_STRINGS;
        if (s->n) kbi_puts(s, axes ? "x" : " ");
        if (axes && axes->n) kbi_puts(axes, " x ");
        kbi_clean(axes ? axes : s, p->name);
        if (!axes) kbi_puts(s, "=");
        kbi_param_text(s, p);
    }
    return s->n && numbers;
}

static void kbi_table_names(const kbi_table* t, kbi_text* label, const kb_result* r, bool contest,
                            const char* params) {
    if (t->alone) kbi_clean(label, r->operation ? r->operation : ""), kbi_puts(label, " ");
    if (t->alone && r->direction) kbi_clean(label, r->direction), kbi_puts(label, " ");
    if (contest || !kbi_is(r->implementation, "default") || (!t->alone && !*params))
        kbi_clean(label, r->implementation ? r->implementation : ""), kbi_puts(label, " ");
    if (!contest && r->dtype) kbi_clean(label, r->dtype), kbi_puts(label, " ");
    if (!contest) kbi_puts(label, params);
    while (label->n && label->s[label->n - 1] == ' ') label->s[--label->n] = 0;
}

// What a row begins with: the implementation, and the shape when no line above says it; where that is long, the shape
// without the names of its axes, which then stand once under the heading.
static void kbi_table_label(kbi_table* t, const kb_result* r, bool contest) {
    kbi_text label = { NULL, 0, 0 }, params = { NULL, 0, 0 }, axes = { NULL, 0, 0 }, by = { NULL, 0, 0 };
    int indent = t->alone ? 0 : 1, room = t->label - indent;
    kbi_table_params(&params, NULL, r);
    kbi_table_names(t, &label, r, contest, params.s ? params.s : "");
    params.n = 0;
    if (kbi_width(label.s, label.n) > room && !contest && !t->alone && kbi_table_params(&params, &axes, r)) {
        if (!kbi_is(t->axes, axes.s)) kbi_puts(&by, "by "), kbi_puts(&by, axes.s), kbi_table_wrap(t, 1, by.s);
        snprintf(t->axes, sizeof t->axes, "%s", axes.s);
        label.n = 0;
        kbi_table_names(t, &label, r, contest, params.s);
    }
    if (kbi_width(label.s, label.n) > room) {
        kbi_table_wrap(t, indent, label.s);
        kbi_putf(&t->text, "%*s", t->label, "");
    } else {
        kbi_putf(&t->text, "%*s", indent, "");
        kbi_table_pad(t, -room, label.s ? label.s : "");
    }
    kbi_text_free(&label);
    kbi_text_free(&params);
    kbi_text_free(&axes);
    kbi_text_free(&by);
}

// --- order ---

// Less than 0: a stands above b by --sort; what has no value stands last either way.
static int kbi_table_compare(const kbi_table* t, const kb_result* a, const kb_result* b) {
    for (int i = 0; i < t->n_order; i++) {
        const kbi_shown* by = &t->order[i];
        const char *x = kbi_field_words(a, by->key), *y = kbi_field_words(b, by->key);
        double p = kbi_field_number(a, by->key), q = kbi_field_number(b, by->key);
        bool has = x || kbi_finite(p), other = y || kbi_finite(q);
        int order = !has || !other ? 0 : x && y ? strcmp(x, y) : (p > q) - (p < q);
        if (has != other) return has ? -1 : 1;
        if (order) return by->down ? -order : order;
    }
    return 0;
}

static void kbi_table_sort(const kbi_table* t, const kb_result** rows, int n) { // by insertion: equals stay in order
    for (int i = 1; i < n && t->n_order; i++) {
        const kb_result* row = rows[i];
        int at = i;
        for (; at > 0 && kbi_table_compare(t, row, rows[at - 1]) < 0; at--) rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

// Whether two stand under one heading, so that --sort orders them together.
static bool kbi_table_together(const kb_result* a, const kb_result* b) {
    bool single = kbi_table_single(a);
    return kbi_is(a->run_id, b->run_id) && a->device == b->device && single == kbi_table_single(b) &&
           (single || kbi_same_operation(a, b));
}

// --- records ---

// The machine, above everything else and wherever it changes. Its roof is no part of what it is: who measures it
// again, after a crash, finds it a little different.
static void kbi_table_machine(kbi_table* t, const kb_result* r) {
    char id[32], roof[40];
    kbi_text line = { NULL, 0, 0 };
    snprintf(id, sizeof id, "%lld", (long long)r->device);
    const char* parts[] = {
        r->kbench_version, r->backend, id, r->gpu, r->driver, r->cuda, r->tool, r->no_gpu, r->cpu
    };
    uint64_t machine = 14695981039346656037u;
    for (int i = 0; i < KBI_COUNT(parts); i++) machine = kbi_hash(kbi_hash(machine, "|"), parts[i] ? parts[i] : "");
    if (t->bare || machine == t->machine) return;
    if (t->machine) kbi_puts(&t->text, "\n");
    t->machine = machine;
    t->n_cells = 0;
    kbi_putf(&line, "kbench %s  ", r->kbench_version ? r->kbench_version : "");
    if (r->gpu) {
        const char* capability = r->compute_capability ? r->compute_capability : "";
        int major = (int)strcspn(capability, ".");
        kbi_putf(&line, "%s  sm_%.*s%s  driver %s  CUDA %s  ", r->gpu, major, capability,
                 capability[major] ? capability + major + 1 : "", r->driver ? r->driver : "-",
                 r->cuda ? r->cuda : "-");
        if (r->tool)
            kbi_putf(&line, "under %s: not timed", r->tool);
        else
            kbi_putf(&line, "copy roof %s GB/s", kbi_show(r->copy_roof_gbps, 4, roof));
    } else {
        kbi_putf(&line, "CPU times (%s)  %s", r->no_gpu ? r->no_gpu : "no GPU",
                 r->cpu ? r->cpu : "processor unknown");
    }
    kbi_table_wrap(t, 0, line.s);
    kbi_text_free(&line);
}

// Records that stand together: a contest, whose cases differ in nothing but the implementation, or cases without one.
static void kbi_table_block(kbi_table* t, const kb_result* const* rows, int n, bool contest) {
    int best = -1;
    kbi_table_machine(t, rows[0]);
    kbi_table_follow(t, rows, n);
    if (contest) {
        kbi_text shape = { NULL, 0, 0 }, params = { NULL, 0, 0 };
        kbi_table_params(&params, NULL, rows[0]);
        if (rows[0]->dtype) kbi_putf(&shape, "%s ", rows[0]->dtype);
        if (params.s) kbi_puts(&shape, params.s);
        if (shape.s) kbi_table_wrap(t, 1, shape.s);
        kbi_text_free(&shape);
        kbi_text_free(&params);
    }
    for (int i = 0; i < n; i++)
        if (contest && rows[i]->status == KB_OK && kbi_is(rows[i]->winner, rows[i]->implementation) &&
            (best < 0 || rows[i]->time_ms < rows[best]->time_ms))
            best = i;
    for (int i = 0; i < n; i++) {
        kbi_table_label(t, rows[i], contest);
        if (rows[i]->status == KB_OK)
            kbi_table_numbers(t, rows[i], i != best ? 0 : rows[i]->winner_certain == 1 ? 2 : 1);
        else
            kbi_table_word(t, rows[i]);
        t->ok += rows[i]->status == KB_OK;
        t->failed += rows[i]->status == KB_FAILED;
        t->skipped += rows[i]->status == KB_SKIPPED;
    }
}

static void kbi_table_add(kbi_table* t, const kb_result* records, int64_t n) {
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && kbi_same_group(&records[first], &records[end]);) end++;
        bool contest = end - first > 1;
        while (t->n_order && !contest && end < n && kbi_table_together(&records[first], &records[end]) &&
               !(end + 1 < n && kbi_same_group(&records[end], &records[end + 1])))
            end++;
        const kb_result** rows = (const kb_result**)kbi_grow(NULL, sizeof(kb_result*) * (size_t)(end - first));
        for (int64_t i = first; i < end; i++) rows[i - first] = &records[i];
        kbi_table_sort(t, rows, (int)(end - first));
        kbi_table_block(t, rows, (int)(end - first), contest);
        KBENCH_FREE(rows);
    }
    kbi_table_flush(t);
}

// What the signs mean, and how many there were of what.
static void kbi_table_end(kbi_table* t) {
    int64_t n = t->ok + t->failed + t->skipped;
    if (t->equivalent || t->unresolved)
        kbi_putf(&t->text, "\n%s%s\n", t->equivalent ? "=: within 1 % of the baseline. " : "",
                 t->unresolved ? "~, fastest?: not certain at 95 %." : "");
    kbi_putf(&t->text, "\n%lld case%s: %lld ok", (long long)n, n == 1 ? "" : "s", (long long)t->ok);
    if (t->failed) kbi_putf(&t->text, ", %lld failed", (long long)t->failed);
    if (t->skipped) kbi_putf(&t->text, ", %lld skipped", (long long)t->skipped);
    kbi_puts(&t->text, "\n");
    kbi_table_flush(t);
}

void kb_print(const kb_result* results, int64_t n) {
    kbi_table t;
    kbi_how how;
    kbi_how_default(&how, stdout);
    kbi_table_open(&t, &how);
    t.bare = true;
    kbi_table_add(&t, results, n);
}

/*---------------------------------------------------------------------------------------------------------------
  >>progress  render: the progress line on stderr.
              Public: none      Used by: >>supervisor, >>program
---------------------------------------------------------------------------------------------------------------*/

// The time left, in seconds. What the options allow a group of cases is known before anything is measured; what the
// groups that are over took of theirs says what the others will take of theirs.
typedef struct kbi_pace {
    double all, over, now; // allowed to every group, to those that are over, to the one that is being measured
    double took;           // by those that are over
    double began;          // the one that is being measured
    double said, said_at;  // the time left that was shown last, negative: none, and when
} kbi_pace;

// Never more than was said before less the time since then, unless it is far more: groups differ, and a time left that
// goes up and down is of no use.
static double kbi_time_left(const kbi_pace* p, double at) {
    double rest = KBI_MAX(p->all - p->over - p->now, 0.0);
    double part =
        p->all > 0 ? (p->took + rest + p->now) / p->all : 1; // of what is allowed, if the rest takes all of it
    double left = rest * part + KBI_MAX(p->now * part - (at - p->began), 0.0);
    double promised = KBI_MAX(p->said - (at - p->said_at), 0.0);
    return p->said >= 0 && left > promised && left <= 2 * promised + 5 ? promised : left;
}

typedef struct kbi_progress {
    bool on, shown;
    int64_t began, last;
    kbi_pace pace; // in seconds since began
} kbi_progress;

static void kbi_progress_open(kbi_progress* p, bool wanted) {
    p->on = wanted && kbi_terminal(stderr); // a dumb one knows no way back in its line
    p->shown = false;
    p->last = 0;
}

// A device, whose groups may take so long together.
static void kbi_progress_begin(kbi_progress* p, double allowed) {
    memset(&p->pace, 0, sizeof p->pace);
    p->pace.all = allowed;
    p->pace.said = -1;
    p->began = kbi_now();
}

static void kbi_progress_group(kbi_progress* p, double allowed) { // the one before is over
    double now = (double)(kbi_now() - p->began) * 1e-9;
    if (p->pace.now > 0) p->pace.took += now - p->pace.began;
    p->pace.over += p->pace.now;
    p->pace.now = allowed;
    p->pace.began = now;
}

static void kbi_progress_clear(kbi_progress* p) {
    if (p->shown) fputs("\r\033[K", stderr), fflush(stderr);
    p->shown = false;
}

static void kbi_progress_show(kbi_progress* p, int done, int all, const char* name) {
    char left[48] = "", time[32];
    int64_t now = kbi_now();
    if (!p->on || now - p->last < 50000000) return;
    p->last = now;
    double seconds = (double)(now - p->began) * 1e-9;
    if (seconds > 1) {
        p->pace.said = kbi_time_left(&p->pace, seconds);
        p->pace.said_at = seconds;
        if (p->pace.said >= 90)
            snprintf(time, sizeof time, "%.0f min", p->pace.said / 60);
        else
            snprintf(time, sizeof time, "%.0f s", p->pace.said);
        snprintf(left, sizeof left, "  %s left", time);
    }
    int room = KBI_MAX(10, kbi_terminal_width(stderr) - 30);
    fprintf(stderr, "\r[%d/%d]%s  %.*s\033[K", done + 1, all, left, room, name);
    fflush(stderr);
    p->shown = true;
}

/*---------------------------------------------------------------------------------------------------------------
  >>worker    program: the process that runs cases, told by pipe which, and answering.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

typedef enum kbi_message_type { KBI_HELLO = 1, KBI_ENTER, KBI_BEAT, KBI_RESULT, KBI_DONE } kbi_message_type;

typedef struct kbi_message { // then size bytes
    uint32_t magic;
    int32_t type, index; // kbi_message_type; the case in the plan
    uint32_t size;
} kbi_message;

enum { KBI_MAGIC = 0x6b626e63 };

static void kbi_send(int file, int type, int index, const void* a, size_t a_size, const void* b, size_t b_size) {
    kbi_message m = { KBI_MAGIC, type, index, (uint32_t)(a_size + b_size) };
    if (!kbi_write_all(file, (const char*)&m, sizeof m) || !kbi_write_all(file, (const char*)a, a_size) ||
        !kbi_write_all(file, (const char*)b, b_size))
        _exit(1); // nobody listens any more
}

static void kbi_send_enter(void* to, int index) { kbi_send(*(int*)to, KBI_ENTER, index, NULL, 0, NULL, 0); }
static void kbi_send_beat(void* to) { kbi_send(*(int*)to, KBI_BEAT, 0, NULL, 0, NULL, 0); }
static void kbi_send_result(void* to, int index, const kbi_measured* m, const double* samples) {
    fflush(stdout);
    kbi_send(*(int*)to, KBI_RESULT, index, m, sizeof *m, samples, sizeof(double) * kbi_values(m));
}

typedef struct kbi_job { // then n bytes: which of the cases
    int32_t first, n, device, has_truth;
    double truth[2]; // of the calibration, when it was measured
} kbi_job;

// The child process that asks CUPTI: writes the durations, or nothing.
static int kbi_truth_main(const kbi_options* o) {
#if KBI_CUDA
    kbi_machine machine;
    double truth[KBI_EVENT_MODES];
    if (kbi_gpu_open(&machine, o->worker_in) && kbi_measure_truth(truth))
        kbi_write_all(o->worker_out, (const char*)truth, sizeof truth);
#endif
    (void)o;
    _exit(0);
}

// The plan of what is registered in this process.
static bool kbi_plan_here(kbi_plan* plan, const kbi_options* o) {
    kbi_registered all = kbi_registry();
    bool good = kbi_plan_make(plan, o, &all);
    KBENCH_FREE(all.of);
    return good;
}

static int kbi_worker_main(const kbi_options* o) {
    kbi_plan plan;
    kbi_machine machine;
    kbi_recipe recipe;
    kbi_job job;
    const kbi_backend* b = NULL;
    int in = fcntl(o->worker_in, F_DUPFD_CLOEXEC, 100), out = fcntl(o->worker_out, F_DUPFD_CLOEXEC, 100);
    close(o->worker_in); // high numbers: a body that closes what it finds closes them last
    close(o->worker_out);
    signal(SIGINT, SIG_IGN); // the supervisor decides
    kbi_watch_stops();
    memset(&plan, 0, sizeof plan);
    if (in < 0 || out < 0 || (!o->on[KBI_OPTION_env] && !kbi_plan_here(&plan, o))) return KBI_EXIT_USAGE;
    kbi_sink sink = { kbi_send_enter, kbi_send_beat, kbi_send_result, &out };
    bool good = true;
    while (good && kbi_read_all(in, &job, sizeof job)) {
        char* wanted = (char*)kbi_grow(NULL, (size_t)job.n + 1);
        if (!kbi_read_all(in, wanted, (size_t)job.n)) return 1;
        if (!b) {
            if (job.has_truth) kbi_truth_set(job.truth);
            kbi_recipe_of(&recipe, o);
            recipe.device = job.device;
            b = kbi_backend_open(&recipe, &machine);
            kbi_send(out, KBI_HELLO, 0, &machine, sizeof machine, NULL, 0);
        }
        good = kbi_run_cases(plan.cases, &recipe, b, &machine, job.first, job.n, wanted, &sink);
        kbi_send(out, KBI_HELLO, 0, &machine, sizeof machine, NULL, 0); // roofs may have been measured meanwhile
        kbi_send(out, KBI_DONE, good, NULL, 0, NULL, 0);
        KBENCH_FREE(wanted);
    }
    _exit(0); // a lost device can hang in the runtime's own clean-up
}

/*---------------------------------------------------------------------------------------------------------------
  >>supervisor program: the process that owns the terminal, the files and the watchdog. It never touches the GPU.
              Public: none      Used by: >>program, >>selftest
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_worker { // as the supervisor sees it
    pid_t process;          // 0: none
    int to, from, device;
} kbi_worker;

typedef struct kbi_group { // the group being measured
    int first, n;
    kbi_measured* m;
    double** samples;
    char* wanted;   // still to be measured
    int64_t* spent; // ns in each case
    int current;    // the case the worker is in, -1 between cases
    int64_t since;
} kbi_group;

typedef struct kbi_supervisor {
    const kbi_options* o;
    const kbi_plan* plan;
    kbi_recipe recipe; // what the options ask of the measuring
    kbi_machine machine;
    bool known;                 // the machine
    const kbi_backend* backend; // --no-isolate
    kbi_worker worker;
    kbi_group group;
    kbi_store store;
    kbi_session session;
    kbi_table table;
    kb_result* held; // with --sort: those of the operation that is being measured, until all are there
    int n_held;
    kbi_progress progress;
    void (*collect)(void* to, const kb_result* r); // NULL: results are only stored and shown
    void* collect_to;
    bool has_truth; // of the calibration, measured here
    double truth[2];
    int done, ok, failed, skipped, absent; // cases; absent: this machine cannot run them
    bool isolated;
} kbi_supervisor;

// What the process keeps that owns the terminal and the files.
static struct kbi_desk {
    volatile sig_atomic_t interrupted, one_process;
    kbi_supervisor run; // the one that is under way
} kbi_desk;

// In one process the second one ends what hangs. Otherwise that is the worker, which the first one ends already, and a
// second one must not come between finished results and their file.
static void kbi_interrupt(int number) {
    signal(number, kbi_desk.one_process || kbi_desk.interrupted ? SIG_DFL : kbi_interrupt);
    kbi_desk.interrupted = number;
}

static void kbi_worker_end(kbi_worker* w, int* status) {
    if (!w->process) return;
    close(w->to);
    close(w->from);
    for (int i = 0; i < 200; i++) { // two seconds to leave by itself, then it is made to
        if (waitpid(w->process, status, WNOHANG) != 0) break;
        if (i == 100) kill(w->process, SIGKILL);
        kbi_readable(-1, 20);
    }
    w->process = 0;
}

static void kbi_worker_kill(kbi_worker* w) {
    int status = 0;
    if (!w->process) return;
    kill(w->process, SIGKILL);
    kbi_worker_end(w, &status);
}

// Starts this very program again, with the same command line behind an option of the harness's own: in the child the
// function does not return.
static pid_t kbi_start_again(const kbi_options* o, const char* option, int close_a, int close_b) {
    fflush(NULL);
    pid_t parent = getpid(), process = fork();
    if (process != 0) {
        if (process < 0) kbi_error("no process: %s", strerror(errno));
        return process;
    }
    char** argv = (char**)kbi_grow(NULL, sizeof(char*) * (size_t)(o->argc + 2));
    if (close_a >= 0) close(close_a);
    if (close_b >= 0) close(close_b);
    dup2(2, 1); // what bodies print is not results
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    argv[0] = o->argv[0];
    argv[1] = kbi_keep_text(option);
    memcpy(argv + 2, o->argv + 1, sizeof(char*) * (size_t)o->argc); // with the NULL at its end
    execv("/proc/self/exe", argv);
    kbi_error("cannot start the worker: %s", strerror(errno));
    _exit(1);
}

static bool kbi_worker_start(kbi_supervisor* s, int device) {
    int to[2], from[2];
    char option[64];
    if (pipe(to) != 0 || pipe(from) != 0) return kbi_error("no pipe: %s", strerror(errno)), false;
    snprintf(option, sizeof option, "--kbi-worker=%d,%d", to[0], from[1]);
    pid_t process = kbi_start_again(s->o, option, to[1], from[0]);
    close(to[0]);
    close(from[1]);
    if (process < 0) return close(to[1]), close(from[0]), false;
    fcntl(to[1], F_SETFD, FD_CLOEXEC);
    fcntl(from[0], F_SETFD, FD_CLOEXEC);
    s->worker.process = process;
    s->worker.to = to[1];
    s->worker.from = from[0];
    s->worker.device = device;
    return true;
}

// Asks a child process for CUPTI's durations of the calibration's launches; ten seconds at most.
static void kbi_ask_truth(kbi_supervisor* s, int device) {
    int from[2];
    char option[64];
    size_t have = 0;
    if (s->has_truth || pipe(from) != 0) return;
    snprintf(option, sizeof option, "--kbi-truth=%d,%d", device, from[1]);
    pid_t process = kbi_start_again(s->o, option, from[0], -1);
    close(from[1]);
    for (int i = 0; process > 0 && i < 100 && have < sizeof s->truth; i++) {
        if (!kbi_readable(from[0], 100)) continue;
        ssize_t n = kbi_read_some(from[0], (char*)s->truth + have, sizeof s->truth - have);
        if (n <= 0) break;
        have += (size_t)n;
    }
    close(from[0]);
    if (process > 0) kill(process, SIGKILL), waitpid(process, NULL, 0);
    s->has_truth = have == sizeof s->truth;
}

// --- what comes back ---

static void kbi_receive_enter(void* to, int index) {
    kbi_supervisor* s = (kbi_supervisor*)to;
    kbi_group* g = &s->group;
    int64_t now = kbi_now();
    if (g->current >= 0) g->spent[g->current] += now - g->since;
    g->current = index - g->first;
    g->since = now;
    kbi_progress_show(&s->progress, s->done, s->plan->n, s->plan->cases[index].name);
}

static void kbi_receive_beat(void* to) {
    kbi_supervisor* s = (kbi_supervisor*)to;
    if (s->group.current < 0) return;
    kbi_progress_show(&s->progress, s->done, s->plan->n, s->plan->cases[s->group.first + s->group.current].name);
}

static void kbi_receive_result(void* to, int index, const kbi_measured* m, const double* samples) {
    kbi_supervisor* s = (kbi_supervisor*)to;
    int i = index - s->group.first;
    s->group.m[i] = *m;
    s->group.samples[i] = (double*)kbi_grow(NULL, sizeof(double) * (kbi_values(m) + 1));
    if (kbi_values(m)) memcpy(s->group.samples[i], samples, sizeof(double) * kbi_values(m));
    s->group.wanted[i] = 0;
    s->group.current = -1;
    s->group.since = kbi_now();
    s->done++;
}

// A case that ended its worker, or had to be ended with it.
KBI_PRINTF(4, 5) static void kbi_case_lost(kbi_supervisor* s, int i, kb_flag flag, const char* format, ...) {
    kbi_measured m;
    va_list list;
    kbi_measured_clear(&m);
    m.status = KB_FAILED;
    m.flags = (uint64_t)1 << flag;
    va_start(list, format);
    vsnprintf(m.message, sizeof m.message, format, list);
    va_end(list);
    m.wall_ns = (double)(kbi_now() - s->group.since);
    kbi_receive_result(s, s->group.first + i, &m, NULL);
}

static const char* kbi_signal_name(int signal) {
    static const struct {
        int number;
        const char* name;
    } names[] = { { SIGSEGV, "segmentation fault" },
                  { SIGABRT, "abort" },
                  { SIGBUS, "bus error" },
                  { SIGILL, "illegal instruction" },
                  { SIGFPE, "arithmetic exception" },
                  { SIGKILL, "killed, perhaps for want of memory" },
                  { SIGTERM, "terminated" } };
    for (int i = 0; i < KBI_COUNT(names); i++)
        if (names[i].number == signal) return names[i].name;
    return "signal";
}

// The worker is gone: whose fault that was, and how it went.
static void kbi_worker_lost(kbi_supervisor* s) {
    int status = 0, i = s->group.current;
    kbi_worker_end(&s->worker, &status);
    for (int j = 0; i < 0 && j < s->group.n; j++)
        if (s->group.wanted[j]) i = j; // it died before it entered one
    if (i < 0) return;
    if (WIFSIGNALED(status))
        kbi_case_lost(s, i, KB_FLAG_CRASHED, "signal %d (%s)", WTERMSIG(status), kbi_signal_name(WTERMSIG(status)));
    else
        kbi_case_lost(s, i, KB_FLAG_CRASHED, "the benchmark ended the process with exit code %d",
                      WEXITSTATUS(status));
}

typedef enum kbi_pump { KBI_PUMP_ON, KBI_PUMP_DONE, KBI_PUMP_LOST } kbi_pump;

static kbi_pump kbi_receive_message(kbi_supervisor* s) {
    kbi_message m;
    char* body = NULL;
    kbi_pump next = KBI_PUMP_ON;
    if (!kbi_read_all(s->worker.from, &m, sizeof m) || m.magic != KBI_MAGIC) return KBI_PUMP_LOST;
    body = (char*)kbi_grow(NULL, (size_t)m.size + 1);
    if (!kbi_read_all(s->worker.from, body, m.size))
        next = KBI_PUMP_LOST;
    else if (m.type == KBI_HELLO)
        memcpy(&s->machine, body, sizeof s->machine), s->known = true;
    else if (m.type == KBI_ENTER)
        kbi_receive_enter(s, m.index);
    else if (m.type == KBI_BEAT)
        kbi_receive_beat(s);
    else if (m.type == KBI_DONE) {
        next = KBI_PUMP_DONE;
        if (!m.index) kbi_worker_kill(&s->worker); // its device is lost
    } else if (m.type == KBI_RESULT) {
        kbi_measured* measured = (kbi_measured*)body;
        kbi_receive_result(s, m.index, measured, (const double*)(body + sizeof *measured));
    }
    KBENCH_FREE(body);
    return next;
}

// Until the worker has done its job, died, or taken too long.
static void kbi_listen(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    for (;;) {
        bool ready = kbi_readable(s->worker.from, 100);
        if (kbi_desk.interrupted) return;
        if (ready) {
            kbi_pump next = kbi_receive_message(s);
            if (next == KBI_PUMP_LOST) kbi_worker_lost(s);
            if (next != KBI_PUMP_ON) return;
        }
        // until the first case is entered the device is being started, which is nobody's time but has an end, too
        double limit = g->current < 0 ? KBI_MAX(120.0, s->o->timeout) : s->o->timeout;
        int64_t spent = kbi_now() - g->since + (g->current < 0 ? 0 : g->spent[g->current]);
        if ((double)spent * 1e-9 <= limit) continue;
        char text[40];
        kbi_worker_kill(&s->worker);
        for (int i = 0; g->current < 0 && i < g->n; i++)
            if (g->wanted[i]) g->current = i;
        if (g->current < 0) return; // all have their result, and it hung then
        kbi_case_lost(s, g->current, KB_FLAG_TIMEOUT, "longer than %s", kbi_show_time(limit * 1e3, text));
        return;
    }
}

// --- a group: measured, judged, recorded, shown ---

static bool kbi_runs_here(const kbi_supervisor* s, const kbi_case* c) {
    const kb_entry* e = c->entry;
    if (e->needs == KB_NEEDS_GPU && !s->machine.gpu_present) return false;
    if (e->needs == KB_NEEDS_CPU && s->machine.gpu_present) return false;
    return !s->machine.gpu_present || e->min_sm <= s->machine.sm;
}

static bool kbi_send_job(kbi_supervisor* s, int device, const char* wanted) {
    kbi_group* g = &s->group;
    kbi_job job;
    memset(&job, 0, sizeof job);
    job.first = g->first;
    job.n = g->n;
    job.device = device;
    job.has_truth = s->has_truth;
    memcpy(job.truth, s->truth, sizeof job.truth);
    g->current = -1;
    g->since = kbi_now();
    for (int i = 0; i < g->n; i++) g->spent[i] = 0; // what a worker that is no more spent is no fault of theirs
    return kbi_write_all(s->worker.to, (const char*)&job, sizeof job) &&
           kbi_write_all(s->worker.to, wanted, (size_t)g->n);
}

// Learns what machine this is: an empty job.
static bool kbi_meet_once(kbi_supervisor* s, int device) {
    s->known = false;
    if (!s->isolated) {
        if (s->has_truth) kbi_truth_set(s->truth);
        s->recipe.device = device;
        s->backend = kbi_backend_open(&s->recipe, &s->machine);
        s->known = true;
        return true;
    }
    char* nothing = (char*)kbi_grow(NULL, (size_t)s->group.n + 1);
    memset(nothing, 0, (size_t)s->group.n + 1);
    if (!kbi_worker_start(s, device)) return false;
    double limit = KBI_MAX(120.0, s->o->timeout);
    kbi_pump next = kbi_send_job(s, device, nothing) ? KBI_PUMP_ON : KBI_PUMP_LOST;
    while (next == KBI_PUMP_ON && !kbi_desk.interrupted && kbi_seconds_since(s->group.since) <= limit)
        if (kbi_readable(s->worker.from, 100)) next = kbi_receive_message(s);
    KBENCH_FREE(nothing);
    if (next == KBI_PUMP_DONE) return s->known;
    kbi_worker_kill(&s->worker);
    if (next == KBI_PUMP_LOST && !kbi_desk.interrupted)
        kbi_error("the worker ended before it began; --no-isolate shows why");
    else if (!kbi_desk.interrupted)
        kbi_error("the device did not start in %.0f s", limit);
    return false;
}

// The calibration's truth is stated for one kind of GPU; on others, and where it matters most, it is measured.
static bool kbi_meet(kbi_supervisor* s, int device) {
    const kbi_options* o = s->o;
    bool gpu = KBI_CUDA && s->recipe.target == KBI_ON_GPU;
    if (gpu && (o->on[KBI_OPTION_env] || o->on[KBI_OPTION_thorough])) kbi_ask_truth(s, device);
    if (!kbi_meet_once(s, device)) return false;
    if (!s->machine.gpu_present || s->machine.stated || s->has_truth || !s->isolated) return true;
    kbi_ask_truth(s, device);
    if (!s->has_truth) return true;
    kbi_worker_kill(&s->worker);
    return kbi_meet_once(s, device);
}

static void kbi_measure_group(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    if (!s->isolated) {
        kbi_sink sink = { kbi_receive_enter, kbi_receive_beat, kbi_receive_result, s };
        char* wanted = (char*)kbi_grow(NULL, (size_t)g->n + 1);
        memcpy(wanted, g->wanted, (size_t)g->n);
        kbi_run_cases(s->plan->cases, &s->recipe, s->backend, &s->machine, g->first, g->n, wanted, &sink);
        KBENCH_FREE(wanted);
        for (int i = 0; i < g->n; i++)
            if (g->wanted[i]) kbi_case_lost(s, i, KB_FLAG_CUDA_ERROR, "another case lost the device before this one");
        return;
    }
    while (memchr(g->wanted, 1, (size_t)g->n) && !kbi_desk.interrupted) {
        int device = s->worker.device;
        if (!s->worker.process && !kbi_worker_start(s, device)) {
            for (int i = 0; i < g->n; i++)
                if (g->wanted[i]) kbi_case_lost(s, i, KB_FLAG_CRASHED, "not run: its process could not be started");
            return;
        }
        if (kbi_send_job(s, device, g->wanted))
            kbi_listen(s);
        else
            kbi_worker_lost(s);
    }
}

static void kbi_count(kbi_supervisor* s, const kb_result* r) {
    if (r->status == KB_OK)
        s->ok++;
    else if (r->status == KB_FAILED)
        s->failed++;
    else
        s->skipped++;
}

// How many cases of the plan have the operation and direction of this one.
static int64_t kbi_planned(const kbi_plan* plan, const kbi_case* like) {
    int64_t n = 0;
    for (const kbi_case* c = plan->cases; c < plan->cases + plan->n; c++)
        n += kbi_is(c->entry->operation, like->entry->operation) &&
             (c->direction ? kbi_is(c->direction, like->direction) : !like->direction);
    return n;
}

// Prints what is held back, and gives it back.
static void kbi_show_held(kbi_supervisor* s) {
    if (!s->collect) kbi_table_add(&s->table, s->held, s->n_held);
    for (int i = 0; i < s->n_held; i++) kb_result_free(&s->held[i]);
    KBENCH_FREE(s->held);
    s->held = NULL;
    s->n_held = 0;
}

// Takes a group's results: prints them, with --sort when no other can come that is to stand between them.
static void kbi_show_results(kbi_supervisor* s, const kb_result* results, int n) {
    if (s->n_held && n && !kbi_table_together(&s->held[0], &results[0])) kbi_show_held(s);
    if (!n) return;
    s->held = (kb_result*)kbi_grow(s->held, sizeof(kb_result) * (size_t)(s->n_held + n));
    memcpy(s->held + s->n_held, results, sizeof(kb_result) * (size_t)n);
    s->n_held += n;
    if (!s->table.how.sort || s->collect) kbi_show_held(s);
}

static void kbi_show_machine(kbi_supervisor* s) {
    kb_result facts;
    kbi_result_clear(&facts);
    kbi_record_machine(&facts, &s->machine);
    kbi_record_session(&facts, &s->session);
    kbi_table_machine(&s->table, &facts);
    kbi_table_flush(&s->table);
    kb_result_free(&facts);
}

static void kbi_finish_group(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    kb_result* results = (kb_result*)kbi_grow(NULL, sizeof(kb_result) * (size_t)g->n);
    const kbi_measured** m = (const kbi_measured**)kbi_grow(NULL, sizeof(kbi_measured*) * (size_t)g->n);
    double** samples = (double**)kbi_grow(NULL, sizeof(double*) * (size_t)g->n);
    int64_t planned = kbi_planned(s->plan, &s->plan->cases[g->first]);
    int n = 0;
    for (int i = 0; i < g->n; i++) {
        if (!g->samples[i]) continue; // not measured: not for this machine, or interrupted
        m[n] = &g->m[i];
        samples[n] = g->samples[i];
        kbi_judge(&results[n], &g->m[i], g->samples[i], &s->machine);
        kbi_record_case(&results[n], &s->plan->cases[g->first + i], &g->m[i], &s->machine);
        kbi_record_session(&results[n], &s->session);
        results[n++].planned = planned;
    }
    kbi_contest_end end = kbi_judge_group(results, m, samples, n);
    kbi_record_contest(results, n, end);
    kbi_progress_clear(&s->progress);
    for (int i = 0; i < n; i++) kbi_store_add(&s->store, &results[i]), kbi_count(s, &results[i]);
    for (int i = 0; i < n && s->collect; i++) s->collect(s->collect_to, &results[i]);
    kbi_show_results(s, results, n);
    KBENCH_FREE(results);
    KBENCH_FREE(m);
    KBENCH_FREE(samples);
}

static void kbi_one_group(kbi_supervisor* s, int first, int n) {
    kbi_group* g = &s->group;
    size_t count = (size_t)n;
    memset(g, 0, sizeof *g);
    g->first = first;
    g->n = n;
    g->m = (kbi_measured*)kbi_grow(NULL, sizeof(kbi_measured) * count);
    g->samples = (double**)kbi_grow(NULL, sizeof(double*) * count);
    g->wanted = (char*)kbi_grow(NULL, count);
    g->spent = (int64_t*)kbi_grow(NULL, sizeof(int64_t) * count);
    memset(g->samples, 0, sizeof(double*) * count);
    memset(g->spent, 0, sizeof(int64_t) * count);
    int here = 0;
    for (int i = 0; i < n; i++) {
        g->wanted[i] = kbi_runs_here(s, &s->plan->cases[first + i]);
        here += g->wanted[i];
        if (!g->wanted[i]) s->absent++, s->done++;
    }
    kbi_progress_group(&s->progress, kbi_group_seconds(s->o, here));
    kbi_measure_group(s);
    kbi_finish_group(s);
    for (int i = 0; i < n; i++) KBENCH_FREE(g->samples[i]);
    KBENCH_FREE(g->samples);
    KBENCH_FREE(g->spent);
    KBENCH_FREE(g->wanted);
    KBENCH_FREE(g->m);
}

/*---------------------------------------------------------------------------------------------------------------
  >>program   program: a run from command line to exit code.
              Public: none      Used by: >>selftest, >>main
---------------------------------------------------------------------------------------------------------------*/

// "cpu", "all", a number: false after an error message.
static bool kbi_device_option(const kbi_options* o, int64_t* first, bool* all) {
    *first = 0;
    *all = kbi_is(o->device, "all");
    if (!o->device || *all || kbi_is(o->device, "cpu")) return true;
    if (kbi_is(o->device, "script") && kbi_lab.script) return true;
    if (kbi_parse_whole(o->device, 0, 1023, first)) return true;
    kbi_error("--device takes a number, all or cpu, not '%s'", o->device);
    return false;
}

static bool kbi_profiled(void) {
    static const char* const names[] = { "CUDA_INJECTION64_PATH", "NV_NSIGHT_INJECTION_PORT_BASE",
                                         "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "NSYS_PROFILING_SESSION_ID",
                                         "NV_SANITIZER_INJECTION_PORT_BASE" };
    for (int i = 0; i < KBI_COUNT(names); i++)
        if (getenv(names[i])) return true;
    return false;
}

// All groups on one device; 0, or the exit code of a device that is not there.
static int kbi_run_device(kbi_supervisor* s, int device, bool required) {
    s->worker.device = device;
    s->group.n = 0;
    s->has_truth = false; // another GPU's is another
    s->done = 0;
    if (!kbi_meet(s, device)) return kbi_desk.interrupted ? 0 : KBI_EXIT_FAILED;
    bool host = !s->machine.gpu_present && !required && s->recipe.target != KBI_ON_SCRIPT;
    for (int i = 0; i < KBI_COUNT(kbi_gpu_options) && host; i++) // --cold is the default
        if (s->o->on[kbi_gpu_options[i]] && kbi_gpu_options[i] != KBI_OPTION_cold &&
            !kbi_same_name(s->o->timer, "wall"))
            kbi_warn("--%s is without effect: there is no GPU here, and host code is timed by the host's clock",
                     kbi_options_table[kbi_gpu_options[i]].name);
    if (required && !s->machine.gpu_present) {
        kbi_error("%s", s->machine.why[0] ? s->machine.why : "no GPU: this program was built without CUDA; use nvcc");
        return s->machine.devices > 0 ? KBI_EXIT_USAGE : KBI_EXIT_NO_GPU;
    }
    if (!s->collect) kbi_show_machine(s);
    double allowed = 0; // the time left is this device's, without its start
    for (int first = 0, end; first < s->plan->n; first = end) {
        int here = 0;
        end = kbi_group_end(s->plan, first);
        for (int i = first; i < end; i++) here += kbi_runs_here(s, &s->plan->cases[i]);
        allowed += kbi_group_seconds(s->o, here);
    }
    kbi_progress_begin(&s->progress, allowed);
    for (int first = 0, end; first < s->plan->n && !kbi_desk.interrupted; first = end) {
        end = kbi_group_end(s->plan, first);
        kbi_one_group(s, first, end - first);
    }
    kbi_show_held(s);
    kbi_worker_kill(&s->worker);
    return 0;
}

// The summary; what has no record is no part of the table.
static void kbi_say_end(kbi_supervisor* s) {
    kbi_table_end(&s->table);
    if (s->absent)
        kbi_warn("%d not run: %s", s->absent, s->machine.gpu_present ? "not for this GPU" : "they need a GPU");
    if (kbi_desk.interrupted) kbi_warn("interrupted: cases that were not finished have no record");
}

static kbi_how kbi_how_of(const kbi_options* o, FILE* out) {
    kbi_how how;
    kbi_how_default(&how, out);
    if (o->on[KBI_OPTION_no_color]) how.colour = false;
    how.verbose = o->on[KBI_OPTION_verbose];
    how.sort = o->sort;
    how.columns = o->columns;
    return how;
}

// The exit code of a run without a number, and without a failure. What its functions skipped does not apply here, which
// they say themselves; for want of a GPU it is another matter.
static int kbi_nothing_measured(const kbi_supervisor* s) {
    const kbi_machine* m = &s->machine;
    bool cpu = s->recipe.target == KBI_ON_CPU, no_gpu = !m->gpu_present && s->recipe.target != KBI_ON_SCRIPT;
    if (no_gpu && (KBI_CUDA || s->absent)) {
        if (!s->collect)
            kbi_error("nothing was measured: %s", cpu ? "what was selected needs a GPU, and --device cpu uses none"
                                                  : m->why[0]
                                                      ? m->why
                                                      : "no GPU: this program was built without CUDA; use nvcc");
        return KBI_EXIT_NO_GPU;
    }
    if (s->absent && !s->skipped) {
        kbi_error(
            "nothing was measured: what was selected is not for this GPU (compute capability %d.%d); --list-ops "
            "shows what there is, --device cpu runs what is for the CPU",
            m->sm / 10, m->sm % 10);
        return KBI_EXIT_NO_GPU;
    }
    if (!s->collect) kbi_warn("nothing was measured: all that was selected was skipped; the table says why");
    return KBI_EXIT_FINE;
}

static int kbi_run_plan(const kbi_options* o, const kbi_plan* plan, void (*collect)(void* to, const kb_result* r),
                        void* to) {
    kbi_supervisor* s = &kbi_desk.run;
    int64_t first;
    bool all, stdout_taken = kbi_is(o->json, "-") || kbi_is(o->jsonl, "-");
    memset(s, 0, sizeof *s);
    s->o = o;
    s->plan = plan;
    kbi_recipe_of(&s->recipe, o);
    s->collect = collect;
    s->collect_to = to;
    s->isolated = !o->on[KBI_OPTION_no_isolate] && !kbi_profiled();
    if (!kbi_device_option(o, &first, &all) || !kbi_store_open(&s->store, o->json, o->jsonl)) return KBI_EXIT_USAGE;
    s->store.keep = true;
    kbi_session_open(&s->session, o->argc, o->argv, o->seed);
    kbi_how how = kbi_how_of(o, stdout_taken ? stderr : stdout);
    kbi_table_open(&s->table, &how);
    if (!s->isolated) kbi_warn("one process: a crash ends the run, and --timeout ends nothing");
    kbi_progress_open(&s->progress, !o->on[KBI_OPTION_no_progress] && !o->on[KBI_OPTION_quiet]);
    kbi_desk.one_process = !s->isolated;
    if (!s->isolated) kbi_watch_stops();
    signal(SIGINT, kbi_interrupt);
    signal(SIGTERM, kbi_interrupt);
    signal(SIGHUP, kbi_interrupt);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); // ignored by whoever started us, it would hide how a worker ended
    bool required = o->device && s->recipe.target == KBI_ON_GPU;
    int code = kbi_run_device(s, (int)first, required);
    for (int device = 1; !code && all && device < s->machine.devices && !kbi_desk.interrupted; device++)
        code = kbi_run_device(s, device, true);
    kbi_progress_clear(&s->progress);
    if (!code && !collect) kbi_say_end(s);
    bool stored = kbi_store_close(&s->store);
    KBENCH_FREE(s->session.command);
    if (code) return code;
    if (kbi_desk.interrupted) return KBI_EXIT_INTERRUPTED;
    if (s->failed || !stored) return KBI_EXIT_FAILED;
    return s->ok ? KBI_EXIT_FINE : kbi_nothing_measured(s);
}

// --- what the kernel says of the processor, below /sys/devices/system/cpu ---

// Cores: of each the first of its hardware threads is counted, and what is offline has no topology.
static void kbi_host_cores(const char* root, int most, int* cores, int* threads) {
    char path[512], line[256];
    *cores = *threads = 0;
    for (int i = 0; i < most; i++) {
        snprintf(path, sizeof path, "%.400s/cpu%d/topology/thread_siblings_list", root, i);
        if (!kbi_first_line(path, line, (int)sizeof line)) continue;
        *cores += strtol(line, NULL, 10) == i;
        ++*threads;
    }
}

// "L1d 32K, L2 1024K, L3 36608K": of the first processor, what data goes through; empty where nothing is known.
static void kbi_host_caches(const char* root, kbi_text* out) {
    char path[512], level[8], type[32], size[32];
    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof path, "%.400s/cpu0/cache/index%d/level", root, i);
        if (!kbi_first_line(path, level, (int)sizeof level)) break;
        snprintf(path, sizeof path, "%.400s/cpu0/cache/index%d/type", root, i);
        bool known = kbi_first_line(path, type, (int)sizeof type);
        snprintf(path, sizeof path, "%.400s/cpu0/cache/index%d/size", root, i);
        if (!known || kbi_is(type, "Instruction") || !kbi_first_line(path, size, (int)sizeof size)) continue;
        kbi_putf(out, "%sL%s%s %s", out->n ? ", " : "", level, kbi_is(type, "Data") ? "d" : "", size);
    }
}

static void kbi_env_host(void) {
    static const char root[] = "/sys/devices/system/cpu";
    char path[64], governor[64];
    int cores, threads;
    kbi_text caches = { NULL, 0, 0 };
    kbi_host_cores(root, (int)sysconf(_SC_NPROCESSORS_CONF), &cores, &threads);
    kbi_host_caches(root, &caches);
    snprintf(path, sizeof path, "%s/cpu0/cpufreq/scaling_governor", root);
    if (cores)
        printf("  %-34s %d, with %d hardware threads\n", "cores", cores, threads);
    else
        printf("  %-34s not known; %ld hardware threads\n", "cores", sysconf(_SC_NPROCESSORS_ONLN));
    printf("  %-34s %s\n", "caches", caches.n ? caches.s : "not known");
    printf("  %-34s %s\n", "frequency governor",
           kbi_first_line(path, governor, (int)sizeof governor) ? governor : "not known: cpufreq tells of none");
    kbi_text_free(&caches);
}

// The compiler by name: __VERSION__ alone is a number with gcc.
static void kbi_env_compiler(void) {
    printf("  %-34s ", "compiler");
#if defined(__clang__)
    printf("clang %d.%d.%d", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
    printf("gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
#ifdef __CUDACC_VER_MAJOR__
    printf(" behind nvcc %d.%d.%d", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__);
#endif
#ifdef __cplusplus
    printf(", C++ %ld\n", (long)__cplusplus);
#else
    printf(", C %ld\n", (long)__STDC_VERSION__);
#endif
}

static void kbi_env_line(const char* name, double x, const char* unit) {
    char number[40];
    printf("  %-34s %s %s\n", name, kbi_show(x, 4, number), kbi_finite(x) ? unit : "");
}

// --env: what is known of the machine, and what the times are corrected by.
static int kbi_show_env(const kbi_options* o, const kbi_plan* plan) {
    kbi_supervisor* s = &kbi_desk.run;
    int64_t device;
    bool all;
    static const char* const modes[] = { "cold", "hot" };
    memset(s, 0, sizeof *s);
    s->o = o;
    s->plan = plan;
    kbi_recipe_of(&s->recipe, o);
    s->isolated = !o->on[KBI_OPTION_no_isolate] && !kbi_profiled();
    if (!kbi_device_option(o, &device, &all)) return KBI_EXIT_USAGE;
    kbi_session_open(&s->session, o->argc, o->argv, o->seed);
    kbi_how how = kbi_how_of(o, stdout);
    kbi_table_open(&s->table, &how);
    signal(SIGPIPE, SIG_IGN);
    s->worker.device = (int)device;
    if (!kbi_meet(s, (int)device)) return KBI_EXIT_FAILED;
    kbi_worker_kill(&s->worker);
    kbi_show_machine(s);
    printf("  %-34s %s, Linux %s\n", "host", s->session.host, s->session.kernel_version);
    kbi_env_host();
    kbi_env_compiler();
    printf("  %-34s %s\n", "build", s->session.build);
    kbi_env_line("step of the host's clock", (double)kbi_clock_step(), "ns");
    kbi_env_line("reading it costs", kbi_measure_wall_bias(), "ns");
    if (!s->machine.gpu_present) return KBI_EXIT_FINE;
    const kbi_machine* m = &s->machine;
    printf("  %-34s %d SMs, L2 %lld MiB, ECC %s, MIG %s, clocks %s\n", "GPU", m->multiprocessors,
           (long long)(m->l2 >> 20), m->ecc ? "on" : "off", m->mig == 1 ? "on" : "off",
           m->clocks_locked == 1 ? "locked" : "not locked");
    kbi_env_line("copy roof", m->copy_roof * 1e-9, "GB/s");
    kbi_env_line("read roof", m->read_roof * 1e-9, "GB/s");
    kbi_env_line("write roof", m->write_roof * 1e-9, "GB/s");
    kbi_env_line("share of L2 that eviction empties", 100 * m->cold, "%");
    kbi_env_line("step of event times", m->quantum, "ns");
    kbi_env_line("empty pair of events", m->empty_pair, "ns");
    for (int mode = 0; mode < 2; mode++) {
        char name[64];
        snprintf(name, sizeof name, "%s: empty kernel reads", modes[mode]);
        kbi_env_line(name, m->floor[mode], "ns");
        kbi_env_line("    taken off", m->bias[mode], "ns");
    }
    kbi_env_line("graph: empty kernel takes", m->floor[2], "ns");
    kbi_env_line("an empty kernel's own duration", m->floor[1] - m->bias[1], "ns");
    kbi_env_line("    fitted to %globaltimer", m->fitted, "ns");
    printf("  %-34s %s\n", "    what was used", m->truth);
    KBENCH_FREE(s->session.command);
    return KBI_EXIT_FINE;
}

static int kbi_dry_run(const kbi_options* o, const kbi_plan* plan) {
    char text[40];
    double seconds = 0;
    kbi_list_cases(plan);
    for (int first = 0, end; first < plan->n; first = end) {
        end = kbi_group_end(plan, first);
        seconds += kbi_group_seconds(o, end - first);
    }
    printf("%d case%s in %d comparison group%s; at most about %s\n", plan->n, plan->n == 1 ? "" : "s", plan->groups,
           plan->groups == 1 ? "" : "s", kbi_show_time(seconds * 1e3, text));
    return KBI_EXIT_FINE;
}

/*---------------------------------------------------------------------------------------------------------------
  >>embed     program: measuring inside another program.
              Public: kb_open_from, kb_close, kb_run_from      Used by: programs
---------------------------------------------------------------------------------------------------------------*/

// A run without a registry, and what its case points to.
typedef struct kbi_embedded {
    kbi_run run; // first: the one is found from the other
    kbi_recipe recipe;
    kbi_case of;
    kb_entry entry;
    kbi_arena arena;
} kbi_embedded;

static struct kbi_host_program { // the process of somebody else's main: what kb_open measures on, opened once
    const kbi_backend* backend;
    kbi_machine machine;
    int device;
} kbi_host_program;

static void kbi_recipe_of_desc(kbi_recipe* r, const kb_desc* d) {
    kbi_recipe_default(r);
    r->device = d->device;
    r->expect = d->expect;
    if (d->precision > 0) r->precision = d->precision;
    if (d->max_time > 0) r->max_time = d->max_time;
    if (d->samples > 0) r->samples = d->samples;
    if (d->seed) r->seed = d->seed;
}

static const char* kbi_desc_fault(const kb_desc* d) {
    if (!d) return "kb_desc is NULL";
    if (d->end_canary) return "kb_desc is not initialised: start from = {0}, or name its fields";
    if (!d->name || !*d->name) return "kb_desc.name is missing";
    if (d->dtype && !kb_dtype_of(d->dtype)) return "kb_desc.dtype is none of f32, f64, f16, bf16, i8, u8, ... u64";
    if (d->samples < 0 || d->precision < 0 || d->max_time < 0 || d->device < 0)
        return "kb_desc: samples, precision, max_time and device cannot be negative";
    return NULL;
}

kb_state* kb_open_from(const kb_desc* desc, const kb_build* build) {
    static const kb_desc nothing = { "unnamed", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0 };
    kbi_embedded* e = (kbi_embedded*)KBENCH_MALLOC(sizeof(kbi_embedded));
    const char* fault = kbi_desc_fault(desc);
    kb_desc named = nothing; // of a description at fault the record still says whose it is
    if (fault && desc && !desc->end_canary && desc->name && *desc->name) {
        named.name = desc->name;
        named.implementation = desc->implementation;
        named.user = desc->user;
        named.device = KBI_MAX(desc->device, 0);
    }
    const kb_desc* d = fault ? &named : desc;
    if (!e) return NULL;
    memset(e, 0, sizeof *e);
    kbi_recipe_of_desc(&e->recipe, d);
    if (!kbi_host_program.backend) {
        kbi_host_program.backend = kbi_backend_open(&e->recipe, &kbi_host_program.machine);
        kbi_host_program.device = d->device;
    }
    if (!fault && KBI_CUDA && d->device != kbi_host_program.device)
        fault = "kb_desc.device: a process measures on one GPU, that of its first kb_open";
    kbi_run* run = &e->run;
    kbi_run_init(run, kbi_host_program.backend, &kbi_host_program.machine, &e->recipe);
    e->entry.operation = kbi_arena_text(&e->arena, d->name);
    e->entry.implementation = kbi_arena_text(&e->arena, d->implementation ? d->implementation : "default");
    e->entry.build = build;
    e->entry.user = d->user;
    e->of.entry = &e->entry;
    e->of.name = e->entry.operation;
    e->of.dtype = d->dtype ? kb_dtype_of(d->dtype) : KB_NODTYPE;
    kbi_run_case(run, &e->of);
    if (d->bytes > 0) run->m.bytes = d->bytes;
    if (d->flops > 0) run->m.flops = d->flops;
    if (d->items > 0) run->m.items = d->items;
    kbi_body_begins(run, KBI_PHASE_CHECK, KBI_PHASE_PROVE);
    if (fault) kbi_stop(run, KB_FLAG_BAD_CASE, "%s", fault);
    return &run->kb;
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
    kbi_run* run = &e->run;
    kbi_session session;
    kbi_body_ended(run);
    run->m.leaked = KB_NONE; // the program may keep what it likes, and no second call tells what code took
    kbi_run_finish(run);
    kbi_judge(&r, &run->m, run->sampling.samples, run->machine);
    kbi_record_case(&r, run->of, &run->m, run->machine);
    kbi_session_open(&session, 0, NULL, run->recipe->seed);
    kbi_record_session(&r, &session);
    KBENCH_FREE(session.command);
    KBENCH_FREE(run->sampling.samples);
    kbi_arena_free(&e->arena);
    KBENCH_FREE(e);
    return r;
}

typedef struct kbi_callback {
    const kb_desc* desc;
    void (*fn)(kb_stream stream, void* user);
    void* user;
} kbi_callback;

static void kbi_callback_body(kb_state* kb) {
    const kbi_callback* c = (const kbi_callback*)kb->user;
    bool host = c->desc && c->desc->host;
    if (c->desc && c->desc->before) {
        KB_SAMPLE(kb) {
            c->desc->before(kb->stream, c->user);
            KBI_TIME(kb, host) c->fn(kb->stream, c->user);
        }
    } else {
        KBI_TIME(kb, host) c->fn(kb->stream, c->user);
    }
}

kb_result kb_run_from(const kb_desc* desc, void (*fn)(kb_stream stream, void* user), void* user,
                      const kb_build* build) {
    kbi_callback callback = { desc, fn, user };
    kb_state* kb = kb_open_from(desc, build);
    if (kb) {
        kb->user = &callback;
        kb->run->work.called = true;
        kbi_call_guarded(kb->run, kbi_callback_body);
    }
    return kb_close(kb);
}

/*---------------------------------------------------------------------------------------------------------------
  >>selftest  program: the measurement measured: known work, equal rivals, planted differences and planted mistakes.
              Public: none      Used by: >>main
---------------------------------------------------------------------------------------------------------------*/

// --- the benchmarks: on a GPU from the harness's own kernels, elsewhere from a counted loop ---

static void kbi_spin_work(kb_state* kb, double cycles) {
    if (kb->gpu) {
#if KBI_CUDA
        uint64_t n = (uint64_t)cycles;
        void* arguments[] = { &n };
        KB_TIME(kb) kbi_launch(KBI_F_SPIN, (unsigned)kbi_lab.gpu.multiprocessors, 128, arguments);
#endif
    } else {
        volatile uint32_t x = 1;
        KB_TIME_HOST(kb)
            for (int64_t i = 0; i < (int64_t)cycles; i++) x = x * 1664525u + 1013904223u;
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

static void kbi_test_spin(kb_state* kb) { kbi_spin_work(kb, (double)kb_int(kb, "cycles")); }
static void kbi_test_pair(kb_state* kb) {
    bool later = kbi_is(kb->operation, "slower") && kbi_is(kb->implementation, "b");
    kbi_spin_work(kb, (4000 + 300 * (double)kb_int(kb, "pair")) * (later ? 1.02 : 1));
}

static void kbi_test_wrong(kb_state* kb) {
    float *x = KB_ALLOC(kb, float, 256), want[256] = { 0 };
    kbi_fill(kb, x, KB_F32, 256, KB_ZERO);
    if (kbi_is(kb->implementation, "unwritten"))
        x = KB_ALLOC(kb, float, 256); // still poison: NaN
    else
        want[17] = 1;
    kbi_spin_work(kb, 1000);
    kb_check_typed(kb, x, KB_F32, want, KB_F32, 256, 1e-6);
}

static void kbi_test_overrun(kb_state* kb) {
    char *p = KB_ALLOC(kb, char, 100), byte = 1;
    kb_from_host(kb, p ? p + 100 : NULL, &byte, 1);
    kbi_spin_work(kb, 1000);
}
static void kbi_test_no_loop(kb_state* kb) { (void)kb; }
static void kbi_test_left(kb_state* kb) {
    KB_TIME(kb) break;
}
static void kbi_test_crash(kb_state* kb) {
    KB_TIME(kb) abort();
}
static void kbi_test_exit(kb_state* kb) {
    KB_TIME(kb) exit(0);
}
static void kbi_test_hang(kb_state* kb) {
    KB_TIME(kb)
        for (;;) kbi_readable(-1, 1000);
}

#if KBI_CUDA
static void kbi_test_copy(kb_state* kb) {
    size_t n = (size_t)kb_int(kb, "kib") * 1024;
    char *x = KB_ALLOC(kb, char, (int64_t)n), *y = KB_ALLOC(kb, char, (int64_t)n);
    kbi_fill(kb, x, KB_U8, (int64_t)n, KB_UNIFORM);
    KB_TIME(kb) {
        uint64_t units = n / 16;
        void* arguments[] = { &y, &x, &units };
        kbi_launch(KBI_F_COPY, (unsigned)KBI_MIN((units + 1023) / 1024, (uint64_t)kbi_lab.gpu.multiprocessors * 8),
                   256, arguments);
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}

// Mistakes in the timed block, by the implementation's name.
static void kbi_test_mistake(kb_state* kb) {
    const char* what = kb->implementation;
    float host[256], *x = KB_ALLOC(kb, float, 256), *pinned = KB_ALLOC_PINNED(kb, float, 256);
    void *p = NULL, *nowhere = (void*)(uintptr_t)4096;
    uint64_t cycles = 2000, far_cycles = 2000000, units = 16;
    void *spin[] = { &cycles }, *far_spin[] = { &far_cycles }, *bad[] = { &nowhere, &nowhere, &units };
    cudaStream_t other = NULL, own = kbi_lab.gpu.stream;
    memset(host, 0, sizeof host);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    KB_TIME(kb) {
        kbi_launch(KBI_F_SPIN, 1, 32, spin);
        if (kbi_is(what, "copy")) cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
        if (kbi_is(what, "copy_async")) cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, kb->stream);
        if (kbi_is(what, "copy_pinned")) cudaMemcpyAsync(pinned, x, sizeof host, cudaMemcpyDeviceToHost, kb->stream);
        if (kbi_is(what, "device_sync")) cudaDeviceSynchronize();
        if (kbi_is(what, "stream_sync")) cudaStreamSynchronize(kb->stream);
        if (kbi_is(what, "malloc")) cudaMalloc(&p, 1 << 20), cudaFree(p);
        if (kbi_is(what, "malloc_async")) cudaMallocAsync(&p, 1 << 20, kb->stream), cudaFreeAsync(p, kb->stream);
        if (kbi_is(what, "bad_address")) kbi_launch(KBI_F_COPY, 1, 32, bad);
        kbi_lab.gpu.stream = kbi_is(what, "default_stream") ? NULL : kbi_is(what, "side_stream") ? other : own;
        if (kbi_lab.gpu.stream != own) kbi_launch(KBI_F_SPIN, 1, 32, far_spin);
        kbi_lab.gpu.stream = own;
    }
    cudaStreamDestroy(other);
}
static void kbi_test_empty(kb_state* kb) {
    KB_TIME(kb) {}
}
#endif

#define KBI_TEST_AXIS_END                   \
    {                                       \
        0, KB_AXIS_END, { 0 }, { 0 }, { 0 } \
    }
static const kb_axis kbi_test_cycles[] = { KB_AXIS("cycles", 500, 1000, 3000, 7000, 20000, 100000, 1000000, 10000000),
                                           KBI_TEST_AXIS_END };
#if KBI_CUDA
static const kb_axis kbi_test_kib[] = { KB_AXIS("kib", 16, 64, 256, 1024, 4096, 16384, 65536, 262144),
                                        KBI_TEST_AXIS_END };
#endif
static const kb_axis kbi_test_pairs[] = { KB_SIZE("all", "pair=1:200"), KB_SIZE("some", "pair=10:200:+10"),
                                          KBI_TEST_AXIS_END };

// An operation's name says what is expected of it: accuracy, equal, slower, or the word that must replace the number.
// clang-format off
static kb_entry kbi_tests[] = {
#define KBI_TEST(op, impl, body, axes)                                                                           \
    { op, impl, body, NULL, axes, "own", 0, KB_NEEDS_NOTHING, 0, NULL, NULL, 0, 0, NULL, NULL },
    KBI_TEST("accuracy", "spin", kbi_test_spin, kbi_test_cycles)
    KBI_TEST("equal", "a", kbi_test_pair, kbi_test_pairs)
    KBI_TEST("equal", "b", kbi_test_pair, kbi_test_pairs)
    KBI_TEST("slower", "a", kbi_test_pair, kbi_test_pairs)
    KBI_TEST("slower", "b", kbi_test_pair, kbi_test_pairs)
    KBI_TEST("VERIFY_FAIL", "one_element", kbi_test_wrong, NULL)
    KBI_TEST("VERIFY_FAIL", "unwritten", kbi_test_wrong, NULL)
    KBI_TEST("OVERRUN", "default", kbi_test_overrun, NULL)
    KBI_TEST("NO_LOOP", "default", kbi_test_no_loop, NULL)
    KBI_TEST("LEFT_EARLY", "default", kbi_test_left, NULL)
    KBI_TEST("CRASHED", "abort", kbi_test_crash, NULL)
    KBI_TEST("CRASHED", "exit", kbi_test_exit, NULL)
    KBI_TEST("TIMEOUT", "default", kbi_test_hang, NULL)
#if KBI_CUDA
    KBI_TEST("accuracy", "copy", kbi_test_copy, kbi_test_kib)
    KBI_TEST("NO_WORK", "default", kbi_test_empty, NULL)
    KBI_TEST("SIDE_STREAM", "default_stream", kbi_test_mistake, NULL)
    KBI_TEST("SIDE_STREAM", "side_stream", kbi_test_mistake, NULL)
    KBI_TEST("SIDE_STREAM", "copy", kbi_test_mistake, NULL) // no difference to capture
    KBI_TEST("TRANSFER", "copy_async", kbi_test_mistake, NULL)
    KBI_TEST("TRANSFER", "copy_pinned", kbi_test_mistake, NULL)
    KBI_TEST("SYNC_INSIDE", "device_sync", kbi_test_mistake, NULL)
    KBI_TEST("SYNC_INSIDE", "stream_sync", kbi_test_mistake, NULL)
    KBI_TEST("SYNC_INSIDE", "malloc", kbi_test_mistake, NULL) // nor a synchronous allocation from waiting
    KBI_TEST("ALLOC_INSIDE", "malloc_async", kbi_test_mistake, NULL)
    KBI_TEST("CUDA_ERROR", "bad_address", kbi_test_mistake, NULL)
#endif
#undef KBI_TEST
};
// clang-format on

// In place of the program's own benchmarks: a worker of the self-test finds the same.
static void kbi_selftest_register(void) {
    kbi_process.entries = NULL;
    kbi_process.entry_count = 0;
    for (int i = 0; i < KBI_COUNT(kbi_tests); i++) kb_add(&kbi_tests[i]);
}

// --- running them, and the bars ---

typedef struct kbi_seen_result { // what the self-test keeps of a result
    char name[96], operation[32];
    double ms;
    uint64_t flags;
    kb_status status;
    kb_verdict verdict;
} kbi_seen_result;

typedef struct kbi_bars {
    const kbi_options* o;
    kbi_seen_result* seen; // of the latest run
    int n, failed, code;   // code: the exit code of the latest run
    bool gpu;
} kbi_bars;

static void kbi_bars_collect(void* to, const kb_result* r) {
    kbi_bars* b = (kbi_bars*)to;
    b->seen = (kbi_seen_result*)kbi_grow(b->seen, sizeof(kbi_seen_result) * (size_t)(b->n + 1));
    kbi_seen_result* s = &b->seen[b->n++];
    snprintf(s->name, sizeof s->name, "%s", r->name);
    snprintf(s->operation, sizeof s->operation, "%s", r->operation);
    s->ms = r->time_ms;
    s->flags = r->flags;
    s->status = r->status;
    s->verdict = r->verdict;
    b->gpu |= r->gpu != NULL;
}

// Runs the tests that a command line selects; their results are then in seen.
static bool kbi_bars_run(kbi_bars* b, const char* arguments) {
    char text[256], *argv[32], *word;
    kbi_options o;
    kbi_plan plan;
    int argc = 0;
    b->n = 0;
    snprintf(text, sizeof text, "--selftest --no-progress --quiet %s", arguments);
    argv[argc++] = b->o->argv[0];
    for (word = strtok(text, " "); word && argc < 30; word = strtok(NULL, " ")) argv[argc++] = word;
    if (b->o->device) argv[argc] = kbi_keep_text("--device"), argv[argc + 1] = kbi_keep_text(b->o->device), argc += 2;
    argv[argc] = NULL;
    kbi_options_default(&o);
    if (!kbi_options_parse(&o, argc, argv) || !kbi_plan_here(&plan, &o)) return false;
    b->code = kbi_run_plan(&o, &plan, kbi_bars_collect, b);
    kbi_plan_free(&plan);
    return b->n > 0 && !kbi_desk.interrupted;
}

KBI_PRINTF(4, 5) static void kbi_bar(kbi_bars* b, bool passed, const char* what, const char* format, ...) {
    va_list list;
    printf("%-5s %-30s ", passed ? "pass" : "FAIL", what);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
    b->failed += !passed;
}

// The times of the cases that a command line selects, from so many processes: a case's stand together, in ascending
// order. NULL: none; n is the number of cases, whose names are then in seen.
static double* kbi_bars_times(kbi_bars* b, const char* arguments, int processes, int* n) {
    double* ms = NULL;
    for (int p = 0; p < processes; p++) {
        if (!kbi_bars_run(b, arguments) || (p > 0 && b->n != *n)) return KBENCH_FREE(ms), (double*)NULL;
        *n = b->n;
        if (!p) ms = (double*)kbi_grow(NULL, sizeof(double) * (size_t)(*n * processes));
        for (int i = 0; i < *n; i++) ms[i * processes + p] = kbi_finite(b->seen[i].ms) ? b->seen[i].ms : INFINITY;
    }
    for (int i = 0; i < *n; i++) kbi_sort(ms + i * processes, processes);
    return ms;
}

// Corrected times against CUPTI's durations of the same kernels, both from several processes, since kernels on memory
// differ by the process themselves: the median of ours against the range of theirs.
static void kbi_bar_accuracy(kbi_bars* b, const char* way, int processes) {
    char arguments[128], what[64], worst_at[96] = "";
    double worst = 0;
    int good = 0, compared = 0, n = 0, m = 0;
    snprintf(arguments, sizeof arguments, "--op accuracy %s", way);
    double* ours = kbi_bars_times(b, arguments, processes, &n);
    snprintf(arguments, sizeof arguments, "--op accuracy --timer cupti %s", way);
    double* theirs = ours ? kbi_bars_times(b, arguments, processes, &m) : NULL;
    snprintf(what, sizeof what, "agrees with CUPTI, %s", *way ? way + 2 : "cold");
    for (int i = 0; theirs && i < n && n == m; i++) {
        double ms = ours[i * processes + processes / 2], low = theirs[i * processes];
        double high = theirs[(i + 1) * processes - 1], bar = KBI_MAX(0.15e-3, 0.01 * low);
        double error = KBI_MAX(KBI_MAX(low - ms, ms - high), 0);
        if (!kbi_finite(ms) || !kbi_finite(low) || !kbi_finite(high)) continue;
        compared++;
        good += error <= bar;
        if (error / bar > worst) worst = error / bar, snprintf(worst_at, sizeof worst_at, "%s", b->seen[i].name);
    }
    KBENCH_FREE(ours);
    KBENCH_FREE(theirs);
    if (compared)
        kbi_bar(b, good == n, what, "%d of %d within max(0.15 us, 1 %%), %d processes; worst %.2f of that%s%s", good,
                n, processes, worst, *worst_at ? ", " : "", worst_at);
    else
        printf("skip  %-30s CUPTI was not found; LD_LIBRARY_PATH can name its folder\n", what);
}

static void kbi_bar_pairs(kbi_bars* b, const char* operation, bool fast, bool equal) {
    char arguments[128];
    int pairs = 0, different = 0, slower = 0;
    snprintf(arguments, sizeof arguments, "--op %s --fast --precision 0.5 --rounds 40 --size %s", operation,
             fast ? "some" : "all");
    if (!kbi_bars_run(b, arguments)) return;
    for (int i = 0; i < b->n; i++) {
        if (!strstr(b->seen[i].name, "impl=b")) continue;
        pairs++;
        different += b->seen[i].verdict == KB_FASTER || b->seen[i].verdict == KB_SLOWER;
        slower += b->seen[i].verdict == KB_SLOWER;
    }
    if (equal)
        kbi_bar(b, pairs && different <= 0.05 * pairs, "equal rivals called different", "%d of %d; at most 5 %%",
                different, pairs);
    else
        kbi_bar(b, pairs && slower >= 0.95 * pairs, "2 % slower found", "%d of %d; at least 95 %%", slower, pairs);
}

// Every planted mistake must get its word, and no number.
static void kbi_bar_mistakes(kbi_bars* b) {
    int good = 0;
    if (!kbi_bars_run(b, "--fast --timeout 2s --exclude ^(accuracy|equal|slower)/")) return;
    for (int i = 0; i < b->n; i++) {
        const kbi_seen_result* s = &b->seen[i];
        bool flagged = false;
        for (int f = 0; f < KB_FLAG_COUNT; f++)
            if (kbi_is(kb_flag_name((kb_flag)f), s->operation)) flagged = (s->flags >> f) & 1;
        // a synchronous copy shows as a wait where the driver waits before it looks at the stream
        if (strstr(s->name, "impl=copy") && !strchr(strstr(s->name, "impl=copy"), '_'))
            flagged |= s->flags >> KB_FLAG_SYNC_INSIDE & 1;
        bool right = flagged && s->status == KB_FAILED && !kbi_finite(s->ms);
        if (!right && s->status != KB_SKIPPED) printf("      %s: not found\n", s->name);
        good += right || s->status == KB_SKIPPED;
    }
    kbi_bar(b, good == b->n, "planted mistakes", "%d of %d got their word and no number", good, b->n);
}

// On the CPU: twice the work must take twice the time, from 1 us to 10 ms.
static void kbi_bar_scale(kbi_bars* b) {
    double least = INFINITY, most = 0;
    if (!kbi_bars_run(b, "--op accuracy --impl spin --fast --precision 0.3")) return;
    for (int i = 1; i < b->n; i++) { // the first is too short for the loop's own cost not to show
        const char* cycles = strstr(b->seen[i].name, "cycles=");
        double each = cycles ? b->seen[i].ms / strtod(cycles + 7, NULL) : (double)NAN;
        least = KBI_MIN(least, each);
        most = KBI_MAX(most, each);
    }
    kbi_bar(b, most <= 1.1 * least, "time grows with the work", "time of a step differs by %.1f %%; at most 10 %%",
            100 * (most / least - 1));
}

static int kbi_selftest(const kbi_options* o) {
    kbi_bars b;
    int64_t began = kbi_now();
    bool fast = o->on[KBI_OPTION_fast];
    memset(&b, 0, sizeof b);
    b.o = o;
    printf("kbench %s self-test%s\n", KBENCH_VERSION, fast ? ", in short" : "");
    fflush(stdout);
    kbi_bar_mistakes(&b);
    if (!b.n && !kbi_desk.interrupted) return b.code ? b.code : KBI_EXIT_FAILED; // what is wrong was said
    if (b.gpu) {
        kbi_bar_accuracy(&b, "", fast ? 1 : 3);
        kbi_bar_accuracy(&b, "--hot", fast ? 1 : 3);
    } else {
        kbi_bar_scale(&b);
    }
    kbi_bar_pairs(&b, "equal", fast, true);
    kbi_bar_pairs(&b, "slower", fast, false);
    KBENCH_FREE(b.seen);
    if (kbi_desk.interrupted) return KBI_EXIT_INTERRUPTED;
    printf("%s on the %s, in %.0f s\n", b.failed ? "FAILED" : "passed", b.gpu ? "GPU" : "CPU",
           (double)(kbi_now() - began) * 1e-9);
    return b.failed ? KBI_EXIT_FAILED : KBI_EXIT_FINE;
}

/*---------------------------------------------------------------------------------------------------------------
  >>main      program: what KBENCH_MAIN calls.
              Public: kb_main      Used by: programs
---------------------------------------------------------------------------------------------------------------*/

// What was asked for and changes nothing.
static void kbi_warn_idle(const kbi_options* o) {
    static const int known[] = { KBI_OPTION_precision, KBI_OPTION_min_time };
    for (int i = 0; i < KBI_COUNT(kbi_idle_options); i++)
        if (o->on[kbi_idle_options[i]] && (o->json || o->jsonl))
            kbi_warn("--%s writes no records: --json and --jsonl are without effect",
                     kbi_options_table[kbi_idle_options[i]].name);
    for (int i = 0; i < KBI_COUNT(known) && o->iters; i++)
        if (o->on[known[i]])
            kbi_warn("--%s is without effect: --iters says how many samples there are",
                     kbi_options_table[known[i]].name);
    if (o->iters && o->on[KBI_OPTION_max_time])
        kbi_warn("--max-time bounds the warm-up alone: --iters says how many samples there are");
    for (int i = 0; i < KBI_COUNT(kbi_choosing_options) && (o->on[KBI_OPTION_env] || o->on[KBI_OPTION_selftest]); i++)
        if (o->on[kbi_choosing_options[i]] || (kbi_choosing_options[i] == KBI_OPTION_filter && o->filter.n))
            kbi_warn("--%s is without effect: --%s is not about the program's own benchmarks",
                     kbi_options_table[kbi_choosing_options[i]].name, o->on[KBI_OPTION_env] ? "env" : "selftest");
}

static int kbi_main(int argc, char** argv) {
    kbi_options o;
    kbi_plan plan;
    const char* slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    kbi_process.program = argc > 0 ? (slash ? slash + 1 : argv[0]) : "kbench";
    kbi_open_standard_files();
    kbi_options_default(&o);
    if (!kbi_options_parse(&o, argc, argv)) return KBI_EXIT_USAGE;
    kbi_process.quiet = o.on[KBI_OPTION_quiet];
    if (o.on[KBI_OPTION_help]) return kbi_help(), KBI_EXIT_FINE;
    if (o.on[KBI_OPTION_version]) return printf("kbench %s\n", KBENCH_VERSION), KBI_EXIT_FINE;
    if (o.worker_in < 0 && !o.on[KBI_OPTION_truth]) kbi_warn_idle(&o);
    if (o.on[KBI_OPTION_selftest]) kbi_selftest_register();
    if (o.on[KBI_OPTION_selftest] && o.worker_in < 0 && !o.on[KBI_OPTION_truth]) return kbi_selftest(&o);
    if (o.on[KBI_OPTION_truth]) return kbi_truth_main(&o);
    if (o.worker_in >= 0) return kbi_worker_main(&o);
    if (o.on[KBI_OPTION_env]) return memset(&plan, 0, sizeof plan), kbi_show_env(&o, &plan);
    if (!kbi_plan_here(&plan, &o)) return KBI_EXIT_USAGE;
    int code = KBI_EXIT_FINE;
    if (o.on[KBI_OPTION_list])
        kbi_list_cases(&plan);
    else if (o.on[KBI_OPTION_list_ops])
        kbi_list_ops(&plan, o.on[KBI_OPTION_verbose]);
    else if (o.on[KBI_OPTION_list_sizes])
        kbi_list_sizes(&plan);
    else if (o.on[KBI_OPTION_dry_run])
        code = kbi_dry_run(&o, &plan);
    else
        code = kbi_run_plan(&o, &plan, NULL, NULL);
    kbi_plan_free(&plan);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == KBI_EXIT_FINE) {
        kbi_error("writing to stdout failed: %s", strerror(errno));
        code = KBI_EXIT_FAILED;
    }
    return code;
}

int kb_main(int argc, char** argv) { return kbi_main(argc, argv); }

/*---------------------------------------------------------------------------------------------------------------
  >>ptx       measure: the engine's device functions, as text that the driver compiles at start.
              Public: none      Used by: >>device
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
// Compiled by nvcc from CUDA C (no contraction, no flush to zero) and lowered to PTX 6.4 for sm_70, so that every
// driver since CUDA 10.1 loads it on every GPU since Volta. tests/ptx/engine.cu is the source, tests/ptx/make.py made
// the text, with nvcc 13.0.88: change it there. The pieces of kbi_ptx are to be joined in order; C promises no more
// than 4095 characters in one literal. The numbers of dtypes and kinds are compiled into kbi_fill: a change of the
// enums stops the division.
// clang-format off
enum { KBI_PTX_CODES = 1 / (int)(KB_F32 == 1 && KB_F64 == 2 && KB_F16 == 3 && KB_BF16 == 4 && KB_I8 == 5 && KB_U8 == 6
                                 && KB_I16 == 7 && KB_U16 == 8 && KB_I32 == 9 && KB_U32 == 10 && KB_I64 == 11 &&
                                 KB_U64 == 12 && KB_ZERO == 0 && KB_NORMAL == 1 && KB_UNIFORM == 2 && KB_IOTA == 3) };

// kbi_fma holds these lines 16 times
#define KBI_PTX_FMA                             \
    "    fma.rn.f32 %f116, %f116, %f1, %f51;\n" \
    "    fma.rn.f32 %f115, %f115, %f1, %f51;\n" \
    "    fma.rn.f32 %f114, %f114, %f1, %f51;\n" \
    "    fma.rn.f32 %f113, %f113, %f1, %f51;\n" \
    "    fma.rn.f32 %f112, %f112, %f1, %f51;\n" \
    "    fma.rn.f32 %f111, %f111, %f1, %f51;\n" \
    "    fma.rn.f32 %f110, %f110, %f1, %f51;\n" \
    "    fma.rn.f32 %f109, %f109, %f1, %f51;\n" \
    "    fma.rn.f32 %f108, %f108, %f1, %f51;\n" \
    "    fma.rn.f32 %f107, %f107, %f1, %f51;\n" \
    "    fma.rn.f32 %f106, %f106, %f1, %f51;\n" \
    "    fma.rn.f32 %f105, %f105, %f1, %f51;\n" \
    "    fma.rn.f32 %f104, %f104, %f1, %f51;\n" \
    "    fma.rn.f32 %f103, %f103, %f1, %f51;\n" \
    "    fma.rn.f32 %f102, %f102, %f1, %f51;\n" \
    "    fma.rn.f32 %f101, %f101, %f1, %f51;\n"

static const char* const kbi_ptx[] = {
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n",
    // kbi_null(): the cost of a launch.
    ".visible .entry kbi_null()\n"
    "{\n"
    "    ret;\n"
    "}\n",
    // kbi_read(p, n16, sink): reads n16 units of 16 bytes and writes nothing. A block takes tiles of 4 units per
    // thread, so that 4 loads are in flight; .cg fills L2 with clean lines and skips L1. The store never happens in
    // practice (one xor pattern in 2^64): it keeps the loads alive.
    ".visible .entry kbi_read(.param .u64 kbi_read_0, .param .u64 kbi_read_1, .param .u64 kbi_read_2)\n"
    "{\n"
    "    .reg .pred %p<6>; .reg .b32 %r<6>; .reg .b64 %rd<62>;\n"
    "    ld.param.u64 %rd18, [kbi_read_0];\n"
    "    ld.param.u64 %rd19, [kbi_read_1];\n"
    "    ld.param.u64 %rd20, [kbi_read_2];\n"
    "    mov.u32 %r1, %ntid.x;\n"
    "    cvt.u64.u32 %rd1, %r1;\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    cvt.u64.u32 %rd22, %r2;\n"
    "    mul.wide.u32 %rd2, %r1, 4;\n"
    "    mul.lo.s64 %rd23, %rd2, %rd22;\n"
    "    mov.u32 %r3, %tid.x;\n"
    "    cvt.u64.u32 %rd24, %r3;\n"
    "    add.s64 %rd57, %rd23, %rd24;\n"
    "    mul.wide.u32 %rd4, %r1, 3;\n"
    "    add.s64 %rd25, %rd57, %rd4;\n"
    "    setp.ge.u64 %p1, %rd25, %rd19;\n"
    "    mov.u64 %rd61, 0;\n"
    "    @%p1 bra $L1_3;\n"
    "    shl.b64 %rd5, %rd1, 4;\n"
    "    mov.u32 %r4, %nctaid.x;\n"
    "    cvt.u64.u32 %rd27, %r4;\n"
    "    mul.lo.s64 %rd6, %rd2, %rd27;\n"
    "    mov.u64 %rd61, 0;\n"
    "$L1_2: .pragma \"nounroll\";\n"
    "    shl.b64 %rd40, %rd57, 4;\n"
    "    add.s64 %rd30, %rd18, %rd40;\n"
    "    ld.global.cg.v2.u64 {%rd28,%rd29}, [%rd30];\n"
    "    add.s64 %rd33, %rd30, %rd5;\n"
    "    ld.global.cg.v2.u64 {%rd31,%rd32}, [%rd33];\n"
    "    add.s64 %rd36, %rd33, %rd5;\n"
    "    ld.global.cg.v2.u64 {%rd34,%rd35}, [%rd36];\n"
    "    add.s64 %rd39, %rd36, %rd5;\n"
    "    ld.global.cg.v2.u64 {%rd37,%rd38}, [%rd39];\n"
    "    xor.b64 %rd41, %rd29, %rd61;\n"
    "    xor.b64 %rd42, %rd41, %rd28;\n"
    "    xor.b64 %rd43, %rd42, %rd31;\n"
    "    xor.b64 %rd44, %rd43, %rd32;\n"
    "    xor.b64 %rd45, %rd44, %rd34;\n"
    "    xor.b64 %rd46, %rd45, %rd35;\n"
    "    xor.b64 %rd47, %rd46, %rd37;\n"
    "    xor.b64 %rd61, %rd47, %rd38;\n"
    "    add.s64 %rd57, %rd57, %rd6;\n"
    "    add.s64 %rd48, %rd57, %rd4;\n"
    "    setp.lt.u64 %p2, %rd48, %rd19; @%p2 bra $L1_2;\n"
    "$L1_3:\n"
    "    setp.ge.u64 %p3, %rd57, %rd19; @%p3 bra $L1_5;\n"
    "$L1_4: .pragma \"nounroll\";\n"
    "    shl.b64 %rd52, %rd57, 4;\n"
    "    add.s64 %rd51, %rd18, %rd52;\n"
    "    ld.global.cg.v2.u64 {%rd49,%rd50}, [%rd51];\n"
    "    xor.b64 %rd53, %rd50, %rd61;\n"
    "    xor.b64 %rd61, %rd53, %rd49;\n"
    "    add.s64 %rd57, %rd57, %rd1;\n"
    "    setp.lt.u64 %p4, %rd57, %rd19; @%p4 bra $L1_4;\n"
    "$L1_5:\n"
    "    setp.ne.s64 %p5, %rd61, -7121221799741372324; @%p5 bra $L1_7;\n"
    "    cvta.to.global.u64 %rd54, %rd20;\n"
    "    mov.u32 %r5, -1012545444;\n"
    "    st.global.u32 [%rd54], %r5;\n"
    "$L1_7:\n"
    "    ret;\n"
    "}\n",
    // kbi_copy(dst, src, n16): the copy roof. Tiles as in kbi_read; .cs (evict first) as nothing is used twice.
    ".visible .entry kbi_copy(.param .u64 kbi_copy_0, .param .u64 kbi_copy_1, .param .u64 kbi_copy_2)\n"
    "{\n"
    "    .reg .pred %p<5>; .reg .b32 %r<45>; .reg .b64 %rd<36>;\n"
    "    ld.param.u64 %rd12, [kbi_copy_0];\n"
    "    ld.param.u64 %rd13, [kbi_copy_1];\n"
    "    ld.param.u64 %rd14, [kbi_copy_2];\n"
    "    mov.u32 %r1, %ntid.x;\n"
    "    cvt.u64.u32 %rd1, %r1;\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    cvt.u64.u32 %rd15, %r2;\n"
    "    mul.wide.u32 %rd2, %r1, 4;\n"
    "    mul.lo.s64 %rd16, %rd2, %rd15;\n"
    "    mov.u32 %r3, %tid.x;\n"
    "    cvt.u64.u32 %rd17, %r3;\n"
    "    add.s64 %rd34, %rd16, %rd17;\n"
    "    mul.wide.u32 %rd4, %r1, 3;\n"
    "    add.s64 %rd18, %rd34, %rd4;\n"
    "    setp.ge.u64 %p1, %rd18, %rd14; @%p1 bra $L2_3;\n"
    "    shl.b64 %rd5, %rd1, 4;\n"
    "    mov.u32 %r4, %nctaid.x;\n"
    "    cvt.u64.u32 %rd19, %r4;\n"
    "    mul.lo.s64 %rd6, %rd2, %rd19;\n"
    "$L2_2: .pragma \"nounroll\";\n"
    "    shl.b64 %rd28, %rd34, 4;\n"
    "    add.s64 %rd20, %rd13, %rd28;\n"
    "    ld.global.cs.v4.u32 {%r5,%r6,%r7,%r8}, [%rd20];\n"
    "    add.s64 %rd21, %rd20, %rd5;\n"
    "    ld.global.cs.v4.u32 {%r9,%r10,%r11,%r12}, [%rd21];\n"
    "    add.s64 %rd22, %rd21, %rd5;\n"
    "    ld.global.cs.v4.u32 {%r13,%r14,%r15,%r16}, [%rd22];\n"
    "    add.s64 %rd23, %rd22, %rd5;\n"
    "    ld.global.cs.v4.u32 {%r17,%r18,%r19,%r20}, [%rd23];\n"
    "    add.s64 %rd24, %rd12, %rd28;\n"
    "    st.global.cs.v4.u32 [%rd24], {%r5,%r6,%r7,%r8};\n"
    "    add.s64 %rd25, %rd24, %rd5;\n"
    "    st.global.cs.v4.u32 [%rd25], {%r9,%r10,%r11,%r12};\n"
    "    add.s64 %rd26, %rd25, %rd5;\n"
    "    st.global.cs.v4.u32 [%rd26], {%r13,%r14,%r15,%r16};\n"
    "    add.s64 %rd27, %rd26, %rd5;\n"
    "    st.global.cs.v4.u32 [%rd27], {%r17,%r18,%r19,%r20};\n"
    "    add.s64 %rd34, %rd34, %rd6;\n"
    "    add.s64 %rd29, %rd34, %rd4;\n"
    "    setp.lt.u64 %p2, %rd29, %rd14; @%p2 bra $L2_2;\n"
    "$L2_3:\n"
    "    setp.ge.u64 %p3, %rd34, %rd14; @%p3 bra $L2_5;\n"
    "$L2_4: .pragma \"nounroll\";\n"
    "    shl.b64 %rd32, %rd34, 4;\n"
    "    add.s64 %rd30, %rd13, %rd32;\n"
    "    ld.global.cs.v4.u32 {%r37,%r38,%r39,%r40}, [%rd30];\n"
    "    add.s64 %rd31, %rd12, %rd32;\n"
    "    st.global.cs.v4.u32 [%rd31], {%r37,%r38,%r39,%r40};\n"
    "    add.s64 %rd34, %rd34, %rd1;\n"
    "    setp.lt.u64 %p4, %rd34, %rd14; @%p4 bra $L2_4;\n"
    "$L2_5:\n"
    "    ret;\n"
    "}\n",
    // kbi_write(dst, n16, value): the write roof; every 32-bit word becomes value.
    ".visible .entry kbi_write(.param .u64 kbi_write_0, .param .u64 kbi_write_1, .param .u32 kbi_write_2)\n"
    "{\n"
    "    .reg .pred %p<5>; .reg .b32 %r<26>; .reg .b64 %rd<30>;\n"
    "    ld.param.u64 %rd12, [kbi_write_0];\n"
    "    ld.param.u64 %rd13, [kbi_write_1];\n"
    "    ld.param.u32 %r1, [kbi_write_2];\n"
    "    mov.u32 %r2, %ntid.x;\n"
    "    cvt.u64.u32 %rd1, %r2;\n"
    "    mov.u32 %r3, %ctaid.x;\n"
    "    cvt.u64.u32 %rd14, %r3;\n"
    "    mul.wide.u32 %rd2, %r2, 4;\n"
    "    mul.lo.s64 %rd15, %rd2, %rd14;\n"
    "    mov.u32 %r4, %tid.x;\n"
    "    cvt.u64.u32 %rd16, %r4;\n"
    "    add.s64 %rd28, %rd15, %rd16;\n"
    "    mul.wide.u32 %rd4, %r2, 3;\n"
    "    add.s64 %rd17, %rd28, %rd4;\n"
    "    setp.ge.u64 %p1, %rd17, %rd13; @%p1 bra $L3_3;\n"
    "    shl.b64 %rd5, %rd1, 4;\n"
    "    mov.u32 %r5, %nctaid.x;\n"
    "    cvt.u64.u32 %rd18, %r5;\n"
    "    mul.lo.s64 %rd6, %rd2, %rd18;\n"
    "$L3_2: .pragma \"nounroll\";\n"
    "    shl.b64 %rd23, %rd28, 4;\n"
    "    add.s64 %rd19, %rd12, %rd23;\n"
    "    st.global.cs.v4.u32 [%rd19], {%r1,%r1,%r1,%r1};\n"
    "    add.s64 %rd20, %rd19, %rd5;\n"
    "    st.global.cs.v4.u32 [%rd20], {%r1,%r1,%r1,%r1};\n"
    "    add.s64 %rd21, %rd20, %rd5;\n"
    "    st.global.cs.v4.u32 [%rd21], {%r1,%r1,%r1,%r1};\n"
    "    add.s64 %rd22, %rd21, %rd5;\n"
    "    st.global.cs.v4.u32 [%rd22], {%r1,%r1,%r1,%r1};\n"
    "    add.s64 %rd28, %rd28, %rd6;\n"
    "    add.s64 %rd24, %rd28, %rd4;\n"
    "    setp.lt.u64 %p2, %rd24, %rd13; @%p2 bra $L3_2;\n"
    "$L3_3:\n"
    "    setp.ge.u64 %p3, %rd28, %rd13; @%p3 bra $L3_5;\n"
    "$L3_4: .pragma \"nounroll\";\n"
    "    shl.b64 %rd26, %rd28, 4;\n"
    "    add.s64 %rd25, %rd12, %rd26;\n"
    "    st.global.cs.v4.u32 [%rd25], {%r1,%r1,%r1,%r1};\n"
    "    add.s64 %rd28, %rd28, %rd1;\n"
    "    setp.lt.u64 %p4, %rd28, %rd13; @%p4 bra $L3_4;\n"
    "$L3_5:\n"
    "    ret;\n"
    "}\n",
    // kbi_gate(flag, deadline_ns): holds the stream until *flag != 0 (mapped host memory), at most deadline_ns.
    ".visible .entry kbi_gate(.param .u64 kbi_gate_0, .param .u64 kbi_gate_1)\n"
    "{\n"
    "    .reg .pred %p<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
    "    ld.param.u64 %rd4, [kbi_gate_0];\n"
    "    ld.param.u64 %rd3, [kbi_gate_1];\n"
    "    cvta.to.global.u64 %rd1, %rd4;\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    or.b32 %r3, %r2, %r1;\n"
    "    setp.ne.s32 %p1, %r3, 0; @%p1 bra $L4_4;\n"
    "    mov.u64 %rd5, %globaltimer;\n"
    "    ld.volatile.global.u32 %r4, [%rd1];\n"
    "    setp.ne.s32 %p2, %r4, 0; @!%p2 bra $L4_2;\n"
    "$L4_4:\n"
    "    ret;\n"
    "$L4_2: .pragma \"nounroll\";\n"
    "    mov.u64 %rd6, %globaltimer;\n"
    "    sub.s64 %rd7, %rd6, %rd5;\n"
    "    setp.ge.u64 %p3, %rd7, %rd3; @%p3 bra $L4_4;\n"
    "    nanosleep.u32 64;\n"
    "    ld.volatile.global.u32 %r5, [%rd1];\n"
    "    setp.eq.s32 %p4, %r5, 0; @%p4 bra $L4_2;\n"
    "    bra.uni $L4_4;\n"
    "}\n",
    // kbi_spin(cycles): every thread waits until its SM's clock has advanced by cycles.
    ".visible .entry kbi_spin(.param .u64 kbi_spin_0)\n"
    "{\n"
    "    .reg .pred %p<2>; .reg .b64 %rd<6>;\n"
    "    ld.param.u64 %rd2, [kbi_spin_0];\n"
    "    mov.u64 %rd3, %clock64;\n"
    "$L5_1: .pragma \"nounroll\";\n"
    "    mov.u64 %rd4, %clock64;\n"
    "    sub.s64 %rd5, %rd4, %rd3;\n"
    "    setp.lt.u64 %p1, %rd5, %rd2; @%p1 bra $L5_1;\n"
    "    ret;\n"
    "}\n",
    // kbi_clock(out, cycles): out = {ns, cycles} between two edges of globaltimer (it ticks once in up to 1 us) at
    // least `cycles` apart. A timer that stands still for 2^28 cycles ends the wait: then out[0] = 0.
    ".visible .entry kbi_clock(.param .u64 kbi_clock_0, .param .u64 kbi_clock_1)\n"
    "{\n"
    "    .reg .pred %p<9>; .reg .b32 %r<4>; .reg .b64 %rd<27>;\n"
    "    ld.param.u64 %rd11, [kbi_clock_0];\n"
    "    ld.param.u64 %rd12, [kbi_clock_1];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    or.b32 %r3, %r2, %r1;\n"
    "    setp.ne.s32 %p1, %r3, 0; @%p1 bra $L6_8;\n"
    "    cvta.to.global.u64 %rd1, %rd11;\n"
    "    add.s64 %rd2, %rd12, 268435456;\n"
    "    mov.u64 %rd13, %clock64;\n"
    "    mov.u64 %rd14, %globaltimer;\n"
    "$L6_2: .pragma \"nounroll\";\n"
    "    mov.u64 %rd15, %globaltimer;\n"
    "    mov.u64 %rd16, %clock64;\n"
    "    setp.eq.s64 %p2, %rd15, %rd14;\n"
    "    sub.s64 %rd17, %rd16, %rd13;\n"
    "    setp.lt.u64 %p3, %rd17, %rd2;\n"
    "    and.pred %p4, %p2, %p3;\n"
    "    @%p4 bra $L6_2;\n"
    "    mov.u64 %rd18, %clock64;\n"
    "$L6_4: .pragma \"nounroll\";\n"
    "    mov.u64 %rd19, %clock64;\n"
    "    sub.s64 %rd20, %rd19, %rd16;\n"
    "    setp.lt.u64 %p5, %rd20, %rd12; @%p5 bra $L6_4;\n"
    "    mov.u64 %rd21, %globaltimer;\n"
    "$L6_6: .pragma \"nounroll\";\n"
    "    mov.u64 %rd22, %globaltimer;\n"
    "    mov.u64 %rd23, %clock64;\n"
    "    setp.eq.s64 %p6, %rd22, %rd21;\n"
    "    sub.s64 %rd24, %rd23, %rd18;\n"
    "    setp.lt.u64 %p7, %rd24, %rd2;\n"
    "    and.pred %p8, %p6, %p7;\n"
    "    @%p8 bra $L6_6;\n"
    "    sub.s64 %rd25, %rd22, %rd15;\n"
    "    st.global.u64 [%rd1], %rd25;\n"
    "    sub.s64 %rd26, %rd23, %rd16;\n"
    "    st.global.u64 [%rd1+8], %rd26;\n"
    "$L6_8:\n"
    "    ret;\n"
    "}\n",
    // kbi_fma(out, iters): the FMA roof: 16 chains x = x a + b per thread, 16 steps deep per iteration, that is 256
    // FMA per thread and iteration. The sum is stored only if it is NaN, which it is not.
    ".visible .entry kbi_fma(.param .u64 kbi_fma_0, .param .u64 kbi_fma_1)\n"
    "{\n"
    "    .reg .pred %p<4>; .reg .f32 %f<117>; .reg .b32 %r<2>; .reg .b64 %rd<7>;\n"
    "    ld.param.u64 %rd4, [kbi_fma_0];\n"
    "    ld.param.u64 %rd6, [kbi_fma_1];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    cvt.rn.f32.u32 %f35, %r1;\n"
    "    mul.rn.f32 %f36, %f35, 0f358637BD;\n"
    "    add.rn.f32 %f1, %f36, 0f3F000000;\n"
    "    setp.eq.s64 %p1, %rd6, 0; @%p1 bra $L7_5;\n"
    "    cvta.to.global.u64 %rd1, %rd4;\n"
    "    mov.f32 %f116, 0f00000000; mov.f32 %f51, 0f3F800000; mov.f32 %f114, 0f40000000;\n"
    "    mov.f32 %f113, 0f40400000; mov.f32 %f112, 0f40800000; mov.f32 %f111, 0f40A00000;\n"
    "    mov.f32 %f110, 0f40C00000; mov.f32 %f109, 0f40E00000; mov.f32 %f108, 0f41000000;\n"
    "    mov.f32 %f107, 0f41100000; mov.f32 %f106, 0f41200000; mov.f32 %f105, 0f41300000;\n"
    "    mov.f32 %f104, 0f41400000; mov.f32 %f103, 0f41500000; mov.f32 %f102, 0f41600000;\n"
    "    mov.f32 %f101, 0f41700000; mov.f32 %f115, %f51;\n"
    "$L7_2: .pragma \"nounroll\";\n",
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA KBI_PTX_FMA,
    "    add.s64 %rd6, %rd6, -1;\n"
    "    setp.ne.s64 %p2, %rd6, 0; @%p2 bra $L7_2;\n"
    "    add.rn.f32 %f87, %f116, %f115;\n"
    "    add.rn.f32 %f88, %f87, %f114;\n"
    "    add.rn.f32 %f89, %f88, %f113;\n"
    "    add.rn.f32 %f90, %f89, %f112;\n"
    "    add.rn.f32 %f91, %f90, %f111;\n"
    "    add.rn.f32 %f92, %f91, %f110;\n"
    "    add.rn.f32 %f93, %f92, %f109;\n"
    "    add.rn.f32 %f94, %f93, %f108;\n"
    "    add.rn.f32 %f95, %f94, %f107;\n"
    "    add.rn.f32 %f96, %f95, %f106;\n"
    "    add.rn.f32 %f97, %f96, %f105;\n"
    "    add.rn.f32 %f98, %f97, %f104;\n"
    "    add.rn.f32 %f99, %f98, %f103;\n"
    "    add.rn.f32 %f100, %f99, %f102;\n"
    "    add.rn.f32 %f34, %f100, %f101;\n"
    "    setp.num.f32 %p3, %f34, %f34; @%p3 bra $L7_5;\n"
    "    st.global.f32 [%rd1], %f34;\n"
    "$L7_5:\n"
    "    ret;\n"
    "}\n",
    // kbi_fill(p, n, dtype, kind, seed, tensor): the fill described at random; a thread makes a block of 4 elements.
    // Vector stores where p and the block allow, else byte by byte.
    ".visible .entry kbi_fill(.param .u64 kbi_fill_0, .param .u64 kbi_fill_1, .param .u32 kbi_fill_2,\n"
    "    .param .u32 kbi_fill_3, .param .u64 kbi_fill_4, .param .u32 kbi_fill_5)\n"
    "{\n"
    "    .reg .pred %p<43>; .reg .b16 %rs<12>; .reg .f32 %f<5>; .reg .b32 %r<140>; .reg .f64 %fd<82>;\n"
    "    .reg .b64 %rd<75>;\n"
    "    ld.param.u64 %rd35, [kbi_fill_0];\n"
    "    ld.param.u64 %rd36, [kbi_fill_1];\n"
    "    ld.param.u32 %r46, [kbi_fill_2];\n"
    "    ld.param.u32 %r47, [kbi_fill_3];\n"
    "    ld.param.u64 %rd37, [kbi_fill_4];\n"
    "    mov.u32 %r49, %ctaid.x;\n"
    "    mov.u32 %r50, %ntid.x;\n"
    "    cvt.u64.u32 %rd1, %r50;\n"
    "    mul.wide.u32 %rd38, %r49, %r50;\n"
    "    mov.u32 %r51, %tid.x;\n"
    "    cvt.u64.u32 %rd39, %r51;\n"
    "    add.s64 %rd66, %rd38, %rd39;\n"
    "    shl.b64 %rd65, %rd66, 2;\n"
    "    setp.ge.u64 %p2, %rd65, %rd36; @%p2 bra $L8_35;\n"
    "    setp.eq.s32 %p3, %r47, 1;\n"
    "    setp.lt.u32 %p4, %r46, 5;\n"
    "    or.pred %p1, %p4, %p3;\n"
    "    setp.gt.u32 %p5, %r46, 10;\n"
    "    setp.eq.s32 %p6, %r47, 2;\n"
    "    and.pred %p7, %p5, %p6;\n"
    "    selp.u32 %r2, 1, 0, %p7;\n"
    "    cvt.u32.u64 %r3, %rd37;\n"
    "    shr.u64 %rd40, %rd37, 32;\n"
    "    cvt.u32.u64 %r4, %rd40;\n"
    "    shl.b32 %r52, %r46, 2;\n"
    "    mov.u64 %rd41, 899542513947424;\n"
    "    shr.u64 %rd42, %rd41, %r52;\n"
    "    cvt.u32.u64 %r53, %rd42;\n"
    "    and.b32 %r54, %r53, 15;\n"
    "    mov.u32 %r55, 4;\n"
    "    shl.b32 %r56, %r55, %r54;\n"
    "    add.s32 %r57, %r56, -1;\n"
    "    mov.u32 %r58, -1;\n"
    "    and.b64 %rd4, %rd42, 15;\n"
    "    min.u32 %r59, %r57, 15;\n"
    "    cvt.u64.u32 %rd43, %r59;\n"
    "    and.b64 %rd5, %rd43, %rd35;\n"
    "    cvt.u16.u32 %rs1, %r54;\n"
    "    shl.b32 %r60, %r58, %r54;\n"
    "    not.b32 %r5, %r60;\n"
    "    mov.u32 %r61, %nctaid.x;\n"
    "    cvt.u64.u32 %rd44, %r61;\n"
    "    mul.lo.s64 %rd6, %rd44, %rd1;\n"
    "    cvta.to.global.u64 %rd7, %rd35;\n"
    "    not.pred %p18, %p1;\n"
    "$L8_2: .pragma \"nounroll\";\n"
    "    setp.eq.s32 %p8, %r47, 0;\n"
    "    mov.u32 %r138, 0; mov.u32 %r113, %r138; mov.u32 %r114, %r138; mov.u32 %r126, %r138;\n"
    "    mov.u32 %r116, %r138; mov.u32 %r128, %r138; mov.u32 %r135, %r138; mov.u32 %r136, %r138;\n"
    "    mov.u32 %r137, %r138;\n"
    "    @%p8 bra $L8_7;\n"
    "    cvt.u32.u64 %r6, %rd66;\n"
    "    shr.u64 %rd10, %rd66, 32;\n"
    "    mov.u32 %r73, 0; mov.u32 %r113, %r73; mov.u32 %r114, %r73; mov.u32 %r126, %r73; mov.u32 %r116, %r73;\n"
    "    mov.u32 %r117, %r2;\n"
    "$L8_4: .pragma \"nounroll\";\n"
    "    mov.u32 %r137, %r116; mov.u32 %r136, %r126; mov.u32 %r135, %r114; mov.u32 %r128, %r113;\n"
    "    ld.param.u32 %r114, [kbi_fill_5];\n"
    "    mov.u64 %rd67, %rd10; mov.u32 %r118, %r73; mov.u32 %r119, %r4; mov.u32 %r120, %r3;\n"
    "    mov.u32 %r113, %r117; mov.u32 %r116, %r6;\n"
    "$L8_5: .pragma \"nounroll\";\n"
    "    mul.wide.u32 %rd45, %r116, -766435501;\n"
    "    mul.wide.u32 %rd12, %r114, -845247145;\n"
    "    cvt.u32.u64 %r75, %rd67;\n"
    "    xor.b32 %r76, %r120, %r75;\n"
    "    shr.u64 %rd46, %rd12, 32;\n"
    "    cvt.u32.u64 %r77, %rd46;\n"
    "    xor.b32 %r116, %r76, %r77;\n"
    "    shr.u64 %rd47, %rd45, 32;\n"
    "    cvt.u32.u64 %r78, %rd47;\n"
    "    xor.b32 %r79, %r119, %r113;\n"
    "    xor.b32 %r114, %r79, %r78;\n"
    "    cvt.u32.u64 %r113, %rd45;\n"
    "    add.s32 %r120, %r120, -1640531527;\n"
    "    add.s32 %r119, %r119, -1150833019;\n"
    "    add.s32 %r118, %r118, 1;\n"
    "    setp.ne.s32 %p9, %r118, 10;\n"
    "    mov.u64 %rd67, %rd12;\n"
    "    @%p9 bra $L8_5;\n"
    "    cvt.u32.u64 %r126, %rd12;\n"
    "    add.s32 %r25, %r117, -1;\n"
    "    setp.gt.s32 %p10, %r117, 0;\n"
    "    mov.u32 %r117, %r25;\n"
    "    @%p10 bra $L8_4;\n"
    "$L8_7:\n"
    "    mov.f64 %fd80, 0d0000000000000000; mov.u64 %rd71, 0; mov.u64 %rd13, %rd71; mov.u64 %rd14, %rd71;\n"
    "$L8_8: .pragma \"nounroll\";\n"
    "    mov.u64 %rd15, %rd14; mov.u64 %rd14, %rd13; mov.u64 %rd13, %rd71; mov.u32 %r39, %r137;\n"
    "    mov.u32 %r137, %r136; mov.u32 %r136, %r135; mov.u32 %r36, %r116; mov.u32 %r116, %r126;\n"
    "    mov.u32 %r126, %r114;\n"
    "    and.b32 %r81, %r138, 1;\n"
    "    setp.eq.b32 %p11, %r81, 1;\n"
    "    setp.ne.s32 %p12, %r47, 1;\n"
    "    or.pred %p13, %p12, %p11;\n"
    "    mov.f64 %fd81, %fd80;\n"
    "    @%p13 bra $L8_10;\n"
    "    shr.u32 %r82, %r36, 8;\n"
    "    add.s32 %r83, %r82, 1;\n"
    "    cvt.rn.f64.s32 %fd8, %r83;\n"
    "    mov.b64 %rd51, %fd8;\n"
    "    add.s64 %rd52, %rd51, 2638149301829632;\n"
    "    shr.u64 %rd53, %rd52, 52;\n"
    "    cvt.u32.u64 %r84, %rd53;\n"
    "    and.b64 %rd54, %rd52, 4503599627370495;\n"
    "    add.s64 %rd55, %rd54, 4604544269498187776;\n"
    "    mov.b64 %fd9, %rd55;\n"
    "    add.rn.f64 %fd10, %fd9, 0dBFF0000000000000;\n",
    "    add.rn.f64 %fd11, %fd9, 0d3FF0000000000000;\n"
    "    div.rn.f64 %fd12, %fd10, %fd11;\n"
    "    mul.rn.f64 %fd13, %fd12, %fd12;\n"
    "    mul.rn.f64 %fd14, %fd13, 0d3FB1111111111111; add.rn.f64 %fd15, %fd14, 0d3FB3B13B13B13B14;\n"
    "    mul.rn.f64 %fd16, %fd13, %fd15; add.rn.f64 %fd17, %fd16, 0d3FB745D1745D1746;\n"
    "    mul.rn.f64 %fd18, %fd13, %fd17; add.rn.f64 %fd19, %fd18, 0d3FBC71C71C71C71C;\n"
    "    mul.rn.f64 %fd20, %fd13, %fd19; add.rn.f64 %fd21, %fd20, 0d3FC2492492492492;\n"
    "    mul.rn.f64 %fd22, %fd13, %fd21; add.rn.f64 %fd23, %fd22, 0d3FC999999999999A;\n"
    "    mul.rn.f64 %fd24, %fd13, %fd23; add.rn.f64 %fd25, %fd24, 0d3FD5555555555555;\n"
    "    mul.rn.f64 %fd26, %fd13, %fd25; add.rn.f64 %fd27, %fd26, 0d3FF0000000000000;\n"
    "    mov.u32 %r85, 1047;\n"
    "    sub.s32 %r86, %r85, %r84;\n"
    "    cvt.rn.f64.s32 %fd28, %r86;\n"
    "    mul.rn.f64 %fd29, %fd28, 0d3FE62E42FEFA39EF;\n"
    "    mul.rn.f64 %fd30, %fd12, 0dC000000000000000;\n"
    "    mul.rn.f64 %fd31, %fd30, %fd27;\n"
    "    add.rn.f64 %fd32, %fd29, %fd31;\n"
    "    add.rn.f64 %fd33, %fd32, %fd32;\n"
    "    sqrt.rn.f64 %fd34, %fd33;\n"
    "    shr.u32 %r87, %r116, 8;\n"
    "    add.s32 %r88, %r87, 2097152;\n"
    "    shr.u32 %r89, %r88, 22;\n"
    "    and.b32 %r90, %r88, 29360128;\n"
    "    sub.s32 %r91, %r87, %r90;\n"
    "    cvt.rn.f64.s32 %fd35, %r91;\n"
    "    mul.rn.f64 %fd36, %fd35, 0d3E9921FB54442C73;\n"
    "    mul.rn.f64 %fd37, %fd36, %fd36;\n"
    "    mul.rn.f64 %fd38, %fd37, 0d3DE6124613A86D09; add.rn.f64 %fd39, %fd38, 0dBE5AE64567F544E4;\n"
    "    mul.rn.f64 %fd40, %fd37, %fd39; add.rn.f64 %fd41, %fd40, 0d3EC71DE3A556C734;\n"
    "    mul.rn.f64 %fd42, %fd37, %fd41; add.rn.f64 %fd43, %fd42, 0dBF2A01A01A01A01A;\n"
    "    mul.rn.f64 %fd44, %fd37, %fd43; add.rn.f64 %fd45, %fd44, 0d3F81111111111111;\n"
    "    mul.rn.f64 %fd46, %fd37, %fd45; add.rn.f64 %fd47, %fd46, 0dBFC5555555555555;\n"
    "    mul.rn.f64 %fd48, %fd37, %fd47;\n"
    "    mul.rn.f64 %fd49, %fd36, %fd48;\n"
    "    add.rn.f64 %fd50, %fd36, %fd49;\n"
    "    mul.rn.f64 %fd51, %fd37, 0d3E21EED8EFF8D898; add.rn.f64 %fd52, %fd51, 0dBE927E4FB7789F5C;\n"
    "    mul.rn.f64 %fd53, %fd37, %fd52; add.rn.f64 %fd54, %fd53, 0d3EFA01A01A01A01A;\n"
    "    mul.rn.f64 %fd55, %fd37, %fd54; add.rn.f64 %fd56, %fd55, 0dBF56C16C16C16C17;\n"
    "    mul.rn.f64 %fd57, %fd37, %fd56; add.rn.f64 %fd58, %fd57, 0d3FA5555555555555;\n"
    "    mul.rn.f64 %fd59, %fd37, %fd58; add.rn.f64 %fd60, %fd59, 0dBFE0000000000000;\n"
    "    mul.rn.f64 %fd61, %fd37, %fd60; add.rn.f64 %fd62, %fd61, 0d3FF0000000000000;\n"
    "    and.b32 %r92, %r88, 4194304;\n"
    "    setp.eq.s32 %p14, %r92, 0;\n"
    "    selp.f64 %fd63, %fd62, %fd50, %p14;\n"
    "    selp.f64 %fd64, %fd50, %fd62, %p14;\n"
    "    add.s32 %r93, %r89, 1;\n"
    "    and.b32 %r94, %r93, 2;\n"
    "    setp.eq.s32 %p15, %r94, 0;\n"
    "    neg.f64 %fd65, %fd63;\n"
    "    selp.f64 %fd66, %fd63, %fd65, %p15;\n"
    "    and.b32 %r95, %r88, 8388608;\n"
    "    setp.eq.s32 %p16, %r95, 0;\n"
    "    neg.f64 %fd67, %fd64;\n"
    "    selp.f64 %fd68, %fd64, %fd67, %p16;\n"
    "    mul.rn.f64 %fd69, %fd34, %fd66;\n"
    "    cvt.rn.f32.f64 %f2, %fd69;\n"
    "    cvt.f64.f32 %fd81, %f2;\n"
    "    mul.rn.f64 %fd70, %fd34, %fd68;\n"
    "    cvt.rn.f32.f64 %f3, %fd70;\n"
    "    cvt.f64.f32 %fd80, %f3;\n"
    "$L8_10:\n"
    "    cvt.u64.u32 %rd56, %r138;\n"
    "    add.s64 %rd16, %rd65, %rd56;\n"
    "    cvt.u64.u32 %rd57, %r39;\n"
    "    cvt.u64.u32 %rd58, %r36;\n"
    "    bfi.b64 %rd59, %rd57, %rd58, 32, 32;\n"
    "    setp.eq.s32 %p17, %r47, 3;\n"
    "    selp.b64 %rd71, %rd16, %rd59, %p17;\n"
    "    @%p18 bra $L8_20;\n"
    "    shr.u32 %r96, %r36, 8;\n"
    "    cvt.rn.f64.s32 %fd71, %r96;\n"
    "    mul.rn.f64 %fd72, %fd71, 0d3E70000000000000;\n"
    "    cvt.rn.f64.s64 %fd73, %rd16;\n"
    "    selp.f64 %fd74, %fd73, %fd72, %p17;\n"
    "    selp.f64 %fd6, %fd81, %fd74, %p3;\n"
    "    mov.b64 %rd71, %fd6;\n"
    "    cvt.rn.f32.f64 %f1, %fd6;\n"
    "    mov.b32 %r41, %f1;\n"
    "    setp.gt.s32 %p21, %r46, 2; @%p21 bra $L8_15;\n"
    "    setp.eq.s32 %p24, %r46, 1; @%p24 bra $L8_19;\n"
    "    setp.eq.s32 %p25, %r46, 2; @%p25 bra $L8_20;\n"
    "    bra.uni $L8_14;\n"
    "$L8_15:\n"
    "    setp.eq.s32 %p22, %r46, 3; @%p22 bra $L8_18;\n"
    "    setp.ne.s32 %p23, %r46, 4; @%p23 bra $L8_14;\n"
    "    shr.u32 %r97, %r41, 16;\n"
    "    and.b32 %r98, %r97, 1;\n"
    "    add.s32 %r99, %r41, %r98;\n"
    "    add.s32 %r100, %r99, 32767;\n"
    "    shr.u32 %r101, %r100, 16;\n"
    "    cvt.u64.u32 %rd71, %r101;\n"
    "    bra.uni $L8_20;\n"
    "$L8_19:\n"
    "    cvt.u64.u32 %rd71, %r41;\n"
    "    bra.uni $L8_20;\n"
    "$L8_18:\n"
    "    cvt.rn.f16.f32 %rs2, %f1;\n"
    "    cvt.u64.u16 %rd71, %rs2;\n",
    "    bra.uni $L8_20;\n"
    "$L8_14:\n"
    "    and.b32 %r112, %r46, 1;\n"
    "    setp.eq.s32 %p26, %r112, 0;\n"
    "    mul.rn.f64 %fd75, %fd6, 0d4020000000000000;\n"
    "    setp.lt.f64 %p27, %fd75, 0d0000000000000000;\n"
    "    selp.f64 %fd76, 0dBFE0000000000000, 0d3FE0000000000000, %p27;\n"
    "    add.rn.f64 %fd77, %fd75, %fd76;\n"
    "    setp.lt.f64 %p28, %fd77, 0d0000000000000000;\n"
    "    and.pred %p29, %p26, %p28;\n"
    "    selp.f64 %fd78, 0d0000000000000000, %fd77, %p29;\n"
    "    cvt.rzi.s64.f64 %rd71, %fd78;\n"
    "$L8_20:\n"
    "    add.s32 %r138, %r138, 1;\n"
    "    setp.ne.s32 %p30, %r138, 4;\n"
    "    mov.u32 %r114, %r113; mov.u32 %r135, %r128;\n"
    "    @%p30 bra $L8_8;\n"
    "    setp.eq.s64 %p31, %rd5, 0;\n"
    "    cvt.u32.u64 %r102, %rd4;\n"
    "    shl.b64 %rd60, %rd65, %r102;\n"
    "    add.s64 %rd24, %rd7, %rd60;\n"
    "    sub.s64 %rd25, %rd36, %rd65;\n"
    "    setp.gt.u64 %p32, %rd25, 3;\n"
    "    and.pred %p33, %p31, %p32;\n"
    "    @!%p33 bra $L8_22;\n"
    "    setp.gt.s16 %p37, %rs1, 1; @%p37 bra $L8_29;\n"
    "    setp.eq.s16 %p40, %rs1, 0; @%p40 bra $L8_33;\n"
    "    setp.eq.s16 %p41, %rs1, 1; @!%p41 bra $L8_34;\n"
    "    cvt.u16.u64 %rs4, %rd71;\n"
    "    cvt.u16.u64 %rs5, %rd13;\n"
    "    cvt.u16.u64 %rs6, %rd14;\n"
    "    cvt.u16.u64 %rs7, %rd15;\n"
    "    st.global.v4.u16 [%rd24], {%rs7, %rs6, %rs5, %rs4};\n"
    "    bra.uni $L8_34;\n"
    "$L8_22:\n"
    "    min.u64 %rd61, %rd25, 4;\n"
    "    cvt.u32.u64 %r104, %rd61;\n"
    "    shl.b32 %r43, %r104, %r102;\n"
    "    setp.eq.s32 %p34, %r43, 0; @%p34 bra $L8_34;\n"
    "    mov.u32 %r139, 0;\n"
    "$L8_24: .pragma \"nounroll\";\n"
    "    cvt.u64.u32 %rd62, %r139;\n"
    "    add.s64 %rd63, %rd24, %rd62;\n"
    "    st.global.u8 [%rd63], %rd15;\n"
    "    and.b32 %r106, %r139, %r5;\n"
    "    setp.eq.s32 %p35, %r106, %r5;\n"
    "    selp.b64 %rd29, %rd71, %rd13, %p35;\n"
    "    selp.b64 %rd30, %rd13, %rd14, %p35;\n"
    "    shr.u64 %rd64, %rd15, 8;\n"
    "    selp.b64 %rd15, %rd14, %rd64, %p35;\n"
    "    add.s32 %r139, %r139, 1;\n"
    "    setp.lt.u32 %p36, %r139, %r43;\n"
    "    mov.u64 %rd13, %rd29; mov.u64 %rd14, %rd30;\n"
    "    @%p36 bra $L8_24;\n"
    "    bra.uni $L8_34;\n"
    "$L8_29:\n"
    "    setp.eq.s16 %p38, %rs1, 2; @%p38 bra $L8_32;\n"
    "    setp.ne.s16 %p39, %rs1, 3; @%p39 bra $L8_34;\n"
    "    st.global.v2.u64 [%rd24], {%rd15, %rd14};\n"
    "    st.global.v2.u64 [%rd24+16], {%rd13, %rd71};\n"
    "    bra.uni $L8_34;\n"
    "$L8_33:\n"
    "    cvt.u16.u64 %rs8, %rd71;\n"
    "    cvt.u16.u64 %rs9, %rd13;\n"
    "    cvt.u16.u64 %rs10, %rd14;\n"
    "    cvt.u16.u64 %rs11, %rd15;\n"
    "    st.global.v4.u8 [%rd24], {%rs11, %rs10, %rs9, %rs8};\n"
    "    bra.uni $L8_34;\n"
    "$L8_32:\n"
    "    cvt.u32.u64 %r107, %rd71;\n"
    "    cvt.u32.u64 %r108, %rd13;\n"
    "    cvt.u32.u64 %r109, %rd14;\n"
    "    cvt.u32.u64 %r110, %rd15;\n"
    "    st.global.v4.u32 [%rd24], {%r110, %r109, %r108, %r107};\n"
    "$L8_34:\n"
    "    add.s64 %rd66, %rd66, %rd6;\n"
    "    shl.b64 %rd65, %rd66, 2;\n"
    "    setp.lt.u64 %p42, %rd65, %rd36; @%p42 bra $L8_2;\n"
    "$L8_35:\n"
    "    ret;\n"
    "}\n",
};
// clang-format on

static void kbi_ptx_put(kbi_text* to) {
    for (int i = 0; i < KBI_COUNT(kbi_ptx); i++) kbi_puts(to, kbi_ptx[i]);
}
#endif

#if defined(__clang__)
KBI_SLOW_END
#else
#pragma GCC pop_options
#endif
#endif // KBENCH_IMPLEMENTATION

/*---------------------------------------------------------------------------------------------------------------
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
---------------------------------------------------------------------------------------------------------------*/
