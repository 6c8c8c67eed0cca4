# SPDX-License-Identifier: MIT OR Unlicense
"""Recomputes times, intervals and speedups of a --procs run from process_ms: several_processes.py FILE PROCESSES

FILE: the records of tests/cli/several_processes.c with scripted times, where all samples of a process are equal.
The formulas are those of Smyth (2004), with the t quantile from its integral."""
import json
import math
import sys

LAP = 16


def psi(x, order):
    """Returns digamma(x) if order is 0, trigamma(x) if order is 1."""
    total = 0.0
    while x < 40:
        total += -1 / x if order == 0 else 1 / x**2
        x += 1
    if order == 0:
        return total + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)
    return total + 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5)


def bisect(f, low, high):
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) > 0 else (low, middle)
    return (low + high) / 2


def quantile(p, df):
    """Returns the quantile of Student's t distribution. By Simpson's rule over the angle, with t = sqrt(df)
    tan(angle)."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)

    def above(t):
        n, end = 200, math.atan(t / math.sqrt(df))
        values = [math.cos(i * end / n) ** (df - 1) for i in range(n + 1)]
        part = values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2])
        return p - 0.5 - scale * part * end / n / 3

    return bisect(above, 0, 1000)


def weight(a, b):
    octaves = math.log2(a / b)
    return math.exp(-octaves * octaves / 2) if abs(octaves) < 5 else 0.0


def pooled(rows):
    """Returns the mean, the pooled standard deviation and the degrees of freedom of each row. A row is
    (one logarithm for each process, time of the case)."""
    own = []
    for values, time in rows:
        d, mean = len(values) - 1, sum(values) / len(values)
        variance = sum((v - mean) ** 2 for v in values) / d
        log = math.log(variance) - psi(d / 2, 0) + math.log(d / 2) if variance > 0 else None
        own.append((mean, variance, d, log, time))
    pairs = [(a, b, weight(a[4], b[4])) for i, a in enumerate(own) for b in own[:i] if a[3] is not None and b[3] is not None]
    weights = sum(w for _, _, w in pairs)
    excess = sum(w / 2 * ((a[3] - b[3]) ** 2 - psi(a[2] / 2, 1) - psi(b[2] / 2, 1)) for a, b, w in pairs)
    excess = excess / weights if weights > 0 else 0.0
    d0 = 2 * bisect(lambda x: psi(x, 1) - excess, 0.05, 1e6)
    shift = psi(d0 / 2, 0) - math.log(d0 / 2)
    out = []
    for i, (mean, variance, d, _, time) in enumerate(own):
        like = [(weight(time, o[4]), o) for j, o in enumerate(own) if j != i and o[3] is not None]
        known = sum(w * o[2] for w, o in like)
        if known > 1e-6:
            prior = math.exp(sum(w * o[3] for w, o in like) / sum(w for w, _ in like) + shift)
            p = 1 / (1 / min(d0, d) + 1 / known)
            variance, d = max(variance, (d * variance + p * prior) / (d + p)), d + p
        out.append((mean, math.sqrt(variance), d))
    return out


wrong = 0


def check(name, key, got, want):
    global wrong
    if got is None or abs(got - want) > 1e-6 * abs(want):
        wrong += 1
        print(f"{name}: {key} is {got}, not {want}")


def laps(records):
    """Splits the records into batches of at least 16 cases. A batch consists of whole groups, whose cases differ only
    in the implementation."""
    out, lap, last = [], [], None
    for r in records:
        group = (r["operation"], r["direction"], json.dumps(r["params"], sort_keys=True))
        if group != last and len(lap) >= LAP and len(records) - sum(map(len, out)) >= 2 * LAP:
            out.append(lap)
            lap = []
        lap.append((group, r))
        last = group
    return out + [lap]


def main():
    records, n = json.load(open(sys.argv[1])), int(sys.argv[2])
    for lap in laps(records):
        times, ratios, groups = [], [], {}
        for group, r in lap:
            if r["status"] != "ok" or r["processes"] != n or len(r["process_ms"]) != n:
                sys.exit(f"{r['name']}: {r['status']}, {r['processes']} processes")
            groups.setdefault(group, []).append(r)
            logs = [math.log(t) for t in r["process_ms"]]
            times.append((logs, math.exp(sum(logs) / n)))
        compared = []
        for rivals in groups.values():
            fastest = min(rivals, key=lambda r: r["time_ms"])
            pairs = [(rivals[0], r) for r in rivals[1:]]
            for r in rivals[1:]:
                if fastest is not rivals[0] and r is not fastest:
                    pairs.append((r, fastest))
            for a, b in pairs:
                logs = [math.log(x / y) for x, y in zip(a["process_ms"], b["process_ms"])]
                ratios.append((logs, min(a["time_ms"], b["time_ms"])))
                compared.append((a, b, len(rivals), a is rivals[0]))
        for (_, r), (mean, sd, df) in zip(lap, pooled(times)):
            reach = quantile(0.975, df) * sd * math.sqrt(1 / n + math.pi / 30)
            check(r["name"], "time_ms", r["time_ms"], math.exp(mean))
            check(r["name"], "time_ms_ci_low", r["time_ms_ci_low"], math.exp(mean - reach))
            check(r["name"], "time_ms_ci_high", r["time_ms_ci_high"], math.exp(mean + reach))
            check(r["name"], "precision", r["precision"], math.sinh(reach))
        if not compared:
            continue
        for (_, r, arms, printed), (mean, sd, df) in zip(compared, pooled(ratios)):
            if not printed:
                continue
            reach = quantile(1 - 0.025 / (arms - 1), df) * sd * math.sqrt(1 / n)
            check(r["name"], "speedup", r["speedup"], math.exp(mean))
            check(r["name"], "speedup_low", r["speedup_low"], math.exp(mean - reach))
            check(r["name"], "speedup_high", r["speedup_high"], math.exp(mean + reach))
    print(f"{len(records)} records, {wrong} numbers differ")
    sys.exit(wrong > 0)


main()
