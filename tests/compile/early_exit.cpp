// SPDX-License-Identifier: MIT OR Unlicense
// If an exception leaves a timed block, the engine must learn of it before destructors of the benchmark function
// run: a destructor may wait for the stream, which waits for the engine. A small engine of three passes simulates
// kbench's engine.
#include "kbench.h"
#include "test.h"
#include <stdexcept>

static int left, left_when_destroyed, passes;
extern "C" int64_t kbi_next(kb_state*, bool, int) { return passes++ ? 0 : 3; }
extern "C" void kbi_leave(kb_state*) { ++left; }

struct outer {
    outer() { left = left_when_destroyed = passes = 0; }
    ~outer() { left_when_destroyed = left; }
};

enum ways { TO_THE_END, BREAK, RETURN, CONTINUE, THROW };
static void body(kb_state* kb, ways way) {
    outer o;
    int pass = 0;
    KB_TIME(kb) {
        if (++pass < 2) continue;
        if (way == BREAK) break;
        if (way == RETURN) return;
        if (way == CONTINUE) continue;
        if (way == THROW) throw std::runtime_error("in the second pass");
    }
}

int main() {
    kb_state kb = kb_state();
    body(&kb, TO_THE_END), CHECK(left == 0 && left_when_destroyed == 0);
    body(&kb, CONTINUE), CHECK(left == 0 && left_when_destroyed == 0);
    body(&kb, BREAK), CHECK(left == 1 && left_when_destroyed == 1);
    body(&kb, RETURN), CHECK(left == 1 && left_when_destroyed == 1);
    bool caught = false;
    try {
        body(&kb, THROW);
    } catch (const std::runtime_error&) { caught = true; }
    CHECK(caught && left == 1 && left_when_destroyed == 1);
    return test_end();
}
