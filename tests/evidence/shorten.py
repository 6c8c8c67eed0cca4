#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Rewrites record files of kbench, one record a line, with only the keys that the tests and the tables read.

    python3 tests/evidence/shorten.py FILE...      numbers keep eight digits
"""
import json
import os
import sys

# The keys of every file, and those that a file has besides.
COMMON = "operation direction implementation dtype params time_ms gpu_efficiency status flags gpu date".split()
PEERS = "origin samples mode bytes".split()
MORE = {
    # examples/python/kbench_kernels.py --load; tests/host/flag_rates.c wants the name first
    "operations.json": ["name"] + PEERS + "time_ms_min time_ms_p5 time_ms_p25 time_ms_p75 time_ms_p95 time_ms_max".split(),
}


def short(value):
    if isinstance(value, float):
        value = float("%.8g" % value)
        return int(value) if value.is_integer() else value
    return value


def main(paths):
    for path in paths:
        with open(path) as f:
            records = json.load(f)
        keys = MORE.get(os.path.basename(path), PEERS) + COMMON
        lines = [json.dumps({k: short(r[k]) for k in keys if k in r}) for r in records]
        with open(path, "w") as f:
            f.write("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
