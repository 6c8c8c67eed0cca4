# SPDX-License-Identifier: MIT OR Unlicense
"""Times from Python on a GPU, for make smoke-gpu: python_times.py LIBRARY COLD_MS HOT_MS.

LIBRARY contains launch_scale (scale.cu). The arguments after LIBRARY are the times that a C program measured for
the kernel of scale.cu.
"""
import ctypes
import sys

import kbench

failed = False


def say(word, what, detail):
    global failed
    failed |= word == "FAIL"
    print(f"{word}  {what:<30} {detail}", flush=True)


def judge(what, record, near=None, share=0.1):
    """Reports "pass" if the record has a time and, if `near` is given, that time differs from `near` by at most
    `share`."""
    ms = record.time_ms
    if ms is None:
        return say("FAIL", what, f"{record.status} {record.flags} {record.message}")
    if near and abs(ms / near - 1) > share:
        return say("FAIL", what, f"{1e3 * ms:.2f} us; the C program read {1e3 * near:.2f} us")
    say("pass", what, f"{1e3 * ms:.2f} us")


n, (library, *near) = 1 << 22, sys.argv[1:]
cold, hot = (float(ms) if ms else None for ms in near)
launch = ctypes.CDLL(library).launch_scale
launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
cuda, x, y = kbench._library().handle, ctypes.c_void_p(), ctypes.c_void_p()
for p in (x, y):
    assert cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4 * n)) == 0
    assert cuda.cudaMemset(p, 0, ctypes.c_size_t(4 * n)) == 0


def scale(stream):
    launch(x, y, n, stream)


for mode, ms, share in ("cold", cold, 0.1), ("hot", hot, 0.1), ("graph", hot, 0.3):
    judge(f"Python, mode {mode}", kbench.time(scale, mode=mode, bytes=8.0 * n, max_time=0.3), ms, share)
try:
    import torch
except ImportError:
    say("skip", "Python, PyTorch", "PyTorch is not installed")
else:
    a, b = torch.randn(2, n, device="cuda")
    same = kbench.compare({"add": lambda a, b: a + b, "sum": lambda a, b: b + a}, (a, b), check="add", max_time=0.3)
    for record in same:
        judge(f"Python, PyTorch {record.implementation}", record)
sys.exit(failed)
