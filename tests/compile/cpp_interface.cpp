// SPDX-License-Identifier: MIT OR Unlicense
// Tests the C++ interface: a lambda as benchmark function, descriptions passed by reference, overloads of fill and
// check.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

static int register_count;
KBENCH_IMPL(cxx_body, lambda, KB_AXIS("n", 16)) {
    int64_t n = kb_int(kb, "n");
    double* x = KB_ALLOC(kb, double, n);
    const double* seen = x;
    kb_fill(kb, x, n, KB_IOTA);
    auto body = [&] { kb_keep(seen); };
    KB_TIME(kb) { body(); }
    double want[16];
    for (int i = 0; i < 16; ++i) want[i] = i;
    kb_check(kb, seen, want, n, 0.0);
    ++register_count;
}

int main(int argc, char** argv) {
    kb_desc desc = kb_desc();
    desc.name = "from_a_lambda";
    desc.samples = 20;
    int calls = 0;
    kb_result r = kb_run(desc, [&](kb_stream) {
        ++calls;
        kb_keep(calls);
    });
    bool fine = calls > 20 && r.status == KB_OK && r.samples == 20 && r.time_ms >= 0;
    kb_result_free(&r);
    kb_state* kb = kb_open(desc);
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
    r = kb_close(kb);
    fine = fine && r.status == KB_OK && r.samples == 20;
    kb_result_free(&r);
    int rc = kb_main(argc, argv);
    return fine ? rc : 1;
}
