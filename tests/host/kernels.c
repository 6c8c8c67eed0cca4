// SPDX-License-Identifier: MIT OR Unlicense
/* Tests the formulas, oracles, number conversions, random numbers and the verifier of kbench_kernels.cuh without
   a GPU and without CUDA. A verifier that accepts wrong results would make all other tests worthless, so this
   file also feeds it wrong results.

   cc -std=c11 -O1 -g -fsanitize=address,undefined -I. tests/host/kernels.c -o kernels -lm && ./kernels */
#include "kbench_kernels.cuh"
#include <stdio.h>
#include <stdlib.h>

static int passed, failed;

static void check(int ok, const char* what) {
    if (ok)
        passed++;
    else
        failed++, printf("FAIL: %s\n", what);
}
static void check_near(double got, double want, double tol, const char* what) {
    int ok = fabs(got - want) <= tol;
    if (!ok) printf("  got %.17g, want %.17g, tolerance %g\n", got, want, tol);
    check(ok, what);
}
static kbk_shape shape(int64_t rows, int64_t cols, int64_t depth) {
    kbk_shape s;
    memset(&s, 0, sizeof s);
    s.batch = s.heads = 1, s.rows = rows, s.cols = cols;
    s.k = s.vocabulary = s.stride = s.among = depth;
    return s;
}
static double* numbers(int64_t n) { return (double*)calloc((size_t)(n ? n : 1), sizeof(double)); }

// --- every formula at the small shape for which the rows of KBK_OPS have numbers computed by hand
static void test_formulas(void) {
#define WANT(op, dir, family, scratch, formula, signature, sizes, flops, bytes, check) { flops, bytes },
    static const struct { double flops, bytes; } want[] = { KBK_OPS(WANT) };
    kbk_shape s = shape(3, 5, 7);
    for (int i = 0; i < KBK_OP_COUNT; i++) {
        check_near(kbk_ops[i].flops(&s), want[i].flops, 0, kbk_ops[i].name);
        check_near(kbk_ops[i].bytes(&s, 2), want[i].bytes, 0, kbk_ops[i].name);
    }
    // If the source has more elements than the index list, the gather reads one element per index.
    for (s.among = 0; s.among < 99; s.among += 49)
        check_near(kbk_find_op("gather", "run")->bytes(&s, 2), 180, 0,
                   "bytes of a gather with more source elements than indices");
}

static int64_t dimension(const kbk_op* op, const kbk_shape* s, char letter) {
    switch (letter) {
    case '*': return kbk_has_dimension(op->signature, 'C') ? s->rows : s->rows * s->cols;
    case 'N': return s->rows * s->cols;
    case 'C':
    case 'D': return s->cols;
    case 'R':
    case 'M':
    case 'S': return s->rows;
    case 'K': return s->k;
    case 'V': return s->vocabulary;
    case 'A': return s->among;
    case 'Z':
    case 'B': return s->batch;
    case 'H': return s->heads;
    case 'X': return s->rows * s->cols * s->stride;
    default: return letter >= '0' && letter <= '9' ? letter - '0' : -1;
    }
}
/* The signature of an operation names its tensors in order, inputs before "->". The product of the dimensions of a
   tensor is its number of elements. */
static void test_signatures(void) {
    for (int i = 0; i < KBK_OP_COUNT; i++) {
        const kbk_op* op = &kbk_ops[i];
        const char *p = op->signature, *arrow = strstr(p, "->");
        kbk_tensor t[KBK_MAX_TENSORS];
        kbk_shape s = shape(3, 5, 7);
        s.batch = 2, s.heads = 4;
        // makes N, which is rows * cols, equal to the number of columns of the product
        if (op->family == KBK_GEMM) s.cols = s.rows, s.rows = 1;
        const int n = op->tensors(&s, t);
        for (int k = 0; k < n; k++) {
            p += strspn(p, " ->");
            const size_t length = strcspn(p, "[");
            int64_t count = 1;
            check(strncmp(p, t[k].name, length) == 0 && !t[k].name[length], op->signature);
            check((t[k].role == KBK_IN) == (p < arrow), op->signature);
            for (p += length + 1; *p != ']'; p += *p == ',' || *p == '|') count *= dimension(op, &s, *p++);
            p++;
            check(t[k].count == (strcmp(op->name, "null") ? count : 0), op->signature);
        }
        check(*p == 0 || *p == ';', op->signature);
    }
    check(kbk_has_option("x[*] -> y[*]; p=0.1 seed=0", "seed") && !kbk_has_option("p[p] -> y; ap=1", "p"), "options");
}

// The strides of a packed tensor of q, k and v, of a slice of a matrix, and strides that must be rejected.
static void test_strides(void) {
    const kbk_op *matmul = kbk_find_op("matmul", "fwd"), *bmm = kbk_find_op("bmm", "fwd");
    kbk_shape s = shape(3, 5, 7);
    kbk_layout l = kbk_layout_of(matmul, &s, 0);
    check(l.dims == 2 && l.size[0] == 7 && l.size[1] == 3 && kbk_offset(&l, 20) == 20, "layout of a whole matrix");
    s.layout = KBK_TN, s.strides[0][0] = 4, s.strides[2][0] = 6;
    l = kbk_layout_of(matmul, &s, 0);
    check(l.size[0] == 3 && l.size[1] == 7 && kbk_offset(&l, 20) == 6 * 4 + 2, "layout of a slice of A'");
    check(!kbk_check_shape(matmul, &s), "a slice");
    check(kbk_layout_of(kbk_find_op("softmax", "fwd"), &s, 0).dims == 0, "a contiguous tensor");
    // rows of three products beside each other; then one element too few
    s.batch = 3, s.strides[2][0] = 15, s.strides[2][1] = 5;
    l = kbk_layout_of(bmm, &s, 2);
    check(kbk_offset(&l, 44) == 2 * 5 + 2 * 15 + 4 && !kbk_check_shape(bmm, &s), "products beside each other");
    for (int i = 0; i < 7; i++) {
        static const int64_t wrong[7][4] = { { 2, 15, 4, 0 },
                                             { 2, 14, 5, 0 },
                                             { 2, 4, 0, 0 },
                                             { 0, -8, 0, 0 },
                                             { 0, 8, 0, 1 },
                                             { 3, 8, 0, 0 },
                                             { 1, (int64_t)1 << 60, 0, 0 } };
        memset(s.strides, 0, sizeof s.strides);
        memcpy(s.strides[wrong[i][0]], wrong[i] + 1, sizeof s.strides[0]);
        check(kbk_check_shape(bmm, &s) != NULL, "strides that must be rejected");
    }
    // q inside a tensor of 2 x 3 (sequence) x 3 (q, k, v) x 4 (heads) x 5
    memset(s.strides, 0, sizeof s.strides);
    s.batch = 2, s.heads = 4, s.cols = 5, s.strides[0][0] = 60, s.strides[0][1] = 5, s.strides[0][2] = 180;
    l = kbk_layout_of(kbk_find_op("attention", "fwd"), &s, 0);
    check(l.dims == 4 && kbk_offset(&l, ((1 * 4 + 2) * 3 + 1) * 5 + 3) == 180 + 2 * 5 + 60 + 3,
          "q in a packed tensor");
    check(!kbk_check_shape(kbk_find_op("attention", "fwd"), &s), "q in a packed tensor is valid");
    s.strides[4][0] = 4;
    check(kbk_check_shape(kbk_find_op("attention", "fwd"), &s) != NULL, "strides of lse");
    memset(s.strides, 0, sizeof s.strides);
    s.strides[0][0] = 8;
    check(kbk_check_shape(kbk_find_op("softmax", "fwd"), &s) != NULL, "strides of an operation without strides");
    const kbk_variant* copies = kbk_find("bmm", "fwd", "mmapipe");
    s.layout = KBK_NN, s.cols = s.k = 8, s.strides[0][0] = 16;
    check(kbk_workspace(copies, KBK_BF16, &s) == 0, "aligned rows are not copied");
    s.strides[0][0] = 9;
    check(kbk_workspace(copies, KBK_BF16, &s) == KBK_TICKETS + 2 * 256, "rows that are not aligned are copied");
}

/* For every shape, the compulsory bytes (_bytes) must equal the sum of the tensor sizes (_tensors), with two
   exceptions. For access patterns, only the useful bytes of an input are counted. For an embedding lookup with
   uniform ids, only the expected number of distinct rows is counted. */
static void test_bytes_are_tensors(void) {
    for (int i = 0; i < KBK_OP_COUNT; i++)
        for (int elem = 2; elem <= 4; elem += 2) {
            int lookup = !strcmp(kbk_ops[i].name, "embedding") && !strcmp(kbk_ops[i].dir, "fwd");
            int bus = !strcmp(kbk_ops[i].name, "h2d") || !strcmp(kbk_ops[i].name, "d2h");
            if (kbk_ops[i].family == KBK_PICK || lookup || bus) continue;
            kbk_tensor t[KBK_MAX_TENSORS];
            kbk_shape s = shape(11, 13, 17);
            s.batch = 3;
            double sum = 0;
            int n = kbk_ops[i].tensors(&s, t);
            for (int k = 0; k < n; k++)
                sum += (double)t[k].count * kbk_kind_size(t[k].kind, elem == 4 ? KBK_F32 : KBK_BF16);
            if (n > 0 && n <= KBK_MAX_TENSORS)
                check_near(kbk_ops[i].bytes(&s, elem), sum, 0, kbk_ops[i].name);
            else
                check(0, "number of tensors");
        }
}

// --- Philox4x32-10: the known-answer tests published with Random123 (kat_vectors)
static void test_philox(void) {
    static const uint32_t kat[3][10] = {
        { 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
        { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
          0x6d5451fd },
        { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
          0x24126ea1 },
    };
    for (int i = 0; i < 3; i++) {
        kbk_u4 c, r;
        memcpy(c.w, kat[i], sizeof c.w);
        r = kbk_philox(c, kat[i][4], kat[i][5]);
        check(memcmp(r.w, kat[i] + 6, sizeof r.w) == 0, "Philox known answer");
    }
}

// --- dropout: kernels and oracle share the function that selects an element's half word, so the test repeats it
static void test_dropout(void) {
    enum { N = 1 << 18 };
    int kept = 0, wrong = 0, all = 0, none = 0;
    for (int i = 0; i < N; i++) {
        kbk_u4 c = { { (uint32_t)i / 8, 0, 0, 1 } }, r = kbk_philox(c, 42, 0);
        uint32_t half = r.w[i % 8 / 2] >> (i % 2 ? 16 : 0) & 0xFFFF;
        wrong += kbk_dropout_keeps(42, 0.1, i) != (half >= 6554);
        kept += kbk_dropout_keeps(42, 0.1, i);
        all += kbk_dropout_keeps(42, 0, i), none += kbk_dropout_keeps(42, 1, i);
    }
    double p = 1 - 6554 / 65536.0;
    check(wrong == 0, "element i uses the 16-bit word i mod 8 of the random block i / 8");
    check_near(kept, p * N, 5 * sqrt(N * p * (1 - p)), "number of kept elements, within five standard deviations");
    check(all == N && none == 0, "p = 0 keeps all, p = 1 nothing");
}

static void test_fill(void) {
    enum { N = 100000 };
    kbk_tensor t = kbki_in("x", N, 1);
    double *x = numbers(N), y[7], sum = 0, square = 0;
    kbk_fill(&t, 3, KBK_F32, 42, 0, N, x);
    kbk_fill(&t, 3, KBK_F32, 42, 1001, 7, y);
    check(memcmp(x + 1001, y, sizeof y) == 0, "a value depends only on its index");
    for (int i = 0; i < N; i++) sum += x[i], square += x[i] * x[i];
    check_near(sum / N, 0, 5 / sqrt((double)N), "mean of the normals");
    check_near(square / N, 1, 5 * sqrt(2.0 / N), "variance of the normals");
    t = kbki_ids("t", N, 1, 10);
    kbk_fill(&t, 3, KBK_F32, 42, 0, N, x);
    int seen[10] = { 0 }, out = 0;
    for (int i = 0; i < N; i++) {
        if (x[i] >= 0 && x[i] < 10 && x[i] == floor(x[i]))
            seen[(int)x[i]]++;
        else
            out++;
    }
    check(out == 0, "ids in range");
    for (int i = 0; i < 10; i++) check_near(seen[i], N / 10, 5 * sqrt(N / 10), "ids uniform");
    free(x);
}

// --- rounding: round trip of all 16-bit patterns; ties; the f32 path against the hardware conversion
static void test_rounding(void) {
    int wrong = 0;
    for (int d = KBK_F16; d <= KBK_BF16; d++) {
        uint32_t inf = d == KBK_F16 ? 0x7C00 : 0x7F80;
        for (uint32_t b = 0; b < 65536; b++) {
            double x = kbki_widen_bits(d, b);
            if ((b & 0x7FFF) > inf)
                wrong += !kbk_is_nan(x) || !kbk_is_nan(kbk_round_value(d, x));
            else
                wrong += kbk_round(d, x) != b;
            if ((b & 0x7FFF) >= inf || b & 0x8000) continue;
            double next =
                b + 1 == inf ? 2 * kbki_widen_bits(d, b) - kbki_widen_bits(d, b - 1) : kbki_widen_bits(d, b + 1);
            double half = 0.5 * (x + next);
            wrong += kbk_round(d, half) != b + (b & 1);
            wrong += kbk_round(d, nextafter(half, 0)) != b || kbk_round(d, nextafter(half, HUGE_VAL)) != b + 1;
            wrong += kbk_round(d, -half) != (b + (b & 1)) + 0x8000;
        }
    }
    check(wrong == 0, "16-bit rounding");
    wrong = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        kbk_u4 r = kbk_random_block(7, i, 0, 0);
        double x = kbki_from_bits((uint64_t)r.w[0] << 32 | r.w[1]);
        if (i & 1) x = ldexp((double)r.w[1] + r.w[2] * 2.3283064365386963e-10, (int)(r.w[0] % 320) - 200);
        if (kbk_is_nan(x)) continue;
        // a cast of this finite value to float would be undefined behaviour
        if (fabs(x) > 3.5e38 && !kbk_is_inf(x)) continue;
        float f = (float)x;
        uint32_t b;
        memcpy(&b, &f, sizeof b);
        wrong += b != kbk_round(KBK_F32, x);
    }
    check(wrong == 0, "f32 rounding");
    check(kbk_round(KBK_F16, 65519.9) == 0x7BFF && kbk_round(KBK_F16, 65520) == 0x7C00, "f16 overflow");
    check(kbk_round(KBK_F16, 0x1.0p-25) == 0 && kbk_round(KBK_F16, 0x1.8p-25) == 1, "f16 underflow");
    check(kbk_round(KBK_BF16, 1e300) == 0x7F80 && kbk_round(KBK_F32, -1e300) == 0xFF800000u, "overflow to infinity");
    check(kbk_ulp(KBK_BF16, 1.0) == 0x1p-7 && kbk_ulp(KBK_F16, 1.5) == 0x1p-10 && kbk_ulp(KBK_F32, 0) == 0x1p-149,
          "ulp");
}

/* Tests the conversion of every e4m3 value to and from double, with the values in table 2 of OCP's "8-bit floating
   point specification" (revision 1.0). Ties round to even. Values saturate at 448. */
static void test_e4m3(void) {
    static const struct {
        uint32_t bits;
        double value;
    } known[] = {
        { 0x00, 0 },        { 0x01, 0x1p-9 }, { 0x02, 0x1p-8 },  { 0x07, 0x1.cp-7 }, { 0x08, 0x1p-6 },
        { 0x09, 0x1.2p-6 }, { 0x30, 0.5 },    { 0x38, 1 },       { 0x3C, 1.5 },      { 0x3F, 1.875 },
        { 0x40, 2 },        { 0x53, 11 },     { 0x77, 240 },     { 0x78, 256 },      { 0x7D, 416 },
        { 0x7E, 448 },      { 0x80, -0.0 },   { 0x81, -0x1p-9 }, { 0xB8, -1 },       { 0xFE, -448 },
    };
    int wrong = 0;
    for (int i = 0; i < (int)(sizeof known / sizeof known[0]); i++) {
        double x = kbk_e4m3_value(known[i].bits);
        wrong += x != known[i].value || kbk_e4m3_bits(known[i].value) != known[i].bits;
    }
    check(wrong == 0, "e4m3: known values");
    wrong = !kbk_is_nan(kbk_e4m3_value(0x7F)) || !kbk_is_nan(kbk_e4m3_value(0xFF));
    wrong += kbk_e4m3_bits(kbki_from_bits(0x7FF8ull << 48)) != 0x7F;
    check(wrong == 0, "e4m3: NaN");
    wrong = 0;
    for (uint32_t b = 0; b < 0x7F; b++) {
        double x = kbk_e4m3_value(b), next = b < 0x7E ? kbk_e4m3_value(b + 1) : 480, half = 0.5 * (x + next);
        uint32_t up = b < 0x7E ? b + 1 : b;
        wrong += kbk_e4m3_bits(x) != b || kbk_e4m3_bits(-x) != (b | 0x80) || !(next > x);
        wrong += kbk_e4m3_bits(half) != (b & 1 ? up : b) || kbk_e4m3_bits(-half) != ((b & 1 ? up : b) | 0x80);
        wrong += kbk_e4m3_bits(nextafter(half, 0)) != b || kbk_e4m3_bits(nextafter(half, HUGE_VAL)) != up;
    }
    check(wrong == 0, "e4m3: rounding");
    check(kbk_e4m3_bits(1e300) == 0x7E && kbk_e4m3_bits(-HUGE_VAL) == 0xFE && kbk_e4m3_bits(1e-300) == 0,
          "e4m3: overflow and underflow");
    double x[5] = { 1, -448, 0x1p-9, 1000, 0.3 }, y[5];
    unsigned char raw[8];
    memset(raw, 0xAA, sizeof raw);
    kbk_narrow(KBK_KE4M3, KBK_BF16, x, raw, 5);
    check(raw[0] == 0x38 && raw[1] == 0xFE && raw[2] == 1 && raw[5] == 0xAA, "e4m3: a byte each");
    kbk_widen(KBK_KE4M3, KBK_BF16, raw, y, 5);
    check(y[0] == 1 && y[1] == -448 && y[2] == 0x1p-9 && y[3] == 448 && y[4] == 0.3125, "e4m3 storage");
    kbk_tensor t = kbki_in("x", 1000, 1);
    double* z = numbers(1000);
    t.kind = KBK_KE4M3;
    kbk_fill(&t, 0, KBK_BF16, 42, 0, 1000, z);
    for (int i = wrong = 0; i < 1000; i++) wrong += kbk_e4m3_value(kbk_e4m3_bits(z[i])) != z[i];
    check(wrong == 0, "e4m3: filled inputs are representable");
    free(z);
}

static void test_storage(void) {
    double x[4] = { 1, -2.5, 7, 1e6 }, y[4];
    unsigned char raw[32];
    kbk_narrow(KBK_T, KBK_BF16, x, raw, 3);
    kbk_widen(KBK_T, KBK_BF16, raw, y, 3);
    check(y[0] == 1 && y[1] == -2.5 && y[2] == 7, "bf16 storage");
    kbk_narrow(KBK_KI32, KBK_F16, x, raw, 4);
    kbk_widen(KBK_KI32, KBK_F16, raw, y, 4);
    check(y[1] == -2 && y[3] == 1e6, "int32 storage");
    kbk_narrow(KBK_KI64, KBK_F16, x, raw, 4);
    kbk_widen(KBK_KI64, KBK_F16, raw, y, 4);
    check(y[0] == 1 && y[3] == 1e6, "int64 storage");
}

// --- oracles
static void run_ref(const char* op, const kbk_shape* s, const double* const* in, double* const* out) {
    const kbk_op* o = kbk_find_op(op, "fwd");
    o->ref(s, 4, in, out, 0, o->units(s));
}

/* Computed with SciPy 1.17.0 (NumPy float64): x * ndtr(x); x * expit(2 u), u = sqrt(2/pi) (x + 0.044715 x^3);
   x * expit(x) */
static void test_activations(void) {
    static const double t[][4] = {
        { -10.0, -7.6198530241604699e-23, -1.2040923482098023e-37, -0.00045397868702434395 },
        { -5.0, -1.4332578593959663e-06, -2.2917961966295041e-07, -0.033464254621424279 },
        { -2.7, -0.0093608292682097957, -0.0088875946394678957, -0.17002806135389051 },
        { -1.0, -0.15865525393145707, -0.15880800939172326, -0.2689414213699951 },
        { -0.1, -0.046017216272297101, -0.046017248954564841, -0.047502081252106004 },
        { 0.0, 0, 0, 0 },
        { 0.5, 0.34573123063700656, 0.34571400982514394, 0.3112296656009273 },
        { 1.0, 0.84134474606854293, 0.84119199060827676, 0.7310585786300049 },
        { 3.0, 2.9959503059051098, 2.9963626079182273, 2.8577223804673002 },
        { 8.0, 7.9999999999999947, 8, 7.997317198956269 },
    };
    static const char* const name[3] = { "gelu_erf", "gelu_tanh", "silu" };
    kbk_shape s = shape(1, 1, 0);
    for (int i = 0; i < (int)(sizeof t / sizeof t[0]); i++)
        for (int k = 0; k < 3; k++) {
            double x = t[i][0], y = 0, *out[8] = { &y };
            const double* in[1] = { &x };
            run_ref(name[k], &s, in, out);
            check_near(y, t[i][1 + k], 1e-15 * (1 + fabs(x)), name[k]);
        }
}

static void test_row_oracles(void) {
    enum { R = 5, C = 37 };
    kbk_shape s = shape(R, C, 0);
    double *x = numbers(R * C), *y = numbers(R * C), *w = numbers(C), *b = numbers(C), mean[R], rstd[R], loss[R],
           lse[R];
    kbk_tensor t = kbki_in("x", R * C, 1);
    kbk_fill(&t, 0, KBK_F32, 1, 0, R * C, x);
    for (int c = 0; c < C; c++) w[c] = 1, b[c] = 0;
    double ids[R] = { 0, 36, KBK_IGNORE, 37, 5 }, *out[8] = { y, mean, rstd };
    const double* in[3] = { x, w, b };
    run_ref("softmax", &s, in, out);
    for (int r = 0; r < R; r++) {
        double sum = 0;
        for (int c = 0; c < C; c++) sum += y[r * C + c];
        check_near(sum, 1, 1e-14, "softmax rows sum to 1");
    }
    run_ref("layernorm", &s, in, out);
    for (int r = 0; r < R; r++) {
        double sum = 0, square = 0;
        for (int c = 0; c < C; c++) sum += y[r * C + c], square += y[r * C + c] * y[r * C + c];
        check_near(sum / C, 0, 1e-14, "layernorm mean 0");
        // the variance is slightly below 1, because the denominator is sqrt(variance + 1e-5)
        check_near(square / C, 1, 1e-4, "layernorm variance 1");
    }
    double* out2[8] = { loss, lse };
    const double* in2[2] = { x, ids };
    run_ref("cross_entropy", &s, in2, out2);
    for (int r = 0; r < R; r++) {
        long double sum = 0;
        for (int c = 0; c < C; c++) sum += expl((long double)x[r * C + c]);
        check_near(lse[r], (double)logl(sum), 1e-14, "log-sum-exp");
        if (ids[r] >= 0 && ids[r] < C)
            check_near(loss[r], (double)(logl(sum) - (long double)x[r * C + (int)ids[r]]), 1e-14, "cross entropy");
    }
    check(loss[2] == 0, "an ignored target has loss 0");
    check(kbk_is_nan(loss[3]), "a target out of range has loss NaN");
    for (int c = 0; c < C; c++) x[c] = -HUGE_VAL;
    run_ref("softmax", &s, in, out);
    run_ref("cross_entropy", &s, in2, out2);
    check(kbk_is_nan(y[0]) && !kbk_is_nan(y[C]), "a row of -inf gives a NaN row");
    check(lse[0] == -HUGE_VAL && kbk_is_nan(loss[0]), "a row of -inf has log-sum-exp -inf");
    free(x), free(y), free(w), free(b);
}

/* Tests rows whose logits are all masked. The outputs must depend only on differences between the logits of a row,
   not on the finite mask value. C equal logits have probability 1/C each: the loss is log C, the gradient is 1/C -
   1 for the target and 1/C for the other classes. Logits far below the maximum of the row contribute nothing. A
   row of -inf gives NaN. The expected values are from PyTorch 2.11. */
static void test_masked_rows(void) {
    enum { R = 7, C = 11 };
    static const double left[R] = { -1e30, -3.4028234663852886e38, 3e38, -HUGE_VAL, -3.4028234663852886e38, -1e30,
                                    1e300 };
    static const double right[R] = { -1e30, -3.4028234663852886e38, 3e38, -1e30, -1e30, 5, 1e300 };
    const kbk_op* both = kbk_find_op("cross_entropy", "fwdbwd");
    kbk_shape s = shape(R, C, 0);
    double x[R * C], y[R * C], dx[R * C], loss[R], lse[R], fwd_loss[R], ids[R], *out[8] = { y };
    double *out_fwd[8] = { fwd_loss, lse }, *out_both[8] = { loss, dx };
    const double* in[2] = { x, ids };
    for (int i = 0; i < R * C; i++) x[i] = i % C < 4 ? left[i / C] : right[i / C], ids[i / C] = 6;
    run_ref("softmax", &s, in, out);
    run_ref("cross_entropy", &s, in, out_fwd);
    both->ref(&s, 4, in, out_both, 0, R);
    for (int r = 0; r < R; r++) {
        int equal = left[r] == right[r] ? C : C - 4;
        for (int c = 0; c < C; c++) {
            double p = c < 4 && equal < C ? 0 : 1.0 / equal;
            check_near(y[r * C + c], p, 1e-15, "softmax of a masked row");
            check_near(dx[r * C + c], p - (c == 6), 1e-15, "gradient of a masked row");
        }
        check_near(loss[r], log(equal), 1e-15, "loss of a masked row");
        check_near(fwd_loss[r], log(equal), 1e-15, "loss of a masked row, forward alone");
        check(lse[r] == right[r] + log(equal), "log-sum-exp of a masked row");
    }
    for (int c = 0; c < C; c++) x[c] = -HUGE_VAL;
    both->ref(&s, 4, in, out_both, 0, R);
    check(kbk_is_nan(loss[0]) && kbk_is_nan(dx[0]) && kbk_is_nan(dx[6]) && !kbk_is_nan(dx[C]), "-inf throughout");
}

// If all scores are -1e30, attention returns the mean of v. If all scores are -inf, the output is 0 and lse is
// -inf, as the description of the operation in kbench_kernels.cuh states.
static void test_masked_attention(void) {
    enum { S = 5, D = 4 };
    kbk_shape s = shape(S, D, 0);
    double q[S * D], k[S * D], v[S * D], o[S * D], lse[S], *out[8] = { o, lse };
    const double* in[3] = { q, k, v };
    for (int i = 0; i < S * D; i++) q[i] = 1e15, k[i] = -1e15, v[i] = i;
    run_ref("attention", &s, in, out);
    for (int i = 0; i < S * D; i++) check_near(o[i], 2 * D + i % D, 1e-13, "mean of v");
    check_near(lse[0], -2e30, 1e16, "log-sum-exp of large negative scores"); // 4 * -1e30 / sqrt(4)
    for (int i = 0; i < S * D; i++) k[i] = i / D == 2 ? -2e15 : -HUGE_VAL;
    run_ref("attention", &s, in, out);
    for (int i = 0; i < S * D; i++) check(o[i] == 2 * D + i % D, "the output is the value of the only key");
    for (int i = 0; i < S * D; i++) k[i] = -HUGE_VAL;
    run_ref("attention", &s, in, out);
    check(o[0] == 0 && o[S * D - 1] == 0 && lse[0] == -HUGE_VAL, "if no key is visible, the output is 0");
}

// Products and sums of small integers are exact in floating point, so the oracle must equal integer arithmetic.
static void test_matmul(void) {
    enum { M = 5, N = 4, K = 6 };
    double a[M * K], b[K * N], c[M * N], *out[8] = { c };
    const double* in[2] = { a, b };
    for (int layout = KBK_NN; layout <= KBK_TN; layout++) {
        kbk_shape s = shape(M, N, K);
        int wrong = 0;
        s.layout = layout;
        for (int m = 0; m < M; m++)
            for (int k = 0; k < K; k++) a[layout == KBK_TN ? k * M + m : m * K + k] = m * 7 - k * 3 + 1;
        for (int k = 0; k < K; k++)
            for (int n = 0; n < N; n++) b[layout == KBK_NT ? n * K + k : k * N + n] = k * 5 - n * 2 - 3;
        run_ref("matmul", &s, in, out);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                long sum = 0;
                for (int k = 0; k < K; k++) sum += (long)(m * 7 - k * 3 + 1) * (k * 5 - n * 2 - 3);
                wrong += c[m * N + n] != (double)sum;
            }
        check(wrong == 0, "matmul against integers");
    }
}

// matmul_e4m3 with integers representable in e4m3 is exact, with scale factors and with K = 0.
static void test_matmul_e4m3(void) {
    enum { M = 5, N = 4, K = 6 };
    double a[M * K], b[N * K], sa = 0.5, sb = -4, c[M * N], size[M * N], *out[8] = { c };
    const double* in[4] = { a, b, &sa, &sb };
    kbk_shape s = shape(M, N, K);
    int wrong = 0;
    out[KBK_OUTS] = size;
    for (int i = 0; i < M * K; i++) a[i] = i % 7 - 3, wrong += kbk_e4m3_value(kbk_e4m3_bits(a[i])) != a[i];
    for (int i = 0; i < N * K; i++) b[i] = i % 5 * 2 - 4, wrong += kbk_e4m3_value(kbk_e4m3_bits(b[i])) != b[i];
    check(wrong == 0, "integers representable in e4m3");
    s.layout = KBK_NT;
    run_ref("matmul_e4m3", &s, in, out);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            long sum = 0, squares = 0;
            for (int k = 0; k < K; k++) {
                long p = ((m * K + k) % 7 - 3) * ((n * K + k) % 5 * 2 - 4);
                sum += p, squares += p * p;
            }
            wrong += c[m * N + n] != -2.0 * (double)sum || fabs(size[m * N + n] - 2 * sqrt((double)squares)) > 1e-12;
        }
    check(wrong == 0, "matmul_e4m3 against integers");
    s.k = 0, sa = kbki_from_bits(0x7FF8ull << 48);
    run_ref("matmul_e4m3", &s, in, out);
    for (int i = wrong = 0; i < M * N; i++) wrong += c[i] != 0;
    check(wrong == 0, "K = 0: zeros for any scale factor");
}

// A unit is an independent part of a result, such as a row. An oracle must compute the same outputs whether
// a call computes one unit or all units. It must not write to an output that is NULL.
static void test_units(void) {
    for (int i = 0; i < KBK_OP_COUNT; i++) {
        const kbk_op* op = &kbk_ops[i];
        kbk_shape s = shape(4, 9, 6);
        s.batch = 3;
        kbk_tensor t[KBK_MAX_TENSORS];
        int n = op->tensors(&s, t), ins = 0, outs = 0, wrong = 0;
        double *in[8] = { 0 }, *all[2 * KBK_OUTS] = { 0 }, *part[2 * KBK_OUTS] = { 0 };
        int64_t per[2 * KBK_OUTS] = { 0 }, units = op->units(&s);
        for (int k = 0; k < n; k++) {
            if (t[k].role == KBK_IN) {
                in[ins] = numbers(t[k].count);
                kbk_fill(&t[k], ins, KBK_F32, 5, 0, t[k].count, in[ins]);
                ins++;
                continue;
            }
            per[outs] = t[k].per_unit, per[outs + KBK_OUTS] = t[k].per_unit ? t[k].scales : 0;
            for (int j = outs; j < 2 * KBK_OUTS; j += KBK_OUTS) {
                all[j] = per[j] || j < KBK_OUTS ? numbers(j < KBK_OUTS ? t[k].count : per[j] * units) : NULL;
                part[j] = per[j] ? numbers(per[j]) : NULL;
            }
            outs++;
        }
        op->ref(&s, 4, (const double* const*)in, all, 0, units);
        for (int64_t u = 0; u < units; u++) {
            op->ref(&s, 4, (const double* const*)in, part, u, u + 1);
            for (int j = 0; j < 2 * KBK_OUTS; j++)
                if (per[j]) wrong += memcmp(part[j], all[j] + u * per[j], (size_t)per[j] * sizeof(double)) != 0;
        }
        check(wrong == 0 && outs > 0, op->name);
        for (int k = 0; k < 8; k++) free(in[k]), free(all[k]), free(part[k]);
    }
}

// --- errors that the verifier must detect
static void test_verifier(void) {
    enum { R = 3, C = 700 };
    for (int d = 0; d < KBK_DTYPES; d++) {
        const kbk_op* op = kbk_find_op("softmax", "fwd");
        kbk_shape s = shape(R, C, 0);
        kbk_tensor t = kbki_in("x", R * C, 1);
        kbk_report r;
        double *x = numbers(R * C), *y = numbers(R * C), *out[8] = { y };
        const double* in[1] = { x };
        unsigned char* got = (unsigned char*)malloc(R * C * 4);
        size_t size = (size_t)kbk_dtype_size(d);
        kbk_fill(&t, 0, d, 9, 0, R * C, x);
        run_ref("softmax", &s, in, out);
        kbk_narrow(KBK_T, d, y, got, R * C);
        check(kbk_verify(op, d, &s, 0, got, out, 0, R, &r) && !r.why, "the rounded oracle passes");
        check(r.norm > 0 || d == KBK_F32, "rounding to 16 bits gives an error norm above 0");
        memset(got + 1234 * size, 0xFF, size);
        check(!kbk_verify(op, d, &s, 0, got, out, 0, R, &r) && r.index == 1234 && r.bad == 1, "an unwritten element");
        check(kbk_is_nan(r.got) && r.want == y[1234], "the report contains the result and the expected value");
        kbk_narrow(KBK_T, d, y, got, R * C);
        double nan = kbki_from_bits(0x7FF8ull << 48);
        kbk_narrow(KBK_T, d, &nan, got + 77 * size, 1);
        check(!kbk_verify(op, d, &s, 0, got, out, 0, R, &r) && r.index == 77, "a NaN");
        // the value of element 5 is replaced by the value of element 6, an error that is too small for the
        // norm-wise check
        kbk_narrow(KBK_T, d, y, got, R * C);
        memcpy(got + 5 * size, got + 6 * size, size);
        check(!kbk_verify(op, d, &s, 0, got, out, 0, R, &r) && r.index == 5 && r.bad == 1, "one wrong element");
        kbk_narrow(KBK_T, d, y, got, R * C);
        memset(got + (R * C - 1) * size, 0, size);
        check(!kbk_verify(op, d, &s, 0, got, out, 0, R, &r) && r.index == R * C - 1, "a zero as the last element is found");
        // one common factor on all elements: each error is within its bound, but the norm of the errors exceeds
        // the norm's bound
        for (int i = 0; i < R * C; i++) x[i] = y[i] * (1 + 1.3 * op->check[d].norm);
        kbk_narrow(KBK_T, d, x, got, R * C);
        if (d != KBK_F32) check(!kbk_verify(op, d, &s, 0, got, out, 0, R, &r), "a bias");
        // NaN in the oracle: the result must be NaN at the same index and nowhere else
        kbk_narrow(KBK_T, d, y, got, R * C);
        y[10] = nan;
        check(!kbk_verify(op, d, &s, 0, got, out, 0, R, &r) && r.index == 10, "a missing NaN");
        kbk_narrow(KBK_T, d, y, got, R * C);
        check(kbk_verify(op, d, &s, 0, got, out, 0, R, &r), "an expected NaN");
        double* want[8] = { y + C };
        check(kbk_verify(op, d, &s, 0, got + C * size, want, 1, 2, &r), "the second row without the first row");
        free(x), free(y), free(got);
    }
}

// One element dominates the norm and has the largest rounding error that correct rounding can cause.
static void test_dominated(void) {
    const kbk_op* op = kbk_find_op("softmax", "fwd");
    enum { C = 2048 };
    kbk_shape s = shape(2, C, 0);
    double* y = numbers(2 * C);
    double* out[8] = { y };
    unsigned char* got = (unsigned char*)malloc(2 * C * 2);
    kbk_report r;
    for (int i = 0; i < 2 * C; i++) y[i] = i % C ? 1e-9 : 0.5 * (1 + 0.49 * 0x1p-7);
    kbk_narrow(KBK_T, KBK_BF16, y, got, 2 * C);
    check(kbk_verify(op, KBK_BF16, &s, 0, got, out, 0, 2, &r),
          "a correctly rounded row with one dominant element passes");
    check(r.norm > op->check[KBK_BF16].norm, "the norm exceeds the bound for rows of many elements");
    for (int i = 0; i < 2 * C; i++) y[i] = i % C ? 1e-9 : 0.5;
    double off = 0.5 * (1 + 0x1p-7);
    kbk_narrow(KBK_T, KBK_BF16, y, got, 2 * C);
    kbk_narrow(KBK_T, KBK_BF16, &off, got, 1);
    check(!kbk_verify(op, KBK_BF16, &s, 0, got, out, 0, 2, &r), "an error larger than rounding is rejected");
    free(y), free(got);
}

static void test_exact(void) {
    const kbk_op* op = kbk_find_op("add", "fwd");
    kbk_shape s = shape(1, 4, 0);
    double y[4] = { 1, 1 + 0x1p-30, HUGE_VAL, -3 }, *out[8] = { y };
    float got[4] = { 1, 1, HUGE_VALF, -3 };
    kbk_report r;
    check(kbk_verify(op, KBK_F32, &s, 0, got, out, 0, 4, &r), "exact check: the rounded oracle passes");
    got[3] = nextafterf(-3, 0);
    check(!kbk_verify(op, KBK_F32, &s, 0, got, out, 0, 4, &r) && r.index == 3,
          "exact check: an error of one ulp fails");
    got[3] = -3, got[2] = 3e38f;
    check(!kbk_verify(op, KBK_F32, &s, 0, got, out, 0, 4, &r) && r.index == 2, "a missing infinity");
}

static void test_table(void) {
    int twice = 0;
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        const kbk_variant* v = &kbk_table[i];
        if (kbk_find(v->op->name, v->op->dir, v->name) != v) twice++;
        if (v->rung < 1 || !v->note[0] || !v->dtypes) twice++;
        for (int k = 0; k < i; k++) { // rungs of f32 and of 16-bit types may have the same number
            const kbk_variant* w = &kbk_table[k];
            if (w->op == v->op && (w->dtypes & v->dtypes) && w->rung >= v->rung) twice++;
        }
    }
    check(twice == 0, "rows of kbk_table are unique, ordered by rung within a type, and have a note");
    check(kbk_find("softmax", "fwd", "nothing") == NULL && kbk_find_op("nothing", "fwd") == NULL,
          "unknown names are not found");
    kbk_args a;
    memset(&a, 0, sizeof a);
    check(kbk_launch(kbk_find("add", "fwd", "naive"), KBK_F32, &a, NULL) != NULL,
          "a launch without CUDA returns an error text");
    kbk_variant v = kbk_table[0];
    v.sm = KBK_SM_90a;
    check(kbk_runs_on(&v, 0, 90) && !kbk_runs_on(&v, 0, 100) && !kbk_runs_on(&v, 0, 80), "90a means 9.0 alone");
    v.sm = KBK_SM_80;
    check(kbk_runs_on(&v, 0, 90) && !kbk_runs_on(&v, 0, 75), "80 means 8.0 and later");
    v.sm = KBK_SM_75;
    check(kbk_runs_on(&v, KBK_F16, 75) && !kbk_runs_on(&v, KBK_BF16, 75) && kbk_runs_on(&v, KBK_BF16, 80),
          "capability 75 means 8.0 for bf16");
}

// --- the model that chooses configurations of matmul on compute capability 9.0, and the workspace of split-K
static kbki_wg_choice choose(const kbk_shape* s, int elem, int64_t batch, int sms) {
    kbki_wg_choice by = { -1, 0, 0, 0 };
    check(kbki_wg_choose(s, elem, batch, sms, &by, 1) == 1 && by.way >= 0, "every shape has a configuration");
    return by;
}
static void test_choices(void) {
    static const int64_t shapes[][3] = { { 512, 512, 512 },    { 1024, 1024, 1024 },  { 2048, 2048, 2048 },
                                         { 4096, 4096, 4096 }, { 256, 256, 131072 },  { 16, 8192, 8192 },
                                         { 512, 512, 8192 },   { 8192, 50304, 768 },  { 128, 128, 4096 },
                                         { 1, 1, 1 },          { 100, 130, 1000000 }, { 8192, 8192, 8 } };
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        for (int sms = 78; sms <= KBKI_WG_SMS; sms += 18)
            for (int elem = 1; elem <= 4; elem *= 2)
                for (int64_t batch = 1; batch <= 7; batch += 6) {
                    kbki_wg_choice by[KBKI_WG_CHOICES];
                    kbk_shape s = shape(shapes[i][0], shapes[i][1], shapes[i][2]);
                    s.layout = KBK_NT;
                    const int n = kbki_wg_choose(&s, elem, batch, sms, by, KBKI_WG_CHOICES);
                    const kbki_wg_way w = kbki_wg_way_of(by[0].way);
                    const int64_t units = kbki_wg_units(&s, by[0], batch), slots = sms / w.pair;
                    // number of clock cycles if every SM works at peak
                    double work = kbk_matmul_fwd_flops(&s) * (double)batch / (4096.0 * sms) * (elem == 1 ? 0.5 : elem / 2);
                    check(by[0].clocks > work, "the estimated time is not below the time at peak rate");
                    check(by[0].split != 1 || kbki_wg_slices(units, kbki_wg_stages(&s, elem), slots) > 1,
                          "split-K is used only if SMs would be idle");
                    check(work < 20000 || by[0].split || units * 10 > 7 * slots || elem == 1,
                          "most SMs have work, or the product is small");
                    for (int k = 0; k < n; k++) {
                        const kbki_wg_way each = kbki_wg_way_of(by[k].way);
                        size_t room = kbki_wg_room_bytes(kbki_wg_units(&s, by[k], batch), kbki_wg_stages(&s, elem),
                                                         each.pair, each.tile_m * each.tile_n);
                        check(each.elem == elem && (!k || by[k].clocks >= by[k - 1].clocks), "best first");
                        check(by[k].split != 1 || room <= kbki_select_pieces(&s, elem, batch),
                              "split-K has workspace in every tunable configuration");
                    }
                    check(choose(&s, elem, batch, sms).clocks == by[0].clocks, "chooses the fastest");
                }
    kbk_shape s = shape(256, 256, 131072), few = s;
    check(choose(&s, 2, 1, KBKI_WG_SMS).split, "few tiles with large K use split-K");
    check(kbki_scratch_matmul(&s, 2, KBKI_WORD_select) == KBK_TICKETS + kbki_select_pieces(&s, 2, 1) &&
              kbki_select_pieces(&s, 2, 1) <= KBKI_WG_SMS * 256 * 192 * 4,
          "the workspace holds one tile per SM");
    check((int64_t)kbki_scratch_matmul(&s, 2, KBKI_WORD_mmapipe) == KBK_TICKETS + kbki_mma_splits(&s) * 256 * 256 * 4,
          "mmapipe needs workspace for each split-K slice");
    check(kbki_mma_splits(&s) == 66, "two CTAs per SM");
    check(kbki_scratch_bmm(&s, 2, KBKI_WORD_select) == kbki_scratch_matmul(&s, 2, KBKI_WORD_select),
          "a batch of one matrix needs the same workspace as matmul");
    check(kbki_scratch_matmul_e4m3(&s, 2, KBKI_WORD_tma) == 0, "e4m3: the tma variant needs no workspace");
    few.k = 131071;
    check(kbki_scratch_matmul(&few, 2, KBKI_WORD_mmapipe) > kbki_mm_copies(&few, 2) + 66 * 256 * 256 * 4,
          "copies and pieces");
    s = shape(4096, 4096, 4096);
    check(kbki_scratch_matmul(&s, 2, KBKI_WORD_mmapipe) == 0, "no workspace if there are many tiles");
}
static void test_choices_off_sectors(void) {
    for (int layout = KBK_NN; layout <= KBK_TN; layout++) {
        kbk_shape off = shape(1432, 2776, 3544), on = shape(1440, 2784, 3552);
        off.layout = on.layout = layout;
        check(kbki_wg_off(&off, 2, 0) && kbki_wg_off(&off, 2, 1) && !kbki_wg_off(&on, 2, 0) &&
                  !kbki_wg_off(&on, 2, 1),
              "kbki_wg_off finds unaligned rows of A and of B");
        check(choose(&off, 2, 1, KBKI_WG_SMS).clocks >= choose(&on, 2, 1, KBKI_WG_SMS).clocks,
              "unaligned rows are not estimated as faster");
    }
    kbk_shape half = shape(5000, 3000, 4000); // only the rows of B, or only the rows of A, are not 32-byte aligned
    check(!kbki_wg_off(&half, 2, 0) && kbki_wg_off(&half, 2, 1), "B of NN");
    half.layout = KBK_NT;
    check(!kbki_wg_off(&half, 2, 0) && !kbki_wg_off(&half, 2, 1), "neither of NT");
    half.cols = 3008, half.layout = KBK_TN;
    check(kbki_wg_off(&half, 2, 0) && !kbki_wg_off(&half, 2, 1), "A of TN");
}

// --- only tf32 has a tolerance of its own
static void test_tf32(void) {
    enum { N = 64 };
    const kbk_variant *v = kbk_find("matmul", "fwd", "tf32"), *other = kbk_find("matmul", "fwd", "vec");
    kbk_shape s = shape(1, N, 3);
    kbk_report r;
    float got[N];
    double y[N], size[N], *out[2 * KBK_OUTS] = { y };
    out[KBK_OUTS] = size;
    check(v && v->dtypes == KBK_SINGLE && other, "tf32 is a variant of f32");
    if (!v || !other) return;
    for (int i = 0; i < N; i++) y[i] = 1 + i / 64.0, size[i] = y[i], got[i] = (float)(y[i] * (1 - 0x1.8p-11));
    kbk_op tf32 = kbk_op_of(v), f32 = kbk_op_of(other);
    check(kbk_verify(&tf32, KBK_F32, &s, 0, got, out, 0, 1, &r), "tf32 may truncate 13 bits of both inputs");
    check(!kbk_verify(&f32, KBK_F32, &s, 0, got, out, 0, 1, &r), "without tf32, truncating 13 bits fails");
    for (int i = 0; i < N; i++) got[i] = (float)(y[i] * (1 - 0x1p-9));
    check(!kbk_verify(&tf32, KBK_F32, &s, 0, got, out, 0, 1, &r), "tf32: an error of 2^-9 fails");
    for (int i = 0; i < 6; i++) {
        s.rows = 30, s.cols = 40 + i / 3, s.k = 64, s.layout = KBK_NN + i % 3;
        size_t a = s.layout == KBK_TN ? 30 * 64 * 4 : 0, b = s.layout == KBK_NT || i < 3 ? 0 : 64 * 41 * 4;
        check(kbk_workspace(v, KBK_F32, &s) == (a + b ? KBK_TICKETS + a + b : 0), "workspace for transposed copies");
    }
}

// --- kbk_launch validates its arguments first, so invalid arguments are reported with and without CUDA
static int says(const char* why, const char* words) { return why && strstr(why, words); }
static void test_launch_arguments(void) {
    static double room[8];
    for (int i = 0; i < KBK_VARIANT_COUNT; i++) {
        const kbk_variant* v = &kbk_table[i];
        const int dtype = v->dtypes & KBK_SINGLE ? KBK_F32 : KBK_BF16;
        kbk_tensor t[KBK_MAX_TENSORS];
        kbk_args good;
        memset(&good, 0, sizeof good);
        good.s = shape(5, 64, 3);
        if (!strcmp(v->op->name, "matmul_e4m3")) good.s.layout = KBK_NT;
        const int n = v->op->tensors(&good.s, t);
        for (int k = 0; k < 8; k++) good.in[k] = room;
        for (int k = 0; k < KBK_OUTS; k++) good.out[k] = room;
        check(says(kbk_launch(v, dtype, &good, NULL), "without CUDA"), v->op->name);
        check(says(kbk_launch(v, dtype, NULL, NULL), "null"), "no arguments");
        check(says(kbk_launch(v, KBK_DTYPES, &good, NULL), "element type"), "unknown element type");
        if (!(v->dtypes & KBK_HALF)) check(says(kbk_launch(v, KBK_F16, &good, NULL), "element type"), "not in f16");
        for (int k = 0, ins = 0, outs = 0; k < n; k++) {
            kbk_args a = good;
            if (t[k].role == KBK_IN)
                a.in[ins++] = NULL;
            else
                a.out[outs++] = NULL;
            check(says(kbk_launch(v, dtype, &a, NULL), t[k].optional || !t[k].count ? "without CUDA" : "is null"),
                  t[k].name);
        }
        kbk_args a;
#define NEGATIVE(size)                                                       \
    a = good, a.s.size = -1;                                                 \
    check(says(kbk_launch(v, dtype, &a, NULL), "negative"), "-1 as " #size); \
    a.s.size = INT64_MIN;                                                    \
    check(says(kbk_launch(v, dtype, &a, NULL), "negative"), "the smallest int64 as " #size);
        KBK_SIZES(NEGATIVE)
        a = good;
        a.s.rows = a.s.cols = (int64_t)1 << 32;
        check(says(kbk_launch(v, dtype, &a, NULL), "2^56"), "sizes whose 64-bit product is 0 are rejected");
        check(kbk_workspace(v, dtype, &a.s) == 0, "no workspace for an invalid shape");
        a = good, a.s.rows = INT64_MAX;
        check(says(kbk_launch(v, dtype, &a, NULL), "2^56"), "the largest int64 as a size is rejected");
        if (v->op->family != KBK_GEMM) continue;
        a = good, a.s.layout = KBK_TN + 1;
        check(says(kbk_launch(v, dtype, &a, NULL), "layout"), "an unknown layout");
    }
    kbk_args none;
    memset(&none, 0, sizeof none);
    check(says(kbk_launch(kbk_find("softmax", "fwd", "onepass"), KBK_F32, &none, NULL), "without CUDA"),
          "an empty shape needs no pointers");
    none.s.rows = 5;
    check(says(kbk_launch(kbk_find("weighted_sum", "fwd", "vec"), KBK_F32, &none, NULL), "output is null"),
          "sums over no columns are 0");
    check(says(kbk_launch(kbk_find("layernorm", "fwd", "warp"), KBK_F32, &none, NULL), "without CUDA"),
          "a mean over no columns has no value");
}

/* If one size is 0, every output that still has elements is finite, and sums over no elements are 0. */
static void test_zero_sizes(void) {
    for (int i = 0; i < KBK_OP_COUNT * 16; i++) {
        const kbk_op* op = &kbk_ops[i / 16];
        kbk_tensor t[KBK_MAX_TENSORS];
        kbk_shape s = shape(i & 1 ? 0 : 5, i & 2 ? 0 : 7, i & 4 ? 0 : 3);
        double *in[8] = { NULL }, *out[2 * KBK_OUTS] = { NULL };
        if (i & 8) s.batch = 0;
        if (!strcmp(op->name, "embedding") && !s.vocabulary) continue; // all ids are out of range: all rows are NaN
        const int64_t units = op->units(&s);
        const int n = op->tensors(&s, t);
        int ins = 0, outs = 0;
        for (int k = 0; k < n; k++) {
            check(!units || t[k].role == KBK_IN || t[k].per_unit || (t[k].count && t[k].scales),
                  "units have elements");
            double* x = numbers(t[k].count);
            if (t[k].role == KBK_IN) kbk_fill(&t[k], k, KBK_F32, 1, 0, t[k].count, x);
            if (t[k].role == KBK_IN)
                in[ins++] = x;
            else {
                if (t[k].scales) out[KBK_OUTS + outs] = numbers(t[k].scales * (t[k].per_unit ? units : 1));
                out[outs++] = x;
            }
        }
        if (units) op->ref(&s, 4, (const double* const*)in, out, 0, units);
        for (int k = 0, o = 0; k < n; k++) {
            if (t[k].role == KBK_IN) continue;
            for (int64_t j = 0; units && j < t[k].count; j++) {
                check(!kbk_is_nan(out[o][j]) && !kbk_is_inf(out[o][j]), op->name);
                if (i & 2) check(out[o][j] == 0 || op->family == KBK_PICK, op->name);
            }
            o++;
        }
        for (int k = 0; k < ins; k++) free(in[k]);
        for (int k = 0; k < 2 * KBK_OUTS; k++) free(out[k]);
    }
    const kbk_shape no_columns = shape(5, 0, 3), nothing = shape(0, 0, 0);
    check(kbk_weighted_sum_fwd_units(&no_columns) == 5, "a weighted sum of no columns is 0");
    check(kbk_sum_run_units(&nothing) == 1 && kbk_read_run_units(&nothing) == 1, "a sum of no elements is 0");
    check(kbk_mse_fwd_units(&nothing) == 0, "a mean over no elements has no value");
}

int main(void) {
    test_choices();
    test_choices_off_sectors();
    test_tf32();
    test_formulas();
    test_signatures();
    test_strides();
    test_bytes_are_tensors();
    test_philox();
    test_dropout();
    test_fill();
    test_rounding();
    test_storage();
    test_e4m3();
    test_activations();
    test_row_oracles();
    test_masked_rows();
    test_masked_attention();
    test_matmul();
    test_matmul_e4m3();
    test_units();
    test_verifier();
    test_dominated();
    test_exact();
    test_table();
    test_launch_arguments();
    test_zero_sizes();
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
