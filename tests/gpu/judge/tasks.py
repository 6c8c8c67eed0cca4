# SPDX-License-Identifier: MIT OR Unlicense
"""Tasks for the judge with tensors: references, and inputs by name."""

import torch
import torch.nn.functional as F


def dense(x, w, b):
    return x @ w + b


def dense_f16(x, w, b):
    return x @ w + b


def residual(x):
    return x + 1e-3 * torch.tanh(x)


def residual_slowly(x):
    for _ in range(50):
        y = residual(x)
    return y


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


def matmul_bf16(a, b):
    return a @ b


def div(a, b):
    return a / b


def total(x):
    return x.sum()


def mse(x, y):
    return F.mse_loss(x, y)


def weighted_sum(x, w):
    return x @ w


def reversed_view(x):
    return x.t()


def add_in_place(x, y):
    x += y


def extremes(x):
    return torch.amin(x, -1), torch.amax(x, -1)


def with_its_double(x):
    return x.clone(), 2 * x


def centred(x):
    mean = (x if x.dtype == torch.float64 else x.float()).mean(-1)
    return (x - mean.unsqueeze(-1)).to(x.dtype), mean


def _made():
    """Returns the inputs of all tasks. One random generator makes all inputs, so code for a new input must follow
    the code for all existing inputs."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    small = 1 if device == "cuda" else 4  # sizes are divided by this number
    generator = torch.Generator().manual_seed(1)

    def normal(*shape, dtype=torch.float32):
        return torch.randn(*shape, generator=generator).to(dtype).to(device)

    rows = normal(1024 // small, 1024 // small)
    heads = tuple(normal(2, 4, 256 // small, 64, dtype=torch.bfloat16) for _ in range(3))
    dense = (normal(512 // small, 768 // small), normal(768 // small, 640 // small), normal(640 // small))
    other, w, b = normal(*rows.shape), normal(rows.shape[1]), normal(rows.shape[1])
    ids = torch.randint(0, 1000, (2048,), generator=generator, dtype=torch.int32).to(device)
    alone = ("residual", "residual_slowly", "softmax", "relu", "gelu", "gelu_tanh", "silu", "transpose", "total")
    alone += ("extremes", "with_its_double")
    made = {task: (rows,) for task in alone}
    made.update({task: (rows, other) for task in ("add", "mul", "div", "mse", "add_in_place")})
    made.update(reversed_view=(rows,), layernorm=(rows, w, b), rmsnorm=(rows, w), attention=heads)
    made.update(dense=dense, dense_f16=tuple(t.half() for t in dense), matmul=dense[:2])
    made.update(matmul_bf16=tuple(t.bfloat16() for t in dense[:2]), weighted_sum=(rows, w))
    made.update(embedding=(normal(1000, 256), ids), centred=(rows.bfloat16(),))
    return made


class _Inputs(dict):
    """The inputs are made on first use, so that importing tasks.py does not touch the GPU."""

    def __missing__(self, task):
        self.update(_made())
        return dict.__getitem__(self, task)


INPUTS = _Inputs()
