#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# Half a minute of bytes that no run wrote: through libFuzzer where clang has it, else records changed at random.
# FUZZ_SECONDS=300 sh tests/run.sh tests/host/fuzz.sh takes longer.
. tests/lib.sh

: "${FUZZ_SECONDS:=30}"
build "prog.c" $CC -O1 -I. tests/cli/prog.c -o "$tmp/prog" $libs
mkdir "$tmp/corpus"
short="--iters 3 --warmup 1 --no-progress -q"
"$tmp/prog" $short --filter "softmax.*fwd.*f32.*cols=32" --json "$tmp/corpus/array.json" --jsonl "$tmp/corpus/lines.jsonl" \
    --html "$tmp/corpus/page.html" > /dev/null 2>&1
cp tests/evidence/h200/first.json "$tmp/corpus/schema_1.json"
printf '{"name": "a", "operation": "o", "later": [{"x": "\\u00e4\\ud83d\\ude00"}], "time_ms": 1e-3}\n{"name' > "$tmp/corpus/short.jsonl"
sanitize="-g -O1 -I. -fsanitize=address,undefined -fno-sanitize-recover=undefined"
cat > "$tmp/try.c" << 'end'
#include <stddef.h>
int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) { return data == NULL && size > 0; }
end
if have clang && clang -fsanitize=fuzzer,address,undefined "$tmp/try.c" -o "$tmp/try" > /dev/null 2>&1; then
    build "with libFuzzer" clang $sanitize -fsanitize=fuzzer -DFUZZER tests/fuzz/reader.c -o "$tmp/reader" $libs
    check "libFuzzer finds nothing" "$tmp/reader" -max_total_time="$FUZZ_SECONDS" -timeout=20 -rss_limit_mb=2048 \
        -artifact_prefix="$tmp/" "$tmp/corpus"
elif $CC $sanitize -x c /dev/null -c -o "$tmp/try.o" > /dev/null 2>&1 && $CC $sanitize tests/fuzz/reader.c -o "$tmp/reader" $libs 2> "$tmp/check"; then
    check "changed at random: nothing is found" "$tmp/reader" "$FUZZ_SECONDS" "$tmp"/corpus/*
else
    skip "neither libFuzzer nor the sanitizers: nothing was fuzzed"
fi
finish
