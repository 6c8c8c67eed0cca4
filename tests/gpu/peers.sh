#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: measures kernels with kbench and with each other installed harness (NVBENCH=DIR, torch and triton), in
# two short rounds. For each harness, the test counts the medians that agree with CUPTI's durations; no harness
# may have more of them than kbench. Missing harnesses are skipped.
. tests/lib.sh

if ! have python3; then
    skip "no python3"
    finish
fi
build "accuracy.cu" $NVCC -O3 $ARCHFLAGS -I. tests/gpu/accuracy.cu -o "$tmp/accuracy"
run env BUILD="$tmp" python3 tests/gpu/peers.py "$tmp/accuracy" "$tmp/peers.json" --rounds 2 --default-rounds 0
if grep -q 'libcupti.so is not found' "$err"; then
    skip "libcupti.so is not found; LD_LIBRARY_PATH can name its folder"
    finish
fi
cat "$out"
check_rc "peers.py" 0
# right PEER: prints how many medians of this harness are within the limit
right() { sed -n "s/^$1 median .* of CUPTI: *\([0-9]*\) of .*/\1/p" "$out"; }
for peer in nvbench do_bench; do
    why=$(sed -n "s/^$peer is left out: //p" "$out")
    if [ -n "$why" ]; then
        skip "$peer: $why"
    else
        check_same "kbench's medians are right at least as often as $peer's" \
            "$([ "$(right kbench)" -ge "$(right $peer)" ] && echo yes)" yes
    fi
done
finish
