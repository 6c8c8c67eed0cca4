# SPDX-License-Identifier: MIT OR Unlicense
"""Python functions as kbench benchmarks: compares two ways to sum a list.

python3 examples/python/example.py --html sums.html         --help lists the options
"""

import math

import kbench


def numbers(seed, n):
    return [float((seed * 7919 + i * 104729) % 1000003) / 1000003 for i in range(n)]


@kbench.bench(
    op="total", impl="sum", n=[1000, 100000]
)  # the first implementation of an operation is the baseline
def with_sum(kb, n):
    x = numbers(kb.seed, n)  # untimed
    kb.time(sum, x, host=True)  # the timed function: sum(x)
    kb.check(None, math.fsum(x))  # its expected output
    kb.bytes(8 * n)


@kbench.bench(op="total", impl="fsum", n=[1000, 100000])
def with_fsum(kb, n):
    x = numbers(kb.seed, n)
    kb.time(math.fsum, x, host=True)
    kb.check(None, math.fsum(x))
    kb.bytes(8 * n)


if __name__ == "__main__":
    kbench.main()
