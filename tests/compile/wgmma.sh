#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# ptxas must not serialise wgmma instructions, and the kernels with wgmma must not spill registers. Both cost more
# than half of the speed, but ptxas reports them only as notes. Builds for other architectures than sm_90a must not
# contain these kernels.
# only in make test-all
. tests/lib.sh

if [ -z "$NVCC" ]; then skip "no nvcc" && finish; fi
if ! $NVCC --list-gpu-code 2> /dev/null | grep -qx sm_90; then skip "this nvcc does not know sm_90a" && finish; fi
strict="-std=c++17 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I."
cat > "$tmp/products.cu" << 'EOT'
#define KBK_NO_REGISTRY
#include "kbench_kernels.cuh"
template <class T> const char* each(const kbk_args* a) {
    const char* why = NULL;
    if (!why) why = kbk_matmul_fwd_wgmma<T>(a, 0);
    if (!why) why = kbk_matmul_fwd_warpgroup<T>(a, 0);
    if (!why) why = kbk_matmul_fwd_tmaload<T>(a, 0);
    if (!why) why = kbk_matmul_fwd_ws<T>(a, 0);
    if (!why) why = kbk_matmul_fwd_coop<T>(a, 0);
    if (!why) why = kbk_matmul_fwd_persist<T>(a, 0);
    if (!why) why = kbk_matmul_fwd_select<T>(a, 0); // 13 and 14 too, and what bmm has
    return why;
}
const char* all(const kbk_args* a) {
    const char* why = each<__nv_bfloat16>(a);
#ifdef EACH_TYPE // defined only for sm_90a; other architectures get no wgmma kernels, so one type is enough for them
    if (!why) why = each<__half>(a);
#endif
    if (!why) why = kbk_matmul_fwd_tf32<float>(a, 0);
    if (!why) why = kbk_matmul_e4m3_fwd_tma<__nv_bfloat16>(a, 0);
    if (!why) why = kbk_matmul_e4m3_fwd_select<__nv_bfloat16>(a, 0);
    return why;
}
EOT
cat > "$tmp/attention.cu" << 'EOT'
#define KBK_NO_REGISTRY
#include "kbench_kernels.cuh"
template <class T> const char* each(const kbk_args* a) {
    const char* why = kbk_attention_fwd_flashws<T>(a, 0);
    if (!why) why = kbk_attention_fwd_flashrs<T>(a, 0);
    if (!why) why = kbk_attention_fwd_pingpong<T>(a, 0);
    return why ? why : kbk_attention_fwd_flashpp<T>(a, 0);
}
const char* all(const kbk_args* a) { return a->s.causal ? each<__half>(a) : each<__nv_bfloat16>(a); }
EOT
cat > "$tmp/backward.cu" << 'EOT'
#define KBK_NO_REGISTRY
#include "kbench_kernels.cuh"
const char* all(const kbk_args* a) {
    return a->s.causal ? kbk_attention_bwd_flashws<__half>(a, 0) : kbk_attention_bwd_flashws<__nv_bfloat16>(a, 0);
}
EOT
# A deliberate error that must be found: results are used while the wgmma instruction is in flight.
cat > "$tmp/planted.cu" << 'EOT'
#define KBK_NO_REGISTRY
#include "kbench_kernels.cuh"
__global__ void __launch_bounds__(128) planted(float* out, int n) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(1024) char s[16384];
    kbki_wg_operand<true> a, b;
    float d[32] = {};
    a.set(s), b.set(s + 8192);
    for (int i = 0; i < n; i++) {
        kbki_wg_fence();
        kbki_wgmma<__nv_bfloat16, 64>::shared<0, 0>(d, a.at(0), b.at(0), 1);
        kbki_wg_commit();
        for (int e = 0; e < 32; e++) d[e] *= 2;
        kbki_wg_wait<0>();
    }
    for (int e = 0; e < 32; e++) out[threadIdx.x * 32 + e] = d[e];
#endif
}
EOT
notes() {
    run $NVCC $strict -O3 -gencode=arch=compute_90a,code=sm_90a -DEACH_TYPE -Xptxas -v $trap -c "$tmp/$1.cu" -o "$tmp/$1.o"
    check_rc "$1.cu for sm_90a" 0
    cat "$out" "$err" > "$tmp/$1.log"
}
trap=
serialised='C75(08|1[0-5]|17|19|20)|[Ss]erializ'
# clean FILE KERNELS AT_LEAST: at least AT_LEAST kernels of FILE match KERNELS, and none of them is serialised or
# spills
clean() {
    notes "$1"
    if grep -qE "$serialised" "$tmp/$1.log"; then fail "$1: $(grep -E "$serialised" "$tmp/$1.log" | head -n 3)"; else pass; fi
    kernels=$(grep -cE "Compiling entry function '.*($2)" "$tmp/$1.log")
    if [ "$kernels" -ge "$3" ]; then pass; else fail "$1: only $kernels kernels with wgmma were seen"; fi
    spilling=$(awk '/Function properties for/ { name = $0 } /spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print name }' "$tmp/$1.log" | grep -cE "$2")
    check_same "$1: kernels with wgmma that spill" "$spilling" 0
}
clean products 'kbki_wg_ring_k|kbk_matmul_fwd_(wgmma|warpgroup)_k' 59
for type in __half __nv_bfloat16 float; do
    mangled=${#type}$type
    [ $type = float ] && mangled='IfL|kbki_wg_planIf'
    if grep -qE "entry function '.*kbki_wg_ring_k.*($mangled)" "$tmp/products.log"; then pass; else fail "products: none of $type"; fi
done
clean attention 'kbki_fa_k|kbk_attention_fwd_(flashws|pingpong)_k' 28
clean backward 'kbk_attention_bwd_flashws_k' 4
trap=-DKBK_TRAP_AFTER=2 # also with the clock that ends a wait
clean backward 'kbk_attention_bwd_flashws_k' 4
trap=
# With KBK_TRAP_AFTER, each kernel that waits at an mbarrier has a time limit, also if other CTAs arrive there.
printf '#include "kbench_kernels.cuh"\n' > "$tmp/waits.cu"
check "waits.cu" $NVCC $strict -arch=sm_90a -DKBK_ONLY=cross_entropy -DKBK_VARIANTS=cluster -DKBK_TYPES=bf16 \
    -DKBK_TRAP_AFTER=2 -ptx "$tmp/waits.cu" -o "$tmp/waits.ptx"
kernels=$(awk '/\.entry/ { name = $0 } /mbarrier.try_wait/ { waits[name] = 1 } /setp.gt.s64 late/ { limits[name] = 1 }
    END { for (name in waits) print name in limits ? "limit" : "none" }' "$tmp/waits.ptx" | sort -u)
check_same "waits.cu: limits of the kernels that wait" "$kernels" limit
notes planted
if grep -qE "$serialised" "$tmp/planted.log"; then pass; else fail "a product whose results are used too early is not reported"; fi
for arch in sm_75 sm_80 sm_90 sm_100 sm_120; do
    $NVCC --list-gpu-code 2> /dev/null | grep -qx $arch || continue
    check "products.cu for $arch" $NVCC $strict -O1 -arch=$arch -c "$tmp/products.cu" -o "$tmp/other.o"
    check "attention.cu for $arch" $NVCC $strict -O1 -arch=$arch -c "$tmp/attention.cu" -o "$tmp/other.o"
    check "backward.cu for $arch" $NVCC $strict -O1 -arch=$arch -c "$tmp/backward.cu" -o "$tmp/other.o"
done
finish
