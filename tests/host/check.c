// SPDX-License-Identifier: MIT OR Unlicense
// Tests which results kb_check and related functions accept. NaN must never pass, even with -ffast-math
// (check_fast_math.sh).
#include "test.h"
#define KIT_WITHOUT_ADDONS
#include "kit.h"

static float nan_f(void) { // returns a NaN made from its bits, because -ffast-math optimises the constant NAN away
    uint32_t bits = 0x7fc00000u;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static float inf_f(int negative) {
    uint32_t bits = negative ? 0xff800000u : 0x7f800000u;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

typedef enum rule { MIXED, NORM, ULP } rule;

// Returns whether the comparison passes. The return value of the kb_check function must agree with the status of
// the record.
static int passes(rule how, const float* got, const float* want, int64_t n, double tolerance) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "check";
    d.samples = 3;
    d.max_time = 1e-3;
    kb_state* kb = kb_open(&d);
    float* y = KB_ALLOC(kb, float, n);
    KB_TIME(kb) {
        memcpy(y, got, sizeof(float) * (size_t)n);
        kb_keep(y);
    }
    bool fine = how == MIXED  ? kb_check(kb, y, want, n, tolerance)
                : how == NORM ? kb_check_norm(kb, y, want, n, tolerance)
                              : kb_check_ulp(kb, y, want, n, tolerance);
    kb_result r = kb_close(kb);
    CHECK_INT(fine, r.status == KB_OK);
    CHECK_INT(fine && n > 0, r.verified == 1);
    bool sensible = kbi_finite(tolerance) && tolerance >= 0; // an invalid tolerance is an error of the benchmark
    CHECK_INT(!fine, (int)((r.flags >> (sensible ? KB_FLAG_VERIFY_FAIL : KB_FLAG_BAD_CASE)) & 1));
    kb_result_free(&r);
    return fine;
}

static int one(rule how, float got, float want, double tolerance) { return passes(how, &got, &want, 1, tolerance); }

static void test_plain(void) {
    CHECK(one(MIXED, 1.0f, 1.0f, 0));
    CHECK(one(MIXED, 1.001f, 1.0f, 1e-3)); // tolerance * (1 + |want|) = 2e-3
    CHECK(!one(MIXED, 1.003f, 1.0f, 1e-3));
    CHECK(one(MIXED, 0.0009f, 0.0f, 1e-3));
    CHECK(!one(MIXED, 0.0011f, 0.0f, 1e-3));
    CHECK(one(MIXED, -100.05f, -100.0f, 1e-3));
    CHECK(!one(MIXED, 100.0f, -100.0f, 1e-3));
    CHECK(one(NORM, 1.0005f, 1.0f, 1e-3));
    CHECK(!one(NORM, 1.002f, 1.0f, 1e-3));
    CHECK(one(NORM, 0.0f, 0.0f, 0));
    CHECK(!one(NORM, 1e-3f, 0.0f, 1e-1));
    CHECK(one(ULP, 1.0f, 1.0f, 0));
    CHECK(one(ULP, 1.00000012f, 1.0f, 1));
    CHECK(!one(ULP, 1.0000005f, 1.0f, 2));
    CHECK(one(ULP, 0.0f, -0.0f, 0));
    CHECK(one(ULP, 1.4e-45f, 0.0f, 1));
    CHECK(!one(ULP, -1.0f, 1.0f, 1000));
}

static void test_not_numbers(void) {
    float bad[] = { nan_f(), inf_f(0), inf_f(1) };
    for (int how = MIXED; how <= ULP; ++how) {
        for (int i = 0; i < 3; ++i) {
            CHECK_THAT(!one((rule)how, bad[i], 1.0f, 1e30), "rule %d accepts %g, expected 1", how, (double)bad[i]);
            CHECK_THAT(!one((rule)how, bad[i], 0.0f, 1e30), "rule %d accepts %g, expected 0", how, (double)bad[i]);
            CHECK_THAT(!one((rule)how, 1.0f, bad[i], 1e30), "rule %d accepts 1, expected %g", how, (double)bad[i]);
            CHECK_THAT(one((rule)how, bad[i], bad[i], 0), "rule %d rejects the expected value %g", how,
                       (double)bad[i]);
            CHECK_THAT(!one((rule)how, bad[i], bad[(i + 1) % 3], 1e30), "rule %d accepts %g, expected %g", how,
                       (double)bad[i], (double)bad[(i + 1) % 3]);
        }
        static float got[1000], want[1000];
        for (int i = 0; i < 1000; ++i) got[i] = want[i] = (float)i;
        CHECK(passes((rule)how, got, want, 1000, 0));
        for (int i = 0; i < 1000; i += 333) {
            got[i] = nan_f();
            CHECK(!passes((rule)how, got, want, 1000, 1e30));
            got[i] = (float)i;
        }
        CHECK(!one((rule)how, 1.0f, 1.0f, -1));
        CHECK(!one((rule)how, 2.0f, 1.0f, (double)nan_f()));
        CHECK(passes((rule)how, got, want, 0, 0));
    }
}

static void test_types(void) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "types";
    d.samples = 3;
    d.max_time = 1e-3;
    kb_state* kb = kb_open(&d);
    enum { N = 4 };
    double want[N] = { 0, 1, 2, 3 }, off[N] = { 0, 1, 2, 4 };
    float* f = KB_ALLOC(kb, float, N);
    double* g = KB_ALLOC(kb, double, N);
    kb_f16* h = KB_ALLOC(kb, kb_f16, N);
    kb_bf16* b = KB_ALLOC(kb, kb_bf16, N);
    signed char* i8 = KB_ALLOC(kb, signed char, N);
    unsigned char* u8 = KB_ALLOC(kb, unsigned char, N);
    short* i16 = KB_ALLOC(kb, short, N);
    unsigned short* u16 = KB_ALLOC(kb, unsigned short, N);
    int* i32 = KB_ALLOC(kb, int, N);
    unsigned* u32 = KB_ALLOC(kb, unsigned, N);
    long long* i64 = KB_ALLOC(kb, long long, N);
    unsigned long long* u64 = KB_ALLOC(kb, unsigned long long, N);
#define EACH(X) X(f) X(g) X(h) X(b) X(i8) X(u8) X(i16) X(u16) X(i32) X(u32) X(i64) X(u64)
#define FILL(p) kb_fill(kb, p, N, KB_IOTA);
    EACH(FILL)
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(f);
    }
#define RIGHT(p) CHECK(kb_check(kb, p, want, N, 0));
    EACH(RIGHT)
    CHECK(kb_check_ulp(kb, h, want, N, 0));
    CHECK(kb_check_norm(kb, b, want, N, 0));
    kb_result r = kb_close(kb);
    CHECK_INT(r.status, KB_OK);
    CHECK_INT(r.verified, 1);
    kb_result_free(&r);
#define WRONG(p, T)                               \
    do {                                          \
        kb = kb_open(&d);                         \
        T* p##_ = KB_ALLOC(kb, T, N);             \
        kb_fill(kb, p##_, N, KB_IOTA);            \
        KB_TIME(kb) { kb_keep(p##_); }            \
        CHECK(!kb_check(kb, p##_, off, N, 1e-3)); \
        r = kb_close(kb);                         \
        CHECK_INT(r.status, KB_FAILED);           \
        CHECK_REAL(r.max_error, 0.2, 1e-12);      \
        kb_result_free(&r);                       \
    } while (0)
    WRONG(f, float);
    WRONG(g, double);
    WRONG(h, kb_f16);
    WRONG(b, kb_bf16);
    WRONG(i8, signed char);
    WRONG(u8, unsigned char);
    WRONG(i16, short);
    WRONG(u16, unsigned short);
    WRONG(i32, int);
    WRONG(u32, unsigned);
    WRONG(i64, long long);
    WRONG(u64, unsigned long long);
}

static void test_message(void) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "message";
    d.samples = 3;
    d.max_time = 1e-3;
    kb_state* kb = kb_open(&d);
    float *y = KB_ALLOC(kb, float, 100), want[100];
    kb_fill(kb, y, 100, KB_IOTA);
    for (int i = 0; i < 100; ++i) want[i] = (float)i;
    want[57] = 1000;
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(y);
    }
    kb_check(kb, y, want, 100, 1e-6);
    kb_result r = kb_close(kb);
    CHECK_HAS(r.message, "57");
    CHECK_HAS(r.message, "1000");
    CHECK_INT(r.status, KB_FAILED);
    kb_result_free(&r);

    kb = kb_open(&d);
    KB_TIME(kb) {
        for (int kept = 0; kept < 20; kept++) kb_keep(kb);
    }
    CHECK(kb_check_that(kb, true, 0.25, 1, "not shown"));
    CHECK(!kb_check_that(kb, false, 7.5, 1, "%s is %d", "the answer", 42));
    CHECK(!kb_check_that(kb, true, 0, 1, "a check after the case has failed"));
    r = kb_close(kb);
    CHECK_HAS(r.message, "the answer is 42");
    CHECK(!strstr(r.message ? r.message : "", "not shown"));
    CHECK_REAL(r.max_error, 7.5, 0);
    kb_result_free(&r);
}

static kb_result whole_case(rule how, const void* got, const void* want, kb_dtype dtype, int64_t n,
                            double tolerance) {
    kb_desc d;
    size_t bytes = 2 * kb_dtype_size(dtype);
    memset(&d, 0, sizeof d);
    d.name = "whole";
    d.samples = 3;
    d.max_time = 1e-3;
    kb_state* kb = kb_open(&d);
    char* y = KB_ALLOC(kb, char, bytes);
    KB_TIME(kb) {
        memcpy(y, got, bytes);
        kb_keep(y);
    }
    if (how == NORM)
        kb_check_norm_typed(kb, y, dtype, want, dtype, n, tolerance);
    else
        kb_check_typed(kb, y, dtype, want, dtype, n, tolerance);
    return kb_close(kb);
}

static void test_extremes(void) {
    static const struct {
        double got[2], want[2];
        int fine;
    } norms[] = {
        { { 5e-170, 0 }, { 1e-170, 0 }, 0 },           { { 1e-170, 2e-180 }, { 1e-170, 1e-180 }, 1 },
        { { 1e153, 1 }, { 1.4e154, 1 }, 0 },           { { -1e200, 1e200 }, { 1e200, 1e200 }, 0 },
        { { 1e200, 1e300 }, { 2e200, 1e300 }, 1 },     { { 1e308, -1e308 }, { -1e308, 1e308 }, 0 },
        { { 3e-300, 3e-300 }, { 3e-300, 6e-300 }, 0 },
    };
    for (int i = 0; i < (int)(sizeof norms / sizeof *norms); ++i) {
        kb_result r = whole_case(NORM, norms[i].got, norms[i].want, KB_F64, 2, 1e-6);
        CHECK_THAT((r.status == KB_OK) == norms[i].fine, "norm-wise, pair %d: status %d, %s", i, (int)r.status,
                   r.message ? r.message : "");
        kb_result_free(&r);
    }
    static const double far = 1e160, near = 1e100; // the reported error is finite, however large it is
    CHECK_REAL(kbi_match(&far, KB_F64, &near, KB_F64, 1, KBI_CHECK_NORM, 1e-6).error, 1e60, 1e-9);
    CHECK_REAL(kbi_match(&near, KB_F64, &far, KB_F64, 1, KBI_CHECK_NORM, 1e-6).error, 1, 1e-9);
    static const double none[2] = { 0, 0 }, five[2] = { 5, 1 };
    kbi_matched worst = kbi_match(five, KB_F64, none, KB_F64, 2, KBI_CHECK_MIXED, 1e-6);
    CHECK_INT(worst.worst, 0), CHECK_REAL(worst.got, 5, 0), CHECK_INT(worst.bad, 2);
    kb_result r = whole_case(NORM, five, none, KB_F64, 2, 1e-6);
    CHECK_INT(r.status, KB_FAILED);
    CHECK_HAS(r.message, "norm");
    CHECK(!strstr(r.message, "-1"));
    kb_result_free(&r);
    static const uint64_t big[2] = { UINT64_C(9007199254740992), UINT64_MAX - 1 },
                          next[2] = { UINT64_C(9007199254740993), UINT64_MAX };
    for (int i = 0; i < 2; ++i)
        for (int is_signed = 0; is_signed < 2; ++is_signed) {
            uint64_t got[2] = { big[i], big[i] }, want[2] = { next[i], next[i] };
            kb_dtype dtype = is_signed ? KB_I64 : KB_U64;
            r = whole_case(MIXED, got, want, dtype, 2, 0);
            CHECK_THAT(r.status == KB_FAILED, "%s: pair %d passes", kb_dtype_name(dtype), i);
            kb_result_free(&r);
            r = whole_case(MIXED, want, want, dtype, 2, 0);
            CHECK_INT(r.status, KB_OK);
            kb_result_free(&r);
        }
}

static void test_misplaced(void) {
    kb_desc d;
    float zeros[4] = { 0, 0, 0, 0 };
    memset(&d, 0, sizeof d);
    d.name = "misplaced";
    d.samples = 3;
    d.max_time = 1e-3;
    kb_state* kb = kb_open(&d);
    float* y = KB_ALLOC(kb, float, 4);
    kb_fill(kb, y, 4, KB_ZERO);
    CHECK(!kb_check(kb, y, zeros, 4, 0.0));
    KB_TIME(kb) {
        y[0] = 777;
        kb_keep(y);
    }
    kb_result r = kb_close(kb);
    CHECK_INT(r.status, KB_FAILED);
    CHECK_HAS(r.message, "before the timed block");
    CHECK(r.verified != 1);
    kb_result_free(&r);
    static const float some[2] = { 1, 2 };
    static float wanted[100000];
    static const int64_t counts[] = { 3, 100000, -1, INT64_MAX };
    for (int i = 0; i < 4; ++i) {
        r = whole_case(MIXED, some, wanted, KB_F32, counts[i], 1e30);
        CHECK_INT(r.status, KB_FAILED);
        CHECK((r.flags >> KB_FLAG_BAD_CASE) & 1);
        char count[32];
        snprintf(count, sizeof count, "%lld elements", (long long)counts[i]);
        CHECK_HAS(r.message, count);
        kb_result_free(&r);
    }
    for (int i = 0; i < 4; ++i) {
        kb = kb_open(&d);
        y = KB_ALLOC(kb, float, 4);
        if (i == 0) kb_fill(kb, y, INT64_MAX, KB_ZERO);
        if (i == 1) kbi_fill(kb, y, KB_NODTYPE, 4, KB_ZERO);
        KB_TIME(kb) {
            for (int kept = 0; kept < 20; kept++) kb_keep(y);
        }
        if (i == 2) kb_check_typed(kb, y, kb->dtype, zeros, KB_F32, 4, 1);
        if (i == 3) kb_check_typed(kb, y, KB_F32, zeros, kb->dtype, 4, 1);
        r = kb_close(kb);
        CHECK_HAS(r.message, i == 0 ? "kb_fill" : "without a type");
        CHECK((r.flags >> KB_FLAG_BAD_CASE) & 1);
        kb_result_free(&r);
    }
}

static void test_unverified(void) {
    kb_desc d;
    memset(&d, 0, sizeof d);
    d.name = "unverified";
    d.samples = 3;
    d.max_time = 1e-3;
    for (int checked = 0; checked < 2; ++checked) {
        kb_state* kb = kb_open(&d);
        KB_TIME(kb) {
            for (int kept = 0; kept < 20; kept++) kb_keep(kb);
        }
        if (checked) kb_check_that(kb, true, 0, 0, "fine");
        kb_result r = kb_close(kb);
        CHECK_INT(r.status, KB_OK);
        CHECK_INT((r.flags >> KB_FLAG_UNVERIFIED) & 1, !checked);
        CHECK_INT(r.verified == 1, checked);
        kb_result_free(&r);
    }
}

int main(void) {
    test_plain();
    test_not_numbers();
    test_types();
    test_message();
    test_extremes();
    test_misplaced();
    test_unverified();
    return test_end();
}
