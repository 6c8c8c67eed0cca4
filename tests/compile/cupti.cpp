// SPDX-License-Identifier: MIT OR Unlicense
// What kbench.h declares of CUPTI by itself, since its headers are often not there, against these headers.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include <cuda.h>
#include <cupti.h>

#define SAME(ours, field, theirs, other)                                            \
    static_assert(offsetof(ours, field) == offsetof(theirs, other) &&               \
                      sizeof(((ours*)0)->field) % sizeof(((theirs*)0)->other) == 0, \
                  #field)
#define KERNEL CUpti_ActivityKernel9
SAME(kbi_activity, registers, KERNEL, registersPerThread);
SAME(kbi_activity, start, KERNEL, start);
SAME(kbi_activity, end, KERNEL, end);
SAME(kbi_activity, stream, KERNEL, streamId);
SAME(kbi_activity, grid, KERNEL, gridX);
SAME(kbi_activity, block, KERNEL, blockX);
SAME(kbi_activity, static_shared, KERNEL, staticSharedMemory);
SAME(kbi_activity, dynamic_shared, KERNEL, dynamicSharedMemory);
SAME(kbi_activity, local, KERNEL, localMemoryPerThread);
SAME(kbi_activity, correlation, KERNEL, correlationId);
SAME(kbi_activity, name, KERNEL, name);
SAME(kbi_activity, cluster, KERNEL, clusterX);
#define COPY CUpti_ActivityMemcpy5
SAME(kbi_activity_copy, which, COPY, copyKind);
SAME(kbi_activity_copy, bytes, COPY, bytes);
SAME(kbi_activity_copy, start, COPY, start);
SAME(kbi_activity_copy, end, COPY, end);
SAME(kbi_activity_copy, stream, COPY, streamId);
SAME(kbi_activity_copy, correlation, COPY, correlationId);
#define SET CUpti_ActivityMemset4
SAME(kbi_activity_copy, bytes, SET, bytes);
SAME(kbi_activity_copy, start, SET, start);
SAME(kbi_activity_copy, end, SET, end);
SAME(kbi_activity_copy, stream, SET, streamId);
SAME(kbi_activity_copy, correlation, SET, correlationId);
#define CALL CUpti_ActivityAPI
SAME(kbi_activity_call, id, CALL, cbid);
SAME(kbi_activity_call, start, CALL, start);
SAME(kbi_activity_call, end, CALL, end);
SAME(kbi_activity_call, thread, CALL, threadId);
SAME(kbi_activity_call, correlation, CALL, correlationId);
static_assert((int)KBI_ACTIVITY_KERNEL == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "");
static_assert((int)KBI_ACTIVITY_COPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY, "");
static_assert((int)KBI_ACTIVITY_SET == (int)CUPTI_ACTIVITY_KIND_MEMSET, "");
static_assert((int)KBI_ACTIVITY_DRIVER == (int)CUPTI_ACTIVITY_KIND_DRIVER, "");
static_assert((int)KBI_ACTIVITY_RUNTIME == (int)CUPTI_ACTIVITY_KIND_RUNTIME, "");
static_assert(CUPTI_ERROR_HARDWARE_BUSY == 26 && CUPTI_ERROR_INSUFFICIENT_PRIVILEGES == 35, "");
static_assert(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED == 39 && CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED == 43, "");
