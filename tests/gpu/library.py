# SPDX-License-Identifier: MIT OR Unlicense
"""kbench.kernels on a GPU with PyTorch. Every operation, direction, implementation and element type runs once on a
small shape, and is compared with the oracle and with PyTorch in double precision. The script also tests rows that
are masked or have huge values, gradients against autograd, strides, streams, captured graphs, arrays of other libraries,
and five comparisons with PyTorch. Prints FAIL lines and ends with "N passed, N failed"."""

import sys
import time

import torch

import kbench
import kbench_kernels as kk

kernels = kbench.kernels
passed = failed = 0
NORM = {"f32": 1e-4, "tf32": 2e-3, "f16": 1e-2, "bf16": 5e-2}
ROWS = {"batch_size": 2, "sequence_length": 24, "tensor_dimension": 64}
AXES = {
    "lookup": {**ROWS, "vocabulary": 50},
    "attn": {**ROWS, "heads": 2, "causal": 1},
    "pick": {"n": 5000, "stride": 2, "among": 300},
}
capability = kk._capability(torch.cuda.current_device())


def check(what, good, said=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAIL: {what}: {said}")


def guarded(what, fn, *args):
    try:
        return fn(*args)
    except Exception as error:
        check(what, False, f"{type(error).__name__}: {error}")


def contest_of(operation, dtype, **more):
    axes = {**AXES.get(operation.family, ROWS), **more}
    return kk._Comparison(operation, dtype, axes, 7, torch.cuda.current_device(), 0)


def as_tuple(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def near(what, got, want, dtype):
    got, want = got.double(), want.double().reshape(got.shape)
    off = float((got - want).norm() / want.norm().clamp_min(1e-30))
    check(what, off <= NORM[dtype], f"off by {off:.3g}")


def in_double(contest, operation):
    """Returns {name: output} with the outputs that PyTorch computes in double precision from the same inputs.
    Returns None if PyTorch lacks the operation."""
    peer = kk._PeerFunctions(contest)
    forward = peer._forward()
    if forward is None or operation.operation == "dropout":
        return None
    tensors = peer._tensors()
    wide = {
        n: x.detach().double().requires_grad_() if x.is_floating_point() else x for n, x in tensors.items()
    }
    if operation.operation == "embedding" and "ids" in wide:
        wide["ids"] = wide["ids"].long()
    y = forward(**wide)
    if operation.direction in ("fwd", "run"):
        return {operation.outputs[0]: y.detach()}
    floats = [n for n, x in wide.items() if x.requires_grad and "d" + n in operation.outputs]
    if operation.direction == "fwdbwd":
        grads = torch.autograd.grad(y, [wide[n] for n in floats], torch.ones_like(y))
        return {"loss": y.detach(), **{"d" + n: g for n, g in zip(floats, grads)}}
    dy = contest.values["d" + contest.forward.outputs[0]].double()
    if operation.operation in ("mse", "cross_entropy"):
        dy = torch.ones_like(y) * contest.values["g"].double().reshape(())
    grads = torch.autograd.grad(y, [wide[n] for n in floats], dy)
    return {"d" + n: g for n, g in zip(floats, grads)}


def transfers(k, what):
    x = torch.randn(5000)
    if k.operation == "chase":
        ring = ((torch.arange(4096) + 1) % 4096).int().cuda()
        k.check(k(ring), ring)
        return check(what, True)
    if k.operation == "h2d":
        x = x if k.implementation == "pageable" else x.pin_memory()
        y = k(x)
        torch.cuda.synchronize()
        return check(what, y.is_cuda and torch.equal(y.cpu(), x))
    if k.operation == "d2h":
        y = k(x.cuda())
        torch.cuda.synchronize()
        return check(what, not y.is_cuda and torch.equal(y, x))
    if k.operation in ("alloc", "null"):
        return check(what, (k(n=1 << 20) if k.operation == "alloc" else k()) is None)
    raise AssertionError(f"{k.name} is not tried")


def every_kernel():
    skipped = {}
    for k in kernels:
        if not k.runs_on(capability):
            skipped.setdefault(f"compute capability {k.sm / 10}{' alone' if k.exact else ''}", []).append(k)
            continue
        for dtype in k.dtypes:
            what = f"{k.name} {k.implementation} {dtype}"
            if k.operation in ("chase", "h2d", "d2h", "alloc", "null"):
                guarded(what, transfers, k, what)
            else:
                guarded(what, one_kernel, k, dtype, what)
    for why, of in skipped.items():
        print(f"left out: {why}: {len(of)} kernels, as {of[0].name} {of[0].implementation}")


def one_kernel(k, dtype, what):
    operation = kernels[k.operation, k.direction]
    contest = contest_of(operation, dtype)
    out = torch.empty_like(contest.values["out"]) if k.name == "fill_run" else None
    outputs = as_tuple(k(*contest.inputs, out=out, **contest.options))
    torch.cuda.synchronize()
    if k.name == "fill_run":
        return check(what, bool((outputs[0] == 1).all()))
    try:
        k.check(outputs, *contest.inputs, **contest.options)
        check(what, True)
    except AssertionError as error:
        check(what, False, error)
    if k.name in ("layernorm_fwd", "rmsnorm_fwd"):  # called without buffers for mean and rstd, as in inference
        y = torch.empty_like(outputs[0])
        k(*contest.inputs, out=(y, *(None for _ in outputs[1:])), **contest.options)
        check(f"{what}: y without the moments", bool((y == outputs[0]).all()))
    for name, want in (in_double(contest, operation) or {}).items():
        near(f"{what}: {name} against PyTorch", outputs[k.outputs.index(name)], want, "tf32" if k.tf32 else dtype)


def near_rows(what, got, want, bound, least=0.0):
    """Compares `got` with `want` in each row (last axis) separately. In a norm over all rows, large rows would hide
    errors of small rows."""
    got, want = got.double(), want.double().reshape(got.shape)
    off = float(((got - want).norm(dim=-1) / want.norm(dim=-1).clamp_min(least)).max())
    check(what, off <= bound, f"a row is off by {off:.3g}")


def near_each(what, got, want):
    got, want = got.double(), want.double().reshape(got.shape)
    off = float(((got - want).abs() / (want.abs() + 1)).max())
    check(what, off <= NORM["f32"], f"the relative error of an element is {off:.3g}")


def masked_rows(dtype, columns):
    """Returns logits in which an attention mask has replaced values: each row has another kind of mask, and the
    values of the last row are near the largest finite value."""
    kind, half = getattr(torch, kk._LONG[dtype]), columns // 2
    least, most = torch.finfo(kind).min, torch.finfo(kind).max
    far = -60000.0 if dtype == "f16" else -1e30
    x = torch.empty(7, columns, dtype=torch.float64)
    x[0], x[1], x[2] = far, least, most
    x[3, :half], x[3, half:] = least, far
    x[4, :half], x[4, half:] = least, most
    x[5], x[5, 0], x[5, 1], x[5, 2] = least, 0.5, -1.0, 2.0
    x[6] = most * (1 - 0.1 * torch.rand(columns, dtype=torch.float64))
    return x.to(kind).cuda()


def masked():
    """Compares masked rows with PyTorch in double precision. If all values of a row are -1e30 or the lowest
    number, the probabilities must be uniform and not NaN. The loss of a masked target is the maximum of its row
    minus the target's logit."""
    torch.manual_seed(11)
    for k in kernels:
        if not k.runs_on(capability) or k.name not in (
            "softmax_fwd",
            "cross_entropy_fwd",
            "cross_entropy_fwdbwd",
            "attention_fwd",
        ):
            continue
        for dtype in k.dtypes:
            what = f"{k.name} {k.implementation} {dtype}: masked"
            if k.operation == "attention":
                for d, causal in ((64, False), (64, True), (128, False), (128, True)):
                    guarded(what, masked_attention, k, dtype, d, causal, f"{what}, {d}{' causal' * causal}")
                continue
            for columns in (64, 1000, 8200):
                guarded(what, masked_row_kernel, k, dtype, columns, f"{what}, {columns} columns")


def masked_row_kernel(k, dtype, columns, what):
    x = masked_rows(dtype, columns)
    wide = x.double().requires_grad_()
    if k.operation == "softmax":
        y = k(x)
        torch.cuda.synchronize()
        return near_rows(what, y, torch.softmax(wide.detach(), 1), NORM[dtype])
    t = x.float().argmax(1)
    t[5] = columns - 1  # masked
    want = torch.nn.functional.cross_entropy(wide, t, reduction="none")
    outputs = dict(zip(k.outputs, as_tuple(k(x, t.int()))))
    torch.cuda.synchronize()
    near_each(f"{what}: loss", outputs["loss"], want.detach())
    if "lse" in outputs:
        near_each(f"{what}: lse", outputs["lse"], torch.logsumexp(wide.detach(), 1))
    if "dx" in outputs:  # if the target has the maximal logit of a row, the gradients of this row are 0
        (dx,) = torch.autograd.grad(want.sum(), [wide])
        near_rows(f"{what}: dx", outputs["dx"], dx, NORM[dtype], least=1.0)


def masked_attention(k, dtype, d, causal, what):
    """Scores near -1e30 (f16: -1e10). In the first head the scores of all keys are equal; in the second head a third
    of the keys have lower scores. Products and sums are exact in f32 in any order, so the keys with the largest
    score get equal weights."""
    kind, n = getattr(torch, kk._LONG[dtype]), 130
    up, down = (1024.0, -32768.0) if dtype == "f16" else (2.0**40, -(2.0**55))
    at = torch.arange(n, dtype=torch.float64)
    further = torch.stack([torch.ones(n, dtype=torch.float64), 1 + 0.5 * (at % 3 == 2)])  # head, key
    along = 1 - 0.5 * (torch.arange(d, dtype=torch.float64) % 2)
    q = (up * (1 + at % 8))[None, None, :, None].expand(1, 2, n, d)
    keys = down * further[None, :, :, None] * along
    q, keys = (x.to(kind).contiguous().cuda() for x in (q, keys))
    v = torch.randn(1, 2, n, d).to(kind).cuda()
    o, lse = k(q, keys, v, causal=causal)
    torch.cuda.synchronize()
    scores = q.double() @ keys.double().transpose(-1, -2) / d**0.5
    if causal:
        hidden = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    near_rows(f"{what}: o", o, torch.softmax(scores, -1) @ v.double(), NORM[dtype])
    near_each(f"{what}: lse", lse, torch.logsumexp(scores, -1))


def gradients():
    for k in kernels:
        if k.direction != "fwd" or not k.runs_on(capability):
            continue
        if not any(b.name == f"{k.operation}_bwd" for b in kernels) and k.operation not in ("matmul", "bmm"):
            continue
        for layout in ("nn", "nt", "tn") if k.family == "gemm" else ("nn",):
            dtype = k.dtypes[-1]
            more = {"layout": layout} if k.family == "gemm" else {}
            guarded(f"{k.name} {k.implementation} {layout}: gradients", one_gradient, k, dtype, more)


def one_gradient(k, dtype, more):
    operation = kernels[k.operation, k.direction]
    contest = contest_of(operation, dtype, **more)
    leaves = [x.clone().requires_grad_() if x.is_floating_point() else x for x in contest.inputs]
    y = as_tuple(k(*leaves, **contest.options))[0]
    dy = torch.randn_like(y)
    wanted = [n for n, x in zip(k.inputs, leaves) if x.requires_grad]
    got = torch.autograd.grad(y, [x for x in leaves if x.requires_grad], dy)
    if k.operation == "dropout":
        return check(f"{k.name} {k.implementation}: its own mask", torch.equal(got[0] != 0, y != 0))
    peer = kk._PeerFunctions(contest)
    wide = {
        n: x.detach().double().requires_grad_() if x.is_floating_point() else x.long()
        for n, x in zip(k.inputs, leaves)
    }
    want = torch.autograd.grad(
        peer._forward()(**wide), [wide[n] for n in wanted], dy.double().reshape(y.shape)
    )
    for n, g, w in zip(wanted, got, want):
        what = f"{k.name} {k.implementation} {more.get('layout', '')}: gradient of {n}"
        near(what, g, w, "tf32" if k.tf32 else dtype)


def losses():
    """Tests loss.mean().backward(): autograd passes the same incoming gradient for the loss of every row, and the
    kernel must multiply the gradient of each row by it."""
    x = torch.randn(24, 50, device="cuda", requires_grad=True)
    t = torch.randint(0, 50, (24,), device="cuda")
    t[3] = -100
    kernels["cross_entropy", "fwd", "online"](x, t.int()).loss.mean().backward()
    w = x.detach().double().requires_grad_()
    torch.nn.functional.cross_entropy(w, t, reduction="none").mean().backward()
    near("cross_entropy: the mean's gradient", x.grad, w.grad, "f32")
    a = torch.randn(30, device="cuda", requires_grad=True)
    try:
        kernels["add", "fwd", "vec"](a, a)
        check("no backward", False, "nothing was raised")
    except kbench.Error as error:
        check("no backward", "torch.no_grad()" in str(error), error)


def strides():
    """Slices of matrices; and q, k and v inside one tensor, also with gradients, and an output of another layout."""
    torch.manual_seed(4)
    for k in kernels:
        if k.operation == "matmul" and k.dtypes and k.runs_on(capability):
            dtype = k.dtypes[-1]
            a, b, c = (torch.randn(n, 320, device="cuda").to(getattr(torch, kk._LONG[dtype])) for n in (96, 128, 96))
            guarded(f"a slice: {k!r}", lambda: k(a[:, :128], b[:, 8:208], out=c[:, 16:216]))
            near(f"a slice: {k!r}", c[:, 16:216], a[:, :128].double() @ b[:, 8:208].double(), "tf32" if k.tf32 else dtype)
    packed = torch.randn(2, 70, 3, 4, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    q, k, v = (x.transpose(1, 2) for x in packed.unbind(2))
    want = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    (gradient,) = torch.autograd.grad(want.square().sum(), packed)
    for name in ("flash", "flashmma", "flashpp"):
        kernel = kernels["attention", "fwd", name]
        if not kernel.runs_on(capability):
            continue
        o = torch.empty(2, 70, 4, 64, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
        lse = torch.empty(2, 4, 70, device="cuda")
        with torch.no_grad():
            guarded(f"packed: {name}", lambda: kernel(q, k, v, out=(o, lse)))
            near(f"packed: {name}", o, want, "bf16")
    if capability == 90:
        y = kernels["attention", "fwd", "flashpp"](q, k, v, backward="flashws").o
        (got,) = torch.autograd.grad(y.float().square().sum(), packed)
        near("gradient of a packed tensor", got, gradient, "bf16")
    try:
        kernels["attention", "fwd", "naive"](q.detach(), k.detach(), v.detach())
        check("naive rejects strides", False)
    except kbench.Error as error:
        check("naive rejects strides", "needs contiguous tensors" in str(error), error)


def streams():
    k, x = kernels["softmax", "fwd", "onepass"], torch.randn(64, 1000, device="cuda")
    want = torch.softmax(x, 1)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        y = k(x)
        early = torch.cuda.Event()
        early.record()
    check("the launch is on the current stream", not early.query())
    torch.cuda.synchronize()
    near("output of a launch on the current stream", y, want, "f32")
    total = kernels["sum", "run", "ticket"].bind(x)
    total()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total()
    for _ in range(3):
        x.normal_()
        graph.replay()
        torch.cuda.synchronize()
        kernels["sum", "run"].check(total.outputs, x)
    check("a captured graph", True)
    record = kbench.time(kernels["copy", "run", "vec"].bind(x), bytes=8.0 * x.numel(), max_time=0.2)
    check("kbench.time of a bound kernel", record.time_ms is not None, f"{record.flags} {record.message}")
    record = kbench.time(k, x, max_time=0.2)
    check("kbench.time of a kernel", record.time_ms is not None, f"{record.flags} {record.message}")


class Foreign:

    def __init__(self, x):
        self.x, self.__cuda_array_interface__ = x, x.__cuda_array_interface__


class Lender:

    def __init__(self, x):
        self.__dlpack__, self.__dlpack_device__ = x.__dlpack__, x.__dlpack_device__


def dlpack():
    x = torch.randn(8, 100, device="cuda")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        y = kernels["softmax", "fwd", "onepass"](Lender(x.to(dtype)))
        check(f"{dtype} by DLPack: output allocated by kbench", isinstance(y, kk._DeviceArray), type(y))
        got = torch.from_dlpack(y)
        same = got.dtype == dtype and got.data_ptr() == y.address
        check(f"{dtype} by DLPack: and back, without a copy", same, (got.dtype, got.data_ptr(), y.address))
        near(f"{dtype} by DLPack: y", got, torch.softmax(x, 1), kk._SHORT[str(dtype)[6:]])
        kernels["softmax", "fwd"].check(y, Lender(x.to(dtype)))
        at = y.address
        del y
        check(f"{dtype} by DLPack: held", bool((got == torch.from_dlpack(Lender(got))).all()) and got.data_ptr() == at)
    kinds = {"f64": torch.float64, "i64": torch.int64, "u8": torch.uint8, "e4m3": torch.float8_e4m3fn}
    for name, kind in kinds.items():
        got = torch.from_dlpack(kbench.Buffer(x.data_ptr(), 16, name, True))
        check(f"a buffer of {name}", (got.dtype, got.shape[0], got.data_ptr()) == (kind, 16, x.data_ptr()), got)


def foreign():
    x = torch.randn(8, 100, device="cuda")
    y = kernels["softmax", "fwd", "onepass"](Foreign(x))
    check("kbench allocates the output", isinstance(y, kk._DeviceArray), type(y))
    near("output that kbench allocates: values", torch.as_tensor(y, device="cuda"), torch.softmax(x, 1), "f32")
    kernels["softmax", "fwd"].check(y, Foreign(x))
    near(
        "oracle", torch.tensor(kernels["softmax", "fwd"].oracle(Foreign(x))), torch.softmax(x, 1).cpu(), "f32"
    )
    try:
        import cupy
    except ImportError:
        print("cupy is not installed: its arrays are not tested")
        return
    y = kernels["softmax", "fwd", "onepass"](cupy.asarray(x))
    near("cupy", torch.as_tensor(y, device="cuda"), torch.softmax(x, 1), "f32")


def contests():
    names = ["add", "softmax", "layernorm", "cross_entropy", "matmul"]
    shape = {"batch_size": 2, "sequence_length": 512, "tensor_dimension": 1024}
    rows = kernels.suite(names, ["torch"], shape, ["f32"], directions=["fwd"], max_time=0.1, progress=False)
    check("five contests", len(list(rows.rows())) == 5, [r.name for r in rows])
    for r in rows:
        check(f"{r.name}: a time", r.time_ms is not None and r.verified, f"{r.status} {r.flags} {r.message}")
    for row in rows.rows():
        check(f"{row['name']}: its peer", row["peer"] in ("PyTorch", "kbench's cublas"), row["peer"])
    check("nobody is missing", not rows.missing, rows.missing)
    back = kernels.suite(
        ["softmax"], ["torch"], shape, ["bf16"], directions=["bwd"], max_time=0.1, progress=False
    )
    torchs = [r for r in back if r.implementation == "torch"]
    check("a backward of autograd", torchs and torchs[0].time_ms is not None, [str(r) for r in back])
    rows += back
    rows.table()


def main():
    start = time.time()
    kernels.build()
    print(f"built in {time.time() - start:.0f} s")
    for part in (every_kernel, masked, gradients, losses, strides, streams, dlpack, foreign, contests):
        start = time.time()
        guarded(part.__name__, part)
        print(f"{part.__name__}: {time.time() - start:.1f} s")
    print(f"{passed} passed, {failed} failed")


sys.exit(main())
