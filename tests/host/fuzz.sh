#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Fuzzes the parsers of records, command lines and axis values for FUZZ_SECONDS each. The builds have sanitizers,
# and use libFuzzer if clang has it.
# only in make test-all
. tests/lib.sh

: "${FUZZ_SECONDS:=5}"
mkdir "$tmp/reader" "$tmp/cli" "$tmp/ranges"
cp tests/fixtures/golden/*.json tests/fixtures/golden/*.jsonl "$tmp/reader"
printf '{"name": "a", "operation": "o", "later": [{"x": "\\u00e4\\ud83d\\ude00"}], "time_ms": 1e-3}\n{"name' > "$tmp/reader/short.jsonl"
# seed TARGET WORD...: writes a line per word
seeds=0
seed() {
    to=$tmp/$1/seed$((seeds = seeds + 1))
    shift
    printf '%s\n' "$@" > "$to"
}
seed cli --list -a 'rows=1:64:*2' --op softmax
seed cli --list-sizes --size=small,large --exclude 'mine$'
seed cli --fast --iters 10 --warmup 200ms --timeout 3s --seed 7 --impl naive
seed cli --dry-run --shuffle --dtype bf16 -a p=0.1,inf -v 'soft.*='
seed cli --baseline b.json --threshold 5% --fail-on regress --goal 'softmax:time_ms<=1' --sort -time,name --columns name,time
seed cli --load a.json b.json --csv - --op gelu
seed cli -a '' --op ''
seed cli --filter '((((a{1,255}){1,255}){1,255}){1,255})'
seed ranges '512,1024:8192:*2'
seed ranges '0.1:0.9:+0.2,inf,-inf,2^10'
seed ranges 'rows=1:8:*2 cols=64,128'
seed ranges 200ms
seed ranges 0,4-7
seed ranges '0,-00,10^400,10^-400,nan^0'
seed ranges 'softmax/.*(rows=[0-9]+|p=0\.5){1,2}$'

build "sample_program.c" $CC -O1 -I. -Itests -include tests/kit.h tests/cli/sample_program.c -o "$tmp/prog" $libs
"$tmp/prog" --iters 3 --warmup 1 --no-progress -q --filter "softmax.*fwd.*f32.*cols=32" --json "$tmp/reader/array.json" \
    --jsonl "$tmp/reader/lines.jsonl" --html "$tmp/reader/page.html" > /dev/null 2>&1
sanitize="-g -O1 -I. -Itests -fsanitize=address,undefined -fno-sanitize-recover=undefined"
cat > "$tmp/try.c" << 'end'
#include <stddef.h>
int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) { return data == NULL && size > 0; }
end
for target in reader cli ranges; do
    if have clang && clang -fsanitize=fuzzer,address,undefined "$tmp/try.c" -o "$tmp/try" > /dev/null 2>&1; then
        build "$target with libFuzzer" clang $sanitize -fsanitize=fuzzer -DFUZZER tests/fuzz/$target.c -o "$tmp/fuzz_$target" $libs
        check "$target: libFuzzer finds no error" "$tmp/fuzz_$target" -max_total_time="$FUZZ_SECONDS" -timeout=60 \
            -rss_limit_mb=3000 -artifact_prefix="$tmp/" "$tmp/$target"
    elif $CC $sanitize -x c /dev/null -c -o "$tmp/try.o" > /dev/null 2>&1 && $CC $sanitize tests/fuzz/$target.c -o "$tmp/fuzz_$target" $libs 2> "$tmp/check"; then
        check "$target: random mutations find no error" "$tmp/fuzz_$target" "$FUZZ_SECONDS" "$tmp/$target"/*
    else
        skip "$target: not fuzzed, because neither libFuzzer nor the sanitizers are available"
    fi
done
finish
