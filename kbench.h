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
    process, its thread or the gate stood still is timed again, and counted (samples_retaken).
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
    >>numbers      foundation: doubles written and read, exactly, whatever the locale
    >>util         foundation: arenas, growing text, names that people mistype, files
    >>names        foundation: what dtypes and flags are called
    >>clock        foundation: the host's monotonic clock, and a thread's own, in nanoseconds
    >>cpus         foundation: the processors: which this process may run on, their clock, and who else had them
    >>random       foundation: reproducible fills: an element depends on seed, tensor and index alone
    >>stats        foundation: summaries of a sample and its interval. Pure functions; no globals
    >>paired       foundation: two arms measured in the same rounds: interval and verdict. Pure functions
    >>spread       foundation: what fresh processes, and errors known beforehand, add to an interval. Pure functions
    >>arrays       foundation: whether one array matches another; NaN never does. Pure functions
    >>fiber        foundation: a function suspended in its middle, on a stack of its own
    >>handed       foundation: what the stages hand to each other: recipe, case, measured, machine
    >>insight      foundation: what a look inside of a case found: kernels, copies, calls of its block. Pure functions
    >>fields       foundation: a record's keys as data, and the names by which people choose among them
    >>changes      foundation: two sets of records: which belong together, and what is known of a change. Pure functions
    >>differences  foundation: what two records' machines differ in, and whether their times may be compared
    >>registry     declare: what the KBENCH macros registered, in the order of the source
    >>cli          plan: the options, from one table that also prints --help
    >>arguments    plan: the command line read into the options
    >>line         plan: the command line as a whole: what its options mean together
    >>ranges       plan: the values of axes, written as lists: 512,1024:8192:*2
    >>patterns     plan: regular expressions on the names of cases, which the system compiles and matches
    >>shards       plan: a plan, how long its groups may take, and which of them a shard of it has
    >>plan         plan: from registry and command line to an ordered list of cases in comparison groups
    >>list         plan: what --list, --list-ops and --list-sizes print
    >>run          measure: one benchmark function being run: its state, and the table of functions a device fills in
    >>lab          measure: all that a measuring process keeps from one case to the next
    >>nvtx         measure: names of cases and phases, for whatever profiler listens
    >>perf         measure: the processor's counters over host work, from the kernel's perf_event_open
    >>host         measure: the cpu backend, and the tests' script backend, with their timers
    >>memory       measure: tracked allocations with guard bands; peaks, leaks and overwritten guards
    >>device       measure: the GPU: stream, gate, events, eviction, clock
    >>nvml         measure: clocks, power, temperature, throttling, other processes, through NVML
    >>cupti        measure: CUPTI: durations of kernels as the driver records them, for the timers and for a look inside
    >>timers       measure: how a block of GPU work is timed: cold, hot, rotating, by CUPTI
    >>calibrate    measure: what events read too much, against what an empty kernel takes
    >>audit        measure: the timed block seen once under stream capture, where nothing executes
    >>activity     measure: the block's kernels, copies and calls, run by run, from CUPTI's records
    >>counters     measure: the hardware's counters over the block, through CUPTI's range profiler
    >>roofs        measure: what this device reaches: bandwidth of copies, reads and writes, arithmetic
    >>cuda         measure: the cuda backend put together and opened; which backend a recipe asks for
    >>alike        measure: whether later launches do what the first ones did, by their times
    >>inside       measure: runs of the block that instruments look into, apart from those that are timed
    >>engine       measure: the state machine that hands out checked, audited, warm-up and sample units
    >>calls        measure: the calls of a body that make a case: one that is checked, one that is measured
    >>body         measure: what a body asks and says: axes, amounts, checks, words
    >>rounds       measure: the cases of a comparison group, one alone or several in turn
    >>verdict      judge: from samples and facts to statistics, flags, speedup and rating
    >>counted      judge: what was counted of a case against what it declared, and what bounds it
    >>rivals       judge: several processes of a case, and the rivals of a group: who is faster, and how surely
    >>compare      judge: how surely the records of two sets differ, what it means, and how each case went over time
    >>facts        record: what else may tell two machines' times apart, as the system's files have it
    >>record       record: a case's identity, machine and run, put into its record
    >>json         record: one object per case; never NaN, never Infinity, never a comma for a point
    >>parse        record: JSON taken apart, a buffer at a time: texts, numbers, lists; it trusts nothing
    >>reader       record: files of records read back, whatever is in them
    >>store        record: files that survive a crash
    >>columns      render: what render is told beside the records, and what stands in a column
    >>profile      render: what was found inside of a case: below its row in the table, and as a timeline
    >>table        render: the terminal table and its summary
    >>shifts       render: what changed from one set of records to another, and how it went over time
    >>text         render: records as CSV and Markdown
    >>tools        render: records for the tools of other benchmarks: Google Benchmark's JSON, and Go's benchmark format
    >>report       render: report.md: every case, summaries by size, the best of each operation, what holds it back
    >>progress     render: the progress line on stderr
    >>resume       program: which cases an earlier run has left records of, and what is still to be done
    >>budget       program: --budget, a time for the whole run: what each case gets of it, and what has no room
    >>worker       program: the process that runs cases, told by pipe which, and answering
    >>outputs      program: what a run or --load writes when all records are there: opened before, replaced as a whole
    >>supervisor   program: the process that owns the terminal, the files and the watchdog. It never touches the GPU
    >>groups       program: what the worker is asked for: a machine, and the cases of a group, measured or looked into
    >>laps         program: a lap, the part of the plan that is measured, judged and stored at once
    >>program      program: a run from command line to exit code
    >>gate         program: baselines, histories, goals, and what they make of the exit code
    >>load         program: records of earlier runs, shown without a run
    >>race         program: built programs in alternating fresh processes
    >>embed        program: measuring inside another program
    >>proving      program: what the self-test measures: kernels with memory, known work, planted mistakes
    >>selftest     program: the measurement measured, and held against bars
    >>main         program: what KBENCH_MAIN calls
    >>ptx          measure: the device functions of the engine and of the self-test, as text that the driver compiles

HOW A MEASUREMENT WORKS

    The way of the data: declare -> plan -> measure -> judge -> record -> render; no stage knows a later one.

    A benchmark's function is called twice. The first call runs the timed block once, waits, and looks at errors;
    kb_check after the block then decides whether there will be any timing at all. The second call runs the block once
    under stream capture (nothing executes; the audit sees copies, allocations, synchronisation, or no work at all),
    then warms up until times and clock have settled, then takes samples until the 95 % interval of the median is within
    0.5 % of it (30 to 2,000 samples, about 1 s). In the end the buffers that kb_check or kb_to_host read are put back
    as they were when the loop was entered, the block runs once more, and kb_check looks at what that run left: work
    done only in the first launch is STALE. Host code inside the block runs in all of these.

    No launch may live on what those before it did. Where the last ones take far less time than the first, take turns,
    or submit other work under capture, the word is WORK_CHANGED. --fresh asks for more: the function is called twice
    again, before and after the samples, with other seeds and in memory as the call before left it, its outputs at their
    addresses. A kernel that remembers a result, or leaves alone what is already there, is wrong then. What kb_check
    expects has to follow from kb_fill or kb->seed. (kb_open calls no function: call it again with another seed.)

    Implementations of one operation are measured in rounds, each in its turn, on one stage: the same memory
    for all of them (what each left there is swapped out and in, untimed; with --rotate all copies of its data),
    since where a buffer lies decides 1 to 3 % of a small kernel's time. The first runs of a turn, which belong
    to the one before, do not count; who follows whom is balanced; and the baseline plays once more as a rival
    of itself, the noise floor. The stage holds what KB_ALLOC gave, if it is no more than 4 GiB, on the CPU
    64 MiB. Where one of two did not share it (stage_shared: it called no KB_ALLOC, allocated otherwise when it
    was called again, or is too large), the noise floor is at least 3 %: neither is FASTER or SLOWER by less,
    and PLACEMENT stands where that withheld a verdict. EQUIVALENT then is said of the data where it lay.

    A launch on a GPU: evict L2 by reading a clean buffer; event; the block; event. All of it waits in the
    stream behind a gate until it is queued, so that no launch latency lies between the events; a sample is
    the mean of eight such launches (one where it takes longer than 0.5 ms; --launches N). From it is taken what
    the same events read too much around an empty kernel, timed in turn with the block; time_ms_raw and bias_ms
    keep both. The stream is a blocking one: work put on the default stream by mistake is waited for, not missed.
    A sample on the CPU: as many calls of the block as the clock needs to resolve them, divided by their number;
    20 us at least. One shorter than 10 ms in which others had the processor (the thread's own clock stood still,
    and it did not wait by itself) is taken again, unless they have it in more than a third of them. --cpu N keeps
    the measuring process on some processors; left alone it may move, and OpenMP spread. NOISY stands where the
    median is known to no better than 5 %; the message then says how much others had, as far as the system counts it.

    --procs N: N fresh processes in turn measure every case, each with its buffers on other pages and at other offsets.
    time_ms is the geometric mean of their medians; its interval Student's, of the logarithms, with variances pooled
    over cases of similar length (Smyth 2004), and wide enough for the median of 15 others (pi/30 of a process's
    variance). Speedups are of log ratios, likewise. Samples and what was read beside them are of the process with the
    middle median (or the lower of two); a warning stands that most raise; what fails in one has failed. A killed run
    has its finished laps: groups of at least 16 cases together.

    The program starts itself again as a worker and runs the cases there. A case that crashes, hangs or exits
    loses its own number and no other. Results go to stdout, everything else to stderr. Under compute-sanitizer, Nsight
    Compute or valgrind it is one process; a few launches of every case run and are checked, and nothing is timed.

    time_ms is the median. The interval is that of the median (order statistics: Le Boudec, Performance
    Evaluation, 2010), for as many values as the samples are worth, given how they hang together. A flag stands
    beside a time where that may lie outside its own interval, so that something can be done about it; samples
    that only look odd raise none.
    gpu_efficiency is the larger of bytes a second over bandwidth and operations a second over the rate of arithmetic,
    both measured on this very device, not a data sheet's (CPU: one core's); roof says which, >>roofs says how.

COMMAND LINE

    prog [options] [FILTER...]      --help lists the options of this build; FILTER is a regular expression
    exit codes: 0 fine; 1 a case failed or was wrong; 2 usage, nothing matched, file not writable; 3 a regression or
    a missed goal; 4 not certain, or other machines, with --fail-on noise;
    77 every selected case needs a GPU and there is none; 130 interrupted, with all that finished written

    What changed: --baseline NAME|FILE holds a run against an earlier one (--save-baseline NAME, .kbench/NAME.json),
    --compare A B one file against another, --race OLD NEW two built programs in alternating fresh processes. A
    regression lies wholly beyond the threshold, for all cases at once; the interval of two files rests on --procs, on
    what runs differed by in a --history of 6 runs or more, or else is widened by --noise. What keeps times from being
    compared (backend, GPU, driver, ECC, MIG, CPU, mode, optimisation) turns the gate off. --fail-on change: improvements, less
    memory and cases added or removed are 3 too; noise: 4 where some case is not known to lie within the threshold or
    beyond; never: 0, but for failed cases. --goal CASES:KEY>=NUMBER: 3 where a case that has a time misses it.

    Many machines: --shard K/N runs part K of N, whole comparison groups; --shard auto is the part of a Slurm array's
    task (examples/slurm). --load A.jsonl B.jsonl ... puts the records of shards in the plan's order. --budget 1h gives
    every case the same share of that time, within what --max-time and --min-time say; what had none is not run.

MEMORY RULES

    KB_ALLOC, KB_ALLOC_HOST and KB_ALLOC_PINNED belong to the case: freed by kbench when the function returns. Contents
    are 0xFF bytes (a NaN in every float type) until filled. 4 KiB on both sides are guarded; a write there is reported
    as OVERRUN. A block begins at a multiple of 256 bytes; on the stage that rivals share at one of 512, from 1 MiB on 4
    KiB behind one of 2 MiB, on the CPU as on the GPU: there two large blocks have the same address modulo a page, as
    two large ones of malloc's have. What the function allocates itself it frees itself; what it does not free is
    reported as leaked. Where nothing can be allocated the pointer is NULL, the case is marked OOM, and every later kb_
    call of this case does nothing.

THE RECORD

    --json FILE writes an array of objects, one a case, and takes the old file's place when it is complete; --jsonl FILE
    appends the same objects, one a line, each synced before the next group starts (with --procs the next lap). What
    finds no room waits for the next record, and for the end of the run. --resume with the --jsonl of a run that was
    killed measures only what it has no record of: of the same executable (its hash is binary), parameters, seed, GPU
    and processor. A comparison group that lacks a case, or in which one failed, is measured as a whole and its old
    lines go; half a line goes as well; --list --resume shows what is left. How long and how to measure (--fast, --hot)
    is not compared. All values are scalars but params (an object of the axes), counters, counter_units, environment
    (objects, too), samples_ms, process_ms and flags (lists). The keys stand in one table, KB_RECORD in >>types, with
    their groups, units and meanings: it makes the fields of kb_result and the file, in that order, all always present,
    null where they do not apply. A record says all that the table on the terminal shows of its case.
    --load FILE... reads them back, older schemas too, several put together (of the same run, case and device the last
    counts), and writes what else is asked for; it runs nothing, and its exit code says nothing of how the cases went.
    schema 2 (0.1.0): files of schema 1 lack planned, processes and others that came since.

LAST REVISIONS

    0.1.0   the first: faces, plan, measurement with gate and clean eviction, record, table, supervisor
*/
#ifndef KBENCH_H
#define KBENCH_H

/*---------------------------------------------------------------------------------------------------------------
  >>options   What to define before including the file.
              Public: KBENCH_*
              Used by: programs, >>api, >>macros, >>cxx, foundation, >>registry, >>cli, measure, >>verdict,
                       >>record, >>parse, >>profile, >>tools, program
---------------------------------------------------------------------------------------------------------------*/

/*  KBENCH_IMPLEMENTATION     in one file: brings the code, not only the declarations
    KBENCH_CUDA               in the file with the implementation, if it is compiled by a C or C++ compiler but
                              has the CUDA runtime at hand (-I, -lcudart), and in C or C++ files whose timed
                              blocks are GPU work; under nvcc it is implied
    KBENCH_NO_CUDA            no GPU support, also under nvcc
    KBENCH_NO_REPORT          leaves out what reads records and writes other formats: --load, --csv, ... are refused
    KBENCH_TOOL               makes this file a program of its own: cc -O2 -x c -DKBENCH_TOOL kbench.h -o kbench -lm
    KBENCH_SHARED             makes it a library for other languages: cc -O2 -shared -fPIC -x c -DKBENCH_SHARED kbench.h
                              -o libkbench.so -lm (with a GPU: -DKBENCH_CUDA -I$CUDA/include -L$CUDA/lib64 -lcudart)
    KBENCH_MALLOC(bytes), KBENCH_REALLOC(p, bytes), KBENCH_FREE(p)
                              the host allocator of the harness itself; define all three or none  */

#define KBENCH_VERSION_MAJOR 0
#define KBENCH_VERSION_MINOR 1
#define KBENCH_VERSION_PATCH 0
#define KBENCH_VERSION "0.1.0"

#if defined(KBENCH_MALLOC) != defined(KBENCH_FREE) || defined(KBENCH_MALLOC) != defined(KBENCH_REALLOC)
#error "kbench.h: define all of KBENCH_MALLOC, KBENCH_REALLOC and KBENCH_FREE, or none of them"
#endif

#if defined(KBENCH_TOOL) || defined(KBENCH_SHARED)
#define KBENCH_IMPLEMENTATION
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

// clang-format off
typedef enum kb_dtype {
    KB_NODTYPE, KB_F32, KB_F64, KB_F16, KB_BF16, KB_I8, KB_U8, KB_I16, KB_U16, KB_I32, KB_U32, KB_I64, KB_U64,
    KB_TF32,         // stored as f32; what tensor cores take of it
    KB_E4M3, KB_E5M2 // OCP's floats of 8 bits: up to 448, with no infinity; up to 57344
} kb_dtype;

typedef struct kb_f16 { uint16_t bits; } kb_f16;   // IEEE binary16 where the compiler has no type for it
typedef struct kb_bf16 { uint16_t bits; } kb_bf16; // bfloat16, likewise, and so on
typedef struct kb_e4m3 { uint8_t bits; } kb_e4m3;
typedef struct kb_e5m2 { uint8_t bits; } kb_e5m2;
// clang-format on

// What kb_fill writes. Values depend on the seed, the element's index and the number of kb_fill calls before it
// in the function, and on nothing else. Integers: KB_UNIFORM all bits, KB_NORMAL round(8 * normal) clamped.
typedef enum kb_kind {
    KB_ZERO,
    KB_NORMAL,  // mean 0, deviation 1
    KB_UNIFORM, // [0, 1)
    KB_IOTA     // 0, 1, 2, ...; floats of 8 bits stop at their largest, as GPUs convert
} kb_kind;

// Where kb_alloc puts a block: what KB_ALLOC, KB_ALLOC_HOST and KB_ALLOC_PINNED pass.
typedef enum kb_place { KB_DEVICE, KB_HOST, KB_PINNED } kb_place;
// What a launch does to memory, and so what its bytes are held against: see kb_bytes_as.
typedef enum kb_traffic { KB_ANY_TRAFFIC, KB_READ, KB_WRITE, KB_COPY } kb_traffic;

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
    x(WORK_CHANGED,    ERROR, "every launch has to do the same work: reset in KB_SAMPLE what one leaves to the next") \
    x(CUDA_ERROR,      ERROR, "compute-sanitizer finds where")                                                    \
    x(NO_WORK,         ERROR, "launch on kb->stream; host code is timed with KB_TIME_HOST, and kept with kb_keep") \
    x(NO_LOOP,         ERROR, "put the work to be timed into KB_TIME(kb) { ... }")                                \
    x(LEFT_EARLY,      ERROR, "no break, return or goto out of the timed block; continue is fine")                \
    x(TRANSFER,        ERROR, "move copies out of the timed block, or kb_expect(kb, KB_EXPECT_TRANSFER)")         \
    x(SYNC_INSIDE,     ERROR, "move the waiting out of the timed block, or kb_expect(kb, KB_EXPECT_SYNC)")        \
    x(ALLOC_INSIDE,    ERROR, "move allocations out of the timed block (cuBLAS: give the handle a workspace), "   \
                              "or kb_expect(kb, KB_EXPECT_ALLOC)")                                                \
    x(SIDE_STREAM,     ERROR, "launch and copy on kb->stream")                                                    \
    x(ABOVE_ROOF,      ERROR, "check kb_bytes, kb_flops (kb_flops_as: of which type) and what is computed")        \
    x(NOT_COLD,        ERROR, "the L2 cache could not be evicted between samples")                                \
    x(TIMEOUT,         ERROR, "raise --timeout, or look for a hang")                                              \
    x(OOM,             ERROR, "choose a smaller size")                                                            \
    x(CRASHED,         ERROR, "--no-isolate under a debugger shows where")                                        \
    x(OVERRUN,         ERROR, "something wrote beside a buffer: compute-sanitizer finds where")                   \
    x(BAD_CASE,        ERROR, "mend the benchmark's function")                                                    \
    x(FLOOR,           WARN,  "what the bias may be off is over 2 % of the time; time more work per launch")          \
    x(QUANTISED,       WARN,  "the timer's step is over 1 % of the time, beyond the +-; time more work per launch")  \
    x(UNGATED,         WARN,  "launch latency may be in the time; submit less, and do not wait, in the block")        \
    x(UNVERIFIED,      WARN,  "no kb_check looked at the output")                                                     \
    x(THROTTLED,       WARN,  "the GPU lowered its clock for power or heat while this ran")                           \
    x(CLOCK_VARIES,    WARN,  "the SM clock changed by more than 2 %, and times with it; lock it, or try --thorough") \
    x(UNSETTLED,       WARN,  "had not settled when the warm-up ran out, and the later half differs; try --thorough") \
    x(DRIFT,           WARN,  "the time drifts: the median lies between two states; try --thorough")                  \
    x(AUTOCORR,        WARN,  "samples hang together, worth fewer than 6: the +- is a guess; try --thorough")         \
    x(BIMODAL,         WARN,  "two groups, a quarter of the samples or more in each; look at samples_ms")             \
    x(OUTLIERS,        WARN,  "stragglers move the median beyond the +-; something else uses this machine?")          \
    x(NOISY,           WARN,  "known to no better than 5 %: close other programs, --cpu N, or a longer --max-time")   \
    x(FEW,             WARN,  "too few samples for an interval; raise --max-time")                                    \
    x(PLACEMENT,       WARN,  "no verdict: up to 3 % is where data lies, and it lay apart; KB_ALLOC it, always alike")\
    x(SHARED_GPU,      WARN,  "other processes use this GPU")                                                      \
    x(DECLARED_BYTES,  WARN,  "kb_bytes says over 10 % more than the counters saw move: check its formula")           \
    x(DECLARED_FLOPS,  WARN,  "kb_flops says over 10 % more than the counters saw done: check its formula")           \
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
typedef void (*kb_function)(kb_stream stream, void* user); // what kb_run and kb_compare time

// How a file was compiled: what the record says of the one that registers or opens a benchmark.
typedef struct kb_build {
    const char* compiler; // its version, in its own words, and options that can be seen
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

typedef struct kb_param { // one axis's value in one case: in i, r or s, by its type
    const char* name;
    kb_axis_type type;
    int64_t i;
    double r;
    const char* s;
} kb_param;

// What kb_open, kb_run and kb_compare take. Zero means default; fields stand in the order people write them.
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
    void (*check)(kb_state* kb, void* user);      // kb_run: after the first run of the function and after its last
    const char* mode;                             // "cold" or "hot", for GPU work; "cold"
    const kb_param* params;                       // n_params of them, as axes give them: in the record and its name
    int n_params;
    uint32_t end_canary; // leave zero: guards against an uninitialised struct
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
    double precision;       // (ci_high - ci_low) / 2 / |median|, no unit; NAN below 6 values, or at a median of 0
    double outliers_mild;   // fraction of n beyond 1.5 but not 3 interquartile ranges from p25, p75 (Tukey 1977)
    double outliers_severe; // fraction of n beyond 3; a range below the timer's step counts as one step
    double lag1;            // autocorrelation at lag 1, -1 to 1; NAN below 3 values, or if all are equal
    double drift;           // (median of the last 3 of 10 block medians - of the first 3) / |median|; NAN
                            // below 30 values, or next to a median of 0
    int drift_significant;  // 1: |drift| above 1 %, and an exact test of the order of block medians has p below 0.01
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
    KB_UNRESOLVED  // too few rounds together, or none, or too much noise, to say any of these
} kb_verdict;
typedef enum kb_status { KB_OK, KB_FAILED, KB_SKIPPED } kb_status;

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
    x(real,    time_ms,               time,    "ms a launch: median, less bias_ms; --procs: mean of such")             \
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
    x(real,    time_ms_ci_low,        time,    "ms: lower end of its 95 % interval")                                  \
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
    x(whole,   processes,             time,    "processes that gave a median")                                        \
    x(samples, process_ms,            time,    "ms: the median of each process, in turn")                             \
    x(real,    inference_speed,       rate,    "launches a second, 1000 / time_ms")                                   \
    x(real,    throughput_gbps,       rate,    "1e9 bytes a second, by kb_bytes")                                     \
    x(real,    gflops,                rate,    "1e9 operations a second, by kb_flops")                                \
    x(real,    items_per_second,      rate,    "items a second, by kb_items")                                         \
    x(real,    queries_per_second,    rate,    "queries a second, by kb_queries")                                     \
    x(real,    gpu_efficiency,        rate,    "percent of the nearest measured roof; on the CPU: of one core's")      \
    x(text,    roof,                  rate,    "which: copy, read, write, f64, f32, tf32, f16, bf16, fp8 or int8")    \
    x(text,    bound,                 rate,    "memory, compute or latency; by counters also L2 or launch")                                          \
    x(real,    bytes,                 rate,    "bytes a launch, as declared")                                         \
    x(real,    flops,                 rate,    "operations a launch, as declared")                                    \
    x(params,  counters,              rate,    "what the body counted (kb_count), and --counters: an object of numbers") \
    x(params,  counter_units,         rate,    "their units, where one was given")                                    \
    x(real,    memory_mb,             memory,  "MiB of device memory at the case's peak")                             \
    x(whole,   memory_bytes,          memory,  "the same in bytes")                                                   \
    x(real,    host_memory_mb,        memory,  "MiB of host memory at the case's peak")                               \
    x(whole,   leaked_bytes,          memory,  "bytes of device memory that the function left allocated")             \
    x(text,    baseline,              contest, "implementation that the others of the group are compared with")       \
    x(real,    speedup,               contest, "the baseline's time over this one's, from common rounds")             \
    x(real,    speedup_low,           contest, "lower end of its interval, 95 % for all of the group at once")        \
    x(real,    speedup_high,          contest, "its upper end")                                                       \
    x(real,    noise_floor,           contest, "how far from 1 an equal rival's ratio may lie; 0.03 up, data apart")  \
    x(verdict, verdict,               contest, "FASTER, SLOWER, EQUIVALENT, UNRESOLVED than the baseline")            \
    x(text,    rating,                contest, "best verified time over this: excellent 0.8, good 0.5, fair 0.2")     \
    x(truth,   stage_shared,          contest, "whether its data lay where its rivals' did: same addresses, pages")   \
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
    x(text,    cpus,                  machine, "processors that the measuring process may run on, 0,2-3")              \
    x(real,    cpu_clock_mhz,         machine, "MHz of the one that it was on at the end of the samples")             \
    x(text,    cpu_governor,          machine, "what chooses that clock; null: virtual machines do not say")          \
    x(truth,   cpu_boost,             machine, "whether it may rise above the nominal clock")                         \
    x(whole,   preemptions,           machine, "times that the process had to make room for another, in the samples") \
    x(real,    cpu_waited,            machine, "percent of the samples' span that it was ready and had no processor") \
    x(real,    cpu_stolen,            machine, "percent of the processors' busy time that a hypervisor gave away")    \
    x(text,    kernel_version,        machine, "of the operating system")                                             \
    x(params,  environment,           machine, "aslr, cpu_limit, hypervisor, ...: an object of what is known")         \
    x(text,    kbench_version,        run,     "of the program that measured")                                        \
    x(whole,   schema,                run,     "of this table; 2")                                                    \
    x(text,    date,                  run,     "UTC, 2026-01-31T23:59:59Z")                                           \
    x(text,    binary,                run,     "hash of the executable's bytes")                                      \
    x(text,    command,               run,     "the command line")                                                    \
    x(whole,   seed,                  run,     "of data and order")                                                   \
    x(text,    git_commit,            run,     "of the folder in which the program ran")                              \
    x(text,    build,                 run,     "compiler and options")                                                \
    x(text,    run_id,                run,     "the same for all records of a run, and for no others")                \
    x(text,    shard,                 run,     "K/N, the part of the plan that this run was")                         \
    x(whole,   place,                 run,     "of the case in the plan, from 1, all shards together")

typedef const char* kbi_field_text; typedef double kbi_field_real; typedef int64_t kbi_field_whole;
typedef int kbi_field_truth; typedef uint64_t kbi_field_flags;
typedef struct kbi_field_params { const kb_param* of; int64_t n; } kbi_field_params;
typedef struct kbi_field_samples { const double* of; int64_t n; } kbi_field_samples;
typedef kb_status kbi_field_status; typedef kb_verdict kbi_field_verdict;
// clang-format on

typedef struct kb_result {
#define KBI_X(kind, key, group, meaning) kbi_field_##kind key;
    KB_RECORD(KBI_X)
#undef KBI_X
    const struct kbi_inside* inside; // what only the run itself knows, and no file keeps: see --profile; or NULL
    struct kbi_arena* owned;         // strings, params and samples: kb_result_free gives them back
} kb_result;

/*---------------------------------------------------------------------------------------------------------------
  >>api       Functions, by task. All take what they need and keep no pointer of yours unless it says so.
              Public: all of it      Used by: programs, >>macros, >>cxx, >>handed, >>record, >>proving
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
kb_result kb_run_from(const kb_desc* desc, kb_function fn, void* user, const kb_build* build);
bool kb_compare_from(const kb_desc* descs, const kb_function* fns, void* const* users, int64_t n, kb_result* results,
                     const kb_build* build);
kb_result kb_close(kb_state* kb); // of a kb_open
void kb_result_free(kb_result* result);
// Results as the table (stdout), or as a JSON array in a file, replaced as a whole; false: see stderr.
void kb_print(const kb_result* results, int64_t n);
bool kb_write_json(const kb_result* results, int64_t n, const char* path);
// For other languages. A record as JSON, as snprintf puts text: at most size bytes with the 0; gives the length of all.
int64_t kb_json(const kb_result* result, char* buffer, int64_t size);
// What a library is: of "version" 10000 major + 100 minor + patch; of "cuda" whether it measures GPUs; of "kb_desc",
// "kb_param", "kb_result", "kb_state", "kb_entry", "kb_axis" the bytes of that struct; -1 of anything else.
int64_t kb_abi(const char* what);
// The case whose function, or check, kb_run or kb_compare is calling: for its kb_fail, kb_note, kb_bytes. Or NULL.
kb_state* kb_current(void);

// --- the case: values of this case's axes; an unknown name fails the case and lists the axes ---

int64_t kb_int(kb_state* kb, const char* axis);
double kb_real(kb_state* kb, const char* axis);
const char* kb_str(kb_state* kb, const char* axis);
bool kb_has(kb_state* kb, const char* axis); // whether the case has such an axis; fails nothing

// --- what one launch of the block does; doubles, because products of sizes overflow ints ---

void kb_bytes(kb_state* kb, double bytes); // compulsory traffic: gives GB/s and % of the machine
void kb_flops(kb_state* kb, double flops); // arithmetic: gives GFLOP/s
// The same and of which kind, so of which roof. dtype: of what is multiplied, whatever is stored; floats, KB_I8, KB_U8.
void kb_bytes_as(kb_state* kb, double bytes, kb_traffic traffic);
void kb_flops_as(kb_state* kb, double flops, kb_dtype dtype);
void kb_items(kb_state* kb, double items);   // anything else worth a rate: the record's items_per_second
void kb_queries(kb_state* kb, double items); // as kb_items, and the record's queries_per_second
// A number of your own, as it is; of several the last. At most 16 names of a-z, 0-9 and _; unit: "" without one.
void kb_count(kb_state* kb, const char* name, double value, const char* unit);

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
        __VERSION__
#if defined(__FAST_MATH__) || defined(__USE_FAST_MATH__)
        " fast-math"
#endif
#if defined(__AVX512F__)
        " AVX-512"
#elif defined(__AVX2__)
        " AVX2"
#endif
        ,
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
KBI_INLINE kb_result kb_run(const kb_desc* desc, kb_function fn, void* user) {
    return kb_run_from(desc, fn, user, kbi_build());
}
// A contest of n functions, as between the implementations of an operation in a program: checked, warmed up, timed in
// turn, judged against the first. What the contest is about is the first description's: name, params, host, mode,
// samples, precision, max_time, seed, device; of the others it may be left zero. users: one for each, or NULL. Gives n
// records, each for kb_result_free; true: all were measured.
KBI_INLINE bool kb_compare(const kb_desc* descs, const kb_function* fns, void* const* users, int64_t n,
                           kb_result* results) {
    return kb_compare_from(descs, fns, users, n, results, kbi_build());
}

#ifdef __cplusplus
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>macros    The statements a benchmark is written in.
              Public: all but KBI_*      Used by: programs, >>embed, >>proving
---------------------------------------------------------------------------------------------------------------*/

// clang-format off
// KBENCH(op, axes...): registers the function that follows as operation op, implementation "default".
#define KBENCH(...) KBI_BENCH(__COUNTER__, 1, #__VA_ARGS__, KBI_TAIL_1(__VA_ARGS__, KBI_AXES_END))
// KBENCH_IMPL(op, impl, axes...): one implementation of op. The first registered is the baseline.
#define KBENCH_IMPL(...) KBI_BENCH(__COUNTER__, 2, #__VA_ARGS__, KBI_TAIL_2(__VA_ARGS__, KBI_AXES_END))
// A main function that does everything.
#define KBENCH_MAIN() int main(int argc, char** argv) { return kb_main(argc, argv); }

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
// Element types, "f32", "tf32", "f16", "bf16", "e4m3", ...: kb->dtype in the body.
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
    _Generic(*(p), float: KB_F32, double: KB_F64, kb_f16: KB_F16, kb_bf16: KB_BF16, kb_e4m3: KB_E4M3,              \
        kb_e5m2: KB_E5M2, signed char: KB_I8, char: KB_I8, unsigned char: KB_U8, short: KB_I16,                    \
        unsigned short: KB_U16, int: KB_I32, unsigned: KB_U32,                                                     \
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
struct __nv_fp8_e4m3; struct __nv_fp8_e5m2; // cuda_fp8.h
template <class T> struct kbi_type;
template <class T> struct kbi_type<const T> : kbi_type<T> {};
#define KBI_X(T, code) template <> struct kbi_type<T> { static const kb_dtype value = code; };
KBI_X(float, KB_F32) KBI_X(double, KB_F64) KBI_X(kb_f16, KB_F16) KBI_X(kb_bf16, KB_BF16) KBI_X(__half, KB_F16)
KBI_X(__nv_bfloat16, KB_BF16) KBI_X(kb_e4m3, KB_E4M3) KBI_X(kb_e5m2, KB_E5M2) KBI_X(__nv_fp8_e4m3, KB_E4M3)
KBI_X(__nv_fp8_e5m2, KB_E5M2) KBI_X(signed char, KB_I8) KBI_X(char, KB_I8) KBI_X(unsigned char, KB_U8)
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
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif
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
extern char* realpath(const char* path, char* out);
extern int fchdir(int folder);
extern int fchmod(int file, unsigned mode);
extern int fchown(int file, unsigned owner, unsigned group);
extern int setenv(const char* name, const char* value, int replace);
extern int unsetenv(const char* name);
extern long syscall(long number, ...);
#endif
#ifdef CLOCK_MONOTONIC
#define KBI_CLOCK_MONOTONIC CLOCK_MONOTONIC
#else
#define KBI_CLOCK_MONOTONIC 1 // Linux
#endif
#ifdef CLOCK_THREAD_CPUTIME_ID
#define KBI_CLOCK_THREAD CLOCK_THREAD_CPUTIME_ID
#else
#define KBI_CLOCK_THREAD 3 // likewise
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

#ifdef KBENCH_NO_REPORT
#define KBI_REPORT 0
#else
#define KBI_REPORT 1
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
// Another number for a file, which a function that closes what it finds comes to last; fewer may be allowed.
static int kbi_high_file(int file) {
    int high = fcntl(file, F_DUPFD_CLOEXEC, 100);
    return high >= 0 ? high : fcntl(file, F_DUPFD_CLOEXEC, 3);
}
static ssize_t kbi_read_some(int file, void* to, size_t n) { return read(file, to, n); }
static char* kbi_get_line(char* to, int size, FILE* f) { return fgets(to, size, f); }
static bool kbi_readable(int file, int milliseconds) { // file -1: only waits
    struct pollfd p = { file, POLLIN, 0 };
    return poll(&p, 1, milliseconds) > 0;
}
static bool kbi_writable(int file, int milliseconds) {
    struct pollfd p = { file, POLLOUT, 0 };
    return poll(&p, 1, milliseconds) > 0;
}

KBI_SLOW_BEGIN
/*---------------------------------------------------------------------------------------------------------------
  >>log       foundation: warnings and errors, one line each, on stderr.
              Public: none      Used by: >>util, >>fields, >>registry, plan, record, >>text, program
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

// The bytes of a control character, one of those beyond ASCII as well; 0: it is none.
static int kbi_control(const char* s) {
    unsigned char c = (unsigned char)*s;
    return (c && c < 0x20) || c == 0x7f ? 1 : c == 0xc2 && ((unsigned char)s[1] & 0xe0) == 0x80 ? 2 : 0;
}

static void kbi_say(const char* level, const char* format, va_list list) {
    char small[1024], *large = NULL, *p = small;
    va_list again;
    va_copy(again, list);
    int n = vsnprintf(small, sizeof small, format, list);
    if (n >= (int)sizeof small) large = (char*)KBENCH_MALLOC((size_t)n + 1);
    if (large) vsnprintf(p = large, (size_t)n + 1, format, again);
    va_end(again);
    for (; *p; p++) memset(p, ' ', (size_t)kbi_control(p)); // one line, whatever the names and files hold
    fflush(stdout);
    fprintf(stderr, "%s: %s%s\n", kbi_process.program ? kbi_process.program : "kbench", level, large ? large : small);
    fflush(stderr);
    KBENCH_FREE(large);
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
  >>numbers   foundation: doubles written and read, exactly, whatever the locale.
              Public: none      Used by: foundation, plan, measure, judge, record, render, program
---------------------------------------------------------------------------------------------------------------*/

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
    char text[160], *stop;
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

#ifdef __SIZEOF_INT128__
// Files of records are numbers for the most part. Between 1e-11 and 1e17 a double, its neighbours and a power of ten
// meet in 128 bits, where nothing is rounded: many times faster than printf and strtod, and the same text and value.
__extension__ typedef unsigned __int128 kbi_wide;

enum { KBI_FIVES = 28 };
// clang-format off
static const uint64_t kbi_fives[KBI_FIVES] = {
    1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625, 1220703125,
    6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u, 19073486328125u, 95367431640625u,
    476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u, 298023223876953125u,
    1490116119384765625u, 7450580596923828125u,
};
// clang-format on

KBI_SLOW_END
// The fewest digits, 15 to 17, that read back to x > 0, as c = 0.1 to 1 of 10^17 times 10^(*exponent - 16); 0: not here.
static uint64_t kbi_shortest(double x, int* digits, int* exponent) {
    uint64_t bits, fraction = ((uint64_t)1 << 52) - 1, power = 10000000000000000u; // 10^16
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1075;
    uint64_t m = (bits & fraction) | (fraction + 1);
    *exponent = (int)(((e + 52) * 78913) >> 18);            // log10(2), rounded down: one too few at most
    if (!(bits & fraction) || e < -100 || e > 10) return 0; // of a power of two the lower neighbour is nearer
    for (;; ++*exponent) {
        int k = 16 - *exponent, shift = -(e + k); // x is all / 2^shift of 10^-k
        if (k < 0 || k >= KBI_FIVES) return 0;
        uint64_t ulp = kbi_fives[k];
        kbi_wide all = (kbi_wide)m * ulp;
        if (shift < 0) all <<= -shift, ulp <<= -shift, shift = 0;
        uint64_t c = (uint64_t)(all >> shift), rest = (uint64_t)(all - ((kbi_wide)c << shift));
        if (c >= 10 * power) continue;
        for (*digits = 15;; ++*digits) {
            uint64_t unit = *digits == 15 ? 100 : *digits == 16 ? 10 : 1, over = c % unit, down = c - over;
            kbi_wide below = ((kbi_wide)over << shift) + rest, above = ((kbi_wide)unit << shift) - below;
            bool up = above < below || (above == below && (down / unit & 1));
            kbi_wide off = 2 * (up ? above : below);
            if (*digits == 17 || off < ulp || (off == ulp && !(m & 1))) return up ? down + unit : down;
        }
    }
}

KBI_SLOW_BEGIN
#else
static uint64_t kbi_shortest(double x, int* digits, int* exponent) {
    return (void)x, (void)digits, (void)exponent, 0;
}
#endif

KBI_SLOW_END
// The shortest of 15, 16 and 17 digits that reads back to the same double, as printf's %g writes them.
static const char* kbi_number(double x, char out[40]) {
    int digits = 0, exponent = 0, n = 16;
    char text[24], *p = out;
    uint64_t c = kbi_finite(x) && x != 0 ? kbi_shortest(x < 0 ? -x : x, &digits, &exponent) : 0;
    for (int i = 15; !c && i <= 17; i++) {
        snprintf(out, 40, "%.*g", i, x);
        if (i == 17 || strtod(out, NULL) == x) return kbi_unlocalise(out), out;
    }
    if (c == 100000000000000000u) c /= 10, exponent++; // 9.99... became 10
    for (int i = 16; i >= 0; i--, c /= 10) text[i] = (char)('0' + c % 10);
    while (n && text[n] == '0') n--; // of the last digit
    if (x < 0) *p++ = '-';
    bool small = exponent < -4, large = exponent >= digits;
    int point = small || large ? 0 : exponent;
    if (point < 0) *p++ = '0', *p++ = '.';
    for (int i = point; i < -1 && point < 0; i++) *p++ = '0';
    for (int i = 0; i <= KBI_MAX(n, point); i++) {
        *p++ = i <= n ? text[i] : '0';
        if (i == point && i < n) *p++ = '.';
    }
    *p = 0;
    if (small || large) snprintf(p, 8, "e%c%02d", small ? '-' : '+', small ? -exponent : exponent);
    return out;
}

KBI_SLOW_BEGIN

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

/*---------------------------------------------------------------------------------------------------------------
  >>util      foundation: arenas, growing text, names that people mistype, files.
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

KBI_SLOW_END
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
KBI_SLOW_BEGIN

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

// Formats into a fixed room, behind what is there; what finds no place in it leaves "..." behind a whole character.
static void kbi_vfit(char* out, size_t at, size_t size, const char* format, va_list list) {
    int n = vsnprintf(out + at, size - at, format, list);
    if (n < 0 || (size_t)n < size - at) return;
    for (at = size - 4; at && ((unsigned char)out[at] & 0xc0) == 0x80; at--) {}
    memcpy(out + at, "...", 4);
}

KBI_PRINTF(4, 5) static void kbi_fit(char* out, size_t at, size_t size, const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_vfit(out, at, size, format, list);
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

// Adds text of others' making: what is no UTF-8, and what would move the cursor, is replaced.
static void kbi_clean(kbi_text* t, const char* s) {
    for (const char *p = s, *plain; *p;) {
        for (plain = p; *p >= 0x20 && *p < 0x7f;) p++;
        kbi_put(t, plain, (size_t)(p - plain));
        int n = kbi_utf8((const unsigned char*)p);
        if (!*p) break;
        kbi_put(t, !n ? "\xef\xbf\xbd" : kbi_control(p) ? " " : p, !n ? 3 : kbi_control(p) ? 1 : (size_t)n);
        p += n ? n : 1;
    }
}

static bool kbi_is(const char* a, const char* b) { return a && b && strcmp(a, b) == 0; }
static bool kbi_same_text(const char* a, const char* b) { return kbi_is(a, b) || (!a && !b); }

// Names are compared without regard to case, and '-' and '_' are nothing: LayerNorm is layernorm, layer_norm too. n
// and m: their bytes.
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

// The word of a comma-separated list that begins there has n bytes; the next begins behind them.
static const char* kbi_word(const char* p, size_t* n) {
    *n = strcspn(p, ",");
    return p + *n + (p[*n] == ',');
}

// Whether a comma-separated list names it.
static bool kbi_lists(const char* list, const char* name) {
    size_t n;
    for (const char *p = list, *next; *p; p = next) {
        next = kbi_word(p, &n);
        if (kbi_same_name_n(p, n, name, strlen(name))) return true;
    }
    return false;
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

typedef struct kbi_mapped { // where what has this hash was put
    uint64_t key;           // 0: free
    intptr_t at;
} kbi_mapped;
typedef struct kbi_map {
    kbi_mapped* slots;
    size_t n, size;
} kbi_map;

// The slot of a key, its own or the one that it is to have.
KBI_INLINE kbi_mapped* kbi_map_find(kbi_map* p, uint64_t key) {
    key += key == 0;
    if (2 * (p->n + 1) > p->size) {
        kbi_map larger = { NULL, 0, p->size ? 2 * p->size : 256 };
        larger.slots = (kbi_mapped*)kbi_grow(NULL, sizeof(kbi_mapped) * larger.size);
        memset(larger.slots, 0, sizeof(kbi_mapped) * larger.size);
        for (size_t i = 0; i < p->size; i++)
            if (p->slots[i].key) *kbi_map_find(&larger, p->slots[i].key) = p->slots[i], larger.n++;
        KBENCH_FREE(p->slots);
        *p = larger;
    }
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (p->size - 1);
    while (p->slots[at].key && p->slots[at].key != key) at = (at + 1) & (p->size - 1);
    return &p->slots[at];
}

KBI_INLINE void kbi_map_take(kbi_map* p, kbi_mapped* slot, uint64_t key, intptr_t at) {
    p->n += slot->key == 0;
    slot->key = key + (key == 0);
    slot->at = at;
}

KBI_SLOW_END
static void kbi_json_text(kbi_text* t, const char* s) {
    if (!s) {
        kbi_puts(t, "null");
        return;
    }
    kbi_puts(t, "\"");
    for (const unsigned char *p = (const unsigned char*)s, *plain; *p;) {
        for (plain = p; *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\';) p++;
        kbi_put(t, (const char*)plain, (size_t)(p - plain));
        if (!*p) break;
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

KBI_SLOW_BEGIN

// "41.23 us": four digits and the unit that leaves one to three of them before the point.
static const char* kbi_show_time(double ms, char out[40]) {
    static const struct {
        double from, scale;
        const char* unit;
    } units[] = { { 1e3, 1e-3, "s" }, { 1, 1, "ms" }, { 1e-3, 1e3, "us" }, { -1e300, 1e6, "ns" } };
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

// A function of a library that was opened; the standard has no cast from object to function pointers.
static void kbi_find(void* library, const char* name, void* function) {
    void* p = dlsym(library, name);
    memcpy(function, &p, sizeof p);
}

/*---------------------------------------------------------------------------------------------------------------
  >>names     foundation: what dtypes and flags are called.
              Public: kb_dtype_name, kb_dtype_of, kb_dtype_size, kb_flag_name, kb_flag_advice, kb_flag_is_error
              Used by: programs, >>random, >>plan, >>list, measure, >>counted, record, render, >>embed, >>selftest
---------------------------------------------------------------------------------------------------------------*/

// bytes of one element, by the order of kb_dtype; 0 for a code that is no dtype
static size_t kbi_dtype_size(int dtype) {
    static const unsigned char size[] = { 0, 4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 4, 1, 1 };
    return dtype >= 0 && dtype < KBI_COUNT(size) ? size[dtype] : 0;
}

// --- names ---

static const struct {
    kb_dtype dtype;
    const char* name;
} kbi_dtypes[] = {
    { KB_F32, "f32" }, { KB_F64, "f64" }, { KB_F16, "f16" },   { KB_BF16, "bf16" }, { KB_I8, "i8" },
    { KB_U8, "u8" },   { KB_I16, "i16" }, { KB_U16, "u16" },   { KB_I32, "i32" },   { KB_U32, "u32" },
    { KB_I64, "i64" }, { KB_U64, "u64" }, { KB_TF32, "tf32" }, { KB_E4M3, "e4m3" }, { KB_E5M2, "e5m2" }
};

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
  >>clock     foundation: the host's monotonic clock, and a thread's own, in nanoseconds.
              Public: none      Used by: >>cpus, measure, >>record, >>progress, program
---------------------------------------------------------------------------------------------------------------*/

static int64_t kbi_clock_ns(int clock) {
    struct timespec t = { 0, 0 };
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static int64_t kbi_now(void) { return kbi_clock_ns(KBI_CLOCK_MONOTONIC); }

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
  >>cpus      foundation: the processors: which this process may run on, their clock, and who else had them.
              Public: none      Used by: >>arguments, measure, >>tools, >>program
---------------------------------------------------------------------------------------------------------------*/

// --- which this process may run on ---

enum { KBI_CPUS = 8192, KBI_CPUS_IN = 8 * sizeof(unsigned long) };
typedef struct kbi_cpus {
    unsigned long of[KBI_CPUS / KBI_CPUS_IN];
} kbi_cpus;

static bool kbi_cpus_has(const kbi_cpus* c, int i) { return (c->of[i / KBI_CPUS_IN] >> i % KBI_CPUS_IN & 1) != 0; }

// glibc's own functions hide without _GNU_SOURCE. false: the system knows no such thing.
static bool kbi_cpus_allowed(kbi_cpus* c) {
    memset(c, 0, sizeof *c);
#ifdef SYS_sched_getaffinity
    return syscall(SYS_sched_getaffinity, 0, sizeof c->of, c->of) > 0;
#else
    return false;
#endif
}

// Of this thread, and of those that it starts from now on.
static bool kbi_cpus_pin(const kbi_cpus* c) {
#ifdef SYS_sched_setaffinity
    return syscall(SYS_sched_setaffinity, 0, sizeof c->of, c->of) == 0;
#else
    return (void)c, false;
#endif
}

// "2", "0,4-7".
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
        for (long i = from; i <= to; i++) c->of[i / KBI_CPUS_IN] |= 1ul << i % KBI_CPUS_IN;
        if (!*end) return true;
        if (*end != ',') return false;
        s = end;
    }
}

// The same way round; of a list that is too long the beginning.
static const char* kbi_cpus_show(const kbi_cpus* c, char* out, size_t size) {
    kbi_text t = { NULL, 0, 0 };
    for (int i = 0, last; i < KBI_CPUS; i = last + 1) {
        last = i;
        if (!kbi_cpus_has(c, i)) continue;
        while (last + 1 < KBI_CPUS && kbi_cpus_has(c, last + 1)) last++;
        size_t before = t.n;
        kbi_putf(&t, last > i ? "%s%d-%d" : "%s%d", t.n ? "," : "", i, last);
        if (t.n + 5 <= size) continue;
        t.n = before;
        kbi_puts(&t, ",...");
        break;
    }
    snprintf(out, size, "%s", t.n ? t.s : "");
    kbi_text_free(&t);
    return out;
}

// Of a list, those that this process may not run on. false: there are none.
static bool kbi_cpus_beyond(const kbi_cpus* list, const kbi_cpus* allowed, kbi_cpus* beyond) {
    bool any = false;
    for (int i = 0; i < KBI_COUNT(list->of); i++) any |= (beyond->of[i] = list->of[i] & ~allowed->of[i]) != 0;
    return any;
}

// The one that this thread runs on now; 0 where the system does not say.
static int kbi_cpu_now(void) {
    unsigned cpu = 0;
#ifdef SYS_getcpu
    if (syscall(SYS_getcpu, &cpu, NULL, NULL) != 0) cpu = 0;
#endif
    return (int)cpu;
}

// --- their clock, as cpufreq has it below /sys/devices/system/cpu; virtual machines have none ---

static const char kbi_cpu_root[] = "/sys/devices/system/cpu";

static bool kbi_cpu_says(const char* root, int cpu, const char* key, char* out, int size) {
    char path[512];
    snprintf(path, sizeof path, "%.400s/cpu%d/cpufreq/%s", root, cpu, key);
    return kbi_first_line(path, out, size) && *out;
}

static double kbi_cpu_mhz(const char* root, int cpu) { // NaN: not known
    char line[64];
    double khz = kbi_cpu_says(root, cpu, "scaling_cur_freq", line, (int)sizeof line) ? strtod(line, NULL) : 0;
    return khz > 0 ? khz * 1e-3 : (double)NAN;
}

// Whether the clock may rise above its nominal rate while there is room for it; -1: not known.
static int kbi_cpu_boost(const char* root) {
    char path[512], line[64];
    snprintf(path, sizeof path, "%.400s/intel_pstate/no_turbo", root);
    if (kbi_first_line(path, line, (int)sizeof line)) return *line == '0';
    snprintf(path, sizeof path, "%.400s/cpufreq/boost", root);
    if (kbi_first_line(path, line, (int)sizeof line)) return *line == '1';
    return -1;
}

// --- who else had them, as the kernel counts it below /proc ---

// A thread's own clock, which stands still while another thread or machine has the processor, and how often the thread
// gave that up by itself.
typedef struct kbi_turn {
    int64_t ran, waits;
} kbi_turn;

static kbi_turn kbi_turn_now(void) {
    struct rusage used;
    const int thread = 1; // RUSAGE_THREAD, Linux
    kbi_turn t = { 0, getrusage(thread, &used) == 0 ? used.ru_nvcsw : -1 };
    t.ran = kbi_clock_ns(KBI_CLOCK_THREAD);
    return t;
}

typedef struct kbi_load {
    int64_t at, switches; // ns; times that this process had to make room for another one
    double waited;        // ns that this thread was ready and had no processor; NaN: not known
    double busy, stolen;  // ticks that all processors were wanted, and of these what a hypervisor gave to others
} kbi_load;

static kbi_load kbi_load_now(const char* root) {
    char path[512], line[512];
    struct rusage used;
    const int process = 0; // RUSAGE_SELF
    kbi_load l = { kbi_now(), KB_NONE, NAN, NAN, NAN };
    double x[8] = { 0, 0, 0, 0, 0, 0, 0, 0 }, ran, waited; // user nice system idle iowait irq softirq steal
    if (getrusage(process, &used) == 0) l.switches = used.ru_nivcsw;
    snprintf(path, sizeof path, "%.400s/thread-self/schedstat", root);
    if (kbi_first_line(path, line, (int)sizeof line) && sscanf(line, "%lf %lf", &ran, &waited) == 2)
        l.waited = waited;
    snprintf(path, sizeof path, "%.400s/stat", root);
    if (kbi_first_line(path, line, (int)sizeof line) && sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", x, x + 1,
                                                               x + 2, x + 3, x + 4, x + 5, x + 6, x + 7) == 8) {
        l.busy = x[0] + x[1] + x[2] + x[5] + x[6] + x[7];
        l.stolen = x[7];
    }
    return l;
}

/*---------------------------------------------------------------------------------------------------------------
  >>random    foundation: reproducible fills: an element depends on seed, tensor and index alone.
              Public: none      Used by: >>arrays, >>plan, measure, >>proving
---------------------------------------------------------------------------------------------------------------*/

// Generator: Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC11. Key = (seed low, seed high); counter = (block low, block high, tensor, purpose). Element i takes word
// i mod 4 of block i / 4 under purpose 0; purpose 1 gives the high halves of uniform 64-bit integers.
//
// What each kind puts into element i (w = its word, z = its normal deviate):
//   kind         floats                                integers
//   KB_ZERO      0                                     0
//   KB_NORMAL    z, a float                            8 z rounded, halves away from 0, clamped to the type
//   KB_UNIFORM   (w >> 8) / 2^24, in [0,1)             w truncated; 64-bit: w | (word under purpose 1) << 32
//   KB_IOTA      i, nearest (f16: inf from 65520 on;   i, wrapped
//                e4m3: 448 from there on, e5m2: 57344)
// Floating values are rounded to float first (KB_IOTA in f64 is not; tf32 is stored so), then to the smaller types, to
// nearest even.
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

// OCP's 8-bit floats, of 3 or 2 fraction bits: e4m3 (bias 7, NaN in place of infinity and of what stands beside it) and
// e5m2 (bias 15). To nearest even; beyond the largest, infinity too, the largest; NaN stays one.
static uint8_t kbi_f32_to_f8(float f, uint32_t fraction) {
    uint32_t u = kbi_float_bits(f), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu, e = a >> 23,
             shift = 23u - fraction;
    uint32_t most = fraction == 3u ? 0x7eu : 0x7bu,
             least = fraction == 3u ? 121u : 113u; // exponent of the least normal
    uint32_t r = e < least ? (a & 0x7fffffu) | 0x800000u : a - ((least - 1u) << 23);
    if (a > 0x7f800000u) return (uint8_t)(sign | 0x7fu);
    if (e < least) shift += least - e;
    if (shift > 24u) return (uint8_t)sign; // below half of the least subnormal
    r = (r + (1u << (shift - 1u)) - 1u + ((r >> shift) & 1u)) >> shift;
    return (uint8_t)(sign | (r < most ? r : most));
}

static float kbi_f8_to_f32(uint8_t h, uint32_t fraction) {
    uint32_t a = h & 0x7fu;
    if (fraction == 2u) return kbi_f16_to_f32((uint16_t)(h << 8)); // the upper half of an f16
    float v = a == 0x7fu ? kbi_bits_float(0x7fc00000u)
              : a < 8u   ? (float)a * 0.001953125f // 2^-9
                         : kbi_bits_float((a << 20) + (120u << 23));
    return h & 0x80u ? -v : v;
}

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
    case KB_F32:
    case KB_TF32: return kbi_bits_float(u32);
    case KB_F64: memcpy(&d, &u64, 8); return d;
    case KB_E4M3: return kbi_f8_to_f32(at[0], 3);
    case KB_E5M2: return kbi_f8_to_f32(at[0], 2);
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
    case KB_F32:
    case KB_TF32: return kbi_float_bits((float)v);
    case KB_F64: memcpy(&u, &v, sizeof u); return u;
    case KB_E4M3: return kbi_f32_to_f8((float)v, 3);
    case KB_E5M2: return kbi_f32_to_f8((float)v, 2);
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
    int is_float = dtype <= KB_BF16 || dtype >= KB_TF32, j;
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
              Public: kb_summarize
              Used by: programs, >>paired, >>spread, measure, >>verdict, >>rivals, >>tools, >>proving, >>selftest
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
              Public: none      Used by: >>rounds, >>rivals
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
              Public: none      Used by: judge
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

// How far the interval that misses in a share alpha reaches to each side of the mean; beside: see kbi_spread_of.
static double kbi_spread_reach(const kbi_spread* s, double alpha, double beside) {
    const double quantile = s->n > 1 ? kbi_student_quantile(1.0 - 0.5 * alpha, s->df) : (double)NAN;
    return quantile * s->sd * sqrt(1.0 / KBI_MAX(s->n, 1) + beside);
}

// How alike the scatter of two cases is taken to be, by their times in octaves: 1, 0.61 one octave apart, 0.14 two.
static double kbi_spread_weight(double octaves) { return fabs(octaves) < 5.0 ? exp(-0.5 * octaves * octaves) : 0.0; }

// Each case by itself. In lo: the logarithm of its variance, corrected so that its mean is that of the true one (Smyth,
// Statistical Applications in Genetics and Molecular Biology 3, 2004), NAN for a variance of 0; in hi: its time in
// octaves.
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
static void kbi_spread_of(const double* values, int processes, int cases, const double* times, double beside,
                          kbi_spread* s) {
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
        const double reach = kbi_spread_reach(&s[i], 0.05, beside);
        s[i].lo = s[i].mean - reach;
        s[i].hi = s[i].mean + reach;
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
    else if (dtype == KB_TF32)
        digits = 11, least = -125;
    else if (dtype == KB_E4M3)
        digits = 4, least = -5;
    else if (dtype == KB_E5M2)
        digits = 3, least = -13;
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
              Public: none      Used by: >>insight, >>registry, plan, measure, judge, >>record, >>text, program
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
    bool fresh;                 // ask it with other inputs, too
    unsigned inside;            // kbi_wish: nothing is timed, the block is looked into
    const char* counters;       // which: few, usual, all, or names of metrics; NULL: usual
    unsigned expect;            // kb_expectation
    uint64_t seed;
    double precision, min_time, max_time, warmup_time; // fraction; seconds; warm-up negative: until settled
    int64_t warmup_samples;                            // negative: until settled
    int64_t samples, rounds;                           // exactly so many; 0: as many as the precision takes
    int64_t launches;                                  // whose mean is a sample; 0: as many as the timer needs
    int64_t min_samples, max_samples, max_rounds;
    int placement; // 0: buffers lie where they come to lie; each other number, with the seed, puts them elsewhere
} kbi_recipe;

enum { KBI_ROUNDS_LIMIT = 512, KBI_LAUNCHES_LIMIT = 4096 }; // rounds of a comparison, launches of a sample, at most
enum { KBI_PROCESSES = 64 };                                // that measure the same case, at most

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

// From measuring to looking into what has been measured, and was found right.
static void kbi_recipe_inside(kbi_recipe* r, unsigned wishes) {
    r->inside = wishes;
    if (wishes) r->verify = r->fresh = r->energy = false;
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
    int place;           // in the plan, from 1, all shards together
    uint64_t key;        // hash of operation and params in whatever order: equal inside a comparison group
    const kb_desc* desc; // what a program describes by itself; NULL: a case of a plan
} kbi_case;

typedef enum kbi_roof {
    KBI_ROOF_COPY,
    KBI_ROOF_READ,
    KBI_ROOF_WRITE,
    KBI_ROOF_F64,
    KBI_ROOF_F32,
    KBI_ROOF_TF32,
    KBI_ROOF_F16,
    KBI_ROOF_BF16,
    KBI_ROOF_FP8,
    KBI_ROOF_INT8,
    KBI_ROOFS,
    KBI_NO_ROOF = -1,  // the device has none of those that may be meant
    KBI_ABOVE_ALL = -2 // of those that may be meant
} kbi_roof;
static const char* const kbi_roof_names[] = { "copy", "read", "write", "f64", "f32",
                                              "tf32", "f16",  "bf16",  "fp8", "int8" };

// The best that was seen of a device, each roof measured when it is first wanted: 1e9 bytes a second or operations a
// second. NaN: not measured; 0: it has no such thing; KBI_UNTOLD: nobody here can tell. Arithmetic on numbers costs
// power, and so clock: `of` is what random ones reach, `most` what zeros do, which true times of any data stay below.
typedef struct kbi_roofs {
    double of[KBI_ROOFS], most[KBI_ROOFS];
    double took[KBI_ROOFS]; // seconds
} kbi_roofs;
#define KBI_UNTOLD (-1.0)

static void kbi_roofs_clear(kbi_roofs* r) {
    for (int i = 0; i < KBI_ROOFS; i++) r->of[i] = r->most[i] = r->took[i] = NAN;
}
static void kbi_roof_put(kbi_roofs* r, int which, double of, double most, double took) {
    r->of[which] = of;
    r->most[which] = most;
    r->took[which] = took;
}
static double kbi_roof_known(const kbi_roofs* r, int which) { // 0: it is not
    return which >= 0 && !kbi_nan(r->of[which]) && r->of[which] > 0 ? r->of[which] : 0;
}

enum { KBI_COUNTERS = 16 };
typedef struct kbi_counter { // by kb_count, or the hardware's
    char name[64], unit[32];
    double value;
} kbi_counter;

typedef struct kbi_measured {
    int32_t status; // kb_status
    int32_t verified, settled;
    int32_t queries;             // items are queries
    int32_t constant;            // the inputs are
    int32_t stage;               // whether its data lay on its rivals' stage; -1: there were none
    int32_t proven;              // the last run of the block wrote an output that a check liked
    int32_t ungated;             // launches did not wait behind a gate, and nobody said that they would not
    int32_t launches;            // whose mean is a sample
    int64_t retaken;             // samples thrown away and taken again, because the process or the gate stood still
    int32_t others;              // processes on this GPU
    int32_t dtype;               // kb_dtype: of the case's elements
    int32_t traffic, arithmetic; // kb_traffic and kb_dtype of kb_bytes_as and kb_flops_as; 0: not said
    int32_t core;                // the roofs are those of one core of the host
    int32_t debug_build;         // the benchmark's file is not optimised
    uint64_t flags;
    char message[1024];
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
    int64_t preemptions;                      // of the process, while the samples were taken; KB_NONE: not known
    double cpu_clock, cpu_waited, cpu_stolen; // MHz; percent of that time, and of what was wanted of all processors
    kbi_roofs roofs;                          // as they were known when the case ended
    int32_t n_counters;
    kbi_counter counters[KBI_COUNTERS];
} kbi_measured;

typedef struct kbi_machine {
    char backend[8];
    int32_t gpu_present, device, devices, sm;         // sm: 90 for 9.0
    int32_t ecc, mig, clocks_locked, multiprocessors; // -1: not known
    char gpu[96], driver[40], cuda[16], why[200];     // why: no GPU, for people
    int64_t memory, l2;
    kbi_roofs roofs, core;        // of the device; of one core of the host
    double floor[3], bias[2];     // ns: cold, hot by events, graph; of an empty kernel
    double fitted;                // ns, an empty kernel's duration without CUPTI
    double quantum, empty_pair;   // ns, of events
    char truth[64];               // what the bias was held against
    double cold;                  // share of an L2's worth of data that the eviction pushes out; NaN: not known
    char tool[24];                // that changes how launches run: nothing is timed under it; "": none
    int32_t simulated;            // host work as well
    char cpus[200], governor[32]; // that this process may run on; what chooses their clock; "": not known
    int32_t boost;                // whether that may rise above its nominal rate; -1: not known
} kbi_machine;

// What empty kernels take by CUPTI, in ns, cold and hot: of one block and of one on every multiprocessor, of 32, of 256
// and of 1024 threads each.
typedef struct kbi_truth {
    double ns[KBI_EVENT_MODES][2][2][3]; // [1]: of those that write
} kbi_truth;

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
    m->cpu_clock = m->cpu_waited = m->cpu_stolen = NAN;
    m->preemptions = KB_NONE;
    m->memory = m->host_memory = m->leaked = m->registers = m->shared_bytes = m->local_bytes = KB_NONE;
    kbi_roofs_clear(&m->roofs);
}

// What the arithmetic of a case may be: the roof that it is held against, and those in whose place it may have gone
// while the elements stayed what they are. kb_flops_as says it. KB_DTYPE says what is stored, so wider types may be
// meant, and of f32 the narrower ones that libraries take for it; where nothing is said, all of them.
typedef struct kbi_meant {
    int base; // KBI_NO_ROOF: there is none of such a type
    unsigned others;
} kbi_meant;

static kbi_meant kbi_meant_by(kb_dtype dtype, bool said) {
    enum {
        KBI_TF32 = 1 << KBI_ROOF_TF32,
        KBI_HALF = 1 << KBI_ROOF_F16 | 1 << KBI_ROOF_BF16, // the same units do both
        KBI_FP8 = 1 << KBI_ROOF_FP8,
        KBI_INT8 = 1 << KBI_ROOF_INT8
    };
    static const struct {
        kb_dtype dtype;
        int base;
        unsigned said, stored; // others, where kb_flops_as said it and where KB_DTYPE did
    } rows[] = { { KB_NODTYPE, KBI_ROOF_F32, 0, KBI_TF32 | KBI_HALF | KBI_FP8 | KBI_INT8 },
                 { KB_F64, KBI_ROOF_F64, 0, 0 },
                 { KB_F32, KBI_ROOF_F32, 0, KBI_TF32 | KBI_HALF },
                 { KB_TF32, KBI_ROOF_TF32, 0, 0 },
                 { KB_F16, KBI_ROOF_F16, KBI_HALF, KBI_HALF },
                 { KB_BF16, KBI_ROOF_BF16, KBI_HALF, KBI_HALF },
                 { KB_E4M3, KBI_ROOF_FP8, 0, KBI_HALF },
                 { KB_E5M2, KBI_ROOF_FP8, 0, KBI_HALF },
                 { KB_I8, KBI_ROOF_INT8, 0, KBI_HALF | KBI_FP8 },
                 { KB_U8, KBI_ROOF_INT8, 0, KBI_HALF | KBI_FP8 } };
    kbi_meant none = { KBI_NO_ROOF, 0 };
    for (int i = 0; i < KBI_COUNT(rows); i++)
        if (rows[i].dtype == dtype) none.base = rows[i].base, none.others = said ? rows[i].said : rows[i].stored;
    return none;
}

static kbi_meant kbi_arithmetic_of(const kbi_measured* m) {
    kbi_meant meant = kbi_meant_by((kb_dtype)(m->arithmetic ? m->arithmetic : m->dtype), m->arithmetic != 0);
    if (!m->core) return meant;
    meant.others = 0; // the compiler's vectors have f64 and f32; what is smaller is computed in f32
    if (meant.base != KBI_ROOF_F64 && meant.base != KBI_ROOF_INT8 && meant.base >= 0) meant.base = KBI_ROOF_F32;
    if (meant.base == KBI_ROOF_INT8) meant.base = KBI_NO_ROOF;
    return meant;
}

static int kbi_traffic_roof(int traffic) { // unsaid: copy
    return traffic == KB_READ ? KBI_ROOF_READ : traffic == KB_WRITE ? KBI_ROOF_WRITE : KBI_ROOF_COPY;
}

static const double kbi_roof_margin = 1.05; // so far above a roof nothing true was seen
// But products differ by algorithm, and by the power that their numbers take (an H200: fp8 products of zeros in one
// shape 8 % above those in another).
static const double kbi_product_margin = 1.1;

// The first roof, from the base on, that so many operations a second may stand under: not known, or high enough.
static int kbi_roof_over(const kbi_roofs* r, kbi_meant meant, double rate) {
    int best = KBI_NO_ROOF;
    for (int k = -1; k < KBI_ROOFS; k++) {
        int i = k < 0 ? meant.base : k;
        if (i < 0 || (k >= 0 && (k == meant.base || !(meant.others >> k & 1)))) continue;
        if (kbi_nan(r->of[i]) || r->most[i] < 0) return i;
        if (!(r->of[i] > 0)) continue;
        if (rate <= kbi_roof_margin * r->most[i]) return i;
        if (best < 0 || r->most[i] > r->most[best]) best = i;
    }
    return best >= KBI_ROOF_TF32 && rate <= kbi_product_margin * r->most[best] ? best
           : best >= 0                                                         ? KBI_ABOVE_ALL
                                                                               : KBI_NO_ROOF;
}

// The doubles that follow: samples, rounds, the baseline's second rounds.
static size_t kbi_values(const kbi_measured* m) { return (size_t)(m->n + m->rounds + m->again); }

static void kbi_say_more(kbi_measured* m, const char* format, va_list list) {
    size_t n = strlen(m->message);
    kbi_fit(m->message, n, sizeof m->message, n ? "; " : "");
    n = strlen(m->message);
    kbi_vfit(m->message, n, sizeof m->message, format, list);
}

KBI_PRINTF(2, 3) static void kbi_remark(kbi_measured* m, const char* format, ...) {
    va_list list;
    va_start(list, format);
    kbi_say_more(m, format, list);
    va_end(list);
}

/*---------------------------------------------------------------------------------------------------------------
  >>insight   foundation: what a look inside of a case found: kernels, copies, calls of its block. Pure functions.
              Public: none      Used by: >>plan, measure, >>counted, >>record, >>reader, >>profile, program
---------------------------------------------------------------------------------------------------------------*/

typedef enum kbi_wish { KBI_WISH_ACTIVITY = 1, KBI_WISH_COUNTERS = 2 } kbi_wish; // what is to be looked for, as bits

typedef enum kbi_event_kind {
    KBI_EVENT_RUN,
    KBI_EVENT_CALL,
    KBI_EVENT_KERNEL,
    KBI_EVENT_COPY,
    KBI_EVENT_SET
} kbi_event_kind;

typedef struct kbi_event { // of a run of the block; the run itself is one
    int64_t start, end;    // ns of one clock for host and device
    int64_t bytes;         // of a copy or a memset
    int32_t kind, run;     // kbi_event_kind; which run
    int32_t name, cause;   // offset in the texts; index of the call that submitted it, -1: none did
    uint32_t lane;         // its stream; of calls the thread
    int32_t grid[3], block[3], cluster[3], registers, shared, local;
    float occupancy; // percent of the warps that fit on a multiprocessor; 0: not known
    int32_t limit;   // kbi_limit: what lets no more of them in
} kbi_event;

typedef enum kbi_limit {
    KBI_NO_LIMIT,
    KBI_BY_WARPS,
    KBI_BY_REGISTERS,
    KBI_BY_SHARED,
    KBI_BY_BLOCKS,
    KBI_BY_GRID
} kbi_limit;
static const char* const kbi_limit_names[] = { NULL, "warps", "registers", "shared memory", "blocks", "the grid" };

typedef struct kbi_gauge { // what the device showed beside them
    int64_t at;
    double sm_mhz, power_w; // NaN: not known
} kbi_gauge;

// One piece of memory: this, its events, its gauges, its counters, the bytes of its texts.
typedef struct kbi_inside {
    int64_t events, gauges, counters, texts; // how many
    int64_t dropped;                         // records that found no room
    int32_t runs, device;
    char message[400]; // why something that was asked for is not here; "": nothing
} kbi_inside;

static const kbi_event* kbi_events_of(const kbi_inside* in) { return (const kbi_event*)(const void*)(in + 1); }
static const kbi_gauge* kbi_gauges_of(const kbi_inside* in) {
    return (const kbi_gauge*)(const void*)(kbi_events_of(in) + in->events);
}
static const kbi_counter* kbi_counters_of(const kbi_inside* in) {
    return (const kbi_counter*)(const void*)(kbi_gauges_of(in) + in->gauges);
}
static const char* kbi_texts_of(const kbi_inside* in) { return (const char*)(kbi_counters_of(in) + in->counters); }
static const char* kbi_event_name(const kbi_inside* in, const kbi_event* e) { return kbi_texts_of(in) + e->name; }
static size_t kbi_inside_size(const kbi_inside* in) {
    return sizeof *in + sizeof(kbi_event) * (size_t)in->events + sizeof(kbi_gauge) * (size_t)in->gauges +
           sizeof(kbi_counter) * (size_t)in->counters + (size_t)in->texts;
}

// Whether so many bytes, which came from elsewhere, are one whose parts fit each other.
static bool kbi_inside_possible(const kbi_inside* in, size_t size) {
    enum { KBI_MOST = 1 << 24 };
    const int64_t counts[] = { in->events, in->gauges, in->counters, in->texts };
    for (int i = 0; i < KBI_COUNT(counts); i++)
        if (counts[i] < 0 || counts[i] > KBI_MOST) return false;
    if (kbi_inside_size(in) != size || in->message[sizeof in->message - 1]) return false;
    if (in->texts && kbi_texts_of(in)[in->texts - 1]) return false;
    for (int64_t i = 0; i < in->counters; i++) {
        const kbi_counter* c = &kbi_counters_of(in)[i];
        if (c->name[sizeof c->name - 1] || c->unit[sizeof c->unit - 1]) return false;
    }
    for (int64_t i = 0; i < in->events; i++) {
        const kbi_event* e = &kbi_events_of(in)[i];
        if (e->kind < KBI_EVENT_RUN || e->kind > KBI_EVENT_SET || e->run < 0 || e->run >= in->runs) return false;
        if (e->limit < KBI_NO_LIMIT || e->limit > KBI_BY_GRID) return false;
        if (e->name < 0 || e->name >= in->texts || e->cause < -1 || e->cause >= in->events) return false;
    }
    return true;
}

static double kbi_counted(const kbi_inside* in, const char* name) { // NaN: it was not
    for (int64_t i = 0; i < in->counters; i++)
        if (kbi_is(kbi_counters_of(in)[i].name, name)) return kbi_counters_of(in)[i].value;
    return NAN;
}

static kbi_inside* kbi_inside_copy(void* to, const kbi_inside* in) {
    return (kbi_inside*)memcpy(to, in, kbi_inside_size(in));
}

static kbi_inside* kbi_inside_without(const char* why) { // to be freed
    kbi_inside* in = (kbi_inside*)kbi_grow(NULL, sizeof *in);
    memset(in, 0, sizeof *in);
    snprintf(in->message, sizeof in->message, "%s", why);
    return in;
}

// --- summed up ---

typedef struct kbi_sum { // of events that are alike: name, grid and block
    const kbi_event* of; // the first of them
    int64_t calls;
    double total, least, most; // ns
} kbi_sum;

typedef struct kbi_profile {
    kbi_sum *device, *host; // kernels, copies and memsets; calls; what takes most first
    int n_device, n_host;
    double device_ns, host_ns; // all of these
    double span, busy, run;    // ns a run: first start to last end; something at work; the block's own on the host
    double gaps, gap_ns;       // a run: how often nothing was at work in between, and for how long
    double launch_ns;          // of the host, for a call that submits work
    double overlap,
        concurrent; // shares: of the copies' time with a kernel at work; of busy with two at work. NaN: none
} kbi_profile;

static bool kbi_event_on_device(const kbi_event* e) { return e->kind >= KBI_EVENT_KERNEL; }

static int kbi_sums_order(const void* a, const void* b) {
    const kbi_sum *x = (const kbi_sum*)a, *y = (const kbi_sum*)b;
    if (x->total < y->total || x->total > y->total) return x->total < y->total ? 1 : -1;
    return (x->of > y->of) - (x->of < y->of);
}

static void kbi_sums_add(kbi_sum* sums, int* n, kbi_map* known, const kbi_event* e) {
    uint64_t key = 14695981039346656037u;
    const int32_t like[] = { e->kind,    e->name,     e->grid[0],  e->grid[1],
                             e->grid[2], e->block[0], e->block[1], e->block[2] };
    double ns = (double)(e->end - e->start);
    for (int i = 0; i < KBI_COUNT(like); i++) key = (key ^ (uint32_t)like[i]) * 1099511628211u;
    kbi_mapped* slot = kbi_map_find(known, key);
    if (!slot->key) {
        kbi_sum fresh = { e, 0, 0, INFINITY, 0 };
        kbi_map_take(known, slot, key, *n);
        sums[(*n)++] = fresh;
    }
    kbi_sum* s = &sums[slot->at];
    s->calls++;
    s->total += ns;
    s->least = KBI_MIN(s->least, ns);
    s->most = KBI_MAX(s->most, ns);
}

typedef struct kbi_edge { // where an event begins, or ends
    int64_t at;
    int32_t run, copy, step;
} kbi_edge;

static int kbi_edges_order(const void* a, const void* b) { // what ends goes before what begins then
    const kbi_edge *x = (const kbi_edge*)a, *y = (const kbi_edge*)b;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->step - y->step;
}

// What was at work at the same time, and when nothing was.
static void kbi_profile_sweep(kbi_profile* p, const kbi_edge* edges, int64_t n, int runs) {
    double busy = 0, both = 0, many = 0, copying = 0, gap_ns = 0, span = 0, gaps = 0;
    int64_t kernels = 0, copies = 0;
    for (int64_t i = 0; i < n; i++) {
        bool first = i == 0 || edges[i].run != edges[i - 1].run;
        double ns = first ? 0 : (double)(edges[i].at - edges[i - 1].at);
        busy += kernels + copies > 0 ? ns : 0;
        both += kernels > 0 && copies > 0 ? ns : 0;
        many += kernels + copies > 1 ? ns : 0;
        copying += copies > 0 ? ns : 0;
        gaps += !first && kernels + copies == 0 && ns > 0;
        gap_ns += kernels + copies == 0 ? ns : 0;
        span += ns;
        *(edges[i].copy ? &copies : &kernels) += edges[i].step;
    }
    p->span = span / runs, p->busy = busy / runs, p->gaps = gaps / runs, p->gap_ns = gap_ns / runs;
    p->overlap = copying > 0 ? both / copying : (double)NAN;
    p->concurrent = busy > 0 ? many / busy : (double)NAN;
}

static void kbi_profile_free(kbi_profile* p) {
    KBENCH_FREE(p->device);
    KBENCH_FREE(p->host);
}

static void kbi_profile_of(kbi_profile* p, const kbi_inside* in) {
    size_t n = (size_t)in->events + 1;
    kbi_map known = { NULL, 0, 0 };
    kbi_edge* edges = (kbi_edge*)kbi_grow(NULL, sizeof(kbi_edge) * 2 * n);
    char* causes = (char*)kbi_grow(NULL, n);
    int64_t n_edges = 0, launches = 0;
    double launching = 0;
    memset(p, 0, sizeof *p);
    memset(causes, 0, n);
    p->device = (kbi_sum*)kbi_grow(NULL, sizeof(kbi_sum) * n);
    p->host = (kbi_sum*)kbi_grow(NULL, sizeof(kbi_sum) * n);
    for (int64_t i = 0; i < in->events; i++) {
        const kbi_event* e = &kbi_events_of(in)[i];
        double ns = (double)(e->end - e->start);
        kbi_edge begins = { e->start, e->run, e->kind != KBI_EVENT_KERNEL, 1 },
                 ends = { e->end, e->run, begins.copy, -1 };
        if (e->kind == KBI_EVENT_RUN) p->run += ns / in->runs;
        if (e->kind == KBI_EVENT_CALL) kbi_sums_add(p->host, &p->n_host, &known, e), p->host_ns += ns;
        if (!kbi_event_on_device(e)) continue;
        kbi_sums_add(p->device, &p->n_device, &known, e);
        p->device_ns += ns;
        edges[n_edges++] = begins;
        edges[n_edges++] = ends;
        if (e->cause >= 0) causes[e->cause] = 1;
    }
    for (int64_t i = 0; i < in->events; i++) {
        const kbi_event* e = &kbi_events_of(in)[i];
        if (causes[i]) launches++, launching += (double)(e->end - e->start);
    }
    p->launch_ns = launches ? launching / (double)launches : (double)NAN;
    qsort(edges, (size_t)n_edges, sizeof(kbi_edge), kbi_edges_order);
    kbi_profile_sweep(p, edges, n_edges, KBI_MAX(in->runs, 1));
    qsort(p->device, (size_t)p->n_device, sizeof(kbi_sum), kbi_sums_order);
    qsort(p->host, (size_t)p->n_host, sizeof(kbi_sum), kbi_sums_order);
    KBENCH_FREE(known.slots);
    KBENCH_FREE(causes);
    KBENCH_FREE(edges);
}

/*---------------------------------------------------------------------------------------------------------------
  >>fields    foundation: a record's keys as data, and the names by which people choose among them.
              Public: kb_result_free
              Used by: programs, >>differences, >>arguments, >>verdict, record, render, program
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

enum { KBI_SCHEMA = 2 }; // of KB_RECORD; see the manual

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
    char counter[64];   // which of the counters; "": the key is another
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

// An object's number of a name; NaN: there is none.
static double kbi_object_number(const kbi_field_params* object, const char* name) {
    for (int64_t i = 0; i < object->n; i++) {
        const kb_param* p = &object->of[i];
        if (strcmp(p->name, name) == 0)
            return p->type == KB_AXIS_REALS ? p->r : p->type == KB_AXIS_INTS ? (double)p->i : (double)NAN;
    }
    return NAN;
}

static const char* kbi_object_text(const kbi_field_params* object, const char* name) { // NULL: there is none
    for (int64_t i = 0; i < object->n; i++)
        if (strcmp(object->of[i].name, name) == 0 && object->of[i].type == KB_AXIS_STRINGS) return object->of[i].s;
    return NULL;
}

static double kbi_shown_number(const kb_result* r, const kbi_shown* what) {
    return what->counter[0] ? kbi_object_number(&r->counters, what->counter) : kbi_field_number(r, what->key);
}

static const char* kbi_shown_title(const kbi_shown* what) {
    return what->counter[0] ? what->counter : what->column < 0 ? what->key->name : kbi_columns[what->column].title;
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
    memset(out, 0, sizeof *out);
    out->column = -1;
    out->key = key;
    if (strncmp(name, "counter:", 8) == 0 && name[8]) {
        out->key = kbi_key_named("counters");
        snprintf(out->counter, sizeof out->counter, "%s", name + 8);
        return true;
    }
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
        char name[80];
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
  >>changes   foundation: two sets of records: which belong together, and what is known of a change. Pure functions.
              Public: none      Used by: >>differences, >>compare, >>shifts, >>gate, >>race
---------------------------------------------------------------------------------------------------------------*/
#if KBI_REPORT

typedef struct kbi_rules { // by which a change is judged: shares, not percent
    double threshold, memory_threshold, alpha;
    double noise; // by which an interval is widened where nobody knows what runs differ by
} kbi_rules;

// What an interval of a change rests on, from the worst to the best.
typedef enum kbi_ground {
    KBI_GROUND_NONE,      // no interval
    KBI_GROUND_SAMPLES,   // the two records' own intervals, widened
    KBI_GROUND_HISTORY,   // how far runs differed before
    KBI_GROUND_PROCESSES, // the medians of fresh processes
    KBI_GROUND_ROUNDS     // common rounds of a race
} kbi_ground;

typedef struct kbi_change {          // of one case; logarithms of the time after over the time before
    const kb_result *before, *after; // NULL: added, removed
    kbi_ground ground;
    double log, se, df, wide, lo, hi; // standard error, its degrees of freedom, by what the interval is widened
    double run_sd, run_df;            // of one run, as a history knows it; NAN: unknown
    double p;                         // against "within the threshold", for all cases at once
    double memory;                    // after over before; NAN: not both known
    kb_verdict verdict;               // SLOWER, FASTER: than before; EQUIVALENT: within the threshold
    bool regressed, improved;         // by more than the threshold
    bool open;                        // nor is it known whether it lies beyond
    bool more, less;                  // memory, likewise
} kbi_change;

typedef struct kbi_changes {
    kbi_change* of;
    int64_t n;
} kbi_changes;

typedef struct kbi_trend { // of one case over the runs of a history, the last of which is now
    const kb_result* last;
    int64_t runs;
    double first, middle, now; // ms; the median of those before now
    double sd, df;             // of one run about what it would be on the mean: see kbi_runs_scatter
    double slope;              // of the logarithm, a run: Theil 1950, Sen 1968
    double p;                  // that there is none: Mann 1945, Kendall
} kbi_trend;

typedef struct kbi_assessment { // of all changes together
    int64_t compared, regressed, improved, more, less, slower, faster, open, added, removed, broken, mended;
    int64_t grounds[KBI_GROUND_ROUNDS + 1];
    double geomean; // of time after over before; NAN: nothing was compared
    const kbi_change* worst;
} kbi_assessment;

// --- pairs ---

typedef struct kbi_named { // a record in the order of names
    const kb_result* r;
    int64_t at, device, rank; // where it stood; the how manieth of its name
} kbi_named;

static int kbi_order_named(const void* a, const void* b) {
    const kbi_named *x = (const kbi_named*)a, *y = (const kbi_named*)b;
    int name = strcmp(x->r->name ? x->r->name : "", y->r->name ? y->r->name : "");
    if (name) return name;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int kbi_order_at(const void* a, const void* b) {
    const kbi_named *x = (const kbi_named*)a, *y = (const kbi_named*)b;
    return (x->at > y->at) - (x->at < y->at);
}

// Sorted by name and device; of several records of one name and device the last counts. Returns how many are left.
static int64_t kbi_name_records(kbi_named* out, const kb_result* r, int64_t n) {
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i].r = &r[i];
        out[i].at = i;
        out[i].device = r[i].device == KB_NONE ? -1 : r[i].device;
    }
    qsort(out, (size_t)n, sizeof *out, kbi_order_named);
    for (int64_t i = 0; i < n; i++) {
        bool same = left && kbi_is(out[left - 1].r->name, out[i].r->name);
        if (!same || out[left - 1].device != out[i].device) out[left++] = out[i];
        out[left - 1] = out[i];
        out[left - 1].rank = 0;
    }
    for (int64_t i = 1; i < left; i++)
        if (kbi_is(out[i].r->name, out[i - 1].r->name)) out[i].rank = out[i - 1].rank + 1;
    return left;
}

// Cases of one name, on several devices by the order of these; in the order of `after`, what is gone behind it.
static kbi_changes kbi_pair_records(const kb_result* before, int64_t n, const kb_result* after, int64_t m) {
    kbi_named* x = (kbi_named*)kbi_grow(NULL, sizeof(kbi_named) * (size_t)n);
    kbi_named* y = (kbi_named*)kbi_grow(NULL, sizeof(kbi_named) * (size_t)m);
    kbi_changes c = { (kbi_change*)kbi_grow(NULL, sizeof(kbi_change) * (size_t)(n + m)), 0 };
    kbi_change* at = (kbi_change*)kbi_grow(NULL, sizeof(kbi_change) * (size_t)m);
    int64_t gone = 0, i = 0, j = 0;
    n = kbi_name_records(x, before, n);
    m = kbi_name_records(y, after, m);
    memset(c.of, 0, sizeof(kbi_change) * (size_t)(n + m));
    while (i < n || j < m) {
        const char *a = i < n ? x[i].r->name : NULL, *b = j < m ? y[j].r->name : NULL;
        int order = i == n ? 1 : j == m ? -1 : strcmp(a ? a : "", b ? b : "");
        if (!order) order = (x[i].rank > y[j].rank) - (x[i].rank < y[j].rank);
        if (order < 0) { // gone: kept in x for the end
            x[gone++] = x[i++];
            continue;
        }
        memset(&at[j], 0, sizeof *at);
        at[j].before = order == 0 ? x[i++].r : NULL;
        at[j].after = y[j].r;
        y[j].device = j; // where its change is
        j++;
    }
    qsort(y, (size_t)m, sizeof *y, kbi_order_at);
    qsort(x, (size_t)gone, sizeof *x, kbi_order_at);
    for (j = 0; j < m; j++) c.of[c.n++] = at[y[j].device];
    for (i = 0; i < gone; i++) c.of[c.n++].before = x[i].r;
    for (i = 0; i < c.n; i++) c.of[i].run_sd = c.of[i].run_df = (double)NAN;
    KBENCH_FREE(at);
    KBENCH_FREE(x);
    KBENCH_FREE(y);
    return c;
}

static bool kbi_has_time(const kb_result* r) {
    return r && r->status == KB_OK && kbi_finite(r->time_ms) && r->time_ms > 0;
}

static bool kbi_comparable(const kbi_change* c) { return kbi_has_time(c->before) && kbi_has_time(c->after); }

// --- one change ---

static double kbi_memory_of(const kb_result* r, bool device) {
    if (device) return r->memory_bytes == KB_NONE ? (double)NAN : (double)r->memory_bytes;
    return r->host_memory_mb * 1048576;
}

// How bad a regression is, by how many thresholds it counts.
static const char* kbi_severity(const kbi_change* c, double threshold) {
    double times = c->regressed ? expm1(c->log) / threshold : 0;
    if (c->more && kbi_finite(c->memory)) times = KBI_MAX(times, (c->memory - 1) / (2 * threshold));
    return times < 2 ? "minor" : times < 5 ? "moderate" : times < 20 ? "severe" : "critical";
}
#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>differences foundation: what two records' machines differ in, and whether their times may be compared. Pure functions.
              Public: none      Used by: >>shifts, program
---------------------------------------------------------------------------------------------------------------*/
#if KBI_REPORT

typedef enum kbi_env_how { KBI_ENV_TOLD, KBI_ENV_OFF, KBI_ENV_MAJOR, KBI_ENV_OPTIMISED } kbi_env_how;

// What a difference in each key means: it is told, or keeps times from being compared; of versions the first number
// does, of builds whether they were optimised. Of the first three one says it all.
enum { KBI_ENV_DRIVER = 2 };
static const struct {
    const char *key, *words;
    kbi_env_how how;
} kbi_env_keys[] = { { "backend", "backend", KBI_ENV_OFF },
                     { "gpu", "GPU", KBI_ENV_OFF },
                     { "driver", "driver", KBI_ENV_MAJOR },
                     { "ecc", "ECC", KBI_ENV_OFF },
                     { "mig", "MIG", KBI_ENV_OFF },
                     { "cpu", "CPU", KBI_ENV_OFF },
                     { "mode", "mode", KBI_ENV_OFF },
                     { "build", "optimisation", KBI_ENV_OPTIMISED },
                     { "cuda", "CUDA", KBI_ENV_TOLD },
                     { "clocks_locked", "clocks locked", KBI_ENV_TOLD },
                     { "cpus", "processors", KBI_ENV_TOLD },
                     { "cpu_governor", "governor", KBI_ENV_TOLD },
                     { "cpu_boost", "boost", KBI_ENV_TOLD },
                     { "host", "host", KBI_ENV_TOLD },
                     { "kernel_version", "kernel", KBI_ENV_TOLD },
                     { "kbench_version", "kbench", KBI_ENV_TOLD },
                     { "seed", "seed", KBI_ENV_TOLD } };

static const char* kbi_env_value(const kb_result* r, int key, char number[40]) { // NULL: not known
    const kbi_key* k = kbi_key_named(kbi_env_keys[key].key);
    double x = kbi_field_number(r, k);
    const char* words = kbi_field_words(r, k);
    return words ? words : kbi_finite(x) ? kbi_number(x, number) : NULL;
}

static const char* kbi_env_build(const char* build) { // of the benchmark's own file
    const char *not_so = strstr(build, ", not optimised"), *kbench = strstr(build, "; kbench:");
    return not_so && (!kbench || not_so < kbench) ? "not optimised" : "optimised";
}

// Whether two values of a key keep times from being compared. What is not known is not different, but having no GPU is.
static bool kbi_env_off(int key, const char* x, const char* y) {
    if (!x || !y) return kbi_is(kbi_env_keys[key].key, "gpu") && x != y;
    switch (kbi_env_keys[key].how) {
    case KBI_ENV_OFF: return strcmp(x, y) != 0;
    case KBI_ENV_MAJOR: return strcspn(x, ".") != strcspn(y, ".") || strncmp(x, y, strcspn(x, ".")) != 0;
    case KBI_ENV_OPTIMISED: return !kbi_is(kbi_env_build(x), kbi_env_build(y));
    default: return false;
    }
}

// What keeps the times of two records from being compared, as words behind those that are there: "GPU (A, B), CPU (C,
// D)". False: nothing does.
static bool kbi_env_differs(const kb_result* a, const kb_result* b, kbi_text* what) {
    size_t before = what->n;
    for (int i = 0; i < KBI_COUNT(kbi_env_keys); i++) {
        char one[40], other[40];
        const char *x = kbi_env_value(a, i, one), *y = kbi_env_value(b, i, other);
        if (!kbi_env_off(i, x, y)) continue;
        bool build = kbi_env_keys[i].how == KBI_ENV_OPTIMISED;
        kbi_putf(what, "%s%s (%s, %s)", what->n ? ", " : "", kbi_env_keys[i].words,
                 build ? kbi_env_build(x)
                 : x   ? x
                       : "none",
                 build ? kbi_env_build(y)
                 : y   ? y
                       : "none");
        i = KBI_MAX(i, i <= KBI_ENV_DRIVER ? (int)KBI_ENV_DRIVER : 0);
    }
    return what->n > before;
}

// --- all that differs between two sets ---

typedef struct kbi_difference {
    const char *key, *before, *after;
    int64_t pairs; // of records that differ so
    bool off;      // it keeps their times from being compared
} kbi_difference;

enum { KBI_DIFFERENCES = 64 };
typedef struct kbi_differences {
    kbi_difference of[KBI_DIFFERENCES];
    int n;
    int64_t pairs;
    kbi_arena texts;
} kbi_differences;

static void kbi_differences_put(kbi_differences* d, const char* key, const char* before, const char* after,
                                bool off) {
    for (int i = 0; i < d->n; i++) {
        kbi_difference* known = &d->of[i];
        if (kbi_is(known->key, key) && kbi_is(known->before, before) && kbi_is(known->after, after)) {
            known->pairs++;
            return;
        }
    }
    if (d->n == KBI_DIFFERENCES) return;
    kbi_difference* row = &d->of[d->n++];
    row->key = kbi_arena_text(&d->texts, key);
    row->before = kbi_arena_text(&d->texts, before);
    row->after = kbi_arena_text(&d->texts, after);
    row->pairs = 1;
    row->off = off;
}

static const char* kbi_env_fact(const kb_param* p, char number[40]) {
    if (p->type == KB_AXIS_STRINGS) return p->s ? p->s : "";
    return kbi_number(p->type == KB_AXIS_INTS ? (double)p->i : p->r, number);
}

// Of a pair: the table's keys, then what both know of their environment.
static void kbi_differences_add(kbi_differences* d, const kb_result* a, const kb_result* b) {
    char one[40], other[40];
    d->pairs++;
    for (int i = 0; i < KBI_COUNT(kbi_env_keys); i++) {
        const char *x = kbi_env_value(a, i, one), *y = kbi_env_value(b, i, other);
        bool off = kbi_env_off(i, x, y);
        if (off || (x && y && strcmp(x, y) != 0))
            kbi_differences_put(d, kbi_env_keys[i].key, x ? x : "none", y ? y : "none", off);
    }
    for (int64_t i = 0; i < a->environment.n; i++)
        for (int64_t k = 0; k < b->environment.n; k++) {
            const kb_param *p = &a->environment.of[i], *q = &b->environment.of[k];
            if (!kbi_is(p->name, q->name)) continue;
            const char *x = kbi_env_fact(p, one), *y = kbi_env_fact(q, other);
            if (strcmp(x, y) != 0) kbi_differences_put(d, p->name, x, y, false);
        }
}

// Between the two sides of changes; where they have no case in common, between the first of each.
static void kbi_differences_of(kbi_differences* d, const kbi_changes* c) {
    const kb_result *before = NULL, *after = NULL;
    memset(d, 0, sizeof *d);
    for (int64_t i = 0; i < c->n; i++) {
        const kbi_change* one = &c->of[i];
        if (one->before && one->after) kbi_differences_add(d, one->before, one->after);
        if (!before) before = one->before;
        if (!after) after = one->after;
    }
    if (!d->pairs && before && after) kbi_differences_add(d, before, after);
}
#endif // KBI_REPORT

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
  >>cli       plan: the options, from one table that also prints --help.
              Public: none      Used by: plan, program
---------------------------------------------------------------------------------------------------------------*/

enum {
    KBI_EXIT_FINE = 0,
    KBI_EXIT_FAILED = 1,
    KBI_EXIT_USAGE = 2,
    KBI_EXIT_REGRESSED = 3,
    KBI_EXIT_UNCERTAIN = 4,
    KBI_EXIT_NO_GPU = 77,
    KBI_EXIT_INTERRUPTED = 130
};

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
    x(shard,          "shard",        "K/N|auto",      "choose",     "part K of N; auto: as a Slurm array's task")    \
    x(device,         "device",       "N|all|cpu",     "choose",     "which GPU, every GPU in turn, or none; 0")     \
    x(fast,           "fast",         NULL,            "how long",   "0.2 s and 2 % a case, sizes small and medium") \
    x(quick,          "quick",        NULL,            NULL,         NULL)                                           \
    x(thorough,       "thorough",     NULL,            "how long",   "10 s a case")                                  \
    x(precision,      "precision",    "PCT",           "how long",   "stop when the median is known so well; 0.5 %") \
    x(max_time,       "max-time",     "T",             "how long",   "time of sampling a case at most; 1s")          \
    x(min_time,       "min-time",     "T",             "how long",   "time of sampling a case at least; 0s")         \
    x(budget,         "budget",       "T",             "how long",   "of all cases together, or of a --race (60s)") \
    x(rounds,         "rounds",       "N",             "how long",   "exactly N rounds of a comparison; 16 to 64")   \
    x(iters,          "iters",        "N",             "how long",   "exactly N samples a case")                     \
    x(launches,       "launches",     "N",             "how long",   "exactly N launches a sample; 8, on a CPU more")  \
    x(warmup,         "warmup",       "N|T",           "how long",   "samples or time of warm-up; until settled")    \
    x(timeout,        "timeout",      "T",             "how long",   "a case that takes longer is ended; 60s")       \
    x(dry_run,        "dry-run",      NULL,            "how long",   "the plan, without running it")                 \
    x(cold,           "cold",         NULL,            "how",        "L2 evicted before each launch (the default)")   \
    x(hot,            "hot",          NULL,            "how",        "again on the same data, in cache")              \
    x(rotate,         "rotate",       NULL,            "how",        "back to back on copies of the data beyond L2")  \
    x(timer,          "timer",        "WHICH",         "how",        "events, cupti or wall")                        \
    x(no_verify,      "no-verify",    NULL,            "how",        "kb_check is not asked; records say UNVERIFIED") \
    x(fresh,          "fresh",        NULL,            "how",        "kb_check with two other inputs as well")        \
    x(no_audit,       "no-audit",     NULL,            "how",        "the timed block is not looked into")           \
    x(no_isolate,     "no-isolate",   NULL,            "how",        "one process: for debuggers and profilers")     \
    x(procs,          "procs",        "N",             "how",        "fresh processes a case, placed differently; 1") \
    x(shuffle,        "shuffle",      NULL,            "how",        "comparison groups in random order")            \
    x(cpu,            "cpu",          "N,M-K",         "how",        "the processors to measure on; any")            \
    x(seed,           "seed",         "N",             "how",        "of data and order; 42")                        \
    x(json,           "json",         "FILE",          "out",        "records as one array, - for stdout")           \
    x(jsonl,          "jsonl",        "FILE",          "out",        "records appended, one a line, as they finish") \
    x(csv,            "csv",          "FILE",          "out",        "records as CSV, a row a case")                 \
    x(md,             "md",           "FILE",          "out",        "Markdown tables, as for a pull request")       \
    x(gbench,         "gbench",       "FILE",          "out",        "Google Benchmark's JSON, for its compare.py")  \
    x(go,             "go",           "FILE",          "out",        "Go's benchmark format, for benchstat")         \
    x(report,         "report",       "DIR",           "out",        "comparison.csv, comparison.md and report.md")  \
    x(github,         "github",       NULL,            "out",        "Markdown to $GITHUB_STEP_SUMMARY as well")     \
    x(resume,         "resume",       NULL,            "out",        "only cases that --jsonl FILE has no record of") \
    x(sort,           "sort",         "KEY,-KEY",      "out",        "rows, once an operation is done; -KEY: down")   \
    x(columns,        "columns",      "A,B,C",         "out",        "of the table: its own, or keys of the record")  \
    x(no_color,       "no-color",     NULL,            "out",        "plain text (as NO_COLOR)")                     \
    x(no_progress,    "no-progress",  NULL,            "out",        "no progress line on stderr")                   \
    x(quiet,          "quiet",        NULL,            "out",        "no warnings, no progress")                     \
    x(verbose,        "verbose",      NULL,            "out",        "advice for each flag, notes (-v)")             \
    x(help,           "help",         NULL,            "out",        "this text (-h)")                               \
    x(version,        "version",      NULL,            "out",        "the version")                                  \
    x(load,           "load",         "FILE...",       "then",       "shows records of --json, --jsonl; runs nothing") \
    x(save_baseline,  "save-baseline", "NAME",         "then",       "this run's records as .kbench/NAME.json")      \
    x(baseline,       "baseline",     "NAME|FILE",     "then",       "what changed since then, and exit codes 3, 4") \
    x(compare,        "compare",      "A B",           "then",       "what changed from A to B; runs nothing")       \
    x(history,        "history",      "FILE",          "then",       "appends the run; how each case went; noise")   \
    x(threshold,      "threshold",    "PCT",           "then",       "a regression is slower by more; 5 %")          \
    x(memory_threshold, "memory-threshold", "PCT",     "then",       "or takes more memory by more; 10 %")           \
    x(alpha,          "alpha",        "P",             "then",       "chance of any false alarm; 0.05")              \
    x(noise,          "noise",        "PCT",           "then",       "what processes differ by, if not known; 3 %")  \
    x(fail_on,        "fail-on",      "WHAT",          "then",       "regress, change, noise or never; regress")     \
    x(ignore_env,     "ignore-env",   NULL,            "then",       "compare runs of different machines")           \
    x(goal,           "goal",         "GOAL",          "then",       "as in layernorm:gpu_efficiency>=80; may repeat") \
    x(race,           "race",         "OLD NEW...",    "again",      "built programs in turn; -- OPTIONS of theirs") \
    x(profile,        "profile",      NULL,            "look inside", "kernels, copies, calls of each block (CUPTI)") \
    x(counters,       "counters",     "[=SET]",        "look inside", "hardware counters: few, usual, all or names") \
    x(trace,          "trace",        "FILE",          "look inside", "the same as a timeline for Perfetto")         \
    x(env,            "env",          NULL,            "look inside", "the machine; of two loaded files, what differs")  \
    x(selftest,       "selftest",     NULL,            "look inside", "measures the measurement; --fast: in short")   \
    x(benchmark_out,  "benchmark_out", "FILE",         NULL,         NULL)                                           \
    x(benchmark_out_format, "benchmark_out_format", "json", NULL,    NULL)                                           \
    x(benchmark_filter, "benchmark_filter", "RE",      NULL,         NULL)                                           \
    x(benchmark_repetitions, "benchmark_repetitions", "N", NULL,     NULL)                                           \
    x(benchmark_display_aggregates_only, "benchmark_display_aggregates_only", "true", NULL, NULL)
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

enum { KBI_LISTS = 64, KBI_SHARDS = 1000000 };
typedef struct kbi_strings { // the values of an option given more than once
    const char* of[KBI_LISTS];
    int n;
} kbi_strings;

typedef struct kbi_options {
    bool on[KBI_OPTION_COUNT]; // whether an option was given
    kbi_strings filter, exclude, op, impl, dtype, size, axis, goal, race;
    const char *csv, *md, *gbench, *go, *report, *trace, *counters; // counters: behind the =
    const char *json, *jsonl, *device, *cpu, *timer, *sort, *columns;
    double precision, max_time, min_time, warmup_time, timeout; // fractions and seconds
    int64_t iters, rounds, launches, warmup_count, min_samples, max_samples, procs;
    int64_t shard, shards; // which of how many parts of the plan, from 1; shards 0: all of it
    uint64_t seed;
    int64_t gpu;
    const char *save_baseline, *baseline, *compare[2], *history, *fail_on;
    double threshold, memory_threshold, alpha, noise; // shares
    double budget;                                    // seconds; 0: there is none
    char** race_options;                              // what stands behind -- of a race; NULL: nothing
    const char** load;                                // the files of --load
    int n_load;
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
    o->procs = 1;
    o->seed = 42;
    o->threshold = o->alpha = 0.05;
    o->memory_threshold = 0.1;
    o->noise = 0.03;
}

// What chooses cases; each of these may be there more than once.
static const int kbi_choosing_options[] = { KBI_OPTION_op,   KBI_OPTION_impl,   KBI_OPTION_dtype,  KBI_OPTION_size,
                                            KBI_OPTION_axis, KBI_OPTION_filter, KBI_OPTION_exclude };

static bool kbi_option_is_of(int id, const int* ids, int n) {
    for (int i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static bool kbi_option_any(const bool* on, const int* ids, int n) {
    for (int i = 0; i < n; i++)
        if (on[ids[i]]) return true;
    return false;
}

// What is done instead of a run.
static const int kbi_idle_options[] = { KBI_OPTION_selftest, KBI_OPTION_env,        KBI_OPTION_list,
                                        KBI_OPTION_list_ops, KBI_OPTION_list_sizes, KBI_OPTION_dry_run };
// What only work on a GPU can be told.
static const int kbi_gpu_options[] = { KBI_OPTION_cold,  KBI_OPTION_hot,     KBI_OPTION_rotate,
                                       KBI_OPTION_timer, KBI_OPTION_profile, KBI_OPTION_trace };

// What has a say in what --load shows.
static const int kbi_load_options[] = { KBI_OPTION_load,
                                        KBI_OPTION_env,
                                        KBI_OPTION_op,
                                        KBI_OPTION_impl,
                                        KBI_OPTION_dtype,
                                        KBI_OPTION_filter,
                                        KBI_OPTION_exclude,
                                        KBI_OPTION_json,
                                        KBI_OPTION_jsonl,
                                        KBI_OPTION_csv,
                                        KBI_OPTION_md,
                                        KBI_OPTION_gbench,
                                        KBI_OPTION_go,
                                        KBI_OPTION_report,
                                        KBI_OPTION_github,
                                        KBI_OPTION_benchmark_out,
                                        KBI_OPTION_benchmark_out_format,
                                        KBI_OPTION_benchmark_filter,
                                        KBI_OPTION_benchmark_repetitions,
                                        KBI_OPTION_benchmark_display_aggregates_only,
                                        KBI_OPTION_sort,
                                        KBI_OPTION_columns,
                                        KBI_OPTION_quiet,
                                        KBI_OPTION_verbose,
                                        KBI_OPTION_no_color,
                                        KBI_OPTION_no_progress,
                                        KBI_OPTION_baseline,
                                        KBI_OPTION_history,
                                        KBI_OPTION_threshold,
                                        KBI_OPTION_memory_threshold,
                                        KBI_OPTION_alpha,
                                        KBI_OPTION_noise,
                                        KBI_OPTION_fail_on,
                                        KBI_OPTION_ignore_env,
                                        KBI_OPTION_goal };
// Files of records, or of what is made of them, when they are all there.
static const int kbi_output_options[] = { KBI_OPTION_json, KBI_OPTION_jsonl,  KBI_OPTION_csv,
                                          KBI_OPTION_md,   KBI_OPTION_gbench, KBI_OPTION_benchmark_out,
                                          KBI_OPTION_go,   KBI_OPTION_report, KBI_OPTION_github,
                                          KBI_OPTION_trace };

// In what --compare shows.
static const int kbi_compare_options[] = {
    KBI_OPTION_compare,          KBI_OPTION_op,          KBI_OPTION_impl,    KBI_OPTION_dtype,
    KBI_OPTION_filter,           KBI_OPTION_exclude,     KBI_OPTION_quiet,   KBI_OPTION_verbose,
    KBI_OPTION_no_color,         KBI_OPTION_no_progress, KBI_OPTION_history, KBI_OPTION_threshold,
    KBI_OPTION_memory_threshold, KBI_OPTION_alpha,       KBI_OPTION_noise,   KBI_OPTION_fail_on,
    KBI_OPTION_ignore_env,       KBI_OPTION_goal
};
// In a race itself; all others are for its programs.
static const int kbi_race_options[] = {
    KBI_OPTION_race,    KBI_OPTION_budget, KBI_OPTION_threshold, KBI_OPTION_memory_threshold, KBI_OPTION_alpha,
    KBI_OPTION_fail_on, KBI_OPTION_quiet,  KBI_OPTION_verbose,   KBI_OPTION_no_color,         KBI_OPTION_no_progress
};

// What KBENCH_NO_REPORT leaves out.
static const int kbi_report_options[] = { KBI_OPTION_load,
                                          KBI_OPTION_csv,
                                          KBI_OPTION_md,
                                          KBI_OPTION_gbench,
                                          KBI_OPTION_go,
                                          KBI_OPTION_report,
                                          KBI_OPTION_github,
                                          KBI_OPTION_benchmark_out,
                                          KBI_OPTION_benchmark_out_format,
                                          KBI_OPTION_benchmark_repetitions,
                                          KBI_OPTION_benchmark_display_aggregates_only,
                                          KBI_OPTION_save_baseline,
                                          KBI_OPTION_baseline,
                                          KBI_OPTION_compare,
                                          KBI_OPTION_history,
                                          KBI_OPTION_threshold,
                                          KBI_OPTION_memory_threshold,
                                          KBI_OPTION_alpha,
                                          KBI_OPTION_noise,
                                          KBI_OPTION_fail_on,
                                          KBI_OPTION_ignore_env,
                                          KBI_OPTION_goal,
                                          KBI_OPTION_race,
                                          KBI_OPTION_trace };

static bool kbi_option_left_out(int id) {
    return !KBI_REPORT && kbi_option_is_of(id, kbi_report_options, KBI_COUNT(kbi_report_options));
}

// "[=SET]": a value only behind a =.
static bool kbi_option_may(int id) {
    const char* argument = kbi_options_table[id].argument;
    return argument && *argument == '[';
}

static void kbi_help(void) {
    const char* section = NULL;
    printf("usage: %s [options] [FILTER...]\n", kbi_process.program);
    for (int i = 0; i < KBI_COUNT(kbi_options_table); i++) {
        static const kbi_option host = { "device", "cpu", "choose", "the only one: this build is without CUDA" };
        const kbi_option* o = i == KBI_OPTION_device && !KBI_CUDA ? &host : &kbi_options_table[i];
        if (!o->section || kbi_option_left_out(i) ||
            (!KBI_CUDA && kbi_option_is_of(i, kbi_gpu_options, KBI_COUNT(kbi_gpu_options))))
            continue;
        if (!kbi_is(section, o->section)) printf("\n%s\n", o->section);
        section = o->section;
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", o->name, !o->argument || kbi_option_may(i) ? "" : " ",
                 o->argument ? o->argument : "");
        printf("  %-22s %s\n", left, o->help);
    }
    printf("\nFILTER is a regular expression on case names; -a is --axis, --quick is --fast.\n"
           "LISTs may have ranges: 1:64:*2, 0:100:+25. Times carry a unit: 200ms, 3s.\n"
           "Exit codes: 0 fine, 1 a case failed, 2 usage, 3 a regression or a missed goal,\n"
           "4 not certain (--fail-on noise), 77 no GPU where every case needs one,\n"
           "130 interrupted.\n");
}

/*---------------------------------------------------------------------------------------------------------------
  >>arguments plan: the command line read into the options.
              Public: none      Used by: >>line, program
---------------------------------------------------------------------------------------------------------------*/

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

// "5", "5%": a share of a hundred.
static bool kbi_need_percent(const char* option, const char* s, double* out) {
    char* end;
    double x = kbi_real_of(s, &end);
    bool good = end != s && (!*end || kbi_is(end, "%")) && x >= 0 && x <= 1000;
    if (!good) kbi_error("--%s takes a percentage, as in 5, not '%s'", option, s);
    if (good) *out = x / 100;
    return good;
}

static bool kbi_option_alpha(const char* value, kbi_options* o) {
    char* end;
    o->alpha = kbi_real_of(value, &end);
    bool good = end != value && !*end && o->alpha >= 1e-6 && o->alpha <= 0.5;
    if (!good) kbi_error("--alpha takes the chance of a false alarm, from 0.000001 to 0.5, not '%s'", value);
    return good;
}

static bool kbi_option_fail_on(const char* value, kbi_options* o) {
    o->fail_on = value;
    if (kbi_lists("regress,change,noise,never", value) && !strchr(value, ',')) return true;
    return kbi_error("--fail-on takes regress, change, noise or never, not '%s'", value), false;
}

static bool kbi_option_save_baseline(const char* value, kbi_options* o) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
    o->save_baseline = value;
    if (*value && *value != '.' && strlen(value) < 100 && !value[strspn(value, allowed)]) return true;
    kbi_error("--save-baseline takes a name of letters, digits, . _ + and -, not '%s': it becomes .kbench/NAME.json",
              value);
    return false;
}

static bool kbi_option_warmup(const char* value, kbi_options* o) {
    o->warmup_time = kbi_parse_time(value);
    if (o->warmup_time >= 0) return true;
    if (kbi_parse_whole(value, 0, 1000000, &o->warmup_count)) return true;
    kbi_error("--warmup takes a number of samples or a time with its unit, as in 10 or 200ms, not '%s'", value);
    return false;
}

static bool kbi_option_device(const char* value, kbi_options* o) {
    bool named = kbi_is(value, "all") || kbi_is(value, "cpu") || kbi_is(value, "script"); // which the tests have
    if (named || kbi_parse_whole(value, 0, 1023, &o->gpu)) return o->device = value, true;
    return kbi_error("--device takes a number, all or cpu, not '%s'", value), false;
}

static bool kbi_option_cpu(const char* value) {
    kbi_cpus list, allowed, beyond;
    char not_ours[80], ours[200];
    if (!kbi_cpus_parse(value, &list))
        return kbi_error("--cpu takes numbers of processors, as in 2 or 0,4-7, not '%s'", value), false;
    if (!kbi_cpus_allowed(&allowed)) return kbi_error("--cpu: this system pins no process to a processor"), false;
    if (!kbi_cpus_beyond(&list, &allowed, &beyond)) return true;
    kbi_error("--cpu %s: this process may not run on %s; it may on %s", value,
              kbi_cpus_show(&beyond, not_ours, sizeof not_ours), kbi_cpus_show(&allowed, ours, sizeof ours));
    return false;
}

// A variable that is a number from low up; false after an error message. Where it is not set the value stays.
static bool kbi_environment_count(const char* variable, int64_t low, int64_t* value) {
    const char* s = getenv(variable);
    if (!s || kbi_parse_whole(s, low, KBI_SHARDS, value)) return true;
    return kbi_error("%s is '%s', which is no number from %lld up", variable, s, (long long)low), false;
}

// Which task of how many of its array this is; those that stand at irregular places cannot be counted.
static bool kbi_shard_of_slurm(kbi_options* o) {
    int64_t id = -1, first = 0, last = -1, step = 1, count = -1;
    if (!kbi_environment_count("SLURM_ARRAY_TASK_ID", 0, &id) ||
        !kbi_environment_count("SLURM_ARRAY_TASK_MIN", 0, &first) ||
        !kbi_environment_count("SLURM_ARRAY_TASK_MAX", 0, &last) ||
        !kbi_environment_count("SLURM_ARRAY_TASK_STEP", 1, &step) ||
        !kbi_environment_count("SLURM_ARRAY_TASK_COUNT", 1, &count))
        return false;
    if (id < 0 || last < 0)
        return kbi_error("--shard auto is for a task of a Slurm job array (sbatch --array=1-8), and this is none; "
                         "elsewhere --shard K/N"),
               false;
    o->shards = (last - first) / step + 1;
    o->shard = (id - first) / step + 1;
    if (id >= first && id <= last && (id - first) % step == 0 && (count < 0 || count == o->shards)) return true;
    return kbi_error(
               "--shard auto: the task ids of this array are no row with equal steps; sbatch --array=1-%lld has "
               "as many, or --shard K/N says which part this is",
               (long long)KBI_MAX(count, (int64_t)1)),
           false;
}

static bool kbi_option_shard(const char* value, kbi_options* o) {
    const char* slash = strchr(value, '/');
    char k[24];
    if (kbi_is(value, "auto")) return kbi_shard_of_slurm(o);
    snprintf(k, sizeof k, "%.*s", (int)KBI_MIN(slash ? slash - value : 0, (ptrdiff_t)23), value);
    if (slash && kbi_parse_whole(slash + 1, 1, KBI_SHARDS, &o->shards) && kbi_parse_whole(k, 1, o->shards, &o->shard))
        return true;
    return kbi_error("--shard takes K/N with K from 1 to N, as in 2/8, or auto, not '%s'", value), false;
}

// What test runners that split a program's tests set (they count from 0); --shard goes before.
static bool kbi_shard_of_runner(kbi_options* o) {
    int64_t index = -1, total = -1;
    if (o->on[KBI_OPTION_shard]) return true;
    if (!kbi_environment_count("GTEST_SHARD_INDEX", 0, &index) ||
        !kbi_environment_count("GTEST_TOTAL_SHARDS", 1, &total))
        return false;
    if ((index < 0) != (total < 0))
        return kbi_error("GTEST_SHARD_INDEX and GTEST_TOTAL_SHARDS belong together, and one of them is not set"),
               false;
    if (total >= 0 && index >= total)
        return kbi_error("GTEST_SHARD_INDEX is %lld of GTEST_TOTAL_SHARDS %lld; it counts from 0", (long long)index,
                         (long long)total),
               false;
    if (total > 0) o->shard = index + 1, o->shards = total;
    return true;
}

// What --cpu says, for this process; false after an error message.
static bool kbi_options_pin(const kbi_options* o) {
    kbi_cpus list;
    if (!o->cpu || (kbi_cpus_parse(o->cpu, &list) && kbi_cpus_pin(&list))) return true;
    return kbi_error("--cpu %s: %s", o->cpu, strerror(errno)), false;
}

// Of two values for one option, or two lists for one axis, neither can silently be the one that counts.
static bool kbi_option_is_second(const kbi_options* o, int id, const char* value) {
    const char* equals = id == KBI_OPTION_axis ? strchr(value, '=') : NULL;
    if (o->on[id] && kbi_options_table[id].argument && id != KBI_OPTION_load &&
        !kbi_option_is_of(id, kbi_choosing_options, KBI_COUNT(kbi_choosing_options)) && id != KBI_OPTION_goal)
        return kbi_error("--%s is there twice; it takes one value", kbi_options_table[id].name), true;
    for (int i = 0; equals && i < o->axis.n; i++) {
        const char* other = o->axis.of[i];
        if (!kbi_same_name_n(value, (size_t)(equals - value), other, strcspn(other, "="))) continue;
        kbi_error("-a %s and -a %s name one axis; join the lists with a comma", o->axis.of[i], value);
        return true;
    }
    return false;
}

static bool kbi_option_load(kbi_options* o, const char* value) {
    if (!*value) return kbi_error("--load needs a file's name; its is empty"), false;
    if (!o->load) o->load = (const char**)kbi_grow(NULL, sizeof(char*) * (size_t)o->argc);
    o->load[o->n_load++] = value;
    return true;
}

// Google Benchmark's own spellings, as its compare.py and scripts around it pass them.
static bool kbi_option_gbench(kbi_options* o, int id, const char* value) {
    const char* name = kbi_options_table[id].name;
    bool without = id == KBI_OPTION_benchmark_filter && *value == '-';
    if (id == KBI_OPTION_benchmark_filter && kbi_is(value, "all")) return true;
    if (without) return kbi_add_string(name, &o->exclude, value + 1);
    if (id == KBI_OPTION_benchmark_filter) return kbi_add_string(name, &o->filter, value);
    if (id == KBI_OPTION_benchmark_out_format)
        return kbi_is(value, "json") ||
               (kbi_error("--%s: json is what there is, not '%s'; --csv writes CSV", name, value), false);
    if (id == KBI_OPTION_benchmark_display_aggregates_only) // the table has one row a case in any event
        return kbi_is(value, "true") || (kbi_error("--%s takes true: the table has no single runs", name), false);
    if (id == KBI_OPTION_benchmark_repetitions) {
        int64_t n = 0;
        if (!kbi_need_count(name, value, 1, 1000000, &n)) return false;
        if (n != 10)
            kbi_warn("--%s %s: each case has ten, from its samples, or one for each of its processes", name, value);
        return true;
    }
    if (o->gbench) return kbi_error("--gbench and --benchmark_out are one option; it takes one value"), false;
    return o->gbench = value, true;
}

// Those of what is compared with what.
static bool kbi_option_set_gate(kbi_options* o, int id, const char* value) {
    const char* name = kbi_options_table[id].name;
    switch (id) {
    case KBI_OPTION_save_baseline: return kbi_option_save_baseline(value, o);
    case KBI_OPTION_baseline: o->baseline = value; return true;
    case KBI_OPTION_compare: o->compare[0] = value; return true;
    case KBI_OPTION_history: o->history = value; return true;
    case KBI_OPTION_threshold: return kbi_need_percent(name, value, &o->threshold);
    case KBI_OPTION_memory_threshold: return kbi_need_percent(name, value, &o->memory_threshold);
    case KBI_OPTION_alpha: return kbi_option_alpha(value, o);
    case KBI_OPTION_noise: return kbi_need_percent(name, value, &o->noise);
    case KBI_OPTION_fail_on: return kbi_option_fail_on(value, o);
    case KBI_OPTION_goal: return kbi_add_string(name, &o->goal, value);
    case KBI_OPTION_race: return kbi_add_string(name, &o->race, value);
    case KBI_OPTION_budget: return kbi_need_time(name, value, 1e-3, &o->budget);
    default: return true;
    }
}

// A set is a word, metrics have "__" in their names.
static bool kbi_option_counters(kbi_options* o, const char* value) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,";
    o->counters = value;
    bool set = !value || kbi_is(value, "few") || kbi_is(value, "usual") || kbi_is(value, "all");
    if (set || (strstr(value, "__") && !value[strspn(value, allowed)])) return true;
    return kbi_error(
               "--counters takes few, usual or all, or names of metrics, as in --counters=dram__bytes.sum, not '%s'",
               value),
           false;
}

// Those of what is read and written.
static bool kbi_option_set_out(kbi_options* o, int id, const char* value) {
    const char* name = kbi_options_table[id].name;
    switch (id) {
    case KBI_OPTION_json: o->json = value; return true;
    case KBI_OPTION_jsonl: o->jsonl = value; return true;
    case KBI_OPTION_load: return kbi_option_load(o, value);
    case KBI_OPTION_csv: o->csv = value; return true;
    case KBI_OPTION_md: o->md = value; return true;
    case KBI_OPTION_go: o->go = value; return true;
    case KBI_OPTION_report: o->report = value; return true;
    case KBI_OPTION_trace: o->trace = value; return true;
    case KBI_OPTION_counters: return kbi_option_counters(o, value);
    case KBI_OPTION_gbench:
    case KBI_OPTION_benchmark_out:
    case KBI_OPTION_benchmark_out_format:
    case KBI_OPTION_benchmark_filter:
    case KBI_OPTION_benchmark_display_aggregates_only:
    case KBI_OPTION_benchmark_repetitions: return kbi_option_gbench(o, id, value);
    case KBI_OPTION_sort: o->sort = value; return kbi_shown_check(name, value);
    case KBI_OPTION_columns: o->columns = value; return kbi_shown_check(name, value);
    default: return kbi_option_set_gate(o, id, value);
    }
}

// One option with its value; false after an error message.
static bool kbi_option_set(kbi_options* o, int id, const char* value) {
    const char* name = kbi_options_table[id].name;
    int64_t whole = 0;
    if (kbi_option_left_out(id))
        return kbi_error(
                   "--%s is not in this program: it was built with KBENCH_NO_REPORT; --json and --jsonl are, and "
                   "another program or the tool (make tool) reads their files",
                   name),
               false;
    if (kbi_option_is_second(o, id, value)) return false;
    o->on[id] = true;
    switch (id) {
    case KBI_OPTION_filter: return kbi_add_string(name, &o->filter, value);
    case KBI_OPTION_exclude: return kbi_add_string(name, &o->exclude, value);
    case KBI_OPTION_op: return kbi_add_string(name, &o->op, value);
    case KBI_OPTION_impl: return kbi_add_string(name, &o->impl, value);
    case KBI_OPTION_dtype: return kbi_add_string(name, &o->dtype, value);
    case KBI_OPTION_size: return kbi_add_string(name, &o->size, value);
    case KBI_OPTION_axis:
        if (strchr(value, '=')) return kbi_add_string(name, &o->axis, value);
        return kbi_error("-a takes NAME=LIST, as in rows=512,1024, not '%.100s'", value), false;
    case KBI_OPTION_shard: return kbi_option_shard(value, o);
    case KBI_OPTION_device: return kbi_option_device(value, o);
    case KBI_OPTION_cpu: o->cpu = value; return kbi_option_cpu(value);
    case KBI_OPTION_quick: o->on[KBI_OPTION_fast] = true; return true;
    case KBI_OPTION_timer:
        o->timer = value;
        if (kbi_same_name(value, "events") || kbi_same_name(value, "cupti") || kbi_same_name(value, "wall"))
            return true;
        return kbi_error("--timer takes events, cupti or wall, not '%s'", value), false;
    case KBI_OPTION_max_time: return kbi_need_time(name, value, 1e-9, &o->max_time);
    case KBI_OPTION_min_time: return kbi_need_time(name, value, 0, &o->min_time);
    case KBI_OPTION_timeout: return kbi_need_time(name, value, 1e-9, &o->timeout);
    case KBI_OPTION_rounds: return kbi_need_count(name, value, 1, KBI_ROUNDS_LIMIT, &o->rounds);
    case KBI_OPTION_launches: return kbi_need_count(name, value, 1, KBI_LAUNCHES_LIMIT, &o->launches);
    case KBI_OPTION_iters: return kbi_need_count(name, value, 1, 10000000, &o->iters);
    case KBI_OPTION_procs: return kbi_need_count(name, value, 1, KBI_PROCESSES, &o->procs);
    case KBI_OPTION_seed:
        if (!kbi_need_count(name, value, 0, INT64_MAX, &whole)) return false;
        o->seed = (uint64_t)whole;
        return true;
    case KBI_OPTION_precision: return kbi_option_precision(value, o);
    case KBI_OPTION_warmup: return kbi_option_warmup(value, o);
    default: return kbi_option_set_out(o, id, value);
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
    if (o->race.n && !o->on[KBI_OPTION_budget]) o->budget = 60;
}

/*---------------------------------------------------------------------------------------------------------------
  >>line      plan: the command line as a whole: what its options mean together.
              Public: none      Used by: >>selftest, >>main
---------------------------------------------------------------------------------------------------------------*/

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

// What runs no benchmark of this program has room for few options.
static bool kbi_options_beside(const kbi_options* o) {
    for (int i = 0; i < KBI_OPTION_COUNT; i++) {
        const char* why = NULL;
        if (!o->on[i]) continue;
        if (o->on[KBI_OPTION_race] && !kbi_option_is_of(i, kbi_race_options, KBI_COUNT(kbi_race_options)))
            why = "--race runs other programs: --%s has no place beside it; what is for them stands behind --";
        else if (o->on[KBI_OPTION_load] && !kbi_option_is_of(i, kbi_load_options, KBI_COUNT(kbi_load_options)))
            why = "--load shows records and runs nothing: --%s has no place beside it";
        else if (o->on[KBI_OPTION_compare] &&
                 !kbi_option_is_of(i, kbi_compare_options, KBI_COUNT(kbi_compare_options)))
            why = "--compare shows what changed and runs nothing: --%s has no place beside it";
        if (why) return kbi_error(why, kbi_options_table[i].name), false;
    }
    return true;
}

// Options of a gate want one that they can be of.
static bool kbi_options_gate_agree(const kbi_options* o) {
    static const int of_times[] = { KBI_OPTION_threshold, KBI_OPTION_memory_threshold, KBI_OPTION_alpha };
    static const int of_files[] = { KBI_OPTION_noise, KBI_OPTION_ignore_env };
    static const int of_runs[] = { KBI_OPTION_save_baseline, KBI_OPTION_baseline, KBI_OPTION_history,
                                   KBI_OPTION_goal };
    bool files = o->baseline || o->compare[0], any = files || o->race.n;
    for (int i = 0; i < KBI_COUNT(of_times) && !any; i++)
        if (o->on[of_times[i]])
            return kbi_error("--%s: there is nothing to compare with; it goes with --baseline, --compare or --race",
                             kbi_options_table[of_times[i]].name),
                   false;
    for (int i = 0; i < KBI_COUNT(of_files) && !files; i++)
        if (o->on[of_files[i]])
            return kbi_error("--%s: there is nothing to compare with; it goes with --baseline or --compare",
                             kbi_options_table[of_files[i]].name),
                   false;
    if (o->fail_on && !any && !o->goal.n)
        return kbi_error("--fail-on: nothing can fail; it goes with --baseline, --compare, --race or --goal"), false;
    if (o->race.n == 1) return kbi_error("--race takes two programs or more, the old one first"), false;
    for (int i = 0; i < KBI_COUNT(kbi_idle_options); i++)
        for (int k = 0; k < KBI_COUNT(of_runs) && o->on[kbi_idle_options[i]]; k++)
            if (o->on[of_runs[k]])
                return kbi_error("--%s measures no case: --%s has no place beside it",
                                 kbi_options_table[kbi_idle_options[i]].name, kbi_options_table[of_runs[k]].name),
                       false;
    return true;
}

// Where one option would silently take away what another one asks for; false after an error message.
static bool kbi_options_agree(const kbi_options* o) {
    static const int mode[] = { KBI_OPTION_cold, KBI_OPTION_hot, KBI_OPTION_rotate };
    static const int effort[] = { KBI_OPTION_fast, KBI_OPTION_thorough };
    static const int count[] = { KBI_OPTION_iters, KBI_OPTION_rounds };
    static const int words[] = { KBI_OPTION_quiet, KBI_OPTION_verbose };
    static const int checks[] = { KBI_OPTION_fresh, KBI_OPTION_no_verify };
    static const int sizes[] = { KBI_OPTION_launches, KBI_OPTION_rotate };
    if (!kbi_one_of(o, mode, KBI_COUNT(mode), "") || !kbi_one_of(o, effort, KBI_COUNT(effort), "") ||
        !kbi_one_of(o, count, KBI_COUNT(count), ": both say how many samples there are") ||
        !kbi_one_of(o, words, KBI_COUNT(words), "") ||
        !kbi_one_of(o, checks, KBI_COUNT(checks), ": other inputs are there to be checked") ||
        !kbi_one_of(o, sizes, KBI_COUNT(sizes), ": a graph holds every copy of the data equally often") ||
        !kbi_one_of(o, kbi_idle_options, KBI_COUNT(kbi_idle_options), ": one at a time"))
        return false;
    for (int i = 0; i < KBI_COUNT(mode); i++)
        if (o->on[mode[i]] && kbi_same_name(o->timer, "wall"))
            return kbi_error("--timer wall is the host's clock around each run: without --%s",
                             kbi_options_table[mode[i]].name),
                   false;
    if (o->launches && kbi_same_name(o->timer, "cupti"))
        return kbi_error("--timer cupti records every launch by itself: without --launches"), false;
    if (o->on[KBI_OPTION_min_time] && o->on[KBI_OPTION_max_time] && o->min_time > o->max_time)
        return kbi_error("--min-time is above --max-time: there is no time between the two"), false;
    if (!kbi_options_beside(o) || !kbi_options_gate_agree(o)) return false;
    if (o->procs > 1 && o->on[KBI_OPTION_no_isolate])
        return kbi_error("--procs %lld takes processes of their own: leave out --no-isolate", (long long)o->procs),
               false;
    if (o->on[KBI_OPTION_resume] && (!o->jsonl || kbi_is(o->jsonl, "-")))
        return kbi_error("--resume needs --jsonl FILE, with the records of the run that is to go on"), false;
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
        if (kbi_is(s, "--") && o->on[KBI_OPTION_race]) {
            o->race_options = argv + i + 1;
            break;
        }
        if (kbi_is(s, "--")) {
            only_filters = true;
            continue;
        }
        const char* equals = s[1] == '-' ? strchr(s, '=') : NULL;
        size_t n = equals ? (size_t)(equals - s) - 2 : strlen(s) - 1;
        int id = s[1] == '-' ? kbi_option_named(s + 2, n) : kbi_option_short(s);
        if (id < 0) return false;
        bool wants = kbi_options_table[id].argument && (equals || !kbi_option_may(id));
        if (!wants && equals) return kbi_error("--%s takes no value", kbi_options_table[id].name), false;
        if (wants && !equals && (i + 1 == argc || strncmp(argv[i + 1], "--", 2) == 0))
            return kbi_error("--%s needs %s", kbi_options_table[id].name, kbi_options_table[id].argument), false;
        if (wants && !equals && (id == KBI_OPTION_json || id == KBI_OPTION_jsonl) && argv[i + 1][0] == '-' &&
            argv[i + 1][1])
            return kbi_error("--%s needs a file, and %s is an option; --%s=%s is such a file",
                             kbi_options_table[id].name, argv[i + 1], kbi_options_table[id].name, argv[i + 1]),
                   false;
        if (!kbi_option_set(o, id, !wants ? NULL : equals ? equals + 1 : argv[++i])) return false;
        while (id == KBI_OPTION_load && i + 1 < argc && (argv[i + 1][0] != '-' || !argv[i + 1][1]))
            if (!kbi_option_load(o, argv[++i])) return false;
        while (id == KBI_OPTION_race && i + 1 < argc && argv[i + 1][0] != '-')
            if (!kbi_add_string("race", &o->race, argv[++i])) return false;
        if (id != KBI_OPTION_compare) continue;
        if (i + 1 == argc || argv[i + 1][0] == '-')
            return kbi_error("--compare takes two names or files, the older one first"), false;
        o->compare[1] = argv[++i];
    }
    if (!kbi_options_agree(o) || !kbi_shard_of_runner(o)) return false;
    kbi_options_effort(o);
    return true;
}

/*---------------------------------------------------------------------------------------------------------------
  >>ranges    plan: the values of axes, written as lists: 512,1024:8192:*2.
              Public: none      Used by: >>plan, >>embed
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
    errno = 0;
    double x = kbi_real_of(*s, &end);
    bool infinite = end != *s && tolower((unsigned char)(*s)[**s == '-' || **s == '+']) == 'i', none = !x && errno;
    if (*end == '^' && end != *s) {
        const char* power = end + 1;
        double base = x, y = kbi_real_of(power, &end);
        if (end == power || !kbi_finite(base) || !kbi_finite(y)) return false;
        x = pow(base, y);
        none = !x && base != 0;
    }
    if (end == *s || none || (!infinite && !kbi_finite(x))) return false; // 1e999 and 1e-999 are no way to write it
    *s = end;
    *out = x;
    return true;
}

static bool kbi_add_value(kb_param* values, int* n, kb_axis_type type, double x) {
    if (*n == KBI_VALUES || (type == KB_AXIS_INTS && (x != floor(x) || fabs(x) >= 1e15))) return false;
    memset(&values[*n], 0, sizeof values[*n]);
    values[*n].type = type;
    if (type == KB_AXIS_INTS) values[*n].i = (int64_t)x;
    values[(*n)++].r = type == KB_AXIS_INTS && !x ? 0 : x; // whole numbers have no -0
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
            for (size_t i = 0; i < word; i++) good &= !kbi_control(p + i);
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
  >>patterns  plan: regular expressions on the names of cases, which the system compiles and matches.
              Public: none      Used by: >>plan, >>gate, >>load
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_patterns {
    regex_t of[KBI_LISTS];
    int n;
} kbi_patterns;

static void kbi_patterns_free(kbi_patterns* p) {
    for (int i = 0; i < p->n; i++) regfree(&p->of[i]);
    p->n = 0;
}

enum { KBI_PATTERN = 4096, KBI_PATTERN_DEPTH = 64 }; // characters, groups in groups

// How many characters a pattern, or the group that begins there, has with its repeats written out, as the system's
// regcomp writes them: a{200} as 200, and a+ as aa*. In groups that multiplies, and ten characters take all memory that
// there is. 1e9: groups too deep for its stack, or a reference \1, whose search can take for ever.
static double kbi_pattern_size(const char** at, int depth) {
    double all = 0, last = 0; // all before the last thing that can be repeated
    for (const char* s; *(s = *at) && !(*s == ')' && depth); *at = s) {
        char* end = NULL;
        double low, high;
        if (*s == '{' && isdigit((unsigned char)s[1])) {
            low = high = strtod(s + 1, &end);
            if (*end == ',') high = isdigit((unsigned char)end[1]) ? strtod(end + 1, &end) : (end++, low + 1);
            last *= KBI_MAX(KBI_MAX(low, high), 1.0);
            s = *end == '}' ? end + 1 : end;
            continue;
        }
        if (*s == '+') last *= 2;
        if (*s == '+' || *s == '*' || *s == '?') {
            s++;
            continue;
        }
        all += last;
        last = 1;
        if (*s == '\\' && isdigit((unsigned char)s[1])) return 1e9;
        if (*s == '(' && depth == KBI_PATTERN_DEPTH) return 1e9;
        if (*s == '(') {
            *at = s + 1;
            last = kbi_pattern_size(at, depth + 1);
            s = *at + (**at == ')');
        } else if (*s == '[') {
            s += 1 + (s[1] == '^');
            s += *s == ']';
            for (; *s && *s != ']'; s++) // [:alpha:], [.x.], [=x=]
                if (*s == '[' && s[1] && strchr(":.=", s[1])) {
                    const char close[] = { s[1], ']', 0 };
                    if ((end = (char*)strstr(s + 2, close)) != NULL) s = end + 1;
                }
            s += *s == ']';
        } else
            s += 1 + (*s == '\\' && s[1]);
    }
    return all + last;
}

// false after an error message
static bool kbi_pattern_sound(const char* s) {
    const char* at = s;
    if (strlen(s) <= KBI_PATTERN && kbi_pattern_size(&at, 0) <= KBI_PATTERN) return true;
    kbi_error(
        "'%.60s%s' is refused: a pattern has at most %d characters, repeats like {9} and + written out, %d groups "
        "in groups, and no \\1",
        s, strlen(s) > 60 ? "..." : "", (int)KBI_PATTERN, (int)KBI_PATTERN_DEPTH);
    return false;
}

static bool kbi_patterns_compile(kbi_patterns* p, const kbi_strings* texts) {
    for (p->n = 0; p->n < texts->n; p->n++) {
        if (!kbi_pattern_sound(texts->of[p->n])) return false;
        int error = regcomp(&p->of[p->n], texts->of[p->n], REG_EXTENDED | REG_ICASE | REG_NOSUB);
        if (!error) continue;
        char why[128];
        regerror(error, &p->of[p->n], why, sizeof why);
        kbi_error("'%.100s' is not a regular expression: %s", texts->of[p->n], why);
        return false;
    }
    return true;
}

static bool kbi_patterns_match(const kbi_patterns* p, const char* s) {
    for (int i = 0; i < p->n; i++)
        if (regexec(&p->of[i], s, 0, NULL, 0) == 0) return true;
    return false;
}

/*---------------------------------------------------------------------------------------------------------------
  >>shards    plan: a plan, how long its groups may take, and which of them a shard of it has.
              Public: none      Used by: >>plan, >>list, program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_plan {
    kbi_case* cases; // a group's cases stand together, the baseline first
    int n, groups;   // of this shard; behind its cases stand those of the others
    int n_all;
    kbi_arena arena;
} kbi_plan;

// What n cases in one group take a process at most, in seconds, as far as the options say it: warm-ups, and samples, of
// which the baseline of a comparison has twice as many.
static double kbi_group_seconds(const kbi_options* o, double max_time, int n) {
    double warm = o->warmup_time >= 0 ? o->warmup_time : 0.5 * KBI_MIN(max_time, 2.0);
    return KBI_MIN(n * warm + (n + (n > 1)) * max_time, n * o->timeout);
}

// Where a group begins, and where the next does.
static int kbi_group_end(const kbi_plan* plan, int first) {
    int end = first;
    while (end < plan->n && plan->cases[end].group == plan->cases[first].group) end++;
    return end;
}

typedef struct kbi_dealt { // a group
    int64_t cost;          // us: whole numbers are the same on every machine
    int first, n;          // its cases
} kbi_dealt;

static int kbi_order_dealt(const void* a, const void* b) { // the longest first
    const kbi_dealt *x = (const kbi_dealt*)a, *y = (const kbi_dealt*)b;
    return x->cost != y->cost ? (x->cost < y->cost) - (x->cost > y->cost)
                              : (x->first > y->first) - (x->first < y->first);
}

// Which of n shards each group goes to: the longest first, each to the one that has least so far (Graham 1969). Of
// those that have the same it is the first, then the last, in turns: sizes and types come round in a rhythm, and no
// shard is to have all that are large.
static void kbi_deal(const kbi_dealt* of, int groups, int n, int* to) {
    int64_t* load = (int64_t*)kbi_grow(NULL, sizeof(int64_t) * (size_t)n);
    memset(load, 0, sizeof(int64_t) * (size_t)n);
    for (int g = 0; g < groups; g++) {
        bool back = g / n % 2 == 1;
        int best = back ? n - 1 : 0;
        for (int k = 1; k < n; k++) {
            int s = back ? n - 1 - k : k;
            if (load[s] < load[best]) best = s;
        }
        load[best] += of[g].cost;
        to[g] = best;
    }
    KBENCH_FREE(load);
}

// Puts the cases of this shard before those of the others, in their order.
static void kbi_plan_shard(kbi_plan* plan, const kbi_options* o) {
    int groups = 0, n = 0, shards = (int)KBI_MIN(o->shards, (int64_t)plan->groups + 1); // more have nothing
    kbi_dealt* dealt = (kbi_dealt*)kbi_grow(NULL, sizeof(kbi_dealt) * (size_t)plan->groups);
    int* to = (int*)kbi_grow(NULL, sizeof(int) * (size_t)plan->groups);
    char* ours = (char*)kbi_grow(NULL, (size_t)plan->n);
    kbi_case* sorted = (kbi_case*)kbi_grow(NULL, sizeof(kbi_case) * (size_t)plan->n);
    for (int first = 0, end; first < plan->n; first = end) {
        end = kbi_group_end(plan, first);
        dealt[groups].cost = (int64_t)(kbi_group_seconds(o, o->max_time, end - first) * 1e6 + 0.5);
        dealt[groups].first = first;
        dealt[groups++].n = end - first;
    }
    qsort(dealt, (size_t)groups, sizeof *dealt, kbi_order_dealt);
    kbi_deal(dealt, groups, shards, to);
    plan->groups = 0;
    for (int g = 0; g < groups; g++) {
        bool here = to[g] == o->shard - 1;
        memset(ours + dealt[g].first, here, (size_t)dealt[g].n);
        plan->groups += here;
    }
    for (int i = 0; i < plan->n; i++)
        if (ours[i]) sorted[n++] = plan->cases[i];
    for (int i = 0, rest = n; i < plan->n; i++)
        if (!ours[i]) sorted[rest++] = plan->cases[i];
    KBENCH_FREE(plan->cases);
    plan->cases = sorted;
    plan->n = n;
    KBENCH_FREE(ours);
    KBENCH_FREE(to);
    KBENCH_FREE(dealt);
}

/*---------------------------------------------------------------------------------------------------------------
  >>plan      plan: from registry and command line to an ordered list of cases in comparison groups.
              Public: none      Used by: >>list, program
---------------------------------------------------------------------------------------------------------------*/

static bool kbi_any_lists(const kbi_strings* lists, const char* name) {
    for (int i = 0; i < lists->n; i++)
        if (kbi_lists(lists->of[i], name)) return true;
    return false;
}

static const struct {
    const char *said, *meant;
} kbi_synonyms[] = { { "swish", "silu" }, { "gelu", "gelu_erf,gelu_tanh" }, { "loss", "mse,cross_entropy" } };

static bool kbi_word_is_operation(const char* word, size_t n, const char* operation) {
    if (kbi_same_name_n(word, n, operation, strlen(operation))) return true;
    for (int i = 0; i < KBI_COUNT(kbi_synonyms); i++) {
        const char* said = kbi_synonyms[i].said;
        if (kbi_same_name_n(word, n, said, strlen(said)) && kbi_lists(kbi_synonyms[i].meant, operation)) return true;
    }
    return false;
}

static bool kbi_selects_operation(const kbi_options* o, const char* operation) {
    size_t n;
    for (int i = 0; i < o->op.n; i++)
        for (const char *p = o->op.of[i], *next; *p; p = next) {
            next = kbi_word(p, &n);
            if (kbi_word_is_operation(p, n, operation)) return true;
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
        if (!d->name || !kbi_same_name_n(s, (size_t)(equals - s), d->name, strlen(d->name))) continue;
        *d = kbi_parse_list(a, d->name, d->type, equals + 1, strlen(equals + 1));
        if (d->n && kbi_takes_values(a, e, d, s)) continue;
        if (d->n) return false;
        kbi_error("-a %.100s: not a list of at most %d %s; as in %s=%s", s, (int)KBI_VALUES,
                  d->type == KB_AXIS_REALS     ? "numbers"
                  : d->type == KB_AXIS_STRINGS ? "words without control characters"
                                               : "whole numbers of up to 15 digits",
                  d->name, d->type == KB_AXIS_STRINGS ? "this,that" : "1,2,16:64:*2");
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

// The case of these values: its name, its key, and what has a meaning of its own (dtype; dir where it is strings,
// while numbers of that name are an axis like any).
static kbi_case kbi_case_of(kbi_arena* a, const kb_entry* e, const kb_param* const* values, int n) {
    kbi_case c;
    kbi_text name, key;
    memset(&c, 0, sizeof c);
    memset(&name, 0, sizeof name);
    memset(&key, 0, sizeof key);
    kb_param* params = (kb_param*)kbi_arena_alloc(a, sizeof(kb_param) * (size_t)(n + 1));
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
    c.params = params;
    c.name = kbi_arena_text(a, name.s);
    kbi_text_free(&name);
    kbi_text_free(&key);
    return c;
}

static void kbi_plan_case(kbi_plan* plan, const kb_entry* e, const char* size, const kb_param* const* values, int n) {
    if ((plan->n & (plan->n - 1)) == 0) // grows at powers of two
        plan->cases = (kbi_case*)kbi_grow(plan->cases, sizeof(kbi_case) * (size_t)KBI_MAX(16, 2 * plan->n));
    plan->cases[plan->n] = kbi_case_of(&plan->arena, e, values, n);
    plan->cases[plan->n++].size = size;
}

// The cartesian product, first axis slowest.
static bool kbi_plan_product(kbi_plan* plan, const kb_entry* e, const char* size, const kbi_dimension* d, int n) {
    const kb_param* values[KBI_DIMENSIONS];
    int at[KBI_DIMENSIONS] = { 0 };
    double all = 1;
    for (int i = 0; i < n; i++) all *= d[i].n;
    if (all > KBI_CASES - plan->n) return kbi_error("more than %d cases; narrow the axes", (int)KBI_CASES), false;
    for (;;) {
        for (int i = 0; i < n; i++) values[i] = &d[i].values[at[i]];
        kbi_plan_case(plan, e, size, values, n);
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
        kbi_offer(best, e->operation),
            found = kbi_word_is_operation(best->wanted, strlen(best->wanted), e->operation);
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

// A word must be the name of something registered.
static bool kbi_check_name(const kbi_registered* all, const char* word, kbi_naming what, const char* noun) {
    kbi_nearest best = { word, NULL, 64 };
    for (int e = 0; e < all->n; e++)
        if (kbi_offer_entry(&best, all->of[e], what)) return true;
    if (best.distance > 3)
        kbi_error("unknown %s '%.100s' (--list%s shows what there is)", noun, word,
                  what == KBI_NAMES_SIZE || what == KBI_NAMES_AXIS ? "-sizes" : "-ops");
    else if (best.name)
        kbi_error("unknown %s '%s'; nearest is '%.*s' (--list%s)", noun, word, (int)strcspn(best.name, "= "),
                  best.name, what == KBI_NAMES_SIZE ? "-sizes" : "-ops");
    else
        kbi_error("unknown %s '%s': this program has none", noun, word);
    return false;
}

// Every word of the lists, and the name of every axis.
static bool kbi_check_names(const kbi_registered* all, const kbi_strings* lists, kbi_naming what, const char* noun) {
    kbi_text word = { NULL, 0, 0 };
    bool good = true;
    for (int i = 0; i < lists->n && good; i++)
        for (const char *p = lists->of[i], *next; *p && good; p = next) {
            size_t n = strcspn(p, "=");
            next = p + strlen(p);
            if (what != KBI_NAMES_AXIS) next = kbi_word(p, &n);
            word.n = 0;
            kbi_put(&word, p, n);
            good = kbi_check_name(all, word.s, what, noun);
        }
    kbi_text_free(&word);
    return good;
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
#ifdef KBENCH_TOOL
    if (!all->n)
        return kbi_error("this is the tool, which has no benchmarks: --load FILE shows those of a run"), false;
#endif
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
    plan->n_all = plan->n;
    for (int i = 0; i < plan->n; i++) plan->cases[i].place = i + 1;
    if (o->shards > 1) kbi_plan_shard(plan, o);
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
    r->fresh = o->on[KBI_OPTION_fresh];
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
    r->launches = o->launches;
    r->counters = o->counters;
    r->min_samples = o->min_samples;
    r->max_samples = o->max_samples;
    if (o->on[KBI_OPTION_thorough]) r->max_rounds = KBI_ROUNDS_LIMIT;
}

// What is to be looked into when the cases have been measured; kbi_wish.
static unsigned kbi_wishes_of(const kbi_options* o) {
    unsigned activity = o->on[KBI_OPTION_profile] || o->on[KBI_OPTION_trace] ? KBI_WISH_ACTIVITY : 0;
    return activity | (o->on[KBI_OPTION_counters] ? KBI_WISH_COUNTERS : 0);
}

/*---------------------------------------------------------------------------------------------------------------
  >>list      plan: what --list, --list-ops and --list-sizes print.
              Public: none      Used by: >>program, >>main
---------------------------------------------------------------------------------------------------------------*/

static void kbi_list_cases(kbi_text* t, const kbi_plan* plan) {
    for (int i = 0; i < plan->n; i++) kbi_clean(t, plan->cases[i].name), kbi_puts(t, "\n");
}

// A word of a column, once a line.
static void kbi_list_word(kbi_text* t, kbi_set* seen, uint64_t column, const char* word) {
    if (kbi_set_add(seen, kbi_hash(column << 60, word))) kbi_puts(t, " "), kbi_clean(t, word);
}

// The selected operations, one a line: name, directions, dtypes, implementations; -v adds the notes.
static void kbi_list_ops(kbi_text* t, const kbi_plan* plan, bool notes) {
    for (int i = 0, end; i < plan->n; i = end) {
        kbi_set seen = { NULL, 0, 0 };
        const char* operation = plan->cases[i].entry->operation;
        for (end = i; end < plan->n && kbi_is(plan->cases[end].entry->operation, operation);) end++;
        kbi_clean(t, operation);
        for (int j = i; j < end; j++)
            if (plan->cases[j].direction) kbi_list_word(t, &seen, 1, plan->cases[j].direction);
        kbi_puts(t, " ");
        for (int j = i; j < end; j++)
            if (plan->cases[j].dtype) kbi_list_word(t, &seen, 2, kb_dtype_name(plan->cases[j].dtype));
        kbi_puts(t, " ");
        for (int j = i; j < end; j++) kbi_list_word(t, &seen, 3, plan->cases[j].entry->implementation);
        kbi_puts(t, "\n");
        for (int j = i; notes && j < end; j++) {
            const kb_entry* e = plan->cases[j].entry;
            if (!e->note || !kbi_set_add(&seen, (uint64_t)(uintptr_t)e)) continue;
            kbi_text line = { NULL, 0, 0 };
            kbi_putf(&line, "    %-10s %s", e->implementation, e->note);
            kbi_clean(t, line.s), kbi_puts(t, "\n");
            kbi_text_free(&line);
        }
        kbi_set_free(&seen);
    }
}

// The selected shapes, one a line: operation, category, and every axis that -a can set but what --list-ops shows.
static void kbi_list_sizes(kbi_text* t, const kbi_plan* plan) {
    kbi_set seen = { NULL, 0, 0 };
    for (int i = 0; i < plan->n; i++) {
        const kbi_case* c = &plan->cases[i];
        kbi_text line = { NULL, 0, 0 };
        kbi_putf(&line, "%-16s %-8s", c->entry->operation, c->size ? c->size : "-");
        for (int j = 0; j < c->n_params; j++)
            if (!kbi_is(c->params[j].name, "dtype")) kbi_put_param(&line, ' ', &c->params[j]);
        if (kbi_set_add(&seen, kbi_hash(0, line.s))) kbi_clean(t, line.s), kbi_puts(t, "\n");
        kbi_text_free(&line);
    }
    kbi_set_free(&seen);
}

// What the options ask to see of the plan; false: nothing of this.
static bool kbi_list(kbi_text* t, const kbi_plan* plan, const kbi_options* o) {
    if (o->on[KBI_OPTION_list])
        kbi_list_cases(t, plan);
    else if (o->on[KBI_OPTION_list_ops])
        kbi_list_ops(t, plan, o->on[KBI_OPTION_verbose]);
    else if (o->on[KBI_OPTION_list_sizes])
        kbi_list_sizes(t, plan);
    else
        return false;
    return true;
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

// What looks into runs of the block that nobody times.
typedef struct kbi_instrument {
    unsigned wish;                         // kbi_wish
    bool host;                             // it looks into host work, else into the device's
    bool (*open)(struct kbi_run* run);     // false: it said why (kbi_inside_say)
    int64_t (*begin)(struct kbi_run* run); // how often the block is to run before end
    bool (*end)(struct kbi_run* run);      // whether it wants another one
    void (*close)(struct kbi_run* run);
} kbi_instrument;

// What a device fills in, in five groups. NULL: it has no such thing.
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
        void (*prepare)(struct kbi_run* run);    // before each call of the body
        const char* (*wait)(void);               // for all work; the text of an error since the last call, or NULL
        bool (*lost)(void);                      // whether no later work of this process survives that error
        void (*abandon)(void);                   // ends what a block that was left early keeps from ending
        void (*roof)(kbi_machine* m, int which); // measures one of its roofs
    } timing;
    struct {
        void (*settle)(struct kbi_run* run); // after the first run of the block: is anything still at work beside it?
        void (*begin)(struct kbi_run* run);  // the audit
        void (*end)(struct kbi_run* run);
        void (*compare)(struct kbi_run* run); // instead of end: of a later launch, with what the audit saw
        void (*forget)(struct kbi_run* run);  // what the audit captured
        int64_t (*repeats)(struct kbi_run* run,
                           int replicas); // how often to capture the block in a row; 0: it cannot be
        void (*repeat)(struct kbi_run* run, int which, bool begin); // captures it so often (0), twice so often (1)
    } capture;
    struct {
        double (*clock)(void);                 // of the SMs, in MHz; NaN: not known
        void (*sense)(kbi_measured* m);        // power, temperature, clocks, throttling
        double (*energy)(struct kbi_run* run); // mJ a launch; NaN: cannot be told
    } sensors;
    const kbi_instrument* instruments[4]; // up to the first NULL
} kbi_backend;

enum { KBI_READ_WORDS = 16 };
enum { KBI_GUARD = 4096, KBI_GUARD_BYTE = 0xA5, KBI_POISON = 0xFF };

typedef struct kbi_block { // [guard][bytes, rounded up to 256][guard]
    char* base;
    size_t bytes, shift; // shift: of base in what was allocated
    kb_place place;
    bool staged;  // lies on the stage, and is not given back by itself
    bool changed; // by the timed block, since it was held
    int ordinal;  // of the call's blocks
    char* held;   // what was in it when the timed loop was entered (a call ended); NULL: not kept
    struct kbi_block* next;
} kbi_block;

// Memory on which all implementations of a group play, one at a time: where a buffer lies decides 1 to 3 % of a small
// kernel's time, so rivals have theirs at the same addresses and pages. What an implementation left there waits in its
// wings, a copy, until its next turn. The copies of its data that --rotate makes lie there, too, at fixed distances.
// What each of these holds is its own (it may point into itself, and each run changes it), so all are swapped.
typedef struct kbi_stage {
    const struct kbi_backend* backend;
    char *base, *allocated;
    size_t size, stride;   // stride: from one copy of the data to the next
    struct kbi_memory* on; // whose contents lie there
} kbi_stage;

typedef struct kbi_memory {
    kbi_block* blocks;
    kbi_block* kept;          // the call's before, with their contents, in their order: the next ones to be taken
    kbi_stage* stage;         // NULL: every block is an allocation of its own
    size_t laid, most;        // bytes that the blocks of this call take on a stage; the most that any call took
    struct kbi_memory* first; // the data that this is a copy of, for --rotate; NULL: of none
    int copies;               // for which the stage has places, the first included; 0: as 1
    size_t at, reached;       // where a copy begins; the first: bytes from the stage's begin that all of them took
    char* wings;              // for all of them; NULL: nobody else plays
    uint64_t placement;       // kbi_placement of the recipe
    bool strayed;             // a block did not fit where the first call's had
    int taken;                // blocks of this call so far
    bool keeps;               // the last call left its blocks to the next one
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
    KBI_COMPARED,
    KBI_PROVED,
    KBI_INSIDE
} kbi_unit;
typedef enum kbi_phase {
    KBI_PHASE_CHECK,
    KBI_PHASE_AUDIT,
    KBI_PHASE_WARM,
    KBI_PHASE_SAMPLE,
    KBI_PHASE_TURNS,
    KBI_PHASE_COMPARE,
    KBI_PHASE_PROVE,
    KBI_PHASE_INSIDE, // in a call of its own: after the audit
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
    bool in_turn;     // others are measured between its samples
    kbi_fiber* fiber; // where the body rests; NULL: it rests by returning, and goes on when it is called again
    bool resting;     // it returned so
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
    bool over;                 // KB_SAMPLE ended
    bool entered, proved;      // the loop, before the first reset; the last run began where the first one had
    bool fresh;                // with other inputs in the memory of the call before
    uint64_t shown;            // to profilers: the range of the phase
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
    bool called;            // a function of kb_run or kb_compare: no compiler can remove it
    int empty;              // which of the empty kernels has about as many bytes of arguments
    uint64_t shape;         // of what was captured: kernels, their grids and blocks, other nodes; 0: not known
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
    kbi_load load; // of the machine, when the first sample began
    double sum;    // of runs between which KB_SAMPLE resets, timed one by one, until they are launches
    int64_t taken; // runs in it
} kbi_sampling;

enum { KBI_EARLY = 4, KBI_TURNS = 24, KBI_COMPARISONS = 4 };
typedef struct kbi_alike {   // what tells whether later launches do what the first ones did
    double early[KBI_EARLY]; // ns of the warm-up's first launches, each alone
    int n;                   // how many
    double clock;            // MHz when they began; NaN: not known
    double turns[KBI_TURNS]; // ns of launches in a row behind the samples, each alone
    int compared;            // launches captured again
    char differ[160];        // what their times say; "": nothing
} kbi_alike;

typedef struct kbi_run {
    kb_state kb;
    const kbi_recipe* recipe;
    const kbi_backend* backend;
    kbi_machine* machine; // its roofs are measured when first wanted
    const kbi_case* of;
    void (*progress)(void* to); // called between units, at most some times a second; NULL: nobody wants to know
    void* progress_to;
    int64_t began, shown;
    uint64_t range; // of the case, for profilers
    kbi_place place;
    kbi_body_call call;
    kbi_work work;
    kbi_sampling sampling;
    kbi_alike alike;
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

// Whether this launch is timed alone, to be held against others.
static bool kbi_timed_alone(const kbi_run* run) {
    bool early = run->call.unit == KBI_WARM && run->alike.n < KBI_EARLY;
    return early || run->call.phase == KBI_PHASE_TURNS;
}

static void kbi_add_sample(kbi_run* run, double ns) {
    if (run->call.unit == KBI_SAMPLE && run->place.settling > 0) {
        if (run->place.settled) *run->place.settled++ = ns;
        run->place.settling--;
        return;
    }
    if (run->call.unit == KBI_WARM) { // the first run may have loaded code
        if (ns < (double)run->work.estimate_ns) run->work.estimate_ns = (int64_t)ns;
        if (run->alike.n < KBI_EARLY) run->alike.early[run->alike.n++] = ns;
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
              Public: none      Used by: measure, >>program, >>proving
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
enum {
    KBI_TOUCHED = 1 << 20,
    KBI_WAKING = 4,
    KBI_LAUNCHES = 8,
    KBI_GATE_NODES = 256,
    KBI_GATE_SECONDS = 1,
    KBI_ALARMS = 2
};
enum kbi_function {
    KBI_F_NULL,
    KBI_F_READ,
    KBI_F_COPY,
    KBI_F_WRITE,
    KBI_F_GATE,
    KBI_F_CLOCK,
    KBI_F_FILL,
    KBI_F_FMA,
    KBI_F_FMA64,
    KBI_F_SPIN,
    KBI_F_COUNT
};
static const char* const kbi_function_names[] = { "kbi_null",  "kbi_read", "kbi_copy", "kbi_write", "kbi_gate",
                                                  "kbi_clock", "kbi_fill", "kbi_fma",  "kbi_fma64", "kbi_spin" };

enum { KBI_PROOF_COPIES = 4, KBI_PROOFS = 5 }; // of the self-test's module, and kernels in it

// Empty kernels by the bytes of their arguments: after an eviction these are fetched before a kernel starts, and what
// its events read grows by up to 0.6 us with them.
static const int kbi_empty_bytes[] = { 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096 };
enum { KBI_EMPTY_KERNELS = 14 };

typedef struct kbi_shape { // of a launch, as far as it changes what events read of it
    int blocks, threads;   // in a block
    int shared, cluster;   // bytes; blocks
    int which;             // of kbi_empty_bytes
    int writes;            // whether it can: its arguments point to device memory
} kbi_shape;

// The driver's functions come from the runtime, so that -lcuda is not needed. Their types are the driver's ABI.
typedef int (*kbi_cu_load)(void** module, const void* image);
typedef int (*kbi_cu_function)(void** function, void* module, const char* name);
typedef int (*kbi_cu_launch)(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, kb_stream stream, void** arguments, void** extra);
typedef struct kbi_cu_attribute { // the driver's CUlaunchAttribute
    int id, gap;
    unsigned value[16];
} kbi_cu_attribute;
typedef struct kbi_cu_config { // and CUlaunchConfig
    unsigned grid[3], block[3], shared;
    kb_stream stream;
    kbi_cu_attribute* attributes;
    unsigned n;
} kbi_cu_config;
typedef int (*kbi_cu_launch_as)(const kbi_cu_config* config, void* function, void** arguments, void** extra);
typedef int (*kbi_cu_set)(void* function, int attribute, int value);
typedef int (*kbi_cu_get)(int* value, int attribute, void* function);
enum { KBI_CU_MAX_SHARED = 8, KBI_CU_CLUSTER_X = 11, KBI_CU_ANY_CLUSTER = 14, KBI_CU_LAUNCH_CLUSTER = 4 };
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
    void* proofs[KBI_PROOF_COPIES][KBI_PROOFS]; // NULL: not loaded yet
    unsigned empties;                           // launched so far
    kbi_cu_launch launch;
    kbi_cu_launch_as launch_as; // NULL: no clusters
    kbi_cu_wait wait_value;     // NULL: the gate is a spinning kernel
    char* clean;                // what eviction reads; never written after start
    char* touch;                // where calibrating kernels write
    size_t clean_bytes;
    int multiprocessors, max_threads, max_shared; // threads a multiprocessor; bytes a block
    int all_registers, all_shared, most_blocks,
        shared_taken; // of a multiprocessor; what each block takes beside its own
    int at, size;     // launch in its sample
    double ns[KBI_LAUNCHES_LIMIT];
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

// CUpti_ActivityKernel4 and later ones, which have kept its layout; the cluster is there from version 18 of CUPTI on.
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

typedef struct kbi_activity_copy { // the head of CUpti_ActivityMemcpy4, ActivityMemset3 and later ones
    uint32_t kind;
    uint8_t which, from, to, flags; // of a memset: its value
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
} kbi_activity_copy;

typedef struct kbi_activity_call { // CUpti_ActivityAPI
    uint32_t kind, id;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
} kbi_activity_call;

enum {
    KBI_ACTIVITY_COPY = 1,
    KBI_ACTIVITY_SET = 2,
    KBI_ACTIVITY_DRIVER = 4,
    KBI_ACTIVITY_RUNTIME = 5,
    KBI_ACTIVITY_KERNEL = 10,
    KBI_SPANS = 1 << 15,
    KBI_ACTIVITY_BYTES = 1 << 20
};
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
    int (*time)(uint64_t* ns); // of the records' clock
    int (*version)(uint32_t* version);
    int (*text)(int error, const char** text);
    int (*call)(int domain, uint32_t id, const char** name);
    int (*dropped)(void* context, uint32_t stream, size_t* n);
    void* library;
    bool loaded, open;                        // attached; kernels' durations are kept
    void (*look)(const kbi_activity* record); // who is given every record, instead; NULL: nobody
    kbi_span* spans;                          // of kernels that are not the harness's own, as they come
    int n;
} kbi_cupti;

enum { KBI_RECENT = 64, KBI_EMPTIES = 2 };

typedef struct kbi_readings { // the latest of the empty kernel's
    double ns[KBI_RECENT];
    int64_t n;
} kbi_readings;

typedef struct kbi_empty { // kernels of one shape
    kbi_shape shape;
    kbi_readings read[KBI_EVENT_MODES][2]; // [1]: behind a gate
} kbi_empty;

typedef struct kbi_calibration {
    kbi_empty* empties; // the first is of one warp, with one argument, and writes
    int n_empties;
    double graph_floor, empty_pair, quantum, fitted; // ns
    kbi_truth truth;
    bool measured; // the truth, by CUPTI
} kbi_calibration;
#endif

enum { KBI_INSIDE_RUNS = 8 };
typedef struct kbi_insight { // what is being looked into
    int at;                  // of the backend's instruments
    bool open, again;        // it is at work; it wants another run
    kbi_text events, gauges, counters, texts;
    kbi_map names; // where in the texts they are
    char message[400];
    int runs, passes; // that count: the first one may load code; of counters
    int64_t window[KBI_INSIDE_RUNS][2], began, dropped;
} kbi_insight;

enum { KBI_NVTX_MODULES = 7, KBI_NVTX_SLOTS = 16 };
typedef void (*kbi_nvtx_function)(void);
typedef struct kbi_nvtx { // slots that a tool's library fills with its functions
    bool asked;
    void* domain; // NULL: nobody listens
    kbi_nvtx_function slots[KBI_NVTX_MODULES][KBI_NVTX_SLOTS], *table[KBI_NVTX_MODULES][KBI_NVTX_SLOTS + 1];
} kbi_nvtx;

static struct kbi_lab {
    double (*script)(const char* case_name, int64_t sample, uint64_t* flags); // --device script: a test's own times
    double (*script_roof)(int which);                                         // and its roofs; NULL: a copy roof
    int placement;                                                            // of the recipe, for the script
    kbi_roofs roofs, core;         // that another process of this run measured, of this device and of a core
    bool told;                     // them
    int64_t wall_start, wall_step; // of the wall timer, ns
    double wall_bias;              // ns that two readings of the clock cost
    volatile sig_atomic_t stops;   // how often the process was stopped and went on (SIGSTOP, Ctrl-Z)
    int64_t stood;                 // ns of samples in which that happened
    kbi_turn turn;                 // at the begin of a sample of host work
    int64_t kept, lost;         // of the latest cases: samples that ran through, or that others had the processor in
    bool coarse;                // the thread's clock is too coarse to tell
    int folder;                 // in which calls begin; 0: not opened
    volatile uintptr_t* strays; // shared with what functions fork: the case whose function such a process left
    uintptr_t running;          // the case whose function is at work
    kbi_nvtx nvtx;
    kbi_insight insight;
#if KBI_CUDA
    kbi_gpu gpu;
    kbi_nvml nvml;
    kbi_cupti cupti;
    kbi_calibration calibration;
#endif
} kbi_lab;

// A text of what is being looked into, by a key of its own: where it lies.
KBI_INLINE int32_t kbi_insight_text(uint64_t key, const char* text) {
    kbi_insight* in = &kbi_lab.insight;
    kbi_mapped* slot = kbi_map_find(&in->names, key);
    if (slot->key) return (int32_t)slot->at;
    kbi_map_take(&in->names, slot, key, (intptr_t)in->texts.n);
    kbi_put(&in->texts, text, strlen(text) + 1);
    return (int32_t)slot->at;
}

// Of two of one name the first counts.
KBI_INLINE void kbi_insight_count(const char* name, const char* unit, double value) {
    kbi_insight* in = &kbi_lab.insight;
    const kbi_counter* known = (const kbi_counter*)(const void*)in->counters.s;
    kbi_counter c;
    for (size_t i = 0; i < in->counters.n / sizeof c; i++)
        if (kbi_is(known[i].name, name)) return;
    if (!kbi_finite(value)) return;
    memset(&c, 0, sizeof c);
    snprintf(c.name, sizeof c.name, "%.60s", name);
    snprintf(c.unit, sizeof c.unit, "%s", unit);
    c.value = value;
    kbi_put(&in->counters, (const char*)&c, sizeof c);
}

// Why something that was asked for is not there.
KBI_PRINTF(1, 2) KBI_INLINE void kbi_insight_say(const char* format, ...) {
    kbi_insight* in = &kbi_lab.insight;
    size_t n = strlen(in->message);
    va_list list;
    if (n && n + 3 < sizeof in->message) n += (size_t)snprintf(in->message + n, sizeof in->message - n, "; ");
    va_start(list, format);
    vsnprintf(in->message + n, sizeof in->message - n, format, list);
    va_end(list);
}

/*---------------------------------------------------------------------------------------------------------------
  >>nvtx      measure: names of cases and phases, for whatever profiler listens.
              Public: none      Used by: measure
---------------------------------------------------------------------------------------------------------------*/

// NVTX without its header, which takes a second to compile: a profiler names its library in the environment, and that
// library asks for a table of slots and puts its functions there. With none of it a range costs a comparison.
enum {
    KBI_NVTX_CORE2 = 5, // the module of ranges in a domain; its slots:
    KBI_NVTX_START = 2,
    KBI_NVTX_END = 3,
    KBI_NVTX_REGISTER = 10,
    KBI_NVTX_DOMAIN = 12
};

typedef struct kbi_nvtx_event { // nvtxEventAttributes_t
    uint16_t version, size;
    uint32_t category;
    int32_t colour_is;
    uint32_t colour;
    int32_t payload_is, gap;
    uint64_t payload;
    int32_t message_is;
    const void* message;
} kbi_nvtx_event;

static int kbi_nvtx_module(int module, kbi_nvtx_function*** table, unsigned* size) {
    if (module < 1 || module >= KBI_NVTX_MODULES) return 0;
    for (int i = 0; i < KBI_NVTX_SLOTS; i++) kbi_lab.nvtx.table[module][i] = &kbi_lab.nvtx.slots[module][i];
    static const unsigned sizes[KBI_NVTX_MODULES] = { 0, 16, 9, 15, 7, 16, 7 };
    *table = kbi_lab.nvtx.table[module];
    if (size) *size = sizes[module];
    return 1;
}

static void kbi_nvtx_told(uint32_t version) { (void)version; } // the library tells its own

static const void* kbi_nvtx_export(uint32_t id) {
    static const struct {
        size_t size;
        int (*module)(int, kbi_nvtx_function***, unsigned*);
    } functions = { sizeof functions, kbi_nvtx_module };
    static const struct {
        size_t size;
        uint32_t version, gap;
        void (*told)(uint32_t);
    } versions = { sizeof versions, 3, 0, kbi_nvtx_told };
    return id == 1 ? (const void*)&functions : id == 3 ? (const void*)&versions : NULL;
}

// The library is looked for once in a process.
static void kbi_nvtx_open(void) {
    const char* path = getenv("NVTX_INJECTION64_PATH");
    void* library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*init)(const void* (*)(uint32_t)) = NULL;
    void* (*domain)(const char*) = NULL;
    kbi_lab.nvtx.asked = true;
    if (library) kbi_find(library, "InitializeInjectionNvtx2", &init);
    if (!init || !init(kbi_nvtx_export)) return;
    memcpy(&domain, &kbi_lab.nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_DOMAIN], sizeof domain);
    if (domain) kbi_lab.nvtx.domain = domain("kbench");
}

// A range that others may overlap, since rivals take turns; 0: none. Tools take their options' texts for registered
// ones, and read / [ ] * + , and @ in them as signs.
static uint64_t kbi_nvtx_begin(const char* text, const char* colour_of) {
    uint64_t (*start)(void*, const kbi_nvtx_event*);
    void* (*enlist)(void*, const char*);
    char name[512];
    kbi_nvtx_event e;
    if (!kbi_lab.nvtx.asked) kbi_nvtx_open();
    memcpy(&start, &kbi_lab.nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_START], sizeof start);
    memcpy(&enlist, &kbi_lab.nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_REGISTER], sizeof enlist);
    if (!kbi_lab.nvtx.domain || !start) return 0;
    snprintf(name, sizeof name, "%s", text);
    for (char* p = name; (p = strpbrk(p, "@/[]*+,")) != NULL;) *p = ' ';
    memset(&e, 0, sizeof e);
    e.version = 3;
    e.size = sizeof e;
    e.colour_is = 1;
    e.colour = 0xff404040u | ((uint32_t)kbi_hash(14695981039346656037u, colour_of) & 0xbfbfbfu);
    e.message = enlist ? enlist(kbi_lab.nvtx.domain, name) : NULL;
    e.message_is = e.message ? 3 : 1;
    if (!e.message) e.message = name;
    return start(kbi_lab.nvtx.domain, &e);
}

static void kbi_nvtx_end(uint64_t* range) {
    void (*end)(void*, uint64_t);
    memcpy(&end, &kbi_lab.nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_END], sizeof end);
    if (*range && end) end(kbi_lab.nvtx.domain, *range);
    *range = 0;
}

/*---------------------------------------------------------------------------------------------------------------
  >>perf      measure: the processor's counters over host work, from the kernel's perf_event_open.
              Public: none      Used by: >>host, >>cuda
---------------------------------------------------------------------------------------------------------------*/

#if defined(__linux__) && defined(SYS_perf_event_open)
enum { KBI_PERF_ENABLE = 0x2400, KBI_PERF_DISABLE = 0x2401, KBI_PERF_RESET = 0x2403 }; // linux/perf_event.h's
enum { KBI_PERF_EVENTS = 8 };

static const struct {
    const char* name;
    uint32_t type; // 0: the hardware's; 1: the kernel's own
    uint64_t event;
} kbi_perf_events[KBI_PERF_EVENTS] = { { "cycles", 0, 0 },           { "instructions", 0, 1 },
                                       { "branches", 0, 4 },         { "branch_misses", 0, 5 },
                                       { "cache_references", 0, 2 }, { "cache_misses", 0, 3 },
                                       { "stalled_cycles", 0, 8 },   { "page_faults", 1, 2 } };

static struct kbi_perf {
    int files[KBI_PERF_EVENTS]; // -1: not to be had
    int64_t runs, began;
} kbi_perf;

// Of this thread, and of those that it starts; user code only, which needs no right on most systems.
static int kbi_perf_event(uint32_t type, uint64_t event) {
    enum { KBI_PERF_SIZE = 64, KBI_OFF = 1, KBI_INHERIT = 2, KBI_USER = 0x60, KBI_TIMES = 3 };
    struct { // the first version of perf_event_attr
        uint32_t type, size;
        uint64_t config, period, sample, read, flags, wakeup, breakpoint;
    } a = { type, KBI_PERF_SIZE, event, 0, 0, KBI_TIMES, KBI_OFF | KBI_INHERIT | KBI_USER, 0, 0 };
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
}

static void kbi_perf_say(int error) {
    if (error == EACCES || error == EPERM)
        kbi_insight_say(
            "this system forbids its counters: sysctl kernel.perf_event_paranoid=2 allows them, and a container "
            "wants --cap-add PERFMON");
    else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
        kbi_insight_say("this processor shows no counters; virtual machines often hide them");
    else
        kbi_insight_say("this system has no counters: perf_event_open: %s", strerror(error));
}

static bool kbi_perf_open(kbi_run* run) {
    int error = 0, n = 0;
    (void)run;
    for (int i = 0; i < KBI_PERF_EVENTS; i++) {
        kbi_perf.files[i] = kbi_perf_event(kbi_perf_events[i].type, kbi_perf_events[i].event);
        if (kbi_perf.files[i] < 0 && !error) error = errno;
        n += kbi_perf.files[i] >= 0 && kbi_perf_events[i].type == 0;
    }
    if (!n) kbi_perf_say(error);
    kbi_perf.runs = 1;
    return true; // what there is, is told
}

static void kbi_perf_all(unsigned long call) {
    for (int i = 0; i < KBI_PERF_EVENTS; i++)
        if (kbi_perf.files[i] >= 0) ioctl(kbi_perf.files[i], call, 0);
}

static int64_t kbi_perf_begin(kbi_run* run) {
    if (run->call.sampled) kbi_perf.runs = 1;
    kbi_perf_all(KBI_PERF_RESET);
    kbi_perf.began = kbi_now();
    kbi_perf_all(KBI_PERF_ENABLE);
    return kbi_perf.runs;
}

// As many runs as take a millisecond: what the calls themselves add is nothing then.
static bool kbi_perf_end(kbi_run* run) {
    enum { KBI_PERF_MOST = 1 << 24 };
    kbi_perf_all(KBI_PERF_DISABLE);
    if (run->call.sampled || kbi_now() - kbi_perf.began > 1000000 || kbi_perf.runs >= KBI_PERF_MOST) return false;
    return kbi_perf.runs *= 8, true;
}

static void kbi_perf_close(kbi_run* run) {
    (void)run;
    for (int i = 0; i < KBI_PERF_EVENTS; i++) {
        uint64_t read[3] = { 0, 0, 0 }; // value; ns that it was wanted, and at work: there may be fewer than events
        if (kbi_perf.files[i] < 0) continue;
        if (kbi_read_some(kbi_perf.files[i], read, sizeof read) == (ssize_t)sizeof read && read[2])
            kbi_insight_count(kbi_perf_events[i].name, "",
                              (double)read[0] * ((double)read[1] / (double)read[2]) / (double)kbi_perf.runs);
        close(kbi_perf.files[i]);
    }
}

static const kbi_instrument kbi_perf_instrument = { KBI_WISH_COUNTERS, true,         kbi_perf_open,
                                                    kbi_perf_begin,    kbi_perf_end, kbi_perf_close };
#define KBI_PERF &kbi_perf_instrument
#else
#define KBI_PERF NULL
#endif

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

// Runs of the block between two readings of the clock.
static int64_t kbi_wall_runs(const kbi_run* run) {
    if (run->call.sampled || kbi_timed_alone(run)) return 1;
    return run->recipe->launches ? run->recipe->launches : run->sampling.batch;
}

static int64_t kbi_wall_begin(kbi_run* run) {
    if (!kbi_lab.wall_bias) kbi_lab.wall_bias = KBI_MAX(kbi_measure_wall_bias(), 1e-3);
    if (run->backend->gpu && !run->work.host) kbi_stop_on_error(run, "before the timed block");
    run->sampling.stops = kbi_lab.stops;
    if (run->work.host || !run->backend->gpu || kbi_timed_alone(run)) kbi_lab.turn = kbi_turn_now();
    kbi_lab.wall_start = kbi_now();
    return kbi_wall_runs(run);
}

// Whether somebody else had the processor in a sample of host work that took so many ns: the thread's own clock stood
// still, and the thread did not wait by itself. Such a sample is as much the other's time as one with a Ctrl-Z in it.
// From 10 ms on a share of others is in every sample; and where they are in more than a third of the shorter ones, that
// is what the machine, or the block's own threads, are like: then all samples count. All cases of a comparison together
// decide that.
static bool kbi_wall_lost(const kbi_run* run, double ns) {
    if (run->call.unit != KBI_SAMPLE || kbi_lab.coarse || (run->backend->gpu && !run->work.host)) return false;
    const kbi_turn now = kbi_turn_now();
    const double ran = (double)(now.ran - kbi_lab.turn.ran);
    kbi_lab.coarse = ran <= 0;
    const bool stood = ns - ran > KBI_MAX(0.01 * ns, 1000) && now.waits == kbi_lab.turn.waits;
    if (kbi_lab.coarse || ran >= 1e7 || now.waits < 0) return false;
    if (!stood) return kbi_lab.kept++, false;
    return 2 * ++kbi_lab.lost <= kbi_lab.kept + 8;
}

// Time in which the thread was not busy is somebody else's.
static void kbi_wall_add_alone(kbi_run* run, double ns) {
    double busy = KBI_MIN(ns, (double)(kbi_turn_now().ran - kbi_lab.turn.ran));
    bool warm = run->call.unit == KBI_WARM;
    kbi_add_sample(run, warm ? ns : busy);
    if (warm) run->alike.early[run->alike.n - 1] = busy;
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
    int64_t runs = kbi_wall_runs(run), launches = run->recipe->launches ? run->recipe->launches : runs;
    if (run->sampling.stops != kbi_lab.stops) {
        kbi_lab.stood += now - kbi_lab.wall_start;
        run->call.phase_began += now - kbi_lab.wall_start; // nor does the stop use up the time for samples
        run->m.retaken++;
        return;
    }
    if (kbi_timed_alone(run)) {
        kbi_wall_add_alone(run, ns);
        return;
    }
    if (kbi_wall_lost(run, ns)) {
        run->m.retaken++;
        return;
    }
    if (!kbi_lab.wall_step) kbi_lab.wall_step = kbi_clock_step();
    run->sampling.sum += ns;
    run->sampling.taken += runs;
    run->sampling.open = run->sampling.taken < launches;
    if (run->sampling.open) return;
    target = KBI_MAX(target, 1000.0 * (double)kbi_lab.wall_step);
    kbi_add_sample(run, run->sampling.sum / (double)launches);
    run->sampling.sum = 0, run->sampling.taken = 0;
    bool grows = !run->call.sampled && !run->recipe->launches && ns < target && run->sampling.batch < KBI_BATCH_MAX;
    if (run->call.unit == KBI_WARM && grows) {
        double factor = ns > 0 ? target / ns : 1000;
        run->sampling.batch = (int64_t)((double)run->sampling.batch * KBI_MIN(KBI_MAX(factor * 1.1, 2), 1000));
        run->call.window.n = 0; // times of another batch size are no measure for this one
    } else {
        run->sampling.resolved = true;
    }
    run->m.bias_ns = run->m.floor_ns = kbi_lab.wall_bias / (double)runs;
    run->m.launches = (int32_t)KBI_MIN(launches, (int64_t)INT32_MAX);
    bool short_enough = ns <= (double)KBI_LOOP_NS * (double)runs && !run->work.called;
    if (run->call.unit != KBI_SAMPLE || run->call.sampled || !short_enough || kbi_keeps(run->work.line)) return;
    for (int i = 0; i < 3;
         i++) { // in turn with the block: what slows one slows the other; the least, as of the samples
        double loop = kbi_time_loop(runs);
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

// Whether the host's code runs on a simulated processor.
static bool kbi_valgrind(void) {
    const char* preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "/vgpreload_");
}

static void kbi_machine_clear(kbi_machine* m, const char* backend) {
    memset(m, 0, sizeof *m);
    snprintf(m->backend, sizeof m->backend, "%s", backend);
    m->device = m->ecc = m->mig = m->clocks_locked = m->multiprocessors = -1;
    kbi_roofs_clear(&m->roofs);
    kbi_roofs_clear(&m->core);
    if (kbi_lab.told) m->roofs = kbi_lab.roofs, m->core = kbi_lab.core;
    for (int i = 0; i < 3; i++) m->floor[i] = NAN;
    for (int i = 0; i < 2; i++) m->bias[i] = NAN;
    m->quantum = m->empty_pair = m->fitted = m->cold = NAN;
    m->boost = -1;
    m->simulated = !kbi_is(backend, "script") && kbi_valgrind();
    if (m->simulated) snprintf(m->tool, sizeof m->tool, "valgrind");
}

// What is known of the processors, whatever the device.
static void kbi_machine_cpus(kbi_machine* m, const char* root) {
    kbi_cpus allowed;
    m->boost = kbi_cpu_boost(root);
    if (!kbi_cpu_says(root, kbi_cpu_now(), "scaling_governor", m->governor, (int)sizeof m->governor))
        *m->governor = 0;
    if (kbi_cpus_allowed(&allowed)) kbi_cpus_show(&allowed, m->cpus, sizeof m->cpus);
}

// What others did to this process since then, and the clock that it ends with.
static void kbi_note_load(kbi_measured* m, const kbi_load* then, const char* proc, const char* root) {
    kbi_load now = kbi_load_now(proc);
    double ns = (double)(now.at - then->at), busy = now.busy - then->busy;
    if (now.switches != KB_NONE && then->switches != KB_NONE) m->preemptions = now.switches - then->switches;
    if (ns > 0) m->cpu_waited = 100 * (now.waited - then->waited) / ns;
    if (busy >= 0) m->cpu_stolen = busy > 0 ? 100 * (now.stolen - then->stolen) / busy : 0;
    m->cpu_clock = kbi_cpu_mhz(root, kbi_cpu_now());
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
    { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
    { NULL, NULL, NULL },
    { KBI_PERF, NULL, NULL, NULL }
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

static void kbi_script_roof(kbi_machine* m, int which) {
    double is = kbi_lab.script_roof ? kbi_lab.script_roof(which) : which == KBI_ROOF_COPY ? 1e12 : 0;
    kbi_roof_put(&m->roofs, which, is, is, 0);
}

static bool kbi_script_open(kbi_machine* m, const kbi_recipe* recipe) {
    kbi_machine_clear(m, "script");
    kbi_lab.placement = recipe->placement;
    m->l2 = 1 << 20;
    if (kbi_nan(m->roofs.of[KBI_ROOF_COPY])) kbi_script_roof(m, KBI_ROOF_COPY);
    return true;
}

// clang-format off
static const kbi_backend kbi_scripted = {
    "script", false, true, kbi_script_open,
    KBI_HOST_MEMORY,
    { kbi_script_choose, NULL, NULL, NULL, NULL, NULL, kbi_script_roof },
    { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
    { NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL }
};
// clang-format on

/*---------------------------------------------------------------------------------------------------------------
  >>memory    measure: tracked allocations with guard bands; peaks, leaks and overwritten guards.
              Public: kb_alloc, kb_to_host, kb_from_host      Used by: programs, measure, >>proving
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

// --- placement: where buffers lie decides 1 to 3 % of a small kernel's time, so processes whose times are put together
// have theirs in different places

// Random bits, the same for a number and a seed; 0 for number 0, where nothing is moved.
static uint64_t kbi_placement(const kbi_recipe* r) {
    uint32_t counter[4] = { (uint32_t)r->placement, 0, 0, 5 }, word[4];
    uint32_t key[2] = { (uint32_t)r->seed, (uint32_t)(r->seed >> 32) };
    kbi_philox(counter, key, word);
    return r->placement ? (uint64_t)word[0] << 32 | word[1] : 0;
}

// By how many bytes memory is moved. On a GPU, a stage, by a multiple of 512 within a page of 2 MiB; blocks of their
// own are on other pages in any case (kbi_gpu_take_pages), and would count as larger than they are. On the host within
// 16 pages of 4 KiB, so that offset and colour change: by a multiple of 256, which is what kb_alloc promises.
static size_t kbi_shift(const kbi_backend* b, uint64_t placement, bool stage) {
    if (b->gpu) return stage ? placement % (KBI_STAGE_PAGE / 512) * 512 : 0;
    return placement % (16 * 4096 / 256) * 256;
}

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

static bool kbi_read_later(const kbi_memory* m, const kbi_block* block) {
    int i = block->ordinal;
    return i < 64 * KBI_READ_WORDS && (m->read[i / 64] >> i % 64 & 1) != 0;
}

static void kbi_hold_block(kbi_run* run, kbi_block* block) {
    const kbi_backend* b = kbi_block_home(run, block);
    if (!block->held) {
        block->held = (char*)b->memory.alloc(block->place, block->bytes);
        if (!block->held) return; // no room to prove it
        if (block->place == KB_DEVICE) run->memory.held += (int64_t)block->bytes;
    }
    b->memory.copy(block->held, block->base + KBI_GUARD, block->bytes);
}

// The first call tells which blocks are read after the loop; kb_open has no such call, and keeps all if they are small.
// What still is as the call before left it is an output.
static void kbi_hold(kbi_run* run) {
    kbi_memory* m = &run->memory;
    bool embedded = run->call.last != KBI_PHASE_CHECK && !run->work.checked;
    int64_t room = kbi_free_bytes(run->backend), all = m->device + m->host;
    if (embedded && (all > (int64_t)1 << 30 || (room != KB_NONE && all > room / 2))) return;
    for (kbi_block* block = m->blocks; block; block = block->next) {
        if (!block->bytes || (!embedded && !kbi_read_later(m, block))) continue;
        block->changed = block->held && kbi_block_as_held(run, block);
        if (!block->changed) kbi_hold_block(run, block);
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

// What an implementation takes of a stage, with the copies of its data so far from each other.
static size_t kbi_stage_span(const kbi_memory* m, size_t stride) {
    return m->most ? (size_t)(KBI_MAX(m->copies, 1) - 1) * stride + m->most : 0;
}

// NULL: it has to be an allocation of its own.
static char* kbi_stage_place(const kbi_backend* b, kbi_memory* m, kb_place place, size_t total) {
    if (place != KB_DEVICE && (b->gpu || place != KB_HOST)) return NULL;
    size_t at = kbi_stage_at(m->laid, total);
    kbi_memory* first = m->first ? m->first : m;
    if (m->stage && at + total > m->most) m->strayed = first->strayed = true;
    if (m->stage && m->strayed) return NULL;
    m->laid = at + total;
    m->most = KBI_MAX(m->most, m->laid);
    if (m->stage) first->reached = KBI_MAX(first->reached, m->at + m->laid);
    return m->stage ? m->stage->base + m->at + at : NULL;
}

static void kbi_blocks_free(const kbi_backend* b, kbi_memory* m, kbi_block** list, bool lost);

// The block that the call before had here, with what it left there; NULL: this one wants another.
static kbi_block* kbi_memory_again(const kbi_backend* b, kbi_memory* m, kb_place place, size_t bytes, char* staged) {
    kbi_block* block = m->kept;
    if (!block) return NULL;
    if (block->place != place || block->bytes != bytes || (block->staged ? block->base : NULL) != staged) {
        kbi_blocks_free(b, m, &m->kept, false);
        return NULL;
    }
    m->kept = block->next;
    return block;
}

static void* kbi_memory_alloc(const kbi_backend* b, kbi_memory* m, kb_place place, size_t bytes) {
    const kbi_backend* host = place == KB_HOST ? &kbi_cpu : b; // plain host memory needs no GPU
    size_t total = kbi_block_total(bytes);
    char *staged = kbi_stage_place(b, m, place, total), *base = staged;
    kbi_block* block = kbi_memory_again(b, m, place, bytes, staged);
    if (block) {
        block->ordinal = m->taken++;
        block->next = m->blocks;
        m->blocks = block;
        return block->base + KBI_GUARD;
    }
    size_t shift = staged ? 0 : kbi_shift(host, m->placement, false);
    if (!base) base = (char*)host->memory.alloc(place, total + shift);
    if (!base) return NULL;
    base += shift;
    host->memory.set(base, KBI_GUARD_BYTE, total);
    host->memory.set(base + KBI_GUARD, KBI_POISON, bytes);
    block = (kbi_block*)kbi_grow(NULL, sizeof(kbi_block));
    block->base = base;
    block->bytes = bytes;
    block->shift = shift;
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
    size_t largest = 0;
    memset(s, 0, sizeof *s);
    s->backend = b;
    for (int i = 0; i < n; i++) largest = KBI_MAX(largest, memories[i]->most);
    s->stride = kbi_stage_at(largest, largest);
    for (int i = 0; i < n; i++) s->size = KBI_MAX(s->size, kbi_stage_span(memories[i], s->stride));
    if (!s->size) return false;
    size_t shift = kbi_shift(b, memories[0]->placement, true);
    bool good = (s->allocated = (char*)b->memory.alloc(KB_DEVICE, s->size + KBI_STAGE_PAGE + shift)) != NULL;
    s->base = (char*)(((uintptr_t)s->allocated + KBI_STAGE_PAGE - 1) & ~(uintptr_t)(KBI_STAGE_PAGE - 1)) + shift;
    for (int i = 0; i < n && n > 1 && good; i++)
        if (memories[i]->most)
            good = (memories[i]->wings = (char*)b->memory.alloc(KB_DEVICE, kbi_stage_span(memories[i], s->stride))) !=
                   NULL;
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
    if (m->first) m = m->first;
    if (!s || s->on == m) return;
    if (s->on && s->on->wings && s->on->reached) s->backend->memory.copy(s->on->wings, s->base, s->on->reached);
    if (m->wings && m->reached) s->backend->memory.copy(s->base, m->wings, m->reached);
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

// lost: the device no longer answers, so only the list is freed.
static void kbi_blocks_free(const kbi_backend* b, kbi_memory* m, kbi_block** list, bool lost) {
    while (*list) {
        kbi_block* block = *list;
        *list = block->next;
        kbi_memory_count(m, block->place, -(int64_t)block->bytes);
        const kbi_backend* host = block->place == KB_HOST ? &kbi_cpu : b;
        if (block->held && (!lost || host == &kbi_cpu)) host->memory.release(block->place, block->held);
        if (block->staged)
            ; // the stage's
        else if (block->place == KB_HOST)
            kbi_cpu.memory.release(block->place, block->base - block->shift);
        else if (!lost)
            b->memory.release(block->place, block->base - block->shift);
        KBENCH_FREE(block);
    }
}

// Gives everything back.
static void kbi_memory_free(const kbi_backend* b, kbi_memory* m, bool lost) {
    kbi_blocks_free(b, m, &m->blocks, lost);
    kbi_blocks_free(b, m, &m->kept, lost);
    m->laid = 0;
    m->taken = 0;
    m->held = 0;
    if (m->copies <= 1) m->reached = 0; // the copies end after the first
}

// Leaves everything as it is for the next call of the body.
static void kbi_memory_keep(kbi_run* run) {
    kbi_memory* m = &run->memory;
    while (m->blocks) { // the last one first
        kbi_block* block = m->blocks;
        m->blocks = block->next;
        if (block->bytes && kbi_read_later(m, block)) kbi_hold_block(run, block);
        block->next = m->kept;
        m->kept = block;
    }
    m->laid = 0;
    m->taken = 0;
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
    if (place < KB_DEVICE || place > KB_PINNED) {
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_alloc takes KB_DEVICE, KB_HOST or KB_PINNED");
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

// Whether a body may do that with n things of this size there; the case is wrong where not. What kb_alloc did not give
// has the size that the body says.
static bool kbi_may(kbi_run* run, const char* what, const void* p, int64_t n, size_t size, const char* unit) {
    if (run->m.status != KB_OK) return false;
    const kbi_block* block = kbi_block_of(run, p);
    if (n < 0)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s of %lld %s", what, (long long)n, unit);
    else if (!p && n)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s of a NULL pointer", what);
    else if (!size)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s of %s without a type", what, unit);
    else if (block && (size_t)n > (size_t)(block->base + KBI_GUARD + block->bytes - (const char*)p) / size)
        kbi_stop(run, KB_FLAG_BAD_CASE, "%s of %lld %s in a block of %zu bytes", what, (long long)n, unit,
                 block->bytes);
    return run->m.status == KB_OK;
}

void kb_to_host(kb_state* kb, void* host, const void* from, size_t bytes) {
    int64_t n = (int64_t)bytes;
    if (!kbi_may(kb->run, "kb_to_host", from, n, 1, "bytes") || !kbi_may(kb->run, "kb_to_host", host, n, 1, "bytes"))
        return;
    kbi_mark_read(kb->run, from);
    if (bytes) kb->run->backend->memory.copy(host, from, bytes);
}

void kb_from_host(kb_state* kb, void* to, const void* host, size_t bytes) {
    int64_t n = (int64_t)bytes;
    if (!kbi_may(kb->run, "kb_from_host", to, n, 1, "bytes") ||
        !kbi_may(kb->run, "kb_from_host", host, n, 1, "bytes"))
        return;
    if (bytes) kb->run->backend->memory.copy(to, host, bytes);
}

void kbi_fill(kb_state* kb, void* p, kb_dtype dtype, int64_t n, kb_kind kind) {
    kbi_run* run = kb->run;
    uint32_t tensor = run->call.fills++;
    run->call.zeros += kind == KB_ZERO;
    if (!kbi_may(run, "kb_fill", p, n, kb_dtype_size(dtype), "elements")) return;
    if (kind < KB_ZERO || kind > KB_IOTA) {
        kbi_stop(run, KB_FLAG_BAD_CASE, "kb_fill takes KB_ZERO, KB_NORMAL, KB_UNIFORM or KB_IOTA");
        return;
    }
    const kbi_block* block = kbi_block_of(run, p);
    const kbi_backend* b = block && block->place != KB_DEVICE ? &kbi_cpu : run->backend;
    if (n) b->memory.fill(p, dtype, n, kind, kb->seed, tensor);
}

/*---------------------------------------------------------------------------------------------------------------
  >>device    measure: the GPU: stream, gate, events, eviction, clock.
              Public: none      Used by: measure, >>proving
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

static void kbi_ptx_put(kbi_text* to, bool proving); // stands behind the code

// The first thread of each block writes the last argument to a line of its own behind the first one, if that is not
// zero: what a kernel wrote is flushed at its end, which events see and CUPTI does not.
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

// Compiles a module and finds its functions: 0, or a CUresult.
static int kbi_load_module(const char* ptx, const char* const* names, int n, void** functions) {
    kbi_cu_load load;
    kbi_cu_function get;
    void *p, *module = NULL;
    p = kbi_driver_function("cuModuleLoadData", 12000), memcpy(&load, &p, sizeof p);
    p = kbi_driver_function("cuModuleGetFunction", 12000), memcpy(&get, &p, sizeof p);
    int error = load && get ? load(&module, ptx) : -1;
    for (int i = 0; !error && i < n; i++) error = get(&functions[i], module, names[i]);
    return error;
}

static bool kbi_load_functions(char why[200]) {
    enum { KBI_ALL = (int)KBI_F_COUNT + (int)KBI_EMPTY_KERNELS };
    char empty[KBI_EMPTY_KERNELS][16];
    const char* names[KBI_ALL];
    void *p, *found[KBI_ALL];
    kbi_cu_set set;
    kbi_text ptx = { NULL, 0, 0 };
    p = kbi_driver_function("cuLaunchKernel", 12000), memcpy(&kbi_lab.gpu.launch, &p, sizeof p);
    p = kbi_driver_function("cuLaunchKernelEx", 12000), memcpy(&kbi_lab.gpu.launch_as, &p, sizeof p);
    p = kbi_driver_function("cuFuncSetAttribute", 12000), memcpy(&set, &p, sizeof p);
    p = kbi_driver_function("cuStreamWaitValue32", 12000), memcpy(&kbi_lab.gpu.wait_value, &p, sizeof p);
    kbi_ptx_put(&ptx, false);
    kbi_empty_put(&ptx);
    for (int i = 0; i < KBI_F_COUNT; i++) names[i] = kbi_function_names[i];
    for (int i = 0; i < KBI_EMPTY_KERNELS; i++) {
        snprintf(empty[i], sizeof empty[i], "kbi_empty_%d", i);
        names[KBI_F_COUNT + i] = empty[i];
    }
    int error = kbi_lab.gpu.launch ? kbi_load_module(ptx.s, names, KBI_ALL, found) : -1;
    kbi_text_free(&ptx);
    if (error) snprintf(why, 200, "the driver did not load the harness's own kernels (CUresult %d)", error);
    if (error) return false;
    memcpy(kbi_lab.gpu.functions, found, sizeof kbi_lab.gpu.functions);
    memcpy(kbi_lab.gpu.empty, found + KBI_F_COUNT, sizeof kbi_lab.gpu.empty);
    for (int i = 0; i < KBI_EMPTY_KERNELS && set; i++) {
        set(kbi_lab.gpu.empty[i], KBI_CU_MAX_SHARED, kbi_lab.gpu.max_shared);
        set(kbi_lab.gpu.empty[i], KBI_CU_ANY_CLUSTER, 1);
    }
    return true;
}

static void kbi_launch(enum kbi_function f, unsigned blocks, unsigned threads, void** arguments) {
    kbi_lab.gpu.launch(kbi_lab.gpu.functions[f], blocks, 1, 1, threads, 1, 1, 0, kbi_lab.gpu.stream, arguments, NULL);
}

// An empty kernel of that shape; false where this GPU has no such launch.
static bool kbi_launch_empty(const kbi_shape* shape) {
    static void* arguments[4096 / sizeof(void*)];
    void *f = kbi_lab.gpu.empty[shape->which], *all[] = { arguments };
    unsigned blocks = (unsigned)shape->blocks, threads = (unsigned)shape->threads, shared = (unsigned)shape->shared;
    // each time to another line: some lie nearer to a multiprocessor than others
    arguments[0] = NULL;
    if (shape->writes)
        arguments[0] =
            kbi_lab.gpu.touch + (kbi_lab.gpu.empties++ * 2654435761u >> 12) % (KBI_TOUCHED / 2) / 128 * 128;
    if (shape->cluster <= 1)
        return kbi_lab.gpu.launch(f, blocks, 1, 1, threads, 1, 1, shared, kbi_lab.gpu.stream, all, NULL) == 0;
    kbi_cu_attribute cluster = { KBI_CU_LAUNCH_CLUSTER, 0, { (unsigned)shape->cluster, 1, 1 } };
    kbi_cu_config config = { { blocks, 1, 1 }, { threads, 1, 1 }, shared, kbi_lab.gpu.stream, &cluster, 1 };
    return kbi_lab.gpu.launch_as && kbi_lab.gpu.launch_as(&config, f, all, NULL) == 0;
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

// Whether the program has set aside a part of L2: lines that persist there outlive an eviction.
static void kbi_look_persisting(void) {
    size_t aside = 0;
    kbi_lab.gpu.persisting = cudaDeviceGetLimit(&aside, cudaLimitPersistingL2CacheSize) == cudaSuccess && aside > 0;
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
              Public: none      Used by: >>activity, >>cuda
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

// As far as they are known.
static void kbi_nvml_gauge(double* sm_mhz, double* power_w) {
    const kbi_nvml* n = &kbi_lab.nvml;
    unsigned value = 0;
    if (!n->device) return;
    if (n->clock && n->clock(n->device, 1, &value) == 0) *sm_mhz = value;
    if (n->power && n->power(n->device, &value) == 0) *power_w = value / 1000.0;
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
  >>cupti     measure: CUPTI: durations of kernels as the driver records them, for the timers and for a look inside.
              Public: none      Used by: measure
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
        if (kbi_lab.cupti.look) {
            kbi_lab.cupti.look(r);
            continue;
        }
        if (r->kind != KBI_ACTIVITY_KERNEL || kbi_lab.cupti.n == KBI_SPANS || !kbi_lab.cupti.open) continue;
        bool own = r->name && (kbi_is(r->name, "kbi_read") || kbi_is(r->name, "kbi_null") ||
                               kbi_is(r->name, "kbi_gate") || kbi_is(r->name, "kbi_clock"));
        if (own) continue;
        kbi_lab.cupti.spans[kbi_lab.cupti.n].start = r->start;
        kbi_lab.cupti.spans[kbi_lab.cupti.n++].end = r->end;
    }
    KBENCH_FREE(buffer);
}

// What an error of CUPTI's means here, and what mends it.
static const char* kbi_cupti_why(const char* call, int error, char out[400]) {
    static const struct {
        int error;
        const char* why;
    } known[] = {
        { 26, "the GPU's counters are taken by another profiler, or by DCGM (dcgmi profile --pause frees them)" },
        { 33, "this virtual GPU may not be profiled; the host's administrator can allow it (vGPU profiling)" },
        { 35,
          "no right to read the GPU's counters: run as root, give the container CAP_SYS_ADMIN, or load the driver "
          "with NVreg_RestrictProfilingToAdminUsers=0 (RmProfilingAdminOnly in /proc/driver/nvidia/params)" },
        { 39, "another profiler is attached to this process: run it without nsys, ncu and the like" },
        { 40, "this virtual GPU may not be profiled; the host's administrator can allow it (vGPU profiling)" },
        { 41, "confidential computing is on, and hides the GPU's counters; take a GPU without it" },
        { 43, "a part of a GPU (MIG) has no such counters of its own; take a whole GPU" },
        { 45, "under WSL the GPU's counters cannot be read; take Linux itself" },
    };
    const char* text = NULL;
    for (int i = 0; i < KBI_COUNT(known); i++)
        if (known[i].error == error) return snprintf(out, 400, "%s", known[i].why), out;
    if (!kbi_lab.cupti.text || kbi_lab.cupti.text(error, &text) != 0) text = "an error";
    return snprintf(out, 400, "%s: %s (%d)", call, text ? text : "an error", error), out;
}

// Finds the library and hands it its buffers; false: it is not there, or did not take them. Once in a process.
static bool kbi_cupti_load(void) {
    static const char* const names[] = { "libcupti.so",
                                         "libcupti.so.13",
                                         "libcupti.so.12",
                                         "/usr/local/cuda/lib64/libcupti.so",
                                         "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                         "/usr/local/cuda/targets/x86_64-linux/lib/libcupti.so" };
    kbi_cupti* c = &kbi_lab.cupti;
    void* library = NULL;
    if (c->loaded) return true;
    for (int i = 0; i < KBI_COUNT(names) && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    c->library = library;
    kbi_find(library, "cuptiActivityRegisterCallbacks", &c->callbacks);
    kbi_find(library, "cuptiActivityEnable", &c->enable);
    kbi_find(library, "cuptiActivityFlushAll", &c->flush);
    kbi_find(library, "cuptiActivityGetNextRecord", &c->next);
    kbi_find(library, "cuptiActivityDisable", &c->disable);
    kbi_find(library, "cuptiActivityGetNumDroppedRecords", &c->dropped);
    kbi_find(library, "cuptiGetTimestamp", &c->time);
    kbi_find(library, "cuptiGetVersion", &c->version);
    kbi_find(library, "cuptiGetResultString", &c->text);
    kbi_find(library, "cuptiGetCallbackName", &c->call);
    bool good = c->callbacks && c->enable && c->flush && c->next;
    return c->loaded = good && c->callbacks(kbi_cupti_request, kbi_cupti_done) == 0;
}

static bool kbi_cupti_open(void) {
    if (kbi_lab.cupti.open) return true;
    if (!kbi_cupti_load()) return false;
    kbi_lab.cupti.spans = (kbi_span*)kbi_grow(NULL, sizeof(kbi_span) * KBI_SPANS);
    return kbi_lab.cupti.open = kbi_lab.cupti.enable(KBI_ACTIVITY_KERNEL) == 0;
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
              Public: none      Used by: measure, >>proving
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
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
    if (cold && kbi_lab.gpu.persisting) cudaCtxResetPersistingL2Cache();
    if (kbi_lab.gpu.gated) kbi_gate_close();
    if (cold) kbi_evict();
    // The eviction takes the page tables of the GPU's own command buffers along. Found again on the way into a kernel,
    // out of it, or between two, they are 0.3 to 0.9 us that depend on how many kernels the block has: let empty
    // kernels find them first.
    for (int i = 0; cold && i < KBI_WAKING; i++) kbi_launch(KBI_F_NULL, 1, 1, NULL);
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
        bool one = run->call.sampled || run->work.estimate_ns > 500000;
        int size = run->recipe->launches ? (int)run->recipe->launches : one ? 1 : KBI_LAUNCHES;
        if (run->place.settling > 0 || kbi_timed_alone(run)) size = 1;
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

// The empty kernels of a shape; a launch that this GPU refuses counts as the plainest.
static int kbi_empty_of(const kbi_shape* shape) {
    kbi_calibration* c = &kbi_lab.calibration;
    for (int i = 0; i < c->n_empties; i++)
        if (memcmp(&c->empties[i].shape, shape, sizeof *shape) == 0) return i;
    if (c->n_empties && !kbi_launch_empty(shape)) return 0;
    c->empties = (kbi_empty*)kbi_grow(c->empties, sizeof(kbi_empty) * (size_t)(c->n_empties + 1));
    memset(&c->empties[c->n_empties], 0, sizeof(kbi_empty));
    c->empties[c->n_empties].shape = *shape;
    return c->n_empties++;
}

// A tool that waits for every launch (compute-sanitizer does, and the driver with CUDA_LAUNCH_BLOCKING) makes a gate
// worth nothing but the watchdog's second; once may be a machine that stood still.
static void kbi_gate_learn(void) {
    kbi_lab.gpu.alarms = kbi_lab.gpu.alarmed ? kbi_lab.gpu.alarms + 1 : 0;
    if (kbi_lab.gpu.alarms > 1) kbi_lab.gpu.ungated = true;
}

/*  What events read around an empty kernel now: it changes by 0.1 us in the course of a process and by 0.3 us from one
    to the next, about alike for every kernel of the shape. So an empty kernel of the block's own shape is timed all
    along, in turn with the block.                                                                                   */
static double kbi_time_empty(kbi_mode mode, bool gated, int which) {
    kbi_empty* empty = &kbi_lab.calibration.empties[which];
    kbi_readings* r = &empty->read[mode][gated && !kbi_lab.gpu.ungated];
    double sorted[KBI_RECENT];
    kbi_sample_open(gated, 1);
    kbi_launch_begin(mode == KBI_COLD);
    kbi_launch_empty(&empty->shape);
    kbi_launch_end();
    kbi_lab.gpu.at = 0;
    kbi_gate_learn();
    if (!kbi_lab.gpu.alarmed) r->ns[r->n++ % KBI_RECENT] = kbi_lab.gpu.ns[0];
    int n = (int)KBI_MIN(r->n, (int64_t)KBI_RECENT);
    if (!n) return NAN;
    memcpy(sorted, r->ns, sizeof(double) * (size_t)n);
    return kbi_trimmed(sorted, n, n / 8);
}

static const int kbi_truth_threads[] = { 32, 256, 1024 };

// What an empty kernel of that shape takes itself: between those that were measured.
static double kbi_truth_of(kbi_mode mode, const kbi_shape* shape) {
    const kbi_truth* truth = &kbi_lab.calibration.truth;
    const double *one_block = truth->ns[mode][shape->writes][0], *each = truth->ns[mode][shape->writes][1];
    double threads = shape->threads;
    double all = KBI_MIN((shape->blocks - 1) / KBI_MAX(kbi_lab.gpu.multiprocessors - 1.0, 1.0), 1.0);
    int k = threads > 256;
    double from = kbi_truth_threads[k], part = KBI_MAX(threads - from, 0) / (kbi_truth_threads[k + 1] - from);
    double one = one_block[k] + part * (one_block[k + 1] - one_block[k]),
           every = each[k] + part * (each[k + 1] - each[k]);
    return one + all * (every - one);
}

// Standard deviation of what the bias may be off, alike for all launches of a case, in ns: so far another kernel of its
// shape is like an empty one (tests/gpu/shapes.py). Without CUPTI the empty one's own duration is fitted.
static const double kbi_bias_error_ns = 60, kbi_fitted_error_ns = 100;

static void kbi_bias_update(kbi_run* run, kbi_mode mode, bool gated) {
    const kbi_empty* of = &kbi_lab.calibration.empties[run->work.empty];
    double empty = NAN;
    int more = of->read[mode][gated && !kbi_lab.gpu.ungated].n == 0 ? KBI_RECENT / 4 : KBI_EMPTIES;
    for (int i = 0; i < more; i++) empty = kbi_time_empty(mode, gated, run->work.empty);
    run->m.bias_ns = empty - kbi_truth_of(mode, &of->shape);
    run->m.floor_ns = empty;
    run->m.bias_error_ns = kbi_lab.calibration.measured ? kbi_bias_error_ns : kbi_fitted_error_ns;
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
    kbi_look_persisting();
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
              Public: none      Used by: >>cuda, >>worker, >>groups
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
    static const kbi_shape plainest = { 1, 32, 0, 1, 0, 1 };
    kbi_calibration* c = &kbi_lab.calibration;
    for (int i = 0; i < 200; i++) kbi_evict(); // out of the idle clock
    kbi_empty_of(&plainest);
    kbi_calibrate_quantum();
    for (int mode = 0; mode < KBI_EVENT_MODES; mode++)
        for (int i = 0; i < KBI_RECENT; i++) kbi_time_empty((kbi_mode)mode, true, 0);
    c->graph_floor = kbi_calibrate_graph();
    c->fitted = kbi_fit_empty();
    for (int mode = 0; mode < KBI_EVENT_MODES && !c->measured; mode++)
        for (int i = 0; i < 12; i++) c->truth.ns[mode][i / 6][i / 3 % 2][i % 3] = c->fitted;
    for (int mode = 0; mode < KBI_EVENT_MODES; mode++) {
        m->floor[mode] = kbi_time_empty((kbi_mode)mode, true, 0);
        m->bias[mode] = m->floor[mode] - kbi_truth_of((kbi_mode)mode, &plainest);
    }
    m->floor[KBI_ROTATE] = c->graph_floor;
    m->fitted = c->fitted;
    m->quantum = c->quantum;
    m->empty_pair = c->empty_pair;
    snprintf(m->truth, sizeof m->truth, "%s", c->measured ? "measured by CUPTI" : "fitted to %globaltimer");
}

// The truth, measured: CUPTI's durations. For a process of its own: CUPTI stays in it.
static bool kbi_measure_truth(kbi_truth* truth) {
    enum { KBI_TRUTH_LAUNCHES = 96 };
    double ns[KBI_TRUTH_LAUNCHES];
    if (!kbi_cupti_open()) return false;
    for (int i = 0; i < 200; i++) kbi_evict();
    for (int which = 0; which < 12 * KBI_EVENT_MODES; which++) {
        int mode = which / 12, writes = which / 6 % 2, wide = which / 3 % 2, deep = which % 3;
        kbi_shape shape = { wide ? kbi_lab.gpu.multiprocessors : 1, kbi_truth_threads[deep], 0, 1, 0, writes };
        int empty = kbi_empty_of(&shape);
        cudaStreamSynchronize(kbi_lab.gpu.stream);
        kbi_cupti_read(1, ns, KBI_TRUTH_LAUNCHES);
        for (int i = 0; i < KBI_TRUTH_LAUNCHES; i++) kbi_time_empty((kbi_mode)mode, true, empty);
        int n = kbi_cupti_read(1, ns, KBI_TRUTH_LAUNCHES);
        if (n != KBI_TRUTH_LAUNCHES) return false;
        truth->ns[mode][writes][wide][deep] = kbi_trimmed(ns, n, n / 4);
    }
    return true;
}
#endif

// What the calibration is held against, if another process measured it.
static void kbi_truth_set(const kbi_truth* truth) {
#if KBI_CUDA
    kbi_lab.calibration.truth = *truth;
    kbi_lab.calibration.measured = true;
#else
    (void)truth;
#endif
}

/*---------------------------------------------------------------------------------------------------------------
  >>audit     measure: the timed block seen once under stream capture, where nothing executes.
              Public: none      Used by: >>activity, >>cuda
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

static void kbi_kernel_name(char* out, size_t size, const char* name) {
    char* plain = NULL;
#if defined(__cplusplus)
    int status = 0;
    plain = __cxa_demangle(name, NULL, NULL, &status);
#endif
    kbi_fit(out, 0, size, "%s", plain ? plain : name);
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
        if (cudaFuncGetName(&name, k->func) == cudaSuccess && name)
            kbi_kernel_name(m->kernel, sizeof m->kernel, name);
#endif
    }
    cudaGetLastError();
}

// Whether one of an argument's words is an address of device memory.
static bool kbi_points_to_memory(const void* argument, size_t bytes) {
    for (size_t at = 0; at + sizeof(void*) <= bytes; at += sizeof(void*)) {
        struct cudaPointerAttributes of;
        void* p;
        memcpy(&p, (const char*)argument + at, sizeof p);
        if ((uintptr_t)p < 4096) continue;
        bool known = cudaPointerGetAttributes(&of, p) == cudaSuccess;
        cudaGetLastError();
        if (known && (of.type == cudaMemoryTypeDevice || of.type == cudaMemoryTypeManaged)) return true;
    }
    return false;
}

// Bytes of arguments, what they point to, and blocks of a cluster, as the driver knows them; what it does not tell is
// left alone.
static void kbi_node_shape(cudaGraphNode_t node, void** given, kbi_shape* shape) {
    kbi_cu_node node_get;
    kbi_cu_arguments argument;
    kbi_cu_get get;
    void *of_node[32] = { NULL }, *p; // its first member is the function
    size_t offset = 0, size = 0, bytes = 0;
    p = kbi_driver_function("cuGraphKernelNodeGetParams", 11000), memcpy(&node_get, &p, sizeof p);
    p = kbi_driver_function("cuFuncGetParamInfo", 12040), memcpy(&argument, &p, sizeof p);
    p = kbi_driver_function("cuFuncGetAttribute", 12000), memcpy(&get, &p, sizeof p);
    if (!node_get || node_get(node, of_node) != 0 || !of_node[0]) return;
    shape->writes = !argument || !given;
    for (size_t i = 0; argument && argument(of_node[0], i, &offset, &size) == 0; i++) {
        bytes = offset + size;
        if (given && !shape->writes) shape->writes = kbi_points_to_memory(given[i], size);
    }
    for (shape->which = 0; shape->which < KBI_EMPTY_KERNELS - 1 && kbi_empty_bytes[shape->which] < (int)bytes;)
        shape->which++;
    int across[3] = { 0, 0, 0 }; // the cluster that the kernel was compiled for
    for (int i = 0; get && i < 3; i++)
        if (get(&across[i], KBI_CU_CLUSTER_X + i, of_node[0]) != 0) across[i] = 0;
    shape->cluster = KBI_MAX(across[0], 1) * KBI_MAX(across[1], 1) * KBI_MAX(across[2], 1);
#if CUDART_VERSION >= 11080
    cudaKernelNodeAttrValue launched; // and the one that it was launched with
    memset(&launched, 0, sizeof launched);
    if (cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &launched) == cudaSuccess)
        shape->cluster =
            KBI_MAX(shape->cluster, (int)(launched.clusterDim.x * launched.clusterDim.y * launched.clusterDim.z));
    cudaGetLastError();
#endif
}

// The empty kernels whose launches are like the block's first: as many threads, as much shared memory, in as many
// blocks, but one a multiprocessor at most, since many empty blocks take time of their own.
static int kbi_empty_like(const kbi_seen* seen, const kbi_measured* m, const kbi_machine* machine) {
    kbi_shape shape = { 1, 1, 0, 1, 0, 1 };
    if (machine->tool[0] || !seen->has_kernel) return 0; // compute-sanitizer reports reads behind the last argument
    shape.which = 1;                                     // unless the driver (from 12.4 on) tells
    kbi_node_shape(seen->node, seen->first.kernelParams, &shape);
    double blocks = (double)m->grid[0] * m->grid[1] * m->grid[2];
    shape.blocks = (int)KBI_MIN(blocks, (double)machine->multiprocessors);
    shape.blocks = KBI_MAX(shape.blocks / shape.cluster, 1) * shape.cluster;
    shape.threads = m->block[0] * m->block[1] * m->block[2];
    shape.shared = (int)KBI_MAX(m->shared_bytes, (int64_t)0); // KB_NONE where the runtime does not know the kernel
    return kbi_empty_of(&shape);
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
    run->work.empty = kbi_empty_like(seen, &run->m, run->machine);
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

static cudaGraphNode_t* kbi_nodes_of(cudaGraph_t graph, size_t* n) { // to be freed
    cudaGraphNode_t* nodes = (cudaGraphNode_t*)kbi_grow(NULL, sizeof(cudaGraphNode_t) * (*n + 1));
    cudaGraphGetNodes(graph, nodes, n);
    return nodes;
}

// One number for the work of a captured block: of each node its type, of kernels also function, grid, block and shared
// memory, which the driver's own structure begins with. Where in the block they stand is no matter.
static uint64_t kbi_shape_of(const cudaGraphNode_t* nodes, size_t n) {
    enum { KBI_SHAPE_BYTES = 8 + 7 * 4 };
    uint64_t sum = 1;
    kbi_cu_node get;
    void* p = kbi_driver_function("cuGraphKernelNodeGetParams", 11000);
    memcpy(&get, &p, sizeof p);
    for (size_t i = 0; i < n; i++) {
        void* of_node[32] = { NULL };
        enum cudaGraphNodeType type;
        if (cudaGraphNodeGetType(nodes[i], &type) != cudaSuccess) continue;
        if (type == cudaGraphNodeTypeKernel && get && get(nodes[i], of_node) != 0) of_node[0] = NULL;
        uint64_t h = 14695981039346656037u + (uint64_t)type;
        for (int b = 0; b < KBI_SHAPE_BYTES; b++) h = (h ^ ((const unsigned char*)of_node)[b]) * 1099511628211u;
        sum += h;
    }
    return sum;
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
        cudaGraphNode_t* nodes = kbi_nodes_of(graph, &n);
        for (size_t i = 0; i < n; i++) kbi_see_node(&seen, nodes[i]);
        if (!run->machine->tool[0]) run->work.shape = kbi_shape_of(nodes, n);
        KBENCH_FREE(nodes);
        kbi_audit_seen(run, &seen);
        run->work.kernels = (int64_t)seen.kernels;
    }
    // nothing of a captured block runs; what does went to a stream that was not captured. Copies of a case that was
    // looked at are not: of so many one may well wait for the host
    int64_t before = kbi_now();
    cudaDeviceSynchronize();
    if (kbi_now() - before > 50000 && !run->place.stand_in)
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

// A launch behind the samples, captured as the first one was: it has to hold the same work.
static void kbi_gpu_compare(kbi_run* run) {
    cudaError_t inside = cudaGetLastError();
    cudaGraph_t graph = NULL;
    cudaError_t end = cudaStreamEndCapture(run->kb.stream, &graph);
    cudaGetLastError();
    size_t n = 0;
    if (inside != cudaSuccess || end != cudaSuccess || cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess) {
        kbi_audit_refused(run, inside, end);
    } else {
        cudaGraphNode_t* nodes = kbi_nodes_of(graph, &n);
        if (kbi_shape_of(nodes, n) != run->work.shape)
            kbi_stop(run, KB_FLAG_WORK_CHANGED,
                     "a launch after the samples submits other work than the first (%zu nodes of its graph)", n);
        KBENCH_FREE(nodes);
    }
    if (graph) cudaGraphDestroy(graph);
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>activity  measure: the block's kernels, copies and calls, run by run, from CUPTI's records.
              Public: none      Used by: >>cuda
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
enum { KBI_INSIDE_EVENTS = 1 << 16 }; // of a case, at most

typedef struct kbi_recorded { // an event, and what ties what runs on the device to the call that submitted it
    kbi_event event;
    uint32_t correlation;
} kbi_recorded;

static void kbi_activity_keep(const kbi_recorded* r) {
    kbi_insight* in = &kbi_lab.insight;
    if (in->events.n / sizeof *r >= 4 * (size_t)KBI_INSIDE_EVENTS)
        in->dropped++;
    else
        kbi_put(&in->events, (const char*)r, sizeof *r);
}

// "cudaLaunchKernel" of "cudaLaunchKernel_v7000".
static int32_t kbi_call_name(int domain, uint32_t id) {
    const char* name = NULL;
    char plain[128];
    if (!kbi_lab.cupti.call || kbi_lab.cupti.call(domain, id, &name) != 0 || !name) name = "a call";
    snprintf(plain, sizeof plain, "%s", name);
    for (char* v = plain; (v = strstr(v, "_v")) != NULL; v++)
        if (v[2] && !v[2 + strspn(v + 2, "0123456789")]) *v = 0;
    return kbi_insight_text((uint64_t)domain << 32 | id, plain);
}

static int32_t kbi_copy_name(const kbi_activity_copy* r) {
    static const char* const ways[] = { "memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
                                        "memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA",
                                        "memcpy DtoD", "memcpy HtoH", "memcpy PtoP" };
    int which = r->kind == KBI_ACTIVITY_SET || r->which >= KBI_COUNT(ways) ? 0 : r->which;
    const char* name = r->kind == KBI_ACTIVITY_SET ? "memset" : ways[which];
    return kbi_insight_text((uint64_t)(uintptr_t)name, name);
}

// How many of a kernel's warps fit on a multiprocessor, and for want of what no more do. Registers are given out to warps
// in units of 256, in four parts; shared memory in units of 128 bytes (CUDA C++ Programming Guide).
static void kbi_event_occupancy(kbi_event* e) {
    const kbi_gpu* g = &kbi_lab.gpu;
    int warps = (e->block[0] * e->block[1] * e->block[2] + 31) / 32, most = g->max_threads / 32;
    int registers = (e->registers * 32 + 255) / 256 * 256, shared = (e->shared + g->shared_taken + 127) / 128 * 128;
    double blocks = (double)e->grid[0] * e->grid[1] * e->grid[2];
    if (warps <= 0 || most <= 0 || !g->all_registers) return;
    const struct {
        kbi_limit limit;
        int blocks;
    } rows[] = { { KBI_BY_WARPS, most / warps },
                 { KBI_BY_REGISTERS, registers ? g->all_registers / 4 / registers * 4 / warps : INT32_MAX },
                 { KBI_BY_SHARED, shared ? g->all_shared / shared : INT32_MAX },
                 { KBI_BY_BLOCKS, g->most_blocks },
                 { KBI_BY_GRID, (int)KBI_MIN(ceil(blocks / g->multiprocessors), 1e6) } };
    int fits = INT32_MAX;
    for (int i = 0; i < KBI_COUNT(rows); i++)
        if (rows[i].blocks < fits) fits = rows[i].blocks, e->limit = (int32_t)rows[i].limit;
    e->occupancy = (float)(100.0 * fits * warps / most);
}

static void kbi_activity_kernel(const kbi_activity* r, kbi_recorded* to) {
    kbi_event* e = &to->event;
    char name[512];
    kbi_mapped* known = kbi_map_find(&kbi_lab.insight.names, (uint64_t)(uintptr_t)r->name);
    if (!known->key) kbi_kernel_name(name, sizeof name, r->name ? r->name : "a kernel");
    e->name = known->key ? (int32_t)known->at : kbi_insight_text((uint64_t)(uintptr_t)r->name, name);
    e->kind = KBI_EVENT_KERNEL;
    e->start = (int64_t)r->start, e->end = (int64_t)r->end;
    e->lane = r->stream;
    e->registers = r->registers, e->local = (int32_t)r->local, e->shared = r->static_shared + r->dynamic_shared;
    uint32_t version = 0;
    bool clusters = kbi_lab.cupti.version && kbi_lab.cupti.version(&version) == 0 && version >= 18;
    for (int i = 0; i < 3; i++) {
        e->grid[i] = r->grid[i], e->block[i] = r->block[i];
        e->cluster[i] = clusters ? r->cluster[i] : 0;
    }
    kbi_event_occupancy(e);
    to->correlation = r->correlation;
}

// One record; on a thread of CUPTI's while the engine waits.
static void kbi_activity_look(const kbi_activity* r) {
    kbi_recorded to;
    memset(&to, 0, sizeof to);
    to.event.cause = -1;
    if (r->kind == KBI_ACTIVITY_KERNEL) {
        kbi_activity_kernel(r, &to);
    } else if (r->kind == KBI_ACTIVITY_COPY || r->kind == KBI_ACTIVITY_SET) {
        const kbi_activity_copy* c = (const kbi_activity_copy*)(const void*)r;
        to.event.kind = c->kind == KBI_ACTIVITY_SET ? KBI_EVENT_SET : KBI_EVENT_COPY;
        to.event.name = kbi_copy_name(c);
        to.event.start = (int64_t)c->start, to.event.end = (int64_t)c->end, to.event.bytes = (int64_t)c->bytes;
        to.event.lane = c->stream;
        to.correlation = c->correlation;
    } else if (r->kind == KBI_ACTIVITY_DRIVER || r->kind == KBI_ACTIVITY_RUNTIME) {
        const kbi_activity_call* c = (const kbi_activity_call*)(const void*)r;
        to.event.kind = KBI_EVENT_CALL;
        to.event.name = kbi_call_name(c->kind == KBI_ACTIVITY_DRIVER ? 1 : 2, c->id);
        to.event.start = (int64_t)c->start, to.event.end = (int64_t)c->end;
        to.event.lane = c->thread;
        to.correlation = c->correlation;
    } else {
        return;
    }
    kbi_activity_keep(&to);
}

static const int kbi_activities[] = { KBI_ACTIVITY_KERNEL, KBI_ACTIVITY_COPY, KBI_ACTIVITY_SET, KBI_ACTIVITY_RUNTIME,
                                      KBI_ACTIVITY_DRIVER };

static void kbi_activity_off(int n) {
    for (int i = 0; i < n && kbi_lab.cupti.disable; i++)
        if (!kbi_lab.cupti.open || kbi_activities[i] != KBI_ACTIVITY_KERNEL) kbi_lab.cupti.disable(kbi_activities[i]);
}

static bool kbi_activity_open(kbi_run* run) {
    kbi_cupti* c = &kbi_lab.cupti;
    char why[400];
    int error = 0, n = 0;
    (void)run;
    if (!kbi_cupti_load() || !c->time) {
        kbi_insight_say(
            "libcupti.so is not found: it comes with the CUDA Toolkit, and LD_LIBRARY_PATH can name its folder");
        return false;
    }
    for (; n < KBI_COUNT(kbi_activities) && !error; n++) error = c->enable(kbi_activities[n]);
    if (error) kbi_activity_off(n - 1), kbi_insight_say("%s", kbi_cupti_why("cuptiActivityEnable", error, why));
    if (error) return false;
    c->flush(1); // what set-up did
    c->look = kbi_activity_look;
    kbi_lab.insight.runs = -1;
    kbi_lab.insight.began = kbi_now();
    return true;
}

static int64_t kbi_activity_now(void) {
    uint64_t ns = 0;
    return kbi_lab.cupti.time(&ns) == 0 ? (int64_t)ns : 0;
}

static void kbi_activity_gauge(void) {
    kbi_gauge g = { kbi_activity_now(), NAN, NAN };
    kbi_nvml_gauge(&g.sm_mhz, &g.power_w);
    if (kbi_finite(g.sm_mhz) || kbi_finite(g.power_w)) kbi_put(&kbi_lab.insight.gauges, (const char*)&g, sizeof g);
}

// A run as the timed ones are: cold or hot, behind the gate if it can wait there.
static int64_t kbi_activity_begin(kbi_run* run) {
    kbi_insight* in = &kbi_lab.insight;
    bool waits = (run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC | KB_EXPECT_TRANSFER)) != 0;
    if (in->runs >= 0) kbi_activity_gauge();
    kbi_sample_open(run->sampling.gated && !waits && run->work.nodes < KBI_GATE_NODES, 1);
    kbi_launch_begin(run->recipe->mode != KBI_HOT);
    in->window[KBI_MAX(in->runs, 0)][0] = kbi_activity_now();
    return 1;
}

static bool kbi_activity_end(kbi_run* run) {
    kbi_insight* in = &kbi_lab.insight;
    int64_t ends = kbi_activity_now();
    kbi_launch_end();
    kbi_lab.gpu.at = 0;
    if (kbi_lab.gpu.alarmed && run->sampling.gated)
        return run->sampling.gated = false, true; // it waits behind the gate
    if (in->runs >= 0) in->window[in->runs][1] = ends, kbi_activity_gauge();
    in->runs++;
    bool long_enough = in->runs > 0 && kbi_now() - in->began > (int64_t)2000000000;
    return in->runs < KBI_INSIDE_RUNS && !long_enough;
}

static int kbi_recorded_order(const void* a, const void* b) { // what another one lies in goes behind it
    const kbi_event *x = &((const kbi_recorded*)a)->event, *y = &((const kbi_recorded*)b)->event;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->kind != y->kind) return x->kind - y->kind; // a call before what it submits
    return x->end != y->end ? (x->end > y->end ? -1 : 1) : 0;
}

// The runs, and the calls inside of them; of calls that others make the outermost. Where each correlation belongs.
static void kbi_activity_calls(const kbi_recorded* all, size_t n, kbi_text* events, kbi_map* callers) {
    kbi_insight* in = &kbi_lab.insight;
    kbi_event outer;
    int64_t at = -1;
    memset(&outer, 0, sizeof outer);
    for (int r = 0; r < in->runs; r++) {
        kbi_event run = outer;
        run.start = in->window[r][0], run.end = in->window[r][1], run.run = r, run.cause = -1;
        run.name = kbi_insight_text(1, "the block");
        kbi_put(events, (const char*)&run, sizeof run);
    }
    for (size_t i = 0; i < n; i++) {
        kbi_event e = all[i].event;
        e.run = -1;
        for (int r = 0; r < in->runs && e.kind == KBI_EVENT_CALL; r++)
            if (e.start >= in->window[r][0] && e.start <= in->window[r][1]) e.run = r;
        if (e.run < 0) continue;
        bool inner = at >= 0 && e.lane == outer.lane && e.start >= outer.start && e.end <= outer.end;
        if (!inner) at = (int64_t)(events->n / sizeof e), outer = e, kbi_put(events, (const char*)&e, sizeof e);
        kbi_mapped* slot = kbi_map_find(callers, all[i].correlation);
        if (!slot->key) kbi_map_take(callers, slot, all[i].correlation, (intptr_t)at);
    }
}

// From all that was recorded to what the block did.
static void kbi_activity_collect(kbi_run* run) {
    kbi_insight* in = &kbi_lab.insight;
    kbi_recorded* all = (kbi_recorded*)(void*)in->events.s;
    kbi_text events = { NULL, 0, 0 };
    kbi_map callers = { NULL, 0, 0 };
    size_t n = in->events.n / sizeof *all;
    int64_t found = 0;
    if (n) qsort(all, n, sizeof *all, kbi_recorded_order);
    kbi_activity_calls(all, n, &events, &callers);
    for (size_t i = 0; i < n; i++) {
        kbi_event e = all[i].event;
        const kbi_mapped* slot = kbi_map_find(&callers, all[i].correlation);
        if (e.kind == KBI_EVENT_CALL || !slot->key) continue;
        if (events.n / sizeof e >= KBI_INSIDE_EVENTS) {
            in->dropped++;
            continue;
        }
        e.cause = (int32_t)slot->at;
        e.run = ((const kbi_event*)(void*)events.s)[slot->at].run;
        kbi_put(&events, (const char*)&e, sizeof e);
        found++;
    }
    if (!found && run->work.nodes)
        kbi_insight_say("CUPTI recorded nothing of what the block submits: is another profiler attached?");
    kbi_text_free(&in->events);
    in->events = events;
    KBENCH_FREE(callers.slots);
}

static void kbi_activity_close(kbi_run* run) {
    size_t lost = 0;
    cudaDeviceSynchronize();
    kbi_lab.cupti.flush(1);
    kbi_lab.cupti.look = NULL;
    kbi_activity_off(KBI_COUNT(kbi_activities));
    if (kbi_lab.cupti.dropped && kbi_lab.cupti.dropped(NULL, 0, &lost) == 0) kbi_lab.insight.dropped += (int64_t)lost;
    kbi_activity_collect(run);
}

static const kbi_instrument kbi_activity_instrument = { KBI_WISH_ACTIVITY, false,
                                                        kbi_activity_open, kbi_activity_begin,
                                                        kbi_activity_end,  kbi_activity_close };
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>counters  measure: the hardware's counters over the block, through CUPTI's range profiler.
              Public: none      Used by: >>cuda
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
// The profiler's functions take one structure each, whose fields all begin at multiples of 8 bytes, or share such a word:
// so they are written as words. Their sizes end with the last field; tests/compile/cupti.cpp holds both against CUPTI's.
typedef enum kbi_range_call {
    KBI_RANGE_INIT,
    KBI_RANGE_SUPPORTED, // 2: device; 2 and up, halves: supported, architecture, sli, vGpu, confidential, cmp, wsl; 6: api
    KBI_RANGE_CHIP,      // 2: device; 3: its name
    KBI_RANGE_AVAILABLE,   // 2: context; 3: size; 4: image
    KBI_RANGE_HOST,        // 2: kind; 3: chip; 4: image; 5: the object
    KBI_RANGE_METRIC,      // 2: object; 3: name
    KBI_RANGE_ADD,         // 2: object; 3: names; 4: how many
    KBI_RANGE_CONFIG_SIZE, // 2: object; 3: size
    KBI_RANGE_CONFIG,      // 2: object; 3: size; 4: image
    KBI_RANGE_PASSES,      // 2: size; 3: image; 4: passes
    KBI_RANGE_ENABLE,      // 2: context; 3: the profiler
    KBI_RANGE_DATA_SIZE,   // 2: profiler; 3: names; 4: how many; 5: ranges; 6: nodes; 7: size
    KBI_RANGE_DATA,        // 2: profiler; 3: size; 4: image
    KBI_RANGE_SET, // 2: profiler; 3, 4: config; 5, 6: data; 7: range, replay; 8: ranges; 9: nesting; 10: pass; 11: target
    KBI_RANGE_START, // 2: profiler
    KBI_RANGE_PUSH,  // 2: profiler; 3: name
    KBI_RANGE_POP,
    KBI_RANGE_STOP, // 2: profiler; 5, first byte: all passes are submitted
    KBI_RANGE_DECODE,
    KBI_RANGE_VALUES, // 2: object; 3, 4: data and size; 5: which; 6: names; 7: how many; 8: values
    KBI_RANGE_DISABLE,
    KBI_RANGE_HOST_END,
    KBI_RANGE_CALLS
} kbi_range_call;

static const struct {
    const char* name;
    unsigned size;
} kbi_range_calls[] = { { "cuptiProfilerInitialize", 16 },
                        { "cuptiProfilerDeviceSupported", 52 },
                        { "cuptiDeviceGetChipName", 32 },
                        { "cuptiProfilerGetCounterAvailability", 40 },
                        { "cuptiProfilerHostInitialize", 48 },
                        { "cuptiProfilerHostGetMetricProperties", 60 },
                        { "cuptiProfilerHostConfigAddMetrics", 40 },
                        { "cuptiProfilerHostGetConfigImageSize", 32 },
                        { "cuptiProfilerHostGetConfigImage", 40 },
                        { "cuptiProfilerHostGetNumOfPasses", 40 },
                        { "cuptiRangeProfilerEnable", 32 },
                        { "cuptiRangeProfilerGetCounterDataSize", 64 },
                        { "cuptiRangeProfilerCounterDataImageInitialize", 40 },
                        { "cuptiRangeProfilerSetConfig", 90 },
                        { "cuptiRangeProfilerStart", 24 },
                        { "cuptiRangeProfilerPushRange", 32 },
                        { "cuptiRangeProfilerPopRange", 24 },
                        { "cuptiRangeProfilerStop", 41 },
                        { "cuptiRangeProfilerDecodeData", 32 },
                        { "cuptiProfilerHostEvaluateToGpuValues", 72 },
                        { "cuptiRangeProfilerDisable", 24 },
                        { "cuptiProfilerHostDeinitialize", 24 } };

// Sets: few takes one pass of the block, usual three, all some 16. Of two rows with one name a chip has one.
static const struct {
    const char *name, *metric, *unit;
    int set; // 0: few, 1: usual, 2: all
} kbi_metrics[] = { { "gpu_time_ns", "gpu__time_duration.sum", "ns",
                      0 }, // at the profiler's clocks: no time to be reported
                    { "dram_bytes", "dram__bytes.sum", "B", 0 },
                    { "dram_pct", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", 0 },
                    { "occupancy_pct", "sm__warps_active.avg.pct_of_peak_sustained_active", "%", 0 },
                    { "tensor_pct", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", 0 },
                    { "l2_pct", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "%", 0 },
                    { "l2_bytes", "lts__t_bytes.sum", "B", 1 },
                    { "l1_hit_pct", "l1tex__t_sector_hit_rate.pct", "%", 1 },
                    { "l2_hit_pct", "lts__t_sector_hit_rate.pct", "%", 1 },
                    { "instructions", "smsp__inst_executed.sum", "", 1 },
                    { "issue_pct", "smsp__issue_active.avg.pct_of_peak_sustained_active", "%", 1 },
                    { "sm_cycles", "sm__cycles_elapsed.max", "", 1 },
                    { "dram_read_bytes", "dram__bytes_read.sum", "B", 1 },
                    { "dram_write_bytes", "dram__bytes_write.sum", "B", 1 },
                    { "bank_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "", 1 },
                    { "fadd", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "", 1 },
                    { "fmul", "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "", 1 },
                    { "ffma", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "", 1 },
                    { "dadd", "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "", 1 },
                    { "dmul", "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", "", 1 },
                    { "dfma", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", "", 1 },
                    { "hadd", "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", "", 1 },
                    { "hmul", "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", "", 1 },
                    { "hfma", "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", "", 1 },
                    { "fp32_instructions", "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum", "", 1 },
                    { "fp64_instructions", "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum", "", 1 },
                    { "fp16_instructions", "smsp__sass_thread_inst_executed_op_fp16_pred_on.sum", "", 1 },
                    { "xu_instructions", "sm__inst_executed_pipe_xu.sum", "", 1 },
                    { "tensor_instructions", "sm__inst_executed_pipe_tensor.sum", "", 1 },
                    { "tensor_bf16_ops", "sm__ops_path_tensor_src_bf16_dst_fp32.sum", "", 2 },
                    { "tensor_tf32_ops", "sm__ops_path_tensor_src_tf32_dst_fp32.sum", "", 2 },
                    { "tensor_fp16_ops", "sm__ops_path_tensor_src_fp16.sum", "", 2 },
                    { "tensor_fp16_ops", "sm__ops_path_tensor_src_fp16_dst_fp32.sum", "", 2 },
                    { "tensor_fp8_ops", "sm__ops_path_tensor_src_fp8.sum", "", 2 },
                    { "tensor_int8_ops", "sm__ops_path_tensor_src_int8.sum", "", 2 },
                    { "sm_pct", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 2 },
                    { "memory_pct", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", 2 } };

enum { KBI_METRICS = 64, KBI_PASSES = 64 };
static struct kbi_ranging { // one case's
    int (*calls[KBI_RANGE_CALLS])(uint64_t*);
    uint64_t host, profiler; // objects of CUPTI's
    const char *metrics[KBI_METRICS], *names[KBI_METRICS], *units[KBI_METRICS];
    char own[512]; // metrics by name
    int n, passes;
    bool begun, failed;
    kbi_text availability, config, data;
} kbi_ranging;

#define KBI_WORD(p) ((uint64_t)(uintptr_t)(p))

// false after it said why.
static bool kbi_range(kbi_range_call call, uint64_t* words) {
    char why[400];
    int (*f)(uint64_t*) = kbi_ranging.calls[call];
    words[0] = kbi_range_calls[call].size;
    int error = f ? f(words) : 27;
    if (!error || kbi_ranging.failed) return !error;
    kbi_ranging.failed = true;
    if (f)
        kbi_insight_say("%s", kbi_cupti_why(kbi_range_calls[call].name, error, why));
    else
        kbi_insight_say("this libcupti.so has no %s; counters want that of CUDA 12.6 or later",
                        kbi_range_calls[call].name);
    return false;
}

static void kbi_range_room(kbi_text* t, uint64_t bytes) {
    kbi_text_free(t);
    t->s = (char*)kbi_grow(NULL, (size_t)bytes);
    memset(t->s, 0, (size_t)bytes);
    t->n = (size_t)bytes;
}

// Whether this GPU can be profiled at all, as the library knows it.
static bool kbi_range_supported(int device) {
    static const char* const why[] = { "its architecture is not known to this libcupti.so; a newer one may know it",
                                       "SLI hides its counters",
                                       "this virtual GPU may not be profiled; the host's administrator can allow it",
                                       "confidential computing is on, and hides its counters",
                                       "this card (CMP) has no counters for sale",
                                       "under WSL its counters cannot be read; take Linux itself" };
    uint64_t p[7] = { 0, 0, (uint32_t)device, 0, 0, 0, 0 };
    uint32_t is[8];
    if (!kbi_range(KBI_RANGE_SUPPORTED, p)) return false;
    memcpy(is, &p[2], sizeof is); // device, supported, architecture, ...
    if (is[1] == 3) return true;
    for (int i = 0; i < KBI_COUNT(why); i++)
        if (is[2 + i] != 3 && !kbi_ranging.failed) kbi_insight_say("%s", why[i]), kbi_ranging.failed = true;
    if (!kbi_ranging.failed) kbi_insight_say("this GPU cannot be profiled (is it a part of one, MIG?)");
    return false;
}

static void kbi_range_offer(const char* metric, const char* name, const char* unit) {
    kbi_ranging.metrics[kbi_ranging.n] = metric;
    kbi_ranging.names[kbi_ranging.n] = name;
    kbi_ranging.units[kbi_ranging.n++] = unit;
}

// Those of the set that this chip has: one that it lacks would take the others with it.
static bool kbi_range_choose(const char* set) {
    bool named = set && strstr(set, "__");
    int most = !set || kbi_is(set, "usual") ? 1 : kbi_is(set, "few") ? 0 : 2, n = 0;
    kbi_ranging.n = 0;
    for (int i = 0; !named && i < KBI_COUNT(kbi_metrics); i++)
        if (kbi_metrics[i].set <= most)
            kbi_range_offer(kbi_metrics[i].metric, kbi_metrics[i].name, kbi_metrics[i].unit);
    snprintf(kbi_ranging.own, sizeof kbi_ranging.own, "%s", named ? set : "");
    for (char* p = kbi_ranging.own; *p && kbi_ranging.n < KBI_METRICS;) {
        char* name = p;
        p += strcspn(p, ",");
        if (*p) *p++ = 0;
        if (*name) kbi_range_offer(name, name, "");
    }
    for (int i = 0; i < kbi_ranging.n; i++) {
        uint64_t p[8] = {
            kbi_range_calls[KBI_RANGE_METRIC].size, 0, kbi_ranging.host, KBI_WORD(kbi_ranging.metrics[i]), 0, 0, 0, 0
        };
        bool has = kbi_ranging.calls[KBI_RANGE_METRIC] && kbi_ranging.calls[KBI_RANGE_METRIC](p) == 0;
        if (!has && named) kbi_insight_say("this chip has no metric %s", kbi_ranging.metrics[i]);
        if (!has) continue;
        kbi_ranging.metrics[n] = kbi_ranging.metrics[i];
        kbi_ranging.names[n] = kbi_ranging.names[i];
        kbi_ranging.units[n++] = kbi_ranging.units[i];
    }
    kbi_ranging.n = n;
    return n > 0;
}

// What to program the hardware with for the metrics of a set on a chip: needs no GPU.
static bool kbi_range_configure(const char* chip, const char* set) {
    struct kbi_ranging* r = &kbi_ranging;
    uint64_t host[6] = { 0, 0, 0, KBI_WORD(chip), KBI_WORD(r->availability.s), 0 };
    if (!kbi_range(KBI_RANGE_HOST, host)) return false;
    r->host = host[5];
    if (!kbi_range_choose(set)) return false;
    uint64_t add[5] = { 0, 0, r->host, KBI_WORD(r->metrics), (uint64_t)r->n }, size[4] = { 0, 0, r->host, 0 };
    if (!kbi_range(KBI_RANGE_ADD, add) || !kbi_range(KBI_RANGE_CONFIG_SIZE, size)) return false;
    kbi_range_room(&r->config, size[3]);
    uint64_t config[5] = { 0, 0, r->host, size[3], KBI_WORD(r->config.s) };
    uint64_t passes[5] = { 0, 0, size[3], KBI_WORD(r->config.s), 0 };
    if (!kbi_range(KBI_RANGE_CONFIG, config) || !kbi_range(KBI_RANGE_PASSES, passes)) return false;
    r->passes = (int)passes[4];
    return true;
}

static void kbi_range_find(void* library) {
    for (int i = 0; i < KBI_RANGE_CALLS; i++) kbi_find(library, kbi_range_calls[i].name, &kbi_ranging.calls[i]);
}

static void kbi_range_end(void) {
    struct kbi_ranging* r = &kbi_ranging;
    uint64_t profiler[3] = { 0, 0, r->profiler }, host[3] = { 0, 0, r->host };
    if (r->profiler) kbi_range(KBI_RANGE_DISABLE, profiler);
    if (r->host) kbi_range(KBI_RANGE_HOST_END, host);
    r->profiler = r->host = 0;
    kbi_text_free(&r->availability);
    kbi_text_free(&r->config);
    kbi_text_free(&r->data);
}

// The profiler of this context, set to one range of the block's own that is run again for each pass.
static bool kbi_range_begin(kbi_run* run) {
    enum { KBI_USER_RANGE = 2, KBI_USER_REPLAY = 3 };
    struct kbi_ranging* r = &kbi_ranging;
    int (*current)(void**) = NULL;
    void *p = kbi_driver_function("cuCtxGetCurrent", 4000), *context = NULL;
    uint64_t init[2] = { 0, 0 }, chip[4] = { 0, 0, (uint64_t)run->machine->device, 0 };
    memcpy(&current, &p, sizeof p);
    if (current) current(&context);
    r->begun = r->begun || kbi_range(KBI_RANGE_INIT, init); // once in a process, which ends with it
    if (!r->begun || !kbi_range_supported(run->machine->device) || !kbi_range(KBI_RANGE_CHIP, chip)) return false;
    uint64_t room[5] = { 0, 0, KBI_WORD(context), 0, 0 }, enable[4] = { 0, 0, KBI_WORD(context), 0 };
    if (!kbi_range(KBI_RANGE_AVAILABLE, room)) return false;
    kbi_range_room(&r->availability, room[3]);
    room[4] = KBI_WORD(r->availability.s);
    if (!kbi_range(KBI_RANGE_AVAILABLE, room)) return false;
    if (!kbi_range_configure((const char*)(uintptr_t)chip[3], run->recipe->counters)) return false;
    if (!kbi_range(KBI_RANGE_ENABLE, enable)) return false;
    r->profiler = enable[3];
    uint64_t size[8] = { 0, 0, r->profiler, KBI_WORD(r->metrics), (uint64_t)r->n, 1, 1, 0 };
    if (!kbi_range(KBI_RANGE_DATA_SIZE, size)) return false;
    kbi_range_room(&r->data, size[7]);
    uint64_t data[5] = { 0, 0, r->profiler, size[7], KBI_WORD(r->data.s) };
    uint64_t set[12] = { 0,
                         0,
                         r->profiler,
                         r->config.n,
                         KBI_WORD(r->config.s),
                         r->data.n,
                         KBI_WORD(r->data.s),
                         (uint64_t)KBI_USER_RANGE | (uint64_t)KBI_USER_REPLAY << 32,
                         1,
                         1 | 1u << 16,
                         0,
                         1 };
    return kbi_range(KBI_RANGE_DATA, data) && kbi_range(KBI_RANGE_SET, set);
}

static bool kbi_counters_open(kbi_run* run) {
    kbi_ranging.failed = false;
    if (!kbi_cupti_load()) {
        kbi_insight_say("libcupti.so is not found: it comes with the CUDA Toolkit, and LD_LIBRARY_PATH can name its "
                        "folder");
        return false;
    }
    kbi_range_find(kbi_lab.cupti.library);
    kbi_lab.insight.passes = 0;
    bool good = kbi_range_begin(run);
    if (!good) kbi_range_end();
    return good;
}

static int64_t kbi_counters_begin(kbi_run* run) {
    uint64_t start[3] = { 0, 0, kbi_ranging.profiler }, push[4] = { 0, 0, kbi_ranging.profiler, KBI_WORD("block") };
    if (run->recipe->mode != KBI_HOT) kbi_evict();
    cudaStreamSynchronize(kbi_lab.gpu.stream);
    if (kbi_range(KBI_RANGE_START, start)) kbi_range(KBI_RANGE_PUSH, push);
    return 1;
}

static bool kbi_counters_end(kbi_run* run) {
    uint64_t pop[3] = { 0, 0, kbi_ranging.profiler }, stop[6] = { 0, 0, kbi_ranging.profiler, 0, 0, 0 };
    (void)run;
    if (!kbi_ranging.failed) kbi_range(KBI_RANGE_POP, pop);
    cudaDeviceSynchronize();
    if (!kbi_ranging.failed) kbi_range(KBI_RANGE_STOP, stop);
    kbi_lab.insight.passes++;
    return !kbi_ranging.failed && !(stop[5] & 0xff) && kbi_lab.insight.passes < KBI_PASSES;
}

static void kbi_counters_close(kbi_run* run) {
    struct kbi_ranging* r = &kbi_ranging;
    double values[KBI_METRICS];
    uint64_t decode[4] = { 0, 0, r->profiler, 0 };
    uint64_t value[9] = {
        0, 0, r->host, KBI_WORD(r->data.s), r->data.n, 0, KBI_WORD(r->metrics), (uint64_t)r->n, KBI_WORD(values)
    };
    for (int i = 0; i < KBI_METRICS; i++) values[i] = NAN;
    if (!r->failed && !kbi_failed(run) && kbi_range(KBI_RANGE_DECODE, decode) && kbi_range(KBI_RANGE_VALUES, value))
        for (int i = 0; i < r->n; i++) kbi_insight_count(r->names[i], r->units[i], values[i]);
    kbi_range_end();
}

static const kbi_instrument kbi_counters_instrument = { KBI_WISH_COUNTERS, false,
                                                        kbi_counters_open, kbi_counters_begin,
                                                        kbi_counters_end,  kbi_counters_close };
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>roofs     measure: what this device reaches: bandwidth of copies, reads and writes, arithmetic.
              Public: none      Used by: >>cuda, >>calls, >>worker, >>proving
---------------------------------------------------------------------------------------------------------------*/

/*  Which roof. Bytes: the copy's, unless kb_bytes_as says that a launch reads or writes. Operations: of the type that
    kb_flops_as says; else of KB_DTYPE's, without one f32; and where a launch does more than that allows, of the next
    that its elements do: tf32, f16, bf16, and where nothing is said fp8, int8. Of two roofs the nearer one counts.
    ABOVE_ROOF, on a GPU: more than 1.05 times the highest that may be meant (tensor cores: 1.1). Bytes only where they
    cannot come from cache: cold, four times L2, and without an L2's worth, which may still be there when what wrote it
    ends. Operations always, against what products of zeros reach: random numbers cost power, and power costs clock.
    Each is measured when first needed, and told to later processes of the run. f32 and f64 by chains of FMA; f64's
    tensor cores and all others by products through cuBLASLt, if it is installed. If not, nobody can tell: no
    percentage of them, and nothing is above. --env shows what there is.
    On the CPU a roof is what one core reaches, beyond its caches, with the vectors of this build; what is smaller than
    f32 counts as f32. Threads and caches pass 100, so nothing is ABOVE_ROOF there.                                  */

// What earlier processes of this run measured.
static void kbi_roofs_set(const kbi_roofs* device, const kbi_roofs* core) {
    kbi_lab.roofs = *device;
    kbi_lab.core = *core;
    kbi_lab.told = true;
}

// --- one core of the host ---

KBI_SLOW_END
#if defined(__AVX512F__)
enum { KBI_VECTOR = 64 };
#elif defined(__AVX__)
enum { KBI_VECTOR = 32 };
#else
enum { KBI_VECTOR = 16 }; // SSE2, NEON
#endif
typedef float kbi_floats __attribute__((vector_size(KBI_VECTOR)));
typedef double kbi_doubles __attribute__((vector_size(KBI_VECTOR)));
typedef uint64_t kbi_words __attribute__((vector_size(KBI_VECTOR)));
#if defined(__clang__)
#define KBI_OPTIMISE __attribute__((noinline))
#else
#define KBI_OPTIMISE __attribute__((noinline, optimize("O2"))) // whatever the file is compiled with
#endif

// So many turns of 12 independent chains x = x a + b, in registers: enough for two units of four to five cycles. What
// comes out goes where the compiler has to believe that somebody reads it, and what goes in it cannot know.
#define KBI_CORE_CHAINS(name, scalar, vector)                                                                     \
    KBI_OPTIMISE static void name(int64_t turns, volatile scalar* seed) {                                         \
        scalar start[14 * KBI_VECTOR / sizeof(scalar)];                                                           \
        vector x[14];                                                                                             \
        for (size_t i = 0; i < sizeof start / sizeof *start; i++) start[i] = *seed;                               \
        memcpy(x, start, sizeof x);                                                                               \
        vector a = x[12], b = x[13], x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3], x4 = x[4], x5 = x[5], x6 = x[6], \
               x7 = x[7], x8 = x[8], x9 = x[9], x10 = x[10], x11 = x[11];                                         \
        for (; turns > 0; turns--) {                                                                              \
            x0 = x0 * a + b, x1 = x1 * a + b, x2 = x2 * a + b, x3 = x3 * a + b, x4 = x4 * a + b, x5 = x5 * a + b; \
            x6 = x6 * a + b, x7 = x7 * a + b, x8 = x8 * a + b, x9 = x9 * a + b, x10 = x10 * a + b,                \
            x11 = x11 * a + b;                                                                                    \
        }                                                                                                         \
        x[0] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11;                                       \
        __asm__ __volatile__("" : : "r"(x) : "memory");                                                           \
    }
KBI_CORE_CHAINS(kbi_core_f32, float, kbi_floats)
KBI_CORE_CHAINS(kbi_core_f64, double, kbi_doubles)
#undef KBI_CORE_CHAINS

KBI_OPTIMISE static void kbi_core_read(const char* from, size_t bytes) {
    kbi_words sum[4], word[4];
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(word, from + i, sizeof word);
        sum[0] ^= word[0], sum[1] ^= word[1], sum[2] ^= word[2], sum[3] ^= word[3];
    }
    __asm__ __volatile__("" : : "r"(sum) : "memory");
}
KBI_SLOW_BEGIN

// Twice what the last cache holds, from 64 to 512 MiB, and no more than an eighth of the memory.
static size_t kbi_core_bytes(void) {
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 8, wanted = (int64_t)64 << 20;
    for (int i = 0; i < 10; i++) {
        char path[80], size[32];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (!kbi_first_line(path, size, (int)sizeof size)) continue;
        int64_t bytes = strtoll(size, NULL, 10) << (strchr(size, 'M') ? 20 : 10);
        wanted = KBI_MAX(wanted, KBI_MIN(2 * bytes, (int64_t)512 << 20));
    }
    return (size_t)KBI_MIN(wanted, memory) & ~(size_t)4095;
}

// Large pages where the system has them: thousands of small ones take longer to come than to be measured.
static char* kbi_core_pages(size_t size) {
    void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | KBI_MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    madvise(p, size, MADV_HUGEPAGE);
#endif
    return (char*)p;
}

// The best of what fits into 50 ms, of three at least.
static void kbi_core_roof(kbi_roofs* r, int which) {
    volatile float one32 = 1;
    volatile double one64 = 1;
    int64_t began = kbi_now(), turns = 100000, measured;
    bool memory = which <= KBI_ROOF_WRITE;
    size_t size = memory ? kbi_core_bytes() : 0;
    char* a = memory ? kbi_core_pages(size) : NULL;
    double lanes = which == KBI_ROOF_F64 ? KBI_VECTOR / 8 : KBI_VECTOR / 4, best = INFINITY;
    double work = memory ? (double)size : 2 * 12 * lanes * (double)turns;
    if ((memory && !a) || (!memory && which != KBI_ROOF_F32 && which != KBI_ROOF_F64)) {
        kbi_roof_put(r, which, memory ? KBI_UNTOLD : 0, memory ? KBI_UNTOLD : 0, 0);
        return;
    }
    if (memory) memset(a, 1, size); // pages come when they are written
    measured = kbi_now();
    for (int i = 0; i < 3 || (kbi_now() - measured < 50000000 && i < 1000); i++) {
        int64_t at = kbi_now();
        if (which == KBI_ROOF_COPY) memcpy(a + size / 2, a, size / 2);
        if (which == KBI_ROOF_READ) kbi_core_read(a, size);
        if (which == KBI_ROOF_WRITE) memset(a, i & 255, size);
        if (which == KBI_ROOF_F32) kbi_core_f32(turns, &one32);
        if (which == KBI_ROOF_F64) kbi_core_f64(turns, &one64);
        if (memory) __asm__ __volatile__("" : : "r"(a) : "memory");
        best = KBI_MIN(best, (double)(kbi_now() - at));
    }
    if (a) munmap(a, size);
    kbi_roof_put(r, which, work / best * 1e9, work / best * 1e9, kbi_seconds_since(began));
}

// --- a GPU's memory ---

#if KBI_CUDA
enum kbi_stream_of { KBI_BY_KERNEL, KBI_BY_RUNTIME };

// The best of five, by events, in bytes a second; bytes counts what is read and written.
static double kbi_time_memory(int which, enum kbi_stream_of by, char* a, char* b, size_t size) {
    float best = 0;
    double bytes = which == KBI_ROOF_COPY ? 2.0 * (double)size : (double)size;
    for (int i = 0; i < 6; i++) {
        float ms = 0;
        cudaEventRecord(kbi_lab.gpu.start, kbi_lab.gpu.stream);
        if (which == KBI_ROOF_READ) kbi_gpu_read(a, size);
        if (which == KBI_ROOF_COPY && by == KBI_BY_KERNEL) kbi_gpu_copy_kernel(b, a, size);
        if (which == KBI_ROOF_COPY && by == KBI_BY_RUNTIME)
            cudaMemcpyAsync(b, a, size, cudaMemcpyDeviceToDevice, kbi_lab.gpu.stream);
        if (which == KBI_ROOF_WRITE && by == KBI_BY_KERNEL) kbi_gpu_write(b, size);
        if (which == KBI_ROOF_WRITE && by == KBI_BY_RUNTIME) cudaMemsetAsync(b, 63, size, kbi_lab.gpu.stream);
        cudaEventRecord(kbi_lab.gpu.stop, kbi_lab.gpu.stream);
        if (cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess) return 0;
        cudaEventElapsedTime(&ms, kbi_lab.gpu.start, kbi_lab.gpu.stop);
        if (i && (best == 0 || ms < best)) best = ms; // the first one warms up
    }
    return best > 0 ? bytes / best * 1e3 : 0;
}

enum { KBI_PROBE = 65536 };

static const size_t kbi_tool_bytes = (size_t)16 << 20; // under a tool everything runs, and as little of it as will do

// One warp reads 64 KiB, which takes as long as its loads take one after the other: L2 or memory is a factor of 2.
// cold: after what goes before a cold launch.
static double kbi_probe_ns(const char* p, bool cold) {
    uint64_t n = KBI_PROBE / 16;
    void *sink = kbi_lab.gpu.device_clock, *arguments[] = { &p, &n, &sink };
    kbi_sample_open(true, 1);
    kbi_launch_begin(cold);
    kbi_launch(KBI_F_READ, 1, 32, arguments);
    kbi_launch_end();
    kbi_lab.gpu.at = 0;
    kbi_gate_learn();
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
            ns[0][i] = kbi_probe_ns(at, false);
            kbi_gpu_read(large, size);
            ns[1][i] = kbi_probe_ns(at, false);
            kbi_gpu_read(probe, (size_t)m->l2);
            kbi_evict();
            ns[2][i] = kbi_probe_ns(at, false);
        }
        for (int k = 0; k < 3; k++) ns[k][0] = kbi_median_of(ns[k], 5, scratch);
        if (!(ns[1][0] > 1.2 * ns[0][0])) return NAN;
        least = KBI_MIN(least, (ns[2][0] - ns[0][0]) / (ns[1][0] - ns[0][0]));
    }
    return least;
}

// Copy, read and write bandwidth over 1 GiB, or what an eighth of the free memory allows.
static void kbi_measure_memory(kbi_machine* m) {
    size_t size = m->tool[0] ? kbi_tool_bytes : (size_t)1 << 30,
           eighth = (size_t)(kbi_gpu_free_bytes() / 8) & ~(size_t)4095;
    if (size > eighth) size = eighth;
    char *a = NULL, *b = NULL;
    if (cudaMalloc((void**)&a, size) == cudaSuccess && cudaMalloc((void**)&b, size) == cudaSuccess) {
        kbi_gpu_fill(a, KB_U32, (int64_t)(size / 4), KB_UNIFORM, 42, 0);
        for (int which = KBI_ROOF_COPY; which <= KBI_ROOF_WRITE; which++) {
            if (!kbi_nan(m->roofs.of[which])) continue;
            int64_t began = kbi_now();
            double kernel = kbi_time_memory(which, KBI_BY_KERNEL, a, b, size),
                   runtime = which == KBI_ROOF_READ ? 0 : kbi_time_memory(which, KBI_BY_RUNTIME, a, b, size),
                   best = KBI_MAX(kernel, runtime);
            if (m->tool[0] || best <= 0) best = KBI_UNTOLD;
            kbi_roof_put(&m->roofs, which, best, best, kbi_seconds_since(began));
        }
        if (!m->tool[0]) m->cold = kbi_measure_cold(m, b, a, size);
    }
    cudaFree(a);
    cudaFree(b);
    cudaGetLastError();
}

// --- its arithmetic ---

// FMA rate, two operations each, from a full grid of independent chains: each many a thread and iteration.
static double kbi_fma_roof(enum kbi_function kernel, double each, uint64_t iterations) {
    float best = 0;
    void* sink = kbi_lab.gpu.touch;
    void* arguments[] = { &sink, &iterations };
    unsigned blocks = (unsigned)kbi_lab.gpu.multiprocessors * 8;
    for (int i = 0; i < 5; i++) {
        float ms = 0;
        cudaEventRecord(kbi_lab.gpu.start, kbi_lab.gpu.stream);
        kbi_launch(kernel, blocks, 256, arguments);
        cudaEventRecord(kbi_lab.gpu.stop, kbi_lab.gpu.stream);
        if (cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess) return 0;
        cudaEventElapsedTime(&ms, kbi_lab.gpu.start, kbi_lab.gpu.stop);
        if (i && (best == 0 || ms < best)) best = ms;
    }
    return best > 0 ? 2 * each * (double)iterations * blocks * 256.0 / best * 1e3 : 0;
}

// Tensor cores: products of square matrices by cuBLASLt, the only way to them that is the same on every GPU. The few
// prototypes, codes and the layout of an algorithm are those of cublasLt.h, which need not be installed.
typedef struct kbi_algorithm {
    uint64_t data[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
} kbi_algorithm;

typedef struct kbi_cublas {
    void* handle;
    int (*create)(void** handle);
    int (*destroy)(void* handle);
    int (*describe)(void** what, int compute, int scale);
    int (*describe_more)(void* what, int attribute, const void* value, size_t bytes);
    int (*describe_end)(void* what);
    int (*layout)(void** matrix, int type, uint64_t rows, uint64_t columns, int64_t stride);
    int (*layout_end)(void* matrix);
    int (*prefer)(void** preference);
    int (*prefer_more)(void* preference, int attribute, const void* value, size_t bytes);
    int (*prefer_end)(void* preference);
    int (*search)(void* handle, void* what, void* a, void* b, void* c, void* d, void* preference, int wanted,
                  kbi_algorithm* found, int* n);
    int (*multiply)(void* handle, void* what, const void* alpha, const void* a, void* of_a, const void* b, void* of_b,
                    const void* beta, const void* c, void* of_c, void* d, void* of_d, const kbi_algorithm* algorithm,
                    void* workspace, size_t bytes, kb_stream stream);
} kbi_cublas;

typedef struct kbi_product { // codes of cublasComputeType_t and cudaDataType
    int roof, compute, scale, in, out, in_bytes, out_bytes;
    kb_dtype fill;
} kbi_product;

enum {
    KBI_LT_TRANSPOSE_A = 3,
    KBI_LT_FAST_SUM = 25,
    KBI_LT_WORKSPACE = 1,
    KBI_LT_UNSUPPORTED = 15,
    KBI_LT_FOUND = 2,
    KBI_LT_BYTES = 32 << 20
};

// f16 twice: some GPUs add faster in f16. f64 beside its FMA: some have tensor cores for it.
static const kbi_product kbi_products[] = {
    { KBI_ROOF_F64, 70, 1, 1, 1, 8, 8, KB_F64 },     { KBI_ROOF_TF32, 77, 0, 0, 0, 4, 4, KB_F32 },
    { KBI_ROOF_F16, 68, 0, 2, 2, 2, 2, KB_F16 },     { KBI_ROOF_F16, 64, 2, 2, 2, 2, 2, KB_F16 },
    { KBI_ROOF_BF16, 68, 0, 14, 14, 2, 2, KB_BF16 }, { KBI_ROOF_FP8, 68, 0, 28, 14, 1, 2, KB_E4M3 },
    { KBI_ROOF_INT8, 72, 10, 3, 10, 1, 4, KB_I8 }
};

// Newest first; one that this driver is too old for does not start.
static bool kbi_cublas_open(kbi_cublas* c) {
    for (int version = 16; version >= 10; version--) {
        char name[64];
        snprintf(name, sizeof name, version > 10 ? "libcublasLt.so.%d" : "libcublasLt.so", version);
        void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        kbi_find(library, "cublasLtCreate", &c->create);
        kbi_find(library, "cublasLtDestroy", &c->destroy);
        kbi_find(library, "cublasLtMatmulDescCreate", &c->describe);
        kbi_find(library, "cublasLtMatmulDescSetAttribute", &c->describe_more);
        kbi_find(library, "cublasLtMatmulDescDestroy", &c->describe_end);
        kbi_find(library, "cublasLtMatrixLayoutCreate", &c->layout);
        kbi_find(library, "cublasLtMatrixLayoutDestroy", &c->layout_end);
        kbi_find(library, "cublasLtMatmulPreferenceCreate", &c->prefer);
        kbi_find(library, "cublasLtMatmulPreferenceSetAttribute", &c->prefer_more);
        kbi_find(library, "cublasLtMatmulPreferenceDestroy", &c->prefer_end);
        kbi_find(library, "cublasLtMatmulAlgoGetHeuristic", &c->search);
        kbi_find(library, "cublasLtMatmul", &c->multiply);
        bool all = c->create && c->destroy && c->describe && c->describe_more && c->describe_end && c->layout &&
                   c->layout_end && c->prefer && c->prefer_more && c->prefer_end && c->search && c->multiply;
        if (all && c->create(&c->handle) == 0) return true;
        dlclose(library);
    }
    return false;
}

// A, given transposed, times B, by each of the algorithms that the library thinks best; workspace, A, B, result follow
// each other from data on. The fastest launch in ns: alone behind a spin that costs hardly any power, so that the clock
// is as high as it gets, and as long as submitting takes. 0: it has no such product, or (failed) nobody knows.
static double kbi_time_product(const kbi_cublas* c, const kbi_product* p, char* data, int64_t side, bool* failed) {
    void *what = NULL, *preference = NULL, *in = NULL, *out = NULL;
    kbi_algorithm found[KBI_LT_FOUND];
    int transposed = 1, n = 0;
    signed char fast = 1;
    size_t workspace = KBI_LT_BYTES, bytes = (size_t)(side * side * p->in_bytes);
    char *a = data + KBI_LT_BYTES, *b = a + bytes, *d = b + bytes;
    const double one64 = 1;
    const float one32 = 1;
    const int32_t one_whole = 1;
    const uint16_t one16 = 0x3c00;
    const uint64_t zero = 0;
    const void* one = p->scale == 0 ? (const void*)&one32 : p->scale == 1 ? (const void*)&one64 : (const void*)&one16;
    if (p->scale == 10) one = &one_whole;
    int e = c->describe(&what, p->compute, p->scale);
    if (!e) e = c->describe_more(what, KBI_LT_TRANSPOSE_A, &transposed, sizeof transposed);
    if (!e && p->roof == KBI_ROOF_FP8) e = c->describe_more(what, KBI_LT_FAST_SUM, &fast, sizeof fast);
    if (!e) e = c->layout(&in, p->in, (uint64_t)side, (uint64_t)side, side);
    if (!e) e = c->layout(&out, p->out, (uint64_t)side, (uint64_t)side, side);
    if (!e) e = c->prefer(&preference);
    if (!e) e = c->prefer_more(preference, KBI_LT_WORKSPACE, &workspace, sizeof workspace);
    if (!e) e = c->search(c->handle, what, in, in, out, out, preference, KBI_LT_FOUND, found, &n);
    double best = 0;
    for (int i = 0; i < 4 * n && !e; i++) { // four launches of each, whose first loads its code
        float ms = 0;
        uint64_t cycles = 400000;
        void* arguments[] = { &cycles };
        kbi_launch(KBI_F_SPIN, 1, 1, arguments);
        cudaEventRecord(kbi_lab.gpu.start, kbi_lab.gpu.stream);
        int refused = c->multiply(c->handle, what, one, a, in, b, in, &zero, d, out, d, out, &found[i / 4], data,
                                  workspace, kbi_lab.gpu.stream);
        cudaEventRecord(kbi_lab.gpu.stop, kbi_lab.gpu.stream);
        if (cudaStreamSynchronize(kbi_lab.gpu.stream) != cudaSuccess) break;
        cudaEventElapsedTime(&ms, kbi_lab.gpu.start, kbi_lab.gpu.stop);
        if (i % 4 && !refused && (best <= 0 || ms * 1e6 < best)) best = ms * 1e6;
    }
    if (preference) c->prefer_end(preference);
    if (out) c->layout_end(out);
    if (in) c->layout_end(in);
    if (what) c->describe_end(what);
    cudaGetLastError();
    *failed = best <= 0 && e != KBI_LT_UNSUPPORTED;
    return best;
}

static const double kbi_product_seconds = 0.2; // for a roof

// The best over sizes, of random numbers and of zeros: small ones leave little heat, large ones fill the device.
static void kbi_product_roof(const kbi_cublas* c, int which, double* of, double* most) {
    int64_t began = kbi_now(), largest = 8192, room = kbi_gpu_free_bytes() / 4 - KBI_LT_BYTES;
    char* data = NULL;
    bool failed = false, told = false;
    int in_bytes = 1, out_bytes = 1;
    for (int i = 0; i < KBI_COUNT(kbi_products); i++)
        if (kbi_products[i].roof == which) in_bytes = kbi_products[i].in_bytes, out_bytes = kbi_products[i].out_bytes;
    while (largest > 1024 && largest * largest * (2 * in_bytes + out_bytes) > room) largest /= 2;
    size_t all = (size_t)(largest * largest * (2 * in_bytes + out_bytes)) + KBI_LT_BYTES;
    if (cudaMalloc((void**)&data, all) != cudaSuccess) { // perhaps there is room after another case
        cudaGetLastError();
        *of = *most = NAN;
        return;
    }
    *of = *most = 0;
    uint64_t rest = 40000000; // cycles: what was measured before may have heated the device
    void* arguments[] = { &rest };
    kbi_launch(KBI_F_SPIN, 1, 1, arguments);
    for (int64_t side = KBI_MIN(largest, (int64_t)2048); side <= largest; side *= 2)
        for (int i = 0; i < KBI_COUNT(kbi_products); i++) {
            const kbi_product* p = &kbi_products[i];
            double operations = 2.0 * (double)side * (double)side * (double)side;
            for (int zeros = 0; zeros < 2 && p->roof == which; zeros++) {
                double left = kbi_product_seconds - kbi_seconds_since(began);
                if (*of > 0 && 4 * KBI_LT_FOUND * operations / *of > left) break;
                if (zeros)
                    cudaMemsetAsync(data + KBI_LT_BYTES, 0, (size_t)(2 * side * side * in_bytes), kbi_lab.gpu.stream);
                else
                    kbi_gpu_fill(data + KBI_LT_BYTES, p->fill, 2 * side * side, KB_NORMAL, 42, 0);
                double ns = kbi_time_product(c, p, data, side, &failed), rate = ns > 0 ? operations / ns * 1e9 : 0;
                told |= !failed;
                if (!zeros) *of = KBI_MAX(*of, rate);
                *most = KBI_MAX(*most, rate);
            }
        }
    cudaFree(data);
    if (!told) *of = *most = KBI_UNTOLD;
}

static void kbi_gpu_roof(kbi_machine* m, int which) {
    double fma = 0, of = KBI_UNTOLD, most = KBI_UNTOLD;
    int64_t began = kbi_now();
    kbi_cublas c;
    memset(&c, 0, sizeof c);
    if (which <= KBI_ROOF_WRITE || m->tool[0]) return; // measured at the start, where there was room
    if (which == KBI_ROOF_F32) of = most = kbi_fma_roof(KBI_F_FMA, 256, 200);
    if (which == KBI_ROOF_F64) fma = kbi_fma_roof(KBI_F_FMA64, 32, 1600);
    if (which != KBI_ROOF_F32 && kbi_cublas_open(&c)) {
        kbi_product_roof(&c, which, &of, &most);
        c.destroy(c.handle);
    }
    if (fma > of) of = fma;
    if (fma > most && most >= 0) most = fma; // without cuBLAS tensor cores may be faster
    kbi_roof_put(&m->roofs, which, of, most, kbi_seconds_since(began));
}
#endif

// --- when they are measured ---

static void kbi_want_roof(kbi_run* run, int which) {
    kbi_roofs* roofs = run->m.core ? &run->machine->core : &run->machine->roofs;
    if (which < 0 || !kbi_nan(roofs->of[which])) return;
    if (run->m.core)
        kbi_core_roof(roofs, which);
    else if (run->backend->timing.roof)
        run->backend->timing.roof(run->machine, which);
}

// Measures the roofs that judging this case will ask for, as far as they are not known yet. Host work is held against
// one core of the host, whatever the device.
static void kbi_want_roofs(kbi_run* run) {
    kbi_measured* m = &run->m;
    bool under_tool = run->machine->tool[0] != 0, flops = kbi_finite(m->flops) && m->flops > 0;
    m->core = !run->backend->stands_in && (run->work.host || !run->backend->gpu);
    const kbi_roofs* roofs = m->core ? &run->machine->core : &run->machine->roofs;
    if (m->status == KB_OK && m->n > 0 && !under_tool) {
        if (kbi_finite(m->bytes) && m->bytes > 0) kbi_want_roof(run, kbi_traffic_roof(m->traffic));
        for (int i = KBI_ROOF_COPY; i <= KBI_ROOF_WRITE && kbi_finite(m->bytes) && !m->core && !m->traffic; i++)
            kbi_want_roof(run, i); // it may be any of them
        double* scratch = (double*)kbi_grow(NULL, sizeof(double) * (size_t)m->n);
        double ns = kbi_median_of(run->sampling.samples, (int)m->n, scratch);
        if (kbi_finite(m->bias_ns)) ns -= m->bias_ns;
        KBENCH_FREE(scratch);
        double rate = ns > 0 ? m->flops / ns * 1e9 * 1.02 : 0; // the judge's time may be a little shorter
        for (int which = 0, last = -1; flops; last = which) {
            which = kbi_roof_over(roofs, kbi_arithmetic_of(m), rate);
            if (which < 0 || which == last || !kbi_nan(roofs->of[which])) break;
            kbi_want_roof(run, which);
        }
    }
    m->roofs = *roofs;
}

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
    if (e == cudaSuccess) e = cudaMalloc((void**)&kbi_lab.gpu.touch, KBI_TOUCHED);
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
    kbi_lab.gpu.max_shared = (int)p.sharedMemPerBlockOptin;
    kbi_lab.gpu.all_registers = p.regsPerMultiprocessor;
    kbi_lab.gpu.all_shared = (int)p.sharedMemPerMultiprocessor;
    kbi_lab.gpu.most_blocks = p.maxBlocksPerMultiProcessor;
    kbi_lab.gpu.shared_taken = (int)p.reservedSharedMemPerBlock;
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

// Before anything else is allocated, so that all of it comes to lie on other pages than in other processes. They are
// kept as long as the process lives. What goes wrong here goes wrong again when the GPU is opened, and is said there.
static void kbi_gpu_take_pages(const kbi_recipe* recipe) {
    uint64_t placement = kbi_placement(recipe);
    void* kept;
    if (!placement) return;
    cudaError_t e = cudaSetDevice(recipe->device);
    for (uint64_t n = 1 + (placement >> 32) % 64; n > 0 && e == cudaSuccess; n--)
        e = cudaMalloc(&kept, KBI_STAGE_PAGE);
    cudaGetLastError();
}

// What a worker does before it measures, and a process that asks CUPTI for the truth does not.
static bool kbi_gpu_open_measured(kbi_machine* m, const kbi_recipe* recipe) {
    kbi_calibration* c = &kbi_lab.calibration;
    kbi_gpu_take_pages(recipe);
    if (!kbi_gpu_open(m, recipe->device)) return false;
    if (recipe->inside) return true;
    kbi_measure_memory(m);
    c->n_empties = 0; // perhaps another GPU's
    kbi_calibrate(m);
    return true;
}

// clang-format off
static const kbi_backend kbi_cuda = {
    "cuda", true, false, kbi_gpu_open_measured,
    { kbi_gpu_alloc, kbi_gpu_release, kbi_gpu_set, kbi_gpu_copy, kbi_gpu_fill, kbi_gpu_free_bytes, kbi_gpu_pool_peak },
    { kbi_gpu_choose, kbi_gpu_stream, kbi_gpu_prepare, kbi_gpu_wait, kbi_gpu_lost, kbi_gpu_abandon, kbi_gpu_roof },
    { kbi_gpu_settle, kbi_gpu_audit_begin, kbi_gpu_audit_end, kbi_gpu_compare, kbi_graph_forget, kbi_graph_repeats,
      kbi_gpu_repeat },
    { kbi_gpu_clock, kbi_gpu_sense, kbi_gpu_energy },
    { &kbi_activity_instrument, &kbi_counters_instrument, KBI_PERF, NULL }
};
// clang-format on
#endif

// The backend that a recipe asks for. Without a GPU host work still runs, on the cpu backend, which remembers why.
static const kbi_backend* kbi_backend_open(const kbi_recipe* recipe, kbi_machine* machine) {
    const kbi_backend* b = recipe->target == KBI_ON_SCRIPT ? &kbi_scripted : &kbi_cpu;
#if KBI_CUDA
    if (recipe->target == KBI_ON_GPU) b = &kbi_cuda;
#endif
    if (!b->open(machine, recipe)) {
        kbi_machine found = *machine;
        b = &kbi_cpu;
        b->open(machine, recipe);
        memcpy(machine->why, found.why, sizeof machine->why);
        machine->devices = found.devices;
    }
    kbi_machine_cpus(machine, kbi_cpu_root);
    return b;
}

// For people who ask what the machine reaches.
static void kbi_measure_all_roofs(const kbi_backend* b, kbi_machine* m) {
    for (int i = 0; i < KBI_ROOFS; i++) {
        if (kbi_nan(m->roofs.of[i]) && b->timing.roof) b->timing.roof(m, i);
        if (kbi_nan(m->core.of[i]) && !b->stands_in) kbi_core_roof(&m->core, i);
    }
}

/*---------------------------------------------------------------------------------------------------------------
  >>alike     measure: whether later launches do what the first ones did, by their times.
              Public: none      Used by: >>engine
---------------------------------------------------------------------------------------------------------------*/

// What warm-up, clock and caches do not explain. From the second to the fourth launch of a warm-up an honest block is
// past its page faults and misses; what is left on a GPU is the clock, which is known, and on a CPU what it has learnt
// of branches and of addresses: a loop over one variable was seen to become 7 times as fast at once. Over the samples
// of one case 1.08 is the most that was seen (the 95 % quantile over the 5 % one, 262 cases on an H200).
static const double kbi_shrunk_gpu = 2, kbi_shrunk_host = 20, kbi_shrunk_samples = 1.5;
static const double kbi_turn_gpu = 1.5, kbi_turn_host = 4;
static const double kbi_shrunk_least_ns = 1000;

// The last samples, less the bias; and, where ten blocks of samples fall without a stop, the first ones.
static double kbi_alike_late(const kbi_run* run, double bias, double* first) {
    double blocks[KBI_STATS_BLOCKS];
    int64_t n = run->m.n;
    double* scratch = (double*)kbi_grow(NULL, sizeof(double) * (size_t)n);
    double late = kbi_median_of(run->sampling.samples, n, scratch) - bias;
    bool falls = n >= 30;
    if (falls) kbi_block_medians(run->sampling.samples, n, scratch, blocks);
    for (int i = 1; i < KBI_STATS_BLOCKS && falls; i++) falls = blocks[i] < blocks[i - 1];
    KBENCH_FREE(scratch);
    *first = falls ? blocks[0] - bias : 0;
    return KBI_MAX(falls ? blocks[KBI_STATS_BLOCKS - 1] - bias : late, 0);
}

// The second to fourth launch of the warm-up, as the shortest of them would be at the clock of the samples, less the
// bias; 0 where they say nothing.
static double kbi_alike_early(const kbi_run* run, double bias) {
    const kbi_alike* a = &run->alike;
    double early = INFINITY;
    if (a->n < KBI_EARLY || run->sampling.timer->alone) return 0;
    for (int i = 1; i < KBI_EARLY; i++) early = KBI_MIN(early, a->early[i]);
    bool slower = kbi_finite(a->clock) && kbi_finite(run->m.sm_clock) && a->clock < run->m.sm_clock;
    return (early - bias) * (slower ? a->clock / run->m.sm_clock : 1);
}

// Said when the body has returned: its outputs may show for certain what times only suggest.
static void kbi_look_for_shrinking(kbi_run* run) {
    double bias = kbi_finite(run->m.bias_ns) ? run->m.bias_ns : 0, first = 0;
    char was[40], is[40];
    if (run->m.n <= 0 || kbi_failed(run)) return;
    double late = kbi_alike_late(run, bias, &first), early = kbi_alike_early(run, bias);
    double much = run->sampling.timer->by_clock ? kbi_shrunk_host : kbi_shrunk_gpu;
    kbi_show_time(late * 1e-6, is);
    if (first > kbi_shrunk_samples * late)
        snprintf(run->alike.differ, sizeof run->alike.differ,
                 "a launch took %s in the first samples, ever less, and %s in the last ones",
                 kbi_show_time(first * 1e-6, was), is);
    else if (early > much * late + kbi_shrunk_least_ns)
        snprintf(run->alike.differ, sizeof run->alike.differ,
                 "the first launches of the warm-up took %s, later ones %s", kbi_show_time(early * 1e-6, was), is);
}

// Of launches in a row: 2 where every second one takes so much longer than the others, or they than it; 3 and 4 alike;
// 0 where there is no such turn.
static int kbi_alike_turns(const double* ns, int n, double bias, double much, double least) {
    for (int p = 2; p <= 4; p++)
        for (int which = 0; which < p; which++) {
            double low[2] = { INFINITY, INFINITY }, high[2] = { 0, 0 };
            for (int i = 0; i < n; i++) {
                int in = i % p == which;
                low[in] = KBI_MIN(low[in], ns[i] - bias);
                high[in] = KBI_MAX(high[in], ns[i] - bias);
            }
            for (int in = 0; in < 2; in++)
                if (low[in] > much * high[!in] && low[in] - high[!in] > least) return p;
        }
    return 0;
}

static void kbi_look_for_turns(kbi_run* run, const double* ns) {
    bool host = run->sampling.timer->by_clock;
    double bias = host ? kbi_lab.wall_bias : run->m.bias_ns;
    double least = host ? 200 : 500; // ns: steps of the clock, what pairs of events differ by
    int turn =
        kbi_alike_turns(ns, KBI_TURNS, kbi_finite(bias) ? bias : 0, host ? kbi_turn_host : kbi_turn_gpu, least);
    if (turn)
        snprintf(run->alike.differ, sizeof run->alike.differ,
                 "one launch in %d takes another time than the others, again and again", turn);
}

/*---------------------------------------------------------------------------------------------------------------
  >>inside    measure: runs of the block that instruments look into, apart from those that are timed.
              Public: none      Used by: >>engine, >>calls
---------------------------------------------------------------------------------------------------------------*/

static void kbi_insight_clear(void) {
    kbi_insight* in = &kbi_lab.insight;
    kbi_text_free(&in->events);
    kbi_text_free(&in->gauges);
    kbi_text_free(&in->counters);
    kbi_text_free(&in->texts);
    KBENCH_FREE(in->names.slots);
    memset(in, 0, sizeof *in);
}

// Whether an instrument wants a run of the block; opens those that are asked for, in turn.
static bool kbi_inside_wants(kbi_run* run) {
    kbi_insight* in = &kbi_lab.insight;
    bool host = run->work.host || !run->backend->gpu;
    for (const kbi_instrument* i; (i = run->backend->instruments[in->at]) != NULL; in->at++) {
        if (!(i->wish & run->recipe->inside) || i->host != host) continue;
        if (!in->open) in->open = in->again = i->open(run);
        if (in->open && in->again) return true;
        if (in->open) i->close(run);
        in->open = false;
    }
    return false;
}

static int64_t kbi_inside_begin(kbi_run* run) { return run->backend->instruments[kbi_lab.insight.at]->begin(run); }

static void kbi_inside_end(kbi_run* run) {
    kbi_lab.insight.again = run->backend->instruments[kbi_lab.insight.at]->end(run);
    kbi_stop_on_error(run, "while it was looked into");
}

// What was found, to be freed; what is left open is closed.
static kbi_inside* kbi_inside_take(kbi_run* run) {
    kbi_insight* in = &kbi_lab.insight;
    kbi_inside head;
    if (in->open) run->backend->instruments[in->at]->close(run);
    if (kbi_failed(run)) kbi_insight_say("%.300s", run->m.message);
    memset(&head, 0, sizeof head);
    head.runs = KBI_MAX(in->runs, 0);
    head.device = run->machine->device;
    head.events = (int64_t)(in->events.n / sizeof(kbi_event));
    head.gauges = (int64_t)(in->gauges.n / sizeof(kbi_gauge));
    head.counters = (int64_t)(in->counters.n / sizeof(kbi_counter));
    head.texts = (int64_t)in->texts.n;
    head.dropped = in->dropped;
    memcpy(head.message, in->message, sizeof head.message);
    kbi_text all = { NULL, 0, 0 };
    const kbi_text* parts[] = { &in->events, &in->gauges, &in->counters, &in->texts };
    kbi_put(&all, (const char*)&head, sizeof head);
    for (int i = 0; i < KBI_COUNT(parts); i++)
        if (parts[i]->n) kbi_put(&all, parts[i]->s, parts[i]->n);
    kbi_insight_clear();
    return (kbi_inside*)(void*)all.s;
}

/*---------------------------------------------------------------------------------------------------------------
  >>engine    measure: the state machine that hands out checked, audited, warm-up and sample units.
              Public: none      Used by: programs, >>calls, >>rounds, >>embed, >>proving
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

// Under compute-sanitizer or a profiler every kernel is to run, under valgrind host work as well, and none of the times
// will be told.
static bool kbi_only_checked(const kbi_run* run) {
    return run->machine->simulated || (run->machine->tool[0] && run->backend->gpu && !run->work.host);
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
    run->alike.clock = run->work.host ? (double)NAN : kbi_clock_mhz(run);
    run->call.phase_began = run->call.window.begin = kbi_now();
}

// For profilers: which case this is, and what it is at from here on. Copies of it are at nothing of their own.
static void kbi_phase_show(kbi_run* run) {
    static const char* const names[] = { "check", "audit",   "warm-up", "samples",
                                         "turns", "compare", "prove",   "look inside" };
    if (run->place.stand_in) return;
    if (!run->range) run->range = kbi_nvtx_begin(run->of->name, run->of->entry->operation);
    kbi_nvtx_end(&run->call.shown);
    if (run->call.phase < KBI_PHASE_DONE) run->call.shown = kbi_nvtx_begin(names[run->call.phase], "phase");
}

static void kbi_phase_enter(kbi_run* run, kbi_phase phase) {
    run->call.phase = phase;
    kbi_phase_show(run);
    run->call.phase_began = run->call.window.begin = kbi_now();
    if (phase == KBI_PHASE_WARM) run->sampling.timer = NULL;
    if (phase != KBI_PHASE_SAMPLE) return;
    run->sampling.load = kbi_load_now("/proc");
    kbi_note_clock(run, kbi_clock_mhz(run));
}

static bool kbi_wants_audit(const kbi_run* run) {
    bool waits = (run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC)) != 0;
    return run->backend->capture.begin && !run->work.host && !waits && run->recipe->audit;
}

// The loop is about to be entered, and KB_SAMPLE's first reset has not run.
static void kbi_enter_loop(kbi_run* run) {
    if (run->call.entered) return;
    run->call.entered = true;
    bool held = run->call.last != KBI_PHASE_CHECK || run->call.fresh;
    if (held && run->recipe->verify && !run->place.stand_in) kbi_hold(run);
    run->call.proved = run->call.fresh;
}

static void kbi_sample_alone(kbi_run* run, kbi_unit unit) {
    run->call.unit = unit;
    run->call.warm_units += unit == KBI_WARM;
    run->sampling.timer->alone(run);
    run->call.unit = KBI_NO_UNIT;
}

// Rests until the conductor lets it go on. false: the body has to return, and to be called again.
static bool kbi_rest(kbi_run* run) {
    run->place.resting = !run->place.fiber;
    if (run->place.fiber) kbi_fiber_rest(run->place.fiber);
    return !run->place.resting;
}

// At the end of its slot a run rests until it is given another, or told that it is enough.
static bool kbi_slot_is_full(const kbi_run* run) {
    bool full = !run->place.settling && run->m.n >= run->place.slot_end;
    return run->place.order == KBI_SLOT && full && !run->sampling.open;
}

static bool kbi_wants_sample(kbi_run* run) {
    if (run->place.order == KBI_BY_ITSELF) return !kbi_sampled_enough(run, kbi_seconds_since(run->call.phase_began));
    return run->place.order != KBI_FINISH;
}

// Warm-up, but first what the conductor wants. KBI_NO_UNIT: look again.
static kbi_unit kbi_choose_warm(kbi_run* run) {
    if (run->place.order == KBI_HOLD && !kbi_rest(run)) return KBI_NO_UNIT;
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
    if (kbi_slot_is_full(run) && !kbi_rest(run)) return KBI_NO_UNIT;
    if (!run->sampling.open && !kbi_wants_sample(run)) {
        if (run->place.order == KBI_BY_ITSELF) { // now: the clock falls, and throttling ends, when the device idles
            kbi_note_clock(run, kbi_clock_mhz(run));
            kbi_sense(run);
            kbi_note_load(&run->m, &run->sampling.load, "/proc", kbi_cpu_root);
        }
        if (run->recipe->energy && run->backend->sensors.energy) run->m.energy = run->backend->sensors.energy(run);
        kbi_look_for_shrinking(run);
        kbi_phase_enter(run, KBI_PHASE_TURNS);
    } else if (run->sampling.timer->alone)
        kbi_sample_alone(run, KBI_SAMPLE);
    else
        return KBI_SAMPLE;
    return KBI_NO_UNIT;
}

// Launches in a row, each timed alone. On a GPU the samples of what takes long are such, if nobody else had a turn in
// between; on a CPU they are not, since whoever shares it has his turns, too.
static kbi_unit kbi_choose_turn(kbi_run* run) {
    const kbi_timer* timer = run->sampling.timer;
    bool begins = !run->place.settled, possible = !timer->steady && !timer->alone && !kbi_only_checked(run);
    bool samples = run->m.launches == 1 && run->place.order == KBI_BY_ITSELF && run->m.n >= KBI_TURNS;
    bool quick = (double)(KBI_TURNS * run->work.estimate_ns) < 0.2e9 * run->recipe->max_time;
    samples = samples && !timer->by_clock;
    if (begins && possible && !run->place.stand_in && !samples && quick) {
        run->place.settling = KBI_TURNS;
        run->place.settled = run->alike.turns;
    }
    if (run->place.settling > 0 || run->sampling.open) return KBI_SAMPLE;
    if (run->place.settled)
        kbi_look_for_turns(run, run->alike.turns);
    else if (possible && samples)
        kbi_look_for_turns(run, run->sampling.samples + run->m.n - KBI_TURNS);
    run->place.settled = NULL;
    kbi_phase_enter(run, KBI_PHASE_COMPARE);
    return KBI_NO_UNIT;
}

// Whether what later launches submit can be held against the audit: several in a row, so that none hides that works
// every second time.
static bool kbi_compares(const kbi_run* run) {
    return run->backend->capture.compare && run->work.shape && !kbi_only_checked(run) && !run->place.stand_in;
}

static kbi_phase kbi_after_audit(const kbi_run* run) {
    return run->call.last == KBI_PHASE_INSIDE ? KBI_PHASE_INSIDE : KBI_PHASE_WARM;
}

// The next unit of this call of the body, KBI_NO_UNIT when it is at its end.
static kbi_unit kbi_choose_unit(kbi_run* run) {
    kbi_unit unit = KBI_NO_UNIT;
    while (unit == KBI_NO_UNIT && !kbi_failed(run) && !run->place.resting && run->call.phase <= run->call.last)
        switch (run->call.phase) {
        case KBI_PHASE_CHECK: unit = KBI_CHECKED; break;
        case KBI_PHASE_AUDIT:
            if (kbi_wants_audit(run))
                unit = KBI_AUDITED;
            else
                kbi_phase_enter(run, kbi_after_audit(run));
            break;
        case KBI_PHASE_WARM: unit = kbi_choose_warm(run); break;
        case KBI_PHASE_SAMPLE: unit = kbi_choose_sample(run); break;
        case KBI_PHASE_TURNS: unit = kbi_choose_turn(run); break;
        case KBI_PHASE_COMPARE:
            if (kbi_compares(run) && run->alike.compared++ < KBI_COMPARISONS)
                unit = KBI_COMPARED;
            else
                kbi_phase_enter(run, KBI_PHASE_PROVE);
            break;
        case KBI_PHASE_PROVE:
            kbi_phase_enter(run, KBI_PHASE_DONE);
            if (kbi_put_back(run)) unit = KBI_PROVED;
            break;
        case KBI_PHASE_INSIDE:
            if (kbi_inside_wants(run))
                unit = KBI_INSIDE;
            else
                kbi_phase_enter(run, KBI_PHASE_DONE);
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
    case KBI_COMPARED:
    case KBI_AUDITED: run->backend->capture.begin(run); return 1;
    case KBI_CAPTURED: return 1;
    case KBI_PROVED: run->call.proved = true; return 1;
    case KBI_INSIDE: return kbi_inside_begin(run);
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
        kbi_phase_enter(run, kbi_after_audit(run));
    } else if (unit == KBI_COMPARED) {
        run->backend->capture.compare(run);
    } else if (unit == KBI_PROVED) {
        kbi_stop_on_error(run, "in the last run of the timed block");
    } else if (unit == KBI_INSIDE) {
        kbi_inside_end(run);
    } else if (unit != KBI_CAPTURED) {
        run->sampling.timer->end(run);
    }
    run->call.unit = KBI_NO_UNIT;
    int64_t now = kbi_now();
    if (run->progress && !run->sampling.open && now - run->shown > 100000000) {
        run->shown = now;
        run->progress(run->progress_to);
        bool sampled = unit == KBI_SAMPLE && run->call.phase == KBI_PHASE_SAMPLE;
        if (sampled) kbi_note_clock(run, kbi_clock_mhz(run));
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
            kbi_stop(run, KB_FLAG_BAD_CASE, "two timed blocks in one %s", run->call.over ? "benchmark" : "KB_SAMPLE");
        run->call.ready = KBI_NO_UNIT;
        if (!kbi_can_run(run, host)) return 0;
    } else {
        if (!kbi_can_run(run, host)) return 0;
        if (run->call.looped && !run->work.called)
            kbi_stop(run, KB_FLAG_BAD_CASE, "two timed blocks in one benchmark");
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
    if (run->call.over || (run->call.looped && !run->call.sampled))
        return kbi_stop(run, KB_FLAG_BAD_CASE, "two timed blocks in one benchmark"), false;
    run->call.sampled = true;
    kbi_enter_loop(run);
    run->call.ready = kbi_choose_unit(run);
    run->call.over = run->call.ready == KBI_NO_UNIT;
    return !run->call.over;
}

// The timed block of a C++ program is being left: what its destructors wait for must not wait for the engine.
void kbi_leave(kb_state* kb) {
    if (kb->run->backend->timing.abandon) kb->run->backend->timing.abandon();
}

/*---------------------------------------------------------------------------------------------------------------
  >>calls     measure: the calls of a body that make a case: one that is checked, one that is measured.
              Public: none      Used by: programs, >>rounds, >>worker, >>embed
---------------------------------------------------------------------------------------------------------------*/

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

// What a call left behind is no other's: each begins in the folder where the program was started, and without a timer.
static void kbi_call_clear(void) {
    struct itimerval none;
    memset(&none, 0, sizeof none);
    setitimer(ITIMER_REAL, &none, NULL);
    if (!kbi_lab.folder) {
        int file = kbi_open_file(".", O_RDONLY), high = file < 0 ? -1 : kbi_high_file(file);
        if (file >= 0) close(file);
        kbi_lab.folder = KBI_MAX(high, 0);
    } else if (fchdir(kbi_lab.folder) != 0) {
        kbi_lab.folder = 0; // a function closed it
    }
}

// The end of a process that a function forked and that did not end in it.
static void kbi_stray(void) {
    if (kbi_lab.strays) *kbi_lab.strays = kbi_lab.running;
    _exit(1);
}

// Calls a case's function. A process that it forked has to end in it: one that returns would go on as if it measured.
static void kbi_call_function(kbi_run* run) {
    volatile pid_t here = getpid();
    uintptr_t of = (uintptr_t)run->of;
    if (run->of->desc) { // the process is somebody else's, with its own timers, folder and children
        kbi_call_guarded(run, run->of->entry->body);
        return;
    }
    kbi_call_clear();
    kbi_lab.running = of;
    if (!kbi_lab.strays) {
        void* p = mmap(NULL, sizeof *kbi_lab.strays, PROT_READ | PROT_WRITE, MAP_SHARED | KBI_MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) kbi_lab.strays = (volatile uintptr_t*)p;
    }
    kbi_call_guarded(run, run->of->entry->body);
    if (getpid() != here) kbi_stray();
    if (!kbi_lab.strays || *kbi_lab.strays != of) return;
    *kbi_lab.strays = 0;
    kbi_stop(run, KB_FLAG_BAD_CASE, "a process that the function forked returned from it; it has to end with _exit");
}

static void kbi_body_begins(kbi_run* run, kbi_phase first, kbi_phase last) {
    run->call.phase = first;
    run->call.last = last;
    run->call.unit = run->call.ready = KBI_NO_UNIT;
    run->call.looped = run->call.sampled = run->call.over = run->call.entered = run->call.proved = false;
    run->sampling.batch = 1;
    run->call.fills = run->call.zeros = 0;
    kbi_phase_show(run);
    if (run->backend->timing.prepare) run->backend->timing.prepare(run);
    if (run->call.fresh) return; // in the memory of the call before
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

// Whether another call is to follow with other inputs in the memory of this one.
static bool kbi_wants_fresh(const kbi_run* run) {
    bool checked = run->m.status == KB_OK && run->m.verified == 1;
    return run->recipe->fresh && !run->call.fresh && checked && !run->place.stand_in;
}

// What is left to say when the body has returned: early exits, guards, leaks; then its memory goes back.
static void kbi_body_ended(kbi_run* run) {
    bool in_flight = run->call.unit != KBI_NO_UNIT || run->sampling.open;
    if (in_flight && !kbi_failed(run)) kbi_stop(run, KB_FLAG_LEFT_EARLY, "the timed block was left in its middle");
    if (in_flight && run->backend->timing.abandon) run->backend->timing.abandon();
    kbi_nvtx_end(&run->call.shown);
    run->call.unit = KBI_NO_UNIT;
    run->sampling.open = false;
    if (run->call.ready != KBI_NO_UNIT) kbi_stop(run, KB_FLAG_NO_LOOP, "KB_SAMPLE without KB_TIME inside");
    if (!run->call.looped && run->m.status == KB_OK) kbi_stop(run, KB_FLAG_NO_LOOP, "no timed block was reached");
    kbi_stop_on_error(run, "after the timed block");
    if (run->alike.differ[0] && !kbi_failed(run)) kbi_stop(run, KB_FLAG_WORK_CHANGED, "%s", run->alike.differ);
    bool lost = kbi_lost(run), keeps = kbi_wants_fresh(run);
    if (!run->place.in_turn && !run->call.fresh)
        kbi_memory_facts(run); // otherwise others allocate at the same time, and the first call said it
    if (!lost) kbi_check_guards(run);
    bool first = run->call.last == KBI_PHASE_CHECK && !run->call.fresh;
    if (!lost && first && kbi_all_constant(run)) run->m.constant = 1;
    if (!lost && run->work.graph) run->backend->capture.forget(run);
    run->memory.keeps = keeps;
    if (keeps)
        kbi_memory_keep(run);
    else
        kbi_memory_free(run->backend, &run->memory, lost);
    int64_t left = kbi_free_bytes(run->backend);
    if (left != KB_NONE && !lost && !keeps && !run->place.in_turn)
        run->m.leaked =
            KBI_MAX(run->memory.free_before - left, (int64_t)0) / (run->call.fresh ? 2 : 1); // of two calls
}

static void kbi_run_init(kbi_run* run, const kbi_backend* b, kbi_machine* machine, const kbi_recipe* recipe) {
    memset(run, 0, sizeof *run);
    kbi_measured_clear(&run->m);
    run->backend = b;
    run->machine = machine;
    run->recipe = recipe;
    run->work.expect = recipe->expect;
    run->memory.placement = kbi_placement(recipe);
    run->sampling.gated = true;
    run->began = kbi_now();
    kbi_lab.kept = kbi_lab.lost = 0;
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
    run->m.dtype = (int32_t)run->kb.dtype;
    if (!kbi_finite(run->m.power)) kbi_sense(run); // nothing was sampled
    kbi_nvtx_end(&run->range);
    run->m.wall_ns = (double)(kbi_now() - run->began);
    kbi_want_roofs(run);
}

static void kbi_run_case(kbi_run* run, const kbi_case* c) {
    run->of = c;
    run->kb.operation = c->entry->operation;
    run->kb.implementation = c->entry->implementation;
    run->kb.direction = c->direction;
    run->kb.dtype = c->dtype;
    run->kb.user = c->entry->user;
    run->m.debug_build = kbi_debug_build(c->entry);
    if (!c->desc) return;
    run->work.called = c->entry->body != NULL;
    run->work.expect = c->desc->expect;
    if (c->desc->bytes > 0) run->m.bytes = c->desc->bytes;
    if (c->desc->flops > 0) run->m.flops = c->desc->flops;
    if (c->desc->items > 0) run->m.items = c->desc->items;
}

// --fresh: one more run and check with inputs from another seed, where the call before left its own and its outputs.
// What knows its result by the address of its inputs, or leaves an output alone that is there, is wrong now. Nothing
// else is learnt: amounts may depend on the inputs, and those that were timed were others.
static void kbi_fresh_call(kbi_run* run, uint64_t seed, const char* when) {
    if (!run->memory.keeps) return;
    const kbi_work work = run->work;
    const kbi_measured before = run->m;
    run->memory.keeps = false;
    run->m.verified = -1;
    run->kb.seed = seed;
    run->call.fresh = true;
    kbi_body_begins(run, KBI_PHASE_CHECK, KBI_PHASE_CHECK);
    kbi_call_function(run);
    kbi_body_ended(run);
    run->call.fresh = false;
    run->kb.seed = run->recipe->seed;
    run->work = work;
    bool wrong = (run->m.flags >> KB_FLAG_VERIFY_FAIL & 1) != 0;
    if (kbi_failed(run))
        kbi_remark(&run->m, "with fresh inputs (seed %llu) %s%s", (unsigned long long)seed, when,
                   wrong ? ", from which what is expected has to follow" : "");
    run->m.bytes = before.bytes, run->m.flops = before.flops, run->m.items = before.items;
    run->m.queries = before.queries, run->m.proven = before.proven;
}

// The first call of a body: one run of the block, and its check. Device memory that is missing afterwards is a leak
// if it goes missing a second time: the first call may have loaded code.
static void kbi_check_call(kbi_run* run) {
    for (int i = 0; i < 2; i++) {
        kbi_body_begins(run, KBI_PHASE_CHECK, KBI_PHASE_CHECK);
        kbi_call_function(run);
        kbi_body_ended(run);
        kbi_fresh_call(run, run->recipe->seed + 1, "before the samples");
        if (run->m.status != KB_OK || run->m.leaked <= 0) break;
    }
    if (run->m.verified == 1) run->m.verified = -1; // the last launch has to be right as well
    run->work.checked = true;
}

// The second call: audit, warm-up, samples, and the check of what the last one left. One that rests by returning is
// made in parts: it is over when place.resting is false.
static void kbi_measure_call(kbi_run* run) {
    if (!run->place.resting) kbi_body_begins(run, KBI_PHASE_AUDIT, KBI_PHASE_PROVE);
    run->place.resting = false;
    kbi_call_function(run);
    if (run->place.resting) return;
    kbi_body_ended(run);
    kbi_fresh_call(run, run->recipe->seed + 2, "after the samples");
}

// A call of its own for those who look into the block, and time nothing: to be freed.
static kbi_inside* kbi_inside_call(kbi_run* run) {
    kbi_insight_clear();
    kbi_body_begins(run, KBI_PHASE_CHECK, KBI_PHASE_INSIDE);
    kbi_call_function(run);
    kbi_body_ended(run);
    kbi_nvtx_end(&run->range);
    return kbi_inside_take(run);
}

/*---------------------------------------------------------------------------------------------------------------
  >>body      measure: what a body asks and says: axes, amounts, checks, words.
              Public: kb_int, kb_real, kb_str, kb_has, kb_bytes, kb_flops, kb_bytes_as, kb_flops_as, kb_items,
                      kb_queries, kb_count, kb_check_typed, kb_check_norm_typed, kb_check_ulp_typed, kb_check_that,
                      kb_skip, kb_fail, kb_note, kb_expect
              Used by: programs, >>memory, >>engine, >>proving
---------------------------------------------------------------------------------------------------------------*/

// --- run ---
// --- the case ---

static const kb_param* kbi_param_of(kb_state* kb, const char* axis, const char* type, kb_axis_type a,
                                    kb_axis_type b) {
    const kbi_case* c = kb->run->of;
    kbi_text known = { NULL, 0, 0 };
    const kb_param* found = NULL;
    for (int i = 0; i < c->n_params; i++) {
        if (kbi_is(c->params[i].name, axis)) found = &c->params[i];
        kbi_putf(&known, "%s%s", i ? ", " : "", c->params[i].name);
    }
    if (!found)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "no axis '%s' here; there is %s", axis ? axis : "NULL",
                 known.n ? known.s : "none");
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
        if (kbi_is(c->params[i].name, axis)) return true;
    return kb->direction && kbi_is(axis, "dir");
}

static void kbi_set_amount(kb_state* kb, double* to, double amount, const char* name) {
    if (!(amount >= 0) || !kbi_finite(amount))
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s takes a number from 0 up", name);
    else
        *to = amount;
}

void kb_bytes(kb_state* kb, double bytes) {
    kbi_set_amount(kb, &kb->run->m.bytes, bytes, "kb_bytes");
    kb->run->m.traffic = 0;
}
void kb_flops(kb_state* kb, double flops) {
    kbi_set_amount(kb, &kb->run->m.flops, flops, "kb_flops");
    kb->run->m.arithmetic = 0;
}
void kb_bytes_as(kb_state* kb, double bytes, kb_traffic traffic) {
    kb_bytes(kb, bytes);
    if (traffic < KB_ANY_TRAFFIC || traffic > KB_COPY)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "kb_bytes_as takes KB_READ, KB_WRITE or KB_COPY");
    else
        kb->run->m.traffic = (int32_t)traffic;
}
void kb_flops_as(kb_state* kb, double flops, kb_dtype dtype) {
    kb_flops(kb, flops);
    if (kbi_meant_by(dtype, true).base < 0)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE,
                 "kb_flops_as knows no roof of %s: it takes f64, f32, tf32, f16, bf16, e4m3, e5m2, i8 and u8",
                 kb_dtype_name(dtype));
    else
        kb->run->m.arithmetic = (int32_t)dtype;
}
void kb_items(kb_state* kb, double items) { kbi_set_amount(kb, &kb->run->m.items, items, "kb_items"); }
void kb_queries(kb_state* kb, double items) {
    kbi_set_amount(kb, &kb->run->m.items, items, "kb_queries");
    kb->run->m.queries = 1;
}

void kb_count(kb_state* kb, const char* name, double value, const char* unit) {
    kbi_measured* m = &kb->run->m;
    kbi_counter* c = m->counters;
    size_t n = name ? strlen(name) : 0;
    const char* wrong = NULL;
    while (n && c < m->counters + m->n_counters && strcmp(c->name, name) != 0) c++;
    if (!n || n >= sizeof c->name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        wrong = "a name has 1 to 63 of a-z, 0-9 and _";
    else if (unit && (strlen(unit) >= sizeof c->unit || unit[strcspn(unit, " \t\r\n\"\\")]))
        wrong = "a unit has at most 31 characters and no blanks";
    else if (!kbi_finite(value))
        wrong = "that is no finite number";
    else if (c == m->counters + KBI_COUNTERS)
        wrong = "a case has 16 at most";
    if (wrong) {
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "kb_count of '%.80s': %s", name ? name : "", wrong);
        return;
    }
    m->n_counters += c == m->counters + m->n_counters;
    memcpy(c->name, name, n + 1);
    snprintf(c->unit, sizeof c->unit, "%s", unit ? unit : "");
    c->value = value;
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
    if (!kbi_may(run, "kb_check", got, n, kb_dtype_size(got_type), "elements") ||
        !kbi_may(run, "kb_check", want, n, kb_dtype_size(want_type), "elements"))
        return false;
    if (!(tolerance >= 0) || !kbi_finite(tolerance))
        return kbi_stop(run, KB_FLAG_BAD_CASE, "kb_check takes a tolerance from 0 up, not %g", tolerance), false;
    if (!n) return kb_note(kb, "kb_check of no elements, which proves nothing"), true;
    kbi_mark_read(run, got);
    size_t bytes = (size_t)n * kb_dtype_size(got_type);
    void* host = KBENCH_MALLOC(bytes);
    if (!host) return kbi_stop(run, KB_FLAG_OOM, "no host memory to check %zu bytes", bytes), false;
    run->backend->memory.copy(host, got, bytes);
    kbi_stop_on_error(run, "before or in the copy that kb_check looks at");
    if (kbi_failed(run)) return KBENCH_FREE(host), false;
    kbi_matched c = kbi_match(host, got_type, want, want_type, n, what, tolerance);
    KBENCH_FREE(host);
    bool passed = kbi_check_done(run, c.passed, c.error, tolerance);
    if (!c.passed && kbi_stale(run))
        kbi_stop(run, KB_FLAG_STALE, "the last launch left the output as it was, though an earlier one wrote it");
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
    char text[sizeof run->m.message];
    va_list list;
    if (!kbi_checks_now(run)) return !run->recipe->verify && !kbi_failed(run);
    va_start(list, format);
    kbi_vfit(text, 0, sizeof text, format, list);
    va_end(list);
    kbi_check_done(run, passed, error, tolerance);
    if (!passed && kbi_stale(run))
        kbi_stop(run, KB_FLAG_STALE, "the last launch left the output as it was, though an earlier one wrote it; %s",
                 text);
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
    char text[sizeof kb->run->m.message];
    va_list list;
    va_start(list, format);
    kbi_vfit(text, 0, sizeof text, format, list);
    va_end(list);
    kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s", text);
}

void kb_note(kb_state* kb, const char* format, ...) {
    char text[sizeof kb->run->m.message];
    va_list list;
    va_start(list, format);
    kbi_vfit(text, 0, sizeof text, format, list);
    va_end(list);
    if (kbi_failed(kb->run)) return;
    size_t n = strlen(text);
    for (const char* p = kb->run->m.message; n && (p = strstr(p, text)); p++) { // the function runs more than once
        bool begins = p == kb->run->m.message || (p[-1] == ' ' && p[-2] == ';');
        if (begins && (!p[n] || p[n] == ';')) return;
    }
    kbi_remark(&kb->run->m, "%s", text);
}

void kb_expect(kb_state* kb, unsigned expectations) {
    const unsigned known = KB_EXPECT_TRANSFER | KB_EXPECT_ALLOC | KB_EXPECT_SYNC;
    kb->run->work.expect |= expectations & known;
    if (expectations & ~known)
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "kb_expect knows KB_EXPECT_TRANSFER, _ALLOC and _SYNC, not %#x",
                 expectations & ~known);
}

/*---------------------------------------------------------------------------------------------------------------
  >>rounds    measure: the cases of a comparison group, one alone or several in turn.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_sink { // where what happens to cases goes: a pipe, or straight to the supervisor's tables
    void (*enter)(void* to, int index);
    void (*beat)(void* to);
    void (*result)(void* to, int index, const kbi_measured* m, const double* samples);
    void (*inside)(void* to, int index, const kbi_inside* in);
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
    a->over = !a->run.place.resting;
}

// Lets an arm go on until it rests again or is over.
static void kbi_go_on(kbi_contest* c, kbi_arm* a) {
    c->sink->enter(c->sink->to, a->index);
    kbi_lab.running = (uintptr_t)a->run.of;
    kbi_stage_enter(&a->run.memory);
    if (a->run.place.fiber)
        kbi_fiber_resume(&a->fiber);
    else
        kbi_arm_main(a);
}

// --rotate: how often data of so many bytes has to be there to exceed L2 twice; 0: there is none.
static int64_t kbi_copies_of(const kbi_run* run, int64_t bytes) {
    return bytes > 0 ? 2 * run->machine->l2 / bytes + 2 : 0;
}

// After the first call: the copies that a case is going to need places for.
static int kbi_copies_planned(const kbi_run* run) {
    bool rotate = run->recipe->mode == KBI_ROTATE && run->backend->capture.repeats && kbi_wants_audit(run);
    int64_t n = rotate ? kbi_copies_of(run, run->memory.device_peak) : 1;
    return n > 1 && n <= KBI_REPLICAS ? (int)n : 1;
}

// The next copy goes to its place on the stage; it has none where the second call allocates otherwise than the first.
static void kbi_copy_place(kbi_arm* a, kbi_memory* copy, int which) {
    kbi_memory* first = &a->run.memory;
    if (!first->stage) return;
    first->strayed |= which >= first->copies;
    if (which >= first->copies) return;
    copy->first = first;
    copy->stage = first->stage;
    copy->most = first->most;
    copy->at = (size_t)which * first->stage->stride;
}

// --rotate: the same case set up again and again, each with data of its own, until the data exceeds L2 twice. Their
// captured blocks then run in turn, so that no launch finds its data in cache.
static void kbi_arm_replicate(kbi_contest* c, kbi_arm* a) {
    int64_t bytes = a->run.memory.device, n = kbi_copies_of(&a->run, bytes);
    // on a stage they are in what was allocated
    int64_t room = a->run.memory.stage ? INT64_MAX : kbi_free_bytes(a->run.backend) / 10 * 9;
    if (!a->run.work.graph) return; // the timer says why
    if (n < 2 || n > KBI_REPLICAS || n * bytes > room) {
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
        kbi_copy_place(a, &copy->run.memory, i + 1);
        copy->index = a->index;
        copy->run.place.order = KBI_HOLD;
        copy->run.place.stand_in = true;
        copy->run.place.in_turn = true;
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
    int64_t began = kbi_now() - kbi_lab.stood;
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
        if (!live || kbi_contest_enough(c, (double)(kbi_now() - kbi_lab.stood - began) * 1e-9)) return;
    }
}

static void kbi_contest_rounds(kbi_contest* c) {
    if (kbi_contest_settle(c)) kbi_contest_rounds_run(c);
    for (int i = 0; i < c->n; i++) // now, before bodies look at their results and the device idles
        if (!c->arms[i]->over) kbi_note_clock(&c->arms[i]->run, kbi_clock_mhz(&c->arms[i]->run));
    for (int i = 0; i < c->n; i++) {
        kbi_run* run = &c->arms[i]->run;
        if (c->arms[i]->over) continue;
        kbi_sense(run);
        kbi_note_load(&run->m, &run->sampling.load, "/proc", kbi_cpu_root);
    }
}

// Appends an arm's rounds to its samples, to travel with them.
static void kbi_arm_pack(const kbi_contest* c, kbi_arm* a) {
    kbi_run* run = &a->run;
    size_t n = (size_t)run->m.n, rounds = (size_t)c->rounds;
    if (c->n < 2 || kbi_failed(run)) return;
    run->sampling.samples = (double*)kbi_grow(run->sampling.samples, sizeof(double) * (n + 2 * rounds + 1));
    run->m.rounds = c->rounds;
    run->m.again = a == c->arms[0] && c->equal ? c->rounds : 0;
    // who called no KB_ALLOC has none of its data there, and what it brought nobody knows
    run->m.stage = c->stage != NULL && !run->memory.strayed && run->memory.most > 0;
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
    a->run.place.in_turn = c->n > 1 || many;
    a->run.place.fiber = a->run.place.in_turn && !a->run.work.called ? &a->fiber : NULL;
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
    size_t largest = 0;
    for (int i = 0; i < n; i++) largest = KBI_MAX(largest, arms[i]->run.memory.most);
    for (int i = 0; i < n + equal; i++) {
        const kbi_run* run = &arms[i % n]->run;
        int64_t span = (int64_t)kbi_stage_span(&run->memory, kbi_stage_at(largest, largest));
        int64_t copies = KBI_MAX(run->memory.copies, 1), all = copies * run->m.memory;
        r.device += (copies > 1 ? KBI_MAX(all, span) : all) + run->memory.read_bytes;
        r.host += copies * run->m.host_memory;
        r.largest = KBI_MAX(r.largest, span);
    }
    return r;
}

// Whether rivals can be given one stage: not where a tool wants every block to be an allocation of its own, nor where
// swapping takes longer than measuring.
static bool kbi_stage_wanted(const kbi_run* run, int64_t largest) {
    int64_t most = run->backend->gpu ? (int64_t)4 << 30 : (int64_t)64 << 20;
    return KBI_STAGES && !run->machine->tool[0] && largest > 0 && largest <= most;
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
    a->run.memory.copies = of->memory.copies;
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
    for (int i = 0; i < n; i++) arms[i]->run.memory.copies = kbi_copies_planned(&arms[i]->run);
    kbi_room room = kbi_room_of(arms, n, equal);
    int64_t device = room.device + room.largest;
    if (free_now == KB_NONE) room.host += device; // KB_ALLOC is the host's, too
    bool fits = room.host < physical / 2 && (free_now == KB_NONE || device < free_now / 10 * 9);
    bool together = fits && (KBI_FIBERS || (n && arms[0]->run.work.called)), good = true;
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

// Looks into the marked cases, which have been measured and found right. false: as above.
static bool kbi_inside_cases(const kbi_case* cases, const kbi_recipe* recipe, const kbi_backend* b,
                             kbi_machine* machine, int first, int n, const char* wanted, const kbi_sink* sink) {
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        kbi_run* run = wanted[i] ? (kbi_run*)kbi_grow(NULL, sizeof *run) : NULL;
        if (!run) continue;
        kbi_run_init(run, b, machine, recipe);
        kbi_run_case(run, &cases[first + i]);
        run->progress = sink->beat;
        run->progress_to = sink->to;
        sink->enter(sink->to, first + i);
        kbi_inside* in = kbi_inside_call(run);
        good = !kbi_lost(run);
        sink->inside(sink->to, first + i, in);
        KBENCH_FREE(in);
        KBENCH_FREE(run->sampling.samples);
        KBENCH_FREE(run);
    }
    return good;
}

/*---------------------------------------------------------------------------------------------------------------
  >>verdict   judge: from samples and facts to statistics, flags, speedup and rating.
              Public: none      Used by: >>counted, >>rivals, >>laps, >>embed
---------------------------------------------------------------------------------------------------------------*/

static void kbi_flag_set(kb_result* r, kb_flag flag, bool raised) {
    if (raised) r->flags |= (uint64_t)1 << flag;
}

// Adds to what measuring said.
KBI_PRINTF(2, 3) static void kbi_judge_say(kb_result* r, const char* format, ...) {
    char text[400];
    va_list list;
    va_start(list, format);
    kbi_vfit(text, 0, sizeof text, format, list);
    va_end(list);
    kbi_text all = { NULL, 0, 0 };
    kbi_putf(&all, "%s%s%s", r->message ? r->message : "", r->message ? "; " : "", text);
    r->message = kbi_arena_text(r->owned, all.s);
    kbi_text_free(&all);
}

static void kbi_judge_process_ms(kb_result* r, const double* ms, int n) {
    double* of = (double*)kbi_arena_alloc(r->owned, sizeof(double) * (size_t)n);
    memcpy(of, ms, sizeof(double) * (size_t)n);
    r->process_ms.of = of;
    r->processes = r->process_ms.n = n;
}

// The step of the timer around the median: as known, or the distance to the next different value. Above a tenth of the
// median that is taken for a real distance.
static double kbi_judge_step(const kb_stats* s, const kbi_measured* m, const double* ms) {
    double nearest = INFINITY;
    if (kbi_finite(m->step_ns) && m->step_ns > 0) return m->step_ns * 1e-6;
    for (int64_t i = 0; i < s->n; i++)
        if (ms[i] < s->median || ms[i] > s->median) nearest = KBI_MIN(nearest, fabs(ms[i] - s->median));
    return nearest <= 0.1 * s->median ? nearest : 0;
}

// How far the median moves, as a share of itself, when stragglers (beyond Tukey's outer fences) are left out.
static double kbi_judge_stragglers(const kb_stats* s, const double* ms, double* kept) {
    double reach = 3 * (s->p75 - s->p25);
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (ms[i] >= s->p25 - reach && ms[i] <= s->p75 + reach) kept[n++] = ms[i];
    return fabs(kbi_median_of(kept, n, kept) / s->median - 1);
}

// Whether the later half of the samples, by its own interval, has another median than all of them. Theirs has grown by
// what the halves differ.
static bool kbi_judge_later(const kb_stats* s, const double* ms, double* scratch) {
    double lo, hi, median = kbi_median_of(ms + s->n / 2, s->n - s->n / 2, scratch);
    kbi_median_interval(ms + s->n / 2, s->n - s->n / 2, median, scratch, &lo, &hi);
    double notable = KBI_STATS_NOTABLE * s->median;
    return (s->median < lo && s->median < median - notable) || (s->median > hi && s->median > median + notable);
}

// A flag stands where the answer, the median, could be another one than the printed interval says, or where that says
// nothing; not where samples merely look odd. Shares of the median; without an interval, below 6 samples, FEW is all.
static void kbi_judge_flags(kb_result* r, const kbi_measured* m, const kb_stats* s, const double* ms) {
    double* scratch = kbi_stats_alloc(s->n);
    double said = r->precision, swing = (m->clock_high - m->clock_low) / m->clock_high;
    kbi_flag_set(r, KB_FLAG_FEW, s->n < KBI_STATS_ENOUGH);
    kbi_flag_set(r, KB_FLAG_NOISY, s->precision > 0.05);
    if (!scratch) return;
    if (s->n >= KBI_STATS_MIN) {
        double step = kbi_judge_step(s, m, ms) / s->median, stragglers = kbi_judge_stragglers(s, ms, scratch);
        kbi_flag_set(r, KB_FLAG_QUANTISED, step > KBI_STATS_NOTABLE && step > said);
        kbi_flag_set(r, KB_FLAG_OUTLIERS, stragglers > KBI_STATS_NOTABLE && stragglers > said);
    }
    kbi_flag_set(r, KB_FLAG_UNSETTLED, !m->settled && kbi_judge_later(s, ms, scratch));
    KBENCH_FREE(scratch);
    // a tenth is worth its word even where the interval has grown to hold it
    kbi_flag_set(r, KB_FLAG_DRIFT, s->drift_significant && (fabs(s->drift) > 2 * said || fabs(s->drift) > 0.1));
    // a guess of less than a hundredth may be twice as large; and where samples scatter over a quarter of the time
    // nobody takes that for known
    bool guess = s->effective < KBI_STATS_ENOUGH && said > KBI_STATS_NOTABLE && s->p95 - s->p5 < 0.25 * s->median;
    kbi_flag_set(r, KB_FLAG_AUTOCORR, guess && !(r->flags >> KB_FLAG_DRIFT & 1));
    // how far to another group, of a quarter or more: then the quartile there lies near its own end
    double up = s->p75 - s->median, down = s->median - s->p25, far = 0;
    if (up > 3 * (s->p95 - s->p75)) far = up / s->median;
    if (down > 3 * (s->p25 - s->p5)) far = KBI_MAX(far, down / s->median);
    kbi_flag_set(r, KB_FLAG_BIMODAL, s->bimodal && far > KBI_STATS_NOTABLE && far > 2 * said);
    // memory-bound work does not follow the clock; what does, does so slowly
    bool followed = s->p95 - s->p5 > 0.5 * swing * s->median && s->effective < 0.5 * (double)s->n;
    kbi_flag_set(r, KB_FLAG_CLOCK_VARIES, swing > 0.02 && followed);
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
    kbi_judge_process_ms(r, &s.median, 1);
    r->time_ms_raw = s.median + bias * 1e-6;
    r->bias_ms = bias * 1e-6;
    r->floor_ms = m->floor_ns * 1e-6;
    bool known = m->bias_error_ns > 0; // how far the bias may be off; else a time near what reads nothing is doubted
    bool floored = known ? 1.96 * m->bias_error_ns * 1e-6 > 0.02 * s.median : r->time_ms_raw < 5 * r->floor_ms;
    kbi_flag_set(r, KB_FLAG_FLOOR, floored);
    kbi_interval_add(s.median, m->bias_error_ns * 1e-6, &r->time_ms_ci_low, &r->time_ms_ci_high);
    r->precision = kbi_half_width(r->time_ms_ci_low, r->time_ms_ci_high, s.median);
    kbi_judge_flags(r, m, &s, ms);
}

static void kbi_judge_above(kb_result* r, const char* unit, const char* by, double rate, double most,
                            const char* roof) {
    char is[40], reaches[40];
    kbi_text why = { NULL, 0, 0 };
    kbi_putf(&why, "%s %s by %s, where the machine reaches %s (%s)", kbi_digits(rate * 1e-9, 4, is), unit, by,
             kbi_digits(most * 1e-9, 4, reaches), roof);
    kbi_judge_say(r, "%s", why.s);
    kbi_text_free(&why);
    kbi_flag_set(r, KB_FLAG_ABOVE_ROOF, true);
    r->status = KB_FAILED;
}

// More bytes a second than this machine was seen to move: an error where they cannot come from cache. What was written
// last may still be in L2 when the launch ends, so as much did not need to move.
static void kbi_judge_traffic(kb_result* r, const kbi_measured* m, const kbi_machine* machine, double seconds) {
    int which = kbi_traffic_roof(m->traffic);
    double held = m->traffic == KB_READ ? 0 : (double)machine->l2;
    if (m->core || !kbi_is(m->mode, "cold") || !kbi_finite(m->bytes) || m->bytes < 4.0 * (double)machine->l2) return;
    for (int i = KBI_ROOF_COPY; !m->traffic && i <= KBI_ROOF_WRITE; i++)
        if (kbi_roof_known(&m->roofs, i) > kbi_roof_known(&m->roofs, which)) which = i;
    double most = kbi_roof_known(&m->roofs, which);
    if (most > 0 && (m->bytes - held) / seconds > kbi_roof_margin * most)
        kbi_judge_above(r, "GB/s", "kb_bytes", m->bytes / seconds, most, kbi_roof_names[which]);
}

// The same of arithmetic, which no cache makes faster.
static void kbi_judge_arithmetic(kb_result* r, const kbi_measured* m, kbi_meant meant, double rate) {
    int best = meant.base;
    for (int i = 0; i < KBI_ROOFS; i++)
        if (meant.others >> i & 1 && m->roofs.most[i] > m->roofs.most[best]) best = i;
    kbi_judge_above(r, "GFLOP/s", "kb_flops", rate, m->roofs.most[best], kbi_roof_names[best]);
}

// A clock that ends at its lowest, well below its highest, fell from burst to sustained while this ran.
static void kbi_judge_regime(kb_result* r, const kbi_measured* m) {
    bool fell = m->clock_high - m->sm_clock > 0.02 * m->clock_high;
    if (fell && m->sm_clock - m->clock_low <= 0.005 * m->clock_high)
        kbi_judge_say(r, "the SM clock fell from %.0f MHz (burst) to %.0f MHz (sustained); samples are of both",
                      m->clock_high, m->sm_clock);
}

static void kbi_judge_rates(kb_result* r, const kbi_measured* m, const kbi_machine* machine) {
    double seconds = r->time_ms * 1e-3, bytes = kbi_finite(m->bytes) ? m->bytes : 0;
    if (!(seconds > 0)) return;
    r->inference_speed = 1 / seconds;
    r->throughput_gbps = m->bytes / seconds * 1e-9;
    r->gflops = m->flops / seconds * 1e-9;
    r->items_per_second = m->items / seconds;
    if (m->queries) r->queries_per_second = r->items_per_second;
    int moves = kbi_traffic_roof(m->traffic), computes = KBI_NO_ROOF;
    kbi_meant meant = kbi_arithmetic_of(m);
    double flops = kbi_finite(m->flops) ? m->flops : 0;
    if (flops > 0) computes = m->core ? meant.base : kbi_roof_over(&m->roofs, meant, flops / seconds);
    if (computes == KBI_ABOVE_ALL) kbi_judge_arithmetic(r, m, meant, flops / seconds);
    if (r->status == KB_OK) kbi_judge_traffic(r, m, machine, seconds);
    if (r->status != KB_OK) return;
    double memory = kbi_roof_known(&m->roofs, moves), arithmetic = kbi_roof_known(&m->roofs, computes);
    if (arithmetic > 0 && m->roofs.most[computes] < 0 && flops / seconds > kbi_roof_margin * arithmetic)
        arithmetic = 0;
    double moved = memory > 0 ? bytes / seconds / memory : 0;
    double computed = arithmetic > 0 ? flops / seconds / arithmetic : 0;
    // where nobody can tell how near the arithmetic is to its roof, only much traffic is sure to be the nearest
    if (computes >= 0 && !(arithmetic > 0) && moved < 0.5) return;
    if (!(moved > 0) && !(computed > 0)) return;
    r->gpu_efficiency = 100 * KBI_MAX(moved, computed);
    r->roof = kbi_roof_names[moved >= computed ? moves : computes];
    bool floored = (r->flags >> KB_FLAG_FLOOR & 1) != 0;
    r->bound = floored || KBI_MAX(moved, computed) < 0.1 ? "latency" : moved >= computed ? "memory" : "compute";
}

// A wrong, failed or implausible case keeps its identity and its message, and loses every number of time.
static void kbi_judge_withdraw(kb_result* r) {
    r->time_ms = r->time_ms_mean = r->time_ms_std = r->time_ms_min = r->time_ms_max = r->time_ms_mad = NAN;
    r->time_ms_p5 = r->time_ms_p25 = r->time_ms_p75 = r->time_ms_p95 = r->time_ms_p99 = r->time_ms_raw = NAN;
    r->time_ms_ci_low = r->time_ms_ci_high = r->cv = r->precision = r->bias_ms = r->floor_ms = NAN;
    r->inference_speed = r->throughput_gbps = r->gflops = r->items_per_second = r->queries_per_second =
        r->gpu_efficiency = NAN;
    r->roof = r->bound = NULL;
    r->samples = r->processes = KB_NONE;
    r->samples_ms.n = r->process_ms.n = 0;
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

// Why a time is known so badly, as far as the system counted it.
static void kbi_judge_noise(kb_result* r, const kbi_measured* m) {
    bool wall = kbi_is(m->mode, "wall"); // a GPU does not wait for the host's processors
    if (!(r->flags >> KB_FLAG_NOISY & 1) || !wall) return;
    if (m->cpu_waited >= 1)
        kbi_judge_say(r, "other programs had the processor for %.0f %% of the time, %lld times", m->cpu_waited,
                      (long long)KBI_MAX(m->preemptions, (int64_t)0));
    if (m->cpu_stolen >= 1)
        kbi_judge_say(r, "the hypervisor gave %.0f %% of the processors' time to other machines", m->cpu_stolen);
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
        if (r->status == KB_OK) kbi_judge_noise(r, m);
        if (r->status == KB_OK) kbi_judge_cold(r, m, machine);
        kbi_flag_set(r, KB_FLAG_UNVERIFIED, r->verified < 0);
        kbi_flag_set(r, KB_FLAG_DEBUG_BUILD, m->debug_build != 0);
    }
    if (r->status != KB_OK || !(r->time_ms >= 0)) kbi_judge_withdraw(r);
}

/*---------------------------------------------------------------------------------------------------------------
  >>counted   judge: what was counted of a case against what it declared, and what bounds it.
              Public: none      Used by: >>laps
---------------------------------------------------------------------------------------------------------------*/

// Bytes: where the data is many times L2 and came out of it, what DRAM moved and what may still lie in L2; else what went
// through L2, as all of it has to. More than declared is honest: of data that is read twice only once is compulsory.
static void kbi_judge_declared_bytes(kb_result* r, const kbi_inside* in, const kbi_machine* machine) {
    double dram = kbi_counted(in, "dram_bytes"), l2 = kbi_counted(in, "l2_bytes"), size = (double)machine->l2;
    bool far = kbi_is(r->mode, "cold") && r->bytes >= 4 * size && kbi_finite(dram);
    double most = far ? dram + size : l2;
    char said[40], seen[40], times[40];
    if (!(r->bytes > 0) || !kbi_finite(most)) return;
    kbi_show_bytes(r->bytes, said);
    kbi_show_bytes(far ? dram : l2, seen);
    if (r->bytes > 1.1 * most) {
        kbi_flag_set(r, KB_FLAG_DECLARED_BYTES, true);
        kbi_judge_say(r, "kb_bytes says %s, and %s moved %s", said, far ? "DRAM" : "L2", seen);
    } else if (far && dram > 1.1 * r->bytes) {
        kbi_judge_say(r, "DRAM moved %s, %s times what kb_bytes says", seen, kbi_digits(dram / r->bytes, 3, times));
    }
}

// Operations: as many as the instructions can have done at most; of comparisons, roots and exponentials nobody knows how
// they were counted. What tensor cores do is not held against anything.
static void kbi_judge_declared_flops(kb_result* r, const kbi_inside* in) {
    double fp32 = kbi_counted(in, "fp32_instructions"), fp64 = kbi_counted(in, "fp64_instructions");
    double fp16 = kbi_counted(in, "fp16_instructions"), tensor = kbi_counted(in, "tensor_instructions");
    double most = fp32 + kbi_counted(in, "ffma") + fp64 + kbi_counted(in, "dfma") + 4 * fp16 +
                  32 * kbi_counted(in, "xu_instructions");
    double sure = kbi_counted(in, "fadd") + kbi_counted(in, "fmul") + 2 * kbi_counted(in, "ffma") +
                  kbi_counted(in, "dadd") + kbi_counted(in, "dmul") + 2 * kbi_counted(in, "dfma");
    char said[40], seen[40];
    bool whole = kb_dtype_of(r->dtype ? r->dtype : "") >= KB_I8 && kb_dtype_of(r->dtype ? r->dtype : "") <= KB_U64;
    if (!(r->flops > 0) || !kbi_finite(most) || tensor > 0 || whole) return;
    if (r->flops > 1.1 * most) {
        kbi_flag_set(r, KB_FLAG_DECLARED_FLOPS, true);
        kbi_judge_say(r, "kb_flops says %s million operations, and the instructions did %s million at most",
                      kbi_digits(r->flops * 1e-6, 4, said), kbi_digits(most * 1e-6, 4, seen));
    } else if (sure > 1.1 * r->flops) {
        kbi_judge_say(r, "the instructions did %s million operations, %s times what kb_flops says",
                      kbi_digits(sure * 1e-6, 4, seen), kbi_digits(sure / r->flops, 3, said));
    }
}

// By what is busiest, if that is busy enough; else by waiting.
static void kbi_judge_bound(kb_result* r, const kbi_inside* in) {
    static const struct {
        const char *counter, *name, *bound;
    } rows[] = { { "dram_pct", "DRAM", "memory" },
                 { "l2_pct", "L2", "L2" },
                 { "tensor_pct", "tensor cores", "compute" },
                 { "issue_pct", "issue slots", "compute" },
                 { "sm_pct", "busiest pipe", "compute" } };
    enum { KBI_BUSY_ENOUGH = 60 }; // percent
    kbi_text why = { NULL, 0, 0 };
    double most = 0, warps = kbi_counted(in, "occupancy_pct");
    const char* bound = "latency";
    int n = 0;
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        double x = kbi_counted(in, rows[i].counter);
        if (!kbi_finite(x)) continue;
        if (x > most && x >= KBI_BUSY_ENOUGH) bound = rows[i].bound;
        most = KBI_MAX(most, x);
        kbi_putf(&why, "%s%s %.0f %%", n++ ? ", " : "", rows[i].name, x);
    }
    bool launch = r->flags >> KB_FLAG_FLOOR & 1 && most < KBI_BUSY_ENOUGH;
    if (launch) bound = "launch";
    if (kbi_finite(warps)) kbi_putf(&why, "%s%.0f %% of the warps there", n ? ", " : "", warps);
    if (n > 1) { // of one alone nothing follows
        r->bound = bound;
        kbi_judge_say(r, "bound by %s: %s%s", bound, why.s,
                      kbi_is(bound, "latency") ? ": nothing is busy enough" : "");
    }
    kbi_text_free(&why);
}

// Of a case that has a time.
static void kbi_judge_inside(kb_result* r, const kbi_inside* in, const kbi_machine* machine) {
    if (r->status != KB_OK || !in->counters) return;
    r->occupancy_achieved = kbi_counted(in, "occupancy_pct");
    kbi_judge_declared_bytes(r, in, machine);
    kbi_judge_declared_flops(r, in);
    kbi_judge_bound(r, in);
}

/*---------------------------------------------------------------------------------------------------------------
  >>rivals    judge: several processes of a case, and the rivals of a group: who is faster, and how surely.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

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
// Where buffers lie decides up to 3 % of a kernel's time (an H200: products of 256 x 256 in one process, row sums over
// other pages): what two whose data lay apart differ by may be that.
static const double kbi_apart = 0.03;

// --- several processes ---

// The printed interval is to hold the median of 15 other processes. Beside the mean of those that were measured, that
// median has a variance of its own: pi / 2 of that of a mean of 15, pi / 30 of that of a process. A contest is about
// the true ratio, over all placements: nothing stands beside it.
static const double kbi_beside = 0.10471975511965977;

enum { KBI_POOL_ROWS = 512 };
typedef struct
    kbi_pool { // logarithms that each process gave, a row for each case, or pair of rivals: like ones scatter alike
    double *values, *ms; // a row's, and how long its case takes
    kbi_spread* spread;  // of the latest rows
    int rows, latest, processes;
} kbi_pool;

typedef struct kbi_pools { // of times, of rivals' ratios, and of those of baselines to themselves
    kbi_pool times, ratios, equals;
} kbi_pools;

// Adds a row; the answer is its place among the latest.
static int kbi_pool_add(kbi_pool* p, int processes, const double* values, double ms) {
    size_t row = sizeof(double) * (size_t)processes;
    p->processes = processes;
    p->values = (double*)kbi_grow(p->values, row * (size_t)(p->rows + 1));
    p->ms = (double*)kbi_grow(p->ms, sizeof(double) * (size_t)(p->rows + 1));
    memcpy(p->values + (size_t)p->rows * (size_t)processes, values, row);
    p->ms[p->rows++] = ms;
    return p->latest++;
}

// How the latest rows scatter, by themselves and by all earlier ones, of which the oldest are then forgotten: a row is
// compared with every other.
static void kbi_pool_settle(kbi_pool* p, double beside) {
    kbi_spread* all = (kbi_spread*)kbi_grow(NULL, sizeof(kbi_spread) * (size_t)(p->rows + 1));
    int old = KBI_MAX(p->rows - (int)KBI_POOL_ROWS, 0), kept = p->rows - old;
    kbi_spread_of(p->values, p->processes, p->rows, p->ms, beside, all);
    memmove(all, all + p->rows - p->latest, sizeof(kbi_spread) * (size_t)p->latest);
    KBENCH_FREE(p->spread);
    p->spread = all;
    p->latest = 0;
    p->rows = kept;
    if (!old) return;
    memmove(p->ms, p->ms + old, sizeof(double) * (size_t)kept);
    memmove(p->values, p->values + (size_t)old * (size_t)p->processes,
            sizeof(double) * (size_t)kept * (size_t)p->processes);
}

static void kbi_pools_free(kbi_pools* pools) {
    kbi_pool* all[] = { &pools->times, &pools->ratios, &pools->equals };
    for (int i = 0; i < KBI_COUNT(all); i++) {
        KBENCH_FREE(all[i]->values);
        KBENCH_FREE(all[i]->ms);
        KBENCH_FREE(all[i]->spread);
    }
    memset(pools, 0, sizeof *pools);
}

// Which process's record stands for a case that several measured (NULL: that one did not): the first in which it
// failed, else was skipped, else the one whose median is the middle one, of an even number the lower. -1: fewer than
// two gave a number, and one by itself says nothing of the others.
static int kbi_judge_stands(kb_result* const* each, int processes) {
    double ms[KBI_PROCESSES];
    int n = 0, at = 0;
    for (int p = 0; p < processes; p++)
        if (each[p] && each[p]->status == KB_FAILED) return p;
    for (int p = 0; p < processes; p++)
        if (each[p] && each[p]->status == KB_SKIPPED) return p;
    for (int p = 0; p < processes; p++)
        if (each[p]) ms[n++] = each[p]->time_ms;
    if (n < KBI_MIN(2, processes)) return -1;
    kbi_sort(ms, n);
    while (!each[at] || !(each[at]->time_ms <= ms[(n - 1) / 2] && each[at]->time_ms >= ms[(n - 1) / 2])) at++;
    return at;
}

// What one process found wrong: whose word it is.
static void kbi_judge_blame(kb_result* r, int process, int processes) {
    kbi_text text = { NULL, 0, 0 };
    kbi_putf(&text, "process %d of %d%s%s", process + 1, processes, r->message ? ": " : "",
             r->message ? r->message : "");
    r->message = kbi_arena_text(r->owned, text.s);
    kbi_text_free(&text);
}

// r is a copy of the record that stands for the case, and becomes that of all: time, interval and rates are those of
// the processes' medians, and a warning stands that most of them raise. FEW and NOISY speak of the interval, which is
// another one: it needs no samples but the medians, and may be wide where each process's is not.
static void kbi_judge_merge(kb_result* r, kb_result* const* each, int processes, const kbi_spread* s) {
    double ms[KBI_PROCESSES], time = exp(s->mean), share = r->time_ms / time;
    int n = 0, raised[KB_FLAG_COUNT] = { 0 };
    r->wall_ms = 0;
    for (int p = 0; p < processes; p++) {
        if (!each[p]) continue;
        ms[n++] = each[p]->time_ms;
        r->wall_ms += each[p]->wall_ms;
        r->verified = KBI_MIN(r->verified, each[p]->verified);
        if (each[p]->max_error > r->max_error) r->max_error = each[p]->max_error;
        for (int f = 0; f < KB_FLAG_COUNT; f++) raised[f] += (int)(each[p]->flags >> f & 1);
    }
    r->flags = 0;
    raised[KB_FLAG_FEW] = raised[KB_FLAG_NOISY] = 0;
    for (int f = 0; f < KB_FLAG_COUNT; f++) kbi_flag_set(r, (kb_flag)f, 2 * raised[f] > n);
    r->time_ms = time;
    r->time_ms_ci_low = exp(s->lo), r->time_ms_ci_high = exp(s->hi);
    r->precision = kbi_half_width(r->time_ms_ci_low, r->time_ms_ci_high, time);
    kbi_flag_set(r, KB_FLAG_NOISY, r->precision > 0.05);
    r->inference_speed *= share, r->throughput_gbps *= share, r->gflops *= share, r->gpu_efficiency *= share;
    r->items_per_second *= share, r->queries_per_second *= share;
    kbi_judge_process_ms(r, ms, n);
}

// --- contests ---

typedef struct kbi_pair { // of two rivals in several processes: theirs over mine, where mine is -1 theirs once more
    int theirs, mine, at; // its row among the pool's latest
} kbi_pair;

typedef struct kbi_rivals { // a group, as its processes measured it
    kb_result* results;     // of n cases, the baseline first
    int n, processes, n_pairs;
    const kbi_measured** m; // process p's of case i: [p * n + i], as are the samples; NULL: not measured
    double** samples;
    kbi_pair* pairs; // 2 n, of several processes
    const kbi_pools* pools;
    kbi_contest_end end;
} kbi_rivals;

static bool kbi_judge_has_time(const kb_result* r) { return r->status == KB_OK && r->time_ms > 0; }

// The rounds of a measured case, less the bias of its mode; NULL without any.
static const double* kbi_judge_rounds(const kbi_measured* m, const double* samples, bool again) {
    if (!m || m->status != KB_OK || (again ? m->again : m->rounds) <= 0) return NULL;
    return samples + m->n + (again ? m->rounds : 0);
}

static void kbi_judge_unbias(const kbi_measured* m, double* samples) {
    double bias = isfinite(m->bias_ns) ? m->bias_ns : 0;
    for (int64_t i = m->n; i < m->n + m->rounds + m->again; i++)
        if (kbi_finite(samples[i])) samples[i] = KBI_MAX(samples[i] - bias, 1e-3);
}

// What the rounds of one process say of two; NAN where these were not measured together: a group of more than 64 is
// several contests.
static double kbi_judge_ratio_in(const kbi_rivals* c, int process, int theirs, int mine, double alpha, double* lo,
                                 double* hi) {
    size_t a = (size_t)(process * c->n + theirs), b = mine < 0 ? a : (size_t)(process * c->n + mine);
    const double *x = kbi_judge_rounds(c->m[a], c->samples[a], false),
                 *y = kbi_judge_rounds(c->m[b], c->samples[b], mine < 0);
    *lo = *hi = (double)NAN;
    if (!x || !y || c->m[a]->rounds != c->m[b]->rounds || c->m[a]->contest != c->m[b]->contest) return (double)NAN;
    return kbi_judge_ratio_of(x, y, c->m[a]->rounds, alpha, lo, hi);
}

// What all processes say: of one its rounds, of several the t interval of their log ratios.
static double kbi_judge_ratio_over(const kbi_rivals* c, int theirs, int mine, double alpha, double* lo, double* hi) {
    if (c->processes == 1) return kbi_judge_ratio_in(c, 0, theirs, mine, alpha, lo, hi);
    *lo = *hi = (double)NAN;
    for (const kbi_pair* p = c->pairs; p < c->pairs + c->n_pairs; p++) {
        bool turned = p->theirs == mine && p->mine == theirs;
        if (!turned && (p->theirs != theirs || p->mine != mine)) continue;
        const kbi_spread* s = (mine < 0 ? c->pools->equals.spread : c->pools->ratios.spread) + p->at;
        double mean = turned ? -s->mean : s->mean, reach = kbi_spread_reach(s, alpha, 0);
        *lo = exp(mean - reach), *hi = exp(mean + reach);
        return exp(mean);
    }
    return (double)NAN;
}

// The shorter of two says how far their ratio scatters.
static void kbi_rivals_pair(kbi_rivals* c, kbi_pools* pools, int theirs, int mine) {
    double values[KBI_PROCESSES], lo, hi;
    double ms = KBI_MIN(c->results[theirs].time_ms, c->results[mine < 0 ? theirs : mine].time_ms);
    int n = 0;
    for (int p = 0; p < c->processes; p++) {
        values[p] = log(kbi_judge_ratio_in(c, p, theirs, mine, 0.05, &lo, &hi));
        n += kbi_finite(values[p]);
    }
    if (!n) return;
    kbi_pair* pair = &c->pairs[c->n_pairs++];
    pair->theirs = theirs, pair->mine = mine;
    pair->at = kbi_pool_add(mine < 0 ? &pools->equals : &pools->ratios, c->processes, values, ms);
}

// Who is fastest; and of several processes the log ratios that will be asked for: those to the baseline, and to the
// fastest. The pools are to be settled when all groups of a lap have given theirs.
static void kbi_rivals_open(kbi_rivals* c, kbi_pools* pools) {
    int timed = 0;
    for (int k = 0; k < c->n * c->processes; k++)
        if (c->m[k] && c->m[k]->status == KB_OK) kbi_judge_unbias(c->m[k], c->samples[k]);
    c->pools = pools;
    c->end.fastest = -1;
    c->end.certain = false;
    for (int i = 0; i < c->n; i++) {
        if (!kbi_judge_has_time(&c->results[i])) continue;
        timed++;
        if (c->end.fastest < 0 || c->results[i].time_ms < c->results[c->end.fastest].time_ms) c->end.fastest = i;
    }
    if (timed < 2) c->end.fastest = -1;
    int fastest = c->end.fastest;
    if (c->processes == 1 || fastest < 0) return;
    if (kbi_judge_has_time(&c->results[0])) kbi_rivals_pair(c, pools, 0, -1);
    for (int i = 1; i < c->n; i++) {
        if (!kbi_judge_has_time(&c->results[i])) continue;
        if (kbi_judge_has_time(&c->results[0])) kbi_rivals_pair(c, pools, 0, i);
        if (fastest > 0 && i != fastest) kbi_rivals_pair(c, pools, i, fastest);
    }
}

// Where they played on different memory that alone may make so much; over processes it varies, and the interval has it.
static double kbi_judge_floor(const kbi_rivals* c, int i, int j, double noise) {
    bool shared = c->processes > 1 || (c->m[i]->stage == 1 && c->m[j]->stage == 1);
    return shared || noise > kbi_apart ? noise : kbi_apart;
}

// Speedup, its interval and verdict, from rounds that both were measured in; else the ratio of the times alone.
static void kbi_judge_speedup(const kbi_rivals* c, int i, double noise) {
    kb_result *base = &c->results[0], *r = &c->results[i];
    double lo, hi, ratio = (double)NAN;
    int arms = 2;
    for (int p = 0; p < c->processes; p++)
        if (c->m[p * c->n + i]) arms = KBI_MAX(arms, c->m[p * c->n + i]->arms);
    if (i > 0 && base->status == KB_OK) ratio = kbi_judge_ratio_over(c, 0, i, 0.05 / (arms - 1), &lo, &hi);
    r->speedup = kbi_finite(ratio) ? ratio : base->time_ms / r->time_ms;
    if (!kbi_finite(ratio)) {
        if (i > 0 && kbi_judge_has_time(base)) r->verdict = KB_UNRESOLVED; // each by itself: nothing says how surely
        return;
    }
    r->speedup_low = lo, r->speedup_high = hi;
    r->noise_floor = kbi_judge_floor(c, 0, i, noise);
    r->verdict = kbi_judge_ratio(lo, hi, kbi_delta, r->noise_floor);
    kbi_flag_set(r, KB_FLAG_PLACEMENT, r->verdict != kbi_judge_ratio(lo, hi, kbi_delta, noise));
}

// Whether the fastest of a group is surely faster than each of the others.
static bool kbi_judge_certain(const kbi_rivals* c, double noise) {
    int fastest = c->end.fastest;
    for (int i = 0; i < c->n && fastest >= 0; i++) {
        double lo, hi;
        if (i == fastest || c->results[i].status != KB_OK) continue;
        double ratio = kbi_judge_ratio_over(c, i, fastest, 0.05 / KBI_MAX(c->n - 1, 1), &lo, &hi);
        if (!kbi_finite(ratio)) return false;
        if (kbi_judge_ratio(lo, hi, kbi_delta, kbi_judge_floor(c, i, fastest, noise)) != KB_FASTER) return false;
    }
    return fastest >= 0;
}

// Speedup against the first of the group, and the rating against its best verified time.
static void kbi_judge_group(kbi_rivals* c) {
    double best = INFINITY, lo, hi, noise = NAN;
    for (int i = 0; i < c->n; i++)
        if (kbi_judge_has_time(&c->results[i]) && c->results[i].verified == 1)
            best = KBI_MIN(best, c->results[i].time_ms);
    if (c->n && kbi_finite(kbi_judge_ratio_over(c, 0, -1, 0.05, &lo, &hi))) noise = kbi_noise_floor(lo, hi);
    for (int i = 0; i < c->n && c->n > 1; i++) {
        kb_result* r = &c->results[i];
        if (!kbi_judge_has_time(r)) continue;
        kbi_judge_speedup(c, i, noise);
        double share = best / r->time_ms;
        if (r->verified == 1)
            r->rating = share >= 0.8 ? "excellent" : share >= 0.5 ? "good" : share >= 0.2 ? "fair" : "needs work";
    }
    c->end.certain = kbi_judge_certain(c, noise);
}

/*---------------------------------------------------------------------------------------------------------------
  >>compare   judge: how surely the records of two sets differ, what it means, and how each case went over time.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/
#if KBI_REPORT

static int kbi_order_reals(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double kbi_middle(double* x, int64_t n) { // leaves x sorted
    qsort(x, (size_t)n, sizeof *x, kbi_order_reals);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

// --- what runs differ by ---

enum {
    KBI_ALIKE = 96,          // cases of like length that learn their variance from each other
    KBI_PROCESSES_READ = 64, // of a record
    KBI_RUNS_READ = 40,      // the last of a history
    KBI_RUNS_ENOUGH = 6
};

typedef struct kbi_length { // a case in the order of lengths
    double ms;
    int64_t at;
} kbi_length;

static int kbi_order_length(const void* a, const void* b) {
    const kbi_length *x = (const kbi_length*)a, *y = (const kbi_length*)b;
    return x->ms != y->ms ? (x->ms > y->ms) - (x->ms < y->ms) : (x->at > y->at) - (x->at < y->at);
}

// kbi_spread_of for any number of cases, `each` values of each: in lots of like length, since each looks at all others.
// Rows without values may be among them; n below 2: unknown.
static void kbi_spread_lots(const double* values, int each, int64_t n, const double* times, kbi_spread* out) {
    kbi_length* order = (kbi_length*)kbi_grow(NULL, sizeof(kbi_length) * (size_t)n);
    double* lot = (double*)kbi_grow(NULL, sizeof(double) * (size_t)each * KBI_ALIKE);
    int64_t known = 0;
    memset(out, 0, sizeof *out * (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        int there = 0;
        for (int k = 0; k < each; k++) there += !kbi_nan(values[i * each + k]);
        order[known].ms = times[i];
        order[known].at = i;
        known += there > 1;
    }
    qsort(order, (size_t)known, sizeof *order, kbi_order_length);
    for (int64_t first = 0; first < known; first += KBI_ALIKE) {
        int cases = (int)KBI_MIN(known - first, (int64_t)KBI_ALIKE);
        double lengths[KBI_ALIKE];
        kbi_spread spread[KBI_ALIKE];
        for (int i = 0; i < cases; i++) {
            memcpy(lot + (size_t)i * (size_t)each, values + order[first + i].at * each,
                   sizeof(double) * (size_t)each);
            lengths[i] = order[first + i].ms;
        }
        kbi_spread_of(lot, each, cases, lengths, 0, spread);
        for (int i = 0; i < cases; i++) out[order[first + i].at] = spread[i];
    }
    KBENCH_FREE(lot);
    KBENCH_FREE(order);
}

static int kbi_processes_of(const kb_result* r) { return (int)KBI_MIN(r->process_ms.n, (int64_t)KBI_PROCESSES_READ); }

// Of one side: the mean of each case's log medians of processes, and what one of them scatters by.
static void kbi_spread_of_side(const kbi_changes* c, bool after, kbi_spread* out) {
    int most = 0;
    double* times = (double*)kbi_grow(NULL, sizeof(double) * (size_t)c->n);
    for (int64_t i = 0; i < c->n; i++) {
        const kb_result* r = after ? c->of[i].after : c->of[i].before;
        times[i] = kbi_comparable(&c->of[i]) ? r->time_ms : 0;
        if (times[i] > 0) most = KBI_MAX(most, kbi_processes_of(r));
    }
    double* values = (double*)kbi_grow(NULL, sizeof(double) * (size_t)c->n * (size_t)most);
    for (int64_t i = 0; i < c->n; i++) {
        const kb_result* r = after ? c->of[i].after : c->of[i].before;
        for (int p = 0; p < most; p++) {
            double ms = times[i] > 0 && p < kbi_processes_of(r) ? r->process_ms.of[p] : (double)NAN;
            values[i * most + p] = kbi_finite(ms) && ms > 0 ? log(ms) : (double)NAN;
        }
    }
    kbi_spread_lots(values, most, c->n, times, out);
    KBENCH_FREE(values);
    KBENCH_FREE(times);
}

// The change by the processes of both sides, or of one and what that says of the other; false: neither has any.
static bool kbi_change_by_processes(kbi_change* c, const kbi_spread* b, const kbi_spread* a) {
    bool knows_b = b->n > 1 && b->df > 0 && kbi_finite(b->sd), knows_a = a->n > 1 && a->df > 0 && kbi_finite(a->sd);
    if (!knows_a && !knows_b) return false;
    const kbi_spread *sb = knows_b ? b : a, *sa = knows_a ? a : b;
    double vb = sb->sd * sb->sd / (knows_b ? b->n : 1), va = sa->sd * sa->sd / (knows_a ? a->n : 1), v = va + vb;
    c->log = (knows_a ? a->mean : log(c->after->time_ms)) - (knows_b ? b->mean : log(c->before->time_ms));
    c->se = sqrt(v);
    c->df = knows_a && knows_b && v > 0 ? v * v / (va * va / a->df + vb * vb / b->df) : sa->df; // Welch 1947
    c->ground = KBI_GROUND_PROCESSES;
    return true;
}

// Standard error of a record's log median by its own interval; NAN where it has none.
static double kbi_own_error(const kb_result* r) {
    if (!(r->time_ms_ci_low > 0) || !(r->time_ms_ci_high >= r->time_ms_ci_low)) return (double)NAN;
    return log(r->time_ms_ci_high / r->time_ms_ci_low) / (2 * 1.959963984540054);
}

// What the change is, and how well it is known.
static void kbi_change_measure(kbi_change* c, const kbi_spread* b, const kbi_spread* a, double noise) {
    double own = hypot(kbi_own_error(c->before), kbi_own_error(c->after)), runs = 1.4142135623730951 * c->run_sd;
    c->log = log(c->after->time_ms / c->before->time_ms);
    bool processes = kbi_change_by_processes(c, b, a), history = kbi_finite(runs);
    if (history && (!processes || runs > c->se)) {
        c->ground = KBI_GROUND_HISTORY;
        c->df = c->run_df;
        c->se = !processes && kbi_finite(own) && own > runs ? own : runs;
    } else if (!processes && kbi_finite(own)) {
        c->ground = KBI_GROUND_SAMPLES;
        c->df = 1e7;
        c->se = own;
        c->wide = log1p(noise);
    }
}

// --- the past ---

// How far a run lies from where it should, from the steps between neighbouring runs (von Neumann 1941): half their mean
// square, worth two thirds of as many degrees of freedom. A few steps are true changes: those that are six times what
// the median of them says of the rest do not count. Half of |N(0, 2 sd^2)| lies below 0.6745 sqrt(2) sd.
static void kbi_runs_scatter(const double* x, int64_t n, double* sd, double* df) {
    double step[KBI_RUNS_READ], squares = 0;
    int64_t kept = 0;
    *sd = *df = (double)NAN;
    if (n < KBI_RUNS_ENOUGH) return;
    for (int64_t i = 1; i < n; i++) step[i - 1] = fabs(x[i] - x[i - 1]);
    double most = 6 * 1.4826 * kbi_middle(step, n - 1);
    for (; kept < n - 1 && step[kept] <= most; kept++) squares += step[kept] * step[kept];
    *sd = sqrt(0.5 * squares / (double)kept);
    *df = 2.0 / 3 * (double)kept;
}

static void kbi_runs_slope(const double* x, int64_t n, double* slope, double* p) {
    static double slopes[KBI_RUNS_READ * KBI_RUNS_READ / 2];
    int64_t count = 0, score = 0;
    *slope = *p = (double)NAN;
    if (n < 8) return;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++) {
            slopes[count++] = (x[j] - x[i]) / (double)(j - i);
            score += (x[j] > x[i]) - (x[j] < x[i]);
        }
    }
    double sd = sqrt((double)(n * (n - 1) * (2 * n + 5)) / 18), z = (fabs((double)score) - 1) / sd;
    *slope = kbi_middle(slopes, count);
    *p = z > 0 ? 2 * kbi_student_tail(z, 1e7) : 1;
}

// Of n runs of one case in their order, the last of which may be the one that is judged.
static void kbi_trend_of(kbi_trend* t, const kbi_named* of, int64_t n) {
    double x[KBI_RUNS_READ], earlier[KBI_RUNS_READ];
    int64_t skipped = KBI_MAX(n - KBI_RUNS_READ, (int64_t)0);
    memset(t, 0, sizeof *t);
    t->last = of[n - 1].r;
    t->runs = n - skipped;
    for (int64_t i = 0; i < t->runs; i++) earlier[i] = x[i] = log(of[skipped + i].r->time_ms);
    t->first = exp(x[0]);
    t->now = exp(x[t->runs - 1]);
    kbi_runs_scatter(x, t->runs, &t->sd, &t->df);
    kbi_runs_slope(x, t->runs, &t->slope, &t->p);
    t->middle = t->runs > 1 ? exp(kbi_middle(earlier, t->runs - 1)) : t->now;
}

// Cases that have little of a past of their own learn from the others: the variance that all have in common counts as
// much as a case's own does, and as four degrees of freedom at least. No case is taken to be quieter than it was.
static void kbi_trends_pool(kbi_trend* t, int64_t n) {
    double sum = 0, known = 0;
    for (int64_t i = 0; i < n; i++)
        if (kbi_finite(t[i].sd)) sum += t[i].df * t[i].sd * t[i].sd, known += t[i].df;
    for (int64_t i = 0; i < n; i++) {
        double own = kbi_finite(t[i].sd) ? t[i].df : 0, others = KBI_MIN(known - own, KBI_MAX(own, 4.0));
        if (!(known > 3) || !(others > 0)) continue;
        double v = (own > 0 ? own * t[i].sd * t[i].sd : 0) + others * sum / known;
        v /= own + others;
        t[i].sd = own > 0 && t[i].sd * t[i].sd > v ? t[i].sd : sqrt(v);
        t[i].df = own + others;
    }
}

// The trends of all cases of a history of records that have times, by their names; to be freed. Runs of one case on two
// devices are two cases.
static kbi_trend* kbi_trends(const kb_result* const* runs, int64_t n, int64_t* count) {
    kbi_named* order = (kbi_named*)kbi_grow(NULL, sizeof(kbi_named) * (size_t)n);
    kbi_trend* t = (kbi_trend*)kbi_grow(NULL, sizeof(kbi_trend) * (size_t)n);
    int64_t m = 0;
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!kbi_has_time(runs[i])) continue;
        order[m].r = runs[i];
        order[m].at = i;
        order[m++].device = runs[i]->device == KB_NONE ? -1 : runs[i]->device;
    }
    qsort(order, (size_t)m, sizeof *order, kbi_order_named);
    for (int64_t first = 0, end; first < m; first = end) {
        for (end = first + 1;
             end < m && kbi_is(order[end].r->name, order[first].r->name) && order[end].device == order[first].device;)
            end++;
        kbi_trend_of(&t[(*count)++], order + first, end - first);
    }
    kbi_trends_pool(t, *count);
    KBENCH_FREE(order);
    return t;
}

// Hands each change what the history says of its case: both are in the order of names where the records are.
static void kbi_changes_learn(kbi_changes* c, const kbi_trend* t, int64_t n) {
    for (int64_t i = 0; i < c->n; i++) {
        const char* name = c->of[i].after ? c->of[i].after->name : NULL;
        int64_t low = 0, high = n;
        while (name && low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(t[middle].last->name, name) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        for (; name && low < n && kbi_is(t[low].last->name, name); low++) { // the noisiest of several devices
            if (!kbi_finite(t[low].sd) || c->of[i].run_sd > t[low].sd) continue;
            c->of[i].run_sd = t[low].sd;
            c->of[i].run_df = t[low].df;
        }
    }
}

// --- verdicts ---

typedef struct kbi_chance { // a p-value in the order of these
    double p;
    int64_t at;
} kbi_chance;

static int kbi_order_chance(const void* a, const void* b) {
    const kbi_chance *x = (const kbi_chance*)a, *y = (const kbi_chance*)b;
    return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x->at > y->at) - (x->at < y->at);
}

// Holm 1979: each p times the number of those that are no smaller, never below the one before.
static void kbi_holm(kbi_chance* all, int64_t n) {
    double most = 0;
    qsort(all, (size_t)n, sizeof *all, kbi_order_chance);
    for (int64_t i = 0; i < n; i++) {
        most = KBI_MAX(most, KBI_MIN(all[i].p * (double)(n - i), 1.0));
        all[i].p = most;
    }
}

// Two-sided p of a change against one of at most `limit`.
static double kbi_change_p(const kbi_change* c, double limit) {
    double beyond = fabs(c->log) - c->wide - limit;
    if (!(beyond > 0)) return 1;
    return c->se > 0 ? 2 * kbi_student_tail(beyond / c->se, KBI_MIN(c->df, 1e7)) : 0;
}

// From log, se, df and wide of each change that has a ground: intervals, verdicts, regressions. A regression lies
// wholly beyond the threshold, an equivalent case wholly within it, and SLOWER is who surely is, by however little; all
// of them at the level alpha for all cases at once, the intervals for each by itself.
static void kbi_changes_judge(kbi_changes* c, const kbi_rules* rules) {
    kbi_chance* far = (kbi_chance*)kbi_grow(NULL, sizeof(kbi_chance) * (size_t)c->n);
    kbi_chance* any = (kbi_chance*)kbi_grow(NULL, sizeof(kbi_chance) * (size_t)c->n);
    double limit = log1p(rules->threshold), last = -1, quantile = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        kbi_change* one = &c->of[i];
        one->lo = one->hi = one->p = (double)NAN;
        if (!kbi_comparable(one)) continue;
        one->verdict = KB_UNRESOLVED;
        one->regressed = one->improved = false;
        one->open = true;
        if (one->ground == KBI_GROUND_NONE) continue;
        if (one->df != last) quantile = kbi_student_quantile(1 - 0.5 * rules->alpha, one->df);
        last = one->df;
        one->lo = one->log - quantile * one->se - one->wide;
        one->hi = one->log + quantile * one->se + one->wide;
        far[n].p = kbi_change_p(one, limit);
        any[n].p = kbi_change_p(one, 0);
        far[n].at = any[n].at = i;
        n++;
    }
    kbi_holm(far, n);
    kbi_holm(any, n);
    for (int64_t i = 0; i < n; i++) {
        kbi_change *x = &c->of[any[i].at], *y = &c->of[far[i].at];
        y->p = far[i].p;
        y->regressed = y->p <= rules->alpha && y->log > 0;
        y->improved = y->p <= rules->alpha && y->log < 0;
        y->open = !y->regressed && !y->improved && !(y->lo >= -limit && y->hi <= limit);
        if (any[i].p <= rules->alpha)
            x->verdict = x->log > 0 ? KB_SLOWER : KB_FASTER;
        else if (x->lo >= -limit && x->hi <= limit)
            x->verdict = KB_EQUIVALENT;
    }
    KBENCH_FREE(far);
    KBENCH_FREE(any);
}

// What is allocated is known exactly. That of the GPU, and of the host where neither uses any of a GPU.
static void kbi_change_memory(kbi_change* c, double threshold) {
    c->memory = (double)NAN;
    if (!kbi_comparable(c)) return;
    bool device = kbi_memory_of(c->before, true) > 0 || kbi_memory_of(c->after, true) > 0;
    double before = kbi_memory_of(c->before, device), after = kbi_memory_of(c->after, device);
    if (!kbi_finite(before) || !kbi_finite(after)) return;
    if (before > 0) c->memory = after / before;
    c->more = after > before * (1 + threshold);
    c->less = after * (1 + threshold) < before;
}

static void kbi_compare(kbi_changes* c, const kbi_rules* rules) {
    size_t n = (size_t)c->n;
    kbi_spread *before = (kbi_spread*)kbi_grow(NULL, sizeof(kbi_spread) * n),
               *after = (kbi_spread*)kbi_grow(NULL, sizeof(kbi_spread) * n);
    kbi_spread_of_side(c, false, before);
    kbi_spread_of_side(c, true, after);
    for (int64_t i = 0; i < c->n; i++) {
        if (kbi_comparable(&c->of[i])) kbi_change_measure(&c->of[i], &before[i], &after[i], rules->noise);
        kbi_change_memory(&c->of[i], rules->memory_threshold);
    }
    kbi_changes_judge(c, rules);
    KBENCH_FREE(before);
    KBENCH_FREE(after);
}

// Whether a race has rounds enough: its intervals are narrow, wherever they lie. Fewer than these could be narrow by
// luck.
enum { KBI_RACE_ROUNDS = 6 };
static bool kbi_race_enough(int rounds, double widest, const kbi_rules* rules) {
    return rounds >= KBI_RACE_ROUNDS && widest <= log1p(rules->threshold) / 3;
}

// A race's changes: each has the log ratios of its rounds in logs[i * rounds] and on, NAN where a round gave none.
// Returns the widest half-width of an interval that holds for all cases at once; infinite while one case has none.
// Rounds end where intervals are narrow, so most often where the scatter came out too small (Chow and Robbins 1965): as
// it stands an interval misses up to 7.5 % of the time instead of 5. Widened by 1.5 rounds it does not.
static double kbi_compare_rounds(kbi_changes* c, const double* logs, int rounds, const kbi_rules* rules) {
    kbi_spread* s = (kbi_spread*)kbi_grow(NULL, sizeof(kbi_spread) * (size_t)c->n);
    double* times = (double*)kbi_grow(NULL, sizeof(double) * (size_t)c->n);
    double widest = 0, compared = 0;
    for (int64_t i = 0; i < c->n; i++) {
        times[i] = kbi_comparable(&c->of[i]) ? c->of[i].before->time_ms : 0;
        compared += times[i] > 0;
    }
    kbi_spread_lots(logs, rounds, c->n, times, s);
    for (int64_t i = 0; i < c->n; i++) {
        kbi_change* one = &c->of[i];
        kbi_change_memory(one, rules->memory_threshold);
        one->ground = KBI_GROUND_NONE;
        if (!kbi_comparable(one)) continue;
        if (s[i].n > 1 && s[i].df > 0) {
            one->ground = KBI_GROUND_ROUNDS;
            one->log = s[i].mean;
            one->se = s[i].sd / sqrt((double)s[i].n);
            if (rounds > KBI_RACE_ROUNDS) one->se *= 1 + 1.5 / rounds;
            one->df = s[i].df;
        } else
            one->log = log(one->after->time_ms / one->before->time_ms);
        double level = 1 - 0.5 * rules->alpha / compared;
        double half = one->ground ? one->se * kbi_student_quantile(level, one->df) : (double)INFINITY;
        widest = KBI_MAX(widest, half);
    }
    kbi_changes_judge(c, rules);
    KBENCH_FREE(times);
    KBENCH_FREE(s);
    return widest;
}

static kbi_assessment kbi_assess(const kbi_changes* c) {
    kbi_assessment a;
    double sum = 0;
    memset(&a, 0, sizeof a);
    for (int64_t i = 0; i < c->n; i++) {
        const kbi_change* one = &c->of[i];
        a.added += !one->before;
        a.removed += !one->after;
        a.broken += kbi_has_time(one->before) && one->after && one->after->status == KB_FAILED;
        a.mended += one->before && one->before->status == KB_FAILED && kbi_has_time(one->after);
        if (!kbi_comparable(one)) continue;
        a.compared++;
        a.grounds[one->ground]++;
        a.regressed += one->regressed;
        a.improved += one->improved;
        a.more += one->more;
        a.less += one->less;
        a.slower += one->verdict == KB_SLOWER;
        a.faster += one->verdict == KB_FASTER;
        a.open += one->open;
        sum += one->log;
        if (one->regressed && (!a.worst || one->log > a.worst->log)) a.worst = one;
    }
    a.geomean = a.compared ? exp(sum / (double)a.compared) : (double)NAN;
    return a;
}
#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>facts     record: what else may tell two machines' times apart, as the system's files have it.
              Public: none      Used by: >>record
---------------------------------------------------------------------------------------------------------------*/

enum { KBI_FACTS = 16 };
typedef struct kbi_facts {
    struct kbi_fact {
        const char* name;
        char value[72];
    } of[KBI_FACTS];
    int n;
} kbi_facts;

static void kbi_fact(kbi_facts* f, const char* name, const char* value) {
    if (!*value || f->n == KBI_FACTS) return;
    f->of[f->n].name = name;
    snprintf(f->of[f->n++].value, sizeof f->of[0].value, "%.70s", value);
}

// Processors' worth of time that a control group, of either version, leaves its processes.
static void kbi_cgroup_limit(const char* folder, double* least) {
    char path[800], line[80];
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!kbi_first_line(path, line, (int)sizeof line) || sscanf(line, "%lf %lf", &quota, &period) != 2) {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (kbi_first_line(path, line, (int)sizeof line)) quota = strtod(line, NULL);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (kbi_first_line(path, line, (int)sizeof line)) period = strtod(line, NULL);
    }
    if (quota > 0 && period > 0 && !(quota / period >= *least)) *least = quota / period;
}

// Of the groups that this process is in, and all above them; NAN: none sets a limit.
static double kbi_cpu_limit(const char* root) {
    char path[300], line[400], folder[720];
    double least = NAN;
    snprintf(path, sizeof path, "%.200s/proc/self/cgroup", root);
    FILE* f = fopen(path, "r");
    while (f && kbi_get_line(line, (int)sizeof line, f)) { // "0::/path", "4:cpu,cpuacct:/path"
        char *which = strchr(line, ':'), *at = which ? strchr(which + 1, ':') : NULL;
        if (!at) continue;
        *at++ = 0;
        at[strcspn(at, "\n")] = 0;
        if (which[1] && !kbi_lists(which + 1, "cpu")) continue;
        for (char* slash = at; slash;) { // up to the root, which is ""
            slash = strrchr(at, '/');
            if (slash && !slash[1]) *slash = 0;
            snprintf(folder, sizeof folder, "%.200s/sys/fs/cgroup%s%.400s", root, which[1] ? "/cpu" : "", at);
            kbi_cgroup_limit(folder, &least);
            if (slash) *slash = 0;
        }
    }
    if (f) fclose(f);
    return least;
}

// What /proc/cpuinfo says of the first processor.
static void kbi_facts_cpu(kbi_facts* f, const char* root) {
    char path[300], line[4096], vendor[80] = "";
    snprintf(path, sizeof path, "%.200s/proc/cpuinfo", root);
    FILE* file = fopen(path, "r");
    while (file && kbi_get_line(line, (int)sizeof line, file) && line[0] != '\n') {
        char* colon = strchr(line, ':');
        if (!colon) continue;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "microcode", 9) == 0) kbi_fact(f, "microcode", colon + 1 + (colon[1] == ' '));
        if (strncmp(line, "flags", 5) != 0 || !strstr(line, " hypervisor")) continue;
        snprintf(path, sizeof path, "%.200s/sys/class/dmi/id/sys_vendor", root);
        kbi_first_line(path, vendor, (int)sizeof vendor);
        kbi_fact(f, "hypervisor", *vendor ? vendor : "yes");
    }
    if (file) fclose(file);
}

// root is empty but for tests.
static void kbi_facts_read(kbi_facts* f, const char* root) {
    static const struct {
        const char *name, *path;
    } files[] = { { "aslr", "/proc/sys/kernel/randomize_va_space" },
                  { "huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled" }, // "always [madvise] never"
                  { "numa_nodes", "/sys/devices/system/node/online" },
                  { "numa_balancing", "/proc/sys/kernel/numa_balancing" },
                  { "smt", "/sys/devices/system/cpu/smt/active" },
                  { "clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource" } };
    char path[400], line[256], number[40];
    memset(f, 0, sizeof *f);
    for (int i = 0; i < KBI_COUNT(files); i++) {
        snprintf(path, sizeof path, "%.200s%s", root, files[i].path);
        if (!kbi_first_line(path, line, (int)sizeof line)) continue;
        char* chosen = strchr(line, '[');
        if (chosen) chosen[strcspn(chosen, "]")] = 0;
        kbi_fact(f, files[i].name, chosen ? chosen + 1 : line);
    }
    kbi_facts_cpu(f, root);
    double limit = kbi_cpu_limit(root);
    if (kbi_finite(limit)) kbi_fact(f, "cpu_limit", kbi_number(limit, number));
    snprintf(path, sizeof path, "%.200s/.dockerenv", root);
    if (access(path, F_OK) == 0) kbi_fact(f, "container", "docker");
    snprintf(path, sizeof path, "%.200s/run/.containerenv", root);
    if (access(path, F_OK) == 0) kbi_fact(f, "container", "podman");
}

static void kbi_record_facts(kb_result* r, const kbi_facts* f) {
    kb_param* all = (kb_param*)kbi_arena_alloc(r->owned, sizeof(kb_param) * (size_t)(f->n + 1));
    memset(all, 0, sizeof(kb_param) * (size_t)(f->n + 1));
    for (int i = 0; i < f->n; i++) {
        char* end;
        all[i].name = f->of[i].name;
        all[i].r = kbi_real_of(f->of[i].value, &end);
        all[i].type = *end || !kbi_finite(all[i].r) || strchr(f->of[i].value, 'x') ? KB_AXIS_STRINGS : KB_AXIS_REALS;
        all[i].s = kbi_arena_text(r->owned, f->of[i].value);
    }
    r->environment.of = all;
    r->environment.n = f->n;
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
    if (c->place) r->place = c->place;
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

// Adds counters; of two of one name the first stays.
static void kbi_record_counters(kb_result* r, const kbi_counter* counters, int n) {
    size_t all = (size_t)(r->counters.n + n + 1), size = sizeof(kb_param) * all;
    kb_param *values = (kb_param*)kbi_arena_alloc(r->owned, size),
             *units = (kb_param*)kbi_arena_alloc(r->owned, size);
    if (r->counters.n) memcpy(values, r->counters.of, sizeof(kb_param) * (size_t)r->counters.n);
    if (r->counter_units.n) memcpy(units, r->counter_units.of, sizeof(kb_param) * (size_t)r->counter_units.n);
    r->counters.of = values;
    r->counter_units.of = units;
    for (const kbi_counter* c = counters; c < counters + n; c++) {
        kb_param *value = &values[r->counters.n], *unit = &units[r->counter_units.n];
        if (kbi_finite(kbi_object_number(&r->counters, c->name))) continue;
        r->counters.n++;
        value->name = unit->name = kbi_arena_text(r->owned, c->name);
        value->type = KB_AXIS_REALS;
        value->r = c->value;
        unit->type = KB_AXIS_STRINGS;
        unit->s = kbi_arena_text(r->owned, c->unit);
        r->counter_units.n += c->unit[0] != 0;
    }
}

static void kbi_record_measured(kb_result* r, const kbi_measured* m) {
    kbi_record_counters(r, m->counters, m->n_counters);
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
    r->cpu_clock_mhz = m->cpu_clock, r->cpu_waited = m->cpu_waited, r->cpu_stolen = m->cpu_stolen;
    r->preemptions = m->preemptions;
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
    const kbi_roofs* roofs = kbi_is(machine->backend, "cpu") ? &machine->core : &machine->roofs;
    double* gbps[] = { &r->copy_roof_gbps, &r->read_roof_gbps, &r->write_roof_gbps };
    for (int i = KBI_ROOF_COPY; i <= KBI_ROOF_WRITE; i++) {
        double roof = kbi_roof_known(roofs, i);
        *gbps[i] = roof > 0 ? roof * 1e-9 : (double)NAN;
    }
    if (machine->cpus[0]) r->cpus = kbi_arena_text(r->owned, machine->cpus);
    if (machine->governor[0]) r->cpu_governor = kbi_arena_text(r->owned, machine->governor);
    r->cpu_boost = machine->boost;
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
    char host[72], kernel_version[72], cpu[96], date[32], git_commit[48], build[160], run_id[24], binary[24],
        shard[24];
    char* command;
    uint64_t seed;
    kbi_facts facts;
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

KBI_SLOW_END
// The last bytes of a file are as good as the first: each of them reaches all bits.
static uint64_t kbi_hash_words(uint64_t h, const uint64_t* words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}
KBI_SLOW_BEGIN

// The program's file: /proc/self/exe, but for a program that is an argument of its loader (ld.so ./prog).
static int kbi_open_image(void) {
    int file = kbi_open_file("/proc/self/exe", O_RDONLY);
#ifdef __linux__
    char line[4400];
    unsigned long from, to, inode, at = getauxval(AT_PHDR);
    struct stat about;
    FILE* f = file < 0 ? NULL : fopen("/proc/self/maps", "r");
    while (f && kbi_get_line(line, (int)sizeof line, f)) {
        int path = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu %n", &from, &to, &inode, &path) < 3 || at < from || at >= to)
            continue;
        line[strcspn(line, "\n")] = 0;
        if (!line[path] || fstat(file, &about) != 0 || about.st_ino == inode) break;
        int image = kbi_open_file(line + path, O_RDONLY);
        if (image >= 0) close(file), file = image;
        break;
    }
    if (f) fclose(f);
#endif
    return file;
}

// The hash of this process's executable, of all its bytes; "" where it cannot be read.
static const char* kbi_binary_hash(void) {
    static char known[24];
    static uint64_t words[8192];
    if (known[0]) return known;
    int file = kbi_open_image();
    uint64_t h = 14695981039346656037u;
    size_t all = 0;
    for (;;) {
        size_t have = 0;
        for (ssize_t n;
             have < sizeof words && (n = kbi_read_some(file, (char*)words + have, sizeof words - have)) > 0;)
            have += (size_t)n;
        memset((char*)words + have, 0, (size_t)(-have & 7));
        h = kbi_hash_words(h, words, (have + 7) / 8);
        all += have;
        if (have < sizeof words) break;
    }
    if (file >= 0) close(file);
    words[0] = all;
    if (all) snprintf(known, sizeof known, "%016llx", (unsigned long long)kbi_hash_words(h, words, 1));
    return known;
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
    kbi_facts_read(&s->facts, "");
    kbi_session_commit(s);
    if (t) strftime(s->date, sizeof s->date, "%Y-%m-%dT%H:%M:%SZ", t);
    kbi_show_build(s->build, sizeof s->build, kbi_build());
    snprintf(s->binary, sizeof s->binary, "%s", kbi_binary_hash());
    for (int i = 0; i < argc; i++) kbi_putf(&command, "%s%s", i ? " " : "", argv[i]);
    s->command = command.s;
    s->seed = seed;
    uint64_t id = kbi_hash(14695981039346656037u ^ (uint64_t)kbi_now() ^ ((uint64_t)getpid() << 32), s->host);
    snprintf(s->run_id, sizeof s->run_id, "%016llx", (unsigned long long)kbi_hash(id, s->date));
}

// What was found inside of it, and why something was not.
static void kbi_record_inside(kb_result* r, const kbi_inside* in) {
    kbi_text message = { NULL, 0, 0 };
    r->inside = kbi_inside_copy(kbi_arena_alloc(r->owned, kbi_inside_size(in)), in);
    kbi_record_counters(r, kbi_counters_of(r->inside), (int)in->counters);
    if (!in->message[0]) return;
    kbi_putf(&message, "%s%snot looked into: %s", r->message ? r->message : "", r->message ? "; " : "", in->message);
    r->message = kbi_arena_text(r->owned, message.s);
    kbi_text_free(&message);
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
    kbi_record_facts(r, &s->facts);
    r->date = kbi_arena_text(r->owned, s->date);
    if (s->git_commit[0]) r->git_commit = kbi_arena_text(r->owned, s->git_commit);
    r->run_id = kbi_arena_text(r->owned, s->run_id);
    if (s->binary[0]) r->binary = kbi_arena_text(r->owned, s->binary);
    r->command = kbi_arena_text(r->owned, s->command);
    if (s->shard[0]) r->shard = kbi_arena_text(r->owned, s->shard);
    r->seed = (int64_t)s->seed;
    r->kbench_version = KBENCH_VERSION;
    r->schema = KBI_SCHEMA;
}

/*---------------------------------------------------------------------------------------------------------------
  >>json      record: one object per case; never NaN, never Infinity, never a comma for a point.
              Public: kb_json      Used by: programs, >>store, >>resume, >>gate
---------------------------------------------------------------------------------------------------------------*/

static void kbi_json_whole(kbi_text* t, int64_t x) {
    char text[24], *p = text + sizeof text;
    if (x == KB_NONE) { // also what has no positive counterpart
        kbi_puts(t, "null");
        return;
    }
    for (int64_t left = x < 0 ? -x : x; left || p == text + sizeof text; left /= 10) *--p = (char)('0' + left % 10);
    if (x < 0) *--p = '-';
    kbi_put(t, p, (size_t)(text + sizeof text - p));
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
        kbi_puts(t, i ? ", \"" : "{\"");
        kbi_puts(t, kbi_keys[i].name);
        kbi_puts(t, "\": ");
        kbi_json_field(t, kbi_field(r, &kbi_keys[i]), kbi_keys[i].kind);
    }
    kbi_puts(t, "}");
}

int64_t kb_json(const kb_result* result, char* buffer, int64_t size) {
    kbi_text t = { NULL, 0, 0 };
    kbi_json_result(&t, result);
    int64_t all = (int64_t)t.n, n = KBI_MIN(all, size - 1);
    if (n >= 0) memcpy(buffer, t.s, (size_t)n), buffer[n] = 0;
    kbi_text_free(&t);
    return all;
}

/*---------------------------------------------------------------------------------------------------------------
  >>parse     record: JSON taken apart, a buffer at a time: texts, numbers, lists; it trusts nothing.
              Public: none      Used by: >>reader, program
---------------------------------------------------------------------------------------------------------------*/

#if KBI_REPORT
enum {
    KBI_READ_BUFFER = 1 << 16,
    KBI_READ_TEXT = 1 << 20, // bytes of a text at most
    KBI_READ_NUMBER = 100,
    KBI_READ_DEPTH = 32 // of lists in lists, in what this version does not know
};

typedef struct kbi_records { // of one or several files, in their order
    kb_result* of;           // own nothing each: all that they point to is in the arena
    int64_t n, size;
    kbi_arena arena;
    kbi_map texts, cases; // texts that are there already; the case of a run on a device
    int64_t replaced;     // records that a later one of the same case and run took the place of
} kbi_records;

typedef struct kbi_reader {
    const char* path;
    int file;
    int64_t line;
    char *buffer, *at, *end; // what was read and not yet looked at
    bool lines, torn;        // a record a line; the last one breaks off
    bool broken;             // the system gave no more of it
    bool newer, strange;     // a later schema, flags that this version does not know: said once
    kbi_text token;          // the last text
    kbi_records* to;
    kb_result blank;
    double* values; // of the list that is being read
    int64_t n_values, values_size;
} kbi_reader;

// --- numbers ---

#ifdef __SIZEOF_INT128__
KBI_SLOW_END
// w times 10^exponent, rounded as strtod does; false: not here.
static bool kbi_decimal(uint64_t w, int exponent, double* out) {
    if (!w) return *out = 0, true;
    if (exponent <= -KBI_FIVES || exponent >= KBI_FIVES) return false;
    int zeros = __builtin_clzll(w), e = exponent;
    kbi_wide all = w;
    bool more = false; // something behind the last bit
    if (exponent >= 0) {
        all *= kbi_fives[exponent];
    } else {
        uint64_t five = kbi_fives[-exponent];
        kbi_wide top = (kbi_wide)(w << zeros) << 64;
        all = top / five;
        more = all * five != top;
        e -= zeros + 64;
    }
    uint64_t high = (uint64_t)(all >> 64);
    int shift = (high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll((uint64_t)all)) - 53;
    if (shift <= 0) return *out = ldexp((double)(uint64_t)all, e), true; // more: never, there are 64 bits then
    uint64_t m = (uint64_t)(all >> shift);
    kbi_wide below = all - ((kbi_wide)m << shift), half = (kbi_wide)1 << (shift - 1);
    m += below > half || (below == half && (more || (m & 1)));
    *out = ldexp((double)m, e + shift);
    return true;
}
#else
static bool kbi_decimal(uint64_t w, int exponent, double* out) { return (void)w, (void)exponent, (void)out, false; }
#endif

KBI_SLOW_END
typedef struct kbi_scanned { // a number as JSON has them
    double x;
    int64_t i;
    bool whole, fits; // without point and exponent; into i
} kbi_scanned;

// The number that begins there, and where it ends; at_fault: where it ceases to be one. The text ends with a zero.
static bool kbi_scan(const char* s, kbi_scanned* out, const char** end) {
    const char *p = s + (*s == '-'), *first = p;
    uint64_t w = 0;
    int n = 0, exponent = 0, said = 0; // digits from the first that is no 0; powers of ten that they lack
    for (; *p >= '0' && *p <= '9'; p++)
        if (n += n || *p != '0', n <= 19) w = 10 * w + (uint64_t)(*p - '0');
    bool good = p > first && (p == first + 1 || *first != '0');
    out->whole = *p != '.' && (*p | 32) != 'e';
    out->fits = n <= 19 && w <= INT64_MAX;
    out->i = !out->fits ? 0 : *s == '-' ? -(int64_t)w : (int64_t)w;
    if (*p == '.' && good) {
        const char* point = p;
        for (p++; *p >= '0' && *p <= '9'; p++)
            if (n += n || *p != '0', n <= 19) w = 10 * w + (uint64_t)(*p - '0'), exponent--;
        good = p > point + 1;
    }
    if ((*p | 32) == 'e' && good) {
        const char* sign = ++p;
        p += *p == '-' || *p == '+';
        for (first = p; *p >= '0' && *p <= '9'; p++) said = KBI_MIN(10 * said + (*p - '0'), 10000);
        exponent += *sign == '-' ? -said : said;
        good = p > first;
    }
    *end = p;
    if (!good) return false;
    if (n > 19 || !kbi_decimal(w, exponent, &out->x)) {
        char* stop;
        out->x = kbi_real_of(s, &stop);
    } else if (*s == '-')
        out->x = -out->x;
    return true;
}

// The same text twice is kept once: a run's records say much that is the same for all of them.
static const char* kbi_records_text(kbi_records* to, const char* s, size_t n) {
    uint64_t key = kbi_hash(14695981039346656037u, s);
    kbi_mapped* slot = kbi_map_find(&to->texts, key);
    if (slot->key && strcmp((const char*)slot->at, s) == 0) return (const char*)slot->at;
    const char* kept = kbi_arena_text_n(&to->arena, s, n);
    if (!slot->key) kbi_map_take(&to->texts, slot, key, (intptr_t)kept);
    return kept;
}

// --- bytes ---

// Reads on, behind what was not yet looked at; false: there is no more.
static bool kbi_reader_fill(kbi_reader* r) {
    size_t left = (size_t)(r->end - r->at);
    ssize_t n;
    memmove(r->buffer, r->at, left);
    do n = kbi_read_some(r->file, r->buffer + left, KBI_READ_BUFFER - left);
    while (n < 0 && errno == EINTR);
    r->at = r->buffer;
    r->end = r->buffer + left + KBI_MAX(n, (ssize_t)0);
    *r->end = 0;
    if (n < 0 && !r->broken) kbi_error("reading %s failed: %s", r->path, strerror(errno));
    r->broken |= n < 0;
    return n > 0;
}

// So many bytes lie in the buffer, or all that are left.
static inline void kbi_reader_ahead(kbi_reader* r, int n) {
    while (r->end - r->at < n && kbi_reader_fill(r)) {}
}

static inline int kbi_peek(kbi_reader* r) { // -1: the end
    return r->at < r->end || kbi_reader_fill(r) ? (unsigned char)*r->at : -1;
}

// What stands there is not what a record has there; at the end of a line or of the file it breaks off instead.
KBI_PRINTF(2, 3) static bool kbi_reader_fail(kbi_reader* r, const char* format, ...) {
    char what[200];
    int c = kbi_peek(r);
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    r->torn = c < 0 || (r->lines && (c == '\n' || c == 0));
    if (r->broken || (r->torn && r->lines)) return false;
    if (r->torn)
        kbi_error("%s:%lld: the file ends in the middle of a record; what was finished is in its run's --jsonl file, "
                  "where it had one",
                  r->path, (long long)r->line);
    else if (c > 0x20 && c < 0x7f)
        kbi_error("%s:%lld: %s, not '%c': this is no file that --json or --jsonl wrote, or it was changed since",
                  r->path, (long long)r->line, what, c);
    else
        kbi_error(
            "%s:%lld: %s, not byte 0x%02x: this is no file that --json or --jsonl wrote, or it was changed since",
            r->path, (long long)r->line, what, (unsigned)c);
    return false;
}

// What stands there is sound, and no record has it.
KBI_PRINTF(2, 3) static bool kbi_reader_wrong(kbi_reader* r, const char* format, ...) {
    char what[300];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    r->torn = false;
    kbi_error("%s:%lld: %s", r->path, (long long)r->line, what);
    return false;
}

// The next byte that is no white space; a record a line ends with the line.
static int kbi_reader_space(kbi_reader* r, bool inside) {
    for (;; r->at++) {
        int c = kbi_peek(r);
        if (c == '\n' && !(inside && r->lines))
            r->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return c;
    }
}

static bool kbi_reader_utf8(const kbi_text* t) {
    for (size_t i = 0; i < t->n;) {
        int n = kbi_utf8((const unsigned char*)t->s + i);
        if (!n) return false;
        i += (size_t)n;
    }
    return true;
}

static bool kbi_reader_hex(kbi_reader* r, unsigned* out) {
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int c = kbi_peek(r);
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (c < 0 || digit < 0) return kbi_reader_fail(r, "four hexadecimal digits have to follow \\u");
        *out = 16 * *out + (unsigned)digit;
    }
    return true;
}

static void kbi_reader_put(kbi_text* t, unsigned c) { // as UTF-8; what has none there is the replacement character
    char s[4];
    size_t n = 0;
    if (c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff) c = 0xfffd;
    if (c < 0x80)
        s[n++] = (char)c;
    else {
        if (c >= 0x10000) s[n++] = (char)(0xf0 | c >> 18), s[n++] = (char)(0x80 | (c >> 12 & 63));
        if (c >= 0x800 && c < 0x10000) s[n++] = (char)(0xe0 | c >> 12);
        if (c >= 0x800) s[n++] = (char)(0x80 | (c >> 6 & 63));
        if (c < 0x800) s[n++] = (char)(0xc0 | c >> 6);
        s[n++] = (char)(0x80 | (c & 63));
    }
    kbi_put(t, s, n);
}

static bool kbi_reader_escape(kbi_reader* r) { // behind the backslash
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = kbi_peek(r);
    const char* at = c > 0 ? strchr(from, c) : NULL;
    unsigned first, second;
    if (at) return kbi_put(&r->token, &to[at - from], 1), r->at++, true;
    if (c != 'u') return kbi_reader_fail(r, "a backslash makes \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u");
    r->at++;
    if (!kbi_reader_hex(r, &first)) return false;
    while (first >= 0xd800 && first < 0xdc00 && kbi_peek(r) == '\\') { // the first half of a pair
        r->at++;
        if (kbi_peek(r) != 'u') return kbi_reader_put(&r->token, first), kbi_reader_escape(r);
        r->at++;
        if (!kbi_reader_hex(r, &second)) return false;
        if (second >= 0xdc00 && second < 0xe000)
            return kbi_reader_put(&r->token, 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)), true;
        kbi_reader_put(&r->token, first);
        first = second;
    }
    return kbi_reader_put(&r->token, first), true;
}

// A text into r->token.
static bool kbi_read_text(kbi_reader* r) {
    bool high = false;
    r->token.n = 0;
    kbi_put(&r->token, "", 0);
    if (kbi_peek(r) != '"') return kbi_reader_fail(r, "a text has to stand here");
    for (r->at++;;) {
        int c = kbi_peek(r);
        const char* p = r->at;
        while (p < r->end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\') high |= (*p & 0x80) != 0, p++;
        kbi_put(&r->token, r->at, (size_t)(p - r->at));
        if (p > r->at) c = 0x20;
        r->at += p - r->at;
        if (r->token.n > KBI_READ_TEXT) return kbi_reader_wrong(r, "a text of more than 1 MiB: no record has that");
        if (c == '"' && ++r->at) break;
        if (c == '\\' && (++r->at, !kbi_reader_escape(r))) return false;
        if (c < 0x20) return kbi_reader_fail(r, "a text has to end with a quotation mark on its line");
    }
    return !high || kbi_reader_utf8(&r->token) ||
           kbi_reader_wrong(r, "a text that is no UTF-8: the file was damaged, or written by another program");
}

static bool kbi_read_number(kbi_reader* r, kbi_scanned* out) {
    const char *begin, *end;
    kbi_reader_ahead(r, KBI_READ_NUMBER + 1);
    bool good = kbi_scan(begin = r->at, out, &end);
    r->at += end - begin;
    if (!good) return kbi_reader_fail(r, "a number has to stand here");
    if (end - begin > KBI_READ_NUMBER)
        return kbi_reader_wrong(r, "a number of more than %d characters: no record has that", (int)KBI_READ_NUMBER);
    return kbi_finite(out->x) || kbi_reader_wrong(r, "%.*s is more than a number can be", (int)(end - begin), begin);
}

static bool kbi_read_word(kbi_reader* r, const char* word) {
    for (const char* p = word; *p; p++, r->at++)
        if (kbi_peek(r) != (unsigned char)*p) return kbi_reader_fail(r, "%s has to stand here", word);
    return true;
}

// --- lists and objects ---

// 1: an item comes; 0: the list has ended; -1: neither. n: how many were there.
static int kbi_read_item(kbi_reader* r, char close, int64_t n) {
    int c = kbi_reader_space(r, true);
    if (c == close) return r->at++, 0;
    if (n && c != ',') return kbi_reader_fail(r, "a comma or %c has to stand here", close), -1;
    if (n) r->at++;
    return n ? (kbi_reader_space(r, true), 1) : 1;
}

static bool kbi_read_key(kbi_reader* r) {
    if (!kbi_read_text(r)) return false;
    if (kbi_reader_space(r, true) != ':') return kbi_reader_fail(r, "a colon has to follow \"%.60s\"", r->token.s);
    r->at++;
    return kbi_reader_space(r, true), true;
}
KBI_SLOW_BEGIN

static bool kbi_read_any(kbi_reader* r, int depth) { // of what this version does not know
    int c = kbi_peek(r), more;
    kbi_scanned number;
    if (c == '"') return kbi_read_text(r);
    if (c == 'n') return kbi_read_word(r, "null");
    if (c == 't' || c == 'f') return kbi_read_word(r, c == 't' ? "true" : "false");
    if (c != '[' && c != '{') return kbi_read_number(r, &number);
    if (depth == KBI_READ_DEPTH) return kbi_reader_wrong(r, "more than %d lists in lists", (int)KBI_READ_DEPTH);
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, c == '[' ? ']' : '}', n)) > 0; n++) {
        if (c == '{' && !kbi_read_key(r)) return false;
        if (!kbi_read_any(r, depth + 1)) return false;
    }
    return more == 0;
}

#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>reader    record: files of records read back, whatever is in them.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

#if KBI_REPORT
enum { KBI_READ_PARAMS = 256 }; // axes of a case at most

static bool kbi_read_params(kbi_reader* r, const kbi_key* key, kbi_field_params* out) {
    kb_param list[KBI_READ_PARAMS];
    int64_t n = 0;
    int more;
    r->at++;
    for (; (more = kbi_read_item(r, '}', n)) > 0; n++) {
        kb_param* p = &list[n];
        kbi_scanned number;
        if (n == KBI_READ_PARAMS)
            return kbi_reader_wrong(r, "%s: more than %d values", key->name, (int)KBI_READ_PARAMS);
        memset(p, 0, sizeof *p);
        if (!kbi_read_key(r)) return false;
        p->name = kbi_records_text(r->to, r->token.s, r->token.n);
        for (int64_t i = 0; i < n; i++)
            if (kbi_is(list[i].name, p->name))
                return kbi_reader_wrong(r, "%s: %.60s is there twice", key->name, p->name);
        p->type = KB_AXIS_REALS;
        p->r = NAN;
        int c = kbi_peek(r);
        if (c == '"') {
            if (!kbi_read_text(r)) return false;
            p->type = KB_AXIS_STRINGS;
            p->s = kbi_records_text(r->to, r->token.s, r->token.n);
        } else if (c == 'n') {
            if (!kbi_read_word(r, "null")) return false;
        } else {
            if (!kbi_read_number(r, &number)) return false;
            p->r = number.x;
            bool minus_zero = !number.x && 1 / number.x < 0;
            if (number.whole && number.fits && !minus_zero) p->type = KB_AXIS_INTS, p->i = number.i;
        }
    }
    if (more < 0) return false;
    kb_param* kept = (kb_param*)kbi_arena_alloc(&r->to->arena, sizeof(kb_param) * (size_t)KBI_MAX(n, (int64_t)1));
    if (n) memcpy(kept, list, sizeof(kb_param) * (size_t)n);
    out->of = kept;
    out->n = n;
    return true;
}

KBI_SLOW_END
static bool kbi_read_samples(kbi_reader* r, kbi_field_samples* out) {
    int64_t n = 0;
    int more;
    kbi_scanned number;
    r->at++;
    for (; (more = kbi_read_item(r, ']', n)) > 0; n++) {
        if (n == r->values_size) {
            r->values_size = 2 * n + 64;
            r->values = (double*)kbi_grow(r->values, sizeof(double) * (size_t)r->values_size);
        }
        number.x = NAN;
        if (kbi_peek(r) == 'n' ? !kbi_read_word(r, "null") : !kbi_read_number(r, &number)) return false;
        r->values[n] = number.x;
    }
    if (more < 0) return false;
    double* kept = (double*)kbi_arena_alloc(&r->to->arena, sizeof(double) * (size_t)KBI_MAX(n, (int64_t)1));
    if (n) memcpy(kept, r->values, sizeof(double) * (size_t)n);
    out->of = kept;
    out->n = n;
    return true;
}
KBI_SLOW_BEGIN

static bool kbi_read_flags(kbi_reader* r, kbi_field_flags* out) {
    int more;
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, ']', n)) > 0; n++) {
        if (!kbi_read_text(r)) return false;
        int f = 0;
        while (f < KB_FLAG_COUNT && !kbi_is(kb_flag_name((kb_flag)f), r->token.s)) f++;
        if (f < KB_FLAG_COUNT)
            *out |= (uint64_t)1 << f;
        else if (!r->strange)
            kbi_warn("%s:%lld: this version knows no flag %.40s; such flags are left out", r->path,
                     (long long)r->line, r->token.s),
                r->strange = true;
    }
    return more == 0;
}

static bool kbi_read_status(kbi_reader* r, kb_status* out) {
    if (!kbi_read_text(r)) return false;
    for (int s = KB_OK; s <= KB_SKIPPED; s++)
        if (kbi_is(kbi_status_name((kb_status)s), r->token.s)) return *out = (kb_status)s, true;
    return kbi_reader_wrong(r, "status is ok, failed or skipped, not '%.40s'", r->token.s);
}

static bool kbi_read_verdict(kbi_reader* r, kb_verdict* out) {
    if (!kbi_read_text(r)) return false;
    for (int v = KB_FASTER; v <= KB_UNRESOLVED; v++)
        if (kbi_is(kbi_verdict_name((kb_verdict)v), r->token.s)) return *out = (kb_verdict)v, true;
    return kbi_reader_wrong(r, "verdict is FASTER, SLOWER, EQUIVALENT or UNRESOLVED, not '%.40s'", r->token.s);
}

KBI_SLOW_END
static bool kbi_read_whole(kbi_reader* r, const kbi_key* key, int64_t* out) {
    kbi_scanned x;
    if (!kbi_read_number(r, &x)) return false;
    if (!x.whole) x.fits = fabs(x.x) < 9007199254740992.0;
    if (!x.whole && x.fits) x.i = (int64_t)x.x, x.fits = (double)x.i == x.x;
    if (!x.fits || x.i == KB_NONE)
        return kbi_reader_wrong(r, "%s is a whole number of at most 63 bits, not %.17g", key->name, x.x);
    return *out = x.i, true;
}

// Whether the text that stands there is the one that the record before has, as most are.
static bool kbi_reader_again(kbi_reader* r, const kbi_key* key, kbi_field_text* out) {
    const kb_result* before = r->to->n ? &r->to->of[r->to->n - 1] : NULL;
    const char* s = before ? *(const kbi_field_text*)kbi_field(before, key) : NULL;
    const char *p = s, *q = r->at + 1;
    while (p && *p && *p == *q && *p != '\\' && (unsigned char)*p >= 0x20) p++, q++;
    if (!p || *p || *q != '"') return false; // the buffer ends with a zero
    r->at += q + 1 - r->at;
    *out = s;
    return true;
}

// Whether that key stands there, written as kbench writes it; it is read then.
static bool kbi_read_key_next(kbi_reader* r, const char* name) {
    const char* q;
    kbi_reader_ahead(r, 64);
    if (*r->at != '"') return false;
    for (q = r->at + 1; *name && *name == *q; name++) q++;
    if (*name || q[0] != '"' || q[1] != ':' || q[2] != ' ') return false;
    r->at += q + 3 - r->at;
    return true;
}

// The value of a key into its field, which is cleared.
static bool kbi_read_field(kbi_reader* r, const kbi_key* key, void* field) {
    static const char* const wanted[] = { "a text",          "a number",  "a whole number",
                                          "true or false",   "an object", "a list of numbers",
                                          "a list of flags", "a text",    "a text" };
    int c = kbi_peek(r);
    bool fits = true;
    kbi_scanned number;
    if (c == 'n') return kbi_read_word(r, "null");
    switch (key->kind) {
    case KBI_KIND_text:
    case KBI_KIND_status:
    case KBI_KIND_verdict: fits = c == '"'; break;
    case KBI_KIND_real:
    case KBI_KIND_whole: fits = c == '-' || (c >= '0' && c <= '9'); break;
    case KBI_KIND_truth: fits = c == 't' || c == 'f'; break;
    case KBI_KIND_params: fits = c == '{'; break;
    case KBI_KIND_samples:
    case KBI_KIND_flags: fits = c == '['; break;
    }
    if (!fits) return kbi_reader_fail(r, "%s is %s or null", key->name, wanted[key->kind]);
    switch (key->kind) {
    case KBI_KIND_text:
        if (kbi_reader_again(r, key, (kbi_field_text*)field)) return true;
        return kbi_read_text(r) && (*(kbi_field_text*)field = kbi_records_text(r->to, r->token.s, r->token.n), true);
    case KBI_KIND_real: return kbi_read_number(r, &number) && (*(kbi_field_real*)field = number.x, true);
    case KBI_KIND_whole: return kbi_read_whole(r, key, (kbi_field_whole*)field);
    case KBI_KIND_truth: *(kbi_field_truth*)field = c == 't'; return kbi_read_word(r, c == 't' ? "true" : "false");
    case KBI_KIND_params: return kbi_read_params(r, key, (kbi_field_params*)field);
    case KBI_KIND_samples: return kbi_read_samples(r, (kbi_field_samples*)field);
    case KBI_KIND_flags: return kbi_read_flags(r, (kbi_field_flags*)field);
    case KBI_KIND_status: return kbi_read_status(r, (kbi_field_status*)field);
    case KBI_KIND_verdict: return kbi_read_verdict(r, (kbi_field_verdict*)field);
    }
    return false;
}

// A key's place in the table, -1: it is not there. Files have them in the table's order, so the next is tried first.
static int kbi_read_key_place(const char* name, int next) {
    if (next < KBI_COUNT(kbi_keys) && strcmp(kbi_keys[next].name, name) == 0) return next;
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++)
        if (strcmp(kbi_keys[i].name, name) == 0) return i;
    return -1;
}

static bool kbi_read_record(kbi_reader* r, kb_result* out) {
    bool seen[KBI_COUNT(kbi_keys)] = { false };
    int at = -1, more;
    *out = r->blank;
    if (kbi_peek(r) != '{') return kbi_reader_fail(r, "a record has to begin with {");
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, '}', n)) > 0; n++) {
        int key = at + 1;
        if (key == KBI_COUNT(kbi_keys) || !kbi_read_key_next(r, kbi_keys[key].name)) {
            if (!kbi_read_key(r)) return false;
            key = kbi_read_key_place(r->token.s, at + 1);
        }
        if (key >= 0 && seen[key]) return kbi_reader_wrong(r, "%s is there twice in a record", kbi_keys[key].name);
        if (key < 0 ? !kbi_read_any(r, 0) : !kbi_read_field(r, &kbi_keys[key], (char*)out + kbi_keys[key].offset))
            return false;
        if (key >= 0) seen[at = key] = true;
    }
    if (more < 0) return false;
    if (!out->name || !out->operation)
        return kbi_reader_wrong(
            r, "a record without its %s: --load reads what --json and --jsonl wrote, no other format",
            out->name ? "operation" : "name");
    if (out->schema > KBI_SCHEMA && !r->newer)
        kbi_warn(
            "%s:%lld: written by a later version (schema %lld, here %d): keys that this one does not know are left "
            "out",
            r->path, (long long)r->line, (long long)out->schema, KBI_SCHEMA),
            r->newer = true;
    return true;
}
KBI_SLOW_BEGIN

// A record behind the others, or in the place of an earlier one of the same case, device and run.
static void kbi_records_add(kbi_records* to, const kb_result* r) {
    char device[32];
    snprintf(device, sizeof device, "|%lld|", (long long)r->device);
    uint64_t key = kbi_hash(kbi_hash(kbi_hash(14695981039346656037u, r->run_id ? r->run_id : ""), device), r->name);
    kbi_mapped* slot = kbi_map_find(&to->cases, key);
    if (slot->key && r->run_id) {
        kb_result* before = &to->of[slot->at];
        if (kbi_is(before->run_id, r->run_id) && before->device == r->device && kbi_is(before->name, r->name)) {
            *before = *r;
            to->replaced++;
            return;
        }
    }
    if (to->n == to->size) {
        to->size = 2 * to->size + 64;
        to->of = (kb_result*)kbi_grow(to->of, sizeof(kb_result) * (size_t)to->size);
    }
    if (!slot->key && r->run_id) kbi_map_take(&to->cases, slot, key, (intptr_t)to->n);
    to->of[to->n++] = *r;
}

static void kbi_records_object(kbi_records* to, kbi_field_params* object) {
    kb_param* all = (kb_param*)kbi_arena_alloc(&to->arena, sizeof(kb_param) * (size_t)(object->n + 1));
    for (int64_t i = 0; i < object->n; i++) {
        all[i] = object->of[i];
        all[i].name = kbi_records_text(to, all[i].name, strlen(all[i].name));
        if (all[i].s) all[i].s = kbi_records_text(to, all[i].s, strlen(all[i].s));
    }
    object->of = all;
}

// A copy of a record that owns what it points to.
static void kbi_records_keep(kbi_records* to, const kb_result* from) {
    kb_result r = *from;
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        char* field = (char*)&r + kbi_keys[i].offset;
        kbi_field_text* text = (kbi_field_text*)field;
        kbi_field_samples* samples = (kbi_field_samples*)field;
        if (kbi_keys[i].kind == KBI_KIND_params) kbi_records_object(to, (kbi_field_params*)field);
        if (kbi_keys[i].kind == KBI_KIND_text && *text) *text = kbi_records_text(to, *text, strlen(*text));
        if (kbi_keys[i].kind != KBI_KIND_samples || !samples->n) continue;
        double* values = (double*)kbi_arena_alloc(&to->arena, sizeof(double) * (size_t)samples->n);
        memcpy(values, samples->of, sizeof(double) * (size_t)samples->n);
        samples->of = values;
    }
    r.owned = NULL;
    if (r.inside) r.inside = kbi_inside_copy(kbi_arena_alloc(&to->arena, kbi_inside_size(r.inside)), r.inside);
    kbi_records_add(to, &r);
}

static void kbi_records_free(kbi_records* r) {
    KBENCH_FREE(r->of);
    KBENCH_FREE(r->texts.slots);
    KBENCH_FREE(r->cases.slots);
    kbi_arena_free(&r->arena);
    memset(r, 0, sizeof *r);
}

// One record a line; a line that breaks off is one that a run was ended in, or that a full disk cut.
static bool kbi_read_lines(kbi_reader* r) {
    kb_result record;
    int c;
    for (r->lines = true; (c = kbi_reader_space(r, false)) >= 0;) {
        int64_t line = r->line;
        bool good = kbi_read_record(r, &record);
        if (!good && !r->torn) return false;
        if (good && (c = kbi_reader_space(r, true)) >= 0 && c != '\n')
            return kbi_reader_fail(r, "a record ends with its line");
        if (good) kbi_records_add(r->to, &record);
        if (good) continue;
        kbi_warn(
            "%s:%lld: this line breaks off in the middle of a record, and is left out; the case was being written "
            "when its run ended",
            r->path, (long long)line);
        for (; (c = kbi_peek(r)) >= 0 && c != '\n'; r->at++) {}
    }
    return true;
}

static bool kbi_read_array(kbi_reader* r) {
    kb_result record;
    int more;
    r->at++;
    for (int64_t n = 0; (more = kbi_read_item(r, ']', n)) > 0; n++) {
        if (!kbi_read_record(r, &record)) return false;
        kbi_records_add(r->to, &record);
    }
    if (more < 0) return false;
    return kbi_reader_space(r, false) < 0 || kbi_reader_fail(r, "nothing may follow the records");
}

static bool kbi_read_open(kbi_reader* r) {
    int c = kbi_reader_space(r, false);
    if (c == 0xef) { // the mark of UTF-8
        if (!kbi_read_word(r, "\xef\xbb\xbf")) return false;
        c = kbi_reader_space(r, false);
    }
    if (c == '[') return kbi_read_array(r);
    if (c < 0 || c == '{' || c == 0) return kbi_read_lines(r);
    return kbi_reader_fail(r, "records have to begin with [ or {");
}

// The records of a file behind those that are there, - for stdin; false after an error message.
static bool kbi_read_records(kbi_records* to, const char* path) {
    kbi_reader r;
    memset(&r, 0, sizeof r);
    bool standard = kbi_is(path, "-");
    r.path = standard ? "stdin" : path;
    r.line = 1;
    r.to = to;
    r.file = standard ? 0 : kbi_open_file(path, O_RDONLY);
    if (r.file < 0) return kbi_error("cannot read %s: %s", path, strerror(errno)), false;
    r.buffer = r.at = r.end = (char*)kbi_grow(NULL, KBI_READ_BUFFER + 1);
    *r.buffer = 0;
    kbi_result_clear(&r.blank);
    KBENCH_FREE(r.blank.owned); // nothing of its own: the arena of all has it
    r.blank.owned = NULL;
    bool good = kbi_read_open(&r) && !r.broken;
    if (!standard) close(r.file);
    KBENCH_FREE(r.buffer);
    KBENCH_FREE(r.values);
    kbi_text_free(&r.token);
    return good;
}

#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>store     record: files that survive a crash.
              Public: kb_write_json      Used by: programs, program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_out { // a file, and what it had no room for yet
    int file;
    kbi_text waiting;
} kbi_out;

typedef struct kbi_store {
    const char *json, *jsonl;
    char* temporary; // beside json, renamed over it at the end; NULL: json is written in place
    kbi_out array, lines;
    char path[4096]; // json from the root on and behind all links, since a body may change the directory
    int64_t n;
    unsigned failed; // bits: json, jsonl
    bool keep;       // results of an earlier run are worth more than an empty array
} kbi_store;
enum { KBI_JSON_FAILED = 1, KBI_JSONL_FAILED = 2 };

// Writes what is there; false: errno says why some of it still waits. A reader may take so long for each piece.
static bool kbi_out_flush(kbi_out* o, int milliseconds) {
    size_t at = 0;
    while (at < o->waiting.n) {
        ssize_t n = write(o->file, o->waiting.s + at, o->waiting.n - at);
        if (n > 0) at += (size_t)n;
        if (n > 0 || (n < 0 && errno == EINTR)) continue;
        if (n == 0) errno = ENOSPC;
        if (errno != EAGAIN || !kbi_writable(o->file, milliseconds)) break;
    }
    if (at) memmove(o->waiting.s, o->waiting.s + at, o->waiting.n - at), o->waiting.n -= at;
    return !o->waiting.n;
}

// Whether it is on the disk; what is no file on one has no such thing.
static bool kbi_out_sync(kbi_out* o) {
    return fsync(o->file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

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

// The temporary file's path but for its number: beside the file, in its name, or where that leaves no room in another.
static void kbi_temporary_stem(kbi_text* stem, const char* path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    kbi_put(stem, path, (size_t)(name - path));
    if (strlen(name) <= 240)
        kbi_putf(stem, "%s.tmp", name);
    else
        kbi_putf(stem, "kbench-%016llx.tmp", (unsigned long long)kbi_hash(14695981039346656037u, name));
}

// Removes what runs left beside this file when they were killed: where there is no process of that number.
static void kbi_remove_all_left(const char* path) {
    kbi_text stem = { NULL, 0, 0 }, folder = { NULL, 0, 0 };
    kbi_temporary_stem(&stem, path);
    const char *slash = strrchr(stem.s, '/'), *name = slash ? slash + 1 : stem.s;
    size_t n = strlen(name);
    kbi_put(&folder, slash ? stem.s : ".", slash ? (size_t)(slash - stem.s) + 1 : 1);
    DIR* d = opendir(folder.s);
    for (struct dirent* e; d && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, name, n) != 0) continue;
        const char* number = e->d_name + n;
        if (strlen(number) < 1 || strlen(number) > 9 || number[strspn(number, "0123456789")]) continue;
        if (kill((pid_t)strtol(number, NULL, 10), 0) == 0 || errno != ESRCH) continue;
        kbi_text left = { NULL, 0, 0 };
        kbi_putf(&left, "%s%s", slash ? folder.s : "", e->d_name);
        kbi_remove_left(left.s);
        kbi_text_free(&left);
    }
    if (d) closedir(d);
    kbi_text_free(&folder);
    kbi_text_free(&stem);
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

// A device, a pipe or a file that is written where it is. Nobody may be reading a pipe, now or ever.
static int kbi_open_in_place(const char* path, int flags) {
    struct stat about;
    bool pipe = stat(path, &about) == 0 && S_ISFIFO(about.st_mode);
    if (!pipe) return kbi_open_file(path, O_WRONLY | flags);
    for (int i = 0;; i++) {
        int file = kbi_open_file(path, O_WRONLY | O_NONBLOCK);
        if (file >= 0 || errno != ENXIO || i == 20) return file;
        kbi_readable(-1, 100); // its reader may be about to start
    }
}

static const char* kbi_why_not_open(int error) { return error == ENXIO ? "nobody reads this pipe" : strerror(error); }

// Whether a plain file begins as something else than what is to be written, which has this mark at its begin, or NULL
// as records do: somebody's source, named by mistake.
static bool kbi_is_foreign(const char* path, const char* mark) {
    char some[256];
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    int file = kbi_open_file(path, O_RDONLY);
    ssize_t n = file < 0 ? 0 : kbi_read_some(file, some, sizeof some - 1);
    if (file >= 0) close(file);
    some[KBI_MAX(n, 0)] = 0;
    const char* first = some + strspn(some, " \t\r\n");
    return n > 0 && (mark ? !strstr(some, mark) : *first != '[' && *first != '{');
}

static bool kbi_store_open_json(kbi_store* s) {
    struct stat about;
    if (kbi_is(s->json, "-")) return s->array.file = 1, true;
    if (stat(s->json, &about) == 0 && S_ISREG(about.st_mode) && realpath(s->json, s->path)) s->json = s->path;
    bool plain = lstat(s->json, &about) != 0 || S_ISREG(about.st_mode); // else a link to nowhere, too
    char here[4096];
    if (plain && *s->json != '/' && getcwd(here, sizeof here)) {
        if (snprintf(s->path, sizeof s->path, "%s/%s", here, s->json) < (int)sizeof s->path) s->json = s->path;
    }
    kbi_text name = { NULL, 0, 0 };
    kbi_temporary_stem(&name, s->json);
    kbi_putf(&name, "%ld", (long)getpid());
    if (plain) kbi_remove_all_left(s->json);
    s->array.file = plain ? kbi_open_temporary(name.s) : kbi_open_in_place(s->json, O_CREAT | O_TRUNC);
    if (s->array.file < 0 && plain && errno == EEXIST)
        kbi_error("cannot write --json %s: %s is in use by another run, or no plain file", s->json, name.s);
    else if (s->array.file < 0)
        kbi_error("cannot write --json %s: %s", s->json, kbi_why_not_open(errno));
    if (plain && s->array.file >= 0)
        s->temporary = name.s;
    else
        kbi_text_free(&name);
    return s->array.file >= 0;
}

// Ends a line that an earlier run was killed in the middle of, so that ours does not continue it.
static bool kbi_store_open_jsonl(kbi_store* s) {
    struct stat about;
    char last = '\n';
    if (kbi_is(s->jsonl, "-")) return s->lines.file = 1, true;
    bool plain = stat(s->jsonl, &about) != 0 || S_ISREG(about.st_mode);
    s->lines.file = plain ? kbi_open_file(s->jsonl, O_RDWR | O_CREAT | O_APPEND) : -1;
    int why = errno;
    if (s->lines.file < 0) {
        s->lines.file = kbi_open_in_place(s->jsonl, O_APPEND); // may be written and not read, or is no file on a disk
        if (!plain || errno != ENOENT) why = errno;
    }
    if (s->lines.file < 0) return kbi_error("cannot write --jsonl %s: %s", s->jsonl, kbi_why_not_open(why)), false;
    if (plain && lseek(s->lines.file, -1, SEEK_END) >= 0 && kbi_read_some(s->lines.file, &last, 1) == 1 &&
        last != '\n')
        kbi_puts(&s->lines.waiting, "\n");
    return true;
}

static void kbi_store_free(kbi_store* s) {
    if (s->array.file > 2) close(s->array.file);
    if (s->lines.file > 2) close(s->lines.file);
    kbi_text_free(&s->array.waiting);
    kbi_text_free(&s->lines.waiting);
    if (s->temporary) unlink(s->temporary); // what is complete was renamed
    KBENCH_FREE(s->temporary);
    s->temporary = NULL;
    s->array.file = s->lines.file = -1;
}

// The files of records as an array and of records a line; NULL: none.
static bool kbi_store_open(kbi_store* s, const char* json, const char* jsonl) {
    memset(s, 0, sizeof *s);
    s->json = json;
    s->jsonl = jsonl;
    s->array.file = s->lines.file = -1;
    if ((s->json && !*s->json) || (s->jsonl && !*s->jsonl))
        return kbi_error("--%s needs a file's name; its is empty", s->json && !*s->json ? "json" : "jsonl"), false;
    const char* foreign = kbi_is_foreign(json ? json : "", NULL)     ? json
                          : kbi_is_foreign(jsonl ? jsonl : "", NULL) ? jsonl
                                                                     : NULL;
    if (foreign) return kbi_error("%s holds no records: nothing is written to it", foreign), false;
    if (kbi_is(s->json, "-") && kbi_is(s->jsonl, "-"))
        return kbi_error("--json - and --jsonl - would mix on stdout; give one of them a file"), false;
    bool json_opened = !s->json || kbi_store_open_json(s), jsonl_opened = !s->jsonl || kbi_store_open_jsonl(s);
    struct stat a, b;
    bool same = s->temporary && jsonl_opened && s->lines.file > 2 && stat(s->json, &a) == 0 &&
                fstat(s->lines.file, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (same) kbi_error("--json %s and --jsonl %s are one file; give each its own", json, jsonl);
    if (json_opened && jsonl_opened && !same) return true;
    kbi_store_free(s);
    return false;
}

// Said once of each; what could not be written waits for the next record, and for the end of the run.
static void kbi_store_trouble(kbi_store* s, unsigned which, const char* path) {
    if (!(s->failed & which))
        kbi_error("writing --%s %s failed: %s", which == KBI_JSON_FAILED ? "json" : "jsonl", path, strerror(errno));
    s->failed |= which;
}

// A record as it stands goes into the array.
static void kbi_store_put(kbi_store* s, const char* record, size_t n) {
    if (!s->json) return;
    kbi_puts(&s->array.waiting, s->n++ ? ",\n" : "[\n");
    kbi_put(&s->array.waiting, record, n);
    if (!kbi_out_flush(&s->array, 1000)) kbi_store_trouble(s, KBI_JSON_FAILED, s->json);
}

// Replaces the lines that are there, as a whole; on failure they stay as they are.
static bool kbi_store_rewrite(kbi_store* s, const kbi_text* lines) {
    kbi_text name = { NULL, 0, 0 };
    struct stat old;
    char behind[4096];
    const char* path = realpath(s->jsonl, behind) ? behind : s->jsonl;
    kbi_temporary_stem(&name, path);
    kbi_putf(&name, "%ld", (long)getpid());
    int file = kbi_open_temporary(name.s);
    bool good = file >= 0 && (!lines->n || kbi_write_all(file, lines->s, lines->n)) && fsync(file) == 0 &&
                fstat(s->lines.file, &old) == 0 && fchmod(file, old.st_mode & 0777u) == 0 &&
                rename(name.s, path) == 0;
    if (!good) kbi_error("--resume: cannot replace %s: %s", s->jsonl, strerror(errno));
    if (!good && file >= 0) unlink(name.s);
    if (file >= 0) close(file);
    if (good) {
        close(s->lines.file);
        kbi_text_free(&s->lines.waiting); // the end of a line that is no more
        good = kbi_store_open_jsonl(s);
    }
    kbi_text_free(&name);
    return good;
}

static void kbi_store_add(kbi_store* s, const kb_result* r) {
    kbi_text record = { NULL, 0, 0 };
    if (!s->json && !s->jsonl) return;
    fflush(stdout);
    kbi_json_result(&record, r);
    kbi_store_put(s, record.s, record.n);
    if (s->jsonl) {
        kbi_put(&s->lines.waiting, record.s, record.n);
        kbi_puts(&s->lines.waiting, "\n");
        if (!kbi_out_flush(&s->lines, 1000) || !kbi_out_sync(&s->lines))
            kbi_store_trouble(s, KBI_JSONL_FAILED, s->jsonl);
    }
    kbi_text_free(&record);
}

// Puts the complete array in the old file's place, with its mode and, where that is allowed, its owner.
static bool kbi_store_replace(kbi_store* s) {
    struct stat old;
    if (stat(s->json, &old) == 0) {
        bool given = fchown(s->array.file, old.st_uid, old.st_gid) == 0;
        if (fchmod(s->array.file, old.st_mode & (given ? 07777u : 0777u)) != 0) return false;
    }
    if (rename(s->temporary, s->json) != 0) return false; // still locked
    KBENCH_FREE(s->temporary);
    s->temporary = NULL;
    char* slash = strrchr(s->path, '/');
    if (s->json != s->path || !slash) return true;
    slash[slash == s->path] = 0;
    int folder = kbi_open_file(s->path, O_RDONLY); // the new name is on the disk as well
    if (folder >= 0) fsync(folder), close(folder);
    return true;
}

// Writes what waits and ends the array; the old file stays as it is until the new one is complete.
static bool kbi_store_close(kbi_store* s) {
    bool nothing = s->keep && !s->n && s->json && access(s->json, F_OK) == 0;
    unsigned before = s->failed;
    s->failed = 0;
    if (s->jsonl && before & KBI_JSONL_FAILED) {
        bool good = kbi_out_flush(&s->lines, 5000) && kbi_out_sync(&s->lines);
        if (good)
            kbi_warn("--jsonl %s: all of it could be written in the end", s->jsonl);
        else
            kbi_error("--jsonl %s: %zu bytes could not be written: %s", s->jsonl, s->lines.waiting.n,
                      strerror(errno));
        if (!good) s->failed |= KBI_JSONL_FAILED;
    }
    if (s->json && !nothing) {
        kbi_puts(&s->array.waiting, s->n ? "\n]\n" : "[]\n");
        bool good =
            kbi_out_flush(&s->array, 5000) && kbi_out_sync(&s->array) && (!s->temporary || kbi_store_replace(s));
        if (!good && before & KBI_JSON_FAILED)
            kbi_error("--json %s could not be written in the end, either: %s", s->json, strerror(errno));
        else if (!good)
            kbi_error("writing --json %s failed: %s", s->json, strerror(errno));
        else if (before & KBI_JSON_FAILED)
            kbi_warn("--json: all of it could be written in the end");
        if (!good) s->failed |= KBI_JSON_FAILED;
    }
    kbi_store_free(s);
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
              Public: none      Used by: render, program
---------------------------------------------------------------------------------------------------------------*/

// What render is told beside the records.
typedef struct kbi_how {
    FILE* out;
    int width;
    bool colour, verbose, quiet, inside, counters; // what was found inside of cases, and counted, stands below them
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
        double x = kbi_shown_number(rows[i], &cell->what);
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
        double x = kbi_shown_number(rows[i], &cell->what) * cell->scale;
        if (kbi_finite(x) && x > 0 && (x < 1e-3 || x >= 1e5)) return false;
    }
    return true;
}

// A counter: all digits of a whole number, else four.
static const char* kbi_show_count(double x, char out[40]) {
    bool whole = fabs(x) < 1e15 && x == floor(x);
    return whole ? kbi_number(x, out) : kbi_digits(x, 4, out);
}

// Text of a field of a record in its column, "-" for none.
static void kbi_cell_text(kbi_text* s, const kbi_cell* cell, const kb_result* r) {
    char out[40];
    const kbi_key* key = cell->what.key;
    const char* words = kbi_field_words(r, key);
    double x = kbi_shown_number(r, &cell->what);
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
    else if (cell->what.counter[0])
        kbi_puts(s, kbi_show_count(x, out));
    else { // four digits, or as many as have room behind the zeros of a small number
        int digits = 4;
        while (strlen(kbi_digits(x * cell->scale, digits, out)) > (size_t)cell->width && digits > 1) digits--;
        kbi_puts(s, out);
    }
}

/*---------------------------------------------------------------------------------------------------------------
  >>profile   render: what was found inside of a case: below its row in the table, and as a timeline.
              Public: none      Used by: >>table, >>outputs
---------------------------------------------------------------------------------------------------------------*/

enum { KBI_PROFILE_ROWS = 10 }; // of each kind are shown

static void kbi_profile_name(kbi_text* t, const char* name, int room) {
    size_t n = strlen(name), most = (size_t)KBI_MAX(room, 8);
    kbi_text clean = { NULL, 0, 0 };
    kbi_clean(&clean, name);
    if (n <= most)
        kbi_putf(t, "      %-*s", room, clean.s);
    else // of a kernel the begin says most
        kbi_putf(t, "      %.*s..", (int)most - 2, clean.s);
    kbi_text_free(&clean);
}

// Parts of a line, each behind a comma, on as many lines as they need.
KBI_PRINTF(4, 5) static void kbi_profile_part(kbi_text* t, int* at, int width, const char* format, ...) {
    enum { KBI_INDENT = 8 };
    char part[160];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(part, sizeof part, format, list);
    va_end(list);
    if (*at && *at + 2 + n <= width)
        kbi_puts(t, ", "), *at += 2 + n;
    else
        kbi_putf(t, "%s%*s", *at ? ",\n" : "", (int)KBI_INDENT, ""), *at = (int)KBI_INDENT + n;
    kbi_puts(t, part);
}

static void kbi_profile_shape(kbi_text* t, const kbi_event* e, int width) {
    char bytes[40];
    int at = 0;
    if (e->kind == KBI_EVENT_KERNEL) {
        kbi_profile_part(t, &at, width, "%dx%dx%d blocks of %dx%dx%d", e->grid[0], e->grid[1], e->grid[2],
                         e->block[0], e->block[1], e->block[2]);
        if (e->cluster[0] * e->cluster[1] * e->cluster[2] > 1)
            kbi_profile_part(t, &at, width, "clusters of %dx%dx%d", e->cluster[0], e->cluster[1], e->cluster[2]);
        kbi_profile_part(t, &at, width, "%d registers", e->registers);
        kbi_profile_part(t, &at, width, "shared %s", kbi_show_bytes(e->shared, bytes));
        if (e->local) kbi_profile_part(t, &at, width, "local %s", kbi_show_bytes(e->local, bytes));
        if (e->limit)
            kbi_profile_part(t, &at, width, "%.0f%% of the warps (%s)", (double)e->occupancy,
                             kbi_limit_names[e->limit]);
    } else if (e->bytes) {
        kbi_profile_part(t, &at, width, "%s each", kbi_show_bytes((double)e->bytes, bytes));
    }
    if (at) kbi_puts(t, "\n");
}

// Events that are alike, a line each, what takes most first.
static void kbi_profile_sums(kbi_text* t, const kbi_inside* in, const char* title, const kbi_sum* sums, int n,
                             double all, int width) {
    bool wide = width >= 100;
    int room = KBI_MAX(width - (wide ? 64 : 42), 16);
    char a[40], b[40], c[40], d[40], share[40];
    double rest = 0;
    if (!n) return;
    kbi_putf(t, "    %-*s %6s %10s %6s %10s", room + 2, title, "calls", "total", "share", "mean");
    if (wide) kbi_putf(t, " %10s %10s", "least", "most");
    kbi_puts(t, "\n");
    for (int i = 0; i < n; i++) {
        const kbi_sum* s = &sums[i];
        if (i >= KBI_PROFILE_ROWS) rest += s->total;
        if (i >= KBI_PROFILE_ROWS) continue;
        kbi_profile_name(t, kbi_event_name(in, s->of), room);
        kbi_putf(t, " %6lld %10s %6s %10s", (long long)s->calls, kbi_show_time(s->total * 1e-6, a),
                 kbi_show_percent(all > 0 ? s->total / all : (double)NAN, share),
                 kbi_show_time(s->total / (double)s->calls * 1e-6, b));
        if (wide) kbi_putf(t, " %10s %10s", kbi_show_time(s->least * 1e-6, c), kbi_show_time(s->most * 1e-6, d));
        kbi_puts(t, "\n");
        kbi_profile_shape(t, s->of, width);
    }
    if (n > KBI_PROFILE_ROWS)
        kbi_putf(t, "      and %d others, %s\n", n - KBI_PROFILE_ROWS, kbi_show_percent(rest / all, share));
}

// Below the row of a case.
static void kbi_profile_show(kbi_text* t, const kbi_inside* in, int width) {
    kbi_profile p;
    char title[64], a[40], b[40], c[40];
    if (!in->events) return;
    kbi_profile_of(&p, in);
    snprintf(title, sizeof title, "on the GPU in %d runs", in->runs);
    kbi_profile_sums(t, in, title, p.device, p.n_device, p.device_ns, width);
    kbi_profile_sums(t, in, "calls on the host", p.host, p.n_host, p.host_ns, width);
    kbi_putf(t, "    a run: %s from first to last, ", kbi_show_time(p.span * 1e-6, a));
    if (p.gaps > 0)
        kbi_putf(t, "%s of it busy, %s in %s gaps\n", kbi_show_percent(p.busy / p.span, b),
                 kbi_show_time(p.gap_ns * 1e-6, c), kbi_digits(p.gaps, 2, title));
    else
        kbi_puts(t, "without a gap\n");
    kbi_putf(t, "    on the host %s a run", kbi_show_time(p.run * 1e-6, a));
    if (kbi_finite(p.launch_ns)) kbi_putf(t, ", %s a launch", kbi_show_time(p.launch_ns * 1e-6, a));
    if (p.overlap > 0) kbi_putf(t, "; %s of the copies beside a kernel", kbi_show_percent(p.overlap, a));
    if (kbi_finite(p.overlap) && !(p.overlap > 0)) kbi_puts(t, "; no copy beside a kernel");
    if (p.concurrent > 0) kbi_putf(t, "; two at once for %s of the time", kbi_show_percent(p.concurrent, a));
    kbi_puts(t, "\n");
    if (in->dropped) kbi_putf(t, "    %lld records found no room\n", (long long)in->dropped);
    kbi_profile_free(&p);
}

// --- the timeline: Chrome's trace events ---
#if KBI_REPORT

enum { KBI_TRACE_HOST = 1000, KBI_TRACE_LANES = 8, KBI_TRACE_ROWS = 256 };

typedef struct kbi_trace_row { // on which slices stand side by side
    int process;
    uint32_t lane;
    int64_t until[KBI_TRACE_LANES]; // where the last slice of each line ends
} kbi_trace_row;

typedef struct kbi_tracing {
    kbi_text* out;
    int64_t zero; // ns: where the time begins
    int64_t arrows;
    kbi_trace_row rows[KBI_TRACE_ROWS];
    int n_rows;
    bool any;
} kbi_tracing;

// The head of an event: {"ph": ..., "pid": ..., "tid": ...
static void kbi_trace_begin(kbi_tracing* t, char phase, int process, int64_t line) {
    kbi_putf(t->out, "%s{\"ph\":\"%c\",\"pid\":%d,\"tid\":%lld", t->any ? ",\n" : "\n", phase, process,
             (long long)line);
    t->any = true;
}

static void kbi_trace_time(kbi_tracing* t, const char* key, int64_t ns) { // in us; digits, whatever the locale
    kbi_putf(t->out, ",\"%s\":%lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

static void kbi_trace_text(kbi_tracing* t, const char* key, const char* text) {
    kbi_putf(t->out, ",\"%s\":", key);
    kbi_json_text(t->out, text);
}

static void kbi_trace_name(kbi_tracing* t, const char* what, int process, int64_t line, const char* name) {
    kbi_trace_begin(t, 'M', process, line);
    kbi_trace_text(t, "name", what);
    kbi_puts(t->out, ",\"args\":{\"name\":");
    kbi_json_text(t->out, name);
    kbi_puts(t->out, "}}");
}

// A line on which a slice of that time overlaps no other: what runs on one stream may do so at the same time.
static int64_t kbi_trace_line(kbi_tracing* t, int process, uint32_t lane, int64_t start, int64_t end) {
    char name[64];
    int i = 0, line = 0;
    while (i < t->n_rows && (t->rows[i].process != process || t->rows[i].lane != lane)) i++;
    if (i == t->n_rows && i == KBI_TRACE_ROWS) i--;
    kbi_trace_row* row = &t->rows[i];
    if (i == t->n_rows) {
        t->n_rows++;
        row->process = process, row->lane = lane;
        for (int k = 0; k < KBI_TRACE_LANES; k++) row->until[k] = INT64_MIN;
    }
    while (line < KBI_TRACE_LANES - 1 && row->until[line] > start) line++;
    if (row->until[line] == INT64_MIN) {
        const char* what = process < KBI_TRACE_HOST ? "stream" : lane ? "thread" : "block";
        snprintf(name, sizeof name, lane || process < KBI_TRACE_HOST ? "%s %u%s" : "%s", what, lane,
                 line ? ", at the same time" : "");
        kbi_trace_name(t, "thread_name", process, (int64_t)i * KBI_TRACE_LANES + line + 1, name);
    }
    row->until[line] = KBI_MAX(row->until[line], end);
    return (int64_t)i * KBI_TRACE_LANES + line + 1;
}

static void kbi_trace_arrow(kbi_tracing* t, char phase, int process, int64_t line, int64_t at, int64_t id) {
    kbi_trace_begin(t, phase, process, line);
    kbi_puts(t->out, ",\"cat\":\"submits\",\"name\":\"submits\"");
    kbi_trace_time(t, "ts", at - t->zero);
    kbi_putf(t->out, ",\"id\":%lld%s}", (long long)id, phase == 'f' ? ",\"bp\":\"e\"" : "");
}

static void kbi_trace_arguments(kbi_tracing* t, const kb_result* r, const kbi_event* e) {
    kbi_puts(t->out, ",\"args\":{\"case\":");
    kbi_json_text(t->out, r->name);
    kbi_putf(t->out, ",\"run\":%d", e->run);
    if (e->kind == KBI_EVENT_KERNEL)
        kbi_putf(
            t->out,
            ",\"grid\":\"%dx%dx%d\",\"block\":\"%dx%dx%d\",\"registers\":%d,\"shared_bytes\":%d,\"local_bytes\":%d",
            e->grid[0], e->grid[1], e->grid[2], e->block[0], e->block[1], e->block[2], e->registers, e->shared,
            e->local);
    else if (kbi_event_on_device(e))
        kbi_putf(t->out, ",\"bytes\":%lld", (long long)e->bytes);
    kbi_puts(t->out, "}}");
}

// One event as a slice; what a call submitted with an arrow from that.
static void kbi_trace_event(kbi_tracing* t, const kb_result* r, const kbi_event* e, int64_t* lines) {
    static const char* const kinds[] = { "block", "call", "kernel", "copy", "memset" };
    const kbi_inside* in = r->inside;
    const kbi_event* all = kbi_events_of(in);
    bool device = kbi_event_on_device(e);
    int process = device ? in->device : KBI_TRACE_HOST;
    int64_t line = kbi_trace_line(t, process, e->lane, e->start, e->end);
    const char* name = e->kind == KBI_EVENT_RUN ? r->name : kbi_event_name(in, e);
    lines[e - all] = line;
    kbi_trace_begin(t, 'X', process, line);
    kbi_trace_text(t, "cat", kinds[e->kind]);
    kbi_trace_text(t, "name", name ? name : "");
    kbi_trace_time(t, "ts", e->start - t->zero);
    kbi_trace_time(t, "dur", KBI_MAX(e->end - e->start, (int64_t)0));
    kbi_trace_arguments(t, r, e);
    if (!device || e->cause < 0) return;
    kbi_trace_arrow(t, 's', KBI_TRACE_HOST, lines[e->cause], all[e->cause].start, ++t->arrows);
    kbi_trace_arrow(t, 'f', process, line, e->start, t->arrows);
}

static void kbi_trace_gauges(kbi_tracing* t, const kbi_inside* in) {
    for (int64_t i = 0; i < 2 * in->gauges; i++) {
        const kbi_gauge* g = &kbi_gauges_of(in)[i / 2];
        double x = i % 2 ? g->power_w : g->sm_mhz;
        if (!kbi_finite(x) || g->at < t->zero) continue;
        kbi_trace_begin(t, 'C', in->device, 0);
        kbi_trace_text(t, "name", i % 2 ? "power" : "SM clock");
        kbi_trace_time(t, "ts", g->at - t->zero);
        kbi_putf(t->out, ",\"args\":{\"%s\":", i % 2 ? "W" : "MHz");
        kbi_json_real(t->out, x);
        kbi_puts(t->out, "}}");
    }
}

static void kbi_trace(kbi_text* out, const kb_result* records, int64_t n) {
    kbi_tracing t;
    int named[64];
    int n_named = 0;
    memset(&t, 0, sizeof t);
    t.out = out;
    t.zero = INT64_MAX;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; records[i].inside && k < records[i].inside->events; k++)
            t.zero = KBI_MIN(t.zero, kbi_events_of(records[i].inside)[k].start);
    kbi_puts(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"kbench " KBENCH_VERSION
                  "\"},\"traceEvents\":[");
    if (t.zero < INT64_MAX) kbi_trace_name(&t, "process_name", KBI_TRACE_HOST, 0, "host");
    for (int64_t i = 0; i < n; i++) {
        const kb_result* r = &records[i];
        char name[160];
        int k = 0;
        if (!r->inside || !r->inside->events) continue;
        while (k < n_named && named[k] != r->inside->device) k++;
        snprintf(name, sizeof name, "GPU %d: %.120s", r->inside->device, r->gpu ? r->gpu : "");
        if (k == n_named && k < KBI_COUNT(named))
            named[n_named++] = r->inside->device, kbi_trace_name(&t, "process_name", r->inside->device, 0, name);
        int64_t* lines = (int64_t*)kbi_grow(NULL, sizeof(int64_t) * (size_t)r->inside->events);
        memset(lines, 0, sizeof(int64_t) * (size_t)r->inside->events);
        for (int64_t e = 0; e < r->inside->events; e++) kbi_trace_event(&t, r, &kbi_events_of(r->inside)[e], lines);
        kbi_trace_gauges(&t, r->inside);
        KBENCH_FREE(lines);
    }
    kbi_puts(out, "\n]}\n");
}
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>table     render: the terminal table and its summary.
              Public: kb_print      Used by: programs, render, program
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
    int64_t fewest, most;        // processes behind the intervals that were shown; 0: none was
    kbi_cell cells[KBI_SHOWN];
    int n_cells, label;     // label: width of the first column
    unsigned wanted;        // a bit for each of kbi_columns that the heading above was made for
    uint64_t heading, axes; // hashes: the operation above; axes that rows leave out, 0: none
    uint64_t machine;       // of the line above; 0: none
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
    cell->title = kbi_shown_title(&t->cells[t->n_cells - 1].what);
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
    uint64_t operation = kbi_hash(kbi_hash(14695981039346656037u, r->operation ? r->operation : ""), "/");
    operation = kbi_hash(operation, r->direction ? r->direction : "");
    bool same = t->n_cells && (alone ? t->alone : !t->alone && t->heading == operation);
    unsigned wanted = kbi_table_wants(t, rows, n);
    for (int i = 0; i < n; i++) numbers |= rows[i]->status == KB_OK;
    for (int i = 0; i < t->n_cells; i++) reads &= kbi_cell_reads(&t->cells[i], rows, n);
    t->alone = alone;
    t->heading = operation;
    if (same && (!numbers || (reads && (t->n_chosen || !(wanted & ~t->wanted))))) return;
    kbi_table_columns(t, same ? wanted | t->wanted : wanted, rows, n);
    kbi_table_heading(t, r);
    t->axes = 0;
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

static void kbi_table_counters(kbi_table* t, const kb_result* r) {
    kbi_text line = { NULL, 0, 0 };
    for (int64_t i = 0; i < r->counters.n; i++) {
        const char *name = r->counters.of[i].name, *unit = kbi_object_text(&r->counter_units, name);
        double x = kbi_object_number(&r->counters, name);
        char out[40];
        kbi_putf(&line, "%s%s %s%s%s", line.n ? ", " : "", name, kbi_finite(x) ? kbi_show_count(x, out) : "-",
                 unit ? " " : "", unit ? unit : "");
    }
    if (line.n) kbi_table_wrap(t, 4, line.s);
    kbi_text_free(&line);
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
        if (t->cells[i].what.column == KBI_COLUMN_SPREAD && kbi_finite(r->precision)) {
            int64_t processes = KBI_MAX(r->processes, (int64_t)1);
            t->fewest = t->fewest ? KBI_MIN(t->fewest, processes) : processes;
            t->most = KBI_MAX(t->most, processes);
        }
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
    if (t->how.verbose || t->how.counters) kbi_table_counters(t, r);
    if ((t->how.verbose || t->how.counters) && r->message) kbi_table_wrap(t, 4, r->message);
    if (t->how.inside && r->inside) kbi_profile_show(&t->text, r->inside, t->how.width);
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
        uint64_t left_out = kbi_hash(14695981039346656037u, axes.s);
        if (t->axes != left_out) kbi_puts(&by, "by "), kbi_puts(&by, axes.s), kbi_table_wrap(t, 1, by.s);
        t->axes = left_out;
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
        double p = kbi_shown_number(a, by), q = kbi_shown_number(b, by);
        bool has = x || kbi_finite(p), other = y || kbi_finite(q);
        int order = !has || !other ? 0 : x && y ? strcmp(x, y) : (p > q) - (p < q);
        if (has != other) return has ? -1 : 1;
        if (order) return by->down ? -order : order;
    }
    return 0;
}

static void kbi_table_sort(const kbi_table* t, const kb_result** rows, int n) { // by merging: equals stay in order
    int half = n / 2, at = 0, a = 0, b = half;
    if (n < 2 || !t->n_order) return;
    kbi_table_sort(t, rows, half);
    kbi_table_sort(t, rows + half, n - half);
    if (kbi_table_compare(t, rows[half], rows[half - 1]) >= 0) return;
    const kb_result** first = (const kb_result**)kbi_grow(NULL, sizeof *first * (size_t)half);
    memcpy(first, rows, sizeof *first * (size_t)half);
    while (a < half) rows[at++] = b < n && kbi_table_compare(t, rows[b], first[a]) < 0 ? rows[b++] : first[a++];
    KBENCH_FREE((void*)first);
}

// Whether two stand under one heading, so that --sort orders them together.
static bool kbi_table_together(const kb_result* a, const kb_result* b) {
    bool single = kbi_table_single(a);
    bool one_run = kbi_is(a->run_id, b->run_id) || (a->shard && b->shard);
    return one_run && a->device == b->device && single == kbi_table_single(b) && (single || kbi_same_operation(a, b));
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
    bool signs = t->equivalent || t->unresolved, intervals = t->most > 0 && !t->how.quiet;
    char text[80] = "+-: 95 % of the median within one process (--procs N: over N)";
    if (t->most > 1) snprintf(text, sizeof text, "+-: 95 %% over %lld processes", (long long)t->most);
    if (t->most > t->fewest)
        snprintf(text, sizeof text, "+-: 95 %% over %lld to %lld processes", (long long)t->fewest,
                 (long long)t->most);
    if (signs || intervals) kbi_puts(&t->text, "\n");
    if (intervals) kbi_table_wrap(t, 0, text);
    if (signs)
        kbi_putf(&t->text, "%s%s\n", t->equivalent ? "=: within 1 % of the baseline. " : "",
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
  >>shifts    render: what changed from one set of records to another, and how it went over time.
              Public: none      Used by: >>gate, >>race
---------------------------------------------------------------------------------------------------------------*/
#if KBI_REPORT

enum { KBI_CHANGES_ALL = 48 }; // so many are shown whatever became of them

static const char* kbi_show_change(double log, char out[40]) {
    double percent = 100 * expm1(log);
    if (!kbi_finite(percent)) return "-";
    if (percent >= 999.5)
        snprintf(out, 40, "%.3gx", exp(log));
    else
        snprintf(out, 40, "%+.*f%%", fabs(percent) < 9.995 ? 2 : 1, percent);
    kbi_unlocalise(out);
    return out;
}

static const char* kbi_show_interval(double lo, double hi, char out[96]) {
    char low[40], high[40];
    if (!kbi_finite(lo) || !kbi_finite(hi)) return "-";
    snprintf(out, 96, "[%s, %s]", kbi_show_change(lo, low), kbi_show_change(hi, high));
    return out;
}

// A few words on what became of a case, and the colour that says the same.
static const char* kbi_change_words(const kbi_change* c, double threshold, const char** colour, char out[64]) {
    bool bad = c->regressed || c->more, good = c->improved || c->less;
    *colour = bad ? "\033[31m" : good ? "\033[32m" : "";
    if (!c->before) return "added";
    if (!c->after) return "removed";
    if (c->after->status == KB_FAILED) return *colour = "\033[31m", "failed";
    if (c->after->status == KB_SKIPPED) return "skipped";
    if (c->before->status == KB_FAILED) return "had failed";
    if (!kbi_comparable(c)) return "no time";
    const char* verdict = c->regressed ? "REGRESSED" : c->improved ? "IMPROVED" : kbi_verdict_name(c->verdict);
    if (c->regressed)
        snprintf(out, 64, "%s %s", verdict, kbi_severity(c, threshold));
    else
        snprintf(out, 64, "%s", verdict);
    return out;
}

static bool kbi_change_notable(const kbi_change* c) {
    return !kbi_comparable(c) || c->regressed || c->improved || c->more || c->less || c->verdict == KB_SLOWER ||
           c->verdict == KB_FASTER;
}

static void kbi_changes_memory(kbi_table* t, const kbi_change* c) {
    char before[40], after[40], change[40];
    if (!c->more && !c->less) return;
    bool device = kbi_memory_of(c->before, true) > 0 || kbi_memory_of(c->after, true) > 0;
    kbi_putf(&t->text, "%*smemory %s: %s, was %s\n", 4, "",
             kbi_finite(c->memory) ? kbi_show_change(log(c->memory), change) : "new",
             kbi_show_bytes(kbi_memory_of(c->after, device), after),
             kbi_show_bytes(kbi_memory_of(c->before, device), before));
}

static void kbi_changes_row(kbi_table* t, const kbi_change* c, double threshold, const char* program) {
    char out[96], before[40], after[40];
    const char *colour, *words = kbi_change_words(c, threshold, &colour, out);
    bool times = kbi_comparable(c);
    char change[40], interval[96];
    kbi_puts(&t->text, " ");
    kbi_table_pad(t, 8, times ? kbi_show_change(c->log, change) : "");
    kbi_puts(&t->text, "  ");
    kbi_table_pad(t, 18, times ? kbi_show_interval(c->lo, c->hi, interval) : "");
    kbi_puts(&t->text, "  ");
    kbi_table_colour(t, colour);
    kbi_table_pad(t, -18, words);
    kbi_table_colour(t, *colour ? "\033[0m" : "");
    if (t->how.width >= KBI_WIDE) {
        kbi_puts(&t->text, "  ");
        kbi_table_pad(t, 9, kbi_has_time(c->before) ? kbi_show_time(c->before->time_ms, before) : "-");
        kbi_puts(&t->text, "  ");
        kbi_table_pad(t, 9, kbi_has_time(c->after) ? kbi_show_time(c->after->time_ms, after) : "-");
    }
    kbi_puts(&t->text, "  ");
    if (program) kbi_clean(&t->text, program), kbi_puts(&t->text, ": ");
    const kb_result* r = c->after ? c->after : c->before;
    kbi_clean(&t->text, r->name ? r->name : "");
    kbi_puts(&t->text, "\n");
    kbi_changes_memory(t, c);
    if (c->after && c->after->status == KB_FAILED && c->after->message) kbi_table_wrap(t, 4, c->after->message);
}

static void kbi_changes_heading(kbi_table* t, const kbi_rules* rules) {
    char level[40], title[64];
    snprintf(title, sizeof title, "%s %% interval", kbi_digits(100 * (1 - rules->alpha), 2, level));
    kbi_putf(&t->text, "\n   change  %18s  verdict           ", title);
    if (t->how.width >= KBI_WIDE) kbi_puts(&t->text, "     before      after");
    kbi_puts(&t->text, "  case\n");
}

// What the intervals rest on: whoever relies on them has to know.
static void kbi_changes_grounds(kbi_table* t, const kbi_assessment* a, const kbi_rules* rules) {
    static const char* const words[] = { "none: too few samples", "the two runs' own samples",
                                         "what runs differed by in the history", "fresh processes (--procs)",
                                         "the rounds of the race" };
    kbi_text line = { NULL, 0, 0 };
    char noise[40];
    for (int g = KBI_GROUND_ROUNDS; g >= 0; g--) {
        if (!a->grounds[g]) continue;
        kbi_putf(&line, "%s%s", line.n ? "; " : "intervals rest on ", words[g]);
        if (g == KBI_GROUND_SAMPLES)
            kbi_putf(&line, ", widened by %s (--noise) for what processes differ by",
                     kbi_show_percent(rules->noise, noise));
        if (a->grounds[g] < a->compared) kbi_putf(&line, " (%lld)", (long long)a->grounds[g]);
    }
    if (line.n) kbi_table_wrap(t, 0, line.s);
    kbi_text_free(&line);
}

static void kbi_count_words(kbi_text* line, int64_t n, const char* words) {
    if (n) kbi_putf(line, "%s%lld %s", line->n ? ", " : "", (long long)n, words);
}

// All of it in a sentence.
static void kbi_changes_sentence(kbi_table* t, const kbi_assessment* a, const kbi_rules* rules) {
    kbi_text line = { NULL, 0, 0 };
    char number[40], limit[40];
    kbi_show_percent(rules->threshold, limit);
    if (!a->compared)
        kbi_puts(&line, "Nothing was compared");
    else if (a->regressed)
        kbi_putf(&line, "Slower: %lld of %lld case%s by more than %s", (long long)a->regressed,
                 (long long)a->compared, a->compared == 1 ? "" : "s", limit);
    else if (a->more)
        kbi_putf(&line, "More memory: %lld of %lld case%s", (long long)a->more, (long long)a->compared,
                 a->compared == 1 ? "" : "s");
    else if (a->improved || a->less)
        kbi_putf(&line, "Better: none of %lld case%s is slower by more than %s", (long long)a->compared,
                 a->compared == 1 ? "" : "s", limit);
    else if (a->open)
        kbi_putf(&line, "Not certain: no regression was found in %lld case%s", (long long)a->compared,
                 a->compared == 1 ? "" : "s");
    else
        kbi_putf(&line, "The same: no case of %lld changed by more than %s", (long long)a->compared, limit);
    if (a->worst) {
        kbi_putf(&line, ", at worst %s (", kbi_show_change(a->worst->log, number));
        kbi_clean(&line, a->worst->after->name);
        kbi_puts(&line, ")");
    }
    if (a->regressed) kbi_count_words(&line, a->more, "with more memory");
    kbi_count_words(&line, a->improved, "faster by more than that");
    kbi_count_words(&line, a->less, "with less memory");
    kbi_count_words(&line, a->open, "not known well enough to say");
    kbi_count_words(&line, a->broken, "failed that did not before");
    kbi_count_words(&line, a->mended, "had failed before");
    kbi_count_words(&line, a->added, "added");
    kbi_count_words(&line, a->removed, "removed");
    if (a->compared > 1)
        kbi_putf(&line, "; times %s on the whole (geometric mean)", kbi_show_change(log(a->geomean), number));
    kbi_puts(&line, ".");
    kbi_table_wrap(t, 0, line.s);
    kbi_text_free(&line);
}

// programs: what the later side of each change is called; NULL: there is only one.
static void kbi_changes_show(const kbi_how* how, const kbi_changes* c, const kbi_rules* rules,
                             const kbi_assessment* a, const char* const* programs) {
    kbi_table t;
    int64_t left = 0;
    kbi_table_open(&t, how);
    kbi_changes_heading(&t, rules);
    for (int64_t i = 0; i < c->n; i++) {
        if (c->n > KBI_CHANGES_ALL && !how->verbose && !kbi_change_notable(&c->of[i]))
            left++;
        else
            kbi_changes_row(&t, &c->of[i], rules->threshold, programs ? programs[i] : NULL);
    }
    if (left)
        kbi_putf(&t.text, " and %lld that %s not changed, or not surely; -v shows all\n", (long long)left,
                 left == 1 ? "has" : "have");
    kbi_puts(&t.text, "\n");
    kbi_changes_sentence(&t, a, rules);
    kbi_changes_grounds(&t, a, rules);
    kbi_table_flush(&t);
}

// --- what the machines differ in ---

static void kbi_differences_show(const kbi_how* how, const kbi_differences* d) {
    kbi_table t;
    bool off = false;
    kbi_table_open(&t, how);
    for (int i = 0; i < d->n; i++) {
        const kbi_difference* row = &d->of[i];
        kbi_text line = { NULL, 0, 0 };
        off |= row->off;
        kbi_putf(&line, "%c %s: %s -> %s", row->off ? '*' : '-', row->key, row->before, row->after);
        if (row->pairs < d->pairs)
            kbi_putf(&line, " (%lld of %lld cases)", (long long)row->pairs, (long long)d->pairs);
        kbi_table_wrap(&t, 1, line.s);
        kbi_text_free(&line);
    }
    if (off) kbi_table_wrap(&t, 0, "*: keeps times from being compared");
    kbi_table_flush(&t);
}

// --- the past ---

// Cases that have a past: how the last run stands to the ones before it, and which way it goes.
static void kbi_trends_show(const kbi_how* how, const kbi_trend* trends, int64_t n, const char* path) {
    kbi_table t;
    char a[40], b[40], now[40];
    int64_t past = 0, runs = 0, left = 0;
    for (int64_t i = 0; i < n; i++) past += trends[i].runs > 1, runs = KBI_MAX(runs, trends[i].runs);
    if (!past) return;
    kbi_table_open(&t, how);
    kbi_putf(&t.text, "\n%lld runs in ", (long long)runs);
    kbi_clean(&t.text, path);
    kbi_putf(&t.text, "\n      now  to median   a run   noise  runs  case\n");
    for (int64_t i = 0; i < n; i++) {
        const kbi_trend* one = &trends[i];
        bool moves = one->p < 0.01 && kbi_finite(one->slope);
        if (one->runs < 2) continue;
        if (past > KBI_CHANGES_ALL && !how->verbose && !moves) {
            left++;
            continue;
        }
        kbi_table_pad(&t, 9, kbi_show_time(one->now, now));
        kbi_table_pad(&t, 11, kbi_show_change(log(one->now / one->middle), a));
        kbi_table_pad(&t, 8, moves ? kbi_show_change(one->slope, b) : "-");
        kbi_table_pad(&t, 8, kbi_show_percent(one->sd, a));
        kbi_putf(&t.text, "%6lld  ", (long long)one->runs);
        kbi_clean(&t.text, one->last->name ? one->last->name : "");
        if (moves) kbi_putf(&t.text, "  %s", one->slope > 0 ? "rising" : "falling");
        kbi_puts(&t.text, "\n");
    }
    if (left) kbi_putf(&t.text, " and %lld that neither rise nor fall; -v shows all\n", (long long)left);
    kbi_table_flush(&t);
}
#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>text      render: records as CSV and Markdown.
              Public: none      Used by: >>tools, >>report, >>outputs
---------------------------------------------------------------------------------------------------------------*/

#if KBI_REPORT
typedef void (*kbi_render)(kbi_text* t, const kb_result* records, int64_t n);

// --- CSV (RFC 4180): every key that is no list, then params.NAME for each axis and counter:NAME for each counter ---

static void kbi_csv_text(kbi_text* t, const char* text) {
    const char* quote = text[strcspn(text, ",\"\r\n")] ? "\"" : "";
    kbi_puts(t, quote);
    for (const unsigned char* p = (const unsigned char*)text; *p;) {
        int n = kbi_utf8(p);
        if (*p == '"') kbi_puts(t, "\"");
        kbi_put(t, n ? (const char*)p : "\xef\xbf\xbd", n ? (size_t)n : 3);
        p += n ? n : 1;
    }
    kbi_puts(t, quote);
}

static void kbi_csv_flags(kbi_text* t, uint64_t flags) {
    const char* before = "";
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        if (!(flags >> f & 1)) continue;
        kbi_putf(t, "%s%s", before, kb_flag_name((kb_flag)f));
        before = " ";
    }
}

static void kbi_csv_field(kbi_text* t, const kb_result* r, const kbi_key* key) {
    char number[40];
    const char* words = kbi_field_words(r, key);
    double x = kbi_field_number(r, key);
    if (key->kind == KBI_KIND_flags)
        kbi_csv_flags(t, r->flags);
    else if (key->kind == KBI_KIND_truth)
        kbi_puts(t, !words ? "" : kbi_is(words, "yes") ? "true" : "false");
    else if (words)
        kbi_csv_text(t, words);
    else if (key->kind == KBI_KIND_whole && kbi_finite(x))
        kbi_putf(t, "%lld", (long long)*(const kbi_field_whole*)kbi_field(r, key));
    else if (kbi_finite(x))
        kbi_puts(t, kbi_number(x, number));
}

// The names of all values of such an object, in the order in which they turn up; to be freed.
static const char** kbi_object_names(const kb_result* records, int64_t n, const kbi_key* key, int* count) {
    const char** names = NULL;
    kbi_set known = { NULL, 0, 0 };
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        const kbi_field_params* object = (const kbi_field_params*)kbi_field(&records[i], key);
        for (int64_t k = 0; k < object->n; k++) {
            const char* name = object->of[k].name;
            if (!kbi_set_add(&known, kbi_hash(14695981039346656037u, name))) continue;
            names = (const char**)kbi_grow((void*)names, sizeof(char*) * (size_t)(*count + 1));
            names[(*count)++] = name;
        }
    }
    kbi_set_free(&known);
    return names;
}

static bool kbi_csv_has(const kbi_key* key) { return key->kind != KBI_KIND_params && key->kind != KBI_KIND_samples; }

// A column for each name of these objects.
enum { KBI_CSV_OBJECTS = 3 };
static const struct {
    const char *key, *before;
} kbi_csv_objects[KBI_CSV_OBJECTS] = { { "params", "params." },
                                       { "counters", "counter:" },
                                       { "environment", "environment." } };

static void kbi_csv_heading(kbi_text* t, const char* before, const char* const* names, int n) {
    for (int i = 0; i < n; i++) {
        kbi_text name = { NULL, 0, 0 };
        kbi_putf(&name, "%s%s", before, names[i]);
        kbi_puts(t, ","), kbi_csv_text(t, name.s);
        kbi_text_free(&name);
    }
}

static void kbi_csv_object(kbi_text* t, const kbi_field_params* object, const char* const* names, int n) {
    for (int i = 0; i < n; i++) {
        const kb_param* p = NULL;
        kbi_text value = { NULL, 0, 0 };
        for (int64_t k = 0; k < object->n && !p; k++)
            if (strcmp(object->of[k].name, names[i]) == 0) p = &object->of[k];
        kbi_puts(t, ",");
        if (p && !(p->type == KB_AXIS_REALS && !kbi_finite(p->r))) kbi_param_text(&value, p);
        if (value.s) kbi_csv_text(t, value.s);
        kbi_text_free(&value);
    }
}

static void kbi_csv(kbi_text* t, const kb_result* records, int64_t n) {
    const char** names[KBI_CSV_OBJECTS];
    const kbi_key* keys[KBI_CSV_OBJECTS];
    int count[KBI_CSV_OBJECTS];
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++)
        if (kbi_csv_has(&kbi_keys[i])) kbi_putf(t, "%s%s", i ? "," : "", kbi_keys[i].name);
    for (int o = 0; o < KBI_CSV_OBJECTS; o++) {
        keys[o] = kbi_key_named(kbi_csv_objects[o].key);
        names[o] = kbi_object_names(records, n, keys[o], &count[o]);
        kbi_csv_heading(t, kbi_csv_objects[o].before, names[o], count[o]);
    }
    kbi_puts(t, "\r\n");
    for (int64_t r = 0; r < n; r++) {
        for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
            if (!kbi_csv_has(&kbi_keys[i])) continue;
            if (i) kbi_puts(t, ",");
            kbi_csv_field(t, &records[r], &kbi_keys[i]);
        }
        for (int o = 0; o < KBI_CSV_OBJECTS; o++)
            kbi_csv_object(t, (const kbi_field_params*)kbi_field(&records[r], keys[o]), names[o], count[o]);
        kbi_puts(t, "\r\n");
    }
    for (int o = 0; o < KBI_CSV_OBJECTS; o++) KBENCH_FREE((void*)names[o]);
}

// --- Markdown, as for a pull request ---

// Text of others' making that stays in its cell: neither a column, nor HTML, nor emphasis.
static void kbi_md_text(kbi_text* t, const char* s) {
    kbi_text clean = { NULL, 0, 0 };
    kbi_clean(&clean, s);
    for (const char* p = clean.s ? clean.s : ""; *p; p++)
        kbi_putf(t, strchr("|<>*_`\\[]#~&", *p) ? "\\%c" : "%c", *p);
    kbi_text_free(&clean);
}

static void kbi_md_machine(kbi_text* t, const kb_result* r) {
    char roof[40];
    kbi_md_text(t, r->gpu ? r->gpu : r->cpu ? r->cpu : "processor unknown");
    if (r->gpu) kbi_putf(t, ", driver %s, CUDA %s", r->driver ? r->driver : "-", r->cuda ? r->cuda : "-");
    if (r->gpu && kbi_finite(r->copy_roof_gbps))
        kbi_putf(t, ", copy roof %s GB/s", kbi_show(r->copy_roof_gbps, 4, roof));
    if (!r->gpu) kbi_puts(t, " (CPU times)");
    if (r->git_commit) kbi_putf(t, ", commit %.12s", r->git_commit);
    kbi_putf(t, ", kbench %s\n", r->kbench_version ? r->kbench_version : "");
}

static bool kbi_md_same_machine(const kb_result* a, const kb_result* b) {
    return kbi_same_text(a->gpu, b->gpu) && kbi_same_text(a->cpu, b->cpu) && kbi_same_text(a->driver, b->driver) &&
           kbi_same_text(a->cuda, b->cuda) && kbi_same_text(a->git_commit, b->git_commit);
}

// What stands in the first two columns of a row.
static void kbi_md_case(kbi_text* t, const kb_result* r) {
    kbi_puts(t, "| ");
    kbi_md_text(t, r->implementation ? r->implementation : "");
    kbi_puts(t, " |");
    if (r->dtype) kbi_puts(t, " "), kbi_md_text(t, r->dtype);
    for (int64_t i = 0; i < r->params.n; i++) {
        const kb_param* p = &r->params.of[i];
        kbi_text value = { NULL, 0, 0 };
        if (kbi_is(p->name, "dtype") || (kbi_is(p->name, "dir") && p->type == KB_AXIS_STRINGS)) continue;
        kbi_param_text(&value, p);
        kbi_puts(t, " "), kbi_md_text(t, p->name), kbi_puts(t, "="), kbi_md_text(t, value.s ? value.s : "");
        kbi_text_free(&value);
    }
    kbi_puts(t, " |");
}

// The word that stands where a failed case has no number.
static const char* kbi_md_word(const kb_result* r) {
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (r->flags >> f & 1 && kb_flag_is_error((kb_flag)f)) return kb_flag_name((kb_flag)f);
    return r->status == KB_SKIPPED ? "skipped" : "FAILED";
}

static void kbi_md_row(kbi_text* t, const kb_result* r, const kbi_cell* cells, int n) {
    bool won = r->status == KB_OK && r->implementation && kbi_is(r->winner, r->implementation);
    kbi_md_case(t, r);
    for (int i = 0; i < n; i++) {
        kbi_text s = { NULL, 0, 0 };
        kbi_cell_text(&s, &cells[i], r);
        if (r->status != KB_OK) s.n = 0, kbi_puts(&s, i ? "" : kbi_md_word(r)); // no doubtful number
        kbi_puts(t, i || !won ? " " : " **");
        kbi_md_text(t, s.s ? s.s : "");
        kbi_puts(t, i || !won ? " |" : r->winner_certain == 1 ? "** |" : "**? |");
        kbi_text_free(&s);
    }
    kbi_puts(t, " ");
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (r->flags >> f & 1 && !kb_flag_is_error((kb_flag)f)) kbi_putf(t, "%s ", kb_flag_name((kb_flag)f));
    if (r->status != KB_OK && r->message) kbi_md_text(t, r->message), kbi_puts(t, " ");
    kbi_puts(t, "|\n");
}

// A table of cases of one operation, in columns that some of them have something for.
static void kbi_md_table(kbi_text* t, const kb_result* records, int n) {
    static const int columns[] = { KBI_COLUMN_TIME,  KBI_COLUMN_SPREAD, KBI_COLUMN_GBPS,   KBI_COLUMN_GFLOPS,
                                   KBI_COLUMN_ITEMS, KBI_COLUMN_ROOF,   KBI_COLUMN_MEMORY, KBI_COLUMN_SPEEDUP };
    kbi_cell cells[KBI_COUNT(columns) + KBI_COUNTERS];
    int count = 0, counters;
    const char** names = kbi_object_names(records, n, kbi_key_named("counters"), &counters);
    const kb_result** rows = (const kb_result**)kbi_grow(NULL, sizeof(kb_result*) * (size_t)n);
    for (int i = 0; i < n; i++) rows[i] = &records[i];
    for (int c = 0; c < KBI_COUNT(columns); c++) {
        kbi_cell* cell = &cells[count];
        bool some = columns[c] == KBI_COLUMN_TIME;
        memset(cell, 0, sizeof *cell);
        cell->what = kbi_shown_column(columns[c]);
        cell->scale = 1;
        cell->width = 12;
        cell->title = kbi_columns[columns[c]].title;
        kbi_cell_unit(cell, rows, n);
        for (int i = 0; i < n; i++) some |= kbi_field_number(rows[i], cell->what.key) > 0;
        count += some;
    }
    for (int c = 0; c < KBI_MIN(counters, (int)KBI_COUNTERS); c++) {
        kbi_cell* cell = &cells[count++];
        memset(cell, 0, sizeof *cell);
        cell->what.column = -1;
        cell->what.key = kbi_key_named("counters");
        snprintf(cell->what.counter, sizeof cell->what.counter, "%s", names[c]);
        cell->title = names[c];
    }
    kbi_puts(t, "\n| implementation | case |");
    for (int c = 0; c < count; c++) {
        const char* unit = NULL;
        for (int i = 0; i < n && !unit; i++) unit = kbi_object_text(&rows[i]->counter_units, cells[c].what.counter);
        kbi_puts(t, " "), kbi_md_text(t, cells[c].title);
        if (unit) kbi_puts(t, ", "), kbi_md_text(t, unit);
        kbi_puts(t, " |");
    }
    kbi_puts(t, " |\n|---|---|");
    for (int c = 0; c < count; c++) kbi_puts(t, "--:|");
    kbi_puts(t, "---|\n");
    for (int i = 0; i < n; i++) kbi_md_row(t, rows[i], cells, count);
    KBENCH_FREE((void*)rows);
    KBENCH_FREE((void*)names);
}

static void kbi_md(kbi_text* t, const kb_result* records, int64_t n) {
    int64_t ok = 0, failed = 0;
    for (int64_t first = 0, end; first < n; first = end) {
        const kb_result* r = &records[first];
        for (end = first; end < n && kbi_same_operation(r, &records[end]) && kbi_md_same_machine(r, &records[end]);)
            end++;
        end = KBI_MAX(end, first + 1);
        if (!first || !kbi_md_same_machine(&records[first - 1], r))
            kbi_puts(t, first ? "\n" : ""), kbi_md_machine(t, r);
        kbi_puts(t, "\n#### ");
        kbi_md_text(t, r->operation ? r->operation : "");
        if (r->direction) kbi_puts(t, " "), kbi_md_text(t, r->direction);
        kbi_puts(t, "\n");
        kbi_md_table(t, r, (int)(end - first));
    }
    for (int64_t i = 0; i < n; i++) ok += records[i].status == KB_OK, failed += records[i].status == KB_FAILED;
    kbi_putf(t, "\n%lld case%s: %lld ok", (long long)n, n == 1 ? "" : "s", (long long)ok);
    if (failed) kbi_putf(t, ", %lld failed", (long long)failed);
    if (n - ok - failed) kbi_putf(t, ", %lld skipped", (long long)(n - ok - failed));
    kbi_puts(
        t,
        ". Bold: the fastest of its rivals; with ? not certain at 95 %. =, ~: no difference of 1 %, not certain.\n");
}

#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>tools     render: records for the tools of other benchmarks: Google Benchmark's JSON, and Go's benchmark format.
              Public: none      Used by: >>outputs
---------------------------------------------------------------------------------------------------------------*/

#if KBI_REPORT
// --- repetitions, which those tools test ---

enum { KBI_REPETITIONS = 10 }; // Mann and Whitney's test in those tools wants nine or more

// What those tools take for independent repetitions, in ms: the medians of the processes, else of ten equal stretches
// of the samples; the median alone where there are too few. 0: it has no time.
static int kbi_repetitions(const kb_result* r, double* out, int most) {
    int64_t n = r->samples_ms.n, stretch = n / most;
    if (r->status != KB_OK || !kbi_finite(r->time_ms)) return 0;
    if (r->process_ms.n >= 2) {
        int count = (int)KBI_MIN(r->process_ms.n, (int64_t)most);
        for (int i = 0; i < count; i++) out[i] = r->process_ms.of[i];
        return count;
    }
    out[0] = r->time_ms;
    if (most < 2 || stretch < 3) return 1;
    double* x = (double*)kbi_grow(NULL, sizeof(double) * (size_t)(stretch + most));
    int count = 0;
    for (int i = 0; i < most; i++) {
        int64_t from = n * i / most, to = n * (i + 1) / most;
        memcpy(x, r->samples_ms.of + from, sizeof(double) * (size_t)(to - from));
        kb_stats s = kb_summarize(x, to - from);
        if (kbi_finite(s.median)) out[count++] = s.median;
    }
    KBENCH_FREE(x);
    if (!count) out[count++] = r->time_ms;
    return count;
}

// --- Google Benchmark's JSON ---

static void kbi_gbench_context(kbi_text* t, const kb_result* r) {
    const char* texts[][2] = { { "date", r ? r->date : NULL },
                               { "host_name", r ? r->host : NULL },
                               { "executable", r ? r->command : NULL },
                               { "gpu", r ? r->gpu : NULL },
                               { "driver", r ? r->driver : NULL },
                               { "cuda", r ? r->cuda : NULL },
                               { "cpu", r ? r->cpu : NULL },
                               { "git_commit", r ? r->git_commit : NULL } };
    kbi_cpus cpus;
    int count = 0;
    kbi_puts(t, "{\n\"context\": {");
    for (int i = 0; i < KBI_COUNT(texts); i++) {
        if (!texts[i][1] && i > 2) continue;
        kbi_putf(t, "%s\"%s\": ", i ? ", " : "", texts[i][0]);
        kbi_json_text(t, texts[i][1] ? texts[i][1] : "");
    }
    for (int i = 0; r && r->cpus && kbi_cpus_parse(r->cpus, &cpus) && i < KBI_CPUS; i++)
        count += kbi_cpus_has(&cpus, i);
    kbi_putf(t, ", \"num_cpus\": %d, \"mhz_per_cpu\": %.0f", count,
             r && kbi_finite(r->cpu_clock_mhz) ? r->cpu_clock_mhz : 0);
    kbi_puts(t, ", \"caches\": [], \"load_avg\": [], \"library_version\": ");
    kbi_json_text(t, r && r->kbench_version ? r->kbench_version : KBENCH_VERSION);
    kbi_putf(t, ", \"library_build_type\": \"%s\", \"json_schema_version\": 1},\n\"benchmarks\": [",
             r && r->build && strstr(r->build, ", not optimised") ? "debug" : "release");
}

typedef struct kbi_gbench_family { // which of the families the record is of, and which of its instances
    int64_t family, instance;
    int repetitions;
} kbi_gbench_family;

static void kbi_gbench_begin(kbi_text* t, const kb_result* r, const char* suffix, const kbi_gbench_family* f) {
    kbi_text name = { NULL, 0, 0 };
    kbi_putf(&name, "%s%s", r->name, suffix);
    kbi_puts(t, t->s[t->n - 1] == '[' ? "\n{\"name\": " : ",\n{\"name\": ");
    kbi_json_text(t, name.s);
    kbi_putf(t, ", \"family_index\": %lld, \"per_family_instance_index\": %lld, \"run_name\": ", (long long)f->family,
             (long long)f->instance);
    kbi_json_text(t, r->name);
    kbi_putf(t, ", \"repetitions\": %d, \"threads\": 1, ", f->repetitions);
    kbi_text_free(&name);
}

static void kbi_gbench_time(kbi_text* t, double x) { // for both clocks: readers compare either
    kbi_puts(t, "\"real_time\": "), kbi_json_real(t, x);
    kbi_puts(t, ", \"cpu_time\": "), kbi_json_real(t, x);
    kbi_puts(t, ", \"time_unit\": \"ns\"");
}

// User counters stand beside the format's own keys; one that has such a key's name gets another.
static void kbi_gbench_counters(kbi_text* t, const kb_result* r) {
    static const char own[] = "name,family_index,per_family_instance_index,run_name,run_type,repetitions,"
                              "repetition_index,threads,iterations,real_time,cpu_time,time_unit,bytes_per_second,"
                              "items_per_second,flops_per_second,label,aggregate_name,aggregate_unit,error_occurred,"
                              "error_message,skipped,skip_message";
    for (int64_t i = 0; i < r->counters.n; i++) {
        kbi_text name = { NULL, 0, 0 };
        double x = kbi_object_number(&r->counters, r->counters.of[i].name);
        if (!kbi_finite(x)) continue;
        kbi_putf(&name, "%s%s", kbi_lists(own, r->counters.of[i].name) ? "counter:" : "", r->counters.of[i].name);
        kbi_puts(t, ", "), kbi_json_text(t, name.s), kbi_puts(t, ": ");
        kbi_json_real(t, x);
        kbi_text_free(&name);
    }
}

static void kbi_gbench_rates(kbi_text* t, const kb_result* r, double ms) {
    const struct {
        const char* name;
        double amount;
    } rates[] = { { "bytes_per_second", r->bytes },
                  { "items_per_second", r->items_per_second * r->time_ms / 1e3 },
                  { "flops_per_second", r->flops } };
    for (int i = 0; i < KBI_COUNT(rates); i++) {
        double x = rates[i].amount / (ms / 1e3);
        if (!kbi_finite(x)) continue;
        kbi_putf(t, ", \"%s\": ", rates[i].name);
        kbi_json_real(t, x);
    }
    kbi_gbench_counters(t, r);
    if (!r->flags) return;
    kbi_puts(t, ", \"label\": \"");
    kbi_csv_flags(t, r->flags);
    kbi_puts(t, "\"");
}

static void kbi_gbench_aggregates(kbi_text* t, const kb_result* r, const double* ms, const kbi_gbench_family* f) {
    static const char* const names[] = { "mean", "median", "stddev", "cv" };
    kb_stats s = kb_summarize(ms, f->repetitions);
    const double values[] = { s.mean * 1e6, s.median * 1e6, s.std * 1e6, s.cv };
    for (int i = 0; i < KBI_COUNT(names); i++) {
        char suffix[16];
        snprintf(suffix, sizeof suffix, "_%s", names[i]);
        if (!kbi_finite(values[i])) continue;
        kbi_gbench_begin(t, r, suffix, f);
        kbi_putf(
            t,
            "\"run_type\": \"aggregate\", \"aggregate_name\": \"%s\", \"aggregate_unit\": \"%s\", \"iterations\": %d, ",
            names[i], i == 3 ? "percentage" : "time", f->repetitions);
        kbi_gbench_time(t, values[i]);
        kbi_puts(t, "}");
    }
}

static void kbi_gbench_record(kbi_text* t, const kb_result* r, kbi_gbench_family f) {
    double ms[KBI_REPETITIONS];
    int n = kbi_repetitions(r, ms, KBI_REPETITIONS);
    f.repetitions = KBI_MAX(n, 1);
    int64_t launches =
        KBI_MAX(r->launches_per_sample, (int64_t)1) * (KBI_MAX(r->samples, (int64_t)1) / f.repetitions);
    for (int i = 0; i < n; i++) {
        kbi_gbench_begin(t, r, "", &f);
        kbi_putf(t, "\"run_type\": \"iteration\", \"repetition_index\": %d, \"iterations\": %lld, ", i,
                 (long long)KBI_MAX(launches, (int64_t)1));
        kbi_gbench_time(t, ms[i] * 1e6);
        kbi_gbench_rates(t, r, ms[i]);
        kbi_puts(t, "}");
    }
    if (n > 1) kbi_gbench_aggregates(t, r, ms, &f);
    if (n) return;
    bool failed = r->status != KB_SKIPPED;
    kbi_gbench_begin(t, r, "", &f);
    kbi_putf(t, "\"run_type\": \"iteration\", \"repetition_index\": 0, \"%s\": true, \"%s\": ",
             failed ? "error_occurred" : "skipped", failed ? "error_message" : "skip_message");
    kbi_json_text(t, r->message ? r->message : kbi_md_word(r));
    kbi_puts(t, ", \"iterations\": 0, ");
    kbi_gbench_time(t, 0);
    kbi_puts(t, "}");
}

static void kbi_gbench(kbi_text* t, const kb_result* records, int64_t n) {
    kbi_gbench_family f = { -1, 0, 1 };
    kbi_gbench_context(t, n ? &records[0] : NULL);
    for (int64_t i = 0; i < n; i++) {
        const kb_result *r = &records[i], *before = i ? r - 1 : NULL;
        bool same =
            before && kbi_same_operation(before, r) && kbi_same_text(before->implementation, r->implementation);
        f.instance = same ? f.instance + 1 : 0;
        f.family += !same;
        kbi_gbench_record(t, r, f);
    }
    kbi_puts(t, "\n]\n}\n");
}

// --- Go's benchmark format: what benchstat reads ---

// Without blanks, and without an end that is read as a number of processors.
static void kbi_go_name(kbi_text* t, const char* name) {
    kbi_text clean = { NULL, 0, 0 };
    kbi_clean(&clean, name);
    size_t end = clean.n;
    while (end && isdigit((unsigned char)clean.s[end - 1])) end--;
    if (end && end < clean.n && clean.s[end - 1] == '-') clean.s[end - 1] = '_';
    for (size_t i = 0; i < clean.n; i++) kbi_putf(t, "%c", clean.s[i] == ' ' ? '_' : clean.s[i]);
    kbi_text_free(&clean);
}

static void kbi_go_value(kbi_text* t, double x, const char* unit) { // never with an exponent
    char number[400];
    if (!kbi_finite(x)) return;
    snprintf(number, sizeof number, x >= 1e6 ? "%.0f" : "%.9f", x);
    kbi_unlocalise(number);
    for (size_t n = strlen(number); strchr(number, '.') && (number[n - 1] == '0' || number[n - 1] == '.'); n--) {
        bool point = number[n - 1] == '.';
        number[n - 1] = 0;
        if (point) break;
    }
    kbi_putf(t, " %s %s", number, unit);
}

// "12 hits", "0.93 hit_ratio-%": a unit names what is compared, so no two may have the same.
static void kbi_go_counters(kbi_text* t, const kb_result* r) {
    for (int64_t i = 0; i < r->counters.n; i++) {
        const char *name = r->counters.of[i].name, *unit = kbi_object_text(&r->counter_units, name);
        kbi_text words = { NULL, 0, 0 };
        kbi_go_name(&words, name);
        if (unit && *unit) kbi_puts(&words, "-"), kbi_go_name(&words, unit);
        kbi_go_value(t, kbi_object_number(&r->counters, name), words.s);
        kbi_text_free(&words);
    }
}

// What stays the same from run to run: another value would keep benchstat from comparing.
static void kbi_go_machine(kbi_text* t, const kb_result* r) {
    const char* texts[][2] = { { "gpu", r->gpu }, { "cpu", r->cpu } };
    for (int i = 0; i < KBI_COUNT(texts); i++) {
        if (!texts[i][1]) continue;
        kbi_putf(t, "%s: ", texts[i][0]);
        kbi_clean(t, texts[i][1]);
        kbi_puts(t, "\n");
    }
}

static void kbi_go(kbi_text* t, const kb_result* records, int64_t n) {
    kbi_puts(t, "pkg: kbench\nUnit B/s better=higher\nUnit FLOP/s better=higher\nUnit items/s better=higher\n"
                "Unit %roof better=higher\nUnit peak-B better=lower assume=exact\n");
    for (int64_t i = 0; i < n; i++) {
        const kb_result* r = &records[i];
        double ms[KBI_REPETITIONS];
        int count = kbi_repetitions(r, ms, KBI_REPETITIONS);
        if (!i || !kbi_same_text(r->gpu, r[-1].gpu) || !kbi_same_text(r->cpu, r[-1].cpu)) kbi_go_machine(t, r);
        if (!count) kbi_puts(t, "--- FAIL: Benchmark"), kbi_go_name(t, r->name), kbi_puts(t, "\n");
        for (int k = 0; k < count; k++) {
            kbi_puts(t, "Benchmark"), kbi_go_name(t, r->name);
            kbi_putf(t, " %lld", (long long)KBI_MAX(r->samples / count, (int64_t)1));
            kbi_go_value(t, ms[k] * 1e6, "ns/op");
            kbi_go_value(t, r->bytes / (ms[k] / 1e3), "B/s");
            kbi_go_value(t, r->flops / (ms[k] / 1e3), "FLOP/s");
            kbi_go_value(t, r->items_per_second * r->time_ms / ms[k], "items/s");
            kbi_go_value(t, r->gpu_efficiency * r->time_ms / ms[k], "%roof");
            if (r->memory_bytes != KB_NONE) kbi_go_value(t, (double)r->memory_bytes, "peak-B");
            kbi_go_counters(t, r);
            kbi_puts(t, "\n");
        }
    }
}

#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>report    render: report.md: every case, summaries by size, the best of each operation, what holds it back.
              Public: none      Used by: >>outputs
---------------------------------------------------------------------------------------------------------------*/

#if KBI_REPORT
static void kbi_report_operation(kbi_text* t, const kb_result* r) {
    kbi_md_text(t, r->operation ? r->operation : "");
    if (r->direction) kbi_puts(t, " "), kbi_md_text(t, r->direction);
}

static void kbi_report_number(kbi_text* t, double x, int digits, const char* unit) {
    char out[40];
    if (kbi_finite(x))
        kbi_putf(t, " %s%s |", kbi_digits(x, digits, out), unit);
    else
        kbi_puts(t, " |");
}

static void kbi_report_row(kbi_text* t, const kb_result* r) {
    char out[40];
    kbi_md_case(t, r);
    if (r->status != KB_OK) {
        kbi_putf(t, " %s | | | | | | | | |\n", kbi_md_word(r));
        return;
    }
    kbi_putf(t, " %s", kbi_show(r->time_ms_mean, 4, out));
    kbi_putf(t, " ± %s |", kbi_show(r->time_ms_std, 2, out));
    kbi_report_number(t, r->time_ms_min, 4, "");
    kbi_report_number(t, r->time_ms_max, 4, "");
    kbi_report_number(t, r->inference_speed, 4, "");
    kbi_report_number(t, r->throughput_gbps, 4, "");
    kbi_report_number(t, r->memory_mb, 4, "");
    kbi_report_number(t, r->gpu_efficiency, 3, "%");
    kbi_report_number(t, r->speedup, 3, "x");
    kbi_puts(t, " "), kbi_md_text(t, r->rating ? r->rating : ""), kbi_puts(t, " |\n");
}

static void kbi_report_cases(kbi_text* t, const kb_result* records, int64_t n) {
    kbi_puts(t,
             "\n## Cases\n\nTimes in ms, memory in MiB; efficiency is of the nearest measured roof, speedup over the "
             "baseline, and the rating that of the best verified time of the same shape over this one.\n");
    for (int64_t i = 0; i < n; i++) {
        if (!i || !kbi_same_operation(&records[i - 1], &records[i])) {
            kbi_puts(t, "\n### "), kbi_report_operation(t, &records[i]);
            kbi_puts(
                t, "\n\n| implementation | case | mean ± std | min | max | launches/s | GB/s | memory | efficiency | "
                   "speedup | rating |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
        }
        kbi_report_row(t, &records[i]);
    }
}

enum { KBI_REPORT_BOUNDS = 5 };
typedef struct kbi_report_sum { // of the cases of an operation that have something in common
    const kb_result* first;
    int64_t n, value, wins, bound[KBI_REPORT_BOUNDS];
    double logs, efficiency;
    const kb_result *best, *worst; // by efficiency
} kbi_report_sum;

// Adds a case to the sum with this key, which it may begin.
static kbi_report_sum* kbi_report_add(kbi_report_sum* sums, int64_t* count, kbi_map* map, const kb_result* r,
                                      const char* what, int64_t value) {
    char text[40];
    snprintf(text, sizeof text, "|%lld|", (long long)value);
    uint64_t key = kbi_hash(14695981039346656037u, r->operation ? r->operation : "");
    key = kbi_hash(kbi_hash(kbi_hash(kbi_hash(key, "|"), r->direction ? r->direction : ""), text), what);
    kbi_mapped* at = kbi_map_find(map, key);
    if (!at->key) {
        memset(&sums[*count], 0, sizeof *sums);
        sums[*count].first = r;
        sums[*count].value = value;
        kbi_map_take(map, at, key, (intptr_t)(*count)++);
    }
    kbi_report_sum* s = &sums[at->at];
    s->n++;
    s->logs += log(r->time_ms);
    return s;
}

static bool kbi_report_timed(const kb_result* r) {
    return r->status == KB_OK && r->time_ms > 0 && kbi_finite(r->time_ms);
}

// Geometric means by one of the sizes, where it has two values or more.
static void kbi_report_by(kbi_text* t, const kb_result* records, int64_t n, const char* name) {
    const kbi_key* key = kbi_key_named(name);
    kbi_report_sum* sums = (kbi_report_sum*)kbi_grow(NULL, sizeof(kbi_report_sum) * (size_t)(n + 1));
    kbi_map map = { NULL, 0, 0 };
    int64_t count = 0;
    bool several = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t value = *(const kbi_field_whole*)kbi_field(&records[i], key);
        if (value == KB_NONE || !kbi_report_timed(&records[i])) continue;
        kbi_report_add(sums, &count, &map, &records[i], records[i].implementation ? records[i].implementation : "",
                       value);
        several |= value != sums[0].value;
    }
    if (several) {
        kbi_putf(
            t,
            "\n### By %s\n\n| operation | implementation | %s | cases | geometric mean, ms |\n|---|---|--:|--:|--:|\n",
            name, name);
        for (int64_t i = 0; i < count; i++) {
            char out[40];
            kbi_puts(t, "| "), kbi_report_operation(t, sums[i].first), kbi_puts(t, " | ");
            kbi_md_text(t, sums[i].first->implementation ? sums[i].first->implementation : "");
            kbi_putf(t, " | %lld | %lld | %s |\n", (long long)sums[i].value, (long long)sums[i].n,
                     kbi_show(exp(sums[i].logs / (double)sums[i].n), 4, out));
        }
    }
    KBENCH_FREE(sums);
    KBENCH_FREE(map.slots);
}

static const struct {
    const char *bound, *change;
} kbi_report_bounds[KBI_REPORT_BOUNDS] = {
    { "memory", "move fewer bytes: fuse with what comes before or after, read each element once, a smaller type" },
    { "compute", "do fewer operations or cheaper ones: matrix units, a smaller type, no work on padding" },
    { "latency", "give a launch more to do: a larger batch, fewer and larger launches, a graph" },
    { "L2", "keep what is used again nearer: tiles in shared memory or registers, wider loads" },
    { "launch", "give a launch more to do: a larger batch, several kernels in one, a graph" }
};

// What an operation's cases say together, by implementation.
static kbi_report_sum* kbi_report_sums(const kb_result* records, int64_t n, int64_t* count) {
    kbi_report_sum* sums = (kbi_report_sum*)kbi_grow(NULL, sizeof(kbi_report_sum) * (size_t)(n + 1));
    kbi_map map = { NULL, 0, 0 };
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        const kb_result* r = &records[i];
        if (!kbi_report_timed(r)) continue;
        kbi_report_sum* s = kbi_report_add(sums, count, &map, r, r->implementation ? r->implementation : "", 0);
        s->wins += r->implementation && kbi_is(r->winner, r->implementation);
        for (int b = 0; b < KBI_REPORT_BOUNDS; b++) s->bound[b] += kbi_is(r->bound, kbi_report_bounds[b].bound);
        if (!kbi_finite(r->gpu_efficiency)) continue;
        if (!s->best || r->gpu_efficiency > s->best->gpu_efficiency) s->best = r;
        if (!s->worst || r->gpu_efficiency < s->worst->gpu_efficiency) s->worst = r;
    }
    KBENCH_FREE(map.slots);
    return sums;
}

static void kbi_report_efficiency(kbi_text* t, const kb_result* r) { // "81.2% in CASE"
    char out[40];
    if (r) kbi_putf(t, "%s in ", kbi_show_percent(r->gpu_efficiency / 100, out)), kbi_md_text(t, r->name);
}

static void kbi_report_best(kbi_text* t, const kbi_report_sum* sums, int64_t count) {
    kbi_puts(
        t, "\n## Best configurations\n\n| operation | implementation | cases | fastest of its rivals in | geometric "
           "mean, ms | highest efficiency |\n|---|---|--:|--:|--:|---|\n");
    for (int64_t i = 0; i < count; i++) {
        const kbi_report_sum* s = &sums[i];
        char out[40];
        kbi_puts(t, "| "), kbi_report_operation(t, s->first), kbi_puts(t, " | ");
        kbi_md_text(t, s->first->implementation ? s->first->implementation : "");
        kbi_putf(t, " | %lld | %lld | %s | ", (long long)s->n, (long long)s->wins,
                 kbi_show(exp(s->logs / (double)s->n), 4, out));
        kbi_report_efficiency(t, s->best);
        kbi_puts(t, " |\n");
    }
}

static void kbi_report_bottlenecks(kbi_text* t, const kbi_report_sum* sums, int64_t count) {
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        const kbi_report_sum* s = &sums[i];
        int most = 0;
        for (int b = 1; b < KBI_REPORT_BOUNDS; b++)
            if (s->bound[b] > s->bound[most]) most = b;
        if (!s->bound[most]) continue;
        if (!any)
            kbi_puts(t, "\n## Bottlenecks\n\n| operation | implementation | bound by | lowest efficiency | what to "
                        "change |\n|---|---|---|---|---|\n");
        any = true;
        kbi_puts(t, "| "), kbi_report_operation(t, s->first), kbi_puts(t, " | ");
        kbi_md_text(t, s->first->implementation ? s->first->implementation : "");
        kbi_putf(t, " | %s (%lld of %lld) | ", kbi_report_bounds[most].bound, (long long)s->bound[most],
                 (long long)s->n);
        kbi_report_efficiency(t, s->worst);
        kbi_putf(t, " | %s |\n", kbi_report_bounds[most].change);
    }
}

static void kbi_report_flags(kbi_text* t, const kb_result* records, int64_t n) {
    int64_t counts[KB_FLAG_COUNT] = { 0 };
    bool any = false, gpu = n && records[0].gpu;
    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < KB_FLAG_COUNT; f++) counts[f] += (int64_t)(records[i].flags >> f & 1);
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        if (!counts[f]) continue;
        if (!any) kbi_puts(t, "\n## Remarks\n\n| flag | cases | what to do |\n|---|--:|---|\n");
        any = true;
        kbi_putf(t, "| %s | %lld | %s |\n", kb_flag_name((kb_flag)f), (long long)counts[f],
                 kbi_flag_advice((kb_flag)f, gpu));
    }
}

static void kbi_report(kbi_text* t, const kb_result* records, int64_t n) {
    static const char* const sizes[] = { "batch_size", "sequence_length", "tensor_dimension" };
    int64_t count;
    size_t before;
    kbi_puts(t, "# Benchmark report\n\n");
    for (int64_t i = 0; i < n; i++)
        if (!i || !kbi_md_same_machine(&records[i - 1], &records[i])) kbi_md_machine(t, &records[i]);
    kbi_report_cases(t, records, n);
    before = t->n;
    kbi_puts(t, "\n## Summaries\n");
    size_t heading = t->n;
    for (int i = 0; i < KBI_COUNT(sizes); i++) kbi_report_by(t, records, n, sizes[i]);
    if (t->n == heading) t->s[t->n = before] = 0;
    kbi_report_sum* sums = kbi_report_sums(records, n, &count);
    if (count) kbi_report_best(t, sums, count), kbi_report_bottlenecks(t, sums, count);
    KBENCH_FREE(sums);
    kbi_report_flags(t, records, n);
}

#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>progress  render: the progress line on stderr.
              Public: none      Used by: program
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
    int process, processes; // which of how many that measure the same
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
    char left[48] = "", which[48] = "", time[32];
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
    if (p->processes > 1) snprintf(which, sizeof which, " process %d of %d", p->process + 1, p->processes);
    int room = KBI_MAX(10, kbi_terminal_width(stderr) - 30 - (int)strlen(which));
    fprintf(stderr, "\r[%d/%d]%s%s  %.*s\033[K", done + 1, all, which, left, room, name);
    fflush(stderr);
    p->shown = true;
}

/*---------------------------------------------------------------------------------------------------------------
  >>resume    program: which cases an earlier run has left records of, and what is still to be done.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_line { // of the file of lines
    uint64_t name, key;   // hashes of case and program; of the machine and the seed as well
    size_t at, n;         // without its end
    bool done;            // whole, and not of a case that failed
    bool old;             // its case is measured again
} kbi_line;

typedef struct kbi_resume {
    kbi_text text;
    kbi_line* lines; // in the order of the file
    int n;
    kbi_line** by; // of the case of the plan: its line, NULL: it is to be measured
} kbi_resume;

// The value of a key of an object's own, as it is written in a line; NULL: there is none.
static const char* kbi_line_value(const char* line, size_t n, const char* key, size_t* size) {
    int depth = 0;
    size_t start = 0, length = strlen(key);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        char c = line[i];
        if (c == '"') {
            size_t from = i + 1;
            for (i++; i < n && line[i] != '"'; i++) i += line[i] == '\\';
            bool is_key = depth == 1 && i + 1 < n && line[i + 1] == ':';
            if (!found && is_key && i - from == length && memcmp(line + from, key, length) == 0)
                found = true, start = i + 2 + (i + 2 < n && line[i + 2] == ' '), i++;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == ',' && depth == 1 && found) || ((c == '}' || c == ']') && --depth == 0)) {
            *size = i - start;
            return found && i > start ? line + start : NULL;
        }
    }
    return NULL;
}

static uint64_t kbi_line_hash(uint64_t h, const char* line, size_t n, const char* key) {
    size_t size = 0;
    const char* value = kbi_line_value(line, n, key, &size);
    for (size_t i = 0; i < (value ? size : 0); i++) h = (h ^ (unsigned char)value[i]) * 1099511628211u;
    return (h ^ 0xff) * 1099511628211u;
}

// A record is told by these: where all are equal a case is not measured again.
static void kbi_line_keys(kbi_line* l, const char* line, size_t n) {
    static const char* const keys[] = { "backend", "gpu", "device", "cpu", "seed" };
    l->name = kbi_line_hash(kbi_line_hash(14695981039346656037u, line, n, "name"), line, n, "binary");
    l->key = l->name;
    for (int i = 0; i < KBI_COUNT(keys); i++) l->key = kbi_line_hash(l->key, line, n, keys[i]);
}

// The lines that are there; none where there is no file yet.
static bool kbi_resume_open(kbi_resume* r, const char* path) {
    char some[16384];
    memset(r, 0, sizeof *r);
    int file = kbi_open_file(path, O_RDONLY);
    struct stat about;
    if (file < 0 && errno == ENOENT) return true;
    if (file < 0) return kbi_error("cannot read --jsonl %s: %s", path, strerror(errno)), false;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
        return close(file), kbi_error("--resume reads --jsonl %s, which is no file on a disk", path), false;
    for (ssize_t n; (n = kbi_read_some(file, some, sizeof some)) > 0;) kbi_put(&r->text, some, (size_t)n);
    close(file);
    for (size_t at = 0, end; at < r->text.n; at = end) {
        const char *line = r->text.s + at, *stop = (const char*)memchr(line, '\n', r->text.n - at);
        size_t n = stop ? (size_t)(stop - line) : r->text.n - at, size = 0;
        end = at + n + 1;
        if ((r->n & (r->n - 1)) == 0)
            r->lines = (kbi_line*)kbi_grow(r->lines, sizeof(kbi_line) * (size_t)KBI_MAX(2 * r->n, 16));
        kbi_line* l = &r->lines[r->n++];
        memset(l, 0, sizeof *l);
        l->at = at;
        l->n = n;
        kbi_line_keys(l, line, n);
        const char* status = kbi_line_value(line, n, "status", &size);
        bool whole = stop && n && line[0] == '{' && line[n - 1] == '}';
        l->done = whole && status && (size == 4 || size == 9) &&
                  memcmp(status, size == 4 ? "\"ok\"" : "\"skipped\"", size) == 0;
        l->old = !stop; // half written
    }
    return true;
}

static void kbi_resume_free(kbi_resume* r) {
    kbi_text_free(&r->text);
    KBENCH_FREE(r->lines);
    KBENCH_FREE(r->by);
    memset(r, 0, sizeof *r);
}

static int kbi_order_lines(const void* a, const void* b) {
    const kbi_line *x = *(kbi_line*const*)a, *y = *(kbi_line*const*)b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

// The key of a case: of its record on a machine and in a session like these, NULL: on any.
static uint64_t kbi_resume_key(const kbi_case* c, const kb_result* like) {
    static const char* const keys[] = { "name", "binary", "backend", "gpu", "device", "cpu", "seed" };
    kb_result of;
    kbi_text text = { NULL, 0, 0 };
    kbi_line line;
    memset(&of, 0, sizeof of);
    if (like) of = *like;
    of.name = c->name;
    if (!like) of.binary = kbi_binary_hash();
    for (int i = 0; i < KBI_COUNT(kbi_keys); i++) {
        bool wanted = false;
        for (int k = 0; k < KBI_COUNT(keys); k++) wanted |= kbi_is(kbi_keys[i].name, keys[k]);
        if (!wanted) continue;
        kbi_putf(&text, "%s\"%s\": ", text.n ? ", " : "{", kbi_keys[i].name);
        kbi_json_field(&text, kbi_field(&of, &kbi_keys[i]), kbi_keys[i].kind);
    }
    kbi_puts(&text, "}");
    kbi_line_keys(&line, text.s, text.n);
    kbi_text_free(&text);
    return like ? line.key : line.name;
}

// The place of the first line with such a key, or of one behind it.
static int kbi_resume_place(kbi_line** sorted, int n, uint64_t key) {
    int low = 0;
    while (low < n) {
        int middle = (low + n) / 2;
        if (sorted[middle]->key < key)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

// Finds the lines of a plan's cases. absent: those that have none here. A group that lacks one is measured as a whole,
// and what there is of it is old. The answer is the number of cases that are done.
static int kbi_resume_find(kbi_resume* r, const kbi_plan* plan, const kb_result* like, const char* absent) {
    kbi_line** sorted = (kbi_line**)kbi_grow(NULL, sizeof(kbi_line*) * (size_t)(r->n + 1));
    int done = 0;
    r->by = (kbi_line**)kbi_grow(r->by, sizeof(kbi_line*) * (size_t)(plan->n + 1));
    for (int i = 0; i < r->n; i++) {
        if (!like) r->lines[i].key = r->lines[i].name;
        sorted[i] = &r->lines[i];
    }
    qsort(sorted, (size_t)r->n, sizeof *sorted, kbi_order_lines);
    for (int first = 0, end; first < plan->n; first = end) {
        bool whole = true;
        end = kbi_group_end(plan, first);
        for (int i = first; i < end; i++) {
            uint64_t key = kbi_resume_key(&plan->cases[i], like);
            r->by[i] = NULL;
            for (int k = kbi_resume_place(sorted, r->n, key); k < r->n && sorted[k]->key == key; k++) {
                if (r->by[i]) r->by[i]->old = true; // of several the last counts
                r->by[i] = sorted[k];
            }
            if (!(absent && absent[i])) whole &= r->by[i] && r->by[i]->done;
        }
        for (int i = first; i < end; i++) {
            if (!whole && r->by[i]) r->by[i]->old = true, r->by[i] = NULL;
            done += r->by[i] != NULL;
        }
    }
    KBENCH_FREE(sorted);
    return done;
}

// Whether the group that begins here is done.
static bool kbi_resume_has(const kbi_resume* r, const kbi_plan* plan, int first) {
    for (int i = first, end = kbi_group_end(plan, first); r->by && i < end; i++)
        if (r->by[i]) return true;
    return false;
}

// What is to stand in the file from now on; false: that is what stands there.
static bool kbi_resume_lines(const kbi_resume* r, kbi_text* out) {
    bool differs = false;
    for (int i = 0; i < r->n; i++) {
        const kbi_line* l = &r->lines[i];
        differs |= l->old;
        if (!l->old) kbi_put(out, r->text.s + l->at, l->n), kbi_puts(out, "\n");
    }
    return differs;
}

// Takes what is done out of a plan that is only looked at.
static bool kbi_resume_reduce(kbi_plan* plan, const char* path) {
    kbi_resume r;
    int n = 0, groups = 0;
    if (!kbi_resume_open(&r, path)) return false;
    int done = kbi_resume_find(&r, plan, NULL, NULL);
    for (int first = 0, end; first < plan->n; first = end) {
        end = kbi_group_end(plan, first);
        if (kbi_resume_has(&r, plan, first)) continue;
        groups++;
        for (int i = first; i < end; i++) plan->cases[n++] = plan->cases[i];
    }
    kbi_warn("--resume: %d of %d cases have a record in %s", done, plan->n, path);
    plan->n = n;
    plan->groups = groups;
    kbi_resume_free(&r);
    return true;
}

/*---------------------------------------------------------------------------------------------------------------
  >>budget    program: --budget, a time for the whole run: what each case gets of it, and what has no room.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

// Every case is to have a time, so each gets the same share of what is left, the --max-time of its group; what one does
// not need, since it is known well enough or fails, the later ones have. A case takes more than that: set-up, check,
// audit, and the fewest samples. What those before took beyond their shares is set aside for those to come.
typedef struct kbi_budget {
    int64_t until;                 // ns; 0: there is none
    double turns, cases;           // still to be measured, by each process: how many max_times that takes, and cases
    double beyond, measured;       // seconds that cases took beyond their shares, in all, and how many they were
    bool begun;                    // a group: the first is measured however little time there is
    int less, left_out;            // cases that had too little; that were not run
    double widest;                 // the precision of those that had too little
    char less_name[256], out[320]; // whose that is; the first of those that were not run
} kbi_budget;

enum { KBI_BUDGET_NAMES = 3 };

// How many max_times a group of n cases takes a process: warm-up and samples, as kbi_group_seconds counts them.
static double kbi_budget_turns(const kbi_options* o, int n) {
    return (o->warmup_time >= 0 ? 0 : 0.5) * n + n + (n > 1);
}

// More of what is to be measured; or less, once it is.
static void kbi_budget_add(kbi_budget* b, const kbi_options* o, int n, double processes) {
    if (n) b->turns += processes * kbi_budget_turns(o, n), b->cases += processes * n;
}

// The max_time of the group that is next. What --max-time and --min-time say stands.
static double kbi_budget_share(const kbi_budget* b, const kbi_options* o, int64_t now) {
    double left = (double)(b->until - now) * 1e-9, each = b->measured > 0 ? b->beyond / b->measured : 0;
    if (o->warmup_time >= 0) each += o->warmup_time;
    double share = (left - each * b->cases) / KBI_MAX(b->turns, 1.0);
    if (o->on[KBI_OPTION_max_time]) share = KBI_MIN(share, o->max_time);
    return KBI_MAX(KBI_MAX(share, 1e-3), o->min_time);
}

// A group of n cases took so many seconds of this share.
static void kbi_budget_took(kbi_budget* b, const kbi_options* o, int n, double share, double seconds) {
    double beyond = seconds - kbi_group_seconds(o, share, n);
    b->begun = true;
    b->measured += n;
    b->beyond += KBI_MAX(beyond, 0.0);
}

// Whether there is no time for another group. With several processes the second one is going to measure what the
// first one did, since one by itself gives no record: of the time that is left as much as this lap has taken is for it.
static bool kbi_budget_over(const kbi_budget* b, int process, int processes, int64_t lap_began, int64_t now) {
    if (!b->until || !b->begun || process == 1) return false;
    return now + (process == 0 && processes > 1 ? now - lap_began : 0) >= b->until;
}

// A case that is not run.
static void kbi_budget_leave(kbi_budget* b, const char* name) {
    size_t n = strlen(b->out);
    if (b->left_out < KBI_BUDGET_NAMES) snprintf(b->out + n, sizeof b->out - n, "%s%.100s", n ? ", " : "", name);
    b->left_out++;
}

// A case that was measured in a share: whether it would have taken more, and been known better.
static void kbi_budget_note(kbi_budget* b, const kbi_options* o, const kb_result* r, double share) {
    if (!b->until || r->status != KB_OK || share >= o->max_time || o->iters || r->precision <= o->precision) return;
    double width = kbi_finite(r->precision) ? r->precision : (double)INFINITY;
    if (!b->less++ || width > b->widest) {
        b->widest = width;
        snprintf(b->less_name, sizeof b->less_name, "%s", r->name);
    }
}

static void kbi_budget_say(const kbi_budget* b, const kbi_options* o) {
    char text[40], width[40];
    kbi_number(o->budget, text);
    if (b->less)
        kbi_warn("--budget %ss: %d case%s had less time than %s would have taken; the least known, to %s: %s", text,
                 b->less, b->less == 1 ? "" : "s", b->less == 1 ? "it" : "they",
                 kbi_finite(b->widest) ? kbi_show_percent(b->widest, width) : "nobody knows what", b->less_name);
    if (b->left_out)
        kbi_warn("--budget %ss: %d not run: %s%s%s", text, b->left_out, b->out,
                 b->left_out > KBI_BUDGET_NAMES ? ", ..." : "",
                 o->jsonl ? "; the same command with --resume goes on with them" : "");
}

/*---------------------------------------------------------------------------------------------------------------
  >>worker    program: the process that runs cases, told by pipe which, and answering.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

typedef enum kbi_message_type {
    KBI_HELLO = 1,
    KBI_ENTER,
    KBI_BEAT,
    KBI_RESULT,
    KBI_FOUND,
    KBI_DONE
} kbi_message_type;

typedef struct kbi_message { // then size bytes
    uint32_t magic;
    int32_t type, index; // kbi_message_type; the case in the plan
    uint32_t size;
} kbi_message;

enum { KBI_MAGIC = 0x6b626e63 };

typedef enum kbi_role { KBI_STARTED, KBI_WORKER, KBI_TRUTH, KBI_BUSY } kbi_role; // by somebody else; busy: at work

// What a process of ours is, from an environment that is read, and emptied of it, before any main can take it away: a
// main that strips its own arguments, or makes up those that it gives to kb_main, would start workers without end.
static struct kbi_birth {
    kbi_role role;
    pid_t process; // whose it is: what a benchmark forks is none
    int in, out;   // truth: in is the device
    char* words;   // the process's own command line, each word ended by a zero
    size_t size;
} kbi_birth;

#define KBI_BIRTH "KBENCH_STARTED_AS"

KBI_CONSTRUCTOR static void kbi_born(void) {
    const char* s = getenv(KBI_BIRTH);
    long process = 0;
    int role = KBI_STARTED, in = -1, out = -1;
    kbi_text words = { NULL, 0, 0 };
    char some[4096];
    if (s && sscanf(s, "%ld,%d,%d,%d", &process, &role, &in, &out) == 4 && process == (long)getpid()) {
        kbi_birth.role = (kbi_role)role;
        kbi_birth.in = in;
        kbi_birth.out = out;
    }
    if (s) unsetenv(KBI_BIRTH);
    int file = kbi_birth.role == KBI_STARTED ? kbi_open_file("/proc/self/cmdline", O_RDONLY) : -1;
    for (ssize_t n; file >= 0 && (n = kbi_read_some(file, some, sizeof some)) > 0;) kbi_put(&words, some, (size_t)n);
    if (file >= 0) close(file);
    kbi_birth.process = getpid();
    kbi_birth.words = words.s;
    kbi_birth.size = words.n;
}

// The command line as the supervisor's kb_main was given it, whatever this process's main makes of its own.
static bool kbi_words_receive(int* argc, char*** argv) {
    uint32_t head[2]; // words, bytes
    if (!kbi_read_all(kbi_birth.in, head, sizeof head)) return false;
    char* text = (char*)kbi_grow(NULL, (size_t)head[1] + 1);
    char** words = (char**)kbi_grow(NULL, sizeof(char*) * ((size_t)head[0] + 1));
    if (!kbi_read_all(kbi_birth.in, text, head[1])) return false;
    text[head[1]] = 0;
    for (uint32_t i = 0; i < head[0]; i++, text += strlen(text) + 1) words[i] = text;
    words[head[0]] = NULL;
    *argc = (int)head[0];
    *argv = words;
    return true;
}

static bool kbi_words_send(int to, const kbi_options* o) {
    kbi_text text = { NULL, 0, 0 };
    for (int i = 0; i < o->argc; i++) kbi_put(&text, o->argv[i], strlen(o->argv[i]) + 1);
    uint32_t head[2] = { (uint32_t)o->argc, (uint32_t)text.n };
    bool good = kbi_write_all(to, (const char*)head, sizeof head) && kbi_write_all(to, text.s, text.n);
    kbi_text_free(&text);
    return good;
}

static void kbi_send(int file, int type, int index, const void* a, size_t a_size, const void* b, size_t b_size) {
    kbi_message m = { KBI_MAGIC, type, index, (uint32_t)(a_size + b_size) };
    if (getpid() != kbi_birth.process) kbi_stray(); // forked by a benchmark
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

static void kbi_send_inside(void* to, int index, const kbi_inside* in) {
    fflush(stdout);
    kbi_send(*(int*)to, KBI_FOUND, index, in, kbi_inside_size(in), NULL, 0);
}

// A result whose counts are those of the values that follow, and whose texts end.
static bool kbi_measured_possible(const kbi_measured* m, size_t size) {
    size_t most = size / sizeof(double);
    const char* ends[] = { m->message + sizeof m->message - 1, m->mode + sizeof m->mode - 1,
                           m->kernel + sizeof m->kernel - 1, m->throttle + sizeof m->throttle - 1 };
    for (int i = 0; i < KBI_COUNT(ends); i++)
        if (*ends[i]) return false;
    if (m->n < 0 || m->rounds < 0 || m->again < 0 || m->status < 0 || m->status > KB_SKIPPED) return false;
    if (m->n_counters < 0 || m->n_counters > KBI_COUNTERS) return false;
    for (int i = 0; i < m->n_counters; i++)
        if (m->counters[i].name[sizeof m->counters[i].name - 1] ||
            m->counters[i].unit[sizeof m->counters[i].unit - 1])
            return false;
    return (size_t)m->n <= most && (size_t)m->rounds <= most && (size_t)m->again <= most &&
           kbi_values(m) * sizeof(double) == size;
}

typedef struct kbi_job {                          // then n bytes: which of the cases
    int32_t first, n, device, process, has_truth; // process: which of those that measure the same
    uint32_t inside;                              // kbi_wish: to be looked into, not measured
    double max_time;
    kbi_truth truth;       // of the calibration, when it was measured
    kbi_roofs roofs, core; // that earlier workers measured
} kbi_job;

// The child process that asks CUPTI: writes the durations, or nothing.
static int kbi_truth_main(void) {
#if KBI_CUDA
    kbi_machine machine;
    kbi_truth truth;
    if (kbi_gpu_open(&machine, kbi_birth.in) && kbi_measure_truth(&truth))
        kbi_write_all(kbi_birth.out, (const char*)&truth, sizeof truth);
#endif
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
    int in = kbi_high_file(kbi_birth.in), out = kbi_high_file(kbi_birth.out);
    close(kbi_birth.in);
    close(kbi_birth.out);
    kbi_birth.role = KBI_BUSY;
    signal(SIGINT, SIG_IGN); // the supervisor decides
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTTIN, SIG_IGN); // no process of the terminal's own group
    signal(SIGTTOU, SIG_IGN);
    kbi_watch_stops();
    memset(&plan, 0, sizeof plan);
    if (in < 0 || out < 0 || !kbi_options_pin(o) || (!o->on[KBI_OPTION_env] && !kbi_plan_here(&plan, o)))
        return KBI_EXIT_USAGE;
    kbi_sink sink = { kbi_send_enter, kbi_send_beat, kbi_send_result, kbi_send_inside, &out };
    bool good = true;
    while (good && kbi_read_all(in, &job, sizeof job)) {
        char* wanted = (char*)kbi_grow(NULL, (size_t)job.n + 1);
        if (!kbi_read_all(in, wanted, (size_t)job.n)) return 1;
        if (!b) {
            if (job.has_truth) kbi_truth_set(&job.truth);
            kbi_roofs_set(&job.roofs, &job.core);
            kbi_recipe_of(&recipe, o);
            recipe.device = job.device;
            recipe.placement = job.process;
            kbi_recipe_inside(&recipe, job.inside);
            b = kbi_backend_open(&recipe, &machine);
            if (o->on[KBI_OPTION_env]) kbi_measure_all_roofs(b, &machine);
            if (!job.inside) kbi_send(out, KBI_HELLO, 0, &machine, sizeof machine, NULL, 0);
        }
        recipe.max_time = job.max_time;
        good = (job.inside ? kbi_inside_cases : kbi_run_cases)(plan.cases, &recipe, b, &machine, job.first, job.n,
                                                               wanted, &sink);
        // roofs may have been measured meanwhile
        if (!job.inside) kbi_send(out, KBI_HELLO, 0, &machine, sizeof machine, NULL, 0);
        kbi_send(out, KBI_DONE, good, NULL, 0, NULL, 0);
        KBENCH_FREE(wanted);
    }
    _exit(0); // a lost device can hang in the runtime's own clean-up
}

/*---------------------------------------------------------------------------------------------------------------
  >>outputs   program: what a run or --load writes when all records are there: opened before, replaced as a whole.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

#if KBI_REPORT
typedef struct kbi_output {
    const char* option;
    kbi_render render;
    char *path, *temporary; // from the root on; beside path, renamed over it at the end; NULL: written in place
    int file;               // -1: stdout
    bool append;
} kbi_output;
typedef struct kbi_outputs {
    kbi_output of[12];
    int n;
    kbi_records kept; // of a run, whose own records do not outlive their group
} kbi_outputs;

// What stands at the begin of every file of a renderer's.
static const char* kbi_output_mark(kbi_render render) {
    return render == kbi_csv      ? "name,operation,"
           : render == kbi_gbench ? "\"context\""
           : render == kbi_go     ? "pkg: kbench"
           : render == kbi_trace  ? "\"producer\":\"kbench"
                                  : ", kbench ";
}

static bool kbi_output_open(kbi_output* out) {
    struct stat about;
    kbi_text name = { NULL, 0, 0 };
    out->file = -1;
    if (kbi_is(out->path, "-")) return true;
    bool plain = !out->append && (lstat(out->path, &about) != 0 || S_ISREG(about.st_mode));
    if (!out->append && out->render != kbi_report && kbi_is_foreign(out->path, kbi_output_mark(out->render)))
        return kbi_error("--%s %s: that file was written by something else; nothing is written to it", out->option,
                         out->path),
               false;
    kbi_putf(&name, plain ? "%s.tmp%ld" : "%s", out->path, (long)getpid());
    if (plain) kbi_remove_all_left(out->path);
    out->file =
        plain ? kbi_open_temporary(name.s) : kbi_open_file(name.s, O_WRONLY | O_CREAT | (out->append ? O_APPEND : 0));
    if (out->file < 0) kbi_error("cannot write --%s %s: %s", out->option, out->path, strerror(errno));
    if (plain && out->file >= 0)
        out->temporary = name.s;
    else
        kbi_text_free(&name);
    return out->file >= 0;
}

// False after an error message, and where one file is there for two options.
static bool kbi_outputs_add(kbi_outputs* all, const kbi_options* o, const char* option, kbi_render render,
                            const char* folder, const char* path) {
    kbi_output* out = &all->of[all->n];
    char here[4096];
    kbi_text full = { NULL, 0, 0 };
    const char* start = folder ? folder : path;
    if (!*start) return kbi_error("--%s needs a name; its is empty", option), false;
    bool standard = !folder && kbi_is(path, "-");
    if (*start != '/' && !standard && getcwd(here, sizeof here)) kbi_putf(&full, "%s/", here);
    if (folder) kbi_putf(&full, "%s/", folder);
    kbi_puts(&full, path);
    memset(out, 0, sizeof *out);
    out->option = option;
    out->render = render;
    out->path = full.s;
    out->file = -1;
    out->append = kbi_is(option, "github");
    bool taken = kbi_is(o->json, path) || kbi_is(o->jsonl, path);
    for (int i = 0; i < all->n; i++) taken |= kbi_is(all->of[i].path, out->path);
    all->n++;
    if (taken && !folder) return kbi_error("--%s %s: another option writes there", option, path), false;
    return kbi_output_open(out);
}

static bool kbi_outputs_report(kbi_outputs* all, const kbi_options* o) {
    if (*o->report && mkdir(o->report, 0777) != 0 && errno != EEXIST)
        return kbi_error("cannot make --report %s: %s", o->report, strerror(errno)), false;
    return kbi_outputs_add(all, o, "report", kbi_csv, o->report, "comparison.csv") &&
           kbi_outputs_add(all, o, "report", kbi_md, o->report, "comparison.md") &&
           kbi_outputs_add(all, o, "report", kbi_report, o->report, "report.md");
}

static void kbi_outputs_discard(kbi_outputs* all) {
    for (int i = 0; i < all->n; i++) {
        if (all->of[i].file >= 0) close(all->of[i].file);
        if (all->of[i].temporary) unlink(all->of[i].temporary);
        KBENCH_FREE(all->of[i].temporary);
        KBENCH_FREE(all->of[i].path);
    }
    kbi_records_free(&all->kept);
    all->n = 0;
}

// All files that the options ask for but those of >>store; false after an error message, with nothing left open.
static bool kbi_outputs_open(kbi_outputs* all, const kbi_options* o) {
    const struct {
        const char *option, *path;
        kbi_render render;
    } files[] = { { "csv", o->csv, kbi_csv },
                  { "md", o->md, kbi_md },
                  { "gbench", o->gbench, kbi_gbench },
                  { "go", o->go, kbi_go },
                  { "trace", o->trace, kbi_trace } };
    const char* summary = getenv("GITHUB_STEP_SUMMARY");
    bool good = true;
    memset(all, 0, sizeof *all);
    for (int i = 0; i < KBI_COUNT(files) && good; i++)
        if (files[i].path) good = kbi_outputs_add(all, o, files[i].option, files[i].render, NULL, files[i].path);
    if (good && o->on[KBI_OPTION_github] && (!summary || !*summary)) {
        kbi_error("--github writes to the file that GITHUB_STEP_SUMMARY names, and it names none");
        good = false;
    } else if (good && o->on[KBI_OPTION_github])
        good = kbi_outputs_add(all, o, "github", kbi_md, NULL, summary);
    if (good && o->report) good = kbi_outputs_report(all, o);
    if (!good) kbi_outputs_discard(all);
    return good;
}

static bool kbi_outputs_stdout(const kbi_options* o) { // whether one of them takes it from the table
    const char* paths[] = { o->json, o->jsonl, o->csv, o->md, o->gbench, o->go, o->trace };
    for (int i = 0; i < KBI_COUNT(paths); i++)
        if (kbi_is(paths[i], "-")) return true;
    return false;
}

static void kbi_outputs_keep(kbi_outputs* all, const kb_result* r) {
    if (all->n) kbi_records_keep(&all->kept, r);
}

static bool kbi_output_write(kbi_output* out, const kb_result* records, int64_t n) {
    kbi_text t = { NULL, 0, 0 };
    bool good;
    out->render(&t, records, n);
    kbi_put(&t, "", 0);
    if (kbi_is(out->path, "-")) {
        fwrite(t.s, 1, t.n, stdout);
        good = fflush(stdout) == 0;
    } else {
        int again =
            out->temporary || out->append ? -1 : kbi_open_file(out->path, O_WRONLY | O_TRUNC); // behind a link
        if (again >= 0) close(again);
        good = kbi_write_all(out->file, t.s, t.n) && (fsync(out->file) == 0 || errno == EINVAL);
        if (good && out->temporary && rename(out->temporary, out->path) != 0) good = false;
        if (close(out->file) != 0) good = false;
        if (!good && out->temporary) unlink(out->temporary);
    }
    if (!good) kbi_error("writing --%s %s failed: %s", out->option, out->path, strerror(errno));
    kbi_text_free(&t);
    return good;
}

// Writes all of them, of these records or, NULL, of those that were kept; where there are none, old files stay.
static bool kbi_outputs_close(kbi_outputs* all, const kbi_records* from) {
    const kb_result* records = from ? from->of : all->kept.of;
    int64_t n = from ? from->n : all->kept.n;
    bool good = true;
    for (int i = 0; i < all->n; i++) {
        kbi_output* out = &all->of[i];
        if (!n && out->temporary && access(out->path, F_OK) == 0) continue;
        if (!kbi_output_write(out, records, n)) good = false;
        out->file = -1;
        KBENCH_FREE(out->temporary);
        out->temporary = NULL;
    }
    kbi_outputs_discard(all);
    return good;
}

#else
typedef struct kbi_outputs {
    int n;
} kbi_outputs;
static bool kbi_outputs_open(kbi_outputs* all, const kbi_options* o) { return (void)o, all->n = 0, true; }
static void kbi_outputs_keep(kbi_outputs* all, const kb_result* r) { (void)all, (void)r; }
static void kbi_outputs_discard(kbi_outputs* all) { (void)all; }
static bool kbi_outputs_close(kbi_outputs* all, const void* from) { return (void)all, (void)from, true; }
static bool kbi_outputs_stdout(const kbi_options* o) { return kbi_is(o->json, "-") || kbi_is(o->jsonl, "-"); }
#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>supervisor program: the process that owns the terminal, the files and the watchdog. It never touches the GPU.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

typedef struct kbi_worker { // as the supervisor sees it
    pid_t process;          // 0: none
    int to, from, device;
    kbi_text inbox;    // what came and was not handled yet
    int first;         // the case that it entered first, -1: none
    bool mixed;        // it entered others, too
    bool dead, babble; // it was waited for, and how it ended is known; what it sent makes no sense
    int status;
} kbi_worker;

enum { KBI_DIED_TEXT = 96 };
typedef struct kbi_again { // a case whose worker died in it, perhaps for what an earlier case left behind
    bool due, done;        // to be measured alone in a fresh one; that has been tried
    char died[KBI_DIED_TEXT];
} kbi_again;

typedef struct kbi_group { // the group being measured
    int first, n;
    kbi_measured* m;
    double** samples;
    char* wanted;   // still to be measured
    int64_t* spent; // ns in each case
    int current;    // the case the worker is in, -1 between cases
    int64_t since;
    kbi_again* again;
    int idle;            // workers in a row that died before they entered a case
    kbi_inside** inside; // what was found inside of them; NULL: they are being measured
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
    int process; // which of those that measure the same is at work
    kbi_pools pools;
    kbi_store store;
    kbi_outputs outputs;
    kbi_session session;
    kbi_resume resume;
    kbi_table table;
    kb_result* held; // with --sort: those of the operation that is being measured, until all are there
    int n_held;
    kbi_progress progress;
    kbi_budget budget;
    void (*collect)(void* to, const kb_result* r); // NULL: results are only stored and shown
    void* collect_to;
    bool has_truth; // of the calibration, measured here
    kbi_truth truth;
    unsigned inside;                       // kbi_wish: what is to be looked into
    char said[400];                        // of why that was not to be had, last
    int done, ok, failed, skipped, absent; // cases; absent: this machine cannot run them
    int resumed;                           // that an earlier run has done
    int fewer;                             // that an interruption left with fewer processes
    bool isolated;
    int64_t tick; // when it last looked
} kbi_supervisor;

// What the process keeps that owns the terminal and the files.
static struct kbi_desk {
    volatile sig_atomic_t interrupted, one_process;
    kbi_supervisor run;                   // the one that is under way
    void (*take)(void* to, kb_result* r); // who keeps the records of a run, with what they own; NULL: nobody
    void* take_to;
} kbi_desk;

// In one process the second one ends what hangs. Otherwise that is the worker, which the first one ends already, and a
// second one must not come between finished results and their file.
static void kbi_interrupt(int number) {
    signal(number, kbi_desk.one_process || kbi_desk.interrupted ? SIG_DFL : kbi_interrupt);
    kbi_desk.interrupted = number;
}

// Ctrl-Z stops the terminal's own process group, which the worker is not in: it stops and goes on with this process.
static void kbi_suspend(int number) {
    pid_t process = kbi_desk.run.worker.process;
    int kept = errno;
    signal(number, kbi_suspend);
    if (process > 0) kill(-process, SIGSTOP);
    kill(getpid(), SIGSTOP);
    if (process > 0) kill(-process, SIGCONT);
    errno = kept;
}

static bool kbi_worker_died(kbi_worker* w) {
    if (!w->dead && waitpid(w->process, &w->status, WNOHANG) != 0) w->dead = true;
    return w->dead;
}

// Two seconds to leave by itself, then it is made to; what it left running ends with it.
static void kbi_worker_end(kbi_worker* w) {
    if (!w->process) return;
    close(w->to);
    close(w->from);
    for (int i = 0; i < 200 && !kbi_worker_died(w); i++) {
        if (i == 100) kill(w->process, SIGKILL);
        kbi_readable(-1, 20);
    }
    kill(-w->process, SIGKILL);
    kbi_text_free(&w->inbox);
    w->process = 0;
}

static void kbi_worker_kill(kbi_worker* w) {
    if (!w->process) return;
    if (!w->dead) kill(w->process, SIGKILL);
    kbi_worker_end(w);
}

// Starts this very program again, with its own command line: its main does there what it did here, until it calls
// kb_main. In the child the function does not return.
static pid_t kbi_start_again(const kbi_options* o, kbi_role role, int in, int out, int close_a, int close_b) {
    fflush(NULL);
    pid_t parent = getpid(), process = fork();
    if (process != 0) {
        if (process < 0) kbi_error("no process: %s", strerror(errno));
        if (process > 0) setpgid(process, process);
        return process;
    }
    char birth[80], **argv = o->argv;
    size_t words = 0;
    setpgid(0, 0);
    if (close_a >= 0) close(close_a);
    if (close_b >= 0) close(close_b);
    dup2(2, 1); // what bodies print is not results
    signal(SIGXFSZ, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    for (size_t i = 0; i < kbi_birth.size; i++) words += !kbi_birth.words[i];
    if (words) {
        char* word = kbi_birth.words;
        argv = (char**)kbi_grow(NULL, sizeof(char*) * (words + 1));
        for (size_t i = 0; i < words; i++, word += strlen(word) + 1) argv[i] = word;
        argv[words] = NULL;
    }
    snprintf(birth, sizeof birth, "%ld,%d,%d,%d", (long)getpid(), (int)role, in, out);
    setenv(KBI_BIRTH, birth, 1);
    execv("/proc/self/exe", argv);
    if (strchr(argv[0], '/')) execv(argv[0], argv); // without /proc
    kbi_error("cannot start the worker: %s", strerror(errno));
    _exit(1);
}

static bool kbi_worker_start(kbi_supervisor* s, int device) {
    kbi_worker* w = &s->worker;
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) return kbi_error("no pipe: %s", strerror(errno)), false;
    pid_t process = kbi_start_again(s->o, KBI_WORKER, to[0], from[1], to[1], from[0]);
    close(to[0]);
    close(from[1]);
    if (process < 0) return close(to[1]), close(from[0]), false;
    fcntl(to[1], F_SETFD, FD_CLOEXEC);
    fcntl(from[0], F_SETFD, FD_CLOEXEC);
    fcntl(from[0], F_SETFL, O_NONBLOCK); // half a message must not stop the watchdog
    memset(w, 0, sizeof *w);
    w->process = process;
    w->to = to[1];
    w->from = from[0];
    w->device = device;
    w->first = -1;
    kbi_words_send(w->to, s->o); // who is not there to read it is found out by what follows
    return true;
}

// Asks a child process for CUPTI's durations of the calibration's launches; ten seconds at most.
static void kbi_ask_truth(kbi_supervisor* s, int device) {
    int from[2];
    size_t have = 0;
    if (s->has_truth || pipe(from) != 0) return;
    pid_t process = kbi_start_again(s->o, KBI_TRUTH, device, from[1], from[0], -1);
    close(from[1]);
    for (int i = 0; process > 0 && i < 100 && have < sizeof s->truth && !kbi_desk.interrupted; i++) {
        if (!kbi_readable(from[0], 100)) continue;
        ssize_t n = kbi_read_some(from[0], (char*)&s->truth + have, sizeof s->truth - have);
        if (n <= 0) break;
        have += (size_t)n;
    }
    close(from[0]);
    if (process > 0) kill(-process, SIGKILL), kill(process, SIGKILL), waitpid(process, NULL, 0);
    s->has_truth = have == sizeof s->truth;
}

// --- what comes back ---

static void kbi_receive_enter(void* to, int index) {
    kbi_supervisor* s = (kbi_supervisor*)to;
    kbi_group* g = &s->group;
    int64_t now = kbi_now();
    if (g->current >= 0) g->spent[g->current] += now - g->since;
    g->current = index - g->first;
    g->idle = 0;
    if (s->worker.first < 0) s->worker.first = index;
    s->worker.mixed |= index != s->worker.first;
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
    kbi_again* again = s->group.again ? &s->group.again[i] : NULL;
    s->group.m[i] = *m;
    if (again && again->due && !(m->flags >> KB_FLAG_CRASHED & 1))
        kbi_remark(&s->group.m[i],
                   "measured alone in a fresh process: the one that had run other cases died in it, %s", again->died);
    if (again && again->due) again->due = false, again->done = true;
    s->group.samples[i] = (double*)kbi_grow(NULL, sizeof(double) * (kbi_values(m) + 1));
    if (kbi_values(m)) memcpy(s->group.samples[i], samples, sizeof(double) * kbi_values(m));
    s->group.wanted[i] = 0;
    s->group.current = -1;
    s->group.since = kbi_now();
    s->done++;
}

static void kbi_receive_inside(void* to, int index, const kbi_inside* in) {
    kbi_supervisor* s = (kbi_supervisor*)to;
    int i = index - s->group.first;
    s->group.inside[i] = kbi_inside_copy(kbi_grow(NULL, kbi_inside_size(in)), in);
    s->group.wanted[i] = 0;
    s->group.current = -1;
    s->group.since = kbi_now();
    if (!in->message[0] || kbi_is(in->message, s->said)) return;
    kbi_progress_clear(&s->progress);
    kbi_warn("%s is not looked into: %s", s->plan->cases[index].name, in->message);
    memcpy(s->said, in->message, sizeof s->said);
}

// A case that ended its worker, or had to be ended with it.
KBI_PRINTF(4, 5) static void kbi_case_lost(kbi_supervisor* s, int i, kb_flag flag, const char* format, ...) {
    kbi_measured m;
    va_list list;
    kbi_measured_clear(&m);
    m.status = KB_FAILED;
    m.flags = (uint64_t)1 << flag;
    va_start(list, format);
    kbi_say_more(&m, format, list);
    va_end(list);
    m.wall_ns = (double)(kbi_now() - s->group.since);
    if (s->group.inside) { // that is nothing against what was measured before
        kbi_inside* without = kbi_inside_without(m.message);
        kbi_receive_inside(s, s->group.first + i, without);
        KBENCH_FREE(without);
        return;
    }
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

static void kbi_say_death(const kbi_worker* w, char died[KBI_DIED_TEXT]) {
    if (w->babble)
        snprintf(died, KBI_DIED_TEXT, "what its process sent is no answer of a worker");
    else if (WIFSIGNALED(w->status))
        snprintf(died, KBI_DIED_TEXT, "signal %d (%s)", WTERMSIG(w->status), kbi_signal_name(WTERMSIG(w->status)));
    else
        snprintf(died, KBI_DIED_TEXT, "the benchmark ended the process with exit code %d", WEXITSTATUS(w->status));
}

// The worker is gone: whose fault that was, and how it went.
static void kbi_worker_lost(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    char died[KBI_DIED_TEXT];
    int i = g->current;
    if (s->worker.babble) kbi_worker_kill(&s->worker);
    kbi_worker_end(&s->worker);
    if (i < 0 && g->idle++ < 2) return; // nobody's fault: the next one is asked
    for (int j = 0; i < 0 && j < g->n; j++)
        if (g->wanted[j]) i = j;
    if (i < 0) return;
    kbi_say_death(&s->worker, died);
    if (s->worker.mixed && !g->again[i].done && !g->again[i].due) {
        g->again[i].due = true;
        memcpy(g->again[i].died, died, sizeof died);
        g->current = -1;
    } else {
        kbi_case_lost(s, i, KB_FLAG_CRASHED, "%s", died);
    }
}

typedef enum kbi_pump { KBI_PUMP_ON, KBI_PUMP_DONE, KBI_PUMP_LOST } kbi_pump;

enum { KBI_MESSAGE_LIMIT = 1 << 30 };

// Whether a message of such a kind, size and index can come now.
static bool kbi_message_possible(const kbi_supervisor* s, const kbi_message* m) {
    int i = m->index - s->group.first;
    bool ours = i >= 0 && i < s->group.n && s->group.wanted && s->group.wanted[i];
    if (m->magic != KBI_MAGIC) return false;
    switch (m->type) {
    case KBI_HELLO: return m->size == sizeof s->machine;
    case KBI_ENTER: return m->size == 0 && ours;
    case KBI_BEAT:
    case KBI_DONE: return m->size == 0;
    case KBI_RESULT:
        return ours && !s->group.inside && m->size >= sizeof(kbi_measured) && m->size <= KBI_MESSAGE_LIMIT;
    case KBI_FOUND: return ours && s->group.inside && m->size >= sizeof(kbi_inside) && m->size <= KBI_MESSAGE_LIMIT;
    default: return false;
    }
}

static kbi_pump kbi_handle_message(kbi_supervisor* s, const kbi_message* m, const char* body) {
    switch (m->type) {
    case KBI_HELLO: memcpy(&s->machine, body, sizeof s->machine), s->known = true; break;
    case KBI_ENTER: kbi_receive_enter(s, m->index); break;
    case KBI_BEAT: kbi_receive_beat(s); break;
    case KBI_DONE:
        if (!m->index) kbi_worker_kill(&s->worker); // its device is lost
        return KBI_PUMP_DONE;
    case KBI_FOUND: {
        kbi_inside* in = (kbi_inside*)memcpy(kbi_grow(NULL, m->size), body, m->size); // where the pipe left it is odd
        bool possible = kbi_inside_possible(in, m->size);
        if (possible) kbi_receive_inside(s, m->index, in);
        KBENCH_FREE(in);
        return possible ? KBI_PUMP_ON : KBI_PUMP_LOST;
    }
    default: {
        kbi_measured measured;
        memcpy(&measured, body, sizeof measured);
        if (!kbi_measured_possible(&measured, m->size - sizeof measured)) return KBI_PUMP_LOST;
        kbi_receive_result(s, m->index, &measured, (const double*)(const void*)(body + sizeof measured));
    }
    }
    return KBI_PUMP_ON;
}

// Takes what has come, which may end in the middle of a message, and handles those that are whole.
static kbi_pump kbi_receive(kbi_supervisor* s) {
    kbi_worker* w = &s->worker;
    char some[16384];
    size_t at = 0;
    kbi_pump next = KBI_PUMP_ON;
    ssize_t n = kbi_read_some(w->from, some, sizeof some);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return KBI_PUMP_ON;
    if (n <= 0) return KBI_PUMP_LOST;
    kbi_put(&w->inbox, some, (size_t)n);
    while (next == KBI_PUMP_ON && w->inbox.n - at >= sizeof(kbi_message)) {
        kbi_message m;
        memcpy(&m, w->inbox.s + at, sizeof m);
        if (!kbi_message_possible(s, &m)) return w->babble = true, KBI_PUMP_LOST;
        if (w->inbox.n - at - sizeof m < m.size) break;
        next = kbi_handle_message(s, &m, w->inbox.s + at + sizeof m);
        if (next == KBI_PUMP_LOST) w->babble = true;
        at += sizeof m + m.size;
    }
    if (!w->process) return next; // ended, and its inbox with it
    memmove(w->inbox.s, w->inbox.s + at, w->inbox.n - at);
    w->inbox.n -= at;
    return next;
}

// What comes within a moment; a worker that is gone is told from one whose pipe a child of its own keeps open.
static kbi_pump kbi_await(kbi_supervisor* s) {
    bool ready = kbi_readable(s->worker.from, 100);
    int64_t now = kbi_now(), gone = now - s->tick;
    if (gone > 300000000) s->group.since += gone - 100000000; // stopped, as the worker was: that is nobody's time
    s->tick = now;
    if (ready) return kbi_receive(s);
    if (!kbi_worker_died(&s->worker)) return KBI_PUMP_ON;
    return kbi_readable(s->worker.from, 0) ? KBI_PUMP_ON : KBI_PUMP_LOST; // its last words may have come meanwhile
}

// Until the worker has done its job, died, or taken too long.
static void kbi_listen(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    for (;;) {
        kbi_pump next = kbi_await(s);
        if (kbi_desk.interrupted) return;
        if (next == KBI_PUMP_LOST) kbi_worker_lost(s);
        if (next != KBI_PUMP_ON) return;
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

/*---------------------------------------------------------------------------------------------------------------
  >>groups    program: what the worker is asked for: a machine, and the cases of a group, measured or looked into.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

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
    job.process = s->process;
    job.inside = g->inside ? s->inside : 0;
    job.max_time = s->recipe.max_time;
    job.has_truth = s->has_truth;
    job.truth = s->truth;
    kbi_roofs_clear(&job.roofs);
    kbi_roofs_clear(&job.core);
    if (s->machine.gpu_present ? s->machine.device == device : s->machine.backend[0] != 0)
        job.roofs = s->machine.roofs;
    if (s->machine.backend[0]) job.core = s->machine.core;
    g->current = -1;
    g->since = s->tick = kbi_now();
    for (int i = 0; i < g->n; i++) g->spent[i] = 0; // what a worker that is no more spent is no fault of theirs
    return kbi_write_all(s->worker.to, (const char*)&job, sizeof job) &&
           kbi_write_all(s->worker.to, wanted, (size_t)g->n);
}

// Learns what machine this is: an empty job.
static bool kbi_meet_once(kbi_supervisor* s, int device) {
    s->known = false;
    if (!s->isolated) {
        if (!kbi_options_pin(s->o)) return false;
        if (s->has_truth) kbi_truth_set(&s->truth);
        s->recipe.device = device;
        s->backend = kbi_backend_open(&s->recipe, &s->machine);
        if (s->o->on[KBI_OPTION_env]) kbi_measure_all_roofs(s->backend, &s->machine);
        s->known = true;
        return true;
    }
    char* nothing = (char*)kbi_grow(NULL, (size_t)s->group.n + 1);
    memset(nothing, 0, (size_t)s->group.n + 1);
    if (!kbi_worker_start(s, device)) return false;
    double limit = KBI_MAX(120.0, s->o->timeout);
    kbi_pump next = kbi_send_job(s, device, nothing) ? KBI_PUMP_ON : KBI_PUMP_LOST;
    while (next == KBI_PUMP_ON && !kbi_desk.interrupted && kbi_seconds_since(s->group.since) <= limit)
        next = kbi_await(s);
    KBENCH_FREE(nothing);
    if (next == KBI_PUMP_DONE) return s->known;
    kbi_worker_kill(&s->worker);
    if (next == KBI_PUMP_LOST && !kbi_desk.interrupted)
        kbi_error("the worker ended before it began; --no-isolate shows why");
    else if (!kbi_desk.interrupted)
        kbi_error("the device did not start in %.0f s", limit);
    return false;
}

// The calibration's truth comes from a process of its own, before the first one that measures. Without a GPU it ends as
// soon as it has found that.
static bool kbi_meet(kbi_supervisor* s, int device) {
    if (KBI_CUDA && s->isolated && s->recipe.target == KBI_ON_GPU && s->recipe.timing == KBI_BY_EVENTS)
        kbi_ask_truth(s, device);
    return kbi_meet_once(s, device);
}

static void kbi_measure_group(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    if (!s->isolated) {
        kbi_sink sink = { kbi_receive_enter, kbi_receive_beat, kbi_receive_result, kbi_receive_inside, s };
        kbi_recipe recipe = s->recipe;
        char* wanted = (char*)kbi_grow(NULL, (size_t)g->n + 1);
        memcpy(wanted, g->wanted, (size_t)g->n);
        if (g->inside) kbi_recipe_inside(&recipe, s->inside);
        (g->inside ? kbi_inside_cases : kbi_run_cases)(s->plan->cases, &recipe, s->backend, &s->machine, g->first,
                                                       g->n, wanted, &sink);
        KBENCH_FREE(wanted);
        for (int i = 0; i < g->n; i++)
            if (g->wanted[i]) kbi_case_lost(s, i, KB_FLAG_CUDA_ERROR, "another case lost the device before this one");
        return;
    }
    char* wanted = (char*)kbi_grow(NULL, (size_t)g->n);
    while (memchr(g->wanted, 1, (size_t)g->n) && !kbi_desk.interrupted) {
        int device = s->worker.device, alone = -1;
        memcpy(wanted, g->wanted, (size_t)g->n);
        for (int i = 0; i < g->n && alone < 0; i++)
            if (g->wanted[i] && g->again[i].due) alone = i;
        if (alone >= 0) {
            memset(wanted, 0, (size_t)g->n);
            wanted[alone] = 1;
            if (s->worker.first >= 0) kbi_worker_kill(&s->worker);
        }
        if (!s->worker.process && !kbi_worker_start(s, device)) {
            for (int i = 0; i < g->n; i++)
                if (g->wanted[i]) kbi_case_lost(s, i, KB_FLAG_CRASHED, "not run: its process could not be started");
            break;
        }
        if (kbi_send_job(s, device, wanted))
            kbi_listen(s);
        else
            kbi_worker_lost(s);
    }
    KBENCH_FREE(wanted);
}

/*---------------------------------------------------------------------------------------------------------------
  >>laps      program: a lap, the part of the plan that is measured, judged and stored at once.
              Public: none      Used by: >>program
---------------------------------------------------------------------------------------------------------------*/

// --- shown ---

static void kbi_count(kbi_supervisor* s, const kb_result* r) {
    if (r->status == KB_OK)
        s->ok++;
    else if (r->status == KB_FAILED)
        s->failed++;
    else
        s->skipped++;
}

// How many cases of the plan, all shards together, have the operation and direction of this one.
static int64_t kbi_planned(const kbi_plan* plan, const kbi_case* like) {
    int64_t n = 0;
    for (const kbi_case* c = plan->cases; c < plan->cases + plan->n_all; c++)
        n += kbi_is(c->entry->operation, like->entry->operation) &&
             (c->direction ? kbi_is(c->direction, like->direction) : !like->direction);
    return n;
}

// Prints what is held back, and gives it back.
static void kbi_show_held(kbi_supervisor* s) {
    if (!s->collect) kbi_table_add(&s->table, s->held, s->n_held);
    for (int i = 0; i < s->n_held; i++) {
        if (kbi_desk.take)
            kbi_desk.take(kbi_desk.take_to, &s->held[i]);
        else
            kb_result_free(&s->held[i]);
    }
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

// --- measured ---

enum { KBI_LAP_CASES = 16 }; // at least, of several processes: starting one is shared by so many

// Consecutive groups of the plan: n cases. What is known of process p's case i stands at [p * n + i].
typedef struct kbi_lap {
    int first, n, processes;
    kbi_measured* m;
    double** samples;   // NULL: not measured
    kb_result* results; // of what was measured, by itself
    double* share;      // [i]: the least max_time that --budget left it in a process
    int64_t began;
    bool* over;          // [i]: failed or was skipped in a process; the others need not find out, too
    kbi_inside** inside; // [i]: what was found inside of it; NULL: nobody looked
} kbi_lap;

// Where a lap begins, and where the next does: after every group where there is one process. Who looks inside does so
// in a process of its own; where there is but one, when all has been measured.
static int kbi_lap_end(const kbi_supervisor* s, int first) {
    const kbi_plan* plan = s->plan;
    int end = kbi_group_end(plan, first), most = s->o->procs > 1 || s->inside ? (int)KBI_LAP_CASES : 0;
    if (s->inside && !s->isolated) most = plan->n;
    while (end < plan->n && end - first < most && !kbi_resume_has(&s->resume, plan, end))
        end = kbi_group_end(plan, end);
    return end;
}

// Makes a group of the lap the one that the worker is asked for; nobody is asked for anything yet.
static void kbi_lap_group_open(kbi_supervisor* s, kbi_lap* lap, int first, int n) {
    kbi_group* g = &s->group;
    size_t at = (size_t)(s->process * lap->n + first - lap->first), count = (size_t)n;
    memset(g, 0, sizeof *g);
    g->first = first;
    g->n = n;
    g->m = lap->m + at;
    g->samples = lap->samples + at;
    g->wanted = (char*)kbi_grow(NULL, count);
    memset(g->wanted, 0, count);
    g->spent = (int64_t*)kbi_grow(NULL, sizeof(int64_t) * count);
    memset(g->spent, 0, sizeof(int64_t) * count);
    g->again = (kbi_again*)kbi_grow(NULL, sizeof(kbi_again) * count);
    memset(g->again, 0, sizeof(kbi_again) * count);
}

static void kbi_lap_group_close(kbi_supervisor* s) {
    kbi_group* g = &s->group;
    KBENCH_FREE(g->again);
    KBENCH_FREE(g->spent);
    KBENCH_FREE(g->wanted);
    g->wanted = NULL; // nobody is asked for anything until the next group
    g->inside = NULL;
}

static void kbi_lap_group(kbi_supervisor* s, kbi_lap* lap, int first, int n) {
    int here = 0;
    kbi_lap_group_open(s, lap, first, n);
    for (int i = 0; i < n; i++) {
        bool runs = kbi_runs_here(s, &s->plan->cases[first + i]);
        s->group.wanted[i] = runs && !lap->over[first - lap->first + i];
        here += runs;
        lap->share[first - lap->first + i] = KBI_MIN(lap->share[first - lap->first + i], s->recipe.max_time);
        s->absent += !runs && s->process == 0;
        s->done += !s->group.wanted[i];
    }
    int64_t began = kbi_now();
    kbi_progress_group(&s->progress, kbi_group_seconds(s->o, s->recipe.max_time, here));
    kbi_measure_group(s);
    if (here) kbi_budget_took(&s->budget, s->o, here, s->recipe.max_time, kbi_seconds_since(began));
    kbi_lap_group_close(s);
}

// Whether a group has no time, or its first process had none; if it has, how much.
static bool kbi_lap_no_time(kbi_supervisor* s, const kbi_lap* lap, int first, int end) {
    kbi_budget* b = &s->budget;
    int here = 0, at = first - lap->first;
    if (!b->until) return false;
    for (int i = first; i < end; i++) here += kbi_runs_here(s, &s->plan->cases[i]);
    bool none = here && (kbi_budget_over(b, s->process, lap->processes, lap->began, kbi_now()) || lap->share[at] < 0);
    if (!none) s->recipe.max_time = kbi_budget_share(b, s->o, kbi_now());
    kbi_budget_add(b, s->o, here, -1);
    for (int i = first; none && s->process == 0 && i < end; i++) {
        lap->share[i - lap->first] = -1;
        if (kbi_runs_here(s, &s->plan->cases[i])) kbi_budget_leave(b, s->plan->cases[i].name);
    }
    return none;
}

// All groups by one process, which is a fresh one where there are several.
static void kbi_lap_pass(kbi_supervisor* s, kbi_lap* lap) {
    int end = lap->first + lap->n;
    s->done = lap->first;
    s->progress.process = s->process;
    s->progress.processes = lap->processes;
    for (int first = lap->first, next; first < end && !kbi_desk.interrupted; first = next) {
        next = kbi_group_end(s->plan, first);
        if (!kbi_lap_no_time(s, lap, first, next)) kbi_lap_group(s, lap, first, next - first);
    }
    for (int i = 0; i < lap->n; i++) {
        int at = s->process * lap->n + i;
        kb_result* r = &lap->results[at];
        if (!lap->samples[at]) continue;
        kbi_judge(r, &lap->m[at], lap->samples[at], &s->machine);
        kbi_record_case(r, &s->plan->cases[lap->first + i], &lap->m[at], &s->machine);
        kbi_record_session(r, &s->session);
        lap->over[i] |= r->status != KB_OK;
    }
    if (lap->processes > 1) kbi_worker_kill(&s->worker);
}

// Looks into the cases that have times, in a process that measures nothing: what it loads stays in it.
static void kbi_lap_inside(kbi_supervisor* s, kbi_lap* lap) {
    bool late = s->budget.until && kbi_now() > s->budget.until;
    bool host = !s->machine.gpu_present; // there only counters are to be had
    if (!s->inside || (host && !(s->inside & KBI_WISH_COUNTERS)) || s->machine.tool[0] || late) return;
    kbi_worker_kill(&s->worker);
    for (int first = lap->first, next; first < lap->first + lap->n && !kbi_desk.interrupted; first = next) {
        next = kbi_group_end(s->plan, first);
        kbi_lap_group_open(s, lap, first, next - first);
        s->group.inside = lap->inside + (first - lap->first);
        for (int i = 0; i < next - first; i++)
            s->group.wanted[i] = lap->samples[first - lap->first + i] && !lap->over[first - lap->first + i];
        kbi_measure_group(s);
        kbi_lap_group_close(s);
    }
    kbi_worker_kill(&s->worker);
}

// --- judged: what the processes found of a case becomes one record of it ---

// The records of a case by process; the answer is how many there are.
static int kbi_lap_each(const kbi_lap* lap, int i, kb_result* each[KBI_PROCESSES]) {
    int n = 0;
    for (int p = 0; p < lap->processes; p++) {
        int at = p * lap->n + i;
        each[p] = lap->samples[at] ? &lap->results[at] : NULL;
        n += each[p] != NULL;
    }
    return n;
}

// Which process's record stands for each case, -1: none; and the processes' times put together.
static void kbi_lap_stands(kbi_supervisor* s, const kbi_lap* lap, int* stands) {
    kb_result* each[KBI_PROCESSES];
    for (int i = 0; i < lap->n; i++) {
        double values[KBI_PROCESSES], sum = 0;
        int n = kbi_lap_each(lap, i, each);
        stands[i] = n ? kbi_judge_stands(each, lap->processes) : -1;
        if (lap->processes == 1 || stands[i] < 0 || each[stands[i]]->status != KB_OK) continue;
        for (int p = 0; p < lap->processes; p++) {
            values[p] = each[p] ? log(each[p]->time_ms) : (double)NAN;
            sum += each[p] ? values[p] : 0;
        }
        kbi_pool_add(&s->pools.times, lap->processes, values, exp(sum / n));
        s->fewer += n < lap->processes;
    }
    kbi_pool_settle(&s->pools.times, kbi_beside);
}

// The cases' own records; those of single processes go.
static void kbi_lap_results(kbi_supervisor* s, const kbi_lap* lap, const int* stands, kb_result* results) {
    kb_result* each[KBI_PROCESSES];
    int row = 0;
    for (int i = 0; i < lap->n; i++) {
        kbi_lap_each(lap, i, each);
        if (stands[i] >= 0) {
            results[i] = *each[stands[i]];
            if (lap->processes > 1 && results[i].status == KB_OK)
                kbi_judge_merge(&results[i], each, lap->processes, &s->pools.times.spread[row++]);
            else if (lap->processes > 1 && (results[i].status == KB_FAILED || stands[i] > 0))
                kbi_judge_blame(&results[i], stands[i], lap->processes); // what the first skips, all do
            if (lap->inside[i]) kbi_judge_inside(&results[i], lap->inside[i], &s->machine);
            if (lap->inside[i]) kbi_record_inside(&results[i], lap->inside[i]);
        }
        if (stands[i] >= 0) kbi_budget_note(&s->budget, s->o, &results[i], lap->share[i]);
        for (int p = 0; p < lap->processes; p++)
            if (each[p] && p != stands[i]) kb_result_free(each[p]);
    }
}

// The cases of a group that have a record. Their results move to the begin of the group's.
static void kbi_lap_rivals(kbi_supervisor* s, const kbi_lap* lap, const int* stands, kb_result* results, int first,
                           int n, kbi_rivals* c) {
    size_t cells = (size_t)n * (size_t)lap->processes;
    memset(c, 0, sizeof *c);
    c->processes = lap->processes;
    c->results = results + first;
    c->m = (const kbi_measured**)kbi_grow(NULL, sizeof(kbi_measured*) * cells);
    c->samples = (double**)kbi_grow(NULL, sizeof(double*) * cells);
    c->pairs = (kbi_pair*)kbi_grow(NULL, sizeof(kbi_pair) * 2 * (size_t)n);
    for (int i = 0; i < n; i++) c->n += stands[first + i] >= 0;
    for (int i = 0, k = 0; i < n; i++) {
        if (stands[first + i] < 0) continue;
        for (int p = 0; p < lap->processes; p++) {
            int at = p * lap->n + first + i;
            c->m[p * c->n + k] = lap->samples[at] ? &lap->m[at] : NULL;
            c->samples[p * c->n + k] = lap->samples[at];
        }
        c->results[k] = c->results[i];
        c->results[k++].planned = kbi_planned(s->plan, &s->plan->cases[lap->first + first + i]);
    }
    kbi_rivals_open(c, &s->pools);
}

static void kbi_lap_group_over(kbi_supervisor* s, kbi_rivals* c) {
    kbi_judge_group(c);
    kbi_record_contest(c->results, c->n, c->end);
    for (int i = 0; i < c->n; i++) kbi_store_add(&s->store, &c->results[i]), kbi_count(s, &c->results[i]);
    for (int i = 0; i < c->n; i++) kbi_outputs_keep(&s->outputs, &c->results[i]);
    for (int i = 0; i < c->n && s->collect; i++) s->collect(s->collect_to, &c->results[i]);
    kbi_show_results(s, c->results, c->n);
    KBENCH_FREE(c->m);
    KBENCH_FREE(c->samples);
    KBENCH_FREE(c->pairs);
}

static void kbi_lap_over(kbi_supervisor* s, const kbi_lap* lap) {
    size_t n = (size_t)lap->n;
    kb_result* results = (kb_result*)kbi_grow(NULL, sizeof(kb_result) * n);
    int* stands = (int*)kbi_grow(NULL, sizeof(int) * n);
    kbi_rivals* groups = (kbi_rivals*)kbi_grow(NULL, sizeof(kbi_rivals) * n);
    int count = 0;
    kbi_lap_stands(s, lap, stands);
    kbi_lap_results(s, lap, stands, results);
    for (int first = 0, next; first < lap->n; first = next) {
        next = kbi_group_end(s->plan, lap->first + first) - lap->first;
        kbi_lap_rivals(s, lap, stands, results, first, next - first, &groups[count++]);
    }
    kbi_pool_settle(&s->pools.ratios, 0);
    kbi_pool_settle(&s->pools.equals, 0);
    kbi_progress_clear(&s->progress);
    for (int i = 0; i < count; i++) kbi_lap_group_over(s, &groups[i]);
    KBENCH_FREE(groups);
    KBENCH_FREE(stands);
    KBENCH_FREE(results);
}

static void kbi_one_lap(kbi_supervisor* s, int first, int n) {
    kbi_lap lap;
    size_t cases = (size_t)n, cells;
    memset(&lap, 0, sizeof lap);
    lap.first = first;
    lap.n = n;
    lap.processes = (int)s->o->procs;
    cells = cases * (size_t)lap.processes;
    lap.m = (kbi_measured*)kbi_grow(NULL, sizeof(kbi_measured) * cells);
    lap.samples = (double**)kbi_grow(NULL, sizeof(double*) * cells);
    lap.results = (kb_result*)kbi_grow(NULL, sizeof(kb_result) * cells);
    lap.over = (bool*)kbi_grow(NULL, sizeof(bool) * cases);
    lap.share = (double*)kbi_grow(NULL, sizeof(double) * cases);
    lap.began = kbi_now();
    for (int i = 0; i < n; i++) lap.share[i] = (double)INFINITY;
    memset(lap.samples, 0, sizeof(double*) * cells);
    lap.inside = (kbi_inside**)kbi_grow(NULL, sizeof(kbi_inside*) * cases);
    memset(lap.over, 0, sizeof(bool) * cases);
    memset(lap.inside, 0, sizeof(kbi_inside*) * cases);
    for (s->process = 0; s->process < lap.processes && !kbi_desk.interrupted; s->process++) kbi_lap_pass(s, &lap);
    s->process = 0;
    kbi_lap_inside(s, &lap);
    kbi_lap_over(s, &lap);
    for (size_t i = 0; i < cells; i++) KBENCH_FREE(lap.samples[i]);
    for (size_t i = 0; i < cases; i++) KBENCH_FREE(lap.inside[i]);
    KBENCH_FREE(lap.inside);
    KBENCH_FREE(lap.share);
    KBENCH_FREE(lap.over);
    KBENCH_FREE(lap.results);
    KBENCH_FREE(lap.samples);
    KBENCH_FREE(lap.m);
}

/*---------------------------------------------------------------------------------------------------------------
  >>program   program: a run from command line to exit code.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/

// "cpu", "all", a number: false after an error message.
static bool kbi_device_option(const kbi_options* o, int64_t* first, bool* all) {
    *first = 0;
    *all = kbi_is(o->device, "all");
    if (!o->device || *all || kbi_is(o->device, "cpu")) return true;
    if (kbi_is(o->device, "script") && kbi_lab.script) return true;
    if (kbi_is(o->device, "script"))
        return kbi_error("--device takes a number, all or cpu, not '%s'", o->device), false;
    return *first = o->gpu, true;
}

static bool kbi_profiled(void) {
    static const char* const names[] = { "CUDA_INJECTION64_PATH", "NV_NSIGHT_INJECTION_PORT_BASE",
                                         "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "NSYS_PROFILING_SESSION_ID",
                                         "NV_SANITIZER_INJECTION_PORT_BASE" };
    for (int i = 0; i < KBI_COUNT(names); i++)
        if (getenv(names[i])) return true;
    return kbi_valgrind(); // which follows no child unless it is told to
}

// Finds what is done on this device, and drops the lines of what is measured again; false after an error message.
static bool kbi_resume_device(kbi_supervisor* s) {
    kb_result like;
    kbi_text lines = { NULL, 0, 0 };
    if (!s->o->on[KBI_OPTION_resume]) return true;
    kbi_resume_free(&s->resume); // with several devices: what the one before has added
    if (!kbi_resume_open(&s->resume, s->o->jsonl)) return false;
    char* absent = (char*)kbi_grow(NULL, (size_t)s->plan->n + 1);
    for (int i = 0; i < s->plan->n; i++) absent[i] = !kbi_runs_here(s, &s->plan->cases[i]);
    kbi_result_clear(&like);
    kbi_record_machine(&like, &s->machine);
    kbi_record_session(&like, &s->session);
    int done = kbi_resume_find(&s->resume, s->plan, &like, absent);
    bool good = !kbi_resume_lines(&s->resume, &lines) || kbi_store_rewrite(&s->store, &lines);
    kbi_warn("--resume: %d of %d cases have a record in %s", done, s->plan->n, s->o->jsonl);
    s->resumed += done;
    kb_result_free(&like);
    kbi_text_free(&lines);
    KBENCH_FREE(absent);
    return good;
}

// The records of a group that is done go into the array as they are.
static void kbi_resume_group(kbi_supervisor* s, int first, int end) {
    for (int i = first; i < end; i++) {
        const kbi_line* l = s->resume.by[i];
        if (l) kbi_store_put(&s->store, s->resume.text.s + l->at, l->n);
    }
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
    if (!kbi_resume_device(s)) return KBI_EXIT_FAILED;
    double allowed = 0; // the time left is this device's, without its start
    int devices = kbi_is(s->o->device, "all") ? KBI_MAX(s->machine.devices - device, 1) : 1; // that still come
    s->budget.turns = s->budget.cases = 0;
    for (int first = 0, end; first < s->plan->n; first = end) {
        int here = 0;
        end = kbi_group_end(s->plan, first);
        for (int i = first; i < end && !kbi_resume_has(&s->resume, s->plan, first); i++)
            here += kbi_runs_here(s, &s->plan->cases[i]);
        allowed += (double)s->o->procs * kbi_group_seconds(s->o, s->o->max_time, here);
        kbi_budget_add(&s->budget, s->o, here, (double)s->o->procs * devices);
    }
    if (s->budget.until) allowed = KBI_MAX((double)(s->budget.until - kbi_now()) * 1e-9 / devices, 0.0);
    kbi_progress_begin(&s->progress, allowed);
    for (int first = 0, end; first < s->plan->n && !kbi_desk.interrupted; first = end) {
        if (kbi_resume_has(&s->resume, s->plan, first)) {
            end = kbi_group_end(s->plan, first);
            kbi_resume_group(s, first, end);
            continue;
        }
        end = kbi_lap_end(s, first);
        kbi_one_lap(s, first, end - first);
    }
    kbi_pools_free(&s->pools); // another GPU's times may scatter otherwise
    kbi_show_held(s);
    kbi_worker_kill(&s->worker);
    return 0;
}

// The summary; what has no record is no part of the table.
static void kbi_say_end(kbi_supervisor* s) {
    kbi_table_end(&s->table);
    if (s->absent)
        kbi_warn("%d not run: %s", s->absent, s->machine.gpu_present ? "not for this GPU" : "they need a GPU");
    kbi_budget_say(&s->budget, s->o);
    if (s->fewer && !kbi_desk.interrupted)
        kbi_warn("--budget: %d case%s measured in fewer than %lld processes", s->fewer,
                 s->fewer == 1 ? " was" : "s were", (long long)s->o->procs);
    if (kbi_desk.interrupted && s->o->procs == 1)
        kbi_warn("interrupted: cases that were not finished have no record");
    else if (kbi_desk.interrupted)
        kbi_warn(
            "interrupted: cases that fewer than 2 processes finished have no record; %d have one of fewer than %lld",
            s->fewer, (long long)s->o->procs);
}

static kbi_how kbi_how_of(const kbi_options* o, FILE* out) {
    kbi_how how;
    kbi_how_default(&how, out);
    if (o->on[KBI_OPTION_no_color]) how.colour = false;
    how.verbose = o->on[KBI_OPTION_verbose];
    how.quiet = o->on[KBI_OPTION_quiet];
    how.inside = o->on[KBI_OPTION_profile];
    how.counters = o->on[KBI_OPTION_counters];
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
    bool all, stdout_taken = kbi_outputs_stdout(o);
    memset(s, 0, sizeof *s);
    s->o = o;
    s->plan = plan;
    kbi_recipe_of(&s->recipe, o);
    s->collect = collect;
    s->collect_to = to;
    s->inside = collect ? 0 : kbi_wishes_of(o);
    s->isolated = !o->on[KBI_OPTION_no_isolate] && !kbi_profiled();
    if (o->budget > 0) s->budget.until = kbi_now() + (int64_t)(o->budget * 1e9);
    if (!s->isolated && o->procs > 1)
        return kbi_error("--procs takes processes of their own, and under a profiler there is one: leave out either"),
               KBI_EXIT_USAGE;
    if (o->on[KBI_OPTION_resume] && !kbi_resume_open(&s->resume, o->jsonl)) return KBI_EXIT_USAGE;
    if (!kbi_device_option(o, &first, &all) || !kbi_outputs_open(&s->outputs, o)) return KBI_EXIT_USAGE;
    if (!kbi_store_open(&s->store, o->json, o->jsonl)) return kbi_outputs_discard(&s->outputs), KBI_EXIT_USAGE;
    s->store.keep = true;
    kbi_session_open(&s->session, o->argc, o->argv, o->seed);
    if (o->shards)
        snprintf(s->session.shard, sizeof s->session.shard, "%lld/%lld", (long long)o->shard, (long long)o->shards);
    kbi_how how = kbi_how_of(o, stdout_taken ? stderr : stdout);
    kbi_table_open(&s->table, &how);
    if (!s->isolated) kbi_warn("one process: a crash ends the run, and --timeout ends nothing");
    kbi_progress_open(&s->progress, !o->on[KBI_OPTION_no_progress] && !o->on[KBI_OPTION_quiet]);
    kbi_desk.one_process = !s->isolated;
    if (!s->isolated) kbi_watch_stops();
    signal(SIGINT, kbi_interrupt);
    signal(SIGTERM, kbi_interrupt);
    signal(SIGHUP, kbi_interrupt);
    signal(SIGQUIT, kbi_interrupt);
    signal(SIGXFSZ, SIG_IGN); // a file that may not grow is a full one
    if (s->isolated && signal(SIGTSTP, kbi_suspend) == SIG_IGN) signal(SIGTSTP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); // ignored by whoever started us, it would hide how a worker ended
    bool required = o->device && s->recipe.target == KBI_ON_GPU;
    int code = plan->n ? kbi_run_device(s, (int)first, required) : 0;
    for (int device = 1; !code && all && device < s->machine.devices && !kbi_desk.interrupted; device++) {
        bool over = kbi_budget_over(&s->budget, 0, 1, 0, kbi_now());
        for (int i = 0; over && i < plan->n; i++)
            if (kbi_runs_here(s, &plan->cases[i])) kbi_budget_leave(&s->budget, plan->cases[i].name);
        if (!over) code = kbi_run_device(s, device, true);
    }
    kbi_progress_clear(&s->progress);
    if (!code && !collect) kbi_say_end(s);
    bool stored = kbi_store_close(&s->store);
    if (!kbi_outputs_close(&s->outputs, NULL)) stored = false;
    kbi_resume_free(&s->resume);
    KBENCH_FREE(s->session.command);
    if (code) return code;
    if (kbi_desk.interrupted) return KBI_EXIT_INTERRUPTED;
    if (s->failed || !stored) return KBI_EXIT_FAILED;
    return s->ok || s->resumed || !plan->n ? KBI_EXIT_FINE : kbi_nothing_measured(s);
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

static void kbi_env_line(const char* name, double x, const char* unit) {
    char number[40];
    printf("  %-34s %s %s\n", name, kbi_show(x, 4, number), kbi_finite(x) ? unit : "");
}

static void kbi_env_host(const kbi_machine* m) {
    const char* root = kbi_cpu_root;
    double mhz = kbi_cpu_mhz(root, kbi_cpu_now());
    int cores, threads;
    kbi_text caches = { NULL, 0, 0 };
    kbi_host_cores(root, (int)sysconf(_SC_NPROCESSORS_CONF), &cores, &threads);
    kbi_host_caches(root, &caches);
    if (cores)
        printf("  %-34s %d, with %d hardware threads\n", "cores", cores, threads);
    else
        printf("  %-34s not known; %ld hardware threads\n", "cores", sysconf(_SC_NPROCESSORS_ONLN));
    printf("  %-34s %s\n", "caches", caches.n ? caches.s : "not known");
    printf("  %-34s %s\n", "measured on processors", m->cpus[0] ? m->cpus : "not known");
    printf("  %-34s %s\n", "frequency governor", m->governor[0] ? m->governor : "not known: cpufreq tells of none");
    printf("  %-34s %s\n", "boost", m->boost < 0 ? "not known" : m->boost ? "on" : "off");
    if (mhz > 0) kbi_env_line("clock now", mhz, "MHz");
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

// What was measured, with the time that it took; nothing of what cannot be.
static void kbi_env_roofs(const kbi_roofs* roofs, const char* whose) {
    for (int i = 0; i < KBI_ROOFS; i++) {
        char name[40], unit[80], took[40];
        double is = kbi_roof_known(roofs, i);
        bool memory = i <= KBI_ROOF_WRITE;
        if (is <= 0) continue;
        snprintf(name, sizeof name, "%s roof%s", kbi_roof_names[i], whose);
        snprintf(unit, sizeof unit, "%s  (measured in %s)",
                 memory               ? "GB/s"
                 : i == KBI_ROOF_INT8 ? "Top/s"
                                      : "TFLOP/s",
                 kbi_show_time(roofs->took[i] * 1e3, took));
        kbi_env_line(name, is * (memory ? 1e-9 : 1e-12), unit);
    }
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
    kbi_env_host(&s->machine);
    kbi_env_compiler();
    printf("  %-34s %s\n", "build", s->session.build);
    for (int i = 0; i < s->session.facts.n; i++)
        printf("  %-34s %s\n", s->session.facts.of[i].name, s->session.facts.of[i].value);
    kbi_env_line("step of the host's clock", (double)kbi_clock_step(), "ns");
    kbi_env_line("reading it costs", kbi_measure_wall_bias(), "ns");
    kbi_env_roofs(&s->machine.core, ", one core");
    if (!s->machine.gpu_present) return KBI_EXIT_FINE;
    const kbi_machine* m = &s->machine;
    printf("  %-34s %d SMs, L2 %lld MiB, ECC %s, MIG %s, clocks %s\n", "GPU", m->multiprocessors,
           (long long)(m->l2 >> 20), m->ecc ? "on" : "off", m->mig == 1 ? "on" : "off",
           m->clocks_locked == 1 ? "locked" : "not locked");
    kbi_env_roofs(&m->roofs, "");
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
    kbi_text lines = { NULL, 0, 0 };
    kbi_list_cases(&lines, plan);
    fwrite(lines.s, 1, lines.n, stdout);
    kbi_text_free(&lines);
    for (int first = 0, end; first < plan->n; first = end) {
        end = kbi_group_end(plan, first);
        seconds += (double)o->procs * kbi_group_seconds(o, o->max_time, end - first);
    }
    if (o->budget > 0) seconds = KBI_MIN(seconds, o->budget);
    printf("%d case%s in %d comparison group%s; at most about %s", plan->n, plan->n == 1 ? "" : "s", plan->groups,
           plan->groups == 1 ? "" : "s", kbi_show_time(seconds * 1e3, text));
    if (o->shards) printf("; shard %lld/%lld", (long long)o->shard, (long long)o->shards);
    printf("\n");
    return KBI_EXIT_FINE;
}

/*---------------------------------------------------------------------------------------------------------------
  >>gate      program: baselines, histories, goals, and what they make of the exit code.
              Public: none      Used by: program
---------------------------------------------------------------------------------------------------------------*/
#if KBI_REPORT

static bool kbi_load_choose(const kbi_options* o,
                            kbi_records* r); // of >>load: what --op, --filter and the like leave

enum { KBI_FAIL_REGRESS, KBI_FAIL_CHANGE, KBI_FAIL_NOISE, KBI_FAIL_NEVER };

static kbi_rules kbi_rules_of(const kbi_options* o) {
    kbi_rules rules = { o->threshold, o->memory_threshold, o->alpha, o->noise };
    return rules;
}

static int kbi_fail_on(const kbi_options* o) {
    static const char* const names[] = { "regress", "change", "noise", "never" };
    for (int i = 0; i < KBI_COUNT(names); i++)
        if (kbi_is(o->fail_on, names[i])) return i;
    return KBI_FAIL_REGRESS;
}

// The exit code of changes and goals. off: a difference of machines keeps the times from being compared.
static int kbi_toll_code(const kbi_options* o, const kbi_assessment* a, bool compared, bool off, int64_t missed) {
    int on = kbi_fail_on(o);
    bool worse = !off && (a->regressed || a->more), other = a->added || a->removed || a->mended;
    if (on == KBI_FAIL_NEVER) return KBI_EXIT_FINE;
    if (worse || missed) return KBI_EXIT_REGRESSED;
    if (on == KBI_FAIL_CHANGE && ((!off && (a->improved || a->less)) || other)) return KBI_EXIT_REGRESSED;
    if (on == KBI_FAIL_NOISE && compared && (off || a->open || !a->compared)) return KBI_EXIT_UNCERTAIN;
    return KBI_EXIT_FINE;
}

// --- goals ---

typedef struct kbi_goal { // "layernorm:gpu_efficiency>=80"
    kbi_patterns which;
    kbi_shown what;
    bool least, strict; // >= or >; < or >
    double value;
} kbi_goal;

// false after an error message
static bool kbi_goal_parse(const char* text, kbi_goal* g) {
    const char* colon = strrchr(text, ':');
    bool counter = colon && colon - text >= 7 && strncmp(colon - 7, "counter", 7) == 0;
    if (counter && colon - text == 7)
        colon = NULL;
    else if (counter && colon[-8] == ':')
        colon -= 8;
    const char *from = colon ? colon + 1 : text, *sign = from + strcspn(from, "<>=");
    char name[80], *end;
    kbi_text pattern = { NULL, 0, 0 };
    kbi_strings list;
    kbi_put(&pattern, text, colon ? (size_t)(colon - text) : 0);
    snprintf(name, sizeof name, "%.*s", (int)KBI_MIN(sign - from, (ptrdiff_t)79), from);
    memset(&list, 0, sizeof list);
    list.n = pattern.n > 0;
    list.of[0] = pattern.s;
    memset(g, 0, sizeof *g);
    g->least = *sign == '>';
    g->strict = sign[0] && sign[1] != '=';
    const char* number = *sign ? sign + 2 - g->strict : sign;
    g->value = kbi_real_of(number, &end);
    bool good =
        (*sign == '<' || *sign == '>') && end != number && (!*end || kbi_is(end, "%")) && kbi_finite(g->value);
    if (!good)
        kbi_error("--goal takes CASES:KEY>=NUMBER or CASES:KEY<=NUMBER, as in layernorm:gpu_efficiency>=80, not '%s'",
                  text);
    good = good && kbi_shown_named("goal", name, &g->what);
    if (good && !g->what.counter[0] && g->what.key->kind != KBI_KIND_real && g->what.key->kind != KBI_KIND_whole)
        good = (kbi_error("--goal: %s is no number", g->what.key->name), false);
    good = good && kbi_patterns_compile(&g->which, &list);
    kbi_text_free(&pattern);
    return good;
}

static bool kbi_goals_check(const kbi_options* o) {
    for (int i = 0; i < o->goal.n; i++) {
        kbi_goal g;
        if (!kbi_goal_parse(o->goal.of[i], &g)) return false;
        kbi_patterns_free(&g.which);
    }
    return true;
}

static bool kbi_goal_met(const kbi_goal* g, double x) {
    if (kbi_nan(x)) return false; // what nobody measured is not reached
    return g->least ? (g->strict ? x > g->value : x >= g->value) : g->strict ? x < g->value : x <= g->value;
}

// Shows what became of each goal; the number of cases that miss one. Those without a number are no case of a goal's:
// they fail by themselves, or were skipped.
static int64_t kbi_goals_show(const kbi_options* o, FILE* out, const kb_result* r, int64_t n) {
    int64_t missed = 0;
    for (int i = 0; i < o->goal.n; i++) {
        kbi_goal g;
        int64_t of = 0, without = 0;
        if (!kbi_goal_parse(o->goal.of[i], &g)) continue;
        for (int64_t k = 0; k < n; k++) {
            if (!kbi_has_time(&r[k]) || (g.which.n && !kbi_patterns_match(&g.which, r[k].name))) continue;
            double x = kbi_shown_number(&r[k], &g.what);
            char number[40];
            of++;
            if (kbi_goal_met(&g, x)) continue;
            without++;
            kbi_text line = { NULL, 0, 0 };
            kbi_clean(&line, r[k].name);
            fprintf(out, "goal missed: %s %s in %s\n", g.what.counter[0] ? g.what.counter : g.what.key->name,
                    kbi_finite(x) ? kbi_show(x, 4, number) : "is not known", line.s);
            kbi_text_free(&line);
        }
        if (of)
            fprintf(out, "goal %s: reached by %lld of %lld case%s\n", o->goal.of[i], (long long)(of - without),
                    (long long)of, of == 1 ? "" : "s");
        else
            kbi_warn("--goal %s: no case with a time matches", o->goal.of[i]);
        missed += without;
        kbi_patterns_free(&g.which);
    }
    return missed;
}

// --- files ---

static bool kbi_plain_name(const char* s) {
    return *s && *s != '.' && *s != '-' &&
           s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-")] == 0;
}

static void kbi_baseline_path(kbi_text* out, const char* name) { kbi_putf(out, ".kbench/%s.json", name); }

// The records of NAME, which is .kbench/NAME.json where there is one, else a file; false after an error message.
static bool kbi_read_baseline(const kbi_options* o, const char* option, const char* name, kbi_records* r) {
    kbi_text path = { NULL, 0, 0 };
    memset(r, 0, sizeof *r);
    kbi_baseline_path(&path, name);
    bool named = kbi_plain_name(name) && access(path.s, F_OK) == 0;
    bool good = named || access(name, F_OK) == 0;
    if (!good && kbi_plain_name(name))
        kbi_error("--%s %s: there is neither %s nor a file of this name; --save-baseline %s makes the first", option,
                  name, path.s, name);
    else if (!good)
        kbi_error("--%s %s: %s", option, name, strerror(errno));
    good = good && kbi_read_records(r, named ? path.s : name);
    if (good && !r->n) good = (kbi_error("--%s %s: no record is there", option, name), false);
    good = good && kbi_load_choose(o, r);
    kbi_text_free(&path);
    return good;
}

// --- the gate of a run ---

typedef struct kbi_toll {
    const kbi_options* o;
    kbi_records before, history;
    kb_result* now; // of this run; each owns what is in it
    int64_t n, size;
    kbi_text save, history_path; // from the root on: a body may change the directory
    FILE* out;
} kbi_toll;

static void kbi_toll_take(void* to, kb_result* r) {
    kbi_toll* g = (kbi_toll*)to;
    if (g->n == g->size) {
        g->size = 2 * g->size + 64;
        g->now = (kb_result*)kbi_grow(g->now, sizeof(kb_result) * (size_t)g->size);
    }
    g->now[g->n++] = *r;
}

static bool kbi_toll_wanted(const kbi_options* o) {
    return o->baseline || o->save_baseline || o->history || o->goal.n;
}

static void kbi_path_here(kbi_text* out, const char* path) {
    char here[4096];
    if (*path != '/' && getcwd(here, sizeof here)) kbi_putf(out, "%s/", here);
    kbi_puts(out, path);
}

// Whether what is to be written at the end can be, before anything runs; false after an error message.
static bool kbi_toll_open_files(kbi_toll* g) {
    const kbi_options* o = g->o;
    kbi_text path = { NULL, 0, 0 };
    if (o->save_baseline) {
        kbi_baseline_path(&path, o->save_baseline);
        kbi_path_here(&g->save, path.s);
        kbi_text_free(&path);
        if (mkdir(".kbench", 0777) != 0 && errno != EEXIST)
            return kbi_error("--save-baseline %s: cannot make .kbench here: %s", o->save_baseline, strerror(errno)),
                   false;
        if (access(".kbench", W_OK | X_OK) != 0)
            return kbi_error("--save-baseline %s: .kbench: %s", o->save_baseline, strerror(errno)), false;
    }
    if (!o->history) return true;
    kbi_path_here(&g->history_path, o->history);
    if (access(o->history, F_OK) == 0 && !kbi_read_records(&g->history, o->history)) return false;
    int file = kbi_open_file(g->history_path.s, O_WRONLY | O_CREAT | O_APPEND);
    if (file < 0) return kbi_error("cannot write --history %s: %s", o->history, strerror(errno)), false;
    close(file);
    return true;
}

static bool kbi_toll_open(kbi_toll* g, const kbi_options* o, FILE* out) {
    memset(g, 0, sizeof *g);
    g->o = o;
    g->out = out;
    if (!kbi_goals_check(o)) return false;
    if (o->baseline && !kbi_read_baseline(o, "baseline", o->baseline, &g->before)) return false;
    return kbi_toll_open_files(g);
}

static void kbi_toll_free(kbi_toll* g) {
    for (int64_t i = 0; i < g->n; i++) kb_result_free(&g->now[i]);
    KBENCH_FREE(g->now);
    kbi_records_free(&g->before);
    kbi_records_free(&g->history);
    kbi_text_free(&g->save);
    kbi_text_free(&g->history_path);
}

// All that the machines of the pairs differ in; then what keeps the times of a pair from being compared, once of each
// kind. False: nothing does.
static bool kbi_toll_machines(const kbi_options* o, const kbi_changes* c, const kbi_how* how) {
    kbi_set said = { NULL, 0, 0 };
    kbi_differences all;
    bool off = false;
    kbi_differences_of(&all, c);
    if (all.n) fprintf(how->out, "\nBefore and after differ in\n");
    kbi_differences_show(how, &all);
    kbi_arena_free(&all.texts);
    for (int64_t i = 0; i < c->n; i++) {
        kbi_text what = { NULL, 0, 0 };
        if (kbi_comparable(&c->of[i]) && kbi_env_differs(c->of[i].before, c->of[i].after, &what)) {
            off = !o->on[KBI_OPTION_ignore_env];
            if (kbi_set_add(&said, kbi_hash(14695981039346656037u, what.s)))
                kbi_warn("before and after differ in %s%s", what.s,
                         off ? ": the gate is off (--ignore-env has it on)"
                             : "; --ignore-env compares them all the same");
        }
        kbi_text_free(&what);
    }
    kbi_set_free(&said);
    return off;
}

// Which run a side is: what a gate is for may differ, and is named.
static void kbi_toll_side(FILE* out, const char* side, const char* file, const kb_result* r) {
    fprintf(out, "%s  %s", side, file);
    if (r->date) fprintf(out, "  %s", r->date);
    if (r->git_commit) fprintf(out, "  commit %.12s", r->git_commit);
    if (r->build) fprintf(out, "  %.60s", r->build);
    fprintf(out, "\n");
}

// The records of a history that may teach what runs of these cases differ by: of the same kind of machine.
static const kb_result** kbi_toll_past(const kbi_records* history, const kb_result* now, int64_t n, int64_t* count) {
    const kb_result** past = (const kb_result**)kbi_grow(NULL, sizeof(kb_result*) * (size_t)(history->n + n));
    kbi_named* order = (kbi_named*)kbi_grow(NULL, sizeof(kbi_named) * (size_t)n);
    int64_t m = kbi_name_records(order, now, n);
    *count = 0;
    for (int64_t i = 0; i < history->n; i++) {
        const kb_result* r = &history->of[i];
        int64_t low = 0, high = m;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(order[middle].r->name ? order[middle].r->name : "", r->name) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        kbi_text what = { NULL, 0, 0 };
        if (low < m && kbi_is(order[low].r->name, r->name) && !kbi_env_differs(r, order[low].r, &what))
            past[(*count)++] = r;
        kbi_text_free(&what);
    }
    KBENCH_FREE(order);
    return past;
}

// Compares, shows, and says what the exit code is. before NULL: there is no baseline, only goals and a past.
static int kbi_toll_judge(const kbi_options* o, const kbi_records* history, const kbi_records* before,
                          const kb_result* now, int64_t n, const char* name, FILE* out) {
    kbi_how how = kbi_how_of(o, out);
    kbi_rules rules = kbi_rules_of(o);
    kbi_assessment a;
    int64_t past_n = 0, trends_n = 0;
    bool off = false;
    memset(&a, 0, sizeof a);
    const kb_result** past = kbi_toll_past(history, now, n, &past_n);
    if (before) {
        kbi_changes c = kbi_pair_records(before->of, before->n, now, n);
        kbi_trend* trends = kbi_trends(past, past_n, &trends_n);
        kbi_changes_learn(&c, trends, trends_n);
        KBENCH_FREE(trends);
        kbi_compare(&c, &rules);
        fprintf(out, "\n");
        kbi_toll_side(out, "before", o->baseline ? o->baseline : o->compare[0], &before->of[0]);
        if (n) kbi_toll_side(out, "after ", name, &now[0]);
        a = kbi_assess(&c);
        kbi_changes_show(&how, &c, &rules, &a, NULL);
        off = kbi_toll_machines(o, &c, &how);
        KBENCH_FREE(c.of);
    }
    if (o->history) {
        for (int64_t i = 0; i < n; i++) past[past_n++] = &now[i];
        kbi_trend* trends = kbi_trends(past, past_n, &trends_n);
        kbi_trends_show(&how, trends, trends_n, o->history);
        KBENCH_FREE(trends);
    }
    KBENCH_FREE(past);
    int64_t missed = kbi_goals_show(o, out, now, n);
    fflush(out);
    return kbi_toll_code(o, &a, before != NULL, off, missed);
}

// A line a record behind those that are there; one that an earlier run was killed in is ended.
static bool kbi_history_add(const kbi_toll* g) {
    kbi_text lines = { NULL, 0, 0 };
    char last = '\n';
    int file = kbi_open_file(g->history_path.s, O_RDWR | O_APPEND);
    bool torn = file >= 0 && lseek(file, -1, SEEK_END) >= 0 && kbi_read_some(file, &last, 1) == 1 && last != '\n';
    if (torn) kbi_puts(&lines, "\n");
    for (int64_t i = 0; i < g->n; i++) kbi_json_result(&lines, &g->now[i]), kbi_puts(&lines, "\n");
    bool good = file >= 0 && kbi_write_all(file, lines.s, lines.n) && (fsync(file) == 0 || errno == EINVAL);
    if (!good) kbi_error("writing --history %s failed: %s", g->o->history, strerror(errno));
    if (file >= 0) close(file);
    kbi_text_free(&lines);
    return good;
}

// What a run leaves behind: a history that is longer, and a new baseline unless it is worse than the old one.
static bool kbi_toll_save(kbi_toll* g, int code) {
    const kbi_options* o = g->o;
    bool good = !o->history || kbi_history_add(g);
    if (!o->save_baseline) return good;
    if (code == KBI_EXIT_REGRESSED && kbi_is(o->save_baseline, o->baseline))
        return kbi_warn("--save-baseline %s: the old one stays, since this run is worse", o->save_baseline), good;
    int64_t without = 0;
    for (int64_t i = 0; i < g->n; i++) without += !kbi_has_time(&g->now[i]);
    if (!kb_write_json(g->now, g->n, g->save.s)) return false;
    kbi_warn("baseline %s: %lld records in .kbench/%s.json%s", o->save_baseline, (long long)g->n, o->save_baseline,
             without ? "; some have no time, and will be compared with nothing" : "");
    return good;
}

// A run with what stands around it.
static int kbi_gated_run(const kbi_options* o, const kbi_plan* plan) {
    kbi_toll gate;
    if (!kbi_toll_wanted(o)) return kbi_run_plan(o, plan, NULL, NULL);
    bool good = kbi_toll_open(&gate, o, kbi_outputs_stdout(o) ? stderr : stdout);
    kbi_desk.take = kbi_toll_take;
    kbi_desk.take_to = &gate;
    int code = good ? kbi_run_plan(o, plan, NULL, NULL) : KBI_EXIT_USAGE;
    kbi_desk.take = NULL;
    if (code == KBI_EXIT_INTERRUPTED)
        kbi_warn("interrupted: nothing is compared, and nothing added to a baseline or history");
    if ((code == KBI_EXIT_FINE || code == KBI_EXIT_FAILED) && gate.n) {
        int judged = kbi_toll_judge(o, &gate.history, o->baseline ? &gate.before : NULL, gate.now, gate.n, "this run",
                                    gate.out);
        if (!kbi_toll_save(&gate, judged)) code = KBI_EXIT_FAILED;
        if (code == KBI_EXIT_FINE) code = judged;
    }
    kbi_toll_free(&gate);
    return code;
}

// --- without a run ---

// --env --load A B: what the machines of two files differ in, and nothing else.
static int kbi_env_loaded(const kbi_options* o) {
    kbi_records of[2];
    kbi_differences all;
    kbi_how how = kbi_how_of(o, stdout);
    memset(of, 0, sizeof of);
    if (o->n_load != 2)
        return kbi_error("--env --load takes two files: what it shows is what their machines differ in"),
               KBI_EXIT_USAGE;
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        good = kbi_read_records(&of[i], o->load[i]);
        if (good && !of[i].n) good = (kbi_error("%s: no record is there", o->load[i]), false);
        good = good && kbi_load_choose(o, &of[i]);
        if (good) kbi_toll_side(stdout, i ? "after " : "before", o->load[i], &of[i].of[0]);
    }
    if (good) {
        kbi_changes c = kbi_pair_records(of[0].of, of[0].n, of[1].of, of[1].n);
        kbi_differences_of(&all, &c);
        if (!all.n) printf("nothing that both know differs\n");
        fflush(stdout);
        kbi_differences_show(&how, &all);
        kbi_arena_free(&all.texts);
        KBENCH_FREE(c.of);
    }
    for (int i = 0; i < 2; i++) kbi_records_free(&of[i]);
    KBENCH_FREE(o->load);
    return good ? KBI_EXIT_FINE : KBI_EXIT_USAGE;
}

// Records that a file has, held against a baseline, a history and goals.
static int kbi_toll_loaded(const kbi_options* o, const kbi_records* now, const kbi_records* before, const char* name,
                           FILE* out) {
    kbi_records history;
    int64_t failed = 0;
    memset(&history, 0, sizeof history);
    if (o->history && !kbi_read_records(&history, o->history)) return KBI_EXIT_USAGE;
    int code = kbi_toll_judge(o, &history, before, now->of, now->n, name, out);
    for (int64_t i = 0; i < now->n; i++) failed += now->of[i].status == KB_FAILED;
    kbi_records_free(&history);
    return failed ? KBI_EXIT_FAILED : code;
}

static int kbi_compare_main(const kbi_options* o) {
    kbi_records before, after;
    memset(&after, 0, sizeof after);
    bool good = kbi_goals_check(o) && kbi_read_baseline(o, "compare", o->compare[0], &before);
    if (!good) return KBI_EXIT_USAGE;
    good = kbi_read_baseline(o, "compare", o->compare[1], &after);
    int code = good ? kbi_toll_loaded(o, &after, &before, o->compare[1], stdout) : KBI_EXIT_USAGE;
    kbi_records_free(&before);
    kbi_records_free(&after);
    return code;
}
#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>load      program: records of earlier runs, shown without a run.
              Public: none      Used by: >>gate, >>main
---------------------------------------------------------------------------------------------------------------*/

#if KBI_REPORT
// Leaves those that the options choose, as a run would choose its cases; false after an error message.
static bool kbi_load_choose(const kbi_options* o, kbi_records* r) {
    kbi_patterns with, without;
    without.n = 0;
    bool good = kbi_patterns_compile(&with, &o->filter) && kbi_patterns_compile(&without, &o->exclude);
    int64_t n = 0, all = r->n;
    for (int64_t i = 0; good && i < all; i++) {
        const kb_result* x = &r->of[i];
        if ((with.n && !kbi_patterns_match(&with, x->name)) || kbi_patterns_match(&without, x->name)) continue;
        if (!kbi_selects_operation(o, x->operation)) continue;
        if (o->impl.n && !(x->implementation && kbi_any_lists(&o->impl, x->implementation))) continue;
        if (o->dtype.n && !(x->dtype && kbi_any_lists(&o->dtype, x->dtype))) continue;
        r->of[n++] = *x;
    }
    if (good) r->n = n;
    if (good && !n && all)
        kbi_error("none of the %lld records is chosen: see what there is without --op, --impl, --dtype, --filter and "
                  "--exclude",
                  (long long)all);
    kbi_patterns_free(&with);
    kbi_patterns_free(&without);
    return good && (n || !all);
}

// What differs between the machines of these records: each such difference is said once.
static void kbi_load_warn(const kbi_records* r) {
    const kb_result* first = &r->of[0]; // that is no host work, which has a mode of its own
    kbi_set said = { NULL, 0, 0 };
    for (int64_t i = r->n - 1; i >= 0; i--)
        if (r->of[i].mode && !kbi_is(r->of[i].mode, "wall")) first = &r->of[i];
    for (int64_t i = 0; i < r->n; i++) {
        kb_result x = r->of[i];
        kbi_text what = { NULL, 0, 0 };
        if (kbi_is(x.run_id, first->run_id)) continue;
        if (kbi_is(x.mode, "wall")) x.mode = NULL;
        if (kbi_env_differs(first, &x, &what) && kbi_set_add(&said, kbi_hash(14695981039346656037u, what.s)))
            kbi_warn("these records are not of one kind: %s; times of the one say nothing about the other", what.s);
        kbi_text_free(&what);
    }
    kbi_set_free(&said);
}

typedef struct kbi_sharded {
    int64_t again, device, place, at; // again: how often its case was there before
} kbi_sharded;

static int kbi_order_sharded(const void* a, const void* b) {
    const kbi_sharded *x = (const kbi_sharded*)a, *y = (const kbi_sharded*)b;
    if (x->again != y->again) return x->again < y->again ? -1 : 1;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

// Puts what shards of a plan have measured in the plan's order, one sweep behind the other.
static void kbi_load_order(kbi_records* r) {
    kbi_sharded* order = (kbi_sharded*)kbi_grow(NULL, sizeof(kbi_sharded) * (size_t)r->n);
    kb_result* sorted = (kb_result*)kbi_grow(NULL, sizeof(kb_result) * (size_t)r->n);
    kbi_map seen;
    int64_t n = 0;
    memset(&seen, 0, sizeof seen);
    for (int64_t i = 0; i < r->n; i++) {
        const kb_result* x = &r->of[i];
        char device[32];
        if (!x->shard || x->place == KB_NONE) continue;
        snprintf(device, sizeof device, "|%lld|", (long long)x->device);
        uint64_t key = kbi_hash(kbi_hash(14695981039346656037u, device), x->name);
        kbi_mapped* slot = kbi_map_find(&seen, key);
        order[n].again = slot->key ? (int64_t)++slot->at : 0;
        if (!slot->key) kbi_map_take(&seen, slot, key, 0);
        order[n].device = x->device;
        order[n].place = x->place;
        order[n++].at = i;
    }
    qsort(order, (size_t)n, sizeof *order, kbi_order_sharded);
    for (int64_t i = 0; i < n; i++) sorted[i] = r->of[order[i].at];
    for (int64_t i = 0, k = 0; i < r->n; i++)
        if (r->of[i].shard && r->of[i].place != KB_NONE) r->of[i] = sorted[k++];
    KBENCH_FREE(seen.slots);
    KBENCH_FREE(sorted);
    KBENCH_FREE(order);
}

// Which shards have left nothing, of those that these records are of.
static void kbi_load_absent(const kbi_records* r) {
    kbi_set there = { NULL, 0, 0 };
    const char* of = NULL; // "/8"
    kbi_text absent = { NULL, 0, 0 };
    for (int64_t i = 0; i < r->n; i++) {
        const char* slash = r->of[i].shard ? strchr(r->of[i].shard, '/') : NULL;
        if (!slash) continue;
        if (of && !kbi_is(of, slash)) {
            kbi_warn("shards of different numbers, K%s and K%s: a case may be there twice, or not at all", of, slash);
            of = NULL;
            break;
        }
        of = slash;
        kbi_set_add(&there, (uint64_t)strtoll(r->of[i].shard, NULL, 10));
    }
    int64_t shards = of ? KBI_MIN(strtoll(of + 1, NULL, 10), (long long)KBI_SHARDS) : 0, n = 0;
    for (int64_t k = 1; k <= shards; k++)
        if (kbi_set_add(&there, (uint64_t)k) && n++ < 8)
            kbi_putf(&absent, "%s%lld%s", n > 1 ? ", " : "", (long long)k, of);
    if (n)
        kbi_warn("no record of shard%s %s%s: not run yet, or there was nothing for %s", n > 1 ? "s" : "", absent.s,
                 n > 8 ? ", ..." : "", n > 1 ? "them" : "it");
    kbi_text_free(&absent);
    kbi_set_free(&there);
}

// --jsonl appends: to a file that was read it would add what it has.
static bool kbi_load_apart(const kbi_options* o) {
    struct stat a, b;
    for (int i = 0; i < o->n_load && o->jsonl && !kbi_is(o->jsonl, "-"); i++)
        if (stat(o->load[i], &a) == 0 && stat(o->jsonl, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            return kbi_error("--jsonl appends, and %s was loaded: name another file", o->jsonl), false;
    return true;
}

// The records of the files of --load and no others; false after an error message.
static bool kbi_load_records(const kbi_options* o, kbi_records* r) {
    for (int i = 0; i < o->n_load; i++)
        if (!kbi_read_records(r, o->load[i])) return false;
    if (!r->n) return kbi_error("%s: no record is there", o->load[0]), false;
    if (!kbi_load_choose(o, r)) return false;
    kbi_load_order(r);
    kbi_load_absent(r);
    kbi_load_warn(r);
    return true;
}

static int kbi_load_shown(const kbi_options* o) {
    kbi_records r, before;
    kbi_store store;
    kbi_outputs outputs;
    memset(&r, 0, sizeof r);
    memset(&before, 0, sizeof before);
    bool good = kbi_load_apart(o) && kbi_load_records(o, &r) && kbi_goals_check(o) &&
                (!o->baseline || kbi_read_baseline(o, "baseline", o->baseline, &before)) &&
                kbi_outputs_open(&outputs, o);
    if (good && !kbi_store_open(&store, o->json, o->jsonl)) kbi_outputs_discard(&outputs), good = false;
    int code = good ? KBI_EXIT_FINE : KBI_EXIT_USAGE;
    if (good) {
        kbi_table table;
        kbi_how how = kbi_how_of(o, kbi_outputs_stdout(o) ? stderr : stdout);
        kbi_table_open(&table, &how);
        kbi_table_add(&table, r.of, r.n);
        kbi_table_end(&table);
        for (int64_t i = 0; i < r.n; i++) kbi_store_add(&store, &r.of[i]);
        if (!kbi_store_close(&store)) code = KBI_EXIT_FAILED;
        if (!kbi_outputs_close(&outputs, &r)) code = KBI_EXIT_FAILED;
    }
    if (code == KBI_EXIT_FINE && kbi_toll_wanted(o))
        code =
            kbi_toll_loaded(o, &r, o->baseline ? &before : NULL, o->load[0], kbi_outputs_stdout(o) ? stderr : stdout);
    kbi_records_free(&before);
    kbi_records_free(&r);
    KBENCH_FREE(o->load);
    return code;
}

#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>race      program: built programs in alternating fresh processes.
              Public: none      Used by: >>main
---------------------------------------------------------------------------------------------------------------*/
#if KBI_REPORT

typedef struct kbi_racer {
    kbi_text path;     // as it is started
    kbi_records first; // of its first round: they stand for the cases
    kbi_named* order;  // these by their names
    int64_t n;
    double* ms; // [round * n + place in order]; NAN: none
} kbi_racer;

typedef struct kbi_race {
    const kbi_options* o;
    kbi_racer* of;
    int n, rounds, size;     // size: rounds that there is room for
    kbi_text records, words; // files of the process that runs
    char** argv;
    int64_t began;
    double widest;
    bool failed; // a case did
    bool shown;  // the progress line
} kbi_race;

// --- one process ---

static void kbi_race_remove(kbi_race* r) {
    unlink(r->records.s);
    unlink(r->words.s);
}

// A folder's file that only this process has; false after an error message.
static bool kbi_race_files(kbi_race* r) {
    const char* folder = getenv("TMPDIR");
    kbi_putf(&r->records, "%s/kbench-race-%ld.jsonl", folder && *folder ? folder : "/tmp", (long)getpid());
    kbi_putf(&r->words, "%s.words", r->records.s);
    kbi_text* both[2] = { &r->records, &r->words };
    for (int i = 0; i < 2; i++) {
        int file = kbi_open_file(both[i]->s, O_WRONLY | O_CREAT | O_EXCL | KBI_NOFOLLOW);
        if (file < 0) return kbi_error("--race: cannot make %s: %s", both[i]->s, strerror(errno)), false;
        close(file);
    }
    return true;
}

// How each program is told to run: its records to us, a fifth of a second a case unless the options say how long.
static void kbi_race_command(kbi_race* r) {
    static const char* const long_ones[] = { "--fast",     "--quick",    "--thorough", "--precision",
                                             "--max-time", "--min-time", "--iters",    "--rounds" };
    int n = 0, given = 0;
    bool said = false;
    for (char** p = r->o->race_options; p && *p; p++) {
        for (int i = 0; i < KBI_COUNT(long_ones); i++) said |= strncmp(*p, long_ones[i], strlen(long_ones[i])) == 0;
        given++;
    }
    r->argv = (char**)kbi_grow(NULL, sizeof(char*) * (size_t)(given + 8));
    r->argv[n++] = NULL; // the program
    r->argv[n++] = (char*)"--jsonl";
    r->argv[n++] = r->records.s;
    r->argv[n++] = (char*)"--no-progress";
    if (!said) r->argv[n++] = (char*)"--max-time=200ms";
    for (int i = 0; i < given; i++) r->argv[n++] = r->o->race_options[i];
    r->argv[n] = NULL;
}

static void kbi_race_progress(kbi_race* r, const char* program) {
    char half[40], wanted[40];
    double seconds = (double)(kbi_now() - r->began) * 1e-9;
    if (r->o->on[KBI_OPTION_quiet] || r->o->on[KBI_OPTION_no_progress] || !kbi_terminal(stderr)) return;
    fprintf(stderr, "\r[round %d]  %.0f s of %.0f s at most  ", r->rounds + 1, seconds, r->o->budget);
    if (kbi_finite(r->widest))
        fprintf(stderr, "known to %s, wanted %s  ", kbi_show_percent(r->widest, half),
                kbi_show_percent(log1p(r->o->threshold) / 3, wanted));
    fprintf(stderr, "%.40s\033[K", program);
    fflush(stderr);
    r->shown = true;
}

static void kbi_race_clear(kbi_race* r) {
    if (r->shown) fputs("\r\033[K", stderr), fflush(stderr);
    r->shown = false;
}

static void kbi_race_exec(kbi_race* r, const kbi_racer* one, pid_t parent) {
    int nowhere = kbi_open_file("/dev/null", O_RDWR), words = kbi_open_file(r->words.s, O_WRONLY | O_TRUNC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    if (nowhere < 0 || words < 0 || dup2(nowhere, 0) < 0 || dup2(nowhere, 1) < 0 || dup2(words, 2) < 0) _exit(1);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    r->argv[0] = one->path.s;
    execv(one->path.s, r->argv);
    fprintf(stderr, "%s: %s\n", one->path.s, strerror(errno));
    _exit(2);
}

// Why a program gave no records: what it said itself.
static int kbi_race_lost(kbi_race* r, const kbi_racer* one, int status) {
    char line[300];
    FILE* f = fopen(r->words.s, "r");
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : KBI_EXIT_FAILED;
    kbi_race_clear(r);
    if (WIFSIGNALED(status))
        kbi_error("--race: %s was ended by signal %d", one->path.s, WTERMSIG(status));
    else
        kbi_error("--race: %s measured nothing (exit code %d); it said:", one->path.s, code);
    for (int i = 0; f && i < 5 && kbi_get_line(line, (int)sizeof line, f); i++)
        fprintf(stderr, "    %.*s\n", (int)strcspn(line, "\n"), line);
    if (f) fclose(f);
    return code == KBI_EXIT_NO_GPU ? code : KBI_EXIT_USAGE;
}

// One program's turn: its records into `to`. 0, or the exit code that the race ends with.
static int kbi_race_turn(kbi_race* r, const kbi_racer* one, kbi_records* to) {
    int status = 0;
    pid_t parent = getpid(), process, ended;
    memset(to, 0, sizeof *to);
    kbi_race_progress(r, one->path.s);
    int file = kbi_open_file(r->records.s, O_WRONLY | O_TRUNC | KBI_NOFOLLOW);
    if (file < 0) return kbi_error("--race: %s: %s", r->records.s, strerror(errno)), KBI_EXIT_FAILED;
    close(file);
    fflush(NULL);
    process = fork();
    if (process < 0) return kbi_error("no process: %s", strerror(errno)), KBI_EXIT_FAILED;
    if (process == 0) kbi_race_exec(r, one, parent);
    for (bool told = false; (ended = waitpid(process, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR);) {
        if (kbi_desk.interrupted && !told) kill(process, SIGTERM), told = true;
        kbi_readable(-1, 10);
    }
    if (kbi_desk.interrupted) return KBI_EXIT_INTERRUPTED;
    int code = ended == process && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != KBI_EXIT_FINE && code != KBI_EXIT_FAILED) return kbi_race_lost(r, one, status);
    if (!kbi_read_records(to, r->records.s)) return KBI_EXIT_FAILED;
    r->failed |= code == KBI_EXIT_FAILED;
    return to->n ? 0 : kbi_race_lost(r, one, status);
}

// --- rounds ---

// The times of a round where the first one has its cases; what came or went since is no part of the race.
static void kbi_race_keep(kbi_race* r, kbi_racer* one, const kbi_records* now) {
    kbi_named* order = (kbi_named*)kbi_grow(NULL, sizeof(kbi_named) * (size_t)now->n);
    int64_t m = kbi_name_records(order, now->of, now->n);
    double* row = one->ms + (int64_t)r->rounds * one->n;
    for (int64_t i = 0, j = 0; i < one->n; i++) {
        const kb_result* wanted = one->order[i].r;
        row[i] = (double)NAN;
        while (j < m && strcmp(order[j].r->name, wanted->name) < 0) j++;
        for (int64_t k = j; k < m && kbi_is(order[k].r->name, wanted->name); k++)
            if (order[k].device == one->order[i].device && kbi_has_time(order[k].r)) row[i] = order[k].r->time_ms;
    }
    KBENCH_FREE(order);
}

static void kbi_race_room(kbi_race* r) {
    if (r->rounds < r->size) return;
    r->size = 2 * r->size + 16;
    for (int k = 0; k < r->n; k++)
        if (r->of[k].n) r->of[k].ms = (double*)kbi_grow(r->of[k].ms, sizeof(double) * (size_t)(r->size * r->of[k].n));
}

// All programs once: forwards, then backwards, and who begins goes round. 0, or an exit code.
static int kbi_race_round(kbi_race* r) {
    kbi_race_room(r);
    for (int k = 0; k < r->n; k++) {
        int turn = r->rounds % 2 ? r->n - 1 - k : k;
        kbi_racer* one = &r->of[(turn + r->rounds / 2) % r->n];
        kbi_records now;
        int code = kbi_race_turn(r, one, &now);
        if (code) return kbi_records_free(&now), code;
        if (r->rounds) {
            kbi_race_keep(r, one, &now);
            kbi_records_free(&now);
            continue;
        }
        one->first = now;
        one->order = (kbi_named*)kbi_grow(NULL, sizeof(kbi_named) * (size_t)now.n);
        one->n = kbi_name_records(one->order, one->first.of, now.n);
        one->ms = (double*)kbi_grow(NULL, sizeof(double) * (size_t)(r->size * one->n));
        kbi_race_keep(r, one, &one->first);
    }
    r->rounds++;
    return 0;
}

static int64_t kbi_race_place(const kbi_racer* one, const kb_result* r) {
    for (int64_t low = 0, high = one->n; low < high;) {
        int64_t middle = (low + high) / 2;
        int order = strcmp(one->order[middle].r->name, r->name);
        int64_t device = r->device == KB_NONE ? -1 : r->device;
        if (!order) order = (one->order[middle].device > device) - (one->order[middle].device < device);
        if (!order) return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

// The changes of every program against the first, one program after the other, as they stand after these rounds.
// names: what each change's program is called; to be freed like the changes.
static kbi_changes kbi_race_changes(kbi_race* r, const char*** names) {
    kbi_rules rules = kbi_rules_of(r->o);
    kbi_changes all = { NULL, 0 };
    double* logs = NULL;
    *names = NULL;
    for (int k = 1; k < r->n; k++) {
        kbi_racer *old = &r->of[0], *now = &r->of[k];
        kbi_changes c = kbi_pair_records(old->first.of, old->first.n, now->first.of, now->first.n);
        size_t n = (size_t)(all.n + c.n);
        all.of = (kbi_change*)kbi_grow(all.of, sizeof(kbi_change) * n);
        *names = (const char**)kbi_grow((void*)*names, sizeof(char*) * n);
        logs = (double*)kbi_grow(logs, sizeof(double) * n * (size_t)r->rounds);
        for (int64_t i = 0; i < c.n; i++, all.n++) {
            const kbi_change* one = &c.of[i];
            int64_t x = one->before ? kbi_race_place(old, one->before) : -1;
            int64_t y = one->after ? kbi_race_place(now, one->after) : -1;
            all.of[all.n] = *one;
            (*names)[all.n] = now->path.s;
            for (int round = 0; round < r->rounds; round++) {
                double b = x < 0 ? (double)NAN : old->ms[round * old->n + x];
                double a = y < 0 ? (double)NAN : now->ms[round * now->n + y];
                logs[all.n * r->rounds + round] = kbi_nan(a) || kbi_nan(b) ? (double)NAN : log(a / b);
            }
        }
        KBENCH_FREE(c.of);
    }
    r->widest = kbi_compare_rounds(&all, logs, r->rounds, &rules);
    KBENCH_FREE(logs);
    return all;
}

// Rounds until the changes are known well enough or the time is up, whichever way they point. 0, or an exit code.
static int kbi_race_run(kbi_race* r) {
    kbi_rules rules = kbi_rules_of(r->o);
    r->began = kbi_now();
    r->widest = (double)INFINITY;
    for (;;) {
        const char** names;
        int64_t at = kbi_now();
        int code = kbi_race_round(r);
        if (code) return code;
        kbi_changes c = kbi_race_changes(r, &names);
        kbi_assessment a = kbi_assess(&c);
        KBENCH_FREE(c.of);
        KBENCH_FREE((void*)names);
        if (!a.compared) return 0; // no case in common: more rounds change nothing
        if (kbi_race_enough(r->rounds, r->widest, &rules)) return 0;
        double round = (double)(kbi_now() - at) * 1e-9, all = (double)(kbi_now() - r->began) * 1e-9;
        if (all + round > r->o->budget) return 0;
    }
}

static int kbi_race_show(kbi_race* r) {
    const char** names;
    char half[40], wanted[40];
    kbi_rules rules = kbi_rules_of(r->o);
    kbi_changes c = kbi_race_changes(r, &names);
    kbi_assessment a = kbi_assess(&c);
    kbi_how how = kbi_how_of(r->o, stdout);
    for (int k = 1; k < r->n; k++) printf("%s%s", k > 1 ? ", " : "", r->of[k].path.s);
    printf(" against %s: %d rounds in %.0f s\n", r->of[0].path.s, r->rounds, (double)(kbi_now() - r->began) * 1e-9);
    kbi_changes_show(&how, &c, &rules, &a, r->n > 2 ? names : NULL);
    if (a.compared && !kbi_race_enough(r->rounds, r->widest, &rules))
        kbi_warn(
            "the race ended at its --budget: changes are known to %s, not to the %s that a third of the threshold is",
            kbi_finite(r->widest) ? kbi_show_percent(r->widest, half) : "nobody knows what",
            kbi_show_percent(log1p(rules.threshold) / 3, wanted));
    KBENCH_FREE(c.of);
    KBENCH_FREE((void*)names);
    int code = kbi_toll_code(r->o, &a, true, false, 0);
    if (!a.compared) return kbi_error("--race: the programs have no case in common that has a time"), KBI_EXIT_FAILED;
    return r->failed ? KBI_EXIT_FAILED : code;
}

// The programs by the paths that start them; false after an error message.
static bool kbi_race_programs(kbi_race* r) {
    const kbi_strings* list = &r->o->race;
    struct stat about;
    for (int k = 0; k < list->n; k++) {
        kbi_racer* one = &r->of[k];
        kbi_putf(&one->path, "%s%s", strchr(list->of[k], '/') ? "" : "./", list->of[k]);
        if (stat(one->path.s, &about) != 0) return kbi_error("--race: %s: %s", one->path.s, strerror(errno)), false;
        if (!S_ISREG(about.st_mode) || access(one->path.s, X_OK) != 0)
            return kbi_error("--race: %s is no program that can be started", one->path.s), false;
    }
    for (char** p = r->o->race_options; p && *p; p++)
        if (strncmp(*p, "--jsonl", 7) == 0)
            return kbi_error("--race: the programs' --jsonl is how the race reads their records; leave it out"),
                   false;
    return true;
}

static int kbi_race_main(const kbi_options* o) {
    kbi_race r;
    memset(&r, 0, sizeof r);
    r.o = o;
    r.n = o->race.n;
    r.of = (kbi_racer*)kbi_grow(NULL, sizeof(kbi_racer) * (size_t)r.n);
    memset(r.of, 0, sizeof(kbi_racer) * (size_t)r.n);
    signal(SIGINT, kbi_interrupt);
    signal(SIGTERM, kbi_interrupt);
    signal(SIGHUP, kbi_interrupt);
    signal(SIGCHLD, SIG_DFL);
    bool good = kbi_race_programs(&r) && kbi_race_files(&r);
    int code = KBI_EXIT_USAGE;
    if (good) {
        kbi_race_command(&r);
        code = kbi_race_run(&r);
        kbi_race_clear(&r);
        if (!code) code = kbi_race_show(&r);
        kbi_race_remove(&r);
    }
    for (int k = 0; k < r.n; k++) {
        kbi_text_free(&r.of[k].path);
        kbi_records_free(&r.of[k].first);
        KBENCH_FREE(r.of[k].order);
        KBENCH_FREE(r.of[k].ms);
    }
    KBENCH_FREE(r.of);
    KBENCH_FREE(r.argv);
    kbi_text_free(&r.records);
    kbi_text_free(&r.words);
    return code;
}
#endif // KBI_REPORT

/*---------------------------------------------------------------------------------------------------------------
  >>embed     program: measuring inside another program.
              Public: kb_open_from, kb_close, kb_current, kb_compare_from, kb_abi, kb_run_from
              Used by: programs
---------------------------------------------------------------------------------------------------------------*/

// A function that a program hands over, with what it says of it; without a function, a block between kb_open and
// kb_close.
typedef struct kbi_given {
    kb_desc desc;
    kb_entry entry;
    kb_function fn;
    void* user;
    const char* fault; // what is wrong with the description; NULL: nothing
} kbi_given;

static struct kbi_host_program { // the process of somebody else's main: what it measures on, opened once
    const kbi_backend* backend;
    kbi_machine machine;
    int device;
    kb_state* current;
} kbi_host_program;

static const char* kbi_params_fault(const kb_desc* d) {
    if (d->n_params < 0 || d->n_params >= KBI_DIMENSIONS || (d->n_params && !d->params))
        return "kb_desc.n_params: as many as params has, at most 15";
    for (const kb_param* p = d->params; p && p < d->params + d->n_params; p++) {
        bool known = p->type == KB_AXIS_INTS || p->type == KB_AXIS_REALS || (p->type == KB_AXIS_STRINGS && p->s);
        if (!p->name || !*p->name || !known)
            return "kb_desc.params: each has a name, a type (KB_AXIS_INTS, _REALS, _STRINGS) and that type's value";
    }
    return NULL;
}

static const char* kbi_desc_fault(const kb_desc* d) {
    if (!d) return "kb_desc is NULL";
    if (d->end_canary) return "kb_desc is not initialised: start from = {0}, or name its fields";
    if (!d->name || !*d->name) return "kb_desc.name is missing";
    if (d->dtype && !kb_dtype_of(d->dtype)) return "kb_desc.dtype is none of f32, f64, f16, bf16, i8, u8, ... u64";
    if (d->samples < 0 || d->precision < 0 || d->max_time < 0 || d->device < 0)
        return "kb_desc: samples, precision, max_time and device cannot be negative";
    if (d->mode && !kbi_is(d->mode, "cold") && !kbi_is(d->mode, "hot"))
        return "kb_desc.mode is cold or hot; it is another word";
    if (kbi_host_program.backend && KBI_CUDA && d->device != kbi_host_program.device)
        return "kb_desc.device: a process measures on one GPU, that of its first kb_open, kb_run or kb_compare";
    return kbi_params_fault(d);
}

// Of a description at fault the record still says whose it is.
static void kbi_given_take(kbi_given* g, const kb_desc* d) {
    g->fault = kbi_desc_fault(d);
    if (!g->fault) {
        g->desc = *d;
        return;
    }
    memset(&g->desc, 0, sizeof g->desc);
    g->desc.name = "unnamed";
    if (!d || d->end_canary || !d->name || !*d->name) return;
    g->desc.name = d->name;
    g->desc.implementation = d->implementation;
}

// Its texts are kept in the arena: the program may give up its own at once.
static kbi_case kbi_given_case(kbi_given* g, kbi_arena* a, kb_body body, const kb_build* build) {
    const kb_param* values[KBI_DIMENSIONS];
    const kb_desc* d = &g->desc;
    kb_param dtype;
    int n = 0;
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
    kbi_case c = kbi_case_of(a, &g->entry, values, n);
    c.desc = &g->desc;
    return c;
}

static void kbi_recipe_of_desc(kbi_recipe* r, const kb_desc* d) {
    kbi_recipe_default(r);
    r->device = d->device;
    if (d->mode && kbi_is(d->mode, "hot")) r->mode = KBI_HOT;
    if (d->precision > 0) r->precision = d->precision;
    if (d->max_time > 0) r->max_time = d->max_time;
    if (d->samples > 0) r->samples = d->samples;
    if (d->seed) r->seed = d->seed;
}

static void kbi_host_program_open(const kbi_recipe* recipe) {
    if (kbi_host_program.backend) return;
    kbi_host_program.backend = kbi_backend_open(recipe, &kbi_host_program.machine);
    kbi_host_program.device = recipe->device;
}

static kb_result kbi_given_result(const kbi_case* c, kbi_measured* m, const double* samples,
                                  const kbi_recipe* recipe) {
    kb_result r;
    kbi_session session;
    m->leaked = KB_NONE; // the program may keep what it likes
    kbi_judge(&r, m, samples, &kbi_host_program.machine);
    kbi_record_case(&r, c, m, &kbi_host_program.machine);
    kbi_session_open(&session, 0, NULL, recipe->seed);
    kbi_record_session(&r, &session);
    KBENCH_FREE(session.command);
    return r;
}

// --- a block between two calls ---

typedef struct kbi_embedded {
    kbi_run run; // first: the one is found from the other
    kbi_recipe recipe;
    kbi_case of;
    kbi_given given;
    kbi_arena arena;
} kbi_embedded;

kb_state* kb_open_from(const kb_desc* desc, const kb_build* build) {
    kbi_embedded* e = (kbi_embedded*)KBENCH_MALLOC(sizeof(kbi_embedded));
    if (!e) return NULL;
    memset(e, 0, sizeof *e);
    kbi_given_take(&e->given, desc);
    kbi_recipe_of_desc(&e->recipe, &e->given.desc);
    kbi_host_program_open(&e->recipe);
    e->of = kbi_given_case(&e->given, &e->arena, NULL, build);
    kbi_run_init(&e->run, kbi_host_program.backend, &kbi_host_program.machine, &e->recipe);
    kbi_run_case(&e->run, &e->of);
    kbi_body_begins(&e->run, KBI_PHASE_CHECK, KBI_PHASE_PROVE);
    if (e->given.fault) kbi_stop(&e->run, KB_FLAG_BAD_CASE, "%s", e->given.fault);
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
    r = kbi_given_result(&e->of, &e->run.m, e->run.sampling.samples, &e->recipe);
    KBENCH_FREE(e->run.sampling.samples);
    kbi_arena_free(&e->arena);
    KBENCH_FREE(e);
    return r;
}

// --- functions ---

kb_state* kb_current(void) { return kbi_host_program.current; }

static void kbi_given_body(kb_state* kb) {
    const kbi_given* g = (const kbi_given*)kb->run->of->entry->user;
    bool host = g->desc.host;
    kb->user = g->user;
    kbi_host_program.current = kb;
    if (g->fault) {
        kbi_stop(kb->run, KB_FLAG_BAD_CASE, "%s", g->fault);
    } else if (g->desc.before) {
        KB_SAMPLE(kb) {
            g->desc.before(kb->stream, g->user);
            KBI_TIME(kb, host) g->fn(kb->stream, g->user);
        }
    } else {
        KBI_TIME(kb, host) g->fn(kb->stream, g->user);
    }
    if (g->desc.check && !kb->run->place.resting) g->desc.check(kb, g->user);
    kbi_host_program.current = NULL;
}

// What the contest is about is said once; whoever says something else is in the wrong one.
static void kbi_given_join(kbi_given* g, const kb_desc* first) {
    kb_desc* d = &g->desc;
    bool apart = (d->device && d->device != first->device) || (d->seed && d->seed != first->seed) ||
                 (d->samples && d->samples != first->samples) || (d->host && !first->host);
    if (d->mode && !kbi_is(d->mode, first->mode ? first->mode : "cold")) apart = true;
    if (d->precision > 0 && (d->precision < first->precision || d->precision > first->precision)) apart = true;
    if (d->max_time > 0 && (d->max_time < first->max_time || d->max_time > first->max_time)) apart = true;
    if (g->fault) return;
    if (!kbi_is(d->name, first->name))
        g->fault = "kb_compare: a contest is about one operation; kb_desc.name is not the first one's";
    else if (apart)
        g->fault =
            "kb_compare: host, mode, samples, precision, max_time, seed and device are the first one's, or zero";
    d->host = first->host;
    if (!d->n_params) d->params = first->params, d->n_params = first->n_params;
}

typedef struct kbi_found { // what became of each
    kbi_measured* m;
    double** samples; // NULL: nothing
} kbi_found;

static void kbi_found_enter(void* to, int index) { (void)to, (void)index; }
static void kbi_found_beat(void* to) { (void)to; }
static void kbi_found_result(void* to, int index, const kbi_measured* m, const double* samples) {
    kbi_found* f = (kbi_found*)to;
    size_t n = (size_t)KBI_MAX(m->n + m->rounds + m->again, (int64_t)0);
    f->m[index] = *m;
    f->samples[index] = (double*)kbi_grow(NULL, sizeof(double) * (n + 1));
    if (n) memcpy(f->samples[index], samples, sizeof(double) * n);
}

static void kbi_found_lost(kbi_measured* m) {
    kbi_measured_clear(m);
    m->status = KB_FAILED;
    m->flags = (uint64_t)1 << KB_FLAG_CUDA_ERROR;
    kbi_remark(m, "another function of the contest lost the device, and this process cannot get it back");
}

static void kbi_found_judge(kbi_found* f, int n, kb_result* results) {
    kbi_pools pools;
    kbi_rivals c;
    memset(&pools, 0, sizeof pools);
    memset(&c, 0, sizeof c);
    c.results = results;
    c.n = n;
    c.processes = 1;
    c.samples = f->samples;
    c.m = (const kbi_measured**)kbi_grow(NULL, sizeof(kbi_measured*) * (size_t)n);
    for (int i = 0; i < n; i++) c.m[i] = &f->m[i], results[i].planned = n;
    kbi_rivals_open(&c, &pools);
    kbi_judge_group(&c);
    kbi_record_contest(results, n, c.end);
    KBENCH_FREE(c.m);
}

bool kb_compare_from(const kb_desc* descs, const kb_function* fns, void* const* users, int64_t n, kb_result* results,
                     const kb_build* build) {
    if (n < 1 || n > KBI_CASES || !fns || !results)
        return kbi_error("kb_compare needs functions, and room for as many results"), false;
    size_t count = (size_t)n;
    kbi_given* given = (kbi_given*)kbi_grow(NULL, sizeof(kbi_given) * count);
    kbi_case* cases = (kbi_case*)kbi_grow(NULL, sizeof(kbi_case) * count);
    char* wanted = (char*)kbi_grow(NULL, count);
    kbi_found found = { (kbi_measured*)kbi_grow(NULL, sizeof(kbi_measured) * count),
                        (double**)kbi_grow(NULL, sizeof(double*) * count) };
    const kbi_sink sink = { kbi_found_enter, kbi_found_beat, kbi_found_result, NULL, &found };
    kbi_arena arena;
    kbi_recipe recipe;
    bool good = true;
    memset(&arena, 0, sizeof arena);
    memset(given, 0, sizeof(kbi_given) * count);
    memset(wanted, 1, count);
    memset(found.samples, 0, sizeof(double*) * count);
    for (int i = 0; i < (int)n; i++) {
        kbi_given* g = &given[i];
        kbi_given_take(g, descs ? &descs[i] : NULL);
        g->fn = fns[i];
        g->user = users ? users[i] : NULL;
        if (!g->fn && !g->fault) g->fault = "the function is NULL";
        kbi_given_join(g, &given[0].desc);
        cases[i] = kbi_given_case(g, &arena, kbi_given_body, build);
    }
    kbi_recipe_of_desc(&recipe, &given[0].desc);
    kbi_host_program_open(&recipe);
    kbi_run_cases(cases, &recipe, kbi_host_program.backend, &kbi_host_program.machine, 0, (int)n, wanted, &sink);
    for (int i = 0; i < (int)n; i++) {
        if (!found.samples[i]) kbi_found_lost(&found.m[i]);
        results[i] = kbi_given_result(&cases[i], &found.m[i], found.samples[i], &recipe);
        good = good && results[i].status == KB_OK;
    }
    kbi_found_judge(&found, (int)n, results);
    for (int i = 0; i < (int)n; i++) KBENCH_FREE(found.samples[i]);
    KBENCH_FREE(found.samples);
    KBENCH_FREE(found.m);
    KBENCH_FREE(wanted);
    KBENCH_FREE(cases);
    KBENCH_FREE(given);
    kbi_arena_free(&arena);
    return good;
}

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

kb_result kb_run_from(const kb_desc* desc, kb_function fn, void* user, const kb_build* build) {
    kb_result r;
    kb_compare_from(desc, &fn, &user, 1, &r, build);
    return r;
}

/*---------------------------------------------------------------------------------------------------------------
  >>proving   program: what the self-test measures: kernels with memory, known work, planted mistakes.
              Public: none      Used by: >>main
---------------------------------------------------------------------------------------------------------------*/

// --- kernels with memory, on a GPU those of tests/ptx/engine.cu, elsewhere the same in C ---

typedef enum kbi_proof_kernel { KBI_AXPY, KBI_SUMS, KBI_PRODUCT, KBI_HISTOGRAM, KBI_GATHER } kbi_proof_kernel;
static const char* const kbi_proof_names[] = { "kbi_axpy", "kbi_sums", "kbi_product", "kbi_histogram", "kbi_gather" };
enum { KBI_PROOF_ROW = 1024, KBI_PROOF_BINS = 4096, KBI_PROOF_CHECKED = 16 };

typedef struct kbi_proof {
    kbi_proof_kernel kernel;
    uint32_t n;      // elements, or the side of a square
    int64_t in, out; // elements
    double percent;  // by which it is to take longer
    uint64_t wait;   // for that: cycles of the SM, or steps of a counted loop
    float* x;
    void *y, *ended; // ended: a counter of blocks
    void* function;  // on a GPU
    unsigned blocks;
} kbi_proof;

KBI_SLOW_END
static uint32_t kbi_proof_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Where kbi_gather reads: anywhere below n.
static uint32_t kbi_proof_index(float x, uint32_t n) {
    return (uint32_t)((uint64_t)(kbi_proof_bits(x) * 2654435761u) * n >> 32);
}

static void kbi_proof_host(const kbi_proof* p) {
    const float* x = p->x;
    float* y = (float*)p->y;
    uint32_t n = p->n, *bins = (uint32_t*)p->y;
    switch (p->kernel) {
    case KBI_AXPY:
        for (uint32_t i = 0; i < n; i++) y[i] = 0.5f * x[i] + 1.0f;
        break;
    case KBI_SUMS:
        for (uint32_t r = 0; r < n / KBI_PROOF_ROW; r++) {
            float sum = 0;
            for (uint32_t i = 0; i < KBI_PROOF_ROW; i++) sum += x[r * KBI_PROOF_ROW + i];
            y[r] = sum;
        }
        break;
    case KBI_PRODUCT:
        for (uint32_t r = 0; r < n; r++) {
            for (uint32_t c = 0; c < n; c++) y[r * n + c] = 0;
            for (uint32_t k = 0; k < n; k++)
                for (uint32_t c = 0; c < n; c++) y[r * n + c] += x[r * n + k] * x[k * n + c];
        }
        break;
    case KBI_HISTOGRAM:
        for (uint32_t i = 0; i < n; i++) bins[kbi_proof_bits(x[i]) % KBI_PROOF_BINS]++;
        break;
    case KBI_GATHER:
        for (uint32_t i = 0; i < n; i++) y[i] = x[kbi_proof_index(x[i], n)];
        break;
    }
    __asm__ __volatile__("" : : : "memory");
}

static void kbi_spin_host(uint64_t steps) {
    volatile uint32_t x = 1;
    for (uint64_t i = 0; i < steps; i++) x = x * 1664525u + 1013904223u;
}
KBI_SLOW_BEGIN

// On a GPU "same_0", "same_1", "slower_2" and "slower_5" are textually the same kernel, each loaded from a module of
// its own; elsewhere they are the same function.
static void kbi_proof_open(kbi_proof* p, const kb_state* kb, uint32_t n) {
    memset(p, 0, sizeof *p);
    for (int i = 0; i < KBI_COUNT(kbi_proof_names); i++)
        if (kbi_is(kb->operation, kbi_proof_names[i] + 4)) p->kernel = (kbi_proof_kernel)i;
    p->n = n;
    p->in = p->kernel == KBI_PRODUCT ? (int64_t)n * n : (int64_t)n;
    p->out = p->kernel == KBI_SUMS ? n / KBI_PROOF_ROW : p->kernel == KBI_HISTOGRAM ? (int64_t)KBI_PROOF_BINS : p->in;
    if (strncmp(kb->implementation, "slower_", 7) == 0) p->percent = kb->implementation[7] - '0';
#if KBI_CUDA
    int copy = p->percent > 0 ? 2 + (p->percent > 2) : kb->implementation[5] - '0';
    int64_t work = p->kernel == KBI_SUMS ? p->out : (p->in + 255) / 256; // blocks that have some
    kbi_text ptx = { NULL, 0, 0 };
    if (!kb->gpu) return;
    if (!kbi_lab.gpu.proofs[copy][0]) {
        kbi_ptx_put(&ptx, true);
        int error = kbi_load_module(ptx.s, kbi_proof_names, KBI_PROOFS, kbi_lab.gpu.proofs[copy]);
        if (error)
            kbi_stop(kb->run, KB_FLAG_CUDA_ERROR, "the self-test's kernels were not loaded (CUresult %d)", error);
        kbi_text_free(&ptx);
    }
    p->function = kbi_lab.gpu.proofs[copy][p->kernel];
    p->blocks = (unsigned)KBI_MIN(work, (int64_t)kbi_lab.gpu.multiprocessors * 16);
#endif
}

// ns of a call of the host's kernel, or of a step of the counted loop: the least of ten, each long enough for the
// clock.
static double kbi_proof_host_ns(const kbi_proof* p, bool step) {
    double least = INFINITY;
    for (int i = 0; i < 10; i++) {
        int64_t began = kbi_now(), now, calls = 0;
        do {
            if (step)
                kbi_spin_host(1000);
            else
                kbi_proof_host(p);
            calls++;
            now = kbi_now();
        } while (now - began < 50000);
        least = KBI_MIN(least, (double)(now - began) / (double)(step ? 1000 * calls : calls));
    }
    return least;
}

#if KBI_CUDA
static void kbi_proof_launch(kbi_proof* p) {
    void* arguments[] = { &p->x, &p->y, &p->n, &p->ended, &p->wait };
    kbi_lab.gpu.launch(p->function, p->blocks, 1, 1, 256, 1, 1, 0, kbi_lab.gpu.stream, arguments, NULL);
}

// Cycles of the SM in so many percent of the kernel's time, as the engine sees it in the mode that it is measured in.
static uint64_t kbi_proof_cycles(kbi_run* run, kbi_proof* p) {
    enum { KBI_EACH = 9 };
    double ns[KBI_EACH], scratch[KBI_EACH], mhz = kbi_gpu_clock();
    kbi_mode mode = run->recipe->mode == KBI_HOT ? KBI_HOT : KBI_COLD;
    for (int i = 0; i < KBI_EACH; i++) {
        kbi_sample_open(true, 1);
        kbi_launch_begin(mode == KBI_COLD);
        kbi_proof_launch(p);
        kbi_launch_end();
        kbi_lab.gpu.at = 0;
        ns[i] = kbi_lab.gpu.ns[0];
    }
    double wait = (kbi_median_of(ns, KBI_EACH, scratch) - run->machine->bias[mode]) * p->percent / 100 * mhz * 1e-3;
    return wait > 0 ? (uint64_t)wait : 0; // NaN where the clock is not known: then there is no difference to be found
}
#endif

// The value of an input, as kb_fill makes it in its first call.
static float kbi_proof_x(const kb_state* kb, int64_t i) {
    float x;
    kbi_fill_host(&x, i, 1, KB_F32, KB_NORMAL, kb->seed, 0);
    return x;
}

static float kbi_proof_want(const kb_state* kb, const kbi_proof* p, int64_t i) {
    double sum = 0;
    int64_t n = p->n, r = i / n, c = i % n;
    if (p->kernel == KBI_AXPY) return 0.5f * kbi_proof_x(kb, i) + 1.0f;
    if (p->kernel == KBI_GATHER) return kbi_proof_x(kb, kbi_proof_index(kbi_proof_x(kb, i), p->n));
    for (int64_t k = 0; k < KBI_PROOF_ROW && p->kernel == KBI_SUMS; k++)
        sum += kbi_proof_x(kb, i * KBI_PROOF_ROW + k);
    for (int64_t k = 0; k < n && p->kernel == KBI_PRODUCT; k++)
        sum += (double)kbi_proof_x(kb, r * n + k) * (double)kbi_proof_x(kb, k * n + c);
    return (float)sum;
}

// Of a histogram all that was counted, of the others the last outputs.
static void kbi_proof_check(kb_state* kb, const kbi_proof* p) {
    int64_t total = 0, n = KBI_MIN(p->out, (int64_t)KBI_PROOF_CHECKED), first = p->out - n;
    float want[KBI_PROOF_CHECKED];
    uint32_t bins[KBI_PROOF_BINS];
    if (p->kernel == KBI_HISTOGRAM) {
        kb_to_host(kb, bins, p->y, sizeof bins);
        for (int i = 0; i < KBI_PROOF_BINS; i++) total += bins[i];
        kb_check_that(kb, total == p->n, fabs((double)(total - p->n)), 0, "%lld of %u were counted", (long long)total,
                      p->n);
        return;
    }
    for (int64_t i = 0; i < n; i++) want[i] = kbi_proof_want(kb, p, first + i);
    kb_check_typed(kb, (float*)p->y + first, KB_F32, want, KB_F32, n, 1e-4);
}

static void kbi_test_proof(kb_state* kb) {
    kbi_proof p;
    kbi_proof_open(&p, kb, (uint32_t)kb_int(kb, "n"));
    p.x = KB_ALLOC(kb, float, p.in), p.y = KB_ALLOC(kb, float, p.out), p.ended = KB_ALLOC(kb, uint32_t, 1);
    kbi_fill(kb, p.x, KB_F32, p.in, KB_NORMAL);
    kbi_fill(kb, p.ended, KB_U32, 1, KB_ZERO);
    if (kbi_failed(kb->run) || !p.x || !p.y || !p.ended) return;
    if (!kb->gpu && p.percent > 0)
        p.wait = (uint64_t)(kbi_proof_host_ns(&p, false) * p.percent / 100 / kbi_proof_host_ns(&p, true));
#if KBI_CUDA
    if (kb->gpu && p.percent > 0) p.wait = kbi_proof_cycles(kb->run, &p);
#endif
    kbi_fill(kb, p.y, KB_U32, p.out, KB_ZERO); // now: it may have been launched
    if (kb->gpu) {
#if KBI_CUDA
        KB_TIME(kb) kbi_proof_launch(&p);
#endif
    } else {
        KB_TIME_HOST(kb) kbi_proof_host(&p), kbi_spin_host(p.wait);
    }
    kbi_proof_check(kb, &p);
}

// --- work of a length that is known ---

static void kbi_spin_work(kb_state* kb, uint64_t cycles) {
    if (kb->gpu) {
#if KBI_CUDA
        void* arguments[] = { &cycles };
        KB_TIME(kb) kbi_launch(KBI_F_SPIN, (unsigned)kbi_lab.gpu.multiprocessors, 128, arguments);
#endif
    } else {
        KB_TIME_HOST(kb) kbi_spin_host(cycles);
    }
    kb_check_that(kb, true, 0, 0, "nothing to check");
}
static void kbi_test_spin(kb_state* kb) { kbi_spin_work(kb, (uint64_t)kb_int(kb, "cycles")); }

// --- whether a cold launch finds its data gone ---

#if KBI_CUDA
static const double kbi_gone_least = 0.7; // as of kbi_judge_cold

static void kbi_gone(kb_state* kb, double share, const char* what, double bytes) {
    if (!kbi_finite(share))
        kb_skip(kb, "a read from L2 cannot be told from one from memory");
    else if (share < kbi_gone_least)
        kb_fail(kb, "%.0f %% of %s %.3g MiB was still there", 100 * KBI_MIN(1 - share, 1), what, bytes / (1 << 20));
    else
        kb_note(kb, "%.0f %% of %s %.3g MiB was gone", 100 * KBI_MIN(share, 1), what, bytes / (1 << 20));
}

static void kbi_test_eviction(kb_state* kb) {
    const kbi_machine* m = kb->run->machine;
    kbi_gone(kb, m->cold, "L2's", (double)m->l2);
    kbi_spin_work(kb, 1000);
}

// Makes the lines of x persist in a part of L2 set aside for them; NULL: nothing is set aside any more.
static bool kbi_set_aside(void* x, size_t bytes) {
    cudaStreamAttrValue a;
    memset(&a, 0, sizeof a);
    a.accessPolicyWindow.base_ptr = x;
    a.accessPolicyWindow.num_bytes = x ? bytes : 0;
    a.accessPolicyWindow.hitRatio = x ? 1.0f : 0.0f;
    a.accessPolicyWindow.hitProp = x ? cudaAccessPropertyPersisting : cudaAccessPropertyNormal;
    a.accessPolicyWindow.missProp = x ? cudaAccessPropertyStreaming : cudaAccessPropertyNormal;
    bool good = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, x ? bytes : 0) == cudaSuccess &&
                cudaStreamSetAttribute(kbi_lab.gpu.stream, cudaStreamAttributeAccessPolicyWindow, &a) == cudaSuccess;
    cudaCtxResetPersistingL2Cache();
    cudaGetLastError();
    kbi_look_persisting();
    return good;
}

// How much of x is gone, of the least of so many places: after what goes before a cold launch, and after the eviction
// alone. NaN where it cannot be told, or cannot be set aside.
static void kbi_measure_aside(char* x, size_t bytes, double* gone, double* evicted) {
    enum {
        KBI_PLACES = 8,
        KBI_EACH = 5,
        KBI_READ_ONCE = 0,
        KBI_READ_COLD,
        KBI_ASIDE_EVICTED,
        KBI_ASIDE_COLD,
        KBI_WAYS
    };
    double ns[KBI_PLACES][KBI_WAYS], each[KBI_EACH], scratch[KBI_EACH];
    size_t span = bytes / KBI_PLACES & ~(size_t)4095;
    bool good = true;
    *gone = *evicted = INFINITY;
    for (int way = 0; way < KBI_WAYS && good; way++) {
        if (way == KBI_ASIDE_EVICTED) good = kbi_set_aside(x, bytes);
        for (int place = 0; place < KBI_PLACES; place++) {
            for (int i = 0; i < KBI_EACH; i++) {
                kbi_gpu_read(x, bytes);
                if (way == KBI_ASIDE_EVICTED) kbi_evict();
                if (way == KBI_READ_ONCE) kbi_gpu_read(x + (size_t)place * span, KBI_PROBE);
                each[i] = kbi_probe_ns(x + (size_t)place * span, way == KBI_READ_COLD || way == KBI_ASIDE_COLD);
            }
            ns[place][way] = kbi_median_of(each, KBI_EACH, scratch);
        }
    }
    kbi_set_aside(NULL, 0);
    for (int place = 0; place < KBI_PLACES; place++) {
        double hot = ns[place][KBI_READ_ONCE], cold = ns[place][KBI_READ_COLD] - hot;
        if (!good || !(cold > 0.2 * hot)) {
            *gone = *evicted = NAN;
            return;
        }
        *gone = KBI_MIN(*gone, (ns[place][KBI_ASIDE_COLD] - hot) / cold);
        *evicted = KBI_MIN(*evicted, (ns[place][KBI_ASIDE_EVICTED] - hot) / cold);
    }
}

static void kbi_test_set_aside(kb_state* kb) {
    struct cudaDeviceProp p;
    memset(&p, 0, sizeof p);
    if (cudaGetDeviceProperties(&p, kb->run->machine->device) != cudaSuccess) return;
    size_t bytes = (size_t)KBI_MAX(0, KBI_MIN(p.persistingL2CacheMaxSize, p.accessPolicyMaxWindowSize));
    if (bytes < 8 * KBI_PROBE) kb_skip(kb, "this GPU sets nothing of L2 aside");
    char* x = KB_ALLOC(kb, char, (int64_t)bytes);
    if (x && kb->run->m.status == KB_OK && kb->run->call.last == KBI_PHASE_CHECK) { // once
        double gone, evicted;
        kbi_measure_aside(x, bytes, &gone, &evicted);
        kbi_gone(kb, gone, "what persists in", (double)bytes);
        if (evicted < kbi_gone_least) kb_note(kb, "without the reset %.0f %%", 100 * KBI_MAX(evicted, 0));
        if (evicted >= kbi_gone_least) kb_skip(kb, "what was set aside does not persist: there is nothing to prove");
    }
    kbi_spin_work(kb, 1000);
}
#endif

// --- mistakes ---

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
// Sizes: "all" rivals, "some" and "few" of them, of 1 to 200 us on an H200; "rotated" those whose copies, at most 64,
// exceed twice its L2; for a CPU "host" and "brief", of 4 KiB to 1 MiB but for products.
#define KBI_SIZES(axis, all, some, few, rotated, host, brief) \
    { KB_SIZE("all", axis "=" all),                           \
      KB_SIZE("some", axis "=" some),                         \
      KB_SIZE("few", axis "=" few),                           \
      KB_SIZE("rotated", axis "=" rotated),                   \
      KB_SIZE("host", axis "=" host),                         \
      KB_SIZE("brief", axis "=" brief),                       \
      KBI_TEST_AXIS_END },
// clang-format off
static const kb_axis kbi_sizes_of[][7] = {
    KBI_SIZES("n", "4096,16384,65536,196608,786432,1048576,3145728,4194304,12582912,16777216",
              "16384,262144,3145728,12582912", "65536,4194304", "1048576,4194304,12582912", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("n", "16384,65536,262144,786432,1048576,3145728,4194304,12582912,16777216,25165824",
              "65536,1048576,4194304,12582912", "1048576,4194304", "2097152,4194304,12582912", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("n", "16,32,64,96,128,256,384,512,640,768", "32,128,384,640", "64,384", "768,896", "16:128:+16",
              "48,96")
    KBI_SIZES("n", "4096,16384,49152,65536,196608,262144,524288,786432,1048576,3145728",
              "16384,196608,786432,1048576", "49152,786432", "1048576,2097152,3145728", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("n", "4096,16384,65536,196608,262144,786432,1048576,3145728,4194304,12582912",
              "16384,262144,1048576,4194304", "16384,1048576", "1048576,4194304,12582912", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("cycles", "20000", "500,3000,20000,1000000", "1000,20000", "20000",
              "500,1000,3000,7000,20000,100000,1000000,10000000", "20000")
};

// An operation's name is a kernel's, or the word that must replace the number.
static kb_entry kbi_tests[] = {
#define KBI_TEST(op, impl, body, axes)                                                                           \
    { op, impl, body, NULL, axes, "own", 0, KB_NEEDS_NOTHING, 0, NULL, NULL, 0, 0, NULL, NULL },
#define KBI_RIVALS(op, kernel)                                                                                   \
    KBI_TEST(op, "same_0", kbi_test_proof, kbi_sizes_of[kernel])                                                 \
    KBI_TEST(op, "same_1", kbi_test_proof, kbi_sizes_of[kernel])                                                 \
    KBI_TEST(op, "slower_2", kbi_test_proof, kbi_sizes_of[kernel])                                               \
    KBI_TEST(op, "slower_5", kbi_test_proof, kbi_sizes_of[kernel])
    KBI_RIVALS("axpy", KBI_AXPY)
    KBI_RIVALS("sums", KBI_SUMS)
    KBI_RIVALS("product", KBI_PRODUCT)
    KBI_RIVALS("histogram", KBI_HISTOGRAM)
    KBI_RIVALS("gather", KBI_GATHER)
    KBI_TEST("spin", "same_0", kbi_test_spin, kbi_sizes_of[KBI_GATHER + 1])
    KBI_TEST("VERIFY_FAIL", "one_element", kbi_test_wrong, NULL)
    KBI_TEST("VERIFY_FAIL", "unwritten", kbi_test_wrong, NULL)
    KBI_TEST("OVERRUN", "default", kbi_test_overrun, NULL)
    KBI_TEST("NO_LOOP", "default", kbi_test_no_loop, NULL)
    KBI_TEST("LEFT_EARLY", "default", kbi_test_left, NULL)
    KBI_TEST("CRASHED", "abort", kbi_test_crash, NULL)
    KBI_TEST("CRASHED", "exit", kbi_test_exit, NULL)
    KBI_TEST("TIMEOUT", "default", kbi_test_hang, NULL)
#if KBI_CUDA
    KBI_TEST("eviction", "default", kbi_test_eviction, NULL)
    KBI_TEST("set_aside", "default", kbi_test_set_aside, NULL)
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
#undef KBI_RIVALS
};
// clang-format on

// In place of the program's own benchmarks: a worker of the self-test finds the same.
static void kbi_selftest_register(void) {
    kbi_process.entries = NULL;
    kbi_process.entry_count = 0;
    for (int i = 0; i < KBI_COUNT(kbi_tests); i++) kb_add(&kbi_tests[i]);
}

/*---------------------------------------------------------------------------------------------------------------
  >>selftest  program: the measurement measured, and held against bars.
              Public: none      Used by: >>main
---------------------------------------------------------------------------------------------------------------*/

#define KBI_PROOF_OPERATIONS "axpy,sums,product,histogram,gather"

typedef struct kbi_seen_result { // what the self-test keeps of a result
    char name[96], operation[32], implementation[16], message[200];
    double ms, least, speedup, low, high, noise; // least: of the samples
    uint64_t flags;
    kb_status status;
    kb_verdict verdict;
} kbi_seen_result;

typedef struct kbi_bars {
    const kbi_options* o;
    kbi_seen_result* seen;        // of the latest run
    int n, failed, skipped, code; // code: the exit code of the latest run
    bool gpu, fast;
} kbi_bars;

static void kbi_bars_collect(void* to, const kb_result* r) {
    kbi_bars* b = (kbi_bars*)to;
    b->seen = (kbi_seen_result*)kbi_grow(b->seen, sizeof(kbi_seen_result) * (size_t)(b->n + 1));
    kbi_seen_result* s = &b->seen[b->n++];
    snprintf(s->name, sizeof s->name, "%s", r->name);
    snprintf(s->operation, sizeof s->operation, "%s", r->operation);
    snprintf(s->implementation, sizeof s->implementation, "%s", r->implementation);
    snprintf(s->message, sizeof s->message, "%s", r->message ? r->message : "");
    s->ms = r->time_ms, s->least = r->time_ms_min;
    s->speedup = r->speedup, s->low = r->speedup_low, s->high = r->speedup_high, s->noise = r->noise_floor;
    s->flags = r->flags;
    s->status = r->status;
    s->verdict = r->verdict;
    b->gpu |= r->gpu != NULL;
}

enum { KBI_NOT_HELD = -1 }; // in place of whether a bar was passed

KBI_PRINTF(4, 5) static void kbi_bar(kbi_bars* b, int passed, const char* what, const char* format, ...) {
    va_list list;
    printf("%-5s %-30s ", passed == KBI_NOT_HELD ? "skip" : passed ? "pass" : "FAIL", what);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
    b->failed += !passed;
    b->skipped += passed == KBI_NOT_HELD;
}

// Runs the tests that a command line selects; their results are then in seen. A bar that nothing was held against is
// not passed; NULL: whoever calls says so.
static bool kbi_bars_run(kbi_bars* b, const char* what, const char* arguments) {
    char text[400], *argv[40], *word;
    kbi_options o;
    kbi_plan plan;
    int argc = 0;
    b->n = 0;
    snprintf(text, sizeof text, "--selftest --no-progress --quiet %s", arguments);
    argv[argc++] = b->o->argv[0];
    for (word = strtok(text, " "); word && argc < 34; word = strtok(NULL, " ")) argv[argc++] = word;
    if (b->o->cpu) argv[argc] = kbi_keep_text("--cpu"), argv[argc + 1] = kbi_keep_text(b->o->cpu), argc += 2;
    if (b->o->device) argv[argc] = kbi_keep_text("--device"), argv[argc + 1] = kbi_keep_text(b->o->device), argc += 2;
    argv[argc] = NULL;
    kbi_options_default(&o);
    b->code = KBI_EXIT_USAGE;
    if (kbi_options_parse(&o, argc, argv) && kbi_plan_here(&plan, &o)) {
        b->code = kbi_run_plan(&o, &plan, kbi_bars_collect, b);
        kbi_plan_free(&plan);
    }
    if (kbi_desk.interrupted) return false;
    if (!b->n && what) kbi_bar(b, false, what, "nothing was measured, exit code %d", b->code);
    return b->n > 0;
}

// --- accuracy ---

// The times of the cases that a command line selects, from so many processes: a case's stand together, in ascending
// order. NULL: none; n is the number of cases, whose names are then in seen.
static double* kbi_bars_times(kbi_bars* b, const char* what, const char* arguments, int processes, int* n) {
    double* ms = NULL;
    for (int p = 0; p < processes; p++) {
        if (!kbi_bars_run(b, what, arguments)) return KBENCH_FREE(ms), (double*)NULL;
        if (!p) ms = (double*)kbi_grow(NULL, sizeof(double) * (size_t)(b->n * processes));
        if (!p) *n = b->n;
        for (int i = 0; i < *n; i++)
            ms[i * processes + p] = i < b->n && kbi_finite(b->seen[i].ms) ? b->seen[i].ms : INFINITY;
    }
    for (int i = 0; i < *n; i++) kbi_sort(ms + i * processes, processes);
    return ms;
}

// How far a time is outside of what CUPTI's processes gave, over max(0.15 us, 1 %); INFINITY where one is missing.
static double kbi_bar_error(const double* ours, const double* theirs, int processes) {
    double ms = ours[processes / 2], low = theirs[0], high = theirs[processes - 1];
    if (!kbi_finite(ms) || !kbi_finite(low) || !kbi_finite(high)) return INFINITY;
    return KBI_MAX(KBI_MAX(low - ms, ms - high), 0) / KBI_MAX(0.15e-3, 0.01 * low);
}

// Corrected times against CUPTI's durations of the same kernels, both from several processes, since kernels on memory
// differ by the process themselves: the median of ours against the range of theirs.
static void kbi_bar_accuracy(kbi_bars* b, const char* way) {
    char arguments[200], what[64];
    double worst = 0, least = INFINITY;
    int good = 0, n = 0, m = 0, processes = b->fast ? 1 : 3;
    const char* effort = b->fast ? "--size few --fast --precision 0.5" : "--size some";
    snprintf(what, sizeof what, "agrees with CUPTI, %s", *way ? way + 2 : "cold");
    snprintf(arguments, sizeof arguments, "--op spin," KBI_PROOF_OPERATIONS " --impl same_0 %s %s", effort, way);
    double* ours = kbi_bars_times(b, what, arguments, processes, &n);
    strcat(arguments, " --timer cupti");
    double* theirs = ours ? kbi_bars_times(b, what, arguments, processes, &m) : NULL;
    n = KBI_MIN(n, m);
    for (int i = 0; theirs && i < n; i++) {
        double error = kbi_bar_error(ours + i * processes, theirs + i * processes, processes);
        good += error <= 1;
        worst = KBI_MAX(worst, error);
        least = KBI_MIN(least, theirs[i * processes]);
    }
    bool none = theirs && !kbi_finite(least) && strstr(b->seen[0].message, "cupti");
    if (none) kbi_bar(b, KBI_NOT_HELD, what, "%s", b->seen[0].message);
    if (theirs && !none)
        kbi_bar(
            b, good >= 0.9 * n && worst <= 2.5, what,
            "%d of %d within max(0.15 us, 1 %%), %d process%s; worst %.2f of that; at least nine of ten, none above "
            "2.5",
            good, n, processes, processes > 1 ? "es" : "", worst);
    for (int i = 0; theirs && !none && i < n; i++) {
        const double *mine = ours + i * processes, *its = theirs + i * processes;
        if (kbi_bar_error(mine, its, processes) > 1)
            printf("      %-36s %9.3f us, CUPTI %9.3f to %9.3f us %s\n", b->seen[i].name, 1e3 * mine[processes / 2],
                   1e3 * its[0], 1e3 * its[processes - 1], b->seen[i].message);
    }
    KBENCH_FREE(ours);
    KBENCH_FREE(theirs);
}

// On the CPU: twice the work must take twice the time, from 1 us to 10 ms; of those sizes that others let it measure.
static void kbi_bar_scale(kbi_bars* b) {
    static const char what[] = "time grows with the work";
    double least = INFINITY, most = 0;
    int n = 0, noisy = 0, lost = 0;
    if (!kbi_bars_run(b, what, "--op spin --size host --fast --precision 0.3")) return;
    for (int i = 1; i < b->n; i++) { // the first is too short for the loop's own cost not to show
        const kbi_seen_result* s = &b->seen[i];
        double each = s->least / strtod(strstr(s->name, "cycles=") + 7, NULL);
        noisy += s->flags >> KB_FLAG_NOISY & 1;
        lost += !kbi_finite(each);
        if (!kbi_finite(each) || s->flags >> KB_FLAG_NOISY & 1) continue;
        n++;
        least = KBI_MIN(least, each);
        most = KBI_MAX(most, each);
    }
    if (noisy > n && !lost)
        kbi_bar(b, KBI_NOT_HELD, what, "%d of %d sizes drowned in noise: this machine is not quiet", noisy,
                n + noisy);
    else
        kbi_bar(b, !lost && most <= 1.1 * least, what,
                "time of a step differs by %.1f %% over %d sizes; at most 10 %%; %d more without a number",
                100 * (most / least - 1), n, lost);
}

// --- rivals ---

// The most of n that a share of p gives but with a chance below 1 %.
static int kbi_binomial_most(int n, double p) {
    double below = 0, term = pow(1 - p, n);
    int k = 0;
    for (; k < n && 1 - (below + term) >= 0.01; k++) {
        below += term;
        term *= (double)(n - k) / (k + 1) * p / (1 - p);
    }
    return k;
}

typedef enum kbi_judged { KBI_UNJUDGED, KBI_RIGHT, KBI_WRONG, KBI_DROWNED, KBI_LOST, KBI_JUDGED } kbi_judged;

// Whether the verdict on a rival that is so many percent slower is right. The least times from which a difference is to
// be found are those of tests/gpu/rivals.sh. A CPU that others use as well may not let it be found: there a baseline
// that differs from itself by more than half of it drowns it. On a GPU that is the harness's fault.
static kbi_judged kbi_rival_judge(const kbi_bars* b, const kbi_seen_result* s, int percent) {
    int planted = strncmp(s->implementation, "slower_", 7) == 0 ? s->implementation[7] - '0' : 0;
    double from = percent == 2 ? 5e-3 : percent == 5 ? 1.5e-3 : 0;
    if (planted != percent || kbi_is(s->implementation, "same_0")) return KBI_UNJUDGED;
    if (s->flags >> KB_FLAG_NOT_COLD & 1 || s->ms < from) return KBI_UNJUDGED;
    if (s->verdict == KB_NO_VERDICT) return KBI_LOST; // without a number, or the baseline is
    bool open = s->verdict == KB_UNRESOLVED;
    if (!b->gpu && percent && open && s->noise > 0.005 * percent) return KBI_DROWNED;
    return (percent ? s->verdict == KB_SLOWER : open || s->verdict == KB_EQUIVALENT) ? KBI_RIGHT : KBI_WRONG;
}

static void kbi_bar_sort(kbi_bars* b, const char* way, int percent) {
    char what[64], more[100] = "";
    int of[KBI_JUDGED] = { 0 };
    for (int i = 0; i < b->n; i++) of[kbi_rival_judge(b, &b->seen[i], percent)]++;
    int wrong = of[KBI_WRONG], n = of[KBI_RIGHT] + wrong, drowned = of[KBI_DROWNED], lost = of[KBI_LOST];
    int most = percent && !b->fast ? n / 20 : kbi_binomial_most(n, 0.05);
    if (percent)
        snprintf(what, sizeof what, "%d %% slower, %s", percent, way);
    else
        snprintf(what, sizeof what, "equal rivals, %s", way);
    if (drowned) snprintf(more, sizeof more, "; %d more drowned in noise", drowned);
    if (lost) snprintf(more, sizeof more, "; %d more without a verdict", lost);
    if (n + drowned + lost == 0)
        kbi_bar(b, KBI_NOT_HELD, what, "none was long enough, and cold");
    else if (drowned > n && !lost && wrong <= kbi_binomial_most(n, 0.05))
        kbi_bar(b, KBI_NOT_HELD, what, "%d of %d drowned in noise: this machine is not quiet", drowned, n + drowned);
    else if (percent)
        kbi_bar(b, wrong <= most && !lost, what, "found %d of %d from %s; at least %d%s", n - wrong, n,
                percent == 2 ? "5 us" : "1.5 us", n - most, more);
    else
        kbi_bar(b, wrong <= most && !lost, what,
                "%d of %d called different; at most %d: more has p < 0.01 if 5 %% are%s", wrong, n, most, more);
    for (int i = 0; i < b->n; i++) {
        const kbi_seen_result* s = &b->seen[i];
        kbi_judged judged = kbi_rival_judge(b, s, percent);
        if (judged == KBI_WRONG)
            printf("      %-36s %9.3f us, speedup %.4f [%.4f, %.4f]\n", s->name, 1e3 * s->ms, s->speedup, s->low,
                   s->high);
        if (judged == KBI_LOST)
            printf("      %-36s %s\n", s->name, s->message[0] ? s->message : "its baseline has no number");
    }
}

static void kbi_bar_rivals(kbi_bars* b, const char* way, const char* size) {
    char arguments[200];
    bool option = b->gpu && !kbi_is(way, "cold");
    snprintf(arguments, sizeof arguments,
             "--op " KBI_PROOF_OPERATIONS " --size %s --fast --precision 0.5 --rounds 40 %s%s", size,
             option ? "--" : "", option ? way : "");
    if (!kbi_bars_run(b, way, arguments)) return;
    kbi_bar_sort(b, way, 0);
    kbi_bar_sort(b, way, 2);
    kbi_bar_sort(b, way, 5);
}

// --- coldness, mistakes ---

static bool kbi_is_cold_test(const kbi_seen_result* s) {
    return kbi_is(s->operation, "eviction") || kbi_is(s->operation, "set_aside");
}

static void kbi_bar_cold(kbi_bars* b) {
    for (int i = 0; i < b->n; i++) {
        const kbi_seen_result* s = &b->seen[i];
        const char* what = kbi_is(s->operation, "eviction") ? "evicted" : "evicted, L2 set aside";
        if (!kbi_is_cold_test(s)) continue;
        if (s->status == KB_SKIPPED)
            kbi_bar(b, KBI_NOT_HELD, what, "%s", s->message);
        else
            kbi_bar(b, s->status == KB_OK, what, "%s", s->message);
    }
}

static bool kbi_mistake_found(const kbi_seen_result* s) {
    bool flagged = false;
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (kbi_is(kb_flag_name((kb_flag)f), s->operation)) flagged = (s->flags >> f) & 1;
    // a synchronous copy shows as a wait where the driver waits before it looks at the stream
    if (kbi_is(s->implementation, "copy")) flagged |= s->flags >> KB_FLAG_SYNC_INSIDE & 1;
    return s->status == KB_SKIPPED || (flagged && s->status == KB_FAILED && !kbi_finite(s->ms));
}

// Every planted mistake must get its word, and no number. Whether a cold launch is cold is looked at in the same run.
static void kbi_bar_mistakes(kbi_bars* b) {
    int good = 0, n = 0;
    if (!kbi_bars_run(b, NULL, "--fast --timeout 2s --exclude ^(spin|axpy|sums|product|histogram|gather)/")) return;
    for (int i = 0; i < b->n; i++) {
        n += !kbi_is_cold_test(&b->seen[i]);
        good += !kbi_is_cold_test(&b->seen[i]) && kbi_mistake_found(&b->seen[i]);
    }
    kbi_bar(b, good == n, "planted mistakes", "%d of %d got their word and no number", good, n);
    for (int i = 0; i < b->n; i++) {
        if (kbi_is_cold_test(&b->seen[i]) || kbi_mistake_found(&b->seen[i])) continue;
        printf("      %s: not found\n", b->seen[i].name);
    }
    kbi_bar_cold(b);
}

static int kbi_selftest(const kbi_options* o) {
    kbi_bars b;
    int64_t began = kbi_now();
    memset(&b, 0, sizeof b);
    b.o = o;
    b.fast = o->on[KBI_OPTION_fast];
    printf("kbench %s self-test%s\n", KBENCH_VERSION, b.fast ? ", in short" : "");
    fflush(stdout);
    kbi_bar_mistakes(&b);
    if (!b.n && !kbi_desk.interrupted) return b.code ? b.code : KBI_EXIT_FAILED; // what is wrong was said
    if (b.gpu) {
        kbi_bar_accuracy(&b, "");
        kbi_bar_accuracy(&b, "--hot");
        kbi_bar_rivals(&b, "cold", b.fast ? "few" : "all");
        kbi_bar_rivals(&b, "hot", b.fast ? "few" : "all");
        if (!b.fast) kbi_bar_rivals(&b, "rotate", "rotated");
    } else {
        kbi_bar_scale(&b);
        kbi_bar_rivals(&b, "on the CPU", b.fast ? "brief" : "host");
    }
    KBENCH_FREE(b.seen);
    if (kbi_desk.interrupted) return KBI_EXIT_INTERRUPTED;
    if (b.skipped)
        printf("%d bar%s not be held against this machine\n", b.skipped, b.skipped > 1 ? "s could" : " could");
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
        for (int k = 0; k < KBI_COUNT(kbi_output_options) && o->on[kbi_idle_options[i]]; k++)
            if (o->on[kbi_output_options[k]] &&
                !(kbi_output_options[k] == KBI_OPTION_jsonl && o->on[KBI_OPTION_resume]))
                kbi_warn("--%s writes no records: --%s is without effect",
                         kbi_options_table[kbi_idle_options[i]].name, kbi_options_table[kbi_output_options[k]].name);
    for (int i = 0; i < KBI_COUNT(known) && o->iters; i++)
        if (o->on[known[i]])
            kbi_warn("--%s is without effect: --iters says how many samples there are",
                     kbi_options_table[known[i]].name);
    if (o->iters && o->on[KBI_OPTION_max_time])
        kbi_warn("--max-time bounds the warm-up alone: --iters says how many samples there are");
    if (o->procs > 1 && (o->on[KBI_OPTION_env] || o->on[KBI_OPTION_selftest]))
        kbi_warn("--procs is without effect: --%s has a number of its own",
                 o->on[KBI_OPTION_env] ? "env" : "selftest");
    if (o->on[KBI_OPTION_shard] && (o->on[KBI_OPTION_env] || o->on[KBI_OPTION_selftest]))
        kbi_warn("--shard is without effect: --%s has no cases of a plan",
                 o->on[KBI_OPTION_env] ? "env" : "selftest");
    bool looks = (o->on[KBI_OPTION_env] || o->on[KBI_OPTION_selftest]) && !o->n_load;
    for (int i = 0; i < KBI_COUNT(kbi_choosing_options) && looks; i++)
        if (o->on[kbi_choosing_options[i]] || (kbi_choosing_options[i] == KBI_OPTION_filter && o->filter.n))
            kbi_warn("--%s is without effect: --%s is not about the program's own benchmarks",
                     kbi_options_table[kbi_choosing_options[i]].name, o->on[KBI_OPTION_env] ? "env" : "selftest");
}

// A runner that splits a program's tests asks in this way whether the program knows of it.
static bool kbi_shard_noted(void) {
    const char* path = getenv("GTEST_SHARD_STATUS_FILE");
    if (!path || !*path) return true;
    int file = kbi_open_file(path, O_WRONLY | O_CREAT);
    if (file < 0) return kbi_error("GTEST_SHARD_STATUS_FILE %s: %s", path, strerror(errno)), false;
    close(file);
    return true;
}

static int kbi_main(int argc, char** argv) {
    kbi_options o;
    kbi_plan plan;
    const char* slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    kbi_process.program = argc > 0 ? (slash ? slash + 1 : argv[0]) : "kbench";
    kbi_open_standard_files();
    if (kbi_birth.role == KBI_BUSY) return kbi_error("inside a benchmark there is no run of others"), KBI_EXIT_USAGE;
    if (kbi_birth.role == KBI_TRUTH) return kbi_truth_main();
    if (kbi_birth.role == KBI_WORKER && !kbi_words_receive(&argc, &argv)) return KBI_EXIT_FAILED;
    kbi_options_default(&o);
    if (!kbi_options_parse(&o, argc, argv)) return KBI_EXIT_USAGE;
    kbi_process.quiet = o.on[KBI_OPTION_quiet];
    if (o.on[KBI_OPTION_help]) return kbi_help(), KBI_EXIT_FINE;
    if (o.on[KBI_OPTION_version]) return printf("kbench %s\n", KBENCH_VERSION), KBI_EXIT_FINE;
    if (o.on[KBI_OPTION_selftest]) kbi_selftest_register();
    if (kbi_birth.role == KBI_WORKER) return kbi_worker_main(&o);
    kbi_warn_idle(&o);
    if (o.on[KBI_OPTION_selftest]) return kbi_selftest(&o);
#if KBI_REPORT
    if (o.n_load) return o.on[KBI_OPTION_env] ? kbi_env_loaded(&o) : kbi_load_shown(&o);
    if (o.compare[0]) return kbi_compare_main(&o);
    if (o.race.n) return kbi_race_main(&o);
#endif
    if (o.on[KBI_OPTION_env]) return memset(&plan, 0, sizeof plan), kbi_show_env(&o, &plan);
    if (!kbi_shard_noted() || !kbi_plan_here(&plan, &o)) return KBI_EXIT_USAGE;
    if (!plan.n)
        kbi_warn("shard %lld/%lld has nothing to do: there are fewer comparison groups", (long long)o.shard,
                 (long long)o.shards);
    int code = KBI_EXIT_FINE;
    bool looks = kbi_option_any(o.on, kbi_idle_options, KBI_COUNT(kbi_idle_options));
    if (looks && o.on[KBI_OPTION_resume] && !kbi_resume_reduce(&plan, o.jsonl)) return KBI_EXIT_USAGE;
    kbi_text lists = { NULL, 0, 0 };
    if (kbi_list(&lists, &plan, &o))
        fwrite(lists.s, 1, lists.n, stdout);
    else if (o.on[KBI_OPTION_dry_run])
        code = kbi_dry_run(&o, &plan);
    else
#if KBI_REPORT
        code = kbi_gated_run(&o, &plan);
#else
        code = kbi_run_plan(&o, &plan, NULL, NULL);
#endif
    kbi_text_free(&lists);
    kbi_plan_free(&plan);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == KBI_EXIT_FINE) {
        kbi_error("writing to stdout failed: %s", strerror(errno));
        code = KBI_EXIT_FAILED;
    }
    return code;
}

int kb_main(int argc, char** argv) { return kbi_main(argc, argv); }

#ifdef KBENCH_TOOL
int main(int argc, char** argv) { return kb_main(argc, argv); }
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>ptx       measure: the device functions of the engine and of the self-test, as text that the driver compiles.
              Public: none      Used by: >>device, >>proving
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
// Compiled by nvcc from CUDA C (no contraction, no flush to zero) and lowered to PTX 6.4 for sm_70, so that every
// driver since CUDA 10.1 loads it on every GPU since Volta. tests/ptx/engine.cu is the source, tests/ptx/make.py made
// the text, with nvcc 13.0.88: change it there. The pieces of an array are to be joined in order; C promises no more
// than 4095 characters in one literal. kbi_ptx is loaded at start, kbi_ptx_proving by the self-test. The numbers of
// dtypes and kinds are compiled into kbi_fill: a change of the enums stops the division.
// clang-format off
enum { KBI_PTX_CODES = 1 / (int)(KB_F32 == 1 && KB_F64 == 2 && KB_F16 == 3 && KB_BF16 == 4 && KB_I8 == 5 && KB_U8 == 6
                                 && KB_I16 == 7 && KB_U16 == 8 && KB_I32 == 9 && KB_U32 == 10 && KB_I64 == 11 &&
                                 KB_U64 == 12 && KB_TF32 == 13 && KB_E4M3 == 14 && KB_E5M2 == 15 && KB_ZERO == 0 &&
                                 KB_NORMAL == 1 && KB_UNIFORM == 2 && KB_IOTA == 3) };

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

// kbi_fma64 holds these lines 4 times
#define KBI_PTX_FMA64                             \
    "    fma.rn.f64 %fd60, %fd60, %fd1, %fd27;\n" \
    "    fma.rn.f64 %fd59, %fd59, %fd1, %fd27;\n" \
    "    fma.rn.f64 %fd58, %fd58, %fd1, %fd27;\n" \
    "    fma.rn.f64 %fd57, %fd57, %fd1, %fd27;\n" \
    "    fma.rn.f64 %fd56, %fd56, %fd1, %fd27;\n" \
    "    fma.rn.f64 %fd55, %fd55, %fd1, %fd27;\n" \
    "    fma.rn.f64 %fd54, %fd54, %fd1, %fd27;\n" \
    "    fma.rn.f64 %fd53, %fd53, %fd1, %fd27;\n"

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
    // kbi_fma64(out, iters): the same in f64: 8 chains, 4 steps deep, that is 32 FMA per thread and iteration.
    ".visible .entry kbi_fma64(.param .u64 kbi_fma64_0, .param .u64 kbi_fma64_1)\n"
    "{\n"
    "    .reg .pred %p<4>; .reg .b32 %r<2>; .reg .f64 %fd<61>; .reg .b64 %rd<7>;\n"
    "    ld.param.u64 %rd3, [kbi_fma64_0];\n"
    "    ld.param.u64 %rd6, [kbi_fma64_1];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    cvt.rn.f64.u32 %fd19, %r1;\n"
    "    mul.rn.f64 %fd20, %fd19, 0d3EB0C6F7A0B5ED8D; add.rn.f64 %fd1, %fd20, 0d3FE0000000000000;\n"
    "    setp.eq.s64 %p1, %rd6, 0; @%p1 bra $L8_5;\n"
    "    mov.f64 %fd60, 0d0000000000000000; mov.f64 %fd27, 0d3FF0000000000000;\n"
    "    mov.f64 %fd58, 0d4000000000000000; mov.f64 %fd57, 0d4008000000000000;\n"
    "    mov.f64 %fd56, 0d4010000000000000; mov.f64 %fd55, 0d4014000000000000;\n"
    "    mov.f64 %fd54, 0d4018000000000000; mov.f64 %fd53, 0d401C000000000000; mov.f64 %fd59, %fd27;\n"
    "$L8_2: .pragma \"nounroll\";\n",
    KBI_PTX_FMA64 KBI_PTX_FMA64 KBI_PTX_FMA64 KBI_PTX_FMA64,
    "    add.s64 %rd6, %rd6, -1;\n"
    "    setp.ne.s64 %p2, %rd6, 0; @%p2 bra $L8_2;\n"
    "    add.rn.f64 %fd47, %fd60, %fd59;\n"
    "    add.rn.f64 %fd48, %fd47, %fd58;\n"
    "    add.rn.f64 %fd49, %fd48, %fd57;\n"
    "    add.rn.f64 %fd50, %fd49, %fd56;\n"
    "    add.rn.f64 %fd51, %fd50, %fd55;\n"
    "    add.rn.f64 %fd52, %fd51, %fd54;\n"
    "    add.rn.f64 %fd18, %fd52, %fd53;\n"
    "    setp.num.f64 %p3, %fd18, %fd18; @%p3 bra $L8_5;\n"
    "    cvta.to.global.u64 %rd5, %rd3;\n"
    "    st.global.f64 [%rd5], %fd18;\n"
    "$L8_5:\n"
    "    ret;\n"
    "}\n",
    // kbi_fill(p, n, dtype, kind, seed, tensor): the fill described at random; a thread makes a block of 4 elements.
    // Vector stores where p and the block allow, else byte by byte.
    ".visible .entry kbi_fill(.param .u64 kbi_fill_0, .param .u64 kbi_fill_1, .param .u32 kbi_fill_2,\n"
    "    .param .u32 kbi_fill_3, .param .u64 kbi_fill_4, .param .u32 kbi_fill_5)\n"
    "{\n"
    "    .reg .pred %p<46>; .reg .b16 %rs<12>; .reg .f32 %f<5>; .reg .b32 %r<171>; .reg .f64 %fd<82>;\n"
    "    .reg .b64 %rd<76>;\n"
    "    ld.param.u64 %rd36, [kbi_fill_0];\n"
    "    ld.param.u64 %rd37, [kbi_fill_1];\n"
    "    ld.param.u32 %r56, [kbi_fill_2];\n"
    "    ld.param.u32 %r57, [kbi_fill_3];\n"
    "    ld.param.u64 %rd38, [kbi_fill_4];\n"
    "    mov.u32 %r59, %ctaid.x;\n"
    "    mov.u32 %r60, %ntid.x;\n"
    "    cvt.u64.u32 %rd1, %r60;\n"
    "    mul.wide.u32 %rd39, %r59, %r60;\n"
    "    mov.u32 %r61, %tid.x;\n"
    "    cvt.u64.u32 %rd40, %r61;\n"
    "    add.s64 %rd67, %rd39, %rd40;\n"
    "    shl.b64 %rd66, %rd67, 2;\n"
    "    setp.ge.u64 %p2, %rd66, %rd37; @%p2 bra $L9_39;\n"
    "    setp.eq.s32 %p3, %r57, 1;\n"
    "    add.s32 %r62, %r56, -5;\n"
    "    setp.gt.u32 %p4, %r62, 7;\n"
    "    or.pred %p1, %p4, %p3;\n"
    "    setp.eq.s32 %p5, %r56, 14;\n"
    "    selp.b32 %r1, 20, 21, %p5;\n"
    "    selp.b32 %r2, 126, 123, %p5;\n"
    "    selp.b32 %r3, 121, 113, %p5;\n"
    "    mad.lo.s32 %r4, %r3, -8388608, 8388608;\n"
    "    add.s32 %r63, %r56, -11;\n"
    "    setp.lt.u32 %p6, %r63, 2;\n"
    "    setp.eq.s32 %p7, %r57, 2;\n"
    "    and.pred %p8, %p7, %p6;\n"
    "    selp.u32 %r6, 1, 0, %p8;\n"
    "    cvt.u32.u64 %r7, %rd38;\n"
    "    shr.u64 %rd41, %rd38, 32;\n"
    "    cvt.u32.u64 %r8, %rd41;\n"
    "    shl.b32 %r64, %r56, 2;\n"
    "    mov.u64 %rd42, 9906741768688416;\n"
    "    shr.u64 %rd43, %rd42, %r64;\n"
    "    cvt.u32.u64 %r65, %rd43;\n"
    "    and.b32 %r66, %r65, 15;\n"
    "    mov.u32 %r67, 4;\n"
    "    shl.b32 %r68, %r67, %r66;\n"
    "    add.s32 %r69, %r68, -1;\n"
    "    mov.u32 %r70, -1;\n"
    "    and.b64 %rd4, %rd43, 15;\n"
    "    min.u32 %r71, %r69, 15;\n"
    "    cvt.u64.u32 %rd44, %r71;\n"
    "    and.b64 %rd5, %rd44, %rd36;\n"
    "    cvt.u16.u32 %rs1, %r66;\n"
    "    shl.b32 %r72, %r70, %r66;\n"
    "    not.b32 %r9, %r72;\n"
    "    mov.u32 %r73, %nctaid.x;\n"
    "    cvt.u64.u32 %rd45, %r73;\n"
    "    mul.lo.s64 %rd6, %rd45, %rd1;\n"
    "    cvta.to.global.u64 %rd7, %rd36;\n"
    "    not.pred %p19, %p1;\n"
    "$L9_2: .pragma \"nounroll\";\n"
    "    setp.eq.s32 %p9, %r57, 0;\n"
    "    mov.u32 %r167, 0; mov.u32 %r142, %r167; mov.u32 %r143, %r167; mov.u32 %r155, %r167;\n"
    "    mov.u32 %r145, %r167; mov.u32 %r157, %r167; mov.u32 %r164, %r167; mov.u32 %r165, %r167;\n"
    "    mov.u32 %r166, %r167;\n"
    "    @%p9 bra $L9_7;\n"
    "    cvt.u32.u64 %r10, %rd67;\n"
    "    shr.u64 %rd10, %rd67, 32;\n"
    "    mov.u32 %r85, 0; mov.u32 %r142, %r85; mov.u32 %r143, %r85; mov.u32 %r155, %r85; mov.u32 %r145, %r85;\n"
    "    mov.u32 %r146, %r6;\n"
    "$L9_4: .pragma \"nounroll\";\n"
    "    mov.u32 %r166, %r145; mov.u32 %r165, %r155; mov.u32 %r164, %r143; mov.u32 %r157, %r142;\n"
    "    ld.param.u32 %r143, [kbi_fill_5];\n"
    "    mov.u64 %rd68, %rd10; mov.u32 %r147, %r85; mov.u32 %r148, %r8; mov.u32 %r149, %r7;\n"
    "    mov.u32 %r142, %r146; mov.u32 %r145, %r10;\n"
    "$L9_5: .pragma \"nounroll\";\n"
    "    mul.wide.u32 %rd46, %r145, -766435501;\n"
    "    mul.wide.u32 %rd12, %r143, -845247145;\n"
    "    cvt.u32.u64 %r87, %rd68;\n"
    "    xor.b32 %r88, %r149, %r87;\n"
    "    shr.u64 %rd47, %rd12, 32;\n"
    "    cvt.u32.u64 %r89, %rd47;\n"
    "    xor.b32 %r145, %r88, %r89;\n"
    "    shr.u64 %rd48, %rd46, 32;\n"
    "    cvt.u32.u64 %r90, %rd48;\n"
    "    xor.b32 %r91, %r148, %r142;\n"
    "    xor.b32 %r143, %r91, %r90;\n"
    "    cvt.u32.u64 %r142, %rd46;\n"
    "    add.s32 %r149, %r149, -1640531527;\n"
    "    add.s32 %r148, %r148, -1150833019;\n"
    "    add.s32 %r147, %r147, 1;\n"
    "    setp.ne.s32 %p10, %r147, 10;\n"
    "    mov.u64 %rd68, %rd12;\n"
    "    @%p10 bra $L9_5;\n"
    "    cvt.u32.u64 %r155, %rd12;\n"
    "    add.s32 %r29, %r146, -1;\n"
    "    setp.gt.s32 %p11, %r146, 0;\n"
    "    mov.u32 %r146, %r29;\n"
    "    @%p11 bra $L9_4;\n"
    "$L9_7:\n"
    "    mov.f64 %fd80, 0d0000000000000000; mov.u64 %rd72, 0; mov.u64 %rd13, %rd72; mov.u64 %rd14, %rd72;\n"
    "    bra.uni $L9_8;\n"
    "$L9_14:\n"
    "    setp.gt.u32 %p24, %r56, 13; @!%p24 bra $L9_15;\n"
    "    and.b32 %r114, %r45, 2147483647;\n"
    "    shr.u32 %r46, %r114, 23;\n"
    "    add.s32 %r169, %r4, %r114;\n"
    "    setp.ge.u32 %p32, %r46, %r3;\n"
    "    mov.u32 %r168, %r1;\n"
    "    @%p32 bra $L9_23;\n"
    "    and.b32 %r115, %r45, 8388607;\n"
    "    or.b32 %r169, %r115, 8388608;\n"
    "    sub.s32 %r116, %r1, %r46;\n"
    "    add.s32 %r117, %r116, %r3;\n"
    "    min.u32 %r168, %r117, 25;\n"
    "$L9_23:\n"
    "    add.s32 %r118, %r168, -1;\n"
    "    mov.u32 %r119, 1;\n"
    "    shl.b32 %r120, %r119, %r118;\n"
    "    shr.u32 %r121, %r169, %r168;\n"
    "    and.b32 %r122, %r121, 1;\n",
    "    add.s32 %r123, %r169, %r120;\n"
    "    add.s32 %r124, %r123, %r122;\n"
    "    add.s32 %r125, %r124, -1;\n"
    "    shr.u32 %r126, %r125, %r168;\n"
    "    shr.u32 %r127, %r45, 24;\n"
    "    and.b32 %r128, %r127, 128;\n"
    "    min.u32 %r129, %r126, %r2;\n"
    "    or.b32 %r130, %r129, %r128;\n"
    "    cvt.u64.u32 %rd72, %r130;\n"
    "    bra.uni $L9_24;\n"
    "$L9_15:\n"
    "    mov.b64 %rd72, %fd6;\n"
    "    setp.eq.s32 %p25, %r56, 2; @%p25 bra $L9_24;\n"
    "    setp.eq.s32 %p26, %r56, 3; @%p26 bra $L9_19;\n"
    "    setp.ne.s32 %p27, %r56, 4; @%p27 bra $L9_20;\n"
    "    shr.u32 %r109, %r45, 16;\n"
    "    and.b32 %r110, %r109, 1;\n"
    "    add.s32 %r111, %r45, %r110;\n"
    "    add.s32 %r112, %r111, 32767;\n"
    "    shr.u32 %r113, %r112, 16;\n"
    "    cvt.u64.u32 %rd72, %r113;\n"
    "    bra.uni $L9_24;\n"
    "$L9_19:\n"
    "    cvt.rn.f16.f32 %rs2, %f1;\n"
    "    cvt.u64.u16 %rd72, %rs2;\n"
    "    bra.uni $L9_24;\n"
    "$L9_20:\n"
    "    and.b32 %r141, %r56, 1;\n"
    "    setp.eq.s32 %p28, %r141, 0;\n"
    "    mul.rn.f64 %fd75, %fd6, 0d4020000000000000;\n"
    "    setp.lt.f64 %p29, %fd75, 0d0000000000000000;\n"
    "    selp.f64 %fd76, 0dBFE0000000000000, 0d3FE0000000000000, %p29;\n"
    "    add.rn.f64 %fd77, %fd75, %fd76;\n"
    "    setp.lt.f64 %p30, %fd77, 0d0000000000000000;\n"
    "    and.pred %p31, %p28, %p30;\n"
    "    selp.f64 %fd78, 0d0000000000000000, %fd77, %p31;\n"
    "    cvt.rzi.s64.f64 %rd72, %fd78;\n"
    "    bra.uni $L9_24;\n"
    "$L9_8: .pragma \"nounroll\";\n"
    "    mov.u64 %rd15, %rd14; mov.u64 %rd14, %rd13; mov.u64 %rd13, %rd72; mov.u32 %r43, %r166;\n"
    "    mov.u32 %r166, %r165; mov.u32 %r165, %r164; mov.u32 %r40, %r145; mov.u32 %r145, %r155;\n"
    "    mov.u32 %r155, %r143;\n"
    "    and.b32 %r93, %r167, 1;\n"
    "    setp.eq.b32 %p12, %r93, 1;\n"
    "    setp.ne.s32 %p13, %r57, 1;\n"
    "    or.pred %p14, %p13, %p12;\n"
    "    mov.f64 %fd81, %fd80;\n"
    "    @%p14 bra $L9_10;\n"
    "    shr.u32 %r94, %r40, 8;\n"
    "    add.s32 %r95, %r94, 1;\n"
    "    cvt.rn.f64.s32 %fd8, %r95;\n"
    "    mov.b64 %rd52, %fd8;\n"
    "    add.s64 %rd53, %rd52, 2638149301829632;\n"
    "    shr.u64 %rd54, %rd53, 52;\n"
    "    cvt.u32.u64 %r96, %rd54;\n"
    "    and.b64 %rd55, %rd53, 4503599627370495;\n"
    "    add.s64 %rd56, %rd55, 4604544269498187776;\n"
    "    mov.b64 %fd9, %rd56;\n"
    "    add.rn.f64 %fd10, %fd9, 0dBFF0000000000000;\n"
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
    "    mov.u32 %r97, 1047;\n"
    "    sub.s32 %r98, %r97, %r96;\n"
    "    cvt.rn.f64.s32 %fd28, %r98;\n"
    "    mul.rn.f64 %fd29, %fd28, 0d3FE62E42FEFA39EF;\n"
    "    mul.rn.f64 %fd30, %fd12, 0dC000000000000000;\n"
    "    mul.rn.f64 %fd31, %fd30, %fd27;\n"
    "    add.rn.f64 %fd32, %fd29, %fd31;\n"
    "    add.rn.f64 %fd33, %fd32, %fd32;\n"
    "    sqrt.rn.f64 %fd34, %fd33;\n"
    "    shr.u32 %r99, %r145, 8;\n"
    "    add.s32 %r100, %r99, 2097152;\n"
    "    shr.u32 %r101, %r100, 22;\n"
    "    and.b32 %r102, %r100, 29360128;\n"
    "    sub.s32 %r103, %r99, %r102;\n"
    "    cvt.rn.f64.s32 %fd35, %r103;\n"
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
    "    mul.rn.f64 %fd55, %fd37, %fd54; add.rn.f64 %fd56, %fd55, 0dBF56C16C16C16C17;\n",
    "    mul.rn.f64 %fd57, %fd37, %fd56; add.rn.f64 %fd58, %fd57, 0d3FA5555555555555;\n"
    "    mul.rn.f64 %fd59, %fd37, %fd58; add.rn.f64 %fd60, %fd59, 0dBFE0000000000000;\n"
    "    mul.rn.f64 %fd61, %fd37, %fd60; add.rn.f64 %fd62, %fd61, 0d3FF0000000000000;\n"
    "    and.b32 %r104, %r100, 4194304;\n"
    "    setp.eq.s32 %p15, %r104, 0;\n"
    "    selp.f64 %fd63, %fd62, %fd50, %p15;\n"
    "    selp.f64 %fd64, %fd50, %fd62, %p15;\n"
    "    add.s32 %r105, %r101, 1;\n"
    "    and.b32 %r106, %r105, 2;\n"
    "    setp.eq.s32 %p16, %r106, 0;\n"
    "    neg.f64 %fd65, %fd63;\n"
    "    selp.f64 %fd66, %fd63, %fd65, %p16;\n"
    "    and.b32 %r107, %r100, 8388608;\n"
    "    setp.eq.s32 %p17, %r107, 0;\n"
    "    neg.f64 %fd67, %fd64;\n"
    "    selp.f64 %fd68, %fd64, %fd67, %p17;\n"
    "    mul.rn.f64 %fd69, %fd34, %fd66;\n"
    "    cvt.rn.f32.f64 %f2, %fd69;\n"
    "    cvt.f64.f32 %fd81, %f2;\n"
    "    mul.rn.f64 %fd70, %fd34, %fd68;\n"
    "    cvt.rn.f32.f64 %f3, %fd70;\n"
    "    cvt.f64.f32 %fd80, %f3;\n"
    "$L9_10:\n"
    "    cvt.u64.u32 %rd57, %r167;\n"
    "    add.s64 %rd16, %rd66, %rd57;\n"
    "    cvt.u64.u32 %rd58, %r43;\n"
    "    cvt.u64.u32 %rd59, %r40;\n"
    "    bfi.b64 %rd60, %rd58, %rd59, 32, 32;\n"
    "    setp.eq.s32 %p18, %r57, 3;\n"
    "    selp.b64 %rd72, %rd16, %rd60, %p18;\n"
    "    @%p19 bra $L9_24;\n"
    "    shr.u32 %r108, %r40, 8;\n"
    "    cvt.rn.f64.s32 %fd71, %r108;\n"
    "    mul.rn.f64 %fd72, %fd71, 0d3E70000000000000;\n"
    "    cvt.rn.f64.s64 %fd73, %rd16;\n"
    "    selp.f64 %fd74, %fd73, %fd72, %p18;\n"
    "    selp.f64 %fd6, %fd81, %fd74, %p3;\n"
    "    cvt.rn.f32.f64 %f1, %fd6;\n"
    "    mov.b32 %r45, %f1;\n"
    "    setp.eq.s32 %p22, %r56, 13; @%p22 bra $L9_13;\n"
    "    setp.ne.s32 %p23, %r56, 1; @%p23 bra $L9_14;\n"
    "$L9_13:\n"
    "    cvt.u64.u32 %rd72, %r45;\n"
    "$L9_24:\n"
    "    add.s32 %r167, %r167, 1;\n"
    "    setp.ne.s32 %p33, %r167, 4;\n"
    "    mov.u32 %r143, %r142; mov.u32 %r164, %r157;\n"
    "    @%p33 bra $L9_8;\n"
    "    setp.eq.s64 %p34, %rd5, 0;\n"
    "    cvt.u32.u64 %r131, %rd4;\n"
    "    shl.b64 %rd61, %rd66, %r131;\n"
    "    add.s64 %rd25, %rd7, %rd61;\n"
    "    sub.s64 %rd26, %rd37, %rd66;\n"
    "    setp.gt.u64 %p35, %rd26, 3;\n"
    "    and.pred %p36, %p34, %p35;\n"
    "    @!%p36 bra $L9_26;\n"
    "    setp.gt.s16 %p40, %rs1, 1; @%p40 bra $L9_33;\n"
    "    setp.eq.s16 %p43, %rs1, 0; @%p43 bra $L9_37;\n"
    "    setp.eq.s16 %p44, %rs1, 1; @!%p44 bra $L9_38;\n"
    "    cvt.u16.u64 %rs4, %rd72;\n"
    "    cvt.u16.u64 %rs5, %rd13;\n"
    "    cvt.u16.u64 %rs6, %rd14;\n"
    "    cvt.u16.u64 %rs7, %rd15;\n"
    "    st.global.v4.u16 [%rd25], {%rs7, %rs6, %rs5, %rs4};\n"
    "    bra.uni $L9_38;\n"
    "$L9_26:\n"
    "    min.u64 %rd62, %rd26, 4;\n"
    "    cvt.u32.u64 %r133, %rd62;\n"
    "    shl.b32 %r53, %r133, %r131;\n"
    "    setp.eq.s32 %p37, %r53, 0; @%p37 bra $L9_38;\n"
    "    mov.u32 %r170, 0;\n"
    "$L9_28: .pragma \"nounroll\";\n"
    "    cvt.u64.u32 %rd63, %r170;\n"
    "    add.s64 %rd64, %rd25, %rd63;\n"
    "    st.global.u8 [%rd64], %rd15;\n"
    "    and.b32 %r135, %r170, %r9;\n"
    "    setp.eq.s32 %p38, %r135, %r9;\n"
    "    selp.b64 %rd30, %rd72, %rd13, %p38;\n"
    "    selp.b64 %rd31, %rd13, %rd14, %p38;\n"
    "    shr.u64 %rd65, %rd15, 8;\n"
    "    selp.b64 %rd15, %rd14, %rd65, %p38;\n"
    "    add.s32 %r170, %r170, 1;\n"
    "    setp.lt.u32 %p39, %r170, %r53;\n"
    "    mov.u64 %rd13, %rd30; mov.u64 %rd14, %rd31;\n"
    "    @%p39 bra $L9_28;\n"
    "    bra.uni $L9_38;\n"
    "$L9_33:\n"
    "    setp.eq.s16 %p41, %rs1, 2; @%p41 bra $L9_36;\n"
    "    setp.ne.s16 %p42, %rs1, 3; @%p42 bra $L9_38;\n"
    "    st.global.v2.u64 [%rd25], {%rd15, %rd14};\n"
    "    st.global.v2.u64 [%rd25+16], {%rd13, %rd72};\n"
    "    bra.uni $L9_38;\n"
    "$L9_37:\n"
    "    cvt.u16.u64 %rs8, %rd72;\n"
    "    cvt.u16.u64 %rs9, %rd13;\n"
    "    cvt.u16.u64 %rs10, %rd14;\n"
    "    cvt.u16.u64 %rs11, %rd15;\n"
    "    st.global.v4.u8 [%rd25], {%rs11, %rs10, %rs9, %rs8};\n"
    "    bra.uni $L9_38;\n"
    "$L9_36:\n"
    "    cvt.u32.u64 %r136, %rd72;\n"
    "    cvt.u32.u64 %r137, %rd13;\n"
    "    cvt.u32.u64 %r138, %rd14;\n"
    "    cvt.u32.u64 %r139, %rd15;\n"
    "    st.global.v4.u32 [%rd25], {%r139, %r138, %r137, %r136};\n"
    "$L9_38:\n"
    "    add.s64 %rd67, %rd67, %rd6;\n"
    "    shl.b64 %rd66, %rd67, 2;\n"
    "    setp.lt.u64 %p45, %rd66, %rd37; @%p45 bra $L9_2;\n"
    "$L9_39:\n"
    "    ret;\n"
    "}\n",
};

static const char* const kbi_ptx_proving[] = {
    ".version 6.4\n"
    ".target sm_70\n"
    ".address_size 64\n",
    // kbi_axpy(x, y, n, ended, wait): y = 0.5 x + 1.
    ".visible .entry kbi_axpy(.param .u64 kbi_axpy_0, .param .u64 kbi_axpy_1, .param .u32 kbi_axpy_2,\n"
    "    .param .u64 kbi_axpy_3, .param .u64 kbi_axpy_4)\n"
    "{\n"
    "    .reg .pred %p<6>; .reg .f32 %f<5>; .reg .b32 %r<14>; .reg .b64 %rd<15>;\n"
    "    ld.param.u64 %rd4, [kbi_axpy_0];\n"
    "    ld.param.u64 %rd5, [kbi_axpy_1];\n"
    "    ld.param.u32 %r6, [kbi_axpy_2];\n"
    "    ld.param.u64 %rd6, [kbi_axpy_3];\n"
    "    ld.param.u64 %rd7, [kbi_axpy_4];\n"
    "    mov.u32 %r7, %ctaid.x;\n"
    "    shl.b32 %r8, %r7, 8;\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    add.s32 %r13, %r8, %r1;\n"
    "    setp.ge.u32 %p1, %r13, %r6; @%p1 bra $L10_3;\n"
    "    mov.u32 %r9, %nctaid.x;\n"
    "    shl.b32 %r3, %r9, 8;\n"
    "    cvta.to.global.u64 %rd1, %rd4;\n"
    "    cvta.to.global.u64 %rd2, %rd5;\n"
    "$L10_2: .pragma \"nounroll\";\n"
    "    mul.wide.u32 %rd8, %r13, 4;\n"
    "    add.s64 %rd9, %rd1, %rd8;\n"
    "    ld.global.f32 %f1, [%rd9];\n"
    "    mov.f32 %f2, 0f3F800000; mov.f32 %f3, 0f3F000000;\n"
    "    fma.rn.f32 %f4, %f3, %f1, %f2;\n"
    "    add.s64 %rd10, %rd2, %rd8;\n"
    "    st.global.f32 [%rd10], %f4;\n"
    "    add.s32 %r13, %r13, %r3;\n"
    "    setp.lt.u32 %p2, %r13, %r6; @%p2 bra $L10_2;\n"
    "$L10_3:\n"
    "    bar.sync 0;\n"
    "    setp.ne.s32 %p3, %r1, 0; @%p3 bra $L10_7;\n"
    "    mov.u32 %r10, %nctaid.x;\n"
    "    add.s32 %r11, %r10, -1;\n"
    "    cvta.to.global.u64 %rd11, %rd6;\n"
    "    atom.global.inc.u32 %r12, [%rd11], %r11;\n"
    "    setp.ne.s32 %p4, %r12, %r11; @%p4 bra $L10_7;\n"
    "    mov.u64 %rd12, %clock64;\n"
    "$L10_6: .pragma \"nounroll\";\n"
    "    mov.u64 %rd13, %clock64;\n"
    "    sub.s64 %rd14, %rd13, %rd12;\n"
    "    setp.lt.u64 %p5, %rd14, %rd7; @%p5 bra $L10_6;\n"
    "$L10_7:\n"
    "    ret;\n"
    "}\n",
    // kbi_sums(x, y, n, ended, wait): y[r] = the sum of row r of x, rows of 1024; a block takes a row.
    ".visible .entry kbi_sums(.param .u64 kbi_sums_0, .param .u64 kbi_sums_1, .param .u32 kbi_sums_2,\n"
    "    .param .u64 kbi_sums_3, .param .u64 kbi_sums_4)\n"
    "{\n"
    "    .reg .pred %p<13>; .reg .f32 %f<33>; .reg .b32 %r<37>; .reg .b64 %rd<19>;\n"
    "    .shared .align 4 .b8 part[32];\n"
    "    ld.param.u64 %rd5, [kbi_sums_0];\n"
    "    ld.param.u64 %rd6, [kbi_sums_1];\n"
    "    ld.param.u32 %r8, [kbi_sums_2];\n"
    "    ld.param.u64 %rd7, [kbi_sums_3];\n"
    "    ld.param.u64 %rd8, [kbi_sums_4];\n"
    "    shr.u32 %r1, %r8, 10;\n"
    "    mov.u32 %r36, %ctaid.x;\n"
    "    setp.lt.u32 %p1, %r36, %r1; @!%p1 bra $L11_7;\n"
    "    mov.u32 %r9, %tid.x;\n"
    "    cvt.u64.u32 %rd1, %r9;\n"
    "    and.b32 %r3, %r9, 31;\n"
    "    shr.u32 %r10, %r9, 3;\n"
    "    and.b32 %r11, %r10, 536870908;\n"
    "    mov.u32 %r12, part;\n"
    "    add.s32 %r4, %r12, %r11;\n"
    "    mov.u32 %r5, %nctaid.x;\n"
    "    cvta.to.global.u64 %rd2, %rd5;\n"
    "    cvta.to.global.u64 %rd3, %rd6;\n"
    "$L11_2: .pragma \"nounroll\";\n"
    "    shl.b32 %r13, %r36, 10;\n"
    "    cvt.u64.u32 %rd9, %r13;\n"
    "    add.s64 %rd10, %rd9, %rd1;\n"
    "    shl.b64 %rd11, %rd10, 2;\n"
    "    add.s64 %rd12, %rd2, %rd11;\n"
    "    ld.global.f32 %f2, [%rd12+1024];\n"
    "    ld.global.f32 %f3, [%rd12];\n"
    "    add.rn.f32 %f4, %f3, %f2;\n"
    "    ld.global.f32 %f5, [%rd12+3072];\n"
    "    ld.global.f32 %f6, [%rd12+2048];\n"
    "    add.rn.f32 %f7, %f6, %f5;\n"
    "    add.rn.f32 %f8, %f4, %f7;\n"
    "    mov.b32 %r14, %f8; mov.u32 %r15, 31; mov.u32 %r16, 16; mov.u32 %r17, -1;\n"
    "    shfl.sync.bfly.b32 %r18|%p2, %r14, %r16, %r15, %r17;\n"
    "    mov.b32 %f9, %r18;\n"
    "    add.rn.f32 %f10, %f8, %f9;\n"
    "    mov.b32 %r19, %f10; mov.u32 %r20, 8;\n"
    "    shfl.sync.bfly.b32 %r21|%p3, %r19, %r20, %r15, %r17;\n"
    "    mov.b32 %f11, %r21;\n"
    "    add.rn.f32 %f12, %f10, %f11;\n"
    "    mov.b32 %r22, %f12; mov.u32 %r23, 4;\n"
    "    shfl.sync.bfly.b32 %r24|%p4, %r22, %r23, %r15, %r17;\n"
    "    mov.b32 %f13, %r24;\n"
    "    add.rn.f32 %f14, %f12, %f13;\n"
    "    mov.b32 %r25, %f14; mov.u32 %r26, 2;\n"
    "    shfl.sync.bfly.b32 %r27|%p5, %r25, %r26, %r15, %r17;\n"
    "    mov.b32 %f15, %r27;\n"
    "    add.rn.f32 %f16, %f14, %f15;\n"
    "    mov.b32 %r28, %f16; mov.u32 %r29, 1;\n"
    "    shfl.sync.bfly.b32 %r30|%p6, %r28, %r29, %r15, %r17;\n"
    "    mov.b32 %f17, %r30;\n"
    "    add.rn.f32 %f1, %f16, %f17;\n"
    "    setp.ne.s32 %p7, %r3, 0; @%p7 bra $L11_4;\n"
    "    st.shared.f32 [%r4], %f1;\n"
    "$L11_4:\n"
    "    cvt.u32.u64 %r31, %rd1;\n"
    "    setp.ne.s32 %p8, %r31, 0;\n"
    "    bar.sync 0;\n"
    "    @%p8 bra $L11_6;\n"
    "    ld.shared.f32 %f18, [part];\n"
    "    ld.shared.f32 %f19, [part+4];\n"
    "    add.rn.f32 %f20, %f18, %f19;\n"
    "    ld.shared.f32 %f21, [part+12];\n"
    "    ld.shared.f32 %f22, [part+8];\n"
    "    add.rn.f32 %f23, %f22, %f21;\n"
    "    add.rn.f32 %f24, %f20, %f23;\n"
    "    ld.shared.f32 %f25, [part+20];\n"
    "    ld.shared.f32 %f26, [part+16];\n"
    "    add.rn.f32 %f27, %f26, %f25;\n"
    "    ld.shared.f32 %f28, [part+28];\n"
    "    ld.shared.f32 %f29, [part+24];\n"
    "    add.rn.f32 %f30, %f29, %f28;\n"
    "    add.rn.f32 %f31, %f27, %f30;\n"
    "    add.rn.f32 %f32, %f24, %f31;\n"
    "    mul.wide.u32 %rd13, %r36, 4;\n"
    "    add.s64 %rd14, %rd3, %rd13;\n"
    "    st.global.f32 [%rd14], %f32;\n"
    "$L11_6:\n"
    "    bar.sync 0;\n"
    "    add.s32 %r36, %r36, %r5;\n"
    "    setp.lt.u32 %p9, %r36, %r1; @%p9 bra $L11_2;\n"
    "$L11_7:\n"
    "    mov.u32 %r32, %tid.x;\n"
    "    bar.sync 0;\n"
    "    setp.ne.s32 %p10, %r32, 0; @%p10 bra $L11_11;\n"
    "    mov.u32 %r33, %nctaid.x;\n"
    "    add.s32 %r34, %r33, -1;\n"
    "    cvta.to.global.u64 %rd15, %rd7;\n"
    "    atom.global.inc.u32 %r35, [%rd15], %r34;\n"
    "    setp.ne.s32 %p11, %r35, %r34; @%p11 bra $L11_11;\n"
    "    mov.u64 %rd16, %clock64;\n"
    "$L11_10: .pragma \"nounroll\";\n"
    "    mov.u64 %rd17, %clock64;\n"
    "    sub.s64 %rd18, %rd17, %rd16;\n"
    "    setp.lt.u64 %p12, %rd18, %rd8; @%p12 bra $L11_10;\n"
    "$L11_11:\n"
    "    ret;\n"
    "}\n",
    // kbi_product(x, y, n, ended, wait): y = x x, n by n, n a multiple of 16; a block takes tiles of 16 by 16.
    ".visible .entry kbi_product(.param .u64 kbi_product_0, .param .u64 kbi_product_1, .param .u32 kbi_product_2,\n"
    "    .param .u64 kbi_product_3, .param .u64 kbi_product_4)\n"
    "{\n"
    "    .reg .pred %p<9>; .reg .f32 %f<23>; .reg .b32 %r<55>; .reg .b64 %rd<18>;\n"
    "    .shared .align 4 .b8 a[1088];\n"
    "    .shared .align 4 .b8 b[1088];\n"
    "    ld.param.u64 %rd4, [kbi_product_0];\n"
    "    ld.param.u64 %rd5, [kbi_product_1];\n"
    "    ld.param.u32 %r27, [kbi_product_2];\n"
    "    ld.param.u64 %rd6, [kbi_product_3];\n"
    "    ld.param.u64 %rd7, [kbi_product_4];\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    shr.u32 %r2, %r1, 4;\n"
    "    and.b32 %r3, %r1, 15;\n"
    "    shr.u32 %r4, %r27, 4;\n"
    "    mul.lo.s32 %r5, %r4, %r4;\n"
    "    mov.u32 %r50, %ctaid.x;\n"
    "    setp.ge.u32 %p1, %r50, %r5; @%p1 bra $L12_8;\n"
    "    cvta.to.global.u64 %rd1, %rd4;\n"
    "    mov.u32 %r7, %nctaid.x;\n"
    "    mul.lo.s32 %r28, %r2, 68;\n"
    "    mov.u32 %r29, a;\n"
    "    add.s32 %r30, %r29, %r28;\n"
    "    shl.b32 %r31, %r3, 2;\n"
    "    add.s32 %r8, %r30, %r31;\n"
    "    mov.u32 %r32, b;\n"
    "    add.s32 %r33, %r32, %r28;\n"
    "    add.s32 %r9, %r33, %r31;\n"
    "    add.s32 %r34, %r32, %r31;\n"
    "    add.s32 %r10, %r34, 136;\n"
    "    add.s32 %r11, %r30, 8;\n"
    "    cvta.to.global.u64 %rd2, %rd5;\n"
    "$L12_2: .pragma \"nounroll\";\n"
    "    div.u32 %r35, %r50, %r4;\n"
    "    shl.b32 %r36, %r35, 4;\n"
    "    add.s32 %r37, %r36, %r2;\n"
    "    mul.lo.s32 %r38, %r35, %r4;\n"
    "    sub.s32 %r39, %r50, %r38;\n"
    "    shl.b32 %r40, %r39, 4;\n"
    "    or.b32 %r13, %r40, %r3;\n"
    "    mul.lo.s32 %r14, %r37, %r27;\n"
    "    setp.eq.s32 %p2, %r27, 0;\n"
    "    mov.f32 %f21, 0f00000000;\n"
    "    @%p2 bra $L12_7;\n"
    "    add.s32 %r15, %r14, %r3;\n"
    "    mov.f32 %f21, 0f00000000; mov.u32 %r51, 0;\n"
    "$L12_4: .pragma \"nounroll\";\n"
    "    add.s32 %r43, %r15, %r51;\n"
    "    mul.wide.u32 %rd8, %r43, 4;\n"
    "    add.s64 %rd9, %rd1, %rd8;\n"
    "    ld.global.f32 %f7, [%rd9];\n"
    "    st.shared.f32 [%r8], %f7;\n"
    "    add.s32 %r44, %r51, %r2;\n"
    "    mad.lo.s32 %r45, %r44, %r27, %r13;\n"
    "    mul.wide.u32 %rd10, %r45, 4;\n"
    "    add.s64 %rd11, %rd1, %rd10;\n"
    "    ld.global.f32 %f8, [%rd11];\n"
    "    st.shared.f32 [%r9], %f8;\n"
    "    bar.sync 0;\n"
    "    mov.u32 %r54, 136; mov.u32 %r52, %r11; mov.u32 %r53, %r10;\n"
    "$L12_5: .pragma \"nounroll\";\n"
    "    ld.shared.f32 %f9, [%r53+-136];\n"
    "    ld.shared.f32 %f10, [%r52+-8];\n"
    "    fma.rn.f32 %f11, %f10, %f9, %f21;\n"
    "    ld.shared.f32 %f12, [%r53+-68];\n"
    "    ld.shared.f32 %f13, [%r52+-4];\n"
    "    fma.rn.f32 %f14, %f13, %f12, %f11;\n"
    "    ld.shared.f32 %f15, [%r53];\n"
    "    ld.shared.f32 %f16, [%r52];\n"
    "    fma.rn.f32 %f17, %f16, %f15, %f14;\n"
    "    ld.shared.f32 %f18, [%r53+68];\n"
    "    ld.shared.f32 %f19, [%r52+4];\n"
    "    fma.rn.f32 %f21, %f19, %f18, %f17;\n"
    "    add.s32 %r53, %r53, 272;\n"
    "    add.s32 %r52, %r52, 16;\n"
    "    add.s32 %r54, %r54, 272;\n"
    "    setp.ne.s32 %p3, %r54, 1224; @%p3 bra $L12_5;\n"
    "    bar.sync 0;\n"
    "    add.s32 %r51, %r51, 16;\n"
    "    setp.lt.u32 %p4, %r51, %r27; @%p4 bra $L12_4;\n"
    "$L12_7:\n"
    "    add.s32 %r46, %r14, %r13;\n"
    "    mul.wide.u32 %rd12, %r46, 4;\n"
    "    add.s64 %rd13, %rd2, %rd12;\n"
    "    st.global.f32 [%rd13], %f21;\n"
    "    add.s32 %r50, %r50, %r7;\n"
    "    setp.lt.u32 %p5, %r50, %r5; @%p5 bra $L12_2;\n"
    "$L12_8:\n"
    "    bar.sync 0;\n"
    "    setp.ne.s32 %p6, %r1, 0; @%p6 bra $L12_12;\n"
    "    mov.u32 %r47, %nctaid.x;\n"
    "    add.s32 %r48, %r47, -1;\n"
    "    cvta.to.global.u64 %rd14, %rd6;\n"
    "    atom.global.inc.u32 %r49, [%rd14], %r48;\n"
    "    setp.ne.s32 %p7, %r49, %r48; @%p7 bra $L12_12;\n"
    "    mov.u64 %rd15, %clock64;\n"
    "$L12_11: .pragma \"nounroll\";\n"
    "    mov.u64 %rd16, %clock64;\n"
    "    sub.s64 %rd17, %rd16, %rd15;\n"
    "    setp.lt.u64 %p8, %rd17, %rd7; @%p8 bra $L12_11;\n"
    "$L12_12:\n"
    "    ret;\n"
    "}\n",
    // kbi_histogram(x, y, n, ended, wait): adds 1 to y[the lowest 12 bits of x[i]].
    ".visible .entry kbi_histogram(.param .u64 kbi_histogram_0, .param .u64 kbi_histogram_1,\n"
    "    .param .u32 kbi_histogram_2, .param .u64 kbi_histogram_3, .param .u64 kbi_histogram_4)\n"
    "{\n"
    "    .reg .pred %p<6>; .reg .b32 %r<17>; .reg .b64 %rd<17>;\n"
    "    ld.param.u64 %rd4, [kbi_histogram_0];\n"
    "    ld.param.u64 %rd5, [kbi_histogram_1];\n"
    "    ld.param.u32 %r6, [kbi_histogram_2];\n"
    "    ld.param.u64 %rd6, [kbi_histogram_3];\n"
    "    ld.param.u64 %rd7, [kbi_histogram_4];\n"
    "    mov.u32 %r7, %ctaid.x;\n"
    "    shl.b32 %r8, %r7, 8;\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    add.s32 %r16, %r8, %r1;\n"
    "    setp.ge.u32 %p1, %r16, %r6; @%p1 bra $L13_3;\n"
    "    mov.u32 %r9, %nctaid.x;\n"
    "    shl.b32 %r3, %r9, 8;\n"
    "    cvta.to.global.u64 %rd1, %rd4;\n"
    "    cvta.to.global.u64 %rd2, %rd5;\n"
    "$L13_2: .pragma \"nounroll\";\n"
    "    mul.wide.u32 %rd8, %r16, 4;\n"
    "    add.s64 %rd9, %rd1, %rd8;\n"
    "    ld.global.u32 %r10, [%rd9];\n"
    "    shl.b32 %r11, %r10, 2;\n"
    "    cvt.u64.u32 %rd10, %r11;\n"
    "    and.b64 %rd11, %rd10, 16380;\n"
    "    add.s64 %rd12, %rd2, %rd11;\n"
    "    atom.global.add.u32 %r12, [%rd12], 1;\n"
    "    add.s32 %r16, %r16, %r3;\n"
    "    setp.lt.u32 %p2, %r16, %r6; @%p2 bra $L13_2;\n"
    "$L13_3:\n"
    "    bar.sync 0;\n"
    "    setp.ne.s32 %p3, %r1, 0; @%p3 bra $L13_7;\n"
    "    mov.u32 %r13, %nctaid.x;\n"
    "    add.s32 %r14, %r13, -1;\n"
    "    cvta.to.global.u64 %rd13, %rd6;\n"
    "    atom.global.inc.u32 %r15, [%rd13], %r14;\n"
    "    setp.ne.s32 %p4, %r15, %r14; @%p4 bra $L13_7;\n"
    "    mov.u64 %rd14, %clock64;\n"
    "$L13_6: .pragma \"nounroll\";\n"
    "    mov.u64 %rd15, %clock64;\n"
    "    sub.s64 %rd16, %rd15, %rd14;\n"
    "    setp.lt.u64 %p5, %rd16, %rd7; @%p5 bra $L13_6;\n"
    "$L13_7:\n"
    "    ret;\n"
    "}\n",
    // kbi_gather(x, y, n, ended, wait): y[i] = x[j], j anywhere below n, from the bits of x[i].
    ".visible .entry kbi_gather(.param .u64 kbi_gather_0, .param .u64 kbi_gather_1, .param .u32 kbi_gather_2,\n"
    "    .param .u64 kbi_gather_3, .param .u64 kbi_gather_4)\n"
    "{\n"
    "    .reg .pred %p<6>; .reg .b32 %r<18>; .reg .b64 %rd<17>;\n"
    "    ld.param.u64 %rd4, [kbi_gather_0];\n"
    "    ld.param.u64 %rd5, [kbi_gather_1];\n"
    "    ld.param.u32 %r6, [kbi_gather_2];\n"
    "    ld.param.u64 %rd6, [kbi_gather_3];\n"
    "    ld.param.u64 %rd7, [kbi_gather_4];\n"
    "    mov.u32 %r7, %ctaid.x;\n"
    "    shl.b32 %r8, %r7, 8;\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    add.s32 %r17, %r8, %r1;\n"
    "    setp.ge.u32 %p1, %r17, %r6; @%p1 bra $L14_3;\n"
    "    cvta.to.global.u64 %rd1, %rd4;\n"
    "    mov.u32 %r9, %nctaid.x;\n"
    "    shl.b32 %r3, %r9, 8;\n"
    "    cvta.to.global.u64 %rd2, %rd5;\n"
    "$L14_2: .pragma \"nounroll\";\n"
    "    mul.wide.u32 %rd8, %r17, 4;\n"
    "    add.s64 %rd9, %rd1, %rd8;\n"
    "    ld.global.u32 %r10, [%rd9];\n"
    "    mul.lo.s32 %r11, %r10, -1640531535;\n"
    "    mul.hi.u32 %r12, %r11, %r6;\n"
    "    mul.wide.u32 %rd10, %r12, 4;\n"
    "    add.s64 %rd11, %rd1, %rd10;\n"
    "    ld.global.u32 %r13, [%rd11];\n"
    "    add.s64 %rd12, %rd2, %rd8;\n"
    "    st.global.u32 [%rd12], %r13;\n"
    "    add.s32 %r17, %r17, %r3;\n"
    "    setp.lt.u32 %p2, %r17, %r6; @%p2 bra $L14_2;\n"
    "$L14_3:\n"
    "    bar.sync 0;\n"
    "    setp.ne.s32 %p3, %r1, 0; @%p3 bra $L14_7;\n"
    "    mov.u32 %r14, %nctaid.x;\n"
    "    add.s32 %r15, %r14, -1;\n"
    "    cvta.to.global.u64 %rd13, %rd6;\n"
    "    atom.global.inc.u32 %r16, [%rd13], %r15;\n"
    "    setp.ne.s32 %p4, %r16, %r15; @%p4 bra $L14_7;\n"
    "    mov.u64 %rd14, %clock64;\n"
    "$L14_6: .pragma \"nounroll\";\n"
    "    mov.u64 %rd15, %clock64;\n"
    "    sub.s64 %rd16, %rd15, %rd14;\n"
    "    setp.lt.u64 %p5, %rd16, %rd7; @%p5 bra $L14_6;\n"
    "$L14_7:\n"
    "    ret;\n"
    "}\n",
};
// clang-format on

static void kbi_ptx_put(kbi_text* to, bool proving) {
    int n = proving ? KBI_COUNT(kbi_ptx_proving) : KBI_COUNT(kbi_ptx);
    for (int i = 0; i < n; i++) kbi_puts(to, proving ? kbi_ptx_proving[i] : kbi_ptx[i]);
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
