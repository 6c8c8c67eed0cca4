# SPDX-License-Identifier: MIT OR Unlicense
"""A task for the judge: y = a x + the sum of x, over lists."""


def reference(x, a):
    total = 0.0
    for v in x:
        total += v
    return [v * w + total for v, w in zip(x, a)]


inputs = ([0.5, -1.25, 0.75, 2.0, -0.5] * 20, [1.5, 0.25, -1.0, 0.125] * 25)


def in_place(x, a):
    x[:] = reference(x, a)


def length(x, y):
    return (x * x + y * y) ** 0.5


def pairs(random):
    return random.uniform(-1, 1), random.uniform(-1, 1)
