# SPDX-License-Identifier: MIT OR Unlicense
"""Python functions as benchmarks of kbench: two ways to sum a list, compared.

python3 examples/python/example.py --html sums.html         --help lists all that it can do
"""

import math

import kbench


def numbers(seed, n):
    return [float((seed * 7919 + i * 104729) % 1000003) / 1000003 for i in range(n)]


@kbench.bench(
    op="total", impl="sum", n=[1000, 100000]
)  # the first of an operation is what the others are held against
def with_sum(kb, n):
    x = numbers(kb.seed, n)  # untimed
    kb.time(sum, x, host=True)  # what is timed
    kb.check(None, math.fsum(x))  # what it has to give
    kb.bytes(8 * n)


@kbench.bench(op="total", impl="fsum", n=[1000, 100000])
def with_fsum(kb, n):
    x = numbers(kb.seed, n)
    kb.time(math.fsum, x, host=True)
    kb.check(None, math.fsum(x))
    kb.bytes(8 * n)


if __name__ == "__main__":
    kbench.main()
