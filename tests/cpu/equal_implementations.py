# SPDX-License-Identifier: MIT OR Unlicense
"""Evaluates records of equal_implementations.c. Counts the comparisons that report a difference of equal
implementations, and the comparisons that find a slower implementation.

    python3 tests/cpu/equal_implementations.py build/equal_implementations OUT.json --full|--short [OPTION ...]

The script writes every comparison, without samples, to OUT.json. The exit code is 1 if a limit is missed. With
--full, at least 200 comparisons of equal implementations are required, and at most 5 % of them may report a
difference. Of the implementations that are 5 % slower and take at least 1.5 us, at least 95 % must be found; this
limit applies only if other programs used less than 2 % of the processors. With --short, at least 30 comparisons of
equal implementations are required. With --short, slower implementations are only counted, and the limit for
reported differences is wider: the test fails if the number of differences has a probability below 0.001 at a true
rate of 5 %.
"""
import json
import math
import os
import subprocess
import sys

program, out, full, options = sys.argv[1], sys.argv[2], sys.argv[3] == "--full", sys.argv[4:]
before = os.getloadavg()[0]
done = subprocess.run([program, "--json", out, "--quiet"] + options, stdout=subprocess.DEVNULL, check=False)
if done.returncode not in (0, 1):
    sys.exit("%s ended with %d" % (program, done.returncode))
rows = json.load(open(out))
for r in rows:
    r["samples_ms"] = None
with open(out, "w") as f:
    json.dump([{k: v for k, v in r.items() if v is not None} for r in rows], f)


def mean(key):
    values = [r[key] for r in rows if r.get(key) is not None]
    return sum(values) / len(values) if values else 0


def number(x):
    return "-" if x is None else "%.4f" % x


waited, stolen = mean("cpu_waited"), mean("cpu_stolen")
print("%s, load %.1f to %.1f; other programs had %.1f %%, other machines %.1f %%" %
      (rows[0].get("cpu", "unknown processor"), before, os.getloadavg()[0], waited, stolen))
print("%-10s %18s %26s %13s %12s" % ("operation", "equal: different", "5 % slower: found, of", "noise floor", "NOISY"))
times = [r for r in rows if r.get("time_ms")]
for op in sorted({r["operation"] for r in times}) + ["all"]:
    mine = [r for r in times if op in ("all", r["operation"])]
    same = [r for r in mine if r["implementation"] in ("same_1", "same_2", "same_3")]
    wrong = [r for r in same if r.get("verdict") in ("FASTER", "SLOWER")]
    five = [r for r in mine if r["implementation"] == "slower_5" and r["time_ms"] >= 1.5e-3]
    missed = [r for r in five if r.get("verdict") != "SLOWER"]
    floors = sorted(r["noise_floor"] for r in same if r.get("noise_floor") is not None)
    floor = 100 * floors[len(floors) // 2] if floors else math.nan
    noisy = sum("NOISY" in r["flags"] for r in mine)
    print("%-10s %8d of %-7d %13d of %-10d %11.2f %% %6d of %d" %
          (op, len(wrong), len(same), len(five) - len(missed), len(five), floor, noisy, len(mine)))
for r in wrong + missed:
    print("    %-36s %9.3f us  %s [%s, %s] floor %s %s" %
          (r["name"], r["time_ms"] * 1e3, number(r.get("speedup")), number(r.get("speedup_low")),
           number(r.get("speedup_high")), number(r.get("noise_floor")), r.get("verdict")))
n, k = len(same), len(wrong)
chance = sum(math.comb(n, i) * 0.05**i * 0.95**(n - i) for i in range(k, n + 1))
faults = []
if n < (200 if full else 30):
    faults.append("only %d comparisons" % n)
if (k > 0.05 * n) if full else (chance < 0.001):
    faults.append("%d of %d comparisons of equal implementations reported a difference" % (k, n))
if full and max(waited, stolen) < 2 and len(missed) > 0.05 * len(five):
    faults.append("%d of %d implementations that are 5 %% slower were not found" % (len(missed), len(five)))
faults += ["%s failed: %s" % (r["name"], r.get("message")) for r in rows if r["status"] == "failed"][:5]
for fault in faults:
    print("FAIL: equal_implementations.py: " + fault)
sys.exit(1 if faults else 0)
