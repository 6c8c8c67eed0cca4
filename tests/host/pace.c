// SPDX-License-Identifier: MIT OR Unlicense
// The time left: what is shown over whole runs that are played, case by case, without any being measured.
#include "test.h"
#include "guarded.h"
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

// A run of so many groups of n cases each. The k-th of these takes took(k, n, allowed) seconds.
typedef struct played {
    int rises;    // how often a longer time left was shown than the one before
    double first; // that was shown
    double late;  // the first that was shown in the last tenth, over the true one
    bool bounded; // never more than all that is left may take
} played;

static played play(int groups, int n, double (*took)(int at, int groups, double allowed), const char* options) {
    kbi_options o;
    kbi_options_default(&o);
    char word[64];
    char* argv[4] = { word, word, NULL, NULL };
    snprintf(word, sizeof word, "%s", options);
    CHECK(kbi_options_parse(&o, *options ? 2 : 1, argv));
    double allowed = kbi_group_seconds(&o, o.max_time, n), at = 0, end = 0, shown = -1;
    kbi_pace p;
    played r = { 0, -1, NAN, true };
    memset(&p, 0, sizeof p);
    p.all = allowed * groups;
    p.said = -1;
    for (int k = 0; k < groups; k++) end += took(k, groups, allowed);
    for (int k = 0; k < groups; k++) {
        double began = at, stop = at + took(k, groups, allowed);
        p.now = allowed;
        p.began = began;
        for (; at < stop; at += 0.05) { // as often as the line is written
            double left = kbi_time_left(&p, at);
            if (shown >= 0 && left > shown + 1e-9) r.rises++;
            if (shown < 0) r.first = left;
            if (isnan(r.late) && k >= 0.9 * groups) r.late = left / (end - at);
            if (left > allowed * (groups - k) + 1e-9) r.bounded = false;
            p.said = shown = left;
            p.said_at = at;
        }
        at = stop;
        p.took += stop - began;
        p.over += allowed;
        p.now = 0;
    }
    return r;
}

static double half(int at, int groups, double allowed) { return (void)at, (void)groups, 0.5 * allowed; }
static double whole(int at, int groups, double allowed) { return (void)at, (void)groups, allowed; }
static double late(int at, int groups, double allowed) { return at < groups / 4 ? 0.1 * allowed : 0.9 * allowed; }
static double early(int at, int groups, double allowed) { return at < groups / 4 ? 0.9 * allowed : 0.1 * allowed; }
static double in_turn(int at, int groups, double allowed) { return (void)groups, at % 5 ? 0.2 * allowed : allowed; }
static double slow(int at, int groups, double allowed) { return (void)at, (void)groups, 12 * allowed; }
static double none(int at, int groups, double allowed) { return (void)at, (void)groups, (void)allowed, 0.01; }

int main(void) {
    static const struct {
        const char* name;
        double (*took)(int at, int groups, double allowed);
    } runs[] = { { "half", half },       { "whole", whole }, { "late", late }, { "early", early },
                 { "in turn", in_turn }, { "none", none },   { "slow", slow } };
    static const int groups[] = { 1, 2, 7, 40, 300 }, cases[] = { 1, 2, 5 };
    for (int i = 0; i < KBI_COUNT(runs); i++)
        for (int g = 0; g < KBI_COUNT(groups); g++)
            for (int c = 0; c < KBI_COUNT(cases); c++) {
                played r = play(groups[g], cases[c], runs[i].took, "");
                CHECK_THAT(r.rises == 0, "%s, %d x %d: it rises %d times", runs[i].name, groups[g], cases[c],
                           r.rises);
                CHECK_THAT(r.bounded, "%s, %d x %d: more is left than may be", runs[i].name, groups[g], cases[c]);
                if (groups[g] < 40 || runs[i].took == none) continue;
                bool early_ones = runs[i].took == early || runs[i].took == in_turn;
                CHECK_THAT(r.late < (early_ones ? 9 : 1.25) && r.late >= 0,
                           "%s, %d x %d: %.2f times the true time at the end", runs[i].name, groups[g], cases[c],
                           r.late);
            }
    // what the options say counts from the start
    CHECK_REAL(play(10, 1, whole, "").first, 15, 1e-9); // half a second of warm-up, one of samples
    CHECK_REAL(play(10, 1, whole, "--fast").first, 3, 1e-9);
    CHECK_REAL(play(10, 2, whole, "").first, 40, 1e-9); // two warm-ups; the baseline has samples twice
    CHECK_REAL(play(10, 1, whole, "--max-time=4s").first, 50, 1e-9);
    CHECK_REAL(play(10, 1, whole, "--warmup=3s").first, 40, 1e-9);
    CHECK_REAL(play(10, 1, whole, "--timeout=1s").first, 10, 1e-9);
    return test_end();
}
