// SPDX-License-Identifier: MIT OR Unlicense
// The processor's counters, on a kernel that has them (here a fake one), forbids them, hides them or has no such call:
// VIRTUAL_PERF says which. Started without arguments this is the test; it starts itself with arguments.
#define _GNU_SOURCE
#include "test.h"
#include "json.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static struct {
    int file;
    uint64_t event, left; // what it counts a run; of another's ns
} opened[16];
static int n_opened;

static long virtual_perf(const uint32_t* attribute) {
    const char* how = getenv("VIRTUAL_PERF");
    char path[] = "/tmp/kbench_perf_XXXXXX";
    uint64_t event = *(const uint64_t*)(const void*)(attribute + 2);
    if (!how || attribute[1] != 64) return errno = ENOSYS, -1;
    if (strcmp(how, "forbids") == 0) return errno = EACCES, -1;
    if (strcmp(how, "hides") == 0 && attribute[0] == 0) return errno = ENOENT, -1;
    if (strcmp(how, "lacks") == 0) return errno = ENOSYS, -1;
    if (event == 8) return errno = ENOENT, -1; // few processors count stalls
    int file = mkstemp(path);
    unlink(path);
    opened[n_opened % 16].file = file;
    opened[n_opened++ % 16].event = attribute[0] ? 0 : event;
    return file;
}
static long virtual_syscall(long number, uintptr_t a, uintptr_t b) {
    (void)b; // pinning is nothing here
    return number == SYS_perf_event_open ? virtual_perf((const uint32_t*)a) : (errno = ENOSYS, -1);
}
static int virtual_ioctl(int file, unsigned long call, void* argument);
#define syscall(number, a, b, ...) virtual_syscall((number), (uintptr_t)(a), (uintptr_t)(b))
#define ioctl(file, call, argument) virtual_ioctl((file), (unsigned long)(call), (void*)(uintptr_t)(argument))
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#undef ioctl
#undef syscall

// At the end of its runs a counter stands at 100 and its event's number for each of them; half of the time it had to make
// room for others.
static int virtual_ioctl(int file, unsigned long call, void* argument) {
    for (int i = 0; i < 16 && call == KBI_PERF_DISABLE; i++) {
        uint64_t read[3] = { (uint64_t)kbi_perf.runs * (100 + opened[i].event), 2000, 1000 };
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
        KB_TIME(kb) { kb_keep(kb->seed); }
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
        "env VIRTUAL_PERF=%s '%s' --fast --no-progress --json build/test/host/perf.json %s > build/test/host/perf.out "
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

int main(int argc, char** argv) {
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    run("good", "--counters");
    CHECK_INT(file.n, 2);
    for (int i = 0; i < file.n; i++) { // a run of the block, and as if nobody else had wanted the counters
        CHECK_REAL(counted(i, "cycles"), 200, 1e-9);
        CHECK_REAL(counted(i, "instructions"), 202, 1e-9);
        CHECK_REAL(counted(i, "branch_misses"), 210, 1e-9);
        CHECK_REAL(counted(i, "cache_misses"), 206, 1e-9);
        CHECK(isnan(counted(i, "stalled_cycles")));
        CHECK(strtod(json_get(&file, i, "time_ms"), NULL) > 0);
    }
    CHECK(!strstr(output, "not looked into"));
    said("instructions 202");
    run("good", "--op sum");
    CHECK(isnan(counted(0, "cycles"))); // nobody asked
    static const char* const rows[][2] = { { "forbids", "kernel.perf_event_paranoid=2" },
                                           { "hides", "virtual machines often hide them" },
                                           { "lacks", "perf_event_open: " } };
    for (int i = 0; i < 3; i++) {
        run(rows[i][0], "--counters");
        said("sum/impl=default is not looked into: "), said(rows[i][1]);
        CHECK(isnan(counted(0, "cycles")));
        CHECK(strtod(json_get(&file, 0, "time_ms"), NULL) > 0);
    }
    run("hides", "--counters --no-isolate");
    CHECK_REAL(counted(0, "page_faults"), 200, 1e-9); // the kernel's own are there all the same
    return test_end();
}
