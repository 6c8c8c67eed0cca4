#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests differences between the machines of two sets of records. All differences are listed with both values, and
# differences that prevent a comparison of times are marked.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
prog=$tmp/prog
"$prog" --op softmax,silu --device cpu --max-time 20ms --no-progress --json "$tmp/a.json" > "$tmp/out" 2>&1 || fail "no records: $(cat "$tmp/out")"
field() { sed "s/\"$1\": [^,]*,/\"$1\": $2,/"; }
check_same "every record has an environment" "$(grep -c '"environment": {' "$tmp/a.json")" "$(grep -c '"name": "' "$tmp/a.json")"
# the environment values must not depend on this machine
sed 's/"environment": {[^}]*}/"environment": {"aslr": 2, "cpu_limit": 4, "smt": 1}/' "$tmp/a.json" |
    field host '"one"' | field cpu_governor '"performance"' | field cpu '"Abacus 2000"' > "$tmp/b.json"
sed 's/"aslr": 2/"aslr": 0/; s/"cpu_limit": 4/"cpu_limit": 1.5/; s/"smt": 1/"huge_pages": "never"/' "$tmp/b.json" |
    field host '"two"' | field cpu_governor '"powersave"' > "$tmp/c.json"
field cpu '"Abacus 3000"' < "$tmp/c.json" > "$tmp/d.json"

run "$prog" --env --load "$tmp/b.json" "$tmp/b.json"
check_rc "the same" 0
check_out "the same" '^no difference in the properties that both files record$'
run "$prog" --env "$tmp/b.json" "$tmp/c.json"
check_rc "files without --load" 2
check_err "files without --load" 'takes no FILTER such as .*b.json.; --env --load A B shows'
run "$prog" --env --load "$tmp/b.json" "$tmp/c.json"
check_rc "another environment" 0
for words in 'host: one -> two' 'cpu_governor: performance -> powersave' 'aslr: 2 -> 0' 'cpu_limit: 4 -> 1.5'; do check_out "another environment" "^ - $words\$"; done
check_not_out "what one of them does not know is no difference" 'smt|huge_pages'
check_not_out "nothing keeps them apart" '\*'
check_same "and nothing else is shown" "$(grep -c . "$out")" 6
run "$prog" --env --load "$tmp/b.json" "$tmp/d.json"
check_out "another processor" '^ \* cpu: Abacus 2000 -> Abacus 3000$'
check_out "another processor" '^\*: this difference makes the times not comparable$'
sed '2s/"aslr": 2/"aslr": 1/' "$tmp/b.json" > "$tmp/some.json"
run "$prog" --env --load "$tmp/b.json" "$tmp/some.json"
check_out "one case" 'aslr: 2 -> 1 \(1 of [0-9]* cases\)'
run "$prog" --env --load "$tmp/b.json" "$tmp/d.json" --op silu
check_rc "chosen" 0
check_not_err "chosen" 'without effect'

run "$prog" --compare "$tmp/b.json" "$tmp/c.json" --fail-on never
check_out "--compare names it" '^ - cpu_governor: performance -> powersave$'
check_not_err "--compare: the gate is on" 'not compared'
run "$prog" --compare "$tmp/b.json" "$tmp/d.json" --fail-on noise
check_rc "--compare of two processors" 4
check_out "--compare marks what turned the gate off" '^ \* cpu: Abacus 2000 -> Abacus 3000$'
check_err "--compare: the gate is off" 'CPU \(Abacus 2000; Abacus 3000\)\. Their times are not compared'
run "$prog" --load "$tmp/c.json" --baseline "$tmp/b.json" --fail-on never
check_out "--baseline names it" '^ - host: one -> two$'

for files in "$tmp/b.json" "$tmp/b.json $tmp/c.json $tmp/d.json"; do
    run "$prog" --env --load $files
    check_rc "not two files" 2
    check_err "not two files" 'takes two files'
done
run "$prog" --env --load "$tmp/b.json" "$tmp/nowhere.json"
check_rc "no such file" 2
run "$prog" --env --device cpu
check_rc "--env" 0
# roofs.awk prints peaks whose measurement takes over 0.3 s; its input is the evidence, texts with slow
# measurements, and a run on this core
awk -f tests/gpu/roofs.awk tests/evidence/h200/roofs.txt > "$tmp/long"
check_same "roofs over 0.3 s" "$(tr '\n' ' ' < "$tmp/long")" "15 roofs "
printf '  read roof, one core  1.0 GB/s  (measured in 312.1 ms)\n  f64 roof   1.0 TFLOP/s  (measured in 402.4 ms)\n' > "$tmp/slow"
check_same "in milliseconds" "$(awk -f tests/gpu/roofs.awk "$tmp/slow" | tr '\n' ' ')" "read, one core: 312.1 ms f64: 402.4 ms 2 roofs "
printf '  f32 roof   1.0 TFLOP/s  (measured in 1.2 s)\n  f16 roof   1.0 TFLOP/s  (measured in 900.0 us)\n' > "$tmp/slow"
check_same "in seconds" "$(awk -f tests/gpu/roofs.awk "$tmp/slow" | tr '\n' ' ')" "f32: 1.2 s 2 roofs "
for attempt in 1 2 3 4 5; do # others may have the processor
    [ "$(awk -f tests/gpu/roofs.awk "$out")" = "5 roofs" ] && break
    run "$prog" --env --device cpu
done
check_same "a core's roofs take 0.3 s at most" "$(awk -f tests/gpu/roofs.awk "$out")" "5 roofs"
if [ -r /proc/sys/kernel/randomize_va_space ]; then check_out "--env" "^  aslr +$(cat /proc/sys/kernel/randomize_va_space)\$"; else skip "no randomize_va_space"; fi
finish
