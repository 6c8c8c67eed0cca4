#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# run.sh - builds and runs the tests; POSIX sh, started from the repository's root (make test does that).
#
#   sh tests/run.sh                      everything this machine can run
#   sh tests/run.sh host cli             some groups: host compile cli check cpu gpu
#   sh tests/run.sh tests/host/stats.c   some tests
#   sh tests/run.sh --sanitize host      host programs built with ASan and UBSan
#   sh tests/run.sh --no-skip gpu        a skipped test is a failed one
#   sh tests/run.sh --quick gpu          passes --quick to the GPU programs
#   sh tests/run.sh --tool "compute-sanitizer --tool memcheck --error-exitcode 9" gpu    runs GPU programs under a tool,
#                                        and passes --sanitize to them
#   TEST_AGAIN=1 sh tests/run.sh         a test that fails is run once more, and that counts; what it said at first is
#                                        printed as "again". For machines whose other users disturb tests of real time
#
# A test is a program (tests/host/X.c, tests/gpu/X.cu, built here) or a script (X.sh; where X.c or X.cu stands beside
# it, the script builds and drives it). It prints "FAIL: ..." and "SKIP: reason" lines and ends with a line
# "N passed, N failed, N skipped". A test that does not compile, or ends without that line, is one failure.
# The last line printed here adds everything up; exit code 1 when anything failed.

: "${CC:=cc}" "${CXX:=c++}" "${NVCC:=}" "${ARCHFLAGS:=}" "${BUILD:=build}" "${TEST_TIMEOUT:=600}" "${TEST_AGAIN:=}"
export CC CXX NVCC ARCHFLAGS BUILD
sanitize= no_skip= quick= tool= wanted=
while [ $# -gt 0 ]; do
    case $1 in
    --sanitize) sanitize=1 ;;
    --no-skip) no_skip=1 ;;
    --quick) quick=--quick ;;
    --tool) tool=$2 && shift ;;
    *) wanted="$wanted $1" ;;
    esac
    shift
done
[ -n "$wanted" ] || wanted="check host compile cli cpu gpu"
logs=$BUILD/test/log
mkdir -p "$logs" || exit 2
: > "$logs/skips"
passed=0 failed=0 skipped=0
cflags="-O2 -g -Wall -Wextra -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2" # as compilers of some distributions do unasked
if [ -n "$sanitize" ]; then
    cflags="-O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined -DTEST_SANITIZE -DKBI_NO_INSTRUMENTS"
fi
TEST_CFLAGS=$cflags && export TEST_CFLAGS # for scripts that build host programs
if command -v timeout > /dev/null 2>&1; then limit="timeout -k 5 $TEST_TIMEOUT"; else limit=; fi
# A shell starts background jobs with SIGINT and SIGQUIT ignored, which programs inherit and kbench respects.
if env --default-signal=HUP,INT,QUIT true 2> /dev/null; then limit="env --default-signal=HUP,INT,QUIT $limit"; fi

# count NAME LOG RC: adds up the last line of a test's log
count() {
    last=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$2" | tail -n 1)
    case $last in
    *" passed, "*" failed, "*" skipped")
        p=${last%% passed*} f=${last#*passed, } s=${last#*failed, }
        f=${f%% failed*} s=${s%% skipped*}
        ;;
    *)
        p=0 f=1 s=0
        echo "FAIL: $1: ended without its summary, exit code $3" >> "$2"
        tail -n 15 "$2" | sed '/^FAIL: /d; s/^/      /'
        ;;
    esac
    # a failure that the summary does not know of: a sanitizer's report, or a crash after the last line
    if [ "$3" -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
        echo "FAIL: $1: exit code $3 in spite of its summary" >> "$2"
        tail -n 15 "$2" | sed '/^FAIL: /d; s/^/      /'
    fi
    if [ -n "$no_skip" ] && [ "$s" -gt 0 ]; then f=$((f + s)); fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    sed -n 's/^FAIL: /FAIL  /p' "$2"
    sed -n 's/^SKIP: //p' "$2" >> "$logs/skips"
    word=ok && [ "$f" -gt 0 ] && word=FAIL
    printf '%-5s %-28s %s s   %s passed, %s failed, %s skipped\n' "$word" "$1" "$(($(date +%s) - start))" "$p" "$f" "$s"
}

skip_test() {
    skipped=$((skipped + 1))
    if [ -n "$no_skip" ]; then failed=$((failed + 1)); fi
    echo "$1: $2" >> "$logs/skips"
    printf '%-5s %-28s %s\n' skip "$1" "$2"
}

# the reason why GPU tests cannot run here, or nothing
why_no_gpu() {
    if [ -z "$NVCC" ]; then
        echo "no nvcc (NVCC, PATH, CUDA_HOME, /usr/local/cuda)"
    elif ! nvidia-smi -L 2> /dev/null | grep -q '^GPU '; then
        echo "no GPU on this machine (nvidia-smi lists none)"
    fi
}

# attempt FILE: one run of a test, into $log
attempt() {
    case $1 in
    *.sh)
        $limit sh "$1" > "$log" 2>&1 < /dev/null
        ;;
    *.c)
        cmd="$CC $cflags -I. -Itests $1 -o $exe -lm -ldl -lpthread"
        $cmd > "$log" 2>&1 && $limit "$exe" $quick >> "$log" 2>&1 < /dev/null
        ;;
    *.cu)
        cmd="$NVCC -O3 -lineinfo $ARCHFLAGS -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. -Itests $1 -o $exe"
        $cmd > "$log" 2>&1 && $limit $tool "$exe" $quick ${tool:+--sanitize} >> "$log" 2>&1 < /dev/null
        ;;
    esac
}

one() {
    name=${1#tests/} && name=${name%.*}
    log=$logs/$(echo "$name" | tr / _).log
    exe=$BUILD/test/$name
    mkdir -p "$(dirname "$exe")"
    start=$(date +%s)
    case $1 in
    tests/gpu/*)
        why=$(why_no_gpu)
        if [ -n "$why" ]; then skip_test "$name" "$why" && return; fi
        ;;
    esac
    attempt "$1"
    rc=$?
    if [ -n "$TEST_AGAIN" ] && { [ $rc -ne 0 ] || ! grep -qE '^[0-9]+ passed, 0 failed,' "$log"; }; then
        if grep -q '^FAIL: ' "$log"; then sed -n 's/^FAIL: /again /p' "$log"; else echo "again $name: exit code $rc"; fi
        attempt "$1"
        rc=$?
    fi
    count "$name" "$log" $rc
}

for w in $wanted; do
    case $w in
    host) set -- tests/host/*.c tests/host/*.sh ;;
    gpu) set -- tests/gpu/*.cu tests/gpu/*.sh ;;
    check) set -- tests/check_*.sh ;;
    compile | cli | cpu) set -- tests/$w/*.sh ;;
    *) set -- "$w" ;;
    esac
    for t; do
        [ -f "$t" ] || { [ "$t" = "$w" ] && { echo "tests/run.sh: no test '$w'" >&2 && exit 2; }; continue; }
        case $t in *.c | *.cu) [ -f "${t%.*}.sh" ] && [ "$t" != "$w" ] && continue ;; esac
        one "$t"
    done
done

if [ -s "$logs/skips" ]; then
    echo
    echo "skipped:"
    sort "$logs/skips" | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)$/  \1 x  \2/'
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
