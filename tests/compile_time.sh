#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# compile_time.sh - what including the header costs, at -O3, as the median of 5 in turn with a bare file. Run by hand:
#   sh tests/compile_time.sh
# Bounds: .cu with the implementation and one benchmark at most 2.0 times a bare .cu file with one kernel; .cu that
# includes the API at most 1.1 times; one .c file with the implementation at most 1 s.
. tests/lib.sh
[ -n "$NVCC" ] || NVCC=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null)

cat > "$tmp/bare.cu" << 'EOF'
__global__ void scale(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 0.5f * x[i]; }
int main() { scale<<<1, 1>>>(nullptr, nullptr, 0); return 0; }
EOF
{ echo '#include "kbench.h"'; cat "$tmp/bare.cu"; } > "$tmp/api.cu"
cp tests/compile/five_lines.cu "$tmp/full.cu"
cp tests/compile/plain.c "$tmp/full.c"
cp tests/compile/plain.c "$tmp/plain_O0.c"
: "${GENCODE:=-arch=sm_90}"
compile() {
    case $1 in
    *_O0.c) $CC -O0 -I. -c "$tmp/$1" -o "$tmp/o" ;;
    *.c) $CC -O2 -I. -c "$tmp/$1" -o "$tmp/o" ;;
    *) $NVCC -O3 $GENCODE -I. -c "$tmp/$1" -o "$tmp/o" ;;
    esac
}
files="full.c plain_O0.c"
[ -n "$NVCC" ] && files="bare.cu api.cu full.cu $files"
for turn in 1 2 3 4 5; do
    for f in $files; do
        start=$(now_ms)
        compile $f || exit 1
        echo "$f $(($(now_ms) - start))" >> "$tmp/times"
    done
done
median() { awk -v f="$1" '$1 == f { print $2 }' "$tmp/times" | sort -n | sed -n 3p; }
for f in $files; do printf '%-12s %5d ms\n' $f "$(median $f)"; done
bound() { # WHAT MS BASE FACTOR
    if awk -v t="$2" -v b="$3" -v f="$4" 'BEGIN { printf "%.2f of %.2f\n", t / b, f; exit t > b * f }' > "$tmp/ratio"; then pass; else fail "$1: $(cat "$tmp/ratio")"; fi
    printf '%-40s %s\n' "$1" "$(cat "$tmp/ratio")"
}
if [ -n "$NVCC" ]; then
    bound "implementation through nvcc / bare" "$(median full.cu)" "$(median bare.cu)" 2.0
    bound "API through nvcc / bare" "$(median api.cu)" "$(median bare.cu)" 1.1
else
    skip "no nvcc"
fi
bound "implementation through cc / 1 s" "$(median full.c)" 1000 1.0
finish
