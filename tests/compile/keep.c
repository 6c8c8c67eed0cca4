// SPDX-License-Identifier: MIT OR Unlicense
// Tests kb_keep with every kind of expression in C and C++: no warnings, unchanged values, and one evaluation of
// the argument. -DHIDES also tests, in optimised builds, that kb_keep hides values which the compiler would
// otherwise know.
#include "kbench.h"
#include <stdio.h>
#include <string.h>
#ifdef __cplusplus
#include <numeric>
#include <string>
#include <utility>
#include <vector>
#endif

static int failed, passed;
#define CHECK(what)                                                   \
    do {                                                              \
        if (what)                                                     \
            passed++;                                                 \
        else                                                          \
            failed++, printf("FAIL: keep: line %d: %s\n", __LINE__, #what); \
    } while (0)
#ifdef HIDES
#define HIDDEN(x) CHECK(!__builtin_constant_p(x))
#define KNOWN(x) CHECK(__builtin_constant_p(x))
#else
#define HIDDEN(x) (void)(x)
#define KNOWN(x) (void)(x)
#endif

enum { ENUMERATOR = 5 };
#define MACRO 7
typedef struct point {
    int a;
    unsigned bits : 3, more : 5;
    double large[40];
} point;
static const int table[64] = { 1, 2, 3 };
static int calls;
static int called(int x) { return calls++, x; }

static void test_hidden(void) {
    int i = 3;
    unsigned char c = 200;
    long long l = -5;
    double d = 2.5;
    float f = 1.5f;
    bool b = true;
    const char* text = "a text";
    int array[16] = { 1, 2, 3 };
    point p = { 1, 2, 3, { 4 } };
    KNOWN(i + 1);
    KNOWN(d * 2);
    kb_keep(i), kb_keep(c), kb_keep(l), kb_keep(d), kb_keep(f), kb_keep(b), kb_keep(text), kb_keep(array);
    kb_keep(p);
    HIDDEN(i + 1);
    HIDDEN(c + 1);
    HIDDEN(l + 1);
    HIDDEN(d * 2);
    HIDDEN(f * 2);
    HIDDEN(b);
    HIDDEN(strlen(text));
    HIDDEN(array[1] + 1);
    HIDDEN(p.a + 1);
    CHECK(i == 3 && c == 200 && l == -5 && d == 2.5 && f == 1.5f && b && strcmp(text, "a text") == 0);
    CHECK(array[1] == 2 && p.a == 1 && p.bits == 2 && p.more == 3 && p.large[0] == 4);
    int x = 1, y = 2;
    kb_keep(x, y);
    HIDDEN(x + 1);
    HIDDEN(y + 1);
    int element[2] = { 1, 2 };
    kb_keep(element[1]);
    HIDDEN(element[1] + 1);
#ifdef __cplusplus
    p.a = 1;
    kb_keep(p.a);
    HIDDEN(p.a + 1);
#endif
    CHECK(x == 1 && y == 2 && element[1] == 2);
}

static void test_any(point* q, int n) {
    int i = 3, *pi = &i;
    const int ci = 4;
    const point cp = { 1, 2, 3, { 4 } };
    volatile int v = 1;
    const volatile int cv = 1;
    void* vp = q;
    long double ld = 1;
    point p = cp;
    int in_register = 1;
    kb_keep(ci), kb_keep(v), kb_keep(cv), kb_keep(vp), kb_keep(ld), kb_keep(cp), kb_keep(in_register), kb_keep(pi);
    kb_keep(ENUMERATOR), kb_keep(MACRO), kb_keep(1 + i), kb_keep(i), kb_keep((int)2.5), kb_keep(1.5), kb_keep(1.5f);
    kb_keep(+p.bits), kb_keep(p.a), kb_keep(+q->bits), kb_keep(q->large), kb_keep(+cp.more), kb_keep(+p.bits, +q->more);
    kb_keep(called(3)), kb_keep(*pi), kb_keep(table), kb_keep(table[i]), kb_keep("abc"), kb_keep(!i);
    kb_keep(i ? 1 : 2), kb_keep(*q), kb_keep(&called), kb_keep(true), kb_keep((i)), kb_keep(~i), kb_keep(i<n);
    kb_keep(i|n), kb_keep(i^n), kb_keep(-i), kb_keep(sizeof i), kb_keep(&i), kb_keep(i = 3), kb_keep('c');
    CHECK(calls == 1);
    kb_keep(called(3), called(4));
    CHECK(calls == 3);
    kb_keep(i++);
    CHECK(i == 4 && ci == 4 && v == 1 && p.bits == 2 && q->bits == 5 && table[1] == 2 && cp.large[0] == 4);
    kb_keep(i, ci, v, p, 5, 6, 7, 8);
    if (i == 4)
        kb_keep(i);
    else
        kb_keep(ci);
#ifndef __cplusplus
    kb_keep(NULL);
    float of_n[n];
    of_n[0] = 3;
    kb_keep(of_n);
    CHECK(of_n[0] == 3);
    kb_keep(p.bits), kb_keep(q->bits), kb_keep(cp.more), kb_keep(((point){ 1, 2, 3, { 4 } }).more);
#else
    struct nothing {
    } empty;
    struct mine {
        int x;
        mine(const mine&) = delete;
        mine() : x(3) {}
        int get() { return x; }
    } own;
    int mine::*member = &mine::x;
    int (mine::*method)() = &mine::get;
    std::string text("a text");
    enum class scoped { one } one = scoped::one;
    kb_keep(empty), kb_keep(own), kb_keep(member), kb_keep(method), kb_keep(text), kb_keep(one), kb_keep(nullptr);
    kb_keep(called), kb_keep(std::pair<int, int>(1, 2)), kb_keep(std::vector<int>{ 1, 2 }, +p.bits);
    kb_keep([&] { return i + 1; }());
    kb_keep(std::accumulate(table, table + 64, 0.0, [](double a, int b) { return a + b; }));
    CHECK(own.x == 3 && text == "a text" && one == scoped::one);
#endif
}

int main(void) {
    point q = { 4, 5, 6, { 7 } };
    test_hidden();
    test_any(&q, 5);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
