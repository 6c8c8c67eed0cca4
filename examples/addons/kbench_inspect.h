/* kbench_inspect.h - an add-on of kbench.h: profiles timed blocks - C11, C++11, CUDA C++17
   MIT or public domain, as you choose; both texts stand at the end of kbench.h.

    #define KBENCH_IMPLEMENTATION
    #include "kbench.h"
    #include "kbench_inspect.h"        after kbench.h, in the file that defines KBENCH_IMPLEMENTATION

   The header adds the options --profile, --counters, --trace, --energy, --sass, --ncu and --nsys to a program. For
   profiles, the timed blocks run again, in processes that measure no time. NVTX ranges tell an external profiler
   which case and phase is running.

CONTENTS (search for the tag)

    >>options       the add-on's options: one row each
    >>summed        sums, overlap and gaps of a block's kernels, copies and calls. Pure functions
    >>perf          the CPU's counters for host work, from the Linux call perf_event_open
    >>energy        the energy of a launch, from NVML's counter; measured in runs that are not timed
    >>activity      the kernels, copies and calls of each run of the block, from CUPTI's activity records
    >>counters      hardware counters of the block, from CUPTI's range profiler
    >>counted       compares counters with the declared bytes and operations; names the bottleneck of a case
    >>launches      reads the CSV of a profiler: kernels and their metrics, aggregated by case
    >>profile       prints a profile below the case's row of the table, or writes it as a timeline
    >>machine_code  the machine code of the longest kernel, from the CUDA Toolkit's disassembler
    >>vendor        runs this program under ncu or nsys, which profile one run of each block
    >>nvtx          NVTX ranges with the names of cases and phases
    >>registered    registers the add-on's instruments and outputs
*/
#ifndef KBENCH_INSPECT_H
#define KBENCH_INSPECT_H
#ifndef KBENCH_VERSION
#error "kbench_inspect.h: include kbench.h before it"
#endif
#ifdef KBENCH_IMPLEMENTED
KBI_CODE_BEGIN

/*-----------------------------------------------------------------
  >>options     the add-on's options: one row each.
-----------------------------------------------------------------*/

// clang-format off
#define KBI_INSPECT_OPTIONS \
    KBI_BARE(profile, "profile", "inspect", "kernels, copies and calls of each block (CUPTI)", KBI_GPU) \
    KBI_X(counters, "counters", "[=SET]", "inspect", "hardware counters: 'few', 'usual', 'all' or names", \
        const char*, kbi_take_counters, KBI_ANY, 0) \
    KBI_TEXT(trace, "trace", "FILE", "inspect", "events of --profile as a timeline (Perfetto)", \
        KBI_GPU | KBI_WRITES | KBI_RARE) \
    KBI_BARE(energy, "energy", "inspect", "joules per launch (NVML); 3 s more per case", \
        KBI_GPU | KBI_MEASURES | KBI_RARE) \
    KBI_BARE(sass, "sass", "inspect", "machine code of the longest kernel (cuobjdump)", \
        KBI_GPU | KBI_RARE) \
    KBI_X(ncu, "ncu", "[=SET]", "inspect", "counters from ncu: a set, or metrics A,B", const char*, \
        kbi_take_tool, KBI_ANY, KBI_GPU | KBI_MEASURES | KBI_RARE) \
    KBI_X(nsys, "nsys", "[=FILE]", "inspect", "kernels and copies from nsys; report is kept", const char*, \
        kbi_take_tool, KBI_ANY, KBI_GPU | KBI_MEASURES | KBI_RARE)
// clang-format on

enum kbi_inspect_id {
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) KBI_INSPECT_##id,
    KBI_INSPECT_OPTIONS
#undef KBI_X
        KBI_INSPECT_COUNT
};

static struct kbi_inspect_values {
    bool on[KBI_INSPECT_COUNT];
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) type id;
    KBI_INSPECT_OPTIONS
#undef KBI_X
} kbi_inspect_given;

// --counters takes the name of a set, or names of metrics, which contain "__".
static bool kbi_take_counters(const kb_option* option, void* values, const char* value) {
    kbi_take_text(option, values, value);
    bool set = !value || kbi_is(value, "few") || kbi_is(value, "usual") || kbi_is(value, "all");
    if (set || (strstr(value, "__") && kbi_only_letters(value, "_.,"))) return true;
    kbi_error("--counters takes few, usual or all, or names of metrics such as dram__bytes.sum, not '%s'", value);
    return false;
}

static bool kbi_take_tool(const kb_option* option, void* values, const char* value) {
    kbi_take_text(option, values, value);
    bool ncu = kbi_is(option->name, "ncu");
    if (!value || (*value && (!ncu || kbi_only_letters(value, "_.,:")))) return true;
    kbi_error("--%s takes %s, not '%s'", option->name,
              ncu ? "a set of ncu such as full, or names of metrics" : "a file for the report", value);
    return false;
}

static const kb_option kbi_inspect_rows[] = {
#define KBI_X(id, name, argument, group, help, type, read, limits, rules) \
    { name, argument, group, help, read, offsetof(struct kbi_inspect_values, id), limits, rules },
    KBI_INSPECT_OPTIONS
#undef KBI_X
};

static void kbi_inspect_start(void) { memset(&kbi_inspect_given, 0, sizeof kbi_inspect_given); }

// Returns false after an error message if --device or the build excludes the GPU that an option needs.
static bool kbi_inspect_agree(void) {
    const kbi_options* o = kbi_options_now;
    static const int tools[] = { KBI_INSPECT_ncu, KBI_INSPECT_nsys, KBI_INSPECT_energy };
    for (int i = 0; i < KBI_COUNT(tools); i++) {
        const char* why = NULL;
        if (kbi_is(o->device, "all") && tools[i] != KBI_INSPECT_energy)
            why = "this option profiles one GPU; select the GPU with --device N";
        else if (kbi_is(o->device, "cpu") || (!KBI_CUDA && !o->device))
            why = "this option profiles GPU work, which --device cpu and a build without CUDA cannot run";
        if (why && kbi_inspect_given.on[tools[i]])
            return kbi_error("--%s: %s", kbi_inspect_rows[tools[i]].name, why), false;
    }
    return true;
}

/*-----------------------------------------------------------------
  >>summed      sums, overlap and gaps of a block's kernels, copies and calls. Pure functions.
-----------------------------------------------------------------*/

static const char* const kbi_limit_names[] = { NULL, "warps", "registers", "shared memory", "blocks", "the grid" };

#define KBI_RANGE_TIME "gpu_time_ns" // counter: duration of the profiled range, in ns

static kbi_counter* kbi_counters_at(kbi_inside* in) {
    return (kbi_counter*)(void*)((char*)in + ((const char*)kbi_counters_of(in) - (const char*)in));
}

static const char* kbi_event_name(const kbi_inside* in, const kbi_event* e) { return kbi_texts_of(in) + e->name; }

static void kbi_inside_drop(kbi_inside* in, int64_t counter) {
    kbi_counter* at = kbi_counters_at(in) + counter;
    size_t behind = kbi_inside_size(in) - (size_t)((const char*)(at + 1) - (const char*)in);
    memmove(at, at + 1, behind);
    in->counters--;
}

static double kbi_counted(const kbi_inside* in, const char* name) { // NaN: not counted
    for (int64_t i = 0; i < in->counters; i++)
        if (kbi_is(kbi_counters_of(in)[i].name, name)) return kbi_counters_of(in)[i].value;
    return NAN;
}

typedef struct kbi_sum {    // a sum over the events with the same name, grid and block size
    const kbi_event* first;
    int64_t calls;
    double total; // sum of their durations, in ns
} kbi_sum;

typedef struct kbi_profile {
    kbi_sum *device, *host; // sums over GPU work and host calls, by decreasing total
    int n_device, n_host;
    double device_ns, host_ns;
    double span, busy, run;     // ns per run: span of GPU work; busy time of the GPU; host time of the block
    double gaps, gap_ns;        // per run: number of gaps in which the GPU is idle; their total time in ns
    double launch_ns;           // mean host time of a call that submits GPU work, in ns
    // overlap: share of the copy time during which a kernel runs, too; concurrent: share of the busy time during
    // which 2 or more events run
    double overlap, concurrent;
} kbi_profile;

static bool kbi_event_on_device(const kbi_event* e) { return e->kind >= KBI_EVENT_KERNEL; }

static int kbi_sums_order(const void* a, const void* b) {
    const kbi_sum *x = (const kbi_sum*)a, *y = (const kbi_sum*)b;
    if (x->total < y->total || x->total > y->total) return x->total < y->total ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

static void kbi_sums_add(kbi_sum* sums, int* n, kbi_map* known, const kbi_event* e) {
    uint64_t key = 14695981039346656037u;
    const int32_t like[] = { e->kind,    e->name,     e->grid[0],  e->grid[1],
                             e->grid[2], e->block[0], e->block[1], e->block[2] };
    for (int i = 0; i < KBI_COUNT(like); i++) key = (key ^ (uint32_t)like[i]) * 1099511628211u;
    kbi_mapped* slot = kbi_map_find(known, key);
    if (!slot->key) {
        kbi_sum fresh = { e, 0, 0 };
        kbi_map_take(known, slot, key, *n);
        sums[(*n)++] = fresh;
    }
    kbi_sum* s = &sums[slot->at];
    s->calls++;
    s->total += (double)(e->end - e->start);
}

typedef struct kbi_edge {
    int64_t at;
    int32_t run, copy, step;
} kbi_edge;

static int kbi_edges_order(const void* a, const void* b) { // the end of an event precedes a start at the same time
    const kbi_edge *x = (const kbi_edge*)a, *y = (const kbi_edge*)b;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->step - y->step;
}

static void kbi_profile_sweep(kbi_profile* p, const kbi_edge* edges, int64_t n, int runs) {
    double busy = 0, both = 0, many = 0, copying = 0, gap_ns = 0, span = 0, gaps = 0;
    int64_t kernels = 0, copies = 0;
    for (int64_t i = 0; i < n; i++) {
        bool first = i == 0 || edges[i].run != edges[i - 1].run;
        double ns = first ? 0 : (double)(edges[i].at - edges[i - 1].at);
        busy += kernels + copies > 0 ? ns : 0;
        both += kernels > 0 && copies > 0 ? ns : 0;
        many += kernels + copies > 1 ? ns : 0;
        copying += copies > 0 ? ns : 0;
        gaps += !first && kernels + copies == 0 && ns > 0;
        gap_ns += kernels + copies == 0 ? ns : 0;
        span += ns;
        *(edges[i].copy ? &copies : &kernels) += edges[i].step;
    }
    p->span = span / runs, p->busy = busy / runs, p->gaps = gaps / runs, p->gap_ns = gap_ns / runs;
    p->overlap = copying > 0 ? both / copying : (double)NAN;
    p->concurrent = busy > 0 ? many / busy : (double)NAN;
}

static void kbi_profile_free(kbi_profile* p) {
    KBENCH_FREE(p->device);
    KBENCH_FREE(p->host);
}

static void kbi_profile_fill(kbi_profile* p, const kbi_inside* in) {
    size_t n = (size_t)in->events + 1;
    kbi_map known = KBI_BLANK;
    kbi_edge* edges = KBI_GROW(NULL, kbi_edge, 2 * n);
    char* causes = (char*)kbi_grow(NULL, n);
    int64_t n_edges = 0, launches = 0;
    double launching = 0;
    memset(p, 0, sizeof *p);
    memset(causes, 0, n);
    p->device = KBI_GROW(NULL, kbi_sum, n);
    p->host = KBI_GROW(NULL, kbi_sum, n);
    for (int64_t i = 0; i < in->events; i++) {
        const kbi_event* e = &kbi_events_of(in)[i];
        double ns = (double)(e->end - e->start);
        kbi_edge begins = { e->start, e->run, e->kind != KBI_EVENT_KERNEL, 1 },
                 ends = { e->end, e->run, begins.copy, -1 };
        if (e->kind == KBI_EVENT_RUN) p->run += ns / in->runs;
        if (e->kind == KBI_EVENT_CALL) kbi_sums_add(p->host, &p->n_host, &known, e), p->host_ns += ns;
        if (!kbi_event_on_device(e)) continue;
        kbi_sums_add(p->device, &p->n_device, &known, e);
        p->device_ns += ns;
        edges[n_edges++] = begins;
        edges[n_edges++] = ends;
        if (e->cause >= 0) causes[e->cause] = 1;
    }
    for (int64_t i = 0; i < in->events; i++) {
        const kbi_event* e = &kbi_events_of(in)[i];
        if (causes[i]) launches++, launching += (double)(e->end - e->start);
    }
    p->launch_ns = launches ? launching / (double)launches : (double)NAN;
    qsort(edges, (size_t)n_edges, sizeof(kbi_edge), kbi_edges_order);
    kbi_profile_sweep(p, edges, n_edges, KBI_MAX(in->runs, 1));
    qsort(p->device, (size_t)p->n_device, sizeof(kbi_sum), kbi_sums_order);
    qsort(p->host, (size_t)p->n_host, sizeof(kbi_sum), kbi_sums_order);
    KBENCH_FREE(known.slots);
    KBENCH_FREE(causes);
    KBENCH_FREE(edges);
}

KBI_INLINE int32_t kbi_insight_text(uint64_t key, const char* text) {
    kbi_insight* in = &kbi_meter.insight;
    kbi_mapped* slot = kbi_map_find(&in->names, key);
    if (slot->key) return (int32_t)slot->at;
    kbi_map_take(&in->names, slot, key, (intptr_t)in->texts.n);
    kbi_put(&in->texts, text, strlen(text) + 1);
    return (int32_t)slot->at;
}

/*-----------------------------------------------------------------
  >>perf        the CPU's counters for host work, from the Linux call perf_event_open.
-----------------------------------------------------------------*/

// as in linux/perf_event.h
enum { KBI_PERF_ENABLE = 0x2400, KBI_PERF_DISABLE = 0x2401, KBI_PERF_RESET = 0x2403 };
enum { KBI_PERF_EVENTS = 8, KBI_PERF_SLOTS = KBI_PERF_EVENTS, KBI_PERF_BACKEND, KBI_PERF_MEMORY, KBI_PERF_ALL };

static const struct {
    const char* name;
    uint32_t type; // 0 is a hardware event, 1 a software event of the Linux kernel
    uint64_t event;
} kbi_perf_events[KBI_PERF_EVENTS] = { { "cycles", 0, 0 },           { "instructions", 0, 1 },
                                       { "branches", 0, 4 },         { "branch_misses", 0, 5 },
                                       { "cache_references", 0, 2 }, { "cache_misses", 0, 3 },
                                       { "stalled_cycles", 0, 8 },   { "page_faults", 1, 2 } };

// The three events below form a group, whose leader must be "slots".
static const char* const kbi_perf_cores[] = { "cpu", "cpu_core" };
static const char* const kbi_perf_slots[] = { "slots", "topdown-be-bound", "topdown-mem-bound" };

static struct kbi_perf {
    int files[KBI_PERF_ALL]; // file descriptor of each counter; -1 if the counter is not available
    int64_t runs, began;
} kbi_perf;

// Opens a counter of an event in this thread and its later children. The counter covers user code only, which most
// systems permit without privileges.
static int kbi_perf_event(uint32_t type, uint64_t event, int leader) {
    enum { KBI_PERF_SIZE = 64, KBI_OFF = 1, KBI_INHERIT = 2, KBI_USER = 0x60, KBI_TIMES = 3 };
    struct { // the first version of perf_event_attr
        uint32_t type, size;
        uint64_t config, period, sample, read, flags, wakeup, breakpoint;
    } a = { type, KBI_PERF_SIZE, event, 0, 0, KBI_TIMES, KBI_OFF | KBI_INHERIT | KBI_USER, 0, 0 };
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, leader, 0);
}

static bool kbi_perf_config(const char* text, uint64_t* event) {
    unsigned code = 0, mask = 0;
    const char *at = strstr(text, "event="), *more = strstr(text, "umask=");
    if (!at || sscanf(at, "event=%x", &code) != 1 || (more && sscanf(more, "umask=%x", &mask) != 1)) return false;
    return *event = code | (uint64_t)mask << 8, code < 256 && mask < 256;
}

// The top-down method (Yasin 2014) counts the issue slots that waited for memory or execution units, and those
// that waited for memory.
static void kbi_perf_open_slots(void) {
    static const char root[] = "/sys/bus/event_source/devices";
    char path[160], line[160];
    uint64_t event = 0;
    for (int core = 0; core < KBI_COUNT(kbi_perf_cores) && kbi_perf.files[KBI_PERF_SLOTS] < 0; core++) {
        snprintf(path, sizeof path, "%s/%s/type", root, kbi_perf_cores[core]);
        uint32_t type = kbi_first_line(path, line, (int)sizeof line) ? (uint32_t)strtoul(line, NULL, 10) : 0;
        for (int i = 0; i < KBI_COUNT(kbi_perf_slots) && type; i++) {
            int leader = i ? kbi_perf.files[KBI_PERF_SLOTS] : -1;
            snprintf(path, sizeof path, "%s/%s/events/%s", root, kbi_perf_cores[core], kbi_perf_slots[i]);
            if ((i && leader < 0) || !kbi_first_line(path, line, (int)sizeof line) || !kbi_perf_config(line, &event))
                continue;
            kbi_perf.files[KBI_PERF_SLOTS + i] = kbi_perf_event(type, event, leader);
        }
    }
}

static bool kbi_perf_open(kb_state* kb) {
    (void)kb;
    int error = 0, n = 0;
    for (int i = 0; i < KBI_PERF_EVENTS; i++) {
        kbi_perf.files[i] = kbi_perf_event(kbi_perf_events[i].type, kbi_perf_events[i].event, -1);
        if (kbi_perf.files[i] < 0 && !error) error = errno;
        n += kbi_perf.files[i] >= 0 && kbi_perf_events[i].type == 0;
    }
    if (!n && (error == EACCES || error == EPERM))
        kbi_insight_say("this system forbids the counters. sysctl kernel.perf_event_paranoid=2 allows them; a "
                        "container also needs --cap-add PERFMON");
    else if (!n)
        kbi_insight_say("no counters; virtual machines often hide them (perf_event_open: %s)", strerror(error));
    for (int i = KBI_PERF_SLOTS; i < KBI_PERF_ALL; i++) kbi_perf.files[i] = -1;
    if (n) kbi_perf_open_slots();
    kbi_perf.runs = 1;
    return true; // the profile omits each counter that could not be opened
}

static void kbi_perf_all(unsigned long call) {
    for (int i = 0; i < KBI_PERF_ALL; i++)
        if (kbi_perf.files[i] >= 0) ioctl(kbi_perf.files[i], call, 0);
}

static int64_t kbi_perf_begin(kb_state* kb) {
    if (kb->run->call.sampled) kbi_perf.runs = 1;
    kbi_perf_all(KBI_PERF_RESET);
    kbi_perf.began = kbi_now();
    kbi_perf_all(KBI_PERF_ENABLE);
    return kbi_perf.runs;
}

// Repeats the block for at least 1 ms, so that the cost of the calls that control the counters is negligible.
static bool kbi_perf_end(kb_state* kb) {
    enum { KBI_PERF_MOST = 1 << 24 };
    kbi_perf_all(KBI_PERF_DISABLE);
    if (kb->run->call.sampled || kbi_now() - kbi_perf.began > 1000000 || kbi_perf.runs >= KBI_PERF_MOST) return false;
    return kbi_perf.runs *= 8, true;
}

static void kbi_perf_close(kb_state* kb) {
    (void)kb;
    double values[KBI_PERF_ALL];
    for (int i = 0; i < KBI_PERF_ALL; i++) {
        uint64_t read[3] = { 0, 0, 0 }; // value; ns enabled; ns counting, which is less if events share a counter
        values[i] = NAN;
        if (kbi_perf.files[i] < 0) continue;
        if (kbi_read_some(kbi_perf.files[i], read, sizeof read) == (ssize_t)sizeof read && read[2])
            values[i] = (double)read[0] * ((double)read[1] / (double)read[2]) / (double)kbi_perf.runs;
        if (i < KBI_PERF_EVENTS) kbi_insight_count(kbi_perf_events[i].name, "", values[i]);
        close(kbi_perf.files[i]);
    }
    double slots = values[KBI_PERF_SLOTS], cycles = values[0], stalled = values[6];
    if (slots > 0) kbi_insight_count("memory_bound_pct", "%", 100 * values[KBI_PERF_MEMORY] / slots);
    if (slots > 0) kbi_insight_count("backend_bound_pct", "%", 100 * values[KBI_PERF_BACKEND] / slots);
    // kbi_insight_count ignores this value if the slots gave backend_bound_pct
    if (cycles > 0) kbi_insight_count("backend_bound_pct", "%", 100 * stalled / cycles);
}

/*-----------------------------------------------------------------
  >>energy      the energy of a launch, from NVML's counter; measured apart from the times.
-----------------------------------------------------------------*/

#if KBI_CUDA
typedef struct kbi_joules {
    double mj;
    int64_t at, launches; // time of the update in ns; number of launches before the update
} kbi_joules;

// NVML updates the energy counter every 20 to 100 ms. A reading between two updates is up to 100 ms old, so only
// readings directly after an update are used.
static struct kbi_energy {
    cudaGraphExec_t many;  // graph of many copies of the block; NULL: single launches
    bool capturing, failed;
    double last, batch_ns;    // latest reading of the counter in mJ; duration of the latest batch in ns
    int64_t began, launches;  // start of the measurement in ns; number of launches since this start
    int64_t submitting;
    int64_t each;             // launches per batch, so many that a batch takes about 10 ms
    kbi_joules first, latest; // the first and the latest update of the counter; at == 0 if there is none yet
} kbi_energy;

static bool kbi_energy_read(double* mj) {
    unsigned long long now = 0;
    const kbi_nvml* n = &kbi_meter.nvml;
    if (!n->device || !n->energy || n->energy(n->device, &now) != 0) return false;
    return *mj = (double)now, true;
}

// Stores a new value, unless it occurs in the first `skip` ns of the measurement.
static void kbi_energy_note(int64_t skip) {
    struct kbi_energy* e = &kbi_energy;
    kbi_joules step = { NAN, 0, e->launches };
    if (!kbi_energy_read(&step.mj)) e->failed = true;
    step.at = kbi_now();
    if (e->failed || !(step.mj > e->last)) return;
    e->last = step.mj;
    if (step.at - e->began < skip) return;
    *(e->first.at ? &e->latest : &e->first) = step;
}

static void kbi_energy_restart(void) {
    struct kbi_energy* e = &kbi_energy;
    memset(&e->first, 0, sizeof e->first);
    memset(&e->latest, 0, sizeof e->latest);
    e->launches = 0;
    e->failed = !kbi_energy_read(&e->last);
    e->began = kbi_now();
}

static double kbi_energy_span(void) { // ns between the first and the latest update of the counter
    const struct kbi_energy* e = &kbi_energy;
    return e->latest.at ? (double)(e->latest.at - e->first.at) : 0;
}

// Measures the power of the idle GPU, after a pause in which the GPU lowers its clocks.
static void kbi_energy_idle(void) {
    static const int64_t falls = 100000000, rest = 500000000, patience = 2000000000; // ns
    struct timespec pause = { 0, 5000000 };
    cudaDeviceSynchronize();
    kbi_energy_restart();
    while (!kbi_energy.failed && kbi_energy_span() < (double)rest && kbi_now() - kbi_energy.began < patience) {
        nanosleep(&pause, NULL);
        kbi_energy_note(falls);
    }
    if (kbi_energy_span() > 0)
        kbi_meter.insight.head.idle_w = (kbi_energy.latest.mj - kbi_energy.first.mj) / kbi_energy_span() * 1e6;
}

static bool kbi_energy_open(kb_state* kb) {
    struct kbi_energy* e = &kbi_energy;
    memset(e, 0, sizeof *e);
    if (kb->run->call.sampled)
        return kbi_insight_say("the energy of a block with KB_SAMPLE cannot be separated from the energy of its "
                               "resets"),
               false;
    if (!kbi_energy_read(&e->last))
        return kbi_insight_say("no energy counter on this GPU: MIG instances and GPUs before Volta have none"), false;
    kbi_energy_idle();
    e->capturing = kbi_graph_repeats(kb->run, 1) > 0;
    kbi_energy_restart();
    return true;
}

static int64_t kbi_energy_begin(kb_state* kb) {
    kbi_run* run = kb->run;
    enum { KBI_BATCH_NS = 10000000, KBI_MOST = 1000 };
    kbi_graph* g = (kbi_graph*)run->work.graph;
    if (kbi_energy.capturing) {
        kbi_graph_capture_begin();
        return kbi_energy.each = g->launches;
    }
    int64_t ns = KBI_MAX(run->work.estimate_ns, (int64_t)1);
    kbi_energy.submitting = kbi_now();
    // if code loading inflated the estimate `ns`, the first batches are too short, and each next batch doubles
    if (kbi_energy.batch_ns > 0 && kbi_energy.batch_ns < 0.5 * (double)KBI_BATCH_NS)
        return kbi_energy.each = KBI_MIN(2 * kbi_energy.each, (int64_t)KBI_MOST);
    if (kbi_energy.batch_ns > 0) return kbi_energy.each;
    return kbi_energy.each = KBI_MAX((int64_t)1, KBI_MIN(KBI_BATCH_NS / ns, (int64_t)KBI_MOST));
}

// A measurement lasts 20 batches, limited to 2 to 10 s.
static bool kbi_energy_batch(int64_t launches) {
    const double window = 2e9, most = 10e9, batches = 20; // ns
    struct kbi_energy* e = &kbi_energy;
    kbi_energy_note(300000000);
    if (cudaStreamSynchronize(kbi_meter.gpu.stream) != cudaSuccess) e->failed = true;
    e->launches += launches;
    e->batch_ns = (double)(kbi_now() - e->submitting);
    double wanted = KBI_MAX(window, KBI_MIN(batches * e->batch_ns, most));
    return !e->failed && kbi_energy_span() < wanted && (double)(kbi_now() - e->began) < 2 * wanted + 1e9;
}

static bool kbi_energy_end(kb_state* kb) {
    (void)kb;
    enum { KBI_GRAPHS = 64, KBI_SHORT_NS = 5000000 };
    struct kbi_energy* e = &kbi_energy;
    int64_t graphs = 1;
    if (!e->capturing) return kbi_energy_batch(e->each);
    e->capturing = false;
    e->many = kbi_graph_capture_end();
    kbi_energy_restart();
    if (!e->many) return true;
    do {
        if (e->launches && e->batch_ns < (double)KBI_SHORT_NS) graphs = KBI_MIN(2 * graphs, (int64_t)KBI_GRAPHS);
        e->submitting = kbi_now();
        for (int64_t i = 0; i < graphs; i++) cudaGraphLaunch(e->many, kbi_meter.gpu.stream);
    } while (kbi_energy_batch(graphs * e->each));
    return false;
}

static void kbi_energy_close(kb_state* kb) {
    const struct kbi_energy* e = &kbi_energy;
    double mj = e->latest.mj - e->first.mj, launches = (double)(e->latest.launches - e->first.launches);
    if (e->many) cudaGraphExecDestroy(e->many);
    if (kbi_failed(kb->run)) return;
    if (e->failed || !(kbi_energy_span() >= 2e9) || !(launches > 0))
        kbi_insight_say("NVML's energy counter %s", e->failed ? "failed while the block ran" : "did not change");
    else
        kbi_meter.insight.head.energy_mj = mj / launches;
}

/*-----------------------------------------------------------------
  >>activity    the kernels, copies and calls of each run of the block, from CUPTI's activity records.
-----------------------------------------------------------------*/

enum { KBI_INSIDE_EVENTS = 1 << 16 };

typedef struct kbi_recorded { // an event; GPU work and the call that submitted it have the same correlation id
    kbi_event event;
    uint32_t correlation;
} kbi_recorded;

static void kbi_activity_keep(const kbi_recorded* r) {
    kbi_insight* in = &kbi_meter.insight;
    if (in->events.n / sizeof *r >= 4 * (size_t)KBI_INSIDE_EVENTS)
        in->head.dropped++;
    else
        kbi_put(&in->events, (const char*)r, sizeof *r);
}

typedef struct kbi_activity_call { // CUpti_ActivityAPI
    uint32_t kind, id;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
} kbi_activity_call;

// Shortens "cudaLaunchKernel_v7000" to "cudaLaunchKernel".
static int32_t kbi_call_name(int domain, uint32_t id) {
    const char* name = NULL;
    char plain[128];
    if (!kbi_meter.cupti.call || kbi_meter.cupti.call(domain, id, &name) != 0 || !name) name = "a call";
    snprintf(plain, sizeof plain, "%s", name);
    for (char* v = plain; (v = strstr(v, "_v")) != NULL; v++)
        if (v[2] && !v[2 + strspn(v + 2, "0123456789")]) *v = 0;
    return kbi_insight_text((uint64_t)domain << 32 | id, plain);
}

static int32_t kbi_copy_name(const kbi_activity_copy* r) {
    static const char* const ways[] = { "memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
                                        "memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA",
                                        "memcpy DtoD", "memcpy HtoH", "memcpy PtoP" };
    int which = r->kind == KBI_ACTIVITY_SET || r->which >= KBI_COUNT(ways) ? 0 : r->which;
    const char* name = r->kind == KBI_ACTIVITY_SET ? "memset" : ways[which];
    return kbi_insight_text((uint64_t)(uintptr_t)name, name);
}

// The number of warps that fit on a multiprocessor, and the resource that limits it. Registers are allocated to
// warps in units of 256 registers, from four partitions of the register file; shared memory is allocated in units
// of 128 bytes (CUDA C++ Programming Guide).
static void kbi_event_occupancy(kbi_event* e) {
    const kbi_gpu* g = &kbi_meter.gpu;
    int warps = (e->block[0] * e->block[1] * e->block[2] + 31) / 32, most = g->max_threads / 32;
    int registers = (e->registers * 32 + 255) / 256 * 256, shared = (e->shared + g->shared_taken + 127) / 128 * 128;
    double blocks = (double)e->grid[0] * e->grid[1] * e->grid[2];
    if (warps <= 0 || most <= 0 || !g->all_registers) return;
    const struct {
        int limit;
        int blocks;
    } rows[] = { { KBI_BY_WARPS, most / warps },
                 { KBI_BY_REGISTERS, registers ? g->all_registers / 4 / registers * 4 / warps : INT32_MAX },
                 { KBI_BY_SHARED, shared ? g->all_shared / shared : INT32_MAX },
                 { KBI_BY_BLOCKS, g->most_blocks },
                 { KBI_BY_GRID, (int)KBI_MIN(ceil(blocks / g->multiprocessors), 1e6) } };
    int fits = INT32_MAX;
    for (int i = 0; i < KBI_COUNT(rows); i++)
        if (rows[i].blocks < fits) fits = rows[i].blocks, e->limit = (int32_t)rows[i].limit;
    e->occupancy = (float)(100.0 * fits * warps / most);
}

static void kbi_activity_kernel(const kbi_activity* r, kbi_recorded* to) {
    kbi_event* e = &to->event;
    char name[512];
    kbi_mapped* known = kbi_map_find(&kbi_meter.insight.names, (uint64_t)(uintptr_t)r->name);
    if (!known->key) kbi_kernel_name(name, sizeof name, r->name ? r->name : "a kernel");
    e->name = known->key ? (int32_t)known->at : kbi_insight_text((uint64_t)(uintptr_t)r->name, name);
    e->symbol = r->name ? kbi_insight_text(~(uint64_t)(uintptr_t)r->name, r->name) : e->name;
    e->kind = KBI_EVENT_KERNEL;
    e->start = (int64_t)r->start, e->end = (int64_t)r->end;
    e->lane = r->stream;
    e->registers = r->registers, e->local = (int32_t)r->local, e->shared = r->static_shared + r->dynamic_shared;
    uint32_t version = 0;
    bool clusters = kbi_meter.cupti.version && kbi_meter.cupti.version(&version) == 0 && version >= 18;
    for (int i = 0; i < 3; i++) {
        e->grid[i] = r->grid[i], e->block[i] = r->block[i];
        e->cluster[i] = clusters ? r->cluster[i] : 0;
    }
    kbi_event_occupancy(e);
    to->correlation = r->correlation;
}

// A thread of CUPTI calls this function for each activity record.
static void kbi_activity_record(const kbi_activity* r) {
    kbi_recorded to;
    memset(&to, 0, sizeof to);
    to.event.cause = -1;
    if (r->kind == KBI_ACTIVITY_KERNEL) {
        kbi_activity_kernel(r, &to);
    } else if (r->kind == KBI_ACTIVITY_COPY || r->kind == KBI_ACTIVITY_SET) {
        const kbi_activity_copy* c = (const kbi_activity_copy*)(const void*)r;
        to.event.kind = c->kind == KBI_ACTIVITY_SET ? KBI_EVENT_SET : KBI_EVENT_COPY;
        to.event.name = kbi_copy_name(c);
        to.event.start = (int64_t)c->start, to.event.end = (int64_t)c->end, to.event.bytes = (int64_t)c->bytes;
        to.event.lane = c->stream;
        to.correlation = c->correlation;
    } else if (r->kind == KBI_ACTIVITY_DRIVER || r->kind == KBI_ACTIVITY_RUNTIME) {
        const kbi_activity_call* c = (const kbi_activity_call*)(const void*)r;
        to.event.kind = KBI_EVENT_CALL;
        to.event.name = kbi_call_name(c->kind == KBI_ACTIVITY_DRIVER ? 1 : 2, c->id);
        to.event.start = (int64_t)c->start, to.event.end = (int64_t)c->end;
        to.event.lane = c->thread;
        to.correlation = c->correlation;
    } else {
        return;
    }
    kbi_activity_keep(&to);
}

static const int kbi_activities[] = { KBI_ACTIVITY_KERNEL, KBI_ACTIVITY_COPY, KBI_ACTIVITY_SET, KBI_ACTIVITY_RUNTIME,
                                      KBI_ACTIVITY_DRIVER };

static void kbi_activity_off(int n) {
    for (int i = 0; i < n && kbi_meter.cupti.disable; i++)
        if (!kbi_meter.cupti.open || kbi_activities[i] != KBI_ACTIVITY_KERNEL)
            kbi_meter.cupti.disable(kbi_activities[i]);
}

static bool kbi_activity_open(kb_state* kb) {
    (void)kb;
    kbi_cupti* c = &kbi_meter.cupti;
    char why[400];
    int error = 0, n = 0;
    if (!kbi_cupti_load() || !c->time) return kbi_insight_say("%s", kbi_cupti_unavailable(why)), false;
    for (; n < KBI_COUNT(kbi_activities) && !error; n++) error = c->enable(kbi_activities[n]);
    if (error) kbi_activity_off(n - 1), kbi_insight_say("%s", kbi_cupti_error_text("cuptiActivityEnable", error, why));
    if (error) return false;
    c->flush(1); // delivers older records before c->look is set
    c->look = kbi_activity_record;
    kbi_meter.insight.head.runs = -1;
    kbi_meter.insight.began = kbi_now();
    return true;
}

static int64_t kbi_activity_now(void) {
    uint64_t ns = 0;
    return kbi_meter.cupti.time(&ns) == 0 ? (int64_t)ns : 0;
}

static int64_t kbi_activity_begin(kb_state* kb) {
    kbi_run* run = kb->run;
    kbi_insight* in = &kbi_meter.insight;
    bool waits = (run->work.expect & (KB_EXPECT_SYNC | KB_EXPECT_ALLOC)) != 0 || kbi_copies_wait(run);
    kbi_sample_open(run->sampling.gated && !waits && run->work.nodes < KBI_GATE_NODES, 1);
    kbi_launch_begin(run->recipe->mode != KBI_HOT);
    in->window[KBI_MAX(in->head.runs, 0)][0] = kbi_activity_now();
    return 1;
}

static bool kbi_activity_end(kb_state* kb) {
    kbi_insight* in = &kbi_meter.insight;
    int64_t ends = kbi_activity_now();
    kbi_launch_end();
    kbi_meter.gpu.at = 0;
    if (kbi_meter.gpu.alarmed && kb->run->sampling.gated)
        return kb->run->sampling.gated = false, true; // a block that waits for its work cannot use a launch gate
    if (in->head.runs >= 0) in->window[in->head.runs][1] = ends;
    in->head.runs++;
    bool long_enough = in->head.runs > 0 && kbi_now() - in->began > (int64_t)2000000000;
    return in->head.runs < KBI_INSIDE_RUNS && !long_enough;
}

static int kbi_recorded_order(const void* a, const void* b) { // an event precedes the events that it encloses
    const kbi_event *x = &((const kbi_recorded*)a)->event, *y = &((const kbi_recorded*)b)->event;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->kind != y->kind) return x->kind - y->kind; // a call precedes the work that it submits
    return x->end != y->end ? (x->end > y->end ? -1 : 1) : 0;
}

// Writes an event for each run of the block, and for each call that no other call encloses. callers maps each
// correlation id to the index of its call.
static void kbi_activity_calls(const kbi_recorded* all, size_t n, kbi_text* events, kbi_map* callers) {
    kbi_insight* in = &kbi_meter.insight;
    kbi_event outer;
    int64_t at = -1;
    memset(&outer, 0, sizeof outer);
    for (int r = 0; r < in->head.runs; r++) {
        kbi_event run = outer;
        run.start = in->window[r][0], run.end = in->window[r][1], run.run = r, run.cause = -1;
        run.name = kbi_insight_text(1, "the block");
        kbi_put(events, (const char*)&run, sizeof run);
    }
    for (size_t i = 0; i < n; i++) {
        kbi_event e = all[i].event;
        e.run = -1;
        for (int r = 0; r < in->head.runs && e.kind == KBI_EVENT_CALL; r++)
            if (e.start >= in->window[r][0] && e.start <= in->window[r][1]) e.run = r;
        if (e.run < 0) continue;
        bool inner = at >= 0 && e.lane == outer.lane && e.start >= outer.start && e.end <= outer.end;
        if (!inner) at = (int64_t)(events->n / sizeof e), outer = e, kbi_put(events, (const char*)&e, sizeof e);
        kbi_mapped* slot = kbi_map_find(callers, all[i].correlation);
        if (!slot->key) kbi_map_take(callers, slot, all[i].correlation, (intptr_t)at);
    }
}

static void kbi_activity_collect(kbi_run* run) {
    kbi_insight* in = &kbi_meter.insight;
    kbi_recorded* all = (kbi_recorded*)(void*)in->events.s;
    kbi_text events = KBI_BLANK;
    kbi_map callers = KBI_BLANK;
    size_t n = in->events.n / sizeof *all;
    int64_t found = 0;
    if (n) qsort(all, n, sizeof *all, kbi_recorded_order);
    kbi_activity_calls(all, n, &events, &callers);
    for (size_t i = 0; i < n; i++) {
        kbi_event e = all[i].event;
        const kbi_mapped* slot = kbi_map_find(&callers, all[i].correlation);
        if (e.kind == KBI_EVENT_CALL || !slot->key) continue;
        if (events.n / sizeof e >= KBI_INSIDE_EVENTS) {
            in->head.dropped++;
            continue;
        }
        e.cause = (int32_t)slot->at;
        e.run = ((const kbi_event*)(void*)events.s)[slot->at].run;
        kbi_put(&events, (const char*)&e, sizeof e);
        found++;
    }
    if (!found && run->work.nodes)
        kbi_insight_say("CUPTI recorded no work of the block. Check whether another profiler is attached.");
    kbi_text_free(&in->events);
    in->events = events;
    KBENCH_FREE(callers.slots);
}

static void kbi_activity_close(kb_state* kb) {
    size_t lost = 0;
    cudaDeviceSynchronize();
    kbi_meter.cupti.flush(1);
    kbi_meter.cupti.look = NULL;
    kbi_activity_off(KBI_COUNT(kbi_activities));
    if (kbi_meter.cupti.dropped && kbi_meter.cupti.dropped(NULL, 0, &lost) == 0)
        kbi_meter.insight.head.dropped += (int64_t)lost;
    kbi_activity_collect(kb->run);
}

/*-----------------------------------------------------------------
  >>counters    hardware counters of the block, from CUPTI's range profiler.
-----------------------------------------------------------------*/

// Each function of CUPTI's range profiler takes a pointer to one structure. kbench passes an array of 8-byte
// words, because each field of such a structure lies within one word. Word 0 is the size of the structure: the end
// of its last field. tests/compile/cupti.cpp compares offsets and sizes with CUPTI's headers.
// clang-format off
#define KBI_RANGE_CALLS(x) /* function, bytes of its structure; [n] below: word n of the structure */     \
    x(INIT, cuptiProfilerInitialize, 16)                                                                             \
    x(SUPPORTED, cuptiProfilerDeviceSupported, 52) /* [2] device, answer (32-bit fields) */                          \
    x(CHIP, cuptiDeviceGetChipName, 32) /* [2] device, [3] name */                                                   \
    x(AVAILABLE, cuptiProfilerGetCounterAvailability, 40) /* [2] context, [3] size, [4] image */                     \
    x(HOST, cuptiProfilerHostInitialize, 48) /* [2] kind, [3] chip, [4] image, [5] object */                         \
    x(METRIC, cuptiProfilerHostGetMetricProperties, 60) /* [2] object, [3] name */                                   \
    x(ADD, cuptiProfilerHostConfigAddMetrics, 40) /* [2] object, [3] names, [4] number */                            \
    x(CONFIG_SIZE, cuptiProfilerHostGetConfigImageSize, 32) /* [2] object, [3] size */                               \
    x(CONFIG, cuptiProfilerHostGetConfigImage, 40) /* [2] object, [3] size, [4] image */                             \
    x(PASSES, cuptiProfilerHostGetNumOfPasses, 40) /* [2] size, [3] image, [4] passes */                             \
    x(ENABLE, cuptiRangeProfilerEnable, 32) /* [2] context, [3] profiler */                                          \
    x(DATA_SIZE, cuptiRangeProfilerGetCounterDataSize, 64) /* [2] profiler, [3,4] metrics, [5,6] limits, [7] size */ \
    x(DATA, cuptiRangeProfilerCounterDataImageInitialize, 40) /* [2] profiler, [3] size, [4] image */                \
    x(SET, cuptiRangeProfilerSetConfig, 90) /* [2] profiler, [3-6] images, [7-11] ranges */                          \
    x(START, cuptiRangeProfilerStart, 24) /* [2] profiler */                                                         \
    x(PUSH, cuptiRangeProfilerPushRange, 32) /* [2] profiler, [3] name */                                            \
    x(POP, cuptiRangeProfilerPopRange, 24)                                                                           \
    x(STOP, cuptiRangeProfilerStop, 41) /* [2] profiler, [5] whether all passes have ended (1 byte) */               \
    x(DECODE, cuptiRangeProfilerDecodeData, 32)                                                                      \
    x(VALUES, cuptiProfilerHostEvaluateToGpuValues, 72) /* [2] object, [3,4] data, [5] range, [6-8] names, values */ \
    x(DISABLE, cuptiRangeProfilerDisable, 24)                                                                        \
    x(HOST_END, cuptiProfilerHostDeinitialize, 24)
// clang-format on

typedef enum kbi_range_call {
#define KBI_X(id, name, size) KBI_RANGE_##id,
    KBI_RANGE_CALLS(KBI_X)
#undef KBI_X
        KBI_RANGE_COUNT
} kbi_range_call;

static const struct {
    const char* name;
    unsigned size;
} kbi_range_calls[] = {
#define KBI_X(id, name, size) { #name, size },
    KBI_RANGE_CALLS(KBI_X)
#undef KBI_X
};

// The set `few` needs one pass (run of the block), `usual` three passes, and `all` about 16 passes. A metric that
// chips name differently has one row for each name.
static const struct {
    const char *name, *metric, *unit;
    int set; // the smallest set with this metric: 0 is `few`, 1 is `usual`, 2 is `all`
} kbi_chip_metrics[] = { { KBI_RANGE_TIME, "gpu__time_duration.sum", "ns", 0 },
                         { "dram_bytes", "dram__bytes.sum", "B", 0 },
                         { "dram_pct", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", 0 },
                         { "occupancy_pct", "sm__warps_active.avg.pct_of_peak_sustained_active", "%", 0 },
                         { "tensor_pct", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", 0 },
                         { "l2_pct", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "%", 0 },
                         { "l2_bytes", "lts__t_bytes.sum", "B", 1 },
                         { "l1_hit_pct", "l1tex__t_sector_hit_rate.pct", "%", 1 },
                         { "l2_hit_pct", "lts__t_sector_hit_rate.pct", "%", 1 },
                         { "instructions", "smsp__inst_executed.sum", "", 1 },
                         { "issue_pct", "smsp__issue_active.avg.pct_of_peak_sustained_active", "%", 1 },
                         { "sm_cycles", "sm__cycles_active.max", "", 1 },
                         { "dram_read_bytes", "dram__bytes_read.sum", "B", 1 },
                         { "dram_write_bytes", "dram__bytes_write.sum", "B", 1 },
                         { "bank_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "", 1 },
                         { "fadd", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "", 1 },
                         { "fmul", "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "", 1 },
                         { "ffma", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "", 1 },
                         { "dadd", "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "", 1 },
                         { "dmul", "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", "", 1 },
                         { "dfma", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", "", 1 },
                         { "hadd", "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", "", 1 },
                         { "hmul", "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", "", 1 },
                         { "hfma", "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", "", 1 },
                         { "fp32_instructions", "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum", "", 1 },
                         { "fp64_instructions", "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum", "", 1 },
                         { "fp16_instructions", "smsp__sass_thread_inst_executed_op_fp16_pred_on.sum", "", 1 },
                         { "xu_instructions", "sm__inst_executed_pipe_xu.sum", "", 1 },
                         { "tensor_instructions", "sm__inst_executed_pipe_tensor.sum", "", 1 },
                         { "tensor_bf16_ops", "sm__ops_path_tensor_src_bf16_dst_fp32.sum", "", 2 },
                         { "tensor_tf32_ops", "sm__ops_path_tensor_src_tf32_dst_fp32.sum", "", 2 },
                         { "tensor_fp16_ops", "sm__ops_path_tensor_src_fp16.sum", "", 2 },
                         { "tensor_fp16_ops", "sm__ops_path_tensor_src_fp16_dst_fp32.sum", "", 2 },
                         { "tensor_fp8_ops", "sm__ops_path_tensor_src_fp8.sum", "", 2 },
                         { "tensor_int8_ops", "sm__ops_path_tensor_src_int8.sum", "", 2 },
                         { "sm_pct", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", 2 },
                         { "memory_pct", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%",
                           2 } };

enum { KBI_METRICS = 64, KBI_PASSES = 64 };
static struct kbi_range_state {
    int (*calls[KBI_RANGE_COUNT])(uint64_t*);
    uint64_t host, profiler;
    const char *metrics[KBI_METRICS], *names[KBI_METRICS], *units[KBI_METRICS];
    char own[512];
    int n, passes;
    bool begun, failed;
    bool cold_asked;
    double cold;     // percentage of L2 that the eviction empties, from kbi_range_cold
    kbi_text availability, config, data;
} kbi_range_state;

#define KBI_WORD_OF(p) ((uint64_t)(uintptr_t)(p))

// Returns false if the call fails; the profile then has the reason.
static bool kbi_range(kbi_range_call call, uint64_t* words) {
    char why[400];
    int (*f)(uint64_t*) = kbi_range_state.calls[call];
    words[0] = kbi_range_calls[call].size;
    int error = f ? f(words) : 27;
    if (!error || kbi_range_state.failed) return !error;
    kbi_range_state.failed = true;
    if (f)
        kbi_insight_say("%s", kbi_cupti_error_text(kbi_range_calls[call].name, error, why));
    else
        kbi_insight_say("this libcupti.so has no %s; counters need the library of CUDA 12.6 or later",
                        kbi_range_calls[call].name);
    return false;
}

static void kbi_range_reserve(kbi_text* t, uint64_t bytes) {
    kbi_text_free(t);
    t->s = (char*)kbi_grow(NULL, (size_t)bytes);
    memset(t->s, 0, (size_t)bytes);
    t->n = (size_t)bytes;
}

static bool kbi_range_supported(int device) {
    enum { KBI_RANGE_YES = 3 };
    uint64_t p[7] = { 0, 0, (uint32_t)device };
    uint32_t answer[2]; // device, supported
    if (!kbi_range(KBI_RANGE_SUPPORTED, p)) return false;
    memcpy(answer, &p[2], sizeof answer);
    if (answer[1] == KBI_RANGE_YES) return true;
    kbi_insight_say("this GPU cannot be profiled. Possible reasons: a virtual GPU or MIG instance, confidential "
                    "computing, WSL, or a libcupti.so that is older than the GPU");
    return false;
}

// Omits a metric that the chip lacks, because one unknown metric makes the whole configuration fail. named:
// whether the user requested this metric by name.
static void kbi_range_offer(const char* metric, const char* name, const char* unit, bool named) {
    struct kbi_range_state* r = &kbi_range_state;
    uint64_t p[8] = { kbi_range_calls[KBI_RANGE_METRIC].size, 0, r->host, KBI_WORD_OF(metric) };
    bool has = r->calls[KBI_RANGE_METRIC] && r->calls[KBI_RANGE_METRIC](p) == 0;
    if (!has && named) kbi_insight_say("this chip has no metric %s", metric);
    if (!has || r->n == KBI_METRICS) return;
    r->metrics[r->n] = metric;
    r->names[r->n] = name;
    r->units[r->n++] = unit;
}

static bool kbi_range_choose(const char* set) {
    bool named = set && strstr(set, "__");
    int most = !set || kbi_is(set, "usual") ? 1 : kbi_is(set, "few") ? 0 : 2;
    kbi_range_state.n = 0;
    for (int i = 0; !named && i < KBI_COUNT(kbi_chip_metrics); i++)
        if (kbi_chip_metrics[i].set <= most)
            kbi_range_offer(kbi_chip_metrics[i].metric, kbi_chip_metrics[i].name, kbi_chip_metrics[i].unit, false);
    snprintf(kbi_range_state.own, sizeof kbi_range_state.own, "%s", named ? set : "");
    for (char* p = kbi_range_state.own; *p;) {
        char* name = p;
        p += strcspn(p, ",");
        if (*p) *p++ = 0;
        if (*name) kbi_range_offer(name, name, "", true);
    }
    return kbi_range_state.n > 0;
}

static bool kbi_range_configure(const char* chip, const char* set) {
    struct kbi_range_state* r = &kbi_range_state;
    uint64_t host[6] = { 0, 0, 0, KBI_WORD_OF(chip), KBI_WORD_OF(r->availability.s), 0 };
    if (!kbi_range(KBI_RANGE_HOST, host)) return false;
    r->host = host[5];
    if (!kbi_range_choose(set)) return false;
    uint64_t add[5] = { 0, 0, r->host, KBI_WORD_OF(r->metrics), (uint64_t)r->n }, size[4] = { 0, 0, r->host, 0 };
    if (!kbi_range(KBI_RANGE_ADD, add) || !kbi_range(KBI_RANGE_CONFIG_SIZE, size)) return false;
    kbi_range_reserve(&r->config, size[3]);
    uint64_t config[5] = { 0, 0, r->host, size[3], KBI_WORD_OF(r->config.s) };
    uint64_t passes[5] = { 0, 0, size[3], KBI_WORD_OF(r->config.s), 0 };
    if (!kbi_range(KBI_RANGE_CONFIG, config) || !kbi_range(KBI_RANGE_PASSES, passes)) return false;
    r->passes = (int)passes[4];
    return true;
}

static void kbi_range_find(void* library) {
    for (int i = 0; i < KBI_RANGE_COUNT; i++) kbi_find(library, kbi_range_calls[i].name, &kbi_range_state.calls[i]);
}

static void kbi_range_end(void) {
    struct kbi_range_state* r = &kbi_range_state;
    uint64_t profiler[3] = { 0, 0, r->profiler }, host[3] = { 0, 0, r->host };
    if (r->profiler) kbi_range(KBI_RANGE_DISABLE, profiler);
    if (r->host) kbi_range(KBI_RANGE_HOST_END, host);
    r->profiler = r->host = 0;
    kbi_text_free(&r->availability);
    kbi_text_free(&r->config);
    kbi_text_free(&r->data);
}

// Sets up CUPTI's range profiler for one range, the block, in the current context. Each pass is one run of the
// block.
static bool kbi_range_begin(int device, const char* set_of) {
    enum { KBI_USER_RANGE = 2, KBI_USER_REPLAY = 3 };
    struct kbi_range_state* r = &kbi_range_state;
    int (*current)(void**) = NULL;
    void* context = NULL;
    uint64_t init[2] = { 0, 0 }, chip[4] = { 0, 0, (uint64_t)device, 0 };
    kbi_driver_find("cuCtxGetCurrent", 4000, &current);
    if (current) current(&context);
    r->begun = r->begun || kbi_range(KBI_RANGE_INIT, init); // initializes CUPTI once per process
    if (!r->begun || !kbi_range_supported(device) || !kbi_range(KBI_RANGE_CHIP, chip)) return false;
    uint64_t room[5] = { 0, 0, KBI_WORD_OF(context), 0, 0 }, enable[4] = { 0, 0, KBI_WORD_OF(context), 0 };
    if (!kbi_range(KBI_RANGE_AVAILABLE, room)) return false;
    kbi_range_reserve(&r->availability, room[3]);
    room[4] = KBI_WORD_OF(r->availability.s);
    if (!kbi_range(KBI_RANGE_AVAILABLE, room)) return false;
    if (!kbi_range_configure((const char*)(uintptr_t)chip[3], set_of)) return false;
    if (!kbi_range(KBI_RANGE_ENABLE, enable)) return false;
    r->profiler = enable[3];
    uint64_t size[8] = { 0, 0, r->profiler, KBI_WORD_OF(r->metrics), (uint64_t)r->n, 1, 1, 0 };
    if (!kbi_range(KBI_RANGE_DATA_SIZE, size)) return false;
    kbi_range_reserve(&r->data, size[7]);
    uint64_t data[5] = { 0, 0, r->profiler, size[7], KBI_WORD_OF(r->data.s) };
    uint64_t set[12] = { 0, 0, r->profiler, r->config.n, KBI_WORD_OF(r->config.s), r->data.n };
    set[6] = KBI_WORD_OF(r->data.s), set[7] = (uint64_t)KBI_USER_RANGE | (uint64_t)KBI_USER_REPLAY << 32;
    set[8] = set[11] = 1, set[9] = 1 | 1u << 16;
    return kbi_range(KBI_RANGE_DATA, data) && kbi_range(KBI_RANGE_SET, set);
}

// Starts a pass, which counts all GPU work until kbi_range_pass_end.
static void kbi_range_pass_begin(void) {
    uint64_t start[3] = { 0, 0, kbi_range_state.profiler },
             push[4] = { 0, 0, kbi_range_state.profiler, KBI_WORD_OF("block") };
    cudaStreamSynchronize(kbi_meter.gpu.stream);
    if (kbi_range(KBI_RANGE_START, start)) kbi_range(KBI_RANGE_PUSH, push);
}

static bool kbi_range_pass_end(int passes) {
    uint64_t pop[3] = { 0, 0, kbi_range_state.profiler }, stop[6] = { 0, 0, kbi_range_state.profiler, 0, 0, 0 };
    if (!kbi_range_state.failed) kbi_range(KBI_RANGE_POP, pop);
    cudaDeviceSynchronize();
    if (!kbi_range_state.failed) kbi_range(KBI_RANGE_STOP, stop);
    return !kbi_range_state.failed && !(stop[5] & 0xff) && passes < KBI_PASSES;
}

static bool kbi_range_values(double values[KBI_METRICS]) {
    struct kbi_range_state* r = &kbi_range_state;
    uint64_t decode[4] = { 0, 0, r->profiler, 0 };
    uint64_t value[9] = { 0, 0, r->host, KBI_WORD_OF(r->data.s), r->data.n };
    value[6] = KBI_WORD_OF(r->metrics), value[7] = (uint64_t)r->n, value[8] = KBI_WORD_OF(values);
    for (int i = 0; i < KBI_METRICS; i++) values[i] = NAN;
    return !r->failed && kbi_range(KBI_RANGE_DECODE, decode) && kbi_range(KBI_RANGE_VALUES, value);
}

static bool kbi_range_library(void) {
    char why[400];
    kbi_range_state.failed = false;
    if (!kbi_cupti_load()) return kbi_insight_say("%s", kbi_cupti_unavailable(why)), false;
    kbi_range_find(kbi_meter.cupti.library);
    return true;
}

static void kbi_range_evict(void) {
    if (kbi_meter.gpu.persisting) cudaCtxResetPersistingL2Cache();
    kbi_evict();
}

// Reads data of the size of L2, evicts the data, and reads the data again. Returns the percentage of the second
// read that came from DRAM, or NaN if unknown; the profile then has the reason.
static double kbi_range_cold(const kbi_machine* m) {
    size_t size = (size_t)KBI_MAX(m->l2, (int64_t)0) & ~(size_t)4095;
    char* probe = NULL;
    double values[KBI_METRICS];
    bool good = size && kbi_range_library() && cudaMalloc((void**)&probe, size) == cudaSuccess;
    if (good) kbi_gpu_fill(probe, KB_U32, (int64_t)(size / 4), KB_UNIFORM, 42, 0);
    good = good && kbi_range_begin(m->device, "dram__bytes.sum");
    int passes = 0;
    for (bool more = good; more;) {
        kbi_gpu_read(probe, size);
        kbi_range_evict();
        kbi_range_pass_begin();
        kbi_gpu_read(probe, size);
        more = kbi_range_pass_end(++passes);
    }
    good = good && kbi_range_values(values);
    kbi_range_end();
    cudaFree(probe);
    cudaGetLastError();
    return good ? 100 * values[0] / (double)size : (double)NAN;
}

static void kbi_measure_counted_cold(kbi_machine* m) {
    m->counted_cold = kbi_range_cold(m);
    snprintf(m->counted_why, sizeof m->counted_why, "%.190s", kbi_meter.insight.head.message);
}

static bool kbi_counters_open(kb_state* kb) {
    kbi_meter.insight.passes = 0;
    kbi_check_persisting();
    if (!kbi_range_library()) return false;
    bool good = kbi_range_begin(kb->run->machine->device, kbi_inspect_given.counters);
    if (!good) kbi_range_end();
    return good;
}

static int64_t kbi_counters_begin(kb_state* kb) {
    if (kb->run->recipe->mode != KBI_HOT) kbi_range_evict();
    kbi_range_pass_begin();
    return 1;
}

static bool kbi_counters_end(kb_state* kb) {
    (void)kb;
    return kbi_range_pass_end(++kbi_meter.insight.passes);
}

static void kbi_counters_close(kb_state* kb) {
    kbi_run* run = kb->run;
    struct kbi_range_state* r = &kbi_range_state;
    double values[KBI_METRICS];
    bool good = !kbi_failed(run) && kbi_range_values(values);
    for (int i = 0; i < r->n && good; i++) kbi_insight_count(r->names[i], r->units[i], values[i]);
    kbi_range_end();
    if (!good || run->recipe->mode != KBI_COLD) return;
    if (!r->cold_asked) r->cold = kbi_range_cold(run->machine);
    r->cold_asked = true;
    kbi_insight_count("evicted_pct", "%", r->cold);
}

#endif

/*-----------------------------------------------------------------
  >>counted     compares counters with the declared bytes and operations; names the bottleneck of a case.
-----------------------------------------------------------------*/

// Reports a case that declares more bytes than it moved. In a cold case with declared bytes of at least four times
// L2, the moved bytes are the DRAM traffic plus the size of L2; in other cases, they are the L2 traffic. A case
// may move more than it declares, because kb_bytes counts data once even if it is read twice.
static void kbi_judge_declared_bytes(kb_result* r, const kbi_inside* in, const kbi_machine* machine) {
    double dram = kbi_counted(in, "dram_bytes"), l2 = kbi_counted(in, "l2_bytes"), size = (double)machine->l2;
    bool far = kbi_is(r->cache, "cold") && r->bytes >= 4 * size && kbi_finite(dram);
    double most = far ? dram + size : l2;
    char declared[40], counted[40], factor[40];
    if (!(r->bytes > 0) || !kbi_finite(most)) return;
    kbi_show_bytes(r->bytes, declared);
    kbi_show_bytes(far ? dram : l2, counted);
    if (r->bytes > 1.1 * most) {
        kbi_flag_set(r, KB_FLAG_DECLARED_BYTES, true);
        kbi_judge_say(r, "kb_bytes declares %s, but %s moved %s", declared, far ? "DRAM" : "L2", counted);
    } else if (far && dram > 1.1 * r->bytes) {
        kbi_judge_say(r, "DRAM moved %s, %s times the bytes of kb_bytes", counted,
                      kbi_digits(dram / r->bytes, 3, factor));
    }
}

static double kbi_counted_flops(const kbi_inside* in) { // additions, multiplications and FMAs of f32 and f64
    return kbi_counted(in, "fadd") + kbi_counted(in, "fmul") + 2 * kbi_counted(in, "ffma") + kbi_counted(in, "dadd") +
           kbi_counted(in, "dmul") + 2 * kbi_counted(in, "dfma");
}

// Compares declared operations with an upper bound, computed from all counted instructions. The bound is generous,
// because programs count a comparison, root or exponential as different numbers of operations. Skips blocks that
// use tensor cores.
static void kbi_judge_declared_flops(kb_result* r, const kbi_inside* in) {
    double fp32 = kbi_counted(in, "fp32_instructions"), fp64 = kbi_counted(in, "fp64_instructions");
    double fp16 = kbi_counted(in, "fp16_instructions"), tensor = kbi_counted(in, "tensor_instructions");
    double most = fp32 + kbi_counted(in, "ffma") + fp64 + kbi_counted(in, "dfma") + 4 * fp16 +
                  32 * kbi_counted(in, "xu_instructions");
    double certain = kbi_counted_flops(in);
    char declared[40], counted[40];
    bool integers = kb_dtype_of(r->dtype ? r->dtype : "") >= KB_I8 && kb_dtype_of(r->dtype ? r->dtype : "") <= KB_U64;
    if (!(r->flops > 0) || !kbi_finite(most) || tensor > 0 || integers) return;
    if (r->flops > 1.1 * most) {
        kbi_flag_set(r, KB_FLAG_DECLARED_FLOPS, true);
        kbi_judge_say(r, "kb_flops declares %s million operations, but the instructions did at most %s million",
                      kbi_digits(r->flops * 1e-6, 4, declared), kbi_digits(most * 1e-6, 4, counted));
    } else if (certain > 1.1 * r->flops) {
        kbi_judge_say(r, "the instructions did %s million operations, %s times the operations of kb_flops",
                      kbi_digits(certain * 1e-6, 4, counted), kbi_digits(certain / r->flops, 3, declared));
    }
}

// Converts percentages of the profiled time into percentages of the block's time, because the profiler adds 40 to
// 80 us (H200).
static void kbi_judge_counted_time(const kb_result* r, kbi_inside* in) {
    static const char* const shares[] = { "dram_pct", "l2_pct", "sm_pct", "memory_pct" };
    const double longer = kbi_counted(in, KBI_RANGE_TIME) / (1e6 * r->time_ms);
    kbi_counter* of = kbi_counters_at(in);
    for (int64_t i = 0; i < in->counters; i++)
        for (int k = 0; k < KBI_COUNT(shares) && longer > 1; k++)
            if (kbi_is(of[i].name, shares[k])) of[i].value = KBI_MIN(100.0, of[i].value * longer);
    for (int64_t i = 0; i < in->counters; i++)
        if (kbi_is(of[i].name, KBI_RANGE_TIME)) kbi_inside_drop(in, i);
}

// If a unit reaches 60 % of its peak, the busiest unit is the bottleneck. Otherwise the case's roof is the
// bottleneck if the case reaches 60 % of this roof: DRAM counters miss data that a short kernel leaves in L2. In
// all other cases, latency or the launch is the bottleneck.
static void kbi_judge_bound(kb_result* r, const kbi_inside* in) {
    static const struct {
        const char *counter, *name, *bound;
    } rows[] = { { "dram_pct", "DRAM", "memory" },
                 { "l2_pct", "L2", "L2" },
                 { "tensor_pct", "tensor cores", "compute" },
                 { "issue_pct", "issue slots", "compute" },
                 { "sm_pct", "busiest pipe", "compute" } };
    const double enough = 60; // percent of the peak
    kbi_text why = KBI_BLANK;
    double most = 0, warps = kbi_counted(in, "occupancy_pct");
    const char* bound = "latency";
    int n = 0;
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        double x = kbi_counted(in, rows[i].counter);
        if (!kbi_finite(x)) continue;
        if (x > most && x >= enough) bound = rows[i].bound;
        most = KBI_MAX(most, x);
        kbi_putf(&why, "%s%s %.0f %%", n++ ? ", " : "", rows[i].name, x);
    }
    bool trusted = !(r->flags >> KB_FLAG_DECLARED_BYTES & 1) && !(r->flags >> KB_FLAG_DECLARED_FLOPS & 1);
    bool near = most < enough && trusted && r->roof && r->gpu_efficiency >= enough;
    bool memory = near && kbi_roof_is_memory(r->roof);
    if (memory && kbi_is(r->cache, "hot")) near = false; // the data of a hot case may come from L2
    if (near) bound = memory ? "memory" : "compute";
    if (near) kbi_putf(&why, "%s%s roof %.0f %%", n++ ? ", " : "", r->roof, r->gpu_efficiency);
    if (r->flags >> KB_FLAG_FLOOR & 1 && most < enough && !near) bound = "launch";
    if (kbi_finite(warps)) kbi_putf(&why, "%s%.0f %% of the warps active", n ? ", " : "", warps);
    if (n > 1) { // one counter alone does not show the bottleneck
        r->bound = bound;
        kbi_judge_say(r, "bound by %s: %s%s", bound, why.s,
                      kbi_is(bound, "latency") ? ": no unit is busy enough" : "");
    }
    kbi_text_free(&why);
}

// Computes the arithmetic intensity in FLOP per byte of DRAM and of L2, from the declared operations, or from the
// counted operations if the kernel uses no tensor cores. Returns the number of intensities.
static int kbi_judge_levels(const kb_result* r, const kbi_inside* in, kbi_counter out[2]) {
    static const char* const names[][2] = { { "intensity_dram", "dram_bytes" }, { "intensity_l2", "l2_bytes" } };
    double sure = kbi_counted_flops(in), tensor = kbi_counted(in, "tensor_instructions");
    // tensor_instructions includes some f16 instructions of kernels that do not use tensor cores
    bool moves = !(tensor > 0) || 32 * tensor == kbi_counted(in, "fp16_instructions");
    double flops = r->flops > 0 ? r->flops : moves ? sure : 0;
    int n = 0;
    if (r->status != KB_OK || !(flops > 0)) return 0;
    for (int i = 0; i < KBI_COUNT(names); i++) {
        double bytes = kbi_counted(in, names[i][1]);
        if (!(bytes > 0)) continue;
        memset(&out[n], 0, sizeof out[n]);
        snprintf(out[n].name, sizeof out[n].name, "%s", names[i][0]);
        snprintf(out[n].unit, sizeof out[n].unit, "FLOP/B");
        out[n++].value = flops / bytes;
    }
    return n;
}

// Removes the time of a cold case if the counters show that the eviction empties less than 90 % of L2.
static void kbi_judge_counted_cold(kb_result* r, const kbi_inside* in) {
    const double enough = 90;
    double gone = kbi_counted(in, "evicted_pct");
    if (!kbi_is(r->cache, "cold") || !kbi_finite(gone) || gone >= enough) return;
    kbi_flag_set(r, KB_FLAG_NOT_COLD, true);
    kbi_judge_say(r, "after the eviction, only %.0f %% of a read of the size of L2 came from DRAM (counters)", gone);
    r->status = KB_FAILED;
    kbi_judge_withdraw(r);
}

static void kbi_judge_energy(kb_result* r, kbi_inside* in, const kbi_machine* machine) {
    (void)machine;
    if (r->status != KB_OK || !(in->energy_mj > 0)) return; // a case with the flag NOT_COLD gets no energy
    r->energy_mj = in->energy_mj;
    if (in->idle_w > 0) r->idle_power_w = in->idle_w;
    if (r->flops > 0) r->flops_per_joule = r->flops / (in->energy_mj * 1e-3);
    if (r->bytes > 0) r->bytes_per_joule = r->bytes / (in->energy_mj * 1e-3);
}

// For host work: the share of issue slots that waited for memory, if the CPU counts them. Cache misses do not show
// the waiting time, because most of them overlap with other work.
static void kbi_judge_host_bound(kb_result* r, const kbi_inside* in) {
    double memory = kbi_counted(in, "memory_bound_pct"), backend = kbi_counted(in, "backend_bound_pct");
    if (!kbi_finite(kbi_counted(in, "cycles"))) return;
    if (kbi_finite(memory))
        kbi_judge_say(r, "%.0f %% of the processor's issue slots waited for memory", memory);
    else if (kbi_finite(backend))
        kbi_judge_say(r, "%.0f %% of the processor's issue slots waited for memory or execution units", backend);
    else
        kbi_judge_say(r, "the share of time bound by memory is unknown: this processor counts neither "
                         "topdown-be-bound nor stalled-cycles-backend");
}

static void kbi_judge_inside(kb_result* r, kbi_inside* in, const kbi_machine* machine) {
    kbi_counter levels[2];
    if (r->status == KB_OK) kbi_judge_counted_cold(r, in);
    kbi_judge_counted_time(r, in);
    kbi_judge_energy(r, in, machine);
    if (r->status == KB_OK && in->counters) {
        r->occupancy_achieved = kbi_counted(in, "occupancy_pct");
        kbi_judge_declared_bytes(r, in, machine);
        kbi_judge_declared_flops(r, in);
        kbi_judge_bound(r, in);
        kbi_judge_host_bound(r, in);
    }
    kbi_record_counters(r, kbi_counters_of(in), (int)in->counters); // intensities follow
    kbi_record_counters(r, levels, kbi_judge_levels(r, in, levels));
}

/*-----------------------------------------------------------------
  >>launches    reads the CSV of a profiler: kernels and their metrics, aggregated by case.
-----------------------------------------------------------------*/

typedef struct kbi_metric {
    const char *name, *unit;
    double sum, weight; // the value is sum / weight (an average); if weight is 0, the value is sum
} kbi_metric;

// Sums over the launches of a case: of one kernel with one grid and block size, or of all kernels.
typedef struct kbi_launches {
    int number;
    bool whole;         // only set in the sum over all kernels: the end mark of the case was found
    const char* kernel;
    const char *grid, *block;
    int64_t calls;
    double ns;
    kbi_metric* of;
    int n;
} kbi_launches;

typedef struct kbi_launch_list { // entries of a case are consecutive; its first entry is the sum over all kernels
    kbi_launches* of;
    int n;
    kbi_arena text;
} kbi_launch_list;

static void kbi_launch_list_free(kbi_launch_list* l) {
    for (int i = 0; i < l->n; i++) KBENCH_FREE(l->of[i].of);
    KBENCH_FREE(l->of);
    kbi_arena_free(&l->text);
    memset(l, 0, sizeof *l);
}

static const kbi_launches* kbi_launches_total(const kbi_launch_list* l, int number) { // NULL: profile incomplete
    for (int i = 0; i < l->n; i++)
        if (l->of[i].number == number && !l->of[i].kernel && l->of[i].whole) return &l->of[i];
    return NULL;
}

static double kbi_metric_value(const kbi_metric* m) { return m->weight > 0 ? m->sum / m->weight : m->sum; }

static double kbi_launches_value(const kbi_launches* l, const char* name) {
    for (int i = 0; i < l->n; i++)
        if (kbi_is(l->of[i].name, name)) return kbi_metric_value(&l->of[i]);
    return NAN;
}

// --- aggregation ---

// Returns the factor from a unit to seconds, bytes or hertz, or 0. *base gets the first letter after a prefix.
static double kbi_unit_factor(const char* unit, size_t n, char* base) {
    static const char* const names[] = { "second", "sec", "s", "bytes", "byte", "B", "hz" };
    static const char prefixes[] = "numKMGT";
    static const double factors[] = { 1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9, 1e12 };
    for (int i = 0; i < KBI_COUNT(names); i++) {
        size_t m = strlen(names[i]);
        const char* prefix = n == m + 1 ? strchr(prefixes, *unit) : NULL;
        if ((n != m && !prefix) || strncmp(unit + n - m, names[i], m) != 0) continue;
        *base = *names[i];
        return prefix ? factors[prefix - prefixes] : 1;
    }
    return 0;
}

// Returns the factor that converts a unit to its base unit, and stores the base unit in out: ns, byte or hz, or
// one of them per second for a rate. Any other unit is its own base unit.
static double kbi_unit_base(const char* unit, char out[40]) {
    size_t n = strcspn(unit, "/");
    char base = 0, below = 0;
    double factor = kbi_unit_factor(unit, n, &base), per = 1;
    if (unit[n]) per = kbi_unit_factor(unit + n + 1, strlen(unit + n + 1), &below);
    // A rate per thread or per block keeps its unit.
    if (unit[n] && below != 's') return snprintf(out, 40, "%.30s", unit), 1;
    snprintf(out, 40, "%.*s%s", base ? 4 : (int)KBI_MIN(n, (size_t)30),
             base == 's'   ? "ns"
             : base == 'h' ? "hz"
             : base        ? "byte"
                           : unit,
             unit[n] ? "/s" : "");
    return (base ? factor : 1) / per * (base == 's' ? 1e9 : 1);
}

static bool kbi_ends(const char* s, const char* end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

// Counts, times and bytes are summed. Of each launch parameter (launch__), the largest value is kept. Shares and
// rates are averaged, weighted by the duration of the launch.
static void kbi_metric_add(kbi_launch_list* l, kbi_launches* to, const char* name, const char* unit, double x,
                           double ns) {
    char base[40];
    int at = 0;
    x *= kbi_unit_base(unit, base);
    while (at < to->n && !kbi_is(to->of[at].name, name)) at++;
    bool first = at == to->n, whole = !strchr(name, '.') && (kbi_is(base, "ns") || kbi_is(base, "byte"));
    if (first && to->n++ % 16 == 0) to->of = KBI_GROW(to->of, kbi_metric, to->n + 15);
    kbi_metric* m = &to->of[at];
    if (first) {
        m->name = kbi_arena_text(&l->text, name);
        m->unit = kbi_arena_text(&l->text, base);
        m->sum = m->weight = 0;
    }
    if (kbi_ends(name, ".sum") || whole || strncmp(name, "nsys.", 5) == 0)
        m->sum += x;
    else if (kbi_ends(name, ".max") || strncmp(name, "launch__", 8) == 0)
        m->sum = first ? x : KBI_MAX(m->sum, x);
    else if (kbi_ends(name, ".min"))
        m->sum = first ? x : KBI_MIN(m->sum, x);
    else
        m->sum += x * ns, m->weight += ns;
}

static int kbi_launches_find(kbi_launch_list* l, int number, const char* kernel, const char* grid,
                             const char* block) {
    for (int i = l->n - 1; i >= 0 && l->of[i].number == number; i--)
        if (kbi_same_text(l->of[i].kernel, kernel) && kbi_same_text(l->of[i].grid, grid) &&
            kbi_same_text(l->of[i].block, block))
            return i;
    if (l->n % 16 == 0) l->of = KBI_GROW(l->of, kbi_launches, l->n + 16);
    kbi_launches* to = &l->of[l->n];
    memset(to, 0, sizeof *to);
    to->number = number;
    to->kernel = kbi_arena_text(&l->text, kernel);
    to->grid = kbi_arena_text(&l->text, grid);
    to->block = kbi_arena_text(&l->text, block);
    return l->n++;
}

// Parses a number as tools print it under LC_ALL=C, where a comma groups thousands. Returns false for other text,
// such as "n/a".
static bool kbi_tool_number(const char* s, double* out) {
    char text[64], *end;
    size_t n = 0;
    for (bool point = false; *s && n + 1 < sizeof text; s++) {
        point |= *s == '.';
        if (*s == ',' ? point || strspn(s + 1, "0123456789") != 3 : !strchr("0123456789.+-eE", *s)) return false;
        if (*s != ',') text[n++] = *s;
    }
    text[n] = 0;
    *out = kbi_real_of(text, &end);
    return n && !*s && !*end && end != text && kbi_finite(*out);
}

// --- CSV, parsed in place, one record at a time ---

typedef struct kbi_csv_reader {
    kbi_launch_list* to;
    char* at;
    char **cells, **head, **units; // cells of the current row, of the heading, and of the row with the units
    int n, size, n_head;
    int inside;     // index of the case whose start mark, but not end mark, was read; -1: none
    double ended;   // latest end of GPU work after the start mark, in ns; NaN before the first work
    kbi_metric* of; // metrics of the current launch, in the units of the CSV file
    int n_of, room;
    double ns;
} kbi_csv_reader;

static bool kbi_csv_next(kbi_csv_reader* r) {
    char *p = r->at, *to, end;
    r->n = 0;
    do {
        if (!*p && !r->n) return false;
        if (r->n == r->size) {
            r->size = 2 * r->size + 32;
            r->cells = KBI_GROW(r->cells, char*, r->size);
        }
        bool quoted = *p == '"';
        r->cells[r->n++] = to = p += quoted;
        while (*p && (quoted ? *p != '"' || p[1] == '"' : !strchr(",\r\n", *p)))
            p += quoted && *p == '"', *to++ = *p++;
        if (quoted) p += strcspn(p, ",\n");
        end = *p;
        *to = 0;
        p += end != 0;
    } while (end == ',');
    r->at = p;
    return true;
}

// Returns the index of the column whose heading is `name`, alone or followed by a unit in parentheses; -1: none.
static int kbi_csv_column(const kbi_csv_reader* r, const char* name) {
    size_t n = strlen(name);
    for (int i = 0; i < r->n_head; i++)
        if (strncmp(r->head[i], name, n) == 0 && (!r->head[i][n] || strchr(" (", r->head[i][n]))) return i;
    return -1;
}

static char* kbi_csv_cell(const kbi_csv_reader* r, const char* name) { // "": no such column
    static char none[1] = "";
    int i = kbi_csv_column(r, name);
    return i >= 0 && i < r->n ? r->cells[i] : none;
}

static char** kbi_csv_row_copy(char** old, const kbi_csv_reader* r) {
    old = KBI_GROW(old, char*, r->n);
    memcpy(old, r->cells, sizeof(char*) * (size_t)r->n);
    return old;
}

// Returns the number in a column whose heading has a unit, for example "Duration (ns)"; NaN: none.
static double kbi_column_number(const kbi_csv_reader* r, const char* name) {
    char unit[40], base[40];
    double x;
    int i = kbi_csv_column(r, name);
    if (i < 0 || i >= r->n || !kbi_tool_number(r->cells[i], &x)) return NAN;
    const char* open = strchr(r->head[i], '(');
    snprintf(unit, sizeof unit, "%.*s", open ? (int)KBI_MIN(strcspn(open + 1, ")"), (size_t)30) : 0,
             open ? open + 1 : "");
    return x * kbi_unit_base(unit, base);
}

// --- launches ---

// A mark is a launch of kbi_null. The grid size of a mark encodes the index n of the case: 2 n + 1 marks the start
// of the timed block, 2 n + 2 marks its end.
static void kbi_csv_mark(kbi_csv_reader* r, const char* grid_text) {
    char digits[16];
    size_t n = 0;
    const char *p = grid_text, *end = strstr(p, ", "); // in (1,025, 1, 1), the first comma groups thousands
    for (end = end ? end : p + strcspn(p, ","); p < end && n + 1 < sizeof digits; p++)
        if (isdigit((unsigned char)*p)) digits[n++] = *p;
    digits[n] = 0;
    int grid = (int)strtol(digits, NULL, 10);
    if (grid % 2 == 0 && r->inside >= 0 && r->inside == grid / 2 - 1)
        r->to->of[kbi_launches_find(r->to, r->inside, NULL, NULL, NULL)].whole = true;
    r->inside = grid % 2 ? grid / 2 : -1;
    if (r->inside >= 0) kbi_launches_find(r->to, r->inside, NULL, NULL, NULL);
    r->ended = NAN;
}

static void kbi_csv_launch_end(kbi_csv_reader* r, const char* kernel, const char* grid, const char* block) {
    bool mark = strncmp(kernel, "kbi_null", 8) == 0;
    if (mark) kbi_csv_mark(r, grid);
    for (int k = 0; k < 2 && !mark && r->inside >= 0; k++) {
        int at = k ? kbi_launches_find(r->to, r->inside, kernel, grid, block)
                   : kbi_launches_find(r->to, r->inside, NULL, NULL, NULL);
        kbi_launches* l = &r->to->of[at];
        if (r->ns > 0) l->ns += r->ns;
        l->calls++;
        for (int i = 0; i < r->n_of; i++)
            kbi_metric_add(r->to, l, r->of[i].name, r->of[i].unit, r->of[i].sum, r->ns > 0 ? r->ns : 1);
    }
    r->n_of = 0;
    r->ns = 0;
}

// `name` and `unit` must stay valid until the whole file is read.
static void kbi_csv_metric(kbi_csv_reader* r, const char* name, const char* unit, double x) {
    char base[40];
    if (kbi_is(name, "gpu__time_duration.sum")) r->ns = x * kbi_unit_base(unit, base);
    if (r->n_of == r->room) {
        r->room = 2 * r->room + 32;
        r->of = KBI_GROW(r->of, kbi_metric, r->room);
    }
    kbi_metric m = { name, unit, x, 0 };
    r->of[r->n_of++] = m;
}

// --- ncu: one row per launch, with a row of units above (--page raw) ---

static bool kbi_ncu_metric(const char* name) {
    return strstr(name, "__") && strncmp(name, "device__", 8) != 0 && !strchr(name, ':');
}

static void kbi_ncu_record(kbi_csv_reader* r) {
    const char* id = kbi_csv_cell(r, "ID");
    double x;
    if (kbi_is(r->cells[0], "ID")) {
        r->head = kbi_csv_row_copy(r->head, r);
        r->n_head = r->n;
        KBENCH_FREE(r->units);
        r->units = NULL;
    } else if (!*id && !r->units && r->n == r->n_head) {
        r->units = kbi_csv_row_copy(r->units, r);
    } else if (isdigit((unsigned char)*id) && r->n > kbi_csv_column(r, "Grid Size")) {
        for (int i = 0; i < r->n && i < r->n_head; i++)
            if (kbi_ncu_metric(r->head[i]) && kbi_tool_number(r->cells[i], &x))
                kbi_csv_metric(r, r->head[i], r->units ? r->units[i] : "", x);
        kbi_csv_launch_end(r, kbi_csv_cell(r, "Kernel Name"), kbi_csv_cell(r, "Grid Size"),
                           kbi_csv_cell(r, "Block Size"));
    }
}

// --- nsys: one row per launch, copy or memset, in the order of their start ---

static void kbi_nsys_record(kbi_csv_reader* r) {
    static const char* const shape[2][3] = { { "GrdX", "GrdY", "GrdZ" }, { "BlkX", "BlkY", "BlkZ" } };
    char of[2][80], *name = kbi_csv_cell(r, "Name");
    double start = kbi_column_number(r, "Start"), ns = kbi_column_number(r, "Duration"),
           bytes = kbi_column_number(r, "Bytes");
    double registers = kbi_column_number(r, "Reg/Trd");
    bool memory = strncmp(name, "[CUDA mem", 9) == 0;
    if (!*name || !kbi_finite(start) || !kbi_finite(ns)) return;
    for (int k = 0; k < 2; k++)
        snprintf(of[k], sizeof of[k], "(%.20s, %.20s, %.20s)", kbi_csv_cell(r, shape[k][0]),
                 kbi_csv_cell(r, shape[k][1]), kbi_csv_cell(r, shape[k][2]));
    if (memory) of[0][0] = of[1][0] = 0;
    r->ns = ns;
    kbi_csv_metric(r, memory ? "nsys.memory_operations" : "nsys.kernels", "", 1);
    kbi_csv_metric(r, memory ? "nsys.memory_ns" : "nsys.kernel_ns", "ns", ns);
    if (memory && kbi_finite(bytes)) kbi_csv_metric(r, "nsys.memory_bytes", "byte", bytes);
    if (kbi_finite(registers)) kbi_csv_metric(r, "launch__registers_per_thread", "register/thread", registers);
    int before = r->inside;
    kbi_csv_launch_end(r, name, of[0], of[1]);
    if (r->inside < 0 || r->inside != before) return;
    // extends the time of the case, which includes gaps, to the end of the work in this row
    double end = KBI_MAX(kbi_finite(r->ended) ? r->ended : start, start + ns);
    double more = end - (kbi_finite(r->ended) ? r->ended : start);
    kbi_launches* all = &r->to->of[kbi_launches_find(r->to, r->inside, NULL, NULL, NULL)];
    kbi_metric_add(r->to, all, "nsys.span_ns", "ns", more, 1);
    r->ended = end;
}

// Returns false if `text` has another format.
static bool kbi_tool_csv_read(kbi_launch_list* to, const char* text) {
    static const char* const heads[] = { "\"ID\"", "Start" };
    kbi_csv_reader r;
    const char* begin = NULL;
    int nsys = 0;
    for (const char* line = text; line && *line && !begin;) {
        for (int i = 0; i < KBI_COUNT(heads) && !begin; i++)
            if (strncmp(line, heads[i], strlen(heads[i])) == 0) begin = line, nsys = i;
        line = strchr(line, '\n');
        if (line) line++;
    }
    if (!begin) return false;
    memset(&r, 0, sizeof r);
    r.to = to;
    r.inside = -1;
    char* copy = r.at = kbi_keep_text(begin);
    for (bool head = true; kbi_csv_next(&r); head = false) {
        if (head) r.head = kbi_csv_row_copy(r.head, &r), r.n_head = r.n;
        if (!head && nsys) kbi_nsys_record(&r);
        if (!head && !nsys) kbi_ncu_record(&r);
        // skips lines that profilers and the profiled program print between rows
        for (r.at += strspn(r.at, " "); *r.at && *r.at != '"' && !isdigit((unsigned char)*r.at);)
            r.at += strcspn(r.at, "\n"), r.at += *r.at == '\n', r.at += strspn(r.at, " ");
    }
    KBENCH_FREE(copy);
    KBENCH_FREE(r.units);
    KBENCH_FREE(r.head);
    KBENCH_FREE(r.cells);
    KBENCH_FREE(r.of);
    return true;
}

static void kbi_record_launches(kb_result* r, const kbi_launch_list* launches, int number) {
    const kbi_launches* l = kbi_launches_total(launches, number);
    if (!l || !l->n) return;
    int64_t n = r->counters.n, u = r->counter_units.n;
    kb_param* values = KBI_ARRAY(r->owned, kb_param, n + l->n);
    kb_param* units = KBI_ARRAY(r->owned, kb_param, u + l->n);
    if (n) memcpy(values, r->counters.of, sizeof(kb_param) * (size_t)n);
    if (u) memcpy(units, r->counter_units.of, sizeof(kb_param) * (size_t)u);
    for (const kbi_metric* m = l->of; m < l->of + l->n; m++) {
        if (kbi_finite(kbi_object_number(&r->counters, m->name))) continue;
        values[n].name = units[u].name = kbi_arena_text(r->owned, m->name);
        values[n].type = KB_AXIS_REALS;
        values[n++].r = kbi_metric_value(m);
        units[u].type = KB_AXIS_STRINGS;
        units[u].s = kbi_arena_text(r->owned, m->unit);
        u += *m->unit != 0;
    }
    r->counters.of = values, r->counters.n = n;
    r->counter_units.of = units, r->counter_units.n = u;
    double x = kbi_launches_value(l, "sm__warps_active.avg.pct_of_peak_sustained_active");
    if (kbi_finite(x)) r->occupancy_achieved = x;
}

/*-----------------------------------------------------------------
  >>profile     prints a profile below the case's row of the table, or writes it as a timeline.
-----------------------------------------------------------------*/

enum { KBI_PROFILE_ROWS = 10 };

static void kbi_profile_wrap(kbi_text* t, int indent, int width, const char* text) {
    kbi_table table;
    memset(&table, 0, sizeof table);
    table.how.width = width;
    table.text = *t;
    kbi_table_wrap(&table, indent, text);
    *t = table.text;
    kbi_arena_free(&table.scratch);
}

static void kbi_profile_shape(kbi_text* t, const kbi_event* e, int width) {
    char bytes[40];
    kbi_text s = KBI_BLANK;
    if (e->kind == KBI_EVENT_KERNEL) {
        kbi_putf(&s, "%dx%dx%d blocks of %dx%dx%d, ", e->grid[0], e->grid[1], e->grid[2], e->block[0], e->block[1],
                 e->block[2]);
        if (e->cluster[0] * e->cluster[1] * e->cluster[2] > 1)
            kbi_putf(&s, "clusters of %dx%dx%d, ", e->cluster[0], e->cluster[1], e->cluster[2]);
        kbi_putf(&s, "%d registers, shared %s", e->registers, kbi_show_bytes(e->shared, bytes));
        if (e->local) kbi_putf(&s, ", local %s", kbi_show_bytes(e->local, bytes));
        if (e->limit)
            kbi_putf(&s, ", %.0f%% of the warps (limit: %s)", (double)e->occupancy, kbi_limit_names[e->limit]);
    } else if (e->bytes) {
        kbi_putf(&s, "%s each", kbi_show_bytes((double)e->bytes, bytes));
    }
    if (s.n) kbi_profile_wrap(t, 8, width, s.s);
    kbi_text_free(&s);
}

static void kbi_profile_sums(kbi_text* t, const kbi_inside* in, const char* title, const kbi_sum* sums, int n,
                             double all, int width) {
    int room = KBI_MAX(width - 42, 16);
    char a[40], b[40], share[40];
    double rest = 0;
    if (!n) return;
    kbi_putf(t, "    %-*s %6s %10s %6s %10s", room + 2, title, "calls", "total", "share", "mean");
    kbi_puts(t, "\n");
    for (int i = 0; i < n; i++) {
        const kbi_sum* s = &sums[i];
        if (i >= KBI_PROFILE_ROWS) rest += s->total;
        if (i >= KBI_PROFILE_ROWS) continue;
        kbi_text clean = KBI_BLANK, name = KBI_BLANK;
        kbi_clean(&clean, kbi_event_name(in, s->first)), kbi_put(&clean, "", 0);
        kbi_cut(&name, clean.s, room);
        kbi_putf(t, "      %s%*s", name.s, room - kbi_width(name.s, name.n), "");
        kbi_text_free(&clean), kbi_text_free(&name);
        kbi_putf(t, " %6lld %10s %6s %10s", (long long)s->calls, kbi_show_time(s->total * 1e-6, a),
                 kbi_show_percent(all > 0 ? s->total / all : (double)NAN, share),
                 kbi_show_time(s->total / (double)s->calls * 1e-6, b));
        kbi_puts(t, "\n");
        kbi_profile_shape(t, s->first, width);
    }
    if (n > KBI_PROFILE_ROWS)
        kbi_putf(t, "      and %d others, %s\n", n - KBI_PROFILE_ROWS, kbi_show_percent(rest / all, share));
}

static void kbi_profile_show(kbi_text* t, const kb_result* r, int width) {
    const kbi_inside* in = r->inside;
    kbi_profile p;
    char title[64], a[40], b[40], c[40];
    if (!in || !in->events) return;
    kbi_profile_fill(&p, in);
    snprintf(title, sizeof title, "on the GPU in %d runs", in->runs);
    kbi_profile_sums(t, in, title, p.device, p.n_device, p.device_ns, width);
    kbi_profile_sums(t, in, "calls on the host", p.host, p.n_host, p.host_ns, width);
    kbi_text s = KBI_BLANK;
    kbi_putf(&s, "per run: %s from first start to last end, ", kbi_show_time(p.span * 1e-6, a));
    if (p.gaps > 0)
        kbi_putf(&s, "%s of it busy, %s in %s gaps", kbi_show_percent(p.busy / p.span, b),
                 kbi_show_time(p.gap_ns * 1e-6, c), kbi_digits(p.gaps, 2, title));
    else
        kbi_puts(&s, "no gaps");
    kbi_putf(&s, "; host time: %s per run", kbi_show_time(p.run * 1e-6, a));
    if (kbi_finite(p.launch_ns)) kbi_putf(&s, ", %s per launch", kbi_show_time(p.launch_ns * 1e-6, a));
    if (p.overlap > 0) kbi_putf(&s, "; %s of the copy time overlaps a kernel", kbi_show_percent(p.overlap, a));
    if (kbi_finite(p.overlap) && !(p.overlap > 0)) kbi_puts(&s, "; no copy overlaps a kernel");
    if (p.concurrent > 0)
        kbi_putf(&s, "; kernels or copies overlap %s of the busy time", kbi_show_percent(p.concurrent, a));
    kbi_profile_wrap(t, 4, width, s.s);
    kbi_text_free(&s);
    if (in->dropped) kbi_putf(t, "    %lld records were dropped\n", (long long)in->dropped);
    kbi_profile_free(&p);
}

// --- the timeline: Chrome's trace events ---

enum { KBI_TRACE_HOST = 1000, KBI_TRACE_LANES = 8, KBI_TRACE_ROWS = 256 };

typedef struct kbi_trace_row { // a stream or thread in the timeline; overlapping events use separate sub-rows
    int process;
    uint32_t lane;
    int64_t until[KBI_TRACE_LANES]; // end of the last event in each sub-row, in ns
} kbi_trace_row;

typedef struct kbi_tracing {
    kbi_text* out;
    int64_t zero; // origin of the time axis, in ns
    int64_t arrows;
    kbi_trace_row rows[KBI_TRACE_ROWS];
    int n_rows;
    bool any;
} kbi_tracing;

static void kbi_trace_begin(kbi_tracing* t, char phase, int process, int64_t line) {
    kbi_putf(t->out, "%s{\"ph\":\"%c\",\"pid\":%d,\"tid\":%lld", t->any ? ",\n" : "\n", phase, process,
             (long long)line);
    t->any = true;
}

static void kbi_trace_time(kbi_tracing* t, const char* key, int64_t ns) { // prints microseconds in any locale
    kbi_putf(t->out, ",\"%s\":%lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

static void kbi_trace_text(kbi_tracing* t, const char* key, const char* text) {
    kbi_putf(t->out, ",\"%s\":", key);
    kbi_json_text(t->out, text);
}

static void kbi_trace_name(kbi_tracing* t, const char* what, int process, int64_t line, const char* name) {
    kbi_trace_begin(t, 'M', process, line);
    kbi_trace_text(t, "name", what);
    kbi_puts(t->out, ",\"args\":{\"name\":");
    kbi_json_text(t->out, name);
    kbi_puts(t->out, "}}");
}

// Returns a sub-row in which the event overlaps no other event. Even events of one stream may overlap.
static int64_t kbi_trace_line(kbi_tracing* t, int process, uint32_t lane, int64_t start, int64_t end) {
    char name[64];
    int i = 0, line = 0;
    while (i < t->n_rows && (t->rows[i].process != process || t->rows[i].lane != lane)) i++;
    if (i == t->n_rows && i == KBI_TRACE_ROWS) i--;
    kbi_trace_row* row = &t->rows[i];
    if (i == t->n_rows) {
        t->n_rows++;
        row->process = process, row->lane = lane;
        for (int k = 0; k < KBI_TRACE_LANES; k++) row->until[k] = INT64_MIN;
    }
    while (line < KBI_TRACE_LANES - 1 && row->until[line] > start) line++;
    if (row->until[line] == INT64_MIN) {
        const char* what = process < KBI_TRACE_HOST ? "stream" : lane ? "thread" : "block";
        snprintf(name, sizeof name, lane || process < KBI_TRACE_HOST ? "%s %u%s" : "%s", what, lane,
                 line ? ", overlapping events" : "");
        kbi_trace_name(t, "thread_name", process, (int64_t)i * KBI_TRACE_LANES + line + 1, name);
    }
    row->until[line] = KBI_MAX(row->until[line], end);
    return (int64_t)i * KBI_TRACE_LANES + line + 1;
}

static void kbi_trace_arrow(kbi_tracing* t, char phase, int process, int64_t line, int64_t at, int64_t id) {
    kbi_trace_begin(t, phase, process, line);
    kbi_puts(t->out, ",\"cat\":\"submits\",\"name\":\"submits\"");
    kbi_trace_time(t, "ts", at - t->zero);
    kbi_putf(t->out, ",\"id\":%lld%s}", (long long)id, phase == 'f' ? ",\"bp\":\"e\"" : "");
}

static void kbi_trace_arguments(kbi_tracing* t, const kb_result* r, const kbi_event* e) {
    kbi_puts(t->out, ",\"args\":{\"case\":");
    kbi_json_text(t->out, r->name);
    kbi_putf(t->out, ",\"run\":%d", e->run);
    if (e->kind == KBI_EVENT_KERNEL)
        kbi_putf(
            t->out,
            ",\"grid\":\"%dx%dx%d\",\"block\":\"%dx%dx%d\",\"registers\":%d,\"shared_bytes\":%d,\"local_bytes\":%d",
            e->grid[0], e->grid[1], e->grid[2], e->block[0], e->block[1], e->block[2], e->registers, e->shared,
            e->local);
    else if (kbi_event_on_device(e))
        kbi_putf(t->out, ",\"bytes\":%lld", (long long)e->bytes);
    kbi_puts(t->out, "}}");
}

static void kbi_trace_event(kbi_tracing* t, const kb_result* r, const kbi_event* e, int64_t* lines) {
    static const char* const kinds[] = { "block", "call", "kernel", "copy", "memset" };
    const kbi_inside* in = r->inside;
    const kbi_event* all = kbi_events_of(in);
    bool device = kbi_event_on_device(e);
    int process = device ? in->device : KBI_TRACE_HOST;
    int64_t line = kbi_trace_line(t, process, e->lane, e->start, e->end);
    const char* name = e->kind == KBI_EVENT_RUN ? r->name : kbi_event_name(in, e);
    lines[e - all] = line;
    kbi_trace_begin(t, 'X', process, line);
    kbi_trace_text(t, "cat", kinds[e->kind]);
    kbi_trace_text(t, "name", name ? name : "");
    kbi_trace_time(t, "ts", e->start - t->zero);
    kbi_trace_time(t, "dur", KBI_MAX(e->end - e->start, (int64_t)0));
    kbi_trace_arguments(t, r, e);
    if (!device || e->cause < 0) return;
    kbi_trace_arrow(t, 's', KBI_TRACE_HOST, lines[e->cause], all[e->cause].start, ++t->arrows);
    kbi_trace_arrow(t, 'f', process, line, e->start, t->arrows);
}

static void kbi_trace(kbi_text* out, const kb_result* records, int64_t n) {
    kbi_tracing t;
    int named[64];
    int n_named = 0;
    memset(&t, 0, sizeof t);
    t.out = out;
    t.zero = INT64_MAX;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; records[i].inside && k < records[i].inside->events; k++)
            t.zero = KBI_MIN(t.zero, kbi_events_of(records[i].inside)[k].start);
    kbi_puts(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"kbench " KBENCH_VERSION
                  "\"},\"traceEvents\":[");
    if (t.zero < INT64_MAX) kbi_trace_name(&t, "process_name", KBI_TRACE_HOST, 0, "host");
    for (int64_t i = 0; i < n; i++) {
        const kb_result* r = &records[i];
        char name[160];
        int k = 0;
        if (!r->inside || !r->inside->events) continue;
        while (k < n_named && named[k] != r->inside->device) k++;
        snprintf(name, sizeof name, "GPU %d: %.120s", r->inside->device, r->gpu ? r->gpu : "");
        if (k == n_named && k < KBI_COUNT(named))
            named[n_named++] = r->inside->device, kbi_trace_name(&t, "process_name", r->inside->device, 0, name);
        int64_t* lines = KBI_GROW(NULL, int64_t, r->inside->events);
        memset(lines, 0, sizeof(int64_t) * (size_t)r->inside->events);
        for (int64_t e = 0; e < r->inside->events; e++) kbi_trace_event(&t, r, &kbi_events_of(r->inside)[e], lines);
        KBENCH_FREE(lines);
    }
    kbi_puts(out, "\n]}\n");
}

/*-----------------------------------------------------------------
  >>machine_code the machine code of the longest kernel, from the CUDA Toolkit's disassembler.
-----------------------------------------------------------------*/

static bool kbi_tool_find(const char* name, char out[512]) {
    const char *path = getenv("PATH"), *home = getenv("CUDA_HOME");
    struct stat about;
    kbi_text all = KBI_BLANK;
    bool found = false;
    kbi_putf(&all, "%s:%s/bin:/usr/local/cuda/bin", path ? path : "", home ? home : "/usr/local/cuda");
    for (const char* p = all.s; *p && !found; p += strcspn(p, ":"), p += *p == ':') {
        snprintf(out, 512, "%.*s/%s", (int)KBI_MIN(strcspn(p, ":"), (size_t)400), p, name);
        found = *p != ':' && stat(out, &about) == 0 && S_ISREG(about.st_mode) && access(out, X_OK) == 0;
    }
    kbi_text_free(&all);
    return found;
}

// Returns false if a name has characters that a shell would interpret.
static bool kbi_code_command(kbi_text* command, const char* tool, const char* symbol) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    char* self = realpath("/proc/self/exe", NULL);
    bool good = self && !symbol[strspn(symbol, letters)] && !strchr(tool, '\'') && !strchr(self, '\'');
    if (good) kbi_putf(command, "'%s' -sass -fun %s '%s' 2>/dev/null", tool, symbol, self);
    free(self); // realpath used malloc, so KBENCH_FREE must not free it
    return good;
}

static void kbi_code_show(const kb_result* r) {
    FILE* out = kbi_control.run.table.how.out;
    kbi_profile p;
    char tool[512], line[512];
    kbi_text command = KBI_BLANK;
    const kbi_event* hot = NULL;
    int lines = 0;
    kbi_table_flush(&kbi_control.run.table);
    memset(&p, 0, sizeof p);
    if (r->inside && r->inside->events) kbi_profile_fill(&p, r->inside);
    for (int i = 0; i < p.n_device && !hot; i++)
        if (p.device[i].first->kind == KBI_EVENT_KERNEL) hot = p.device[i].first;
    bool here = kbi_tool_find("cuobjdump", tool);
    bool good = hot && here && kbi_code_command(&command, tool, kbi_texts_of(r->inside) + hot->symbol);
    FILE* f = good ? popen(command.s, "r") : NULL;
    for (bool on = false; f && kbi_get_line(line, (int)sizeof line, f);) {
        line[strcspn(line, "\r\n")] = 0;
        if (!on && (on = strstr(line, "Function :") != NULL))
            fputs("\n", out), kbi_print_line(out, "  machine code of %s", r->name);
        if (on) kbi_print_line(out, "    %s", line), lines++;
    }
    if (f) pclose(f);
    fflush(out);
    if (hot && !here)
        kbi_warn("--sass: cuobjdump is not found. Add the folder of cuobjdump (CUDA Toolkit) to PATH.");
    else if (hot && !lines)
        kbi_warn("--sass: %s is not in this program's file: it comes from a library, or was compiled at run time",
                 kbi_event_name(r->inside, hot));
    kbi_text_free(&command);
    kbi_profile_free(&p);
}

/*-----------------------------------------------------------------
  >>vendor      runs this program under ncu or nsys, which profile one run of each block.
-----------------------------------------------------------------*/

// In a hot case, the block first runs without profiling.
static void kbi_marked_call(kbi_run* run, int number) {
    run->call.marked = number;
    run->call.profile_runs = run->recipe->mode == KBI_COLD ? 1 : 2;
    kbi_make_call(run, KBI_PHASE_CHECK, KBI_PHASE_CHECK);
}

#define KBI_PROFILED "KBENCH_PROFILED" // path of the profiled program's progress file

// --- the profiled program: this program in another process ---

// Returns whether the profiled program reached its end. Sets *at to the index of the last case that the profiled
// program started; -1: none.
static bool kbi_progress_read(const char* path, int* at) {
    kbi_text text = KBI_BLANK;
    bool over = false;
    *at = -1;
    kbi_file_text(path, &text);
    for (const char* p = text.s ? text.s : ""; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        if (strncmp(p, "at ", 3) == 0)
            *at = (int)strtol(p + 3, NULL, 10);
        else
            over = true; // "done", or "no GPU"
    }
    kbi_text_free(&text);
    return over;
}

// Checks each case, and runs its block between two marks. Writes a progress file: a line such as "at 3" before
// each case, and "done" or "no GPU" at the end.
static int kbi_profiled_main(const kbi_options* o) {
    kbi_supervisor* s = &kbi_control.run;
    kbi_plan plan;
    const char* path = getenv(KBI_PROFILED);
    int file = kbi_open_file(path, O_WRONLY | O_CREAT | O_EXCL);
    FILE* f = file < 0 ? NULL : fdopen(file, "a");
    if (!f) return kbi_error("%s %s: %s", KBI_PROFILED, path, strerror(errno)), KBI_EXIT_USAGE;
    unsetenv(KBI_PROFILED); // programs that a benchmark starts are not profiled
    if (!kbi_options_pin(o) || !kbi_plan_here(&plan, o)) return KBI_EXIT_USAGE;
    kbi_recipe_of(&s->recipe, o);
    s->recipe.device = (int)o->gpu;
    s->recipe.looked = true;
    s->recipe.fresh = false;
    s->backend = kbi_backend_open(&s->recipe, &s->machine);
    bool here = s->machine.gpu_present || s->recipe.target == KBI_ON_OWN;
    kbi_run* run = KBI_GROW(NULL, kbi_run, 1);
    for (int i = 0; i < plan.n && here; i++) {
        if (!kbi_runs_here(s, &plan.cases[i])) continue;
        fprintf(f, "at %d\n", i), fflush(f);
        kbi_run_init(run, s->backend, &s->machine, &s->recipe, &plan.cases[i]);
        kbi_check_call(run);
        if (run->m.status == KB_OK) kbi_marked_call(run, i);
        if (kbi_lost(run)) return KBI_EXIT_FAILED; // the error destroyed the CUDA context
    }
    KBENCH_FREE(run);
    fputs(here ? "done\n" : "no GPU\n", f);
    fclose(f);
    return KBI_EXIT_FINE;
}

// The files of an external profiler. nsys appends .nsys-rep and .sqlite to the name of its report.
enum { KBI_FILE_PROGRESS, KBI_FILE_CSV, KBI_FILE_OUTPUT, KBI_FILE_REPORT };
static const char* const kbi_vendor_file_names[] = { "progress",        "csv",          "output", "report",
                                                     "report.nsys-rep", "report.sqlite" };

typedef struct kbi_vendor {
    kbi_supervisor* s;
    const char *name, *report;
    char tool[512], folder[200], files[4][240];
    kbi_text command; // in shell syntax
    kbi_launch_list* launches;
} kbi_vendor;

enum { KBI_NCU, KBI_NSYS };
static const struct {
    const char *name, *what;
} kbi_vendors[] = { { "ncu", "Nsight Compute" }, { "nsys", "Nsight Systems" } };
static kbi_launch_list kbi_vendor_launches[KBI_COUNT(kbi_vendors)];

static bool kbi_vendor_available(int vendor) {
    char tool[512];
    const char* name = kbi_vendors[vendor].name;
    if (getenv(KBI_PROFILED)) return true; // the profiled program starts no profiler itself
    if (kbi_profiled())
        return kbi_error("--%s: this program already runs under a profiler, and a GPU allows only one", name), false;
    if (!kbi_tool_find(name, tool))
        return kbi_error("--%s: %s is neither in PATH nor in the CUDA Toolkit (CUDA_HOME). Install the "
                         "separate package NVIDIA %s.",
                         name, name, kbi_vendors[vendor].what),
               false;
    return true;
}

static void kbi_vendor_word(kbi_vendor* v, const char* word) {
    kbi_puts(&v->command, " "), kbi_put_quoted(&v->command, word);
}

static void kbi_vendor_self(kbi_vendor* v) {
    char** words = kbi_own_words(v->s->o);
    char* path = strchr(words[0], '/') ? NULL : realpath("/proc/self/exe", NULL);
    kbi_vendor_word(v, path ? path : words[0]);
    free(path);
    for (int i = 1; words[i]; i++) {
        size_t n = strcspn(words[i], "=");
        if ((n != 5 || strncmp(words[i], "--ncu", n) != 0) && (n != 6 || strncmp(words[i], "--nsys", n) != 0))
            kbi_vendor_word(v, words[i]);
    }
}

// Metrics of --ncu. GPUs from sm_75 on collect them in few passes. Metrics named launch__ need no pass.
#define KBI_NCU_METRICS                                                                                           \
    "gpu__time_duration.sum,dram__bytes.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed,lts__t_bytes.sum," \
    "l1tex__t_sector_hit_rate.pct,lts__t_sector_hit_rate.pct,sm__warps_active.avg.pct_of_peak_sustained_active,"  \
    "sm__maximum_warps_per_active_cycle_pct,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active,"      \
    "smsp__inst_executed.sum,smsp__sass_thread_inst_executed_op_fadd_pred_on.sum,"                                \
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum,smsp__sass_thread_inst_executed_op_ffma_pred_on.sum,"    \
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum,launch__registers_per_thread"

// ncu leaves the clocks as they are, and flushes the caches before each kernel of a cold case.
static void kbi_ncu_words(kbi_vendor* v) {
    const char* set = kbi_inspect_given.ncu;
    kbi_puts(&v->command, " --profile-from-start off --target-processes application-only --clock-control none");
    kbi_putf(&v->command, " --cache-control %s", v->s->recipe.mode == KBI_COLD ? "all" : "none");
    kbi_puts(&v->command, " --print-units base --page raw --csv --log-file");
    kbi_vendor_word(v, v->files[KBI_FILE_CSV]);
    kbi_vendor_word(v, !set || strstr(set, "__") ? "--metrics" : "--set");
    kbi_vendor_word(v, set ? set : KBI_NCU_METRICS);
}

// nsys traces the whole process; kbi_csv_launch_end later keeps only work between two marks.
static void kbi_nsys_words(kbi_vendor* v) {
    kbi_puts(&v->command, " profile --trace=cuda,nvtx --cuda-graph-trace=node --sample=none --cpuctxsw=none");
    kbi_puts(&v->command, " --force-overwrite=true --output");
    kbi_vendor_word(v, v->report);
}

// Exports single launches, because nsys can sum launches only over the whole process.
static void kbi_nsys_stats(kbi_vendor* v) {
    char file[300];
    snprintf(file, sizeof file, "%.280s.nsys-rep", v->report);
    v->command.n = 0;
    kbi_vendor_word(v, v->tool);
    kbi_puts(&v->command, " stats --format csv --force-export=true --report cuda_gpu_trace");
    kbi_vendor_word(v, file);
}

static int64_t kbi_size_of(const char* path) {
    struct stat about;
    return stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
}

static const double kbi_vendor_patience = 10; // multiplies --timeout: a case takes longer under a profiler

// Prints and runs the command, with its output in a file, and waits for it to end. Stops the command if its files
// do not grow for 10 times --timeout. Returns the status of waitpid; -1 if the command did not start or was
// stopped.
static int kbi_vendor_run(kbi_vendor* v, const char* output, bool profiled) {
    kbi_text script = KBI_BLANK, progress = KBI_BLANK;
    char shell[] = "/bin/sh", c[] = "-c";
    int status = -1;
    double limit = kbi_vendor_patience * v->s->o->timeout;
    if (profiled) kbi_putf(&progress, " %s=%s", KBI_PROFILED, v->files[KBI_FILE_PROGRESS]);
    kbi_warn("--%s: LC_ALL=C%s%s", v->name, progress.n ? progress.s : "", v->command.s);
    kbi_text_free(&progress);
    kbi_putf(&script, "exec%s", v->command.s);
    char* argv[] = { shell, c, script.s, NULL };
    fflush(NULL);
    pid_t parent = getpid(), process = fork(), ended = 0;
    if (process < 0) kbi_error("cannot start a process: %s", strerror(errno));
    if (process == 0) {
        setpgid(0, 0);
        if (profiled) setenv(KBI_PROFILED, v->files[KBI_FILE_PROGRESS], 1);
        setenv("LC_ALL", "C", 1);
        kbi_exec(argv, output, true, parent);
    }
    kbi_text_free(&script);
    if (process < 0) return -1;
    int64_t moved = kbi_now(), size = 0;
    bool stopped = false;
    while ((ended = waitpid(process, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        int64_t now = kbi_size_of(v->files[KBI_FILE_PROGRESS]) + kbi_size_of(output);
        if (now != size) size = now, moved = kbi_now();
        bool late = kbi_seconds_since(moved) > limit;
        if ((late || kbi_control.interrupted) && !stopped) kill(-process, SIGTERM), stopped = true, moved = kbi_now();
        if (stopped && kbi_seconds_since(moved) > 2) kill(-process, SIGKILL);
        kbi_readable(-1, 20);
    }
    return stopped ? -1 : status;
}

// --- error messages ---

static const struct {
    const char *sign, *cure; // text in the profiler's error message; cause and remedy
} kbi_vendor_errors[] = {
    { "ERR_NVGPUCTRPERM", "only an administrator may read the GPU's counters. Run as root, start the container with "
                          "--cap-add=SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0" },
    { "MIG", "this is a MIG instance that shares the counters with others. Use an instance with the whole GPU, or "
             "turn MIG off (nvidia-smi -mig 0)" },
    { "resource was unavailable",
      "another profiler uses the GPU's counters. End or pause that profiler (DCGM: dcgmi profile --pause)" },
    { "nsight-compute-lock", "the temporary folder has a lock of another user. Set TMPDIR to a folder of your own" },
    { "InterprocessLock", "the temporary folder has a lock of another user. Set TMPDIR to a folder of your own" },
    { "not supported on device", "this ncu cannot profile this GPU. Try a newer ncu; under WSL and on a "
                                 "virtual GPU, the host must allow profiling" },
    { "driver is not compatible", "the driver is too old for this ncu. Use the ncu of the driver's CUDA version" },
    { "nrecogni", // "unrecognised" or "unrecognized"
      "this version of the profiler does not know the options above. Update the profiler" },
};

static void kbi_vendor_explain(const kbi_vendor* v, int status) {
    kbi_text output = KBI_BLANK;
    const char *cure = NULL, *first = "", *last = "nothing";
    kbi_file_text(v->files[KBI_FILE_CSV], &output), kbi_puts(&output, "\n");
    kbi_file_text(v->files[KBI_FILE_OUTPUT], &output), kbi_puts(&output, "\n");
    for (char *line = output.s, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        bool wrong = strstr(line, "rror") || strstr(line, "ERR");
        for (int i = 0; i < KBI_COUNT(kbi_vendor_errors) && wrong && !cure; i++)
            if (strstr(line, kbi_vendor_errors[i].sign)) cure = kbi_vendor_errors[i].cure;
        if (wrong && !*first) first = line;
        if (*line) last = line;
    }
    if (cure)
        kbi_error("--%s: %s", v->name, cure);
    else if (status < 0)
        kbi_error("--%s: %s was stopped, because there was no progress in %g s; raise --timeout to wait longer",
                  v->name, v->name, kbi_vendor_patience * v->s->o->timeout);
    else
        kbi_error("--%s: %s failed (%s %d); its output: %.200s", v->name, v->name,
                  WIFSIGNALED(status) ? "signal" : "exit code",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), *first ? first : last);
    kbi_text_free(&output);
}

// The report of nsys is first exported as CSV.
static void kbi_vendor_read(kbi_vendor* v) {
    kbi_text csv = KBI_BLANK;
    bool nsys = kbi_is(v->name, "nsys");
    if (nsys) kbi_nsys_stats(v);
    if (nsys) kbi_vendor_run(v, v->files[KBI_FILE_CSV], false);
    if (kbi_file_text(v->files[KBI_FILE_CSV], &csv)) kbi_tool_csv_read(v->launches, csv.s);
    kbi_text_free(&csv);
}

// Returns false after a message if the profiler recorded no case.
static bool kbi_vendor_profile(kbi_vendor* v) {
    int at;
    kbi_vendor_word(v, v->tool);
    if (kbi_is(v->name, "ncu"))
        kbi_ncu_words(v);
    else
        kbi_nsys_words(v);
    kbi_vendor_self(v);
    int status = kbi_vendor_run(v, v->files[KBI_FILE_OUTPUT], true);
    if (kbi_control.interrupted) return true;
    kbi_vendor_read(v);
    bool over = kbi_progress_read(v->files[KBI_FILE_PROGRESS], &at);
    if (over && (at < 0 || (status == 0 && v->launches->n))) return true; // at < 0: no GPU
    if (over || at < 0) return kbi_vendor_explain(v, status), false;
    kbi_warn(
        "--%s: %s ended the program under %s, so the cases after it were not profiled; skip it with --exclude",
        v->name, v->s->plan->cases[at].name, v->name);
    return true;
}

static bool kbi_vendor_files(kbi_vendor* v) {
    const char *folder = getenv("TMPDIR"), *file = kbi_inspect_given.nsys;
    snprintf(v->folder, sizeof v->folder, "%.150s/kbench-%s-%ld", folder && *folder ? folder : "/tmp", v->name,
             (long)getpid());
    if (mkdir(v->folder, 0700) != 0)
        return kbi_error("--%s: cannot create %s: %s", v->name, v->folder, strerror(errno)), false;
    for (int i = 0; i < KBI_COUNT(v->files); i++)
        snprintf(v->files[i], sizeof v->files[i], "%.200s/%s", v->folder, kbi_vendor_file_names[i]);
    v->report = v->files[KBI_FILE_REPORT];
    if (!file) return true;
    size_t n = strlen(file);
    v->report = kbi_arena_text_n(&v->launches->text, file, kbi_ends(file, ".nsys-rep") ? n - 9 : n);
    return true;
}

static void kbi_vendor_remove(const kbi_vendor* v) {
    char path[240];
    for (int i = 0; i < KBI_COUNT(kbi_vendor_file_names); i++) {
        snprintf(path, sizeof path, "%.200s/%s", v->folder, kbi_vendor_file_names[i]);
        unlink(path);
    }
    rmdir(v->folder);
}

// Runs an external profiler before the measurement, because records include its results.
static bool kbi_vendor_before(int vendor) {
    kbi_vendor v;
    memset(&v, 0, sizeof v);
    v.s = &kbi_control.run;
    v.name = kbi_vendors[vendor].name;
    v.launches = &kbi_vendor_launches[vendor];
    bool good = kbi_tool_find(v.name, v.tool) && kbi_vendor_files(&v);
    if (good) good = kbi_vendor_profile(&v), kbi_vendor_remove(&v);
    kbi_text_free(&v.command);
    return good;
}

static const struct {
    const char *title, *metric;
    double scale;
} kbi_tool_columns[] = { { "DRAM MB", "dram__bytes.sum", 1e-6 },
                         { "DRAM %", "dram__throughput.avg.pct_of_peak_sustained_elapsed", 1 },
                         { "L2 hit %", "lts__t_sector_hit_rate.pct", 1 },
                         { "L1 hit %", "l1tex__t_sector_hit_rate.pct", 1 },
                         { "occupied %", "sm__warps_active.avg.pct_of_peak_sustained_active", 1 },
                         { "tensor %", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 1 },
                         { "copied MB", "nsys.memory_bytes", 1e-6 },
                         { "registers", "launch__registers_per_thread", 1 } };

static void kbi_tool_row(kbi_table* t, const kbi_launches* l, const kbi_launches* all, unsigned wanted) {
    char out[40];
    snprintf(out, sizeof out, "%lld", (long long)l->calls);
    kbi_table_pad(t, 7, out);
    kbi_table_pad(t, 12, l->ns > 0 ? kbi_show_time(l->ns * 1e-6, out) : "-");
    kbi_table_pad(t, 8, all->ns > 0 ? kbi_show_percent(l->ns / all->ns, out) : "-");
    for (int c = 0; c < KBI_COUNT(kbi_tool_columns); c++)
        if (wanted >> c & 1)
            kbi_table_pad(
                t, (int)strlen(kbi_tool_columns[c].title) + 2,
                kbi_show(kbi_launches_value(l, kbi_tool_columns[c].metric) * kbi_tool_columns[c].scale, 4, out));
    kbi_puts(&t->text, "  "), kbi_cut(&t->text, kbi_table_clean(t, l->kernel), 100);
    if (l->grid && *l->grid) {
        kbi_puts(&t->text, "  "), kbi_clean(&t->text, l->grid);
        kbi_puts(&t->text, " x "), kbi_clean(&t->text, l->block ? l->block : "");
    }
    kbi_puts(&t->text, "\n");
}

static void kbi_tool_show(kbi_table* t, const kbi_plan* plan, const kbi_launch_list* launches, const char* tool) {
    unsigned wanted = 0; // bit c is set if column c of kbi_tool_columns has a value
    int cases = 0;
    for (int i = 0; i < launches->n; i++) cases += launches->of[i].whole;
    kbi_putf(&t->text, "\n%s, one run of each timed block: %d of %d cases\n", tool, cases, plan->n);
    kbi_table_pad(t, 7, "calls"), kbi_table_pad(t, 12, "time"), kbi_table_pad(t, 8, "share");
    for (int c = 0; c < KBI_COUNT(kbi_tool_columns); c++) {
        for (int i = 0; i < launches->n; i++)
            if (kbi_finite(kbi_launches_value(&launches->of[i], kbi_tool_columns[c].metric))) wanted |= 1u << c;
        if (wanted >> c & 1) kbi_table_pad(t, (int)strlen(kbi_tool_columns[c].title) + 2, kbi_tool_columns[c].title);
    }
    kbi_puts(&t->text, "  kernel, grid x block\n");
    for (int i = 0; i < plan->n; i++) {
        const kbi_launches *all = kbi_launches_total(launches, i), *end = launches->of + launches->n;
        const char* status = !all ? ": not profiled" : all->calls ? "" : ": no GPU work";
        kbi_clean(&t->text, plan->cases[i].name), kbi_putf(&t->text, "%s\n", status);
        for (const kbi_launches* l = all ? all + 1 : end; l < end && l->kernel; l++) kbi_tool_row(t, l, all, wanted);
    }
}

static void kbi_vendor_after(int vendor) {
    kbi_supervisor* s = &kbi_control.run;
    kbi_launch_list* launches = &kbi_vendor_launches[vendor];
    if (launches->n) kbi_tool_show(&s->table, s->plan, launches, kbi_vendors[vendor].name);
    kbi_launch_list_free(launches);
    kbi_table_flush(&s->table);
}

#define KBI_VENDOR(tool, vendor)                                                                            \
    static bool kbi_##tool##_ready(const char* value) { return (void)value, kbi_vendor_available(vendor); } \
    static bool kbi_##tool##_before(void) { return kbi_vendor_before(vendor); }                             \
    static void kbi_##tool##_after(void) { kbi_vendor_after(vendor); }                                      \
    static void kbi_##tool##_amend(kb_result* r, int64_t number) {                                          \
        kbi_record_launches(r, &kbi_vendor_launches[vendor], (int)number);                                  \
    }
KBI_VENDOR(ncu, KBI_NCU)
KBI_VENDOR(nsys, KBI_NSYS)

static int kbi_profiled_instead(const char* value) {
    return (void)value, getenv(KBI_PROFILED) ? kbi_profiled_main(kbi_options_now) : -1;
}

/*-----------------------------------------------------------------
  >>nvtx        NVTX ranges with the names of cases and phases.
-----------------------------------------------------------------*/

// NVTX ranges without the NVTX header, which takes a second to compile. NVTX_INJECTION64_PATH names a library of
// the profiler. The library calls kbi_nvtx_export and stores pointers to its functions in kbi_nvtx.slots. Without
// a profiler, a range costs one comparison.
enum { KBI_NVTX_CORE2 = 5 }; // the NVTX module that has the functions for ranges
enum { KBI_NVTX_START = 2, KBI_NVTX_END = 3, KBI_NVTX_REGISTER = 10, KBI_NVTX_DOMAIN = 12 };

enum { KBI_NVTX_MODULES = 7, KBI_NVTX_SLOTS = 16 };
typedef void (*kbi_nvtx_function)(void);
static struct {
    bool asked;
    void* domain; // NULL if no profiler is attached
    kbi_nvtx_function slots[KBI_NVTX_MODULES][KBI_NVTX_SLOTS], *table[KBI_NVTX_MODULES][KBI_NVTX_SLOTS + 1];
} kbi_nvtx;

typedef struct kbi_nvtx_event { // nvtxEventAttributes_t
    uint16_t version, size;
    uint32_t category;
    int32_t colour_is;
    uint32_t colour;
    int32_t payload_is, gap;
    uint64_t payload;
    int32_t message_is;
    const void* message;
} kbi_nvtx_event;

static int kbi_nvtx_module(int module, kbi_nvtx_function*** table, unsigned* size) {
    if (module < 1 || module >= KBI_NVTX_MODULES) return 0;
    for (int i = 0; i < KBI_NVTX_SLOTS; i++) kbi_nvtx.table[module][i] = &kbi_nvtx.slots[module][i];
    static const unsigned sizes[KBI_NVTX_MODULES] = { 0, 16, 9, 15, 7, 16, 7 };
    *table = kbi_nvtx.table[module];
    if (size) *size = sizes[module];
    return 1;
}

static void kbi_nvtx_version(uint32_t version) { (void)version; } // NVTX requires a version callback

static const void* kbi_nvtx_export(uint32_t id) {
    static const struct {
        size_t size;
        int (*module)(int, kbi_nvtx_function***, unsigned*);
    } functions = { sizeof functions, kbi_nvtx_module };
    static const struct {
        size_t size;
        uint32_t version, gap;
        void (*version_function)(uint32_t);
    } versions = { sizeof versions, 3, 0, kbi_nvtx_version };
    return id == 1 ? (const void*)&functions : id == 3 ? (const void*)&versions : NULL;
}

static void kbi_nvtx_open(void) {
    const char* path = getenv("NVTX_INJECTION64_PATH");
    void* library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*init)(const void* (*)(uint32_t)) = NULL;
    void* (*domain)(const char*) = NULL;
    kbi_nvtx.asked = true;
    if (library) kbi_find(library, "InitializeInjectionNvtx2", &init);
    if (!init || !init(kbi_nvtx_export)) return;
    memcpy(&domain, &kbi_nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_DOMAIN], sizeof domain);
    if (domain) kbi_nvtx.domain = domain("kbench");
}

// Ends a range and begins a range named `text`. Ranges may overlap, because implementations alternate. Blanks
// replace the characters / [ ] * + , @ in the name, which profilers would interpret.
static void kbi_nvtx_show(uint64_t* range, const char* text, const char* category) {
    uint64_t (*start)(void*, const kbi_nvtx_event*);
    void (*end)(void*, uint64_t);
    void* (*enlist)(void*, const char*);
    char name[512];
    kbi_nvtx_event e;
    if (!kbi_nvtx.asked) kbi_nvtx_open();
    memcpy(&start, &kbi_nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_START], sizeof start);
    memcpy(&end, &kbi_nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_END], sizeof end);
    memcpy(&enlist, &kbi_nvtx.slots[KBI_NVTX_CORE2][KBI_NVTX_REGISTER], sizeof enlist);
    if (*range && end) end(kbi_nvtx.domain, *range);
    *range = 0;
    if (!kbi_nvtx.domain || !start || !text) return;
    snprintf(name, sizeof name, "%s", text);
    for (char* p = name; (p = strpbrk(p, "@/[]*+,")) != NULL;) *p = ' ';
    memset(&e, 0, sizeof e);
    e.version = 3;
    e.size = sizeof e;
    e.colour_is = 1;
    e.colour = 0xff404040u | ((uint32_t)kbi_hash(14695981039346656037u, category) & 0xbfbfbfu);
    e.message = enlist ? enlist(kbi_nvtx.domain, name) : NULL;
    e.message_is = e.message ? 3 : 1;
    if (!e.message) e.message = name;
    *range = start(kbi_nvtx.domain, &e);
}

/*-----------------------------------------------------------------
  >>registered  registers the add-on's instruments and outputs.
-----------------------------------------------------------------*/

static struct { // outputs without an option are always active
    kb_option_set options;
    kb_instrument nvtx, energy, activity, counters, host, ncu, nsys;
    kb_output profile, sass, profiled, trace;
} kbi_inspect_parts;

#if KBI_CUDA
static bool kbi_activity_wanted(const char* value) { // --profile, --trace and --sass need activity records
    (void)value;
    kbi_inspect_parts.activity.on = kbi_inspect_given.on[KBI_INSPECT_profile] ||
                                    kbi_inspect_given.on[KBI_INSPECT_trace] || kbi_inspect_given.on[KBI_INSPECT_sass];
    return true;
}

// Without --counters, the energy is final. With --counters, kbi_judge_inside stores it after the test of the
// eviction.
static void kbi_judge_energy_alone(kb_result* r, kbi_inside* in, const kbi_machine* machine) {
    if (!kbi_inspect_given.on[KBI_INSPECT_counters]) kbi_judge_energy(r, in, machine);
}
#endif

KBI_CONSTRUCTOR static void kbi_inspect_register(void) {
    kb_option_set* set = &kbi_inspect_parts.options;
    kb_instrument* i;
    kb_output* o;
    set->options = kbi_inspect_rows, set->count = KBI_INSPECT_COUNT;
    set->values = &kbi_inspect_given, set->given = kbi_inspect_given.on;
    set->start = kbi_inspect_start, set->agree = kbi_inspect_agree;
    kb_add_options(set);
    i = &kbi_inspect_parts.nvtx, i->range = kbi_nvtx_show;
    kb_add_instrument(i);
#if KBI_CUDA
    i = &kbi_inspect_parts.energy, i->option = "energy", i->seconds = 3;
    i->open = kbi_energy_open, i->begin = kbi_energy_begin, i->end = kbi_energy_end, i->close = kbi_energy_close;
    i->judge = kbi_judge_energy_alone;
    kb_add_instrument(i);
    i = &kbi_inspect_parts.activity, i->ready = kbi_activity_wanted;
    i->open = kbi_activity_open, i->begin = kbi_activity_begin, i->end = kbi_activity_end;
    i->close = kbi_activity_close;
    kb_add_instrument(i);
    i = &kbi_inspect_parts.counters, i->option = "counters", i->machine = kbi_measure_counted_cold;
    i->open = kbi_counters_open, i->begin = kbi_counters_begin, i->end = kbi_counters_end;
    i->close = kbi_counters_close;
    kb_add_instrument(i);
#endif
    i = &kbi_inspect_parts.host, i->option = "counters", i->host = true, i->judge = kbi_judge_inside;
    i->open = kbi_perf_open, i->begin = kbi_perf_begin, i->end = kbi_perf_end, i->close = kbi_perf_close;
    kb_add_instrument(i);
    i = &kbi_inspect_parts.ncu, i->option = "ncu", i->ready = kbi_ncu_ready;
    i->before = kbi_ncu_before, i->amend = kbi_ncu_amend, i->after = kbi_ncu_after;
    kb_add_instrument(i);
    i = &kbi_inspect_parts.nsys, i->option = "nsys", i->ready = kbi_nsys_ready;
    i->before = kbi_nsys_before, i->amend = kbi_nsys_amend, i->after = kbi_nsys_after;
    kb_add_instrument(i);
    o = &kbi_inspect_parts.profile, o->option = "profile", o->below = kbi_profile_show, kb_add_output(o);
    o = &kbi_inspect_parts.sass, o->option = "sass", o->each = kbi_code_show, kb_add_output(o);
    o = &kbi_inspect_parts.profiled, o->instead = kbi_profiled_instead, kb_add_output(o);
    o = &kbi_inspect_parts.trace, o->option = "trace", o->fill = kbi_trace, o->lines = 1;
    o->begins = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"kbench ";
    kb_add_output(o);
}

KBI_CODE_END
#endif // KBENCH_IMPLEMENTED
#endif // KBENCH_INSPECT_H
