// SPDX-License-Identifier: MIT OR Unlicense
/*  Two CUDA kernels for one operation, over sizes and element types. Copy this file and kbench.h into a folder, and
    change the lines marked "yours".

    nvcc -O3 template_sweep.cu -o sweep && ./sweep --json sweep.json
    kbench --load sweep.json --html sweep.html       a page with figures; "make tool" builds kbench
    ./sweep -a n=1024:67108864:*4 --dtype f16        other sizes, and one of the types                        */
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <cuda_fp16.h>

template <class T> __global__ void one(const T* x, T* y, int64_t n) { // <- yours: the first kernel, the baseline
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;       // <- yours
    if (i < n) y[i] = (T)((float)x[i] * (float)x[i]);                 // <- yours
}
template <class T> __global__ void four(const T* x, T* y, int64_t n) { // <- yours: second kernel
    int64_t i = (int64_t)blockIdx.x * blockDim.x * 4 + threadIdx.x;    // <- yours
    for (int k = 0; k < 4 && i < n; k++, i += blockDim.x) y[i] = (T)((float)x[i] * (float)x[i]); // <- yours
}
#define AXES KB_DTYPE("f32", "f16"), KB_AXIS("n", 1 << 16, 1 << 20, 1 << 24), KB_AXIS("block", 128, 512) // <- yours

// The benchmark function of both kernels. Both kernels therefore get the same data, byte counts and check.
template <class T> static void bench(kb_state* kb, void (*kernel)(const T*, T*, int64_t), int64_t each) {
    int64_t n = kb_int(kb, "n"), block = kb_int(kb, "block"); // <- yours: the axes, by name
    int64_t grid = (n + block * each - 1) / (block * each);   // <- yours
    T *x = KB_ALLOC(kb, T, n), *y = KB_ALLOC(kb, T, n);       // <- yours: GPU buffers; kbench frees them
    kb_fill(kb, x, n, KB_NORMAL);                             // <- yours: the input
    T* in = kb_host(kb, x);                                   // a copy on the host, for the check
    KB_TIME(kb) { kernel<<<(unsigned)grid, (unsigned)block, 0, kb->stream>>>(x, y, n); } // <- yours: the launch
    kb_bytes(kb, 2.0 * sizeof(T) * n); // <- yours: bytes that must be read and written
    kb_flops(kb, (double)n);           // <- yours: floating-point operations
    // <- yours: the expected value of each y[i], computed in double precision on the host, and a tolerance.
    // The check passes if |y[i] - expected| <= tolerance * (1 + |expected|).
    KB_CHECK_EACH(kb, y, n, i, (double)(float)in[i] * (float)in[i], sizeof(T) == 4 ? 1e-6 : 1e-3);
}
#define BENCH(kernel, each)                                 \
    kb->dtype == KB_F32   ? bench<float>(kb, kernel, each)  \
    : kb->dtype == KB_F16 ? bench<__half>(kb, kernel, each) \
                          : kb_skip(kb, "no kernel of this type")
KBENCH_IMPL(square, one, AXES) { BENCH(one, 1); }   // <- yours: operation and implementation
KBENCH_IMPL(square, four, AXES) { BENCH(four, 4); } // <- yours
KBENCH_MAIN()
