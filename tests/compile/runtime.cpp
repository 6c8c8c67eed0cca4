// SPDX-License-Identifier: MIT OR Unlicense
/* A simulated CUDA runtime for machines without a GPU. It reports the properties of an H200, launches nothing, and
   counts the kernels of a program, their launches, and queries. At exit it writes "kernel NAME LAUNCHES" and "asked
   FUNCTION TIMES" lines to the file in RUNTIME_LOG. RUNTIME_SHARED: shared memory per CTA in bytes, if it differs
   from that of an H200. RUNTIME_COMPILED: the compute capability for which the kernels claim to be compiled, if it
   differs from 90 with the instructions of sm_90a. A program may declare runtime_launches, the number of launches, and
   runtime_memset, the last memset.

   nvcc --cudart none program.cu runtime.o -o program */
#include <cuda_runtime.h>
#include <cxxabi.h>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>

extern "C" {
long runtime_launches;
struct {
    void* to;
    int value;
    size_t bytes;
} runtime_memset;
}
namespace {
struct account {
    std::map<const void*, std::string> names; // key: the address that a launch passes
    std::map<std::string, long> launches, asked;
    ~account() {
        const char* path = getenv("RUNTIME_LOG");
        FILE* f = path ? fopen(path, "w") : NULL;
        if (!f) return;
        for (auto& k : launches) {
            int status = 0;
            char* plain = abi::__cxa_demangle(k.first.c_str(), NULL, NULL, &status);
            fprintf(f, "kernel %ld %s\n", k.second, plain ? plain : k.first.c_str());
            free(plain);
        }
        for (auto& a : asked) fprintf(f, "asked %ld %s\n", a.second, a.first.c_str());
        fclose(f);
    }
};
account& books() {
    static account a;
    return a;
}
size_t most_shared() {
    const char* given = getenv("RUNTIME_SHARED");
    return given ? strtoul(given, NULL, 10) : 232448;
}
int compiled_for() {
    const char* given = getenv("RUNTIME_COMPILED");
    return given ? atoi(given) : 90;
}
cudaError_t launch(const void* kernel, size_t shared) {
    auto at = books().names.find(kernel);
    if (at == books().names.end() || shared > most_shared()) return cudaErrorInvalidDeviceFunction;
    books().launches[at->second]++, runtime_launches++;
    return cudaSuccess;
}
cudaError_t asked(const char* what) { return books().asked[what]++, cudaSuccess; }
struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pending;
cudaError_t last = cudaSuccess;
cudaError_t keep(cudaError_t e) { return e == cudaSuccess ? e : last = e; }
char* next_address = (char*)0x7000000000; // never touched
int resident(int threads, size_t shared) {
    int by_threads = 2048 / (threads < 32 ? 32 : threads),
        by_shared = (int)((most_shared() + 1024) / (shared + 1024));
    return by_threads < by_shared ? by_threads : by_shared;
}
std::map<char*, size_t>& pinned() {
    static std::map<char*, size_t> all;
    return all;
}
int driver_call(...) { return 0; }
} // namespace

extern "C" {
void** __cudaRegisterFatBinary(void*) {
    static void* handle;
    return books(), &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    books().names[host] = name, books().launches[name] += 0;
}
char __cudaInitModule(void**) { return 0; }
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    pending = { grid, block, shared, stream };
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    *grid = pending.grid, *block = pending.block, *shared = pending.shared, *(cudaStream_t*)stream = pending.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    return *kernel = (cudaKernel_t)host, cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t shared, cudaStream_t) {
    return keep(launch((const void*)kernel, shared));
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void**, size_t shared, cudaStream_t) {
    return keep(launch(kernel, shared));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* cfg, const void* kernel, void**) {
    return keep(launch(kernel, cfg->dynamicSmemBytes));
}

cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* n) { return *n = 1, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
    *value = what == cudaDevAttrComputeCapabilityMajor             ? 9
             : what == cudaDevAttrComputeCapabilityMinor           ? 0
             : what == cudaDevAttrMultiProcessorCount              ? 132
             : what == cudaDevAttrMaxSharedMemoryPerBlockOptin     ? (int)most_shared()
             : what == cudaDevAttrMaxSharedMemoryPerMultiprocessor ? (int)most_shared() + 1024
             : what == cudaDevAttrL2CacheSize                      ? 60 << 20
                                                                   : 0;
    return asked("cudaDeviceGetAttribute");
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "NVIDIA H200");
    return asked("cudaGetDeviceProperties");
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* kernel) {
    auto at = books().names.find(kernel);
    memset(a, 0, sizeof *a);
    a->ptxVersion = a->binaryVersion = compiled_for();
    // the library calls this to learn whether it was compiled for sm_90a
    a->maxThreadsPerBlock = at == books().names.end() || at->second.find("kbki_hopper_k") == std::string::npos ? 1024
                            : getenv("RUNTIME_COMPILED")                                                       ? 32
                                                                                                               : 96;
    return asked("cudaFuncGetAttributes");
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return asked("cudaFuncSetAttribute"); }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void*, int threads, size_t shared) {
    return *n = resident(threads, shared), asked("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}
cudaError_t cudaOccupancyMaxActiveClusters(int* n, const void*, const cudaLaunchConfig_t* cfg) {
    int per_sm = resident((int)cfg->blockDim.x, cfg->dynamicSmemBytes);
    return *n = 132 * per_sm / (int)cfg->attrs[0].val.clusterDim.x, asked("cudaOccupancyMaxActiveClusters");
}
cudaError_t cudaGetLastError(void) {
    cudaError_t e = last;
    return last = cudaSuccess, e;
}
const char* cudaGetErrorString(cudaError_t) { return "an error of the simulated runtime"; }

cudaError_t cudaMalloc(void** p, size_t bytes) {
    return *p = next_address, next_address += (bytes + 4095) / 4096 * 4096, cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t, cudaStream_t) {
    return cudaMalloc(p, bytes);
}
cudaError_t cudaMallocHost(void** p, size_t bytes) {
    *p = malloc(bytes), pinned()[(char*)*p] = bytes;
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) { return pinned().erase((char*)p), free(p), cudaSuccess; }
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
    return *pool = (cudaMemPool_t)8, cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* left, size_t* total) { return *left = *total = (size_t)1 << 30, cudaSuccess; }
cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind) { return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
    runtime_memset = { to, value, bytes };
    return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, size_t, int value, size_t width, size_t, cudaStream_t stream) {
    return cudaMemsetAsync(to, value, width, stream);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
    memset(a, 0, sizeof *a);
    auto at = pinned().upper_bound((char*)p);
    bool host = at != pinned().begin() && (char*)p < std::prev(at)->first + std::prev(at)->second;
    a->type = host ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    a->devicePointer = a->hostPointer = host ? (void*)p : NULL;
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** f, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
    if (found) *found = cudaDriverEntryPointSuccess;
    return *f = (void*)driver_call, cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return *s = NULL, cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return cudaErrorNotSupported; }
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) { return cudaErrorNotSupported; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) { return cudaErrorNotSupported; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
}
