# SPDX-License-Identifier: MIT OR Unlicense
"""Reads the records of ./program --json RESULTS.json into a pandas DataFrame, and prints the fastest implementation
at each shape: python3 read_results.py RESULTS.json"""
import json
import sys

import pandas

with open(sys.argv[1]) as f:
    records = pandas.json_normalize(json.load(f))  # each axis becomes a column, such as params.rows
timed = records[records.status == "ok"]
case = ["operation", "direction", "dtype"] + [name for name in timed if name.startswith("params.")]
fastest = timed.loc[timed.groupby(case, dropna=False).time_ms.idxmin()]
print(fastest[case + ["implementation", "time_ms", "throughput_gbps"]].to_string(index=False))
# a plot: timed.pivot_table("throughput_gbps", "params.rows", "implementation").plot(logx=True)
