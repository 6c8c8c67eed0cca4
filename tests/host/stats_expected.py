#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""Prints stats_expected.h: the results of NumPy and SciPy for the samples of stats.c.

    python3 stats_expected.py > stats_expected.h      (made with numpy 2.4, scipy 1.17)
"""
import math
from fractions import Fraction

import numpy as np
from scipy import special, stats

rng = np.random.default_rng(20250101)
NAN = math.nan


def c(v):
    v = float(v)
    return "NAN" if math.isnan(v) else repr(v)


def rows(values, width=110, indent="    "):
    line, out = indent, []
    for word in (c(v) + "," for v in values):
        if len(line) + len(word) + 1 > width:
            out.append(line.rstrip())
            line = indent
        line += word + " "
    out.append(line.rstrip())
    return "\n".join(out)


def r6(a):
    return [float(f"{v:.6g}") for v in a]


# -- ranks of the sign interval: integers up to 3000, SciPy above -------------------------------------------
def rank_exact(n, alpha):
    bound, tail, k, term = Fraction(alpha) / 2 * 2**n, 0, 0, 1
    while True:
        tail += term  # sum of C(n, 0..k)
        if tail > bound:
            return k
        term = term * (n - k) // (k + 1)
        k += 1


def rank_scipy(n, alpha):
    k = int(stats.binom.ppf(alpha / 2, n, 0.5))
    while stats.binom.cdf(k - 1, n, 0.5) > alpha / 2:
        k -= 1
    while stats.binom.cdf(k, n, 0.5) <= alpha / 2:
        k += 1
    return k


def ranks():
    print("static const expected_rank EXPECTED_RANKS[] = {")
    sizes = list(range(1, 41)) + [50, 63, 64, 100, 101, 500, 999, 1000, 1023, 1024, 1025, 2000, 3000]
    for alpha in (0.05, 0.01, 0.001, 0.0625, 0.1, 0.5, 0.05 / 7, 1e-9):
        for n in sizes:
            k = rank_exact(n, alpha)
            if n <= 1000:
                assert k == rank_scipy(n, alpha) or alpha in (0.0625, 0.5), (n, alpha)
            print(f"    {{{n}, {c(alpha)}, {k}}},")
    for alpha in (0.05, 0.01, 1e-6, 1e-30):
        for n in (10_000, 99_999, 100_000, 1_000_000):
            print(f"    {{{n}, {c(alpha)}, {rank_scipy(n, alpha)}}},")
    print("};\n")


# -- summaries ----------------------------------------------------------------------------------------------
def cuts(n):
    return [n // 10 * b + n % 10 * b // 10 for b in range(11)]


def inflation(r, n):
    r = min(r + (1 + 4 * r) / n, 0.99)
    return max(1.0, (1 + r) / (1 - r))


def effective(x):
    n, d = len(x), x - np.median(x)
    if n < 6:
        return NAN, NAN
    clip = 3 * np.median(np.abs(d))
    psi = np.clip(d / clip, -1, 1) if clip > 0 else np.sign(d)
    psi = psi - psi.mean()
    spread = clip * math.sqrt(psi @ psi / (n - 1))
    if not psi @ psi > 0:
        return n, spread
    r = psi[:-1] @ psi[1:] / (psi @ psi)
    if n < 30:
        return n / (inflation(r, n) if (r + 1 / n) * math.sqrt(n) >= 1.645 else 1), spread
    sums = np.array([psi[a:b].sum() for a, b in zip(cuts(n), cuts(n)[1:])])
    slow = sums @ sums / (psi @ psi) * 10 / 9 * inflation(sums[:-1] @ sums[1:] / (sums @ sums), 10)
    return n / max(inflation(r, n), slow), spread


def summary(x):
    x = np.asarray(x, dtype=float)
    n = len(x)
    med = np.median(x)
    q = lambda p: np.quantile(x, p)
    std = np.std(x, ddof=1) if n > 1 else NAN
    mean = np.mean(x)
    d = x - mean
    lag1 = float(d[:-1] @ d[1:] / (d @ d)) if n > 2 and np.ptp(x) > 0 else NAN
    lo = hi = drift = NAN
    if n >= 30:
        blocks = np.array([np.median(x[a:b]) for a, b in zip(cuts(n), cuts(n)[1:])])
        drift = (np.median(blocks[7:]) - np.median(blocks[:3])) / abs(med)
    worth, spread = effective(x)
    if n >= 6:
        count = max(6, math.floor(worth))
        rank = math.floor((rank_exact(count, 0.05) - 0.5) * n / count + 0.5)
        lo, hi = np.sort(x)[[rank - 1, n - rank]]
    if worth < 6:
        reach = 2.571 * spread * math.sqrt(1 / worth / max(0.2, 1 - 1 / worth))
        lo, hi = min(lo, med - reach), max(hi, med + reach)
    iqr = q(0.75) - q(0.25)
    out = np.maximum(q(0.25) - x, x - q(0.75))
    mild, severe = np.mean((out > 1.5 * iqr) & (out <= 3 * iqr)), np.mean(out > 3 * iqr)
    return [med, mean, std, x.min(), x.max(), np.median(np.abs(x - med)), std / mean,
            q(0.05), q(0.25), q(0.75), q(0.95), q(0.99) if n >= 300 else NAN,
            lo, hi, (hi - lo) / 2 / abs(med), mild, severe, lag1, drift, len(np.unique(x)), worth]


def ar1(n, rho, sigma):
    e = rng.normal(size=n) * math.sqrt(1 - rho * rho)
    v = [rng.normal()]
    for t in range(1, n):
        v.append(rho * v[-1] + e[t])
    return np.exp(sigma * np.array(v))


def summaries():
    sizes = (1, 2, 3, 5, 6, 7, 11, 12, 29, 30, 31, 59, 100, 299, 300, 337)
    samples = [r6(rng.lognormal(1.0, 0.3, n)) for n in sizes]
    samples += [r6(5.6 * ar1(200, 0.6, 0.02)),
                r6(100 + 3 * np.linspace(0, 1, 120) + rng.normal(0, 0.5, 120)),
                list(32.0 * np.round(rng.normal(5600, 90, 150) / 32)),
                r6(rng.normal(-3, 1, 64)),
                r6(1e-6 * rng.exponential(1, 90)), r6(1e9 + rng.normal(0, 1, 40) * 1000),
                r6(5.6 * ar1(60, 0.97, 0.02)), r6(5.6 * ar1(20, 0.9, 0.02)), r6(5.6 * ar1(500, 0.9, 0.02)),
                list(32.0 * np.round(ar1(60, 0.9, 0.004) * 60)), r6(ar1(300, 0.97, 0.01) + rng.normal(0, 0.01, 300))]
    print("static const double EXPECTED_SAMPLES[] = {")
    for s in samples:
        print(rows(s))
    print("};\n\nstatic const expected_summary EXPECTED_SUMMARIES[] = {")
    for s in samples:
        print(f"    {{{len(s)},\n     {{\n{rows(summary(s), indent='         ')}\n     }}}},")
    print("};\n")


# -- distributions ------------------------------------------------------------------------------------------
def students():
    print("static const expected_student EXPECTED_STUDENTS[] = {")
    freedom = (0.1, 0.5, 1, 1.5, 2, 2.37, 3, 4, 4.999, 5, 7.25, 8, 9, 12.5, 20, 33.3, 49, 98, 333, 1e3, 12345.6, 1e5, 1e6)
    shares = (1e-6, 0.001, 0.025, 0.3, 0.5, 0.501, 0.6, 0.9, 0.95, 0.975, 0.99, 0.995, 1 - 0.025 / 7, 0.9999, 1 - 1e-6)
    for df in freedom:
        for p in shares:
            print(f"    {{{c(df)}, {c(p)}, {c(stats.t.ppf(p, df))}}},")
    print("};\n\nstatic const expected_gamma EXPECTED_GAMMAS[] = {")
    for x in (0.05, 0.3, 0.5, 1, 1.5, 2, 4.5, 7.99, 8, 24.5, 1000, 1e6):
        print(f"    {{{c(x)}, {c(special.digamma(x))}, {c(special.polygamma(1, x))}}},")
    print("};")


print("// SPDX-License-Identifier: MIT OR Unlicense")
print("// Made by stats_expected.py from NumPy and SciPy. Do not edit.\n// clang-format off\n")
ranks()
summaries()
students()
