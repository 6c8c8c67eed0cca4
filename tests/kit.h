// SPDX-License-Identifier: MIT OR Unlicense
// kit.h - kbench with its implementation, for tests of internal functions. Include kit.h once, after the macros
// that replace functions of the C library. KIT_WITHOUT_ADDONS leaves the add-ons out, which halves the compile time.
#ifndef KBENCH_TEST_KIT_H
#define KBENCH_TEST_KIT_H

#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#ifndef KIT_WITHOUT_ADDONS
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include "script.h"
#endif

#endif
