// SPDX-License-Identifier: MIT OR Unlicense
// Provides the kernels of accuracy.cu to other benchmark harnesses. peers.py builds this file: with
// -DPEERS_NVBENCH as a program that uses nvbench, otherwise as a shared library for a script that launches the
// kernels.
#include "accuracy.cuh"
#include <stdio.h>
#include <string.h>

static const long long cycles[] = { SPIN_CYCLES }, kib[] = { COPY_KIB }, rows[] = { SOFTMAX_ROWS },
                       sides[] = { MATMUL_SIDES }, none[] = { 0 };
static const struct operation {
    const char *name, *axis;
    work_kernel kernel;
    const long long* sizes;
    int n;
} operations[] = { { "spin", "cycles", SPIN, cycles, sizeof cycles / sizeof *cycles },
                   { "copy", "kib", COPY, kib, sizeof kib / sizeof *kib },
                   { "softmax", "rows", SOFTMAX, rows, sizeof rows / sizeof *rows },
                   { "matmul", "n", MATMUL, sides, sizeof sides / sizeof *sides },
                   { "shared_memory", NULL, SHARED_MEMORY, none, 1 } };

__global__ void fill_some(float* p, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * (long long)blockDim.x)
        p[i] = (float)(int)((unsigned)i * 2654435761u) * 9.3132257e-10f;
}

static float* filled(long long n) {
    float* p = NULL;
    if (!n || cudaMalloc(&p, sizeof(float) * (size_t)n) != cudaSuccess) return NULL;
    fill_some<<<1024, 256>>>(p, n);
    cudaDeviceSynchronize();
    return p;
}

static work work_open(const operation& o, long long size) {
    long long n[3];
    work_elements(o.kernel, size, n);
    work w = { o.kernel, size, filled(n[0]), filled(n[1]), filled(n[2]) };
    work_prepare(w);
    return w;
}

static void work_close(const work& w) {
    cudaFree(w.a);
    cudaFree(w.b);
    cudaFree(w.c);
}

#ifdef PEERS_NVBENCH
#include <nvbench/nvbench.cuh>

static void measure(nvbench::state& state, const operation& o) {
    work w = work_open(o, o.axis ? (long long)state.get_int64(o.axis) : 0);
    state.exec([&w](nvbench::launch& launch) { work_launch(w, launch.get_stream()); });
    work_close(w);
}
static void spin_of(nvbench::state& state) { measure(state, operations[SPIN]); }
static void copy_of(nvbench::state& state) { measure(state, operations[COPY]); }
static void softmax_of(nvbench::state& state) { measure(state, operations[SOFTMAX]); }
static void matmul_of(nvbench::state& state) { measure(state, operations[MATMUL]); }
static void shared_memory_of(nvbench::state& state) { measure(state, operations[SHARED_MEMORY]); }
NVBENCH_BENCH(spin_of).set_name("spin").add_int64_axis("cycles", { SPIN_CYCLES });
NVBENCH_BENCH(copy_of).set_name("copy").add_int64_axis("kib", { COPY_KIB });
NVBENCH_BENCH(softmax_of).set_name("softmax").add_int64_axis("rows", { SOFTMAX_ROWS });
NVBENCH_BENCH(matmul_of).set_name("matmul").add_int64_axis("n", { MATMUL_SIDES });
NVBENCH_BENCH(shared_memory_of).set_name("shared_memory");
#else
static work now;

// Returns the name that kbench gives to case i, in the order of kbench's table; NULL after the last case.
extern "C" const char* peers_name(int i) {
    static char name[64];
    for (const operation& o : operations) {
        if (i < o.n && o.axis)
            return snprintf(name, sizeof name, "%s/impl=one/%s=%lld", o.name, o.axis, o.sizes[i]), name;
        if (i < o.n) return snprintf(name, sizeof name, "%s/impl=default", o.name), name;
        i -= o.n;
    }
    return NULL;
}

// Selects the case that the next launches run, and frees the case selected before. Returns 0, or an error code of
// the CUDA runtime.
extern "C" int peers_open(int i) {
    work_close(now);
    memset(&now, 0, sizeof now);
    for (const operation& o : operations) {
        if (i >= 0 && i < o.n) now = work_open(o, o.sizes[i]);
        i -= o.n;
    }
    return (int)cudaGetLastError();
}

extern "C" int peers_launch(void* stream) {
    work_launch(now, (cudaStream_t)stream);
    return (int)cudaPeekAtLastError();
}
#endif
