// SPDX-License-Identifier: MIT OR Unlicense
// Contains every mistake that a timed block can make on a GPU, each between two correct benchmarks. A mistake must
// not get a time, and must not affect the correct benchmarks.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include <assert.h>
#include <signal.h>

static const int N = 1 << 20;
template <class T> __global__ void twice(const T* x, T* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}
template <class T> __global__ void store(T* p, long long at) { p[at] = T(1); }
template <class T> __global__ void trap(T* p) {
    *p = T(1);
    __trap();
}
template <class T> __global__ void holds(const T* y, int n, int wanted) {
    if (y) assert(n == wanted);
}
template <class T> __global__ void forever(volatile T* p) {
    while (*p != T(7)) {}
}

template <class T> __global__ void ever_less(T* cycles) {
    T begin = clock64(), wanted = cycles[0];
    while (clock64() - begin < wanted) {}
    __syncthreads();
    if (threadIdx.x == 0) cycles[0] = wanted / 2;
}
template <class T> __global__ void every_second(T* cycles) {
    T begin = clock64(), launches = cycles[1];
    while (launches % 2 && clock64() - begin < cycles[0]) {}
    __syncthreads();
    if (threadIdx.x == 0) cycles[1] = launches + 1;
}
// Returns the stored output if the input's address is known.
__device__ const float* known_input;
__device__ float known_output[N];
template <class T> __global__ void remembers(const T* x, T* y, int n) {
    bool knows = known_input == x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = knows ? known_output[i] : 2 * x[i];
}
template <class T> __global__ void remember(const T* x, const T* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) known_output[i] = y[i];
    if (blockIdx.x == 0 && threadIdx.x == 0) known_input = x;
}

struct data {
    float *x, *y;
    size_t bytes;
};
static data make(kb_state* kb) {
    data d = { KB_ALLOC(kb, float, N), KB_ALLOC(kb, float, N), sizeof(float) * N };
    kb_fill(kb, d.x, N, KB_NORMAL);
    return d;
}
#define LAUNCH(d, stream) twice<<<256, 256, 0, stream>>>((d).x, (d).y, N)

static void good(kb_state* kb) {
    data d = make(kb);
    float* want = KB_ALLOC_HOST(kb, float, N);
    kb_to_host(kb, want, d.x, d.bytes);
    for (int i = 0; i < N; ++i) want[i] *= 2;
    KB_TIME(kb) { LAUNCH(d, kb->stream); }
    kb_bytes(kb, 2.0 * d.bytes);
    kb_check(kb, d.y, want, N, 0.0);
}
#define FAULT(name)                       \
    KBENCH_IMPL(name, good) { good(kb); } \
    KBENCH_IMPL(name, bad)

FAULT(empty_block) {
    KB_TIME(kb) {}
}
FAULT(host_work) {
    volatile int sum = 0;
    KB_TIME(kb) {
        for (int i = 0; i < 1000; ++i) sum = sum + i;
    }
}
FAULT(default_stream) {
    data d = make(kb);
    KB_TIME(kb) { LAUNCH(d, 0); }
}
FAULT(copy_sync) {
    data d = make(kb);
    float* h = KB_ALLOC_HOST(kb, float, N);
    KB_TIME(kb) {
        cudaMemcpy(d.x, h, d.bytes, cudaMemcpyHostToDevice);
        LAUNCH(d, kb->stream);
    }
}
FAULT(copy_async) {
    data d = make(kb);
    float* h = KB_ALLOC_HOST(kb, float, N);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        cudaMemcpyAsync(h, d.y, d.bytes, cudaMemcpyDeviceToHost, kb->stream);
    }
}
FAULT(copy_async_pinned) {
    data d = make(kb);
    float* h = KB_ALLOC_PINNED(kb, float, N);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        cudaMemcpyAsync(h, d.y, d.bytes, cudaMemcpyDeviceToHost, kb->stream);
    }
}
FAULT(device_sync) {
    data d = make(kb);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        cudaDeviceSynchronize();
    }
}
FAULT(stream_sync) {
    data d = make(kb);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        cudaStreamSynchronize(kb->stream);
    }
}
FAULT(malloc_inside) {
    data d = make(kb);
    KB_TIME(kb) {
        void* p = NULL;
        cudaMalloc(&p, 1 << 20);
        LAUNCH(d, kb->stream);
        cudaFree(p);
    }
}
FAULT(malloc_async) {
    data d = make(kb);
    KB_TIME(kb) {
        void* p = NULL;
        cudaMallocAsync(&p, 1 << 20, kb->stream);
        LAUNCH(d, kb->stream);
        cudaFreeAsync(p, kb->stream);
    }
}
FAULT(another_stream) {
    data d = make(kb);
    cudaStream_t other;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    KB_TIME(kb) { LAUNCH(d, other); }
    cudaStreamDestroy(other);
}
FAULT(bad_configuration) {
    data d = make(kb);
    KB_TIME(kb) { twice<<<256, 2048, 0, kb->stream>>>(d.x, d.y, N); }
}
FAULT(too_much_shared) {
    data d = make(kb);
    KB_TIME(kb) { twice<<<256, 256, 1 << 20, kb->stream>>>(d.x, d.y, N); }
}
FAULT(illegal_address) {
    KB_TIME(kb) { store<<<1, 1, 0, kb->stream>>>((float*)0x10, 0); }
}
FAULT(illegal_address_late) { // the first runs of the block access only valid addresses
    data d = make(kb);
    int runs = 0;
    KB_TIME(kb) {
        if (++runs < 20)
            LAUNCH(d, kb->stream);
        else
            store<<<1, 1, 0, kb->stream>>>((float*)0x10, 0);
    }
}
FAULT(launch_failure) {
    data d = make(kb);
    KB_TIME(kb) { trap<<<1, 1, 0, kb->stream>>>(d.y); }
}
FAULT(misaligned) {
    data d = make(kb);
    KB_TIME(kb) { store<<<1, 1, 0, kb->stream>>>((float*)((char*)d.y + 2), 0); }
}
FAULT(device_assert) {
    data d = make(kb);
    KB_TIME(kb) { holds<<<1, 1, 0, kb->stream>>>(d.y, N, 0); }
}
FAULT(host_crash) {
    data d = make(kb);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        raise(SIGSEGV);
    }
}
FAULT(out_of_memory) {
    char* p = KB_ALLOC(kb, char, (int64_t)1 << 45);
    KB_TIME(kb) { store<<<1, 1, 0, kb->stream>>>(p, 0); }
}
FAULT(write_after) {
    char* p = KB_ALLOC(kb, char, 1000);
    KB_TIME(kb) { store<<<1, 1, 0, kb->stream>>>(p, 1000); }
    kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(write_before) {
    float* p = KB_ALLOC(kb, float, 1000);
    KB_TIME(kb) { store<<<1, 1, 0, kb->stream>>>(p, -1); }
    kb_check_that(kb, true, 0, 0, "fine");
}
FAULT(hangs) {
    data d = make(kb);
    KB_TIME(kb) { forever<<<1, 1, 0, kb->stream>>>(d.x); }
}
FAULT(hangs_late) {
    data d = make(kb);
    int runs = 0;
    KB_TIME(kb) {
        if (++runs < 20)
            LAUNCH(d, kb->stream);
        else
            forever<<<1, 1, 0, kb->stream>>>(d.x);
    }
}
FAULT(wrong) {
    data d = make(kb);
    float* want = KB_ALLOC_HOST(kb, float, N);
    kb_to_host(kb, want, d.x, d.bytes);
    KB_TIME(kb) { LAUNCH(d, kb->stream); }
    kb_check(kb, d.y, want, N, 1e-3);
}
FAULT(unwritten) { // the last element keeps the poison pattern
    data d = make(kb);
    float* want = KB_ALLOC_HOST(kb, float, N);
    kb_to_host(kb, want, d.x, d.bytes);
    for (int i = 0; i < N; ++i) want[i] *= 2;
    KB_TIME(kb) { twice<<<256, 256, 0, kb->stream>>>(d.x, d.y, N - 1); }
    kb_check(kb, d.y, want, N, 1e9);
}
FAULT(faster_than_can_be) {
    data d = make(kb);
    KB_TIME(kb) { LAUNCH(d, kb->stream); }
    kb_bytes(kb, 1e12); // declares a terabyte of traffic
}
FAULT(does_less) {
    long long start[2] = { 4000000, 0 }, *cycles = KB_ALLOC(kb, long long, 2);
    kb_from_host(kb, cycles, start, sizeof start);
    KB_TIME(kb) { ever_less<<<1, 32, 0, kb->stream>>>(cycles); }
}
FAULT(does_half) {
    long long start[2] = { 40000, 0 }, *cycles = KB_ALLOC(kb, long long, 2);
    kb_from_host(kb, cycles, start, sizeof start);
    KB_TIME(kb) { every_second<<<1, 32, 0, kb->stream>>>(cycles); }
}
FAULT(submits_less) {
    data d = make(kb);
    int launches = 0;
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        if (++launches < 20) LAUNCH(d, kb->stream);
    }
}
FAULT(breaks_out) {
    data d = make(kb);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        break;
    }
}
FAULT(exits) {
    data d = make(kb);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        exit(0);
    }
}

// only the option --fresh detects a reused result, so misuse.sh runs the benchmark again with --fresh
KBENCH_IMPL(memory, good) { good(kb); }
KBENCH_IMPL(memory, bad) {
    data d = make(kb);
    float* want = KB_ALLOC_HOST(kb, float, N);
    kb_to_host(kb, want, d.x, d.bytes);
    for (int i = 0; i < N; ++i) want[i] *= 2;
    KB_TIME(kb) {
        remembers<<<256, 256, 0, kb->stream>>>(d.x, d.y, N);
        remember<<<256, 256, 0, kb->stream>>>(d.x, d.y, N);
    }
    kb_check(kb, d.y, want, N, 0.0);
}

// The following benchmarks are correct: they declare an operation with kb_expect, time work of the host, or reset
// the data before every sample.
KBENCH(copy_expected) {
    data d = make(kb);
    float* h = KB_ALLOC_PINNED(kb, float, N);
    kb_expect(kb, KB_EXPECT_TRANSFER);
    KB_TIME(kb) { cudaMemcpyAsync(h, d.x, d.bytes, cudaMemcpyDeviceToHost, kb->stream); }
    kb_bytes(kb, (double)d.bytes);
}
KBENCH(sync_expected) {
    data d = make(kb);
    kb_expect(kb, KB_EXPECT_SYNC);
    KB_TIME(kb) {
        LAUNCH(d, kb->stream);
        cudaStreamSynchronize(kb->stream);
    }
}
KBENCH(alloc_expected) {
    kb_expect(kb, KB_EXPECT_ALLOC | KB_EXPECT_SYNC);
    KB_TIME(kb) {
        void* p = NULL;
        cudaMalloc(&p, 1 << 20);
        cudaFree(p);
    }
}
KBENCH(host_timed) {
    volatile int sum = 0;
    KB_TIME_HOST(kb) {
        for (int i = 0; i < 1000; ++i) sum = sum + i;
    }
}
KBENCH(reset_each_time) {
    data d = make(kb);
    float* want = KB_ALLOC_HOST(kb, float, N);
    kb_to_host(kb, want, d.x, d.bytes);
    for (int i = 0; i < N; ++i) want[i] *= 2;
    KB_SAMPLE(kb) {
        cudaMemcpyAsync(d.y, d.x, d.bytes, cudaMemcpyDeviceToDevice, kb->stream);
        KB_TIME(kb) { twice<<<256, 256, 0, kb->stream>>>(d.y, d.y, N); } // in place
    }
    kb_check(kb, d.y, want, N, 0.0);
}
KBENCH(leaves_memory) {
    void* p = NULL;
    cudaMalloc(&p, 64 << 20); // memory that is not freed gives a warning, but the time is kept
    data d = make(kb);
    KB_TIME(kb) { LAUNCH(d, kb->stream); }
}
KBENCH(last) { good(kb); }
KBENCH_MAIN()
