// SPDX-License-Identifier: MIT OR Unlicense
// Tests how kbench analyses the CUDA calls of a timed block: which work kb->stream waits for, and which calls are
// errors.
#include "test.h"
#include "virtual_gpu.h"

enum {
    CALL_LAUNCH = KBI_SUBMITS | KBI_KERNEL,
    CALL_GRAPH = KBI_SUBMITS | KBI_UNCAPTURED,
    CALL_HOST = KBI_SUBMITS | KBI_HOST_FUNCTION,
    CALL_PREFETCH = KBI_SUBMITS | KBI_UNCAPTURED,
    CALL_SET = KBI_SUBMITS,
    CALL_COPY = KBI_SUBMITS | KBI_COPIES,
    CALL_COPY_NOW = KBI_COPIES | KBI_HOST_STREAM | KBI_UNCAPTURED,
    CALL_ALLOC = KBI_ALLOCATES | KBI_UNCAPTURED,
    CALL_ALLOC_LATER = KBI_ALLOCATES,
    CALL_RECORD = KBI_RECORDS,
    CALL_WAIT = KBI_STREAM_WAITS,
    CALL_SYNC = KBI_HOST_ALL | KBI_UNCAPTURED,
    CALL_SYNC_STREAM = KBI_HOST_STREAM | KBI_UNCAPTURED,
    CALL_SYNC_EVENT = KBI_HOST_EVENT | KBI_UNCAPTURED,
    CALL_CREATE = KBI_CREATES,
    CALL_BEGIN_CAPTURE = KBI_CAPTURES | KBI_UNCAPTURED,
    CALL_OTHER = 0,
    CALL_FAILED = KBI_UNCAPTURED
};
enum { KB = 100, A, B, C, E = 200, F, G };
static kbi_cuda_call made[600];
static int n;
static kbi_verdict v;

static kbi_cuda_call* call(int kind, const char* name, uint64_t stream, uint64_t object) {
    kbi_cuda_call* c = &made[n++];
    memset(c, 0, sizeof *c);
    c->kind = kind, c->number = n, c->name = name, c->stream = stream, c->object = object;
    return c;
}
static void starts(uint64_t stream) { strcpy(call(CALL_LAUNCH, "cudaLaunchKernel", stream, 0)->kernel, "spin"); }
static void note(uint64_t event, uint64_t stream) { call(CALL_RECORD, "cudaEventRecord", stream, event); }
static void wait_for(uint64_t stream, uint64_t event) { call(CALL_WAIT, "cudaStreamWaitEvent", stream, event); }
static void create(uint64_t stream) { call(CALL_CREATE, "cudaStreamCreate", stream, 0); }
static void judge(unsigned expect) {
    kbi_streams_judge(&v, made, n, KB, expect);
    n = 0;
}
#define FINE(expect) (judge(expect), CHECK_INT(v.known, 1), CHECK_INT(v.flag, -1), CHECK_STR(v.message, ""))
#define WRONG(expect, word, says) (judge(expect), CHECK_INT(v.flag, word), CHECK_HAS(v.message, says))
#define NOT_WAITED "another stream that kb->stream does not wait for"

static void fork_to(uint64_t to) { note(E, KB), wait_for(to, E); }
static void join_from(uint64_t from) { note(F, from), wait_for(KB, F); }

static void test_order(void) {
    starts(KB);
    FINE(0);
    CHECK(v.captures), CHECK_STR(v.note, ""), CHECK_INT(v.work, 1);
    fork_to(A), starts(A), join_from(A), starts(KB);
    FINE(0);
    fork_to(A), wait_for(B, E), starts(A), starts(B), note(F, A), note(G, B), wait_for(KB, F), wait_for(KB, G);
    FINE(0);
    fork_to(A), starts(A), note(F, A), wait_for(B, F), starts(B), note(G, B), wait_for(KB, G);
    FINE(0);
    create(A), fork_to(A), starts(A), join_from(A);
    FINE(0);
    starts(KB), starts(A);
    WRONG(0, KB_FLAG_SIDE_STREAM, "cudaLaunchKernel of spin, call 2 of the block: its work went to " NOT_WAITED);
    fork_to(A), wait_for(B, E), starts(A), starts(B), join_from(A);
    WRONG(0, KB_FLAG_SIDE_STREAM, "call 5 of the block");
    fork_to(A), starts(A), note(F, A), starts(A), wait_for(KB, F);
    WRONG(0, KB_FLAG_SIDE_STREAM, "call 5 of");
    fork_to(A), starts(A), note(F, A), wait_for(B, F), starts(B), wait_for(KB, F);
    WRONG(0, KB_FLAG_SIDE_STREAM, "call 6 of");
    // A stream that is joined but was not forked from kb->stream: its work may begin before the timed span.
    starts(A), join_from(A), starts(KB);
    WRONG(0, KB_FLAG_SIDE_STREAM,
          "call 1 of the block: its work went to another stream that does not wait for kb->stream");
    // A wait for an event that the block did not record does not order any work. If an event is recorded twice, a
    // later wait uses the second record.
    wait_for(A, E), starts(A), join_from(A);
    WRONG(0, KB_FLAG_SIDE_STREAM, "does not wait for kb->stream");
    fork_to(A), starts(A), note(F, A), note(F, KB), wait_for(KB, F);
    WRONG(0, KB_FLAG_SIDE_STREAM, NOT_WAITED);
    // If the runtime gives a new stream the handle of an old one, kbench treats the two as different streams.
    fork_to(A), starts(A), join_from(A), create(A), starts(A);
    WRONG(0, KB_FLAG_SIDE_STREAM, "call 7 of");
    // The default streams. With KB_EXPECT_NO_CAPTURE, the legacy default stream and kb->stream wait for each
    // other.
    starts(KB), starts(KBI_STREAM_LEGACY);
    WRONG(0, KB_FLAG_SIDE_STREAM, "call 2 of the block: its work went to the default stream");
    starts(KB), starts(KBI_STREAM_LEGACY);
    FINE(KB_EXPECT_NO_CAPTURE);
    starts(KBI_STREAM_LEGACY), starts(A);
    WRONG(KB_EXPECT_NO_CAPTURE, KB_FLAG_SIDE_STREAM, "call 2 of");
    starts(KBI_STREAM_PER_THREAD);
    WRONG(0, KB_FLAG_SIDE_STREAM, "the per-thread default stream that kb->stream does not wait for");
    // A host synchronisation also joins streams, but kbench reports it as SYNC_INSIDE.
    fork_to(A), starts(A), call(CALL_SYNC_STREAM, "cudaStreamSynchronize", A, 0), starts(KB);
    WRONG(0, KB_FLAG_SYNC_INSIDE, "cudaStreamSynchronize, call 4");
    fork_to(A), starts(A), call(CALL_SYNC, "cudaDeviceSynchronize", 0, 0);
    FINE(KB_EXPECT_NO_CAPTURE);
    fork_to(A), starts(A), note(F, A), call(CALL_SYNC_EVENT, "cudaEventSynchronize", 0, F);
    FINE(KB_EXPECT_NO_CAPTURE);
    fork_to(A), starts(A), call(CALL_SYNC_STREAM, "cudaStreamQuery", A, 0)->error = KBI_ERROR_NOT_READY;
    WRONG(KB_EXPECT_NO_CAPTURE, KB_FLAG_SIDE_STREAM, NOT_WAITED);
    // If a block may synchronise or allocate, kbench times it until all work on the GPU has ended.
    starts(A);
    FINE(KB_EXPECT_SYNC);
    // Two streams can also be ordered by a value in memory: one stream writes the value, and the other waits for
    // it.
    fork_to(A), starts(A), call(CALL_RECORD, "cuStreamWriteValue32", A, 7),
        call(CALL_WAIT, "cuStreamWaitValue32", KB, 7);
    FINE(0);
    for (int i = 0; i < 100; i++) starts((uint64_t)(1000 + i));
    WRONG(0, KB_FLAG_SIDE_STREAM, "call 1 of the block");
    for (int i = 0; i < 100; i++) fork_to((uint64_t)(1000 + i)), starts((uint64_t)(1000 + i)), join_from((uint64_t)(1000 + i));
    FINE(0);
    for (int i = 0; i < 100; i++) fork_to(A), starts(A), join_from(A);
    FINE(0);
    CHECK_INT(v.work, 100);
}

static void test_capture(void) {
    // If the block itself captures CUDA work into a graph, its calls are not analysed.
    call(CALL_BEGIN_CAPTURE, "cudaStreamBeginCapture", A, 0), starts(A), call(CALL_GRAPH, "cudaGraphLaunch", KB, 0);
    judge(0);
    CHECK_INT(v.known, 0), CHECK_INT(v.flag, -1);
    CHECK_STR(v.note, "the block captures work into a graph of its own (cudaStreamBeginCapture)");
    call(CALL_BEGIN_CAPTURE, "cudaStreamBeginCapture", A, 0), starts(A), call(CALL_GRAPH, "cudaGraphLaunch", KB, 0);
    FINE(KB_EXPECT_SYNC);
    call(CALL_BEGIN_CAPTURE, "cudaStreamBeginCapture", A, 0), starts(A), made[1].error = 1;
    WRONG(0, KB_FLAG_CUDA_ERROR, "cudaLaunchKernel of spin, call 2 of the block, failed");
    call(CALL_GRAPH, "cudaGraphLaunch", A, 0);
    WRONG(0, KB_FLAG_SIDE_STREAM, "cudaGraphLaunch, call 1 of the block: its work went to " NOT_WAITED);
    // Blocks with graph launches, prefetches or host functions can be timed, and a note names these calls.
    for (int i = 0; i < 3; i++) call(CALL_GRAPH, "cudaGraphLaunch", KB, 0);
    FINE(0);
    CHECK(!v.captures),
        CHECK_STR(v.note, "cudaGraphLaunch in the block: the block was not captured; only its calls were inspected");
    starts(KB), call(CALL_PREFETCH, "cudaMemPrefetchAsync", KB, 0);
    FINE(0);
    CHECK(!v.captures), CHECK_HAS(v.note, "cudaMemPrefetchAsync");
    starts(KB), call(CALL_HOST, "cudaLaunchHostFunc", KB, 0);
    FINE(0);
    CHECK(v.captures), CHECK_STR(v.note, "cudaLaunchHostFunc in the block");
    call(CALL_GRAPH, "cudaGraphLaunch", KB, 0);
    FINE(KB_EXPECT_NO_CAPTURE);
    CHECK_STR(v.note, "");
}

static void test_words(void) {
    static const struct {
        int kind;
        const char* name;
        int word;
        unsigned expect;
    } rows[] = { { CALL_ALLOC, "cudaMalloc", KB_FLAG_ALLOC_INSIDE, KB_EXPECT_ALLOC },
                 { CALL_ALLOC_LATER, "cudaMallocAsync", KB_FLAG_ALLOC_INSIDE, KB_EXPECT_ALLOC },
                 { CALL_COPY, "cudaMemcpyAsync", KB_FLAG_TRANSFER, KB_EXPECT_TRANSFER },
                 { CALL_COPY_NOW, "cudaMemcpy", KB_FLAG_TRANSFER, KB_EXPECT_TRANSFER | KB_EXPECT_SYNC },
                 { CALL_SYNC, "cudaDeviceSynchronize", KB_FLAG_SYNC_INSIDE, KB_EXPECT_SYNC },
                 { CALL_SYNC_STREAM, "cudaStreamSynchronize", KB_FLAG_SYNC_INSIDE, KB_EXPECT_SYNC },
                 { CALL_SYNC_EVENT, "cudaEventSynchronize", KB_FLAG_SYNC_INSIDE, KB_EXPECT_SYNC },
                 { CALL_SYNC_STREAM, "cudaStreamQuery", KB_FLAG_SYNC_INSIDE, KB_EXPECT_SYNC },
                 { CALL_SYNC_EVENT, "cudaEventQuery", KB_FLAG_SYNC_INSIDE, KB_EXPECT_SYNC } };
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        char said[100];
        snprintf(said, sizeof said, "%s, call 2 of the block", rows[i].name);
        for (int expected = 0; expected < 2; expected++) {
            starts(KB), call(rows[i].kind, rows[i].name, KB, 0);
            if (expected)
                FINE(rows[i].expect);
            else
                WRONG(0, rows[i].word, said);
        }
        starts(KB), call(rows[i].kind, rows[i].name, KB, 0);
        FINE(KB_EXPECT_NO_CAPTURE);
    }
    starts(KB), call(CALL_COPY_NOW, "cudaMemcpy", KBI_STREAM_LEGACY, 0);
    WRONG(KB_EXPECT_TRANSFER, KB_FLAG_SYNC_INSIDE, "cudaMemcpy, call 2");
    // A library function ignores kb->stream. kbench reports the first CUDA call that submits work to the default
    // stream: the launch of a kernel.
    call(CALL_ALLOC, "cudaMalloc", 0, 0), starts(KBI_STREAM_LEGACY);
    call(CALL_COPY, "cudaMemcpyAsync", KBI_STREAM_LEGACY, 0),
        call(CALL_SYNC_STREAM, "cudaStreamSynchronize", KBI_STREAM_LEGACY, 0);
    call(CALL_ALLOC, "cudaFree", 0, 0);
    WRONG(0, KB_FLAG_SIDE_STREAM, "call 2 of the block: its work went to the default stream");
    starts(KB), starts(KB), made[1].error = 1;
    WRONG(0, KB_FLAG_CUDA_ERROR, "cudaLaunchKernel of spin, call 2 of the block, failed (cudaErrorOfSomeKind)");
    starts(KB), made[0].error = 1;
    WRONG(KB_EXPECT_NO_CAPTURE | KB_EXPECT_SYNC, KB_FLAG_CUDA_ERROR, "failed (cudaErrorOfSomeKind)");
    starts(KB), call(CALL_FAILED, "cudaLaunchKernelExC", 0, 0)->error = 98;
    WRONG(0, KB_FLAG_CUDA_ERROR, "cudaLaunchKernelExC, call 2");
    starts(KB), call(CALL_ALLOC, "cudaMalloc", 0, 0)->error = 2;
    WRONG(0, KB_FLAG_ALLOC_INSIDE, "cudaMalloc, call 2 of the block, failed");
    starts(KB), call(CALL_ALLOC, "cudaMalloc", 0, 0)->error = 2;
    WRONG(KB_EXPECT_ALLOC, KB_FLAG_CUDA_ERROR, "cudaMalloc");
    starts(KB), call(CALL_OTHER, "cuMemAlloc", 0, 0)->error = 2;
    FINE(0);
    // If a block makes no call, or only event calls, this analysis reports no error; a captured run then shows
    // whether the block does work.
    FINE(0);
    fork_to(A), join_from(A);
    FINE(0);
    CHECK_INT(v.work, 0), CHECK(v.captures);
}

int main(void) {
    test_order();
    test_capture();
    test_words();
    return test_end();
}
