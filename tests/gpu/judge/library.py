# SPDX-License-Identifier: MIT OR Unlicense
"""kbench's own kernels as candidates for the judge. Every kernel in each element type is a function of library.py,
such as softmax_fwd_onepass_bf16. judge.py sets the environment variables of the build at the top of a copy of
library.py."""

import kbench
from operations import NOT_JUDGED, OPERATIONS, OPTIONS

SOME = ("softmax_fwd", "layernorm_fwd", "rmsnorm_fwd", "relu_fwd", "gelu_erf_fwd", "silu_fwd", "add_fwd", "mul_fwd")


def kernel_of(name):
    *operation, direction, implementation, _ = name.split("_")
    return kbench.kernels["_".join(operation), direction, implementation]


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    kernel, options = kernel_of(name), OPTIONS.get(kernel_of(name).name, {})

    def fill(y):
        kernel(out=y)

    return fill if kernel.name == "fill_run" else lambda *inputs: kernel(*inputs, **options)


def names(which, capability):
    """Returns names of functions in library.py, selected by `which`. "some": of a few operations, the highest rung
    of the ladder, in f32. "all": every kernel once; successive kernels of a ladder get different element types.
    "types": every kernel in each of its element types."""
    found, place = [], {}
    for k in kbench.kernels:
        at = place[k.name] = place.get(k.name, -1) + 1
        # only the operations in OPERATIONS have a reference
        if k.name not in OPERATIONS or not k.runs_on(capability):
            continue
        types = k.dtypes if which == "types" else [k.dtypes[at % len(k.dtypes)]]
        found += [(k, dtype) for dtype in types]
    if which == "some":
        good = [k for k in kbench.kernels if "f32" in k.dtypes and not k.vendor and k.runs_on(capability)]
        top = {k.name: (k, "f32") for k in good}
        found = [top[name] for name in SOME]
    return [f"{k.name}_{k.implementation}_{dtype}" for k, dtype in found]


def unknown():
    known = [*OPERATIONS, *NOT_JUDGED]
    return sorted(set(known) - {k.name for k in kbench.kernels} | {n for n in known if known.count(n) > 1})
