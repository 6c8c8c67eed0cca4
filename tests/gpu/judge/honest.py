# SPDX-License-Identifier: MIT OR Unlicense
"""Correct functions with tensors and unusual but honest behaviour; the judge must accept each. task: name of the task
that the function solves. bytes=None: the judge computes the rate from the bytes of all inputs and outputs, and
compares this rate with the measured peak."""

import threading

import torch
import torch.nn.functional as F

plans, graphs = {}, {}


def of(task, gpu=False, triton=False, compiled=False, bytes=0):
    def mark(f):
        f.task, f.gpu, f.triton, f.compiled, f.bytes = task, gpu or triton, triton, compiled, bytes
        return f

    return mark


@of("dense", compiled=True, bytes=None)
def addmm(x, w, b):
    return torch.addmm(b, x, w)


@of("dense")
def linear(x, w, b):
    return F.linear(x, w.t(), b)


@of("dense")
def split_sum(x, w, b):
    n = x.shape[1] // 2
    return x[:, :n] @ w[:n] + x[:, n:] @ w[n:] + b


@of("dense_f16")
def f32_accumulator(x, w, b):
    return (x.float() @ w.float() + b.float()).half()


@of("softmax", bytes=None)
def softmax_by_hand(x):
    e = torch.exp(x - x.max(-1, keepdim=True).values)
    return e / e.sum(-1, keepdim=True)


@of("layernorm")
def layernorm_by_hand(x, w, b):
    x = x.float()
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * w + b


@of("gelu")
def gelu_by_hand(x):
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))


@of("attention")
def attention_by_hand(q, k, v):
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)


@of("embedding")
def take(w, ids):
    return w[ids.long()]


@of("reversed_view")
def view(x):
    return x.T


@of("add_in_place")
def in_place(x, y):
    x.add_(y)


@of("extremes")
def with_names(x):
    return torch.aminmax(x, dim=-1)


@of("centred")
def centred_by_hand(x):
    mean = x.float().sum(-1) / x.shape[-1]
    return (x.float() - mean.unsqueeze(-1)).to(x.dtype), mean


@of("dense")
def plans_by_size(x, w, b):
    parts = plans.setdefault(x.shape[1], (0, x.shape[1]))
    return x[:, parts[0] : parts[1]] @ w + b


@of("silu")
def helper_thread(x):
    y = []
    helper = threading.Thread(target=lambda: y.append(torch.sigmoid(x.detach())))
    stream = torch.cuda.current_stream() if x.is_cuda else None
    if stream is not None:
        y.append(torch.sigmoid(x))
    else:
        helper.start()
        helper.join()
    return x * y[0]


@of("dense", gpu=True)
def joined_streams(x, w, b):
    side, here = plans.setdefault("stream", torch.cuda.Stream()), torch.cuda.current_stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        y = x @ w
    here.wait_stream(side)
    return y + b


@of("residual")
def noisy(x):
    print("rows", x.shape[0])
    return torch.add(x, torch.tanh(x), alpha=1e-3)


@of("matmul")
def refuses_odd_sizes(a, b):
    if a.shape[1] % 16:
        raise ValueError("multiples of 16 alone")
    return torch.mm(a, b)


@of("gelu_tanh", gpu=True)
def by_the_compiler(x):
    if "f" not in plans:
        plans["f"] = torch.compile(lambda x: F.gelu(x, approximate="tanh"), dynamic=True)
    return plans["f"](x)


try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton is not None:

    @triton.jit
    def _softmax_kernel(x, y, columns, stride, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        at = tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * columns + at, e / tl.sum(e, 0), mask=at < columns)

    @triton.jit
    def _add_kernel(a, b, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        got = tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n)
        tl.store(y + at, got, mask=at < n)


@of("softmax", triton=True)
def triton_softmax(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    _softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=block)
    return y


@of("add", triton=True, bytes=None)
def triton_add(a, b):
    a, b = a.contiguous(), b.contiguous()
    y = torch.empty_like(a)
    _add_kernel[(triton.cdiv(a.numel(), 1024),)](a, b, y, a.numel(), BLOCK=1024)
    return y
