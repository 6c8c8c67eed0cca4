// SPDX-License-Identifier: MIT OR Unlicense
// Tests --profile, --trace, --counters, --sass and --energy on the virtual GPU, with blocks whose work is known.
// Profiling must not change the times. Without arguments, this program is the test; with
// arguments, it is the benchmark program that the test runs.
#include "test.h"
#include "json.h"
#include "virtual_gpu.h"

static function plain = { "plain", 24, 132, 256, 0, 1, false }, spills = { "spills", 24, 66, 128, 1024, 4, false },
                wide = { "wide", 24, 1056, 512, 0, 1, false };
static void put(kb_stream s, int kind, const function* of, double ns) {
    operation o = { KERNEL, of, ns, NULL, NULL, NULL };
    o.kind = (operation_kind)kind;
    submit(s, o);
}

KBENCH(one) {
    KB_TIME(kb) { put(kb->stream, KERNEL, &plain, 5000); }
}
KBENCH(mixed) {
    kb_expect(kb, KB_EXPECT_TRANSFER);
    KB_TIME(kb) {
        put(kb->stream, SET, NULL, 1000);
        put(kb->stream, KERNEL, &plain, 3000);
        put(kb->stream, KERNEL, &spills, 6000);
        put(kb->stream, KERNEL, &plain, 3000);
        put(kb->stream, COPY, NULL, 2000);
    }
}
KBENCH_IMPL(rivals, first) {
    KB_SAMPLE(kb) {
        put(kb->stream, KERNEL, &wide, 9000); // the reset is not part of the block
        KB_TIME(kb) { put(kb->stream, KERNEL, &plain, 5000); }
    }
}
KBENCH_IMPL(rivals, wrong) {
    float* x = KB_ALLOC(kb, float, 4);
    KB_TIME(kb) { put(kb->stream, KERNEL, &plain, 5000); }
    kb_check_that(kb, x == NULL, 1, 0, "wrong on purpose");
}
KBENCH_IMPL(rivals, second) {
    KB_TIME(kb) { put(kb->stream, KERNEL, &wide, 6000); }
}
KBENCH(waits) { // with a launch gate, this block would wait forever
    kb_expect(kb, KB_EXPECT_SYNC);
    KB_TIME(kb) {
        put(kb->stream, KERNEL, &plain, 5000);
        cudaStreamSynchronize(kb->stream);
    }
}
KBENCH(many) {
    static function of[14];
    for (int i = 0; i < 14; i++) of[i] = plain, snprintf(of[i].name, sizeof of[i].name, "kernel_%d", i);
    KB_TIME(kb) {
        for (int i = 0; i < 14; i++) put(kb->stream, KERNEL, &of[i], 1000 + 100 * i);
    }
}
// Profiling and timing must not run in the same process. The test has 20 groups, which are more than one batch.
KBENCH(apart, KB_AXIS("n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)) {
    bool looks = kb->run->recipe->inside != 0;
    if (!looks && (kbi_meter.cupti.loaded || tracing.on)) kb_fail(kb, "CUPTI is here");
    KB_TIME(kb) { put(kb->stream, KERNEL, &plain, 5000); }
}
KBENCH(takes_most) {
    KB_TIME(kb) { put(kb->stream, KERNEL, &plain, 3000), put(kb->stream, KERNEL, &spills, 6000); }
}
KBENCH(declares) {
    KB_TIME(kb) { put(kb->stream, KERNEL, &plain, 1e6); }
    kb_bytes(kb, 1e9);
    kb_flops(kb, 1e9);
    kb_count(kb, "mine", 5, "");
}
KBENCH(streams) {
    KB_TIME(kb) { put(kb->stream, KERNEL, &plain, 1e6); }
    kb_bytes(kb, 3.9e9);
}
KBENCH(dies) {
    KB_TIME(kb) {
        if (kb->run->recipe->inside) abort();
        put(kb->stream, KERNEL, &plain, 5000);
    }
}
KBENCH(on_host) {
    KB_TIME_HOST(kb) { kb_keep(kb->seed + 1); }
}

// --- the test ---

static const char* self;
static int code;
static json_file file;
static char output[60000];

static void start(const char* arguments) {
    char command[1200];
    const char* rest = arguments;
    while (*rest && *rest != '-') rest += strcspn(rest, " "), rest += *rest == ' ';
    snprintf(command, sizeof command,
             "env %.*s COLUMNS=120 '%s' --no-progress %s"
             " > build/test/host/profiling.out 2>&1",
             (int)(rest - arguments), arguments, self, rest);
    code = WEXITSTATUS(system(command));
    FILE* f = fopen("build/test/host/profiling.out", "r");
    output[f ? fread(output, 1, sizeof output - 1, f) : 0] = 0;
    if (f) fclose(f);
}
static void run(const char* arguments) {
    char all[1000];
    json_free(&file);
    remove("build/test/host/profiling.json");
    snprintf(all, sizeof all, "%s --fast --json build/test/host/profiling.json", arguments);
    start(all);
    file = json_read("build/test/host/profiling.json", 0);
    CHECK_STR(file.error, "");
}
static const char* text(int i, const char* key) {
    const char* s = json_get(&file, i, key);
    return s ? s : "(none)";
}
static void said(const char* what) {
    // consecutive spaces are compared as one space, because column widths vary
    char squeezed[60000], *to = squeezed;
    for (const char* s = output; *s; s++)
        if (*s != ' ' || to == squeezed || to[-1] != ' ') *to++ = *s;
    *to = 0;
    CHECK_THAT(strstr(squeezed, what) != NULL, "no '%s' in: %.1500s", what, output);
}
static void not_said(const char* what) { CHECK_THAT(!strstr(output, what), "'%s' in: %.800s", what, output); }

static void test_profile(void) {
    run("VIRTUAL_CUPTI=1 --op one --profile");
    CHECK_INT(code, 0);
    CHECK_REAL(atof(text(0, "time_ms")), 0.005, 0.02);
    said("on the GPU in 8 runs calls total share mean");
    said("plain 8 40.00 us 100% 5.000 us");
    said("132x1x1 blocks of 256x1x1, 42 registers, shared 4.00 KiB");
    not_said("local"), not_said("clusters");
    said("cudaLaunchKernel 8 24.00 us 100% 3.000 us");
    not_said("cuLaunchKernel"), not_said("_v7000"),
        // the output must not contain kernels of the driver and of kbench, or suffixes of API names
        not_said("kbi_");
    said("per run: 5.000 us from first start to last end, no gaps");
    said("3.000 us per launch");

    run("VIRTUAL_CUPTI=1 --op mixed --profile --hot");
    said("spills 8 48.00 us 40.0%"), said("plain 16 48.00 us 40.0%"), said("memcpy HtoD 8 16.00 us 13.3%"),
        said("memset 8 8.000 us 6.7%");
    said("66x1x1 blocks of 128x1x1, clusters of 4x1x1, 42 registers, shared 5.00 KiB, local 24 B");
    said("6% of the warps (limit:");
    said("3.81 MiB each");
    said("in 4.0 gaps");
    said("; no copy overlaps a kernel");
    CHECK_THAT(strstr(output, "spills") < strstr(output, "memcpy"), "the longest operation is listed first");

    run("VIRTUAL_CUPTI=1 --op rivals --profile");
    CHECK_INT(code, 1);
    CHECK_INT(file.n, 3);
    said("plain 8 40.00 us 100%"), said("wide 8 48.00 us 100%");
    said(
        // an SM has registers for 40 warps, which allows 2 blocks of 16 warps
        "42 registers, shared 4.00 KiB, 50% of the warps (limit: registers)");
    not_said("72.00 us");
    run("VIRTUAL_CUPTI=1 --op waits --profile");
    CHECK_INT(code, 0);
    said("plain 8 40.00 us 100%");
    run("VIRTUAL_CUPTI=1 --op many --profile");
    said("kernel_13 8 18.40 us"), said("and 4 others, 19.9%");
    not_said("kernel_3 ");
    run("VIRTUAL_CUPTI=1 --op one --profile --no-isolate");
    said("plain 8 40.00 us 100%");
    run("VIRTUAL_CUPTI=1 --op one --profile --procs 2");
    said("plain 8 40.00 us 100%");
    run("VIRTUAL_CUPTI=1 --op one --profile --timer cupti --no-isolate");
    said("plain 8 40.00 us 100%");
    CHECK_REAL(atof(text(0, "time_ms")), 0.005, 0.001);
    run("VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_DROPS=1 --op one --profile");
    said("3 records were dropped");
    static const char* const apart[] = { "", " --no-isolate" };
    for (int k = 0; k < 2; k++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "VIRTUAL_CUPTI=1 --op apart --iters 8 --profile --counters=few%s",
                 apart[k]);
        run(arguments);
        CHECK_INT(code, 0);
        CHECK_INT(file.n, 20);
        for (int i = 0; i < file.n; i++) CHECK_STR(text(i, "status"), "\"ok\"");
        not_said("CUPTI is here"), said("plain 8 40.00 us 100%");
    }
    run("VIRTUAL_CUPTI=1 --op one");
    not_said("on the GPU in");
}

static void test_sums(void) {
    union {
        kbi_inside head;
        char bytes[sizeof(kbi_inside) + 8 * sizeof(kbi_event) + 64];
    } made;
    static const struct {
        int kind, run;
        int64_t start, end;
        int name, cause;
    } rows[] = { { KBI_EVENT_RUN, 0, 0, 500, 0, -1 },      { KBI_EVENT_RUN, 1, 1000, 1300, 0, -1 },
                 { KBI_EVENT_CALL, 0, 10, 40, 6, -1 },     { KBI_EVENT_CALL, 1, 1010, 1020, 6, -1 },
                 { KBI_EVENT_KERNEL, 0, 100, 200, 11, 2 }, { KBI_EVENT_COPY, 0, 150, 250, 18, 2 },
                 { KBI_EVENT_KERNEL, 0, 300, 400, 11, 2 }, { KBI_EVENT_KERNEL, 1, 1100, 1200, 11, 3 } };
    kbi_profile p;
    kbi_event* events = (kbi_event*)(void*)(made.bytes + sizeof(kbi_inside));
    memset(&made, 0, sizeof made);
    made.head.events = 8, made.head.runs = 2, made.head.texts = 23;
    for (int i = 0; i < 8; i++) {
        events[i].kind = rows[i].kind, events[i].run = rows[i].run, events[i].name = rows[i].name;
        events[i].start = rows[i].start, events[i].end = rows[i].end, events[i].cause = rows[i].cause;
    }
    memcpy(events + 8, "block\0call\0kernel\0copy", 23);
    kbi_profile_fill(&p, &made.head);
    CHECK_INT(p.n_device, 2);
    CHECK_STR(kbi_event_name(&made.head, p.device[0].first), "kernel");
    CHECK_INT(p.device[0].calls, 3);
    CHECK_REAL(p.device[0].total, 300, 1e-12);
    CHECK_REAL(p.device_ns, 400, 1e-12);
    CHECK_REAL(p.span, (300 + 100) / 2.0, 1e-12);
    CHECK_REAL(p.busy, (250 + 100) / 2.0, 1e-12);
    CHECK_REAL(p.gaps, 0.5, 1e-12);
    CHECK_REAL(p.gap_ns, 25, 1e-12);
    CHECK_REAL(p.run, (500 + 300) / 2.0, 1e-12);
    CHECK_REAL(p.launch_ns, 20, 1e-12);
    CHECK_REAL(p.overlap, 0.5, 1e-12);
    CHECK_REAL(p.concurrent, 50.0 / 350, 1e-12);
    kbi_profile_free(&p);
}

static void test_trace(void) {
    if (system("python3 -c ''") != 0) {
        SKIP("no python3, which checks the timeline");
        return;
    }
    run("VIRTUAL_CUPTI=1 --op mixed,rivals,on_host --trace build/test/host/profiling.trace");
    CHECK_INT(code, 1);        // exit code 1, because one implementation has a wrong result
    not_said("on the GPU in");
    // Each of three cases (`mixed` and two implementations) runs 8 times, which gives 24 blocks. A run of `mixed`
    // has 5 calls that submit work; a run of an implementation has 1.
    CHECK_INT(
        system("python3 tests/host/trace.py build/test/host/profiling.trace block=24 call=56 kernel=40 copy=8 memset=8 "
               "> build/test/host/profiling.out"),
        0);
    FILE* f = fopen("build/test/host/profiling.out", "r");
    output[f ? fread(output, 1, sizeof output - 1, f) : 0] = 0;
    if (f) fclose(f);
    CHECK_STR(output, "good\n");
    run("--op one --trace build/test/host/profiling.trace");
    CHECK_INT(system("python3 tests/host/trace.py build/test/host/profiling.trace block=0 > build/test/host/profiling.out"),
              0);
    start("VIRTUAL_CUPTI=1 --op one --trace build/no/such/folder/x");
    CHECK_INT(code, 2);
    said("cannot write --trace");
    // a record file contains no profile, so --load has none to show
    start("--load build/test/host/profiling.json --profile");
    // the exit code is 2, unless a sanitizer reports leaks at exit
    CHECK(code != 0);
    said("--load shows records and runs nothing, so --profile has no effect");
}

// kbench reads the machine code of the longest kernel with cuobjdump, which this test replaces by a script.
static void test_code(void) {
    FILE* f = fopen("build/test/host/cuobjdump", "w");
    if (f)
        fprintf(f, "#!/bin/sh\n[ \"$1 $2 $3\" = '-sass -fun spills' ] && [ -x \"$4\" ] || exit 1\n"
                   "echo 'Fatbin elf code:'; echo '        Function : spills'; echo '        /*0000*/ LDC R1 ;'\n"),
            fclose(f);
    CHECK(f && system("chmod +x build/test/host/cuobjdump") == 0);
    const char* path = getenv("PATH");
    char with[4000];
    snprintf(with, sizeof with, "build/test/host:%s", path ? path : "");
    setenv("PATH", with, 1);
    run("VIRTUAL_CUPTI=1 --op takes_most --sass");
    CHECK_INT(code, 0);
    said("\n machine code of takes_most/impl=default\n"), said("Function : spills"), said("LDC R1");
    not_said("Fatbin");
    run("VIRTUAL_CUPTI=1 --op one --sass");
    said("--sass: plain is not in this program's file");
    remove("build/test/host/cuobjdump");
    // The path of cuobjdump, the kernel and the file become a shell command, unless a name has a character that a
    // shell could interpret.
    static const char* const hostile[][2] = { { "cuobjdump", "a;b" },   { "cuobjdump", "a b" },
                                              { "cuobjdump", "$(b)" },  { "cuobjdump", "a'b" },
                                              { "cuobjdump", "a\nb" },  { "cuobjdump", "`b`" },
                                              { "it's/cuobjdump", "a" } };
    kbi_text command = { NULL, 0, 0 };
    for (int i = 0; i < KBI_COUNT(hostile); i++)
        CHECK_THAT(!kbi_code_command(&command, hostile[i][0], hostile[i][1]) && !command.n, "%s of %s: %s",
                   hostile[i][1], hostile[i][0], command.s);
    CHECK(kbi_code_command(&command, "/opt/the kit/cuobjdump", "_Z5plainILi2EEvPf.x"));
    CHECK_HAS(command.s, "'/opt/the kit/cuobjdump' -sass -fun _Z5plainILi2EEvPf.x '/");
    kbi_text_free(&command);
    setenv("PATH", "/usr/bin:/bin", 1);
    run("VIRTUAL_CUPTI=1 CUDA_HOME=/nowhere --op one --sass");
    if (access("/usr/local/cuda/bin/cuobjdump", X_OK) != 0 && access("/usr/bin/cuobjdump", X_OK) != 0)
        said("--sass: cuobjdump is not found");
    setenv("PATH", path ? path : "", 1);
}

static double counted(int i, const char* name) {
    char key[100];
    const char *all = json_get(&file, i, "counters"), *at;
    snprintf(key, sizeof key, "\"%s\": ", name);
    at = all ? strstr(all, key) : NULL;
    return at ? strtod(at + strlen(key), NULL) : (double)NAN;
}

// L2 has 60 MiB. Each simulated GPU operation takes 1 ms; with a shorter time, the declared bytes would give a
// rate above the peak.
static void test_counters(void) {
#define FFMA "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum:"
#define FP32 ",dram__bytes.sum:1000000000,smsp__sass_thread_inst_executed_op_fp32_pred_on.sum:"
#define BUSY \
    ",lts__t_sectors.avg.pct_of_peak_sustained_elapsed:30,sm__warps_active.avg.pct_of_peak_sustained_active:51.5"
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:1000000000,dram__throughput.avg.pct_of_peak_sustained_elapsed:91" BUSY
        " --op declares --counters");
    CHECK_INT(code, 0);
    CHECK_REAL(counted(0, "dram_bytes"), 1e9, 0);
    CHECK(isnan(counted(0, "gpu_time_ns"))); // no gpu_time_ns, because it would include the profiler's own work
    CHECK_REAL(counted(0, "occupancy_pct"), 51.5, 0);
    CHECK_REAL(counted(0, "mine"), 5, 0);
    CHECK_STR(text(0, "occupancy_achieved"), "51.5");
    CHECK_STR(text(0, "bound"), "\"memory\"");
    CHECK_HAS(text(0, "counter_units"), "\"dram_bytes\": \"B\"");
    CHECK_HAS(text(0, "message"),
              "bound by memory: DRAM 91 %, L2 30 %, tensor cores 0 %, issue slots 0 %, 52 % of the warps");
    CHECK_THAT(!strstr(text(0, "flags"), "DECLARED_BYTES"), "flags %s", text(0, "flags"));
    // Without -v, counters are printed in scaled units, without zeros, and after the message about the bound.
    said("bound by memory:");
    CHECK_THAT(strstr(output, " bound by memory") < strstr(output, " dram_pct"), "the order in: %s", output);
    said("\n mine 5");
    said("dram_bytes 954 MiB"), said("dram_pct 91 %"), said("intensity_dram 1");
    // The profiled range lasts four times as long as the block, so percentages of its elapsed time must be
    // multiplied by four.
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=gpu__time_duration.sum:4000000,"
        "dram__throughput.avg.pct_of_peak_sustained_elapsed:20,lts__t_sectors.avg.pct_of_peak_sustained_elapsed:30,"
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active:15 --op declares --counters=few --hot");
    CHECK_REAL(counted(0, "dram_pct"), 80, 0.01), CHECK_REAL(counted(0, "l2_pct"), 100, 0);
    // active cycles do not depend on the length of the range
    CHECK_REAL(counted(0, "tensor_pct"), 15, 0);
    CHECK_STR(text(0, "bound"), "\"L2\"");
    // Some writes of a short kernel reach DRAM after its end, so the counters of DRAM are too low. The bound is
    // also "memory" if the traffic divided by the measured time is close to the copy peak and no other unit is
    // busier.
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:3900000000,dram__throughput.avg.pct_of_peak_sustained_elapsed:40" BUSY
        " --op streams --counters=few");
    CHECK_STR(text(0, "bound"), "\"memory\"");
    CHECK_HAS(text(0, "message"), "bound by memory: DRAM 40 %, L2 30 %, tensor cores 0 %, copy roof 9");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__throughput.avg.pct_of_peak_sustained_elapsed:40" BUSY
        " --op streams --counters=few --hot");
    CHECK_STR(text(0, "bound"), "\"latency\"");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:1000000000,dram__throughput.avg.pct_of_peak_sustained_elapsed:91" BUSY
        " --op declares --counters");
    not_said("tensor_pct"), not_said("ffma");
    // A cold launch must find no data in L2; otherwise --counters withholds its time.
    CHECK_REAL(counted(0, "evicted_pct"), 100, 0);
    run("VIRTUAL_CUPTI=1 --op declares --counters --hot");
    CHECK(isnan(counted(0, "evicted_pct")));
    run("VIRTUAL_CUPTI=1 VIRTUAL_WARM=1 --op one,rivals --counters=few");
    CHECK_INT(code, 1);
    CHECK_INT(file.n, 4);
    for (int i = 0; i < file.n; i++) {
        CHECK_STR(text(i, "status"), "\"failed\"");
        CHECK_STR(text(i, "time_ms"), "null");
        // the wrong result takes precedence over NOT_COLD
        bool wrong = strstr(text(i, "name"), "wrong") != NULL;
        CHECK_HAS(text(i, "flags"), wrong ? "VERIFY_FAIL" : "NOT_COLD");
        CHECK_HAS(text(i, "message"), wrong ? "" : "only 50 % of a read of the size of L2 came from DRAM (counters)");
    }
    start("VIRTUAL_CUPTI=1 --env --counters");
    CHECK_THAT(strstr(output, "eviction empties  99.") || strstr(output, "eviction empties  100."), "%.1500s", output);
    said("by the counters of DRAM 100.0 %");
    start("--env --counters");
    said("by the counters of DRAM libcupti.so is not found");
    start("VIRTUAL_CUPTI=1 --env");
    not_said("by the counters");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:500000000 --op declares --counters");
    // In the first run, kb_bytes declares twice the counted bytes; in the second run, half of the counted bytes.
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:500000000 --op declares --counters");
    CHECK_HAS(text(0, "flags"), "DECLARED_BYTES");
    CHECK_HAS(text(0, "message"), "kb_bytes declares 954 MiB, but DRAM moved 477 MiB");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:2000000000 --op declares --counters");
    CHECK_THAT(!strstr(text(0, "flags"), "DECLARED_BYTES"), "flags %s", text(0, "flags"));
    CHECK_HAS(text(0, "message"), "DRAM moved 1.86 GiB, 2.00 times the bytes of kb_bytes");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__bytes.sum:0,lts__t_bytes.sum:500000000 --op declares --counters --hot");
    CHECK_HAS(text(0, "flags"), "DECLARED_BYTES");
    CHECK_HAS(text(0, "message"), "but L2 moved 477 MiB");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=" FFMA "500000000" FP32 "500000000 --op declares --counters");
    CHECK_THAT(!strstr(text(0, "flags"), "DECLARED"), "flags %s", text(0, "flags"));
    CHECK_REAL(counted(0, "ffma"), 5e8, 0);
    CHECK_REAL(counted(0, "intensity_dram"), 1, 0); // the intensity uses the declared operations
    CHECK(isnan(counted(0, "intensity_l2")));
    CHECK_HAS(text(0, "counter_units"), "\"intensity_dram\": \"FLOP/B\"");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=" FFMA "500000000,lts__t_bytes.sum:2000000000" FP32
        "500000000 --op one --counters");
    CHECK_REAL(counted(0, "intensity_dram"), 1, 0);
    CHECK_REAL(counted(0, "intensity_l2"), 0.5, 0);
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=" FFMA
        "500000000,sm__inst_executed_pipe_tensor.sum:2,smsp__sass_thread_inst_executed_op_fp16_pred_on.sum:64" FP32
        "500000000 --op one --counters");
    // tensor instructions that only move data are not counted as operations
    CHECK_REAL(counted(0, "intensity_dram"), 1, 0);
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=" FFMA "500000000,sm__inst_executed_pipe_tensor.sum:600000" FP32
        "500000000 --op one --counters");
    CHECK(isnan(counted(0, "intensity_dram")));
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=" FFMA "250000000" FP32 "250000000 --op declares --counters");
    CHECK_HAS(text(0, "flags"), "DECLARED_FLOPS");
    CHECK_HAS(text(0, "message"),
              "kb_flops declares 1000 million operations, but the instructions did at most 500.0 million");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=" FFMA "1000000000" FP32 "1000000000 --op declares --counters");
    CHECK_THAT(!strstr(text(0, "flags"), "DECLARED"), "flags %s", text(0, "flags"));
    CHECK_HAS(text(0, "message"), "did 2000 million operations, 2.00 times the operations of kb_flops");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=dram__throughput.avg.pct_of_peak_sustained_elapsed:20" BUSY
        " --op declares --counters=few");
    CHECK_STR(text(0, "bound"), "\"latency\"");
    CHECK_THAT(isnan(counted(0, "ffma")), "--counters=few does not include ffma");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active:75" BUSY
        " --op declares --counters=few");
    CHECK_STR(text(0, "bound"), "\"compute\"");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=sm__ops_path_tensor_src_fp16_dst_fp32.sum:64 --op declares --counters=all --profile");
    // kbench knows two names of this metric; this virtual chip supports only the second name
    CHECK_REAL(counted(0, "tensor_fp16_ops"), 64, 0);
    said("plain 8");
    run("VIRTUAL_CUPTI=1 VIRTUAL_METRICS=a__b.sum:3 --op declares --counters=a__b.sum,no_such__c.sum");
    CHECK_REAL(counted(0, "a__b.sum"), 3, 0);
    said("this chip has no metric no_such__c.sum");
    run("VIRTUAL_CUPTI=1 --op declares,one --counters --no-isolate");
    CHECK_REAL(counted(0, "evicted_pct"), 100, 0), CHECK_REAL(counted(1, "evicted_pct"), 100, 0);
    start("--op one --counters=many");
    CHECK_INT(code, 2);
    said("--counters takes few, usual or all, or names of metrics");
    static const struct {
        const char *how, *line;
    } rows[] = {
        { "", "libcupti.so is not found" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_OLD_CUPTI=1", "this libcupti.so has no cuptiProfilerInitialize" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_VGPU=1", "this GPU cannot be profiled" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_RANGE_FAILS=cuptiProfilerGetCounterAvailability:26", "dcgmi profile --pause" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_RANGE_FAILS=cuptiRangeProfilerEnable:35", "CAP_SYS_ADMIN" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_RANGE_FAILS=cuptiRangeProfilerEnable:43", "CUPTI_ERROR_OF_SOME_KIND (43)" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_RANGE_FAILS=cuptiProfilerInitialize:39", "another profiler" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_RANGE_FAILS=cuptiRangeProfilerStart:9", "cuptiRangeProfilerStart: CUPTI_ERROR" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_RANGE_FAILS=cuptiRangeProfilerStop:9", "cuptiRangeProfilerStop: CUPTI_ERROR" },
        { "VIRTUAL_CUPTI=1 VIRTUAL_RANGE_FAILS=cuptiRangeProfilerDecodeData:9", "DecodeData: CUPTI_ERROR" }
    };
    for (int i = 0; i < 10; i++) {
        char arguments[300];
        snprintf(arguments, sizeof arguments, "%s%s--op one --counters", rows[i].how, *rows[i].how ? " " : "");
        run(arguments);
        CHECK_INT(code, 0);
        said("one/impl=default is not profiled: "), said(rows[i].line);
        CHECK_REAL(atof(text(0, "time_ms")), 0.005, 0.03);
        CHECK_THAT(isnan(counted(0, "dram_bytes")), "a counter in %s", text(0, "counters"));
    }
}

// The virtual GPU takes 1 kW while it works and 80 W while it is idle. In a graph, each kernel is followed by a
// gap of 400 ns.
static void test_energy(void) {
    run("--op one,declares --energy --no-isolate");
    CHECK_INT(code, 0);
    CHECK_REAL(atof(text(0, "energy_mj")), 5.4, 1e-3);
    CHECK_REAL(atof(text(0, "idle_power_w")), 80, 0.1);
    CHECK_STR(text(0, "flops_per_joule"), "null");
    CHECK_STR(text(0, "bytes_per_joule"), "null");
    CHECK_REAL(atof(text(0, "time_ms")), 0.005, 0.02);
    CHECK_REAL(atof(text(1, "energy_mj")), 1000.4, 1e-3);
    CHECK_REAL(atof(text(1, "flops_per_joule")), 1e9 / 1.0004, 1e-3);
    CHECK_REAL(atof(text(1, "bytes_per_joule")), 1e9 / 1.0004, 1e-3);
    said("time us +- mJ"), said(" J MB/J");
    said("J: energy of one launch, from back-to-back launches over 2 s");
    run("VIRTUAL_CUPTI=1 --op waits,rivals --energy --profile");
    CHECK_STR(text(0, "energy_mj"), "null");
    CHECK_HAS(text(0, "message"), "cannot be separated from the energy of its resets");
    CHECK_STR(text(1, "energy_mj"), "null"); // wrong: not profiled
    CHECK_REAL(atof(text(2, "energy_mj")), 6.4, 1e-3);
    CHECK_REAL(atof(text(3, "energy_mj")), 5, 1e-3);
    said("plain 8 40.00 us 100%");
    run("--op one");
    CHECK_STR(text(0, "energy_mj"), "null");
    not_said("J:");
    static const struct {
        const char *how, *line;
    } rows[] = { { "none", "no energy counter on this GPU" },
                 { "stuck", "NVML's energy counter did not change" },
                 { "breaks", "NVML's energy counter failed while the block ran" } };
    for (int i = 0; i < 3; i++) {
        char arguments[200];
        if (i == 1 && test_rounds(2) < 2) continue; // takes seconds, so it runs only in "make test-all"
        snprintf(arguments, sizeof arguments, "VIRTUAL_ENERGY=%s --op one --energy", rows[i].how);
        run(arguments);
        CHECK_INT(code, 0);
        said("one/impl=default is not profiled: "), said(rows[i].line);
        CHECK_STR(text(0, "energy_mj"), "null");
        CHECK_REAL(atof(text(0, "time_ms")), 0.005, 0.02);
    }
    start("--op one --energy --device cpu");
    CHECK_INT(code, 2);
    said("--energy: this option profiles GPU work, which --device cpu and a build without CUDA cannot run");
}

static void test_failures(void) {
    static const struct {
        const char *how, *line;
    } rows[] = { { "", "libcupti.so is not found" },
                 { "VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_ERROR=39", "another profiler" },
                 { "VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_ERROR=35", "NVreg_RestrictProfilingToAdminUsers=0" },
                 { "VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_ERROR=43", "CUPTI_ERROR_OF_SOME_KIND (43)" },
                 { "VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_ERROR=8", "cuptiActivityEnable: CUPTI_ERROR_OF_SOME_KIND (8)" },
                 { "VIRTUAL_CUPTI=1 VIRTUAL_CUPTI_MUTE=1", "another profiler" } };
    for (int i = 0; i < 6; i++) {
        char arguments[300];
        snprintf(arguments, sizeof arguments, "%s%s--op one,waits --profile", rows[i].how, *rows[i].how ? " " : "");
        run(arguments);
        CHECK_INT(code, 0);
        said("one/impl=default is not profiled: "), said(rows[i].line);
        not_said("waits/impl=default is not");
        CHECK_THAT(strstr(text(0, "message"), "not profiled: ") != NULL, "message %s", text(0, "message"));
        CHECK_REAL(atof(text(0, "time_ms")), 0.005, 0.02);
        not_said("on the GPU in");
    }
    run("VIRTUAL_CUPTI=1 --op dies,one --profile");
    CHECK_INT(code, 0);
    CHECK_INT(file.n, 2);
    said("dies/impl=default is not profiled: signal 6 (Aborted)"), said("plain 8 40.00 us 100%");
    CHECK_REAL(atof(text(0, "time_ms")), 0.005, 0.02);
    run("VIRTUAL_CUPTI=1 --op on_host --profile");
    CHECK_INT(code, 0);
    not_said("on the GPU in");
}

int main(int argc, char** argv) {
    if (argc > 1) return kb_main(argc, argv);
    self = argv[0];
    test_sums();
    test_profile();
    test_trace();
    test_code();
    test_counters();
    test_energy();
    test_failures();
    return test_end();
}
