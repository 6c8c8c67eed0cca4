#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --budget: a run ends within the given time, and every case gets a part of this time. Cases for which no
# time is left are reported, and can be run later.
# measures time
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/budget.c
prog="$tmp/prog --device script --no-progress"
lines=$tmp/l.jsonl
# takes WHAT LEAST MOST COMMAND...: run time between LEAST and MOST ms; a busy machine may take longer
takes() {
    what=$1 least=$2 most=$3 && shift 3
    start=$(now_ms)
    run "$@"
    took=$(($(now_ms) - start))
    if [ $took -ge $least ] && [ $took -le $((2 * most)) ]; then pass; else fail "$what: took $took ms, expected $least to $most ms; $(said)"; fi
}
count() { grep -c '"status": "ok"' "$1"; }

takes "a budget" 500 2500 $prog --op noisy,alone -a n=1:4 --budget 1s --json "$tmp/a.json"
check_rc "a budget" 0
check_same "a budget: every case has a time" "$(count "$tmp/a.json")" 12
check_not_err "a budget" 'not run'
# one case needs less than its share; the rest goes to the other cases
run $prog --op quiet --budget 1s --json "$tmp/q.json"
check_not_err "known well enough" '--budget'
takes "a long budget is no duty" 0 3000 $prog --op quiet --budget 1h
# with a long budget, a case may take more than the usual limit of one second
takes "longer than without" 1600 4500 $prog --op slow -a n=1 --budget 2500ms --json "$tmp/b.json"
check_rc "longer than without" 0
check_not_err "longer than without" 'had less time'

# --- a short budget: the first cases are measured; kbench names the cases without a time, and --resume runs them
rm -f "$lines"
takes "too short" 100 1800 $prog --op slow --budget 600ms --jsonl "$lines"
check_rc "too short" 0
done=$(count "$lines")
if [ "$done" -ge 1 ] && [ "$done" -lt 8 ]; then pass; else fail "a budget that is too short: $done of 8 cases were measured"; fi
check_err "too short" "budget 0.6s: $((8 - done)) not run; .*--resume runs them"
run $prog --op slow --list --resume --jsonl "$lines"
check_same "too short: what is left" "$(wc -l < "$out" | tr -d ' ')" $((8 - done))
run $prog --op slow --budget 20s --max-time 20ms --resume --jsonl "$lines" --json "$tmp/r.json"
check_rc "resumed" 0
check_not_err "resumed" 'not run'
check_same "resumed: each case once" "$(sed 's/^{"name": "\([^"]*\)".*/\1/' "$lines" | sort -u | wc -l | tr -d ' ') of $(count "$lines")" "8 of 8"
# even the shortest budget measures one case
takes "next to nothing" 0 1500 $prog --op slow --budget 1ms --json "$tmp/n.json"
check_rc "next to nothing" 0
check_same "next to nothing: one case" "$(count "$tmp/n.json")" 1
check_err "next to nothing" '7 not run'

# --- --budget combined with other options
takes "--procs" 600 4000 $prog --op noisy,alone -a n=1:4 --procs 3 --budget 1500ms --json "$tmp/p.json"
check_rc "--procs" 0
check_same "--procs: every case has a time" "$(count "$tmp/p.json")" 12
takes "--procs, too short" 100 2500 $prog --op slow --procs 3 --budget 600ms --json "$tmp/p.json"
check_rc "--procs, too short" 0
check_err "--procs, too short" 'not run'
check_same "--procs, too short: records are of two processes at least" "$(grep -c '"processes": [23],' "$tmp/p.json")" "$(count "$tmp/p.json")"
takes "--shard" 200 2500 $prog --op noisy,alone --shard 2/3 --budget 1s --json "$tmp/s.json"
check_same "--shard: every case of it" "$(count "$tmp/s.json")" "$($prog --op noisy,alone --shard 2/3 --list | wc -l | tr -d ' ')"
takes "--no-isolate" 200 2000 $prog --op alone --no-isolate --budget 500ms --json "$tmp/i.json"
check_same "--no-isolate: every case" "$(count "$tmp/i.json")" 6
takes "--max-time is the most that a case gets" 0 3000 $prog --op alone --max-time 20ms --budget 1h
check_not_err "--max-time is the most" 'budget'
takes "--min-time is the least" 500 2500 $prog --op alone --min-time 200ms --budget 500ms --json "$tmp/m.json"
check_err "--min-time is the least" '[345] not run'
run $prog --budget 2s --dry-run
check_out "--dry-run" 'at most about 2 s'
for bad in 0 0s 5 soon; do
    run $prog --budget $bad
    check_rc "--budget $bad" 2
done
finish
