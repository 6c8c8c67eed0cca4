#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests large files of records: time relative to printf and strtod, memory, and numbers of instructions, which are
# the same on every machine.
# only in make test-all
. tests/lib.sh
. tests/cli/kit.lib

build "big.c" $CC -O2 -I. -Itests tests/cli/many_records.c -o "$tmp/big" $libs
check "20,000 records a side: written, compared" "$tmp/big"
cp "$tmp/check" "$tmp/said" && sed -n '/a side/s/^/  /p' "$tmp/said"
build "two files of 500 records" "$tmp/big" 500 "$tmp/a.json" "$tmp/b.json"
build "the tool" $CC -O2 examples/addons/kbench.c -o "$tmp/tool" $libs
# counts WHAT LIMIT COMMAND...: at most LIMIT thousand instructions per record
counts() {
    what=$1 limit=$2 && shift 2
    run valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@"
    check_rc "$what" 0
    n=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$err")
    n=$((${n:-999999999} / 500000))
    echo "  $what: $n thousand instructions a record"
    if [ $n -le "$limit" ]; then pass; else fail "$what takes $n thousand instructions per record; the limit is $limit thousand"; fi
}
if have valgrind && [ "$(valgrind -q true 2>&1)" = "" ]; then
    counts "comparing two" 400 "$tmp/tool" --compare "$tmp/a.json" "$tmp/b.json" --fail-on never
    counts "reading, showing and writing" 950 "$tmp/tool" --load "$tmp/a.json" -q --json "$tmp/c.json"
    sed 's/"operation": "op[0-9]*"/"operation": "op"/' "$tmp/a.json" > "$tmp/one.json"
    counts "showing one operation" 350 "$tmp/tool" --load "$tmp/one.json" -q
    counts "showing it in another order" 350 "$tmp/tool" --load "$tmp/one.json" -q --sort -name
    check "what was read and written is the same" cmp "$tmp/a.json" "$tmp/c.json"
else
    skip "no working valgrind: instructions are not counted"
fi
finish
