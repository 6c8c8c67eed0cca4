#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: corrected times agree with CUPTI's durations of the same kernels.
. tests/lib.sh

build "accuracy.cu" $NVCC -O3 $ARCHFLAGS -I. tests/gpu/accuracy.cu -o "$tmp/accuracy"
for way in cold hot; do
    for i in 1 2 3; do
        run "$tmp/accuracy" --$way --timer both --no-progress --json "$tmp/$way.$i.json"
        if grep -q 'libcupti.so is not found' "$out"; then
            skip "libcupti.so is not found; LD_LIBRARY_PATH can name its folder"
            finish
        fi
        check_rc "$way" 0
    done
done
if ! have python3; then
    skip "no python3: times are not compared with CUPTI"
    finish
fi
run python3 tests/gpu/accuracy.py "$tmp"
cat "$out"
# On an H200, the medians over processes of 49 of 52 cases are within the limit. The error of a copy of 64 MiB is up
# to 3 times the limit, because the second event waits until the last cache lines of the copy are written.
within=$(sed -n 's/^\([0-9]*\) of \([0-9]*\) within max(0.15.*/\1 \2/p' "$out")
worst=$(sed -n 's/.*worst \([0-9.]*\) of the bar.*/\1/p' "$out")
check_same "nine of ten within the bar" "$(echo "$within" | awk '{ print ($2 > 0 && $1 >= 0.9 * $2) }')" 1
check_same "no error above four times the bar" "$(awk -v w="$worst" 'BEGIN { print (w != "" && w <= 4) }')" 1
finish
