#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Compiles the implementation once from the header itself, and programs that include only the API. Tests which
# combinations of object files link, which combinations must not link, and what the records say about the build.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

warn="-Wall -Wextra -Werror"
everything || warn= # compile/matrix tests the warnings
here=tests/compile
short="--iters 3 --warmup 1 --no-progress --quiet"
version=$(sed -n 's/^#define KBENCH_VERSION "\(.*\)"$/\1/p' kbench.h | tr . _)
cuda= cuda_names=
if [ -n "$NVCC" ]; then cuda=$(dirname "$(command -v "$NVCC")")/../include && cuda_names="c_cuda cxx_cuda"; else skip "no nvcc: kbench.o is not built with CUDA"; fi
names=c
if have $CXX; then names="c cxx"; else skip "no C++ compiler" && cuda_names=${cuda_names:+c_cuda}; fi

# --- kbench.o as C and as C++, with and without CUDA, without warnings. In make test only as C
made=$names
optimised=-O2
everything || { made=c cuda_names=${cuda_names:+c_cuda} optimised=-O1; }
for name in $made $cuda_names; do
    how= compiler="$CC -x c"
    case $name in cxx*) compiler="$CXX -x c++" ;; esac
    case $name in *_cuda) how="-DKBENCH_CUDA -I$cuda" ;; esac
    if [ -n "$how" ] && ! everything; then
        cuda_object "$cuda"
        cp "$kit/cuda.o" "$tmp/$name.o"
        continue
    fi
    build "kbench.o, $name" $compiler $optimised $warn -DKBENCH_IMPLEMENTATION $how -c kbench.h -o "$tmp/$name.o"
    check_same "kbench.o, $name: what the compiler says" "$(cat "$tmp/check")" ""
done

# --- programs of each language with each kbench.o
for name in $made; do
    for program in c cxx; do
        case $program in c) compiler="$CC -std=c11 -x c" ;; *) compiler="$CXX -std=c++11 -x c++" ;; esac
        case $names in *$program*) ;; *) continue ;; esac
        link=$CC && case $program$name in *cxx*) link=$CXX ;; esac
        check "$program program" $compiler -O2 $warn -Wpedantic -I. -c $here/split.c -o "$tmp/$program.program.o" &&
            check "$program program, kbench.o $name" $link "$tmp/$program.program.o" "$tmp/$name.o" -o "$tmp/program" $libs || continue
        run "$tmp/program" $short --json "$tmp/$program.json"
        check_rc "$program program, kbench.o $name" 0
        check_not_out "$program program, kbench.o $name" 'DEBUG_BUILD|not optimised|kbench:'
        check_same "$program program, kbench.o $name: cases" "$(grep -c '"status": *"ok"' "$tmp/$program.json")" 3
    done
done
cp $here/split.c "$tmp/split.cu" # with -x cu, nvcc would take kbench.o for source
for name in $cuda_names; do
    check "nvcc program, kbench.o $name" $NVCC -O3 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. "$tmp/split.cu" "$tmp/$name.o" \
        -o "$tmp/program" || continue
    run "$tmp/program" --list
    check_rc "nvcc program, kbench.o $name" 0
    check_out "nvcc program, kbench.o $name" '^on_gpu/impl=default'
    run "$tmp/program" $short --op registered --json "$tmp/cu.json"
    check_rc "nvcc program, kbench.o $name, its host part" 0
    case $name in c_cuda)
        check "C program of GPU work" $CC -O2 $warn -I. -DKBENCH_CUDA -c $here/split.c -o "$tmp/gpu.o" &&
            check "C program of GPU work, kbench.o $name" $NVCC "$tmp/gpu.o" "$tmp/$name.o" -o "$tmp/program"
        ;;
    esac
done

# --- the record has the build of the benchmark's file, or of both files if they differ
builds() { # WHAT WANTED: the line of each face, and the records of what was registered and added
    run "$tmp/program" $short --json "$tmp/build.json"
    check_rc "$1" 0
    check_same "$1: every face" "$(grep -E '^(kb_|its|a lambda)' "$out" | sed 's/^[a-z_ ]*: //' | sort -u)" "$2"
    check_same "$1: every record" "$(sed -n 's/.*"build": *"\([^"]*\)".*/\1/p' "$tmp/build.json" | sort -u)" "${2%, DEBUG_BUILD}"
    check_same "$1: flags" "$(grep -c DEBUG_BUILD "$tmp/build.json")" "$3"
}
words() { echo '__VERSION__' | $CC -E -P -x c - | tr -d '"' | sed 's/^[0-9]/gcc &/'; }
$CC -O0 -I. -c $here/split.c -o "$tmp/slow.o" && check "benchmarks at -O0" $CC "$tmp/slow.o" "$tmp/c.o" -o "$tmp/program" $libs &&
    builds "benchmarks at -O0" "$(words), not optimised; kbench: $(words), optimised, DEBUG_BUILD" 3
if everything && have $CXX; then
    run "$tmp/program" --version
    $CXX -x c++ -std=c++11 -O0 -I. -c $here/split.c -o "$tmp/slow.o" && check "C++ at -O0" $CXX "$tmp/slow.o" "$tmp/c.o" -o "$tmp/program" $libs &&
        builds "C++ at -O0" "$(words), not optimised; kbench: $(words), optimised, DEBUG_BUILD" 3
    check_out "other languages: kbench.o's own" "^other languages: $(words), optimised\$"
fi
everything && $CC -O0 -x c -DKBENCH_IMPLEMENTATION -c kbench.h -o "$tmp/slow.o" && check "kbench.o at -O0" $CC -O1 -I. $here/split.c "$tmp/slow.o" -o "$tmp/program" $libs &&
    builds "kbench.o at -O0" "$(words), optimised; kbench: $(words), not optimised" 0

# --- combinations that must not link, and the messages of the linker
refuses() { # WHAT SYMBOL COMMAND...
    what=$1 symbol=$2 && shift 2
    if "$@" -o "$tmp/wrong" > "$tmp/link" 2>&1; then
        fail "$what: linked"
    elif grep -qE "undefined (reference|symbol).*[^a-z_]$symbol([^a-zA-Z0-9_]|\$)" "$tmp/link"; then
        pass
    else
        fail "$what: the error does not name $symbol: $(head -n 3 "$tmp/link" | cut -c 1-300)"
    fi
}
mkdir -p "$tmp/other" && sed 's/^\(#define KBI_DEMAND.* kbench_[0-9]*\)_[0-9]*_/\1_987_/' kbench.h > "$tmp/other/kbench.h"
other=kbench_${version%%_*}_987_${version##*_}
for face in 1 2 3 4; do
    for options in -O0 -O3 "-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections"; do
        if ! everything; then case $options$face in -O0? | *sections*1) ;; *) continue ;; esac; fi
        refuses "another version, face $face, $options" $other $CC $options -DONLY=$face -I"$tmp/other" $here/split.c "$tmp/c.o" $libs
    done
    if have $CXX && { everything || [ $face = 1 ]; }; then
        refuses "another version, face $face, C++" $other $CXX -x c++ -O3 -DONLY=$face -I"$tmp/other" $here/split.c -x none "$tmp/c.o" $libs
    fi
done
if ! everything; then
    :
elif echo 'int main(void) { return 0; }' > "$tmp/try.c" && $CC -flto "$tmp/try.c" -o "$tmp/try" 2> /dev/null; then
    $CC -x c -O2 -flto -DKBENCH_IMPLEMENTATION -c kbench.h -o "$tmp/lto.o"
    refuses "another version, -flto" $other $CC -O3 -flto -I"$tmp/other" $here/split.c "$tmp/lto.o" $libs
    check "this version, -flto" $CC -O3 -flto -I. $here/split.c "$tmp/lto.o" $libs -o "$tmp/program"
else
    skip "$CC has no -flto"
fi
refuses "GPU work in C, kbench.o without CUDA" "kbench_${version}_built_with_KBENCH_CUDA" $CC -O2 -DKBENCH_CUDA -I. $here/split.c "$tmp/c.o" $libs
if [ -n "$NVCC" ]; then
    ! everything || refuses "nvcc, kbench.o without CUDA" "kbench_${version}_built_with_KBENCH_CUDA" $NVCC -O3 -I. "$tmp/split.cu" "$tmp/c.o"
    ! everything || check "nvcc, KBENCH_NO_CUDA, kbench.o without CUDA" $NVCC -O1 -DKBENCH_NO_CUDA -I. "$tmp/split.cu" "$tmp/c.o" -o "$tmp/program"
fi
echo '#include "kbench.h"
int main(void) { return 0; }' > "$tmp/nothing.c"
check "the API alone" $CC -O0 -I. "$tmp/nothing.c" -o "$tmp/nothing"
finish
