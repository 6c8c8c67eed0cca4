#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that the table depends only on the records: another program must print the same bytes from the file of
# records.
. tests/lib.sh
. tests/cli/kit.lib
unset COLUMNS NO_COLOR CLICOLOR_FORCE FORCE_COLOR LC_ALL LC_CTYPE LANG

program table tests/cli/table.c
build "shows.c" $LEAN_CC -O0 -I. -Itests tests/cli/table_from_file.c -o "$tmp/shows" $libs
reader
script="--device script --no-progress --max-time 20ms"
clock="--iters 10 --warmup 1 --no-progress"

# same WHAT WIDTH RUN SHOW: runs `table` with the options RUN, and `shows` with the options SHOW on the records of
# this run. Both must print the same table.
same() {
    what=$1 width=$2
    COLUMNS=$width run "$tmp/table" $3 --json "$tmp/table.json"
    check_rc "$what: the run, of which some cases fail" 1
    COLUMNS=$width "$tmp/shows" "$tmp/table.json" $4 > "$tmp/shown" 2> "$tmp/why"
    if [ -s "$tmp/why" ]; then fail "$what: $(head -n 1 "$tmp/why")"; fi
    if cmp -s "$out" "$tmp/shown"; then
        pass
    else
        fail "$what: another table: $(diff "$out" "$tmp/shown" | head -n 6 | tr '\n' ';')"
    fi
    # awk counts bytes
    check_same "$what: lines over $width columns" \
        "$(awk -v w="$width" '{ gsub(/\303./, "x"); gsub(/\357\277\275/, "x") } length($0) > w' "$out" | head -n 1)" ""
}
for width in 80 140; do
    for verbose in "" -v; do
        same "script, $width $verbose" $width "$script $verbose" "$verbose"
        same "clock, $width $verbose" $width "$clock $verbose" "$verbose"
    done
done
for width in 40 60 100 200; do same "script, $width" $width "$script" ""; done
same "in random order" 80 "$script --shuffle" ""
same "lines" 80 "$script --jsonl $tmp/table.jsonl" ""
"$tmp/shows" "$tmp/table.jsonl" --lines > "$tmp/shown"
check "lines: the same table" cmp "$out" "$tmp/shown"
check "the file is written again" "$tmp/shows" "$tmp/table.json" --json "$tmp/again.json"
check "the file written again is the same" cmp "$tmp/table.json" "$tmp/again.json"
same "sorted" 80 "$script --sort -GFLOP/s,implementation" "--sort -GFLOP/s,implementation"
same "other columns" 140 "$script --columns time,samples,gflops,cache,winner" "--columns time,samples,gflops,cache,winner"

# --- notes without a record go to stderr, not into the table
tail -n 1 "$out" > "$tmp/last"
check_same "the summary is the last line" "$(cat "$tmp/last")" \
    "$("$tmp/flat" "$tmp/table.json" | awk -F'\t' '$2 == "status" { n[$3]++ }
        END { print n["\"ok\""] + n["\"failed\""] + n["\"skipped\""] " cases: " n["\"ok\""] " ok, " n["\"failed\""] " failed, " n["\"skipped\""] " skipped" }')"

# --- the table shows the rates that the operation declares, in a readable unit
# heading OPERATION [OPTION...]: the names of its columns, at 80
heading() {
    op=$1 && shift
    run "$tmp/table" $script --op "$op" "$@"
    awk '/ time [num]*s / { sub(/^.* time/, "time"); gsub(/ +/, " "); print }' "$out" | tr '\n' ';'
}
check_same "nothing declared" "$(heading bare)" "time us +-;"
check_same "bytes" "$(heading moves)" "time us +- GB/s roof;"
check_same "operations" "$(heading computes)" "time us +- GFLOP/s;"
check_same "items" "$(heading real)" "time us +- kitems/s;"
check_same "bytes and operations, compared" "$(heading sure)" "time us +- GB/s GFLOP/s roof speedup;"
check_same "from small to large" "$(heading rates)" "time us +- GFLOP/s Mitems/s;time us +- GFLOP/s Gitems/s;time ms +- TFLOP/s Gitems/s;"
check_same "operations with one case: a column comes when one needs it" "$(heading bare,moves,bare)" "time us +-;time us +- GB/s roof;"
check_not_out "one case" "1 cases"
run "$tmp/table" $script --op bare
check_out "one case" '^1 case: 1 ok$'
run "$tmp/table" $script --op bare --dry-run
check_out "one case, planned" '^1 case in 1 comparison group;'
run "$tmp/table" $script --op mixed
check_not_out "advice on a CPU" compute-sanitizer

# --- order and columns

run "$tmp/table" $script --op sure --sort -speedup -a rows=16 --dtype f32
check_same "--sort in a comparison" "$(awk '/[0-9]%/ { print $1 }' "$out" | tr '\n' ' ')" "half base triple "
run "$tmp/table" $script --op rates,sweep --sort -GFLOP/s,-sequence_length
check_same "--sort of a sweep" "$(awk '/^ (f64 )?[a-z_]+=/ { print /f64/ ? $2 $3 : $1 $2 }' "$out" | tr '\n' ' ')" \
    "batch_size=1sequence_length=2048 batch_size=64sequence_length=2048 batch_size=1sequence_length=128 batch_size=64sequence_length=128 n=104857610003 n=102410.00 n=110.00 "
run "$tmp/table" $script --op bare,moves --columns implementation,samples,time
check_out "--columns" '^ +implementation samples +time us$'
for bad in "--sort tiem:nearest is .time." "--columns GBs:nearest is .GB/s." "--columns samples_ms:nor a key of --json with one value" \
    "--columns time,:'' is neither" "--sort zzzzzzzzzzzz:'zzzzzzzzzzzz' .*with one value$"; do
    run "$tmp/table" ${bad%%:*} --list
    check_rc "$bad" 2
    check_err "$bad" "${bad#*:}"
done

# --- the width of the table is that of the terminal; without a terminal it is COLUMNS, if COLUMNS is valid
first() { awk '/ time us / { print index($0, " +-"); exit }' "$1" | tr -d '\r'; }
for said in ":35" "80:35" "100:35" "140:35" "39:35" "1001:35" "wide:35" "-80:35" "40:34"; do
    COLUMNS=${said%:*} run "$tmp/table" $script --op bare
    check_same "COLUMNS=${said%:*}: where the second column ends" "$(first "$out")" "${said#*:}"
done
if have script && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
    on_terminal() { script -qec "$*" /dev/null < /dev/null > "$out" 2>&1; }
    on_terminal "stty cols 100; COLUMNS=60 $tmp/table $script --op bare --no-color"
    check_same "a terminal of 100 columns, COLUMNS=60" "$(first "$out")" 35
    on_terminal "TERM=dumb $tmp/table --fast --op sweep"
    check_out "TERM=dumb" sweep
    check_not_out "TERM=dumb: no escapes" "$(printf '\033')"
    on_terminal "TERM=xterm $tmp/table --fast --op sweep"
    check_out "TERM=xterm: escapes" "$(printf '\033')"
else
    skip "no script(1) that simulates a terminal: width and TERM=dumb are not tested"
fi
finish
