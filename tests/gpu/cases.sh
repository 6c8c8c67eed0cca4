#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Runs programs that time typical work on a GPU. tests/fixtures/gpu_cases.txt lists PROGRAM, CASE and the expected
# result: the flags that may occur, or ok and a range in microseconds. After these programs, 2,000
# correct blocks run, and none of these blocks may get a flag.
. tests/lib.sh

nvcc="$NVCC -O3 -std=c++17 $ARCHFLAGS -DKBENCH_IMPLEMENTATION -I."
for f in tests/gpu/cases/*.cu; do
    name=$(basename "$f" .cu)
    { $nvcc "$f" -o "$tmp/$name" > "$tmp/$name.said" 2>&1 || touch "$tmp/$name.broken"; } &
done
wait
for f in "$tmp"/*.broken; do [ ! -e "$f" ] || fail "$f: $(grep error "${f%broken}said" | head -n 3 | tr '\n' ';')"; done
build "flat.c" $CC -O1 -I. -Itests tests/cli/flat_records.c -o "$tmp/flat" $libs

# rows FILE: prints "case status time_ms flags message" for each record
rows() {
    "$tmp/flat" "$1" | awk -F'\t' '
        function say() { if (name != "") print name, status, ms, flags, message }
        $1 != last { say(); name = ""; last = $1 }
        $2 == "operation" { name = $3; gsub(/"/, "", name) } $2 == "status" { status = $3; gsub(/"/, "", status) }
        $2 == "time_ms" { ms = $3 } $2 == "flags" { flags = $3; gsub(/[ \[\]"]/, "", flags); flags = "," flags "," }
        $2 == "message" { message = $3 }
        END { say() }'
}
# due PROGRAM: compares each case of the program with gpu_cases.txt
due() {
    rows "$tmp/$1.json" > "$tmp/$1.rows"
    grep "^$1" tests/fixtures/gpu_cases.txt | sed "s/^[^ ]* //" | while read -r name words low high; do
        awk -v name="$name" -v words="$words" -v low="$low" -v high="$high" '
            $1 == name {
                n = split(words, word, "|"); seen = 1
                for (i = 1; i <= n; i++) {
                    if (word[i] != "ok" && index($4, "," word[i] ",")) good = 1
                    if (word[i] == "ok" && $2 == "ok" && (low == "" || ($3 * 1000 >= low && $3 * 1000 <= high))) good = 1
                }
                if (!good) print "FAIL", name ": not " words, low, high ":", $0
            }
            END { if (!seen) print "FAIL", name ": no record"; else if (good) print "good" }' "$tmp/$1.rows"
    done > "$tmp/$1.due"
    passed=$((passed + $(grep -c '^good' "$tmp/$1.due")))
    while read -r line; do [ -z "$line" ] || fail "$1: ${line#FAIL }"; done <<END
$(grep '^FAIL' "$tmp/$1.due" | cut -c 1-400)
END
}
for program in p01_streams p03_graph p04_long p09_bad refused; do
    grep "^${program%%_*}" tests/fixtures/gpu_cases.txt > /dev/null || fail "$program: tests/fixtures/gpu_cases.txt lists no case of this program"
    [ -x "$tmp/$program" ] || continue
    run "$tmp/$program" --fast --timeout 10s --no-progress --json "$tmp/${program%%_*}.json"
    cat "$out" "$err"
    due "${program%%_*}"
done
# the message of each of these cases must name the CUDA call that caused the flag
check_says() { if grep -q "^$2 .*$3" "$tmp/$1.rows"; then pass; else fail "$1 $2: does not say '$3': $(grep "^$2 " "$tmp/$1.rows")"; fi; }
check_says p09 malloc_free_inside 'cudaMalloc, call 1 of the block'
check_says p09 stream_sync 'cudaStreamSynchronize, call 2 of the block'
check_says p04 some_fail 'cudaLaunchKernel of nothing, call 1 of the block, failed (cudaError'
check_says p01 nojoin 'cudaLaunchKernel of spin, call 2 of the block: its work went to another stream'
check_says p03 g1 'cudaGraphLaunch in the block'

# correct blocks get no flag, with and without the audit; with --no-isolate, long concurrent work is detected as
# well
flagged() { rows "$1" | grep -c SIDE_STREAM; }
run "$tmp/many" --op plain,several,forked,graph,sets -a rep=1:400:+1 --iters 5 --warmup 0 --no-progress --json "$tmp/many.json"
check_same "many, inspected: records" "$(rows "$tmp/many.json" | wc -l | tr -d ' ')" 2000
check_same "many, inspected: all have times" "$(rows "$tmp/many.json" | awk '$2 != "ok"' | head -n 3)" ""
run "$tmp/many" --op plain,several,forked,sets -a rep=1:500:+1 --iters 5 --warmup 0 --no-isolate --no-progress --json "$tmp/many.json"
check_same "many, looks: records" "$(rows "$tmp/many.json" | wc -l | tr -d ' ')" 2000
check_same "many, looks: all have times" "$(rows "$tmp/many.json" | awk '$2 != "ok"' | head -n 3)" ""
for i in 1 2 3 4 5 6 7 8 9 10; do
    run "$tmp/p01_streams" --op nojoin --fast --no-isolate --no-progress --json "$tmp/one.json"
    check_same "nojoin by looks, time $i" "$(flagged "$tmp/one.json")" 1
done
finish
