# SPDX-License-Identifier: MIT OR Unlicense
# lib.sh - functions that the shell tests share; POSIX sh. A test runs in the root of the repository and includes
# lib.sh with the dot command. A test calls one of the functions below for each behaviour, and ends with finish.
# tests/run.sh and the Makefile set CC CXX NVCC ARCHFLAGS BUILD TEST_ALL. TEST_ALL is 1 in make test-all; otherwise
# a test may run only a representative part of its checks. LEAN_CC and LEAN_CXX are the compilers that
# take least time without optimisation, for programs of which only the behaviour is tested.

: "${CC:=cc}" "${CXX:=c++}" "${LEAN_CC:=$CC}" "${LEAN_CXX:=$CXX}" "${NVCC:=}" "${ARCHFLAGS:=}" "${BUILD:=build}" "${TEST_ALL:=}"
passed=0 failed=0 skipped=0
me=$(basename "$0" .sh)
tmp=$BUILD/test/$(basename "$(dirname "$0")")/$me.d
rm -rf "$tmp" && mkdir -p "$tmp" || exit 2

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); printf 'FAIL: %s: %s\n' "$me" "$*"; }
skip() { skipped=$((skipped + 1)); printf 'SKIP: %s: %s\n' "$me" "$*"; }
finish() {
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
    exit
}
everything() { [ -n "$TEST_ALL" ]; } # make test-all, or a part of it
have() { command -v "$1" > /dev/null 2>&1; }
cuda_headers() {
    for folder in "${CUDA_HOME:+$CUDA_HOME/include}" "$(dirname "$(command -v "$NVCC" || echo /none/nvcc)")/../include" /usr/local/cuda/include; do
        [ -f "$folder/cuda_runtime_api.h" ] && echo "$folder" && return
    done
}

# run COMMAND...: leaves $out $err (file names) and $rc
run() {
    out=$tmp/out err=$tmp/err
    "$@" > "$out" 2> "$err" < /dev/null
    rc=$?
}
said() { printf 'exit code %s; stdout: %s; stderr: %s' "$rc" "$(head -c 300 "$out" | tr '\n' '~')" "$(head -c 500 "$err" | tr '\n' '~')"; }
# check_rc WHAT CODE
check_rc() { if [ "$rc" -eq "$2" ]; then pass; else fail "$1: expected exit code $2; $(said)"; fi; }
# check_err WHAT ERE: a line of stderr must match ERE, ignoring case
check_err() { if grep -qiE -e "$2" "$err"; then pass; else fail "$1: no '$2' on stderr; $(said)"; fi; }
check_out() { if grep -qE -e "$2" "$out"; then pass; else fail "$1: no '$2' on stdout; $(said)"; fi; }
check_not_out() { if grep -qE -e "$2" "$out"; then fail "$1: '$2' on stdout; $(said)"; else pass; fi; }
check_not_err() { if grep -qiE -e "$2" "$err"; then fail "$1: '$2' on stderr; $(said)"; else pass; fi; }
# check_same WHAT GOT WANT
check_same() { if [ "$2" = "$3" ]; then pass; else fail "$1: got '$2', expected '$3'"; fi; }
# check WHAT COMMAND...: prints the command's output if it fails
check() {
    what=$1
    shift
    if "$@" > "$tmp/check" 2>&1; then
        pass
    else
        # prints a compiler's error messages or, without any, its first lines
        grep -E 'error|undefined|FAIL' "$tmp/check" > "$tmp/why" || head -n 5 "$tmp/check" > "$tmp/why"
        fail "$what: $(head -n 5 "$tmp/why" | cut -c 1-300 | tr '\n' ';')"
        return 1
    fi
}
# counted WHAT: prints FAIL: and SKIP: lines of the last run, and adds its "N passed, N failed" to the totals
counted() {
    sed -n '/^FAIL: /s/^FAIL: /FAIL: '"$me"': /p; /^SKIP: /s/^SKIP: /SKIP: '"$me"': /p' "$out"
    case $(tail -n 1 "$out") in
    *" passed, "*" failed")
        n=$(tail -n 1 "$out")
        passed=$((passed + ${n%% passed*}))
        n=${n#*passed, }
        failed=$((failed + ${n%% failed*}))
        ;;
    *) fail "$1 ended early; $(said)" ;;
    esac
    skipped=$((skipped + $(grep -c '^SKIP: ' "$out")))
}
# build WHAT COMMAND...: like check, but a failure ends the test
build() {
    check "$@" || finish
}
libs="-lm -ldl -lpthread"
# build_heeds: builds $heeds, which starts a program with the default handling of SIGINT and SIGQUIT. The shell's
# background jobs ignore both signals, and kbench does not handle ignored signals.
build_heeds() {
    heeds=$tmp/heeds
    cat > "$heeds.c" << 'end'
#include <signal.h>
#include <unistd.h>
int main(int argc, char** argv) {
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    if (argc > 1) execvp(argv[1], argv + 1);
    return 127;
}
end
    build "heeds.c" $CC -O1 "$heeds.c" -o "$heeds"
}
# the resolution is a second if `date` has no nanoseconds
now_ms() {
    t=$(date +%s%N)
    case $t in *N) echo $((${t%N} * 1000)) ;; *) echo $((t / 1000000)) ;; esac
}

# calm: removes kbench's notes about a busy machine from quoted messages
calm() {
    sed -e 's/; \(other programs \(had\|used\)\|the hypervisor gave\|the mean is\)[^";]*//g' \
        -e 's/"\(other programs \(had\|used\)\|the hypervisor gave\|the mean is\)[^"]*"/null/g'
}
