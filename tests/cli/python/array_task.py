# SPDX-License-Identifier: MIT OR Unlicense
"""A task for the judge over numpy's arrays, and one that cannot tell right from wrong."""

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
