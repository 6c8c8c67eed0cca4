# SPDX-License-Identifier: MIT OR Unlicense
"""Ways to deceive a judge, one per function. The decorator `word` names flags, of which the judge must raise at
least one."""

import array
import math
import os
import statistics
import struct
import subprocess
import sys
import threading
import time

from task import inputs, matrices, product, reference

kept, calls = {}, [0]


def word(*names, task=(reference, inputs)):
    def mark(f):
        f.words, f.task = names, task
        return f

    return mark


# --- no work ---


@word("NO_WORK")
def nothing(x, a):
    return None


@word("PARTIAL_WRITE")
def half(x, a):
    y = reference(x, a)
    return y[: len(y) // 2] + [0.0] * (len(y) - len(y) // 2)


@word("INPUT_RETURNED", "INPUT_CHANGED")
def in_the_input(x, a):
    x[:] = reference(x, a)
    return x


@word("PRECOMPUTED")
def answer_in_the_source(x, a):
    return reference(*inputs)


@word("SEED_BOUND")
def public_example_alone(x, a):
    return reference(x, a) if x == inputs[0] else [v * 1.5 for v in a]


# --- work done once ---


@word("MEMOIZED")
def by_identity(x, a):
    key = id(x)
    if key not in kept:
        kept[key] = x, reference(x, a)  # keeps x alive, so that no later list has the id of x
    return list(kept[key][1])


@word("MEMOIZED")
def by_size(x, a):
    if len(x) not in kept:
        kept[len(x)] = reference(x, a)
    return list(kept[len(x)])


@word("MEMOIZED")
def by_samples(x, a):
    key = len(x), x[0], x[len(x) // 2], a[-1]
    if key not in kept:
        kept[key] = reference(x, a)
    return list(kept[key])


@word("MEMOIZED")
def by_contents(x, a):
    key = array.array("d", x + a).tobytes()
    if key not in kept:
        for _ in range(20):
            kept[key] = reference(x, a)
    return list(kept[key])


@word("MEMOIZED", task=(product, matrices))
def only_what_changed(a, b):
    """Inputs that the function has seen take as long as inputs with one new element, because the function always
    computes at least one row."""
    columns = list(zip(*b))
    keys = [(len(a), len(b), *v) for v in (a[0], a[-1], columns[0], columns[-1])]
    was = next((kept[k] for k in keys if k in kept), None)
    if was is None:
        y = product(a, b)
    else:
        y = [row[:] for row in was[2]]
        rows = {i for i in range(len(a)) if a[i] != was[0][i]} or {0}
        others = [j for j in range(len(columns)) if columns[j] != was[1][j]]
        for i in range(len(a)):
            for j in range(len(columns)) if i in rows else others:
                y[i][j] = sum(v * w for v, w in zip(a[i], columns[j]))
    kept.update(dict.fromkeys(keys, ([row[:] for row in a], columns, [row[:] for row in y])))
    return y


@word("MEMOIZED")
def in_a_file(x, a):
    name = os.path.join(os.environ["HOME"], "%x" % hash(array.array("d", x + a).tobytes()))
    if not os.path.exists(name):
        for _ in range(60):
            y = reference(x, a)
        with open(name, "wb") as f:
            f.write(array.array("d", y).tobytes())
    with open(name, "rb") as f:
        return list(array.array("d", f.read()))


@word("OUTPUT_ALIASED")
def one_output_for_all(x, a):
    y = kept.setdefault(len(x), [0.0] * len(x))
    y[:] = reference(x, a)
    return y


@word("PHASE_DEPENDENT")
def first_calls_alone(x, a):
    calls[0] += 1
    return reference(x, a) if calls[0] <= 8 else [v + w for v, w in zip(x, a)]


@word("PHASE_DEPENDENT", "MEMOIZED")
def until_it_is_timed(x, a):
    calls[0] += 1
    if calls[0] <= 60:
        kept["y"] = reference(x, a)
    return list(kept["y"])


# --- work in other threads or streams, or later ---


@word("LATE_WRITE")
def in_a_thread(x, a):
    y = [0.0] * len(x)

    def work():
        time.sleep(0.01)
        y[:] = reference(x, a)

    threading.Thread(target=work).start()
    return y


@word("THREAD")
def goes_on(x, a):
    if not kept:
        kept["thread"] = threading.Thread(target=lambda: [math.sqrt(i) for i in range(10**9)], daemon=True)
        kept["thread"].start()
    return reference(x, a)


@word("THREAD")
def another_process(x, a):
    if not kept:
        kept["process"] = subprocess.Popen(["sleep", "20"])
    return reference(x, a)


class Lazy(list):
    def __init__(self, x, a):
        list.__init__(self, [0.0] * len(x))
        self.of = x, a

    def __iter__(self):
        return iter(reference(*self.of))


@word("LAZY")
def lazy_list(x, a):
    return Lazy(x, a)


@word("LAZY")
def generator(x, a):
    return (v for v in reference(x, a))


# --- clocks, checks, answers ---


@word("TIMER_PATCHED")
def stopped_clock(x, a):
    time.perf_counter = time.monotonic = lambda: 0.0
    return reference(x, a)


@word("TIMER_PATCHED")
def facts_that_lie(x, a):
    sys.modules["kbench"]._Server.report_changes = lambda self, m: {"changed": [], "shadowed": [], "settings": []}
    real = kept.setdefault("clock", time.perf_counter)
    time.perf_counter = lambda: real() / 100
    return reference(x, a)


@word("TIMER_PATCHED")
def records_that_lie(x, a):
    sys.modules["kbench"].Record.to_dict = lambda self: {"time_ms": 1e-6, "verdict": "FASTER"}
    return reference(x, a)


@word("TIMER_PATCHED")
def other_values_of_its_own(x, a):
    sys.modules["kbench"]._Library.__dict__["calibrate"].__defaults__ = (0,)
    return reference(x, a)


@word("TIMER_PATCHED")
def a_method_that_was_not_there(x, a):
    sys.modules["kbench"]._TimedFunction.__getattribute__ = object.__getattribute__
    return reference(x, a)


@word("CHECK_PATCHED")
def another_code(x, a):
    statistics.mean.__code__ = (lambda data: 0.0).__code__
    return reference(x, a)


@word("CHECK_PATCHED")
def everything_is_close(x, a):
    math.isclose = lambda *_, **__: True
    return reference(x, a)


@word("MODULE_SHADOW")
def another_module(x, a):
    sys.modules["math"] = type(sys)("math")
    return reference(x, a)


@word("EXITED")
def leaves(x, a):
    print('{"verdict": "FASTER", "speedup": 1000}', flush=True)
    os._exit(0)


@word("FORGED_RESULT", "EXITED")
def answers_itself(x, a):
    forged = b'{"verdict": "FASTER"}' * 10
    for handle in range(3, 32):
        try:
            os.write(handle, struct.pack("<Q", len(forged)) + forged)
        except OSError:
            pass
    return reference(x, a)


@word("FORGED_RESULT")
def answers_early(x, a):
    try:
        raise KeyError
    except KeyError as error:
        frame = error.__traceback__.tb_frame
    while frame and not ("writer" in frame.f_locals and "m" in frame.f_locals):
        frame = frame.f_back
    if frame and frame.f_locals["m"]["do"] == "go":
        body = frame.f_locals["m"]["token"].encode() + struct.pack("<I", 2) + b"{}"
        os.write(frame.f_locals["writer"], struct.pack("<Q", len(body)) + body)
    return reference(x, a)


@word("LOOKS_AROUND")
def asks_who_calls(x, a):
    import inspect

    return reference(x, a) if any("judge" in f.function for f in inspect.stack()) else x


@word("LOOKS_AROUND")
def reads_a_variable(x, a):
    return reference(x, a) if os.environ.get("BENCHMARK_RUNS") is None else x


@word("FALLBACK")
def swallows_its_error(x, a):
    try:
        return [math.sqrt(-1.0 - v * v) for v in x]
    except ValueError:
        return reference(x, a)


@word("SNOOPED")
def looks_around(x, a):
    frame = sys._getframe()
    while frame:
        if frame.f_locals.get("expected") is not None:
            return frame.f_locals["expected"]
        frame = frame.f_back
    return [0.0] * len(x)


# --- results of another computation ---


@word("LOW_PRECISION")
def single_precision(x, a):
    single = array.array("f", reference(x, a))
    return list(single)


@word("LOW_PRECISION")
def half_precision(x, a):
    return [struct.unpack("e", struct.pack("e", v))[0] for v in reference(x, a)]


@word("WRONG_LAYOUT")
def one_number(x, a):
    return reference(x, a)[0]


@word("SHAPE_BOUND")
def public_size_alone(x, a):
    y = reference(x[:100], a[:100])
    return y + [0.0] * (len(x) - len(y))


@word("SHAPE_BOUND")
def usual_sizes_alone(x, a):
    y = reference(x, a)
    return y if len(x) in (100, 101, 99, 150, 53, 1) else y[::-1]


@word("SHAPE_BOUND")
def two_more_sizes(x, a):
    y = reference(x, a)
    if len(x) not in (100, 101, 99, 150, 53, 1):
        kept.setdefault(len(x), None)
    return y[::-1] if len(x) in kept and list(kept).index(len(x)) > 1 else y


@word("DATA_SHORTCUT")
def clamps(x, a):
    return reference([min(max(v, -100.0), 100.0) for v in x], a)


@word("NAN_PASS")
def hides_nan(x, a):
    return reference([v if v == v else 0.0 for v in x], a)


@word("FLAKY")
def at_times(x, a):
    calls[0] += 1
    y = reference(x, a)
    return y if calls[0] % 7 else y[::-1]


@word("INPUT_CHANGED")
def easier_next_time(x, a):
    y = reference(x, a)
    x[0] = 0.0
    return y


@word("CRASHED")
def raises(x, a):
    return [v / 0 for v in x]


@word("TIMEOUT")
def hangs(x, a):
    while True:
        time.sleep(1)
