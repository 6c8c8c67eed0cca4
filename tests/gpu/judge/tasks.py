# SPDX-License-Identifier: MIT OR Unlicense
"""Tasks for the judge over tensors: references, and inputs by name. Those of a GPU lie on it."""

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = 1 if DEVICE == "cuda" else 4  # sizes over this
_generator = torch.Generator().manual_seed(1)


def _normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=_generator).to(dtype).to(DEVICE)


def _whole(high, *shape):
    return torch.randint(0, high, shape, generator=_generator, dtype=torch.int32).to(DEVICE)


def dense(x, w, b):
    return x @ w + b


def dense_f16(x, w, b):
    return x @ w + b


def residual(x):
    return x + 1e-3 * torch.tanh(x)


def softmax(x):
    return torch.softmax(x, -1)


def layernorm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b, 1e-5)


def rmsnorm(x, w):
    return F.rms_norm(x, (x.shape[-1],), w, 1e-5)


def add(a, b):
    return a + b


def mul(a, b):
    return a * b


def relu(x):
    return F.relu(x)


def gelu(x):
    return F.gelu(x)


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def silu(x):
    return F.silu(x)


def transpose(x):
    return x.t().contiguous()


def matmul(a, b):
    return a @ b


def embedding(w, ids):
    return F.embedding(ids, w)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def reversed_view(x):
    return x.t()


def add_in_place(x, y):
    x += y


_rows = (_normal(1024 // SMALL, 1024 // SMALL),)
_heads = [_normal(2, 4, 256 // SMALL, 64, dtype=torch.bfloat16) for _ in range(3)]
_columns = _rows[0].shape[1]
_dense = [_normal(512 // SMALL, 768 // SMALL), _normal(768 // SMALL, 640 // SMALL), _normal(640 // SMALL)]
INPUTS = {
    "dense": tuple(_dense),
    "dense_f16": tuple(t.half() for t in _dense),
    "residual": _rows,
    "softmax": _rows,
    "layernorm": (_rows[0], _normal(_columns), _normal(_columns)),
    "rmsnorm": (_rows[0], _normal(_columns)),
    "add": (_rows[0], _normal(*_rows[0].shape)),
    "mul": (_rows[0], _normal(*_rows[0].shape)),
    "relu": _rows,
    "gelu": _rows,
    "gelu_tanh": _rows,
    "silu": _rows,
    "transpose": _rows,
    "matmul": tuple(_dense[:2]),
    "embedding": (_normal(1000, 256), _whole(1000, 2048)),
    "attention": tuple(_heads),
    "reversed_view": _rows,
    "add_in_place": (_rows[0], _normal(*_rows[0].shape)),
}
