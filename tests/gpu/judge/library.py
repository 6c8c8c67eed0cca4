# SPDX-License-Identifier: MIT OR Unlicense
"""kbench's own kernels as candidates. The runner puts where they were built in front of a copy of this file."""

import kbench


def _row(task, operation, implementation, direction="fwd", more=False):
    def call(*inputs):
        out = kbench.kernels[operation, direction, implementation](*inputs)
        return out[0] if isinstance(out, tuple) else out

    call.task, call.more = task, more
    return call


softmax_onepass = _row("softmax", "softmax", "onepass")
softmax_shared = _row("softmax", "softmax", "shared")
softmax_online = _row("softmax", "softmax", "online")
layernorm_onepass = _row("layernorm", "layernorm", "onepass")
layernorm_persist = _row("layernorm", "layernorm", "persist")
rmsnorm_onepass = _row("rmsnorm", "rmsnorm", "onepass")
relu_vec = _row("relu", "relu", "vec")
gelu_unroll = _row("gelu", "gelu_erf", "unroll")
gelu_tanh_vec = _row("gelu_tanh", "gelu_tanh", "vec")
silu_vec = _row("silu", "silu", "vec")
add_vec = _row("add", "add", "vec")
mul_vec = _row("mul", "mul", "vec")
rmsnorm_persist = _row("rmsnorm", "rmsnorm", "persist")
OPERATIONS = ["softmax", "layernorm", "rmsnorm", "relu", "gelu_erf", "gelu_tanh", "silu", "add", "mul"]

# With --library all: the others that compute what a task asks for, in its type. cross_entropy is not among them, since
# PyTorch ends the process over a target that is no column; tf32, the rung, is what LOW_PRECISION is for.
_OTHERS = {
    ("softmax", "softmax", "fwd"): "naive block cluster",
    ("layernorm", "layernorm", "fwd"): "naive warp cluster",
    ("rmsnorm", "rmsnorm", "fwd"): "naive warp cluster",
    ("relu", "relu", "fwd"): "naive stride unroll",
    ("gelu", "gelu_erf", "fwd"): "naive stride vec",
    ("gelu_tanh", "gelu_tanh", "fwd"): "naive stride unroll",
    ("silu", "silu", "fwd"): "naive stride unroll",
    ("add", "add", "fwd"): "naive stride unroll bulk",
    ("mul", "mul", "fwd"): "naive stride unroll",
    ("div", "div", "fwd"): "naive stride vec unroll",
    ("transpose", "transpose", "run"): "naive shared padded vec",
    ("embedding", "embedding", "fwd"): "naive vec unroll",
    ("total", "sum", "run"): "atomic shared warp ticket",
    ("mse", "mse", "fwd"): "atomic block ticket",
    ("weighted_sum", "weighted_sum", "fwd"): "naive split matmul warp vec",
    ("matmul", "matmul", "fwd"): "naive shared regblock vec cpasync warptile",
    ("matmul_bf16", "matmul", "fwd"): "naive shared regblock warpmma tmaload warpgroup mma mmapipe wgmma ws coop"
    " persist multicast tma select",
    ("attention", "attention", "fwd"): "naive flash flashmma flashws flashrs flashpp",
}
for (_task, _operation, _direction), _names in _OTHERS.items():
    for _name in _names.split():
        globals()[f"{_task}_by_{_name}"] = _row(_task, _operation, _name, _direction, more=True)
ALL_OPERATIONS = sorted({operation for _, operation, _ in _OTHERS})
