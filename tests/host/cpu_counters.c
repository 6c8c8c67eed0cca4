// SPDX-License-Identifier: MIT OR Unlicense
// Tests the hardware counters of the CPU on a simulated Linux kernel. The environment variable VIRTUAL_PERF
// selects whether the simulated Linux kernel supports, forbids or hides the counters, or lacks the system call.
// Without arguments, this program is the test; with arguments, it is a benchmark program.
// a program of its own: this file replaces functions of the C library.
#define _GNU_SOURCE
#include "test.h"
#include "json.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static struct {
    int file;
    // event: number of the counted event; left: value of the counter without the counts of the ioctl calls
    uint64_t event, left;
} opened[16];
static int n_opened;

static long virtual_perf(const uint32_t* attribute, int group) {
    const char* how = getenv("VIRTUAL_PERF");
    char path[] = "/tmp/kbench_perf_XXXXXX";
    uint64_t event = *(const uint64_t*)(const void*)(attribute + 2);
    if (!how || attribute[1] != 64) return errno = ENOSYS, -1;
    if (strcmp(how, "forbids") == 0) return errno = EACCES, -1;
    if (strcmp(how, "hides") == 0 && attribute[0] == 0) return errno = ENOENT, -1;
    if (strcmp(how, "lacks") == 0) return errno = ENOSYS, -1;
    if (event == 8 && strcmp(how, "stalls") != 0) return errno = ENOENT, -1; // most processors cannot count stalls
    // the slots event must be the leader of its group
    if (attribute[0] == 4 && group < 0 && event != 0x400) return errno = EINVAL, -1;
    int file = mkstemp(path);
    unlink(path);
    opened[n_opened % 16].file = file;
    opened[n_opened++ % 16].event = attribute[0] == 4 ? (event == 0x400    ? 900
                                                         : event == 0x8300 ? 400
                                                                           : 200)
                                    : attribute[0]    ? 0
                                                      : event;
    return file;
}
static long virtual_syscall(long number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t group) {
    if (number == SYS_perf_event_open && (b != 0 || (int)c != -1)) return errno = EINVAL, -1; // pid 0, cpu -1: any CPU
    if (number == SYS_perf_event_open) return virtual_perf((const uint32_t*)a, (int)group);
    return number == SYS_socketpair ? syscall(number, a, b, c, group) : (errno = ENOSYS, -1);
}
static int virtual_ioctl(int file, unsigned long call, void* argument);
static int virtual_open(const char* path, int flags, ...) {
    static const char* const files[][2] = { { "cpu_core/type", "4\n" },
                                            { "cpu_core/events/slots", "event=0x00,umask=0x4\n" },
                                            { "cpu_core/events/topdown-be-bound", "event=0x00,umask=0x83\n" },
                                            { "cpu_core/events/topdown-mem-bound", "event=0x00,umask=0x87\n" } };
    static const char root[] = "/sys/bus/event_source/devices/";
    const char* how = getenv("VIRTUAL_PERF");
    if (strncmp(path, root, sizeof root - 1) != 0) {
        va_list rest;
        va_start(rest, flags);
        int file = open(path, flags, flags & O_CREAT ? va_arg(rest, int) : 0);
        va_end(rest);
        return file;
    }
    for (int i = 0; i < 4 && how && strncmp(how, "slots", 5) == 0; i++) {
        char copy[] = "/tmp/kbench_perf_XXXXXX";
        if (strcmp(path + sizeof root - 1, files[i][0]) != 0 || (i == 3 && strcmp(how, "slots_old") == 0)) continue;
        int file = mkstemp(copy);
        unlink(copy);
        if (file < 0 || write(file, files[i][1], strlen(files[i][1])) < 0 || lseek(file, 0, SEEK_SET) < 0) return -1;
        return file;
    }
    return errno = ENOENT, -1;
}
#define FIFTH(a, b, c, d, ...) (uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d)
#define syscall(number, ...) virtual_syscall((number), FIFTH(__VA_ARGS__, 0, 0, 0, 0))
// the macro also renames struct members called open, which is harmless
#define open virtual_open
#define ioctl(file, call, argument) virtual_ioctl((file), (unsigned long)(call), (void*)(uintptr_t)(argument))
#include "kit.h"
#undef ioctl
#undef syscall
#undef open

// In each run of the block, a counter increases by 100 plus the number of its event. Every counter is active for
// only half of the time, so kbench must double its value.
static int virtual_ioctl(int file, unsigned long call, void* argument) {
    for (int i = 0; i < 16 && call == KBI_PERF_DISABLE; i++) {
        const char* how = getenv("VIRTUAL_PERF");
        // events that the ioctl calls themselves add to the counter
        uint64_t calls = how && strcmp(how, "dear") == 0 ? 4000 : 0;
        uint64_t read[3] = { (uint64_t)kbi_perf.runs * (100 + opened[i].event) + calls, 2000, 1000 };
        if (opened[i].file == file && pwrite(file, read, sizeof read, 0) < 0) return -1;
    }
    return call >= KBI_PERF_ENABLE && call <= KBI_PERF_RESET ? 0 : ioctl(file, call, argument);
}

KBENCH(sum) {
    volatile int n = 50;
    KB_TIME(kb) {
        double s = 0;
        for (int i = 0; i < n; i++) s += i;
        kb_keep(s);
    }
}
KBENCH(resets) {
    KB_SAMPLE(kb) {
        KB_TIME(kb) {
            for (int i = 0; i < 1000; i++) kb_keep(i);
        }
    }
}

static const char* self;
static json_file file;
static char output[20000];
static void run(const char* how, const char* arguments) {
    char command[1000];
    json_free(&file);
    remove("build/test/host/perf.json");
    snprintf(
        command, sizeof command,
        "env COLUMNS=200 VIRTUAL_PERF=%s '%s' --fast --no-progress --json build/test/host/perf.json %s > build/test/host/perf.out "
        "2>&1",
        how, self, arguments);
    CHECK_INT(system(command), 0);
    FILE* f = fopen("build/test/host/perf.out", "r");
    output[f ? fread(output, 1, sizeof output - 1, f) : 0] = 0;
    if (f) fclose(f);
    file = json_read("build/test/host/perf.json", 0);
    CHECK_STR(file.error, "");
}
static double counted(int i, const char* name) {
    char key[100];
    const char *all = json_get(&file, i, "counters"), *at;
    snprintf(key, sizeof key, "\"%s\": ", name);
    at = all ? strstr(all, key) : NULL;
    return at ? strtod(at + strlen(key), NULL) : (double)NAN;
}
static void said(const char* what) { CHECK_THAT(strstr(output, what) != NULL, "no '%s' in: %.600s", what, output); }

static void test_config(void) {
    static const struct {
        const char* text;
        int good;
        uint64_t event;
    } rows[] = { { "event=0x00,umask=0x83", 1, 0x8300 },
                 { "event=0x3c", 1, 0x3c },
                 { "umask=0x1,event=0xa2", 1, 0x1a2 },
                 { "event=0xff,umask=0xff", 1, 0xffff },
                 { "event=0x100", 0, 0 },
                 { "event=0x1,umask=0x100", 0, 0 },
                 { "umask=0x1", 0, 0 },
                 { "event=?,umask=0x1", 0, 0 },
                 { "event=0x1,umask=?", 0, 0 },
                 { "", 0, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t event = 0;
        CHECK_THAT(kbi_perf_config(rows[i].text, &event) == rows[i].good, "row %d", (int)i);
        if (rows[i].good) CHECK_INT(event, rows[i].event);
    }
    // kbench multiplies the number of runs of the block by 8 until all runs together take a millisecond
    static kbi_run run;
    run.kb.run = &run;
    static const struct {
        int64_t runs;
        int sampled, late, again;
    } ends[] = { { 1, 0, 0, 1 }, { 64, 0, 0, 1 },      { 1, 1, 0, 0 },
                 { 1, 0, 1, 0 }, { 1 << 24, 0, 0, 0 }, { (1 << 24) - 8, 0, 0, 1 } };
    for (int i = 0; i < KBI_PERF_ALL; i++) kbi_perf.files[i] = -1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        kbi_perf.runs = ends[i].runs, run.call.sampled = ends[i].sampled;
        kbi_perf.began = kbi_now() + (ends[i].late ? -1000001 : 1000000000);
        CHECK_THAT(kbi_perf_end(&run.kb) == ends[i].again, "end %d", (int)i);
        CHECK_INT(kbi_perf.runs, ends[i].again ? 8 * ends[i].runs : ends[i].runs);
    }
    run.call.sampled = false, kbi_perf.runs = 64;
    CHECK(kbi_perf_begin(&run.kb) == 64);
    run.call.sampled = true;
    CHECK(kbi_perf_begin(&run.kb) == 1);
}

int main(int argc, char** argv) {
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    test_config();
    run("good", "--counters");
    CHECK_INT(file.n, 2);
    for (int i = 0; i < file.n; i++) {
        CHECK_REAL(counted(i, "cycles"), 200, 1e-9);
        CHECK_REAL(counted(i, "instructions"), 202, 1e-9);
        CHECK_REAL(counted(i, "branch_misses"), 210, 1e-9);
        CHECK_REAL(counted(i, "cache_misses"), 206, 1e-9);
        CHECK_REAL(counted(i, "branches"), 208, 1e-9), CHECK_REAL(counted(i, "cache_references"), 204, 1e-9);
        CHECK_REAL(counted(i, "page_faults"), 200, 1e-9);
        CHECK(isnan(counted(i, "stalled_cycles")));
        CHECK(strtod(json_get(&file, i, "time_ms"), NULL) > 0);
    }
    CHECK(!strstr(output, "not profiled"));
    said(" cycles "), said(" 202");
    // The share of time bound by memory is reported only if the processor counts issue slots that waited for
    // memory.
    said("the share of time bound by memory is unknown: this processor counts neither topdown-be-bound nor");
    CHECK(isnan(counted(0, "backend_bound_pct")));
    run("stalls", "--op sum --counters");
    CHECK_REAL(counted(0, "stalled_cycles"), 216, 1e-9);
    CHECK_REAL(counted(0, "backend_bound_pct"), 108, 1e-9);
    said("108 % of the processor's issue slots waited for memory or execution units");
    run("slots", "--op sum --counters");
    CHECK_REAL(counted(0, "backend_bound_pct"), 50, 1e-9); // 500 of 1000 slots
    CHECK_REAL(counted(0, "memory_bound_pct"), 30, 1e-9);
    said("30 % of the processor's issue slots waited for memory");
    run("slots_old", "--op sum --counters");
    CHECK_REAL(counted(0, "backend_bound_pct"), 50, 1e-9);
    CHECK(isnan(counted(0, "memory_bound_pct")));
    said("50 % of the processor's issue slots waited for memory or execution units");
    // every ioctl call adds 4000 events; with many runs between two calls, the error per run is small
    run("dear", "--op sum --counters");
    CHECK_THAT(counted(0, "cycles") >= 200 && counted(0, "cycles") <= 1200, "%g cycles", counted(0, "cycles"));
    run("good", "--op sum");
    CHECK(isnan(counted(0, "cycles")));
    static const char* const rows[][2] = { { "forbids", "kernel.perf_event_paranoid=2" },
                                           { "hides", "virtual machines often hide them" },
                                           { "lacks", "perf_event_open: " } };
    for (int i = 0; i < 3; i++) {
        run(rows[i][0], "--counters");
        said("sum/impl=default is not profiled: "), said(rows[i][1]);
        CHECK(isnan(counted(0, "cycles")));
        CHECK(strtod(json_get(&file, 0, "time_ms"), NULL) > 0);
    }
    run("hides", "--counters --no-isolate");
    CHECK_REAL(counted(0, "page_faults"), 200, 1e-9);
    return test_end();
}
