# SPDX-License-Identifier: MIT OR Unlicense
"""kbench.py on a GPU with PyTorch: python.py LIBRARY C.json...

LIBRARY has launch_axpy (tests/gpu/python_kernel.cu), each C.json the records of a process of that program, cold. Prints
FAIL lines, a table of what each harness reads of the same kernel, and ends with "N passed, N failed".
python.py --times LIBRARY N...: what one process reads, for that table.
"""
import ctypes
import json
import statistics
import subprocess
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


def launcher(library):
    launch = ctypes.CDLL(library).launch_axpy
    launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    return launch


def by_profiler(call):
    """us that torch.profiler's CUPTI gives the kernel, behind 256 MiB that are written each time."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    other = torch.empty(1 << 26, device="cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(40):
            other.zero_()
            call()
        torch.cuda.synchronize()
    kernels = [e for e in seen.events() if e.device_type == DeviceType.CUDA and "axpy" in e.name]
    return statistics.median(e.time_range.elapsed_us() for e in kernels)


def times(library, sizes):
    """us by kbench.time, by kbench.do_bench, by Triton's do_bench and by torch.profiler, in this process."""
    launch, found = launcher(library), []
    for n in sizes:
        x, y = torch.randn(n, device="cuda"), torch.empty(n, device="cuda")

        def axpy(stream, x=x, y=y):
            launch(x.data_ptr(), y.data_ptr(), len(x), stream)

        def on_current(axpy=axpy):
            axpy(torch.cuda.current_stream().cuda_stream)

        mine = kbench.time(axpy, bytes=8.0 * n)
        assert mine.time_ms is not None, flags(mine)
        assert torch.allclose(y, 0.5 * x + 1), f"axpy {n}: the output"
        same = kbench.do_bench(on_current, return_mode="median")
        try:
            from triton.testing import do_bench

            theirs = do_bench(on_current, return_mode="median")
        except ImportError:
            theirs = float("nan")
        found.append([1e3 * mine.time_ms, 1e3 * same, 1e3 * theirs, on_current])
    return [us + [by_profiler(call)] for *us, call in found]  # last: what it leaves slows no other


def times_from_c(library, files):
    """Medians of processes by each: from one to the next the same kernel is up to 0.3 us apart, by either."""
    runs = [json.load(open(file)) for file in files]
    sizes = [r["params"]["n"] for r in runs[0]]
    mine = []
    for _ in runs:
        words = [sys.executable, __file__, "--times", library, *map(str, sizes)]
        mine.append(json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout))
    heads = f"{'n':>10} {'C us':>9} {'Python us':>10} {'do_bench us':>12} {'triton us':>10} {'profiler us':>12}"
    print(heads + "   each process: C, Python")
    for i, n in enumerate(sizes):
        of_c, of_python = [1e3 * run[i]["time_ms"] for run in runs], [run[i][0] for run in mine]
        others = ([run[i][k] for run in mine] for k in (1, 2, 3))
        c, p, same, theirs, traced = map(statistics.median, (of_c, of_python, *others))
        check(f"axpy {n}: Python {p:.3f} us, C {c:.3f} us", abs(p - c) <= max(0.15, 0.01 * c), (of_c, of_python))
        check(f"axpy {n}: do_bench {same:.3f} us, C {c:.3f} us", abs(same - c) <= max(0.15, 0.01 * c))
        each = ", ".join(" ".join(f"{v:.3f}" for v in of) for of in (of_c, of_python))
        print(f"{n:10} {c:9.3f} {p:10.3f} {same:12.3f} {theirs:10.3f} {traced:12.3f}   {each}")


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
    print(f"equal functions: {different} of {n} called different")
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
    if sys.argv[1] == "--times":
        json.dump(times(sys.argv[2], [int(n) for n in sys.argv[3:]]), sys.stdout)
        return
    times_from_c(sys.argv[1], sys.argv[2:])
    contests()
    words()
    print(f"{passed} passed, {failed} failed")


main()
