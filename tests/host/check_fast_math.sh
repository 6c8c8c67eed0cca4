#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Builds and runs tests/host/check.c with compiler options that could let NaN pass. "make test" tests only
# the option -Ofast.
. tests/lib.sh
: "${TEST_CFLAGS:=-O2 -g -Wall -Wextra -Werror}"
# variant NAME COMMAND...: builds tests/host/check.c with COMMAND and runs it; adds the number of passed checks to
# $passed
variant() {
    name=$1 && shift
    check "check.c $name" "$@" -I. -Itests -o "$tmp/check_exe" $libs || return
    run "$tmp/check_exe"
    last=$(tail -n 1 "$out")
    case $last in
    *" passed, 0 failed, "*) passed=$((passed + ${last%% passed*})) ;;
    *) fail "check.c $name: $(grep '^FAIL' "$out" | head -n 5 | tr '\n' ';') $last $(tail -n 3 "$err")" ;;
    esac
}
if ! everything; then
    variant "-Ofast" $CC $TEST_CFLAGS -Ofast -Wno-nan-infinity-disabled -Wno-unknown-warning-option tests/host/check.c
    finish
fi
variant "with usual options" $CC $TEST_CFLAGS tests/host/check.c
variant "-Ofast" $CC $TEST_CFLAGS -Ofast -Wno-nan-infinity-disabled -Wno-unknown-warning-option tests/host/check.c
variant "-O0" $CC $TEST_CFLAGS -O0 tests/host/check.c
variant "-std=gnu11" $CC $TEST_CFLAGS -std=gnu11 tests/host/check.c
if have $CXX; then
    variant "C++" $CXX $TEST_CFLAGS -x c++ -std=c++11 tests/host/check.c
    variant "C++ -Ofast" $CXX $TEST_CFLAGS -x c++ -Ofast -Wno-unknown-warning-option tests/host/check.c
else
    skip "no C++ compiler"
fi
if have clang && [ "$CC" != clang ]; then variant "clang -Ofast" clang $TEST_CFLAGS -Ofast tests/host/check.c; fi
finish
