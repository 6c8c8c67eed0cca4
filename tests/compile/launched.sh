#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# tests/gpu/kernels.cu launches every kernel of the library on a simulated CUDA runtime (runtime.cpp). Launchers
# must query the attributes and the occupancy of a kernel once, not at every launch.
# only in make test-all
. tests/lib.sh

here=tests/compile
if [ ! -f kbench_kernels.cuh ]; then skip "kbench_kernels.cuh does not exist" && finish; fi
if [ -z "$NVCC" ] || ! have "$NVCC"; then skip "no nvcc" && finish; fi
cat > "$tmp/try.cu" << 'EOF'
int main() { return 0; }
EOF
if ! "$NVCC" -gencode arch=compute_90a,code=compute_90a -c "$tmp/try.cu" -o "$tmp/try.o" 2> /dev/null; then
    skip "$NVCC knows no sm_90a" && finish
fi
# PTX without optimisation suffices, because only launches are counted
flags="-std=c++17 -O1 -Xcicc -O0 -gencode arch=compute_90a,code=compute_90a -I. -Itests"
build "runtime.cpp" "$NVCC" -std=c++17 -O1 -c $here/runtime.cpp -o "$tmp/runtime.o"
build "kernels.cu" "$NVCC" $flags --cudart none tests/gpu/kernels.cu "$tmp/runtime.o" -o "$tmp/kernels"

RUNTIME_LOG=$tmp/log run "$tmp/kernels" --count
check_rc "kernels --count" 0
sum() { awk -v what="$1" '$1 == what { n += $2 } END { printf "%d", n }' "$tmp/log"; }
all=$(grep -c '^kernel ' "$tmp/log")
if [ "$all" -gt 0 ]; then pass; else fail "the program contains no kernels"; fi
# Two kinds of kernels are exempt. Kernels with the template argument void are never launched: their attributes
# tell for which compute capability the program was compiled. tests/gpu/hopper.cu launches the configurations of
# "select".
grep '^kernel 0 ' "$tmp/log" | grep -v '_k<void>(' | grep -v 'kbki_wg_plan<' | sed 's/^kernel 0 //' > "$tmp/never_here"
# exception: kernels for a GPU with less shared memory, which a second run simulates
RUNTIME_SHARED=101376 RUNTIME_LOG=$tmp/less "$tmp/kernels" --count --op attention > /dev/null
grep '^kernel [1-9]' "$tmp/less" | sed 's/^kernel [0-9]* //' > "$tmp/there"
grep -vxF -f "$tmp/there" "$tmp/never_here" > "$tmp/never"
if [ -s "$tmp/never" ]; then fail "$(wc -l < "$tmp/never" | tr -d ' ') of $all kernels are launched by no test, as $(head -n 20 "$tmp/never" | tr '\n' ';')"; else pass; fi

launches=$(sum kernel) asked=$(sum asked)
if [ "$asked" -gt 0 ] && [ $((asked * 20)) -lt "$launches" ]; then pass; else fail "the launchers sent $asked queries in $launches launches"; fi
# Occupancy depends on the dynamic shared memory, and thus on the row length, so a few queries per kernel are
# allowed.
for op in softmax cross_entropy layernorm; do
    RUNTIME_LOG=$tmp/once "$tmp/kernels" --count --op $op > /dev/null
    questions=$(awk '$1 == "asked" { n += $2 } END { print n + 0 }' "$tmp/once")
    different=$(awk '$1 == "kernel" && $2 > 0' "$tmp/once" | wc -l | tr -d ' ')
    if [ "$questions" -le $((different * 3 + 10)) ]; then pass; else fail "$op: the launchers sent $questions queries for $different kernels"; fi
done
finish
