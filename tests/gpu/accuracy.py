# SPDX-License-Identifier: MIT OR Unlicense
"""Compares corrected times with CUPTI's durations: accuracy.py FOLDER

FOLDER holds the records of any number of processes, which measured the same cases with --timer both: cold*.json
and hot*.json. Kernel times vary by 0.1 us and more between processes and over minutes. kbench's time and CUPTI's
time are therefore taken in the same process, in interleaved groups, and the median over processes is used. The
median error of every kernel must be within max(0.15 us, 1 %) of CUPTI's time; the goal is max(0.10 us, 0.5 %). The
exit code is 1 if the limit is exceeded for a kernel."""
import glob
import json
import statistics
import sys

if len(sys.argv) != 2:
    sys.exit(__doc__)


def medians(pattern):
    """Returns for each case name CUPTI's time and kbench's time minus CUPTI's time, in us."""
    seen = {}
    files = sorted(glob.glob(f"{sys.argv[1]}/{pattern}"))
    if not files:
        sys.exit(f"{sys.argv[1]} has no {pattern}")
    for file in files:
        for r in json.load(open(file)):
            time, truth = r["time_ms"], (r.get("counters") or {}).get("cupti")
            whole = time is not None and truth is not None
            seen.setdefault(r["name"], []).append((truth, 1000 * time - truth) if whole else None)
    middle = statistics.median
    return {n: None if None in s else tuple(middle(x) for x in zip(*s)) for n, s in seen.items()}


columns = [medians(f"{way}*.json") for way in ("cold", "hot")]
print(f"{'kernel':34} {'cold us':>9} {'CUPTI':>9} {'error':>7}  {'hot us':>9} {'CUPTI':>9} {'error':>7}")
bars = aims = cases = 0
worst = 0.0
for name in columns[0]:
    line = f"{name.replace('/impl=one', '').replace('/impl=default', ''):34}"
    for column in columns:
        cases += 1
        if column.get(name) is None:
            line += f" {'no number':>27} "
            worst = float("inf")
            continue
        truth, error = column[name]
        share = abs(error) / max(0.15, 0.01 * truth)
        bars += share <= 1
        aims += abs(error) <= max(0.10, 0.005 * truth)
        worst = max(worst, share)
        line += f" {truth + error:9.3f} {truth:9.3f} {error:+7.3f}{'!' if share > 1 else ' '}"
    print(line)
print(f"{bars} of {cases} within max(0.15 us, 1 %), {aims} within max(0.10 us, 0.5 %); worst {worst:.2f} of the bar")
sys.exit(bars < cases)
