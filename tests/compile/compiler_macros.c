// SPDX-License-Identifier: MIT OR Unlicense
// The header must not change the compiler's macros about its options, because later headers, such as glibc's, may
// depend on them.
#ifdef __OPTIMIZE__
#define OPTIMIZE
#endif
#ifdef __OPTIMIZE_SIZE__
#define OPTIMIZE_SIZE
#endif
#ifdef __FAST_MATH__
#define FAST_MATH
#endif
#ifdef __NO_INLINE__
#define NO_INLINE
#endif
enum { finite_before = __FINITE_MATH_ONLY__ };
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#if defined(OPTIMIZE) != defined(__OPTIMIZE__) || defined(OPTIMIZE_SIZE) != defined(__OPTIMIZE_SIZE__)
#error "kbench.h removed the macro that tells whether the file is optimised"
#endif
#if defined(FAST_MATH) != defined(__FAST_MATH__) || defined(NO_INLINE) != defined(__NO_INLINE__)
#error "kbench.h removed the macro that tells how the file is optimised"
#endif
_Static_assert(finite_before == __FINITE_MATH_ONLY__, "another arithmetic");
