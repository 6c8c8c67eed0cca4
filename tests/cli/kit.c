// SPDX-License-Identifier: MIT OR Unlicense
// kit.c - the implementation of kbench for the programs of these tests (kit.lib), with the add-ons and guarded
// memory; with PLAIN defined, without the add-ons and without guarded memory.
#ifndef PLAIN
#include "guarded.h"
#include "kit.h"
#else
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#endif
#include "hooks.h"
