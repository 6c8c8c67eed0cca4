# SPDX-License-Identifier: MIT OR Unlicense
"""Runs the judge on tricks and honest functions. Arguments: one or more of "tricks", "honest", "others", "stage",
"lists", "arrays", "tensors"."""

import collections
import math
import os
import pickle
import random
import re
import sys
import threading
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import kbench  # noqa: E402
import task  # noqa: E402

passed, failed = 0, 0
# `make test` judges one trick of each kind and two honest functions; `make test-all` judges all of them
SHORT = not os.environ.get("TEST_ALL")
ONE_OF_A_KIND = """nothing half public_example_alone by_identity in_a_thread stopped_clock leaves usual_sizes_alone
                   hides_nan""".split()


def check(what, good, said=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAIL: {what}: {said}".replace("\n", ";"))


def functions(place):
    return {
        k: v
        for k, v in vars(place).items()
        if callable(v) and v.__module__ == place.__name__ and k.islower() and k != "word"
    }


def judged(name, function, task, **options):
    options.setdefault("timeout", 3 if function == "hangs" else 60)
    reference, inputs = task if isinstance(task, tuple) else (task.reference, task.inputs)
    return kbench.judge(os.path.join(here, name + ".py:" + function), reference, inputs, max_time=0.1, **options)


def honest_words(v):
    return set(v.words) <= {"HOST_BOUND", "NONDETERMINISTIC"}


def tricks():
    import tricks

    for name, function in functions(tricks).items():
        if not hasattr(function, "words") or (SHORT and name not in ONE_OF_A_KIND):
            continue
        v = judged("tricks", name, function.task)
        names = [w.partition(":")[0] for w in v.words]
        check(name, v.verdict in ("REJECTED", "WRONG") and any(w in names for w in function.words), repr(v))
        check(name + ": no speed", v.speedup is None and v.time_ms is None, repr(v))


def honest():
    import honest

    for name in functions(honest):
        if name in ("fills", "hypot", "negative"):
            continue
        v = judged("honest", name, task)
        check(name, v.verdict in ("FASTER", "SLOWER", "EQUIVALENT", "UNRESOLVED"), repr(v))
        check(name + ": words", honest_words(v), repr(v))
        check(name + ": a speed", v.time_ms and v.time_ms > 0 and v.speedup and v.seed > 0, repr(v))


def others():
    at = lambda name: os.path.join(here, name)
    v = kbench.judge(at("honest.py:fills"), task.in_place, task.inputs, max_time=0.1)
    check("in place", v.time_ms and honest_words(v), repr(v))
    v = kbench.judge(at("tricks.py:nothing"), task.in_place, task.inputs)
    check("in place: nothing", v.verdict in ("WRONG", "REJECTED"), repr(v))
    if SHORT:
        return
    v = kbench.judge(at("task.py:length"), task.length, (0.5, -1.0), max_time=0.1)
    check("numbers", v.time_ms and honest_words(v) == ("TASK_SHARED" not in v.words), repr(v))
    v = kbench.judge(at("honest.py:negative"), task.length, task.pairs, seed=11)
    check("inputs made by the task: a wrong candidate", v.verdict == "WRONG" and v.seed == 11, repr(v))
    v = kbench.judge(at("honest.py:hypot"), task.length, task.pairs, max_time=0.1)
    check("inputs made by the task: a correct candidate", v.time_ms and honest_words(v), repr(v))
    for bad in (lambda x: x, "none.py", at("honest.py:")):
        try:
            kbench.judge(bad, task.length, task.pairs)
            check("a name without a file", bad == at("honest.py:"), bad)
        except kbench.Error as error:
            check("a name without a file: the message begins with judge", "judge: " in str(error), error)


def stage():
    """Tests the parts of the judge's GPU code that need no GPU: changes of inputs, the order of functions, and how
    statuses of the engine become verdicts."""
    pool = {"flat": {0: [float(i * i % 17) for i in range(64)]}, "shapes": {0: (5,)}, "sets": []}
    draws = [(None, [(0, 3 * i, 50 - i, 0.25 + i, 1.5)], None) for i in range(7)]

    def doubles(x):
        x[:] = [2 * v for v in x]

    for inplace, fn in ((False, lambda x: [2 * v for v in x]), (True, doubles)):
        m = {"draws": draws, "pool": pool, "inplace": inplace, "host": True, "args": ([1.0] * 5,)}
        arm = kbench._TimedFunction(fn, m, range(3, 18))
        for _ in range(20):
            arm.before()
            arm(*arm.args)
        arm.keep_output(arm.out)
        check(
            "timed function: the outputs of samples 3 to 17 and of the last sample are kept",
            [c for c, _ in arm.kept] == [*range(3, 18), 20], arm.kept,
        )
        for count, got in arm.kept:
            want = [2 * v for v in kbench._TimedFunction.inputs_at(count, m)[0]]
            check(f"timed function: output {count}", (got[0] if inplace else got) == want, (got, want))
    all_of_it()

    order, lock = [], kbench._GpuLock(99)
    with lock.exclusive():
        others = [threading.Thread(target=waits, args=(lock, order)) for _ in range(2)]
        for other in others:
            other.start()
        time.sleep(0.1)
        order.append("alone")
    for other in others:
        other.join(10)
    check("turns", order == ["alone", "beside", "beside"], order)

    makes_room(order)
    for path in (lock.path, lock.path + ".door"):
        os.remove(path)

    fine = {"time_ms": 1.0, "flags": ["NOISY"], "verdict": "FASTER", "speedup": 2.0, "status": "ok"}
    for flags, message, want in (
        (["NO_WORK", "BAD_CASE"], "Cannot copy between CPU and CUDA tensors during CUDA graph capture", "TRANSFER"),
        (["BAD_CASE"], "operation not permitted when stream is capturing", "SYNC_INSIDE"),
        (["SIDE_STREAM"], "under stream capture", "SIDE_STREAM"),
        (["NO_WORK"], "nothing was submitted", "NO_WORK"),
    ):
        failed = dict(fine, time_ms=None, flags=flags, message=message, status="failed")
        judge = a_judge()
        judge._note_records({"candidate beside reference": failed, "reference beside reference": fine})
        check(f"a word: {want}", [f["word"] for f in judge.flags] == [want, "NO_TIME"], judge.flags)
    again_and_fresh()
    judge._note_records({"candidate beside reference": fine, "reference beside reference": fine})
    check("a speed", judge.speed["speedup"] == 2 and judge.speed["comparison"] == "FASTER", judge.speed)
    errors_of_the_engine(fine)
    clocks()


def a_judge(allow=()):
    return kbench._Judge({}, task.reference, {}, kbench._Inputs(task.inputs, 1), None, None, allow, 60, 1, {})


def errors_of_the_engine(fine):
    """After an engine error without a time, the verdict is REJECTED, WRONG or SUSPECT, so it says nothing about
    speed."""
    with open(os.path.join(here, "../../../kbench.h")) as f:
        words = re.findall(r"^    x\((\w+), +ERROR,", f.read(), re.M)
    check("the engine's errors", len(words) == 18 and "ABOVE_ROOF" in words, words)
    for word in words:
        failed = dict(fine, time_ms=None, flags=[word], message="so it was", status="failed", verdict=None)
        judge = a_judge()
        judge._note_records({"candidate beside reference": failed, "reference beside reference": fine})
        v = judge.verdict()
        check(f"an error: {word}", v.verdict in ("REJECTED", "WRONG", "SUSPECT") and v.time_ms is None, repr(v))
        check(f"an error: {word}: the name of the flag", v.words[0] == word or word in kbench._RAISED, repr(v))
        check(f"an error: {word}: why", "so it was" in v.flags[0]["evidence"], repr(v))
        both = a_judge()
        both._note_records({"candidate beside reference": failed, "reference beside reference": failed})
        check(
            f"the engine reports {word} for the candidate and for the reference",
            both.verdict().words == ["NO_TIME"], both.flags,
        )
    judge = a_judge(("ALLOC_INSIDE",))
    check("what a task allows", judge._request_of(task.inputs)["expect"] == ["alloc", "transfer"], judge.allow)
    html = dict(judge.verdict(), verdict="<b>", time_ms=2.0, reference_ms=4.0, flags=[{"word": "A", "evidence": "x&y"}])
    want = "<tr><th>verdict</th><td>&lt;b&gt;</td></tr><tr><th>time</th><td>2 ms</td></tr>"
    want += "<tr><th>reference</th><td>4 ms</td></tr><tr><th>A</th><td>x&amp;y</td></tr>"
    said = kbench.Verdict(html)._repr_html_()
    check("a verdict in a notebook", said == f"<table><tbody>{want}</tbody></table>", said)


def clocks():
    """By the judge's clock, a call takes 10 us longer than by the clock of the candidate's process."""
    for outer, issue, want in (
        (0.011, 0.010, []),
        (0.019, 0.001, []),
        (0.021, 0.001, ["CLOCK_MISMATCH"]),
        (0.021, 0.020, ["CLOCK_UNCHECKED"]),
        (5.0, 4.9, ["CLOCK_UNCHECKED"]),
    ):
        judge = a_judge()
        judge.speed, judge._slopes = {"time_ms": 0.01}, lambda args, n, of=(outer, issue): of
        judge.request = {"args": ()}
        judge.clock()
        check(f"clocks: {outer} ms, {issue} of them the host's", judge.verdict().words == want, judge.flags)
    judge = a_judge()
    calls, asked = [], []

    class Remote:
        def ask(self, do, **m):
            asked.append((do, m))

        def go(self, **_):
            calls.append(1)

    judge.remote = Remote()
    judge._slopes(task.inputs, 4)
    drawn = [repr(draw) for do, m in asked if do == "change" for draw in m["draws"]]
    kept = [m["n"] for do, m in asked if do == "keep"]
    check("clocks: each call gets new inputs", len(set(drawn)) == len(drawn) == 10 * 12 and kept[0] == 12, kept)
    check("clocks: calls", [m["n"] for do, m in asked if do == "prepare"] == [4] * 5 + [12] * 5, asked)


def all_of_it():
    """Random inputs are new in each call, bitwise equal in the judge's and in the candidate's process, and similar
    to the examples."""
    rows, whole = [[0.5, 1.5, -1.0]] * 4, [3, 4, 5, 6, 9]
    inputs = kbench._Inputs((rows, whole, 7, [0.25] * 4), 1)
    there, seen = pickle.loads(pickle.dumps(inputs.pool)), set()
    for draw in inputs.draws(50):
        args, theirs = kbench._copy(inputs.examples), kbench._copy(inputs.examples)
        kbench._fill(args, inputs.pool, draw)
        kbench._fill(theirs, there, pickle.loads(pickle.dumps(draw)))
        check("random draws: the judge and the candidate get the same values", args == theirs, (args, theirs))
        check(
            "random draws: inputs keep their shapes",
            [*map(kbench._shape_of, args)] == [(4, 3), (5,), None, (4,)], args,
        )
        check(
            "random draws: integers stay within the range of the example",
            set(args[1]) <= set(range(3, 10)) and args[2] == 7, args,
        )
        check("random draws: no two rows of a list share memory", len({id(row) for row in args[0]}) == 4, args)
        numbers = [v for row in args[0] for v in row] + args[3]
        check("random draws: all numbers are new", not seen & set(numbers) and len(set(numbers)) == 16, numbers)
        seen.update(numbers)
    size = sum(v * v for v in seen) / len(seen)
    check(
        "random draws: the root mean square of all numbers is close to 1",
        len(seen) == 800 and 0.7 < size < 1.4, size,
    )
    own = kbench._Inputs(lambda rng: ([rng.random()] * 3,), 1)
    check("random draws: none for a task that makes its own inputs", own.places and own.draws(3) == [], own.pool)


def again_and_fresh():
    """Tests the comparison of times with repeated and with new inputs, on simulated machines. An honest function must
    pass on a machine that is slow after a pause, for long periods, or both. A function that caches its results must
    be found."""
    rng, real, rounds = random.Random(7), kbench._timed, 20 if SHORT else 50

    for what, keeps, wakes, spell in (
        ("a machine with constant speed", False, 0, 0),
        ("a machine that is slow after each pause of the process", False, 1, 0),
        ("a machine that is slow for long periods", False, 0, 1),
        ("a machine that is slow after pauses and for long periods", False, 1, 1),
        ("a function that caches its results", True, 0, 0),
        ("a function that caches its results, on a machine that is sometimes slow", True, 1, 0.3),
    ):
        found, sent = 0, set()
        for _ in range(rounds):
            judge = a_judge()
            judge.speed = {"calls_per_sample": 2}
            state = {"paused": True, "slow": False, "seen": None, "version": [0, 0], "sent": 0}

            class Remote:
                def ask(self, do, which=None, state=state, batch=(), **_):
                    state["paused"], state["sent"] = True, state["sent"] + len(batch)
                    state["version"][which] += 1

            def timed(remote, batch=(), which=None, state=state):
                if which is None:
                    return 1e-5
                if rng.random() < 0.15:
                    state["slow"] = not state["slow"]
                key = which, state["version"][which]
                share = 0.1 if keeps and key == state["seen"] else 1
                state["seen"] = key
                seconds = rng.gauss(1e-3, 1e-5) * share * (1 + wakes * state["paused"] + spell * state["slow"])
                state["paused"] = False
                return seconds

            judge.remote, kbench._timed = Remote(), timed
            judge.repeats()
            found += any(f["word"] == "MEMOIZED" for f in judge.flags)
            sent.add(state["sent"])
        check("repeated and fresh inputs: " + what, found >= rounds - 1 if keeps else found == 0, found)
        check("repeated and fresh inputs: one set is sent per batch", sent == {2}, sent)
    kbench._timed = real


def waits(lock, order):
    with lock.shared():
        order.append("beside")


def makes_room(order):
    """A judge that waits for the exclusive GPU lock gets it when the current call of the holder's candidate ends. The
    holder of a shared lock releases it during a slow call."""

    def wants():
        with kbench._GpuLock(99).exclusive():
            order.append("alone")

    def met():
        order.clear()
        other = threading.Thread(target=wants)
        other.start()
        time.sleep(0.1)
        return other

    lock = kbench._GpuLock(99)
    with lock.shared():
        other = met()
        order.append("a call")
        lock.yield_gpu()
        order.append("another")
        other.join(10)
        check(
            "GPU lock: an exclusive holder runs between two calls of another process",
            order == ["a call", "alone", "another"] and lock.waited > 0, order,
        )
        with kbench._GpuLock(99).shared():
            other = met()
            check("GPU lock: a call of another process is not interrupted", not order, order)
        with lock.released():
            other.join(10)
            check("GPU lock: a long call does not delay the exclusive holder", order == ["alone"], order)
        other = met()
        check("GPU lock: after a long call, the holder takes the shared lock again", not order, order)
    other.join(10)


def stand_in():
    import types

    torch = types.ModuleType("torch")
    torch.get_float32_matmul_precision = torch.get_num_threads = torch.is_grad_enabled = lambda: 1
    torch.get_default_dtype = lambda: "f32"
    torch.backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(benchmark=False))
    torch.Tensor = type("Tensor", (), {"__module__": "torch", "sum": lambda v: 0, "shape": (4,), "dtype": "f32"})
    event = type("Event", (), {"elapsed_time": lambda a, b: 1.0})
    stream = type("Stream", (), {"synchronize": lambda v: None})
    torch.cuda = types.SimpleNamespace(is_initialized=lambda: False, Event=event, Stream=stream)
    return torch


def lists():
    def own(rng):
        n = rng.randint(2, 200)
        return tuple([rng.gauss(0, 1) for _ in range(n)] for _ in range(2))

    for seed in range(1 if SHORT else 3):
        v = judged("honest", "another_order", (task.reference, own), seed=seed)
        check(f"lists: inputs with new sizes in each call, seed {seed}", v.time_ms and honest_words(v), repr(v))
    inputs = kbench._Inputs(own, 5)
    for _ in range(200):
        args = inputs.fresh()
        edit = inputs.edit(7.0, inputs.places_of(args))
        kbench._apply(args, edit)
        check(
            "lists: an edit changes one element of the inputs",
            args[edit[0]][edit[1][0]] == edit[2], (len(args[0]), edit),
        )
    torch, server = stand_in(), kbench._Server()
    check("lists: no module", kbench._Inputs(([1.0, 2.0],), 1).modules == [], "")
    server.note_state()
    sys.modules["torch"] = torch
    try:
        t = torch.Tensor()
        nested = {"list": [t, t], "tuple": (1, (t,)), "dict": {"a": t}}
        for what, value in nested.items():
            found = kbench._Inputs.modules.fget(type("Given", (), {"examples": (value, 2)}))
            check(f"lists: a tensor in a {what} makes the judge import torch early", found == ["torch"], found)
        changed = server.report_changes({})["changed"]
        check("lists: importing PyTorch later does not count as a replacement", changed == [], changed)
        server.note_state()
        check(
            "lists: after the next snapshot, no function of PyTorch has changed",
            server.report_changes({})["changed"] == [], server.report_changes({}),
        )
        torch.cuda.Event.elapsed_time = lambda a, b: 0.0
        torch.Tensor.allclose = lambda a, b: True
        changed = server.report_changes({})["changed"]
        check(
            "lists: functions of PyTorch that are replaced later are found",
            changed == ["torch.cuda.Event.elapsed_time", "torch.Tensor.allclose"],
            changed,
        )
    finally:
        del sys.modules["torch"]


def arrays():
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("SKIP: no numpy")
        return
    import array_task
    import arrays

    for name, function in functions(arrays).items():
        if hasattr(function, "words"):
            v = judged("arrays", name, array_task)
            names = [w.partition(":")[0] for w in v.words]
            good = (
                any(w in names for w in function.words) if function.words else v.time_ms and honest_words(v)
            )
            check("arrays: " + name, good, repr(v))
    v = kbench.judge(
        os.path.join(here, "arrays.py:zeros"), array_task.no_task, array_task.inputs, max_time=0.1
    )
    check("arrays: a task that accepts an output of zeros is invalid", v.verdict == "INVALID_TASK", repr(v))
    v = kbench.judge(
        os.path.join(here, "arrays.py:turned"), array_task.turned, array_task.inputs, max_time=0.1
    )
    check("arrays: a task allows outputs that are views of inputs", v.time_ms and honest_words(v), repr(v))
    v = judged("arrays", "no_strides", (array_task.reference, array_task.own))
    check("arrays: inputs that the task makes get a changed memory layout", v.words == ["LAYOUT_BOUND"], repr(v))
    v = judged("arrays", "another_order", (array_task.reference, array_task.own))
    check("arrays: a correct candidate, with inputs made by the task", v.time_ms and honest_words(v), repr(v))
    v = judged("arrays", "single", array_task, rtol=1e-4)
    check("arrays: a single-precision candidate passes with rtol=1e-4", v.time_ms and honest_words(v), repr(v))


def tensors():
    try:
        import torch
    except ImportError:
        print("SKIP: no PyTorch")
        return
    own, value = torch.tensor([65504.0, 60000.0, 1.0]).half(), torch.tensor([65515.0, 60000.0, 1.0]).double()
    truth = kbench._Reference(own, value, None, None)
    for got, good in (([math.inf, 6e4, 1], True), ([-math.inf, 6e4, 1], False), ([65504, math.inf, 1], False)):
        worst = truth.compare(torch.tensor(got).half(), own)
        check(f"tensors: the output {got} where 65515, 60000 and 1 are expected", (worst <= 1) == good, worst)
    several_tensors(torch)
    rough_inputs(torch)
    kept = kbench._Server()
    kept.gpu = False
    x = torch.ones(3).requires_grad_()
    kept.keep({"which": 1, "n": 2, "batch": [(x, 2)]})
    kept.set_pool({"pool": {"flat": {}, "shapes": {}, "sets": []}})
    kept.change({"which": 1, "draws": [(None, [], (0, (0,), 5.0)), (None, [], (0, (1,), 6.0))]})
    kept.prepare({"which": 1})
    first = [args[0] for args in kept.batch]
    kept.prepare({"which": 1})
    again = [args[0] for args in kept.batch]
    check(
        "tensors: two calls get inputs with different changed elements",
        [v.tolist() for v in again] == [[5, 1, 1], [1, 6, 1]], again,
    )
    check("tensors: each call of prepare() makes new tensors", all(v is not w for v in first for w in again), "")
    check("tensors: with gradients", all(v.requires_grad for v in again), again)
    kept.prepare({"which": 1, "n": 5})
    check("tensors: in turn", [args[0].tolist() for args in kept.batch][2:4] == [[5, 1, 1], [1, 6, 1]], kept.batch)
    drawn_tensors(torch)


def rough_inputs(torch):
    """Tests a matrix product whose inputs are rounded to ten mantissa bits, as tensor cores round f32 to TF32. A
    tolerance of 1 % must accept the product of rounded inputs, even if the terms of a sum cancel."""
    torch.manual_seed(2)
    a, b = (torch.randn(m * n).sort().values.reshape(m, n) for m, n in ((512, 768), (768, 640)))
    judge = kbench._Judge.__new__(kbench._Judge)
    judge.reference, judge.inplace, judge.rtol, judge.atol, judge.odd = torch.matmul, False, 0.01, None, True
    own = judge._true((a, b), a @ b)
    cut = [(v.view(torch.int32) & ~0x1FFF).view(torch.float32) for v in (a, b)]
    worst = kbench._Reference(own, a.double() @ b.double(), 0.01, None).compare(cut[0] @ cut[1], own)
    check("tensors: a tolerance that ignores the sensitivity to the inputs rejects rounded inputs", worst > 1, worst)
    worst = own._reference.compare(cut[0] @ cut[1], own)
    check("tensors: a tolerance that includes the sensitivity to the inputs accepts rounded inputs", worst <= 1, worst)
    worst = own._reference.compare(a[:, :-8] @ b[:-8], own)
    check("tensors: a matrix product that leaves out terms of each sum fails", worst > 1, worst)


def several_tensors(torch):
    want = torch.ones(3).bfloat16(), torch.tensor([1.0, 2.0])
    known = kbench._with_reference(want, tuple(v.double() for v in want), None, None)
    for got, good in (((1.01, 1.0), True), ((1.1, 1.0), False), ((1.0, 1.001), False)):
        both = (want[0] * got[0], want[1] * got[1])
        worst = kbench._compare(both, known, 3e-2, 3e-2)
        check(
            f"tensors: outputs multiplied by {got}: each output has the tolerance of its own element type",
            (worst <= 1) == good, worst,
        )
    named = torch.max(torch.arange(6.0).reshape(2, 3), 1)
    said = kbench._decode(kbench._encode(named))
    check("tensors: with names", type(said) is tuple and [v.tolist() for v in said] == [[2, 5], [2, 2]], said)
    pair = collections.namedtuple("pair", "a b")(want[0], 2.0)
    said = kbench._in_double(pair), kbench._zeros_like(pair)
    check("tensors: a named tuple becomes a tuple", [type(v) for v in said] == [tuple] * 2 and said[1][1] == 0, said)

    class Lazy(tuple):
        def __iter__(self):
            raise AssertionError("the judge asked the object for an attribute")

    check("tensors: overridden methods are ignored", kbench._decode(kbench._encode(Lazy((1.0, 2)))) == (1.0, 2))
    x = torch.ones(4, 4)
    for out, shares in (((x + 1, x[1:]), True), ((x + 1, x + 2), False), (x.t(), True), ((x.clone(), 3), False)):
        check(
            "tensors: an output shares memory with an input",
            kbench._shares(out, (torch.ones(2), x)) == shares, out,
        )
    ends = torch.tensor([math.inf, math.nan, 1.0])
    truth = kbench._Reference(ends, ends.double(), None, None)
    for other, strict, loose in (([math.nan, -math.inf, 1], False, True), ([1, math.nan, 1], False, False)):
        for truth.infinite, good in ((False, strict), (True, loose)):
            worst = truth.compare(torch.tensor(other), ends)
            check(
                f"tensors: the output {other} where infinity, NaN and 1 are expected: {truth.infinite}",
                (worst <= 1) == good, worst,
            )


def drawn_tensors(torch):
    """Tests that _fill gives every kind of tensor the same random values in the judge's and in the candidate's
    process."""
    some = {
        "f32": torch.randn(6, 5),
        "bf16": torch.randn(300).bfloat16(),
        "with gradients": torch.randn(3, 4).requires_grad_(),
        "complex": torch.randn(8, dtype=torch.complex64),
        "whole": torch.tensor([3, 9, 4, 4, 7]),
        "bool": torch.tensor([True, False] * 9),
        "turned": torch.randn(4, 7).t(),
    }
    inputs = kbench._Inputs(tuple(some.values()), 1)
    there = pickle.loads(pickle.dumps(inputs.pool))
    args, theirs, before = (kbench._fresh_copies(inputs.examples) for _ in range(3))
    versions = [v._version for v in args]
    for draw in inputs.draws(8):
        kbench._fill(args, inputs.pool, draw)
        kbench._fill(theirs, there, draw)
        for name, v, w, old in zip(some, args, theirs, before):
            check(f"random draws: {name}: judge and candidate get the same values", torch.equal(v, w), (v, w))
            new = (v != old).float().mean() if v.dtype not in (torch.bool, torch.int64) else 1
            check(f"random draws: {name}: more than 90 % of the elements are new", new > 0.9, (v, old))
            if name == "whole":
                check(
                    "random draws: integers of a tensor stay within the range of the example",
                    3 <= int(v.min()) and int(v.max()) <= 9, v,
                )
        before = kbench._fresh_copies(args)
    check(
        "random draws: version counters do not change",
        [v._version for v in args] == versions and args[2].requires_grad, versions,
    )
    size = torch.cat([v.detach().reshape(-1) for v in kbench._Inputs((torch.randn(4000),), 2).pool["flat"].values()])
    check(
        "random draws: the pool has 8096 numbers with a standard deviation near 1",
        size.numel() == 8096 and 0.9 < float(size.std()) < 1.1, size.numel(),
    )
    made = kbench._Inputs(lambda rng: (torch.full((4,), rng.random()), 0.5), 1)
    check("random draws: none for host tensors that the task makes", made.draws(2) == [], made.pool)
    made.drawn = {"flat": {}, "shapes": {}, "sets": [made.fresh() for _ in range(3)]}
    arm = kbench._TimedFunction(lambda x, a: x * a, stage_of(made), ())
    for count in range(1, 9):
        arm.before()
        (x, _), (want, _) = arm.args, kbench._TimedFunction.inputs_at(count, stage_of(made, arm.draws))
        check(
            "random draws: the inputs are one of the task's stored sets, with one element changed",
            torch.equal(x, want) and len(set(x.tolist())) == 2, x,
        )


def stage_of(inputs, draws=None):
    m = {"draws": draws or inputs.draws(5), "pool": inputs.pool, "inplace": False, "host": True}
    return {**m, "args": kbench._copy(inputs.examples)}


if __name__ == "__main__":
    for what in sys.argv[1:]:
        globals()[what]()
    print(f"{passed} passed, {failed} failed")
