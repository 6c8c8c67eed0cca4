#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that time is proportional to work from 10 ns to 1 ms. The subtracted clock overhead and the loop overhead
# must be correct for blocks of every duration.
# measures time
. tests/lib.sh
. tests/cli/kit.lib

plain linear tests/cpu/linear.c -O2
reader
run "$tmp/linear" --fast --quiet --json "$tmp/linear.json"
check_rc "run" 0
# prints for each length: number of multiplications, ns per run, time per multiplication relative to the baseline
"$tmp/flat" "$tmp/linear.json" | awk -F'\t' '
    $2 == "implementation" { n = substr($3, 3) + 0; if (!first) first = n }
    $2 == "time_ms" { ns = $3 * 1e6 }
    $2 == "speedup" { printf "%d %.4f %.4f\n", n, ns, first / n / $3 }' | sort -n > "$tmp/steps.txt"
check_same "lengths" "$(wc -l < "$tmp/steps.txt" | tr -d ' ')" 14
while read -r n ns ratio; do
    # the tolerance is larger from 100 us on, because the clock of a busy processor changes within a round
    check "$n steps take $ns ns, each $ratio of what it takes in 256" \
        awk -v x="$ratio" -v ns="$ns" 'BEGIN { bar = ns < 1e5 ? 0.03 : 0.08; exit !(x > 1 - bar && x < 1 + bar) }'
done < "$tmp/steps.txt"
check "from 10 ns or so" awk 'NR == 1 { exit !($2 < 25) }' "$tmp/steps.txt"
check "to a ms or so" awk 'END { exit !($2 > 2e5) }' "$tmp/steps.txt"
cat "$tmp/steps.txt"
finish
