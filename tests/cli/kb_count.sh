#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests kb_count: a program's own counters appear in the record and in every output format, and can be used as
# columns, for sorting and in goals. An invalid counter fails its case with a flag.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/kb_count.c
prog=$tmp/prog
some="--iters 30 --warmup 1 --no-progress"
run "$prog" $some --op counted,none,many --json "$tmp/a.json" --csv "$tmp/a.csv" --md "$tmp/a.md" --gbench "$tmp/g.json" --go "$tmp/a.go"
check_rc "a run" 0
cp "$out" "$tmp/table"
key() { grep "\"name\": \"$1[/\"]" "$tmp/a.json" | sed "s/.*\"$2\": \({[^}]*}\).*/\1/"; }
check_same "counters" "$(key counted/impl=naive/n=2 counters)" '{"hits": 2469134, "hit_ratio": 0.123456789, "real_time": 2}'
check_same "units" "$(key counted/impl=naive/n=2 counter_units)" '{"hit_ratio": "%", "real_time": "ms"}'
check_same "a large one" "$(key counted/impl=other/n=1 counters)" '{"misses": 1e+20}'
check_same "none" "$(key none counters) $(key none counter_units)" '{} {}'
check_same "sixteen" "$(key many counters | tr ',' '\n' | wc -l | tr -d ' ')" 16
check_same "the last one counts" "$(key many counters | sed 's/, .*//')" '{"c0": 16'

# --- unchanged after reading
run "$prog" --load "$tmp/a.json" --json "$tmp/b.json" --csv "$tmp/b.csv" --md "$tmp/b.md" --gbench "$tmp/h.json" --go "$tmp/b.go"
check_rc "--load" 0
for f in json csv md go; do check "--load: $f" cmp "$tmp/a.$f" "$tmp/b.$f"; done
check "--load: gbench" cmp "$tmp/g.json" "$tmp/h.json"

# --- each format
head -n 1 "$tmp/a.csv" | tr -d '\r' | tr ',' '\n' > "$tmp/columns"
check_same "CSV: columns" "$(grep counter "$tmp/columns" | head -n 5 | tr '\n' ' ')" "counter:hits counter:hit_ratio counter:real_time counter:misses counter:c0 "
if sed -n 2p "$tmp/a.csv" | tr -d '\r' | grep -q ',1234567,0.123456789,2,,,,,,,,,,,,,,,,,'; then pass; else fail "CSV: $(sed -n 2p "$tmp/a.csv")"; fi
if grep -q '"hits": 1234567, "hit_ratio": 0.123456789, "counter:real_time": 2' "$tmp/g.json"; then pass; else fail "gbench: $(grep -m 1 naive "$tmp/g.json")"; fi
if grep -q '^Benchmarkcounted/impl=naive/n=1 .* 1234567 hits 0.123456789 hit_ratio-% 2 real_time-ms$' "$tmp/a.go"; then pass; else fail "go: $(grep -m 1 naive "$tmp/a.go")"; fi
if grep -q '^| implementation | case | .*hits | hit\\_ratio, % | real\\_time, ms | misses, 1/launch |' "$tmp/a.md"; then pass; else fail "md: $(grep -m 1 implementation "$tmp/a.md")"; fi
if grep -q '^| naive | n=2 | .* 2469134 | 0.1235 | 2 | - |' "$tmp/a.md"; then pass; else fail "md: $(grep -m 1 naive "$tmp/a.md")"; fi
if have python3; then
    run python3 -c "
import json, sys
a = json.load(open('$tmp/a.json')); json.load(open('$tmp/g.json'))
print([r['counters'].get('hits') for r in a][:3])"
    check_out "JSON" '^\[1234567, None, 2469134\]'
else
    skip "JSON: no python3"
fi

# --- the table
if grep -q hits "$tmp/table"; then fail "the plain table shows counters"; else pass; fi
run "$prog" --load "$tmp/a.json" -v
check_out "-v" 'hits 1234567, hit_ratio 0\.12[0-9]* %, real_time 2 ms'
check_out "-v: another one's" 'misses 1\.000e\+20 1/launch'
run "$prog" --load "$tmp/a.json" --op counted --columns time,counter:hits,counter:none
check_rc "--columns" 0
check_out "--columns" 'time [a-z]+ +hits +none$'
check_out "--columns" ' 2469134 +-'
run "$prog" --load "$tmp/a.json" --op counted --impl naive --sort=-counter:hits --columns counter:hits
check_same "--sort" "$(grep -oE '(1234567|2469134)' "$out" | tr '\n' ' ')" "2469134 1234567 "
run "$prog" --load "$tmp/a.json" --columns counter:
check_rc "no name" 2

# --- goals
run "$prog" --load "$tmp/a.json" --op counted --impl naive --goal 'counter:hits>=1000000'
check_rc "a goal that is reached" 0
check_out "a goal that is reached" 'reached by 2 of 2'
run "$prog" --load "$tmp/a.json" --goal 'impl=naive/n=1:counter:hits>=2000000'
check_rc "a goal that is missed" 3
check_out "a goal that is missed" 'goal missed: hits 123'
run "$prog" --load "$tmp/a.json" --goal 'counted:counter:hits<=5000000'
check_rc "a goal of cases of which some have no such number" 3
run "$prog" --load "$tmp/a.json" --goal 'counter:n=1:time_ms<=1000'
check_err "a case whose name is like it" 'no case with a time matches'

# --- invalid counters
run "$prog" $some --op wrong
check_rc "wrong ones" 1
for words in "kb_count of '': a name has" "kb_count of 'Hits': a name has" "kb_count of 'a1234567.*: a name has" "kb_count of 'hits': a name has"; do
    tr '\n' ' ' < "$out" | tr -s ' ' > "$tmp/said"
    if grep -q -e "$words" "$tmp/said"; then pass; else fail "no '$words': $(said)"; fi
done
check_same "wrong ones: all have failed" "$(grep -c "BAD_CASE\(:.*\)*$" "$out")" 7
run env COUNT_MORE=1 "$prog" $some --op many
check_rc "seventeen" 1
check_out "seventeen" "a case has at most 16"
run "$prog" $some --op counted --procs 2 --json "$tmp/p.json"
check_same "--procs" "$(grep -c '"hits": 1234567' "$tmp/p.json")" 1
run "$prog" open
check_out "kb_open" '^hits 7 1/s$'
check_out "as long as they may be" '^63 31$'
finish
