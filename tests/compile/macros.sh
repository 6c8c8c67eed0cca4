#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Short capital macros of a user (-DN=1024, -DTILE=32) do not collide with names in the headers: tested with a list of
# the names, and by compiling with many such macros.
. tests/lib.sh

here=tests/compile
headers=kbench.h
if [ -f kbench_kernels.cuh ]; then
    headers="$headers kbench_kernels.cuh"
else
    skip "kbench_kernels.cuh does not exist"
fi

# --- every name
words=
if have python3; then
    cat > "$tmp/sample.h" << 'EOF'
// A COMMENT with N, it's not code
/* nor ONE of
   TWO lines */
#define KB_FLAGS(X) \
    X(TIMEOUT, ERROR, "N or M")
template <class T, int TH_> struct kbi_s { static const int a = 'N' + 0x1FUL + TH_; }; // N
#define KBI_LATER NULL, SIGTERM, O_RDONLY, _SC_PAGESIZE, __LINE__, "a \" N" /* N */, L2
EOF
    check_same "a sample's names" "$(python3 $here/macros.py "$tmp/sample.h" | tr '\n' ';')" "4 X 2;6 TH_ 2;7 L2 1;"
    check_same "a sample's words" "$(python3 $here/macros.py -w "$tmp/sample.h" | tr '\n' ' ')" "ERROR TIMEOUT "
    for f in $headers; do
        if ! python3 $here/macros.py $f > "$tmp/names"; then
            fail "$f: macros.py failed"
        elif [ -s "$tmp/names" ]; then
            fail "$f: names in capitals without a prefix (line, name, number of occurrences): $(tr '\n' ';' < "$tmp/names")"
        else
            pass
        fi
    done
    words=$(python3 $here/macros.py -w kbench.h)
    if [ "$(echo "$words" | wc -w)" -ge 20 ]; then pass; else fail "fewer than 20 names of KB_FLAGS were found: $words"; fi
else
    skip "no python3: the headers' names are not listed"
fi

# --- compiled with macros: every letter except T and U, which CUDA's headers use, and common names of sizes
macros=
letters="A B C D E F G H I J K L M N O P Q R S V W X Y Z"
pairs="BM BN BK TM TN TK WM WN LN TH CL SM"
sizes="DIM SIZE STEP TILE BLOCK ROWS COLS LANES WARPS STAGES THREADS CTAS BATCH HEADS WIDTH DEPTH EACH LAUNCHES COUNT
    CHUNK PACKS KEYS"
for name in $letters $pairs $sizes $words; do
    macros="$macros -D$name=1"
done
cat > "$tmp/program.c" << 'EOF'
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
KBENCH(nothing) { KB_TIME(kb) kb_keep(*kb); }
KBENCH_MAIN()
EOF
strict="-Wall -Wextra -Werror -I."
check "kbench.h as C" $CC -std=c11 $macros $strict -fsyntax-only "$tmp/program.c"
if have $CXX; then
    check "kbench.h as C++" $CXX -x c++ -std=c++11 $macros $strict -fsyntax-only "$tmp/program.c"
else
    skip "no $CXX: kbench.h is not tested as C++"
fi
if ! everything; then
    :
elif [ -n "$NVCC" ]; then
    cuda=$(dirname "$(command -v "$NVCC")")/..
    check "kbench.h as C with CUDA" \
        $CC -std=c11 -DKBENCH_CUDA $macros $strict -I"$cuda/include" -fsyntax-only "$tmp/program.c"
    check "kbench.h through nvcc" $NVCC -O1 -x cu $macros -I. -c "$tmp/program.c" -o "$tmp/program.o"
else
    skip "no nvcc: the CUDA code of kbench.h is not compiled"
fi
if [ -f kbench_kernels.cuh ]; then
    check "kbench_kernels.cuh as C" $CC -std=c11 $macros $strict -fsyntax-only $here/kernels.c
    if ! everything; then
        :
    elif [ -n "$NVCC" ]; then
        # all operations together would take minutes
        cat > "$tmp/kernels.cu" << 'EOF'
#include "kbench_kernels.cuh"
int main() { return KBK_VARIANT_COUNT != 4; }
EOF
        alone="-DKBK_ONLY=sum -DKBK_TYPES=f32"
        check "kbench_kernels.cuh through nvcc" $NVCC -O1 $macros $alone -I. "$tmp/kernels.cu" -o "$tmp/kernels" && {
            run "$tmp/kernels"
            check_rc "the sum's four variants, and no other group" 0
        }
        # sm_90a enables further code
        check "kbench_kernels.cuh through nvcc, sm_90a" \
            $NVCC -O1 -arch=sm_90a -ptx $macros $alone -I. "$tmp/kernels.cu" -o "$tmp/kernels.ptx"
    else
        skip "no nvcc: kbench_kernels.cuh is not compiled as CUDA"
    fi
fi
finish
