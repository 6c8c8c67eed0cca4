# SPDX-License-Identifier: MIT OR Unlicense
"""Counts the share of each flag in record files. A flag that marks many cases is ignored by the people who read
the table.

    python3 tests/flags.py FILE...    FILE: records of --json or --jsonl. Prints each flag and its share of the times. The
                                      exit code is 1 if FLOOR, OUTLIERS, UNSETTLED or AUTOCORR has more than 5 %.
"""
import json
import sys

BARRED = ("FLOOR", "OUTLIERS", "UNSETTLED", "AUTOCORR")
BAR = 0.05


def records(path):
    with open(path) as f:
        text = f.read()
    try:
        found = json.loads(text)
    except ValueError:  # one record per line
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(found, dict):  # a file that holds other data besides the records
        found = found["kbench"] if isinstance(found.get("kbench"), list) else [found]
    return [r for r in found if r.get("status", "ok") == "ok" and r.get("time_ms") is not None]


def main(paths):
    times, beside = 0, dict.fromkeys(BARRED, 0)
    for path in paths:
        for r in records(path):
            times += 1
            for flag in r.get("flags") or []:
                beside[flag] = beside.get(flag, 0) + 1
    if not times:
        print("no times in %s" % " ".join(paths), file=sys.stderr)
        return 2
    failed = False
    print("%d times" % times)
    for flag, n in sorted(beside.items(), key=lambda item: (-item[1], item[0])):
        over = flag in BARRED and n > BAR * times
        failed |= over
        bar = "   at most 5 %" + (": FAIL" if over else "") if flag in BARRED else ""
        print("%-14s %5d  %5.1f %%%s" % (flag, n, 100.0 * n / times, bar))
    return int(failed)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
