#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the regression gate: exit code and messages for a baseline, a history and goals. The program has scripted
# times (regression_gate.c), so that every change is known.
#
#   sh tests/cli/regression_gate.sh            20 repeats of the program, 20 of one with a planted change
#   sh tests/cli/regression_gate.sh --full     100 of each
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/regression_gate.c
work=$(cd "$tmp" && pwd)
prog="$work/prog --device script --no-progress --iters 20"
repeats=20
if [ "${1-}" = --full ]; then repeats=100; fi
# at NAME=VALUE... -- OPTION...: runs the program in the scratch folder
at() {
    set_to=
    while [ "$1" != -- ]; do set_to="$set_to $1"; shift; done
    shift
    run sh -c 'cd "$1" && shift && exec "$@"' sh "$work" env $set_to $prog "$@"
}
# files OPTIONS...: compares record files and runs no benchmark
files() { run sh -c 'cd "$1" && shift && exec "$@"' sh "$work" ./prog --no-progress "$@"; }

# --- a baseline by name
at -- --baseline first
check_rc "no baseline yet" 2
check_err "no baseline yet" "neither .kbench/first.json nor a file.*--save-baseline first"
at -- --save-baseline first
check_rc "saved" 0
check_err "saved" "baseline first: 10 records in .kbench/first.json"
check_same "one file is there" "$(ls "$work/.kbench")" first.json
cp "$work/.kbench/first.json" "$work/first.json"
at -- --baseline first
check_rc "the same again" 0
check_out "the same again" "^No change: 0 of 10 cases changed by more than 5"
check_out "what its intervals rest on" "own samples, widened by 3.0% \(--noise\)"
check_not_out "nothing is open: no advice" "--procs 5"
at -- --baseline first.json
check_rc "by its file" 0

# --- an output that is no longer checked is reported, and fails --fail-on change
at UNCHECKED=1 -- --baseline first
check_rc "no longer checked" 0
check_out "no longer checked: the case" "n=10$"
check_out "no longer checked: below the case" "^    the output was verified before, and is no longer checked"
check_out "no longer checked: in the summary" "1 no longer verified"
at UNCHECKED=1 -- --baseline first --fail-on change
check_rc "no longer checked, --fail-on change" 3

# --- slower, faster, within the threshold
at SLOWER=15 -- --baseline first
check_rc "15 % slower" 3
check_out "15 % slower: the case, the change, the interval and how bad it is" \
    '^ *\+1[45]\.[0-9]% +\[\+1[12]\.[0-9]%, \+1[89]\.[0-9]%\] +REGRESSED moderate +op/impl=default/n=3$'
check_out "15 % slower: in a sentence" "^Slower: 1 of 10 cases by more than 5.0%, at worst \+1[45].*n=3"
at SLOWER=-15 -- --baseline first
check_rc "an improvement never fails" 0
check_out "an improvement is named" "IMPROVED .*n=3"
at SLOWER=-15 -- --baseline first --fail-on change
check_rc "unless any change does" 3
at SLOWER=15 -- --baseline first --fail-on never
check_rc "--fail-on never" 0
check_out "--fail-on never still says so" "REGRESSED"
at SLOWER=7 -- --baseline first
check_rc "7 % that are not surely above 5" 0
check_out "7 % are SLOWER all the same" " SLOWER  .*n=3"
at SLOWER=6 -- --baseline first
tr '\n' ' ' < "$out" > "$tmp/flat" && cp "$tmp/flat" "$out"
check_out "what makes an open case certain" "between processes; --procs 5 in both runs measures these differences"
at SLOWER=7 -- --baseline first --noise 0.5
check_rc "7 % where processes differ by 0.5 %" 3
at SLOWER=15 -- --baseline first --threshold 20
check_rc "15 % with a threshold of 20" 0
at SLOWER=6 -- --baseline first --fail-on noise
check_rc "6 %: not certain" 4
at -- --baseline first --fail-on noise
check_rc "nothing changed: certain" 0

# --- memory
at MEMORY=8192 -- --baseline first
check_rc "more memory" 3
check_out "more memory" "memory \+200.0%: 12.0 KiB, was 4.00 KiB"
at MEMORY=8192 -- --baseline first --memory-threshold 300
check_rc "a threshold of its own" 0

# --- cases that fail, appear or disappear
at FAILS=1 -- --baseline first
check_rc "a failed case goes before all else" 1
check_out "a failed case" "failed .*n=10"
at FAILS=1 SLOWER=15 -- --baseline first --fail-on never
check_rc "--fail-on never takes back no failure" 1
at -- --baseline first --axis n=1:12
check_rc "added cases" 0
check_out "added cases" "added .*n=12"
check_out "added cases" "2 added"
at -- --baseline first --axis n=1:12 --fail-on change
check_rc "added cases are a change" 3
at -- --baseline first --axis n=1:9
check_out "removed cases" "removed .*n=10"

# --- a baseline is not replaced by worse results
at SLOWER=15 -- --baseline first --save-baseline first
check_rc "worse than the baseline that it would replace" 3
check_err "worse than the baseline" "the old baseline is kept"
if cmp -s "$work/first.json" "$work/.kbench/first.json"; then pass; else fail "a worse run replaced the baseline"; fi
at SLOWER=15 -- --baseline first --save-baseline slow
check_rc "under another name" 3
at -- --save-baseline ../x
check_rc "a baseline's name is no path" 2

# --- two files
files --compare first slow
check_rc "--compare" 3
check_out "--compare" "REGRESSED moderate +op/impl=default/n=3"
files --compare slow .kbench/first.json
check_rc "--compare, the other way round" 0
check_out "--compare, the other way round" "IMPROVED"
files --compare first
check_rc "--compare takes two" 2
files --compare first slow --filter n=4
check_rc "--compare of some" 0
check_out "--compare of some" " 0 of 1 cases "
files --load .kbench/slow.json --baseline first
check_rc "--load and a baseline" 3
head -c 3000 "$work/first.json" > "$work/torn.json"
files --compare torn.json slow
check_rc "a damaged file" 2

# --- other programs on the processor lengthen samples, but hide no slowdown of the shortest sample
# processor FROM TO WAITED FACTOR: times of a CPU that waited for the processor; the median is FACTOR times as long
processor() {
    sed "s/\"timer\": \"events\"/\"timer\": \"wall\"/; s/\"cpu_waited\": [^,]*/\"cpu_waited\": $3/" "$1" |
        sed 's/"cpu_stolen": [^,]*/"cpu_stolen": 0/' | awk -v factor="$4" '{
            while (match($0, /"(time_ms|time_ms_ci_low|time_ms_ci_high)": [0-9.e-]+/)) {
                pair = substr($0, RSTART, RLENGTH); colon = index(pair, ": ")
                printf "%s%.9g", substr($0, 1, RSTART + colon), factor * substr(pair, colon + 2)
                $0 = substr($0, RSTART + RLENGTH)
            }
            print
        }' > "$2"
}
processor "$work/first.json" "$work/quiet.json" 4 1
processor "$work/first.json" "$work/busy.json" 50 1.4
processor "$work/first.json" "$work/idle.json" 4 1.4
processor "$work/.kbench/slow.json" "$work/busy_slow.json" 50 1.01
files --compare quiet.json idle.json
check_rc "a processor that was hardly shared: all are slower" 3
check_out "a processor that was hardly shared" "^Slower: 10 of 10 cases"
check_not_out "a processor that was hardly shared" "Other programs"
files --compare quiet.json busy.json
check_rc "a disturbed new run is no regression" 0
check_not_out "a disturbed new run" 'REGRESSED|SLOWER'
check_out "a disturbed new run" "^Not certain: 10 cases compared"
tr '\n' ' ' < "$out" > "$tmp/flat" && cp "$tmp/flat" "$out"
check_out "a disturbed new run: the reason" "Other programs, .* uncertain cases \(0 in the old run, 10 in the new run\)"
check_out "a disturbed new run: what to do" "Repeat the disturbed run on a quiet machine, or use --race"
files --compare quiet.json busy.json --fail-on noise
check_rc "a disturbed new run, --fail-on noise" 4
files --compare busy.json quiet.json
check_rc "a disturbed baseline" 0
check_not_out "a disturbed baseline is no improvement" 'IMPROVED|FASTER'
files --compare busy.json quiet.json --fail-on noise
check_rc "a disturbed baseline, --fail-on noise" 4
files --compare quiet.json busy_slow.json
check_rc "15 % slower in each sample of a disturbed run" 3
check_out "15 % slower in each sample of a disturbed run" 'REGRESSED .*n=3$'

# --- records of another machine: times are not compared, and the gate cannot fail
sed 's/"cpu": "[^"]*"/"cpu": "Abacus 3000"/' "$work/first.json" > "$work/other.json"
files --compare other.json slow
check_rc "another processor" 0
check_err "another processor" "differ in CPU \(Abacus 3000; .*not compared"
check_not_out "another processor: the table calls nothing worse" 'REGRESSED|Slower|SLOWER'
check_out "another processor: the table" 'not comparable'
check_same "another processor: the reason stands before the table" \
    "$(grep -n -e 'differ in' -e '^ *change .*verdict' "$out" | sed 's/^[0-9]*: *//; s/ .*//' | tr '\n' ' ')" "The change "
# schema 2 has one key `mode` for cache state and timer
sed 's/"cache": "cold"/"cache": "hot"/' "$work/.kbench/slow.json" > "$work/hot.json"
sed 's/"timer": "events"/"timer": "cupti"/' "$work/.kbench/slow.json" > "$work/cupti.json"
sed 's/"cache": "cold", "timer": "events"/"mode": "cold"/; s/"schema": 3/"schema": 2/' "$work/.kbench/slow.json" > "$work/older.json"
for other in "hot:cache .cold; hot." "cupti:timer .events; cupti."; do
    files --compare first "${other%%:*}.json"
    check_rc "another ${other#*:}" 0
    check_err "another ${other#*:}" "differ in ${other#*:}\. Their times are not compared"
    check_not_out "another ${other#*:}: the table" 'REGRESSED|SLOWER|EQUIVALENT'
    files --compare first "${other%%:*}.json" --fail-on noise
    check_rc "another ${other#*:}, --fail-on noise" 4
done
files --compare first older.json
check_rc "schema 2 is compared" 3
check_out "schema 2 is compared" REGRESSED
check_not_err "schema 2 is compared" 'not compared'
files --compare other.json slow --fail-on noise
check_rc "another processor, --fail-on noise" 4
files --compare other.json slow --ignore-env
check_rc "another processor, --ignore-env" 3
sed 's/"git_commit": [^,]*/"git_commit": "0123456789abcdef"/' "$work/first.json" > "$work/commit.json"
files --compare commit.json slow
check_rc "another commit is what a gate is for" 3
check_out "another commit is named" "before +commit.json .*commit 0123456789ab"

# --- fresh processes
at NOISE=1 -- --procs 5 --save-baseline procs
at NOISE=1 SLOWER=20 -- --procs 5 --baseline procs
check_rc "fresh processes, 20 % slower" 3
check_out "several processes" "intervals from several processes"

# --- a history
i=0
while [ $i -lt 12 ]; do
    at NOISE=1 -- --history past.jsonl
    i=$((i + 1))
done
check_rc "a history" 0
check_same "a history has a line a record" "$(wc -l < "$work/past.jsonl" | tr -d ' ')" 120
check_out "a history is shown" "^12 runs in past.jsonl"
at NOISE=1 SLOWER=15 -- --history past.jsonl --baseline first
check_rc "what the history knows of the noise" 3
check_out "what the history knows of the noise" "intervals from the differences between runs in the history"
check_out "and what the case took before" "^13 runs in"
i=0
while [ $i -lt 12 ]; do
    at NOISE=0.5 SLOWER=$i -- --history creep.jsonl
    i=$((i + 1))
done
check_out "a creep that no single run shows" 'rising  .*n=3$'
printf '{"name": "op' >> "$work/creep.jsonl"
at -- --history creep.jsonl
check_rc "a history that a run was killed in" 0
files --load creep.jsonl -q
check_rc "it is whole again" 0
at -- --history /nonexistent/past.jsonl
check_rc "a history that cannot be written" 2

# --- goals
at -- --goal 'n=3:time_ms<=0.011' --goal 'op:samples>=20'
check_rc "goals that are reached" 0
check_out "goals that are reached" "^goal op:samples>=20: reached by 10 of 10 cases"
at SLOWER=15 -- --goal 'n=3:time_ms<=0.011'
check_rc "a goal that is missed" 3
check_out "a goal that is missed" "^goal missed: time_ms 0.011[45].* in op/impl=default/n=3"
at -- --goal 'gpu_efficiency>=80'
check_rc "a goal that nobody measured is missed" 3
check_out "a goal that nobody measured" "gpu_efficiency is not known"
for goal in 'op:nothing>=3' 'op:time_ms=3' 'op:time_ms>=' 'op:name>=3' '(:time_ms>=3'; do
    at -- --goal "$goal"
    check_rc "goal $goal" 2
done

# --- options without effect are rejected
for options in "--threshold 3" "--noise 1" "--fail-on never" "--ignore-env" "--alpha 0.1" \
    "--baseline first --fail-on regres" "--baseline first --threshold x" "--list --baseline first" \
    "--baseline first --alpha 2" "--load first.json --save-baseline x" "--compare first slow --json x"; do
    at -- $options
    check_rc "$options" 2
done

# --- repeated runs of one program, with the noise between processes of a noisy machine
alarms=0 found=0
at NOISE=1 -- --save-baseline again
i=0
while [ $i -lt $repeats ]; do
    at NOISE=1 -- --save-baseline before
    at NOISE=1 -- --baseline before
    if [ "$rc" -ne 0 ]; then alarms=$((alarms + 1)); fi
    at NOISE=1 SLOWER=15 -- --baseline before
    if [ "$rc" -eq 3 ] && grep -q 'REGRESSED.*n=3$' "$out"; then found=$((found + 1)); fi
    i=$((i + 1))
done
printf '%d of %d repeats called a regression; 15 %% in one case of ten found in %d\n' $alarms $repeats $found
if [ $alarms -le $((repeats / 20)) ]; then pass; else fail "$alarms of $repeats runs of an unchanged program reported a regression"; fi
check_same "15 % slower found" $found $repeats
finish
