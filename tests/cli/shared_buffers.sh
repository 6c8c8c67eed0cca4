#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that the data of all implementations is at the same addresses, that each implementation keeps its own
# contents, and that the record reports shared buffers.
. tests/lib.sh
. tests/cli/kit.lib

program stage tests/cli/shared_buffers.c -O2
reader
run "$tmp/stage" --fast --json "$tmp/stage.json" --no-isolate
check_rc "implementations on shared buffers" 0
"$tmp/flat" "$tmp/stage.json" > "$tmp/flat.txt"
of() { awk -F'\t' -v name="\"$1\"" -v key="$2" '$2 == "name" { at[$3] = $1 } { v[$1, $2] = $3 } END { print v[at[name], key] }' "$tmp/flat.txt"; }
for i in one two three; do
    check_same "same/$i" "$(of same/impl=$i status) $(of same/impl=$i verified)" '"ok" true'
done
case $TEST_CFLAGS in
*sanitize*) check_same "a sanitizer looks between allocations" "$(of same/impl=one shared_buffers)" false ;;
*)
    check_same "the buffers are shared" "$(of same/impl=one shared_buffers)$(of same/impl=two shared_buffers)" truetrue
    # the baseline has two lines: kbench also compares it with itself
    check_same "one place for all" "$(grep '^same ' "$err" | awk '{ last[$2] = $3 " " $4 } END { for (i in last) print last[i] }' | sort -u | wc -l)" 1
    check_same "separate buffers after another allocation" "$(of grows/impl=later shared_buffers)" false
    check_same "the other implementation keeps the shared buffers" "$(of grows/impl=steady shared_buffers)" true
    ;;
esac
check_same "it is measured all the same" "$(of grows/impl=later status)" '"ok"'
run "$tmp/stage" --fast --op same --impl one --json "$tmp/alone.json"
"$tmp/flat" "$tmp/alone.json" > "$tmp/flat.txt"
check_same "nobody to share with" "$(of same/impl=one shared_buffers)" null
finish
