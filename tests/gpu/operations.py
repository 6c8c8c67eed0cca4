# SPDX-License-Identifier: MIT OR Unlicense
"""The best of kbench beside its peers: operations.py SUITE FILE        on a GPU, with PyTorch: measures, writes FILE
                                       operations.py --table FILE       anywhere: the table of a file
                       operations.py --summary FILE     anywhere: README's, with the range of an operation's rows
                                       operations.py --missed FILE      anywhere: the rows below their targets

SUITE is build/suite. Both sides are timed on the same machine in the same run, cold, after an L2 eviction by clean
reads, with random data, between two events and uncorrected. The peers are PyTorch's own operations, cuBLAS and
FlashAttention through PyTorch, and for softmax and layernorm a Triton kernel; the vendor's rows of kbench count too.
A copy of as many bytes is timed in the same run: memory-bound operations are held against it."""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

BEST = "vec,unroll,approx,bulk,online,onepass,persist,shared,cluster,warp,ticket,fused,block,padded,sorted,warptile,mmapipe,tma,select,flashmma,cublas,cudart"
ROWS = "softmax,layernorm,rmsnorm"


def shape(b, s, d, **more):
    return {"batch_size": b, "sequence_length": s, "tensor_dimension": d, **more}


# operations, element types, shape; the shapes are those for which figures are published most often
SUITE_RUNS = [
    ("copy,fill,read,triad", "f32", {"n": 1 << 28}),
    *[("copy", "f32", {"n": 1 << i}) for i in (20, 21, 22, 23, 24, 25, 26)],  # what others are held against
    ("add,relu,gelu_erf,gelu_tanh,silu,dropout,mse", "f32,bf16", shape(16, 2048, 4096)),
    ("sum", "f32", shape(32, 2048, 4096)),
    ("weighted_sum", "f32", shape(32, 2048, 4096)),
    (ROWS, "f32,bf16", shape(8, 1024, 4096)),
    ("layernorm,rmsnorm", "bf16", shape(8, 1024, 1024)),
    (ROWS, "bf16", shape(64, 1024, 64)),
    ("layernorm,rmsnorm", "bf16", shape(4, 1024, 16384)),
    ("softmax", "bf16", shape(4, 1024, 32768)),
    ("softmax", "f32", shape(1, 512, 131072)),
    ("cross_entropy", "bf16", shape(8, 1024, 50304)),
    ("cross_entropy", "bf16", shape(4, 1024, 131072)),
    ("embedding", "f32", shape(16, 1024, 768, vocabulary=50304)),
    ("embedding", "bf16", shape(16, 1024, 4096, vocabulary=131072)),
    ("transpose", "f32,bf16", shape(16, 1024, 8192)),
    ("matmul", "f32,bf16", shape(2, 1024, 2048, layout="NN")),
    ("matmul", "f32,bf16", shape(4, 1024, 4096, layout="NN")),
    ("attention", "bf16", shape(4, 4096, 128, heads=16, causal=0)),
    ("attention", "bf16", shape(4, 4096, 128, heads=16, causal=1)),
    ("attention", "bf16", shape(4, 4096, 64, heads=32, causal=1)),
]
# share of the copy of as many bytes that is asked for, where it is not 0.92; of the peer's speed 1 is asked for
COPY_SHARE = {("layernorm", "bwd"): 0.80, ("rmsnorm", "bwd"): 0.80, ("cross_entropy", "fwdbwd"): 0.85}


def short(record):
    """Rows too short to be bound by memory: no share of a copy is asked for."""
    return record["operation"] in ROWS.split(",") and record["params"]["tensor_dimension"] <= 64


def key(operation, direction, dtype, params):
    axes = ("batch_size", "sequence_length", "tensor_dimension", "vocabulary", "heads", "causal", "n")
    return " ".join([operation, direction, dtype] + [f"{a}={params[a]}" for a in axes if a in params])


# --- kbench's side ---


def run_suite(suite):
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for i, (operations, dtypes, axes) in enumerate(SUITE_RUNS):
            path = os.path.join(folder, f"{i}.json")
            command = [suite, "--fast", "--no-progress", "--size", "small", "--op", operations, "--dtype", dtypes, "--impl", BEST]
            for name, value in axes.items():
                command += ["-a", f"{name}={value}"]
            done = subprocess.run(command + ["--json", path], capture_output=True, text=True)
            if not os.path.exists(path):
                sys.exit(f"{' '.join(command)} left no record: {done.stderr.strip()[-300:]}")
            records += json.load(open(path))
            print(f"{operations} {dtypes} {axes}: exit code {done.returncode}", flush=True)
    return records


# --- the peers' side ---


def peers(saved, keep):
    import torch
    import torch.nn.functional as F

    evicted = torch.randint(0, 100, (64 << 20,), dtype=torch.int32, device="cuda")
    sink = torch.empty((), dtype=torch.int32, device="cuda")
    dtypes = {"f32": torch.float32, "bf16": torch.bfloat16}
    times = saved["peers"] = {}
    saved["versions"] = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}

    def cold(f):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(3):
            f()
        us = []
        for _ in range(15):
            torch.cuda._sleep(400000)  # the host queues the rest meanwhile
            torch.amax(evicted, dim=0, out=sink)
            start.record()
            f()
            stop.record()
            torch.cuda.synchronize()
            us.append(1000 * start.elapsed_time(stop))
        return statistics.median(us)

    def take(operation, direction, dtype, params, name, f):
        try:
            times.setdefault(key(operation, direction, dtype, params), {})[name] = cold(f)
        except Exception as e:  # one peer less
            print(f"{operation} {direction} {dtype} by {name}: {str(e).splitlines()[0][:100]}", flush=True)

    def both(operation, dtype, params, name, forward, inputs):
        """forward, and backward through autograd, gradients of all inputs."""
        with torch.no_grad():
            take(operation, "fwd", dtype, params, name, forward)
        y = forward()
        dy = torch.randn_like(y)
        take(operation, "bwd", dtype, params, name, lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True))

    try:
        row_softmax, row_layernorm = triton_rows()
    except ImportError:
        row_softmax = row_layernorm = None

    for operations, types, p in SUITE_RUNS:
        for dtype in types.split(","):
            T = dtypes[dtype]
            rand = lambda *s, grad=False: torch.randn(*s, device="cuda", dtype=T, requires_grad=grad)  # noqa: E731
            rows, d = p.get("batch_size", 1) * p.get("sequence_length", 1), p.get("tensor_dimension", 1)
            for o in operations.split(","):
                torch.cuda.empty_cache()
                if o == "copy":
                    x, y = rand(p["n"]), rand(p["n"])
                    take(o, "run", dtype, p, "PyTorch", lambda: y.copy_(x))
                elif o == "fill":
                    y = rand(p["n"])
                    take(o, "run", dtype, p, "PyTorch", lambda: y.fill_(1))
                elif o == "triad":
                    x, y, z = rand(p["n"]), rand(p["n"]), rand(p["n"])
                    take(o, "run", dtype, p, "PyTorch", lambda: torch.add(x, y, alpha=3, out=z))
                elif o == "add":
                    x, y, z = rand(rows, d), rand(rows, d), rand(rows, d)
                    take(o, "fwd", dtype, p, "PyTorch", lambda: torch.add(x, y, out=z))
                elif o in ("relu", "gelu_erf", "gelu_tanh", "silu"):
                    x = rand(rows, d, grad=True)
                    f = {"relu": F.relu, "gelu_erf": F.gelu, "silu": F.silu}.get(o) or (
                        lambda x: F.gelu(x, approximate="tanh"))
                    both(o, dtype, p, "PyTorch", lambda: f(x), (x,))
                elif o == "dropout":
                    x = rand(rows, d, grad=True)
                    both(o, dtype, p, "PyTorch", lambda: F.dropout(x, 0.1, True), (x,))
                elif o == "mse":
                    x, y = rand(rows, d, grad=True), rand(rows, d)
                    both(o, dtype, p, "PyTorch", lambda: F.mse_loss(x, y), (x,))
                elif o == "sum":
                    x = rand(rows, d)
                    take(o, "run", dtype, p, "PyTorch", lambda: x.sum())
                elif o == "weighted_sum":
                    x, w, dy = rand(rows, d), rand(d), rand(rows)
                    take(o, "fwd", dtype, p, "PyTorch", lambda: torch.mv(x, w))
                    take(o, "bwd", dtype, p, "PyTorch", lambda: (torch.outer(dy, w), torch.mv(x.t(), dy)))
                elif o == "softmax":
                    x = rand(rows, d, grad=True)
                    both(o, dtype, p, "PyTorch", lambda: torch.softmax(x, -1), (x,))
                    if row_softmax and d <= 32768:
                        take(o, "fwd", dtype, p, "Triton", lambda: row_softmax(x.detach()))
                elif o in ("layernorm", "rmsnorm"):
                    x, w, b = rand(rows, d, grad=True), rand(d, grad=True), rand(d, grad=True)
                    if o == "layernorm":
                        both(o, dtype, p, "PyTorch", lambda: F.layer_norm(x, (d,), w, b), (x, w, b))
                        if row_layernorm:
                            take(o, "fwd", dtype, p, "Triton",
                                 lambda: row_layernorm(x.detach(), w.detach(), b.detach()))
                    else:
                        both(o, dtype, p, "PyTorch", lambda: F.rms_norm(x, (d,), w, 1e-5), (x, w))
                elif o == "cross_entropy":
                    x, t = rand(rows, d, grad=True), torch.randint(0, d, (rows,), device="cuda")
                    both(o, dtype, p, "PyTorch", lambda: F.cross_entropy(x, t, reduction="none"), (x,))
                    take(o, "fwdbwd", dtype, p, "PyTorch", lambda: torch.autograd.grad(F.cross_entropy(x, t), (x,)))
                elif o == "embedding":
                    v = p["vocabulary"]
                    w, ids = rand(v, d), torch.randint(0, v, (rows,), device="cuda")
                    dy = rand(rows, d)
                    take(o, "fwd", dtype, p, "PyTorch", lambda: F.embedding(ids, w))
                    take(o, "bwd", dtype, p, "PyTorch",
                         lambda: torch.ops.aten.embedding_dense_backward(dy, ids, v, -1, False))
                elif o == "transpose":
                    x = rand(rows, d)
                    take(o, "run", dtype, p, "PyTorch", lambda: x.t().contiguous())
                elif o == "matmul":
                    x, y, z = rand(rows, d), rand(d, d), rand(rows, d)
                    take(o, "fwd", dtype, p, "cuBLAS", lambda: torch.matmul(x, y, out=z))
                elif o == "attention":
                    from torch.nn.attention import SDPBackend, sdpa_kernel
                    s = (p["batch_size"], p["heads"], p["sequence_length"], d)
                    q, k, v = rand(*s, grad=True), rand(*s, grad=True), rand(*s, grad=True)
                    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                        both(o, dtype, p, "FlashAttention 2",
                             lambda: F.scaled_dot_product_attention(q, k, v, is_causal=bool(p["causal"])), (q, k, v))
            keep()


def triton_rows():
    """One row per program, held in registers: what a Triton user writes first."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def softmax_kernel(x, y, C, BLOCK: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * C
        c = tl.arange(0, BLOCK)
        v = tl.load(x + i + c, mask=c < C, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + i + c, e / tl.sum(e, 0), mask=c < C)

    @triton.jit
    def layernorm_kernel(x, w, b, y, mean, rstd, C, BLOCK: tl.constexpr):
        r = tl.program_id(0).to(tl.int64)
        c = tl.arange(0, BLOCK)
        v = tl.load(x + r * C + c, mask=c < C, other=0.0).to(tl.float32)
        m = tl.sum(v, 0) / C
        d = tl.where(c < C, v - m, 0.0)
        s = 1 / tl.sqrt(tl.sum(d * d, 0) / C + 1e-5)
        tl.store(mean + r, m)
        tl.store(rstd + r, s)
        out = d * s * tl.load(w + c, mask=c < C, other=0.0) + tl.load(b + c, mask=c < C, other=0.0)
        tl.store(y + r * C + c, out, mask=c < C)

    def softmax(x):
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps=min(32, max(4, block // 512)))
        return y

    def layernorm(x, w, b):
        y, mean = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
        rstd = torch.empty_like(mean)
        block = triton.next_power_of_2(x.shape[1])
        layernorm_kernel[(x.shape[0],)](x, w, b, y, mean, rstd, x.shape[1], BLOCK=block,
                                        num_warps=min(32, max(4, block // 512)))
        return y

    return softmax, layernorm


# --- the table ---


def text_of(us):
    return f"{us / 1000:.2f} ms" if us >= 1000 else f"{us:.1f} us" if us >= 10 else f"{us:.2f} us"


def shape_of(r):
    p = r["params"]
    if "n" in p:
        return f"{p['n']}"
    if "heads" in p:
        causal = " causal" if p["causal"] else ""
        return f"{p['batch_size']} x {p['heads']} x {p['sequence_length']} x {p['tensor_dimension']}{causal}"
    rows = p["batch_size"] * p["sequence_length"]
    return f"{rows} x {p['tensor_dimension']}" + (f" of {p['vocabulary']}" if "vocabulary" in p else "")


def rows_of(saved):
    """One dictionary per operation, direction, element type and shape, in the order measured."""
    copies = {}
    for r in saved["kbench"]:
        if r["operation"] == "copy" and r["time_ms"] and r["origin"] == "own":
            copies[r["bytes"]] = min(r["time_ms"], copies.get(r["bytes"], math.inf))
    copies = sorted(copies.items())

    def copy_ms(size):
        """A copy of as many bytes: between two that were timed a straight line, beyond them the nearest's rate."""
        for (a, at_a), (b, at_b) in zip(copies, copies[1:]):
            if a <= size <= b:
                return at_a + (at_b - at_a) * (size - a) / (b - a)
        nearest, ms = copies[0] if size < copies[0][0] else copies[-1]
        return ms * size / nearest

    groups = {}
    for r in saved["kbench"]:
        groups.setdefault(key(r["operation"], r["direction"], r["dtype"], r["params"]), []).append(r)
    for name, group in groups.items():
        good = [r for r in group if r["time_ms"]]
        own = [r for r in good if r["origin"] == "own"]
        peer = {f"kbench's {r['implementation']}": 1000 * r["time_ms_raw"] for r in good if r["origin"] != "own"}
        peer.update(saved["peers"].get(name, {}))
        best = min(own, key=lambda r: r["time_ms_raw"]) if own else None
        if not best:
            continue
        row = {"name": name, "record": best, "peer": None, "ratio": None, "copy": None}
        if peer:
            row["peer"] = min(peer, key=peer.get)
            row["peer_us"] = peer[row["peer"]]
            row["ratio"] = row["peer_us"] / (1000 * best["time_ms_raw"])
        if best["operation"] not in ("matmul", "attention") and best["bytes"] and copies:
            row["copy"] = copy_ms(best["bytes"]) / best["time_ms"]
        yield row


def table(saved):
    print("| operation | shape | best of kbench | of the machine | of a copy | best peer | kbench is |")
    print("|---|---|---|---|---|---|---|")
    for row in rows_of(saved):
        r = row["record"]
        if r["operation"] == "copy" and r["params"]["n"] < 1 << 28:  # what others are held against
            continue
        share = "-" if r["gpu_efficiency"] is None else f"{r['gpu_efficiency']:.0f} %"
        copy = "-" if row["copy"] is None else f"{row['copy']:.2f}"
        peer = "-" if row["peer"] is None else f"{text_of(row['peer_us'])} {row['peer']}"
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f} x"
        print(f"| {r['operation']} {r['direction']} {r['dtype']} | {shape_of(r)} "
              f"| {text_of(1000 * r['time_ms'])} `{r['implementation']}` | {share} | {copy} | {peer} | {ratio} |")


TOGETHER = [("copy", "fill", "read", "triad"), ("add", "relu"), ("gelu_erf", "gelu_tanh", "silu")]


def range_of(values, digits, unit=""):
    texts = sorted({f"{v:.{digits}f}" for v in values if v is not None}, key=float)
    return "-" if not texts else " to ".join(dict.fromkeys([texts[0], texts[-1]])) + unit


def summary(saved):
    groups = {}
    for row in rows_of(saved):
        r = row["record"]
        if r["operation"] == "copy" and r["params"]["n"] < 1 << 28:  # what others are held against
            continue
        names = next((g for g in TOGETHER if r["operation"] in g), (r["operation"],))
        if short(r):
            names = tuple(ROWS.split(","))
        groups.setdefault((names, r["dtype"] if r["operation"] == "matmul" else "64 columns" if short(r) else ""),
                          []).append(row)
    print("| operation | rows | best of kbench | of the machine, % | of a copy | against the best peer |")
    print("|---|---|---|---|---|---|")
    for (names, dtype), rows in groups.items():
        directions = ", ".join(dict.fromkeys(r["record"]["direction"] for r in rows))
        count = {}
        for row in rows:
            count[row["record"]["implementation"]] = count.get(row["record"]["implementation"], 0) + 1
        best = ", ".join(f"`{i}`" for i in sorted(count, key=count.get, reverse=True))
        peers = {}
        for row in rows:
            name = row["peer"] and row["peer"].replace("kbench's ", "").replace("cublas", "cuBLAS")
            peers[name] = peers.get(name, 0) + 1
        peers.pop(None, None)
        faster = range_of([row["ratio"] for row in rows], 2, " x") + (" " + ", ".join(peers) if peers else "")
        title = " ".join(t for t in (", ".join(names), directions.replace("run", ""), dtype) if t)
        print(f"| {title} | {len(rows)} | {best} | {range_of([r['record']['gpu_efficiency'] for r in rows], 0)} "
              f"| {range_of([r['copy'] for r in rows], 2)} | {faster} |")


def missed(saved):
    for row in rows_of(saved):
        r = row["record"]
        words = []
        asked = COPY_SHARE.get((r["operation"], r["direction"]), 0.92)
        if row["copy"] is not None and row["copy"] < asked and not short(r):
            words.append(f"{row['copy']:.3f} of a copy ({asked})")
        floor = {"f32": 0.95, "bf16": 0.60}[r["dtype"]] if r["operation"] == "matmul" else 1.0
        if row["ratio"] is not None and row["ratio"] < floor:
            words.append(f"{row['ratio']:.3f} of {row['peer']} ({floor})")
        if words:
            print(f"{row['name']}: {', '.join(words)}")


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    printers = {"--table": table, "--summary": summary, "--missed": missed}
    if arguments[0] in printers:
        return printers[arguments[0]](json.load(open(arguments[1])))
    saved = {"kbench": run_suite(arguments[0]), "peers": {}}
    for r in saved["kbench"]:
        r.pop("samples_ms", None)

    def keep():  # as far as it got
        with open(arguments[1], "w") as f:
            json.dump(saved, f, indent=1)

    keep()
    peers(saved, keep)
    keep()
    table(saved)


main(sys.argv[1:])
