#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --explain: for every flag, key and column it prints the meaning, the reason, advice and an example, in 5 to
# 12 lines of 80 columns.
. tests/lib.sh
. tests/cli/kit.lib

tool kbench
kbench=$tmp/kbench

sed -n '/^#define KB_FLAGS(x)/,/^\/\/ clang-format on/s/^    x(\([A-Z_]*\), \([A-Z]*\), "\([A-Z]*\)".*/\1 \3/p' kbench.h > "$tmp/flags"
sed -n 's/^    x([a-z]*, *\([a-z_0-9]*\), *[a-z]*, *[a-z]*\((.*)\)*, .*/\1/p' kbench.h > "$tmp/keys"
sed -n '/^#define KBI_COLUMNS(x)/,/^\/\/ clang-format on/s/^    x([A-Z_]*, "\([^"]*\)".*/\1/p' kbench.h > "$tmp/columns"
check "flags were found" [ "$(wc -l < "$tmp/flags")" -gt 35 ]
check "keys were found" [ "$(wc -l < "$tmp/keys")" -gt 110 ]
check "columns were found" [ "$(wc -l < "$tmp/columns")" -gt 12 ]

# all explanations in one file, each after a line "@ flag NAME", "@ key NAME" or "@ column NAME"
{
    while read -r flag mark; do echo "@ flag $flag" && "$kbench" --explain "$flag" < /dev/null; done < "$tmp/flags"
    while read -r key; do echo "@ key $key" && "$kbench" --explain "$key" < /dev/null; done < "$tmp/keys"
    while read -r column; do echo "@ column $column" && "$kbench" --explain "$column" < /dev/null; done < "$tmp/columns"
} > "$tmp/all" 2> "$tmp/faults"
check_same "every name is known" "$(cat "$tmp/faults")" ""
awk '
    function wants(what, good) { if (!good) print kind " " name ": " what }
    function end() {
        if (!kind) return
        wants("from 5 to 12 lines, not " n, n >= 5 && n <= 12)
        wants("no what, why or example", text ~ /\n  what      [^ ]/ && text ~ /\n  why       [^ ]/ && text ~ /\n  example/)
        wants("no advice", text ~ (kind == "flag" ? "\n  fix       [^ ]" : "\n  use       [^ ]"))
        if (kind == "flag") wants("no example", text ~ /\n  example   [^ ]/)
        if (kind == "column") wants("no row", text ~ /\n  example\n    scale fwd .*[^ ]\n     vec4 f32 .*[0-9%#|\]]/)
        if (kind == "key" && text !~ /: a column/) {
            wants("no value in the sample record", index(text, "\n  example   \"" name "\": "))
            wants("the sample record lacks it", text !~ /": (null|\[\]|\{\})/)
        }
    }
    /^@ / { end(); kind = $2; name = substr($0, length(kind) + 4); n = 0; text = ""; next }
    { n++; text = text "\n" $0; wants("a line over 80 columns: " $0, length($0) <= 80); wants("a number and % on two lines", $0 !~ /^ *%/) }
    END { end() }' "$tmp/all" > "$tmp/faults"
check_same "meaning, reason, advice and example of every name" "$(cat "$tmp/faults")" ""
while read -r flag mark; do
    [ -n "$mark" ] || continue
    run "$kbench" --explain "$mark"
    check_same "$mark" "$(sed 's/:.*//; q' "$out")" "$flag"
done < "$tmp/flags"

for word in FASTER slower Equivalent = UNRESOLVED "~" REGRESSED improved minor moderate SEVERE critical excellent good fair "needs work" \
    fastest "fastest?" skipped change added removed failed "had failed" "not comparable" "no time"; do
    run "$kbench" --explain "$word"
    check_rc "$word" 0
    check_same "$word: its row" "$(sed 's/:.*//; q' "$out" | tr ',A-Z' '\na-z' | grep -cx "$(echo "$word" | tr A-Z a-z)")" 1
    check_same "$word: parts" "$(sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' "$out" | tr '\n' ' ')" "what why use example "
    check_same "$word: columns" "$(awk 'length($0) > 80' "$out")" ""
done
run "$kbench" --explain verdict
check_same "the key is not a verdict" "$(sed q "$out")" 'verdict: a key of the record'

# the text must come from kbench.h, not from a copy
run "$kbench" --explain UNVERIFIED
check_out "what happened" "^  what      $(sed -n 's/.*x(UNVERIFIED, WARN, "UV", "\([^"]*\)".*/\1/p' kbench.h)$"
run "$kbench" --explain OVERRUN
check_out "an advice without a GPU is another" '^  on a CPU  .*valgrind'
run "$kbench" --explain cv
check_out "a flag's two letters and a key" '^CLOCK_VARIES: a flag'
check_out "a flag's two letters and a key" '^cv: a key'
run "$kbench" --explain roof
check_out "a column and a key of one name" '^roof: a column.*gpu_efficiency'
check_out "a column and a key of one name" '^roof: a key'

for name in noisy Noisy no NO; do
    run "$kbench" "--explain=$name"
    check_rc "$name" 0
    check_out "$name" '^NOISY: a flag'
done
run "$kbench" --explain "time us"
check_out "a column by its unit" '^time: a column'
for row in "nosy:NOISY" "time_msx:time_ms" "speedu:speedup" "verify:VERIFY_FAIL" "zzzzzzzzzzzzz:[A-Za-z]" "skippe:skipped$" "a::error:[A-Za-z]"; do
    run "$kbench" --explain "${row%:*}"
    check_rc "--explain ${row%:*}" 2
    check_err "--explain ${row%:*}" "called '.*'; the nearest name is ${row##*:}"
    check_same "--explain ${row%:*}: stdout" "$(cat "$out")" ""
done
for name in "" "-"; do
    run "$kbench" "--explain=$name"
    check_rc "--explain='$name'" 2
done
run "$kbench" --explain OU+
check_rc "a mark with a plus" 0
check_out "a mark with a plus: the flag" '^OUTLIERS'
check_out "a mark with a plus: the plus" '^  +\+ +the case has more flags; the key "flags" lists all of them'
run "$kbench" --explain mem
check_out "the first word of a column's title" '^memory'
run "$kbench" --explain
check_rc "--explain without a name" 2
check_err "--explain without a name" 'needs NAME'
run "$kbench" --explain NOISY --load x
check_rc "--explain beside --load" 2

program prog tests/cli/sample_program.c
run "$tmp/prog" --explain NOISY
check_rc "in a program" 0
check_same "in a program: lines" "$(wc -l < "$out" | tr -d ' ')" 5
# without the add-on
plain small tests/cli/sample_program.c
run "$tmp/small" --explain NOISY
check_rc "without the add-on" 2
check_err "without the add-on" '^small: error: --explain is an option of examples/addons/kbench_report.h: include it after kbench.h.*build/kbench'
run "$tmp/small" --benchmark_out=x
check_err "the option's own name is in the message" 'error: --benchmark_out is an option of'
for o in --resume --save-baseline=x; do
    run "$tmp/small" $o
    check_err "$o: the tool has no benchmark for it" 'is an option of examples/addons/kbench_report.h'
    check_not_err "$o: the tool has no benchmark for it" 'build/kbench'
done
finish
