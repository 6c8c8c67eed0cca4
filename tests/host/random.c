// SPDX-License-Identifier: MIT OR Unlicense
/* Tests random numbers and floats of 16 and 8 bits: known answers, conversions compared with their definitions,
   moments, and filling an array in parts. */
#include "test.h"
#include <stdlib.h>
#include "kit.h"

static void test_philox(void) {
    /* Random123, kat_vectors, philox4x32 with 10 rounds: counter, key, output */
    static const uint32_t kat[3][10] = { { 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
                                         { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
                                           0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
                                         { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
                                           0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } };
    int i;
    for (i = 0; i < 3; i++) {
        uint32_t ctr[4], out[4];
        memcpy(ctr, kat[i], sizeof ctr);
        kbi_philox(ctr, kat[i] + 4, out);
        CHECK(!memcmp(out, kat[i] + 6, sizeof out));
        CHECK(!memcmp(ctr, kat[i], sizeof ctr));
    }
}

static void test_conversions(void) {
    static const uint32_t from[] = { 0x00000000, 0x80000000, 0x3f800000, 0xc0000000, 0x477fefff, 0x477ff000,
                                     0x7f800000, 0xff800000, 0x33000000, 0x33000001, 0x387fc000, 0x387fe000,
                                     0x38800000, 0x3f801000, 0x3f803000, 0x00000001, 0x33c00000, 0x7f7fffff };
    static const uint16_t f16[] = { 0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x7c00, 0x7c00, 0xfc00, 0x0000,
                                    0x0001, 0x03ff, 0x0400, 0x0400, 0x3c00, 0x3c02, 0x0000, 0x0002, 0x7c00 };
    static const uint16_t bf16[] = { 0x0000, 0x8000, 0x3f80, 0xc000, 0x4780, 0x4780, 0x7f80, 0xff80, 0x3300,
                                     0x3300, 0x3880, 0x3880, 0x3880, 0x3f80, 0x3f80, 0x0000, 0x33c0, 0x7f80 };
    int i, bad16 = 0, badb = 0;
    for (i = 0; i < 18; i++) {
        CHECK(kbi_f32_to_small(kbi_bits_float(from[i]), 10) == f16[i]);
        CHECK(kbi_f32_to_bf16(kbi_bits_float(from[i])) == bf16[i]);
    }
    for (i = 0; i < 65536; i++) {
        float h = kbi_small_to_f32((uint32_t)i, 10), b = kbi_bits_float((uint32_t)i << 16);
        uint16_t hh = (uint16_t)kbi_f32_to_small(h, 10), bb = kbi_f32_to_bf16(b);
        bad16 += h != h ? (hh & 0x7fff) <= 0x7c00 || (hh ^ i) & 0x8000 : hh != i;
        badb += b != b ? (bb & 0x7fff) <= 0x7f80 || (bb ^ i) & 0x8000 : bb != i;
    }
    CHECK(!bad16);
    CHECK(!badb);
    CHECK((kbi_f32_to_small(kbi_bits_float(0x7f800001), 10) & 0x7fff) > 0x7c00);
    CHECK((kbi_f32_to_bf16(kbi_bits_float(0xffffffff)) & 0x7fff) > 0x7f80);
    CHECK(kbi_small_to_f32(0x0001, 10) == 5.9604644775390625e-8f && kbi_small_to_f32(0x7bff, 10) == 65504.0f);
}

/* Tests OCP's 8-bit floats against their definition: the value of each code, and rounding to nearest even.
   Values that are too large become the largest finite value, as on GPUs. */
static void test_8_bits(int dtype, int fraction, int bias, int most, float largest) {
    int code, bad = 0;
    for (code = 0; code < 256; code++) {
        int e = (code & 0x7f) >> fraction, m = code & ((1 << fraction) - 1);
        uint8_t at = (uint8_t)code;
        double is = kbi_load_double(&at, 0, dtype),
               v = ldexp(e ? 1 << fraction | m : m, (e ? e : 1) - bias - fraction);
        bad += (code & 0x7f) <= most && is != (code & 0x80 ? -v : v);
    }
    CHECK_INT(bad, 0);
    for (code = 0; code < most; code++) {
        uint8_t low = (uint8_t)code, high = (uint8_t)(code + 1), even = code & 1 ? high : low;
        float a = (float)kbi_load_double(&low, 0, dtype), b = (float)kbi_load_double(&high, 0, dtype),
              middle = (a + b) / 2;
        const float x[] = { a, nextafterf(middle, a), middle, nextafterf(middle, b), b };
        const uint8_t want[] = { low, low, even, high, high };
        for (int i = 0; i < 5; i++) {
            bad += (uint8_t)kbi_value_bits(x[i], dtype) != want[i];
            bad += (uint8_t)kbi_value_bits(-x[i], dtype) != (want[i] | 0x80);
        }
    }
    CHECK_INT(bad, 0);
    const float above[] = { nextafterf(largest, INFINITY), 1.03f * largest, 1e30f, INFINITY };
    for (int i = 0; i < 4; i++) {
        CHECK_INT((int)kbi_value_bits(above[i], dtype), most);
        CHECK_INT((int)kbi_value_bits(-above[i], dtype), most | 0x80);
    }
    uint8_t nan = (uint8_t)kbi_value_bits(NAN, dtype), tiny = (uint8_t)kbi_value_bits(1e-40, dtype);
    CHECK(isnan(kbi_load_double(&nan, 0, dtype)));
    CHECK_INT(tiny, 0);
    uint8_t first = (uint8_t)most; /* known answers */
    CHECK(kbi_load_double(&first, 0, dtype) == largest);
    CHECK_INT((int)kbi_value_bits(1, dtype), bias << fraction);
    CHECK(kbi_ulp(1, (kb_dtype)dtype) == ldexp(1, -fraction) &&
          kbi_ulp(0, (kb_dtype)dtype) == ldexp(1, 1 - bias - fraction));
}

static void test_fill_8_bits(void) {
    uint8_t h[600];
    float f[300];
    int bad = 0, i;
    kbi_fill_host(h, 0, 600, KB_E4M3, KB_IOTA, 0, 0);
    CHECK(h[0] == 0 && h[1] == 0x38 && h[2] == 0x40 && h[17] == 0x58 && h[447] == 0x7e && h[599] == 0x7e);
    kbi_fill_host(h, 0, 300, KB_E4M3, KB_NORMAL, 7, 3);
    kbi_fill_host(h + 300, 0, 300, KB_E5M2, KB_NORMAL, 7, 3);
    kbi_fill_host(f, 0, 300, KB_F32, KB_NORMAL, 7, 3);
    for (i = 0; i < 300; i++) {
        bad += fabs(kbi_load_double(h, i, KB_E4M3) - f[i]) > fabs(f[i]) / 16 + 0.001;
        bad += fabs(kbi_load_double(h + 300, i, KB_E5M2) - f[i]) > fabs(f[i]) / 8 + 0.00001;
    }
    CHECK_INT(bad, 0);
}

static void test_splitting(void) {
    enum { N = 1003 };
    static unsigned char whole[8 * N], part[8 * N + 32];
    int dtype, kind;
    for (dtype = KB_F32; dtype <= KB_E5M2; dtype++)
        for (kind = KB_ZERO; kind <= KB_IOTA; kind++) {
            size_t size = kbi_dtype_size(dtype);
            int first, n, bad = 0;
            kbi_fill_host(whole, 0, N, dtype, kind, 42, 3);
            for (first = 0; first < 9; first++)
                for (n = 0; n < N - first; n = n < 9 ? n + 1 : n * 3 - 1) {
                    memset(part, 0x5A, sizeof part);
                    kbi_fill_host(part + 9, first, n, dtype, kind, 42, 3);
                    bad += memcmp(part + 9, whole + (size_t)first * size, (size_t)n * size) != 0;
                    bad += part[8] != 0x5A || part[9 + (size_t)n * size] != 0x5A;
                }
            CHECK(!bad);
        }
}

static void test_values(void) {
    float f[8];
    uint32_t u[8];
    uint64_t big[8];
    int64_t wide[4];
    int8_t s8[300];
    uint8_t u8[300];
    uint16_t h[4];
    double d[2];
    int i, bad = 0;
    kbi_fill_host(u, 0, 8, KB_U32, KB_UNIFORM, 0, 0);
    CHECK(u[0] == 0x6627e8d5 && u[1] == 0xe169c58d && u[2] == 0xbc57ac4c && u[3] == 0x9b00dbd8);
    kbi_fill_host(f, 0, 8, KB_F32, KB_UNIFORM, 0, 0);
    for (i = 0; i < 8; i++) bad += f[i] != (float)(u[i] >> 8) / 16777216.0f;
    kbi_fill_host(big, 0, 8, KB_U64, KB_UNIFORM, 0, 0);
    static const uint32_t upper[] = { 0x2dce73e5, 0x1348e23f, 0xfcf8e0ec, 0xa287aadb,   /* independent Philox with */
                                      0xe9535be3, 0x510c4549, 0x63517a4d, 0x9a6323a7 }; /* counters n, 0, 0, 1 */
    for (i = 0; i < 8; i++) bad += big[i] != (u[i] | (uint64_t)upper[i] << 32);
    kbi_fill_host(wide, 0, 4, KB_I64, KB_UNIFORM, 0, 0);
    for (i = 0; i < 4; i++) bad += wide[i] != (int64_t)big[i];
    CHECK(!bad);
    /* The expected normal values were computed with mpmath from u[0] to u[3], and rounded to float. */
    kbi_fill_host(f, 0, 4, KB_F32, KB_NORMAL, 0, 0);
    CHECK(f[0] == 0.9911375045776367f && f[1] == -0.9246627688407898f && f[2] == -0.6176090836524963f &&
          f[3] == -0.48206835985183716f);
    int32_t s32[4];
    uint16_t u16[4];
    /* With KB_NORMAL, an integer is eight times a normally distributed value, rounded. For an unsigned type,
       negative values become 0. */
    kbi_fill_host(s32, 0, 4, KB_I32, KB_NORMAL, 0, 0);
    CHECK(s32[0] == 8 && s32[1] == -7 && s32[2] == -5 && s32[3] == -4);
    kbi_fill_host(u16, 0, 4, KB_U16, KB_NORMAL, 0, 0);
    CHECK(u16[0] == 8 && u16[1] == 0 && u16[2] == 0 && u16[3] == 0);
    kbi_fill_host(s8, 120, 300, KB_I8, KB_IOTA, 0, 0);
    CHECK(s8[0] == 120 && s8[7] == 127 && s8[8] == -128 && s8[299] == -93);
    kbi_fill_host(h, 65519, 2, KB_F16, KB_IOTA, 0, 0);
    CHECK(h[0] == 0x7bff && h[1] == 0x7c00);
    kbi_fill_host(h, 257, 3, KB_BF16, KB_IOTA, 0, 0);
    CHECK(h[0] == 0x4380 && h[1] == 0x4381 && h[2] == 0x4382);
    kbi_fill_host(d, ((int64_t)1 << 53) - 1, 2, KB_F64, KB_IOTA, 0, 0);
    CHECK(d[0] == 9007199254740991.0 && d[1] == 9007199254740992.0);
    kbi_fill_host(wide, ((int64_t)1 << 40) + 5, 4, KB_I64, KB_IOTA, 0, 0);
    CHECK(wide[3] == ((int64_t)1 << 40) + 8);
    kbi_fill_host(s8, 0, 300, KB_I8, KB_NORMAL, 9, 1);
    kbi_fill_host(u8, 0, 300, KB_U8, KB_NORMAL, 9, 1);
    for (bad = i = 0; i < 300; i++) bad += u8[i] != (s8[i] < 0 ? 0 : s8[i]);
    CHECK(!bad);
}

static void test_load(void) {
    static const uint64_t bits[16] = { 0,
                                       0xc0200000,
                                       0xc004000000000000u,
                                       0xc100,
                                       0xc020,
                                       0xfd,
                                       0xfd,
                                       0xfffd,
                                       0xfffd,
                                       0xfffffffdu,
                                       0xfffffffdu,
                                       0xfffffffffffffffdu,
                                       0xfffffffffffffffdu,
                                       0xc0200000,
                                       0xc2,
                                       0xc1 };
    static const double value[16] = {
        0, -2.5, -2.5, -2.5, -2.5, -3, 253, -3, 65533, -3, 4294967293.0, -3, 18446744073709551616.0, -2.5, -2.5, -2.5
    };
    static const size_t size[16] = { 0, 4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 4, 1, 1 };
    unsigned char at[40];
    int dtype;
    for (dtype = 0; dtype < 16; dtype++) {
        CHECK(kbi_dtype_size(dtype) == size[dtype]);
        memcpy(at + 1 + 2 * size[dtype], &bits[dtype], size[dtype]); /* little-endian hosts */
        CHECK(kbi_load_double(at + 1, 2, dtype) == value[dtype]);
    }
    CHECK(kbi_dtype_size(-1) == 0 && kbi_dtype_size(16) == 0);
}

/* each moment of 2^20 random values is within 5 standard errors of its expected value */
static void test_moments(void) {
    enum { N = 1 << 20 };
    float* z = (float*)malloc(N * sizeof *z);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, lag = 0, n = N, se = 5 / sqrt(n);
    int i;
    if (!z) exit(2);
    kbi_fill_host(z, 0, N, KB_F32, KB_NORMAL, 2024, 0);
    for (i = 0; i < N; i++) {
        double v = z[i];
        m1 += v, m2 += v * v, m3 += v * v * v, m4 += v * v * v * v;
        if (i) lag += v * z[i - 1];
    }
    CHECK(fabs(m1 / n) < se && fabs(m2 / n - 1) < se * sqrt(2.0));
    CHECK(fabs(m3 / n) < se * sqrt(15.0) && fabs(m4 / n - 3) < se * sqrt(96.0) && fabs(lag / n) < se);
    free(z);
}

int main(void) {
    test_philox();
    test_conversions();
    test_8_bits(KB_E4M3, 3, 7, 0x7e, 448);
    test_8_bits(KB_E5M2, 2, 15, 0x7b, 57344);
    test_fill_8_bits();
    test_splitting();
    test_values();
    test_load();
    test_moments();
    return test_end();
}
