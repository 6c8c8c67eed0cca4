#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --ncu and --nsys with NVIDIA's tools, if the tools are installed and may read the GPU's counters: bytes and
# times of known kernels, number of launches, and that profiling does not change the samples.
. tests/lib.sh
unset COLUMNS NO_COLOR

build "vendor.cu" $NVCC -O3 $ARCHFLAGS -I. tests/gpu/vendor.cu -o "$tmp/prog"
build "flat.c" $CC -O1 -I. -Itests tests/cli/flat_records.c -o "$tmp/flat" $libs
prog=$tmp/prog some="--fast --no-progress"
records() { file=$1 && "$tmp/flat" "$file" > "$tmp/flat.txt"; }
value() { awk -F'\t' -v name="\"$1/" -v key="$2" '$2 == "name" && index($3, name) == 1 { at = $1 } $1 == at && $2 == key { print $3; exit }' "$tmp/flat.txt"; }
counter() { grep "\"name\": \"$1/" "$file" | sed 's/.*"counters": {\([^}]*\)}.*/\1/' | tr ',' '\n' | sed -n "s/^ *\"$2\": //p"; }
near() { # WHAT GOT WANT SHARE
    check_same "$1: '$2' is within $4 of '$3'" \
        "$(awk -v x="$2" -v y="$3" -v s="$4" 'BEGIN { d = x - y; if (d < 0) d = -d; print (x != "" && y > 0 && d <= s * y) }')" 1
}

run "$prog" $some --json "$tmp/plain.json"
check_rc "without tools" 0
records "$tmp/plain.json"
plain=$(value triad time_ms)

if have ncu || [ -x /usr/local/cuda/bin/ncu ] || [ -x "${CUDA_HOME:-/none}/bin/ncu" ]; then
    run "$prog" $some --ncu --json "$tmp/ncu.json"
    cat "$out" "$err"
    records "$tmp/ncu.json"
    near "ncu: timed samples are unmoved" "$(value triad time_ms)" "$plain" 0.03
    if [ "$rc" = 2 ] && grep -q 'error: --ncu: .*\(administrator\|another profiler\|MIG\|cannot profile\)' "$err"; then
        skip "ncu may not read counters here: $(grep 'error: --ncu' "$err" | cut -c 1-120)"
    else
        check_rc "--ncu" 0
        near "ncu: triad's bytes" "$(counter triad dram__bytes.sum)" 805306368 0.05
        near "ncu: triad's time" "$(counter triad gpu__time_duration.sum)" "$(awk -v t="$plain" 'BEGIN { print 1e6 * t }')" 0.1
        near "ncu: triad's multiply-adds" "$(counter triad smsp__sass_thread_inst_executed_op_ffma_pred_on.sum)" 67108864 0
        check_out "ncu: every case" '^ncu, one run of each timed block: 3 of 3 cases$'
        check_same "ncu: two kernels" "$(sed -n '/^two/,/^copied/p' "$out" | grep -c ' x (256, 1, 1)')" 2
        run "$prog" $some --op two --ncu=basic --hot --json "$tmp/basic.json"
        check_rc "--ncu=basic --hot" 0
    fi
else
    skip "no ncu"
fi
if have nsys || [ -x /usr/local/cuda/bin/nsys ] || [ -x "${CUDA_HOME:-/none}/bin/nsys" ]; then
    run "$prog" $some --nsys="$tmp/kept" --json "$tmp/nsys.json"
    cat "$out" "$err"
    check_rc "--nsys" 0
    records "$tmp/nsys.json"
    near "nsys: timed samples are unmoved" "$(value triad time_ms)" "$plain" 0.03
    near "nsys: triad's time" "$(counter triad nsys.kernel_ns)" "$(awk -v t="$plain" 'BEGIN { print 1e6 * t }')" 0.1
    check_same "nsys: launches" "$(counter triad nsys.kernels) $(counter two nsys.kernels) $(counter copied nsys.kernels)" "1 2 1"
    near "nsys: bytes copied" "$(counter copied nsys.memory_bytes)" 4194304 0.01
    check "nsys: the report is kept" test -s "$tmp/kept.nsys-rep"
else
    skip "no nsys"
fi
finish
