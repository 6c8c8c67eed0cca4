#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# compile_time.sh - measures the compile time of the header at -O3, source to object: the median of 7 compilations,
# interleaved with compilations of a file without kbench. Run it by hand on a quiet machine:
#   sh tests/compile_time.sh
#   sh tests/compile_time.sh suite     compiles the suite once, as make run builds it for an H100 (ARCH: another
#                                      GPU), and prints the time of each compiler phase (nvcc --time) of both parts; no limit
# Prints the sizes of the headers first. The test fails if a compilation takes longer than its limit:
# - a .cu file with implementation and benchmark: 2.2 times the compile time of a .cu file with only a kernel;
# - a .cu file with only the API: 1.05 times the compile time of a .cu file with only a kernel;
# - example 05, which links the compiled kernels: 1.1 times the compile time of the example's kernel alone;
# - a .c file with the implementation and a benchmark: 0.8 s.
. tests/lib.sh
[ -n "$NVCC" ] || NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null)

if [ "${1:-}" = suite ]; then
    if [ -z "$NVCC" ]; then skip "no nvcc" && finish; fi
    command=$(${MAKE:-make} -n -B BUILD="$tmp" NVCC="$NVCC" ARCH="${ARCH:-sm_90a}" "$tmp/suite" |
        sed -n "/^echo/d; / examples\/suite.cu -o /{ s, 2>&1 |.*,,; s, -DSUITE_PART=\([12]\) ,&--time '$tmp/phases.\1.csv' ,g; p; }")
    printf '%s\n' "$command"
    start=$(now_ms)
    build "the suite" sh -c "$command && times > '$tmp/cpu'"
    echo $(($(now_ms) - start)) > "$tmp/wall"
    [ "$failed" -eq 0 ] || finish
    # the second line of `times` is the processor time of child processes: 1m37.2s 0m3.1s
    awk -v wall="$(cat "$tmp/wall")" 'NR == 2 { split($1, u, "[ms]"); split($2, s, "[ms]")
        printf "%-22s %6.1f s, of processors %.1f s and %.1f s in the kernel\n", "all", wall / 1000, u[1] * 60 + u[2], s[1] * 60 + s[2] }' "$tmp/cpu"
    awk -F ' *, *' '$NF == "ms" { ms[$2] += $(NF - 1) }
        END { for (part in ms) printf "%-22s %6.1f s\n", part, ms[part] / 1000 }' "$tmp"/phases.?.csv > "$tmp/parts"
    awk '{ print $(NF - 1), $0 }' "$tmp/parts" | sort -rn | sed 's/^[^ ]* //'
    for part in cicc ptxas 'gcc (compiling)'; do
        if grep -qF "$part " "$tmp/parts"; then pass; else fail "nvcc --time reports no time of the phase $part"; fi
    done
    finish
fi
cat > "$tmp/bare.cu" << 'EOF'
__global__ void scale(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 0.5f * x[i]; }
int main() { scale<<<1, 1>>>(nullptr, nullptr, 0); return 0; }
EOF
{ echo '#include "kbench.h"'; cat "$tmp/bare.cu"; } > "$tmp/api.cu"
cp tests/compile/five_lines.cu "$tmp/full.cu"
cp examples/05_against_library.cu "$tmp/linked.cu"
{ sed -n '/^__global__/,/^}/p' "$tmp/linked.cu"; echo 'int main() { matmul_mine<<<1, 1>>>(nullptr, nullptr, nullptr, 0, 0); return 0; }'; } > "$tmp/mine.cu"
grep -v KBENCH_IMPLEMENTATION tests/compile/five_lines.cu > "$tmp/edited.cu"
cp tests/compile/plain.c "$tmp/full.c"
cp tests/compile/plain.c "$tmp/plain_O0.c"
: "${GENCODE:=-arch=sm_90}"
include=$(cuda_headers)
compile() {
    case $1 in
    kbench.o) $CC -O2 -x c -DKBENCH_IMPLEMENTATION -DKBENCH_CUDA -I"$include" -c kbench.h -o "$tmp/kbench.o" ;;
    *_O0.c) $CC -O0 -I. -c "$tmp/$1" -o "$tmp/$1.o" ;;
    *.c) $CC -O2 -I. -c "$tmp/$1" -o "$tmp/$1.o" ;;
    *) $NVCC -O3 $GENCODE -I. -c "$tmp/$1" -o "$tmp/$1.o" ;;
    esac
}
wc -lc kbench.h kbench_kernels.cuh examples/addons/kbench_report.h examples/addons/kbench_inspect.h
files="full.c plain_O0.c"
[ -n "$NVCC" ] && files="bare.cu api.cu edited.cu full.cu mine.cu linked.cu kbench.o $files"
for f in $files; do build "$f" compile $f; done # once untimed: the compilers are then in memory, for the first as for the last
for turn in 1 2 3 4 5 6 7; do
    for f in $files; do
        start=$(now_ms)
        compile $f || exit 1
        echo "$f $(($(now_ms) - start))" >> "$tmp/times"
    done
done
median() { awk -v f="$1" '$1 == f { print $2 }' "$tmp/times" | sort -n | sed -n 4p; }
for f in $files; do printf '%-12s %5d ms\n' $f "$(median $f)"; done
bound() { # WHAT MS BASE FACTOR
    if awk -v t="$2" -v b="$3" -v f="$4" 'BEGIN { printf "%.2f of %.2f\n", t / b, f; exit t > b * f }' > "$tmp/ratio"; then pass; else fail "$1: $(cat "$tmp/ratio")"; fi
    printf '%-44s %s\n' "$1" "$(cat "$tmp/ratio")"
}
if [ -n "$NVCC" ]; then
    # the separately compiled files can be linked to a program
    check "the edited file and the header's object link" $NVCC "$tmp/edited.cu.o" "$tmp/kbench.o" -o "$tmp/program"
    run "$tmp/program" --list
    check_out "the program of both lists its benchmark" '^scale'
    bare=$(median bare.cu)
    bound "implementation and benchmark, nvcc / bare" "$(median full.cu)" "$bare" 2.2
    bound "API alone, nvcc / bare" "$(median api.cu)" "$bare" 1.05
    bound "API and benchmark, nvcc / bare" "$(median edited.cu)" "$bare" 1.05
    bound "example 05, nvcc / its kernel" "$(median linked.cu)" "$(median mine.cu)" 1.1
else
    skip "no nvcc"
fi
bound "implementation and benchmark, cc / 0.8 s" "$(median full.c)" 800 1.0
finish
