// SPDX-License-Identifier: MIT OR Unlicense
// Includes only kbench_kernels.cuh, as C or C++. -DSECOND compiles the second of two files that include this
// header.
#include "kbench_kernels.cuh"
#ifdef SECOND
int second_file(void);
int second_file(void) { return 0; }
#else
int second_file(void);
int main(void) { return second_file(); }
#endif
