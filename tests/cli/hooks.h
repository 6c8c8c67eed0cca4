// SPDX-License-Identifier: MIT OR Unlicense
// hooks.h - internals of kbench that test programs in tests/cli call (kit.lib links the definitions). Include it
// after kbench.h.
#ifndef KBENCH_TEST_HOOKS_H
#define KBENCH_TEST_HOOKS_H

// Sets the function that returns the times of --device script, in ns. The function gets the index of a sample, or
// -1 for a launch outside the samples. The function may set flags of the case.
void hook_script(double (*script)(const char* case_name, int64_t sample, uint64_t* flags));
// Returns the index of the buffer placement that is measured; with --procs, each process has another placement.
int hook_placement(void);
// Pseudorandom numbers, equal on every machine: 64 bits, or normally distributed.
uint64_t hook_hash(uint64_t start, const char* name);
double hook_normal(const char* name, int index);
// Returns the size in bytes of the largest cache that belongs to one core.
size_t hook_core_cache(void);

#ifdef KBENCH_IMPLEMENTATION
#include "script.h"
void hook_script(double (*script)(const char* case_name, int64_t sample, uint64_t* flags)) { scripted.time = script; }
int hook_placement(void) { return scripted.placement; }
uint64_t hook_hash(uint64_t start, const char* name) { return kbi_hash(start, name); }
double hook_normal(const char* name, int index) {
    uint32_t counter[4] = { (uint32_t)kbi_hash(1469598103934665603u, name), (uint32_t)index, 0, 0 }, word[4];
    uint32_t key[2] = { 20261122, 11 };
    float z[2];
    kbi_philox(counter, key, word);
    kbi_random_normal(word[0], word[1], z);
    return z[0];
}
size_t hook_core_cache(void) { return (size_t)kbi_core_cache(); }
#endif
#endif
