# SPDX-License-Identifier: MIT OR Unlicense
"""Reads the records of ./program --json RESULTS.json into a pandas DataFrame: python3 read_results.py RESULTS.json"""
import json
import sys

import pandas

with open(sys.argv[1]) as f:
    records = pandas.json_normalize(json.load(f))  # each axis becomes a column, such as params.rows
timed = records[records.status == "ok"]
fastest = timed.loc[timed.groupby(["operation", "dtype"], dropna=False).time_ms.idxmin()]
print(fastest[["operation", "dtype", "implementation", "time_ms", "throughput_gbps"]].to_string(index=False))
