# SPDX-License-Identifier: MIT OR Unlicense
"""How far corrected times are from CUPTI's durations: accuracy.py FOLDER

FOLDER holds records of the same cases from any number of processes: cold*.json and hot*.json as kbench reports them,
cupti_cold*.json and cupti_hot*.json. Kernels themselves differ by 0.1 us and more from process to process: medians are
taken. Bar: within max(0.15 us, 1 %) for every kernel; aim: max(0.10 us, 0.5 %). Exit code 1 when the bar is missed."""
import glob
import json
import statistics
import sys

if len(sys.argv) != 2:
    sys.exit(__doc__)


def medians(pattern):
    """Of each name's times in all files; None where there is none."""
    times = {}
    files = sorted(glob.glob(f"{sys.argv[1]}/{pattern}"))
    if not files:
        sys.exit(f"{sys.argv[1]} has no {pattern}")
    for file in files:
        for r in json.load(open(file)):
            times.setdefault(r["name"], []).append(r["time_ms"])
    return {n: statistics.median(t) if None not in t else None for n, t in times.items()}


columns = []
for way in ("cold", "hot"):
    mine, truth = medians(f"{way}*.json"), medians(f"cupti_{way}*.json")
    columns.append({n: (mine[n], truth.get(n)) for n in mine})
print(f"{'kernel':34} {'cold us':>9} {'CUPTI':>9} {'error':>7}  {'hot us':>9} {'CUPTI':>9} {'error':>7}")
bars = aims = cases = 0
worst = 0.0
for name in columns[0]:
    line = f"{name.replace('/impl=one', '').replace('/impl=default', ''):34}"
    for column in columns:
        time, truth = column[name]
        cases += 1
        if time is None or truth is None:
            line += f" {'no number':>27} "
            worst = float("inf")
            continue
        time, truth = 1000 * time, 1000 * truth
        error = time - truth
        share = abs(error) / max(0.15, 0.01 * truth)
        bars += share <= 1
        aims += abs(error) <= max(0.10, 0.005 * truth)
        worst = max(worst, share)
        line += f" {time:9.3f} {truth:9.3f} {error:+7.3f}{'!' if share > 1 else ' '}"
    print(line)
print(f"{bars} of {cases} within max(0.15 us, 1 %), {aims} within max(0.10 us, 0.5 %); worst {worst:.2f} of the bar")
sys.exit(bars < cases)
