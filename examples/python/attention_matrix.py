# SPDX-License-Identifier: MIT OR Unlicense
"""Compares attention forward of PyTorch's backends with the kernels of kbench_kernels.cuh, for several batch sizes,
numbers of heads, lengths and head dimensions.

python3 examples/python/attention_matrix.py                              prints a table, writes attention_matrix.json
python3 examples/python/attention_matrix.py --shape 4,16,4096,128 --dtype bf16 --causal
python3 examples/python/attention_matrix.py --dry-run                    lists the comparisons; needs no GPU

One comparison covers one shape in one element type: all implementations get the same inputs and run in interleaved
rounds. Every output is compared with the output of PyTorch in double precision. Below the table, the program lists
each implementation that does not support a shape or type.
"""

import argparse
import sys

import kbench

SHAPES = [(1, 1, 128, 64), (8, 4, 128, 64), (32, 8, 128, 64), (32, 8, 256, 64), (4, 16, 2048, 128)]
BACKENDS = {
    "torch": None,  # baseline: the backend that PyTorch chooses
    "math": "MATH",
    "efficient": "EFFICIENT_ATTENTION",
    "fa2": "FLASH_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
}
OFF = {"f16": 1e-2, "bf16": 5e-2}  # tolerances for the norm of the error divided by the norm of the output
LONG = {"f16": "float16", "bf16": "bfloat16"}


def rungs(dtype):
    return [k for k in kbench.kernels if k.operation == "attention" and k.direction == "fwd" and dtype in k.dtypes]


def close_to(want, dtype):
    def check(got):
        got = got[0] if isinstance(got, tuple) else got
        off = float((got.double() - want).norm() / want.norm())
        return off <= OFF[dtype], off, OFF[dtype], f"the relative error is {off:.2g}"

    return check


def backend_of(name, q, k, v, causal):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    product = torch.nn.functional.scaled_dot_product_attention
    if BACKENDS[name] is None:
        return lambda: product(q, k, v, is_causal=causal)
    backend = getattr(SDPBackend, BACKENDS[name])

    def call():
        with sdpa_kernel(backend):
            return product(q, k, v, is_causal=causal)

    return call


def comparison(shape, dtype, causal, options, missing):
    """Returns the records. Appends each implementation that cannot run to the list `missing`."""
    import torch

    b, h, s, d = shape
    generator = torch.Generator(device="cuda").manual_seed(options.seed)
    q, k, v = (
        torch.randn(b, h, s, d, generator=generator, device="cuda").to(getattr(torch, LONG[dtype]))
        for _ in range(3)
    )
    where = f"{b} x {h} x {s} x {d} {dtype}"
    want = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    functions = {}
    for name in options.backends:
        call = backend_of(name, q, k, v, causal)
        try:
            call()
            torch.cuda.synchronize()
            functions[name] = call
        except RuntimeError as error:
            missing.append(f"{name}, {where}: {str(error).splitlines()[0][:120]}")
    for kernel in rungs(dtype):
        try:
            launch = kernel.bind(q, k, v, causal=causal)
        except (kbench.Error, RuntimeError) as error:
            missing.append(f"{kernel.implementation}, {where}: {str(error).splitlines()[0][:120]}")
            continue
        why = launch.why_not()
        if why:
            missing.append(f"{kernel.implementation}, {where}: {why}")
        else:
            functions["kb:" + kernel.implementation] = launch
    operation = kbench.kernels["attention", "fwd"]
    return kbench.compare(
        functions,
        name="attention",
        check=close_to(want, dtype),
        bytes=operation.bytes(q, k, v, causal=causal),
        flops=operation.flops(q, k, v, causal=causal),
        items=b * h * s,  # number of queries
        params={"batch": b, "heads": h, "length": s, "dimension": d, "causal": int(causal)},
        dtype=dtype,
        max_time=options.max_time,
        seed=options.seed,
    )


HEAD = ["batch", "heads", "length", "dim", "type", "implementation", "us", "+- %", "GFLOP/s", "GB/s", "queries/s"]
HEAD += ["speedup", "flags"]


def row(r):
    p, number = r.params, lambda v, digits=4: "-" if v is None else f"{v:.{digits}g}"
    queries = None if not r.time_ms else p["batch"] * p["heads"] * p["length"] / (1e-3 * r.time_ms)
    cells = [str(p[x]) for x in ("batch", "heads", "length", "dimension")] + [r.dtype, r.implementation]
    time = "-" if r.time_ms is None else f"{1000 * r.time_ms:.2f}"
    spread = "-" if r.precision is None else f"{100 * r.precision:.2f}"
    rates = [number(r.gflops), number(r.throughput_gbps), number(queries), number(r.speedup, 3)]
    flags = " ".join(r.flags or []) if r.time_ms else f"{r.status}: {r.message}"
    return cells + [time, spread, *rates, flags]


def show(rows):
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    for line in rows:
        print("  ".join(cell.rjust(w) if i != 5 else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths))))


def shape_of(text):
    shape = tuple(int(v) for v in text.split(","))
    if len(shape) != 4 or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape batch,heads,length,dimension, such as 8,4,128,64")
    return shape


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", type=shape_of, action="append", metavar="B,H,S,D", help="one shape; repeatable")
    parser.add_argument(
        "--dtype", action="append", choices=sorted(OFF), help="an element type; repeatable (default: all types)"
    )
    parser.add_argument(
        "--backend", action="append", choices=list(BACKENDS), help="a backend; repeatable (default: all backends)"
    )
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--max-time", type=float, default=0.05, metavar="S", help="seconds of sampling per function")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--json", default="attention_matrix.json", metavar="FILE", help="where to save the records")
    parser.add_argument("--dry-run", action="store_true", help="only list the comparisons; needs no GPU")
    o = parser.parse_args()
    o.backends = o.backend or list(BACKENDS)
    plan = [(shape, dtype) for dtype in o.dtype or sorted(OFF) for shape in o.shape or SHAPES]
    if o.dry_run:
        for shape, dtype in plan:
            names = o.backends + ["kb:" + k.implementation for k in rungs(dtype)]
            print(" x ".join(map(str, shape)), dtype, "causal" if o.causal else "full", *names)
        return 0
    try:
        kbench.kernels.build(["attention"], list(dict.fromkeys(d for _, d in plan)))
        import torch  # noqa: F401
    except (kbench.Error, ImportError) as error:
        print(f"attention_matrix: {error}", file=sys.stderr)
        return 2
    records, missing = kbench.Records(), []
    for shape, dtype in plan:
        records += comparison(shape, dtype, o.causal, o, missing)
        kbench.save(records, o.json)
    show([HEAD] + [row(r) for r in records])
    for why in missing:
        print(f"left out: {why}")
    wrong = [r for r in records if r.time_ms is None]
    print(f"{len(records)} records in {o.json}, {len(wrong)} without a time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
