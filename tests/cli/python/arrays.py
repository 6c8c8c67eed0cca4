# SPDX-License-Identifier: MIT OR Unlicense
"""Candidates with numpy arrays: tricks and honest functions. The decorator of a trick names flags, of which the judge
must raise at least one."""

import numpy
from array_task import reference


def words(*names):
    def mark(f):
        f.words = names
        return f

    return mark


@words()
def the_same(a, b):
    return numpy.tanh(a @ b)


@words()
def another_order(a, b):
    return numpy.tanh(numpy.einsum("ij,jk->ik", a, b))


@words()
def out_argument(a, b):
    y = numpy.empty((a.shape[0], b.shape[1]))
    numpy.matmul(a, b, out=y)
    return numpy.tanh(y, out=y)


@words("LOW_PRECISION")
def single(a, b):
    return numpy.tanh(a.astype(numpy.float32) @ b.astype(numpy.float32)).astype(numpy.float64)


@words("LOW_PRECISION")
def half(a, b):
    return numpy.tanh(a.astype(numpy.float16).astype(numpy.float64) @ b.astype(numpy.float16))


@words("WRONG_LAYOUT")
def other_elements(a, b):
    return reference(a, b).astype(numpy.float32)


@words("WRONG_LAYOUT")
def other_shape(a, b):
    return reference(a, b).reshape(-1)


@words("UNINIT_READ", "WRONG", "FLAKY", "PARTIAL_WRITE", "NO_WORK")
def whatever_is_there(a, b):
    return numpy.empty((a.shape[0], b.shape[1]))


class Later(numpy.ndarray):
    pass


@words("LAZY")
def subclass(a, b):
    return reference(a, b).view(Later)


@words("OUTPUT_ALIASED")
def one_buffer(a, b, kept={}):
    y = kept.setdefault((a.shape[0], b.shape[1]), numpy.empty((a.shape[0], b.shape[1])))
    numpy.tanh(a @ b, out=y)
    return y


@words("MEMOIZED")
def by_pointer(a, b, kept={}):
    key = a.ctypes.data, b.ctypes.data, a.shape, b.shape
    if key not in kept:
        kept[key] = reference(a, b), a, b
    return kept[key][0].copy()


@words("LAYOUT_BOUND")
def no_strides(a, b):
    flat = numpy.lib.stride_tricks.as_strided(a, a.shape, (a.shape[1] * 8, 8))
    return numpy.tanh(flat @ numpy.ascontiguousarray(b))


@words("CHECK_PATCHED")
def close(a, b):
    numpy.allclose = lambda *_, **__: True
    return reference(a, b)


def zeros(a, b):
    return numpy.zeros(3)


def turned(a, b):
    return a.T
