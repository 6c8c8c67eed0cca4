// SPDX-License-Identifier: MIT OR Unlicense
// Tests kb_compare inside another program: the comparison of functions, the checks of their results, and the
// records. The comparison must leave the rest of the process unchanged.
// measures time
#include "test.h"
#include "guarded.h"
#include "kit.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct job {
    double ns; // duration of a launch
    int runs, resets, stale, checks;
    int wrong_from; // launch from which the result is wrong; 0: never
    int fails_at;
    int stops_at;   // launch in which the process is stopped for 200 ms
    bool dirty;
} job;

static void stop(void) {
    pid_t self = getpid(), child = fork();
    if (!child) {
        usleep(200000);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, NULL, 0);
}

static void spin(kb_stream stream, void* user) {
    job* j = (job*)user;
    int64_t end = kbi_now() + (int64_t)j->ns;
    (void)stream;
    j->runs++;
    j->stale += j->dirty;
    j->dirty = true;
    if (j->runs == j->fails_at) kb_fail(kb_current(), "planted in run %d", j->runs);
    while (kbi_now() < end) {}
    if (j->runs == j->stops_at) stop();
}

static void reset(kb_stream stream, void* user) {
    (void)stream;
    ((job*)user)->resets++;
    ((job*)user)->dirty = false;
}

static void check(kb_state* kb, void* user) {
    job* j = (job*)user;
    CHECK(kb->user == user);
    CHECK(kb == kb_current());
    j->checks++;
    kb_check_that(kb, !j->wrong_from || j->runs < j->wrong_from, 1, 0, "planted");
}

static kb_desc desc_of(const char* implementation) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "spin";
    d.implementation = implementation;
    d.host = true;
    d.check = check;
    return d;
}

enum { RIVALS = 3 };
typedef struct game {
    kb_desc descs[RIVALS];
    job jobs[RIVALS];
    void* users[RIVALS];
    kb_function fns[RIVALS];
    kb_result results[RIVALS];
} game;

static void game_of(game* g, double first, double second, double third) {
    const char* const names[RIVALS] = { "one", "two", "three" };
    double ns[RIVALS] = { first, second, third };
    memset(g, 0, sizeof *g);
    for (int i = 0; i < RIVALS; i++) {
        g->descs[i] = desc_of(names[i]);
        g->jobs[i].ns = ns[i];
        g->users[i] = &g->jobs[i];
        g->fns[i] = spin;
    }
    g->descs[0].max_time = 0.1;
}
static bool play(game* g) { return kb_compare(g->descs, g->fns, g->users, RIVALS, g->results); }
static void game_free(game* g) {
    for (int i = 0; i < RIVALS; i++) kb_result_free(&g->results[i]);
}

static void test_contest(void) {
    game g;
    kb_param params[2];
    char unit[] = "rows", value[] = "wide";
    memset(params, 0, sizeof params);
    params[0].name = unit, params[0].type = KB_AXIS_INTS, params[0].i = 512;
    params[1].name = "shape", params[1].type = KB_AXIS_STRINGS, params[1].s = value;
    game_of(&g, 200000, 400000, 100000);
    for (int i = 0; i < RIVALS; i++) g.descs[i].params = params, g.descs[i].n_params = 2;
    g.descs[0].dtype = g.descs[1].dtype = g.descs[2].dtype = "f32";
    CHECK(play(&g));
    // the records must have their own copies of the strings unit and value
    unit[0] = value[0] = '?';
    const kb_result* r = g.results;
    CHECK_STR(r[1].name, "spin/impl=two/dtype=f32/rows=512/shape=wide");
    CHECK_INT(r[0].params.n, 3);
    CHECK_REAL(r[0].time_ms, 0.2, 0.1);
    CHECK_REAL(r[1].speedup, 0.5, 0.1);
    CHECK_REAL(r[2].speedup, 2, 0.1);
    CHECK(r[1].speedup_low <= r[1].speedup && r[1].speedup <= r[1].speedup_high);
    CHECK_INT(r[1].verdict, KB_SLOWER);
    CHECK_INT(r[2].verdict, KB_FASTER);
    CHECK_STR(r[1].winner, "three");
    CHECK_STR(r[2].baseline, "one");
    CHECK_INT(r[1].planned, RIVALS);
    for (int i = 0; i < RIVALS; i++) {
        CHECK_INT(r[i].verified, 1);
        // the baseline is checked once more than the other implementations, because it also runs as the A/A
        // control
        CHECK_INT(g.jobs[i].checks, i ? 2 : 3);
        CHECK(r[i].samples >= 3 && g.jobs[i].runs > r[i].samples);
    }
    CHECK(g.jobs[0].runs > g.jobs[1].runs + g.jobs[1].runs / 4);
    game_free(&g);
}

static void test_wrong(void) {
    game g;
    game_of(&g, 50000, 50000, 50000);
    g.jobs[1].wrong_from = 1;
    g.jobs[2].wrong_from = 20;
    CHECK(!play(&g));
    CHECK_INT(g.results[0].status, KB_OK);
    CHECK_INT(g.results[1].status, KB_FAILED);
    CHECK_INT(g.jobs[1].runs, 1);
    CHECK(isnan(g.results[1].time_ms));
    // launches from the 20th on are wrong, so only the final check finds the error
    CHECK_INT(g.results[2].status, KB_FAILED);
    CHECK(isnan(g.results[2].time_ms));
    CHECK(g.results[2].flags >> KB_FLAG_VERIFY_FAIL & 1);
    game_free(&g);

    game_of(&g, 50000, 50000, 50000);
    g.jobs[1].fails_at = 30;
    CHECK(!play(&g));
    CHECK_INT(g.jobs[1].runs, 30);
    CHECK_HAS(g.results[1].message, "planted in run 30");
    CHECK_INT(g.results[0].status, KB_OK);
    CHECK_INT(g.results[2].status, KB_OK);
    CHECK(kb_current() == NULL);
    game_free(&g);
}

static void test_resets(void) {
    game g;
    game_of(&g, 20000, 20000, 20000);
    for (int i = 0; i < RIVALS; i++) g.descs[i].before = reset;
    CHECK(play(&g));
    for (int i = 0; i < RIVALS; i++) {
        CHECK_INT(g.jobs[i].stale, 0);
        CHECK_INT(g.jobs[i].resets, g.jobs[i].runs);
        CHECK(g.results[i].samples >= 3);
    }
    game_free(&g);
}

static void test_descriptions(void) {
    game g;
    game_of(&g, 20000, 20000, 20000);
    g.descs[0].samples = 25;
    g.descs[1].samples = 26;
    g.descs[2].name = "another";
    CHECK(!play(&g));
    CHECK_INT(g.results[0].samples, 25);
    CHECK_HAS(g.results[1].message, "only in the first kb_desc");
    CHECK_HAS(g.results[2].message, "one operation");
    CHECK_STR(g.results[2].operation, "another");
    CHECK_INT(g.jobs[1].runs + g.jobs[2].runs, 0);
    game_free(&g);

    game_of(&g, 20000, 20000, 20000);
    g.fns[1] = NULL;
    memset(&g.descs[2], 0x55, sizeof g.descs[2]);
    CHECK(!play(&g));
    CHECK_INT(g.results[0].status, KB_OK);
    CHECK_HAS(g.results[1].message, "function is NULL");
    CHECK_HAS(g.results[2].message, "not initialised");
    game_free(&g);

    game_of(&g, 20000, 20000, 20000);
    g.descs[1].name = g.descs[2].name = NULL;
    CHECK(play(&g));
    CHECK_STR(g.results[1].name, "spin/impl=two");
    CHECK_INT(g.results[2].status, KB_OK);
    game_free(&g);
    game_of(&g, 20000, 20000, 20000);
    g.descs[0].name = g.descs[1].name = NULL;
    CHECK(!play(&g));
    CHECK_HAS(g.results[0].message, "name is missing");
    CHECK_HAS(g.results[1].message, "name is missing");
    CHECK_INT(g.results[2].status, KB_FAILED);
    game_free(&g);

    const char* const wrong[][2] = { { "warm", "cold, hot or graph" },
                                     { "", "cold, hot or graph" },
                                     { "rotate", "use --rotate" } };
    for (int i = 0; i < 3; i++) {
        game_of(&g, 20000, 20000, 20000);
        g.descs[0].mode = wrong[i][0];
        kb_result r = kb_run(&g.descs[0], spin, &g.jobs[0]);
        CHECK_HAS(r.message, wrong[i][1]);
        kb_result_free(&r);
    }
    static const double bad_numbers[] = { -1, NAN, INFINITY };
    for (int i = 0; i < 15; i++) {
        game_of(&g, 20000, 20000, 20000);
        kb_desc* d = &g.descs[0];
        double* const numbers[] = { &d->precision, &d->max_time, &d->bytes, &d->flops, &d->items };
        *numbers[i % 5] = bad_numbers[i / 5];
        kb_result r = kb_run(d, spin, &g.jobs[0]);
        CHECK_HAS(r.message, "precision, max_time, bytes, flops and items are finite numbers >= 0");
        CHECK_INT(r.status, KB_FAILED);
        kb_result_free(&r);
    }
    game_of(&g, 20000, 20000, 20000);
    g.descs[0].n_params = 1;
    kb_result r = kb_run(&g.descs[0], spin, &g.jobs[0]);
    CHECK_HAS(r.message, "n_params");
    kb_result_free(&r);

    static const kb_param fine = { .name = "n", .type = KB_AXIS_INTS, .i = 1 };
    kb_param params[] = { { .name = NULL, .type = KB_AXIS_INTS },
                          { .name = "", .type = KB_AXIS_INTS },
                          { .name = "n", .type = KB_AXIS_STRINGS },
                          { .name = "n", .type = KB_AXIS_SIZE },
                          fine };
    // Names must be unique: two functions cannot share an implementation name, and two parameters cannot share a
    // name.
    game_of(&g, 20000, 20000, 20000);
    g.descs[2].implementation = g.descs[1].implementation;
    CHECK(!play(&g));
    CHECK_INT(g.results[0].status, KB_OK), CHECK_INT(g.results[1].status, KB_OK);
    CHECK_HAS(g.results[2].message, "two functions have one name");
    game_free(&g);
    for (int i = 0; i < 2; i++) {
        kb_param two[] = { fine, fine };
        if (i) two[0].name = "dtype";
        game_of(&g, 20000, 20000, 20000);
        g.descs[0].dtype = "f32", g.descs[0].samples = 10, g.descs[0].params = two, g.descs[0].n_params = 2;
        r = kb_run(&g.descs[0], spin, &g.jobs[0]);
        CHECK_HAS(r.message, i ? "dtype is also given as kb_desc.dtype" : "have the same name");
        kb_result_free(&r);
    }
    for (int i = 0; i < 5; i++) {
        kb_param two[] = { fine, params[i] };
        two[0].name = "m";
        game_of(&g, 20000, 20000, 20000);
        g.descs[0].samples = 10, g.descs[0].params = two, g.descs[0].n_params = 2;
        r = kb_run(&g.descs[0], spin, &g.jobs[0]);
        CHECK_THAT((r.status == KB_OK) == (i == 4), "parameter %d", i);
        if (i < 4)
            CHECK_HAS(r.message, "each has a name, a type (KB_AXIS_INTS, _REALS, _STRINGS) and that type's value");
        kb_result_free(&r);
    }
    game_of(&g, 20000, 20000, 20000);
    CHECK(!kb_compare(g.descs, g.fns, g.users, 0, g.results) && !kb_compare(g.descs, NULL, g.users, 1, g.results));
    CHECK(!kb_compare(g.descs, g.fns, g.users, 1, NULL));
    CHECK_INT(g.jobs[0].runs, 0);
    r = kb_close(NULL); // kb_open may have returned NULL, if memory is exhausted
    CHECK_INT(r.status, KB_FAILED), CHECK((r.flags >> KB_FLAG_OOM) & 1), CHECK(isnan(r.time_ms));
    kb_result_free(&r);
}

static void test_left_alone(void) {
    struct itimerval timer, now;
    char before[4096], after[4096];
    game g;
    memset(&timer, 0, sizeof timer);
    timer.it_value.tv_sec = 1000;
    game_of(&g, 20000, 20000, 20000);
    CHECK(play(&g));
    game_free(&g);
    CHECK(chdir("tests") == 0 && getcwd(before, sizeof before));
    setitimer(ITIMER_REAL, &timer, NULL);
    game_of(&g, 20000, 20000, 20000);
    CHECK(play(&g));
    game_free(&g);
    CHECK(getcwd(after, sizeof after) != NULL);
    CHECK_STR(after, before);
    getitimer(ITIMER_REAL, &now);
    CHECK(now.it_value.tv_sec > 900);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    CHECK(chdir("..") == 0);
}

static int continued, continued_with_info;
static void note(int number) { continued += number == SIGCONT; }
static void note_info(int number, siginfo_t* info, void* context) {
    continued_with_info += number == SIGCONT && info && info->si_signo == SIGCONT && context;
}
static bool same_action(const struct sigaction* a, const struct sigaction* b) {
    if (a->sa_flags != b->sa_flags || sigismember(&a->sa_mask, SIGUSR1) != sigismember(&b->sa_mask, SIGUSR1))
        return false;
    return a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler;
}

// If the process is stopped during a sample, the sample is repeated. The program's own handler of SIGCONT is called,
// and is installed again afterwards.
static void test_stopped(void) {
    for (int i = 0; i < 4; i++) {
        struct sigaction ours, before, after;
        memset(&ours, 0, sizeof ours);
        ours.sa_handler = i == 0 ? SIG_DFL : note;
        if (i == 1) sigaddset(&ours.sa_mask, SIGUSR1);
        if (i == 2) ours.sa_sigaction = note_info, ours.sa_flags = SA_SIGINFO | SA_RESTART;
        CHECK(sigaction(SIGCONT, &ours, NULL) == 0 && sigaction(SIGCONT, NULL, &before) == 0);
        job j;
        kb_result r;
        kb_desc d = desc_of("stops");
        memset(&j, 0, sizeof j);
        j.ns = 12e6, j.stops_at = 30, d.samples = 40; // samples longer than 10 ms are repeated only after a stop
        continued = continued_with_info = 0;
        if (i < 3) {
            r = kb_run(&d, spin, &j);
        } else {
            d.check = NULL;
            kb_state *kb = kb_open(&d), *other = kb_open(&d);
            kb_result none = kb_close(other);
            kb_result_free(&none);
            KB_TIME_HOST(kb) { spin(NULL, &j); }
            r = kb_close(kb);
        }
        CHECK_INT(r.status, KB_OK), CHECK_INT(r.samples, 40);
        CHECK(j.runs > 30);
        CHECK_THAT(r.samples_retaken >= 1, "row %d: no sample was repeated", i);
        CHECK_THAT(r.time_ms_max < 150, "row %d: the longest sample took %g ms", i, r.time_ms_max);
        CHECK_INT(continued, i == 1 || i == 3), CHECK_INT(continued_with_info, i == 2);
        CHECK(sigaction(SIGCONT, NULL, &after) == 0 && same_action(&before, &after));
        kb_result_free(&r);
    }
    kb_desc d = desc_of("changes");
    struct sigaction after;
    kb_state* kb = kb_open(&d);
    signal(SIGCONT, SIG_IGN);
    kb_result r = kb_close(kb);
    kb_result_free(&r);
    CHECK(sigaction(SIGCONT, NULL, &after) == 0 && after.sa_handler == SIG_IGN);
    signal(SIGCONT, SIG_DFL);
}

static void test_other_languages(void) {
    game g;
    char text[20000], small[8], none = 'x';
    CHECK_INT(kb_abi("kb_desc"), sizeof(kb_desc));
    CHECK_INT(kb_abi("kb_result"), sizeof(kb_result));
    CHECK_INT(kb_abi("version"), 100);
    CHECK_INT(kb_abi("cuda"), 0);
    CHECK_INT(kb_abi("bogus"), -1);
    CHECK_INT(kb_abi(NULL), -1);
    game_of(&g, 20000, 20000, 20000);
    g.descs[0].samples = 10;
    kb_result r = kb_run(&g.descs[0], spin, &g.jobs[0]);
    int64_t n = kb_json(&r, text, sizeof text);
    CHECK(n > 1000 && n < (int64_t)sizeof text);
    CHECK_INT(strlen(text), n);
    CHECK(text[0] == '{' && text[n - 1] == '}');
    CHECK_HAS(text, "\"implementation\": \"one\"");
    CHECK_INT(kb_json(&r, small, sizeof small), n);
    CHECK_INT(strlen(small), 7);
    CHECK_INT(kb_json(&r, &none, 0), n);
    CHECK_INT(none, 'x');
    kb_result_free(&r);
}

int main(void) {
    test_contest();
    test_wrong();
    test_resets();
    test_descriptions();
    test_left_alone();
    test_stopped();
    test_other_languages();
    return test_end();
}
