# SPDX-License-Identifier: MIT OR Unlicense
"""Tests kbench.kernels without a GPU: the kernel table, oracles against known results, checks, errors, and the tables
of a suite. kernels.py SCRATCH OPERATIONS; OPERATIONS is the output of examples/suite.cu --list-ops."""

import contextlib
import copy
import ctypes
import gc
import io
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import types
from array import array

import kbench
import kbench_kernels

scratch, listed = sys.argv[1:]
kernels = kbench.kernels
passed, failed = 0, 0


def check(what, good, said=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAIL: {what}: {said}")


def raised(fn, *args, **options):
    try:
        fn(*args, **options)
    except (kbench.Error, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def says(what, words, fn, *args, **options):
    text = raised(fn, *args, **options)
    check(what, text is not None and all(w in text for w in words), text)


def near(what, got, want, rtol=1e-12):
    flat = lambda x: list(kbench_kernels._flat(list(x) if isinstance(x, tuple) else x))  # noqa: E731
    g, w = flat(got), flat(want)
    good = len(g) == len(w) and all(abs(a - b) <= rtol * (1 + abs(b)) for a, b in zip(g, w))
    check(what, good, f"{got}, expected {want}")


class OnDevice:

    def __init__(self, *shape, typestr="<f4", strides=None, dtype=None):
        if dtype:
            self.dtype = dtype
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (4096, False),
            "strides": strides,
            "version": 3,
        }


E4M3 = {"typestr": "|V1", "dtype": "float8_e4m3fn"}


def table():
    theirs = {}
    with open(listed) as f:
        for line in f:
            name, types, implementations = line.rstrip("\n").split("  ")
            operation, *directions = name.split()
            words = [w for w in implementations.split() if w != "oracle"]
            theirs[operation] = (directions, [t for t in types.split() if t != "f64"], words)
    ours = {}
    cases = [(t, k) for t in ("f32", "f16", "bf16") for k in kernels if t in k.dtypes]
    ways = list(dict.fromkeys((k.operation, k.direction) for k in kernels))
    cases.sort(key=lambda case: ways.index((case[1].operation, case[1].direction)))
    for dtype, k in cases:
        directions, types, words = ours.setdefault(k.operation, ([], [], []))
        for into, new in ((directions, k.direction), (types, dtype), (words, k.implementation)):
            into += [n for n in [new] if n not in into]
    check("Python's kernel table and the suite's --list-ops agree", ours == theirs, f"{ours}\n{theirs}")
    check("a row", any(r["implementation"] == "onepass" and r["note"] for r in kernels.rows()))
    cluster = kernels["softmax", "fwd", "cluster"]
    check("what a row needs", (cluster.sm, cluster.exact, cluster.rung) == (90, False, 6), repr(cluster))
    check("alignment", kernels.rows()[0]["alignment"] == {"f32": 4, "f16": 2, "bf16": 2}, kernels.rows()[0])
    for o in kernels.operations():
        names = [t.name.decode() for t in o._kinds()]
        check(f"{o.name}: names of {o.signature}", names == o.inputs + o.outputs, names)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        kernels.table()
    check("table()", "softmax fwd  x[*,C] -> y[*,C]  f32 f16 bf16  naive block online" in out.getvalue())


def matrix(rows, columns, seed=1):
    r = random.Random(seed)
    return [[r.gauss(0, 1) for _ in range(columns)] for _ in range(rows)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(row) for row in zip(*a)]


def oracles():
    ask = lambda *key: kernels[key].oracle  # noqa: E731
    x = matrix(3, 5)
    soft = [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in x]
    near("softmax", ask("softmax", "fwd")(x), soft)
    dy = matrix(3, 5, 2)
    dots = [sum(a * b for a, b in zip(d, y)) for d, y in zip(dy, soft)]
    near(
        "softmax bwd",
        ask("softmax", "bwd")(dy, soft),
        [[y * (d - s) for d, y in zip(dr, yr)] for dr, yr, s in zip(dy, soft, dots)],
    )
    w, b = matrix(2, 5, 3)
    got = ask("layernorm", "fwd")(x, w, b)
    means = [sum(row) / 5 for row in x]
    rstds = [(sum((v - m) ** 2 for v in row) / 5 + 1e-5) ** -0.5 for row, m in zip(x, means)]
    near("layernorm: mean", got.mean, means)
    near("layernorm: rstd", got.rstd, rstds)
    near(
        "layernorm: y",
        got.y,
        [[(v - m) * r * f + g for v, f, g in zip(row, w, b)] for row, m, r in zip(x, means, rstds)],
    )
    got = ask("layernorm", "bwd")(dy, x, w, means, rstds)
    near("layernorm: db", got.db, [sum(c) for c in zip(*dy)])
    near(
        "rmsnorm: rstd",
        ask("rmsnorm", "fwd")(x, w).rstd,
        [(sum(v * v for v in r) / 5 + 1e-5) ** -0.5 for r in x],
    )
    flat = x[0] + x[1]
    near("relu", ask("relu", "fwd")(flat), [max(v, 0) for v in flat])
    near("gelu_erf", ask("gelu_erf", "fwd")(flat), [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in flat])
    near("silu", ask("silu", "fwd")(flat), [v / (1 + math.exp(-v)) for v in flat])
    near("triad", ask("triad", "run")(flat, flat), [4 * v for v in flat])
    near("sum", ask("sum", "run")(flat), sum(flat))
    near("mse", ask("mse", "fwd")(flat, flat[::-1]), sum((a - b) ** 2 for a, b in zip(flat, flat[::-1])) / 10)
    near("mse bwd", ask("mse", "bwd")([3.0, 1.0], [1.0, 1.0], 0.5), [1.0, 0.0])
    near("weighted_sum", ask("weighted_sum", "fwd")(x, w), [sum(a * b for a, b in zip(r, w)) for r in x])
    near("transpose", ask("transpose", "run")(x), turned(x))
    near("strided", ask("strided", "run")(flat, stride=2), flat[::2])
    near("gather", ask("gather", "run")(flat, [3, 0, 9]), [flat[3], flat[0], flat[9]])
    near("embedding", ask("embedding", "fwd")(x, [2, 0]), [x[2], x[0]])
    got = ask("embedding", "bwd")(x, [1, 0, 1], vocabulary=3)
    near("embedding bwd", got, [x[1], [a + b for a, b in zip(x[0], x[2])], [0] * 5])
    targets = [4, 0, -100]
    loss = [-math.log(soft[0][4]), -math.log(soft[1][0]), 0]
    near("cross_entropy", ask("cross_entropy", "fwd")(x, targets).loss, loss, 1e-11)
    got = ask("cross_entropy", "fwdbwd")(x, targets).dx
    near("cross_entropy fwdbwd", got[0], [p - (c == 4) for c, p in enumerate(soft[0])], 1e-11)
    p, q = matrix(3, 4, 4), matrix(4, 2, 5)
    for layout, left, right in (("nn", p, q), ("nt", p, turned(q)), ("tn", turned(p), q)):
        near(f"matmul {layout}", ask("matmul", "fwd")(left, right, layout=layout), product(p, q))
        got = ask("bmm", "fwd")([left, left], [right, right], layout=layout)
        near(f"bmm {layout}", got, [product(p, q)] * 2)
    got = ask("matmul_e4m3", "fwd")(p, turned(q), 0.5, [-4.0])
    near("matmul_e4m3", got, [[-2 * v for v in row] for row in product(p, q)])
    q, k, v = ([[matrix(3, 2, seed)]] for seed in (6, 7, 8))
    got = ask("attention", "fwd")(q, k, v, causal=True)
    near("attention: the first row sees one key", got.o[0][0][0], v[0][0][0])
    scores = [sum(a * b for a, b in zip(q[0][0][2], row)) / math.sqrt(2) for row in k[0][0]]
    near("attention: lse", got.lse[0][0][2], math.log(sum(map(math.exp, scores))))
    half = ask("dropout", "fwd")([1.0] * 1000, p=0.5, seed=3)
    check("dropout: values", set(half) == {0.0, 2.0}, sorted(set(half)))
    check("dropout: its seed", half == ask("dropout", "fwd")([1.0] * 1000, p=0.5, seed=3))
    check("dropout: another", half != ask("dropout", "fwd")([1.0] * 1000, p=0.5, seed=4))
    cube = [matrix(2, 3), matrix(2, 3, 2)]
    got = kernels["softmax", "fwd"].oracle(cube)
    near("softmax of an input with three dimensions", got[1], kernels["softmax", "fwd"].oracle(cube[1]))
    try:
        import numpy
    except ImportError:
        print("SKIP: no numpy: oracles of numpy arrays are not tested")
        return
    a = numpy.array(x, "f4")
    got = kernels["softmax", "fwd"].oracle(a)
    e = numpy.exp(a.astype("f8"))
    check("numpy", got.dtype == "f8" and numpy.allclose(got, e / e.sum(1, keepdims=True), 1e-12))
    says("numpy: not contiguous", ["not contiguous"], kernels["softmax", "fwd"].oracle, a.T)


def formulas():
    x = memoryview(array("f", range(12))).cast("B").cast("f", (3, 4))
    soft = kernels["softmax", "fwd"]
    check("bytes", soft.bytes(x) == 2 * 12 * 4, soft.bytes(x))
    check("the elements of a list count as doubles of 8 bytes", soft.bytes([[1.0] * 4]) == 2 * 4 * 8)
    mm = kernels["matmul", "fwd", "naive"]
    check("flops", mm.flops(x, x, layout="nt") == 2 * 3 * 3 * 4)
    check("no scratch", mm.scratch(x, x, layout="nt") == 0)
    small, one = OnDevice(32, 64, **E4M3), OnDevice()
    e4m3 = kernels["matmul_e4m3", "fwd", "select"]
    check("flops of e4m3", e4m3.flops(small, small, one, one) == 2 * 32 * 32 * 64)
    got = e4m3.bytes(small, small, one, one)
    check("bytes of e4m3: C in bf16", got == 2 * 32 * 64 + 2 * 32 * 32 + 8, got)
    check(
        "matmul_e4m3 with split-K uses scratch memory",
        e4m3.scratch(*[OnDevice(64, 1 << 16, **E4M3)] * 2, one, one) > 0,
    )
    check("scratch", kernels["sum", "run", "ticket"].scratch(x) > 0)


def checks():
    floats = lambda values: array("f", values)  # noqa: E731
    x = floats(random.Random(1).gauss(0, 1) for _ in range(1000))
    y = floats(max(v, 0) for v in x)
    relu = kernels["relu", "fwd", "vec"]
    check("a right result", raised(relu.check, y, x) is None, raised(relu.check, y, x))
    y[700] += 1e-3
    says("a wrong one", ["AssertionError", "element 700", "y:"], relu.check, y, x)
    says("a short one", ["(999,) of f32", "(1000,) of f32"], relu.check, y[:999], x)
    says("of another type", ["of f64"], relu.check, array("d", y), x)
    says("types without tolerances", ["f64", "f32, f16, bf16"], relu.check, y, array("d", x))
    norm = kernels["layernorm", "fwd"]
    rows = memoryview(floats(x[:40])).cast("B").cast("f", (4, 10))
    w, b = floats([1] * 10), floats([0] * 10)
    want = norm.oracle(rows, w, b)
    right = [floats(kbench_kernels._flat(part)) for part in want]
    check("several outputs", raised(norm.check, tuple(right), rows, w, b) is None)
    check("the first alone", raised(norm.check, right[0], rows, w, b) is None)
    right[2][1] *= 1.001
    says("the third of three outputs is wrong", ["rstd:"], norm.check, tuple(right), rows, w, b)
    a, b = (floats(random.Random(seed).gauss(0, 1) for _ in range(64 * 64)) for seed in (2, 3))
    square = lambda x: memoryview(x).cast("B").cast("f", (64, 64))  # noqa: E731
    right = floats(kbench_kernels._flat(kernels["matmul", "fwd"].oracle(square(a), square(b))))
    near_it = square(floats(v * (1 + 1e-3 * (-1) ** i) for i, v in enumerate(right)))
    tf32 = kernels["matmul", "fwd", "tf32"]
    said = raised(tf32.check, near_it, square(a), square(b))
    check("the kernel tf32 has larger error bounds than f32", tf32.tf32 and said is None, said)
    says(
        "a kernel without TF32 has the error bounds of f32",
        ["C:"],
        kernels["matmul", "fwd", "naive"].check,
        near_it,
        square(a),
        square(b),
    )
    many = 3 << 19  # 3 times as many elements as the check compares; the compared ranges are equally spaced
    x = floats([1.5]) * many
    y = floats([1.5]) * many
    check("a large one", raised(kernels["copy", "run"].check, y, x) is None)
    y[many - 1] = 2
    says("its last element", ["y:"], kernels["copy", "run"].check, y, x)
    y[many - 1], y[0] = 1.5, float("nan")
    says("its first", ["y:"], kernels["copy", "run"].check, y, x)


def errors():
    says(
        "operation",
        ["unknown operation 'sofmax'; nearest is 'softmax'"],
        lambda: kernels["sofmax", "fwd", "x"],
    )
    says(
        "direction", ["softmax has no direction 'bwdd': it has fwd, bwd"], lambda: kernels["softmax", "bwdd"]
    )
    says("implementation", ["nearest is 'onepass'"], lambda: kernels["softmax", "fwd", "onepas"])
    says("too few words", ["softmax needs a direction"], lambda: kernels["softmax"])
    soft = kernels["softmax", "fwd", "onepass"]
    norm = kernels["layernorm", "fwd", "warp"]
    x = OnDevice(4, 8)
    says("a host array", ["x is on the host", ".oracle(...)"], soft, [[1.0, 2.0]])
    says("how many", ["takes x[*,C] -> y[*,C]: 1 inputs, not 2"], soft, x, x)
    says("no array", ["x is a str, which is no array"], soft, "x")
    says("dtype", ["takes f32, f16, bf16, not f64"], soft, OnDevice(4, 8, typestr="<f8"))
    says(
        "an element type that other kernels support",
        ["not f32. Implementations for f32: naive"],
        kernels["matmul", "fwd", "mma"],
        x,
        OnDevice(8, 4),
    )
    says("two types", ["w is f16, but x is f32"], norm, x, OnDevice(8, typestr="<f2"), OnDevice(8))
    ce = kernels["cross_entropy", "fwd", "online"]
    says("ids", ["t is i64, and has to be i32. Convert it: t.astype('int32')"], ce, x, OnDevice(4, typestr="<i8"))
    e4m3, one = kernels["matmul_e4m3", "fwd", "tma"], OnDevice()
    bytes_ = OnDevice(16, 32, **E4M3)
    says("e4m3", ["A is f32, and has to be e4m3. Convert it: A.astype('float8_e4m3fn')"], e4m3, x, x, one, one)
    says("e4m3: K", ["K is 8 here, but 32"], e4m3, bytes_, OnDevice(16, 8, **E4M3), one, one)
    says("e4m3: a factor", ["sb is f16, and has to be f32"], e4m3, bytes_, bytes_, one, OnDevice(typestr="<f2"))
    says("e4m3: a layout", ["has no option 'layout'"], e4m3, bytes_, bytes_, one, one, layout="nn")
    says("e4m3: no GPU", ["kernels run on a GPU"], e4m3, bytes_, bytes_, one, one)
    says("shape", ["w has shape (5,)", "C is 5 here, but 8"], norm, x, OnDevice(5), OnDevice(8))
    says("dimensions", ["x has shape ()", "too few dimensions"], soft, OnDevice())
    says("K", ["K is 9 here, but 8"], kernels["matmul", "fwd", "naive"], x, OnDevice(9, 4))
    says("contiguous", ["x is not contiguous"], soft, OnDevice(4, 8, strides=(4, 16)))
    multiply = kernels["matmul", "fwd", "naive"]
    slice_of_16 = OnDevice(4, 8, strides=(64, 4))
    fit = multiply._fit([slice_of_16, OnDevice(8, 5)], {})
    check("leading dimension", [list(row)[0] for row in fit.shape.strides][:3] == [16, 0, 0])
    says("a slice", ["run on a GPU"], multiply, slice_of_16, OnDevice(8, 5))
    says("gaps in rows", ["A is not contiguous"], multiply, OnDevice(4, 8, strides=(64, 8)), OnDevice(8, 5))
    says("repeated rows", ["A is not contiguous"], multiply, OnDevice(4, 8, strides=(0, 4)), OnDevice(8, 5))
    says("option", ["dropout_fwd has no option 'q'"], kernels["dropout", "fwd", "vec"], x, q=1)
    says("no option", ["it has none"], soft, x, p=1)
    says("p", ["p=2 is not a probability"], kernels["dropout", "fwd", "vec"], x, p=2)
    says("layout", ["layout='tt' is unknown"], kernels["matmul", "fwd", "naive"], x, x, layout="tt")
    says("stride", ["not a multiple of stride=5"], kernels["strided", "run", "naive"], OnDevice(8), stride=5)
    says(
        "needed", ["needs vocabulary="], kernels["embedding", "bwd", "atomic"], x, OnDevice(4, typestr="<i4")
    )
    says("fill", ["needs out="], kernels["fill", "run", "unroll"])
    says("lists", ["of different lengths"], kernels["softmax", "fwd"].oracle, [[1.0], [1.0, 2.0]])
    says("lists: an index", ["t has to hold whole numbers"], kernels["cross_entropy", "fwd"].oracle, [[1.0, 2.0]], [0.5])
    says("no GPU", ["kernels run on a GPU", ".oracle(...)"], soft, x)
    says("no GPU for the suite", ["run on a GPU"], kernels.suite, ["softmax"])
    says("a suite's operation", ["nearest is 'softmax'"], kernels.suite, ["sofmax"])
    says("a peer", ["unknown peer 'triten'; nearest is 'triton'"], kernels.suite, ["softmax"], ["triten"])
    says("a suite's dtype", ["unknown element type 'f64'"], kernels.suite, ["softmax"], dtypes=["f64"])
    says(
        "an axis", ["nearest is 'sequence_length'"], kernels.suite, ["softmax"], shapes={"sequence_lenght": 1}
    )
    says("needed axes", ["needs vocabulary"], kernels.suite, ["embedding"], shapes={"tensor_dimension": 8})
    says("a layout", ["layout='tt'"], kernels.suite, ["bmm"], shapes={"tensor_dimension": 8, "layout": "tt"})
    says("a suite's kernel", ["nearest is 'onepass'"], kernels.suite, ["softmax"], implementations=["onepas"])
    says("a suite's direction", ["has a direction 'run'"], kernels.suite, ["softmax"], directions=["run"])
    says("no peers at all", ["h2d has no peers"], kernels.suite, ["h2d"])


def child(code, **environment):
    for name in ("KBENCH_KERNELS_LIB", "KBENCH_KERNELS_CUH"):
        environment.setdefault(name, "")
    done = subprocess.run(
        [sys.executable, "-c", f"import kbench\ntry: {code}\nexcept kbench.Error as e: print('Error:', e)"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout.decode()


def environment():
    look = "print(len(kbench.kernels))"
    said = child(look, KBENCH_KERNELS_CUH="/none.cuh")
    check("no header", "Error: KBENCH_KERNELS_CUH=/none.cuh is no file" in said, said)
    bad = os.path.join(scratch, "bad.cuh")
    with open(bad, "w") as f:
        f.write("this is no C\n")
    said = child(look, KBENCH_KERNELS_CUH=bad)
    check("a header that does not compile", "could not be built" in said and "bad.cuh:1" in said, said)
    said = child(look, KBENCH_KERNELS_LIB=kbench._find_library())
    check("another library", "Error:" in said and "is no library of kbench_kernels.cuh" in said, said)
    said = child(look, KBENCH_KERNELS_LIB=kbench_kernels._host().path)
    check("a library that KBENCH_KERNELS_LIB names", said.strip() == str(len(kernels)), said)
    said = child("kbench.kernels.build(['mse'], arch='sm_80')", NVCC="", PATH="/none", CUDA_HOME="/none")
    check("no nvcc", "Error: Kernels are built with nvcc, which was not found" in said, said)
    command = r"^    nvcc -std=\S+ -O1 -gencode=arch=compute_80,code=sm_80 -shared .*/kbench_kernels.cuh -o lib.*so -ldl$"
    check(
        "no nvcc: the message has a command that builds all kernels",
        re.search(command, said, re.M) and "    pip install " in said, said,
    )
    said = child(
        "kbench.kernels.build(['mse'], arch='sm_80')", KBENCH_KERNELS_LIB=kbench_kernels._host().path
    )
    check("a library without kernels", "was built without CUDA" in said, said)


def faces():
    lib, shape = kbench_kernels._host(), kbench_kernels._Shape(rows=1, cols=4)
    at = lib.kbk_row_find(b"softmax", b"fwd", b"onepass")
    check("found", at == lib.rows["softmax", "fwd", "onepass"])
    check("not found", lib.kbk_row_find(b"softmax", b"fwd", b"two") == -1)
    check("no such word", lib.kbk_abi(b"kbk_nothing") == -1)
    by = ctypes.byref
    row, tensors = kbench_kernels._Row(), (kbench_kernels._Tensor * 12)()
    check("no such row", lib.kbk_row_get(len(kernels), by(row)) == 0 and lib.kbk_row_get(-1, by(row)) == 0)
    check("kbk_row_tensors with an invalid row number", lib.kbk_row_tensors(-1, by(shape), tensors) == -1)
    check("kbk_row_bytes with an invalid row number", lib.kbk_row_bytes(-1, by(shape), 4) == -1)
    args = kbench_kernels._Args(s=shape)
    check("launch: null", b"null" in lib.kbk_row_launch(at, 0, by(args), -1, None))
    args.inputs[0] = 4096
    check("launch: no output", b"output is null" in lib.kbk_row_launch(at, 0, by(args), -1, None))
    args.outputs[0] = 4096
    check("launch: no CUDA", b"without CUDA" in lib.kbk_row_launch(at, 0, by(args), -1, None))
    check("launch: type", b"element type" in lib.kbk_row_launch(at, 3, by(args), -1, None))
    out = (ctypes.c_void_p * 8)()
    check("oracle: null", b"null" in lib.kbk_row_oracle(at, by(shape), 4, (ctypes.c_void_p * 8)(), out, 0, 1))
    check("oracle: units", b"units" in lib.kbk_row_oracle(at, by(shape), 4, out, out, 0, 2))
    for field, value in (("rows", -1), ("layout", 3)):
        wrong = kbench_kernels._Shape(rows=1, cols=4)
        setattr(wrong, field, value)
        check(f"a shape's {field}", lib.kbk_row_units(at, by(wrong)) == -1)
    x = (ctypes.c_double * 4)()
    check("fill", lib.kbk_row_fill(at, by(shape), 0, 0, 7, 0, 4, x) is None and len(set(x)) == 4)
    again = (ctypes.c_double * 2)()
    lib.kbk_row_fill(at, by(shape), 0, 0, 7, 2, 2, again)
    check("fill: a part", list(again) == list(x)[2:])
    check("fill: an output", b"no such input" in lib.kbk_row_fill(at, by(shape), 1, 0, 7, 0, 1, x))
    check("fill: too many", b"elements" in lib.kbk_row_fill(at, by(shape), 0, 0, 7, 0, 5, x))


def record(operation, implementation, origin, ms, **more):
    made = {
        "operation": operation,
        "direction": "fwd",
        "implementation": implementation,
        "origin": origin,
    }
    params = {"batch_size": 1, "sequence_length": 64, "tensor_dimension": 128}
    made.update(
        dtype="f32", params=params, time_ms=ms, time_ms_raw=ms, gpu_efficiency=50, bytes=1e6, status="ok", cache="cold"
    )
    made.update(more)
    return kbench.Record(made)


def tables():
    heads = kbench.Record({"params": dict(batch_size=1, heads=2, sequence_length=3, tensor_dimension=4)})
    check("a shape with heads", kbench_kernels._where(heads) == "1 x 2 x 3 x 4", kbench_kernels._where(heads))
    evidence = os.path.join("tests", "evidence", "h200", "operations")
    run = [sys.executable, kbench_kernels.__file__, "--load"]
    done = subprocess.run(run + [evidence + ".json"], stdout=subprocess.PIPE)
    with open(evidence + ".md") as f:
        check("--load prints the table of the run", done.stdout.decode() == f.read())
    for part in ("_small", "_compiled"):
        more = subprocess.run(run + [evidence + part + ".json"], stdout=subprocess.PIPE)
        with open(evidence + part + ".md") as f:
            check(f"the table of {part[1:]}", more.stdout.decode() == f.read())
    mean = r"ratios: [\d.]+ x the best peer \(38 rows\), [\d.]+ x the best peer except Triton \(38 rows\), "
    check("sizes='compiled': the mean", re.search(mean, more.stdout.decode()), more.stdout)
    with open(os.path.join("examples", "README.md")) as f:
        document = f.read()
    done = subprocess.run(run + [evidence + ".json", "--summary"], stdout=subprocess.PIPE)
    table, _, below = done.stdout.decode().partition("\n\n")
    check("the table of examples/README.md", table in document, table)
    mean = r"Geometric mean of the ratios: [\d.]+ x the best peer \(84 rows\), "
    mean += r"[\d.]+ x the best peer except Triton \(84 rows\), "
    mean += r"[\d.]+ x PyTorch \(\d+ rows\), "
    check(
        "--summary: the geometric means below the table",
        re.fullmatch(mean + r"[\d.]+ x torch.compile \(\d+ rows\)\n", below), below,
    )
    done = subprocess.run(run + [evidence + ".json", "--sizes", "compiled"], stdout=subprocess.PIPE)
    lines, whole = done.stdout.decode().splitlines(), open(evidence + ".md").read().splitlines()
    short = [line.rsplit("|", 4)[0] for line in whole]  # lines of the table without the column "of a copy"
    among = [line.rsplit("|", 4)[0] in short for line in lines]
    check("--sizes of a run", 30 < len(lines) <= 42 and all(among[:-2]) and len(whole) > 80, done.stdout)
    done = subprocess.run(run + ["/none.json"], stderr=subprocess.PIPE)
    check("no such file", done.returncode == 2 and b"there is no file" in done.stderr, done.stderr)

    n = {"params": {"n": 125000}, "direction": "run"}
    rows = kbench_kernels.Contests(
        [
            record("copy", "vec", "own", 0.008, **n),
            record("add", "vec", "own", 0.010),
            record("add", "unroll", "own", 0.020),
            record("add", "torch", "user", 0.012),
            record("add", "triton", "user", None),
            record("add", "cudart", "vendor", 0.011),
            record("matmul", "mmapipe", "own", None),
        ]
    )
    lines = rows.markdown().splitlines()
    want = "| add fwd f32 | 64 x 128 | 10.0 us `vec` | 50 % | 0.80 | 11.0 us kbench's cudart | 1.10 x |"
    check("the table's row for one comparison", lines[3] == want and lines[4:5] == [""], lines)
    check(
        "missed(): comparisons that miss a target",
        rows.missed()
        == ["add fwd f32 batch_size=1 sequence_length=64 " "tensor_dimension=128: 0.800 of a copy (0.92)"],
        rows.missed(),
    )
    check(
        "means(): the mean of PyTorch covers one row",
        rows.means() == {"the best peer": (1.1, 1), "PyTorch": (1.2, 1)}, rows.means(),
    )
    # kbench is 4, 1 and 0.5 times as fast as PyTorch, and 2 and 8 times as fast as torch.compile. No mean covers
    # the row of 8192 columns, which has no measured peer.
    several = [(1024, 0.01, 0.04, 0.02), (2048, 0.01, 0.01, None), (4096, 0.01, 0.005, 0.08)]
    several += [(8192, 0.01, None, None)]
    many = kbench_kernels.Contests(
        record("softmax", name, origin, ms, params={"batch_size": 1, "sequence_length": 64, "tensor_dimension": c})
        for c, *times in several
        for (name, origin), ms in zip((("onepass", "own"), ("torch", "user"), ("compile", "user")), times)
        if ms
    )
    means = {who: (round(ratio, 9), n) for who, (ratio, n) in many.means().items()}
    want = {"the best peer": (1.0, 3), "PyTorch": (round(2 ** (1 / 3), 9), 3), "torch.compile": (4.0, 2)}
    check("geometric means", means == want, means)
    want = "\n\nGeometric mean of the ratios: 1.00 x the best peer (3 rows), 1.26 x PyTorch (3 rows), "
    want += "4.00 x torch.compile (2 rows)\n"
    check("summary: the means", many.summary().endswith(want), many.summary())
    # Triton has the best time of one row
    params = {"batch_size": 8, "sequence_length": 1024, "tensor_dimension": 64}
    three = [("onepass", "own", 0.01), ("triton", "user", 0.02), ("torch", "user", 0.04)]
    more = [record("softmax", name, origin, ms, params=params) for name, origin, ms in three]
    means = {who: (round(ratio, 9), n) for who, (ratio, n) in kbench_kernels.Contests([*many, *more]).means().items()}
    want = {"the best peer": round(2 ** (1 / 4), 9), "the best peer except Triton": round(2 ** (2 / 4), 9)}
    check("means without Triton", all(means[who] == (ratio, 4) for who, ratio in want.items()), means)
    alone = kbench_kernels.Contests([record("add", "vec", "own", 0.010)])
    check(
        "means(): without peers, there is no geometric mean",
        alone.means() == {} and "mean" not in alone.summary(), alone.summary(),
    )
    rows.missing.append(("cupy", "cupy is not installed"))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        rows.table()
    check("table(): in columns", "add fwd f32   64 x 128  10.0 us vec" in out.getvalue(), out.getvalue())
    check("table(): missing peers", "missing: cupy: cupy is not installed" in out.getvalue())
    path = os.path.join(scratch, "rows.json")
    kbench.save(rows, path)
    check("saved and loaded", kbench_kernels.Contests.load(path).markdown() == rows.markdown())
    with open(path) as f:
        check("a JSON array", len(json.load(f)) == len(rows))


def graphs():
    """The table of launches in CUDA graphs lists every peer of a row and explains the times."""
    hot = [("vec", "own", 0.002), ("unroll", "own", 0.003), ("torch", "user", 0.004), ("compile", "user", 0.001)]
    rows = kbench_kernels.Contests(record("add", name, origin, ms, cache="graph") for name, origin, ms in hot)
    text = rows.markdown()
    want = "| add fwd f32 | 64 x 128 | 2.00 us `vec` | 4.00 us | 1.00 us | 0.50 x torch.compile |"
    check("a row of graphs", text.splitlines()[2] == want, text)
    check("graphs: the text explains how a time is measured", "one CUDA graph and 2 N times into another" in text, text)
    want = "0.50 x the best peer (1 rows), 2.00 x PyTorch (1 rows), 0.50 x torch.compile (1 rows)\n"
    check("graphs: the mean", text.endswith(want), text)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        rows.table()
    check("graphs: aligned columns", "add fwd f32  64 x 128  2.00 us vec" in out.getvalue(), out.getvalue())

    made, kk = [], kbench_kernels

    class Contest:
        def __init__(self, *_):
            made.append(self)

        def run(self, *_):
            return []

    kept = {n: getattr(kk, n) for n in ("_Comparison", "_need_gpu", "_installed", "_engine_stream", "_arch_of")}
    for name in kept:
        setattr(kk, name, (lambda *_: True) if name != "_Comparison" else Contest)
    built, kk.Kernels.build = kk.Kernels.build, lambda *_: []
    try:
        for sizes in ("small", "compiled"):
            kernels.suite(["embedding"], ["torch"], sizes=sizes, progress=False)
    finally:
        kk.Kernels.build = built
        for name, value in kept.items():
            setattr(kk, name, value)
    check("sizes='small': graphs, one direction", [contest.mode for contest in made] == ["graph", None], made)


def plans():
    plan = kbench_kernels._plan
    rows = [(name, t, tuple(axes.values())) for name, t, axes in plan(None, None, None)]
    want = [("softmax", "bf16", (8, 1024, 1024)), ("softmax", "bf16", (4, 1024, 16384))]
    want += [("matmul", "bf16", (8, 1024, 8192))]
    shapes = [(16, 3072, 128, 16, 0), (16, 3072, 128, 16, 1), (1, 16384, 128, 16, 1), (16, 1024, 128, 16, 0)]
    shapes += [(16, 1024, 128, 16, 1), (4, 4096, 64, 32, 0)]
    want += [("attention", "bf16", shape) for shape in shapes] + [("attention", "f16", (4, 4096, 128, 16, 1))]
    check("the published rows", all(rows.count(w) == 1 for w in want), [w for w in want if rows.count(w) != 1])
    check("no row twice", len(rows) == len(set(rows)))
    usual = [axes for name, t, axes in plan(None, None, None) if (name, t) == ("attention", "bf16")]
    other = [axes for _, _, axes in plan({"attention"}, None, ["f16"])]
    check("attention runs in f16 at every shape of bf16", other == usual and len(usual) == 9, other)
    ways = [
        (o.operation, o.direction, t, axes)
        for n, t, axes in plan(None, None, None, "compiled")
        for o in kernels.operations()
        if o.operation == n
    ]
    taken = [way for way in ways if kbench_kernels._is_of("compiled", *way)]
    check("compiled: rows", len(taken) == 38 < len(ways), len(taken))
    check("compiled: a direction alone", [way[1] for way in taken if way[0] == "embedding"] == ["bwd"], taken)
    small = plan(None, None, None, "small")
    sizes = [[v for k, v in axes.items() if k not in ("vocabulary", "causal")] for _, _, axes in small]
    most = max(3 * 4 * math.prod(size) for size in sizes)
    check("sizes='small' fits in an L2 cache", len(small) > 30 and most <= 24 << 20, most)
    check("small: some", {n for n, _, _ in plan({"softmax"}, None, ["f32"], "small")} == {"softmax"})
    says("sizes", ["sizes='tiny' is unknown. Valid values: usual, small, compiled"], plan, None, None, None, "tiny")


def failing():
    kk, tried = kbench_kernels, []

    class Contest:
        def __init__(self, operation, dtype, axes, *_):
            tried.append(axes["tensor_dimension"])
            if axes["tensor_dimension"] == 64:
                raise MemoryError("no room for 64")
            self.record = kbench.Record({"name": "softmax"})

        def run(self, *_):
            return [self.record]

    kept = {n: getattr(kk, n) for n in ("_Comparison", "_need_gpu", "_installed", "_engine_stream", "_arch_of")}
    for name in kept:
        setattr(kk, name, (lambda *_: True) if name != "_Comparison" else Contest)
    built = kk.Kernels.build
    kk.Kernels.build = lambda *_: []
    try:
        shapes = [{"tensor_dimension": d} for d in (32, 64, 128)]
        rows = kernels.suite(["softmax"], ["torch"], shapes, ["f32"], directions=["fwd"], progress=False)
    finally:
        kk.Kernels.build = built
        for name, value in kept.items():
            setattr(kk, name, value)
    check(
        "a shape that needs too much memory: the other shapes still run",
        tried == [32, 64, 128] and len(rows) == 2, (tried, rows),
    )
    check(
        "a shape that needs too much memory: the reason is listed",
        [why for _, why in rows.missing] == ["no room for 64"], rows.missing,
    )

    stream = contextlib.nullcontext()
    cuda = types.SimpleNamespace(
        synchronize=lambda: None, stream=lambda s: stream, ExternalStream=lambda *_, **__: None
    )
    contest = types.SimpleNamespace(
        torch=types.SimpleNamespace(cuda=cuda), operation=kernels["softmax", "fwd"], values={}, dtype="f32"
    )
    contest.axes, contest.stream, contest.device = {"tensor_dimension": 8}, 0, 0
    peers, missing = kk._PeerFunctions(contest), []
    peers._eager = lambda: lambda: (False, {})
    peers._compiled = lambda: {}["not there"]
    check("a peer that works", list(peers.of("torch", missing)) == ["torch"] and not missing, missing)
    check("a peer that raises", peers.of("compile", missing) == {} and "not there" in missing[0][1], missing)


def built():
    if not os.environ.get("NVCC"):
        print("SKIP: no nvcc: no kernels are built")
        return
    if not os.environ.get("TEST_ALL"):
        return
    says("an architecture", ["arch='gpu' is not an architecture"], kernels.build, ["mse"], ["f32"], "gpu")
    says("an old architecture", ["cannot build for sm_20"], kernels.build, ["mse"], ["f32"], "sm_20")
    code = "print(*kbench.kernels.build(['mse'], ['f32'], 'sm_80'))"
    said = child(code)
    check(
        "the message that a build prints",
        "the kernels of mse in f32 for sm_80 (only once; may take a minute)" in said,
        said,
    )
    again = child(code)
    path = again.strip()
    check("built once", "building" not in again and os.path.isfile(path), again)
    lib = kbench_kernels._Library(path)
    check("one group", {name for name, _, _ in lib.rows} == {"mse"}, lib.rows)
    check("one type", all(i.dtypes == 1 for i in lib.infos) and lib.kbk_abi(b"cuda") == 1)
    args = kbench_kernels._Args(s=kbench_kernels._Shape(rows=1, cols=4))
    args.inputs[0] = args.inputs[1] = args.outputs[0] = args.workspace = 4096
    args.workspace_bytes = 1 << 20
    row = lib.rows["mse", "fwd", "ticket"]
    check("no such GPU", lib.kbk_row_launch(row, 0, ctypes.byref(args), 99, None))


class Runtime:
    """A simulated CUDA runtime in host memory that counts allocations and frees."""

    def __init__(self):
        self.held, self.freed, self.twice = {}, 0, 0

    def cudaMalloc(self, pointer, size):
        memory = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(memory)
        self.held[pointer._obj.value] = memory
        return 0

    def cudaFree(self, pointer):
        self.freed, self.twice = self.freed + 1, self.twice + (self.held.pop(pointer.value, None) is None)
        return 0

    def cudaMemcpy(self, to, of, size, kind):
        ctypes.memmove(to, of, size.value)
        return 0

    cudaGetDevice = cudaSetDevice = cudaDeviceSynchronize = lambda self, *_: 0


def arrays():
    """Without torch and cupy, copying a GPU array copies its memory, and arrays are compared by value."""
    runtime, kept = Runtime(), kbench._library
    kbench._library = lambda: types.SimpleNamespace(handle=runtime)

    def device(values, dtype="f32", form="f"):
        a = kbench_kernels._DeviceArray((len(values),), dtype, 0)
        ctypes.memmove(a.address, struct.pack(f"{len(values)}{form}", *values), a.bytes)
        return a

    def error(got, want):
        passed, worst, _, text = kbench._Expected(want, None, None)(got)
        return None if passed else text

    try:
        x = device([1.0, 2.0, float("nan")])
        copies = [kbench._copy(x), copy.copy(x), copy.deepcopy({"x": [x]})["x"][0], kbench._copy((x,))[0]]
        check("a copy's memory", len({a.address for a in [x, *copies]}) == 5, copies)
        check("a copy's contents", all(error(a, x) is None for a in copies), [error(a, x) for a in copies])
        check("a copy's elements", all((a.shape, a.dtype, a.bytes) == ((3,), "float32", 12) for a in copies))
        wrong, close = device([1.0, 2.1, float("nan")]), device([1.0, 2.000001, float("nan")])
        check("compared: wrong", "0.0333" in error(wrong, x), error(wrong, x))
        check("compared: close", error(close, x) is None, error(close, x))
        check("compared: not a number", error(device([1.0, 2.0, 3.0]), x) is not None)
        check("compared: its shape", "its shape is (2,)" in error(device([1.0, 2.0]), x))
        check("compared: its type", "int32" in error(device([1, 2, 3], "i32", "i"), x))
        check("compared: no array", "it is a list" in error([1.0, 2.0, 3.0], x))
        whole = device([1, 2, 3], "i32", "i")
        check("compared: whole numbers", error(whole.copy(), whole) is None)
        check("compared: arrays of different integers", "not equal" in error(device([1, 2, 4], "i32", "i"), whole))
        half = [device(v, "f16", "e") for v in ([1.0, 2.0], [1.0, 2.004], [1.0, 2.1])]
        check("compared: f16", error(half[1], half[0]) is None and error(half[2], half[0]) is not None)
        brain = [device(v, "bf16", "H") for v in ([0x3F80, 0x4000], [0x3F80, 0x4001], [0x3F80, 0x4010])]
        check("compared: bf16", error(brain[1], brain[0]) is None and "0.0833" in error(brain[2], brain[0]))
        rows = device([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        seen = OnDevice(2, 2, strides=(12, -4), dtype="float32")
        seen.__cuda_array_interface__["data"] = (rows.address + 8, False)  # 3 2, 6 5
        want = kbench_kernels._DeviceArray((2, 2), "f32", 0)
        ctypes.memmove(want.address, struct.pack("4f", 3, 2, 6, 5), 16)
        check("compared: strides", error(seen, want) is None, error(seen, want))
        says("an array that cannot be copied", ["OnDevice", "copy()"], kbench._copy, seen)

        lent = device([0x3F80, 0x4000], "bf16", "H")
        tensor, give_back, _ = taken(lent.__dlpack__(stream=1))
        seen = tensor.data, tensor.device_type, tensor.device, tensor.code, tensor.bits
        check("lent: bf16 of a GPU", seen == (lent.address, 2, 0, 4, 16) and lent.__dlpack_device__() == (2, 0), seen)
        only = types.SimpleNamespace(__dlpack__=lent.__dlpack__, __dlpack_device__=lent.__dlpack_device__)
        view = kbench_kernels._view(only)
        said = view.kind, view.dtype, view.address, view.device, list(kbench_kernels._doubles(view, None))
        check("borrowed: bf16 of a GPU", said == ("cuda", "bf16", lent.address, 0, [1.0, 2.0]), said)
        give_back()
        del lent, only, view

        class Numba:  # numba.cuda's array
            shape, dtype, source = (2,), "float32", None

            def copy_to_device(self, other):
                self.source = other

        sys.modules["numba"] = types.SimpleNamespace(cuda=types.SimpleNamespace(device_array_like=lambda a: Numba()))
        theirs = Numba()
        check("numba's", kbench._copy(theirs).source is theirs)
        made = len(runtime.held)
        del x, copies, wrong, close, whole, half, brain, rows, want
        gc.collect()
        check("each freed once", (runtime.freed >= made, runtime.twice, runtime.held) == (True, 0, {}), vars(runtime))
    finally:
        kbench._library = kept
        sys.modules.pop("numba", None)


class Lender(kbench._DlpackExporter):
    """An array that supports only DLPack."""

    def __init__(self, values, dtype="f32", form="f", shape=None, **always):
        self.memory = ctypes.create_string_buffer(struct.pack(f"{len(values)}{form}", *values))
        self.address, self.shape, self.dtype = ctypes.addressof(self.memory), shape or (len(values),), dtype
        self.always = always

    def _dlpack_type(self):
        return self.dtype, None

    def __dlpack__(self, **options):
        return super().__dlpack__(**{**options, **self.always})


def taken(capsule):
    """Consumes a DLPack capsule as a library does: renames the capsule now, and releases its memory later."""
    names = kbench._DL_NAMES
    name = next(n for n in names if kbench._capsule_is(id(capsule), n))
    lent = names[name].from_address(kbench._capsule_pointer(id(capsule), name))
    used = b"used_" + name
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), used)
    give_back = lambda: ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lent.deleter)(ctypes.addressof(lent))  # noqa: E731
    return lent.tensor, give_back, used


def lending():
    numbers = [1.5, -2.0, 3.0, 4.0, 5.0, 6.0]
    x, held = Lender(numbers, shape=(2, 3)), lambda: len(kbench._exported)  # noqa: E731
    for version in (None, (0, 8), (1, 0), (2, 1)):
        capsule = x.__dlpack__(max_version=version)
        tensor, give_back, used = taken(capsule)
        seen = tensor.data, tensor.device_type, tensor.ndim, tensor.shape[:2], tensor.strides[:2], tensor.bits
        check(f"lent: {version}", seen == (x.address, 1, 2, [2, 3], [3, 1], 32) and tensor.code == 2, seen)
        check(f"lent: {version}: its name", (b"versioned" in used) == (version in ((1, 0), (2, 1))), used)
        del capsule
        gc.collect()
        check(f"DLPack export: {version}: the consumer holds the memory", held() == 1, held())
        give_back()
        check(f"lent: {version}: given back", held() == 0, held())
    capsule = x.__dlpack__()
    del capsule
    check("lent to nobody", held() == 0, held())
    for options in ({"copy": True}, {"dl_device": (2, 0)}):
        try:
            x.__dlpack__(**options)
            check(f"not lent: {options}", False, "nothing was raised")
        except BufferError as error:
            check(f"not lent: {options}", "not copied" in str(error), error)
    check("DLPack export: the device of the array", x.__dlpack__(dl_device=(1, 0), copy=False) is not None)

    for version in (None, (1, 0)):
        lent = Lender(numbers, shape=(2, 3), max_version=version)
        got, want = kernels["softmax", "fwd"].oracle(lent), kernels["softmax", "fwd"].oracle([numbers[:3], numbers[3:]])
        near(f"borrowed: {version}", got, want)
    brain = [v >> 16 for v in struct.unpack("6I", struct.pack("6f", *numbers))]
    kinds = (("f64", "d", numbers), ("f16", "e", numbers), ("bf16", "H", brain), ("i32", "i", range(6)))
    for dtype, form, values in kinds:
        view = kbench_kernels._view(Lender(values, dtype, form))
        want = list(range(6)) if dtype == "i32" else numbers
        said = view.kind, view.dtype, view.shape, list(kbench_kernels._doubles(view, None))
        check(f"borrowed: {dtype}", said == ("host", dtype, (6,), want), said)
        said = list(kbench_kernels._doubles(view, [(4, 2), (0, 1)]))
        check(f"borrowed: parts of {dtype}", said == [want[4], want[5], want[0]], said)
        del view
    with_gaps = Lender(numbers, shape=(2, 2))
    lend = with_gaps.__dlpack__

    def strided(**options):
        capsule = lend(**options)
        at = kbench._capsule_pointer(id(capsule), b"dltensor")
        kbench._DlManaged.from_address(at).tensor.strides[0] = 3
        return capsule

    with_gaps.__dlpack__ = strided
    says("borrowed with gaps", ["x is not contiguous"], kernels["softmax", "fwd"].oracle, with_gaps)
    check("DLPack import: the memory is released", (gc.collect(), held())[1] == 0, held())
    try:
        import numpy
    except ImportError:
        return print("SKIP: no numpy: from_dlpack")
    got = numpy.from_dlpack(x)
    check("numpy takes it", got.shape == (2, 3) and got.tolist() == [numbers[:3], numbers[3:]], got)
    check("numpy holds it", (held(), got.ctypes.data) == (1, x.address), held())
    del got
    check("DLPack export: numpy releases the memory", held() == 0, held())


parts = (table, oracles, formulas, checks, errors, environment, faces, arrays, lending, tables, graphs, plans, failing)
parts += (built,)
for part in parts:
    part()
print(f"{passed} passed, {failed} failed")
