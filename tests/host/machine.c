// SPDX-License-Identifier: MIT OR Unlicense
// Tests the description of a machine, which is read from files in the formats of Linux. The test also covers which
// differences between the machines of two records prevent a comparison of times.
#include "test.h"
#include <stdlib.h>
#include <sys/stat.h>
#include "kit.h"

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
    static kb_result r;
    kb_result_free(&r), kbi_result_clear(&r);
    kbi_environment_read(&r, root);
    const kb_param* p = kbi_object_find(&r.environment, name);
    return p ? p->s : "";
}

static void test_files(void) {
    CHECK(!*fact("aslr"));
    CHECK(!*fact("cpu_limit"));
    put("/proc/sys/kernel/randomize_va_space", "2\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("/sys/devices/system/node/online", "0-1\n");
    put("/proc/cpuinfo",
        "processor\t: 0\nmicrocode\t: 0xd0003b9\nflags\t\t: fpu vme\n\nprocessor : 1\nflags : hypervisor\n");
    CHECK(strcmp(fact("aslr"), "2") == 0);
    CHECK(strcmp(fact("huge_pages"), "madvise") == 0);
    CHECK(strcmp(fact("numa_nodes"), "0-1") == 0);
    CHECK(strcmp(fact("microcode"), "0xd0003b9") == 0);
    CHECK(!*fact("hypervisor"));
    CHECK(!*fact("numa_balancing") && !*fact("smt") && !*fact("clock_source"));
    put("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor vme\n");
    CHECK(strcmp(fact("hypervisor"), "yes") == 0);
    put("/sys/class/dmi/id/sys_vendor", "Virtual Machines, Inc.\n");
    CHECK(strcmp(fact("hypervisor"), "Virtual Machines, Inc.") == 0);
    CHECK(!*fact("container"));
    put("/.dockerenv", "");
    CHECK(strcmp(fact("container"), "docker") == 0);
}

// The CPU limit of a process is the smallest cpu.max value of the process's own cgroup and of all its ancestors.
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
    put("/proc/self/cgroup", "no cgroup\n");
    CHECK(!*fact("cpu_limit"));
}

static void test_record(void) {
    kb_result r;
    kbi_text t = { NULL, 0, 0 };
    kbi_result_clear(&r);
    kbi_fact(&r, "aslr", "2");
    kbi_fact(&r, "cpu_limit", "0.5");
    kbi_fact(&r, "microcode", "0x10");
    kbi_fact(&r, "numa_nodes", "0-1");
    kbi_fact(&r, "empty", "");
    kbi_json_params(&t, r.environment);
    CHECK_THAT(strcmp(t.s, "{\"aslr\": 2, \"cpu_limit\": 0.5, \"microcode\": \"0x10\", \"numa_nodes\": \"0-1\"}") ==
                   0,
               "%s", t.s);
    kbi_text_free(&t);
    kb_result own;
    kbi_record_start(&own, &r);
    kbi_fact(&own, "bias", "fitted");
    CHECK_INT(own.environment.n, 5), CHECK_INT(r.environment.n, 4);
    CHECK_STR(kbi_object_text(&own.environment, "bias"), "fitted"), CHECK_REAL(kbi_object_number(&own.environment, "aslr"), 2, 0);
    kb_result_free(&own);
    kb_result_free(&r);
}

static void test_differs(void) {
    kb_result a, b;
    kbi_result_clear(&a);
    kbi_result_clear(&b);
    const struct {
        const char** of[2];
        const char *values[2], *said; // said: expected message; NULL: the times of the two records may be compared
    } rows[] = {
        { { &a.backend, &b.backend }, { "cpu", "cuda" }, "backend (cpu; cuda)" },
        { { &a.gpu, &b.gpu }, { "A", "B" }, "GPU (A; B)" },
        { { &a.gpu, &b.gpu }, { "A", NULL }, "GPU (A; none)" },
        { { &a.driver, &b.driver }, { "550.1", "535.9" }, "driver (550.1; 535.9)" },
        { { &a.driver, &b.driver }, { "550.1", "550.9" }, NULL },
        { { &a.driver, &b.driver }, { "550.1", NULL }, NULL },
        { { &a.cpu, &b.cpu }, { "P", "Q" }, "CPU (P; Q)" },
        { { &a.cache, &b.cache }, { "hot", "cold" }, "cache (hot; cold)" },
        { { &a.timer, &b.timer }, { "cupti", "events" }, "timer (cupti; events)" },
        { { &a.build, &b.build },
          { "gcc 12, optimised", "gcc 12, not optimised" },
          "build (optimised; not optimised)" },
        { { &a.build, &b.build },
          { "gcc 12, optimised", "gcc 13, optimised; kbench: gcc 13, not optimised" },
          NULL },
        { { &a.build, &b.build },
          { "gcc 12, optimised", "gcc 12, optimised, instrumented (ASan UBSan), CUDA; kbench: gcc 13, optimised" },
          "build (optimised; optimised, instrumented (ASan UBSan))" },
        { { &a.build, &b.build },
          { "gcc 12, not optimised, instrumented (gcov)", "gcc 13, not optimised, instrumented (-pg)" },
          "build (not optimised, instrumented (gcov); not optimised, instrumented (-pg))" },
        { { &a.build, &b.build },
          { "gcc 12, optimised", "gcc 12, optimised; kbench: gcc 12, optimised, instrumented (ASan)" },
          NULL },
        { { &a.cpu_governor, &b.cpu_governor }, { "performance", "powersave" }, NULL },
        { { &a.kernel_version, &b.kernel_version }, { "6.1", "6.2" }, NULL }
    };
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
    CHECK(kbi_env_differs(&a, &b, &what) && strcmp(what.s, "ECC (yes; no)") == 0);
    b.ecc = -1;
    CHECK(!kbi_env_differs(&a, &b, &what));
    kbi_text_free(&what);
    kb_result_free(&a);
    kb_result_free(&b);
}

static void test_case(void) {
    kb_result r;
    kbi_text t = { NULL, 0, 0 };
    kb_entry entry;
    kbi_case c;
    kbi_measured m;
    kbi_measured_clear(&m);
    memset(&entry, 0, sizeof entry), memset(&c, 0, sizeof c);
    const kb_param params[] = { { "batch_size", KB_AXIS_INTS, 4, 0, NULL },
                                { "sequence_length", KB_AXIS_INTS, 128, 0, NULL },
                                { "tensor_dimension", KB_AXIS_REALS, 0, 64, NULL },
                                { "layout", KB_AXIS_STRINGS, 0, 0, "nn" } };
    entry.operation = "op", entry.implementation = "mine", c.entry = &entry, c.name = "op/impl=mine";
    c.params = params, c.n_params = 4;
    kbi_result_clear(&r);
    kbi_result_take(&r, KBI_OF_MEASURED, &m), kbi_record_case(&r, &c, &m);
    kbi_json_params(&t, r.params);
    CHECK_STR(t.s, "{\"batch_size\": 4, \"sequence_length\": 128, \"tensor_dimension\": 64, \"layout\": \"nn\"}");
    CHECK_STR(r.origin, "user"), CHECK_STR(r.implementation, "mine"), CHECK_STR(r.operation, "op"),
        CHECK_STR(r.name, c.name);
    CHECK(r.batch_size == 4 && r.sequence_length == 128 && r.tensor_dimension == KB_NONE && r.rung == KB_NONE &&
          r.place == KB_NONE);
    CHECK(!r.direction && !r.dtype);
    kb_result_free(&r), kbi_text_free(&t), kbi_result_clear(&r);
    entry.origin = "vendor", entry.rung = 3, c.place = 7, c.dtype = KB_F16, c.direction = "bwd", c.n_params = 1;
    kbi_result_take(&r, KBI_OF_MEASURED, &m), kbi_record_case(&r, &c, &m);
    kbi_json_params(&t, r.params);
    CHECK_STR(t.s, "{\"batch_size\": 4, \"dir\": \"bwd\"}"), CHECK_STR(r.direction, "bwd"), CHECK_STR(r.dtype, "f16");
    CHECK(r.rung == 3 && r.place == 7), CHECK_STR(r.origin, "vendor");
    kbi_text_free(&t);
    // Only counters with a unit have an entry in counter_units.
    static const kbi_counter first[] = { { "a", "u", 1 }, { "b", "", 2 }, { "a", "v", 3 } },
                             more[] = { { "b", "w", 4 }, { "c", "x", 0 } };
    kbi_record_counters(&r, first, 3), kbi_record_counters(&r, more, 2), kbi_record_counters(&r, more, 0);
    kbi_json_params(&t, r.counters), kbi_puts(&t, " "), kbi_json_params(&t, r.counter_units);
    CHECK_STR(t.s, "{\"a\": 1, \"b\": 2, \"c\": 0} {\"a\": \"u\", \"c\": \"x\"}");
    kbi_text_free(&t), kb_result_free(&r), kbi_result_clear(&r);
    m.n = 0, m.retaken = 5, m.launches = 8, m.rounds = 0, m.stage = 1, m.wall_ns = 2.5e6;
    m.memory = 3 << 20, m.host_memory = 1 << 19, m.leaked = 16, m.bytes = 100, m.flops = 200, m.occupancy = 75;
    kbi_result_take(&r, KBI_OF_MEASURED, &m), kbi_record_case(&r, &c, &m);
    CHECK(r.memory_bytes == 3145728 && r.leaked_bytes == 16 && r.samples_retaken == KB_NONE &&
          r.launches_per_sample == KB_NONE);
    CHECK_REAL(r.memory_mb, 3, 0), CHECK_REAL(r.host_memory_mb, 0.5, 0);
    CHECK_REAL(r.bytes, 100, 0), CHECK_REAL(r.flops, 200, 0), CHECK_REAL(r.occupancy_theoretical, 75, 0);
    CHECK(r.shared_buffers == -1 && !r.kernel && !r.grid && !r.block && !r.throttle);
    m.n = 1, m.rounds = 1, m.memory = m.host_memory = KB_NONE, m.sm_clock = 1, m.memory_clock = 2, m.power = 3,
    m.temperature = 4;
    m.cpu_clock = 5, m.cpu_waited = 6, m.cpu_stolen = 7, m.preemptions = 8, m.registers = 9, m.shared_bytes = 10,
    m.local_bytes = 11;
    for (int i = 0; i < 3; i++) m.grid[i] = 12 + i, m.block[i] = 15 + i;
    snprintf(m.kernel, sizeof m.kernel, "k"), snprintf(m.throttle, sizeof m.throttle, "hot"),
        snprintf(m.cache, sizeof m.cache, "cold"), snprintf(m.timer, sizeof m.timer, "cupti");
    kb_result_free(&r), kbi_result_clear(&r);
    kbi_result_take(&r, KBI_OF_MEASURED, &m), kbi_record_case(&r, &c, &m);
    CHECK(r.samples_retaken == 5 && r.launches_per_sample == 8 && r.shared_buffers == 1 &&
          r.memory_bytes == KB_NONE && isnan(r.memory_mb));
    CHECK_STR(r.grid, "12x13x14"), CHECK_STR(r.block, "15x16x17"), CHECK_STR(r.kernel, "k"),
        CHECK_STR(r.throttle, "hot");
    CHECK(r.sm_clock_mhz == 1 && r.memory_clock_mhz == 2 && r.power_w == 3 && r.temperature_c == 4 &&
          r.cpu_clock_mhz == 5);
    CHECK(r.cpu_waited == 6 && r.cpu_stolen == 7 && r.preemptions == 8 && r.registers == 9 && r.shared_bytes == 10 &&
          r.local_bytes == 11);
    CHECK_STR(r.cache, "cold"), CHECK_STR(r.timer, "cupti"), CHECK(isnan(r.host_memory_mb));
    kb_result_free(&r);
}

static void test_machine(void) {
    kb_result r;
    static kbi_machine m;
    memset(&m, 0, sizeof m), kbi_roofs_clear(&m.roofs), kbi_roofs_clear(&m.core);
    snprintf(m.backend, sizeof m.backend, "cuda"), snprintf(m.gpu, sizeof m.gpu, "G"),
        snprintf(m.driver, sizeof m.driver, "580.1");
    snprintf(m.cuda, sizeof m.cuda, "13.0"), m.gpu_present = 1, m.device = 2, m.sm = 89, m.l2 = 64, m.boost = 1,
                                             m.ecc = 1, m.mig = 0;
    m.clocks_locked = -1, m.roofs.of[KBI_ROOF_COPY] = 3e12, m.roofs.of[KBI_ROOF_WRITE] = 2e12,
    m.core.of[KBI_ROOF_READ] = 1e10;
    kbi_result_clear(&r), kbi_record_machine(&r, &m);
    CHECK_STR(r.compute_capability, "8.9"), CHECK_STR(r.gpu, "G"), CHECK_STR(r.cuda, "13.0"),
        CHECK_STR(r.driver, "580.1");
    CHECK(r.device == 2 && r.l2_bytes == 64 && r.ecc == 1 && r.mig == 0 && r.clocks_locked == -1 && r.cpu_boost == 1);
    CHECK(!r.no_gpu && !r.tool && !r.cpus && !r.cpu_governor && isnan(r.read_roof_gbps));
    CHECK_REAL(r.copy_roof_gbps, 3000, 1e-12), CHECK_REAL(r.write_roof_gbps, 2000, 1e-12);
    kb_result_free(&r), kbi_result_clear(&r);
    snprintf(m.backend, sizeof m.backend, "cpu"), snprintf(m.why, sizeof m.why, "no driver"), m.gpu_present = 0, m.gpu[0] = m.driver[0] = m.cuda[0] = 0,
                                                                                              m.l2 = 0;
    snprintf(m.tool, sizeof m.tool, "valgrind"), snprintf(m.cpus, sizeof m.cpus, "0-3"),
        snprintf(m.governor, sizeof m.governor, "g");
    kbi_record_machine(&r, &m);
    CHECK_STR(r.no_gpu, "no driver"), CHECK_STR(r.tool, "valgrind"), CHECK_STR(r.cpus, "0-3"),
        CHECK_STR(r.cpu_governor, "g");
    CHECK(!r.gpu && !r.driver && r.device == KB_NONE && r.l2_bytes == KB_NONE && isnan(r.copy_roof_gbps) &&
          r.read_roof_gbps == 10);
    kb_result_free(&r), kbi_result_clear(&r), m.why[0] = 0;
    kbi_record_machine(&r, &m), CHECK_STR(r.no_gpu, KBI_CUDA ? "--device cpu" : "built without CUDA");
    kb_result_free(&r);
    char text[200];
    kb_build b = { "13.2.0", true, true, NULL, NULL, NULL, NULL };
    kbi_show_build(text, sizeof text, &b), CHECK_STR(text, "gcc 13.2.0, optimised, CUDA");
    CHECK_STR(kbi_show_instruments(1 << 4 | 1, text, sizeof text), ", instrumented (ASan UBSan)");
    b.compiler = "Clang 14", b.optimised = b.cuda = false;
    kbi_show_build(text, sizeof text, &b), CHECK_STR(text, "Clang 14, not optimised");
}

// kbench looks up a program of the CUDA toolkit in PATH first, then in CUDA_HOME. In this test, some directories
// in PATH do not exist.
static void test_toolkit(void) {
    char folders[1400], path[512], want[512], home[400], long_one[460];
    kbi_text command = { NULL, 0, 0 };
    snprintf(want, sizeof want, "%s/tools/bin/kbench_tool", root), snprintf(home, sizeof home, "%s/tools", root);
    put("/tools/bin/kbench_tool", "#!/bin/sh\n"), put("/not/kbench_tool", "");
    memset(long_one, 'x', sizeof long_one - 1), long_one[sizeof long_one - 1] = 0;
    char* kept = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
    for (int allowed = 0; allowed < 2; allowed++) {
        if (allowed && chmod(want, 0755) != 0) return;
        static const char* const lists[] = { "%s/tools/bin", "/nowhere:%s/tools/bin", "%s/not:%s/tools/bin:/nowhere",
                                             "/%s:%s/tools/bin" };
        for (int i = 0; i < 4; i++) {
            snprintf(folders, sizeof folders, lists[i], i == 3 ? long_one : root, root);
            setenv("PATH", folders, 1), unsetenv("CUDA_HOME");
            CHECK(kbi_tool_find("kbench_tool", path) == (allowed != 0));
            if (allowed) CHECK_STR(path, want);
        }
        setenv("PATH", "/nowhere", 1), setenv("CUDA_HOME", home, 1);
        CHECK(kbi_tool_find("kbench_tool", path) == (allowed != 0));
        unsetenv("PATH"), CHECK(kbi_tool_find("kbench_tool", path) == (allowed != 0));
        unsetenv("CUDA_HOME"), CHECK(!kbi_tool_find("kbench_tool", path));
    }
    if (kept) setenv("PATH", kept, 1), free(kept);
    static const char* const names[][2] = { { "tool", "_Z3foo.1" }, { "a tool", "Az09_" }, { "t'", "foo" },
                                            { "t", "foo;bar" },     { "t", "foo bar" },    { "t", "$x" } };
    for (int i = 0; i < KBI_COUNT(names); i++) {
        bool good = kbi_code_command(&command, names[i][0], names[i][1]);
        snprintf(want, sizeof want, "'%s' -sass -fun %s '/", names[i][0], names[i][1]);
        CHECK_THAT(good == (i < 2) && (good ? strncmp(command.s, want, strlen(want)) == 0 : !command.n), "%s, %s",
                   names[i][0], names[i][1]);
        if (good) CHECK_HAS(command.s, "' 2>/dev/null");
        kbi_text_free(&command);
    }
}

int main(int argc, char** argv) {
    snprintf(root, sizeof root, "%.180s.XXXXXX", argc > 0 ? argv[0] : "facts");
    if (!mkdtemp(root)) return 2;
    test_files();
    test_limits();
    test_record();
    test_differs();
    test_case();
    test_machine();
    test_toolkit();
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0) return 2;
    return test_end();
}
