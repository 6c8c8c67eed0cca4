// SPDX-License-Identifier: MIT OR Unlicense
// Links the implementation of kbench from a separate object, kbench.o. Compiles as C, C++ and CUDA. -DONLY=n
// uses only one interface, to test which symbols it requires: 1 KBENCH, 2 kb_add, 3 kb_open, 4 kb_run. Prints
// the build of each record, and then runs like any program.
#include "kbench.h"
#include <stdio.h>
#include <string.h>
#ifndef ONLY
#define ONLY 0
#endif

#if ONLY == 0 || ONLY == 1
KBENCH(registered, KB_AXIS("n", 16, 64)) {
    int64_t n = kb_int(kb, "n");
    volatile double sum = 0;
    KB_TIME_HOST(kb) {
        for (int i = 0; i < (int)n; i++) sum = sum + i;
    }
}
#endif

#ifdef __CUDACC__
__global__ void scale(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
KBENCH(on_gpu) {
    float* x = KB_ALLOC(kb, float, 1024);
    KB_TIME(kb) { scale<<<4, 256, 0, kb->stream>>>(x); }
}
#endif

#if ONLY == 0 || ONLY == 2
static void added_body(kb_state* kb) {
    KB_TIME_HOST(kb) { kb_keep(kb); }
}
static kb_entry added;
#endif
#if ONLY == 0 || ONLY == 3 || ONLY == 4
static int said(const char* face, kb_result r) {
    int fine = r.status == KB_OK;
    printf("%s: %s%s\n", face, r.build, r.flags >> KB_FLAG_DEBUG_BUILD & 1 ? ", DEBUG_BUILD" : "");
    kb_result_free(&r);
    return fine;
}
static kb_desc described(const char* name) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = name;
    d.samples = 5;
    d.host = true;
    return d;
}
#endif
#if ONLY == 0 || ONLY == 4
static int calls;
static void call(kb_stream stream, void* user) { (void)stream, ++*(int*)user; }
#endif

int main(int argc, char** argv) {
    int fine = argc > 0;
#if ONLY == 0 || ONLY == 2
    added.operation = "added";
    added.body = added_body;
    kb_add(&added);
#endif
#if ONLY == 0 || ONLY == 3
    kb_desc opened = described("opened");
    kb_state* kb = kb_open(&opened);
    if (!kb) return 1;
    KB_TIME_HOST(kb) { kb_keep(kb); }
    fine &= said("kb_open", kb_close(kb));
    // kb_open must have an address, even if it is also a macro
    kb_state* (*open)(const kb_desc*) = kb_open;
    kb = open(&opened);
    if (!kb) return 1;
    KB_TIME_HOST(kb) { kb_keep(kb); }
    fine &= said("its pointer", kb_close(kb));
#endif
#if ONLY == 0 || ONLY == 4
    kb_desc run = described("run");
    fine &= said("kb_run", kb_run(&run, call, &calls)) && calls > 5;
#ifdef __cplusplus
    fine &= said("a lambda", kb_run(run, [](kb_stream) { ++calls; }));
    fine &= said("other languages", kb_run_from(&run, call, &calls, nullptr));
#endif
#endif
    fflush(stdout);
    int rc = kb_main(argc, argv);
    return fine ? rc : 1;
}
