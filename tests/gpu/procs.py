# SPDX-License-Identifier: MIT OR Unlicense
"""Tests whether printed intervals contain what other processes measure: procs.py PROGRAM [OPTION...] [-- ARGUMENT...]

Runs a kbench program with --procs, and again with another seed (other buffer placements) and more processes. For
each case, the median over the processes of the second run must be in the confidence interval that the first run
printed. The medians must also be in the intervals of runs with a single process.

    --procs N        processes of the tested interval; 5
    --others N       processes of the median; 15
    --single N       runs of a single process; 2
    --modes A,B      cache modes: each is run with --A, --B; cold,hot
    --at-least N     smallest number of kernels to compare; 30
    --keep FOLDER    keeps the records there, and reuses existing ones
    ARGUMENT         passed to PROGRAM

Limits: the interval must contain the other processes' median for 90 % of the cases with --procs, and for 75 % with
a single process. If a limit is not met, the exit code is 1. For kernels that take at least 5 us, the program also
prints how many intervals have a half-width of at most 1 %."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def usage():
    p = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    p.add_argument("program")
    p.add_argument("--procs", type=int, default=5)
    p.add_argument("--others", type=int, default=15)
    p.add_argument("--single", type=int, default=2)
    p.add_argument("--modes", default="cold,hot")
    p.add_argument("--at-least", type=int, default=30)
    p.add_argument("--keep")
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    options = p.parse_args(own)
    options.arguments = rest
    return options


def records(options, folder, mode, what, seed, procs):
    """Returns a dict of the run's records with the case names as keys. Records without a time are left out."""
    path = os.path.join(folder, f"{mode or 'as_is'}.{what}.json")
    if not os.path.exists(path):
        command = [options.program, *options.arguments, "--no-progress", "--seed", str(seed), "--json", path]
        command += [f"--{mode}"] if mode else []
        command += ["--procs", str(procs)] if procs > 1 else []
        done = subprocess.run(command, capture_output=True, text=True)
        if not os.path.exists(path):
            sys.exit(f"{' '.join(command)} left no record (exit code {done.returncode}): {done.stderr.strip()}")
    found = {r["name"]: r for r in json.load(open(path))}
    for r in found.values():
        if r["time_ms"] is None:
            print(f"    {r['name']}: {r['status']} {r['flags']} {r['message']}")
    return {name: r for name, r in found.items() if r["time_ms"] is not None}


def compare(title, pairs, bar, at_least):
    """PAIRS: list of (record, median that the record's interval should contain)."""
    held, widths, missed = 0, [], []
    for r, median in pairs:
        low, high = r["time_ms_ci_low"], r["time_ms_ci_high"]
        if low is not None and low <= median <= high:
            held += 1
        else:
            missed.append((r, median))
        if r["precision"] is not None:
            widths.append((r["precision"], r["time_ms"]))
    long = [w for w, ms in widths if ms >= 5e-3]
    every = sorted(w for w, _ in widths) or [float("nan")]
    print(f"{title}: {held} of {len(pairs)} hold the others' median; half-widths {100 * statistics.median(every):.2f} % "
          f"(median), {100 * every[int(0.9 * (len(every) - 1))]:.2f} % (nine of ten), {100 * every[-1]:.2f} % (worst); "
          f"{sum(w <= 0.01 for w in long)} of {len(long)} from 5 us within 1 %")
    for r, median in missed:
        off = 100 * (median / r["time_ms"] - 1)
        width = 100 * (r["precision"] if r["precision"] is not None else float("nan"))
        print(f"    {r['name']:48} {1000 * r['time_ms']:10.3f} us +- {width:5.2f} %, the others {off:+6.2f} %")
    return len(pairs) >= at_least and held >= bar * len(pairs)


def main():
    options, good = usage(), True
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        for mode in options.modes.split(","):
            of = f"{mode}, " if mode else ""
            mine = records(options, folder, mode, "mine", 1, options.procs)
            others = records(options, folder, mode, "others", 2, options.others)
            medians = {n: statistics.median(r["process_ms"]) for n, r in others.items()}
            pairs = [(r, medians[n]) for n, r in mine.items() if n in medians]
            good &= compare(f"{of}--procs {options.procs}", pairs, 0.9, options.at_least)
            pairs = []
            for i in range(options.single):
                single = records(options, folder, mode, f"single{i + 1}", 3 + i, 1)
                pairs += [(r, medians[n]) for n, r in single.items() if n in medians]
            good &= compare(f"{of}one process", pairs, 0.75, options.single * options.at_least)
    sys.exit(not good)


main()
