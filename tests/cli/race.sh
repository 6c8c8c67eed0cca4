#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --race, which compares two compiled programs in alternating new processes. Most of the compared
# programs have scripted times (regression_gate.c) with noise as on a busy machine; two programs do real work.
#
#   sh tests/cli/race.sh            2 races of a program against itself, 2 against one that is 3 % slower
#                                   (10 in make test-all)
#   sh tests/cli/race.sh --full     100 of each, and 20 against a program with 3 % more real work
# measures time
. tests/lib.sh
. tests/cli/kit.lib

program old tests/cli/regression_gate.c
program slow3 tests/cli/regression_gate.c -DSLOWER=3
program slow15 tests/cli/regression_gate.c -DSLOWER=15
program work tests/cli/race.c
program more60 tests/cli/race.c -DMORE=60
program more3 tests/cli/race.c -DMORE=3
old=$tmp/old
TMPDIR=$(cd "$tmp" && pwd)
export TMPDIR
races=${RACES:-$(everything && echo 10 || echo 2)}
if [ "${1-}" = --full ]; then races=100; fi
quick="--device script --iters 10"

# --- the table, the exit code, and no temporary file is left
run "$old" --race "$old" "$tmp/slow15" -- $quick
check_rc "15 % slower" 3
check_out "15 % slower" '^ *\+1(4\.9|5\.[0-2])% +\[\+1[45]\.[0-9]%, \+15\.[0-9]%\] +REGRESSED moderate +op/impl=default/n=3$'
check_out "quiet programs take the fewest rounds" "slow15 against .*old: 6 rounds in"
check_out "what it rests on" "intervals from the rounds of the race"
check_not_err "no progress where nobody looks" "round"
run "$old" --race "$tmp/slow15" "$old" -- $quick
check_rc "an improvement" 0
check_out "an improvement" "IMPROVED"
run "$old" --race "$old" "$tmp/slow15" --threshold 20 -- $quick
check_rc "a threshold of its own" 0
run "$old" --race "$old" "$tmp/slow15" --fail-on never -- $quick
check_rc "--fail-on never" 0
COLUMNS=200 run "$old" --race "$old" "$tmp/slow3" "$tmp/slow15" -- $quick --axis n=3,4
check_rc "three programs" 3
check_out "three programs" 'SLOWER .* [^ ]*slow3: op/impl=default/n=3$'
check_out "three programs" 'REGRESSED moderate .* [^ ]*slow15: op/impl=default/n=3$'
COLUMNS=60 run "$old" --race "$old" "$tmp/slow3" "$tmp/slow15" -- $quick --axis n=3
check_out "a name that has no room in the row stands below it" '^    .*slow15: op/impl=default/n=3$'
check_same "lines over 60 columns" "$(awk '/^ +change/ { on = 1 } on && length($0) > 60' "$out")" ""
check_same "files that a race leaves" "$(ls "$TMPDIR" | grep -c kbench-race)" 0

# --- records of two GPUs with the same case names: changes are reported for each GPU separately
# gpus FILE MS0 MS1: makes a program whose case takes MS0 ms on GPU 0 and MS1 ms on GPU 1; the times differ by 0.1
# % from round to round.
gpus() {
    cat > "$1" << end
#!/bin/sh
for option; do
    case \$before in --jsonl) file=\$option ;; esac
    before=\$option
done
echo >> "\$0.rounds"
printf '%s ' "\${0##*/}" >> "$tmp/turns"
last=\$((\$(wc -l < "\$0.rounds") % 2))
for device in 0 1; do
    ms=$2 && [ \$device = 1 ] && ms=$3
    echo '{"name": "op/impl=default", "operation": "op", "implementation": "default", "params": {}, "status": "ok", "flags": [],' \\
        '"backend": "cuda", "gpu": "G", "device": '\$device', "time_ms": '\$ms\$last'}' >> "\$file"
done
end
    chmod +x "$1"
}
gpus "$tmp/two_gpus" 1.00 2.00
gpus "$tmp/first_slower" 1.20 2.00
run "$old" --race "$tmp/two_gpus" "$tmp/first_slower" --color never
check_rc "two GPUs, one of them slower" 3
check_out "two GPUs, one of them slower" '^ *\+20\.0% .* REGRESSED'
check_same "two GPUs, one of them slower: cases that are" "$(grep -cE ' (REGRESSED|SLOWER|IMPROVED|FASTER) .*op/impl=default' "$out")" 1

# --- the order alternates, and each program begins in turn
for program in a b c; do gpus "$tmp/$program" 1.00 1.00; done
rm "$tmp/turns"
run "$old" --race "$tmp/a" "$tmp/b" "$tmp/c"
check_rc "three programs alike" 0
check_same "whose turn it is" "$(cat "$tmp/turns")" "a b c c b a b c a a c b c a b b a c "

# --- on a terminal, a progress line is shown and removed
if have python3 && python3 -c 'import pty, termios' 2> /dev/null; then
    # window OPTION...: puts the final screen into $out, and the texts of the progress line into $err
    window() { run python3 tests/cli/terminal.py 120 TERM=xterm LANG=C.UTF-8 -- "$old" --race "$old" "$tmp/slow3" "$@"; }
    window --budget 50s --threshold 6 -- $quick
    check_rc "a window" 0
    check_err "a window: the first round" '^\[round 1\]  0 s of 50 s at most +[^ ]*slow3$'
    check_err "a window: a later round" '^\[round 6\]  [0-9]+ s of 50 s at most  known to [<0-9.]+%, target 1\.9% +[^ ]*slow3$'
    for option in --quiet --no-progress; do
        window $option --threshold 6 -- $quick
        check_not_err "a window: $option" 'round'
    done
else
    skip "no python3 that can open a terminal: a race on a terminal is not tested"
fi

# --- the budget ends the race, with a message
run env NOISE=30 "$old" --race "$old" "$tmp/slow15" --budget 1s --fail-on never -- $quick
check_rc "a budget that is too short" 0
check_err "a budget that is too short" "ended at its --budget. The changes (are known to within .*|do not all have a confidence interval); the target is 1.6%.* Raise --budget"
run "$old" --race "$old" "$tmp/slow15" --budget 1ms --fail-on never -- $quick
check_out "one round" "slow15 against .*old: 1 round in"
check_out "one round: no interval" "^no interval: too few or too noisy samples"
cp "$old" "$tmp/twin"
for try in 1 2 3; do # of equal programs one race in twenty may find one slower
    run env NOISE=30 "$old" --race "$old" "$tmp/twin" --budget 1s --fail-on noise -- $quick
    [ "$rc" = 3 ] || break
done
check_rc "a budget that is too short, --fail-on noise" 4

# --- programs that cannot race
run "$old" --race "$old"
check_rc "one program" 2
run "$old" --race "$old" "$tmp/nothing"
check_rc "a program that is not there" 2
check_err "a program that is not there" "nothing: No such file"
run "$old" --race "$old" tests/lib.sh
check_rc "no program" 2
cat > "$tmp/garbled" << 'end'
#!/bin/sh
for option; do
    case $before in --json*) echo '[{"name": ' > "$option" ;; esac
    before=$option
done
end
chmod +x "$tmp/garbled"
run "$old" --race "$old" "$tmp/garbled" -- $quick
check_rc "a program whose records are none" 1
check_err "a program whose records are none" "the file ends in the middle of a record"
cat > "$tmp/killed" << 'end'
#!/bin/sh
echo "out of luck" >&2
kill -9 $$
end
chmod +x "$tmp/killed"
run "$old" --race "$old" "$tmp/killed" -- $quick
check_rc "a program that a signal ends" 2
check_err "a program that a signal ends" "killed ended with signal 9"
check_err "a program that a signal ends: what it said" "^    out of luck"
mkdir -p "$tmp/folder"
: > "$tmp/file"
for none in folder file; do
    run "$old" --race "$old" "$tmp/$none" -- $quick
    check_rc "a $none as a program" 2
    check_err "a $none as a program" "$none is not an executable program"
done
run "$old" --race "$old" "$tmp/slow3" -- $quick --bogus
check_rc "options that the programs refuse" 2
check_err "options that the programs refuse" "unknown option --bogus"
run "$old" --race "$old" "$tmp/slow3" --iters 10
check_rc "the programs' options beside the race's" 2
check_err "the programs' options beside the race's" "Write options for these programs after --"
run "$old" --race "$old" "$tmp/slow3" -- --jsonl x
check_rc "the records' own file" 2
run "$old" --race "$old" "$tmp/work" -- --device cpu --iters 10 --exclude op
check_rc "no case in common" 2
gpus "$tmp/others" 1.00 1.00
sed 's,op/impl,other/impl,' "$tmp/others" > "$tmp/strangers" && chmod +x "$tmp/strangers"
run "$old" --race "$tmp/two_gpus" "$tmp/strangers"
check_rc "no case of the same name" 1
check_err "no case of the same name" "no common case with a time"
check_out "no case of the same name: a round says that" ": 1 round in"
run env FAILS=1 "$old" --race "$old" "$tmp/slow3" -- $quick
check_rc "a case that fails in both" 1
check_out "a case that fails in both" "failed .*n=10"
run env GONE=1 "$old" --race "$old" "$tmp/slow15" -- $quick
check_rc "a case that is skipped" 3

# --- a signal ends the race and its programs
"$old" --race "$tmp/work" "$tmp/more60" -- --iters 20000 > "$tmp/signal.out" 2>&1 < /dev/null &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
check_same "a signal" $? 130
check_same "files after a signal" "$(ls "$TMPDIR" | grep -c kbench-race)" 0

# --- programs with real work: 60 % more work is detected on any machine
run "$tmp/work" --race "$tmp/work" "$tmp/more60" --budget 20s --threshold 10
check_rc "60 % more work" 3
check_out "60 % more work" "REGRESSED severe +work/"

# --- a program against itself, and against a program that is 3 % slower in one case
different=0 regressed=0 found=0 i=0
while [ $i -lt $races ]; do
    run env NOISE=1.2 "$old" --race "$old" "$old" -- $quick
    if grep -qE ' (SLOWER|FASTER|REGRESSED|IMPROVED)' "$out"; then different=$((different + 1)); fi
    if [ "$rc" -ne 0 ]; then regressed=$((regressed + 1)); fi
    run env NOISE=1.2 "$old" --race "$old" "$tmp/slow3" -- $quick
    if grep -qE ' (SLOWER|REGRESSED).*n=3$' "$out"; then found=$((found + 1)); fi
    i=$((i + 1))
done
printf 'of %d races: against itself %d called different, %d a regression; 3 %% slower found in %d\n' $races $different \
    $regressed $found
if [ $races -lt 10 ]; then :; elif [ $different -le $((races / 20 + 3)) ]; then pass; else fail "$different of $races called different"; fi
if [ $regressed -le $((races / 20)) ]; then pass; else fail "$regressed of $races called a regression"; fi
if [ $found -ge $(((races * 95 + 10) / 100 - 1)) ]; then pass; else fail "3 % slower found in $found of $races"; fi

if [ "${1-}" = --full ]; then
    found=0 i=0
    while [ $i -lt 20 ]; do
        run "$tmp/work" --race "$tmp/work" "$tmp/more3" --budget 120s
        if grep -qE ' (SLOWER|REGRESSED).*work/' "$out"; then found=$((found + 1)); fi
        i=$((i + 1))
    done
    printf 'of 20 races with real work 3 %% more was found in %d\n' $found
    if [ $found -ge 19 ]; then pass; else fail "3 % more work found in $found of 20"; fi
fi
finish
