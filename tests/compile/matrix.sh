#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Compiles the headers with gcc and clang, C11 to C17 and C++11 to C++20, warnings as errors; links and runs the
# programs. "make test" uses only the oldest C, the oldest C++ and the newest C++ standard, and builds each program
# in one way.
# takes long
. tests/lib.sh

checked="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2" # as compilers of some distributions do unasked
strict="-Wall -Wextra -Wpedantic -Werror -I. -Itests"
here=tests/compile
short="--iters 5 --warmup 1 --no-progress"
works() { echo 'int main(void) { return 0; }' > "$tmp/try.$1" && shift && "$@" -o "$tmp/try" > /dev/null 2>&1; }
compilers_c= compilers_cxx=
for c in gcc clang; do if have $c && works c $c "$tmp/try.c"; then compilers_c="$compilers_c $c"; else skip "no $c on this machine"; fi; done
for c in g++ clang++; do if have $c && works cc $c "$tmp/try.cc"; then compilers_cxx="$compilers_cxx $c"; else skip "no $c on this machine"; fi; done
[ -n "$compilers_c" ] || compilers_c=$CC
cc1=${compilers_c# } && cc1=${cc1%% *}
cxx1=${compilers_cxx# } && cxx1=${cxx1%% *}
kernels=
if [ -f kbench_kernels.cuh ]; then kernels=kernels.c; else skip "kbench_kernels.cuh does not exist"; fi

# --- syntax and warnings: every standard, with and without the implementation
if everything; then
    standards_c="c11 c17 gnu11 gnu17" standards_cxx="c++11 c++14 c++17 c++20" files="api.c impl.c order.c $kernels" plain=plain.c
else
    standards_c=c11 standards_cxx=c++11 files="api.c $kernels" plain= # the implementation: below, with more warnings
fi
for c in $compilers_c; do
    for std in $standards_c; do
        for file in $files $plain; do
            check "$c $std $file" $c -std=$std $strict -fsyntax-only $here/$file
        done
        everything || [ $c = clang ] || continue # clang is four times as fast as gcc
        late="$c $std, the user's headers first"
        case $std in
        gnu*) check "$late" $c -std=$std $strict -DLATE -fsyntax-only $here/impl.c ;;
        *) run $c -std=$std $strict -DLATE -fsyntax-only $here/impl.c && check_err "$late" 'error: .*include kbench.h first' ;;
        esac
    done
done
for c in $compilers_cxx; do
    if ! everything && [ $c = clang++ ]; then standards_cxx=c++20; fi
    for std in $standards_cxx; do
        for file in $files; do
            check "$c $std $file" $c -x c++ -std=$std $strict -fsyntax-only $here/$file
        done
        ! everything || check "$c $std cpp_interface.cpp" $c -std=$std $strict -fsyntax-only $here/cpp_interface.cpp
        everything || [ $c = clang++ ] || continue
        check "$c $std, the user's headers first" $c -x c++ -std=$std $strict -DLATE -fsyntax-only $here/impl.c
    done
done

# --- stricter warnings of some projects
for c in $compilers_c; do
    everything || [ $c = "$cc1" ] || continue
    ! everything || check "$c, -Wconversion" $c -x c -std=c11 $strict -Wconversion -Wshadow -DKBENCH_IMPLEMENTATION -fsyntax-only kbench.h
    check "$c, -Wconversion, add-ons" $c -std=c11 $strict -Wconversion -Wshadow -fsyntax-only $here/impl.c
done
for c in $compilers_cxx; do
    everything || [ $c = "${compilers_cxx##* }" ] || continue
    ! everything || check "$c, -Wconversion" $c -x c++ -std=c++11 $strict -Wconversion -Wshadow -DKBENCH_IMPLEMENTATION -fsyntax-only kbench.h
    check "$c, -Wconversion, add-ons" $c -x c++ -std=c++11 $strict -Wconversion -Wshadow -fsyntax-only $here/impl.c
done

plainly=-O1 sources=$here rest=
if ! everything; then
    plainly=-O0 sources=$tmp
    . tests/cli/kit.lib
    alone && rest=$kit/plain.o
    for file in two_a.c two_b.c order.c cpp_interface.cpp; do sed '/^#define KBENCH_IMPLEMENTATION$/d' $here/$file > "$tmp/$file"; done
fi

# --- some warnings appear only with optimisation, so programs are compiled with it; each program also runs
for c in $compilers_c; do
    everything || break # "make test" builds this program only below, with its own allocator
    for options in "-std=c11 -O0" "-std=gnu11 -O2 -DLATE" "-std=c17 -O3" "-std=gnu11 -O2 $checked"; do
        check "$c $options" $c $options $strict $here/impl.c -o "$tmp/impl" $libs || continue
        run "$tmp/impl" $short
        check_rc "$c $options runs" 0
        check_out "$c $options prints the operation" sum
    done
done
for c in $compilers_cxx; do
    everything || [ $c = "$cxx1" ] || continue
    for options in "-std=c++11 -O2" "-std=gnu++17 -O1 $checked"; do
        everything || [ "$options" = "-std=c++11 -O2" ] || continue
        everything || options="-std=c++11 -O0 -w"
        check "$c $options cpp_interface.cpp" $c $options $strict $sources/cpp_interface.cpp $rest -o "$tmp/cpp_interface" $libs || continue
        run "$tmp/cpp_interface" $short
        check_rc "$c $options: lambda, kb_open and a registered body" 0
    done
done

# --- macros exclude element types and operations from the compilation
if [ -n "$kernels" ] && everything; then
    for type in bf16 f32 f16; do
        check "suite in $type alone" $cc1 -O1 -DKBK_TYPES=$type -I. -x c examples/suite.cu -o "$tmp/suite" $libs || continue
        "$tmp/suite" --list-ops > "$tmp/ops"
        check_same "suite in $type alone: types listed" "$(grep -ow 'f32\|f16\|bf16' "$tmp/ops" | sort -u)" "$type"
        check_same "suite in $type alone: softmax" "$(grep -c '^softmax fwd bwd ' "$tmp/ops")" 1
    done
fi

# --- programs of several files link in every order of the files
names="first second third fourth"
listed() { "$1" --list-ops 2> /dev/null | awk 'NF && $1 !~ /:$/ { print $1 }' | awk '!seen[$0]++' | tr '\n' ' '; }
for lto in "" -flto; do
    if [ -n "$lto" ]; then
        everything || continue
        works c $cc1 -flto "$tmp/try.c" || { skip "$cc1 has no -flto" && continue; }
    fi
    for file in two_a two_b; do check "$file.c $lto" $cc1 -std=c11 $plainly $lto -I. -c $sources/$file.c -o "$tmp/$file.o"; done
    for pair in "two_a.o two_b.o" "two_b.o two_a.o"; do
        set -- $pair
        check "two files $lto: $pair" $cc1 $plainly $lto "$tmp/$1" "$tmp/$2" $rest -o "$tmp/two" $libs || continue
        check_same "two files $lto: $pair, the order listed" "$(listed "$tmp/two")" "$names "
    done
    check "order.c $lto" $cc1 -std=c11 $plainly $lto -I. $sources/order.c $rest -o "$tmp/order" $libs || continue
    check_same "order.c $lto" "$(listed "$tmp/order")" "zebra memcpy strlen c b a pair alone sized "
    cases=$("$tmp/order" --list 2> /dev/null | grep -o '^[a-z]*.*impl=[a-z]*' | sed 's,/impl=,:,; s,/.*,,' | tr '\n' ' ')
    check_same "order.c $lto, cases" "$cases" \
        "zebra:default zebra:late memcpy:default strlen:printf c:default b:default a:default pair:one pair:two alone:bare sized:default sized:default sized:other "
    check_same "order.c $lto, axes of KBENCH" "$("$tmp/order" --list --op sized 2> /dev/null | tr '\n' ' ')" \
        "sized/impl=default/dtype=f32/n=1 sized/impl=default/dtype=f32/n=3 sized/impl=other/n=1 "
done

# --- C and C++ in one program, with the implementation in C and in C++
if [ -n "$cxx1" ]; then
    for how in "c c" "c c++" "c++ c" "c++ c++"; do
        everything || [ "$how" = "c c++" ] || continue
        set -- $how
        $cxx1 -x $1 $plainly -I. -c $here/api.c -o "$tmp/api.o" 2> "$tmp/check" &&
            $cxx1 -x $2 $plainly -I. -c $here/uses_api.c -o "$tmp/uses.o" 2>> "$tmp/check"
        check "API as $1, implementation as $2" $cxx1 "$tmp/api.o" "$tmp/uses.o" -o "$tmp/mixed" $libs || continue
        run "$tmp/mixed"
        check_rc "API as $1, implementation as $2, runs" 0
    done
    if [ -n "$kernels" ] && everything; then
        check "kbench_kernels.cuh twice, C" $cc1 -std=c11 $strict -DSECOND -c $here/kernels.c -o "$tmp/k2.o" &&
            check "kbench_kernels.cuh twice, C, linked" $cc1 -std=c11 $strict $here/kernels.c "$tmp/k2.o" -o "$tmp/k" $libs
        check "kbench_kernels.cuh twice, C++" $cxx1 -x c++ -std=c++11 $strict -DSECOND -c $here/kernels.c -o "$tmp/k2.o" &&
            check "kbench_kernels.cuh twice, C++, linked" $cxx1 -std=c++11 $strict -x c++ $here/kernels.c -x none "$tmp/k2.o" -o "$tmp/k" $libs
    fi
else
    skip "no C++ compiler: a program of C and C++ files is not tested"
fi

# --- a program that replaces the allocator must define all three functions, or none
own="$cc1 -std=gnu11 -O2 $strict"
everything || own="$LEAN_CC -std=gnu11 -O0 -w -I. -Itests"
check "own allocator" $own -DOWN_MALLOC $here/impl.c -o "$tmp/own" $libs && {
    run "$tmp/own" $short
    check_rc "own allocator runs" 0
    check_not_out "own allocator is used" "not used"
    run "$tmp/own" $short --no-isolate
    check_rc "own allocator, one process" 0
    # at most two blocks stay allocated: the registered name and the command line
    check_not_err "everything is given back" "own malloc: ([3-9]|[0-9][0-9])"
}
if $cc1 -DOWN_MALLOC -DONLY_MALLOC -I. -fsyntax-only $here/impl.c 2> "$tmp/check"; then
    fail "KBENCH_MALLOC alone was accepted"
elif grep -q 'KBENCH_MALLOC, KBENCH_REALLOC and KBENCH_FREE' "$tmp/check"; then
    pass
else
    fail "KBENCH_MALLOC alone: the error does not name the three macros: $(head -n 2 "$tmp/check")"
fi

# --- a program for the sanitizers
if ! everything; then
    :
elif works c $cc1 -fsanitize=address,undefined "$tmp/try.c"; then
    check "sanitizers" $cc1 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined $strict $here/impl.c -o "$tmp/asan" $libs && {
        run "$tmp/asan" $short
        check_rc "ASan and UBSan find nothing" 0
        check_not_err "ASan and UBSan find nothing" "sanitizer|runtime error"
        run "$tmp/asan" $short --no-isolate --json "$tmp/asan.json" --jsonl "$tmp/asan.jsonl"
        check_rc "ASan and UBSan find nothing, one process" 0
    }
else
    skip "$cc1 has no -fsanitize=address,undefined here"
fi

# --- nvcc, as a user calls it, with warnings as errors (without pedantic, which nvcc's generated code does not pass)
if [ -n "$NVCC" ]; then
    optimised=-O3
    cuda=$(dirname "$(command -v "$NVCC")")/..
    program=$here/host_and_gpu.cu
    if ! everything; then
        optimised=-O0 rest=$kit/cuda.o program=$tmp/host_and_gpu.cu
        cuda_object "$cuda/include"
        sed '/^#define KBENCH_IMPLEMENTATION$/d' $here/host_and_gpu.cu > "$program"
    fi
    strict_cuda="$optimised -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I."
    ! everything || check "nvcc five_lines.cu" $NVCC $strict_cuda -c $here/five_lines.cu -o "$tmp/nvcc.o"
    ! everything || check "nvcc, as distributions have it" $NVCC $strict_cuda -Xcompiler -U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=2 -c $here/five_lines.cu -o "$tmp/nvcc.o"
    check "nvcc host_and_gpu.cu" $NVCC $strict_cuda $program $rest -o "$tmp/mixed" &&
        if nvidia-smi -L 2> /dev/null | grep -q '^GPU '; then
            run "$tmp/mixed" $short
            check_rc "host and GPU work" 0
        else
            run "$tmp/mixed" $short
            check_rc "no GPU: the host part is measured" 0
            check_out "no GPU: the host part is measured" 'host_part +[0-9]+'
            check_out "no GPU: the rest is skipped" 'gpu_part +skipped'
            check_out "no GPU: it says why" '(no|without|needs).*GPU|GPU.*(no|not|none|without)|driver'
            run "$tmp/mixed" $short --op gpu_part
            check_rc "no GPU, and every case needs one" 77
            run "$tmp/mixed" $short --device 0
            check_rc "no GPU, and one asked for" 77
            check_err "no GPU, and one asked for" 'GPU|driver'
            run "$tmp/mixed" --list
            check_rc "no GPU: --list" 0
            check_out "no GPU: --list" 'gpu_part'
            check_same "no GPU: --list is silent" "$(cat "$err")" ""
        fi
    everything || finish
    check "nvcc, API only" $NVCC -x cu $strict_cuda -c $here/api.c -o "$tmp/nvcc.o"
    check "extern launcher: the kernel" $NVCC -O3 -c $here/extern_launch.cu -o "$tmp/launch.o"
    check "extern launcher: the C file" $cc1 -std=c11 -O2 $strict -DKBENCH_CUDA -I"$cuda/include" -c $here/extern.c -o "$tmp/extern.o" &&
        check "extern launcher: linked" $NVCC "$tmp/extern.o" "$tmp/launch.o" -o "$tmp/extern" && {
        run "$tmp/extern" $short
        if [ $rc -eq 77 ]; then
            check_out "without a GPU it says so" "skipped|GPU"
            run "$tmp/extern" --list
            check_rc "it lists without a GPU" 0
            check_out "it lists without a GPU" halve_from_c
        else
            check_rc "extern launcher runs" 0
        fi
    }
else
    skip "no nvcc: the five-line program and the extern launcher are not compiled"
fi
finish
