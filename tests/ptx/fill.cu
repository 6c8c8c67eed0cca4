// SPDX-License-Identifier: MIT OR Unlicense
// kbi_fill of engine.cu on the host: runs the code of each thread, one element after another.
#define kbi_fill engine_fill // renamed, because kbench.h also has a function named kbi_fill
#include "engine.cu"

extern "C" void engine_fill_host(void* p, uint64_t n, uint32_t dtype, uint32_t kind, uint64_t seed, uint32_t tensor) {
    for (uint64_t i = 0; i < n; i++) fill_element(p, i, dtype, kind, seed, tensor);
}

extern "C" void engine_bits_host(uint64_t bits[4], uint64_t block, uint32_t dtype, uint32_t kind, uint64_t seed,
                                 uint32_t tensor) {
    for (int i = 0; i < 4; i++) bits[i] = element_bits(4 * block + (uint64_t)i, dtype, kind, seed, tensor);
}
