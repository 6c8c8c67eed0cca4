// SPDX-License-Identifier: MIT OR Unlicense
// kbench_kernels.cuh alone, as C or C++. -DSECOND: the second of two files that include it.
#include "kbench_kernels.cuh"
#ifdef SECOND
int second_file(void);
int second_file(void) { return 0; }
#else
int second_file(void);
int main(void) { return second_file(); }
#endif
