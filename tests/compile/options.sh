#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Compiler options beside the matrix of standards: without exceptions or RTTI, C++20 and later, CUDA's headers through
# each compiler, all with warnings as errors.
. tests/lib.sh

strict="-Wall -Wextra -Wpedantic -Werror -I."
here=tests/compile
cuda=
if [ -n "$NVCC" ]; then cuda=$(dirname "$(command -v "$NVCC")")/../include; else skip "no nvcc: nothing with CUDA"; fi
echo 'int main() { return 0; }' > "$tmp/try.cc"
for c in g++ clang++; do
    if ! have $c; then skip "no $c on this machine" && continue; fi
    for options in "-std=c++11 -fno-rtti" "-std=c++11 -fno-exceptions" "-std=c++20 -fno-exceptions -fno-rtti" "-std=c++2b"; do
        $c $options -fsyntax-only "$tmp/try.cc" 2> /dev/null || continue
        check "$c $options" $c -x c++ $options $strict -fsyntax-only $here/impl.c
        check "$c $options, API" $c -x c++ $options $strict -fsyntax-only $here/api.c
    done
    for std in c++11 c++17 c++20; do
        [ -z "$cuda" ] || check "$c $std, CUDA" $c -x c++ -std=$std $strict -isystem "$cuda" -DKBENCH_CUDA -fsyntax-only $here/impl.c
    done
done
for c in gcc clang; do
    if ! have $c; then skip "no $c on this machine" && continue; fi
    for options in -O0 -Os -Ofast; do # with code: gcc forgets only where it makes some
        check "$c $options is remembered" $c -std=c11 $options -Wall -Wextra -Werror -I. -c $here/remembers.c -o "$tmp/remembers.o"
    done
    [ -z "$cuda" ] || check "$c, CUDA" $c -std=c11 $strict -isystem "$cuda" -DKBENCH_CUDA -fsyntax-only $here/impl.c
done
if [ -n "$NVCC" ]; then
    for options in -std=c++20 "-std=c++17 -Xcompiler -fno-rtti" "-std=c++20 -Xcompiler -fno-exceptions"; do
        check "nvcc $options" $NVCC $options -O3 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. -c $here/five_lines.cu -o "$tmp/nvcc.o"
    done
    # a group alone has no kernels but its own: a program of one operation need not wait for those of others
    check "one group" $NVCC -arch=sm_90a -DKBK_ONLY=mse -ptx -x cu -I. kbench_kernels.cuh -o "$tmp/mse.ptx"
    sed -n 's/^.*\.entry \([A-Za-z0-9_]*\).*/\1/p' "$tmp/mse.ptx" > "$tmp/entries"
    check "one group: its kernels" grep -q '_mse_fwd_ticket_k' "$tmp/entries"
    check_same "one group: others' kernels" "$(grep -v -e _mse_ -e '_kIvE' "$tmp/entries")" ""
fi
finish
