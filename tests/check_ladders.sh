#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Tests that the measured columns in the comments of kbench_kernels.cuh and in the ladders of the documents match
# the evidence (tests/ladder.py).
. tests/lib.sh

if [ ! -f kbench_kernels.cuh ]; then skip "kbench_kernels.cuh does not exist" && finish; fi
if ! have python3; then skip "no python3" && finish; fi
if ! have "$CC"; then skip "no C compiler" && finish; fi
run python3 tests/ladder.py --check
if [ "$rc" -eq 0 ] && [ ! -s "$out" ]; then pass; else fail "tests/ladder.py --check: $(head -n 3 "$out" | tr '\n' ';')"; fi

header=kbench_kernels.cuh evidence=tests/evidence/ladder.json
fresh() {
    mkdir -p "$tmp/root/examples" "$tmp/root/tests/evidence"
    cp kbench_kernels.cuh README.md "$tmp/root" && cp examples/README.md "$tmp/root/examples" && cp $evidence "$tmp/root/tests/evidence"
}
ladder() { run python3 tests/ladder.py --root "$tmp/root" "$@"; }
# stale WHAT FILE SED EXPECTED: after SED has changed FILE in the copy, ladder.py --check must fail with a message
# that matches EXPECTED
stale() {
    everything || [ "$1" = "a time that is not the evidence's" ] || return 0
    fresh
    sed "$3" "$2" > "$tmp/root/$2"
    if cmp -s "$2" "$tmp/root/$2"; then fail "$1: nothing was changed"; fi
    ladder --check
    check_rc "$1" 1
    check_out "$1" "$4"
}
stale "a time that is not the evidence's" $header '/^\/\*  measured softmax fwd:/,/end of measured/s/^\(  *2 block  *\)[0-9.]*/\1111.1/' 'says "2 block '
stale "a floor that is not the formula's" $header '/^\/\*  measured softmax fwd:/,/end of measured/s/\(H200 \)[0-9.]*/\11/' 'says "0\.625 FLOP/B; floor on an H200 62\.8 us'
stale "a formula that changed" $header 's/^\(KBKI_FORMULAS(softmax_fwd, .*\)2 \* n/\14 * n/' 'says "0\.313 FLOP/B; floor on an H200 125\.6 us'
stale "a rung's note that changed" $header 's/"CTA per row, shared-memory tree, three reads"/"CTA per row, another note, three reads"/' 'says "2 block .*another note'
stale "a ladder without its column" $header 's/^\/\*  measured softmax fwd:/\/*  softmax fwd:/' 'no card \(generated comment with measurements\) shows softmax fwd'
stale "a column without an end" $header '/measured null run:/,/end of measured/s/^    end of measured .*/*\//' 'this generated part has no end mark'
stale "a rung without its line" $header '/^  *5 regblock  /d' 'says "5 regblock'
stale "the ladder of examples/README.md" examples/README.md 's/^\(  *18 mmapipe  *\)[0-9.]*/\1111.1/' 'examples/README\.md, line [0-9]+: the evidence says "18 mmapipe'
stale "the excerpt of README.md" README.md 's/^\(  *16 tma  *\)[0-9.]*/\1111.1/' '^README\.md, line [0-9]+: the evidence says "16 tma'
stale "README.md without a ladder" README.md '/^<!-- measured/d' 'README\.md shows no ladder'
stale "a station that does not exist" $header 's/^\( *4 \)transpose:/\1transpoze:/' '^READING ORDER: transpoze does not exist'
stale "a section that does not exist" $header 's/registers (>>matmul_simt)/registers (>>matmul_sims)/' '^READING ORDER: >>matmul_sims does not exist'
stale "a reading order without stations" $header 's/^   READING ORDER/   READING/' '^only 0 stations in READING ORDER'
stale "a word that nothing bears" $header 's/^                online    running/                offline   running/' '^offline: no kernel has this word, and the manual does not call it reserved'
! everything || check_out "a word of one list alone" '^offline: this word is in KBKI_WORDS or in the manual, but not in both'
! everything || check_out "a row without a word" '^online: a kernel has this word, but the list in the manual lacks it'
stale "a reserved word with a row" $header 's/Reserved, used by no variant: /&vec /' '^vec: the manual calls this word reserved, but a kernel has it'
stale "a portable rung below the line" $header 's/^template <class T> __global__ void kbk_transpose_run_naive_k(/__global__ void kbk_transpose_run_vec_k(int);\n\/\/ ---- The kernels that add one idea each end here.\n&/' '^wrong order of rungs: kbk_transpose_run_naive_k \(rung 1\) is below the end of the kernels that add one idea each'
stale "a portable rung below another section" $header 's/^  >>dropout  .*/&\n__global__ void kbk_attention_fwd_flash_k(int);/' '^wrong order of rungs: kbk_attention_fwd_naive_k \(rung 1\) is below >>dropout, but flash \(rung 4\) is above'

# --write corrects the columns, and nothing else
fresh
sed '/^\/\*  measured softmax fwd:/,/end of measured/s/^\(  *2 block  *\)[0-9.]*/\1111.1/' $header > "$tmp/root/$header"
ladder --write
check_rc "--write" 0
check "--write restores the header" cmp $header "$tmp/root/$header"
check "--write leaves README.md" cmp README.md "$tmp/root/README.md"

cat > "$tmp/small.py" << 'END'
import json, sys
def record(impl, ms, columns=4096, status='ok', **more):
    shape = {'dtype': 'f32', 'dir': 'fwd', 'batch_size': 8, 'sequence_length': 1024, 'tensor_dimension': columns}
    return dict({'operation': 'softmax', 'direction': 'fwd', 'implementation': impl, 'dtype': 'f32', 'params': shape, 'status': status,
                 'time_ms': ms, 'gpu_efficiency': 50, 'gpu': 'A GPU', 'date': '2030-01-02T00:00:00Z'}, **more)
json.dump([record('naive', 1.0, registers=40, counters={'occupancy_pct': 61.7, 'dram_pct': 12.2, 'bank_conflicts': 1234567}),
           record('block', 0.5), record('onepass', 0.625), record('cluster', None, status='timeout'), record('block', 0.4, 1024)], sys.stdout)
END
python3 "$tmp/small.py" > "$tmp/small.json"
fresh
ladder --evidence "$tmp/small.json" --write
check_rc "--write from another evidence" 0
sed -n '/^\/\*  measured softmax fwd/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "when and where" 'measured softmax fwd: f32 8192 x 4096, A GPU, 2030-01-02$'
check_out "intensity and floor" '^    0\.625 FLOP/B; floor on an H200 62\.8 us = 268\.4 MB / 4\.276 TB/s$'
check_out "the names of the columns" ' time +peak +gain +regs +occ +DRAM +conflicts$'
check_out "the first rung" ' 1 naive +1000 us +50 % +- +40 +62 % +12 % +1235 k  thread per row'
check_out "a gain" ' 2 block +500\.0 us +50 % +2\.00 x +- +- +- +-  CTA per row'
check_out "a loss, over a rung further down" ' 4 onepass +625\.0 us +50 % +0\.80 x of 2 '
check_out "a rung that failed" ' 6 cluster +- +- +- '

# --run measures every element type and shape once. Valid records, also of other cases, stay in the file.
cat > "$tmp/suite.py" << 'END'
import json, sys
words = sys.argv[1:]
ops, dtype = words[words.index('--op') + 1].split(','), words[words.index('--dtype') + 1]
shape = dict((k, int(v)) for k, v in (w.split('=') for i, w in enumerate(words) if words[i - 1] == '-a'))
def record(op, direction, impl, ms, status, **more):
    return {'name': '%s/%s/%s/%s/%s' % (op, direction, impl, dtype, more), 'operation': op, 'direction': direction, 'implementation': impl,
            'dtype': dtype, 'params': dict(shape, dtype=dtype, dir=direction, **more), 'status': status, 'time_ms': ms,
            'gpu_efficiency': 25, 'gpu': 'A GPU', 'date': '2031-02-03T00:00:00Z', 'samples_ms': [1, 2], 'counters': {'dram_pct': 3, 'other': 4}}
made = [record(op, d, impl, ms, 'ok') for op in ops for d in ('fwd', 'bwd') for impl, ms in (('naive', 4.0), ('flash', 1.0))]
made += [record(ops[0], 'fwd', 'flashmma', None, 'timeout'), record(ops[0], 'fwd', 'naive', 3.0, 'ok', tensor_dimension=1)]
json.dump(made, open(words[words.index('--json') + 1], 'w'))
END
sed -i.bak 's/dict(shape, dtype=dtype, dir=direction, \*\*more)/{**shape, "dtype": dtype, "dir": direction, **more}/' "$tmp/suite.py"
printf '#!/bin/sh\nexec python3 "%s" "$@"\n' "$(cd "$tmp" && pwd)/suite.py" > "$tmp/suite" && chmod +x "$tmp/suite"
run python3 tests/ladder.py --run "$tmp/suite" "$tmp/ladder.json" attention
check_rc "--run" 0
check_out "--run: the suite's command" 'counters --op attention --dtype bf16 --filter /batch_size=4\.\*/causal=0 -a batch_size=4 .*-a heads=16$'
check_out "--run: records at the ladder's shape" '^4 records in '
for time in first again; do run python3 tests/ladder.py --run "$tmp/suite" "$tmp/ladder.json" matmul; done
check_out "--run: two types, twice" '^12 records in '
check_same "--run: keys that the cards need" "$(grep -c 'samples_ms\|"other"' "$tmp/ladder.json")" 0

# --diff
run python3 tests/ladder.py --diff softmax
check_out "--diff" '^== softmax fwd: 1 naive \([0-9]+ lines\) -> 2 block \([0-9]+ lines\): [0-9]+ added, [0-9]+ removed$'
run python3 tests/ladder.py --diff sofmax
check_rc "--diff: no such operation" 2
check_err "--diff: no such operation" 'the operation sofmax is unknown, or'
run python3 tests/ladder.py --nonsense
check_rc "an unknown word" 2
finish
