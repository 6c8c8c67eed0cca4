# SPDX-License-Identifier: MIT OR Unlicense
"""kbench from Python: functions timed, compared and judged by the engine of kbench.h.

    import kbench
    print(kbench.time(work, x, host=True))                                   # host work; without host=True: GPU work
    results = kbench.compare({"numpy": f, "mine": g}, inputs=(x,), check="numpy", host=True)
    kbench.table(results)
    kbench.save(results, "results.json")

Everything in a record is what kbench.h says of its keys: times in ms, rates per second, intervals of 95 %.
The standard library is enough. The library of kbench.h is built on first use with cc (and CUDA's runtime where a
toolkit is found) and kept under ~/.cache/kbench. From the environment: KBENCH_H a header, KBENCH_LIB a library,
KBENCH_NO_CUDA=1 for host work alone, CC a compiler, CUDA_HOME a toolkit.
"""
from __future__ import annotations

import copy
import ctypes as C
import hashlib
import html
import inspect
import json
import math
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

__version__ = "0.1.0"
__all__ = ["time", "compare", "table", "save", "load", "bench", "main", "do_bench", "Benchmark", "perf_report", "judge",
           "Record", "Records", "Error"]

_VERSION = 100  # kb_abi("version")


class Error(RuntimeError):
    """What kbench cannot do here, and what mends it."""


# --- the library: found or built once, and its structs ----------------------------------------------------------------

_FUNCTION = C.CFUNCTYPE(None, C.c_void_p, C.c_void_p)  # kb_function; kb_desc.check and kb_body are of its shape


class _Param(C.Structure):
    _fields_ = [("name", C.c_char_p), ("type", C.c_int), ("i", C.c_int64), ("r", C.c_double), ("s", C.c_char_p)]


class _Desc(C.Structure):
    _fields_ = [("name", C.c_char_p), ("implementation", C.c_char_p), ("dtype", C.c_char_p), ("bytes", C.c_double),
                ("flops", C.c_double), ("items", C.c_double), ("before", _FUNCTION), ("user", C.c_void_p),
                ("samples", C.c_int64), ("precision", C.c_double), ("max_time", C.c_double), ("expect", C.c_uint),
                ("seed", C.c_uint64), ("device", C.c_int), ("host", C.c_bool), ("check", _FUNCTION),
                ("mode", C.c_char_p), ("params", C.POINTER(_Param)), ("n_params", C.c_int),
                ("end_canary", C.c_uint32)]


_AXIS_END, _AXIS_INTS, _AXIS_REALS, _AXIS_STRINGS, _AXIS_SIZE = range(5)
_AXIS_MAX, _LAST_INT = 32, -(2**63)


class _Axis(C.Structure):
    _fields_ = [("name", C.c_char_p), ("type", C.c_int), ("i", C.c_int64 * (_AXIS_MAX + 1)),
                ("r", C.c_double * (_AXIS_MAX + 1)), ("s", C.c_char_p * (_AXIS_MAX + 1))]


class _Entry(C.Structure):
    _fields_ = [("operation", C.c_char_p), ("implementation", C.c_char_p), ("body", C.CFUNCTYPE(None, C.c_void_p)),
                ("user", C.c_void_p), ("axes", C.POINTER(_Axis)), ("origin", C.c_char_p), ("rung", C.c_int),
                ("needs", C.c_int), ("min_sm", C.c_int), ("note", C.c_char_p), ("returns", C.c_bool),
                ("file", C.c_char_p), ("line", C.c_int), ("order", C.c_int), ("build", C.c_void_p),
                ("next", C.c_void_p)]


class _State(C.Structure):
    _fields_ = [("stream", C.c_void_p), ("dtype", C.c_int), ("operation", C.c_char_p),
                ("implementation", C.c_char_p), ("direction", C.c_char_p), ("user", C.c_void_p), ("seed", C.c_uint64),
                ("gpu", C.c_bool), ("run", C.c_void_p)]


# the head of kb_build: optimised says that times are not those of a debug build, which Python's own code is not
_SIGNATURES = {
    "kb_compare_from": (C.c_bool, [C.POINTER(_Desc), C.POINTER(_FUNCTION), C.c_void_p, C.c_int64, C.c_void_p, C.c_void_p]),
    "kb_result_free": (None, [C.c_void_p]),
    "kb_json": (C.c_int64, [C.c_void_p, C.c_char_p, C.c_int64]),
    "kb_abi": (C.c_int64, [C.c_char_p]),
    "kb_current": (C.c_void_p, []),
    "kb_main": (C.c_int, [C.c_int, C.POINTER(C.c_char_p)]),
    "kb_add_from": (None, [C.POINTER(_Entry), C.c_void_p]),
    "kb_loop": (C.c_bool, [C.c_void_p, C.c_bool, _FUNCTION, _FUNCTION, C.c_void_p]),
    "kb_int": (C.c_int64, [C.c_void_p, C.c_char_p]),
    "kb_real": (C.c_double, [C.c_void_p, C.c_char_p]),
    "kb_str": (C.c_char_p, [C.c_void_p, C.c_char_p]),
    "kb_bytes": (None, [C.c_void_p, C.c_double]),
    "kb_flops": (None, [C.c_void_p, C.c_double]),
    "kb_items": (None, [C.c_void_p, C.c_double]),
    "kb_queries": (None, [C.c_void_p, C.c_double]),
    "kb_expect": (None, [C.c_void_p, C.c_uint]),
    "kb_alloc": (C.c_void_p, [C.c_void_p, C.c_int, C.c_size_t, C.c_int64]),
    "kbi_fill": (None, [C.c_void_p, C.c_void_p, C.c_int, C.c_int64, C.c_int]),
    "kb_dtype_of": (C.c_int, [C.c_char_p]),
    "kb_dtype_size": (C.c_size_t, [C.c_int]),
    "kb_dtype_name": (C.c_char_p, [C.c_int]),
    # with "%s" and one text behind these
    "kb_check_that": (C.c_bool, [C.c_void_p, C.c_bool, C.c_double, C.c_double, C.c_char_p]),
    "kb_fail": (None, [C.c_void_p, C.c_char_p]),
    "kb_skip": (None, [C.c_void_p, C.c_char_p]),
    "kb_note": (None, [C.c_void_p, C.c_char_p]),
}


def _find_header() -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("KBENCH_H"), os.path.join(here, "..", "..", "kbench.h"), os.path.join(here, "kbench.h"),
              os.path.join(sysconfig.get_path("data"), "share", "kbench", "kbench.h")]
    for place in places:
        if place and os.path.isfile(place):
            return os.path.normpath(place)
        if place and place == places[0]:
            raise Error(f"KBENCH_H={place} is no file")
    raise Error("kbench.h was not found: set KBENCH_H to its path")


def _find_cuda() -> Optional[Tuple[str, str]]:
    """Folders of the runtime's header and library, or None."""
    if os.environ.get("KBENCH_NO_CUDA"):
        return None
    nvcc = shutil.which("nvcc")
    roots = [os.environ.get("CUDA_HOME"), os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None,
             "/usr/local/cuda"]
    for root in filter(None, roots):
        targets = [root] + [os.path.join(root, "targets", t) for t in ("x86_64-linux", "sbsa-linux", "aarch64-linux")]
        include = [d for d in (os.path.join(t, "include") for t in targets)
                   if os.path.isfile(os.path.join(d, "cuda_runtime_api.h"))]
        library = [d for t in targets for d in (os.path.join(t, "lib64"), os.path.join(t, "lib"))
                   if os.path.exists(os.path.join(d, "libcudart.so"))]
        if include and library:
            return include[0], library[0]
    return None


def _build_command(header: str, output: str) -> List[str]:
    cuda = _find_cuda()
    command = shlex.split(os.environ.get("CC") or "cc") + ["-O2", "-shared", "-fPIC", "-x", "c", "-DKBENCH_SHARED"]
    if cuda:
        command += ["-DKBENCH_CUDA", "-I" + cuda[0]]
    command += [header, "-o", output]
    if cuda:
        command += ["-L" + cuda[1], "-Wl,-rpath," + cuda[1], "-lcudart"]
    return command + ["-lm", "-ldl", "-lpthread"]


def _find_library() -> str:
    """The path of libkbench.so: KBENCH_LIB, the one built before from the same header in the same way, or a new one."""
    if os.environ.get("KBENCH_LIB"):
        return os.environ["KBENCH_LIB"]
    header = _find_header()
    with open(header, "rb") as f:
        key = hashlib.sha256(f.read() + "\0".join(_build_command("kbench.h", "")).encode()).hexdigest()[:32]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "kbench", key)
    library = os.path.join(folder, "libkbench.so")
    if os.path.isfile(library):
        return library
    try:
        os.makedirs(folder, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(suffix=".so", dir=folder)  # two that build at once disturb nobody
    except OSError as error:
        raise Error(f"the library cannot be kept in {folder} ({error.strerror}): set XDG_CACHE_HOME") from None
    os.close(handle)
    command = _build_command(header, unfinished)
    print("kbench: building its library once: " + " ".join(map(shlex.quote, command)), file=sys.stderr)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = "" if done.returncode == 0 else done.stdout.decode(errors="replace")[-2000:] or "it failed"
    except OSError as error:
        said = f"{command[0]}: {error.strerror}; set CC to a C compiler"
    if said:
        os.unlink(unfinished)
        raise Error("the library could not be built. The command was\n    " + " ".join(map(shlex.quote, command)) +
                    "\nand said\n    " + said.strip().replace("\n", "\n    "))
    os.chmod(unfinished, 0o755)
    os.replace(unfinished, library)
    return library


class _Library:
    """The library's functions as attributes, checked to be those that this file knows."""

    def __init__(self) -> None:
        path = _find_library()
        # loaded, the library takes its part in a run from the environment, and out of it; Python has a copy of that
        self.is_worker = os.environ.get("KBENCH_STARTED_AS", "").split(",")[0] == str(os.getpid())
        try:
            self.handle = C.CDLL(path)
            os.environ.pop("KBENCH_STARTED_AS", None)
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self.handle, name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise Error(f"{path} is no library of kbench {__version__}: {error}") from None
        sizes = {"kb_desc": _Desc, "kb_param": _Param, "kb_entry": _Entry, "kb_axis": _Axis, "kb_state": _State}
        wrong = [name for name, kind in sizes.items() if self.kb_abi(name.encode()) != C.sizeof(kind)]
        if self.kb_abi(b"version") != _VERSION or wrong:
            raise Error(f"{path} is another version's (kbench.py is {__version__}; apart: {', '.join(wrong) or 'version'}): "
                        "take kbench.py and kbench.h from the same place, and unset KBENCH_LIB")
        self.result_bytes = self.kb_abi(b"kb_result")
        self.cuda = bool(self.kb_abi(b"cuda"))
        self.call_ms: Optional[float] = None  # what an empty function takes; see _call_cost

    def devices(self) -> int:
        """GPUs that can be used, 0 without CUDA."""
        n = C.c_int(0)
        return n.value if self.cuda and self.handle.cudaGetDeviceCount(C.byref(n)) == 0 else 0


_handle: Optional[_Library] = None


def _library() -> _Library:
    global _handle
    if _handle is None:
        _handle = _Library()
    return _handle


def _text(s: Any) -> Optional[bytes]:
    return None if s is None else str(s).encode()


# --- values: copied and compared, whatever they are -------------------------------------------------------------------

# What is allowed of |got - want| / (1 + |want|), by element type, unless rtol says it.
_TOLERANCES = {"f64": 1e-9, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2, "int": 0.0}
_SHORT = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex128": "f64",
          "complex64": "f32", "float": "f64", "complex": "f64"}


def _module_of(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and _module_of(value) != "builtins"


def _dtype_of(value: Any) -> str:
    """The widest rule that fits: of arrays theirs, of Python's floats f64, of all else int, which is compared exactly."""
    if _is_array(value):
        return _SHORT.get(str(value.dtype).replace("torch.", ""), "int")
    if isinstance(value, (float, complex)):
        return "f64"
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        kinds = {_dtype_of(v) for v in value}
        for kind in ("bf16", "f16", "f32", "f64"):
            if kind in kinds:
                return kind
    return "int"


def _copy(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_copy(v) for v in value)
    if isinstance(value, list):
        return [_copy(v) for v in value] if any(isinstance(v, (list, tuple, dict)) or _is_array(v) for v in value) else value[:]
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    if _module_of(value) == "torch" and hasattr(value, "detach"):
        return value.detach().clone()
    if _is_array(value) and hasattr(value, "copy"):
        return value.copy()
    return copy.deepcopy(value)


class _Mismatch(Exception):
    pass


def _compare_numbers(got: Any, want: Any, rtol: float, atol: float) -> float:
    """|got - want| over what is allowed of it; NaN matches NaN, an infinity the same one, each nothing else."""
    if isinstance(got, complex) or isinstance(want, complex):
        return max(_compare_numbers(got.real, want.real, rtol, atol), _compare_numbers(got.imag, want.imag, rtol, atol))
    if got == want or (got != got and want != want):
        return 0.0
    if not math.isfinite(got) or not math.isfinite(want):
        return math.inf
    allowed = atol + rtol * abs(want)
    return abs(got - want) / allowed if allowed > 0 else math.inf


def _compare_arrays(got: Any, want: Any, rtol: float, atol: float) -> float:
    if tuple(got.shape) != tuple(want.shape):
        raise _Mismatch(f"its shape is {tuple(got.shape)}, expected {tuple(want.shape)}")
    if str(got.dtype) != str(want.dtype):
        raise _Mismatch(f"its elements are {got.dtype}, expected {want.dtype}")
    if _module_of(want) == "torch":
        import torch as xp
        if not want.dtype.is_floating_point and not want.dtype.is_complex:
            return 0.0 if xp.equal(got, want.to(got.device)) else math.inf
        want = want.to(got.device)
        wide = xp.complex128 if want.dtype.is_complex else xp.float64
        got, want = got.to(wide), want.to(wide)
    else:
        xp = sys.modules[_module_of(want)]
        if want.dtype.kind not in "fc" and "float" not in str(want.dtype):
            return 0.0 if bool((got == want).all()) else math.inf
        got, want = (a.astype("c16" if a.dtype.kind == "c" else "f8") for a in (got, want))
    same = (got == want) | (xp.isnan(got) & xp.isnan(want))
    if bool(same.all()):
        return 0.0
    got, want = got[~same], want[~same]
    if not bool((xp.isfinite(got) & xp.isfinite(want)).all()):
        return math.inf
    allowed = atol + rtol * abs(want)
    return float((abs(got - want) / allowed).max()) if bool((allowed > 0).all()) else math.inf


def _compare(got: Any, want: Any, rtol: float, atol: float) -> float:
    """The largest error over what is allowed of it: 1 or less is right. Raises _Mismatch where they are not alike."""
    if isinstance(want, dict) and isinstance(got, dict):
        if set(got) != set(want):
            raise _Mismatch(f"its keys are {sorted(map(str, got))}, expected {sorted(map(str, want))}")
        return max((_compare(got[k], v, rtol, atol) for k, v in want.items()), default=0.0)
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(got) != len(want):
            raise _Mismatch(f"it has {len(got)} elements, expected {len(want)}")
        return max((_compare(g, w, rtol, atol) for g, w in zip(got, want)), default=0.0)
    if _is_array(want) and getattr(want, "shape", ()) != () or _module_of(want) == "torch":
        if _module_of(got) != _module_of(want):
            raise _Mismatch(f"it is a {type(got).__name__}, expected {type(want).__name__}")
        return _compare_arrays(got, want, rtol, atol)
    if isinstance(want, float) or isinstance(want, complex) or _is_array(want):
        if isinstance(got, bool) or not (isinstance(got, (int, float, complex)) or _is_array(got)):
            raise _Mismatch(f"it is a {type(got).__name__}, expected {type(want).__name__}")
        plain = (lambda v: v.item()) if hasattr(want, "item") or hasattr(got, "item") else (lambda v: v)
        return _compare_numbers(plain(got) if hasattr(got, "item") else got, plain(want) if hasattr(want, "item") else want,
                                rtol, atol)
    if type(got) is not type(want):
        raise _Mismatch(f"it is a {type(got).__name__}, expected {type(want).__name__}")
    return 0.0 if got == want else math.inf


class _Expected:
    """A check against values: relative to them, absolute near zero."""

    def __init__(self, want: Any, rtol: Optional[float], atol: Optional[float]) -> None:
        self.want = want
        self.rtol = _TOLERANCES[_dtype_of(want)] if rtol is None else rtol
        self.atol = self.rtol if atol is None else atol

    def __call__(self, got: Any) -> Tuple[bool, float, float, str]:
        """Passed, error, what was allowed, what is wrong."""
        allowed = self.rtol or self.atol
        try:
            worst = _compare(got, self.want, self.rtol, self.atol)
        except _Mismatch as error:
            return False, math.nan, allowed, str(error)
        error = 0.0 if worst == 0 else worst * allowed if allowed else math.inf
        exact = "it is not equal to what was expected"
        return worst <= 1, error, allowed, f"the error is {error:.3g}, allowed is {allowed:.3g}" if allowed else exact


def _verdict_of(check: Callable[[Any], Any], output: Any) -> Tuple[bool, float, float, str]:
    """What a check says of an output: True or None passes, False and an AssertionError do not."""
    if isinstance(check, _Expected):
        return check(output)
    try:
        passed = check(output)
    except AssertionError as error:
        return False, math.nan, math.nan, str(error) or "an assertion failed"
    return passed is None or bool(passed), 0.0, 0.0, "the check returned False"


# --- streams: kbench's own is the current one of torch and cupy while a function runs ---------------------------------


class _Streams:
    """Enters kbench's stream in the libraries that are imported; one for each contest, made when it is first called."""

    def __init__(self, device: int) -> None:
        self.device, self.stream, self.managers = device, 0, []  # type: ignore[var-annotated]

    def on(self, stream: int) -> Sequence[Any]:
        if stream != self.stream:
            self.stream, self.managers = stream, []
            torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
            if torch is not None and torch.cuda.is_available():
                self.managers.append(torch.cuda.stream(torch.cuda.ExternalStream(stream, device=self.device)))
            if cupy is not None:
                self.managers.append(cupy.cuda.ExternalStream(stream, self.device))
        return self.managers


def _takes_stream(fn: Callable[..., Any]) -> bool:
    try:
        return "stream" in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False


def _on_stream(fn: Callable[..., Any], args: Sequence[Any], streams: _Streams) -> Callable[[int], Any]:
    takes = _takes_stream(fn)

    def call(stream: int) -> Any:
        managers = streams.on(stream)
        for m in managers:
            m.__enter__()
        try:
            return fn(*args, stream=stream) if takes else fn(*args)
        finally:
            for m in reversed(managers):
                m.__exit__(None, None, None)

    return call


# --- functions called from C ------------------------------------------------------------------------------------------


class _Interrupts:
    """Ctrl-C during a contest: at once where Python's own code runs, else at the next call from C."""

    def __init__(self) -> None:
        self.pending, self.inside = False, False

    def _take(self, number: int, frame: Any) -> None:
        self.pending = True
        if self.inside:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterable[None]:
        main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, self._take) if main else None
        try:
            yield
        finally:
            if main:
                signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)


class _Job:
    """One function with its reset and its check, as the engine calls them: nothing that they raise goes through C."""

    def __init__(self, interrupts: _Interrupts, call: Callable[[int], Any], before: Optional[Callable[[int], Any]],
                 checks: Sequence[Callable[[Any], Any]]) -> None:
        self.interrupts, self.output, self.error = interrupts, None, None  # type: ignore[var-annotated]
        self.state: Optional[int] = None  # of whom is being told what failed; None: kb_current()
        self.checks = checks
        self.fn = _FUNCTION(self._guarded(call, True))
        self.before = _FUNCTION(self._guarded(before, False)) if before else _FUNCTION()
        self.check = _FUNCTION(lambda kb, user: self.look(kb)) if checks else _FUNCTION()

    def _guarded(self, call: Callable[[int], Any], keeps: bool) -> Callable[[int, int], None]:
        interrupts = self.interrupts

        def run(stream: int, user: int) -> None:
            try:
                interrupts.inside = True
                if interrupts.pending:
                    raise KeyboardInterrupt
                if keeps:
                    self.output = None  # given back before the next one is made, as where nobody keeps it
                    self.output = call(stream)
                else:
                    call(stream)
                interrupts.inside = False
            except BaseException as error:
                interrupts.inside = False
                self.fail(error)

        return run

    def fail(self, error: BaseException) -> None:
        library = _library()
        self.error = self.error or error
        kb = self.state or library.kb_current()
        said = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        if kb:
            library.kb_fail(kb, b"%s", C.c_char_p(said.encode()[:400]))

    def look(self, kb: int) -> None:
        if self.error or self.interrupts.pending:
            return
        try:
            for check in self.checks:
                passed, error, allowed, text = _verdict_of(check, self.output)
                _library().kb_check_that(kb, passed, error, allowed, b"%s", C.c_char_p(text.encode()[:400]))
        except BaseException as error:
            self.fail(error)


# --- records ----------------------------------------------------------------------------------------------------------


def _show_time(ms: Optional[float]) -> str:
    if ms is None:
        return "no time"
    for unit, scale in (("s", 1e3), ("ms", 1.0), ("us", 1e-3)):
        if abs(ms) >= scale:
            return f"{ms / scale:.4g} {unit}"
    return f"{ms / 1e-6:.4g} ns"


class Record:
    """What was measured of one implementation. The keys are attributes; units and meanings are those of KB_RECORD in
    kbench.h (time_ms: ms; throughput_gbps: 1e9 bytes a second; None: does not apply). Of host work python_call_ms
    besides: what an empty Python function takes when it is called in the same way, which is in every time."""

    def __init__(self, data: Dict[str, Any], exception: Optional[BaseException] = None) -> None:
        self._data = data
        self.exception = exception  # what the function raised, if it did

    def __getattr__(self, key: str) -> Any:
        data = self.__dict__.get("_data", {})
        if key in data:
            return data[key]
        raise AttributeError(f"no key '{key}' in the record; .to_dict() shows them")

    def __dir__(self) -> List[str]:
        return sorted(set(object.__dir__(self)) | set(self._data))

    def to_dict(self) -> Dict[str, Any]:
        """A copy of all keys and values."""
        return copy.deepcopy(self._data)

    def _columns(self) -> Dict[str, str]:
        d = self._data
        words = [w for w in d.get("flags") or []]
        precision = d.get("precision")
        columns = {"name": str(d.get("name")),
                   "time": _show_time(d.get("time_ms")) if d.get("time_ms") is not None else str(d.get("status")),
                   "+-": f"{100 * precision:.2g} %" if precision is not None else "",
                   "GB/s": f"{d['throughput_gbps']:.4g}" if d.get("throughput_gbps") is not None else "",
                   "GFLOP/s": f"{d['gflops']:.4g}" if d.get("gflops") is not None else "",
                   "speedup": f"{d['speedup']:.3g}" if d.get("speedup") is not None else "",
                   "verdict": str(d.get("verdict") or ""), "words": " ".join(words), "message": str(d.get("message") or "")}
        return columns

    def __repr__(self) -> str:
        c = self._columns()
        parts = [c["name"] + ":", c["time"]]
        parts += [f"+-{c['+-']}"] if c["+-"] else []
        parts += [f"{c[unit]} {unit}" for unit in ("GB/s", "GFLOP/s") if c[unit]]
        parts += [f"x{c['speedup']}"] if c["speedup"] else []
        parts += [c[k] for k in ("verdict", "words") if c[k]]
        return " ".join(parts) + (f" ({c['message']})" if c["message"] else "")

    def _repr_html_(self) -> str:
        return _html_table([self])


def _html_table(records: Sequence[Record]) -> str:
    rows = [r._columns() for r in records]
    keys = [k for k in (rows[0] if rows else {}) if any(row[k] for row in rows)]
    head = "".join(f"<th>{html.escape(k)}</th>" for k in keys)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(row[k])}</td>" for k in keys) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Records(List[Record]):
    """A list of records that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return _html_table(self)


def _as_list(records: Any) -> List[Record]:
    return [records] if isinstance(records, Record) else list(records)


def save(records: Any, path: str) -> None:
    """Writes records as a JSON array, which takes the old file's place when it is complete. kbench's own programs read
    it: --load, --baseline, --compare."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, unfinished = tempfile.mkstemp(suffix=".json", dir=folder)
    try:
        with os.fdopen(handle, "w") as f:
            json.dump([r._data for r in _as_list(records)], f, indent=1, allow_nan=False)
            f.write("\n")
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def load(path: str) -> Records:
    """Records of a file that save, or --json of any kbench program, wrote."""
    with open(path) as f:
        return Records(Record(d) for d in json.load(f))


def _call_main(words: Sequence[str]) -> int:
    argv = (C.c_char_p * (len(words) + 1))(*[os.fsencode(w) for w in words], None)
    sys.stdout.flush()
    sys.stderr.flush()
    return _library().kb_main(len(words), argv)


def table(records: Any, *options: str) -> None:
    """Prints records as kbench's own table (to sys.stdout, wherever that leads). options: of kbench's command line, such
    as "--md", "x.md", "--html", "x.html", "--columns", "time,speedup"."""
    if _library().is_worker:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.json")
        save(records, path)
        words = ["kbench", "--load", path, *options]
        try:
            plain = sys.stdout is sys.__stdout__ and sys.stdout.fileno() == 1
        except (AttributeError, OSError, ValueError):
            plain = False
        if plain:
            _call_main(words)
            return
        with tempfile.TemporaryFile() as f:  # sys.stdout is not the file that C knows
            sys.__stdout__.flush() if sys.__stdout__ else None
            kept = os.dup(1)
            os.dup2(f.fileno(), 1)
            try:
                _call_main(words)
            finally:
                os.dup2(kept, 1)
                os.close(kept)
            f.seek(0)
            sys.stdout.write(f.read().decode())


# --- time and compare -------------------------------------------------------------------------------------------------

_EXPECT = {"transfer": 1, "alloc": 2, "sync": 4}


def _params_of(values: Optional[Dict[str, Any]]) -> Any:
    array = (_Param * max(1, len(values or {})))()
    for p, (name, value) in zip(array, (values or {}).items()):
        p.name = _text(name)
        if isinstance(value, float):
            p.type, p.r = _AXIS_REALS, value
        elif isinstance(value, int):
            p.type, p.i = _AXIS_INTS, value
        else:
            p.type, p.s = _AXIS_STRINGS, _text(value)
    return array


def _need_gpu(library: _Library) -> None:
    if library.devices():
        return
    why = "it was built without CUDA: no toolkit was found (nvcc on the PATH, or CUDA_HOME)" if not library.cuda else \
        "there is no GPU that the driver shows"
    raise Error(f"GPU work cannot be timed here, {why}. For host work pass host=True")


def _contest(jobs: Dict[str, _Job], interrupts: _Interrupts, *, name: str, host: Optional[bool], bytes: Optional[float],
             flops: Optional[float], items: Optional[float], params: Optional[Dict[str, Any]], dtype: Optional[str],
             mode: Optional[str], precision: Optional[float], max_time: Optional[float], samples: Optional[int],
             seed: Optional[int], device: Optional[int], expect: Iterable[str]) -> List[Record]:
    library = _library()
    n = len(jobs)
    descs, given = (_Desc * n)(), _params_of(params)
    unknown = [w for w in expect if w not in _EXPECT]
    if unknown:
        raise Error(f"expect knows {', '.join(_EXPECT)}; not {unknown[0]}")
    for d, (implementation, job) in zip(descs, jobs.items()):
        d.name, d.implementation, d.dtype, d.mode = _text(name), _text(implementation), _text(dtype), _text(mode)
        d.bytes, d.flops, d.items = float(bytes or 0), float(flops or 0), float(items or 0)
        d.samples, d.precision, d.max_time = int(samples or 0), float(precision or 0), float(max_time or 0)
        d.seed, d.device, d.host = int(seed or 0), int(device or 0), bool(host)
        d.expect = sum(_EXPECT[w] for w in set(expect))
        d.before, d.check = job.before, job.check
        d.params, d.n_params = given, len(params or {})
    fns = (_FUNCTION * n)(*[job.fn for job in jobs.values()])
    results = C.create_string_buffer(library.result_bytes * n)
    at = [C.addressof(results) + library.result_bytes * i for i in range(n)]
    with interrupts.held():
        library.kb_compare_from(descs, fns, None, n, results, None)
    records = []
    for address, job in zip(at, jobs.values()):
        text = C.create_string_buffer(library.kb_json(address, None, 0) + 1)
        library.kb_json(address, text, len(text))
        library.kb_result_free(address)
        records.append(Record(json.loads(text.value.decode()), job.error))
    if interrupts.pending:
        raise KeyboardInterrupt
    return records


def _call_cost() -> float:
    """ms that an empty Python function takes when the engine calls it: in every time of host work. Measured once."""
    library = _library()
    if library.call_ms is None:
        library.call_ms = math.nan
        interrupts = _Interrupts()
        job = _Job(interrupts, lambda stream: None, None, [])
        record, = _contest({"empty": job}, interrupts, name="python_call", host=True, bytes=None, flops=None, items=None,
                           params=None, dtype=None, mode=None, precision=0.02, max_time=0.1, samples=None, seed=None,
                           device=None, expect=())
        library.call_ms = math.nan if record.time_ms is None else record.time_ms
    return library.call_ms


def _say_call(record: Record) -> None:
    cost, time_ms = _call_cost(), record.time_ms
    record._data["python_call_ms"] = None if math.isnan(cost) else cost
    if time_ms is None or not cost > 0.05 * time_ms:
        return
    word = f"of which {_show_time(min(cost, time_ms))} are the call from C"
    record._data["message"] = f"{record.message}; {word}" if record.message else word


def _reference(check: Any, functions: Dict[str, Callable[..., Any]], inputs: Sequence[Any], rtol: Optional[float],
               atol: Optional[float], streams: _Streams) -> List[Callable[[Any], Any]]:
    """The checks of a contest. A function that returns None is compared by what it left in its inputs."""
    if check is None:
        return []
    if callable(check):
        return [check]
    if not isinstance(check, str):
        return [_Expected(check, rtol, atol)]
    if check not in functions:
        raise Error(f"check='{check}' is none of the functions: {', '.join(functions)}")
    own = _copy(tuple(inputs))
    output = _on_stream(functions[check], own, streams)(0) if _takes_stream(functions[check]) else functions[check](*own)
    expected = _Expected(_copy(own if output is None else output), rtol, atol)
    if output is not None:
        return [expected]
    return [lambda got: expected(tuple(inputs))]


def compare(functions: Dict[str, Callable[..., Any]], inputs: Sequence[Any] = (), *, name: Optional[str] = None,
            check: Any = None, rtol: Optional[float] = None, atol: Optional[float] = None, bytes: Optional[float] = None,
            flops: Optional[float] = None, items: Optional[float] = None, params: Optional[Dict[str, Any]] = None,
            dtype: Optional[str] = None, before: Optional[Callable[..., Any]] = None, host: Optional[bool] = None,
            mode: Optional[str] = None, precision: Optional[float] = None, max_time: Optional[float] = None,
            samples: Optional[int] = None, seed: Optional[int] = None, device: Optional[int] = None,
            expect: Iterable[str] = ()) -> Records:
    """A contest: every function is called with the same inputs, checked, timed in turn, and judged against the first.

    check: the name of the function whose output the others must have, or values, or a function that takes an output and
    returns True (or asserts). It is asked after a function's first run and after its last; who is wrong gets no time.
    rtol, atol: |got - want| <= atol + rtol |want|; by element type unless given (f64 1e-9, f32 2e-5, f16 4e-3, bf16
    3e-2, all else exact), atol as rtol. bytes, flops, items: of one call, for rates. params: what the contest is about,
    into the record. before(*inputs): untimed, before each sample. host=True: host work, without a GPU. mode: "cold"
    (default) or "hot", of GPU work. precision: half the interval over the median to stop at (0.005). max_time: seconds
    of samples (1). samples: exactly so many. device: which GPU. expect: of "transfer", "alloc", "sync" what the
    functions may do because it is what is measured.
    Gives a record each. What a function raised is its record's exception; the others go on. Ctrl-C ends the contest."""
    if not functions:
        raise Error("compare needs functions: {'name': function, ...}")
    if not host:
        _need_gpu(_library())
    interrupts, streams = _Interrupts(), _Streams(int(device or 0))
    checks = _reference(check, functions, inputs, rtol, atol, streams)
    jobs = {}
    for key, fn in functions.items():
        wrap = _plain if host else _on_stream
        jobs[key] = _Job(interrupts, wrap(fn, inputs, streams), wrap(before, inputs, streams) if before else None, checks)
    records = _contest(jobs, interrupts, name=name or "compare", host=host, bytes=bytes, flops=flops, items=items,
                       params=params, dtype=dtype, mode=mode, precision=precision, max_time=max_time, samples=samples,
                       seed=seed, device=device, expect=tuple(expect))
    for record in records:
        if host:
            _say_call(record)
    return Records(records)


def _plain(fn: Callable[..., Any], args: Sequence[Any], streams: Any) -> Callable[[int], Any]:
    return (lambda stream: fn()) if not args else (lambda stream: fn(*args))


def time(fn: Callable[..., Any], *args: Any, name: Optional[str] = None, check: Any = None, **options: Any) -> Record:
    """Times fn(*args): one record. options, and check, are those of compare. What fn raises is raised here."""
    record, = compare({getattr(fn, "__name__", "function"): fn}, args, check=check,
                      name=name or getattr(fn, "__name__", "function"), **options)
    if record.exception is not None:
        raise record.exception
    return record


# --- programs: benchmarks with axes, and kbench's command line --------------------------------------------------------


class Buffer:
    """Memory of a case, of kb_alloc: numpy, torch and cupy take it without a copy. It lives as long as the case."""

    def __init__(self, address: int, count: int, dtype: str, gpu: bool) -> None:
        self.address, self.count, self.dtype = address, count, dtype
        kind = {"f": "f", "i": "i", "u": "u"}.get(dtype[0])
        size = {"8": 1, "16": 2, "32": 4, "64": 8}.get(dtype[1:])
        self.size = size
        interface = {"shape": (count,), "typestr": f"{'|' if size == 1 else '<'}{kind}{size}", "data": (address, False),
                     "version": 3}
        if kind and size:
            setattr(self, "__cuda_array_interface__" if gpu else "__array_interface__", interface)

    def values(self) -> Any:
        """A ctypes array over host memory."""
        kinds = {"f32": C.c_float, "f64": C.c_double, "i8": C.c_int8, "u8": C.c_uint8, "i16": C.c_int16,
                 "u16": C.c_uint16, "i32": C.c_int32, "u32": C.c_uint32, "i64": C.c_int64, "u64": C.c_uint64}
        if not hasattr(self, "__array_interface__") or self.dtype not in kinds:
            raise Error(f"a buffer of {self.dtype} on this device has no values in Python; numpy or torch can take it")
        return (kinds[self.dtype] * self.count).from_address(self.address)


class Case:
    """What a benchmark's function is given. It sets up, says what is timed, and returns; the engine then runs that."""

    def __init__(self, address: int, interrupts: _Interrupts) -> None:
        self._kb, self._lib, self._interrupts = address, _library(), interrupts
        self._checks: List[Callable[[Any], Any]] = []
        self._timed: Optional[Tuple[Any, Any, bool]] = None
        state = C.cast(address, C.POINTER(_State)).contents
        self.stream: int = state.stream or 0  # kbench's: cudaStream_t as a number
        self.gpu: bool = state.gpu
        self.seed: int = state.seed
        self.dtype: Optional[str] = self._lib.kb_dtype_name(state.dtype).decode() if state.dtype else None

    def time(self, fn: Callable[..., Any], *args: Any, before: Optional[Callable[..., Any]] = None,
             host: bool = False) -> None:
        """fn(*args) is what is timed, host=True: as host work. before(*args) is called before each sample, untimed."""
        if self._timed:
            return self.fail("two timed functions in one benchmark")
        if not host and not self.gpu:
            return self.skip("needs a GPU; host work is timed with kb.time(..., host=True)")
        wrap = _plain if host else _on_stream
        streams = _Streams(0)
        self._timed = (wrap(fn, args, streams), wrap(before, args, streams) if before else None, host)

    def check(self, got: Any, want: Any = None, rtol: Optional[float] = None, atol: Optional[float] = None) -> None:
        """check(test): test(output) of the timed function returns True, or asserts. check(got, want): what the function
        leaves in got. check(None, want): its output. Asked after its first run and after its last."""
        if callable(got):
            self._checks.append(got)
        else:
            expected = _Expected(_copy(want), rtol, atol)
            self._checks.append(expected if got is None else lambda output: expected(got))

    def bytes(self, n: float) -> None:
        """Bytes that one run has to move."""
        self._lib.kb_bytes(self._kb, n)

    def flops(self, n: float) -> None:
        """Operations of one run."""
        self._lib.kb_flops(self._kb, n)

    def items(self, n: float) -> None:
        """Anything else worth a rate."""
        self._lib.kb_items(self._kb, n)

    def queries(self, n: float) -> None:
        self._lib.kb_queries(self._kb, n)

    def expect(self, *words: str) -> None:
        """Of "transfer", "alloc", "sync" what the timed function may do because it is what is measured."""
        self._lib.kb_expect(self._kb, sum(_EXPECT[w] for w in set(words)))

    def skip(self, why: str) -> None:
        self._lib.kb_skip(self._kb, b"%s", C.c_char_p(why.encode()))

    def fail(self, why: str) -> None:
        self._lib.kb_fail(self._kb, b"%s", C.c_char_p(why.encode()))

    def note(self, text: str) -> None:
        self._lib.kb_note(self._kb, b"%s", C.c_char_p(text.encode()))

    def alloc(self, count: int, dtype: str = "f32", place: str = "device") -> Buffer:
        """count elements, on the GPU where there is one; place: "device", "host" or "pinned"."""
        kind = self._lib.kb_dtype_of(dtype.encode())
        where = ("device", "host", "pinned").index(place)
        address = self._lib.kb_alloc(self._kb, where, self._lib.kb_dtype_size(kind), count)
        if not address:
            raise MemoryError(f"{count} elements of {dtype}")
        return Buffer(address, count, dtype, self.gpu and where == 0)

    def fill(self, buffer: Buffer, kind: str = "normal") -> None:
        """kind: "zero", "normal", "uniform" or "iota"; the same values on every machine for a seed."""
        self._lib.kbi_fill(self._kb, buffer.address, self._lib.kb_dtype_of(buffer.dtype.encode()), buffer.count,
                           ("zero", "normal", "uniform", "iota").index(kind))


def _axis(name: str, values: Sequence[Any]) -> _Axis:
    values = list(values)
    if not 1 <= len(values) <= _AXIS_MAX:
        raise Error(f"axis '{name}': 1 to {_AXIS_MAX} values, not {len(values)}")
    a = _Axis(_text(name))
    if all(isinstance(v, int) for v in values):
        a.type, a.i[len(values)] = _AXIS_INTS, _LAST_INT
        a.i[:len(values)] = values
    elif all(isinstance(v, (int, float)) for v in values):
        a.type, a.r[len(values)] = _AXIS_REALS, math.nan
        a.r[:len(values)] = values
    elif all(isinstance(v, str) for v in values):
        a.type = _AXIS_STRINGS
        for i, v in enumerate(values):
            a.s[i] = _text(v)
    else:
        raise Error(f"axis '{name}': its values are all numbers or all texts")
    return a


class _Registered:
    """An implementation as the library keeps it: it lives as long as the process."""

    def __init__(self, fn: Callable[..., None], operation: str, implementation: str, axes: Dict[str, Sequence[Any]],
                 sizes: Dict[str, str], origin: Optional[str], rung: int, note: Optional[str]) -> None:
        self.fn, self.kinds = fn, {}  # type: ignore[var-annotated]
        self.running: Dict[int, Tuple[Case, _Job]] = {}  # by kb_state: those that rest
        self.interrupts = _Interrupts()
        rows = [_axis(k, v) for k, v in axes.items()]
        self.kinds = {k: row.type for k, row in zip(axes, rows)}
        for category, spec in sizes.items():
            row = _Axis(_text(category), _AXIS_SIZE)
            row.s[0] = _text(spec)
            rows.append(row)
        self.axes = (_Axis * (len(rows) + 1))(*rows, _Axis(None, _AXIS_END))
        self.entry = _Entry(operation=_text(operation), implementation=_text(implementation), axes=self.axes,
                            origin=_text(origin), rung=rung, note=_text(note), returns=True)
        self.entry.body = _Entry._fields_[2][1](self.body)
        self.file = _text(inspect.getsourcefile(fn) or "")
        self.entry.file, self.entry.line = self.file, fn.__code__.co_firstlineno
        _library().kb_add_from(C.byref(self.entry), None)

    def _value(self, kb: int, axis: str) -> Any:
        library, name = _library(), _text(axis)
        kind = self.kinds[axis]
        if kind == _AXIS_STRINGS:
            return library.kb_str(kb, name).decode()
        return library.kb_int(kb, name) if kind == _AXIS_INTS else library.kb_real(kb, name)

    def body(self, kb: int) -> None:
        """Called by the engine until its timed function is over; the Python function itself once a call."""
        if kb not in self.running:
            case = Case(kb, self.interrupts)
            try:
                self.fn(case, **{axis: self._value(kb, axis) for axis in self.kinds})
            except BaseException as error:
                traceback.print_exc()
                return case.fail(f"{type(error).__name__}: {error}")
            if not case._timed:
                return
            job = _Job(self.interrupts, case._timed[0], case._timed[1], case._checks)
            job.state = kb
            self.running[kb] = case, job
        case, job = self.running[kb]
        if not _library().kb_loop(kb, case._timed[2], job.before, job.fn, None):
            return
        del self.running[kb]
        if job.error:
            traceback.print_exception(type(job.error), job.error, job.error.__traceback__)
        job.look(kb)


_registered: List[_Registered] = []  # what the library points to must not go away


def bench(fn: Optional[Callable[..., None]] = None, *, op: Optional[str] = None, impl: str = "default",
          sizes: Optional[Dict[str, str]] = None, origin: Optional[str] = None, rung: int = 0,
          note: Optional[str] = None, **axes: Sequence[Any]) -> Any:
    """Registers a function as a benchmark of kbench.main():

        @kbench.bench(n=[1024, 4096], impl="sorted")
        def median(kb, n):
            x = ...
            kb.time(lambda: sorted(x)[n // 2], host=True)
            kb.check(lambda output: output == expected)

    op: the operation, by default the function's name; impl: how it is computed, the first of an operation is the
    baseline; axes: lists of ints, floats or texts, passed by name; sizes: {"small": "n=1024"}."""
    def register(f: Callable[..., None]) -> Callable[..., None]:
        _registered.append(_Registered(f, op or f.__name__, impl, axes, sizes or {}, origin, rung, note))
        return f

    return register if fn is None else register(fn)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """kbench's command line on what bench registered (--help lists it); ends the process with its exit code. Cases run in
    workers: this script, started again with the same command line. What has none (a notebook, a script from stdin) runs
    them in its own process, as with --no-isolate."""
    words = list(sys.argv if argv is None else [sys.argv[0], *argv])
    again = getattr(sys.modules.get("__main__"), "__file__", None) or sys.argv[0] == "-c"
    if (not again or sys.argv[0] == "-") and "--no-isolate" not in words:
        words.append("--no-isolate")
    words[0] = words[0] or "kbench"
    sys.exit(_call_main(words))


# --- triton.testing's functions, by the same arguments ----------------------------------------------------------------


def _quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = min(int(at), len(ordered) - 1)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def do_bench(fn: Callable[[], Any], warmup: float = 25, rep: float = 100, grad_to_none: Optional[Iterable[Any]] = None,
             quantiles: Optional[Sequence[float]] = None, return_mode: str = "mean", host: Optional[bool] = None) -> Any:
    """Takes triton.testing.do_bench's arguments and gives what it gives, in ms: measured by kbench (evicted L2, behind a
    gate, what events read too much taken off). rep: ms of samples; warmup is without effect: kbench warms up until times
    have settled. Raises Error where there is no time."""
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise Error(f"return_mode is min, max, mean, median or all; not {return_mode}")
    tensors = list(grad_to_none or [])

    def forget() -> None:
        for t in tensors:
            t.grad = None

    record = time(fn, before=forget if tensors else None, host=host, max_time=rep / 1000)
    if record.time_ms is None:
        raise Error(repr(record))
    samples = record.samples_ms
    if quantiles is not None:
        values = [_quantile(samples, q) for q in quantiles]
        return values[0] if len(values) == 1 else values
    if return_mode == "all":
        return list(samples)
    return {"min": min(samples), "max": max(samples), "mean": sum(samples) / len(samples),
            "median": record.time_ms}[return_mode]


class Benchmark:
    """A sweep, with triton.testing.Benchmark's arguments: x_vals along x_names, one line for each of line_vals."""

    def __init__(self, x_names: Sequence[str], x_vals: Sequence[Any], line_arg: str, line_vals: Sequence[Any],
                 line_names: Sequence[str], plot_name: str, args: Dict[str, Any], xlabel: str = "", ylabel: str = "",
                 x_log: bool = False, y_log: bool = False, styles: Optional[Sequence[Tuple[str, str]]] = None,
                 color: Any = None) -> None:
        self.x_names, self.x_vals, self.line_arg, self.line_vals = list(x_names), list(x_vals), line_arg, list(line_vals)
        self.line_names, self.plot_name, self.args = list(line_names), plot_name, dict(args)
        self.xlabel, self.ylabel, self.x_log, self.y_log, self.styles = xlabel, ylabel, x_log, y_log, styles

    def points(self) -> List[Dict[str, Any]]:
        one = [v if isinstance(v, (list, tuple)) else [v] * len(self.x_names) for v in self.x_vals]
        return [dict(zip(self.x_names, values)) for values in one]


class Mark:
    """What perf_report makes of a function: run() measures, prints, and writes."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Any) -> None:
        self.fn, self.benchmarks = fn, benchmarks

    def _rows(self, b: Benchmark, **given: Any) -> List[Dict[str, Any]]:
        rows = []
        for point in b.points():
            row = dict(point)
            for value, name in zip(b.line_vals, b.line_names):
                got = self.fn(**point, **{b.line_arg: value}, **b.args, **given)
                y, low, high = got if isinstance(got, (list, tuple)) else (got, None, None)
                row[name], row[name + "-min"], row[name + "-max"] = y, low, high
            rows.append(row)
        return rows

    def _plot(self, b: Benchmark, rows: List[Dict[str, Any]], path: Optional[str], show: bool) -> None:
        try:
            import matplotlib.pyplot as plot
        except ImportError:
            print("kbench: no matplotlib, so no figure", file=sys.stderr)
            return
        plot.figure()
        for i, name in enumerate(b.line_names):
            style = {"color": b.styles[i][0], "ls": b.styles[i][1]} if b.styles else {}
            x = [r[b.x_names[0]] for r in rows]
            plot.plot(x, [r[name] for r in rows], label=name, **style)
            if all(r[name + "-min"] is not None and r[name + "-max"] is not None for r in rows):
                plot.fill_between(x, [r[name + "-min"] for r in rows], [r[name + "-max"] for r in rows], alpha=0.15)
        plot.legend()
        plot.xlabel(b.xlabel or b.x_names[0])
        plot.ylabel(b.ylabel)
        plot.xscale("log" if b.x_log else "linear")
        plot.yscale("log" if b.y_log else "linear")
        if path:
            plot.savefig(path)
        if show:
            plot.show()
        plot.close()

    def run(self, show_plots: bool = False, print_data: bool = False, save_path: str = "", return_df: bool = False,
            **given: Any) -> Any:
        """save_path: a folder for PLOT_NAME.csv, and PLOT_NAME.png where matplotlib is. return_df: pandas' frames where it
        is there, else lists of dicts; of one Benchmark the one, of a list a list."""
        several = isinstance(self.benchmarks, (list, tuple))
        found = []
        for b in self.benchmarks if several else [self.benchmarks]:
            rows = self._rows(b, **given)
            keys = b.x_names + b.line_names
            show = lambda v: f"{v:.6g}" if isinstance(v, float) else str(v)
            if print_data:
                lines = [keys] + [[show(r[k]) for k in keys] for r in rows]
                widths = [max(len(line[i]) for line in lines) for i in range(len(keys))]
                print(b.plot_name + ":")
                for line in lines:
                    print("  ".join(text.rjust(w) for text, w in zip(line, widths)))
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                with open(os.path.join(save_path, b.plot_name + ".csv"), "w") as f:
                    for line in [keys] + [[show(r[k]) for k in keys] for r in rows]:
                        f.write(",".join(line) + "\n")
            if save_path or show_plots:
                self._plot(b, rows, os.path.join(save_path, b.plot_name + ".png") if save_path else None, show_plots)
            found.append(rows)
        if not return_df:
            return None
        try:
            import pandas
            found = [pandas.DataFrame(rows) for rows in found]
        except ImportError:
            pass
        return found if several else found[0]


def perf_report(benchmarks: Any) -> Callable[[Callable[..., Any]], Mark]:
    """Decorator with triton.testing.perf_report's meaning: the function gives ms, or (ms, min, max), of one point."""
    return lambda fn: Mark(fn, benchmarks)
