#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the default options of a program (kb_default): when they apply, which options of the command line replace
# them, and the effect of --all.
. tests/lib.sh
. tests/cli/kit.lib

program usual tests/cli/default_options.c
# dry OPTION...: prints the cases that would run, and the last line into $last
dry() {
    run "$tmp/usual" --dry-run "$@"
    check_rc "--dry-run $*" 0
    last=$(tail -n 1 "$out")
    sed '$d' "$out" > "$tmp/cases"
}
cases() { wc -l < "$tmp/cases" | tr -d ' '; }
quick="--warmup 50ms --max-time 34ms"
dry $quick
check_same "without kb_default" "$last" "40 cases in 20 comparison groups; at most about 4 s"

USUAL="$quick --filter /n=3" && export USUAL
dry
check_same "the options of kb_default" "$(cases)" 8
check_same "--all is named" "${last##*; }" "--all runs everything"
for said in --all "--op first,second,third" "--filter ." --fast "--iters 3" "--max-time 10ms" "--budget 1h"; do
    dry $said
    check_same "$said replaces them" "$(cases)" 40
done
for said in --shuffle --hot -v "--seed 7"; do
    dry $said
    check_same "$said stands beside them" "$(cases)" 8
done
run "$tmp/usual" --list
check_same "--list lists all" "$(wc -l < "$out" | tr -d ' ')" 40
for bad in "--all --op first" "--all --fast" "--all --iters 3"; do
    run "$tmp/usual" $bad
    check_rc "$bad" 2
    check_err "$bad" "--all has no effect"
done
COLUMNS=80 run "$tmp/usual" --json "$tmp/usual.json" --no-progress
check_rc "a run with them" 0
check_err "a run with them says how much it runs" '^usual: 8 cases, at most .*; --all runs everything$'
run "$tmp/usual" --device 9 --json "$tmp/none.json" --no-progress
check "a run that cannot begin fails" test "$rc" -ne 0

many=$(printf -- '-q %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
USUAL=$many run "$tmp/usual" --dry-run
check_rc "more usual options than there is room for" 2
check_err "more usual options than there is room for" 'kb_default: more than 30 words'
USUAL=--nonsense run "$tmp/usual" --dry-run
check_rc "a mistake in what the program says" 2
check_err "a mistake in what the program says" 'unknown option --nonsense'
unset USUAL
run "$tmp/usual" --all
check_rc "--all of a program that leaves nothing out" 2
check_err "--all of a program that leaves nothing out" '--all has no effect'
finish
