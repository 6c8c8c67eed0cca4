#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# The measured columns of the cards in kbench_kernels.cuh and of the ladder in the documents match the evidence
# (tests/ladder.py).
. tests/lib.sh

if [ ! -f kbench_kernels.cuh ]; then skip "kbench_kernels.cuh is not there" && finish; fi
if ! have python3; then skip "no python3" && finish; fi
run python3 tests/ladder.py --check
if [ "$rc" -eq 0 ] && [ ! -s "$out" ]; then pass; else fail "tests/ladder.py --check: $(head -n 3 "$out" | tr '\n' ';')"; fi

# copies with one error each
fresh() { mkdir -p "$tmp/root/examples" && cp kbench_kernels.cuh README.md "$tmp/root" && cp examples/README.md "$tmp/root/examples" && rm -rf "$tmp/root/tests" && mkdir "$tmp/root/tests" && cp -r tests/evidence "$tmp/root/tests"; }
ladder() { run python3 tests/ladder.py --root "$tmp/root" "$@"; }
# stale WHAT FILE SED EXPECTED: after this change of FILE in the copy, the check fails with this message
stale() {
    everything || [ "$1" = "a time that is not the evidence's" ] || return 0
    fresh
    sed "$3" "$2" > "$tmp/root/$2"
    if cmp -s "$2" "$tmp/root/$2"; then fail "$1: nothing was changed"; fi
    ladder --check
    check_rc "$1" 1
    check_out "$1" "$4"
}
header=kbench_kernels.cuh evidence=tests/evidence/h200/ladder.json
# softmax's block, as 78.9: between 10 and 100 us
block=$(sed -n '/^\/\*  measured softmax fwd:/,/end of measured/s/^     2 block  *\([0-9]*\.[0-9]*\) us.*/\1/p' $header)
stale "a time that is not the evidence's" $header "s/^\(     2 block  *\)$block us/\\111.1 us/" "says \"2 block +$block us"
stale "a rung's note that changed" $header 's/"CTA per row, shared-memory tree, three reads"/"CTA per row, another note, three reads"/' 'says "2 block .*another note'
stale "a loss that is not told" $header '/^ *loses at f32 512 x 131072 (0\.[0-9]* x)/d' 'says "loses at f32 512 x 131072'
stale "a ladder without its column" $header '/^\/\*  measured softmax fwd:/d' 'no card shows what was measured of softmax fwd'
stale "a column without an end" $header '/measured null run:/,/end of measured/s/^    end of measured .*/*\//' 'no end of measured'
stale "a rung without its line" $header '/^     3 regblock  /d' 'says "3 regblock'
pipe=$(sed -n 's/^     8 mmapipe  *\([0-9]*\)\..*/\1/p' examples/README.md)
stale "the ladder of examples/README.md" examples/README.md "s/^     8 mmapipe     $pipe/     8 mmapipe     111/" "examples/README\\.md, line [0-9]+: the evidence says \"8 mmapipe +$pipe"
coop=$(sed -n 's/^    11 coop  *\([0-9]*\)\..*/\1/p' README.md)
stale "the excerpt of README.md" README.md "s/^    11 coop        $coop/    11 coop        111/" "^README\\.md, line [0-9]+: the evidence says \"11 coop +$coop"
stale "README.md without a ladder" README.md '/^<!-- measured/d' 'README\.md shows no ladder'
stale "a word that nothing bears" $header 's/^                online    running/                offline   running/' '^offline: has no row, and is not marked as reserved'
! everything || check_out "a word of one list alone" '^offline: in one of KBKI_WORDS and the manual alone'
! everything || check_out "a row without a word" '^online: no word of the closed list'
stale "a reserved word with a row" $header 's/Reserved, no row bears them: /&vec /' '^vec: reserved, and has a row'
stale "the line above a plain rung" $header 's/^template <class T> __global__ void kbk_copy_run_naive_k(/__global__ void kbk_copy_run_bulk_k(int);\n\/\/ ---- The plain rungs end here.\n&/' '^kbk_copy_run_naive_k is rung 1 and stands below'
stale "a plain rung behind another section's machinery" $header 's/^  >>dropout  .*/&\n__global__ void kbk_attention_fwd_flash_k(int);/' '^kbk_attention_fwd_naive_k is rung 1 and stands below >>dropout, flash is rung 4 and above it'
# a section moved behind the next, and two sections without the line
if everything; then
    fresh
    awk '/^\/\*-----/ { held = $0; next }
        held { moves = /^  >>attention_bwd /; if (/^  >>attention_bwd_hopper/) printf "%s", kept; text = held "\n"; held = "" }
        { text = text $0 "\n"; if (moves) kept = kept text; else printf "%s", text; text = "" }' $header > "$tmp/root/$header"
    ladder --check
    check_out "a section behind one of higher rungs" '^kbk_attention_bwd_naive_k is rung 1 and stands below >>attention_bwd_mma, flashmma is rung 6 and above it'
    fresh
    awk '/^  >>/ { within = /^  >>attention_bwd_mma/ } !(within && /The plain rungs end here/)' $header > "$tmp/root/$header"
    ladder --check
    check_out "no line in any section" '^attention bwd: no section says that the plain rungs end'
fi
stale "evidence that is newer" $evidence "s/\"time_ms\": *0\.0${block%.*}[0-9]*/\"time_ms\": 0.0110/" 'says "2 block +11\.0 us'

# --write fixes the error, and changes only the columns
ladder --write
check_rc "--write" 0
ladder --check
check_rc "--check after --write" 0
check_same "--write changes more than columns" "$(diff "$header" "$tmp/root/$header" | grep '^[<>]' | grep -vE '^[<>]      ?[0-9]+ [a-z]+ |^[<>] +loses at|^[<>] +\(')" ""
check "--write leaves README.md" cmp README.md "$tmp/root/README.md"

# a rung of the vendor is a step like any other, except rung 99
sed -n '/^\/\*  measured alloc run/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "the vendor's step" ' 2 async +853\.6 us +- +0\.35 x  a pool'
check_out "and its loss" '^ +loses at f32 67108864 \(0\.35 x\)$'
sed -n '/^\/\*  measured d2d run/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "the vendor's own row" ' 99 cudart +[0-9.]+ us +[0-9]+ % +-  cudaMemcpyAsync'

# small evidence with rungs that are faster, slower, equally fast, missing, or failed
cat > "$tmp/small.py" << 'END'
import json, sys
def record(impl, ms, columns=4096, status='ok'):
    shape = {'dtype': 'f32', 'dir': 'fwd', 'batch_size': 8, 'sequence_length': 1024, 'tensor_dimension': columns}
    return {'operation': 'softmax', 'direction': 'fwd', 'implementation': impl, 'dtype': 'f32', 'params': shape, 'status': status,
            'time_ms': ms, 'gpu_efficiency': 50, 'gpu': 'NVIDIA H200', 'date': '2030-01-02T00:00:00Z'}
json.dump([record('naive', 1.0), record('block', 0.5), record('online', 0.6), record('onepass', 0.603),
           record('cluster', None, status='timeout'), record('block', 0.4, 1024), record('online', 0.2, 1024)], sys.stdout)
END
python3 "$tmp/small.py" > "$tmp/small.json"
fresh
ladder --evidence "$tmp/small.json" --write
check_rc "--write from another evidence" 0
sed -n '/^\/\*  measured softmax fwd/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "when and where" 'measured softmax fwd: f32 8192 x 4096, NVIDIA H200, 2030-01-02$'
check_out "the first rung" ' 1 naive +1000 us +50 % +-  thread per row'
check_out "a gain" ' 2 block +500\.0 us +50 % +2\.00 x  CTA per row'
check_out "a loss" ' 3 online +600\.0 us +50 % +0\.83 x  warp per row'
check_out "where it loses, and where not" '^ +loses at f32 8192 x 4096 \(0\.83 x\) alone of 2 shapes; gains at f32 8192 x 1024 \(2\.00 x\)$'
check_out "as fast" ' 4 onepass +603\.0 us +50 % +1\.00 x  16-byte'
check_same "losses told" "$(grep -c 'loses at' "$out")" 1
check_out "one that failed" ' 6 cluster +- +- +-  row split'
check_out "one that is not there" ' 5 shared +- +- +-  next rows'

# output of examples/python/attention_matrix.py, and a record with the peak
cat > "$tmp/attention_matrix.txt" << 'END'
NVIDIA H200, driver 999, 2030-01-04: python3 examples/python/attention_matrix.py
batch  heads  length  dim  type  implementation         us  +- %    GFLOP/s    GB/s  queries/s  speedup           words
    4     16    2048  128  bf16  cudnn              212.41  0.28   6.47e+05   634.3  6.171e+08        1
    4     16    2048  128  bf16  kb:naive        100000.00  0.06     1374.4  0.8137  7.915e+05  0.00128
    4     16    2048  128  bf16  kb:cublas         1000.00  0.12   1.374e+05    97.5  9.485e+07    0.154
    4     16    2048  128  bf16  kb:flash          2000.00  0.29   6.872e+04   22.05  2.145e+07   0.0347
    1      1     128   64  bf16  kb:flash             4.00  0.29      1e+03    22.05  2.145e+07   0.0347
    1      1     128   64  bf16  kb:cublas            8.00  0.29      1e+03    22.05  2.145e+07   0.0347
END
cat > "$tmp/roof.json" << 'END'
[{"operation": "attention", "direction": "fwd", "implementation": "flashmma", "dtype": "bf16", "params": {"dtype": "bf16", "dir": "fwd",
  "batch_size": 4, "heads": 16, "sequence_length": 512, "tensor_dimension": 128, "causal": 0}, "status": "ok", "time_ms": 1,
  "gpu_efficiency": 50, "compute_roof_gflops": 500000, "copy_roof_gbps": 4000, "gpu": "NVIDIA H200", "date": "2030-01-02T00:00:00Z"}]
END
fresh
ladder --evidence "$tmp/roof.json" --evidence "$tmp/attention_matrix.txt" --write
sed -n '/^\/\*  measured attention fwd/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "when and where, of the matrix" 'bf16 4 x 16 x 2048 x 128, NVIDIA H200, 2030-01-04$'
check_out "its first rung" ' 1 naive +100\.0 ms +0 % +-  score matrix'
check_out "the vendor's step there" ' 2 cublas +1000 us +27 % +100 x  vendor'
check_out "the next" ' 4 flash +2000 us +14 % 0\.50 x of 2  64 x 64'
check_out "where it loses, of the matrix" '^ +loses at bf16 4 x 16 x 2048 x 128 \(0\.50 x\) alone of 2 shapes; gains at bf16 1 x 1 x 128'

# output of tests/gpu/e4m3.cu
cat > "$tmp/e4m3.txt" << 'END'
NVIDIA H200, driver 999, 2030-01-03
TFLOP/s              M, N, K  cuBLAS us  cuBLAS       tma    x    select    x       big    x
e4m3 NT     4096x4096x4096    100.0  1374.4    1000.0 0.73    1250.0 0.91         -    -
END
fresh
ladder --evidence "$tmp/e4m3.txt" --write
check_rc "--write from times of e4m3" 0
sed -n '/^\/\*  measured matmul_e4m3 fwd/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "when and where, of e4m3" 'bf16 4096 x 4096 x 4096 NT, NVIDIA H200, 2030-01-03; \* by CUDA events$'
check_out "a rung of e4m3" ' 3 tma +137\.4 us\* +- +-  wgmma on'
check_out "the next" ' 4 select +110\.0 us\* +- +1\.25 x  by shape'
check_out "the vendor's" '99 cublas +100\.0 us\* +- +-  cublasLtMatmul'

# gains skip rungs without a measurement, and name the rung they refer to
sed 's/"implementation": "block"/"implementation": "elsewhere"/' "$tmp/small.json" > "$tmp/gap.json"
ladder --evidence "$tmp/gap.json" --write
sed -n '/^\/\*  measured softmax fwd/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "a gain over a rung further down" ' 3 online +600\.0 us +50 % 1\.67 x of 1  warp per row'

# --run asks a suite for every type and shape once, and keeps valid records and those of other cases in the file
cat > "$tmp/suite.py" << 'END'
import json, sys
words = sys.argv[1:]
ops, dtype = words[words.index('--op') + 1].split(','), words[words.index('--dtype') + 1]
shape = dict((k, int(v)) for k, v in (w.split('=') for i, w in enumerate(words) if words[i - 1] == '-a'))
def record(op, direction, impl, ms, status):
    return {'name': '%s/%s/%s/%s' % (op, direction, impl, dtype), 'operation': op, 'direction': direction, 'implementation': impl,
            'dtype': dtype, 'params': dict(shape, dtype=dtype, dir=direction), 'status': status, 'time_ms': ms,
            'gpu_efficiency': 25, 'gpu': 'NVIDIA H200', 'date': '2031-02-03T00:00:00Z'}
made = [record(op, d, impl, ms, 'ok') for op in ops for d in ('fwd', 'bwd') for impl, ms in (('naive', 4.0), ('flash', 1.0))]
json.dump(made + [record(ops[0], 'fwd', 'flashmma', None, 'timeout')], open(words[words.index('--json') + 1], 'w'))
END
printf '#!/bin/sh\nexec python3 "%s" "$@"\n' "$(cd "$tmp" && pwd)/suite.py" > "$tmp/suite" && chmod +x "$tmp/suite"
run python3 tests/ladder.py --run "$tmp/suite" "$tmp/ladder.json" attention
check_rc "--run" 0
check_out "--run: the suite's command" 'op attention --dtype bf16 -a batch_size=4 .*-a heads=16 -a causal=0$'
check_out "--run: what it keeps" '^4 records in '
run python3 tests/ladder.py --run "$tmp/suite" "$tmp/ladder.json" matmul
check_out "--run: two types" '^12 records in '
run python3 tests/ladder.py --run "$tmp/suite" "$tmp/ladder.json" matmul
check_out "--run: again" '^12 records in '
fresh
cp "$tmp/ladder.json" "$tmp/root/tests/evidence/h200/ladder.json"
ladder --write
check_rc "--write with a ladder.json" 0
sed -n '/^\/\*  measured attention fwd/,/end of measured/p' "$tmp/root/$header" > "$out"
check_out "ladder.json counts first" ' 4 flash +1000 us +25 % +1\.38 x of 2  64 x 64'
check_out "the others fill in" ' 6 flashmma +387\.1 us .* 2\.58 x of 4  mma\.sync'

run python3 tests/ladder.py --nonsense
check_rc "an unknown word" 2
finish
