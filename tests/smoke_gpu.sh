#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# make smoke-gpu: a short test of everything that needs a GPU, in at most 150 s on an H100, including the build.
# Run make smoke-gpu on the commit that you want to submit. The last line has the number of passed, failed and
# skipped parts, the GPU, the driver and the commit:
#     28 passed, 0 failed, 0 skipped (NVIDIA H100 80GB HBM3, driver 580.159, commit abc1234, 2026-11-25)
#
# The parts are independent: if one fails, does not build or hangs, the others still run.
# Environment variables: CC NVCC ARCHFLAGS BUILD PYTHON, and SMOKE_LIMIT, the limit for each part in seconds.
: "${CC:=cc}" "${NVCC=nvcc}" "${ARCHFLAGS:=-arch=native}" "${BUILD:=build}" "${PYTHON:=python3}" "${SMOKE_LIMIT:=90}"
cd "$(dirname "$0")/.." || exit 2
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
dir=$BUILD/smoke
rm -rf "$dir" && mkdir -p "$dir" || exit 2
passed=0 failed=0 skipped=0 began=$(date +%s)
if command -v timeout > /dev/null 2>&1; then limit="timeout -k 5 $SMOKE_LIMIT"; else limit=; fi

if ! nvidia-smi -L 2> /dev/null | grep -q '^GPU '; then
    echo "make smoke-gpu: no GPU on this machine (nvidia-smi lists none)" >&2
    exit 1
fi
if [ -z "$NVCC" ] || ! command -v "$NVCC" > /dev/null 2>&1; then
    echo "make smoke-gpu: no nvcc; set NVCC or CUDA_HOME, or put it on the PATH" >&2
    exit 1
fi

# part WORD NAME DETAIL: a line, counted
part() {
    printf '%-5s %-32s %s\n' "$1" "$2" "$3"
    case $1 in pass) passed=$((passed + 1)) ;; skip) skipped=$((skipped + 1)) ;; *) failed=$((failed + 1)) ;; esac
}
# parts FILE: counts and prints each line "pass|FAIL|skip  NAME  DETAIL"; NAME ends before two spaces or at column
# 38. Other lines are indented
parts() {
    while IFS= read -r line; do
        case $line in
        "pass "* | "FAIL "* | "skip "*)
            rest=$(printf '%s\n' "${line#?????}" | sed 's/^ *//')
            part "${line%% *}" "$(printf '%.31s' "$rest" | sed 's/ *$//')" "$(printf '%s\n' "$rest" | cut -c 32-)"
            ;;
        *) printf '      %s\n' "$line" ;;
        esac
    done < "$1"
}
tail_of() { tail -n 5 "$1" | tr '\n' '~' | cut -c 1-400; }
# why a run ended: WHY CODE
ended() { case $1 in 124 | 137) echo "not done after $SMOKE_LIMIT s" ;; *) echo "exit code $1" ;; esac; }

# build NAME COMMAND...: in the background, into $dir/NAME, with the log $dir/NAME.log
build() {
    name=$1 && shift
    { ($limit "$@" > "$dir/$name.log" 2>&1); echo $? > "$dir/$name.rc"; } &
    eval "pid_$name=\$!"
}
# built NAME: waits for the build; if the build failed, counts a failed part and returns false
built() {
    eval "wait \$pid_$1"
    rc=$(cat "$dir/$1.rc")
    [ "$rc" -eq 0 ] && return
    part FAIL "build of $1" "$(ended "$rc"): $(tail_of "$dir/$1.log")"
    return 1
}
build flat "$CC" -O1 -Itests tests/cli/flat_records.c -o "$dir/flat"
build cases "$NVCC" -O1 $ARCHFLAGS -I. tests/smoke/scale.cu -o "$dir/cases"
build selftest "$NVCC" -O1 $ARCHFLAGS examples/addons/selftest.cu -o "$dir/selftest"
build misuse "$NVCC" -O1 $ARCHFLAGS -I. tests/gpu/misuse.cu -o "$dir/misuse"
build library "$NVCC" -O1 $ARCHFLAGS -Xcompiler -fPIC -shared -DLIBRARY tests/smoke/scale.cu -o "$dir/library.so"
PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$dir/cache
export PYTHONPATH PYTHONDONTWRITEBYTECODE XDG_CACHE_HOME
unset KBENCH_NO_CUDA KBENCH_LIB KBENCH_H
build python "$PYTHON" -c 'import kbench; kbench._library()'
kernel_parts=$(sed -n 's/^#e*l*if PART == //p' tests/smoke/kernels.cu)
kernel_parts="$kernel_parts $(($(echo "$kernel_parts" | wc -w) + 1))" # and the #else
for i in $kernel_parts; do
    build kernels_$i "$NVCC" -std=c++17 -O1 $ARCHFLAGS -I. -DPART=$i tests/smoke/kernels.cu -o "$dir/kernels_$i"
done

# --- the self-test in short: its planted mistakes, eviction, CUPTI, equal and slower implementations ---
if built selftest; then
    $limit "$dir/selftest" --fast > "$dir/selftest.log" 2>&1 < /dev/null
    rc=$?
    grep -vE '^(kbench .* self-test|passed on the GPU|FAILED on the GPU|[0-9]+ bars? could not)' "$dir/selftest.log" > "$dir/selftest.bars"
    parts "$dir/selftest.bars"
    case $rc in
    0) grep -q '^passed on the GPU' "$dir/selftest.log" || part FAIL "self-test" "it did not run on the GPU: $(tail_of "$dir/selftest.log")" ;;
    *) grep -q '^FAIL ' "$dir/selftest.log" || part FAIL "self-test" "$(ended $rc): $(tail_of "$dir/selftest.log")" ;;
    esac
fi

cases=
if built cases; then cases=1; fi

# --- every timer and cache mode on one case; they agree within what their definitions leave open ---
# field FILE KEY: prints the value of KEY in the file's only record, as written in JSON
field() { "$dir/flat" "$1" | awk -F'\t' -v key="$2" '$2 == key { print $3 }'; }
# timer NAME LEAST MOST OF OPTIONS...: the time is LEAST to MOST times that of the run OF ("": of none)
timer() {
    name=$1 least=$2 most=$3 of=$4 && shift 4
    json=$dir/$(echo "$name" | tr -c 'a-z\n' '_').json
    $limit "$dir/cases" --fast --max-time 0.3s --no-progress "$@" --json "$json" > "$dir/timer.log" 2>&1 < /dev/null
    rc=$?
    ms=$(field "$json" time_ms 2> /dev/null)
    about="$ms ms"
    [ -n "$of" ] && about="$about; $of: $(field "$dir/$of.json" time_ms 2> /dev/null) ms, $least to $most times that is allowed"
    if [ $rc -ne 0 ] || [ "$(field "$json" status)" != '"ok"' ]; then
        part FAIL "timer $name" "$(ended $rc), message $(field "$json" message): $(tail_of "$dir/timer.log")"
    elif [ "$(field "$json" verified)" != true ]; then
        part FAIL "timer $name" "the result is not verified"
    elif ! awk -v a="$ms" 'BEGIN { exit !(a + 0 > 0) }'; then
        part FAIL "timer $name" "no time: $about"
    elif [ -n "$of" ] && ! awk -v a="$ms" -v b="$(field "$dir/$of.json" time_ms)" -v l="$least" -v m="$most" 'BEGIN { exit !(b + 0 > 0 && a >= l * b && a <= m * b) }'; then
        part FAIL "timer $name" "$about"
    else
        part pass "timer $name" "$about"
    fi
}
if [ -n "$cases" ] && built flat; then
    timer events_cold 0 0 "" --timer events --cold
    timer events_hot 0.2 1.02 events_cold --timer events --hot
    timer events_rotate 0.6 1.5 events_cold --timer events --rotate
    timer cupti_cold 0.85 1.15 events_cold --timer cupti --cold
    timer cupti_hot 0.9 1.1 events_hot --timer cupti --hot
    timer both_cold 0.85 1.15 events_cold --timer both --cold
    timer both_hot 0.9 1.1 events_hot --timer both --hot
    timer wall 0.8 20 events_hot --timer wall
fi

# --- every planted mistake of a timed block ---
if built misuse; then
    MISUSE=$dir/misuse MISUSE_TIMEOUT=3s $limit sh tests/gpu/misuse.sh > "$dir/misuse.out" 2>&1 < /dev/null
    rc=$?
    last=$(tail -n 1 "$dir/misuse.out")
    case $rc,$last in
    0,*" passed, 0 failed, 0 skipped") part pass "mistakes in a timed block" "$last" ;;
    *,*" passed, "*" failed, "*)
        part FAIL "mistakes in a timed block" "$last"
        sed -n 's/^FAIL: /      /p' "$dir/misuse.out"
        ;;
    *) part FAIL "mistakes in a timed block" "$(ended $rc): $(tail_of "$dir/misuse.out")" ;;
    esac
fi

# --- one kernel of each group against its reference ---
for i in $kernel_parts; do
    built kernels_$i || continue
    $limit "$dir/kernels_$i" > "$dir/kernels_$i.out" 2>&1 < /dev/null
    rc=$?
    parts "$dir/kernels_$i.out"
    [ $rc -eq 0 ] || grep -q '^FAIL ' "$dir/kernels_$i.out" || part FAIL "kernels_$i" "$(ended $rc): $(tail_of "$dir/kernels_$i.out")"
done

# --- the Python face ---
if ! command -v "$PYTHON" > /dev/null 2>&1; then
    part skip "Python" "no $PYTHON"
elif built python && built library; then
    cold=$(field "$dir/events_cold.json" time_ms 2> /dev/null) hot=$(field "$dir/events_hot.json" time_ms 2> /dev/null)
    $limit "$PYTHON" tests/smoke/python_times.py "$dir/library.so" "${cold#null}" "${hot#null}" > "$dir/face.out" 2>&1 < /dev/null
    rc=$?
    parts "$dir/face.out"
    [ $rc -eq 0 ] || grep -q '^FAIL ' "$dir/face.out" || part FAIL "Python" "$(ended $rc): $(tail_of "$dir/face.out")"
fi
wait

commit=$(git rev-parse --short HEAD 2> /dev/null)
if [ -z "$commit" ]; then
    commit="no commit known (no git here)"
elif [ -n "$(git status --porcelain 2> /dev/null)" ]; then
    commit="commit $commit with uncommitted changes"
else
    commit="commit $commit"
fi
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2> /dev/null | head -n 1)
echo
echo "in $(($(date +%s) - began)) s; logs are in $dir"
echo "$passed passed, $failed failed, $skipped skipped ($gpu, driver $driver, $commit, $(date +%Y-%m-%d))"
[ "$failed" -eq 0 ]
