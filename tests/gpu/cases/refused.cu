// SPDX-License-Identifier: MIT OR Unlicense
// Benchmark functions with CUDA calls that stream capture rejects.
#include "h.cuh"
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <cub/cub.cuh>
#define N (1 << 20)
#define DEV(p) thrust::device_pointer_cast(p)
KBENCH(prefetch) { int n = N; XY(n); float* m; cudaMallocManaged(&m, 4 << 20); cudaMemLocation at; at.type = cudaMemLocationTypeDevice; at.id = 0;
  KB_TIME(kb) { cudaMemPrefetchAsync(m, 4 << 20, at, 0, kb->stream); SCALE(kb->stream); } PASS; cudaFree(m); }
KBENCH(host_func) { int n = N; XY(n); KB_TIME(kb) { SCALE(kb->stream); cudaLaunchHostFunc(kb->stream, [](void*) {}, 0); } PASS; }
KBENCH(checked_graph) { int* o = KB_ALLOC(kb, int, 1); cudaStream_t s; cudaGraph_t g; cudaGraphExec_t e; cudaStreamCreate(&s);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal); spin<<<1, 1, 0, s>>>(50000, o); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, 0);
  KB_TIME(kb) { if (cudaGraphLaunch(e, kb->stream) != cudaSuccess) exit(1); } PASS; }
KBENCH(thrust_default) { int n = N; XY(n); float sum = 0; KB_TIME(kb) { sum += thrust::reduce(thrust::device, DEV(x), DEV(x) + n); } PASS; (void)y; }
KBENCH(thrust_stream) { int n = N; XY(n); KB_TIME(kb) { thrust::sort(thrust::cuda::par.on(kb->stream), DEV(y), DEV(y) + n); } PASS; (void)x; }
KBENCH(cub_default) { int n = N; XY(n); size_t b = 0; void* t; cub::DeviceReduce::Sum(nullptr, b, x, y, n); cudaMalloc(&t, b);
  KB_TIME(kb) { cub::DeviceReduce::Sum(t, b, x, y, n); } PASS; cudaFree(t); }
KBENCH(cub_stream) { int n = N; XY(n); size_t b = 0; void* t; cub::DeviceReduce::Sum(nullptr, b, x, y, n); cudaMalloc(&t, b);
  KB_TIME(kb) { cub::DeviceReduce::Sum(t, b, x, y, n, kb->stream); } PASS; cudaFree(t); }
KBENCH(host_alloc) { int n = N; XY(n); KB_TIME(kb) { void* p; cudaMallocHost(&p, 64); SCALE(kb->stream); cudaFreeHost(p); } PASS; }
KBENCH(memset_default) { int n = N; XY(n); KB_TIME(kb) { cudaMemset(y, 0, 4 * n); SCALE(kb->stream); } PASS; }
KBENCH(copy_now) { int n = N; XY(n); KB_TIME(kb) { SCALE(kb->stream); cudaMemcpy(x, y, 4 * n, cudaMemcpyDeviceToDevice); } PASS; }
KBENCH(bad_copy) { int n = N; XY(n); KB_TIME(kb) { SCALE(kb->stream); cudaMemcpyAsync(x, (void*)8, 64, cudaMemcpyDeviceToDevice, kb->stream); cudaGetLastError(); } PASS; }
KBENCH(coop) { int n = N; XY(n); void* a[] = { &x, &y, &n }; KB_TIME(kb) { cudaLaunchCooperativeKernel((void*)scale, dim3(64), dim3(256), a, 0, kb->stream); } PASS; }
KBENCH(coop_too_large) { int n = N; XY(n); void* a[] = { &x, &y, &n }; KB_TIME(kb) { cudaLaunchCooperativeKernel((void*)scale, dim3(65536), dim3(256), a, 0, kb->stream); cudaGetLastError(); SCALE(kb->stream); } PASS; }
KBENCH(short_beside) { cudaStream_t a; cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking); int* o = KB_ALLOC(kb, int, 2); KB_TIME(kb) { spin<<<1, 1, 0, kb->stream>>>(50000, o); nothing<<<1, 1, 0, a>>>(); } PASS; }
KBENCH(not_forked) { cudaStream_t a; cudaEvent_t j; cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking); cudaEventCreate(&j); int* o = KB_ALLOC(kb, int, 2);
  KB_TIME(kb) { spin<<<1, 1, 0, a>>>(50000, o); cudaEventRecord(j, a); cudaStreamWaitEvent(kb->stream, j, 0); } PASS; }
KBENCH_MAIN()
