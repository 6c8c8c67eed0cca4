# SPDX-License-Identifier: MIT OR Unlicense
"""Evaluates records of equal_implementations.cu. Counts, for each cache mode, the comparisons that report a
difference of equal implementations, and the comparisons that find a slower implementation.

    python3 tests/gpu/equal_implementations.py build/equal_implementations OUT.json [cold hot rotate]

The script writes every comparison, without samples, to OUT.json. With --rotate, kbench makes at most 64 copies of
the data, and the copies together must exceed twice the size of the L2 cache. The mode rotate therefore uses larger
sizes than cold and hot: at least 3/4 Mi elements, or products of 512 x 512 matrices. The number of sizes is the
same in all modes.
"""
import json
import subprocess
import sys

program, out, modes = sys.argv[1], sys.argv[2], sys.argv[3:] or ["cold", "hot", "rotate"]
arrays = [k << 18 for k in (3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 192)]
sides = [512, 576, 640, 704, 768, 832, 896, 960, 1024, 1152, 1280, 1536, 1792, 2048]
listed = lambda ns: "n=" + ",".join(map(str, ns))
large = [["--op", "axpy,sums,histogram,gather", "-a", listed(arrays)], ["--op", "product", "-a", listed(sides)]]
kept = []
for mode in modes:
    for which in large if mode == "rotate" else [[]]:
        subprocess.run([program, "--" + mode, "--json", out, "--quiet", *which], stdout=subprocess.DEVNULL, check=False)
        for r in json.load(open(out)):
            r["samples_ms"] = None
            kept.append(r)
with open(out, "w") as f:
    json.dump([{k: v for k, v in r.items() if v is not None} for r in kept], f)

print("%-8s %-10s %18s %22s %22s" % ("mode", "operation", "equal: different", "2 % slower, from 5 us", "5 %, from 1.5 us"))
for mode in modes:
    rows = [r for r in kept if r["cache"] == mode and r.get("time_ms")]
    total = {}
    for op in sorted({r["operation"] for r in rows}) + ["all"]:
        mine = [r for r in rows if op in ("all", r["operation"])]
        same = [r for r in mine if r["implementation"] in ("same_1", "same_2", "same_3")]
        wrong = [r for r in same if r.get("verdict") in ("FASTER", "SLOWER")]
        two = [r for r in mine if r["implementation"] == "slower_2" and r["time_ms"] >= 5e-3]
        five = [r for r in mine if r["implementation"] == "slower_5" and r["time_ms"] >= 1.5e-3]
        found = lambda rs: sum(r.get("verdict") == "SLOWER" for r in rs)
        print("%-8s %-10s %8d of %-7d %10d of %-9d %10d of %-9d" %
              (mode, op, len(wrong), len(same), found(two), len(two), found(five), len(five)))
        if op == "all":
            for r in wrong:
                print("    %-40s %8.2f us  %.4f [%.4f, %.4f] floor %.4f" %
                      (r["name"], r["time_ms"] * 1e3, r["speedup"], r["speedup_low"], r["speedup_high"], r["noise_floor"]))
    failed = [r["name"] for r in kept if r["cache"] == mode and r["status"] == "failed"]
    if failed:
        print("    failed:", ", ".join(failed[:5]), "..." if len(failed) > 5 else "")
