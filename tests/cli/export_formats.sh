#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# --csv, --md, --gbench, --go, --report and --github, from a run and from its file, for the tools that read these
# formats.
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
program odd tests/cli/awkward_strings.c
tool kbench
quick="--iters 30 --warmup 1 --no-progress --op layernorm,softmax,dropout"
python=
have python3 && python3 -c 'import json, csv' > /dev/null 2>&1 && python=python3
all() { echo "--csv $1/a.csv --md $1/a.md --gbench $1/gb.json --go $1/a.txt --report $1/report"; }

mkdir "$tmp/run" "$tmp/load"
run "$tmp/prog" $quick --json "$tmp/a.json" $(all "$tmp/run")
check_rc "a run" 0
run "$tmp/kbench" --load "$tmp/a.json" $(all "$tmp/load")
check_rc "its file, by the tool" 0
check "the run and its file give the same" diff -r "$tmp/run" "$tmp/load"
check_same "nothing is left beside them" "$(ls -A "$tmp/run" | tr '\n' ' ')" "a.csv a.md a.txt gb.json report "
check_same "--report" "$(ls -A "$tmp/run/report" | tr '\n' ' ')" "comparison.csv comparison.md report.md "
check "comparison.csv is --csv" cmp "$tmp/run/a.csv" "$tmp/run/report/comparison.csv"
if [ -n "$python" ]; then
    check "formats of a run" $python tests/cli/export_formats.py "$tmp/a.json" "$tmp/run/a.csv" "$tmp/run/gb.json" "$tmp/run/a.txt"
else
    skip "no python3: CSV, Google Benchmark's JSON and Go's format are not read back"
fi

check_same "--md: rows" "$(grep -c '^| [a-z]* | ' "$tmp/run/a.md" | awk -v h="$(grep -c '^| implementation | case' "$tmp/run/a.md")" '{ print $1 - h }')" "$(grep -c '"name"' "$tmp/a.json")"
check_same "--md: cells" "$(sed 's/\\|//g' "$tmp/run/a.md" | awk -F'|' '/^\|/ { if (!n) n = NF; if (NF != n) print } !/^\|/ { n = 0 }')" ""
check_same "report.md: cells" "$(sed 's/\\|//g' "$tmp/run/report/report.md" | awk -F'|' '/^\|/ { if (!n) n = NF; if (NF != n) print } !/^\|/ { n = 0 }')" ""
for heading in "## Cases" "### By batch_size" "### By sequence_length" "### By tensor_dimension" "## Best configurations"; do
    if grep -qx "$heading" "$tmp/run/report/report.md"; then pass; else fail "report.md has no $heading"; fi
done

mkdir "$tmp/odd.d"
run "$tmp/odd" --iters 30 --warmup 1 --no-progress --json "$tmp/odd.json" $(all "$tmp/odd.d")
if [ -n "$python" ]; then
    check "formats of strange records" $python tests/cli/export_formats.py "$tmp/odd.json" "$tmp/odd.d/a.csv" "$tmp/odd.d/gb.json" "$tmp/odd.d/a.txt"
fi
check_same "--md: cells of strange records" "$(sed 's/\\|//g' "$tmp/odd.d/a.md" | awk -F'|' '/^\|/ { if (!n) n = NF; if (NF != n) print } !/^\|/ { n = 0 }')" ""

# only one output can go to stdout
for format in csv md gbench go; do
    "$tmp/kbench" --load "$tmp/a.json" --$format - > "$tmp/out.$format" 2> "$tmp/table"
    file=a.$format && [ $format = go ] && file=a.txt
    [ $format = gbench ] && file=gb.json
    check "--$format -" cmp "$tmp/out.$format" "$tmp/load/$file"
    if grep -q layernorm "$tmp/table"; then pass; else fail "--$format -: no table on stderr"; fi
done
run "$tmp/kbench" --load "$tmp/a.json" --csv - --md -
check_rc "two on stdout" 2
check_err "two on stdout" 'are one file'
run "$tmp/kbench" --load "$tmp/a.json" --csv "$tmp/x" --json "$tmp/x"
check_rc "two into one file" 2
for option in "--csv $tmp/no/x" "--report $tmp/no/x" "--md $tmp" "--csv=" "--report="; do
    run "$tmp/prog" $quick $option
    check_rc "$option" 2
    check_same "$option: nothing ran" "$(cat "$out")" ""
done
: > "$tmp/old.csv" && chmod 444 "$tmp/old.csv" && ln -s a.json "$tmp/link.csv"
run "$tmp/prog" $quick --csv /dev/full
check_rc "a full disk" 2
check_err "a full disk" 'writing --csv /dev/full failed'

echo before > "$tmp/summary"
GITHUB_STEP_SUMMARY=$tmp/summary run "$tmp/kbench" --load "$tmp/a.json" --github
check_rc "--github" 0
{ echo before && cat "$tmp/load/a.md"; } > "$tmp/wanted"
check "--github appends" cmp "$tmp/summary" "$tmp/wanted"
unset GITHUB_STEP_SUMMARY
run "$tmp/kbench" --load "$tmp/a.json" --github
check_rc "--github elsewhere" 2
check_err "--github elsewhere" 'GITHUB_STEP_SUMMARY'

# the options that Google Benchmark's compare.py passes to a program
run "$tmp/prog" $quick --benchmark_out="$tmp/gb.json" --benchmark_out_format=json --benchmark_filter=softmax.*fwd --benchmark_repetitions=10 --benchmark_display_aggregates_only=true
check_rc "--benchmark_ flags" 0
check_same "--benchmark_filter" "$(grep -c '"repetition_index": 0' "$tmp/gb.json")" "$("$tmp/prog" --list 'softmax.*fwd' | wc -l | tr -d ' ')"
run "$tmp/prog" $quick --benchmark_out_format=console
check_rc "another format" 2
run "$tmp/prog" --list --benchmark_repetitions 3
check_err "repetitions without processes" 'A repetition is a process; --procs sets the number of processes \(1\)'
run "$tmp/prog" $quick --procs 3 --op softmax,silu --gbench "$tmp/gb3.json" --csv "$tmp/3.csv" --go "$tmp/3.go" --json "$tmp/3.json" --benchmark_repetitions 3
check_not_err "repetitions, one a process" 'a repetition'
check_same "repetitions: three for each case" "$(grep -c '"repetition_index": 2' "$tmp/gb3.json")" "$(grep -c '"repetition_index": 0' "$tmp/gb3.json")"
[ -z "$python" ] || check "three processes: export_formats.py" $python tests/cli/export_formats.py "$tmp/3.json" "$tmp/3.csv" "$tmp/gb3.json" "$tmp/3.go"

# compare.py itself, if installed
compare=$(find /usr/share /usr/local/share -path '*benchmark*/compare.py' 2> /dev/null | head -n 1)
if [ -n "$compare" ] && python3 -c 'import scipy, numpy' 2> /dev/null; then
    check "compare.py" python3 "$compare" benchmarks "$tmp/run/gb.json" "$tmp/load/gb.json"
else
    skip "no compare.py of Google Benchmark, or no scipy: the JSON is only compared with the documented format"
fi

if [ -n "$python" ] && $python -c 'import pandas' 2> /dev/null; then
    run $python examples/read_results.py "$tmp/a.json"
    check_rc "read_results.py" 0
    shapes=$($python -c 'import json, sys
print(len(set((r["operation"], r["direction"], r["dtype"], str(r["params"])) for r in json.load(open(sys.argv[1])) if r["status"] == "ok")))' "$tmp/a.json")
    check_same "read_results.py: a row for each shape" "$(sed 1d "$out" | wc -l | tr -d ' ')" "$shapes"
else
    skip "no pandas: examples/read_results.py is not run"
fi

run "$tmp/kbench"
check_rc "the tool without --load" 2
check_err "the tool without --load" '^kbench: error: kbench has no benchmark of its own\. Name the records with --load FILE'
run "$tmp/kbench" --list
check_rc "the tool with --list" 2
check_not_err "the tool with --list" linker
run "$tmp/kbench" --env
check_rc "the tool with --env" 0
run "$tmp/kbench" --help
check_out "the tool's --help" '--load FILE'
plain small tests/cli/sample_program.c
run "$tmp/small" $quick --op silu --json "$tmp/small.json"
check_rc "without add-ons measures" 0
for option in "--load $tmp/a.json" "--md $tmp/x" "--gbench $tmp/x" "--go $tmp/x" "--report $tmp/x" --github "--benchmark_out=$tmp/x" "--benchmark_repetitions=10"; do
    run "$tmp/small" $quick $option
    check_rc "without add-ons: $option" 2
    check_err "without add-ons: $option" 'is an option of examples/addons/kbench_report.h: include it after kbench.h'
done
run "$tmp/small" --help all
check_not_out "without add-ons: --help" '--load|--md'
finish
