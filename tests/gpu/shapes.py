# SPDX-License-Identifier: MIT OR Unlicense
"""Compares times with known durations, for launch configurations to which no constant was fitted: shapes.py
PROGRAM [OPTION...] [-- ARGUMENT...]

Runs the compiled tests/gpu/shapes.cu cold and hot, with the default timer and with --timer cupti, and compares the
medians over processes. Each process has another placement of its buffers; the n-th processes of both timers have
equal placements. Timed blocks with one kernel are compared with CUPTI's durations. Tracing slows down timed blocks
with several kernels, and kernels with more thread blocks than are resident at once. A timed block that tracing
slows down is compared with timestamps that its kernels write in a run without tracing. Timestamps do not cover the
start and the end of a kernel; the time that is missing (the "edge") is added to the timestamps. The edge is
CUPTI's duration of one traced kernel minus the timestamps of the same launches.

    --processes N    processes of each of the four kinds; 3
    --keep FOLDER    keeps the records there, and reuses existing ones
    --json FILE      writes the medians, and those of each process, in us
    ARGUMENT         passed to PROGRAM; --max-time 0.3s by default

Limit: nine of ten differences are at most max(0.15 us, 1 %), and all are at most 2.5 times max(0.15 us, 1 %). The
exit code is 1 if the limit is exceeded."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

SINGLES_AT_LEAST = 40  # minimum number of single kernels compared, cold and hot


def usage():
    p = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    p.add_argument("program")
    p.add_argument("--processes", type=int, default=3)
    p.add_argument("--keep")
    p.add_argument("--json")
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    options = p.parse_args(own)
    options.arguments = rest or ["--max-time", "0.3s"]
    return options


def run(options, path, way, timer, place):
    command = [options.program, f"--{way}", *timer, *options.arguments, "--no-progress", "--json", path]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SHAPES_PLACE": str(place)})
    if "libcupti.so is not found" in done.stdout + done.stderr:
        sys.exit("libcupti.so is not found; LD_LIBRARY_PATH can name its folder")
    if not os.path.exists(path):
        sys.exit(f"{options.program} left no record (exit code {done.returncode}): {done.stderr.strip()}")


def collect(options, folder):
    """Returns a dict from the kind of run ("cold", "cupti_hot", ...) to a dict from the case name to a list with
    one tuple per process: time in us, timestamps in us, flag."""
    kinds = {}
    # runs one process of each kind in turn, so that slow drift affects all kinds equally
    for i in range(options.processes):
        for way in ("cold", "hot"):
            for kind, timer in ((way, []), (f"cupti_{way}", ["--timer", "cupti"])):
                path = os.path.join(folder, f"{kind}.{i + 1}.json")
                if not os.path.exists(path):
                    run(options, path, way, timer, i)
                for r in json.load(open(path)):
                    stamps = re.findall(r"stamps ([0-9.]+) ns", r["message"] or "")
                    us = None if r["time_ms"] is None else 1000 * r["time_ms"]
                    word = f"{r['status']} {r['flags']} {r['message'] or ''}"
                    row = (us, float(stamps[-1]) / 1000 if stamps else None, word)
                    kinds.setdefault(kind, {}).setdefault(short(r["name"]), []).append(row)
    return kinds


def short(name):
    return name.replace("/impl=one", "").replace("/impl=default", "")


def median(rows, column):
    values = [row[column] for row in rows or [(None, None, "")]]
    return None if None in values else statistics.median(values)


def edge_of(name, traced):
    """Returns CUPTI's duration minus the timestamps of the same launches, for the case NAME with a single kernel."""
    alone = re.sub(r"kernels=\d+", "kernels=1", name)
    rows = [r for r in traced.get(alone, []) if r[0] is not None and r[1] is not None]
    return statistics.median(r[0] - r[1] for r in rows) if rows else None


def compare(kinds, way):
    mine, traced = kinds[way], kinds[f"cupti_{way}"]
    for name, rows in mine.items():
        kernels = re.search(r"kernels=(\d+)", name)
        several = bool(kernels) and int(kernels[1]) > 1
        cupti, time, stamps = median(traced.get(name), 0), median(rows, 0), median(rows, 1)
        edge, beyond = edge_of(name, traced), median([(None if None in r[:2] else r[0] - r[1],) for r in rows], 0)
        stamped = None if beyond is None or edge is None else time - (beyond - edge)
        yield {
            "name": name,
            "way": way,
            "several": several,
            "cupti_us": cupti,
            "stamps_us": stamps,
            "stamps_traced_us": median(traced.get(name), 1),
            "edge_us": edge,
            "truth_us": stamped if several or stamped is not None else cupti,
            "slowed_us": None if several or stamped is None or cupti is None else cupti - stamped,
            "time_us": time,
            "time_us_each": [r[0] for r in rows],
            "stamps_us_each": [r[1] for r in rows],
            "cupti_us_each": [r[0] for r in traced.get(name, [])],
            "word": next((r[2] for r in rows + traced.get(name, []) if r[0] is None), ""),
        }


def judged(row):
    known = row["truth_us"] is not None and row["time_us"] is not None
    row["error_us"] = row["time_us"] - row["truth_us"] if known else None
    row["units"] = abs(row["error_us"]) / max(0.15, 0.01 * row["truth_us"]) if known else float("inf")
    return row


def number(value, form="9.3f"):
    return f"{'-':>{form.split('.')[0].strip('+')}}" if value is None else f"{value:{form}}"


def table(rows, what):
    print(f"{what:36}      {'truth':>9} {'kbench':>9} {'error':>8} units "
          f"{'stamps':>9} {'edge':>7} {'CUPTI':>9} {'slowed':>7}")
    for r in sorted(rows, key=lambda r: -r["units"]):
        line = f"{r['name']:36} {r['way']:4} {number(r['truth_us'])} {number(r['time_us'])} "
        line += f"{number(r['error_us'], '+8.3f')} {r['units']:5.2f} {number(r['stamps_us'])} "
        line += f"{number(r['edge_us'], '+7.3f')} {number(r['cupti_us'])} {number(r['slowed_us'], '+7.3f')}"
        print(line + (f"  {r['word'][:80]}" if r["error_us"] is None else ""))


def summary(rows, what):
    n, within = len(rows), sum(r["units"] <= 1 for r in rows)
    beyond = sum(r["units"] > 2.5 for r in rows)
    worst = max((r["units"] for r in rows), default=float("inf"))
    print(f"{what}: {within} of {n} within max(0.15 us, 1 %), {n - beyond} within 2.5 times "
          f"this limit; worst {worst:.2f} times the limit")
    return n > 0 and within >= 0.9 * n and beyond == 0


def main():
    options = usage()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        kinds = collect(options, folder)
    rows = [judged(r) for way in ("cold", "hot") for r in compare(kinds, way) if not r["word"].startswith("skipped")]
    singles, bodies = [r for r in rows if not r["several"]], [r for r in rows if r["several"]]
    table(singles, "kernel")
    print()
    table(bodies, "block of several kernels")
    print("truth: the timestamps of untraced runs plus the edge, or CUPTI's duration if a case has no timestamps")
    print("error: kbench minus truth, median over processes; slowed: time that tracing added to the kernel\n")
    for what, of in (("kernels", singles), ("blocks of several kernels", bodies)):
        for way in ("cold", "hot"):
            summary([r for r in of if r["way"] == way], f"{what}, {way}")
    good = [summary(singles, "kernels"), summary(bodies, "blocks of several kernels")]
    if options.json:
        with open(options.json, "w") as f:
            json.dump([{k: v for k, v in r.items() if v != float("inf")} for r in rows], f, indent=1)
    few = min(sum(r["way"] == way for r in singles) for way in ("cold", "hot")) < SINGLES_AT_LEAST
    if few:
        print(f"fewer than {SINGLES_AT_LEAST} kernels were compared")
    sys.exit(few or not all(good))


main()
