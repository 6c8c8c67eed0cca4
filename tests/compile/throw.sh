#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests C++ benchmark functions that throw. The record of the failed case contains the exception, and all other
# cases are measured.
. tests/lib.sh
. tests/cli/kit.lib

here=tests/compile
if ! have $CXX; then skip "no C++ compiler" && finish; fi
of() { sed -n "s,.*\"name\": *\"$1\".*,&,p" "$tmp/all.jsonl"; }
# threw WHAT NAME MESSAGE: the case must fail with CRASHED and this message
threw() {
    case $(of "$2") in
    *'"status":"failed"'*'CRASHED'*"\"message\":\"$3"*) pass ;;
    *) fail "$1, $2: not '$3': $(of "$2" | grep -o '"status".*"message":"[^}]*' | cut -c 1-300)" ;;
    esac
}
fine() {
    case $(of "$2") in *'"status":"ok"'*) pass ;; *) fail "$1, $2 was not measured: $(of "$2" | cut -c 1-300)" ;; esac
}
try() { # WHAT OPTIONS...
    what=$1 && shift
    rm -f "$tmp/all.jsonl"
    run "$tmp/throw" --iters 4 --warmup 1 --no-progress --jsonl "$tmp/all.jsonl" "$@"
    check_rc "$what" 1
    sed -i.bak 's/": /":/g; s/, "/,"/g' "$tmp/all.jsonl"
    threw "$what" throws/impl=before 'C++ exception: before \"the\" block'
    threw "$what" throws/impl=inside 'C++ exception: inside the block"'
    threw "$what" throws/impl=late 'C++ exception: in the 200th pass"'
    threw "$what" throws/impl=after 'C++ exception: after the block"'
    threw "$what" throws/impl=in_sample 'C++ exception: std::bad_alloc"'
    threw "$what" throws/impl=text 'C++ exception: a text"'
    threw "$what" throws/impl=number 'C++ exception that is no std::exception"'
    case $(of throws/impl=twice) in
    *'"flags":["BAD_CASE"]'*'"message":"failed first"'*) pass ;;
    *) fail "$what, throws/impl=twice: not the first word alone: $(of throws/impl=twice | cut -c 1-300)" ;;
    esac
    threw "$what" added/impl=default 'C++ exception: from a table"'
    for name in first caught last; do fine "$what" throws/impl=$name; done
    case $(of leaves/impl=default) in *LEFT_EARLY*) pass ;; *) fail "$what: break is not LEFT_EARLY" ;; esac
    check_not_err "$what: no worker died" 'worker|signal'
}

alone
build "kbench.o as C, throw.cpp" $CXX -std=c++11 -O1 -Wall -Wextra -Wpedantic -Werror -I. $here/throw.cpp "$kit/plain.o" -o "$tmp/throw" $libs
try "kbench.o as C"
everything || finish
try "kbench.o as C, one process" --no-isolate
build "one file" $CXX -std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror -DKBENCH_IMPLEMENTATION -I. $here/throw.cpp -o "$tmp/throw" $libs
try "one file"

# --- the engine learns of the exception before destructors run
for options in "-std=c++11 -O0" "-std=c++17 -O2"; do
    check "early_exit.cpp, $options" $CXX $options -Wall -Wextra -Werror -I. -Itests $here/early_exit.cpp -o "$tmp/leave" $libs &&
        check "early_exit.cpp, $options, runs" "$tmp/leave"
done

# --- with exceptions disabled, the header does not use them
for options in "-fno-exceptions" "-fno-rtti" "-fno-exceptions -fno-rtti"; do
    check "$options" $CXX -x c++ -std=c++11 -O2 -Wall -Wextra -Wpedantic -Werror $options -I. $here/plain.c -o "$tmp/plain" $libs &&
        run "$tmp/plain" --iters 3 --warmup 1 --no-progress
    check_rc "$options" 0
done
check "-fno-rtti, throw.cpp" $CXX -std=c++11 -O1 -Wall -Wextra -Werror -fno-rtti -I. $here/throw.cpp "$kit/plain.o" -o "$tmp/throw" $libs
if [ -n "$NVCC" ]; then
    cp $here/throw.cpp "$tmp/throw.cu" # nvcc compiles only that as CUDA
    check "nvcc throw.cpp" $NVCC -O1 -DKBENCH_IMPLEMENTATION -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. "$tmp/throw.cu" -o "$tmp/throw" &&
        try "through nvcc"
fi
finish
