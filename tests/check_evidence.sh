#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# tests/evidence stays small, its README.md names every file in it, and no document or test names a missing file.
. tests/lib.sh

folder=tests/evidence
bytes=$(find $folder -type f -exec cat {} + | wc -c | tr -d ' ')
if [ "$bytes" -le 1500000 ]; then pass; else fail "$folder has $bytes bytes, at most 1500000 are kept: keep a summary, not the raw run"; fi
for file in $(find $folder -type f ! -name README.md ! -name shorten.py | sort); do
    name=$(basename "$file")
    short=$(echo "$name" | sed 's/^\(operations[a-z_]*\)\.md$/\1.json/') # a table beside its records
    if grep -qF "$short\`" $folder/README.md; then pass; else fail "$folder/README.md does not mention $name"; fi
done
for name in $(grep -v '^#' README.md | grep -oE 'tests/evidence/[a-z0-9_/]+\.[a-z]+' | sort -u); do
    if [ -f "$name" ]; then pass; else fail "README.md names $name, which does not exist"; fi
done
for name in $(sed -n 's/^- \(`[^(]*\)(.*/\1/p' $folder/README.md | tr -d '`,' | tr ' ' '\n' | grep '[a-z]\.[a-z]' | sort -u); do
    found=$(find $folder -name "$(basename "$name")" -type f)
    if [ -n "$found" ]; then pass; else fail "$folder/README.md names $name, which does not exist"; fi
done

# a shortened record file keeps the times and a few keys
printf '[{"name": "a", "operation": "a", "time_ms": 0.12345678901, "samples": 7, "host": "here"}]' > "$tmp/records.json"
if have python3; then
    run python3 $folder/shorten.py "$tmp/records.json"
    check_rc "shorten.py" 0
    check_same "shorten.py" "$(sed -n 2p "$tmp/records.json")" '{"samples": 7, "operation": "a", "time_ms": 0.12345679}'
else
    skip "no python3: shorten.py is not run"
fi
finish
