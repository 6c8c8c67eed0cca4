# SPDX-License-Identifier: MIT OR Unlicense
"""Compares layernorm, rmsnorm and softmax with PyTorch and Triton at random shapes.

    python3 tests/gpu/norms.py LIBRARY... [--seed 1] [--shapes 16 | 128x8192xf32,...] [--op layernorm,rmsnorm]

LIBRARY is a library of kernels that `nvcc -shared -DKBENCH_SHARED` made (see kbench_kernels.cuh). The library that
is given first is compared with its peers: PyTorch's function, and Triton with 8, 16 and 32 elements per thread. If
more libraries are given, their times are printed next to the times of the first library. A time is the median
duration of the kernels in torch.profiler's trace, after a flush of the L2 cache; implementations are interleaved.
The timed kernels do not write mean and rstd, as in inference. The ratio is the time of the fastest peer divided by
the time of the fastest variant. The exit code is 1 if a result is wrong, and 77 without a GPU that PyTorch can use
or without Triton."""
import argparse
import ctypes
import math
import os
import random
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python"))
VARIANTS = {"layernorm": "onepass persist cluster", "rmsnorm": "onepass persist cluster",
            "softmax": "onepass shared cluster", "softmax/bwd": "onepass shared cluster"}
# largest allowed norm of the error, relative to the norm of the result
BOUNDS = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}
try:
    import kbench_kernels as library_api
    import torch
    import torch.nn.functional as F
    import triton
    import triton.language as tl
    if not torch.cuda.is_available():
        raise ImportError("PyTorch sees no GPU")
except ImportError as error:
    print("SKIP: %s" % error)
    sys.exit(77)


@triton.jit
def layernorm_kernel(x, w, b, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    weight, bias = tl.load(w + c, mask=c < C, other=0.0), tl.load(b + c, mask=c < C, other=0.0)
    v = tl.load(x + r * C + c, mask=c < C, other=0.0).to(tl.float32)
    d = tl.where(c < C, v - tl.sum(v, 0) / C, 0.0)
    tl.store(y + r * C + c, d * tl.rsqrt(tl.sum(d * d, 0) / C + 1e-5) * weight + bias, mask=c < C)


@triton.jit
def rmsnorm_kernel(x, w, b, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    weight = tl.load(w + c, mask=c < C, other=0.0)
    v = tl.load(x + r * C + c, mask=c < C, other=0.0).to(tl.float32)
    tl.store(y + r * C + c, v * tl.rsqrt(tl.sum(v * v, 0) / C + 1e-5) * weight, mask=c < C)


@triton.jit
def softmax_kernel(x, w, b, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * C + c, mask=c < C, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + r * C + c, e / tl.sum(e, 0), mask=c < C)


@triton.jit
# argument x holds dy, and argument w holds the output of softmax
def softmax_bwd_kernel(x, w, b, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * C + c, mask=c < C, other=0.0).to(tl.float32)
    p = tl.load(w + r * C + c, mask=c < C, other=0.0).to(tl.float32)
    tl.store(y + r * C + c, p * (v - tl.sum(v * p, 0)), mask=c < C)


@triton.jit
def flush_kernel(p, n, WRITE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * 4096 + tl.arange(0, 4096)
    if WRITE:
        tl.store(p + i, i.to(tl.int32), mask=i < n)
    else:
        v = tl.sum(tl.load(p + i, mask=i < n, other=0), 0)
        tl.store(p, v, mask=v == -1)  # never stores, because the numbers are not negative


class Case:

    def __init__(self, op, rows, cols, dtype, libraries):
        self.op, self.dtype = op, dtype
        kind = getattr(torch, library_api._LONG[dtype])
        make = lambda *s: torch.randn(s, device="cuda").to(kind)
        self.x, self.w, self.b = make(rows, cols), make(cols), make(cols)
        self.y = torch.empty_like(self.x)
        self.mean, self.rstd = torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda")
        x, w, b, y = self.x, self.w, self.b, self.y
        wide = x.double()
        if op == "softmax/bwd":
            w = self.w = torch.softmax(make(rows, cols), -1)
            self.want = w.double() * (wide - (wide * w.double()).sum(1, keepdim=True))
            peer = lambda: torch.ops.aten._softmax_backward_data(x, w, -1, kind)
        elif op == "softmax":
            self.want, peer = torch.softmax(wide, -1), lambda: torch.softmax(x, -1)
        elif op == "layernorm":
            self.want = F.layer_norm(wide, (cols,), w.double(), b.double(), 1e-5)
            peer = lambda: F.layer_norm(x, (cols,), w, b, 1e-5)
        else:
            self.want = F.rms_norm(wide, (cols,), w.double(), 1e-5)
            peer = lambda: F.rms_norm(x, (cols,), w, 1e-5)
        self.moments = (wide.mean(1), (wide.var(1, correction=0) + 1e-5).rsqrt(), (wide.square().mean(1) + 1e-5).rsqrt())
        self.run, self.wrong = {"torch": peer}, []
        kernel, block = globals()[op.replace("/", "_") + "_kernel"], triton.next_power_of_2(cols)
        for warps in sorted({min(32, max(1, block // n)) for n in (256, 512, 1024)}):  # 8 to 32 elements per thread
            self.run["triton%d" % warps] = lambda n=warps: (
                kernel[(rows,)](x, w, b, y, cols, BLOCK=block, num_warps=n), y)[1]
        for number, library in enumerate(libraries):
            for variant in VARIANTS[op].split():
                name = variant + "'" * number
                self.run[name] = self.own(library, variant, name)

    def own(self, library, variant, name):
        args, row = library_api._Args(), library.rows[(*(self.op + "/fwd").split("/")[:2], variant)]
        args.s.rows, args.s.cols = self.x.shape
        for k, tensor in enumerate({"softmax": (self.x,), "layernorm": (self.x, self.w, self.b)}.get(
                self.op, (self.x, self.w))):
            args.inputs[k] = tensor.data_ptr()
        args.outputs[0] = self.y.data_ptr()
        places = {"layernorm": (self.mean, self.rstd), "rmsnorm": (self.rstd,)}.get(self.op, ())

        def launch():
            why = library.kbk_row_launch(row, library_api._DTYPES.index(self.dtype), ctypes.byref(args), 0,
                                         torch.cuda.current_stream().cuda_stream)
            if why:
                raise RuntimeError("%s %s: %s" % (self.op, name, why.decode()))
            return self.y

        for k, place in enumerate(places):
            args.outputs[1 + k] = place.data_ptr()
        for tensor in (self.y, self.mean, self.rstd):
            tensor.fill_(float("nan"))
        launch()
        got = {id(self.mean): self.moments[0], id(self.rstd): self.moments[2 if self.op == "rmsnorm" else 1]}
        for place in places:
            self.compare(name + " moments", place, got[id(place)], 1e-5)
        self.compare(name, self.y, self.want, BOUNDS[self.dtype])
        for k, place in enumerate(places):
            args.outputs[1 + k] = None
            place.fill_(7)
        self.y.fill_(float("nan"))
        launch()
        self.compare(name + " without moments", self.y, self.want, BOUNDS[self.dtype])
        if any(bool((place != 7).any()) for place in places):
            self.wrong.append(name + " writes mean or rstd although their pointers are NULL")
        return launch

    def compare(self, name, got, want, bound):
        off = float((got.double() - want).norm() / want.norm().clamp_min(1e-30))
        if not off <= bound:
            self.wrong.append("%s: the relative norm of the error is %.2g, above %.2g" % (name, off, bound))


def times_of(case, flush, rounds):
    names = list(case.run)
    grid = (triton.cdiv(flush.numel(), 4096),)
    order = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        for _ in range(rounds):
            for name in random.sample(names, len(names)):
                flush_kernel[grid](flush, flush.numel(), WRITE=True)
                # the second flush only reads, so that the cache holds no dirty lines
                flush_kernel[grid](flush, flush.numel(), WRITE=False)
                case.run[name]()
                order.append(name)
        torch.cuda.synchronize()
    kernels = sorted((e for e in trace.events() if e.device_type == torch.autograd.DeviceType.CUDA),
                     key=lambda e: e.time_range.start)
    spans, after_flush = [], False
    for e in kernels:
        if "flush_kernel" in e.name:
            after_flush = True
        else:
            if after_flush:
                spans.append(0.0)
            spans[-1] += e.time_range.end - e.time_range.start
            after_flush = False
    if len(spans) != len(order):
        raise RuntimeError("the trace has %d launches instead of %d" % (len(spans), len(order)))
    return {n: statistics.median(s for s, o in zip(spans, order) if o == n) for n in names}


def drawn(count, seed):
    """Returns random shapes with few rows, or in f32. Half of the lengths are multiples of 256, the others
    multiples of 8."""
    draw, shapes = random.Random(seed), []
    while len(shapes) < count:
        rows, cols = int(2 ** draw.uniform(3, 13)), int(2 ** draw.uniform(8, 15))
        step = draw.choice((8, 256))
        cols, dtype = max(step, cols // step * step), draw.choice(("f32", "f32", "bf16"))
        if rows * cols <= 1 << 24:
            shapes.append((rows, cols, dtype))
    return shapes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("libraries", nargs="+", metavar="LIBRARY")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shapes", default="16")
    parser.add_argument("--op", default="layernorm,rmsnorm")
    parser.add_argument("--rounds", type=int, default=15)
    o = parser.parse_args()
    libraries = [library_api._Library(os.path.abspath(path)) for path in o.libraries]
    shapes = drawn(int(o.shapes), o.seed) if o.shapes.isdigit() else [
        (int(s.split("x")[0]), int(s.split("x")[1]), s.split("x")[2]) for s in o.shapes.split(",")]
    flush = torch.empty(1 << 26, dtype=torch.int32, device="cuda")
    ratios, wrong = {}, 0
    print("%s, PyTorch %s, Triton %s; seed %d; us" % (torch.cuda.get_device_name(), torch.__version__,
                                                      triton.__version__, o.seed))
    for op in o.op.split(","):
        for rows, cols, dtype in shapes:
            torch.manual_seed(o.seed)
            case = Case(op, rows, cols, dtype, libraries)
            for text in case.wrong:
                print("FAIL: %s %dx%d %s: %s" % (op, rows, cols, dtype, text))
            wrong += len(case.wrong)
            for run in case.run.values():
                run()
            us = times_of(case, flush, o.rounds)
            best = lambda names: min(names, key=lambda n: us[n])
            peer, own = best([n for n in us if "tor" in n or "tri" in n]), best(VARIANTS[op].split())
            ratios[op, rows, cols, dtype] = us[peer] / us[own]
            print("%-11s %5d x %-5d %-4s %5.2f  best %s %.2f, peer %s %.2f;  %s" % (
                op, rows, cols, dtype, us[peer] / us[own], own, us[own], peer, us[peer],
                " ".join("%s %.2f" % (n, t) for n, t in us.items())), flush=True)
    for op in o.op.split(","):
        mine = {k: r for k, r in ratios.items() if k[0] == op}
        worst = min(mine, key=lambda k: mine[k])
        print("%s: geometric mean of the ratios %.3f, worst %.3f at %dx%d %s, %d of %d below 1.00" % (
            op, math.exp(statistics.mean(math.log(r) for r in mine.values())), mine[worst], *worst[1:],
            sum(r < 0.995 for r in mine.values()), len(mine)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
