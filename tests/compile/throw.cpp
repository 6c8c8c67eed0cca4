// SPDX-License-Identifier: MIT OR Unlicense
// Benchmark functions that throw exceptions in every possible place.
#include "kbench.h"
#include <stdexcept>

// A destructor waits for this flag. On a simulated or real GPU, the destructor would wait for the stream while the
// launch gate is closed.
struct holds_memory {
    int* p;
    holds_memory() : p(new int(7)) {}
    ~holds_memory() { delete p; }
};
static void turn() {
    static volatile int sum;
    for (int i = 0; i < 200; i++) sum = sum + i;
}

KBENCH_IMPL(throws, first) {
    KB_TIME_HOST(kb) turn();
}
KBENCH_IMPL(throws, before) {
    if (kb) throw std::runtime_error("before \"the\" block");
    KB_TIME_HOST(kb) turn();
}
KBENCH_IMPL(throws, inside) {
    holds_memory m;
    KB_TIME_HOST(kb) throw std::runtime_error("inside the block");
}
KBENCH_IMPL(throws, late) { // while the other implementations run in interleaved rounds
    static int passes;
    holds_memory m;
    KB_TIME_HOST(kb) {
        turn();
        if (++passes == 200) throw std::length_error("in the 200th pass");
    }
}
KBENCH_IMPL(throws, after) {
    KB_TIME_HOST(kb) turn();
    throw std::logic_error("after the block");
}
KBENCH_IMPL(throws, in_sample) {
    KB_SAMPLE(kb) {
        holds_memory m;
        if (kb) throw std::bad_alloc();
        KB_TIME_HOST(kb) turn();
    }
}
KBENCH_IMPL(throws, text) {
    KB_TIME_HOST(kb) turn();
    throw "a text";
}
KBENCH_IMPL(throws, number) {
    KB_TIME_HOST(kb) turn();
    throw 42;
}
KBENCH_IMPL(throws, caught) {
    KB_TIME_HOST(kb) {
        try {
            throw 1;
        } catch (int) { turn(); }
    }
}
KBENCH_IMPL(throws, twice) { // a case that has already failed keeps its first flag
    kb_fail(kb, "failed first");
    throw std::runtime_error("and then threw");
}
KBENCH_IMPL(throws, last) {
    KB_TIME_HOST(kb) turn();
}
KBENCH(leaves) {
    holds_memory m;
    KB_TIME_HOST(kb) {
        turn();
        break;
    }
}

static void added_body(kb_state* kb) {
    KB_TIME_HOST(kb) turn();
    throw std::runtime_error("from a table");
}
static kb_entry added;

int main(int argc, char** argv) {
    kb_desc desc = kb_desc();
    desc.name = "run";
    desc.samples = 10;
    desc.host = true;
    int calls = 0;
    kb_result r = kb_run(desc, [&](kb_stream) {
        if (++calls == 5) throw std::runtime_error("from a lambda");
    });
    bool fine = r.status == KB_FAILED && r.flags >> KB_FLAG_CRASHED & 1;
    const char* want = "C++ exception: from a lambda";
    for (int i = 0; fine && (want[i] || r.message[i]); i++) fine = want[i] == r.message[i];
    kb_result_free(&r);
    r = kb_run(desc, [&](kb_stream) { turn(); });
    fine = fine && r.status == KB_OK;
    kb_result_free(&r);
    added.operation = "added";
    added.body = added_body;
    kb_add(&added);
    int rc = kb_main(argc, argv);
    return fine ? rc : 3;
}
