// SPDX-License-Identifier: MIT OR Unlicense
// Kernels of 1 us to 10 ms whose times are compared with the durations that CUPTI records for the same launches:
//     accuracy --timer both --json x/cold.json; accuracy --timer both --hot --json x/hot.json; then
//     python3 tests/gpu/accuracy.py x
// The kernels differ in properties that could affect the bias of event times: memory traffic, number of blocks,
// shared memory.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include "accuracy.cuh"

static void measure(kb_state* kb, work_kernel kernel, const char* axis) {
    long long size = axis ? kb_int(kb, axis) : 0, n[3];
    work_elements(kernel, size, n);
    work w = { kernel, size, NULL, NULL, NULL };
    if (n[0]) w.a = KB_ALLOC(kb, float, n[0]), kb_fill(kb, w.a, n[0], KB_NORMAL);
    if (n[1]) w.b = KB_ALLOC(kb, float, n[1]);
    if (n[2]) w.c = KB_ALLOC(kb, float, n[2]), kb_fill(kb, w.b, n[1], KB_NORMAL);
    work_prepare(w);
    KB_TIME(kb) { work_launch(w, kb->stream); }
    if (kernel == COPY) kb_bytes(kb, 2048.0 * size);
}

KBENCH_IMPL(spin, one, KB_AXIS("cycles", SPIN_CYCLES)) { measure(kb, SPIN, "cycles"); }
KBENCH_IMPL(copy, one, KB_AXIS("kib", COPY_KIB)) { measure(kb, COPY, "kib"); }
KBENCH_IMPL(softmax, one, KB_AXIS("rows", SOFTMAX_ROWS)) { measure(kb, SOFTMAX, "rows"); }
KBENCH_IMPL(matmul, one, KB_AXIS("n", MATMUL_SIDES)) { measure(kb, MATMUL, "n"); }
KBENCH(shared_memory) { measure(kb, SHARED_MEMORY, NULL); }
KBENCH_MAIN()
