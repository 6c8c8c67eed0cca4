// SPDX-License-Identifier: MIT OR Unlicense
// The implementation for api.c, and a main function that calls it: C with C, C with C++, C++ with C.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#ifdef __cplusplus
extern "C"
#endif
    int
    api_use(void);
int main(void) { return api_use(); }
