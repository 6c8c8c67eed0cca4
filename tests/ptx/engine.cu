// SPDX-License-Identifier: MIT OR Unlicense
// The kernels of kbench itself, in CUDA C: they measure peaks, read clocks and fill arrays. kbench.h contains
// these kernels as PTX (section >>ptx). C and CUDA programs therefore use the same kernels, and a C program needs
// no nvcc. make.py in this folder generates the PTX, or compares the PTX in kbench.h with engine.cu. The driver
// compiles the PTX when a program starts, and a long PTX text delays this start. A loop is therefore unrolled only
// if a pragma requests this. From the comment directly above a kernel, make.py also copies the signature to
// kbench.h.
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

// Functions marked BOTH are also compiled for the host, where tests/ptx/fill.c compares their results with those
// of kbi_fill_host bit by bit.
#define BOTH static __forceinline__ __host__ __device__

// the codes of kb_dtype and kb_kind; kbench.h checks them next to the PTX. Unsigned types have even codes
enum { F32 = 1, F64, F16, BF16, I8, U8, I16, U16, I32, U32, I64, U64, TF32, E4M3, E5M2 };
enum { ZERO, NORMAL, UNIFORM, IOTA };

static __device__ uint64_t nanoseconds() {
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

static __device__ uint64_t cycle() {
    uint64_t t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t));
    return t;
}

// kbi_null(): does nothing.
extern "C" __global__ void kbi_null() {}

// kbi_read(p, n16, sink): reads n16 units of 16 bytes through L2 (.cg), 4 loads of a thread in flight. The kernel
// stores only if the xor of all loaded words equals a 64-bit constant, which practically never happens. This
// conditional store keeps the compiler from removing the loads.
extern "C" __global__ void kbi_read(const ulonglong2* p, uint64_t n16, uint32_t* sink) {
    uint64_t threads = blockDim.x, i = blockIdx.x * (4 * threads) + threadIdx.x, seen = 0;
    uint64_t all = gridDim.x * (4 * threads);
#pragma unroll 1
    for (; i + 3 * threads < n16; i += all) {
        ulonglong2 a = __ldcg(p + i), b = __ldcg(p + i + threads);
        ulonglong2 c = __ldcg(p + i + 2 * threads), d = __ldcg(p + i + 3 * threads);
        seen ^= a.x ^ a.y ^ b.x ^ b.y ^ c.x ^ c.y ^ d.x ^ d.y;
    }
#pragma unroll 1
    for (; i < n16; i += threads) { // handles the incomplete last tile
        ulonglong2 a = __ldcg(p + i);
        seen ^= a.x ^ a.y;
    }
    if (seen == 0x9d2c5680c3a5c85cu) *sink = (uint32_t)seen;
}

// kbi_copy(dst, src, n16): measures the copy peak. Loads and stores use .cs (evict first), because no data is used
// twice.
extern "C" __global__ void kbi_copy(uint4* dst, const uint4* src, uint64_t n16) {
    uint64_t threads = blockDim.x, i = blockIdx.x * (4 * threads) + threadIdx.x;
    uint64_t all = gridDim.x * (4 * threads);
#pragma unroll 1
    for (; i + 3 * threads < n16; i += all) {
        uint4 a = __ldcs(src + i), b = __ldcs(src + i + threads);
        uint4 c = __ldcs(src + i + 2 * threads), d = __ldcs(src + i + 3 * threads);
        __stcs(dst + i, a);
        __stcs(dst + i + threads, b);
        __stcs(dst + i + 2 * threads, c);
        __stcs(dst + i + 3 * threads, d);
    }
#pragma unroll 1
    for (; i < n16; i += threads) __stcs(dst + i, __ldcs(src + i));
}

// kbi_write(dst, n16, value): measures the write peak; sets every 32-bit word of dst to value.
extern "C" __global__ void kbi_write(uint4* dst, uint64_t n16, uint32_t value) {
    uint64_t threads = blockDim.x, i = blockIdx.x * (4 * threads) + threadIdx.x;
    uint64_t all = gridDim.x * (4 * threads);
    uint4 v = { value, value, value, value };
#pragma unroll 1
    for (; i + 3 * threads < n16; i += all) {
        __stcs(dst + i, v);
        __stcs(dst + i + threads, v);
        __stcs(dst + i + 2 * threads, v);
        __stcs(dst + i + 3 * threads, v);
    }
#pragma unroll 1
    for (; i < n16; i += threads) __stcs(dst + i, v);
}

// kbi_spin(cycles): every thread waits until the clock of its SM has advanced by `cycles` clock cycles.
extern "C" __global__ void kbi_spin(uint64_t cycles) {
    uint64_t begin = cycle();
#pragma unroll 1
    while (cycle() - begin < cycles) {}
}

// kbi_clock(out, cycles): measures the time between two ticks of globaltimer that are at least `cycles` clock
// cycles apart. Writes the time in ns to out[0] and in clock cycles to out[1]. globaltimer ticks at least once per
// us. If globaltimer does not tick for 2^28 cycles, the kernel stops waiting and sets out[0] to 0.
extern "C" __global__ void kbi_clock(uint64_t* out, uint64_t cycles) {
    if (blockIdx.x | threadIdx.x) return;
    uint64_t limit = cycles + (1u << 28), ns[2], at[2];
#pragma unroll
    for (int edge = 0; edge < 2; edge++) {
        uint64_t since = cycle(), before;
#pragma unroll 1
        while (edge && cycle() - at[0] < cycles) {}
        before = nanoseconds();
#pragma unroll 1
        do {
            ns[edge] = nanoseconds();
            at[edge] = cycle();
        } while (ns[edge] == before && at[edge] - since < limit);
    }
    out[0] = ns[1] - ns[0];
    out[1] = at[1] - at[0];
}

// STEP performs one multiply-add in each of the 16 chains of kbi_fma. Inline assembly makes every multiply-add
// update its register in place, so that the PTX repeats the same 16 lines. make.py writes the 16 lines only once
// to kbench.h, as a macro.
#define FMA(i) "fma.rn.f32 %" #i ", %" #i ", %16, %17;\n"
#define FMA4(a, b, c, d) FMA(a) FMA(b) FMA(c) FMA(d)
#define STEP FMA4(0, 1, 2, 3) FMA4(4, 5, 6, 7) FMA4(8, 9, 10, 11) FMA4(12, 13, 14, 15)
#define STEP4 STEP STEP STEP STEP
#define X4(i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3])

// kbi_fma(out, iters): measures the f32 peak: 16 chains x = x a + b, 256 FMA per thread and iteration. The kernel
// would store its sum only if the sum were NaN, which never happens.
extern "C" __global__ void kbi_fma(float* out, uint64_t iters) {
    float a = 0.5f + 1e-6f * threadIdx.x, b = 1, x[16], sum;
    if (iters == 0) return;
#pragma unroll
    for (int i = 0; i < 16; i++) x[i] = i;
#pragma unroll 1
    do { asm volatile(STEP4 STEP4 STEP4 STEP4 : X4(0), X4(4), X4(8), X4(12) : "f"(a), "f"(b)); } while (--iters);
    sum = x[0];
#pragma unroll
    for (int i = 1; i < 16; i++) sum += x[i];
    if (sum != sum) *out = sum;
}

// The following functions compute the same bits as kbi_fill_host in kbench.h, with the same operations in the same
// order. Section >>random of kbench.h explains them.

// ten rounds of Philox4x32 on the counter (block, tensor, purpose)
BOTH void philox(uint32_t w[4], uint64_t block, uint32_t tensor, uint32_t purpose, uint64_t seed) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = tensor, c3 = purpose;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll 1
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = k0 ^ c1 ^ (uint32_t)(b >> 32);
        c1 = (uint32_t)b;
        c2 = k1 ^ c3 ^ (uint32_t)(a >> 32);
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    w[0] = c0;
    w[1] = c1;
    w[2] = c2;
    w[3] = c3;
}

// -ln(m / 2^24), m = 1 .. 2^24
BOTH double minus_log(uint32_t m) {
    const uint64_t root = (uint64_t)0x3fe6a09e << 32; // the upper 32 bits of sqrt(1/2) as a double
    double f = (double)(int32_t)m, s, q, series;
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits += ((uint64_t)0x3ff00000 << 32) - root;
    int32_t e = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) + root;
    memcpy(&f, &bits, sizeof f);
    s = (f - 1.0) / (f + 1.0);
    q = s * s;
    series = q * (1.0 / 15) + 1.0 / 13;
    series = series * q + 1.0 / 11;
    series = series * q + 1.0 / 9;
    series = series * q + 1.0 / 7;
    series = series * q + 1.0 / 5;
    series = series * q + 1.0 / 3;
    series = series * q + 1.0;
    return (double)(24 - e) * 0.69314718055994530942 - 2.0 * s * series;
}

// returns the first or second of two normally distributed values with mean 0 and variance 1 (Box and Muller 1958)
BOTH double normal(uint32_t word0, uint32_t word1, uint32_t second) {
    double r = sqrt(2.0 * minus_log((word0 >> 8) + 1u));
    uint32_t k = word1 >> 8, quarter = (k + 0x200000u) >> 22;
    double x = (double)((int32_t)k - (int32_t)(quarter << 22)) * 3.7450702829238413e-07; // 2 pi / 2^24
    double q = x * x, s, c, z;
    s = q * (1.0 / 6227020800.0) - 1.0 / 39916800.0; // 13! 11! 9! 7! 5! 3!
    s = s * q + 1.0 / 362880.0;
    s = s * q - 1.0 / 5040.0;
    s = s * q + 1.0 / 120.0;
    s = s * q - 1.0 / 6.0;
    s = s * q * x + x;
    c = q * (1.0 / 479001600.0) - 1.0 / 3628800.0; // 12! 10! 8! 6! 4! 2!
    c = c * q + 1.0 / 40320.0;
    c = c * q - 1.0 / 720.0;
    c = c * q + 1.0 / 24.0;
    c = c * q - 1.0 / 2.0;
    c = c * q + 1.0;
    quarter += 3 * second; // sin x = cos(x + 3 quarter turns)
    z = (quarter & 1u) ? s : c;
    return (double)(float)(r * (((quarter + 1u) & 2u) ? -z : z));
}

// returns the bits of an 8-bit float with 3 or 2 mantissa bits, which is never NaN
BOTH uint32_t float8(uint32_t u, uint32_t fraction) {
    uint32_t a = u & 0x7fffffffu, e = a >> 23, shift = 23 - fraction;
    uint32_t most = fraction == 3 ? 0x7e : 0x7b, least = fraction == 3 ? 121 : 113;
    uint32_t r = a - ((least - 1) << 23);
    if (e < least) {
        r = (a & 0x7fffffu) | 0x800000u;
        shift = min(shift + least - e, 25u); // all bits are shifted out, so the result is 0
    }
    r = (r + (1u << (shift - 1)) - 1 + (r >> shift & 1u)) >> shift;
    return (u >> 24 & 0x80u) | min(r, most);
}

// returns the bits of one element, from its value (floats) or its random number (integers)
BOTH uint64_t value_bits(double v, uint32_t dtype) {
    float f = (float)v;
    uint32_t u;
    uint64_t bits;
    memcpy(&u, &f, sizeof u);
    if (dtype == F32 || dtype == TF32) return u;
    if (dtype > TF32) return float8(u, dtype == E4M3 ? 3 : 2);
    if (dtype == F64) {
        memcpy(&bits, &v, sizeof bits);
        return bits;
    }
    if (dtype == F16) return __half_as_ushort(__float2half_rn(f));
    if (dtype == BF16) return (u + (u >> 16 & 1u) + 0x7fffu) >> 16; // never NaN
    double t = v * 8.0;
    t += t < 0.0 ? -0.5 : 0.5;
    if (t < 0.0 && !(dtype & 1u)) t = 0.0;
    return (uint64_t)(int64_t)t;
}

// returns the bits of the element number `index`
BOTH uint64_t element_bits(uint64_t index, uint32_t dtype, uint32_t kind, uint64_t seed, uint32_t tensor) {
    uint32_t w[4], odd = (uint32_t)index & 1u, first = 0, second = 0, high = 0;
    int purpose = kind == UNIFORM && dtype - I64 < 2;
    if (kind != ZERO) {
#pragma unroll 1
        do { // 64-bit types need two random words: the first iteration (purpose 1) gives the upper 32 bits
            high = odd ? second : first;
            philox(w, index >> 2, tensor, (uint32_t)purpose, seed);
            first = (index & 2u) ? w[2] : w[0];
            second = (index & 2u) ? w[3] : w[1];
        } while (purpose-- > 0);
    }
    uint32_t word = odd ? second : first;
    if (kind != NORMAL && dtype > BF16 && dtype < TF32) return kind == IOTA ? index : word | (uint64_t)high << 32;
    double v = kind == IOTA ? (double)(int64_t)index : (double)(int32_t)(word >> 8) * 5.9604644775390625e-8; // 2^-24
    if (kind == NORMAL) v = normal(first, second, odd);
    return value_bits(v, dtype);
}

BOTH void fill_element(void* p, uint64_t index, uint32_t dtype, uint32_t kind, uint64_t seed, uint32_t tensor) {
    uint64_t bits = element_bits(index, dtype, kind, seed, tensor);
    // table of log2(bytes), 4 bits for each dtype
    uint32_t log2_size = (uint32_t)(0x0023322110011320ull >> (4 * dtype)) & 15u;
    if (log2_size == 0) ((uint8_t*)p)[index] = (uint8_t)bits;
    if (log2_size == 1) ((uint16_t*)p)[index] = (uint16_t)bits;
    if (log2_size == 2) ((uint32_t*)p)[index] = (uint32_t)bits;
    if (log2_size == 3) ((uint64_t*)p)[index] = bits;
}

// kbi_fill(p, n, dtype, kind, seed, tensor): fills p with n elements, as the section >>random of kbench.h
// describes. Each thread writes one element per iteration of its loop.
extern "C" __global__ void kbi_fill(void* p, uint64_t n, uint32_t dtype, uint32_t kind, uint64_t seed,
                                    uint32_t tensor) {
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x, all = gridDim.x * (uint64_t)blockDim.x;
#pragma unroll 1
    for (; i < n; i += all) fill_element(p, i, dtype, kind, seed, tensor);
}

// --- from here on: kbi_ptx_proving, a module of its own that only the self-test loads ---
// Memory-bound kernels with 256 threads per block. The block that ends last waits for a given number of cycles and
// resets the counter of finished blocks. The self-test makes an implementation slower by passing a longer wait, so
// fast and slow implementations run the same code.

static __device__ void ending(uint32_t* ended, uint64_t wait) {
    // first completes the memory operations of this thread, so that no atomic operation is still in flight while
    // the last block waits
    __threadfence();
    __syncthreads();
    if (threadIdx.x || atomicInc(ended, gridDim.x - 1) != gridDim.x - 1) return;
    uint64_t begin = cycle();
#pragma unroll 1
    while (cycle() - begin < wait) {}
}

// kbi_axpy(x, y, n, ended, wait): y = 0.5 x + 1.
extern "C" __global__ void kbi_axpy(const float* x, float* y, uint32_t n, uint32_t* ended, uint64_t wait) {
#pragma unroll 1
    for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) y[i] = __fmaf_rn(0.5f, x[i], 1.0f);
    ending(ended, wait);
}

// kbi_sums(x, y, n, ended, wait): y[r] = the sum of row r of x; rows have 1024 elements, and a block sums one row.
extern "C" __global__ void kbi_sums(const float* x, float* y, uint32_t n, uint32_t* ended, uint64_t wait) {
    __shared__ float part[8];
#pragma unroll 1
    for (uint32_t row = blockIdx.x; row < n / 1024; row += gridDim.x) {
        const float* from = x + row * 1024u + threadIdx.x;
        float sum = (from[0] + from[256]) + (from[512] + from[768]);
#pragma unroll
        for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0)
            y[row] = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
        __syncthreads();
    }
    ending(ended, wait);
}

// kbi_product(x, y, n, ended, wait): y = x x, n by n, n a multiple of 16; a block computes tiles of 16 by 16.
extern "C" __global__ void kbi_product(const float* x, float* y, uint32_t n, uint32_t* ended, uint64_t wait) {
    __shared__ float a[16][17], b[16][17];
    uint32_t r = threadIdx.x / 16, c = threadIdx.x % 16, tiles = n / 16;
#pragma unroll 1
    for (uint32_t tile = blockIdx.x; tile < tiles * tiles; tile += gridDim.x) {
        uint32_t row = tile / tiles * 16 + r, column = tile % tiles * 16 + c;
        float sum = 0;
#pragma unroll 1
        for (uint32_t k = 0; k < n; k += 16) {
            a[r][c] = x[row * n + k + c];
            b[r][c] = x[(k + r) * n + column];
            __syncthreads();
#pragma unroll 4
            for (int i = 0; i < 16; i++) sum = __fmaf_rn(a[r][i], b[i][c], sum);
            __syncthreads();
        }
        y[row * n + column] = sum;
    }
    ending(ended, wait);
}

// kbi_histogram(x, y, n, ended, wait): adds 1 to y[the lowest 12 bits of x[i]].
extern "C" __global__ void kbi_histogram(const uint32_t* x, uint32_t* y, uint32_t n, uint32_t* ended, uint64_t wait) {
#pragma unroll 1
    for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&y[x[i] & 4095], 1);
    ending(ended, wait);
}

// kbi_gather(x, y, n, ended, wait): y[i] = x[j]; j, below n, comes from the bits of x[i].
extern "C" __global__ void kbi_gather(const uint32_t* x, uint32_t* y, uint32_t n, uint32_t* ended, uint64_t wait) {
#pragma unroll 1
    for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        y[i] = x[__umulhi(x[i] * 2654435761u, n)];
    ending(ended, wait);
}
