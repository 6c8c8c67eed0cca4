# SPDX-License-Identifier: MIT OR Unlicense
"""Compares kbench's LayerNorm, GELU, Swish and losses with PyTorch and torch.compile, for several batch sizes, lengths
and dimensions.

python3 examples/python/layers.py                                        prints a table, writes layers.json
python3 examples/python/layers.py --batch 1:64:*4 --length 512,2048 --dimension 768,1024:8192:*2 --dtype f32,bf16
python3 examples/python/layers.py --operation layernorm --direction fwd,bwd
python3 examples/python/layers.py --dry-run                              lists the comparisons; needs no GPU

One comparison covers one operation in one shape and element type. All implementations get the same inputs and are
checked with the same oracle. All implementations run in interleaved rounds with a cold L2 cache.
"""

import argparse
import re
import sys

import kbench

OPERATIONS = ["layernorm", "gelu_erf", "silu", "mse", "cross_entropy"]  # silu is Swish
TITLES = {"gelu_erf": "GELU", "gelu_tanh": "GELU (tanh)", "silu": "Swish", "layernorm": "LayerNorm", "mse": "MSE"}
TITLES["cross_entropy"] = "cross entropy"
HEAD = ["operation", "batch", "length", "dim", "type", "implementation", "us", "+- %", "GB/s", "of peak %", "runs/s"]
HEAD += ["vs torch", "flags"]


def numbers(text):
    """In the syntax of kbench's option -a: 512,1024:8192:*2 or 0:100:+25."""
    values = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?::(\d+):([*+])(\d+))?", part)
        if not found or (found[3] == "*" and (int(found[1]) < 1 or int(found[4]) < 2)) or found[4] == "0":
            raise argparse.ArgumentTypeError(f"'{part}' is neither a number nor a range (1024:8192:*2, 128:512:+128)")
        first, last, how, step = int(found[1]), int(found[2] or found[1]), found[3] or "+", int(found[4] or 1)
        while first <= last:
            values.append(first)
            first = first * step if how == "*" else first + step
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': sizes must be at least 1")
    return values


def plan_of(o):
    shapes = [(b, s, d) for b in o.batch for s in o.length for d in o.dimension]
    return [(name, dtype, shape) for name in o.operation for dtype in o.dtype for shape in shapes]


def runs(o):
    found = {}
    for k in kbench.kernels:
        if k.operation in o.operation and (k.direction in o.direction or k.direction == "fwdbwd"):
            found.setdefault((k.operation, k.direction), set()).update(t for t in k.dtypes if t in o.dtype)
    return found


def rows(records):
    """Returns one line of the table per record. The column "vs torch" is PyTorch's time in the same comparison divided
    by the record's time."""
    key = lambda r: (r.operation, r.direction, r.dtype, str(r.params))
    theirs = {key(r): r.time_ms for r in records if r.implementation == "torch"}
    lines = []
    for r in records:
        p, number = r.params, lambda v, digits=4: "-" if v is None else f"{v:.{digits}g}"
        faster = theirs[key(r)] / r.time_ms if theirs.get(key(r)) and r.time_ms else None
        who = r.implementation if r.origin == "user" else "kb:" + r.implementation
        lines.append(
            [
                f"{TITLES.get(r.operation, r.operation)} {r.direction}",
                *(str(p[x]) for x in ("batch_size", "sequence_length", "tensor_dimension")),
                r.dtype,
                who,
                "-" if r.time_ms is None else f"{1000 * r.time_ms:.2f}",
                "-" if r.precision is None else f"{100 * r.precision:.2f}",
                number(r.throughput_gbps),
                number(r.gpu_efficiency, 3),
                number(r.inference_speed),
                number(faster, 3),
                " ".join(r.flags or []) if r.time_ms else f"{r.status}: {r.message}",
            ]
        )
    return lines


def show(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        cells = [c.ljust(w) if i in (0, 5) else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())


def main():
    words = lambda text: text.split(",")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operation", type=words, default=OPERATIONS, metavar="A,B", help=", ".join(OPERATIONS))
    parser.add_argument("--direction", type=words, default=["fwd"], metavar="A,B", help="directions: fwd, bwd (fwd)")
    parser.add_argument("--batch", type=numbers, default=[4, 16], metavar="LIST", help="batch sizes (4,16)")
    parser.add_argument("--length", type=numbers, default=[512, 2048], metavar="LIST", help="lengths (512,2048)")
    parser.add_argument("--dimension", type=numbers, default=[1024, 4096], metavar="LIST", help="columns (1024,4096)")
    parser.add_argument("--dtype", type=words, default=["bf16"], metavar="A,B", help="f32, f16, bf16 (default: bf16)")
    parser.add_argument("--peers", type=words, default=["torch", "compile"], metavar="A,B", help="(torch,compile)")
    parser.add_argument("--max-time", type=float, default=0.05, metavar="S", help="seconds of sampling per function")
    parser.add_argument("--json", default="layers.json", metavar="FILE", help="where to save the records")
    parser.add_argument("--dry-run", action="store_true", help="only list the comparisons; needs no GPU")
    o = parser.parse_args()
    try:
        for what, names, known, valid in (
            ("operation", o.operation, {k.operation for k in kbench.kernels}, OPERATIONS),
            ("direction", o.direction, ["fwd", "bwd"], ["fwd", "bwd"]),
            ("element type", o.dtype, ["f32", "f16", "bf16"], ["f32", "f16", "bf16"]),
        ):
            unknown = [name for name in names if name not in known]
            if unknown:
                raise kbench.Error(f"unknown {what} '{unknown[0]}'; one of {', '.join(valid)}")
        if o.dry_run:
            for name, dtype, shape in plan_of(o):
                for (operation, direction), types in runs(o).items():
                    if operation == name and dtype in types:
                        print(f"{TITLES.get(name, name)} {direction} {dtype}", " x ".join(map(str, shape)), *o.peers)
            return 0
        shapes = [
            {"batch_size": b, "sequence_length": s, "tensor_dimension": d}
            for b in o.batch
            for s in o.length
            for d in o.dimension
        ]
        records = kbench.kernels.suite(
            o.operation,
            o.peers,
            shapes,
            o.dtype,
            directions=list(dict.fromkeys(direction for _, direction in runs(o))),
            max_time=o.max_time,
            keep=lambda found: kbench.save(found, o.json),
        )
    except kbench.Error as error:
        print(f"layers: {error}", file=sys.stderr)
        return 2
    kbench.save(records, o.json)
    show([HEAD] + rows(records))
    for who, why in records.missing:
        print(f"left out: {who}: {why}")
    wrong = [r for r in records if r.time_ms is None]
    print(f"{len(records)} records in {o.json}, {len(wrong)} without a time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
