// SPDX-License-Identifier: MIT OR Unlicense
/* Tests that the oracle of every backward operation in kbench_kernels.cuh is the derivative of its forward oracle,
   for every input with a gradient. Tensors are matched by name: `dx` is the gradient of `x`, `dy` is the incoming
   gradient of `y`. `g` is a scalar incoming gradient for all elements of the first output. Every input of the
   backward operation that is not a gradient is an input or output of the forward operation. The derivative is
   approximated by finite differences with an error of fourth order, in double precision. */
#include "kbench_kernels.cuh"
#include "test.h"
#include <stdlib.h>

enum { MOST = 256 }; // maximum number of elements of a tensor

typedef struct {
    const kbk_op* op;
    kbk_shape s;
    kbk_tensor t[KBK_MAX_TENSORS];
    int n;
    double values[KBK_MAX_TENSORS][MOST];
} side;

static void open_side(side* x, const kbk_op* op, const kbk_shape* s) {
    memset(x, 0, sizeof *x);
    x->op = op, x->s = *s, x->n = op->tensors(s, x->t);
    for (int k = 0; k < x->n; k++)
        if (x->t[k].count > MOST) exit(2);
}
static int find(const side* x, int role, const char* name) {
    for (int k = 0; k < x->n; k++)
        if (x->t[k].role == role && strcmp(x->t[k].name, name) == 0) return k;
    return -1;
}
static void run(side* x) {
    const double* in[8] = { NULL };
    double* out[2 * KBK_OUTS] = { NULL };
    int ins = 0, outs = 0;
    for (int k = 0; k < x->n; k++)
        if (x->t[k].role == KBK_IN)
            in[ins++] = x->values[k];
        else
            out[outs++] = x->values[k];
    x->op->ref(&x->s, 8, in, out, 0, x->op->units(&x->s));
}

static double loss(side* fwd, double back[][MOST]) {
    double sum = 0;
    run(fwd);
    for (int k = 0; k < fwd->n; k++)
        for (int64_t i = 0; fwd->t[k].role != KBK_IN && i < fwd->t[k].count; i++)
            if (back[k][i] != 0) sum += back[k][i] * fwd->values[k][i];
    return sum;
}
static double difference(side* fwd, double back[][MOST], double* x) {
    const double h = 0x1p-10, at = *x;
    double f[4];
    for (int i = 0; i < 4; i++) *x = at + h * (i < 2 ? i - 2 : i - 1), f[i] = loss(fwd, back);
    *x = at;
    return (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * h);
}

static void give(side* bwd, const side* fwd, double back[][MOST]) {
    int first = 0;
    while (fwd->t[first].role == KBK_IN) first++;
    for (int k = 0; k < bwd->n; k++) {
        const char* name = bwd->t[k].name;
        if (bwd->t[k].role != KBK_IN) continue;
        int in = find(fwd, KBK_IN, name), out = find(fwd, KBK_OUT, name),
            of = name[0] == 'd' ? find(fwd, KBK_OUT, name + 1) : -1;
        if (in >= 0 || out >= 0) {
            memcpy(bwd->values[k], fwd->values[in >= 0 ? in : out], sizeof bwd->values[k]);
        } else if (of >= 0) {
            for (int64_t i = 0; i < bwd->t[k].count; i++)
                back[of][i] = bwd->values[k][i] = cos(1.7 * (double)i + 0.3) + 0.25;
        } else {
            CHECK(strcmp(name, "g") == 0);
            bwd->values[k][0] = 0.75;
            for (int64_t i = 0; i < fwd->t[first].count; i++) back[first][i] = 0.75;
        }
    }
    if (strcmp(bwd->op->dir, "fwdbwd") == 0)
        for (int64_t i = 0; i < fwd->t[first].count; i++) back[first][i] = 1;
}

// Returns the number of compared gradients.
static int test_op(const kbk_op* op, kbk_shape s) {
    static side fwd, bwd;
    static double back[KBK_MAX_TENSORS][MOST];
    // dropout needs a wide tolerance: its oracle rounds to f32, and the finite difference divides the rounding
    // error by the small step h
    const double tolerance = strcmp(op->name, "dropout") ? 1e-9 : 1e-4;
    int compared = 0;
    memset(back, 0, sizeof back);
    open_side(&fwd, kbk_find_op(op->name, "fwd"), &s);
    open_side(&bwd, op, &s);
    for (int k = 0, id = 0; k < fwd.n; k++)
        if (fwd.t[k].role == KBK_IN) kbk_fill(&fwd.t[k], id++, KBK_F32, 3, 0, fwd.t[k].count, fwd.values[k]);
    int t = find(&fwd, KBK_IN, "t");
    if (t >= 0) fwd.values[t][1] = KBK_IGNORE;
    run(&fwd);
    give(&bwd, &fwd, back);
    run(&bwd);
    for (int k = 0; k < bwd.n; k++) {
        int of = bwd.t[k].name[0] == 'd' ? find(&fwd, KBK_IN, bwd.t[k].name + 1) : -1, wrong = 0;
        if (bwd.t[k].role == KBK_IN || of < 0) continue;
        for (int64_t i = 0; i < fwd.t[of].count; i++) {
            double want = difference(&fwd, back, &fwd.values[of][i]), got = bwd.values[k][i];
            if (fabs(got - want) <= tolerance * (1 + fabs(want))) continue;
            if (!wrong++)
                CHECK_THAT(0, "%s_%s, causal %d: %s[%d] is %.12g, by differences %.12g", op->name, op->dir, s.causal,
                           bwd.t[k].name, (int)i, got, want);
        }
        CHECK(wrong == 0);
        compared++;
    }
    return compared;
}

int main(void) {
    int seen = 0;
    for (int i = 0; i < KBK_OP_COUNT; i++) {
        const kbk_op* op = &kbk_ops[i];
        kbk_shape s = { 2, 2, 7, 6, 5, 5, 5, 5, 0.3, 0, 0, 0, 42 };
        if (strcmp(op->dir, "bwd") != 0 && strcmp(op->dir, "fwdbwd") != 0) continue;
        if (op->family != KBK_ATTN) s.batch = s.heads = 1;
        for (s.causal = 0; s.causal <= (op->family == KBK_ATTN); s.causal++) {
            int compared = test_op(op, s);
            seen += compared;
            CHECK(compared > 0);
        }
    }
    // the expected number of gradients; without this check, a renamed tensor would be skipped silently
    CHECK_INT(seen, 22);
    return test_end();
}
