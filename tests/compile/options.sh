#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Compiles with further compiler options and with warnings as errors: no exceptions or RTTI, C++20 and later, and
# CUDA's headers with each compiler.
. tests/lib.sh

strict="-Wall -Wextra -Wpedantic -Werror -I."
here=tests/compile
cuda=
if [ -n "$NVCC" ]; then cuda=$(dirname "$(command -v "$NVCC")")/../include; else skip "no nvcc: CUDA's headers are not tested"; fi
echo 'int main() { return 0; }' > "$tmp/try.cc"
for c in g++ clang++; do
    everything || [ $c = clang++ ] || continue
    if ! have $c; then skip "no $c on this machine" && continue; fi
    for options in "-std=c++11 -fno-rtti" "-std=c++11 -fno-exceptions" "-std=c++20 -fno-exceptions -fno-rtti" "-std=c++2b"; do
        everything || [ "$options" = "-std=c++20 -fno-exceptions -fno-rtti" ] || continue
        $c $options -fsyntax-only "$tmp/try.cc" 2> /dev/null || continue
        check "$c $options" $c -x c++ $options $strict -fsyntax-only $here/impl.c
        check "$c $options, API" $c -x c++ $options $strict -fsyntax-only $here/api.c
    done
    for std in c++11 c++17 c++20; do
        everything || [ $std = c++17 ] || continue
        [ -z "$cuda" ] || check "$c $std, CUDA" $c -x c++ -std=$std $strict -isystem "$cuda" -DKBENCH_CUDA -fsyntax-only $here/impl.c
    done
done
for c in gcc clang; do
    if ! have $c; then skip "no $c on this machine" && continue; fi
    for options in -O0 -Os -Ofast; do
        everything || [ "$c $options" = "gcc -Os" ] || continue # with code: gcc forgets only where it makes some
        check "$c $options is remembered" $c -std=c11 $options -Wall -Wextra -Werror -I. -c $here/compiler_macros.c -o "$tmp/remembers.o"
    done
    if ! everything && [ $c = gcc ]; then continue; fi
    [ -z "$cuda" ] || check "$c, CUDA" $c -std=c11 $strict -isystem "$cuda" -DKBENCH_CUDA -fsyntax-only $here/impl.c
done
# stricter rules of some projects: no old-style casts in C++, no casts that remove const, no 0 as a null pointer
cat > "$tmp/uses.c" << 'EOF'
#include "kbench.h"
static void call(kb_stream stream, void* user) { (void)stream, (void)user; }
KBENCH(uses, KB_AXIS("n", 1, 2), KB_AXIS_REAL("p", 0.5), KB_AXIS_STR("way", "a", "b"), KB_DTYPE("f32"), KB_SIZE("small", "n=1")) {
    int64_t n = kb_int(kb, "n");
    float *x = KB_ALLOC(kb, float, n), *y = KB_ALLOC_HOST(kb, float, n);
    const float* z = KB_ALLOC_PINNED(kb, float, n);
    kb_fill(kb, x, n, KB_NORMAL);
    KB_SAMPLE(kb) { KB_TIME(kb) { kb_keep(x); kb_keep(z); kb_keep(n); } }
    KB_TIME_HOST(kb) { kb_keep(y); }
    kb_check(kb, x, z, n, 1e-6), kb_check_norm(kb, x, z, n, 1e-6), kb_check_ulp(kb, x, z, n, 1.0);
}
static kb_entry entry;
kb_result use(const kb_desc* d);
kb_result use(const kb_desc* d) { return kb_add(&entry), kb_run(d, call, NULL); }
#ifdef __cplusplus
void use_cxx(const kb_desc& d);
void use_cxx(const kb_desc& d) { kb_open(d), kb_run(d, [](kb_stream) {}); }
#endif
EOF
for c in g++ clang++; do
    have $c && check "$c, old casts" $c -x c++ -std=c++17 $strict -Wold-style-cast -Wcast-qual -Wconversion -fsyntax-only "$tmp/uses.c"
done
have g++ && check "g++, 0 for a pointer" g++ -x c++ -std=c++17 $strict -Wzero-as-null-pointer-constant -Wuseless-cast -fsyntax-only "$tmp/uses.c"
for c in gcc clang; do
    have $c && check "$c, casts" $c -std=c11 $strict -Wcast-qual -Wconversion -fsyntax-only "$tmp/uses.c"
    for std in gnu89 gnu90 c89 c99 gnu99; do
        have $c || continue
        printf '#define KBENCH_IMPLEMENTATION\n#include "kbench.h"\nint main(void) { return 0; }\n' > "$tmp/old.c"
        [ $std = c89 ] || cat "$tmp/uses.c" >> "$tmp/old.c"
        run $c -std=$std -I. -fsyntax-only "$tmp/old.c"
        check "$c $std" sh -c "grep -m 1 'error: ' '$err' | grep 'kbench.h needs C11 or later'"
    done
done
if [ -n "$NVCC" ] && everything; then
    for options in -std=c++20 "-std=c++17 -Xcompiler -fno-rtti" "-std=c++20 -Xcompiler -fno-exceptions"; do
        check "nvcc $options" $NVCC $options -O3 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. -c $here/five_lines.cu -o "$tmp/nvcc.o"
    done
    # KBK_ONLY makes a program with one operation compile fast
    check "one group" $NVCC -arch=sm_90a -DKBK_ONLY=transpose -ptx -x cu -I. kbench_kernels.cuh -o "$tmp/transpose.ptx"
    sed -n 's/^.*\.entry \([A-Za-z0-9_]*\).*/\1/p' "$tmp/transpose.ptx" > "$tmp/entries"
    check "one group: its kernels" grep -q '_transpose_run_vec_k' "$tmp/entries"
    check_same "one group: others' kernels" "$(grep -v -e _transpose_ -e '_kIvE' "$tmp/entries")" ""
fi
finish
