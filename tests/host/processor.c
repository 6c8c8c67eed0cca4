// SPDX-License-Identifier: MIT OR Unlicense
// Tests the information of the Linux kernel about the processor, read from folders with the layout of /sys and
// /proc, and the messages if the information is missing.
#include "test.h"
#include <stdlib.h>
#include "guarded.h"
#include "kit.h"

static char root[200]; // path of a folder, next to this program, that imitates /sys and /proc

static void put(const char* path, const char* text) {
    char whole[300];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char* p = whole + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(whole, 0777);
        *p = '/';
    }
    FILE* f = fopen(whole, "w");
    if (!CHECK(f != NULL)) return;
    fprintf(f, "%s\n", text);
    fclose(f);
}

static void test_clock(void) {
    char governor[32] = "";
    // without the file scaling_governor, the governor is unknown (as in a virtual machine)
    CHECK(!kbi_cpu_says(root, 1, "scaling_governor", governor, (int)sizeof governor));
    CHECK(isnan(kbi_cpu_mhz(root, 1)));
    CHECK_INT(kbi_cpu_boost(root), -1);
    kbi_machine m;
    kbi_machine_clear(&m, "cpu");
    kbi_machine_cpus(&m, root);
    CHECK_STR(m.governor, "");
    CHECK_INT(m.boost, -1);
    put("cpu1/cpufreq/scaling_governor", "powersave");
    put("cpu1/cpufreq/scaling_cur_freq", "2345678");
    CHECK(kbi_cpu_says(root, 1, "scaling_governor", governor, (int)sizeof governor));
    CHECK_STR(governor, "powersave");
    CHECK_REAL(kbi_cpu_mhz(root, 1), 2345.678, 1e-12);
    CHECK(isnan(kbi_cpu_mhz(root, 0)));
    put("cpu1/cpufreq/scaling_cur_freq", "<unknown>");
    CHECK(isnan(kbi_cpu_mhz(root, 1)));
    put("cpufreq/boost", "1"); // most drivers, such as acpi-cpufreq, have a file named boost
    CHECK_INT(kbi_cpu_boost(root), 1);
    put("cpufreq/boost", "0");
    CHECK_INT(kbi_cpu_boost(root), 0);
    put("intel_pstate/no_turbo", "0"); // no_turbo has the opposite meaning: 0 means that boost is on
    CHECK_INT(kbi_cpu_boost(root), 1);
    put("intel_pstate/no_turbo", "1");
    CHECK_INT(kbi_cpu_boost(root), 0);
}

// The governor and the clock of a record belong to the processor on which the thread runs.
static void test_here(void) {
    kbi_cpus allowed, one;
    kbi_machine m;
    kbi_measured now;
    kbi_machine_clear(&m, "cpu"), kbi_measured_clear(&now);
    if (!kbi_cpus_allowed(&allowed)) return SKIP("the system does not report its processors");
    for (int i = 0, tried = 0; i < KBI_CPUS && tried < 4; i++) {
        char path[60], text[40];
        if (!kbi_cpus_has(&allowed, i)) continue;
        memset(&one, 0, sizeof one);
        one.words[i / KBI_CPUS_IN] = 1ul << i % KBI_CPUS_IN;
        if (!kbi_cpus_pin(&one)) continue;
        tried++;
        CHECK_INT(kbi_cpu_now(), i);
        snprintf(path, sizeof path, "cpu%d/cpufreq/scaling_governor", i);
        snprintf(text, sizeof text, "of_%d", i);
        put(path, text);
        kbi_machine_cpus(&m, root);
        CHECK_STR(m.governor, text);
        CHECK_INT(m.boost, 0);
        CHECK_STR(m.cpus, kbi_cpus_show(&one, text, sizeof text));
        snprintf(path, sizeof path, "cpu%d/cpufreq/scaling_cur_freq", i);
        snprintf(text, sizeof text, "%d000", 1000 + i);
        put(path, text);
        kbi_load then = kbi_load_now(root);
        kbi_note_load(&now, &then, root, root);
        CHECK_REAL(now.cpu_clock, 1000 + i, 1e-12);
    }
    CHECK(kbi_cpus_pin(&allowed));
}

// The load of the processors is measured from the first sample on.
static void test_load(void) {
    kbi_measured m;
    kbi_measured_clear(&m);
    kbi_load then = kbi_load_now(root); // the folder has no files, so all values come from getrusage
    CHECK(isnan(then.waited) && isnan(then.busy) && isnan(then.stolen));
    then.at -= 1000000000;
    kbi_note_load(&m, &then, root, root);
    CHECK(isnan(m.cpu_waited) && isnan(m.cpu_stolen));
    CHECK(m.preemptions >= 0);
    put("stat", "cpu  1000 10 200 90000 50 5 15 70 8 9\ncpu0 1 2 3 4 5 6 7 8 9 10");
    put("thread-self/schedstat", "7000000000 2000000000 77");
    then = kbi_load_now(root);
    CHECK_REAL(then.busy, 1300, 0);
    CHECK_REAL(then.stolen, 70, 0);
    CHECK_REAL(then.waited, 2e9, 0);
    put("stat", "cpu  1060 10 210 99000 950 5 15 100 8 9");
    put("thread-self/schedstat", "7700000000 2250000000 80");
    then.at = kbi_now() - 1000000000;
    kbi_note_load(&m, &then, root, root);
    CHECK_THAT(m.cpu_waited > 20 && m.cpu_waited <= 25, "waited %g %%", m.cpu_waited); // 0.25 s of a little over 1 s
    CHECK_REAL(m.cpu_stolen, 30, 1e-12);                                               // 30 ticks of 100
    then = kbi_load_now(root);
    then.at -= 1000000000;
    kbi_note_load(&m, &then, root, root);
    CHECK_REAL(m.cpu_stolen, 0, 0);
    put("stat", "cpu  1060 10 210");
    CHECK(isnan(kbi_load_now(root).busy));
}

static void test_lists(void) {
    static const char* const good[][2] = {
        { "0", "0" },      { "3,1", "1,3" }, { "0-3", "0-3" }, { "0,1,2", "0-2" }, { "62-65,8191", "62-65,8191" },
        { "5-5,4", "4-5" }
    };
    static const char* const bad[] = {
        "", "x", "1,", ",1", "1-", "-1", "3-1", "1--2", "8192", "1 2", "0x1", "1.5", "99999999999999999999"
    };
    kbi_cpus c;
    char text[80];
    for (int i = 0; i < KBI_COUNT(good); i++) {
        CHECK(kbi_cpus_parse(good[i][0], &c));
        CHECK_STR(kbi_cpus_show(&c, text, sizeof text), good[i][1]);
    }
    for (int i = 0; i < KBI_COUNT(bad); i++) CHECK_THAT(!kbi_cpus_parse(bad[i], &c), "'%s' is accepted", bad[i]);
    CHECK(kbi_cpus_parse("0,2,4,6,8,10,12,14,16", &c));
    CHECK_STR(kbi_cpus_show(&c, text, 16), "0,2,4,6,8,...");
}

int main(int argc, char** argv) {
    snprintf(root, sizeof root, "%.180s.XXXXXX", argc > 0 ? argv[0] : "sysfs");
    if (!mkdtemp(root)) return SKIP("cannot create a temporary folder"), test_end();
    test_clock();
    test_here();
    test_load();
    test_lists();
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK(system(command) == 0);
    return test_end();
}
