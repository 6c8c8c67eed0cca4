#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the NVTX ranges that tell a profiler (here a small library) which case and phase is running.
. tests/lib.sh
. tests/cli/kit.lib

cat > "$tmp/prog.c" << 'EOF'
#include "kbench.h"
static double sum(const double* x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
KBENCH_IMPL(sum, one, KB_AXIS("n", 100)) {
    double* x = KB_ALLOC(kb, double, 100);
    kb_fill(kb, x, 100, KB_NORMAL);
    int n = (int)kb_int(kb, "n");
    KB_TIME(kb) { kb_keep(sum(x, n)); }
}
KBENCH_IMPL(sum, other, KB_AXIS("n", 100)) {
    double* x = KB_ALLOC(kb, double, 100);
    kb_fill(kb, x, 100, KB_NORMAL);
    int n = (int)kb_int(kb, "n");
    KB_TIME(kb) { kb_keep(sum(x, n)); }
}
KBENCH(alone) { KB_TIME(kb) { kb_keep(1 + kb->seed); } }
KBENCH_MAIN()
EOF
program prog "$tmp/prog.c" -O2

include=
for folder in "${CUDA_HOME:+$CUDA_HOME/include}" "$(dirname "$(command -v "$NVCC" || echo /none/nvcc)")/../include" /usr/local/cuda/include; do
    [ -z "$include" ] && [ -f "$folder/nvtx3/nvToolsExt.h" ] && include=$folder
done
if [ -n "$include" ]; then
    build "a tool, with the toolkit's header" $CC -shared -fPIC -w -DWITH_NVTX -isystem "$include" tests/cli/nvtx_tool.c -o "$tmp/tool.so"
else
    skip "nvtx3/nvToolsExt.h is missing: the tool uses this test's own declarations of NVTX"
    build "a tool" $CC -shared -fPIC -w tests/cli/nvtx_tool.c -o "$tmp/tool.so"
fi

NVTX_HEARD=$tmp/heard NVTX_INJECTION64_PATH=$PWD/$tmp/tool.so
case $tmp in /*) NVTX_INJECTION64_PATH=$tmp/tool.so ;; esac
export NVTX_HEARD NVTX_INJECTION64_PATH
run "$tmp/prog" --fast --iters 20 --no-progress
check_rc "under a tool" 0
heard() { if grep -qE -e "$2" "$NVTX_HEARD"; then pass; else fail "$1: no '$2' in: $(head -c 400 "$NVTX_HEARD" | tr '\n' ';')"; fi; }
heard "a domain" '^domain kbench$'
heard "a case, without the signs that options of tools are made of" '^start [0-9]+ sum impl=one n=100$'
heard "the other implementation" '^start [0-9]+ sum impl=other n=100$'
heard "another operation" '^start [0-9]+ alone( |$)'
for phase in check warm-up samples final; do heard "a phase" "^start [0-9]+ $phase\$"; done
check_same "ranges that say what they should not" "$(grep -c '(' "$NVTX_HEARD")" 0
check_same "each range ends once" "$(sed -n 's/^start \([0-9]*\) .*/\1/p' "$NVTX_HEARD" | sort | tr '\n' ' ')" \
    "$(sed -n 's/^end \([0-9]*\)$/\1/p' "$NVTX_HEARD" | sort | tr '\n' ' ')"
check_same "three cases, once each" "$(grep -cE '^start [0-9]+ (sum|alone)' "$NVTX_HEARD")" 3

# an invalid library, a library that returns an error, no library
rm -f "$NVTX_HEARD"
NVTX_REFUSES=1 run "$tmp/prog" --fast --iters 20 --no-progress alone
check_rc "a tool that refuses" 0
NVTX_INJECTION64_PATH=$tmp/prog.c run "$tmp/prog" --fast --iters 20 --no-progress alone
check_rc "a tool that is none" 0
unset NVTX_INJECTION64_PATH
run "$tmp/prog" --fast --iters 20 --no-progress alone
check_rc "no tool" 0
check "nothing was heard" test ! -e "$NVTX_HEARD"
finish
