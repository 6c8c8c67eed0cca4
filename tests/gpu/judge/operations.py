# SPDX-License-Identifier: MIT OR Unlicense
"""Tasks for the judge: the library's operations, written in PyTorch, and the inputs of each operation in each element
type. Each function has the operation's name in the kernel table, such as softmax_fwd."""

import math

import torch
import torch.nn.functional as F

aten = torch.ops.aten
EPS, P, SEED, STRIDE, VOCABULARY, HOPS = 1e-5, 0.1, 42, 2, 1000, 1 << 14
OPTIONS = {  # keyword arguments with which the library's kernels are called
    "dropout_fwd": {"p": P, "seed": SEED},
    "dropout_bwd": {"p": P, "seed": SEED},
    "strided_run": {"stride": STRIDE},
    "embedding_bwd": {"vocabulary": VOCABULARY},
}
# At infinity, the derivative of GELU and of SiLU is 1, but PyTorch computes 0 times infinity, which is NaN. The
# flag NAN_PASS is allowed, so that a candidate may return 1 or NaN for an infinite input.
ALLOWED = {name: ("NAN_PASS",) for name in ("gelu_erf_bwd", "gelu_tanh_bwd", "silu_bwd")}
NOT_JUDGED = {
    "h2d_run": "the input of h2d is on the host, which the judge flags as TRANSFER",
    "d2h_run": "the output of d2h is on the host",
    "alloc_run": "it computes nothing",
    "null_run": "it computes nothing",
}


def wide(x):
    """Returns x in the precision of the computation: f64 if the judge passes f64, otherwise f32."""
    return x if x.dtype == torch.float64 else x.float()


# --- memory ---


def copy_run(x):
    return x.clone()


def d2d_run(x):
    return x.clone()


def fill_run(y):
    y.fill_(1)


def read_run(x):
    bits = x.float().contiguous().view(torch.int32).reshape(-1)
    while bits.numel() > 1:
        half = bits.numel() // 2
        bits = torch.cat([bits[:half] ^ bits[half : 2 * half], bits[2 * half :]])
    return bits.reshape(())


def triad_run(a, b):
    return torch.add(a, b, alpha=3)


def strided_run(x):
    return x[::STRIDE].contiguous()


def gather_run(x, idx):
    return x[idx]


def chase_run(x):
    """Pointer jumping: each iteration doubles the number of hops."""
    jump = x.long()
    for _ in range(int(math.log2(HOPS))):
        jump = jump[jump]
    return torch.stack([torch.full_like(jump[0], HOPS), jump[0]]).int()


def transpose_run(x):
    return x.t().contiguous()


# --- elements ---


def add_fwd(a, b):
    return a + b


def mul_fwd(a, b):
    return a * b


def div_fwd(a, b):
    return a / b


def relu_fwd(x):
    return F.relu(x)


def gelu_erf_fwd(x):
    return F.gelu(x)


def gelu_erf_bwd(dy, x):
    return aten.gelu_backward(dy, x, approximate="none")


def gelu_tanh_fwd(x):
    return F.gelu(x, approximate="tanh")


def gelu_tanh_bwd(dy, x):
    return aten.gelu_backward(dy, x, approximate="tanh")


def silu_fwd(x):
    return F.silu(x)


def silu_bwd(dy, x):
    return aten.silu_backward(dy, x)


def philox(block, key):
    """Returns four random words of 32 bits for each block, made by Philox4x32-10 (Salmon 2011) from the counter
    (block, 0, 1)."""
    low = (1 << 32) - 1
    words = [block & low, block >> 32, torch.zeros_like(block), torch.ones_like(block)]
    keys = [key & low, key >> 32]
    for _ in range(10):
        # >> copies the sign bit of a product into the upper half; the mask removes these copies
        products = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        (high0, low0), (high1, low1) = (((p >> 32) & low, p & low) for p in products)
        words = [high1 ^ words[1] ^ keys[0], low1, high0 ^ words[3] ^ keys[1], low0]
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    return words


def dropout_fwd(x):
    n, least = x.numel(), round(65536 * P)
    words = philox(torch.arange((n + 7) // 8, device=x.device), SEED)
    halves = torch.stack([h for w in words for h in (w & 0xFFFF, w >> 16)], 1).reshape(-1)[:n]
    scale = torch.tensor(65536 / (65536 - least), dtype=torch.float32).item()
    return torch.where(halves.reshape(x.shape) >= least, wide(x) * scale, 0.0).to(x.dtype)


def dropout_bwd(dy):
    return dropout_fwd(dy)


# --- rows ---


def softmax_fwd(x):
    return torch.softmax(x, -1)


def softmax_bwd(dy, y):
    return aten._softmax_backward_data(dy, y, -1, dy.dtype)


def layernorm_fwd(x, w, b):
    y, mean, rstd = torch.native_layer_norm(x, x.shape[-1:], w, b, EPS)
    return y, wide(mean).reshape(-1), wide(rstd).reshape(-1)


def layernorm_bwd(dy, x, w, mean, rstd):
    of_rows = mean.unsqueeze(-1), rstd.unsqueeze(-1)
    return tuple(aten.native_layer_norm_backward(dy, x, x.shape[-1:], *of_rows, w, w, [True] * 3))


def rmsnorm_fwd(x, w):
    rstd = torch.rsqrt(wide(x).square().mean(-1) + EPS)
    return (wide(x) * rstd.unsqueeze(-1) * wide(w)).to(x.dtype), rstd


def rmsnorm_bwd(dy, x, w, rstd):
    g, xhat = wide(dy) * wide(w), wide(x) * rstd.unsqueeze(-1)
    dx = (g - xhat * (g * xhat).mean(-1, keepdim=True)) * rstd.unsqueeze(-1)
    return dx.to(x.dtype), (wide(dy) * xhat).sum(0).to(x.dtype)


def cross_entropy_fwd(x, t):
    lse = torch.logsumexp(wide(x), -1)
    return lse - wide(x).gather(-1, t.long().unsqueeze(-1)).squeeze(-1), lse


def cross_entropy_bwd(x, t, lse, g):
    target = torch.arange(x.shape[-1], device=x.device) == t.unsqueeze(-1)
    return (g * (torch.exp(wide(x) - lse.unsqueeze(-1)) - target.to(lse.dtype))).to(x.dtype)


def cross_entropy_fwdbwd(x, t):
    target = torch.arange(x.shape[-1], device=x.device) == t.unsqueeze(-1)
    dx = (torch.softmax(wide(x), -1) - target.to(wide(x).dtype)).to(x.dtype)
    return cross_entropy_fwd(x, t)[0], dx


# --- sums, lookups ---


def sum_run(x):
    return wide(x).sum()


def mse_fwd(x, y):
    return F.mse_loss(wide(x), wide(y))


def mse_bwd(x, y, g):
    return aten.mse_loss_backward(g.to(wide(x).dtype), wide(x), wide(y), 1).to(x.dtype)


def weighted_sum_fwd(x, w):
    return x @ w


def weighted_sum_bwd(dy, x, w):
    return torch.outer(dy, w), x.t() @ dy


def embedding_fwd(w, ids):
    return F.embedding(ids, w)


def embedding_bwd(dy, ids):
    return aten.embedding_dense_backward(dy, ids, VOCABULARY, -1, False)


# --- products ---


def matmul_fwd(a, b):
    return a @ b


def bmm_fwd(a, b):
    return a @ b


def matmul_e4m3_fwd(a, b, sa, sb):
    product = wide(a) @ wide(b).t() * (sa * sb)
    return product if a.dtype == torch.float64 else product.bfloat16()


def attention_fwd(q, k, v):
    scores = wide(q) @ wide(k).transpose(-1, -2) / math.sqrt(q.shape[-1])
    return F.scaled_dot_product_attention(q, k, v), torch.logsumexp(scores, -1)


def attention_bwd(do, q, k, v, o, lse):
    dtype, scale = q.dtype, 1 / math.sqrt(q.shape[-1])
    do, q, k, v, o = map(wide, (do, q, k, v, o))
    p = torch.exp(q @ k.transpose(-1, -2) * scale - lse.unsqueeze(-1))
    ds = p * (do @ v.transpose(-1, -2) - (do * o).sum(-1, keepdim=True)) * scale
    return tuple(x.to(dtype) for x in (ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do))


# --- inputs ---


class Inputs:
    """inputs("softmax_fwd", "bf16") returns a tuple of tensors, the arguments of one call. If some inputs depend on
    others, for example on outputs of the forward operation, inputs() returns a function that makes such a tuple."""

    KINDS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.small = 1 if self.device == "cuda" else 4  # sizes are divided by this number
        self.generator = torch.Generator().manual_seed(2)

    def __call__(self, operation, dtype):
        self.generator.manual_seed(2)
        if operation in ("attention_bwd", "chase_run"):
            return lambda rng: self.made(operation, self.KINDS[dtype], rng.getrandbits(62))
        return self.made(operation, self.KINDS[dtype], 2)

    def normal(self, *shape, dtype=torch.float32):
        return torch.randn(*shape, generator=self.generator).to(dtype).to(self.device)

    def below(self, n, *shape, dtype=torch.int32):
        return torch.randint(0, n, shape, generator=self.generator).to(dtype).to(self.device)

    def made(self, operation, dtype, seed):
        self.generator.manual_seed(seed)
        r, c = 256 // self.small, 1024 // self.small
        x = lambda: self.normal(r, c, dtype=dtype)  # noqa: E731
        row, per_row = lambda: self.normal(c, dtype=dtype), lambda: self.normal(r)  # noqa: E731
        g = torch.tensor(0.75, device=self.device)
        name, direction = operation.rsplit("_", 1)
        if operation == "chase_run":
            return (torch.randperm(4096, generator=self.generator).int().to(self.device),)
        if operation == "strided_run":
            return (self.normal(r * c),)
        if operation == "gather_run":
            return self.normal(r * c), self.below(r * c, 1 << 14, dtype=torch.int64)
        if name == "embedding":
            ids = self.below(VOCABULARY, 2048 // self.small)
            return self.normal(VOCABULARY if direction == "fwd" else len(ids), r, dtype=dtype), ids
        if name == "cross_entropy":
            t = self.below(c, r)
            logits = x()
            return (logits, t, torch.logsumexp(wide(logits), -1), g) if direction == "bwd" else (logits, t)
        if name in ("matmul", "bmm", "matmul_e4m3", "attention"):
            return self.products(name, direction, dtype)
        takes = {
            "layernorm_fwd": (x, row, row),
            "layernorm_bwd": (x, x, row, per_row, per_row),
            "rmsnorm_fwd": (x, row),
            "rmsnorm_bwd": (x, x, row, per_row),
            "mse_bwd": (x, x, lambda: g),
            "weighted_sum_fwd": (x, row),
            "weighted_sum_bwd": (lambda: self.normal(r, dtype=dtype), x, row),
        }
        two = ("triad", "add", "mul", "div", "mse", "gelu_erf_bwd", "gelu_tanh_bwd", "silu_bwd", "softmax_bwd")
        pair = name in two or operation in two
        return tuple(make() for make in takes.get(operation, (x, x) if pair else (x,)))

    def products(self, name, direction, dtype):
        m, n, k, s = (size // self.small for size in (512, 640, 768, 256))
        if name == "matmul":
            return self.normal(m, k, dtype=dtype), self.normal(k, n, dtype=dtype)
        if name == "bmm":
            return self.normal(6, m // 2, k // 2, dtype=dtype), self.normal(6, k // 2, n // 2, dtype=dtype)
        if name == "matmul_e4m3":
            of_e4m3 = lambda *shape: self.normal(*shape).to(torch.float8_e4m3fn)  # noqa: E731
            return of_e4m3(m, k), of_e4m3(n, k), *(torch.tensor(v, device=self.device) for v in (0.5, 1.25))
        q, k, v = (self.normal(2, 4, s, 64, dtype=dtype) for _ in range(3))
        if direction == "fwd":
            return q, k, v
        o, lse = attention_fwd(q, k, v)
        # PyTorch may store `o` with the heads of a token side by side; contiguous() copies `o` to the usual layout
        return self.normal(*q.shape, dtype=dtype), q, k, v, o.contiguous(), lse


class Tasks(dict):
    """Inputs by operation and element type. The inputs are made on first use, so that importing operations.py does
    not touch the GPU."""

    def __missing__(self, key):
        self[key] = Inputs()(*key)
        return self[key]


INPUTS = Tasks()
OPERATIONS = [name for name in globals() if name.endswith(("_run", "_fwd", "_bwd", "_fwdbwd"))]
