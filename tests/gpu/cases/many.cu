// SPDX-License-Identifier: MIT OR Unlicense
// Correct benchmark functions of every kind that kbench inspects, repeated as often as the axis rep says. No case
// may get a flag.
#include "h.cuh"
#define REP KB_AXIS("rep", 1)
KBENCH(plain, REP) { int n = 1 << 16; XY(n); KB_TIME(kb) { SCALE(kb->stream); } PASS; }
KBENCH(several, REP) { int n = 1 << 12; XY(n); KB_TIME(kb) { for (int i = 0; i < 20; i++) SCALE(kb->stream); } PASS; }
KBENCH(forked, REP) { int n = 1 << 16; XY(n); cudaStream_t a; cudaEvent_t f, j; cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&f, cudaEventDisableTiming); cudaEventCreateWithFlags(&j, cudaEventDisableTiming);
  KB_TIME(kb) { cudaEventRecord(f, kb->stream); cudaStreamWaitEvent(a, f, 0); SCALE(a); cudaEventRecord(j, a); SCALE(kb->stream); cudaStreamWaitEvent(kb->stream, j, 0); }
  PASS; cudaStreamDestroy(a); cudaEventDestroy(f); cudaEventDestroy(j); }
KBENCH(graph, REP) { int n = 1 << 16; XY(n); cudaGraph_t g; cudaGraphExec_t e; cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal); SCALE(s); SCALE(s); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, 0);
  KB_TIME(kb) { cudaGraphLaunch(e, kb->stream); } PASS; cudaGraphExecDestroy(e); cudaGraphDestroy(g); cudaStreamDestroy(s); }
KBENCH(sets, REP) { int n = 1 << 16; XY(n); KB_TIME(kb) { cudaMemsetAsync(y, 0, n, kb->stream); SCALE(kb->stream); } PASS; }
KBENCH_MAIN()
