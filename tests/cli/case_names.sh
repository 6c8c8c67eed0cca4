#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that case names are unique: names formed by macros, two benchmarks of the same name, repeated axis values,
# and older files with duplicates.
. tests/lib.sh
. tests/cli/kit.lib

program names tests/cli/case_names.c
quick="--iters 3 --warmup 1 --no-progress"

# --- names from macros and literals
run "$tmp/names" --list
check_rc "--list" 0
check_same "--list: all names" "$(tr '\n' ';' < "$out")" "foo/impl=default;a, b/impl=default;\
tile_64/impl=shape(64, (1, 2))/dtype=f32/m=x,y;tile_64/impl=shape(64, (1, 2))/dtype=f32/m=z;\
bar_2/impl=plain/n=1/alpha=0.5;bar_2/impl=foo/alpha=0.5/n=1;bar_2/impl=plain/n=2/alpha=0.5;bar_2/impl=foo/alpha=0.5/n=2;\
sized/impl=one/n=1;sized/impl=one/n=2;sized/impl=one/n=3;"
run "$tmp/names" --list --op 'a, b'
check_same "--op with a comma in a name" "$(cat "$out")" "a, b/impl=default"
run "$tmp/names" --list --impl 'shape(64, (1, 2)),plain' -a 'm=z'
check_same "--impl: brackets hold commas" "$(wc -l < "$out" | tr -d ' ')" 3
check "case_names.c as C++11" $CXX -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. -x c++ tests/cli/case_names.c
check "case_names.c as C11" $CC -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. tests/cli/case_names.c

# --- two benchmarks with the same name
program twice tests/cli/case_names.c -DTWICE=bar_2
first=$(grep -n 'JOIN(bar, 2), plain' tests/cli/case_names.c | cut -d: -f1) second=$(grep -n '^ROW(2)' tests/cli/case_names.c | cut -d: -f1)
for o in "" --list --list-ops "--json $tmp/none.json" "-a n=2"; do
    run "$tmp/twice" $quick $o
    check_rc "twice $o" 2
    check_err "twice $o: both places" \
        "bar_2/impl=plain/n=2/alpha=0.5 is registered twice, at .*case_names.c:$first and at .*case_names.c:$second"
done
if [ -e "$tmp/none.json" ]; then fail "kbench wrote a file although the plan has two cases of the same name"; else pass; fi
run "$tmp/twice" --list --op sized
check_rc "twice, but not chosen" 0

# --- repeated values
for list in n=1,1 n=1:3,2 alpha=0.5,0.50 n=1k,1024 m=a,a dtype=f32,F32; do
    run "$tmp/names" --list -a $list
    check_rc "-a $list" 0
    check_same "-a $list: names that are there twice" "$(sort "$out" | uniq -d)" ""
done
run "$tmp/names" --list --op sized -a n=7
check_same "-a makes two sizes one" "$(cat "$out")" "sized/impl=one/n=7"

# --- older files with two records of one name
run "$tmp/names" $quick --op sized --size small --json "$tmp/right.json"
check_rc "two cases" 0
sed 's#sized/impl=one/n=2#sized/impl=one/n=1#' "$tmp/right.json" > "$tmp/old.json"
run "$tmp/names" --load "$tmp/old.json" --csv -
check_rc "duplicates in a file" 0
check_err "duplicates in a file are named" 'two different records of sized/impl=one/n=1: two benchmarks had the same name'
check_same "duplicates in a file: rows" "$(grep -c '^sized/impl=one/n=1,' "$out")" 2
run "$tmp/names" --load "$tmp/right.json" "$tmp/right.json" --csv -
check_not_err "a file that is read twice" 'two different records'
check_same "a file that is read twice: rows" "$(grep -c '^sized' "$out")" 2
run "$tmp/names" --compare "$tmp/old.json" "$tmp/old.json" --ignore-env
check_rc "duplicates on both sides" 0
check_err "duplicates on both sides are named" 'two different records of sized/impl=one/n=1'
check_out "duplicates on both sides: each is compared" '(^| )2 (cases )?compared|2 cases'
run "$tmp/names" --compare "$tmp/right.json" "$tmp/old.json"
check_out "duplicates on one side: one is added, one is gone" 'added'
finish
