# SPDX-License-Identifier: MIT OR Unlicense
"""Reads results.json with the standard json module. The first three statements are an example in
examples/README.md."""
import json
import sys

with open(sys.argv[1]) as f:
    results = json.load(f)
    ln = [r for r in results if r['operation'] == 'LayerNorm' or r['operation'] == 'layernorm']; min(ln, key=lambda x: x['time_ms'])['implementation']

keys = "batch_size sequence_length tensor_dimension time_ms memory_mb inference_speed gpu_efficiency throughput_gbps".split()
for r in ln:
    for key in keys:
        if key not in r:
            sys.exit("no key %s" % key)
    for key in "batch_size sequence_length tensor_dimension".split():
        if not isinstance(r[key], int) or r[key] != r["params"][key]:
            sys.exit("%s is %r, in params %r" % (key, r[key], r["params"].get(key)))
    if abs(r["inference_speed"] * r["time_ms"] / 1000 - 1) > 1e-9:
        sys.exit("inference_speed %r does not follow from time_ms %r" % (r["inference_speed"], r["time_ms"]))
    if abs(r["throughput_gbps"] * r["time_ms"] * 1e6 / r["bytes"] - 1) > 1e-9:
        sys.exit("throughput_gbps %r does not follow from bytes %r" % (r["throughput_gbps"], r["bytes"]))
    if r["memory_bytes"] is not None and abs(r["memory_mb"] * 1048576 - r["memory_bytes"]) > 1:
        sys.exit("memory_mb %r, memory_bytes %r" % (r["memory_mb"], r["memory_bytes"]))
if len(ln) != 24:
    sys.exit("%d records of layernorm, expected 24" % len(ln))
