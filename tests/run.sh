#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# run.sh - builds and runs the tests; POSIX sh. Start run.sh in the root of the repository, as make test does.
#
#   sh tests/run.sh                      runs make test: each feature at least once
#   sh tests/run.sh --all                runs make test-all: everything; takes more than an hour
#   sh tests/run.sh --rest               runs what --all adds to make test
#   sh tests/run.sh host cli             runs some groups: check compile host cli cpu gpu
#   sh tests/run.sh tests/host/stats.c   runs some tests, also those that make test leaves out
#   sh tests/run.sh --sanitize host      builds host programs with ASan and UBSan
#   sh tests/run.sh --no-skip gpu        counts a skipped test as failed
#   sh tests/run.sh --quick gpu          passes --quick to the GPU programs
#   sh tests/run.sh --tool "compute-sanitizer --tool memcheck --error-exitcode 9" gpu    runs GPU programs under a tool,
#                                        and passes --sanitize to them
#   TEST_JOBS=1 sh tests/run.sh          runs one test at a time; the default is one more than there are processors,
#                                        because tests wait (for deadlines, for each other) for a third of their time
#   TEST_AGAIN=1 sh tests/run.sh         runs a failed test again, and counts only the second result; the first output
#                                        is printed as "again". For machines on which other programs disturb times
#
# A test is a program (tests/host/X.c, tests/gpu/X.cu, built here) or a script (X.sh). If X.sh has a source file
# X.c or X.cu next to it, X.sh builds and runs that program. A test prints "FAIL: ..." and "SKIP: reason" lines and
# ends with a line "N passed, N failed, N skipped". A test without such a last line counts as one failure. The last
# line that run.sh prints has the totals of all tests; the exit code is 1 if anything failed.
#
# Tests run in parallel. The following comment lines, among the first 20 lines of a test, change when the test
# runs:
#   measures time           never runs in parallel with another test of this kind, because it depends on real time
#   takes long              starts before the others, so that no lane idles at the end
#   only in make test-all   left out of make test
# In make test-all, the variable TEST_ALL is 1; a test can then run more checks.
#
# The programs of tests/host are compiled together, because nearly all of their code is kbench itself. Each
# program becomes a namespace of one C++ file, which is compiled without warnings and without optimisation. The
# programs that use the virtual GPU are combined in a C++ file of their own. In four cases, each program is
# compiled separately, as C and with warnings as errors: with --all, with --sanitize, for a test named on the
# command line, and if the combined file does not compile. A program with a comment "a program of its own:
# REASON" in its head is always compiled separately, for example because it replaces functions of the C library.
#
# Without optimisation, clang takes half the CPU time of gcc. In make test, programs that are compiled separately
# without optimisation are therefore compiled by clang, if clang is installed and CC is not set. LEAN_CC and
# LEAN_CXX choose other compilers.

: "${CC:=cc}" "${CXX:=c++}" "${NVCC:=}" "${ARCHFLAGS:=}" "${BUILD:=build}" "${TEST_TIMEOUT:=600}" "${TEST_AGAIN:=}"
: "${TEST_ALL:=}" "${TEST_JOBS:=$(($(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 1) + 1))}"
sanitize= no_skip= quick= tool= wanted= one= lean= together= rest=
while [ $# -gt 0 ]; do
    case $1 in
    --all) TEST_ALL=1 ;;
    --rest) TEST_ALL=1 rest=1 ;;
    --sanitize) sanitize=1 ;;
    --no-skip) no_skip=1 ;;
    --quick) quick=--quick ;;
    --tool) tool=$2 && shift ;;
    --one) one=$2 && shift ;; # set if run.sh starts itself to run a single test
    --lean) lean=1 ;; # compiles without warnings, which take half of the compile time
    --together) together=$2 && shift ;; # set if run.sh starts itself to build a combined program
    *) wanted="$wanted $1" ;;
    esac
    shift
done
case $(head -c 2 "$(command -v python3 || echo /dev/null)") in
'#!') PATH=$(dirname "$(python3 -c 'import sys; print(sys.executable)')"):$PATH && export PATH ;;
esac
if [ -z "${LEAN_CC:-}" ] && [ "$CC" = cc ] && [ -z "$TEST_ALL$sanitize" ] &&
    echo 'int main() { return 0; }' | clang++ -x c++ - -o /dev/null 2> /dev/null; then
    LEAN_CC=clang LEAN_CXX=clang++
fi
: "${LEAN_CC:=$CC}" "${LEAN_CXX:=$CXX}"
export CC CXX LEAN_CC LEAN_CXX NVCC ARCHFLAGS BUILD TEST_ALL TEST_TIMEOUT TEST_AGAIN
[ -n "$wanted" ] || wanted="compile check host cli cpu gpu"
logs=$BUILD/test/log
mkdir -p "$logs" "$BUILD/test/host" || exit 2
warnings="-Wall -Wextra -Werror"
cflags="-O2 -g $warnings -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2" # some distributions set _FORTIFY_SOURCE by default
if [ -z "$TEST_ALL" ]; then cflags="-O1 $warnings"; fi
if [ -n "$lean" ]; then cflags="-O1 -w"; fi
if [ -n "$sanitize" ]; then
    cflags="-O1 -g $warnings -fsanitize=address,undefined -fno-sanitize-recover=undefined -DTEST_SANITIZE -DKBI_NO_INSTRUMENTS"
fi
TEST_CFLAGS=$cflags && export TEST_CFLAGS
if command -v timeout > /dev/null 2>&1; then limit="timeout -k 5 $TEST_TIMEOUT"; else limit=; fi
# The shell starts background jobs with SIGINT and SIGQUIT ignored, and kbench does not handle an ignored signal,
# so `env --default-signal` starts each test.
if env --default-signal=HUP,INT,QUIT true 2> /dev/null; then limit="env --default-signal=HUP,INT,QUIT $limit"; fi

says() { head -n 20 "$1" | grep -qE "^(#|//) ($2)"; }
# name_of FILE: sets $name, and $flat for the files in $logs
name_of() { name=${1#tests/} && name=${name%.*} && flat=$(echo "$name" | tr / _) && log=$logs/$flat.log && exe=$BUILD/test/$name; }

set_of() {
    case $1 in tests/host/*.c) ;; *) echo none && return ;; esac
    if [ -f "${1%.c}.sh" ] || says "$1" 'a program of its own: '; then
        echo none
    elif grep -q '"virtual_gpu.h"' "$1"; then
        echo virtual_gpu
    else
        echo host
    fi
}

build_together() {
    folder=$BUILD/test/together
    source=$folder/$1.cpp
    rm -rf "$source" && mkdir -p "$folder"
    set -- "$1"
    for t in tests/host/*.c; do [ "$(set_of "$t")" != "$1" ] || set -- "$@" "$t"; done
    name=$1 && shift
    {
        echo '#include "test.h"'
        echo '#include "json.h"'
        [ "$name" = virtual_gpu ] || echo '#include "guarded.h"'
        for t; do sed -n '1,/^[a-z].*{/s/^#include <.*/&/p' "$t"; done | sort -u # ahead of the namespaces
        [ "$name" = virtual_gpu ] && echo '#include "host/virtual_gpu.h"' || echo '#include "kit.h"'
        if grep -q '"kbench_kernels.cuh"' "$@"; then echo '#include "kbench_kernels.cuh"'; fi
        echo '#define main program'
        for t; do
            n=$(basename "$t" .c)
            printf 'namespace of_%s {\n#include "%s"\n}\n' "$n" "$t"
            sed -n 's/^# *define \([A-Za-z_0-9]*\).*/#undef \1/p' "$t"
        done
        cat << 'END'
#undef main
static int call(int (*test)(int, char**), int argc, char** argv) { return test(argc, argv); }
static int call(int (*test)(void), int, char**) { return test(); }
static bool is(const char* program, const char* name) { // and registers no benchmarks but those of this test
    const char* base = strrchr(program, '/');
    if (strcmp(base ? base + 1 : program, name) != 0) return false;
    for (kb_entry** e = &kbi_process.entries; *e;) {
        const size_t n = strlen((*e)->file), m = strlen(name);
        bool own = n > m + 3 && strncmp((*e)->file + n - m - 2, name, m) == 0 && (*e)->file[n - m - 3] == '/';
        if (own) e = &(*e)->next;
        else *e = (*e)->next, kbi_process.entry_count--;
    }
    return true;
}
int main(int argc, char** argv) {
END
        for t; do
            n=$(basename "$t" .c)
            echo "    if (is(argv[0], \"$n\")) return call(of_$n::program, argc, argv);"
        done
        echo '    return 2;'
        echo '}'
    } > "$source"
    [ "$name" = host ] || flags="-DKBENCH_CUDA -isystem $(cuda_headers)"
    # __OPTIMIZE__ keeps kbench from flagging this build as unoptimised
    if $CXX -std=gnu++20 -w -O0 -D__OPTIMIZE__=1 ${flags:-} -I. -Itests "$source" -o "$folder/$name" -lm -ldl -lpthread > "$logs/$name.log" 2>&1; then
        for t; do ln -f "$folder/$name" "$folder/$(basename "$t" .c)" 2> /dev/null || cp "$folder/$name" "$folder/$(basename "$t" .c)"; done
        echo built > "$logs/together_$name"
    else
        echo "$source does not compile as C++20 by $CXX (see $logs/$name.log): the tests in it are compiled separately"
        echo failed > "$logs/together_$name"
    fi
}

shared_program() {
    [ -e "$logs/together_$1" ] || return 1
    while [ ! -s "$logs/together_$1" ]; do sleep 1; done
    grep -q built "$logs/together_$1"
}

attempt() {
    case $1 in
    *.sh)
        $limit sh "$1" > "$log" 2>&1 < /dev/null
        ;;
    *.c)
        set=$(set_of "$1")
        if shared_program "$set"; then
            exe=$BUILD/test/together/$(basename "$1" .c)
            : > "$log"
        else
            flags=
            ! grep -q '"virtual_gpu.h"' "$1" || flags="-DKBENCH_CUDA -isystem $(cuda_headers)"
            compiler=$CC
            if [ -n "$lean" ] && ! grep -q 'only in optimised code' "$1"; then
                compiler=$LEAN_CC flags="$flags -O0 -D__OPTIMIZE__=1"
            fi
            $compiler $cflags $flags -I. -Itests "$1" -o "$exe" -lm -ldl -lpthread > "$log" 2>&1 || return
        fi
        $limit "$exe" $quick >> "$log" 2>&1 < /dev/null
        ;;
    *.cu)
        cmd="$NVCC -O3 -lineinfo $ARCHFLAGS -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. -Itests $1 -o $exe"
        $cmd > "$log" 2>&1 && $limit $tool "$exe" $quick ${tool:+--sanitize} >> "$log" 2>&1 < /dev/null
        ;;
    esac
}

cuda_headers() {
    for folder in "${CUDA_HOME:+$CUDA_HOME/include}" "$(dirname "$(command -v "$NVCC" || echo /none/nvcc)")/../include" /usr/local/cuda/include; do
        [ -f "$folder/cuda_runtime_api.h" ] && echo "$folder" && return
    done
}

why_no_gpu() {
    if [ -z "$NVCC" ]; then
        echo "no nvcc (NVCC, PATH, CUDA_HOME, /usr/local/cuda)"
    elif ! nvidia-smi -L 2> /dev/null | grep -q '^GPU '; then
        echo "no GPU on this machine (nvidia-smi lists none)"
    fi
}

# cpu FILE: sets $seconds to the CPU time of this shell and its ended children; in a subshell, $(times) would count
# from zero.
cpu() {
    times > "$1"
    seconds=$(tr ms '  ' < "$1" | awk '{ t += 60 * ($1 + $3) + $2 + $4 } END { printf "%.1f", t }')
}

# run_one FILE: prints a test's output at its end, and writes its counts to
# $logs/NAME.sum
run_one() {
    name_of "$1"
    mkdir -p "$(dirname "$exe")"
    start=$(date +%s) again=
    why=
    case $1 in
    tests/gpu/*) why=$(why_no_gpu) ;;
    tests/host/*.c)
        if grep -q '"virtual_gpu.h"' "$1" && [ -z "$(cuda_headers)" ]; then
            why="no cuda_runtime_api.h (beside nvcc, in CUDA_HOME, in /usr/local/cuda)"
        fi
        ;;
    esac
    if [ -n "$why" ]; then
        echo "$name: $why" > "$logs/$flat.skips"
        echo "0 ${no_skip:-0} 1" > "$logs/$flat.sum"
        printf '%-5s %-28s %s\n' skip "$name" "$why"
        return
    fi
    attempt "$1"
    rc=$?
    if [ -n "$TEST_AGAIN" ] && { [ $rc -ne 0 ] || ! grep -qE '^[0-9]+ passed, 0 failed,' "$log"; }; then
        again=$(if grep -q '^FAIL: ' "$log"; then sed -n 's/^FAIL: /again /p' "$log"; else echo "again $name: exit code $rc"; fi)
        attempt "$1"
        rc=$?
    fi
    last=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    p=0 f=1 s=0 tail=
    case $last in
    *" passed, "*" failed, "*" skipped")
        p=${last%% passed*} f=${last#*passed, } s=${last#*failed, }
        f=${f%% failed*} s=${s%% skipped*}
        if [ $rc -ne 0 ] && [ "$f" -eq 0 ]; then
            f=1 tail="FAIL  $name: exit code $rc in spite of its summary"
        fi
        ;;
    *) tail="FAIL  $name: ended without its summary, exit code $rc" ;;
    esac
    if [ -n "$no_skip" ] && [ "$s" -gt 0 ]; then f=$((f + s)); fi
    sed -n 's/^SKIP: //p' "$log" > "$logs/$flat.skips"
    echo "$p $f $s" > "$logs/$flat.sum"
    word=ok && [ "$f" -gt 0 ] && word=FAIL
    cpu "$logs/$flat.cpu"
    {
        [ -z "$again" ] || echo "$again"
        sed -n 's/^FAIL: /FAIL  /p' "$log"
        [ -z "$tail" ] || { tail -n 15 "$log" | sed '/^FAIL: /d; s/^/      /' && echo "$tail"; }
        printf '%-5s %-28s %s s, %s s of CPU   %s passed, %s failed, %s skipped\n' "$word" "$name" \
            "$(($(date +%s) - start))" "$seconds" "$p" "$f" "$s"
    } > "$logs/$flat.said"
    cat "$logs/$flat.said" # at once: other tests end, too
}

if [ -n "$together" ]; then build_together "$together" && exit; fi
if [ -n "$one" ]; then run_one "$one" && exit; fi

rm -f "$logs"/*.sum "$logs"/*.skips "$logs"/together_*
: > "$logs/long" && : > "$logs/short" && : > "$logs/timed" && : > "$logs/left" && : > "$logs/wanted"
for w in $wanted; do
    case $w in
    host) set -- tests/host/*.sh tests/host/*.c ;;
    gpu) set -- tests/gpu/*.cu tests/gpu/*.sh ;;
    check) set -- tests/check_*.sh ;;
    compile | cli | cpu) set -- tests/$w/*.sh ;;
    *) set -- "$w" ;;
    esac
    for t; do
        [ -f "$t" ] || { [ "$t" = "$w" ] && { echo "tests/run.sh: no test '$w'" >&2 && exit 2; }; continue; }
        case $t in *.c | *.cu) [ -f "${t%.*}.sh" ] && [ "$t" != "$w" ] && continue ;; esac
        echo "$t" >> "$logs/wanted"
        list=$logs/short
        case $t in tests/gpu/*) list=$logs/timed ;; esac
        if [ "$t" != "$w" ]; then
            if [ -n "$rest" ] && ! grep -qE 'TEST_ALL|everything|test_rounds|^# only in make test-all' "$t"; then continue; fi
            if [ -z "$TEST_ALL" ] && says "$t" 'only in make test-all'; then list=$logs/left; fi
        fi
        if [ "$list" = "$logs/short" ] && says "$t" 'takes long'; then list=$logs/long; fi
        if [ "$list" != "$logs/left" ] && says "$t" 'measures time'; then list=$logs/timed; fi
        echo "$t" >> "$list"
    done
done
cat "$logs/long" "$logs/short" > "$logs/beside"
began=$(date +%s)
again="--one"
[ -z "$sanitize" ] || again="--sanitize $again"
[ -z "$no_skip" ] || again="--no-skip $again"
[ -z "$quick" ] || again="--quick $again"
[ -z "$TEST_ALL" ] || again="--all $again"
case $TEST_ALL$sanitize:$wanted in
:*/* | 1*) ;;
*) again="--lean $again" ;;
esac
case " $wanted " in
*" host "*)
    if [ -z "$TEST_ALL$sanitize" ] && command -v "$CXX" > /dev/null 2>&1; then
        for set in host virtual_gpu; do
            [ $set = host ] || [ -n "$(cuda_headers)" ] || continue
            : > "$logs/together_$set"
            { sh "$0" --together $set || echo failed > "$logs/together_$set"; } &
        done
    fi
    ;;
esac
# A lane is a background process; it takes each test of its lists that no other lane has taken. Only the first lane
# runs the tests that measure time, one at a time; other lanes have a lower priority, so that they do not disturb
# these tests.
rm -rf "$logs/taken" && mkdir "$logs/taken"
lane() { # PRIORITY LIST...
    priority=$1 && shift
    cat "$@" | while read -r t; do
        mkdir "$logs/taken/$(echo "$t" | tr / _)" 2> /dev/null || continue
        if [ -n "$tool" ]; then sh "$0" --tool "$tool" $again "$t"; else nice -n "$priority" sh "$0" $again "$t"; fi
    done
}
i=1
while [ $i -lt "$TEST_JOBS" ]; do
    lane 5 "$logs/beside" &
    i=$((i + 1))
done
lane 0 "$logs/timed" "$logs/beside"
wait

passed=0 failed=0 skipped=0
for t in $(cat "$logs/beside" "$logs/timed"); do
    name_of "$t"
    if read -r p f s < "$logs/$flat.sum"; then :; else p=0 f=1 s=0 && echo "FAIL  $name: was not run"; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
if [ -s "$logs/left" ]; then
    echo
    echo "only in make test-all: $(sed 's,^tests/,,; s/\.[a-z]*$//' "$logs/left" | tr '\n' ' ')"
fi
cat "$logs"/*.skips > "$logs/skips" 2> /dev/null
if [ -s "$logs/skips" ]; then
    echo
    echo "skipped:"
    sort "$logs/skips" | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)$/  \1 x  \2/'
fi
cpu "$logs/cpu"
echo
echo "$(($(date +%s) - began)) s, $seconds s of CPU"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
