// SPDX-License-Identifier: MIT OR Unlicense
// kit.c - kbench with its implementation, its memory under guard, as kit.sh links it with the programs of these tests.
#include "guarded.h"
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"
#include "hooks.h"
