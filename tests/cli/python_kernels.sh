#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests kbench.kernels without a GPU: the shared library for other languages, and its Python interface. make
# test-all (TEST_ALL=1) also builds kernels with nvcc.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

for compiler in "$CC -std=c11" "$CXX -x c++ -std=c++11"; do
    case $compiler in *c++*) language= && ! everything && continue ;; *) language="-x c" ;; esac
    check "$compiler" $compiler -O0 -Wall -Wextra -Werror -shared -fPIC $language -DKBENCH_SHARED kbench_kernels.cuh \
        -o "$tmp/one.so" -lm
done
printf '#include "kbench.h"\n#include "kbench_kernels.cuh"\n' > "$tmp/both.c"
! everything || check "both in one" $CC -O0 -shared -fPIC -I. -DKBENCH_SHARED "$tmp/both.c" -o "$tmp/both.so" $libs
run $CC -x c -shared -fPIC -DKBENCH_SHARED -DKBK_NO_REGISTRY kbench_kernels.cuh -o "$tmp/none.so"
check_err "without tables there is nothing to export" 'define one of them'

python
export KBENCH_NO_CUDA=1 # a GPU has tests of its own

suite
run "$suite" --list-ops
check_rc "--list-ops" 0
cp "$out" "$tmp/operations"
mkdir -p "$tmp/scratch"
run "$PYTHON" tests/cli/python/kernels.py "$tmp/scratch" "$tmp/operations"
counted "kernels.py"

# --- kbench.py without kbench_kernels.py
mkdir "$tmp/alone" && cp examples/python/kbench.py kbench.h "$tmp/alone"
run env CFLAGS=-O0 PYTHONPATH="$PWD/$tmp/alone" "$PYTHON" -c 'import kbench
print(kbench.time(int, host=True, samples=5))
try: kbench.kernels
except kbench.Error as e: print("Error:", e)'
check_out "kbench.py alone" 'int/impl=int'
check_out "kbench.py alone: kernels" 'Error: kbench.kernels is in kbench_kernels.py, which is not there'
run "$PYTHON" examples/python/kbench_kernels.py --list
check_out "--list" '^matmul fwd  A\[M|K\] B\[K|N\] -> C\[M|N\]'
run "$PYTHON" examples/python/kbench_kernels.py --list --op softmax
check_rc "--list --op" 2
check_err "--list --op" '--list measures nothing, so --op has no effect'
run "$PYTHON" examples/python/kbench_kernels.py --load tests/evidence/h200/operations.json --max-time 1
check_err "--load --max-time" '--load measures nothing, so --max-time has no effect'
echo '[{"name": "a", "operation": "a", "params": {"n": 1}}]' > "$tmp/none.json"
run "$PYTHON" examples/python/kbench_kernels.py --load "$tmp/none.json"
check_rc "--load: another program" 2
check_err "--load: another program" 'none.json has records of another program'
echo '[{' > "$tmp/none.json"
run "$PYTHON" examples/python/kbench_kernels.py --load "$tmp/none.json" --summary
check_rc "--load: no records" 2
check_err "--load: no records" 'error: .*none.json:1: '
run "$PYTHON" examples/python/kbench_kernels.py --op softmax
check_rc "no GPU" 2
check_err "no GPU" 'error: kernels run on a GPU'
finish
