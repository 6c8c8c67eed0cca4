// SPDX-License-Identifier: MIT OR Unlicense
// The virtual GPU: a simulated CUDA runtime with a virtual clock. It simulates the disturbances of a real device:
// event overhead and its drift, the cost of loading arguments after an eviction, and longer event times for
// launches with many kernels. Two pairs of events around the same work give different times. A closed launch gate
// blocks the stream. This file includes kbench.h, which calls the virtual GPU in place of the CUDA runtime, the
// driver, NVML, CUPTI and cuBLASLt. The environment variables VIRTUAL_... configure the virtual GPU.
#ifndef VIRTUAL_GPU_H
#define VIRTUAL_GPU_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

// These functions replace system functions, so that a test can make them fail. mmap fails after VIRTUAL_STACKS
// stacks; kbench maps one for each suspended benchmark function. With VIRTUAL_SYSTEM_V, a handler that signal()
// sets is removed after its first signal. fork fails on request. dlopen finds the simulated CUDA libraries.
static void* virtual_mmap(void* at, size_t n, int protection, int flags, int file, off_t offset) {
    static int stacks;
    if (file < 0 && getenv("VIRTUAL_STACKS") && ++stacks > atoi(getenv("VIRTUAL_STACKS"))) return MAP_FAILED;
    return mmap(at, n, protection, flags, file, offset);
}
typedef void (*handling)(int);
static handling virtual_signal(int number, handling handler) {
    struct sigaction a, before;
    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    a.sa_flags = getenv("VIRTUAL_SYSTEM_V") ? (int)SA_RESETHAND : SA_RESTART;
    sigaction(number, &a, &before);
    return before.sa_handler;
}
// Counts the calls of each function of the simulated libraries, and the bytes that they copy or set. At exit, the
// process writes the counted calls and bytes to the file that VIRTUAL_CALLS names. Only a run with --no-isolate
// writes this file, because workers end without exit handlers.
static struct {
    const char* name;
    double n;
} calls[128];
static void calls_written(void) {
    FILE* f = calls[0].name && getenv("VIRTUAL_CALLS") ? fopen(getenv("VIRTUAL_CALLS"), "w") : NULL;
    for (int i = 0; f && calls[i].name; i++) fprintf(f, "%s %.0f\n", calls[i].name, calls[i].n);
    if (f) fclose(f);
}
static void called_for(const char* name, double n) {
    static bool wanted;
    // cache from the address of a function name to the index of its counter; searching by strcmp takes too long
    static unsigned char found[512];
    unsigned char* at = &found[(uintptr_t)name / 8 % 512];
    int i = *at;
    if (!wanted) wanted = atexit(calls_written) == 0;
    if (calls[i].name != name)
        for (i = 0; calls[i].name && strcmp(calls[i].name, name) != 0;) i++;
    *at = (unsigned char)i;
    if (i + 1 < (int)(sizeof calls / sizeof calls[0])) calls[i].name = name, calls[i].n += n;
}
static void called(const char* name) { called_for(name, 1); }
static pid_t virtual_fork(void) {
    static int processes;
    if (getenv("VIRTUAL_FORKS") && ++processes > atoi(getenv("VIRTUAL_FORKS"))) return errno = EAGAIN, -1;
    return fork();
}
static void* virtual_dlopen(const char* name, int mode);
static void* virtual_dlsym(void* library, const char* name);
static int virtual_dlclose(void* library);
#define mmap virtual_mmap
#define signal virtual_signal
#define fork virtual_fork
#define dlopen virtual_dlopen
#define dlsym virtual_dlsym
#define dlclose virtual_dlclose
#include "guarded.h"
#include "kit.h"
#define KBENCH_SELFTEST_PART // the virtual GPU simulates the kernels of the self-test
#include "examples/addons/selftest.cu"
#undef mmap
#undef signal
#undef fork
#undef dlopen
#undef dlsym
#undef dlclose

// --- the runtime ---

typedef struct function {
    char name[64];
    size_t bytes;                // of its arguments
    int blocks, threads, shared; // number of blocks, threads per block, bytes of shared memory; 0: not set
    int cluster;
    bool dry; // cannot write
} function;

static function proofs[8][KBI_COUNT(kbi_proof_names)];
static bool is_proof(const function* of) { return of >= proofs[0] && of < proofs[8]; }

// most operations initialise only their kind and time
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
typedef enum operation_kind { KERNEL, EVENT, WAIT, COPY, HOST, ALLOCATION, SET } operation_kind;
typedef struct operation {
    operation_kind kind;
    const function* of;
    double ns;
    struct CUevent_st* event;
    volatile unsigned* flag;
    int* counter;
    unsigned correlation;
    enum cudaMemcpyKind way; // direction of a copy
} operation;

struct CUevent_st {
    int index;
    double stamp;
};
struct CUgraph_st {
    operation nodes[5000];
    int n;
};
struct CUgraphNode_st {
    int unused;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
};
struct CUstream_st {
    operation queue[4000];
    int n;
};

static struct device {
    double now;   // ns
    double drift;
    int launches, events;
    int device;
    // evicted: the caches do not hold the kernel arguments; pending: an event waits for its kernel
    bool evicted, pending;
    int cluster;           // cluster size of the next launch, in blocks
    int lost;              // number of launches that must reload page tables after an eviction
    bool idle;             // the GPU is idle: the clock is low, without a throttle reason
    bool aside;            // a kernel left persisting data in L2, which survives evictions
    double cycles;         // SM clock in cycles per ns (GHz); 0 means 1.98
    double worked;         // ns of kernels and copies since the energy counter was read
    bool no_copies;
    bool preempted;        // the next cudaDeviceSynchronize takes 200 us longer, because the host is preempted
    bool busy;             // every cudaDeviceSynchronize takes 200 us longer, because another stream is busy
    struct CUgraph_st* capture;
    // spoiled: error that invalidated the stream capture; last: the value that cudaGetLastError returns
    cudaError_t spoiled, last;
    cudaError_t broken;
    bool reset;
    cudaStream_t destroyed;
    size_t used;
    bool zeros; // the last memset wrote zeros
    struct {
        void* p;
        size_t bytes;
    } blocks[4096];
    struct { // cached: the data in L2, without the buffer that evicts L2; window: the access policy window
        const char* p;
        size_t bytes;
    } cached, window;
    bool persists; // the cached data are marked as persisting
    size_t limit;  // bytes of L2 reserved for persisting data
    int modules;
    double (*at_graph)(void); // called at each graph launch; returns the ns by which the launch takes longer
    const char* no_launch;    // name of the kernel whose launches fail
} gpu;

// Values of environment variables that do not change within a process. These variables are read only once, because
// calling getenv at each launch took a seventh of the time of a test.
static const char *virtual_tool, *virtual_aside, *virtual_launches;
__attribute__((constructor)) static void read_environment(void) {
    virtual_tool = getenv("VIRTUAL_TOOL"), virtual_aside = getenv("VIRTUAL_ASIDE");
    virtual_launches = getenv("VIRTUAL_LAUNCHES");
}

static size_t memory_of_device(void) {
    return getenv("VIRTUAL_MIB") ? (size_t)atoi(getenv("VIRTUAL_MIB")) << 20 : (size_t)8 << 30;
}

static cudaError_t did(cudaError_t e) {
    if (gpu.broken != cudaSuccess) return gpu.broken;
    if (e != cudaSuccess) gpu.last = e;
    return e;
}

static bool forbidden(void) {
    if (gpu.capture) did(gpu.spoiled = cudaErrorStreamCaptureUnsupported);
    return gpu.capture != NULL;
}

// --- CUPTI, if VIRTUAL_CUPTI is set: durations of kernels, copies, and the calls that submit them ---

typedef union activity {
    uint32_t kind;
    kbi_activity kernel;
    kbi_activity_copy copy;
    kbi_activity_call call;
} activity;

static struct tracing {
    void (*request)(uint8_t**, size_t*, size_t*);
    void (*done)(void*, uint32_t, uint8_t*, size_t, size_t);
    unsigned on;
    double host;
    unsigned correlations;
    bool switched; // CUPTI tracing was switched on or off since the last kernel launch
    int kernels;
    activity records[1 << 14];
    int n;
} tracing;

static double host_now(void) { return tracing.host = KBI_MAX(tracing.host + 50, gpu.now); }
static activity* record(int kind) {
    if (!(tracing.on >> kind & 1) || tracing.n == 1 << 14 || getenv("VIRTUAL_CUPTI_MUTE")) return NULL;
    activity* r = &tracing.records[tracing.n++];
    memset(r, 0, sizeof *r);
    r->kind = (uint32_t)kind;
    return r;
}

// Writes two activity records for an operation: its runtime call, and the driver call inside that runtime call.
static void trace_call(operation* o) {
    double start = host_now();
    activity* inner = record(KBI_ACTIVITY_DRIVER);
    activity* outer = record(KBI_ACTIVITY_RUNTIME);
    o->correlation = ++tracing.correlations;
    if (!outer || !inner) return;
    outer->call.id = o->kind == KERNEL ? 211 : o->kind == COPY ? 41 : 51, inner->call.id = 307;
    outer->call.start = (uint64_t)start, inner->call.start = (uint64_t)start + 500;
    inner->call.end = (uint64_t)start + 2500, outer->call.end = (uint64_t)start + 3000;
    inner->call.thread = outer->call.thread = 77;
    inner->call.correlation = outer->call.correlation = o->correlation;
    tracing.host = start + 3000;
}

static void trace(const operation* o, double start) {
    activity* r = record(o->kind == KERNEL ? KBI_ACTIVITY_KERNEL
                         : o->kind == COPY ? KBI_ACTIVITY_COPY
                                           : KBI_ACTIVITY_SET);
    if (r && o->kind == KERNEL) {
        r->kernel.start = (uint64_t)start;
        r->kernel.end = (uint64_t)(start + o->ns);
        const char* loses = getenv("VIRTUAL_CUPTI_LOSES");
        bool own = strncmp(o->of->name, "kbi_", 4) == 0;
        if (loses && !own && ++tracing.kernels % atoi(loses) == 0) r->kernel.start = r->kernel.end = 0;
        r->kernel.name = o->of->name;
        r->kernel.correlation = o->correlation;
        r->kernel.stream = 7;
        r->kernel.registers = 42, r->kernel.static_shared = 4096, r->kernel.dynamic_shared = o->of->shared;
        r->kernel.local = strcmp(o->of->name, "spills") == 0 ? 24 : 0;
        r->kernel.grid[0] = KBI_MAX(o->of->blocks, 1), r->kernel.block[0] = KBI_MAX(o->of->threads, 1);
        r->kernel.grid[1] = r->kernel.grid[2] = r->kernel.block[1] = r->kernel.block[2] = 1;
        r->kernel.cluster[0] = KBI_MAX(o->of->cluster, 1), r->kernel.cluster[1] = r->kernel.cluster[2] = 1;
    } else if (r) {
        r->copy.start = (uint64_t)start;
        r->copy.end = (uint64_t)(start + o->ns);
        r->copy.bytes = (uint64_t)(2000 * o->ns);
        r->copy.which = o->kind == COPY ? 1 : 0;
        r->copy.correlation = o->correlation;
        r->copy.stream = 7;
    }
}
static int trace_callbacks(void (*request)(uint8_t**, size_t*, size_t*),
                           void (*done)(void*, uint32_t, uint8_t*, size_t, size_t)) {
    called(__func__);
    return tracing.request = request, tracing.done = done, 0;
}
static int trace_error(void) { return getenv("VIRTUAL_CUPTI_ERROR") ? atoi(getenv("VIRTUAL_CUPTI_ERROR")) : 0; }
static int trace_enable(int kind) {
    called(__func__);
    if (!trace_error()) tracing.on |= 1u << kind, tracing.switched = true;
    if (getenv("VIRTUAL_CUPTI_PAUSES")) usleep(1000);
    return trace_error();
}
static int trace_disable(int kind) {
    called(__func__);
    return tracing.on &= ~(1u << kind), tracing.switched = true, 0;
}
static int trace_time(uint64_t* ns) { return *ns = (uint64_t)host_now(), 0; }
static int trace_version(uint32_t* version) { return *version = 130000, 0; }
static int trace_text(int error, const char** text) { return (void)error, *text = "CUPTI_ERROR_OF_SOME_KIND", 0; }
static int trace_name(int domain, uint32_t id, const char** name) {
    *name = domain == 1 ? "cuLaunchKernel"
            : id == 211 ? "cudaLaunchKernel_v7000"
            : id == 41  ? "cudaMemcpyAsync_v3020"
                        : "cudaMemsetAsync_v3020";
    return domain == 1 || domain == 2 ? 0 : 1;
}
static int trace_dropped(void* context, uint32_t stream, size_t* n) {
    return (void)context, (void)stream, *n = getenv("VIRTUAL_CUPTI_DROPS") ? 3 : 0, 0;
}
static int trace_flush(uint32_t flags) {
    called(__func__);
    (void)flags;
    for (int at = 0; at < tracing.n;) {
        uint8_t* buffer;
        size_t size, most;
        tracing.request(&buffer, &size, &most);
        int n = KBI_MIN(tracing.n - at, (int)(size / sizeof(activity)));
        memcpy(buffer, tracing.records + at, sizeof(activity) * (size_t)n);
        at += n;
        tracing.done(NULL, 0, buffer, size, sizeof(activity) * (size_t)n);
    }
    return tracing.n = 0;
}
static int trace_next(uint8_t* buffer, size_t valid, kbi_activity** r) {
    activity* next = *r ? (activity*)(void*)*r + 1 : (activity*)(void*)buffer;
    if ((uint8_t*)(next + 1) > buffer + valid) return 1;
    return *r = &next->kernel, 0;
}

// --- CUPTI's callbacks: each relevant runtime call, with the driver call inside it ---

static struct calling {
    void (*called)(void*, int, uint32_t, const void*);
    unsigned on;
} calling;
static int call_subscribe(void** subscriber, void (*called_back)(void*, int, uint32_t, const void*), void* user) {
    called(__func__);
    (void)user;
    if (getenv("VIRTUAL_CUPTI_TAKEN")) return 39;
    return *subscriber = &calling, calling.called = called_back, 0;
}
static int call_domain(uint32_t on, void* subscriber, int domain) {
    called(__func__);
    if (subscriber != &calling) return 1;
    return calling.on = on ? calling.on | 1u << domain : calling.on & ~(1u << domain), 0;
}
static void call_back(int domain, const char* name, const uint64_t* parameters, const char* symbol, int error,
                      bool ends) {
    kbi_api_call c = { ends, 0, name, parameters, ends ? &error : NULL, symbol };
    if (calling.on >> domain & 1) calling.called(NULL, domain, 0, &c);
}
// runtime NULL: the program called the driver directly. driver NULL: the runtime did not call the driver. Sets
// parameter words a and b to at_a and at_b; all other words are 0.
static int api(const char* runtime, const char* driver, int a, uint64_t at_a, int b, uint64_t at_b,
               const char* symbol, int error) {
    uint64_t w[9] = { 0 };
    w[a] = at_a, w[b] = at_b;
    if (runtime) call_back(2, runtime, w, symbol, 0, false);
    if (driver) call_back(1, driver, w, symbol, 0, false), call_back(1, driver, w, symbol, error, true);
    if (runtime) call_back(2, runtime, w, symbol, error, true);
    return error;
}
#define WORD(x) ((uint64_t)(uintptr_t)(x))

// --- CUPTI's range profiler: three passes; VIRTUAL_METRICS=NAME:VALUE,... sets the counters ---

static struct ranging {
    bool initialised, open, pushed;
    // starts: profiler passes that began; in_range: number of kernels in the last profiled range
    int starts, in_range;
    double read, missed;  // read: bytes that kbench's own kernel read; missed: bytes of `read` that were not in L2
} ranging;

static double metric(const char* name) {
    const char* all = getenv("VIRTUAL_METRICS");
    size_t n = strlen(name);
    for (const char* s = all; s && *s; s += strcspn(s, ","), s += *s == ',')
        if (ranging.read > 0)
            break; // the profiled range contains kbench's own read kernel, not the timed block
        else if (strncmp(s, name, n) == 0 && s[n] == ':')
            return strtod(s + n + 1, NULL);
    if (ranging.read > 0 && strcmp(name, "dram__bytes.sum") == 0)
        return ranging.missed * (getenv("VIRTUAL_WARM") ? 0.5 : 1.0);
    return strcmp(name, "gpu__time_duration.sum") == 0 ? 1000.0 * ranging.in_range : 0;
}

// Parameter structures must have the sizes that CUPTI defines.
static int range_do(const char* name, uint64_t* w) {
    called(name);
    static char image[64];
    const char* fails = getenv("VIRTUAL_RANGE_FAILS"); // NAME:ERROR
    size_t n = strlen(name);
    if (fails && strncmp(fails, name, n) == 0 && fails[n] == ':') return atoi(fails + n + 1);
#define RANGE(what) (strcmp(name, what) == 0)
    if (RANGE("cuptiProfilerInitialize"))
        return ranging.initialised ? 7 : (ranging.initialised = true, w[0] == 16 ? 0 : 10);
    if (!ranging.initialised) return 15;
    if (RANGE("cuptiProfilerDeviceSupported")) {
        uint32_t is[8] = { (uint32_t)w[2], 3, 3, 3, 3, 3, 3, 3 };
        if (getenv("VIRTUAL_VGPU")) is[1] = 1, is[4] = 1;
        return memcpy(&w[2], is, sizeof is), 0;
    }
    if (RANGE("cuptiDeviceGetChipName")) w[3] = (uint64_t)(uintptr_t) "VG100";
    if (RANGE("cuptiProfilerGetCounterAvailability") && !w[4]) w[3] = sizeof image;
    if (RANGE("cuptiProfilerHostInitialize")) w[5] = w[3] && w[4] ? 77 : 0;
    if (RANGE("cuptiProfilerHostGetMetricProperties"))
        return strstr((const char*)(uintptr_t)w[3], "no_such") || strstr((const char*)(uintptr_t)w[3], "src_fp16.")
                   ? 17
                   : 0;
    if (RANGE("cuptiProfilerHostConfigAddMetrics")) {
        const char** names = (const char**)(uintptr_t)w[3];
        for (uint64_t i = 0; i < w[4]; i++)
            if (strstr(names[i], "no_such")) return 17;
    }
    if (RANGE("cuptiProfilerHostGetConfigImageSize")) w[3] = sizeof image;
    if (RANGE("cuptiProfilerHostGetNumOfPasses")) w[4] = 3;
    if (RANGE("cuptiRangeProfilerEnable")) w[3] = 88, ranging.starts = 0;
    if (RANGE("cuptiRangeProfilerGetCounterDataSize")) w[7] = sizeof image;
    if (RANGE("cuptiRangeProfilerSetConfig") &&
        (w[7] != (2 | (uint64_t)3 << 32) || w[9] != (1 | 1 << 16) || w[11] != 1))
        return 1;
    if (RANGE("cuptiRangeProfilerStart")) return ranging.open ? 7 : (ranging.open = true, ranging.starts++, 0);
    if (RANGE("cuptiRangeProfilerPushRange"))
        return !ranging.open ? 7
                             : (ranging.pushed = true, ranging.in_range = 0, ranging.read = ranging.missed = 0, 0);
    if (RANGE("cuptiRangeProfilerPopRange")) return !ranging.pushed ? 7 : (ranging.pushed = false, 0);
    if (RANGE("cuptiRangeProfilerStop"))
        return !ranging.open || ranging.pushed ? 7 : (ranging.open = false, w[5] = ranging.starts == 3, 0);
    if (RANGE("cuptiProfilerHostEvaluateToGpuValues")) {
        const char** names = (const char**)(uintptr_t)w[6];
        double* values = (double*)(uintptr_t)w[8];
        for (uint64_t i = 0; i < w[7]; i++) values[i] = metric(names[i]);
        return ranging.starts == 3 && !ranging.open ? 0 : 13;
    }
    return 0;
}
#define RANGE_CALLS(x)                                                                                               \
    x(cuptiProfilerInitialize) x(cuptiProfilerDeviceSupported) x(cuptiDeviceGetChipName)                             \
        x(cuptiProfilerGetCounterAvailability) x(cuptiProfilerHostInitialize)                                        \
            x(cuptiProfilerHostGetMetricProperties) x(cuptiProfilerHostConfigAddMetrics)                             \
                x(cuptiProfilerHostGetConfigImageSize) x(cuptiProfilerHostGetConfigImage)                            \
                    x(cuptiProfilerHostGetNumOfPasses) x(cuptiRangeProfilerEnable)                                   \
                        x(cuptiRangeProfilerGetCounterDataSize) x(cuptiRangeProfilerCounterDataImageInitialize)      \
                            x(cuptiRangeProfilerSetConfig) x(cuptiRangeProfilerStart) x(cuptiRangeProfilerPushRange) \
                                x(cuptiRangeProfilerPopRange) x(cuptiRangeProfilerStop)                              \
                                    x(cuptiRangeProfilerDecodeData) x(cuptiProfilerHostEvaluateToGpuValues)          \
                                        x(cuptiRangeProfilerDisable) x(cuptiProfilerHostDeinitialize)

#define X(f) \
    static int range_##f(uint64_t* w) { return range_do(#f, w); }
RANGE_CALLS(X)
#undef X
static void* range_symbol(const char* name) {
    static const struct {
        const char* name;
        int (*f)(uint64_t*);
    } all[] = {
#define X(f) { #f, range_##f },
        RANGE_CALLS(X)
#undef X
    };
    void* p = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all && !getenv("VIRTUAL_OLD_CUPTI"); i++)
        if (strcmp(name, all[i].name) == 0) memcpy(&p, &all[i].f, sizeof p);
    return p;
}

static double cost_of_arguments(size_t bytes) { return bytes <= 8 ? 0 : bytes < 200 ? 170 : bytes < 600 ? 380 : 600; }

// Returns the part of an event time, in ns, that depends on the launch configuration.
static double cost_of_shape(const function* f) {
    return 90.0 * (KBI_MIN(f->blocks, 132) > 1) + 0.05 * f->threads + 0.001 * f->shared + 40.0 * (f->cluster > 1) +
           110.0 * !f->dry;
}

static void see(const char* what, int blocks, double ns) {
    FILE* f = virtual_launches ? fopen(virtual_launches, "a") : NULL;
    if (f) fprintf(f, "%s\t%d\t%.0f\t%.0f\n", what, blocks, gpu.now, ns), fclose(f);
}
cudaError_t cudaProfilerStart(void) {
    called(__func__);
    return see("start", 0, 0), cudaSuccess;
}
cudaError_t cudaProfilerStop(void) {
    called(__func__);
    return see("stop", 0, 0), cudaSuccess;
}

static void execute(const operation* o, int kernels_behind) {
    if (o->kind == KERNEL) see(o->of->name, KBI_MAX(o->of->blocks, 1), o->ns);
    if (o->kind == COPY) see("[CUDA memcpy Host-to-Device]", 0, o->ns);
    if (o->kind == WAIT) {
        int64_t began = kbi_now(), limit = o->ns > 0 ? (int64_t)o->ns : INT64_MAX;
        while (!*o->flag && kbi_now() - began < limit)
            usleep(200); // waits until the host or the watchdog opens the launch gate
    } else if (o->kind == EVENT) {
        o->event->stamp = floor(gpu.now / 32) * 32 + 150.0 * o->event->index;
        gpu.now += 11;
        gpu.pending = true;
    } else if (o->kind == KERNEL) {
        if (strcmp(o->of->name, "faulty") == 0) gpu.broken = cudaErrorIllegalAddress;
        if (gpu.pending) gpu.now += 1200 + 700 * gpu.device + gpu.drift + (kernels_behind > 8 ? 550 : 0);
        if (gpu.pending && gpu.evicted) gpu.now += cost_of_arguments(o->of->bytes) * (1 + gpu.device);
        if (gpu.pending) gpu.now += cost_of_shape(o->of);
        gpu.now += 310.0 * KBI_MIN(gpu.lost, kernels_behind + 1);
        gpu.lost = KBI_MAX(gpu.lost - 1, 0);
        bool persists = virtual_aside && strcmp(o->of->name, "known") == 0;
        if (is_proof(o->of) && getenv("VIRTUAL_LATE")) gpu.now += 500;
        if (tracing.on >> KBI_ACTIVITY_KERNEL & 1 && getenv("VIRTUAL_CUPTI_SLOWS")) gpu.now += 4000;
        trace(o, gpu.now);
        ranging.in_range += ranging.pushed;
        gpu.now += (persists && gpu.aside ? o->ns / 2 : o->ns) + 889;
        gpu.worked += o->ns;
        gpu.aside |= persists;
        if (o->counter) ++*o->counter;
        if (strcmp(o->of->name, "kbi_read") == 0)
            gpu.evicted = true, gpu.lost = 4;
        else if (strcmp(o->of->name, "kbi_null") != 0)
            gpu.evicted = false;
        gpu.pending = false;
        gpu.launches += strcmp(o->of->name, "kbi_null") != 0;
        gpu.drift = 60 * sin(gpu.launches / 900.0);
        gpu.now += 13.7; // less than a tick of the event clock (32 ns), so that the rounding of event times varies
    } else {
        if (o->kind == COPY || o->kind == SET) trace(o, gpu.now);
        gpu.now += o->ns;
        gpu.worked += o->ns;
    }
}

static void count(const struct CUgraph_st* g) {
    for (int i = 0; i < g->n; i++)
        if (g->nodes[i].counter) ++*g->nodes[i].counter;
}

static void drain(cudaStream_t s) {
    if (tracing.on >> KBI_ACTIVITY_RUNTIME & 1) gpu.now = KBI_MAX(gpu.now, tracing.host); // one common clock
    for (int i = 0, left = 0; i < s->n; i++) {
        left = 0;
        for (int k = i + 1; k < s->n; k++) left += s->queue[k].kind == KERNEL;
        execute(&s->queue[i], left);
    }
    s->n = 0;
}

static cudaError_t gone(cudaStream_t s) {
    if (gpu.reset) return cudaErrorContextIsDestroyed;
    return s && s == gpu.destroyed ? cudaErrorInvalidResourceHandle : cudaSuccess;
}
static const function whole_graph = { "graph", 0, 0, 0, 0, 0, false };
static void tell(cudaStream_t s, const operation* o) {
    if (o->kind == KERNEL && o->of == &whole_graph)
        api("cudaGraphLaunch", "cuGraphLaunch", 0, 0, 1, WORD(s), NULL, 0);
    else if (o->kind == KERNEL)
        api("cudaLaunchKernel", "cuLaunchKernel", 0, 0, 5, WORD(s), o->of ? o->of->name : NULL, 0);
    else if (o->kind == COPY)
        api("cudaMemcpyAsync", "cuMemcpyAsync", 0, 0, 3, WORD(s), NULL, 0);
    else if (o->kind == SET)
        api("cudaMemsetAsync", "cuMemsetD8Async", 0, 0, 3, WORD(s), NULL, 0);
    else if (o->kind == HOST)
        api("cudaLaunchHostFunc", "cuLaunchHostFunc", 0, WORD(s), 0, WORD(s), NULL, 0);
    else if (o->kind == ALLOCATION)
        api("cudaMallocAsync", "cuMemAllocAsync", 0, 0, 2, WORD(s), NULL, 0);
    else if (o->kind == EVENT)
        api("cudaEventRecord", "cuEventRecord", 0, WORD(o->event), 1, WORD(s), NULL, 0);
}

static cudaError_t submit(cudaStream_t s, operation o) {
    static struct CUstream_st by_default;
    tell(s, &o);
    if (gone(s)) return did(gone(s));
    if (!s) s = &by_default;
    if (gpu.capture) {
        if (o.kind != EVENT) gpu.capture->nodes[gpu.capture->n++] = o;
        return cudaSuccess;
    }
    if (o.kind == KERNEL || o.kind == COPY || o.kind == SET) trace_call(&o);
    if (virtual_tool && o.kind == KERNEL) drain(s);
    if (o.kind == KERNEL && tracing.switched && getenv("VIRTUAL_CUPTI_STALLS")) drain(s);
    if (o.kind == KERNEL) tracing.switched = false;
    if (o.kind == WAIT || s->n)
        s->queue[s->n++] = o;
    else {
        gpu.now += 3000;
        execute(&o, 0);
    }
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    called(__func__);
    cudaError_t e = did(gpu.last);
    gpu.last = cudaSuccess;
    return e;
}
cudaError_t cudaPeekAtLastError(void) {
    called(__func__);
    return did(gpu.last);
}
const char* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : "an error"; }
const char* cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaErrorOfSomeKind"; }
cudaError_t cudaGetDeviceCount(int* n) {
    called(__func__);
    if (getenv("VIRTUAL_DRIVER")) return *n = 0, cudaErrorInsufficientDriver;
    return *n = getenv("VIRTUAL_DEVICES") ? atoi(getenv("VIRTUAL_DEVICES")) : 1, cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) {
    called(__func__);
    return *d = gpu.device, cudaSuccess;
}
cudaError_t cudaSetDevice(int d) {
    called(__func__);
    while (getenv("VIRTUAL_HANG")) pause();
    return gpu.device = d, cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) {
    called(__func__);
    return *v = CUDART_VERSION, cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
    called(__func__);
    return *v = getenv("VIRTUAL_DRIVER") ? atoi(getenv("VIRTUAL_DRIVER")) : CUDART_VERSION, cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* s, int n, int d) {
    called(__func__);
    return (void)d, snprintf(s, (size_t)n, "0:0:0"), cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* p, int d) {
    called(__func__);
    (void)d;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "Virtual GPU");
    p->major = getenv("VIRTUAL_SM") ? atoi(getenv("VIRTUAL_SM")) / 10 : 9;
    p->totalGlobalMem = memory_of_device();
    p->l2CacheSize = (getenv("VIRTUAL_L2") ? atoi(getenv("VIRTUAL_L2")) : 60) << 20;
    p->ECCEnabled = 1;
    p->multiProcessorCount = 132;
    p->maxThreadsPerMultiProcessor = 2048;
    p->regsPerMultiprocessor = 65536, p->sharedMemPerMultiprocessor = 228 << 10;
    p->maxBlocksPerMultiProcessor = 32, p->reservedSharedMemPerBlock = 1024;
    p->persistingL2CacheMaxSize = getenv("VIRTUAL_NO_ASIDE") ? 0 : 32 << 20;
    p->accessPolicyMaxWindowSize = 128 << 20;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, size_t bytes) {
    called(__func__);
    int i = 0;
    api("cudaMalloc", "cuMemAlloc_v2", 0, 0, 0, 0, NULL, bytes + gpu.used > memory_of_device() ? 2 : 0);
    if (forbidden()) return gpu.spoiled;
    if (gpu.broken != cudaSuccess) return gpu.broken;
    if (bytes + gpu.used > memory_of_device()) return did(cudaErrorMemoryAllocation);
    while (gpu.blocks[i].p) i++;
    const char* base = getenv("VIRTUAL_BASE"); // first device address, in units of 64 MiB
    static uintptr_t next;
    if (base && !next) next = (uintptr_t)0x200000000000 + ((uintptr_t)atoi(base) << 26);
    if (base) next += (bytes + (4 << 20)) & ~(uintptr_t)((2 << 20) - 1);
    *p = gpu.blocks[i].p =
        mmap((void*)next, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpu.used += gpu.blocks[i].bytes = bytes ? bytes : 1;
    called_for("bytes allocated", (double)bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
    called(__func__);
    api("cudaFree", "cuMemFree_v2", 0, WORD(p), 0, WORD(p), NULL, 0);
    if (forbidden()) return gpu.spoiled;
    for (int i = 0; p && i < 4096; i++)
        if (gpu.blocks[i].p == p) {
            munmap(p, gpu.blocks[i].bytes);
            gpu.used -= gpu.blocks[i].bytes;
            gpu.blocks[i].p = NULL;
        }
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags) {
    called(__func__);
    return (void)flags, *p = calloc(1, bytes), cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
    called(__func__);
    return free(p), cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** d, void* p, unsigned f) {
    called(__func__);
    return (void)f, *d = p, cudaSuccess;
}
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t s) {
    called(__func__);
    return (void)s, cudaMalloc(p, n);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
    called(__func__);
    return (void)s, cudaFree(p);
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all) {
    called(__func__);
    *all = memory_of_device();
    *free_bytes = *all - gpu.used;
    return cudaSuccess;
}
// Returns whether only the first and last 8 KiB of a buffer are set or copied, which takes less time. Tests of the
// simulated cache (VIRTUAL_L2) read whole buffers.
static bool light(size_t n) { return n > (size_t)1 << 20 && getenv("VIRTUAL_LIGHT") && !getenv("VIRTUAL_L2"); }
cudaError_t cudaMemset(void* p, int value, size_t n) {
    called(__func__);
    if (light(n))
        memset(p, value, 1 << 13), memset((char*)p + n - (1 << 13), value, 1 << 13);
    else if (n <= (size_t)64 << 20)
        memset(p, value, n); // a larger buffer only serves to evict L2, so its bytes are not set
    gpu.zeros = value == 0;
    called_for("bytes set", (double)n);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t s) {
    called(__func__);
    return (void)s, cudaMemset(p, v, n);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, enum cudaMemcpyKind kind) {
    called(__func__);
    (void)kind;
    api("cudaMemcpy", "cuMemcpyDtoH_v2", 0, 0, 0, 0, NULL, 0);
    if (forbidden()) return gpu.spoiled;
    return memcpy(to, from, n), cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) {
    called(__func__);
    operation o = { COPY, NULL, (double)n / 2000, NULL, NULL, NULL };
    o.way = kind;
    if (gpu.no_copies) return did(cudaErrorInvalidValue);
    if (!gpu.capture && light(n))
        memcpy(to, from, 1 << 13), memcpy((char*)to + n - (1 << 13), (const char*)from + n - (1 << 13), 1 << 13);
    else if (!gpu.capture && n <= (size_t)64 << 20)
        memcpy(to, from, n);
    return submit(s, o);
}
// Of the memory pool, 100 MiB are always in use by code that is not part of a case.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int d) {
    called(__func__);
    return (void)d, (void)pool, cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void* v) {
    called(__func__);
    return (void)p, (void)a, *(uint64_t*)v = 100 << 20, cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void* v) {
    called(__func__);
    return (void)p, (void)a, (void)v, cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache(void) {
    called(__func__);
    gpu.aside = false;
    if (!getenv("VIRTUAL_STICKY")) gpu.persists = false;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t* n, enum cudaLimit limit) {
    called(__func__);
    return *n = limit != cudaLimitPersistingL2CacheSize ? 0
                : virtual_aside                         ? 30 << 20
                                                        : gpu.limit,
           cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t n) {
    called(__func__);
    if (limit == cudaLimitPersistingL2CacheSize) gpu.limit = n;
    return cudaSuccess;
}
cudaError_t cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID id, const cudaStreamAttrValue* value) {
    called(__func__);
    (void)s;
    if (id != cudaStreamAttributeAccessPolicyWindow) return cudaErrorInvalidValue;
    gpu.window.p = (const char*)value->accessPolicyWindow.base_ptr;
    gpu.window.bytes = value->accessPolicyWindow.num_bytes;
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* s) {
    called(__func__);
    return *s = (cudaStream_t)calloc(1, sizeof(struct CUstream_st)), cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned f) {
    called(__func__);
    return (void)f, cudaStreamCreate(s);
}
static cudaStream_t the_stream;
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    called(__func__);
    if (s == the_stream) the_stream = NULL;
    return gpu.destroyed = s, cudaSuccess;
}
cudaError_t cudaDeviceReset(void) {
    called(__func__);
    return gpu.reset = true, cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
    called(__func__);
    return did(gone(s));
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned* flags) {
    called(__func__);
    return (void)s, *flags = cudaStreamDefault, cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    called(__func__);
    (void)flags;
    return (cudaError_t)api("cudaStreamWaitEvent", "cuStreamWaitEvent", 0, WORD(s), 1, WORD(e), NULL, 0);
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    called(__func__);
    api("cudaStreamSynchronize", "cuStreamSynchronize_ptsz", 0, WORD(s), 0, WORD(s), NULL, 0);
    if (forbidden()) return gpu.spoiled;
    return drain(s), did(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize(void) {
    called(__func__);
    api("cudaDeviceSynchronize", "cuCtxSynchronize_v2", 0, 0, 0, 0, NULL, 0);
    if (gpu.preempted || gpu.busy) usleep(200);
    gpu.preempted = false;
    return the_stream ? cudaStreamSynchronize(the_stream) : cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) {
    called(__func__);
    *e = (cudaEvent_t)calloc(1, sizeof(struct CUevent_st));
    (*e)->index = gpu.events++ / 2;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    called(__func__);
    operation o = { EVENT, NULL, 0, e, NULL, NULL };
    the_stream = s;
    return submit(s, o);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
    called(__func__);
    return *ms = (float)((b->stamp - a->stamp) * 1e-6), did(cudaSuccess);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    called(__func__);
    (void)s, (void)mode;
    gpu.spoiled = cudaSuccess;
    gpu.capture = (struct CUgraph_st*)calloc(1, sizeof *gpu.capture);
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
    called(__func__);
    (void)s;
    *graph = gpu.spoiled == cudaSuccess ? gpu.capture : NULL;
    if (gpu.spoiled != cudaSuccess) free(gpu.capture);
    gpu.capture = NULL;
    if (gpu.spoiled == cudaErrorStreamCaptureUnjoined) return did(gpu.spoiled);
    return did(gpu.spoiled == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus* status) {
    called(__func__);
    (void)s;
    *status = gpu.capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* nodes, size_t* n) {
    called(__func__);
    for (int i = 0; nodes && i < g->n; i++) nodes[i] = (cudaGraphNode_t)(void*)&g->nodes[i];
    *n = (size_t)g->n;
    return cudaSuccess;
}
static const operation* node_of(cudaGraphNode_t n) { return (const operation*)(const void*)n; }
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t n, enum cudaGraphNodeType* type) {
    called(__func__);
    static const enum cudaGraphNodeType types[] = { cudaGraphNodeTypeKernel, cudaGraphNodeTypeEventRecord,
                                                    cudaGraphNodeTypeEmpty,  cudaGraphNodeTypeMemcpy,
                                                    cudaGraphNodeTypeHost,   cudaGraphNodeTypeMemAlloc,
                                                    cudaGraphNodeTypeMemset };
    return *type = types[node_of(n)->kind], cudaSuccess;
}
static void node_says(cudaGraphNode_t n, struct cudaKernelNodeParams* p) {
    memset(p, 0, sizeof *p);
    p->func = (void*)(uintptr_t)node_of(n)->of;
    p->gridDim.x = p->gridDim.y = p->gridDim.z = p->blockDim.x = p->blockDim.y = p->blockDim.z = 1;
    if (node_of(n)->of->blocks) p->gridDim.x = (unsigned)node_of(n)->of->blocks;
    if (node_of(n)->of->threads) p->blockDim.x = (unsigned)node_of(n)->of->threads;
    p->sharedMemBytes = (unsigned)node_of(n)->of->shared;
    static uint64_t zeros[512];
    static void* given[] = { zeros };
    if (node_of(n)->of->dry && node_of(n)->of->bytes) p->kernelParams = given;
    if (strcmp(node_of(n)->of->name, "boxed") == 0) {
        p->gridDim.x = 7, p->gridDim.y = 5, p->gridDim.z = 3;
        p->blockDim.x = 32, p->blockDim.y = 4, p->blockDim.z = 2;
    }
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t n, struct cudaKernelNodeParams* p) {
    called(__func__);
    node_says(n, p);
    return did(getenv("VIRTUAL_OTHER_RUNTIME") ? cudaErrorInvalidDeviceFunction : cudaSuccess); // launched it
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t n, struct cudaMemcpy3DParms* p) {
    called(__func__);
    memset(p, 0, sizeof *p);
    return p->kind = node_of(n)->way, cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* a, const void* p) {
    called(__func__);
    if (p != (const void*)(uintptr_t)kbi_meter.gpu.flag) return cudaErrorInvalidValue;
    memset(a, 0, sizeof *a);
    a->type = gpu.reset ? cudaMemoryTypeUnregistered : cudaMemoryTypeHost;
    return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t n, cudaLaunchAttributeID id,
                                            cudaLaunchAttributeValue* v) {
    called(__func__);
    // fails always, because the real function returns attributes of the compiled kernel, not of its launch
    (void)n, (void)id, (void)v;
    return cudaErrorInvalidValue;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long flags) {
    called(__func__);
    (void)flags;
    const char* most = getenv("VIRTUAL_GRAPH_NODES");
    if (most && g->n > atoi(most)) return *e = NULL, did(cudaErrorMemoryAllocation);
    *e = (cudaGraphExec_t)calloc(1, sizeof(struct CUgraphExec_st));
    (*e)->graph = *g;
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
    called(__func__);
    operation o = { KERNEL, &whole_graph, 0, NULL, NULL, NULL };
    if (forbidden()) return gpu.spoiled;
    static int launches;
    for (int i = 0; i < e->graph.n; i++) o.ns += e->graph.nodes[i].ns + 400;
    if (getenv("VIRTUAL_HICCUP") && ++launches % 11 == 0) o.ns += 5e6;
    if (gpu.at_graph) o.ns += gpu.at_graph();
    if (gpu.cycles > 0) o.ns *= 1.98 / gpu.cycles;
    // counts all nodes of the graph in one step, because a profiler sees only the total of a graph
    count(&e->graph);
    return submit(s, o);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
    called(__func__);
    return free(e), cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    called(__func__);
    return free(g), cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* a, const void* f) {
    called(__func__);
    (void)f;
    memset(a, 0, sizeof *a);
    a->numRegs = 42, a->localSizeBytes = 24, a->sharedSizeBytes = 4096;
    return cudaSuccess;
}
cudaError_t cudaFuncGetName(const char** name, const void* f) {
    called(__func__);
    return *name = ((const function*)f)->name, cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void* f, int threads, size_t shared) {
    called(__func__);
    return (void)f, *n = threads == 256 && shared == 1000 ? 5 : 1, cudaSuccess;
}

// --- the driver ---

static int load_module(void** module, const void* image) {
    called(__func__);
    bool good = strstr((const char*)image, ".visible .entry") != NULL;
    return *module = (void*)(uintptr_t)++gpu.modules, good ? 0 : 218;
}
static int get_function(void** f, void* module, const char* name) {
    called(__func__);
    function* made = (function*)calloc(1, sizeof *made);
    int i;
    snprintf(made->name, sizeof made->name, "%s", name);
    for (i = 0; i < KBI_COUNT(kbi_proof_names); i++)
        if (strcmp(name, kbi_proof_names[i]) == 0) {
            made->bytes = 40;
            proofs[(uintptr_t)module % 8][i] = *made;
            free(made);
            return *f = &proofs[(uintptr_t)module % 8][i], 0;
        }
    if (sscanf(name, "kbi_empty_%d", &i) == 1) made->bytes = (size_t)kbi_empty_bytes[i];
    *f = made;
    return 0;
}
// Returns the time of a read in ns. Reading cached data is fast. Reading a buffer larger than L2 evicts the cached
// data. If the cached data is persisting, an eighth of the reserved part of L2 is not evicted.
static double read_ns(const char* p, size_t bytes, bool one_warp) {
    bool hit = gpu.cached.p && p >= gpu.cached.p && p + bytes <= gpu.cached.p + gpu.cached.bytes;
    if (ranging.pushed) ranging.read += (double)bytes, ranging.missed += hit ? 0 : (double)bytes;
    if (bytes > (size_t)60 << 20) gpu.cached.bytes = gpu.persists ? KBI_MIN(gpu.cached.bytes, gpu.limit / 8) : 0;
    if (bytes <= (size_t)60 << 20 && !hit) {
        gpu.cached.p = p, gpu.cached.bytes = bytes;
        gpu.persists = gpu.limit && p >= gpu.window.p && p + bytes <= gpu.window.p + gpu.window.bytes;
    }
    return one_warp ? (hit ? 20000 : 50000) : 1500 + (double)bytes / 4300;
}

// The kernels of the self-test write the results that will be checked. The duration of a self-test kernel depends
// on its data size and its requested waiting time.
static double proof_ns(const function* of, void** a) {
    static struct {
        int kernel;
        uint32_t n;
        float want[KBI_PROOF_CHECKED];
    } known[64];
    static int n_known;
    kb_state kb;
    kbi_proof p;
    double ns = 2500, wait = (double)*(uint64_t*)a[4] / 1.98;
    int at = 0;
    memset(&kb, 0, sizeof kb);
    kb.operation = of->name + 4, kb.implementation = "same_0", kb.seed = 42;
    kbi_proof_open(&p, &kb, *(uint32_t*)a[2]);
    int64_t checked = p.out < KBI_PROOF_CHECKED ? p.out : KBI_PROOF_CHECKED, first = p.out - checked;
    while (at < n_known && (known[at].kernel != (int)p.kernel || known[at].n != p.n)) at++;
    if (at == n_known && p.kernel != KBI_HISTOGRAM) {
        known[n_known].kernel = (int)p.kernel;
        known[n_known].n = p.n;
        for (int64_t i = 0; i < checked; i++) known[at].want[i] = kbi_proof_want(&kb, &p, first + i);
        n_known++;
    }
    if (p.kernel == KBI_HISTOGRAM)
        (*(uint32_t**)a[1])[7] += p.n;
    else
        memcpy(*(float**)a[1] + first, known[at].want, sizeof(float) * (size_t)checked);
    ns += p.kernel == KBI_PRODUCT ? 30.0 * p.n : 4.0 * (double)(p.in + p.out) / 4300;
    if (getenv("VIRTUAL_SKEW") && (of - proofs[0]) / KBI_COUNT(kbi_proof_names) == 3)
        ns *= 1.04; // the second implementation is slower, as if its code were badly aligned
    if (getenv("VIRTUAL_BLUNT")) wait *= 0.1;
    return ns + wait;
}

static int launch(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, kb_stream stream, void** a, void** extra) {
    function* of = (function*)f;
    operation o = { KERNEL, of, 576, NULL, NULL, NULL };
    if (strstr(of->name, "empty") || is_proof(of))
        of->blocks = (int)gx, of->threads = (int)bx, of->shared = (int)shared, of->cluster = gpu.cluster,
        of->dry = !((void**)a[0])[0];
    the_stream = stream;
    called(of->name);
#define IS(what) (strcmp(of->name, "kbi_" what) == 0)
#define NUMBER(i) ((double)*(uint64_t*)a[i])
    if (gpu.no_launch && strcmp(of->name, gpu.no_launch) == 0) return 1;
    if (IS("null")) of->blocks = (int)gx;
    bool one = IS("clock") || (IS("null") && !virtual_launches),
         as_the_block_s =
             // any launch configuration is accepted for these kernels
         strstr(of->name, "empty") || is_proof(of) || IS("spin") || IS("null");
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || (shared && !as_the_block_s) || extra ||
        (one ? gx != 1 || bx != 1 : !as_the_block_s && bx % 32 != 0))
        printf("wrong launch of %s: %ux%ux%u, %ux%ux%u\n", of->name, gx, gy, gz, bx, by, bz);
    if (IS("read")) o.ns = read_ns(*(const char**)a[0], 16 * (size_t)NUMBER(1), gx == 1);
    if (IS("fill") && *(uint32_t*)a[3] == KB_ZERO && NUMBER(1) <= 4096)
        memset(*(void**)a[0], 0, 4 * (size_t)NUMBER(1));
    if (is_proof(of)) o.ns = proof_ns(of, a);
    if (IS("copy")) o.ns = 1500 + 32 * NUMBER(2) / 4300;
    if (IS("write")) o.ns = 1500 + 16 * NUMBER(1) / 4300;
    if (IS("spin")) o.ns = 576 + NUMBER(0) / 1.98;
    if (IS("fma")) o.ns = 576 + 512.0 * NUMBER(1) * gx * bx / 50000;
    if (IS("fill")) gpu.zeros = false;
    if (IS("clock")) { // the simulated clock has ticks of 32 ns; a measured span is exact or one tick too long
        static int spans;
        uint64_t* out = *(uint64_t**)a[0];
        out[0] = (uint64_t)(NUMBER(1) / 1.98 / 32 + (spans++ % 3 == 0)) * 32;
        out[1] = (uint64_t)((double)out[0] * (gpu.idle ? 1.4 : gpu.cycles > 0 ? gpu.cycles : 1.98));
        o.ns = (double)out[0] + 765 + 16;
    }
    return submit(stream, o), 0;
}
static int launch_as(const kbi_cu_config* c, void* f, void** arguments, void** extra) {
    called(__func__);
    gpu.cluster = (int)c->attributes->value[0];
    int error = launch(f, c->grid[0], 1, 1, c->block[0], 1, 1, c->shared, c->stream, arguments, extra);
    gpu.cluster = 1;
    return error;
}
static int set_attribute(void* f, int attribute, int value) {
    called(__func__);
    return (void)f, (void)attribute, (void)value, 0;
}
static int get_attribute(int* value, int attribute, void* f) {
    called(__func__);
    *value = attribute == KBI_CU_CLUSTER_X   ? ((const function*)f)->cluster
             : attribute == KBI_CU_REGISTERS ? 42
             : attribute == KBI_CU_LOCAL     ? 24
             : attribute == KBI_CU_SHARED    ? 4096
                                             : 0;
    return 0;
}
static int wait_value(kb_stream s, unsigned long long address, unsigned value, unsigned flags) {
    called(__func__);
    operation o = { WAIT, NULL, 0, NULL, (volatile unsigned*)(uintptr_t)address, NULL };
    (void)value, (void)flags;
    return submit(s, o), 0;
}
static int node_parameters(cudaGraphNode_t n, kbi_cu_kernel* out) {
    struct cudaKernelNodeParams p;
    called(__func__);
    node_says(n, &p);
    out->function = p.func, out->given = p.kernelParams, out->shared = p.sharedMemBytes;
    out->grid[0] = p.gridDim.x, out->grid[1] = p.gridDim.y, out->grid[2] = p.gridDim.z;
    out->block[0] = p.blockDim.x, out->block[1] = p.blockDim.y, out->block[2] = p.blockDim.z;
    return 0;
}
static int function_name(const char** name, void* f) { return cudaFuncGetName(name, f); }
static int function_fits(int* blocks, void* f, int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
}
static int argument(void* f, size_t i, size_t* offset, size_t* size) {
    called(__func__);
    *offset = 0, *size = ((const function*)f)->bytes;
    if (!*size) return 1;
    if (i && virtual_tool) puts("a call was refused");
    return i ? 1 : 0;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* found) {
    called(__func__);
    (void)version, (void)flags;
    int (*a)(void**, const void*) = load_module;
    int (*b)(void**, void*, const char*) = get_function;
    kbi_cu_launch c = launch;
    kbi_cu_wait d = wait_value;
    int (*e)(cudaGraphNode_t, kbi_cu_kernel*) = node_parameters;
    int (*g)(void*, size_t, size_t*, size_t*) = argument;
    kbi_cu_launch_as h = launch_as;
    int (*i)(void*, int, int) = set_attribute;
    kbi_cu_get j = get_attribute;
    int (*k)(const char**, void*) = function_name;
    int (*l)(int*, void*, int, size_t) = function_fits;
    bool gates = !getenv("VIRTUAL_NO_WAIT"); // false: no stream memory operations, so launch gates are unavailable
    *f = NULL;
    if (strcmp(name, "cuModuleLoadData") == 0) memcpy(f, &a, sizeof a);
    if (strcmp(name, "cuModuleGetFunction") == 0) memcpy(f, &b, sizeof b);
    if (strcmp(name, "cuLaunchKernel") == 0) memcpy(f, &c, sizeof c);
    if (strcmp(name, "cuStreamWaitValue32") == 0 && gates) memcpy(f, &d, sizeof d);
    if (strcmp(name, "cuGraphKernelNodeGetParams") == 0) memcpy(f, &e, sizeof e);
    if (strcmp(name, "cuFuncGetParamInfo") == 0) memcpy(f, &g, sizeof g);
    if (strcmp(name, "cuLaunchKernelEx") == 0) memcpy(f, &h, sizeof h);
    if (strcmp(name, "cuFuncSetAttribute") == 0) memcpy(f, &i, sizeof i);
    if (strcmp(name, "cuFuncGetAttribute") == 0) memcpy(f, &j, sizeof j);
    if (strcmp(name, "cuFuncGetName") == 0) memcpy(f, &k, sizeof k);
    if (strcmp(name, "cuOccupancyMaxActiveBlocksPerMultiprocessor") == 0) memcpy(f, &l, sizeof l);
    *found = *f ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

// --- NVML ---

static int nvml_init(void) {
    called(__func__);
    return 0;
}
static int nvml_handle(const char* bus, void** device) {
    called(__func__);
    return (void)bus, *device = &gpu, 0;
}
static int nvml_power(void* device, unsigned* milliwatts) {
    called(__func__);
    return (void)device, *milliwatts = 700000, 0;
}
// Energy counter: 1 kW during work, and 80 W between two readings without work. The value of the energy counter
// changes in discrete steps. VIRTUAL_ENERGY selects a fault: none, stuck or breaks.
static int nvml_energy(void* device, unsigned long long* mj) {
    called(__func__);
    static double all = 1e6;
    static int64_t before, shown_at;
    static unsigned long long shown = 1000000;
    static int worked;
    const char* how = getenv("VIRTUAL_ENERGY");
    if (gpu.worked > 0) usleep(50000); // a batch takes real time, so that few batches fill the window of 2 s
    int64_t now = kbi_now();
    (void)device;
    if (how && strcmp(how, "stuck") == 0) return *mj = shown, 0;
    worked += gpu.worked > 0;
    if (how && strcmp(how, "breaks") == 0 && worked > 5) return 15;
    all += gpu.worked > 0 ? gpu.worked * 1e-3 : before ? (double)(now - before) * 80e-6 : 0;
    gpu.worked = 0, before = now;
    if (now - shown_at >= 20000000) shown = (unsigned long long)all, shown_at = now;
    return *mj = shown, 0;
}
static int nvml_driver(char* text, unsigned n) {
    called(__func__);
    return snprintf(text, n, "580.1"), 0;
}
static int nvml_temperature(void* device, int sensor, unsigned* c) {
    called(__func__);
    return (void)device, *c = sensor ? 0 : 61, 0;
}
static int nvml_clock(void* device, int which, unsigned* mhz) {
    called(__func__);
    return (void)device, *mhz = which == 2 ? 3201 : 1, 0;
}
static int nvml_mig(void* device, unsigned* now, unsigned* pending) {
    called(__func__);
    return (void)device, *now = getenv("VIRTUAL_SHARED") != NULL, *pending = 0, 0;
}
static int nvml_processes(void* device, unsigned* n, void* out) {
    called(__func__);
    return (void)device, (void)out, *n = getenv("VIRTUAL_SHARED") ? 2 : 1, 0;
}
static int nvml_reasons(void* device, unsigned long long* mask) {
    called(__func__);
    const char* reasons = getenv("VIRTUAL_THROTTLE");
    return (void)device, *mask = gpu.idle || !reasons ? 1 : strtoul(reasons, NULL, 0), 0;
}

// --- cuBLASLt: VIRTUAL_CUBLAS=13 provides this version; =14,13 also a newer version that does not start ---

typedef struct matrix {
    int type;
    double side;
} matrix;
// the address of element k is the handle of the k-th simulated cuBLASLt library
static int lt_version[] = { 13, 14 };
static int lt_create(void** handle) {
    if (getenv("VIRTUAL_CUBLAS_SLOW")) usleep(400000);
    called(__func__);
    return *handle = &gpu, 0;
}
static int lt_refuse(void** handle) {
    called(__func__);
    return (void)handle, 1;
}
static int lt_destroy(void* handle) {
    called(__func__);
    return (void)handle, 0;
}
static int lt_describe(void** what, int compute, int scale) {
    called(__func__);
    int* made = (int*)calloc(3, sizeof *made);
    made[0] = compute, made[1] = scale;
    return *what = made, 0;
}
static int lt_describe_more(void* what, int attribute, const void* value, size_t bytes) {
    called(__func__);
    if (attribute == 3 && bytes == 4) ((int*)what)[2] = *(const int*)value;
    return (attribute == 3 && bytes == 4) || (attribute == 25 && bytes == 1) ? 0 : 7;
}
static int lt_layout(void** out, int type, uint64_t rows, uint64_t columns, int64_t stride) {
    called(__func__);
    matrix* m = (matrix*)calloc(1, sizeof *m);
    m->type = type, m->side = (double)rows;
    return *out = m, rows == columns && (int64_t)rows == stride ? 0 : 7;
}
static int lt_free(void* p) {
    called(__func__);
    return free(p), 0;
}
static int lt_multiply(void* handle, void* what, const void* alpha, const void* a, void* of_a, const void* b,
                       void* of_b, const void* beta, const void* c, void* of_c, void* d, void* of_d,
                       const void* algorithm, void* workspace, size_t bytes, kb_stream stream) {
    called(__func__);
    static const function product = { "product", 0, 0, 0, 0, 0, false };
    static const struct {
        int compute, scale, in, out;
        double tflops;
    } rows[] = { { 70, 1, 1, 1, 60 },    { 77, 0, 0, 0, 400 },    { 68, 0, 2, 2, 700 },   { 64, 2, 2, 2, 650 },
                 { 68, 0, 14, 14, 720 }, { 68, 0, 28, 14, 1400 }, { 72, 10, 3, 10, 1500 } };
    operation o = { KERNEL, &product, 0, NULL, NULL, NULL };
    const int* is = (const int*)what;
    const matrix *in = (const matrix*)of_a, *out = (const matrix*)of_d;
    uint64_t one = 0, zero = 1;
    size_t size = is[1] == 1 ? 8 : is[1] == 2 ? 2 : 4;
    (void)handle, (void)b, (void)of_b, (void)c, (void)of_c, (void)workspace, (void)a, (void)d;
    memcpy(&one, alpha, size), memcpy(&zero, beta, 8);
    double value = 1;
    float value32 = 1;
    uint64_t want = is[1] == 10 ? 1 : is[1] == 2 ? 0x3c00 : 0;
    if (is[1] == 1) memcpy(&want, &value, 8);
    if (is[1] == 0) memcpy(&want, &value32, 4);
    if (one != want || zero || algorithm || bytes != 32 << 20) return 7;
    if (in->type == 28 && getenv("VIRTUAL_NO_FP8")) return 15;
    if (is[2] != 1) return 15; // for 8-bit types, the first matrix must be transposed
    for (int i = 0; i < 7; i++)
        if (is[0] == rows[i].compute && is[1] == rows[i].scale && in->type == rows[i].in && out->type == rows[i].out)
            o.ns = 2e-3 * in->side * in->side * in->side / rows[i].tflops;
    if (!(o.ns > 0)) return 15;
    if (gpu.zeros) o.ns /= 1.2;
    return submit(stream, o), 0;
}
#define LT(symbol, f) \
    { symbol, (void (*)(void))f }
static const struct {
    const char* name;
    void (*f)(void);
} lt_functions[] = { LT("cublasLtCreate", lt_create),
                     LT("cublasLtDestroy", lt_destroy),
                     LT("cublasLtMatmulDescCreate", lt_describe),
                     LT("cublasLtMatmulDescSetAttribute", lt_describe_more),
                     LT("cublasLtMatmulDescDestroy", lt_free),
                     LT("cublasLtMatrixLayoutCreate", lt_layout),
                     LT("cublasLtMatrixLayoutDestroy", lt_free),
                     LT("cublasLtMatmul", lt_multiply) };
static void* lt_symbol(const int* library, const char* name) {
    void (*refuse)(void) = (void (*)(void))lt_refuse;
    void* p = NULL;
    for (size_t i = 0; i < sizeof lt_functions / sizeof *lt_functions; i++)
        if (strcmp(name, lt_functions[i].name) == 0) memcpy(&p, &lt_functions[i].f, sizeof p);
    if (*library == 14 && strcmp(name, "cublasLtCreate") == 0) memcpy(&p, &refuse, sizeof p);
    return p;
}

static void* virtual_dlopen(const char* name, int mode) {
    if (!name) return dlopen(name, mode);
    const char *versions = getenv("VIRTUAL_CUBLAS"), *dot = strrchr(name, '.');
    if (strstr(name, "libcupti")) return getenv("VIRTUAL_CUPTI") ? (void*)&tracing : NULL;
    if (!strstr(name, "cublas")) return strstr(name, "nvidia-ml") ? (void*)&gpu : dlopen(name, mode);
    for (int i = 0; versions && i < 2; i++)
        if (atoi(dot + 1) == lt_version[i] && strstr(versions, dot + 1)) return &lt_version[i];
    return NULL;
}
// a simulated library has no real handle to close
static int virtual_dlclose(void* library) {
    return library == &lt_version[0] || library == &lt_version[1] ? 0 : dlclose(library);
}
static void* virtual_dlsym(void* library, const char* name) {
    int (*init)(void) = nvml_init;
    int (*handle)(const char*, void**) = nvml_handle;
    int (*power)(void*, unsigned*) = nvml_power;
    int (*reasons)(void*, unsigned long long*) = nvml_reasons;
    int (*energy)(void*, unsigned long long*) = nvml_energy;
    const char* no_energy = getenv("VIRTUAL_ENERGY");
    int (*callbacks)(void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t)) =
        trace_callbacks;
    int (*enable)(int) = trace_enable;
    int (*flush)(uint32_t) = trace_flush;
    int (*next)(uint8_t*, size_t, kbi_activity**) = trace_next;
    int (*disable)(int) = trace_disable;
    int (*time)(uint64_t*) = trace_time;
    int (*version)(uint32_t*) = trace_version;
    int (*say)(int, const char**) = trace_text;
    int (*call)(int, uint32_t, const char**) = trace_name;
    int (*dropped)(void*, uint32_t, size_t*) = trace_dropped;
    int (*subscribe)(void**, void (*)(void*, int, uint32_t, const void*), void*) = call_subscribe;
    int (*follow)(uint32_t, void*, int) = call_domain;
    void* f = NULL;
    int (*driver)(char*, unsigned) = nvml_driver;
    int (*temperature)(void*, int, unsigned*) = nvml_temperature;
    int (*clock)(void*, int, unsigned*) = nvml_clock;
    int (*mig)(void*, unsigned*, unsigned*) = nvml_mig;
    int (*processes)(void*, unsigned*, void*) = nvml_processes;
    if (strstr(name, "RegisterCallbacks")) memcpy(&f, &callbacks, sizeof f);
    if (strstr(name, "ActivityEnable")) memcpy(&f, &enable, sizeof f);
    if (strstr(name, "FlushAll")) memcpy(&f, &flush, sizeof f);
    if (strstr(name, "GetNextRecord")) memcpy(&f, &next, sizeof f);
    if (strstr(name, "ActivityDisable")) memcpy(&f, &disable, sizeof f);
    if (strstr(name, "GetTimestamp")) memcpy(&f, &time, sizeof f);
    if (strstr(name, "cuptiGetVersion")) memcpy(&f, &version, sizeof f);
    if (strstr(name, "ResultString")) memcpy(&f, &say, sizeof f);
    if (strstr(name, "CallbackName")) memcpy(&f, &call, sizeof f);
    if (strstr(name, "DroppedRecords")) memcpy(&f, &dropped, sizeof f);
    if (strstr(name, "cuptiSubscribe")) memcpy(&f, &subscribe, sizeof f);
    if (strstr(name, "cuptiEnableDomain")) memcpy(&f, &follow, sizeof f);
    if (library == &tracing) return f ? f : range_symbol(name);
    if (library == &lt_version[0] || library == &lt_version[1]) return lt_symbol((const int*)library, name);
    if (library != &gpu) return dlsym(library, name);
    if (strstr(name, "DriverVersion")) memcpy(&f, &driver, sizeof f);
    if (strstr(name, "GetTemperature")) memcpy(&f, &temperature, sizeof f);
    if (strstr(name, "GetClockInfo")) memcpy(&f, &clock, sizeof f);
    if (strstr(name, "MigMode")) memcpy(&f, &mig, sizeof f);
    if (strstr(name, "RunningProcesses")) memcpy(&f, &processes, sizeof f);
    if (strstr(name, "Init")) memcpy(&f, &init, sizeof f);
    if (strstr(name, "HandleByPciBusId")) memcpy(&f, &handle, sizeof f);
    if (strstr(name, "TotalEnergy") && !(no_energy && strcmp(no_energy, "none") == 0)) memcpy(&f, &energy, sizeof f);
    if (strstr(name, "PowerUsage")) memcpy(&f, &power, sizeof f);
    if (strstr(name, "ThrottleReasons")) memcpy(&f, &reasons, sizeof f);
    return f;
}

#endif
