#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# README.md: its programs compile and run as they are printed, its commands exist, it stays short.
. tests/lib.sh

if [ ! -f README.md ]; then skip "README.md is not there" && finish; fi
words=$(wc -w < README.md)
if [ "$words" -le 3950 ]; then pass; else fail "README.md has $words words, bound 3950"; fi

# fenced blocks: block-N.LANGUAGE; those of c, c++, cpp, cuda or cu that have a main or a KBENCH_MAIN are programs
awk -v dir="$tmp" '
    /^```/ { if (out) { close(out); out = ""; next } if ($0 == "```") { other = !other; next } lang = substr($0, 4); sub(/ .*/, "", lang)
             if (lang == "c++") lang = "cpp"; if (lang == "cuda") lang = "cu"
             if (lang ~ /^(c|cpp|cu|cmake|python)$/) { out = dir "/block-" ++n "." lang; printf "" > out } else { out = dir "/other-" ++n; printf "" > out } next }
    out { print > out }' README.md
programs=0
for f in "$tmp"/block-*; do
    [ -f "$f" ] || continue
    if ! grep -qE 'KBENCH_MAIN|int main' "$f"; then continue; fi
    programs=$((programs + 1))
    name="README.md, $(basename "$f")"
    case $f in
    *.c)
        check "$name compiles" $CC -std=c11 -O2 -Wall -Wextra -Werror -I. "$f" -o "$tmp/program" $libs || continue
        run "$tmp/program" --fast --no-progress
        check_rc "$name runs" 0
        ;;
    *.cpp)
        if ! have $CXX; then skip "$name: no C++ compiler" && continue; fi
        check "$name compiles" $CXX -std=c++11 -O2 -Wall -Wextra -Werror -I. "$f" -o "$tmp/program" $libs || continue
        run "$tmp/program" --fast --no-progress
        check_rc "$name runs" 0
        ;;
    *.cu)
        if [ -z "$NVCC" ]; then skip "$name: no nvcc" && continue; fi
        everything || continue # what it shows is compiled by compile/matrix, too
        check "$name compiles" $NVCC -O3 $ARCHFLAGS -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. "$f" -o "$tmp/program" || continue
        if nvidia-smi -L 2> /dev/null | grep -q '^GPU '; then
            run "$tmp/program" --fast --no-progress
            check_rc "$name runs" 0
        else
            run "$tmp/program" --list
            check_rc "$name lists" 0
        fi
        ;;
    esac
done
if [ $programs -ge 1 ]; then pass; else fail "README.md has no program in a fence marked c, c++ or cuda"; fi

# the lines of Python, on every kind of results file: a case that is fine, one that is wrong, one that does not apply
python=
for p in python3 python; do if [ -z "$python" ] && have $p && $p -c 'import json' > /dev/null 2>&1; then python=$p; fi; done
cat > "$tmp/cases.c" << 'EOF'
#include <string.h>
#define KBENCH_IMPLEMENTATION
#include "kbench.h"
static void touch(kb_state* kb, float want) {
    float* x = KB_ALLOC(kb, float, 4096);
    if (!x) return;
    KB_TIME(kb) {
        memset(x, 0, 4 * 4096);
        kb_keep(x);
    }
    kb_check(kb, x, &want, 1, 1e-6);
}
KBENCH_IMPL(layernorm, skipped) { kb_skip(kb, "not here"); }
KBENCH_IMPL(layernorm, wrong) { touch(kb, 1); }
KBENCH_IMPL(layernorm, fine) { touch(kb, 0); }
KBENCH_IMPL(other, fine) { touch(kb, 0); }
KBENCH_MAIN()
EOF
build "cases.c" $CC -O2 -I. "$tmp/cases.c" -o "$tmp/cases" $libs
block=$(grep -l 'results\.json' "$tmp"/block-*.python 2> /dev/null | head -n 1)
# reads WHAT WANTED NULLS FILTER: the README's lines on the records of these cases, so many of them without a time
reads() {
    run "$tmp/cases" --fast --no-progress --json "$tmp/results.json" "$4"
    check_same "$1: records without a time" "$(grep -oE '"time_ms": *null' "$tmp/results.json" | wc -l | tr -d ' ')" "$3"
    run sh -c "cd '$tmp' && $python '$(basename "$block")'"
    check_rc "README.md's Python on $1" 0
    check_same "README.md's Python on $1" "$(cat "$out")" "$2"
}
if [ -z "$block" ]; then
    fail "README.md reads no results.json in a fence marked python"
elif [ -z "$python" ]; then
    skip "no python3: README.md's lines of Python are not run"
else
    reads "a case each that is fine, wrong, skipped" fine 2 '^(layernorm|other)'
    reads "a wrong and a skipped case alone" "no time" 2 'impl=(wrong|skipped)'
    reads "another operation" "no time" 0 '^other'
    # what it says of the values: which are not text, numbers, true or false
    run "$tmp/cases" --fast --no-progress --json "$tmp/results.json"
    run $python -c 'import json, sys
names = set(k for r in json.load(open(sys.argv[1])) for k, v in r.items() if isinstance(v, (dict, list)))
print(" ".join(sorted(names)))' "$tmp/results.json"
    check_same "the values that are objects or lists" "$(cat "$out")" "counter_units counters environment flags params process_ms samples_ms"
    for key in counter_units counters environment flags params process_ms samples_ms; do if grep -q "\`$key\`" README.md; then pass; else fail "README.md does not say what $key is"; fi; done
fi

# the lines of CMake
block=$(ls "$tmp"/block-*.cmake 2> /dev/null | head -n 1)
# cmake_builds LANGUAGES FILE OPTIONS: a project of these lines and one source, built and started
cmake_builds() {
    dir=$tmp/cmake_${2#*.} source=$2
    mkdir -p "$dir/third_party"
    cp kbench.h "$dir/third_party"
    { printf 'cmake_minimum_required(VERSION 3.10)\nproject(user %s)\n' "$1" && sed "s/bench\.c/$2/" "$block"; } > "$dir/CMakeLists.txt"
    case $2 in *.cu) cp tests/compile/five_lines.cu "$dir/$2" ;; *) cp tests/compile/plain.c "$dir/$2" ;; esac
    shift 2
    check "README.md's CMake configures for $source" cmake -S "$dir" -B "$dir/build" -DCMAKE_BUILD_TYPE=Release "$@" || return
    check "README.md's CMake builds $source" cmake --build "$dir/build" || return
    run "$dir/build/bench" --list
    check_rc "README.md's CMake: $source lists" 0
}
if [ -z "$block" ]; then
    fail "README.md has no fence marked cmake"
elif ! have cmake; then
    skip "no cmake: README.md's lines of CMake are not run"
else
    cmake_builds C bench.c "-DCMAKE_C_COMPILER=$CC"
    if [ -z "$NVCC" ]; then
        skip "no nvcc: README.md's lines of CMake are not run for a .cu file"
    elif everything; then
        cmake_builds "C CUDA" bench.cu "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_CUDA_COMPILER=$(command -v "$NVCC")"
    fi
fi

# the static library: benchmarks that nobody calls, linked as README.md says, or taken along by one kb_add
cat > "$tmp/library.c" << 'EOF'
#include "kbench.h"
static void body(kb_state* kb) {
    KB_TIME(kb) { for (int kept = 0; kept < 20; kept++) kb_keep(kb); }
}
KBENCH(in_library) { body(kb); }
kb_entry library_entry = { .operation = "by_hand", .body = body };
EOF
cat > "$tmp/user.c" << 'EOF'
#include "kbench.h"
extern kb_entry library_entry;
int main(int argc, char** argv) {
#ifdef ADD
    kb_add(&library_entry);
#endif
    return kb_main(argc, argv);
}
EOF
build "kbench.o" $CC -O1 -x c -DKBENCH_IMPLEMENTATION -c kbench.h -o "$tmp/kbench.o"
build "library.c" $CC -std=c11 -O1 -I. -c "$tmp/library.c" -o "$tmp/library.o"
build "a static library" ar rcs "$tmp/libbenchmarks.a" "$tmp/library.o"
# links WHAT WANTED OPTIONS: which of the two benchmarks are listed
links() {
    what=$1 want=$2 && shift 2
    check "$what: links" $CC -std=c11 -O1 -I. "$@" $libs -o "$tmp/user" || return
    run "$tmp/user" --list-ops
    check_same "$what" "$(grep -oE 'in_library|by_hand' "$out" | sort -u | tr '\n' ' ')" "$want"
}
as_it_says=$(grep -oE -e '-Wl,--whole-archive [^`]*--no-whole-archive' README.md)
links "a static library, as it is" "" "$tmp/user.c" "$tmp/kbench.o" -L"$tmp" -lbenchmarks
links "a static library, as README.md links it" "in_library " "$tmp/user.c" "$tmp/kbench.o" -L"$tmp" ${as_it_says:-no_such_line}
links "a static library, one kb_add" "by_hand in_library " -DADD "$tmp/user.c" "$tmp/kbench.o" -L"$tmp" -lbenchmarks

# options it names exist, also those that --help of a build without CUDA leaves out
for o in $(grep -oE '(^|[^-a-zA-Z0-9])--[a-z][-a-z]*' README.md | grep -oE -e '--[a-z][-a-z]*' | sort -u); do
    case $o in --query-gpu | --format | --recursive | --whole-archive | --no-whole-archive) continue ;; esac # other programs' options
    run "$tmp/cases" --list "$o"
    check_not_err "README.md names $o" 'unknown option'
done
# make targets it names exist
for t in $(grep -oE 'make [a-z][-a-z]*' README.md | sed 's/make //' | sort -u); do
    if grep -qE "^$t:" Makefile; then pass; elif grep -qE "^\.PHONY:.* $t( |\$)" Makefile; then pass; else
        case $t in sure | it | a | the | and) ;; *) fail "README.md says 'make $t', which the Makefile does not have" ;; esac
    fi
done
# files it names exist
for f in $(grep -oE '(examples|tests)/[a-zA-Z0-9_./]+[a-zA-Z0-9]' README.md | sort -u); do
    if [ -e "$f" ]; then pass; else fail "README.md names $f, which is not there"; fi
done
finish
