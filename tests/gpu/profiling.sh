#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: tests the results of --counters, --profile, --trace and --energy with kernels of known work. Profiling
# must not change the measured times. If the driver denies access to the counters, the test prints the denial and
# tests everything else.
. tests/lib.sh

build "profiling.cu" $NVCC -O3 $ARCHFLAGS -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. -Itests tests/gpu/profiling.cu -o "$tmp/profiling"
fast="--max-time 0.3s --no-progress"

run "$tmp/profiling" $fast --json "$tmp/plain.json"
check_rc "by itself" 0
run "$tmp/profiling" $fast --counters --profile --trace "$tmp/profiling.trace" --json "$tmp/looked.json"
check_rc "looked into" 0
cat "$out" "$err" # the tables, for the log
looked=$out

# the trace contains kernels, copies and API calls
sums() { if grep -qE -e "$2" "$looked"; then pass; else fail "$1: no '$2'"; fi; }
sums "kernels" '^ +triad\(.*  +8 '
sums "calls" '^ +cudaLaunchKernel +8 '
sums "shapes" '4096x1x1 blocks of 256x1x1'
sums "a copy beside a kernel" '[0-9]% of the copy time overlaps a kernel'
if have python3; then
    check "the timeline" python3 tests/host/trace.py "$tmp/profiling.trace"
else
    skip "python3 is not installed: the timeline and the counters are not checked"
    finish
fi
if grep -q 'is not profiled' "$err"; then
    skip "$(sed -n 's/.*is not profiled: //p' "$err" | head -n 1)"
    finish
fi
run python3 tests/gpu/profiling.py "$tmp/looked.json" "$tmp/plain.json"
cat "$out" "$err"
passed=$((passed + $(grep -c '^good' "$out")))
grep '^BAD' "$out" > "$tmp/bad"
while read -r line; do fail "${line#BAD }"; done < "$tmp/bad"
if [ "$rc" -ne 0 ]; then fail "profiling.py ended with $rc"; fi

# energy in joules, and whether the power is plausible for a GPU
run "$tmp/profiling" $fast --energy --filter '^(triad|chains|again)/' --json "$tmp/energy.json"
check_rc "energy" 0
cat "$out" "$err"
if grep -q 'has no energy counter' "$err"; then
    skip "$(sed -n 's/.*is not profiled: //p' "$err" | head -n 1)"
else
    run python3 tests/gpu/profiling.py --energy "$tmp/energy.json"
    cat "$out" "$err"
    passed=$((passed + $(grep -c '^good' "$out")))
    grep '^BAD' "$out" > "$tmp/bad"
    while read -r line; do fail "${line#BAD }"; done < "$tmp/bad"
    if [ "$rc" -ne 0 ]; then fail "profiling.py --energy ended with $rc"; fi
fi
run "$tmp/profiling" --env --counters
check_out "the second witness of coldness" 'by the counters of DRAM +(9[0-9]|1[0-9][0-9])'
# reads all counters, and shows whether the counter of tensor operations counts a multiply-add as two
run "$tmp/profiling" $fast --counters=all --filter '^(triad|chains)/' --json "$tmp/all.json"
check_rc "all counters" 0
cat "$out"
run "$tmp/profiling" $fast --counters=few --hot --filter '^again/'
check_rc "few, hot" 0
cat "$out"
finish
