#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# On a GPU: a variant of the suite that does not support a problem size is skipped, and does not affect the results
# of other variants.
. tests/lib.sh

build "suite.cu" $NVCC -O3 $ARCHFLAGS -DKBK_ONLY=attention -I. examples/suite.cu -o "$tmp/suite"
run "$tmp/suite" --fast --no-progress --op attention --dtype bf16 -a batch_size=1 -a heads=2 -a sequence_length=4096 \
    -a tensor_dimension=64 -a causal=0 --json "$tmp/suite.json"
check_rc "attention over 4096 keys" 0
cat "$out"
if ! have python3; then
    skip "no python3: the records"
    finish
fi
check "naive alone is skipped" python3 -c '
import json, sys
records = json.load(open(sys.argv[1]))
assert len(records) > 4, len(records)
for r in records:
    want = "skipped" if r["implementation"] == "naive" else "ok"
    assert r["status"] == want and (want == "skipped" or r["verified"]), (r["name"], r["status"], r["message"])
' "$tmp/suite.json"
finish
