#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: kbench must withhold every impossible rate as ABOVE_ROOF, and must keep every possible rate.
. tests/lib.sh

include=$(dirname "$(command -v "$NVCC" || echo "$NVCC")")/../include
if [ ! -f "$include/cublasLt.h" ]; then skip "cublasLt.h is not installed with nvcc: no matrix products to compare with" && finish; fi
build "roofs.cu" $NVCC -O3 $ARCHFLAGS -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -I. -Itests tests/gpu/roofs.cu -o "$tmp/roofs"
build "flat.c" $CC -O1 -Itests tests/cli/flat_records.c -o "$tmp/flat"

run "$tmp/roofs" --env
check_rc "--env" 0
sed -n '/ roof/p' "$out" # for the log
for roof in copy read write f64 f32; do check_out "--env: $roof" "^ *$roof roof  "; done
awk -f tests/gpu/roofs.awk "$out" > "$tmp/long"
check_same "roofs that take longer than 0.3 s" "$(grep -v ' roofs$' "$tmp/long")" ""
if [ "$(awk 'END { print $1 }' "$tmp/long")" -ge 10 ]; then pass; else fail "too few roofs: $(cat "$tmp/long")"; fi

# judged MODE [OPTION...]: runs the program in mode MODE and checks every record
judged() {
    mode=$1 && shift
    run "$tmp/roofs" --max-time 0.1s --no-progress --json "$tmp/$mode.json" "$@"
    cat "$out" # the table, for the log
    build "$mode: the records are right" "$tmp/flat" "$tmp/$mode.json"
    "$tmp/flat" "$tmp/$mode.json" > "$tmp/$mode.txt"
    awk -F'\t' '
        function told() {
            if (op == "") return
            n++
            planted = op ~ /^"x_/
            above = flags ~ /ABOVE_ROOF/
            if (status == "\"skipped\"") print "skip " op ": " message
            else if (planted && (!above || time != "null")) print "bad " op " is impossible, and has " time " ms, " flags
            else if (!planted && above) print "bad " op " is true, and withheld: " message
            else if (!planted && (status != "\"ok\"" || time == "null")) print "bad " op ": " status " " message
            else if (!planted && percent == "null") print "bad " op " has no percentage: roof " roof
            else print "good"
            # the rate of a single product is close to the measured peak
            if (!planted && op ~ /_said"$/ && op !~ /^"(read|write|copy|l2|bf16_of)/ && percent != "null" && (percent < 55 || percent > 130))
                print "bad " op ": " percent " % of " roof
        }
        $1 != last { told(); op = time = flags = status = percent = roof = message = ""; last = $1 }
        $2 == "operation" { op = $3 } $2 == "time_ms" { time = $3 } $2 == "flags" { flags = $3 } $2 == "status" { status = $3 }
        $2 == "gpu_efficiency" { percent = $3 } $2 == "roof" { roof = $3 } $2 == "message" { message = $3 }
        END { told() }' "$tmp/$mode.txt" > "$tmp/$mode.judged"
    passed=$((passed + $(grep -c '^good' "$tmp/$mode.judged")))
    grep -v '^good' "$tmp/$mode.judged" > "$tmp/$mode.rest"
    while read -r word text; do
        if [ "$word" = skip ]; then skip "$text"; else fail "$mode: $text"; fi
    done < "$tmp/$mode.rest"
}
judged cold
# kbench measures the peak for a cold copy as the rate of the faster of two implementations. The faster of the two
# benchmarked copies must reach 94 to 106 % of the peak for a cold copy, or 100 % within the error of the times.
awk -F'\t' '
    function told() {
        if (op !~ /^"cold_copy_/) return
        size = op
        sub(/_(kernel|runtime)"$/, "", size)
        if (!(size in best)) { list[++sizes] = size; best[size] = 0 }
        if (percent != "null" && percent + 0 > best[size]) { best[size] = percent + 0; off[size] = precision }
    }
    $1 != last { told(); op = ""; last = $1 }
    $2 == "operation" { op = $3 } $2 == "gpu_efficiency" { percent = $3 } $2 == "precision" { precision = $3 }
    END {
        told()
        for (i = 1; i <= sizes; i++) {
            s = list[i]; d = best[s] > 100 ? best[s] - 100 : 100 - best[s]
            print (d <= 6 + 200 * off[s] ? "good " : "bad ") s ": the faster copy has " best[s] " %, +- " off[s]
        }
    }' "$tmp/cold.txt" > "$tmp/copies"
cat "$tmp/copies" # for the log
check_same "cold copies from 1 MiB to 1 GiB" "$(wc -l < "$tmp/copies" | tr -d ' ')" 21
check_same "cold copies that are not 100 % of a cold copy" "$(grep '^bad' "$tmp/copies")" ""
planted=$(grep -c '	operation	"x_' "$tmp/cold.txt")
if [ "$planted" -ge 10 ]; then pass; else fail "only $planted records with an impossible rate"; fi
judged hot --hot --filter '^(l2_|read|copy_said|bf16_said)'
finish
