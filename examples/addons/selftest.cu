// SPDX-License-Identifier: MIT OR Unlicense
// The self-test of the measurement on this machine. Deliberate benchmark errors must be reported by a flag
// instead of a time. Equal kernels must not be reported as different, and slower kernels must be reported as slower.
// Times must agree with CUPTI.
//     nvcc -O3 examples/addons/selftest.cu -o selftest && ./selftest             3 minutes on an H100; --fast: shorter
//     cc -O2 -x c examples/addons/selftest.cu -o selftest -lm && ./selftest      without a GPU
// Exit code 1: a requirement was not met. --device and --cpu select where it runs.
#ifndef KBENCH_IMPLEMENTATION
#define KBENCH_IMPLEMENTATION
#endif
#include "../../kbench.h"
#include "kbench_inspect.h"
#include <stdlib.h>

#ifdef KBENCH_IMPLEMENTED
KBI_CODE_BEGIN

/*---------------------------------------------------------------------------------------------------------------
  >>kernels   the kernels of the self-test, as PTX that the driver compiles.
---------------------------------------------------------------------------------------------------------------*/

#if KBI_CUDA
// The PTX was compiled by nvcc from CUDA C (no contraction, no flush to zero) and lowered to PTX 6.4 for sm_70, so
// that every driver since CUDA 10.1 loads it on every GPU since Volta. The source is tests/ptx/engine.cu;
// tests/ptx/make.py generates the text with nvcc 13.0.88. Change the source, not this text. The strings of an array
// are joined in order, because C guarantees only 4095 characters per literal.
// clang-format off
static const char* const kbi_ptx_proving[] = {
    ".version 6.4\n.target sm_70\n.address_size 64\n",
    // kbi_axpy(x, y, n, ended, wait)
    ".visible .entry kbi_axpy(.param .u64 p0,.param .u64 p1,.param .u32 p2,.param .u64 p3,.param .u64 p4){"
    ".reg .pred %p<6>;.reg .f32 %f<5>;.reg .b32 %r<14>;.reg .b64 %d<15>;ld.param.u64 %d4,[p0];ld.param.u64 %d5,[p1];"
    "ld.param.u32 %r6,[p2];ld.param.u64 %d6,[p3];ld.param.u64 %d7,[p4];mov.u32 %r7,%ctaid.x;shl.b32 %r8,%r7,8;"
    "mov.u32 %r1,%tid.x;add.s32 %r13,%r8,%r1;setp.ge.u32 %p1,%r13,%r6;@%p1 bra $3;mov.u32 %r9,%nctaid.x;"
    "shl.b32 %r3,%r9,8;cvta.to.global.u64 %d1,%d4;cvta.to.global.u64 %d2,%d5;$2:.pragma \"nounroll\";"
    "mul.wide.u32 %d8,%r13,4;add.s64 %d9,%d1,%d8;ld.global.f32 %f1,[%d9];mov.f32 %f2,0f3F800000;"
    "mov.f32 %f3,0f3F000000;fma.rn.f32 %f4,%f3,%f1,%f2;add.s64 %d10,%d2,%d8;st.global.f32 [%d10],%f4;"
    "add.s32 %r13,%r13,%r3;setp.lt.u32 %p2,%r13,%r6;@%p2 bra $2;$3:membar.gl;bar.sync 0;setp.ne.s32 %p3,%r1,0;"
    "@%p3 bra $7;mov.u32 %r10,%nctaid.x;add.s32 %r11,%r10,-1;cvta.to.global.u64 %d11,%d6;"
    "atom.global.inc.u32 %r12,[%d11],%r11;setp.ne.s32 %p4,%r12,%r11;@%p4 bra $7;mov.u64 %d12,%clock64;$6:"
    ".pragma \"nounroll\";mov.u64 %d13,%clock64;sub.s64 %d14,%d13,%d12;setp.lt.u64 %p5,%d14,%d7;@%p5 bra $6;$7:ret;"
    "}\n",
    // kbi_sums(x, y, n, ended, wait)
    ".visible .entry kbi_sums(.param .u64 p0,.param .u64 p1,.param .u32 p2,.param .u64 p3,.param .u64 p4){"
    ".reg .pred %p<13>;.reg .f32 %f<33>;.reg .b32 %r<37>;.reg .b64 %d<19>;.shared .align 4 .b8 part[32];"
    "ld.param.u64 %d5,[p0];ld.param.u64 %d6,[p1];ld.param.u32 %r8,[p2];ld.param.u64 %d7,[p3];ld.param.u64 %d8,[p4];"
    "shr.u32 %r1,%r8,10;mov.u32 %r36,%ctaid.x;setp.lt.u32 %p1,%r36,%r1;@!%p1 bra $7;mov.u32 %r9,%tid.x;"
    "cvt.u64.u32 %d1,%r9;and.b32 %r3,%r9,31;shr.u32 %r10,%r9,3;and.b32 %r11,%r10,536870908;mov.u32 %r12,part;"
    "add.s32 %r4,%r12,%r11;mov.u32 %r5,%nctaid.x;cvta.to.global.u64 %d2,%d5;cvta.to.global.u64 %d3,%d6;$2:"
    ".pragma \"nounroll\";shl.b32 %r13,%r36,10;cvt.u64.u32 %d9,%r13;add.s64 %d10,%d9,%d1;shl.b64 %d11,%d10,2;"
    "add.s64 %d12,%d2,%d11;ld.global.f32 %f2,[%d12+1024];ld.global.f32 %f3,[%d12];add.rn.f32 %f4,%f3,%f2;"
    "ld.global.f32 %f5,[%d12+3072];ld.global.f32 %f6,[%d12+2048];add.rn.f32 %f7,%f6,%f5;add.rn.f32 %f8,%f4,%f7;"
    "mov.b32 %r14,%f8;mov.u32 %r15,31;mov.u32 %r16,16;mov.u32 %r17,-1;"
    "shfl.sync.bfly.b32 %r18|%p2,%r14,%r16,%r15,%r17;mov.b32 %f9,%r18;add.rn.f32 %f10,%f8,%f9;mov.b32 %r19,%f10;"
    "mov.u32 %r20,8;shfl.sync.bfly.b32 %r21|%p3,%r19,%r20,%r15,%r17;mov.b32 %f11,%r21;add.rn.f32 %f12,%f10,%f11;"
    "mov.b32 %r22,%f12;mov.u32 %r23,4;shfl.sync.bfly.b32 %r24|%p4,%r22,%r23,%r15,%r17;mov.b32 %f13,%r24;"
    "add.rn.f32 %f14,%f12,%f13;mov.b32 %r25,%f14;mov.u32 %r26,2;shfl.sync.bfly.b32 %r27|%p5,%r25,%r26,%r15,%r17;"
    "mov.b32 %f15,%r27;add.rn.f32 %f16,%f14,%f15;mov.b32 %r28,%f16;mov.u32 %r29,1;"
    "shfl.sync.bfly.b32 %r30|%p6,%r28,%r29,%r15,%r17;mov.b32 %f17,%r30;add.rn.f32 %f1,%f16,%f17;"
    "setp.ne.s32 %p7,%r3,0;@%p7 bra $4;st.shared.f32 [%r4],%f1;$4:cvt.u32.u64 %r31,%d1;setp.ne.s32 %p8,%r31,0;"
    "bar.sync 0;@%p8 bra $6;ld.shared.f32 %f18,[part];ld.shared.f32 %f19,[part+4];add.rn.f32 %f20,%f18,%f19;"
    "ld.shared.f32 %f21,[part+12];ld.shared.f32 %f22,[part+8];add.rn.f32 %f23,%f22,%f21;add.rn.f32 %f24,%f20,%f23;"
    "ld.shared.f32 %f25,[part+20];ld.shared.f32 %f26,[part+16];add.rn.f32 %f27,%f26,%f25;"
    "ld.shared.f32 %f28,[part+28];ld.shared.f32 %f29,[part+24];add.rn.f32 %f30,%f29,%f28;add.rn.f32 %f31,%f27,%f30;"
    "add.rn.f32 %f32,%f24,%f31;mul.wide.u32 %d13,%r36,4;add.s64 %d14,%d3,%d13;st.global.f32 [%d14],%f32;$6:"
    "bar.sync 0;add.s32 %r36,%r36,%r5;setp.lt.u32 %p9,%r36,%r1;@%p9 bra $2;$7:mov.u32 %r32,%tid.x;membar.gl;"
    "bar.sync 0;setp.ne.s32 %p10,%r32,0;@%p10 bra $11;mov.u32 %r33,%nctaid.x;add.s32 %r34,%r33,-1;"
    "cvta.to.global.u64 %d15,%d7;atom.global.inc.u32 %r35,[%d15],%r34;setp.ne.s32 %p11,%r35,%r34;@%p11 bra $11;"
    "mov.u64 %d16,%clock64;$10:.pragma \"nounroll\";mov.u64 %d17,%clock64;sub.s64 %d18,%d17,%d16;"
    "setp.lt.u64 %p12,%d18,%d8;@%p12 bra $10;$11:ret;}\n",
    // kbi_product(x, y, n, ended, wait)
    ".visible .entry kbi_product(.param .u64 p0,.param .u64 p1,.param .u32 p2,.param .u64 p3,.param .u64 p4){"
    ".reg .pred %p<9>;.reg .f32 %f<23>;.reg .b32 %r<55>;.reg .b64 %d<18>;.shared .align 4 .b8 a[1088];"
    ".shared .align 4 .b8 b[1088];ld.param.u64 %d4,[p0];ld.param.u64 %d5,[p1];ld.param.u32 %r27,[p2];"
    "ld.param.u64 %d6,[p3];ld.param.u64 %d7,[p4];mov.u32 %r1,%tid.x;shr.u32 %r2,%r1,4;and.b32 %r3,%r1,15;"
    "shr.u32 %r4,%r27,4;mul.lo.s32 %r5,%r4,%r4;mov.u32 %r50,%ctaid.x;setp.ge.u32 %p1,%r50,%r5;@%p1 bra $8;"
    "cvta.to.global.u64 %d1,%d4;mov.u32 %r7,%nctaid.x;mul.lo.s32 %r28,%r2,68;mov.u32 %r29,a;add.s32 %r30,%r29,%r28;"
    "shl.b32 %r31,%r3,2;add.s32 %r8,%r30,%r31;mov.u32 %r32,b;add.s32 %r33,%r32,%r28;add.s32 %r9,%r33,%r31;"
    "add.s32 %r34,%r32,%r31;add.s32 %r10,%r34,136;add.s32 %r11,%r30,8;cvta.to.global.u64 %d2,%d5;$2:"
    ".pragma \"nounroll\";div.u32 %r35,%r50,%r4;shl.b32 %r36,%r35,4;add.s32 %r37,%r36,%r2;mul.lo.s32 %r38,%r35,%r4;"
    "sub.s32 %r39,%r50,%r38;shl.b32 %r40,%r39,4;or.b32 %r13,%r40,%r3;mul.lo.s32 %r14,%r37,%r27;"
    "setp.eq.s32 %p2,%r27,0;mov.f32 %f21,0f00000000;@%p2 bra $7;add.s32 %r15,%r14,%r3;mov.f32 %f21,0f00000000;"
    "mov.u32 %r51,0;$4:.pragma \"nounroll\";add.s32 %r43,%r15,%r51;mul.wide.u32 %d8,%r43,4;add.s64 %d9,%d1,%d8;"
    "ld.global.f32 %f7,[%d9];st.shared.f32 [%r8],%f7;add.s32 %r44,%r51,%r2;mad.lo.s32 %r45,%r44,%r27,%r13;"
    "mul.wide.u32 %d10,%r45,4;add.s64 %d11,%d1,%d10;ld.global.f32 %f8,[%d11];st.shared.f32 [%r9],%f8;bar.sync 0;"
    "mov.u32 %r54,136;mov.u32 %r52,%r11;mov.u32 %r53,%r10;$5:.pragma \"nounroll\";ld.shared.f32 %f9,[%r53+-136];"
    "ld.shared.f32 %f10,[%r52+-8];fma.rn.f32 %f11,%f10,%f9,%f21;ld.shared.f32 %f12,[%r53+-68];"
    "ld.shared.f32 %f13,[%r52+-4];fma.rn.f32 %f14,%f13,%f12,%f11;ld.shared.f32 %f15,[%r53];"
    "ld.shared.f32 %f16,[%r52];fma.rn.f32 %f17,%f16,%f15,%f14;ld.shared.f32 %f18,[%r53+68];"
    "ld.shared.f32 %f19,[%r52+4];fma.rn.f32 %f21,%f19,%f18,%f17;add.s32 %r53,%r53,272;add.s32 %r52,%r52,16;"
    "add.s32 %r54,%r54,272;setp.ne.s32 %p3,%r54,1224;@%p3 bra $5;bar.sync 0;add.s32 %r51,%r51,16;"
    "setp.lt.u32 %p4,%r51,%r27;@%p4 bra $4;$7:add.s32 %r46,%r14,%r13;mul.wide.u32 %d12,%r46,4;add.s64 %d13,%d2,%d12;"
    "st.global.f32 [%d13],%f21;add.s32 %r50,%r50,%r7;setp.lt.u32 %p5,%r50,%r5;@%p5 bra $2;$8:membar.gl;bar.sync 0;"
    "setp.ne.s32 %p6,%r1,0;@%p6 bra $12;mov.u32 %r47,%nctaid.x;add.s32 %r48,%r47,-1;cvta.to.global.u64 %d14,%d6;"
    "atom.global.inc.u32 %r49,[%d14],%r48;setp.ne.s32 %p7,%r49,%r48;@%p7 bra $12;mov.u64 %d15,%clock64;$11:"
    ".pragma \"nounroll\";mov.u64 %d16,%clock64;sub.s64 %d17,%d16,%d15;setp.lt.u64 %p8,%d17,%d7;@%p8 bra $11;$12:"
    "ret;}\n",
    // kbi_histogram(x, y, n, ended, wait)
    ".visible .entry kbi_histogram(.param .u64 p0,.param .u64 p1,.param .u32 p2,.param .u64 p3,.param .u64 p4){"
    ".reg .pred %p<6>;.reg .b32 %r<17>;.reg .b64 %d<17>;ld.param.u64 %d4,[p0];ld.param.u64 %d5,[p1];"
    "ld.param.u32 %r6,[p2];ld.param.u64 %d6,[p3];ld.param.u64 %d7,[p4];mov.u32 %r7,%ctaid.x;shl.b32 %r8,%r7,8;"
    "mov.u32 %r1,%tid.x;add.s32 %r16,%r8,%r1;setp.ge.u32 %p1,%r16,%r6;@%p1 bra $3;mov.u32 %r9,%nctaid.x;"
    "shl.b32 %r3,%r9,8;cvta.to.global.u64 %d1,%d4;cvta.to.global.u64 %d2,%d5;$2:.pragma \"nounroll\";"
    "mul.wide.u32 %d8,%r16,4;add.s64 %d9,%d1,%d8;ld.global.u32 %r10,[%d9];shl.b32 %r11,%r10,2;cvt.u64.u32 %d10,%r11;"
    "and.b64 %d11,%d10,16380;add.s64 %d12,%d2,%d11;atom.global.add.u32 %r12,[%d12],1;add.s32 %r16,%r16,%r3;"
    "setp.lt.u32 %p2,%r16,%r6;@%p2 bra $2;$3:membar.gl;bar.sync 0;setp.ne.s32 %p3,%r1,0;@%p3 bra $7;"
    "mov.u32 %r13,%nctaid.x;add.s32 %r14,%r13,-1;cvta.to.global.u64 %d13,%d6;atom.global.inc.u32 %r15,[%d13],%r14;"
    "setp.ne.s32 %p4,%r15,%r14;@%p4 bra $7;mov.u64 %d14,%clock64;$6:.pragma \"nounroll\";mov.u64 %d15,%clock64;"
    "sub.s64 %d16,%d15,%d14;setp.lt.u64 %p5,%d16,%d7;@%p5 bra $6;$7:ret;}\n",
    // kbi_gather(x, y, n, ended, wait)
    ".visible .entry kbi_gather(.param .u64 p0,.param .u64 p1,.param .u32 p2,.param .u64 p3,.param .u64 p4){"
    ".reg .pred %p<6>;.reg .b32 %r<18>;.reg .b64 %d<17>;ld.param.u64 %d4,[p0];ld.param.u64 %d5,[p1];"
    "ld.param.u32 %r6,[p2];ld.param.u64 %d6,[p3];ld.param.u64 %d7,[p4];mov.u32 %r7,%ctaid.x;shl.b32 %r8,%r7,8;"
    "mov.u32 %r1,%tid.x;add.s32 %r17,%r8,%r1;setp.ge.u32 %p1,%r17,%r6;@%p1 bra $3;cvta.to.global.u64 %d1,%d4;"
    "mov.u32 %r9,%nctaid.x;shl.b32 %r3,%r9,8;cvta.to.global.u64 %d2,%d5;$2:.pragma \"nounroll\";"
    "mul.wide.u32 %d8,%r17,4;add.s64 %d9,%d1,%d8;ld.global.u32 %r10,[%d9];mul.lo.s32 %r11,%r10,-1640531535;"
    "mul.hi.u32 %r12,%r11,%r6;mul.wide.u32 %d10,%r12,4;add.s64 %d11,%d1,%d10;ld.global.u32 %r13,[%d11];"
    "add.s64 %d12,%d2,%d8;st.global.u32 [%d12],%r13;add.s32 %r17,%r17,%r3;setp.lt.u32 %p2,%r17,%r6;@%p2 bra $2;$3:"
    "membar.gl;bar.sync 0;setp.ne.s32 %p3,%r1,0;@%p3 bra $7;mov.u32 %r14,%nctaid.x;add.s32 %r15,%r14,-1;"
    "cvta.to.global.u64 %d13,%d6;atom.global.inc.u32 %r16,[%d13],%r15;setp.ne.s32 %p4,%r16,%r15;@%p4 bra $7;"
    "mov.u64 %d14,%clock64;$6:.pragma \"nounroll\";mov.u64 %d15,%clock64;sub.s64 %d16,%d15,%d14;"
    "setp.lt.u64 %p5,%d16,%d7;@%p5 bra $6;$7:ret;}\n",
};
// clang-format on
#endif

/*---------------------------------------------------------------------------------------------------------------
  >>proving   the test cases: memory kernels, work of known duration, planted mistakes.
---------------------------------------------------------------------------------------------------------------*/

// --- memory kernels: on a GPU those of tests/ptx/engine.cu, elsewhere the same in C ---

typedef enum kbi_proof_kernel { KBI_AXPY, KBI_SUMS, KBI_PRODUCT, KBI_HISTOGRAM, KBI_GATHER } kbi_proof_kernel;
static const char* const kbi_proof_names[] = { "kbi_axpy", "kbi_sums", "kbi_product", "kbi_histogram", "kbi_gather" };
enum { KBI_PROOF_COPIES = 4, KBI_PROOF_ROW = 1024, KBI_PROOF_BINS = 4096, KBI_PROOF_CHECKED = 16 };

#if KBI_CUDA
static void* kbi_proof_functions[KBI_PROOF_COPIES]
                                [KBI_COUNT(kbi_proof_names)]; // [copy of the module][kernel]; NULL until loaded
#endif

typedef struct kbi_proof {
    kbi_proof_kernel kernel;
    uint32_t n;
    int64_t in, out; // elements of x and y
    double percent;  // requested slowdown in percent; 0 for none
    uint64_t wait;   // delay for this slowdown: SM cycles on a GPU, iterations of a counted loop on a CPU
    float* x;
    void *y, *ended;
    void* function;
    unsigned blocks;
} kbi_proof;

KBI_SLOW_END
static uint32_t kbi_proof_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint32_t kbi_proof_index(float x, uint32_t n) {
    return (uint32_t)((uint64_t)(kbi_proof_bits(x) * 2654435761u) * n >> 32);
}

static void kbi_proof_host(const kbi_proof* p) {
    const float* x = p->x;
    float* y = (float*)p->y;
    uint32_t n = p->n, *bins = (uint32_t*)p->y;
    switch (p->kernel) {
    case KBI_AXPY:
        for (uint32_t i = 0; i < n; i++) y[i] = 0.5f * x[i] + 1.0f;
        break;
    case KBI_SUMS:
        for (uint32_t r = 0; r < n / KBI_PROOF_ROW; r++) {
            float sum = 0;
            for (uint32_t i = 0; i < KBI_PROOF_ROW; i++) sum += x[r * KBI_PROOF_ROW + i];
            y[r] = sum;
        }
        break;
    case KBI_PRODUCT:
        for (uint32_t r = 0; r < n; r++) {
            for (uint32_t c = 0; c < n; c++) y[r * n + c] = 0;
            for (uint32_t k = 0; k < n; k++)
                for (uint32_t c = 0; c < n; c++) y[r * n + c] += x[r * n + k] * x[k * n + c];
        }
        break;
    case KBI_HISTOGRAM:
        for (uint32_t i = 0; i < n; i++) bins[kbi_proof_bits(x[i]) % KBI_PROOF_BINS]++;
        break;
    case KBI_GATHER:
        for (uint32_t i = 0; i < n; i++) y[i] = x[kbi_proof_index(x[i], n)];
        break;
    }
    __asm__ __volatile__("" : : : "memory");
}

static void kbi_spin_host(uint64_t steps) {
    volatile uint32_t x = 1;
    for (uint64_t i = 0; i < steps; i++) x = x * 1664525u + 1013904223u;
}
KBI_SLOW_BEGIN

// Prepares a kernel. "same_0", "same_1", "slower_2" and "slower_5" run the same code. On a GPU, each of these
// implementations loads its own copy of the module; on a CPU, all of them call the same function.
static void kbi_proof_open(kbi_proof* p, const kb_state* kb, uint32_t n) {
    memset(p, 0, sizeof *p);
    for (int i = 0; i < KBI_COUNT(kbi_proof_names); i++)
        if (kbi_is(kb->operation, kbi_proof_names[i] + 4)) p->kernel = (kbi_proof_kernel)i;
    p->n = n;
    p->in = p->kernel == KBI_PRODUCT ? (int64_t)n * n : (int64_t)n;
    p->out = p->kernel == KBI_SUMS ? n / KBI_PROOF_ROW : p->kernel == KBI_HISTOGRAM ? (int64_t)KBI_PROOF_BINS : p->in;
    if (strncmp(kb->implementation, "slower_", 7) == 0) p->percent = kb->implementation[7] - '0';
#if KBI_CUDA
    int copy = p->percent > 0 ? 2 + (p->percent > 2) : kb->implementation[5] - '0';
    int64_t work = p->kernel == KBI_SUMS ? p->out : (p->in + 255) / 256; // blocks with work
    kbi_text ptx = KBI_BLANK;
    if (!kb->gpu) return;
    if (!kbi_proof_functions[copy][0]) {
        for (int i = 0; i < KBI_COUNT(kbi_ptx_proving); i++) kbi_puts(&ptx, kbi_ptx_proving[i]);
        int error = kbi_load_module(ptx.s, kbi_proof_names, KBI_COUNT(kbi_proof_names), kbi_proof_functions[copy]);
        if (error)
            kbi_stop(kb->run, KB_FLAG_CUDA_ERROR, "the kernels of the self-test were not loaded (CUresult %d)",
                     error);
        kbi_text_free(&ptx);
    }
    p->function = kbi_proof_functions[copy][p->kernel];
    // at most 4 blocks per multiprocessor, so that all blocks run at once: CUPTI's tracing slows kernels whose
    // blocks run in several waves (tests/gpu/shapes.cu)
    p->blocks = (unsigned)KBI_MIN(work, (int64_t)kbi_meter.gpu.multiprocessors * 4);
#endif
}

// Returns the time in ns of a call of the host kernel, or of an iteration of the counted loop: the minimum of ten
// measurements of at least 50 us.
static double kbi_proof_host_ns(const kbi_proof* p, bool step) {
    double least = INFINITY;
    for (int i = 0; i < 10; i++) {
        int64_t began = kbi_now(), now, calls = 0;
        do {
            if (step)
                kbi_spin_host(1000);
            else
                kbi_proof_host(p);
            calls++;
            now = kbi_now();
        } while (now - began < 50000);
        least = KBI_MIN(least, (double)(now - began) / (double)(step ? 1000 * calls : calls));
    }
    return least;
}

#if KBI_CUDA
static void kbi_proof_launch(kbi_proof* p) {
    void* arguments[] = { &p->x, &p->y, &p->n, &p->ended, &p->wait };
    kbi_meter.gpu.launch(p->function, p->blocks, 1, 1, 256, 1, 1, 0, kbi_meter.gpu.stream, arguments, NULL);
}

// Returns the delay in SM cycles that slows the kernel by p->percent. Measures the kernel's time in the cache
// state of the run.
static uint64_t kbi_proof_cycles(kbi_run* run, kbi_proof* p) {
    enum { KBI_EACH = 9 };
    double ns[KBI_EACH], scratch[KBI_EACH], mhz = kbi_gpu_clock();
    kbi_mode mode = run->recipe->mode == KBI_HOT ? KBI_HOT : KBI_COLD;
    for (int i = 0; i < KBI_EACH; i++) {
        kbi_sample_open(true, 1);
        kbi_launch_begin(mode == KBI_COLD);
        kbi_proof_launch(p);
        kbi_launch_end();
        kbi_meter.gpu.at = 0;
        ns[i] = kbi_meter.gpu.ns[0];
    }
    double wait = (kbi_median_of(ns, KBI_EACH, scratch) - run->machine->bias[mode]) * p->percent / 100 * mhz * 1e-3;
    return wait > 0 ? (uint64_t)wait : 0; // if the clock is unknown, wait is NaN and the kernel gets no delay
}
#endif

static float kbi_proof_x(const kb_state* kb, int64_t i) {
    float x;
    kbi_fill_host(&x, i, 1, KB_F32, KB_NORMAL, kb->seed, 0);
    return x;
}

static float kbi_proof_want(const kb_state* kb, const kbi_proof* p, int64_t i) {
    double sum = 0;
    int64_t n = p->n, r = i / n, c = i % n;
    if (p->kernel == KBI_AXPY) return 0.5f * kbi_proof_x(kb, i) + 1.0f;
    if (p->kernel == KBI_GATHER) return kbi_proof_x(kb, kbi_proof_index(kbi_proof_x(kb, i), p->n));
    for (int64_t k = 0; k < KBI_PROOF_ROW && p->kernel == KBI_SUMS; k++)
        sum += kbi_proof_x(kb, i * KBI_PROOF_ROW + k);
    for (int64_t k = 0; k < n && p->kernel == KBI_PRODUCT; k++)
        sum += (double)kbi_proof_x(kb, r * n + k) * (double)kbi_proof_x(kb, k * n + c);
    return (float)sum;
}

static void kbi_proof_check(kb_state* kb, const kbi_proof* p) {
    int64_t total = 0, n = KBI_MIN(p->out, (int64_t)KBI_PROOF_CHECKED), first = p->out - n;
    float want[KBI_PROOF_CHECKED];
    uint32_t bins[KBI_PROOF_BINS];
    if (p->kernel == KBI_HISTOGRAM) {
        kb_to_host(kb, bins, p->y, sizeof bins);
        for (int i = 0; i < KBI_PROOF_BINS; i++) total += bins[i];
        kb_check_that(kb, total == p->n, fabs((double)(total - p->n)), 0, "%lld of %u elements were counted",
                      (long long)total, p->n);
        return;
    }
    for (int64_t i = 0; i < n; i++) want[i] = kbi_proof_want(kb, p, first + i);
    kb_check_typed(kb, (float*)p->y + first, KB_F32, want, KB_F32, n, 1e-4);
}

static void kbi_test_proof(kb_state* kb) {
    kbi_proof p;
    kbi_proof_open(&p, kb, (uint32_t)kb_int(kb, "n"));
    p.x = KB_ALLOC(kb, float, p.in), p.y = KB_ALLOC(kb, float, p.out), p.ended = KB_ALLOC(kb, uint32_t, 1);
    kbi_fill(kb, p.x, KB_F32, p.in, KB_NORMAL);
    kbi_fill(kb, p.ended, KB_U32, 1, KB_ZERO);
    if (kbi_failed(kb->run) || !p.x || !p.y || !p.ended) return;
    if (!kb->gpu && p.percent > 0)
        p.wait = (uint64_t)(kbi_proof_host_ns(&p, false) * p.percent / 100 / kbi_proof_host_ns(&p, true));
#if KBI_CUDA
    if (kb->gpu && p.percent > 0) p.wait = kbi_proof_cycles(kb->run, &p);
#endif
    kbi_fill(kb, p.y, KB_U32, p.out, KB_ZERO); // clears y again, because kbi_proof_cycles may have run the kernel
    if (kb->gpu) {
#if KBI_CUDA
        KB_TIME(kb) kbi_proof_launch(&p);
#endif
    } else {
        KB_TIME_HOST(kb) kbi_proof_host(&p), kbi_spin_host(p.wait);
    }
    kbi_proof_check(kb, &p);
}

// --- work of known duration ---

static void kbi_spin_work(kb_state* kb, uint64_t cycles) {
    if (kb->gpu) {
#if KBI_CUDA
        void* arguments[] = { &cycles };
        KB_TIME(kb) kbi_launch(KBI_F_SPIN, (unsigned)kbi_meter.gpu.multiprocessors, 128, arguments);
#endif
    } else {
        KB_TIME_HOST(kb) kbi_spin_host(cycles);
    }
    kb_check_that(kb, true, 0, 0, "there is nothing to check");
}
static void kbi_test_spin(kb_state* kb) { kbi_spin_work(kb, (uint64_t)kb_int(kb, "cycles")); }

// --- whether the data of a cold launch was evicted ---

#if KBI_CUDA
static const double kbi_gone_least = 0.7; // as in kbi_judge_cold

static void kbi_gone(kb_state* kb, double share, const char* what, double bytes) {
    if (!kbi_finite(share))
        kb_skip(kb, "a read from L2 takes as long as a read from memory");
    else if (share < kbi_gone_least)
        kb_fail(kb, "%.0f %% of %s %.3g MiB was still in the cache", 100 * KBI_MIN(1 - share, 1), what,
                bytes / (1 << 20));
    else
        kb_note(kb, "%.0f %% of %s %.3g MiB was evicted", 100 * KBI_MIN(share, 1), what, bytes / (1 << 20));
}

static void kbi_test_eviction(kb_state* kb) {
    const kbi_machine* m = kb->run->machine;
    kbi_gone(kb, m->cold, "L2's", (double)m->l2);
    kbi_spin_work(kb, 1000);
}

// Sets aside a part of L2 for persisting accesses, and makes accesses to x persisting.
static bool kbi_set_aside(void* x, size_t bytes) {
    cudaStreamAttrValue a;
    memset(&a, 0, sizeof a);
    a.accessPolicyWindow.base_ptr = x;
    a.accessPolicyWindow.num_bytes = x ? bytes : 0;
    a.accessPolicyWindow.hitRatio = x ? 1.0f : 0.0f;
    a.accessPolicyWindow.hitProp = x ? cudaAccessPropertyPersisting : cudaAccessPropertyNormal;
    a.accessPolicyWindow.missProp = x ? cudaAccessPropertyStreaming : cudaAccessPropertyNormal;
    bool good =
        cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, x ? bytes : 0) == cudaSuccess &&
        cudaStreamSetAttribute(kbi_meter.gpu.stream, cudaStreamAttributeAccessPolicyWindow, &a) == cudaSuccess;
    cudaCtxResetPersistingL2Cache();
    cudaGetLastError();
    kbi_check_persisting();
    return good;
}

// Measures which share of the persisting data x is evicted: the smallest share over several places in x. *gone:
// the share that the complete preparation of a cold launch evicts; *evicted: the share that the eviction alone
// evicts; NAN: unknown, or the GPU cannot set aside L2 for persisting accesses.
static void kbi_measure_aside(char* x, size_t bytes, double* gone, double* evicted) {
    enum {
        KBI_PLACES = 8,
        KBI_EACH = 5,
        KBI_READ_ONCE = 0,
        KBI_READ_COLD,
        KBI_ASIDE_EVICTED,
        KBI_ASIDE_COLD,
        KBI_WAYS
    };
    double ns[KBI_PLACES][KBI_WAYS], each[KBI_EACH], scratch[KBI_EACH];
    size_t span = bytes / KBI_PLACES & ~(size_t)4095;
    bool good = true;
    *gone = *evicted = INFINITY;
    for (int way = 0; way < KBI_WAYS && good; way++) {
        if (way == KBI_ASIDE_EVICTED) good = kbi_set_aside(x, bytes);
        for (int place = 0; place < KBI_PLACES; place++) {
            for (int i = 0; i < KBI_EACH; i++) {
                kbi_gpu_read(x, bytes);
                if (way == KBI_ASIDE_EVICTED) kbi_evict();
                if (way == KBI_READ_ONCE) kbi_gpu_read(x + (size_t)place * span, KBI_PROBE);
                each[i] = kbi_probe_ns(x + (size_t)place * span, way == KBI_READ_COLD || way == KBI_ASIDE_COLD);
            }
            ns[place][way] = kbi_median_of(each, KBI_EACH, scratch);
        }
    }
    kbi_set_aside(NULL, 0);
    for (int place = 0; place < KBI_PLACES; place++) {
        const double* by = ns[place];
        double hot = by[KBI_READ_ONCE], cold = by[KBI_READ_COLD] - hot;
        if (!good || !(cold > 0.2 * hot)) {
            *gone = *evicted = NAN;
            return;
        }
        *gone = KBI_MIN(*gone, (by[KBI_ASIDE_COLD] - hot) / cold);
        *evicted = KBI_MIN(*evicted, (by[KBI_ASIDE_EVICTED] - hot) / cold);
    }
}

static void kbi_test_set_aside(kb_state* kb) {
    struct cudaDeviceProp p;
    memset(&p, 0, sizeof p);
    if (cudaGetDeviceProperties(&p, kb->run->machine->device) != cudaSuccess) return;
    size_t bytes = (size_t)KBI_MAX(0, KBI_MIN(p.persistingL2CacheMaxSize, p.accessPolicyMaxWindowSize));
    if (bytes < 8 * KBI_PROBE) kb_skip(kb, "this GPU cannot set a part of L2 aside");
    char* x = KB_ALLOC(kb, char, (int64_t)bytes);
    // measure only once
    if (x && kb->run->m.status == KB_OK && kb->run->call.last == KBI_PHASE_CHECK) {
        double gone, evicted;
        kbi_measure_aside(x, bytes, &gone, &evicted);
        kbi_gone(kb, gone, "the persisting data of", (double)bytes);
        if (evicted < kbi_gone_least)
            kb_note(kb, "without the reset of persisting lines, %.0f %% was evicted", 100 * KBI_MAX(evicted, 0));
        if (evicted >= kbi_gone_least)
            kb_skip(kb, "data does not persist in the set-aside part of L2, so there "
                        "is nothing to test");
    }
    kbi_spin_work(kb, 1000);
}
#endif

// --- planted mistakes ---

static void kbi_test_wrong(kb_state* kb) {
    float *x = KB_ALLOC(kb, float, 256), want[256] = { 0 };
    kbi_fill(kb, x, KB_F32, 256, KB_ZERO);
    if (kbi_is(kb->implementation, "unwritten"))
        x = KB_ALLOC(kb, float, 256); // unfilled: NaN
    else
        want[17] = 1;
    kbi_spin_work(kb, 1000);
    kb_check_typed(kb, x, KB_F32, want, KB_F32, 256, 1e-6);
}

static void kbi_test_overrun(kb_state* kb) {
    char *p = KB_ALLOC(kb, char, 100), byte = 1;
    kb_from_host(kb, p ? p + 100 : NULL, &byte, 1);
    kbi_spin_work(kb, 1000);
}
static void kbi_test_no_loop(kb_state* kb) { (void)kb; }
static void kbi_test_left(kb_state* kb) {
    KB_TIME(kb) break;
}
static void kbi_test_crash(kb_state* kb) {
    KB_TIME(kb) abort();
}
static void kbi_test_exit(kb_state* kb) {
    KB_TIME(kb) exit(0);
}
static void kbi_test_hang(kb_state* kb) {
    KB_TIME(kb)
        for (;;) kbi_readable(-1, 1000);
}

#if KBI_CUDA
static void kbi_test_mistake(kb_state* kb) {
    const char* what = kb->implementation;
    float host[256], *x = KB_ALLOC(kb, float, 256), *pinned = KB_ALLOC_PINNED(kb, float, 256);
    void *p = NULL, *nowhere = (void*)(uintptr_t)4096;
    uint64_t cycles = 2000, far_cycles = 2000000, units = 16;
    void *spin[] = { &cycles }, *far_spin[] = { &far_cycles }, *bad[] = { &nowhere, &nowhere, &units };
    cudaStream_t other = NULL, own = kbi_meter.gpu.stream;
    memset(host, 0, sizeof host);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    KB_TIME(kb) {
        kbi_launch(KBI_F_SPIN, 1, 32, spin);
        if (kbi_is(what, "copy")) cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
        if (kbi_is(what, "copy_async")) cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, kb->stream);
        if (kbi_is(what, "copy_pinned")) cudaMemcpyAsync(pinned, x, sizeof host, cudaMemcpyDeviceToHost, kb->stream);
        if (kbi_is(what, "device_sync")) cudaDeviceSynchronize();
        if (kbi_is(what, "stream_sync")) cudaStreamSynchronize(kb->stream);
        if (kbi_is(what, "malloc")) cudaMalloc(&p, 1 << 20), cudaFree(p);
        if (kbi_is(what, "malloc_async")) cudaMallocAsync(&p, 1 << 20, kb->stream), cudaFreeAsync(p, kb->stream);
        if (kbi_is(what, "bad_address")) kbi_launch(KBI_F_COPY, 1, 32, bad);
        kbi_meter.gpu.stream = kbi_is(what, "default_stream") ? NULL : kbi_is(what, "side_stream") ? other : own;
        if (kbi_meter.gpu.stream != own) kbi_launch(KBI_F_SPIN, 1, 32, far_spin);
        kbi_meter.gpu.stream = own;
    }
    cudaStreamDestroy(other);
}
static void kbi_test_empty(kb_state* kb) {
    KB_TIME(kb) {}
}
#endif

#define KBI_TEST_AXIS_END                   \
    {                                       \
        0, KB_AXIS_END, { 0 }, { 0 }, { 0 } \
    }
// Problem sizes. The sizes "all", "some" and "few" are for comparisons of kernels of 1 to 200 us on an H200. The
// sizes "host" and "brief" are for a CPU: data of 4 KiB to 1 MiB, except for matrix products.
#define KBI_SIZES(axis, all, some, few, rotated, host, brief) \
    { KB_SIZE("all", axis "=" all),                           \
      KB_SIZE("some", axis "=" some),                         \
      KB_SIZE("few", axis "=" few),                           \
      KB_SIZE("rotated", axis "=" rotated),                   \
      KB_SIZE("host", axis "=" host),                         \
      KB_SIZE("brief", axis "=" brief),                       \
      KBI_TEST_AXIS_END },
// clang-format off
static const kb_axis kbi_sizes_of[][7] = {
    KBI_SIZES("n", "4096,16384,65536,196608,786432,1048576,3145728,4194304,12582912,16777216",
              "16384,262144,3145728,12582912", "65536,4194304", "1048576,4194304,12582912", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("n", "16384,65536,262144,786432,1048576,3145728,4194304,12582912,16777216,25165824",
              "65536,1048576,4194304,12582912", "1048576,4194304", "2097152,4194304,12582912", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("n", "16,32,64,96,128,256,384,512,640,768", "32,128,384,640", "64,384", "768,896", "16:128:+16",
              "48,96")
    KBI_SIZES("n", "4096,16384,49152,65536,196608,262144,524288,786432,1048576,3145728",
              "16384,196608,786432,1048576", "49152,786432", "1048576,2097152,3145728", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("n", "4096,16384,65536,196608,262144,786432,1048576,3145728,4194304,12582912",
              "16384,262144,1048576,4194304", "16384,1048576", "1048576,4194304,12582912", "1024:262144:*2",
              "4096,65536")
    KBI_SIZES("cycles", "20000", "500,3000,20000,1000000", "1000,20000", "20000",
              "500,1000,3000,7000,20000,100000,1000000,10000000", "20000")
};

// Each operation has the name of a kernel, or of the flag that its deliberate error must cause.
static kb_entry kbi_tests[] = {
#define KBI_TEST(op, impl, body, axes)                                                                           \
    { op, impl, body, NULL, axes, "own", 0, KB_NEEDS_NOTHING, 0, NULL, false, NULL, 0, 0, NULL, NULL },
#define KBI_RIVALS(op, kernel)                                                                                   \
    KBI_TEST(op, "same_0", kbi_test_proof, kbi_sizes_of[kernel])                                                 \
    KBI_TEST(op, "same_1", kbi_test_proof, kbi_sizes_of[kernel])                                                 \
    KBI_TEST(op, "slower_2", kbi_test_proof, kbi_sizes_of[kernel])                                               \
    KBI_TEST(op, "slower_5", kbi_test_proof, kbi_sizes_of[kernel])
    KBI_RIVALS("axpy", KBI_AXPY)
    KBI_RIVALS("sums", KBI_SUMS)
    KBI_RIVALS("product", KBI_PRODUCT)
    KBI_RIVALS("histogram", KBI_HISTOGRAM)
    KBI_RIVALS("gather", KBI_GATHER)
    KBI_TEST("spin", "same_0", kbi_test_spin, kbi_sizes_of[KBI_GATHER + 1])
    KBI_TEST("VERIFY_FAIL", "one_element", kbi_test_wrong, NULL)
    KBI_TEST("VERIFY_FAIL", "unwritten", kbi_test_wrong, NULL)
    KBI_TEST("OVERRUN", "default", kbi_test_overrun, NULL)
    KBI_TEST("NO_LOOP", "default", kbi_test_no_loop, NULL)
    KBI_TEST("LEFT_EARLY", "default", kbi_test_left, NULL)
    KBI_TEST("CRASHED", "abort", kbi_test_crash, NULL)
    KBI_TEST("CRASHED", "exit", kbi_test_exit, NULL)
    KBI_TEST("TIMEOUT", "default", kbi_test_hang, NULL)
#if KBI_CUDA
    KBI_TEST("eviction", "default", kbi_test_eviction, NULL)
    KBI_TEST("set_aside", "default", kbi_test_set_aside, NULL)
    KBI_TEST("NO_WORK", "default", kbi_test_empty, NULL)
    KBI_TEST("SIDE_STREAM", "default_stream", kbi_test_mistake, NULL)
    KBI_TEST("SIDE_STREAM", "side_stream", kbi_test_mistake, NULL)
    KBI_TEST("TRANSFER", "copy", kbi_test_mistake, NULL)
    KBI_TEST("TRANSFER", "copy_async", kbi_test_mistake, NULL)
    KBI_TEST("TRANSFER", "copy_pinned", kbi_test_mistake, NULL)
    KBI_TEST("SYNC_INSIDE", "device_sync", kbi_test_mistake, NULL)
    KBI_TEST("SYNC_INSIDE", "stream_sync", kbi_test_mistake, NULL)
    KBI_TEST("ALLOC_INSIDE", "malloc", kbi_test_mistake, NULL)
    KBI_TEST("ALLOC_INSIDE", "malloc_async", kbi_test_mistake, NULL)
    KBI_TEST("CUDA_ERROR", "bad_address", kbi_test_mistake, NULL)
#endif
#undef KBI_TEST
#undef KBI_RIVALS
};
// clang-format on

#ifdef KBENCH_SELFTEST_PART // another program includes this file and calls kbi_selftest_register for --selftest
#define KBI_SELFTEST_STARTS KBI_INLINE
#else
#define KBI_SELFTEST_STARTS KBI_CONSTRUCTOR static
#endif
KBI_SELFTEST_STARTS void kbi_selftest_register(void) {
    kbi_process.entries = NULL; // removes the benchmarks of the program
    kbi_process.entry_count = 0;
    for (int i = 0; i < KBI_COUNT(kbi_tests); i++) kb_add(&kbi_tests[i]);
}

/*---------------------------------------------------------------------------------------------------------------
  >>selftest  runs the test cases and compares the results with the requirements.
---------------------------------------------------------------------------------------------------------------*/

#define KBI_PROOF_OPERATIONS "axpy,sums,product,histogram,gather"

typedef struct kbi_seen_result { // copy of the fields of a result that the self-test needs
    char name[96], operation[32], implementation[16], message[200];
    double ms, least, speedup, low, high, noise; // ms: median time; least: shortest sample
    double evicted;                              // percent, from counters
    double cupti;                                // CUPTI's time in us, measured in alternation with ms
    uint64_t flags;
    kb_status status;
    kb_verdict verdict;
} kbi_seen_result;

typedef struct kbi_bars {
    const kbi_options* o;
    kbi_seen_result* seen;
    int n, failed, skipped, code; // code: the exit code of the latest run
    bool gpu, fast;
} kbi_bars;

static kbi_bars* kbi_bars_now;                 // NULL: no self-test runs
static void kbi_bars_add(const kb_result* r) {
    kbi_bars* b = kbi_bars_now;
    if (!b) return;
    b->seen = KBI_GROW(b->seen, kbi_seen_result, b->n + 1);
    kbi_seen_result* s = &b->seen[b->n++];
    snprintf(s->name, sizeof s->name, "%s", r->name);
    snprintf(s->operation, sizeof s->operation, "%s", r->operation);
    snprintf(s->implementation, sizeof s->implementation, "%s", r->implementation);
    snprintf(s->message, sizeof s->message, "%s", r->message ? r->message : "");
    s->ms = r->time_ms, s->least = r->time_ms_min;
    s->speedup = r->speedup, s->low = r->speedup_low, s->high = r->speedup_high, s->noise = r->noise_floor;
    s->evicted = kbi_object_number(&r->counters, "evicted_pct");
    s->cupti = kbi_object_number(&r->counters, "cupti");
    s->flags = r->flags;
    s->status = r->status;
    s->verdict = r->verdict;
    b->gpu |= r->gpu != NULL;
}

enum { KBI_NOT_HELD = -1 }; // the requirement could not be tested

KBI_PRINTF(4, 5) static void kbi_bar(kbi_bars* b, int passed, const char* what, const char* format, ...) {
    char said[800];
    va_list list;
    va_start(list, format);
    kbi_vfit(said, 0, sizeof said, format, list);
    va_end(list);
    kbi_print_line(stdout, "%-5s %-30s %s", passed == KBI_NOT_HELD ? "skip" : passed ? "pass" : "FAIL", what, said);
    fflush(stdout);
    b->failed += !passed;
    b->skipped += passed == KBI_NOT_HELD;
}

// Runs the tests that a command line selects and stores their results in b->seen. If there are no results, the
// requirement `what` fails; if `what` is NULL, the caller reports the failure.
static bool kbi_bars_run(kbi_bars* b, const char* what, const char* arguments) {
    char text[400], *argv[40], *word;
    kbi_options o;
    kbi_plan plan;
    int argc = 0;
    b->n = 0;
    snprintf(text, sizeof text, "--no-progress --quiet %s", arguments);
    argv[argc++] = b->o->argv[0];
    for (word = strtok(text, " "); word && argc < 34; word = strtok(NULL, " ")) argv[argc++] = word;
    if (b->o->cpu) argv[argc] = kbi_keep_text("--cpu"), argv[argc + 1] = kbi_keep_text(b->o->cpu), argc += 2;
    if (b->o->device) argv[argc] = kbi_keep_text("--device"), argv[argc + 1] = kbi_keep_text(b->o->device), argc += 2;
    argv[argc] = NULL;
    kbi_options_default(&o);
    b->code = KBI_EXIT_USAGE;
    if (kbi_options_parse(&o, argc, argv) && kbi_plan_here(&plan, &o)) {
        b->code = kbi_run_plan(&o, &plan, true);
        kbi_plan_free(&plan);
    }
    if (kbi_control.interrupted) return false;
    if (!b->n && what) kbi_bar(b, false, what, "nothing was measured, exit code %d", b->code);
    return b->n > 0;
}

// --- accuracy ---

enum { KBI_BAR_PROCESSES = 3 };
typedef struct kbi_bar_case { // values of each process; ms: corrected event time; apart: CUPTI's time minus ms
    double ms[KBI_BAR_PROCESSES], apart[KBI_BAR_PROCESSES];
} kbi_bar_case;

// b->seen gets the names of the measured cases. Returns NULL if there are no results.
static kbi_bar_case* kbi_bars_both(kbi_bars* b, const char* what, const char* arguments, int processes, int* n) {
    kbi_bar_case* cases = NULL;
    for (int p = 0; p < processes; p++) {
        if (!kbi_bars_run(b, what, arguments)) return KBENCH_FREE(cases), (kbi_bar_case*)NULL;
        if (!p) cases = KBI_GROW(NULL, kbi_bar_case, b->n);
        *n = p ? KBI_MIN(*n, b->n) : b->n;
        for (int i = 0; i < *n; i++) {
            cases[i].ms[p] = b->seen[i].ms;
            cases[i].apart[p] = b->seen[i].cupti * 1e-3 - b->seen[i].ms;
        }
    }
    return cases;
}

// Returns the median over the processes of the difference between event time and CUPTI's time, divided by max(0.15
// us, 1 %); INFINITY if a time is missing.
static double kbi_bar_error(kbi_bar_case* c, int processes) {
    for (int p = 0; p < processes; p++)
        if (!kbi_finite(c->ms[p]) || !kbi_finite(c->apart[p])) return INFINITY;
    kbi_sort(c->ms, processes);
    kbi_sort(c->apart, processes);
    return fabs(c->apart[processes / 2]) / KBI_MAX(0.15e-3, 0.01 * c->ms[processes / 2]);
}

// Compares corrected event times with CUPTI's durations. The times of memory kernels change between processes and
// within minutes by more than the allowed error, so events and CUPTI alternate within one process.
static void kbi_bar_accuracy(kbi_bars* b, const char* way) {
    char arguments[200], what[64];
    double worst = 0;
    int good = 0, n = 0, processes = b->fast ? 1 : KBI_BAR_PROCESSES;
    const char* effort = b->fast ? "--size few --fast --precision 0.5" : "--size some";
    snprintf(what, sizeof what, "agrees with CUPTI, %s", *way ? way + 2 : "cold");
    snprintf(arguments, sizeof arguments, "--timer both --op spin," KBI_PROOF_OPERATIONS " --impl same_0 %s %s",
             effort, way);
    kbi_bar_case* cases = kbi_bars_both(b, what, arguments, processes, &n);
    if (!cases) return;
    bool none = !kbi_finite(cases[0].ms[0]) && strstr(b->seen[0].message, "--timer both:");
    if (none) kbi_bar(b, KBI_NOT_HELD, what, "%s", b->seen[0].message);
    for (int i = 0; !none && i < n; i++) {
        double error = kbi_bar_error(&cases[i], processes);
        good += error <= 1;
        worst = KBI_MAX(worst, error);
    }
    if (!none)
        kbi_bar(
            b, good >= 0.9 * n && worst <= 2.5, what,
            "%d of %d within max(0.15 us, 1 %%), %d process%s; worst %.2f of this limit; required: nine of ten, none "
            "above 2.5",
            good, n, processes, processes > 1 ? "es" : "", worst);
    for (int i = 0; !none && i < n; i++) {
        kbi_bar_case* c = &cases[i];
        if (kbi_bar_error(c, processes) <= 1) continue;
        double ms = c->ms[processes / 2];
        printf("      %-36s %9.3f us, CUPTI %9.3f us %s\n", b->seen[i].name, 1e3 * ms,
               1e3 * (ms + c->apart[processes / 2]), b->seen[i].message);
    }
    KBENCH_FREE(cases);
}

static void kbi_bar_steps(kbi_bars* b, const char* what) {
    double least = INFINITY, most = 0;
    int n = 0, noisy = 0, lost = 0;
    for (int i = 1; i < b->n; i++) { // skips the smallest size, where the loop overhead is visible
        const kbi_seen_result* s = &b->seen[i];
        double each = s->least / strtod(strstr(s->name, "cycles=") + 7, NULL);
        noisy += (s->flags >> KB_FLAG_NOISY & 1) != 0;
        lost += !kbi_finite(each);
        if (!kbi_finite(each) || s->flags >> KB_FLAG_NOISY & 1) continue;
        n++;
        least = KBI_MIN(least, each);
        most = KBI_MAX(most, each);
    }
    if (noisy > n && !lost)
        kbi_bar(b, KBI_NOT_HELD, what,
                "%d of %d sizes were hidden by noise, because other work disturbs this machine", noisy, n + noisy);
    else
        kbi_bar(
            b, !lost && most <= 1.1 * least, what,
            "the time per iteration differs by %.1f %% over %d sizes; required: at most 10 %%; %d more without a time",
            100 * (most / least - 1), n, lost);
}

static void kbi_bar_scale(kbi_bars* b) {
    static const char what[] = "time grows with the work";
    if (kbi_bars_run(b, what, "--op spin --size host --fast --precision 0.3")) kbi_bar_steps(b, what);
}

// --- comparisons ---

// Returns the largest k such that at least k of n events occur with a probability of at least 1 %, if each event
// has probability p.
static int kbi_binomial_most(int n, double p) {
    double below = 0, term = pow(1 - p, n);
    int k = 0;
    for (; k < n && 1 - (below + term) >= 0.01; k++) {
        below += term;
        term *= (double)(n - k) / (k + 1) * p / (1 - p);
    }
    return k;
}

typedef enum kbi_judged { KBI_UNJUDGED, KBI_RIGHT, KBI_WRONG, KBI_DROWNED, KBI_LOST, KBI_JUDGED } kbi_judged;

// Returns whether the verdict on an implementation that is `percent` slower is correct. Kernels shorter than the
// limits of tests/gpu/equal_implementations.sh are not judged. On a CPU, other processes can hide the slowdown: a
// wrong verdict is DROWNED instead of WRONG if the noise floor exceeds half of the slowdown, or if the interval is
// wider than the slowdown.
static kbi_judged kbi_rival_judge(const kbi_bars* b, const kbi_seen_result* s, int percent) {
    int planted = strncmp(s->implementation, "slower_", 7) == 0 ? s->implementation[7] - '0' : 0;
    double from = percent == 2 ? 5e-3 : percent == 5 ? 1.5e-3 : 0;
    if (planted != percent || kbi_is(s->implementation, "same_0")) return KBI_UNJUDGED;
    if (s->flags >> KB_FLAG_NOT_COLD & 1 || s->ms < from) return KBI_UNJUDGED;
    if (s->verdict == KB_NO_VERDICT) return KBI_LOST; // this implementation or the baseline has no time
    bool open = s->verdict == KB_UNRESOLVED;
    bool wide = s->noise > 0.005 * percent || s->high - s->low > 0.01 * percent;
    if (!b->gpu && percent && open && wide) return KBI_DROWNED;
    return (percent ? s->verdict == KB_SLOWER : open || s->verdict == KB_EQUIVALENT) ? KBI_RIGHT : KBI_WRONG;
}

static void kbi_bar_sort(kbi_bars* b, const char* way, int percent) {
    char what[64], more[100] = "";
    int of[KBI_JUDGED] = { 0 };
    for (int i = 0; i < b->n; i++) of[kbi_rival_judge(b, &b->seen[i], percent)]++;
    int wrong = of[KBI_WRONG], n = of[KBI_RIGHT] + wrong, drowned = of[KBI_DROWNED], lost = of[KBI_LOST];
    int most = kbi_binomial_most(n, 0.05);
    if (percent)
        snprintf(what, sizeof what, "%d %% slower, %s", percent, way);
    else
        snprintf(what, sizeof what, "equal kernels, %s", way);
    if (drowned) snprintf(more, sizeof more, "; noise hid %d more kernels", drowned);
    if (lost) snprintf(more, sizeof more, "; %d more without a verdict", lost);
    if (n + drowned + lost == 0)
        kbi_bar(b, KBI_NOT_HELD, what, "no case was long enough and cold");
    else if (drowned > n && !lost && wrong <= kbi_binomial_most(n, 0.05))
        kbi_bar(b, KBI_NOT_HELD, what, "noise hid %d of %d slower kernels: other work disturbs this machine", drowned,
                n + drowned);
    else if (percent)
        kbi_bar(b, wrong <= most && !lost, what,
                "found %d of %d from %s; required: at least %d (p < 0.01 for fewer if 95 %% are found)%s", n - wrong,
                n, percent == 2 ? "5 us" : "1.5 us", n - most, more);
    else
        kbi_bar(b, wrong <= most && !lost, what,
                "%d of %d reported as different; required: at most %d (p < 0.01 for more if 5 %% are expected)%s",
                wrong, n, most, more);
    for (int i = 0; i < b->n; i++) {
        const kbi_seen_result* s = &b->seen[i];
        kbi_judged judged = kbi_rival_judge(b, s, percent);
        if (judged == KBI_WRONG)
            printf("      %-36s %9.3f us, speedup %.4f [%.4f, %.4f]\n", s->name, 1e3 * s->ms, s->speedup, s->low,
                   s->high);
        if (judged == KBI_LOST)
            kbi_print_line(stdout, "      %-36s %s", s->name,
                           s->message[0] ? s->message : "the baseline has no time");
    }
}

#ifndef KBI_BAR_ROUNDS
#define KBI_BAR_ROUNDS "40"
#endif
static void kbi_bar_rivals(kbi_bars* b, const char* way, const char* size) {
    char arguments[200];
    bool option = b->gpu && !kbi_is(way, "cold");
    snprintf(arguments, sizeof arguments,
             "--op " KBI_PROOF_OPERATIONS " --size %s --fast --precision 0.5 --rounds " KBI_BAR_ROUNDS " %s%s", size,
             option ? "--" : "", option ? way : "");
    if (!kbi_bars_run(b, way, arguments)) return;
    kbi_bar_sort(b, way, 0);
    kbi_bar_sort(b, way, 2);
    kbi_bar_sort(b, way, 5);
}

// --- eviction, mistakes ---

static bool kbi_is_cold_test(const kbi_seen_result* s) {
    return kbi_is(s->operation, "eviction") || kbi_is(s->operation, "set_aside");
}

static void kbi_bar_cold(kbi_bars* b) {
    for (int i = 0; i < b->n; i++) {
        const kbi_seen_result* s = &b->seen[i];
        const char* what = kbi_is(s->operation, "eviction") ? "evicted" : "evicted, L2 set aside";
        if (!kbi_is_cold_test(s)) continue;
        if (s->status == KB_SKIPPED)
            kbi_bar(b, KBI_NOT_HELD, what, "%s", s->message);
        else
            kbi_bar(b, s->status == KB_OK, what, "%s", s->message);
    }
}

static bool kbi_mistake_found(const kbi_seen_result* s) {
    bool flagged = false;
    for (int f = 0; f < KB_FLAG_COUNT; f++)
        if (kbi_is(kb_flag_name((kb_flag)f), s->operation)) flagged = (s->flags >> f) & 1;
    // without inspection of CUDA calls, a synchronous copy or allocation appears as work on the default stream or
    // as a wait
    bool copies = kbi_is(s->implementation, "copy"), allocates = kbi_is(s->implementation, "malloc");
    if (copies || allocates) flagged |= s->flags >> KB_FLAG_SYNC_INSIDE & 1;
    if (copies) flagged |= s->flags >> KB_FLAG_SIDE_STREAM & 1;
    return s->status == KB_SKIPPED || (flagged && s->status == KB_FAILED && !kbi_finite(s->ms));
}

static void kbi_bar_counted_cold(kbi_bars* b) {
    static const char what[] = "L2 evicted (counters)";
    if (!b->gpu || !kbi_bars_run(b, what, "--fast --counters=few --op spin --size rotated")) return;
    const kbi_seen_result* s = &b->seen[0];
    const char* why = strstr(s->message, "not profiled: ");
    if (s->status == KB_SKIPPED || (!kbi_finite(s->evicted) && why))
        kbi_bar(b, KBI_NOT_HELD, what, "%s", why ? why : s->message);
    else
        kbi_bar(b, s->evicted >= 90, what, "%.1f %% of L2's size came from DRAM; required: at least 90 %%",
                s->evicted);
}

// Also runs the cases that test the eviction, which kbi_bar_cold checks later.
static void kbi_bar_mistakes(kbi_bars* b) {
    int good = 0, n = 0;
    char arguments[300] = "--fast --timeout 2s --op ";
    for (int i = 0; i < KBI_COUNT(kbi_tests); i++) { // operations without a size
        size_t length = strlen(arguments);
        if (!kbi_tests[i].axes && (!i || !kbi_is(kbi_tests[i].operation, kbi_tests[i - 1].operation)))
            snprintf(arguments + length, sizeof arguments - length, "%s,", kbi_tests[i].operation);
    }
    arguments[strlen(arguments) - 1] = 0;
    if (!kbi_bars_run(b, NULL, arguments)) return;
    for (int i = 0; i < b->n; i++) {
        n += !kbi_is_cold_test(&b->seen[i]);
        good += !kbi_is_cold_test(&b->seen[i]) && kbi_mistake_found(&b->seen[i]);
    }
    kbi_bar(b, good == n, "planted mistakes", "%d of %d were flagged and reported without a time", good, n);
    for (int i = 0; i < b->n; i++) {
        if (kbi_is_cold_test(&b->seen[i]) || kbi_mistake_found(&b->seen[i])) continue;
        kbi_print_line(stdout, "      %s: not found%s%s", b->seen[i].name, b->seen[i].message[0] ? "; instead: " : "",
                       b->seen[i].message);
    }
    kbi_bar_cold(b);
}

static int kbi_selftest(const kbi_options* o) {
    kbi_bars b;
    int64_t began = kbi_now();
    memset(&b, 0, sizeof b);
    kbi_bars_now = &b;
    b.o = o;
    b.fast = o->on[KBI_OPTION_fast];
    printf("kbench %s self-test%s\n", KBENCH_VERSION, b.fast ? ", short version" : "");
    fflush(stdout);
    kbi_bar_mistakes(&b);
    // kbi_bars_run has already printed an error message
    if (!b.n && !kbi_control.interrupted) return kbi_bars_now = NULL, b.code ? b.code : KBI_EXIT_FAILED;
    kbi_bar_counted_cold(&b);
    if (b.gpu) {
        kbi_bar_accuracy(&b, "");
        kbi_bar_accuracy(&b, "--hot");
        kbi_bar_rivals(&b, "cold", b.fast ? "few" : "all");
        kbi_bar_rivals(&b, "hot", b.fast ? "few" : "all");
        if (!b.fast) kbi_bar_rivals(&b, "rotate", "rotated");
    } else {
        kbi_bar_scale(&b);
        kbi_bar_rivals(&b, "on the CPU", b.fast ? "brief" : "host");
    }
    kbi_bars_now = NULL;
    KBENCH_FREE(b.seen);
    if (kbi_control.interrupted) return KBI_EXIT_INTERRUPTED;
    if (b.skipped) printf("%d requirement%s not be tested here\n", b.skipped, b.skipped > 1 ? "s could" : " could");
    printf("%s on the %s, in %.0f s\n", b.failed ? "FAILED" : "passed", b.gpu ? "GPU" : "CPU",
           (double)(kbi_now() - began) * 1e-9);
    return b.failed ? KBI_EXIT_FAILED : KBI_EXIT_FINE;
}

// Runs the self-test, unless an option such as --list or --help asks for text only. An option that is not in the
// list `heard` is an error.
static int kbi_selftest_instead(const char* value) {
    static const char* const heard[] = { "selftest", "fast",  "device",   "cpu",        "quiet",
                                         "verbose",  "color", "no-color", "no-progress" };
    const kbi_options* o = kbi_options_now;
    const kb_option* option;
    (void)value;
    if (kbi_option_any(o, KBI_IDLE)) return -1;
    for (int k = 0; (option = kbi_option_at(k)) != NULL; k++) {
        bool known = !kbi_option_given(o, k);
        for (int i = 0; i < KBI_COUNT(heard); i++) known |= kbi_is(option->name, heard[i]);
        if (!known)
            return kbi_error("--%s: the self-test chooses its cases and writes no records", option->name),
                   KBI_EXIT_USAGE;
    }
    if (o->filter.n) return kbi_error("%s: the self-test chooses its cases", o->filter.of[0]), KBI_EXIT_USAGE;
    return kbi_selftest(o);
}

KBI_CONSTRUCTOR static void kbi_selftest_add(void) {
    static kb_output option, results; // `results` has no option, so it gets the records of every run
    option.option = "selftest", option.instead = kbi_selftest_instead;
    results.each = kbi_bars_add;
    kb_add_output(&option), kb_add_output(&results);
}

KBI_CODE_END
#endif // KBENCH_IMPLEMENTED

#ifndef KBENCH_SELFTEST_PART
int main(int argc, char** argv) {
    char *word = (char*)"--selftest", **all = (char**)calloc((size_t)argc + 2, sizeof *all);
    if (!all) return 1;
    all[0] = argc > 0 ? argv[0] : word, all[1] = word;
    for (int i = 1; i < argc; i++) all[i + 1] = argv[i];
    return kb_main(argc + 1, all);
}
#endif
