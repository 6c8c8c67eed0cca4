#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# What is made of records that stay the same: tables, files, figures and a page, word by word and number by number as
# they were: see tests/golden.lib.
. tests/lib.sh
. tests/golden.lib

build "the tool" $CC $looks_out -I. -x c -DKBENCH_TOOL kbench.h -o "$tmp/kbench" $libs
cp "$golden"/*.json "$golden/past.jsonl" "$tmp"
cd "$tmp" || exit 2 # what is said names files as they were named
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

# --- a page: its own script, style and records are not of what it shows; and the figures that it does not have. A case
# that fails and did not before is exit code 1, whatever --fail-on says
# drawn NAME CODE FILE OPTIONS...: an element a line
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

finish
