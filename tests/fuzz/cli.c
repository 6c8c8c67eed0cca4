// SPDX-License-Identifier: MIT OR Unlicense
// Fuzz target: arbitrary bytes as a command line, one word per line. The command line must either be rejected with
// one line on stderr, or give a valid plan of cases. A second call must give the same plan.
#include "fuzz.h"

static void body(kb_state* kb) {
    KB_TIME(kb) { kb_keep(kb); }
}
#define SHAPE KB_DTYPE("f32", "bf16"), KB_AXIS("rows", 1, 64), KB_AXIS_REAL("p", 0.5, INFINITY)
KBENCH_IMPL(softmax, naive, SHAPE) { body(kb); }
KBENCH_IMPL(softmax, online, KB_AXIS_STR("dir", "fwd", "bwd"), SHAPE) { body(kb); }
KBENCH_IMPL(layernorm, naive, KB_SIZE("small", "rows=1:8:*2 cols=64"), KB_SIZE("large", "rows=512 cols=64,128")) {
    body(kb);
}
KBENCH_IMPL(layernorm, mine, KB_SIZE("small", "rows=1:8:*2 cols=64"), KB_AXIS_STR("mode", "train", "eval")) {
    body(kb);
}
KBENCH(gelu_tanh) { body(kb); }

static void look(const kbi_options* o) {
    kbi_recipe r;
    kbi_recipe_of(&r, o);
    if (!(r.max_time > 0) || !(r.min_time >= 0) || !(r.precision > 0) || !(o->timeout > 0) || r.samples < 0) abort();
    if (!(kbi_wanted.alpha > 0) || !(kbi_wanted.threshold >= 0) || !(kbi_wanted.noise >= 0) || o->procs < 1) abort();
}

// NULL: the command line is rejected.
static char* chosen(int argc, char** argv) {
    kbi_options o;
    kbi_plan plan;
    kbi_text list = { NULL, 0, 0 };
    kbi_registered all = kbi_registry();
    fuzz_said();
    kbi_options_default(&o);
    kbi_process.quiet = true;
    bool parsed = kbi_options_parse(&o, argc, argv), good = parsed && kbi_plan_make(&plan, &o, &all);
    if (fuzz_said() != !good) abort();
    if (parsed) look(&o);
    if (good) {
        int least = o.shards > 1 ? 0 : 1; // a shard may be empty
        if (plan.n < least || plan.n > KBI_CASES || plan.groups < least || plan.groups > plan.n) abort();
        for (int i = 0, end; i < plan.n; i = end) {
            end = kbi_group_end(&plan, i);
            if (end <= i || !(kbi_group_seconds(&o, o.max_time, end - i) >= 0)) abort();
        }
        if (!kbi_list(&list, &plan, &o)) kbi_list_cases(&list, &plan);
        for (size_t i = 0; i < list.n; i++)
            if (list.s[i] != '\n' && kbi_starts_invisible(list.s + i)) abort();
        kbi_plan_free(&plan);
    }
    KBENCH_FREE(all.of);
    return list.s;
}

FUZZ_MAIN("--list", "--list-ops", "-a\n", "rows=", "p=", ":", "*", "+2", ",", "^", "=", "1e308", "--", "--op\n", "\n",
          "inf", "nan", "-", "0", "-1", "(", ")*", "[", "\\", "--size", "--fast", "10%", "3s", "small,", "|", "\xff",
          "--exclude=", "--dtype=", "9223372036854775807") {
    static char program[] = "fuzz";
    char* argv[34] = { program };
    int argc = 1;
    kbi_text words = { NULL, 0, 0 };
    int braces = 0; // the system's regcomp expands repetitions, so nested repetitions multiply and can use all memory
    for (size_t i = 0; i < size; i++) braces += data[i] == '{';
    if (braces > 1) return 0;
    kbi_put(&words, (const char*)data, size);
    for (char *p = words.s, *end; *p && argc < 33; p = end) {
        argv[argc++] = p;
        end = p + strcspn(p, "\n");
        if (*end) *end++ = 0;
    }
    char *once = chosen(argc, argv), *again = chosen(argc, argv);
    if (!kbi_same_text(once, again)) abort();
    KBENCH_FREE(once);
    KBENCH_FREE(again);
    kbi_text_free(&words);
    return 0;
}
