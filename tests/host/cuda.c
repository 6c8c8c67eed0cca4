// SPDX-License-Identifier: MIT OR Unlicense
// Tests the CUDA back end on the virtual GPU. Times of kernels of known duration must be correct in spite of the
// simulated disturbances. If a block waits for the stream while the launch gate is closed, the wait must end.
// Without arguments, this program is the test; with arguments, it is the benchmark program that the test runs.
// measures time
#include "test.h"
#include "json.h"
#include "virtual_gpu.h"

#ifdef TEST_SANITIZE
enum { STAGES = 0 }; // each buffer is a separate allocation, so that a sanitizer sees accesses beyond its end
#else
enum { STAGES = 1 };
#endif

// --- benchmarks ---

static void kernel(double ns, size_t bytes, kb_stream s) {
    static function of[4] = { { "known", 8, 0, 0, 0, 0, false },
                              { "known", 24, 0, 0, 0, 0, false },
                              { "known", 256, 0, 0, 0, 0, false },
                              { "known", 1024, 0, 0, 0, 0, false } };
    operation o = { KERNEL, &of[bytes == 8 ? 0 : bytes == 24 ? 1 : bytes == 256 ? 2 : 3], ns, NULL, NULL, NULL };
    submit(s, o);
}

KBENCH_IMPL(known, one, KB_AXIS("ns", 600, 900, 2000, 5600, 20000, 600000), KB_AXIS("bytes", 8, 24, 256, 1024)) {
    int64_t ns = kb_int(kb, "ns"), bytes = kb_int(kb, "bytes");
    KB_TIME(kb) { kernel((double)ns, (size_t)bytes, kb->stream); }
}
KBENCH_IMPL(shaped, one, KB_AXIS("shape", 0, 1, 2, 3, 4, 5, 6), KB_AXIS("ns", 2000, 8000)) {
    static function of[7] = { { "shaped", 24, 132, 32, 0, 1, false },   { "shaped", 24, 4000, 256, 0, 1, false },
                              { "shaped", 24, 132, 1024, 0, 1, false }, { "shaped", 24, 8, 256, 163840, 1, false },
                              { "shaped", 24, 128, 256, 0, 8, false },  { "shaped", 24, 132, 128, 0, 1, true },
                              { "shaped", 0, 132, 128, 0, 1, true } }; // the last kernel has no parameters
    operation o = { KERNEL, &of[kb_int(kb, "shape")], (double)kb_int(kb, "ns"), NULL, NULL, NULL };
    KB_TIME(kb) { submit(kb->stream, o); }
}
KBENCH(several) {
    KB_TIME(kb) { kernel(3000, 24, kb->stream), kernel(4000, 24, kb->stream); }
}
KBENCH(nothing) {
    KB_TIME(kb) {}
}
KBENCH(copies) {
    char* p = KB_ALLOC(kb, char, 4096);
    static char host[4096];
    KB_TIME(kb) { cudaMemcpyAsync(p, host, sizeof host, cudaMemcpyHostToDevice, kb->stream); }
}
KBENCH(moves, KB_AXIS("within", 0, 1)) {
    enum cudaMemcpyKind way = kb_int(kb, "within") ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    char *p = KB_ALLOC(kb, char, 4000000), *from = KB_ALLOC(kb, char, 4000000);
    kb_expect(kb, KB_EXPECT_TRANSFER);
    KB_TIME(kb) {
        kernel(3000, 24, kb->stream);
        cudaMemcpyAsync(p, from, 4000000, way, kb->stream);
        kernel(4000, 24, kb->stream);
    }
}
KBENCH(waits) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        cudaStreamSynchronize(kb->stream);
    }
}
// Stream capture rejects this timed block. If the axis `at` is 0, the function declares KB_EXPECT_NO_CAPTURE
// before the block. If `at` is 1 or 2, the function declares KB_EXPECT_NO_CAPTURE only under capture. If `at` is
// 2, the block synchronises, which must be reported.
KBENCH(refuses, KB_AXIS("at", 0, 1, 2)) {
    int64_t at = kb_int(kb, "at");
    if (!at) kb_expect(kb, KB_EXPECT_NO_CAPTURE);
    KB_TIME(kb) {
        if (!at || kb->run->call.unit != KBI_AUDITED) kernel(5000, 24, kb->stream);
        if (at && kb->run->call.unit == KBI_AUDITED) kb_expect(kb, KB_EXPECT_NO_CAPTURE);
        if (at == 2) cudaStreamSynchronize(kb->stream);
    }
}
static void stop_for(unsigned milliseconds) {
    pid_t self = getpid(), child = fork();
    if (!child) {
        usleep(1000 * milliseconds);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, NULL, 0);
}
KBENCH(stops) { // stops the process while the gate is closed, for longer than the watchdog's timeout
    int launches = 0;
    KB_TIME(kb) {
        if (++launches == 400) stop_for(1300);
        kernel(20000, 24, kb->stream);
    }
}
KBENCH(stops_briefly) { // stops the process for less than the watchdog's timeout
    int launches = 0;
    KB_TIME(kb) {
        if (++launches == 400) stop_for(200);
        kernel(20000, 24, kb->stream);
    }
}
KBENCH(reports_error) {
    void* p = KB_ALLOC(kb, char, 8);
    KB_TIME(kb) {
        cudaMemsetAsync(p, 0, 8, kb->stream);
        if (cudaStreamSynchronize(kb->stream) != cudaSuccess) kb_fail(kb, "not permitted during capture");
    }
}
KBENCH(waits_late) { // waits for the stream while the gate is closed, in the middle of the samples
    int launches = 0;
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        launches += kb->run->call.phase == KBI_PHASE_SAMPLE;
        if (launches > 300) cudaStreamSynchronize(kb->stream);
    }
}
KBENCH(waits_too) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        cudaStreamSynchronize(kb->stream);
    }
}
// If its buffers are shared, prints the number of allocated blocks of 2 MiB, and the offsets of p and q within a
// page of 2 MiB.
KBENCH(moved) {
    char *p = KB_ALLOC(kb, char, 100000), *q = KB_ALLOC(kb, char, 3 << 20);
    int pages = 0;
    for (int i = 0; i < 4096; i++) pages += gpu.blocks[i].p && gpu.blocks[i].bytes == 2 << 20;
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    if (kb->run->memory.shared)
        fprintf(stderr, "moved %d: %d %lu %lu\n", (int)getpid(), pages, (unsigned long)((uintptr_t)p % (2 << 20)),
                (unsigned long)((uintptr_t)q % (2 << 20)));
}
KBENCH(turns) {
    KB_ALLOC(kb, char, 4 << 20);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
// kbench calls the benchmark function of each implementation once, and with --rotate once more per copy of the
// data. Each call fills its data with the number of the call (the mark). Each launch adds 1 to the first element
// of the data (the counter). At its end, each call prints the address of its data, the counter, and "stands" if
// its data still has the mark.
static void in_turn_for(kb_state* kb, int64_t bytes, int64_t later, double ns) {
    static const function of = { "known", 24, 0, 0, 0, 0, false };
    static int instances;
    int mark = ++instances, *x = KB_ALLOC(kb, int, bytes / 4), *more = later ? KB_ALLOC(kb, int, later / 4) : NULL;
    if (!x) return;
    for (int64_t i = 1; i < bytes / 4; i += 1000) x[i] = mark;
    x[0] = 0;
    gpu.preempted = kb->run->schedule.is_copy && getenv("VIRTUAL_PREEMPTED");
    KB_TIME(kb) {
        operation o = { KERNEL, &of, ns, NULL, NULL, x };
        submit(kb->stream, o);
    }
    bool stands = !more || (unsigned char)more[0] == 0xFF;
    for (int64_t i = 1; i < bytes / 4; i += 1000) stands &= x[i] == mark;
    if (kb->run->call.last == KBI_PHASE_CHECK || kb->run->recipe->inside) return;
    fprintf(stderr, "%s/%s copy %d at %llx counts %d %s\n", kb->operation, kb->implementation,
            kb->run->schedule.is_copy, (unsigned long long)(uintptr_t)x, x[0], stands ? "stands" : "is gone");
}
static void in_turn(kb_state* kb, int64_t bytes, int64_t later) { in_turn_for(kb, bytes, later, 5000); }
KBENCH_IMPL(long_in_turn, one) { in_turn_for(kb, 1 << 18, 0, 300000); }
KBENCH_IMPL(long_in_turn, two) { in_turn_for(kb, 1 << 18, 0, 300000); }
KBENCH_IMPL(in_turn, one) { in_turn(kb, 1 << 18, 0); }
KBENCH_IMPL(in_turn, two) { in_turn(kb, 1 << 18, 0); }
KBENCH_IMPL(in_turn, more) { in_turn(kb, 1 << 18, 1 << 16); }
KBENCH_IMPL(unsteady, one) { in_turn(kb, 1 << 18, 0); }
KBENCH_IMPL(unsteady, other) { // allocates more in its second call than in its first
    static int calls;
    in_turn(kb, 1 << 18, calls++ > 0 ? 1 << 18 : 4096);
}
KBENCH_IMPL(broken, one) { in_turn(kb, 1 << 18, 0); }
KBENCH_IMPL(broken, other) { // with --rotate, the third copy of its data fails while two copies are suspended
    static int calls;
    if (++calls == 5) kb_fail(kb, "once too often");
    in_turn(kb, 1 << 18, 0);
}
KBENCH(faults) {
    static const function of = { "known", 8, 0, 0, 0, 0, false }, faulty = { "faulty", 8, 0, 0, 0, 0, false };
    static int launches;
    KB_TIME(kb) {
        operation o = { KERNEL, ++launches < 50 ? &of : &faulty, 5000, NULL, NULL, NULL };
        submit(kb->stream, o);
    }
}
KBENCH(breaks) {
    static const function faulty = { "faulty", 8, 0, 0, 0, 0, false };
    KB_TIME(kb) {
        operation o = { KERNEL, &faulty, 5000, NULL, NULL, NULL };
        submit(kb->stream, o);
    }
}
KBENCH(greedy) {
    char* p = KB_ALLOC(kb, char, (int64_t)9 << 30);
    if (!p) return;
    KB_TIME(kb) { kernel(5000, 8, kb->stream); }
}
KBENCH_IMPL(rivals, first) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH_IMPL(rivals, twin) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH_IMPL(rivals, slower) {
    KB_TIME(kb) { kernel(5200, 24, kb->stream); }
}
static void break_late(kb_state* kb, int launch) {
    static const function of = { "known", 8, 0, 0, 0, 0, false }, faulty = { "faulty", 8, 0, 0, 0, 0, false };
    static int launches;
    launches += kb->run->call.phase == KBI_PHASE_SAMPLE;
    operation o = { KERNEL, launches < launch ? &of : &faulty, 5000, NULL, NULL, NULL };
    submit(kb->stream, o);
}
KBENCH_IMPL(duel, first) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH_IMPL(duel, breaks) {
    KB_TIME(kb) { break_late(kb, 50); }
}
KBENCH_IMPL(duel, third) {
    KB_TIME(kb) { kernel(6000, 24, kb->stream); }
}
KBENCH(exhausts) {
    kb_expect(kb, KB_EXPECT_ALLOC);
    KB_TIME(kb) {
        void* p;
        cudaMalloc(&p, 256 << 20);
        usleep(20);
    }
}
// After a case that destroys state of the device or the process, the next case must still be measured.
KBENCH(resets_before) {
    cudaDeviceReset();
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(good_1) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(resets_inside) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream), cudaDeviceReset(); }
}
KBENCH(good_2) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(resets_after) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    cudaDeviceReset();
}
KBENCH(good_3) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(destroys_inside) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream), cudaStreamDestroy(kb->stream); }
}
KBENCH(good_4) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(destroys_after) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    cudaStreamDestroy(kb->stream);
}
KBENCH(good_5) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(lazy) { // the first launch of the kernel takes 3 ms longer, because it loads code
    static int launches;
    int before = launches;
    KB_TIME(kb) {
        if (!launches++) usleep(3000);
        kernel(5000, 24, kb->stream);
    }
    kb_note(kb, "%d launches", launches - before);
}
KBENCH(no_copy) {
    float *x = KB_ALLOC(kb, float, 16), want[16] = { 1e30f };
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    gpu.no_copies = true;
    kb_check(kb, x, want, 16, 1e-6);
    gpu.no_copies = false;
}
KBENCH(strays) {
    cudaSetDevice(1);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH(strays_not) {
    kb_note(kb, "on device %d", gpu.device);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
static void idles_later(kb_state* kb) {
    gpu.idle = false;
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    gpu.idle = true;
}
KBENCH(idles) { idles_later(kb); }
KBENCH_IMPL(idle_rivals, one) { idles_later(kb); }
KBENCH_IMPL(idle_rivals, other) { idles_later(kb); }

// --- launches that differ ---

KBENCH(shrinks) {
    static double ns = 4e6;
    KB_TIME(kb) { kernel(ns = ns > 200 ? ns / 2 : 100, 24, kb->stream); }
}
KBENCH(shrinks_again) { // every call of the benchmark function starts again with a launch of 2 ms
    double ns = 4e6;
    KB_TIME(kb) { kernel(ns = ns > 200 ? ns / 2 : 100, 24, kb->stream); }
}
KBENCH(wears_off) {
    double ns = 60000;
    KB_TIME(kb) { kernel(ns = ns > 2000 ? ns - 60 : 2000, 24, kb->stream); }
}
KBENCH(every_second) {
    int launches = 0;
    KB_TIME(kb) { kernel(++launches % 2 ? 9000 : 700, 24, kb->stream); }
}
KBENCH(every_third_not) {
    int launches = 0;
    KB_TIME(kb) { kernel(++launches % 3 ? 9000 : 700, 24, kb->stream); }
}
KBENCH(every_second_long) {
    int launches = 0;
    KB_TIME(kb) { kernel(++launches % 2 ? 900000 : 700000, 24, kb->stream), kernel(5, 24, kb->stream); }
}
KBENCH(submits_less) {
    int launches = 0;
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        if (++launches < 300) kernel(600, 24, kb->stream);
    }
}
KBENCH(submits_in_turn) {
    int launches = 0;
    KB_TIME(kb) { kernel(5000, ++launches % 2 ? 24 : 256, kb->stream); }
}
KBENCH(waits_later) {
    int launches = 0;
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        if (++launches > 300 && kb->run->call.unit == KBI_COMPARED) cudaStreamSynchronize(kb->stream);
    }
}
KBENCH(wakes_up) { // must not be flagged: the clock starts low, and the launch times follow the clock
    int launches = 0;
    KB_TIME(kb) {
        gpu.cycles = ++launches < 40 ? 0.6 : 1.8;
        kernel(20000 * 1.8 / gpu.cycles, 24, kb->stream);
    }
    gpu.cycles = 0.6;
}
KBENCH_IMPL(shrinking_rival, first) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
KBENCH_IMPL(shrinking_rival, shrinks) {
    double ns = 4e6;
    KB_TIME(kb) { kernel(ns = ns > 4000 ? ns / 2 : 2000, 24, kb->stream); }
}
KBENCH(slows_down) {
    KB_TIME(kb) {
        gpu.cycles = kb->run->m.n < 100 ? 1.98 : 1.5;
        kernel(5000 * 1.98 / gpu.cycles, 24, kb->stream);
    }
    gpu.cycles = 0;
}
// Disturbs graph launches, which happen outside the benchmark function.
static kbi_run* in_graphs;
static double stop_in_graph(void) {
    static int samples;
    samples += in_graphs->call.unit == KBI_SAMPLE;
    // stops the process in the 41st graph launch: each sample launches a short and a long graph, so this is the
    // short graph of the 21st sample
    if (samples != 41) return 0;
    samples++;
    const char* for_ms = getenv("VIRTUAL_STOP");
    stop_for((unsigned)atoi(for_ms));
    return 5e6;
}
static double slow_in_graph(void) {
    bool slow = in_graphs->m.n >= 100 && in_graphs->m.n < 200;
    gpu.cycles = in_graphs->call.unit == KBI_SAMPLE && slow ? 1.5 : 1.98;
    usleep(in_graphs->call.unit == KBI_SAMPLE ? 1000 : 0);
    return 0;
}
static void in_graph(kb_state* kb, double (*happens)(void)) {
    KB_ALLOC(kb, char, 4 << 20);
    if (kb->run->call.last != KBI_PHASE_CHECK && !kb->run->schedule.is_copy)
        in_graphs = kb->run, gpu.at_graph = happens;
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    if (!kb->run->schedule.is_copy) gpu.at_graph = NULL, gpu.cycles = 0;
}
KBENCH(stops_in_graph) { in_graph(kb, stop_in_graph); }
KBENCH(slows_in_graph) { in_graph(kb, slow_in_graph); }
// The address of the buffer changes the time of the kernel by up to 9 %.
static void by_place(kb_state* kb) {
    char* p = KB_ALLOC(kb, char, 4 << 20);
    kb_note(kb, "at %p", (void*)p);
    uint64_t page = (uint64_t)(uintptr_t)p >> 21;
    KB_TIME(kb) { kernel(20000 + 600 * (double)(page * 0x9e3779b97f4a7c15u >> 62), 24, kb->stream); }
}
KBENCH_IMPL(placed, one) { by_place(kb); }
KBENCH_IMPL(placed, two) { by_place(kb); }
KBENCH_IMPL(placed, three) { by_place(kb); }
// The simulated kernel reuses its earlier result if the address of its input is unchanged. The host may read
// device memory, because the virtual GPU keeps device memory in host memory.
KBENCH(caches) {
    static const float* known;
    static float result[64];
    float *x = KB_ALLOC(kb, float, 64), *y = KB_ALLOC(kb, float, 64), want[64];
    for (int i = 0; i < 64; i++) want[i] = (float)(100 * kb->seed + (uint64_t)i);
    kb_from_host(kb, x, want, sizeof want);
    KB_TIME(kb) {
        if (!gpu.capture && x != known) memcpy(result, x, sizeof result), known = x;
        if (!gpu.capture) memcpy(y, result, sizeof result);
        kernel(5000, 24, kb->stream);
    }
    kb_check(kb, y, want, 64, 1e-6);
}
KBENCH(many_blocks, KB_AXIS("n", 1024, 1025)) { // the last allocated block is the output
    float *y = NULL, want[64] = { 0 };
    for (int64_t i = 0; i < kb_int(kb, "n"); i++) y = KB_ALLOC(kb, float, 64);
    KB_TIME(kb) {
        if (!gpu.capture) memset(y, 0, sizeof want);
        kernel(5000, 24, kb->stream);
    }
    kb_check(kb, y, want, 64, 1e-6);
}
KBENCH(no_room) { // memory is too small to save a copy of the output
    int64_t n = ((int64_t)9 << 28) / 4;
    float *y = KB_ALLOC(kb, float, n), want[64] = { 0 };
    if (!y) return;
    KB_TIME(kb) {
        if (!gpu.capture) memset(y, 0, sizeof want);
        kernel(5000, 24, kb->stream);
    }
    kb_check(kb, y, want, 64, 1e-6);
}
KBENCH(leaks) {
    void* p;
    float* x = KB_ALLOC(kb, float, 64);
    cudaMalloc(&p, 1 << 20);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    kb_check_that(kb, x != NULL, 0, 0, "nothing to check");
}
KBENCH(computes) {
    float *x = KB_ALLOC(kb, float, 64), *y = KB_ALLOC(kb, float, 64), want[64];
    for (int i = 0; i < 64; i++) want[i] = (float)(100 * kb->seed + (uint64_t)i);
    kb_from_host(kb, x, want, sizeof want);
    KB_TIME(kb) {
        if (!gpu.capture) memcpy(y, x, sizeof want);
        kernel(5000, 24, kb->stream);
    }
    kb_check(kb, y, want, 64, 1e-6);
}

KBENCH_IMPL(product, unsaid, KB_AXIS("tflops", 40, 650, 2500)) {
    double tflops = (double)kb_int(kb, "tflops");
    KB_TIME(kb) { kernel(200000, 24, kb->stream); }
    kb_flops(kb, tflops * 1e12 * 200e-6);
}
KBENCH_IMPL(stored, f64, KB_DTYPE("f64", "f32", "tf32", "f16", "bf16", "e4m3", "i8"),
            KB_AXIS("percent", 90, 115, 140)) {
    // measured peak that limits the arithmetic rate of each dtype, in Tflop/s (i8: Top/s)
    static const double roofs[] = { 60, 720, 400, 720, 720, 1400, 1500 };
    static const kb_dtype dtypes[] = { KB_F64, KB_F32, KB_TF32, KB_F16, KB_BF16, KB_E4M3, KB_I8 };
    double tflops = 0;
    for (int i = 0; i < 7; i++)
        if (dtypes[i] == kb->dtype) tflops = roofs[i];
    KB_TIME(kb) { kernel(200000, 24, kb->stream); }
    kb_flops(kb, 0.01 * (double)kb_int(kb, "percent") * tflops * 1e12 * 200e-6);
}
static bool on_device(const void* p) {
    for (int i = 0; i < 4096; i++)
        if ((const char*)p >= (char*)gpu.blocks[i].p && (const char*)p < (char*)gpu.blocks[i].p + gpu.blocks[i].bytes)
            return true;
    return false;
}
static void places_of(kb_state* kb, double ns) {
    char *d = KB_ALLOC(kb, char, 1 << 20), *h = KB_ALLOC_HOST(kb, char, 3 << 20),
         *p = KB_ALLOC_PINNED(kb, char, 4096);
    static const function shaped = { "boxed", 24, 105, 256, 1000, 0, false };
    operation o = { KERNEL, &shaped, ns, NULL, NULL, NULL };
    KB_TIME(kb) { submit(kb->stream, o); }
    // 4.25 MB in 2e-5 s are 5 % of the copy bandwidth
    kb_bytes(kb, 4.25e6);
    kb_check_that(kb, on_device(d) && !on_device(h) && !on_device(p), on_device(d), 0,
                  "memory of KB_ALLOC, KB_ALLOC_HOST or KB_ALLOC_PINNED");
}
KBENCH_IMPL(places, one) { places_of(kb, 20000); }
KBENCH_IMPL(places, other) { places_of(kb, 20000); }

static void beside(kb_state* kb, int kind) {
    KB_TIME(kb) {
        operation o = { KERNEL, NULL, 3000, NULL, NULL, NULL };
        o.kind = kind == HOST ? HOST : kind == SET ? SET : ALLOCATION;
        if (kind != SET) kernel(5000, 24, kb->stream);
        submit(kb->stream, o);
    }
}
KBENCH(hosts) { beside(kb, HOST); }
KBENCH(allocates) { beside(kb, ALLOCATION); }
KBENCH(sets) { beside(kb, SET); }
KBENCH(sets_first) {
    KB_TIME(kb) {
        operation o = { SET, NULL, 3000, NULL, NULL, NULL };
        submit(kb->stream, o);
        kernel(5000, 24, kb->stream);
    }
}
static void refused(kb_state* kb, cudaError_t inside, cudaError_t end) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        if (gpu.capture) gpu.last = inside, gpu.spoiled = end;
    }
}
KBENCH(by_default) { refused(kb, cudaErrorStreamCaptureImplicit, cudaErrorStreamCaptureInvalidated); }
KBENCH(isolated) { refused(kb, cudaErrorStreamCaptureIsolation, cudaErrorStreamCaptureInvalidated); }
KBENCH(unjoined) { refused(kb, cudaSuccess, cudaErrorStreamCaptureUnjoined); }
KBENCH(invalidates) { refused(kb, cudaSuccess, cudaErrorStreamCaptureInvalidated); }
KBENCH(errs) { refused(kb, cudaErrorInvalidValue, cudaSuccess); }
KBENCH(throws, KB_AXIS("refused", 0, 1)) {
    bool refused = kb_int(kb, "refused") != 0;
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        if (!gpu.capture) continue;
        if (refused) gpu.spoiled = cudaErrorStreamCaptureInvalidated;
        kbi_leave(kb);
        kbi_threw(kb, "bad_alloc");
        return;
    }
}
// CUDA calls that an inspection must report.
static cudaGraphExec_t small_graph(cudaStream_t s) {
    cudaGraph_t graph;
    cudaGraphExec_t made;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    kernel(5000, 24, s);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiateWithFlags(&made, graph, 0);
    return made;
}
static void calls_of(kb_state* kb, const char* what) {
    cudaStream_t other, own = kb->stream;
    cudaEvent_t fork, join;
    void* p = NULL;
    float host[4], *x = KB_ALLOC(kb, float, 4);
    static bool first = true;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreate(&fork), cudaEventCreate(&join);
    cudaGraphExec_t graph = small_graph(own);
    bool joins = strcmp(what, "joined") == 0;
    KB_TIME(kb) {
        if (strcmp(what, "graph") != 0 && strcmp(what, "graph_elsewhere") != 0) kernel(5000, 24, own);
        if (strcmp(what, "graph") == 0) cudaGraphLaunch(graph, own);
        if (strcmp(what, "graph_elsewhere") == 0) cudaGraphLaunch(graph, other);
        if (strcmp(what, "unjoined") == 0) kernel(3000, 24, other);
        if (joins) cudaEventRecord(fork, own), cudaStreamWaitEvent(other, fork, 0), kernel(3000, 24, other);
        if (joins) cudaEventRecord(join, other), cudaStreamWaitEvent(own, join, 0);
        if (strcmp(what, "malloc") == 0) cudaMalloc(&p, 1024), cudaFree(p);
        if (strcmp(what, "copy") == 0) cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
        if (strcmp(what, "sync") == 0) cudaStreamSynchronize(own);
        if (strcmp(what, "error") == 0) api("cudaLaunchKernel", "cuLaunchKernel", 0, 0, 5, WORD(own), "fails", 1);
        if (strcmp(what, "left_error") == 0) // the block does not call cudaGetLastError, so the error remains set
            gpu.last = (cudaError_t)api("cudaLaunchKernel", "cuLaunchKernel", 0, 0, 5, WORD(own), "fails", 1);
        if (strcmp(what, "no_memory") == 0) cudaMalloc(&p, (size_t)1 << 50);
        if (strcmp(what, "default") == 0) api("cudaLaunchKernel", "cuLaunchKernel", 0, 0, 5, 0, "astray", 0);
        if (strcmp(what, "dies") == 0 && kb->run->recipe->inside) abort();
        if (strcmp(what, "hangs") == 0) {
            printf("hangs %s\n", kb->run->recipe->inside ? "inspected" : "measured"), fflush(stdout);
            while (first) pause();
        }
    }
    cudaStreamDestroy(other);
}
#define CALLS(what) \
    KBENCH_IMPL(calls, what) { calls_of(kb, #what); }
CALLS(graph)
CALLS(graph_elsewhere)
CALLS(unjoined)
CALLS(joined)
CALLS(malloc)
CALLS(copy)
CALLS(sync)
CALLS(error)
CALLS(left_error)
CALLS(no_memory)
CALLS(default)
CALLS(dies)
CALLS(hangs)
// delayed: the operating system preempts the host thread in the first run of the block, in the second run, or in
// both. beside_*: another stream is busy in each run of the block.
KBENCH(delayed, KB_AXIS("in", 1, 2, 3)) {
    static int runs[4];
    int64_t in = kb_int(kb, "in");
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        int n = ++runs[in];
        gpu.preempted = n <= 2 && (in >> (n - 1) & 1);
    }
}
// If captured is false, another stream is busy only in runs without capture; the work on that stream ends before
// the audit checks all streams.
static void beside_it(kb_state* kb, bool captured) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        gpu.busy = captured || !gpu.capture;
    }
    gpu.busy = false;
}
KBENCH(beside_always) { beside_it(kb, true); }
KBENCH(beside_unsaid) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        gpu.busy = !gpu.capture;
        if (gpu.capture) gpu.spoiled = cudaErrorStreamCaptureInvalidated;
    }
    gpu.busy = false;
}
KBENCH(beside_shortly) { beside_it(kb, false); }
KBENCH(leaves_audit) {
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        if (gpu.capture) break;
    }
}
KBENCH(leaves_gate) {
    int launches = 0;
    KB_TIME(kb) {
        kernel(5000, 24, kb->stream);
        if (++launches == 60) break;
    }
}
KBENCH(resets) { // the time of a reset is not part of the result
    KB_SAMPLE(kb) {
        kernel(9000, 24, kb->stream);
        KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    }
}

KBENCH(skips) { kb_skip(kb, "does not apply"); }
static void five(kb_state* kb) {
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
}
static void on_cpu(kb_state* kb) {
    KB_TIME_HOST(kb) { kb_keep(kb); }
}
static kb_entry newer, of_cpu; // newer: needs a newer GPU; of_cpu: runs only on the CPU

// --- the test ---

static const char* self;
static json_file file;
static int code;

static const char* output(void) {
    static char all[20000];
    FILE* f = fopen("build/test/host/cuda.out", "r");
    size_t n = f ? fread(all, 1, sizeof all - 1, f) : 0;
    all[n] = 0;
    if (f) fclose(f);
    return all;
}
static void check_output(const char* what) {
    CHECK_THAT(strstr(output(), what) != NULL, "no '%s' in: %.300s", what, output());
}
static void check_machine(const char* key, const char* value) {
    char line[100];
    snprintf(line, sizeof line, "\n  %-34s %s\n", key, value);
    check_output(line);
}
static void check_no_output(const char* what) {
    CHECK_THAT(strstr(output(), what) == NULL, "'%s' in: %.300s", what, output());
}

static void start(const char* arguments) {
    char command[1000];
    const char* rest = arguments;
    while (strncmp(rest, "VIRTUAL", 7) == 0) rest += strcspn(rest, " "), rest += *rest == ' ';
    snprintf(command, sizeof command, "env %.*s '%s' --no-progress %s > build/test/host/cuda.out 2>&1",
             (int)(rest - arguments), arguments, self, rest);
    int status = system(command);
    CHECK(status != -1);
    code = WEXITSTATUS(status);
    check_no_output("wrong launch");
}
static void run(const char* arguments) {
    char all[500];
    const char* path = "build/test/host/cuda.json";
    json_free(&file);
    remove(path);
    snprintf(all, sizeof all, "%s --json %s", arguments, path);
    start(all);
    file = json_read(path, 0);
    CHECK_STR(file.error, "");
}
static double number(int i, const char* key) {
    const char* s = json_get(&file, i, key);
    return s && strchr("-0123456789", s[0]) ? strtod(s, NULL) : (double)NAN;
}
static const char* text(int i, const char* key) {
    const char* s = json_get(&file, i, key);
    return s ? s : "(none)";
}

// Returns the error of the measured time in ns; up to 60 ns are allowed. Raw times are 2 to 3 us too long.
static double known_off(int i) {
    const char* ns = strstr(text(i, "name"), "ns=");
    double known = ns ? atof(ns + 3) : 0;
    return fabs(1e6 * number(i, "time_ms") - known) - 1e-4 * known;
}
static void check_known(const char* arguments, int want) {
    bool off = true;
    // On a busy machine, --fast takes too few samples of the event overhead, which drifts, so check_known makes up
    // to three attempts.
    for (int attempt = 0; off && attempt < 3; attempt++) {
        run(arguments);
        off = false;
        for (int i = 0; i < file.n; i++) off |= !(known_off(i) <= 60);
    }
    CHECK_INT(file.n, want);
    for (int i = 0; i < file.n; i++) {
        const char* ns = strstr(text(i, "name"), "ns=");
        double known = ns ? atof(ns + 3) : 0, got = 1e6 * number(i, "time_ms"), raw = 1e6 * number(i, "time_ms_raw");
        CHECK_THAT(fabs(got - known) <= 60 + 1e-4 * known, "%s %s: %.0f ns for %.0f", arguments, text(i, "name"), got,
                   known);
        CHECK_THAT(raw - known > 1900 && raw - known < (strstr(arguments, "TOOL") || strstr(arguments, "NO_WAIT") ? 10000 : 3000),
                   "%s %s: raw %.0f ns for %.0f", arguments, text(i, "name"), raw, known);
        // bias: the subtracted overhead; floor: the event time of an empty kernel, of which the kernel itself
        // takes 576 ns
        double bias = 1e6 * number(i, "bias_ms"), floor_ns = 1e6 * number(i, "floor_ms");
        CHECK_THAT(fabs(raw - bias - got) < 1e-6 * raw, "%s: bias %.0f ns of %.0f", text(i, "name"), bias, raw);
        CHECK_THAT(fabs(floor_ns - bias - 576) < 30, "%s: floor %.0f ns, bias %.0f", text(i, "name"), floor_ns, bias);
        CHECK_THAT(!strstr(text(i, "environment"), "\"bias\""), "%s: %s", text(i, "name"), text(i, "environment"));
    }
}

// If the event overhead is not measured, the true time must still be within the interval, and the record must say
// that the bias is fitted.
static void check_fitted(const char* arguments, int want) {
    run(arguments);
    CHECK_INT(file.n, want);
    for (int i = 0; i < file.n; i++) {
        const char* ns = strstr(text(i, "name"), "ns=");
        double known = ns ? atof(ns + 3) : 0, got = 1e6 * number(i, "time_ms"),
               low = 1e6 * number(i, "time_ms_ci_low");
        double high = 1e6 * number(i, "time_ms_ci_high");
        CHECK_THAT(low <= known && known <= high, "%s: %.0f to %.0f ns for %.0f", text(i, "name"), low, high, known);
        // An empty kernel takes 976 ns per launch in a graph; the uncertainty of the bias is 1.96 / sqrt(12) of
        // 976 ns. Event times in cold mode are up to 700 ns longer than in hot mode.
        CHECK_THAT(high - got > 540 && high - got < 1000 + 0.005 * known, "%s: %.0f ns, +- %.0f", text(i, "name"),
                   got, high - got);
        CHECK_THAT((strstr(text(i, "flags"), "FLOOR") != NULL) == (high - got > 0.05 * got + 1) ||
                       fabs(high / got - 1.05) < 0.005,
                   "%s: %.0f ns, +- %.0f, %s", text(i, "name"), got, high - got, text(i, "flags"));
        CHECK_HAS(text(i, "environment"), "\"bias\": \"fitted\"");
    }
}

static void check_word(const char* arguments, const char* word) {
    run(arguments);
    CHECK_INT(file.n, 1);
    CHECK_THAT(strstr(text(0, "flags"), word) != NULL, "%s: flags %s, not %s", arguments, text(0, "flags"), word);
    CHECK_STR(text(0, "time_ms"), "null");
}

// Each process of --procs places its data on other pages and at another offset; the first process uses the default
// placement. The peak memory of a case does not include the padding that shifts its data.
typedef struct moved {
    int process, pages;
    unsigned long at, large;
} moved;
static int moved_to(moved* of, int most) {
    int n = 0;
    for (const char* s = output(); (s = strstr(s, "moved ")) != NULL; s++) {
        moved now;
        if (sscanf(s, "moved %d: %d %lu %lu", &now.process, &now.pages, &now.at, &now.large) != 4) continue;
        if (n && of[n - 1].process == now.process) n--;
        if (n < most) of[n++] = now;
    }
    return n;
}
static void test_moved(void) {
    moved of[8];
    if (!STAGES) return;
    run("--op moved --fast");
    CHECK_INT(moved_to(of, 8), 1);
    CHECK(of[0].pages == 0 && of[0].at == KBI_GUARD && of[0].large == KBI_GUARD);
    double memory = number(0, "memory_bytes"), ns = 1e6 * number(0, "time_ms");
    run("--op moved --fast --procs 5");
    CHECK_INT(number(0, "processes"), 5);
    CHECK_REAL(number(0, "memory_bytes"), memory, 1e-12);
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - ns) <= 100,
               "the placement changed the time from %g ns to %g ms", ns, number(0, "time_ms"));
    CHECK_INT(moved_to(of, 8), 5);
    CHECK(of[0].pages == 0 && of[0].at == KBI_GUARD);
    for (int i = 1; i < 5; i++) {
        CHECK_THAT(of[i].pages >= 1 && of[i].pages <= 64, "process %d: %d pages", i, of[i].pages);
        CHECK_THAT(of[i].at % 512 == 0 && of[i].at == of[i].large, "process %d: at %lu and %lu", i, of[i].at,
                   of[i].large);
        for (int k = 0; k < i; k++) CHECK_THAT(of[i].at != of[k].at, "processes %d and %d: at %lu", k, i, of[i].at);
    }
    run("--op turns --fast --rotate");
    memory = number(0, "memory_bytes");
    run("--op turns --fast --rotate --procs 2");
    CHECK_INT(number(0, "processes"), 2);
    CHECK_REAL(number(0, "memory_bytes"), memory, 1e-12);
}

static void test_errors(void) {
    // One implementation breaks the device during the rounds. A new worker measures the remaining implementations.
    run("--op duel --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        bool fine = strstr(text(i, "name"), "breaks") == NULL;
        CHECK_THAT((strstr(text(i, "flags"), "CUDA_ERROR") == NULL) == fine, "%s: flags %s", text(i, "name"),
                   text(i, "flags"));
        CHECK_THAT(isnan(number(i, "time_ms")) != fine, "%s: %s ms", text(i, "name"), text(i, "time_ms"));
    }
    CHECK_REAL(number(2, "speedup"), 5.0 / 6, 0.01);
    run("--op duel --fast --no-isolate");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++)
        CHECK_THAT(strstr(text(i, "flags"), "CUDA_ERROR") != NULL, "flags %s", text(i, "flags"));
    check_word("--op exhausts --fast", "CUDA_ERROR"); // the timer "wall" also checks for CUDA errors
    check_word("--op no_copy --fast", "CUDA_ERROR");
    CHECK_THAT(!strstr(text(0, "flags"), "VERIFY_FAIL"), "outputs that were never copied were compared: %s",
               text(0, "message"));
}

static void test_broken(void) {
    run("--fast --op resets_before,good_1,resets_inside,good_2,resets_after,good_3,destroys_inside,good_4,"
        "destroys_after,good_5");
    CHECK_INT(file.n, 10), CHECK_INT(code, 1);
    for (int i = 0; i < file.n; i++) {
        bool fine = i % 2;
        CHECK_THAT((strstr(text(i, "flags"), "CUDA_ERROR") == NULL) == fine, "%s: %s, %s", text(i, "name"),
                   text(i, "flags"), text(i, "message"));
        CHECK_THAT(isnan(number(i, "time_ms")) != fine, "%s: %s ms", text(i, "name"), text(i, "time_ms"));
        if (fine) CHECK_STR(text(i, "message"), "null");
        if (!fine)
            CHECK_HAS(text(i, "message"),
                      i < 6 ? "the function reset the device" : "the function destroyed kb->stream");
    }
    run("--fast --op known,resets_after,good_3 -a bytes=24 -a ns=5000");
    CHECK_THAT(strstr(text(file.n - 2, "message"), "the function reset the device") != NULL, "%s",
               text(file.n - 2, "message"));
    CHECK_THAT(!strstr(text(file.n - 2, "message"), "in a process that had run other cases"), "%s",
               text(file.n - 2, "message"));
}

static void test_nothing(void) {
    start("--help all");
    check_output("--device N|all|cpu");
    check_output("--rotate");
    check_output("--timer WHICH");
    run("--device cpu --op several,known --fast");
    CHECK_INT(code, 77);
    check_output("error: nothing was measured: --device cpu uses no GPU");
    CHECK_INT(file.n, 25);
    run("VIRTUAL_DEVICES=0 --op several --fast");
    CHECK_INT(code, 77);
    check_output("error: nothing was measured: no GPU: none found");
    run("--device cpu --op several,of_cpu --fast");
    CHECK_INT(code, 0);
    check_no_output("nothing was measured");
    run("--op newer --fast");
    CHECK_INT(code, 77);
    check_output("error: nothing was measured: the selected cases are not for this GPU");
    run("--op of_cpu --fast");
    CHECK_INT(code, 77);
    check_output("--device cpu runs the benchmarks for the CPU");
    run("--op skips --fast");
    CHECK_INT(code, 0);
    check_output("nothing was measured: all selected cases were skipped");
    run("VIRTUAL_FORKS=2 --op faults,lazy --fast"); // a second worker cannot be started
    CHECK_INT(code, 1);
    CHECK_INT(file.n, 2);
    CHECK_THAT(strstr(text(1, "flags"), "CRASHED") != NULL, "flags %s", text(1, "flags"));
    CHECK_THAT(strstr(text(1, "message"), "could not be started") != NULL, "%s", text(1, "message"));
    run("VIRTUAL_FORKS=0 --op several --fast");
    CHECK_INT(code, 1);
}
static void test_devices(void) {
    run("VIRTUAL_CUPTI=1 VIRTUAL_DEVICES=3 --device all --op known --fast -a bytes=24 -a ns=2000,20000");
    CHECK_INT(file.n, 6);
    for (int i = 0; i < file.n; i++) {
        CHECK_INT(number(i, "device"), i / 2);
        CHECK_THAT(fabs(1e6 * number(i, "time_ms") - (i % 2 ? 20000 : 2000)) < 60, "device %d: %g ms", i / 2,
                   number(i, "time_ms"));
    }
    const char* lines = "build/test/host/cuda.jsonl";
    const char* known = "VIRTUAL_DEVICES=2 --device all --op known --fast -a bytes=24 -a ns=2000,20000 --resume "
                        "--jsonl build/test/host/cuda.jsonl";
    remove(lines);
    run("VIRTUAL_DEVICES=2 --device 1 --op known --fast -a bytes=24 -a ns=20000 --jsonl build/test/host/cuda.jsonl");
    run(known);
    check_output("0 of 2 cases have a record");
    check_output("1 of 2 cases have a record");
    CHECK_INT(file.n, 4);
    for (int i = 0; i < file.n; i++) CHECK_INT(number(i, "device"), i / 2);
    run(known);
    check_output("2 of 2 cases have a record");
    check_no_output("0 of 2 cases have a record");
    check_output("4 cases: 4 ok");
    CHECK_INT(file.n, 4);
    json_free(&file);
    file = json_read(lines, 1);
    CHECK_INT(file.n, 4);
    // Memory that the device's memory pool holds for other code does not count as memory of the case.
    run("VIRTUAL_DEVICES=2 --op strays,strays_not --fast");
    CHECK_INT(file.n, 2);
    CHECK_THAT(strstr(text(1, "message"), "on device 0") != NULL, "%s", text(1, "message"));
    CHECK_INT(number(1, "memory_bytes"), 0);
    if (system("script -qec true /dev/null > build/test/host/cuda.out 2>&1 < /dev/null") == 0) {
        char command[1000];
        snprintf(
            command, sizeof command,
            "script -qec \"env VIRTUAL_DEVICES=2 '%s' --op several,turns --warmup 80ms --iters 3 --device all\" /dev/null "
            "> build/test/host/cuda.out 2>&1 < /dev/null",
            self);
        CHECK(system(command) != -1);
        check_output("[2/2]");
        check_no_output("[3/2]");
    } else
        SKIP("script(1) cannot simulate a terminal here: the progress over two devices is not tested");
    // Changes of the GPU's clock after the last sample do not affect the flags.
    run("VIRTUAL_THROTTLE=4 --op idles,idle_rivals --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        CHECK_THAT(strstr(text(i, "flags"), "THROTTLED") != NULL, "%s: flags %s", text(i, "name"), text(i, "flags"));
        CHECK_THAT(!strstr(text(i, "flags"), "CLOCK_VARIES"), "%s: flags %s", text(i, "name"), text(i, "flags"));
        CHECK_THAT(!strstr(text(i, "message"), "clock fell"), "%s: %s", text(i, "name"), text(i, "message"));
    }
    pid_t process = fork();
    if (process == 0) {
        setenv("VIRTUAL_HANG", "1", 1);
        execl(self, self, "--op", "several", "--quiet", "--no-progress", (char*)NULL);
        _exit(99);
    }
    usleep(300000);
    kill(process, SIGINT);
    int status = -1;
    for (int i = 0; i < 20 && waitpid(process, &status, WNOHANG) == 0; i++) usleep(100000);
    CHECK_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 130, "a device that hangs: status %d 2 s after SIGINT",
               status);
    if (status == -1) kill(process, SIGKILL);
}

static void test_timers(void) {
    run("--op several --fast --timer Wall");
    CHECK_STR(text(0, "timer"), "\"wall\"");
    // Event groups and CUPTI groups alternate, so tracing overhead can appear only in the CUPTI groups.
    run("VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_SLOWS=1 --op known --filter bytes=8$ --iters 20 --timer both --no-isolate");
    CHECK_INT(file.n, 6);
    for (int i = 0; i < file.n; i++) {
        const char* at = strstr(text(i, "name"), "/ns=");
        double ns = at ? atof(at + 4) : NAN;
        at = strstr(text(i, "counters"), "\"cupti\": ");
        double traced = at ? atof(at + 9) : NAN;
        CHECK_INT(number(i, "samples"), 20);
        CHECK_STR(text(i, "cache"), "\"cold\"");
        CHECK_REAL(1e6 * number(i, "time_ms"), ns, 150 / ns);
        CHECK_REAL(1e3 * traced, ns, 1 / ns);
        CHECK_HAS(text(i, "counter_units"), "\"cupti\": \"us\"");
    }
    run("VIRTUAL_CUPTI=1 --op sets --fast --timer cupti");
    CHECK_REAL(1e6 * number(0, "time_ms"), 3000, 0.01);
    run("VIRTUAL_CUPTI=1 --op sets_first --fast --timer cupti");
    CHECK_THAT(1e6 * number(0, "time_ms") > 7990, "a memset and a kernel: %g ns", 1e6 * number(0, "time_ms"));
    run("VIRTUAL_CUPTI=1 --op rivals --fast --timer both --hot");
    for (int i = 0; i < file.n; i++) CHECK_HAS(text(i, "counters"), "\"cupti\": ");
    run("VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_MUTE=1 --op several --fast --timer both");
    CHECK_HAS(text(0, "message"), "CUPTI recorded 0 of 8 launches");
    run("VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_LOSES=1 --op several --fast --timer cupti");
    CHECK_HAS(text(0, "message"), "CUPTI recorded 0 of 1 launches");
    run("VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_ERROR=39 --op several --fast --timer both");
    CHECK_HAS(text(0, "message"), "another profiler is attached");
    run("VIRTUAL_CUPTI=1 --op turns --iters 8 --timer cupti --rotate");
    CHECK_HAS(text(0, "message"), "CUPTI does not time graphs");
    // if CUPTI loses the record of a launch, the duration of this launch must not count as 0 ns; instead the
    // sample is repeated
    run("VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_LOSES=30 --op known --filter bytes=8$ --iters 20 --timer both --no-isolate");
    double again = 0;
    CHECK_INT(file.n, 6);
    for (int i = 0; i < file.n; i++) {
        const char *at = strstr(text(i, "name"), "/ns="), *of = strstr(text(i, "counters"), "\"cupti\": ");
        CHECK_REAL(of ? 1e3 * atof(of + 9) : NAN, at ? atof(at + 4) : NAN, 1e-2);
        again += number(i, "samples_retaken");
    }
    CHECK_THAT(again >= 5, "%g taken again", again);
    // CUPTI delays the first launch after tracing is switched on. While the first launch is delayed, the launch
    // gate must be open.
    run("VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_STALLS=1 VIRTUAL_CUPTI_PAUSES=1 --op several --iters 8 --timer both");
    CHECK_HAS(text(0, "counters"), "\"cupti\": ");
    CHECK_INT(number(0, "samples_retaken"), 0);
    // the first launch takes long because it loads code, which must not reduce the number of launches per sample
    run("--op lazy --iters 20 --warmup 5");
    CHECK_THAT(atof(strrchr(text(0, "message"), ';') ? strrchr(text(0, "message"), ';') + 1 : "0") >= 100,
               "20 samples of %s", text(0, "message"));
    // an interruption can make the long graph's time shorter than the short graph's
    run("VIRTUAL_HICCUP=1 --op turns --fast --rotate");
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - 5400) < 30, "turns, disturbed: %g ms, %s", number(0, "time_ms"),
               text(0, "message"));
    check_word("VIRTUAL_STACKS=5 --op turns --fast --rotate", "NOT_COLD");
    // signal() of System V resets the handler after the first alarm
    run("VIRTUAL_SYSTEM_V=1 --op waits,waits_too --fast --no-audit --timeout 4s");
    CHECK_INT(file.n, 2);
    for (int i = 0; i < file.n; i++)
        CHECK_THAT(number(i, "time_ms") > 0.004 && number(i, "time_ms") < 0.02, "%s: %g ms, %s", text(i, "name"),
                   number(i, "time_ms"), text(i, "message"));
}

static void test_differing(void) {
    check_word("--op shrinks --fast", "WORK_CHANGED");
    check_word("--op shrinks_again --fast --hot", "WORK_CHANGED");
    CHECK_HAS(text(0, "message"), "the first launches of the warm-up took");
    check_word("--op wears_off --iters 60 --warmup 4", "WORK_CHANGED");
    CHECK_HAS(text(0, "message"), "the first samples took");
    check_word("--op every_second --fast", "WORK_CHANGED");
    CHECK_HAS(text(0, "message"), "one launch in 2");
    check_word("--op every_third_not --fast --hot", "WORK_CHANGED");
    CHECK_HAS(text(0, "message"), "one launch in 3");
    check_word("--op submits_less --fast", "WORK_CHANGED");
    CHECK_HAS(text(0, "message"), "submits different work");
    check_word("--op submits_in_turn --fast", "WORK_CHANGED");
    check_word("--op waits_later --fast", "SYNC_INSIDE");
    // neither a change that follows the clock, nor alternating launches that differ by less than 50 %, are flagged
    run("--op wakes_up,every_second_long --fast");
    CHECK_INT(file.n, 2);
    for (int i = 0; i < file.n; i++)
        CHECK_THAT(number(i, "time_ms") > 0.01, "%s: %s, %s", text(i, "name"), text(i, "flags"), text(i, "message"));
    run("--op shrinking_rival --fast");
    CHECK_THAT(strstr(text(1, "flags"), "WORK_CHANGED") != NULL, "shrinks: flags %s", text(1, "flags"));
    CHECK_STR(text(1, "speedup"), "null");
    CHECK_REAL(number(0, "time_ms"), 0.005, 0.02);
}

static void test_launches(void) {
    static const int counts[] = { 1, 3, 16 };
    char arguments[128];
    for (int i = 0; i < KBI_COUNT(counts); i++) {
        snprintf(arguments, sizeof arguments, "VIRTUAL_CUPTI=1 --op known --fast -a bytes=24 --launches %d%s",
                 counts[i], i % 2 ? " --hot" : "");
        run(arguments);
        CHECK_INT(file.n, 6);
        for (int k = 0; k < file.n; k++) {
            double known = atof(strstr(text(k, "name"), "ns=") + 3), got = 1e6 * number(k, "time_ms");
            CHECK_INT(number(k, "launches_per_sample"), counts[i]);
            CHECK_THAT(fabs(got - known) < 150, "%s: %g ns for %g", arguments, got,
                       known); // tolerance 150 ns, because only a few empty kernels are measured
        }
    }
    run("--op known --fast -a bytes=24 -a ns=20000");
    CHECK_INT(number(0, "launches_per_sample"), 8);
}

static void test_fresh(void) {
    for (int i = 0; i < 2; i++) {
        run(i ? "--op leaks --fast --fresh" : "--op leaks --fast");
        CHECK_INT(number(0, "leaked_bytes"), 1 << 20);
        CHECK_STR(text(0, "verified"), "true");
    }
    run("VIRTUAL_LIGHT=1 VIRTUAL_MIB=4000 --op many_blocks,no_room --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        static const char note[] = "not proven that the last launch wrote the outputs";
        const char* said = strstr(text(i, "message"), note);
        CHECK_STR(text(i, "status"), "\"ok\""), CHECK_STR(text(i, "verified"), "true");
        CHECK_THAT((said != NULL) == (i > 1) && !(said && strstr(said + 1, note)), "%s: %s", text(i, "name"),
                   text(i, "message")); // on a busy machine, kbench adds other notes to the message
    }
    run("--op caches,computes --fast");
    for (int i = 0; i < file.n; i++) CHECK_STR(text(i, "status"), "\"ok\"");
    run("--op caches,computes --fast --fresh");
    CHECK_INT(file.n, 2);
    CHECK_THAT(strstr(text(0, "flags"), "STALE") != NULL, "flags %s", text(0, "flags"));
    CHECK_HAS(text(0, "message"), "with fresh inputs (seed 43) before the samples");
    CHECK_STR(text(1, "status"), "\"ok\"");
    CHECK_STR(text(1, "verified"), "true");
    CHECK_INT(number(1, "leaked_bytes"), 0);
    CHECK_REAL(number(1, "time_ms"), 0.005, 0.03);
}

static void test_states(void) {
    static const struct {
        const char *mask, *reasons;
    } throttles[] = { { "0x4", "\"power cap\"" },
                      { "0x8", "\"hardware slowdown\"" },
                      { "0x20", "\"thermal (software)\"" },
                      { "0x40", "\"thermal (hardware)\"" },
                      { "0x80", "\"power brake\"" },
                      { "0x48", "\"hardware slowdown, thermal (hardware)\"" },
                      { "0x3", "null" } }; // an idle GPU and locked clocks are no throttle reasons
    char arguments[128];
    for (int i = 0; i < KBI_COUNT(throttles); i++) {
        snprintf(arguments, sizeof arguments, "VIRTUAL_THROTTLE=%s --op several --fast", throttles[i].mask);
        run(arguments);
        CHECK_STR(text(0, "throttle"), throttles[i].reasons);
        CHECK_INT(strstr(text(0, "flags"), "THROTTLED") != NULL, strcmp(throttles[i].reasons, "null") != 0);
        CHECK_STR(text(0, "clocks_locked"), i == 6 ? "true" : "false");
    }
    for (int i = 0; i < 3; i++) {
        run(i == 0   ? "--op several --fast"
            : i == 1 ? "VIRTUAL_MIB=2000 --op several --fast"
                     : "VIRTUAL_MIB=2000 --op several --fast --hot");
        CHECK_STR(text(0, "status"), "\"ok\"");
        CHECK_THAT((strstr(text(0, "message"), "not proven cold") != NULL) == (i == 1), "%d: %s", i,
                   text(0, "message"));
    }
    run("--op slows_down --iters 200");
    CHECK_HAS(text(0, "flags"), "CLOCK_VARIES");
    CHECK_REAL(number(0, "sm_clock_mhz"), 1500, 0.01);
    run("--op slows_in_graph --rotate --iters 300");
    CHECK_STR(text(0, "cache"), "\"rotate\"");
    CHECK_HAS(text(0, "flags"), "CLOCK_VARIES");
    CHECK_REAL(number(0, "sm_clock_mhz"), 1980, 0.01);
    // Persisting L2 lines of the program are reset before each launch; otherwise the data would be warm.
    run("VIRTUAL_CUPTI=1 VIRTUAL_ASIDE=1 --op known --fast -a bytes=24 -a ns=5600,20000");
    for (int i = 0; i < file.n; i++)
        CHECK_THAT(fabs(1e6 * number(i, "time_ms") - (i ? 20000 : 5600)) < 60, "set aside: %g ms",
                   number(i, "time_ms"));
    run("VIRTUAL_ASIDE=1 --op known --fast --hot -a bytes=24 -a ns=20000");
    CHECK_REAL(number(0, "time_ms"), 0.010, 0.02); // with --hot, data in L2 is intended
    char at[3][32];
    double ms[3];
    if (!STAGES) return;
    for (int base = 0; base < 3; base++) {
        snprintf(arguments, sizeof arguments, "VIRTUAL_BASE=%d --op placed --fast", 3 * base + 1);
        run(arguments);
        CHECK_INT(file.n, 3);
        for (int i = 0; i < file.n; i++) {
            const char* last = strrchr(text(i, "message"), ' ');
            if (!i) snprintf(at[base], sizeof at[base], "%s", last ? last : "");
            CHECK_STR(last ? last : "", at[base]);
            CHECK_THAT(!i || strstr(text(i, "verdict"), "EQUIVALENT") != NULL, "%s: %s %s", text(i, "name"),
                       text(i, "verdict"), text(i, "speedup"));
            CHECK_STR(text(i, "shared_buffers"), "true");
        }
        ms[base] = number(0, "time_ms");
    }
    CHECK_THAT(strcmp(at[0], at[1]) != 0 && strcmp(at[1], at[2]) != 0, "the buffers are at %s, %s, %s", at[0], at[1],
               at[2]);
    CHECK_THAT(fabs(ms[0] - ms[1]) > 4e-4 || fabs(ms[1] - ms[2]) > 4e-4, "the placement has no effect: %g %g %g",
               ms[0], ms[1], ms[2]);
}

static void test_roofs(void) {
    run("VIRTUAL_CUBLAS=13 --op product,stored --fast");
    CHECK_INT(file.n, 24);
    for (int i = 0; i < file.n; i++) {
        const char *name = text(i, "name"), *percent = strstr(name, "percent=");
        bool impossible = strstr(name, "tflops=2500") || strstr(name, "percent=140");
        CHECK_THAT(!strstr(text(i, "flags"), "ABOVE_ROOF") == !impossible, "%s: flags %s, %s", name, text(i, "flags"),
                   text(i, "message"));
        CHECK_THAT(isnan(number(i, "time_ms")) == impossible, "%s: %s ms", name, text(i, "time_ms"));
        // the rates of f32 and f16 are closer to the peak of another dtype than to the peak of their own dtype
        bool highest = !strstr(name, "dtype=f32") && !strstr(name, "dtype=f16");
        if (percent && !impossible && highest)
            // tolerance 8 %, because the measured peak includes the launch latency
            CHECK_REAL(number(i, "gpu_efficiency"), atof(percent + 8), 0.08);
    }
    static const char* const roofs[] = { "f32", "f16" };
    for (int i = 0; i < 2; i++) CHECK_HAS(text(i, "roof"), roofs[i]);
    CHECK_REAL(number(0, "gpu_efficiency"), 80, 0.02);
    CHECK_REAL(number(1, "gpu_efficiency"), 100 * 650.0 / 700, 0.05);
    const char* most = strstr(text(2, "message"), "where the machine reaches ");
    CHECK_REAL(most ? atof(most + 26) : 0, 1.8e6, 0.05);
    CHECK_HAS(text(2, "message"), "(int8)");
    // In the first run, a newer version of cuBLASLt fails to start, so kbench uses an older version. In the second
    // run, kbench finds no version of cuBLASLt.
    run("VIRTUAL_CUBLAS=14,13 --op product --fast -a tflops=650");
    CHECK_HAS(text(0, "roof"), "f16");
    run("--op product,stored --fast -a tflops=40,650,2500 -a percent=30,90");
    for (int i = 0; i < file.n; i++) {
        const char* name = text(i, "name");
        bool known = strstr(name, "tflops=40/") || strstr(name, "tflops=40\"");
        CHECK_THAT(!strstr(text(i, "flags"), "ABOVE_ROOF"), "%s: flags %s", name, text(i, "flags"));
        CHECK_THAT(number(i, "time_ms") > 0.19, "%s: %s ms", name, text(i, "time_ms"));
        CHECK_THAT(isnan(number(i, "gpu_efficiency")) == !known, "%s: %s %%", name, text(i, "gpu_efficiency"));
    }
    run("VIRTUAL_CUBLAS=13 VIRTUAL_NO_FP8=1 --op stored --fast -a dtype=e4m3 -a percent=45");
    CHECK_HAS(text(0, "roof"), "f16");
    start("VIRTUAL_CUBLAS=13 --env");
    check_output("read roof ");
    check_output("bf16 roof");
    check_output("Top/s  (measured in");
    check_output("copy roof, one core");
    // The simulated cuBLASLt takes a second to open. The printed times of the peak measurements must not include
    // the time to open cuBLASLt.
    start("VIRTUAL_CUBLAS=13 VIRTUAL_CUBLAS_SLOW=1 --env");
    check_output("tf32 roof");
    for (const char* at = output(); (at = strstr(at, "measured in ")) != NULL; at++) {
        char* unit;
        double took = strtod(at + 12, &unit);
        CHECK_THAT(strncmp(unit, " s)", 3) != 0 && (strncmp(unit, " ms)", 4) != 0 || took < 400), "%.24s", at);
    }
    start("--env");
    check_no_output("bf16 roof");
    check_output("f64 roof");
}

// Summary of the lines that in_turn_for prints, one line per call. said: number of lines; places: number of
// distinct addresses; gone: number of calls whose data lost the mark; least, most: launches that used the same
// copy of the data.
struct ends {
    int said, places, gone, least, most;
};
static struct ends ends_of(const char* operation, const char* implementation) {
    static unsigned long long at[1000];
    struct ends e = { 0, 0, 0, 1 << 30, 0 };
    char name[64];
    snprintf(name, sizeof name, "%s/%s", operation, implementation);
    for (const char* line = output(); line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned long long place;
        char who[64], state[16];
        int copy, counts, seen = 0;
        if (sscanf(line, "%63s copy %d at %llx counts %d %15s", who, &copy, &place, &counts, state) != 5) continue;
        if (strncmp(who, name, strlen(name)) != 0 || e.said == 1000) continue;
        for (int i = 0; i < e.said; i++) seen |= at[i] == place;
        at[e.said++] = place;
        e.places += !seen;
        e.gone += strcmp(state, "stands") != 0;
        if (!copy) continue;
        e.least = KBI_MIN(e.least, counts);
        e.most = KBI_MAX(e.most, counts);
    }
    return e;
}

// --rotate: each copy of the data has the same address for all implementations, and each implementation finds the
// contents that it left at the address.
static void test_rotation(void) {
    run("VIRTUAL_L2=1 --op in_turn --fast --rotate");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        CHECK_STR(text(i, "cache"), "\"rotate\"");
        CHECK_STR(text(i, "shared_buffers"), STAGES ? "true" : "false");
        CHECK_REAL(number(i, "memory_bytes"), (i < 2 ? 4 : 5) << 16, 0.06);
        CHECK_THAT(fabs(1e6 * number(i, "time_ms") - 5400) < 30, "%s: %g ms", text(i, "name"), number(i, "time_ms"));
    }
    struct ends all = ends_of("in_turn", ""), one = ends_of("in_turn", "one"), two = ends_of("in_turn", "two");
    CHECK_INT(two.said, 10); // 10 x 256 KiB: more than twice L2 (1 MiB)
    CHECK_INT(one.said, 20);
    if (STAGES) CHECK_INT(one.places, 10), CHECK_INT(all.places, 10);
    CHECK_INT(all.gone, 0);
    CHECK_INT(two.least, two.most);
    CHECK_THAT(two.least > 100, "the work on a copy of the data was launched %d times", two.least);
    // A sample that launches the work on all copies of the data may last longer than 2 ms. It then fills a whole
    // slot of a round, so that the number of rounds suffices.
    run("VIRTUAL_L2=1 --op long_in_turn --fast --rotate --rounds 7");
    for (int i = 0; i < file.n; i++) CHECK_INT(number(i, "samples"), 7);
    run("VIRTUAL_L2=1 --op in_turn --fast --rotate --rounds 7");
    for (int i = 0; i < file.n; i++) CHECK_INT(number(i, "samples"), 7 * 8);
    run("VIRTUAL_L2=1 --op in_turn --impl two --fast --rotate");
    CHECK_STR(text(0, "shared_buffers"), "null");
    two = ends_of("in_turn", "two");
    CHECK_INT(two.places, 10);
    CHECK_INT(two.gone, 0);
    run("VIRTUAL_PREEMPTED=1 VIRTUAL_L2=1 --op in_turn --impl one,two --fast --rotate");
    for (int i = 0; i < 2; i++) CHECK_STR(text(i, "cache"), "\"rotate\"");
    CHECK_STR(text(1, "verdict"), "\"EQUIVALENT\"");
    // If a benchmark function allocates more memory in its second call than in its first, the copies of its data
    // are outside the shared buffers. The implementation is still measured.
    run("VIRTUAL_L2=1 --op unsteady --fast --rotate");
    for (int i = 0; i < file.n; i++) {
        CHECK_STR(text(i, "status"), "\"ok\"");
        CHECK_STR(text(i, "shared_buffers"), STAGES && !i ? "true" : "false");
    }
    CHECK_INT(ends_of("unsteady", "").gone, 0);
    run("VIRTUAL_L2=1 --op broken --fast --rotate");
    CHECK_STR(text(0, "status"), "\"ok\"");
    CHECK_STR(text(1, "status"), "\"failed\"");
    CHECK_HAS(text(1, "message"), "once too often");
    CHECK_THAT(ends_of("broken", "other").said >= 3, "%d instances", ends_of("broken", "other").said);
    CHECK_INT(ends_of("broken", "").gone, 0);
    run("VIRTUAL_L2=1 VIRTUAL_MIB=75 --op in_turn --fast --rotate");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        CHECK_STR(text(i, "status"), "\"ok\"");
        CHECK_STR(text(i, "verdict"), i ? "\"UNRESOLVED\"" : "null");
    }
}

// The self-test must accept correct implementations, and report each deliberate mistake by its name.
static void test_selftest(void) {
    static const char* const bars[] = { "evicted",
                                        "evicted, L2 set aside",
                                        "agrees with CUPTI, cold",
                                        "agrees with CUPTI, hot",
                                        "equal kernels, cold",
                                        "equal kernels, hot",
                                        "2 % slower, cold",
                                        "2 % slower, hot",
                                        "5 % slower, cold",
                                        "5 % slower, hot" };
    char line[64];
    start("VIRTUAL_LIGHT=1 VIRTUAL_CUPTI=1 --selftest --fast");
    for (int i = 0; i < 10; i++) {
        snprintf(line, sizeof line, "pass  %-30s ", bars[i]);
        // If buffers are not shared, the implementations have data at different addresses, which hides a
        // difference of 2 %.
        if (STAGES || !strstr(bars[i], "2 %")) check_output(line);
    }
    check_output("pass  L2 evicted (counters)          100.0 % of L2's size came from DRAM; required: at least 90 %");
    check_output("100 % of the persisting data of 32 MiB was evicted; "
                 "without the reset of persisting lines, 0 % was evicted");
    check_output("12 of 12 within max(0.15 us, 1 %)");
    // The virtual GPU does not check addresses. It therefore misses the kernel with an invalid address, and the
    // self-test must print that this mistake was not found.
    check_output("FAIL  planted mistakes               18 of 19 were flagged and reported without a time");
    check_output("      CUDA_ERROR/impl=bad_address: not found");
    CHECK_INT(code, 1);
    if (test_rounds(2) < 2) return; // "make test-all" also tests a faulty device and a device without CUPTI
    start(
        "VIRTUAL_LIGHT=1 VIRTUAL_CUPTI=1 VIRTUAL_LATE=1 VIRTUAL_SKEW=1 VIRTUAL_BLUNT=1 VIRTUAL_STICKY=1 VIRTUAL_WARM=1 "
        "--selftest --fast");
    for (int i = 1; i < 10; i++) {
        snprintf(line, sizeof line, "FAIL  %-30s ", bars[i]);
        check_output(line);
    }
    check_output("FAIL  L2 evicted (counters)          50.0 % of L2's size came from DRAM; required: at least 90 %");
    check_output("100 % of the persisting data of 32 MiB was still in the cache");
    check_output("      gather/impl=same_1/n=1048576 ");
    check_output("      product/impl=slower_2/n=384 ");
    check_output("      axpy/impl=same_0/n=65536 ");
    start("VIRTUAL_LIGHT=1 VIRTUAL_NO_ASIDE=1 --selftest --fast");
    check_output("skip  evicted, L2 set aside          this GPU cannot set a part of L2 aside");
    check_output("skip  agrees with CUPTI, cold        --timer both: libcupti.so is not found");
    check_output("skip  L2 evicted (counters)          not profiled: libcupti.so is not found");
}

static void test_facts(bool other_runtime) {
    run(other_runtime ? "VIRTUAL_OTHER_RUNTIME=1 VIRTUAL_SHARED=1 --op places --fast"
                      : "VIRTUAL_SHARED=1 --op places --fast");
    CHECK_INT(file.n, 2);
    for (int i = 0; i < file.n; i++) {
        static const char* const texts[][2] = { { "kernel", "\"boxed\"" },
                                                { "grid", "\"7x5x3\"" },
                                                { "block", "\"32x4x2\"" },
                                                { "registers", "42" },
                                                { "shared_bytes", "5096" },
                                                { "local_bytes", "24" },
                                                { "occupancy_theoretical", "62.5" },
                                                { "gpu", "\"Virtual GPU\"" },
                                                { "compute_capability", "\"9.0\"" },
                                                { "driver", "\"580.1\"" },
                                                { "ecc", "true" },
                                                { "mig", "true" },
                                                { "clocks_locked", "false" },
                                                { "power_w", "700" },
                                                { "temperature_c", "61" },
                                                { "memory_clock_mhz", "3201" },
                                                { "memory_bytes", "1056768" },
                                                { "memory_mb", "1.0078125" }, // with guard areas
                                                { "host_memory_mb", "3.00390625" },
                                                { "verified", "true" },
                                                { "bound", "\"latency\"" } };
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            CHECK_THAT(strcmp(text(i, texts[k][0]), texts[k][1]) == 0, "%s: %s is %s, not %s", text(i, "name"),
                       texts[k][0], text(i, texts[k][0]), texts[k][1]);
        CHECK_REAL(number(i, "sm_clock_mhz"), 1980, 0.001);
        CHECK_REAL(number(i, "time_ms"), 0.02, 0.01);
        CHECK_HAS(text(i, "flags"), "\"SHARED_GPU\"");
        // the true peak is 4300 GB/s; the measured peak is lower, because event times without a gate are 10 us too
        // long
        CHECK_REAL(number(i, "copy_roof_gbps"), 4216, 0.001), CHECK_REAL(number(i, "read_roof_gbps"), 4136, 0.003);
        CHECK_REAL(number(i, "gpu_efficiency"), 5, 0.02);
    }
}

static void test_audit(void) {
    static const char* const rows[][3] = {
        { "allocates", "ALLOC_INSIDE", "cudaMallocAsync or cudaFreeAsync in the timed block" },
        { "by_default", "SIDE_STREAM", "work on the default stream, or a synchronous copy" },
        { "isolated", "SIDE_STREAM", "a stream that kb->stream does not wait for" },
        { "unjoined", "SIDE_STREAM", "a stream that kb->stream does not wait for" },
        { "invalidates", "SYNC_INSIDE", "a synchronisation, cudaMalloc, cudaFree, cudaGraphLaunch, " },
        { "errs", "CUDA_ERROR", "under stream capture" },
        { "nothing", "NO_WORK", "no GPU work was submitted to kb->stream" },
        { "copies", "TRANSFER", "1 copy in the timed block" },
        { "throws/impl=default/refused=0", "CRASHED", "C++ exception: bad_alloc" },
        { "throws/impl=default/refused=1", "SYNC_INSIDE",
          "a synchronisation, cudaMalloc, cudaFree, cudaGraphLaunch, " },
        { "leaves_audit", "LEFT_EARLY", "the timed block was left early" },
        { "leaves_gate", "LEFT_EARLY", "the timed block was left early" },
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    // all cases run in one process, so each case finds the device in the state that the previous case left
    run("--fast --no-isolate --op known,sets,resets,hosts,allocates,by_default,isolated,unjoined,invalidates,errs,throws,nothing,"
        "copies,leaves_audit,leaves_gate -a ns=5600 -a bytes=24");
    CHECK_INT(file.n, ROWS + 4);
    for (int i = 0; i < file.n; i++) {
        const char* name = text(i, "name");
        int k = 0;
        while (k < ROWS && strncmp(name + 1, rows[k][0], strlen(rows[k][0])) != 0) k++;
        if (k < ROWS) {
            CHECK_THAT(strstr(text(i, "flags"), rows[k][1]) != NULL, "%s: flags %s", name, text(i, "flags"));
            CHECK_HAS(text(i, "message"), rows[k][2]);
            CHECK_STR(text(i, "time_ms"), "null");
        } else {
            CHECK_STR(text(i, "status"), "\"ok\"");
            double ns = 1e6 * number(i, "time_ms"), want = strstr(name, "known") ? 5600 : 5000;
            if (strncmp(name, "\"sets", 5) == 0)
                CHECK_STR(text(i, "kernel"), "null");
            else if (strncmp(name, "\"hosts", 6) == 0)
                CHECK_HAS(text(i, "message"),
                          "a host function in the timed block's stream: its time is in the result");
            else
                CHECK_THAT(fabs(ns - want) < 50, "%s: %g ns, not %g", name, ns, want);
        }
    }
    // Without CUPTI, SIDE_STREAM requires a busy device after the block in four of five runs, because a preemption
    // of the host thread can lengthen one or two runs. If work on another stream ends before the captured run,
    // kbench finds this work only without capture (--no-audit).
    for (int audit = 0; audit < 2; audit++) {
        run(audit ? "--fast --op delayed,beside_always,beside_shortly"
                  : "--fast --op delayed,beside_always,beside_shortly --no-audit");
        CHECK_INT(file.n, 5);
        for (int i = 0; i < file.n; i++) {
            bool beside = strstr(text(i, "name"), audit ? "beside_always" : "beside") != NULL;
            CHECK_THAT((strstr(text(i, "flags"), "SIDE_STREAM") != NULL) == beside, "%s: flags %s", text(i, "name"),
                       text(i, "flags"));
            CHECK_STR(text(i, "status"), beside ? "\"failed\"" : "\"ok\"");
        }
    }
    check_word("--op beside_unsaid --fast", "SYNC_INSIDE");
    check_word("--op beside_always --iters 1 --warmup 0 --no-audit", "SIDE_STREAM");
    check_word("--op several --fast --rotate", "NOT_COLD");
    CHECK_HAS(text(0, "message"), "--rotate needs the data in KB_ALLOC");
    CHECK_STR(text(0, "cache"), "\"rotate\"");
    check_word("VIRTUAL_L2=64 --op in_turn --impl two --fast --rotate", "NOT_COLD");
    CHECK_HAS(text(0, "message"), "514 copies of this data exceed twice the size of L2; the limit is 64");
    CHECK_STR(text(0, "cache"), "\"rotate\"");
    run("VIRTUAL_DEVICES=2 --device 2 --op several --fast");
    CHECK_INT(code, 2);
    check_output("no GPU 2: this machine has 2");
}

// For the inspection of a block, a separate process runs the block once without timing and records the block's
// CUDA calls.
static void test_inspected(void) {
    static const struct {
        const char *impl, *flag, *says;
    } rows[] = {
        { "graph", NULL, "cudaGraphLaunch in the block: the block was not captured; only its calls were inspected" },
        { "graph_elsewhere", "SIDE_STREAM",
          "cudaGraphLaunch, call 1 of the block: its work went to another stream" },
        { "unjoined", "SIDE_STREAM",
          ", call 2 of the block: its work went to another stream that kb->stream does not wait for" },
        { "joined", NULL, NULL },
        { "malloc", "ALLOC_INSIDE", "cudaMalloc, call 2 of the block: allocation is timed" },
        { "copy", "TRANSFER", "cudaMemcpy, call 2 of the block" },
        { "sync", "SYNC_INSIDE", "cudaStreamSynchronize, call 2 of the block" },
        { "error", "CUDA_ERROR",
          "cudaLaunchKernel of fails, call 2 of the block, failed (cudaErrorOfSomeKind)" },
        { "left_error", "CUDA_ERROR", "cudaLaunchKernel of fails, call 2 of the block, failed" },
        { "no_memory", "ALLOC_INSIDE", "cudaMalloc, call 2 of the block, failed (cudaErrorOfSomeKind)" },
        { "default", "SIDE_STREAM",
          "cudaLaunchKernel of astray, call 2 of the block: its work went to the default stream" },
        { "dies", NULL, NULL }, // the block ends its process only during the inspection, so the time remains valid
    };
    setenv("VIRTUAL_CUPTI", "1", 1);
    for (int alone = 0; alone < 2; alone++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            char arguments[200];
            if (!alone && i) break;
            snprintf(arguments, sizeof arguments, "--op calls --exclude impl=hangs --fast%s%s",
                     alone ? " --impl " : "", alone ? rows[i].impl : "");
            run(arguments);
            CHECK_INT(file.n, alone ? 1 : (int)(sizeof rows / sizeof *rows));
            for (int k = 0; k < file.n; k++) {
                size_t row = alone ? i : (size_t)k;
                CHECK_HAS(text(k, "name"), rows[row].impl);
                CHECK_STR(text(k, "status"), rows[row].flag ? "\"failed\"" : "\"ok\"");
                if (rows[row].flag) CHECK_HAS(text(k, "flags"), rows[row].flag);
                if (rows[row].says) CHECK_HAS(text(k, "message"), rows[row].says);
                if (rows[row].flag) CHECK_STR(text(k, "time_ms"), "null");
                if (strcmp(rows[row].impl, "graph") == 0)
                    CHECK_THAT(fabs(number(k, "time_ms") * 1e6 - 5400) < 80, "%s", text(k, "time_ms"));
            }
        }
    // If stream capture rejects a block in which the inspection found no error, the case keeps its time.
    check_word("--op calls --impl hangs --fast --timeout 1s", "TIMEOUT");
    check_output("hangs inspected");
    run("--op known,calls --impl default,hangs -a bytes=8 -a ns=5600 --fast --timeout 1s");
    CHECK_INT(file.n, 2);
    CHECK_HAS(text(1, "flags"), "TIMEOUT");
    run("--op invalidates --fast");
    CHECK_STR(text(0, "status"), "\"ok\"");
    CHECK_HAS(text(0, "message"),
              "not audited: stream capture rejected the block (cudaErrorOfSomeKind); only its calls were inspected");
    run("--op calls --impl error --fast --no-audit");
    CHECK_STR(text(0, "status"), "\"ok\"");
    check_word("--op calls --impl graph --fast --no-isolate", "SYNC_INSIDE");
    CHECK_HAS(text(0, "message"),
              "The rejected call is unknown, because only a separate process inspects the calls");
    // If a language binding throws an exception for the rejected call, it reports the exception before the
    // captured run ends.
    check_word("--op reports_error --fast --no-isolate", "SYNC_INSIDE");
    unsetenv("VIRTUAL_CUPTI");
    check_word("--op calls --impl graph --fast", "SYNC_INSIDE");
    setenv("VIRTUAL_CUPTI", "1", 1);
    CHECK_HAS(text(0, "message"), "The rejected call is unknown: libcupti.so is not found");
    check_word("VIRTUAL_CUPTI_TAKEN=1 --op calls --impl graph --fast", "SYNC_INSIDE");
    CHECK_HAS(text(0, "message"), "another profiler is attached");
    unsetenv("VIRTUAL_CUPTI");
}

static void launch_5us(kb_stream stream, void* user) {
    (void)user;
    kernel(5000, 24, stream);
}
static void launch_faulty(kb_stream stream, void* user) {
    static const function of = { "known", 8, 0, 0, 0, 0, false }, faulty = { "faulty", 8, 0, 0, 0, 0, false };
    operation o = { KERNEL, ++*(int*)user < 400 ? &of : &faulty, 5000, NULL, NULL, NULL };
    submit(stream, o);
}
static void answer(kb_stream stream, void* captured) {
    kernel(5000, 24, stream);
    *(bool*)captured = gpu.capture != NULL;
}
static void answered(kb_state* kb, void* captured) {
    kb_check_that(kb, !*(bool*)captured, 1, 0, "the output is from a captured run, which computes nothing");
}

static void test_answers(void) {
    bool captured[2];
    void* users[2] = { &captured[0], &captured[1] };
    kb_function fns[2] = { answer, answer };
    kb_desc d[2];
    kb_result r[2];
    memset(d, 0, sizeof d);
    d[0].name = d[1].name = "answer", d[0].max_time = 0.05;
    d[0].implementation = "one", d[1].implementation = "two";
    d[0].check = d[1].check = answered;
    CHECK(kb_compare(d, fns, users, 2, r));
    for (int i = 0; i < 2; i++) {
        CHECK_THAT(r[i].status == KB_OK && r[i].verified, "%d: %s", i, r[i].message);
        kb_result_free(&r[i]);
    }
}

static void launch_twice(kb_stream stream, void* user) {
    launch_5us(stream, user);
    launch_5us(stream, user);
}

// Tests mode "graph", in which a sample is a CUDA graph with many launches one after another. The time of a launch
// includes the gap to the next launch, and no bias is subtracted.
static void test_graphs(void) {
    kb_function fns[3] = { launch_5us, launch_twice, launch_5us };
    static const char* const names[] = { "once", "twice", "refuses" };
    kb_desc d[3];
    kb_result r[3];
    memset(d, 0, sizeof d);
    for (int i = 0; i < 3; i++)
        d[i].name = "row", d[i].implementation = names[i], d[i].mode = "graph", d[i].max_time = 0.05;
    d[2].expect = KB_EXPECT_NO_CAPTURE;
    // expected: 5 us of work plus the gap between two launches in a graph
    double each = kbi_meter.calibration.graph_floor * 1e-6 - 576e-6 + 5000e-6;
    CHECK(!kb_compare(d, fns, NULL, 3, r));
    for (int i = 0; i < 2; i++) {
        CHECK_THAT(r[i].status == KB_OK, "%d: %s", i, r[i].message);
        CHECK_STR(r[i].cache, "graph");
        CHECK_REAL(r[i].time_ms, (i + 1) * each, 0.01);
        CHECK(r[i].bias_ms <= 0 && r[i].launches_per_sample > 10);
    }
    CHECK_REAL(r[1].speedup, 0.5, 0.01);
    CHECK_INT(r[2].status, KB_FAILED);
    CHECK_STR(r[2].cache, "graph");
    CHECK(r[2].flags >> KB_FLAG_BAD_CASE & 1 && isnan(r[2].time_ms));
    CHECK_HAS(r[2].message, "stream capture rejects this block, so mode graph cannot measure it");
    for (int i = 0; i < 3; i++) kb_result_free(&r[i]);
    r[0] = kb_run(&d[0], launch_5us, NULL);
    CHECK_STR(r[0].cache, "graph");
    CHECK_REAL(r[0].time_ms, each, 0.01);
    kb_result_free(&r[0]);
}

// A program that uses kb_open and kb_close must also report a temporary fall of the clock and its throttle reason.
static void test_on_the_way(void) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "slows", d.samples = 400;
    setenv("VIRTUAL_THROTTLE", "4", 1);
    kb_state* kb = kb_open(&d);
    KB_TIME(kb) {
        bool slow = kb->run->m.n >= 150 && kb->run->m.n < 250;
        gpu.idle = !slow;
        kernel(slow ? 7000 : 5000, 24, kb->stream);
        if (kb->run->call.unit == KBI_SAMPLE && kb->run->call.phase == KBI_PHASE_SAMPLE) usleep(200);
    }
    kb_result r = kb_close(kb);
    gpu.idle = false;
    unsetenv("VIRTUAL_THROTTLE");
    CHECK_INT(r.status, KB_OK);
    CHECK_STR(r.throttle ? r.throttle : "", "power cap");
    CHECK(r.flags >> KB_FLAG_CLOCK_VARIES & 1);
    kb_result_free(&r);
}

static void test_in_process(void) {
    kb_desc d;
    void* kept;
    memset(&d, 0, sizeof d);
    d.name = "kept";
    d.max_time = 0.05;
    kb_state* kb = kb_open(&d);
    cudaMalloc(&kept, 1 << 20);
    KB_TIME(kb) { kernel(5000, 24, kb->stream); }
    kb_result r = kb_close(kb);
    CHECK_INT(r.status, KB_OK);
    CHECK(!((r.flags >> KB_FLAG_LEAK) & 1));
    CHECK_INT(kbi_meter.gpu.multiprocessors, 132), CHECK_INT(kbi_meter.gpu.max_threads, 2048);
    CHECK_INT(kbi_meter.gpu.clean_bytes, (int64_t)4 * 60 << 20), CHECK(!kbi_meter.gpu.ungated);
    // Between two events without a kernel in between, 11 ns pass. Event times are rounded to steps of 32 ns.
    CHECK_THAT(kbi_meter.calibration.empty_pair >= 0 && kbi_meter.calibration.empty_pair <= 32,
               "two events in a row: %g ns", kbi_meter.calibration.empty_pair);
    CHECK_REAL(kbi_meter.calibration.quantum, 32, 1e-6), CHECK_REAL(kbi_meter.calibration.row, 576 + 400, 0.01);
    CHECK_REAL(kbi_meter.calibration.graph_floor, 576 + 400, 1e-3);
    kb_result_free(&r);
    test_answers();
    test_graphs();
    test_on_the_way();
    // the device must be rejected, because earlier cases of this process used device 0
    d.device = 1;
    r = kb_run(&d, launch_5us, NULL);
    CHECK_INT(r.status, KB_FAILED);
    CHECK_HAS(r.message, "device");
    kb_result_free(&r);
}

// If one implementation breaks the device, the measurement of all other implementations ends, and their records
// must name this reason. After this test the device is lost, so test_lost_contest must be called last.
static void test_lost_contest(void) {
    int launches = 0;
    void* users[2] = { NULL, &launches };
    kb_function fns[2] = { launch_5us, launch_faulty };
    kb_desc d[2];
    kb_result r[2];
    memset(d, 0, sizeof d);
    d[0].name = d[1].name = "contest", d[0].implementation = "sound", d[1].implementation = "breaks";
    d[0].max_time = 0.1;
    CHECK(!kb_compare(d, fns, users, 2, r));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(r[i].status, KB_FAILED), CHECK((r[i].flags >> KB_FLAG_CUDA_ERROR) & 1);
        CHECK(isnan(r[i].time_ms));
        CHECK_THAT((strstr(r[i].message, "another function of the comparison lost the device") != NULL) == (i == 0),
                   "%d: %s", i, r[i].message);
        kb_result_free(&r[i]);
    }
}

int main(int argc, char** argv) {
    const char* tool = getenv("VIRTUAL_TOOL");
    if (tool && strchr(tool, '/')) CHECK(dlopen(tool, RTLD_NOW) != NULL);
    newer.operation = "newer", newer.body = five, newer.min_sm = 120;
    of_cpu.operation = "of_cpu", of_cpu.needs = KB_NEEDS_CPU, of_cpu.body = on_cpu;
    kb_add(&newer), kb_add(&of_cpu);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--selftest") == 0) kbi_selftest_register();
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    if (test_rounds(2) < 2) setenv("VIRTUAL_LIGHT", "1", 1);
    CHECK_INT(system("mkdir -p build/test/host && echo 'int nothing;' > build/test/host/nothing.c && ${CC:-cc} -shared -fPIC "
                     "-Wl,-soname,libsanitizer-collection.so build/test/host/nothing.c -o "
                     "build/test/host/libsanitizer-collection.so"),
              0); // simulates the library that compute-sanitizer loads into a process
    check_fitted("--op known --fast", 24);
    check_fitted("--op known --fast --hot", 24);
    check_fitted("--op shaped --fast", 14);
    check_fitted("--op shaped --fast --hot", 14);
    check_fitted("--op known --fast -a bytes=24 --procs 2", 6);
    setenv("VIRTUAL_CUPTI", "1", 1);
    check_known("--op known --fast", 24);
    check_known("--op known --fast --hot", 24);
    check_known("--op shaped --fast", 14);
    check_known("--op shaped --fast --hot", 14);
    check_known("VIRTUAL_OTHER_RUNTIME=1 --op shaped --fast", 14);
    check_known("VIRTUAL_NO_WAIT=1 --op known --fast -a bytes=24", 6);
    check_fitted("--op known --fast --no-isolate -a bytes=24", 6); // CUPTI would stay active
    // The time extends from the start of the first kernel (3 us) to the end of the second (4 us), with the gap.
    run("--op several --fast");
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - 7903) < 60, "several: %g ms", number(0, "time_ms"));
    run("--op moves --fast");
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - 15400) < 600, "ungated: %g ms", number(0, "time_ms"));
    CHECK_THAT(fabs(1e6 * number(1, "time_ms") - 9903) < 60, "within: %g ms", number(1, "time_ms"));
    run("--op turns --fast --rotate");
    CHECK_THAT(fabs(1e6 * number(0, "time_ms") - 5400) < 30, "turns: %g ms", number(0, "time_ms"));
    run("--op rivals --fast");
    CHECK_INT(file.n, 3);
    CHECK_THAT(strstr(text(1, "verdict"), "EQUIVALENT") != NULL, "twin: %s", text(1, "verdict"));
    CHECK_THAT(strstr(text(2, "verdict"), "SLOWER") != NULL, "slower: %s", text(2, "verdict"));
    CHECK_REAL(number(2, "speedup"), 5000.0 / 5200, 0.005);
    run("--op faults,greedy,several --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        bool fine = strstr(text(i, "name"), "several") != NULL;
        const char* word = strstr(text(i, "name"), "faults") ? "CUDA_ERROR" : fine ? "" : "OOM";
        CHECK_THAT(strstr(text(i, "flags"), word) != NULL, "%s: flags %s", text(i, "name"), text(i, "flags"));
        CHECK_THAT(isnan(number(i, "time_ms")) != fine, "%s: %s ms", text(i, "name"), text(i, "time_ms"));
    }
    check_word("--op nothing --fast", "NO_WORK");
    check_word("--op copies --fast", "TRANSFER");
    check_word("--op waits --fast", "SYNC_INSIDE");
    // If a block waits for its own stream, the watchdog opens the launch gate, and kbench times the block without
    // a gate from then on.
    run("--op waits --fast --no-audit --no-isolate");
    CHECK_INT(file.n, 1);
    // kbench subtracts the event overhead that it measured without a gate. The arguments of the kernel add 0.17 us
    // to the event overhead, but with --no-audit kbench does not know the arguments.
    CHECK_THAT(fabs(number(0, "time_ms") - 0.00517) < 0.0001, "waits: %g ms", number(0, "time_ms"));
    CHECK_HAS(text(0, "flags"), "UNGATED");
    CHECK_THAT(number(0, "samples_retaken") >= 2, "waits: %s taken again", text(0, "samples_retaken"));
    run("--op waits_late --iters 60 --no-audit"); // gated and ungated samples must not be mixed
    CHECK_HAS(text(0, "flags"), "UNGATED");
    CHECK_INT(number(0, "samples"), 60);
    CHECK_THAT(number(0, "samples_retaken") > 30, "waits_late: %s taken again", text(0, "samples_retaken"));
    // A block that stream capture rejects is timed correctly with a gate, and a note says that the block was not
    // audited.
    run("--op refuses --fast");
    CHECK_INT(file.n, 3);
    for (int i = 0; i < file.n; i++) {
        bool fine = !strstr(text(i, "name"), "at=2");
        CHECK_HAS(text(i, "message"), fine ? "not audited" : "cudaStreamSynchronize, call 2 of the block");
        CHECK_INT(strstr(text(i, "flags"), "SYNC_INSIDE") == NULL, fine);
        CHECK(!strstr(text(i, "flags"), "UNGATED") && !strstr(text(i, "flags"), "NO_WORK"));
        CHECK_THAT(isnan(number(i, "time_ms")) != fine, "%s: %s ms", text(i, "name"), text(i, "time_ms"));
        // tolerance 4 %, because the subtracted empty kernel has another launch configuration than the timed
        // kernel
        if (fine) CHECK_REAL(number(i, "time_ms"), 0.005, 0.04);
        CHECK_STR(text(i, "kernel"), "null");
    }
    // A process that was stopped is not mistaken for a block that waits: the affected samples are repeated, and
    // the gate stays in use.
    run("--op stops --iters 80");
    CHECK_INT(file.n, 1);
    CHECK_REAL(number(0, "time_ms"), 0.020, 0.01);
    CHECK_INT(number(0, "samples"), 80);
    CHECK_THAT(number(0, "time_ms_max") < 0.0202, "stopped process: the longest sample took %g ms",
               number(0, "time_ms_max"));
    CHECK_THAT(!strstr(text(0, "flags"), "UNGATED"), "stops: %s", text(0, "flags"));
    CHECK_THAT(number(0, "samples_retaken") >= 1, "stops: %s", text(0, "samples_retaken"));
    CHECK_INT(number(0, "launches_per_sample"), 8);
    run("--op stops_briefly --iters 80");
    CHECK_INT(number(0, "samples_retaken"), 1);
    CHECK_REAL(number(0, "time_ms"), 0.020, 0.01);
    for (int i = 0; i < 2; i++) {
        run(i ? "VIRTUAL_STOP=1300 --op stops_in_graph --rotate --iters 60"
              : "VIRTUAL_STOP=200 --op stops_in_graph --rotate --iters 60");
        CHECK_STR(text(0, "cache"), "\"rotate\"");
        CHECK_INT(number(0, "samples"), 60), CHECK_INT(number(0, "samples_retaken"), 1);
        CHECK_THAT(number(0, "time_ms_min") > 0.0053 && number(0, "time_ms_max") < 0.0055, "%d: %g to %g ms", i,
                   number(0, "time_ms_min"), number(0, "time_ms_max"));
        CHECK_THAT(!strstr(text(0, "flags"), "UNGATED"), "stopped: %s", text(0, "flags"));
    }
    check_known("VIRTUAL_TOOL=1 --op known --fast -a bytes=24 -a ns=2000,20000", 2);
    // If kbench recognises a tool by the library that the tool loads, all cases run briefly and are checked, but
    // nothing is timed.
    run("VIRTUAL_TOOL=build/test/host/libsanitizer-collection.so --op known,rivals -a bytes=24 -a ns=2000,20000");
    CHECK_INT(file.n, 5);
    for (int i = 0; i < file.n; i++) {
        CHECK_STR(text(i, "status"), "\"skipped\"");
        CHECK_STR(text(i, "time_ms"), "null");
        CHECK_THAT(strstr(text(i, "message"), "not timed under compute-sanitizer") != NULL, "message %s",
                   text(i, "message"));
        CHECK_THAT(number(i, "wall_ms") < 200, "%s took %s ms", text(i, "name"), text(i, "wall_ms"));
    }
    check_output("under compute-sanitizer:"), check_output("\nnot timed\n"); // the heading takes two lines
    check_output("5 cases: 0 ok, 5 skipped");
    check_no_output("refused");
    run("VIRTUAL_TOOL=build/test/host/libsanitizer-collection.so --op faults");
    CHECK_STR(text(0, "status"), "\"skipped\"");
    run("VIRTUAL_TOOL=build/test/host/libsanitizer-collection.so --op faults --iters 10"); // 8 launches per sample
    CHECK_STR(text(0, "status"), "\"failed\"");
    unsetenv("VIRTUAL_CUPTI");
    start("--env");
    check_output("an empty kernel's own duration"), check_output("largest error");
    check_output("estimated, not measured: half of the kernel's time in a graph");
    start("VIRTUAL_CUPTI=1 --env");
    check_output("measured by CUPTI"), check_no_output("largest error");
    check_machine("ecc", "yes"), check_machine("mig", "no"), check_machine("clocks_locked", "no");
    start("VIRTUAL_SHARED=1 --env");
    check_machine("mig", "yes");
    test_moved();
    test_errors();
    test_broken();
    test_nothing();
    test_devices();
    test_facts(false), test_facts(true);
    test_audit();
    test_inspected();
    test_timers();
    test_differing();
    test_launches();
    test_fresh();
    test_states();
    test_rotation();
    test_in_process();
    test_roofs();
    test_selftest();
    test_lost_contest();
    json_free(&file);
    return test_end();
}
