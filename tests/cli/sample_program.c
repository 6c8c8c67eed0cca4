// SPDX-License-Identifier: MIT OR Unlicense
// A program with several operations, implementations, axes, dtypes and sizes, for command_line.sh and
// record_keys.sh. Different values of PROG_BUILD give different executables.
#include "kbench.h"
#ifndef PROG_BUILD
#define PROG_BUILD 1
#endif
const int prog_build = PROG_BUILD;

static void touch(kb_state* kb, int64_t n) {
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC(kb, float, n);
    if (!x || !y) return;
    kb_fill(kb, x, n, KB_NORMAL);
    KB_TIME(kb) {
        for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
        kb_keep(y);
    }
    kb_bytes(kb, 8.0 * (double)n);
    kb_flops(kb, (double)n);
    float want[4];
    kb_to_host(kb, want, x, sizeof want);
    for (int i = 0; i < 4; ++i) want[i] *= 2;
    kb_check(kb, y, want, 4, 1e-6);
}

#define LAYERNORM_SIZES                                                                              \
    KB_DTYPE("f32", "bf16"), KB_SIZE("small", "batch_size=1 sequence_length=4 tensor_dimension=64"), \
        KB_SIZE("medium", "batch_size=2 sequence_length=16 tensor_dimension=64"),                    \
        KB_SIZE("large", "batch_size=4 sequence_length=64 tensor_dimension=256"),                    \
        KB_SIZE("batch", "batch_size=1:8:*2 sequence_length=8 tensor_dimension=64")
static void layernorm(kb_state* kb) {
    touch(kb, kb_int(kb, "batch_size") * kb_int(kb, "sequence_length") * kb_int(kb, "tensor_dimension"));
}
KBENCH_IMPL(layernorm, naive, LAYERNORM_SIZES) { layernorm(kb); }
KBENCH_IMPL(layernorm, fused, LAYERNORM_SIZES) { layernorm(kb); }

KBENCH_IMPL(softmax, naive, KB_AXIS_STR("dir", "fwd", "bwd"), KB_DTYPE("f32", "f16"), KB_AXIS("rows", 4),
            KB_AXIS("cols", 32, 64)) {
    touch(kb, kb_int(kb, "rows") * kb_int(kb, "cols"));
}
KBENCH_IMPL(softmax, online, KB_AXIS_STR("dir", "fwd"), KB_DTYPE("f32", "f16"), KB_AXIS("rows", 4),
            KB_AXIS("cols", 32, 64)) {
    touch(kb, kb_int(kb, "rows") * kb_int(kb, "cols"));
}

// two KB_SIZEs contain the shape n=16, which must give only one case
KBENCH_IMPL(overlap, only, KB_SIZE("small", "n=16"), KB_SIZE("batch", "n=16:64:*2")) { touch(kb, kb_int(kb, "n")); }
KBENCH(silu) { touch(kb, 64); }
KBENCH(gelu_erf) { touch(kb, 64); }
KBENCH(gelu_tanh) { touch(kb, 64); }
KBENCH(mse) { touch(kb, 64); }
KBENCH(cross_entropy) { touch(kb, 64); }
KBENCH_IMPL(dropout, philox, KB_AXIS_REAL("p", 0.1, 0.5), KB_AXIS_STR("mode", "train", "eval"), KB_AXIS("n", 64)) {
    if (kb_real(kb, "p") < 0 || !kb_str(kb, "mode")[0]) kb_fail(kb, "bad axes");
    touch(kb, kb_int(kb, "n"));
}
KBENCH(slow) { // about 100 ms per run, so that it can be interrupted
    KB_TIME(kb) {
        volatile double x = 0;
        for (int i = 0; i < 50000000; ++i) x += 1;
    }
}
KBENCH_MAIN()
