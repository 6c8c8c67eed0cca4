#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests options that a program adds (kb_add_options), and the message about options of missing add-ons.
. tests/lib.sh

build "options.c" $LEAN_CC -O0 -I. tests/cli/program_options.c -o "$tmp/options" $libs
options=$tmp/options
TELL=1 && export TELL
run "$options" --list --tsv a.tsv --level=7
check_rc "options of the program" 0
check_out "options of the program" '^tsv a.tsv level 7 loud 0$'
run "$options" --loud --list
check_out "an option without a value" '^tsv - level 0 loud 1$'
unset TELL
run "$options" --help all
check_rc "--help" 0
check_out "--help: in a group of kbench" '^  --tsv FILE             records as TSV$'
check_out "--help: a new group" '^of this program$'
check_same "--help: the group follows the last of kbench" \
    "$(grep -A3 '^of this program' "$out" | tr -s ' ' | tr '\n' '|')" "of this program| --level N how much| --loud says more||"
check_same "--help: each group once" "$(grep -c '^out$' "$out")" 1
check_same "--help: the option stands in the group" \
    "$(sed -n '/^out$/,/^$/p' "$out" | grep -c -e '--tsv')" 1
for bad in "--tsv:--tsv needs FILE after it" "--tsv --list:--tsv needs FILE after it" "--loud=3:--loud takes no value" \
    "--level 10:--level takes 1 to 9" "--level 1 --loud:--level and --loud exclude each other" "--level 1 --level 2:--level was given twice" "--tsvv x:unknown option --tsvv; did you mean --tsv?" \
    "--load x --loud:--load shows records and runs nothing, so --loud has no effect"; do
    run "$options" ${bad%%:*}
    check_rc "${bad%%:*}" 2
    check_err "${bad%%:*}" "${bad#*:}"
done
# absent OPTION MESSAGE
absent() {
    ABSENT=$1 run "$options"
    check_rc "--$1 without its add-on" 2
    check_err "--$1 without its add-on" "$2"
    check_same "--$1 without its add-on: one line" "$(wc -l < "$err" | tr -d ' ')" 1
}
absent html 'of examples/addons/kbench_report.h: include it after kbench.h.*build/kbench'
absent race 'of examples/addons/kbench_report.h: include it after kbench.h.*build/kbench'
absent save-baseline 'kbench_report.h: include it after'
absent profile 'of examples/addons/kbench_inspect.h: include it after kbench.h'
absent selftest 'of examples/addons/selftest.cu: build and run that program'
absent nothing 'unknown option --nothing'
finish
