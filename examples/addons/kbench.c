// SPDX-License-Identifier: MIT OR Unlicense
// The tool: kbench with its report and without a benchmark. It shows, compares and converts records of any run.
//     cc -O2 examples/addons/kbench.c -o kbench -lm        (make tool)
//     ./kbench --load results.json --html page.html
#define KBENCH_IMPLEMENTATION
#include "../../kbench.h"
#include "kbench_report.h"
KBENCH_MAIN()
