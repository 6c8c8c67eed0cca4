#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests programs that link compiled kernels: KBK_API_ONLY declares the C functions of kbench_kernels.cuh and
# compiles no kernel. Example 06 must find rungs by name, and suggest similar names for an unknown name.
. tests/lib.sh
. tests/cli/kit.lib

strict="-Wall -Wextra -Wpedantic -Wconversion -Werror -I."
cat > "$tmp/api.c" << 'EOF2'
#define KBK_API_ONLY
#include "kbench_kernels.cuh"
int main(void) { return kbk_row_find("softmax", "fwd", "online") < 0 || kbk_abi("rows") < 100; }
EOF2
for language in "$CC -x c -std=c11" "$CXX -x c++ -std=c++11" "$CXX -x c++ -std=c++20"; do
    have "${language%% *}" || continue
    check "declarations, $language" $language $strict -c "$tmp/api.c" -o "$tmp/api.o"
done
build "the library without CUDA" $CC -x c -std=c11 -O1 -DKBENCH_SHARED -c kbench_kernels.cuh -o "$tmp/kbench_kernels.o"
check "a program with the declarations links" $CC "$tmp/api.o" "$tmp/kbench_kernels.o" -lm -o "$tmp/api" && check "and runs" "$tmp/api"
alone
build "06_one_rung as C" $CC -x c -std=c11 -O1 -Wall -Wextra -Werror -I. examples/06_one_rung.cu -x none "$kit/plain.o" \
    "$tmp/kbench_kernels.o" $libs -o "$tmp/one_rung"

rung="$tmp/one_rung"
run "$rung" --list
check_rc "--list" 0
check_out "--list: matmul" '^matmul M N K: naive coalesced shared .* wgmma '
check_out "--list: a backward pass" '^attention/bwd batch heads length dimension: naive '
check_same "--list: a line per operation and direction" "$(cut -d' ' -f1 "$out" | sort | uniq -d)" ""
check_same "--list: all of them" "$(wc -l < "$out" | tr -d ' ')" "$(grep -cE '^    row\([a-z_0-9]+, +(fwd|bwd|fwdbwd|run), +KBK_(MAP|PICK|SUM|ROWS|GEMM|ATTN|LOOKUP),' kbench_kernels.cuh)"
run "$rung" matmul wgma 1 2 3
check_rc "an unknown rung" 2
check_err "an unknown rung: close names" 'no matmul wgma; close to it:.* wgmma'
check_err "an unknown rung: all names" '^matmul M N K: naive'
run "$rung" sofmax online 1 2
check_rc "an unknown operation" 2
check_err "an unknown operation: close names" 'no operation sofmax; close to it: softmax'
check_err "an unknown operation: all names" '^layernorm/bwd rows cols:'
run "$rung" softmax online 8
check_rc "too few sizes" 2
check_err "too few sizes" 'The sizes of softmax are rows cols'
run "$rung" softmax online 8 x
check_err "no number" 'unexpected argument x.*The sizes'
run "$rung" softmax online 8 0
check_err "a size of 0" 'unexpected argument 0.*each an integer of at least 1'
for wrong in "softmax online 8 99999999999999999999" "softmax online 8 9 f32 bf16" "matmul naive 1 2 3 NT NN" "matmul_e4m3 naive 1 2 3 TN"; do
    run "$rung" $wrong --list
    check_rc "$wrong" 2
    check_err "$wrong" "unexpected argument ${wrong##* }"
done
run "$rung" softmax
check_rc "no rung" 2
check_err "no rung" '^usage: one_rung OPERATION'
# case ARGUMENTS CASE
case_of() {
    run "$rung" $1 --list
    check_same "$1" "$(head -n 1 "$out")" "$2"
}
case_of "matmul wgmma 4096 4096 4096" "matmul/dir=fwd/impl=wgmma/dtype=bf16/M=4096/N=4096/K=4096"
case_of "matmul/fwd warptile 100 200 300 TN" "matmul/dir=fwd/impl=warptile/dtype=f32/M=100/N=200/K=300/layout=TN"
case_of "softmax/bwd onepass 7 9 f16" "softmax/dir=bwd/impl=onepass/dtype=f16/rows=7/cols=9"
case_of "attention flashpp 1 2 512 128 causal" "attention/dir=fwd/impl=flashpp/dtype=bf16/batch=1/heads=2/length=512/dimension=128/causal=1"
case_of "gather naive 10 20" "gather/dir=run/impl=naive/dtype=f32/n=10/among=20"
case_of "strided naive 10 3" "strided/dir=run/impl=naive/dtype=f32/N=10/stride=3"
case_of "embedding vec 3 4 5 f32" "embedding/dir=fwd/impl=vec/dtype=f32/rows=3/cols=4/vocabulary=5"
case_of "rope vec 3 4 8" "rope/dir=fwd/impl=vec/dtype=bf16/rows=3/heads=4/dimension=8"
case_of "relu vec 7" "relu/dir=fwd/impl=vec/dtype=bf16/n=7"

if [ -n "$NVCC" ] && have "$NVCC"; then
    for example in $(! everything || echo 05_against_library) 06_one_rung; do
        check "$example, nvcc" $NVCC -arch=sm_90 -Werror all-warnings -Xcompiler -Wall,-Wextra -I. -c examples/$example.cu -o "$tmp/$example.o"
        check_same "$example: kernels of the library in its object" "$(nm -C "$tmp/$example.o" | grep -c 'kbk_[a-z0-9_]*_k\b')" 0
    done
else
    skip "no nvcc: the examples are not compiled as CUDA"
fi
finish
