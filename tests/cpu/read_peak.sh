#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the read peak of one core with the widest vectors of this processor. Half of the bytes of a copy are reads,
# so reads alone must reach at least 0.42 times the copy peak. (A version of gcc moved each 256-byte block through
# the stack, which gave 0.3 times the copy peak.)
. tests/lib.sh
printf '#define KBENCH_IMPLEMENTATION\n#include "kbench.h"\nKBENCH(nothing) { KB_TIME_HOST(kb) {} }\nKBENCH_MAIN()\n' > "$tmp/peak.c"
for wide in "" -march=native; do
    everything || [ -n "$wide" ] || continue
    build "with ${wide:-the default vectors}" $CC -O2 $wide -I. "$tmp/peak.c" -o "$tmp/peak" $libs || continue
    run "$tmp/peak" --env
    ratio=$(awk '/^ *(copy|read) roof, one core/ { peak[$1] = $5 * ($6 ~ /^T/ ? 1000 : 1) } END { print peak["read"] / peak["copy"] }' "$out")
    if awk "BEGIN { exit !($ratio > 0.42) }"; then pass; else fail "${wide:-default}: reads reach $ratio of the copy peak"; fi
done
finish
