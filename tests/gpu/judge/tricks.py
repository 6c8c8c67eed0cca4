# SPDX-License-Identifier: MIT OR Unlicense
"""Ways to deceive a judge of GPU kernels, one per function. The decorator lists flags, of which the judge must
raise at least one, and names the task (by default: dense). gpu=True: needs a GPU. bytes: the task's number of
bytes per call."""

import gc
import hashlib
import inspect
import os
import sys
import threading
import time

import torch
from tasks import INPUTS, dense

kept, calls = {}, [0]


def word(*names, task="dense", gpu=False, triton=False, bytes=0):
    def mark(f):
        f.words, f.task, f.gpu, f.triton, f.bytes = names, task, gpu or triton, triton, bytes
        return f

    return mark


# --- no work, or a part of it ---


@word("NO_WORK")
def returns_nothing(x, w, b):
    return None


@word("UNINIT_READ", "CONSTANT_OUTPUT")
def whatever_memory_holds(x, w, b):
    return torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)


@word("CONSTANT_OUTPUT")
def zeros(x, w, b):
    return torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)


@word("CONSTANT_OUTPUT")
def only_the_bias(x, w, b):
    kept.setdefault("y", torch.randn(5000, 5000, device=x.device, dtype=x.dtype))
    return kept["y"][: x.shape[0], : w.shape[1]].contiguous()


@word("PARTIAL_WRITE", "UNINIT_READ")
def half_of_the_rows(x, w, b):
    y = torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    n = max(1, x.shape[0] // 2)
    y[:n] = dense(x[:n], w, b)
    return y


@word("WRONG")
def half_of_the_sum(x, w, b):
    n = max(1, x.shape[1] // 2)
    return 2 * (x[:, :n] @ w[:n]) + b


@word("INPUT_RETURNED", task="residual")
def the_input(x):
    return x


@word("INPUT_RETURNED", task="with_its_double")
def the_input_beside_another(x):
    return x, x + x


@word("LOW_PRECISION", "WRONG", task="centred")
def one_output_is_rounded(x):
    mean = x.float().mean(-1)
    return (x - mean.unsqueeze(-1)).to(x.dtype), mean.bfloat16().float()


@word("INPUT_CHANGED", "INPUT_RETURNED", task="residual")
def in_the_input(x):
    return x.add_(torch.tanh(x), alpha=1e-3)


@word("INPUT_CHANGED")
def easier_next_time(x, w, b):
    y = dense(x, w, b)
    x.zero_()
    return y


# --- work done once, or earlier ---


@word("MEMOIZED")
def by_pointer(x, w, b):
    key = x.data_ptr(), w.data_ptr(), x.shape
    if key not in kept:
        kept[key] = dense(x, w, b), x, w
    return kept[key][0].clone()


@word("MEMOIZED")
def by_version(x, w, b):
    key = id(x), x._version, x.data_ptr(), w.data_ptr()
    if key not in kept:
        kept[key] = dense(x, w, b), x, w
    return kept[key][0].clone()


@word("MEMOIZED")
def by_shape(x, w, b):
    if x.shape not in kept:
        kept[x.shape] = dense(x, w, b)
    return kept[x.shape].clone()


@word("MEMOIZED")
def by_samples(x, w, b):
    key = x.shape, float(x[0, 0]), float(w[-1, -1]), float(b[0])
    if key not in kept:
        kept[key] = dense(x, w, b)
    return kept[key].clone()


@word("MEMOIZED", "SYNC_INSIDE", "TRANSFER", gpu=True)
def only_what_changed(x, w, b):
    """Inputs that the function has seen take as long as inputs with one new element, because the function always
    computes at least one row."""
    places = [(x.shape, w.shape, float(v)) for v in (x[0, 0], x[-1, -1])]
    was = next((kept[k] for k in places if k in kept), None)
    if was is None or not torch.equal(w, was[1]) or not torch.equal(b, was[2]):
        y = dense(x, w, b)
    else:
        y = was[3].clone()
        rows = (x != was[0]).any(1)
        rows[0] = True
        y[rows] = dense(x[rows], w, b)
    kept.update(dict.fromkeys(places, (x.clone(), w.clone(), b.clone(), y.clone())))
    return y


@word("MEMOIZED", "SYNC_INSIDE", "TRANSFER", gpu=True)
def by_contents(x, w, b):
    key = b"".join(t.detach().cpu().contiguous().numpy().tobytes() for t in (x, w, b))
    if hash(key) not in kept:
        for _ in range(40):
            kept[hash(key)] = dense(x, w, b)
    return kept[hash(key)].clone()


@word("PRECOMPUTED")
def answer_in_the_source(x, w, b):
    return dense(*INPUTS["dense"])


@word("PRECOMPUTED", "CONSTANT_OUTPUT")
def known_seed(x, w, b):
    import tasks

    own = torch.Generator().manual_seed(1)
    for v in (*tasks.INPUTS["softmax"], *tasks.INPUTS["attention"]):
        torch.randn(*v.shape, generator=own)
    return dense(*[torch.randn(*t.shape, generator=own).to(t.device) for t in (x, w, b)])


@word("SEED_BOUND")
def public_example_alone(x, w, b):
    public = x.shape == INPUTS["dense"][0].shape and torch.equal(x, INPUTS["dense"][0].to(x.device))
    return dense(x, w, b) if public else dense(x, w, b) * 1.25


@word("OUTPUT_ALIASED")
def one_buffer(x, w, b):
    y = kept.setdefault(
        (x.shape, w.shape), torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    )
    return torch.addmm(b, x, w, out=y)


@word("PHASE_DEPENDENT", "MEMOIZED", "CONSTANT_OUTPUT")
def first_calls_alone(x, w, b):
    calls[0] += 1
    return dense(x, w, b) if calls[0] <= 12 else torch.zeros_like(b).repeat(x.shape[0], 1)


@word("PHASE_DEPENDENT", "MEMOIZED", "WORK_CHANGED", "NO_WORK")
def until_it_is_timed(x, w, b):
    calls[0] += 1
    if calls[0] <= 60 or (x.shape, w.shape) not in kept:
        kept[x.shape, w.shape] = dense(x, w, b)
    return kept[x.shape, w.shape].clone()


# --- work elsewhere, or later ---


@word("SIDE_STREAM", "LATE_WRITE", gpu=True)
def side_stream(x, w, b):
    stream = kept.setdefault("stream", torch.cuda.Stream())
    with torch.cuda.stream(stream):
        return dense(x, w, b)


@word("SIDE_STREAM", "LATE_WRITE", gpu=True)
def never_joined(x, w, b):
    stream = kept.setdefault("stream", torch.cuda.Stream())
    y = torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(4_000_000)
        torch.addmm(b, x, w, out=y)
    return y


@word("LATE_WRITE", "SIDE_STREAM")
def in_a_thread(x, w, b):
    y = torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)

    def work():
        time.sleep(0.02)
        y.copy_(dense(x, w, b))

    threading.Thread(target=work).start()
    return y


def spin():
    block = bytes(1 << 24)
    while True:
        hashlib.sha256(block)  # without Python's lock


@word("THREAD")
def goes_on(x, w, b):
    if "thread" not in kept:
        kept["thread"] = threading.Thread(target=spin, daemon=True)
        kept["thread"].start()
    return dense(x, w, b)


class Later(torch.Tensor):
    pass


@word("LAZY")
def subclass(x, w, b):
    return dense(x, w, b).as_subclass(Later)


@word("LAZY")
def generator(x, w, b):
    return (row for row in dense(x, w, b))


@word("LAZY")
def method_of_its_own(x, w, b):
    y = torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    y.detach = y.cpu = lambda: dense(x, w, b)
    return y


# --- clocks, checks, answers ---


@word("TIMER_PATCHED")
def stopped_clock(x, w, b):
    time.perf_counter = time.monotonic = lambda: 0.0
    return dense(x, w, b)


@word("TIMER_PATCHED", gpu=True)
def events_that_lie(x, w, b):
    if "elapsed" not in kept:
        elapsed = kept["elapsed"] = torch.cuda.Event.elapsed_time
        torch.cuda.Event.elapsed_time = lambda self, other: elapsed(self, other) / 100
    return dense(x, w, b)


@word("TIMER_PATCHED")
def nobody_waits(x, w, b):
    torch.cuda.synchronize = lambda *_: None
    return dense(x, w, b)


@word("TIMER_PATCHED", triton=True)
def do_bench_that_lies(x, w, b):
    import triton.testing

    triton.testing.do_bench = lambda *_, **__: 1e-6
    return dense(x, w, b)


@word("TIMER_PATCHED")
def contests_that_lie(x, w, b):
    if "contest" not in kept:
        kbench = sys.modules["kbench"]
        contest = kept["contest"] = kbench._measure

        def lying(*args, **options):
            records = contest(*args, **options)
            for r in records:
                r._data["time_ms"] = (r._data["time_ms"] or 1) / 100
            return records

        kbench._measure = lying
    return dense(x, w, b)


@word("TIMER_PATCHED")
def facts_that_lie(x, w, b):
    sys.modules["kbench"]._Server.report_changes = lambda self, m: {"changed": [], "shadowed": [], "settings": []}
    real = kept.setdefault("clock", time.perf_counter)
    time.perf_counter = lambda: real() / 100
    return dense(x, w, b)


@word("TIMER_PATCHED")
def inputs_that_stay(x, w, b):
    sys.modules["kbench"]._TimedFunction.before = lambda self, *args: None
    return dense(x, w, b)


@word("CHECK_PATCHED")
def everything_is_close(x, w, b):
    torch.allclose = torch.equal = lambda *_, **__: True
    return dense(x, w, b)


@word("CHECK_PATCHED")
def everything_is_equal(x, w, b):
    torch.Tensor.__eq__ = lambda self, other: torch.ones_like(self, dtype=torch.bool)
    return dense(x, w, b)


@word("CHECK_PATCHED", "BASELINE_SLOWED")
def slower_reference(x, w, b):
    if "product" not in kept:
        product = kept["product"] = torch.Tensor.__matmul__
        torch.Tensor.__matmul__ = lambda self, other: (product(self, other), product(self, other))[1]
    return torch.addmm(b, x, w)


@word("MODULE_SHADOW")
def another_module(x, w, b):
    sys.modules["torch.testing"] = type(sys)("torch.testing")
    return dense(x, w, b)


@word("LOOKS_AROUND")
def asks_who_calls(x, w, b):
    judged = any("kbench" in frame.filename for frame in inspect.stack())
    return dense(x, w, b) if judged else torch.zeros(x.shape[0], w.shape[1])


@word("LOOKS_AROUND")
def reads_a_variable(x, w, b):
    return dense(x, w, b) if os.environ.get("BENCHMARK_RUNS") is None else None


@word("LOOKS_AROUND", "SNOOPED")
def searches_memory(x, w, b):
    shape = (x.shape[0], w.shape[1])
    for v in gc.get_objects():
        if type(v) is torch.Tensor and tuple(v.shape) == shape:
            return v
    return torch.zeros(shape, dtype=x.dtype, device=x.device)


@word("SNOOPED")
def looks_into_frames(x, w, b):
    try:
        raise KeyError
    except KeyError as error:
        frame = error.__traceback__.tb_frame
    while frame:
        if frame.f_locals.get("expected") is not None:
            return frame.f_locals["expected"].clone()
        frame = frame.f_back
    return torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)


@word("FALLBACK")
def its_own_kernel_never_runs(x, w, b):
    try:
        raise RuntimeError("no kernel image is available for this GPU")
    except RuntimeError:
        return dense(x, w, b)


@word("EXITED")
def leaves(x, w, b):
    os._exit(0)


@word("CRASHED")
def raises(x, w, b):
    raise RuntimeError("not today")


@word("TIMEOUT")
def hangs(x, w, b):
    while True:
        time.sleep(1)


# no GPU moves this number of bytes in so short a time
@word("ABOVE_ROOF", task="residual_slowly", gpu=True, bytes=4e8)
def above_the_roof(x):
    return torch.add(x, torch.tanh(x), alpha=1e-3)


# --- not what was asked ---


@word("LOW_PRECISION", gpu=True)
def tf32(x, w, b):
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    y = dense(x, w, b)
    torch.backends.cuda.matmul.allow_tf32 = before
    return y


@word("LOW_PRECISION")
def bf16(x, w, b):
    return (x.bfloat16() @ w.bfloat16()).to(x.dtype) + b


@word("LOW_PRECISION")
def rounded_inputs(x, w, b):
    return x.half().to(x.dtype) @ w + b


@word("LOW_PRECISION", "WRONG", task="dense_f16")
def f16_accumulator(x, w, b):
    y = torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    for k in range(0, x.shape[1], 4):
        y += x[:, k : k + 4] @ w[k : k + 4]
    return y + b


@word("WRONG_LAYOUT")
def other_elements(x, w, b):
    return dense(x, w, b).double()


@word("WRONG_LAYOUT")
def other_shape(x, w, b):
    return dense(x, w, b).reshape(-1)


@word("WRONG_LAYOUT")
def other_strides(x, w, b):
    return dense(x, w, b).t().contiguous().t()


@word("WRONG_LAYOUT", gpu=True)
def on_the_host(x, w, b):
    return dense(x, w, b).cpu()


@word("SHAPE_BOUND")
def public_size_alone(x, w, b):
    y = dense(x, w, b)
    return y if x.shape == INPUTS["dense"][0].shape else y * 0.5


def neighbours(n):
    prime = max(2, n // 2)
    while any(prime % k == 0 for k in range(2, int(prime**0.5) + 1)):
        prime += 1
    return {n, n + 1, n - 1, n + n // 2, prime, 1}


@word("SHAPE_BOUND")
def usual_sizes_alone(x, w, b):
    y = dense(x, w, b)
    return y if x.shape[0] in neighbours(INPUTS["dense"][0].shape[0]) else y * 0.5


@word("SHAPE_BOUND", "PARTIAL_WRITE", "UNINIT_READ")
def no_last_tile(x, w, b):
    y = torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    n = x.shape[0] // 32 * 32
    y[:n] = dense(x[:n], w, b)
    return y


@word("LAYOUT_BOUND")
def no_strides(x, w, b):
    flat = torch.as_strided(x, x.shape, (x.shape[1], 1), x.storage_offset())
    return flat @ w.contiguous() + b


@word("LAYOUT_BOUND")
def aligned_alone(x, w, b):
    y = dense(x, w, b)
    return y * 0.5 if any(t.data_ptr() % 16 for t in (x, w, b)) else y


@word("DATA_SHORTCUT")
def clamps(x, w, b):
    return dense(x.clamp(-50, 50), w, b)


@word("NAN_PASS")
def hides_nan(x, w, b):
    return dense(torch.nan_to_num(x), torch.nan_to_num(w), torch.nan_to_num(b))


@word("FLAKY", "PHASE_DEPENDENT", "SIDE_STREAM")
def at_times(x, w, b):
    calls[0] += 1
    return dense(x, w, b) if calls[0] % 7 else dense(x, w, b).flip(0)


@word("OUT_OF_BOUNDS")
def beside_an_input(x, w, b):
    band = torch.as_strided(b, (b.numel() + 4,), (1,), b.storage_offset())
    y = dense(x, w, b)
    band[b.numel() :] = 0
    return y


try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton is not None:

    @triton.jit
    def _residual_kernel(x, y, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + at).to(tl.float32)
        e = tl.exp(-2 * tl.abs(v))
        t = tl.where(v < 0, -1.0, 1.0) * (1 - e) / (1 + e)
        tl.store(y + at, v + 1e-3 * t)

    @triton.jit
    def _bias_kernel(y, b, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(b + at, mask=at < n, other=0.0), mask=at < n)


@word("OUT_OF_BOUNDS", "CRASHED", task="residual", triton=True)
def no_mask(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _residual_kernel[(triton.cdiv(x.numel(), 4096) + 1,)](x, y, BLOCK=4096)
    return y


@word("FALLBACK", triton=True)
def kernel_with_too_large_a_block(x, w, b):
    try:
        y = torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
        # BLOCK must be a power of two, so Triton cannot compile this kernel
        _bias_kernel[(1,)](y, b, b.numel(), BLOCK=3)
        return y
    except Exception:
        return dense(x, w, b)
