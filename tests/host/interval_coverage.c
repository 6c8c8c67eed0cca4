// SPDX-License-Identifier: MIT OR Unlicense
// Tests the coverage of the intervals and the error rates of the verdicts, by simulation with fixed seeds.
// Intervals must contain the true value, equal implementations must be called equal, and differences must be
// found, as often as promised.
//     interval_coverage        asserts the bars
//     interval_coverage -v     and prints the figure behind each
//
// A measured percentage fails only if it misses its limit by more than 2.33 standard errors of a binomial whose
// probability is the limit. Seeds are fixed, so a test that passes keeps passing until the code changes.
#include "test.h"
#include "kit.h"

static bool verbose;

static void show(const char* format, ...) {
    va_list rest;
    if (!verbose) return;
    va_start(rest, format);
    vprintf(format, rest);
    va_end(rest);
}

static double slack(double bar, int of) { return 233 * sqrt(bar / 100 * (1 - bar / 100) / of); }
static bool at_least(double percent, double bar, int of) { return percent >= bar - slack(bar, of); }
static bool at_most(double percent, double bar, int of) { return percent <= bar + slack(bar, of); }

// -- random numbers ----------------------------------------------------------------------------------------

static struct {
    uint32_t counter[4], word[4];
    int used;
    float spare;
    bool has_spare;
} source;

static void seed(uint32_t a, uint32_t b) {
    memset(&source, 0, sizeof source);
    source.counter[2] = a;
    source.counter[3] = b;
    source.used = 4;
}
static uint32_t word(void) {
    static const uint32_t key[2] = { 20261122, 7 };
    if (source.used == 4) {
        kbi_philox(source.counter, key, source.word);
        source.counter[0]++;
        source.used = 0;
    }
    return source.word[source.used++];
}
static double uniform(void) { return kbi_random_uniform(word()); }
static double normal(void) {
    float z[2];
    source.has_spare = !source.has_spare;
    if (!source.has_spare) return source.spare;
    uint32_t first = word();
    kbi_random_normal(first, word(), z);
    source.spare = z[1];
    return z[0];
}
static double heavy(void) {
    double a = normal(), b = normal(), c = normal();
    return normal() / sqrt(a * a + b * b + c * c);
}

// -- one process -------------------------------------------------------------------------------------------

enum { NORMAL, LOGNORMAL, BIMODAL, QUANTISED, AR3, AR6, AR9, WANDER, BURSTS, MODELS };
static const char* const model_name[] = { "normal",    "log-normal", "bimodal 20/80",  "quantised",  "AR(1) 0.3",
                                          "AR(1) 0.6", "AR(1) 0.9",  "half AR(1) 0.9", "slow bursts" };

static double sample[2000];

// Draws n samples around 1 and returns the true median. The standard deviation of the samples is cv; with
// LOGNORMAL, cv is the standard deviation of their logarithms. An interval is valid if its lower end is at most
// *low and its upper end is at least *high. With QUANTISED, every value from 1984 to 2016 is a median, so *low is
// 2016 and *high is 1984.
static void draw(int model, int n, double cv, double* low, double* high) {
    const double rho = model == AR3 ? 0.3 : model == AR6 ? 0.6 : model == AR9 || model == WANDER ? 0.9 : 0;
    double state = normal(), fast = sqrt(1 - rho * rho);
    bool slow = uniform() < 0.2;
    *low = *high = 1;
    for (int i = 0; i < n; i++) {
        if (i > 0) state = rho * state + fast * normal();
        sample[i] = 1 + cv * (model == WANDER ? sqrt(0.5) * (state + normal()) : state);
        if (model == LOGNORMAL) sample[i] = exp(cv * state);
        if (model == BURSTS && uniform() < (slow ? 1 / 8.0 : 1 / 32.0))
            // slow and fast periods alternate, on average for 8 and 32 samples
            slow = !slow;
        if (model == BIMODAL) slow = uniform() < 0.2;
        if ((model == BIMODAL || model == BURSTS) && slow) sample[i] += 20 * cv;
        if (model == QUANTISED) sample[i] = 32 * floor((2000 + 40 * state) / 32 + 0.5);
    }
    // one fifth of the samples is slow, so the median of all samples is the 5/8 quantile of the fast samples
    if (model == BIMODAL || model == BURSTS) *low = *high = 1 + 0.3186394 * cv;
    if (model == QUANTISED) *low = 2016, *high = 1984;
}

// Computes an interval from block medians: ranks 2 and 9 of the medians of 10 consecutive blocks of samples. If
// the block medians are independent, this interval contains the true median in 97.9 % of the cases. The tests
// compare the width of kbench's interval with the width of the interval from block medians. For autocorrelated
// samples, the interval from block medians is invalid, and the tests must detect this.
static void block_interval(int n, double* scratch, double* lo, double* hi) {
    double blocks[KBI_STATS_BLOCKS];
    kbi_block_medians(sample, n, scratch, blocks);
    kbi_sort(blocks, KBI_STATS_BLOCKS);
    *lo = blocks[1], *hi = blocks[8];
}

typedef struct held {
    // percent: percentage of kbench's intervals that contain the true median
    // blocks: percentage of the intervals from block medians that contain the true median
    // enough: percentage of runs whose effective sample size is large enough
    // width: mean width of kbench's intervals divided by the mean width of the intervals from block medians
    double percent, blocks, enough, width;
} held;

static held hold(int model, int n, int runs) {
    static double scratch[2000];
    held h = { 0, 0, 0, 0 };
    double width = 0, block_width = 0;
    seed((uint32_t)model, (uint32_t)n);
    for (int r = 0; r < runs; r++) {
        double low, high, lo, hi;
        draw(model, n, model == LOGNORMAL ? 0.5 : 0.05, &low, &high);
        const double worth = kbi_median_interval(sample, n, kbi_median_of(sample, n, scratch), scratch, &lo, &hi);
        h.percent += 100.0 / runs * (lo <= low && high <= hi);
        h.enough += 100.0 / runs * (worth >= KBI_STATS_ENOUGH);
        width += hi - lo;
        block_interval(n, scratch, &lo, &hi);
        h.blocks += 100.0 / runs * (lo <= low && high <= hi);
        block_width += hi - lo;
    }
    h.width = width / block_width;
    return h;
}

static void test_median(void) {
    const int sizes[] = { 30, 100, 1000 };
    show("median of one process        n   held %%   block medians   worth >= 6   width / theirs\n");
    for (int model = 0; model < MODELS; model++) {
        for (int i = 0; i < 3; i++) {
            const int n = sizes[i], runs = test_rounds(n < 1000 ? 4000 : 1500);
            const held h = hold(model, n, runs);
            const double bar = model <= QUANTISED ? 93 : model == WANDER && n == 30 ? 85 : 90;
            show("  %-20s %9d  %7.1f  %14.1f  %11.1f  %15.2f\n", model_name[model], n, h.percent, h.blocks, h.enough,
                 h.width);
            CHECK_THAT(at_least(h.percent, bar, runs), "%s, n %d: held %.1f %%, not %.0f", model_name[model], n,
                       h.percent, bar);
            if (model == NORMAL)
                CHECK_THAT(h.width <= 1.3, "n %d: %.2f times the width of the block interval", n, h.width);
            if (model <= QUANTISED)
                CHECK_THAT(h.enough >= 90, "%s, n %d: effective sample size too small", model_name[model], n);
            // negative control: for autocorrelated samples the block-median interval is invalid, and at_least()
            // must be false
            if (model == AR9 && n == 30)
                CHECK_THAT(!at_least(h.blocks, bar, runs), "%.1f %% of block-median intervals are valid",
                           h.blocks);
        }
    }
}

// Sequential stopping checks the width of the interval after every few samples.
static void test_stopping(void) {
    static const int models[] = { NORMAL, LOGNORMAL, AR3, AR6, AR9 };
    static double scratch[2000];
    const int runs = test_rounds(1000);
    show("stopped at 0.5 %%             cv   held %%   samples\n");
    for (int i = 0; i < 5; i++) {
        for (int wide = 0; wide < 2; wide++) {
            const double cv = wide ? 0.02 : 0.01;
            double percent = 0, samples = 0;
            seed((uint32_t)(100 + models[i]), (uint32_t)wide);
            for (int r = 0; r < runs; r++) {
                double low, high, lo, hi;
                int64_t n = 30;
                draw(models[i], 2000, cv, &low, &high);
                while (n < 2000 && !(kbi_precision_of(sample, n) <= 0.005))
                    n = KBI_MIN(n + KBI_MAX((int64_t)8, n / 10), (int64_t)2000);
                kbi_median_interval(sample, n, kbi_median_of(sample, n, scratch), scratch, &lo, &hi);
                percent += 100.0 / runs * (lo <= low && high <= hi);
                samples += (double)n / runs;
            }
            show("  %-20s %7.0f %%  %7.1f  %8.0f\n", model_name[models[i]], 100 * cv, percent, samples);
            CHECK_THAT(at_least(percent, 90, runs), "%s, cv %.2f, stopped: held %.1f %%", model_name[models[i]], cv,
                       percent);
        }
    }
}

static void test_shared_error(void) {
    static double scratch[2000];
    const int runs = test_rounds(4000);
    show("with an error in common    sd   held %%   without adding it\n");
    for (int i = 0; i < 3; i++) {
        const double sd = i == 0 ? 0.0005 : i == 1 ? 0.002 : 0.01;
        double percent = 0, without = 0;
        seed(200, (uint32_t)i);
        for (int r = 0; r < runs; r++) {
            double low, high, lo, hi, error = sd * normal();
            draw(NORMAL, 100, 0.01, &low, &high);
            for (int k = 0; k < 100; k++) sample[k] += error;
            const double median = kbi_median_of(sample, 100, scratch);
            kbi_median_interval(sample, 100, median, scratch, &lo, &hi);
            without += 100.0 / runs * (lo <= 1 && 1 <= hi);
            kbi_interval_add(median, sd, &lo, &hi);
            percent += 100.0 / runs * (lo <= 1 && 1 <= hi);
        }
        show("  normal, n 100       %6.2f %%  %7.1f  %18.1f\n", 100 * sd, percent, without);
        CHECK_THAT(at_least(percent, 93, runs), "sd %.4f: %.1f %% of intervals are valid", sd, percent);
        if (i == 2)
            CHECK_THAT(!at_least(without, 93, runs), "%.1f %% of intervals are valid without the common error",
                       without);
    }
}

// -- processes ---------------------------------------------------------------------------------------------

enum { EQUAL, LOG_VARIANCES, TENTH, WORLDS };
static const char* const world_name[] = { "equal variances", "log-normal variances", "noise x 3 in a tenth" };

typedef struct spreads {
    // held: percentage of kbench's intervals that contain the true value
    // noisy: percentage of kbench's intervals that contain the true value, in cases with three times the scatter
    // plain: percentage of kbench's intervals that contain the median of 15 other processes
    // next: the same percentage after each interval is widened by the error of the median of 15 other processes
    // own: percentage of intervals computed from the variance of a single case that contain the true value
    // width: mean width of kbench's intervals, divided by the mean width of intervals from a single case
    double held, noisy, next, plain, own, width;
    int runs, noisy_runs;
} spreads;

// Simulates `runs` runs of `cases` cases, whose random times are between 2 us and 5 ms. Each value is the
// logarithm of the median that one process measured. Each interval is compared with the true value, and with the
// median of 15 processes that did not contribute to the interval.
static spreads spread(int world, int cases, int processes, int runs) {
    static double values[64 * 16], time[64], sd[64];
    static kbi_spread pooled[64], alone;
    spreads s = { 0, 0, 0, 0, 0, 0, 0, 0 };
    double width = 0, own_width = 0, quantile = kbi_student_quantile(0.975, processes - 1);
    seed((uint32_t)(300 + world), (uint32_t)(cases * 100 + processes));
    for (int r = 0; r < runs; r++) {
        bool noisy[64];
        for (int i = 0; i < cases; i++) {
            time[i] = 2 * pow(2500, uniform());
            noisy[i] = world == TENTH && uniform() < 0.1;
            sd[i] = 0.004 * pow(time[i], -0.15) * (noisy[i] ? 3 : 1);
            if (world == LOG_VARIANCES) sd[i] *= exp(0.5 * normal());
            for (int p = 0; p < processes; p++) values[i * processes + p] = sd[i] * normal();
        }
        kbi_spread_of(values, processes, cases, time, 0, pooled);
        for (int i = 0; i < cases; i++) {
            double others[15], scratch[15];
            const bool holds = pooled[i].lo <= 0 && 0 <= pooled[i].hi;
            kbi_spread_own(values + i * processes, processes, time[i], &alone);
            const double reach = quantile * alone.sd / sqrt(processes);
            for (int p = 0; p < 15; p++) others[p] = sd[i] * normal();
            const double median = kbi_median_of(others, 15, scratch);
            const double room = sqrt(1 + processes * 1.5707963 / 15);
            s.held += holds, s.noisy += holds && noisy[i], s.noisy_runs += noisy[i], s.runs++;
            s.own += fabs(alone.mean) <= reach;
            s.plain += pooled[i].lo <= median && median <= pooled[i].hi;
            s.next += fabs(median - pooled[i].mean) <= room * (pooled[i].hi - pooled[i].mean);
            width += log(pooled[i].hi - pooled[i].lo), own_width += log(2 * reach);
        }
    }
    s.noisy *= 100.0 / KBI_MAX(s.noisy_runs, 1);
    s.held *= 100.0 / s.runs, s.next *= 100.0 / s.runs, s.plain *= 100.0 / s.runs, s.own *= 100.0 / s.runs;
    s.width = exp((width - own_width) / s.runs);
    return s;
}

static void test_processes(void) {
    const int counts[] = { 3, 5, 10 };
    show("fresh processes                 N  cases   held %%   noisy ones   own variance   width / its   "
         "median of 15 others   with its own error\n");
    for (int world = 0; world < WORLDS; world++) {
        for (int i = 0; i < 3; i++) {
            for (int many = 0; many < 3; many++) {
                const int cases = many == 0 ? 1 : many == 1 ? 5 : 30;
                const spreads s = spread(world, cases, counts[i], test_rounds(3000) / cases);
                show("  %-26s %4d  %5d  %7.1f  %11.1f  %13.1f  %12.2f  %20.1f  %19.1f\n", world_name[world],
                     counts[i], cases, s.held, s.noisy, s.own, s.width, s.plain, s.next);
                CHECK_THAT(at_least(s.held, 94, s.runs), "%s, %d processes, %d cases: %.1f %% of intervals valid",
                           world_name[world], counts[i], cases, s.held);
                CHECK_THAT(at_least(s.next, 94, s.runs),
                           "%s, %d processes, %d cases: %.1f %% of intervals contain the median of 15 others",
                           world_name[world], counts[i], cases, s.next);
                if (world == TENTH && cases > 1)
                    CHECK_THAT(at_least(s.noisy, 85, s.noisy_runs),
                               "%d processes, %d cases: %.1f %% of the noisy cases' intervals are valid", counts[i],
                               cases, s.noisy);
                if (world == EQUAL && cases == 30 && counts[i] == 3)
                    CHECK_THAT(s.width < 0.9, "pooling gives %.2f times the unpooled width", s.width);
            }
        }
    }
}

// The scatter is skewed, or comes from two placements of the data, from a coarse timer, or from medians of
// autocorrelated samples. Values are scaled to standard deviation 1 and mean 0.
enum { SKEWED, TWO_PLACES, RARE_PLACE, STEPS, OF_AR, SCATTERS };
static const char* const scatter_name[] = { "log-normal", "two placements", "one slow process in ten",
                                            "steps of 2 sd", "medians of AR(1) 0.9" };
static double scattered(int scatter) {
    static double scratch[200];
    double low, high, z;
    switch (scatter) {
    case SKEWED: return (exp(0.7 * normal()) - exp(0.245)) / (exp(0.245) * sqrt(exp(0.49) - 1));
    case TWO_PLACES: return uniform() < 0.5 ? -1 + 0.1 * normal() : 1 + 0.1 * normal();
    case RARE_PLACE: z = uniform() < 0.1 ? 0.9 : -0.1; return (z + 0.03 * normal()) / sqrt(0.09 + 0.0009);
    case STEPS: return 2 * floor(normal() / 2 + 0.5) / 1.04;
    default: draw(AR9, 60, 1, &low, &high); return (kbi_median_of(sample, 60, scratch) - 1) / 0.53;
    }
}

typedef struct outcomes {
    double mean, next, alarms,
        // In percent. mean, next: cases whose interval contains the mean of the distribution, or the median of 15
        // other processes; alarms: comparisons that call equal implementations different; found: comparisons that
        // find a difference of 2 %
        found;
    int runs;
} outcomes;

// Simulates five processes of 30 cases.
static outcomes scatter_of(int scatter, int runs) {
    enum { CASES = 30, EACH = 5 };
    static double values[4][CASES * EACH], time[CASES];
    static kbi_spread spreads_of[4][CASES];
    outcomes o = { 0, 0, 0, 0, runs * CASES };
    const double sd = 0.005;
    seed(500, (uint32_t)scatter);
    for (int r = 0; r < runs; r++) {
        for (int i = 0; i < CASES; i++) time[i] = 2 * pow(2500, uniform());
        // 0: times of the baseline; 1 to 3: ratios to the A/A control, to an equal implementation and to a slower
        // implementation
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < CASES * EACH; i++) values[k][i] = sd * scattered(scatter) - (k == 3 ? 0.02 : 0);
            kbi_spread_of(values[k], EACH, CASES, time, k ? 0 : kbi_prediction_variance, spreads_of[k]);
        }
        for (int i = 0; i < CASES; i++) {
            double others[15], scratch[15];
            const kbi_spread *s = &spreads_of[0][i], *self = &spreads_of[1][i];
            const double reach = kbi_spread_reach(s, 0.05, 0), noise = kbi_noise_floor(exp(self->lo), exp(self->hi));
            for (int p = 0; p < 15; p++) others[p] = sd * scattered(scatter);
            const double median = kbi_median_of(others, 15, scratch);
            o.mean += fabs(s->mean) <= reach, o.next += s->lo <= median && median <= s->hi;
            for (int k = 2; k < 4; k++) {
                const kbi_spread* ratio = &spreads_of[k][i];
                const kb_verdict is = kbi_judge_ratio(exp(ratio->lo), exp(ratio->hi), kbi_equivalence, noise);
                if (k == 2) o.alarms += is == KB_FASTER || is == KB_SLOWER;
                if (k == 3) o.found += is == KB_SLOWER;
            }
        }
    }
    o.mean *= 100.0 / o.runs, o.next *= 100.0 / o.runs, o.alarms *= 100.0 / o.runs, o.found *= 100.0 / o.runs;
    return o;
}

// The t interval of five processes has a coverage of 95 % only if the scatter between the processes is normal.
// test_scatter uses five other distributions of the process times, to which kbench was not tuned. The order below
// is that of scatter_name. The interval contains the median of 15 other processes in 97, 82, 98, 99 and 97 % of
// the cases. It is only 82 % if the times of half of the processes are near a second value, because the median
// then jumps between the two values.
// The interval contains the mean of the distribution in 92, 94, 41, 99 and 97 % of the cases. It is 41 % if one
// process in ten is slow: 59 of 100 sets of five processes contain no slow process. A slowdown of 2 %, which is
// four standard deviations of a process's time, is found in 92, 100, 84, 93 and 98 % of the cases. Equal
// implementations are never reported as different.
static void test_scatter(void) {
    static const struct {
        double mean, next, found;
    } bars[SCATTERS] = { { 91, 95, 90 }, { 92, 80, 95 }, { 38, 95, 81 }, { 95, 95, 91 }, { 95, 95, 95 } };
    show("five processes, 30 cases   mean held %%   median of 15 others   equal kernels different   2 %% found\n");
    for (int scatter = 0; scatter < SCATTERS; scatter++) {
        const outcomes o = scatter_of(scatter, test_rounds(400));
        const char* name = scatter_name[scatter];
        show("  %-24s %11.1f %21.1f %24.1f %11.1f\n", name, o.mean, o.next, o.alarms, o.found);
        CHECK_THAT(at_least(o.mean, bars[scatter].mean, o.runs), "%s: %.1f %% of intervals contain the mean", name,
                   o.mean);
        CHECK_THAT(at_least(o.next, bars[scatter].next, o.runs),
                   "%s: %.1f %% of intervals contain the median of 15 other processes", name, o.next);
        CHECK_THAT(at_most(o.alarms, 5, o.runs), "%s: %.1f %% of equal implementations are called different", name,
                   o.alarms);
        CHECK_THAT(at_least(o.found, bars[scatter].found, o.runs),
                   "%s: a slowdown of 2 %% is found in %.1f %% of the cases", name, o.found);
        // negative control: with one slow process in ten, too few intervals contain the mean, so at_least() must
        // be false
        if (scatter == RARE_PLACE)
            CHECK_THAT(!at_least(o.mean, 90, o.runs), "%s: %.1f %% of intervals contain the mean", name, o.mean);
    }
}

// -- comparisons ----------------------------------------------------------------------------------------------

enum { EVEN, TAILS, SLOTS, ROUNDS, DRIFT, STEP, NOISES };
static const char* const noise_name[] = { "normal",           "t, 3 df",      "slots AR(1) 0.6",
                                          "rounds AR(1) 0.6", "drift of 3 %", "step of 2 %" };
enum { ARMS = 9 };
static kbi_member arm[ARMS];

typedef struct verdicts {
    // different: percentage of comparisons that report a difference of equal implementations
    // interval: percentage of comparisons of equal implementations whose interval excludes the ratio 1
    // found: percentage of comparisons that find the slower implementation
    // equivalent: percentage of comparisons in which equal implementations get the verdict EQUIVALENT
    // rounds: mean number of rounds
    double different, interval, found, equivalent, rounds;
} verdicts;

// Simulates one comparison of a baseline, its A/A control and `others` implementations. The first implementation
// after the baseline takes longer by the relative amount `gain`. `sd` is the standard deviation of the logarithm
// of the ratio of times in one round. A comparison has at most 64 rounds. If `fixed` is not 0, the comparison has
// exactly `fixed` rounds, without sequential stopping. The precision of the samples is assumed to be sufficient,
// so only the ratios decide when a comparison ends.
static void comparison(int noise, int others, double gain, double sd, int fixed, uint64_t number, verdicts* v) {
    static kbi_machine machine;
    kbi_recipe recipe;
    kbi_comparison c;
    double state = normal(), own[ARMS];
    int order[KBI_SLOTS];
    kbi_recipe_default(&recipe);
    memset(&c, 0, sizeof c);
    c.n = others + 1, c.slots = c.n + 1, c.recipe = &recipe;
    for (int i = 0; i < c.slots; i++) c.members[i] = i < c.n ? &arm[i] : &arm[ARMS - 1];
    recipe.rounds = fixed;
    for (int i = 0; i < ARMS; i++) {
        own[i] = normal();
        arm[i].run.recipe = &recipe, arm[i].run.machine = &machine, arm[i].run.m.n = recipe.max_samples;
    }
    do {
        const int slots = c.slots;
        kbi_slot_order(order, slots, c.rounds, number);
        for (int k = 0; k < slots; k++) {
            const int i = order[k] < c.n ? order[k] : ARMS - 1;
            const double at = (c.rounds + (double)k / slots) / 64;
            double z = noise == TAILS ? heavy() : normal();
            if (noise == SLOTS) z = state = 0.6 * state + 0.8 * z;
            if (noise == ROUNDS) z = own[i] = 0.6 * own[i] + 0.8 * z;
            z = z * sd * sqrt(0.5) + (i == 1 ? gain : 0);
            if (noise == DRIFT) z += 0.03 * at;
            if (noise == STEP && at > 0.4) z += 0.02;
            arm[i].ns[c.rounds] = 20000 * exp(z);
        }
        c.rounds++;
    } while (!kbi_comparison_enough(&c, 0));
    const double alpha = 0.05 / others;
    const kbi_estimate control = kbi_rounds_ratio(arm[0].ns, 0, arm[ARMS - 1].ns, 0, c.rounds, 0.05);
    const double floor_ratio = kbi_noise_floor(control.low, control.high);
    bool different = false, outside = false;
    for (int i = 1; i < c.n; i++) {
        const kbi_estimate q = kbi_rounds_ratio(arm[0].ns, 0, arm[i].ns, 0, c.rounds, alpha);
        const kb_verdict is = kbi_judge_ratio(q.low, q.high, kbi_equivalence, floor_ratio);
        if (i == 1) v->found += is == KB_SLOWER;
        if (i == 1 && gain != 0) continue;
        different |= is == KB_FASTER || is == KB_SLOWER;
        outside |= q.low > 1 || q.high < 1;
        v->equivalent += (is == KB_EQUIVALENT) / (double)others;
    }
    v->different += different, v->interval += outside, v->rounds += c.rounds;
}

static verdicts comparisons(int noise, int others, double gain, double sd, int fixed, int runs) {
    verdicts v = { 0, 0, 0, 0, 0 };
    seed((uint32_t)(400 + noise * 10 + others), (uint32_t)(1e6 * (sd + gain) + fixed));
    for (int r = 0; r < runs; r++) comparison(noise, others, gain, sd, fixed, (uint64_t)r, &v);
    v.different *= 100.0 / runs, v.interval *= 100.0 / runs, v.found *= 100.0 / runs;
    v.equivalent *= 100.0 / runs, v.rounds /= runs;
    return v;
}

// With sequential stopping, a comparison ends when its intervals are narrow, whatever the sign of the difference.
// Sequential stopping hardly raises the rate of false alarms above 5 %, as the column "interval alone" shows.
// Autocorrelated rounds make the interval invalid, but not the verdict. A verdict "different" requires a
// difference that exceeds the difference between the baseline and its A/A control, and an interval that excludes a
// difference of 1 %.
static void test_comparisons(void) {
    const int others[] = { 1, 3, 7 }, runs = test_rounds(2000);
    show("comparisons                sd  others   equal kernels called different %%   interval alone   fixed at 32 rounds"
         "   EQUIVALENT   rounds   2 %% found\n");
    for (int noise = 0; noise < NOISES; noise++) {
        for (int i = 0; i < 3; i++) {
            for (int wide = 0; wide < (noise == EVEN ? 2 : 1); wide++) {
                const double sd = wide ? 0.02 : 0.01;
                const verdicts equal = comparisons(noise, others[i], 0, sd, 0, runs);
                const verdicts slower = comparisons(noise, others[i], 0.02, sd, 0, runs / 2);
                const verdicts once = comparisons(noise, others[i], 0, sd, 32, noise == EVEN ? runs : runs / 4);
                show("  %-16s %5.0f %%  %6d  %32.1f  %15.1f  %19.1f  %11.1f  %7.1f  %10.1f\n", noise_name[noise],
                     100 * sd, others[i], equal.different, equal.interval, once.interval, equal.equivalent,
                     equal.rounds, slower.found);
                CHECK_THAT(at_most(equal.different, 5, runs), "%s, sd %.2f, %d others: %.1f %% called different",
                           noise_name[noise], sd, others[i], equal.different);
                if (noise != ROUNDS)
                    CHECK_THAT(at_most(equal.interval, 5, runs), "%s, sd %.2f, %d others: %.1f %% of intervals",
                               noise_name[noise], sd, others[i], equal.interval);
                if (!wide)
                    CHECK_THAT(at_least(slower.found, 95, runs / 2), "%s, %d others: 2 %% found in %.1f %%",
                               noise_name[noise], others[i], slower.found);
            }
        }
    }
    // negative control: with autocorrelated rounds, over 5 % of the intervals are invalid, so at_most() must be
    // false
    const verdicts blind = comparisons(ROUNDS, 7, 0, 0.01, 0, runs);
    CHECK_THAT(!at_most(blind.interval, 5, runs), "autocorrelated rounds: %.1f %% of intervals invalid",
               blind.interval);
}

int main(int argc, char** argv) {
    verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    test_median();
    test_stopping();
    test_shared_error();
    test_processes();
    test_scatter();
    test_comparisons();
    return test_end();
}
