// SPDX-License-Identifier: MIT OR Unlicense
// script.h - a backend for tests (--device script): timed blocks run on the host, but a function that the test
// installs supplies their times. Include this file after the implementation of kbench.h.
#ifndef KBENCH_TEST_SCRIPT_H
#define KBENCH_TEST_SCRIPT_H

static struct {
    // Returns the time of sample number `sample` in ns; -1 stands for a launch that is not a sample. The script
    // function may also set flags of the case; a flag of level ERROR ends the case.
    double (*time)(const char* case_name, int64_t sample, uint64_t* flags);
    double (*roof)(int which);
    int placement;
} scripted;

static int64_t script_begin(kbi_run* run) { return (void)run, 1; }

static void script_end(kbi_run* run) {
    uint64_t flags = 0;
    double ns = scripted.time(run->bench_case->name, run->call.unit == KBI_SAMPLE ? run->m.n : -1, &flags);
    for (int f = 0; f < KB_FLAG_COUNT; f++) {
        if (!((flags >> f) & 1)) continue;
        if (kb_flag_is_error((kb_flag)f))
            kbi_stop(run, (kb_flag)f, "the script says so");
        else
            kbi_raise(run, (kb_flag)f);
    }
    run->m.bias_ns = run->m.floor_ns = 0;
    kbi_add_sample(run, ns);
}

static const kbi_timer script_timer = { "events", script_begin, script_end, NULL, false, true };
static const kbi_timer* script_choose(kbi_run* run) { return (void)run, &script_timer; }

static void script_roof(kbi_machine* m, int which) {
    double is = scripted.roof ? scripted.roof(which) : which == KBI_ROOF_COPY ? 1e12 : 0;
    kbi_roof_put(&m->roofs, which, is, is, 0);
}

static bool script_open(kbi_machine* m, const kbi_recipe* recipe) {
    kbi_machine_clear(m, "script");
    snprintf(m->why, sizeof m->why, "%s", scripted.time ? "scripted" : "no script");
    // scripted times are correct even under valgrind
    m->simulated = m->tool[0] = 0;
    scripted.placement = recipe->placement;
    m->l2 = 1 << 20;
    if (kbi_nan(m->roofs.of[KBI_ROOF_COPY])) script_roof(m, KBI_ROOF_COPY);
    return scripted.time != NULL;
}

static const kbi_backend script_backend = { "script",
                                            true,
                                            script_open,
                                            { kbi_cpu_alloc, kbi_cpu_release, kbi_cpu_set, kbi_cpu_copy, kbi_cpu_fill,
                                              NULL, NULL },
                                            { script_choose, NULL, NULL, NULL, NULL, NULL, NULL, script_roof },
                                            { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
                                            { NULL, NULL, NULL, NULL },
                                            NULL };

KBI_CONSTRUCTOR static void script_add(void) {
    kbi_process.own_device = "script";
    kbi_process.own_backend = &script_backend;
}
#endif
