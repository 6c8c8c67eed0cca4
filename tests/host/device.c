// SPDX-License-Identifier: MIT OR Unlicense
// Tests the functions of the CUDA back end on the virtual GPU, with known answers at both sides of every
// threshold.
#include "test.h"
#include "virtual_gpu.h"
#include <library_types.h>

// Evaluates the argument got only once; CHECK_INT may evaluate its arguments again to print them.
#define EQUAL(got, want)                                                                              \
    do {                                                                                              \
        const long long got_ = (got);                                                                 \
        CHECK_THAT(got_ == (long long)(want), "%s is %lld, not %lld", #got, got_, (long long)(want)); \
    } while (0)

static kbi_machine machine;
static kbi_recipe recipe;
static kb_entry entry;
static kbi_case the_case;

static kbi_run* new_run(void) {
    static kbi_run run;
    KBENCH_FREE(run.m.samples);
    kbi_recipe_default(&recipe);
    entry.operation = "op", entry.implementation = "impl";
    the_case.entry = &entry, the_case.name = "op/impl=impl";
    kbi_run_init(&run, &kbi_cuda, &machine, &recipe, &the_case);
    kbi_insight_clear();
    return &run;
}
static double count_of(const char* name) {
    int i = 0;
    while (calls[i].name && strcmp(calls[i].name, name) != 0) i++;
    return calls[i].n;
}

// --- launches: grid, block and parameters passed to the driver ---

static struct launched {
    void *f, *first;
    unsigned blocks, threads, shared, cluster;
    uint64_t words[3];
    int n, error;
} launched;
static int take_launch(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, kb_stream stream, void** a, void** extra) {
    CHECK(gy == 1 && gz == 1 && by == 1 && bz == 1 && stream == kbi_meter.gpu.stream && !extra);
    launched.f = f, launched.blocks = gx, launched.threads = bx, launched.shared = shared, launched.cluster = 1;
    launched.n++;
    for (int i = 0; a && i < 3 && (f == kbi_meter.gpu.functions[KBI_F_READ] || f == kbi_meter.gpu.functions[KBI_F_COPY]);
         i++)
        memcpy(&launched.words[i], a[i], 8);
    if (a && f == kbi_meter.gpu.functions[KBI_F_SPIN]) memcpy(&launched.words[0], a[0], 8);
    for (int i = 0; a && i < KBI_EMPTY_KERNELS; i++)
        if (f == kbi_meter.gpu.functions[KBI_F_COUNT + i]) launched.first = ((void**)a[0])[0];
    return launched.error;
}
static int take_launch_as(const kbi_cu_config* c, void* f, void** a, void** extra) {
    int error = take_launch(f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared,
                            c->stream, a, extra);
    CHECK_INT(c->n, 1), CHECK_INT(c->attributes->id, 4), CHECK_INT(c->attributes->value[1], 1);
    CHECK_INT(c->attributes->value[2], 1);
    launched.cluster = c->attributes->value[0];
    return error;
}

static void test_launches(void) {
    kbi_cu_launch real = kbi_meter.gpu.launch;
    kbi_cu_launch_as real_as = kbi_meter.gpu.launch_as;
    kbi_shape shape = { 7, 96, 1000, 1, 3, 0 };
    char *before = NULL, *p = (char*)kbi_meter.gpu.touch;
    int moved = 0;
    kbi_meter.gpu.launch = take_launch, kbi_meter.gpu.launch_as = take_launch_as;
    CHECK(kbi_launch_empty(&shape));
    CHECK(launched.f == kbi_meter.gpu.functions[KBI_F_COUNT + 3]), CHECK(launched.first == NULL);
    CHECK_INT(launched.blocks, 7), CHECK_INT(launched.threads, 96), CHECK_INT(launched.shared, 1000);
    shape.writes = 1;
    for (int i = 0; i < 50; i++) {
        CHECK(kbi_launch_empty(&shape));
        char* at = (char*)launched.first;
        CHECK(at >= p && at < p + KBI_TOUCHED / 2), CHECK_INT((at - p) % 128, 0);
        moved += at != before, before = at;
    }
    CHECK(moved > 40);
    shape.cluster = 4;
    CHECK(kbi_launch_empty(&shape)), CHECK_INT(launched.cluster, 4), CHECK_INT(launched.blocks, 7);
    CHECK_INT(launched.threads, 96), CHECK_INT(launched.shared, 1000);
    launched.error = 1;
    CHECK(!kbi_launch_empty(&shape));
    shape.cluster = 1;
    CHECK(!kbi_launch_empty(&shape));
    shape.cluster = 2, launched.error = 0, kbi_meter.gpu.launch_as = NULL;
    CHECK(!kbi_launch_empty(&shape));
    kbi_gpu_read(p, 4096);
    CHECK(launched.f == kbi_meter.gpu.functions[KBI_F_READ]), CHECK_INT(launched.words[1], 256);
    CHECK_INT(launched.blocks, 132 * 8), CHECK_INT(launched.threads, 256);
    // Before a cold launch, L2 is emptied, and four empty kernels load the kernel code and launch data into L2 again.
    launched.n = 0, kbi_meter.gpu.gated = false;
    kbi_launch_begin(false);
    CHECK_INT(launched.n, 0);
    kbi_launch_begin(true);
    CHECK_INT(launched.n, 1 + 4), CHECK(launched.f == kbi_meter.gpu.functions[KBI_F_NULL]);
    CHECK_INT(launched.words[1], kbi_meter.gpu.clean_bytes / 16);
    for (int persisting = 0; persisting < 2; persisting++)
        for (int cold = 0; cold < 2; cold++) {
            double resets = count_of("cudaCtxResetPersistingL2Cache");
            kbi_meter.gpu.persisting = persisting;
            kbi_launch_begin(cold);
            CHECK_INT(count_of("cudaCtxResetPersistingL2Cache") - resets, persisting && cold);
        }
    kbi_meter.gpu.persisting = false;
    kbi_run* run = new_run();
    run->call.marked = 5;
    recipe.mode = KBI_HOT;
    for (int begin = 0; begin < 2; begin++) {
        launched.n = 0;
        kbi_gpu_mark(run, begin);
        CHECK_INT(launched.blocks, begin ? 11 : 12), CHECK_INT(launched.n, 1), CHECK_INT(launched.threads, 1);
    }
    recipe.mode = KBI_COLD, launched.n = 0;
    kbi_gpu_mark(run, true);
    CHECK_INT(launched.n, 2);
    launched.n = 0;
    kbi_gpu_mark(run, false);
    CHECK_INT(launched.n, 1);
    kbi_meter.gpu.launch = real, kbi_meter.gpu.launch_as = real_as;
}

static int refuse_wait(kb_stream s, unsigned long long a, unsigned v, unsigned f) {
    return (void)s, (void)a, (void)v, (void)f, 1;
}
static double alarm_in(void) {
    struct itimerval t;
    getitimer(ITIMER_REAL, &t);
    return (double)t.it_value.tv_sec + 1e-6 * (double)t.it_value.tv_usec + (double)t.it_interval.tv_sec;
}
static void test_gate(void) {
    kbi_gpu* g = &kbi_meter.gpu;
    kbi_cu_wait wait = g->wait_value;
    g->alarmed = 0, g->gated = true;
    *g->flag = 1;
    for (int i = 0; i < 2; i++) { // a GPU without stream memory operations has no gate
        g->wait_value = i ? refuse_wait : NULL, g->gated = true, g->ungated = false;
        kbi_gate_close();
        CHECK(!g->closed && !g->gated && g->ungated), CHECK_REAL(alarm_in(), 0, 0);
    }
    g->wait_value = wait, g->gated = true, g->ungated = false;
    kbi_gate_close();
    CHECK(g->closed && g->gated && !g->ungated), CHECK_INT(*g->flag, 0);
    CHECK(alarm_in() > 0.1 && alarm_in() < 1.01);
    kbi_gate_open();
    CHECK_INT(*g->flag, 1), CHECK(!g->closed), CHECK_REAL(alarm_in(), 0, 0), CHECK(g->gated);
    cudaStreamSynchronize(g->stream);
    *g->flag = 0;
    kbi_gate_open();
    CHECK_INT(*g->flag, 0);
    kbi_gate_close();
    kbi_gate_alarm(SIGALRM);
    CHECK_INT(*g->flag, 1), CHECK_INT(g->alarmed, 1);
    kbi_gate_open();
    // the watchdog opened the gate, so the remaining launches of the group have no gate
    CHECK(!g->gated);
    cudaStreamSynchronize(g->stream);
    g->ungated = false, g->alarms = 0;
    static const int alarmed[] = { 1, 0, 1, 1 };
    for (int i = 0; i < 4; i++) {
        g->size = 1, g->at = 0, g->alarmed = alarmed[i];
        kbi_single_end();
        CHECK_INT(g->ungated, i == 3), CHECK_INT(g->alarms, i == 3 ? 2 : alarmed[i]);
    }
    g->ungated = false, g->alarms = 0, g->alarmed = 0;
    kbi_sample_open(true, 3);
    CHECK(g->gated), CHECK_INT(g->size, 3), CHECK_INT(g->at, 0);
    g->ungated = true, g->alarmed = 1, g->at = 2;
    kbi_sample_open(true, 3);
    CHECK(!g->gated), CHECK_INT(g->alarmed, 0), CHECK_INT(g->at, 0);
    g->ungated = false;
    kbi_sample_open(false, 1);
    CHECK(!g->gated);
    g->size = 2;
    for (int i = 0; i < 2; i++) {
        kbi_launch_begin(false);
        EQUAL(kbi_launch_end(), i == 1);
    }
    g->at = 0;
}

// --- timers: group sizes, gates, choice of timer ---

static bool sample_complete(kbi_run* run) {
    if (!kbi_launch_end()) return false;
    run->sampling.open = false, kbi_meter.gpu.at = 0;
    return kbi_sample_valid(run);
}

static void test_groups(void) {
    static const struct {
        int launches, sampled, settling, turns, nodes, gated;
        int64_t estimate;
        int size, is_gated;
    } rows[] = { { 0, 0, 0, 0, 1, 1, 500000, 8, 1 }, { 0, 0, 0, 0, 1, 1, 500001, 1, 1 },
                 { 0, 1, 0, 0, 1, 1, 1000, 1, 1 },   { 3, 0, 0, 0, 1, 1, 900000, 3, 1 },
                 { 3, 1, 0, 0, 1, 1, 1000, 3, 1 },   { 3, 0, 1, 0, 1, 1, 1000, 1, 1 },
                 { 3, 0, 0, 1, 1, 1, 1000, 1, 1 },   { 0, 0, 0, 0, 255, 1, 1000, 8, 1 },
                 { 0, 0, 0, 0, 256, 1, 1000, 8, 0 }, { 0, 0, 0, 0, 1, 0, 1000, 8, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_run* run = new_run();
        recipe.launches = rows[i].launches, recipe.mode = KBI_HOT;
        run->call.sampled = rows[i].sampled, run->schedule.discard = rows[i].settling;
        run->call.phase = rows[i].turns ? KBI_PHASE_SINGLES : KBI_PHASE_SAMPLE, run->call.unit = KBI_SAMPLE;
        run->work.nodes = rows[i].nodes, run->work.estimate_ns = rows[i].estimate;
        run->sampling.gated = rows[i].gated;
        EQUAL(kbi_events_begin(run), 1);
        CHECK_INT(kbi_meter.gpu.size, rows[i].size), CHECK_INT(kbi_meter.gpu.gated, rows[i].is_gated);
        CHECK(run->sampling.open);
        for (int k = 1; k < rows[i].size; k++) {
            CHECK(!sample_complete(run)), CHECK(run->sampling.open), CHECK_INT(kbi_meter.gpu.at, k);
            EQUAL(kbi_events_begin(run), 1);
        }
        CHECK(sample_complete(run)), CHECK(!run->sampling.open), CHECK_INT(kbi_meter.gpu.at, 0);
        CHECK_INT(run->m.retaken, 0);
    }
    kbi_run* run = new_run();
    run->call.unit = KBI_WARM;
    for (int n = 3; n < 5; n++) {
        run->work_change.n_early = n, run->work.estimate_ns = 1000;
        kbi_events_begin(run);
        CHECK_INT(kbi_meter.gpu.size, n < 4 ? 1 : 8);
        kbi_launch_end();
        run->sampling.open = false;
    }
    // If the watchdog fires in a group of launches, the group is repeated. If the watchdog fires in two groups in
    // a row, all groups are repeated without a gate.
    run = new_run();
    run->call.unit = KBI_SAMPLE, run->m.n = 5, recipe.launches = 1;
    for (int i = 0; i < 2; i++) {
        kbi_events_begin(run);
        kbi_meter.gpu.alarmed = 1;
        CHECK(!sample_complete(run));
        CHECK_INT(run->sampling.alarms, i + 1), CHECK_INT(run->sampling.gated, i == 0);
    }
    CHECK_INT(run->m.retaken, 2 + 5), CHECK_INT(run->m.n, 0);
    run = new_run(); // the elapsed time is set as if the process had been stopped
    run->call.unit = KBI_SAMPLE, run->m.n = 5, recipe.launches = 1;
    for (int i = 0; i < 3; i++) {
        kbi_events_begin(run);
        kbi_meter.stops++;
        CHECK(!sample_complete(run));
    }
    CHECK_INT(run->m.retaken, 3), CHECK_INT(run->m.n, 5), CHECK(run->sampling.gated);
    run->sampling.alarms = 1;
    kbi_events_begin(run);
    CHECK(sample_complete(run)), CHECK_INT(run->sampling.alarms, 0);
}

static struct CUgraph_st* graph_of(int nodes, double ns) {
    static const function of = { "block", 24, 1, 32, 0, 1, false };
    kbi_graph_capture_begin();
    for (int i = 0; i < nodes; i++) {
        operation o = { KERNEL, &of, ns, NULL, NULL, NULL };
        submit(kbi_meter.gpu.stream, o);
    }
    cudaGraph_t g = NULL;
    cudaStreamEndCapture(kbi_meter.gpu.stream, &g);
    return g;
}
static kbi_graph* kept_graph(int nodes, double ns) {
    kbi_graph* g = (kbi_graph*)kbi_grow(NULL, sizeof *g);
    memset(g, 0, sizeof *g);
    return g->one = graph_of(nodes, ns), g;
}

static double alarm_at_graph(void) {
    static int launches;
    if (kbi_meter.gpu.gated && launches++ % 2 == 0) kbi_meter.gpu.alarmed = 1;
    return 0;
}

static void test_graphs(void) {
    static const struct {
        int nodes, copies;
        double ns;
        int64_t least, most;
    } rows[] = { { 1, 1, 20000, 9, 10 },  { 1, 1, 1e6, 1, 1 },    { 1, 7, 1e6, 7, 7 },
                 { 1, 7, 20000, 14, 14 }, { 20, 1, 100, 18, 22 }, { 1000, 1, 100, 1, 2 },
                 { 2001, 1, 1, 1, 1 },    { 100, 1, 10, 4, 5 },   { 1, 1, 100, 150, 401 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_run* run = new_run();
        kbi_graph* g = kept_graph(rows[i].nodes, rows[i].ns);
        run->work.graph = g, run->work.nodes = rows[i].nodes;
        double probes = count_of("cudaGraphExecDestroy"), launches = count_of("cudaGraphLaunch");
        int64_t n = kbi_graph_repeats(run, rows[i].copies);
        CHECK_THAT(n >= rows[i].least && n <= rows[i].most, "row %d: %lld repeats", (int)i, (long long)n);
        CHECK_INT(n % rows[i].copies, 0), CHECK_INT(g->launches, n), CHECK_INT(run->m.launches, n);
        // A sample that takes more than 2 ms (here 7 launches of 1 ms) fills a whole slot of a round.
        CHECK_INT(run->sampling.launches, n * rows[i].ns * rows[i].nodes > 2e6 ? n : 0);
        CHECK_INT(count_of("cudaGraphExecDestroy") - probes, 1);
        CHECK_INT(count_of("cudaGraphLaunch") - launches, 2);
        run->call.sampled = true;
        EQUAL(kbi_graph_repeats(run, 1), 0);
        run->call.sampled = false;
        // The short graph owns the long graph: destroying the short graph destroys both.
        recipe.mode = KBI_ROTATE;
        for (int which = 0; which < 2; which++)
            for (int begin = 1; begin >= 0; begin--) {
                kbi_gpu_repeat(run, which, begin);
                CHECK_INT(gpu.capture != NULL, begin);
            }
        CHECK(g->many[0] && g->many[1] && !kbi_failed(run));
        recipe.mode = KBI_HOT;
        probes = count_of("cudaGraphExecDestroy"), launches = count_of("cudaGraphDestroy");
        kbi_graph_forget(run);
        CHECK(!run->work.graph), CHECK_INT(count_of("cudaGraphExecDestroy") - probes, 2);
        CHECK_INT(count_of("cudaGraphDestroy") - launches, 1);
        kbi_graph_forget(run);
        EQUAL(kbi_graph_repeats(run, 1), 0);
    }
    kbi_run* run = new_run();
    run->work.graph = kept_graph(1, 1000);
    kbi_gpu_repeat(run, 1, true);
    gpu.spoiled = cudaErrorStreamCaptureUnsupported;
    kbi_gpu_repeat(run, 1, false);
    CHECK(kbi_failed(run) && run->m.flags == (uint64_t)1 << KB_FLAG_CUDA_ERROR);
    kbi_graph_forget(run);
    cudaGetLastError();
    kbi_graph g;
    memset(&g, 0, sizeof g);
    g.launches = 50;
    for (int i = 0; i < 2; i++) {
        cudaGraph_t one = graph_of(50 * (i + 1), 3000);
        cudaGraphInstantiateWithFlags(&g.many[i], one, 0);
        cudaGraphDestroy(one);
    }
    CHECK_REAL(kbi_graph_slope(&g), 3400, 0.002);
    run = new_run();
    run->work.graph = &g, run->call.unit = KBI_SAMPLE;
    kbi_meter.calibration.graph_floor = 1234;
    kbi_graph_alone(run);
    CHECK_INT(run->m.n, 1), CHECK_REAL(run->m.samples[0], 3400, 0.002), CHECK_REAL(run->m.bias_ns, 0, 0);
    CHECK_REAL(run->m.floor_ns, 1234, 0), CHECK(!run->m.ungated);
    gpu.at_graph = alarm_at_graph;
    for (int k = 0; k < 2; k++) {
        kbi_graph_alone(run);
        CHECK_INT(run->m.n, !k), CHECK_INT(run->m.retaken, k ? 3 : 1), CHECK_INT(run->sampling.gated, !k);
    }
    kbi_graph_alone(run);
    CHECK_INT(run->m.n, 1), CHECK_INT(run->m.retaken, 3), CHECK(run->m.ungated && !kbi_meter.gpu.gated);
    CHECK_REAL(run->m.samples[0], 3400, 0.1);
    gpu.at_graph = NULL;
    for (int i = 0; i < 2; i++) cudaGraphExecDestroy(g.many[i]);
}

static void test_choose(void) {
    static const struct {
        unsigned expect;
        int timing, mode, graph, within;
        const kbi_timer* timer;
        uint64_t flags;
        int gated;
    } rows[] = {
        { 0, KBI_BY_EVENTS, KBI_COLD, 0, 0, &kbi_event_timer, 0, 1 },
        { 0, KBI_BY_EVENTS, KBI_HOT, 0, 0, &kbi_event_timer, 0, 1 },
        { 0, KBI_BY_EVENTS, KBI_HOT, 1, 0, &kbi_event_timer, 0, 1 },
        { 0, KBI_BY_EVENTS, KBI_ROTATE, 1, 0, &kbi_graph_timer, 0, 1 },
        { 0, KBI_BY_EVENTS, KBI_ROTATE, 0, 0, &kbi_event_timer, (uint64_t)1 << KB_FLAG_NOT_COLD, 1 },
        { KB_EXPECT_TRANSFER, KBI_BY_EVENTS, KBI_ROTATE, 1, 0, &kbi_graph_timer, 0, 1 },
        { 0, KBI_BY_EVENTS, KBI_GRAPH, 1, 0, &kbi_graph_timer, 0, 1 },
        { 0, KBI_BY_EVENTS, KBI_GRAPH, 0, 0, &kbi_event_timer, (uint64_t)1 << KB_FLAG_BAD_CASE, 1 },
        { 0, KBI_BY_WALL, KBI_COLD, 0, 0, &kbi_wall_timer, 0, 1 },
        { KB_EXPECT_SYNC, KBI_BY_EVENTS, KBI_COLD, 0, 0, &kbi_wall_timer, 0, 1 },
        { KB_EXPECT_ALLOC, KBI_BY_EVENTS, KBI_COLD, 0, 0, &kbi_wall_timer, 0, 1 },
        { KB_EXPECT_TRANSFER, KBI_BY_EVENTS, KBI_COLD, 0, 0, &kbi_event_timer, 0, 0 },
        { KB_EXPECT_TRANSFER, KBI_BY_EVENTS, KBI_COLD, 0, 1, &kbi_event_timer, 0, 1 },
        { 0, KBI_BY_CUPTI, KBI_COLD, 0, 0, &kbi_event_timer, (uint64_t)1 << KB_FLAG_BAD_CASE, 1 },
        { 0, KBI_BY_BOTH, KBI_HOT, 0, 0, &kbi_event_timer, (uint64_t)1 << KB_FLAG_BAD_CASE, 1 },
    };
    kbi_graph g;
    memset(&g, 0, sizeof g);
    g.many[1] = (cudaGraphExec_t)(void*)&g;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_run* run = new_run();
        run->work.expect = rows[i].expect, run->work.on_device = rows[i].within;
        recipe.timing = (kbi_timing)rows[i].timing, recipe.mode = (kbi_mode)rows[i].mode;
        if (rows[i].graph) run->work.graph = &g;
        CHECK_THAT(kbi_gpu_choose(run) == rows[i].timer, "row %d", (int)i);
        CHECK_THAT(run->m.flags == rows[i].flags, "row %d: flags %llx", (int)i, (unsigned long long)run->m.flags);
        CHECK_INT(run->sampling.gated, rows[i].gated);
    }
    setenv("VIRTUAL_CUPTI", "1", 1);
    static const struct {
        int timing, mode, graph;
        const kbi_timer* timer;
        int open;
    } traced[] = { { KBI_BY_CUPTI, KBI_COLD, 0, &kbi_cupti_timer, 1 },
                   { KBI_BY_BOTH, KBI_COLD, 0, &kbi_event_timer, 0 },
                   { KBI_BY_BOTH, KBI_HOT, 0, &kbi_event_timer, 0 } };
    for (int i = 0; i < 3; i++) {
        kbi_run* run = new_run();
        recipe.timing = (kbi_timing)traced[i].timing, recipe.mode = (kbi_mode)traced[i].mode;
        if (traced[i].graph) run->work.graph = &g;
        CHECK_THAT(kbi_gpu_choose(run) == traced[i].timer, "traced %d", i);
        CHECK_INT(kbi_meter.cupti.open, traced[i].open), CHECK_INT(run->m.flags, 0);
    }
    kbi_cupti_close();
}

// --- calibration ---

static void test_calibration(void) {
    kbi_calibration* c = &kbi_meter.calibration;
    for (int i = 0; i < 24; i++) c->truth.ns[i / 12][i / 6 % 2][i / 3 % 2][i % 3] = 1000 + 100 * i;
    static const struct {
        int blocks, threads, writes;
        double want;
    } rows[] = { { 1, 32, 0, 1000 },  { 1, 256, 0, 1100 },  { 1, 1024, 0, 1200 },
                 { 1, 144, 0, 1050 }, { 1, 640, 0, 1150 },  { 1, 16, 0, 1000 },
                 { 1, 32, 1, 1600 },  { 132, 32, 0, 1300 }, { 500, 1024, 1, 2100 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_shape s = { rows[i].blocks, rows[i].threads, 0, 1, 0, rows[i].writes };
        CHECK_REAL(kbi_reference_time(KBI_COLD, &s), rows[i].want, 1e-12);
        CHECK_REAL(kbi_reference_time(KBI_HOT, &s), rows[i].want + 1200, 1e-12);
    }
    kbi_shape half = { 66, 144, 0, 1, 0, 1 };
    CHECK_REAL(kbi_reference_time(KBI_COLD, &half), 1650 + 300 * 65.0 / 131, 1e-12);
    kbi_meter.gpu.multiprocessors = 1;
    CHECK_REAL(kbi_reference_time(KBI_COLD, &half), 1950, 1e-12);
    kbi_meter.gpu.multiprocessors = 132;
    // The table of empty kernels has one entry per launch configuration. If the GPU rejects a configuration,
    // kbench uses the entry of the simplest configuration instead.
    kbi_cu_launch real = kbi_meter.gpu.launch;
    c->n_empties = 0, kbi_meter.gpu.launch = take_launch, launched.error = 0;
    kbi_shape plainest = { 1, 32, 0, 1, 0, 1 }, other = { 1, 64, 0, 1, 0, 1 }, third = { 1, 96, 0, 1, 0, 1 };
    CHECK_INT(kbi_empty_index(&plainest), 0), CHECK_INT(kbi_empty_index(&other), 1), CHECK_INT(kbi_empty_index(&plainest), 0);
    CHECK_INT(kbi_empty_index(&other), 1), CHECK_INT(c->n_empties, 2);
    launched.error = 1;
    CHECK_INT(kbi_empty_index(&third), 0), CHECK_INT(c->n_empties, 2);
    launched.error = 0, c->n_empties = 0;
    kbi_meter.gpu.launch = real;
    // The events of the virtual GPU have a resolution of 32 ns. The empty kernel of the virtual GPU takes 576 ns,
    // and in a graph of launches 400 ns more.
    memset(&c->truth, 0, sizeof c->truth), c->measured = false;
    double evictions = count_of("kbi_read");
    kbi_calibrate(&machine);
    CHECK(count_of("kbi_read") - evictions >= 200 + KBI_RECENT);
    CHECK_REAL(c->quantum, 32, 1e-6), CHECK_REAL(machine.quantum, c->quantum, 0),
        CHECK_REAL(c->graph_floor, 976, 0.01);
    CHECK_REAL(machine.floor[KBI_ROTATE], c->graph_floor, 0);
    CHECK_REAL(machine.empty_pair, c->empty_pair, 0), CHECK(c->empty_pair >= 0 && c->empty_pair < 64);
    // Without CUPTI, kbench estimates the empty kernel's own time as half of its upper limit. The upper limit is
    // the time per launch in a graph, plus the excess of event times in cold mode over hot mode.
    CHECK_REAL(c->row, 976, 0.01);
    CHECK_STR(machine.truth, "estimated, not measured: half of the kernel's time in a graph");
    for (int mode = 0; mode < 2; mode++) {
        double most = c->empties[0].most[mode],
               more = mode == KBI_HOT ? 0 : machine.floor[mode] - machine.floor[KBI_HOT];
        CHECK_REAL(machine.floor[mode] - machine.bias[mode], most / 2, 1e-9);
        CHECK_THAT(fabs(most - c->row - KBI_MAX(more, 0)) < 40,
                   "upper limit %g, time per launch in a graph %g, excess of event times %g", most, c->row, more);
        CHECK(most > 576), CHECK_INT(c->empties[0].read[mode][0].n, 0);
        CHECK(c->empties[0].read[mode][1].n >= KBI_RECENT);
    }
    CHECK_REAL(machine.own_error, c->row / 2, 0.01);
    // Some launch configurations lengthen the event time of an empty kernel. The extra time may be part
    // of the kernel's duration, so it is added to the upper limit of this duration. If the time per launch in a
    // graph is unknown or exceeds the event time, the event time is the upper limit.
    kbi_launch_empty(&third);
    int wide = kbi_empty_index(&third);
    CHECK(wide > 0);
    double plain = kbi_time_empty(KBI_HOT, true, 0), reads = kbi_time_empty(KBI_HOT, true, wide), row = c->row, off,
           apart;
    CHECK_THAT(fabs(kbi_empty_time_limit(KBI_HOT, wide) - row - KBI_MAX(reads - plain, 0)) < 40,
               "in a row %g, read %g and %g", row, plain, reads);
    static const double rows_of[] = { NAN, 1e6, 0 };
    for (int i = 0; i < 3; i++) {
        c->row = rows_of[i];
        CHECK_REAL(kbi_empty_time_limit(KBI_HOT, wide), reads, 0.05);
    }
    c->row = row;
    // The empty kernel's own time is assumed to be uniform between 0 and its upper limit, so 1.96 standard
    // deviations cover all possible values.
    c->empties[wide].most[KBI_HOT] = 1000;
    c->row = 700;
    CHECK_REAL(kbi_empty_time(KBI_HOT, wide, &off, &apart), 500, 0), CHECK_REAL(off, hypot(60, 1000 / sqrt(12.0)), 1e-12);
    CHECK(1.96 * off > 500);
    CHECK_REAL(apart, hypot(60, 300 / sqrt(12.0)), 1e-12);
    c->row = NAN;
    kbi_empty_time(KBI_HOT, wide, &off, &apart), CHECK_REAL(apart, off, 0);
    c->row = row;
    // The time per launch is the slope between a short and a long graph. If the driver rejects the long graph, the
    // slope is unknown.
    setenv("VIRTUAL_GRAPH_NODES", "150", 1);
    CHECK(isnan(kbi_calibrate_graph(NULL))), CHECK(isnan(kbi_calibrate_graph(&third)));
    unsetenv("VIRTUAL_GRAPH_NODES");
    CHECK_REAL(kbi_calibrate_graph(NULL), 976, 0.01);
    kbi_reference truth;
    for (int i = 0; i < 24; i++) truth.ns[i / 12][i / 6 % 2][i / 3 % 2][i % 3] = 500 + i;
    kbi_reference_set(&truth);
    kbi_calibrate(&machine);
    CHECK_STR(machine.truth, "measured by CUPTI");
    for (int mode = 0; mode < 2; mode++)
        CHECK_REAL(machine.floor[mode] - machine.bias[mode], 500 + 12 * mode + 6, 1e-9);
    CHECK_REAL(machine.own_error, 0, 0), CHECK(isnan(c->row));
    kbi_run* run = new_run();
    run->sampling.launches = 8, run->work.empty_kernel = 0;
    for (int measured = 0; measured < 2; measured++) {
        int64_t n = c->empties[0].read[KBI_HOT][1].n;
        c->measured = measured;
        kbi_bias_update(run, KBI_HOT, true);
        double most = c->empties[0].most[KBI_HOT];
        CHECK_REAL(run->m.floor_ns - run->m.bias_ns, measured ? 518 : most / 2, 1e-9),
            CHECK_REAL(run->m.step_ns, 4, 1e-6);
        CHECK_REAL(run->m.bias_error_ns, measured ? 60 : hypot(60, most / sqrt(12.0)), 1e-12);
        CHECK_INT(run->m.bias_fitted, !measured);
        if (measured) CHECK_REAL(run->m.bias_apart_ns, 60, 0);
        CHECK_INT(c->empties[0].read[KBI_HOT][1].n - n, 2);
    }
    run->sampling.launches = 0;
    kbi_bias_update(run, KBI_HOT, false);
    CHECK_INT(c->empties[0].read[KBI_HOT][0].n, KBI_RECENT / 4), CHECK_REAL(run->m.step_ns, 32, 1e-6);
    memset(&truth, 0, sizeof truth);
    CHECK(kbi_measure_truth(&truth));
    for (int i = 0; i < 24; i++) CHECK_REAL(truth.ns[i / 12][i / 6 % 2][i / 3 % 2][i % 3], 576, 0.005);
    kbi_cupti_close();
    setenv("VIRTUAL_CUPTI_MUTE", "1", 1);
    CHECK(!kbi_measure_truth(&truth));
    unsetenv("VIRTUAL_CUPTI_MUTE");
    kbi_cupti_close();
}

// --- results of the audit ---

static operation node(int kind, const function* of) {
    operation o = { KERNEL, of, 1000, NULL, NULL, NULL };
    o.kind = (operation_kind)kind, o.way = cudaMemcpyHostToDevice;
    return o;
}
static cudaGraphNode_t as_node(operation* o) { return (cudaGraphNode_t)(void*)o; }

static void test_seen(void) {
    static const function f = { "first", 24, 7, 96, 300, 1, false }, g = { "second", 24, 9, 64, 0, 1, false };
    operation all[] = { node(KERNEL, &f), node(KERNEL, &g), node(COPY, NULL),  node(COPY, NULL),
                        node(HOST, NULL), node(HOST, NULL), node(HOST, NULL),  node(ALLOCATION, NULL),
                        node(SET, NULL),  node(SET, NULL),  node(EVENT, NULL), node(WAIT, NULL),
                        node(COPY, NULL) };
    kbi_captured seen;
    memset(&seen, 0, sizeof seen);
    all[2].way = all[12].way = cudaMemcpyDeviceToDevice;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kbi_count_node(&seen, as_node(&all[i]));
    CHECK_INT(seen.kernels, 2), CHECK_INT(seen.copies, 3), CHECK_INT(seen.within, 2), CHECK_INT(seen.host, 3);
    CHECK_INT(seen.allocations, 1), CHECK_INT(seen.sets, 2), CHECK_INT(seen.others, 0);
    CHECK(seen.node == as_node(&all[0]) && seen.first.function == &f);
    CHECK_INT(seen.first.grid[0], 7), CHECK_INT(seen.first.block[0], 96);

    static const struct {
        size_t kernels, copies, within, host, allocations, others;
        unsigned expect;
        int64_t nodes;
        int flag;
        const char* message;
    } rows[] = {
        { 1, 0, 0, 0, 0, 0, 0, 1, -1, "" },
        { 0, 0, 0, 0, 0, 1, 0, 1, -1, "" },
        { 0, 0, 0, 0, 0, 0, 0, 0, KB_FLAG_NO_WORK, "no GPU work was submitted to kb->stream" },
        { 1, 1, 1, 0, 0, 0, 0, 2, KB_FLAG_TRANSFER, "1 copy in the timed block" },
        { 1, 2, 1, 0, 1, 0, 0, 4, KB_FLAG_TRANSFER, "2 copies in the timed block" },
        { 1, 2, 1, 0, 0, 3, KB_EXPECT_TRANSFER, 6, -1, "" },
        { 0, 1, 0, 0, 0, 0, KB_EXPECT_TRANSFER, 1, -1, "" },
        { 1, 0, 0, 1, 2, 0, 0, 3, KB_FLAG_ALLOC_INSIDE, "cudaMallocAsync or cudaFreeAsync in the timed block" },
        { 1, 0, 0, 1, 0, 0, 0, 1, -1, "a host function in the timed block's stream: its time is in the result" },
        { 0, 0, 0, 1, 0, 0, 0, 0, -1, "a host function in the timed block's stream: its time is in the result" }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_run* run = new_run();
        memset(&seen, 0, sizeof seen);
        seen.kernels = rows[i].kernels, seen.copies = rows[i].copies, seen.within = rows[i].within;
        seen.host = rows[i].host, seen.allocations = rows[i].allocations, seen.others = rows[i].others;
        run->work.expect = rows[i].expect;
        kbi_judge_captured(run, &seen);
        CHECK_INT(run->work.nodes, rows[i].nodes), CHECK_INT(run->work.on_device, rows[i].within == rows[i].copies);
        CHECK_THAT(run->m.flags == (rows[i].flag < 0 ? 0 : (uint64_t)1 << rows[i].flag), "row %d", (int)i);
        CHECK_STR(run->m.message, rows[i].message);
    }

    static const struct {
        cudaError_t inside, end;
        int flag;
        const char* message;
    } refused[] = {
        { cudaErrorStreamCaptureImplicit, cudaErrorStreamCaptureInvalidated, KB_FLAG_SIDE_STREAM, "default stream" },
        { cudaSuccess, cudaErrorStreamCaptureUnjoined, KB_FLAG_SIDE_STREAM, "does not wait for" },
        { cudaSuccess, cudaErrorStreamCaptureUnmatched, KB_FLAG_SIDE_STREAM, "does not wait for" },
        { cudaErrorStreamCaptureIsolation, cudaSuccess, KB_FLAG_SIDE_STREAM, "does not wait for" },
        { cudaSuccess, cudaErrorStreamCaptureInvalidated, KB_FLAG_SYNC_INSIDE, "The rejected call is unknown" },
        { cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated, KB_FLAG_SYNC_INSIDE, "cudaMalloc" },
        { cudaErrorStreamCaptureUnsupported, cudaSuccess, KB_FLAG_SYNC_INSIDE, "KB_EXPECT_NO_CAPTURE" },
        { cudaErrorStreamCaptureInvalidated, cudaSuccess, KB_FLAG_SYNC_INSIDE, "a synchronisation" },
        { cudaErrorInvalidValue, cudaSuccess, KB_FLAG_CUDA_ERROR, "cudaErrorOfSomeKind: an error under" },
        { cudaSuccess, cudaErrorInvalidValue, KB_FLAG_CUDA_ERROR, "cudaErrorOfSomeKind: an error under" },
        { cudaSuccess, cudaSuccess, KB_FLAG_CUDA_ERROR, "cudaSuccess: no error under stream capture" }
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        kbi_run* run = new_run();
        kbi_audit_rejected(run, refused[i].inside, refused[i].end);
        CHECK_THAT(run->m.flags == (uint64_t)1 << refused[i].flag, "refused %d: %s", (int)i, run->m.message);
        CHECK_HAS(run->m.message, refused[i].message);
    }
}

// Without a separate inspecting process, each run observes whether streams other than kb->stream are busy. Two
// observations of idle streams end the check; four of a busy stream set the flag SIDE_STREAM.
static void test_looks(void) {
    static const struct {
        const char* looks;
        bool again, stops;
    } rows[] = { { ".", true, false },     { "..", false, false },    { "b", true, false },
                 { "b.b.", false, false }, { "bbb..", false, false }, { "bbbb", false, true },
                 { "bbb", true, false },   { ".bbb", true, false },   { ".bbbb", false, true },
                 { "bb.bb", false, true }, { "bb.b.", false, false } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_run* run = new_run();
        for (const char* look = rows[i].looks; *look; look++) {
            gpu.busy = *look == 'b';
            kbi_check_other_streams(run, 0);
        }
        CHECK_THAT(run->work.repeat_audit == rows[i].again, "%s", rows[i].looks);
        CHECK_THAT(run->m.flags == (uint64_t)rows[i].stops << KB_FLAG_SIDE_STREAM, "%s", rows[i].looks);
    }
    gpu.busy = true;
    kbi_run* run = new_run();
    kbi_check_other_streams(run, 10000000000), kbi_check_other_streams(run, 10000000000);
    CHECK(!run->work.repeat_audit), CHECK_INT(run->m.flags, 0);
    gpu.busy = false;
}

#if defined(__has_include)
#if __has_include(<generated_cuda_meta.h>) && __has_include(<cuda.h>)
#define HAS_META 1
#endif
#endif
#ifdef HAS_META
#include <cuda.h>
#define CUdeviceptr_v1 unsigned
#define CUDA_MEMCPY2D_v1 int
#define CUDA_MEMCPY3D_v1 int
#define CUDA_ARRAY_DESCRIPTOR_v1 int
#define CUDA_ARRAY3D_DESCRIPTOR_v1 int
#include <generated_cuda_meta.h>
// clang-format off
#define PARAMETERS(x) \
    x(cuLaunchKernel, hStream, stream) \
    x(cuLaunchCooperativeKernel, hStream, stream) \
    x(cuLaunchGridAsync, hStream, stream) \
    x(cuGraphLaunch, hStream, stream) \
    x(cuLaunchHostFunc, hStream, stream) \
    x(cuStreamAddCallback, hStream, stream) \
    x(cuMemPrefetchAsync_v2, hStream, stream) \
    x(cuMemPrefetchAsync, hStream, stream) \
    x(cuMemPrefetchBatchAsync, hStream, stream) \
    x(cuMemDiscardAndPrefetchBatchAsync, hStream, stream) \
    x(cuMemDiscardBatchAsync, hStream, stream) \
    x(cuMemBatchDecompressAsync, stream, stream) \
    x(cuStreamAttachMemAsync, hStream, stream) \
    x(cuMemcpyAsync, hStream, stream) \
    x(cuMemcpyHtoDAsync_v2, hStream, stream) \
    x(cuMemcpyDtoHAsync_v2, hStream, stream) \
    x(cuMemcpyDtoDAsync_v2, hStream, stream) \
    x(cuMemcpy3DBatchAsync_v2, hStream, stream) \
    x(cuMemcpyHtoAAsync_v2, hStream, stream) \
    x(cuMemcpyAtoHAsync_v2, hStream, stream) \
    x(cuMemcpy3DBatchAsync, hStream, stream) \
    x(cuMemcpy2DAsync_v2, hStream, stream) \
    x(cuMemcpy3DAsync_v2, hStream, stream) \
    x(cuMemcpy3DPeerAsync, hStream, stream) \
    x(cuMemcpyPeerAsync, hStream, stream) \
    x(cuMemcpyBatchAsync_v2, hStream, stream) \
    x(cuMemcpyBatchAsync, hStream, stream) \
    x(cuMemsetD8Async, hStream, stream) \
    x(cuMemsetD16Async, hStream, stream) \
    x(cuMemsetD32Async, hStream, stream) \
    x(cuMemsetD2D8Async, hStream, stream) \
    x(cuMemsetD2D16Async, hStream, stream) \
    x(cuMemsetD2D32Async, hStream, stream) \
    x(cuEventRecord, hStream, stream) \
    x(cuEventRecord, hEvent, object) \
    x(cuEventRecordWithFlags, hStream, stream) \
    x(cuEventRecordWithFlags, hEvent, object) \
    x(cuStreamWriteValue32_v2, stream, stream) \
    x(cuStreamWriteValue64_v2, stream, stream) \
    x(cuStreamWaitEvent, hStream, stream) \
    x(cuStreamWaitEvent, hEvent, object) \
    x(cuStreamWaitValue32_v2, stream, stream) \
    x(cuStreamWaitValue64_v2, stream, stream) \
    x(cuStreamSynchronize, hStream, stream) \
    x(cuStreamQuery, hStream, stream) \
    x(cuEventSynchronize, hEvent, object) \
    x(cuEventQuery, hEvent, object) \
    x(cuMemAllocAsync, hStream, stream) \
    x(cuMemAllocFromPoolAsync, hStream, stream) \
    x(cuMemFreeAsync, hStream, stream) \
    x(cuStreamBeginCapture_v2, hStream, stream) \
    x(cuStreamBeginCaptureToGraph, hStream, stream)
// clang-format on
#endif

static void test_parameters(void) {
#if defined(HAS_META) && CUDA_VERSION == 13000
    static const struct {
        const char* name;
        int stream, at;
    } rows[] = {
#define stream_ 1
#define object_ 0
#define X(f, field, what) { #f, what##_, (int)offsetof(f##_params, field) },
        PARAMETERS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool own;
        const kbi_driver_call* c = kbi_driver_call_find(rows[i].name, &own);
        CHECK_THAT(c && (rows[i].stream ? c->stream : c->object) == rows[i].at, "%s: %d", rows[i].name, rows[i].at);
    }
    CHECK_INT(offsetof(CUlaunchConfig, hStream), KBI_CONFIG_STREAM);
#else
    SKIP("no generated_cuda_meta.h of CUDA 13.0");
#endif
}

static void test_calls(void) {
    bool own = false;
    CHECK_INT(kbi_driver_call_find("cuMemAlloc_v2", &own)->kind, KBI_ALLOCATES | KBI_UNCAPTURED), CHECK(!own);
    CHECK_INT(kbi_driver_call_find("cuLaunchKernel_ptsz", &own)->kind, KBI_SUBMITS | KBI_KERNEL), CHECK(own);
    CHECK_INT(kbi_driver_call_find("cuMemcpyHtoDAsync_v2_ptsz", &own)->stream, 24), CHECK(own);
    CHECK_INT(kbi_driver_call_find("cuMemPrefetchAsync_v2", &own)->stream, 32);
    CHECK_INT(kbi_driver_call_find("cuMemPrefetchAsync", &own)->stream, 24);
    CHECK_INT(kbi_driver_call_find("cuMemcpy", &own)->kind, KBI_COPIES | KBI_HOST_STREAM | KBI_UNCAPTURED);
    CHECK(!kbi_driver_call_find("cuKernelGetName", &own)), CHECK(!kbi_driver_call_find("cuMemcpyFoo_v2", &own));

    memset(&kbi_calls, 0, sizeof kbi_calls);
    calling.on = 6, calling.called = kbi_api_called;
    api("cudaMalloc", "cuMemAlloc_v2", 0, 0, 0, 0, NULL, 0);
    kbi_calls.on = true;
    api("cudaLaunchKernel", "cuLaunchKernel", 0, 1, 5, 77, "f", 0);
    api("cudaLaunchKernel", "cuLaunchKernel", 0, 1, 5, 0, "f", 1);
    api(NULL, "cuLaunchKernel_ptsz", 0, 1, 5, 0, "g", 0);
    api(NULL, "cuKernelGetName", 0, 0, 0, 0, NULL, 0);
    api("cudaLaunchKernel", NULL, 0, 0, 0, 0, "g", 98);
    api("cudaGetLastError", NULL, 0, 0, 0, 0, NULL, 98);
    uint64_t config[5] = { 0, 0, 0, 0, 88 };
    api("cudaLaunchKernelExC", "cuLaunchKernelEx", 0, WORD(config), 0, WORD(config), "f", 0);
    uint64_t made = 99;
    api("cudaStreamCreateWithFlags", "cuStreamCreate", 0, WORD(&made), 1, 1, NULL, 0);
    call_back(2, "cudaFunny", NULL, NULL, 0, false); // the driver call fails, but the runtime call succeeds
    call_back(1, "cuMemAlloc_v2", config, NULL, 2, true);
    call_back(2, "cudaFunny", NULL, NULL, 0, true);
    kbi_calls.on = false;
    static const struct {
        int kind, number, error;
        uint64_t stream;
        const char *name, *kernel;
    } want[] = { { KBI_SUBMITS | KBI_KERNEL, 1, 0, 77, "cudaLaunchKernel", "f" },
                 { KBI_SUBMITS | KBI_KERNEL, 2, 1, KBI_STREAM_LEGACY, "cudaLaunchKernel", "f" },
                 { KBI_SUBMITS | KBI_KERNEL, 3, 0, KBI_STREAM_PER_THREAD, "cuLaunchKernel_ptsz", "g" },
                 { KBI_UNCAPTURED, 4, 98, 0, "cudaLaunchKernel", "g" },
                 { KBI_SUBMITS | KBI_KERNEL, 6, 0, 88, "cudaLaunchKernelExC", "f" },
                 { KBI_CREATES, 7, 0, 99, "cudaStreamCreateWithFlags", "" },
                 { 0, 8, 2, KBI_STREAM_LEGACY, "cudaFunny", "" } };
    CHECK_INT(kbi_calls.n, sizeof want / sizeof *want);
    for (int i = 0; i < (int)(sizeof want / sizeof *want) && i < kbi_calls.n; i++) {
        const kbi_cuda_call* c = &kbi_calls.list[i];
        CHECK_THAT(c->kind == want[i].kind && c->number == want[i].number && c->error == want[i].error &&
                       c->stream == want[i].stream,
                   "call %d: kind %d, number %d, error %d, stream %llu", i, c->kind, c->number, c->error,
                   (unsigned long long)c->stream);
        CHECK_STR(c->name, want[i].name);
        CHECK_STR(c->kernel, want[i].kernel);
    }
    calling.on = 0;
}

static void test_shape(void) {
    static const function f = { "f", 24, 7, 96, 300, 1, false }, g = { "f", 24, 7, 96, 300, 1, false },
                          wider = { "f", 24, 7, 128, 300, 1, false };
    static function like;
    operation a = node(KERNEL, &f), b = node(KERNEL, &g), c = node(SET, NULL), d = node(KERNEL, &wider);
    cudaGraphNode_t ab[] = { as_node(&a), as_node(&b) }, ba[] = { as_node(&b), as_node(&a) },
                    ac[] = { as_node(&a), as_node(&c) }, ad[] = { as_node(&a), as_node(&d) },
                    aa[] = { as_node(&a), as_node(&a) };
    uint64_t all[] = { kbi_work_hash(ab, 2), kbi_work_hash(ac, 2), kbi_work_hash(ad, 2),     kbi_work_hash(aa, 2),
                       kbi_work_hash(ab, 1), kbi_work_hash(ba, 1), kbi_work_hash(&ac[1], 1), kbi_work_hash(ab, 0) };
    CHECK(kbi_work_hash(ba, 2) == all[0]), CHECK(all[7] == 1);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) CHECK_THAT(all[i] != all[k], "shapes %d and %d", i, k);
    static const struct {
        int bytes, blocks, threads, shared, cluster, which, of_blocks;
    } rows[] = { { 8, 1, 32, 0, 1, 0, 1 },         { 9, 1, 32, 0, 1, 1, 1 },      { 16, 7, 64, 100, 1, 1, 7 },
                 { 24, 132, 64, 0, 1, 2, 132 },    { 25, 133, 64, 0, 1, 3, 132 }, { 256, 5, 1024, 0, 1, 9, 5 },
                 { 2048, 8, 64, 0, 8, 12, 8 },     { 4096, 7, 64, 0, 2, 13, 6 },  { 4097, 1, 64, 0, 2, 13, 2 },
                 { 5000, 132, 64, 0, 16, 13, 128 } };
    static const int bytes[] = { 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096 };
    for (int i = 0; i < KBI_EMPTY_KERNELS; i++) CHECK_INT(kbi_empty_bytes[i], bytes[i]);
    kbi_text ptx = KBI_BLANK;
    kbi_empty_put(&ptx);
    const char* at = ptx.s;
    for (int i = 0; i < KBI_EMPTY_KERNELS; i++) {
        int which = -1, size = 0, from = -1;
        at = at ? strstr(at, "kbi_empty_") : NULL;
        if (!CHECK(at && sscanf(at, "kbi_empty_%d(.param .align 8 .b8 a[%d])", &which, &size) == 2)) break;
        at = strstr(at, "[a+");
        CHECK(at && sscanf(at, "[a+%d]", &from) == 1);
        CHECK_INT(which, i), CHECK_INT(size, bytes[i]), CHECK_INT(from + 8, size);
    }
    kbi_text_free(&ptx);
    kbi_calibration* cal = &kbi_meter.calibration;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_run* run = new_run();
        kbi_captured seen;
        memset(&seen, 0, sizeof seen);
        memset(&like, 0, sizeof like);
        snprintf(like.name, sizeof like.name, "like");
        like.bytes = (size_t)rows[i].bytes, like.blocks = rows[i].blocks, like.threads = rows[i].threads;
        like.shared = rows[i].shared, like.cluster = rows[i].cluster;
        operation o = node(KERNEL, &like);
        kbi_count_node(&seen, as_node(&o));
        kbi_kernel_properties(&run->m, &seen.first);
        CHECK_INT(run->m.shared_bytes, 4096 + rows[i].shared), CHECK_INT(run->m.grid[0], rows[i].blocks);
        int which = kbi_empty_match(&seen, &run->m, &machine);
        kbi_shape s = cal->empties[which].shape;
        CHECK_THAT(s.which == rows[i].which && s.blocks == rows[i].of_blocks && s.threads == rows[i].threads &&
                       s.shared == 4096 + rows[i].shared && s.cluster == rows[i].cluster && s.writes == 1,
                   "row %d: kernel %d, %d blocks of %d threads, %d B shared, cluster %d, writes %d", (int)i,
                   s.which, s.blocks, s.threads, s.shared, s.cluster, s.writes);
        snprintf(machine.tool, sizeof machine.tool, "a tool");
        CHECK_INT(kbi_empty_match(&seen, &run->m, &machine), 0);
        machine.tool[0] = 0, seen.first.function = NULL;
        CHECK_INT(kbi_empty_match(&seen, &run->m, &machine), 0);
    }
    like.dry = true, like.bytes = 24;
    operation o = node(KERNEL, &like);
    kbi_captured seen;
    memset(&seen, 0, sizeof seen);
    kbi_count_node(&seen, as_node(&o));
    kbi_run* run = new_run();
    kbi_kernel_properties(&run->m, &seen.first);
    int which = kbi_empty_match(&seen, &run->m, &machine);
    CHECK_INT(cal->empties[which].shape.writes, 0);
    kbi_measured m;
    kbi_cu_kernel k;
    memset(&k, 0, sizeof k), kbi_measured_clear(&m);
    k.function = &like, k.shared = 100, k.block[0] = 32, k.block[1] = 4, k.block[2] = 2, k.grid[0] = 3;
    kbi_kernel_properties(&m, &k);
    CHECK_INT(m.registers, 42), CHECK_INT(m.local_bytes, 24), CHECK_INT(m.shared_bytes, 4196);
    CHECK_REAL(m.occupancy, 12.5, 0), CHECK_STR(m.kernel, "like"), CHECK_INT(m.grid[0], 3), CHECK_INT(m.block[1], 4);
}

// --- CUPTI's records ---

static int no_flush(uint32_t flags) { return (void)flags, 0; }
static void test_spans(void) {
    static const struct {
        uint64_t start, end;
    } rows[] = { { 500, 900 }, { 100, 250 }, { 300, 320 }, { 300, 700 }, { 1000, 1001 } };
    static const double one[] = { 150, 20, 400, 400, 1 }, two[] = { 220, 600 }, three[] = { 600 }, four[] = { 800 },
                        five[] = { 901 };
    kbi_cupti* c = &kbi_meter.cupti;
    int (*flush)(uint32_t) = c->flush;
    double ns[8];
    c->flush = no_flush;
    for (int kernels = 1; kernels <= 6; kernels++)
        for (int most = 0; most <= 5; most++) {
            const double* want = kernels == 1   ? one
                                 : kernels == 2 ? two
                                 : kernels == 3 ? three
                                 : kernels == 4 ? four
                                                : five;
            for (int i = 0; i < 5; i++) c->spans[i].start = rows[i].start, c->spans[i].end = rows[i].end;
            c->n = 5;
            int n = kbi_cupti_read(kernels, ns, most);
            CHECK_INT(n, KBI_MIN(5 / kernels, most)), CHECK_INT(c->n, 0);
            for (int i = 0; i < n && kernels > 1; i++) CHECK_REAL(ns[i], want[i], 0);
            if (n) CHECK_REAL(ns[0], want[0], 0);
            if (kernels == 1 && n == 5) CHECK_REAL(ns[1] + ns[2], 420, 0), CHECK_REAL(ns[4], 1, 0);
        }
    kbi_run* run = new_run();
    run->work.recorded = 1;
    for (int i = 0; i < 5; i++) c->spans[i].start = rows[i].start, c->spans[i].end = rows[i].end;
    c->n = 5;
    CHECK_REAL(kbi_cupti_sample_mean(run, 5), 971 / 5.0, 1e-12), CHECK_INT(run->sampling.missed, 0);
    for (int i = 0; i < 2; i++) {
        c->n = 4;
        CHECK(isnan(kbi_cupti_sample_mean(run, 5))), CHECK_INT(run->sampling.missed, i + 1),
            CHECK_INT(run->m.retaken, i + 1);
        CHECK(!kbi_failed(run));
    }
    c->n = 5, run->work.recorded = 0;
    CHECK(!isnan(kbi_cupti_sample_mean(run, 5))), CHECK_INT(run->sampling.missed, 0), CHECK_INT(run->m.retaken, 2);
    for (int i = 0; i < 3; i++) c->n = 6, kbi_cupti_sample_mean(run, 5);
    CHECK(kbi_failed(run)), CHECK_HAS(run->m.message, "CUPTI recorded 6 of 5 launches");
    kbi_run* unseen = new_run();
    for (int i = 0; i < 5; i++) c->spans[i].start = rows[i].start, c->spans[i].end = rows[i].end;
    c->n = 4;
    CHECK_REAL(kbi_cupti_sample_mean(unseen, 2), (two[0] + two[1]) / 2, 1e-12), CHECK_INT(unseen->work.recorded, 2);
    c->n = 2;
    CHECK(isnan(kbi_cupti_sample_mean(unseen, 2))), CHECK_INT(unseen->sampling.missed, 1), CHECK(!kbi_failed(unseen));
    c->flush = flush;
}

static kbi_activity to_come[16];
static int n_to_come, came;
static int next_record(uint8_t* buffer, size_t valid, kbi_activity** r) {
    (void)buffer, (void)valid;
    return came < n_to_come ? (*r = &to_come[came++], 0) : 1;
}
static int looked;
static void look_at(const kbi_activity* r) { looked += r != NULL; }
static int long_text(int error, const char** text) {
    static char es[420];
    memset(es, 'e', sizeof es - 1);
    return *text = es, error == 7 ? 0 : 1;
}

static void test_buffers(void) {
    static const struct {
        uint32_t kind;
        uint64_t start, end;
        const char* name;
        int counts;
    } rows[] = { { KBI_ACTIVITY_KERNEL, 10, 20, "mine", 1 },
                 { KBI_ACTIVITY_RUNTIME, 10, 20, "mine", 0 },
                 { KBI_ACTIVITY_COPY, 21, 29, NULL, 1 },
                 { KBI_ACTIVITY_SET, 22, 24, NULL, 1 },
                 { KBI_ACTIVITY_SET, 0, 24, NULL, 0 },
                 { KBI_ACTIVITY_KERNEL, 10, 20, "kbi_read", 0 },
                 { KBI_ACTIVITY_KERNEL, 10, 20, "kbi_null", 0 },
                 { KBI_ACTIVITY_KERNEL, 10, 20, "kbi_clock", 0 },
                 { KBI_ACTIVITY_KERNEL, 30, 45, "kbi_copy", 1 },
                 { KBI_ACTIVITY_KERNEL, 0, 20, "mine", 0 },
                 { KBI_ACTIVITY_KERNEL, 50, 49, "mine", 0 },
                 { KBI_ACTIVITY_KERNEL, 50, 50, "mine", 1 },
                 { KBI_ACTIVITY_KERNEL, 70, 90, NULL, 1 } };
    enum { ROWS = sizeof rows / sizeof *rows };
    kbi_cupti kept = kbi_meter.cupti, *c = &kbi_meter.cupti;
    uint8_t* buffer;
    size_t size, most;
    c->next = next_record, c->open = true, c->n = 0, n_to_come = ROWS;
    for (int i = 0; i < ROWS; i++) {
        kbi_activity_copy* copy = (kbi_activity_copy*)(void*)&to_come[i];
        bool moves = rows[i].kind == KBI_ACTIVITY_COPY || rows[i].kind == KBI_ACTIVITY_SET;
        to_come[i].kind = rows[i].kind, to_come[i].name = rows[i].name;
        to_come[i].start = rows[i].start, to_come[i].end = rows[i].end;
        if (moves) copy->bytes = 77, copy->start = rows[i].start, copy->end = rows[i].end;
    }
    kbi_cupti_request(&buffer, &size, &most);
    CHECK_INT(size, 1 << 20), CHECK_INT(most, 0);
    kbi_cupti_completed(NULL, 0, buffer, size, 1);
    CHECK_INT(came, ROWS), CHECK_INT(c->n, 6);
    for (int i = 0, n = 0; i < ROWS; i++)
        if (rows[i].counts) {
            CHECK_INT(c->spans[n].start, rows[i].start), CHECK_INT(c->spans[n].end, rows[i].end);
            n++;
        }
    // Four ways in which a CUPTI buffer is completed. 0: the buffer contains no records; 1: CUPTI is not open; 2:
    // kbench's array of records is full; 3: a callback is set.
    for (int how = 0; how < 4; how++) {
        int n = c->n = how == 2 ? KBI_SPANS : 4;
        c->open = how != 1, came = looked = 0;
        c->look = how == 3 ? look_at : NULL;
        kbi_cupti_request(&buffer, &size, &most);
        kbi_cupti_completed(NULL, 0, buffer, size, how > 0);
        CHECK_INT(c->n, n), CHECK_INT(came, how ? ROWS : 0), CHECK_INT(looked, how == 3 ? ROWS : 0);
    }
    *c = kept;
    static const int known[] = { 26, 35, 39 };
    static const char* const words[] = { "DCGM", "CAP_SYS_ADMIN", "another profiler" };
    char why[400];
    for (int i = 0; i < 3; i++) CHECK_HAS(kbi_cupti_error_text("call", known[i], why), words[i]);
    CHECK_STR(kbi_cupti_error_text("call", 34, why), "call: CUPTI_ERROR_OF_SOME_KIND (34)");
    c->text = NULL;
    CHECK_STR(kbi_cupti_error_text("call", 7, why), "call: an error (7)");
    char room[432];
    memset(room, '#', sizeof room), c->text = long_text;
    kbi_cupti_error_text("call", 7, room);
    CHECK_INT(strlen(room), 399), CHECK_INT(strncmp(room, "call: eee", 9), 0), CHECK_INT(room[400], '#');
    c->text = kept.text;
    c->error = 39;
    CHECK_HAS(kbi_cupti_unavailable(why), "another profiler");
    c->error = 0;
    CHECK_HAS(kbi_cupti_unavailable(why), "does not accept buffers");
    void* library = c->library;
    c->library = NULL;
    CHECK_HAS(kbi_cupti_unavailable(why), "is not found");
    c->library = library;
}

// --- profiles ---

static void test_occupancy(void) {
    static const struct {
        int block[3], grid[3], registers, shared;
        double percent;
        int limit;
    } rows[] = { { { 256, 1, 1 }, { 9999, 1, 1 }, 0, 0, 100, KBI_BY_WARPS },
                 { { 256, 1, 1 }, { 9999, 1, 1 }, 42, 0, 62.5, KBI_BY_REGISTERS },
                 { { 256, 1, 1 }, { 9999, 1, 1 }, 64, 0, 50, KBI_BY_REGISTERS },
                 { { 256, 1, 1 }, { 9999, 1, 1 }, 40, 0, 75, KBI_BY_REGISTERS },
                 { { 256, 1, 1 }, { 9999, 1, 1 }, 41, 0, 62.5, KBI_BY_REGISTERS },
                 { { 256, 1, 1 }, { 9999, 1, 1 }, 32, 0, 100, KBI_BY_WARPS },
                 { { 32, 1, 1 }, { 9999, 1, 1 }, 8, 0, 50, KBI_BY_BLOCKS },
                 { { 33, 1, 1 }, { 9999, 1, 1 }, 8, 0, 100, KBI_BY_WARPS },
                 { { 1, 1, 1 }, { 9999, 1, 1 }, 8, 0, 50, KBI_BY_BLOCKS },
                 { { 256, 1, 1 }, { 9999, 1, 1 }, 8, 57344, 50, KBI_BY_SHARED },
                 { { 256, 1, 1 }, { 9999, 1, 1 }, 8, 57345, 37.5, KBI_BY_SHARED },
                 { { 256, 1, 1 }, { 132 * 3, 1, 1 }, 8, 0, 37.5, KBI_BY_GRID },
                 { { 256, 1, 1 }, { 132 * 3 + 1, 1, 1 }, 8, 0, 50, KBI_BY_GRID },
                 { { 256, 1, 1 }, { 2, 66, 3 }, 8, 0, 37.5, KBI_BY_GRID },
                 { { 8, 8, 4 }, { 9999, 9, 9 }, 42, 0, 62.5, KBI_BY_REGISTERS },
                 { { 0, 1, 1 }, { 1, 1, 1 }, 8, 0, 0, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kbi_event e;
        memset(&e, 0, sizeof e);
        memcpy(e.block, rows[i].block, sizeof e.block), memcpy(e.grid, rows[i].grid, sizeof e.grid);
        e.registers = rows[i].registers, e.shared = rows[i].shared;
        kbi_event_occupancy(&e);
        CHECK_THAT(e.occupancy == (float)rows[i].percent && e.limit == rows[i].limit, "row %d: %g %%, by %d", (int)i,
                   (double)e.occupancy, e.limit);
    }
}

static int name_call(int domain, uint32_t id, const char** name) {
    static const char* const names[] = {
        "cudaLaunchKernel_v7000", "cuMemcpy_v2", "a_vector", "b_v2_ptsz", "c_v", NULL, "x"
    };
    *name = names[id];
    return id == 6 && domain == 1;
}
static const char* text_at(int32_t at) { return kbi_meter.insight.texts.s + at; }
static void test_names(void) {
    static const char* const plain[] = { "cudaLaunchKernel", "cuMemcpy", "a_vector", "b_v2_ptsz", "c_v",
                                         "a call",           "a call" };
    static const char* const ways[] = { "memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
                                        "memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA",
                                        "memcpy DtoD", "memcpy HtoH", "memcpy PtoP", "memcpy" };
    int (*call)(int, uint32_t, const char**) = kbi_meter.cupti.call;
    new_run();
    kbi_meter.cupti.call = name_call;
    for (uint32_t i = 0; i < 7; i++) CHECK_STR(text_at(kbi_call_name(1, i)), plain[i]);
    int32_t at = kbi_call_name(2, 6);
    CHECK_STR(text_at(at), "x"), CHECK_INT(kbi_call_name(2, 6), at);
    kbi_meter.cupti.call = NULL;
    CHECK_STR(text_at(kbi_call_name(3, 0)), "a call");
    kbi_meter.cupti.call = call;
    kbi_activity_copy c;
    memset(&c, 0, sizeof c);
    for (int i = 0; i < 12; i++) {
        c.kind = KBI_ACTIVITY_COPY, c.which = (uint8_t)i;
        CHECK_STR(text_at(kbi_copy_name(&c)), ways[i]);
        c.kind = KBI_ACTIVITY_SET;
        CHECK_STR(text_at(kbi_copy_name(&c)), "memset");
    }
    c.kind = KBI_ACTIVITY_COPY, c.which = 255;
    CHECK_STR(text_at(kbi_copy_name(&c)), "memcpy");
}

static uint32_t version_is;
static int version_now(uint32_t* version) { return *version = version_is, 0; }
static void test_collect(void) {
    kbi_insight* in = &kbi_meter.insight;
    kbi_run* run = new_run();
    kbi_activity k;
    kbi_activity_copy c;
    kbi_activity_call call;
    static const struct {
        uint32_t kind, id, thread, correlation;
        uint64_t start, end;
    // the runtime call in the next row begins at the same time as the first run of the block
    } callings[] = { { KBI_ACTIVITY_RUNTIME, 211, 77, 1, 1000, 1100 },
                     // the driver call is nested in the runtime call
                     { KBI_ACTIVITY_DRIVER, 307, 77, 1, 1010, 1090 },
                     { KBI_ACTIVITY_DRIVER, 307, 78, 2, 1020, 1030 },  // of another thread
                     // the runtime call in the next row begins at the end of the first run of the block
                     { KBI_ACTIVITY_RUNTIME, 41, 77, 3, 2000, 2100 },
                     { KBI_ACTIVITY_RUNTIME, 41, 77, 4, 2101, 2150 },  // after the run
                     { KBI_ACTIVITY_RUNTIME, 51, 77, 5, 3500, 3600 } };
    in->head.runs = 2;
    in->window[0][0] = 1000, in->window[0][1] = 2000, in->window[1][0] = 3000, in->window[1][1] = 4000;
    for (int i = 0; i < 6; i++) {
        memset(&call, 0, sizeof call);
        call.kind = callings[i].kind, call.id = callings[i].id, call.thread = callings[i].thread;
        call.correlation = callings[i].correlation, call.start = callings[i].start, call.end = callings[i].end;
        kbi_activity_record((const kbi_activity*)(const void*)&call);
    }
    memset(&k, 0, sizeof k);
    k.kind = KBI_ACTIVITY_KERNEL, k.name = "k", k.start = 5000, k.end = 6000, k.stream = 7, k.registers = 42;
    k.local = 24, k.static_shared = 100, k.dynamic_shared = 11, k.correlation = 1;
    for (int i = 0; i < 3; i++) k.grid[i] = 2 + i, k.block[i] = 8 + i, k.cluster[i] = 20 + i;
    kbi_activity_record(&k);
    k.correlation = 4, kbi_activity_record(&k);
    memset(&c, 0, sizeof c);
    c.kind = KBI_ACTIVITY_COPY, c.which = 8, c.bytes = 123, c.start = 6000, c.end = 6500, c.stream = 9,
    c.correlation = 2;
    kbi_activity_record((const kbi_activity*)(const void*)&c);
    c.kind = KBI_ACTIVITY_SET, c.correlation = 5, c.start = 7000;
    kbi_activity_record((const kbi_activity*)(const void*)&c);
    k.kind = 99, kbi_activity_record(&k);
    CHECK_INT(in->events.n / sizeof(kbi_recorded), 10);
    kbi_activity_collect(run);
    static const struct {
        int kind, run, cause;
        int64_t start, end;
        const char* name;
    } want[] = { { KBI_EVENT_RUN, 0, -1, 1000, 2000, "the block" },
                 { KBI_EVENT_RUN, 1, -1, 3000, 4000, "the block" },
                 { KBI_EVENT_CALL, 0, -1, 1000, 1100, "cudaLaunchKernel" },
                 { KBI_EVENT_CALL, 0, -1, 1020, 1030, "cuLaunchKernel" },
                 { KBI_EVENT_CALL, 0, -1, 2000, 2100, "cudaMemcpyAsync" },
                 { KBI_EVENT_CALL, 1, -1, 3500, 3600, "cudaMemsetAsync" },
                 { KBI_EVENT_KERNEL, 0, 2, 5000, 6000, "k" },
                 { KBI_EVENT_COPY, 0, 3, 6000, 6500, "memcpy DtoD" },
                 { KBI_EVENT_SET, 1, 5, 7000, 6500, "memset" } };
    enum { WANT = sizeof want / sizeof *want };
    const kbi_event* e = (const kbi_event*)(void*)in->events.s;
    CHECK_INT(in->events.n, WANT * sizeof *e);
    for (int i = 0; i < WANT && in->events.n == WANT * sizeof *e; i++)
        CHECK_THAT(e[i].kind == want[i].kind && e[i].run == want[i].run && e[i].cause == want[i].cause &&
                       e[i].start == want[i].start && e[i].end == want[i].end &&
                       strcmp(text_at(e[i].name), want[i].name) == 0,
                   "event %d: kind %d of run %d by %d, %lld to %lld, %s", i, e[i].kind, e[i].run, e[i].cause,
                   (long long)e[i].start, (long long)e[i].end, text_at(e[i].name));
    CHECK_INT(e[6].registers, 42), CHECK_INT(e[6].local, 24), CHECK_INT(e[6].shared, 111), CHECK_INT(e[6].lane, 7);
    CHECK_INT(e[2].lane, 77), CHECK_INT(e[7].lane, 9), CHECK_INT(e[7].bytes, 123),
        CHECK_STR(text_at(e[6].symbol), "k");
    for (int i = 0; i < 3; i++)
        CHECK_INT(e[6].grid[i], 2 + i), CHECK_INT(e[6].block[i], 8 + i), CHECK_INT(e[6].cluster[i], 20 + i);
    CHECK_INT(in->head.dropped, 0), CHECK_STR(in->head.message, "");
    kbi_text_free(&in->events);
    int (*version)(uint32_t*) = kbi_meter.cupti.version;
    for (version_is = 17; version_is < 20; version_is++) { // records contain the cluster size since version 18
        kbi_recorded to;
        kbi_meter.cupti.version = version_is < 19 ? version_now : NULL;
        memset(&to, 0, sizeof to);
        kbi_activity_kernel(&k, &to);
        for (int i = 0; i < 3; i++) CHECK_INT(to.event.cluster[i], version_is == 18 ? 20 + i : 0);
    }
    kbi_meter.cupti.version = version;
    in->events.n = 4 * (size_t)KBI_INSIDE_EVENTS * sizeof(kbi_recorded);
    k.kind = KBI_ACTIVITY_KERNEL, kbi_activity_record(&k);
    CHECK_INT(in->head.dropped, 1);
    in->events.n = 0;
    in->head.runs = 1, run->work.nodes = 0;
    kbi_activity_collect(run);
    CHECK_STR(in->head.message, ""), CHECK_INT(in->events.n, sizeof *e);
    kbi_text_free(&in->events);
    run->work.nodes = 1;
    kbi_activity_collect(run);
    CHECK_HAS(in->head.message, "CUPTI recorded no work");
    kbi_recorded x, y;
    memset(&x, 0, sizeof x);
    for (int i = 0; i < 4; i++) {
        memset(&y, 0, sizeof y);
        if (i == 0) y.event.start = 1;
        if (i == 1) y.event.kind = 1;
        if (i == 2) y.event.end = -1;
        CHECK_INT(kbi_recorded_order(&x, &y) < 0, i < 3), CHECK_INT(kbi_recorded_order(&y, &x) > 0, i < 3);
    }
    kbi_insight_clear();
}

// --- energy: a counter that the test sets ---

static unsigned long long joules;
static int joules_fail;
static int energy_now(void* device, unsigned long long* mj) { return (void)device, *mj = joules, joules_fail; }
static void test_joules(void) {
    struct kbi_energy* e = &kbi_energy;
    int (*real)(void*, unsigned long long*) = kbi_meter.nvml.energy;
    double mj = 0;
    kbi_meter.nvml.energy = energy_now;
    joules = 5000;
    CHECK(kbi_energy_read(&mj)), CHECK_REAL(mj, 5000, 0);
    kbi_energy_restart();
    CHECK_REAL(kbi_energy_span(), 0, 0), CHECK_REAL(e->last, 5000, 0), CHECK(!e->failed);
    kbi_energy_note(0);
    CHECK(!e->first.at);
    joules = 5010, e->launches = 3;
    kbi_energy_note(1000000000000); // too early
    CHECK(!e->first.at), CHECK_REAL(e->last, 5010, 0);
    joules = 5020, kbi_energy_note(0);
    CHECK(e->first.at && !e->latest.at), CHECK_REAL(e->first.mj, 5020, 0), CHECK_INT(e->first.launches, 3);
    CHECK_REAL(kbi_energy_span(), 0, 0);
    joules = 5050, e->launches = 9, kbi_energy_note(0);
    CHECK_REAL(e->latest.mj, 5050, 0), CHECK_INT(e->latest.launches, 9), CHECK_REAL(e->first.mj, 5020, 0);
    joules = 5070, e->launches = 13, kbi_energy_note(0);
    CHECK_REAL(e->latest.mj, 5070, 0), CHECK_REAL(kbi_energy_span(), (double)(e->latest.at - e->first.at), 0);
    static const struct {
        int64_t span, launches;
        int failed;
        double want;
        const char* message;
    } rows[] = { { 2000000000, 10, 0, 5, "" },
                 { 1999999999, 10, 0, 0, "NVML's energy counter did not change" },
                 { 2000000000, 0, 0, 0, "NVML's energy counter did not change" },
                 { 2000000000, 10, 1, 0, "NVML's energy counter failed while the block ran" } };
    for (int i = 0; i < 4; i++) {
        kbi_run* run = new_run();
        e->first.at = 1000, e->latest.at = 1000 + rows[i].span, e->failed = rows[i].failed;
        e->first.launches = 3, e->latest.launches = 3 + rows[i].launches, e->many = NULL;
        kbi_energy_close(&run->kb);
        CHECK_REAL(kbi_meter.insight.head.energy_mj, rows[i].want, 0), CHECK_STR(kbi_meter.insight.head.message, rows[i].message);
    }
    // Batches take about 10 ms: the first run determines the number of launches, which is doubled until a batch
    // takes 5 ms.
    static const struct {
        int64_t estimate;
        double batch;
        int64_t before, want;
    } batches[] = { { 1000000, 0, 0, 10 }, { 0, 0, 0, 1000 },    { 5000, 0, 0, 1000 },    { 20000000, 0, 0, 1 },
                    { 1, 4.9e6, 7, 14 },   { 1, 5e6, 7, 7 },     { 1, 4.9e6, 600, 1000 }, { 1, 9e9, 1, 1 },
                    { 10001, 0, 0, 999 },  { 10000000, 0, 0, 1 } };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        kbi_run* run = new_run();
        e->capturing = false, run->work.estimate_ns = batches[i].estimate;
        e->batch_ns = batches[i].batch, e->each = batches[i].before;
        EQUAL(kbi_energy_begin(&run->kb), batches[i].want);
        CHECK_INT(e->each, batches[i].want);
    }
    // The readings of the energy counter must span 2 s or 20 batches, but at most 10 s. The energy measurement as
    // a whole may take at most twice the time that the readings must span, plus 1 s.
    static const struct {
        double batch, span, all; // s
        int want;
    } ends[] = {
        { 0.01, 1.9, 2, 1 }, { 0.01, 2.1, 3, 0 }, { 0.2, 3.7, 4, 1 },  { 0.2, 4.3, 5, 0 }, { 3, 9.9, 10, 1 },
        { 3, 10.1, 11, 0 },  { 0.01, 0, 4.9, 1 }, { 0.01, 0, 5.1, 0 }, { 3, 0, 20.9, 1 },  { 3, 0, 21.1, 0 }
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        e->failed = false, e->launches = 5;
        int64_t now = kbi_now();
        e->began = now - (int64_t)(1e9 * ends[i].all), e->submitting = now - (int64_t)(1e9 * ends[i].batch);
        e->first.at = 1000, e->latest.at = ends[i].span > 0 ? 1000 + (int64_t)(1e9 * ends[i].span) : 0;
        e->last = (double)joules;
        CHECK_THAT(kbi_energy_batch(4) == ends[i].want, "end %d", (int)i);
        CHECK_INT(e->launches, 9), CHECK(fabs(e->batch_ns - 1e9 * ends[i].batch) < 2e7);
    }
    e->failed = false, e->capturing = true, e->launches = 5;
    kbi_graph_capture_begin(), gpu.spoiled = cudaErrorStreamCaptureInvalidated;
    CHECK(kbi_energy_end(NULL) && !e->capturing && !e->many && !e->launches);
    joules_fail = 1;
    CHECK(!kbi_energy_read(&mj)), CHECK(!kbi_energy_batch(1) && e->failed);
    e->last = 0;
    kbi_energy_restart();
    CHECK(e->failed);
    joules_fail = 0, kbi_meter.nvml.energy = NULL;
    CHECK(!kbi_energy_read(&mj));
    kbi_meter.nvml.energy = real;
}

// --- counters: the requested metrics ---

static int has_metric(uint64_t* w) { return strstr((const char*)(uintptr_t)w[3], "lacks") || w[0] != 60 ? 17 : 0; }
static uint32_t says[8];
static int supported(uint64_t* w) { return memcpy(&w[2], says, sizeof says), w[0] == 52 ? 0 : 1; }
static int refuses(uint64_t* w) { return (void)w, 9; }
static void test_metrics(void) {
    static const struct {
        const char *set, *message;
        int n;
    } rows[] = { { NULL, "", 29 },          { "usual", "", 29 },
                 { "few", "", 6 },          { "all", "", 37 },
                 { "a__b", "", 1 },         { "a__b,c__d", "", 2 },
                 { ",a__b,,c__d,", "", 2 }, { "a__b,lacks__it", "this chip has no metric lacks__it", 1 } };
    struct kbi_range_state* r = &kbi_range_state;
    memset(r, 0, sizeof *r);
    CHECK(!kbi_range_choose("few")), CHECK_INT(r->n, 0);
    r->calls[KBI_RANGE_METRIC] = has_metric;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        new_run();
        CHECK(kbi_range_choose(rows[i].set)), CHECK_INT(r->n, rows[i].n);
        CHECK_STR(kbi_meter.insight.head.message, rows[i].message);
        if (i < 4)
            CHECK_STR(r->metrics[1], "dram__bytes.sum"), CHECK_STR(r->names[1], "dram_bytes"),
                CHECK_STR(r->units[1], "B");
        if (i > 3) CHECK_STR(r->metrics[0], "a__b"), CHECK_STR(r->names[0], "a__b"), CHECK_STR(r->units[0], "");
        if (r->n == 2) CHECK_STR(r->metrics[1], "c__d");
    }
    CHECK(!kbi_range_choose("lacks__1")), CHECK_INT(r->n, 0);
    char many[512] = "";
    for (int i = 0; i < 80; i++) strcat(many, "a__b,");
    CHECK(kbi_range_choose(many)), CHECK_INT(r->n, KBI_METRICS);
    r->calls[KBI_RANGE_SUPPORTED] = supported;
    // -2: counters are available; -1: counters are unavailable for an unknown reason; 0 to 5: counters are
    // unavailable for one of the six known reasons
    for (int i = -2; i < 6; i++) {
        new_run(), r->failed = false;
        says[1] = i == -2 ? 3 : 1;
        for (int k = 2; k < 8; k++) says[k] = k - 2 == i ? 1 : 3;
        CHECK_INT(kbi_range_supported(4), i == -2);
        CHECK_HAS(kbi_meter.insight.head.message, i == -2 ? "" : "this GPU cannot be profiled");
    }
    uint64_t w[16] = { 0 };
    for (int i = 0; i < 2; i++) {
        new_run(), r->failed = i;
        r->calls[KBI_RANGE_START] = refuses, r->calls[KBI_RANGE_STOP] = NULL;
        CHECK(!kbi_range(KBI_RANGE_START, w)), CHECK(r->failed), CHECK_INT(w[0], 24);
        CHECK_STR(kbi_meter.insight.head.message, i ? "" : "cuptiRangeProfilerStart: CUPTI_ERROR_OF_SOME_KIND (9)");
        new_run(), r->failed = i;
        CHECK(!kbi_range(KBI_RANGE_STOP, w)), CHECK(r->failed);
        CHECK_HAS(kbi_meter.insight.head.message, i ? "" : "has no cuptiRangeProfilerStop; counters need the library of CUDA 12.6");
    }
    memset(r, 0, sizeof *r);
    kbi_insight_clear();
}

// --- the state of the device ---

static unsigned long long reasons_now;
static int these_reasons(void* device, unsigned long long* mask) { return (void)device, *mask = reasons_now, 0; }
static void test_sensors(void) {
    kbi_run* run = new_run();
    kbi_nvml nvml = kbi_meter.nvml;
    int any;
    kbi_meter.nvml.device = &any, kbi_meter.nvml.reasons = these_reasons;
    static const char* const names[] = { "power cap", "hardware slowdown", "thermal (software)", "thermal (hardware)",
                                         "power brake" };
    static const unsigned long long bits[] = { 0x4, 0x8, 0x20, 0x40, 0x80 };
    for (int i = 0; i < 5; i++) {
        run->m.throttle[0] = 0;
        reasons_now = bits[i], kbi_gpu_throttled(&run->m), kbi_gpu_throttled(&run->m);
        CHECK_STR(run->m.throttle, names[i]);
    }
    reasons_now = 0x4 | 0x13, kbi_gpu_throttled(&run->m);
    kbi_meter.nvml = nvml;
    CHECK_STR(run->m.throttle, "power brake, power cap");
    CHECK_REAL(kbi_gpu_clock(), 1980, 0.001);
    double before = count_of("cudaMalloc");
    recipe.placement = 0, kbi_gpu_take_pages(&recipe);
    CHECK_INT(count_of("cudaMalloc") - before, 0);
    for (int i = 1; i < 5; i++) {
        recipe.placement = i, before = count_of("cudaMalloc");
        double bytes = count_of("bytes allocated");
        kbi_gpu_take_pages(&recipe);
        int64_t n = 1 + (int64_t)((kbi_placement(&recipe) >> 32) % 64);
        CHECK_INT(count_of("cudaMalloc") - before, n), CHECK_INT(count_of("bytes allocated") - bytes, n << 21);
    }
    recipe.placement = 0;
    CHECK(kbi_gpu_wait() == NULL && !kbi_gpu_lost());
    did(cudaErrorInvalidValue);
    CHECK_STR(kbi_gpu_wait(), "cudaErrorOfSomeKind: an error"), CHECK(kbi_gpu_wait() == NULL);
    CHECK_INT(kbi_gpu_pool_peak(false), 100 << 20);
    kbi_graph_capture_begin();
    kbi_meter.gpu.at = 3;
    kbi_gpu_abandon(); // simulates a block that was left early
    CHECK(!gpu.capture), CHECK_INT(kbi_meter.gpu.at, 0);
    // kbench cannot test whether L2 is evicted if the evicting buffer is smaller than eight times L2, or if L2 is
    // too small for the probes.
    size_t size = (size_t)1 << 20;
    kbi_machine small = machine;
    char* p = NULL;
    cudaMalloc((void**)&p, 12 * size);
    small.l2 = (int64_t)size;
    CHECK(isnan(kbi_measure_cold(&small, p, p, 8 * size - 1)));
    small.l2 = 8 * KBI_PROBE - 4096;
    CHECK(isnan(kbi_measure_cold(&small, p, p, 12 * size)));
    cudaFree(p);
}

static void test_opened(void) {
    char runtime[32], driver[40];
    kbi_machine none;
    snprintf(runtime, sizeof runtime, "%d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    snprintf(driver, sizeof driver, "CUDA %s", runtime);
    kbi_machine m = machine;
    m.driver[0] = 0, kbi_gpu_facts(&m); // NVML provides the driver version
    CHECK_STR(m.gpu, "Virtual GPU"), CHECK_STR(m.cuda, runtime), CHECK_STR(m.driver, driver), CHECK_INT(m.sm, 90);
    CHECK_INT(m.memory, (int64_t)8 << 30), CHECK_INT(m.l2, 60 << 20), CHECK_INT(m.ecc, 1),
        CHECK_INT(m.multiprocessors, 132);
    CHECK_INT(kbi_meter.gpu.max_threads, 2048), CHECK_INT(kbi_meter.gpu.all_registers, 65536);
    CHECK_INT(kbi_meter.gpu.all_shared, 228 << 10), CHECK_INT(kbi_meter.gpu.most_blocks, 32);
    CHECK_INT(kbi_meter.gpu.shared_taken, 1024), CHECK_INT(kbi_meter.gpu.clean_bytes, 4 * (60 << 20));
    CHECK(machine.gpu_present && machine.device == 0 && machine.devices == 1 && !machine.tool[0]);
    // cudaGetDeviceCount returns equal errors if there is no driver and if the driver is too old
    setenv("VIRTUAL_DRIVER", "0", 1);
    CHECK(!kbi_gpu_open(&none, 0)), CHECK_STR(none.why, "no GPU: no NVIDIA driver was found");
    setenv("VIRTUAL_DRIVER", "9000", 1);
    CHECK(!kbi_gpu_open(&none, 0)), CHECK_STR(none.why, "no GPU: an error");
    unsetenv("VIRTUAL_DRIVER");
    setenv("VIRTUAL_DEVICES", "0", 1);
    CHECK(!kbi_gpu_open(&none, 0) && !none.gpu_present), CHECK_STR(none.why, "no GPU: none found");
    setenv("VIRTUAL_DEVICES", "2", 1);
    for (int i = 2; i < 4; i++) {
        char want[60];
        snprintf(want, sizeof want, "no GPU %d: this machine has 2", i);
        CHECK(!kbi_gpu_open(&none, i)), CHECK_STR(none.why, want), CHECK_INT(none.devices, 2);
    }
    unsetenv("VIRTUAL_DEVICES");
    kbi_recipe r;
    kbi_recipe_default(&r);
    r.target = KBI_ON_GPU, r.device = 7, memset(&none, 0, sizeof none);
    const kbi_backend* b = kbi_backend_open(&r, &none);
    CHECK(b == &kbi_cpu), CHECK_STR(none.why, "no GPU 7: this machine has 1"), CHECK_INT(none.devices, 1);
    r.target = KBI_ON_CPU, CHECK(kbi_backend_open(&r, &none) == &kbi_cpu);
}

static int others_now;
static int some_clock(void* device, int which, unsigned* mhz) {
    return (void)device, *mhz = 1000u + (unsigned)which, 0;
}
static int some_power(void* device, unsigned* mw) { return (void)device, *mw = 123456, 0; }
static int some_heat(void* device, int sensor, unsigned* c) { return (void)device, *c = 61u + (unsigned)sensor, 0; }
static int some_processes(void* device, unsigned* n, void* out) {
    CHECK_INT(*n, 64), memset(out, 1, 64 * 24);
    return (void)device, *n = (unsigned)others_now, 0;
}
static int some_reasons(void* device, unsigned long long* mask) { return (void)device, *mask = 0x20, 0; }
static void test_sensed(void) {
    kbi_nvml was = kbi_meter.nvml;
    int none;
    kbi_meter.nvml.device = &none, kbi_meter.nvml.clock = some_clock, kbi_meter.nvml.power = some_power;
    kbi_meter.nvml.temperature = some_heat, kbi_meter.nvml.processes = some_processes,
    kbi_meter.nvml.reasons = some_reasons;
    // 0: only this process uses the GPU; 1: two other processes also use the GPU; 2: NVML has no device
    for (int i = 0; i < 3; i++) {
        kbi_measured m;
        kbi_measured_clear(&m), others_now = i == 1 ? 3 : 1;
        if (i == 2) kbi_meter.nvml.device = NULL;
        kbi_gpu_sense(&m);
        CHECK_REAL(m.memory_clock, i == 2 ? (double)NAN : 1002, 0),
            CHECK_REAL(m.power, i == 2 ? (double)NAN : 123.456, 1e-12);
        CHECK_REAL(m.temperature, i == 2 ? (double)NAN : 61, 0), CHECK_INT(m.others, i == 1 ? 2 : 0);
        CHECK_STR(m.throttle, i == 2 ? "" : "thermal (software)");
    }
    kbi_meter.nvml = was;
}

// The numeric constants passed to cuBLASLt equal the constants of the CUDA headers. 28 is CUDA_R_8F_E4M3, which
// older headers lack.
static void test_products(void) {
    static const struct {
        int roof, compute, scale, in, out, in_bytes, out_bytes;
    } rows[] = { { KBI_ROOF_F64, 70, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, 8, 8 },
                 { KBI_ROOF_TF32, 77, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 4, 4 },
                 { KBI_ROOF_F16, 68, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, 2, 2 },
                 { KBI_ROOF_F16, 64, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, 2, 2 },
                 { KBI_ROOF_BF16, 68, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, 2, 2 },
                 { KBI_ROOF_FP8, 68, CUDA_R_32F, 28, CUDA_R_16BF, 1, 2 },
                 { KBI_ROOF_INT8, 72, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I, 1, 4 } };
    CHECK_INT(KBI_COUNT(kbi_products), KBI_COUNT(rows));
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        const kbi_product* p = &kbi_products[i];
        CHECK_INT(p->roof, rows[i].roof), CHECK_INT(p->compute, rows[i].compute), CHECK_INT(p->scale, rows[i].scale);
        CHECK_INT(p->in, rows[i].in), CHECK_INT(p->out, rows[i].out);
        CHECK_INT(p->in_bytes, rows[i].in_bytes), CHECK_INT(p->out_bytes, rows[i].out_bytes);
        CHECK_INT(kb_dtype_size(p->fill), p->in_bytes);
    }
}

// A failed launch does not prove that the device lacks the arithmetic unit: the peak is unknown, not missing.
static void test_failed_peak(void) {
    kbi_machine m = machine;
    kbi_roofs_clear(&m.roofs);
    gpu.no_launch = "kbi_fma";
    kbi_gpu_roof(&m, KBI_ROOF_F32);
    CHECK_REAL(m.roofs.of[KBI_ROOF_F32], KBI_UNTOLD, 0), CHECK_REAL(m.roofs.most[KBI_ROOF_F32], KBI_UNTOLD, 0);
    gpu.no_launch = NULL;
    kbi_roofs_clear(&m.roofs);
    kbi_gpu_roof(&m, KBI_ROOF_F32);
    CHECK(m.roofs.of[KBI_ROOF_F32] > 1e12);
}

static void test_unaligned_fill(void) {
    char* p = NULL;
    cudaMalloc((void**)&p, 4096);
    for (int shift = 0; shift < 5; shift++) {
        kbi_run* run = new_run();
        run->backend = &kbi_cuda, run->kb.run = run;
        kbi_fill(&run->kb, p + shift, KB_F32, 8, KB_UNIFORM);
        CHECK_INT(kbi_failed(run), shift % 4 != 0);
        if (shift % 4) CHECK_HAS(run->m.message, "aligned to its elements");
    }
    cudaFree(p);
}

int main(void) {
    kbi_meter.calibration.truth.ns[0][0][0][0] = 0;
    if (!CHECK(kbi_gpu_open(&machine, 0))) return test_end();
    machine.multiprocessors = 132;
    test_launches();
    test_gate();
    test_groups();
    test_graphs();
    test_choose();
    test_calibration();
    test_seen();
    test_looks();
    test_calls();
    test_parameters();
    test_shape();
    test_spans();
    test_buffers();
    test_occupancy();
    test_names();
    test_collect();
    test_joules();
    test_metrics();
    test_sensors();
    test_sensed();
    test_opened();
    test_products();
    test_failed_peak();
    test_unaligned_fill();
    return test_end();
}
