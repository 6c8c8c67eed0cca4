# SPDX-License-Identifier: MIT OR Unlicense
"""Tasks for the judge with numpy arrays: a valid one, and one that accepts wrong results."""

import numpy

_random = numpy.random.default_rng(1)
inputs = (_random.standard_normal((24, 16)), _random.standard_normal((16, 8)))


def reference(a, b):
    return numpy.tanh(a @ b)


def own(random):
    draw = numpy.random.default_rng(random.getrandbits(60)).standard_normal
    return draw((24, 16)), draw((16, 8))


def no_task(a, b):
    return numpy.tanh(a @ b) * 1e-12


def turned(a, b):
    return a.T
