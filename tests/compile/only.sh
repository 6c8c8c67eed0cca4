#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests KBK_ONLY, KBK_VARIANTS and KBK_TYPES, which select the operations, variants and element types that are
# compiled. An unknown name must be a compile error that shows the name, in C, C++ and CUDA.
. tests/lib.sh

cat > "$tmp/names.c" << 'EOF'
#include "kbench_kernels.cuh"
#include <stdio.h>
int main(void) {
    for (int i = 0; i < KBK_VARIANT_COUNT; i++)
        if (i == 0 || kbk_table[i].op != kbk_table[i - 1].op) printf("%s_%s ", kbk_table[i].op->name, kbk_table[i].op->dir);
    for (unsigned i = 0, all = kbk_table[0].dtypes; i < KBK_DTYPES; i++)
        if (all >> i & 1) printf("%s ", kbk_dtype_name((int)i));
    return 0;
}
EOF
cat > "$tmp/kept.c" << 'EOF'
#include "kbench_kernels.cuh"
#include <stdio.h>
int main(void) {
    for (int i = 0; i < KBK_VARIANT_COUNT; i++)
        if (kbk_table[i].dtypes) printf("%s_%s_%s ", kbk_table[i].op->name, kbk_table[i].op->dir, kbk_table[i].name);
    return 0;
}
EOF
strict="-Wall -Wextra -Wpedantic -Werror -I."
# built WHAT WANTED COMPILER...: builds a program with the command COMPILER... and checks that the program prints
# WANTED: its operations, and the types of the first operation
built() {
    name=$1 want=$2 && shift 2
    check "$name" "$@" "$tmp/names.c" -o "$tmp/names" -lm && check_same "$name" "$("$tmp/names")" "$want"
}
# rejected WHAT ERE COMPILER...: the command must fail with an error that matches ERE
rejected() {
    name=$1 want=$2 && shift 2
    run "$@" "$tmp/names.c" -o "$tmp/names" -lm
    if [ "$rc" -ne 0 ]; then pass; else fail "$name: accepted"; fi
    cat "$out" >> "$err" # nvcc's front end writes errors to stdout
    grep -i error "$err" > "$tmp/errors"
    if grep -qE -e "$want" "$tmp/errors"; then pass; else fail "$name: no '$want' in an error; $(said)"; fi
}
for language in "$CC -x c -std=c11" "$CXX -x c++ -std=c++11" "$CXX -x c++ -std=c++20"; do
    have "${language%% *}" || continue
    everything || [ "${language%%-*}" = "$CC " ] || continue
    built "$language, two operations" "softmax_fwd softmax_bwd dropout_fwd dropout_bwd f32 f16 bf16 " \
        $language $strict -DKBK_ONLY=softmax,dropout
    built "$language, two types" "softmax_fwd softmax_bwd f32 bf16 " $language $strict -DKBK_ONLY=softmax -DKBK_TYPES=bf16,f32
    rejected "$language, a name twice" "KBK_OP_softmax_fwd" $language -I. -DKBK_ONLY=softmax,softmax
    built "$language, one type" "sum_run f16 " $language $strict -DKBK_ONLY=sum -DKBK_TYPES=f16
    rejected "$language, misspelt" "KBK_ONLY_has_no_sofmax" $language -I. -DKBK_ONLY=sofmax
    rejected "$language, the last one misspelt" "KBK_ONLY_has_no_matmull" $language -I. -DKBK_ONLY=softmax,matmull
    rejected "$language, a type misspelt" "KBK_TYPES_has_no_fp8" $language -I. -DKBK_ONLY=mse -DKBK_TYPES=f32,fp8
    rejected "$language, empty" "KBK_ONLY_has_no_" $language -I. -DKBK_ONLY=
    check "$language, variants" $language $strict -DKBK_ONLY=softmax,mse -DKBK_VARIANTS=online,block "$tmp/kept.c" -o "$tmp/kept" -lm &&
        check_same "$language, variants" "$("$tmp/kept")" "softmax_fwd_block softmax_fwd_online mse_fwd_block "
    rejected "$language, a variant misspelt" "KBK_VARIANTS_has_no_onlin" $language -I. -DKBK_VARIANTS=block,onlin
done
eight=mse,mse,mse,mse,mse,mse,mse,mse
rejected "25 names" "at_most_24_names_not_bmm" $CC -std=c11 -I. -DKBK_ONLY=$eight,$eight,$eight,bmm
names=$(grep -o '^#define KBK_OPS_[a-z_0-9]*' kbench_kernels.cuh | sed 's/.*OPS_//' | grep -v kbki)
for name in $names; do
    everything || break
    check "$name" $CC -std=c11 -O0 -I. -DKBK_ONLY=$name "$tmp/names.c" -o "$tmp/names" -lm && "$tmp/names" >> "$tmp/all"
done
everything || finish
tr ' ' '\n' < "$tmp/all" | grep _ | sort > "$tmp/each"
check "everything" $CC -std=c11 -O0 -I. "$tmp/names.c" -o "$tmp/names" -lm && "$tmp/names" | tr ' ' '\n' | grep _ | sort > "$tmp/together"
check "all names are everything, each operation by one name" cmp "$tmp/each" "$tmp/together"

if [ -n "$NVCC" ] && have "$NVCC"; then
    nvcc="$NVCC -x cu -I."
    built "nvcc, several names" "mse_fwd mse_bwd transpose_run bf16 " $nvcc '-DKBK_ONLY=mse\,transpose' -DKBK_TYPES=bf16
    for lists in -DKBK_ONLY=mse,transpose "-DKBK_ONLY=mse -DKBK_TYPES=bf16,f32" "-DKBK_ONLY=mse -DKBK_VARIANTS=block,naive"; do
        rejected "nvcc, $lists" "nvcc ends -D at a comma" $nvcc $lists
    done
    rejected "nvcc, misspelt" "KBK_ONLY_has_no_sofmax" $nvcc -DKBK_ONLY=sofmax
    rejected "nvcc, the last one misspelt" "KBK_ONLY_has_no_matmull" $nvcc '-DKBK_ONLY=mse\,matmull' -DKBK_TYPES=bf16
    rejected "nvcc, a type misspelt" "KBK_TYPES_has_no_fp8" $nvcc -DKBK_ONLY=mse '-DKBK_TYPES=bf16\,fp8'
    rejected "nvcc, a variant misspelt" "KBK_VARIANTS_has_no_onlin" $nvcc -DKBK_ONLY=softmax '-DKBK_VARIANTS=block\,onlin'
    check "nvcc, one variant in one type" $NVCC -arch=sm_90 -x cu -I. -ptx -DKBK_ONLY=softmax -DKBK_VARIANTS=online -DKBK_TYPES=f16 \
        kbench_kernels.cuh -o "$tmp/one.ptx"
    check_same "nvcc, one variant in one type: kernels" "$(grep -o 'entry .*softmax[a-z_]*k[A-Z][a-z0-9_]*' "$tmp/one.ptx" | tr '\n' ' ')" \
        "entry _Z24kbk_softmax_fwd_online_kI6__half "
else
    skip "no nvcc: KBK_ONLY, KBK_VARIANTS and KBK_TYPES are not tested with nvcc"
fi
finish
