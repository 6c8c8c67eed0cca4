# SPDX-License-Identifier: MIT OR Unlicense
"""Benchmarks for kbench's command line: correct benchmarks, and one benchmark for each kind of failure."""

import functools
import os

import kbench


@kbench.bench(
    op="total", impl="sum", n=[10, 200], scale=[0.5, 2.0], kind=["plain"], origin="vendor", note="built in"
)
def with_sum(kb, n, scale, kind):
    x = [scale * i for i in range(n)]
    assert (n, scale, kind) == (len(x), scale, "plain") and kb.seed == 42 and kb.dtype is None
    kb.time(sum, x, host=True)
    kb.check(None, scale * n * (n - 1) / 2)
    kb.bytes(8 * n)
    kb.note(f"n is {n}")


@kbench.bench(op="total", impl="loop", n=[10, 200], scale=[0.5, 2.0], kind=["plain"], rung=1)
def with_a_loop(kb, n, scale, kind):
    x = [scale * i for i in range(n)]
    out = [0.0]

    def loop():
        for v in x:
            out[0] += v

    def reset():
        out[0] = 0.0

    kb.time(loop, before=reset, host=True)
    kb.check(out, [scale * n * (n - 1) / 2])


@kbench.bench(which=["raises", "raises_late", "exits", "wrong", "asserts", "nothing", "twice", "skipped"])
def odd(kb, which):
    runs = [0]
    if which == "raises":
        raise ValueError("planted at once")
    if which == "nothing":
        return
    if which == "skipped":
        return kb.skip("not today")

    def work():
        runs[0] += 1
        if which == "exits":
            os._exit(7)
        if which == "raises_late" and runs[0] == 20:
            raise KeyError("planted in run 20")
        return runs[0]

    def small(output):
        assert output < 1, "more than none"

    kb.time(work, host=True)
    if which == "twice":
        kb.time(work, host=True)
    kb.check(small if which == "asserts" else lambda output: which != "wrong")


@kbench.bench(dtype=["f32", "f64"])
def buffers(kb, dtype):
    x = kb.alloc(1000, dtype)
    kb.fill(x, "uniform")
    values = x.values()
    assert (
        kb.dtype == dtype
        and len(values) == 1000
        and all(0 <= v < 1 for v in values)
        and len(set(values)) > 900
    )
    assert x.__array_interface__["data"][0] == x.address and x.__array_interface__["typestr"][
        1:
    ] == "f" + str(x.size)
    capsule, tensor, lent, device = kbench._import_dlpack(x)
    assert (tensor.data, tensor.shape[0], tensor.ndim, lent, device) == (x.address, 1000, 1, dtype, None)
    kb.time(sum, values, host=True)
    kb.check(None, sum(values))


@kbench.bench(sizes={"small": "n=3 m=1,2", "large": "n=9 m=4"})
def sized(kb, n, m):
    kb.time(sum, [n, m], host=True)
    kb.check(None, n + m)
    kb.note(f"{n} {m}")


@kbench.bench(which=["alloc:_dtype", "alloc:_place", "alloc:_count", "fill:_kind", "expect", "kb.bytes", "kb.check"])
def misuse(kb, which):
    kb.time(int, host=True)
    {
        "alloc:_dtype": lambda: kb.alloc(4, "f31"),
        "alloc:_place": lambda: kb.alloc(4, "f32", "gpu"),
        "alloc:_count": lambda: kb.alloc(2**64 + 4),
        "fill:_kind": lambda: kb.fill(kb.alloc(4), "random"),
        "expect": lambda: kb.expect("syn"),
        "kb.bytes": lambda: kb.bytes("5"),
        "kb.check": lambda: kb.check(1.5),
    }[which]()


kbench.bench(functools.partial(sized, m=2), op="partial", n=[1])


@kbench.bench
def on_a_gpu(kb):
    kb.time(lambda: None)


if __name__ == "__main__":
    kbench.main()
