#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests kb_host and KB_CHECK_EACH in C and C++.
. tests/lib.sh
. tests/cli/kit.lib

program c tests/cli/check_each.c -Wall -Wextra -Wconversion -Werror
compilers=c
if have "$CXX"; then
    build "check_each.c as C++" "$CXX" -std=c++11 -x c++ -O1 -Wall -Wextra -Werror -I. tests/cli/check_each.c -x none "$kit/kit.o" -o "$tmp/cxx" $libs
    compilers="c cxx"
else
    skip "no C++ compiler"
fi
for c in $compilers; do
    run "$tmp/$c" --fast --max-time 20ms --no-progress
    check_rc "$c" 1
    for name in right in_place from_the_middle empty; do check_out "$c: $name has a time" "^$name +[0-9.]+ "; done
    check_out "$c: wrong" '^wrong +VERIFY_FAIL'
    check_out "$c: wrong: the measure of the error" '^ +\(.got - want. / \(1 \+ .want.\) is [0-9.]+, tolerance 1e-06\)'
    for name in null foreign before in_the_block; do check_out "$c: $name" "^$name +BAD_CASE"; done
    check_out "$c: null" 'kb_host takes a pointer of KB_ALLOC, and this one is NULL'
    check_out "$c: foreign" 'kb_host takes a pointer of KB_ALLOC, and this one is not'
done
finish
