// SPDX-License-Identifier: MIT OR Unlicense
/* test.h - counting checks for the tests of kbench: C11, C++11, CUDA. A test prints a line for every failure and
   every skip, and last the totals of test_end(), which tests/run.sh adds up.

       #include "test.h"
       int main(void) {
           CHECK(1 + 1 == 2);
           CHECK_INT(strlen("four"), 4);
           CHECK_REAL(sqrt(2.0), 1.41421356, 1e-8);
           CHECK_STR("a", "a");
           if (no_gpu) SKIP("no GPU here");
           return test_end();
       } */
#ifndef KBENCH_TEST_H
#define KBENCH_TEST_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long test_passed, test_failed, test_skipped;

#if defined(__GNUC__)
#define TEST_UNUSED __attribute__((unused))
#else
#define TEST_UNUSED
#endif

// Returns the condition, so that a test can stop if later checks would be meaningless.
TEST_UNUSED static int test_check(int fine, const char* file, int line, const char* format, ...) {
    if (fine) {
        ++test_passed;
        return 1;
    }
    ++test_failed;
    printf("FAIL: %s:%d: ", file, line);
    va_list rest;
    va_start(rest, format);
    vprintf(format, rest);
    va_end(rest);
    printf("\n");
    fflush(stdout); // prints the failure now, because a later check may kill the process
    return 0;
}

TEST_UNUSED static int test_check_int(long long got, long long want, const char* file, int line, const char* text) {
    return test_check(got == want, file, line, "%s is %lld, not %lld", text, got, want);
}

TEST_UNUSED static int test_check_real(double got, double want, double relative, const char* file, int line,
                                       const char* text) {
    double scale = fabs(want) > 0 ? fabs(want) : 1;
    int fine = (isnan(got) && isnan(want)) || got == want || fabs(got - want) <= relative * scale;
    return test_check(fine, file, line, "%s is %.17g, not %.17g (within %g)", text, got, want, relative);
}

TEST_UNUSED static int test_check_str(const char* got, const char* want, const char* file, int line,
                                      const char* text) {
    int fine = got == want || (got && want && strcmp(got, want) == 0);
    return test_check(fine, file, line, "%s is \"%s\", not \"%s\"", text, got ? got : "(null)",
                      want ? want : "(null)");
}

TEST_UNUSED static int test_check_has(const char* text, const char* part, const char* file, int line) {
    return test_check(text && strstr(text, part) != NULL, file, line, "\"%s\" does not contain \"%s\"",
                      text ? text : "(null)", part);
}

TEST_UNUSED static void test_skip(const char* format, ...) {
    ++test_skipped;
    va_list rest;
    va_start(rest, format);
    printf("SKIP: ");
    vprintf(format, rest);
    va_end(rest);
    printf("\n");
}

// Returns how many of n rounds of a simulation to run. make test-all (TEST_ALL) runs all rounds and has narrower
// tolerances; make test runs a tenth. A build with a sanitizer always runs a tenth, because it only looks for
// memory errors.
TEST_UNUSED static int test_rounds(int n) {
#ifdef TEST_SANITIZE
    const int share = 10;
#else
    const char* all = getenv("TEST_ALL");
    const int share = all && *all ? 1 : 10;
#endif
    return n > share ? n / share : 1;
}

// The last statement of main.
TEST_UNUSED static int test_end(void) {
    printf("%ld passed, %ld failed, %ld skipped\n", test_passed, test_failed, test_skipped);
    fflush(stdout);
    return test_failed ? 1 : 0;
}

#define CHECK(condition) test_check(!!(condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_INT(got, want) test_check_int((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
#define CHECK_REAL(got, want, relative) test_check_real((got), (want), (relative), __FILE__, __LINE__, #got)
#define CHECK_STR(got, want) test_check_str((got), (want), __FILE__, __LINE__, #got)
#define CHECK_HAS(text, part) test_check_has((text), (part), __FILE__, __LINE__)
// with words of your own: CHECK_THAT(ok, "row %d of %s", row, name)
#define CHECK_THAT(condition, ...) test_check(!!(condition), __FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...) test_skip(__VA_ARGS__)

#endif
