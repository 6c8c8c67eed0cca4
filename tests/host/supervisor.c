// SPDX-License-Identifier: MIT OR Unlicense
// Tests the supervisor process without real workers. The supervisor must parse the messages of a worker in pieces
// of any size, and find the case that killed a worker.
// a program of its own: this test replaces functions of the C library.
#include "test.h"
#include "guarded.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static int waited; // total waiting time, in ms, that the test simulates instead of waiting
static int played_poll(struct pollfd* p, nfds_t n, int milliseconds) {
    return p->fd < 0 ? (waited += milliseconds, 0) : poll(p, n, milliseconds);
}
// Replaces kill(), so that a faulty supervisor cannot kill all processes of the user (-1) or the init process (1).
static int played_kill(pid_t process, int number) {
    return process > 1 || process < -1 ? kill(process, number) : (errno = ESRCH, -1);
}
#define poll played_poll
#define kill played_kill
#define KIT_WITHOUT_ADDONS
#include "kit.h"
#undef poll
#undef kill

enum { FIRST = 5, CASES = 3 };

static kb_entry entry;
static kbi_case cases[FIRST + CASES];
static kbi_plan plan;
static kbi_options options;
static kbi_measured measured[CASES];
static int64_t spent_ns[CASES];
static char wanted[CASES];
static kbi_verdict verdicts[CASES];

static kbi_supervisor* fresh(void) {
    static kbi_supervisor s;
    for (int i = 0; i < CASES; i++) kbi_measured_free(&measured[i]);
    memset(&s, 0, sizeof s), memset(measured, 0, sizeof measured), memset(spent_ns, 0, sizeof spent_ns);
    for (int i = 0; i < CASES; i++) wanted[i] = true, verdicts[i].flag = -1;
    s.group.verdicts = verdicts;
    entry.operation = entry.implementation = "op";
    for (int i = 0; i < FIRST + CASES; i++) cases[i].entry = &entry, cases[i].name = "op/impl=op";
    plan.cases = cases, plan.n = plan.n_all = FIRST + CASES;
    kbi_options_default(&options);
    s.plan = &plan, s.o = &options, s.worker.first = -1, s.group.current = -1, s.isolated = true;
    s.group.first = FIRST, s.group.n = CASES, s.group.m = measured, s.group.spent_ns = spent_ns, s.group.wanted = wanted;
    return &s;
}

static pid_t child(int code, int by_signal) {
    pid_t process = fork();
    if (process == 0) {
        setpgid(0, 0);
        if (by_signal) raise(by_signal);
        _exit(code);
    }
    return process;
}

// --- messages that a worker may send ---

static void test_possible(void) {
    kbi_supervisor* s = fresh();
    static kbi_inside* found[CASES];
    const uint32_t one = (uint32_t)sizeof(kbi_measured), inside = (uint32_t)sizeof(kbi_inside);
    const struct {
        int type, index;
        uint64_t size;
        // whether the message is valid while the worker measures cases (measuring) or profiles cases (looking)
        bool measuring, looking;
    } rows[] = { { KBI_HELLO, 0, sizeof(kbi_machine), true, true },
                 { KBI_HELLO, 0, sizeof(kbi_machine) - 1, false, false },
                 { KBI_ENTER, FIRST, 0, true, true },
                 { KBI_ENTER, FIRST + CASES - 1, 0, true, true },
                 { KBI_ENTER, FIRST + 1, 0, false, false }, // the supervisor did not request this case
                 { KBI_ENTER, FIRST - 1, 0, false, false },
                 { KBI_ENTER, FIRST + CASES, 0, false, false },
                 { KBI_ENTER, FIRST, 1, false, false },
                 { KBI_BEAT, 1, 0, true, true },
                 { KBI_BEAT, 1, 8, false, false },
                 { KBI_DONE, 0, 0, true, true },
                 { KBI_DONE, 0, 1, false, false },
                 { KBI_RESULT, FIRST, one, true, false },
                 { KBI_RESULT, FIRST, one - 1, false, false },
                 { KBI_RESULT, FIRST, KBI_MESSAGE_LIMIT, true, false },
                 { KBI_RESULT, FIRST, (uint64_t)KBI_MESSAGE_LIMIT + 1, false, false },
                 { KBI_RESULT, FIRST + 1, one, false, false },
                 { KBI_FOUND, FIRST, inside, false, true },
                 { KBI_FOUND, FIRST, inside - 1, false, false },
                 { KBI_FOUND, FIRST, KBI_MESSAGE_LIMIT, false, true },
                 { KBI_FOUND, FIRST, (uint64_t)KBI_MESSAGE_LIMIT + 1, false, false },
                 { KBI_FOUND, FIRST + 1, inside, false, false },
                 { 99, FIRST, 0, false, false } };
    wanted[1] = 0;
    for (int i = 0; i < 2 * KBI_COUNT(rows); i++) {
        bool looks = i % 2;
        kbi_message m;
        memset(&m, 0, sizeof m);
        m.magic = KBI_MAGIC, m.type = rows[i / 2].type, m.index = rows[i / 2].index, m.size = (uint32_t)rows[i / 2].size;
        s->group.profiles = looks ? found : NULL;
        CHECK_THAT(kbi_message_possible(s, &m) == (looks ? rows[i / 2].looking : rows[i / 2].measuring),
                   "message %d%s", i / 2, looks ? ", during profiling" : "");
        m.magic ^= 1, CHECK(!kbi_message_possible(s, &m));
    }
    kbi_message m = { KBI_MAGIC, KBI_ENTER, FIRST, 0 };
    s->group.profiles = NULL, s->group.wanted = NULL;
    CHECK(!kbi_message_possible(s, &m));
}

static void send(int file, int type, int index, const void* body, size_t size) {
    kbi_message m;
    memset(&m, 0, sizeof m);
    m.magic = KBI_MAGIC, m.type = type, m.index = index, m.size = size;
    CHECK(write(file, &m, sizeof m) == (ssize_t)sizeof m);
    if (size) CHECK(write(file, body, size) == (ssize_t)size);
}

// Messages arrive in pieces of any size.
static void test_receive(void) {
    int ends[2], wake;
    kbi_machine machine;
    kbi_measured m;
    double ns[4] = { 1, 2, 3, 4 };
    memset(&machine, 0, sizeof machine), machine.devices = 7;
    kbi_measured_clear(&m), m.n = 3, m.rounds = 1, m.samples = m.round_ns = ns;
    char body[sizeof m + sizeof ns];
    memcpy(body, &m, sizeof m), memcpy(body + sizeof m, ns, sizeof ns);
    for (size_t piece = 7; piece < 1 << 16; piece *= 100) {
        static char all[1 << 16];
        kbi_supervisor* s = fresh();
        if (!CHECK(pipe(ends) == 0)) return;
        send(ends[1], KBI_HELLO, 0, &machine, sizeof machine);
        send(ends[1], KBI_ENTER, FIRST + 2, NULL, 0), send(ends[1], KBI_BEAT, 1, NULL, 0),
            send(ends[1], KBI_BEAT, 0, NULL, 0);
        send(ends[1], KBI_RESULT, FIRST + 2, body, sizeof body), send(ends[1], KBI_DONE, 1, NULL, 0);
        ssize_t size = read(ends[0], all, sizeof all);
        close(ends[0]), close(ends[1]);
        if (!CHECK(pipe(ends) == 0)) return;
        s->worker.link = ends[0], s->worker.process = 1 << 30;
        pid_t writer = fork();
        for (ssize_t done = 0; writer == 0 && done < size; done += (ssize_t)piece)
            if (write(ends[1], all + done, KBI_MIN(piece, (size_t)(size - done))) < 0) _exit(1);
        if (writer == 0) _exit(0);
        kbi_link_state next = KBI_LINK_OPEN;
        for (int i = 0; i < 6; i++) CHECK_INT(next, KBI_LINK_OPEN), next = kbi_receive(s);
        waitpid(writer, &wake, 0);
        CHECK_INT(next, KBI_LINK_DONE), CHECK(!s->worker.invalid);
        CHECK_INT(s->machine.devices, 7), CHECK_INT(s->done, 1),
            CHECK_INT(s->worker.first, FIRST + 2);
        CHECK(!s->worker.mixed && s->group.current == -1 && !wanted[2] && wanted[0]);
        CHECK_INT(measured[2].n, 3);
        for (int i = 0; i < 3; i++) CHECK_REAL(measured[2].samples[i], ns[i], 0);
        CHECK_REAL(measured[2].round_ns[0], ns[3], 0), CHECK(!measured[2].control_ns);
        send(ends[1], KBI_RESULT, FIRST + 1, body, sizeof body - 1);
        CHECK_INT(kbi_receive(s), KBI_LINK_LOST), CHECK(s->worker.invalid), CHECK(wanted[1]);
        send(ends[1], 77, 0, NULL, 0);
        CHECK_INT(kbi_receive(s), KBI_LINK_LOST), CHECK(s->worker.invalid);
        CHECK(write(ends[1], all, sizeof(kbi_message) + 1) > 0), close(ends[1]);
        CHECK_INT(kbi_receive(s), KBI_LINK_LOST), CHECK(!s->worker.invalid);
        CHECK_INT(kbi_receive(s), KBI_LINK_LOST), close(ends[0]);
    }
}

// --- which case is blamed ---

static void lost(kbi_supervisor* s, int code, int by_signal) {
    int ends[2];
    if (!CHECK(pipe(ends) == 0)) return;
    s->worker.process = child(code, by_signal), s->worker.link = ends[0];
    waitpid(s->worker.process, &s->worker.status, 0), s->worker.ended = true;
    kbi_worker_lost(s, 0);
    CHECK_INT(s->worker.process, 0);
}

// A crash is attributed to the current case. If the worker reported no current case, the third crash is
// attributed to the first remaining case.
static void test_lost(void) {
    kbi_supervisor* s = fresh();
    s->group.current = 1, s->worker.first = FIRST + 1;
    lost(s, 7, 0);
    CHECK(!wanted[1] && wanted[0] && wanted[2]), CHECK_INT(measured[1].status, KB_FAILED);
    CHECK_INT(measured[1].flags, (uint64_t)1 << KB_FLAG_CRASHED);
    CHECK_STR(measured[1].message, "the benchmark ended the process with exit code 7");
    s = fresh(), wanted[0] = 0;
    for (int i = 0; i < 3; i++) {
        CHECK(wanted[1]), CHECK_INT(s->group.deaths, i);
        lost(s, 0, SIGTERM);
    }
    CHECK(!wanted[1] && wanted[2]), CHECK_STR(measured[1].message, "signal 15 (Terminated)"), CHECK_INT(s->done, 1);
    s = fresh(), s->group.deaths = 5, memset(wanted, 0, sizeof wanted);
    lost(s, 1, 0), CHECK_INT(s->done, 0);
    s = fresh(), s->group.current = 2, s->worker.mixed = true;
    lost(s, 0, SIGTERM);
    CHECK(!wanted[2]), CHECK_INT(s->group.current, -1), CHECK(s->worker.failed);
    CHECK_STR(measured[2].message, "signal 15 (Terminated), in a process that had run other cases");
    static kbi_inside* found[CASES];
    s = fresh(), s->group.profiles = found, s->group.current = 0, measured[0].n = 8;
    lost(s, 6, 0);
    CHECK(!wanted[0]), CHECK_INT(measured[0].n, 8), CHECK_INT(measured[0].status, KB_OK);
    if (CHECK(found[0] != NULL)) CHECK_HAS(found[0]->message, "exit code 6");
    KBENCH_FREE(found[0]), found[0] = NULL;
}

// A worker that does not exit is killed after two seconds.
static void test_leaving(void) {
    for (int stays = 0; stays < 2; stays++) {
        int ends[2], status;
        kbi_worker w;
        memset(&w, 0, sizeof w);
        if (!CHECK(pipe(ends) == 0)) return;
        pid_t process = w.process = fork();
        if (process == 0) {
            signal(SIGTERM, SIG_IGN);
            while (stays) pause();
            _exit(0);
        }
        if (!stays)
            while (!kbi_worker_ended(&w)) usleep(1000);
        w.link = ends[0], waited = 0;
        kbi_worker_end(&w, false);
        CHECK_INT(w.process, 0), CHECK(w.ended || stays);
        CHECK(stays ? waited >= 1900 && waited <= 4000 : waited == 0);
        if (stays && !w.ended) waitpid(process, &status, 0);
        CHECK(read(ends[0], ends, 1) < 0), close(ends[1]);
        kbi_worker_end(&w, false), kbi_worker_end(&w, true);
    }
}

// If a worker sends no message, its current case may take the time of --timeout. Work that belongs to no case may
// take 120 s, or the time of --timeout if it is longer.
static void test_listen(void) {
    static const struct {
        double timeout, since, spent; // s
        int current;
        bool machine, gone; // machine: the worker measures the machine; gone: the worker exits
        const char* says;
    } rows[] = { { 1, 1.2, 0, 1, false, false, "longer than 1.000 s" },
                 { 2, 1.5, 0.6, 1, false, false, "longer than 2.000 s" },
                 { 0.5, 121, 0, -1, false, false, "longer than 120.0 s" },
                 { 300, 301, 0, -1, false, false, "longer than 300.0 s" },
                 { 0.5, 121, 500, 1, true, false, "longer than 120.0 s" },
                 { 0.5, 100, 0, -1, false, true, "" },
                 { 300, 200, 0, -1, false, true, "" },
                 { 0.5, 100, 500, 1, true, true, "the benchmark ended the process with exit code 2" },
                 { 5, 2, 1, 1, false, true, "the benchmark ended the process with exit code 2" } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_supervisor* s = fresh();
        int from[2];
        if (!CHECK(pipe(from) == 0)) return;
        s->worker.process = fork();
        if (s->worker.process == 0) {
            setpgid(0, 0);
            if (!rows[i].gone) pause();
            _exit(2);
        }
        s->worker.link = from[0], options.timeout = rows[i].timeout, wanted[0] = 0;
        s->read_ns = kbi_now(), s->group.current = rows[i].current, s->group.machine = rows[i].machine;
        bool counts = rows[i].current >= 0 && !rows[i].machine;
        spent_ns[1] = (int64_t)(1e9 * (rows[i].spent + (counts ? rows[i].since : 0)));
        s->group.idle_ns = counts ? 0 : (int64_t)(1e9 * rows[i].since);
        kbi_listen(s);
        CHECK_STR(measured[1].message, rows[i].says), CHECK_INT(wanted[1], !*rows[i].says), CHECK_INT(wanted[2], 1);
        CHECK_INT(measured[1].flags, (uint64_t)(*rows[i].says != 0)
                                         << (rows[i].gone ? KB_FLAG_CRASHED : KB_FLAG_TIMEOUT));
        CHECK_INT(s->worker.process, 0), close(from[1]);
    }
}

// --- time per case, and requests ---

// Time that the supervisor waits counts as time of the current case, except while the worker measures the machine.
static void test_spent(void) {
    int ends[2];
    for (int how = 0; how < 3; how++) {
        kbi_supervisor* s = fresh();
        kbi_group* g = &s->group;
        if (!CHECK(pipe(ends) == 0)) return;
        g->current = how ? 1 : -1, g->machine = how == 1, g->idle_ns = 5;
        s->worker.link = ends[0], s->worker.process = 1 << 30, s->read_ns = kbi_now() - 40000000;
        send(ends[1], KBI_DONE, 1, NULL, 0);
        CHECK_INT(kbi_listen(s), KBI_LINK_DONE);
        CHECK_THAT(how == 2 ? spent_ns[1] >= 40000000 && spent_ns[1] <= 100000000 : !spent_ns[1],
                   "%d: %lld ns", how, (long long)spent_ns[1]);
        CHECK_INT(g->idle_ns, 0), CHECK(!spent_ns[0] && !spent_ns[2]);
        close(ends[0]), close(ends[1]);
    }
    kbi_supervisor* s = fresh();
    kbi_group* g = &s->group;
    kbi_handle_message(s, KBI_BEAT, 1, NULL), CHECK(!g->machine);
    g->deaths = 2, kbi_handle_message(s, KBI_ENTER, FIRST + 2, NULL);
    CHECK(g->current == 2 && g->deaths == 0 && s->worker.first == FIRST + 2 && !s->worker.mixed);
    kbi_handle_message(s, KBI_BEAT, 1, NULL), CHECK(g->machine);
    kbi_handle_message(s, KBI_BEAT, 0, NULL), CHECK(!g->machine);
    kbi_handle_message(s, KBI_ENTER, FIRST, NULL), CHECK(s->worker.mixed && s->worker.first == FIRST + 2);
}

static void test_runs_here(void) {
    kbi_supervisor* s = fresh();
    static const struct {
        kb_needs needs;
        int sm, gpu, is;
        bool runs;
    } rows[] = { { KB_NEEDS_NOTHING, 0, 0, 0, true }, { KB_NEEDS_NOTHING, 90, 0, 0, true },
                 { KB_NEEDS_GPU, 0, 0, 0, false },    { KB_NEEDS_GPU, 0, 1, 80, true },
                 { KB_NEEDS_CPU, 0, 0, 0, true },     { KB_NEEDS_CPU, 0, 1, 80, false },
                 { KB_NEEDS_GPU, 90, 1, 80, false },  { KB_NEEDS_GPU, 80, 1, 80, true },
                 { KB_NEEDS_GPU, 75, 1, 80, true } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        entry.needs = rows[i].needs, entry.min_sm = rows[i].sm, s->machine.gpu_present = rows[i].gpu,
        s->machine.sm = rows[i].is;
        CHECK_THAT(kbi_runs_here(s, &cases[0]) == rows[i].runs, "row %d", i);
    }
    memset(&entry, 0, sizeof entry);
}

static void test_job(void) {
    int ends[2];
    for (int how = 0; how < 2; how++) { // 0: measurement; 1: profiling
        kbi_supervisor* s = fresh();
        static kbi_inside* found[CASES];
        kbi_job job;
        char asked[CASES];
        if (!CHECK(pipe(ends) == 0)) return;
        s->worker.link = ends[1];
        s->job.device = 2, s->job.process = 3, s->job.max_time = 0.25, s->job.has_reference = true, s->instruments = 6;
        s->group.profiles = how == 1 ? found : NULL, s->group.current = 1, s->group.machine = true;
        for (int i = 0; i < CASES; i++) spent_ns[i] = 1, wanted[i] = i != 1;
        kbi_machine machine;
        memset(&machine, 0, sizeof machine);
        machine.roofs.of[KBI_ROOF_READ] = 5, machine.core.of[KBI_ROOF_READ] = 7;
        kbi_handle_message(s, KBI_HELLO, 0, &machine);
        CHECK(kbi_job_send(s));
        CHECK(read(ends[0], &job, sizeof job) == (ssize_t)sizeof job && read(ends[0], asked, CASES) == CASES);
        CHECK_INT(job.first, FIRST), CHECK_INT(job.n, CASES), CHECK_INT(job.device, 2), CHECK_INT(job.process, 3);
        CHECK_INT(job.instruments, how == 1 ? 6 : 0), CHECK_REAL(job.max_time, 0.25, 0), CHECK_INT(job.has_reference, 1);
        CHECK(memcmp(asked, "\1\0\1", 3) == 0);
        CHECK_REAL(job.roofs.of[KBI_ROOF_READ], 5, 0), CHECK_REAL(job.core.of[KBI_ROOF_READ], 7, 0);
        CHECK(s->group.current == -1 && !s->group.machine && s->read_ns > 0);
        for (int i = 0; i < CASES; i++) CHECK_INT(spent_ns[i], 0);
        close(ends[0]), CHECK(!kbi_job_send(s)), close(ends[1]);
    }
}

// --- the option --budget ---

static void test_budget(void) {
    kbi_budget b;
    kbi_options o;
    kb_result r;
    kbi_options_default(&o), kbi_result_clear(&r), memset(&b, 0, sizeof b);
    kbi_budget_add(&b, &o, 1, 1), CHECK_REAL(b.shares, 1.5, 0), o.warmup_time = 0;
    kbi_budget_add(&b, &o, 4, 1), CHECK_REAL(b.shares, 6.5, 0), memset(&b, 0, sizeof b), o.warmup_time = -1;
    kbi_budget_add(&b, &o, 4, 2), CHECK_REAL(b.shares, 14, 0), CHECK_REAL(b.cases, 8, 0);
    kbi_budget_add(&b, &o, 0, 2), kbi_budget_add(&b, &o, 1, -1), CHECK_REAL(b.shares, 12.5, 0),
        CHECK_REAL(b.cases, 7, 0);
    // A share is the remaining time, minus the average overhead of all remaining cases, divided by the number of
    // remaining shares.
    const int64_t second = 1000000000;
    b.until = 30 * second, b.shares = 10, b.cases = 4;
    CHECK_REAL(kbi_budget_share(&b, &o, 10 * second), 2, 1e-12);
    b.overhead = 3, b.measured = 2, CHECK_REAL(kbi_budget_share(&b, &o, 10 * second), 1.4, 1e-12);
    o.warmup_time = 0.5, CHECK_REAL(kbi_budget_share(&b, &o, 10 * second), 1.2, 1e-12), o.warmup_time = -1;
    CHECK_REAL(kbi_budget_share(&b, &o, 29 * second), 1e-3, 0), b.shares = 0.5, b.overhead = 0;
    CHECK_REAL(kbi_budget_share(&b, &o, 20 * second), 10, 1e-12);
    o.max_time = 3, CHECK_REAL(kbi_budget_share(&b, &o, 20 * second), 10, 1e-12);
    o.on[KBI_OPTION_max_time] = true, CHECK_REAL(kbi_budget_share(&b, &o, 20 * second), 3, 0);
    o.min_time = 0.2, CHECK_REAL(kbi_budget_share(&b, &o, 30 * second), 0.2, 0);
    memset(&b, 0, sizeof b), kbi_options_default(&o);
    kbi_budget_took(&b, &o, 1, 1.0, kbi_group_seconds(&o, 1.0, 1) + 2);
    CHECK(b.begun), CHECK_REAL(b.overhead, 2, 1e-12), CHECK_REAL(b.measured, 1, 0);
    kbi_budget_took(&b, &o, 3, 1.0, 0), CHECK_REAL(b.overhead, 2, 1e-12), CHECK_REAL(b.measured, 4, 0);
    // If a batch needs several processes, process 0 leaves process 1 as much time as process 0 used.
    static const struct {
        // in seconds. `until` is the end of the budget. The batch began at 10 s.
        int until, begun, process, processes, now;
        bool over;
    } rows[] = { { 30, 1, 0, 1, 29, false }, { 30, 1, 0, 1, 30, true },  { 30, 0, 0, 1, 40, false },
                 { 0, 1, 0, 1, 40, false },  { 30, 1, 0, 2, 19, false }, { 30, 1, 0, 2, 20, true },
                 { 30, 1, 1, 2, 40, false }, { 30, 1, 2, 3, 29, false }, { 30, 1, 2, 3, 30, true } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        b.until = rows[i].until * second, b.begun = rows[i].begun;
        CHECK_THAT(kbi_budget_over(&b, rows[i].process, rows[i].processes, 10 * second, rows[i].now * second) ==
                       rows[i].over,
                   "row %d", i);
    }
    kb_result_free(&r);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    test_possible();
    test_receive();
    test_lost();
    test_leaving();
    test_listen();
    test_spent();
    test_runs_here();
    test_job();
    test_budget();
    for (int i = 0; i < CASES; i++) kbi_measured_free(&measured[i]);
    return test_end();
}
