#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests tests/extract.py, which takes kernels out of kbench_kernels.cuh. The extracted files must compile for
# sm_90a without the header, and --list of the extracted programs must print their case. No parameter of a
# kernel, or of the function that launches it, may have a type that the header defines. make test compiles two
# variants; make test-all compiles the last variant of every operation and direction.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

have python3 || { skip "no python3" && finish; }
run python3 tests/extract.py --list
check_rc "the list" 0
cp "$out" "$tmp/names"
for name in matmul/tma/bf16 softmax/online/f32 layernorm/persist/bf16 attention/flashpp/bf16 attention/bwd/flashws/f16 copy/cudart/f32; do
    check "the list has $name" grep -qx "$name" "$tmp/names"
done
check_same "kernels of cuBLAS in the list" "$(grep -c cublas "$tmp/names")" 0
run python3 tests/extract.py softmax/onlin/f32
check_rc "an unknown name" 1
check_err "an unknown name: the next one" "there is no softmax/onlin/f32; close are softmax/online/f32"
run python3 tests/extract.py softmax online f32
check_rc "three words" 2
check_err "three words" 'extract.py OP'
check_same "three words: nothing for one.cu" "$(cat "$out")" ""

everything && run python3 tests/extract.py --check && # takes 36 s
    check_rc "the kernel parameters of all variants" 0 &&
    check_out "the kernel parameters of all variants" "^$(grep -c . "$tmp/names") variants have plain parameters$"
mkdir "$tmp/tests"
cp tests/extract.py "$tmp/tests"
sed 's/\(kbk_softmax_fwd_online_k\)(const T\* x/\1(T first, const T* x/' kbench_kernels.cuh > "$tmp/kbench_kernels.cuh"
run python3 "$tmp/tests/extract.py" softmax/online/f32
check_rc "a parameter of a template's type" 1
check_err "a parameter of a template's type" "kbk_softmax_fwd_online_k has a parameter of type T"

if everything; then
    # the last variant of each operation and direction, in its last element type
    names=$(awk -F/ '{ key = $1 (NF == 4 ? "/" $2 : ""); if (!(key in last)) order[++n] = key; last[key] = $0 }
        END { for (i = 1; i <= n; i++) print last[order[i]] }' "$tmp/names")
else
    names="softmax/online/f32 matmul/warpgroup/bf16 add/bulk/f32 cross_entropy/fwdbwd/split/f32 weighted_sum/bwd/vec/f32 attention/flashpp/bf16"
fi
# Calls main of extract.py in a process for each NAME; prints the names that fail. The processes share the first steps
# of main, which read and split the header.
mkdir "$tmp/extracted"
each='
import os, sys
folder, names = sys.argv[1], sys.argv[2:]
sys.path.insert(0, "tests")
import extract
text = open("kbench_kernels.cuh", encoding="utf-8").read()
split = extract.tokens_of
tokens = split(text)
extract.tokens_of = lambda t: tokens if t == text else split(t)
Header, headers = extract.Header, {sm: extract.Header(text, tokens, sm) for sm in ("0", "90", "90a")}
extract.Header = lambda text, tokens, sm: headers.get(sm) or Header(text, tokens, sm)
for name in names:
    if os.fork() == 0:
        sys.argv[1:] = [name]
        sys.stdout = open(os.path.join(folder, name.replace("/", "-")), "w")
        sys.exit(extract.main())
    if os.wait()[1]: print(name, flush=True) # a forked process would print a buffered name again'
run python3 -c "$each" "$tmp/extracted" matmul/tma/bf16 matmul/cublas/f32 $names
check_same "names that extract.py cannot extract" "$(cat "$out")" matmul/cublas/f32
check_err "a kernel of cuBLAS" "no kernel of its own"
check "code for several CUDA versions stays" grep -q cuTensorMapEncodeTiled "$tmp/extracted/matmul-tma-bf16"
for name in $names; do
    cp "$tmp/extracted/$(echo "$name" | tr / -)" "$tmp/one.cu"
    sed '/^#ifndef KERNEL_ONLY/q' "$tmp/one.cu" > "$tmp/kernel.cu"
    check_same "$name: names of kbench.h beside the kernel" "$(grep -c '\<kb_\|KBENCH' "$tmp/kernel.cu")" 0
    check_same "$name: library types in the function that launches" \
        "$(awk '/^const char\* [a-z0-9_]*\(/, /{$/' "$tmp/kernel.cu" | grep -v 'const char\* kbk' | grep -c 'kbk_[a-z]*[*&]')" 0
    [ -n "$NVCC" ] && have "$NVCC" || continue
    if everything || [ "$name" = add/bulk/f32 ]; then
        check "$name: the kernel alone" "$NVCC" -std=c++17 -O1 -gencode=arch=compute_90a,code=sm_90a -Xcompiler -Wall \
            -DKERNEL_ONLY -c "$tmp/one.cu" -o "$tmp/one.o"
    fi
    everything || [ "$name" = softmax/online/f32 ] || continue
    program=$tmp/one.cu object=
    if ! everything; then
        cuda_object "$(dirname "$(command -v "$NVCC")")/../include"
        program=$tmp/api.cu object=$kit/cuda.o
        sed '/^#define KBENCH_IMPLEMENTATION$/d' "$tmp/one.cu" > "$program"
    fi
    check "$name: the program" "$NVCC" -std=c++17 -O1 -gencode=arch=compute_90a,code=sm_90a -I. $program $object -o "$tmp/one" || continue
    run "$tmp/one" --list
    check_out "$name: its case" "^$(echo "$name" | cut -d/ -f1)[a-z_]*/.*impl="
done
[ -n "$NVCC" ] && have "$NVCC" || skip "no nvcc: extracted files are not compiled"
finish
