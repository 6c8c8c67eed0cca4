#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests output formats and instruments that a program adds: examples/own_output.c and own_instrument.c, linked as
# user code.
. tests/lib.sh
. tests/cli/kit.lib

for example in own_output own_instrument; do # linked with one compiled kbench
    sed '/^#define KBENCH_IMPLEMENTATION$/d' examples/$example.c > "$tmp/$example.c"
    check_same "$example: lines left out" "$(diff examples/$example.c "$tmp/$example.c" | grep -c '^<')" 1
    plain $example "$tmp/$example.c" -Wall -Wextra -Werror
done
prog="$tmp/own_output --fast --max-time 20ms --no-progress"

# --- outputs: a line per record, and a file with all records
run $prog --log "$tmp/log" --tsv "$tmp/tsv" --json "$tmp/json"
check_rc "own outputs" 0
run $prog --log "$tmp/x" --json "$tmp/x"
check_rc "one file of two options" 2
check_err "one file of two options" 'are one file'
check_same "--log: a line for each record" "$(sed -E 's/^[0-9]+ //; s/ [0-9.]+ ms$/ MS/' "$tmp/log" | tr '\n' ';')" \
    "time sum/impl=default/n=1024 MS;time sum/impl=default/n=65536 MS;"
check_same "--tsv: all records" "$(cut -f 1 "$tmp/tsv" | tr '\n' ';')" "sum/impl=default/n=1024;sum/impl=default/n=65536;"
check_same "--json beside them" "$(grep -c '"status": "ok"' "$tmp/json")" 2
run $prog --op sum -a n=1024 --tsv -
check_same "--tsv -: nothing else on stdout" "$(cut -f 1 "$out")" "sum/impl=default/n=1024"
check_err "--tsv -: the table goes to stderr" '^sum '
run $prog --help
check_out "--help: --log" '^  --log FILE  '
check_out "--help: --tsv" '^  --tsv FILE  .*records as tab-separated values'
# refused: CODE TEXT OPTIONS...
refused() {
    code=$1 text=$2 && shift 2
    run $prog "$@"
    check_rc "$*" "$code"
    check_err "$*" "$text"
}
refused 2 '--log needs FILE after it' --log
refused 2 'cannot open --log' --log /nowhere/log
refused 2 '--tsv was given twice' --tsv "$tmp/a" --tsv "$tmp/b"
refused 2 'are one file' --tsv "$tmp/a" --json "$tmp/a"
refused 2 'unknown option' --threshhold 3
refused 2 'did you mean --tsv' --tvs "$tmp/a"
refused 2 'writing --tsv /dev/full failed' --tsv /dev/full
refused 2 'cannot write --tsv' --tsv /nowhere/tsv
if [ -e "$tmp/a" ]; then fail "a rejected command line left a file"; else pass; fi
run $prog --tsv "$tmp/tsv" --filter nothing_matches
check_rc "nothing matches" 2
check_same "nothing matches: the old file stays" "$(wc -l < "$tmp/tsv" | tr -d ' ')" 2

# --- an instrument: its counters are in the record, and it does not change the times
run "$tmp/own_instrument" --fast --max-time 20ms --no-progress --faults --json "$tmp/json"
check_rc "own instrument" 0
check_out "own instrument: below the rows" '^    page_faults +[0-9.]+ a run$'
check_same "own instrument: in the records" "$(grep -c '"counters": {"page_faults": [0-9]' "$tmp/json")" 2
check_same "own instrument: its unit" "$(grep -c '"counter_units": {"page_faults": "a run"}' "$tmp/json")" 2
run "$tmp/own_instrument" --fast --max-time 20ms --no-progress --json "$tmp/json"
check_same "without its option: no counters" "$(grep -c page_faults "$tmp/json")" 0
run "$tmp/own_instrument" --fast --max-time 20ms --no-progress --faults --no-isolate --json "$tmp/json"
check_rc "own instrument, one process" 0
check_same "own instrument, one process: in the records" "$(grep -c '"page_faults": [0-9]' "$tmp/json")" 2
run "$tmp/own_instrument" --faults=3
check_rc "a value that the option does not take" 2
check_err "a value that the option does not take" '--faults takes no value'

# --- declarations that kbench cannot support
cat > "$tmp/odd.c" << 'EOF'
#include "kbench.h"
#include <stdio.h>
#include <stdlib.h>
KBENCH(op) {
    KB_TIME(kb) { kb_keep(kb); }
}
static int wanted = -1, seen;
static bool ready(const char* value) { return wanted = atoi(value), true; }
static bool end(kb_state* kb) { return kb_found(kb, NAME, wanted, ""), false; }
static void each(const kb_result* r) { seen += r->status == KB_OK; }
static int at_end(const kb_result* records, int64_t n, int code) { return (void)records, (void)n, fprintf(stderr, "each %d\n", seen), code; }
#ifdef OUTPUT
KBENCH_OUTPUT(OUTPUT, ARGUMENT, "for a test") { kb_put(to, "%d\n", (int)(n + 0 * (records != NULL))); }
#endif
int main(int argc, char** argv) {
    static kb_instrument i;
    static kb_output o;
    i.option = "inst", i.argument = "N", i.help = "without open", i.host = HOST, i.ready = ready, i.end = end;
    o.option = "watch", o.help = "watches", o.each = each, o.end = at_end;
    kb_add_instrument(&i), kb_add_output(&o);
    return kb_main(argc, argv);
}
EOF
# odd NAME FLAGS...
odd() { name=$1 && shift && plain $name "$tmp/odd.c" "$@"; }
odd plain -DNAME='"found"' -DHOST=1
run "$tmp/plain" --iters 3 --no-progress --inst 42 --json "$tmp/json"
check_same "an instrument without open; its value reaches the worker" "$(grep -o '"found": [0-9]*' "$tmp/json")" '"found": 42'
run "$tmp/plain" --list --inst 42
check_rc "an instrument where nothing is measured" 2
run "$tmp/plain" --iters 3 --no-progress --watch
check_err "an output without a file" '^each 1$'
odd bad_name -DNAME='"bad name"' -DHOST=1
run "$tmp/bad_name" --iters 3 --no-progress --inst 42
check_err "a counter with a blank in its name" "a name has letters a-z, digits and _, not 'bad name'"
odd gpu -DNAME='"found"' -DHOST=0
run "$tmp/gpu" --iters 3 --no-progress --inst 42
check_err "an instrument of GPU work without a GPU" '--inst is without effect'
odd taken -DNAME='"found"' -DHOST=1 -DOUTPUT=json -DARGUMENT='"FILE"'
run "$tmp/taken" --iters 3 --no-progress
check_rc "an option that is kbench's" 2
check_err "an option that is kbench's" "--json is kbench's own option"
odd no_file -DNAME='"found"' -DHOST=1 -DOUTPUT=bare -DARGUMENT=NULL
run "$tmp/no_file" --iters 3 --no-progress
check_err "a file without an argument" '--bare fills a file'
odd may -DNAME='"found"' -DHOST=1 -DOUTPUT=may -DARGUMENT='"[=FILE]"'
run "$tmp/may" --iters 3 --no-progress --may
check_rc "a file that was not named" 2
check_err "a file that was not named" '--may needs a file: --may=FILE'

# --- records that replace a measurement
cat > "$tmp/known.c" << 'EOF'
#include "kbench.h"
#include <stdio.h>
#include <string.h>
KBENCH(op, KB_AXIS("n", 1, 2, 3)) {
    int64_t n = kb_int(kb, "n");
    KB_TIME(kb) { kb_keep(n); }
}
KBENCH_IMPL(pair, one) {
    KB_TIME(kb) { kb_keep(kb); }
}
KBENCH_IMPL(pair, two) {
    KB_TIME(kb) { kb_keep(kb); }
}
static const char* wanted;
static int asked;
static bool ready(const char* value) { return wanted = value, true; }
static bool recall(kb_planned* cases, int64_t n, const kb_result* like) {
    static kb_result known[8];
    for (int64_t i = 0; i < n && i < 8; i++) {
        if (!strstr(cases[i].name, wanted) || !cases[i].runs) continue;
        known[i].name = cases[i].name, known[i].operation = "op", known[i].implementation = "default";
        known[i].status = KB_OK, known[i].time_ms = 42;
        cases[i].record = &known[i];
    }
    fprintf(stderr, "asked %d, %s\n", ++asked, like ? "a run" : "a list");
    return strcmp(wanted, "nothing") != 0;
}
int main(int argc, char** argv) {
    static kb_output o;
    o.option = "known", o.argument = "TEXT", o.help = "cases with TEXT", o.ready = ready, o.recall = recall;
    kb_add_output(&o);
    return kb_main(argc, argv);
}
EOF
plain known "$tmp/known.c" -Wall -Wextra -Werror
known="$tmp/known --iters 3 --no-progress"
run $known --known n=2 --json "$tmp/json" --jsonl "$tmp/jsonl" --csv "$tmp/csv"
check_err "a record that stands for a case" '^asked 1, a run$'
check_same "a record that stands for a case: in the array" "$(grep -c '"name": "op/impl=default/n=2".*"time_ms": 42,' "$tmp/json") of $(grep -c '^{' "$tmp/json")" "1 of 5"
check_same "a record that stands for a case: in another file" "$(grep -c '^op/impl=default/n=2,.*,42,' "$tmp/csv")" 1
check_same "a record that stands for a case: not appended" "$(grep -c '^{"name": "op/impl=default/n=2"' "$tmp/jsonl") of $(grep -c . "$tmp/jsonl")" "0 of 4"
check_out "a record that stands for a case: in the table" '42.00'
run $known --known one --json "$tmp/json"
check_same "a group is measured as a whole" "$(grep -c '"time_ms": 42,' "$tmp/json")" 0
run $known --known pair --json "$tmp/json"
check_same "all of a group" "$(grep -c '"time_ms": 42,' "$tmp/json")" 2
run $known --known op --op op
check_rc "all cases" 0
run $known --known n=2 --list
check_err "--list" '^asked 1, a list$'
check_same "--list: without them" "$(cat "$out")" "op/impl=default/n=1
op/impl=default/n=3
pair/impl=one
pair/impl=two"
for list in "" --list; do
    run $known --known nothing $list
    check_rc "it fails $list" 2
done
run $known --known n=2 --list --jsonl "$tmp/jsonl"
check_not_err "--jsonl may be read by it" 'without effect'

# --- options of a missing add-on
for row in "md x:kbench_report.h: .*build/kbench" "load x:kbench_report.h" "resume --jsonl x:kbench_report.h: include it after" "save-baseline x:kbench_report.h" \
    "counters:kbench_inspect.h" "trace x:kbench_inspect.h" "selftest:examples/addons/selftest.cu"; do
    run $prog --${row%%:*}
    check_rc "--${row%%:*} without its add-on" 2
    check_err "--${row%%:*} without its add-on" "${row#*:}"
done
finish
