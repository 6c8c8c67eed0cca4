// SPDX-License-Identifier: MIT OR Unlicense
// The tool build/kbench: kbench.h and kbench_report.h without a benchmark. The tool shows, compares and converts
// the records of any kbench program.
//     cc -O2 examples/addons/kbench.c -o kbench -lm        (make tool)
//     ./kbench --load results.json --html page.html
#define KBENCH_IMPLEMENTATION
#include "../../kbench.h"
#include "kbench_report.h"

// Called last, so after --load, --compare, --race and --explain: no option names records.
static int nothing_to_run(const char* value) {
    (void)value;
    if (kbi_options_now->on[KBI_OPTION_env]) return -1;
    kbi_error("%s has no benchmark of its own. Name the records with --load FILE or --compare A B, the programs with "
              "--race OLD NEW, or a flag, key or column with --explain NAME.",
              kbi_process.program);
    return KBI_EXIT_USAGE;
}

KBI_CONSTRUCTOR static void add_nothing_to_run(void) {
    static kb_output output;
    output.instead = nothing_to_run;
    kb_add_output(&output);
}

KBENCH_MAIN()
