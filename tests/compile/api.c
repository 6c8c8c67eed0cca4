// SPDX-License-Identifier: MIT OR Unlicense
// Uses every function of the API once, in a file without the implementation, compiled as C and as C++.
#include "kbench.h"
#include <string.h>

static float from[256], to[256];

KBENCH(api_all) {
    int n = (int)kb_int(kb, "none");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC_HOST(kb, float, n);
    kb_f16* h = KB_ALLOC_PINNED(kb, kb_f16, n);
    if (!x || !y || !h) return;
    kb_fill(kb, x, n, KB_NORMAL);
    kb_fill(kb, h, n, KB_UNIFORM);
    kb_expect(kb, KB_EXPECT_TRANSFER | KB_EXPECT_SYNC);
    KB_SAMPLE(kb) {
        memset(to, 0, sizeof to);
        KB_TIME(kb) {
            memcpy(to, from, sizeof to);
            kb_keep(to);
        }
    }
    kb_bytes(kb, 2.0 * sizeof to);
    kb_flops(kb, 1.0);
    kb_bytes_as(kb, 2.0 * sizeof to, KB_COPY);
    kb_flops_as(kb, 1.0, KB_TF32);
    kb_items(kb, 1.0);
    kb_queries(kb, 1.0);
    kb_count(kb, "rows", 1.0, "");
    kb_to_host(kb, y, x, sizeof(float));
    (void)kb_host(kb, x);
    kb_from_host(kb, x, y, sizeof(float));
    kb_check(kb, x, y, n, 1e-6);
    kb_check_norm(kb, x, y, n, 1e-6);
    kb_check_ulp(kb, x, y, n, 1.0);
    kb_check_that(kb, n >= 0, 0.0, 1.0, "n is %d", n);
    kb_note(kb, "%s", kb_dtype_name(kb->dtype));
}
KBENCH_IMPL(api_axes, first, KB_AXIS("n", 1, 2, 3), KB_AXIS_REAL("p", 0.5, 1.0), KB_AXIS_STR("mode", "a", "b"),
            KB_DTYPE("f32", "f64"), KB_SIZE("small", "n=1 p=0.5")) {
    kb_skip(kb, "%f %s", kb_real(kb, "p"), kb_str(kb, "mode"));
}
KBENCH_IMPL(api_axes, second) {
    KB_TIME_HOST(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
    kb_fail(kb, "word");
}

static void call(kb_stream stream, void* user) { (void)stream, (void)user; }

#ifdef __cplusplus
extern "C"
#endif
    int
    api_use(void); // main of the other file calls api_use
int api_use(void) {
    kb_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "api_use";
    desc.samples = 10;
    kb_state* kb = kb_open(&desc);
    if (!kb) return 1;
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
    kb_result results[2];
    results[0] = kb_close(kb);
    results[1] = kb_run(&desc, call, NULL);
    kb_print(results, 2);
    for (int i = 0; i < 2; ++i) kb_result_free(&results[i]);
    double samples[3] = { 1.0, 2.0, 3.0 };
    kb_stats stats = kb_summarize(samples, 3);
    (void)stats;
    return kb_dtype_of(kb_dtype_name(KB_F32)) == KB_F32 && kb_dtype_size(KB_F64) == 8 &&
                   kb_flag_is_error(KB_FLAG_OOM) && kb_flag_name(KB_FLAG_OOM) && kb_flag_advice(KB_FLAG_OOM)
               ? 0
               : 1;
}
