#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the documents: README.md is short; the programs in the documents compile and run as printed; the files,
# options, functions and flags that the documents name exist.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

documents="README.md examples/README.md examples/addons/README.md examples/python/README.md tests/README.md
    tests/MEASUREMENT.md tests/evidence/README.md"
for d in $documents; do if [ ! -f "$d" ]; then fail "$d does not exist" && finish; fi; done
python=
for p in python3 python; do if [ -z "$python" ] && have $p && $p -c 'import json' > /dev/null 2>&1; then python=$p; fi; done

# --- lengths
words=$(wc -w < README.md)
if [ "$words" -le 1200 ]; then pass; else fail "README.md has $words words, bound 1200"; fi
for command in "make run" "make test"; do
    check "README.md names $command" grep -q "^    $command  " README.md
done
words=$(wc -w < tests/MEASUREMENT.md)
if [ "$words" -le 3000 ]; then pass; else fail "tests/MEASUREMENT.md has $words words, bound 3000"; fi
for d in $documents; do
    # the table that kbench_kernels.py --summary prints may have longer lines (tests/cli/python/kernels.py)
    long=$(awk '/^\| operation \| rows \|/ { made = 1 } !/^\|/ { made = 0 } length > 120 && !made { print FNR; exit }' "$d")
    if [ -z "$long" ]; then pass; else fail "$d, line $long: over 120 columns"; fi
done

# --- fenced blocks: NAME-N.LANGUAGE of each document; those of c, cpp or cu with a main or a KBENCH_MAIN are programs
for d in $documents; do
    name=$(echo "$d" | tr '/' '_')
    awk -v dir="$tmp" -v name="${name%.md}" '
        /^```/ { if (out) { close(out); out = ""; next } lang = substr($0, 4); sub(/ .*/, "", lang)
                 if (lang == "c++") lang = "cpp"; if (lang == "cuda") lang = "cu"; if (lang == "") lang = "text"
                 out = dir "/" name "-" ++n "." lang; printf "" > out; next }
        out { print > out }' "$d"
done
level=-O1 kind=Release
everything || { level=-O0 kind=Debug; } # the programs are short: most of the time goes into kbench's own code
programs=0
for f in "$tmp"/*-[0-9]*.c "$tmp"/*-[0-9]*.cpp "$tmp"/*-[0-9]*.cu; do
    [ -f "$f" ] || continue
    name=$(basename "$f")
    if ! grep -qE 'KBENCH_MAIN|int main' "$f"; then
        sed 's/^ *//; s/ *$//; /^$/d' "$f" > "$tmp/lines"
        missing=$(while IFS= read -r line; do cat examples/*.c examples/*.cu | sed 's/^ *//' | grep -qxF -e "$line" || echo "$line"; done < "$tmp/lines")
        check_same "$name: lines that no example has" "$missing" ""
        continue
    fi
    programs=$((programs + 1))
    case $f in
    *.c)
        check "$name compiles" $LEAN_CC -std=c11 $level -Wall -Wextra -Werror -I. -Iexamples/addons "$f" -o "$tmp/program" $libs || continue
        run "$tmp/program" --fast --no-progress
        check_rc "$name runs" 0
        ;;
    *.cpp)
        if ! have $CXX; then skip "$name: no C++ compiler" && continue; fi
        check "$name compiles" $LEAN_CXX -std=c++11 $level -Wall -Wextra -Werror -I. -Iexamples/addons "$f" -o "$tmp/program" $libs || continue
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
if [ $programs -ge 2 ]; then pass; else fail "the documents have $programs programs in fences marked c, c++ or cuda"; fi
# the first program is examples/01_first.cu, except for its comments and line breaks
bare() { sed 's,//.*,,' "$1" | tr '\n' ' ' | sed 's,/\*[^*]*\*/,,g' | tr -d ' '; }
check_same "README.md's first program and examples/01_first.cu" "$(bare "$tmp/README-1.cu")" "$(bare examples/01_first.cu)"

# --- Python: every fenced block is a program; the programs that need neither PyTorch nor a GPU run
cat > "$tmp/cases.c" << 'EOF'
#include <string.h>
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
program cases "$tmp/cases.c"
block=$(grep -l 'open("results\.json")' "$tmp"/*-[0-9]*.python 2> /dev/null | head -n 1)
# reads WHAT WANTED COUNT FILTER: runs the document's Python lines on the records that FILTER selects. The lines
# must print WANTED. COUNT of the records must have no time.
reads() {
    run "$tmp/cases" --fast --no-progress --json "$tmp/results.json" "$4"
    check_same "$1: records without a time" "$(grep -oE '"time_ms": *null' "$tmp/results.json" | wc -l | tr -d ' ')" "$3"
    run sh -c "cd '$tmp' && $python '$(basename "$block")'"
    check_rc "the lines of Python on $1" 0
    check_same "the lines of Python on $1" "$(cat "$out")" "$2"
}
if [ -z "$block" ]; then
    fail "no document reads results.json in a fence marked python"
elif [ -z "$python" ]; then
    skip "no python3: the documents' lines of Python are not run"
else
    for f in "$tmp"/*-[0-9]*.python; do check "$(basename "$f") is Python" $python -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$f"; done
    reads "a case each that is fine, wrong, skipped" fine 2 '^(layernorm|other)'
    reads "a wrong and a skipped case alone" "no time" 2 'impl=(wrong|skipped)'
    reads "another operation" "no time" 0 '^other'
    # examples/README.md must document each key of a record whose value is an object or a list
    run "$tmp/cases" --fast --no-progress --json "$tmp/results.json"
    run $python -c 'import json, sys
names = set(k for r in json.load(open(sys.argv[1])) for k, v in r.items() if isinstance(v, (dict, list)))
print(" ".join(sorted(names)))' "$tmp/results.json"
    check_same "the values that are objects or lists" "$(cat "$out")" "counter_units counters environment flags params process_ms samples_ms"
    for key in counter_units counters environment flags params process_ms samples_ms; do if grep -q "\`$key\`" examples/README.md; then pass; else fail "examples/README.md does not say what $key is"; fi; done
    if everything && $python -c 'import sys; sys.exit(sys.version_info < (3, 8))'; then
        PYTHON=$python && python # kit.lib sets where kbench.py keeps its library
        for f in "$tmp"/*-[0-9]*.python; do
            if grep -q '^import.* kbench$' "$f" && ! grep -q torch "$f"; then
                run sh -c "cd '$tmp' && PYTHONPATH='$PWD/examples/python' $python '$(basename "$f")'"
                check_rc "$(basename "$f") runs" 0
            fi
        done
    fi
fi

# --- CMake
block=$(ls "$tmp"/README-*.cmake 2> /dev/null | head -n 1)
# cmake_builds LANGUAGES FILE OPTIONS: builds and runs a CMake project of README.md's lines and FILE
cmake_builds() {
    dir=$tmp/cmake_${2#*.} source=$2
    mkdir -p "$dir/third_party"
    cp kbench.h "$dir/third_party"
    { printf 'cmake_minimum_required(VERSION 3.10)\nproject(user %s)\n' "$1" && sed "s/bench\.c/$2/" "$block"; } > "$dir/CMakeLists.txt"
    case $2 in *.cu) cp tests/compile/five_lines.cu "$dir/$2" ;; *) cp tests/compile/plain.c "$dir/$2" ;; esac
    shift 2
    check "README.md's CMake configures for $source" cmake -S "$dir" -B "$dir/build" -DCMAKE_BUILD_TYPE=$kind "$@" || return
    check "README.md's CMake builds $source" cmake --build "$dir/build" || return
    run "$dir/build/bench" --list
    check_rc "README.md's CMake: $source lists" 0
}
if [ -z "$block" ]; then
    fail "README.md has no fence marked cmake"
elif ! have cmake; then
    skip "no cmake: README.md's lines of CMake are not run"
else
    cmake_builds C bench.c "-DCMAKE_C_COMPILER=$LEAN_CC"
    if [ -z "$NVCC" ]; then
        skip "no nvcc: README.md's lines of CMake are not run for a .cu file"
    elif everything; then
        cmake_builds "C CUDA" bench.cu "-DCMAKE_C_COMPILER=$LEAN_CC" "-DCMAKE_CUDA_COMPILER=$(command -v "$NVCC")"
    fi
fi

# --- a static library of benchmarks that no code calls: linked as examples/README.md says, or through a kb_add
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
alone
build "library.c" $CC -std=c11 -O1 -I. -c "$tmp/library.c" -o "$tmp/library.o"
build "a static library" ar rcs "$tmp/libbenchmarks.a" "$tmp/library.o"
# links WHAT WANTED OPTIONS: a program linked with OPTIONS must list the benchmarks WANTED
links() {
    what=$1 want=$2 && shift 2
    check "$what: links" $CC -std=c11 -O1 -I. "$@" $libs -o "$tmp/user" || return
    run "$tmp/user" --list-ops
    check_same "$what" "$(grep -oE 'in_library|by_hand' "$out" | sort -u | tr '\n' ' ')" "$want"
}
as_it_says=$(grep -oE -e '-Wl,--whole-archive [^`]*--no-whole-archive' examples/README.md)
links "a static library, as it is" "" "$tmp/user.c" "$kit/plain.o" -L"$tmp" -lbenchmarks
links "a static library, as examples/README.md links it" "in_library " "$tmp/user.c" "$kit/plain.o" -L"$tmp" ${as_it_says:-no_such_line}
links "a static library, one kb_add" "by_hand in_library " -DADD "$tmp/user.c" "$kit/plain.o" -L"$tmp" -lbenchmarks

# --- the printed commands that compile kbench once (with CUDA's headers if installed), and a program for each of them
if everything && [ -n "$(cuda_headers)" ]; then
    for d in README.md examples/addons/README.md; do
        line=$(sed -n '/^    cc -O2 -x c -DKBENCH_IMPLEMENTATION/{:a;/\\$/{N;s/\\\n */ /;ba;};p;q;}' $d | sed "s,/usr/local/cuda/include,$(cuda_headers),; s,-o kbench.o,-o $tmp/once.o,; s,^ *cc ,$CC ,")
        check "$d: kbench.o" sh -c "${line:-false}"
        check "$d: kbench.o without CUDA" sh -c "$(echo "${line:-false}" | sed 's/-DKBENCH_CUDA//')"
        check "$d: links with kbench.o" $CC -O1 -I. tests/cli/sample_program.c "$tmp/once.o" -o "$tmp/once" $libs
        run "$tmp/once" --list
        check_rc "$d: a program with kbench.o lists" 0
    done
fi

# --- files, options, functions and flags that the documents name must exist
find . -path ./build -prune -o -type f -print > "$tmp/files"
# known OPTION: whether the kit has this option (cached)
: > "$tmp/known"
: > "$tmp/unknown"
known() {
    if grep -qxF -e "$1" "$tmp/known"; then return 0; fi
    if grep -qxF -e "$1" "$tmp/unknown"; then return 1; fi
    run "$tmp/cases" --list "$1"
    if grep -q 'unknown option' "$err"; then echo "$1" >> "$tmp/unknown" && return 1; fi
    echo "$1" >> "$tmp/known"
}
# scripts DOCUMENT: lists the programs that the document names. The document may also name options of these
# programs.
scripts() { grep -ohE '(tests|examples|gpu|cpu|cli)/[a-z_/]+\.(py|sh|cu)' "$1" | sort -u | while read -r f; do ls "$f" "tests/$f" 2> /dev/null; done; }
for d in $documents; do
    for o in $(grep -oE '(^|[^-a-zA-Z0-9])--[a-z][-a-z]*' $d | grep -oE -e '--[a-z][-a-z]*' | sort -u); do
        case $o in --whole-archive | --no-whole-archive) continue ;; esac # the linker's
        if known "$o"; then pass && continue; fi
        case $d in
        tests/evidence/*) if grep -qF -e "\"$o\"" tests/gpu/hopper.cu tests/gpu/e4m3.cu; then pass && continue; fi ;;
        examples/python/*) if grep -qF -e "\"$o\"" examples/python/*.py; then pass && continue; fi ;;
        esac
        if grep -qF -e "$o" $(scripts $d) /dev/null; then pass; else fail "$d names $o, which no program has"; fi
    done
    for t in $(grep -oE '(^ *|`|&& |run: )make [a-z][-a-z]*' $d | sed 's/.*make //' | sort -u); do
        if grep -qE "^$t:" Makefile || grep -qE "^\.PHONY:.* $t( |\$)" Makefile; then pass; else fail "$d says 'make $t', which the Makefile does not have"; fi
    done
    for f in $(grep -oE '(examples|tests)/[a-zA-Z0-9_./]+[a-zA-Z0-9]' $d | grep -v NAME | sort -u); do
        if [ -e "$f" ] || [ -e "$f.cu" ] || [ -e "$(dirname $d)/$f" ]; then pass; else fail "$d names $f, which does not exist"; fi
    done
    for f in $(sed '/^```/,/^```/d' $d | grep -oE '\]\([^)#]*' | sed 's/](//' | sort -u); do
        if [ -e "$(dirname $d)/$f" ]; then pass; else fail "$d links to $f, which does not exist"; fi
    done
    for f in $(grep -oE '`[a-z0-9_/]+\.(cu|c|cuh|h|py|sh|txt|svg|png|sbatch|html)`' $d | tr -d '`' | sort -u); do
        case $f in bench.c | bench.cu | one.cu) continue ;; esac # the user's
        if grep -qF "/$f" "$tmp/files"; then pass; else fail "$d names $f, which does not exist"; fi
    done
    for n in $(grep -oE '\b(kb|KB|KBENCH|KBI|KBK|kbi)_[A-Za-z_]+[A-Za-z]' $d | sort -u); do
        if grep -qw -e "$n" kbench.h kbench_kernels.cuh; then pass; else fail "$d names $n, which no header has"; fi
    done
    for n in $(grep -oE '`[a-z]+(_[a-z]+)+`' $d | tr -d '`' | sort -u); do
        if [ "$n" = samples_ns ]; then continue; fi # an example of a name
        if grep -qw -e "$n" kbench.h kbench_kernels.cuh examples/addons/*.h examples/python/*.py tests/lib.sh tests/test.h; then pass; else fail "$d names $n, which no source has"; fi
    done
    for n in $(grep -oE '\bkbench\.[a-z_]+[a-z]' $d | grep -vxE 'kbench\.(h|o|c|py|svg|kernels)' | sed 's/kbench\.//' | sort -u); do
        if grep -qE "^(def|class) $n\b|^    \"$n\",$" examples/python/kbench.py; then pass; else fail "$d names kbench.$n, which kbench.py does not have"; fi
    done
done
for n in $(sed -n '/^| flag /,/^$/s/^| \([A-Z_]*\) |.*/\1/p' README.md); do
    if grep -qE "^    x\($n, |^    x\([A-Z_]+, WARN, \"$n\"" kbench.h; then pass; else fail "README.md explains $n, which is no flag"; fi
done

# --- the simulated shares in tests/MEASUREMENT.md are those that host/interval_coverage.c prints
if everything; then
    build "interval_coverage.c" $CC -O2 -I. -Itests tests/host/interval_coverage.c -o "$tmp/coverage" $libs
    run "$tmp/coverage" -v
    sed 's/  */ /g' "$out" > "$tmp/shares"
    # shares NAME PATTERN: the simulation must print a line that matches PATTERN
    shares() { if grep -qE -e "$2" "$tmp/shares"; then pass; else fail "tests/MEASUREMENT.md: $1 is not what the simulation says"; fi; }
    sed -n 's/ %//g; s/^| \(independent, normal\|autocorrelation 0\.[69]\|half noise, .*\|slow bursts\) | \([0-9]*\) | \([0-9.]*\) | \([0-9.]*\) |$/\1@\2 \3 \4/p' tests/MEASUREMENT.md |
        sed 's/^independent, normal/ normal/; s/^autocorrelation/ AR(1)/; s/^half noise, half autocorrelation/ half AR(1)/; s/^slow/ slow/; s/[().]/\\&/g; s/@/ /' > "$tmp/rows"
    check_same "tests/MEASUREMENT.md: rows of intervals" "$(wc -l < "$tmp/rows" | tr -d ' ')" 5
    while IFS= read -r row; do shares "$row" "^$row "; done < "$tmp/rows"
    sed -n 's/ %//g; s/^| \(independent\|drift of 3\|step of 2 in the clock\|autocorrelation 0\.6 .*\) | \([0-9.]*\) | \([0-9.]*\) | \([0-9.]*\) |$/\1@ 1 % 1 \2 \3 [0-9.]* [0-9.]* [0-9.]* \4/p' tests/MEASUREMENT.md |
        sed 's/^independent/ normal/; s/^drift of 3/ drift of 3 %/; s/^step of 2 in the clock/ step of 2 %/; s/^autocorrelation 0.6[^@]*/ rounds AR\\(1\\) 0.6/; s/@//' > "$tmp/rows"
    check_same "tests/MEASUREMENT.md: rows of comparisons" "$(wc -l < "$tmp/rows" | tr -d ' ')" 4
    while IFS= read -r row; do shares "$row" "^$row\$"; done < "$tmp/rows"
    shares "the error of the bias" '^ normal, n 100 0\.20 % 96\.9 82\.0$'
fi
finish
