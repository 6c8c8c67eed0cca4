#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests tests/flags.py, which counts flags and reports a flag that occurs too often.
. tests/lib.sh

if ! have python3; then
    skip "no python3"
    finish
fi
records() { # N WITH FLAG
    awk -v n="$1" -v with="$2" -v flag="$3" 'BEGIN {
        print "["
        for (i = 0; i < n; i++) printf "{\"status\": \"ok\", \"time_ms\": 1, \"flags\": [%s]},\n", i < with ? "\"" flag "\"" : ""
        print "{\"status\": \"failed\", \"time_ms\": null, \"flags\": [\"OUTLIERS\"]}]"
    }'
}
records 40 2 OUTLIERS > "$tmp/rare.json"
records 40 3 OUTLIERS > "$tmp/often.json"
records 40 40 UNVERIFIED > "$tmp/other.json"
records 0 0 OUTLIERS > "$tmp/none.json"
sed '1d; s/^\(.*\)\(]\)$/\1/; s/,$//' "$tmp/rare.json" > "$tmp/rare.jsonl"
run python3 tests/flags.py "$tmp/rare.json"
check_rc "5 % of times" 0
check_out "5 % of times" '^OUTLIERS +2 +5\.0 %'
run python3 tests/flags.py "$tmp/often.json"
check_rc "more of them" 1
check_out "more of them" 'OUTLIERS.*FAIL'
run python3 tests/flags.py "$tmp/often.json" "$tmp/rare.jsonl" "$tmp/other.json"
check_rc "several files, a record a line, a flag without a bar" 0
check_out "several files" '^120 times'
run python3 tests/flags.py "$tmp/none.json"
check_rc "no times" 2
finish
