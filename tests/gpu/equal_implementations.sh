#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: at most 5 % of the comparisons of equal implementations report a difference. At least 95 % of the
# implementations that are 2 % slower (kernels from 5 us) or 5 % slower (kernels from 1.5 us) get the verdict
# SLOWER. Both limits must hold with --cold, --hot and --rotate. The test takes about ten minutes.
. tests/lib.sh

if ! have python3; then
    skip "no python3"
    finish
fi
build "equal_implementations.cu" $NVCC -O3 $ARCHFLAGS -I. tests/gpu/equal_implementations.cu -o "$tmp/equal_implementations"
for mode in cold hot rotate; do
    run python3 tests/gpu/equal_implementations.py "$tmp/equal_implementations" "$tmp/$mode.json" $mode
    cat "$out"
    check_rc "$mode" 0
    # counts in the line "cold all 0 of 210 39 of 40 70 of 70": equal implementations called different, 2 % slower
    # ones detected, 5 % slower ones detected
    for bar in "5 <= 0.05 equal implementations called different" "8 >= 0.95 2 % slower found" "11 >= 0.95 5 % slower found"; do
        set -- $bar
        check "$mode: $*" awk -v c="$1" -v sign="$2" -v share="$3" '
            $2 == "all" { n = $(c); found = $(c - 2); seen = 1; if (n > 0 && (sign == "<=" ? found <= share * n : found >= share * n)) good = 1 }
            END { exit !(seen && good) }' "$out"
    done
done
finish
