// SPDX-License-Identifier: MIT OR Unlicense
// The CUDA back end without a GPU: a runtime with a virtual clock stands in for the device and has its habits: what
// events read too much, how that drifts, what arguments cost after an eviction, that a launch with many kernels behind
// it and other pairs of events read more, that nothing runs behind a closed gate. Kernels of known duration must come
// out right in spite of all that, and a block that waits behind its gate must end. Started without arguments this is the
// test; it starts itself with arguments as a program of benchmarks.
#include "test.h"
#include "json.h"
#include <stdlib.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

// What the harness itself calls of the system, where that can fail or differs: stacks for more than a few bodies at
// once, a signal() that forgets its handler, the driver's library that tells whether the device throttles.
static void* virtual_mmap(void* at, size_t n, int protection, int flags, int file, off_t offset) {
    static int stacks;
    if (getenv("VIRTUAL_STACKS") && ++stacks > atoi(getenv("VIRTUAL_STACKS"))) return MAP_FAILED;
    return mmap(at, n, protection, flags, file, offset);
}
static void virtual_signal(int number, void (*handler)(int)) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = handler;
    a.sa_flags = getenv("VIRTUAL_SYSTEM_V") ? (int)SA_RESETHAND : SA_RESTART;
    sigaction(number, &a, NULL);
}
static pid_t virtual_fork(void) {
    static int processes;
    if (getenv("VIRTUAL_FORKS") && ++processes > atoi(getenv("VIRTUAL_FORKS"))) return errno = EAGAIN, -1;
    return fork();
}
static void* virtual_dlopen(const char* name, int mode);
static void* virtual_dlsym(void* library, const char* name);
#define mmap virtual_mmap
#define signal virtual_signal
#define fork virtual_fork
#define dlopen virtual_dlopen
#define dlsym virtual_dlsym
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#undef mmap
#undef signal
#undef fork
#undef dlopen
#undef dlsym

// --- the runtime ---

typedef struct function { // also what a kernel's node says
    char name[64];
    size_t bytes; // of arguments
} function;

typedef struct operation {
    enum { KERNEL, EVENT, WAIT, COPY } kind;
    const function* of;
    double ns;
    struct CUevent_st* event;
    volatile unsigned* flag;
} operation;

struct CUevent_st {
    int index; // of its pair
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
    double drift; // of what events read, ns
    int launches, events;
    int device;            // the one that this process has chosen
    bool evicted, pending; // the arguments left the cache; an event waits for its kernel
    bool idle;             // has nothing to do: its clock falls, it does not throttle
    bool no_copies;        // copies fail
    struct CUgraph_st* capture;
    cudaError_t spoiled, last; // the capture; what cudaGetLastError gives
    cudaError_t broken;        // a kernel failed: nothing works from then on
    size_t used;
    struct {
        void* p;
        size_t bytes;
    } blocks[4096];
} gpu;

static cudaError_t did(cudaError_t e) {
    if (gpu.broken != cudaSuccess) return gpu.broken;
    if (e != cudaSuccess) gpu.last = e;
    return e;
}

// What a capture forbids.
static bool forbidden(void) {
    if (gpu.capture) did(gpu.spoiled = cudaErrorStreamCaptureUnsupported);
    return gpu.capture != NULL;
}

static double cost_of_arguments(size_t bytes) { return bytes <= 8 ? 0 : bytes < 200 ? 170 : bytes < 600 ? 380 : 600; }

static void execute(const operation* o, int kernels_behind) {
    if (o->kind == WAIT) {
        int64_t began = kbi_now(), limit = o->ns > 0 ? (int64_t)o->ns : INT64_MAX;
        while (!*o->flag && kbi_now() - began < limit)
            usleep(200); // until the host opens the gate, or the watchdog does
    } else if (o->kind == EVENT) {
        o->event->stamp = floor(gpu.now / 32) * 32 + 150.0 * o->event->index; // other pairs differ
        gpu.now += 11;
        gpu.pending = true;
    } else if (o->kind == KERNEL) {
        if (strcmp(o->of->name, "faulty") == 0) gpu.broken = cudaErrorIllegalAddress;
        if (gpu.pending) gpu.now += 1200 + 700 * gpu.device + gpu.drift + (kernels_behind > 8 ? 550 : 0);
        if (gpu.pending && gpu.evicted) gpu.now += cost_of_arguments(o->of->bytes) * (1 + gpu.device);
        gpu.now += o->ns + 889;
        gpu.evicted = strcmp(o->of->name, "kbi_read") == 0;
        gpu.pending = false;
        gpu.drift = 60 * sin(++gpu.launches / 900.0);
        gpu.now += 13.7; // so that times lie anywhere between two steps of the events
    } else
        gpu.now += o->ns;
}

static void drain(cudaStream_t s) {
    for (int i = 0, left = 0; i < s->n; i++) {
        left = 0;
        for (int k = i + 1; k < s->n; k++) left += s->queue[k].kind == KERNEL;
        execute(&s->queue[i], left);
    }
    s->n = 0;
}

static cudaError_t submit(cudaStream_t s, operation o) {
    if (gpu.capture) {
        if (o.kind != EVENT) gpu.capture->nodes[gpu.capture->n++] = o;
        return cudaSuccess;
    }
    if (getenv("VIRTUAL_TOOL") && o.kind == KERNEL) drain(s); // as tools do that wait for every launch
    if (o.kind == WAIT || s->n)                               // closed: what follows waits
        s->queue[s->n++] = o;
    else { // the host is slower than the device
        gpu.now += 3000;
        execute(&o, 0);
    }
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t e = did(gpu.last);
    gpu.last = cudaSuccess;
    return e;
}
cudaError_t cudaPeekAtLastError(void) { return did(gpu.last); }
const char* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : "an error"; }
const char* cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaErrorOfSomeKind"; }
cudaError_t cudaGetDeviceCount(int* n) {
    return *n = getenv("VIRTUAL_DEVICES") ? atoi(getenv("VIRTUAL_DEVICES")) : 1, cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) { return *d = gpu.device, cudaSuccess; }
cudaError_t cudaSetDevice(int d) {
    while (getenv("VIRTUAL_HANG")) pause();
    return gpu.device = d, cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char* s, int n, int d) {
    return (void)d, snprintf(s, (size_t)n, "0:0:0"), cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* p, int d) {
    (void)d;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "Virtual GPU");
    p->major = getenv("VIRTUAL_SM") ? atoi(getenv("VIRTUAL_SM")) / 10 : 9;
    p->totalGlobalMem = (size_t)8 << 30;
    p->l2CacheSize = 60 << 20;
    p->multiProcessorCount = 132;
    p->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, size_t bytes) {
    int i = 0;
    if (forbidden()) return gpu.spoiled;
    if (gpu.broken != cudaSuccess) return gpu.broken;
    if (bytes + gpu.used > (size_t)8 << 30) return did(cudaErrorMemoryAllocation);
    while (gpu.blocks[i].p) i++;
    *p = gpu.blocks[i].p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpu.used += gpu.blocks[i].bytes = bytes ? bytes : 1;
    return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
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
    return (void)flags, *p = calloc(1, bytes), cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) { return free(p), cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void** d, void* p, unsigned f) { return (void)f, *d = p, cudaSuccess; }
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t s) { return (void)s, cudaMalloc(p, n); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) { return (void)s, cudaFree(p); }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all) {
    *all = (size_t)8 << 30;
    *free_bytes = *all - gpu.used;
    return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int value, size_t n) {
    if (n <= (size_t)64 << 20) memset(p, value, n); // not what is only evicted with
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t s) { return (void)s, cudaMemset(p, v, n); }
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, enum cudaMemcpyKind kind) {
    (void)kind;
    if (forbidden()) return gpu.spoiled;
    return memcpy(to, from, n), cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) {
    operation o = { COPY, NULL, (double)n / 2000, NULL, NULL };
    (void)kind;
    if (gpu.no_copies) return did(cudaErrorInvalidValue);
    if (!gpu.capture && n <= (size_t)64 << 20) memcpy(to, from, n);
    return submit(s, o);
}
// 100 MiB of the pool are in use all the time: not the cases' doing
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int d) { return (void)d, (void)pool, cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void* v) {
    return (void)p, (void)a, *(uint64_t*)v = 100 << 20, cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void* v) {
    return (void)p, (void)a, (void)v, cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache(void) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* n, enum cudaLimit limit) { return (void)limit, *n = 0, cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* s) {
    return *s = (cudaStream_t)calloc(1, sizeof(struct CUstream_st)), cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned f) { return (void)f, cudaStreamCreate(s); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return free(s), cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    if (forbidden()) return gpu.spoiled;
    return drain(s), did(cudaSuccess);
}
static cudaStream_t the_stream;
cudaError_t cudaDeviceSynchronize(void) { return the_stream ? cudaStreamSynchronize(the_stream) : cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* e) {
    *e = (cudaEvent_t)calloc(1, sizeof(struct CUevent_st));
    (*e)->index = gpu.events++ / 2;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    operation o = { EVENT, NULL, 0, e, NULL };
    the_stream = s;
    return submit(s, o);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
    return *ms = (float)((b->stamp - a->stamp) * 1e-6), did(cudaSuccess);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    (void)s, (void)mode;
    gpu.spoiled = cudaSuccess;
    gpu.capture = (struct CUgraph_st*)calloc(1, sizeof *gpu.capture);
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
    (void)s;
    *graph = gpu.spoiled == cudaSuccess ? gpu.capture : NULL;
    if (gpu.spoiled != cudaSuccess) free(gpu.capture);
    gpu.capture = NULL;
    return did(gpu.spoiled == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus* status) {
    (void)s;
    *status = gpu.capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* nodes, size_t* n) {
    for (int i = 0; nodes && i < g->n; i++) nodes[i] = (cudaGraphNode_t)(void*)&g->nodes[i];
    *n = (size_t)g->n;
    return cudaSuccess;
}
static const operation* node_of(cudaGraphNode_t n) { return (const operation*)(const void*)n; }
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t n, enum cudaGraphNodeType* type) {
    *type = node_of(n)->kind == KERNEL ? cudaGraphNodeTypeKernel : cudaGraphNodeTypeMemcpy;
    return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t n, struct cudaKernelNodeParams* p) {
    memset(p, 0, sizeof *p);
    p->func = (void*)(uintptr_t)node_of(n)->of;
    p->gridDim.x = p->gridDim.y = p->gridDim.z = p->blockDim.x = p->blockDim.y = p->blockDim.z = 1;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long flags) {
    (void)flags;
    *e = (cudaGraphExec_t)calloc(1, sizeof(struct CUgraphExec_st));
    (*e)->graph = *g;
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
    static const function whole = { "graph", 0 };
    operation o = { KERNEL, &whole, 0, NULL, NULL };
    static int launches;
    for (int i = 0; i < e->graph.n; i++) o.ns += e->graph.nodes[i].ns + 400; // the gap between nodes
    if (getenv("VIRTUAL_HICCUP") && ++launches % 11 == 0) o.ns += 5e6;
    return submit(s, o);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) { return free(e), cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return free(g), cudaSuccess; }
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* a, const void* f) {
    (void)f;
    memset(a, 0, sizeof *a);
    a->numRegs = 16;
    return cudaSuccess;
}
cudaError_t cudaFuncGetName(const char** name, const void* f) {
    return *name = ((const function*)f)->name, cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void* f, int threads, size_t shared) {
    return (void)f, (void)threads, (void)shared, *n = 16, cudaSuccess;
}

// --- the driver ---

static int load_module(void** module, const void* image) { return (void)image, *module = &gpu, 0; }
static int get_function(void** f, void* module, const char* name) {
    function* made = (function*)calloc(1, sizeof *made);
    int i;
    (void)module;
    snprintf(made->name, sizeof made->name, "%s", name);
    if (sscanf(name, "kbi_empty_%d", &i) == 1) made->bytes = (size_t)kbi_empty_bytes[i];
    *f = made;
    return 0;
}
static int launch(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, kb_stream stream, void** a, void** extra) {
    const function* of = (const function*)f;
    operation o = { KERNEL, of, 576, NULL, NULL };
    (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)extra;
    the_stream = stream;
#define IS(what) (strcmp(of->name, "kbi_" what) == 0)
#define NUMBER(i) ((double)*(uint64_t*)a[i])
    if (IS("read")) o.ns = 1500 + 16 * NUMBER(1) / 4300;
    if (IS("copy")) o.ns = 1500 + 32 * NUMBER(2) / 4300;
    if (IS("write")) o.ns = 1500 + 16 * NUMBER(1) / 4300;
    if (IS("spin")) o.ns = 576 + NUMBER(0) / 1.98;
    if (IS("fma")) o.ns = 576 + 512.0 * NUMBER(1) * gx * bx / 50000;
    if (IS("gate")) o.kind = WAIT, o.flag = *(volatile unsigned**)a[0], o.ns = 0.9 * NUMBER(1); // its clock is fast
    if (IS("clock")) { // starts at an edge of a clock of 32 ns
        uint64_t* out = *(uint64_t**)a[0];
        out[0] = (uint64_t)(NUMBER(1) / 1.98 / 32) * 32;
        out[1] = (uint64_t)((double)out[0] * (gpu.idle ? 1.4 : 1.98));
        o.ns = (double)out[0] + 765 + 16;
    }
    return submit(stream, o), 0;
}
static int wait_value(kb_stream s, unsigned long long address, unsigned value, unsigned flags) {
    operation o = { WAIT, NULL, 0, NULL, (volatile unsigned*)(uintptr_t)address };
    (void)value, (void)flags;
    return submit(s, o), 0;
}
static int node_parameters(cudaGraphNode_t n, void* out) { return *(const void**)out = node_of(n)->of, 0; }
static int argument(void* f, size_t i, size_t* offset, size_t* size) {
    *offset = 0, *size = ((const function*)f)->bytes;
    if (i && getenv("VIRTUAL_TOOL")) puts("a call was refused"); // compute-sanitizer would say so
    return i ? 1 : 0;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* found) {
    (void)version, (void)flags;
    kbi_cu_load a = load_module;
    kbi_cu_function b = get_function;
    kbi_cu_launch c = launch;
    kbi_cu_wait d = wait_value;
    kbi_cu_node e = node_parameters;
    kbi_cu_arguments g = argument;
    bool gates = !getenv("VIRTUAL_NO_WAIT"); // then a kernel spins instead
    *f = NULL;
    if (strcmp(name, "cuModuleLoadData") == 0) memcpy(f, &a, sizeof a);
    if (strcmp(name, "cuModuleGetFunction") == 0) memcpy(f, &b, sizeof b);
    if (strcmp(name, "cuLaunchKernel") == 0) memcpy(f, &c, sizeof c);
    if (strcmp(name, "cuStreamWaitValue32") == 0 && gates) memcpy(f, &d, sizeof d);
    if (strcmp(name, "cuGraphKernelNodeGetParams") == 0) memcpy(f, &e, sizeof e);
    if (strcmp(name, "cuFuncGetParamInfo") == 0) memcpy(f, &g, sizeof g);
    *found = *f ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

// --- the driver's library for management ---

static int nvml_init(void) { return 0; }
static int nvml_handle(const char* bus, void** device) { return (void)bus, *device = &gpu, 0; }
static int nvml_power(void* device, unsigned* milliwatts) { return (void)device, *milliwatts = 700000, 0; }
static int nvml_reasons(void* device, unsigned long long* mask) { // power cap, or idle
    return (void)device, *mask = gpu.idle || !getenv("VIRTUAL_THROTTLE") ? 1 : 4, 0;
}
static void* virtual_dlopen(const char* name, int mode) {
    return strstr(name, "nvidia-ml") ? (void*)&gpu : dlopen(name, mode);
}
static void* virtual_dlsym(void* library, const char* name) {
    int (*init)(void) = nvml_init;
    int (*handle)(const char*, void**) = nvml_handle;
    int (*power)(void*, unsigned*) = nvml_power;
    int (*reasons)(void*, unsigned long long*) = nvml_reasons;
    void* f = NULL;
    if (library != &gpu) return dlsym(library, name);
    if (strstr(name, "Init")) memcpy(&f, &init, sizeof f);
    if (strstr(name, "HandleByPciBusId")) memcpy(&f, &handle, sizeof f);
    if (strstr(name, "PowerUsage")) memcpy(&f, &power, sizeof f);
    if (strstr(name, "ThrottleReasons")) memcpy(&f, &reasons, sizeof f);
    return f;
}

// --- benchmarks ---

static void kernel(double ns, size_t bytes, kb_stream s) {
    static function of[4] = { { "known", 8 }, { "known", 24 }, { "known", 256 }, { "known", 1024 } };
    operation o = { KERNEL, &of[bytes == 8 ? 0 : bytes == 24 ? 1 : bytes == 256 ? 2 : 3], ns, NULL, NULL };
    submit(s, o);
}

KBENCH_IMPL(known, one, KB_AXIS("ns", 600, 900, 2000, 5600, 20000, 600000), KB_AXIS("bytes", 8, 24, 256, 1024)) {
    int64_t ns = kb_int(kb, "ns"), bytes = kb_int(kb, "bytes");
    KB_TIME(kb) { kernel((double)ns, (size_t)bytes, kb->stream); }
}
KBENCH(several) {
    KB_TIME(kb) { kernel(3000, 24, kb->stream), kernel(4000, 24, kb->stream); }
}
KBENCH(nothing) {
    KB_TIME(kb) {}
}
KBENCH(copies) {
    char* p = KB_ALLOC(kb, char, 4096);
    static char host[4096];
    KB_TIME(kb) { cudaMemcpyAsync(p, host, sizeof host, cudaMemcpyHostToDevice, kb->stream); }
}
KBENCH(waits) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        cudaStreamSynchronize(kb->stream);
    }
}
static void stop_for(unsigned milliseconds) {
    pid_t self = getpid(), child = fork();
    if (!child) {
        usleep(1000 * milliseconds);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, NULL, 0);
}
KBENCH(stops) { // behind its closed gate, for longer than the watchdog waits
    int launches = 0;
    KB_TIME(kb) {
        if (++launches == 400) stop_for(1300);
        kernel(20000, 24, kb->stream);
    }
}
KBENCH(waits_too) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        cudaStreamSynchronize(kb->stream);
    }
}
KBENCH(turns) {
    KB_ALLOC(kb, char, 4 << 20);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(faults) { // in its 50th launch
    static const function of = { "known", 8 }, faulty = { "faulty", 8 };
    static int launches;
    KB_TIME(kb) {
        operation o = { KERNEL, ++launches < 50 ? &of : &faulty, 5000, NULL, NULL };
        submit(kb->stream, o);
    }
}
KBENCH(greedy) {
    char* p = KB_ALLOC(kb, char, (int64_t)9 << 30);
    if (!p) return;
    KB_TIME(kb) { kernel(5000, 8, kb->stream); }
}
KBENCH_IMPL(rivals, first) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH_IMPL(rivals, twin) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH_IMPL(rivals, slower) {
    KB_TIME(kb) { kernel(5200, 24, kb->stream); }
}
static void break_late(kb_state* kb, int launch) { // counts from the samples on: after every rival's check
    static const function of = { "known", 8 }, faulty = { "faulty", 8 };
    static int launches;
    launches += kb->run->call.phase == KBI_PHASE_SAMPLE;
    operation o = { KERNEL, launches < launch ? &of : &faulty, 5000, NULL, NULL };
    submit(kb->stream, o);
}
KBENCH_IMPL(duel, first) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH_IMPL(duel, breaks) {
    KB_TIME(kb) { break_late(kb, 50); }
}
KBENCH_IMPL(duel, third) {
    KB_TIME(kb) { kernel(6000, 24, kb->stream); }
}
KBENCH(exhausts) { // nobody looks at what cudaMalloc says
    kb_expect(kb, KB_EXPECT_ALLOC);
    KB_TIME(kb) {
        void* p;
        cudaMalloc(&p, 256 << 20);
        usleep(20);
    }
}
KBENCH(lazy) { // the first run loads code
    static int launches;
    int before = launches;
    KB_TIME(kb) {
        if (!launches++) usleep(3000);
        kernel(5000, 24, kb->stream);
    }
    kb_note(kb, "%d launches", launches - before);
}
KBENCH(no_copy) {
    float *x = KB_ALLOC(kb, float, 16), want[16] = { 1e30f };
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    gpu.no_copies = true;
    kb_check(kb, x, want, 16, 1e-6);
    gpu.no_copies = false;
}
KBENCH(strays) {
    cudaSetDevice(1);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(strays_not) {
    kb_note(kb, "on device %d", gpu.device);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
static void idles_later(kb_state* kb) { // the device idles while the body looks at results
    gpu.idle = false;
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    gpu.idle = true;
}
KBENCH(idles) { idles_later(kb); }
KBENCH_IMPL(idle_rivals, one) { idles_later(kb); }
KBENCH_IMPL(idle_rivals, other) { idles_later(kb); }

KBENCH(skips) { kb_skip(kb, "does not apply"); }
static void five(kb_state* kb) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
static void on_cpu(kb_state* kb) {
    KB_TIME_HOST(kb) { kb_keep(kb); }
}
static kb_entry newer, of_cpu; // for a GPU that is not this one; for a machine without one

// --- the test ---

static const char* self;
static json_file file;
static int code; // of the last run

// arguments: of the program, which settings NAME=VALUE of the environment may precede.
static void start(const char* arguments) {
    char command[1000];
    const char* rest = arguments;
    while (strncmp(rest, "VIRTUAL", 7) == 0) rest += strcspn(rest, " "), rest += *rest == ' ';
    snprintf(command, sizeof command, "env %.*s '%s' --no-progress %s > build/test/host/cuda.out 2>&1",
             (int)(rest - arguments), arguments, self, rest);
    int status = system(command);
    CHECK(status != -1);
    code = WEXITSTATUS(status);
}
static void run(const char* arguments) {
    char all[500];
    const char* path = "build/test/host/cuda.json";
    json_free(&file);
    remove(path);
    snprintf(all, sizeof all, "%s --json %s", arguments, path);
    start(all);
    file = json_read(path, 0);
    CHECK_STR(file.error, "");
}
static double number(int i, const char* key) {
    const char* s = json_get(&file, i, key);
    return s && strchr("-0123456789", s[0]) ? strtod(s, NULL) : (double)NAN;
}
static const char* text(int i, const char* key) {
    const char* s = json_get(&file, i, key);
    return s ? s : "(none)";
}

// Times within 50 ns of the kernel's own, whatever the arguments; raw ones are 2 to 3 us too long.
static void check_known(const char* arguments, int want) {
    run(arguments);
    CHECK_INT(file.n, want);
    for (int i = 0; i < file.n; i++) {
        const char* ns = strstr(text(i, "name"), "ns=");
        double known = ns ? atof(ns + 3) : 0, got = 1e6 * number(i, "time_ms"), raw = 1e6 * number(i, "time_ms_raw");
        CHECK_THAT(fabs(got - known) <= 50 + 1e-4 * known, "%s %s: %.0f ns for %.0f", arguments, text(i, "name"), got,
                   known);
        CHECK_THAT(raw - known > 1900 && raw - known < (strstr(arguments, "TOOL") ? 10000 : 3000),
                   "%s %s: raw %.0f ns for %.0f", arguments, text(i, "name"), raw, known);
    }
}

static void check_word(const char* arguments, const char* word) {
    run(arguments);
    CHECK_INT(file.n, 1);
    CHECK_THAT(strstr(text(0, "flags"), word) != NULL, "%s: flags %s, not %s", arguments, text(0, "flags"), word);
    CHECK_STR(text(0, "time_ms"), "null");
}

static const char* output(void) {
    static char all[20000];
    FILE* f = fopen("build/test/host/cuda.out", "r");
    size_t n = f ? fread(all, 1, sizeof all - 1, f) : 0;
    all[n] = 0;
    if (f) fclose(f);
    return all;
}
static void check_output(const char* what) {
    CHECK_THAT(strstr(output(), what) != NULL, "no '%s' in: %.300s", what, output());
}
static void check_no_output(const char* what) {
    CHECK_THAT(strstr(output(), what) == NULL, "'%s' in: %.300s", what, output());
}

static void test_errors(void) {
    // one rival breaks the device in the middle of the rounds: the others get their times, in a worker of their own
    run("--op duel --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        bool fine = strstr(text(i, "name"), "breaks") == NULL;
        CHECK_THAT((strstr(text(i, "flags"), "CUDA_ERROR") == NULL) == fine, "%s: flags %s", text(i, "name"),
                   text(i, "flags"));
        CHECK_THAT(isnan(number(i, "time_ms")) != fine, "%s: %s ms", text(i, "name"), text(i, "time_ms"));
    }
    CHECK_REAL(number(2, "speedup"), 5.0 / 6, 0.01);
    // in one process they cannot, but leave a record
    run("--op duel --fast --no-isolate");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++)
        CHECK_THAT(strstr(text(i, "flags"), "CUDA_ERROR") != NULL, "flags %s", text(i, "flags"));
    check_word("--op exhausts --fast", "CUDA_ERROR"); // the wall timer looks for errors as well
    check_word("--op no_copy --fast", "CUDA_ERROR");
    CHECK_THAT(!strstr(text(0, "flags"), "VERIFY_FAIL"), "what was never copied was compared: %s",
               text(0, "message"));
}

// Nothing measured is never fine without a word.
static void test_nothing(void) {
    start("--help"); // of a build with CUDA
    check_output("--device N|all|cpu");
    check_output("--rotate");
    check_output("--timer WHICH");
    run("--device cpu --op several,known --fast");
    CHECK_INT(code, 77);
    check_output("error: nothing was measured: what was selected needs a GPU, and --device cpu uses none");
    CHECK_INT(file.n, 25);
    run("VIRTUAL_DEVICES=0 --op several --fast");
    CHECK_INT(code, 77);
    check_output("error: nothing was measured: no GPU: none found");
    run("--device cpu --op several,of_cpu --fast"); // something was
    CHECK_INT(code, 0);
    check_no_output("nothing was measured");
    run("--op newer --fast");
    CHECK_INT(code, 77);
    check_output("error: nothing was measured: what was selected is not for this GPU (compute capability 9.0)");
    run("--op of_cpu --fast");
    CHECK_INT(code, 77);
    check_output("--device cpu runs what is for the CPU");
    run("--op skips --fast"); // its function says that it does not apply
    CHECK_INT(code, 0);
    check_output("nothing was measured: all that was selected was skipped");
    run("VIRTUAL_FORKS=1 --op faults,lazy --fast"); // a second worker cannot be started
    CHECK_INT(code, 1);
    CHECK_INT(file.n, 2);
    CHECK_THAT(strstr(text(1, "flags"), "CRASHED") != NULL, "flags %s", text(1, "flags"));
    CHECK_THAT(strstr(text(1, "message"), "could not be started") != NULL, "%s", text(1, "message"));
    run("VIRTUAL_FORKS=0 --op several --fast");
    CHECK_INT(code, 1);
}
static void test_devices(void) {
    run("VIRTUAL_DEVICES=2 --device all --op known --fast -a bytes=24 -a ns=2000,20000");
    CHECK_INT(file.n, 4);
    for (int i = 0; i < file.n; i++) {
        CHECK_INT(number(i, "device"), i / 2);
        CHECK_THAT(fabs(1e6 * number(i, "time_ms") - (i % 2 ? 20000 : 2000)) < 50, "device %d: %g ms", i / 2,
                   number(i, "time_ms"));
    }
    // a case that chooses another device does so for itself; memory of the pool that is no case's counts for none
    run("VIRTUAL_DEVICES=2 --op strays,strays_not --fast");
    CHECK_INT(file.n, 2);
    CHECK_THAT(strstr(text(1, "message"), "on device 0") != NULL, "%s", text(1, "message"));
    CHECK_INT(number(1, "memory_bytes"), 0);
    if (system("script -qec true /dev/null > build/test/host/cuda.out 2>&1 < /dev/null") == 0) {
        char command[1000];
        snprintf(
            command, sizeof command,
            "script -qec \"env VIRTUAL_DEVICES=2 '%s' --op several,turns --warmup 80ms --iters 3 --device all\" /dev/null "
            "> build/test/host/cuda.out 2>&1 < /dev/null",
            self);
        CHECK(system(command) != -1);
        check_output("[2/2]");
        check_no_output("[3/2]"); // each device starts anew
    } else
        SKIP("no script(1) that plays a terminal: progress over two devices is not looked at");
    // what the device does after the last sample is not what was measured
    run("VIRTUAL_THROTTLE=1 --op idles,idle_rivals --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        CHECK_THAT(strstr(text(i, "flags"), "THROTTLED") != NULL, "%s: flags %s", text(i, "name"), text(i, "flags"));
        CHECK_THAT(!strstr(text(i, "flags"), "CLOCK_VARIES"), "%s: flags %s", text(i, "name"), text(i, "flags"));
        CHECK_THAT(!strstr(text(i, "message"), "clock fell"), "%s: %s", text(i, "name"), text(i, "message"));
    }
    // a device that hangs while it starts: Ctrl-C ends the wait
    pid_t process = fork();
    if (process == 0) {
        setenv("VIRTUAL_HANG", "1", 1);
        execl(self, self, "--op", "several", "--quiet", "--no-progress", (char*)NULL);
        _exit(99);
    }
    usleep(300000);
    kill(process, SIGINT);
    int status = -1;
    for (int i = 0; i < 20 && waitpid(process, &status, WNOHANG) == 0; i++) usleep(100000);
    CHECK_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 130, "a device that hangs: status %d 2 s after SIGINT",
               status);
    if (status == -1) kill(process, SIGKILL);
}

static void test_timers(void) {
    run("--op several --fast --timer Wall");
    CHECK_STR(text(0, "mode"), "\"wall\"");
    run("--op lazy --iters 20 --warmup 5"); // 20 groups: a first run that takes long does not make them single launches
    CHECK_THAT(atof(strrchr(text(0, "message"), ';') ? strrchr(text(0, "message"), ';') + 1 : "0") >= 100,
               "20 samples of %s", text(0, "message"));
    run("VIRTUAL_HICCUP=1 --op turns --fast --rotate"); // an interruption makes a difference of two graphs negative
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - 5400) < 30, "turns, disturbed: %g ms, %s", number(0, "time_ms"),
               text(0, "message"));
    // fewer copies than exceed L2 prove nothing about cold data
    check_word("VIRTUAL_STACKS=5 --op turns --fast --rotate", "NOT_COLD");
    // the watchdog comes before the deadline of the gate that spins, a second time as well, whatever signal() does
    run("VIRTUAL_NO_WAIT=1 VIRTUAL_SYSTEM_V=1 --op waits,waits_too --fast --no-audit --timeout 4s");
    CHECK_INT(file.n, 2);
    for (int i = 0; i < file.n; i++)
        CHECK_THAT(number(i, "time_ms") > 0.004 && number(i, "time_ms") < 0.02, "%s: %g ms, %s", text(i, "name"),
                   number(i, "time_ms"), text(i, "message"));
}

static void launch_5us(kb_stream stream, void* user) {
    (void)user;
    kernel(5000, 24, stream);
}
static void test_in_process(void) {
    kb_desc d;
    void* kept;
    memset(&d, 0, sizeof d);
    d.name = "kept"; // the program may keep what it likes
    d.max_time = 0.05;
    kb_state* kb = kb_open(&d);
    cudaMalloc(&kept, 1 << 20);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    kb_result r = kb_close(kb);
    CHECK_INT(r.status, KB_OK);
    CHECK(!((r.flags >> KB_FLAG_LEAK) & 1));
    kb_result_free(&r);
    d.device = 1; // one that is not the first one's
    r = kb_run(&d, launch_5us, NULL);
    CHECK_INT(r.status, KB_FAILED);
    CHECK_HAS(r.message, "device");
    kb_result_free(&r);
}

int main(int argc, char** argv) {
    const char* tool = getenv("VIRTUAL_TOOL"); // a tool puts its library into the process
    if (tool && strchr(tool, '/')) CHECK(dlopen(tool, RTLD_NOW) != NULL);
    newer.operation = "newer", newer.body = five, newer.min_sm = 120;
    of_cpu.operation = "of_cpu", of_cpu.needs = KB_NEEDS_CPU, of_cpu.body = on_cpu;
    kb_add(&newer), kb_add(&of_cpu);
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    check_known("--op known --fast", 24);
    check_known("--op known --fast --hot", 24);
    check_known("VIRTUAL_NO_WAIT=1 --op known --fast -a bytes=24", 6);
    check_known("--op known --fast --no-isolate -a bytes=24", 6);
    // the first kernel's start to the last one's end: 3 us, the way from one to the next, 4 us
    run("--op several --fast");
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - 7903) < 60, "several: %g ms", number(0, "time_ms"));
    // in graphs over copies of the data: with the gap from one launch to the next, 400 ns
    run("--op turns --fast --rotate");
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - 5400) < 30, "turns: %g ms", number(0, "time_ms"));
    run("--op rivals --fast");
    CHECK_INT(file.n, 3);
    CHECK_THAT(strstr(text(1, "verdict"), "EQUIVALENT") != NULL, "twin: %s", text(1, "verdict"));
    CHECK_THAT(strstr(text(2, "verdict"), "SLOWER") != NULL, "slower: %s", text(2, "verdict"));
    CHECK_REAL(number(2, "speedup"), 5000.0 / 5200, 0.005);
    // a case that breaks the device, or wants more memory than there is, takes no other with it
    run("--op faults,greedy,several --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        bool fine = strstr(text(i, "name"), "several") != NULL;
        const char* word = strstr(text(i, "name"), "faults") ? "CUDA_ERROR" : fine ? "" : "OOM";
        CHECK_THAT(strstr(text(i, "flags"), word) != NULL, "%s: flags %s", text(i, "name"), text(i, "flags"));
        CHECK_THAT(isnan(number(i, "time_ms")) != fine, "%s: %s ms", text(i, "name"), text(i, "time_ms"));
    }
    check_word("--op nothing --fast", "NO_WORK");
    check_word("--op copies --fast", "TRANSFER");
    check_word("--op waits --fast", "SYNC_INSIDE");
    // a block that waits behind its gate is let go by the watchdog, and is then timed without one
    run("--op waits --fast --no-audit --no-isolate");
    CHECK_INT(file.n, 1);
    CHECK_THAT(number(0, "time_ms") > 0.004 && number(0, "time_ms") < 0.02, "waits: %g ms", number(0, "time_ms"));
    CHECK_HAS(text(0, "flags"), "UNGATED");
    // a process that was stopped is no such block: what was timed meanwhile is timed again, and the gate stays
    run("--op stops --iters 80");
    CHECK_INT(file.n, 1);
    CHECK_REAL(number(0, "time_ms"), 0.020, 0.01);
    CHECK_INT(number(0, "samples"), 80);
    CHECK_THAT(number(0, "time_ms_max") < 0.0202, "stops: %g ms at most", number(0, "time_ms_max"));
    CHECK_THAT(!strstr(text(0, "flags"), "UNGATED"), "stops: %s", text(0, "flags"));
    CHECK_THAT(number(0, "samples_retaken") >= 1, "stops: %s", text(0, "samples_retaken"));
    CHECK_INT(number(0, "launches_per_sample"), 8);
    // under a tool that waits for every launch no gate can be used; the times are as right
    check_known("VIRTUAL_TOOL=1 --op known --fast -a bytes=24 -a ns=2000,20000", 2);
    // a tool that is known by its library: everything runs and is checked, little of it, and nothing is timed
    run("VIRTUAL_TOOL=build/test/host/libsanitizer-collection.so --op known,rivals -a bytes=24 -a ns=2000,20000");
    CHECK_INT(file.n, 5);
    for (int i = 0; i < file.n; i++) {
        CHECK_STR(text(i, "status"), "\"skipped\"");
        CHECK_STR(text(i, "time_ms"), "null");
        CHECK_THAT(strstr(text(i, "message"), "not timed under compute-sanitizer") != NULL, "message %s",
                   text(i, "message"));
        CHECK_THAT(number(i, "wall_ms") < 200, "%s took %s ms", text(i, "name"), text(i, "wall_ms"));
    }
    check_output("compute-sanitizer: not timed");
    check_output("5 cases: 0 ok, 5 skipped");
    check_no_output("refused");
    run("VIRTUAL_TOOL=build/test/host/libsanitizer-collection.so --op faults");
    CHECK_STR(text(0, "status"), "\"skipped\"");
    run("VIRTUAL_TOOL=build/test/host/libsanitizer-collection.so --op faults --iters 10"); // 8 launches each
    CHECK_STR(text(0, "status"), "\"failed\"");
    // a GPU that nothing is stated for, without CUPTI: fitted, and as right
    check_known("VIRTUAL_SM=80 --op known --fast -a bytes=24", 6);
    start("VIRTUAL_SM=80 --env");
    check_output("fitted to %globaltimer");
    test_errors();
    test_nothing();
    test_devices();
    test_timers();
    test_in_process();
    json_free(&file);
    return test_end();
}
