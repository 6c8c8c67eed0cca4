#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that at most 5 % of the comparisons of equal implementations on the CPU report a difference.
#
#   sh tests/cpu/equal_implementations.sh           36 comparisons in about 10 s
#   sh tests/cpu/equal_implementations.sh --full    210 comparisons in a few minutes; on a quiet machine, at least 95 %
#                                                   of the implementations that are 5 % slower are found, from 1.5 us
# measures time
. tests/lib.sh
. tests/cli/kit.lib

if ! have python3; then
    skip "no python3"
    finish
fi
plain equal_implementations tests/cpu/equal_implementations.c -O2
if [ "${1-}" != --full ]; then set -- --short --exclude product -a n=1024,16384,131072 --max-time 0.1s; fi
run python3 tests/cpu/equal_implementations.py "$tmp/equal_implementations" "$tmp/equal_implementations.json" "$@"
cat "$out"
check_rc "equal_implementations" 0
finish
