// SPDX-License-Identifier: MIT OR Unlicense
// What is read of a machine beside its names, from files laid out as Linux lays them out; and what of two records' keeps
// their times from being compared.
#include "test.h"
#include <stdlib.h>
#include <sys/stat.h>
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

static char root[300];

static void put(const char* path, const char* text) {
    char full[600];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char* p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(full, 0777);
        *p = '/';
    }
    FILE* f = fopen(full, "w");
    if (f) fputs(text, f), fclose(f);
}

static const char* fact(const char* name) {
    static kbi_facts f;
    kbi_facts_read(&f, root);
    for (int i = 0; i < f.n; i++)
        if (strcmp(f.of[i].name, name) == 0) return f.of[i].value;
    return "";
}

static void test_files(void) {
    CHECK(!*fact("aslr"));
    CHECK(!*fact("cpu_limit"));
    put("/proc/sys/kernel/randomize_va_space", "2\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("/sys/devices/system/node/online", "0-1\n");
    put("/proc/cpuinfo", "processor\t: 0\nmicrocode\t: 0xd0003b9\nflags\t\t: fpu vme\n\nprocessor : 1\nflags : hypervisor\n");
    CHECK(strcmp(fact("aslr"), "2") == 0);
    CHECK(strcmp(fact("huge_pages"), "madvise") == 0);
    CHECK(strcmp(fact("numa_nodes"), "0-1") == 0);
    CHECK(strcmp(fact("microcode"), "0xd0003b9") == 0);
    CHECK(!*fact("hypervisor"));
    put("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor vme\n");
    CHECK(strcmp(fact("hypervisor"), "yes") == 0);
    put("/sys/class/dmi/id/sys_vendor", "Virtual Machines, Inc.\n");
    CHECK(strcmp(fact("hypervisor"), "Virtual Machines, Inc.") == 0);
    CHECK(!*fact("container"));
    put("/.dockerenv", "");
    CHECK(strcmp(fact("container"), "docker") == 0);
}

// the least that the process's own group or one above it leaves
static void test_limits(void) {
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    CHECK(!*fact("cpu_limit"));
    put("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    CHECK(strcmp(fact("cpu_limit"), "2.5") == 0);
    put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    CHECK(strcmp(fact("cpu_limit"), "2.5") == 0);
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    CHECK(strcmp(fact("cpu_limit"), "0.5") == 0);
    put("/proc/self/cgroup", "0::/\n");
    CHECK(strcmp(fact("cpu_limit"), "0.5") == 0);
    put("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/job\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    CHECK(!*fact("cpu_limit"));
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
    CHECK(strcmp(fact("cpu_limit"), "3") == 0);
    put("/proc/self/cgroup", "nothing of the kind\n");
    CHECK(!*fact("cpu_limit"));
}

// numbers are numbers in a record
static void test_record(void) {
    kbi_facts f;
    kb_result r;
    kbi_text t = { NULL, 0, 0 };
    memset(&f, 0, sizeof f);
    kbi_fact(&f, "aslr", "2");
    kbi_fact(&f, "cpu_limit", "0.5");
    kbi_fact(&f, "microcode", "0x10");
    kbi_fact(&f, "numa_nodes", "0-1");
    kbi_fact(&f, "empty", "");
    kbi_result_clear(&r);
    kbi_record_facts(&r, &f);
    kbi_json_params(&t, r.environment);
    CHECK_THAT(strcmp(t.s, "{\"aslr\": 2, \"cpu_limit\": 0.5, \"microcode\": \"0x10\", \"numa_nodes\": \"0-1\"}") == 0, "%s", t.s);
    kbi_text_free(&t);
    kb_result_free(&r);
}

static void test_differs(void) {
    kb_result a, b;
    kbi_result_clear(&a);
    kbi_result_clear(&b);
    const struct {
        const char** of[2];
        const char *values[2], *said; // NULL: they may be compared
    } rows[] = { { { &a.backend, &b.backend }, { "cpu", "cuda" }, "backend (cpu, cuda)" },
                 { { &a.gpu, &b.gpu }, { "A", "B" }, "GPU (A, B)" },
                 { { &a.gpu, &b.gpu }, { "A", NULL }, "GPU (A, none)" },
                 { { &a.driver, &b.driver }, { "550.1", "535.9" }, "driver (550.1, 535.9)" },
                 { { &a.driver, &b.driver }, { "550.1", "550.9" }, NULL },
                 { { &a.driver, &b.driver }, { "550.1", NULL }, NULL },
                 { { &a.cpu, &b.cpu }, { "P", "Q" }, "CPU (P, Q)" },
                 { { &a.mode, &b.mode }, { "hot", "cold" }, "mode (hot, cold)" },
                 { { &a.build, &b.build },
                   { "12, optimised", "12, not optimised" },
                   "optimisation (optimised, not optimised)" },
                 { { &a.build, &b.build }, { "12, optimised", "13, optimised; kbench: 13, not optimised" }, NULL },
                 { { &a.cpu_governor, &b.cpu_governor }, { "performance", "powersave" }, NULL },
                 { { &a.kernel_version, &b.kernel_version }, { "6.1", "6.2" }, NULL } };
    for (int i = 0; i < KBI_COUNT(rows); i++) {
        kbi_text what = { NULL, 0, 0 };
        *rows[i].of[0] = rows[i].values[0];
        *rows[i].of[1] = rows[i].values[1];
        bool differs = kbi_env_differs(&a, &b, &what);
        CHECK_THAT(differs == (rows[i].said != NULL), "row %d", i);
        CHECK_THAT(!rows[i].said || strcmp(rows[i].said, what.s) == 0, "row %d: %s", i, what.n ? what.s : "");
        *rows[i].of[0] = *rows[i].of[1] = NULL;
        kbi_text_free(&what);
    }
    kbi_text what = { NULL, 0, 0 };
    a.ecc = 1, b.ecc = 0;
    CHECK(kbi_env_differs(&a, &b, &what) && strcmp(what.s, "ECC (yes, no)") == 0);
    b.ecc = -1;
    CHECK(!kbi_env_differs(&a, &b, &what));
    kbi_text_free(&what);
    kb_result_free(&a);
    kb_result_free(&b);
}

int main(int argc, char** argv) {
    snprintf(root, sizeof root, "%.180s.XXXXXX", argc > 0 ? argv[0] : "facts");
    if (!mkdtemp(root)) return 2;
    test_files();
    test_limits();
    test_record();
    test_differs();
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0) return 2;
    return test_end();
}
