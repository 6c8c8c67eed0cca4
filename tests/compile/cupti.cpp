// SPDX-License-Identifier: MIT OR Unlicense
// Compares kbench's own declarations of CUPTI, which replace CUPTI's headers, with these headers.
#include "kit.h"
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

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

// Parameter structures of the range profiler as arrays of words, to compare the offsets of their fields. Sizes are
// compared at run time.
#define WORD(type, field, at) static_assert(offsetof(type, field) == 8 * at, #field)
WORD(CUpti_Profiler_DeviceSupported_Params, cuDevice, 2);
WORD(CUpti_Profiler_DeviceSupported_Params, architecture, 3);
WORD(CUpti_Profiler_DeviceSupported_Params, vGpu, 4);
WORD(CUpti_Profiler_DeviceSupported_Params, cmp, 5);
WORD(CUpti_Profiler_DeviceSupported_Params, api, 6);
WORD(CUpti_Device_GetChipName_Params, deviceIndex, 2);
WORD(CUpti_Device_GetChipName_Params, pChipName, 3);
WORD(CUpti_Profiler_GetCounterAvailability_Params, ctx, 2);
WORD(CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize, 3);
WORD(CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage, 4);
WORD(CUpti_Profiler_Host_Initialize_Params, profilerType, 2);
WORD(CUpti_Profiler_Host_Initialize_Params, pChipName, 3);
WORD(CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage, 4);
WORD(CUpti_Profiler_Host_Initialize_Params, pHostObject, 5);
WORD(CUpti_Profiler_Host_GetMetricProperties_Params, pHostObject, 2);
WORD(CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName, 3);
WORD(CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject, 2);
WORD(CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames, 3);
WORD(CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics, 4);
WORD(CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject, 2);
WORD(CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize, 3);
WORD(CUpti_Profiler_Host_GetConfigImage_Params, pHostObject, 2);
WORD(CUpti_Profiler_Host_GetConfigImage_Params, configImageSize, 3);
WORD(CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage, 4);
WORD(CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize, 2);
WORD(CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage, 3);
WORD(CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses, 4);
WORD(CUpti_RangeProfiler_Enable_Params, ctx, 2);
WORD(CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject, 3);
WORD(CUpti_RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames, 3);
WORD(CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics, 4);
WORD(CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges, 5);
WORD(CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes, 6);
WORD(CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize, 7);
WORD(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize, 3);
WORD(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData, 4);
WORD(CUpti_RangeProfiler_SetConfig_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_SetConfig_Params, configSize, 3);
WORD(CUpti_RangeProfiler_SetConfig_Params, pConfig, 4);
WORD(CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize, 5);
WORD(CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage, 6);
WORD(CUpti_RangeProfiler_SetConfig_Params, range, 7);
WORD(CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass, 8);
WORD(CUpti_RangeProfiler_SetConfig_Params, numNestingLevels, 9);
WORD(CUpti_RangeProfiler_SetConfig_Params, passIndex, 10);
WORD(CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel, 11);
WORD(CUpti_RangeProfiler_Start_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_PushRange_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_PushRange_Params, pRangeName, 3);
WORD(CUpti_RangeProfiler_PopRange_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_Stop_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted, 5);
WORD(CUpti_RangeProfiler_DecodeData_Params, pRangeProfilerObject, 2);
WORD(CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped, 3);
WORD(CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject, 2);
WORD(CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage, 3);
WORD(CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize, 4);
WORD(CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex, 5);
WORD(CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames, 6);
WORD(CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics, 7);
WORD(CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues, 8);
WORD(CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject, 2);
WORD(CUpti_Profiler_Host_Deinitialize_Params, pHostObject, 2);
static_assert(offsetof(CUpti_Profiler_DeviceSupported_Params, isSupported) == 20, "");
static_assert(offsetof(CUpti_RangeProfiler_SetConfig_Params, replayMode) == 60, "");
static_assert(offsetof(CUpti_RangeProfiler_SetConfig_Params, minNestingLevel) == 74, "");
static_assert(CUPTI_UserRange == 2 && CUPTI_UserReplay == 3 && CUPTI_PROFILER_CONFIGURATION_SUPPORTED == 3, "");

int main() {
    static const size_t sizes[] = {
        CUpti_Profiler_Initialize_Params_STRUCT_SIZE,
        CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE,
        CUpti_Device_GetChipName_Params_STRUCT_SIZE,
        CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_Start_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE,
        CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE,
        CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE,
    };
    int wrong = 0;
    for (int i = 0; i < KBI_RANGE_COUNT; i++)
        if (sizes[i] != kbi_range_calls[i].size)
            printf("%s: %d bytes, CUPTI has %d\n", kbi_range_calls[i].name, (int)kbi_range_calls[i].size,
                   (int)sizes[i]),
                wrong = 1;
    return wrong;
}
