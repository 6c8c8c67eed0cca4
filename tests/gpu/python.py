# SPDX-License-Identifier: MIT OR Unlicense
"""kbench.py on a GPU with PyTorch: python.py LIBRARY C.json

LIBRARY has launch_axpy (tests/gpu/python_kernel.cu), C.json are that program's records, cold. Prints FAIL lines, a
table of what each harness reads of the same kernel, and ends with "N passed, N failed".
"""
import ctypes
import json
import sys

import torch

import kbench

passed = failed = 0


def check(what, good, said=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print(f"FAIL: {what}: {said}")


def flags(record):
    return f"{record.status} {record.flags} {record.message}"


def times_from_c(library, records):
    launch = library.launch_axpy
    launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    print(f"{'n':>10} {'C us':>9} {'Python us':>10} {'do_bench us':>12} {'triton us':>10}"
          "   an empty kernel ns: C, Python")
    for r in records:
        n = r["params"]["n"]
        x, y = torch.randn(n, device="cuda"), torch.empty(n, device="cuda")
        px, py = x.data_ptr(), y.data_ptr()

        def axpy(stream):
            launch(px, py, n, stream)

        mine = kbench.time(axpy, bytes=8.0 * n)
        c, p = 1e3 * r["time_ms"], 1e3 * (mine.time_ms or float("nan"))
        check(f"axpy {n}: Python {p:.3f} us, C {c:.3f} us", abs(p - c) <= max(0.15, 0.01 * c), flags(mine))
        check(f"axpy {n}: the output", torch.allclose(y, 0.5 * x + 1))

        def on_current():
            launch(px, py, n, torch.cuda.current_stream().cuda_stream)

        same = 1e3 * kbench.do_bench(on_current, return_mode="median")
        check(f"axpy {n}: do_bench {same:.3f} us", abs(same - c) <= max(0.15, 0.01 * c))
        try:
            from triton.testing import do_bench

            theirs = f"{1e3 * do_bench(on_current, return_mode='median'):10.3f}"
        except ImportError:
            theirs = "-"
        empty = [1e6 * (a - b) for a, b in ((r["floor_ms"], r["bias_ms"]), (mine.floor_ms, mine.bias_ms))]
        print(f"{n:10} {c:9.3f} {p:10.3f} {same:12.3f} {theirs:>10} {empty[0]:22.0f}, {empty[1]:.0f}")


def contests():
    x, w = torch.randn(2048, 1024, device="cuda"), torch.randn(1024, device="cuda")
    out = torch.empty_like(x)
    works = {
        "add": lambda x, w: torch.add(x, w, out=out),
        "softmax": lambda x, w: torch.softmax(x, 1),
        "layer_norm": lambda x, w: torch.nn.functional.layer_norm(x, (1024,), w),
        "product": lambda x, w: x @ x.T,
        "gelu": lambda x, w: torch.nn.functional.gelu(x),
    }
    different = n = 0
    for name, f in works.items():
        for mode in ("cold", "hot"):
            a, b, c = kbench.compare({"one": f, "two": f, "three": f}, (x, w), name=name, mode=mode, max_time=0.3,
                                     check="one")
            for r in (a, b, c):
                check(f"{name} {mode}: a time", r.time_ms is not None, flags(r))
                check(f"{name} {mode}: verified", r.verified, flags(r))
            for r in (b, c):
                n += 1
                different += r.verdict in ("FASTER", "SLOWER")
    check(f"equal functions: {different} of {n} called different", different <= 3)
    slow = kbench.compare({"once": lambda x: torch.add(x, 1, out=out),
                           "twice": lambda x: (torch.add(x, 1, out=out), torch.add(x, 1, out=out))[1]}, (x,))
    check("twice the work is SLOWER", slow[1].verdict == "SLOWER", flags(slow[1]))


def words():
    x, out = torch.randn(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    host = torch.empty(1 << 20)
    side = torch.cuda.Stream()

    def waits(x):
        y = x * 2
        torch.cuda.synchronize()
        return y

    def item(x):
        return x.sum().item()

    def copies(x):
        host.copy_(x)
        return x + 1

    def beside(x):
        with torch.cuda.stream(side):
            for _ in range(50):
                torch.add(x, 1, out=out)
        return out

    def wrong(x):
        return x * 2.01

    def right(x):
        return x * 2

    for f, want in ((waits, "SYNC_INSIDE"), (item, "SYNC_INSIDE TRANSFER"), (beside, "SIDE_STREAM NO_WORK"),
                    (copies, "TRANSFER SYNC_INSIDE SIDE_STREAM BAD_CASE")):
        r = kbench.compare({f.__name__: f}, (x,))[0]
        check(f"{f.__name__}: {want}", r.time_ms is None and any(w in r.flags for w in want.split()), flags(r))
    bad = kbench.compare({"right": right, "wrong": wrong}, (x,), check="right")
    check("a wrong result", bad[1].time_ms is None and "VERIFY_FAIL" in bad[1].flags, flags(bad[1]))
    check("the right one beside it", bad[0].time_ms is not None and bad[0].verified, flags(bad[0]))


def main():
    times_from_c(ctypes.CDLL(sys.argv[1]), json.load(open(sys.argv[2])))
    contests()
    words()
    print(f"{passed} passed, {failed} failed")


main()
