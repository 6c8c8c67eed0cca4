# SPDX-License-Identifier: MIT OR Unlicense
"""Compares the output of --csv, --gbench and --go with the records: export_formats.py RECORDS.json CSV GBENCH.json
GO"""
import csv
import io
import json
import re
import statistics
import sys

LISTS = {"params", "counters", "counter_units", "environment", "samples_ms", "process_ms"}


def bad(*words):
    sys.exit("formats.py: " + " ".join(str(w) for w in words))


def spelled(text):
    """Returns a text as a CSV cell: one line, no escape sequences, not a formula."""
    text = re.sub(r"[\t-\r]", " ", text)
    text = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda m: "\\x%02x" % ord(m[0]), text)
    return re.sub(r"^(?= *[-+=@])", "'", text)


def check_csv(records, path):
    with open(path, newline="", encoding="utf-8") as f:
        text = f.read()
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    head, rows = rows[0], rows[1:]
    inside = {}
    for key, before in ("params", "params."), ("counters", "counter:"), ("environment", "environment."):
        for r in records:
            inside.update({before + name: (key, name) for name in r[key]})
    wanted = [k for k in records[0] if k not in LISTS] + list(inside)
    if head != wanted:
        bad("CSV: the heading is", head, "not", wanted)
    if len(set(head)) != len(head) or len(rows) != len(records):
        bad("CSV:", len(rows), "rows of", len(records), "records")
    for row, r in zip(rows, records):
        if len(row) != len(head):
            bad("CSV: a row of", len(row), "cells under", len(head))
        for name, cell in zip(head, row):
            value = r[inside[name][0]].get(inside[name][1]) if name in inside else r[name]
            if isinstance(value, bool):
                same = cell == ("true" if value else "false")
            elif isinstance(value, int):
                same = cell == str(value)
            elif isinstance(value, float):
                same = cell != "" and float(cell) == value
            elif isinstance(value, list):
                same = cell.split() == value
            else:
                same = cell == spelled(value or "")
            if not same:
                bad("CSV:", r["name"], name, "is", repr(cell), "not", repr(value))


def check_gbench(records, path):
    def refuse(word):
        bad("gbench: no JSON:", word)
    with open(path, encoding="utf-8") as f:
        whole = json.load(f, parse_constant=refuse)
    context = whole["context"]
    if context["json_schema_version"] != 1 or context["caches"] != [] or context["library_build_type"] not in ("release", "debug"):
        bad("gbench: context is", context)
    rows, places = {}, set()
    for b in whole["benchmarks"]:
        if b["time_unit"] != "ns" or b["run_type"] not in ("iteration", "aggregate") or b["real_time"] != b["cpu_time"]:
            bad("gbench:", b)
        rows.setdefault(b["run_name"], []).append(b)
        if b["run_type"] == "iteration":
            places.add((b["family_index"], b["per_family_instance_index"], b["repetition_index"]))
    timed = [r for r in records if r["status"] == "ok"]
    if list(rows) != [r["name"] for r in timed]:
        bad("gbench: names are", list(rows))
    for status, key in ("failed", "failed"), ("skipped", "skipped"):
        said = [x.split(": ")[0] for x in context.get(key, [])]
        if said != [r["name"] for r in records if r["status"] == status]:
            bad("gbench: context says", key, said)
    count = max(1, min((len(r["process_ms"] or []) for r in timed), default=1))
    runs = 0
    for r in timed:
        of = [b for b in rows[r["name"]] if b["run_type"] == "iteration"]
        runs += len(of)
        times = [b["real_time"] for b in of]
        if len(of) != count or any(b["repetitions"] != count for b in of):
            bad("gbench:", r["name"], "has", len(of), "repetitions, not", count)
        for b, ms in zip(of, r["process_ms"] if count > 1 else [r["time_ms"]]):
            want = 1e6 * ms
            if abs(b["real_time"] - want) > 1e-9 * want:
                bad("gbench:", r["name"], "is", b["real_time"], "not", want)
            if r["bytes"] and abs(b["bytes_per_second"] * b["real_time"] * 1e-9 - r["bytes"]) > 1e-6 * r["bytes"]:
                bad("gbench:", r["name"], "bytes_per_second is", b["bytes_per_second"])
        for b in rows[r["name"]]:
            if b["run_type"] == "aggregate":
                want = {"mean": statistics.mean, "median": statistics.median, "stddev": statistics.stdev,
                        "cv": lambda x: statistics.stdev(x) / statistics.mean(x)}[b["aggregate_name"]](times)
                if abs(b["real_time"] - want) > 1e-9 * abs(want) or b["name"] != b["run_name"] + "_" + b["aggregate_name"]:
                    bad("gbench:", b)
    if len(places) != runs:
        bad("gbench:", runs, "runs in", len(places), "places")


def go_name(name):
    return "Benchmark" + re.sub(r"-(\d+)$", r"_\1", re.sub(r"[\x00-\x20\x7f]", "_", name))


def check_go(records, path):
    seen = {}
    with open(path, encoding="utf-8") as f:
        for line in f.read().rstrip("\n").split("\n"):
            if not line.startswith("Benchmark"):
                if not re.fullmatch(r"[a-z][^ A-Z]*: .*|Unit \S+( [a-z]+=[a-z]+)+|--- FAIL: Benchmark\S+", line):
                    bad("go: the line", line)
                continue
            words = line.split()
            if not re.fullmatch(r"[1-9]\d*", words[1]) or len(words) % 2 or re.search(r"-\d+$", words[0]):
                bad("go: the line", line)
            for value in words[2::2]:
                if not re.fullmatch(r"\d+(\.\d+)?", value):
                    bad("go: the value", value, "in", line)
            if words[3] != "ns/op":
                bad("go: ns/op does not come first:", line)
            seen.setdefault(words[0], []).append(float(words[2]))
    wanted = [go_name(r["name"]) for r in records if r["status"] == "ok"]
    if sorted(seen) != sorted(wanted):
        bad("go: names are", sorted(seen))
    for r in records:
        if r["status"] == "ok" and abs(statistics.median(seen[go_name(r["name"])]) / (1e6 * r["time_ms"]) - 1) > 0.5:
            bad("go:", r["name"], seen[go_name(r["name"])], r["time_ms"])


with open(sys.argv[1], encoding="utf-8") as f:
    records = json.load(f)
check_csv(records, sys.argv[2])
check_gbench(records, sys.argv[3])
check_go(records, sys.argv[4])
