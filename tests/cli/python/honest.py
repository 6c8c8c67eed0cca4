# SPDX-License-Identifier: MIT OR Unlicense
"""Correct functions with unusual but honest behaviour; the judge must accept each."""

import threading

from task import reference

plans, workspace = {}, []


def the_same(x, a):
    return reference(x, a)


def another_order(x, a):
    total = sum(reversed(x))
    return [w * v + total for v, w in zip(x, a)]


def keeps_plans(x, a):
    plan = plans.setdefault(len(x), range(len(x)))  # caches a range for each size, but no results
    total = sum(x)
    return [x[i] * a[i] + total for i in plan]


def reuses_workspace(x, a):
    workspace[:] = x
    total = sum(workspace)
    return [v * w + total for v, w in zip(workspace, a)]


def joined_threads(x, a):
    total = []
    helper = threading.Thread(target=lambda: total.append(sum(x)))
    helper.start()
    products = [v * w for v, w in zip(x, a)]
    helper.join()
    return [p + total[0] for p in products]


def noisy(x, a):
    import decimal  # imports a module in its first call, and prints text

    print("total", decimal.Decimal(len(x)))
    return reference(x, a)


def refuses_odd_sizes(x, a):
    if len(x) % 2:
        raise ValueError("even sizes alone")
    return reference(x, a)


# --- for other tasks ---


def fills(x, a):
    x[:] = reference(x, a)


def hypot(x, y):
    return abs(complex(x, y))


def negative(x, y):
    return -hypot(x, y)
