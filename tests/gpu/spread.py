# SPDX-License-Identifier: MIT OR Unlicense
"""Measures how much the medians of new processes differ: spread.py PROGRAM [ARGUMENTS...]

Runs a kbench program ten times. For every case, the largest and the smallest median may differ by at most max(0.1
us, 1 %)."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

PROCESSES = 10

if len(sys.argv) < 2:
    sys.exit(__doc__)
times = {}
with tempfile.TemporaryDirectory() as folder:
    for i in range(PROCESSES):
        path = os.path.join(folder, f"{i}.json")
        done = subprocess.run([*sys.argv[1:], "--no-progress", "--json", path], capture_output=True, text=True)
        if not os.path.exists(path):
            sys.exit(f"{sys.argv[1]} left no record (exit code {done.returncode}): {done.stderr.strip()}")
        for r in json.load(open(path)):
            times.setdefault((r["name"], r["dtype"]), []).append(r["time_ms"])
missed = 0
for (name, _), ms in times.items():
    us = [1000 * t for t in ms if t is not None]
    if len(us) < PROCESSES:
        print(f"{name:38} {PROCESSES - len(us)} of {PROCESSES} processes gave no number")
        missed += 1
        continue
    median, spread = statistics.median(us), max(us) - min(us)
    miss = spread > max(0.1, 0.01 * median)
    missed += miss
    print(f"{name:38} {median:10.3f} us spread {spread:7.3f} us {100 * spread / median:5.2f} %{' MISS' if miss else ''}")
print(f"{missed} missed of {len(times)}")
sys.exit(missed > 0)
