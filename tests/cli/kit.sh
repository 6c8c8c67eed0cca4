# SPDX-License-Identifier: MIT OR Unlicense
# kit.sh - the programs of the command-line tests. Source it behind tests/lib.sh. Compiling all of kbench takes seconds, so
# it is compiled once (kit.c) for all tests of a run, and each program is linked with it.
#   program NAME FILE [FLAGS...]    $tmp/NAME of a file that includes kbench.h and does not define KBENCH_IMPLEMENTATION
#   plain NAME FILE [FLAGS...]      the same without the add-ons and without the guarded memory of tests/guarded.h
#   reader                          $tmp/flat of tests/cli/flat.c, which checks and prints a file of records
#   tool NAME                       $tmp/NAME, the tool that reads records
#   virtual_gpu FILE                $tmp/FILE of tests/host/FILE.c, whose GPU is simulated; wants $include, the folder of CUDA's headers
#   suite                           $suite, examples/suite.cu as a C program
#   python                          exits with a skip where $PYTHON is none from 3.8 on; kbench.py builds its library once
# A program that needs internals, a sanitizer or macros before the include passes -DKBENCH_IMPLEMENTATION to build.

kit=$BUILD/test/kit
mkdir -p "$kit"
# made NAME COMMAND...: $kit/NAME, made by COMMAND... -o FILE when a source or the command is new. Tests that run side by
# side wait for the one that makes it.
made() {
    made_name=$1
    shift
    made_of="$(cat kbench.h tests/*.h tests/cli/*.h tests/cli/kit.c tests/cli/flat.c tests/host/*.h tests/host/cuda.c tests/host/inside.c examples/addons/* 2> /dev/null | cksum) $*"
    waited=0
    until [ "$(cat "$kit/$made_name.made" 2> /dev/null)" = "$made_of" ]; do
        if mkdir "$kit/$made_name.lock" 2> /dev/null; then
            echo $$ > "$kit/$made_name.lock/pid"
            check "$made_name" "$@" -o "$kit/$made_name.new" && mv "$kit/$made_name.new" "$kit/$made_name" && echo "$made_of" > "$kit/$made_name.made"
            rm -rf "$kit/$made_name.lock"
            [ -f "$kit/$made_name.made" ] || finish
        elif holder=$(cat "$kit/$made_name.lock/pid" 2> /dev/null) && ! kill -0 "$holder" 2> /dev/null; then
            rm -rf "$kit/$made_name.lock" # whoever made it was killed
        else
            waited=$((waited + 1))
            if [ $waited -gt 1200 ]; then fail "$kit/$made_name.lock is held by process $holder" && finish; fi
            sleep 0.1 2> /dev/null || sleep 1
        fi
    done
}
program() {
    made kit.o $CC -O1 -I. -Itests -c tests/cli/kit.c
    program_name=$1 program_file=$2
    shift 2
    build "$(basename "$program_file")${*:+, $*}" $CC -O1 -I. -Itests "$program_file" "$@" "$kit/kit.o" -o "$tmp/$program_name" $libs
}
plain() {
    made plain.o $CC -O1 -DPLAIN -I. -Itests -c tests/cli/kit.c
    program_name=$1 program_file=$2
    shift 2
    build "$(basename "$program_file")${*:+, $*}" $CC -O1 -I. -Itests "$program_file" "$@" "$kit/plain.o" -o "$tmp/$program_name" $libs
}
reader() {
    made flat $CC -O1 -Itests tests/cli/flat.c
    cp "$kit/flat" "$tmp/flat"
}
virtual_gpu() {
    made "$1" $CC -O0 -w -D__OPTIMIZE__=1 -DKBENCH_CUDA -isystem "$include" -I. -Itests "tests/host/$1.c" $libs
    cp "$kit/$1" "$tmp/$1"
}
suite() {
    made suite $CC -std=c11 -O0 -I. -x c examples/suite.cu $libs
    suite=$kit/suite
}
python() {
    : "${PYTHON:=python3}"
    if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2> /dev/null; then
        skip "no Python from 3.8 on ($PYTHON)"
        finish
    fi
    XDG_CACHE_HOME=$PWD/$kit/cache PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1 CFLAGS=-O1
    export XDG_CACHE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE CFLAGS CC NVCC
    unset KBENCH_H KBENCH_LIB KBENCH_NO_CUDA KBENCH_KERNELS_CUH KBENCH_KERNELS_LIB
}
command -v everything > /dev/null || everything() { [ -n "${TEST_ALL-}" ]; }
tool() {
    made tool $CC -O1 examples/addons/kbench.c $libs
    cp "$kit/tool" "$tmp/$1"
}
