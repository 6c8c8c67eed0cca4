#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Copies each example with kbench.h and its add-ons into an empty folder. Each example must build with the command
# in its first comment and run, and its check must detect a wrong kernel.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

plainly='s/-O[23]/-O0/' # compile/matrix and make test-all compile them with optimisation
everything && plainly='s/-O3/-O1/' # the host code's: kernels are the same
# copied NAME.EXT OPTIONS: builds the example in an empty folder with the command in its first comment; sets $dir
# and $exe
copied() {
    dir=$tmp/$1.d
    mkdir -p "$dir"
    cp kbench.h "examples/$1" "$dir"
    if grep -q '^#include "addons/' "examples/$1"; then cp -r examples/addons "$dir"; fi
    line=$(sed -nE 's,^    (cc|nvcc) (.*) && \./.*,\1 \2,p' "examples/$1" | sed 's,-I\. examples/,,')
    exe=$dir/$(echo "$line" | sed -nE 's/.* -o ([^ ]*).*/\1/p')
    case $line in
    cc\ *) line="$LEAN_CC $(echo "${line#cc }" | sed "$plainly") -std=c11 -Wall -Wextra -Wpedantic -Werror" ;;
    nvcc\ *) line="$NVCC $(echo "${line#nvcc }" | sed "$plainly")" ;;
    *) fail "examples/$1: the first comment has no command that builds the example" && return 1 ;;
    esac
    check "examples/$1, alone in a folder, compiles" sh -c "cd '$dir' && $line $2"
}

for name in template_c.c template.cu template_sweep.cu; do
    n=$(wc -l < examples/$name) marks=$(grep -c '// <- yours' examples/$name)
    if [ "$n" -le 45 ]; then pass; else fail "examples/$name has $n lines, bound 45"; fi
    if [ "$marks" -ge 8 ] && [ "$marks" -le 20 ]; then pass; else fail "examples/$name marks $marks lines"; fi
    check_same "examples/$name: marks, and the head's word for them" "$(grep -ci 'yours' examples/$name)" $((marks + 1))
done

if copied template_c.c ''; then
    run "$exe" --iters 10 --warmup 1 --no-progress
    check_rc "template_c.c" 0
    check_not_out "template_c.c: a check looked" UNVERIFIED
    sed '/KBENCH_IMPLEMENTATION/d; s/y\[i\] = x\[i\] \* x\[i\]/y[i] = x[i] + x[i]/' examples/template_c.c > "$tmp/wrong.c"
    check_same "another function: lines that differ" "$(diff examples/template_c.c "$tmp/wrong.c" | grep -c '^>')" 1
    program wrong "$tmp/wrong.c"
    run "$tmp/wrong" --fast --no-progress
    check_rc "template_c.c, another function" 1
    check_out "template_c.c, another function" '^ n=1024 +VERIFY_FAIL'
fi

if copied 04_loop_orders.c ''; then
    run "$exe" -a side=5,16,50 --iters 10 --warmup 1 --no-progress --html "$dir/loop_orders.html" # multiples of a tile and others
    check_rc "04_loop_orders.c" 0
    check_not_out "04_loop_orders.c: a check looked" UNVERIFIED
    check_same "04_loop_orders.c: rows" "$(grep -cE '^ (down|across|tiles) ' "$out")" 9
    if [ -s "$dir/loop_orders.html" ]; then pass; else fail "04_loop_orders.c: no page"; fi
fi

# --- messages for common mistakes in a first program
# own WHAT FLAGS: builds and runs the benchmark whose source comes from stdin
own() {
    { printf '#include "kbench.h"\n' && cat && printf 'KBENCH_MAIN()\n'; } > "$tmp/own.c"
    program own "$tmp/own.c" $2 && run "$tmp/own" --fast --no-progress
}
own "a result that nobody reads" -O2 << 'EOT'
KBENCH(sum) {
    float *x = KB_ALLOC(kb, float, 1 << 16), sum = 0;
    kb_fill(kb, x, 1 << 16, KB_NORMAL);
    KB_TIME(kb) {
        for (int i = 0; i < 1 << 16; i++) sum += x[i];
    }
}
EOT
check_rc "a result that nobody reads" 1
check_out "a result that nobody reads" '^sum +NO_WORK'
check_out "a result that nobody reads: what helps" '^ *-> call kb_keep\(result\)'
check_not_out "a result that nobody reads: nothing of GPUs" 'stream|launch'
cat > "$tmp/apart.c" << 'EOT'
#include "kbench.h"
#define APART(nops) \
    KBENCH(apart_##nops) { \
        __asm__ __volatile__(".p2align 6\n\t.rept " #nops "\n\tnop\n\t.endr"); \
        KB_TIME(kb) { } \
    }
APART(0) APART(6) APART(12) APART(18) APART(24) APART(30) APART(36) APART(42) APART(48) APART(54) APART(60)
KBENCH_MAIN()
EOT
for c in $CC clang; do # wherever the loop lies: across two lines of the cache it takes twice as long
    if ! have $c; then skip "no $c" && continue; fi
    check "empty loops, $c" $c -O2 -I. "$tmp/apart.c" "$kit/kit.o" -o "$tmp/apart" $libs && run "$tmp/apart" --fast --no-progress
    check_same "empty loops, $c" "$(grep -c '^apart_.* NO_WORK' "$out")" 11
done
own "an implementation named by KBENCH" "-O0 -w" << 'EOT'
KBENCH(sum, "mine") { KB_TIME(kb) { kb_keep(kb); } }
EOT
check_rc "an implementation named by KBENCH" 2
check_err "an implementation named by KBENCH" 'KBENCH_IMPL\(sum, NAME\)'

# --- CUDA
gpu=
if nvidia-smi -L 2> /dev/null | grep -q '^GPU '; then gpu=yes; fi
for name in template template_sweep; do
    if [ -z "$NVCC" ]; then skip "examples/$name.cu: no nvcc" && continue; fi
    everything || [ -n "$gpu" ] || [ $name = template ] || continue
    options="$(if [ -n "$gpu" ]; then echo "$ARCHFLAGS"; else echo -arch=sm_80; fi) -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror"
    copied $name.cu "$options" || continue
    if [ -n "$gpu" ]; then
        run "$exe" --fast --no-progress
        check_rc "$name.cu" 0
        check_not_out "$name.cu: a check looked" UNVERIFIED
    else
        skip "examples/$name.cu: no GPU to run it on"
        run "$exe" --fast --no-progress
        check_rc "$name.cu without a GPU" 77
        check_err "$name.cu without a GPU" 'nothing was measured: no GPU'
        check_same "$name.cu without a GPU: the reason, said once" "$(grep -c 'no GPU' "$out")" 1
    fi
done
finish
