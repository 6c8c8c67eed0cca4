// SPDX-License-Identifier: MIT OR Unlicense
// Contains kernels whose bytes, operations, occupancy and cache hit rates are known.
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
#include "examples/addons/kbench_inspect.h"
#include "examples/addons/kbench_report.h"

__global__ void triad(const float* a, const float* b, float* c, long n) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        c[i] = a[i] + 2.0f * b[i]; // one multiply-add and 12 bytes per element
}
__global__ void chains(float* out, int steps, float x) { // 4 multiply-adds per thread in each step
    float r0 = threadIdx.x, r1 = r0 + 1, r2 = r0 + 2, r3 = r0 + 3;
    for (int i = 0; i < steps; i++)
        r0 = fmaf(r0, x, 1.0f), r1 = fmaf(r1, x, 1.0f), r2 = fmaf(r2, x, 1.0f), r3 = fmaf(r3, x, 1.0f);
    if (r0 + r1 + r2 + r3 == 12345.678f) out[0] = r0;
}
__global__ void again(const float4* p, float4* out, long n, int times) { // reads the same bytes `times` times
    float4 sum = make_float4(0, 0, 0, 0);
    for (int t = 0; t < times; t++)
        for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
            float4 v = __ldcg(&p[i]); // from L2, not from L1
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
    out[blockIdx.x * (long)blockDim.x + threadIdx.x] = sum;
}
// with stride 32, all lanes of a warp access one bank
__global__ void conflicts(float* out, int stride, int steps) {
    __shared__ volatile float s[32 * 33];
    float sum = 0;
    for (int i = threadIdx.x; i < 32 * 33; i += 32) s[i] = (float)i;
    __syncwarp();
    for (int i = 0; i < steps; i++) sum += s[(threadIdx.x * stride + i) % (32 * 33)];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}

static void triad_of(kb_state* kb, double bytes, double flops) {
    long n = (long)kb_int(kb, "mib") << 18;
    float *a = KB_ALLOC(kb, float, n), *b = KB_ALLOC(kb, float, n), *c = KB_ALLOC(kb, float, n);
    if (!c) return;
    kb_fill(kb, a, n, KB_NORMAL), kb_fill(kb, b, n, KB_NORMAL);
    KB_TIME(kb) { triad<<<4096, 256, 0, kb->stream>>>(a, b, c, n); }
    kb_bytes(kb, bytes * 12.0 * (double)n);
    kb_flops(kb, flops * 2.0 * (double)n);
}
KBENCH_IMPL(triad, right, KB_AXIS("mib", 2048)) { triad_of(kb, 1, 1); }
KBENCH_IMPL(halved, wrong, KB_AXIS("mib", 2048)) { triad_of(kb, 0.5, 0.5); }
// declares twice the true bytes; eight thread blocks are so slow that the declared rate stays below the peak,
// because a rate above the peak would raise a different flag
KBENCH_IMPL(doubled, wrong) {
    long n = 32l << 20;
    float *a = KB_ALLOC(kb, float, n), *b = KB_ALLOC(kb, float, n), *c = KB_ALLOC(kb, float, n);
    if (!c) return;
    kb_fill(kb, a, n, KB_NORMAL), kb_fill(kb, b, n, KB_NORMAL);
    KB_TIME(kb) { triad<<<8, 256, 0, kb->stream>>>(a, b, c, n); }
    kb_bytes(kb, 2 * 12.0 * (double)n);
}
static void chains_of(kb_state* kb, double flops) {
    volatile float x = 0.999f;
    float* out = KB_ALLOC(kb, float, 1);
    KB_TIME(kb) { chains<<<132, 256, 0, kb->stream>>>(out, 4096, x); }
    kb_flops(kb, flops * 8.0 * 4096 * 132 * 256);
}
KBENCH_IMPL(chains, right) { chains_of(kb, 1); }
KBENCH_IMPL(chains_doubled, wrong) { chains_of(kb, 2); }
KBENCH(again) { // reads 16 MiB eight times: once from DRAM, seven times from L2
    long n = 1 << 20;
    float *p = KB_ALLOC(kb, float, 4 * n), *out = KB_ALLOC(kb, float, 4l * 1024 * 1024);
    kb_fill(kb, p, 4 * n, KB_NORMAL);
    KB_TIME(kb) { again<<<1024, 256, 0, kb->stream>>>((const float4*)p, (float4*)out, n, 8); }
}
KBENCH(conflicts, KB_AXIS("stride", 1, 32)) {
    float* out = KB_ALLOC(kb, float, 32 * 1024);
    int stride = (int)kb_int(kb, "stride");
    KB_TIME(kb) { conflicts<<<1024, 32, 0, kb->stream>>>(out, stride, 1024); }
}
KBENCH(overlaps) { // a kernel runs while another stream copies
    static cudaStream_t side;
    static cudaEvent_t forked, joined;
    if (!side) cudaStreamCreate(&side), cudaEventCreate(&forked), cudaEventCreate(&joined);
    float *out = KB_ALLOC(kb, float, 1), *to = KB_ALLOC(kb, float, 8 << 20),
          *from = KB_ALLOC_PINNED(kb, float, 8 << 20);
    volatile float x = 0.999f;
    kb_expect(kb, KB_EXPECT_TRANSFER);
    KB_TIME(kb) {
        cudaEventRecord(forked, kb->stream);
        cudaStreamWaitEvent(side, forked, 0);
        chains<<<16, 256, 0, kb->stream>>>(out, 400000, x);
        cudaMemcpyAsync(to, from, 32 << 20, cudaMemcpyHostToDevice, side);
        cudaEventRecord(joined, side);
        cudaStreamWaitEvent(kb->stream, joined, 0);
    }
}
KBENCH_MAIN()
