#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Sanitizers, coverage and profiling slow code down, so the key `build` of a record names them. An instrumented
# build gets the flag DEBUG_BUILD, and the regression gate does not compare its time with that of another build.
. tests/lib.sh
. tests/cli/kit.lib

root=$PWD
cat > "$tmp/bench.c" << 'EOF'
#include "kbench.h"
KBENCH(work) {
    unsigned x = 1;
    KB_TIME(kb) {
        for (int i = 0; i < 100; i++) {
            x = x * 1664525u + 1013904223u;
            kb_keep(x);
        }
    }
    kb_check_that(kb, true, 0, 0, "x");
}
KBENCH_MAIN()
EOF
echo 'int main(void) { return 0; }' > "$tmp/probe.c"
short="--max-time 20ms --no-progress"
program plain "$tmp/bench.c"
run "$tmp/plain" $short --json "$tmp/plain.json"
check_rc "a plain program" 0
build_of() { sed -n 's/.*"build": *"\([^"]*\)".*/\1/p' "$1"; }
check_same "a plain program: its build" "$(build_of "$tmp/plain.json" | grep -c instrumented)" 0
check_same "a plain program: DEBUG_BUILD" "$(grep -c DEBUG_BUILD "$tmp/plain.json")" 0

# looks WHAT NAMES PROGRAM...: the record must name the instruments NAMES, and must not be compared with the
# ordinary build
looks() {
    what=$1 names=$2 && shift 2
    run env GCOV_PREFIX="$PWD/$tmp" GMON_OUT_PREFIX="$tmp/gmon" LLVM_PROFILE_FILE="$tmp/raw" TSAN_OPTIONS=report_bugs=0 \
        ASAN_OPTIONS=detect_leaks=0 "$@" --json "$tmp/new.json"
    check_rc "$what" 0
    check_same "$what: build" "$(build_of "$tmp/new.json" | sed 's/;.*//; s/.*optimised, instrumented //')" "($names)"
    check_same "$what: flag" "$(grep -c DEBUG_BUILD "$tmp/new.json")" 1
    run "$tmp/plain" --compare "$tmp/plain.json" "$tmp/new.json"
    check_err "$what: --compare" "differ in build \(optimised; optimised, instrumented \($names\)\)\. Their times are not compared"
    run "$tmp/plain" --compare "$tmp/new.json" "$tmp/new.json"
    check_not_err "$what: --compare with itself" "differ in"
}
# with WHAT NAMES COMPILER OPTION...: compiles only the benchmark's file with OPTIONs
with() {
    everything || [ -n "$now" ] || return 0
    what=$1 names=$2 cc=$3 && shift 3
    if ! have $cc || ! (cd "$tmp" && $cc "$@" probe.c -o probe > probe.log 2>&1 && ./probe > /dev/null 2>&1) ||
        grep -q 'not supported' "$tmp/probe.log"; then
        skip "$what: $cc cannot build this variant here"
        return
    fi
    (cd "$tmp" && $cc -O2 -I"$root" "$@" -c bench.c -o bench.o > build.log 2>&1)
    check "$what" $cc "$@" "$tmp/bench.o" "$kit/kit.o" -o "$tmp/program" $libs && looks "$what" "$names" "$tmp/program" $short
}
now=
with "gcc ASan" ASan gcc -fsanitize=address
with "gcc ASan, static runtime" ASan gcc -fsanitize=address -static-libasan
now=1 # make test runs the variant, too
with "gcc ASan and UBSan" ASan gcc -fsanitize=address,undefined
now=
with "gcc TSan" TSan gcc -fsanitize=thread
with "gcc UBSan" UBSan gcc -fsanitize=undefined
with "gcc LSan" LSan gcc -fsanitize=leak
now=1
with "gcc coverage" gcov gcc --coverage
now=
with "gcc profile" gcov gcc -fprofile-generate
now=1
with "gcc -pg" -pg gcc -pg
now=
with "gcc -pg -mfentry" -pg gcc -pg -mfentry
with "clang ASan" ASan clang -fsanitize=address
with "clang TSan" TSan clang -fsanitize=thread
with "clang UBSan" UBSan clang -fsanitize=undefined
with "clang coverage" gcov clang --coverage
with "clang profile" -fprofile-instr-generate clang -fprofile-instr-generate
with "clang -pg" -pg clang -pg
finish
