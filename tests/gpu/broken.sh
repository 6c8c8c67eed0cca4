#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: a benchmark that resets the device, destroys kb->stream or breaks the context gets no time, and the
# next benchmark is measured without a flag.
. tests/lib.sh

build "broken.cu" $NVCC -O3 $ARCHFLAGS -I. tests/gpu/broken.cu -o "$tmp/broken"
build "flat.c" $CC -O1 -I. -Itests tests/cli/flat_records.c -o "$tmp/flat" $libs
run "$tmp/broken" --fast --no-progress --json "$tmp/r.json"
check_rc "all in one run" 1
"$tmp/flat" "$tmp/r.json" > "$tmp/flat.txt"
of() { awk -F'\t' -v name="\"$1/impl=default\"" -v key="$2" '$2 == "name" { at[$3] = $1 } { v[$1, $2] = $3 } END { print v[at[name], key] }' "$tmp/flat.txt"; }
for op in reset_before reset_inside reset_after destroy_inside destroy_after trap; do
    case $(of $op status)$(of $op flags) in
    *failed*CUDA_ERROR* | *failed*CRASHED* | *failed*SYNC_INSIDE*) pass ;;
    *) fail "$op: $(of $op status) $(of $op flags) $(of $op message)" ;;
    esac
    echo "$op: $(of $op flags) $(of $op message)"
done
for i in 1 2 3 4 5 6; do
    check_same "good_$i: status" "$(of good_$i status)" '"ok"'
done
finish
