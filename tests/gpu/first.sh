#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: the five-line program gives a plausible time, and gets the same data in every run. C files and CUDA
# files of one program can be linked with one implementation of kbench.
. tests/lib.sh

build "five_lines.cu" $NVCC -O3 $ARCHFLAGS -I. tests/compile/five_lines.cu -o "$tmp/first"
build "flat.c" $CC -O1 -Itests tests/cli/flat_records.c -o "$tmp/flat"
value() { awk -F'\t' -v k="$1" '$2 == k { print $3; exit }' "$tmp/flat.txt"; }
run "$tmp/first" --json "$tmp/first.json" --no-progress
cat "$out"
check_rc "the five-line program" 0
build "its record" "$tmp/flat" "$tmp/first.json"
"$tmp/flat" "$tmp/first.json" > "$tmp/flat.txt"
check_same "backend" "$(value backend)" '"cuda"'
check_same "cache" "$(value cache)" '"cold"'
case $(value kernel) in *scale*) pass ;; *) fail "kernel is $(value kernel)" ;; esac
check_same "memory_bytes covers the two arrays" "$(awk -v m="$(value memory_bytes)" 'BEGIN { print (m >= 134217728 && m < 140000000) }')" 1
# a plausible time to move 128 MiB on a GPU: 10 us to 20 ms
check_same "time is plausible" "$(awk -v t="$(value time_ms)" 'BEGIN { print (t > 0.01 && t < 20) }')" 1
check_same "efficiency is plausible" "$(awk -v e="$(value gpu_efficiency)" 'BEGIN { print (e > 30 && e < 110) }')" 1
for key in gpu compute_capability driver cuda sm_clock_mhz grid block registers; do
    case $(value $key) in null | "") fail "$key is $(value $key)" ;; *) pass ;; esac
done
if CUDA_VISIBLE_DEVICES= "$tmp/first" --no-progress > "$tmp/none.out" 2> "$tmp/none.err"; then rc=0; else rc=$?; fi
check_same "no visible GPU: exit code" $rc 77
run "$tmp/first" --fast --no-progress --device 99
check_rc "--device 99" 2

cuda=$(dirname "$(command -v "$NVCC")")/..
build "extern_launch.cu" $NVCC -O3 $ARCHFLAGS -c tests/compile/extern_launch.cu -o "$tmp/launch.o"
build "extern.c" $CC -std=c11 -O2 -DKBENCH_CUDA -I. -I"$cuda/include" -c tests/compile/extern.c -o "$tmp/extern.o"
build "extern, linked" $NVCC "$tmp/extern.o" "$tmp/launch.o" -o "$tmp/extern"
run "$tmp/extern" --fast --no-progress --json "$tmp/extern.json"
cat "$out"
check_rc "a C file with an extern launcher" 0
"$tmp/flat" "$tmp/extern.json" > "$tmp/flat.txt"
check_same "extern: cache" "$(value cache)" '"cold"'
# each kernel reads and writes 64 MiB, so its time is close to that of the five-line program
check_same "extern: efficiency is plausible" "$(awk -v e="$(value gpu_efficiency)" 'BEGIN { print (e > 30 && e < 110) }')" 1
finish
