// SPDX-License-Identifier: MIT OR Unlicense
/*  Two CUDA kernels for one operation, over sizes and element types. Copy this file and kbench.h into a folder, and
    change the lines marked "yours".

    nvcc -O3 template_sweep.cu -o sweep && ./sweep --json sweep.json
    kbench --load sweep.json --html sweep.html       a page with figures; "make tool" makes kbench
    ./sweep -a n=1024:67108864:*4 --dtype f16        other sizes, one of the types                            */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <cuda_fp16.h>

template <class T> __global__ void one(const T* x, T* y, int64_t n) { // <- yours: the first kernel, the baseline
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;       // <- yours
    if (i < n) y[i] = (T)((float)x[i] * (float)x[i]);                 // <- yours
}
template <class T> __global__ void four(const T* x, T* y, int64_t n) { // <- yours: its rival, four elements a thread
    int64_t i = (int64_t)blockIdx.x * blockDim.x * 4 + threadIdx.x;    // <- yours
    for (int k = 0; k < 4 && i < n; k++, i += blockDim.x) y[i] = (T)((float)x[i] * (float)x[i]); // <- yours
}
#define AXES KB_DTYPE("f32", "f16"), KB_AXIS("n", 1 << 16, 1 << 20, 1 << 24), KB_AXIS("block", 128, 512) // <- yours

// All but the kernel, so that each has the same data, the same amounts and the same check.
template <class T> static void bench(kb_state* kb, void (*kernel)(const T*, T*, int64_t), int64_t each) {
    int64_t n = kb_int(kb, "n"), block = kb_int(kb, "block"); // <- yours: the axes, by name
    int64_t grid = (n + block * each - 1) / (block * each);   // <- yours
    T *x = KB_ALLOC(kb, T, n), *y = KB_ALLOC(kb, T, n);       // <- yours: on the GPU, freed for you
    kb_fill(kb, x, n, KB_NORMAL);                             // <- yours: what is in it
    KB_TIME(kb) { kernel<<<(unsigned)grid, (unsigned)block, 0, kb->stream>>>(x, y, n); } // <- yours: the launch
    kb_bytes(kb, 2.0 * sizeof(T) * n); // <- yours: what has to be read and written
    kb_flops(kb, (double)n);           // <- yours: and computed

    T* in = KB_ALLOC_HOST(kb, T, n); // the oracle: in double, on the host, from the input as the GPU had it
    double* want = KB_ALLOC_HOST(kb, double, n);
    if (!in || !want) return; // without memory the case gets a word, OOM, and no time
    kb_to_host(kb, in, x, sizeof(T) * n);
    for (int64_t i = 0; i < n; i++) want[i] = (double)(float)in[i] * (float)in[i]; // <- yours: the same, plainly
    kb_check(kb, y, want, n, sizeof(T) == 4 ? 1e-6 : 1e-3); // |y - want| <= this * (1 + |want|)
}
#define BENCH(kernel, each)                                 \
    kb->dtype == KB_F32   ? bench<float>(kb, kernel, each)  \
    : kb->dtype == KB_F16 ? bench<__half>(kb, kernel, each) \
                          : kb_skip(kb, "no kernel of this type")
KBENCH_IMPL(square, one, AXES) { BENCH(one, 1); }   // <- yours: operation and implementation
KBENCH_IMPL(square, four, AXES) { BENCH(four, 4); } // <- yours
KBENCH_MAIN()
