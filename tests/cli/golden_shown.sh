#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Golden test (tests/golden.lib) of all outputs for fixed records: tables, files, figures and a page.
. tests/lib.sh
. tests/cli/kit.lib
. tests/golden.lib

if everything; then
    build "the tool" $CC $looks_out examples/addons/kbench.c -o "$tmp/kbench" $libs
else
    tool kbench
fi
cp "$golden"/*.json "$golden/past.jsonl" "$tmp"
cd "$tmp" || exit 2 # messages then name files without a folder
tmp=.
# shows NAME CODE OPTIONS...: stdout and stderr
shows() {
    name=$1 code=$2 && shift 2
    run ./kbench "$@"
    check_rc "$*" "$code"
    cat "$err" >> "$out"
    same "shown/$name" "$out"
}

# --- terminal
shows table.txt 0 --load after.json
COLUMNS=150 shows wide.txt 0 --load after.json -v
COLUMNS=50 shows narrow.txt 0 --load after.json --op softmax,requests
CLICOLOR_FORCE=1 shows colours.txt 0 --load after.json --op softmax,scale
shows unsure.txt 0 --load after.json --filter rows=1024
shows unsure_one.txt 0 --load after.json --filter rows=1024/cols=256
shows one.txt 0 --load after.json --filter 'matmul.*n=4096' -v
shows columns.txt 0 --load after.json --columns implementation,samples,cv,energy_mj,kernel --sort -time --op matmul
shows compare.txt 1 --compare before.json after.json
COLUMNS=140 shows compare_wide.txt 1 --compare before.json after.json -v
COLUMNS=50 shows compare_narrow.txt 1 --compare before.json after.json --op softmax,scale
CLICOLOR_FORCE=1 shows compare_colours.txt 1 --compare before.json after.json
shows goals.txt 3 --load after.json -q --op matmul --goal 'gpu_efficiency>=40' --goal 'tensor:time_ms<=0.3'
sed 's/"driver":"580.1"/"driver":"570.2"/; s/"cpu":"A Processor"/"cpu":"Another"/' before.json > elsewhere.json
shows env.txt 0 --env --load elsewhere.json after.json
shows elsewhere.txt 0 --compare elsewhere.json after.json --op matmul
{ echo '[' && tail -n 3 past.jsonl | sed 's/$/,/' && sed -n '$s/creeps/fresh/gp' past.jsonl && echo ']'; } > now.json
for width in 80 65 50; do
    head -n 21 past.jsonl > history.jsonl
    COLUMNS=$width shows history_$width.txt 0 --load now.json --history history.jsonl
done

# --- files
run ./kbench --load after.json --md a.md --go a.go --report report
check_rc "files" 0
for format in md go; do same "shown/$format.txt" "a.$format"; done
same shown/report.md report/report.md
run ./kbench --load after.json --csv a.csv --gbench a.gbench --op scale,requests
check_rc "files of some" 0
for format in csv gbench; do same "shown/$format.txt" "a.$format"; done

# --- a page without its script, style and records, and the figures that are not on the page
# drawn NAME CODE FILE OPTIONS...: runs kbench with OPTIONS, which must end with CODE, and compares the elements of the
# page or figure FILE with a golden file, one element per line. A newly failed case gives exit code 1 with any --fail-on
drawn() {
    name=$1 code=$2 file=$3 && shift 3
    run ./kbench --load after.json "$@"
    check_rc "$*" "$code"
    sed 's/></>\
</g' "$file" | sed '/<style>.*<\/style>/d; /<script/,/<\/script>/d; /<style>/,/<\/style>/d' > figure
    same "shown/$name" figure
}
drawn page.txt 1 page.html --baseline before.json --fail-on never --html page.html
drawn nearest.txt 0 page.html --op copy,scale --html page.html
drawn alone.txt 0 page.html --op scale --html page.html
for kind in time gbps gflops efficiency fits; do drawn $kind.svg.txt 0 $kind.svg --svg $kind.svg --plot $kind; done
drawn changes.svg.txt 1 changes.svg --baseline before.json --fail-on never --svg changes.svg --plot changes
drawn where.svg.txt 0 warp.svg --where impl=warp --svg warp.svg --plot roofline

# --- records of every kind, from the test backend and from the virtual GPU: they contain failures, reasons, notes,
# counters, energy, and times of several processes. Two runs must give the same records; kbench makes every kind of
# output from these records
shows kinds.txt 0 --load kinds.json -v
COLUMNS=40 shows kinds_narrow.txt 0 --load kinds.json
COLUMNS=160 shows kinds_wide.txt 0 --load kinds.json -v --sort implementation,-time
columns=implementation,counter:dram_bytes,counter:mine,energy_mj,power_w,bytes_per_joule,occupancy_theoretical,message
COLUMNS=120 shows kinds_columns.txt 0 --load kinds.json --columns $columns --sort counter:dram_pct --op several,gpu_energy_one,gpu_counters_declares
sed '4,16s/"time_ms\([a-z_]*\)": 0.01/"time_ms\1": 0.012/g; s/"status": "ok", "flags": \["FLOOR"/"status": "failed", "flags": ["OOM"/
    s/"memory_bytes": \([1-9][0-9]*\)/"memory_bytes": 1\1/; /"leaks\//d; s/"mixed\//"remixed\//' kinds.json > other.json
COLUMNS=100 shows kinds_compare.txt 1 --compare kinds.json other.json -v
COLUMNS=60 shows kinds_mended.txt 1 --compare other.json kinds.json
run ./kbench --load kinds.json --json again.json --jsonl again.jsonl --md a.md --go a.go --gbench a.gbench --report report
check_rc "files of every kind" 0
for file in again.json again.jsonl; do
    sed -E 's/"[a-z_0-9]*": null(, )?//g' $file > again
    if [ $file = again.jsonl ]; then sed '/^[][]$/d; s/,$//' kinds.json > lines && cmp lines again > difference 2>&1; else same kinds.json again; fi
done
check "records a line" test ! -s difference
for format in md go gbench; do same "shown/kinds.$format.txt" "a.$format"; done
same shown/kinds.report.md report/report.md
same shown/kinds.csv.txt report/comparison.csv
check "the report's table is that of --md" cmp report/comparison.md a.md
# figures have golden files of their own
without_figures() { case $1 in *.html) sed '/<svg/,/<\/svg>/d' ;; *) cat ;; esac; }
# made FILE OPTIONS...: compares the page or figure FILE, made from kinds.json, with a golden file, one element per line
made() {
    file=$1 && shift
    run ./kbench --load kinds.json "$@"
    check_rc "$*" 0
    sed 's/></>\
</g' "$file" | sed '/<style>.*<\/style>/d; /<script/,/<\/script>/d; /<style>/,/<\/style>/d' | without_figures "$file" > figure
    same "shown/kinds.$file.txt" figure
}
made page.html --html page.html
for kind in speed roofline time gbps gflops efficiency heat fits ratios; do made $kind.svg --svg $kind.svg --plot $kind; done
made samples.svg --svg samples.svg --plot samples --where operation=unsure

# --- unusual records: few keys, times at the limits of their units, more implementations than colours,
# axes that change together, a grid with a missing case, several machines, and texts that every format has to quote
awk '{ # from 12 % less to 12 % more, and twelve times in one of them
    factor = 1 + (NR * 7 % 13 - 6) * 0.02
    if (NR % 40 == 5) factor = 12
    for (k = split("time_ms time_ms_ci_low time_ms_ci_high", keys, " "); k; k--)
        if (match($0, "\"" keys[k] "\":[0-9][-+.e0-9]*"))
            $0 = substr($0, 1, RSTART + length(keys[k]) + 2) sprintf("%.9g", factor * substr($0, RSTART + length(keys[k]) + 3,
                RLENGTH - length(keys[k]) - 3)) substr($0, RSTART + RLENGTH)
    if (NR % 10 == 3) sub(/"memory_mb":[0-9.e-]*/, "\"memory_mb\":2.5")
    if (NR % 10 == 3) sub(/"memory_bytes":[0-9]*/, "\"memory_bytes\":2621440")
    if (NR % 25 == 7) sub(/"status":"ok"/, "\"status\":\"failed\"")
    if (NR % 25 == 8) sub(/"status":"ok"/, "\"status\":\"skipped\"")
    if (NR % 25 == 9) sub(/"name":"/, "&new_")
    if (NR % 3 == 1) gsub(/"time_ms_ci_(low|high)":[0-9][-+.e0-9]*,/, "")
    print
}' odd.json > later.json
COLUMNS=100 shows odd.txt 0 --load odd.json
COLUMNS=40 shows odd_narrow.txt 0 --load odd.json -q --filter n=1024
COLUMNS=170 shows odd_wide.txt 0 --load odd.json -v --op bounds,counts,fails,skips,edges,bare
COLUMNS=59 shows odd_compare.txt 1 --compare odd.json later.json
COLUMNS=130 shows odd_compare_wide.txt 1 --compare later.json odd.json -v --op many,fails,together
# cases that become slower from run to run, and some that become faster by a tenth
for run in 1 2 3 4 5 6 7 8; do
    sed -n 's/"date":"[^"]*",//; s/^{/&"date":"2026-01-0'$run'",/; s/"run_id":"a[12]"/"run_id":"r'$run'"/; s/},$/}/
        /impl=way[0-4]\//s/"time_ms":/"time_ms":'$((9 - run))'/; /impl=way[5-9]\//s/"time_ms":/"time_ms":'$run'/; /^{/p' odd.json
done > history.jsonl
{ echo '[' && tail -n 120 history.jsonl | sed 's/$/,/; s/"r8"/"r9"/; $s/,$//' && echo ']'; } > now.json
shows odd_history.txt 0 --load now.json --history history.jsonl --op many,grid,bounds,counts -q
head -n 1100 history.jsonl > few.jsonl && cp few.jsonl history.jsonl
COLUMNS=60 shows odd_history_all.txt 0 --load now.json --history history.jsonl --op many,counts -v
run ./kbench --load odd.json --json again.json --md a.md --go a.go --gbench a.gbench --report report
check_rc "files of odd records" 0
for format in md go gbench; do same "shown/odd.$format.txt" "a.$format"; done
same shown/odd.report.md report/report.md
cut -d, -f 1-60 report/comparison.csv > a.csv
same shown/odd.csv.txt a.csv
run ./kbench --load again.json --gbench again.gbench
check "records read twice" cmp a.gbench again.gbench
drawn_odd() {
    file=$1 && shift
    run ./kbench --load odd.json "$@"
    check_rc "$*" "$code"
    sed 's/></>\
</g' "$file" | sed '/<style>.*<\/style>/d; /<script/,/<\/script>/d; /<style>/,/<\/style>/d' | without_figures "$file" > figure
    same "shown/odd.$file.txt" figure
}
code=0
for kind in time fits heat ratios roofline samples; do drawn_odd $kind.svg --svg $kind.svg --plot $kind; done
sed 's/"run_id":"a\([12]\)"/"run_id":"b\1"/' odd.json > runs.json
drawn_odd two_runs.svg --load runs.json --svg two_runs.svg --plot time --where op=together
for kind in speed gbps gflops efficiency; do drawn_odd $kind.svg --svg $kind.svg --plot $kind --where backend=cuda; done
code=1
drawn_odd changes.svg --baseline later.json --fail-on never --svg changes.svg --plot changes --where op=many
drawn_odd page.html --baseline later.json --fail-on never --html page.html --op bounds,counts,fails,skips,edges,bare

finish
