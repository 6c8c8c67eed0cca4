# SPDX-License-Identifier: MIT OR Unlicense
"""kbench.py on a GPU with PyTorch: python.py LIBRARY C.json...

LIBRARY has launch_axpy (tests/gpu/python_kernel.cu). Each C.json has the cold records of one process of the C program.
Prints FAIL lines, a table of the times that each harness measures for the same kernel, and ends with "N passed, N
failed". python.py --times LIBRARY N...: the times of one process for that table; --plain: of one without PyTorch.
"""
import ctypes
import json
import statistics
import subprocess
import sys

import kbench

if "--plain" not in sys.argv:
    import torch

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


def times_plain(library, sizes):
    """us by kbench.time for each size, in memory of cudaMalloc."""
    launch, cuda, found = launcher(library), kbench._library().handle, []
    for n in sizes:
        x, y = ctypes.c_void_p(), ctypes.c_void_p()
        for p in (x, y):
            assert cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4 * n)) == 0
            assert cuda.cudaMemset(p, 0, ctypes.c_size_t(4 * n)) == 0
        mine = kbench.time(lambda stream, x=x, y=y, n=n: launch(x, y, n, stream), bytes=8.0 * n)
        assert mine.time_ms is not None, flags(mine)
        found.append(1e3 * mine.time_ms)
    return found


def by_profiler(call, name="axpy"):
    """us of the kernels with this name by torch.profiler (CUPTI), each after a write of 256 MiB."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    other = torch.empty(1 << 26, device="cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(40):
            other.zero_()
            call()
        torch.cuda.synchronize()
    kernels = {}
    for e in seen.events():
        if e.device_type == DeviceType.CUDA and name in e.name:
            kernels.setdefault(e.name, []).append(e.time_range.elapsed_us())
    return sum(map(statistics.median, kernels.values()))


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
        theirs = kbench.do_bench.last[1] if kbench.do_bench.last else float("nan")
        found.append([1e3 * mine.time_ms, 1e3 * same, 1e3 * theirs, on_current])
    # the profiler runs last, because it slows the other harnesses
    return [us + [by_profiler(call)] for *us, call in found]


def times_from_c(library, files):
    """Returns the medians over processes for each harness. In each harness, the time of one kernel differs by up
    to 0.3 us between processes."""
    runs = [json.load(open(file)) for file in files]
    sizes = [r["params"]["n"] for r in runs[0]]
    of_process = {"--plain": [], "--times": []}
    for _ in runs:
        for how, found in of_process.items():
            words = [sys.executable, __file__, how, library, *map(str, sizes)]
            found.append(json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout))
    heads = ("C us", "Python", "+ torch", "do_bench", "triton", "profiler")
    print(f"{'n':>10}" + "".join(f"{head:>10}" for head in heads) +
          "   times of each process: in C, in Python, in Python with torch")
    for i, n in enumerate(sizes):
        of_c, of_python = [1e3 * run[i]["time_ms"] for run in runs], [run[i] for run in of_process["--plain"]]
        beside = [[run[i][k] for run in of_process["--times"]] for k in range(4)]
        c, p, *others = map(statistics.median, (of_c, of_python, *beside))
        torch_us, same = others[:2]
        near = lambda us, want: abs(us - want) <= max(0.15, 0.01 * want)
        check(f"axpy {n}: Python {p:.3f} us, C {c:.3f} us", near(p, c), (of_c, of_python))
        for what, us in (("kbench.time", torch_us), ("kbench.do_bench", same)):
            check(f"axpy {n}: {what} beside PyTorch {us:.3f} us, C {c:.3f} us", near(us, c), (of_c, beside))
        each = ", ".join(" ".join(f"{v:.3f}" for v in of) for of in (of_c, of_python, beside[0]))
        print(f"{n:10}" + "".join(f"{us:10.3f}" for us in (c, p, *others)) + f"   {each}")


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
        for mode in 3 * ("cold", "hot"):
            a, b, c = kbench.compare({"one": f, "two": f, "three": f}, (x, w), name=name, mode=mode, max_time=0.3,
                                     check="one")
            for r in (a, b, c):
                check(f"{name} {mode}: a time", r.time_ms is not None, flags(r))
                check(f"{name} {mode}: verified", r.verified, flags(r))
            for r in (b, c):
                n += 1
                different += r.verdict in ("FASTER", "SLOWER")
    print(f"equal functions: {different} of {n} comparisons report a difference")
    check(f"equal functions: {different} of {n} comparisons report a difference", n == 60 and different <= 0.05 * n)
    slow = kbench.compare({"once": lambda x: torch.add(x, 1, out=out),
                           "twice": lambda x: (torch.add(x, 1, out=out), torch.add(x, 1, out=out))[1]}, (x,))
    check("twice the work is SLOWER", slow[1].verdict == "SLOWER", flags(slow[1]))


def backward():
    """PyTorch runs a backward pass on the stream of its forward pass. Stream capture rejects a backward pass on
    another stream, but kbench must measure its time."""
    x, w, b = (torch.randn(*size, device="cuda", requires_grad=True) for size in ((2048, 1024), (1024,), (1024,)))
    dy, side = torch.randn(2048, 1024, device="cuda"), torch.cuda.Stream()
    norm = lambda: torch.nn.functional.layer_norm(x, (1024,), w, b)
    y = norm()
    with torch.cuda.stream(side):
        of_side = norm()
    torch.cuda.synchronize()
    grads = lambda: torch.autograd.grad(y, (x, w, b), dy, retain_graph=True)
    want = by_profiler(grads, "norm") + by_profiler(grads, "GammaBeta")
    outs = {"": (y, [x, w, b]), " that adds up": (y, None), " of a side stream": (of_side, [x, w, b])}
    for what, (out, leaves) in outs.items():
        ms = kbench.do_bench(lambda: out.backward(dy, retain_graph=True), grad_to_none=leaves, return_mode="median")
        print(f"backward of layer_norm{what}: {1e3 * ms:.2f} us, its kernels {want:.2f}, triton {kbench.do_bench.last}")
        check(f"backward{what}: {1e3 * ms:.2f} us, its kernels {want:.2f}", 0.8 * want < 1e3 * ms < 2 * want + 10)
        for v in (x, w, b):
            v.grad = None
    r = kbench.compare({"backward": lambda: y.backward(dy, retain_graph=True)})[0]
    check("backward: the message", "stream of the forward pass" in (r.message or ""), flags(r))
    r = kbench.compare({"grad": grads})[0]
    check("backward: no gradient is accumulated", "stream of the forward pass" in (r.message or ""), flags(r))
    fresh = torch.randn(2048, 1024, device="cuda", requires_grad=True)

    def all_of_it(x):  # forward and backward run on kbench's stream, so the function is inspected
        return torch.autograd.grad(torch.nn.functional.layer_norm(x, (1024,)), x, dy)[0]

    r = kbench.compare({"all of it": all_of_it}, (fresh,))[0]
    good = r.time_ms is not None and "stream of the forward pass" not in (r.message or "")
    check("forward and backward in one function", good and "not inspected" not in (r.message or ""), flags(r))


def words():
    x, out = torch.randn(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    host, pinned = torch.empty(1 << 20), torch.empty(1 << 20, pin_memory=True)
    side, cuda = torch.cuda.Stream(), kbench._library().handle

    def waits(x):
        y = x * 2
        torch.cuda.synchronize()
        return y

    def item(x):
        return x.sum().item()

    def copies(x, stream):
        to, of, on = (ctypes.c_void_p(p) for p in (pinned.data_ptr(), x.data_ptr(), stream))
        cuda.cudaMemcpyAsync(to, of, ctypes.c_size_t(x.numel() * x.element_size()), 2, on)
        return torch.add(x, 1, out=out)

    def copies_by_torch(x):
        host.copy_(x)
        return x + 1

    def mallocs(x):
        p = ctypes.c_void_p()
        cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20))
        y = torch.add(x, 1, out=out)
        cuda.cudaFree(p)
        return y

    def mallocs_async(x, stream):
        p = ctypes.c_void_p()
        cuda.cudaMallocAsync(ctypes.byref(p), ctypes.c_size_t(1 << 20), ctypes.c_void_p(stream))
        y = torch.add(x, 1, out=out)
        cuda.cudaFreeAsync(p, ctypes.c_void_p(stream))
        return y

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
                    (copies, "TRANSFER"), (mallocs, "SYNC_INSIDE"), (mallocs_async, "ALLOC_INSIDE")):
        r = kbench.compare({f.__name__: f}, (x,))[0]
        check(f"{f.__name__}: {want}", r.time_ms is None and any(w in r.flags for w in want.split()), flags(r))
    # torch may raise an error before kbench detects the copy; the message then quotes torch's error
    r = kbench.compare({"copies_by_torch": copies_by_torch}, (x,))[0]
    said = "TRANSFER" in r.flags or "SYNC_INSIDE" in r.flags or "Cannot copy between CPU and CUDA" in (r.message or "")
    check("copies_by_torch", r.time_ms is None and said, flags(r))
    bad = kbench.compare({"right": right, "wrong": wrong}, (x,), check="right")
    check("a wrong result", bad[1].time_ms is None and "VERIFY_FAIL" in bad[1].flags, flags(bad[1]))
    check("a right function has a time", bad[0].time_ms is not None and bad[0].verified, flags(bad[0]))
    said = "allocates 1 block by torch's caching allocator" in (bad[0].message or "")
    check("the message names the allocation", said, flags(bad[0]))
    r = kbench.time(lambda x: torch.add(x, 1, out=out), x)
    check("a function that allocates nothing", r.time_ms is not None and "allocates" not in (r.message or ""), flags(r))


def main():
    if sys.argv[1] in ("--times", "--plain"):
        of = times if sys.argv[1] == "--times" else times_plain
        json.dump(of(sys.argv[2], [int(n) for n in sys.argv[3:]]), sys.stdout)
        return
    times_from_c(sys.argv[1], sys.argv[2:])
    contests()
    backward()
    words()
    print(f"{passed} passed, {failed} failed")


main()
