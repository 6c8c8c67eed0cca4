// SPDX-License-Identifier: MIT OR Unlicense
// Benchmarks that break the device, its context or kb->stream for the process, each followed by a correct one.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

static __global__ void twice(float* y, const float* x, int n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = 2 * x[i];
}
static __global__ void traps() { __trap(); }
enum { N = 1 << 20 };
#define CASE(name, before, inside, after)                               \
    KBENCH(name) {                                                      \
        before;                                                         \
        float *x = KB_ALLOC(kb, float, N), *y = KB_ALLOC(kb, float, N); \
        kb_fill(kb, x, N, KB_NORMAL);                                   \
        KB_TIME(kb) {                                                   \
            twice<<<N / 256, 256, 0, kb->stream>>>(y, x, N);            \
            inside;                                                     \
        }                                                               \
        after;                                                          \
    }
#define NONE (void)0
CASE(reset_before, cudaDeviceReset(), NONE, NONE)
CASE(good_1, NONE, NONE, NONE)
CASE(reset_inside, NONE, cudaDeviceReset(), NONE)
CASE(good_2, NONE, NONE, NONE)
CASE(reset_after, NONE, NONE, cudaDeviceReset())
CASE(good_3, NONE, NONE, NONE)
CASE(destroy_inside, NONE, cudaStreamDestroy(kb->stream), NONE)
CASE(good_4, NONE, NONE, NONE)
CASE(destroy_after, NONE, NONE, cudaStreamDestroy(kb->stream))
CASE(good_5, NONE, NONE, NONE)
CASE(trap, NONE, (traps<<<1, 1, 0, kb->stream>>>()), NONE)
CASE(good_6, NONE, NONE, NONE)
KBENCH_MAIN()
