#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: tests kbench with third-party code (CUB, Thrust, NVIDIA's libraries) and with launches and memory of
# every kind. Each case must get a time, or the flag that is expected for the case. The three implementations of
# each case call one common function, so at most one comparison in twenty may report a difference. --timer cupti
# must give times for the same cases as the default timer.
. tests/lib.sh

libraries="-lcublas -lcufft -lcurand"
if ! $NVCC -O3 $ARCHFLAGS -I. tests/gpu/third_party.cu $libraries -o "$tmp/third_party" 2> "$tmp/err"; then
    libraries=-DOTHERS_NO_LIBRARIES
    skip "cublas, cufft, curand: $(head -n 1 "$tmp/err")"
    build "third_party.cu" $NVCC -O3 $ARCHFLAGS -I. $libraries tests/gpu/third_party.cu -o "$tmp/third_party"
fi
build "flat.c" $CC -O1 -I. -Itests tests/cli/flat_records.c -o "$tmp/flat" $libs

# field KEY: "operation/..." and its value, a case a line
field() { awk -F'\t' -v key="$1" '$2 == "name" { name[$1] = $3 } $2 == key { print name[$1] "\t" $3 }' "$tmp/flat.txt"; }
comparisons=0 different=0
for mode in "--cold" "--hot" "--cold --timer cupti"; do
    run "$tmp/third_party" $mode --max-time 0.05s --no-progress --json "$tmp/all.json"
    if grep -q 'libcupti.so is not found' "$out" "$err"; then
        skip "$mode: libcupti.so is not found"
        continue
    fi
    check_rc "$mode: what allocates fails" 1
    "$tmp/flat" "$tmp/all.json" > "$tmp/flat.txt"
    cases=$("$tmp/third_party" --list | wc -l)
    check_same "$mode: a record for every case" "$(field status | wc -l)" "$cases"
    check_same "$mode: summed" "$(field flags | grep '"summed/' | grep -vc ALLOC_INSIDE)" 0
    check_same "$mode: summed" "$(field status | grep '"summed/' | grep -vc failed)" 0
    check_same "$mode: graph_unsaid: its call is named" "$(field message | grep '"graph_unsaid/' | grep -vc 'cudaGraphLaunch in the block')" 0
    field status | grep -v '"summed/' > "$tmp/others.txt"
    check_same "$mode: all others have numbers" "$(grep -v '"ok"' "$tmp/others.txt")" ""
    case $mode in *cupti*) continue ;; esac
    comparisons=$((comparisons + $(field verdict | grep -vc 'null')))
    different=$((different + $(field verdict | grep -c 'FASTER\|SLOWER')))
    field verdict | grep 'FASTER\|SLOWER'
done
echo "$different of $comparisons comparisons of equal functions reported a difference"
check_same "at most one comparison of twenty" "$((different * 20 <= comparisons))" 1
finish
