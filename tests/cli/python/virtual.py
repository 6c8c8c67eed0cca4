# SPDX-License-Identifier: MIT OR Unlicense
"""Tests kbench.py on the virtual GPU (virtual.c as KBENCH_LIB): with CUPTI, kbench.py measures times as accurately as
a C program; without CUPTI, the confidence intervals are wider."""

import contextlib
import ctypes
import io
import os
import sys
import tempfile
import types

import kbench

passed = failed = 0


def check(what, good, said=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAIL: {what}: {said}")


def loaded():
    library = kbench._library()
    library.launch_known = library.handle.launch_known
    library.launch_known.argtypes = [ctypes.c_double, ctypes.c_void_p]
    return library


def known(ns):
    library = loaded()
    record = kbench.time(lambda stream: library.launch_known(ns, stream), samples=30)
    return 1e6 * record.time_ms, 1e6 * (record.floor_ms - record.bias_ms), record.precision, record.environment.get("bias")


def in_a_process_of_its_own(**variables):
    come, theirs = os.pipe()
    process = os.fork()
    if not process:
        os.environ.update(variables)
        os.write(theirs, repr(known(2000)).encode())
        os._exit(0)
    os.close(theirs)
    os.waitpid(process, 0)
    said = os.read(come, 4096)
    os.close(come)
    return eval(said) if said else (0, 0, 0, None)


with_cupti = {"VIRTUAL_CUPTI": "1"}
time, empty, precision, bias = in_a_process_of_its_own(**with_cupti)
check("with CUPTI: the time of an empty kernel", abs(empty - 576) < 2, empty)
check("with CUPTI: the time of a kernel of 2 us", abs(time - 2000) < 60, time)
check("with CUPTI: the timer's bias is measured, not fitted", bias is None, bias)
time, empty, precision, bias = in_a_process_of_its_own()
check(
    "without CUPTI: the time of an empty kernel is estimated as half of its time in a graph",
    488 - 30 < empty < 488 + 200, empty,
)
check("without CUPTI: the time of a kernel of 2 us", abs(time - 2000) < precision * time, (time, precision))
check("without CUPTI: the confidence interval is wide", precision > 0.25 and bias == "fitted", (precision, bias))
bias = in_a_process_of_its_own(NSYS_PROFILING_SESSION_ID="1", **with_cupti)[3]
check("under a profiler, CUPTI is not used", bias == "fitted", bias)
library = loaded()

# Stream capture makes some library calls fail because of the library's own state. Such a function is timed, but
# not audited. A function that cannot be captured because it synchronizes or copies is not timed.
library.captures_known = library.handle.captures_known
library.captures_known.argtypes, library.captures_known.restype = [ctypes.c_void_p], ctypes.c_bool


def refusing(text):
    def function(stream):
        if library.captures_known(stream):
            raise RuntimeError(text)
        library.launch_known(5000, stream)
        return 1

    return function


def plain(stream):
    library.launch_known(5000, stream)
    return 1


STATE = "Attempt to increase offset for a CUDA generator not in capture mode."
COPY = "Cannot copy between CPU and CUDA tensors during CUDA graph capture"
records = kbench.compare({"plain": plain, "random": refusing(STATE), "copies": refusing(COPY)}, check=lambda got: got == 1, samples=30)
random, copies = records[1], records[2]
check("refuses: status", (random.status, random.verified) == ("ok", True), (random.status, random.message))
check("refuses: time", abs(random.time_ms / records[0].time_ms - 1) < 0.05, (random.time_ms, records[0].time_ms))
check(
    "a rejected capture: the note in the record",
    random.message == "not audited: cannot be captured" and random.exception is None, random.message,
)
check("copies: no time", copies.status == "failed" and "BAD_CASE" in copies.flags, copies.to_dict())
check("copies: the exception", str(copies.exception) == COPY, copies.exception)
said = kbench.compare({"plain": plain, "said": plain}, expect=["no_capture"], samples=30)
check("no_capture", [r.message for r in said] == ["not audited: cannot be captured"] * 2 and said[1].time_ms, said[0].message)


def always(stream):
    raise RuntimeError(STATE)


(never,) = kbench.compare({"always": always}, samples=30)
check("never ran", never.status == "failed" and STATE in never.message, never.message)


# Allocations by torch's caching allocator are allowed. kbench reports the blocks that every run allocates. Blocks
# of the first run alone are not reported, because the first run fills caches.
given = [0]


def allocates(first, later):
    runs = []

    def function(stream):
        given[0] += later if runs else first
        runs.append(1)
        library.launch_known(5000, stream)

    return function


cuda = types.SimpleNamespace(
    is_available=lambda: True,
    ExternalStream=lambda s, device: s,
    stream=lambda s: contextlib.nullcontext(),
    memory_stats=lambda device: {"allocation.all.allocated": given[0]},
)
functions = {"none": allocates(1, 0), "one": allocates(3, 1), "two": allocates(2, 2)}
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
said = [r.message for r in kbench.compare(functions, samples=30)]
check("blocks", said == [None] + [f"each run allocates {n} by torch's caching allocator" for n in ("1 block", "2 blocks")], said)
work = allocates(0, 3)
kbench.bench(lambda kb: kb.time(work), op="blocks")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "blocks.json")
    kbench._captured(["kbench", "--no-isolate", "--iters", "30", "--no-progress", "--json", path])
    said = [r.message for r in kbench.load(path)]
check(
    "allocated blocks: the record of a registered benchmark has the note",
    said == ["each run allocates 3 blocks by torch's caching allocator"], said,
)
cuda.memory_stats = lambda device: {}
said = [r.message for r in kbench.compare(functions, samples=30)]
check("allocated blocks: no note if the allocator has no statistics", said == [None] * 3, said)
del sys.modules["torch"]

def of_two_us(stream=0):
    library.launch_known(2000, stream)


# --- modes: the time of a graph includes the gaps between its kernels; --rotate needs data that kbench can copy
hot = kbench.time(of_two_us, mode="hot", samples=30)
check("hot", hot.cache == "hot" and hot.timer == "events" and abs(hot.time_ms - 0.002) <= hot.precision * hot.time_ms, hot.to_dict())
rows = kbench.compare({"one": of_two_us, "two": of_two_us}, mode="graph", samples=30)
good = [r.cache == "graph" and abs(r.time_ms - 0.0024) < 1e-5 and r.launches_per_sample > 10 for r in rows]
check("graph", all(good), [r.to_dict() for r in rows])
(row,) = kbench.compare({"one": of_two_us}, mode="graph", expect=["no_capture"])
check("graph: a rejected capture", row.time_ms is None and "stream capture rejects" in row.message, row.to_dict())
why = ""
try:
    kbench.compare({"one": of_two_us, "two": of_two_us}, mode="rotate")
except kbench.Error as error:
    why = str(error)
check("mode='rotate': the message has the reason and the fix", "kb.alloc" in why and "--rotate" in why, why)


def rotates(kb):
    x = kb.alloc(1 << 20)
    kb.time(lambda stream: (addresses.add(x.address), of_two_us(stream)))


addresses = set()
kbench.bench(rotates)
kbench.bench(lambda kb: kb.time(of_two_us), op="rotates", impl="other memory")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "rotates.json")
    words = "--op rotates --no-isolate --rotate --fast --no-progress --json".split()
    kbench._captured(["kbench", *words, path])
    own, other = kbench.load(path)
check("rotate: kb.alloc", own.cache == "rotate" and own.time_ms and len(addresses) > 8, (own.to_dict(), addresses))
check(
    "--rotate: no time is reported if kb.alloc has not allocated the data",
    other.time_ms is None and "kb.alloc" in other.message, other.to_dict(),
)

# --- a backward pass runs on the stream of its forward pass; kbench can capture only its own stream


class Node:
    def __init__(self, stream, *of):
        self.stream, self.next_functions, self.hooks = stream, [(node, 0) for node in of], []

    def register_prehook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))


class Leaf(Node):
    """Simulates the autograd node of a leaf tensor. If only the leaf's gradient is computed, autograd skips the
    leaf's node, but calls the hooks of the leaf tensor."""

    def __init__(self, stream):
        super().__init__(stream)
        self.variable = types.SimpleNamespace(register_hook=super().register_prehook)

    def register_prehook(self, hook):
        return types.SimpleNamespace(remove=lambda: None)


class Engine:

    def run_backward(self, outputs, *args, **options):
        nodes, streams = [o.grad_fn for o in outputs], set()
        while nodes:
            node = nodes.pop()
            here[0] = node.stream or of_kbench[0]
            streams.add(here[0])
            for hook in node.hooks:
                hook(None)
            nodes += [n for n, _ in node.next_functions if n is not None]
        if streams != set(of_kbench) and library.captures_known(of_kbench[0]):
            os._exit(7)
        library.launch_known(2000, of_kbench[0])


class Variable:
    _execution_engine = Engine()


here, of_kbench, leaf, old_leaf = [0], [0], Leaf(None), Leaf(5)
cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=here[0])
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda, autograd=types.SimpleNamespace(Variable=Variable))
engine = Variable._execution_engine


def backward_of(*nodes):
    def function(stream):
        of_kbench[0] = stream
        outputs = [types.SimpleNamespace(grad_fn=node) for node in nodes]
        sys.modules["torch"].autograd.Variable._execution_engine.run_backward(outputs, None, True)

    return function


functions = {
    "own": backward_of(Node(None, leaf)),
    "other": backward_of(Node(None, leaf), Node(None, leaf, Node(5), None)),
    "leaf": backward_of(Node(None, old_leaf)),
}
own, other, of_leaf = kbench.compare(functions, samples=30)
check("backward on kbench's stream", own.status == "ok" and own.message is None, own.to_dict())
said = "PyTorch runs the backward pass on the stream of the forward pass"
check("backward: on another", other.status == "ok" and said in (other.message or ""), other.to_dict())
off, known_to = abs(other.time_ms - own.time_ms), sum(r.precision * r.time_ms for r in (own, other))
check("backward: a leaf's alone", of_leaf.status == "ok" and said in (of_leaf.message or ""), of_leaf.to_dict())
check("backward: the time", off <= known_to, (own.time_ms, other.time_ms, known_to))
check("backward: do_bench", kbench.do_bench(lambda: functions["other"](of_kbench[0]), rep=5) > 0)
check("backward: the hooks are removed", Variable._execution_engine is engine and leaf.hooks == [], leaf.hooks)
del sys.modules["torch"]

def by_triton(f, **options):
    told.append(options)
    if planted:
        raise planted[0]
    return [0.020, 0.019] if options["quantiles"] else 0.010


told, planted, theirs = [], [], types.ModuleType("triton.testing")
theirs.do_bench = by_triton
check("do_bench: no Triton", kbench.do_bench(of_two_us, rep=5) > 0 and kbench.do_bench.last is None)
sys.modules.update({"triton": types.ModuleType("triton"), "triton.testing": theirs})
ours = kbench.do_bench(of_two_us, rep=5, warmup=3)
check("do_bench: a pair", kbench.do_bench.last == (ours, 0.010) and isinstance(ours, float), kbench.do_bench.last)
same = {"warmup": 3, "rep": 5, "grad_to_none": None, "quantiles": None, "return_mode": "mean"}
check("do_bench: the same arguments", told == [same], told)
kbench.do_bench(int, rep=5, host=True)
check("do_bench: host work", len(told) == 1 and kbench.do_bench.last is None, told)
ours = kbench.do_bench(of_two_us, rep=5, quantiles=[0.5, 0.2])
check("do_bench: quantiles", kbench.do_bench.last == (ours[0], 0.020) and len(ours) == 2, kbench.do_bench.last)


@kbench.perf_report(
    kbench.Benchmark(["n"], [1], "who", ["once", "twice", "never"], ["Once", "Twice", "Never"], "beside", {})
)
def beside(n, who):
    times = [1000 * kbench.do_bench(of_two_us, rep=5) for _ in range(["never", "once", "twice"].index(who))]
    return times[0] if times else 1.0


with contextlib.redirect_stdout(io.StringIO()) as text:
    beside.run(print_data=True)
head, line = [part.split() for part in text.getvalue().splitlines()[1:]]
check("perf_report: Triton's beside it", head == ["n", "Once", "triton", "ms", "diff", "%", "Twice", "Never"], head)
off = 100 * (10 / float(line[1]) - 1)
check("perf_report: how far off", line[2] == "0.01" and abs(float(line[3]) - off) < 0.2, (line, off))
planted.append(RuntimeError("out of memory"))
check("do_bench: Triton's fails", kbench.do_bench(of_two_us, rep=5) > 0 and kbench.do_bench.last is None)
theirs.do_bench = kbench.do_bench
check("do_bench: in Triton's place", kbench.do_bench(of_two_us, rep=5) > 0 and kbench.do_bench.last is None)
theirs.do_bench = lambda f, **options: kbench.do_bench(f, **options)
check("do_bench: called by Triton's", kbench.do_bench(of_two_us, rep=5) > 0 and kbench.do_bench.last is None)
del sys.modules["triton"], sys.modules["triton.testing"]
for bad in (b"", b"1" * 192, b"\0" * 192, b"\0" * 191):
    check(f"{bad[:1]!r} x {len(bad)}", not library.kbi_calibrate_from(bad, len(bad)))
print(f"{passed} passed, {failed} failed")
