#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that kb_keep accepts any expression and hides it from the optimiser: builds keep.c as C and C++, with gcc
# and clang, with optimisation. "make test-all" also builds keep.c without optimisation.
. tests/lib.sh

warnings="-Wall -Wextra -Werror -Wconversion -Wpedantic"
for compiler in "$CC" clang "$CXX" clang++; do
    have $compiler || continue
    case " $tried " in *" $compiler "*) continue ;; esac
    tried="$tried $compiler"
    case $compiler in *++*) language=c++ variants="c++11 -O0:c++11 -O1 -DHIDES:c++20 -O2 -DHIDES" ;; *) language=c variants="c11 -O0:gnu17 -O1 -DHIDES:c11 -O2 -DHIDES" ;; esac
    everything || variants=${variants##*:}
    while [ -n "$variants" ]; do
        variant=${variants%%:*}
        case $variants in *:*) variants=${variants#*:} ;; *) variants= ;; esac
        what="$compiler -std=$variant"
        check "$what" $compiler -x $language -std=$variant $warnings -I. -c tests/compile/keep.c -o "$tmp/keep.o" || continue
        check "$what: linked" $compiler "$tmp/keep.o" -o "$tmp/keep" || continue
        run "$tmp/keep"
        counted "$what"
    done
done
finish
