// SPDX-License-Identifier: MIT OR Unlicense
// kit.c - kbench with its implementation, as kit.lib links it with the programs of these tests: with the add-ons and its
// memory under guard; with PLAIN, without both.
#ifndef PLAIN
#include "guarded.h"
#include "kit.h"
#else
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#endif
#include "hooks.h"
