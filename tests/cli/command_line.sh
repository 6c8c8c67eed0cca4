#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests the command line: every option, every kind of wrong input, and the exit codes.
# takes long
. tests/lib.sh
. tests/cli/kit.lib

program prog tests/cli/sample_program.c
reader
prog=$tmp/prog
quick="--iters 3 --warmup 1 --no-progress"
total=$($prog --list | wc -l)
count() { wc -l < "$out" | tr -d ' '; }
# lists WHAT COUNT ARGUMENTS...: --list prints COUNT cases
lists() {
    what=$1 want=$2 && shift 2
    run $prog --list "$@"
    check_rc "$what" 0
    check_same "$what: cases" "$(count)" "$want"
}
# refuses WHAT ERE ARGUMENTS...: expects exit code 2, nothing on stdout, and one line that matches ERE on stderr
refuses() {
    what=$1 want=$2 && shift 2
    run $prog "$@"
    check_rc "$what" 2
    check_err "$what" "$want"
    if [ -s "$out" ]; then fail "$what: something on stdout: $(said)"; else pass; fi
    check_same "$what: lines on stderr" "$(wc -l < "$err" | tr -d ' ')" 1
}

# --- lists of cases, operations and axes
run $prog --help all
check_rc "--help" 0
for o in list list-ops list-sizes size filter exclude op impl dtype axis fast thorough device dry-run timeout no-isolate \
    json jsonl version quiet no-color no-progress max-time min-time iters warmup launches precision no-verify fresh no-audit shuffle seed cpu procs sort columns; do
    check_out "--help names --$o" "^ *--$o( |$)"
done
for word in --quick -a -v FILTER 77 130; do check_out "--help says $word" "(^| |\()$word"; done
check_not_out "--help hides what is internal" kbi
for line in $(awk 'length($0) > 100 { print NR }' "$out"); do fail "--help: line $line is over 100 columns"; done
for o in cold hot rotate timer; do check_not_out "--help of a build without CUDA names --$o" "^ *--$o( |$)"; done
run $prog --help
check_rc "--help" 0
if [ "$(wc -l < "$out")" -le 24 ]; then pass; else fail "--help has $(wc -l < "$out") lines, and a screen 24"; fi
for o in list op axis device fast thorough budget procs json jsonl env; do check_out "--help names --$o" "^  --$o( |$)"; done
check_out "--help names --help all" "^--help all "
run $prog --help all
check_out "--help of a build without CUDA: --device" '^ *--device cpu '
run $prog -h
check_rc "-h" 0
run $prog --version
check_rc "--version" 0
check_out "--version" "$(sed -n 's/^#define KBENCH_VERSION "\(.*\)"/\1/p' kbench.h)"
run $prog --list
check_rc "--list" 0
check_same "--list: names are unique" "$(sort "$out" | uniq -d | head -n 1)" ""
check_same "--list: stderr is empty" "$(cat "$err")" ""
check_out "--list: a full name" '^layernorm/impl=fused/dtype=bf16/batch_size=2/sequence_length=16/tensor_dimension=64$'
check_out "--list: direction" '^softmax/dir=bwd/impl=naive/dtype=f32/rows=4/cols=64$'
check_out "--list: reals and words" '^dropout/impl=philox/p=0\.1/mode=train/n=64$'
run $prog --list-ops
check_rc "--list-ops" 0
check_out "--list-ops: directions, dtypes, implementations" '^softmax +fwd +bwd +f32 +f16 +naive +online *$'
check_out "--list-ops: no directions" '^layernorm +f32 +bf16 +naive +fused *$'
check_same "--list-ops: one line an operation" "$(count)" "$(grep -cE '^KBENCH\(|^KBENCH_IMPL\(.*(layernorm, naive|softmax, naive|overlap|dropout)' tests/cli/sample_program.c)"
run $prog --list-sizes
check_rc "--list-sizes" 0
check_out "--list-sizes" '^layernorm .*large .*tensor_dimension=256'
for c in small medium large batch; do check_out "--list-sizes: $c" "$c"; done

# --- selecting cases. layernorm: 2 implementations x 2 dtypes x (small 1, medium 1, large 1, batch 4), sample_program.c
lists "everything" "$total"
lists "--op" 28 --op layernorm
lists "--op=" 28 --op=layernorm
lists "--op without regard to case" 28 --op LayerNorm
lists "--op two" 29 --op layernorm,mse
lists "--op given twice" 29 --op layernorm --op mse
lists "swish" 1 --op swish
lists "gelu is both forms" 2 --op gelu
lists "GELU" 2 --op GELU
lists "loss" 2 --op loss
lists "--impl" 14 --op layernorm --impl fused
lists "--impl without regard to case" 14 --op layernorm --impl FUSED
lists "--dtype" 14 --op layernorm --dtype bf16
lists "--dtype without regard to case" 14 --op layernorm --dtype BF16
lists "--dtype two" 28 --op layernorm --dtype f32,bf16
lists "--size" 4 --op layernorm --size small
lists "--size without regard to case" 4 --op layernorm --size SMALL
lists "--size batch" 16 --op layernorm --size batch
lists "--size two" 8 --op layernorm --size small,medium
lists "a shape in two categories" 3 --op overlap
lists "a shape in two categories, the first" 1 --op overlap --size small
lists "a shape in two categories, the second" 3 --op overlap --size batch
lists "--filter" 1 --filter 'softmax/dir=bwd/.*f32.*cols=64'
lists "--filter without regard to case" 2 --filter 'SOFTMAX/dir=bwd/.*F32'
lists "FILTER" 2 'softmax.*bwd.*f32'
lists "two FILTERs: either" 3 '^mse' 'softmax.*bwd.*f32'
lists "--exclude" 4 softmax --exclude 'cols=64' --exclude 'bwd'
lists "-- ends the options" 1 -- '^mse'
lists "-a replaces" 8 --op softmax -a cols=7 -a rows=1 --dtype f32,f16 -a dir=fwd,bwd
lists "-a of one axis" 6 --op softmax -a cols=7
check_out "-a of one axis" '/cols=7$'
lists "-a list" 18 --op softmax -a cols=1,2,3
lists "-a factor range" 24 --op softmax -a cols=64:512:*2
check_out "-a factor range ends with its end" '/cols=512$'
lists "-a step range" 18 --op softmax -a cols=50:150:+50
lists "-a power" 6 --op softmax -a cols=2^10
check_out "-a power" '/cols=1024$'
lists "--axis" 6 --op softmax --axis cols=9
lists "--axis=" 6 --op softmax --axis=cols=9
lists "-a of reals" 6 --op dropout -a p=0.25,0.5,0.75
check_out "-a of reals" '/p=0\.25/'
lists "-a of words" 2 --op dropout -a mode=test
lists "-a reaches sizes" 4 --op layernorm --size small -a tensor_dimension=128
check_out "-a reaches sizes" 'tensor_dimension=128'
run $prog --list -a cols=5
check_rc "-a for an axis that only some have" 0
check_out "-a for an axis that only some have: those" 'softmax.*cols=5$'
check_not_out "-a for an axis that only some have: no other values" 'cols=(32|64)$'
run $prog --list --fast
check_not_out "--fast leaves the large sizes out" 'sequence_length=64'
run $prog --list --fast --size large
check_out "--fast --size large has them" 'sequence_length=64'

# --- order
$prog --list > "$tmp/order"
run $prog --list --shuffle
check_same "--shuffle keeps the cases" "$(sort "$out" | cksum)" "$(sort "$tmp/order" | cksum)"
if cmp -s "$out" "$tmp/order"; then fail "--shuffle changes nothing"; else pass; fi
cp "$out" "$tmp/shuffled"
run $prog --list --shuffle
check_same "--shuffle again: the same order for the same seed" "$(cksum < "$out")" "$(cksum < "$tmp/shuffled")"
run $prog --list --shuffle --seed 7
if cmp -s "$out" "$tmp/shuffled"; then fail "--seed does not change the order"; else pass; fi
check_same "--shuffle keeps groups together" \
    "$(sed 's,/impl=[a-z]*,,' "$out" | uniq | sort | uniq -d | head -n 1)" ""

# --- wrong input: exit code 2, and one line with the fix
$prog --help all > "$tmp/help"
refuses "unknown option" 'unknown option --fliter.*--filter' --fliter x
refuses "unknown option, far from all" 'unknown option --zzzzzzzzzz.*--help' --zzzzzzzzzz
refuses "unknown short option" 'unknown option -z' -z
refuses "unknown operation" "unknown operation 'layernrom'.*layernorm" --op layernrom
refuses "unknown operation among known" "unknown operation 'sotfmax'.*softmax" --op mse,sotfmax
refuses "unknown implementation" "unknown implementation 'fusde'.*fused" --impl fusde
refuses "unknown dtype" "unknown dtype 'bf61'.*bf16" --dtype bf61
refuses "unknown size" "unknown size 'smal'.*small" --size smal
refuses "unknown axis" "unknown axis 'colls'.*cols" -a colls=3
refuses "unknown axis of a size" "unknown axis 'batch_sise'.*batch_size" -a batch_sise=3
refuses "axis without a value" "NAME=LIST" -a cols
refuses "axis without values" "-a cols=: a number is missing" -a cols=
for bad in 1:0 a:b 1: :1 1:8:2 1:8:+0 1:8:*1 0:8:*2 1,,2 1, , 0:1000000:+1 1:1e300:*1.0000001 0.5 1e30 8x nan inf -; do
    refuses "bad list $bad" "-a cols=.*: .*; as in cols=1,2" -a "cols=$bad"
done
refuses "unknown device" "device" --device gpux
refuses "device out of range" "device" --device -2
for o in max-time min-time timeout; do
    refuses "--$o with a bare number" "--$o .*unit.*200ms" --$o 3
    refuses "--$o with a word" "--$o .*unit.*200ms" --$o soon
    refuses "--$o below zero" "--$o" --$o -1s
    refuses "--$o without a value" "--$o needs" --$o
done
for o in iters seed rounds; do
    if ! grep -qE -e "--$o( |\$)" "$tmp/help"; then continue; fi
    refuses "--$o with a word" "--$o .*number" --$o many
    refuses "--$o with a time" "--$o .*number" --$o 3s
    refuses "--$o out of range" "--$o .*number" --$o 99999999999999999999
    refuses "--$o without a value" "--$o needs" --$o
done
refuses "--iters 0" "--iters .*from 1" --iters 0
refuses "--rounds 0" "--rounds" --rounds 0
refuses "--warmup with a word" "--warmup" --warmup warm
refuses "--precision 0" "--precision .*percentage" --precision 0
refuses "--precision 200" "--precision .*percentage" --precision 200
refuses "--precision with a word" "--precision .*percentage" --precision high
for o in filter exclude op impl dtype size axis device cpu json jsonl warmup precision; do
    refuses "--$o without a value" "--$o needs" --$o
done
refuses "-a without a value" "needs" -a
refuses "a value where none goes" "--fast takes no value" --fast=1
refuses "--fast and --thorough" "exclude" --fast --thorough
refuses "--launches 0" "--launches .*from 1 to 4096" --launches 0
refuses "--launches 4097" "--launches .*from 1 to 4096" --launches 4097
refuses "--launches and --rotate" "exclude each other" --launches 4 --rotate
refuses "--launches and --timer cupti" "exclude each other" --launches 4 --timer CUPTI
refuses "--fresh and --no-verify" "exclude each other" --fresh --no-verify
refuses "--iters and --rounds" "exclude" --iters 3 --rounds 3
refuses "--quiet and --verbose" "--quiet and --verbose exclude" --quiet --verbose
refuses "-v and -q" "exclude" -v -q
refuses "--cold and --hot" "exclude" --cold --hot
for o in cold hot rotate; do refuses "--timer wall and --$o" "--timer wall .*--$o" --timer wall --$o; done
refuses "--min-time above --max-time" "--min-time exceeds --max-time" --min-time 3s --max-time 1s
refuses "--json and --jsonl into one file" "are one file; give each its own" --json "$tmp/one.json" --jsonl "$tmp/one.json"
refuses "--list and --list-ops" "--list and --list-ops exclude" --list --list-ops
refuses "--dry-run and --list" "exclude" --dry-run --list
cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
for given in "json a" "jsonl a" "device cpu" "timer events" "cpu ${cpu:-0}" "precision 1" "max-time 1s" "min-time 1s" "timeout 1s" "rounds 20" "iters 3" \
    "warmup 1" "seed 1"; do
    refuses "--$given twice" "--${given% *} was given twice" --$given --$given
    refuses "--$given twice, with =" "--${given% *} was given twice" --$given "--${given% *}=${given#* }"
done
refuses "-a of one axis twice" "-a cols=1 and -a Cols=2 set the same axis" -a cols=1 -a Cols=2
refuses "no time to sample" "--max-time takes a time above 0" --max-time 0s
refuses "no time for a case" "--timeout takes a time above 0" --timeout 0ms
refuses "--rotate and --timer both" "--timer both and --rotate exclude" --rotate --timer both
refuses "--timer with two" "--timer takes events,cupti,both,wall" --timer events,wall
refuses "an element type that is none" "takes f32.*bf16.*not f33" --op layernorm -a dtype=f33
refuses "--json and --jsonl on stdout" "are one file" --op mse --json - --jsonl -
for o in json jsonl; do refuses "--$o with an empty name" "--$o needs .*empty" --op mse --$o ""; done
refuses "bad expression" "'\[' is not a regular expression" '['
refuses "bad expression in --filter" "regular expression" --filter '('
refuses "bad expression in --exclude" "regular expression" --exclude '('
refuses "no name matches" "no name of [1-9][0-9]* cases matches 'no_such_case'; --list shows.*-a NAME=LIST" --filter no_such_case
refuses "the name of an option as an axis" "no axis is 'impl'; use --impl" -a impl=naive
refuses "nothing matched: everything excluded" "nothing matched.*--list" --exclude .
refuses "nothing matched: --size of an operation without sizes" "nothing matched" --op mse --size small
refuses "nothing matched: --dtype of an operation without it" "nothing matched" --op mse --dtype f32
for o in csv md gbench go html load resume nvtx env baseline save-baseline compare history threshold \
    memory-threshold alpha fail-on shard; do
    if ! grep -qE -e "--$o( |\$)" "$tmp/help"; then refuses "--$o is not built yet, so it is refused" "unknown option --$o" --$o x; fi
done
refuses "--json without its file, an option after it" "--json" --json --fast --list

# --- output that cannot be written is an error, whether it is smaller or larger than the buffer of stdio
run $prog $quick --op mse --json "$tmp/shown.json"
if [ -c /dev/full ]; then
    for line in --list "--list -a n=1:2000" --list-ops --list-sizes --dry-run --help --version --env \
        "--load $tmp/shown.json" "--load $tmp/shown.json --csv -" "--compare $tmp/shown.json $tmp/shown.json" "$quick --op mse"; do
        $prog $line > /dev/full 2> "$tmp/err" < /dev/null
        rc=$?
        case $line in *--csv*) want=2 ;; *) want=1 ;; esac
        check_same "$line into a full file: exit code" $rc $want
        err=$tmp/err out=/dev/null
        check_err "$line into a full file" 'error: writing (to stdout|--csv -) failed: (No space left|a part of the output)'
    done
else
    skip "no /dev/full"
fi

# --- files are opened before anything runs
for o in json jsonl; do
    start=$(now_ms)
    refuses "--$o into a directory that is not there" "no/such/dir" --$o "$tmp/no/such/dir/x.json" --op slow
    if [ $(($(now_ms) - start)) -gt 2000 ]; then fail "--$o: refused late"; else pass; fi
    refuses "--$o onto a directory" "$tmp" --$o "$tmp" --op slow
    run $prog $quick --$o /dev/full --op mse
    if [ $rc -eq 2 ] || [ $rc -eq 1 ]; then pass; else fail "--$o /dev/full: $(said)"; fi
done

mkdir "$tmp/kept"
run $prog --op mse --json "$tmp/kept/x.json" --jsonl "$tmp/no/such/dir/x.jsonl"
check_same "one file of two cannot be written: nothing is left of the other" "$(ls -A "$tmp/kept")" ""

# --- running
run $prog $quick --op mse,silu
check_rc "a run" 0
check_out "the table has the operation" silu
check_same "stderr stays empty without progress and warnings" "$(grep -v -i -E 'note|warning|UNVERIFIED' "$err" | head -n 3)" ""
for options in "" -v; do
    run $prog $quick $options --exclude slow
    check_rc "everything $options" 0
    check_not_out "no colour where stdout is no terminal" "$(printf '\033')"
    check_same "the table $options: lines over 80 columns" "$(awk 'length($0) > 80' "$out" | head -n 3)" ""
    check_same "the table $options: every case has a time" "$(grep -cE '[0-9] +(<?[0-9.]+%|-)( |$)' "$out")" \
        "$($prog --list --exclude slow | wc -l | tr -d ' ')"
done
# on a terminal, the output has colours and a progress line on stderr, unless options disable them
if have script && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
    on_terminal() { script -qec "$*" /dev/null < /dev/null > "$out" 2>&1; }
    on_terminal $prog --fast --op layernorm --size small
    check_out "a terminal: colour" "$(printf '\033')\\[[0-9]*m"
    check_out "a terminal: progress" "\\[[0-9]*/4\\]"
    on_terminal env TERM=dumb $prog --fast --op layernorm --size small
    check_not_out "a terminal that knows no escapes: no progress" "\\[[0-9]*/4\\]|$(printf '\033')\\[K"
    on_terminal env NO_COLOR=1 $prog --fast --op mse --no-progress
    check_not_out "NO_COLOR" "$(printf '\033')\\[[0-9]*m"
    check_not_out "--no-progress" "\\[1/1\\]"
    on_terminal $prog --fast --op mse --no-color --quiet
    check_not_out "--no-color" "$(printf '\033')\\[[0-9]*m"
    check_not_out "--quiet has no progress" "\\[1/1\\]"
else
    skip "no script(1) that simulates a terminal: colour and progress are not tested"
fi
for o in --fresh "--launches 5" --no-color --no-isolate --no-verify "--no-verify --no-verify" --no-audit --no-progress --quiet -v --verbose "--device cpu" \
    "--seed 7" --shuffle "--timeout 5s" "--timeout=5s" "--max-time 20ms --warmup 1" "--max-time=20ms" "--min-time 1ms" \
    "--precision 5" "--precision=5%" "--warmup 2" "--warmup 5ms" "--iters=4" -q "-q --quiet"; do
    case $o in *-time* | *precision* | *iters* | *warmup*) few=--fast ;; *) few="--iters 3 --warmup 1" ;; esac
    run $prog $few --op mse $o
    check_rc "$o" 0
    check_out "$o" mse
done
for o in "--precision 5" "--min-time 1ms" "--max-time 20ms"; do
    run $prog --iters 3 --warmup 1 $o --op mse
    check_rc "--iters with $o" 0
    check_err "--iters with $o" "--iters sets the number of samples: ${o% *} does not change it"
done
run $prog --iters 3 --warmup 1 --op mse
check_not_err "--iters alone" "does not change it"
run $prog --iters 3 --warmup 1 --op softmax -a n=5 -a rows=8
check_rc "-a of another operation's axis" 0
check_err "-a of another operation's axis" "-a n=5: no selected case has this axis; --list shows the axes"
check_not_err "-a of an axis of the operation" "-a rows=8"
run $prog --iters 3 --warmup 1 --op overlap,softmax -a n=5 -a dir=fwd
check_not_err "-a of axes of two operations" "no selected case has this axis"
run $prog --fast --op mse
check_rc "--fast" 0
run $prog --quick --op mse
check_rc "--quick" 0
run $prog --max-time 0.1s --thorough --op mse
check_rc "--thorough" 0
run $prog --dry-run
check_rc "--dry-run" 0
check_out "--dry-run prints the plan" 'layernorm'
check_not_out "--dry-run measures nothing" '[0-9] (ns|us|ms)'
seven="--iters 7 --warmup 1 --no-progress"
run $prog $seven --op mse --json -
check_rc "--json -" 0
check "--json - is JSON and nothing else" "$tmp/flat" "$out"
check_same "--iters is the number of samples" "$($tmp/flat "$out" | awk -F'\t' '$2 == "samples" { print $3 }')" 7
run $prog $seven --op layernorm --size small --json "$tmp/iters.json"
check_same "--iters is the number of samples in a comparison, too" \
    "$($tmp/flat "$tmp/iters.json" | awk -F'\t' '$2 == "samples" { print $3 }' | sort -u | tr '\n' ' ')" "7 "
run $prog --iters 010 --no-progress --op mse --json "$tmp/ten.json"
check_same "--iters 010 is ten" "$($tmp/flat "$tmp/ten.json" | awk -F'\t' '$2 == "samples" { print $3 }')" 10
# the cost of reading the clock must stay small without warm-up
run $prog --iters 3 --warmup 0 --no-progress --op mse --json "$tmp/short.json"
"$tmp/flat" "$tmp/short.json" > "$tmp/flat.txt"
check "--warmup 0: the clock's own cost is small beside a sample" awk -F'\t' '
    { v[$2] = $3 } END { exit !(v["time_ms"] > 0 && v["floor_ms"] < 0.05 * v["time_ms_raw"] && v["flags"] !~ /FLOOR/) }' "$tmp/flat.txt"
for o in --list --list-ops --list-sizes --dry-run --env; do
    run $prog $o --json "$tmp/idle.json"
    check_rc "$o with --json" 0
    check_err "$o with --json" "$o writes no records"
    if [ -e "$tmp/idle.json" ]; then fail "$o with --json writes a file"; else pass; fi
done
for o in --hot --rotate "--timer Events"; do
    run $prog $quick --op mse $o
    check_rc "$o without a GPU" 0
    check_err "$o without a GPU" "${o%% *} is without effect: there is no GPU"
done
run $prog $quick --op mse --timer Wall
check_not_err "--timer Wall without a GPU" "without effect"
run $prog --selftest --fast --device 0
check_rc "--selftest in a program without it" 2
check_err "--selftest in a program without it" "examples/addons/selftest.cu"
run $prog $quick --op mse --jsonl -
check_rc "--jsonl -" 0
check "--jsonl - is a record a line and nothing else" "$tmp/flat" --lines "$out"
run $prog $quick --op mse --no-verify --json "$tmp/nv.json"
flags=$("$tmp/flat" "$tmp/nv.json" | awk -F'\t' '$2 == "flags" { print $3 }')
case $flags in *UNVERIFIED*) pass ;; *) fail "--no-verify: no UNVERIFIED in the record: '$flags'" ;; esac
run $prog $quick --op mse --quiet
check_same "--quiet: stderr is empty" "$(cat "$err")" ""
run $prog $quick --device cpu --op mse --json "$tmp/cpu.json"
check_rc "--device cpu" 0
check_same "--device cpu is the backend" "$("$tmp/flat" "$tmp/cpu.json" | awk -F'\t' '$2 == "backend" { print $3 }')" '"cpu"'
run $prog $quick --device 99 --op mse
if [ $rc -eq 2 ] || [ $rc -eq 77 ]; then pass; else fail "--device 99: $(said)"; fi
run $prog $quick -a cols=16 --op softmax --json "$tmp/a.json"
check_same "-a reaches the body" "$("$tmp/flat" "$tmp/a.json" | awk -F'\t' '$2 == "bytes" { print $3 }' | sort -u)" 512
run $prog $quick -a n=8:8:+1 --op dropout
check_rc "a list that is one value" 0
run $prog --dry-run --op mse
check_out "--dry-run of one case" '^1 case in 1 comparison group; '
check_not_out "--dry-run of one case" '1 (cases|comparison groups)'
# two output files reach the file size limit (512 bytes): both errors must be reported
run sh -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' sh $prog $quick --op mse,silu --json "$tmp/full.json" --jsonl "$tmp/full.jsonl"
check_rc "two files on a full disk" 2
check_same "two files on a full disk: --json" "$(grep -c 'writing --json [^ ]*/full.json failed' "$err")" 1
check_same "two files on a full disk: --jsonl" "$(grep -c 'writing --jsonl [^ ]*/full.jsonl failed' "$err")" 1
run env KBENCH_NOTHING=1 $prog $quick --op MSE,SWISH
check_rc "names without regard to case" 0

# --- options that only print text use no device and are fast
best=100000
for i in 1 2 3 4 5; do
    start=$(now_ms)
    $prog --list > /dev/null
    took=$(($(now_ms) - start))
    [ $took -lt $best ] && best=$took
done
slack=50 && [ -n "$CI" ] && slack=200
if [ $best -le $slack ]; then pass; else fail "--list takes $best ms, bound $slack ms"; fi

# --- --seed and the record
for s in 42 7; do
    run $prog $quick --op mse --seed $s --json "$tmp/s.json"
    check_same "--seed $s is in the record" "$("$tmp/flat" "$tmp/s.json" | awk -F'\t' '$2 == "seed" { print $3 }')" $s
done

# --- without guarded.h: glibc fills memory with the complement of this byte
plain plain tests/cli/sample_program.c
cases=$($prog --list --op mse,softmax | wc -l)
for byte in 1 255; do
    for where in "" --no-isolate; do
        run env GLIBC_TUNABLES=glibc.malloc.tcache_count=0 MALLOC_PERTURB_=$byte "$tmp/plain" $quick --op mse,softmax --verbose $where
        check_rc "memory filled with ~$byte $where" 0
        check_out "memory filled with ~$byte $where" "^$cases cases: $cases ok"
    done
done

# --- SIGINT: exit code 130, and finished records are written
build_heeds
"$heeds" $prog --no-progress --op mse,silu,slow --fast --json "$tmp/int.json" --csv "$tmp/int.csv" --md "$tmp/int.md" \
    --gbench "$tmp/int.gbench" --go "$tmp/int.go" > "$tmp/int.out" 2> "$tmp/int.err" < /dev/null &
pid=$!
i=0
while [ $i -lt 40 ] && ! grep -q silu "$tmp/int.out"; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
kill -INT $pid
wait $pid
rc=$? out=$tmp/int.out err=$tmp/int.err
case $rc in
0) fail "the run ended before SIGINT, so nothing was tested" ;;
*) check_rc "SIGINT" 130 ;;
esac
check_err "SIGINT: a note says so" 'interrupted'
check_not_out "SIGINT: the table has what was finished" 'interrupted|slow'
check_out "SIGINT: the summary" '^(1 case: 1|2 cases: 2) ok$'
check "SIGINT: the file is whole" "$tmp/flat" "$tmp/int.json"
check_same "SIGINT: what was finished is in it" \
    "$("$tmp/flat" "$tmp/int.json" | awk -F'\t' '$2 == "operation" { print $3 }' | grep -c silu)" 1
run "$tmp/prog" --load "$tmp/int.json" --csv "$tmp/all.csv" --md "$tmp/all.md" --gbench "$tmp/all.gbench" --go "$tmp/all.go"
"$heeds" $prog --no-progress --no-isolate --op mse,silu,slow > "$tmp/rows.out" 2>&1 < /dev/null &
pid=$!
i=0
while [ $i -lt 60 ] && ! grep -q silu "$tmp/rows.out"; do sleep 0.1 2> /dev/null || sleep 1; i=$((i + 1)); done
kill -INT $pid
wait $pid
check_same "a row can be read while the run goes on: the exit code of one that is interrupted then" $? 130
for format in csv md gbench go; do check "SIGINT: --$format has it, too" cmp "$tmp/int.$format" "$tmp/all.$format"; done
check_same "SIGINT: no temporary file" "$(ls "$tmp" | grep -c 'tmp[0-9]')" 0
finish
