#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The part of the cases that --part chooses: of each operation some, the same every time; what a program runs by itself,
# and --all.
. tests/lib.sh
. tests/cli/kit.sh

build "part.c" $CC -O1 -I. tests/cli/part.c -o "$tmp/part_of" $libs
reader
# dry OPTION...: the cases that would run, without the last line; that is in $last
dry() {
    run "$tmp/part_of" --dry-run "$@"
    check_rc "--dry-run $*" 0
    last=$(tail -n 1 "$out")
    sed '$d' "$out" > "$tmp/cases"
}
cases() { wc -l < "$tmp/cases" | tr -d ' '; }

# --- a group of two takes 0.4 s with its warm-ups and what is done beside it
quick="--warmup 50ms --max-time 34ms"
dry $quick
check_same "without a budget" "$last" "40 cases in 20 comparison groups; at most about 4.0 s"
dry $quick --part 1h
check_same "a part of time for all of it" "$(cases)" 40
dry $quick --part 1.65s
check_same "a part of time for one group of each: the shapes in the middle" \
    "$(sed 's,/impl=[^/]*,,' "$tmp/cases" | sort -u | tr '\n' ' ')" "first/n=3 second/dir=bwd/n=3 second/dir=fwd/n=3 third/n=3 "
check_same "a part" "${last%%;*}" "8 of 40 cases in 4 comparison groups"
dry $quick --part 3.3s
check_same "a part of time for two: from both halves" "$(sed 's,.*/n=,,' "$tmp/cases" | sort -u | tr '\n' ' ')" "1 3 "
check_same "whole groups" "$(sed 's,/impl=[^/]*,,' "$tmp/cases" | uniq -c | awk '$1 != 2')" ""
cp "$tmp/cases" "$tmp/before"
dry $quick --part 3.3s
check "the same part again" cmp "$tmp/cases" "$tmp/before"
dry $quick --part 3.3s --procs 2
check_same "two processes: half of it" "$(cases)" 8
run "$tmp/part_of" $quick --part 10ms
check_rc "a part of time for nothing" 2
check_err "a part of time for nothing" '--part: no comparison group takes so little; raise it'
OTHERS=1 && export OTHERS # what cannot run here takes none of the time
dry $quick --part 10ms --op of_gpu
check_same "a part of what cannot run here" "$(cat "$tmp/cases")" "of_gpu/impl=default"
dry $quick --part 300ms
check_same "what is too long leaves its time to what is shorter" "$(tr '\n' ' ' < "$tmp/cases")" "of_gpu/impl=default alone/impl=default "
unset OTHERS
dry $quick --part 1h --filter 'first|second|n=3'
check_same "a part of time for all of what has different numbers of shapes" "$(cases)" 32
run "$tmp/part_of" --list --part 3s
check_rc "--list --part" 2

# --- the run is of that part, and says so in its first line
COLUMNS=80 run "$tmp/part_of" $quick --part 3.3s --json "$tmp/part.json" --no-progress
check_rc "a run of a part" 0
check_same "a run of a part: its first line" "$(head -n 1 "$err")" "part_of: 16 cases, at most about 1.6 s"
check_err "a run of a part: its files" "^part_of: written: $tmp/part.json\$"
run "$tmp/part_of" $quick --part 3.3s --device 9 --json "$tmp/none.json" --no-progress
check "a run that cannot begin fails" test "$rc" -ne 0
if grep -q 'written' "$err"; then fail "a run that cannot begin: $(cat "$err")"; else pass; fi
"$tmp/flat" "$tmp/part.json" | awk -F'\t' '$2 == "name" { gsub(/"/, "", $3); print $3 }' > "$tmp/measured"
grep -vxFf "$tmp/before" "$tmp/measured" > "$tmp/others"
check_same "a run of a part: no other cases" "$(cat "$tmp/others")" ""
check "a run of a part: some of each" test "$(cut -d/ -f1 "$tmp/measured" | sort -u | wc -l)" -ge 1

# --- what a program runs by itself
USUAL="$quick --part 1.65s" && export USUAL
dry
check_same "the usual part" "$(cases)" 8
check_same "the usual part names the way to the rest" "${last##*; }" "--all runs everything"
for said in --all "--op first,second,third" "--filter ." --fast "--iters 3" "--max-time 10ms" "--part 1h"; do
    dry $said
    check_same "$said: no part" "$(cases)" 40
done
for said in --shuffle --hot -v "--seed 7"; do
    dry $said
    check_same "$said: the usual part" "$(cases)" 8
done
run "$tmp/part_of" --list
check_same "--list lists all" "$(wc -l < "$out" | tr -d ' ')" 40
for bad in "--all --op first:the other options choose" "--all --fast:the other options choose" "--all --part 3s:the other options choose"; do
    run "$tmp/part_of" ${bad%%:*}
    check_rc "${bad%%:*}" 2
    check_err "${bad%%:*}" "--all: ${bad#*:}"
done
unset USUAL
run "$tmp/part_of" --all
check_rc "--all of a program that leaves nothing out" 2
check_err "--all of a program that leaves nothing out" '--all: this program leaves no case out by itself'
many=$(printf -- '-q %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
USUAL=$many run "$tmp/part_of" --dry-run
check_rc "more usual options than there is room for" 2
check_err "more usual options than there is room for" 'kb_default: more than 31 words'
USUAL="--fast $(printf -- '--op %300s' x)" run "$tmp/part_of" --dry-run
check_rc "usual options that are too long" 2
check_err "usual options that are too long" 'kb_default: more than 255 characters'
USUAL=--nonsense run "$tmp/part_of" --dry-run
check_rc "a mistake in what the program says" 2
check_err "a mistake in what the program says" 'unknown option --nonsense'
finish
