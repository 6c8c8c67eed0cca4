# SPDX-License-Identifier: MIT OR Unlicense
"""Tasks for the judge with lists: y = a x + sum(x), a matrix product, and others."""


def reference(x, a):
    total = 0.0
    for v in x:
        total += v
    return [v * w + total for v, w in zip(x, a)]


inputs = ([0.5, -1.25, 0.75, 2.0, -0.5] * 20, [1.5, 0.25, -1.0, 0.125] * 25)


def product(a, b):
    columns = list(zip(*b))
    return [[sum(v * w for v, w in zip(row, column)) for column in columns] for row in a]


matrices = tuple([[((7 * i + 3 * j + k) % 11 - 5) / 4 for j in range(24)] for i in range(24)] for k in range(2))


def in_place(x, a):
    x[:] = reference(x, a)


def length(x, y):
    return (x * x + y * y) ** 0.5


def pairs(random):
    return random.uniform(-1, 1), random.uniform(-1, 1)
