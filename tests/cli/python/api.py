# SPDX-License-Identifier: MIT OR Unlicense
"""Tests kbench.py without a GPU: comparisons, checks, errors, records, tables, the interface of triton.testing,
command line."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import types
import warnings
from concurrent.futures import Future
from fractions import Fraction

import kbench

here = os.path.dirname(os.path.abspath(__file__))
scratch = sys.argv[1]
passed, failed = 0, 0


def check(what, good, said=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAIL: {what}: {said}")


def raised(kind, fn, *args, **options):
    try:
        fn(*args, **options)
    except kind as error:
        return str(error) or "raised"
    return None


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return 1.5


def contests():
    functions = {
        "one": lambda s: spin(s),
        "two": lambda s: spin(2 * s),
        "wrong": lambda s: spin(s) + 1e-6,
        "raises": lambda s: [][1],
    }
    r = kbench.compare(
        functions,
        inputs=(2e-4,),
        name="spin",
        check="one",
        host=True,
        max_time=0.1,
        bytes=1e6,
        params={"n": 4096, "scale": 0.5, "kind": "wide"},
        dtype="f32",
    )
    one, two, wrong, raises = r
    check("names", one.name == "spin/impl=one/dtype=f32/n=4096/scale=0.5/kind=wide", one.name)
    check("params", one.params == {"dtype": "f32", "n": 4096, "scale": 0.5, "kind": "wide"}, one.params)
    check("a time", 0.19 < one.time_ms, one)
    check("a speedup", 0.3 < two.speedup < 0.8 and two.baseline == "one", two)
    check("a verdict", two.verdict in ("SLOWER", "UNRESOLVED"), two)
    check("checked", one.verified is True and one.max_error == 0, one)
    check("a rate", one.throughput_gbps and abs(one.throughput_gbps * one.time_ms - 1) < 1e-6, one)
    check(
        "no time is reported for a function with a wrong output",
        wrong.status == "failed" and wrong.time_ms is None and "VERIFY_FAIL" in wrong.flags,
        wrong,
    )
    check(
        "a failed record holds the reason of the failure",
        "IndexError" in raises.message and isinstance(raises.exception, IndexError),
        raises,
    )
    check(
        "an empty function", 0 < one.python_call_ms < 0.05 and "from C takes" not in (one.message or ""), one
    )
    check("one line", "\n" not in repr(two) and "two" in repr(two), repr(two))
    check("a table in notebooks", r._repr_html_().count("<tr>") == 5 and "&lt;" not in one._repr_html_())
    evil = "\x1b[5m\u202e\x9b\n::error::x ##[error]<b>"
    loaded = kbench.Record(dict(one.to_dict(), name="::error::x", message=evil))
    shown = "\\x1b[5m\\u202e\\x9b ::error::x \\x23#[error]"
    check("a record: escape sequences", repr(loaded).startswith("\\x3a:error::x") and shown in repr(loaded))
    check("a table: escape sequences", shown + "&lt;b&gt;" in loaded._repr_html_(), loaded._repr_html_())
    cells = [("=1+1", "'=1+1"), ("-1.5", "-1.5"), ("\t@x", "' @x"), ('a,"', '"a,"""'), ("-x\n", "'-x ")]
    for text, cell in cells:
        check("a cell of CSV", kbench._cell(text) == cell, kbench._cell(text))
    said, sys.stderr = sys.stderr, io.StringIO()
    kbench._say(f"error: {evil}")
    said, sys.stderr = sys.stderr.getvalue(), said
    check("an error", said == "kbench: error: \\x1b[5m\\u202e\\x9b\n\\x3a:error::x \\x23#[error]<b>\n", said)
    drawn = r.figure("speed")
    check("a figure in notebooks", drawn._repr_svg_().startswith("<svg") and "two" in drawn.svg, drawn)
    drawn.save(os.path.join(scratch, "figure.svg"))
    with open(os.path.join(scratch, "figure.svg")) as f:
        check("a figure in a file", f.read() == drawn.svg)
    check("no such figure", "nearest name is 'speed'" in str(raised(kbench.Error, kbench.figure, r, "sped")))
    check("no such key", "to_dict" in raised(AttributeError, getattr, one, "nothing"))
    d = one.to_dict()
    d["time_ms"] = 0
    check("a copy", one.time_ms > 0 and "time_ms" in dir(one))
    empty = kbench.time(lambda: None, host=True, max_time=0.05)
    check("a short time has a note about the call overhead", "from C takes" in empty.message, empty)

    runs, resets = [0], [0]

    def work(x):
        runs[0] += 1
        x.append(1)

    def before(x):
        resets[0] += 1
        x.clear()

    r = kbench.time(work, [], before=before, check=lambda output: output is None, host=True, samples=20)
    check("as many samples", r.samples == 20, r)
    check("a reset before each", resets[0] == runs[0] > 20, (resets, runs))
    outputs = []
    kbench.time(lambda: len(outputs), check=lambda output: outputs.append(output), host=True, samples=5)
    check("checked after the first and after the last run", len(outputs) >= 2, outputs)
    in_place = {"a": lambda x: x.__setitem__(0, 2.0), "b": lambda x: x.__setitem__(0, 3.0)}
    r = kbench.compare(in_place, inputs=([1.0],), check="a", host=True, samples=5)
    check("in place", r[0].verified is True and r[1].verified is False, r)


def comparing():
    nan, inf = float("nan"), float("inf")
    ok = lambda got, want, **o: kbench.time(lambda: got, check=want, host=True, samples=3, **o).verified
    check(
        "values",
        ok([1.0, nan, inf], [1.0, nan, inf]) and not ok([1.0, nan], [1.0, 2.0]) and not ok([inf], [-inf]),
    )
    check("tolerance", ok(1.0 + 5e-10, 1.0) and not ok(1.001, 1.0) and ok(1.001, 1.0, rtol=1e-2))
    check(
        "structure",
        ok({"a": (1, [2.0])}, {"a": (1, [2.0])}) and not ok([1.0], [1.0, 2.0]) and not ok("x", 1.0),
    )
    check("exact", ok([1, 2], [1, 2]) and not ok([1, 3], [1, 2]) and not ok(True, 1.0))
    try:
        import numpy
    except ImportError:
        print("SKIP: no numpy: comparisons of arrays are not tested")
        return
    x = numpy.arange(6, dtype="f4").reshape(2, 3)
    check("arrays", ok(x, x) and ok(x * numpy.float32(1 + 1e-6), x) and not ok(x + 1, x))
    check(
        "arrays: arrays of different shapes or element types fail",
        not ok(x.reshape(3, 2), x) and not ok(x.astype("f8"), x),
    )
    y = x.copy()
    y[0] = nan, inf, -inf
    check("arrays: not finite", ok(y, y) and not ok(x, y) and not ok(-y, y))
    check(
        "arrays: whole numbers",
        ok(numpy.arange(3), numpy.arange(3)) and not ok(numpy.arange(3) + 1, numpy.arange(3)),
    )
    r = kbench.compare(
        {"numpy": lambda a: a @ a.T, "mine": lambda a: (a[:, None] * a[None]).sum(-1)},
        inputs=(x,),
        check="numpy",
        host=True,
        samples=5,
    )
    check("arrays: a comparison", all(v.verified for v in r), r)

    class Jax:  # simulates a jax array on the host, whose type belongs to the module jaxlib
        __module__, shape, dtype = "jaxlib._jax", (2, 3), "float32"

        def __init__(self, values):
            self.values = values

        def copy(self):
            return Jax(self.values)

        def __array__(self, *_, **__):
            return self.values

    sys.modules["jaxlib"] = types.ModuleType("jaxlib")
    check("arrays: jax's", ok(Jax(x), Jax(x * numpy.float32(1 + 1e-6))) and not ok(Jax(x + 1), Jax(x)))
    del sys.modules["jaxlib"]


def errors():
    check(
        "raised again", raised(ZeroDivisionError, kbench.time, lambda: 1 / 0, host=True) == "division by zero"
    )

    def strange():
        raise ValueError("x\u00e9\u20ac" * 200 + "\ud800")

    r = kbench.compare({"strange \u00e9": strange}, host=True)[0]
    check("any text", "ValueError: x\u00e9" in r.message and r.implementation == "strange \u00e9", r)
    check("needs a GPU", "host=True" in raised(kbench.Error, kbench.time, lambda: None))
    check("no such function", "'c'" in raised(kbench.Error, kbench.compare, {"a": int}, check="c", host=True))
    check("nothing to compare", raised(kbench.Error, kbench.compare, {}, host=True))
    check("functions without names", "'name'" in raised(kbench.Error, kbench.compare, [int, int], host=True))
    file = __file__ + ":check"
    check(
        "a reference given by its file name",
        "the reference must be" in raised(kbench.Error, kbench.judge, file, file, (1,)),
    )
    check("expect", "transfer" in raised(kbench.Error, kbench.time, int, host=True, expect=["x"]))
    check("no benchmark function", "op=" in raised(kbench.Error, kbench.bench, 5))
    check("expect: one word", kbench.time(int, host=True, samples=3, expect="sync").time_ms)
    nan, inf = float("nan"), float("inf")
    for wrong in (
        *({k: v} for k in ("bytes", "flops", "items") for v in (-1, nan, inf, "5")),
        *({k: v} for k in ("precision", "max_time") for v in (-1, nan, "1s")),
        *({k: v} for k in ("samples", "seed", "device") for v in (-1, 2.5, 2**64 + 5)),
        *({"check": 0, k: v} for k in ("rtol", "atol") for v in (-1, nan, "1")),
        *({"params": {"n": v}} for v in (2**63, 2**64 + 5, None)),
        {"precision": 5},
        {"params": [("n", 1)]},
        {"params": {"n\0m": 1}},
        {"params": {str(i): i for i in range(16)}},
        {"rtol": 1e-3},
        {"atol": 1e-3, "check": bool},
    ):
        key = list(wrong)[-1] if "rtol" not in wrong else "rtol"
        said = raised(kbench.Error, kbench.time, int, host=True, max_time=wrong.pop("max_time", 0.01), **wrong)
        check(f"arguments: {wrong}", said and (key in said or "NUL" in said), said)
    params = {"n": 2**63 - 1, "m": -(2**63) + 1, "r": Fraction(1, 2)}
    check("params", kbench.time(int, host=True, samples=3, params=params).params == dict(params, r=0.5))

    async def coroutine():
        return 1

    for lazy in (lambda: (i for i in "ab"), lambda: map(abs, [1]), coroutine, Future):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the coroutine is never awaited
            said = raised(kbench.Error, kbench.time, lazy, host=True, samples=3)
        check("a function that has not done its work when it returns", said and "waits for the result" in said, said)
    done = Future()
    done.set_result(1)
    check("a Future that is done", kbench.time(lambda: done, host=True, samples=3.0).time_ms)
    check("an iterator of a list has nothing to do later", kbench.time(iter, [1], host=True, samples=3).time_ms)
    bad = kbench.time(int, host=True, mode="warm")
    check("a bad description", bad.status == "failed" and "mode" in bad.message and "kb_" not in bad.message, bad)
    c = "kb_desc.n_params; kb_expect(kb, KB_EXPECT_SYNC); KB_TIME(kb) { ... }; KB_ALLOC; kb_check; kb->stream"
    names = 'params; expect=("sync",); kb.time; kb.alloc; check; kb.stream'
    check(
        "names of the C interface become names of the Python interface",
        kbench._in_python_terms(c) == names, kbench._in_python_terms(c),
    )

    calls = [0]

    def interrupted():
        calls[0] += 1
        if calls[0] == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return calls[0]

    before = signal.getsignal(signal.SIGINT)
    begin = time.perf_counter()
    check(
        "Ctrl-C",
        raised(
            KeyboardInterrupt, kbench.compare, {"a": interrupted, "b": interrupted}, host=True, max_time=30
        ),
    )
    check("Ctrl-C ends at once", calls[0] < 200 and time.perf_counter() - begin < 15, calls)
    check("Ctrl-C as before", signal.getsignal(signal.SIGINT) is before)
    check("exits go through", raised(SystemExit, kbench.time, lambda: sys.exit(3), host=True) == "3")


def records():
    path = os.path.join(scratch, "records.json")
    r = kbench.compare({"a": int, "b": float}, name="types", host=True, max_time=0.05)
    kbench.save(r, path)
    again = kbench.load(path)
    check("saved and read", [v.to_dict() for v in again] == [v.to_dict() for v in r])
    # schema 2: `mode` is cache and timer, and stage_shared is today's shared_buffers
    older = os.path.join(scratch, "older.json")
    for mode, want in (
        ("cold", ("cold", "events")),
        ("graph", ("graph", "events")),
        ("wall", (None, "wall")),
        (None, (None, None)),
    ):
        with open(older, "w") as f:
            json.dump([{"name": "n", "operation": "o", "mode": mode, "stage_shared": True, "schema": 2}], f)
        one = kbench.load(older)[0]
        check(f"of schema 2, {mode}", (one.cache, one.timer) == want and one.shared_buffers is True, one.to_dict())
        check(f"of schema 2, {mode}: keys", "mode" not in one.to_dict() and one.schema == 3, one.to_dict())
    os.remove(older)
    with open(path) as f:
        check("plain JSON", isinstance(json.load(f), list) and os.listdir(scratch).count("records.json") == 1)
    link = os.path.join(scratch, "link.json")
    os.symlink("records.json", link)
    os.chmod(path, 0o600)
    kbench.save(r, link)
    check("saved through a link", os.path.islink(link) and os.stat(path).st_mode & 0o777 == 0o600)
    check("not saved", raised(AttributeError, kbench.save, [1], link) and len(kbench.load(path)) == len(r))
    check("nothing else", not [name for name in os.listdir(scratch) if name.startswith(".kbench-")])
    lines = os.path.join(scratch, "records.jsonl")
    kbench.save(r, lines)
    with open(lines) as f:
        check("one record a line", [json.loads(line)["name"] for line in f] == [v.name for v in r])
    check(
        "kbench.load reads one record per line",
        [v.to_dict() for v in kbench.load(lines)] == [v.to_dict() for v in r],
    )
    for name, cure in (("r.html", '"--html"'), ("r.csv", '"--csv"'), ("r.svg", "kbench.figure"), ("r", "endings")):
        said = raised(kbench.Error, kbench.save, r, os.path.join(scratch, name))
        check(f"not saved: {name}", said and cure in said and not os.path.exists(os.path.join(scratch, name)), said)
    torn = os.path.join(scratch, "torn.jsonl")
    for text, count in (("{}\n{}\n", 2), ("{}\n{}", 2), ('{}\n{{"name": "b', 1), ("{}\n\n", 1), ("", 0)):
        with open(torn, "w") as f:
            f.write(text.format(*[json.dumps(r[0].to_dict())] * 2))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            check(f"read: {text!r}", len(kbench.load(torn)) == count)
        check(f"read: {text!r}: a message", ("torn.jsonl:2: this line ends" in said.getvalue()) == ('"b' in text))
    for text in ('[{"name": "a"},', '{"name": \n{}', "[1, 2]", '{"n": 1}', "\xff\0"):
        with open(torn, "w", encoding="latin-1") as f:
            f.write(text)
        check(f"not read: {text!r}", "torn.jsonl" in str(raised(kbench.Error, kbench.load, torn)))
    for records, options, cure in (
        (r, ("--csv", os.path.join(scratch, "none", "x.csv")), "cannot write"),
        (r, ("--columns", "nosuch"), "nosuch"),
        ([], (), "no record"),
    ):
        said = raised(kbench.Error, kbench.table, records, *options)
        check(f"kbench.table: {options}", said and cure in said and "records.json" not in said, said)
    for records in (r, again, r[0]):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            kbench.table(records)
        check("kbench's table", "types" in text.getvalue() and "case" in text.getvalue(), text.getvalue())
        check(
            "kbench's table gives advice in Python's terms",
            not re.search(r"kb_|KB_", text.getvalue()),
            text.getvalue(),
        )
    doubtful = kbench.Record(dict(r[0].to_dict(), flags=["NOISY", "AUTOCORR", "FEW", "DRIFT"]))
    with contextlib.redirect_stdout(io.StringIO()) as text:
        kbench.table(doubtful)
    said = " ".join(text.getvalue().split())
    for advice in (
        "close other programs, or raise max_time=",
        "raise max_time= or samples=",
        "try max_time=10, or several processes: kbench.bench with --procs 5",
        "or a longer kbench.bench with --warmup",
    ):
        check("kbench's table names arguments of compare", advice in said, said)
    page = os.path.join(scratch, "page.md")
    with contextlib.redirect_stdout(io.StringIO()) as text:
        kbench.table(r, "--md", page, "--columns", "speedup")
    check(
        "kbench's report",
        os.path.getsize(page) > 200 and " time" not in text.getvalue().splitlines()[3],
        text.getvalue(),
    )
    check("not written", raised(OSError, kbench.save, r, os.path.join(scratch, "none", "x.json")))


def triton_faces():
    bench = lambda **o: kbench.do_bench(lambda: spin(1e-4), warmup=5, rep=20, host=True, **o)
    mean, low, high = bench(), *bench(quantiles=[0.1, 0.9])
    check("do_bench", mean > 0.09 and 0.09 < low <= high, (mean, low, high))
    check("do_bench: one quantile", bench(quantiles=[0.5]) > 0.09)
    check("do_bench: modes", all(bench(return_mode=m) > 0.09 for m in ("min", "max", "median")))
    check(
        "do_bench: all", len(bench(return_mode="all")) > 5 and raised(kbench.Error, bench, return_mode="mode")
    )

    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        few = [kbench.do_bench(lambda: spin(1e-3), rep=0, host=True, return_mode="all") for _ in range(2)]
    check("do_bench: rep=0", [1 <= len(v) < 10 for v in few] == [True, True], few)
    check("do_bench: rep=0 is no second", time.perf_counter() - begin < 0.9, time.perf_counter() - begin)
    said = [(str(w.message), os.path.basename(w.filename)) for w in told]
    few = [w for w in said if "FEW" in w[0]]
    check("do_bench: a warning if unreliable", few and "UNVERIFIED" not in few[0][0] and few[0][1] == "api.py", said)
    check("do_bench: once", len(set(said)) == len(said), said)

    for wrong in ({"quantiles": [1.5]}, {"quantiles": [-1]}, {"quantiles": [float("nan")]}, {"rep": -1}):
        said = raised(kbench.Error, kbench.do_bench, int, host=True, **wrong)
        check(f"do_bench: {wrong}", said and list(wrong)[0] in said, said)
    for line_names in (["A"], ["A", "B", "C"], ["A", "A"], ["n", "B"]):
        wrong = dict(x_names=["n"], x_vals=[1], line_arg="p", line_vals=["a", "b"], plot_name="p", args={})
        said = raised(kbench.Error, kbench.Benchmark, line_names=line_names, **wrong)
        check(f"Benchmark: {line_names}", said and "line_names" in said, said)

    class Tensor:
        grad = 1

    t = Tensor()
    kbench.do_bench(lambda: setattr(t, "seen", t.grad), grad_to_none=[t], rep=5, host=True)
    check("do_bench: gradients", t.grad is None and t.seen is None)

    @kbench.perf_report(
        kbench.Benchmark(
            x_names=["n", "m"],
            x_vals=[2, (4, 8)],
            line_arg="provider",
            line_vals=["a", "b"],
            line_names=["A", "B"],
            plot_name="sums",
            args={"k": 3},
            ylabel="ms",
        )
    )
    def sums(n, m, provider, k, more=0):
        return (n * m * k + more, 1.0, 2.0) if provider == "a" else 0.5

    with contextlib.redirect_stdout(io.StringIO()) as text:
        rows = sums.run(print_data=True, save_path=scratch, return_df=True, more=1)
    check("perf_report: printed", "sums:" in text.getvalue() and "97" in text.getvalue(), text.getvalue())
    if isinstance(rows, list):
        check("perf_report: rows", rows == [dict(n=2, m=2, A=13, B=0.5), dict(n=4, m=8, A=97, B=0.5)], rows)
    with open(os.path.join(scratch, "sums.csv")) as f:
        check("perf_report: a file", f.read() == "n,m,A,B\n2,2,13,0.500000\n4,8,97,0.500000\n")
    with open(os.path.join(scratch, "results.html")) as f:
        check("perf_report: a page", "<h2>sums</h2>" in f.read())
    with contextlib.redirect_stdout(io.StringIO()) as text:
        rows = sums.run(print_data=True, save_path=scratch, return_df=True, diff_col=True, save_precision=2)
    check("perf_report: no do_bench, no pairs", text.getvalue().splitlines()[1].split() == ["n", "m", "A", "B", "Diff"])
    with open(os.path.join(scratch, "sums.csv")) as f:
        check("perf_report: a difference", f.read() == "n,m,A,B,Diff\n2,2,12,0.50,-11.50\n4,8,96,0.50,-95.50\n")
    if isinstance(rows, list):
        check(
            "perf_report: the column Diff holds the second curve minus the first",
            [r["Diff"] for r in rows] == [-11.5, -95.5], rows,
        )
    class Plot:  # as in matplotlib
        def __getattr__(self, name):
            return lambda *a, **o: open(a[0], "w").close() if name == "savefig" else None

    pages = []
    sys.modules["matplotlib"], sys.modules["matplotlib.pyplot"] = types.ModuleType("matplotlib"), Plot()
    sys.modules["matplotlib"].pyplot = Plot()
    for _ in range(2):
        sums.run(save_path=scratch)
        with open(os.path.join(scratch, "results.html")) as f:
            pages.append('<img src="sums.png"/>' in f.read())
        sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
    check("perf_report: the page shows no figures of earlier runs", pages == [True, False], pages)
    del sys.modules["matplotlib"], sys.modules["matplotlib.pyplot"]
    long = kbench.Benchmark(["n", "m"], [2, (4, 8, 16)], "provider", ["a"], ["A"], "long", {"k": 3})
    calls = []
    mark = kbench.perf_report([sums.benchmarks, long])(lambda **_: calls.append(1) or 1.0)
    check("perf_report: a point too long", "(4, 8, 16)" in str(raised(ValueError, mark.run, save_path=scratch)))
    check("perf_report: an invalid Benchmark is not measured", len(calls) == 4, calls)
    with open(os.path.join(scratch, "results.html")) as f:
        page = f.read()
    check("perf_report: the page shows everything measured so far", "sums" in page and "long" not in page, page)


def command_line():
    def run(*words, **options):
        return subprocess.run(
            [sys.executable, os.path.join(here, "benches.py"), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            universal_newlines=True,
            **options,
        )

    path = os.path.join(scratch, "benches.json")
    listed = run("--list")
    check(
        "--list",
        listed.returncode == 0 and "total/impl=loop/n=200/scale=2/kind=plain" in listed.stdout,
        listed,
    )
    done = run("--iters", "20", "--op", "total", "-a", "n=10", "--json", path)
    check("fine", done.returncode == 0 and "4 cases: 4 ok" in done.stdout, done)
    rows = kbench.load(path)
    check("records", [r.implementation for r in rows] == ["sum", "loop"] * 2 or len(rows) == 4, rows)
    check("checked", all(r.verified and r.baseline == "sum" and r.time_ms > 0 for r in rows), rows)
    check("what was said", rows[0].origin == "vendor" and "n is 10" in rows[0].message, rows[0].to_dict())
    done = run("--iters", "20", "--op", "buffers")
    check("buffers", done.returncode == 0 and "2 cases: 2 ok" in done.stdout, done)
    done = run("--iters", "20", "--op", "odd", "--json", path)
    found = {r.params["which"]: r for r in kbench.load(path)}
    check("failures", done.returncode == 1 and len(found) == 8, done)
    check(
        "who raised",
        "ValueError: planted at once" in found["raises"].message and "planted at once" in done.stderr,
    )
    check("who raised later", "planted in run 20" in found["raises_late"].message, found["raises_late"])
    check(
        "who left",
        "CRASHED" in found["exits"].flags and "exit code 7" in found["exits"].message,
        found["exits"],
    )
    check("who is wrong", all("VERIFY_FAIL" in found[k].flags for k in ("wrong", "asserts")), found)
    check("who said why", "more than none" in found["asserts"].message, found["asserts"])
    check("no loop", "NO_LOOP" in found["nothing"].flags and "BAD_CASE" in found["twice"].flags, found)
    check(
        "skipped",
        found["skipped"].status == "skipped" and "not today" in found["skipped"].message,
        found["skipped"],
    )
    done = run("--iters", "5", "--op", "misuse", "--json", path)
    for r in kbench.load(path):
        want = r.params["which"].replace("_", " ")
        check(f"misuse: {want}", r.time_ms is None and f"Error: {want}" in r.message, r.to_dict())
    check("misuse", done.returncode == 1 and "7 failed" in done.stdout, done.stdout)
    done = run("--iters", "5", "--op", "odd")
    check("advice in Python's terms", "into kb.time" in done.stdout and not re.search("KB_|kb_", done.stdout), done.stdout)
    done = run("--iters", "5", "--op", "sized", "--json", path)
    found = sorted((r.params["n"], r.params["m"], r.message) for r in kbench.load(path))
    want = [(3, 1, "3 1"), (3, 2, "3 2"), (9, 4, "9 4")]
    check("sizes: their axes are arguments of the function", found == want, found)
    done = run("--iters", "5", "--op", "partial")
    check("a callable object", done.returncode == 0 and "1 case: 1 ok" in done.stdout, done.stdout)
    done = run("--list", "--op", "sized", "--size", "large", "-a", "m=5")
    check("sizes: a category", "n=9/m=5" in done.stdout and len(done.stdout.splitlines()) == 1, done.stdout)
    done = run("--op", "on_a_gpu")
    check("no GPU", "host=True" in done.stdout and "skipped" in done.stdout, done)
    check("unknown", run("--op", "totl").returncode == 2)
    done = run("--iters", "5", "--no-isolate", "--op", "total", "-a", "n=10")
    check("one process", done.returncode == 0 and "4 ok" in done.stdout, done)
    with open(os.path.join(here, "benches.py")) as f:
        done = subprocess.run(
            [sys.executable, "-", "--iters", "5", "--op", "total"],
            stdin=f,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
    check("from stdin", done.returncode == 0 and "one process" in done.stderr, done)
    notebook = """
import io, sys
sys.argv = ["/usr/lib/python3/ipykernel_launcher.py", "-f", "/tmp/kernel-1.json"]
import kbench
kbench.bench(lambda kb, n: kb.time(lambda: sum(range(n)), host=True), op="sums", n=[100])
sys.stdout = io.StringIO()
codes = [kbench.main(), kbench.main(["--iters", "5"]), kbench.main(["--op", "none"])]
text, sys.stdout = sys.stdout.getvalue(), sys.__stdout__
print(codes, text.count("1 case: 1 ok"), "sums" in text)
"""
    words = [sys.executable, "-c", notebook]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    check("in a notebook", done.stdout == "[0, 0, 2] 2 True\n", done)


def streams():
    """kbench's stream becomes the current stream of the installed libraries."""
    told = []

    class Stand:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            told.append(self.name)

        def __exit__(self, *_):
            told.append("/" + self.name)

    cuda = types.SimpleNamespace(
        is_available=lambda: True,
        ExternalStream=lambda s, device=None: s,
        stream=lambda s: Stand(f"torch {s}"),
    )
    sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
    sys.modules["cupy"] = types.SimpleNamespace(
        cuda=types.SimpleNamespace(ExternalStream=lambda s, device: Stand(f"cupy {s}"))
    )
    try:
        on = kbench._Streams()
        kbench._on_stream(lambda x: told.append(x), ("work",), on)(7)
        check("streams", told == ["torch 7", "cupy 7", "work", "/cupy 7", "/torch 7"], told)
        del told[:]
        kbench._on_stream(lambda stream: told.append(stream), (), on)(8)
        check("streams: the parameter stream gets kbench's stream", told[2] == 8 and told[-1] == "/torch 8", told)
        del told[:]
        raised(ZeroDivisionError, kbench._on_stream(lambda: 1 / 0, (), on), 8)
        check(
            "streams: the earlier current stream returns after an exception",
            told[-2:] == ["/cupy 8", "/torch 8"], told,
        )
        torch = sys.modules.pop("torch")
        on = kbench._Streams()
        late = kbench._on_stream(lambda: sys.modules.setdefault("torch", torch), (), on)
        del told[:]
        late(9)
        late(9)
        want = "cupy 9,/cupy 9,torch 9,cupy 9,/cupy 9,/torch 9".split(",")
        check("streams: a library that the timed function imports gets kbench's stream", told == want, told)
    finally:
        del sys.modules["torch"], sys.modules["cupy"]


def described():
    import inspect

    import kbench_kernels

    without = []
    for module in (kbench, kbench_kernels):
        for name in module.__all__:
            of = getattr(module, name)
            members = vars(of).items() if inspect.isclass(of) else ()
            for where, thing in [(name, of), *((f"{name}.{k}", v) for k, v in members if k[0] != "_")]:
                known = callable(thing) or isinstance(thing, (property, classmethod))
                if known and not (inspect.getdoc(thing) or getattr(getattr(thing, "__func__", None), "__doc__", None)):
                    without.append(where)
    check("a docstring each", not without, without)
    times, compares = (dict(inspect.signature(f).parameters) for f in (kbench.time, kbench.compare))
    for known, own in ((times, ("fn", "args")), (compares, ("functions", "inputs"))):
        for name in own:
            del known[name]
    texts = [{k: str(p) for k, p in f.items()} for f in (times, compares)]
    check("kbench.time has the arguments of kbench.compare", texts[0] == texts[1], texts)
    odd = dict(rtol=0.1, atol=0.2, bytes=8.0, flops=9.0, items=3.0, params={"n": 4}, dtype="f32", before=print)
    odd.update(host=True, mode="hot", precision=0.1, max_time=0.1, samples=4, seed=5, device=6, expect=["sync"])
    odd.update(name="n", check=max)
    kept, given = kbench.compare, {}
    kbench.compare = lambda functions, inputs, **o: given.update(o) or [kbench.Record({})]
    try:
        kbench.time(int, **odd)
    finally:
        kbench.compare = kept
    check("kbench.time passes all arguments", given == odd and set(odd) == set(times), (given, set(times) - set(odd)))


def names():
    """The library exports everything that kbench.h documents for programs."""
    with open(kbench._find_header()) as f:
        api = f.read().partition("\n  >>cxx ")[0]
    found = set(re.findall(r"^(?:KBI_\w+(?:\(.*?\))? )?[a-z]\w*(?: \w+)*[ *]+(kb_\w+)\(", api, re.M))
    check("names: known functions are found", {"kb_main", "kb_run", "kb_compare", "kb_open", "kb_add"} <= found, found)
    missing = sorted(name for name in found if not hasattr(kbench._library().handle, name))
    check("names: every function is exported", not missing, missing)


def library():
    def run(code="kbench.time(int, host=True, samples=3)", **env):
        return subprocess.run(
            [sys.executable, "-c", "import kbench; " + code],
            env=dict(os.environ, **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )

    done = run(XDG_CACHE_HOME=os.path.join(scratch, "no"), CC="no-such-compiler -g", CFLAGS="")
    check(
        "no compiler",
        "no-such-compiler -g -O2 -shared" in done.stderr and "Set CC" in done.stderr,
        done.stderr,
    )
    done = run(XDG_CACHE_HOME=os.path.join(scratch, "no"), CC="cc -DKBENCH_MALLOC=1")
    check(
        "the message contains the compiler's output",
        "could not be built" in done.stderr and "KBENCH_REALLOC" in done.stderr,
        done.stderr,
    )
    left = [f for _, _, files in os.walk(os.path.join(scratch, "no")) for f in files]
    check("nothing is left", not left, left)
    check("no header", "is no file" in run(KBENCH_H="/nowhere/kbench.h").stderr)
    import ctypes.util

    check(
        "a library that is not kbench",
        "is no library of kbench" in run(KBENCH_LIB=ctypes.util.find_library("m")).stderr,
    )
    # CUDA from pip wheels: two runtimes, and the older one lacks a header until another wheel is installed
    site = os.path.join(scratch, "site")

    def put(path, text=""):
        path = os.path.join(site, "nvidia", path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    put("cu13/include/cuda_runtime_api.h", "#define CUDART_VERSION  13050\n")
    put("cu13/include/crt/host_defines.h")
    put("cu13/lib/libcudart.so.13")
    put("cuda_runtime/include/cuda_runtime_api.h", "#define CUDART_VERSION  12090\n")
    put("cuda_runtime/lib/libcudart.so.12")
    put("cuda_runtime/lib/libcudart.so.13")
    path = os.pathsep.join([site, os.environ["PYTHONPATH"]])
    tell = "kbench._TOOLKIT = '/none'; print(*kbench._build_command('/none/in.h', 'out.so'))" # without add-ons
    of_pip = lambda: run(tell, PYTHONPATH=path, PATH="/usr/bin:/bin", CUDA_HOME="/none").stdout.replace(site, "SITE")
    check("pip's CUDA: not whole", "CUDA" not in of_pip(), of_pip())
    put("cu13/include/cuda_profiler_api.h")
    said = of_pip()
    lib = "SITE/nvidia/cu13/lib"
    want = f"-DKBENCH_CUDA -ISITE/nvidia/cu13/include /none/in.h -o out.so -L{lib} -Wl,-rpath,{lib} -l:libcudart.so.13 "
    check("pip's CUDA: one folder", want in said, said)
    put("cuda_nvcc/include/crt/host_defines.h")
    put("profiler/include/cuda_profiler_api.h")
    said = of_pip()
    want = "".join(f"-ISITE/nvidia/{d}/include " for d in ("cuda_runtime", "cuda_nvcc", "profiler"))
    check(
        "pip's CUDA: the oldest runtime, with headers from several folders",
        want in said and "-l:libcudart.so.12 " in said, said,
    )
    tell = "import kbench_kernels as k; kbench._TOOLKIT = '/none'; print(k._find_nvcc())"
    put("cu13/bin/nvcc")
    os.chmod(os.path.join(site, "nvidia/cu13/bin/nvcc"), 0o755)
    said = run(tell, PYTHONPATH=path, PATH="/usr/bin:/bin", CUDA_HOME="/none", NVCC="").stdout
    check("pip's nvcc", "nvidia/cu13/bin/nvcc" in said, said)
    if not os.environ.get("TEST_ALL"):
        return
    cache = os.path.join(scratch, "two")
    both = [
        subprocess.Popen(
            [sys.executable, "-c", "import kbench; kbench.time(int, host=True, samples=3)"],
            env=dict(os.environ, XDG_CACHE_HOME=cache, CFLAGS="-O0"),
        )
        for _ in range(2)
    ]
    check("two processes build the library at the same time", [p.wait() for p in both] == [0, 0])
    files = [f for _, _, files in os.walk(cache) for f in files]
    check("and leave one", files == ["libkbench.so"], files)


if __name__ == "__main__":
    for part in (contests, comparing, errors, records, triton_faces, command_line, streams, described, names, library):
        begin = time.perf_counter()
        part()
        print(f"{part.__name__}: {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
