# SPDX-License-Identifier: MIT OR Unlicense
"""The library's operations, written in PyTorch differently than in operations.py; the judge must accept each."""

import math

import torch
import torch.nn.functional as F
from operations import EPS, STRIDE, VOCABULARY, HOPS, dropout_fwd as _mask_of, wide


def copy_run(x):
    return torch.empty_like(x).copy_(x)


def d2d_run(x):
    return x + 0


def fill_run(y):
    y.copy_(torch.ones_like(y))


def read_run(x):
    """Returns the XOR of all elements: bit i of the result is 1 if bit i is 1 in an odd number of elements."""
    bits = x.float().contiguous().view(torch.int32).reshape(-1, 1)
    odd = ((bits >> torch.arange(32, device=x.device)) & 1).sum(0) & 1
    value = (odd << torch.arange(32, device=x.device)).sum()
    return torch.where(value >= 1 << 31, value - (1 << 32), value).int()


def triad_run(a, b):
    return (wide(a) + 3 * wide(b)).to(a.dtype)


def strided_run(x):
    return x.reshape(-1, STRIDE)[:, 0].clone()


def gather_run(x, idx):
    return torch.index_select(x, 0, idx)


def chase_run(x):
    near = x
    for _ in range(int(math.log2(HOPS))):
        near = torch.gather(near, 0, near.long())
    return torch.cat([torch.full_like(near[:1], HOPS), near[:1]])


def transpose_run(x):
    return torch.empty(x.shape[::-1], dtype=x.dtype, device=x.device).copy_(x.T)


def add_fwd(a, b):
    return torch.sub(a, -b)


def mul_fwd(a, b):
    return torch.addcmul(torch.zeros_like(a), a, b)


def div_fwd(a, b):
    return (wide(a) / wide(b)).to(a.dtype)


def relu_fwd(x):
    return x.clamp(min=0)


def gelu_erf_fwd(x):
    return (0.5 * wide(x) * torch.erfc(-wide(x) * math.sqrt(0.5))).to(x.dtype)


def gelu_erf_bwd(dy, x):
    v = x.detach().float().requires_grad_()
    (dx,) = torch.autograd.grad(F.gelu(v), v, dy.float())
    return dx.to(x.dtype)


def gelu_tanh_fwd(x):
    v = wide(x)
    return (0.5 * v * (1 + torch.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))).to(x.dtype)


def gelu_tanh_bwd(dy, x):
    v = x.detach().float().requires_grad_()
    (dx,) = torch.autograd.grad(F.gelu(v, approximate="tanh"), v, dy.float())
    return dx.to(x.dtype)


def silu_fwd(x):
    return (wide(x) * torch.sigmoid(wide(x))).to(x.dtype)


def silu_bwd(dy, x):
    s = torch.sigmoid(wide(x))
    return (wide(dy) * s * (1 + wide(x) * (1 - s))).to(x.dtype)


def dropout_fwd(x):
    return _mask_of(x.reshape(-1)).reshape(x.shape)


def dropout_bwd(dy):
    return dropout_fwd(dy)


def softmax_fwd(x):
    e = torch.exp(wide(x) - wide(x).amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)


def softmax_bwd(dy, y):
    weighed = wide(dy) * wide(y)
    return (weighed - wide(y) * weighed.sum(-1, keepdim=True)).to(dy.dtype)


def layernorm_fwd(x, w, b):
    mean = wide(x).mean(-1)
    centred = wide(x) - mean.unsqueeze(-1)
    rstd = torch.rsqrt(centred.square().mean(-1) + EPS)
    return (centred * rstd.unsqueeze(-1) * wide(w) + wide(b)).to(x.dtype), mean, rstd


def layernorm_bwd(dy, x, w, mean, rstd):
    g, xhat = wide(dy) * wide(w), (wide(x) - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)
    dx = (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True)) * rstd.unsqueeze(-1)
    return tuple(v.to(x.dtype) for v in (dx, (wide(dy) * xhat).sum(0), wide(dy).sum(0)))


def rmsnorm_fwd(x, w):
    rstd = (wide(x).square().sum(-1) / x.shape[-1] + EPS).pow(-0.5)
    return (wide(x) * (rstd.unsqueeze(-1) * wide(w))).to(x.dtype), rstd


def rmsnorm_bwd(dy, x, w, rstd):
    g, r = wide(dy) * wide(w), rstd.unsqueeze(-1)
    dx = r * g - wide(x) * r**3 * (g * wide(x)).mean(-1, keepdim=True)
    return dx.to(x.dtype), torch.einsum("rc,rc,r->c", wide(dy), wide(x), rstd).to(x.dtype)


def cross_entropy_fwd(x, t):
    return F.cross_entropy(wide(x), t.long(), reduction="none"), torch.logsumexp(wide(x), -1)


def cross_entropy_bwd(x, t, lse, g):
    p = torch.exp(wide(x) - lse.unsqueeze(-1))
    return (g * p.scatter_add(-1, t.long().unsqueeze(-1), -torch.ones_like(lse).unsqueeze(-1))).to(x.dtype)


def cross_entropy_fwdbwd(x, t):
    v = x.detach().float().requires_grad_()
    loss = F.cross_entropy(v, t.long(), reduction="none")
    (dx,) = torch.autograd.grad(loss.sum(), v)
    return loss.detach(), dx.to(x.dtype)


def sum_run(x):
    return wide(x).sum(-1).sum()


def mse_fwd(x, y):
    return (wide(x) - wide(y)).square().mean()


def mse_bwd(x, y, g):
    return (2 * g / x.numel() * (wide(x) - wide(y))).to(x.dtype)


def weighted_sum_fwd(x, w):
    return (wide(x) * wide(w)).sum(-1).to(x.dtype)


def weighted_sum_bwd(dy, x, w):
    return dy.unsqueeze(-1) * w, (wide(dy).unsqueeze(-1) * wide(x)).sum(0).to(x.dtype)


def embedding_fwd(w, ids):
    return w.index_select(0, ids)


def embedding_bwd(dy, ids):
    sums = torch.zeros(VOCABULARY, dy.shape[1], dtype=torch.float32, device=dy.device)
    return sums.index_add_(0, ids, dy.float()).to(dy.dtype)


def matmul_fwd(a, b):
    return (b.t() @ a.t()).t().contiguous()


def bmm_fwd(a, b):
    return torch.einsum("zmk,zkn->zmn", a, b)


def matmul_e4m3_fwd(a, b, sa, sb):
    return ((a.float() * sa) @ (b.float() * sb).t()).bfloat16()


def attention_fwd(q, k, v):
    scores = wide(q) @ wide(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (torch.softmax(scores, -1) @ wide(v)).to(q.dtype), torch.logsumexp(scores, -1)


def attention_bwd(do, q, k, v, o, lse):
    """Computes the gradients for one block of queries after another."""
    dq, dk, dv = (torch.zeros_like(x, dtype=torch.promote_types(x.dtype, torch.float32)) for x in (q, k, v))
    root, keys, values = math.sqrt(q.shape[-1]), wide(k), wide(v)
    for i in range(0, q.shape[-2], 64):
        at = [wide(x[..., i : i + 64, :]) for x in (do, q, o)]
        share = torch.einsum("zhqd,zhkd->zhqk", at[1], keys).div(root).sub(lse[..., i : i + 64, None]).exp()
        dv += torch.einsum("zhqk,zhqd->zhkd", share, at[0])
        lost = torch.einsum("zhqd,zhqd->zhq", at[0], at[2]).unsqueeze(-1)
        ds = share.mul(torch.einsum("zhqd,zhkd->zhqk", at[0], values).sub(lost)).div(root)
        dq[..., i : i + 64, :] = torch.einsum("zhqk,zhkd->zhqd", ds, keys)
        dk += torch.einsum("zhqk,zhqd->zhkd", ds, at[1])
    return tuple(g.to(q.dtype) for g in (dq, dk, dv))
