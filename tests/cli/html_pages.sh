#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests --html and --svg, from a run and from the file of its records, for all kinds of records. "make test" draws
# a part of the figures, "make test-all" (TEST_ALL=1) draws all figures.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/html_pages.c
tool kbench
quick="--iters 30 --warmup 1 --no-progress"
kinds="speed roofline time gbps gflops efficiency heat fits samples ratios changes"
python=
have python3 && python3 -c 'import xml.dom.minidom, html.parser' > /dev/null 2>&1 && python=python3

# --- the page of a run and the page of its record file have the same bytes
run "$tmp/prog" $quick --json "$tmp/a.json" --html "$tmp/a.html" --svg "$tmp/a.svg" --plot roofline
check_rc "a run with a wrong case" 1
cp "$out" "$tmp/table"
run "$tmp/kbench" --load "$tmp/a.json" --html "$tmp/b.html" --svg "$tmp/b.svg" --plot roofline
check_same "--load names the files that it wrote" "$(cat "$err")" "kbench: wrote $tmp/b.html
kbench: wrote $tmp/b.svg"
check_rc "its file" 0
check "the page of the run and of its file" cmp "$tmp/a.html" "$tmp/b.html"
check "the figure of the run and of its file" cmp "$tmp/a.svg" "$tmp/b.svg"
check_same "nothing is left beside them" "$(ls "$tmp" | grep -c tmp)" 0
"$tmp/kbench" --load "$tmp/a.json" --html - > "$tmp/c.html" 2> "$tmp/c.table"
check "--html -" cmp "$tmp/a.html" "$tmp/c.html"
if grep -q 'scale fwd\|scale' "$tmp/c.table"; then pass; else fail "--html -: no table on stderr"; fi
"$tmp/kbench" --load "$tmp/a.json" --svg - --plot roofline > "$tmp/c.svg" 2> /dev/null
check "--svg -" cmp "$tmp/a.svg" "$tmp/c.svg"
for locale in de_DE.UTF-8 fr_FR.UTF-8; do
    LC_ALL=$locale "$tmp/kbench" --load "$tmp/a.json" --html - > "$tmp/l.html" 2> /dev/null
    check "in the locale $locale" cmp "$tmp/a.html" "$tmp/l.html"
done

# --- contents of the page
for id in all speed roofline sizes heat ratios samples machine help data; do
    if grep -q "<h2 id='$id'>" "$tmp/a.html"; then pass; else fail "no section $id"; fi
done
for text in "FAIL</span>" "1 of 20 cases failed" "VERIFY_FAIL</b>" "fix the kernel, or widen the tolerance" "Content-Security-Policy"; do
    if grep -qF "$text" "$tmp/a.html"; then pass; else fail "the page does not contain '$text'"; fi
done
check_same "nothing is fetched" "$(sed '/kbench-data/,$d' "$tmp/a.html" | grep -oE '(src|href)=.?https?:[^ ]*|@import|url\(' | head -n 1)" ""
script=$(awk '/^<script>/ { on = 1 } on { n += length($0) + 1 } /^<\/script>/ { on = 0 } END { print n }' "$tmp/a.html")
if [ "$script" -gt 1000 ] && [ "$script" -le 8192 ]; then pass; else fail "the script of the page has $script bytes; the limit is 8192"; fi

# --- the page read back
run "$tmp/kbench" --load "$tmp/a.html"
check_rc "--load of the page" 0
"$tmp/kbench" --load "$tmp/a.json" > "$tmp/json.table" 2> /dev/null
check "one table by the page and by --json" cmp "$out" "$tmp/json.table"
"$tmp/kbench" --load "$tmp/a.html" --csv - > "$tmp/html.csv" 2> /dev/null
"$tmp/kbench" --load "$tmp/a.json" --csv - > "$tmp/json.csv" 2> /dev/null
check "all numbers are the same" cmp "$tmp/html.csv" "$tmp/json.csv"
"$tmp/kbench" --load "$tmp/a.html" --html "$tmp/again.html" > /dev/null 2>&1
# A page stores samples with seven significant digits.
for page in a again; do tr -d 0-9. < "$tmp/$page.html" > "$tmp/$page.words"; done
check "a page of a page" cmp "$tmp/a.words" "$tmp/again.words"
run "$tmp/kbench" --load "$tmp/a.html" "$tmp/a.json" --json "$tmp/both.json"
check_same "page and file of one run: each case once" "$(grep -c '"name"' "$tmp/both.json")" 20
for bytes in 300 60000 $(($(wc -c < "$tmp/a.html") * 4 / 5)); do
    head -c "$bytes" "$tmp/a.html" > "$tmp/cut.html"
    run "$tmp/kbench" --load "$tmp/cut.html"
    check_rc "a page of $bytes bytes" 2
    check_err "a page of $bytes bytes" 'this page has no records|the file ends in the middle'
done
echo '<!DOCTYPE html><p>of another kind' > "$tmp/other.html"
run "$tmp/kbench" --load "$tmp/other.html"
check_rc "another page" 2
check_err "another page" 'other.html:2: this page has no records. --load reads pages that --html wrote'
printf '<script id="kbench-data">\n{"all":{"gpu":"G"},"later":1}</script>' > "$tmp/other.html"
run "$tmp/kbench" --load "$tmp/other.html"
check_rc "records of another form" 2

# --- comparison with an earlier run
sed 's/"date": "[^"]*"/"date": "2020-01-01T00:00:00Z"/' "$tmp/a.json" > "$tmp/old.json"
run "$tmp/kbench" --load "$tmp/a.json" --baseline "$tmp/old.json" --html "$tmp/d.html" --fail-on never
for text in "<h2 id='changes'>" "Against <b>$tmp/old.json</b>: " "<th>before</th>"; do
    if grep -qF "$text" "$tmp/d.html"; then pass; else fail "with --baseline: no $text"; fi
done
run "$tmp/prog" $quick --filter alone --baseline "$tmp/old.json" --html "$tmp/d.html" --fail-on never
if grep -qF "<h2 id='changes'>" "$tmp/d.html"; then pass; else fail "--baseline: the page has no section of changes"; fi

# --- single figures
run "$tmp/prog" --help all
check_out "--help names the kinds" "^KIND: $(echo "$kinds" | sed 's/ /, /g')\.$"
for kind in $kinds; do
    run "$tmp/kbench" --load "$tmp/a.json" --svg "$tmp/$kind.svg" --plot $kind
    check_rc "--plot $kind" 0
    case $(head -n 1 "$tmp/$kind.svg") in "<svg xmlns="*) pass ;; *) fail "--plot $kind: no svg" ;; esac
done
check_same "no variable is left in a figure alone" "$(grep -l 'var(' "$tmp"/*.svg)" ""
run "$tmp/kbench" --load "$tmp/a.json" --svg "$tmp/w.svg" --plot time --where impl=plain,rows=16 --where rows=64
check_rc "--where" 0
check_same "--where: axes" "$(grep -o 'rows=[0-9]*<' "$tmp/w.svg" | sort -u | tr '\n' ' ')" "rows=16< rows=64< "
run "$tmp/kbench" --load "$tmp/a.json" --baseline "$tmp/old.json" --svg "$tmp/w.svg" --plot changes --where rows=16,cols=64 --fail-on never
check_same "--where: changes" "$(grep -o 'scale f32 rows=[0-9]* cols=[0-9]* ' "$tmp/w.svg" | sort -u)" "scale f32 rows=16 cols=64 "
run "$tmp/prog" --svg "$tmp/x" --plot rofline
check_rc "an unknown kind" 2
check_err "an unknown kind" "no figure is called 'rofline'; the nearest name is 'roofline'"
for wrong in "--svg $tmp/x" "--plot time" "--where rows=1" "--svg $tmp/x --plot time --where rows" "--svg $tmp/x --plot time --where =1" \
    "--html=" "--html $tmp" "--html $tmp/no/x" "--svg $tmp/x --plot time --html $tmp/x"; do
    run "$tmp/prog" $quick $wrong
    check_rc "$wrong" 2
    check_same "$wrong: nothing ran" "$(cat "$out")" ""
done
run "$tmp/kbench" --load "$tmp/a.json" --svg "$tmp/x" --plot time --where row=4
check_rc "--where: no such key" 2
check_err "--where: no such key" "called 'row'; the nearest name is rows"
run "$tmp/kbench" --load "$tmp/a.json" --svg "$tmp/x" --plot time --where rows=5
check_rc "--where: no such value" 2
run "$tmp/prog" $quick --filter alone --svg "$tmp/x" --plot speed --where impl=none
check_rc "--where leaves nothing of a run" 2
check_err "--where leaves nothing of a run" "no record matches"
if [ -e "$tmp/x" ]; then fail "an empty figure was written"; else pass; fi
run "$tmp/prog" $quick --filter alone --html /dev/full
check_rc "a full disk" 2
check_err "a full disk" 'writing --html /dev/full failed'
plain small tests/cli/html_pages.c
run "$tmp/small" --html "$tmp/x"
check_rc "without add-ons" 2
check_err "without add-ons" '--html is an option of examples/addons/kbench_report.h: .*build/kbench .make tool. with records'

# --- records of all kinds
if [ -n "$python" ]; then
    run $python tests/cli/html_pages.py "$tmp/kbench" "$tmp" "$tmp/a.json" tests/evidence/h200/first.json tests/evidence/h200/compare.json
    while read -r line; do
        case $line in ok*) pass ;; *) fail "$line" ;; esac
    done < "$out"
    check_rc "records of all kinds: $(tail -n 3 "$err" | tr '\n' ' ')" 0
else
    skip "no python3: pages and figures are not parsed"
fi
finish
