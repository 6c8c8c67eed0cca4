// SPDX-License-Identifier: MIT OR Unlicense
// Tests that the source of the fill kernel and kbi_fill_host of kbench.h give the same bits. The test covers every
// dtype and kind, several lengths, alignments, seeds and tensors, and elements with large indices.
#include "test.h"
#define KBENCH_IMPLEMENTATION
#include "kbench.h"

#ifdef __cplusplus
extern "C" {
#endif
void engine_fill_host(void* p, uint64_t n, uint32_t dtype, uint32_t kind, uint64_t seed, uint32_t tensor);
void engine_bits_host(uint64_t bits[4], uint64_t block, uint32_t dtype, uint32_t kind, uint64_t seed,
                      uint32_t tensor);
#ifdef __cplusplus
}
#endif

enum { N = 40003, BESIDE = 32 };
static _Alignas(32) unsigned char got[8 * N + 2 * BESIDE], want[8 * N + 2 * BESIDE];

static void test_arrays(int dtype, int kind, uint64_t seed, uint32_t tensor) {
    static const int lengths[] = { 0, 1, 2, 3, 4, 5, 7, 8, 257, N };
    int bad = 0;
    for (int l = 0; l < (int)(sizeof lengths / sizeof *lengths); l++)
        for (int shift = 0; shift <= 24; shift = shift ? 2 * shift + (shift == 8) * 8 : 1) { // 0 1 2 4 8 24
            size_t n = (size_t)lengths[l], bytes = n * kbi_dtype_size(dtype);
            if (n == N && shift > 1) continue;
            memset(got, 0xa5, sizeof got);
            memset(want, 0xa5, sizeof want);
            engine_fill_host(got + shift, n, (uint32_t)dtype, (uint32_t)kind, seed, tensor);
            kbi_fill_host(want + shift, 0, (int64_t)n, dtype, kind, seed, tensor);
            bad += memcmp(got, want, bytes + 2 * BESIDE) != 0;
        }
    CHECK_INT(bad, 0);
}

static void test_offsets(int dtype, int kind, uint64_t seed, uint32_t tensor) {
    static const uint64_t blocks[] = { 16380,      16384,       4194304,         0x3fffffff,      0x40000000,
                                       0xffffffff, 0x100000000, 0x1234567890123, (1ull << 51) + 1 };
    int bad = 0;
    for (int i = 0; i < (int)(sizeof blocks / sizeof *blocks); i++) {
        uint64_t bits[4];
        size_t size = kbi_dtype_size(dtype);
        engine_bits_host(bits, blocks[i], (uint32_t)dtype, (uint32_t)kind, seed, tensor);
        kbi_fill_host(want, (int64_t)(4 * blocks[i]), 4, dtype, kind, seed, tensor);
        for (int j = 0; j < 4; j++)
            bad += memcmp(&bits[j], want + (size_t)j * size, size) != 0; // little-endian, as GPUs
    }
    CHECK_INT(bad, 0);
}

int main(void) {
    static const uint64_t seeds[] = { 0, 42, 0x9e3779b97f4a7c15u };
    for (int dtype = KB_F32; dtype <= KB_E5M2; dtype++)
        for (int kind = KB_ZERO; kind <= KB_IOTA; kind++)
            for (int s = 0; s < 3; s++) {
                test_arrays(dtype, kind, seeds[s], s == 2 ? 0xffffffffu : (uint32_t)s);
                test_offsets(dtype, kind, seeds[s], s == 2 ? 0xffffffffu : (uint32_t)s);
            }
    return test_end();
}
