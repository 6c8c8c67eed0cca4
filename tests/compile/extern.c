// SPDX-License-Identifier: MIT OR Unlicense
// A C file that times a kernel of a .cu file: compiled with -DKBENCH_CUDA and linked with the CUDA runtime.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

extern void halve_launch(float* x, int n, kb_stream stream); // kb_stream is cudaStream_t

KBENCH(halve_from_c) {
    int n = 1 << 24;
    float* x = KB_ALLOC(kb, float, n);
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME(kb) { halve_launch(x, n, kb->stream); }
    kb_bytes(kb, 8.0 * n);
}
KBENCH_MAIN()
